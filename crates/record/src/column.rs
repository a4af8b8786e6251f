//! The columns of the records, of the spans and of the series: schema, writer, reader and
//! documentation are derived from these tables.

use crate::keep::SpanRow;
use crate::label::Label;
use crate::ledger::Place;
use crate::row::{Outcome, Row, SpanKind, Spans};
use crate::series::{Series, SeriesPlace, SeriesRow};
use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Appends the values of a column for several rows, as Parquet stores them: unsigned numbers in the
/// signed type of the same width, bit by bit. One call per value would cost more than the rest of
/// the writer.
pub(crate) type Gather<R, T> = fn(&[R], &mut Vec<T>);

/// Makes a [`Gather`] of an expression.
macro_rules! gather {
    ($row:ident => $value:expr) => {
        |rows, values| values.extend(rows.iter().map(|$row| $value))
    };
}

/// How to read a column from a row and to write it back.
pub(crate) enum Cell<R: 'static> {
    /// An unsigned 64-bit number.
    Wide { gather: Gather<R, i64>, set: fn(&mut R, u64) },
    /// An unsigned 32-bit number.
    Narrow { gather: Gather<R, i32>, set: fn(&mut R, u32) },
    /// One of a few words, stored by index.
    Word { words: &'static [&'static str], gather: Gather<R, u8>, set: fn(&mut R, usize) },
    /// A truth value.
    Flag { gather: Gather<R, bool>, set: fn(&mut R, bool) },
    /// A number that may have a fraction.
    Number { gather: Gather<R, f64>, set: fn(&mut R, f64) },
}

/// One column of a table.
pub(crate) struct Definition<R: 'static> {
    pub name: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
    pub cell: Cell<R>,
}

/// A row type of a dataset of Parquet parts.
pub(crate) trait Record: Copy + 'static {
    /// The name of a row in the schema.
    const NAME: &'static str;
    /// Every column, in the order of the file.
    const COLUMNS: &'static [Definition<Self>];
    /// Returns a row of zeros, for the reader to fill in.
    fn blank() -> Self;
    /// Returns the first value among the rows that no run writes, with the allowed values.
    fn first_wrong(rows: &[Self]) -> Option<Wrong>;
}

/// A value that no run writes.
pub(crate) struct Wrong {
    /// The index of its row.
    pub row: usize,
    pub column: &'static str,
    pub got: String,
    pub allowed: String,
}

/// The operations that a row can have.
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::ReadModifyWrite];
/// Returns the index of an operation in [`OPERATIONS`]. A new operation does not compile without
/// one.
const fn operation_word(operation: Operation) -> u8 {
    match operation {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::ReadModifyWrite => 2,
    }
}
pub(crate) const OPERATION_WORDS: [&str; 3] = [OPERATIONS[0].name(), OPERATIONS[1].name(), OPERATIONS[2].name()];
const OUTCOME_WORDS: [&str; Outcome::ALL.len()] = [
    Outcome::ALL[0].name(),
    Outcome::ALL[1].name(),
    Outcome::ALL[2].name(),
    Outcome::ALL[3].name(),
    Outcome::ALL[4].name(),
    Outcome::ALL[5].name(),
];

const fn column<R>(name: &'static str, unit: &'static str, doc: &'static str, cell: Cell<R>) -> Definition<R> {
    Definition { name, unit, doc, cell }
}

const fn time<R>(name: &'static str, doc: &'static str, gather: Gather<R, i64>, set: fn(&mut R, u64)) -> Definition<R> {
    column(name, "ps", doc, Cell::Wide { gather, set })
}

/// Defines the column with the sum of one kind of span.
macro_rules! span {
    ($name:literal, $kind:ident) => {
        time(
            $name,
            SpanKind::$kind.doc(),
            gather!(row => row.spans.get(SpanKind::$kind).as_ps() as i64),
            |row, value| row.spans.add(SpanKind::$kind, Span::ps(value)),
        )
    };
}

