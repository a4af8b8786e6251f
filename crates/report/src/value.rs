//! The value of a claim: a number, a statement, or a list of them; and the interval in which ours
//! agrees.

use serde::{Deserialize, Serialize};

/// A published or a measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A finite number, in the claim's unit.
    Number(f64),
    /// Whether a statement holds.
    Truth(bool),
    /// Several, in the order in which the claim's setting names them.
    List(Vec<Value>),
}

/// The interval of agreement, in the shape of the value.
#[derive(Clone, Debug, PartialEq)]
pub enum Accept {
    /// Both ends belong to it.
    Between {
        /// The lowest number in agreement.
        low: f64,
        /// The highest number in agreement.
        high: f64,
    },
    /// The statement must come out like this.
    Truth(bool),
    /// One an element.
    Each(Vec<Accept>),
}

/// Room for rounding at the ends of an interval, relative to the end: binary fractions of printed
/// decimals.
const ROUNDING: f64 = 1e-9;

impl Value {
    /// Reads a number, a boolean or a list of them.
    pub(crate) fn read(value: &toml::Value) -> Result<Value, String> {
        match value {
            toml::Value::Integer(number) => Ok(Value::Number(*number as f64)),
            toml::Value::Float(number) if number.is_finite() => Ok(Value::Number(*number)),
            toml::Value::Boolean(truth) => Ok(Value::Truth(*truth)),
            toml::Value::Array(items) if !items.is_empty() => {
                items.iter().map(Value::read).collect::<Result<_, _>>().map(Value::List)
            }
            other => Err(format!("expected a finite number, true, false or a list of them, got {other}")),
        }
    }

    /// The value as a reader sees it, without unit.
    pub fn show(&self) -> String {
        match self {
            Value::Number(number) => show_number(*number),
            Value::Truth(true) => "yes".to_owned(),
            Value::Truth(false) => "no".to_owned(),
            Value::List(items) if items.iter().any(|item| matches!(item, Value::List(_))) => {
                items.iter().map(|item| format!("({})", item.show())).collect::<Vec<_>>().join(" ")
            }
            Value::List(items) => items.iter().map(Value::show).collect::<Vec<_>>().join(", "),
        }
    }

    /// The kind of value, for error messages.
    pub(crate) fn shape(&self) -> String {
        match self {
            Value::Number(_) => "a number".to_owned(),
            Value::Truth(_) => "true or false".to_owned(),
            Value::List(items) => format!("a list of {}", items.len()),
        }
    }

    /// Whether `other` has the same shape, with all lists.
    pub fn same_shape(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Number(_), Value::Number(_)) | (Value::Truth(_), Value::Truth(_)) => true,
            (Value::List(left), Value::List(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(a, b)| a.same_shape(b))
            }
            _ => false,
        }
    }
}

impl Accept {
    /// Reads the interval of a claim whose paper says `paper`.
    pub(crate) fn read(paper: &Value, accept: &toml::Value) -> Result<Accept, String> {
        let items =
            accept.as_array().ok_or("accept must be [low, high], or one such pair for each element of paper")?;
        match paper {
            Value::Number(_) => Accept::interval(items),
            Value::Truth(_) => match items.as_slice() {
                [toml::Value::Boolean(low), toml::Value::Boolean(high)] if low == high => Ok(Accept::Truth(*low)),
                _ => Err("accept of a statement must be [true, true] or [false, false]".to_owned()),
            },
            Value::List(values) if values.len() == items.len() => values
                .iter()
                .zip(items)
                .map(|(value, item)| Accept::read(value, item))
                .collect::<Result<_, _>>()
                .map(Accept::Each),
            Value::List(values) => {
                Err(format!("accept has {} elements, paper has {}: there must be one each", items.len(), values.len()))
            }
        }
    }

