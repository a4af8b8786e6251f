//! First in, first out.

use crate::packet::Packet;
use std::collections::VecDeque;

/// One queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo(VecDeque<Packet>);

impl Fifo {
    pub(super) fn push(&mut self, packet: &Packet) {
        self.0.push_back(*packet);
    }
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.0.pop_front()
    }
}
