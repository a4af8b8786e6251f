//! One seed of two runs: requests paired by their number.

use super::{Group, Name};
use base::{Operation, mix};
use record::{ALL_OPERATIONS, Row, SpanKind, Summary, metric};
use std::collections::BTreeMap;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Requests by their number: both runs must have the same arrivals.
    ByRequest,
    /// Each run's own requests.
    Apart,
}

/// The values of one seed in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedPair {
    /// The seed.
    pub seed: u64,
    /// Requests in the statistics of latency; of the first run if not paired.
    pub requests: u64,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// By name: the unit, and the values in the first and the second run.
    pub values: BTreeMap<Name, (String, [f64; 2])>,
}

/// Runs whose requests cannot be paired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the arrivals differ: seed {seed}, request {request} is {first} in the first run and {second} in the second")]
pub struct ArrivalsDiffer {
    /// The seed.
    pub seed: u64,
    /// The first request in the records that differs.
    pub request: u64,
    /// What it is in the first run.
    pub first: String,
    /// What it is in the second run.
    pub second: String,
}

/// An error of pairing: in the runs, or in reading their rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError<E: std::error::Error + 'static> {
    /// The requests cannot be paired.
    #[error(transparent)]
    Arrivals(ArrivalsDiffer),
    /// A request number that no run of this size has.
    #[error("request {0} has a number that no run of this size gives")]
    Number(u64),
    /// The rows cannot be read.
    #[error(transparent)]
    Rows(#[from] E),
}

/// Passes all rows of one seed of a run, in any division and order.
pub type Rows<'a, E, R = Row> = dyn Fn(&mut dyn FnMut(&[R])) -> Result<(), E> + 'a;

/// Pairs one seed of two runs. Rows are streamed: 17 bytes a request are kept, and 8 more for
/// each of its latencies. The first run is read a second time where the second run did not finish
/// a request that the first one did.
pub fn pair<E: std::error::Error + 'static>(
    seed: u64,
    summaries: [&Summary; 2],
    rows: [&Rows<'_, E>; 2],
    pairing: Pairing,
) -> Result<SeedPair, PairError<E>> {
    let mut known = Known::default();
    let mut first = Totals::default();
    let mut wrong = None;
    rows[0](&mut |rows| {
        for row in rows {
            wrong = wrong.take().or_else(|| known.add(row));
            first.add(row);
        }
    })?;
    if let Some(number) = wrong {
        return Err(PairError::Number(number));
    }
    let mut second = Totals::default();
    let (mut differs, mut second_only) = (None, 0);
    rows[1](&mut |rows| {
        for row in rows {
            let found = known.meet(row);
            if pairing == Pairing::ByRequest && found != Some(true) && differs.is_none() {
                differs = Some((row.request.0, describe(row)));
            }
            let is_finished_there = known.finished(row);
            second_only += u64::from(!is_finished_there && row.counts());
            if pairing == Pairing::Apart || is_finished_there {
                second.add(row);
            }
        }
    })?;
    if let Some((request, second)) = differs {
        let first = first_of(rows[0], request)?;
        return Err(PairError::Arrivals(ArrivalsDiffer { seed, request, first, second }));
    }
    let first_only = known.first_only();
    if pairing == Pairing::ByRequest && first_only > 0 {
        first = Totals::default();
        rows[0](&mut |rows| {
            let in_both = rows.iter().filter(|row| known.finished_in_both(row));
            in_both.for_each(|row| first.add(row));
        })?;
    }
    let requests = first.count();
    let mut values = values_of(summaries);
    values.extend(spans(&first, &second));
    values.extend(latencies(first, second));
    let single = if pairing == Pairing::ByRequest { [first_only, second_only] } else { [0; 2] };
    Ok(SeedPair { seed, requests, warnings: warnings(summaries, single), values })
}

/// What is known of a request of the first run.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// A hash over its arrival; 0 if there is no such request.
    arrival: u64,
    is_finished: bool,
    is_finished_in_both: bool,
}

