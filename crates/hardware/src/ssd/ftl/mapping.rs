//! The two directions of the map, packed: the place of a logical unit, and the owner of a physical
//! unit.
//!
//! Forward, a unit has its whole place. Backward, a place has only a *group* of neighbouring units;
//! a search among their forward entries finds the owner. These are adjacent in memory, mostly in
//! one cache line, and the matching one is about to be changed anyway. The bits saved (three to
//! five of 25 in a large drive) thus cost hardly a further cache miss. With six a relocation took
//! half as long again as with three. Rejected: dropping bits of the forward entry instead, which
//! makes every overwrite by the host search a second table.

use super::packed::PackedVec;
use std::hint::black_box;

/// A physical unit: a slot is the region's own number of a block, the offset the unit's number in
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) slot: u32,
    pub(super) offset: u32,
}

/// From this many physical units on, places keep groups with this many bits of units. Memory
/// matters more with more units; below the first, places keep the unit. The steps are ours: 512 GB
/// in units of 16 KiB take less than 200 MB, also with spare space of 12.5 %.
const GROUPS: [(u64, u32); 2] = [(1 << 24, 3), (1 << 25, 5)];
/// The most that a snapshot may have.
const GROUP_BITS_MAX: u32 = 6;

/// The map of a region.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    /// By logical unit: the place + 1, or 0.
    forward: PackedVec,
    /// By physical unit: the group of the logical unit that was written there last.
    groups: PackedVec,
    /// By slot, whole words each: units that were written and are no longer valid.
    invalid: Vec<u64>,
    group_bits: u32,
    offset_bits: u32,
    units_per_block: u32,
}

impl Mapping {
    /// A map of `units` logical units, none mapped, to `slots` slots.
    pub(super) fn new(units: u64, slots: u32, units_per_block: u32) -> Mapping {
        let physical = u64::from(slots) * u64::from(units_per_block);
        let step = GROUPS.iter().rev().find(|(from, _)| *from <= physical);
        Mapping::with_groups(units, slots, units_per_block, step.map_or(0, |(_, bits)| *bits))
    }
    /// The same, with places that keep groups of `2^group_bits` units.
    pub(super) fn with_groups(units: u64, slots: u32, units_per_block: u32, group_bits: u32) -> Mapping {
        let offset_bits = u32::BITS - (units_per_block - 1).leading_zeros();
        let physical = u64::from(slots) * u64::from(units_per_block);
        Mapping {
            forward: PackedVec::zeros(units, bits_for(u64::from(slots) << offset_bits)),
            groups: PackedVec::zeros(physical, bits_for(units.saturating_sub(1) >> group_bits)),
            invalid: vec![0; slots as usize * units_per_block.div_ceil(64) as usize],
            group_bits,
            offset_bits,
            units_per_block,
        }
    }
    /// Logical units.
    pub(super) fn units(&self) -> u64 {
        self.forward.len()
    }
    /// Where a unit lies. The unit must be in range.
    #[inline]
    pub(super) fn locate(&self, unit: u64) -> Option<Place> {
        let entry = self.forward.get(unit).checked_sub(1)?;
        Some(Place { slot: (entry >> self.offset_bits) as u32, offset: (entry & ((1 << self.offset_bits) - 1)) as u32 })
    }
    /// Reads the entry of a unit, which must be in range, and says nothing about it.
    #[inline]
    pub(super) fn touch(&self, unit: u64) -> u64 {
        self.forward.get(unit)
    }
    /// Says that a unit is written to a place that holds nothing yet; where the unit lies is still
    /// as before.
    #[inline]
    pub(super) fn hold(&mut self, place: Place, unit: u64) {
        self.groups.set(self.index(place), unit >> self.group_bits);
    }
    /// Says that a unit lies at a place that holds it.
    #[inline]
    pub(super) fn point(&mut self, unit: u64, place: Place) {
        self.forward.set(unit, self.entry(place));
    }
    /// Maps a unit to nothing.
    pub(super) fn unmap(&mut self, unit: u64) {
        self.forward.set(unit, 0);
    }
    /// The unit whose valid data are at a place.
    #[inline]
    pub(super) fn owner(&self, place: Place) -> Option<u64> {
        let first = self.groups.get(self.index(place)) << self.group_bits;
        self.forward.position(first, first + (1 << self.group_bits), self.entry(place))
    }
    /// Returns whether a place keeps the group of a unit.
    pub(super) fn is_of_group(&self, place: Place, unit: u64) -> bool {
        self.groups.get(self.index(place)) == unit >> self.group_bits
    }
    /// Says that what was written at a place is not valid any more.
    #[inline]
    pub(super) fn invalidate(&mut self, place: Place) {
        let word = self.word(place);
        self.invalid[word] |= 1 << (place.offset % 64);
    }
    #[inline]
    pub(super) fn is_invalid(&self, place: Place) -> bool {
        self.invalid[self.word(place)] >> (place.offset % 64) & 1 == 1
    }
    /// Forgets what was written into a slot.
    pub(super) fn clear(&mut self, slot: u32) {
        let words = self.words_per_slot();
        self.invalid[slot as usize * words..(slot as usize + 1) * words].fill(0);
    }
    /// The first offset from `from` on that is not invalid, in a slot that was wholly written.
    pub(super) fn next_valid(&self, slot: u32, from: u32) -> Option<u32> {
        let base = slot as usize * self.words_per_slot();
        let mut offset = from;
        while offset < self.units_per_block {
            let valid = !self.invalid[base + (offset / 64) as usize] >> (offset % 64);
            if valid != 0 {
                let found = offset + valid.trailing_zeros();
                return (found < self.units_per_block).then_some(found);
            }
            offset = (offset / 64 + 1) * 64;
        }
        None
    }
    /// Invalid units of a slot.
    pub(super) fn invalid_units(&self, slot: u32) -> u32 {
        let words = self.words_per_slot();
        self.invalid[slot as usize * words..(slot as usize + 1) * words].iter().map(|word| word.count_ones()).sum()
    }
    /// Prefetches the forward entries of the valid units from `offset` to `end`, all at once: one
    /// after the other they would each wait for memory.
    pub(super) fn warm(&self, slot: u32, offset: u32, end: u32) {
        let places = (offset..end.min(self.units_per_block)).map(|offset| Place { slot, offset });
        let mut seen = 0;
        for place in places.filter(|place| !self.is_invalid(*place)) {
            let first = self.groups.get(self.index(place)) << self.group_bits;
            seen ^= self.forward.touch(first, first + (1 << self.group_bits) - 1);
        }
        black_box(seen);
    }
    /// Makes room for `slots` slots.
    pub(super) fn grow(&mut self, slots: u32) {
        self.forward.widen(bits_for(u64::from(slots) << self.offset_bits));
        self.groups.grow(u64::from(slots) * u64::from(self.units_per_block));
        let words = slots as usize * self.words_per_slot();
        self.invalid.reserve_exact(words.saturating_sub(self.invalid.len()));
        self.invalid.resize(words, 0);
    }
    pub(super) fn memory_bytes(&self) -> u64 {
        self.forward.memory_bytes() + self.groups.memory_bytes() + self.invalid.capacity() as u64 * 8
    }
    /// What a snapshot keeps: the widths that the tables have grown to, then the tables.
    pub(super) fn widths(&self) -> [u64; 2] {
        [u64::from(self.group_bits), u64::from(self.forward.width())]
    }
    pub(super) fn tables(&self) -> [&[u64]; 3] {
        [self.forward.words(), self.groups.words(), &self.invalid]
    }
    /// A map with the widths of a snapshot, if they are possible ones.
    pub(super) fn with_widths(units: u64, slots: u32, units_per_block: u32, widths: [u64; 2]) -> Option<Mapping> {
        let [group_bits, width] = widths;
        if group_bits > u64::from(GROUP_BITS_MAX) || width > 48 {
            return None;
        }
        let mut mapping = Mapping::with_groups(units, slots, units_per_block, group_bits as u32);
        mapping.forward.widen(width as u32);
        (mapping.widths() == widths).then_some(mapping)
    }
    pub(super) fn tables_mut(&mut self) -> [&mut [u64]; 3] {
        [self.forward.words_mut(), self.groups.words_mut(), &mut self.invalid]
    }

