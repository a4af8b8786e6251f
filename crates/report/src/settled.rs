//! What searches of boxes have found: `settled.json`, and what follows for a verdict.
//!
//! A claim that differs at the defaults is *undetermined* when it agrees somewhere in its box, and
//! no claim that agrees at the defaults is lost there. Otherwise it differs, and the search says
//! how near it came.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::settle::{Answer, Parameter, Range, SettleBox, Tried};
use crate::{ClaimResult, Value, Verdict};

/// The search of a box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    /// The experiment beside which the box lies, `edm/fig6`.
    pub experiment: String,
    /// The scale of the runs.
    pub scale: String,
    /// The program's version.
    pub version: String,
    /// The box.
    pub parameters: Vec<Unprinted>,
    /// What all its points set, as in a file.
    pub set: BTreeMap<String, String>,
    /// One a claim.
    pub answers: Vec<Answer>,
    /// Where most of the claims agree together.
    pub together: Option<BTreeMap<String, String>>,
    /// All that was tried: the defaults first.
    pub points: Vec<Tried>,
}

/// A parameter that the paper does not print, as it was searched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unprinted {
    /// The key path in an experiment file.
    pub key: String,
    /// Further keys that always had the same value.
    pub also: Vec<String>,
    /// The lowest and the highest value, or each word.
    pub range: Vec<Json>,
    /// Numbers between two ends.
    pub is_range: bool,
    /// Even in the logarithm.
    pub is_log: bool,
    /// Where the range comes from.
    pub source: String,
}

/// What the searches say of a claim that does not agree at the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// What decides it; none if it holds nowhere.
    pub decided: Option<Decided>,
    /// What was searched.
    pub searched: Searched,
}

/// The parameter that decides a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// Its key path in an experiment file.
    pub parameter: String,
    /// Where the claim holds: the lowest and the highest value, or each word.
    pub range: Vec<Json>,
    /// Where the searched range comes from.
    pub source: String,
}

/// A search as `claims.json` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Searched {
    /// The experiment beside which the box lies.
    pub experiment: String,
    /// The scale of the runs.
    pub scale: String,
    /// By parameter the lowest and the highest value, or each word.
    pub r#box: BTreeMap<String, Vec<Json>>,
    /// Points of the box that ran.
    pub points: usize,
    /// Those at which the claim holds.
    pub held: usize,
    /// The value that is nearest to agreement, or agrees; null if no point has one.
    pub nearest: Option<Value>,
    /// The parameters' values there.
    pub at: BTreeMap<String, Json>,
}

impl Settled {
    /// Whether the search was about this box.
    pub fn is_of(&self, settle: &SettleBox) -> bool {
        let parameters: Vec<Unprinted> = settle.parameters.iter().map(Unprinted::from).collect();
        let mut searched: Vec<&String> = self.answers.iter().map(|answer| &answer.claim).collect();
        let mut named: Vec<&String> = settle.claims.iter().collect();
        searched.sort();
        named.sort();
        self.parameters == parameters && self.set == settle.set && searched == named
    }

    /// What the search says of a claim.
    pub fn settlement(&self, claim: &str) -> Option<Settlement> {
        let answer = self.answers.iter().find(|answer| answer.claim == claim)?;
        let json = |settings: &BTreeMap<String, String>| {
            settings.iter().map(|(key, text)| (key.clone(), json_of(text))).collect()
        };
        let searched = Searched {
            experiment: self.experiment.clone(),
            scale: self.scale.clone(),
            r#box: self.parameters.iter().map(|one| (one.key.clone(), one.range.clone())).collect(),
            points: answer.points,
            held: answer.held,
            nearest: answer.nearest.as_ref().map(|nearest| nearest.value.clone()),
            at: answer.nearest.as_ref().map_or_else(BTreeMap::new, |nearest| json(&nearest.settings)),
        };
        Some(Settlement { decided: self.decided(answer), searched })
    }

