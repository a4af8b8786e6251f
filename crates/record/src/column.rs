//! The columns of the records: the one table from which schema, writer, reader and documentation come.

use crate::row::{Outcome, Row, SpanKind, Spans};
use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Appends the values of a column, as Parquet stores them: unsigned numbers in the signed type of the same width, bit by
/// bit. By many rows at a time, because one call a value would cost more than the rest of the writer.
pub(crate) type Gather<T> = fn(&[Row], &mut Vec<T>);

/// A [`Gather`] of one expression.
macro_rules! gather {
    ($row:ident => $value:expr) => {
        |rows, values| values.extend(rows.iter().map(|$row| $value))
    };
}

/// How to take a column out of a row and to put it back.
#[derive(Clone, Copy)]
pub(crate) enum Cell {
    /// An unsigned 64-bit number.
    Wide { gather: Gather<i64>, set: fn(&mut Row, u64) },
    /// An unsigned 32-bit number.
    Narrow { gather: Gather<i32>, set: fn(&mut Row, u32) },
    /// One of a few words, by its index.
    Word { words: &'static [&'static str], gather: Gather<u8>, set: fn(&mut Row, usize) },
    /// Yes or no.
    Flag { gather: Gather<bool>, set: fn(&mut Row, bool) },
    /// Picoseconds in one kind of span.
    Span(SpanKind),
}

/// One column of the records.
#[derive(Clone, Copy)]
pub(crate) struct Definition {
    pub name: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
    pub cell: Cell,
}

/// The operations that a row can have.
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];
/// The place of an operation in [`OPERATIONS`]. A new operation does not compile until it has one.
const fn operation_word(operation: Operation) -> u8 {
    match operation {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::ReadModifyWrite => 2,
    }
}
const OPERATION_WORDS: [&str; 3] = [OPERATIONS[0].name(), OPERATIONS[1].name(), OPERATIONS[2].name()];
const OUTCOME_WORDS: [&str; Outcome::ALL.len()] = [
    Outcome::ALL[0].name(),
    Outcome::ALL[1].name(),
    Outcome::ALL[2].name(),
    Outcome::ALL[3].name(),
    Outcome::ALL[4].name(),
];

const fn column(name: &'static str, unit: &'static str, doc: &'static str, cell: Cell) -> Definition {
    Definition { name, unit, doc, cell }
}

const fn time(name: &'static str, doc: &'static str, gather: Gather<i64>, set: fn(&mut Row, u64)) -> Definition {
    column(name, "ps", doc, Cell::Wide { gather, set })
}

const fn span(name: &'static str, kind: SpanKind) -> Definition {
    column(name, "ps", kind.doc(), Cell::Span(kind))
}

