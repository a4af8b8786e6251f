//! Tests that the summary follows its formulae.

use crate::support::{facts, read, sound_row, summarizer, summary};
use base::{Bytes, Operation, Span, Time};
use proptest::prelude::*;
use record::summary_json;
use record::{Audit, Ledger, Outcome, Place, Row, RunFacts, RunIdentity, SpanKind, Statistics, Summarizer, Summary};

/// Returns the value of rank ⌈n × `per_mille` / 1000⌉ of the sorted values.
fn exact_percentile(values: &[f64], per_mille: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(values.len() * per_mille).div_ceil(1000) - 1]
}

fn close(got: f64, exact: f64, relative: f64, absolute: f64) -> bool {
    (got - exact).abs() <= exact.abs() * relative + absolute
}

/// Compares with a brute-force computation over all values, of ended and of open requests. Open
/// ones are in no mean; percentiles may differ by 0.1 % and `step`.
fn check(statistics: &Statistics, ended: &[f64], open: &[f64], step: f64) {
    assert_eq!(statistics.count as usize, ended.len());
    assert_eq!(statistics.lower_bound_from.is_some(), !open.is_empty());
    assert!(close(statistics.mean, ended.iter().sum::<f64>() / ended.len() as f64, 1e-9, 1e-9));
    let values = &[ended, open].concat();
    assert!(close(statistics.min, values.iter().copied().fold(f64::INFINITY, f64::min), 0.001, step));
    assert!(close(statistics.max, values.iter().copied().fold(0.0, f64::max), 0.001, step));
    let percentiles = [(500, statistics.p50), (900, statistics.p90), (990, statistics.p99), (999, statistics.p999)];
    for (per_mille, got) in percentiles {
        let exact = exact_percentile(values, per_mille);
        assert!(close(got, exact, 0.001, step), "p{per_mille}: {got} instead of {exact}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_statistic_is_that_of_a_brute_force(rows in prop::collection::vec(sound_row(), 1..2000)) {
        let summary = summary(&rows, Time::us(2));
        for (name, operation) in [("all", None), ("read", Some(Operation::Read)), ("write", Some(Operation::Write))] {
            let measured = |outcome: Outcome| -> Vec<&Row> {
                let is_of = |row: &&Row| operation.is_none_or(|operation| operation == row.operation);
                rows.iter().filter(|row| row.measured && row.outcome == outcome).filter(is_of).collect()
            };
            let counted = measured(Outcome::Finished);
            let open = [measured(Outcome::Unfinished), measured(Outcome::Unavailable)].concat();
            if counted.is_empty() {
                prop_assert!(!summary.latency_ns.contains_key(name));
                continue;
            }
            let latencies = |rows: &[&Row]| rows.iter().map(|row| row.latency().as_ns_f64()).collect::<Vec<_>>();
            check(&summary.latency_ns[name], &latencies(&counted), &latencies(&open), 0.001);
            let ratios = |rows: &[&Row]| rows.iter().map(|row| row.latency().ratio(row.unloaded)).collect::<Vec<_>>();
            check(&summary.slowdown[name], &ratios(&counted), &ratios(&open), 0.0005);
            let spans: f64 = summary.span_mean_ns[name].values().sum();
            prop_assert!(close(spans, summary.latency_ns[name].mean, 1e-9, 0.0), "mean spans add up too");
        }
    }

    #[test]
    fn the_order_of_rows_changes_nothing(
        (rows, shuffled) in prop::collection::vec(sound_row(), 1..3000)
            .prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))
    ) {
        prop_assert_eq!(summary(&rows, Time::us(2)), summary(&shuffled, Time::us(2)));
    }

    #[test]
    fn loads_count_what_was_intended_and_what_finished_within_the_window(
        rows in prop::collection::vec(sound_row(), 1..3000),
    ) {
        let (start, end) = (Time::ns(500), Time::us(2));
        let load = summarizer(&rows, start).finish(&facts(&rows, end)).load;
        let bits = |chosen: &dyn Fn(&Row) -> bool| -> f64 {
            rows.iter().filter(|row| chosen(row)).map(|row| row.bytes.bits() as f64).sum()
        };
        let within = |at: Time| start <= at && at <= end;
        let finished = |row: &Row| row.outcome == Outcome::Finished && within(row.end);
        // Bits in 1,500 ns are Gb/s.
        prop_assert!(close(load.offered_gbps, bits(&|row| within(row.intended)) / 1500.0, 1e-9, 0.0));
        prop_assert!(close(load.achieved_gbps, bits(&finished) / 1500.0, 1e-9, 0.0));
        let requests = rows.iter().filter(|row| finished(row)).count() as f64;
        prop_assert!(close(load.requests_per_second, requests / 1.5e-6, 1e-9, 0.0));
    }
}