    /// The parameter that explains most of the variance of our value. Where none explains a tenth,
    /// the one that has to be in the smallest share of its range for the claim to hold.
    fn decided(&self, answer: &Answer) -> Option<Decided> {
        let explains = |one: &Unprinted| answer.sensitivity.get(&one.key).copied().filter(|share| *share >= 0.1);
        let holds = |one: &Unprinted| one.share(answer.region.get(&one.key).map_or(&[][..], Vec::as_slice));
        let weight = |one: &&Unprinted| explains(one).unwrap_or(-holds(one));
        let deciding = self.parameters.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
        let range = answer.region.get(&deciding.key)?.iter().map(|text| json_of(text)).collect();
        Some(Decided { parameter: deciding.key.clone(), range, source: deciding.source.clone() })
    }
}

impl From<&Parameter> for Unprinted {
    fn from(parameter: &Parameter) -> Unprinted {
        let (range, is_range, is_log) = match &parameter.range {
            Range::Choice(values) => (values.iter().map(|value| json_of(&value.to_string())).collect(), false, false),
            Range::Numbers { is_log, .. } => {
                (vec![json_of(&parameter.at(0.0)), json_of(&parameter.at(1.0))], true, *is_log)
            }
        };
        Unprinted {
            key: parameter.key.clone(),
            also: parameter.also.clone(),
            range,
            is_range,
            is_log,
            source: parameter.source.clone(),
        }
    }
}

impl Unprinted {
    /// The share of the range, from 0 to 1, that a region covers.
    fn share(&self, region: &[String]) -> f64 {
        if !self.is_range {
            return region.len() as f64 / self.range.len().max(1) as f64;
        }
        let place = |value: f64| if self.is_log { value.ln() } else { value };
        let ends: Vec<f64> = self.range.iter().filter_map(number_of).map(place).collect();
        let inside: Vec<f64> = region.iter().filter_map(|text| number_of(&json_of(text))).map(place).collect();
        match (&ends[..], &inside[..]) {
            ([low, high], [from, to]) => (to - from) / (high - low),
            _ => 0.0,
        }
    }
}

/// A value of a file as JSON has it.
pub(crate) fn json_of(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned()))
}

/// A number, without its unit.
pub(crate) fn number_of(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => {
            let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
            text[..end].parse().ok()
        }
        _ => None,
    }
}

/// Values as a reader sees them.
pub(crate) fn show_range(values: &[Json]) -> String {
    let is_number = values.iter().all(|value| number_of(value).is_some());
    let word = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut words: Vec<String> = values.iter().map(word).collect();
    words.dedup();
    words.join(match (is_number, words.len()) {
        (true, 2) => " to ",
        (true, _) => ", ",
        (false, _) => " or ",
    })
}

/// Gives the searches to each claim that differs or is unresolved: it becomes undetermined where
/// one of them has found agreement.
pub fn settle(results: &mut [ClaimResult], settled: &[Settled]) {
    let is_open = |result: &&mut ClaimResult| matches!(result.verdict, Verdict::Differs | Verdict::Unresolved);
    for result in results.iter_mut().filter(is_open) {
        let mut found: Vec<Settlement> = settled.iter().filter_map(|one| one.settlement(&result.id)).collect();
        found.sort_by_key(|settlement| settlement.decided.is_none());
        let Some(settlement) = found.into_iter().next() else { continue };
        if settlement.decided.is_some() {
            result.verdict = Verdict::Undetermined;
        }
        result.reason = format!("{}. {}", result.reason.trim_end_matches('.'), settlement.text());
        result.settlement = Some(settlement);
    }
}

impl Settlement {
    fn text(&self) -> String {
        let Searched { experiment, points, held, .. } = &self.searched;
        match (&self.decided, &self.searched.nearest) {
            (Some(Decided { parameter, range, .. }), _) => format!(
                "It agrees at {held} of {points} points of the box of {experiment}, within {parameter} {}",
                show_range(range)
            ),
            (None, Some(nearest)) => format!(
                "None of {points} points of the box of {experiment} settles it: the nearest value is {}",
                nearest.show()
            ),
            (None, None) => format!("None of {points} points of the box of {experiment} has a value"),
        }
    }
}

