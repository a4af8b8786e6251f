//! Open-loop arrivals: each node's own clock, and the merging of all nodes into one sequence.

use crate::config::Arrivals;
use base::{NodeId, Seed, Span, Stream, Time};
use std::hint::select_unpredictable;

/// The kinds of gaps between a node's arrivals, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gaps {
    /// Exponential.
    Poisson { mean: f64 },
    /// All equal, after a random phase.
    Equal { gap: f64 },
    /// Exponential while on. On and off periods are exponential too and begin in their steady
    /// state, so that the mean rate is `on / (on + off)` of the rate while on from the first
    /// picosecond.
    OnOff { mean: f64, on: f64, off: f64 },
}

impl Gaps {
    /// `None` for a closed loop or a trace.
    pub(crate) fn new(arrivals: &Arrivals) -> Option<Gaps> {
        let picoseconds = |span: &Span| span.as_ps() as f64;
        match arrivals {
            Arrivals::Poisson { mean_gap_ps } => Some(Gaps::Poisson { mean: *mean_gap_ps }),
            Arrivals::Deterministic { gap_ps } => Some(Gaps::Equal { gap: *gap_ps }),
            Arrivals::OnOff { mean_gap_ps, on, off } => {
                Some(Gaps::OnOff { mean: *mean_gap_ps, on: picoseconds(on), off: picoseconds(off) })
            }
            Arrivals::Closed { .. } | Arrivals::Trace { .. } => None,
        }
    }
}

/// One node's clock of arrivals.
///
/// The present is a whole number of picoseconds and a fraction below one: gaps need not be whole
/// and their sum does not drift, however long the run. One cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Ticker {
    whole_ps: u64,
    fraction_ps: f64,
    /// What is left of the present on period.
    on_left_ps: f64,
    gaps: Stream,
    phases: Stream,
}

impl Ticker {
    /// A clock at zero for `node`.
    pub(crate) fn new(node: NodeId, seed: Seed) -> Ticker {
        let stream = |purpose: &str| seed.stream(&format!("workload/node/{}/{purpose}", node.0));
        Ticker { whole_ps: 0, fraction_ps: 0.0, on_left_ps: 0.0, gaps: stream("arrivals"), phases: stream("phases") }
    }

    /// Advances to the first arrival. Call it once, before [`Ticker::next`].
    pub(crate) fn first(&mut self, kind: &Gaps) -> Time {
        match kind {
            Gaps::Poisson { .. } => self.next(kind),
            Gaps::Equal { gap } => {
                let phase = self.gaps.unit() * gap;
                self.advance(phase)
            }
            Gaps::OnOff { on, off, .. } => {
                self.begin_in_steady_state(*on, *off);
                self.next(kind)
            }
        }
    }

    /// Advances to the next arrival; [`Time::MAX`] if it lies past the end of representable time.
    pub(crate) fn next(&mut self, kind: &Gaps) -> Time {
        let gap = match kind {
            Gaps::Poisson { mean } => self.gaps.exponential(*mean),
            Gaps::Equal { gap } => *gap,
            Gaps::OnOff { mean, on, off } => {
                let gap = self.gaps.exponential(*mean);
                gap + self.off_time_during(gap, *on, *off)
            }
        };
        self.advance(gap)
    }

    fn begin_in_steady_state(&mut self, on: f64, off: f64) {
        if self.phases.unit() * (on + off) >= on {
            let rest_of_off = self.phases.exponential(off);
            self.advance(rest_of_off);
        }
        self.on_left_ps = self.phases.exponential(on);
    }

    /// Lets `gap` of on time pass and returns how much off time lies in it.
    fn off_time_during(&mut self, mut gap: f64, on: f64, off: f64) -> f64 {
        let mut off_time = 0.0;
        while gap >= self.on_left_ps {
            gap -= self.on_left_ps;
            off_time += self.phases.exponential(off);
            self.on_left_ps = self.phases.exponential(on);
        }
        self.on_left_ps -= gap;
        off_time
    }

    fn advance(&mut self, gap_ps: f64) -> Time {
        let sum = self.fraction_ps + gap_ps;
        let whole = sum as u64;
        self.fraction_ps = sum - whole as f64;
        self.whole_ps = self.whole_ps.saturating_add(whole);
        Time::ps(self.whole_ps)
    }
}

/// The next arrival of every node, and the node of the earliest: a tournament of pairs (a winner
/// tree).
///
/// A change of one entry replays the games on its path to the root, one comparison per level and no
/// branch. A binary heap does two comparisons per level and mispredicts half of them. Of equal
/// times the lower node wins.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// The winner at 1, below `k` its players `2k` and `2k + 1`, and the entries from `leaves` on.
    games: Vec<Player>,
    leaves: usize,
}

/// An entry. In every game the lower node is the left player.
#[derive(Clone, Copy, Debug)]
struct Player {
    time: Time,
    node: NodeId,
}

impl Tournament {
    /// One entry a node, in order of id; [`Time::MAX`] for never.
    pub(crate) fn new(times: &[Time]) -> Tournament {
        let leaves = times.len().next_power_of_two();
        let mut games = vec![Player { time: Time::MAX, node: NodeId(u32::MAX) }; 2 * leaves];
        for (time, node) in times.iter().zip(0..) {
            games[leaves + node as usize] = Player { time: *time, node: NodeId(node) };
        }
        for game in (1..leaves).rev() {
            games[game] = games[2 * game].against(games[2 * game + 1], false);
        }
        Tournament { games, leaves }
    }

