//! One summary of several runs that differ only in their seed.

use crate::availability::Availability;
use crate::metric;
use crate::pool::Pool;
use crate::summary::{Counts, Load, Statistics, Summary};
use std::collections::{BTreeMap, BTreeSet};

/// An error of merging summaries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No summary was given.
    #[error("no summary was given, at least one is needed")]
    Empty,
    /// A summary is not of a single run: the mean of means would give its seeds too little weight.
    #[error("a summary of the seeds {seeds:?} was given; only summaries of one seed can be put together")]
    NotSingle {
        /// The seeds of the summary.
        seeds: Vec<u64>,
    },
    /// A seed is repeated or out of order: floating-point means depend on the order.
    #[error("seed {seed} came after seed {previous}; seeds must rise")]
    Order {
        /// The previous seed.
        previous: u64,
        /// The seed that should have been greater.
        seed: u64,
    },
    /// A summary has a metric that is not declared.
    #[error("the metric {name} is not declared, so that it has no value over seeds")]
    Metric {
        /// The metric's name.
        name: String,
    },
    /// A run has statistics of an operation of which the pool has no request.
    #[error("the histograms of {operation} requests are missing, so that it has no percentiles over seeds")]
    NotPooled {
        /// The operation, or `all`.
        operation: String,
    },
    /// A run has a percentile of which the pool has no values.
    #[error("the values of the metric {name} are missing, so that it has no percentile over seeds")]
    NoValues {
        /// The metric's name.
        name: String,
    },
    /// Two runs differ in more than their seed.
    #[error("the runs of seeds {first_seed} and {seed} differ in {field}: {first} and {got}")]
    Different {
        /// The differing field.
        field: &'static str,
        /// The seed of the first run.
        first_seed: u64,
        /// The seed of the run that differs from it.
        seed: u64,
        /// The value in the first run.
        first: String,
        /// The value in the other run.
        got: String,
    },
}

impl Summary {
    /// Merges runs that differ only in their seed, given in the order of their seeds. `pool` has
    /// the requests of all runs, and the values of percentiles.
    ///
    /// Counts and events are summed. Percentiles are those of all requests together. Loads, means
    /// and simulated time are averaged over the runs that have them. `min` and `max` are the
    /// extremes. Metrics are merged as declared, over the runs that have them. `mean_ci95` and
    /// `p99_ci95` are half-widths by Student's t over the values of the runs, absent if only one
    /// run has a value. A warning that some runs lack is prefixed with its seeds.
    pub fn over_seeds(runs: &[Summary], pool: &Pool) -> Result<Summary, MergeError> {
        let first = runs.first().ok_or(MergeError::Empty)?;
        check(first, runs)?;
        Ok(Summary {
            seeds: runs.iter().flat_map(|run| run.seeds.clone()).collect(),
            counts: Counts::sum(runs.iter().map(|run| &run.counts)),
            load: Load::mean(&each(runs, |run| &run.load)),
            availability: Availability::over_seeds(runs.iter().filter_map(|run| run.availability.as_ref())),
            simulated_ns: mean(&each(runs, |run| run.simulated_ns)),
            events: runs.iter().map(|run| run.events).sum(),
            latency_ns: statistics(&each(runs, |run| &run.latency_ns), |name| pool.latency_ns(name))?,
            slowdown: statistics(&each(runs, |run| &run.slowdown), |name| pool.slowdown(name))?,
            unloaded_ns: mean_by_key(&each(runs, |run| &run.unloaded_ns)),
            span_mean_ns: by_key(&each(runs, |run| &run.span_mean_ns), mean_by_key),
            metrics: merged_metrics(&each(runs, |run| &run.metrics), pool)?,
            warnings: warnings(runs),
            partial: runs.iter().any(|run| run.partial),
            ..first.clone()
        })
    }
}

fn each<'a, T>(runs: &'a [Summary], value: impl Fn(&'a Summary) -> T) -> Vec<T> {
    runs.iter().map(value).collect()
}

fn check(first: &Summary, runs: &[Summary]) -> Result<(), MergeError> {
    let seeds = runs.iter().map(single_seed).collect::<Result<Vec<_>, _>>()?;
    if let Some(pair) = seeds.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(MergeError::Order { previous: pair[0], seed: pair[1] });
    }
    runs.iter().try_for_each(|run| check_same(first, run))
}

