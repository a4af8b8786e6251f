//! Where the time of each request goes: one track a page that a client asks for.
//!
//! Whoever moves a page says for what its time went, each from its own begin on; what waits says so
//! when it goes on. A repeat claims the time since the attempt before it, beside what became of
//! that one.

use crate::drive::{Context, Ticket};
use crate::slab::Slab;
use base::{Operation, Span, Time};
use blox::{Page, Tag, Value};
use history::Action;
use record::{Ledger, Outcome, Place, SpanKind};

/// One page that a client has asked for.
#[derive(Clone, Debug)]
pub struct Track {
    /// The request that it is part of.
    pub ticket: Ticket,
    /// What was asked.
    pub asked: Asked,
    /// When the client sent it first.
    pub sent: Option<Time>,
    tag: Tag,
    /// When the client sent it last, or asked for it.
    sent_last: Time,
    /// When something last happened to it.
    since: Time,
    /// Network time that its packets carry and have not waited for.
    carried: Span,
    /// Added to the time that has passed, at its end.
    label: Span,
    ledger: Ledger,
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
    /// Time of the operation.
    pub at: Time,
}

impl Asked {
    /// With its answer: when it came and what was read or written. A write without one may have
    /// happened or not.
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
#[derive(Clone, Debug)]
struct Pending {
    pages: u32,
    outcome: Outcome,
    start: Time,
    /// The end and the ledger of the page that ended last so far, labels included. Boxed, as a
    /// ledger is large and a request of one page has none here.
    last: Option<Box<(Time, Ledger)>>,
}

/// A request that has ended with its last page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The request.
    pub ticket: Ticket,
    /// The worst of its pages' outcomes.
    pub outcome: Outcome,
    /// When its first page was sent.
    pub start: Time,
    /// What is added to the time that has passed.
    pub label: Span,
    /// Of the page whose end is the last, labels included.
    pub ledger: Ledger,
}

/// All requests in flight.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    tracks: Slab<Track>,
    pending: Vec<Option<Pending>>,
    made: u32,
    values: u64,
}

/// The low half of a tag is the place of its track, the high half a count. An answer that comes
/// after the end of its request finds no track.
const PLACE_BITS: u32 = 32;

impl Tracks {
    /// A request of so many pages begins.
    pub fn begin(&mut self, now: Time, ticket: Ticket, pages: u32) {
        let place = ticket.0 as usize;
        if self.pending.len() <= place {
            self.pending.resize(place + 1, None);
        }
        self.pending[place] = Some(Pending { pages, outcome: Outcome::Finished, start: now, last: None });
    }

    /// One of its pages is asked for under this tag.
    pub fn open<E: Copy>(&mut self, ticket: Ticket, asked: Asked, context: &Context<'_, E>) -> Tag {
        self.open_with(context.open_ledger(), context.now, ticket, asked)
    }

    fn open_with(&mut self, ledger: Ledger, now: Time, ticket: Ticket, asked: Asked) -> Tag {
        self.made = self.made.wrapping_add(1);
        let tag = Tag((u64::from(self.made) << PLACE_BITS) | u64::from(self.tracks.next_index()));
        let (carried, label) = (Span::ZERO, Span::ZERO);
        self.tracks.insert(Track {
            ticket,
            asked,
            sent: None,
            tag,
            sent_last: now,
            since: now,
            carried,
            label,
            ledger,
        });
        tag
    }

    /// A value that nothing has written before.
    pub fn new_value(&mut self) -> Value {
        self.values += 1;
        Value(self.values)
    }

    /// The track of a tag, if its request is still on its way.
    pub fn get(&mut self, tag: Tag) -> Option<&mut Track> {
        let track = self.tracks.get_mut(tag.0 as u32)?;
        (track.tag == tag).then_some(track)
    }

    /// Pages that are still on their way.
    pub fn open_pages(&self) -> impl Iterator<Item = (Tag, &Asked)> {
        self.tracks.iter().map(|(_, track)| (track.tag, &track.asked))
    }

    /// A page is there, or given up; returns its request if it was the last one.
    pub fn close(&mut self, now: Time, tag: Tag, outcome: Outcome) -> Option<Finished> {
        self.get(tag)?;
        let mut track = self.tracks.remove(tag.0 as u32);
        if outcome != Outcome::Finished {
            // No answer has come in time.
            track.wait_for_answer(now);
        }
        let pending = self.pending[track.ticket.0 as usize].as_mut()?;
        pending.pages -= 1;
        if outcome != Outcome::Finished {
            pending.outcome = outcome;
        }
        let end = now + track.label;
        let before = pending.last.take_if(|last| last.0 <= end || pending.pages == 0);
        if pending.pages > 0 {
            if pending.last.is_none() {
                pending.last = Some(Box::new((end, track.ledger)));
            }
            return None;
        }
        let Pending { outcome, start, .. } = self.pending[track.ticket.0 as usize].take()?;
        let (end, ledger) = match before {
            Some(before) if before.0 > end => *before,
            _ => (end, track.ledger),
        };
        Some(Finished { ticket: track.ticket, outcome, start, label: end - now, ledger })
    }
}

impl Track {
    /// Its client sends it, for the first time or again.
    pub fn sends(&mut self, now: Time) {
        match self.sent {
            None => self.ledger.claim(SpanKind::Wait, self.sent_last, now, Place::Nowhere),
            Some(_) => self.wait_for_answer(now),
        }
        self.sent = self.sent.or(Some(now));
        (self.sent_last, self.since) = (now, now);
    }

