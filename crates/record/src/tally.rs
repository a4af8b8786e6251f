//! Sums and histograms of the requests of one operation. All sums are integers, so the order of
//! rows does not matter.

use crate::ledger::place_of;
use crate::row::{Row, SpanKind, Spans};
use crate::summary::Statistics;
use base::Span;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// HdrHistogram's significant decimal digits: a value and the bounds of its bucket differ by less
/// than 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Steps of a ratio in its histogram.
const RATIO_STEPS: f64 = 1000.0;
/// Steps of a ratio in its sum: fixed-point numbers have the same sum in any order, floating-point
/// ones do not.
const RATIO_SUM_STEPS: f64 = (1u64 << 32) as f64;

/// The statistics so far of one operation, or of all.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// In picoseconds.
    pub latency: Histogram<u64>,
    slowdown: Histogram<u64>,
    /// Ages at the end of the run of requests that had not ended: lower bounds of their latencies.
    open: Histogram<u64>,
    /// The same relative to the unloaded latency of the request.
    open_slowdown: Histogram<u64>,
    latency_sum_ps: u128,
    latency_range_ps: (u64, u64),
    slowdown_sum: u128,
    slowdown_range: (f64, f64),
    unloaded_sum_ps: u128,
    spans: SpanSums,
}

/// Sums by kind of span, in the order of [`place_of`].
#[derive(Clone, Debug)]
struct SpanSums {
    /// Sums moved here by [`settle`](Self::settle).
    settled_ps: [u128; SpanKind::ALL.len()],
    /// Sums since then, in numbers that are cheap to add. None exceeds their total.
    recent_ps: [u64; SpanKind::ALL.len()],
    /// Total of all recent spans.
    recent_total_ps: u64,
}

impl SpanSums {
    fn new() -> SpanSums {
        SpanSums { settled_ps: [0; SpanKind::ALL.len()], recent_ps: [0; SpanKind::ALL.len()], recent_total_ps: 0 }
    }

    /// Adds spans with the sum `total`.
    fn add(&mut self, spans: &Spans, total: Span) {
        let Some(recent_total_ps) = self.recent_total_ps.checked_add(total.as_ps()) else {
            self.settle();
            return self.add(spans, total);
        };
        self.recent_total_ps = recent_total_ps;
        for (sum, span) in self.recent_ps.iter_mut().zip(spans.placed()) {
            *sum += span.as_ps();
        }
    }

    fn settle(&mut self) {
        for (settled, recent) in self.settled_ps.iter_mut().zip(&mut self.recent_ps) {
            *settled += u128::from(std::mem::take(recent));
        }
        self.recent_total_ps = 0;
    }

    /// Returns the sums so far.
    fn sums_ps(&self) -> [u128; SpanKind::ALL.len()] {
        std::array::from_fn(|place| self.settled_ps[place] + u128::from(self.recent_ps[place]))
    }
}

impl Tally {
    pub fn new() -> Tally {
        Tally {
            latency: empty_histogram(),
            slowdown: empty_histogram(),
            open: empty_histogram(),
            open_slowdown: empty_histogram(),
            latency_sum_ps: 0,
            latency_range_ps: (u64::MAX, 0),
            slowdown_sum: 0,
            slowdown_range: (f64::INFINITY, 0.0),
            unloaded_sum_ps: 0,
            spans: SpanSums::new(),
        }
    }

    pub fn add_row(&mut self, row: &Row) {
        let latency = row.latency();
        record(&mut self.latency, latency.as_ps());
        self.latency_sum_ps += u128::from(latency.as_ps());
        self.latency_range_ps = joined(self.latency_range_ps, (latency.as_ps(), latency.as_ps()));
        self.spans.add(&row.spans, latency);
        if row.unloaded > Span::ZERO {
            self.add_slowdown(latency, row.unloaded);
        }
    }

    /// Adds the row of a request that had not ended at the end of the run.
    pub fn add_open(&mut self, row: &Row) {
        record(&mut self.open, row.latency().as_ps());
        if row.unloaded > Span::ZERO {
            record(&mut self.open_slowdown, slowdown_steps(row.latency().ratio(row.unloaded)));
        }
    }

    fn add_slowdown(&mut self, latency: Span, unloaded: Span) {
        let ratio = latency.ratio(unloaded);
        record(&mut self.slowdown, slowdown_steps(ratio));
        self.slowdown_sum += rounded(ratio * RATIO_SUM_STEPS);
        self.slowdown_range = joined(self.slowdown_range, (ratio, ratio));
        self.unloaded_sum_ps += u128::from(unloaded.as_ps());
    }

    /// Adds the content of another tally.
    pub fn add(&mut self, other: &Tally) {
        merge(&mut self.latency, &other.latency);
        merge(&mut self.slowdown, &other.slowdown);
        merge(&mut self.open, &other.open);
        merge(&mut self.open_slowdown, &other.open_slowdown);
        self.latency_sum_ps += other.latency_sum_ps;
        self.latency_range_ps = joined(self.latency_range_ps, other.latency_range_ps);
        self.slowdown_sum += other.slowdown_sum;
        self.slowdown_range = joined(self.slowdown_range, other.slowdown_range);
        self.unloaded_sum_ps += other.unloaded_sum_ps;
        for (sum, more) in self.spans.settled_ps.iter_mut().zip(other.spans.sums_ps()) {
            *sum += more;
        }
    }

    /// Returns the number of requests in the statistics.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// Returns the number of those requests with a known unloaded latency.
    pub fn compared(&self) -> u64 {
        self.slowdown.len()
    }

    pub fn latency_ns(&self) -> Statistics {
        let range = self.latency_range_ps;
        let mean = mean_of(self.latency_sum_ps, self.count());
        statistics(&self.latency, &self.open, mean, (range.0 as f64, range.1 as f64), 1.0).scaled(1e3)
    }