fn single_seed(run: &Summary) -> Result<u64, MergeError> {
    match run.seeds[..] {
        [seed] => Ok(seed),
        _ => Err(MergeError::NotSingle { seeds: run.seeds.clone() }),
    }
}

fn check_same(first: &Summary, run: &Summary) -> Result<(), MergeError> {
    let labels = |run: &Summary| format!("{:?}", run.labels);
    let fields = [
        ("the program's version", first.version.clone(), run.version.clone()),
        ("the design", first.design.clone(), run.design.clone()),
        ("the plan", first.plan_hash.clone(), run.plan_hash.clone()),
        ("the labels", labels(first), labels(run)),
    ];
    match fields.into_iter().find(|(_, first, got)| first != got) {
        None => Ok(()),
        Some((field, value, got)) => {
            let (first_seed, seed) = (single_seed(first)?, single_seed(run)?);
            Err(MergeError::Different { field, first_seed, seed, first: value, got })
        }
    }
}

impl Counts {
    fn sum<'a>(runs: impl Iterator<Item = &'a Counts>) -> Counts {
        runs.fold(Counts::default(), |sum, run| Counts {
            offered: sum.offered + run.offered,
            issued: sum.issued + run.issued,
            finished: sum.finished + run.finished,
            timed_out: sum.timed_out + run.timed_out,
            rejected: sum.rejected + run.rejected,
            lost: sum.lost + run.lost,
            dropped_packets: sum.dropped_packets + run.dropped_packets,
            unavailable: sum.unavailable + run.unavailable,
            in_flight_at_end: sum.in_flight_at_end + run.in_flight_at_end,
            not_issued: sum.not_issued + run.not_issued,
            measured: sum.measured + run.measured,
        })
    }
}

impl Load {
    fn mean(runs: &[&Load]) -> Load {
        let over = |value: fn(&Load) -> f64| mean(&runs.iter().map(|run| value(run)).collect::<Vec<_>>());
        let planned: Option<Vec<f64>> = runs.iter().map(|run| run.planned).collect();
        Load {
            planned: planned.map(|values| mean(&values)),
            offered_gbps: over(|run| run.offered_gbps),
            achieved_gbps: over(|run| run.achieved_gbps),
            requests_per_second: over(|run| run.requests_per_second),
            busiest_link: over(|run| run.busiest_link),
        }
    }
}

impl Statistics {
    /// Statistics of runs whose requests together have the statistics `pooled`.
    fn over_runs(runs: &[&Statistics], pooled: &Statistics) -> Statistics {
        let values = |value: fn(&Statistics) -> f64| runs.iter().map(|run| value(run)).collect::<Vec<_>>();
        let over = |value| mean(&values(value));
        Statistics {
            count: runs.iter().map(|run| run.count).sum(),
            mean: over(|run| run.mean),
            mean_ci95: half_width_95(&values(|run| run.mean)),
            min: values(|run| run.min).into_iter().fold(f64::INFINITY, f64::min),
            p50: pooled.p50,
            p90: pooled.p90,
            p99: pooled.p99,
            p999: pooled.p999,
            p99_ci95: half_width_95(&values(|run| run.p99)),
            max: values(|run| run.max).into_iter().fold(f64::NEG_INFINITY, f64::max),
            lower_bound_from: pooled.lower_bound_from,
        }
    }
}

/// Returns the values of each key, over the maps that have it.
fn gathered<'a, T>(maps: &[&'a BTreeMap<String, T>]) -> BTreeMap<&'a String, Vec<&'a T>> {
    let keys: BTreeSet<&String> = maps.iter().flat_map(|map| map.keys()).collect();
    keys.into_iter().map(|key| (key, maps.iter().filter_map(|map| map.get(key)).collect())).collect()
}

/// Merges the values of each key, over the maps that have it.
fn by_key<T>(maps: &[&BTreeMap<String, T>], merge: impl Fn(&[&T]) -> T) -> BTreeMap<String, T> {
    gathered(maps).into_iter().map(|(key, values)| (key.clone(), merge(&values))).collect()
}

