//! One row per request. The spans of a row sum exactly to its end-to-end time.

use crate::keep::SpanRow;
use crate::ledger::place_of;
use crate::series::SeriesRow;
use base::{Bytes, NodeId, Operation, RequestId, Span, Time};

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Answered, or its data has arrived.
    Finished,
    /// Ended by a timer without an answer: its target or the path to it failed.
    TimedOut,
    /// Answered with an error: refused, or not carried out.
    Rejected,
    /// Abandoned: its data was lost and will not be resent.
    Lost,
    /// Still in flight when the run stopped; `end` is the time of the stop.
    Unfinished,
    /// Still in flight after a fault, at the end of the run's waiting time: its data was
    /// unavailable.
    Unavailable,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 6] = [
        Outcome::Finished,
        Outcome::TimedOut,
        Outcome::Rejected,
        Outcome::Lost,
        Outcome::Unfinished,
        Outcome::Unavailable,
    ];
    /// Returns the name used in files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Finished => "finished",
            Outcome::TimedOut => "timed-out",
            Outcome::Rejected => "rejected",
            Outcome::Lost => "lost",
            Outcome::Unfinished => "unfinished",
            Outcome::Unavailable => "unavailable",
        }
    }
}

/// Generates the enum, its names and its documentation from one table.
macro_rules! span_kinds {
    ($($kind:ident $name:literal $doc:literal;)+) => {
        /// The kinds of spans. A design uses those that apply to it; the others stay zero.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SpanKind {
            $(#[doc = $doc] $kind,)+
        }

        impl SpanKind {
            /// Every kind, in the order of the columns.
            pub const ALL: [SpanKind; [$($name),+].len()] = [$(SpanKind::$kind),+];
            /// Returns the name in columns and summaries.
            pub const fn name(self) -> &'static str {
                match self { $(SpanKind::$kind => $name,)+ }
            }
            /// Returns the activity that takes the time.
            pub const fn doc(self) -> &'static str {
                match self { $(SpanKind::$kind => $doc,)+ }
            }
        }
    };
}

span_kinds! {
    Wait "wait" "From the intended start until the source takes the request up (closed slots, full queues, per-pair limits).";
    Stack "stack" "Protocol stacks and PHY logic of hosts, memory nodes and of the design in the switch, without waiting.";
    Mac "mac" "Media access control crossings.";
    Pcs "pcs" "Physical coding sublayer crossings.";
    Transceiver "transceiver" "PMA, PMD and transceiver crossings.";
    Schedule "schedule" "Waiting for permission to send: grant, credit, window, pause, retransmission.";
    NicQueue "nic_queue" "Waiting for the sender's own link.";
    Serialization "serialization" "Bits going onto a wire, on the critical path.";
    Propagation "propagation" "Light in the fibre.";
    Forwarding "forwarding" "The layer-2 pipeline of a switch.";
    SwitchQueue "switch_queue" "Waiting in a switch.";
    Memory "memory" "The target's memory.";
    Network "network" "Networks around the rack on the way to the target, as sampled.";
    Return "return" "Networks around the rack on the way back, as sampled.";
    StorageQueue "storage_queue" "Waiting in a storage host: I/O scheduler, rate limit, write cache.";
    FlashWait "flash_wait" "Waiting for a flash die, channel or device link that other requests hold.";
    CollectionWait "collection_wait" "Waiting for flash that garbage collection or wear levelling holds.";
    Flash "flash" "The flash device itself: firmware, array, transfers, without waiting.";
    Replication "replication" "Waiting for replicas: their copy of a write, or a read's turn behind one.";
    Unattributed "unattributed" "Time that no span was claimed for. A run with more than 0.1 % of it warns.";
}

/// A request's time by kind of span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// In the order of [`place_of`], like ledgers, so that nothing is reordered per request.
    placed: [Span; SpanKind::ALL.len()],
    /// The total of all kinds, saturating.
    total: Span,
}

