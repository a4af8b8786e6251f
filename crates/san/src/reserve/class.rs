//! What one port keeps for each class of sessions: one cache line, taken when the class first books there. Of a large network's sessions most never pass
//! a port, and a table of all of them would miss the cache, and the processor's table of pages, at every packet.

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

/// The classes of a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    /// By class: its place in `known`, or [`NOWHERE`]. Empty until the first class comes: most ports of a network never see a request come in.
    places: Vec<u32>,
    /// In the order in which they came.
    known: Vec<Class>,
}

/// The place of a class that has not come by.
const NOWHERE: u32 = u32::MAX;

impl Classes {
    /// A class, if it has come by.
    pub fn get(&self, class: ClassId) -> Option<&Class> {
        self.known.get(*self.places.get(class.index())? as usize)
    }

    /// A class, if it has come by.
    pub fn get_mut(&mut self, class: ClassId) -> Option<&mut Class> {
        self.known.get_mut(*self.places.get(class.index())? as usize)
    }

    /// A class, which comes by now if it has not yet.
    #[inline]
    pub fn meet(&mut self, config: &ReservationConfig, class: ClassId) -> &mut Class {
        let place = self.places.get(class.index()).copied().unwrap_or(NOWHERE);
        let place = if place == NOWHERE { self.add(config, class) } else { place };
        &mut self.known[place as usize]
    }

    #[cold]
    fn add(&mut self, config: &ReservationConfig, class: ClassId) -> u32 {
        if self.places.is_empty() {
            self.places = vec![NOWHERE; config.classes as usize];
        }
        let place = self.known.len() as u32;
        self.places[class.index()] = place;
        self.known.push(Class { spans: [Sum::default(); 2], bucket: TokenBucket::new(config.burst) });
        place
    }

    /// All that have come by.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Class> {
        self.known.iter_mut()
    }

    /// A class will come by soon: what is kept for it can be on its way from memory meanwhile.
    #[inline]
    pub fn foresee(&self, class: ClassId) {
        if let Some(place) = self.places.get(class.index()) {
            prefetch_index(&self.known, *place as usize);
        }
    }
}

impl Class {
    /// What its bucket fills at; zero when it has booked nothing.
    #[inline]
    pub fn fill_rate(&self, config: &ReservationConfig) -> Rate {
        let [even, odd] = &self.spans;
        Rate::bps(if config.fills_at_booked {
            even.booked_bps + odd.booked_bps
        } else {
            even.estimated_bps + odd.estimated_bps
        })
    }
}

const _: () = assert!(size_of::<Class>() == 64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reservation;

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
}
