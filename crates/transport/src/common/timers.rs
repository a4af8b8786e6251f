//! One deadline a key (connection, flow), cheap to move later.

use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines of numbered keys. Moving one later or cancelling it costs nothing: the heap holds at most a few stale
/// entries a key, which are looked at once, when they come up.
#[derive(Clone, Debug)]
pub struct Timers {
    /// The deadline that counts; `Time::MAX` is none.
    deadlines: Vec<Time>,
    /// The earliest heap entry of each key; `Time::MAX` is none.
    listed: Vec<Time>,
    heap: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Timers {
    /// No deadline for any of `keys` keys.
    pub fn new(keys: u32) -> Timers {
        let none = vec![Time::MAX; keys as usize];
        Timers { deadlines: none.clone(), listed: none, heap: BinaryHeap::new() }
    }
    /// Makes room for keys up to `keys - 1`.
    pub fn grow(&mut self, keys: u32) {
        if self.deadlines.len() < keys as usize {
            self.deadlines.resize(keys as usize, Time::MAX);
            self.listed.resize(keys as usize, Time::MAX);
        }
    }
    /// Sets the deadline of `key`.
    pub fn set(&mut self, key: u32, deadline: Time) {
        self.deadlines[key as usize] = deadline;
        if deadline < self.listed[key as usize] {
            self.list(key, deadline);
        }
    }
    /// Takes the deadline of `key` away.
    pub fn cancel(&mut self, key: u32) {
        self.deadlines[key as usize] = Time::MAX;
    }
    /// The deadline of `key`.
    pub fn deadline(&self, key: u32) -> Option<Time> {
        Some(self.deadlines[key as usize]).filter(|deadline| *deadline != Time::MAX)
    }
    /// When to call [`pop_due`](Self::pop_due) next: never later than the earliest deadline, at times earlier.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
    /// Takes one key whose deadline has come by `now`, earliest first, and takes its deadline away.
    pub fn pop_due(&mut self, now: Time) -> Option<u32> {
        while let Some(Reverse((at, key))) = self.heap.peek().copied() {
            if at > now {
                return None;
            }
            self.heap.pop();
            if self.listed[key as usize] != at {
                continue;
            }
            self.listed[key as usize] = Time::MAX;
            let deadline = self.deadlines[key as usize];
            if deadline <= now {
                self.deadlines[key as usize] = Time::MAX;
                return Some(key);
            }
            if deadline != Time::MAX {
                self.list(key, deadline);
            }
        }
        None
    }

    fn list(&mut self, key: u32, at: Time) {
        self.listed[key as usize] = at;
        self.heap.push(Reverse((at, key)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_moved_later_does_not_fire_early_and_one_moved_earlier_fires_once() {
        let mut timers = Timers::new(2);
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
        let mut timers = Timers::new(1);
        timers.set(0, Time::ns(10));
        timers.cancel(0);
        assert_eq!(timers.pop_due(Time::ns(99)), None);
        assert_eq!(timers.deadline(0), None);
    }
}
