//! Warnings about a summary, with numbers.

use crate::ledger::Audit;
use crate::row::SpanKind;
use crate::steady::Steadiness;
use crate::summarize::{ALL_OPERATIONS, RunFacts};
use crate::summary::{Counts, Load, Summary};
use base::Span;

/// The share of its load that an open loop may accumulate without counting as saturated: even just
/// below saturation, the backlog of a finite run rises a little.
const SATURATION: f64 = 0.02;
/// With fewer requests, no request lies above p99.9.
const ENOUGH_FOR_P999: u64 = 1000;
/// The share of all latency that may be unattributed.
const UNATTRIBUTED_MAX: f64 = 0.001;

/// Returns the warnings that follow from a run's counts and loads. `window_ps` is the length of the
/// window of loads.
pub(crate) fn warnings(summary: &Summary, facts: &RunFacts, window_ps: u64, steadiness: Steadiness) -> Vec<String> {
    let mut warnings = Vec::new();
    warn_of_stall(&summary.counts, facts, &mut warnings);
    warn_of_missing(&summary.counts, facts.partial, &mut warnings);
    warn_of_saturation(&summary.load, facts, window_ps, &mut warnings);
    warn_of_transient(steadiness, facts, &mut warnings);
    warn_of_bounds(summary, &mut warnings);
    warn_of_few(summary, &mut warnings);
    warn_of_unknown_unloaded(summary, &mut warnings);
    warn_of_spans(summary, &facts.audit, &mut warnings);
    warnings
}

/// Warns of a load that was only partly offered.
fn warn_of_stall(counts: &Counts, facts: &RunFacts, warnings: &mut Vec<String>) {
    if facts.stalled {
        warnings.push(format!(
            "the run stalled at {}: the closed loop waits for {} requests that do not end, and offered only {}",
            facts.stopped_at,
            counts.in_flight_at_end + counts.unavailable,
            counts.offered
        ));
    }
}

/// Warns of requests without latency statistics.
fn warn_of_missing(counts: &Counts, partial: bool, warnings: &mut Vec<String>) {
    let Counts { offered, issued, not_issued, .. } = *counts;
    let mut warn = |number: u64, whole: u64, what: &str| {
        if number > 0 {
            warnings.push(format!("{number} of {whole} {what}"));
        }
    };
    let unfinished =
        "issued requests were unfinished at the end: means leave them out, percentiles count their age then";
    warn(counts.in_flight_at_end, issued, unfinished);
    warn(
        counts.unavailable,
        issued,
        "issued requests waited in vain for data that a fault made unavailable: percentiles count their age at the end",
    );
    warn(not_issued, offered, "offered requests were never issued; no latency statistic has them");
    warn(counts.timed_out, issued, "issued requests timed out without an answer; no latency statistic has them");
    warn(counts.rejected, issued, "issued requests were rejected; no latency statistic has them");
    warn(counts.lost, issued, "issued requests were lost; no latency statistic has them");
    if partial {
        warn(offered.saturating_sub(issued + not_issued), offered, "offered requests have no record");
        warnings.push(format!("the run was cut short after {issued} issued requests"));
    }
}

fn warn_of_saturation(load: &Load, facts: &RunFacts, window_ps: u64, warnings: &mut Vec<String>) {
    let Load { offered_gbps: offered, achieved_gbps: achieved, .. } = *load;
    if window_ps == 0 {
        warnings
            .push("all requests were intended at one time, or before the warm-up ended: loads are given as 0".into());
    } else if let Some(growth) = facts.backlog_growth.filter(|growth| *growth > SATURATION) {
        let achieved = match achieved {
            0.0 => "nothing ended while requests arrived: the run is shorter than a latency".to_owned(),
            _ => format!("{achieved:.3} Gb/s achieved"),
        };
        warnings.push(format!(
            "saturation: {:.1} % of the load stays behind ({offered:.3} Gb/s offered, {achieved}); latency then grows \
             with the length of the run",
            100.0 * growth
        ));
    }
}