    pub fn slowdown(&self) -> Statistics {
        let mean = mean_of(self.slowdown_sum, self.compared()) / RATIO_SUM_STEPS;
        statistics(&self.slowdown, &self.open_slowdown, mean, self.slowdown_range, RATIO_STEPS)
    }

    pub fn unloaded_ns(&self) -> f64 {
        mean_of(self.unloaded_sum_ps, self.compared()) / 1e3
    }

    pub fn span_mean_ns(&self) -> BTreeMap<String, f64> {
        let sums_ps = self.spans.sums_ps();
        let mean_ns = |kind: &SpanKind| mean_of(sums_ps[place_of(*kind)], self.count()) / 1e3;
        SpanKind::ALL.iter().map(|kind| (kind.name().to_owned(), mean_ns(kind))).collect()
    }
}

impl Statistics {
    /// Returns the statistics with every value divided by `steps`.
    fn scaled(self, steps: f64) -> Statistics {
        Statistics {
            mean: self.mean / steps,
            min: self.min / steps,
            p50: self.p50 / steps,
            p90: self.p90 / steps,
            p99: self.p99 / steps,
            p999: self.p999 / steps,
            max: self.max / steps,
            ..self
        }
    }
}

/// Returns the nearest integer to a nonnegative number, halves rounded up: the result of
/// `f64::round`, without its call.
fn rounded(number: f64) -> u128 {
    /// From 2^53 on, there are no fractions.
    const ALL_WHOLE: f64 = (1u64 << 53) as f64;
    if number >= ALL_WHOLE {
        return number as u128;
    }
    // Nonnegative: the signed conversion is one instruction.
    let whole = number as i64 as u64;
    u128::from(whole) + u128::from(number - whole as i64 as f64 >= 0.5)
}

fn slowdown_steps(ratio: f64) -> u64 {
    u64::try_from(rounded(ratio * RATIO_STEPS)).unwrap_or(u64::MAX)
}

fn empty_histogram() -> Histogram<u64> {
    Histogram::new(SIGNIFICANT_DIGITS).expect("three significant digits are allowed")
}

fn record(histogram: &mut Histogram<u64>, value: u64) {
    histogram.record(value).expect("a histogram that resizes itself takes every value");
}

fn merge(into: &mut Histogram<u64>, other: &Histogram<u64>) {
    into.add(other).expect("a histogram that resizes itself takes every value");
}

fn joined<T: PartialOrd>(one: (T, T), other: (T, T)) -> (T, T) {
    let low = if other.0 < one.0 { other.0 } else { one.0 };
    let high = if other.1 > one.1 { other.1 } else { one.1 };
    (low, high)
}

fn mean_of(sum: u128, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// Returns statistics of the ended requests. Percentiles and the maximum also count `open` ones, as
/// if they had ended with the run. They are lower bounds if open requests could change them.
fn statistics(
    ended: &Histogram<u64>,
    open: &Histogram<u64>,
    mean: f64,
    (min, max): (f64, f64),
    steps: f64,
) -> Statistics {
    let mut all = ended.clone();
    merge(&mut all, open);
    let max = if open.is_empty() { max } else { max.max(open.max() as f64 / steps) };
    let min = if open.is_empty() { min } else { min.min(open.min() as f64 / steps) };
    let percentile = |per_mille| (value_of_rank(&all, rank(&all, per_mille)) as f64 / steps).clamp(min, max);
    let is_bound = |per_mille: &u64| {
        let rank = rank(&all, *per_mille);
        // With every open request at infinity, that rank belongs to an ended request, or is
        // infinite.
        rank > ended.len() || value_of_rank(ended, rank) != value_of_rank(&all, rank)
    };
    let bounds = [500, 900, 990, 999, 1000].into_iter().find(|per_mille| !open.is_empty() && is_bound(per_mille));
    Statistics {
        count: ended.len(),
        mean,
        mean_ci95: None,
        min,
        p50: percentile(500),
        p90: percentile(900),
        p99: percentile(990),
        p999: percentile(999),
        p99_ci95: None,
        max,
        lower_bound_from: bounds.map(|per_mille| per_mille as f64 / 1000.0),
    }
}

/// Returns ⌈count × `per_mille` / 1000⌉.
fn rank(histogram: &Histogram<u64>, per_mille: u64) -> u64 {
    u64::try_from((u128::from(histogram.len()) * u128::from(per_mille)).div_ceil(1000)).expect("no more than the count")
}

/// Returns the greatest value of the bucket that holds the value of this rank, which is at most the
/// count. It queries half a rank less, because HdrHistogram rounds a product of floating-point
/// numbers up to the next rank.
fn value_of_rank(histogram: &Histogram<u64>, rank: u64) -> u64 {
    histogram.value_at_quantile((rank as f64 - 0.5) / histogram.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounding_is_that_of_the_library(number in prop_oneof![0.0..10.0f64, 0.0..1e17f64, 0.0..1e30f64]) {
            for number in [number, number.floor() + 0.5, (number.floor() + 0.5).next_down()] {
                prop_assert_eq!(rounded(number), number.round() as u128);
            }
        }

        #[test]
        fn sums_of_spans_are_exact_beyond_64_bits(spans in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut sums = SpanSums::new();
            for span in &spans {
                let mut one = Spans::default();
                one.add(SpanKind::Schedule, Span::ps(*span));
                sums.add(&one, one.total());
            }
            let total: u128 = spans.into_iter().map(u128::from).sum();
            prop_assert_eq!(sums.sums_ps()[place_of(SpanKind::Schedule)], total);
        }
    }
}
