//! `rackweave settle`: whether the parameters that a paper does not print decide a claim.
//!
//! ```text
//! DIR/edm-fig6.jsonl      each point of the box that was tried, with the claims' values
//! DIR/settled.json        what they say of each claim: where it holds, or what comes nearest
//! ```

use crate::VERSION;
use crate::arguments::SettleArguments;
use crate::experiments::{Library, Measured, design, in_room};
use crate::failure::{Failure, bad_input, failed_at, print};
use crate::interrupt;
use crate::judged::{Points, Runs, claims, judge_by};
use crate::output::{self, Marker, write_json};
use campaign::terminal::say;
use plan::Scale;
use rayon::prelude::*;
use record::{Discard, Summary};
use report::Value;
use report::claims::Claim;
use report::settle::{Answer, Search, SettleBox, Tried};
use report::settled::{Settled, Unprinted};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sim::RunOptions;
use sim::drive::Unobserved;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Points that are searched around the nearest one at a time: then the nearest is chosen anew.
const AROUND_AT_ONCE: u32 = 8;

/// Searches the boxes of a design, of an experiment or of a claim.
pub fn settle(arguments: &SettleArguments) -> Result<(), Failure> {
    let library = Library::open(arguments.experiments.as_deref())?;
    let boxes = boxes(&library, arguments)?;
    let hunts: Vec<Hunt<'_>> = boxes.iter().map(|one| Hunt::new(&library, one, arguments)).collect::<Result<_, _>>()?;
    let root = output::place(arguments.out.as_ref(), &format!("settle-{}", arguments.selection.replace('/', "-")));
    if !(arguments.resume && root.is_dir()) {
        output::create(&root, false, &Marker::new("settle"))?;
    }
    interrupt::listen()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.jobs.unwrap_or(0)).build();
    let pool = pool.map_err(|error| Failure::Failed(format!("threads cannot be started: {error}")))?;
    let mut settled = Vec::new();
    for hunt in &hunts {
        let tried = pool.install(|| hunt.search(&root, arguments))?;
        settled.push(hunt.settled(tried));
    }
    write_json(&root.join("settled.json"), &settled)?;
    print(&settled.iter().map(text).collect::<String>())?;
    interrupt::outcome(&root)
}

/// A box with its place in the library.
struct Found {
    /// The experiment beside which it lies, `edm/fig6`.
    experiment: String,
    settle: SettleBox,
    /// The claims of its design.
    claims: Vec<Claim>,
}

/// The boxes of a selection: a design, an experiment, or a claim.
fn boxes(library: &Library, arguments: &SettleArguments) -> Result<Vec<Found>, Failure> {
    let selection = arguments.selection.trim_end_matches('/');
    let is_claim = claims(None).iter().any(|claim| claim.id == selection);
    let name = if is_claim { selection.split('.').next() } else { selection.split('/').next() };
    let (room, _) = design(name.unwrap_or_default())?;
    let known = claims(Some(room));
    let figure = selection.split_once('/').filter(|_| !is_claim).map(|(_, figure)| format!("{room}/{figure}"));
    let mut found = Vec::new();
    for (experiment, file, text) in library.boxes(room) {
        let settle = report::settle::parse(&file, text, &known).map_err(bad_input)?;
        let is_meant = figure.as_ref().is_none_or(|figure| *figure == experiment)
            && (!is_claim || settle.claims.iter().any(|claim| claim == selection));
        if is_meant {
            found.push(Found { experiment, settle, claims: known.clone() });
        }
    }
    if found.is_empty() {
        let reason = "no settle.toml is about it; a claim that hangs on a number which nobody printed needs one";
        return Err(bad_input(format!("{selection}: {reason}")));
    }
    Ok(found)
}

/// The search of a box.
struct Hunt<'a> {
    found: &'a Found,
    library: &'a Library,
    search: Search<'a>,
    /// The experiments that measure its claims.
    measured: Vec<Measured>,
    scale: Scale,
    fingerprint: String,
}

/// A line of the file of tried points.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head { fingerprint: String },
    Point { index: u32, tried: Tried },
}

impl<'a> Hunt<'a> {
    /// Refuses, before anything is played, parameters that no experiment of the claims has, and
    /// boxes in which no point makes a plan.
    fn new(library: &'a Library, found: &'a Found, arguments: &SettleArguments) -> Result<Hunt<'a>, Failure> {
        let room = found.experiment.split('/').next().unwrap_or_default();
        let names = library.names().into_iter().filter(|name| in_room(name, room));
        let measured = names.map(|name| library.measured(&name)).collect::<Result<Vec<_>, _>>()?;
        let is_about = |measured: &Measured| {
            measured.bindings.bindings.iter().any(|binding| found.settle.claims.contains(&binding.id))
        };
        let measured: Vec<Measured> = measured.into_iter().filter(is_about).collect();
        let texts: Vec<_> = measured.iter().map(|measured| library.texts(&measured.name)).collect();
        let (scale, points) = (arguments.scale.name(), arguments.points);
        let decides = format!("{VERSION} {scale} {points} {:?} {texts:?}", found.settle);
        let fingerprint = Sha256::digest(decides.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let search = Search::new(&found.settle, &found.claims, points);
        let hunt = Hunt { found, library, search, measured, scale: arguments.scale, fingerprint };
        hunt.check(arguments.points)?;
        Ok(hunt)
    }

