//! How far things are: a bar on a terminal, JSON lines otherwise; both on the standard error.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::Summary;
use serde_json::json;
use sim::drive::{Flow, Observer, Progress};
use spec::Plan;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines about a run that is not finished come no more often than this.
const BETWEEN_LINES: Duration = Duration::from_millis(500);
/// A part of a run counts for something, however little is known about it.
const UNKNOWN: u64 = 1;

/// How many requests a plan plays, when it says so.
pub fn requests(plan: &Plan) -> Option<u64> {
    match &plan.workload.arrivals {
        workload::Arrivals::Trace { messages } => Some(messages.len() as u64),
        _ => plan.workload.requests,
    }
}

/// The progress of a command: of some points, each with some runs.
pub struct Meter {
    bar: Option<ProgressBar>,
    started: Instant,
    points: u64,
    points_done: AtomicU64,
    /// Requests, or runs when a plan does not say how many requests it has.
    work: u64,
    done: AtomicU64,
    counts_requests: bool,
    last_line: Mutex<Instant>,
}

impl Meter {
    /// Of the points of `runs`: of each how many requests, and how many seeds.
    pub fn new(runs: &[(Option<u64>, usize)]) -> Meter {
        let counts_requests = runs.iter().all(|(requests, _)| requests.is_some());
        let weight = |(requests, seeds): &(Option<u64>, usize)| {
            requests.filter(|_| counts_requests).unwrap_or(UNKNOWN).max(1) * *seeds as u64
        };
        let work = runs.iter().map(weight).sum();
        let started = Instant::now();
        Meter {
            bar: std::io::stderr().is_terminal().then(|| bar(work)),
            started,
            points: runs.len() as u64,
            points_done: AtomicU64::new(0),
            work,
            done: AtomicU64::new(0),
            counts_requests,
            last_line: Mutex::new(started),
        }
    }

    /// Watches one run of `plan`.
    pub fn watch(&self, name: &str, plan: &Plan) -> Watch<'_> {
        let weight = requests(plan).filter(|_| self.counts_requests).unwrap_or(UNKNOWN).max(1);
        if let Some(bar) = &self.bar {
            bar.set_message(self.message(name));
        }
        Watch { meter: self, weight, counted: 0 }
    }

    fn message(&self, name: &str) -> String {
        match self.points {
            1 => name.into(),
            points => format!("{}/{points} points, {name}", self.points_done.load(Ordering::Relaxed)),
        }
    }

    /// Says that a point is finished.
    pub fn point_done(&self, name: &str, summary: &Summary, took: Duration) {
        let done = self.points_done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) if !bar.is_finished() => bar.set_message(self.message(name)),
            Some(_) => {}
            None => self.line(json!({
                "event": "point", "point": name, "done": done, "of": self.points,
                "requests": summary.counts.offered, "events": summary.events, "warnings": summary.warnings.len(),
                "partial": summary.partial, "point_seconds": seconds(took), "eta_seconds": self.eta().map(seconds),
            })),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn add(&self, work: u64) {
        let done = self.done.fetch_add(work, Ordering::Relaxed) + work;
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }

    /// From what is done in the time so far; none before anything is.
    fn eta(&self) -> Option<Duration> {
        let done = self.done.load(Ordering::Relaxed).min(self.work);
        let left = (self.work - done) as f64 / done as f64;
        left.is_finite().then(|| self.started.elapsed().mul_f64(left))
    }

    /// Sometimes, how far a single run is.
    fn report(&self, progress: &Progress) {
        if self.bar.is_some() || self.points > 1 || !self.is_time() {
            return;
        }
        self.line(json!({
            "event": "progress", "requests": progress.ended, "virtual_ns": progress.now.as_ns_f64(),
            "done": self.done.load(Ordering::Relaxed), "of": self.work, "eta_seconds": self.eta().map(seconds),
        }));
    }

    fn is_time(&self) -> bool {
        let Ok(mut last) = self.last_line.try_lock() else { return false };
        let is_time = last.elapsed() >= BETWEEN_LINES;
        if is_time {
            *last = Instant::now();
        }
        is_time
    }

    /// Progress that nobody can read any more is no reason to stop.
    fn line(&self, value: serde_json::Value) {
        let _ = writeln!(std::io::stderr().lock(), "{value}");
    }
}

fn bar(work: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {percent:>3}% eta {eta} {wide_msg}");
    let bar = ProgressBar::with_draw_target(Some(work), ProgressDrawTarget::stderr_with_hz(5));
    bar.with_style(style.expect("the template is well formed").progress_chars("=> "))
}

/// For people: tenths of a second.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// Reports one run to its meter, and stops it when the program is to stop. Dropped, it counts as done.
pub struct Watch<'a> {
    meter: &'a Meter,
    weight: u64,
    counted: u64,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, progress: &Progress) -> Flow {
        if self.meter.counts_requests {
            let ended = progress.ended.min(self.weight);
            self.meter.add(ended - self.counted);
            self.counted = ended;
        }
        self.meter.report(progress);
        if interrupt::stopped() { Flow::Stop } else { Flow::Continue }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.meter.add(self.weight - self.counted);
    }
}
