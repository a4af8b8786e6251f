//! The results of runs, one a row, for a terminal and for programs.

use crate::table::lines_of;
use crate::value::show_number;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use record::{ALL_OPERATIONS, Statistics, Summary};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns of the CSV behind the names of the points.
const COLUMNS: [&str; 16] = [
    "design",
    "seeds",
    "operation",
    "requests",
    "unfinished",
    "offered_gbps",
    "achieved_gbps",
    "requests_per_second",
    "mean_ns",
    "mean_ci95_ns",
    "p50_ns",
    "p99_ns",
    "p99_ci95_ns",
    "p999_ns",
    "partial",
    "warnings",
];

/// An aligned table: a row for each point and, with several, for each of its operations. Warnings
/// follow, those of one kind together. Empty without points.
///
/// Latency is in the same unit for all rows. `±` is half of the 95 % interval over seeds, and `>=`
/// a lower bound, since requests that did not end could raise it.
pub fn text(points: &[(String, &Summary)]) -> String {
    let rows: Vec<Row<'_>> = points.iter().flat_map(|(name, summary)| rows_of(name, summary)).collect();
    let unit = Unit::of(rows.iter().filter_map(|row| row.latency));
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let latency = ["mean", "p50", "p99", "p99.9"].map(|name| format!("{name} {}", unit.name));
    let head = ["point", "", "offered Gb/s", "achieved Gb/s", "requests/s"].map(str::to_owned);
    table.set_header(head.into_iter().chain(latency).chain(["unfinished".to_owned()]));
    for row in &rows {
        table.add_row(row.cells(unit));
    }
    for column in 2..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let table = if rows.is_empty() { String::new() } else { lines_of(&table) + "\n" };
    table + &warnings(points)
}

/// One line of the table.
struct Row<'a> {
    name: &'a str,
    operation: &'a str,
    summary: &'a Summary,
    /// Whether it is the first of its point, which has what is said of all operations.
    is_first: bool,
    latency: Option<&'a Statistics>,
}

/// All operations together first; an only one is all there is. A run without requests has one row.
fn rows_of<'a>(name: &'a str, summary: &'a Summary) -> Vec<Row<'a>> {
    let mut latencies: Vec<(&str, Option<&Statistics>)> =
        summary.latency_ns.iter().map(|(operation, latency)| (&**operation, Some(latency))).collect();
    latencies.sort_by_key(|(operation, _)| *operation != ALL_OPERATIONS);
    if latencies.len() == 2 {
        latencies.truncate(1);
    }
    if latencies.is_empty() {
        latencies.push(("", None));
    }
    let row = |(place, (operation, latency)): (usize, (&'a str, Option<&'a Statistics>))| Row {
        name,
        operation,
        summary,
        is_first: place == 0,
        latency,
    };
    latencies.into_iter().enumerate().map(row).collect()
}

impl Row<'_> {
    fn cells(&self, unit: Unit) -> [String; 10] {
        let Row { name, operation, summary, latency, .. } = self;
        let load = &summary.load;
        let once = |text: String| if self.is_first { text } else { String::new() };
        let value = |from: f64, number: fn(&Statistics) -> f64, half: fn(&Statistics) -> Option<f64>| {
            latency.map_or("–".to_owned(), |latency| unit.show(latency, from, number(latency), half(latency)))
        };
        [
            once((*name).to_owned()),
            (*operation).to_owned(),
            once(show_number(round(load.offered_gbps))),
            once(show_number(round(load.achieved_gbps))),
            once(show_number(load.requests_per_second.round())),
            value(0.0, |latency| latency.mean, |latency| latency.mean_ci95),
            value(0.5, |latency| latency.p50, |_| None),
            value(0.99, |latency| latency.p99, |latency| latency.p99_ci95),
            value(0.999, |latency| latency.p999, |_| None),
            once(unfinished(summary).to_string()),
        ]
    }
}

/// Requests that did not finish in whatever way, those that were never taken up included.
fn unfinished(summary: &Summary) -> u64 {
    summary.counts.offered.saturating_sub(summary.counts.finished)
}

/// Three decimals: no load is known better.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// The unit of all latencies of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub name: &'static str,
    pub ns: f64,
}

