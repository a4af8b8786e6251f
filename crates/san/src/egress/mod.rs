//! The queues of a port (paper, 4.5).
//!
//! [`EgressQueue`] limits the packets that wait at one port to its buffer, and selects the next
//! one. Storage-driven scheduling has a separate queue for packets that complete writes, and
//! SP-PIFO by rank for the others. First in, first out is the baseline, with tail drop; the hop
//! marks packets ([`crate::route::RouteConfig::ecn_threshold`]).

mod fifo;
mod rank;
mod room;
mod storage_driven;

pub use rank::{RankConfig, Traffic};

use crate::packet::Packet;
use base::Bytes;
use fifo::Fifo;
use room::WaitingRoom;
use storage_driven::StorageDriven;

/// The scheduling of a port's queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulingConfig {
    /// By rank, which follows from the credit of the target's drive.
    StorageDriven(StorageDrivenConfig),
    /// One queue.
    Fifo,
}

/// Parameters of storage-driven scheduling. The paper gives none (4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDrivenConfig {
    /// The mapping of credits to ranks.
    pub rank: RankConfig,
    /// Number of queues, at least 2. The first is reserved for packets that complete writes, and
    /// always has priority.
    pub queues: u8,
    /// The service order of the other queues.
    pub service: Service,
}

/// A service order of queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The first nonempty queue: SP-PIFO as published.
    Strict,
    /// Weighted round robin, as in the paper: the packets per turn of each queue except the first,
    /// highest priority first.
    WeightedRoundRobin(Vec<u32>),
}

/// The packets that wait at a port. The memory order is fixed: the first fields decide whether a
/// packet passes without waiting.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct EgressQueue {
    used: u64,
    room: u64,
    queues: Queues,
    highest: u64,
    waiting: WaitingRoom,
}

#[derive(Clone, Debug)]
enum Queues {
    Fifo(Fifo),
    StorageDriven(StorageDriven),
}

impl EgressQueue {
    /// Creates an empty queue with `room` bytes for frames.
    pub fn new(config: &SchedulingConfig, room: Bytes) -> EgressQueue {
        let queues = match config {
            SchedulingConfig::Fifo => Queues::Fifo(Fifo::default()),
            SchedulingConfig::StorageDriven(config) => Queues::StorageDriven(StorageDriven::new(config)),
        };
        EgressQueue { room: room.count(), used: 0, highest: 0, queues, waiting: WaitingRoom::default() }
    }

    /// Returns the queued bytes of frames.
    pub fn used(&self) -> Bytes {
        Bytes::new(self.used)
    }
    /// Returns the number of queued packets.
    pub fn packets(&self) -> usize {
        self.waiting.len()
    }
    /// Returns the capacity, bytes of frames.
    pub fn room(&self) -> Bytes {
        Bytes::new(self.room)
    }
    /// Returns the free capacity, bytes of frames.
    pub fn room_left(&self) -> Bytes {
        Bytes::new(self.room - self.used)
    }
    /// Returns the highest number of queued bytes of frames.
    pub fn highest(&self) -> Bytes {
        Bytes::new(self.highest)
    }
    /// Restarts the highest fill level at the present one.
    pub fn restart_highest(&mut self) {
        self.highest = self.used;
    }
    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Appends a packet. Returns `false` without a change if it does not fit.
    #[inline(never)]
    pub fn push(&mut self, packet: &Packet) -> bool {
        let used = self.used + u64::from(packet.frame);
        if used > self.room {
            return false;
        }
        self.used = used;
        self.highest = self.highest.max(used);
        let place = self.waiting.enter(packet);
        match &mut self.queues {
            Queues::Fifo(queue) => queue.push(place),
            Queues::StorageDriven(queues) => queues.push(packet, place),
        }
        true
    }

    /// Removes the next packet and returns a reference to its slot.
    pub fn pop(&mut self) -> Option<&Packet> {
        let place = match &mut self.queues {
            Queues::Fifo(queue) => queue.pop(),
            Queues::StorageDriven(queues) => queues.pop(),
        }?;
        let packet = self.waiting.leave(place);
        self.used -= u64::from(packet.frame);
        Some(packet)
    }

    /// Records that a packet passes an empty queue: the bounds of SP-PIFO adapt as if it had been
    /// queued.
    #[inline]
    pub fn pass(&mut self, packet: &Packet) {
        if let Queues::StorageDriven(queues) = &mut self.queues {
            queues.pass(packet);
        }
    }
}

#[cfg(test)]
mod tests;
