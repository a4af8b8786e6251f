//! `rackweave compare`: what differs between runs, or between variants of one experiment.

use crate::arguments::{CompareArguments, Form, Setting, SourceArguments, Variation};
use crate::console::Console;
use crate::failure::{Failure, bad_input};
use crate::labels;
use crate::load;
use crate::output::{self, Marker, write};
use crate::own::Own;
use crate::parallel::play_all;
use crate::play::{self, Playing, Task};
use crate::results::Run;
use plan::Point;
use record::{Keep, ParquetWriter, Row};
use report::compare::{self, Comparison, PairError, Pairing, SeedPair};
use std::path::Path;

/// Compares runs, or plays variants and compares those.
///
/// # Errors
/// When fewer than two runs are given, or they cannot be compared.
pub fn compare(arguments: &CompareArguments, console: &dyn Console) -> Result<Vec<Comparison>, Failure> {
    let runs = match &arguments.vary[..] {
        [] => opened(arguments)?,
        _ => played(arguments, console)?,
    };
    let [first, others @ ..] = &runs[..] else { return Err(too_few(arguments, runs.len())) };
    if others.is_empty() {
        return Err(too_few(arguments, runs.len()));
    }
    let pairing = if arguments.unpaired { Pairing::Apart } else { Pairing::ByRequest };
    let comparisons: Vec<Comparison> =
        others.iter().map(|other| one(first, other, pairing)).collect::<Result<_, _>>()?;
    if !arguments.vary.is_empty() {
        write(&root(arguments).join("compare.json"), compare::json(&comparisons))?;
    }
    Ok(comparisons)
}

/// Comparisons in one of the forms; the table has all spans and metrics with `all`.
pub fn shown(comparisons: &[Comparison], form: Form, all: bool) -> String {
    match form {
        Form::Json => compare::json(comparisons),
        Form::Csv => compare::csv(comparisons),
        Form::Table => {
            let tables = comparisons.iter().map(|comparison| compare::text(comparison, all));
            tables.collect::<Vec<_>>().join("\n")
        }
    }
}

fn too_few(arguments: &CompareArguments, runs: usize) -> Failure {
    let given: Vec<String> = arguments.runs.iter().map(|path| path.display().to_string()).collect();
    bad_input(format!(
        "{}: {runs} run to compare, at least two are needed: give folders of runs, the folder of a sweep, or an \
         experiment file with --vary KEY=A,B",
        given.join(", ")
    ))
}

