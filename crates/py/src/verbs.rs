//! The verbs.

use crate::console::{is_interrupt, play};
use crate::errors::{bad_input, policy_error, raised};
use crate::policy::{Cause, choose};
use crate::source::{Source, scale_of, seeds_of};
use blox::{CollectionCheck, QueuedJob, ReadPath};
use campaign::arguments::{
    CompareArguments, ExplainArguments, ExplainForm, Form, OutputArguments, ReproduceArguments, RunArguments,
    SeedArguments, Share, SweepArguments, jobs as checked_jobs, number_within, rows_per_part as checked_rows,
};
use campaign::experiments::Library;
use campaign::own::Own;
use campaign::{Done, Failure};
use edm::Competitor;
use plan::Scale;
use pyo3::prelude::*;
use record::{Keep, Summary};
use report::export::SPECIFICATION;
use report::page::PageFile;
use std::path::PathBuf;

/// What a verb leaves: its folder, its results in words, and why it ended early, if it did.
type Left = (PathBuf, String, Option<String>);

fn left(done: Done) -> Result<Left, Failure> {
    match done.end {
        Ok(()) => Ok((done.root, done.text, None)),
        Err(Failure::Partial(reason)) => Ok((done.root, done.text, Some(reason))),
        Err(failure) => Err(failure),
    }
}

/// A number that the command line would check as text.
fn checked(
    py: Python<'_>,
    name: &str,
    value: Option<i64>,
    check: impl Fn(&str) -> Result<usize, String>,
) -> PyResult<Option<usize>> {
    let check = |value: i64| check(&value.to_string()).map_err(|error| bad_input(py, format!("{name}: {error}")));
    value.map(check).transpose()
}

/// `Experiment.run`
#[pyfunction]
#[pyo3(signature = (source, listener, *, seeds, out, force, long, wire, history, spans, rows_per_part, policies))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python method")]
pub fn run(
    py: Python<'_>,
    source: Source,
    listener: &Bound<'_, PyAny>,
    seeds: Option<Vec<u64>>,
    out: PathBuf,
    force: bool,
    long: bool,
    wire: bool,
    history: bool,
    spans: &str,
    rows_per_part: i64,
    policies: Vec<(String, String, Bound<'_, PyAny>)>,
) -> PyResult<Left> {
    let cause = Cause::default();
    let own = own_of(py, policies, &cause)?;
    let failed = own.failed().clone();
    let arguments = RunArguments {
        source: source.arguments(py)?,
        seeds: seeds_of(py, seeds)?,
        output: OutputArguments { out: Some(out), force },
        long,
        wire,
        history,
        own,
        spans: spans.parse::<Keep>().map_err(|error| bad_input(py, format!("spans: {error}")))?,
        rows_per_part: checked(py, "rows_per_part", Some(rows_per_part), checked_rows)?.unwrap_or_default(),
        format: Form::Table,
        export: None,
    };
    let played = play(listener, |console| campaign::run::run(&arguments, console).and_then(left));
    match (played, failed.reason()) {
        (Ok(left), _) => Ok(left),
        (Err(error), Some(reason)) if !is_interrupt(py, &error) => {
            let raised = cause.lock().expect("nothing panics while it holds the cause").take();
            Err(policy_error(py, &reason, raised))
        }
        (Err(error), _) => Err(error),
    }
}

/// The policies of decisions, each with its name.
fn own_of(py: Python<'_>, policies: Vec<(String, String, Bound<'_, PyAny>)>, cause: &Cause) -> PyResult<Own> {
    let mut own = Own::default();
    for (decision, name, function) in policies {
        match decision.as_str() {
            "priority" => choose::<Competitor>(&mut own, name, function, cause),
            "order" => choose::<QueuedJob>(&mut own, name, function, cause),
            "replica" => choose::<ReadPath>(&mut own, name, function, cause),
            "collect" => choose::<CollectionCheck>(&mut own, name, function, cause),
            _ => return Err(bad_input(py, format!("{decision}: nothing that a policy decides"))),
        }
    }
    Ok(own)
}

