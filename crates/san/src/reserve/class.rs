//! What one port keeps for each class of sessions: one cache line, taken when the class first books there. Of a large network's sessions most never pass
//! a port, and a table of all of them would miss the cache, and the processor's table of pages, at every packet. So they lie where their numbers lead to,
//! which is known without looking anything up.

use super::{ClassId, ReservationConfig};
use base::Rate;
use prefetch_index::prefetch_index;
use transport::TokenBucket;

/// A class at a port.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Class {
    /// What it booked in the span of even and of odd number.
    pub spans: [Sum; 2],
    /// What lets its answers out.
    pub bucket: TokenBucket,
}

/// Bookings of one class, made in one span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub estimated_bps: u64,
    pub booked_bps: u64,
}

/// The classes of a port: a table with open addressing (Knuth, The Art of Computer Programming 3, 6.4, algorithm L), at most half full. What is counted over all
/// of them are sums, so that the order in the table shows nowhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// By place: whose it is, or [`NOBODY`]. A power of two of them, or none until the first class comes: most ports of a network never see a request come in.
    names: Vec<u32>,
    /// By place.
    classes: Vec<Class>,
    count: usize,
}

/// No class is called so: there are at most as many, counted from 0.
const NOBODY: u32 = u32::MAX;
/// Places that a port takes for its first class.
const PLACES_FIRST: usize = 32;
/// 2^32 divided by the golden ratio: neighbouring numbers lie far from each other (Knuth, 6.4).
const SPREAD: u32 = 0x9e37_79b1;

impl Classes {
    /// Where a class lies unless others were there before; of an empty table anything.
    #[inline]
    fn home(&self, class: ClassId) -> usize {
        // The upper bits of the product are those that all bits of the number reach.
        ((u64::from(class.0.wrapping_mul(SPREAD)) * self.names.len() as u64) >> u32::BITS) as usize
    }

    /// The place of a class: `Err` is where it would lie. There is room.
    #[inline]
    fn find(&self, class: ClassId) -> Result<usize, usize> {
        let mask = self.names.len() - 1;
        let mut place = self.home(class);
        loop {
            match self.names[place] {
                name if name == class.0 => return Ok(place),
                NOBODY => return Err(place),
                _ => place = (place + 1) & mask,
            }
        }
    }

    fn known(&self, class: ClassId) -> Option<usize> {
        if self.names.is_empty() { None } else { self.find(class).ok() }
    }

    /// A class, if it has come by.
    pub fn get(&self, class: ClassId) -> Option<&Class> {
        Some(&self.classes[self.known(class)?])
    }

    /// A class, if it has come by.
    pub fn get_mut(&mut self, class: ClassId) -> Option<&mut Class> {
        let place = self.known(class)?;
        Some(&mut self.classes[place])
    }

    /// A class, which comes by now if it has not yet.
    #[inline]
    pub fn meet(&mut self, config: &ReservationConfig, class: ClassId) -> &mut Class {
        let place = self.known(class).unwrap_or_else(|| self.add(config, class));
        &mut self.classes[place]
    }

    #[cold]
    fn add(&mut self, config: &ReservationConfig, class: ClassId) -> usize {
        if self.count * 2 >= self.names.len() {
            self.grow(config);
        }
        let (Ok(place) | Err(place)) = self.find(class);
        self.names[place] = class.0;
        self.count += 1;
        place
    }

    /// Takes twice the room; each class goes where its number now leads to.
    fn grow(&mut self, config: &ReservationConfig) {
        let places = (self.names.len() * 2).max(PLACES_FIRST);
        let unused = Class { spans: [Sum::default(); 2], bucket: TokenBucket::new(config.burst) };
        let names = std::mem::replace(&mut self.names, vec![NOBODY; places]);
        let classes = std::mem::replace(&mut self.classes, vec![unused; places]);
        for (name, class) in names.into_iter().zip(classes).filter(|(name, _)| *name != NOBODY) {
            let (Ok(place) | Err(place)) = self.find(ClassId(name));
            (self.names[place], self.classes[place]) = (name, class);
        }
    }

    /// All that have come by, in no order that means anything.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Class> {
        self.names.iter().zip(&mut self.classes).filter(|(name, _)| **name != NOBODY).map(|(_, class)| class)
    }

    /// A class will come by soon: what is kept for it can be on its way from memory meanwhile.
    #[inline]
    pub fn foresee(&self, class: ClassId) {
        let place = self.home(class);
        prefetch_index(&self.names, place);
        prefetch_index(&self.classes, place);
    }
}

impl Class {
    /// What its bucket fills at; zero when it has booked nothing.
    #[inline]
    pub fn fill_rate(&self, config: &ReservationConfig) -> Rate {
        let [even, odd] = &self.spans;
        let booked = even.booked_bps + odd.booked_bps;
        let estimated = even.estimated_bps + odd.estimated_bps;
        Rate::bps(if config.fills_at_booked { booked } else { over_committed(estimated, booked) })
    }
}

/// What sessions may take who booked `booked` of `estimated`: the estimate over the factor, which is
/// the one over the other. A booking that was rounded down to nothing sets no bound of its own.
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
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_class_takes_room_when_it_comes_by_and_is_found_again_whoever_came_between() {
        let (config, mut classes) = (reservation(), Classes::default());
        assert!(classes.get(ClassId(2)).is_none() && classes.get_mut(ClassId(0)).is_none());
        for class in [2, 0, 2, 1] {
            classes.meet(&config, ClassId(class)).spans[0].booked_bps += u64::from(class) + 1;
        }
        let booked = [0, 1, 2].map(|class| classes.get(ClassId(class)).map(|class| class.spans[0].booked_bps));
        assert_eq!(booked, [Some(1), Some(2), Some(6)]);
        assert_eq!(classes.iter_mut().count(), 3);
        assert!(classes.get(ClassId(3)).is_none());
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
                let booked = classes.get_mut(ClassId(class)).map(|class| class.spans[0].booked_bps);
                prop_assert_eq!(booked, sums.get(&class).copied());
            }
            prop_assert_eq!(classes.iter_mut().map(|class| class.spans[0].booked_bps).sum::<u64>(), sums.values().sum::<u64>());
        }
    }
}