/// The runs of the given folders; those of a sweep are all its points.
fn opened(arguments: &CompareArguments) -> Result<Vec<Run>, Failure> {
    if arguments.output.out.is_some() || arguments.output.force {
        return Err(bad_input("--out and --force go with --vary: comparing runs that exist writes nothing"));
    }
    if let Some(file) = arguments.runs.iter().find(|path| path.is_file()) {
        return Err(bad_input(format!(
            "{}: this is a file; `--vary KEY=A,B` plays and compares variants of an experiment file",
            file.display()
        )));
    }
    let found = arguments.runs.iter().map(|path| Run::all_below(path));
    Ok(found.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Plays each combination of the varied values; the first is what the others are compared with.
fn played(arguments: &CompareArguments, console: &dyn Console) -> Result<Vec<Run>, Failure> {
    let [file] = &arguments.runs[..] else { return Err(bad_input("--vary takes one experiment file")) };
    let root = root(arguments);
    let points = variants(arguments, file)?;
    if points.len() < 2 {
        return Err(too_few(arguments, points.len()));
    }
    let (labels, seeds) = (labels::of_points(&points), arguments.seeds.chosen());
    let task = |(index, (point, labels))| {
        let folder = root.join("points").join(load::folder_name(index, &point));
        Task::new(load::describe(&point), folder, point, labels, seeds.as_deref())
    };
    let tasks: Vec<Task> = points.into_iter().zip(labels).enumerate().map(task).collect();
    play::refuse_endless(&tasks, arguments.long)?;
    output::create(&root, arguments.output.force, &Marker::new("compare"))?;
    console.listen()?;
    let meter = play::meter(&tasks, console);
    let rows_per_part = Some(ParquetWriter::<live::FileParts>::ROWS_PER_PART);
    let playing = Playing { rows_per_part, wire: false, history: false, spans: Keep::Nothing, own: Own::default() };
    play_all(&tasks, arguments.jobs, &playing, &meter, &|_, _| Ok(()))?;
    console.stop().outcome(&root)?;
    tasks.iter().map(|task| Run::open(&task.folder)).collect()
}

fn root(arguments: &CompareArguments) -> std::path::PathBuf {
    let name = arguments.runs.first().map_or_else(String::new, |file| load::stem(file));
    output::place(arguments.output.out.as_ref(), &format!("compare-{name}"))
}

/// A point for each combination of values.
fn variants(arguments: &CompareArguments, file: &Path) -> Result<Vec<Point>, Failure> {
    let mut combinations: Vec<Vec<Setting>> = vec![Vec::new()];
    for Variation { key, values } in &arguments.vary {
        let extended = |settings: &Vec<Setting>, value: &String| {
            settings.iter().cloned().chain([Setting(key.clone(), value.clone())]).collect()
        };
        let each = |settings: &Vec<Setting>| values.iter().map(|value| extended(settings, value)).collect::<Vec<_>>();
        combinations = combinations.iter().flat_map(each).collect();
    }
    let point = |varied: Vec<Setting>| {
        let settings = arguments.settings.iter().chain(&varied).cloned().collect();
        let source = SourceArguments { file: file.into(), text: None, scale: arguments.scale, settings };
        let mut point = load::only_point(&source)?;
        point.labels.extend(varied.into_iter().map(|Setting(key, value)| (key, value)));
        Ok(point)
    };
    combinations.into_iter().map(point).collect()
}

/// Compares one run with the first, over the seeds that both have.
fn one(first: &Run, second: &Run, pairing: Pairing) -> Result<Comparison, Failure> {
    let seeds: Vec<u64> = first.seeds().filter(|seed| second.seeds().any(|other| other == *seed)).collect();
    let names = [first.name(), second.name()];
    if seeds.is_empty() {
        return Err(bad_input(format!(
            "{} and {}: no seed in common: {:?} and {:?}",
            names[0],
            names[1],
            first.seeds().collect::<Vec<_>>(),
            second.seeds().collect::<Vec<_>>()
        )));
    }
    let pairs = seeds.iter().map(|seed| pair(first, second, *seed, pairing)).collect::<Result<Vec<_>, _>>()?;
    let mut comparison = Comparison::of(&names[0], &names[1], &pairs, pairing);
    let unused = first.seeds().chain(second.seeds()).filter(|seed| !seeds.contains(seed)).count();
    if unused > 0 {
        comparison.warnings.push(format!("{unused} seeds are in one run only, and left out"));
    }
    Ok(comparison)
}

fn pair(first: &Run, second: &Run, seed: u64, pairing: Pairing) -> Result<SeedPair, Failure> {
    let summaries = [first.summary_of(seed)?, second.summary_of(seed)?];
    let own = |each: &mut dyn FnMut(&[Row])| first.each_part(seed, each);
    let others = |each: &mut dyn FnMut(&[Row])| second.each_part(seed, each);
    compare::pair(seed, [&summaries[0], &summaries[1]], [&own, &others], pairing).map_err(|error| match error {
        PairError::Rows(failure) => failure,
        PairError::Arrivals(differ) => bad_input(format!(
            "{} and {}: {differ}; arrivals of a closed loop follow its answers, and a load follows the design: \
             --unpaired compares the runs as they are",
            first.name(),
            second.name()
        )),
        other => bad_input(other),
    })
}
