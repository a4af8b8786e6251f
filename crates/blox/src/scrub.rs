//! When which page of a server is read to see whether it is sound: every page once in a period.
//!
//! The pages of all vSSDs form one row, and a round goes through it at a steady pace, one page at a
//! time. A server that is started anew begins its round elsewhere: one that is started more often
//! than a round lasts still comes by every page.

use base::{Span, Time};

/// The part of a row by which the first page of each start lies behind that of the last one: the
/// golden ratio's, in 2^-64. However many starts there were, their first pages lie evenly (Weyl).
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The pace of a server's scrubbing.
#[derive(Clone, Debug)]
pub(crate) struct Scrub {
    period: Span,
    begun: Time,
    /// Pages of this round; 0 before the first.
    pages: u64,
    /// Where the round began in the row.
    first: u64,
    done: u64,
    is_out: bool,
}

impl Scrub {
    /// Reads every page once in `period`.
    pub fn new(period: Span) -> Scrub {
        Scrub { period, begun: Time::ZERO, pages: 0, first: 0, done: 0, is_out: false }
    }

    /// A server with so many pages begins, for the `start`-th time (from 0).
    pub fn begin(&mut self, now: Time, pages: u64, start: u32) {
        let first = (u128::from(u64::from(start).wrapping_mul(STEP)) * u128::from(pages)) >> 64;
        *self = Scrub { begun: now, pages, first: first as u64, done: 0, is_out: false, ..*self };
    }

    /// When the next page is due; none while one is out.
    pub fn next_due(&self) -> Option<Time> {
        if self.is_out || self.pages == 0 {
            return None;
        }
        // The last of a round is due before it ends: the first of the next one is due then.
        let share = u128::from(self.period.as_ps()) * u128::from(self.done) / u128::from(self.pages);
        self.begun.checked_add(Span::ps(u64::try_from(share).unwrap_or(u64::MAX)))
    }

    /// The place in the row of a page that is due. It is out until [`Self::answered`]. `pages` are
    /// there now: a new round has all of them.
    pub fn take(&mut self, now: Time, pages: u64) -> Option<u64> {
        if self.next_due()? > now {
            return None;
        }
        if self.done == self.pages {
            // One that is late by a whole round does not hurry.
            let due = self.begun.checked_add(self.period).unwrap_or(Time::MAX);
            let begun = if now.saturating_since(due) < self.period { due } else { now };
            (self.begun, self.pages, self.done) = (begun, pages, 0);
        }
        let place = (self.first + self.done).checked_rem(self.pages)?;
        (self.done, self.is_out) = (self.done + 1, true);
        Some(place)
    }

    /// The page that was out has been read.
    pub fn answered(&mut self) {
        self.is_out = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PERIOD: Span = Span::ms(100);

    /// Pages that are read until `end` by a device that takes `took` for each.
    fn read(scrub: &mut Scrub, pages: u64, took: Span, end: Time) -> Vec<(Time, u64)> {
        let (mut read, mut now) = (Vec::new(), Time::ZERO);
        while let Some(due) = scrub.next_due().filter(|due| *due < end) {
            now = now.max(due);
            assert!(now == due || scrub.take(due - Span::ps(1), pages).is_none() || took > Span::ZERO);
            let place = scrub.take(now, pages).expect("it is due");
            assert_eq!((scrub.take(now, pages), scrub.next_due()), (None, None), "one at a time");
            read.push((now, place));
            now += took;
            scrub.answered();
        }
        read
    }

    #[test]
    fn every_page_is_read_once_in_a_period_at_a_steady_pace() {
        for pages in [1, 2, 7, 1_000] {
            let mut scrub = Scrub::new(PERIOD);
            scrub.begin(Time::ZERO, pages, 0);
            let read = read(&mut scrub, pages, Span::ZERO, Time::ZERO + PERIOD * 3);
            assert_eq!(read.len() as u64, 3 * pages);
            for (number, (at, place)) in (0..).zip(read) {
                assert_eq!((at, place), (Time::ZERO + PERIOD * number / pages, number % pages));
            }
        }
    }

    #[test]
    fn a_server_without_pages_reads_none_and_new_pages_are_read_in_the_next_round() {
        let mut scrub = Scrub::new(PERIOD);
        scrub.begin(Time::ZERO, 0, 3);
        assert_eq!((scrub.next_due(), scrub.take(Time::secs(9), 0)), (None, None));
        scrub.begin(Time::ZERO, 2, 0);
        let read = read(&mut scrub, 5, Span::ZERO, Time::ZERO + PERIOD * 2);
        let places: Vec<u64> = read.iter().map(|(_, place)| *place).collect();
        assert_eq!(places, [0, 1, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_device_that_is_late_catches_up_and_not_for_more_than_a_round() {
        let mut scrub = Scrub::new(PERIOD);
        scrub.begin(Time::ZERO, 4, 0);
        let now = Time::ZERO + Span::ms(60);
        let mut places = Vec::new();
        while let Some(place) = scrub.take(now, 4) {
            places.push(place);
            scrub.answered();
        }
        assert_eq!((places, scrub.next_due()), (vec![0, 1, 2], Some(Time::ZERO + Span::ms(75))));
        let late = Time::ZERO + PERIOD * 50;
        let mut count = 0;
        while scrub.take(late, 4).is_some() {
            scrub.answered();
            count += 1;
        }
        assert_eq!((count, scrub.next_due()), (2, Some(late + PERIOD / 4)), "the rest of the round, and one");
    }

    #[test]
    fn starts_that_end_early_come_by_every_page_together() {
        let (pages, early) = (100, 10);
        let mut seen = BTreeSet::new();
        for start in 0..20 {
            let mut scrub = Scrub::new(PERIOD);
            scrub.begin(Time::ZERO, pages, start);
            let end = Time::ZERO + PERIOD * early / pages;
            seen.extend(read(&mut scrub, pages, Span::ZERO, end).into_iter().map(|(_, place)| place));
        }
        assert_eq!(seen.len() as u64, pages, "20 times a tenth");
    }

    proptest! {
        #[test]
        fn a_round_has_each_page_once_wherever_it_begins(pages in 1_u64..300, start in any::<u32>(), took_us in 0_u64..300) {
            let mut scrub = Scrub::new(PERIOD);
            scrub.begin(Time::ZERO, pages, start);
            let read = read(&mut scrub, pages, Span::us(took_us), Time::ZERO + PERIOD);
            let places: BTreeSet<u64> = read.iter().map(|(_, place)| *place).collect();
            prop_assert_eq!((read.len() as u64, places.len() as u64), (pages, pages));
            prop_assert!(places.iter().all(|place| *place < pages));
        }
    }
}
