//! One point: its runs, seed by seed, and the files that they leave.
//!
//! ```text
//! POINT/plan.toml                        what was run, with every default
//! POINT/summary.json                     over all seeds
//! POINT/seed-1/summary.json              of one seed
//! POINT/seed-1/latency.read.hdr          HdrHistogram log of one operation, or of `all`
//! POINT/seed-1/records/part-00000.parquet
//! POINT/seed-1/spans/part-00000.parquet  ordered spans of some requests, with `--spans`
//! POINT/seed-1/series/part-00000.parquet samples of the state, with `record.series`
//! POINT/seed-1/history.jsonl             operations of a key-value store, with `--history`
//! ```

use crate::VERSION;
use crate::console::Console;
use crate::estimate;
use crate::failure::{Failure, bad_input, failed_at};
use crate::load::describe;
use crate::output::write;
use crate::own::{Failed, Own};
use crate::progress::{Meter, Watch};
use live::FileParts;
use plan::{Plan, Point};
use rayon::prelude::*;
use record::{
    Keep, Label, LabelValue, ParquetWriter, Pool, Provenance, Row, SeriesRow, Sink, SinkError, SpanRow, Summary,
    summary_json,
};
use sim::drive::{Flow, Observer, Outcomes, Progress};
use sim::{RunError, RunOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Options of runs.
#[derive(Clone, Debug)]
pub struct Playing {
    /// Rows in a part of the records; `None` for no records.
    pub rows_per_part: Option<usize>,
    /// Whether messages are encoded and decoded.
    pub wire: bool,
    /// Whether the history of a key-value store is kept.
    pub history: bool,
    /// The requests whose ordered spans are kept.
    pub spans: Keep,
    /// Policies of a user's own.
    pub own: Own,
}

/// The summaries of a point that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// Over all seeds.
    pub summary: Summary,
    /// One a seed that was run, in the order of the seeds.
    pub by_seed: Vec<Summary>,
}

/// A point to be played.
#[derive(Clone, Debug)]
pub struct Task {
    /// For progress and messages.
    pub name: String,
    /// The folder of its results.
    pub folder: PathBuf,
    /// The point to run.
    pub point: Point,
    /// Its labels in the sweep, as columns of its rows.
    pub labels: Vec<Label>,
    /// With which seeds, rising.
    pub seeds: Vec<u64>,
}

impl Task {
    /// The point with the requested seeds, or those of its file.
    pub fn new(name: String, folder: PathBuf, point: Point, labels: Vec<Label>, seeds: Option<&[u64]>) -> Task {
        let seeds = seeds.map_or_else(|| point.plan.seeds.clone(), <[u64]>::to_vec);
        Task { name, folder, point, labels, seeds }
    }
}

/// More requests than anybody means to wait for: two days of a core.
const REQUESTS_MAX: u64 = 20_000_000_000;
/// Requests that a core simulates a second, roughly: 140,000 in docs/reference/paper-scale.md.
const REQUESTS_PER_SECOND: f64 = 1e5;

/// Refuses tasks that would take days, or more memory than there is, with an estimate, unless
/// `is_meant`.
pub fn refuse_endless<'a>(tasks: impl IntoIterator<Item = &'a Task>, is_meant: bool) -> Result<(), Failure> {
    if is_meant {
        return Ok(());
    }
    let mut requests = 0_u64;
    for task in tasks {
        requests = requests.saturating_add(requests_of(&task.point, &task.seeds));
        estimate::refuse_too_large(&task.point.plan)?;
    }
    if requests <= REQUESTS_MAX {
        return Ok(());
    }
    let days = requests as f64 / REQUESTS_PER_SECOND / 86_400.0;
    let gigabytes = requests as f64 * estimate::ROW_BYTES / 1e9;
    Err(bad_input(format!(
        "{requests} requests take about {days:.0} days of a core, and {gigabytes:.0} GB for a row each; \
         ask for fewer, or give --long"
    )))
}

/// Number of requests of a point with these seeds; 0 where only its duration is known.
pub fn requests_of(point: &Point, seeds: &[u64]) -> u64 {
    point.plan.requests().unwrap_or(0).saturating_mul(seeds.len() as u64)
}

/// A meter for some tasks.
pub fn meter<'a, 'c>(tasks: impl IntoIterator<Item = &'a Task>, console: &'c dyn Console) -> Meter<'c> {
    Meter::new(tasks.into_iter().map(|task| (&task.point.plan, task.seeds.len())), console)
}

