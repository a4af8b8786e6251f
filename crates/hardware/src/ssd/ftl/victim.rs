//! Which block is collected next: the policies, each in a file, and what they choose from.

mod cost_benefit;
mod fifo;
mod greedy;
mod random;

use super::blocks::Blocks;
use super::types::VictimPolicy;
use base::Seed;

/// The slots among which a victim is sought. Candidates are the full blocks of which something is
/// invalid.
pub(super) struct Pool<'a> {
    pub(super) blocks: &'a Blocks,
    /// Ranges of slots.
    pub(super) segments: &'a [(u32, u32)],
    pub(super) units_per_block: u32,
}

impl Pool<'_> {
    /// The policy's victim; `None` if there is no candidate.
    pub(super) fn choose(&self, policy: VictimPolicy, draws: &mut Draws) -> Option<u32> {
        match policy {
            VictimPolicy::Greedy => greedy::choose(self),
            VictimPolicy::CostBenefit => cost_benefit::choose(self),
            VictimPolicy::Fifo => fifo::choose(self),
            VictimPolicy::Random => random::choose(self, 1, draws),
            VictimPolicy::Choices(count) => random::choose(self, count, draws),
        }
    }
    fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.segments.iter().flat_map(|(from, to)| *from..*to)
    }
    /// Valid units of a candidate.
    fn candidate(&self, slot: u32) -> Option<u32> {
        self.blocks.candidate(slot, self.units_per_block)
    }
}

/// Random numbers that go on where they stopped when only their count was kept: each has a stream
/// of its own, so that a snapshot need not know the state of a generator.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    seed: Seed,
    count: u64,
}

impl Draws {
    pub(super) fn new(seed: Seed) -> Draws {
        Draws { seed: seed.child("ftl/victim"), count: 0 }
    }
    /// A uniform number below `bound`, which must not be 0.
    fn below(&mut self, bound: u32) -> u32 {
        let number = Seed(self.seed.0 ^ self.count).stream("draw").below(u64::from(bound));
        self.count += 1;
        number as u32
    }
    pub(super) fn count(&self) -> u64 {
        self.count
    }
    pub(super) fn set_count(&mut self, count: u64) {
        self.count = count;
    }
}