#[test]
fn one_request_alone_is_every_statistic_exactly() {
    let summary = summary(&[read(0, Time::ZERO, Span::ps(299_123), Span::ps(299_123))], Time::us(1));
    let latency = Statistics {
        count: 1,
        mean: 299.123,
        min: 299.123,
        p50: 299.123,
        p90: 299.123,
        p99: 299.123,
        p999: 299.123,
        max: 299.123,
        ..Statistics::default()
    };
    assert_eq!(summary.latency_ns["read"], latency);
    assert_eq!(summary.slowdown["all"].p999, 1.0);
    assert_eq!(summary.unloaded_ns["read"], 299.123);
    assert_eq!(summary.span_mean_ns["all"]["switch_queue"], 299.123);
}

#[test]
fn the_longest_and_the_shortest_latency_are_taken_like_any_other() {
    let rows = [read(0, Time::ZERO, Span::MAX, Span::ps(1)), read(1, Time::ZERO, Span::ZERO, Span::MAX)];
    let summary = summary(&rows, Time::ps(1));
    assert_eq!(summary.latency_ns["all"].max, u64::MAX as f64 / 1e3);
    assert_eq!(summary.latency_ns["all"].min, 0.0);
    assert_eq!(summary.slowdown["all"].max, u64::MAX as f64);
}

#[test]
fn every_request_is_counted_and_only_measured_finished_ones_make_statistics() {
    let mut rows: Vec<Row> = (0..6).map(|i| read(i, Time::ns(i), Span::ns(100), Span::ns(100))).collect();
    rows[0].measured = false;
    (rows[1].outcome, rows[2].outcome, rows[3].outcome) = (Outcome::TimedOut, Outcome::Lost, Outcome::Unfinished);
    let facts = RunFacts { offered: 8, not_issued: 2, dropped_packets: 5, events: 77, ..facts(&rows, Time::ns(10)) };
    let summary = summarizer(&rows, Time::ZERO).finish(&facts);
    let counts = summary.counts;
    assert_eq!((counts.offered, counts.issued, counts.not_issued), (8, 6, 2));
    assert_eq!((counts.finished, counts.timed_out, counts.lost, counts.in_flight_at_end), (3, 1, 1, 1));
    assert_eq!((counts.measured, counts.dropped_packets, summary.events), (2, 5, 77));
    assert_eq!(summary.latency_ns["all"].count, 2);
}

#[test]
#[should_panic(expected = "request 41: its spans sum to 100 ps, but it was intended at 7 ps and ended at 106 ps")]
fn a_row_whose_spans_do_not_add_up_stops_the_run() {
    let mut row = read(41, Time::ps(7), Span::ps(100), Span::ps(100));
    row.end = Time::ps(106);
    summary(&[row], Time::ns(1));
}

#[test]
#[should_panic(expected = "3 requests were offered, but 1 have a row and 1 were never issued")]
fn a_request_that_vanished_stops_the_run() {
    let rows = [read(0, Time::ZERO, Span::ps(1), Span::ps(1))];
    summarizer(&rows, Time::ZERO).finish(&RunFacts { offered: 3, not_issued: 1, ..facts(&rows, Time::ns(1)) });
}

#[test]
#[should_panic(expected = "gets is NaN, which JSON cannot hold")]
fn a_number_that_json_cannot_hold_stops_the_run_by_name() {
    let metrics = [("gets".to_owned(), f64::NAN)].into();
    summarizer(&[], Time::ZERO).finish(&RunFacts { metrics, ..RunFacts::default() });
}

