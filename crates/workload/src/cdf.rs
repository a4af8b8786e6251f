//! Message-size distributions in the text form that network simulators share (ns-2's
//! `EmpiricalRandomVariable`).

use crate::config::SizeDistribution;
use crate::file::{FileError, Lines, Reason, is_silent};
use crate::problem::SIZE_MAX;
use base::Bytes;
use std::io::BufRead;

/// The most points that a file may have.
const POINTS_MAX: usize = 1 << 20;

/// Reads a cumulative distribution: one line per point, `<size in units> 1 <cumulative
/// probability>`.
///
/// `unit` is the size of 1, such as one byte or one packet of 1460 bytes. The middle column may be
/// absent, in the whole file. Blank lines and lines that begin with `#` are skipped. Sizes and
/// probabilities must not decrease, and the last probability must be 1. If the first is above 0,
/// the first size has that probability. The distribution and errors contain `name`.
///
/// # Errors
/// The first line that breaks these rules, with its reason.
pub fn read_cdf(name: &str, unit: Bytes, reader: impl BufRead) -> Result<SizeDistribution, FileError> {
    let mut lines = Lines::new(name, reader);
    let mut table = Table { unit, columns: None, points: Vec::new() };
    while let Some(line) = lines.next()? {
        let taken = if is_silent(line.text) { Ok(()) } else { table.take(line.text) };
        taken.map_err(|reason| lines.error(reason))?;
    }
    match table.points.last() {
        None => Err(lines.error(Reason::Empty)),
        Some((_, last)) if *last != 1.0 => Err(lines.error(Reason::LastNotOne { got: *last })),
        Some(_) => Ok(SizeDistribution::Cdf { name: name.into(), points: table.points }),
    }
}

/// The points so far.
struct Table {
    unit: Bytes,
    /// Number of columns in the first line: all others must have the same, or they are truncated.
    columns: Option<usize>,
    points: Vec<(f64, f64)>,
}

impl Table {
    fn take(&mut self, line: &str) -> Result<(), Reason> {
        let (size, probability) = self.split(line)?;
        let probability_value = number("probability", probability, "a number in 0..=1", |value| value <= 1.0)?;
        let bytes = self.bytes(size, probability_value)?;
        if let Some((bytes_before, probability_before)) = self.points.last() {
            let before = bytes_before / self.unit.count() as f64;
            not_falling("size", size, bytes >= *bytes_before, before)?;
            not_falling("probability", probability, probability_value >= *probability_before, *probability_before)?;
        }
        if self.points.len() == POINTS_MAX {
            return Err(Reason::Value { field: "point", got: line.into(), allowed: format!("one of {POINTS_MAX}") });
        }
        self.points.push((bytes, probability_value));
        Ok(())
    }

    /// The texts of size and probability.
    fn split<'a>(&mut self, line: &'a str) -> Result<(&'a str, &'a str), Reason> {
        let mut columns = line.split_whitespace();
        let four = [columns.next(), columns.next(), columns.next(), columns.next()];
        let got = line.split_whitespace().count();
        let expected = *self.columns.get_or_insert(got);
        match four {
            [Some(size), Some(probability), None, _] if expected == 2 => Ok((size, probability)),
            [Some(size), Some(middle), Some(probability), None] if expected == 3 => {
                number("the middle column", middle, "1", |value| value == 1.0)?;
                Ok((size, probability))
            }
            _ => Err(columns_error(line, got, expected)),
        }
    }

    /// A size in units as bytes.
    fn bytes(&self, size: &str, probability: f64) -> Result<f64, Reason> {
        let unit = self.unit.count() as f64;
        let allowed = "a number of 0 or more whose size is at most 1TiB";
        let units = number("size", size, allowed, |units| units * unit <= SIZE_MAX.count() as f64)?;
        if units * unit == 0.0 && probability > 0.0 {
            return Err(Reason::Value {
                field: "size",
                got: size.into(),
                allowed: format!("above 0, as it must be at probability {probability}"),
            });
        }
        Ok(units * unit)
    }
}

fn columns_error(line: &str, got: usize, expected: usize) -> Reason {
    let allowed = match expected {
        2 | 3 => format!("{expected}, as the first line has"),
        _ => "2 or 3".into(),
    };
    Reason::Columns { line: line.into(), got, allowed }
}

/// A finite, non-negative number that `is_good`.
fn number(field: &'static str, text: &str, allowed: &str, is_good: impl Fn(f64) -> bool) -> Result<f64, Reason> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 && is_good(value) => Ok(value),
        _ => Err(Reason::Value { field, got: text.into(), allowed: allowed.into() }),
    }
}