/// Every column of the records.
const ROW_COLUMNS: [Definition<Row>; 13 + SpanKind::ALL.len()] = [
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
        "How the request ended: finished (answered, or its data arrived), timed-out (ended by a timer without an \
         answer), rejected (answered with an error), lost (given up), unfinished (in flight when the run stopped) \
         or unavailable (the same after a fault).",
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
    // Derived: `end_ps` and `intended_ps` determine it, so the reader ignores it.
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
    span!("span_wait_ps", Wait),
    span!("span_stack_ps", Stack),
    span!("span_mac_ps", Mac),
    span!("span_pcs_ps", Pcs),
    span!("span_transceiver_ps", Transceiver),
    span!("span_schedule_ps", Schedule),
    span!("span_nic_queue_ps", NicQueue),
    span!("span_serialization_ps", Serialization),
    span!("span_propagation_ps", Propagation),
    span!("span_forwarding_ps", Forwarding),
    span!("span_switch_queue_ps", SwitchQueue),
    span!("span_memory_ps", Memory),
    span!("span_network_ps", Network),
    span!("span_return_ps", Return),
    span!("span_storage_queue_ps", StorageQueue),
    span!("span_flash_wait_ps", FlashWait),
    span!("span_collection_wait_ps", CollectionWait),
    span!("span_flash_ps", Flash),
    span!("span_replication_ps", Replication),
    span!("span_unattributed_ps", Unattributed),
];

const SPAN_WORDS: [&str; SpanKind::ALL.len()] = {
    let mut words = [""; SpanKind::ALL.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = SpanKind::ALL[index].name();
        index += 1;
    }
    words
};

/// Every column of the spans.
const SPAN_COLUMNS: [Definition<SpanRow>; 8] = [
    column(
        "request",
        "none",
        "The number of the request in the run, as in the records.",
        Cell::Wide { gather: gather!(row => row.request.0 as i64), set: |row, value| row.request = RequestId(value) },
    ),
    column(
        "number",
        "none",
        "The number of the span in its request, from 0 in the order in which spans ended.",
        Cell::Narrow { gather: gather!(row => row.number as i32), set: |row, value| row.number = value },
    ),
    column(
        "span",
        "none",
        "What the time was spent on: the kind of span, as in the names of the columns of the records.",
        Cell::Word {
            words: &SPAN_WORDS,
            gather: gather!(row => row.entry.kind as u8),
            set: |row, word| row.entry.kind = SpanKind::ALL[word],
        },
    ),
    time(
        "begin_ps",
        "When the span began, from the start of the run.",
        gather!(row => row.entry.begin.as_ps() as i64),
        |row, value| row.entry.begin = Time::ps(value),
    ),
    time(
        "end_ps",
        "When the span ended, from the start of the run.",
        gather!(row => row.entry.end.as_ps() as i64),
        |row, value| row.entry.end = Time::ps(value),
    ),
    time(
        "counted_ps",
        "How much of the span counts in the sum of its kind in the records. The rest ran beside another part of the \
         request that had ended before; the begin may then lie before the end of the span before.",
        gather!(row => row.entry.counted.as_ps() as i64),
        |row, value| row.entry.counted = Span::ps(value),
    ),
    column(
        "place",
        "none",
        "The kind of place where the request was: host, link, switch, port, target, core, nic, bus, memory, drive, or \
         nowhere in particular.",
        Cell::Word {
            words: &Place::NAMES,
            gather: gather!(row => row.entry.place.numbers().0),
            set: |row, word| row.entry.place = Place::of(word as u8, 0).unwrap_or(Place::Nowhere),
        },
    ),
    column(
        "place_index",
        "none",
        "Which of these places: the number of the node, link, core or drive; 0 if the place is nowhere.",
        Cell::Narrow {
            gather: gather!(row => row.entry.place.numbers().1 as i32),
            set: |row, value| {
                let kind = row.entry.place.numbers().0;
                row.entry.place = Place::of(kind, value).unwrap_or(Place::Nowhere);
            },
        },
    ),
];

