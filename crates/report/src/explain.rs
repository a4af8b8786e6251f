//! Where the time of slow requests goes, against requests near the median, and what they have in
//! common.
//!
//! # Definitions
//! Requests count if they are intended after the warm-up and finished. A request is *slow* if its
//! latency is at least the 99th percentile of all, and *usual* if it lies from the 40th to the 60th
//! percentile of its operation. The *extra* time of a span is its mean over slow requests minus its
//! mean over usual ones, the usual ones of each operation weighted by its slow ones.
//!
//! A request's own extra time is its latency minus the 60th percentile of its operation. A trait is
//! *common* if requests that have it have at least half of the slow requests' extra time, and this
//! share exceeds their share of all requests by 0.2 or more. A target or receiver that all requests
//! of several sources have is common too. A request waits *across* a fault if it ends after it, and
//! was intended before it or no later after it than its own latency.

mod behind;
mod cause;
mod picture;
mod show;

pub use behind::{Behind, Holder, behind};
pub use cause::Cause;
pub use picture::picture;
pub use show::{json, text};

use crate::compare::Rows;
use base::{Operation, Span};
use record::{Outcome, Row, SpanKind};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What is known of a run beside its rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// The first fault of the plan, in nanoseconds.
    pub first_fault_ns: Option<f64>,
}

/// Time in one kind of span, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpanTime {
    /// The kind.
    pub span: &'static str,
    /// Mean over usual requests.
    pub usual_ns: f64,
    /// Mean over slow requests.
    pub slow_ns: f64,
    /// `slow_ns - usual_ns` as a share of the difference of latency.
    pub extra_share: f64,
}

/// A trait that slow requests have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Common {
    /// What kind of trait it is.
    pub of: Trait,
    /// The node's number, the address, or the place of the operation.
    pub value: u64,
    /// Its share of the extra time of slow requests.
    pub slow_share: f64,
    /// Its share of all requests that count.
    pub all_share: f64,
}

/// Kinds of traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// The node that asks.
    Source,
    /// The node of the memory or storage.
    Target,
    /// The node that receives the data: the target of a write, else the source.
    Receiver,
    /// The first byte at the target; a key of a store.
    Address,
    /// The operation.
    Operation,
    /// Waiting across the first fault; the value is 1.
    Fault,
}

/// One of the slowest requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// Its number.
    pub request: u64,
    /// The operation.
    pub operation: &'static str,
    /// The node that asked.
    pub source: u32,
    /// The node of the memory or storage.
    pub target: u32,
    /// The intended start, in nanoseconds of virtual time.
    pub intended_ns: f64,
    /// The latency.
    pub latency_ns: f64,
    /// Whether it waited across the first fault.
    pub across_fault: bool,
    /// The longest spans with their time, longest first.
    pub spans: Vec<(&'static str, f64)>,
}

/// The answer for one run and seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Requests that count.
    pub requests: u64,
    /// Slow ones among them.
    pub slow: u64,
    /// Measured requests that did not finish.
    pub unfinished: u64,
    /// The median, in nanoseconds.
    pub median_ns: f64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: f64,
    /// Mean latency of slow requests minus that of usual ones.
    pub extra_ns: f64,
    /// Time by span, the most extra time first; without those that take none.
    pub spans: Vec<SpanTime>,
    /// What slow requests have in common.
    pub common: Vec<Common>,
    /// The shortest time in which half of the slow requests were intended: begin and end in
    /// nanoseconds, and its share of the time of all requests.
    pub half_within: Option<(f64, f64, f64)>,
    /// The cause that these add up to.
    pub cause: Cause,
    /// The slowest requests, slowest first.
    pub worst: Vec<Worst>,
    /// What they waited for longest, and who held it, as far as spans were kept.
    pub behind: Vec<Behind>,
}

/// Explains a run; `None` if no request counts. Rows are read twice, and a third time if slow
/// requests share an address; 8 bytes are kept for each request that counts.
pub fn explain<E>(rows: &Rows<'_, E>, facts: Facts, worst: usize) -> Result<Option<Explanation>, E> {
    let (mut latencies, mut unfinished) = (BTreeMap::<Operation, Vec<u64>>::new(), 0_u64);
    rows(&mut |rows| {
        for row in rows.iter().filter(|row| row.measured) {
            match row.outcome {
                Outcome::Finished => latencies.entry(row.operation).or_default().push(row.latency().as_ps()),
                _ => unfinished += 1,
            }
        }
    })?;
    let requests = latencies.values().map(|values| values.len() as u64).sum();
    let Some(limits) = Limits::of(latencies) else { return Ok(None) };
    let mut sets = Sets { limits, fault_ps: facts.first_fault_ns.map(|ns| (ns * 1e3) as u64), ..Sets::default() };
    rows(&mut |rows| rows.iter().filter(|row| row.counts()).for_each(|row| sets.add(row, worst)))?;
    let mut common = sets.common(requests);
    if let Some(mut address) = sets.slow_address() {
        let mut all = 0_u64;
        rows(&mut |rows| {
            all += rows.iter().filter(|row| row.counts() && row.address == address.value).count() as u64;
        })?;
        address.all_share = all as f64 / requests as f64;
        common.extend(is_common(&address).then_some(address));
    }
    Ok(Some(sets.explanation(requests, unfinished, common)))
}

