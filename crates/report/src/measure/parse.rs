//! A measure as it is written, and its translation into a [`Measure`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};

use super::path::check_path;
use super::{Comparison, Measure, Reduce, Relation, Selection};
use crate::published::Source;

/// A bare number or a table.
pub(crate) enum RawMeasure {
    Number(f64),
    Table(Box<RawTable>),
}

/// The table form; the combinations of keys are checked in [`RawMeasure::check`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTable {
    metric: Option<String>,
    sum: Option<Vec<String>>,
    published: Option<String>,
    each: Option<String>,
    knee: Option<String>,
    of: Option<RawMeasure>,
    list: Option<Vec<RawMeasure>>,
    all: Option<Vec<RawComparison>>,
    r#where: Option<BTreeMap<String, toml::Value>>,
    reduce: Option<String>,
    subtract: Option<RawMeasure>,
    divide_by: Option<RawMeasure>,
    scale: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawComparison {
    left: RawMeasure,
    op: String,
    right: RawMeasure,
}

/// Not derived: an untagged enum would swallow the reason why a table does not fit.
impl<'de> Deserialize<'de> for RawMeasure {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawMeasure;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a number or a measure such as { metric = \"latency_ns.read.mean\" }")
    }
    fn visit_i64<E>(self, number: i64) -> Result<RawMeasure, E> {
        Ok(RawMeasure::Number(number as f64))
    }
    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<RawMeasure, E> {
        if number.is_finite() { Ok(RawMeasure::Number(number)) } else { Err(E::custom("expected a finite number")) }
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawMeasure, A::Error> {
        RawTable::deserialize(MapAccessDeserializer::new(map)).map(|table| RawMeasure::Table(Box::new(table)))
    }
}

impl RawMeasure {
    /// Checks the combination of keys and translates it.
    pub(crate) fn check(self) -> Result<Measure, String> {
        match self {
            RawMeasure::Number(number) => Ok(Measure::Constant(number)),
            RawMeasure::Table(table) => table.check(),
        }
    }
}

fn boxed(raw: Option<RawMeasure>) -> Result<Option<Box<Measure>>, String> {
    raw.map(|raw| raw.check().map(Box::new)).transpose()
}

impl RawTable {
    fn check(mut self: Box<Self>) -> Result<Measure, String> {
        let subtract = boxed(self.subtract.take())?;
        let divide_by = boxed(self.divide_by.take())?;
        let scale = self.scale.take();
        let base = Box::new(self.base()?);
        match (subtract, divide_by, scale) {
            (None, None, None) => Ok(*base),
            (subtract, divide_by, scale) => {
                Ok(Measure::Arithmetic { base, subtract, divide_by, scale: finite(scale)? })
            }
        }
    }