/// Builds `count` reads, one per nanosecond, 100 ns long.
fn steady(count: u64) -> Vec<Row> {
    (0..count).map(|i| read(i, Time::ns(i), Span::ns(100), Span::ns(100))).collect()
}

fn steady_warnings(rows: &[Row]) -> Vec<String> {
    summary(rows, Time::ns(rows.len() as u64)).warnings
}

#[test]
fn a_quiet_run_has_no_warning() {
    assert_eq!(steady_warnings(&steady(4_000)), [""; 0]);
}

#[test]
fn a_thousand_requests_are_enough_for_p999_and_one_less_is_not() {
    let few = |warnings: Vec<String>| warnings.into_iter().filter(|text| text.contains("p99.9")).collect::<Vec<_>>();
    assert_eq!(few(steady_warnings(&steady(1_000))), [""; 0]);
    let warning = "only 999 measured requests (all): p99.9 is unreliable with fewer than 1000";
    assert_eq!(few(steady_warnings(&steady(999))), [warning]);

    let mut rows = steady(4_000);
    rows[..100].iter_mut().for_each(|row| row.operation = Operation::Write);
    assert_eq!(
        few(steady_warnings(&rows)),
        ["only 100 measured requests (write): p99.9 is unreliable with fewer than 1000"]
    );
}

#[test]
fn saturation_is_told_of_a_backlog_that_grows_by_more_than_two_percent_of_the_load() {
    // Half of the requests finish after the end of arrivals, as in a short closed loop.
    let mut rows: Vec<Row> = (0..1_000).map(|i| read(i, Time::ZERO, Span::ns(1), Span::ns(1))).collect();
    for (i, row) in rows[..500].iter_mut().enumerate() {
        *row = read(i as u64, Time::ZERO, Span::us(9), Span::ns(1));
    }
    let warnings = |backlog_growth| {
        let facts = RunFacts { backlog_growth, ..facts(&rows, Time::us(1)) };
        summarizer(&rows, Time::ZERO).finish(&facts).warnings
    };
    assert_eq!(warnings(None), [""; 0]);
    assert_eq!(warnings(Some(0.02)), [""; 0]);
    assert_eq!(
        warnings(Some(0.021)),
        ["saturation: 2.1 % of the load stays behind (512.000 Gb/s offered, 256.000 Gb/s achieved); \
          latency then grows with the length of the run"]
    );
}

#[test]
fn saturation_before_the_first_end_says_that_the_run_is_too_short() {
    let rows: Vec<Row> = (0..1_000).map(|i| read(i, Time::ZERO, Span::us(9), Span::ns(1))).collect();
    let facts = RunFacts { backlog_growth: Some(0.9), ..facts(&rows, Time::us(1)) };
    assert_eq!(
        summarizer(&rows, Time::ZERO).finish(&facts).warnings[0],
        "saturation: 90.0 % of the load stays behind (512.000 Gb/s offered, nothing ended while requests arrived: the \
         run is shorter than a latency); latency then grows with the length of the run"
    );
}

#[test]
fn a_load_that_was_not_offered_whole_is_partial_and_says_why() {
    let mut rows = steady(4_000);
    rows[10].outcome = Outcome::Unfinished;
    let facts = RunFacts { stalled: true, ..facts(&rows, Time::us(4)) };
    let summary = summarizer(&rows, Time::ZERO).finish(&facts);
    assert!(summary.partial);
    let stalled = "the closed loop waits for 1 requests that do not end, and offered only 4000";
    assert!(summary.warnings[0].ends_with(stalled), "{:?}", summary.warnings);
}

#[test]
fn requests_that_are_in_no_statistic_are_told_with_their_number() {
    let mut rows = steady(4_000);
    (rows[10].outcome, rows[11].outcome) = (Outcome::Unfinished, Outcome::Unfinished);
    (rows[12].outcome, rows[13].outcome) = (Outcome::TimedOut, Outcome::Lost);
    rows[14].unloaded = Span::ZERO;
    let facts = RunFacts { offered: 4_003, not_issued: 3, ..facts(&rows, Time::us(4)) };
    assert_eq!(
        summarizer(&rows, Time::ZERO).finish(&facts).warnings,
        [
            "2 of 4000 issued requests were unfinished at the end: means leave them out, percentiles count their age then",
            "3 of 4003 offered requests were never issued; no latency statistic has them",
            "1 of 4000 issued requests timed out without an answer; no latency statistic has them",
            "1 of 4000 issued requests were lost; no latency statistic has them",
            "1 of 3996 measured requests have no unloaded latency: slowdown leaves them out",
        ]
    );
}

