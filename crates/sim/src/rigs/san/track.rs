//! Where the time of each request goes.
//!
//! A track has a mark: everything up to it is accounted for. Only packets on the critical path move it: the command, the ready-to-transfer,
//! the last data of a write, and what ends it, a response or a read's last data; and only those of the attempt that was sent last. So the spans sum to the latency
//! whatever path a request takes, repeats and detours included.

use crate::drive::Ticket;
use base::{Operation, Request, RequestId, Span, Time};
use record::{SpanKind, Spans};
use san::{Outcome, Packet, PacketKind, Tag};

/// One request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    /// As it was asked.
    pub request: Request,
    /// The room's name for it.
    name: RequestId,
    /// When it was asked.
    pub asked_at: Time,
    /// When its host first sent it.
    pub start: Option<Time>,
    /// The attempt that was sent last.
    tag: Option<Tag>,
    sends: u32,
    mark: Time,
    spans: Spans,
}

/// All requests in flight, by ticket.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    tracks: Vec<Option<Track>>,
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
        if self.tracks.len() <= place {
            self.tracks.resize(place + 1, None);
        }
        self.made = self.made.wrapping_add(1);
        let name = RequestId((u64::from(self.made) << TICKET_BITS) | u64::from(ticket.0));
        let spans = Spans::default();
        self.tracks[place] =
            Some(Track { request: *request, asked_at: now, name, start: None, tag: None, sends: 0, mark: now, spans });
        name
    }

    /// The track of a request, if that is still on its way.
    pub fn get(&mut self, name: RequestId) -> Option<&mut Track> {
        let track = self.tracks.get_mut((name.0 as u32) as usize)?.as_mut()?;
        (track.name == name).then_some(track)
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
        let mut track = *self.get(name)?;
        // What nobody has claimed was waiting for what did not come.
        track.reach(now, SpanKind::Schedule);
        track.spans.add(SpanKind::Stack, stack);
        self.tracks[(name.0 as u32) as usize] = None;
        Some((Ticket(name.0 as u32), track.start.unwrap_or(now), track.spans))
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
    pub fn reach_by(&mut self, now: Time, parts: &[(SpanKind, Span)]) {
        let total: Span = parts.iter().map(|(_, span)| *span).sum();
        if now.saturating_since(self.mark) == total {
            parts.iter().for_each(|(kind, span)| self.spans.add(*kind, *span));
            self.mark = now;
        } else {
            self.reach(now, SpanKind::Schedule);
        }
    }
}
