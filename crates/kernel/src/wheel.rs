//! The near future: a ring of slots, each a chain of events whose times share their high bits.

use crate::bitmap::Bitmap;
use crate::slab::{Chain, Due, Slab};

/// Number of refills from the far future per turn. The wheel thus covers at least 7/8 turn ahead.
pub(crate) const BLOCKS: u64 = 8;

/// The mapping of picoseconds to slots and blocks of slots. Slot and block numbers count from time
/// zero, not around the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// A slot is `2^shift` picoseconds wide.
    pub shift: u32,
    /// The ring has `2^slots_log` slots.
    pub slots_log: u32,
}

impl Geometry {
    #[inline]
    pub(crate) fn slot(self, at: u64) -> u64 {
        at >> self.shift
    }
    #[inline]
    pub(crate) fn block(self, at: u64) -> u64 {
        at >> (self.shift + self.slots_log - BLOCKS.ilog2())
    }
    /// Returns the block of a slot.
    #[inline]
    pub(crate) fn block_of_slot(self, slot: u64) -> u64 {
        slot >> (self.slots_log - BLOCKS.ilog2())
    }
    pub(crate) fn first_slot(self, block: u64) -> u64 {
        block << (self.slots_log - BLOCKS.ilog2())
    }
    /// Returns the start of a slot, in picoseconds.
    #[inline]
    pub(crate) fn start(self, slot: u64) -> u64 {
        slot << self.shift
    }
    pub(crate) fn slots(self) -> usize {
        1 << self.slots_log
    }
}

/// The ring. It covers less than one turn at any time, so each entry belongs to one slot number.
pub(crate) struct Wheel {
    geometry: Geometry,
    /// The events of each slot.
    chains: Vec<Chain>,
    occupied: Bitmap,
}

impl Wheel {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Wheel { geometry, chains: vec![Chain::EMPTY; geometry.slots()], occupied: Bitmap::new(geometry.slots()) }
    }
    #[inline]
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }
    #[inline]
    fn place(&self, slot: u64) -> usize {
        slot as usize & (self.chains.len() - 1)
    }
    /// Adds an event to its slot.
    #[inline(always)]
    pub(crate) fn push<E: Copy>(&mut self, slab: &mut Slab<E>, at: u64, event: E) {
        let place = self.place(self.geometry.slot(at));
        let chain = &mut self.chains[place];
        let before = *chain;
        *chain = slab.store(at, event, before);
        // If the newest bundle had room, the slot is known to be occupied.
        if before.is_full() {
            self.occupied.insert(place);
        }
    }
    /// Returns the first occupied slot at or after `cursor`; no event may be in a slot before it.
    #[inline]
    pub(crate) fn next_occupied(&self, cursor: u64) -> Option<u64> {
        let start = self.place(cursor);
        let found = self.occupied.next(start).or_else(|| self.occupied.next(0))?;
        Some(cursor + (found.wrapping_sub(start) & (self.chains.len() - 1)) as u64)
    }
    /// Returns the events of a slot.
    #[inline]
    pub(crate) fn chain(&self, slot: u64) -> Chain {
        self.chains[self.place(slot)]
    }
    /// Empties a slot and returns its events.
    #[inline]
    pub(crate) fn take(&mut self, slot: u64) -> Chain {
        let place = self.place(slot);
        self.occupied.remove(place);
        std::mem::replace(&mut self.chains[place], Chain::EMPTY)
    }
    /// Moves all events to the end of `all`; none may be in a slot before `cursor`. Events of equal
    /// time keep their order.
    pub(crate) fn take_all<E: Copy>(&mut self, slab: &mut Slab<E>, cursor: u64, all: &mut Vec<Due<E>>) {
        let mut from = cursor;
        while let Some(slot) = self.next_occupied(from) {
            let start = all.len();
            let chain = self.take(slot);
            slab.drain(chain, self.geometry.start(slot), all);
            all[start..].reverse();
            from = slot;
        }
        self.clear();
    }
    pub(crate) fn clear(&mut self) {
        self.chains.fill(Chain::EMPTY);
        self.occupied.clear();
    }
    /// Changes the geometry of an empty ring.
    pub(crate) fn reshape(&mut self, geometry: Geometry) {
        if geometry.slots_log == self.geometry.slots_log {
            self.geometry = geometry;
        } else {
            *self = Wheel::new(geometry);
        }
    }
}
