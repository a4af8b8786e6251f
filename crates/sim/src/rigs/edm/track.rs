//! Where a request's time went, gathered along the path of its last chunk.
//!
//! Each moment on that path is measured where it happens: the request leaves its host, its grant
//! leaves the switch, the chunk leaves its host. Between them lie pipelines and wires, which are
//! known, and waits, which are measured. When the request ends, its ledger is made of them, each
//! from its own moment on: a part that is missing is a gap. Later chunks overwrite what earlier
//! ones left: chunks of a request are in order everywhere.

use super::claims::Costs;
use crate::slab::FreeNumbers;
use base::{Bytes, NodeId, Span, Time};
use edm::pcs::memory as encoded;
use edm::{Access, Body, Config, Tag, Transmission, Wire};
use prefetch_index::prefetch_index;
use record::{Ledger, Outcome, Place as At, SpanKind};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Who has asked whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Who has asked.
    pub source: NodeId,
    /// Whose memory it is about.
    pub target: NodeId,
}

/// What is known of one request, and changes while it is under way. One cache line: tens of
/// thousands are alive at once and touched in random order.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Track {
    /// When the host took it up; [`NEVER`] while it waits for an active notification.
    pub(super) start: Time,
    /// When its RREQ, RMWREQ or /N/ went onto the uplink.
    pub(super) control_sent: Time,
    /// When its last grant, or its request, was at the egress port of the switch.
    pub(super) granted_at: Time,
    pub(super) grant_wait: Span,
    /// When its last chunk went onto the uplink.
    pub(super) data_sent: Time,
    pub(super) switch_wait: Span,
    /// The driver's number for the request.
    pub ticket: u32,
    pub(super) blocks: Blocks,
    /// Copies of its last chunk on their way.
    copies: u8,
    flags: u8,
}

/// In [`Track::flags`]: it is a write.
pub(super) const IS_WRITE: u8 = 1;
/// Its last grant was a /G/; else that was the RREQ itself.
pub(super) const BY_GRANT: u8 = 2;
/// A request of its batch has yet to take over what is known of their common notification and
/// grant.
const FOLLOWED: u8 = 4;
const ENDED: u8 = 8;
/// Its spans are kept in their order.
const KEPT: u8 = 16;

/// What only some racks know of a request: those whose memory takes time, or whose links carry
/// frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rare {
    pub(super) memory: Span,
    /// What it took to store its data where they have arrived.
    stored: Span,
    /// The size of its data.
    bytes: Bytes,
    /// What its /N/ or request lost to frames on its own uplink.
    pub(super) control_on_link: Span,
    /// What its last chunk lost to frames on its own uplink.
    pub(super) data_on_link: Span,
}

const NEVER: Time = Time::MAX;

/// All tracks, by small numbers (the tags of messages).
///
/// A driver's ticket is used again as soon as its request has ended, but messages that carry its
/// tag may outlive it. Examples are the late answer to an abandoned request, the second copy from a
/// backup network, and the rest of a batch. So tags are numbers of their own, which are used again
/// only when nothing can carry them any more.
#[derive(Debug)]
pub struct Tracks {
    slots: Vec<Track>,
    /// By tag: the intended starts and who asked whom, which are needed at the end only.
    intended: Vec<(Time, Ends)>,
    /// By tag, as far as anything of the kind has happened.
    rare: Vec<Rare>,
    free: FreeNumbers,
    /// Tags of ended requests, and from when on they may be used again.
    resting: VecDeque<(Time, u32)>,
    rest: Span,
    costs: Costs,
}

