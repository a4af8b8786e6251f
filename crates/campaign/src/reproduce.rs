//! `rackweave reproduce`: the published experiments, and a verdict on each claim.
//!
//! ```text
//! DIR/index.html                           the report, which needs no network
//! DIR/ROOM-FIGURE.html DIR/figures.js      of several experiments: a page each, and its script
//! DIR/claims.json                          paper, ours, verdict and reason of each claim
//! DIR/results.json                         the same with its scale, for `rackweave claims`
//! DIR/points.json                          the summaries of all points, by experiment
//! DIR/records/edm/fig8a/000-load=0.2/      one a point, as in `play`
//! ```

use crate::Done;
use crate::arguments::ReproduceArguments;
use crate::console::Console;
use crate::estimate::{self, Cost};
use crate::experiments::{DESIGNS, Experiment, Library, Measured, design, in_room};
use crate::export;
use crate::failure::{Failure, bad_input};
use crate::judged::{self, Points, Results, Runs, claims, judge_by};
use crate::labels;
use crate::load;
use crate::output::{self, Marker, write, write_json};
use crate::own::Own;
use crate::page::write_pages;
use crate::parallel::play_all;
use crate::play::{self, Played, Playing, Task};
use live::FileParts;
use plan::Scale;
use record::{Keep, Label, ParquetWriter, Summary};
use report::claims::{Claim, Role};
use report::export::exports;
use report::page::{INDEX, PageFile};
use report::settled::{Settled, settle};
use report::{ClaimResult, Judgement, PageInput, Section, claims_json, table};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The seeds with which they are.
const SEEDS_JUDGED: RangeInclusive<u64> = 1..=5;

/// Plays the chosen experiments and reports on them.
///
/// # Errors
/// When nothing is called so, a file of an experiment is not valid, or a point fails.
pub fn reproduce(arguments: &ReproduceArguments, console: &dyn Console) -> Result<Done, Failure> {
    let library = Library::open(arguments.experiments.as_deref())?;
    let campaign = Campaign::read(&library, arguments)?;
    if arguments.list {
        return Ok(Done { root: PathBuf::new(), text: campaign.list(), end: Ok(()) });
    }
    let root = output::place(arguments.output.out.as_ref(), &campaign.folder_name());
    arguments.export.as_ref().map_or(Ok(()), |_| export::check())?;
    output::create(&root, arguments.output.force, &Marker::new("reproduce"))?;
    console.listen()?;
    let points = campaign.play(arguments, &root, console)?;
    let (text, is_partial) = campaign.report(&library, &points, &root, arguments.export.as_ref(), console)?;
    let end = console.stop().outcome(&root).and_then(|()| match is_partial {
        true => Err(Failure::Partial(format!("points ended early; their warnings in {} say why", root.display()))),
        false => Ok(()),
    });
    Ok(Done { root, text, end })
}

/// The figures of a reproduction in its folder: `NAME.csv` and `NAME.vl.json`, with their texts.
///
/// # Errors
/// When the folder holds no reproduction, or the library does not have its experiments.
pub fn figures(root: &Path, library: &Library) -> Result<Vec<PageFile>, Failure> {
    let path = root.join("points.json");
    let wrong = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let points: BTreeMap<String, Vec<Summary>> = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let section = |(experiment, points): (String, Vec<Summary>)| {
        Ok(Section { figures: library.figures(&experiment)?, experiment, points, ..Section::default() })
    };
    let sections = points.into_iter().map(section).collect::<Result<_, Failure>>()?;
    Ok(exports(&PageInput { sections, ..PageInput::default() }))
}

/// The selection, parsed and checked.
struct Campaign {
    /// As they were written.
    selections: Vec<String>,
    /// The rooms that were named; none for all.
    rooms: BTreeSet<&'static str>,
    scale: &'static str,
    /// The seeds of every point, when they were chosen.
    seeds: Option<Vec<u64>>,
    /// The claims that must result from mechanisms.
    validated: BTreeSet<String>,
    /// The experiments to run.
    chosen: Vec<Experiment>,
    /// The measures of all judged claims, run or not.
    measured: Vec<Measured>,
}

