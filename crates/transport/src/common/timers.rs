//! One deadline per key (connection, flow), cheap to postpone.

use super::Sparse;
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines of numbered keys. Postponing or cancelling one is free: the heap holds at most a few
/// stale entries per key, which are checked once, when they are due.
#[derive(Clone, Debug)]
pub struct Timers {
    keys: Sparse<Deadline>,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

/// The deadline of one key; `Time::MAX` if there is none.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// The current deadline.
    at: Time,
    /// The earliest entry in the heap.
    listed: Time,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { keys: Sparse::new(Deadline { at: Time::MAX, listed: Time::MAX }), heap: BinaryHeap::new() }
    }
}

impl Timers {
    /// Sets the deadline of `key`.
    pub fn set(&mut self, key: u32, deadline: Time) {
        let place = &mut self.keys[key as usize];
        place.at = deadline;
        if deadline < place.listed {
            place.listed = deadline;
            self.heap.push(Reverse((deadline, key)));
        }
    }
    /// Cancels the deadline of `key`.
    pub fn cancel(&mut self, key: u32) {
        // Avoids allocating a key that never had a deadline.
        if self.keys[key as usize].at != Time::MAX {
            self.keys[key as usize].at = Time::MAX;
        }
    }
    /// Returns the deadline of `key`, if it has one.
    pub fn deadline(&self, key: u32) -> Option<Time> {
        Some(self.keys[key as usize].at).filter(|deadline| *deadline != Time::MAX)
    }
    /// Returns when to call [`pop_due`](Self::pop_due) next: never later than the earliest
    /// deadline, but possibly earlier.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
    /// Returns one key whose deadline is at or before `now`, earliest first, and cancels its
    /// deadline.
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        while let Some(Reverse((at, key))) = self.heap.peek().copied() {
            if at > now {
                return None;
            }
            self.heap.pop();
            let place = &mut self.keys[key as usize];
            if place.listed != at {
                continue;
            }
            place.listed = Time::MAX;
            if place.at <= now {
                place.at = Time::MAX;
                return Some(key);
            }
            if place.at != Time::MAX {
                place.listed = place.at;
                self.heap.push(Reverse((place.at, key)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_moved_later_does_not_fire_early_and_one_moved_earlier_fires_once() {
        let mut timers = Timers::default();
        timers.set(0, Time::ns(10));
        timers.set(0, Time::ns(30));
        timers.set(1, Time::ns(40));
        timers.set(1, Time::ns(20));
        assert_eq!(timers.pop_due(Time::ns(15)), None);
        assert_eq!(timers.next(), Some(Time::ns(20)));
        assert_eq!(timers.pop_due(Time::ns(20)), Some(1));
        assert_eq!(timers.pop_due(Time::ns(29)), None);
        assert_eq!(timers.pop_due(Time::ns(50)), Some(0));
        assert_eq!(timers.pop_due(Time::ns(50)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_cancelled_deadline_never_fires() {
        let mut timers = Timers::default();
        timers.set(0, Time::ns(10));
        timers.cancel(0);
        assert_eq!(timers.pop_due(Time::ns(99)), None);
        assert_eq!(timers.deadline(0), None);
    }
}
