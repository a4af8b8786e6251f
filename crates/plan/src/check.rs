//! Checks a document against the JSON Schema, and says everything that is wrong with it in the
//! file's own words.
//!
//! A general validator would say "is not valid under any of the schemas"; this one knows the few
//! constructs that our schema is made of, so it can name keys, units, ranges and the closest right
//! spelling.

use crate::document::{Node, Value};
use crate::error::{Problem, Problems};
use crate::rack::Address;
use crate::soundness::join;
use base::{Bytes, Clock, Length, Rate, Span, UnitError};
use serde_json::{Map, Value as Json};
use std::fmt;
use std::str::FromStr;

/// Whether keys that must be there are missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// The document is one point: everything must be there.
    Whole,
    /// A sweep may still fill in what is missing.
    Partial,
}

/// Adds everything to `problems` that is wrong with `node` under the whole `schema`.
pub(crate) fn check(schema: &Json, node: &Node, completeness: Completeness, problems: &mut Problems) {
    Checker { root: schema, completeness, problems }.node(schema, node, "");
}

/// Whether `path` names a key of the schema, or what key in it is wrong.
pub(crate) fn find<'a>(root: &'a Json, path: &str) -> Result<&'a Json, Problem> {
    path.split('.').try_fold(root, |schema, key| step(root, schema, key))
}

fn step<'a>(root: &'a Json, schema: &'a Json, key: &str) -> Result<&'a Json, Problem> {
    property(root, schema, key).ok_or_else(|| {
        let branches = branches(root, schema);
        let keys = branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten();
        Problem::no_key(key, &keys.map(|(key, schema)| (key.clone(), schema.clone())).collect())
    })
}

/// The schema of a key of a table, or of an item of a list.
pub(crate) fn property<'a>(root: &'a Json, schema: &'a Json, key: &str) -> Option<&'a Json> {
    branches(root, schema).into_iter().find_map(|branch| {
        let property = branch.get("properties").and_then(|properties| properties.get(key));
        property.or_else(|| key.parse::<usize>().ok().and_then(|_| branch.get("items")))
    })
}

/// Whether a schema is a table with fixed keys, so that a path may continue below it.
pub(crate) fn is_table(root: &Json, schema: &Json) -> bool {
    follow(root, schema).get("properties").is_some()
}

/// The schema itself, or what its reference points to.
pub(crate) fn follow<'a>(root: &'a Json, schema: &'a Json) -> &'a Json {
    let name = schema.get("$ref").and_then(Json::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
    name.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

/// The alternatives of a schema, or the schema alone.
fn branches<'a>(root: &'a Json, schema: &'a Json) -> Vec<&'a Json> {
    let schema = follow(root, schema);
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array);
    alternatives.map_or(vec![schema], |list| list.iter().flat_map(|branch| branches(root, branch)).collect())
}

/// The words that a schema allows, when it is a list of words.
fn words(root: &Json, schema: &Json) -> Option<Vec<String>> {
    let words_of = |branch: &Json| -> Option<Vec<String>> {
        let listed = branch.get("enum").and_then(Json::as_array).cloned();
        let values = listed.or_else(|| branch.get("const").map(|word| vec![word.clone()]))?;
        values.iter().map(|word| word.as_str().map(String::from)).collect()
    };
    let lists: Option<Vec<_>> = branches(root, schema).into_iter().map(words_of).collect();
    lists.map(|lists| lists.concat())
}

struct Checker<'a> {
    root: &'a Json,
    completeness: Completeness,
    problems: &'a mut Problems,
}

