//! Latencies and slowdowns of the requests of several runs in one histogram each, and the values
//! of metrics that are percentiles.

use crate::metric::Meter;
use crate::seeds::MergeError;
use crate::summary::Statistics;
use crate::tally::Tally;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The histograms of some runs: the percentiles of
/// [`Summary::over_seeds`](crate::Summary::over_seeds) come from them. The order of runs changes
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    /// Of requests, by operation and under `all`.
    requests: BTreeMap<&'static str, Tally>,
    /// By metric.
    metrics: BTreeMap<String, Pooled>,
}

/// A percentile with the values that it is of.
#[derive(Clone, Debug)]
pub(crate) struct Pooled {
    pub quantile: f64,
    /// Values that make one of the metric's unit.
    pub per_unit: f64,
    pub values: Arc<Histogram<u64>>,
}

impl Pooled {
    pub(crate) fn value(&self) -> f64 {
        self.values.value_at_quantile(self.quantile) as f64 / self.per_unit
    }
}

impl Pool {
    pub(crate) fn new(tallies: BTreeMap<&'static str, Tally>) -> Pool {
        Pool { requests: tallies, metrics: BTreeMap::new() }
    }

    /// Adds the values of the percentiles that `meter` has read.
    pub fn with_percentiles(self, meter: &Meter) -> Pool {
        Pool { metrics: meter.pooled.clone(), ..self }
    }

    /// Adds the values of other runs.
    pub fn add(&mut self, other: &Pool) {
        for (name, tally) in &other.requests {
            self.requests.entry(name).or_insert_with(Tally::new).add(tally);
        }
        for (name, added) in &other.metrics {
            let Some(known) = self.metrics.get_mut(name) else {
                self.metrics.insert(name.clone(), added.clone());
                continue;
            };
            let values = Arc::make_mut(&mut known.values);
            values.add(&*added.values).expect("the histograms of a metric have one range");
        }
    }

    pub(crate) fn latency_ns(&self, operation: &str) -> Result<Statistics, MergeError> {
        self.tally(operation).map(Tally::latency_ns)
    }

    pub(crate) fn slowdown(&self, operation: &str) -> Result<Statistics, MergeError> {
        self.tally(operation).map(Tally::slowdown)
    }

    pub(crate) fn metric(&self, name: &str) -> Result<f64, MergeError> {
        let pooled = self.metrics.get(name).ok_or_else(|| MergeError::NoValues { name: name.into() })?;
        Ok(pooled.value())
    }

    fn tally(&self, operation: &str) -> Result<&Tally, MergeError> {
        self.requests.get(operation).ok_or_else(|| MergeError::NotPooled { operation: operation.into() })
    }
}
