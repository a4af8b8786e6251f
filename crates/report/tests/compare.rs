//! Two runs with a known difference.

use base::{Bytes, NodeId, Operation, RequestId, Span, Time};
use record::{Outcome, Row, SpanKind, Spans, Summary};
use report::compare::{Change, Comparison, Group, PairError, Pairing, Rows, SeedPair, pair};
use std::convert::Infallible;

/// Latencies of 1 us to 1 ms in steps, read and written by turns; `slower` more for each write.
fn run(requests: u64, slower: Span) -> Vec<Row> {
    let row = |number: u64| {
        let operation = if number.is_multiple_of(2) { Operation::Read } else { Operation::Write };
        let more = if operation == Operation::Write { slower } else { Span::ZERO };
        let mut spans = Spans::default();
        spans.add(SpanKind::Network, Span::us(1 + number * 7 % 1_000));
        spans.add(SpanKind::Flash, more);
        let intended = Time::us(number * 3);
        Row {
            request: RequestId(number),
            operation,
            source: NodeId(1),
            target: NodeId(2),
            address: number * 4_096,
            bytes: Bytes::new(4_096),
            outcome: Outcome::Finished,
            intended,
            start: intended,
            end: intended + spans.total(),
            unloaded: Span::ZERO,
            measured: number >= 100,
            spans,
        }
    };
    (0..requests).map(row).collect()
}

