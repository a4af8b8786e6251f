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

/// The 95 % confidence interval of a value over seeds, in the value's shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Interval {
    /// Low and high end of a mean.
    Numbers([f64; 2]),
    /// Whether a statement holds with every seed, and whether with any.
    Truths([bool; 2]),
    /// One an element.
    Each(Vec<Interval>),
}

/// Where an interval lies against the interval of agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// All of it agrees.
    Inside,
    /// None of it agrees; of a list, none of some element.
    Outside,
    /// It has an end of the interval of agreement inside.
    Across,
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

    /// The value for a reader. A number has three significant digits, or those of the printed one.
    pub(crate) fn rounded(&self, printed: &Value) -> Value {
        match (self, printed) {
            (Value::Number(number), Value::Number(printed)) => {
                Value::Number(round_to(*number, significant_digits(*printed).max(3)))
            }
            _ => self.clone(),
        }
    }

    /// The values of several seeds, as their mean; `None` for a statement.
    fn mean(values: &[&Value]) -> Option<Value> {
        match values.first()? {
            Value::Number(_) => Some(Value::Number(numbers(values)?.iter().sum::<f64>() / values.len() as f64)),
            Value::Truth(_) => None,
            Value::List(first) => (0..first.len())
                .map(|place| Value::mean(&elements(values, place)?))
                .collect::<Option<_>>()
                .map(Value::List),
        }
    }

    /// The value to report of several seeds: the mean of numbers, and of statements `pooled`, which
    /// is the value of all seeds together.
    pub(crate) fn over_seeds(values: &[Value], pooled: Value) -> Value {
        Value::mean(&values.iter().collect::<Vec<_>>()).unwrap_or(pooled)
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

/// The digits of a decimal fraction without zeros around them.
fn significant_digits(number: f64) -> usize {
    let text = format!("{number:e}");
    text.split('e').next().map_or(0, |digits| digits.bytes().filter(u8::is_ascii_digit).count())
}

/// A number with so many significant digits.
fn round_to(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits.saturating_sub(1)).parse().unwrap_or(number)
}

/// All values as numbers.
fn numbers(values: &[&Value]) -> Option<Vec<f64>> {
    let number = |value: &&Value| if let Value::Number(number) = value { Some(*number) } else { None };
    values.iter().map(number).collect()
}

/// An element of each list.
fn elements<'a>(values: &[&'a Value], place: usize) -> Option<Vec<&'a Value>> {
    let element = |value: &&'a Value| if let Value::List(items) = value { items.get(place) } else { None };
    values.iter().map(element).collect()
}

impl Interval {
    /// The interval of values of one shape, one a seed; `None` for fewer than two, and for others.
    pub fn over_seeds(values: &[Value]) -> Option<Interval> {
        Interval::of(&values.iter().collect::<Vec<_>>())
    }

    fn of(values: &[&Value]) -> Option<Interval> {
        match values {
            [Value::Number(_), _, ..] => {
                let (low, high) = record::interval_95(&numbers(values)?)?;
                Some(Interval::Numbers([low, high]))
            }
            [Value::Truth(_), _, ..] => {
                let holds = |value: &&Value| matches!(value, Value::Truth(true));
                Some(Interval::Truths([values.iter().all(holds), values.iter().any(holds)]))
            }
            [Value::List(first), _, ..] => {
                let element = |place| Interval::of(&elements(values, place)?);
                (0..first.len()).map(element).collect::<Option<_>>().map(Interval::Each)
            }
            _ => None,
        }
    }

