//! The deterministic event queue. (Interim: a binary heap behind the final interface.)
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pending events in order of time; ties come out in the order in which they went in.
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    slots: Vec<Option<E>>,
    free: Vec<usize>,
    sequence: u64,
    now: Time,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        EventQueue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), sequence: 0, now: Time::ZERO }
    }
    /// Adds `event` at `at`, which must not lie before [`now`](Self::now).
    pub fn push(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event was scheduled in the past");
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(event);
        self.heap.push(Reverse((at, self.sequence, slot)));
        self.sequence += 1;
    }
    /// Takes the earliest event and moves [`now`](Self::now) to its time.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.now = at;
        self.free.push(slot);
        Some((at, self.slots[slot].take().expect("a pending slot holds its event")))
    }
    /// The time of the last event taken.
    pub fn now(&self) -> Time {
        self.now
    }
    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
