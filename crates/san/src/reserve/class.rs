//! The state of one port for each class of sessions that has used it.
//!
//! Most sessions of a large network never use a port, and most of those that did have nothing
//! booked there now. For these, only the content of the bucket is kept. A hash table maps a class
//! to its state; the slot follows from the class number alone, so it can be prefetched.

use super::{ClassId, ReservationConfig};
use base::Rate;
use prefetch_index::prefetch_index;
use transport::TokenBucket;

/// A class at a port.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Class {
    /// Its bookings in intervals of even and of odd number.
    pub spans: [Sum; 2],
    /// The bucket that releases its answers.
    pub bucket: TokenBucket,
}

/// The place of a live class, until [`Classes::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassPlace(u32);

/// Bookings of one class, made in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub estimated_bps: u64,
    pub booked_bps: u64,
}

/// The classes of a port: a table with open addressing (Knuth, The Art of Computer Programming 3,
/// 6.4, algorithm L), at most three quarters full. Only sums are computed over all classes, so the
/// order in the table is not observable.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// Empty until the first class arrives, then a power of two in length: most ports of a network
    /// never receive a request.
    entries: Vec<Entry>,
    count: usize,
    /// Classes with bookings, or with former bookings and not settled, in a slab: free slots are
    /// reused.
    live: Vec<Class>,
    free: Vec<u32>,
}

/// A class that has used the port.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Number of the class, or [`NOBODY`].
    name: u32,
    /// Its slot among the live ones, or [`SETTLED`].
    place: u32,
    /// For a settled class, the content of its bucket.
    held: i64,
}

/// Not a class number: classes are counted from 0 and are fewer.
const NOBODY: u32 = u32::MAX;
/// Not a slot: there are fewer.
const SETTLED: u32 = u32::MAX;
const NO_ENTRY: Entry = Entry { name: NOBODY, place: SETTLED, held: 0 };
/// Entries that a port allocates for its first class.
const ENTRIES_FIRST: usize = 32;
/// Classes of a port that stay live without bookings: settling saves memory, and costs time.
const LIVE_KEPT: usize = 64;
/// 2^32 divided by the golden ratio: consecutive numbers are spread far apart (Knuth, 6.4).
const SPREAD: u32 = 0x9e37_79b1;

impl Classes {
    /// Returns the home slot of a class; meaningless for an empty table.
    #[inline]
    fn home(&self, class: ClassId) -> usize {
        // All bits of the number affect the upper bits of the product.
        ((u64::from(class.0.wrapping_mul(SPREAD)) * self.entries.len() as u64) >> u32::BITS) as usize
    }

