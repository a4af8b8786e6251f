//! What became of key-value requests.
//!
//! A request lasts from its begin, which in this closed loop is when its thread's last one ended,
//! to the end of its last I/O; of one that memory answered to when its store's code is through with
//! it. A write that waits for a flush or a compaction waits in it. What begins in the warm-up is
//! not timed.

use base::{Span, Time};
use hdrhistogram::Histogram;

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
    kinds: [Timed; 3],
    /// Of all kinds together.
    all: Timed,
    /// Requests that have begun.
    begun: u64,
    /// Whether the warm-up is over.
    counts: bool,
    /// Bytes of updates.
    pub(super) updated: u64,
    /// Bytes written to the drives: log, flushes, compactions.
    pub(super) written: u64,
    /// How often a writer had to wait for a flush or a compaction.
    pub(super) stalls: u64,
    /// Time at which the first that is timed began, and the last ended.
    first: Time,
    last: Time,
}

/// Times of requests, and how many I/Os they took.
#[derive(Clone, Debug)]
struct Timed {
    took: Histogram<u64>,
    ios: u64,
}

/// One kind, or all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct KindSummary {
    /// How many have finished.
    pub count: u64,
    /// Their mean time.
    pub mean: Span,
    /// Their times in nanoseconds, off by less than 0.1 %.
    pub took_ns: Histogram<u64>,
    /// I/Os a request, on average.
    pub ios: f64,
}

impl KindSummary {
    /// Returns the time that the share `quantile` of them has not exceeded.
    pub fn percentile(&self, quantile: f64) -> Span {
        Span::ns(self.took_ns.value_at_quantile(quantile))
    }
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
        Operations {
            kinds: [Timed::new(), Timed::new(), Timed::new()],
            all: Timed::new(),
            begun: 0,
            counts: false,
            updated: 0,
            written: 0,
            stalls: 0,
            first: Time::MAX,
            last: Time::ZERO,
        }
    }

    /// A request begins at `now`; whether it is behind the first `warm_up` and not before
    /// `warm_until`, so that it is timed. What the trees move counts from the first of these on.
    pub(super) fn begins(&mut self, now: Time, warm_up: u64, warm_until: Time) -> bool {
        self.begun += 1;
        let is_timed = self.begun > warm_up && now >= warm_until;
        if is_timed && !self.counts {
            self.counts = true;
            (self.updated, self.written, self.stalls) = (0, 0, 0);
        }
        is_timed
    }

    /// A request that is timed has ended at `now`.
    pub(super) fn ended(&mut self, kind: Kind, started: Time, ios: u32, now: Time) {
        let took = now.saturating_since(started);
        self.kinds[kind as usize].add(took, ios);
        self.all.add(took, ios);
        (self.first, self.last) = (self.first.min(started), self.last.max(now));
    }

    /// What is known of one kind.
    pub fn of(&self, kind: Kind) -> KindSummary {
        self.kinds[kind as usize].summary()
    }

    /// What is known of all kinds together.
    pub fn all(&self) -> KindSummary {
        self.all.summary()
    }

    /// Timed requests of all kinds.
    pub fn count(&self) -> u64 {
        self.all.took.len()
    }

    /// Timed requests a second, from the begin of the first to the end of the last.
    pub fn per_second(&self) -> f64 {
        let span_s = self.last.saturating_since(self.first).as_secs_f64();
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
}

impl Timed {
    fn new() -> Timed {
        Timed { took: Histogram::new_with_max(LONGEST_NS, 3).expect("three digits are allowed"), ios: 0 }
    }

    fn add(&mut self, took: Span, ios: u32) {
        self.took.saturating_record(took.as_ps() / 1_000);
        self.ios += u64::from(ios);
    }

    fn summary(&self) -> KindSummary {
        let count = self.took.len();
        let per = |sum: f64| if count == 0 { 0.0 } else { sum / count as f64 };
        KindSummary {
            count,
            mean: Span::from_ps_f64(if count == 0 { 0.0 } else { self.took.mean() * 1e3 }),
            took_ns: self.took.clone(),
            ios: per(self.ios as f64),
        }
    }
}
