//! Checks during a run that the last acknowledged write of each block wins.
//!
//! A read may return the write that was acknowledged last before it began, or one that was
//! concurrent with that write or with the read itself. Any other write was overwritten. A write
//! that reappears after the acknowledgement of a later one is the typical result of a careless
//! retry over a second path. This is Lamport's regular register with many writers.
//! [`crate::History`] checks the stronger linearizability, and needs more memory.
//!
//! For each block the checker keeps what a read may still return: writes in flight, the winning
//! write, the writes concurrent with it, and later failed writes. For messages it also keeps the
//! last write that was dropped.

mod block;

use base::Time;
use block::Block;
use std::collections::BTreeMap;
use std::fmt;

/// A block: a drive and the block's number there.
pub type BlockId = (u64, u64);

/// How a write ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEnd {
    /// It was acknowledged: from now on what it replaced must not be found.
    Acknowledged,
    /// It failed: it may have been done or not, but will not be done any more.
    Failed,
}

/// A write as the checker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The caller's number for it; no two of a block share one. 0 is what a block holds at first.
    pub id: u64,
    /// Time of the invocation.
    pub begun: Time,
    /// Time at which its client was answered, with or without success.
    pub ended: Option<Time>,
    /// Whether that was an acknowledgement.
    pub is_acknowledged: bool,
}

/// A read found what it must not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {} of drive {}: a read from {} ps to {} ps found {found}, but {winner} came after that", block.1, block.0, read_begun.as_ps(), read_ended.as_ps())]
pub struct OrderViolation {
    /// The block.
    pub block: BlockId,
    /// What the read returned.
    pub found: Found,
    /// The acknowledged write that had replaced it.
    pub winner: Write,
    /// Time at which the read began.
    pub read_begun: Time,
    /// End of the read.
    pub read_ended: Time,
}

/// What a wrong read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A write that is still remembered.
    Write(Write),
    /// A write that was replaced long before, or that nobody ever began.
    Forgotten(u64),
}

impl fmt::Display for Write {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "write {} (begun at {} ps", self.id, self.begun.as_ps())?;
        match self.ended {
            Some(ended) if self.is_acknowledged => write!(out, ", acknowledged at {} ps)", ended.as_ps()),
            Some(ended) => write!(out, ", failed at {} ps)", ended.as_ps()),
            None => write!(out, ", under way)"),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Write(write) => write.fmt(out),
            Found::Forgotten(id) => write!(out, "write {id} (long replaced, or never begun)"),
        }
    }
}

/// The checker. Calls come in the order of time.
#[derive(Clone, Debug, Default)]
pub struct WriteOrder {
    blocks: BTreeMap<BlockId, Block>,
    reads: u64,
}

impl WriteOrder {
    /// Every block holds 0.
    pub fn new() -> Self {
        WriteOrder::default()
    }

    /// A client invokes a write. `id` is not 0 and new to the block.
    pub fn write_begins(&mut self, now: Time, block: BlockId, id: u64) {
        self.blocks.entry(block).or_default().write_begins(now, id);
    }

    /// The client is answered. An answer to a write that never began, or a second one, changes
    /// nothing.
    pub fn write_ends(&mut self, now: Time, block: BlockId, id: u64, end: WriteEnd) {
        if let Some(block) = self.blocks.get_mut(&block) {
            block.write_ends(now, id, end);
        }
    }

    /// A client invokes a read.
    pub fn read_begins(&mut self, now: Time, block: BlockId) {
        self.blocks.entry(block).or_default().read_begins(now);
    }

    /// The read that began at `begun` failed, and says nothing.
    pub fn read_fails(&mut self, block: BlockId, begun: Time) {
        if let Some(block) = self.blocks.get_mut(&block) {
            block.read_leaves(begun);
        }
    }

    /// The read that began at `begun` found what write `id` had written.
    pub fn read_ends(&mut self, now: Time, block: BlockId, begun: Time, id: u64) -> Result<(), OrderViolation> {
        self.reads += 1;
        let state = self.blocks.entry(block).or_default();
        let judged = state.judge(begun, id);
        state.read_leaves(begun);
        judged.map_err(|(found, winner)| OrderViolation { block, found, winner, read_begun: begun, read_ended: now })
    }

    /// Checks a block that now holds `id`, as a read of zero duration.
    pub fn holds(&mut self, now: Time, block: BlockId, id: u64) -> Result<(), OrderViolation> {
        self.read_begins(now, block);
        self.read_ends(now, block, now, id)
    }

    /// Reads that were judged.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Writes that are remembered, over all blocks.
    pub fn remembered(&self) -> usize {
        self.blocks.values().map(Block::remembered).sum()
    }

    /// Blocks that were touched.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests;
