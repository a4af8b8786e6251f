//! `rackweave reproduce`: the published experiments, and a verdict on each claim.
//!
//! ```text
//! DIR/index.html                           the report: one page that needs no network
//! DIR/claims.json                          paper, ours, verdict and reason of each claim
//! DIR/results.json                         the same with version and scale, for `rackweave claims --from`
//! DIR/points.json                          the summaries of all points, by experiment
//! DIR/records/edm/fig8a/000-load=0.2/      one a point, as in `play`
//! ```

use crate::arguments::ReproduceArguments;
use crate::campaign::play_all;
use crate::experiments::{Experiment, Library, Measured, design};
use crate::failure::{Failure, bad_input, print};
use crate::interrupt;
use crate::judged::{Results, claims, judge_by};
use crate::load;
use crate::output::{self, Marker, write, write_json};
use crate::parts::FileParts;
use crate::play::{self, Playing, Task};
use record::{ParquetWriter, Summary};
use report::{ClaimResult, Judgement, PageInput, Section, claims_json, page, table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The summaries that there are, by experiment.
type Points = BTreeMap<String, Vec<Summary>>;

/// Plays the chosen experiments and reports on them.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let library = Library::open(arguments.experiments.as_deref())?;
    let campaign = Campaign::read(&library, arguments)?;
    let root = output::place(arguments.output.out.as_ref(), &campaign.folder_name());
    output::create(&root, arguments.output.force, &Marker::new("reproduce"))?;
    interrupt::listen()?;
    let points = campaign.play(arguments, &root)?;
    campaign.report(&points, &root)?;
    interrupt::outcome(&root)
}

/// What was asked for, read and checked.
struct Campaign {
    /// As it was written.
    selection: Option<String>,
    /// The room, if one was named.
    room: Option<&'static str>,
    scale: &'static str,
    /// The seeds of every point, when they were chosen.
    seeds: Option<Vec<u64>>,
    /// What is run.
    chosen: Vec<Experiment>,
    /// What measures the claims that are judged, run or not.
    measured: Vec<Measured>,
}

impl Campaign {
    fn read(library: &Library, arguments: &ReproduceArguments) -> Result<Campaign, Failure> {
        let selection = arguments.selection.as_ref().map(|selection| selection.trim_end_matches('/').to_string());
        let room = selection.as_deref().map(room).transpose()?;
        let names = library.names();
        let chosen = choose(&names, selection.as_deref(), room)?;
        let chosen = chosen.into_iter().map(|name| library.experiment(name, arguments.scale));
        let beside = names.iter().filter(|name| room.is_none_or(|room| in_room(name, room)));
        let campaign = Campaign {
            chosen: chosen.collect::<Result<_, _>>()?,
            measured: beside.map(|name| library.measured(name)).collect::<Result<_, _>>()?,
            scale: arguments.scale.name(),
            seeds: arguments.seeds.chosen(),
            selection,
            room,
        };
        // What the claims' files say is checked before anything is run.
        judge_by(&claims(room), &campaign.measured, &Points::new())?;
        Ok(campaign)
    }

    fn folder_name(&self) -> String {
        let selection = self.selection.as_ref().map(|selection| format!("-{}", selection.replace('/', "-")));
        format!("reproduce{}-{}", selection.unwrap_or_default(), self.scale)
    }

    /// The summaries of what was played; all of it, unless it was interrupted.
    fn play(&self, arguments: &ReproduceArguments, root: &Path) -> Result<Points, Failure> {
        let tasks = |experiment| tasks(experiment, root, self.seeds.as_deref());
        let tasks: Vec<(&str, Task)> = self.chosen.iter().flat_map(tasks).collect();
        let (names, tasks): (Vec<&str>, Vec<Task>) = tasks.into_iter().unzip();
        let rows = (!arguments.no_records).then_some(ParquetWriter::<FileParts>::ROWS_PER_PART);
        let playing = Playing { rows_per_part: rows, wire: false };
        let summaries = play_all(&tasks, arguments.jobs, &playing, &play::meter(&tasks), &|_, _| Ok(()))?;
        let mut points = Points::new();
        for (name, summary) in names.into_iter().zip(summaries) {
            points.entry(name.into()).or_default().extend(summary);
        }
        Ok(points)
    }

    fn report(&self, points: &Points, root: &Path) -> Result<(), Failure> {
        let Judgement { results, problems } = judge_by(&claims(self.room), &self.measured, points)?;
        write_json(&root.join("points.json"), points)?;
        write(&root.join("claims.json"), claims_json(&results))?;
        write_json(&root.join("results.json"), &self.results(&results, points)?)?;
        let about = self.about(&results);
        write(&root.join("index.html"), page(&self.page(results, points)))?;
        for problem in problems {
            eprintln!("warning: {problem}");
        }
        print(&format!("{}\nreport     {}\n", table(&about), root.join("index.html").display()))
    }

