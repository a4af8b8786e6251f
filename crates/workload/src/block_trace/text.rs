//! Fields of a line: columns, exact times, whole numbers, names.

use crate::file::Reason;
use crate::problem::SIZE_MAX;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// The most devices that a trace may name.
const NAMES_MAX: usize = 1 << 16;

/// The first `N` columns; further ones are of no interest.
pub(super) fn columns<'a, const N: usize>(
    line: &str,
    mut split: impl Iterator<Item = &'a str>,
    allowed: &str,
) -> Result<[&'a str; N], Reason> {
    let mut fields = [""; N];
    for (got, field) in fields.iter_mut().enumerate() {
        let missing = || Reason::Columns { line: line.into(), got, allowed: allowed.into() };
        *field = split.next().ok_or_else(missing)?.trim();
    }
    Ok(fields)
}

/// A whole number within bounds.
pub(super) fn whole<N: FromStr + PartialOrd + Display>(
    field: &'static str,
    text: &str,
    min: N,
    max: N,
) -> Result<N, Reason> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<N>() {
        Ok(number) if is_plain && (&min..=&max).contains(&&number) => Ok(number),
        _ => Err(Reason::Value { field, got: text.into(), allowed: format!("a whole number in {min}..={max}") }),
    }
}

/// A length in bytes that a request may have.
pub(super) fn length(field: &'static str, text: &str) -> Result<u64, Reason> {
    whole(field, text, 1, SIZE_MAX.count())
}

/// A byte address at which `bytes` can begin.
pub(super) fn address(field: &'static str, text: &str, bytes: u64) -> Result<u64, Reason> {
    whole(field, text, 0, u64::MAX - bytes)
}

/// A time as a decimal number of ticks, exactly in picoseconds.
pub(super) fn decimal_ps(field: &'static str, text: &str, tick_ps: u64) -> Result<u128, Reason> {
    let bad = |allowed: &str| Reason::Value { field, got: text.into(), allowed: allowed.into() };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) {
        return Err(bad("a non-negative decimal number"));
    }
    let ticks: u64 = whole.parse().map_err(|_| bad("a time that can be counted"))?;
    let rest = fraction_ps(fraction, tick_ps).ok_or_else(|| bad("a whole number of picoseconds"))?;
    Ok(u128::from(ticks) * u128::from(tick_ps) + u128::from(rest))
}

/// The digits behind the point; `None` when they are finer than a picosecond.
fn fraction_ps(digits: &str, tick_ps: u64) -> Option<u64> {
    let mut unit = tick_ps;
    let mut sum = 0;
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        if !unit.is_multiple_of(10) && digit != 0 {
            return None;
        }
        unit /= 10;
        sum += digit * unit;
    }
    Some(sum)
}

/// Picoseconds in ticks, for messages.
pub(super) fn in_ticks(ps: u128, tick_ps: u64) -> String {
    let tick = u128::from(tick_ps);
    let places = tick_ps.ilog10() as usize;
    let text = format!("{}.{:0places$}", ps / tick, ps % tick);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Numbers for devices that have names, in the order in which they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of `name`, which it keeps from then on.
    pub(super) fn number(&mut self, name: &str) -> Result<u32, Reason> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if self.names.len() == NAMES_MAX {
            let allowed = format!("one of the {NAMES_MAX} devices that are the most that a trace may name");
            return Err(Reason::Value { field: "device", got: name.into(), allowed });
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        Ok(number)
    }

    /// The number of `name` if it has one.
    pub(super) fn known(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The name of a number.
    pub(super) fn name(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000_000;

    #[test]
    fn decimal_times_are_exact_to_the_picosecond() {
        let seconds = |text| decimal_ps("time", text, SECOND).map_err(|reason| reason.to_string());
        assert_eq!(seconds("0.551706"), Ok(551_706_000_000));
        assert_eq!(seconds("1455592199.531300068"), Ok(1_455_592_199_531_300_068_000));
        assert_eq!(seconds("7"), Ok(7 * u128::from(SECOND)));
        assert_eq!(seconds("0.0000000000010"), Ok(1));
        let finer = "time `0.0000000000001` is not a whole number of picoseconds";
        assert_eq!(seconds("0.0000000000001"), Err(finer.into()));
        for bad in ["-1", "1e-3", "", ".5", "nan", "1.2.3", "+1"] {
            assert_eq!(seconds(bad), Err(format!("time `{bad}` is not a non-negative decimal number")));
        }
    }

    #[test]
    fn a_tick_that_is_no_power_of_ten_of_a_second_is_exact_too() {
        assert_eq!(decimal_ps("time", "128166372003061629", 100_000).unwrap(), 12_816_637_200_306_162_900_000);
        assert_eq!(decimal_ps("time", "3.25", 1_000_000_000).unwrap(), 3_250_000_000);
    }

    #[test]
    fn times_are_shown_as_the_file_writes_them() {
        assert_eq!(in_ticks(551_706_000_000, SECOND), "0.551706");
        assert_eq!(in_ticks(938_513_000_000, 1_000), "938513000");
        assert_eq!(in_ticks(0, SECOND), "0");
    }
}
