//! Verdicts as text: an aligned table for a terminal, JSON for machines.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};

use crate::settled::{Decided, Searched, Settlement};
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
    format!("{}\n{}\n{}\n", lines_of(&table), reasons(results), tally(results)).replace("\n\n\n", "\n\n")
}

/// The lines of a table without the space around it.
pub(crate) fn lines_of(table: &Table) -> String {
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned());
    lines.collect::<Vec<String>>().join("\n")
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

/// "17 claims: 14 agree, 2 undetermined, 1 differ, 0 not comparable"; unresolved ones if there are
/// any.
pub fn tally(results: &[ClaimResult]) -> String {
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let of = Verdict::ALL.map(count);
    let words = ["agree", "undetermined", "differ", "unresolved", "not comparable"];
    let parts =
        of.iter().zip(words).filter(|(count, word)| **count > 0 || !["undetermined", "unresolved"].contains(word));
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    let plural = if results.len() == 1 { "" } else { "s" };
    format!("{} claim{plural}: {}", results.len(), parts.join(", "))
}

/// A verdict as files keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The claim's id.
    pub id: String,
    /// The value with which ours was compared.
    pub paper: Value,
    /// Ours, in the unit and the shape of `paper`; null when there is none.
    pub ours: Option<Value>,
    /// Its interval over seeds: a pair of ends for each number or statement; null with one seed.
    pub interval: Option<Interval>,
    /// Number of seeds.
    pub seeds: usize,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The reason of the verdict.
    pub reason: String,
    /// Of an undetermined claim: the key of the parameter that decides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Of an undetermined claim: where it holds, as the lowest and the highest value, or each word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Vec<serde_json::Value>>,
    /// Of an undetermined claim: where the searched range of the parameter comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Of a claim that does not agree at the defaults: what was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<Searched>,
}

impl Known {
    /// Numbers are rounded to ten significant digits: what follows is noise of binary fractions.
    pub fn of(result: &ClaimResult) -> Known {
        let decided = result.settlement.as_ref().and_then(|settlement| settlement.decided.clone());
        let decided = decided.map(|Decided { parameter, range, source }| (parameter, (range, source)));
        let (parameter, rest) = decided.unzip();
        let (range, source) = rest.unzip();
        Known {
            id: result.id.clone(),
            paper: result.paper.clone(),
            ours: result.ours.as_ref().map(rounded),
            interval: result.interval.as_ref().map(rounded_interval),
            seeds: result.seeds,
            verdict: result.verdict,
            reason: result.reason.clone(),
            parameter,
            range,
            source,
            searched: result.settlement.as_ref().map(|settlement| settlement.searched.clone()),
        }
    }

    /// Gives what is kept to a claim's result.
    pub fn complete(&self, result: &mut ClaimResult) {
        result.ours.clone_from(&self.ours);
        result.interval.clone_from(&self.interval);
        result.seeds = self.seeds;
        result.verdict = self.verdict;
        result.reason.clone_from(&self.reason);
        let decided = self.parameter.clone().zip(self.range.clone()).zip(self.source.clone());
        let decided = decided.map(|((parameter, range), source)| Decided { parameter, range, source });
        result.settlement = self.searched.clone().map(|searched| Settlement { decided, searched });
    }
}

/// `claims.json`: a list of [`Known`], one claim a line.
pub fn claims_json(results: &[ClaimResult]) -> String {
    let line = |result: &ClaimResult| serde_json::to_string(&Known::of(result)).unwrap_or_default();
    let lines: Vec<String> = results.iter().map(line).collect();
    format!("[\n  {}\n]\n", lines.join(",\n  "))
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
