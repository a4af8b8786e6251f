//! Recorded delays of a network, packet by packet.

use crate::file::{FileError, Lines, Reason, is_silent};
use base::Span;
use std::io::BufRead;

/// A delay is no longer.
const DELAY_MAX: Span = Span::secs(1);
/// The most delays that a file may have.
const DELAYS_MAX: usize = 1 << 24;

/// Reads one-way delays: one per line, with its unit (`142us`), or a number that counts in `unit`.
///
/// Blank lines and lines that begin with `#` are skipped. RackBlox's published `net_trace.dat` is
/// such a file with a unit of 1 us. Errors contain `name`.
///
/// # Errors
/// The first line that is no delay of at most a second, with its reason; a file without a delay.
pub fn read_delays(name: &str, unit: Option<Span>, reader: impl BufRead) -> Result<Vec<Span>, FileError> {
    let mut lines = Lines::new(name, reader);
    let mut delays = Vec::new();
    while let Some(line) = lines.next()? {
        if is_silent(line.text) {
            continue;
        }
        let read = if delays.len() == DELAYS_MAX { Err(too_many(line.text)) } else { delay(line.text.trim(), unit) };
        delays.push(read.map_err(|reason| lines.error(reason))?);
    }
    if delays.is_empty() { Err(lines.error(Reason::Empty)) } else { Ok(delays) }
}

fn delay(text: &str, unit: Option<Span>) -> Result<Span, Reason> {
    let delay = match (unit, text.parse::<f64>()) {
        (Some(unit), Ok(number)) if number.is_finite() && number >= 0.0 => {
            Span::from_ps_f64(number * unit.as_ps() as f64)
        }
        (Some(_), Ok(_)) => return Err(out_of_range(text)),
        _ => text.parse().map_err(|error| Reason::Unit { field: "delay", error })?,
    };
    if delay > DELAY_MAX { Err(out_of_range(text)) } else { Ok(delay) }
}

fn out_of_range(text: &str) -> Reason {
    Reason::Value { field: "delay", got: text.into(), allowed: format!("from 0 to {DELAY_MAX}") }
}

fn too_many(text: &str) -> Reason {
    Reason::Value { field: "delay", got: text.into(), allowed: format!("one of {DELAYS_MAX}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, unit: Option<Span>) -> Result<Vec<Span>, String> {
        read_delays("net.txt", unit, text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn delays_have_a_unit_of_their_own_or_the_one_that_is_given() {
        let (us, none) = (Some(Span::us(1)), None);
        assert_eq!(read("# one way\n142us\n\n1.5ms\n", none), Ok(vec![Span::us(142), Span::us(1_500)]));
        assert_eq!(read("142\n0.5\n1ms\n", us), Ok(vec![Span::us(142), Span::ns(500), Span::ms(1)]));
    }

    #[test]
    fn a_line_that_is_no_delay_is_named() {
        let us = Some(Span::us(1));
        assert!(read("142us\n143\n", None).unwrap_err().starts_with("net.txt:2: delay: `143` has no unit"));
        assert_eq!(read("1\n-1\n", us).unwrap_err(), "net.txt:2: delay `-1` is not from 0 to 1s");
        assert_eq!(read("1000001\n", us).unwrap_err(), "net.txt:1: delay `1000001` is not from 0 to 1s");
        assert_eq!(read("NaN\n", us).unwrap_err(), "net.txt:1: delay `NaN` is not from 0 to 1s");
        assert!(read("1us,2us\n", None).is_err());
        assert!(read("# nothing\n", us).unwrap_err().contains("the file holds no data"));
        assert_eq!(read("1000000\n", us), Ok(vec![Span::secs(1)]));
    }
}
