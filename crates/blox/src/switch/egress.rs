//! Packets that wait for the link of one port, and the choice of the next: one file per policy.

mod fair;
mod fifo;
mod priority;
mod shaped;

use crate::Packet;
use base::{Bytes, Rate, Time};
use fair::Fair;
use fifo::Fifo;
use priority::Priority;
use shaped::Shaped;

/// How the ports of a switch choose the next packet (4.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkScheduling {
    /// In the order of arrival.
    Fifo,
    /// Each flow (one source at one port) is held to a rate; among those that may, in the order of
    /// arrival.
    TokenBucket {
        /// Of each flow.
        rate: Rate,
        /// What a flow that has been silent may send at once.
        burst: Bytes,
    },
    /// Deficit round robin over flows (Shreedhar and Varghese, SIGCOMM'95).
    FairQueue {
        /// What a flow may send a round. Constant work a packet needs at least the largest packet
        /// (9,038 B).
        quantum: Bytes,
    },
    /// The most urgent class first, always.
    Priority {
        /// Class of RackBlox's packets, 0 to 7, 7 the most urgent; background traffic names its
        /// own.
        storage: u8,
    },
}

/// Classes of [`NetworkScheduling::Priority`]: the class selectors of RFC 2474.
pub(super) const CLASSES: u8 = 8;

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub packet: Packet,
    /// Time at which it came to the switch.
    pub entered: Time,
    /// Its length on the wire.
    pub bytes: u32,
    /// Its source, with one number for all that are outside the rack.
    pub flow: u32,
    /// 0 to 7, 7 the most urgent.
    pub class: u8,
}

/// What waits at one port.
#[derive(Clone, Debug)]
pub(super) enum Egress {
    Fifo(Fifo),
    Shaped(Shaped),
    Fair(Fair),
    Priority(Priority),
}

impl Egress {
    /// An empty queue for flows `0..flows`.
    pub fn new(scheduling: NetworkScheduling, flows: u32) -> Egress {
        match scheduling {
            NetworkScheduling::Fifo => Egress::Fifo(Fifo::default()),
            NetworkScheduling::TokenBucket { rate, burst } => Egress::Shaped(Shaped::new(rate, burst, flows)),
            NetworkScheduling::FairQueue { quantum } => Egress::Fair(Fair::new(quantum, flows)),
            NetworkScheduling::Priority { .. } => Egress::Priority(Priority::default()),
        }
    }

    /// Returns whether only waiting packets determine the next, and not those already sent.
    pub fn is_memoryless(&self) -> bool {
        matches!(self, Egress::Fifo(_) | Egress::Priority(_))
    }

    pub fn push(&mut self, queued: Queued) {
        match self {
            Egress::Fifo(queue) => queue.push(queued),
            Egress::Shaped(queue) => queue.push(queued),
            Egress::Fair(queue) => queue.push(queued),
            Egress::Priority(queue) => queue.push(queued),
        }
    }

    /// The packet to send now; `None` when none waits or none may go yet.
    pub fn pop(&mut self, now: Time) -> Option<Queued> {
        match self {
            Egress::Fifo(queue) => queue.pop(),
            Egress::Shaped(queue) => queue.pop(now),
            Egress::Fair(queue) => queue.pop(),
            Egress::Priority(queue) => queue.pop(),
        }
    }

    /// Returns the time at which [`pop`](Egress::pop) can next give something, when nothing but
    /// time is in the way.
    pub fn next_allowed(&self, now: Time) -> Option<Time> {
        match self {
            Egress::Shaped(queue) => queue.next_allowed(now),
            _ => None,
        }
    }

    /// Takes out a packet that has less right to room than `newcomer`, if there is one.
    pub fn evict_for(&mut self, newcomer: &Queued) -> Option<Queued> {
        match self {
            Egress::Fifo(_) => None,
            Egress::Shaped(queue) => queue.evict_for(newcomer),
            Egress::Fair(queue) => queue.evict_for(newcomer),
            Egress::Priority(queue) => queue.evict_for(newcomer),
        }
    }

    /// Removes any packet, even one that may not leave yet.
    pub fn drain(&mut self) -> Option<Queued> {
        match self {
            Egress::Shaped(queue) => queue.drain(),
            _ => self.pop(Time::MAX),
        }
    }
}