/// The counts by verdict, and what decides the claims that were searched, as a page of Markdown.
pub fn markdown(results: &[ClaimResult], settled: &[Settled]) -> String {
    let mut text = HEAD.to_owned();
    let paper = |result: &ClaimResult| result.id.split('.').next().unwrap_or_default().to_owned();
    let papers: BTreeSet<String> = results.iter().map(paper).collect();
    let row = |name: &str, of: &dyn Fn(&ClaimResult) -> bool| {
        let of: Vec<&ClaimResult> = results.iter().filter(|result| of(result)).collect();
        let count = |verdict| of.iter().filter(|result| result.verdict == verdict).count();
        let counts: String = Verdict::ALL.map(|verdict| format!(" {} |", count(verdict))).concat();
        format!("| {name} | {} |{counts}\n", of.len())
    };
    text += &papers.iter().map(|name| row(name, &|result| paper(result) == *name)).collect::<String>();
    text += &row("all", &|_| true);
    text += SEARCHED;
    for one in settled {
        for answer in &one.answers {
            let Some(result) = results.iter().find(|result| result.id == answer.claim) else { continue };
            text += &one.parameters.iter().map(|parameter| line(result, answer, parameter)).collect::<String>();
        }
    }
    text
}

const HEAD: &str = "# Published claims by verdict