fn not_falling(field: &'static str, got: &str, holds: bool, before: f64) -> Result<(), Reason> {
    if holds { Ok(()) } else { Err(Reason::Falls { field, got: got.into(), before: before.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(text: &str, unit: u64) -> Vec<(f64, f64)> {
        match read_cdf("sizes.txt", Bytes::new(unit), text.as_bytes()) {
            Ok(SizeDistribution::Cdf { points, .. }) => points,
            other => panic!("{other:?}"),
        }
    }

    fn error(text: impl AsRef<[u8]>) -> String {
        read_cdf("sizes.txt", Bytes::new(1460), text.as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn two_and_three_columns_comments_and_blank_lines_are_read() {
        assert_eq!(points("# deciles\n4 1 0.50\n\n  88 1 1.00", 1460), [(5840.0, 0.5), (128_480.0, 1.0)]);
        assert_eq!(points("0 0\r\n2.5 0.25\r\n10 1\r\n", 1), [(0.0, 0.0), (2.5, 0.25), (10.0, 1.0)]);
        assert_eq!(points("4 1", 1), [(4.0, 1.0)]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_reason_and_value() {
        let bytes = |text: &str| error(text);
        assert_eq!(bytes("4 1 0.5\n3 1 1\n"), "sizes.txt:2: size 3 comes after 4, it must not fall");
        assert_eq!(bytes("4 1 0.5\n5 1 0.4\n"), "sizes.txt:2: probability 0.4 comes after 0.5, it must not fall");
        assert_eq!(bytes("4 1 NaN\n"), "sizes.txt:1: probability `NaN` is not a number in 0..=1");
        assert_eq!(bytes("4 1 1.1\n"), "sizes.txt:1: probability `1.1` is not a number in 0..=1");
        assert_eq!(bytes("4 1 -0.1\n"), "sizes.txt:1: probability `-0.1` is not a number in 0..=1");
        let size =
            |got: &str| format!("sizes.txt:2: size `{got}` is not a number of 0 or more whose size is at most 1TiB");
        assert_eq!(bytes("#\n-4 1 1\n"), size("-4"));
        assert_eq!(bytes("#\nnan 1 1\n"), size("nan"));
        assert_eq!(bytes("#\n1e300 1 1\n"), size("1e300"));
        assert_eq!(bytes("4 2 1\n"), "sizes.txt:1: the middle column `2` is not 1");
        assert_eq!(bytes("4 1 0.5\n5 1 0.9\n#\n"), "sizes.txt:3: the last probability is 0.9, it must be 1");
        assert_eq!(bytes("0 1 0.5\n5 1 1\n"), "sizes.txt:1: size `0` is not above 0, as it must be at probability 0.5");
    }

    #[test]
    fn a_cut_line_an_empty_file_and_bytes_that_are_no_text_are_refused() {
        assert_eq!(error("4 1 0.5\n88\n"), "sizes.txt:2: `88` has 1 columns, it must have 3, as the first line has");
        assert_eq!(error("4 1 0.5\n88 1"), "sizes.txt:2: `88 1` has 2 columns, it must have 3, as the first line has");
        assert_eq!(error("4 1 0.5 7\n"), "sizes.txt:1: `4 1 0.5 7` has 4 columns, it must have 2 or 3");
        assert_eq!(error("4\n"), "sizes.txt:1: `4` has 1 columns, it must have 2 or 3");
        assert_eq!(error(""), "sizes.txt:1: the file holds no data");
        assert_eq!(error("# nothing\n\n"), "sizes.txt:2: the file holds no data");
        assert_eq!(error(b"4 1 0.5\n\xff\xfe 1 1\n"), "sizes.txt:2: is not UTF-8 text");
        assert_eq!(error("4".repeat(5_000)), "sizes.txt:1: is longer than 4096 bytes");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_cdf("any", Bytes::new(1460), bytes.as_slice());
        }

        #[test]
        fn what_is_read_from_anything_like_a_file_is_a_distribution(
            text in proptest::collection::vec("(0|[0-9]{1,3}(\\.[0-9])?|NaN|-1|1e9|#) (1 )?(0|0\\.[0-9]{1,2}|1|nan|2)", 0..5)
        ) {
            if let Ok(distribution) = read_cdf("any", Bytes::new(1), text.join("\n").as_bytes()) {
                prop_assert_eq!(distribution.problems("size"), []);
            }
        }
    }
}