impl Spans {
    /// Creates spans from sums by kind, in the order of [`place_of`].
    #[inline]
    pub(crate) fn of(placed: [Span; SpanKind::ALL.len()]) -> Spans {
        let total = placed.iter().fold(0_u64, |sum, span| sum.saturating_add(span.as_ps()));
        Spans { placed, total: Span::ps(total) }
    }
    /// Adds `span` to `kind`.
    pub fn add(&mut self, kind: SpanKind, span: Span) {
        self.placed[place_of(kind)] += span;
        self.total = Span::ps(self.total.as_ps().saturating_add(span.as_ps()));
    }
    /// Returns the time spent in `kind`.
    pub fn get(&self, kind: SpanKind) -> Span {
        self.placed[place_of(kind)]
    }
    /// Returns the total of all kinds.
    pub fn total(&self) -> Span {
        self.total
    }
    /// Returns every kind with its time, in the order of the columns.
    pub fn iter(&self) -> impl Iterator<Item = (SpanKind, Span)> + '_ {
        SpanKind::ALL.iter().map(|kind| (*kind, self.get(*kind)))
    }
    /// Returns every time, in the order of [`place_of`].
    pub(crate) fn placed(&self) -> &[Span; SpanKind::ALL.len()] {
        &self.placed
    }
    /// Returns the total of all kinds in picoseconds, without overflow.
    #[inline]
    pub(crate) fn total_ps(&self) -> u128 {
        match self.total.as_ps() {
            u64::MAX => self.wide_total_ps(),
            total => u128::from(total),
        }
    }
    #[cold]
    fn wide_total_ps(&self) -> u128 {
        self.placed.iter().map(|span| u128::from(span.as_ps())).sum()
    }
}

/// The record of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the run.
    pub request: RequestId,
    /// The requested operation.
    pub operation: Operation,
    /// The requesting node.
    pub source: NodeId,
    /// The node of the memory or storage.
    pub target: NodeId,
    /// The first byte at the target; 0 if the workload has no addresses.
    pub address: u64,
    /// The payload, in bytes.
    pub bytes: Bytes,
    /// The result.
    pub outcome: Outcome,
    /// The start time that the workload intended. Latency counts from here.
    pub intended: Time,
    /// When the source started it.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// The end-to-end time of the same request alone in the same network; zero if unknown.
    pub unloaded: Span,
    /// Whether its intended start is after the warm-up, so that it counts in statistics.
    pub measured: bool,
    /// The time by kind of span; sums to `end - intended`.
    pub spans: Spans,
}

impl Row {
    /// Returns the end-to-end time, from the intended start.
    pub fn latency(&self) -> Span {
        self.end - self.intended
    }
    /// Returns whether the request ended no earlier than its intended start, and the spans account
    /// for every picosecond.
    pub fn adds_up(&self) -> bool {
        self.end >= self.intended && self.spans.total_ps() == u128::from(self.latency().as_ps())
    }
    /// Returns whether the request counts in statistics: intended after the warm-up, and finished.
    pub fn counts(&self) -> bool {
        self.measured && self.outcome == Outcome::Finished
    }
}

/// Receives the rows of a run as requests end.
pub trait Sink {
    /// Receives one row, in the order in which requests end.
    fn row(&mut self, row: &Row) -> Result<(), SinkError>;
    /// Receives the ordered spans of one request, if the run keeps them.
    fn spans(&mut self, _: &[SpanRow]) -> Result<(), SinkError> {
        Ok(())
    }
    /// Receives the values of one sample, if the run has series.
    fn series(&mut self, _: &[SeriesRow]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// An error after which no more rows are accepted. Rows accepted so far stay readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records cannot be written to {place}: {reason}")]
pub struct SinkError {
    /// The file or part.
    pub place: String,
    /// The system's error message.
    pub reason: String,
}

/// Discards everything: for benchmarks and warm-ups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn row(&mut self, _: &Row) -> Result<(), SinkError> {
        Ok(())
    }
}

impl Sink for Vec<Row> {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        self.push(*row);
        Ok(())
    }
}
