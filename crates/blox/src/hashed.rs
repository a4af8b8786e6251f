//! A chained hash table without visible order, for frequent lookups: pages in a cache, open
//! requests of a client.
//!
//! Rejected: a `BTreeMap`, in which the lookups of pages alone took a tenth of a run.

use crate::id::{Page, Tag};

/// What entries are found by.
pub(crate) trait Key: Copy + Eq {
    /// Different for different keys, as far as 64 bits can distinguish them.
    fn number(self) -> u64;
}

/// A vSSD's number in its cache, and a page of it.
impl Key for (u32, Page) {
    fn number(self) -> u64 {
        self.1.0 ^ u64::from(self.0).rotate_right(16)
    }
}

impl Key for Tag {
    fn number(self) -> u64 {
        self.0
    }
}

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    /// The next entry of the chain.
    next: u32,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Hashed<K, V> {
    entries: Vec<Entry<K, V>>,
    /// Places in `entries` that are not in use.
    free: Vec<u32>,
    /// The first entry of each chain; none at first, then a power of two.
    chains: Vec<u32>,
}

impl<K, V> Default for Hashed<K, V> {
    fn default() -> Self {
        Hashed { entries: Vec::new(), free: Vec::new(), chains: Vec::new() }
    }
}

impl<K: Key, V: Copy> Hashed<K, V> {
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.find(key).map(|place| &self.entries[place as usize].value)
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.find(key).map(|place| &mut self.entries[place as usize].value)
    }

    /// Adds what is not there.
    pub fn insert(&mut self, key: K, value: V) {
        if self.len() == self.chains.len() {
            self.grow();
        }
        let chain = self.chain_of(key);
        let entry = Entry { key, value, next: self.chains[chain] };
        self.chains[chain] = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
    }

    /// Takes out what is there.
    pub fn remove(&mut self, key: K) {
        let chain = self.chain_of(key);
        let place = self.find(key).expect("only what is in a table leaves it");
        let next = self.entries[place as usize].next;
        let mut before = self.chains[chain];
        if before == place {
            self.chains[chain] = next;
        } else {
            while self.entries[before as usize].next != place {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.free.push(place);
    }

    pub fn clear(&mut self) {
        *self = Hashed::default();
    }

    fn find(&self, key: K) -> Option<u32> {
        let mut place = *self.chains.get(self.chain_of(key))?;
        while place != END {
            let entry = &self.entries[place as usize];
            if entry.key == key {
                return Some(place);
            }
            place = entry.next;
        }
        None
    }

    /// The top bits of a product with the golden ratio, which spreads neighbours (Knuth, The Art of
    /// Computer Programming 3, 6.4).
    fn chain_of(&self, key: K) -> usize {
        let mixed = key.number().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & self.chains.len().wrapping_sub(1)
    }

    /// Doubles the number of chains. All places are in use, so each entry moves to its new chain.
    fn grow(&mut self) {
        let chains = (self.chains.len() * 2).max(16);
        self.chains = vec![END; chains];
        for place in 0..self.entries.len() {
            let chain = self.chain_of(self.entries[place].key);
            self.entries[place].next = self.chains[chain];
            self.chains[chain] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn an_entry_is_found_from_when_it_comes_until_it_leaves(steps in prop::collection::vec((0u32..3, 0u64..60), 0..500)) {
            let (mut table, mut plain) = (Hashed::default(), BTreeMap::new());
            for (count, (slot, page)) in (0..).zip(steps) {
                let key = (slot, Page(page));
                if plain.remove(&key).is_some() {
                    table.remove(key);
                } else {
                    table.insert(key, count);
                    plain.insert(key, count);
                }
                prop_assert_eq!(table.len(), plain.len());
                for slot in 0..3 {
                    for page in (0..60).map(Page) {
                        prop_assert_eq!(table.get((slot, page)), plain.get(&(slot, page)));
                    }
                }
            }
        }
    }
}
