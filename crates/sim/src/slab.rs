//! Things in flight, addressed by a small number that is used again.

use prefetch_index::prefetch_index;
use std::ops::{Index, IndexMut};

/// Grows to the most things ever in flight and allocates nothing after that.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
    /// The number that the next [`insert`](Slab::insert) will give.
    pub(crate) fn next_index(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.slots.len() as u32)
    }
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(thing);
            return index;
        }
        self.slots.push(Some(thing));
        (self.slots.len() - 1) as u32
    }
    pub(crate) fn remove(&mut self, index: u32) -> T {
        let thing = self.slots[index as usize].take().expect("something in flight ended twice");
        self.free.push(index);
        thing
    }
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.as_ref()
    }
    /// Something will be asked for soon: it can be on its way from memory meanwhile.
    #[inline]
    pub(crate) fn foresee(&self, index: u32) {
        prefetch_index(&self.slots, index as usize);
    }
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.as_mut()
    }
    /// All of them, in the order of their numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
    /// How many are in flight.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, index: u32) -> &T {
        self.slots[index as usize].as_ref().expect("something in flight was asked for after its end")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.slots[index as usize].as_mut().expect("something in flight was asked for after its end")
    }
}
