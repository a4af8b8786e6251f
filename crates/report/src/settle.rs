//! The parameters that a paper does not print, and what claims say of them: `settle.toml` beside an
//! experiment.
//!
//! A box has a range for each parameter. [`Search`] proposes points of the box and takes the value
//! of each claim there. It first covers the box evenly by a Sobol sequence, then the surroundings
//! of the points nearest to agreement. Nothing here runs anything: the caller does.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::claims::Claim;
use crate::{Accept, FileError, Value};

/// A box of parameters, and the claims that it bears on.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleBox {
    /// The file, for messages.
    pub file: String,
    /// The parameters, in the order of the file.
    pub parameters: Vec<Parameter>,
    /// The claims that the parameters bear on jointly.
    pub claims: Vec<String>,
    /// What all points set, by key path, as in a file: to leave out what the claims do not need.
    pub set: BTreeMap<String, String>,
}

/// A parameter that the paper does not print.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key path in an experiment file.
    pub key: String,
    /// Further keys that always have the same value.
    pub also: Vec<String>,
    /// The line of its entry.
    pub line: usize,
    /// Its plausible values.
    pub range: Range,
    /// Where the range comes from.
    pub source: String,
}

/// The plausible values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// Words or flags.
    Choice(Vec<toml::Value>),
    /// Numbers between two ends, both included.
    Numbers {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
        /// What follows the number: a unit in a string. Empty for a plain number.
        unit: String,
        /// Whole numbers only.
        is_whole: bool,
        /// Even in the logarithm.
        is_log: bool,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBox {
    claims: Spanned<Vec<String>>,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    parameter: Vec<Spanned<RawParameter>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    key: String,
    #[serde(default)]
    also: Vec<String>,
    range: Option<[toml::Value; 2]>,
    values: Option<Vec<toml::Value>>,
    #[serde(default)]
    log: bool,
    source: String,
}

/// Reads `text`, called `name` in errors: `claims`, perhaps `[set]` for settings of all points, and
/// `[[parameter]]` entries with `key`, `source`, perhaps `also = [...]` for keys that have the same
/// value, and either `range = [low, high]` (with `log = true` for even steps of the logarithm) or
/// `values`. The claims must be among `known`.
pub fn parse(name: &str, text: &str, known: &[Claim]) -> Result<SettleBox, FileError> {
    let raw: RawBox = toml::from_str(text).map_err(|error| FileError::toml(name, text, &error))?;
    let claims_at = |reason: String| FileError::at(name, text, raw.claims.span().start, reason);
    let claims = raw.claims.get_ref();
    if claims.is_empty() {
        return Err(claims_at("claims is empty: name those that the parameters bear on".to_owned()));
    }
    if let Some(unknown) = claims.iter().find(|id| !known.iter().any(|claim| claim.id == **id)) {
        return Err(claims_at(format!("the design has no claim {unknown}")));
    }
    let mut parameters: Vec<Parameter> = Vec::new();
    for entry in raw.parameter {
        let at = |reason: String| FileError::at(name, text, entry.span().start, reason);
        let line = at(String::new()).line;
        let key = entry.get_ref().key.clone();
        let keys: Vec<&String> = [&key].into_iter().chain(&entry.get_ref().also).collect();
        let twice = |key: &&&String| keys.iter().filter(|other| other == key).count() > 1;
        let taken = |key: &&&String| parameters.iter().any(|parameter| parameter.keys().any(|other| other == **key));
        if let Some(key) = keys.iter().find(|key| twice(key) || taken(key)) {
            return Err(at(format!("parameter {key} occurs twice")));
        }
        let parameter = check(line, entry.into_inner());
        parameters.push(parameter.map_err(|reason| FileError {
            file: name.to_owned(),
            line,
            reason: format!("parameter {key}: {reason}"),
        })?);
    }
    if parameters.is_empty() {
        return Err(FileError::at(name, text, 0, "there is no [[parameter]]"));
    }
    let set = raw.set.into_iter().map(|(key, value)| (key, value.to_string())).collect();
    Ok(SettleBox { file: name.to_owned(), parameters, claims: raw.claims.into_inner(), set })
}

fn check(line: usize, raw: RawParameter) -> Result<Parameter, String> {
    if raw.source.trim().is_empty() {
        return Err("source is empty: say where the range comes from".to_owned());
    }
    let range = match (raw.range, raw.values) {
        (Some([low, high]), None) => numbers(&low, &high, raw.log)?,
        (None, Some(values)) if values.len() > 1 && !raw.log => Range::Choice(values),
        (None, Some(_)) if raw.log => return Err("log goes with range, not with values".to_owned()),
        (None, Some(_)) => return Err("values needs two or more".to_owned()),
        _ => return Err("give either range = [low, high] or values = [...]".to_owned()),
    };
    Ok(Parameter { key: raw.key, also: raw.also, line, range, source: raw.source.trim().to_owned() })
}

fn numbers(low: &toml::Value, high: &toml::Value, is_log: bool) -> Result<Range, String> {
    let ((from, unit, from_whole), (to, other, to_whole)) = (number(low)?, number(high)?);
    if unit != other {
        return Err(format!("range: both ends must have the same unit, got {low} and {high}"));
    }
    if from >= to {
        return Err(format!("range: {low} is not below {high}"));
    }
    if is_log && from <= 0.0 {
        return Err(format!("range: {low} has no logarithm"));
    }
    Ok(Range::Numbers { low: from, high: to, unit, is_whole: from_whole && to_whole, is_log })
}

/// A number, what follows it, and whether it is whole.
fn number(value: &toml::Value) -> Result<(f64, String, bool), String> {
    let wrong = || format!("range: {value} is not a number, or one with a unit");
    match value {
        toml::Value::Integer(number) => Ok((*number as f64, String::new(), true)),
        toml::Value::Float(number) if number.is_finite() => Ok((*number, String::new(), false)),
        toml::Value::String(text) => {
            let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').ok_or_else(wrong)?;
            let number: f64 = text[..end].parse().map_err(|_| wrong())?;
            Ok((number, text[end..].to_owned(), !text[..end].contains('.')))
        }
        _ => Err(wrong()),
    }
}

impl Parameter {
    /// All keys that it sets.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        [&self.key].into_iter().chain(&self.also)
    }

    /// The value at `place` of the range, from 0 to below 1, as it is written in a file.
    pub fn at(&self, place: f64) -> String {
        match &self.range {
            Range::Choice(values) => values[((place * values.len() as f64) as usize).min(values.len() - 1)].to_string(),
            Range::Numbers { low, high, unit, is_whole, is_log } => {
                let number = if *is_log { low * (high / low).powf(place) } else { low + (high - low) * place };
                // Each whole number has the same share of the range.
                let whole = (low + (high - low + 1.0) * place).floor().min(*high);
                let number = match (is_whole, is_log) {
                    (true, true) => number.round(),
                    (true, false) => whole,
                    // Six digits: what follows cannot be told from seeds.
                    (false, _) => format!("{number:.5e}").parse().unwrap_or(number),
                };
                if unit.is_empty() { number.to_string() } else { format!("\"{number}{unit}\"") }
            }
        }
    }
}

