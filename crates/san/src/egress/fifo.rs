//! First in, first out.

use std::collections::VecDeque;

/// One queue of places.
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
