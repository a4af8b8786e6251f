//! A whole experiment file: one plan, or the plans of a sweep.

use crate::check::{Completeness, check};
use crate::document::{Entry, Node, Value};
use crate::error::{Place, PlanError, PlanErrors, Problem, Problems};
use crate::plan::Plan;
use crate::resolve::resolve;
use crate::schema::schema;
use crate::soundness::Soundness;
use crate::sources::{Files, NoFiles, Sources, Within};
use crate::sweep::{Axis, AxisPoint, Setting, Sweep};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// How large an experiment is run, beside the size that its file gives itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Minutes on a laptop: shows the shape.
    Quick,
    /// The size at which claims are judged, where quick is too small for that; otherwise quick.
    Judged,
    /// What the paper ran.
    Paper,
}

impl Scale {
    /// Every scale.
    pub const ALL: [Scale; 3] = [Scale::Quick, Scale::Judged, Scale::Paper];
    /// The name in files and options.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Judged => "judged",
            Scale::Paper => "paper",
        }
    }
}

impl FromStr for Scale {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Scale, Problem> {
        let allowed = || Scale::ALL.iter().map(|scale| scale.name().to_string()).collect();
        Scale::ALL.into_iter().find(|scale| scale.name() == text).ok_or_else(|| Problem::not_allowed(text, allowed()))
    }
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Axis name to value, as written; empty without a sweep.
    pub labels: BTreeMap<String, String>,
    /// What to run.
    pub plan: Plan,
}

/// A checked experiment file. Every one of its points is known to make a plan, at every scale.
#[derive(Clone, Debug)]
pub struct Experiment {
    name: String,
    /// Everything but the sweep and the scales.
    base: Node,
    sweep: Sweep,
    /// Settings from outside that no axis takes up; they hold at every scale.
    outside: Vec<Setting>,
    sources: Sources,
    schema: Json,
    /// What is wrong with the file by itself.
    soundness: Soundness,
}

/// Reads and checks an experiment file.
///
/// `name` is for messages; `files` opens the files that the file refers to (size distributions,
/// traces) and is not used after this call. `overrides` are key paths with values from outside
/// (`("run.requests", "1000")`, `("fabric.rate", "25Gbps")`), written in TOML or as bare text; they
/// win over the file and its scales, and fix an axis of the sweep when they name its key. An empty
/// value takes the key out of the file.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of
/// range, impossible combinations, missing or malformed files; at each point of the sweep and at
/// each scale.
pub fn parse(
    name: &str,
    text: &str,
    files: &dyn Files,
    overrides: &[(String, String)],
) -> Result<Experiment, PlanErrors> {
    let schema = schema();
    let mut problems = Problems::new(name, None);
    let mut base = Node::parse(text, &mut problems);
    if problems.errors().iter().any(|error| !is_harmless(&error.problem)) {
        return Err(PlanErrors::new(problems.into_errors()));
    }
    heal(&mut base, overrides, &mut problems);
    check(&schema, &base, Completeness::Partial, &mut problems);
    let mut soundness = Soundness::default();
    let read = read_sweep(&mut base, &schema, &mut problems, &mut soundness);
    // What settings from outside mean depends on the sweep.
    let (mut sweep, overrides) = read.map_or((Sweep::default(), &[][..]), |sweep| (sweep, overrides));
    let known = problems.errors().len();
    let outside = sweep.apply_overrides(overrides, &schema, &mut problems);
    if let Some(place) = sweep.varies("files") {
        let reason = "files are read once for all points and scales: it cannot be varied".to_owned();
        problems.add(place, "files", Problem::Conflict(reason));
    }
    problems.errors()[known..].iter().for_each(|error| soundness.break_key(&error.key));
    let sources = Sources::default();
    let mut experiment = Experiment { name: name.into(), base, sweep, outside, sources, schema, soundness };
    let outside = experiment.outside.iter().rfind(|setting| setting.path == "files");
    let folder = outside.map(|setting| &setting.value).or_else(|| experiment.base.child("files"));
    let folder = folder.and_then(Node::text).unwrap_or_default().to_owned();
    experiment.check_all(&Within { files, folder: &folder }, problems.into_errors())?;
    Ok(experiment)
}

/// Whether the rest of a file can be read beside a mistake of its syntax.
fn is_harmless(problem: &Problem) -> bool {
    !matches!(problem, Problem::Syntax { reason } if !reason.starts_with("duplicate key"))
}