    fn interval(items: &[toml::Value]) -> Result<Accept, String> {
        let [low, high] = items else {
            return Err(format!("accept must be [low, high], got {} elements", items.len()));
        };
        match (Value::read(low)?, Value::read(high)?) {
            (Value::Number(low), Value::Number(high)) if low <= high => Ok(Accept::Between { low, high }),
            (Value::Number(low), Value::Number(high)) => Err(format!("accept starts at {low}, above its end {high}")),
            _ => Err("accept must be two numbers".to_owned()),
        }
    }

    /// Whether `value` agrees. A value of another shape never does.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Accept::Between { low, high }, Value::Number(number)) => {
                *number >= low - low.abs() * ROUNDING && *number <= high + high.abs() * ROUNDING
            }
            (Accept::Truth(wanted), Value::Truth(truth)) => wanted == truth,
            (Accept::Each(items), Value::List(values)) => {
                items.len() == values.len() && items.iter().zip(values).all(|(item, value)| item.contains(value))
            }
            _ => false,
        }
    }

    /// The interval as a reader sees it.
    pub fn show(&self) -> String {
        match self {
            Accept::Between { low, high } if low == high => show_number(*low),
            Accept::Between { low, high } => format!("{} to {}", show_number(*low), show_number(*high)),
            Accept::Truth(truth) => Value::Truth(*truth).show(),
            Accept::Each(items) => items.iter().map(Accept::show).collect::<Vec<_>>().join("; "),
        }
    }
}

/// A number for people: whole numbers in full, others to five significant digits, very large or
/// small ones with a power of ten.
pub(crate) fn show_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e9 {
        return format!("{number:.0}");
    }
    let magnitude = number.abs().log10().floor() as i32;
    if !(-5..9).contains(&magnitude) {
        return format!("{number:.3e}");
    }
    let decimals = usize::try_from(4 - magnitude).unwrap_or(0);
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value with its unit, the way a table cell shows it.
pub(crate) fn show_with_unit(value: &Value, unit: &str) -> String {
    match unit {
        "bool" | "fraction" | "count" => value.show(),
        "ratio" => match value {
            Value::Number(_) => format!("{}×", value.show()),
            _ => value.show(),
        },
        "us" => format!("{} µs", value.show()),
        _ => format!("{} {unit}", value.show()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_shown_with_the_digits_that_a_claim_needs() {
        for (number, text) in [
            (299.52, "299.52"),
            (105_000.0, "105000"),
            (0.0, "0"),
            (-0.016, "-0.016"),
            (1.0 / 3.0, "0.33333"),
            (2_440.7, "2440.7"),
            (123_456.78, "123457"),
            (1.5e-7, "1.500e-7"),
            (2.5e12, "2.500e12"),
        ] {
            assert_eq!(show_number(number), text);
        }
    }

    #[test]
    fn an_interval_holds_both_its_ends_and_nothing_beyond() {
        let accept = Accept::Between { low: 1.0, high: 1.2 };
        for (number, agrees) in [(1.0, true), (1.2, true), (1.2 + 1e-13, true), (0.999, false), (1.2001, false)] {
            assert_eq!(accept.contains(&Value::Number(number)), agrees, "{number}");
        }
        assert!(!accept.contains(&Value::Truth(true)));
    }

    #[test]
    fn a_list_agrees_only_when_every_element_does() {
        let pair = |low, high| Accept::Between { low, high };
        let accept = Accept::Each(vec![pair(0.0, 1.0), pair(2.0, 3.0)]);
        let list = |a, b| Value::List(vec![Value::Number(a), Value::Number(b)]);
        assert!(accept.contains(&list(0.5, 2.5)));
        assert!(!accept.contains(&list(0.5, 3.5)));
        assert!(!accept.contains(&Value::List(vec![Value::Number(0.5)])));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_the_number_to_five_digits(number in -1e8_f64..1e8) {
            let shown: f64 = show_number(number).parse().unwrap();
            prop_assert!((shown - number).abs() <= number.abs() * 5.1e-5 + 1e-12, "{} shown as {}", number, shown);
        }
    }
}
