//! Rows and datasets for tests.

use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use proptest::prelude::*;
use record::{Entry, Outcome, ParquetWriter, Parts, Place, Provenance, Row, Sink, SpanKind, SpanRow, Spans};
use record::{RunFacts, RunIdentity, Summarizer, Summary, part_name, read_parts};
use std::fs;
use std::io;
use std::path::Path;

/// Builds a finished, measured 64 B read that was intended at `intended` and spent its whole
/// latency in the switch queue.
pub fn read(request: u64, intended: Time, latency: Span, unloaded: Span) -> Row {
    let mut spans = Spans::default();
    spans.add(SpanKind::SwitchQueue, latency);
    Row {
        request: RequestId(request),
        operation: Operation::Read,
        source: NodeId(0),
        target: NodeId(1),
        address: 4_096 * request,
        bytes: Bytes::new(64),
        outcome: Outcome::Finished,
        intended,
        start: intended,
        end: intended + latency,
        unloaded,
        measured: true,
        spans,
    }
}

pub fn any_operation() -> impl Strategy<Value = Operation> {
    prop::sample::select(vec![Operation::Read, Operation::Write, Operation::ReadModifyWrite])
}

/// Rows with any values in any field, even meaningless ones, but that end no earlier than intended.
pub fn any_row() -> impl Strategy<Value = Row> {
    let ids = (any::<u64>(), any_operation(), any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>());
    let outcome = prop::sample::select(Outcome::ALL.to_vec());
    let times = (outcome, any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<bool>());
    let spans = prop::array::uniform20(prop_oneof![Just(0), any::<u64>()]);
    (ids, times, spans).prop_map(|(ids, times, spans)| Row {
        request: RequestId(ids.0),
        operation: ids.1,
        source: NodeId(ids.2),
        target: NodeId(ids.3),
        address: ids.5,
        bytes: Bytes::new(ids.4),
        outcome: times.0,
        intended: Time::ps(times.1.min(times.2)),
        end: Time::ps(times.1.max(times.2)),
        start: Time::ps(times.3),
        unloaded: Span::ps(times.4),
        measured: times.5,
        spans: split(spans),
    })
}

/// Spans with any values that end no earlier than they begin.
pub fn any_span() -> impl Strategy<Value = SpanRow> {
    let kind = prop::sample::select(SpanKind::ALL.to_vec());
    let place = (0..Place::NAMES.len() as u8, any::<u32>()).prop_map(|(kind, index)| Place::of(kind, index).unwrap());
    (any::<u64>(), any::<u32>(), kind, place, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
        |(request, number, kind, place, one, other, counted)| {
            let (begin, end) = (Time::ps(one.min(other)), Time::ps(one.max(other)));
            let entry = Entry { kind, place, begin, end, counted: Span::ps(counted) };
            SpanRow { request: RequestId(request), number, entry }
        },
    )
}

fn split(picoseconds: [u64; SpanKind::ALL.len()]) -> Spans {
    let mut spans = Spans::default();
    for (kind, part) in SpanKind::ALL.into_iter().zip(picoseconds) {
        spans.add(kind, Span::ps(part));
    }
    spans
}

/// Rows of a sound design: up to a millisecond of latency, spans that add up, slower than alone in
/// the network.
pub fn sound_row() -> impl Strategy<Value = Row> {
    let outcome = prop_oneof![9 => Just(Outcome::Finished), 1 => prop::sample::select(Outcome::ALL.to_vec())];
    let latency = prop_oneof![1_000u64..3_000_000, 1_000u64..1_000_000_000];
    (any_operation(), outcome, 0u64..2_000_000, latency, 1u64..100_000, any::<bool>(), 0usize..12).prop_map(
        |(operation, outcome, intended, latency, bytes, measured, kind)| {
            let unloaded = Span::ps(1_000 + latency % 977);
            let mut row = read(intended, Time::ps(intended), Span::ps(latency), unloaded);
            (row.operation, row.outcome, row.measured, row.bytes) = (operation, outcome, measured, Bytes::new(bytes));
            row.spans = Spans::default();
            row.spans.add(SpanKind::Wait, Span::ps(latency / 3));
            row.spans.add(SpanKind::ALL[kind], Span::ps(latency - latency / 3));
            row
        },
    )
}

/// Returns the facts of a run of exactly `rows`, whose arrivals ended at `window_end`.
pub fn facts(rows: &[Row], window_end: Time) -> RunFacts {
    let stopped_at = rows.iter().map(|row| row.end).max().unwrap_or_default();
    RunFacts { offered: rows.len() as u64, window_end, stopped_at, ..RunFacts::default() }
}

pub fn summarizer(rows: &[Row], window_start: Time) -> Summarizer {
    let mut summarizer = Summarizer::new(RunIdentity::default(), window_start);
    rows.iter().for_each(|row| summarizer.row(row));
    summarizer
}

/// Returns the summary of a run of exactly `rows` without a warm-up.
pub fn summary(rows: &[Row], window_end: Time) -> Summary {
    summarizer(rows, Time::ZERO).finish(&facts(rows, window_end))
}

/// A dataset in memory, on a disk that holds `room` bytes.
#[derive(Debug)]
pub struct Memory {
    pub parts: Vec<Vec<u8>>,
    room: usize,
}

impl Memory {
    pub fn new() -> Memory {
        Memory::with_room(usize::MAX)
    }
    pub fn with_room(room: usize) -> Memory {
        Memory { parts: Vec::new(), room }
    }
    /// Returns the rows that a reader finds.
    pub fn rows(&self) -> Vec<Row> {
        let parts = self.parts.iter().cloned().map(bytes::Bytes::from);
        read_parts(parts.enumerate().map(|(part, bytes)| (part_name(part as u32), bytes))).unwrap()
    }
}

/// A part that is being written, and its remaining room.
pub struct Page {
    bytes: Vec<u8>,
    room: usize,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Parts for Memory {
    type File = Page;
    fn create(&mut self, part: u32) -> io::Result<Page> {
        assert_eq!(part as usize, self.parts.len(), "parts are numbered without gaps");
        Ok(Page { bytes: Vec::new(), room: self.room })
    }
    fn commit(&mut self, _: u32, file: Page) -> io::Result<()> {
        self.room -= file.bytes.len();
        self.parts.push(file.bytes);
        Ok(())
    }
    fn place(&self, part: u32) -> String {
        format!("memory/{}", part_name(part))
    }
}

pub fn provenance() -> Provenance {
    Provenance { version: "1.2.3".into(), plan_hash: "0123abcd".into() }
}

/// Writes a complete dataset of `rows`.
pub fn dataset(rows: &[Row], rows_per_part: usize) -> Memory {
    let mut writer = ParquetWriter::new(Memory::new(), &provenance()).with_rows_per_part(rows_per_part);
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap();
    writer.into_parts()
}

/// A page of docs/reference must be what the declarations give; `BLESS=1` writes it.
pub fn agrees_with_reference(name: &str, page: &str, test: &str) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&place, page).expect("a page can be written");
    }
    let there = fs::read_to_string(&place).unwrap_or_default();
    let stale = page.lines().find(|line| !there.lines().any(|other| other == *line));
    assert!(
        there == page,
        "docs/reference/{name} is stale, as in {stale:?}: BLESS=1 cargo test -p record --test record {test}"
    );
}
