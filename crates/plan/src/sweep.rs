//! Axes, scales and settings from outside: everything that replaces values by key path.

use crate::check::{find, is_table};
use crate::document::{Node, Value};
use crate::error::{Place, Problem, Problems};
use crate::experiment::Scale;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The most points that one experiment may have.
const POINTS_MAX: usize = 100_000;

/// A value for a key path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub path: String,
    pub value: Node,
}

/// Something that varies.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub name: String,
    pub place: Place,
    /// Whether it varies the one key that it is named for.
    pub is_path: bool,
    pub points: Vec<AxisPoint>,
}

/// One point of an axis: its label and what it sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisPoint {
    pub label: String,
    pub settings: Vec<Setting>,
}

/// What a file varies, and what its scales change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep {
    pub axes: Vec<Axis>,
    pub scales: BTreeMap<Scale, ScaleChange>,
    /// Axes that a setting from outside has fixed: no scale may vary them again.
    pub fixed: Vec<String>,
}

/// What a scale changes: values, and whole axes by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScaleChange {
    settings: Vec<Setting>,
    axes: Vec<Axis>,
}

impl Sweep {
    /// Takes `sweep` and `scale` out of the document.
    pub(crate) fn take(base: &mut Node, schema: &Json, problems: &mut Problems) -> Sweep {
        let mut reader = Reader { schema, problems };
        let axes = base.remove("sweep").map_or(Vec::new(), |node| reader.some_axes(&node));
        let mut sweep = Sweep { axes, ..Sweep::default() };
        for (entry, scale) in base
            .remove("scale")
            .iter()
            .flat_map(Node::entries)
            .flat_map(|entry| entry.key.parse::<Scale>().map(|scale| (entry, scale)))
        {
            let change = reader.scale_change(&sweep.axes, &entry.node);
            sweep.scales.insert(scale, change);
        }
        reader.limit(&sweep);
        sweep
    }

    /// Fixes axes that settings from outside name, and changes the points of axes that they name
    /// with a label: `sweep.AXIS.LABEL.KEY`. Returns the settings that are left.
    pub(crate) fn apply_overrides(
        &mut self,
        overrides: &[(String, String)],
        schema: &Json,
        problems: &mut Problems,
    ) -> Vec<Setting> {
        let mut reader = Reader { schema, problems };
        let mut left = Vec::new();
        for (path, text) in overrides.iter().filter(|(_, text)| !text.trim().is_empty()) {
            let (path, value) = (path.trim().to_string(), Node::parse_setting(text));
            let name = path.strip_prefix("sweep.").unwrap_or(&path);
            if self.axes.iter().any(|axis| axis.name == name) {
                let change = reader.axis_change(&self.axes, name, &as_list(value));
                change.into_iter().for_each(|axis| self.fix(axis));
            } else if let Some((axis, label, key)) = self.point_of(&path) {
                if reader.is_known(&key, Place::CommandLine) {
                    self.set_at_point(&axis, &label, &Setting { path: key, value });
                }
            } else if reader.is_settable(&self.axes, &path, Place::CommandLine) {
                left.push(Setting { path, value });
            }
        }
        left
    }

    /// The axis, the label and the key of `sweep.AXIS.LABEL.KEY`.
    fn point_of(&self, path: &str) -> Option<(String, String, String)> {
        let rest = path.strip_prefix("sweep.")?;
        let of_axis = |axis: &Axis| {
            let rest = rest.strip_prefix(&axis.name)?.strip_prefix('.')?;
            let of_point = |point: &AxisPoint| {
                let key = rest.strip_prefix(&point.label)?.strip_prefix('.')?;
                Some((axis.name.clone(), point.label.clone(), key.to_owned()))
            };
            axis.points.iter().find_map(of_point)
        };
        self.axes.iter().filter(|axis| !axis.is_path).find_map(of_axis)
    }

    fn set_at_point(&mut self, axis: &str, label: &str, setting: &Setting) {
        let of_scales = self.scales.values_mut().flat_map(|change| &mut change.axes);
        let axes = self.axes.iter_mut().chain(of_scales).filter(|one| one.name == axis);
        for point in axes.flat_map(|axis| &mut axis.points).filter(|point| point.label == label) {
            point.settings.retain(|known| !overlaps(&known.path, &setting.path));
            point.settings.push(setting.clone());
        }
    }

    /// Where an axis or a scale sets `path`, if one does.
    pub(crate) fn varies(&self, path: &str) -> Option<Place> {
        let of_scales = self.scales.values();
        let axes = self.axes.iter().chain(of_scales.clone().flat_map(|change| &change.axes));
        let of_axes = axes.flat_map(|axis| &axis.points).flat_map(|point| &point.settings);
        let mut settings = of_axes.chain(of_scales.flat_map(|change| &change.settings));
        settings.find(|setting| setting.path == path).map(|setting| setting.value.place)
    }

    fn fix(&mut self, fixed: Axis) {
        self.fixed.push(fixed.name.clone());
        replace(&mut self.axes, fixed);
    }

