//! Lending: free blocks leave for other regions, and blocks arrive.

use super::blocks::State;
use super::dies::RESERVE;
use super::{FtlError, SpareBlock, TranslationLayer};
use crate::ssd::geometry::BlockId;

/// Blocks of each die beside its data: one that the host fills, one that moved units fill, and the
/// reserve; hot units have two of their own to fill.
fn spare_blocks(hot_cold: bool) -> u32 {
    2 + RESERVE as u32 + 2 * u32::from(hot_cold)
}

impl TranslationLayer {
    /// Removes up to `count` free blocks from the region, each from the die with the most. Keeps
    /// two free blocks of each die, and the blocks that its logical units need.
    pub fn take_free(&mut self, count: u32) -> Vec<SpareBlock> {
        (0..count).map_while(|_| self.take_one()).collect()
    }
    /// Takes a certain block out of the region: one that is free, under the conditions of
    /// [`take_free`](Self::take_free).
    pub fn take_block(&mut self, block: BlockId) -> Option<SpareBlock> {
        let slot = self.blocks.slot_of(block).filter(|slot| self.blocks.state(*slot) == State::Free)?;
        let die = self.die_of(slot);
        self.can_spare(die).then(|| self.take_slot(die, slot))
    }
    /// Adds erased blocks, with their wear. Fails, without effect, if the array has no such block,
    /// it is owned already, or occurs twice.
    pub fn give(&mut self, blocks: &[SpareBlock]) -> Result<(), FtlError> {
        self.check_new(blocks)?;
        let missing = self.count_missing_slots(blocks);
        let first = self.blocks.slots();
        self.blocks.grow(missing);
        self.mapping.grow(first + missing);
        let mut next = first;
        for spare in blocks {
            self.arrive(*spare, &mut next);
        }
        Ok(())
    }
    /// Units that the region can hold beside the spare blocks of its dies.
    pub fn units_max(&self) -> u64 {
        let spare = spare_blocks(self.config.hot_cold);
        let blocks: u64 = self.dies.iter().map(|die| u64::from(die.owned.saturating_sub(spare))).sum();
        blocks * u64::from(self.units_per_block)
    }

    pub(super) fn check_spare(&self) -> Result<(), FtlError> {
        if self.units_max() >= self.config.logical_units {
            return Ok(());
        }
        Err(FtlError::NoSpare {
            logical_units: self.config.logical_units,
            units_max: self.units_max(),
            blocks: self.owned_blocks(),
            dies: self.dies.len(),
            spare: spare_blocks(self.config.hot_cold),
        })
    }

    fn take_one(&mut self) -> Option<SpareBlock> {
        let fullest = (0..self.dies.len()).rev().max_by_key(|die| self.dies.get(*die).free.len())?;
        if !self.can_spare(fullest) {
            return None;
        }
        let slot = *self.dies.get(fullest).free.front()?;
        Some(self.take_slot(fullest, slot))
    }
    /// Returns whether a die keeps a free block for the host and its reserve, and the region what
    /// its units need.
    fn can_spare(&self, die: u32) -> bool {
        let counts = self.dies.get(die).owned > spare_blocks(self.config.hot_cold);
        let left = self.units_max() - u64::from(counts) * u64::from(self.units_per_block);
        self.dies.get(die).free.len() > RESERVE + 1 && left >= self.config.logical_units
    }
    fn take_slot(&mut self, place: u32, slot: u32) -> SpareBlock {
        let die = self.dies.get_mut(place);
        die.free.retain(|other| *other != slot);
        die.owned -= 1;
        die.vacant.push(slot);
        self.dies.note_ready(place);
        let (block, erases) = self.blocks.leave(slot);
        SpareBlock { block, erases }
    }
    fn check_new(&self, blocks: &[SpareBlock]) -> Result<(), FtlError> {
        let count = self.config.geometry.blocks();
        let mut sorted: Vec<BlockId> = blocks.iter().map(|spare| spare.block).collect();
        sorted.sort();
        if let Some(block) = sorted.last().copied().filter(|block| block.0 >= count) {
            return Err(FtlError::UnknownBlock { block, blocks: count });
        }
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let owned = sorted.iter().copied().find(|block| self.blocks.slot_of(*block).is_some());
        match twice.or(owned) {
            Some(block) => Err(FtlError::OwnedAlready { block }),
            None => Ok(()),
        }
    }
    fn count_missing_slots(&mut self, blocks: &[SpareBlock]) -> u32 {
        let mut arriving = vec![0u32; self.config.geometry.dies() as usize];
        blocks.iter().for_each(|spare| arriving[self.config.geometry.die_of(spare.block).0 as usize] += 1);
        let vacant = |id| self.dies.find(id).map_or(0, |die| die.vacant.len() as u32);
        (0u32..).zip(arriving).map(|(id, count)| count.saturating_sub(vacant(crate::ssd::DieId(id)))).sum()
    }
    /// Puts a block into a vacant slot of its die, or into the next of the new ones.
    fn arrive(&mut self, spare: SpareBlock, next: &mut u32) {
        let place = self.dies.place_or_add(self.config.geometry.die_of(spare.block));
        let die = self.dies.get_mut(place);
        let slot = die.vacant.pop().unwrap_or_else(|| {
            die.add_slot(*next);
            *next += 1;
            *next - 1
        });
        die.free.push_back(slot);
        die.owned += 1;
        self.dies.note_ready(place);
        self.blocks.arrive(slot, spare.block, spare.erases);
    }
}
