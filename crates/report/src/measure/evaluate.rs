//! A measure applied to the points of a run.

use std::collections::BTreeSet;

use record::Summary;

use super::path::{self, Flat, flatten};
use super::reduce::reduce;
use super::{Comparison, KNEE, Measure, Reduce, Selection};
use crate::Value;
use crate::published::{PublishedRow, Source};

/// Why a measure has no value over the points that were given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// Nothing fits the conditions.
    #[error("{what} with {selection}; {there}")]
    Nothing {
        /// "no point" or "no published number".
        what: &'static str,
        /// The conditions.
        selection: String,
        /// The values that the labels have.
        there: String,
    },
    /// More than one fits where one is meant.
    #[error("{count} {what} are selected where reduce = \"only\" wants one")]
    Several {
        /// Number of points.
        count: usize,
        /// The points, and their conditions.
        what: String,
    },
    /// A selected point has no such number.
    #[error("the point {point} has no finite number {path}: {there}")]
    Metric {
        /// The point's labels.
        point: String,
        /// The requested path.
        path: String,
        /// The existing names.
        there: String,
    },
    /// A value of the wrong kind, or lists of different lengths.
    #[error("wanted {wanted}, got {got}")]
    Shape {
        /// The expected kind of value.
        wanted: &'static str,
        /// The actual kind of value.
        got: String,
    },
    /// A quotient that is no number.
    #[error("{left} divided by {right} is not a finite number")]
    Division {
        /// The dividend.
        left: f64,
        /// The divisor.
        right: f64,
    },
}

/// The value of a measure and the points that went into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The value.
    pub value: Value,
    /// Indices of the points that it was computed from, ascending.
    pub used: BTreeSet<usize>,
}

/// The input of measures: the points of one experiment and its published numbers.
#[derive(Debug)]
pub struct Reading<'a> {
    points: &'a [Summary],
    flat: Vec<Flat>,
    published: &'a [PublishedRow],
}

/// The points and rows that a node sees.
#[derive(Clone)]
struct Scope {
    points: Vec<usize>,
    rows: Vec<usize>,
}

impl<'a> Reading<'a> {
    /// Prepares `points`, in the order of their sweep.
    pub fn new(points: &'a [Summary], published: &'a [PublishedRow]) -> Self {
        Reading { points, flat: points.iter().map(flatten).collect(), published }
    }

    /// Computes `measure`.
    pub fn evaluate(&self, measure: &Measure) -> Result<Evaluated, Missing> {
        let scope = Scope { points: (0..self.points.len()).collect(), rows: (0..self.published.len()).collect() };
        let mut used = BTreeSet::new();
        let value = self.value(measure, &scope, &mut used)?;
        Ok(Evaluated { value, used })
    }

    fn value(&self, measure: &Measure, scope: &Scope, used: &mut BTreeSet<usize>) -> Result<Value, Missing> {
        match measure {
            Measure::Constant(number) => Ok(Value::Number(*number)),
            Measure::Metrics { paths, selection, reduce: how } => self.metrics(paths, selection, *how, scope, used),
            Measure::Published { source, selection, reduce: how } => self.printed(*source, selection, *how, scope),
            Measure::Each { label, of, selection, reduce: how } => {
                let scope = self.narrowed(scope, selection);
                self.each(label, of, &scope, used).and_then(|values| reduce(*how, values))
            }
            Measure::Knee { label, of, selection } => self.knee(label, of, &self.narrowed(scope, selection), used),
            Measure::Of { of, selection, reduce: how } => {
                let value = self.value(of, &self.narrowed(scope, selection), used)?;
                how.map_or(Ok(value.clone()), |how| reduce(how, elements(value)))
            }
            Measure::List { items, selection } => {
                let scope = self.narrowed(scope, selection);
                items.iter().map(|item| self.value(item, &scope, used)).collect::<Result<_, _>>().map(Value::List)
            }
            Measure::All { comparisons, selection } => {
                let scope = self.narrowed(scope, selection);
                let holds = |comparison| self.compare(comparison, &scope, used);
                comparisons
                    .iter()
                    .map(holds)
                    .collect::<Result<Vec<_>, _>>()
                    .map(|all| Value::Truth(all.iter().all(|holds| *holds)))
            }
            Measure::Arithmetic { base, subtract, divide_by, scale } => {
                let mut value = self.value(base, scope, used)?;
                if let Some(other) = subtract {
                    value = pairwise(&value, &self.value(other, scope, used)?, &|left, right| Ok(left - right))?;
                }
                if let Some(other) = divide_by {
                    value = pairwise(&value, &self.value(other, scope, used)?, &divide)?;
                }
                pairwise(&value, &Value::Number(*scale), &|left, right| Ok(left * right))
            }
        }
    }

