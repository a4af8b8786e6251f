//! Several values become one.

use super::{Missing, Reduce};
use crate::Value;

/// Applies `reduce` to `values`, which are not empty.
pub(super) fn reduce(reduce: Reduce, mut values: Vec<Value>) -> Result<Value, Missing> {
    match reduce {
        Reduce::List => Ok(Value::List(values)),
        Reduce::Only if values.len() == 1 => Ok(values.remove(0)),
        Reduce::Only => Err(Missing::Several { count: values.len(), what: "values".to_owned() }),
        Reduce::All => truths(&values, |truths| !truths.contains(&false)),
        Reduce::Any => truths(&values, |truths| truths.contains(&true)),
        _ => number(reduce, &mut numbers(&values)?).map(Value::Number),
    }
}

fn number(reduce: Reduce, numbers: &mut [f64]) -> Result<f64, Missing> {
    numbers.sort_by(f64::total_cmp);
    let count = numbers.len();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        return Err(Missing::Shape { wanted: "at least one number", got: "an empty list".to_owned() });
    };
    Ok(match reduce {
        Reduce::Max => *last,
        Reduce::Min => *first,
        Reduce::Mean => numbers.iter().sum::<f64>() / count as f64,
        _ => f64::midpoint(numbers[(count - 1) / 2], numbers[count / 2]),
    })
}

fn numbers(values: &[Value]) -> Result<Vec<f64>, Missing> {
    let read = |value: &Value| match value {
        Value::Number(number) => Ok(*number),
        other => Err(Missing::Shape { wanted: "a number", got: other.shape() }),
    };
    values.iter().map(read).collect()
}

fn truths(values: &[Value], judge: impl FnOnce(&[bool]) -> bool) -> Result<Value, Missing> {
    let read = |value: &Value| match value {
        Value::Truth(truth) => Ok(*truth),
        other => Err(Missing::Shape { wanted: "true or false", got: other.shape() }),
    };
    let read: Vec<bool> = values.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Value::Truth(judge(&read)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reduced(how: Reduce, numbers: &[f64]) -> f64 {
        match reduce(how, numbers.iter().copied().map(Value::Number).collect()).unwrap() {
            Value::Number(number) => number,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_two_in_the_middle() {
        assert_eq!(reduced(Reduce::Median, &[9.0, 1.0, 4.0, 2.0]), 3.0);
        assert_eq!(reduced(Reduce::Median, &[9.0, 1.0, 4.0]), 4.0);
        assert_eq!(reduced(Reduce::Mean, &[9.0, 1.0, 5.0]), 5.0);
    }

    #[test]
    fn truths_and_numbers_do_not_mix() {
        let mixed = vec![Value::Truth(true), Value::Number(1.0)];
        assert!(reduce(Reduce::All, mixed.clone()).is_err());
        assert!(reduce(Reduce::Max, mixed).is_err());
        for (truths, all, any) in [([true, false], false, true), ([true; 2], true, true), ([false; 2], false, false)] {
            let reduced = |how| reduce(how, truths.map(Value::Truth).to_vec()).unwrap();
            assert_eq!((reduced(Reduce::All), reduced(Reduce::Any)), (Value::Truth(all), Value::Truth(any)));
        }
    }

    proptest! {
        #[test]
        fn every_average_lies_between_the_extremes(numbers in proptest::collection::vec(-1e6_f64..1e6, 1..20)) {
            let (low, high) = (reduced(Reduce::Min, &numbers), reduced(Reduce::Max, &numbers));
            for how in [Reduce::Mean, Reduce::Median] {
                let middle = reduced(how, &numbers);
                prop_assert!(low - 1e-6 <= middle && middle <= high + 1e-6);
            }
            prop_assert!(numbers.iter().all(|number| low <= *number && *number <= high));
        }
    }
}
