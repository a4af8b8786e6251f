//! Tests that standard tools can read the histograms.

use crate::support::{read, summarizer};
use base::{Operation, Span, Time};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use record::Row;
use std::io::Cursor;
use std::time::Duration;

/// Parses the log's only interval: its histogram, start and length.
fn parse(log: &[u8]) -> (Histogram<u64>, Duration, Duration) {
    let entries: Vec<LogEntry> = IntervalLogIterator::new(log).map(|entry| entry.unwrap()).collect();
    let [LogEntry::Interval(interval)] = &entries[..] else { panic!("one interval: {entries:?}") };
    assert!(interval.tag().is_none(), "HistogramLogProcessor skips tagged intervals unless told otherwise");
    let payload = base64_decode(interval.encoded_histogram());
    let histogram = Deserializer::new().deserialize(&mut Cursor::new(payload)).unwrap();
    (histogram, interval.start_timestamp(), interval.duration())
}

/// Decodes RFC 4648, section 4.
fn base64_decode(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |letter: &u8| ALPHABET.iter().position(|known| known == letter).unwrap() as u32;
    let quads = text.trim_end_matches('=').as_bytes().chunks(4);
    quads
        .flat_map(|quad| {
            let bits = quad.iter().map(digit).fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - quad.len()));
            bits.to_be_bytes()[1..quad.len()].to_vec()
        })
        .collect()
}

fn rows() -> Vec<Row> {
    let row = |i: u64| read(i, Time::ms(1) + Span::us(i), Span::ns(200 + i * i), Span::ns(200));
    let mut rows: Vec<Row> = (0..1000).map(row).collect();
    rows[..300].iter_mut().for_each(|row| row.operation = Operation::Write);
    rows
}

#[test]
fn each_operation_and_all_have_a_log_with_all_their_latencies() {
    let rows = rows();
    let logs = summarizer(&rows, Time::ms(1)).histograms();
    assert_eq!(logs.keys().collect::<Vec<_>>(), ["all", "read", "write"]);
    for (name, operation) in [("all", None), ("read", Some(Operation::Read)), ("write", Some(Operation::Write))] {
        let mut expected = Histogram::<u64>::new(3).unwrap();
        let chosen = rows.iter().filter(|row| operation.is_none_or(|operation| operation == row.operation));
        chosen.for_each(|row| expected.record(row.latency().as_ps()).unwrap());
        let (histogram, start, _) = parse(&logs[name]);
        assert_eq!(histogram, expected);
        assert_eq!(start, Duration::from_millis(1));
    }
}

#[test]
fn a_log_is_the_same_text_for_the_same_rows_and_carries_no_moment() {
    let log = summarizer(&rows(), Time::ms(1)).histograms().remove("read").unwrap();
    assert_eq!(log, summarizer(&rows(), Time::ms(1)).histograms().remove("read").unwrap());
    let text = String::from_utf8(log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "#[Histogram log format version 1.3]");
    assert!(!text.contains("StartTime:") && !text.contains("BaseTime:"));
    // Java's reader accepts compressed payloads only; their cookie 0x1c849314 begins `HISTF` in
    // base64.
    let payload = lines.last().unwrap().rsplit(',').next().unwrap();
    assert!(payload.starts_with("HISTF"), "{payload}");
}
