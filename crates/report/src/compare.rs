//! What differs between two runs, with an interval over seeds.
//!
//! Runs of the same arrivals are paired by request: statistics cover the requests that were
//! measured and finished in both. Runs of other arrivals are compared as they are, if the caller
//! asks for it.
//!
//! # Formulae
//! Let *d* be the difference of a value within one seed, and *s* the number of seeds. The interval
//! is that of the mean of *d*, by a bootstrap: seeds are drawn with replacement, and the 2.5th and
//! 97.5th percentiles of the means are taken. A bootstrap of few seeds is too narrow. Its distances
//! from the mean are therefore multiplied by t(0.975, *s* - 1) / 1.96 × √(*s* / (*s* - 1)), the
//! expansion of T. Hesterberg, "What Teachers Should Know About the Bootstrap" (2015), 3.2.2.

mod bootstrap;
mod pair;
mod show;

pub use pair::{ArrivalsDiffer, PairError, Pairing, Rows, SeedPair, pair};
pub use show::{csv, json, text};

use bootstrap::interval;
use serde::Serialize;
use std::collections::BTreeMap;

/// The name of a compared value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Name {
    /// What kind of value it is.
    pub group: Group,
    /// The operation, the kind of span, the load's or the metric's name.
    pub of: String,
    /// The statistic of a latency: `mean`, `p50`, `p99` or `p999`; else empty.
    pub statistic: &'static str,
}

/// Kinds of compared values, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// End-to-end latency of the paired requests, by operation, in nanoseconds.
    Latency,
    /// Throughput and link load of all requests, as in the summary.
    Load,
    /// Requests that ended otherwise, or in one of both runs only.
    Requests,
    /// Mean time of the paired requests in a kind of span, in nanoseconds.
    Span,
    /// A declared metric of the summary.
    Metric,
}

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is the same with every seed.
    Equal,
    /// The interval contains zero: no difference at this size.
    None,
    /// The whole interval is below zero.
    Lower,
    /// The whole interval is above zero.
    Higher,
    /// It differs, and one seed gives no interval.
    OneSeed,
}

impl Group {
    /// Returns the name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Latency => "latency",
            Group::Load => "load",
            Group::Requests => "requests",
            Group::Span => "span",
            Group::Metric => "metric",
        }
    }
}

impl Change {
    /// Returns the name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Change::Equal => "equal",
            Change::None => "none",
            Change::Lower => "lower",
            Change::Higher => "higher",
            Change::OneSeed => "one-seed",
        }
    }
}

/// One compared value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    #[serde(flatten)]
    pub name: Name,
    /// Its unit, or `none`.
    pub unit: String,
    /// The mean over seeds in the first run.
    pub first: f64,
    /// The mean over seeds in the second run.
    pub second: f64,
    /// `second - first`.
    pub difference: f64,
    /// The 95 % interval of the difference; absent with one seed.
    pub interval: Option<[f64; 2]>,
    /// How it differs.
    pub change: Change,
}

/// A run against the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The name of the first run.
    pub first: String,
    /// The name of the other run.
    pub second: String,
    /// The seeds that both have.
    pub seeds: Vec<u64>,
    /// Whether requests are paired.
    pub is_paired: bool,
    /// Requests in the statistics of latency, over all seeds; of the first run if not paired.
    pub requests: u64,
    /// What a reader must know before believing the differences.
    pub warnings: Vec<String>,
    /// Every value that both runs have.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Compares two runs by their pairs of seeds, of which there is at least one.
    pub fn of(first: &str, second: &str, pairs: &[SeedPair], pairing: Pairing) -> Comparison {
        let mut values: BTreeMap<&Name, (&str, Vec<[f64; 2]>)> = BTreeMap::new();
        for (name, (unit, both)) in pairs.iter().flat_map(|pair| &pair.values) {
            values.entry(name).or_insert((unit, Vec::new())).1.push(*both);
        }
        let differences = values.into_iter().map(|(name, (unit, both))| difference(name, unit, &both)).collect();
        let mut warnings: Vec<String> = Vec::new();
        for warning in pairs.iter().flat_map(|pair| &pair.warnings) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        Comparison {
            first: first.into(),
            second: second.into(),
            seeds: pairs.iter().map(|pair| pair.seed).collect(),
            is_paired: pairing == Pairing::ByRequest,
            requests: pairs.iter().map(|pair| pair.requests).sum(),
            warnings,
            differences,
        }
    }

    /// Returns the difference of a value, if both runs have it.
    pub fn get(&self, group: Group, of: &str, statistic: &str) -> Option<&Difference> {
        let is_it = |name: &Name| name.group == group && name.of == of && name.statistic == statistic;
        self.differences.iter().find(|difference| is_it(&difference.name))
    }
}

fn difference(name: &Name, unit: &str, both: &[[f64; 2]]) -> Difference {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let side = |side: usize| both.iter().map(|pair| pair[side]).collect::<Vec<f64>>();
    let each: Vec<f64> = both.iter().map(|[first, second]| second - first).collect();
    let interval = interval(&each);
    let change = match interval {
        _ if each.iter().all(|difference| *difference == 0.0) => Change::Equal,
        None => Change::OneSeed,
        Some([low, _]) if low > 0.0 => Change::Higher,
        Some([_, high]) if high < 0.0 => Change::Lower,
        Some(_) => Change::None,
    };
    let (first, second) = (mean(&side(0)), mean(&side(1)));
    Difference { name: name.clone(), unit: unit.into(), first, second, difference: mean(&each), interval, change }
}