impl Unit {
    /// The largest unit in which the smallest mean is at least ten.
    pub fn of<'a>(latencies: impl Iterator<Item = &'a Statistics>) -> Unit {
        let least = latencies.map(|latency| latency.mean).fold(f64::INFINITY, f64::min);
        let units = [Unit { name: "ms", ns: 1e6 }, Unit { name: "us", ns: 1e3 }];
        let fits = |unit: &Unit| least.is_finite() && least >= 10.0 * unit.ns;
        units.into_iter().find(fits).unwrap_or(Unit { name: "ns", ns: 1.0 })
    }

    fn show(self, latency: &Statistics, from: f64, ns: f64, half_ns: Option<f64>) -> String {
        let is_bound = from > 0.0 && latency.lower_bound_from.is_some_and(|least| from >= least);
        let bound = if is_bound { ">= " } else { "" };
        let (value, decimals) = (ns / self.ns, decimals(ns / self.ns));
        let half = half_ns.map_or(String::new(), |half| format!(" ± {:.decimals$}", half / self.ns));
        format!("{bound}{value:.decimals$}{half}")
    }
}

/// The decimals that give four significant digits; none for zero.
fn decimals(number: f64) -> usize {
    if number == 0.0 { 0 } else { (3 - number.abs().log10().floor() as i32).clamp(0, 12) as usize }
}

/// Warnings that differ in numbers only are one kind: the first of them, and how many points have
/// it.
fn warnings(points: &[(String, &Summary)]) -> String {
    let mut kinds: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for (_, summary) in points {
        let mut of_point: Vec<(String, &str)> =
            summary.warnings.iter().map(|warning| (kind(warning), &**warning)).collect();
        of_point.sort();
        of_point.dedup_by(|(one, _), (other, _)| one == other);
        for (kind, warning) in of_point {
            kinds.entry(kind).or_insert((warning, 0)).1 += 1;
        }
    }
    let mut text = String::new();
    for (warning, count) in kinds.values() {
        let of = if points.len() == 1 { String::new() } else { format!("{count} of {} points: ", points.len()) };
        let _ = writeln!(text, "warning    {of}{warning}");
    }
    text
}

/// A warning without its numbers.
pub(crate) fn kind(warning: &str) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let mut kind = String::new();
    for letter in warning.chars() {
        match is_number(letter) {
            true if kind.ends_with('#') => {}
            true => kind.push('#'),
            false => kind.push(letter),
        }
    }
    kind
}

/// The same as CSV, with a header: a line for each point and operation, a column for each axis.
pub fn csv(points: &[(String, &Summary)]) -> String {
    let axes: Vec<&String> = points
        .iter()
        .flat_map(|(_, summary)| summary.labels.keys())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |cells: Vec<String>| writer.write_record(&cells).expect("memory takes every line");
    let head = ["point"].into_iter().chain(axes.iter().map(|axis| axis.as_str())).chain(COLUMNS);
    write(head.map(str::to_owned).collect());
    for (name, summary) in points {
        for row in rows_of(name, summary) {
            let of = |axis: &&String| summary.labels.get(*axis).cloned().unwrap_or_default();
            write([name.clone()].into_iter().chain(axes.iter().map(of)).chain(csv_cells(&row)).collect());
        }
    }
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("every cell is text")
}