/// The requests of the first run, by number.
#[derive(Debug, Default)]
struct Known {
    seen: Vec<Seen>,
}

/// More requests than a run has rows: what a damaged number could ask for.
const NUMBER_MAX: u64 = 1 << 32;

impl Known {
    /// Adds a request of the first run; returns a number that is too large.
    fn add(&mut self, row: &Row) -> Option<u64> {
        let number = row.request.0;
        if number >= NUMBER_MAX {
            return Some(number);
        }
        let place = number as usize;
        if place >= self.seen.len() {
            self.seen.resize(place + 1, Seen::default());
        }
        self.seen[place] = Seen { arrival: arrival(row), is_finished: row.counts(), is_finished_in_both: false };
        None
    }

    fn of(&self, row: &Row) -> Option<&Seen> {
        self.seen.get(usize::try_from(row.request.0).ok()?)
    }

    /// Returns whether the first run has the same arrival; `None` if it lacks the request.
    fn meet(&mut self, row: &Row) -> Option<bool> {
        let seen = self.seen.get_mut(usize::try_from(row.request.0).ok()?).filter(|seen| seen.arrival != 0)?;
        seen.is_finished_in_both = seen.is_finished && row.counts();
        Some(seen.arrival == arrival(row))
    }

    fn finished(&self, row: &Row) -> bool {
        self.of(row).is_some_and(|seen| seen.is_finished)
    }

    fn finished_in_both(&self, row: &Row) -> bool {
        self.of(row).is_some_and(|seen| seen.is_finished_in_both)
    }

    /// Requests that count in the first run alone.
    fn first_only(&self) -> u64 {
        self.seen.iter().filter(|seen| seen.is_finished && !seen.is_finished_in_both).count() as u64
    }
}

/// A hash over all that the workload decides about a request; never 0.
fn arrival(row: &Row) -> u64 {
    let parts = [
        row.intended.as_ps(),
        u64::from(row.source.0) << 32 | u64::from(row.target.0),
        row.address,
        row.bytes.count() << 3 | row.operation as u64,
    ];
    parts.into_iter().fold(1, |hash, part| mix(hash ^ part)).max(1)
}

fn describe(row: &Row) -> String {
    let Row { operation, source, target, bytes, intended, address, .. } = row;
    format!(
        "a {} of {} B at address {address} from node {} to node {} at {} ns",
        operation.name(),
        bytes.count(),
        source.0,
        target.0,
        intended.as_ps() as f64 / 1e3
    )
}

/// The description of one request, for a message.
fn first_of<E: std::error::Error + 'static>(rows: &Rows<'_, E>, request: u64) -> Result<String, E> {
    let mut found = None;
    rows(&mut |rows| found = found.take().or_else(|| rows.iter().find(|row| row.request.0 == request).map(describe)))?;
    Ok(found.unwrap_or_else(|| "not there".into()))
}

/// Latencies and spans of the requests that count.
#[derive(Debug, Default)]
struct Totals {
    /// In picoseconds, by operation.
    latencies: BTreeMap<Operation, Vec<u64>>,
    /// By place of [`SpanKind::ALL`].
    spans: [u128; SpanKind::ALL.len()],
}

impl Totals {
    fn add(&mut self, row: &Row) {
        if !row.counts() {
            return;
        }
        self.latencies.entry(row.operation).or_default().push(row.latency().as_ps());
        for (sum, (_, span)) in self.spans.iter_mut().zip(row.spans.iter()) {
            *sum += u128::from(span.as_ps());
        }
    }

    fn count(&self) -> u64 {
        self.latencies.values().map(|values| values.len() as u64).sum()
    }
}

/// The quantiles that summaries have, with their names.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];

type Values = Vec<(Name, (String, [f64; 2]))>;

