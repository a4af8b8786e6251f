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
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

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

/// What is known of one request. Tens of thousands are alive at once and touched in random order: no larger than it must be.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    intended: Time,
    /// When the host took it up; [`NEVER`] while it waits for an active notification.
    start: Time,
    nic_control: Span,
    /// What its /N/ or request lost to frames on its own uplink.
    control_on_link: Span,
    grant_wait: Span,
    /// When the chunk of its last grant was ready to be made; [`NEVER`] if that grant was the RREQ itself, not a /G/.
    chunk_ready: Time,
    nic_data: Span,
    /// What its last chunk lost to frames on its own uplink.
    data_on_link: Span,
    switch_wait: Span,
    memory: Span,
    /// The driver's number for the request.
    pub ticket: u32,
    /// Blocks of all of its data.
    data_blocks: u32,
    /// Blocks of its /N/ or request.
    control_blocks: u8,
    grant_blocks: u8,
    is_write: bool,
    /// Copies of its last chunk on their way.
    copies: u8,
    /// Whether a request of its batch has yet to take over what is known of their common notification and grant.
    followed: bool,
    ended: bool,
}

const NEVER: Time = Time::MAX;

/// All tracks, by small numbers (the tags of messages).
///
/// A driver's ticket is used again as soon as its request has ended, but messages that carry its tag may outlive it: the late
/// answer to a request that was given up, the second copy of what a backup network carried too, the rest of a batch. So tags are
/// numbers of their own, which are used again only when nothing can carry them any more.
#[derive(Debug)]
pub struct Tracks {
    slots: Vec<Track>,
    free: Vec<u32>,
    /// Tags of ended requests, and from when on they may be used again.
    resting: VecDeque<(Time, u32)>,
    rest: Span,
}

impl Tracks {
    /// No track. Tags of requests that have finished rest for `rest`, by when their last copies have arrived.
    pub fn new(rest: Span) -> Tracks {
        Tracks { slots: Vec::new(), free: Vec::new(), resting: VecDeque::new(), rest }
    }
    /// Takes a request in and gives its tag.
    pub fn open(&mut self, track: Track) -> u32 {
        while self.resting.front().is_some_and(|(until, _)| *until <= track.intended) {
            self.free.extend(self.resting.pop_front().map(|(_, tag)| tag));
        }
        if let Some(tag) = self.free.pop() {
            self.slots[tag as usize] = track;
            return tag;
        }
        self.slots.push(track);
        self.slots.len() as u32 - 1
    }
    /// Ends a request. The tag of one that did not finish is never used again: its demand may still be anywhere.
    pub fn close(&mut self, tag: u32, outcome: Outcome, now: Time) {
        let track = &mut self.slots[tag as usize];
        track.ended = true;
        if outcome == Outcome::Finished && !track.followed {
            self.reuse(tag, now);
        }
    }
    /// `tag` shared the notification and grant of `lead`, the request before it in its batch.
    pub fn follow(&mut self, tag: u32, lead: u32, now: Time) {
        let before = &mut self.slots[lead as usize];
        before.followed = false;
        let before = *before;
        self.slots[tag as usize].follow(&before);
        if before.ended {
            self.reuse(lead, now);
        }
    }
    fn reuse(&mut self, tag: u32, now: Time) {
        if self.rest > Span::ZERO { self.resting.push_back((now + self.rest, tag)) } else { self.free.push(tag) }
    }
}

impl Index<usize> for Tracks {
    type Output = Track;
    fn index(&self, tag: usize) -> &Track {
        &self.slots[tag]
    }
}
impl IndexMut<usize> for Tracks {
    fn index_mut(&mut self, tag: usize) -> &mut Track {
        &mut self.slots[tag]
    }
}

