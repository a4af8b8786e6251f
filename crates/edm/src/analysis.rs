//! How long the scheduler takes to form a maximal matching (paper 3.1.3), measured on the scheduler
//! itself.

use crate::config::{Config, Place, Policy};
use crate::message::MessageId;
use crate::scheduler::{Demand, DemandKind, Scheduler};
use crate::{Ordering, Tag};
use base::{Bytes, NodeId, Seed, Span, Time};

/// What [`maximal_matching`] finds, as means over its trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matching {
    /// Iterations that matched something before one matched nothing more.
    pub iterations: f64,
    /// Iterations until 99 % of the final pairs were matched.
    pub iterations_to_99_percent: f64,
    /// The time of those iterations, at the scheduler's clock, in nanoseconds.
    pub latency_ns: f64,
    /// The same to 99 %.
    pub latency_to_99_percent_ns: f64,
    /// Pairs in the matching, over the number of ports.
    pub matched: f64,
}

/// Lets every ordered pair of ports of `place` demand one chunk, in an order drawn from `seed`, and
/// counts the iterations until the matching is maximal. All ports are free at the start and none
/// becomes free in between.
pub fn maximal_matching(config: &Config, place: Place, trials: u32, seed: Seed) -> Matching {
    let mut sum = Matching::default();
    for trial in 0..trials {
        let new_pairs = trial_of(config, place, seed.child(&format!("matching/{trial}")));
        let total: usize = new_pairs.iter().sum();
        let mut so_far = 0;
        let most = new_pairs.iter().position(|pairs| {
            so_far += pairs;
            so_far * 100 >= total * 99
        });
        sum.iterations += new_pairs.len() as f64;
        sum.iterations_to_99_percent += most.map_or(0.0, |index| (index + 1) as f64);
        sum.matched += total as f64 / f64::from(place.nodes);
    }
    let trials = f64::from(trials);
    let iteration_ns = config.scheduler_clock.cycles(crate::budget::ITERATION).as_ns_f64();
    let (all, most) = (sum.iterations / trials, sum.iterations_to_99_percent / trials);
    Matching {
        iterations: all,
        iterations_to_99_percent: most,
        latency_ns: all * iteration_ns,
        latency_to_99_percent_ns: most * iteration_ns,
        matched: sum.matched / trials,
    }
}

/// New pairs of each iteration that matched something.
fn trial_of(config: &Config, place: Place, seed: Seed) -> Vec<usize> {
    // A chunk that outlasts all iterations (5 us at 100 Gb/s), so that no port becomes free.
    let config = Config {
        chunk: Bytes::new(u64::from(u16::MAX)),
        policy: Policy::Fcfs,
        ordering: Ordering::Channel,
        matching: crate::Matching::Continuous,
        iterations_per_round: 1,
        ..*config
    };
    let mut scheduler = Scheduler::new(config, place);
    for (source, target) in shuffled_pairs(place.nodes, seed) {
        let kind = DemandKind::Write { batch: 1 };
        let bytes = config.chunk.count() as u32;
        let demand = Demand { source, target, id: MessageId(0), bytes, kind, tag: Tag(0) };
        scheduler.insert(Time::ZERO, demand).expect("one demand a pair is within every limit");
    }
    let (mut new_pairs, mut out, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    loop {
        out.clear();
        scheduler.iterate(now, &mut out);
        if out.is_empty() {
            return new_pairs;
        }
        new_pairs.push(out.len());
        now += scheduler.round().max(Span::ps(1));
    }
}

/// Every ordered pair, in a random order (Fisher and Yates).
fn shuffled_pairs(ports: u32, seed: Seed) -> Vec<(NodeId, NodeId)> {
    let mut random = seed.stream("order");
    let all = (0..ports).flat_map(|source| (0..ports).map(move |target| (NodeId(source), NodeId(target))));
    let mut pairs: Vec<_> = all.filter(|(source, target)| source != target).collect();
    for last in (1..pairs.len()).rev() {
        pairs.swap(last, random.below(last as u64 + 1) as usize);
    }
    pairs
}
