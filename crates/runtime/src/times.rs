//! Times that journals tell, of which a twin draws.

use base::{Span, Time};
use serde::{Deserialize, Serialize};

/// Times that are looked at.
const SEEN_MAX: usize = 1_000_000;
/// Times that a distribution keeps: every so many thousandth of it.
const KEPT: usize = 1_000;
/// Times that are kept with when they were.
const KEPT_WITH_WHEN: usize = 1 << 14;
/// So many that were seen around a time tell what the machine was like then.
const AROUND: usize = 64;

/// Fewer of a kind tell nothing of how often one is slow: one of two would be every other one.
const ENOUGH: usize = 16;

/// When something is, by the run that the times are of, and which part of all that were seen take
/// less, from 0 to 1.
pub type Luck = (Time, f64);

/// Times of a kind, in nanoseconds. In a file they are a distribution: rising, and evenly spaced in
/// it. Those of a run itself know when they were: work of others on the machine makes many slow at
/// a time, and a simulation draws of those around the same time, or [a moment like
/// it](crate::moments).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct Times {
    rising: Vec<u64>,
    seen: Vec<(Time, u64)>,
}

impl From<Vec<u64>> for Times {
    fn from(mut rising: Vec<u64>) -> Times {
        rising.sort_unstable();
        Times { rising, seen: Vec::new() }
    }
}

impl From<Times> for Vec<u64> {
    fn from(times: Times) -> Vec<u64> {
        times.rising
    }
}

/// At most so many of these, evenly spaced.
fn thinned<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    if all.len() <= count {
        return all.to_vec();
    }
    (0..count).map(|place| all[(place * 2 + 1) * all.len() / (count * 2)]).collect()
}

fn at(rising: &[u64], part: f64) -> Span {
    let place = (part * rising.len() as f64) as usize;
    rising.get(place.min(rising.len().saturating_sub(1))).map_or(Span::ZERO, |time| Span::ns(*time))
}

impl Times {
    /// Something that was at `at` took so long.
    pub fn note(&mut self, at: Time, took: Span) {
        if self.seen.len() < SEEN_MAX {
            self.seen.push((at, took.as_ps() / 1_000));
        }
    }

    /// Takes out those that `odd` knows, if they are one of `one_of` at most, or a single one.
    /// Returns what it says of them. Before all is [settled](Self::settled).
    pub fn take_rare<T>(&mut self, one_of: usize, odd: impl Fn(Time, Span) -> Option<T>) -> Vec<T> {
        let said = |(at, took): &(Time, u64)| odd(*at, Span::ns(*took));
        let rare: Vec<T> = self.seen.iter().filter_map(said).collect();
        if rare.len() > (self.seen.len() / one_of).max(1) {
            return Vec::new();
        }
        self.seen.retain(|seen| said(seen).is_none());
        rare
    }

    /// All was noted.
    #[must_use]
    pub fn settled(mut self) -> Times {
        self.seen.sort_unstable();
        let mut rising: Vec<u64> = self.seen.iter().map(|(_, took)| *took).collect();
        rising.sort_unstable();
        Times { rising: thinned(&rising, KEPT), seen: thinned(&self.seen, KEPT_WITH_WHEN) }
    }

    /// With times of `alike`, evenly spaced, where too few of this kind were seen. A kind of which
    /// nothing was seen stays empty. Both are settled.
    #[must_use]
    pub fn filled(mut self, alike: &Times) -> Times {
        if !(1..ENOUGH).contains(&self.seen.len()) {
            return self;
        }
        self.seen.extend(thinned(&alike.seen, ENOUGH - self.seen.len()));
        self.settled()
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.rising.is_empty() && self.seen.is_empty()
    }

    /// Their distribution, rising, in nanoseconds.
    pub fn rising(&self) -> &[u64] {
        &self.rising
    }

    /// How long it takes with this luck; no time where nothing was seen.
    pub fn draw(&self, (now, part): Luck) -> Span {
        if self.seen.is_empty() {
            return at(&self.rising, part);
        }
        let next = self.seen.partition_point(|(at, _)| *at < now);
        let end = (next + AROUND / 2).max(AROUND).min(self.seen.len());
        let mut near: Vec<u64> = self.seen[end.saturating_sub(AROUND)..end].iter().map(|(_, took)| *took).collect();
        near.sort_unstable();
        at(&near, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: u64) -> Time {
        Time::ZERO + Span::secs(at)
    }

    /// Microseconds.
    fn draws(times: &Times, at: u64) -> [u64; 4] {
        [0.0, 0.49, 0.51, 0.999].map(|part| times.draw((second(at), part)).as_ps() / 1_000_000)
    }

    #[test]
    fn a_time_is_drawn_of_those_around_it_or_of_all() {
        let mut times = Times::default();
        (0..200).for_each(|at| times.note(second(at), Span::us(if at < 100 { 1 } else { 9 })));
        let times = times.settled();
        assert_eq!(draws(&times, 0), [1, 1, 1, 1]);
        assert_eq!(draws(&times, 68), [1, 1, 1, 1], "the last before one of the others is among them");
        assert_eq!(draws(&times, 100), [1, 1, 9, 9], "32 before and 32 from then on");
        assert_eq!(draws(&times, 500), [9, 9, 9, 9]);
        let times = Times::from(Vec::from(times));
        assert_eq!(draws(&times, 0), [1, 1, 9, 9]);
    }

    #[test]
    fn one_of_few_that_was_slow_is_one_of_sixteen() {
        let times = |all: &[u64]| {
            let mut times = Times::default();
            (0..).zip(all).for_each(|(at, us)| times.note(second(at), Span::us(*us)));
            times.settled()
        };
        let (alike, ns) = (times(&[2; 40]), |us: &[u64]| us.iter().map(|us| us * 1_000).collect::<Vec<_>>());
        assert_eq!(times(&[900]).filled(&alike).rising(), ns(&[vec![2; 15], vec![900]].concat()));
        assert_eq!(times(&[9; 15]).filled(&alike).rising(), ns(&[vec![2], vec![9; 15]].concat()));
        assert_eq!(times(&[9; 16]).filled(&alike).rising(), ns(&[9; 16]));
        assert_eq!(times(&[900]).filled(&times(&[2, 2])).rising(), ns(&[2, 2, 900]), "no more were seen");
        assert!(times(&[]).filled(&alike).is_empty());
    }

    #[test]
    fn what_is_odd_is_taken_out_where_it_is_rare() {
        let take = |slow: u64, all: u64| {
            let mut times = Times::default();
            (0..all).for_each(|at| times.note(second(at), Span::us(if at < slow { 90 } else { 1 })));
            let odd = times.take_rare(32, |at, took| (took > Span::us(50)).then_some(at));
            (odd.len(), times.settled().rising().len())
        };
        assert_eq!([take(1, 2), take(2, 63), take(2, 64), take(3, 64)], [(1, 1), (0, 63), (2, 62), (0, 64)]);
    }

    #[test]
    fn a_file_has_a_distribution() {
        let mut times = Times::default();
        (0..2_000).rev().for_each(|at| times.note(Time::ZERO, Span::ns(at)));
        let file: Vec<u64> = times.settled().into();
        assert_eq!((file.len(), file[0], file[999]), (1_000, 1, 1_999));
        assert_eq!(Times::default().draw((Time::ZERO, 0.5)), Span::ZERO);
    }
}
