//! A figure: `figure.toml` beside an experiment, and its numbers.

mod automatic;
mod data;
mod styles;
mod vega;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::FileError;
use crate::measure::{Selection, check_path};
use crate::published::PublishedRow;

pub use automatic::automatic;
pub(crate) use data::{Datum, FigureData, Origin, gather};
pub(crate) use styles::{Style, Styles};
pub(crate) use vega::{Names, config, specification};

/// A figure with what others printed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its title.
    pub definition: Definition,
    /// The rows of the file that [`Definition::published`] names; empty when it names none.
    pub published: Vec<PublishedRow>,
    /// Numbers that are not of summaries; where there are some, they are the figure's.
    pub given: Vec<Given>,
}

/// A number of a figure whose numbers are not of summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The displayed name of its series.
    pub series: String,
    /// Its place on the x axis.
    pub x: f64,
    /// The number, in the unit of the y axis.
    pub value: f64,
}

/// The form of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A line for each series, a marker at each point.
    Line,
    /// A line for each series without markers: time along x. No file has it.
    #[serde(skip)]
    Time,
    /// Groups of bars side by side.
    Bars,
    /// One bar a place, made of its series.
    StackedBars,
    /// Numbers only.
    Table,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By factors; for quantities over decades.
    Log,
}

/// A checked `figure.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The heading.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// Its form.
    pub kind: Kind,
    /// The label along x.
    pub x: XAxis,
    /// What is measured.
    pub y: YAxis,
    /// The label that distinguishes series; `design` by default.
    pub series: String,
    /// The label that distinguishes panels.
    pub facet: Option<String>,
    /// Which points are shown.
    pub filter: Selection,
    /// The file with numbers that are no run's, beside the figure's, and which of its rows.
    pub published: Option<Overlay>,
    /// Displayed names of label values.
    pub names: BTreeMap<String, String>,
    /// Printed under the figure.
    pub notes: Vec<String>,
}

/// Numbers of a file, drawn over those of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// The file's name.
    pub file: String,
    /// Which rows, by `series`, `x`, `facet`.
    pub selection: Selection,
}

/// The x axis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XAxis {
    /// A label of the points, `design`, or one that [`Line::set`] gives.
    pub label: String,
    /// The title of the axis, with its unit.
    pub title: String,
    /// Only for numbers.
    #[serde(default)]
    pub scale: Scale,
}

/// The y axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YAxis {
    /// The numbers of each point; usually one. None where a file has all numbers.
    pub lines: Vec<Line>,
    /// The title of the axis, with its unit.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Ours is multiplied by it: a conversion of units. Published numbers are already in the axis's
    /// unit.
    pub factor: f64,
    /// A path whose number divides that of each point: the share of a whole.
    pub divide_by: Option<String>,
    /// The series whose numbers divide those of the others at the same place. It is not drawn.
    pub relative_to: Option<String>,
}

/// One number of a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Dotted paths into a summary (see [`crate::measure`]); their numbers are added. A lone path
    /// that ends with `.*` is every number there, a series each.
    pub paths: Vec<String>,
    /// Labels that this number has besides those of its point: `operation = "read"`.
    pub set: BTreeMap<String, String>,
    /// The points that have it.
    pub filter: Selection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefinition {
    title: String,
    caption: String,
    kind: Kind,
    x: XAxis,
    y: RawY,
    #[serde(default = "design")]
    series: String,
    facet: Option<String>,
    #[serde(default)]
    filter: BTreeMap<String, toml::Value>,
    published: Option<RawOverlay>,
    #[serde(default)]
    names: BTreeMap<String, String>,
    #[serde(default)]
    notes: Vec<String>,
}