/// A point of the box with what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// Where it is in the box, from 0 to below 1 for each parameter; empty for the defaults.
    pub places: Vec<f64>,
    /// The parameters' values, as they are written in a file; none for the defaults.
    pub settings: BTreeMap<String, String>,
    /// Our value of each claim that has one there.
    pub values: BTreeMap<String, Value>,
    /// Why the experiment does not run there, if it does not.
    pub error: Option<String>,
}

/// The half-width of the surroundings that a refinement covers, of the whole range.
const NEAR: f64 = 0.125;
/// Points of a class of places by which a parameter's share of the variance is estimated.
const PER_CLASS: usize = 8;
/// Classes of a range of numbers: the most leave a 49th of a linear share to the rest. An odd
/// number: in a power of two, points of a Sobol sequence can tie two parameters together.
const CLASSES: [usize; 3] = [3, 5, 7];

/// The search of a box.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    parameters: &'a [Parameter],
    /// The claims, with the interval in which each agrees.
    claims: Vec<&'a Claim>,
    /// The number of points that cover the whole box: the first ones.
    covering: usize,
}

impl<'a> Search<'a> {
    /// Searches `settle` for its claims, which are among `known`. The first `covering` points cover
    /// the whole box.
    pub fn new(settle: &'a SettleBox, known: &'a [Claim], covering: u32) -> Search<'a> {
        let claims = known.iter().filter(|claim| settle.claims.contains(&claim.id)).collect();
        Search { parameters: &settle.parameters, claims, covering: covering as usize }
    }

    /// What `tried`, in its order, says of each claim.
    pub fn answers(&self, tried: &[Tried]) -> Vec<Answer> {
        self.claims.iter().map(|claim| self.answer(claim, tried)).collect()
    }

    /// The point `index` of a sequence that covers the box evenly, however long it is.
    pub fn cover(&self, index: u32) -> Vec<f64> {
        (0..self.parameters.len() as u32)
            .map(|dimension| f64::from(sobol_burley::sample(index, dimension, 0)))
            .collect()
    }

    /// The point `index` of a sequence that covers the surroundings of `middle` evenly.
    pub fn near(&self, middle: &[f64], index: u32) -> Vec<f64> {
        let place = |(middle, step): (&f64, f64)| {
            let low = (middle - NEAR).clamp(0.0, 1.0 - 2.0 * NEAR);
            low + 2.0 * NEAR * step
        };
        middle.iter().zip(self.cover(index)).map(place).collect()
    }

    /// The values of a point as they are written in a file.
    pub fn settings(&self, places: &[f64]) -> BTreeMap<String, String> {
        self.parameters
            .iter()
            .zip(places)
            .map(|(parameter, place)| (parameter.key.clone(), parameter.at(*place)))
            .collect()
    }

    /// The best of `tried` to look around: first where most claims agree, then by distance. None
    /// while no point of the box has a value.
    pub fn best<'t>(&self, tried: &'t [Tried]) -> Option<&'t Tried> {
        let of_box = tried.iter().filter(|point| !point.places.is_empty() && !point.values.is_empty());
        of_box.min_by(|left, right| {
            let (a, b) = (self.rank(left), self.rank(right));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    /// How many claims do not agree, and the sum of their distances.
    fn rank(&self, point: &Tried) -> (usize, f64) {
        let distances = self.claims.iter().map(|claim| distance_of(claim, point));
        distances.fold((0, 0.0), |(count, sum), distance| (count + usize::from(distance > 0.0), sum + distance))
    }

    /// What the tried points say of a claim. A point counts only if every claim that agrees at the
    /// defaults agrees there too: a setting that mends one claim and breaks another settles
    /// nothing.
    fn answer(&self, claim: &Claim, tried: &[Tried]) -> Answer {
        let of_box: Vec<&Tried> =
            tried.iter().filter(|point| !point.places.is_empty() && point.error.is_none()).collect();
        let defaults = tried.iter().find(|point| point.places.is_empty());
        let agrees = |claim: &Claim, point: &Tried| distance_of(claim, point) == 0.0;
        let kept: Vec<&&Claim> =
            self.claims.iter().filter(|other| defaults.is_some_and(|point| agrees(other, point))).collect();
        let holds = |point: &&&Tried| agrees(claim, point) && kept.iter().all(|other| agrees(other, point));
        let held: Vec<&Tried> = of_box.iter().filter(holds).copied().collect();
        let alone = of_box.iter().filter(|point| agrees(claim, point)).count();
        let nearest = of_box.iter().min_by(|a, b| distance_of(claim, a).total_cmp(&distance_of(claim, b)));
        let with_value = nearest.and_then(|point| Some((point.values.get(&claim.id)?.clone(), point.settings.clone())));
        let ours = defaults.and_then(|point| point.values.get(&claim.id).cloned());
        Answer {
            claim: claim.id.clone(),
            accept: claim.accept.show(),
            agrees: ours.as_ref().is_some_and(|value| claim.accept.contains(value)),
            ours,
            sensitivity: self.sensitivity(&claim.id, tried),
            points: of_box.len(),
            held: held.len(),
            alone,
            region: self.region(&held),
            nearest: with_value.map(|(value, settings)| Nearest { value, settings }),
        }
    }

    /// The share of the value's variance over the box that each parameter explains alone: its
    /// first-order Sobol index, by the points that cover the box. None for a value that does not
    /// vary.
    fn sensitivity(&self, claim: &str, tried: &[Tried]) -> BTreeMap<String, f64> {
        let covering = tried.iter().filter(|point| !point.places.is_empty()).take(self.covering);
        let with_value = |point: &'_ Tried| Some((point.places.clone(), mean(point.values.get(claim)?)));
        let sample: Vec<(Vec<f64>, f64)> = covering.filter_map(with_value).collect();
        let wanted = sample.len() / PER_CLASS;
        let classes = CLASSES.into_iter().rfind(|classes| *classes <= wanted).unwrap_or(CLASSES[0]);
        let classed = |(place, parameter): (usize, &Parameter)| -> Vec<usize> {
            let classes = match &parameter.range {
                Range::Choice(values) => values.len(),
                Range::Numbers { .. } => classes,
            };
            sample.iter().map(|(places, _)| (places[place] * classes as f64) as usize).collect()
        };
        let all: Vec<Vec<usize>> = self.parameters.iter().enumerate().map(classed).collect();
        let index = |(place, parameter): (usize, &Parameter)| {
            let is_tied =
                all.iter().enumerate().any(|(other, classes)| other != place && are_tied(&all[place], classes));
            let classed = all[place].iter().copied().zip(sample.iter().map(|(_, value)| *value));
            let share = if is_tied { None } else { first_order(classed.collect()) };
            Some((parameter.key.clone(), share?))
        };
        self.parameters.iter().enumerate().filter_map(index).collect()
    }

    /// The lowest and the highest value of each parameter among `points`; of words each that
    /// occurs.
    fn region(&self, points: &[&Tried]) -> BTreeMap<String, Vec<String>> {
        let mut region = BTreeMap::new();
        for (place, parameter) in self.parameters.iter().enumerate().filter(|_| !points.is_empty()) {
            let mut places: Vec<f64> = points.iter().map(|point| point.places[place]).collect();
            places.sort_by(f64::total_cmp);
            let mut values: Vec<String> = match parameter.range {
                Range::Choice(_) => places.into_iter().map(|place| parameter.at(place)).collect(),
                Range::Numbers { .. } => [places[0], places[places.len() - 1]].map(|place| parameter.at(place)).into(),
            };
            values.dedup();
            region.insert(parameter.key.clone(), values);
        }
        region
    }
}

/// What the search of a box says of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The claim's id.
    pub claim: String,
    /// The interval in which it agrees, in words.
    pub accept: String,
    /// Our value at the defaults.
    pub ours: Option<Value>,
    /// Whether it agrees there.
    pub agrees: bool,
    /// Points of the box that ran.
    pub points: usize,
    /// Those at which it agrees, and every claim too that agrees at the defaults.
    pub held: usize,
    /// Those at which it agrees, whatever others do.
    pub alone: usize,
    /// Where it holds: by parameter the lowest and the highest value, or each word.
    pub region: BTreeMap<String, Vec<String>>,
    /// First-order Sobol index of each parameter, from 0 to 1; empty if the value does not vary.
    pub sensitivity: BTreeMap<String, f64>,
    /// The point at which it agrees or comes nearest; none if no point had a value.
    pub nearest: Option<Nearest>,
}

