//! Figures of any run or sweep: latency, throughput, where the time goes, and all metrics.

use std::collections::{BTreeMap, BTreeSet};

use record::{ALL_OPERATIONS, Summary};

use super::{Definition, Figure, Kind, Line, Scale, XAxis, YAxis};
use crate::measure::{Selection, label};
use crate::points::Unit;

/// The label of what distinguishes points beside x.
const SETTING: &str = "setting";
const PERCENTILE: &str = "percentile";
const OPERATION: &str = "operation";
const SPAN: &str = "span";
const METRIC: &str = "metric";
/// Values of x with more than this ratio between the largest and the smallest are drawn by factors.
const WIDE: f64 = 50.0;
/// More points than this are too wide for a table with a column each.
const COLUMNS_MAX: usize = 12;

/// Returns the points with the labels that the figures need, and the figures. The label with most
/// numbers is the x axis; all others together distinguish the series. A run alone has its
/// percentiles along x, and a series for each operation.
pub fn automatic(points: &[Summary]) -> (Vec<Summary>, Vec<Figure>) {
    let Some(first) = points.first() else { return (Vec::new(), Vec::new()) };
    let mut points = points.to_vec();
    let axes = Axes::of(&points);
    for point in &mut points {
        let setting = axes.others.iter().filter_map(|name| Some(format!("{name}={}", label(point, name)?)));
        let setting = match &axes.others[..] {
            [name] => label(point, name).unwrap_or_default().to_owned(),
            [] => point.design.clone(),
            _ => setting.collect::<Vec<_>>().join(" "),
        };
        point.labels.insert(SETTING.to_owned(), setting);
    }
    let drawing = Drawing { axes: &axes, is_alone: points.len() == 1, unit: unit(&points) };
    let mut figures = Vec::new();
    if points.iter().any(|point| !point.latency_ns.is_empty()) {
        figures.push(drawing.latency(first));
    }
    if !drawing.is_alone && points.iter().any(|point| point.load.achieved_gbps > 0.0) {
        figures.push(drawing.throughput());
    }
    if points.iter().any(|point| !point.span_mean_ns.is_empty()) {
        figures.extend(drawing.spans(first));
    }
    if points.len() <= COLUMNS_MAX && points.iter().any(|point| !point.metrics.is_empty()) {
        figures.push(drawing.metrics());
    }
    let figures =
        figures.into_iter().map(|definition| Figure { definition, published: Vec::new(), given: Vec::new() }).collect();
    (points, figures)
}

fn unit(points: &[Summary]) -> Unit {
    let all = points.iter().flat_map(|point| point.latency_ns.get(ALL_OPERATIONS));
    Unit::of(all)
}

/// What differs between points.
#[derive(Debug, PartialEq)]
struct Axes {
    x: String,
    is_numeric: bool,
    is_wide: bool,
    others: Vec<String>,
}

impl Axes {
    fn of(points: &[Summary]) -> Axes {
        let names: BTreeSet<&str> = points.iter().flat_map(|point| point.labels.keys().map(String::as_str)).collect();
        let values = |name: &str| -> BTreeSet<&str> { points.iter().filter_map(|point| label(point, name)).collect() };
        let numbers = |name: &str| -> Option<Vec<f64>> {
            values(name).into_iter().map(|value| value.parse().ok().filter(|number: &f64| number.is_finite())).collect()
        };
        let mut varying: Vec<&str> = names.into_iter().filter(|name| values(name).len() > 1).collect();
        let is_told = |name: &&str| points.iter().all(|point| label(point, name) == Some(&point.design));
        varying.retain(|name| *name != "design");
        if values("design").len() > 1 && !varying.iter().any(is_told) {
            varying.push("design");
        }
        // Numbers first, then the most values.
        let rank = |name: &&&str| (numbers(name).is_some(), values(name).len());
        let x = varying.iter().max_by_key(rank).map_or("design", |name| *name);
        let found = numbers(x);
        let ends =
            found.iter().flatten().fold((f64::INFINITY, 0.0_f64), |(low, high), one| (low.min(*one), high.max(*one)));
        Axes {
            x: x.to_owned(),
            is_numeric: found.is_some(),
            is_wide: ends.0 > 0.0 && ends.1 / ends.0 > WIDE,
            others: varying.into_iter().filter(|name| *name != x).map(str::to_owned).collect(),
        }
    }
}

