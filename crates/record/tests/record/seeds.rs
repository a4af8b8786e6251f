//! Tests of merging several seeds into one summary.

use crate::support::{read, summary};
use base::{Span, Time};
use record::{MergeError, Summary};
use std::collections::BTreeMap;

/// Builds a run of one seed with two requests of this latency.
fn run(seed: u64, latency: Span) -> Summary {
    let rows = [read(0, Time::ZERO, latency, Span::ns(100)), read(1, Time::ZERO, latency, Span::ns(100))];
    let mut run = summary(&rows, Time::us(1));
    run.seeds = vec![seed];
    run.warnings.clear();
    run
}

#[test]
fn counts_add_up_means_average_and_the_interval_is_students() {
    let runs = [run(1, Span::ns(100)), run(2, Span::ns(200)), run(5, Span::ns(300))];
    let merged = Summary::over_seeds(&runs).unwrap();
    assert_eq!(merged.seeds, [1, 2, 5]);
    assert_eq!((merged.counts.offered, merged.counts.measured), (6, 6));
    let latency = merged.latency_ns["read"];
    assert_eq!((latency.count, latency.mean, latency.min, latency.p99, latency.max), (6, 200.0, 100.0, 200.0, 300.0));
    // The standard deviation of 100, 200, 300 is 100; t(0.975, 2) = 4.303.
    assert_eq!(latency.mean_ci95, Some(4.303 * (10_000.0f64 / 3.0).sqrt()));
    assert_eq!(latency.p99_ci95, latency.mean_ci95);
    assert_eq!(merged.slowdown["all"].mean, 2.0);
    assert_eq!(merged.unloaded_ns["all"], 100.0);
    assert_eq!(merged.span_mean_ns["all"]["switch_queue"], 200.0);
    assert_eq!(merged.simulated_ns, 200.0);
}

#[test]
fn a_single_seed_stays_as_it_is_without_an_interval() {
    let one = run(3, Span::ns(100));
    assert_eq!(Summary::over_seeds(std::slice::from_ref(&one)), Ok(one));
}

#[test]
fn an_operation_or_a_metric_that_one_run_lacks_is_averaged_over_the_others() {
    let mut runs = [run(1, Span::ns(100)), run(2, Span::ns(200)), run(3, Span::ns(300))];
    runs[0].latency_ns.remove("read");
    runs[1].metrics = BTreeMap::from([("cache_hit_ratio".into(), 4.0)]);
    let merged = Summary::over_seeds(&runs).unwrap();
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
    let merged = Summary::over_seeds(&runs).unwrap();
    assert_eq!(merged.warnings, ["everywhere", "seed 2: here", "seeds 2, 3: twice"]);
    assert!(merged.partial);
}

#[test]
fn runs_of_other_plans_or_out_of_order_are_refused() {
    let (one, two) = (run(1, Span::ns(1)), run(2, Span::ns(1)));
    assert_eq!(Summary::over_seeds(&[]), Err(MergeError::Empty));
    let order = |previous, seed| Err(MergeError::Order { previous, seed });
    assert_eq!(Summary::over_seeds(&[two.clone(), one.clone()]), order(2, 1));
    assert_eq!(Summary::over_seeds(&[one.clone(), one.clone()]), order(1, 1));

    let other = Summary { plan_hash: "beef".into(), ..two.clone() };
    let error = Summary::over_seeds(&[one.clone(), other]).unwrap_err();
    assert_eq!(error.to_string(), "the runs of seeds 1 and 2 differ in the plan:  and beef");

    let merged = Summary::over_seeds(&[one, two]).unwrap();
    assert_eq!(Summary::over_seeds(&[merged]), Err(MergeError::NotSingle { seeds: vec![1, 2] }));
}