/// Plays a point into `folder`, seeds side by side. None when it was stopped before any seed had
/// begun.
pub fn play(task: &Task, folder: &Path, playing: &Playing, meter: &Meter<'_>) -> Result<Option<Played>, Failure> {
    fs::create_dir_all(folder).map_err(failed_at(folder))?;
    let files = task.point.plan.files.as_deref().map(|files| path_from(folder, files)).transpose()?;
    write(&folder.join("plan.toml"), printed(&task.point, &task.seeds, files))?;
    let pool = Mutex::new(Pool::default());
    let seed = |seed: &u64| play_seed(task, *seed, folder, playing, meter, &pool).inspect_err(|_| meter.stop().halt());
    let played: Vec<Option<Summary>> = task.seeds.par_iter().map(seed).collect::<Result<_, _>>()?;
    let pool = pool.into_inner().expect("no thread panics while it adds");
    let Some(mut played) = over_seeds(played, &pool)? else { return Ok(None) };
    played.summary.warnings.extend(playing.own.unasked());
    write(&folder.join("summary.json"), summary_json(&played.summary))?;
    Ok(Some(played))
}

/// `files` as it is reached from `folder`, which is there, so that both can be moved together.
fn path_from(folder: &Path, files: &str) -> Result<String, Failure> {
    let folder = folder.canonicalize().map_err(failed_at(folder))?;
    let relative = pathdiff::diff_paths(files, folder).map(|path| path.to_string_lossy().into_owned());
    Ok(relative.unwrap_or_else(|| files.to_owned()))
}

/// The plan as a file that replays it, with what a reader has to know about it. `files` is the
/// folder that names in it are relative to.
pub fn printed(point: &Point, seeds: &[u64], files: Option<String>) -> String {
    let mut lines = vec![format!("rackweave {VERSION}"), format!("plan {}", point.plan.hash())];
    let place = describe(point);
    lines.extend((!place.is_empty()).then(|| format!("point {place}")));
    lines.extend(point.plan.warnings.iter().map(|warning| format!("warning: {warning}")));
    let head: String = lines.iter().flat_map(|line| line.lines()).map(|line| format!("# {line}\n")).collect();
    let mut plan = point.plan.clone();
    plan.seed = seeds.first().copied().unwrap_or(plan.seed);
    (plan.seeds, plan.files) = (seeds.to_vec(), files);
    head + &plan.to_toml()
}

/// One summary of the seeds that were played; it says how many were not.
fn over_seeds(played: Vec<Option<Summary>>, pool: &Pool) -> Result<Option<Played>, Failure> {
    let wanted = played.len();
    let runs: Vec<Summary> = played.into_iter().flatten().collect();
    if runs.is_empty() {
        return Ok(None);
    }
    let mut summary = Summary::over_seeds(&runs, pool).map_err(|error| Failure::Failed(error.to_string()))?;
    if runs.len() < wanted {
        summary.partial = true;
        summary.warnings.push(format!("{} of {wanted} seeds were not run", wanted - runs.len()));
    }
    Ok(Some(Played { summary, by_seed: runs }))
}

fn play_seed(
    task: &Task,
    seed: u64,
    folder: &Path,
    playing: &Playing,
    meter: &Meter<'_>,
    pool: &Mutex<Pool>,
) -> Result<Option<Summary>, Failure> {
    if meter.stop().is_set() {
        return Ok(None);
    }
    let mut plan = task.point.plan.clone();
    plan.seed = seed;
    let folder = folder.join(format!("seed-{seed}"));
    let mut records = Records::new(&folder, playing, &plan, labels_of(task, seed))?;
    let labels = task.point.labels.clone();
    let (wire_check, keep_history, spans) = (playing.wire, playing.history, playing.spans);
    let policies = playing.own.policies();
    let options = RunOptions { version: VERSION.into(), labels, wire_check, keep_history, spans, policies };
    let mut watch = Supervised { watch: meter.watch(&task.name, &plan), failed: playing.own.failed() };
    let played = sim::run(&plan, &options, &mut records, &mut watch);
    if let Some(reason) = playing.own.failed().reason() {
        return Err(Failure::BadInput(reason));
    }
    let outcomes = played.map_err(|error| refused_or_failed(task, &error))?;
    records.finish()?;
    write_outcomes(&folder, &outcomes)?;
    pool.lock().expect("no thread panics while it adds").add(&outcomes.pool);
    Ok(Some(outcomes.summary))
}

