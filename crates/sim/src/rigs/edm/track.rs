//! Where a request's time went, gathered along the path of its last chunk.
//!
//! Each wait on that path is measured where it happens, the pipelines and wires are known, and what remains is
//! waiting for grants; so the spans of a request sum to its latency by construction. Later chunks overwrite what earlier ones
//! left: chunks of a request are in order everywhere.

use base::{Span, Time};
use edm::budget::{CROSSINGS, Delays, HOPS};
use edm::pcs::memory as encoded;
use edm::{Access, Body, Config, Place, Tag, Transmission, Wire};
use prefetch_index::prefetch_index;
use record::{Outcome, SpanKind, Spans};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// What every finished request pays alike.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// All crossings of its path.
    pcs: Span,
    /// All crossings of its path.
    transceiver: Span,
    /// All fibres of its path.
    propagation: Span,
    /// The logic on the path of a last chunk that a /G/ let through.
    logic_by_grant: Span,
    /// The logic on the path of a last chunk that the request itself let through.
    logic_by_request: Span,
    /// One block on a wire.
    block: Span,
}

impl Costs {
    /// Of a rack whose transceivers (one crossing) and fibres (one hop) take so long.
    pub fn new(delays: &Delays, place: &Place, transceiver: Span, propagation: Span) -> Costs {
        let before = delays.make_request + delays.insert + delays.iteration + delays.emit;
        let after = delays.forward + delays.take_data;
        Costs {
            pcs: delays.pcs * CROSSINGS,
            transceiver: transceiver * CROSSINGS,
            propagation: propagation * HOPS,
            logic_by_grant: before + delays.take_grant + after,
            logic_by_request: before + delays.take_request + delays.make_response + after,
            block: place.blocks(1),
        }
    }
}

/// What is known of one request, and changes while it is under way. One cache line: tens of thousands are alive at once and
/// touched in random order.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Track {
    /// When the host took it up; [`NEVER`] while it waits for an active notification.
    start: Time,
    nic_control: Span,
    grant_wait: Span,
    /// When the chunk of its last grant was ready to be made; [`NEVER`] if that grant was the RREQ itself, not a /G/.
    chunk_ready: Time,
    nic_data: Span,
    switch_wait: Span,
    /// The driver's number for the request.
    pub ticket: u32,
    /// Blocks of its /N/ or request and of all of its data.
    own_blocks: u32,
    grant_blocks: u8,
    is_write: bool,
    /// Copies of its last chunk on their way.
    copies: u8,
    /// Whether a request of its batch has yet to take over what is known of their common notification and grant.
    followed: bool,
    ended: bool,
}

/// What only some racks know of a request: those whose memory takes time, or whose links carry frames.
#[derive(Clone, Copy, Debug, Default)]
struct Rare {
    memory: Span,
    /// What its /N/ or request lost to frames on its own uplink.
    control_on_link: Span,
    /// What its last chunk lost to frames on its own uplink.
    data_on_link: Span,
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
    /// By tag: the intended starts, which are needed at the end only.
    intended: Vec<Time>,
    /// By tag, as far as anything of the kind has happened.
    rare: Vec<Rare>,
    free: Vec<u32>,
    /// Tags of ended requests, and from when on they may be used again.
    resting: VecDeque<(Time, u32)>,
    rest: Span,
}

