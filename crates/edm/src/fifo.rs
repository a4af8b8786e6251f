//! A queue that stays where it is in memory.
//!
//! A ring buffer walks through all of its room even while it holds one item; with hundreds of hosts
//! that is megabytes of cold memory. Here the slot freed last is used next, so a short queue keeps
//! to a few cache lines.

use prefetch_index::prefetch_index;

const NONE: u32 = u32::MAX;

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    /// Items in use, linked from `head` to `tail`, and free slots, linked from `free`.
    slots: Vec<(u32, T)>,
    head: u32,
    tail: u32,
    free: u32,
}

impl<T: Copy> Fifo<T> {
    /// An empty queue with room for `room` items before it allocates.
    pub fn with_capacity(room: usize) -> Fifo<T> {
        Fifo { slots: Vec::with_capacity(room), head: NONE, tail: NONE, free: NONE }
    }
    /// Returns whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
    /// The oldest item.
    pub fn front(&self) -> Option<&T> {
        self.slots.get(self.head as usize).map(|(_, item)| item)
    }
    /// The oldest item will be needed soon.
    #[inline]
    pub fn prefetch_front(&self) {
        prefetch_index(&self.slots, self.head as usize);
    }
    /// Appends `item`. Inlined, so that large items are made in place.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        let slot = self.take_slot(item);
        match std::mem::replace(&mut self.tail, slot) {
            NONE => self.head = slot,
            tail => self.slots[tail as usize].0 = slot,
        }
    }
    /// Takes the oldest item.
    pub fn pop_front(&mut self) -> Option<T> {
        self.pop_front_with(|item| *item)
    }
    /// Shows the oldest item to `see` and takes it.
    #[inline(always)]
    pub fn pop_front_with<R>(&mut self, see: impl FnOnce(&T) -> R) -> Option<R> {
        let slot = self.head;
        let (next, item) = self.slots.get_mut(slot as usize)?;
        self.head = std::mem::replace(next, std::mem::replace(&mut self.free, slot));
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(see(item))
    }
    /// The items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let at = |slot: u32| self.slots.get(slot as usize);
        std::iter::successors(at(self.head), move |(next, _)| at(*next)).map(|(_, item)| item)
    }

    #[inline(always)]
    fn take_slot(&mut self, item: T) -> u32 {
        let slot = self.free;
        match self.slots.get_mut(slot as usize) {
            Some(entry) => {
                self.free = entry.0;
                *entry = (NONE, item);
                slot
            }
            None => {
                self.slots.push((NONE, item));
                self.slots.len() as u32 - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec(any::<Option<u8>>(), 0..200)) {
            let (mut queue, mut model) = (Fifo::with_capacity(2), VecDeque::new());
            for step in steps {
                match step {
                    Some(item) => {
                        queue.push_back(item);
                        model.push_back(item);
                    }
                    None => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                }
                prop_assert_eq!(queue.front(), model.front());
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert!(queue.iter().eq(model.iter()));
            }
        }
    }

    #[test]
    fn a_short_queue_keeps_to_its_slots() {
        let mut queue = Fifo::with_capacity(0);
        for n in 0..1000 {
            queue.push_back(n);
            assert_eq!(queue.pop_front(), Some(n));
        }
        assert_eq!(queue.slots.len(), 1);
    }
}
