//! Where a request's time went, gathered along the path of its last chunk.
//!
//! Each wait on that path is measured where it happens, the pipelines and wires are known, and what remains is
//! waiting for grants; so the spans of a request sum to its latency by construction. Later chunks overwrite what earlier ones
//! left: chunks of a request are in order everywhere.

use base::{Span, Time};
use edm::budget::{CROSSINGS, Delays, HOPS};
use edm::pcs::memory as encoded;
use edm::{Access, Config, Place};
use record::{Outcome, SpanKind, Spans};

/// The parts of one hop.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Two crossings.
    pub pcs: Span,
    /// Two crossings.
    pub transceiver: Span,
    /// The fibre.
    pub propagation: Span,
}

/// What is known of one request.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    access: Access,
    intended: Time,
    /// When the host took it up; `None` while it waits for an active notification.
    start: Option<Time>,
    nic_control: Span,
    /// What its /N/ or request lost to frames on its own uplink.
    control_on_link: Span,
    grant_wait: Span,
    grant_blocks: u64,
    /// Whether its last grant was a /G/ (with when its chunk was ready to be made), not the RREQ itself.
    chunk_ready: Option<Time>,
    nic_data: Span,
    /// What its last chunk lost to frames on its own uplink.
    data_on_link: Span,
    switch_wait: Span,
    memory: Span,
    /// Copies of its last chunk on their way.
    copies: u8,
}

impl Default for Track {
    fn default() -> Track {
        Track::new(Time::ZERO, Access::Read { address: 0, bytes: 0 })
    }
}

impl Track {
    /// A request that the application has just handed over.
    pub fn new(intended: Time, access: Access) -> Track {
        Track {
            access,
            intended,
            start: None,
            nic_control: Span::ZERO,
            control_on_link: Span::ZERO,
            grant_wait: Span::ZERO,
            grant_blocks: 0,
            chunk_ready: None,
            nic_data: Span::ZERO,
            data_on_link: Span::ZERO,
            switch_wait: Span::ZERO,
            memory: Span::ZERO,
            copies: 0,
        }
    }
    /// Its RREQ, RMWREQ or /N/ goes onto the uplink.
    pub fn control_sent(&mut self, now: Time, queued: Time, make_request: Span) {
        self.start = Some(queued);
        self.nic_control = now - (queued + make_request);
    }
    /// It shared the notification and grant of `lead`.
    pub fn follow(&mut self, lead: &Track) {
        let Track { start, nic_control, control_on_link, grant_wait, grant_blocks, chunk_ready, .. } = *lead;
        *self = Track { start, nic_control, control_on_link, grant_wait, grant_blocks, chunk_ready, ..*self };
    }
    /// A grant of it (or its request, on to the memory node) waited so long for the downlink.
    pub fn granted(&mut self, waited: Span, blocks: u64) {
        (self.grant_wait, self.grant_blocks, self.chunk_ready) = (waited, blocks, None);
    }
    /// Its memory took so long.
    pub fn memory_read(&mut self, span: Span) {
        self.memory = span;
    }
    /// A /G/ has been taken and the chunk may go from `at`.
    pub fn chunk_ready(&mut self, at: Time) {
        self.chunk_ready = Some(at);
    }
    /// A chunk goes onto the uplink.
    pub fn data_sent(&mut self, now: Time, queued: Time, copies: u8) {
        self.nic_data = now.saturating_since(self.chunk_ready.unwrap_or(queued));
        self.copies = copies;
    }
    /// Its control message took so much longer on a shared uplink than its blocks.
    pub fn control_interleaved(&mut self, waited: Span) {
        self.control_on_link = waited;
    }
    /// A chunk took so much longer on a shared uplink than its blocks.
    pub fn data_interleaved(&mut self, waited: Span) {
        self.data_on_link = waited;
    }
    /// A chunk waited so long for the downlink.
    pub fn forwarded(&mut self, waited: Span) {
        self.switch_wait = waited;
    }
    /// Its last chunk has arrived: copies that are still on their way do not matter.
    pub fn arrived(&mut self) {
        self.copies = u8::MAX;
    }
    /// A copy of its last chunk was lost; whether that was the last one.
    pub fn lost_last_copy(&mut self) -> bool {
        if self.copies == u8::MAX {
            return false;
        }
        self.copies = self.copies.saturating_sub(1);
        self.copies == 0
    }