    /// The interval as a reader sees it.
    pub fn show(&self) -> String {
        match self {
            Interval::Numbers([low, high]) => format!("{} to {}", show_number(*low), show_number(*high)),
            Interval::Truths([false, true]) => "with some seeds".to_owned(),
            Interval::Truths([always, _]) => Value::Truth(*always).show(),
            Interval::Each(items) => items.iter().map(Interval::show).collect::<Vec<_>>().join("; "),
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

    /// Where an interval over seeds lies. One of another shape is outside.
    pub fn side(&self, interval: &Interval) -> Side {
        match (self, interval) {
            (Accept::Between { .. }, Interval::Numbers(ends)) => {
                match ends.map(|end| self.contains(&Value::Number(end))) {
                    [true, true] => Side::Inside,
                    [false, false] if !self.is_between(*ends) => Side::Outside,
                    _ => Side::Across,
                }
            }
            (Accept::Truth(wanted), Interval::Truths(ends)) => match ends.map(|end| end == *wanted) {
                [true, true] => Side::Inside,
                [false, false] => Side::Outside,
                _ => Side::Across,
            },
            (Accept::Each(items), Interval::Each(parts)) if items.len() == parts.len() => {
                let sides: Vec<Side> = items.iter().zip(parts).map(|(item, part)| item.side(part)).collect();
                let worst = |side| sides.contains(&side).then_some(side);
                worst(Side::Outside).or(worst(Side::Across)).unwrap_or(Side::Inside)
            }
            _ => Side::Outside,
        }
    }

    /// Whether an interval whose ends are both outside has all that agrees between them.
    fn is_between(&self, [from, to]: [f64; 2]) -> bool {
        matches!(self, Accept::Between { low, high } if from < *low && *high < to)
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
    fn a_measured_number_has_three_digits_or_as_many_as_the_printed_one() {
        for (ours, printed, text) in [
            (1.0013, 2.8, "1"),
            (16.008, 8.2, "16"),
            (0.042_26, 0.1, "0.0423"),
            (299.5212, 299.52, "299.52"),
            (104_973.0, 105_000.0, "105000"),
            (-0.015_04, 0.0, "-0.015"),
        ] {
            assert_eq!(Value::Number(ours).rounded(&Value::Number(printed)).show(), text);
        }
        assert_eq!(Value::Truth(true).rounded(&Value::Number(1.0)), Value::Truth(true));
    }

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

    #[test]
    fn an_interval_agrees_when_all_of_it_does_and_differs_when_none_does() {
        let accept = Accept::Between { low: 1.0, high: 2.0 };
        for (ends, side) in [
            ([1.0, 2.0], Side::Inside),
            ([0.9, 1.1], Side::Across),
            ([1.9, 2.1], Side::Across),
            ([0.5, 3.0], Side::Across),
            ([0.5, 0.99], Side::Outside),
            ([2.01, 3.0], Side::Outside),
        ] {
            assert_eq!(accept.side(&Interval::Numbers(ends)), side, "{ends:?}");
        }
        for (holds, side) in
            [([true, true], Side::Inside), ([false, true], Side::Across), ([false, false], Side::Outside)]
        {
            assert_eq!(Accept::Truth(true).side(&Interval::Truths(holds)), side);
        }
        let both = Accept::Each(vec![accept.clone(), accept]);
        let each = |a, b| Interval::Each(vec![Interval::Numbers(a), Interval::Numbers(b)]);
        assert_eq!(both.side(&each([1.2, 1.3], [1.9, 2.1])), Side::Across);
        assert_eq!(both.side(&each([0.1, 0.2], [1.9, 2.1])), Side::Outside, "one element differs for sure");
        assert_eq!(both.side(&Interval::Numbers([1.0, 1.0])), Side::Outside, "of another shape");
    }

    #[test]
    fn the_interval_of_five_seeds_is_that_of_students_t() {
        // Mean 3, standard deviation sqrt(2.5), t(4) 2.776: 2.776 * sqrt(2.5 / 5) = 1.963.
        let seeds: Vec<Value> = [1.0, 2.0, 3.0, 4.0, 5.0].map(Value::Number).into();
        let Some(Interval::Numbers([low, high])) = Interval::over_seeds(&seeds) else { panic!("numbers have one") };
        assert!((low - (3.0 - 1.963)).abs() < 1e-3 && (high - (3.0 + 1.963)).abs() < 1e-3, "{low} to {high}");
        assert_eq!(Value::over_seeds(&seeds, Value::Number(9.0)), Value::Number(3.0));
        assert_eq!(Interval::over_seeds(&seeds[..1]), None);
        let mixed = [Value::Truth(true), Value::Truth(false)];
        assert_eq!(Interval::over_seeds(&mixed), Some(Interval::Truths([false, true])));
        assert_eq!(Value::over_seeds(&mixed, Value::Truth(true)), Value::Truth(true));
        let lists = [1.0, 3.0].map(|number| Value::List(vec![Value::Number(number), Value::Truth(true)]));
        let Some(Interval::Each(parts)) = Interval::over_seeds(&lists) else { panic!("lists have one") };
        assert_eq!(parts[1], Interval::Truths([true, true]));
    }

    proptest! {
        #[test]
        fn what_is_shown_is_the_number_to_five_digits(number in -1e8_f64..1e8) {
            let shown: f64 = show_number(number).parse().unwrap();
            prop_assert!((shown - number).abs() <= number.abs() * 5.1e-5 + 1e-12, "{} shown as {}", number, shown);
        }
    }
}