impl Tracks {
    /// No track. Tags of requests that have finished rest for `rest`, by when their last copies
    /// have arrived.
    pub fn new(costs: Costs, rest: Span) -> Tracks {
        let (slots, intended, rare) = (Vec::new(), Vec::new(), Vec::new());
        Tracks { slots, intended, rare, free: FreeNumbers::new(), resting: VecDeque::new(), rest, costs }
    }
    /// Takes in a request that was intended for `now` and gives its tag.
    pub fn open(&mut self, now: Time, ends: Ends, track: Track) -> u32 {
        while self.resting.front().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, tag)) = self.resting.pop_front() {
                self.free.give(tag);
            }
        }
        let Some(tag) = self.free.take() else {
            self.slots.push(track);
            self.intended.push((now, ends));
            return self.slots.len() as u32 - 1;
        };
        self.slots[tag as usize] = track;
        self.intended[tag as usize] = (now, ends);
        if let Some(rare) = self.rare.get_mut(tag as usize) {
            *rare = Rare::default();
        }
        tag
    }
    /// A request will be touched soon.
    #[inline]
    pub fn prefetch(&self, tag: Tag) {
        prefetch_index(&self.slots, tag.0 as usize);
        prefetch_index(&self.intended, tag.0 as usize);
    }
    /// Something of a request goes onto the uplinks of so many planes.
    #[inline]
    pub fn sent(&mut self, sent: &Transmission, now: Time, living_planes: u8) {
        if sent.tag == Tag::NONE {
            return;
        }
        if !is_data(&sent.what) {
            return self[sent.tag.0 as usize].control_sent(now, sent.queued);
        }
        if sent.lead != sent.tag {
            self.follow(sent.tag.0, sent.lead.0, now);
        }
        self[sent.tag.0 as usize].data_sent(now, living_planes, sent.followed);
    }
    /// The memory of a request took so long.
    pub fn memory_read(&mut self, tag: Tag, span: Span) {
        self.rare(tag).memory = span;
    }
    /// The memory at the end of a request's way took so long.
    pub fn stored(&mut self, tag: Tag, span: Span) {
        self.rare(tag).stored = span;
    }
    /// A request moves so much.
    pub fn keep_bytes(&mut self, tag: Tag, bytes: Bytes) {
        self.rare(tag).bytes = bytes;
    }
    /// What a request moves, if that was kept.
    pub fn kept_bytes(&self, tag: Tag) -> Bytes {
        self.rare.get(tag.0 as usize).map_or(Bytes::ZERO, |rare| rare.bytes)
    }
    /// When the host made the control message of a request.
    pub fn taken_up(&self, tag: Tag) -> Time {
        self.slots[tag.0 as usize].start
    }
    /// The control message of a request took so much longer on a shared uplink than its blocks.
    pub fn control_interleaved(&mut self, tag: Tag, waited: Span) {
        if tag != Tag::NONE {
            self.rare(tag).control_on_link = waited;
        }
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
    /// When a request was taken up, and its ledger up to its end. Claims are kept in order if its
    /// latency is `least_kept` or more.
    #[inline]
    pub fn ledger(&self, tag: u32, outcome: Outcome, end: Time, least_kept: Span) -> (Time, Ledger) {
        let (track, (intended, ends)) = (&self.slots[tag as usize], self.intended[tag as usize]);
        let keeps = track.has(KEPT) && end.saturating_since(intended) >= least_kept;
        let mut ledger = Ledger::open(intended, keeps);
        let start = track.start.min(end);
        let host = At::Host(ends.source.0);
        ledger.claim(SpanKind::Wait, intended, start, host);
        if outcome == Outcome::Finished {
            let rare = self.rare.get(tag as usize).copied().unwrap_or_default();
            track.claim_path(&rare, ends, &self.costs, &mut ledger);
            let receiver = if track.has(IS_WRITE) { ends.target } else { ends.source };
            ledger.claim(SpanKind::Memory, end - rare.stored, end, At::Memory(receiver.0));
        } else {
            // Nobody knows what became of it: its host has waited for an answer.
            ledger.claim(SpanKind::Schedule, start, end, host);
        }
        (start, ledger)
    }
    /// Ends a request. The tag of one that did not finish is never used again: its demand may still
    /// be anywhere.
    pub fn close(&mut self, tag: u32, outcome: Outcome, now: Time) {
        let track = &mut self.slots[tag as usize];
        track.flags |= ENDED;
        if outcome == Outcome::Finished && !track.has(FOLLOWED) {
            self.reuse(tag, now);
        }
    }
    /// `tag` shared the notification and grant of `lead`, the request before it in its batch.
    pub fn follow(&mut self, tag: u32, lead: u32, now: Time) {
        let before = &mut self.slots[lead as usize];
        before.flags &= !FOLLOWED;
        let before = *before;
        self.slots[tag as usize].follow(&before);
        if let Some(Rare { control_on_link, memory, .. }) = self.rare.get(lead as usize).copied() {
            let rare = self.rare(Tag(tag));
            (rare.control_on_link, rare.memory) = (control_on_link, memory);
        }
        if before.has(ENDED) {
            self.reuse(lead, now);
        }
    }
    fn reuse(&mut self, tag: u32, now: Time) {
        if self.rest > Span::ZERO { self.resting.push_back((now + self.rest, tag)) } else { self.free.give(tag) }
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
    /// A request that the application has just handed over. Its spans may be kept in their order.
    pub fn new(ticket: u32, access: &Access, config: &Config, keeps_spans: bool) -> Track {
        let is_write = matches!(access, Access::Write { .. });
        Track {
            start: NEVER,
            control_sent: NEVER,
            granted_at: NEVER,
            grant_wait: Span::ZERO,
            data_sent: NEVER,
            switch_wait: Span::ZERO,
            ticket,
            blocks: Blocks::of(access, config.chunk.count() as u32),
            copies: 0,
            flags: if is_write { IS_WRITE } else { 0 } | if keeps_spans { KEPT } else { 0 },
        }
    }
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
    /// Its RREQ, RMWREQ or /N/ goes onto the uplink.
    pub fn control_sent(&mut self, now: Time, queued: Time) {
        (self.start, self.control_sent) = (queued, now);
    }
    /// It shared the notification and grant of `lead`.
    fn follow(&mut self, lead: &Track) {
        let Track { start, control_sent, granted_at, grant_wait, .. } = *lead;
        let flags = self.flags & !BY_GRANT | lead.flags & BY_GRANT;
        let blocks = Blocks { grant: lead.blocks.grant, ..self.blocks };
        *self = Track { start, control_sent, granted_at, grant_wait, blocks, flags, ..*self };
    }
    /// A grant of it, at the egress port at `at`, waited so long for the downlink.
    pub fn granted(&mut self, at: Time, waited: Span, blocks: u64) {
        (self.granted_at, self.grant_wait, self.blocks.grant) = (at, waited, blocks as u8);
        self.flags |= BY_GRANT;
    }
    /// The same of its request on the way to the memory node.
    pub fn request_granted(&mut self, at: Time, waited: Span, blocks: u64) {
        self.granted(at, waited, blocks);
        self.flags &= !BY_GRANT;
    }
    /// A chunk goes onto the uplink.
    pub fn data_sent(&mut self, now: Time, copies: u8, followed: bool) {
        (self.data_sent, self.copies) = (now, copies);
        self.flags = self.flags & !FOLLOWED | if followed { FOLLOWED } else { 0 };
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
}

fn is_data(what: &Wire) -> bool {
    match what {
        Wire::Notification(_) => false,
        Wire::Memory(message) => matches!(message.body, Body::WriteRequest { .. } | Body::ReadResponse { .. }),
    }
}

/// 66-bit blocks of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Of all chunks of its data.
    pub data: u32,
    /// Of its last chunk.
    pub last: u16,
    /// Of its /N/ or request.
    pub control: u8,
    /// Of its last grant.
    pub grant: u8,
}

impl Blocks {
    fn of(access: &Access, chunk: u32) -> Blocks {
        let with = |control: u64, data: u64, last: u64| Blocks {
            data: data as u32,
            last: last as u16,
            control: control as u8,
            grant: 0,
        };
        let chunked = |control, bytes: u32, blocks: fn(u32) -> u64| {
            // Most are one chunk, and a division is slow.
            if (1..=chunk).contains(&bytes) {
                return with(control, blocks(bytes), blocks(bytes));
            }
            let rest = bytes % chunk;
            let last = blocks(if rest > 0 { rest } else { chunk.min(bytes) });
            let whole = u64::from(bytes / chunk) * blocks(chunk);
            with(control, whole + if rest > 0 { last } else { 0 }, last)
        };
        match access {
            Access::Write { bytes, .. } => chunked(encoded::NOTIFICATION_BLOCKS, *bytes, encoded::write_blocks),
            Access::Read { bytes, .. } => {
                chunked(encoded::read_request_blocks(*bytes), *bytes, encoded::response_blocks)
            }
            Access::Modify { modify, .. } => {
                let data = encoded::response_blocks(modify.response_bytes());
                with(encoded::rmw_blocks(modify), data, data)
            }
        }
    }
}

const _: () = assert!(size_of::<Track>() == 64);
