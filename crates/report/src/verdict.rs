//! The verdict on each claim.

use std::collections::BTreeMap;

use record::Summary;
use serde::{Deserialize, Serialize};

use crate::bindings::{Binding, Bindings};
use crate::claims::{Claim, Role};
use crate::measure::{Evaluated, Measure, Reading, describe};
use crate::published::PublishedRow;
use crate::settled::Settlement;
use crate::value::Side;
use crate::{Accept, FileError, Interval, Value};

/// The result of comparing our value with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Inside the claim's interval.
    Agrees,
    /// Outside it at the defaults; inside for values of a parameter that the paper does not print.
    Undetermined,
    /// Outside it.
    Differs,
    /// The interval over seeds is partly inside: more seeds decide.
    Unresolved,
    /// There is no value of ours, or it is not about the same thing.
    NotComparable,
}

impl Verdict {
    /// All of them, from the best.
    pub const ALL: [Verdict; 5] =
        [Verdict::Agrees, Verdict::Undetermined, Verdict::Differs, Verdict::Unresolved, Verdict::NotComparable];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Undetermined => "undetermined",
            Verdict::Differs => "differs",
            Verdict::Unresolved => "unresolved",
            Verdict::NotComparable => "not-comparable",
        }
    }
}

/// A claim with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// The claim's id.
    pub id: String,
    /// Figure, table or section of the paper.
    pub place: String,
    /// The quantity, as the ledger of claims has it.
    pub metric: String,
    /// Its purpose.
    pub role: Role,
    /// The unit of all three values.
    pub unit: String,
    /// The paper's value.
    pub paper: Value,
    /// The interval in which ours agrees.
    pub accept: Accept,
    /// The value of the authors' public artifact, if it has one.
    pub artifact: Option<Value>,
    /// Our value, in the shape of the paper's; of several seeds the mean.
    pub ours: Option<Value>,
    /// Its 95 % confidence interval over seeds; none with one seed.
    pub interval: Option<Interval>,
    /// Number of seeds.
    pub seeds: usize,
    /// The results of the comparisons.
    pub verdict: Verdict,
    /// Why; never empty.
    pub reason: String,
    /// It differs, without a written reason.
    pub unexplained: bool,
    /// What searches of the parameters that nobody printed say; none for a claim that agrees.
    pub settlement: Option<Settlement>,
}

/// The evidence of verdicts: one experiment, its measures, and its run.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Its name, `edm/fig8a`.
    pub experiment: &'a str,
    /// Its measures of claims.
    pub bindings: &'a Bindings,
    /// The points of its run, in the order of the sweep; empty when it was not run.
    pub points: &'a [Summary],
    /// The same points by seed; empty when a seed is missing.
    pub by_seed: &'a [Vec<Summary>],
    /// Published numbers.
    pub published: &'a [PublishedRow],
}

/// The verdicts, and what stood in the way of some.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// One a claim, in the order of the claims.
    pub results: Vec<ClaimResult>,
    /// Measures that found no value in an experiment that was run. The claim is then not
    /// comparable, with this reason; after a whole run it is a defect of the experiment's
    /// `claims.toml`.
    pub problems: Vec<FileError>,
}

