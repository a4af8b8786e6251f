//! The DRAM write cache of a storage server (RackBlox, 3.5.1 and Algorithm 2, lines 2 to 4).
//!
//! A write is done once every replica holds it in DRAM; the flash gets it later. A page is
//! therefore *held* from the moment its value is inserted until a flush of that value has ended,
//! and reads of a held page are served from here. Pages are flushed oldest first. A page that is
//! written again before its flush starts is flushed once, with the new value.
//!
//! The cache is bookkeeping: it selects the next page to flush and never accesses a device. Writes
//! without room also wait here, in the order of a key that the owner sets (all equal: first come,
//! first served).

use crate::id::{Page, Value};
use base::Span;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::collections::{BTreeMap, VecDeque};

/// How much a cache holds and when it begins to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Most pages held, at least one.
    pub pages: u32,
    /// Number of dirty pages that cause no flush; below `pages`. 0 flushes each page as soon as
    /// possible; `pages - 1` only when the cache is full, as in a literal reading of Algorithm 2.
    pub flush_above: u32,
    /// Whose pages it holds.
    pub scope: CacheScope,
}

/// Whose pages one cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// All vSSDs of the server share the pages: more room for each, and one vSSD's collection can
    /// stall the others' writes.
    Server,
    /// Each vSSD has that many pages of its own.
    Vssd,
}

/// State of a held page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for [`WriteCache::next_flush`] to name it.
    Dirty,
    /// Its flush waits in the I/O scheduler and will use the value at its start.
    Queued,
    /// Its value is being written to flash.
    Flushing,
    /// As `Flushing`, but a newer value has come, which needs a flush of its own.
    Rewritten,
}

/// One page in DRAM.
#[derive(Clone, Copy, Debug)]
struct Held {
    value: Value,
    latency: Span,
    state: State,
}

/// A page that should be flushed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// The vSSD's number in this cache.
    pub slot: u32,
    /// Its page.
    pub page: Page,
    /// What the owner said of the last write of the page.
    pub latency: Span,
}

/// The pages that a server holds in DRAM. `W` is a write that waits for room, `K` the key that
/// orders those.
#[derive(Clone, Debug)]
pub struct WriteCache<K, W> {
    capacity: usize,
    flush_above: usize,
    /// vSSDs that use this cache.
    vssds: u32,
    /// Pages of all of them.
    /// Looked up many times a request: lookups in a `BTreeMap` were a tenth of a run.
    held: IndexMap<(u32, Page), Held, FxBuildHasher>,
    /// Dirty pages, oldest first: exactly those in [`State::Dirty`].
    dirty: VecDeque<(u32, Page)>,
    /// Writes without room, by key and then by arrival.
    waiting: BTreeMap<(K, u64), W>,
    arrivals: u64,
}