impl Track {
    /// A request that the application has just handed over.
    pub fn new(ticket: u32, intended: Time, access: &Access, config: &Config) -> Track {
        let (control_blocks, data_blocks) = blocks_of(access, config.chunk.count() as u32);
        Track {
            intended,
            start: NEVER,
            nic_control: Span::ZERO,
            control_on_link: Span::ZERO,
            grant_wait: Span::ZERO,
            chunk_ready: NEVER,
            nic_data: Span::ZERO,
            data_on_link: Span::ZERO,
            switch_wait: Span::ZERO,
            memory: Span::ZERO,
            ticket,
            data_blocks: data_blocks as u32,
            control_blocks: control_blocks as u8,
            grant_blocks: 0,
            is_write: matches!(access, Access::Write { .. }),
            copies: 0,
            followed: false,
            ended: false,
        }
    }
    /// Its RREQ, RMWREQ or /N/ goes onto the uplink.
    pub fn control_sent(&mut self, now: Time, queued: Time, make_request: Span) {
        self.start = queued;
        self.nic_control = now - (queued + make_request);
    }
    /// It shared the notification and grant of `lead`.
    fn follow(&mut self, lead: &Track) {
        let Track { start, nic_control, control_on_link, grant_wait, grant_blocks, chunk_ready, .. } = *lead;
        *self = Track { start, nic_control, control_on_link, grant_wait, grant_blocks, chunk_ready, ..*self };
    }
    /// A grant of it (or its request, on to the memory node) waited so long for the downlink.
    pub fn granted(&mut self, waited: Span, blocks: u64) {
        (self.grant_wait, self.grant_blocks, self.chunk_ready) = (waited, blocks as u8, NEVER);
    }
    /// Its memory took so long.
    pub fn memory_read(&mut self, span: Span) {
        self.memory = span;
    }
    /// A /G/ has been taken and the chunk may go from `at`.
    pub fn chunk_ready(&mut self, at: Time) {
        self.chunk_ready = at;
    }
    /// A chunk goes onto the uplink.
    pub fn data_sent(&mut self, now: Time, queued: Time, copies: u8, followed: bool) {
        self.nic_data = now.saturating_since(if self.by_grant() { self.chunk_ready } else { queued });
        (self.copies, self.followed) = (copies, followed);
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
    /// Its last chunk never left its host.
    pub fn never_left(&mut self) {
        self.copies = 0;
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
    pub fn spans(&self, outcome: Outcome, end: Time, place: &Place, delays: &Delays, hop: Hop) -> (Time, Spans) {
        let mut spans = Spans::default();
        let start = self.start.min(end);
        spans.add(SpanKind::Wait, start - self.intended);
        if outcome == Outcome::Finished {
            self.split(&mut spans, place, delays, hop);
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

    /// Whether its last grant was a /G/.
    fn by_grant(&self) -> bool {
        self.chunk_ready != NEVER
    }

    fn split(&self, spans: &mut Spans, place: &Place, delays: &Delays, hop: Hop) {
        let blocks = u64::from(self.control_blocks) + u64::from(self.grant_blocks) + u64::from(self.data_blocks);
        spans.add(SpanKind::Stack, self.logic(delays));
        spans.add(SpanKind::Pcs, hop.pcs * HOPS);
        spans.add(SpanKind::Transceiver, hop.transceiver * HOPS);
        spans.add(SpanKind::Propagation, hop.propagation * HOPS);
        spans.add(SpanKind::Serialization, place.blocks(blocks));
        spans.add(SpanKind::SwitchQueue, self.grant_wait + self.switch_wait);
        // A chunk whose grant came before the memory was read waited for the memory, not for the link.
        let for_memory = if self.by_grant() { self.memory.min(self.nic_data) } else { self.memory };
        let in_nic = if self.by_grant() { self.nic_data - for_memory } else { self.nic_data };
        spans.add(SpanKind::Memory, if self.is_write { Span::ZERO } else { for_memory });
        spans.add(SpanKind::NicQueue, self.nic_control + in_nic + self.control_on_link + self.data_on_link);
    }

    /// The logic on the path of its last chunk.
    fn logic(&self, delays: &Delays) -> Span {
        let before = delays.make_request + delays.insert + delays.iteration + delays.emit;
        let made = if self.by_grant() { delays.take_grant } else { delays.take_request + delays.make_response };
        before + made + delays.forward + delays.take_data
    }
}

/// Blocks of the /N/ or request of an access, and of all chunks of its data.
fn blocks_of(access: &Access, chunk: u32) -> (u64, u64) {
    let sum = |bytes: u32, blocks: fn(u32) -> u64| {
        let rest = bytes % chunk;
        u64::from(bytes / chunk) * blocks(chunk) + if rest > 0 { blocks(rest) } else { 0 }
    };
    match access {
        Access::Write { bytes, .. } => (encoded::NOTIFICATION_BLOCKS, sum(*bytes, encoded::write_blocks)),
        Access::Read { bytes, .. } => (encoded::read_request_blocks(*bytes), sum(*bytes, encoded::response_blocks)),
        Access::Modify { modify, .. } => {
            (encoded::rmw_blocks(modify), encoded::response_blocks(modify.response_bytes()))
        }
    }
}

const _: () = assert!(CROSSINGS == 2 * HOPS);