/// The point of a box that is nearest to a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nearest {
    /// Our value there.
    pub value: Value,
    /// The parameters' values.
    pub settings: BTreeMap<String, String>,
}

/// A value as a number: of a list the mean, of a statement 1 when it holds.
fn mean(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        Value::Truth(truth) => f64::from(u8::from(*truth)),
        Value::List(items) => items.iter().map(mean).sum::<f64>() / items.len().max(1) as f64,
    }
}

/// Whether of two parameters each decides the other's class, so that nobody can tell them apart.
fn are_tied(first: &[usize], second: &[usize]) -> bool {
    let pairs: BTreeSet<(usize, usize)> = first.iter().copied().zip(second.iter().copied()).collect();
    let [ours, theirs] = [first, second].map(|classes| classes.iter().collect::<BTreeSet<_>>().len());
    ours > 1 && pairs.len() == ours && pairs.len() == theirs
}

/// The share of the variance of values that lies between their classes, without the bias of small
/// classes (Kelley's epsilon squared). None without variance, or without two values in a class.
fn first_order(classed: Vec<(usize, f64)>) -> Option<f64> {
    let mut classes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    classed.iter().for_each(|(class, value)| classes.entry(*class).or_default().push(*value));
    let squares = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let all: Vec<f64> = classed.into_iter().map(|(_, value)| value).collect();
    let (total, within) = (squares(&all), classes.values().map(|values| squares(values)).sum::<f64>());
    let (freedom, left) = (all.len().checked_sub(1)?, all.len().checked_sub(classes.len())?);
    let share = 1.0 - (within / left as f64) / (total / freedom as f64);
    (left > 0 && total > 0.0).then(|| share.clamp(0.0, 1.0))
}