/// Latencies in picoseconds that divide the requests.
#[derive(Clone, Debug, Default)]
struct Limits {
    usual: BTreeMap<Operation, (u64, u64)>,
    median: u64,
    slow: u64,
}

impl Limits {
    fn of(mut latencies: BTreeMap<Operation, Vec<u64>>) -> Option<Limits> {
        let usual =
            latencies.iter_mut().map(|(operation, values)| (*operation, (quantile(values, 40), quantile(values, 60))));
        let usual = usual.collect();
        let mut all: Vec<u64> = latencies.into_values().reduce(|all, more| [all, more].concat())?;
        Some(Limits { usual, median: quantile(&mut all, 50), slow: quantile(&mut all, 99) })
    }
}

/// The smallest of at least one value such that so many in a hundred are not greater.
fn quantile(values: &mut [u64], percent: usize) -> u64 {
    let rank = (values.len() * percent).div_ceil(100).clamp(1, values.len());
    *values.select_nth_unstable(rank - 1).1
}

/// Sums over one set of requests.
#[derive(Clone, Debug, Default)]
struct Sums {
    count: u64,
    latency: u128,
    spans: [u128; SpanKind::ALL.len()],
}

impl Sums {
    fn add(&mut self, row: &Row) {
        self.count += 1;
        self.latency += u128::from(row.latency().as_ps());
        for (sum, (_, span)) in self.spans.iter_mut().zip(row.spans.iter()) {
            *sum += u128::from(span.as_ps());
        }
    }

    fn mean_ns(&self, sum: fn(&Sums, usize) -> u128, place: usize) -> f64 {
        sum(self, place) as f64 / self.count.max(1) as f64 / 1e3
    }
}

/// What is gathered of the slow and the usual requests.
#[derive(Debug, Default)]
struct Sets {
    limits: Limits,
    fault_ps: Option<u64>,
    slow: BTreeMap<Operation, Sums>,
    slow_count: u64,
    usual: BTreeMap<Operation, Sums>,
    /// By trait: how many of all requests have it, and the extra time of the slow ones.
    traits: BTreeMap<(Trait, u64), (u64, u128)>,
    /// Extra time of slow requests by address.
    addresses: BTreeMap<u64, u128>,
    /// Extra time of all slow requests.
    extra: u128,
    /// When slow requests were intended.
    slow_at: Vec<u64>,
    /// When the first and the last request was intended.
    lasted: Option<(u64, u64)>,
    worst: BTreeMap<(Reverse<u64>, u64), Row>,
}

impl Sets {
    fn add(&mut self, row: &Row, worst: usize) {
        let (latency, intended) = (row.latency().as_ps(), row.intended.as_ps());
        let is_slow = latency >= self.limits.slow;
        let usual = self.limits.usual.get(&row.operation).copied().unwrap_or_default();
        let extra = if is_slow { u128::from(latency.saturating_sub(usual.1)) } else { 0 };
        let fault = self.is_across(row).then_some((Trait::Fault, 1));
        for (of, value) in traits_of(row).into_iter().chain(fault) {
            let counts = self.traits.entry((of, value)).or_default();
            *counts = (counts.0 + 1, counts.1 + extra);
        }
        let (first, last) = self.lasted.unwrap_or((intended, intended));
        self.lasted = Some((first.min(intended), last.max(intended)));
        if (usual.0..=usual.1).contains(&latency) {
            self.usual.entry(row.operation).or_default().add(row);
        }
        if !is_slow {
            return;
        }
        self.slow.entry(row.operation).or_default().add(row);
        self.slow_count += 1;
        self.slow_at.push(intended);
        *self.addresses.entry(row.address).or_default() += extra;
        self.extra += extra;
        self.worst.insert((Reverse(latency), row.request.0), *row);
        if self.worst.len() > worst {
            self.worst.pop_last();
        }
    }

    /// Whether a request waited across the first fault.
    fn is_across(&self, row: &Row) -> bool {
        let until = |fault: u64| fault.saturating_add(row.latency().as_ps());
        self.fault_ps.is_some_and(|fault| row.end.as_ps() >= fault && row.intended.as_ps() <= until(fault))
    }

    /// Traits with few values that are common among slow requests.
    fn common(&self, requests: u64) -> Vec<Common> {
        let commons = self.traits.iter().map(|((of, value), (all, extra))| Common {
            of: *of,
            value: *value,
            slow_share: self.share_of(*extra),
            all_share: *all as f64 / requests as f64,
        });
        let sources = self.traits.keys().filter(|(of, _)| *of == Trait::Source).count();
        let is_only = |common: &Common| {
            matches!(common.of, Trait::Target | Trait::Receiver) && common.all_share == 1.0 && sources > 1
        };
        let mut common: Vec<Common> = commons.filter(|common| is_common(common) || is_only(common)).collect();
        common.sort_by(|one, other| other.slow_share.total_cmp(&one.slow_share));
        common
    }

