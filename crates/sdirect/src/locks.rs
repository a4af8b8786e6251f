//! Turns of add_writes on blocks: each waits for those that came before it on either of its blocks,
//! so that nobody waits in a circle.

use crate::DeviceId;
use std::collections::{BTreeMap, VecDeque};

/// A block: its device and its first byte.
pub(crate) type Block = (DeviceId, u64);

/// The holder of each block, and its waiters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    queues: BTreeMap<Block, VecDeque<u32>>,
}

impl Locks {
    /// Gets in line for all blocks at once; whether it is their turn already.
    pub(crate) fn enter(&mut self, job: u32, blocks: &[Block]) -> bool {
        for block in blocks {
            self.queues.entry(*block).or_default().push_back(job);
        }
        self.is_first(job, blocks)
    }
    /// Returns whether nobody is before `job` on any of its blocks.
    pub(crate) fn is_first(&self, job: u32, blocks: &[Block]) -> bool {
        blocks.iter().all(|block| self.queues.get(block).and_then(VecDeque::front) == Some(&job))
    }
    /// Leaves all lines; those that may be next.
    pub(crate) fn leave(&mut self, job: u32, blocks: &[Block]) -> Vec<u32> {
        let mut next = Vec::new();
        for block in blocks {
            let Some(queue) = self.queues.get_mut(block) else { continue };
            queue.retain(|waiting| *waiting != job);
            match queue.front() {
                Some(front) => next.push(*front),
                None => drop(self.queues.remove(block)),
            }
        }
        next.dedup();
        next
    }
}
