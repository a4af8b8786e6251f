//! Where the time of each request goes: one track a page that a client asks for.
//!
//! A track has a mark: everything up to it is accounted for. Whoever moves a request says for what the time since the mark was; so the spans
//! sum to the latency whatever path a request takes, repeats and detours included.

use crate::drive::Ticket;
use base::{Operation, Span, Time};
use blox::{Page, Tag, Value};
use history::Action;
use record::{Outcome, SpanKind, Spans};

/// One page that a client has asked for.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// The request that it is part of.
    pub ticket: Ticket,
    /// What was asked.
    pub asked: Asked,
    /// When the client sent it first.
    pub sent: Option<Time>,
    tag: Tag,
    mark: Time,
    spans: Spans,
}

/// One page's operation, as the history of the run knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// A read or a write.
    pub operation: Operation,
    /// Of which volume.
    pub volume: u32,
    /// Which page.
    pub page: Page,
    /// What a write writes.
    pub value: Value,
    /// When.
    pub at: Time,
}

impl Asked {
    /// With its answer: when it came and what was read or written. A write without one may have happened or not.
    pub fn in_history(&self, tag: Tag, answer: Option<(Time, Value)>) -> history::Operation {
        let is_read = self.operation == Operation::Read;
        history::Operation {
            id: tag.0,
            register: (u64::from(self.volume), self.page.0),
            action: if is_read { Action::Read } else { Action::Write },
            value: answer.map_or(self.value, |(_, value)| value).0,
            invoked: self.at,
            responded: answer.map(|(at, _)| at),
        }
    }
}

/// What a request of one or more pages waits for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    pages: u32,
    outcome: Outcome,
    start: Time,
}

/// A request that has ended with its last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub ticket: Ticket,
    /// The worst of its pages' outcomes.
    pub outcome: Outcome,
    /// When its first page was sent.
    pub start: Time,
    /// Of its last page.
    pub spans: Spans,
}

/// All requests in flight.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    tracks: Vec<Option<Track>>,
    free: Vec<u32>,
    pending: Vec<Option<Pending>>,
    made: u32,
}

/// The place of a track is in the low half of its tag, a count in the high one: an answer that comes after its request has ended finds no track.
const PLACE_BITS: u32 = 32;

impl Tracks {
    /// A request of so many pages begins.
    pub fn begin(&mut self, now: Time, ticket: Ticket, pages: u32) {
        let place = ticket.0 as usize;
        if self.pending.len() <= place {
            self.pending.resize(place + 1, None);
        }
        self.pending[place] = Some(Pending { pages, outcome: Outcome::Finished, start: now });
    }

    /// One of its pages is asked for under this tag.
    pub fn open(&mut self, now: Time, ticket: Ticket, asked: Asked) -> Tag {
        let place = self.free.pop().unwrap_or_else(|| {
            self.tracks.push(None);
            self.tracks.len() as u32 - 1
        });
        self.made = self.made.wrapping_add(1);
        let tag = Tag((u64::from(self.made) << PLACE_BITS) | u64::from(place));
        let spans = Spans::default();
        self.tracks[place as usize] = Some(Track { ticket, asked, sent: None, tag, mark: now, spans });
        tag
    }

    /// The track of a tag, if its request is still on its way.
    pub fn get(&mut self, tag: Tag) -> Option<&mut Track> {
        let track = self.tracks.get_mut((tag.0 as u32) as usize)?.as_mut()?;
        (track.tag == tag).then_some(track)
    }

    /// Pages that are still on their way.
    pub fn open_pages(&self) -> impl Iterator<Item = (Tag, &Asked)> {
        self.tracks.iter().flatten().map(|track| (track.tag, &track.asked))
    }

    /// A page is there, or given up; returns its request if it was the last one.
    pub fn close(&mut self, now: Time, tag: Tag, outcome: Outcome) -> Option<Finished> {
        let mut track = *self.get(tag)?;
        // What nobody has claimed was spent waiting for an answer that did not come in time.
        track.reach(now, SpanKind::Schedule);
        let place = tag.0 as u32;
        self.tracks[place as usize] = None;
        self.free.push(place);
        let pending = self.pending[track.ticket.0 as usize].as_mut()?;
        pending.pages -= 1;
        if outcome != Outcome::Finished {
            pending.outcome = outcome;
        }
        let finished = *pending;
        (finished.pages == 0).then(|| {
            self.pending[track.ticket.0 as usize] = None;
            Finished { ticket: track.ticket, outcome: finished.outcome, start: finished.start, spans: track.spans }
        })
    }
}

impl Track {
    /// Everything up to now, since the mark, was `kind`.
    pub fn reach(&mut self, now: Time, kind: SpanKind) {
        self.spans.add(kind, now.saturating_since(self.mark));
        self.mark = self.mark.max(now);
    }

    /// Everything up to now, since the mark, was these parts, if they fit; else another path of the same request has been accounted for, and what is
    /// left was waiting for a repeat.
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

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Asked = Asked { operation: Operation::Read, volume: 0, page: Page(0), value: Value(0), at: Time::ZERO };

    #[test]
    fn the_spans_of_the_last_page_sum_to_the_latency() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::us(1), Ticket(3), 2);
        let tags = [0, 1].map(|_| tracks.open(Time::us(1), Ticket(3), READ));
        let track = tracks.get(tags[1]).unwrap();
        track.reach_by(Time::us(4), &[(SpanKind::Network, Span::us(2)), (SpanKind::Serialization, Span::us(1))]);
        track.reach(Time::us(9), SpanKind::StorageQueue);
        assert_eq!(tracks.close(Time::us(5), tags[0], Outcome::Finished), None);
        let finished = tracks.close(Time::us(10), tags[1], Outcome::Finished).unwrap();
        assert_eq!(finished.spans.total(), Span::us(9));
        assert_eq!(finished.spans.get(SpanKind::Schedule), Span::us(1));
        assert_eq!((finished.ticket, finished.start), (Ticket(3), Time::us(1)));
    }

    #[test]
    fn parts_that_do_not_fit_the_mark_are_waiting() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::ZERO, Ticket(0), 1);
        let tag = tracks.open(Time::ZERO, Ticket(0), READ);
        tracks.get(tag).unwrap().reach_by(Time::us(4), &[(SpanKind::Network, Span::us(3))]);
        let finished = tracks.close(Time::us(4), tag, Outcome::Null).unwrap();
        assert_eq!(finished.spans.get(SpanKind::Schedule), Span::us(4));
        assert_eq!(finished.outcome, Outcome::Null);
    }

    #[test]
    fn a_late_answer_finds_no_track_though_its_place_is_used_again() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::ZERO, Ticket(0), 1);
        let old = tracks.open(Time::ZERO, Ticket(0), READ);
        tracks.close(Time::us(1), old, Outcome::Lost);
        tracks.begin(Time::us(1), Ticket(0), 1);
        tracks.open(Time::us(1), Ticket(0), READ);
        assert!(tracks.get(old).is_none() && tracks.close(Time::us(2), old, Outcome::Finished).is_none());
    }
}