impl Campaign {
    fn read(library: &Library, arguments: &ReproduceArguments) -> Result<Campaign, Failure> {
        let selections = arguments.selections.iter().map(|selection| selection.trim_end_matches('/').to_string());
        let selections: Vec<String> = selections.collect();
        let rooms: BTreeSet<&str> = selections.iter().map(|selection| room(selection)).collect::<Result<_, _>>()?;
        let names = library.names();
        let chosen = choose(&names, &selections)?;
        let chosen = chosen.into_iter().map(|name| library.experiment(name, arguments.scale));
        let beside = names.iter().filter(|name| rooms.is_empty() || rooms.iter().any(|room| in_room(name, room)));
        let mut campaign = Campaign {
            chosen: chosen.collect::<Result<_, _>>()?,
            measured: beside.map(|name| library.measured(name)).collect::<Result<_, _>>()?,
            scale: arguments.scale.name(),
            seeds: arguments.seeds.chosen(),
            validated: BTreeSet::new(),
            selections,
            rooms,
        };
        // What the claims' files say is checked before anything is run.
        let claims = campaign.claims();
        judge_by(&claims, &campaign.measured, &Points::new())?;
        campaign.validated =
            claims.into_iter().filter(|claim| claim.role == Role::Validation).map(|claim| claim.id).collect();
        Ok(campaign)
    }

    /// A line for each experiment: its points, its requests, its time as an estimate, its name.
    fn list(&self) -> String {
        let line = |experiment: &Experiment| {
            let seeds = self.seeds_of(&experiment.name);
            let requests = |point: &plan::Point| play::requests_of(point, seeds.as_ref().unwrap_or(&point.plan.seeds));
            let requests: u64 = experiment.points.iter().map(requests).fold(0, u64::saturating_add);
            let title = experiment.readme.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
            let points = experiment.points.iter();
            let points = points.map(|point| (point, seeds.as_deref().unwrap_or(&point.plan.seeds)));
            let time = estimate::seconds(Cost::of(points, false).seconds);
            format!("{:>6} {requests:>13} {time:>18}  {:<28} {title}\n", experiment.points.len(), experiment.name)
        };
        let head =
            format!("{:>6} {:>13} {:>18}  at the scale {}\n", "points", "requests", "time of a core", self.scale);
        head + &self.chosen.iter().map(line).collect::<String>()
    }

    fn folder_name(&self) -> String {
        let selections = self.selections.iter().map(|selection| format!("-{}", selection.replace('/', "-")));
        format!("reproduce{}-{}", selections.collect::<String>(), self.scale)
    }

    /// The claims of the rooms that were named.
    fn claims(&self) -> Vec<Claim> {
        if self.rooms.is_empty() {
            return claims(None);
        }
        self.rooms.iter().flat_map(|room| claims(Some(room))).collect()
    }

    /// The summaries of what was played; all of it, unless it was interrupted.
    fn play(&self, arguments: &ReproduceArguments, root: &Path, console: &dyn Console) -> Result<Points, Failure> {
        let tasks = self.chosen.iter().flat_map(|experiment| {
            let seeds = self.seeds_of(&experiment.name);
            tasks(experiment, root, seeds.as_deref())
        });
        let (names, tasks): (Vec<&str>, Vec<Task>) = tasks.into_iter().unzip();
        let seeds: Vec<usize> = tasks.iter().map(|task| task.seeds.len()).collect();
        estimate::announce(&tasks, !arguments.no_records, console);
        let rows = (!arguments.no_records).then_some(ParquetWriter::<FileParts>::ROWS_PER_PART);
        let playing =
            Playing { rows_per_part: rows, wire: false, history: false, spans: Keep::Nothing, own: Own::default() };
        let played = play_all(&tasks, arguments.jobs, &playing, &play::meter(&tasks, console), &|_, _| Ok(()))?;
        // Those without points have figures of what a tool has measured.
        let by_name = self.chosen.iter().map(|experiment| (experiment.name.as_str(), (Vec::new(), 0)));
        let mut by_name: BTreeMap<&str, (Vec<Played>, usize)> = by_name.collect();
        for ((name, point), seeds) in names.into_iter().zip(played).zip(seeds) {
            let (points, most) = by_name.entry(name).or_default();
            points.extend(point);
            *most = seeds.max(*most);
        }
        Ok(by_name.into_iter().map(|(name, (points, seeds))| (name.into(), Runs::of(points, seeds))).collect())
    }

