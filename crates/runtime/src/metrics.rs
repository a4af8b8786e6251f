//! Counters and gauges in OpenMetrics' text format.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::Error;

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
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Numbers(numbers.to_vec())));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes all");
    text
}

#[derive(Debug)]
struct Numbers(Vec<Number>);

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for Number { is_counter, name, help, value } in &self.0 {
            let kind = if *is_counter { MetricType::Counter } else { MetricType::Gauge };
            let metric = encoder.encode_descriptor(name, help, None, kind)?;
            match kind {
                MetricType::Counter => ConstCounter::new(*value).encode(metric)?,
                _ => ConstGauge::new(*value).encode(metric)?,
            }
        }
        Ok(())
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
