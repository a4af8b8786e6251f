//! A table with a value for every key, of which few are other than the default.
//!
//! A rack has a pair of nodes for every two of them, hundreds of thousands, but only a few are in
//! use at a time. A plain table of all pairs of a large rack misses the cache at every access; the
//! few in use, sorted, stay in it. In a small rack the plain table stays there too, and is quicker.

use prefetch_index::prefetch_index;

/// Up to this many keys the plain table is used: with a value of 12 bytes it has 4 KB per node, for
/// all nodes of a rack.
const PLAIN_KEYS: u32 = 320;

/// Values by key; a key that was never set has the default.
#[derive(Clone, Debug)]
pub struct Sparse<V> {
    /// Every value, or nothing in a large table.
    plain: Vec<V>,
    /// In a large table: what is not the default, sorted by key.
    entries: Vec<(u32, V)>,
}

impl<V: Copy + Default + PartialEq> Sparse<V> {
    /// All defaults for keys below `keys`, with room for `room` others before a large table
    /// allocates.
    pub fn new(keys: u32, room: usize) -> Sparse<V> {
        if keys <= PLAIN_KEYS {
            return Sparse { plain: vec![V::default(); keys as usize], entries: Vec::new() };
        }
        Sparse { plain: Vec::new(), entries: Vec::with_capacity(room) }
    }
    /// The value of `key`.
    pub fn get(&self, key: u32) -> V {
        if let Some(value) = self.plain.get(key as usize) {
            return *value;
        }
        self.find(key).map_or_else(|_| V::default(), |index| self.entries[index].1)
    }
    /// Sets the value of `key`.
    pub fn set(&mut self, key: u32, value: V) {
        if let Some(old) = self.plain.get_mut(key as usize) {
            *old = value;
            return;
        }
        match (self.find(key), value == V::default()) {
            (Ok(index), false) => self.entries[index].1 = value,
            (Ok(index), true) => drop(self.entries.remove(index)),
            (Err(index), false) => self.entries.insert(index, (key, value)),
            (Err(_), true) => {}
        }
    }
    /// The value of `key` will be needed soon.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        prefetch_index(&self.plain, key as usize);
    }
    /// The keys whose values are not the default, in order.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        let used = self.plain.iter().zip(0..).filter(|(value, _)| **value != V::default());
        used.map(|(_, key)| key).chain(self.entries.iter().map(|(key, _)| *key))
    }

    fn find(&self, key: u32) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&key, |(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map_with_a_default_large_or_small(steps in proptest::collection::vec((0u32..20, 0u8..3), 0..200)) {
            let (mut small, mut large) = (Sparse::new(20, 0), Sparse::new(PLAIN_KEYS + 1, 1));
            let mut model = BTreeMap::new();
            for (key, value) in steps {
                small.set(key, value);
                large.set(key, value);
                model.insert(key, value);
                prop_assert_eq!((small.get(key), large.get(key)), (value, value));
                let used: Vec<u32> = model.iter().filter(|(_, value)| **value != 0).map(|(key, _)| *key).collect();
                prop_assert_eq!(small.keys().collect::<Vec<_>>(), used.clone());
                prop_assert_eq!(large.keys().collect::<Vec<_>>(), used);
            }
        }
    }
}