    /// The seeds of an experiment's points; none for those of its file. Claims that must result
    /// from mechanisms are judged by an interval, which needs several seeds.
    fn seeds_of(&self, name: &str) -> Option<Vec<u64>> {
        let has_interval = || self.ids_of(name).any(|id| self.validated.contains(id));
        match &self.seeds {
            None if self.scale == Scale::Judged.name() && has_interval() => Some(SEEDS_JUDGED.collect()),
            chosen => chosen.clone(),
        }
    }

    /// Writes what came of the points. Returns it in words, and whether some of it is missing.
    fn report(
        &self,
        library: &Library,
        points: &Points,
        root: &Path,
        exported: Option<&PathBuf>,
        console: &dyn Console,
    ) -> Result<(String, bool), Failure> {
        let Judgement { mut results, problems } = judge_by(&self.claims(), &self.measured, points)?;
        let searches = judged::searches(library, None, console)?;
        settle(&mut results, &searches);
        let summaries: BTreeMap<&String, &Vec<Summary>> =
            points.iter().map(|(name, runs)| (name, &runs.points)).collect();
        write_json(&root.join("points.json"), &summaries)?;
        write(&root.join("claims.json"), claims_json(&results))?;
        let shipped = self.results(&results, points);
        write_json(&root.join("results.json"), &shipped)?;
        let about = self.about(&results);
        write_pages(root, &self.page(results, points, searches), exported)?;
        for problem in problems {
            console.say(&format!("warning: {problem}"));
        }
        let others = self.judged_otherwise(library, &about)?;
        let text = format!("{}\n{others}report     {}\n", table(&about), root.join(INDEX).display());
        Ok((text, shipped.partial))
    }

    /// The claims whose shipped verdict is another one, a line each: one seed, or a small run,
    /// cannot repeat it.
    fn judged_otherwise(&self, library: &Library, results: &[ClaimResult]) -> Result<String, Failure> {
        let mut lines = String::new();
        for (room, _) in DESIGNS {
            let Some((name, text)) = library.results(room) else { continue };
            let shipped = Results::parse(&name, text)?;
            for result in results.iter().filter(|result| result.ours.is_some()) {
                let Some(known) = shipped.claims.iter().find(|known| known.id == result.id) else { continue };
                if known.verdict != result.verdict && known.paper == result.paper {
                    let (here, there) = (result.verdict.name(), known.verdict.name());
                    lines += &format!(
                        "not repeated by this run: {} {here} here, {there} at the scale {} with {} seeds\n",
                        result.id, shipped.scale, known.seeds
                    );
                }
            }
        }
        Ok(lines)
    }

    /// The results of the experiments that were run.
    fn results(&self, results: &[ClaimResult], points: &Points) -> Results {
        let ids = self.ids();
        let is_about = |result: &&ClaimResult| ids.contains(result.id.as_str());
        let about: Vec<ClaimResult> = results.iter().filter(is_about).cloned().collect();
        let played: usize = points.values().map(|runs| runs.points.len()).sum();
        let summaries = || points.values().flat_map(|runs| &runs.points);
        let planned: usize = self.chosen.iter().map(|experiment| experiment.points.len()).sum();
        let is_partial = played < planned || summaries().any(|summary| summary.partial);
        Results::of(&about, self.scale, is_partial)
    }

