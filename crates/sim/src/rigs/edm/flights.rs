//! Everything on its way, by small numbers.

use super::flight::{AT_TARGET, Flight, Kept};
use crate::slab::FreeNumbers;
use base::NodeId;
use edm::Tag;
use prefetch_index::prefetch_index;

/// Whose a flight is, and between whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The request that it belongs to.
    pub tag: Tag,
    /// The host at the end of the link that it is on.
    pub here: NodeId,
    /// The other one.
    pub there: NodeId,
}

/// Half a cache line, never two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Slot(Kept);

const _: () = assert!(size_of::<Slot>() == 32);

/// Everything on its way, addressed by small numbers that are used again.
#[derive(Debug, Default)]
pub struct Flights {
    slots: Vec<Slot>,
    /// By the same numbers, as far as any was needed.
    second_arguments: Vec<u64>,
    free: FreeNumbers,
}

impl Flights {
    /// Takes `flight` in and gives its number.
    #[inline(always)]
    pub fn add(&mut self, flight: Flight) -> u32 {
        let index = self.store(flight.kept);
        if flight.second_argument != 0 {
            self.second_arguments.resize(self.slots.len(), 0);
            self.second_arguments[index as usize] = flight.second_argument;
        }
        index
    }
    /// The flight with this number.
    #[inline]
    pub fn get(&self, index: u32) -> Flight {
        let kept = self.slots[index as usize].0;
        // Few racks have any: most do not look at what it is.
        let second_argument = self.second_arguments.get(index as usize).copied().unwrap_or(0);
        Flight { kept, second_argument }
    }
    /// The flight with this number will be needed soon.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        prefetch_index(&self.slots, index as usize);
    }
    /// Whose flight this is, and between whom.
    #[inline]
    pub fn ends(&self, index: u32) -> Ends {
        let kept = self.slots[index as usize].0;
        let (source, target) = (kept.source(), kept.target());
        let (here, there) = if kept.is_at_target() { (target, source) } else { (source, target) };
        Ends { tag: kept.tag(), here, there }
    }
    /// Ends a flight.
    #[inline]
    pub fn remove(&mut self, index: u32) -> Flight {
        let flight = self.get(index);
        if let Some(second_argument) = self.second_arguments.get_mut(index as usize) {
            *second_argument = 0;
        }
        self.free.give(index);
        flight
    }
    /// Sends a flight on to the target of its message.
    #[inline]
    pub fn turn_to_target(&mut self, index: u32) {
        self.slots[index as usize].0.label |= AT_TARGET;
    }

    /// Word by word: a copy of pairs of words from where they have just been written one by one
    /// would wait for them.
    #[inline(always)]
    fn store(&mut self, kept: Kept) -> u32 {
        let Kept { address, word, share, label } = kept;
        let Some(index) = self.free.take() else { return self.grow(address, word, share, label) };
        let slot = &mut self.slots[index as usize].0;
        slot.address = address;
        slot.word = word;
        slot.share = share;
        slot.label = label;
        index
    }
    #[cold]
    #[inline(never)]
    fn grow(&mut self, address: u64, word: u64, share: u64, label: u64) -> u32 {
        self.slots.push(Slot(Kept { address, word, share, label }));
        self.slots.len() as u32 - 1
    }
}
