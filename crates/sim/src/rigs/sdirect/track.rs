//! Where the time of each request goes.
//!
//! A request has a mark: everything up to it is accounted for. Whoever moves a part of it says for what the time since the mark was, so that the spans sum to the latency
//! however many parts move at the same time: each moment counts as what ended next.

use crate::drive::Ticket;
use base::Time;
use hardware::ssd::Done;
use record::{SpanKind, Spans};

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    start: Time,
    mark: Time,
    spans: Spans,
}

/// All requests in flight, by ticket.
#[derive(Clone, Debug, Default)]
pub struct Tracks(Vec<Track>);

impl Tracks {
    /// A request begins.
    pub fn begin(&mut self, now: Time, ticket: Ticket) {
        let place = ticket.0 as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, Track::default());
        }
        self.0[place] = Track { start: now, mark: now, spans: Spans::default() };
    }

    /// Everything since the mark was `kind`.
    pub fn reach(&mut self, now: Time, ticket: u32, kind: SpanKind) {
        let Some(track) = self.0.get_mut(ticket as usize) else { return };
        track.spans.add(kind, now.saturating_since(track.mark));
        track.mark = track.mark.max(now);
    }

    /// Everything since the mark was a device's doing, of which it says how much was its work and how much was waiting.
    pub fn reach_by(&mut self, now: Time, ticket: u32, done: &Done) {
        let Some(track) = self.0.get_mut(ticket as usize) else { return };
        let mut left = now.saturating_since(track.mark);
        for (kind, span) in [(SpanKind::Flash, done.service), (SpanKind::CollectionWait, done.collection_wait)] {
            let part = span.min(left);
            track.spans.add(kind, part);
            left -= part;
        }
        track.spans.add(SpanKind::FlashWait, left);
        track.mark = track.mark.max(now);
    }

    /// A request ends: when it began, and its spans, what nobody has claimed as waiting in the storage host.
    pub fn end(&mut self, now: Time, ticket: u32) -> (Time, Spans) {
        self.reach(now, ticket, SpanKind::StorageQueue);
        let track = self.0[ticket as usize];
        (track.start, track.spans)
    }
}
