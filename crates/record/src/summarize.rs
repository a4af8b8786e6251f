//! Computes a [`Summary`] from rows during a run, in memory that does not grow with the run. The
//! formulae are at [`Summary`].

use crate::availability::SinceFault;
use crate::histogram_log::histogram_log;
use crate::ledger::Audit;
use crate::pool::Pool;
use crate::row::{Outcome, Row};
use crate::steady::{Course, Transient};
use crate::summary::{Counts, Load, Summary};
use crate::tally::Tally;
use crate::warn::warnings;
use crate::window::Window;
use base::{Bytes, Operation, Time};
use std::collections::BTreeMap;

/// The identity of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunIdentity {
    /// The program's version.
    pub version: String,
    /// SHA-256 of the resolved plan without its seed, hex: equal for runs that differ only in their
    /// seed.
    pub plan_hash: String,
    /// The design's name.
    pub design: String,
    /// The seed.
    pub seed: u64,
    /// The point in the sweep: axis name to value, as written in the experiment file.
    pub labels: BTreeMap<String, String>,
}

/// Facts that only the driver knows, at the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Requests that the workload intended before the stop: those that have a row and those that
    /// were never issued.
    pub offered: u64,
    /// Requests that were intended but never started; they have no row.
    pub not_issued: u64,
    /// The payload of the requests never issued that were intended within the window.
    pub not_issued_bytes_in_window: Bytes,
    /// Packets or messages dropped by full buffers.
    pub dropped_packets: u64,
    /// The end of the window of loads: when arrivals ended. No request was intended later.
    pub window_end: Time,
    /// The end of the run: when the last request ended, or the stop.
    pub stopped_at: Time,
    /// The busiest link's share of the window spent sending, 0 to 1.
    pub busiest_link: f64,
    /// Events that the simulator executed.
    pub events: u64,
    /// The planned load, as a fraction of the busiest link; `None` in a closed loop or a trace.
    pub planned_load: Option<f64>,
    /// Growth of the backlog of an open loop, in requests per arrival:
    /// [`Backlog::growth`](crate::Backlog::growth).
    pub backlog_growth: Option<f64>,
    /// Metrics of designs and workloads, from a [`Meter`](crate::metric::Meter).
    pub metrics: BTreeMap<String, f64>,
    /// Errors in the spans of its requests.
    pub audit: Audit,
    /// Whether the run was cut short (Ctrl-C, full disk).
    pub partial: bool,
    /// Whether a closed loop waited for requests that did not end: part of the load was not
    /// offered.
    pub stalled: bool,
}

/// Collects every row of a run, in any order, and computes the summary at the end.
///
/// Every issued request has exactly one row: call [`row`](Self::row) for each, then
/// [`finish`](Self::finish) and, if needed, [`histograms`](Self::histograms).
#[derive(Clone, Debug)]
pub struct Summarizer {
    identity: RunIdentity,
    window: Window,
    rows_by_outcome: [u64; Outcome::ALL.len()],
    /// By operation, in the order in which they first ended; there are few.
    tallies: Vec<(Operation, Tally)>,
    course: Course,
    since_fault: Option<SinceFault>,
}

/// The name for the requests of all operations together.
pub const ALL_OPERATIONS: &str = "all";

impl Summarizer {
    /// Creates a summarizer before the first row. `window_start` is the end of the warm-up.
    pub fn new(identity: RunIdentity, window_start: Time) -> Self {
        Summarizer::over(identity, Window::new(window_start))
    }

    /// Creates a summarizer before the first row of a run whose warm-up ends with a request instead
    /// of a time. The window is empty until [`begin`](Self::begin).
    pub fn warming_up(identity: RunIdentity) -> Self {
        Summarizer::over(identity, Window::not_begun())
    }

    fn over(identity: RunIdentity, window: Window) -> Self {
        let rows_by_outcome = [0; Outcome::ALL.len()];
        Summarizer { identity, window, rows_by_outcome, tallies: Vec::new(), course: Course::new(), since_fault: None }
    }

    /// Counts the availability of data after `first_fault`, the time of the first fault.
    #[must_use]
    pub fn with_first_fault(mut self, first_fault: Time) -> Self {
        self.since_fault = Some(SinceFault::new(first_fault));
        self
    }

