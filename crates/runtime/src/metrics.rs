//! Counters, gauges and latencies in OpenMetrics' text format.

use base::Span;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::Error;
use std::ops::Add;

/// Upper bounds of the buckets of latency, in seconds: steps of about three from ten microseconds
/// to ten seconds.
const ENDS: [(Span, f64); 13] = [
    (Span::us(10), 0.00001),
    (Span::us(30), 0.00003),
    (Span::us(100), 0.0001),
    (Span::us(300), 0.0003),
    (Span::ms(1), 0.001),
    (Span::ms(3), 0.003),
    (Span::ms(10), 0.01),
    (Span::ms(30), 0.03),
    (Span::ms(100), 0.1),
    (Span::ms(300), 0.3),
    (Span::secs(1), 1.0),
    (Span::secs(3), 3.0),
    (Span::secs(10), 10.0),
];

/// Latency of requests of one kind. The library's histogram takes a lock for each value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    /// Requests by bucket: up to each bound, and above all.
    counts: [u64; ENDS.len() + 1],
    sum_ps: u128,
}

impl Latency {
    /// Counts a request.
    pub fn count(&mut self, span: Span) {
        let bucket = ENDS.iter().position(|(end, _)| span <= *end).unwrap_or(ENDS.len());
        self.counts[bucket] += 1;
        self.sum_ps += u128::from(span.as_ps());
    }

    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), Error> {
        let ends = ENDS.iter().map(|(_, end)| *end).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = ends.zip(self.counts).collect();
        let seconds = self.sum_ps as f64 / 1e12;
        encoder.encode_histogram::<NoLabelSet>(seconds, self.counts.iter().sum(), &buckets, None)
    }
}

impl Add for Latency {
    type Output = Latency;
    fn add(mut self, other: Latency) -> Latency {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        Latency { sum_ps: self.sum_ps + other.sum_ps, ..self }
    }
}

/// One value at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    is_counter: bool,
    /// Its name, without the prefix.
    pub name: &'static str,
    help: &'static str,
    /// The value.
    pub value: u64,
}

/// A number that only rises.
pub fn counter(name: &'static str, help: &'static str, value: u64) -> Number {
    Number { is_counter: true, name, help, value }
}

/// A number that may fall.
pub fn gauge(name: &'static str, help: &'static str, value: u64) -> Number {
    Number { is_counter: false, name, help, value }
}

/// The page of all of them, their names behind `prefix` and an underscore.
pub fn text(prefix: &str, numbers: &[Number]) -> String {
    text_with(prefix, numbers, None)
}

/// The latencies of a role's requests, by operation.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// What they are.
    pub help: &'static str,
    /// Those of reads.
    pub reads: Latency,
    /// Those of writes.
    pub writes: Latency,
}

impl Latencies {
    /// Writes them as one metric.
    ///
    /// # Errors
    /// When the page takes no more.
    pub fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut family = encoder.encode_descriptor("request_seconds", self.help, None, MetricType::Histogram)?;
        for (operation, latency) in [("read", self.reads), ("write", self.writes)] {
            latency.encode(family.encode_family(&[("operation", operation)])?)?;
        }
        Ok(())
    }
}

/// The page of numbers and latencies.
pub fn text_with(prefix: &str, numbers: &[Number], latencies: Option<Latencies>) -> String {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Page { numbers: numbers.to_vec(), latencies }));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes all");
    text
}

#[derive(Debug)]
struct Page {
    numbers: Vec<Number>,
    latencies: Option<Latencies>,
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for Number { is_counter, name, help, value } in &self.numbers {
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let metric = encoder.encode_descriptor(name, help, None, kind)?;
            match kind {
                MetricType::Counter => ConstCounter::new(*value).encode(metric)?,
                _ => ConstGauge::new(*value).encode(metric)?,
            }
        }
        self.latencies.iter().try_for_each(|latencies| latencies.encode(&mut encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_and_a_gauge_are_told_with_their_help() {
        let page = text("rackweave_x", &[counter("reads", "Reads.", 3), gauge("open", "Open ones.", 2)]);
        let expected = "# HELP rackweave_x_reads Reads.\n# TYPE rackweave_x_reads counter\nrackweave_x_reads_total 3\n\
                        # HELP rackweave_x_open Open ones.\n# TYPE rackweave_x_open gauge\nrackweave_x_open 2\n# EOF\n";
        assert_eq!(page, expected);
    }
}
