//! Quantities as people write them: a number and its unit, `"10ns"`, `"4KiB"`, `"100Gbps"`,
//! `"3GHz"`.
//!
//! A bare number is an error: nobody should have to guess whether `10` was nanoseconds. Parsing is
//! exact: decimals that do not come out to a whole picosecond, byte, bit a second or hertz are
//! refused too. Each type displays in the largest unit that keeps it whole, so that what is printed
//! parses back to the same value.

use crate::size::{Bytes, Clock, Length, Rate};
use crate::time::{Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// Reason why a written quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// There was a number but no unit behind it.
    #[error("`{text}` has no unit: write it with one of {allowed}")]
    Missing {
        /// The text.
        text: String,
        /// The units that would do.
        allowed: &'static str,
    },
    /// The unit is not one of this quantity's.
    #[error("`{text}` has the unit `{unit}`; allowed are {allowed}")]
    Unknown {
        /// The text.
        text: String,
        /// The unit in it.
        unit: String,
        /// The units that would do.
        allowed: &'static str,
    },
    /// The part before the unit is not a non-negative decimal number.
    #[error("`{text}` does not start with a non-negative decimal number")]
    NotANumber {
        /// The text.
        text: String,
    },
    /// The value is finer than the quantity's resolution, or too large for it.
    #[error("`{text}` is not a whole number of {resolution}, or is too large")]
    OutOfResolution {
        /// The text.
        text: String,
        /// The smallest step of this quantity.
        resolution: &'static str,
    },
}

/// A quantity's units, smallest first, with the factor to its resolution.
struct Table {
    units: &'static [(&'static str, u64)],
    allowed: &'static str,
    resolution: &'static str,
}

const TIME: Table = Table {
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
    allowed: "ps, ns, us, ms, s, min, h",
    resolution: "picoseconds",
};
const SIZE: Table = Table {
    units: &[
        ("B", 1),
        ("KB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    allowed: "B, KB, KiB, MB, MiB, GB, GiB, TB, TiB",
    resolution: "bytes",
};
const RATE: Table = Table {
    units: &[("bps", 1), ("Kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)],
    allowed: "bps, Kbps, Mbps, Gbps, Tbps",
    resolution: "bits a second",
};
const LENGTH: Table = Table {
    units: &[("mm", 1), ("cm", 10), ("m", 1_000), ("km", 1_000_000)],
    allowed: "mm, cm, m, km",
    resolution: "millimetres",
};
const FREQUENCY: Table = Table {
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    allowed: "Hz, kHz, MHz, GHz",
    resolution: "hertz",
};

impl Table {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let written = text.trim();
        let end = written.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(written.len());
        let (number, unit) = (&written[..end], written[end..].trim());
        if number.is_empty() {
            return Err(UnitError::NotANumber { text: text.into() });
        }
        if unit.is_empty() {
            return Err(UnitError::Missing { text: text.into(), allowed: self.allowed });
        }
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::Unknown { text: text.into(), unit: unit.into(), allowed: self.allowed });
        };
        self.scale(text, number, *factor)
    }

    /// Exact decimal arithmetic: `1.5` times `1000` is 1500, `0.0005` times `1000` is refused.
    fn scale(&self, text: &str, number: &str, factor: u64) -> Result<u64, UnitError> {
        let not_a_number = || UnitError::NotANumber { text: text.into() };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
        let places = fraction.chars().filter(|c| *c != '_').count() as u32;
        if digits.is_empty() || digits.contains('.') {
            return Err(not_a_number());
        }
        let out_of_resolution = || UnitError::OutOfResolution { text: text.into(), resolution: self.resolution };
        let mantissa: u128 = digits.parse().map_err(|_| out_of_resolution())?;
        let divisor = 10u128.checked_pow(places).ok_or_else(out_of_resolution)?;
        let scaled = mantissa.checked_mul(u128::from(factor)).ok_or_else(out_of_resolution)?;
        if !scaled.is_multiple_of(divisor) {
            return Err(out_of_resolution());
        }
        u64::try_from(scaled / divisor).map_err(|_| out_of_resolution())
    }

    fn format(&self, value: u64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = self
            .units
            .iter()
            .rev()
            .find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor))
            .unwrap_or(&self.units[0]);
        write!(out, "{}{unit}", value / factor)
    }
}

macro_rules! quantity {
    ($type:ty, $table:ident, $get:ident, $make:expr) => {
        impl $type {
            /// The units that this quantity may be written with, for error messages and schemas.
            pub const UNITS: &'static str = $table.allowed;
        }
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $table.parse(text).map($make)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                $table.format(self.$get(), out)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Written::<$type>(std::marker::PhantomData, $table.allowed))
            }
        }
    };
}

quantity!(Span, TIME, as_ps, Span::ps);
quantity!(Time, TIME, as_ps, Time::ps);
quantity!(Bytes, SIZE, count, Bytes::new);
quantity!(Rate, RATE, as_bps, Rate::bps);
quantity!(Length, LENGTH, as_mm, Length::mm);
quantity!(Clock, FREQUENCY, as_hz, Clock::hz);

/// Takes a string and turns a bare number into an error that says what to write.
struct Written<T>(std::marker::PhantomData<T>, &'static str);

impl<T: FromStr<Err = UnitError>> Written<T> {
    fn refuse<E: de::Error>(&self, number: impl fmt::Display) -> E {
        E::custom(UnitError::Missing { text: number.to_string(), allowed: self.1 })
    }
}

impl<T: FromStr<Err = UnitError>> de::Visitor<'_> for Written<T> {
    type Value = T;
    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a string with a number and a unit ({})", self.1)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Err(self.refuse(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Err(self.refuse(number))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Err(self.refuse(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("10ns".parse(), Ok(Span::ns(10)));
        assert_eq!("2.56 ns".parse(), Ok(Span::ps(2_560)));
        assert_eq!("1_000us".parse(), Ok(Span::ms(1)));
        assert_eq!("4KiB".parse(), Ok(Bytes::new(4096)));
        assert_eq!("100Gbps".parse(), Ok(Rate::gbps(100)));
        assert_eq!("390.625MHz".parse(), Ok(Clock::hz(390_625_000)));
    }

    #[test]
    fn a_bare_number_a_wrong_unit_and_a_sub_picosecond_are_refused_by_name() {
        let error = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(error("10"), "`10` has no unit: write it with one of ps, ns, us, ms, s, min, h");
        assert_eq!(error("10Gbps"), "`10Gbps` has the unit `Gbps`; allowed are ps, ns, us, ms, s, min, h");
        assert_eq!(error("fast"), "`fast` does not start with a non-negative decimal number");
        assert_eq!(error("-1ns"), "`-1ns` does not start with a non-negative decimal number");
        assert_eq!(error("1.2.3ns"), "`1.2.3ns` does not start with a non-negative decimal number");
        assert_eq!(error("0.5ps"), "`0.5ps` is not a whole number of picoseconds, or is too large");
        assert_eq!(error("99999999999h"), "`99999999999h` is not a whole number of picoseconds, or is too large");
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(value in any::<u64>()) {
            prop_assert_eq!(Span::ps(value).to_string().parse(), Ok(Span::ps(value)));
            prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
            prop_assert_eq!(Length::mm(value).to_string().parse(), Ok(Length::mm(value)));
            prop_assert_eq!(Rate::bps(value).to_string().parse(), Ok(Rate::bps(value)));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Bytes>();
        }
    }
}