    /// Returns the entry of a class, or its free slot as `Err`. The table must have a free slot.
    #[inline]
    fn find(&self, class: ClassId) -> Result<usize, usize> {
        let mask = self.entries.len() - 1;
        let mut place = self.home(class);
        loop {
            match self.entries[place].name {
                name if name == class.0 => return Ok(place),
                NOBODY => return Err(place),
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[inline]
    fn known(&self, class: ClassId) -> Option<usize> {
        if self.entries.is_empty() { None } else { self.find(class).ok() }
    }

    /// Returns a class if it is live.
    pub fn get(&self, class: ClassId) -> Option<&Class> {
        self.live.get(self.entries[self.known(class)?].place as usize)
    }

    /// Returns the place of a class if it is live.
    pub fn place(&self, class: ClassId) -> Option<ClassPlace> {
        let place = self.entries[self.known(class)?].place;
        (place != SETTLED).then_some(ClassPlace(place))
    }

    /// Returns a class, which is added if it is new, and made live.
    #[inline]
    pub fn meet(&mut self, config: &ReservationConfig, class: ClassId) -> &mut Class {
        let place = self.enter(config, class);
        self.at_mut(place)
    }

    /// The same, and returns its place.
    #[inline]
    pub fn enter(&mut self, config: &ReservationConfig, class: ClassId) -> ClassPlace {
        let entry = self.known(class).unwrap_or_else(|| self.add(config, class));
        if self.entries[entry].place == SETTLED {
            self.wake(config, entry);
        }
        ClassPlace(self.entries[entry].place)
    }

    /// Returns a live class by its place.
    #[inline]
    pub fn at(&self, place: ClassPlace) -> &Class {
        &self.live[place.0 as usize]
    }

    /// Returns a mutable live class by its place.
    #[inline]
    pub fn at_mut(&mut self, place: ClassPlace) -> &mut Class {
        &mut self.live[place.0 as usize]
    }

    #[inline(never)]
    fn wake(&mut self, config: &ReservationConfig, entry: usize) {
        let bucket = TokenBucket::holding(config.burst, self.entries[entry].held);
        let class = Class { spans: [Sum::default(); 2], bucket };
        let place = self.free.pop().unwrap_or(self.live.len() as u32);
        match self.live.get_mut(place as usize) {
            Some(known) => *known = class,
            None => self.live.push(class),
        }
        self.entries[entry].place = place;
    }

    /// Keeps only the bucket content of a class, if it has nothing booked and its bucket does not
    /// fill.
    pub fn settle(&mut self, class: ClassId) {
        if self.live.len() - self.free.len() <= LIVE_KEPT {
            return;
        }
        let Some(entry) = self.known(class) else { return };
        let place = self.entries[entry].place;
        let Some(class) = self.live.get_mut(place as usize) else { return };
        let has_nothing = class.spans.iter().all(|span| (span.estimated_bps, span.booked_bps) == (0, 0));
        if let Some(held) = class.bucket.held().filter(|_| has_nothing) {
            (self.entries[entry].held, self.entries[entry].place) = (held, SETTLED);
            self.free.push(place);
        }
    }

    #[cold]
    fn add(&mut self, config: &ReservationConfig, class: ClassId) -> usize {
        if self.count * 4 >= self.entries.len() * 3 {
            self.grow();
        }
        let (Ok(entry) | Err(entry)) = self.find(class);
        let held = TokenBucket::new(config.burst).held().expect("a new bucket does not fill");
        self.entries[entry] = Entry { name: class.0, place: SETTLED, held };
        self.count += 1;
        entry
    }

    /// Doubles the table and reinserts the classes.
    fn grow(&mut self) {
        let room = (self.entries.len() * 2).max(ENTRIES_FIRST);
        let entries = std::mem::replace(&mut self.entries, vec![NO_ENTRY; room]);
        for entry in entries.into_iter().filter(|entry| entry.name != NOBODY) {
            let (Ok(place) | Err(place)) = self.find(ClassId(entry.name));
            self.entries[place] = entry;
        }
    }

    /// Returns the live classes, some of which may have nothing booked, in no meaningful order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Class> {
        self.live.iter_mut()
    }

    /// Prefetches the entry of a class.
    #[inline]
    pub fn prefetch(&self, class: ClassId) {
        prefetch_index(&self.entries, self.home(class));
    }
}

impl Class {
    /// Returns the fill rate of its bucket; zero if it has booked nothing.
    #[inline]
    pub fn fill_rate(&self, config: &ReservationConfig) -> Rate {
        let [even, odd] = &self.spans;
        let booked = even.booked_bps + odd.booked_bps;
        let estimated = even.estimated_bps + odd.estimated_bps;
        Rate::bps(if config.fills_at_booked { booked } else { over_committed(estimated, booked) })
    }
}

/// Returns the rate allowed for sessions that booked `booked` of `estimated`: the estimate over the
/// factor `booked / estimated`. A booking that was rounded down to zero sets no limit of its own.
fn over_committed(estimated: u64, booked: u64) -> u64 {
    match booked {
        all if all == estimated => estimated,
        0 => estimated.saturating_mul(1024),
        // Rates are far below 2^54.
        _ => (estimated >> 10) * ((estimated << 10) / booked).min(1 << 20),
    }
}

const _: () = assert!(size_of::<Class>() == 64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reservation;
    use base::{Bytes, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_class_takes_room_when_it_comes_by_and_is_found_again_whoever_came_between() {
        let (config, mut classes) = (reservation(), Classes::default());
        assert!(classes.get(ClassId(2)).is_none() && classes.place(ClassId(0)).is_none());
        for class in [2, 0, 2, 1] {
            classes.meet(&config, ClassId(class)).spans[0].booked_bps += u64::from(class) + 1;
        }
        let booked = [0, 1, 2].map(|class| classes.get(ClassId(class)).map(|class| class.spans[0].booked_bps));
        assert_eq!(booked, [Some(1), Some(2), Some(6)]);
        assert_eq!(classes.iter_mut().count(), 3);
        assert!(classes.get(ClassId(3)).is_none());
    }

    #[test]
    fn a_class_with_nothing_booked_takes_a_few_bytes_and_finds_its_tokens_again() {
        let (config, mut classes) = (reservation(), Classes::default());
        let left = |classes: &mut Classes, class| classes.meet(&config, ClassId(class)).bucket.level(Time::us(9));
        for class in 0..1_000 {
            let met = classes.meet(&config, ClassId(class));
            assert!(met.bucket.take(Time::ZERO, Bytes::new(u64::from(class))));
            classes.settle(ClassId(class));
        }
        assert_eq!(classes.live.len(), LIVE_KEPT + 1, "all others in one place");
        assert!((0..1_000).all(|class| left(&mut classes, class) == Bytes::new(9_000 - u64::from(class))));
    }

    #[test]
    fn what_is_booked_or_fills_is_not_settled() {
        let (config, mut classes) = (reservation(), Classes::default());
        for class in 10..=10 + LIVE_KEPT as u32 {
            classes.meet(&config, ClassId(class));
        }
        classes.meet(&config, ClassId(0)).spans[1].booked_bps = 5;
        classes.meet(&config, ClassId(1)).bucket.set_rate(Time::ZERO, Rate::gbps(1));
        [0, 1, 10].into_iter().for_each(|class| classes.settle(ClassId(class)));
        assert!(classes.get(ClassId(10)).is_none(), "one that has nothing is");
        assert!(classes.get(ClassId(0)).is_some_and(|class| class.spans[1].booked_bps == 5));
        assert!(classes.get(ClassId(1)).is_some_and(|class| class.bucket.fills()));
    }

    proptest! {
        #[test]
        fn each_of_many_classes_keeps_what_is_its_own(came in prop::collection::vec(0u32..2_000, 0..400)) {
            let (config, mut classes, mut sums) = (reservation(), Classes::default(), BTreeMap::new());
            for class in came {
                classes.meet(&config, ClassId(class)).spans[0].booked_bps += u64::from(class) + 1;
                *sums.entry(class).or_insert(0) += u64::from(class) + 1;
            }
            for class in 0..2_000 {
                let booked = classes.place(ClassId(class)).map(|place| classes.at_mut(place).spans[0].booked_bps);
                prop_assert_eq!(booked, sums.get(&class).copied());
            }
            prop_assert_eq!(classes.iter_mut().map(|class| class.spans[0].booked_bps).sum::<u64>(), sums.values().sum::<u64>());
        }
    }
}
