//! Comparisons as text for a terminal, and as JSON and CSV for programs.

use super::{Change, Comparison, Difference, Group};
use crate::table::lines_of;
use crate::value::show_number;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;

/// The comparison as a table. Without `all`, spans and metrics are shown only where they differ,
/// and metrics not at all.
pub fn text(comparison: &Comparison, all: bool) -> String {
    let Comparison { first, second, seeds, requests, .. } = comparison;
    let of = if comparison.is_paired { "paired requests" } else { "requests, not paired" };
    let mut text = format!("A          {first}\nB          {second}\nseeds      {seeds:?}, {requests} {of}\n");
    for warning in &comparison.warnings {
        let _ = writeln!(text, "warning    {warning}");
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["value", "unit", "A", "B", "B - A", "95 % interval", "change", ""]);
    for difference in comparison.differences.iter().filter(|difference| all || is_news(difference)) {
        table.add_row(cells(difference));
    }
    for column in 2..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text + "\n" + &lines_of(&table) + "\n"
}

/// Whether a reader who asks for no more must see it.
fn is_news(difference: &Difference) -> bool {
    match difference.name.group {
        Group::Latency | Group::Load | Group::Requests => true,
        Group::Span => matches!(difference.change, Change::Lower | Change::Higher | Change::OneSeed),
        Group::Metric => false,
    }
}

fn cells(difference: &Difference) -> [String; 8] {
    let Difference { name, unit, first, second, difference: by, interval, change } = difference;
    let label = [name.group.name(), &name.of, name.statistic].join(" ");
    let interval = interval.map_or("–".into(), |[low, high]| format!("{} to {}", signed(low), signed(high)));
    let share = if *first == 0.0 || *by == 0.0 { "–".into() } else { format!("{:+.2} %", 100.0 * by / first) };
    let verdict = match change {
        Change::None => "no difference at this size",
        Change::OneSeed => "one seed: no interval",
        change => change.name(),
    };
    let unit = if unit == "none" { String::new() } else { unit.clone() };
    [label.trim().into(), unit, short(*first), short(*second), signed(*by), interval, share, verdict.into()]
}

/// Five significant digits.
fn short(number: f64) -> String {
    show_number(if number.fract() != 0.0 && number.abs() >= 1e4 { number.round() } else { number })
}

fn signed(number: f64) -> String {
    if number > 0.0 { format!("+{}", short(number)) } else { short(number) }
}

/// The comparisons as a JSON list.
pub fn json(comparisons: &[Comparison]) -> String {
    serde_json::to_string_pretty(comparisons).expect("names are texts, and values numbers") + "\n"
}

/// The comparisons as CSV with a header, one value a line.
pub fn csv(comparisons: &[Comparison]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header =
        ["first", "second", "group", "of", "statistic", "unit", "a", "b", "difference", "low", "high", "change"];
    let mut write = |cells: &[String]| writer.write_record(cells).expect("memory takes every line");
    write(&header.map(str::to_owned));
    for comparison in comparisons {
        for difference in &comparison.differences {
            let Difference { name, unit, first, second, difference: by, interval, change } = difference;
            let end = |place: usize| interval.map_or(String::new(), |ends| ends[place].to_string());
            write(&[
                comparison.first.clone(),
                comparison.second.clone(),
                name.group.name().into(),
                name.of.clone(),
                name.statistic.into(),
                unit.clone(),
                first.to_string(),
                second.to_string(),
                by.to_string(),
                end(0),
                end(1),
                change.name().into(),
            ]);
        }
    }
    let bytes = writer.into_inner().expect("memory takes every line");
    String::from_utf8(bytes).expect("every cell is text")
}
