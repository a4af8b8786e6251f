//! One row a request. The spans of a row sum exactly to its end-to-end time.

use crate::keep::SpanRow;
use crate::ledger::place_of;
use base::{Bytes, NodeId, Operation, RequestId, Span, Time};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Answered, or its data has arrived.
    Finished,
    /// Answered with nothing by a timer, because its target or the way to it died.
    Null,
    /// Given up: its data was lost and nobody will send it again.
    Lost,
    /// Still on its way when the run stopped; `end` is the time of the stop.
    Unfinished,
    /// The same after a fault, when it had been waited for as long as the run says: its data could
    /// not be had.
    Unavailable,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 5] =
        [Outcome::Finished, Outcome::Null, Outcome::Lost, Outcome::Unfinished, Outcome::Unavailable];
    /// The name used in files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Finished => "finished",
            Outcome::Null => "null",
            Outcome::Lost => "lost",
            Outcome::Unfinished => "unfinished",
            Outcome::Unavailable => "unavailable",
        }
    }
}

/// Writes the enum, its names and its documentation from one table.
macro_rules! span_kinds {
    ($($kind:ident $name:literal $doc:literal;)+) => {
        /// Where the time of a request went. A design uses those that it has; the others stay zero.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SpanKind {
            $(#[doc = $doc] $kind,)+
        }

        impl SpanKind {
            /// Every kind, in the order of the columns.
            pub const ALL: [SpanKind; [$($name),+].len()] = [$(SpanKind::$kind),+];
            /// The name in columns and summaries.
            pub const fn name(self) -> &'static str {
                match self { $(SpanKind::$kind => $name,)+ }
            }
            /// What the time was spent on.
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

/// A request's time, split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// In the order of [`place_of`], which is that of ledgers: no request pays for another order.
    placed: [Span; SpanKind::ALL.len()],
    /// All of them together, or the longest span if they are more than that.
    total: Span,
}

impl Spans {
    /// Of sums by kind, in the order of [`place_of`].
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
    /// The time spent in `kind`.
    pub fn get(&self, kind: SpanKind) -> Span {
        self.placed[place_of(kind)]
    }
    /// All kinds together.
    pub fn total(&self) -> Span {
        self.total
    }
    /// Every kind with its time, in the order of the columns.
    pub fn iter(&self) -> impl Iterator<Item = (SpanKind, Span)> + '_ {
        SpanKind::ALL.iter().map(|kind| (*kind, self.get(*kind)))
    }
    /// Every time, in the order of [`place_of`].
    pub(crate) fn placed(&self) -> &[Span; SpanKind::ALL.len()] {
        &self.placed
    }
    /// All kinds together in picoseconds, wide enough for any values.
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

/// One request, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the run.
    pub request: RequestId,
    /// What it asked.
    pub operation: Operation,
    /// Who asked.
    pub source: NodeId,
    /// Whose memory or storage it was about.
    pub target: NodeId,
    /// The first byte there; 0 where the workload makes no addresses.
    pub address: u64,
    /// The payload.
    pub bytes: Bytes,
    /// How it ended.
    pub outcome: Outcome,
    /// When the workload wanted it to start. Latency counts from here.
    pub intended: Time,
    /// When the source took it up.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// The end-to-end time of the same request alone in the same network; zero when not known.
    pub unloaded: Span,
    /// Whether it was intended after the warm-up, so that it counts in statistics.
    pub measured: bool,
    /// Where the time went: sums to `end - intended`.
    pub spans: Spans,
}

impl Row {
    /// End to end, from the intended start.
    pub fn latency(&self) -> Span {
        self.end - self.intended
    }
    /// Whether the request ended no earlier than it was intended, and the spans account for every
    /// picosecond.
    pub fn adds_up(&self) -> bool {
        self.end >= self.intended && self.spans.total_ps() == u128::from(self.latency().as_ps())
    }
    /// Whether the request goes into statistics: intended after the warm-up, and finished.
    pub fn counts(&self) -> bool {
        self.measured && self.outcome == Outcome::Finished
    }
}

/// Takes the rows of a run as they come.
pub trait Sink {
    /// Takes one row, in the order in which requests end.
    fn row(&mut self, row: &Row) -> Result<(), SinkError>;
    /// Takes the spans of one request in their order, where the run keeps them.
    fn spans(&mut self, _: &[SpanRow]) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Why rows can no longer be taken. Rows accepted so far stay readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records cannot be written to {place}: {reason}")]
pub struct SinkError {
    /// The file or part.
    pub place: String,
    /// What the system said.
    pub reason: String,
}

/// Keeps nothing: for benchmarks and warm-ups.
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