    fn check(&self, points: u32) -> Result<(), Failure> {
        let settle = &self.found.settle;
        for parameter in &settle.parameters {
            let ends = [0.0, 1.0 - f64::EPSILON]
                .map(|place| self.pairs(&[(parameter.key.clone(), parameter.at(place))].into()));
            let plans = ends.map(|setting| self.plans(&setting).err());
            if let [Some(error), Some(_)] = plans {
                return Err(bad_input(format!("{}:{}: {}: {error}", settle.file, parameter.line, parameter.key)));
            }
        }
        let makes_plan = |index| self.plans(&self.pairs(&self.search.settings(&self.search.cover(index)))).err();
        let errors: Option<Vec<Failure>> = (0..points).map(makes_plan).collect();
        match errors.as_deref() {
            Some([first, ..]) => {
                Err(bad_input(format!("{}: none of {points} points of this box makes a plan: {first}", settle.file)))
            }
            _ => Ok(()),
        }
    }

    /// The plans of all experiments with some settings.
    fn plans(&self, settings: &[(String, String)]) -> Result<BTreeMap<String, Vec<plan::Point>>, Failure> {
        let points = |measured: &Measured| {
            Ok((measured.name.clone(), self.library.points_with(&measured.name, self.scale, settings)?))
        };
        self.measured.iter().map(points).collect()
    }

    /// Plays the box: first the defaults, then points all over it, then around the nearest.
    fn search(&self, root: &Path, arguments: &SettleArguments) -> Result<Vec<Tried>, Failure> {
        let path = root.join(format!("{}.jsonl", self.found.experiment.replace('/', "-")));
        let mut known = self.read(&path)?;
        let file = Mutex::new(self.open(&path, known.is_empty())?);
        let play = |(index, places): (u32, Vec<f64>)| {
            if interrupt::stopped() {
                return Ok(None);
            }
            let tried = self.play(places).inspect_err(|_| interrupt::stop())?;
            let line = serde_json::to_string(&Line::Point { index, tried: tried.clone() });
            let line = line.map_err(|error| Failure::Failed(error.to_string()))?;
            let mut file = file.lock().expect("no thread panics while it writes");
            writeln!(file, "{line}").and_then(|()| file.flush()).map_err(failed_at(&path))?;
            say(format_args!("{}: {} points tried", self.found.experiment, index + 1));
            Ok::<_, Failure>(Some((index, tried)))
        };
        let cover = (0..=arguments.points)
            .map(|index| (index, index.checked_sub(1).map_or(Vec::new(), |at| self.search.cover(at))));
        let left: Vec<(u32, Vec<f64>)> = cover.filter(|(index, _)| !known.contains_key(index)).collect();
        let played: Vec<_> = left.into_par_iter().map(play).collect::<Result<_, _>>()?;
        known.extend(played.into_iter().flatten());
        let mut next = arguments.points + 1;
        let end = next + arguments.around;
        while next < end && !interrupt::stopped() {
            let until = end.min(next + AROUND_AT_ONCE);
            // What is chosen does not depend on what a resumed search has found beyond it.
            let before: Vec<Tried> = known.range(..next).map(|(_, tried)| tried.clone()).collect();
            let Some(middle) = self.search.best(&before).map(|tried| tried.places.clone()) else { break };
            let around = (next..until).map(|index| (index, self.search.near(&middle, index)));
            let left: Vec<(u32, Vec<f64>)> = around.filter(|(index, _)| !known.contains_key(index)).collect();
            let played: Vec<_> = left.into_par_iter().map(play).collect::<Result<_, _>>()?;
            known.extend(played.into_iter().flatten());
            next = until;
        }
        Ok(known.into_values().collect())
    }

