//! The blocks of a region: what each is doing, how much of it is valid, how worn it is.

use super::min_tree::MinTree;
use crate::ssd::geometry::BlockId;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// The slot has no block: it was lent to somebody or given back.
    Vacant,
    /// Erased, in its die's queue.
    Free,
    /// Units are being written into it.
    Open,
    /// Wholly written; may become a victim.
    Full,
    /// Its valid units are being moved, then it is erased.
    Victim,
    /// Past its endurance, and empty.
    Bad,
}

impl State {
    /// The state that a snapshot means by a number.
    pub(super) fn from_number(number: u64) -> Option<State> {
        [State::Vacant, State::Free, State::Open, State::Full, State::Victim, State::Bad].get(number as usize).copied()
    }
}

/// Which units share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stream {
    /// Of the host: all of them, or without separation of hot and cold those that live long.
    Cold,
    /// Of the host, soon overwritten.
    Hot,
    /// Moved out of victims; with hot and cold apart, those that were not hot.
    Moved,
    /// Moved out of victims of the hot stream.
    Warm,
}

impl Stream {
    /// The stream that what is valid in one of its blocks is moved to.
    pub(super) fn after_move(self) -> Stream {
        if self == Stream::Hot { Stream::Warm } else { Stream::Moved }
    }
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Stream; 4] = [Stream::Cold, Stream::Hot, Stream::Moved, Stream::Warm];
}

const NONE: u32 = u32::MAX;
/// Marks the valid count of a block that is no candidate for a victim, so that it is above that of
/// every candidate.
const NO_CANDIDATE: u32 = 1 << 31;

/// Tables by *slot*, the region's own number of a block. A block that leaves makes its slot vacant,
/// for another block of the same die.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    block_of: Vec<u32>,
    /// By block of the array.
    slot_of: Vec<u32>,
    state: Vec<State>,
    stream: Vec<Stream>,
    erases: Vec<u32>,
    /// Number of filled blocks of the region when this one was filled.
    filled_at: Vec<u32>,
    valid: MinTree,
    /// Blocks filled so far; wraps.
    filled: u32,
}