    /// When it was taken up, and the split of its time, which sums to `end - intended`.
    pub fn spans(
        &self,
        outcome: Outcome,
        end: Time,
        config: &Config,
        place: &Place,
        delays: &Delays,
        hop: Hop,
    ) -> (Time, Spans) {
        let mut spans = Spans::default();
        let start = self.start.unwrap_or(end);
        spans.add(SpanKind::Wait, start - self.intended);
        if outcome == Outcome::Finished {
            self.split(&mut spans, config, place, delays, hop);
        }
        let latency = end - self.intended;
        // Grants of one request come a little faster than its chunks leave (look-ahead, and RREQ against /G/), so its last
        // chunk waits behind its own earlier ones: that time is in their serialization already.
        for queue in [SpanKind::NicQueue, SpanKind::SwitchQueue] {
            spans.take(queue, spans.total().saturating_sub(latency));
        }
        let known = spans.total();
        assert!(known <= latency, "the parts of a request, {spans:?}, are more than its latency of {latency}");
        spans.add(SpanKind::Schedule, latency - known);
        (start, spans)
    }

    fn split(&self, spans: &mut Spans, config: &Config, place: &Place, delays: &Delays, hop: Hop) {
        let (control_blocks, data_blocks, logic) = self.path(config, delays);
        spans.add(SpanKind::Stack, logic);
        spans.add(SpanKind::Pcs, hop.pcs * HOPS);
        spans.add(SpanKind::Transceiver, hop.transceiver * HOPS);
        spans.add(SpanKind::Propagation, hop.propagation * HOPS);
        spans.add(SpanKind::Serialization, place.blocks(control_blocks + self.grant_blocks + data_blocks));
        spans.add(SpanKind::SwitchQueue, self.grant_wait + self.switch_wait);
        // A chunk whose grant came before the memory was read waited for the memory, not for the link.
        let for_memory = if self.chunk_ready.is_some() { self.memory.min(self.nic_data) } else { self.memory };
        let in_nic = if self.chunk_ready.is_some() { self.nic_data - for_memory } else { self.nic_data };
        spans.add(SpanKind::Memory, if self.is_write() { Span::ZERO } else { for_memory });
        spans.add(SpanKind::NicQueue, self.nic_control + in_nic + self.control_on_link + self.data_on_link);
    }

    fn is_write(&self) -> bool {
        matches!(self.access, Access::Write { .. })
    }

    /// Blocks of its /N/ or request, blocks of all of its data, and the logic on the path of its last chunk.
    fn path(&self, config: &Config, delays: &Delays) -> (u64, u64, Span) {
        let chunk = config.chunk.count() as u32;
        let sum = |bytes: u32, blocks: fn(u32) -> u64| {
            let rest = bytes % chunk;
            u64::from(bytes / chunk) * blocks(chunk) + if rest > 0 { blocks(rest) } else { 0 }
        };
        let before = delays.make_request + delays.insert + delays.iteration + delays.emit;
        let after = delays.forward + delays.take_data;
        let made =
            if self.chunk_ready.is_some() { delays.take_grant } else { delays.take_request + delays.make_response };
        let logic = before + made + after;
        match self.access {
            Access::Write { bytes, .. } => (encoded::NOTIFICATION_BLOCKS, sum(bytes, encoded::write_blocks), logic),
            Access::Read { bytes, .. } => {
                (encoded::read_request_blocks(bytes), sum(bytes, encoded::response_blocks), logic)
            }
            Access::Modify { modify, .. } => {
                (encoded::rmw_blocks(&modify), encoded::response_blocks(modify.response_bytes()), logic)
            }
        }
    }
}

const _: () = assert!(CROSSINGS == 2 * HOPS);