/// `Experiment.sweep`
#[pyfunction]
#[pyo3(signature = (source, listener, *, seeds, out, force, resume, records, long, wire, jobs, index))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python method")]
pub fn sweep(
    py: Python<'_>,
    source: Source,
    listener: &Bound<'_, PyAny>,
    seeds: Option<Vec<u64>>,
    out: PathBuf,
    force: bool,
    resume: bool,
    records: bool,
    long: bool,
    wire: bool,
    jobs: Option<i64>,
    index: Option<&str>,
) -> PyResult<Left> {
    let share = index.map(str::parse::<Share>).transpose();
    let arguments = SweepArguments {
        source: source.arguments(py)?,
        seeds: seeds_of(py, seeds)?,
        output: OutputArguments { out: Some(out), force },
        resume,
        no_records: !records,
        long,
        wire,
        jobs: checked(py, "jobs", jobs, checked_jobs)?,
        index: share.map_err(|error| bad_input(py, format!("index: {error}")))?,
        watch: false,
        format: Form::Table,
        export: None,
    };
    play(listener, |console| campaign::sweep::sweep(&arguments, console).and_then(left))
}

/// `rackweave.reproduce`
#[pyfunction]
#[pyo3(signature = (selections, listener, *, scale, seeds, out, force, records, jobs, experiments))]
#[allow(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub fn reproduce(
    py: Python<'_>,
    selections: Vec<String>,
    listener: &Bound<'_, PyAny>,
    scale: &str,
    seeds: Option<Vec<u64>>,
    out: PathBuf,
    force: bool,
    records: bool,
    jobs: Option<i64>,
    experiments: Option<PathBuf>,
) -> PyResult<Left> {
    let arguments = ReproduceArguments {
        selections,
        scale: scale_of(py, scale)?,
        output: OutputArguments { out: Some(out), force },
        seeds: seeds_of(py, seeds)?,
        list: false,
        jobs: checked(py, "jobs", jobs, checked_jobs)?,
        no_records: !records,
        experiments,
        export: None,
    };
    play(listener, |console| campaign::reproduce::reproduce(&arguments, console).and_then(left))
}

/// `rackweave.explain`: in words, and as JSON.
#[pyfunction]
pub fn explain(run: PathBuf, listener: &Bound<'_, PyAny>, seed: Option<u64>, worst: i64) -> PyResult<(String, String)> {
    let py = listener.py();
    let worst = checked(py, "worst", Some(worst), |text| number_within(text, 0, 10_000))?.unwrap_or_default();
    let arguments = ExplainArguments { run, seed, worst, svg: None, format: ExplainForm::Text };
    let explained = play(listener, |_| campaign::explain::explain(&arguments))?;
    Ok((explained.shown(ExplainForm::Text), explained.shown(ExplainForm::Json)))
}

/// `rackweave.compare`: the table, the table with all values, and JSON.
#[pyfunction]
pub fn compare(runs: Vec<PathBuf>, listener: &Bound<'_, PyAny>, unpaired: bool) -> PyResult<(String, String, String)> {
    let arguments = CompareArguments {
        runs,
        vary: Vec::new(),
        scale: None::<Scale>,
        settings: Vec::new(),
        seeds: SeedArguments { seed: None, seeds: None },
        output: OutputArguments { out: None, force: false },
        long: false,
        jobs: None,
        unpaired,
        all: false,
        format: Form::Table,
    };
    let comparisons = play(listener, |console| campaign::compare::compare(&arguments, console))?;
    let shown = |form, all| campaign::compare::shown(&comparisons, form, all);
    Ok((shown(Form::Table, false), shown(Form::Table, true), shown(Form::Json, true)))
}

/// The figures of a page as Vega-Lite: pairs of a name and a specification. `summaries` are those
/// of a run or a sweep, as JSON; without them the folder is that of a reproduction.
#[pyfunction]
pub fn drawings(
    py: Python<'_>,
    title: &str,
    folder: PathBuf,
    summaries: Option<&str>,
    experiments: Option<PathBuf>,
) -> PyResult<Vec<(String, String)>> {
    let files = match summaries {
        Some(text) => {
            let points: Vec<Summary> = serde_json::from_str(text).map_err(|error| bad_input(py, error))?;
            Ok(campaign::page::figures(title, &points))
        }
        None => {
            Library::open(experiments.as_deref()).and_then(|library| campaign::reproduce::figures(&folder, &library))
        }
    };
    let files = files.map_err(|failure| raised(py, &failure))?;
    let drawing = |file: PageFile| Some((file.name.strip_suffix(SPECIFICATION)?.to_owned(), file.text));
    Ok(files.into_iter().filter_map(drawing).collect())
}
