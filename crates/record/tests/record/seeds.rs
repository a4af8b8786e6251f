//! Tests of merging several seeds into one summary.

use crate::support::{read, summarizer, summary};
use base::{Span, Time};
use hdrhistogram::Histogram;
use record::metric::{self, Meter};
use record::{MergeError, Pool, Row, Summary};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Builds the rows of two requests of this latency.
fn rows(latency: Span) -> [Row; 2] {
    [0, 1].map(|request| read(request, Time::ZERO, latency, Span::ns(100)))
}

/// Builds a run of one seed with two requests of this latency.
fn run(seed: u64, latency: Span) -> Summary {
    let mut run = summary(&rows(latency), Time::us(1));
    run.seeds = vec![seed];
    run.warnings.clear();
    run
}

/// The requests of runs with these latencies.
fn pool(latencies: &[Span]) -> Pool {
    let mut pool = Pool::default();
    latencies.iter().for_each(|latency| pool.add(&summarizer(&rows(*latency), Time::ZERO).pool()));
    pool
}

#[test]
fn counts_add_up_means_average_and_the_interval_is_students() {
    let latencies = [100, 200, 300].map(Span::ns);
    let runs = [run(1, latencies[0]), run(2, latencies[1]), run(5, latencies[2])];
    let merged = Summary::over_seeds(&runs, &pool(&latencies)).unwrap();
    assert_eq!(merged.seeds, [1, 2, 5]);
    assert_eq!((merged.counts.offered, merged.counts.measured), (6, 6));
    let latency = merged.latency_ns["read"];
    assert_eq!((latency.count, latency.mean, latency.min, latency.max), (6, 200.0, 100.0, 300.0));
    // The standard deviation of 100, 200, 300 is 100; t(0.975, 2) = 4.303.
    assert_eq!(latency.mean_ci95, Some(4.303 * (10_000.0f64 / 3.0).sqrt()));
    assert_eq!(latency.p99_ci95, latency.mean_ci95);
    assert_eq!(merged.slowdown["all"].mean, 2.0);
    assert_eq!(merged.unloaded_ns["all"], 100.0);
    assert_eq!(merged.span_mean_ns["all"]["switch_queue"], 200.0);
    assert_eq!(merged.simulated_ns, 200.0);
}

#[test]
fn percentiles_over_seeds_are_those_of_all_requests_together() {
    // A tenth of all requests, all of one seed, is slow: the mean of the runs' p99 would be 190 ns.
    let latencies: Vec<Span> = (0..10).map(|seed| Span::ns(if seed == 9 { 1_000 } else { 100 })).collect();
    let runs: Vec<Summary> = (1..).zip(&latencies).map(|(seed, latency)| run(seed, *latency)).collect();
    let merged = Summary::over_seeds(&runs, &pool(&latencies)).unwrap();
    for statistics in [merged.latency_ns["read"], merged.latency_ns["all"]] {
        assert_eq!((statistics.p50, statistics.p99), (100.031, 1_000.0));
        assert_eq!(statistics.lower_bound_from, None);
    }
    assert_eq!((merged.slowdown["all"].p50, merged.slowdown["all"].p99), (1.0, 10.0));
}

/// A run in which the frames of a stream took so many nanoseconds, with what its percentile is of.
fn run_with_frames(seed: u64, took_ns: &[u64]) -> (Summary, Pool) {
    let mut values = Histogram::new(3).unwrap();
    took_ns.iter().for_each(|took| values.record(took * 1_000).unwrap());
    let mut meter = Meter::new();
    let metric = metric::background_stream_latency_p99_ns.at(&[&"bulk"]);
    meter.percentile(metric, 0.99, &Arc::new(values), 1e3);
    let pool = pool(&[Span::ns(100)]).with_percentiles(&meter);
    (Summary { metrics: meter.finish().0, ..run(seed, Span::ns(100)) }, pool)
}

