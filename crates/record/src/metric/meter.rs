//! Readings of a run, from which its metrics are computed.

use super::{Computed, Count, Definition, Key, Percentile, Ratio, Window};
use crate::pool::Pooled;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Collects the readings of a run under declared names.
///
/// A counter runs from the start of the run and ignores the window. It is read when the window
/// begins, followed by [`begin_window`](Meter::begin_window), and again when the run ends: the
/// metric is the growth of the running total. The caller restarts the values that it computes (a
/// maximum, a percentile) when the window begins.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// By metric and part: the last readings of running totals.
    totals: BTreeMap<(String, u32), f64>,
    /// The same when the window began.
    before: BTreeMap<(String, u32), f64>,
    values: BTreeMap<String, f64>,
    /// What percentiles are of.
    pub(crate) pooled: BTreeMap<String, Pooled>,
    warnings: Vec<String>,
}

impl Meter {
    /// Creates a meter without readings.
    pub fn new() -> Meter {
        Meter::default()
    }

    /// Begins the window: the readings since the last call are its initial state.
    pub fn begin_window(&mut self) {
        self.before.append(&mut self.totals);
        self.values.clear();
        self.pooled.clear();
    }

    /// Reads a running total.
    pub fn count(&mut self, metric: impl Into<Key<Count>>, total: f64) {
        let key = metric.into();
        let grown = self.growth(key.definition, &key.name, 0, total);
        self.set(key, grown);
    }

    /// Reads the quotient of two running totals and returns it; 0 if the second has not grown.
    pub fn ratio(&mut self, metric: impl Into<Key<Ratio>>, part: f64, whole: f64) -> f64 {
        self.ratio_or(metric, part, whole, 0.0)
    }

    /// The same with another value if the second has not grown.
    pub fn ratio_or(&mut self, metric: impl Into<Key<Ratio>>, part: f64, whole: f64, empty: f64) -> f64 {
        let key = metric.into();
        let part = self.growth(key.definition, &key.name, 0, part);
        let whole = self.growth(key.definition, &key.name, 1, whole);
        let ratio = if whole == 0.0 { empty } else { part / whole };
        self.set(key, ratio);
        ratio
    }

    /// Records a number that the caller has computed.
    pub fn put<F: Computed>(&mut self, metric: impl Into<Key<F>>, value: f64) {
        self.set(metric.into(), value);
    }

    /// Reads the percentile `quantile` of values, of which `per_unit` make one unit of the metric.
    pub fn percentile(
        &mut self,
        metric: impl Into<Key<Percentile>>,
        quantile: f64,
        values: &Arc<Histogram<u64>>,
        per_unit: f64,
    ) {
        let key = metric.into();
        let pooled = Pooled { quantile, per_unit, values: values.clone() };
        let value = pooled.value();
        self.pooled.insert(key.name.clone(), pooled);
        self.set(key, value);
    }

    /// Returns the growth of a running total in the window, for a metric that the caller computes
    /// from several. Each total has its own `part` number.
    pub fn grown<F>(&mut self, metric: impl Into<Key<F>>, part: u32, total: f64) -> f64 {
        let key = metric.into();
        self.growth(key.definition, &key.name, part, total)
    }

    /// Adds a warning for readers of the summary.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the metrics and the warnings.
    pub fn finish(self) -> (BTreeMap<String, f64>, Vec<String>) {
        (self.values, self.warnings)
    }

    fn growth(&mut self, definition: &Definition, name: &str, part: u32, total: f64) -> f64 {
        if definition.window != Window::Measured {
            return total;
        }
        let place = (name.to_owned(), part);
        let grown = total - self.before.get(&place).copied().unwrap_or(0.0);
        self.totals.insert(place, total);
        grown
    }

    fn set<F>(&mut self, key: Key<F>, value: f64) {
        let Key { name, .. } = key;
        let twice = self.values.insert(name.clone(), value);
        assert!(twice.is_none(), "the metric {name} was read twice");
    }
}
