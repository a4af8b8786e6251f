//! The numbers of a figure, from the points of a run and from what others printed.

use std::collections::BTreeSet;

use record::Summary;
use serde::Serialize;

use super::{Definition, Figure, Given, Line};
use crate::measure::{Flat, describe, flatten, label, neighbours, same};
use crate::published::{PublishedRow, Source};

/// The origin of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// Measured in this run, or by a tool of ours.
    Ours,
    /// Printed in the paper.
    Paper,
    /// Printed by the authors' artifact.
    Artifact,
}

impl Origin {
    /// The name in legends, columns and files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Origin::Ours => "ours",
            Origin::Paper => "paper",
            Origin::Artifact => "artifact",
        }
    }
}

/// One number with its place in the figure; the texts are values of labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Datum {
    pub facet: String,
    pub series: String,
    pub x: String,
    pub origin: Origin,
    pub value: f64,
    /// Half-width of the 95 % confidence interval over seeds.
    pub half_width: Option<f64>,
    /// Whether unfinished requests could raise it.
    pub lower_bound: bool,
}

impl Datum {
    fn over(self, reference: &Datum) -> Datum {
        let value = self.value / reference.value;
        let share = |datum: &Datum| Some(datum.half_width? / datum.value.abs());
        let half_width = share(&self).zip(share(reference)).map(|(one, other)| (one + other) * value.abs());
        Datum { value, half_width: half_width.filter(|width| width.is_finite()), ..self }
    }
}

/// All numbers of a figure and the order of its labels' values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FigureData {
    pub data: Vec<Datum>,
    pub facets: Vec<String>,
    pub series: Vec<String>,
    pub xs: Vec<String>,
    /// Numbers that could not be shown, for the reader.
    pub gaps: Vec<String>,
}

impl FigureData {
    /// Whether x is a number everywhere.
    pub(crate) fn x_is_numeric(&self) -> bool {
        !self.xs.is_empty() && self.xs.iter().all(|x| x.parse::<f64>().is_ok_and(f64::is_finite))
    }
    /// Which origins occur, in their order.
    pub(crate) fn origins(&self) -> BTreeSet<Origin> {
        self.data.iter().map(|datum| datum.origin).collect()
    }
    /// The datum at a place.
    pub(crate) fn at(&self, facet: &str, series: &str, x: &str, origin: Origin) -> Option<&Datum> {
        self.data
            .iter()
            .find(|datum| datum.origin == origin && datum.series == series && datum.x == x && datum.facet == facet)
    }

    fn add(&mut self, datum: Datum) {
        if self.at(&datum.facet, &datum.series, &datum.x, datum.origin).is_some() {
            let place = [datum.facet.as_str(), &datum.series, &datum.x].join(" ");
            self.gap(format!(
                "More than one number of {} belongs at {}; the first is shown.",
                datum.origin.name(),
                place.trim()
            ));
            return;
        }
        for (list, value) in
            [(&mut self.facets, &datum.facet), (&mut self.series, &datum.series), (&mut self.xs, &datum.x)]
        {
            if !list.contains(value) {
                list.push(value.clone());
            }
        }
        self.data.push(datum);
    }

    /// Divides each number by that of the series `reference` at the same place, and removes it.
    /// Half-widths add up as shares of their numbers. That is an upper bound, since requests of one
    /// seed are the same in both.
    fn relate_to(&mut self, reference: &str) {
        let (references, rest): (Vec<Datum>, Vec<Datum>) =
            std::mem::take(&mut self.data).into_iter().partition(|datum| datum.series == reference);
        self.series.retain(|series| series != reference);
        for datum in rest {
            let is_beside = |one: &&Datum| one.x == datum.x && one.facet == datum.facet;
            match references.iter().find(is_beside).filter(|one| one.value != 0.0 && !one.lower_bound) {
                Some(one) => self.data.push(datum.over(one)),
                None => self.gap(format!("{reference} has no number at {} {} to divide by.", datum.facet, datum.x)),
            }
        }
    }

    /// Takes numbers that are not of summaries, each at a place of its own.
    fn take(&mut self, given: &[Given]) {
        self.facets.push(String::new());
        for Given { series, x, value } in given {
            if self.series.last() != Some(series) {
                self.series.push(series.clone());
            }
            self.xs.push(x.to_string());
            self.data.push(Datum {
                facet: String::new(),
                series: series.clone(),
                x: x.to_string(),
                origin: Origin::Ours,
                value: *value,
                half_width: None,
                lower_bound: false,
            });
        }
    }

    /// Takes series away that are zero everywhere: they would only fill the legend.
    fn leave_out_zeros(&mut self) {
        let shown: BTreeSet<String> =
            self.data.iter().filter(|datum| datum.value != 0.0).map(|datum| datum.series.clone()).collect();
        self.series.retain(|series| shown.contains(series));
        self.data.retain(|datum| shown.contains(&datum.series));
    }