impl<K: Copy + Ord, W> WriteCache<K, W> {
    /// An empty cache without vSSDs.
    pub fn new(config: CacheConfig) -> Self {
        WriteCache {
            capacity: config.pages as usize,
            flush_above: config.flush_above as usize,
            vssds: 0,
            held: IndexMap::default(),
            dirty: VecDeque::new(),
            waiting: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// Lets one more vSSD use the cache; returns its number here.
    pub fn add_vssd(&mut self) -> u32 {
        self.vssds += 1;
        self.vssds - 1
    }

    /// The newest value of a held page.
    pub fn read(&self, slot: u32, page: Page) -> Option<Value> {
        self.held.get(&(slot, page)).map(|held| held.value)
    }

    /// Every held page with its newest value: its owner's number, the page and the value.
    pub fn pages(&self) -> impl Iterator<Item = (u32, Page, Value)> + '_ {
        self.held.iter().map(|((slot, page), held)| (*slot, *page, held.value))
    }

    /// The writes that wait for room.
    pub fn waiting(&self) -> impl Iterator<Item = &W> {
        self.waiting.values()
    }

    /// Returns whether a write of this page may enter now: the page is held already (a write over
    /// it takes no room), or there is room and nobody has waited for it longer.
    pub fn admits(&self, slot: u32, page: Page) -> bool {
        (self.has_room() && self.waiting.is_empty()) || self.held.contains_key(&(slot, page))
    }

    /// Holds `value` from now on. The owner has checked [`admits`](Self::admits) if a write can
    /// wait. A value that can no longer wait (of a write queued behind another of its page) may
    /// exceed the capacity by its one page. `latency` is the time that the write has spent and will
    /// spend in networks; it determines the priority of its flush.
    pub fn put(&mut self, slot: u32, page: Page, value: Value, latency: Span) {
        if let Some(held) = self.held.get_mut(&(slot, page)) {
            held.value = value;
            held.latency = latency;
            if held.state == State::Flushing {
                held.state = State::Rewritten;
            }
            return;
        }
        self.held.insert((slot, page), Held { value, latency, state: State::Dirty });
        self.dirty.push_back((slot, page));
    }

    /// The next page to flush, if there are more dirty ones than may stay or a write waits for
    /// room. The owner queues the flush.
    pub fn next_flush(&mut self) -> Option<Flush> {
        if self.dirty.len() <= self.flush_above && self.waiting.is_empty() {
            return None;
        }
        let (slot, page) = self.dirty.pop_front()?;
        let held = self.held_mut(slot, page);
        held.state = State::Queued;
        let latency = held.latency;
        Some(Flush { slot, page, latency })
    }

    /// A queued flush starts now, or again after the flash had no room for it. Returns the value to
    /// write.
    pub fn begin_flush(&mut self, slot: u32, page: Page) -> Value {
        let held = self.held_mut(slot, page);
        held.state = State::Flushing;
        held.value
    }

    /// The flash has what [`begin_flush`](Self::begin_flush) gave out. The page leaves, or is dirty
    /// again if it has been rewritten meanwhile.
    pub fn flushed(&mut self, slot: u32, page: Page) {
        let held = self.held_mut(slot, page);
        if held.state == State::Rewritten {
            held.state = State::Dirty;
            self.dirty.push_back((slot, page));
        } else {
            self.held.swap_remove(&(slot, page));
        }
    }

    /// Lets a write wait for room.
    pub fn wait(&mut self, key: K, write: W) {
        self.waiting.insert((key, self.arrivals), write);
        self.arrivals += 1;
    }

    /// The first write that waits, if there is room for it; `place` says which page a write is
    /// about.
    pub fn next_admitted(&mut self, place: impl Fn(&W) -> (u32, Page)) -> Option<W> {
        if self.waiting.is_empty() {
            return None;
        }
        let first = self.waiting.first_entry()?;
        let (slot, page) = place(first.get());
        let fits = self.held.len() < self.capacity || self.held.contains_key(&(slot, page));
        fits.then(|| first.remove())
    }

    /// Takes out every waiting write that `leaves` picks, in order, for the owner to refuse.
    pub fn withdraw(&mut self, mut leaves: impl FnMut(&W) -> bool) -> Vec<W> {
        let leaving: Vec<_> = self.waiting.iter().filter(|(_, write)| leaves(write)).map(|(place, _)| *place).collect();
        leaving.iter().filter_map(|place| self.waiting.remove(place)).collect()
    }

    /// Forgets every page and every waiting write, as a loss of power does. The vSSDs stay.
    pub fn clear(&mut self) {
        self.held.clear();
        self.dirty.clear();
        self.waiting.clear();
    }

    /// Pages held now.
    pub fn used(&self) -> usize {
        self.held.len()
    }

    fn has_room(&self) -> bool {
        self.held.len() < self.capacity
    }

    fn held_mut(&mut self, slot: u32, page: Page) -> &mut Held {
        self.held.get_mut(&(slot, page)).expect("a page is held until its last flush has ended")
    }
}

#[cfg(test)]
mod tests;