    /// The axes and settings at a scale.
    pub(crate) fn at(&self, scale: Option<Scale>) -> (Vec<Axis>, Vec<Setting>) {
        let change = scale.and_then(|scale| match (scale, self.scales.get(&scale)) {
            (Scale::Judged, None) => self.scales.get(&Scale::Quick),
            (_, change) => change,
        });
        let Some(change) = change else {
            return (self.axes.clone(), Vec::new());
        };
        let mut axes = self.axes.clone();
        for axis in change.axes.iter().filter(|axis| !self.fixed.contains(&axis.name)) {
            replace(&mut axes, axis.clone());
        }
        (axes, change.settings.clone())
    }
}

fn replace(axes: &mut [Axis], new: Axis) {
    if let Some(axis) = axes.iter_mut().find(|axis| axis.name == new.name) {
        *axis = new;
    }
}

fn as_list(value: Node) -> Node {
    match value.value {
        Value::Array(_) => value,
        _ => Node { place: value.place, value: Value::Array(vec![value]) },
    }
}

/// Reads sweeps and scales, and says what is wrong with their paths.
struct Reader<'a> {
    schema: &'a Json,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    /// A sweep of nothing is not what is meant.
    fn some_axes(&mut self, sweep: &Node) -> Vec<Axis> {
        if sweep.entries().is_empty() {
            let what = "it has no axis: give a key a list of values, or leave [sweep] out";
            self.problems.add(sweep.place, "sweep", Problem::Conflict(what.into()));
        }
        self.axes(sweep)
    }

    fn axes(&mut self, sweep: &Node) -> Vec<Axis> {
        let mut axes = Vec::new();
        for entry in sweep.entries() {
            if entry.key == "axis" {
                axes.extend(entry.node.items().iter().filter_map(|node| self.named_axis(node)));
            } else {
                self.path_axes(&entry.key, &entry.node, &mut axes);
            }
        }
        self.distinct(&axes);
        axes
    }

    /// `workload.load = [...]` may be written as one quoted key or as nested tables.
    fn path_axes(&mut self, path: &str, node: &Node, axes: &mut Vec<Axis>) {
        match &node.value {
            Value::Table(entries) => {
                entries.iter().for_each(|entry| self.path_axes(&format!("{path}.{}", entry.key), &entry.node, axes));
            }
            Value::Array(_) => axes.extend(self.path_axis(path, node)),
            _ => self.list_expected(path, node),
        }
    }

    fn list_expected(&mut self, path: &str, node: &Node) {
        let expected = "a list of values to vary".to_string();
        self.problems.add(node.place, path, Problem::WrongType { got: node.kind(), expected });
    }

    fn path_axis(&mut self, path: &str, node: &Node) -> Option<Axis> {
        if !self.is_known(path, node.place) {
            return None;
        }
        if node.items().is_empty() {
            let problem = Problem::out_of_range("an empty list", "a list of 1 or more values");
            self.problems.add(node.place, path, problem);
            return None;
        }
        let point = |value: &Node| AxisPoint {
            label: value.label(),
            settings: vec![Setting { path: path.into(), value: value.clone() }],
        };
        let points = node.items().iter().map(point).collect();
        Some(Axis { name: path.into(), place: node.place, is_path: true, points })
    }

    fn named_axis(&mut self, node: &Node) -> Option<Axis> {
        let name = self.text(node, "name")?;
        let points: Vec<AxisPoint> =
            node.child("points")?.items().iter().filter_map(|point| self.axis_point(point)).collect();
        Some(Axis { name, place: node.place, is_path: false, points })
    }

    fn axis_point(&mut self, node: &Node) -> Option<AxisPoint> {
        let label = self.text(node, "label")?;
        let mut settings = Vec::new();
        let set = node.child("set").map_or(&[][..], Node::entries);
        set.iter().for_each(|entry| self.settings(&entry.key, &entry.node, &mut settings));
        settings.retain(|setting| self.is_known(&setting.path, setting.value.place));
        Some(AxisPoint { label, settings })
    }

    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        let text = node.child(key).and_then(Node::text);
        if text.is_none() {
            self.problems.add(node.place, "sweep.axis", Problem::missing(key, "every axis and every point is named"));
        }
        text.map(String::from)
    }

    /// Settings may be nested tables too; descends as long as the schema has a table there.
    fn settings(&mut self, path: &str, node: &Node, out: &mut Vec<Setting>) {
        let is_inner = path == "sweep"
            || path.starts_with("sweep.")
            || find(self.schema, path).is_ok_and(|below| is_table(self.schema, below));
        match &node.value {
            Value::Table(entries) if is_inner => {
                entries.iter().for_each(|entry| self.settings(&format!("{path}.{}", entry.key), &entry.node, out));
            }
            _ => out.push(Setting { path: path.into(), value: node.clone() }),
        }
    }

    fn scale_change(&mut self, axes: &[Axis], node: &Node) -> ScaleChange {
        let mut settings = Vec::new();
        node.entries().iter().for_each(|entry| self.settings(&entry.key, &entry.node, &mut settings));
        let mut change = ScaleChange::default();
        for setting in settings {
            match setting.path.strip_prefix("sweep.") {
                Some(name) => change.axes.extend(self.axis_change(axes, name, &setting.value)),
                None if self.is_settable(axes, &setting.path, setting.value.place) => change.settings.push(setting),
                None => {}
            }
        }
        change
    }

    /// Another list of values for an axis; for a named axis, of its labels.
    fn axis_change(&mut self, axes: &[Axis], name: &str, list: &Node) -> Option<Axis> {
        let Some(axis) = axes.iter().find(|axis| axis.name == name) else {
            let names = axes.iter().map(|axis| axis.name.clone()).collect();
            self.problems.add(list.place, "sweep", Problem::unknown_key(name, names));
            return None;
        };
        if axis.is_path {
            return match &list.value {
                Value::Array(_) => self.path_axis(name, list),
                _ => {
                    self.list_expected(name, list);
                    None
                }
            };
        }
        let labels = || axis.points.iter().map(|point| point.label.clone()).collect();
        let mut points = Vec::new();
        for wanted in list.items() {
            match axis.points.iter().find(|point| point.label == wanted.label()) {
                Some(point) => points.push(point.clone()),
                None => self.problems.add(wanted.place, name, Problem::not_allowed(&wanted.label(), labels())),
            }
        }
        if list.items().is_empty() {
            self.list_expected(name, list);
        }
        Some(Axis { points, ..axis.clone() })
    }

    /// Whether a path names a key, and one that no axis sets.
    fn is_settable(&mut self, axes: &[Axis], path: &str, place: Place) -> bool {
        let sets = |axis: &&Axis| {
            let mut settings = axis.points.iter().flat_map(|point| &point.settings);
            settings.any(|setting| overlaps(&setting.path, path))
        };
        if let Some(axis) = axes.iter().find(sets) {
            let reason =
                format!("the axis `{0}` sets this key at every point; give `sweep.{0}` a list instead", axis.name);
            self.problems.add(place, path, Problem::Conflict(reason));
            return false;
        }
        self.is_known(path, place)
    }

    fn is_known(&mut self, path: &str, place: Place) -> bool {
        let section = path.split('.').next().unwrap_or_default();
        let problem = match find(self.schema, path) {
            Ok(_) if section == "sweep" || section == "scale" => {
                Some(Problem::Conflict("a sweep or a scale cannot be set from here".into()))
            }
            Ok(_) => None,
            Err(problem) => Some(problem),
        };
        let is_known = problem.is_none();
        problem.into_iter().for_each(|problem| self.problems.add(place, path, problem));
        is_known
    }

    fn distinct(&mut self, axes: &[Axis]) {
        for (index, axis) in axes.iter().enumerate() {
            if axes[..index].iter().any(|other| other.name == axis.name) {
                self.problems.add(axis.place, &axis.name, Problem::Conflict("two axes have this name".into()));
            }
            let labels: Vec<&str> = axis.points.iter().map(|point| point.label.as_str()).collect();
            if let Some(twice) =
                labels.iter().enumerate().find_map(|(at, label)| labels[..at].contains(label).then_some(label))
            {
                self.problems.add(
                    axis.place,
                    &axis.name,
                    Problem::Conflict(format!("two points are called `{twice}`")),
                );
            }
        }
        self.disjoint(axes);
    }

    /// Two axes that set one key would each undo the other.
    fn disjoint(&mut self, axes: &[Axis]) {
        let paths = |axis: &Axis| -> Vec<String> {
            axis.points.iter().flat_map(|point| &point.settings).map(|setting| setting.path.clone()).collect()
        };
        for (index, axis) in axes.iter().enumerate() {
            let mine = paths(axis);
            for other in &axes[..index] {
                let both = paths(other).into_iter().find(|path| mine.iter().any(|own| overlaps(own, path)));
                if let (Some(path), true) = (both, axis.name != other.name) {
                    let reason = format!("the axes `{}` and `{}` both set `{path}`", other.name, axis.name);
                    self.problems.add(axis.place, &axis.name, Problem::Conflict(reason));
                }
            }
        }
    }

    fn limit(&mut self, sweep: &Sweep) {
        for scale in [None, Some(Scale::Quick), Some(Scale::Paper)] {
            let (axes, _) = sweep.at(scale);
            let points = axes.iter().fold(1_usize, |product, axis| product.saturating_mul(axis.points.len()));
            if points > POINTS_MAX {
                let place = axes.first().map_or(Place::START, |axis| axis.place);
                let problem =
                    Problem::out_of_range(format!("a sweep of {points} points"), format!("up to {POINTS_MAX}"));
                self.problems.add(place, "sweep", problem);
            }
        }
    }
}

/// Whether one path is the other, or lies inside it.
fn overlaps(left: &str, right: &str) -> bool {
    let inside = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    inside(left, right) || inside(right, left)
}
