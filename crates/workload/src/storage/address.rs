//! Which block of a volume comes next.

use super::zipfian::{Zipfian, scramble};
use super::{Addresses, Config};

/// Chooses blocks in `0..blocks` of any volume.
#[derive(Clone, Debug)]
pub(super) struct Picker {
    blocks: u64,
    law: Law,
    volumes: Vec<Position>,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Uniform,
    Zipfian(Zipfian),
    Scrambled(Zipfian),
    Latest(Zipfian),
    Sequential,
}

/// State of a volume. A volume is full at the start: its newest block is its last.
#[derive(Clone, Copy, Debug)]
struct Position {
    next: u64,
    newest: u64,
}

impl Picker {
    pub(super) fn new(config: &Config) -> Picker {
        let blocks = config.working_set_blocks;
        let law = match config.addresses {
            Addresses::Uniform => Law::Uniform,
            Addresses::Zipfian { theta } => Law::Zipfian(Zipfian::new(blocks, theta)),
            Addresses::ScrambledZipfian { theta } => Law::Scrambled(Zipfian::ycsb(theta)),
            Addresses::Latest { theta } => Law::Latest(Zipfian::new(blocks, theta)),
            Addresses::Sequential => Law::Sequential,
        };
        let position = Position { next: 0, newest: blocks - 1 };
        Picker { blocks, law, volumes: vec![position; config.volumes as usize] }
    }

    /// The block of a draw from `[0, 1)`.
    pub(super) fn pick(&mut self, volume: u32, draw: f64) -> u64 {
        let position = &mut self.volumes[volume as usize];
        match &self.law {
            // There are at most 2^40 blocks and 2^53 draws: no block is noticeably likelier than
            // another.
            Law::Uniform => (draw * self.blocks as f64) as u64,
            Law::Zipfian(zipfian) => zipfian.rank(draw),
            Law::Scrambled(zipfian) => scramble(zipfian.rank(draw)) % self.blocks,
            Law::Latest(zipfian) => (position.newest + self.blocks - zipfian.rank(draw)) % self.blocks,
            Law::Sequential => {
                let block = position.next;
                position.next = (block + 1) % self.blocks;
                block
            }
        }
    }

    /// The block for an insertion, which becomes the volume's newest.
    pub(super) fn insert(&mut self, volume: u32) -> u64 {
        let newest = &mut self.volumes[volume as usize].newest;
        *newest = (*newest + 1) % self.blocks;
        *newest
    }

    /// Returns how many of `wanted` blocks from `block` on lie in the working set.
    pub(super) fn clip(&self, block: u64, wanted: u64) -> u64 {
        wanted.min(self.blocks - block)
    }
}