impl Checker<'_> {
    fn node(&mut self, schema: &Json, node: &Node, path: &str) {
        // The reference's siblings (a range beside it) do not occur: schemars puts keywords into
        // the definition.
        let root = self.root;
        if let Some(allowed) = words(root, schema) {
            return self.word(allowed, node, path);
        }
        match branches(root, schema).as_slice() {
            [only] => self.single(only, node, path),
            several => self.one_of(several, node, path),
        }
    }

    fn word(&mut self, allowed: Vec<String>, node: &Node, path: &str) {
        match node.text() {
            Some(word) if allowed.iter().any(|other| other == word) => {}
            Some(word) => self.problems.add(node.place, path, Problem::not_allowed(word, allowed)),
            None => self.wrong_type(node, path, &format!("one of {}", allowed.join(", "))),
        }
    }

    /// Right when any branch takes it; otherwise what is wrong with the branch that is meant, by
    /// the type of the value.
    fn one_of(&mut self, several: &[&Json], node: &Node, path: &str) {
        let root = self.root;
        let fits = |branch: &&&Json| {
            let mut trial = Problems::new("", None);
            Checker { root, completeness: self.completeness, problems: &mut trial }.node(branch, node, path);
            trial.is_empty()
        };
        if several.iter().any(|branch| fits(&branch)) {
            return;
        }
        let is_word = node.text().is_some_and(|text| text.starts_with(char::is_alphabetic));
        if is_word && several.iter().any(|branch| words(root, branch).is_some()) {
            let allowed =
                several.iter().flat_map(|branch| words(root, branch).unwrap_or(vec![expectation(root, branch)]));
            return self.problems.add(node.place, path, Problem::not_allowed(&node.label(), allowed.collect()));
        }
        match several.iter().find(|branch| takes_type(branch, node)) {
            Some(meant) => self.node(meant, node, path),
            None => {
                let expected: Vec<String> = several.iter().map(|branch| expectation(root, branch)).collect();
                self.wrong_type(node, path, &expected.join(", or "));
            }
        }
    }

    fn single(&mut self, schema: &Json, node: &Node, path: &str) {
        match schema.get("type").and_then(Json::as_str) {
            None => {}
            Some(kind) => match (kind, &node.value) {
                ("object", Value::Table(_)) => self.table(schema, node, path),
                ("array", Value::Array(items)) => self.array(schema, node, items, path),
                ("string", Value::Text(text)) => self.text(schema, node, text, path),
                ("string", Value::Integer(_) | Value::Float(_)) if schema.get("format").is_some() => {
                    self.text(schema, node, &node.label(), path);
                }
                ("integer", Value::Integer(number)) => self.integer(schema, node, *number, path),
                ("number", Value::Integer(number)) => self.number(schema, node, *number as f64, path),
                ("number", Value::Float(number)) => self.number(schema, node, *number, path),
                ("boolean", Value::Boolean(_)) => {}
                _ => self.wrong_type(node, path, &expectation(self.root, schema)),
            },
        }
    }

    fn wrong_type(&mut self, node: &Node, path: &str, expected: &str) {
        let problem = Problem::WrongType { got: node.kind(), expected: expected.into() };
        self.problems.add(node.place, path, problem);
    }

    fn table(&mut self, schema: &Json, node: &Node, path: &str) {
        let properties = schema.get("properties").and_then(Json::as_object);
        for entry in node.entries() {
            let below = join(path, &entry.key);
            match properties.and_then(|properties| properties.get(&entry.key)) {
                Some(property) => self.node(property, &entry.node, &below),
                None => match schema.get("additionalProperties") {
                    Some(Json::Bool(false)) => {
                        let problem = Problem::no_key(&entry.key, properties.unwrap_or(&Map::new()));
                        self.problems.add(entry.key_place, path, problem);
                    }
                    Some(other) => self.node(other, &entry.node, &below),
                    None => {}
                },
            }
        }
        if self.completeness == Completeness::Whole {
            self.required(schema, node, path);
        }
    }

    fn required(&mut self, schema: &Json, node: &Node, path: &str) {
        let wanted = schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
        for key in wanted.filter(|key| node.child(key).is_none()) {
            let why = schema.get("properties").and_then(|properties| properties.get(key)?.get("description")?.as_str());
            self.problems.add(node.place, path, Problem::missing(key, why.unwrap_or_default()));
        }
    }

    fn array(&mut self, schema: &Json, node: &Node, items: &[Node], path: &str) {
        let places = schema.get("prefixItems").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let bound = |key: &str| schema.get(key).and_then(Json::as_u64);
        let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems").unwrap_or(u64::MAX));
        if !(least..=most).contains(&(items.len() as u64)) {
            let allowed = if most == u64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            let got = format!("a list of {}", items.len());
            self.problems.add(node.place, path, Problem::out_of_range(got, format!("a list of {allowed}")));
        }
        for (index, item) in items.iter().enumerate() {
            if let Some(below) = places.get(index).or_else(|| schema.get("items")) {
                self.node(below, item, &join(path, &index.to_string()));
            }
        }
    }

    fn text(&mut self, schema: &Json, node: &Node, text: &str, path: &str) {
        let format = schema.get("format").and_then(Json::as_str);
        if let Some(Err(problem)) = format.map(|format| quantity(format, text, schema)) {
            self.problems.add(node.place, path, problem);
        }
        if schema.get("minLength").and_then(Json::as_u64).is_some_and(|least| least > text.chars().count() as u64) {
            self.problems.add(node.place, path, Problem::out_of_range("an empty text", "some text"));
        }
    }

    /// Integers are compared as integers: `f64` would let 2^53 + 1 pass for 2^53.
    fn integer(&mut self, schema: &Json, node: &Node, number: i64, path: &str) {
        let format_max = match schema.get("format").and_then(Json::as_str) {
            Some("uint8") => i128::from(u8::MAX),
            Some("uint16") => i128::from(u16::MAX),
            Some("uint32") => i128::from(u32::MAX),
            _ => i128::from(i64::MAX),
        };
        let bound = |key: &str| schema.get(key).and_then(whole);
        let (min, max) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(format_max).min(format_max));
        if !(min..=max).contains(&i128::from(number)) {
            self.problems.add(node.place, path, Problem::out_of_range(number, format!("{min}..={max}")));
        }
    }

    fn number(&mut self, schema: &Json, node: &Node, number: f64, path: &str) {
        let bound = |key: &str| schema.get(key).and_then(Json::as_f64);
        let (min, max, above) = (bound("minimum"), bound("maximum"), bound("exclusiveMinimum"));
        let inside = min.is_none_or(|min| number >= min)
            && max.is_none_or(|max| number <= max)
            && above.is_none_or(|above| number > above);
        if !(number.is_finite() && inside) {
            self.problems.add(node.place, path, Problem::out_of_range(number, range_in_words(min, max, above)));
        }
    }
}