impl Blocks {
    /// No slots, of an array of `blocks` blocks.
    pub(super) fn new(blocks: u32) -> Blocks {
        Blocks {
            block_of: Vec::new(),
            slot_of: vec![NONE; blocks as usize],
            state: Vec::new(),
            stream: Vec::new(),
            erases: Vec::new(),
            filled_at: Vec::new(),
            valid: MinTree::new(0),
            filled: 0,
        }
    }
    /// Makes `count` more slots, all vacant.
    pub(super) fn grow(&mut self, count: u32) {
        let slots = self.slots() as usize + count as usize;
        grow(&mut self.block_of, slots, NONE);
        grow(&mut self.state, slots, State::Vacant);
        grow(&mut self.stream, slots, Stream::Cold);
        grow(&mut self.erases, slots, 0);
        grow(&mut self.filled_at, slots, 0);
        let had = self.valid.len() as u32;
        self.valid.grow(slots);
        (had..slots as u32).for_each(|slot| self.valid.set_hidden(slot, NO_CANDIDATE));
    }
    pub(super) fn slots(&self) -> u32 {
        self.block_of.len() as u32
    }
    pub(super) fn slot_of(&self, block: BlockId) -> Option<u32> {
        self.slot_of.get(block.0 as usize).copied().filter(|slot| *slot != NONE)
    }
    /// The block of a slot that is not vacant.
    #[inline]
    pub(super) fn block_of(&self, slot: u32) -> BlockId {
        BlockId(self.block_of[slot as usize])
    }
    #[inline]
    pub(super) fn state(&self, slot: u32) -> State {
        self.state[slot as usize]
    }
    pub(super) fn stream(&self, slot: u32) -> Stream {
        self.stream[slot as usize]
    }
    pub(super) fn erases(&self, slot: u32) -> u32 {
        self.erases[slot as usize]
    }
    pub(super) fn valid(&self, slot: u32) -> u32 {
        self.valid.get(slot) & !NO_CANDIDATE
    }
    /// The valid units of a candidate for a victim: a block that is full, with less than `limit`
    /// units valid.
    pub(super) fn candidate(&self, slot: u32, limit: u32) -> Option<u32> {
        Some(self.valid.get(slot)).filter(|valid| *valid < limit)
    }
    /// The candidate with the fewest valid units, and those, in a range of slots.
    pub(super) fn emptiest(&self, from: u32, to: u32, limit: u32) -> Option<(u32, u32)> {
        self.valid.lowest(from, to, limit)
    }
    /// Returns the number of blocks filled since this one, which must be filled.
    pub(super) fn age(&self, slot: u32) -> u32 {
        self.filled.wrapping_sub(self.filled_at[slot as usize])
    }
    /// Slots whose blocks are owned and good.
    pub(super) fn good(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots()).filter(|slot| !matches!(self.state(*slot), State::Vacant | State::Bad))
    }

    /// Puts an erased block into a vacant slot.
    pub(super) fn arrive(&mut self, slot: u32, block: BlockId, erases: u32) {
        self.block_of[slot as usize] = block.0;
        self.slot_of[block.0 as usize] = slot;
        self.erases[slot as usize] = erases;
        self.state[slot as usize] = State::Free;
    }
    /// Takes the block out of a slot that is free.
    pub(super) fn leave(&mut self, slot: u32) -> (BlockId, u32) {
        let block = self.block_of(slot);
        self.slot_of[block.0 as usize] = NONE;
        self.block_of[slot as usize] = NONE;
        self.state[slot as usize] = State::Vacant;
        (block, self.erases(slot))
    }
    pub(super) fn open(&mut self, slot: u32, stream: Stream) {
        self.state[slot as usize] = State::Open;
        self.stream[slot as usize] = stream;
    }
    /// One more unit of an open block is valid.
    #[inline]
    pub(super) fn add_valid(&mut self, slot: u32) {
        self.valid.set_hidden(slot, self.valid.get(slot) + 1);
    }
    /// One unit less is valid.
    #[inline]
    pub(super) fn drop_valid(&mut self, slot: u32) {
        self.valid.lower(slot, self.valid.get(slot) - 1);
    }
    pub(super) fn fill(&mut self, slot: u32) {
        self.state[slot as usize] = State::Full;
        self.filled_at[slot as usize] = self.filled;
        self.filled = self.filled.wrapping_add(1);
        self.valid.set(slot, self.valid(slot));
    }
    pub(super) fn collect(&mut self, slot: u32) {
        self.state[slot as usize] = State::Victim;
        self.valid.set(slot, self.valid(slot) | NO_CANDIDATE);
    }
    /// Erases a block once more, after which it is free or bad; returns which.
    pub(super) fn erase(&mut self, slot: u32, endurance: Option<u32>) -> State {
        let erases = &mut self.erases[slot as usize];
        *erases = erases.saturating_add(1);
        let is_bad = endurance.is_some_and(|endurance| *erases >= endurance);
        self.state[slot as usize] = if is_bad { State::Bad } else { State::Free };
        self.state(slot)
    }
    pub(super) fn memory_bytes(&self) -> u64 {
        let words =
            self.block_of.capacity() + self.slot_of.capacity() + self.erases.capacity() + self.filled_at.capacity();
        words as u64 * 4 + (self.state.capacity() + self.stream.capacity()) as u64 + self.valid.memory_bytes()
    }

    /// What a snapshot keeps of a slot, beside its valid count, which follows from the map.
    pub(super) fn row(&self, slot: u32) -> [u64; 5] {
        let at = slot as usize;
        let numbers = [self.block_of[at], self.state[at] as u32, self.stream[at] as u32, self.erases[at]];
        let [block, state, stream, erases] = numbers.map(u64::from);
        [block, state, stream, erases, u64::from(self.filled_at[at])]
    }
    pub(super) fn filled(&self) -> u32 {
        self.filled
    }
    pub(super) fn set_filled(&mut self, filled: u32) {
        self.filled = filled;
    }
    /// Loads a row of a snapshot; false if it is impossible.
    pub(super) fn set_row(&mut self, slot: u32, row: [u64; 5]) -> bool {
        let [block, state, stream, erases, filled_at] = row;
        let (Some(state), Some(stream)) = (State::from_number(state), Stream::ALL.get(stream as usize)) else {
            return false;
        };
        let (Ok(erases), Ok(filled_at)) = (u32::try_from(erases), u32::try_from(filled_at)) else {
            return false;
        };
        if state != State::Vacant {
            match self.slot_of.get_mut(block as usize) {
                Some(entry) if *entry == NONE => *entry = slot,
                _ => return false,
            }
            self.block_of[slot as usize] = block as u32;
        }
        self.state[slot as usize] = state;
        self.stream[slot as usize] = *stream;
        self.erases[slot as usize] = erases;
        self.filled_at[slot as usize] = filled_at;
        true
    }
    /// Loads the valid count of a slot with a known state.
    pub(super) fn set_valid(&mut self, slot: u32, valid: u32) {
        let is_candidate = self.state(slot) == State::Full;
        self.valid.set(slot, if is_candidate { valid } else { valid | NO_CANDIDATE });
    }
}

fn grow<T: Clone>(table: &mut Vec<T>, len: usize, value: T) {
    table.reserve_exact(len - table.len());
    table.resize(len, value);
}