    /// Ends the warm-up of a summarizer made by [`warming_up`](Self::warming_up): requests intended
    /// from `window_start` on, none of which has a row yet, are in the window.
    pub fn begin(&mut self, window_start: Time) {
        self.window.begin(window_start);
    }

    /// Adds one row.
    ///
    /// # Panics
    /// If the spans of the row do not sum to its end-to-end time, or it ends before its intended
    /// start: such a row comes from a broken design, and its statistics would be meaningless.
    pub fn row(&mut self, row: &Row) {
        assert!(row.adds_up(), "{}", why_not(row));
        self.rows_by_outcome[row.outcome as usize] += 1;
        self.window.add(row);
        if let Some(since_fault) = &mut self.since_fault {
            since_fault.add(row);
        }
        if row.counts() {
            self.tally(row.operation).add_row(row);
            self.course.add(row.intended, row.end - row.intended);
        } else if row.measured && matches!(row.outcome, Outcome::Unfinished | Outcome::Unavailable) {
            self.tally(row.operation).add_open(row);
        }
    }

    fn tally(&mut self, operation: Operation) -> &mut Tally {
        let known = self.tallies.iter().position(|(tallied, _)| *tallied == operation);
        let index = known.unwrap_or_else(|| {
            self.tallies.push((operation, Tally::new()));
            self.tallies.len() - 1
        });
        &mut self.tallies[index].1
    }

    /// Returns the summary of the rows so far, as a run with these facts.
    ///
    /// # Panics
    /// If a request was intended after the end of the window. If the run was not cut short and its
    /// rows are not the offered requests without those never issued: a request was lost. If a
    /// number in the facts is infinite or not a number.
    pub fn finish(&self, facts: &RunFacts) -> Summary {
        self.check(facts);
        let tallies = self.tallies_by_name();
        let mut summary = Summary {
            version: self.identity.version.clone(),
            plan_hash: self.identity.plan_hash.clone(),
            design: self.identity.design.clone(),
            seeds: vec![self.identity.seed],
            labels: self.identity.labels.clone(),
            counts: self.counts(facts),
            load: self.load(facts),
            availability: self.since_fault.and_then(|since| since.availability()),
            simulated_ns: facts.stopped_at.as_ns_f64(),
            events: facts.events,
            latency_ns: each(&tallies, Tally::count, Tally::latency_ns),
            slowdown: each(&tallies, Tally::compared, Tally::slowdown),
            unloaded_ns: each(&tallies, Tally::compared, Tally::unloaded_ns),
            span_mean_ns: each(&tallies, Tally::count, Tally::span_mean_ns),
            metrics: facts.metrics.clone(),
            warnings: Vec::new(),
            partial: facts.partial || facts.stalled,
        };
        let window_ps = self.window.length_ps(facts.window_end);
        summary.warnings = warnings(&summary, facts, window_ps, self.course.steadiness());
        summary
    }

    /// Returns the transient of the rows so far, provided that they were measured from the
    /// beginning.
    pub fn transient(&self) -> Transient {
        self.course.transient()
    }

    /// Returns the latency histograms by operation and under `all`, in picoseconds, for the files
    /// `latency.<operation>.hdr`.
    ///
    /// # Format
    /// A file is an HdrHistogram interval log, text in lines as Java's `HistogramLogReader` defines
    /// it. It has comments with `#`, then one interval from the end of the warm-up to the last end,
    /// `start s,length s,maximum,payload`, without a tag. The payload is the base64 of the
    /// histogram in HdrHistogram's V2 compressed encoding. Values are picoseconds with three
    /// significant digits; the maximum in the line is in nanoseconds, for readability. Only
    /// measured requests that finished are included. `HistogramLogProcessor -outputValueUnitRatio
    /// 1000` prints percentiles in nanoseconds.
    pub fn histograms(&self) -> BTreeMap<String, Vec<u8>> {
        let tallies = self.tallies_by_name();
        let span = self.window.span_of_rows();
        tallies.iter().map(|(name, tally)| (name.to_string(), histogram_log(name, &tally.latency, span))).collect()
    }

