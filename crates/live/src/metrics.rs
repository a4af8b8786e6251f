//! What a running target tells about itself, in the text format of Prometheus (exposition format 0.0.4).

use crate::backend::Facts;
use base::{Operation, Span, Time};
use nvme::target::{Counters, Gauges};
use std::fmt::Write;

/// Upper ends of the buckets of latency: steps of about three from ten microseconds to ten seconds.
const ENDS: [(Span, &str); 13] = [
    (Span::us(10), "0.00001"),
    (Span::us(30), "0.00003"),
    (Span::us(100), "0.0001"),
    (Span::us(300), "0.0003"),
    (Span::ms(1), "0.001"),
    (Span::ms(3), "0.003"),
    (Span::ms(10), "0.01"),
    (Span::ms(30), "0.03"),
    (Span::ms(100), "0.1"),
    (Span::ms(300), "0.3"),
    (Span::secs(1), "1"),
    (Span::secs(3), "3"),
    (Span::secs(10), "10"),
];

/// How long requests of one kind took.
#[derive(Clone, Copy, Debug, Default)]
struct Latency {
    /// Not above each end, and above all.
    counts: [u64; ENDS.len() + 1],
    sum_ps: u128,
}

impl Latency {
    fn add(&mut self, span: Span) {
        let bucket = ENDS.iter().position(|(end, _)| span <= *end).unwrap_or(ENDS.len());
        self.counts[bucket] += 1;
        self.sum_ps += u128::from(span.as_ps());
    }
}

/// What is counted here and not in the target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    /// How often the loop has woken up.
    pub turns: u64,
    reads: Latency,
    writes: Latency,
}

/// A namespace in the text.
pub(crate) struct Size<'a> {
    pub subsystem: &'a str,
    pub namespace: u32,
    pub bytes: u64,
}

impl Metrics {
    /// A request that was answered at `end`.
    pub(crate) fn observe(&mut self, facts: &Facts, end: Time) {
        let span = end.saturating_since(facts.came);
        match facts.transfer {
            Some((Operation::Read, ..)) => self.reads.add(span),
            Some(_) => self.writes.add(span),
            None => {}
        }
    }

    /// A request that was answered in the turn in which it came.
    pub(crate) fn observe_at_once(&mut self, operation: Operation) {
        match operation {
            Operation::Read => self.reads.add(Span::ZERO),
            _ => self.writes.add(Span::ZERO),
        }
    }

    /// Everything as text.
    pub(crate) fn text<'a>(
        &self,
        counters: &Counters,
        gauges: &Gauges,
        rows_dropped: u64,
        sizes: impl Iterator<Item = Size<'a>>,
    ) -> String {
        let mut text = String::new();
        write_counters(&mut text, counters, rows_dropped, self.turns);
        write_gauges(&mut text, gauges);
        head(&mut text, "namespace_bytes", "gauge", "Size of a namespace.");
        for Size { subsystem, namespace, bytes } in sizes {
            let subsystem = escaped(subsystem);
            line(&mut text, &format!("namespace_bytes{{subsystem=\"{subsystem}\",namespace=\"{namespace}\"}}"), bytes);
        }
        self.write_latencies(&mut text);
        text
    }

    fn write_latencies(&self, text: &mut String) {
        let help = "Time of a backend for a request; what the loop itself does counts as it was done in one turn.";
        head(text, "request_seconds", "histogram", help);
        for (operation, latency) in [("read", &self.reads), ("write", &self.writes)] {
            let mut below = 0;
            let ends = ENDS.iter().map(|(_, end)| *end).chain(["+Inf"]);
            for (end, count) in ends.zip(latency.counts) {
                below += count;
                line(text, &format!("request_seconds_bucket{{operation=\"{operation}\",le=\"{end}\"}}"), below);
            }
            let seconds = latency.sum_ps as f64 / 1e12;
            line(text, &format!("request_seconds_sum{{operation=\"{operation}\"}}"), seconds);
            line(text, &format!("request_seconds_count{{operation=\"{operation}\"}}"), below);
        }
    }
}

fn write_counters(text: &mut String, counters: &Counters, rows_dropped: u64, turns: u64) {
    for (name, help, value) in [
        ("connections_accepted_total", "Connections taken.", counters.connections_accepted),
        ("connections_refused_total", "Connections refused for their number.", counters.connections_refused),
        ("protocol_errors_total", "Connections that broke the protocol.", counters.protocol_errors),
        ("commands_total", "Commands that came.", counters.commands),
        ("commands_failed_total", "Commands that failed.", counters.commands_failed),
        ("authentications_failed_total", "Authentications that came to nothing.", counters.authentications_failed),
        ("reads_total", "Reads answered with data.", counters.reads),
        ("writes_total", "Writes answered with success.", counters.writes),
        ("read_bytes_total", "Bytes that reads returned.", counters.read_bytes),
        ("written_bytes_total", "Bytes that writes brought.", counters.written_bytes),
        ("media_errors_total", "Reads and writes that a backend's medium has failed.", counters.media_errors),
        ("data_digest_errors_total", "Data digests that were wrong.", counters.data_digest_errors),
        ("keep_alive_expirations_total", "Hosts that were silent for too long.", counters.keep_alive_expirations),
        ("record_rows_dropped_total", "Rows of records that could not be written in time.", rows_dropped),
        ("turns_total", "How often the loop has woken up.", turns),
    ] {
        head(text, name, "counter", help);
        line(text, name, value);
    }
}

fn write_gauges(text: &mut String, gauges: &Gauges) {
    for (name, help, value) in [
        ("connections", "Open connections.", gauges.connections),
        ("controllers", "Controllers of hosts.", gauges.controllers),
        ("commands_open", "Commands that were not answered yet.", gauges.commands),
        ("data_bytes", "Bytes that open commands hold.", gauges.data_bytes),
        ("pool_bytes", "Bytes of free buffers.", gauges.pool_bytes),
    ] {
        head(text, name, "gauge", help);
        line(text, name, value);
    }
}

/// Every name begins with it.
const PREFIX: &str = "rackweave_target_";

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // A String takes whatever is written to it.
    let _ = write!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n");
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{PREFIX}{name} {value}");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
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
        let text = metrics.text(&Counters::default(), &Gauges::default(), 0, std::iter::empty());
        for line in [
            "rackweave_target_request_seconds_bucket{operation=\"read\",le=\"0.00001\"} 2",
            "rackweave_target_request_seconds_bucket{operation=\"read\",le=\"0.00003\"} 3",
            "rackweave_target_request_seconds_bucket{operation=\"read\",le=\"10\"} 3",
            "rackweave_target_request_seconds_bucket{operation=\"read\",le=\"+Inf\"} 4",
            "rackweave_target_request_seconds_count{operation=\"write\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_name_cannot_end_its_label() {
        let sizes = [Size { subsystem: "a\"b\\c", namespace: 1, bytes: 512 }];
        let text = Metrics::default().text(&Counters::default(), &Gauges::default(), 0, sizes.into_iter());
        assert!(text.contains("namespace_bytes{subsystem=\"a\\\"b\\\\c\",namespace=\"1\"} 512\n"), "{text}");
    }
}