    fn words_per_slot(&self) -> usize {
        self.units_per_block.div_ceil(64) as usize
    }
    #[inline]
    fn word(&self, place: Place) -> usize {
        place.slot as usize * self.words_per_slot() + (place.offset / 64) as usize
    }
    #[inline]
    fn entry(&self, place: Place) -> u64 {
        (u64::from(place.slot) << self.offset_bits | u64::from(place.offset)) + 1
    }
    #[inline]
    fn index(&self, place: Place) -> u64 {
        u64::from(place.slot) * u64::from(self.units_per_block) + u64::from(place.offset)
    }
}

/// Bits that numbers up to `max` take, at least 1.
fn bits_for(max: u64) -> u32 {
    (u64::BITS - max.leading_zeros()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_finds_its_unit_among_its_group() {
        for group_bits in [0, 3, 6] {
            let mut mapping = Mapping::with_groups(1_000, 20, 60, group_bits);
            for unit in 0..1_000u32 {
                let (unit, place) = (u64::from(unit * 7 % 1_000), Place { slot: unit / 60, offset: unit % 60 });
                mapping.hold(place, unit);
                mapping.point(unit, place);
            }
            for unit in 0..1_000u32 {
                let place = Place { slot: unit / 60, offset: unit % 60 };
                assert_eq!(mapping.owner(place), Some(u64::from(unit * 7 % 1_000)));
                assert_eq!(mapping.locate(u64::from(unit * 7 % 1_000)), Some(place));
            }
            mapping.grow(5_000);
            assert_eq!(mapping.owner(Place { slot: 0, offset: 1 }), Some(7));
        }
    }

    #[test]
    fn the_next_valid_unit_skips_invalid_ones_up_to_the_end_of_the_block() {
        let mut mapping = Mapping::new(10, 2, 130);
        (0..129).for_each(|offset| mapping.invalidate(Place { slot: 1, offset }));
        assert_eq!(mapping.next_valid(1, 0), Some(129));
        mapping.invalidate(Place { slot: 1, offset: 129 });
        assert_eq!(mapping.next_valid(1, 0), None);
        assert_eq!(mapping.invalid_units(1), 130);
        mapping.clear(1);
        assert_eq!((mapping.next_valid(1, 128), mapping.next_valid(1, 130)), (Some(128), None));
    }
}
