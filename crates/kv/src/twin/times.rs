//! Times that were seen, of which a simulation draws.

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

/// When something was, and how long it took, in nanoseconds.
pub(super) type Noted = Vec<(Time, u64)>;

/// When something is, and which part of all that were seen take less, from 0 to 1.
pub(super) type Luck = (Time, f64);

/// Notes that something took so long.
pub(super) fn note(seen: &mut Noted, at: Time, took: Span) {
    if seen.len() < SEEN_MAX {
        seen.push((at, took.as_ps() / 1_000));
    }
}

/// Times of a kind, in nanoseconds. In a file they are a distribution: rising, and evenly spaced in
/// it. Those of a run itself know when they were: work of others on the machine makes many slow at
/// a time, and a simulation of the same run draws of those around the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct Times {
    rising: Vec<u64>,
    seen: Noted,
}

impl From<Vec<u64>> for Times {
    fn from(mut rising: Vec<u64>) -> Times {
        rising.sort_unstable();
        Times { rising, seen: Noted::new() }
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
    /// Those that were seen.
    pub(super) fn of(mut seen: Noted) -> Times {
        seen.sort_unstable();
        let mut rising: Vec<u64> = seen.iter().map(|(_, took)| *took).collect();
        rising.sort_unstable();
        Times { rising: thinned(&rising, KEPT), seen: thinned(&seen, KEPT_WITH_WHEN) }
    }

    /// How long it takes with this luck.
    pub(super) fn draw(&self, (now, part): Luck) -> Span {
        if self.seen.is_empty() {
            return at(&self.rising, part);
        }
        let next = self.seen.partition_point(|(at, _)| *at < now);
        let end = (next + AROUND / 2).max(AROUND).min(self.seen.len());
        let mut near: Vec<u64> = self.seen[end.saturating_sub(AROUND)..end].iter().map(|(_, took)| *took).collect();
        near.sort_unstable();
        at(&near, part)
    }

    /// Forgets when they were: another run had other times.
    pub(super) fn forget_when(&mut self) {
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_drawn_of_those_around_it_or_of_all() {
        let second = |at: u64| Time::ZERO + Span::secs(at);
        // 1 us in the first hundred seconds, and 9 us then.
        let mut times = Times::of((0..200).map(|at| (second(at), if at < 100 { 1_000 } else { 9_000 })).collect());
        let draws =
            |times: &Times, at| [0.0, 0.49, 0.51, 0.999].map(|part| times.draw((second(at), part)).as_ps() / 1_000_000);
        assert_eq!(draws(&times, 0), [1, 1, 1, 1]);
        assert_eq!(draws(&times, 68), [1, 1, 1, 1], "the last before one of the others is among them");
        assert_eq!(draws(&times, 100), [1, 1, 9, 9], "32 before and 32 from then on");
        assert_eq!(draws(&times, 500), [9, 9, 9, 9]);
        times.forget_when();
        assert_eq!(draws(&times, 0), [1, 1, 9, 9]);
    }

    #[test]
    fn a_file_has_a_distribution() {
        let times = Times::of((0..2_000).rev().map(|at| (Time::ZERO, at)).collect());
        let text = serde_json::to_string(&times).expect("numbers are a text");
        let read: Times = serde_json::from_str(&text).expect("it is one");
        assert_eq!((read.rising.len(), read.rising[0], read.rising[999]), (1_000, 1, 1_999));
        assert_eq!(Times::default().draw((Time::ZERO, 0.5)), Span::ZERO);
    }
}