    fn gap(&mut self, text: String) {
        if !self.gaps.contains(&text) {
            self.gaps.push(text);
        }
    }
}

/// Collects the numbers of `figure` from `points`.
pub(crate) fn gather(figure: &Figure, points: &[Summary]) -> FigureData {
    let definition = &figure.definition;
    let mut data = FigureData::default();
    if !figure.given.is_empty() {
        data.take(&figure.given);
        return data;
    }
    for point in points.iter().filter(|point| definition.filter.holds(|name| label(point, name))) {
        let flat = flatten(point);
        for line in definition.y.lines.iter().filter(|line| line.filter.holds(|name| label(point, name))) {
            for line in each(definition, line, &flat) {
                match ours(definition, &line, point, &flat) {
                    Ok(datum) => data.add(datum),
                    Err(gap) => data.gap(gap),
                }
            }
        }
    }
    if definition.y.lines.iter().any(|line| all_of(line).is_some()) {
        data.leave_out_zeros();
    }
    if let Some(reference) = &definition.y.relative_to {
        data.relate_to(reference);
    }
    let shown = data.facets.clone();
    for row in figure.published.iter().filter(|row| belongs(definition, row, &shown)) {
        data.add(printed(definition, row, &data));
    }
    if data.x_is_numeric() {
        data.xs.sort_by(|left, right| number(left).total_cmp(&number(right)));
    }
    data
}

/// The prefix before the `*` of a line that selects every number there.
fn all_of(line: &Line) -> Option<&str> {
    let [path] = &line.paths[..] else { return None };
    path.strip_suffix('*').filter(|prefix| prefix.ends_with('.'))
}

