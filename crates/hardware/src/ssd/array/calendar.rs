//! When a channel (or a link) is taken: a list of runs in the order of time, without what has
//! passed.

use super::Purpose;
use base::{Span, Time};
use std::collections::VecDeque;

/// A channel's or a link's booked transfers. Transfers that touch and have one purpose are kept as
/// one run, so that a busy channel's list stays short.
#[derive(Clone, Debug, Default)]
pub(in crate::ssd) struct Calendar {
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: Time,
    end: Time,
    purpose: Purpose,
}

impl Calendar {
    /// Books `length` in the first gap that is long enough and not before `ready`. Returns its
    /// start, and how much of the time from `ready` to there the channel worked for collection.
    pub(in crate::ssd) fn book(&mut self, now: Time, ready: Time, length: Span, purpose: Purpose) -> (Time, Span) {
        while self.runs.front().is_some_and(|run| run.end <= now) {
            self.runs.pop_front();
        }
        if self.runs.back().is_none_or(|run| run.end <= ready) {
            self.insert(self.runs.len(), Run { start: ready, end: ready + length, purpose });
            return (ready, Span::ZERO);
        }
        let (index, start, collection) = self.gap(ready, length);
        self.insert(index, Run { start, end: start + length, purpose });
        (start, collection)
    }

    /// Before which run the gap lies, where the transfer starts, and the collection before it.
    fn gap(&self, ready: Time, length: Span) -> (usize, Time, Span) {
        let mut index = self.runs.partition_point(|run| run.end <= ready);
        let (mut start, mut collection) = (ready, Span::ZERO);
        while let Some(run) = self.runs.get(index) {
            if run.start >= start + length {
                break;
            }
            if run.purpose == Purpose::Collection {
                collection += run.end - run.start.max(start);
            }
            start = run.end;
            index += 1;
        }
        (index, start, collection)
    }
    fn insert(&mut self, index: usize, run: Run) {
        let touches_last = index > 0 && {
            let last = &self.runs[index - 1];
            last.end == run.start && last.purpose == run.purpose
        };
        let touches_next =
            self.runs.get(index).is_some_and(|next| next.start == run.end && next.purpose == run.purpose);
        match (touches_last, touches_next) {
            (true, true) => {
                self.runs[index - 1].end = self.runs[index].end;
                self.runs.remove(index);
            }
            (true, false) => self.runs[index - 1].end = run.end,
            (false, true) => self.runs[index].start = run.start,
            (false, false) => self.runs.insert(index, run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Purpose::{Collection, Host};

    #[test]
    fn a_transfer_takes_a_gap_that_is_just_long_enough_and_skips_one_that_is_a_picosecond_short() {
        let mut calendar = Calendar::default();
        calendar.book(Time::ZERO, Time::ns(100), Span::ns(50), Host);
        let mut tight = calendar.clone();
        assert_eq!(calendar.book(Time::ZERO, Time::ns(90), Span::ns(10), Host), (Time::ns(90), Span::ZERO));
        assert_eq!(tight.book(Time::ZERO, Time::ns(90), Span::ps(10_001), Host), (Time::ns(150), Span::ZERO));
    }

    #[test]
    fn waiting_for_collection_is_counted_from_the_moment_of_readiness() {
        let mut calendar = Calendar::default();
        calendar.book(Time::ZERO, Time::ZERO, Span::ns(30), Collection);
        calendar.book(Time::ZERO, Time::ZERO, Span::ns(20), Host);
        calendar.book(Time::ZERO, Time::ZERO, Span::ns(10), Collection);
        let booked = calendar.book(Time::ns(5), Time::ns(25), Span::ns(7), Host);
        assert_eq!(booked, (Time::ns(60), Span::ns(5 + 10)));
    }

    #[test]
    fn a_busy_channel_is_one_run() {
        let mut calendar = Calendar::default();
        for _ in 0..100 {
            calendar.book(Time::ZERO, Time::ZERO, Span::ns(3), Host);
        }
        assert_eq!(calendar.runs.len(), 1);
        assert_eq!(calendar.book(Time::ZERO, Time::ZERO, Span::ns(3), Host).0, Time::ns(300));
    }

    #[test]
    fn a_transfer_that_fills_a_gap_joins_both_sides() {
        let mut calendar = Calendar::default();
        calendar.book(Time::ZERO, Time::ZERO, Span::ns(10), Host);
        calendar.book(Time::ZERO, Time::ns(20), Span::ns(10), Host);
        assert_eq!(calendar.book(Time::ZERO, Time::ZERO, Span::ns(10), Host).0, Time::ns(10));
        assert_eq!(calendar.runs.len(), 1);
    }
}
