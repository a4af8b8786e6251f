//! Verdicts as text: an aligned table for a terminal, JSON for machines.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::value::show_with_unit;
use crate::{ClaimResult, Interval, Value, Verdict};

/// The verdicts as an aligned table, one claim a line, followed by the reason of each that does not
/// agree and a count.
pub fn table(results: &[ClaimResult]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["claim", "where", "role", "paper", "artifact", "ours", "verdict"]);
    for result in results {
        table.add_row(cells(result));
    }
    for column in 3..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim().to_owned()).collect();
    format!("{}\n{}\n{}\n", lines.join("\n"), reasons(results), tally(results)).replace("\n\n\n", "\n\n")
}

fn cells(result: &ClaimResult) -> [String; 7] {
    let show =
        |value: &Option<Value>| value.as_ref().map_or("–".to_owned(), |value| show_with_unit(value, &result.unit));
    [
        result.id.clone(),
        result.place.clone(),
        result.role.name().to_owned(),
        show_with_unit(&result.paper, &result.unit),
        show(&result.artifact),
        format!("{}{}", show(&result.ours), interval(result)),
        result.verdict.name().to_owned(),
    ]
}

/// The interval over seeds in brackets, after a value; nothing with one seed.
pub(crate) fn interval(result: &ClaimResult) -> String {
    result.interval.as_ref().map_or_else(String::new, |interval| format!(" ({})", interval.show()))
}

fn reasons(results: &[ClaimResult]) -> String {
    let told = results.iter().filter(|result| result.verdict != Verdict::Agrees);
    told.map(|result| format!("\n{}: {}", result.id, result.reason)).collect()
}

/// "17 agree, 2 differ, 1 not comparable".
pub(crate) fn tally(results: &[ClaimResult]) -> String {
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let of = [Verdict::Agrees, Verdict::Differs, Verdict::Unresolved, Verdict::NotComparable];
    let [agrees, differs, unresolved, not_comparable] = of.map(count);
    let unresolved = if unresolved > 0 { format!("{unresolved} unresolved, ") } else { String::new() };
    format!("{} claims: {agrees} agree, {differs} differ, {unresolved}{not_comparable} not comparable", results.len())
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    paper: &'a Value,
    ours: Option<Value>,
    interval: Option<Interval>,
    seeds: usize,
    verdict: Verdict,
    reason: &'a str,
}

/// `claims.json`: a list of `{"id", "paper", "ours", "interval", "seeds", "verdict", "reason"}`.
/// `ours` has the unit and the shape of `paper`, and is null when there is none. `interval` is a
/// pair of ends for each number or statement, and null with one seed. Numbers are rounded to ten
/// significant digits: what follows is noise of binary fractions.
pub fn claims_json(results: &[ClaimResult]) -> String {
    let line = |result: &'_ ClaimResult| serde_json::to_string(&line(result)).unwrap_or_default();
    let lines: Vec<String> = results.iter().map(line).collect();
    format!("[\n  {}\n]\n", lines.join(",\n  "))
}

fn line(result: &ClaimResult) -> Line<'_> {
    Line {
        id: &result.id,
        paper: &result.paper,
        ours: result.ours.as_ref().map(rounded),
        interval: result.interval.as_ref().map(rounded_interval),
        seeds: result.seeds,
        verdict: result.verdict,
        reason: &result.reason,
    }
}

fn rounded_number(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

fn rounded_interval(interval: &Interval) -> Interval {
    match interval {
        Interval::Numbers(ends) => Interval::Numbers(ends.map(rounded_number)),
        Interval::Truths(ends) => Interval::Truths(*ends),
        Interval::Each(items) => Interval::Each(items.iter().map(rounded_interval).collect()),
    }
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(rounded_number(*number)),
        Value::Truth(truth) => Value::Truth(*truth),
        Value::List(items) => Value::List(items.iter().map(rounded).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::ledgers;
    use crate::judge;

    #[test]
    fn columns_line_up_whatever_the_width_of_the_letters() {
        let mut results = judge(&ledgers()[0].claims, &[]).unwrap().results;
        results[0].id = "edm.größe.表".into();
        let text = table(&results[..3]);
        let lines: Vec<&str> = text.lines().take(4).collect();
        let starts: Vec<usize> = lines
            .iter()
            .zip(["where", "Table 1", "Table 1", "Table 1"])
            .map(|(line, word)| width(&line[..line.find(word).unwrap()]))
            .collect();
        assert!(starts.iter().all(|start| *start == starts[0]), "{text}");
        assert!(text.contains("3 claims: 0 agree, 0 differ, 3 not comparable"), "{text}");
    }

    /// East Asian ideographs take two columns of a terminal.
    fn width(text: &str) -> usize {
        text.chars().map(|letter| if letter == '表' { 2 } else { 1 }).sum()
    }

    #[test]
    fn every_claim_can_be_shown_before_anything_was_run() {
        for ledger in ledgers() {
            let results = judge(&ledger.claims, &[]).unwrap().results;
            let text = table(&results);
            assert!(results.iter().all(|result| text.contains(&result.id)), "{text}");
            let json: serde_json::Value = serde_json::from_str(&claims_json(&results)).unwrap();
            assert_eq!(json.as_array().unwrap().len(), results.len());
            assert!(json[0]["ours"].is_null());
        }
    }
}
