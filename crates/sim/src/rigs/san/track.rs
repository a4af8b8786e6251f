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

/// One request in flight. In this order, and from the start of a cache line on: what every packet needs is in the first three.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// The room's name for it; [`NOBODY`] when it has ended.
    name: RequestId,
    mark: Time,
    /// The attempt that was sent last.
    tag: Option<Tag>,
    sends: u32,
    spans: Spans,
    /// As it was asked.
    pub request: Request,
    /// When it was asked.
    pub asked_at: Time,
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
        let spans = Spans::default();
        let track =
            Track { request: *request, asked_at: now, name, start: None, tag: None, sends: 0, mark: now, spans };
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

    /// Something about a request will happen soon: what is known of it can be on its way from memory meanwhile.
    #[inline]
    pub fn foresee(&self, name: RequestId) {
        let Some(track) = self.tracks.get((name.0 as u32) as usize) else { return };
        prefetch_index(slice::from_ref(&track.name), 0);
        prefetch_index(slice::from_ref(&track.spans), 0);
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
            PacketKind::Command | PacketKind::ReadyToTransfer => true,
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
        track.reach(now, SpanKind::Schedule);
    }

    /// A request has ended at `end`, of which the last `stack` was its host's software.
    pub fn close(&mut self, now: Time, name: RequestId, stack: Span) -> Option<(Ticket, Time, Spans)> {
        let track = self.get(name)?;
        // What nobody has claimed was waiting for what did not come.
        track.reach(now, SpanKind::Schedule);
        track.spans.add(SpanKind::Stack, stack);
        let closed = (Ticket(name.0 as u32), track.start.unwrap_or(now), track.spans);
        track.name = NOBODY;
        Some(closed)
    }
}

impl Track {
    /// Whether it was sent more than once.
    pub fn was_repeated(&self) -> bool {
        self.sends > 1
    }

    /// Everything up to now, since the mark, was `kind`.
    pub fn reach(&mut self, now: Time, kind: SpanKind) {
        self.spans.add(kind, now.saturating_since(self.mark));
        self.mark = self.mark.max(now);
    }

    /// Everything up to now, since the mark, was these parts, if they fit; else another packet of the request has been accounted for meanwhile, and
    /// what is left was waiting.
    #[inline(always)]
    pub fn reach_by<const PARTS: usize>(&mut self, now: Time, parts: [(SpanKind, Span); PARTS]) {
        let total: Span = parts.iter().map(|(_, span)| *span).sum();
        if now.saturating_since(self.mark) == total {
            self.spans.add_all(parts, total);
            self.mark = now;
        } else {
            self.reach(now, SpanKind::Schedule);
        }
    }
}