    fn metrics(
        &self,
        paths: &[String],
        selection: &Selection,
        how: Reduce,
        scope: &Scope,
        used: &mut BTreeSet<usize>,
    ) -> Result<Value, Missing> {
        let chosen = self.narrowed(scope, selection).points;
        if chosen.is_empty() {
            return Err(self.nothing("no point", selection, &scope.points, &[]));
        }
        if how == Reduce::Only && chosen.len() > 1 {
            return Err(Missing::Several { count: chosen.len(), what: format!("points with {selection}") });
        }
        let values = chosen.iter().map(|index| self.sum(*index, paths).map(Value::Number)).collect::<Result<_, _>>()?;
        used.extend(chosen);
        reduce(how, values)
    }

    fn sum(&self, index: usize, paths: &[String]) -> Result<f64, Missing> {
        let flat = &self.flat[index];
        let number = |path: &String| {
            flat.get(path).copied().ok_or_else(|| Missing::Metric {
                point: describe(&self.points[index]),
                path: path.clone(),
                there: path::neighbours(flat, path),
            })
        };
        paths.iter().map(number).sum()
    }

    fn printed(&self, source: Source, selection: &Selection, how: Reduce, scope: &Scope) -> Result<Value, Missing> {
        let rows: Vec<usize> = scope.rows.iter().copied().filter(|row| self.published[*row].source == source).collect();
        let holds = |row: &usize| selection.holds(|name| row_label(&self.published[*row], name));
        let values: Vec<Value> =
            rows.iter().copied().filter(holds).map(|row| Value::Number(self.published[row].value)).collect();
        if values.is_empty() {
            return Err(self.nothing("no published number", selection, &[], &rows));
        }
        reduce(how, values)
    }

    fn each(
        &self,
        label: &str,
        of: &Measure,
        scope: &Scope,
        used: &mut BTreeSet<usize>,
    ) -> Result<Vec<Value>, Missing> {
        let values = self.label_values(label, &scope.points, &scope.rows);
        if values.is_empty() {
            return Err(self.nothing(
                "anything labelled",
                &Selection::one(label, "any value"),
                &scope.points,
                &scope.rows,
            ));
        }
        values.iter().map(|value| self.value(of, &self.narrowed(scope, &Selection::one(label, value)), used)).collect()
    }

    /// The smallest value of a label at which `of` is within [`KNEE`] of its largest.
    fn knee(&self, name: &str, of: &Measure, scope: &Scope, used: &mut BTreeSet<usize>) -> Result<Value, Missing> {
        let values = self.each(name, of, scope, used)?;
        let mut found = Vec::with_capacity(values.len());
        for (label, value) in self.label_values(name, &scope.points, &scope.rows).into_iter().zip(values) {
            let at =
                label.parse::<f64>().map_err(|_| Missing::Shape { wanted: "a label that is a number", got: label })?;
            match value {
                Value::Number(number) => found.push((at, number)),
                other => return Err(Missing::Shape { wanted: "a number", got: other.shape() }),
            }
        }
        let largest = found.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        let near = found.iter().filter(|(_, value)| *value >= largest * (1.0 - KNEE)).map(|(at, _)| *at);
        Ok(Value::Number(near.fold(f64::INFINITY, f64::min)))
    }

