//! The first layer of the index as a host without bytes keeps it: what memory does with one
//! operation.

use crate::{Block, BlockHeader, MemoryAnswer, MemoryOperation, Slot, Value};
use prefetch_index::prefetch_index;

/// The part of a block that an operation changes, as far as concurrent readers can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The word of this slot.
    Word(u8),
    /// A payload, or the header.
    Other,
    /// Everything.
    All,
}

/// All blocks of a store, each operation on them atomic.
#[derive(Clone, Debug)]
pub struct Index<V> {
    /// `None`: closed.
    headers: Vec<Option<BlockHeader>>,
    slots: Vec<Slot<V>>,
    slots_per_block: usize,
}

impl<V: Value> Index<V> {
    /// `blocks` blocks of `slots` unused slots.
    pub fn new(blocks: u32, slots: u8) -> Index<V> {
        let count = blocks as usize * usize::from(slots);
        let slots_per_block = usize::from(slots);
        Index {
            headers: vec![Some(BlockHeader::default()); blocks as usize],
            slots: (0..count).map(|_| Slot::fresh(0)).collect(),
            slots_per_block,
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        self.headers.len() as u32
    }
    /// The header of a block; `None` while its server recovers.
    pub fn header(&self, block: u32) -> Option<BlockHeader> {
        self.headers[block as usize]
    }
    /// Its slots.
    pub fn slots(&self, block: u32) -> &[Slot<V>] {
        let first = block as usize * self.slots_per_block;
        &self.slots[first..first + self.slots_per_block]
    }

    /// The change that an operation would make to a block now; `None` if readers cannot tell. The
    /// time of a slot's last use is a hint and does not count.
    pub fn change(&self, block: u32, operation: &MemoryOperation<V>) -> Option<Change> {
        match operation {
            MemoryOperation::Swap { slot, expected, .. } => {
                let found = self.slots(block).get(usize::from(*slot)).map(|slot| slot.word);
                (found == Some(*expected)).then_some(Change::Word(*slot))
            }
            MemoryOperation::StoreFlags { slot, .. } => Some(Change::Word(*slot)),
            MemoryOperation::WritePayload { .. } | MemoryOperation::Publish { .. } | MemoryOperation::Close => {
                Some(Change::Other)
            }
            MemoryOperation::Reset { .. } => Some(Change::All),
            MemoryOperation::ReadBlock | MemoryOperation::Check { .. } | MemoryOperation::Touch { .. } => None,
        }
    }

    /// Carries out an operation. A slot that the block does not have answers
    /// [`MemoryAnswer::Unreachable`].
    pub fn carry_out(&mut self, block: u32, operation: MemoryOperation<V>) -> MemoryAnswer<V> {
        match operation {
            MemoryOperation::ReadBlock => self.block(block).map_or(MemoryAnswer::Unreachable, MemoryAnswer::Block),
            MemoryOperation::Check { slot } => match (self.slots(block).get(usize::from(slot)), self.block(block)) {
                (Some(Slot { word, .. }), Some(block)) => MemoryAnswer::Checked { word: *word, block },
                _ => MemoryAnswer::Unreachable,
            },
            MemoryOperation::Publish { segment } => {
                self.headers[block as usize].get_or_insert_default().segment = Some(segment);
                MemoryAnswer::Done
            }
            MemoryOperation::Close => {
                self.headers[block as usize] = None;
                MemoryAnswer::Done
            }
            MemoryOperation::Reset { header } => self.reset(block, header),
            MemoryOperation::Swap { slot, expected, new } => self.on_slot(block, slot, |slot| {
                let found = slot.word;
                if found == expected {
                    slot.word = new;
                }
                MemoryAnswer::Found(found)
            }),
            MemoryOperation::WritePayload { slot, payload } => self.on_slot(block, slot, |slot| {
                slot.payload = Some(payload);
                MemoryAnswer::Done
            }),
            MemoryOperation::Touch { slot, at } => self.on_slot(block, slot, |slot| {
                slot.last_use = at;
                MemoryAnswer::Done
            }),
            MemoryOperation::StoreFlags { slot, occupied, complete, lease } => self.on_slot(block, slot, |slot| {
                let word = slot.word.with_flags(occupied, complete);
                slot.word = lease.map_or(word, |lease| word.with_lease(lease));
                MemoryAnswer::Done
            }),
        }
    }

    /// Prefetches a block that will be read or changed soon.
    #[inline]
    pub fn prefetch(&self, block: u32) {
        let first = block as usize * self.slots_per_block;
        prefetch_index(&self.headers, block as usize);
        (first..first + self.slots_per_block).for_each(|slot| prefetch_index(&self.slots, slot));
    }

    fn block(&self, block: u32) -> Option<Block<V>> {
        Some(Block { header: self.header(block)?, slots: self.slots(block).to_vec() })
    }

    fn reset(&mut self, block: u32, header: BlockHeader) -> MemoryAnswer<V> {
        self.headers[block as usize] = Some(header);
        let first = block as usize * self.slots_per_block;
        self.slots[first..first + self.slots_per_block].fill_with(|| Slot::fresh(header.epoch));
        MemoryAnswer::Done
    }

    fn on_slot(&mut self, block: u32, slot: u8, act: impl FnOnce(&mut Slot<V>) -> MemoryAnswer<V>) -> MemoryAnswer<V> {
        let first = block as usize * self.slots_per_block;
        let slots = &mut self.slots[first..first + self.slots_per_block];
        slots.get_mut(usize::from(slot)).map_or(MemoryAnswer::Unreachable, act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SlotWord, Token};
    use base::Time;

    #[test]
    fn a_swap_changes_a_word_only_if_it_finds_what_it_expects() {
        let mut index: Index<Token> = Index::new(2, 3);
        let expected = index.slots(1)[2].word;
        let new = SlotWord(expected.0 ^ 1);
        let swap = MemoryOperation::Swap { slot: 2, expected, new };
        assert_eq!(index.change(1, &swap), Some(Change::Word(2)));
        index.carry_out(1, swap.clone());
        assert_eq!(index.change(1, &swap), None);
    }

    #[test]
    fn the_time_of_the_last_use_is_no_change() {
        let index: Index<Token> = Index::new(2, 3);
        assert_eq!(index.change(0, &MemoryOperation::Touch { slot: 0, at: Time::us(1) }), None);
        assert_eq!(index.change(0, &MemoryOperation::Close), Some(Change::Other));
        let reset = MemoryOperation::Reset { header: BlockHeader::default() };
        assert_eq!(index.change(0, &reset), Some(Change::All));
    }
}