    /// The client has waited for an answer since it sent it last, whatever became of it meanwhile.
    fn wait_for_answer(&mut self, now: Time) {
        self.ledger.fork();
        self.ledger.claim(SpanKind::Schedule, self.sent_last, now, Place::Nowhere);
    }

    /// It has waited until now since something last happened to it.
    pub fn waited(&mut self, now: Time, kind: SpanKind, at: Place) {
        self.ledger.claim(kind, self.since, now, at);
    }

    /// Parts that follow each other and end now.
    pub fn claim_parts<const PARTS: usize>(&mut self, now: Time, parts: [(SpanKind, Span); PARTS], at: Place) {
        let total: Span = parts.iter().map(|(_, span)| *span).sum();
        self.ledger.claim_parts(now - total, at, parts);
    }

    /// A packet of it carries so much network time that it has not waited for.
    pub fn carries(&mut self, label: Span) {
        self.carried += label;
    }

    /// It ends, and `label` is added: what its packets carried there, and the way back.
    pub fn adds(&mut self, now: Time, label: Span) {
        let there = self.carried.min(label);
        self.label = label;
        let parts = [(SpanKind::Network, there), (SpanKind::Return, label - there)];
        self.claim_parts(now + label, parts, Place::Nowhere);
    }

    /// Something happens to it.
    pub fn pass(&mut self, now: Time) {
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Asked = Asked { operation: Operation::Read, volume: 0, page: Page(0), value: Value(0), at: Time::ZERO };

    /// A page of request 0, asked for now.
    fn open(tracks: &mut Tracks, now: Time) -> Tag {
        tracks.open_with(Ledger::open(now, false), now, Ticket(0), READ)
    }

    #[test]
    fn the_spans_of_the_last_page_are_those_of_the_request() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::us(1), Ticket(0), 2);
        let tags = [0, 1].map(|_| open(&mut tracks, Time::us(1)));
        let track = tracks.get(tags[1]).unwrap();
        track.sends(Time::us(1));
        let way = [(SpanKind::Network, Span::us(2)), (SpanKind::Serialization, Span::us(1))];
        track.claim_parts(Time::us(4), way, Place::Link(0));
        track.pass(Time::us(4));
        track.waited(Time::us(9), SpanKind::StorageQueue, Place::Target(0));
        assert_eq!(tracks.close(Time::us(5), tags[0], Outcome::Finished), None);
        let mut finished = tracks.close(Time::us(9), tags[1], Outcome::Finished).unwrap();
        assert_eq!((finished.ticket, finished.start), (Ticket(0), Time::us(1)));
        let settled = finished.ledger.settle(Time::us(9));
        assert_eq!((settled.spans.get(SpanKind::StorageQueue), settled.spans.total()), (Span::us(5), Span::us(8)));
        assert_eq!((settled.spans.get(SpanKind::Unattributed), settled.twice), (Span::ZERO, Span::ZERO));
    }

    #[test]
    fn a_request_ends_with_the_page_whose_sum_is_the_largest() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::ZERO, Ticket(0), 2);
        let tags = [0, 1].map(|_| open(&mut tracks, Time::ZERO));
        for (tag, at, label) in [(tags[0], 5, 30), (tags[1], 9, 10)] {
            let track = tracks.get(tag).unwrap();
            track.sends(Time::ZERO);
            track.carries(Span::us(8));
            track.waited(Time::us(at), SpanKind::StorageQueue, Place::Target(0));
            track.adds(Time::us(at), Span::us(label));
        }
        assert_eq!(tracks.close(Time::us(5), tags[0], Outcome::Finished), None);
        let mut finished = tracks.close(Time::us(9), tags[1], Outcome::Finished).unwrap();
        // 5 us passed for the first and 30 are added: 26 after the second has come.
        assert_eq!(finished.label, Span::us(26));
        let spans = finished.ledger.settle(Time::us(35)).spans;
        let kinds = [SpanKind::StorageQueue, SpanKind::Network, SpanKind::Return, SpanKind::Unattributed];
        assert_eq!(kinds.map(|kind| spans.get(kind)), [5, 8, 22, 0].map(Span::us));
    }

    #[test]
    fn a_page_that_is_not_answered_has_waited_for_it_since_it_was_sent() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::ZERO, Ticket(0), 1);
        let tag = open(&mut tracks, Time::ZERO);
        let track = tracks.get(tag).unwrap();
        track.sends(Time::us(1));
        track.claim_parts(Time::us(3), [(SpanKind::Network, Span::us(2))], Place::Link(0));
        let mut finished = tracks.close(Time::us(9), tag, Outcome::TimedOut).unwrap();
        assert_eq!(finished.outcome, Outcome::TimedOut);
        let settled = finished.ledger.settle(Time::us(9));
        let spans = [SpanKind::Wait, SpanKind::Network, SpanKind::Schedule].map(|kind| settled.spans.get(kind));
        assert_eq!(spans, [Span::us(1), Span::us(2), Span::us(6)]);
    }

    #[test]
    fn a_late_answer_finds_no_track_though_its_place_is_used_again() {
        let mut tracks = Tracks::default();
        tracks.begin(Time::ZERO, Ticket(0), 1);
        let old = open(&mut tracks, Time::ZERO);
        tracks.close(Time::us(1), old, Outcome::Lost);
        tracks.begin(Time::us(1), Ticket(0), 1);
        open(&mut tracks, Time::us(1));
        assert!(tracks.get(old).is_none() && tracks.close(Time::us(2), old, Outcome::Finished).is_none());
    }
}