fn paired(first: &[Row], second: &[Row], pairing: Pairing) -> Result<SeedPair, PairError<Infallible>> {
    // In parts, and the second run in another order.
    let own = |each: &mut dyn FnMut(&[Row])| {
        first.chunks(7).for_each(each);
        Ok(())
    };
    let others = |each: &mut dyn FnMut(&[Row])| {
        second.rchunks(11).for_each(each);
        Ok(())
    };
    let rows: [&Rows<'_, Infallible>; 2] = [&own, &others];
    let summary = Summary::default();
    pair(1, [&summary, &summary], rows, pairing)
}

fn compared(first: &[Row], second: &[Row], pairing: Pairing) -> Comparison {
    Comparison::of("a", "b", &[paired(first, second, pairing).unwrap()], pairing)
}

#[test]
fn a_known_shift_is_found_where_it_is_and_nowhere_else() {
    let comparison = compared(&run(10_100, Span::ZERO), &run(10_100, Span::us(5)), Pairing::ByRequest);
    let difference = |group, of, statistic| comparison.get(group, of, statistic).unwrap().difference;
    assert_eq!(comparison.requests, 10_000);
    for statistic in ["mean", "p50", "p99", "p999"] {
        assert_eq!(difference(Group::Latency, "write", statistic), 5_000.0, "{statistic}");
        assert_eq!(comparison.get(Group::Latency, "read", statistic).unwrap().change, Change::Equal);
    }
    assert_eq!(difference(Group::Latency, "all", "mean"), 2_500.0);
    assert_eq!(difference(Group::Span, "flash", "mean"), 2_500.0);
    assert_eq!(difference(Group::Span, "network", "mean"), 0.0);
    assert_eq!(comparison.get(Group::Span, "memory", "mean"), None, "a span that no request has");
}

#[test]
fn a_quantile_is_the_least_value_that_has_enough_below() {
    // One read of each of 1 to 1,000 us.
    let mut rows = run(1_100, Span::ZERO);
    rows.iter_mut().for_each(|row| row.operation = Operation::Read);
    let comparison = compared(&rows, &rows, Pairing::ByRequest);
    let value = |statistic| comparison.get(Group::Latency, "read", statistic).unwrap().first;
    assert_eq!((value("p50"), value("p99"), value("p999")), (500_000.0, 990_000.0, 999_000.0));
    assert_eq!(value("mean"), 500_500.0);
    assert_eq!(comparison.get(Group::Latency, "all", "mean"), None, "one operation is all there is");
}

#[test]
fn requests_that_one_run_did_not_finish_are_left_out_of_both_and_named() {
    let (first, mut second) = (run(10_100, Span::ZERO), run(10_100, Span::ZERO));
    // The slowest of each thousand.
    for row in second.iter_mut().filter(|row| row.spans.total() == Span::ms(1)) {
        row.outcome = Outcome::Lost;
    }
    let comparison = compared(&first, &second, Pairing::ByRequest);
    assert_eq!(comparison.requests, 9_990);
    assert_eq!(comparison.warnings, ["10 measured requests finished in the first run alone; latency leaves them out"]);
    assert!(comparison.differences.iter().all(|difference| difference.change == Change::Equal));
    let sum = |comparison: &Comparison| -> f64 {
        let spans = comparison.differences.iter().filter(|difference| difference.name.group == Group::Span);
        spans.map(|difference| difference.first).sum()
    };
    let mean = comparison.get(Group::Latency, "all", "mean").unwrap().first;
    assert!((sum(&comparison) - mean).abs() < 1e-6, "spans sum to the latency of the same requests");
    let back = compared(&second, &first, Pairing::ByRequest);
    assert_eq!(back.warnings, ["10 measured requests finished in the second run alone; latency leaves them out"]);
    let apart = compared(&first, &second, Pairing::Apart);
    assert!(apart.get(Group::Latency, "all", "mean").unwrap().difference < 0.0, "each has its own requests");
    // A run that was cut has no rows for the rest.
    let cut = compared(&first, &first[..5_100], Pairing::ByRequest);
    assert_eq!((cut.requests, cut.warnings.len()), (5_000, 1));
}

#[test]
fn runs_of_other_arrivals_are_not_paired() {
    let first = run(200, Span::ZERO);
    let changes: [fn(&mut Row); 6] = [
        |row| (row.intended, row.end) = (row.intended + Span::ps(1), row.end + Span::ps(1)),
        |row| row.source = NodeId(3),
        |row| row.target = NodeId(3),
        |row| row.bytes = Bytes::new(4_097),
        |row| row.address += 1,
        |row| row.operation = Operation::ReadModifyWrite,
    ];
    for change in changes {
        let mut second = first.clone();
        change(&mut second[17]);
        let error = paired(&first, &second, Pairing::ByRequest).unwrap_err().to_string();
        assert!(error.starts_with("the arrivals differ: seed 1, request 17 is a write of 4096 B"), "{error}");
        paired(&first, &second, Pairing::Apart).unwrap();
    }
    let more = paired(&first, &run(201, Span::ZERO), Pairing::ByRequest).unwrap_err().to_string();
    assert!(more.contains("request 200 is not there in the first run"), "{more}");
}

#[test]
fn a_damaged_number_takes_no_memory() {
    let mut rows = run(3, Span::ZERO);
    rows[1].request = RequestId(u64::MAX);
    assert_eq!(paired(&rows, &rows, Pairing::ByRequest), Err(PairError::Number(u64::MAX)));
}

#[test]
fn seeds_decide_whether_a_difference_is_one() {
    let pairs = |by: [i64; 4]| -> Vec<SeedPair> {
        let base = run(300, Span::us(100));
        let of = |(seed, by): (u64, i64)| {
            let pair = paired(&base, &run(300, Span::us((100 + by) as u64)), Pairing::ByRequest).unwrap();
            SeedPair { seed, ..pair }
        };
        (1..).zip(by).map(of).collect()
    };
    let change = |by| {
        let comparison = Comparison::of("a", "b", &pairs(by), Pairing::ByRequest);
        comparison.get(Group::Latency, "write", "mean").unwrap().change
    };
    assert_eq!(change([5, 6, 5, 7]), Change::Higher);
    assert_eq!(change([-5, -6, -5, -7]), Change::Lower);
    assert_eq!(change([5, -6, 5, -7]), Change::None);
    assert_eq!(change([0, 0, 0, 0]), Change::Equal);
    let one = Comparison::of("a", "b", &pairs([5; 4])[..1], Pairing::ByRequest);
    assert_eq!(one.get(Group::Latency, "write", "mean").unwrap().change, Change::OneSeed);
}
