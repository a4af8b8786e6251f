//! What became of key-value requests.

use base::{Span, Time};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// An hour: what takes longer counts as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Kinds of key-value requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A read of one key.
    Read,
    /// An update of one key.
    Update,
    /// A read and then an update of the same key.
    ReadModifyWrite,
}

/// Times and counts of finished key-value requests, and what the trees have moved.
#[derive(Clone, Debug)]
pub struct Operations {
    kinds: [(Histogram<u64>, u64); 3],
    /// Bytes of updates.
    pub(super) updated: u64,
    /// Bytes written to the drives: log, flushes, compactions.
    pub(super) written: u64,
    /// How often a writer had to wait for a flush or a compaction.
    pub(super) stalls: u64,
    last: Time,
}

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindSummary {
    /// How many have finished.
    pub count: u64,
    /// Their mean time.
    pub mean: Span,
    /// The time that half of them have not exceeded; percentiles are off by less than 0.1 %.
    pub median: Span,
    /// The time that 99 of 100 have not exceeded.
    pub p99: Span,
    /// The time that 999 of 1,000 have not exceeded.
    pub p999: Span,
    /// I/Os a request, on average.
    pub ios: f64,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Read, Kind::Update, Kind::ReadModifyWrite];

    /// As summaries name it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::ReadModifyWrite => "read_modify_write",
        }
    }
}

impl Operations {
    pub(super) fn new() -> Operations {
        let histogram = || Histogram::new_with_max(LONGEST_NS, 3).expect("three digits are allowed");
        let kinds = [(histogram(), 0), (histogram(), 0), (histogram(), 0)];
        Operations { kinds, updated: 0, written: 0, stalls: 0, last: Time::ZERO }
    }

    pub(super) fn ended(&mut self, kind: Kind, took: Span, ios: u32, now: Time) {
        let (histogram, all_ios) = &mut self.kinds[kind as usize];
        histogram.saturating_record(took.as_ps() / 1_000);
        *all_ios += u64::from(ios);
        self.last = self.last.max(now);
    }

    /// What is known of one kind.
    pub fn of(&self, kind: Kind) -> KindSummary {
        let (histogram, ios) = &self.kinds[kind as usize];
        let percentile = |quantile| Span::ns(histogram.value_at_quantile(quantile));
        let count = histogram.len();
        KindSummary {
            count,
            mean: Span::from_ps_f64(if count == 0 { 0.0 } else { histogram.mean() * 1e3 }),
            median: percentile(0.5),
            p99: percentile(0.99),
            p999: percentile(0.999),
            ios: if count == 0 { 0.0 } else { *ios as f64 / count as f64 },
        }
    }

    /// Finished requests of all kinds.
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|(histogram, _)| histogram.len()).sum()
    }

    /// Finished requests a second until the last one.
    pub fn per_second(&self) -> f64 {
        let span_s = self.last.as_secs_f64();
        if span_s > 0.0 { self.count() as f64 / span_s } else { 0.0 }
    }

    /// Bytes written to the drives over bytes of updates; 0 without any.
    pub fn write_amplification(&self) -> f64 {
        if self.updated == 0 { 0.0 } else { self.written as f64 / self.updated as f64 }
    }

    /// How often a writer had to wait for a flush or a compaction.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// All of it by name, with the unit at the end, for a summary.
    pub fn extra(&self, out: &mut BTreeMap<String, f64>) {
        let mut put = |name: String, value: f64| {
            out.insert(format!("key_value_{name}"), value);
        };
        put("requests_per_s".into(), self.per_second());
        put("write_amplification".into(), self.write_amplification());
        put("write_stalls".into(), self.stalls as f64);
        for kind in Kind::ALL {
            let KindSummary { count, mean, median, p99, p999, ios } = self.of(kind);
            let name = kind.name();
            put(format!("{name}s"), count as f64);
            put(format!("{name}_ios"), ios);
            for (what, span) in [("mean", mean), ("p50", median), ("p99", p99), ("p999", p999)] {
                put(format!("{name}_{what}_ns"), span.as_ns_f64());
            }
        }
    }
}