#[test]
fn requests_never_issued_are_part_of_the_offered_load() {
    let rows = steady(4_000);
    let not_issued_bytes_in_window = Bytes::new(64 * 1_000);
    let facts = RunFacts { offered: 5_000, not_issued: 1_000, not_issued_bytes_in_window, ..facts(&rows, Time::us(4)) };
    let load = summarizer(&rows, Time::ZERO).finish(&facts).load;
    assert_eq!(load.offered_gbps, 5_000.0 * 512.0 / 4_000.0);
}

#[test]
fn a_run_without_a_measured_request_says_so_and_divides_by_nothing() {
    let summary = summary(&[], Time::ZERO);
    assert!(summary.warnings.contains(&"no request was measured: there are no latency statistics".to_owned()));
    assert!(summary.latency_ns.is_empty() && summary.slowdown.is_empty() && summary.span_mean_ns.is_empty());
    assert_eq!(summary.load.achieved_gbps, 0.0);
}

#[test]
fn a_run_that_was_cut_short_says_what_it_lacks() {
    let rows = steady(4_000);
    let facts = RunFacts { offered: 4_010, partial: true, ..facts(&rows, Time::us(4)) };
    let summary = summarizer(&rows, Time::ZERO).finish(&facts);
    assert!(summary.partial);
    assert_eq!(
        summary.warnings,
        ["10 of 4010 offered requests have no record", "the run was cut short after 4000 issued requests"]
    );
}

#[test]
fn json_comes_back_as_the_same_summary_and_the_same_text() {
    let mut rows = steady(2_000);
    rows[7].spans.add(SpanKind::Memory, Span::ZERO);
    let summary = summary(&rows, Time::us(2));
    let text = summary_json(&summary);
    let back: Summary = serde_json::from_str(&text).unwrap();
    assert_eq!(back, summary);
    assert_eq!(summary_json(&back), text);
    assert!(text.starts_with("{\n  \"version\": \"\",\n") && text.ends_with("}\n"));
}

/// Summarizes 1,000 ended requests of 1 to 1,000 ns, and `open` requests of this `age` that have
/// not ended.
fn with_open(open: u64, age: Span) -> record::Summary {
    let ended = (1..=1_000).map(|i| read(i, Time::ZERO, Span::ns(i), Span::ns(1)));
    let unfinished = |i| record::Row { outcome: Outcome::Unfinished, ..read(2_000 + i, Time::ZERO, age, Span::ns(1)) };
    let rows: Vec<Row> = ended.chain((0..open).map(unfinished)).collect();
    summary(&rows, Time::us(1))
}

/// Requests that end late and requests that do not end give the same percentiles, or lower bounds.
#[test]
fn a_request_that_did_not_end_never_improves_a_percentile() {
    let whole = with_open(0, Span::ZERO).latency_ns["all"];
    assert!(close(whole.p50, 500.0, 0.001, 0.0) && whole.lower_bound_from.is_none());
    for open in [1, 5, 20, 200, 999] {
        for age in [1, 400, 700, 5_000] {
            let bound = with_open(open, Span::ns(age)).latency_ns["all"];
            // Later they end, after a second: no percentile may fall below the earlier one.
            let later = with_open(open, Span::secs(1)).latency_ns["all"];
            for (said, true_value) in [(bound.p50, later.p50), (bound.p99, later.p99), (bound.max, later.max)] {
                assert!(said <= true_value, "{open} open for {age} ns: {said} > {true_value}");
            }
            let is_exact = |from: f64| bound.lower_bound_from.is_none_or(|least| from < least);
            for (from, said, true_value) in [(0.5, bound.p50, later.p50), (0.99, bound.p99, later.p99)] {
                assert!(
                    !is_exact(from) || said == true_value,
                    "{open} open for {age} ns, {from}: {said}, {true_value}"
                );
            }
            assert!(bound.lower_bound_from.is_some(), "the largest is never known");
            assert_eq!(bound.count, 1_000);
        }
    }
}