/// How far a claim is from agreement at a point; infinite without a value.
fn distance_of(claim: &Claim, point: &Tried) -> f64 {
    point.values.get(&claim.id).map_or(f64::INFINITY, |value| distance(&claim.accept, value))
}

/// How far a value is from agreement, relative to the interval's nearer end; 1 for a false
/// statement, and of a list the mean. Zero inside.
fn distance(accept: &Accept, value: &Value) -> f64 {
    match (accept, value) {
        _ if accept.contains(value) => 0.0,
        (Accept::Between { low, high }, Value::Number(number)) => {
            let end = if number < low { *low } else { *high };
            (number - end).abs() / end.abs().max(f64::MIN_POSITIVE)
        }
        (Accept::Each(items), Value::List(values)) if items.len() == values.len() => {
            items.iter().zip(values).map(|(item, value)| distance(item, value)).sum::<f64>() / items.len() as f64
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims;

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
[[claim]]
id = "edm.b"
where = "Figure 2"
role = "validation"
setting = "s"
metric = "m"
unit = "ratio"
paper = 1
accept = [0, 2]
"#;
    const BOX: &str = r#"
claims = ["edm.a", "edm.b"]
[[parameter]]
key = "workload.depth"
range = [1, 8]
source = "the paper gives none"
[[parameter]]
key = "fabric.latency"
range = ["1us", "100us"]
log = true
source = "a data sheet"
[[parameter]]
key = "edm.policy"
values = ["srpt", "fcfs"]
source = "the published code"
"#;

    fn ledger() -> Vec<Claim> {
        claims::parse("ledger", LEDGER).unwrap().claims
    }

    /// What a model would say: `a` is the depth, `b` grows with the latency.
    fn play(search: &Search<'_>, places: Vec<f64>) -> Tried {
        let settings = search.settings(&places);
        let depth: f64 = settings["workload.depth"].parse().unwrap();
        let latency: f64 = settings["fabric.latency"].trim_matches('"').trim_end_matches("us").parse().unwrap();
        let values = [("edm.a", depth), ("edm.b", latency / 10.0)];
        let values = values.map(|(id, value)| (id.to_owned(), Value::Number(value))).into();
        Tried { places, settings, values, error: None }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, line, words) in [
            ("\"edm.b\"]", "\"edm.c\"]", 2, "the design has no claim edm.c"),
            ("[\"edm.a\", \"edm.b\"]", "[]", 2, "claims is empty"),
            ("range = [1, 8]", "range = [8, 1]", 3, "parameter workload.depth: range: 8 is not below 1"),
            ("range = [1, 8]", "range = [1, 1]", 3, "1 is not below 1"),
            ("\"100us\"", "\"100ms\"", 7, "the same unit"),
            ("\"1us\"", "\"0us\"", 7, "has no logarithm"),
            ("[\"srpt\", \"fcfs\"]", "[\"srpt\"]", 12, "two or more"),
            ("source = \"a data sheet\"", "source = \" \"", 7, "source is empty"),
            ("key = \"edm.policy\"", "key = \"workload.depth\"", 12, "occurs twice"),
            ("range = [1, 8]", "between = [1, 8]", 5, "unknown field `between`"),
            ("range = [1, 8]", "", 3, "give either range"),
        ] {
            assert!(BOX.contains(from), "the test replaces {from}");
            let error = parse("edm/a/settle.toml", &BOX.replace(from, to), &ledger()).unwrap_err();
            assert_eq!((error.file.as_str(), error.line), ("edm/a/settle.toml", line), "{error}");
            assert!(error.reason.contains(words), "{error}");
        }
    }

    #[test]
    fn places_reach_both_ends_and_every_word() {
        let settle = parse("x", BOX, &ledger()).unwrap();
        let [depth, latency, policy] = &settle.parameters[..] else { panic!("three") };
        let last = 1.0 - f64::EPSILON;
        assert_eq!([0.0, 0.5, last].map(|place| depth.at(place)), ["1", "5", "8"]);
        assert_eq!([0.0, 0.5].map(|place| latency.at(place)), ["\"1us\"", "\"10us\""]);
        assert_eq!([0.0, last].map(|place| policy.at(place)), ["\"srpt\"", "\"fcfs\""]);
    }

    #[test]
    fn the_region_is_where_a_claim_holds_and_none_is_broken() {
        let (known, settle) = (ledger(), parse("x", BOX, &ledger()).unwrap());
        let search = Search::new(&settle, &known, 256);
        let mut tried: Vec<Tried> = (0..256).map(|index| play(&search, search.cover(index))).collect();
        let best = search.best(&tried).expect("some ran").places.clone();
        assert_eq!(search.settings(&best)["workload.depth"], "4");
        // At the defaults `b` agrees: a point at which it does not settles nothing.
        let values = [("edm.a", 9.0), ("edm.b", 1.0)].map(|(id, value)| (id.to_owned(), Value::Number(value))).into();
        tried.push(Tried { places: Vec::new(), settings: BTreeMap::new(), values, error: None });
        let answer = search.answers(&tried).remove(0);
        assert_eq!(answer.points, 256);
        assert!(answer.held < answer.alone && answer.held > 0, "{answer:?}");
        assert_eq!(answer.region["workload.depth"], ["4"]);
        let high: f64 = answer.region["fabric.latency"][1].trim_matches('"').trim_end_matches("us").parse().unwrap();
        assert!((15.0..=20.0).contains(&high), "{answer:?}");
        assert_eq!(answer.region["edm.policy"].len(), 2);
    }

    #[test]
    fn a_claim_that_holds_nowhere_has_its_nearest_point() {
        let (known, settle) = (ledger(), parse("x", &BOX.replace("[1, 8]", "[6, 8]"), &ledger()).unwrap());
        let search = Search::new(&settle, &known, 256);
        let tried: Vec<Tried> = (0..64).map(|index| play(&search, search.cover(index))).collect();
        let answer = search.answers(&tried).remove(0);
        assert_eq!((answer.held, answer.alone, answer.region.len()), (0, 0, 0));
        assert_eq!(answer.nearest.expect("some ran").value, Value::Number(6.0));
    }

    #[test]
    fn the_shares_of_a_sum_are_those_of_its_squared_slopes() {
        let text =
            BOX.replace("[1, 8]", "[0.0, 1.0]").replace("log = true\n", "").replace("\"1us\", \"100us\"", "0.0, 1.0");
        let (known, settle) = (ledger(), parse("x", &text, &ledger()).unwrap());
        let search = Search::new(&settle, &known, 512);
        let value = |places: &[f64]| 4.0 * places[0] + 2.0 * places[1];
        let play = |places: Vec<f64>| {
            let values =
                [("edm.a".to_owned(), Value::Number(value(&places))), ("edm.b".to_owned(), Value::Truth(true))];
            Tried { settings: search.settings(&places), places, values: values.into(), error: None }
        };
        let mut tried: Vec<Tried> = (0..512).map(|index| play(search.cover(index))).collect();
        // Points near one another say nothing of the whole box.
        tried.extend((0..512).map(|index| play(search.near(&[0.9, 0.5, 0.5], index))));
        let [first, second] = &search.answers(&tried)[..] else { panic!("two") };
        let share = |key: &str| first.sensitivity[key];
        assert!((share("workload.depth") - 0.8).abs() < 0.03, "{first:?}");
        assert!((share("fabric.latency") - 0.2).abs() < 0.03, "{first:?}");
        assert!(share("edm.policy") < 0.02, "{first:?}");
        assert!(second.sensitivity.is_empty(), "a constant has no variance: {second:?}");
    }

    /// Sixteen points tell a slope from nothing; two parameters that move together have no share.
    #[test]
    fn few_points_give_shares_of_what_can_be_told_apart() {
        let (known, settle) = (ledger(), parse("x", BOX, &ledger()).unwrap());
        let search = Search::new(&settle, &known, 16);
        let shares = |change: fn(&mut Vec<f64>)| {
            let play = |index| {
                let mut places = search.cover(index);
                change(&mut places);
                let values = [("edm.a".to_owned(), Value::Number(places[0]))].into();
                Tried { settings: BTreeMap::new(), places, values, error: None }
            };
            let tried: Vec<Tried> = (0..16).map(play).collect();
            search.answers(&tried).remove(0).sensitivity
        };
        let apart = shares(|_| {});
        assert!(apart["workload.depth"] > 0.7 && apart["fabric.latency"] < 0.3, "{apart:?}");
        let tied = shares(|places| places[1] = places[0]);
        assert!(!tied.contains_key("workload.depth") && !tied.contains_key("fabric.latency"), "{tied:?}");
        assert!(tied.contains_key("edm.policy"), "{tied:?}");
    }

    #[test]
    fn surroundings_stay_inside_the_box() {
        let (known, settle) = (ledger(), parse("x", BOX, &ledger()).unwrap());
        let search = Search::new(&settle, &known, 256);
        for index in 0..64 {
            let near = search.near(&[0.0, 0.5, 0.999], index);
            assert!(
                near[0] < 2.0 * NEAR && (near[1] - 0.5).abs() <= NEAR && (0.75..1.0).contains(&near[2]),
                "{near:?}"
            );
        }
    }
}
