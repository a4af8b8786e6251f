//! Queues of a port (paper, 4.5).
//!
//! [`EgressQueue`] keeps what waits at one port within its buffer and says what leaves next.
//! Storage-driven: one queue of its own for what completes writes, the others by SP-PIFO on the
//! rank of a packet. First in, first out: the rival, with drops at the tail; marking is the hop's
//! business ([`crate::route::RouteConfig::ecn_threshold`]).

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

/// Which queue serves whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedulingConfig {
    /// By the rank that follows from the credit of the target's drive.
    StorageDriven(StorageDrivenConfig),
    /// One queue.
    Fifo,
}

/// Parameters of storage-driven scheduling. The paper gives none (4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDrivenConfig {
    /// Ranks.
    pub rank: RankConfig,
    /// Queues in all, from 2: the first is for what completes writes alone and always goes first.
    pub queues: u8,
    /// How the others take turns.
    pub service: Service,
}

/// How queues take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The first that has something: SP-PIFO as published.
    Strict,
    /// Weighted round robin, as the paper has it: packets a turn of each queue but the first,
    /// highest priority first.
    WeightedRoundRobin(Vec<u32>),
}

/// What waits at a port. In this order in memory: a packet that nothing holds up is judged by what
/// comes first.
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
    /// Empty, with `room` for that many bytes of frames.
    pub fn new(config: &SchedulingConfig, room: Bytes) -> EgressQueue {
        let queues = match config {
            SchedulingConfig::Fifo => Queues::Fifo(Fifo::default()),
            SchedulingConfig::StorageDriven(config) => Queues::StorageDriven(StorageDriven::new(config)),
        };
        EgressQueue { room: room.count(), used: 0, highest: 0, queues, waiting: WaitingRoom::default() }
    }

    /// Bytes of frames that wait.
    pub fn used(&self) -> Bytes {
        Bytes::new(self.used)
    }
    /// Bytes of frames for which there is room when nothing waits.
    pub fn room(&self) -> Bytes {
        Bytes::new(self.room)
    }
    /// Bytes of frames for which there is room.
    pub fn room_left(&self) -> Bytes {
        Bytes::new(self.room - self.used)
    }
    /// The most bytes of frames that ever waited.
    pub fn highest(&self) -> Bytes {
        Bytes::new(self.highest)
    }
    /// Takes the most that waits from now on.
    pub fn restart_highest(&mut self) {
        self.highest = self.used;
    }
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Appends a packet; `false` and no change when it does not fit.
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

    /// Takes the packet that leaves next. It is to be read where it lies.
    pub fn pop(&mut self) -> Option<&Packet> {
        let place = match &mut self.queues {
            Queues::Fifo(queue) => queue.pop(),
            Queues::StorageDriven(queues) => queues.pop(),
        }?;
        let packet = self.waiting.leave(place);
        self.used -= u64::from(packet.frame);
        Some(packet)
    }

    /// A packet goes through without waiting, because nothing does: bounds of queues adapt as if it
    /// had.
    #[inline]
    pub fn pass(&mut self, packet: &Packet) {
        if let Queues::StorageDriven(queues) = &mut self.queues {
            queues.pass(packet);
        }
    }
}

#[cfg(test)]
mod tests;