`rackweave claims --markdown` prints this page from the shipped results, and a test keeps it fresh.
[Measuring](concepts/measuring.md#verdicts) defines the verdicts.

| paper | claims | agree | undetermined | differ | unresolved | not comparable |
| --- | --- | --- | --- | --- | --- | --- |
";
const SEARCHED: &str = "
## What decides a claim

Each row is a parameter that the paper does not print. *Share* is its first-order Sobol index: the
share of the variance of our value over the box that it explains alone. *Holds* is where the claim
agrees without the loss of one that agrees at the defaults.

Shares come from 12 to 64 points and are uncertain by 10 to 20 %. None is given where the points tie
two parameters together, or where the value does not vary.

| claim | verdict | paper | ours | parameter | searched | share | holds | source of the range |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

fn line(result: &ClaimResult, answer: &Answer, parameter: &Unprinted) -> String {
    let share =
        answer.sensitivity.get(&parameter.key).map_or("–".to_owned(), |share| format!("{:.0} %", 100.0 * share));
    let region: Vec<Json> = answer.region.get(&parameter.key).into_iter().flatten().map(|text| json_of(text)).collect();
    let holds = if region.is_empty() { "nowhere".to_owned() } else { show_range(&region) };
    let ours = result.ours.as_ref().map_or("–".to_owned(), Value::show);
    format!(
        "| {} | {} | {} | {ours} | `{}` | {} | {share} | {holds} | {} |\n",
        result.id,
        result.verdict.name(),
        result.paper.show(),
        parameter.key,
        show_range(&parameter.range),
        parameter.source
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settle::Nearest;
    use crate::{claims, judge};

    const LEDGER: &str = r#"
paper = "edm"
[[claim]]
id = "edm.a"
where = "Figure 1"
role = "validation"
setting = "s"
metric = "m"
unit = "ratio"
paper = 4
accept = [3.5, 4.5]
"#;

    fn results(verdict: Verdict) -> Vec<ClaimResult> {
        let mut results = judge(&claims::parse("ledger", LEDGER).unwrap().claims, &[]).unwrap().results;
        results[0].verdict = verdict;
        results[0].reason = "outside 3.5 to 4.5. The fibre is shorter.".into();
        results
    }

    /// A search that found agreement in this part of the range of the latency, or nowhere.
    fn settled(experiment: &str, region: Option<[&str; 2]>) -> Settled {
        let range = |key: &str, range: [Json; 2], is_log| Unprinted {
            key: key.into(),
            also: Vec::new(),
            range: range.to_vec(),
            is_range: true,
            is_log,
            source: "a data sheet".into(),
        };
        let words = |ends: [&str; 2]| ends.map(str::to_owned).to_vec();
        let held = region.map(|ends| [("depth".to_owned(), words(["1", "6"])), ("latency".to_owned(), words(ends))]);
        let nearest = Nearest { value: Value::Number(3.4), settings: [("depth".into(), "2".into())].into() };
        let answer = Answer {
            claim: "edm.a".into(),
            accept: "3.5 to 4.5".into(),
            ours: Some(Value::Number(9.0)),
            agrees: false,
            points: 64,
            held: if region.is_some() { 12 } else { 0 },
            alone: 12,
            region: held.map_or_else(BTreeMap::new, BTreeMap::from),
            sensitivity: [("depth".to_owned(), 0.05)].into(),
            nearest: Some(nearest),
        };
        Settled {
            experiment: experiment.into(),
            scale: "quick".into(),
            version: "1".into(),
            parameters: vec![
                range("depth", [Json::from(1), Json::from(8)], false),
                range("latency", [Json::from("1us"), Json::from("100us")], true),
            ],
            set: BTreeMap::new(),
            answers: vec![answer],
            together: None,
            points: Vec::new(),
        }
    }

    #[test]
    fn a_claim_that_holds_somewhere_is_undetermined_with_the_parameter_that_decides_it() {
        let mut found = results(Verdict::Differs);
        // One box has it nowhere, another somewhere: the latter counts.
        settle(&mut found, &[settled("edm/x", None), settled("edm/y", Some(["\"10us\"", "\"20us\""]))]);
        assert_eq!(found[0].verdict, Verdict::Undetermined);
        let decided = found[0].settlement.as_ref().unwrap().decided.clone().unwrap();
        assert_eq!((decided.parameter.as_str(), decided.source.as_str()), ("latency", "a data sheet"));
        assert_eq!(decided.range, ["10us", "20us"]);
        let told = "It agrees at 12 of 64 points of the box of edm/y, within latency 10us to 20us";
        assert_eq!(found[0].reason, format!("outside 3.5 to 4.5. The fibre is shorter. {told}"));
        // In the logarithm, 1 to 90 of 1 to 100 is more than five sevenths.
        let mut wide = results(Verdict::Differs);
        settle(&mut wide, &[settled("edm/y", Some(["\"1us\"", "\"90us\""]))]);
        assert_eq!(wide[0].settlement.as_ref().unwrap().decided.as_ref().unwrap().parameter, "depth");
        // What explains a good part of the variance comes before what is narrow.
        let mut explained = settled("edm/y", Some(["\"10us\"", "\"20us\""]));
        explained.answers[0].sensitivity.insert("depth".into(), 0.1);
        let mut found = results(Verdict::Differs);
        settle(&mut found, &[explained]);
        assert_eq!(found[0].settlement.as_ref().unwrap().decided.as_ref().unwrap().parameter, "depth");
    }

    #[test]
    fn a_claim_that_holds_nowhere_differs_and_says_how_near_it_came() {
        let mut found = results(Verdict::Differs);
        settle(&mut found, &[settled("edm/x", None)]);
        assert_eq!(found[0].verdict, Verdict::Differs);
        let searched = &found[0].settlement.as_ref().unwrap().searched;
        assert_eq!((searched.points, &searched.nearest), (64, &Some(Value::Number(3.4))));
        assert_eq!((&searched.at["depth"], &searched.r#box["latency"][1]), (&Json::from(2), &Json::from("100us")));
        assert!(found[0].reason.ends_with("settles it: the nearest value is 3.4"), "{}", found[0].reason);
    }

    #[test]
    fn only_claims_that_differ_or_want_more_seeds_are_settled() {
        let settled = [settled("edm/x", Some(["\"1us\"", "\"2us\""]))];
        for verdict in [Verdict::Agrees, Verdict::NotComparable] {
            let mut found = results(verdict);
            settle(&mut found, &settled);
            assert_eq!((found[0].verdict, &found[0].settlement), (verdict, &None));
        }
        let mut found = results(Verdict::Unresolved);
        settle(&mut found, &settled);
        assert_eq!(found[0].verdict, Verdict::Undetermined);
    }

    #[test]
    fn the_page_counts_verdicts_and_has_a_row_for_each_parameter() {
        let mut found = results(Verdict::Differs);
        let searches = [settled("edm/x", Some(["\"10us\"", "\"20us\""]))];
        settle(&mut found, &searches);
        let page = markdown(&found, &searches);
        assert!(page.contains("| edm | 1 | 0 | 1 | 0 | 0 | 0 |"), "{page}");
        assert!(page.contains("| `depth` | 1 to 8 | 5 % | 1 to 6 | a data sheet |"), "{page}");
        assert!(page.contains("| `latency` | 1us to 100us | – | 10us to 20us |"), "{page}");
    }
}