/// Judges `claims` by `evidence`. An experiment that measures an unknown claim, or one that another
/// measures too, is an error.
pub fn judge(claims: &[Claim], evidence: &[Evidence<'_>]) -> Result<Judgement, FileError> {
    let found = bindings_by_claim(claims, evidence)?;
    let readings: Vec<Readings<'_>> = evidence.iter().map(Readings::new).collect();
    let mut judgement = Judgement::default();
    for claim in claims {
        let result = match found.get(claim.id.as_str()) {
            None => blank(claim, "not run: no experiment measures it"),
            Some((index, binding)) => {
                let case = Case { claim, binding, evidence: &evidence[*index], readings: &readings[*index] };
                case.judge(&mut judgement.problems)
            }
        };
        judgement.results.push(result);
    }
    Ok(judgement)
}

type Found<'a> = BTreeMap<&'a str, (usize, &'a Binding)>;

fn bindings_by_claim<'a>(claims: &[Claim], evidence: &[Evidence<'a>]) -> Result<Found<'a>, FileError> {
    let mut found = Found::new();
    for (index, one) in evidence.iter().enumerate() {
        for binding in &one.bindings.bindings {
            let fail = |reason| FileError { file: one.bindings.file.clone(), line: binding.line, reason };
            if !claims.iter().any(|claim| claim.id == binding.id) {
                return Err(fail(format!("no ledger has a claim {}", binding.id)));
            }
            if let Some((other, _)) = found.insert(&binding.id, (index, binding)) {
                return Err(fail(format!("claim {} is measured by {} too", binding.id, evidence[other].experiment)));
            }
        }
    }
    Ok(found)
}

fn blank(claim: &Claim, reason: &str) -> ClaimResult {
    ClaimResult {
        id: claim.id.clone(),
        place: claim.place.clone(),
        metric: claim.metric.clone(),
        role: claim.role,
        unit: claim.unit.clone(),
        paper: claim.paper.clone(),
        accept: claim.accept.clone(),
        artifact: None,
        ours: None,
        interval: None,
        seeds: 0,
        verdict: Verdict::NotComparable,
        reason: reason.to_owned(),
        unexplained: false,
        settlement: None,
    }
}

/// The points of an experiment, all seeds together and by seed.
struct Readings<'a> {
    pooled: Reading<'a>,
    by_seed: Vec<Reading<'a>>,
}

impl<'a> Readings<'a> {
    fn new(evidence: &Evidence<'a>) -> Readings<'a> {
        let reading = |points| Reading::new(points, evidence.published);
        let by_seed = evidence.by_seed.iter().map(|points| reading(points.as_slice())).collect();
        Readings { pooled: reading(evidence.points), by_seed }
    }
}

/// One claim before its experiment.
struct Case<'a> {
    claim: &'a Claim,
    binding: &'a Binding,
    evidence: &'a Evidence<'a>,
    readings: &'a Readings<'a>,
}

