//! Latencies and slowdowns of the requests of several runs in one histogram each.

use crate::seeds::MergeError;
use crate::summary::Statistics;
use crate::tally::Tally;
use std::collections::BTreeMap;

/// The histograms of some runs, by operation and under `all`: the percentiles of
/// [`Summary::over_seeds`](crate::Summary::over_seeds) come from them. The order of runs changes
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Pool(BTreeMap<&'static str, Tally>);

impl Pool {
    pub(crate) fn new(tallies: BTreeMap<&'static str, Tally>) -> Pool {
        Pool(tallies)
    }

    /// Adds the requests of other runs.
    pub fn add(&mut self, other: &Pool) {
        for (name, tally) in &other.0 {
            self.0.entry(name).or_insert_with(Tally::new).add(tally);
        }
    }

    pub(crate) fn latency_ns(&self, operation: &str) -> Result<Statistics, MergeError> {
        self.tally(operation).map(Tally::latency_ns)
    }

    pub(crate) fn slowdown(&self, operation: &str) -> Result<Statistics, MergeError> {
        self.tally(operation).map(Tally::slowdown)
    }

    fn tally(&self, operation: &str) -> Result<&Tally, MergeError> {
        self.0.get(operation).ok_or_else(|| MergeError::NotPooled { operation: operation.into() })
    }
}