struct Drawing<'a> {
    axes: &'a Axes,
    is_alone: bool,
    unit: Unit,
}

impl Drawing<'_> {
    /// A figure with a panel for each value of `facet`, as far as there are several.
    fn figure(&self, title: &str, caption: &str, y_title: String, factor: f64, lines: Vec<Line>) -> Definition {
        let Axes { x, is_numeric, is_wide, .. } = self.axes;
        Definition {
            title: title.to_owned(),
            caption: caption.to_owned(),
            kind: if *is_numeric { Kind::Line } else { Kind::Bars },
            x: XAxis { label: x.clone(), title: x.clone(), scale: if *is_wide { Scale::Log } else { Scale::Linear } },
            y: YAxis { lines, title: y_title, factor, ..YAxis::default() },
            series: SETTING.to_owned(),
            facet: None,
            filter: Selection::default(),
            published: None,
            names: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    fn latency(&self, first: &Summary) -> Definition {
        let numbers = [("mean", "mean"), ("p50", "P50"), ("p99", "P99"), ("p999", "P99.9")];
        let line = |operation: &str, (field, name): (&str, &str)| Line {
            paths: vec![format!("latency_ns.{operation}.{field}")],
            set: [(PERCENTILE, name), (OPERATION, operation)]
                .map(|(label, value)| (label.to_owned(), value.to_owned()))
                .into(),
            ..Line::default()
        };
        let operations = if self.is_alone { operations(first) } else { vec![ALL_OPERATIONS.to_owned()] };
        let lines = operations.iter().flat_map(|operation| numbers.map(|number| line(operation, number))).collect();
        let caption = "From the intended start to the end of each request.";
        let title = format!("latency ({})", self.unit.name);
        let mut figure = self.figure("Latency", caption, title, 1.0 / self.unit.ns, lines);
        if self.is_alone {
            figure.kind = Kind::Bars;
            figure.x = XAxis { label: PERCENTILE.into(), title: "statistic".into(), scale: Scale::Linear };
            figure.series = OPERATION.to_owned();
        } else {
            figure.facet = Some(PERCENTILE.to_owned());
        }
        figure
    }

    fn throughput(&self) -> Definition {
        let line = |path: &str, name: &str| Line {
            paths: vec![path.to_owned()],
            set: [("load".to_owned(), name.to_owned())].into(),
            ..Line::default()
        };
        let lines = vec![line("load.achieved_gbps", "achieved"), line("load.offered_gbps", "offered")];
        let mut figure = self.figure("Throughput", "Payload of requests.", "Gb/s".into(), 1.0, lines);
        figure.facet = Some("load".to_owned());
        if self.axes.x == "load" || self.axes.others.iter().any(|name| name == "load") {
            // The sweep has a label of this name already.
            figure.y.lines.truncate(1);
            figure.y.lines[0].set.clear();
            (figure.facet, figure.y.title) = (None, "achieved Gb/s".into());
        }
        figure
    }

    /// A figure for each operation; of a run alone one for all of them.
    fn spans(&self, first: &Summary) -> Vec<Definition> {
        let line = |operation: &String| Line {
            paths: vec![format!("span_mean_ns.{operation}.*")],
            set: [(OPERATION.to_owned(), operation.clone())].into(),
            ..Line::default()
        };
        let operations: Vec<&String> = first.span_mean_ns.keys().filter(|name| *name != ALL_OPERATIONS).collect();
        let groups: Vec<&[&String]> =
            if self.is_alone { vec![&operations[..]] } else { operations.chunks(1).collect() };
        let figure = |group: &[&String]| {
            let of = if groups.len() > 1 { format!(" of each {}", group[0]) } else { String::new() };
            let caption = "Mean of each span; together they are the mean latency.";
            let y = format!("mean time ({})", self.unit.name);
            let lines = group.iter().map(|operation| line(operation)).collect();
            let mut figure = self.figure(&format!("Where the time{of} goes"), caption, y, 1.0 / self.unit.ns, lines);
            (figure.kind, figure.series) = (Kind::StackedBars, SPAN.to_owned());
            if self.is_alone {
                figure.x = XAxis { label: OPERATION.into(), title: OPERATION.into(), scale: Scale::Linear };
            } else {
                figure.facet = self.setting();
            }
            figure
        };
        groups.iter().map(|group| figure(group)).collect()
    }

    /// The label of the series, where there are several.
    fn setting(&self) -> Option<String> {
        (!self.axes.others.is_empty()).then(|| SETTING.to_owned())
    }

    fn metrics(&self) -> Definition {
        let lines = vec![Line { paths: vec!["metrics.*".to_owned()], ..Line::default() }];
        let caption = "The command rackweave describe says what each is, and in which unit.";
        let mut figure = self.figure("Metrics", caption, "value".into(), 1.0, lines);
        (figure.kind, figure.series) = (Kind::Table, METRIC.to_owned());
        figure.facet = self.setting();
        figure
    }
}

/// The operations of a run: all together last, and only if there are several.
fn operations(summary: &Summary) -> Vec<String> {
    let own: Vec<&String> = summary.latency_ns.keys().filter(|name| *name != ALL_OPERATIONS).collect();
    let all = (own.len() != 1 && summary.latency_ns.contains_key(ALL_OPERATIONS)).then(|| ALL_OPERATIONS.to_owned());
    own.into_iter().cloned().chain(all).collect()
}

#[cfg(test)]
mod tests {
    use super::super::gather;
    use super::*;
    use record::Statistics;

    fn point(design: &str, labels: &[(&str, &str)], p99: f64) -> Summary {
        let latency = Statistics { mean: p99 / 2.0, p50: p99 / 3.0, p99, p999: p99 * 2.0, ..Statistics::default() };
        let mut point = Summary { design: design.into(), ..Summary::default() };
        point.labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        point.latency_ns =
            [("read", latency), (ALL_OPERATIONS, latency)].map(|(name, one)| (name.to_owned(), one)).into();
        point.span_mean_ns.entry("read".into()).or_default().insert("flash".into(), p99 / 2.0);
        point.load.achieved_gbps = 10.0;
        point
    }

    #[test]
    fn the_axis_with_most_numbers_is_x_and_the_others_are_series() {
        let axes = |points: &[Summary]| Axes::of(points);
        let of = |design, depth: &str, kind| point(design, &[("io.depth", depth), ("kind", kind)], 1.0);
        let found = axes(&[of("a", "1", "x"), of("b", "2", "y"), of("a", "100", "z")]);
        assert_eq!((found.x.as_str(), found.is_numeric, found.is_wide), ("io.depth", true, true));
        assert_eq!(found.others, ["kind", "design"]);
        let named = [of("a", "1", "a"), of("b", "2", "b")];
        assert_eq!(axes(&named).others, ["kind"], "the axis that names the design says it already");
        let words = axes(&[of("a", "1", "x"), of("a", "1", "y")]);
        assert_eq!((words.x.as_str(), words.is_numeric, words.others.len()), ("kind", false, 0));
    }

    #[test]
    fn every_point_of_a_sweep_is_in_its_figures() {
        let depths = ["1", "2", "4"];
        let points: Vec<Summary> = ["edm", "cxl"]
            .into_iter()
            .flat_map(|design| depths.map(|depth| point(design, &[("io.depth", depth), ("design", design)], 3e5)))
            .collect();
        let (labelled, figures) = automatic(&points);
        let [latency, throughput, spans] = &figures[..] else { panic!("{figures:?}") };
        let found = gather(latency, &labelled);
        assert_eq!((found.data.len(), found.series.len(), found.facets.len(), found.gaps.len()), (24, 2, 4, 0));
        assert_eq!(found.at("P99", "edm", "2", super::super::Origin::Ours).map(|datum| datum.value), Some(300.0));
        assert_eq!(gather(throughput, &labelled).facets, ["achieved", "offered"]);
        let found = gather(spans, &labelled);
        assert_eq!((found.data.len(), found.facets.len(), found.gaps.len()), (6, 2, 0));
    }

    #[test]
    fn a_run_alone_has_its_percentiles_by_operation() {
        let (labelled, figures) = automatic(&[point("san", &[], 30.0)]);
        let found = gather(&figures[0], &labelled);
        assert_eq!((found.xs.len(), found.series.clone()), (4, vec!["read".to_owned()]));
        assert_eq!(figures.len(), 2);
    }
}
