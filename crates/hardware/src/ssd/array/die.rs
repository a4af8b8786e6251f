//! What a die does and will do, in the order of time, without what is over.

use super::Purpose;
use crate::ssd::geometry::Suspension;
use base::{Span, Time};
use std::collections::VecDeque;

/// One die's booked operations. They follow each other without gaps: a die with something booked is
/// never idle before its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Die {
    queue: VecDeque<Slot>,
    /// The whole length of the queue's slots of collection.
    collection: Span,
    sequence: u32,
}

/// An operation's time on its die, or a part of it when it was interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    start: Time,
    /// From when it may be interrupted.
    work: Time,
    end: Time,
    sequence: u32,
    interruptions_left: u32,
    purpose: Purpose,
    is_read: bool,
}

/// Position of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind everything.
    Back,
    /// Before the slot of this index, at the end of the one before it.
    Before(usize),
    /// Into the first slot, which stops for it.
    Interrupting,
}

impl Slot {
    pub(super) fn read(start: Time, end: Time, purpose: Purpose) -> Slot {
        Slot { start, work: end, end, sequence: 0, interruptions_left: 0, purpose, is_read: true }
    }
    pub(super) fn modify(start: Time, work: Time, end: Time, purpose: Purpose, suspension: Suspension) -> Slot {
        let interruptions_left = match suspension {
            Suspension::None => 0,
            Suspension::Reads { limit, .. } => limit,
        };
        Slot { start, work, end, sequence: 0, interruptions_left, purpose, is_read: false }
    }
    fn length(&self) -> Span {
        self.end - self.start
    }
    fn move_back(&mut self, by: Span) {
        self.start += by;
        self.work += by;
        self.end += by;
    }
}

impl Die {
    /// Where something that waits for everything before it starts; forgets what is over.
    pub(super) fn append_at(&mut self, now: Time) -> Time {
        self.forget(now);
        self.queue.back().map_or(now, |last| last.end)
    }
    /// How much of the time until everything is done is collection.
    pub(super) fn collection_queued(&self, now: Time) -> Span {
        match self.queue.front() {
            Some(first) if first.purpose == Purpose::Collection => self.collection - now.saturating_since(first.start),
            _ => self.collection,
        }
    }
    /// Adds a slot at the end and returns its number.
    pub(super) fn append(&mut self, mut slot: Slot) -> u32 {
        slot.sequence = self.next_sequence();
        self.grow_collection(&slot, slot.length());
        self.queue.push_back(slot);
        slot.sequence
    }
    /// Returns the position of a read that arrives now, and drops operations that are over.
    pub(super) fn place_read(&mut self, now: Time, suspension: Suspension) -> Place {
        self.forget(now);
        match self.queue.front() {
            None => Place::Back,
            Some(_) if suspension == Suspension::None => Place::Back,
            Some(first) if first.interruptions_left > 0 && first.end > stopped(now, first, suspension) => {
                Place::Interrupting
            }
            Some(_) => {
                let reads = self.queue.iter().skip(1).take_while(|slot| slot.is_read).count();
                if reads + 1 == self.queue.len() { Place::Back } else { Place::Before(reads + 1) }
            }
        }
    }
    /// Returns the time at which a read in this place starts.
    pub(super) fn start_at(&self, now: Time, place: Place, suspension: Suspension) -> Time {
        match place {
            Place::Back => self.queue.back().map_or(now, |last| last.end),
            Place::Before(index) => self.queue[index - 1].end,
            Place::Interrupting => stopped(now, &self.queue[0], suspension),
        }
    }
    /// How much of the time from now to the start of a read in this place is collection.
    pub(super) fn collection_between(&self, now: Time, start: Time, place: Place) -> Span {
        let waited = |slot: &Slot| match slot.purpose {
            Purpose::Collection => slot.end.min(start).saturating_since(slot.start.max(now)),
            Purpose::Host => Span::ZERO,
        };
        match place {
            Place::Back => self.collection_queued(now),
            Place::Before(index) => self.queue.iter().take(index).map(waited).sum(),
            // The first slot will be prolonged up to there.
            Place::Interrupting if self.queue[0].purpose == Purpose::Collection => start - now,
            Place::Interrupting => Span::ZERO,
        }
    }
    /// Puts a read in its place and moves the others back; returns its number, and for whom the
    /// interrupted operation is, if one is.
    pub(super) fn insert(&mut self, place: Place, mut read: Slot, suspension: Suspension) -> (u32, Option<Purpose>) {
        let mut interrupted = None;
        let index = match place {
            Place::Back => return (self.append(read), None),
            Place::Before(index) => index,
            Place::Interrupting => {
                interrupted = Some(self.queue[0].purpose);
                self.split_first(read.start, overhead(suspension));
                1
            }
        };
        read.sequence = self.next_sequence();
        self.make_room(index, read);
        (read.sequence, interrupted)
    }
    /// Returns the time at which a numbered operation ends; of the parts of an interrupted one the
    /// last.
    pub(super) fn end_of(&self, sequence: u32) -> Option<Time> {
        self.queue.iter().rev().find(|slot| slot.sequence == sequence).map(|slot| slot.end)
    }
    pub(super) fn free_at(&self) -> Time {
        self.queue.back().map_or(Time::ZERO, |last| last.end)
    }

    fn forget(&mut self, now: Time) {
        while let Some(first) = self.queue.front()
            && first.end <= now
        {
            if first.purpose == Purpose::Collection {
                self.collection -= first.length();
            }
            self.queue.pop_front();
        }
    }
    /// Cuts the first slot where it has stopped; its rest, with the time to go on, follows at once
    /// and can be moved back.
    fn split_first(&mut self, stopped: Time, overhead: Span) {
        let whole = self.queue[0];
        let done = Slot { work: stopped, end: stopped, interruptions_left: 0, ..whole };
        let left = (whole.end + overhead).saturating_since(stopped) + overhead;
        let rest = Slot {
            start: stopped,
            work: stopped,
            end: stopped + left,
            interruptions_left: whole.interruptions_left - 1,
            ..whole
        };
        self.queue[0] = done;
        self.grow_collection(&whole, overhead * 2);
        for slot in self.queue.iter_mut().skip(1) {
            slot.move_back(overhead * 2);
        }
        self.queue.insert(1, rest);
    }
    fn make_room(&mut self, index: usize, read: Slot) {
        for slot in self.queue.iter_mut().skip(index) {
            slot.move_back(read.length());
        }
        self.grow_collection(&read, read.length());
        self.queue.insert(index, read);
    }
    fn grow_collection(&mut self, slot: &Slot, by: Span) {
        if slot.purpose == Purpose::Collection {
            self.collection += by;
        }
    }
    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}

/// Returns the time at which a slot that is interrupted now has stopped.
fn stopped(now: Time, slot: &Slot, suspension: Suspension) -> Time {
    now.max(slot.work) + overhead(suspension)
}

/// What stopping costs, and going on again.
pub(super) fn overhead(suspension: Suspension) -> Span {
    match suspension {
        Suspension::None => Span::ZERO,
        Suspension::Reads { overhead, .. } => overhead,
    }
}