/// Takes what is wrong by the schema out of a file, and the sweep. `None` for one with a mistake:
/// nothing is known of the keys that it would have set.
fn read_sweep(base: &mut Node, schema: &Json, problems: &mut Problems, soundness: &mut Soundness) -> Option<Sweep> {
    let parts = ["sweep", "scale"];
    let is_of_sweep = |error: &PlanError| parts.contains(&error.key.split('.').next().unwrap_or_default());
    let is_wrong = problems.errors().iter().any(is_of_sweep);
    let touched: Vec<String> = parts.iter().filter_map(|part| base.child(part)).flat_map(paths_in).collect();
    soundness.take_out(base, problems.errors());
    let known = problems.errors().len();
    let sweep = if is_wrong { Sweep::default() } else { Sweep::take(base, schema, problems) };
    if !is_wrong && problems.errors().len() == known {
        return Some(sweep);
    }
    parts.iter().for_each(|part| drop(base.remove(part)));
    touched.iter().for_each(|path| soundness.break_key(path));
    None
}

/// Every key path that a sweep or a scale may set, and some that mean nothing.
fn paths_in(node: &Node) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in node.entries() {
        let below = paths_in(&entry.node);
        paths.extend(below.iter().map(|path| format!("{}.{path}", entry.key)));
        paths.extend(below);
        paths.push(entry.key.clone());
    }
    paths.extend(node.items().iter().flat_map(paths_in));
    paths
}

/// Settings from outside replace values of the file before it is checked, so that a bad value can
/// be healed. One without a value takes the key away.
fn heal(base: &mut Node, overrides: &[(String, String)], problems: &mut Problems) {
    for (path, text) in overrides.iter().map(|(path, text)| (path.trim(), text.trim())) {
        if !text.is_empty() {
            if base.at(path).is_some() {
                base.set(path, Node::parse_setting(text));
            }
        } else if !base.take_out(path) {
            let reason = "this takes the key away, and the file does not have it".to_owned();
            problems.add(Place::CommandLine, path, Problem::Conflict(reason));
        }
    }
}

impl Experiment {
    /// The runs at `scale`, in the order of the sweep (its first axis varies slowest); one when
    /// there is no sweep. A scale that the file does not mention is the file's own size.
    pub fn points(&self, scale: Option<Scale>) -> Vec<Point> {
        let mut sources = self.sources.clone();
        let points = self.resolve_all(scale, &NoFiles, &mut sources);
        points.into_iter().map(|point| point.expect("parse has checked every point at every scale")).collect()
    }

    /// The axes of the sweep at the file's own size, in order, each with the labels of its points.
    pub fn axes(&self) -> Vec<(String, Vec<String>)> {
        let labels = |axis: &Axis| axis.points.iter().map(|point| point.label.clone()).collect();
        self.sweep.axes.iter().map(|axis| (axis.name.clone(), labels(axis))).collect()
    }