    /// The share of the extra time.
    fn share_of(&self, extra: u128) -> f64 {
        if self.extra == 0 { 0.0 } else { extra as f64 / self.extra as f64 }
    }

    /// The address with the most extra time, if it has half of it or more.
    fn slow_address(&self) -> Option<Common> {
        let (address, extra) = self.addresses.iter().max_by_key(|(address, extra)| (**extra, Reverse(**address)))?;
        let slow_share = self.share_of(*extra);
        let address = Common { of: Trait::Address, value: *address, slow_share, all_share: 0.0 };
        (slow_share >= SHARE_MIN && self.addresses.len() > 1).then_some(address)
    }

    fn explanation(mut self, requests: u64, unfinished: u64, common: Vec<Common>) -> Explanation {
        let (usual_ns, slow_ns) = self.means(|sums, _| sums.latency, 0);
        let extra_ns = slow_ns - usual_ns;
        let spans = self.span_times(extra_ns);
        let half_within = self.half_within();
        let cause = cause::cause(&spans, &common);
        Explanation {
            requests,
            slow: self.slow_count,
            unfinished,
            median_ns: self.limits.median as f64 / 1e3,
            p99_ns: self.limits.slow as f64 / 1e3,
            extra_ns,
            spans,
            common,
            half_within,
            cause,
            worst: self.worst.values().map(|row| worst_of(row, self.is_across(row))).collect(),
            behind: Vec::new(),
        }
    }

    /// Means over usual and over slow requests, weighted by the slow requests of each operation.
    fn means(&self, sum: fn(&Sums, usize) -> u128, place: usize) -> (f64, f64) {
        let mean = |set: &BTreeMap<Operation, Sums>| {
            let weighted = self.slow.iter().map(|(operation, slow)| {
                let mean = set.get(operation).map_or(0.0, |sums| sums.mean_ns(sum, place));
                mean * slow.count as f64
            });
            weighted.sum::<f64>() / self.slow_count.max(1) as f64
        };
        (mean(&self.usual), mean(&self.slow))
    }

    fn span_times(&self, extra_ns: f64) -> Vec<SpanTime> {
        let time = |(place, kind): (usize, SpanKind)| {
            let (usual_ns, slow_ns) = self.means(|sums, place| sums.spans[place], place);
            let extra_share = if extra_ns > 0.0 { (slow_ns - usual_ns) / extra_ns } else { 0.0 };
            SpanTime { span: kind.name(), usual_ns, slow_ns, extra_share }
        };
        let mut spans: Vec<SpanTime> = SpanKind::ALL.into_iter().enumerate().map(time).collect();
        spans.retain(|span| span.usual_ns > 0.0 || span.slow_ns > 0.0);
        spans.sort_by(|one, other| other.extra_share.total_cmp(&one.extra_share));
        spans
    }

    fn half_within(&mut self) -> Option<(f64, f64, f64)> {
        let (first, last) = self.lasted?;
        self.slow_at.sort_unstable();
        let half = self.slow_at.len().div_ceil(2);
        let windows = self.slow_at.windows(half).map(|window| (window[half - 1] - window[0], window[0]));
        let (length, begin) = windows.min()?;
        let share = length as f64 / (last - first).max(1) as f64;
        Some((begin as f64 / 1e3, (begin + length) as f64 / 1e3, share))
    }
}

/// The least share of the extra time that makes a trait common.
const SHARE_MIN: f64 = 0.5;
/// By so much it must exceed the trait's share of all requests.
const EXCESS_MIN: f64 = 0.2;

fn is_common(common: &Common) -> bool {
    common.slow_share >= SHARE_MIN && common.slow_share - common.all_share >= EXCESS_MIN
}

fn traits_of(row: &Row) -> [(Trait, u64); 4] {
    let (source, target) = (u64::from(row.source.0), u64::from(row.target.0));
    let receiver = if row.operation == Operation::Write { target } else { source };
    [
        (Trait::Source, source),
        (Trait::Target, target),
        (Trait::Receiver, receiver),
        (Trait::Operation, row.operation as u64),
    ]
}

fn worst_of(row: &Row, across_fault: bool) -> Worst {
    let mut spans: Vec<(SpanKind, Span)> = row.spans.iter().filter(|(_, span)| *span > Span::ZERO).collect();
    spans.sort_by_key(|(_, span)| Reverse(*span));
    Worst {
        request: row.request.0,
        operation: row.operation.name(),
        source: row.source.0,
        target: row.target.0,
        intended_ns: row.intended.as_ps() as f64 / 1e3,
        latency_ns: row.latency().as_ps() as f64 / 1e3,
        across_fault,
        spans: spans.into_iter().take(3).map(|(kind, span)| (kind.name(), span.as_ps() as f64 / 1e3)).collect(),
    }
}