impl Case<'_> {
    fn judge(&self, problems: &mut Vec<FileError>) -> ClaimResult {
        let mut result = blank(self.claim, "not run");
        result.artifact =
            self.binding.artifact.as_ref().and_then(|measure| self.compute(measure, problems)).map(|found| found.value);
        if let Some(why) = &self.binding.not_comparable {
            result.reason.clone_from(why);
        }
        let before = problems.len();
        let computed = match &self.binding.measure {
            Some(measure) if !self.evidence.points.is_empty() => self.compute(measure, problems),
            _ => None,
        };
        match computed {
            Some(mut found) => {
                self.take_seeds(&mut found, &mut result);
                self.weigh(found, &mut result);
            }
            None => {
                result.reason = problems
                    .get(before)
                    .map_or(result.reason, |problem| format!("cannot be computed from this run: {}", problem.reason))
            }
        }
        self.add_note(&mut result);
        result
    }

    fn compute(&self, measure: &Measure, problems: &mut Vec<FileError>) -> Option<Evaluated> {
        let shaped = self.readings.pooled.evaluate(measure).map_err(|missing| missing.to_string()).and_then(|found| {
            let wanted = &self.claim.paper;
            let fits = found.value.same_shape(wanted);
            fits.then_some(found.clone())
                .ok_or_else(|| format!("the measure gives {}, the claim wants {}", found.value.shape(), wanted.shape()))
        });
        let note = |reason: String| FileError {
            file: self.evidence.bindings.file.clone(),
            line: self.binding.line,
            reason: format!("claim {}: {reason}", self.claim.id),
        };
        shaped.map_err(|reason| problems.push(note(reason))).ok()
    }

    /// Takes the mean over seeds for our value, and the interval. A seed that has no value leaves
    /// what all of them have together.
    fn take_seeds(&self, found: &mut Evaluated, result: &mut ClaimResult) {
        let by_seed = &self.readings.by_seed;
        result.seeds = by_seed.len().max(1);
        let value = |reading: &Reading<'_>| reading.evaluate(self.binding.measure.as_ref()?).ok();
        let values: Option<Vec<Evaluated>> = by_seed.iter().map(value).collect();
        let values: Vec<Value> = values.unwrap_or_default().into_iter().map(|found| found.value).collect();
        result.interval = Interval::over_seeds(&values);
        if result.interval.is_some() {
            found.value = Value::over_seeds(&values, found.value.clone());
        }
    }

    fn weigh(&self, found: Evaluated, result: &mut ClaimResult) {
        let accept = &self.claim.accept;
        let of_one_seed = || if accept.contains(&found.value) { Side::Inside } else { Side::Outside };
        let side = result.interval.as_ref().map_or_else(of_one_seed, |interval| accept.side(interval));
        let (verdict, place) = match (side, matches!(found.value, Value::Truth(_))) {
            (Side::Inside, true) => (Verdict::Agrees, "the statement holds".to_owned()),
            (Side::Inside, false) => (Verdict::Agrees, format!("inside {}", accept.show())),
            (Side::Outside, true) => (Verdict::Differs, "the statement does not hold".to_owned()),
            (Side::Outside, false) => (Verdict::Differs, format!("outside {}", accept.show())),
            (Side::Across, true) => (Verdict::Unresolved, "the statement holds with some seeds".to_owned()),
            (Side::Across, false) => (Verdict::Unresolved, format!("across an end of {}", accept.show())),
        };
        if self.binding.not_comparable.is_none() {
            result.verdict = verdict;
            result.unexplained = verdict == Verdict::Differs && self.binding.reason.is_none();
            let untold = format!("no reason is written in {}", self.evidence.bindings.file);
            result.reason = match (verdict, &self.binding.reason) {
                (Verdict::Agrees, _) | (Verdict::Unresolved, None) => place,
                (_, why) => format!("{place}. {}", why.as_ref().unwrap_or(&untold)),
            };
        }
        result.ours = Some(found.value);
        if let Some(caveat) = caveat(self.evidence.points, found.used.iter().copied()) {
            result.reason = format!("{}. {caveat}", result.reason.trim_end_matches('.'));
        }
    }

    fn add_note(&self, result: &mut ClaimResult) {
        if let Some(note) = &self.binding.note {
            result.reason = format!("{}. {note}", result.reason.trim_end_matches('.'));
        }
    }
}

