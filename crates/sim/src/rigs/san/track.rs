//! Where the time of each request goes.
//!
//! Only packets on the critical path claim time: the command, the ready-to-transfer, the last data
//! of a write, and what ends it, a response or a read's last data; and only those of the attempt
//! that was sent last. A repeat claims the time since the attempt before it, beside what became of
//! that one.

use crate::drive::{Context, Ticket};
use base::{Operation, Request, RequestId, Span, Time};
use prefetch_index::prefetch_index;
use record::{Ledger, Place, SpanKind};
use san::{Outcome, Packet, PacketKind, Tag};
use std::slice;

/// Where the time of a leg went, in this order.
pub(super) struct LegParts {
    /// Software of the end that sends.
    pub send_stack: Span,
    pub nic_queue: Span,
    pub serialization: Span,
    pub propagation: Span,
    pub forwarding: Span,
    /// Software of the end that receives.
    pub stack: Span,
}

/// An end of the way of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Host,
    Target,
}

/// One request in flight. The order of its fields is that in memory, from the start of a cache line
/// on: packets that pass use the first two lines.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// The room's name for it; [`NOBODY`] when it has ended.
    name: RequestId,
    /// The attempt that was sent last; of one that was never sent no packet is anywhere.
    tag: Tag,
    /// When a packet of it last came to where it waits.
    since: Time,
    sends: u32,
    /// The end that has this attempt; none while a packet of it is under way. What another sends
    /// goes beside that, or in its place.
    turn: Option<End>,
    ledger: Ledger,
    /// When its last attempt was sent.
    sent_at: Time,
    /// When it was asked.
    pub asked_at: Time,
    /// As it was asked.
    pub request: Request,
    /// When its host first sent it.
    pub start: Option<Time>,
}

/// Sums in a cache line; they begin with one.
const LINE: usize = 8;

/// No request is called so: a run does not make that many.
const NOBODY: RequestId = RequestId(u64::MAX);

/// All requests in flight, by ticket.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    tracks: Vec<Track>,
    made: u32,
    /// Whether the last data of a read end it, and no response follows.
    data_end_reads: bool,
}

/// The low half of a request's name is its ticket, the high one a count: what comes after a request
/// has ended finds no track.
const TICKET_BITS: u32 = 32;

impl Tracks {
    /// None yet.
    pub fn new(data_end_reads: bool) -> Tracks {
        Tracks { data_end_reads, ..Tracks::default() }
    }

    /// A request begins; returns its name in the room.
    pub fn open<E: Copy>(&mut self, ticket: Ticket, request: &Request, context: &Context<'_, E>) -> RequestId {
        let (place, now) = (ticket.0 as usize, context.now);
        self.made = self.made.wrapping_add(1);
        let name = RequestId((u64::from(self.made) << TICKET_BITS) | u64::from(ticket.0));
        let track = |name, ledger| Track {
            name,
            tag: Tag::default(),
            ledger,
            since: now,
            sent_at: now,
            sends: 0,
            turn: Some(End::Host),
            asked_at: now,
            request: *request,
            start: None,
        };
        if self.tracks.len() <= place {
            self.tracks.resize(place + 1, track(NOBODY, Ledger::open(now, false)));
        }
        self.tracks[place] = track(name, context.open_ledger());
        name
    }

    /// The track of a request, if that is still on its way.
    pub fn get(&mut self, name: RequestId) -> Option<&mut Track> {
        self.tracks.get_mut((name.0 as u32) as usize).filter(|track| track.name == name)
    }

    /// A packet of a request will be at the end of a link soon: what that moves can be on its way
    /// from memory meanwhile.
    #[inline]
    pub fn prefetch(&self, name: RequestId) {
        let Some(track) = self.tracks.get((name.0 as u32) as usize) else { return };
        prefetch_index(slice::from_ref(track), 0);
        prefetch_index(track.ledger.sums(), 0);
    }

    /// Prefetches the other lines of a request that a packet reaches an end of.
    #[inline]
    pub fn prefetch_end(&self, name: RequestId) {
        let Some(track) = self.tracks.get((name.0 as u32) as usize) else { return };
        prefetch_index(track.ledger.sums(), LINE);
        prefetch_index(track.ledger.sums(), 2 * LINE);
        prefetch_index(slice::from_ref(&track.request), 0);
    }

    /// The ticket of a request.
    pub fn ticket(&self, name: RequestId) -> Option<Ticket> {
        let place = name.0 as u32;
        ((place as usize) < self.tracks.len()).then_some(Ticket(place))
    }