    /// The points that a search before has left; a file of another search is bad input.
    fn read(&self, path: &PathBuf) -> Result<BTreeMap<u32, Tried>, Failure> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(BTreeMap::new()) };
        // The last line may have been cut with the search.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let mut next = || lines.next().map(|(number, line)| (number, serde_json::from_str::<Line>(line)));
        match next() {
            Some((_, Ok(Line::Head { fingerprint }))) if fingerprint == self.fingerprint => {}
            _ => {
                let reason =
                    "another search: box, experiments, --scale, --points or version differ; give another --out";
                return Err(bad_input(format!("{} holds {reason}", path.display())));
            }
        }
        let mut known = BTreeMap::new();
        while let Some((number, line)) = next() {
            match line {
                Ok(Line::Point { index, tried }) => drop(known.insert(index, tried)),
                _ => return Err(bad_input(format!("{}:{}: this is no tried point", path.display(), number + 1))),
            }
        }
        fs::write(path, format!("{whole}\n")).map_err(failed_at(path))?;
        Ok(known)
    }

    fn open(&self, path: &Path, is_new: bool) -> Result<File, Failure> {
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed_at(path))?;
        let is_empty = file.metadata().map_err(failed_at(path))?.len() == 0;
        if is_new && is_empty {
            let head = Line::Head { fingerprint: self.fingerprint.clone() };
            let head = serde_json::to_string(&head).map_err(|error| Failure::Failed(error.to_string()))?;
            writeln!(file, "{head}").map_err(failed_at(path))?;
        }
        Ok(file)
    }

    /// The values of the claims at a point of the box; at the defaults where it has no places.
    fn play(&self, places: Vec<f64>) -> Result<Tried, Failure> {
        let settings = self.search.settings(&places);
        let mut tried = Tried { places, settings, values: BTreeMap::new(), error: None };
        let plans = match self.plans(&self.pairs(&tried.settings)) {
            Ok(plans) => plans,
            Err(error) => {
                tried.error = Some(error.to_string());
                return Ok(tried);
            }
        };
        let run = |point: &plan::Point| {
            let options = RunOptions { version: VERSION.into(), labels: point.labels.clone(), ..RunOptions::default() };
            sim::run(&point.plan, &options, &mut Discard, &mut Unobserved).map(|outcomes| outcomes.summary)
        };
        let mut points = Points::new();
        for (name, plans) in plans {
            let played: Result<Vec<Summary>, _> = plans.par_iter().map(run).collect();
            match played {
                Ok(summaries) => drop(points.insert(name, Runs { points: summaries, by_seed: Vec::new() })),
                Err(error) => tried.error = Some(format!("{name}: {error}")),
            }
        }
        let judged = judge_by(&self.found.claims, &self.measured, &points)?;
        let wanted = |id: &String| self.found.settle.claims.contains(id);
        let values = judged.results.into_iter().filter(|result| wanted(&result.id));
        tried.values = values.filter_map(|result| Some((result.id, result.ours?))).collect();
        Ok(tried)
    }

    /// The settings with the keys that go along.
    fn pairs(&self, settings: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let keys = self.found.settle.parameters.iter().flat_map(|parameter| {
            let value = settings.get(&parameter.key);
            parameter.keys().filter_map(move |key| Some((key.clone(), value?.clone())))
        });
        let set = self.found.settle.set.iter().map(|(key, value)| (key.clone(), value.clone()));
        set.chain(keys).collect()
    }

    fn settled(&self, tried: Vec<Tried>) -> Settled {
        Settled {
            experiment: self.found.experiment.clone(),
            scale: self.scale.name().into(),
            version: VERSION.into(),
            parameters: self.found.settle.parameters.iter().map(Unprinted::from).collect(),
            set: self.found.settle.set.clone(),
            answers: self.search.answers(&tried),
            together: self.search.best(&tried).map(|point| point.settings.clone()),
            points: tried,
        }
    }
}

fn text(settled: &Settled) -> String {
    let mut text = format!("{} at the scale {}\n", settled.experiment, settled.scale);
    for answer in &settled.answers {
        let Answer { accept, ours, agrees, .. } = answer;
        let ours = ours.as_ref().map_or("no value".into(), Value::show);
        let verdict = if *agrees { "agrees" } else { "differs" };
        text += &format!("{}: {ours} at the defaults {verdict} with {accept}; ", answer.claim);
        text += &match (&answer.nearest, answer.held) {
            (None, _) => format!("none of {} points has a value\n", answer.points),
            (Some(nearest), 0) => format!(
                "nowhere in this box of {} points{}: the nearest is {} at {}\n",
                answer.points,
                if answer.alone > 0 { " without breaking another claim" } else { "" },
                nearest.value.show(),
                list(nearest.settings.iter().map(|(key, value)| format!("{key} = {value}")))
            ),
            (Some(_), held) => format!(
                "holds at {held} of {} points, within {}\n",
                answer.points,
                list(answer.region.iter().map(|(key, values)| format!("{key} {}", values.join(between(values)))))
            ),
        };
        let shares = answer.sensitivity.iter().map(|(key, share)| format!("{key} {:.0} %", 100.0 * share));
        text += &format!("  of its variance each explains alone: {}\n", list(shares));
    }
    if let Some(together) = &settled.together {
        let settings = list(together.iter().map(|(key, value)| format!("{key} = {value}")));
        text += &format!("most claims hold together at {settings}\n");
    }
    text + "\n"
}

/// The word between the ends of a range, or between choices.
fn between(values: &[String]) -> &'static str {
    let is_number = |value: &String| value.trim_start_matches('"').starts_with(|letter: char| letter.is_ascii_digit());
    match (values.iter().all(is_number), values.len()) {
        (true, 2) => " to ",
        (true, _) => ", ",
        (false, _) => " or ",
    }
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