impl Tracks {
    /// No track. Tags of requests that have finished rest for `rest`, by when their last copies have arrived.
    pub fn new(rest: Span) -> Tracks {
        let (slots, intended, rare) = (Vec::new(), Vec::new(), Vec::new());
        Tracks { slots, intended, rare, free: Vec::new(), resting: VecDeque::new(), rest }
    }
    /// Takes in a request that was intended for `now` and gives its tag.
    pub fn open(&mut self, now: Time, track: Track) -> u32 {
        while self.resting.front().is_some_and(|(until, _)| *until <= now) {
            self.free.extend(self.resting.pop_front().map(|(_, tag)| tag));
        }
        let Some(tag) = self.free.pop() else {
            self.slots.push(track);
            self.intended.push(now);
            return self.slots.len() as u32 - 1;
        };
        self.slots[tag as usize] = track;
        self.intended[tag as usize] = now;
        if let Some(rare) = self.rare.get_mut(tag as usize) {
            *rare = Rare::default();
        }
        tag
    }
    /// A request will be touched soon.
    #[inline]
    pub fn foresee(&self, tag: Tag) {
        prefetch_index(&self.slots, tag.0 as usize);
        prefetch_index(&self.intended, tag.0 as usize);
    }
    /// Something of a request goes onto the uplinks of so many planes.
    #[inline]
    pub fn sent(&mut self, sent: &Transmission, now: Time, make_request: Span, living_planes: u8) {
        if !is_data(&sent.what) {
            return self[sent.tag.0 as usize].control_sent(now, sent.queued, make_request);
        }
        if sent.lead != sent.tag {
            self.follow(sent.tag.0, sent.lead.0, now);
        }
        self[sent.tag.0 as usize].data_sent(now, sent.queued, living_planes, sent.followed);
    }
    /// The memory of a request took so long.
    pub fn memory_read(&mut self, tag: Tag, span: Span) {
        self.rare(tag).memory = span;
    }
    /// The control message of a request took so much longer on a shared uplink than its blocks.
    pub fn control_interleaved(&mut self, tag: Tag, waited: Span) {
        self.rare(tag).control_on_link = waited;
    }
    /// A chunk took so much longer on a shared uplink than its blocks.
    pub fn data_interleaved(&mut self, tag: Tag, waited: Span) {
        self.rare(tag).data_on_link = waited;
    }
    fn rare(&mut self, tag: Tag) -> &mut Rare {
        let index = tag.0 as usize;
        if self.rare.len() <= index {
            self.rare.resize(self.slots.len(), Rare::default());
        }
        &mut self.rare[index]
    }
    /// When a request was taken up; `spans`, empty before, become the split of its time, which sums to `end - intended`.
    pub fn spans(&self, tag: u32, outcome: Outcome, end: Time, costs: &Costs, spans: &mut Spans) -> Time {
        let (track, intended) = (&self.slots[tag as usize], self.intended[tag as usize]);
        let rare = self.rare.get(tag as usize).copied().unwrap_or_default();
        let start = track.start.min(end);
        spans.add(SpanKind::Wait, start - intended);
        if outcome == Outcome::Finished {
            track.split(&rare, spans, costs);
        }
        let latency = end - intended;
        // Grants of one request come a little faster than its chunks leave (look-ahead, and RREQ against /G/), so its last
        // chunk waits behind its own earlier ones: that time is in their serialization already.
        let mut known = spans.total();
        for queue in [SpanKind::NicQueue, SpanKind::SwitchQueue] {
            let excess = known.saturating_sub(latency).min(spans.get(queue));
            spans.take(queue, excess);
            known -= excess;
        }
        assert!(known <= latency, "the parts of a request, {spans:?}, are more than its latency of {latency}");
        spans.add(SpanKind::Schedule, latency - known);
        start
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
        if let Some(Rare { control_on_link, .. }) = self.rare.get(lead as usize).copied() {
            self.rare(Tag(tag)).control_on_link = control_on_link;
        }
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
    pub fn new(ticket: u32, access: &Access, config: &Config) -> Track {
        let (control_blocks, data_blocks) = blocks_of(access, config.chunk.count() as u32);
        Track {
            start: NEVER,
            nic_control: Span::ZERO,
            grant_wait: Span::ZERO,
            chunk_ready: NEVER,
            nic_data: Span::ZERO,
            switch_wait: Span::ZERO,
            ticket,
            own_blocks: (control_blocks + data_blocks) as u32,
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
        let Track { start, nic_control, grant_wait, grant_blocks, chunk_ready, .. } = *lead;
        *self = Track { start, nic_control, grant_wait, grant_blocks, chunk_ready, ..*self };
    }
    /// A grant of it (or its request, on to the memory node) waited so long for the downlink.
    pub fn granted(&mut self, waited: Span, blocks: u64) {
        (self.grant_wait, self.grant_blocks, self.chunk_ready) = (waited, blocks as u8, NEVER);
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

    /// Whether its last grant was a /G/.
    fn by_grant(&self) -> bool {
        self.chunk_ready != NEVER
    }

    fn split(&self, rare: &Rare, spans: &mut Spans, costs: &Costs) {
        let Rare { memory, control_on_link, data_on_link } = *rare;
        let blocks = u64::from(self.own_blocks) + u64::from(self.grant_blocks);
        spans.add(SpanKind::Stack, if self.by_grant() { costs.logic_by_grant } else { costs.logic_by_request });
        spans.add(SpanKind::Pcs, costs.pcs);
        spans.add(SpanKind::Transceiver, costs.transceiver);
        spans.add(SpanKind::Propagation, costs.propagation);
        spans.add(SpanKind::Serialization, costs.block * blocks);
        spans.add(SpanKind::SwitchQueue, self.grant_wait + self.switch_wait);
        // A chunk whose grant came before the memory was read waited for the memory, not for the link.
        let for_memory = if self.by_grant() { memory.min(self.nic_data) } else { memory };
        let in_nic = if self.by_grant() { self.nic_data - for_memory } else { self.nic_data };
        spans.add(SpanKind::Memory, if self.is_write { Span::ZERO } else { for_memory });
        spans.add(SpanKind::NicQueue, self.nic_control + in_nic + control_on_link + data_on_link);
    }
}

fn is_data(what: &Wire) -> bool {
    match what {
        Wire::Notification(_) => false,
        Wire::Memory(message) => matches!(message.body, Body::WriteRequest { .. } | Body::ReadResponse { .. }),
    }
}

/// Blocks of the /N/ or request of an access, and of all chunks of its data.
fn blocks_of(access: &Access, chunk: u32) -> (u64, u64) {
    let sum = |bytes: u32, blocks: fn(u32) -> u64| {
        // Most are one chunk, and a division is slow.
        if (1..=chunk).contains(&bytes) {
            return blocks(bytes);
        }
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

const _: () = assert!(size_of::<Track>() == 64);
