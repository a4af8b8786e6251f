//! Metrics of a running target, in OpenMetrics' text format 1.0.

use crate::backend::Facts;
use base::{Operation, Span, Time};
use nvme::target::{Counters, Gauges};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use runtime::metrics::{Latencies, Latency};
use std::fmt::Error;
use std::ops::Add;

/// The prefix of every name.
const PREFIX: &str = "rackweave_target";

/// Metrics of the loop; the target counts the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics {
    /// Wake-ups of the loop.
    pub turns: u64,
    reads: Latency,
    writes: Latency,
}

impl Add for Metrics {
    type Output = Metrics;
    fn add(self, other: Metrics) -> Metrics {
        let (turns, reads, writes) = (self.turns + other.turns, self.reads + other.reads, self.writes + other.writes);
        Metrics { turns, reads, writes }
    }
}

/// Everything that a loop and its machine have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub own: Metrics,
    pub counters: Counters,
    pub gauges: Gauges,
}

impl Add for Counted {
    type Output = Counted;
    fn add(self, other: Counted) -> Counted {
        let (own, counters) = (self.own + other.own, self.counters + other.counters);
        Counted { own, counters, gauges: self.gauges + other.gauges }
    }
}

/// The size of a namespace.
#[derive(Debug)]
pub(crate) struct Size {
    pub subsystem: String,
    pub namespace: u32,
    pub bytes: u64,
}

impl Metrics {
    /// Records a request that was answered at `end`.
    pub(crate) fn observe(&mut self, facts: &Facts, end: Time) {
        let span = end.saturating_since(facts.came);
        match facts.transfer {
            Some((Operation::Read, ..)) => self.reads.count(span),
            Some(_) => self.writes.count(span),
            None => {}
        }
    }

    /// Records a request that was answered in the turn in which it arrived.
    pub(crate) fn observe_at_once(&mut self, operation: Operation) {
        match operation {
            Operation::Read => self.reads.count(Span::ZERO),
            _ => self.writes.count(Span::ZERO),
        }
    }
}

impl Counted {
    /// Returns all metrics as text.
    pub(crate) fn text(self, rows_dropped: u64, sizes: Vec<Size>) -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(Snapshot { counted: self, rows_dropped, sizes }));
        let mut text = String::new();
        encode(&mut text, &registry).expect("a String takes whatever is written to it");
        text
    }
}

/// All values at one time.
#[derive(Debug)]
struct Snapshot {
    counted: Counted,
    rows_dropped: u64,
    sizes: Vec<Size>,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.encode_numbers(&mut encoder)?;
        let help = "Size of a namespace.";
        let mut family = encoder.encode_descriptor("namespace_bytes", help, None, MetricType::Gauge)?;
        for Size { subsystem, namespace, bytes } in &self.sizes {
            let labels = [("subsystem", subsystem.clone()), ("namespace", namespace.to_string())];
            ConstGauge::new(*bytes).encode(family.encode_family(&labels)?)?;
        }
        let help = "Time of a backend for a request; what the loop itself does counts as it was done in one turn.";
        let (reads, writes) = (self.counted.own.reads, self.counted.own.writes);
        Latencies { help, reads, writes }.encode(&mut encoder)
    }
}

impl Snapshot {
    /// Encodes counters and gauges. The library ends names of counters with `_total`.
    fn encode_numbers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        use MetricType::{Counter, Gauge};
        let Counted { own, counters, gauges } = &self.counted;
        for (kind, name, help, value) in [
            (Counter, "connections_accepted", "Connections accepted.", counters.connections_accepted),
            (Counter, "connections_refused", "Connections refused at the limit.", counters.connections_refused),
            (
                Counter,
                "connections_displaced",
                "Connections without Connect that made room for others at the limit.",
                counters.connections_displaced,
            ),
            (Counter, "protocol_errors", "Connections that broke the protocol.", counters.protocol_errors),
            (Counter, "commands", "Commands received.", counters.commands),
            (Counter, "commands_failed", "Commands completed with an error.", counters.commands_failed),
            (Counter, "authentications_failed", "Failed authentications.", counters.authentications_failed),
            (Counter, "reads", "Reads completed with data.", counters.reads),
            (Counter, "writes", "Writes completed with success.", counters.writes),
            (Counter, "read_bytes", "Bytes read by hosts.", counters.read_bytes),
            (Counter, "written_bytes", "Bytes written by hosts.", counters.written_bytes),
            (Counter, "media_errors", "Reads and writes that a backend's medium failed.", counters.media_errors),
            (Counter, "data_digest_errors", "Wrong data digests.", counters.data_digest_errors),
            (Counter, "keep_alive_expirations", "Expired keep-alive timers.", counters.keep_alive_expirations),
            (Counter, "record_rows_dropped", "Rows of records dropped before they were written.", self.rows_dropped),
            (Counter, "turns", "Wake-ups of the event loop.", own.turns),
            (Gauge, "connections", "Open connections.", gauges.connections),
            (Gauge, "controllers", "Controllers of hosts.", gauges.controllers),
            (Gauge, "commands_open", "Outstanding commands.", gauges.commands),
            (Gauge, "data_bytes", "Bytes of data that outstanding commands hold.", gauges.data_bytes),
            (Gauge, "pool_bytes", "Bytes of free buffers.", gauges.pool_bytes),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, kind)?;
            match kind {
                Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value).encode(metric)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::target::BackendId;

    fn facts(operation: Operation) -> Facts {
        let came = Time::us(5);
        Facts {
            controller: 1,
            backend: BackendId(0),
            transfer: Some((operation, 0, 1)),
            came,
            taken_up: came,
            done: came,
            drive: None,
        }
    }

    #[test]
    fn buckets_are_cumulative_and_an_end_belongs_to_its_bucket() {
        let mut metrics = Metrics::default();
        for took in [Span::ZERO, Span::us(10), Span::ps(10_000_001), Span::secs(11)] {
            metrics.observe(&facts(Operation::Read), Time::us(5) + took);
        }
        let text = Counted { own: metrics, ..Counted::default() }.text(0, Vec::new());
        for line in [
            "rackweave_target_request_seconds_bucket{le=\"0.00001\",operation=\"read\"} 2",
            "rackweave_target_request_seconds_bucket{le=\"0.00003\",operation=\"read\"} 3",
            "rackweave_target_request_seconds_bucket{le=\"10.0\",operation=\"read\"} 3",
            "rackweave_target_request_seconds_bucket{le=\"+Inf\",operation=\"read\"} 4",
            "rackweave_target_request_seconds_count{operation=\"write\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn every_name_of_a_counter_ends_in_total_and_the_text_has_an_end() {
        let counters = Counters { reads: 7, ..Counters::default() };
        let gauges = Gauges { connections: 3, ..Gauges::default() };
        let text = Counted { counters, gauges, ..Counted::default() }.text(5, Vec::new());
        for line in [
            "# TYPE rackweave_target_reads counter",
            "rackweave_target_reads_total 7",
            "rackweave_target_record_rows_dropped_total 5",
            "# TYPE rackweave_target_connections gauge",
            "rackweave_target_connections 3",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_name_cannot_end_its_label() {
        let sizes = vec![Size { subsystem: "a\"b\\c".into(), namespace: 1, bytes: 512 }];
        let text = Counted::default().text(0, sizes);
        assert!(text.contains("namespace_bytes{subsystem=\"a\\\"b\\\\c\",namespace=\"1\"} 512\n"), "{text}");
    }
}