/// Warns of latency that is not in steady state. A saturated run is not steady, and has its own
/// warning.
fn warn_of_transient(steadiness: Steadiness, facts: &RunFacts, warnings: &mut Vec<String>) {
    let saturates = facts.backlog_growth.is_some_and(|growth| growth > SATURATION);
    match steadiness {
        Steadiness::Steady => {}
        _ if saturates || facts.stalled => {}
        Steadiness::From { ps, shift } => warnings.push(format!(
            "latency is not steady over what was measured: what was intended before {} moves its mean by {:+.0} %; \
             `warm_up = \"{}\"` leaves that out (MSER)",
            rounded_up(ps),
            100.0 * shift,
            rounded_up(ps),
        )),
        Steadiness::Never => warnings.push(
            "latency has not become steady in the first half of what was measured (MSER): a longer run, or drives \
             that are prepared, would tell what a steady state is like"
                .into(),
        ),
    }
}

/// Rounds up to three digits.
fn rounded_up(ps: u64) -> Span {
    let unit = 10_u64.pow(ps.max(1).ilog10().saturating_sub(2));
    Span::ps(ps.div_ceil(unit) * unit)
}

/// Warns of percentiles that unfinished requests could raise.
fn warn_of_bounds(summary: &Summary, warnings: &mut Vec<String>) {
    let all = summary.latency_ns.get(ALL_OPERATIONS);
    match all.and_then(|all| all.lower_bound_from) {
        Some(from) if from < 1.0 => warnings.push(format!(
            "latency percentiles from p{} on are lower bounds: requests that did not end could raise them",
            100.0 * from
        )),
        _ => {}
    }
}

fn warn_of_few(summary: &Summary, warnings: &mut Vec<String>) {
    let few = |name: &str| summary.latency_ns.get(name).map(|all| all.count).filter(|count| *count < ENOUGH_FOR_P999);
    let warning = |name: &str, count| {
        format!("only {count} measured requests ({name}): p99.9 is unreliable with fewer than {ENOUGH_FOR_P999}")
    };
    if summary.counts.measured == 0 {
        warnings.push("no request was measured: there are no latency statistics".into());
    } else if let Some(count) = few(ALL_OPERATIONS) {
        warnings.push(warning(ALL_OPERATIONS, count));
    } else {
        warnings.extend(summary.latency_ns.keys().filter_map(|name| Some(warning(name, few(name)?))));
    }
}

fn warn_of_unknown_unloaded(summary: &Summary, warnings: &mut Vec<String>) {
    let measured = summary.counts.measured;
    let compared = summary.slowdown.get(ALL_OPERATIONS).map_or(0, |all| all.count);
    // A design without known unloaded latencies has no slowdown at all.
    if 0 < compared && compared < measured {
        let unknown = measured - compared;
        warnings.push(format!(
            "{unknown} of {measured} measured requests have no unloaded latency: slowdown leaves them out"
        ));
    }
}

/// Warns of time without a claim, or with two: a defect of the design's measurement. Latencies are
/// correct all the same, so the run is still useful.
fn warn_of_spans(summary: &Summary, audit: &Audit, warnings: &mut Vec<String>) {
    let unattributed = summary.span_mean_ns.get(ALL_OPERATIONS).and_then(|all| all.get(SpanKind::Unattributed.name()));
    let latency = summary.latency_ns.get(ALL_OPERATIONS).map_or(0.0, |all| all.mean);
    match unattributed {
        Some(unattributed) if *unattributed > UNATTRIBUTED_MAX * latency => warnings.push(format!(
            "spans: {:.2} % of the time of measured requests is unattributed, most of it before `{}`; latencies are not \
             affected",
            100.0 * unattributed / latency,
            audit.worst_gap()
        )),
        _ => {}
    }
    if audit.requests_twice > 0 {
        warnings.push(format!(
            "spans: {} of the time of {} requests was claimed twice, so that their spans are wrong; latencies are not \
             affected",
            audit.twice, audit.requests_twice
        ));
    }
}