/// Every column, in the order of the file.
pub(crate) const COLUMNS: [Definition; 13 + SpanKind::ALL.len()] = [
    column(
        "request",
        "none",
        "The number of the request in the run, from 0 in the order in which the workload made them.",
        Cell::Wide { gather: gather!(row => row.request.0 as i64), set: |row, value| row.request = RequestId(value) },
    ),
    column(
        "operation",
        "none",
        "What was asked: read, write or read-modify-write.",
        Cell::Word {
            words: &OPERATION_WORDS,
            gather: gather!(row => operation_word(row.operation)),
            set: |row, word| row.operation = OPERATIONS[word],
        },
    ),
    column(
        "source",
        "none",
        "The node that asked, numbered from 0.",
        Cell::Narrow { gather: gather!(row => row.source.0 as i32), set: |row, value| row.source = NodeId(value) },
    ),
    column(
        "target",
        "none",
        "The node whose memory or storage the request was about, numbered from 0.",
        Cell::Narrow { gather: gather!(row => row.target.0 as i32), set: |row, value| row.target = NodeId(value) },
    ),
    column(
        "address",
        "B",
        "The first byte there that the request was about; 0 where the workload makes no addresses.",
        Cell::Wide { gather: gather!(row => row.address as i64), set: |row, value| row.address = value },
    ),
    column(
        "bytes",
        "B",
        "The payload that was read or written.",
        Cell::Wide {
            gather: gather!(row => row.bytes.count() as i64),
            set: |row, value| row.bytes = Bytes::new(value),
        },
    ),
    column(
        "outcome",
        "none",
        "How the request ended: finished (answered, or its data arrived), null (answered with nothing by a timer), \
         lost (given up) or unfinished (on its way when the run stopped).",
        Cell::Word {
            words: &OUTCOME_WORDS,
            gather: gather!(row => row.outcome as u8),
            set: |row, word| row.outcome = Outcome::ALL[word],
        },
    ),
    time(
        "intended_ps",
        "When the workload wanted the request to start, from the start of the run. Latency counts from here.",
        gather!(row => row.intended.as_ps() as i64),
        |row, value| row.intended = Time::ps(value),
    ),
    time(
        "start_ps",
        "When the source took the request up, from the start of the run.",
        gather!(row => row.start.as_ps() as i64),
        |row, value| row.start = Time::ps(value),
    ),
    time(
        "end_ps",
        "When the request ended, from the start of the run; of an unfinished request, when the run stopped.",
        gather!(row => row.end.as_ps() as i64),
        |row, value| row.end = Time::ps(value),
    ),
    // Derived: the reader takes it from `end_ps` and `intended_ps`.
    time(
        "latency_ps",
        "End to end: end_ps - intended_ps, and the sum of all span columns.",
        gather!(row => row.latency().as_ps() as i64),
        |_, _| (),
    ),
    time(
        "unloaded_ps",
        "The end-to-end time of the same request alone in the same network; 0 when not known.",
        gather!(row => row.unloaded.as_ps() as i64),
        |row, value| row.unloaded = Span::ps(value),
    ),
    column(
        "measured",
        "none",
        "Whether the request was intended after the warm-up. Statistics take the measured requests that finished.",
        Cell::Flag { gather: gather!(row => row.measured), set: |row, value| row.measured = value },
    ),
    span("span_wait_ps", SpanKind::Wait),
    span("span_stack_ps", SpanKind::Stack),
    span("span_mac_ps", SpanKind::Mac),
    span("span_pcs_ps", SpanKind::Pcs),
    span("span_transceiver_ps", SpanKind::Transceiver),
    span("span_schedule_ps", SpanKind::Schedule),
    span("span_nic_queue_ps", SpanKind::NicQueue),
    span("span_serialization_ps", SpanKind::Serialization),
    span("span_propagation_ps", SpanKind::Propagation),
    span("span_forwarding_ps", SpanKind::Forwarding),
    span("span_switch_queue_ps", SpanKind::SwitchQueue),
    span("span_memory_ps", SpanKind::Memory),
    span("span_network_ps", SpanKind::Network),
    span("span_return_ps", SpanKind::Return),
    span("span_storage_queue_ps", SpanKind::StorageQueue),
    span("span_flash_wait_ps", SpanKind::FlashWait),
    span("span_collection_wait_ps", SpanKind::CollectionWait),
    span("span_flash_ps", SpanKind::Flash),
    span("span_replication_ps", SpanKind::Replication),
];

impl Definition {
    /// The type's name in the documentation.
    pub fn type_name(&self) -> &'static str {
        match self.cell {
            Cell::Wide { .. } | Cell::Span(_) => "u64",
            Cell::Narrow { .. } => "u32",
            Cell::Word { .. } => "string",
            Cell::Flag { .. } => "bool",
        }
    }

    fn parquet_type(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.cell {
            Cell::Wide { .. } | Cell::Span(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Cell::Narrow { .. } => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Cell::Word { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cell::Flag { .. } => (Physical::BOOLEAN, None),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
    }
}

/// The schema of a part.
pub(crate) fn schema() -> TypePtr {
    let fields = COLUMNS.iter().map(|column| column.parquet_type().map(Arc::new)).collect::<Result<_, _>>();
    let root = fields.and_then(|fields| Type::group_type_builder("request").with_fields(fields).build());
    Arc::new(root.expect("the table of columns is a valid Parquet schema"))
}

/// A row of zeros, for the reader to fill in.
pub(crate) fn blank() -> Row {
    Row {
        request: RequestId(0),
        operation: Operation::Read,
        source: NodeId(0),
        target: NodeId(0),
        address: 0,
        bytes: Bytes::ZERO,
        outcome: Outcome::Finished,
        intended: Time::ZERO,
        start: Time::ZERO,
        end: Time::ZERO,
        unloaded: Span::ZERO,
        measured: false,
        spans: Spans::default(),
    }
}
