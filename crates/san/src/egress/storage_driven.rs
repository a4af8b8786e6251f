//! Several queues: one for packets that complete writes, and SP-PIFO over the others.
//!
//! SP-PIFO alone may put a later packet of a rank into a higher queue than an earlier one, because
//! its bounds move in between; two packets of one I/O could be reordered. So while packets of a
//! rank wait, others of that rank follow them into the same queue and leave the bounds unchanged.
//! The paper's rule (all packets of an I/O keep the rank of the first) then does preserve their
//! order.

use super::rank::Traffic;
use super::{RankConfig, Service, StorageDrivenConfig};
use crate::packet::Packet;
use std::collections::VecDeque;
use transport::{SpPifo, WeightedRoundRobin};

#[derive(Clone, Debug)]
pub(super) struct StorageDriven {
    rank: RankConfig,
    mapping: SpPifo,
    turns: Option<WeightedRoundRobin>,
    queues: Box<[VecDeque<Entry>]>,
    /// Bit `i` is set if ranked queue `i` (queue `i + 1`) is not empty.
    waiting: u32,
    /// By rank: the queue of its waiting packets, and their number.
    ranks: Box<[Waiting]>,
}

/// A waiting packet: its slot, and the rank under which it is counted.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: u32,
    rank: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    queue: u8,
    count: u32,
}

impl StorageDriven {
    pub(super) fn new(config: &StorageDrivenConfig) -> StorageDriven {
        assert!(config.queues > 1, "one queue is for what completes writes, another for the rest");
        let ranked = usize::from(config.queues) - 1;
        let ranks = usize::from(config.rank.rank_max.max(config.rank.read_rank)) + 1;
        StorageDriven {
            rank: config.rank,
            mapping: SpPifo::new(ranked),
            turns: match &config.service {
                Service::Strict => None,
                Service::WeightedRoundRobin(weights) => {
                    assert!(weights.len() == ranked, "every ranked queue has a weight");
                    Some(WeightedRoundRobin::new(weights))
                }
            },
            queues: vec![VecDeque::new(); ranked + 1].into(),
            waiting: 0,
            ranks: vec![Waiting::default(); ranks].into(),
        }
    }

    pub(super) fn push(&mut self, packet: &Packet, place: u32) {
        let (queue, rank) = match Traffic::of(packet, &self.rank) {
            Traffic::WriteCompletion => (0, None),
            Traffic::Ranked(rank) => (self.place(rank) + 1, Some(rank)),
            Traffic::Stray => (self.queues.len() - 1, None),
        };
        self.queues[queue].push_back(Entry { place, rank });
        self.waiting |= 1 << queue >> 1;
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        if let Some(first) = self.queues[0].pop_front() {
            return Some(first.place);
        }
        let ranked = match &mut self.turns {
            Some(turns) => turns.next(self.waiting)?,
            None if self.waiting == 0 => return None,
            None => self.waiting.trailing_zeros() as usize,
        };
        let queue = &mut self.queues[ranked + 1];
        let Entry { place, rank } = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting &= !(1 << ranked);
        }
        if let Some(rank) = rank {
            let rank = self.known(rank);
            self.ranks[rank].count -= 1;
        }
        Some(place)
    }

    pub(super) fn pass(&mut self, packet: &Packet) {
        if let Traffic::Ranked(rank) = Traffic::of(packet, &self.rank) {
            self.mapping.place(self.known(rank) as u32);
        }
    }

    /// Returns the ranked queue for a packet of `rank`.
    fn place(&mut self, rank: u8) -> usize {
        let rank = self.known(rank);
        let waiting = &mut self.ranks[rank];
        if waiting.count == 0 {
            waiting.queue = self.mapping.place(rank as u32) as u8;
        }
        waiting.count += 1;
        usize::from(waiting.queue)
    }

    /// Clamps a rank from a packet to the known ranks; the highest is the least urgent.
    fn known(&self, rank: u8) -> usize {
        usize::from(rank).min(self.ranks.len() - 1)
    }
}