/// Statistics of each operation, where `pooled` gives those of all its requests.
fn statistics(
    maps: &[&BTreeMap<String, Statistics>],
    pooled: impl Fn(&str) -> Result<Statistics, MergeError>,
) -> Result<BTreeMap<String, Statistics>, MergeError> {
    let merged =
        |(name, runs): (&String, Vec<&Statistics>)| Ok((name.clone(), Statistics::over_runs(&runs, &pooled(name)?)));
    gathered(maps).into_iter().map(merged).collect()
}

fn mean_by_key(maps: &[&BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    by_key(maps, |values| mean(&values.iter().map(|value| **value).collect::<Vec<_>>()))
}

/// Merges metrics, each as declared.
fn merged_metrics(maps: &[&BTreeMap<String, f64>], pool: &Pool) -> Result<BTreeMap<String, f64>, MergeError> {
    let names: BTreeSet<&String> = maps.iter().flat_map(|map| map.keys()).collect();
    let merged = |name: &String| {
        let metric = metric::find(name).ok_or_else(|| MergeError::Metric { name: name.clone() })?;
        let values: Vec<f64> = maps.iter().filter_map(|map| map.get(name)).copied().collect();
        let value = metric.merge().apply(&values).map_or_else(|| pool.metric(name), Ok)?;
        Ok((name.clone(), value))
    };
    names.into_iter().map(merged).collect()
}

/// Returns each warning once, in the order of the seeds; prefixed with its seeds unless every run
/// has it.
fn warnings(runs: &[Summary]) -> Vec<String> {
    let mut seeds_of: Vec<(&String, Vec<String>)> = Vec::new();
    for run in runs {
        let seed = run.seeds[0].to_string();
        for warning in &run.warnings {
            match seeds_of.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, seeds)) => seeds.push(seed.clone()),
                None => seeds_of.push((warning, vec![seed.clone()])),
            }
        }
    }
    let text = |(warning, seeds): (&String, Vec<String>)| match (seeds.len() == runs.len(), seeds.len()) {
        (true, _) => warning.clone(),
        (false, 1) => format!("seed {}: {warning}", seeds[0]),
        (false, _) => format!("seeds {}: {warning}", seeds.join(", ")),
    };
    seeds_of.into_iter().map(text).collect()
}

/// Returns the mean of at least one value.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the 95 % confidence interval of the mean of `values`, by Student's t; `None` for fewer
/// than two values.
pub fn interval_95(values: &[f64]) -> Option<(f64, f64)> {
    let half = half_width_95(values)?;
    Some((mean(values) - half, mean(values) + half))
}

/// Returns half the width of the 95 % confidence interval of the mean, by Student's t; `None` for
/// fewer than two values.
fn half_width_95(values: &[f64]) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let variance = squares / degrees as f64;
    Some(student_t_975(degrees) * (variance / values.len() as f64).sqrt())
}

/// The 0.975 quantile of Student's t with 1 to 30 degrees of freedom. NIST/SEMATECH e-Handbook of
/// Statistical Methods, section 1.3.6.7.2, upper critical values.
const STUDENT_T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The 0.975 quantile of the normal distribution.
const NORMAL_975: f64 = 1.959_964;

/// Returns the 0.975 quantile of Student's t with `degrees` (at least one) degrees of freedom.
pub fn student_t_975(degrees: usize) -> f64 {
    STUDENT_T_975.get(degrees - 1).copied().unwrap_or_else(|| student_t_975_expansion(degrees as f64))
}

/// Returns the first terms of the expansion around the normal quantile: Abramowitz and Stegun,
/// 26.7.5. Accurate to 0.001 beyond the table, where the normal quantile itself would still be 4 %
/// low.
fn student_t_975_expansion(degrees: f64) -> f64 {
    let z = NORMAL_975;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / degrees + second / degrees.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_falls_towards_the_normal_quantile_on_both_sides_of_the_table() {
        assert_eq!(student_t_975(1), 12.706);
        assert_eq!(student_t_975(30), 2.042);
        // From larger tables: 2.0395, 2.0003 and 1.9840.
        for (degrees, published) in [(31, 2.0395), (60, 2.0003), (100, 1.9840)] {
            assert!((student_t_975(degrees) - published).abs() < 0.001, "{degrees}");
        }
        assert!((1..200).all(|degrees| student_t_975(degrees) > student_t_975(degrees + 1)));
    }
}
