//! Which points (or published rows) a measure or a figure sees.

use std::collections::BTreeMap;

use crate::value::show_number;

/// Conditions on labels; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(BTreeMap<String, Condition>);

/// The condition of one label.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// One of these texts; `"0.90"` and `"0.9"` are the same number and therefore equal.
    OneOf(Vec<String>),
    /// A number inside these ends, both included.
    Within {
        /// The lowest, or none.
        at_least: Option<f64>,
        /// The highest, or none.
        at_most: Option<f64>,
    },
}

impl Selection {
    /// Reads a `where` or `filter` table.
    pub(crate) fn read(table: &BTreeMap<String, toml::Value>) -> Result<Selection, String> {
        let read = |(label, value): (&String, &toml::Value)| match Condition::read(value) {
            Ok(condition) => Ok((label.clone(), condition)),
            Err(reason) => Err(format!("where.{label}: {reason}")),
        };
        table.iter().map(read).collect::<Result<_, _>>().map(Selection)
    }

    /// Just `label` equal to `value`.
    pub(crate) fn one(label: &str, value: &str) -> Selection {
        Selection(BTreeMap::from([(label.to_owned(), Condition::OneOf(vec![value.to_owned()]))]))
    }

    /// Whether all conditions hold, `label` giving the labels; an absent label satisfies none.
    pub fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(name, condition)| label(name).is_some_and(|value| condition.holds(value)))
    }

    /// The labels that it selects by.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |(label, condition): (&String, &Condition)| match condition {
            Condition::OneOf(values) => format!("{label} = {}", values.join(" or ")),
            Condition::Within { at_least, at_most } => {
                let end = |end: &Option<f64>| end.map_or("any".to_owned(), show_number);
                format!("{label} in {}..={}", end(at_least), end(at_most))
            }
        };
        let parts: Vec<String> = self.0.iter().map(show).collect();
        formatter.write_str(if parts.is_empty() { "no condition".to_owned() } else { parts.join(", ") }.as_str())
    }
}

impl Condition {
    fn read(value: &toml::Value) -> Result<Condition, String> {
        match value {
            toml::Value::Array(items) if !items.is_empty() => {
                items.iter().map(text).collect::<Result<_, _>>().map(Condition::OneOf)
            }
            toml::Value::Table(table) => Condition::within(table),
            other => text(other).map(|text| Condition::OneOf(vec![text])),
        }
    }

    fn within(table: &toml::Table) -> Result<Condition, String> {
        if let Some(key) = table.keys().find(|key| !["at_least", "at_most"].contains(&key.as_str())) {
            return Err(format!("unknown key {key}, expected at_least or at_most"));
        }
        let end = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => number(value).map(Some).ok_or(format!("{key} must be a number, got {value}")),
        };
        Ok(Condition::Within { at_least: end("at_least")?, at_most: end("at_most")? })
    }

    /// Whether `value` satisfies it.
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Condition::OneOf(values) => values.iter().any(|wanted| same(wanted, value)),
            Condition::Within { at_least, at_most } => value.parse::<f64>().is_ok_and(|number| {
                at_least.is_none_or(|low| number >= low) && at_most.is_none_or(|high| number <= high)
            }),
        }
    }
}

/// Whether two label values are the same text or the same number.
pub(crate) fn same(left: &str, right: &str) -> bool {
    left == right || matches!((left.parse::<f64>(), right.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64)).filter(|number| number.is_finite())
}

fn text(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        other => number(other).map(|number| number.to_string()).ok_or_else(|| {
            format!("expected a text, a number, a list of them or {{ at_least, at_most }}, got {other}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(text: &str) -> Selection {
        Selection::read(&toml::from_str(text).unwrap()).unwrap()
    }

    fn holds(selection: &Selection, labels: &[(&str, &str)]) -> bool {
        selection.holds(|name| labels.iter().find(|(label, _)| *label == name).map(|(_, value)| *value))
    }

    #[test]
    fn all_conditions_must_hold_and_a_missing_label_holds_none() {
        let selection = selection("design = ['edm', 'ird']\nload = 0.8");
        assert!(holds(&selection, &[("design", "ird"), ("load", "0.80"), ("mix", "reads")]));
        assert!(!holds(&selection, &[("design", "cxl"), ("load", "0.8")]));
        assert!(!holds(&selection, &[("design", "edm")]));
    }

    #[test]
    fn both_ends_of_a_range_belong_to_it() {
        let selection = selection("load = { at_least = 0.2, at_most = 0.9 }");
        for (load, inside) in [("0.1", false), ("0.2", true), ("0.9", true), ("0.91", false), ("high", false)] {
            assert_eq!(holds(&selection, &[("load", load)]), inside, "{load}");
        }
    }

    #[test]
    fn a_misspelt_range_is_refused() {
        for text in ["load = { atleast = 1 }", "load = { at_least = 'x' }", "load = []", "load = 2000-01-01"] {
            assert!(Selection::read(&toml::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
