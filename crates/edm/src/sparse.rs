//! A table with a value for every key, of which few are other than the default.
//!
//! A rack has a pair of nodes for every two of them, hundreds of thousands, but only a few are in use at a time. A table of all
//! pairs misses the cache at every access; the few in use, sorted, stay in it.

/// Values by key; a key without an entry has the default.
#[derive(Clone, Debug, Default)]
pub struct Sparse<V> {
    /// Sorted by key; no value is the default.
    entries: Vec<(u32, V)>,
}

impl<V: Copy + Default + PartialEq> Sparse<V> {
    /// All defaults, with room for `room` others before it allocates.
    pub fn with_capacity(room: usize) -> Sparse<V> {
        Sparse { entries: Vec::with_capacity(room) }
    }
    /// The value of `key`.
    pub fn get(&self, key: u32) -> V {
        self.find(key).map_or_else(|_| V::default(), |index| self.entries[index].1)
    }
    /// Sets the value of `key`.
    pub fn set(&mut self, key: u32, value: V) {
        self.update(key, |old| *old = value);
    }
    /// Changes the value of `key` and gives what `change` returns.
    pub fn update<T>(&mut self, key: u32, change: impl FnOnce(&mut V) -> T) -> T {
        match self.find(key) {
            Ok(index) => {
                let result = change(&mut self.entries[index].1);
                if self.entries[index].1 == V::default() {
                    self.entries.remove(index);
                }
                result
            }
            Err(index) => {
                let mut value = V::default();
                let result = change(&mut value);
                if value != V::default() {
                    self.entries.insert(index, (key, value));
                }
                result
            }
        }
    }
    /// The keys whose values are not the default, in order.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|(key, _)| *key)
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
        fn it_is_a_map_with_a_default(steps in proptest::collection::vec((0u32..20, 0u8..3), 0..200)) {
            let (mut sparse, mut model) = (Sparse::with_capacity(1), BTreeMap::new());
            for (key, value) in steps {
                sparse.set(key, value);
                model.insert(key, value);
                prop_assert_eq!(sparse.get(key), value);
                let used: Vec<u32> = model.iter().filter(|(_, value)| **value != 0).map(|(key, _)| *key).collect();
                prop_assert_eq!(sparse.keys().collect::<Vec<_>>(), used);
            }
        }
    }
}