    fn base(mut self: Box<Self>) -> Result<Measure, String> {
        self.one_form()?;
        let selection = Selection::read(&self.r#where.take().unwrap_or_default())?;
        let reduce = self.reduce.take().map(|name| named(&Reduce::ALL, &name, "reduce")).transpose()?;
        let one = reduce.unwrap_or(Reduce::Only);
        if let Some(label) = self.each {
            let of = boxed(self.of)?.ok_or("each needs of = the measure to compute for each value")?;
            let reduce = reduce.ok_or("each needs reduce = max, min, mean, median, list or all")?;
            return Ok(Measure::Each { label, of, selection, reduce });
        }
        if let Some(label) = self.knee {
            return knee(label, boxed(self.of)?, selection, reduce);
        }
        if let Some(of) = boxed(self.of)? {
            return Ok(Measure::Of { of, selection, reduce });
        }
        if let Some(name) = self.published {
            let sources = [("paper", Source::Paper), ("artifact", Source::Artifact)];
            return Ok(Measure::Published { source: named(&sources, &name, "published")?, selection, reduce: one });
        }
        if let Some(paths) = self.metric.map(|path| vec![path]).or(self.sum) {
            if paths.is_empty() {
                return Err("sum is empty".into());
            }
            paths.iter().try_for_each(|path| check_path(path))?;
            return Ok(Measure::Metrics { paths, selection, reduce: one });
        }
        if reduce.is_some() {
            return Err("list and all cannot be reduced: wrap them in { of = ..., reduce = ... }".into());
        }
        if let Some(items) = self.list {
            return Ok(Measure::List {
                items: items.into_iter().map(RawMeasure::check).collect::<Result<_, _>>()?,
                selection,
            });
        }
        let comparisons =
            self.all.unwrap_or_default().into_iter().map(RawComparison::check).collect::<Result<Vec<_>, _>>()?;
        Ok(Measure::All { comparisons, selection })
    }

    /// Exactly one key says what is measured; `each` and `knee` go with `of`.
    fn one_form(&self) -> Result<(), String> {
        let forms = [
            ("metric", self.metric.is_some()),
            ("sum", self.sum.is_some()),
            ("published", self.published.is_some()),
            ("of", self.of.is_some() || self.each.is_some() || self.knee.is_some()),
            ("list", self.list.as_ref().is_some()),
            ("all", self.all.is_some()),
        ];
        let given: Vec<&str> = forms.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        let empty = self.list.as_ref().is_some_and(Vec::is_empty) || self.all.as_ref().is_some_and(Vec::is_empty);
        match given.as_slice() {
            [_] if empty => Err("list and all need at least one element".to_owned()),
            [_] => Ok(()),
            [] => Err("a measure needs one of metric, sum, published, of, list, all".to_owned()),
            several => Err(format!("{} exclude one another in one measure", several.join(" and "))),
        }
    }
}

fn knee(
    label: String,
    of: Option<Box<Measure>>,
    selection: Selection,
    reduce: Option<Reduce>,
) -> Result<Measure, String> {
    let of = of.ok_or("knee needs of = the measure that grows")?;
    match reduce {
        None => Ok(Measure::Knee { label, of, selection }),
        Some(_) => Err("knee cannot be reduced: wrap it in { of = ..., reduce = ... }".into()),
    }
}

impl RawComparison {
    fn check(self) -> Result<Comparison, String> {
        Ok(Comparison {
            left: self.left.check()?,
            relation: named(&Relation::ALL, &self.op, "op")?,
            right: self.right.check()?,
        })
    }
}

fn finite(scale: Option<f64>) -> Result<f64, String> {
    let scale = scale.unwrap_or(1.0);
    if scale.is_finite() && scale != 0.0 {
        Ok(scale)
    } else {
        Err(format!("scale must be finite and not zero, got {scale}"))
    }
}

fn named<T: Copy>(names: &[(&str, T)], name: &str, key: &str) -> Result<T, String> {
    let found = names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(known, _)| *known).collect();
        format!("{key} = {name:?} is none of {}", known.join(", "))
    })
}

#[cfg(test)]
pub(super) fn measure(text: &str) -> Result<Measure, String> {
    #[derive(Deserialize)]
    struct Wrapper {
        measure: RawMeasure,
    }
    let wrapper: Wrapper = toml::from_str(&format!("measure = {text}")).map_err(|error| error.message().to_owned())?;
    wrapper.measure.check()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_understood() {
        for text in [
            "1.5",
            "3",
            "{ metric = 'slowdown.all.mean' }",
            "{ sum = ['counts.timed_out', 'counts.lost'], where = { design = 'edm', load = { at_most = 0.9 } }, reduce = 'max' }",
            "{ published = 'artifact', where = { series = 'edm' }, reduce = 'list' }",
            "{ each = 'trace', of = { metric = 'events', divide_by = { metric = 'simulated_ns' } }, reduce = 'max' }",
            "{ knee = 'load', of = { metric = 'events' } }",
            "{ list = [1, { metric = 'events' }], scale = 0.001 }",
            "{ all = [{ left = { metric = 'events' }, op = '<', right = 2 }] }",
        ] {
            assert!(measure(text).is_ok(), "{text}: {:?}", measure(text));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, words) in [
            ("{ metrics = 'a' }", "unknown field `metrics`"),
            ("{ metric = 'events', divide_by = { metrik = 'b' } }", "unknown field `metrik`"),
            ("{ }", "needs one of metric"),
            ("{ metric = 'events', sum = ['events'] }", "metric and sum exclude one another"),
            ("{ metric = 'events', reduce = 'first' }", "\"first\" is none of only, max"),
            ("{ metric = 'events', scale = 0.0 }", "not zero"),
            ("{ sum = [] }", "sum is empty"),
            ("{ each = 'load', reduce = 'max' }", "each needs of"),
            ("{ knee = 'load' }", "knee needs of"),
            ("{ knee = 'load', of = 1, reduce = 'max' }", "knee cannot be reduced"),
            ("{ each = 'load', of = { metric = 'events' } }", "each needs reduce"),
            ("{ list = [], scale = 2 }", "at least one element"),
            ("{ list = [1], reduce = 'max' }", "wrap them"),
            ("{ all = [{ left = 1, op = '=', right = 2 }] }", "none of <, <="),
            ("{ metric = 'events', where = { load = { above = 1 } } }", "unknown key above"),
            ("'latency'", "invalid type"),
            ("inf", "finite"),
        ] {
            let error = measure(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