    /// The output on a terminal: of one figure its claims, otherwise all of the rooms that were
    /// run.
    fn about(&self, results: &[ClaimResult]) -> Vec<ClaimResult> {
        let ids = self.ids();
        let papers: BTreeSet<&str> = ids.iter().filter_map(|id| id.split('.').next()).collect();
        let is_figure = self.selections.iter().any(|selection| selection.contains('/'));
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

    fn page(&self, mut results: Vec<ClaimResult>, points: &Points, searches: Vec<Settled>) -> PageInput {
        let section = |experiment: &Experiment| {
            let ids: BTreeSet<&str> = self.ids_of(&experiment.name).collect();
            let claims = results.extract_if(.., |result| ids.contains(result.id.as_str())).collect();
            Section {
                experiment: experiment.name.clone(),
                readme: experiment.readme.clone(),
                points: points.get(&experiment.name).map(|runs| runs.points.clone()).unwrap_or_default(),
                figures: experiment.figures.clone(),
                claims,
                pictures: Vec::new(),
            }
        };
        let sections = self.chosen.iter().map(section).collect();
        let (title, scale) = (self.title(), self.scale.to_string());
        let facts = vec![("Command".into(), self.command())];
        PageInput { title, scale, facts, sections, searches, refresh: None }
    }

    fn title(&self) -> String {
        let what = if self.selections.is_empty() { "Published experiments".into() } else { self.selections.join(", ") };
        format!("{what} reproduced by Rackweave")
    }

    fn command(&self) -> String {
        let selection: String = self.selections.iter().map(|selection| format!(" {selection}")).collect();
        let seeds = match self.seeds.as_deref() {
            Some([first, .., last]) => format!(" --seeds {first}..={last}"),
            Some([seed]) => format!(" --seed {seed}"),
            _ => String::new(),
        };
        format!("rackweave reproduce{selection} --scale {}{seeds}", self.scale)
    }
}

/// The experiments most like `what`, which there is none of.
fn nearest<'a>(names: &'a [String], what: &str) -> Vec<&'a str> {
    /// Number of named experiments.
    const NAMED: usize = 5;
    let likeness = |name: &str| (strsim::jaro_winkler(what, name) * 1e6) as u64;
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_by_key(|name| Reverse(likeness(name)));
    names.truncate(NAMED);
    names
}

fn room(selection: &str) -> Result<&'static str, Failure> {
    let name = selection.split('/').next().unwrap_or_default();
    design(name).map(|(room, _)| room)
}

/// The selected experiments: at least one.
fn choose<'a>(names: &'a [String], selections: &[String]) -> Result<Vec<&'a String>, Failure> {
    let nothing = |what: &str| match nearest(names, what)[..] {
        [] => bad_input(format!("{what} has no experiment, and there is none")),
        ref near => bad_input(format!(
            "{what} has no experiment; the nearest are {}; `rackweave reproduce --list` names all",
            near.join(", ")
        )),
    };
    let mut chosen = BTreeSet::new();
    for selection in selections {
        let found: Vec<usize> = places(names, selection)?;
        if found.is_empty() {
            return Err(nothing(selection));
        }
        chosen.extend(found);
    }
    match (selections.is_empty(), names.is_empty()) {
        (true, true) => Err(nothing("this folder")),
        (true, false) => Ok(names.iter().collect()),
        (false, _) => Ok(chosen.into_iter().map(|place| &names[place]).collect()),
    }
}

/// The indices of the experiments of one selection.
fn places(names: &[String], selection: &str) -> Result<Vec<usize>, Failure> {
    let room = room(selection)?;
    let figure = selection.split_once('/').map(|(_, figure)| figure);
    let is_meant =
        |name: &String| in_room(name, room) && figure.is_none_or(|figure| *name == format!("{room}/{figure}"));
    Ok(names.iter().enumerate().filter(|(_, name)| is_meant(name)).map(|(place, _)| place).collect())
}

/// The points of an experiment, each with the experiment's name.
fn tasks<'a>(experiment: &'a Experiment, root: &Path, seeds: Option<&[u64]>) -> Vec<(&'a str, Task)> {
    let folder = root.join("records").join(&experiment.name);
    let labels = labels::of_points(&experiment.points);
    let task = |(index, (point, labels)): (usize, (&plan::Point, Vec<Label>))| {
        let name = format!("{} {}", experiment.name, load::describe(point)).trim_end().to_string();
        let folder = folder.join(load::folder_name(index, point));
        (experiment.name.as_str(), Task::new(name, folder, point.clone(), labels, seeds))
    };
    experiment.points.iter().zip(labels).enumerate().map(task).collect()
}
