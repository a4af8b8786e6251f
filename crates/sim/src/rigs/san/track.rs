//! Where the time of each request goes.
//!
//! A track has a mark: everything up to it is accounted for. Only packets on the critical path move it: the command, the ready-to-transfer,
//! the last data of a write, and what ends it, a response or a read's last data; and only those of the attempt that was sent last. So the spans sum to the latency
//! whatever path a request takes, repeats and detours included.

use crate::drive::Ticket;
use base::{Operation, Request, RequestId, Span, Time};
use prefetch_index::prefetch_index;
use record::{SpanKind, Spans};
use san::{Outcome, Packet, PacketKind, Tag};
use std::slice;

/// What the time of a request may go into here. In the order in which a track keeps them: first what every link takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Serialization,
    Propagation,
    Forwarding,
    NicQueue,
    Stack,
    SwitchQueue,
    Schedule,
    StorageQueue,
    FlashWait,
    CollectionWait,
    Flash,
}

/// Where the time of a leg went.
pub(super) struct LegParts {
    pub serialization: Span,
    pub propagation: Span,
    pub forwarding: Span,
    pub nic_queue: Span,
    /// Software of both ends.
    pub stack: Span,
}

/// By [`Part`]: how records call it.
const KINDS: [SpanKind; 11] = [
    SpanKind::Serialization,
    SpanKind::Propagation,
    SpanKind::Forwarding,
    SpanKind::NicQueue,
    SpanKind::Stack,
    SpanKind::SwitchQueue,
    SpanKind::Schedule,
    SpanKind::StorageQueue,
    SpanKind::FlashWait,
    SpanKind::CollectionWait,
    SpanKind::Flash,
];

/// One request in flight. In this order, and from the start of a cache line on: what every link touches is in the first.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// The room's name for it; [`NOBODY`] when it has ended.
    name: RequestId,
    mark: Time,
    /// The attempt that was sent last.
    tag: Option<Tag>,
    sends: u32,
    /// By [`Part`].
    parts: [Span; KINDS.len()],
    /// When it was asked.
    pub asked_at: Time,
    /// As it was asked.
    pub request: Request,
    /// When its host first sent it.
    pub start: Option<Time>,
}

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

/// The low half of a request's name is its ticket, the high one a count: what comes after a request has ended finds no track.
const TICKET_BITS: u32 = 32;

impl Tracks {
    /// None yet.
    pub fn new(data_end_reads: bool) -> Tracks {
        Tracks { data_end_reads, ..Tracks::default() }
    }

    /// A request begins; returns its name in the room.
    pub fn open(&mut self, now: Time, ticket: Ticket, request: &Request) -> RequestId {
        let place = ticket.0 as usize;
        self.made = self.made.wrapping_add(1);
        let name = RequestId((u64::from(self.made) << TICKET_BITS) | u64::from(ticket.0));
        let parts = [Span::ZERO; KINDS.len()];
        let track =
            Track { request: *request, asked_at: now, name, start: None, tag: None, sends: 0, mark: now, parts };
        if self.tracks.len() <= place {
            self.tracks.resize(place + 1, Track { name: NOBODY, ..track });
        }
        self.tracks[place] = track;
        name
    }

    /// The track of a request, if that is still on its way.
    pub fn get(&mut self, name: RequestId) -> Option<&mut Track> {
        self.tracks.get_mut((name.0 as u32) as usize).filter(|track| track.name == name)
    }

    /// A packet of a request will be at the end of a link soon: what that moves can be on its way from memory meanwhile.
    #[inline]
    pub fn foresee(&self, name: RequestId) {
        prefetch_index(&self.tracks, (name.0 as u32) as usize);
    }

    /// The same where the request's time at an end of its way is told, or its own end.
    #[inline]
    pub fn foresee_end(&self, name: RequestId) {
        let Some(track) = self.tracks.get((name.0 as u32) as usize) else { return };
        prefetch_index(track.parts.as_slice(), Part::Stack as usize);
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
        self.get(packet.request).filter(|track| track.tag == Some(tag))
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

    /// A host sends a command: the track follows this attempt from now on, and the time since the last mark was waiting for leave to send it.
    pub fn sent(&mut self, now: Time, packet: &Packet) {
        let Some(track) = self.get(packet.request) else { return };
        track.start = track.start.or(Some(now));
        track.tag = Some(packet.tag);
        track.sends += 1;
        track.reach(now, Part::Schedule);
    }

    /// A request has ended at `end`, of which the last `stack` was its host's software.
    pub fn close(&mut self, now: Time, name: RequestId, stack: Span) -> Option<(Ticket, Time, Spans)> {
        let track = self.get(name)?;
        // What nobody has claimed was waiting for what did not come.
        track.reach(now, Part::Schedule);
        track.parts[Part::Stack as usize] += stack;
        let mut spans = Spans::default();
        KINDS.iter().zip(&track.parts).for_each(|(kind, span)| spans.add(*kind, *span));
        let closed = (Ticket(name.0 as u32), track.start.unwrap_or(now), spans);
        track.name = NOBODY;
        Some(closed)
    }
}

impl Track {
    /// Whether it was sent more than once.
    pub fn was_repeated(&self) -> bool {
        self.sends > 1
    }

    /// Everything up to now, since the mark, was `part`.
    pub fn reach(&mut self, now: Time, part: Part) {
        self.parts[part as usize] += now.saturating_since(self.mark);
        self.mark = self.mark.max(now);
    }

    /// Everything up to now, since the mark, was these parts, if they fit; else another packet of the request has been accounted for meanwhile, and
    /// what is left was waiting.
    pub fn reach_by<const PARTS: usize>(&mut self, now: Time, parts: [(Part, Span); PARTS]) {
        let total: Span = parts.iter().map(|(_, span)| *span).sum();
        if now.saturating_since(self.mark) != total {
            return self.reach(now, Part::Schedule);
        }
        self.mark = now;
        parts.into_iter().for_each(|(part, span)| self.parts[part as usize] += span);
    }

    /// The same of a leg, which took everything since `since`.
    #[inline(always)]
    pub fn reach_by_leg(&mut self, now: Time, since: Time, parts: impl FnOnce() -> LegParts) {
        if self.mark != since {
            return self.reach(now, Part::Schedule);
        }
        self.mark = now;
        let LegParts { serialization, propagation, forwarding, nic_queue, stack } = parts();
        self.parts[Part::Serialization as usize] += serialization;
        self.parts[Part::Propagation as usize] += propagation;
        self.parts[Part::Forwarding as usize] += forwarding;
        self.parts[Part::NicQueue as usize] += nic_queue;
        // What a link between hops does not take lies in another cache line.
        if stack > Span::ZERO {
            self.parts[Part::Stack as usize] += stack;
        }
    }
}
