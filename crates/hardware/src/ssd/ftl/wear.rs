//! Wear: erase counts, and moving data that lie still out of blocks that are worn least.

use super::blocks::State;
use super::{SpareBlock, TranslationLayer, Wear};
use crate::ssd::geometry::BlockId;

impl TranslationLayer {
    /// Static wear levelling. Checks one die per call, dies in turn. If its most worn good block is
    /// more than `spread_max` erases ahead of its least worn full one, the latter becomes a victim,
    /// to be moved and erased as any other. Its data are written to the most worn free blocks of
    /// the die.
    pub fn level_step(&mut self, spread_max: u32) -> Option<BlockId> {
        if self.dies.len() == 0 {
            return None;
        }
        self.settle();
        let [_, turn] = self.search_turns;
        self.search_turns[1] = (turn + 1) % self.dies.len();
        let slot = self.slot_to_level(turn, spread_max)?;
        // Only its own die's blocks are levelled with it.
        if self.target_of(slot) != Some(turn) || !self.begin(slot, true) {
            return None;
        }
        self.counters.levelled_blocks += 1;
        Some(self.blocks.block_of(slot))
    }
    /// The least worn of the full blocks, where data have been static for longest. Visits every
    /// block.
    pub fn coldest(&self) -> Option<BlockId> {
        let full = self.blocks.good().filter(|slot| self.blocks.state(*slot) == State::Full);
        full.min_by_key(|slot| self.blocks.erases(*slot)).map(|slot| self.blocks.block_of(slot))
    }
    /// The most worn of the good blocks. Visits every block.
    pub fn hottest(&self) -> Option<BlockId> {
        self.blocks.good().max_by_key(|slot| self.blocks.erases(*slot)).map(|slot| self.blocks.block_of(slot))
    }
    /// Sum of the erase counts of the good blocks; 0 if there are none. Visits every block.
    pub fn wear(&self) -> Wear {
        let mut wear = Wear { min: u32::MAX, mean: 0.0, max: 0, blocks: 0 };
        let mut sum = 0;
        for erases in self.blocks.good().map(|slot| self.blocks.erases(slot)) {
            wear = Wear { min: wear.min.min(erases), max: wear.max.max(erases), blocks: wear.blocks + 1, ..wear };
            sum += u64::from(erases);
        }
        Wear { min: wear.min.min(wear.max), mean: sum as f64 / f64::from(wear.blocks.max(1)), ..wear }
    }
    /// How often a block was erased; `None` if the region does not own it. Bad blocks count.
    pub fn erases_of(&self, block: BlockId) -> Option<u32> {
        self.blocks.slot_of(block).map(|slot| self.blocks.erases(slot))
    }
    /// The good blocks with their erase counts.
    pub fn erase_counts(&self) -> Vec<SpareBlock> {
        let spare = |slot| SpareBlock { block: self.blocks.block_of(slot), erases: self.blocks.erases(slot) };
        self.blocks.good().map(spare).collect()
    }

    /// Takes the most worn free block of a die out of its queue; of equals the one that waited
    /// longest.
    pub(super) fn most_worn_free(&mut self, die: u32) -> Option<u32> {
        let free = &self.dies.get(die).free;
        let most = free.iter().map(|slot| self.blocks.erases(*slot)).max()?;
        let at = free.iter().position(|slot| self.blocks.erases(*slot) == most)?;
        self.dies.get_mut(die).free.remove(at)
    }
    fn slot_to_level(&self, die: u32, spread_max: u32) -> Option<u32> {
        let (mut most, mut coldest) = (0, None::<(u32, u32)>);
        for slot in self.dies.get(die).slots() {
            let (state, erases) = (self.blocks.state(slot), self.blocks.erases(slot));
            if !matches!(state, State::Vacant | State::Bad) {
                most = most.max(erases);
            }
            if state == State::Full && coldest.is_none_or(|(least, _)| erases < least) {
                coldest = Some((erases, slot));
            }
        }
        coldest.filter(|(least, _)| most - least > spread_max).map(|(_, slot)| slot)
    }
}
