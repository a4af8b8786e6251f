//! A whole experiment file: one plan, or the plans of a sweep.

use crate::check::{Completeness, check};
use crate::document::{Node, Value};
use crate::error::{Place, PlanError, PlanErrors, Problem, Problems};
use crate::plan::Plan;
use crate::resolve::resolve;
use crate::schema::schema;
use crate::sources::{Files, NoFiles, Sources, Within};
use crate::sweep::{Axis, Setting, Sweep};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// How large an experiment is run, beside the size that its file gives itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scale {
    /// Minutes on a laptop: shows the shape.
    Quick,
    /// What the paper ran.
    Paper,
}

impl Scale {
    /// Every scale.
    pub const ALL: [Scale; 2] = [Scale::Quick, Scale::Paper];
    /// The name in files and options.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
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
}

/// Reads and checks an experiment file.
///
/// `name` stands in messages; `files` opens what the file refers to (size distributions, traces) and is not used after this call.
/// `overrides` are key paths with values from outside (`("run.requests", "1000")`, `("fabric.rate", "25Gbps")`), written in TOML or as
/// bare text; they win over the file and its scales, and fix an axis of the sweep when they name its key. An empty value
/// takes the key out of the file.
///
/// # Errors
/// Everything that is wrong, with its line: unknown keys, wrong types and units, values out of range, impossible combinations, missing
/// or malformed files; at each point of the sweep and at each scale.
pub fn parse(
    name: &str,
    text: &str,
    files: &dyn Files,
    overrides: &[(String, String)],
) -> Result<Experiment, PlanErrors> {
    let schema = schema();
    let mut problems = Problems::new(name, None);
    let mut base = Node::parse(text, &mut problems);
    if problems.is_empty() {
        heal(&mut base, overrides, &mut problems);
        check(&schema, &base, Completeness::Partial, &mut problems);
    }
    // A sweep is only looked into when the rest is in shape: its paths refer to the schema, its values to the document.
    let readable = problems.is_empty();
    let mut sweep = if readable { Sweep::take(&mut base, &schema, &mut problems) } else { Sweep::default() };
    let outside = if readable { sweep.apply_overrides(overrides, &schema, &mut problems) } else { Vec::new() };
    if let Some(place) = sweep.varies("files") {
        let reason = "files are read once for all points and scales: it cannot be varied".to_owned();
        problems.add(place, "files", Problem::Conflict(reason));
    }
    problems.finish()?;
    let mut experiment = Experiment { name: name.into(), base, sweep, outside, sources: Sources::default(), schema };
    let outside = experiment.outside.iter().rfind(|setting| setting.path == "files");
    let folder = outside.map(|setting| &setting.value).or_else(|| experiment.base.child("files"));
    let folder = folder.and_then(Node::text).unwrap_or_default().to_owned();
    experiment.check_all(&Within { files, folder: &folder })?;
    Ok(experiment)
}

/// Settings from outside take the place of what the file says before that is looked at, so that a bad
/// value can be healed. One without a value takes the key away.
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
    /// The runs at `scale`, in the order of the sweep (its first axis varies slowest); one when there is no sweep. A scale that
    /// the file does not mention is the file's own size.
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

    fn check_all(&mut self, files: &dyn Files) -> Result<(), PlanErrors> {
        let mut sources = Sources::default();
        let (mut errors, mut used) = (Vec::new(), BTreeSet::new());
        let written = Scale::ALL.into_iter().filter(|scale| self.sweep.scales.contains_key(scale)).map(Some);
        for scale in [None].into_iter().chain(written) {
            for point in self.resolve_all(scale, files, &mut sources) {
                match point {
                    Ok(point) => drop(used.insert(point.plan.design().word())),
                    Err(found) => errors.extend(found),
                }
            }
        }
        if errors.is_empty() {
            errors = self.unused_tables(&used);
        }
        self.sources = sources;
        if errors.is_empty() { Ok(()) } else { Err(PlanErrors::new(errors)) }
    }

    /// A table for a design that no point uses is a mistake, unless the design was chosen from outside.
    fn unused_tables(&self, used: &BTreeSet<String>) -> Vec<PlanError> {
        let mut problems = Problems::new(&self.name, None);
        let entries = self.base.child("design").map_or(&[][..], Node::entries);
        let chosen_outside = self.sweep.fixed.iter().chain(self.outside.iter().map(|setting| &setting.path));
        if chosen_outside.into_iter().any(|path| path == "design.name") {
            return Vec::new();
        }
        for entry in entries.iter().filter(|entry| matches!(entry.node.value, Value::Table(_))) {
            if !used.contains(&entry.key) {
                let used = used.iter().cloned().collect::<Vec<_>>().join(", ");
                let reason = format!("no point of this experiment uses the design {}; it uses {used}", entry.key);
                problems.add(entry.key_place, &format!("design.{}", entry.key), Problem::Conflict(reason));
            }
        }
        problems.into_errors()
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
            points.push(self.resolve_one(&axes, &combination, &settings, files, sources));
        }
        points
    }

    fn resolve_one(
        &self,
        axes: &[Axis],
        combination: &[usize],
        settings: &[Setting],
        files: &dyn Files,
        sources: &mut Sources,
    ) -> Result<Point, Vec<PlanError>> {
        let chosen = || axes.iter().zip(combination).map(|(axis, index)| (&axis.name, &axis.points[*index]));
        let described: Vec<String> = chosen().map(|(name, point)| format!("{name} = {}", point.label)).collect();
        let description = (!described.is_empty()).then(|| described.join(", "));
        let of_axes = || chosen().flat_map(|(_, point)| &point.settings);
        let mut document = self.base.clone();
        for setting in settings.iter().chain(of_axes()) {
            document.set(&setting.path, setting.value.clone());
        }
        let stray = stray_settings(&self.name, &description, &document, of_axes());
        if !stray.is_empty() {
            return Err(stray);
        }
        let plan = resolve(&self.name, description, &document, &self.schema, files, sources)?;
        Ok(Point { labels: chosen().map(|(name, point)| (name.clone(), point.label.clone())).collect(), plan })
    }
}

/// A point may set keys of its own design only: anything else would make points that differ in nothing.
fn stray_settings<'a>(
    name: &str,
    point: &Option<String>,
    document: &Node,
    settings: impl Iterator<Item = &'a Setting>,
) -> Vec<PlanError> {
    let mut problems = Problems::new(name, point.clone());
    let Some(design) = document.at("design.name").and_then(Node::text) else { return Vec::new() };
    for setting in settings {
        let table = setting.path.strip_prefix("design.").and_then(|rest| rest.split_once('.')).map(|(table, _)| table);
        if table.is_some_and(|table| table != design) {
            let reason = format!(
                "this sets a key of another design than the point's, which is {design}; set both on one [[sweep.axis]]"
            );
            problems.add(setting.value.place, &setting.path, Problem::Conflict(reason));
        }
    }
    problems.into_errors()
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