fn latencies(first: Totals, mut second: Totals) -> Values {
    let mut values = Vec::new();
    let (mut all, mut others) = (Vec::new(), Vec::new());
    let has_several = first.latencies.len() > 1;
    for (operation, mut own) in first.latencies {
        let mut other = second.latencies.remove(&operation).unwrap_or_default();
        values.extend(statistics(operation.name(), &mut own, &mut other));
        if has_several {
            all.append(&mut own);
            others.append(&mut other);
        }
    }
    values.extend(statistics(ALL_OPERATIONS, &mut all, &mut others));
    values
}

fn statistics(of: &str, first: &mut [u64], second: &mut [u64]) -> Values {
    if first.is_empty() || second.is_empty() {
        return Vec::new();
    }
    let name = |statistic| Name { group: Group::Latency, of: of.into(), statistic };
    let mean =
        |values: &[u64]| values.iter().map(|ps| u128::from(*ps)).sum::<u128>() as f64 / values.len() as f64 / 1e3;
    let mut values = vec![(name("mean"), ("ns".to_owned(), [mean(first), mean(second)]))];
    for (statistic, share) in QUANTILES {
        let both = [quantile(first, share), quantile(second, share)];
        values.push((name(statistic), ("ns".into(), both)));
    }
    values
}

/// The smallest value such that at least ⌈*share* × n⌉ values are not greater, in nanoseconds.
fn quantile(values: &mut [u64], share: f64) -> f64 {
    let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
    let (_, value, _) = values.select_nth_unstable(rank - 1);
    *value as f64 / 1e3
}

/// Mean times by kind of span, of kinds that occur.
fn spans(first: &Totals, second: &Totals) -> Values {
    let (own, others) = (first.count(), second.count());
    if own == 0 || others == 0 {
        return Vec::new();
    }
    let mean = |totals: &Totals, place: usize, count: u64| totals.spans[place] as f64 / count as f64 / 1e3;
    let kinds = SpanKind::ALL.into_iter().enumerate();
    let both = kinds.map(|(place, kind)| (kind, [mean(first, place, own), mean(second, place, others)]));
    both.filter(|(_, both)| *both != [0.0; 2])
        .map(|(kind, both)| {
            (Name { group: Group::Span, of: kind.name().into(), statistic: "mean" }, ("ns".into(), both))
        })
        .collect()
}

/// What both summaries have.
fn values_of([first, second]: [&Summary; 2]) -> BTreeMap<Name, (String, [f64; 2])> {
    let mut values = BTreeMap::new();
    let mut add = |group, of: &str, unit: &str, both| {
        values.insert(Name { group, of: of.into(), statistic: "" }, (unit.to_owned(), both));
    };
    let (own, others) = (&first.load, &second.load);
    add(Group::Load, "achieved", "Gb/s", [own.achieved_gbps, others.achieved_gbps]);
    add(Group::Load, "requests", "1/s", [own.requests_per_second, others.requests_per_second]);
    add(Group::Load, "busiest link", "fraction", [own.busiest_link, others.busiest_link]);
    let ended = |summary: &Summary| (summary.counts.issued - summary.counts.finished.min(summary.counts.issued)) as f64;
    add(Group::Requests, "not finished", "requests", [ended(first), ended(second)]);
    for (name, own) in &first.metrics {
        let unit = metric::find(name).map_or("none", |metric| metric.unit);
        if let Some(other) = second.metrics.get(name) {
            add(Group::Metric, name, unit, [*own, *other]);
        }
    }
    values
}

fn warnings(summaries: [&Summary; 2], single: [u64; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    let sides = ["first", "second"];
    for (side, count) in sides.into_iter().zip(single).filter(|(_, count)| *count > 0) {
        warnings.push(format!("{count} measured requests finished in the {side} run alone; latency leaves them out"));
    }
    for (side, summary) in sides.into_iter().zip(summaries) {
        warnings.extend(summary.partial.then(|| format!("the {side} run ended early")));
    }
    if summaries[0].version != summaries[1].version {
        let [first, second] = summaries.map(|summary| &summary.version);
        warnings.push(format!("the runs are of different versions: {first} and {second}"));
    }
    warnings
}
