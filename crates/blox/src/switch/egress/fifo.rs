//! In the order of arrival.

use super::Queued;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(in crate::switch) struct Fifo {
    packets: VecDeque<Queued>,
}

impl Fifo {
    pub fn push(&mut self, queued: Queued) {
        self.packets.push_back(queued);
    }

    pub fn pop(&mut self) -> Option<Queued> {
        self.packets.pop_front()
    }
}
