//! Progress: a bar on a terminal, and events for other consoles.

use crate::console::{Console, Stop};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plan::Plan;
use record::Summary;
use serde_json::json;
use sim::drive::{Flow, Observer, Progress};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines about a run that is not finished come no more often than this.
const BETWEEN_LINES: Duration = Duration::from_millis(500);
/// Work that is as much as a request: this many bytes more of it.
const BYTES_AS_A_REQUEST: f64 = 1024.0;

/// Days of a virtual drive that take as long as a request: a few nanoseconds each.
const VSSD_DAYS_AS_A_REQUEST: u64 = 200;

/// Work of one run of a plan: its requests, with more weight for larger ones. None when only its
/// duration is known.
pub fn work(plan: &Plan) -> Option<u64> {
    let bytes = match &plan.scene {
        plan::Scene::Messages(messages) => mean_bytes(&messages.workload),
        // A page of a volume is written to three drives and collected: as much work as several
        // messages.
        plan::Scene::Blox(_) | plan::Scene::SDirect(_) | plan::Scene::Scalio(_) => 4.0 * BYTES_AS_A_REQUEST,
        // A command passes some six hops, and its data come in frames.
        plan::Scene::San(san) => 6.0 * BYTES_AS_A_REQUEST + san.io.mean_bytes(),
        plan::Scene::Wear(wear) => return Some(wear.vssd_days().div_ceil(VSSD_DAYS_AS_A_REQUEST)),
    };
    Some((plan.requests()? as f64 * (1.0 + bytes / BYTES_AS_A_REQUEST)).ceil() as u64)
}

fn mean_bytes(workload: &workload::Config) -> f64 {
    match &workload.arrivals {
        workload::Arrivals::Trace { messages } => mean_of(messages.iter().map(trace_share)),
        _ => mean_of(workload.mix.iter().map(class_share)),
    }
}

fn trace_share(message: &workload::TraceMessage) -> (f64, f64) {
    (1.0, message.bytes.count() as f64)
}

fn class_share(class: &workload::Class) -> (f64, f64) {
    (class.weight, class.size.mean_bytes())
}

/// The mean of values with weights, given as pairs; zero when nothing has weight.
fn mean_of(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (weights, sum) =
        pairs.fold((0.0, 0.0), |(weights, sum), (weight, value)| (weights + weight, sum + weight * value));
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// The progress of a command: of some points, each with some runs.
pub struct Meter<'c> {
    console: &'c dyn Console,
    bar: Option<ProgressBar>,
    started: Instant,
    points: u64,
    points_done: AtomicU64,
    /// See [`work`]; a run counts 1 when that of some plan is not known.
    work: u64,
    done: AtomicU64,
    is_known: bool,
    last_line: Mutex<Instant>,
}

impl<'c> Meter<'c> {
    /// For points with their numbers of seeds.
    pub fn new<'a>(points: impl IntoIterator<Item = (&'a Plan, usize)>, console: &'c dyn Console) -> Meter<'c> {
        let points: Vec<(Option<u64>, usize)> = points.into_iter().map(|(plan, seeds)| (work(plan), seeds)).collect();
        let is_known = points.iter().all(|(work, _)| work.is_some());
        let weight = |(work, seeds): &(Option<u64>, usize)| work.filter(|_| is_known).unwrap_or(1) * *seeds as u64;
        let work = points.iter().map(weight).sum();
        let started = Instant::now();
        Meter {
            console,
            bar: console.has_bar().then(|| bar(work)),
            started,
            points: points.len() as u64,
            points_done: AtomicU64::new(0),
            work,
            done: AtomicU64::new(0),
            is_known,
            last_line: Mutex::new(started),
        }
    }

    /// Watches one run of `plan`.
    pub fn watch(&self, name: &str, plan: &Plan) -> Watch<'_> {
        let weight = work(plan).filter(|_| self.is_known).unwrap_or(1);
        if let Some(bar) = &self.bar {
            bar.set_message(self.message(name));
        }
        Watch { meter: self, requests: plan.requests(), weight, counted: 0 }
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
            None => self.console.event(&json!({
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
        self.console.event(&json!({
            "event": "progress", "requests": progress.ended, "virtual_ns": progress.now.as_ns_f64(),
            "fraction": self.fraction(), "eta_seconds": self.eta().map(seconds),
        }));
    }

    fn fraction(&self) -> f64 {
        let fraction = self.done.load(Ordering::Relaxed) as f64 / self.work.max(1) as f64;
        (fraction * 1e4).round() / 1e4
    }

    fn is_time(&self) -> bool {
        let Ok(mut last) = self.last_line.try_lock() else { return false };
        let is_time = last.elapsed() >= BETWEEN_LINES;
        if is_time {
            *last = Instant::now();
        }
        is_time
    }

    /// What stops the runs that are watched.
    pub fn stop(&self) -> &Stop {
        self.console.stop()
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

/// Reports one run to its meter, and stops it when the program is to stop. Dropped, it counts as
/// done.
pub struct Watch<'a> {
    meter: &'a Meter<'a>,
    requests: Option<u64>,
    weight: u64,
    counted: u64,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, progress: &Progress) -> Flow {
        if let Some(requests) = self.requests.filter(|_| self.meter.is_known) {
            let share = progress.ended as f64 / requests.max(1) as f64;
            let done = ((share * self.weight as f64) as u64).clamp(self.counted, self.weight);
            self.meter.add(done - self.counted);
            self.counted = done;
        }
        self.meter.report(progress);
        if self.meter.stop().is_set() { Flow::Stop } else { Flow::Continue }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.meter.add(self.weight - self.counted);
    }
}
