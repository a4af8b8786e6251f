//! The near future: a ring of slots, each a chain of events whose times share their high bits.

use crate::bitmap::Bitmap;
use crate::slab::{Due, NONE, Slab};

/// The ring is refilled from the far future in this many steps a turn, so it always looks ahead at least 7/8 turn.
pub(crate) const BLOCKS: u64 = 8;

/// How picoseconds map to slots and blocks of slots. Slot and block numbers count from time zero, not round the ring.
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
    /// The block that a slot lies in.
    #[inline]
    pub(crate) fn block_of_slot(self, slot: u64) -> u64 {
        slot >> (self.slots_log - BLOCKS.ilog2())
    }
    pub(crate) fn first_slot(self, block: u64) -> u64 {
        block << (self.slots_log - BLOCKS.ilog2())
    }
    pub(crate) fn slots(self) -> usize {
        1 << self.slots_log
    }
}

/// The ring. It holds less than one turn at any time, so a place in it stands for one slot number.
pub(crate) struct Wheel {
    geometry: Geometry,
    /// The newest event of each slot: only this one is touched by a push, never another event's node.
    newest: Vec<u32>,
    occupied: Bitmap,
}

impl Wheel {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Wheel { geometry, newest: vec![NONE; geometry.slots()], occupied: Bitmap::new(geometry.slots()) }
    }
    #[inline]
    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }
    #[inline]
    fn place(&self, slot: u64) -> usize {
        slot as usize & (self.newest.len() - 1)
    }
    /// Adds an event to its slot.
    #[inline(always)]
    pub(crate) fn push<E: Copy>(&mut self, slab: &mut Slab<E>, at: u64, event: E) {
        let place = self.place(self.geometry.slot(at));
        let newest = &mut self.newest[place];
        *newest = slab.store(at, event, *newest);
        self.occupied.insert(place);
    }
    /// The first slot that holds something, at or after `cursor`, no event being in a slot before it.
    #[inline]
    pub(crate) fn next_occupied(&self, cursor: u64) -> Option<u64> {
        let start = self.place(cursor);
        let found = self.occupied.next(start).or_else(|| self.occupied.next(0))?;
        Some(cursor + (found.wrapping_sub(start) & (self.newest.len() - 1)) as u64)
    }
    /// The newest event of a slot; the chain runs towards the oldest.
    #[inline]
    pub(crate) fn newest(&self, slot: u64) -> u32 {
        self.newest[self.place(slot)]
    }
    /// Empties a slot and returns its newest event.
    #[inline]
    pub(crate) fn take(&mut self, slot: u64) -> u32 {
        let place = self.place(slot);
        self.occupied.remove(place);
        std::mem::replace(&mut self.newest[place], NONE)
    }
    /// Moves all events to the end of `all`. Those of equal time stay in the order in which they came.
    pub(crate) fn take_all<E: Copy>(&mut self, slab: &mut Slab<E>, all: &mut Vec<Due<E>>) {
        for place in self.occupied.iter() {
            let start = all.len();
            slab.drain(self.newest[place], |due| all.push(due));
            all[start..].reverse();
        }
        self.clear();
    }
    pub(crate) fn clear(&mut self) {
        self.newest.fill(NONE);
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
