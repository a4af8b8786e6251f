//! Reads of sectors as commands of a disk, which has blocks of its own length and takes so many of
//! them at a time.

use crate::superblock::SUPERBLOCK_BYTES;
use live::Extent as Blocks;
use scalio::{Extent, RequestId, SECTOR_BYTES};
use slab::Slab;
use std::collections::VecDeque;

/// A part of a read: one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PieceId {
    read: usize,
    piece: u32,
}

/// A read that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// For the answer.
    pub request: RequestId,
    /// The sectors.
    pub extent: Extent,
    /// Their bytes; `None` where the disk failed.
    pub bytes: Option<Vec<u8>>,
}

/// A read whose commands are not all over.
struct Open {
    request: RequestId,
    extent: Extent,
    /// Commands that were issued.
    issued: u32,
    /// Commands that are not over.
    left: u32,
    has_failed: bool,
    /// What came, by command.
    came: Vec<Vec<u8>>,
}

/// Reads on their way.
pub struct Pieces {
    /// Bytes of a block, as a power of two.
    block_shift: u32,
    /// Blocks of a command at most.
    blocks_max: u32,
    open: Slab<Open>,
    /// Reads with commands to issue.
    waiting: VecDeque<usize>,
}

/// First byte and length of sectors on the disk.
fn place(extent: Extent) -> (u64, u64) {
    let bytes = u64::from(SECTOR_BYTES);
    (SUPERBLOCK_BYTES + extent.sector * bytes, u64::from(extent.sectors) * bytes)
}

impl Pieces {
    /// Of a disk with blocks of `block_bytes`, a power of two, and up to `blocks_max` of them in a
    /// command.
    pub fn new(block_bytes: u64, blocks_max: u32) -> Pieces {
        let block_shift = block_bytes.trailing_zeros();
        Pieces { block_shift, blocks_max: blocks_max.max(1), open: Slab::new(), waiting: VecDeque::new() }
    }

    /// The blocks that cover sectors.
    fn cover(&self, extent: Extent) -> (u64, u64) {
        let (at, bytes) = place(extent);
        let first = at >> self.block_shift;
        (first, (at + bytes).div_ceil(1 << self.block_shift) - first)
    }

    /// Takes a read of one sector or more.
    pub fn add(&mut self, request: RequestId, extent: Extent) {
        let (_, blocks) = self.cover(extent);
        let left = blocks.div_ceil(self.blocks_max.into()) as u32;
        let came = vec![Vec::new(); left as usize];
        self.waiting.push_back(self.open.insert(Open { request, extent, issued: 0, left, has_failed: false, came }));
    }

    /// The next command.
    pub fn next(&self) -> Option<(PieceId, Blocks)> {
        let read = *self.waiting.front()?;
        let piece = self.open[read].issued;
        Some((PieceId { read, piece }, self.blocks_of(read, piece)))
    }

    fn blocks_of(&self, read: usize, piece: u32) -> Blocks {
        let (first, blocks) = self.cover(self.open[read].extent);
        let before = u64::from(piece) * u64::from(self.blocks_max);
        Blocks { start: first + before, blocks: (blocks - before).min(self.blocks_max.into()) as u32 }
    }

    /// The next command was issued.
    pub fn issued(&mut self) {
        let Some(open) = self.waiting.front().map(|read| &mut self.open[*read]) else { return };
        open.issued += 1;
        if open.issued as usize == open.came.len() {
            self.waiting.pop_front();
        }
    }

    /// A command is over, with its blocks where it has not failed. Returns its read when that is
    /// over.
    pub fn ended(&mut self, id: PieceId, data: Option<Vec<u8>>) -> Option<Ended> {
        let bytes = (self.blocks_of(id.read, id.piece).blocks as usize) << self.block_shift;
        let open = &mut self.open[id.read];
        match data.filter(|data| data.len() == bytes) {
            Some(data) => open.came[id.piece as usize] = data,
            None => open.has_failed = true,
        }
        open.left -= 1;
        if open.left > 0 {
            return None;
        }
        let Open { request, extent, has_failed, came, .. } = self.open.remove(id.read);
        let bytes = (!has_failed).then(|| self.cut(extent, came));
        Some(Ended { request, extent, bytes })
    }

    /// The sectors of the blocks that cover them.
    fn cut(&self, extent: Extent, mut came: Vec<Vec<u8>>) -> Vec<u8> {
        let mut bytes = if came.len() == 1 { came.remove(0) } else { came.concat() };
        let (at, length) = place(extent);
        let skip = at - (self.cover(extent).0 << self.block_shift);
        bytes.drain(..skip as usize);
        bytes.truncate(length as usize);
        bytes
    }