    fn compare(&self, comparison: &Comparison, scope: &Scope, used: &mut BTreeSet<usize>) -> Result<bool, Missing> {
        let left = self.value(&comparison.left, scope, used)?;
        let right = self.value(&comparison.right, scope, used)?;
        let holds = |left, right| Ok(if comparison.relation.holds(left, right) { 1.0 } else { 0.0 });
        pairwise(&left, &right, &holds).map(|value| every_one(&value))
    }

    /// Points by their labels; rows by those conditions that are about rows.
    fn narrowed(&self, scope: &Scope, selection: &Selection) -> Scope {
        let about_rows = selection.labels().any(|label| ROW_LABELS.contains(&label));
        let points =
            scope.points.iter().copied().filter(|index| selection.holds(|name| label(&self.points[*index], name)));
        let rows = scope
            .rows
            .iter()
            .copied()
            .filter(|row| !about_rows || selection.holds(|name| row_label(&self.published[*row], name)));
        Scope { points: points.collect(), rows: rows.collect() }
    }

    /// The values of a label in the order in which points (and rows) have them first.
    fn label_values(&self, name: &str, points: &[usize], rows: &[usize]) -> Vec<String> {
        let of_points = points.iter().filter_map(|index| label(&self.points[*index], name));
        let of_rows = rows.iter().filter_map(|row| row_label(&self.published[*row], name));
        let mut values: Vec<String> = Vec::new();
        for value in of_points.chain(of_rows) {
            if !values.iter().any(|known| known == value) {
                values.push(value.to_owned());
            }
        }
        values
    }

    fn nothing(&self, what: &'static str, selection: &Selection, points: &[usize], rows: &[usize]) -> Missing {
        let show = |label: &str| {
            let values = self.label_values(label, points, rows);
            if values.is_empty() { format!("there is no {label}") } else { format!("{label} is {}", values.join(", ")) }
        };
        let labels: Vec<String> = selection.labels().map(show).collect();
        let there =
            if points.is_empty() && rows.is_empty() { "there are none at all".to_owned() } else { labels.join("; ") };
        Missing::Nothing { what, selection: selection.to_string(), there }
    }
}

/// Labels of published rows, distinct from those of points by these names.
const ROW_LABELS: [&str; 3] = ["series", "x", "facet"];

/// A point's label; its design is one.
pub(crate) fn label<'a>(point: &'a Summary, name: &str) -> Option<&'a str> {
    match point.labels.get(name) {
        Some(value) => Some(value),
        None => (name == "design").then_some(point.design.as_str()),
    }
}

fn row_label<'a>(row: &'a PublishedRow, name: &str) -> Option<&'a str> {
    match name {
        "series" => Some(&row.series),
        "x" => Some(&row.x),
        "facet" => Some(&row.facet),
        _ => None,
    }
}

/// A point by its design and labels, for people.
pub(crate) fn describe(point: &Summary) -> String {
    let labels =
        point.labels.iter().filter(|(name, _)| *name != "design").map(|(name, value)| format!("{name} {value}"));
    std::iter::once(point.design.clone()).chain(labels).collect::<Vec<_>>().join(", ")
}

fn elements(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        single => vec![single],
    }
}

fn every_one(value: &Value) -> bool {
    match value {
        Value::Number(number) => *number == 1.0,
        Value::Truth(truth) => *truth,
        Value::List(items) => items.iter().all(every_one),
    }
}

fn divide(left: f64, right: f64) -> Result<f64, Missing> {
    let quotient = left / right;
    if quotient.is_finite() { Ok(quotient) } else { Err(Missing::Division { left, right }) }
}