    /// Returns the histograms of the run, to be merged with those of other seeds.
    pub fn pool(&self) -> Pool {
        Pool::new(self.tallies_by_name())
    }

    fn check(&self, facts: &RunFacts) {
        let latest = self.window.latest_intended();
        assert!(
            latest <= facts.window_end,
            "a request was intended at {latest}, after the end of arrivals at {}",
            facts.window_end
        );
        let (rows, not_issued) = (self.rows(), facts.not_issued);
        assert!(
            facts.partial || facts.offered == rows + not_issued,
            "{} requests were offered, but {rows} have a row and {not_issued} were never issued",
            facts.offered
        );
        let numbers = facts.metrics.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in numbers.chain([("busiest_link", facts.busiest_link)]) {
            assert!(value.is_finite(), "{name} is {value}, which JSON cannot hold");
        }
    }

    fn rows(&self) -> u64 {
        self.rows_by_outcome.iter().sum()
    }

    fn counts(&self, facts: &RunFacts) -> Counts {
        let ended = |outcome: Outcome| self.rows_by_outcome[outcome as usize];
        Counts {
            offered: facts.offered,
            issued: self.rows(),
            finished: ended(Outcome::Finished),
            timed_out: ended(Outcome::TimedOut),
            rejected: ended(Outcome::Rejected),
            lost: ended(Outcome::Lost),
            dropped_packets: facts.dropped_packets,
            in_flight_at_end: ended(Outcome::Unfinished),
            unavailable: ended(Outcome::Unavailable),
            not_issued: facts.not_issued,
            measured: self.tallies.iter().map(|(_, tally)| tally.count()).sum(),
        }
    }

    fn load(&self, facts: &RunFacts) -> Load {
        let length_ps = self.window.length_ps(facts.window_end);
        let finished = self.window.finished_by(facts.window_end);
        let offered_bytes = self.window.offered_bytes() + u128::from(facts.not_issued_bytes_in_window.count());
        Load {
            planned: facts.planned_load,
            offered_gbps: gigabits_per_second(offered_bytes, length_ps),
            achieved_gbps: gigabits_per_second(finished.bytes, length_ps),
            requests_per_second: per_picosecond(finished.requests as f64, length_ps) * 1e12,
            busiest_link: facts.busiest_link,
        }
    }

    /// Returns the tallies by name, with `all` if there are any.
    fn tallies_by_name(&self) -> BTreeMap<&'static str, Tally> {
        let mut by_name: BTreeMap<_, _> =
            self.tallies.iter().map(|(operation, tally)| (operation.name(), tally.clone())).collect();
        let mut all = Tally::new();
        by_name.values().for_each(|tally| all.add(tally));
        if all.count() > 0 {
            by_name.insert(ALL_OPERATIONS, all);
        }
        by_name
    }
}

fn why_not(row: &Row) -> String {
    let (id, total) = (row.request.0, row.spans.total_ps());
    let (intended, end) = (row.intended.as_ps(), row.end.as_ps());
    let spans: Vec<_> = row.spans.iter().map(|(kind, span)| format!("{} {}", kind.name(), span.as_ps())).collect();
    format!(
        "request {id}: its spans sum to {total} ps, but it was intended at {intended} ps and ended at {end} ps ({})",
        spans.join(", ")
    )
}

/// Returns a value of every tally with a nonzero count.
fn each<T>(
    tallies: &BTreeMap<&'static str, Tally>,
    count: fn(&Tally) -> u64,
    value: fn(&Tally) -> T,
) -> BTreeMap<String, T> {
    let known = tallies.iter().filter(|(_, tally)| count(tally) > 0);
    known.map(|(name, tally)| (name.to_string(), value(tally))).collect()
}

fn gigabits_per_second(bytes: u128, length_ps: u64) -> f64 {
    // Bits per picosecond are terabits per second.
    per_picosecond(bytes as f64 * 8.0, length_ps) * 1e3
}

/// Returns zero for an empty window: JSON has no infinity, and a warning reports the empty window.
fn per_picosecond(amount: f64, length_ps: u64) -> f64 {
    if length_ps == 0 { 0.0 } else { amount / length_ps as f64 }
}