/// A run that also ends when the policy of a user has failed.
struct Supervised<'a> {
    watch: Watch<'a>,
    failed: &'a Failed,
}

impl Observer for Supervised<'_> {
    fn progress(&mut self, progress: &Progress) -> Flow {
        match self.failed.reason() {
            Some(_) => Flow::Stop,
            None => self.watch.progress(progress),
        }
    }
}

/// The labels of the rows of this run.
fn labels_of(task: &Task, seed: u64) -> Vec<Label> {
    let design = LabelValue::Text(Some(task.point.plan.design().word()));
    // Seeds are no greater than what an experiment file can hold.
    let seed = LabelValue::Integer(i64::try_from(seed).ok());
    let of_run = [(Label::DESIGN, design), (Label::SEED, seed)];
    let of_run = of_run.map(|(name, value)| Label { name: name.into(), value });
    of_run.into_iter().chain(task.labels.iter().cloned()).collect()
}

/// A plan that nothing can be built of is bad input: it should not have passed for a plan.
fn refused_or_failed(task: &Task, error: &RunError) -> Failure {
    match error {
        RunError::Sink(_) => failed(error),
        _ => Failure::BadInput(format!("{}: nothing can be built of this plan: {error}", task.name)),
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

fn write_outcomes(folder: &Path, outcomes: &Outcomes) -> Result<(), Failure> {
    for (operation, histogram) in &outcomes.histograms {
        write(&folder.join(format!("latency.{operation}.hdr")), histogram)?;
    }
    if let Some(history) = &outcomes.history {
        let mut lines = Vec::new();
        history.write_json_lines(&mut lines).map_err(failed)?;
        write(&folder.join("history.jsonl"), lines)?;
    }
    write(&folder.join("summary.json"), summary_json(&outcomes.summary))
}

/// Records of a run: rows, the spans of some requests, and series.
struct Records {
    rows: Option<ParquetWriter<FileParts>>,
    spans: Option<ParquetWriter<FileParts, SpanRow>>,
    series: Option<ParquetWriter<FileParts, SeriesRow>>,
}

impl Records {
    fn new(folder: &Path, playing: &Playing, plan: &Plan, labels: Vec<Label>) -> Result<Records, Failure> {
        fs::create_dir_all(folder).map_err(failed_at(folder))?;
        let provenance = Provenance { version: VERSION.into(), plan_hash: plan.hash() };
        let parts = |name: &str| {
            let folder = folder.join(name);
            fs::create_dir_all(&folder).map_err(failed_at(&folder))?;
            Ok::<_, Failure>(FileParts::new(folder))
        };
        let rows = match playing.rows_per_part {
            Some(rows) => {
                let writer = ParquetWriter::new(parts("records")?, &provenance).with_rows_per_part(rows);
                Some(writer.with_labels(labels.clone()))
            }
            None => None,
        };
        let spans = match playing.spans {
            Keep::Nothing => None,
            _ => Some(ParquetWriter::of_spans(parts("spans")?, &provenance).with_labels(labels.clone())),
        };
        let series = match plan.series {
            Some(_) => Some(ParquetWriter::of_series(parts("series")?, &provenance).with_labels(labels)),
            None => None,
        };
        Ok(Records { rows, spans, series })
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.rows.as_mut().map_or(Ok(()), |writer| writer.finish().map(drop)).map_err(failed)?;
        self.spans.as_mut().map_or(Ok(()), |writer| writer.finish().map(drop)).map_err(failed)?;
        self.series.as_mut().map_or(Ok(()), |writer| writer.finish().map(drop)).map_err(failed)
    }
}

impl Sink for Records {
    fn row(&mut self, row: &Row) -> Result<(), SinkError> {
        self.rows.as_mut().map_or(Ok(()), |writer| writer.row(row))
    }

    fn spans(&mut self, spans: &[SpanRow]) -> Result<(), SinkError> {
        self.spans.as_mut().map_or(Ok(()), |writer| writer.spans(spans))
    }

    fn series(&mut self, rows: &[SeriesRow]) -> Result<(), SinkError> {
        self.series.as_mut().map_or(Ok(()), |writer| writer.series(rows))
    }
}
