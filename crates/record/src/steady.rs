//! Detection of a steady state in the measured part of a run.
//!
//! The rule is MSER (White, "An effective truncation heuristic for bias reduction in simulation
//! output", Simulation 1997; White, Cobb and Spratt, WSC 2000). Of the means of `n` batches the
//! first `d` are a transient. `d` minimises the standard error of the mean of the rest, `sum (y -
//! mean)^2 / (n - d)^2`. A `d` beyond the half means that the run has not become steady.
//!
//! MSER-5 uses batches of five observations. Here batches are intervals of time: their number does
//! not depend on the length of the run, and they do not depend on the order of rows.

use base::{Span, Time};

/// Maximum number of intervals; when a run has more, neighbours merge.
const BATCHES_MAX: usize = 128;
/// Fewer batches, or fewer requests in each on average, allow no conclusion.
const BATCHES_MIN: usize = 24;
const REQUESTS_MIN: u64 = 8;
/// Minimum relative effect of the transient on the mean for a warning. Our choice.
const SHIFT_MIN: f64 = 0.05;
/// Minimum distance of the transient from the rest, in standard deviations of a batch. Heavy tails
/// move single batches, and MSER may cut there. Our choice.
const DEVIATIONS: f64 = 2.0;

/// Sums of latency by intended start.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// A batch is `1 << shift` picoseconds long.
    shift: u32,
    batches: Vec<Batch>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Batch {
    latency_ps: u128,
    count: u64,
}

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Steadiness {
    /// There is no evidence of a transient, or too few requests to tell.
    Steady,
    /// The requests intended before this time, in picoseconds, are a transient. `shift` is their
    /// effect on the mean latency, relative to the mean of the rest.
    From { ps: u64, shift: f64 },
    /// The run did not become steady in the first half of its measured part.
    Never,
}

/// The transient of a run that was measured from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transient {
    /// Too few requests to tell.
    Unknown,
    /// The requests intended before this time: about a hundredth of the run or more.
    Until(Time),
    /// More than half, which ends at this time.
    MoreThan(Time),
}

impl Course {
    pub fn new() -> Course {
        Course { shift: 0, batches: Vec::new() }
    }
    /// Adds a request that counts.
    pub fn add(&mut self, intended: Time, latency: Span) {
        let intended_ps = intended.as_ps();
        while (intended_ps >> self.shift) as usize >= BATCHES_MAX {
            self.halve();
        }
        let place = (intended_ps >> self.shift) as usize;
        if self.batches.len() <= place {
            self.batches.resize(place + 1, Batch::default());
        }
        let batch = &mut self.batches[place];
        batch.latency_ps += u128::from(latency.as_ps());
        batch.count += 1;
    }
    /// Returns whether the measured part is steady.
    pub fn steadiness(&self) -> Steadiness {
        let means = self.means();
        if means.len() < BATCHES_MIN {
            return Steadiness::Steady;
        }
        let values: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
        let cut = truncation(&values);
        let (mean, deviation) = moments(&values[cut..]);
        let beside = median(&values[..cut.max(1)]) - mean;
        let shift = moments(&values).0 / mean - 1.0;
        if cut == 0 || beside.abs() < DEVIATIONS * deviation || shift.abs() < SHIFT_MIN {
            return Steadiness::Steady;
        }
        match 2 * cut > values.len() {
            true => Steadiness::Never,
            false => Steadiness::From { ps: means[cut].0, shift },
        }
    }

    /// Returns the transient by MSER. A cut in the second half that chance explains does not count.
    pub fn transient(&self) -> Transient {
        let means = self.means();
        if means.len() < BATCHES_MIN {
            return Transient::Unknown;
        }
        let values: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
        let cut = truncation(&values);
        match self.steadiness() {
            _ if 2 * cut <= values.len() => Transient::Until(Time::ps(means[cut].0)),
            Steadiness::Steady => Transient::Until(Time::ps(means[0].0)),
            _ => Transient::MoreThan(Time::ps(means[means.len() / 2].0)),
        }
    }

    fn halve(&mut self) {
        let sum = |pair: &[Batch]| Batch {
            latency_ps: pair.iter().map(|batch| batch.latency_ps).sum(),
            count: pair.iter().map(|batch| batch.count).sum(),
        };
        self.batches = self.batches.chunks(2).map(sum).collect();
        self.shift += 1;
    }
    /// Returns the begin and the mean of every batch with requests. The first and the last are left
    /// out, as they are measured only in part. Empty if there are too few requests.
    fn means(&self) -> Vec<(u64, f64)> {
        let filled: Vec<(u64, Batch)> =
            (0..).zip(&self.batches).filter(|(_, batch)| batch.count > 0).map(|(at, batch)| (at, *batch)).collect();
        let requests: u64 = filled.iter().map(|(_, batch)| batch.count).sum();
        if filled.len() < 2 || requests < REQUESTS_MIN * filled.len() as u64 {
            return Vec::new();
        }
        let inner = &filled[1..filled.len() - 1];
        inner.iter().map(|(at, batch)| (at << self.shift, batch.latency_ps as f64 / batch.count as f64)).collect()
    }
}

/// Returns the number of initial values that are a transient. At most three quarters: the fewer
/// values remain, the more often they are alike by chance.
fn truncation(values: &[f64]) -> usize {
    let error_of_mean = |cut: usize| {
        let (_, deviation) = moments(&values[cut..]);
        deviation * deviation / (values.len() - cut) as f64
    };
    let cuts = 0..=values.len() * 3 / 4;
    cuts.min_by(|one, other| error_of_mean(*one).total_cmp(&error_of_mean(*other))).unwrap_or(0)
}

fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / count).sqrt())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Seed, Stream};

    fn course(latencies_us: impl Iterator<Item = (f64, f64)>) -> Course {
        let mut course = Course::new();
        for (at_us, latency_us) in latencies_us {
            course.add(Time::ZERO + Span::from_ps_f64(at_us * 1e6), Span::from_ps_f64(latency_us * 1e6));
        }
        course
    }
    fn exponential(stream: &mut Stream, mean: f64) -> f64 {
        -mean * (1.0 - stream.unit()).ln()
    }
    /// Simulates an M/M/1 queue of load `load` with a service time of 1 us that starts with
    /// `backlog` us of work. Returns the arrival and the latency of each request, in microseconds.
    fn requests(seed: u64, load: f64, backlog: f64, count: usize) -> Vec<(f64, f64)> {
        let mut stream = Seed(seed).stream("queue");
        let (mut now, mut free_at) = (0.0, backlog);
        let request = |_| {
            now += exponential(&mut stream, 1.0 / load);
            free_at = f64::max(free_at, now) + exponential(&mut stream, 1.0);
            (now, free_at - now)
        };
        (0..count).map(request).collect()
    }
    fn queue(seed: u64, load: f64, backlog: f64, count: usize) -> Course {
        course(requests(seed, load, backlog, count).into_iter())
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        // 1,000 us at 300 us, then 100 us: 20 % of the run, and 40 % of the mean.
        let stepped = course((0..5_000).map(|at| (f64::from(at), if at < 1_000 { 300.0 } else { 100.0 })));
        let Steadiness::From { ps, shift } = stepped.steadiness() else { panic!("{:?}", stepped.steadiness()) };
        assert!((1_000e6..1_080e6).contains(&(ps as f64)), "{ps}");
        assert!((0.3..0.45).contains(&shift), "{shift}");
    }

    #[test]
    fn a_queue_that_starts_full_is_a_transient_until_it_has_drained() {
        // The backlog shrinks at a rate of 1 - 0.5: 2,000 us of work are gone after 4,000 us.
        let full = queue(3, 0.5, 2_000.0, 20_000);
        let Steadiness::From { ps, .. } = full.steadiness() else { panic!("{:?}", full.steadiness()) };
        assert!((3_000e6..5_000e6).contains(&(ps as f64)), "{ps}");
    }

    #[test]
    fn a_queue_that_is_steady_gives_no_alarm() {
        let alarms = (0..200).filter(|seed| queue(*seed, 0.7, 0.0, 20_000).steadiness() != Steadiness::Steady).count();
        assert!(alarms <= 4, "{alarms} of 200");
    }

    #[test]
    fn what_rises_to_the_end_is_never_steady() {
        let rising = course((0..5_000).map(|at| (f64::from(at), 100.0 + f64::from(at))));
        assert_eq!(rising.steadiness(), Steadiness::Never);
        assert_eq!(queue(3, 1.5, 0.0, 20_000).steadiness(), Steadiness::Never);
    }

    #[test]
    fn without_its_transient_a_queue_has_the_mean_of_the_closed_form() {
        // M/M/1: 1 us / (1 - 0.5). With 2,000 us of initial work the mean of the whole run is 222
        // us.
        let (mut without, mut whole) = (0.0, 0.0);
        for seed in 0..20 {
            let all = requests(seed, 0.5, 2_000.0, 20_000);
            let Transient::Until(until) = course(all.iter().copied()).transient() else { panic!("seed {seed}") };
            let until_us = until.as_ps() as f64 / 1e6;
            let rest: Vec<f64> = all.iter().filter(|(at, _)| *at >= until_us).map(|(_, latency)| *latency).collect();
            without += moments(&rest).0 / 20.0;
            whole += moments(&all.iter().map(|(_, latency)| *latency).collect::<Vec<_>>()).0 / 20.0;
        }
        assert!((without / 2.0 - 1.0).abs() < 0.05, "{without}");
        assert!(whole > 100.0, "{whole}");
    }

    #[test]
    fn a_steady_queue_keeps_most_of_its_requests() {
        for seed in 0..50 {
            let Transient::Until(until) = queue(seed, 0.7, 0.0, 20_000).transient() else { panic!("seed {seed}") };
            assert!(until.as_ps() as f64 <= 0.51 * 20_000e6 / 0.7, "seed {seed}: {until}");
        }
    }

    #[test]
    fn what_is_no_steady_run_has_no_transient() {
        assert_eq!(queue(3, 0.5, 0.0, 100).transient(), Transient::Unknown);
        let Transient::MoreThan(half) = queue(3, 1.5, 0.0, 20_000).transient() else { panic!("it rises") };
        assert!((half.as_ps() as f64 / (10_000e6 / 1.5) - 1.0).abs() < 0.05, "{half}");
    }

    #[test]
    fn few_requests_say_nothing_and_the_order_of_rows_does_not_matter() {
        assert_eq!(course((0..100).map(|at| (f64::from(at), f64::from(at)))).steadiness(), Steadiness::Steady);
        let of = |at: i32| (f64::from(at), f64::from(at % 7));
        let (forward, backward) = (course((0..3_000).map(of)), course((0..3_000).rev().map(of)));
        assert_eq!((forward.shift, forward.batches), (backward.shift, backward.batches));
    }
}
