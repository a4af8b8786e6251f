//! Virtual time in integer picoseconds. `u64` holds 213 days, and no rounding error ever
//! accumulates.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// A moment, counted in picoseconds from the start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in picoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

macro_rules! constructors {
    ($type:ident) => {
        impl $type {
            /// Zero picoseconds.
            pub const ZERO: Self = Self(0);
            /// The largest value, used as "never".
            pub const MAX: Self = Self(u64::MAX);

            /// From picoseconds.
            pub const fn ps(picoseconds: u64) -> Self {
                Self(picoseconds)
            }
            /// From whole nanoseconds.
            pub const fn ns(nanoseconds: u64) -> Self {
                Self(nanoseconds * 1_000)
            }
            /// From whole microseconds.
            pub const fn us(microseconds: u64) -> Self {
                Self(microseconds * 1_000_000)
            }
            /// From whole milliseconds.
            pub const fn ms(milliseconds: u64) -> Self {
                Self(milliseconds * 1_000_000_000)
            }
            /// From whole seconds.
            pub const fn secs(seconds: u64) -> Self {
                Self(seconds * 1_000_000_000_000)
            }
            /// In picoseconds.
            pub const fn as_ps(self) -> u64 {
                self.0
            }
            /// In nanoseconds, for display and statistics only: decisions stay in integers.
            pub fn as_ns_f64(self) -> f64 {
                self.0 as f64 / 1e3
            }
            /// In seconds, for display and statistics only.
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 / 1e12
            }
        }
    };
}
constructors!(Time);
constructors!(Span);

impl Time {
    /// The span since `earlier`, or zero when `earlier` lies ahead.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// `self + span`, or `None` past the end of representable time.
    pub const fn checked_add(self, span: Span) -> Option<Time> {
        match self.0.checked_add(span.0) {
            Some(sum) => Some(Time(sum)),
            None => None,
        }
    }
}

impl Span {
    /// The nearest span to a non-negative number of picoseconds; values past the range saturate,
    /// NaN is zero.
    pub fn from_ps_f64(picoseconds: f64) -> Span {
        Span(picoseconds.round() as u64)
    }
    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
    /// `self / other` as a number, for statistics. The caller makes sure that `other` is not zero.
    pub fn ratio(self, other: Span) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}
impl Sub for Time {
    type Output = Span;
    /// Panics in debug builds when the right side lies ahead: time runs forward.
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}
impl Div<u64> for Span {
    type Output = Span;
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}
impl Div for Span {
    type Output = u64;
    fn div(self, other: Span) -> u64 {
        self.0 / other.0
    }
}
impl Rem for Span {
    type Output = Span;
    fn rem(self, other: Span) -> Span {
        Span(self.0 % other.0)
    }
}
impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_span_add_and_subtract_exactly() {
        let start = Time::ns(10);
        assert_eq!(start + Span::ps(7), Time::ps(10_007));
        assert_eq!((start + Span::ps(7)) - start, Span::ps(7));
        assert_eq!(Time::us(1) - Span::ns(1), Time::ns(999));
        assert_eq!(Span::ns(7) / Span::ns(2), 3);
        assert_eq!(Span::ns(7) % Span::ns(2), Span::ns(1));
    }

    #[test]
    fn saturation_is_explicit() {
        assert_eq!(Time::ns(1).saturating_since(Time::ns(2)), Span::ZERO);
        assert_eq!(Span::ns(1).saturating_sub(Span::ns(2)), Span::ZERO);
        assert_eq!(Time::MAX.checked_add(Span::ps(1)), None);
        assert_eq!(Span::from_ps_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_ps_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_ps_f64(2.5), Span::ps(3));
    }
}
