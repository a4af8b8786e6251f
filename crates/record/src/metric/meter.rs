//! Readings of a run, from which its metrics come.

use super::{Computed, Count, Definition, Key, Ratio, Window};
use std::collections::BTreeMap;

/// Takes the readings of a run under declared names.
///
/// Whoever counts, counts from its beginning and knows of no window. It is read when the window
/// begins, followed by [`begin_window`](Meter::begin_window), and again when the run ends: a
/// running total then counts with its growth. What the caller computes (the highest of something, a
/// percentile) it starts anew when the window begins.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// By metric and part: running totals as they were last read.
    totals: BTreeMap<(String, u32), f64>,
    /// The same when the window began.
    before: BTreeMap<(String, u32), f64>,
    values: BTreeMap<String, f64>,
    warnings: Vec<String>,
}

impl Meter {
    /// Before the first reading.
    pub fn new() -> Meter {
        Meter::default()
    }

    /// What was read since the last call is the state in which the window begins.
    pub fn begin_window(&mut self) {
        self.before.append(&mut self.totals);
        self.values.clear();
    }

    /// A running total.
    pub fn count(&mut self, metric: impl Into<Key<Count>>, total: f64) {
        let key = metric.into();
        let grown = self.growth(key.definition, &key.name, 0, total);
        self.set(key, grown);
    }

    /// The quotient of two running totals; 0 if the second has not grown. Returns it.
    pub fn ratio(&mut self, metric: impl Into<Key<Ratio>>, part: f64, whole: f64) -> f64 {
        self.ratio_or(metric, part, whole, 0.0)
    }

    /// The same with another value where the second has not grown.
    pub fn ratio_or(&mut self, metric: impl Into<Key<Ratio>>, part: f64, whole: f64, empty: f64) -> f64 {
        let key = metric.into();
        let part = self.growth(key.definition, &key.name, 0, part);
        let whole = self.growth(key.definition, &key.name, 1, whole);
        let ratio = if whole == 0.0 { empty } else { part / whole };
        self.set(key, ratio);
        ratio
    }

    /// A number that the caller has computed.
    pub fn put<F: Computed>(&mut self, metric: impl Into<Key<F>>, value: f64) {
        self.set(metric.into(), value);
    }

    /// How much a running total has grown in the window of a metric that the caller computes from
    /// several; each has a number of its own, its `part`.
    pub fn grown<F>(&mut self, metric: impl Into<Key<F>>, part: u32, total: f64) -> f64 {
        let key = metric.into();
        self.growth(key.definition, &key.name, part, total)
    }

    /// What a reader of the summary must know.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// The metrics and the warnings.
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