fn csv_cells(row: &Row<'_>) -> [String; 16] {
    let Row { operation, summary, latency, .. } = row;
    let of = |number: fn(&Statistics) -> Option<f64>| {
        latency.and_then(number).map_or(String::new(), |number| number.to_string())
    };
    let load = &summary.load;
    [
        summary.design.clone(),
        summary.seeds.len().to_string(),
        (*operation).to_owned(),
        latency.map_or(0, |latency| latency.count).to_string(),
        unfinished(summary).to_string(),
        load.offered_gbps.to_string(),
        load.achieved_gbps.to_string(),
        load.requests_per_second.to_string(),
        of(|latency| Some(latency.mean)),
        of(|latency| latency.mean_ci95),
        of(|latency| Some(latency.p50)),
        of(|latency| Some(latency.p99)),
        of(|latency| latency.p99_ci95),
        of(|latency| Some(latency.p999)),
        summary.partial.to_string(),
        summary.warnings.len().to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(mean: f64, warnings: &[&str]) -> Summary {
        let latency =
            Statistics { count: 90, mean, p50: mean, p99: 2.0 * mean, p999: 3.0 * mean, ..Statistics::default() };
        let mut summary =
            Summary { warnings: warnings.iter().map(|text| (*text).to_owned()).collect(), ..Summary::default() };
        summary.counts.offered = 100;
        summary.counts.finished = 97;
        summary.latency_ns.insert(ALL_OPERATIONS.into(), latency);
        summary.latency_ns.insert("read".into(), latency);
        summary
    }

    #[test]
    fn one_unit_fits_all_rows() {
        let unit = |means: &[f64]| {
            let all: Vec<Statistics> =
                means.iter().map(|mean| Statistics { mean: *mean, ..Statistics::default() }).collect();
            Unit::of(all.iter()).name
        };
        assert_eq!((unit(&[9_999.0, 1e9]), unit(&[10_000.0, 1e9])), ("ns", "us"));
        assert_eq!((unit(&[9_999_999.0]), unit(&[1e7])), ("us", "ms"));
        assert_eq!(unit(&[]), "ns");
    }

    #[test]
    fn four_digits_are_shown() {
        let ns = Unit { name: "ns", ns: 1.0 };
        let shown = |value, half| ns.show(&Statistics::default(), 0.0, value, half);
        let of = [311.6949, 0.012_345_6, 51_234.6, 0.0].map(|value| shown(value, None));
        assert_eq!(of, ["311.7", "0.01235", "51235", "0"]);
        assert_eq!(shown(311.6949, Some(0.2976)), "311.7 ± 0.3", "as precise as its value");
    }

    #[test]
    fn an_only_operation_is_one_row_and_several_are_each_their_own() {
        let mut summary = point(50_000.0, &[]);
        let lines = |summary: &Summary| text(&[("load=0.5".into(), summary)]);
        let one = lines(&summary);
        assert_eq!(one.lines().count(), 2, "{one}");
        assert!(one.contains("50.00") && one.contains("mean us") && one.ends_with("150.0           3\n"), "{one}");
        summary.latency_ns.insert("write".into(), Statistics::default());
        let several = lines(&summary);
        assert_eq!(several.lines().count(), 4);
        let place = |line: &str, word: &str| line.find(word).unwrap();
        let of: Vec<&str> = several.lines().collect();
        assert_eq!(place(of[1], "all"), place(of[2], "read"), "{several}");
        summary.latency_ns.get_mut(ALL_OPERATIONS).unwrap().lower_bound_from = Some(0.99);
        let bounded = lines(&summary);
        assert_eq!(bounded.matches(">= ").count(), 2, "{bounded}");
        summary.latency_ns.clear();
        assert_eq!(lines(&summary).lines().count(), 2);
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn warnings_of_one_kind_are_one_line() {
        let few = |count: u32| format!("about {count}.5 requests are measured");
        let first = point(1.0, &[&few(90), "saturated"]);
        let second = point(1.0, &[&few(80), &few(70)]);
        let text = text(&[("a".into(), &first), ("b".into(), &second)]);
        assert!(text.contains("warning    2 of 2 points: about 90.5 requests are measured\n"), "{text}");
        assert!(text.contains("warning    1 of 2 points: saturated\n"), "{text}");
        assert_eq!(text.matches("warning").count(), 2);
    }

    #[test]
    fn csv_has_a_column_for_each_axis() {
        let (mut first, mut second) = (point(1.0, &[]), point(2.0, &["x, y"]));
        first.labels.insert("load".into(), "0.2".into());
        second.labels.insert("mix".into(), "reads".into());
        let text = csv(&[("a".into(), &first), ("b".into(), &second)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("point,load,mix,design,seeds,operation,requests,unfinished,"), "{text}");
        assert!(lines[1].starts_with("a,0.2,,,0,all,90,3,") && lines[2].starts_with("b,,reads,,0,all,90,3,"), "{text}");
        assert!(lines.iter().all(|line| line.matches(',').count() == 18), "{text}");
    }
}