    /// The track that a packet moves.
    #[inline]
    pub fn of(&mut self, packet: &Packet) -> Option<&mut Track> {
        if !self.is_critical(packet) {
            return None;
        }
        let tag = packet.tag;
        self.get(packet.request).filter(|track| track.tag == tag)
    }

    fn is_critical(&self, packet: &Packet) -> bool {
        let is_read = packet.operation == Operation::Read;
        match packet.kind {
            PacketKind::Command | PacketKind::ReadyToTransfer => packet.status == Outcome::Success,
            PacketKind::Acknowledgement { .. } | PacketKind::Notification { .. } | PacketKind::Pause { .. } => false,
            PacketKind::WriteData { last } => last,
            PacketKind::ReadData { last } => last && self.data_end_reads,
            PacketKind::Response => !(is_read && self.data_end_reads && packet.status == Outcome::Success),
        }
    }

    /// A host sends a command: the track follows this attempt from now on. It waited for leave to
    /// send it or, if it is not the first, for an answer to the one before.
    pub fn sent(&mut self, now: Time, packet: &Packet) {
        let Some(track) = self.get(packet.request) else { return };
        if track.sends > 0 {
            track.ledger.fork();
        }
        let host = Place::Host(track.request.source.0);
        track.ledger.claim(SpanKind::Schedule, track.sent_at, now, host);
        track.start = track.start.or(Some(now));
        (track.tag, track.sent_at, track.since, track.turn) = (packet.tag, now, now, Some(End::Host));
        track.sends += 1;
    }

    /// A packet waits at a hop from now on.
    pub fn waits(&mut self, now: Time, packet: &Packet) {
        if let Some(track) = self.of(packet) {
            track.since = now;
        }
    }

    /// A packet is at an end of its way.
    pub fn came(&mut self, now: Time, packet: &Packet) {
        if let Some(track) = self.of(packet) {
            use PacketKind::{Command, WriteData};
            let is_to_target = matches!(packet.kind, Command | WriteData { .. });
            track.passed(now, if is_to_target { End::Target } else { End::Host });
        }
    }

    /// A request has ended, after `stack` more of its host's software; its ticket, when it was
    /// first sent, and its ledger.
    pub fn close(
        &mut self,
        now: Time,
        name: RequestId,
        stack: Span,
        was_answered: bool,
    ) -> Option<(Ticket, Time, Ledger)> {
        let track = self.get(name)?;
        let host = Place::Host(track.request.source.0);
        if !was_answered || track.was_repeated() {
            // Another attempt was answered than the last, or none.
            track.ledger.fork();
            track.ledger.claim(SpanKind::Schedule, track.sent_at, now, host);
        } else if track.turn == Some(End::Host) {
            // Its last packet has come; earlier ones of the stream were lost, and come again.
            track.ledger.claim(SpanKind::Schedule, track.since, now, host);
        }
        track.ledger.claim(SpanKind::Stack, now, now + stack, host);
        track.name = NOBODY;
        Some((Ticket(name.0 as u32), track.start.unwrap_or(now), track.ledger.take()))
    }
}

impl Track {
    /// Whether it was sent more than once.
    pub fn was_repeated(&self) -> bool {
        self.sends > 1
    }

    /// It has waited until now since its last packet came.
    pub fn waited(&mut self, now: Time, kind: SpanKind, at: Place) {
        self.ledger.claim(kind, self.since, now, at);
        self.since = now;
    }

    /// A device's parts, from `begin` on.
    pub fn claim_device(&mut self, begin: Time, parts: [(SpanKind, Span); 3], at: Place) {
        self.ledger.claim_parts(begin, at, parts);
    }

    /// A packet of it is at an end, or a device is done with it.
    pub fn passed(&mut self, now: Time, end: End) {
        (self.since, self.turn) = (now, Some(end));
    }

    /// An end sends a packet of it, which has waited until now.
    pub fn goes(&mut self, now: Time, end: End, kind: SpanKind, at: Place) {
        if self.turn != Some(end) {
            self.ledger.fork();
        }
        self.waited(now, kind, at);
        self.turn = None;
    }

    /// A leg, from `begin` on.
    #[inline(always)]
    pub fn claim_leg(&mut self, begin: Time, at: Place, leg: LegParts) {
        let LegParts { send_stack, nic_queue, serialization, propagation, forwarding, stack } = leg;
        let parts = [
            (SpanKind::Stack, send_stack),
            (SpanKind::NicQueue, nic_queue),
            (SpanKind::Serialization, serialization),
            (SpanKind::Propagation, propagation),
            (SpanKind::Forwarding, forwarding),
            (SpanKind::Stack, stack),
        ];
        self.ledger.claim_parts(begin, at, parts);
    }
}