fn whole(bound: &Json) -> Option<i128> {
    bound.as_u64().map(i128::from).or_else(|| bound.as_i64().map(i128::from)).or_else(|| Some(bound.as_f64()? as i128))
}

fn range_in_words<T: fmt::Display>(min: Option<T>, max: Option<T>, above: Option<T>) -> String {
    match (above, min, max) {
        (Some(above), _, Some(max)) => format!("above {above}, up to {max}"),
        (Some(above), _, None) => format!("above {above}"),
        (None, Some(min), Some(max)) => format!("{min}..={max}"),
        (None, Some(min), None) => format!("{min} or more"),
        (None, None, Some(max)) => format!("up to {max}"),
        (None, None, None) => "a finite number".into(),
    }
}

fn quantity(format: &str, text: &str, schema: &Json) -> Result<(), Problem> {
    match format {
        "time" => within::<Span>(text, schema),
        "size" => within::<Bytes>(text, schema),
        "rate" => within::<Rate>(text, schema),
        "frequency" => within::<Clock>(text, schema),
        "length" => within::<Length>(text, schema),
        Address::FORMAT => Address::check(text),
        _ => Ok(()),
    }
}

/// Whether a text is a quantity within the bounds of its schema.
fn within<T: FromStr<Err = UnitError> + Ord + fmt::Display>(text: &str, schema: &Json) -> Result<(), Problem> {
    let got: T = text.parse().map_err(Problem::Quantity)?;
    let bound = |key: &str| schema.get(key).and_then(Json::as_str).and_then(|bound| bound.parse::<T>().ok());
    let (min, max) = (bound("formatMinimum"), bound("formatMaximum"));
    let above = bound("formatExclusiveMinimum");
    let is_inside = min.as_ref().is_none_or(|min| got >= *min)
        && max.as_ref().is_none_or(|max| got <= *max)
        && above.as_ref().is_none_or(|above| got > *above);
    if is_inside { Ok(()) } else { Err(Problem::out_of_range(got, range_in_words(min, max, above))) }
}

fn takes_type(schema: &Json, node: &Node) -> bool {
    let kind = schema.get("type").and_then(Json::as_str).unwrap_or_default();
    match &node.value {
        Value::Text(_) => kind == "string",
        Value::Integer(_) => kind == "integer" || kind == "number" || schema.get("format").is_some(),
        Value::Float(_) => kind == "number" || schema.get("format").is_some(),
        Value::Boolean(_) => kind == "boolean",
        Value::Array(_) => kind == "array",
        Value::Table(_) => kind == "object",
        Value::Useless { .. } => false,
    }
}

/// What a schema wants, in words.
fn expectation(root: &Json, schema: &Json) -> String {
    if let Some(allowed) = words(root, schema) {
        return format!("one of {}", allowed.join(", "));
    }
    if schema.get("format").is_some_and(|format| format == Address::FORMAT) {
        return Address::ALLOWED.into();
    }
    let example = schema.get("examples").and_then(|list| list.get(0)?.as_str());
    match (schema.get("type").and_then(Json::as_str).unwrap_or_default(), example) {
        ("string", Some(example)) => format!("a quantity with its unit, such as \"{example}\""),
        ("string", None) => "a text".into(),
        ("integer", _) => "a whole number".into(),
        ("number", _) => "a number".into(),
        ("boolean", _) => "true or false".into(),
        ("array", _) => "a list".into(),
        _ => "a table".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema;

    #[test]
    fn paths_lead_through_tables_lists_and_alternatives() {
        let root = schema();
        for path in ["seed", "workload.load", "workload.mix.3.size.cdf", "design.receiver-driven.mtu", "fault.0.at"] {
            assert!(find(&root, path).is_ok(), "{path}");
        }
        assert!(is_table(&root, find(&root, "design.edm").unwrap()));
        assert!(!is_table(&root, find(&root, "workload.size").unwrap()), "a size may be a text too");
    }

    #[test]
    fn a_path_that_goes_wrong_says_where() {
        let problem = find(&schema(), "fabric.rates").unwrap_err();
        let Problem::UnknownKey { got, nearest, .. } = problem else { panic!("{problem}") };
        assert_eq!((got.as_str(), nearest.as_deref()), ("rates", Some("rate")));
        assert!(find(&schema(), "fabric.rate.unit").is_err());
        assert!(find(&schema(), "").is_err());
    }

    #[test]
    fn whole_numbers_are_compared_as_whole_numbers() {
        let schema = serde_json::json!({ "type": "integer", "maximum": (1_u64 << 53) });
        let count = |number: i64| {
            let mut problems = Problems::new("", None);
            let node = Node { place: crate::error::Place::START, value: Value::Integer(number) };
            check(&schema, &node, Completeness::Whole, &mut problems);
            problems.into_errors().len()
        };
        assert_eq!((count(1 << 53), count((1 << 53) + 1), count(-1)), (0, 1, 1));
    }
}