/// Warnings of the points of a value.
fn caveat(points: &[Summary], used: impl Iterator<Item = usize>) -> Option<String> {
    let used: Vec<&Summary> = used.map(|index| &points[index]).collect();
    let partial = used.iter().filter(|point| point.partial).count();
    let warned: Vec<&&Summary> = used.iter().filter(|point| !point.warnings.is_empty()).collect();
    let mut parts = Vec::new();
    if partial > 0 {
        parts.push(format!("Partial: {partial} of {} points were cut short", used.len()));
    }
    if let Some(first) = warned.first() {
        let warning = first.warnings[0].trim_end_matches('.');
        parts.push(format!(
            "Warning at {} of {} points, first at {}: {warning}",
            warned.len(),
            used.len(),
            describe(first)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bindings, claims, claims_json, published};
    use record::Statistics;

    const LEDGER: &str = r#"
paper = "edm"
[[claim]]
id = "edm.read"
where = "Table 1"
role = "exact"
setting = "unloaded"
metric = "latency"
unit = "us"
paper = 0.3
accept = [0.29, 0.31]
[[claim]]
id = "edm.order"
where = "Figure 8a"
role = "validation"
setting = "loaded"
metric = "EDM first"
unit = "bool"
paper = true
accept = [true, true]
[[claim]]
id = "edm.pair"
where = "Figure 9"
role = "validation"
setting = "loaded"
metric = "two"
unit = "ratio"
paper = [1, 2]
accept = [[0, 1], [1, 3]]
"#;
    const READ: &str = "[[claim]]\nid = 'edm.read'\nmeasure = { metric = 'latency_ns.read.mean', where = { design = 'edm' }, scale = 0.001 }\n";

    fn point(design: &str, mean: f64) -> Summary {
        let mut point = Summary { design: design.into(), ..Summary::default() };
        point.latency_ns.insert("read".into(), Statistics { mean, ..Statistics::default() });
        point
    }

    fn judged(text: &str, points: &[Summary]) -> Judgement {
        let claims = claims::parse("ledger", LEDGER).unwrap().claims;
        let bindings = bindings::parse("edm/table1/claims.toml", text).unwrap();
        let published = published::parse("p", "series,x,value,source\nedm,read,0.048,artifact\n").unwrap();
        let evidence =
            Evidence { experiment: "edm/table1", bindings: &bindings, points, by_seed: &[], published: &published };
        judge(&claims, &[evidence]).unwrap()
    }

    /// The result of the first claim, with one point of this mean for each seed.
    fn with_seeds(means: &[f64]) -> ClaimResult {
        let claims = claims::parse("ledger", LEDGER).unwrap().claims;
        let bindings = bindings::parse("edm/table1/claims.toml", &format!("{READ}reason = 'x'\n")).unwrap();
        let by_seed: Vec<Vec<Summary>> = means.iter().map(|mean| vec![point("edm", *mean)]).collect();
        let pooled = [point("edm", 1e9)];
        let evidence = Evidence {
            experiment: "edm/table1",
            bindings: &bindings,
            points: &pooled,
            by_seed: &by_seed,
            published: &[],
        };
        judge(&claims, &[evidence]).unwrap().results.remove(0)
    }

    #[test]
    fn several_seeds_agree_or_differ_with_their_whole_interval() {
        let near = with_seeds(&[299.0, 300.0, 301.0, 300.0, 300.0]);
        assert_eq!((near.verdict, near.seeds, near.ours), (Verdict::Agrees, 5, Some(Value::Number(0.3))));
        let spread = with_seeds(&[280.0, 320.0, 300.0, 290.0, 310.0]);
        assert_eq!((spread.verdict, spread.unexplained), (Verdict::Unresolved, false));
        assert_eq!(spread.reason, "across an end of 0.29 to 0.31. x");
        let far = with_seeds(&[400.0, 401.0, 402.0, 401.0, 400.0]);
        assert_eq!((far.verdict, far.reason.as_str()), (Verdict::Differs, "outside 0.29 to 0.31. x"));
    }

    #[test]
    fn ours_inside_the_interval_agrees_and_outside_differs_with_its_reason() {
        let text = format!("{READ}reason = 'the wire is longer'\n");
        let agrees = &judged(&text, &[point("edm", 299.5), point("cxl", 1.0)]).results[0];
        assert_eq!((agrees.verdict, agrees.reason.as_str()), (Verdict::Agrees, "inside 0.29 to 0.31"));
        let differs = &judged(&text, &[point("edm", 400.0)]).results[0];
        assert_eq!((differs.verdict, differs.unexplained), (Verdict::Differs, false));
        assert_eq!(differs.reason, "outside 0.29 to 0.31. the wire is longer");
    }

    #[test]
    fn a_difference_without_a_reason_is_pointed_out() {
        let result = &judged(READ, &[point("edm", 400.0)]).results[0];
        assert!(result.unexplained);
        assert!(result.reason.ends_with("no reason is written in edm/table1/claims.toml"), "{}", result.reason);
    }

    #[test]
    fn what_was_not_run_is_not_comparable() {
        let judgement = judged(READ, &[]);
        let reasons: Vec<_> = judgement.results.iter().map(|result| (result.verdict, result.reason.as_str())).collect();
        let unmeasured = (Verdict::NotComparable, "not run: no experiment measures it");
        assert_eq!(reasons, [(Verdict::NotComparable, "not run"), unmeasured, unmeasured]);
        assert!(judgement.problems.is_empty());
    }

    #[test]
    fn an_incomparable_claim_keeps_its_value_but_gets_no_verdict() {
        let text = format!("{READ}comparable = 'no: another clock'\nartifact = {{ published = 'artifact' }}\n");
        let result = &judged(&text, &[point("edm", 299.5)]).results[0];
        assert_eq!((result.verdict, result.reason.as_str()), (Verdict::NotComparable, "another clock"));
        assert_eq!(
            (&result.ours, &result.artifact),
            (&Some(Value::Number(299.5 * 0.001)), &Some(Value::Number(0.048)))
        );
    }

    #[test]
    fn a_measure_without_a_value_names_claim_file_and_line() {
        for (text, words) in [
            (READ.replace("edm' }", "ird' }"), "claim edm.read: no point with design = ird; design is edm"),
            (
                "\n[[claim]]\nid = 'edm.order'\nmeasure = { metric = 'latency_ns.read.mean' }\n".into(),
                "gives a number, the claim wants true or false",
            ),
            (
                "[[claim]]\nid = 'edm.pair'\nmeasure = { list = [1] }\n".into(),
                "gives a list of 1, the claim wants a list of 2",
            ),
        ] {
            let judgement = judged(&text, &[point("edm", 299.5)]);
            let problem = &judgement.problems[0];
            assert!(
                problem.to_string().starts_with("edm/table1/claims.toml:") && problem.reason.contains(words),
                "{problem}"
            );
            assert!(judgement.results.iter().all(|result| result.verdict == Verdict::NotComparable));
            assert!(
                judgement
                    .results
                    .iter()
                    .any(|result| result.reason.starts_with("cannot be computed from this run: claim"))
            );
        }
    }

    #[test]
    fn unknown_claims_and_claims_measured_twice_are_errors() {
        let claims = claims::parse("ledger", LEDGER).unwrap().claims;
        let read = bindings::parse("a.toml", READ).unwrap();
        let unknown = bindings::parse("b.toml", &READ.replace("edm.read", "edm.reed")).unwrap();
        let evidence = |bindings| Evidence { experiment: "e", bindings, points: &[], by_seed: &[], published: &[] };
        assert!(
            judge(&claims, &[evidence(&unknown)])
                .unwrap_err()
                .to_string()
                .contains("b.toml:1: no ledger has a claim edm.reed")
        );
        assert!(judge(&claims, &[evidence(&read), evidence(&read)]).unwrap_err().reason.contains("measured by e too"));
    }

    #[test]
    fn a_partial_or_saturated_run_shows_in_the_reason() {
        let mut point = point("edm", 299.5);
        point.partial = true;
        point.labels.insert("load".into(), "0.9".into());
        point.warnings.push("offered load is above capacity".into());
        let reason = &judged(READ, &[point]).results[0].reason;
        assert_eq!(
            reason,
            "inside 0.29 to 0.31. Partial: 1 of 1 points were cut short. Warning at 1 of 1 points, first at edm, load 0.9: offered load is above capacity"
        );
    }

    #[test]
    fn the_json_has_ours_in_the_shape_of_the_paper() {
        let order = "[[claim]]\nid = 'edm.order'\nmeasure = { all = [{ left = 1, op = '<', right = 2 }] }\n[[claim]]\nid = 'edm.pair'\nmeasure = { list = [0.1, 2.5], scale = 3 }\n";
        let results = judged(&format!("{READ}{order}reason = 'x'"), &[point("edm", 299.52)]).results;
        let json: serde_json::Value = serde_json::from_str(&claims_json(&results)).unwrap();
        assert_eq!(
            json[0],
            serde_json::json!({"id": "edm.read", "paper": 0.3, "ours": 0.29952, "interval": null, "seeds": 1, "verdict": "agrees", "reason": "inside 0.29 to 0.31"})
        );
        assert_eq!(json[1]["ours"], serde_json::json!(true));
        assert_eq!(json[2]["ours"], serde_json::json!([0.3, 7.5]));
    }
}
