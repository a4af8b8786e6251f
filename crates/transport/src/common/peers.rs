//! State for many keys (peers, connections), few of which a host uses.

use rustc_hash::FxHashMap;
use std::ops::{Index, IndexMut};

/// One `T` per key. Keys that were never written take no memory: among 4,096 nodes, a host that has
/// communicated with 200 stores 200.
#[derive(Clone, Debug)]
pub struct Sparse<T> {
    places: FxHashMap<u32, u32>,
    items: Vec<T>,
    /// The value of keys that were never written.
    fresh: T,
}

impl<T: Clone> Sparse<T> {
    /// Creates a map in which every key has the value `fresh`.
    pub fn new(fresh: T) -> Sparse<T> {
        Sparse { places: FxHashMap::default(), items: Vec::new(), fresh }
    }
}

impl<T> Sparse<T> {
    /// Returns the values of the keys that were written, in the order of their first writing.
    pub fn used(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }
}

impl<T: Clone + Default> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse::new(T::default())
    }
}

impl<T> Index<usize> for Sparse<T> {
    type Output = T;
    fn index(&self, key: usize) -> &T {
        let place = self.places.get(&(key as u32));
        place.map_or(&self.fresh, |place| &self.items[*place as usize])
    }
}

impl<T: Clone> IndexMut<usize> for Sparse<T> {
    fn index_mut(&mut self, key: usize) -> &mut T {
        let next = self.items.len() as u32;
        let place = *self.places.entry(key as u32).or_insert(next);
        if place == next {
            // Grows by a quarter: doubling would leave half of a large rack's memory unused.
            if self.items.len() == self.items.capacity() {
                self.items.reserve_exact(4 + self.items.len() / 4);
            }
            self.items.push(self.fresh.clone());
        }
        &mut self.items[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_as_a_vector_of_all_keys(
            writes in proptest::collection::vec((0usize..50, 0u64..9), 0..200),
        ) {
            let (mut sparse, mut whole) = (Sparse::new(7), vec![7; 50]);
            for (key, value) in writes {
                sparse[key] = value;
                whole[key] = value;
                prop_assert!((0..50).all(|key| sparse[key] == whole[key]));
            }
            prop_assert!(sparse.items.len() <= 50);
        }
    }

    #[test]
    fn reading_makes_nothing_and_room_grows_by_a_quarter() {
        let mut sparse: Sparse<u64> = Sparse::default();
        assert_eq!((sparse[5], sparse.items.len()), (0, 0));
        (0..1000).for_each(|key| sparse[key * 1_000_003 % 4_000_000_007] = 1);
        assert_eq!(sparse.items.len(), 1000);
        assert!(sparse.items.capacity() < 1260, "{}", sparse.items.capacity());
    }
}
