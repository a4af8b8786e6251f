//! Storage for the events of the near future: bundles of events of one slot, in one growing table,
//! linked by index, so that scheduling does not allocate.
//!
//! A bundle of events of eight bytes is one cache line. With one node per event, a chain of six
//! events costs six dependent cache misses: half of the time to make a large rack's slots ready.

use prefetch_index::prefetch_index;

/// The end of a list of chunks.
pub(crate) const NONE: u32 = u32::MAX;

/// An event and its time, in picoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Due<E> {
    pub at: u64,
    pub event: E,
}

/// Events per bundle.
const ROOM: usize = 5;
/// Slots are no wider than `2^32` picoseconds, so their times differ only in the low halves.
pub(crate) const SHIFT_MAX: u32 = 32;

/// Events of one slot, or a free bundle. All bundles of a chain except the newest are full.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bundle<E> {
    events: [E; ROOM],
    /// The low halves of their times.
    low: [u32; ROOM],
    /// The previously filled bundle, or the next free one.
    next: u32,
}

/// The newest bundle of a slot's events, and its number of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain(u32);

/// Not a bundle index.
const NO_BUNDLE: u32 = u32::MAX >> COUNT_BITS;
const COUNT_BITS: u32 = 3;

impl Chain {
    /// A chain without events. It has the form of a full bundle, so that the next event opens a new
    /// one.
    pub(crate) const EMPTY: Chain = Chain::new(NO_BUNDLE, ROOM);

    const fn new(bundle: u32, count: usize) -> Chain {
        Chain(bundle << COUNT_BITS | count as u32)
    }
    /// Returns whether the next event needs a new bundle; always true of an empty chain.
    #[inline]
    pub(crate) fn is_full(self) -> bool {
        self.count() >= ROOM
    }
    fn bundle(self) -> u32 {
        self.0 >> COUNT_BITS
    }
    fn count(self) -> usize {
        (self.0 & ((1 << COUNT_BITS) - 1)) as usize
    }
}

/// All bundles. The bundle freed last is used first: it is still in the cache.
pub(crate) struct Slab<E> {
    bundles: Vec<Bundle<E>>,
    free: u32,
}

impl<E: Copy> Slab<E> {
    pub(crate) fn with_capacity(events: usize) -> Self {
        Slab { bundles: Vec::with_capacity(events.div_ceil(ROOM)), free: NO_BUNDLE }
    }
    /// Adds the newest event to a chain; returns the new chain.
    #[inline(always)]
    pub(crate) fn store(&mut self, at: u64, event: E, chain: Chain) -> Chain {
        let place = chain.count();
        if place >= ROOM {
            return self.open(at, event, chain.bundle());
        }
        let bundle = &mut self.bundles[chain.bundle() as usize];
        bundle.low[place] = at as u32;
        bundle.events[place] = event;
        Chain(chain.0 + 1)
    }
    /// Puts an event into a new bundle, which links to `next`.
    #[inline(always)]
    fn open(&mut self, at: u64, event: E, next: u32) -> Chain {
        let index = self.free;
        if index == NO_BUNDLE {
            return self.grow(at, event, next);
        }
        let bundle = &mut self.bundles[index as usize];
        self.free = bundle.next;
        bundle.low[0] = at as u32;
        bundle.events[0] = event;
        bundle.next = next;
        Chain::new(index, 1)
    }
    #[cold]
    #[inline(never)]
    fn grow(&mut self, at: u64, event: E, next: u32) -> Chain {
        let index = self.bundles.len();
        assert!(index < NO_BUNDLE as usize, "events are pending in more than 2^29 - 2 bundles");
        self.bundles.push(Bundle { events: [event; ROOM], low: [at as u32; ROOM], next });
        Chain::new(index as u32, 1)
    }
    /// Moves every event of a slot, which starts at `slot_start`, to the end of `all`, newest
    /// first, and frees the chain.
    #[inline]
    pub(crate) fn drain(&mut self, chain: Chain, slot_start: u64, all: &mut Vec<Due<E>>) {
        let (mut index, mut count, mut oldest) = (chain.bundle(), chain.count(), NO_BUNDLE);
        while index != NO_BUNDLE {
            let bundle = &self.bundles[index as usize];
            // Bounded by the array, which avoids a check per event; and of known length, so that
            // `all` grows once.
            let places = (0..count.min(ROOM)).rev();
            all.extend(
                places.map(|place| Due { at: whole(slot_start, bundle.low[place]), event: bundle.events[place] }),
            );
            (oldest, index, count) = (index, bundle.next, ROOM);
        }
        if oldest != NO_BUNDLE {
            self.bundles[oldest as usize].next = self.free;
            self.free = chain.bundle();
        }
    }
    /// Prefetches the newest bundle of a chain that will be drained in a while.
    #[inline]
    pub(crate) fn prefetch(&self, chain: Chain) {
        prefetch_index(&self.bundles, chain.bundle() as usize);
    }
    /// Prefetches the bundle before the newest of a chain that will be drained soon.
    #[inline]
    pub(crate) fn prefetch_elder(&self, chain: Chain) {
        if let Some(newest) = self.bundles.get(chain.bundle() as usize) {
            prefetch_index(&self.bundles, newest.next as usize);
        }
    }
    /// Returns the times of the events of a slot, which starts at `slot_start`.
    pub(crate) fn times(&self, chain: Chain, slot_start: u64) -> impl Iterator<Item = u64> {
        let get = |index: u32| (index != NO_BUNDLE).then(|| &self.bundles[index as usize]);
        let newest = get(chain.bundle()).map(|bundle| (bundle, chain.count()));
        let bundles = std::iter::successors(newest, move |(bundle, _)| get(bundle.next).map(|elder| (elder, ROOM)));
        bundles.flat_map(move |(bundle, count)| bundle.low[..count].iter().map(move |low| whole(slot_start, *low)))
    }
    pub(crate) fn clear(&mut self) {
        self.bundles.clear();
        self.free = NO_BUNDLE;
    }
}

/// Returns the time in a slot whose low half is `low`.
#[inline]
fn whole(slot_start: u64, low: u32) -> u64 {
    slot_start & !u64::from(u32::MAX) | u64::from(low)
}

const _: () = assert!(size_of::<Bundle<u64>>() == 64);