#[test]
fn open_requests_of_a_hundredth_leave_the_median_and_make_the_99th_percentile_a_bound() {
    let few = with_open(20, Span::us(5));
    assert_eq!(few.latency_ns["all"].lower_bound_from, Some(0.99));
    assert!(close(few.latency_ns["all"].p50, 510.0, 0.001, 0.0), "the 510th of 1,020");
    let said = "latency percentiles from p99 on are lower bounds: requests that did not end could raise them";
    assert!(few.warnings.iter().any(|warning| warning == said), "{:?}", few.warnings);
    assert_eq!(few.slowdown["all"].lower_bound_from, Some(0.99));
}

#[test]
fn availability_counts_what_was_underway_at_the_fault_or_came_later() {
    // One request every 10 ns that takes 100 ns; a fault at 500 ns; requests intended from 600 to
    // 690 ns are lost.
    let mut rows: Vec<Row> = (0..100).map(|i| read(i, Time::ns(10 * i), Span::ns(100), Span::ns(100))).collect();
    rows[60..70].iter_mut().for_each(|row| row.outcome = Outcome::Lost);
    let broken = |rows: &[Row]| {
        let mut summarizer = Summarizer::new(RunIdentity::default(), Time::ZERO).with_first_fault(Time::ns(500));
        rows.iter().for_each(|row| summarizer.row(row));
        summarizer.finish(&facts(rows, Time::us(2)))
    };
    let availability = broken(&rows).availability.expect("there was a fault");
    // The first one underway at 500 ns was intended at 400 ns.
    assert_eq!((availability.requests, availability.unserved), (60, 10));
    assert_eq!((availability.first_fault_ns, availability.recovery_ns), (500.0, Some(190.0)));
    assert_eq!(availability.fraction, 1.0 - 10.0 / 60.0);
    // Nothing is served after 900 ns: there is no recovery.
    rows[90..].iter_mut().for_each(|row| row.outcome = Outcome::TimedOut);
    let lasting = broken(&rows);
    assert_eq!(lasting.availability.map(|it| (it.unserved, it.recovery_ns)), Some((20, None)));
    assert_eq!(summarizer(&rows, Time::ZERO).finish(&facts(&rows, Time::us(2))).availability, None);
}

/// Returns the span warnings of a run of 1,000 requests of 1 us, each with `gap` unattributed and
/// `twice` claimed twice.
fn warnings_of(gap: Span, twice: Span) -> Vec<String> {
    let (mut audit, mut rows) = (Audit::default(), Vec::new());
    for request in 0..1_000 {
        let begin = Time::us(request);
        let (flash, end) = (begin + gap, begin + Span::us(1));
        let mut ledger = Ledger::open(begin, false);
        ledger.claim(SpanKind::Flash, flash, end, Place::Drive(0));
        ledger.claim(SpanKind::Return, end - twice, end, Place::Link(0));
        let settled = ledger.settle(end);
        audit.add(&settled, true);
        rows.push(Row { spans: settled.spans, ..read(request, begin, Span::us(1), Span::us(1)) });
    }
    let facts = RunFacts { audit, ..facts(&rows, Time::us(1_000)) };
    let warnings = summarizer(&rows, Time::ZERO).finish(&facts).warnings;
    warnings.into_iter().filter(|warning| warning.starts_with("spans: ")).collect()
}

#[test]
fn more_than_a_thousandth_of_unattributed_time_and_any_time_claimed_twice_is_warned_of() {
    assert_eq!(warnings_of(Span::ns(1), Span::ZERO), Vec::<String>::new());
    let gap = "spans: 0.11 % of the time of measured requests is unattributed, most of it before `flash`; \
               latencies are not affected";
    assert_eq!(warnings_of(Span::ps(1_100), Span::ZERO), [gap]);
    let twice = "spans: 2ns of the time of 1000 requests was claimed twice, so that their spans are wrong; \
                 latencies are not affected";
    assert_eq!(warnings_of(Span::ZERO, Span::ps(2)), [twice]);
}
