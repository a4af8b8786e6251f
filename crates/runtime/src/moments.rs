//! Moments of one run that are like those of another, by what was asked then.

use crate::times::Luck;
use base::{Span, Stream, Time};
use std::collections::BTreeMap;

/// What is asked in so long says what a moment is like. Ours.
const WHILE: Span = Span::ms(50);
/// What came no longer after a request had ended is what its host had kept for then. Ours.
pub const SOON: Span = Span::ms(1);
/// When a host asks, that had seen so many ends live and has `ends` now; `None` while there are too
/// few. It asks `soon` after the last of them, and else at its time, but not before that end.
pub fn due(at: Time, ended: u64, soon: Option<Span>, ends: &[Time]) -> Option<Time> {
    let Some(last) = ended.checked_sub(1) else { return Some(at) };
    let last = *ends.get(usize::try_from(last).ok()?)?;
    Some(soon.map_or(at.max(last), |soon| last + soon))
}

/// So many moments of the other run, those most alike, stand for one. Ours.
const ALIKE: usize = 8;
/// Moments of the other run that are looked at.
const OTHERS_MAX: usize = 2_000;

/// How much of each of `KINDS` was asked in each while of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads<const KINDS: usize>(BTreeMap<u64, [u32; KINDS]>);

impl<const KINDS: usize> Default for Loads<KINDS> {
    fn default() -> Self {
        Loads(BTreeMap::new())
    }
}

impl<const KINDS: usize> Loads<KINDS> {
    /// One of this kind was asked at `at`.
    pub fn note(&mut self, at: Time, kind: usize) {
        let count = &mut self.0.entry(number_of(at)).or_insert([0; KINDS])[kind];
        *count = count.saturating_add(1);
    }

    /// Each while, by the logarithms of what was asked: twice as much is as far as half as much.
    fn sizes(&self) -> impl Iterator<Item = (u64, [f64; KINDS])> + '_ {
        self.0.iter().map(|(number, counts)| (*number, counts.map(|count| (f64::from(count) + 1.0).ln())))
    }
}

fn number_of(at: Time) -> u64 {
    at.as_ps() / WHILE.as_ps()
}

/// Whiles of another run that stand for those of a run.
#[derive(Clone, Debug, Default)]
pub struct Moments(BTreeMap<u64, Vec<u64>>);

impl Moments {
    /// For each while of a run, those of `other` that are most like it. Nothing is known of an
    /// `other` without load.
    pub fn new<const KINDS: usize>(own: &Loads<KINDS>, other: &Loads<KINDS>) -> Moments {
        let every = other.0.len().div_ceil(OTHERS_MAX).max(1);
        let others: Vec<(u64, [f64; KINDS])> = other.sizes().step_by(every).collect();
        let alike = |own: [f64; KINDS]| {
            let apart = |other: &[f64; KINDS]| own.iter().zip(other).map(|(own, other)| (own - other).abs()).sum();
            let mut near: Vec<(f64, u64)> = others.iter().map(|(number, other)| (apart(other), *number)).collect();
            if ALIKE < near.len() {
                near.select_nth_unstable_by(ALIKE, |one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
                near.truncate(ALIKE);
            }
            let mut alike: Vec<u64> = near.into_iter().map(|(_, number)| number).collect();
            alike.sort_unstable();
            alike
        };
        let each = own.sizes().map(|(number, own)| (number, alike(own)));
        Moments(each.filter(|(_, alike)| !alike.is_empty()).collect())
    }

    /// A time of the other run that stands for `now`, by chance one of several: `now` itself where
    /// nothing is known.
    fn like(&self, now: Time, stream: &mut Stream) -> Time {
        let before = self.0.range(..=number_of(now)).next_back();
        let Some((_, others)) = before.or_else(|| self.0.first_key_value()) else { return now };
        let other = others[stream.below(others.len() as u64) as usize];
        Time::ps((other * WHILE.as_ps()).saturating_add(now.as_ps() % WHILE.as_ps()))
    }
}

/// What is drawn by one program of a simulation.
#[derive(Clone, Debug)]
pub struct Chance {
    stream: Stream,
    moments: Moments,
}

impl Chance {
    /// Draws of `stream`, at moments like these.
    pub fn new(stream: Stream, moments: Moments) -> Chance {
        Chance { stream, moments }
    }

    /// The next draw, of what is drawn at `now`.
    pub fn at(&mut self, now: Time) -> Luck {
        (self.moments.like(now, &mut self.stream), self.stream.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_asks_soon_after_an_end_or_at_its_time() {
        let at = |us| Time::ZERO + Span::us(us);
        let ends = [at(10), at(50)];
        assert_eq!(due(at(30), 0, None, &[]), Some(at(30)));
        assert_eq!([1, 2, 3].map(|ended| due(at(30), ended, None, &ends)), [Some(at(30)), Some(at(50)), None]);
        let soon = Some(Span::us(4));
        assert_eq!([1, 2, 3].map(|ended| due(at(30), ended, soon, &ends)), [Some(at(14)), Some(at(54)), None]);
    }
    use base::Seed;

    fn at(number: u64, rest: u64) -> Time {
        Time::ZERO + WHILE * number + Span::us(rest)
    }

    /// So many of both kinds in each while from `from` on.
    fn loads(from: u64, counts: &[[u32; 2]]) -> Loads<2> {
        let mut loads = Loads::default();
        for (number, counts) in (from..).zip(counts) {
            for (kind, count) in counts.iter().enumerate() {
                (0..*count).for_each(|_| loads.note(at(number, 0), kind));
            }
        }
        loads
    }

    #[test]
    fn a_moment_is_one_of_the_other_run_that_was_as_busy() {
        let other: Vec<[u32; 2]> = (0..40).map(|number| if number < 20 { [100, 0] } else { [10, 40] }).collect();
        let moments = Moments::new(&loads(3, &[[11, 39], [90, 1], [12, 35]]), &loads(1_000, &other));
        let mut chance = Chance::new(Seed(1).stream("moments"), moments);
        let mut seen = [0; 40];
        for _ in 0..200 {
            let mut like = |number| {
                let (like, _) = chance.at(at(number, 7));
                assert_eq!(like.as_ps() % WHILE.as_ps(), Span::us(7).as_ps());
                (number_of(like) - 1_000) as usize
            };
            assert!([3, 5, 0, 99].into_iter().all(|number| like(number) >= 20), "the first and the last go on");
            seen[like(4)] += 1;
        }
        assert_eq!(seen.iter().take(20).filter(|count| **count > 0).count(), ALIKE);
        assert!(seen.iter().skip(20).all(|count| *count == 0));
    }

    #[test]
    fn nothing_is_like_a_run_without_load() {
        let moments = Moments::new(&loads(0, &[[1, 1]]), &loads(0, &[]));
        assert_eq!(moments.like(at(9, 5), &mut Seed(1).stream("moments")), at(9, 5));
    }
}
