//! The pages that a cache holds, found by vSSD and page: a chained hash table whose order nobody sees.
//!
//! Every write looks its page up seven times on its way through the caches of its replicas. Rejected: a `BTreeMap`, in which that was a tenth of a run.

use super::State;
use crate::id::{Page, Value};
use base::Span;

/// One page in DRAM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub value: Value,
    pub latency: Span,
    pub state: State,
}

/// A vSSD's number in its cache, and a page of it.
pub(super) type Key = (u32, Page);

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    held: Held,
    /// The next entry of the chain.
    next: u32,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldPages {
    entries: Vec<Entry>,
    /// Places in `entries` that are not in use.
    free: Vec<u32>,
    /// The first entry of each chain; none at first, then a power of two.
    chains: Vec<u32>,
}

impl HeldPages {
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn get(&self, key: Key) -> Option<&Held> {
        self.find(key).map(|place| &self.entries[place as usize].held)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Held> {
        self.find(key).map(|place| &mut self.entries[place as usize].held)
    }

    /// Adds a page that is not there.
    pub fn insert(&mut self, key: Key, held: Held) {
        if self.len() == self.chains.len() {
            self.grow();
        }
        let chain = self.chain_of(key);
        let entry = Entry { key, held, next: self.chains[chain] };
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

    /// Takes a page out that is there.
    pub fn remove(&mut self, key: Key) {
        let chain = self.chain_of(key);
        let place = self.find(key).expect("only a page that is held leaves");
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
        *self = HeldPages::default();
    }

    fn find(&self, key: Key) -> Option<u32> {
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

    /// The top bits of a product with the golden ratio, which spreads neighbouring pages (Knuth, The Art of Computer Programming 3, 6.4).
    fn chain_of(&self, (slot, page): Key) -> usize {
        let mixed = (page.0 ^ u64::from(slot).rotate_right(16)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & self.chains.len().wrapping_sub(1)
    }

    /// Twice as many chains. All places are in use, so that each entry goes to its new chain.
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
        fn a_page_is_found_from_when_it_comes_until_it_leaves(steps in prop::collection::vec((0u32..3, 0u64..60), 0..500)) {
            let (mut pages, mut plain) = (HeldPages::default(), BTreeMap::new());
            for (count, (slot, page)) in (0..).zip(steps) {
                let key = (slot, Page(page));
                if plain.remove(&key).is_some() {
                    pages.remove(key);
                } else {
                    pages.insert(key, Held { value: Value(count), latency: Span::ZERO, state: State::Dirty });
                    plain.insert(key, count);
                }
                prop_assert_eq!(pages.len(), plain.len());
                for slot in 0..3 {
                    for page in (0..60).map(Page) {
                        let found = pages.get((slot, page)).map(|held| held.value.0);
                        prop_assert_eq!(found, plain.get(&(slot, page)).copied());
                    }
                }
            }
        }
    }
}