/// A line for each number that `line` selects: those of a `*` differ in the label of the series.
fn each(definition: &Definition, line: &Line, flat: &Flat) -> Vec<Line> {
    let Some(prefix) = all_of(line) else { return vec![line.clone()] };
    let names = flat.keys().filter_map(|path| path.strip_prefix(prefix)).filter(|name| !name.contains('.'));
    let of_name = |name: &str| {
        let mut set = line.set.clone();
        set.insert(definition.series.clone(), name.to_owned());
        Line { paths: vec![format!("{prefix}{name}")], set, filter: line.filter.clone() }
    };
    let found: Vec<Line> = names.map(of_name).collect();
    // Where there is none, what is missing is said as of any other path.
    if found.is_empty() { vec![line.clone()] } else { found }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

fn ours(definition: &Definition, line: &Line, point: &Summary, flat: &Flat) -> Result<Datum, String> {
    let value_of =
        |name: &str| line.set.get(name).map(String::as_str).or_else(|| label(point, name)).map(str::to_owned);
    let need = |name: &str| {
        value_of(name)
            .ok_or_else(|| format!("Points without a label {name} are not shown, such as {}.", describe(point)))
    };
    let number = |path: &String| {
        let missing = || format!("No {path} at {} ({}).", describe(point), neighbours(flat, path));
        flat.get(path).copied().ok_or_else(missing)
    };
    let sum: f64 = line.paths.iter().map(number).sum::<Result<f64, String>>()?;
    let whole = definition.y.divide_by.as_ref().map(number).transpose()?;
    let value = sum / whole.unwrap_or(1.0);
    if !value.is_finite() {
        return Err(format!("{sum} of {} is no share at {}.", whole.unwrap_or_default(), describe(point)));
    }
    Ok(Datum {
        facet: definition.facet.as_deref().map(need).transpose()?.unwrap_or_default(),
        series: need(&definition.series)?,
        x: need(&definition.x.label)?,
        origin: Origin::Ours,
        value: value * definition.y.factor,
        half_width: half_width(&line.paths, flat)
            .filter(|_| whole.is_none())
            .map(|width| width * definition.y.factor.abs()),
        lower_bound: line.paths.iter().any(|path| is_lower_bound(path, flat)),
    })
}

/// Whether a percentile is a lower bound, by the `lower_bound_from` beside it.
fn is_lower_bound(path: &str, flat: &Flat) -> bool {
    let quantile = |name: &str| match name {
        "p50" => Some(0.5),
        "p90" => Some(0.9),
        "p99" => Some(0.99),
        "p999" => Some(0.999),
        "max" => Some(1.0),
        _ => None,
    };
    let Some((place, name)) = path.rsplit_once('.') else { return false };
    let least = flat.get(&format!("{place}.lower_bound_from"));
    quantile(name).zip(least).is_some_and(|(quantile, least)| quantile >= *least)
}

/// The confidence interval of a mean or of p99 is beside it in the summary.
fn half_width(paths: &[String], flat: &Flat) -> Option<f64> {
    let [path] = paths else { return None };
    flat.get(&format!("{path}_ci95")).copied()
}

/// A row of another panel than ours is left out; when there is nothing of ours, all are shown.
fn belongs(definition: &Definition, row: &PublishedRow, facets: &[String]) -> bool {
    let fields = |name: &str| match name {
        "series" => Some(row.series.as_str()),
        "x" => Some(row.x.as_str()),
        "facet" => Some(row.facet.as_str()),
        _ => None,
    };
    let overlaid = definition.published.as_ref().is_some_and(|overlay| overlay.selection.holds(fields));
    overlaid && (definition.facet.is_none() || facets.is_empty() || facets.contains(&row.facet))
}

/// Takes over our spelling of a number on the x axis, so that `0.20` and `0.2` are one place.
fn printed(definition: &Definition, row: &PublishedRow, data: &FigureData) -> Datum {
    let x = data.xs.iter().find(|x| same(x, &row.x)).unwrap_or(&row.x);
    Datum {
        facet: if definition.facet.is_some() { row.facet.clone() } else { String::new() },
        series: row.series.clone(),
        x: x.clone(),
        origin: match row.source {
            Source::Paper => Origin::Paper,
            Source::Artifact => Origin::Artifact,
            Source::Measured => Origin::Ours,
        },
        value: row.value,
        half_width: None,
        lower_bound: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::published;
    use record::Statistics;

    const FIGURE: &str = "title = 't'\ncaption = 'c'\nkind = 'line'\nfacet = 'mix'\npublished = 'p.csv'\n[x]\nlabel = 'load'\ntitle = 'Load'\n[y]\nmetric = 'latency_ns.all.mean'\ntitle = 'Latency in us'\nfactor = 0.001\n";

    fn point(load: &str, mix: &str, mean: f64) -> Summary {
        let mut point = Summary { design: "edm".into(), ..Summary::default() };
        point.labels.insert("load".into(), load.into());
        point.labels.insert("mix".into(), mix.into());
        point.latency_ns.insert("all".into(), Statistics { mean, mean_ci95: Some(10.0), ..Statistics::default() });
        point
    }

    fn gathered(text: &str, points: &[Summary], rows: &str) -> FigureData {
        let published = published::parse("p.csv", &format!("series,x,value,source,facet\n{rows}")).unwrap();
        gather(&Figure { definition: parse("f", text).unwrap(), published, given: Vec::new() }, points)
    }

    #[test]
    fn ours_is_converted_with_its_interval_and_x_is_in_order() {
        let data = gathered(FIGURE, &[point("0.8", "reads", 300.0), point("0.10", "reads", 200.0)], "");
        assert_eq!(data.xs, ["0.10", "0.8"]);
        let datum = data.at("reads", "edm", "0.8", Origin::Ours).unwrap();
        assert_eq!((datum.value, datum.half_width), (0.3, Some(0.01)));
    }

    #[test]
    fn a_percentile_that_open_requests_could_raise_is_a_lower_bound() {
        let bounded = |metric: &str, from: Option<f64>| {
            let mut point = point("0.1", "reads", 1.0);
            point.latency_ns.get_mut("all").expect("it is there").lower_bound_from = from;
            let data = gathered(&FIGURE.replace("latency_ns.all.mean", metric), &[point], "");
            data.data[0].lower_bound
        };
        let (of_p99, of_max) = ("latency_ns.all.p99", "latency_ns.all.max");
        assert!(bounded(of_p99, Some(0.99)) && bounded(of_p99, Some(0.5)) && bounded(of_max, Some(1.0)));
        assert!(!bounded(of_p99, Some(0.999)) && !bounded(of_p99, None) && !bounded(of_max, None));
        assert!(!bounded("latency_ns.all.mean", Some(0.5)));
    }

    #[test]
    fn published_numbers_join_the_panels_and_places_of_ours() {
        let rows = "edm,0.1,1.5,paper,reads\nedm,0.1,1.6,paper,writes\n";
        let data = gathered(FIGURE, &[point("0.10", "reads", 200.0)], rows);
        assert_eq!(data.at("reads", "edm", "0.10", Origin::Paper).unwrap().value, 1.5);
        assert_eq!((data.facets.len(), data.xs.len()), (1, 1));
    }

    #[test]
    fn what_a_tool_has_measured_is_ours_and_needs_no_point() {
        let text = FIGURE.replace("metric = 'latency_ns.all.mean'", "metrics = []").replace("facet = 'mix'\n", "");
        let text = text.replace("published = 'p.csv'", "published = { file = 'p.csv', where = { facet = 'ports' } }");
        let data =
            gathered(&text, &[], "cells,16,9.5,measured,ports\ncells,4,2,measured,ports\ncells,4,1,measured,x\n");
        assert_eq!((data.xs.as_slice(), data.data.len()), (["4".to_owned(), "16".into()].as_slice(), 2));
        assert_eq!(data.at("", "cells", "16", Origin::Ours).unwrap().value, 9.5);
    }

    #[test]
    fn a_series_can_be_what_others_are_divided_by() {
        let text = FIGURE.replace("factor = 0.001", "relative_to = 'edm'");
        let rival = |load: &str, mean: f64| Summary { design: "cxl".into(), ..point(load, "reads", mean) };
        let points = [point("0.1", "reads", 200.0), rival("0.1", 500.0), rival("0.3", 900.0)];
        let data = gathered(&text, &points, "cxl,0.1,2.6,paper,reads\n");
        let ours = data.at("reads", "cxl", "0.1", Origin::Ours).unwrap();
        // 10 of 200 and 10 of 500, of the ratio.
        assert_eq!((ours.value, ours.half_width), (2.5, Some((0.05 + 0.02) * 2.5)));
        assert_eq!(data.at("reads", "cxl", "0.1", Origin::Paper).unwrap().value, 2.6);
        assert_eq!((data.series.as_slice(), data.data.len()), (["cxl".to_owned()].as_slice(), 2));
        assert_eq!(data.gaps, ["edm has no number at reads 0.3 to divide by."]);
    }

    #[test]
    fn a_number_can_be_a_share_and_of_some_points_alone() {
        let text = FIGURE.replace(
            "metric = 'latency_ns.all.mean'",
            "metrics = [{ metric = 'latency_ns.all.mean', where = { load = '0.1' } }]",
        );
        let text = text.replace("factor = 0.001", "divide_by = 'latency_ns.all.max'");
        let mut one = point("0.1", "reads", 200.0);
        one.latency_ns.get_mut("all").expect("it is there").max = 800.0;
        let data = gathered(&text, &[one, point("0.2", "reads", 200.0)], "");
        assert_eq!((data.data.len(), data.data[0].value, data.data[0].half_width), (1, 0.25, None));
        let empty = gathered(&text, &[point("0.1", "reads", 200.0)], "");
        assert_eq!(empty.gaps, ["200 of 0 is no share at edm, load 0.1, mix reads."]);
    }

    #[test]
    fn nothing_is_left_out_silently() {
        let mut odd = point("0.1", "reads", 1.0);
        odd.labels.remove("load");
        let unmeasured = Summary { latency_ns: Default::default(), ..point("0.3", "reads", 1.0) };
        let data = gathered(FIGURE, &[point("0.2", "reads", 1.0), point("0.2", "reads", 2.0), odd, unmeasured], "");
        assert_eq!(data.data.len(), 1);
        let gaps = data.gaps.join("\n");
        for words in [
            "More than one number of ours belongs at reads edm 0.2",
            "without a label load",
            "No latency_ns.all.mean at edm, load 0.3",
        ] {
            assert!(gaps.contains(words), "{gaps}");
        }
    }

    #[test]
    fn a_star_is_a_series_for_each_number_but_those_that_are_always_zero() {
        let text = FIGURE.replace("'latency_ns.all.mean'", "'span_mean_ns.read.*'");
        let text = text.replace("facet = 'mix'", "series = 'span'");
        let mut point = point("0.2", "reads", 7.0);
        let spans = [("flash", 3000.0), ("network", 5000.0), ("mac", 0.0)];
        let spans = spans.map(|(name, mean)| (name.to_owned(), mean));
        point.span_mean_ns.insert("read".into(), spans.into());
        let data = gathered(&text, &[point.clone()], "");
        assert_eq!(data.series, ["flash", "network"]);
        assert_eq!(data.at("", "network", "0.2", Origin::Ours).unwrap().value, 5.0);
        point.span_mean_ns.clear();
        let empty = gathered(&text, &[point], "");
        assert!(empty.data.is_empty() && empty.gaps[0].contains("span_mean_ns.read.*"), "{:?}", empty.gaps);
    }

    #[test]
    fn one_point_can_give_several_numbers_with_labels_of_their_own() {
        let text = "title = 't'\ncaption = 'c'\nkind = 'stacked-bars'\nseries = 'part'\n[x]\nlabel = 'mix'\ntitle = 'Mix'\n[y]\ntitle = 'ns'\nmetrics = [{ metric = 'latency_ns.all.mean', set = { part = 'mean' } }, { sum = ['latency_ns.all.mean', 'latency_ns.all.max'], set = { part = 'both' } }]\n";
        let data = gathered(text, &[point("0.2", "reads", 7.0)], "");
        assert_eq!(data.series, ["mean", "both"]);
        assert_eq!(data.at("", "both", "reads", Origin::Ours).unwrap().half_width, None);
    }
}