    /// Those of the experiments that were run.
    fn results(&self, results: &[ClaimResult], points: &Points) -> Result<Results, Failure> {
        let ids = self.ids();
        let is_about = |result: &&ClaimResult| ids.contains(result.id.as_str());
        let about: Vec<ClaimResult> = results.iter().filter(is_about).cloned().collect();
        let played: usize = points.values().map(Vec::len).sum();
        let planned: usize = self.chosen.iter().map(|experiment| experiment.points.len()).sum();
        let is_partial = played < planned || points.values().flatten().any(|summary| summary.partial);
        Results::of(&about, self.scale, is_partial)
    }

    /// What a reader of the terminal wants to see: of one figure its claims, otherwise all of the rooms that were run.
    fn about(&self, results: &[ClaimResult]) -> Vec<ClaimResult> {
        let ids = self.ids();
        let papers: BTreeSet<&str> = ids.iter().filter_map(|id| id.split('.').next()).collect();
        let is_figure = self.selection.as_ref().is_some_and(|selection| selection.contains('/'));
        let of_room = |id: &str| id.split('.').next().is_some_and(|paper| papers.contains(paper));
        let is_about = |result: &&ClaimResult| ids.contains(result.id.as_str()) || !is_figure && of_room(&result.id);
        results.iter().filter(is_about).cloned().collect()
    }

    /// The claims that the chosen experiments measure.
    fn ids(&self) -> BTreeSet<&str> {
        self.chosen.iter().flat_map(|experiment| self.ids_of(&experiment.name)).collect()
    }

    fn ids_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let measured = self.measured.iter().filter(move |measured| measured.name == name);
        measured.flat_map(|measured| measured.bindings.bindings.iter().map(|binding| binding.id.as_str()))
    }

    fn page(&self, mut results: Vec<ClaimResult>, points: &Points) -> PageInput {
        let section = |experiment: &Experiment| {
            let ids: BTreeSet<&str> = self.ids_of(&experiment.name).collect();
            let claims = results.extract_if(.., |result| ids.contains(result.id.as_str())).collect();
            Section {
                experiment: experiment.name.clone(),
                readme: experiment.readme.clone(),
                points: points.get(&experiment.name).cloned().unwrap_or_default(),
                figures: experiment.figures.clone(),
                claims,
            }
        };
        let sections = self.chosen.iter().map(section).collect();
        let (title, scale) = (self.title(), self.scale.to_string());
        PageInput { title, scale, facts: vec![("Command".into(), self.command())], sections, other_claims: results }
    }

    fn title(&self) -> String {
        format!("{} reproduced by Rackweave", self.selection.as_deref().unwrap_or("Published experiments"))
    }

    fn command(&self) -> String {
        let selection = self.selection.as_ref().map(|selection| format!(" {selection}")).unwrap_or_default();
        let seeds = match self.seeds.as_deref() {
            Some([first, .., last]) => format!(" --seeds {first}..={last}"),
            Some([seed]) => format!(" --seed {seed}"),
            _ => String::new(),
        };
        format!("rackweave reproduce{selection} --scale {}{seeds}", self.scale)
    }
}

fn room(selection: &str) -> Result<&'static str, Failure> {
    let name = selection.split('/').next().unwrap_or_default();
    design(name).map(|(room, _)| room)
}

fn in_room(name: &str, room: &str) -> bool {
    name.split_once('/').is_some_and(|(design, _)| design == room)
}

/// The experiments that were asked for: at least one.
fn choose<'a>(names: &'a [String], selection: Option<&str>, room: Option<&str>) -> Result<Vec<&'a String>, Failure> {
    let figure = selection.and_then(|selection| selection.split_once('/')).map(|(_, figure)| figure);
    let is_chosen = |name: &&String| {
        let Some(room) = room else { return true };
        in_room(name, room) && figure.is_none_or(|figure| **name == format!("{room}/{figure}"))
    };
    let chosen: Vec<&String> = names.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        let selection = selection.unwrap_or("this folder");
        let known = if names.is_empty() { "none".into() } else { names.join(", ") };
        return Err(bad_input(format!("{selection} has no experiment yet; there are: {known}")));
    }
    Ok(chosen)
}

/// The points of an experiment, each with the experiment's name.
fn tasks<'a>(experiment: &'a Experiment, root: &Path, seeds: Option<&[u64]>) -> Vec<(&'a str, Task)> {
    let folder = root.join("records").join(&experiment.name);
    let task = |(index, point): (usize, &spec::Point)| {
        let name = format!("{} {}", experiment.name, load::describe(point)).trim_end().to_string();
        let folder = folder.join(load::folder_name(index, point));
        (experiment.name.as_str(), Task::new(name, folder, point.clone(), seeds))
    };
    experiment.points.iter().enumerate().map(task).collect()
}