fn design() -> String {
    "design".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawY {
    metric: Option<String>,
    sum: Option<Vec<String>>,
    metrics: Option<Vec<RawLine>>,
    title: String,
    #[serde(default)]
    scale: Scale,
    factor: Option<f64>,
    divide_by: Option<String>,
    relative_to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    metric: Option<String>,
    sum: Option<Vec<String>>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    r#where: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a file's name or { file = \"published.csv\", where = { ... } }")]
enum RawOverlay {
    File(String),
    Part(RawPart),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    file: String,
    #[serde(default)]
    r#where: BTreeMap<String, toml::Value>,
}

/// Reads the figure `text`, called `name` in errors.
pub fn parse(name: &str, text: &str) -> Result<Definition, FileError> {
    let raw: RawDefinition = toml::from_str(text).map_err(|error| FileError::toml(name, text, &error))?;
    let definition = check(raw).map_err(|reason| FileError { file: name.to_owned(), line: 1, reason })?;
    for path in definition.y.lines.iter().flat_map(|line| &line.paths).chain(&definition.y.divide_by) {
        let place = text.find(path.as_str()).unwrap_or_default();
        check_path(path).map_err(|reason| FileError::at(name, text, place, reason))?;
    }
    Ok(definition)
}

fn check(raw: RawDefinition) -> Result<Definition, String> {
    let written =
        [("title", &raw.title), ("x.title", &raw.x.title), ("x.label", &raw.x.label), ("y.title", &raw.y.title)];
    if let Some((key, _)) = written.iter().find(|(_, text)| text.trim().is_empty()) {
        return Err(format!("{key} is empty"));
    }
    if raw.kind == Kind::StackedBars && raw.y.scale == Scale::Log {
        return Err("stacked-bars cannot have y.scale = \"log\": the parts would not add up to the eye".to_owned());
    }
    Ok(Definition {
        title: raw.title,
        caption: raw.caption,
        kind: raw.kind,
        x: raw.x,
        y: y_axis(raw.y, raw.published.is_some())?,
        series: raw.series,
        facet: raw.facet,
        filter: Selection::read(&raw.filter).map_err(|reason| reason.replacen("where", "filter", 1))?,
        published: raw.published.map(overlay).transpose()?,
        names: raw.names,
        notes: raw.notes,
    })
}

fn y_axis(raw: RawY, has_file: bool) -> Result<YAxis, String> {
    let factor = raw.factor.unwrap_or(1.0);
    if !factor.is_finite() || factor == 0.0 {
        return Err(format!("y.factor must be finite and not zero, got {factor}"));
    }
    let lines = match (raw.metric, raw.sum, raw.metrics) {
        (None, None, Some(lines)) if has_file || !lines.is_empty() => {
            lines.into_iter().map(line).collect::<Result<_, _>>()?
        }
        (metric, sum, None) => {
            vec![line(RawLine { metric, sum, set: BTreeMap::new(), r#where: BTreeMap::new() })?]
        }
        _ => return Err("y needs exactly one of metric, sum, metrics".to_owned()),
    };
    let (divide_by, relative_to) = (raw.divide_by, raw.relative_to);
    Ok(YAxis { lines, title: raw.title, scale: raw.scale, factor, divide_by, relative_to })
}

fn line(raw: RawLine) -> Result<Line, String> {
    let paths = match (raw.metric, raw.sum) {
        (Some(metric), None) => vec![metric],
        (None, Some(paths)) if !paths.is_empty() => paths,
        _ => return Err("y needs exactly one of metric, sum, metrics; each of metrics one of metric, sum".to_owned()),
    };
    Ok(Line { paths, set: raw.set, filter: Selection::read(&raw.r#where)? })
}

fn overlay(raw: RawOverlay) -> Result<Overlay, String> {
    match raw {
        RawOverlay::File(file) => Ok(Overlay { file, selection: Selection::default() }),
        RawOverlay::Part(part) => Ok(Overlay { file: part.file, selection: Selection::read(&part.r#where)? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
title = "Latency under load"
caption = "EDM stays flat."
kind = "line"
facet = "mix"
published = "published.csv"
[x]
label = "load"
title = "Offered load"
[y]
metric = "slowdown.all.mean"
title = "Latency / unloaded latency"
scale = "log"
[filter]
mix = ["reads", "writes"]
"#;

    #[test]
    fn a_figure_is_read_with_its_defaults() {
        let figure = parse("figure.toml", GOOD).unwrap();
        assert_eq!(
            (figure.kind, figure.series.as_str(), figure.y.scale, figure.x.scale),
            (Kind::Line, "design", Scale::Log, Scale::Linear)
        );
        assert_eq!(figure.published.unwrap().file, "published.csv");
        let part = GOOD
            .replace("published = \"published.csv\"", "published = { file = 'p.csv', where = { facet = 'reads' } }");
        assert_eq!(parse("f", &part).unwrap().published.unwrap().selection, Selection::one("facet", "reads"));
    }

    #[test]
    fn a_file_can_have_all_numbers() {
        let of_file = GOOD.replace("metric = \"slowdown.all.mean\"", "metrics = []");
        assert!(parse("f", &of_file).unwrap().y.lines.is_empty());
        let of_nothing = of_file.replace("published = \"published.csv\"\n", "");
        let error = parse("f", &of_nothing).unwrap_err().to_string();
        assert!(error.contains("exactly one of metric, sum, metrics"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, words) in [
            ("kind = \"line\"", "kind = \"pie\"", "unknown variant `pie`"),
            ("facet = \"mix\"", "facets = \"mix\"", "unknown field `facets`"),
            ("title = \"Offered load\"", "", "missing field `title`"),
            ("title = \"Offered load\"", "title = ' '", "x.title is empty"),
            ("kind = \"line\"", "kind = \"stacked-bars\"", "cannot have y.scale = \"log\""),
            ("metric = \"slowdown.all.mean\"", "", "exactly one of metric, sum, metrics"),
            (
                "metric = \"slowdown.all.mean\"",
                "metric = 'events'\nmetrics = [{ metric = 'simulated_ns' }]",
                "exactly one of metric",
            ),
            ("metric = \"slowdown.all.mean\"", "metrics = [{ set = { a = 'b' } }]", "exactly one of metric"),
            ("metric = \"slowdown.all.mean\"", "metric = 'events'\nfactor = 0.0", "y.factor must be finite"),
            ("mix = [\"reads\", \"writes\"]", "mix = { over = 1 }", "filter.mix: unknown key over"),
            ("published = \"published.csv\"", "published = { path = 'x' }", "expected a file's name"),
        ] {
            assert!(GOOD.contains(from));
            let error = parse("fig8a/figure.toml", &GOOD.replace(from, to)).expect_err(to).to_string();
            assert!(error.starts_with("fig8a/figure.toml:") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_number_that_no_summary_has_is_refused_with_its_line() {
        let text = GOOD.replace("slowdown.all.mean", "metrics.cache_hits_ratio");
        let error = parse("fig8a/figure.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("fig8a/figure.toml:11: a summary has no number"), "{error}");
        assert!(error.contains("the nearest are metrics.cache_hit_ratio"), "{error}");
        let text = GOOD.replace("slowdown.all.mean", "span_mean_ns.read.*");
        assert!(parse("figure.toml", &text).is_ok());
    }
}