#[test]
fn metrics_that_are_percentiles_are_those_of_the_values_of_all_seeds() {
    // Of 1,001 frames one is slow, the only one of its seed: the mean of both would be 550 ns.
    let (many, mut all) = run_with_frames(1, &[100; 1_000]);
    let (one, its) = run_with_frames(2, &[1_000]);
    all.add(&its);
    let name = "background_bulk_latency_p99_ns";
    assert_eq!((many.metrics[name], one.metrics[name]), (100.031, 1_000.447));
    let merged = Summary::over_seeds(&[many.clone(), one], &all).unwrap();
    assert_eq!(merged.metrics[name], 100.031);
    let missing = Summary::over_seeds(&[many], &pool(&[Span::ns(100)])).unwrap_err();
    assert_eq!(missing, MergeError::NoValues { name: name.into() });
}

#[test]
fn a_pool_does_not_depend_on_the_order_of_its_runs() {
    let runs = [run(1, Span::ns(100)), run(2, Span::ns(700))];
    let orders = [[100, 700], [700, 100]].map(|order| pool(&order.map(Span::ns)));
    let [one, other] = orders.map(|pool| Summary::over_seeds(&runs, &pool).unwrap());
    assert_eq!(one, other);
}

#[test]
fn a_run_whose_requests_are_not_in_the_pool_is_refused() {
    let error = Summary::over_seeds(&[run(1, Span::ns(1))], &Pool::default()).unwrap_err();
    assert_eq!(error, MergeError::NotPooled { operation: "all".into() });
}

#[test]
fn a_single_seed_stays_as_it_is_without_an_interval() {
    let one = run(3, Span::ns(100));
    assert_eq!(Summary::over_seeds(std::slice::from_ref(&one), &pool(&[Span::ns(100)])), Ok(one));
}

#[test]
fn an_operation_or_a_metric_that_one_run_lacks_is_averaged_over_the_others() {
    let latencies = [100, 200, 300].map(Span::ns);
    let mut runs = [run(1, latencies[0]), run(2, latencies[1]), run(3, latencies[2])];
    runs[0].latency_ns.remove("read");
    runs[1].metrics = BTreeMap::from([("cache_hit_ratio".into(), 4.0)]);
    let merged = Summary::over_seeds(&runs, &pool(&latencies[1..])).unwrap();
    assert_eq!((merged.latency_ns["read"].count, merged.latency_ns["read"].mean), (4, 250.0));
    assert_eq!(merged.metrics["cache_hit_ratio"], 4.0);
}

#[test]
fn a_warning_is_told_once_and_with_its_seeds_unless_all_have_it() {
    let mut runs = [run(1, Span::ns(1)), run(2, Span::ns(1)), run(3, Span::ns(1))];
    runs[0].warnings = vec!["everywhere".into()];
    runs[1].warnings = vec!["here".into(), "everywhere".into(), "twice".into()];
    runs[2].warnings = vec!["everywhere".into(), "twice".into()];
    runs[2].partial = true;
    let merged = Summary::over_seeds(&runs, &pool(&[Span::ns(1); 3])).unwrap();
    assert_eq!(merged.warnings, ["everywhere", "seed 2: here", "seeds 2, 3: twice"]);
    assert!(merged.partial);
}

#[test]
fn runs_of_other_plans_or_out_of_order_are_refused() {
    let (one, two) = (run(1, Span::ns(1)), run(2, Span::ns(1)));
    let of_both = pool(&[Span::ns(1); 2]);
    assert_eq!(Summary::over_seeds(&[], &of_both), Err(MergeError::Empty));
    let order = |previous, seed| Err(MergeError::Order { previous, seed });
    assert_eq!(Summary::over_seeds(&[two.clone(), one.clone()], &of_both), order(2, 1));
    assert_eq!(Summary::over_seeds(&[one.clone(), one.clone()], &of_both), order(1, 1));

    let other = Summary { plan_hash: "beef".into(), ..two.clone() };
    let error = Summary::over_seeds(&[one.clone(), other], &of_both).unwrap_err();
    assert_eq!(error.to_string(), "the runs of seeds 1 and 2 differ in the plan:  and beef");

    let merged = Summary::over_seeds(&[one, two], &of_both).unwrap();
    assert_eq!(Summary::over_seeds(&[merged], &of_both), Err(MergeError::NotSingle { seeds: vec![1, 2] }));
}