    /// Whether a plan of it refers to a file.
    pub fn reads_files(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Adds what is wrong with the points to `errors`, which are known of the file by itself.
    fn check_all(&mut self, files: &dyn Files, mut errors: Vec<PlanError>) -> Result<(), PlanErrors> {
        let (mut sources, mut is_whole) = (Sources::default(), true);
        for scale in self.scales() {
            let points = self.resolve_all(scale, files, &mut sources);
            is_whole &= points.iter().all(Result::is_ok);
            errors.extend(points.into_iter().filter_map(Result::err).flatten());
        }
        if !is_whole && errors.is_empty() {
            let mut problems = Problems::new(&self.name, None);
            let reason = "no plan follows from this file, for a reason that rackweave does not name: please report it";
            problems.add(Place::START, "", Problem::Conflict(reason.into()));
            errors = problems.into_errors();
        }
        // Where a design is misspelt, its table is not used in vain.
        if self.soundness.holds(&["design.name"]) && !errors.iter().any(|error| error.key == "design.name") {
            errors.extend(self.unused_tables());
        }
        self.sources = sources;
        if errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(errors)) }
    }

    /// A table for a design that no point uses is a mistake, unless the design was chosen from
    /// outside.
    fn unused_tables(&self) -> Vec<PlanError> {
        let mut problems = Problems::new(&self.name, None);
        let entries = self.base.child("design").map_or(&[][..], Node::entries);
        let tables: Vec<&Entry> = entries.iter().filter(|entry| matches!(entry.node.value, Value::Table(_))).collect();
        let mut chosen_outside = self.sweep.fixed.iter().chain(self.outside.iter().map(|setting| &setting.path));
        if tables.is_empty() || chosen_outside.any(|path| path == "design.name") {
            return Vec::new();
        }
        let used = self.designs();
        for entry in tables.into_iter().filter(|entry| !used.contains(&entry.key)) {
            let used = used.iter().cloned().collect::<Vec<_>>().join(", ");
            let reason = format!("no point of this experiment uses the design {}; it uses {used}", entry.key);
            problems.add(entry.key_place, &format!("design.{}", entry.key), Problem::Conflict(reason));
        }
        problems.into_errors()
    }

    /// The designs of all points at all scales.
    fn designs(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for scale in self.scales() {
            let (axes, settings) = self.sweep.at(scale);
            for combination in combinations(&axes) {
                let document = self.document_of(&settings, &chosen(&axes, &combination));
                used.extend(document.at("design.name").and_then(Node::text).map(str::to_owned));
            }
        }
        used
    }

    /// The file's own size, and the scales that it mentions.
    fn scales(&self) -> impl Iterator<Item = Option<Scale>> {
        let written = Scale::ALL.into_iter().filter(|scale| self.sweep.scales.contains_key(scale));
        [None].into_iter().chain(written.map(Some))
    }

    /// What is written of one point.
    fn document_of(&self, settings: &[Setting], chosen: &[(&str, &AxisPoint)]) -> Node {
        let mut document = self.base.clone();
        let of_axes = chosen.iter().flat_map(|(_, point)| &point.settings);
        settings.iter().chain(of_axes).for_each(|setting| document.set(&setting.path, setting.value.clone()));
        document
    }

    fn resolve_all(
        &self,
        scale: Option<Scale>,
        files: &dyn Files,
        sources: &mut Sources,
    ) -> Vec<Result<Point, Vec<PlanError>>> {
        let (axes, mut settings) = self.sweep.at(scale);
        settings.extend(self.outside.iter().cloned());
        let mut points = Vec::new();
        for combination in combinations(&axes) {
            points.push(self.resolve_one(&chosen(&axes, &combination), &settings, files, sources));
        }
        points
    }

    fn resolve_one(
        &self,
        chosen: &[(&str, &AxisPoint)],
        settings: &[Setting],
        files: &dyn Files,
        sources: &mut Sources,
    ) -> Result<Point, Vec<PlanError>> {
        let described: Vec<String> = chosen.iter().map(|(name, point)| format!("{name} = {}", point.label)).collect();
        let mut problems = Problems::new(&self.name, (!described.is_empty()).then(|| described.join(", ")));
        let document = self.document_of(settings, chosen);
        stray_settings(&document, chosen, &mut problems);
        let plan = resolve(problems, self.soundness.clone(), document, &self.schema, files, sources)?;
        let labels = chosen.iter().map(|(name, point)| ((*name).to_owned(), point.label.clone()));
        Ok(Point { labels: labels.collect(), plan })
    }
}

/// The point of each axis in a combination, with the axis' name.
fn chosen<'a>(axes: &'a [Axis], combination: &[usize]) -> Vec<(&'a str, &'a AxisPoint)> {
    axes.iter().zip(combination).map(|(axis, index)| (axis.name.as_str(), &axis.points[*index])).collect()
}

/// A point may set keys of its own design only: anything else would make points that differ in
/// nothing.
fn stray_settings(document: &Node, chosen: &[(&str, &AxisPoint)], problems: &mut Problems) {
    let Some(design) = document.at("design.name").and_then(Node::text) else { return };
    for setting in chosen.iter().flat_map(|(_, point)| &point.settings) {
        let table = setting.path.strip_prefix("design.").and_then(|rest| rest.split_once('.')).map(|(table, _)| table);
        if table.is_some_and(|table| table != design) {
            let reason = format!(
                "this sets a key of another design than the point's, which is {design}; set both on one [[sweep.axis]]"
            );
            problems.add(setting.value.place, &setting.path, Problem::Conflict(reason));
        }
    }
}

/// Every choice of one point of each axis; the last axis varies fastest.
fn combinations(axes: &[Axis]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |chosen, axis| {
        let extended = chosen.iter().flat_map(|prefix| {
            (0..axis.points.len()).map(move |index| prefix.iter().copied().chain([index]).collect::<Vec<_>>())
        });
        extended.collect()
    })
}
