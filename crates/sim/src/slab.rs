//! Things in flight, addressed by small numbers that are used again.

use prefetch_index::prefetch_index;
use std::ops::{Index, IndexMut};

/// The numbers that are free. The one freed last is used first, so that few places stay warm.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeNumbers(Vec<u32>);

impl FreeNumbers {
    /// No number was given out yet.
    pub(crate) const fn new() -> FreeNumbers {
        FreeNumbers(Vec::new())
    }
    /// Takes a free number; without one the caller goes on counting.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.0.pop()
    }
    /// Returns a number.
    #[inline(always)]
    pub(crate) fn give(&mut self, number: u32) {
        self.0.push(number);
    }
}

/// Grows to the most things ever in flight and allocates nothing after that.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: FreeNumbers,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab::new()
    }
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: FreeNumbers::new() }
    }
    /// The number that the next [`insert`](Slab::insert) will give.
    pub(crate) fn next_index(&self) -> u32 {
        self.free.0.last().copied().unwrap_or(self.slots.len() as u32)
    }
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        if let Some(index) = self.free.take() {
            self.slots[index as usize] = Some(thing);
            return index;
        }
        self.slots.push(Some(thing));
        (self.slots.len() - 1) as u32
    }
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> T {
        let thing = self.slots[index as usize].take().expect("something in flight ended twice");
        self.free.give(index);
        thing
    }
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.as_ref()
    }
    /// Prefetches something that will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        prefetch_index(&self.slots, index as usize);
    }
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.as_mut()
    }
    /// All of them with their numbers, in the order of these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }
    /// All of them, in the order of their numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
    /// The number of things in flight.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.0.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        self.slots[index as usize].as_ref().expect("something in flight was asked for after its end")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.slots[index as usize].as_mut().expect("something in flight was asked for after its end")
    }
}