/// Every column of the series.
const SERIES_COLUMNS: [Definition<SeriesRow>; 6] = [
    time(
        "time_ps",
        "When the sample was taken, from the start of the run. Of wear levelling 0: see day.",
        gather!(row => row.at.as_ps() as i64),
        |row, value| row.at = Time::ps(value),
    ),
    column(
        "day",
        "none",
        "Of wear levelling: the day at whose end the sample was taken, from 1; 213 days are all that picoseconds \
         count. Of other runs 0.",
        Cell::Narrow { gather: gather!(row => row.day as i32), set: |row, value| row.day = value },
    ),
    column(
        "metric",
        "none",
        "What was sampled: one of the metrics in docs/reference/series.md.",
        Cell::Word {
            words: Series::NAMES,
            gather: gather!(row => row.metric as u8),
            set: |row, word| row.metric = Series::ALL[word],
        },
    ),
    column(
        "place",
        "none",
        "The kind of place that the value is of: total, max or min (over all places of the metric), or host, link, \
         switch, port, target, core, nic, bus, memory or drive.",
        Cell::Word {
            words: &SeriesPlace::NAMES,
            gather: gather!(row => row.place.numbers().0),
            set: |row, word| row.place = SeriesPlace::of(word as u8, 0).unwrap_or(SeriesPlace::Total),
        },
    ),
    column(
        "place_index",
        "none",
        "Which of these places: the number of the node, port, core or drive; 0 over all places.",
        Cell::Narrow {
            gather: gather!(row => row.place.numbers().1 as i32),
            set: |row, value| {
                let kind = row.place.numbers().0;
                row.place = SeriesPlace::of(kind, value).unwrap_or(SeriesPlace::Total);
            },
        },
    ),
    column(
        "value",
        "by metric",
        "The value, in the unit of its metric.",
        Cell::Number { gather: gather!(row => row.value), set: |row, value| row.value = value },
    ),
];

impl Record for Row {
    const NAME: &'static str = "request";
    const COLUMNS: &'static [Definition<Row>] = &ROW_COLUMNS;

    fn blank() -> Row {
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

    /// Latency is a difference of times: a part in which a request ends before its intended start
    /// is rejected.
    fn first_wrong(rows: &[Row]) -> Option<Wrong> {
        let row = rows.iter().position(|row| row.end < row.intended)?;
        let (got, least) = (rows[row].end.as_ps(), rows[row].intended.as_ps());
        let allowed = format!("{least}..={}", Time::MAX.as_ps());
        Some(Wrong { row, column: "end_ps", got: got.to_string(), allowed })
    }
}

impl Record for SpanRow {
    const NAME: &'static str = "span";
    const COLUMNS: &'static [Definition<SpanRow>] = &SPAN_COLUMNS;

    fn blank() -> SpanRow {
        SpanRow::BLANK
    }

    fn first_wrong(rows: &[SpanRow]) -> Option<Wrong> {
        let row = rows.iter().position(|row| row.entry.end < row.entry.begin)?;
        let (got, least) = (rows[row].entry.end.as_ps(), rows[row].entry.begin.as_ps());
        let allowed = format!("{least}..={}", Time::MAX.as_ps());
        Some(Wrong { row, column: "end_ps", got: got.to_string(), allowed })
    }
}

impl Record for SeriesRow {
    const NAME: &'static str = "sample";
    const COLUMNS: &'static [Definition<SeriesRow>] = &SERIES_COLUMNS;

    fn blank() -> SeriesRow {
        SeriesRow::BLANK
    }

    fn first_wrong(rows: &[SeriesRow]) -> Option<Wrong> {
        let row = rows.iter().position(|row| !(row.value.is_finite() && row.value >= 0.0))?;
        let allowed = "finite numbers from 0".to_owned();
        Some(Wrong { row, column: "value", got: rows[row].value.to_string(), allowed })
    }
}

impl<R> Definition<R> {
    /// Returns the type's name in the documentation.
    pub fn type_name(&self) -> &'static str {
        match self.cell {
            Cell::Wide { .. } => "u64",
            Cell::Narrow { .. } => "u32",
            Cell::Word { .. } => "string",
            Cell::Flag { .. } => "bool",
            Cell::Number { .. } => "f64",
        }
    }

    fn parquet_type(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.cell {
            Cell::Wide { .. } => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Cell::Narrow { .. } => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Cell::Word { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cell::Flag { .. } => (Physical::BOOLEAN, None),
            Cell::Number { .. } => (Physical::DOUBLE, None),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
    }
}

/// Returns the schema of a part.
///
/// # Panics
/// If two labels have the same name, or one has that of a column.
pub(crate) fn schema<R: Record>(labels: &[Label]) -> TypePtr {
    for (index, label) in labels.iter().enumerate() {
        let is_new = labels[..index].iter().all(|other| other.name != label.name);
        assert!(is_new && Label::is_one(&label.name), "{} cannot be the name of a label", label.name);
    }
    let columns = R::COLUMNS.iter().map(Definition::parquet_type);
    let fields = columns.chain(labels.iter().map(Label::parquet_type));
    let fields = fields.map(|field| field.map(Arc::new)).collect::<Result<_, _>>();
    let root = fields.and_then(|fields| Type::group_type_builder(R::NAME).with_fields(fields).build());
    Arc::new(root.expect("the table of columns is a valid Parquet schema"))
}