    /// Takes all reads back: nothing more comes of them.
    pub fn take_back(&mut self) -> Vec<(RequestId, Extent)> {
        self.waiting.clear();
        self.open.drain().map(|open| (open.request, open.extent)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A byte of the disk.
    fn byte(at: u64) -> u8 {
        (at ^ at >> 9 ^ at >> 17) as u8
    }

    fn bytes(at: u64, length: u64) -> Vec<u8> {
        (at..at + length).map(byte).collect()
    }

    #[test]
    fn a_read_within_a_command_asks_for_the_blocks_that_cover_it() {
        let mut pieces = Pieces::new(4096, 8);
        pieces.add(RequestId(1), Extent { sector: 7, sectors: 2 });
        let (id, blocks) = pieces.next().expect("it waits");
        assert_eq!(blocks, Blocks { start: 1, blocks: 2 }, "sectors 7 and 8 lie in two blocks behind the superblock's");
        pieces.issued();
        assert_eq!(pieces.next(), None);
        let ended = pieces.ended(id, Some(bytes(4096, 8192))).expect("it was the only one");
        assert_eq!(ended.bytes, Some(bytes(4096 + 7 * 512, 1024)));
        assert!(pieces.open.is_empty());
    }

    #[test]
    fn a_failed_or_short_command_fails_its_read_alone() {
        for wrong in [None, Some(vec![0; 511])] {
            let mut pieces = Pieces::new(512, 1);
            let extents = [Extent { sector: 0, sectors: 2 }, Extent { sector: 9, sectors: 1 }];
            (0..).zip(extents).for_each(|(request, extent)| pieces.add(RequestId(request), extent));
            let mut ids = Vec::new();
            while let Some((id, blocks)) = pieces.next() {
                ids.push((id, blocks));
                pieces.issued();
            }
            assert_eq!(pieces.ended(ids[0].0, wrong), None);
            let first = pieces.ended(ids[1].0, Some(vec![0; 512])).expect("both are over");
            assert_eq!(first, Ended { request: RequestId(0), extent: extents[0], bytes: None });
            assert_eq!(pieces.take_back(), [(RequestId(1), extents[1])]);
            assert!(pieces.open.is_empty() && pieces.next().is_none());
        }
    }

    proptest! {
        /// Whatever ends first, each read gets its own bytes once, by commands that are not longer
        /// than allowed and ask for no other blocks.
        #[test]
        fn all_reads_get_their_bytes(
            shift in 9u32..14,
            blocks_max in 1u32..9,
            extents in prop::collection::vec((0u64..200, 1u32..40), 1..12),
            mut ends in any::<u64>(),
        ) {
            let mut pieces = Pieces::new(1 << shift, blocks_max);
            let (mut under_way, mut answered) = (Vec::new(), Vec::new());
            let mut asked = 0;
            for (number, (sector, sectors)) in (0..).zip(&extents) {
                pieces.add(RequestId(number), Extent { sector: *sector, sectors: *sectors });
            }
            while !pieces.open.is_empty() {
                // Some room of the queue.
                while under_way.len() < 5 && let Some((id, blocks)) = pieces.next() {
                    prop_assert!((1..=blocks_max).contains(&blocks.blocks));
                    asked += u64::from(blocks.blocks);
                    under_way.push((id, blocks));
                    pieces.issued();
                }
                let (id, blocks) = under_way.swap_remove(ends as usize % under_way.len());
                ends = ends.rotate_left(7).wrapping_mul(31).wrapping_add(1);
                answered.extend(pieces.ended(id, Some(bytes(blocks.start << shift, u64::from(blocks.blocks) << shift))));
            }
            prop_assert!(under_way.is_empty());
            let cover = |(sector, sectors): &(u64, u32)| {
                let (at, end) = (4096 + sector * 512, 4096 + (sector + u64::from(*sectors)) * 512);
                end.div_ceil(1 << shift) - at / (1 << shift)
            };
            prop_assert_eq!(asked, extents.iter().map(cover).sum::<u64>(), "no block is asked for in vain");
            answered.sort_by_key(|ended| ended.request);
            prop_assert_eq!(answered.len(), extents.len());
            for (ended, (sector, sectors)) in answered.into_iter().zip(extents) {
                prop_assert_eq!(ended.bytes, Some(bytes(4096 + sector * 512, u64::from(sectors) * 512)));
            }
        }
    }
}