    /// The earliest entry.
    pub(crate) fn earliest(&self) -> (Time, NodeId) {
        let Player { time, node } = self.games[1];
        (time, node)
    }

    /// Gives `node` a new time.
    pub(crate) fn set(&mut self, node: NodeId, time: Time) {
        let mut game = self.leaves + node.index();
        let mut winner = Player { time, node };
        self.games[game] = winner;
        while game > 1 {
            winner = winner.against(self.games[game ^ 1], game % 2 == 1);
            game /= 2;
            self.games[game] = winner;
        }
    }
}

impl Player {
    /// Returns the winner of a game, of equal times the left player. The result is unpredictable,
    /// so the code does not branch on it.
    fn against(self, other: Player, other_is_left: bool) -> Player {
        let loses = (other.time < self.time) | ((other.time == self.time) & other_is_left);
        Player {
            time: select_unpredictable(loses, other.time, self.time),
            node: select_unpredictable(loses, other.node, self.node),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(kind: Gaps, seed: u64, count: usize) -> Vec<u64> {
        let mut ticker = Ticker::new(NodeId(0), Seed(seed));
        let first = ticker.first(&kind);
        let rest = std::iter::repeat_with(|| ticker.next(&kind));
        std::iter::once(first).chain(rest).take(count).map(Time::as_ps).collect()
    }

    #[test]
    fn poisson_gaps_have_their_mean_and_the_variance_of_an_exponential() {
        let times = times(Gaps::Poisson { mean: 1234.5 }, 5, 400_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1234.5 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.01, "{variance}");
    }

    #[test]
    fn gaps_below_a_picosecond_keep_their_rate() {
        let times = times(Gaps::Poisson { mean: 0.3 }, 5, 400_000);
        let mean = *times.last().unwrap() as f64 / times.len() as f64;
        assert!((mean / 0.3 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn equal_gaps_never_drift() {
        let times = times(Gaps::Equal { gap: 100.75 }, 9, 1_000_001);
        assert_eq!(times[1_000_000] - times[0], 100_750_000);
        assert!(times[0] <= 100, "the phase lies within one gap: {}", times[0]);
        assert!(times.windows(2).all(|pair| (100..=101).contains(&(pair[1] - pair[0]))));
    }

    #[test]
    fn phases_of_equal_gaps_spread_over_the_gap() {
        let mean = (0..1_000).map(|seed| times(Gaps::Equal { gap: 1000.0 }, seed, 1)[0]).sum::<u64>() / 1_000;
        assert!((450..550).contains(&mean), "{mean}");
    }

    #[test]
    fn on_off_has_its_long_run_rate_and_is_bursty() {
        let kind = Gaps::OnOff { mean: 100.0, on: 2_000.0, off: 6_000.0 };
        let times = times(kind, 5, 400_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean / 400.0 - 1.0).abs() < 0.03, "{mean}");
        // A gap holds `on time E` (exponential, mean 100) and Poisson(E / on) off periods
        // (exponential): its variance is E[E / on] * 2 off^2 + Var(E) * (1 + off / on)^2; a Poisson
        // process of this rate would have 400^2.
        let expected = 100.0 / 2_000.0 * 2.0 * 6_000.0f64.powi(2) + 100.0f64.powi(2) * 16.0;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance / expected - 1.0).abs() < 0.06, "{variance} against {expected}");
    }

    #[test]
    fn on_off_starts_in_its_steady_state() {
        let kind = Gaps::OnOff { mean: 100.0, on: 20_000.0, off: 60_000.0 };
        let early = |seed| times(kind, seed, 200).iter().filter(|time| **time < 4_000).count();
        let mean = (0..4_000).map(early).sum::<usize>() as f64 / 4_000.0;
        assert!((9.0..11.0).contains(&mean), "a quarter of 40 is expected in the first 4 ns: {mean}");
    }

    #[test]
    fn without_off_periods_on_off_is_poisson() {
        let on_off = times(Gaps::OnOff { mean: 100.0, on: 1_000.0, off: 0.0 }, 5, 10_000);
        let poisson = times(Gaps::Poisson { mean: 100.0 }, 5, 10_000);
        assert_eq!(on_off, poisson);
    }

    #[test]
    fn time_stops_at_the_end_of_its_range() {
        assert_eq!(times(Gaps::Equal { gap: 1e19 }, 1, 4).last(), Some(&u64::MAX));
        assert_eq!(times(Gaps::Poisson { mean: 1e300 }, 1, 3).last(), Some(&u64::MAX));
    }

    proptest! {
        #[test]
        fn the_tournament_finds_the_first_of_the_earliest(
            start in proptest::collection::vec(0u64..20, 1..20), changes in proptest::collection::vec((0usize..20, 0u64..20), 0..40),
        ) {
            let mut times: Vec<Time> = start.into_iter().map(Time::ps).collect();
            let mut tournament = Tournament::new(&times);
            for (index, time) in changes {
                let index = index % times.len();
                times[index] = Time::ps(time);
                tournament.set(NodeId(index as u32), Time::ps(time));
                let first = (0..times.len()).min_by_key(|index| (times[*index], *index)).unwrap();
                prop_assert_eq!(tournament.earliest(), (times[first], NodeId(first as u32)));
            }
        }
    }
}