/// Number with number, list with list of the same length, list with number.
fn pairwise(
    left: &Value,
    right: &Value,
    operation: &dyn Fn(f64, f64) -> Result<f64, Missing>,
) -> Result<Value, Missing> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => operation(*left, *right).map(Value::Number),
        (Value::List(left), Value::List(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .map(|(left, right)| pairwise(left, right, operation))
            .collect::<Result<_, _>>()
            .map(Value::List),
        (Value::List(items), Value::Number(_)) => {
            items.iter().map(|item| pairwise(item, right, operation)).collect::<Result<_, _>>().map(Value::List)
        }
        (Value::Number(_), Value::List(items)) => {
            items.iter().map(|item| pairwise(left, item, operation)).collect::<Result<_, _>>().map(Value::List)
        }
        _ => Err(Missing::Shape {
            wanted: "numbers or lists of equal length",
            got: format!("{} and {}", left.shape(), right.shape()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::measure;
    use super::*;
    use proptest::prelude::*;
    use record::Statistics;

    fn point(design: &str, trace: &str, mean: f64) -> Summary {
        let mut point = Summary { design: design.into(), ..Summary::default() };
        point.labels.insert("trace".into(), trace.into());
        point.latency_ns.insert("all".into(), Statistics { mean, p99: mean * 2.0, ..Statistics::default() });
        point
    }

    /// EDM and CXL on two traces; CXL takes 3 times as long on the first, 8 times on the second.
    fn points() -> Vec<Summary> {
        vec![
            point("edm", "hadoop", 100.0),
            point("cxl", "hadoop", 300.0),
            point("cxl", "memcached", 80.0),
            point("edm", "memcached", 10.0),
        ]
    }

    fn printed() -> Vec<PublishedRow> {
        crate::published::parse("p", "series,x,value,source\nedm,hadoop,1.3,artifact\ncxl,hadoop,6.5,artifact\nedm,memcached,1.4,artifact\ncxl,memcached,11.2,artifact\n").unwrap()
    }

    fn evaluate(text: &str) -> Result<Value, Missing> {
        Reading::new(&points(), &printed()).evaluate(&measure(text).unwrap()).map(|evaluated| evaluated.value)
    }

    #[test]
    fn the_worst_ratio_pairs_designs_by_trace_whatever_their_order() {
        let text = "{ each = 'trace', of = { metric = 'latency_ns.all.mean', where = { design = 'cxl' }, divide_by = { metric = 'latency_ns.all.mean', where = { design = 'edm' } } }, reduce = 'max' }";
        assert_eq!(evaluate(text).unwrap(), Value::Number(8.0));
        assert_eq!(
            evaluate(&text.replace("'max'", "'list'")).unwrap(),
            Value::List(vec![Value::Number(3.0), Value::Number(8.0)])
        );
    }

    #[test]
    fn the_artifact_is_measured_in_the_same_language() {
        let text = "{ each = 'x', of = { published = 'artifact', where = { series = 'cxl' }, divide_by = { published = 'artifact', where = { series = 'edm' } } }, reduce = 'max' }";
        assert_eq!(evaluate(text).unwrap(), Value::Number(11.2 / 1.4));
        assert_eq!(
            evaluate("{ published = 'artifact', where = { series = 'edm' }, reduce = 'max' }").unwrap(),
            Value::Number(1.4)
        );
    }

    #[test]
    fn saved_latency_and_units_are_arithmetic() {
        let saved = "{ metric = 'latency_ns.all.mean', where = { design = 'cxl', trace = 'hadoop' }, subtract = { metric = 'latency_ns.all.mean', where = { design = 'edm', trace = 'hadoop' } }, divide_by = { metric = 'latency_ns.all.mean', where = { design = 'cxl', trace = 'hadoop' } } }";
        assert_eq!(evaluate(saved).unwrap(), Value::Number(200.0 / 300.0));
        let microseconds = "{ sum = ['latency_ns.all.mean', 'latency_ns.all.p99'], where = { design = 'edm' }, reduce = 'max', scale = 0.001 }";
        assert_eq!(evaluate(microseconds).unwrap(), Value::Number(300.0 * 0.001));
    }

    #[test]
    fn statements_compare_numbers_measures_and_lists() {
        let text = |limit: f64| {
            format!(
                "{{ all = [{{ left = {{ metric = 'latency_ns.all.mean', where = {{ design = 'cxl' }}, reduce = 'list' }}, op = '>', right = {limit} }}] }}"
            )
        };
        assert_eq!(evaluate(&text(79.0)).unwrap(), Value::Truth(true));
        assert_eq!(evaluate(&text(80.0)).unwrap(), Value::Truth(false));
        let each = "{ each = 'trace', of = { all = [{ left = { metric = 'latency_ns.all.mean', where = { design = 'edm' } }, op = '<', right = { metric = 'latency_ns.all.mean', where = { design = 'cxl' } } }] }, reduce = 'all' }";
        assert_eq!(evaluate(each).unwrap(), Value::Truth(true));
    }

    #[test]
    fn growth_ends_at_the_smallest_value_that_is_near_the_largest() {
        let grown = |means: [f64; 3]| {
            let points: Vec<Summary> =
                ["1", "2", "10"].iter().zip(means).map(|(at, mean)| point("leed", at, mean)).collect();
            let knee = measure("{ knee = 'trace', of = { metric = 'latency_ns.all.mean' } }").unwrap();
            Reading::new(&points, &[]).evaluate(&knee).map(|evaluated| evaluated.value)
        };
        assert_eq!(grown([50.0, 95.0, 100.0]), Ok(Value::Number(2.0)));
        assert_eq!(grown([50.0, 94.9, 100.0]), Ok(Value::Number(10.0)));
        assert!(
            evaluate("{ knee = 'trace', of = { metric = 'latency_ns.all.mean', where = { design = 'edm' } } }")
                .is_err()
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, words) in [
            (
                "{ metric = 'latency_ns.all.mean', where = { design = 'ird' } }",
                "no point with design = ird; design is edm, cxl",
            ),
            (
                "{ metric = 'latency_ns.all.mean', where = { design = 'edm' } }",
                "2 points with design = edm are selected where reduce",
            ),
            (
                "{ metric = 'latency_ns.read.mean', where = { design = 'edm' }, reduce = 'max' }",
                "the point edm, trace hadoop has no finite number latency_ns.read.mean: latency_ns has all",
            ),
            ("{ published = 'paper' }", "no published number"),
            ("{ each = 'load', of = 1, reduce = 'max' }", "there is no load"),
            ("{ of = 1, divide_by = 0 }", "1 divided by 0"),
            ("{ list = [1, 2], subtract = { list = [1] } }", "a list of 2 and a list of 1"),
            ("{ of = { all = [{ left = 1, op = '<', right = 2 }] }, scale = 2 }", "true or false"),
        ] {
            let error = evaluate(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn the_points_that_went_in_are_known() {
        let points = points();
        let reading = Reading::new(&points, &[]);
        let evaluated = reading.evaluate(
            &measure("{ metric = 'latency_ns.all.mean', where = { design = 'cxl' }, reduce = 'max' }").unwrap(),
        );
        assert_eq!(evaluated.unwrap().used, BTreeSet::from([1, 2]));
    }

    proptest! {
        #[test]
        fn a_ratio_of_lists_is_the_list_of_ratios(values in proptest::collection::vec((1.0_f64..1e6, 1.0_f64..1e6), 1..8)) {
            let points: Vec<Summary> = values.iter().enumerate().flat_map(|(index, (edm, cxl))| {
                [point("edm", &index.to_string(), *edm), point("cxl", &index.to_string(), *cxl)]
            }).collect();
            let reading = Reading::new(&points, &[]);
            let list = "{ metric = 'latency_ns.all.mean', where = { design = 'cxl' }, reduce = 'list', divide_by = { metric = 'latency_ns.all.mean', where = { design = 'edm' }, reduce = 'list' } }";
            let each = "{ each = 'trace', of = { metric = 'latency_ns.all.mean', where = { design = 'cxl' }, divide_by = { metric = 'latency_ns.all.mean', where = { design = 'edm' } } }, reduce = 'list' }";
            let expected = Value::List(values.iter().map(|(edm, cxl)| Value::Number(cxl / edm)).collect());
            prop_assert_eq!(reading.evaluate(&measure(list).unwrap()).unwrap().value, expected.clone());
            prop_assert_eq!(reading.evaluate(&measure(each).unwrap()).unwrap().value, expected);
        }
    }
}
