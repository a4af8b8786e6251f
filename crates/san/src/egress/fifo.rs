//! The first-in-first-out queue.

use std::collections::VecDeque;

/// A queue of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo(VecDeque<u32>);

impl Fifo {
    pub(super) fn push(&mut self, place: u32) {
        self.0.push_back(place);
    }
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.0.pop_front()
    }
}
