//! Sizes, rates and clocks. Conversions to [`Span`] round up: a bit is on the wire until it is
//! wholly sent.

use crate::time::Span;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// From a plain count.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
    /// From kibibytes (1024 bytes).
    pub const fn kib(kibibytes: u64) -> Bytes {
        Bytes(kibibytes << 10)
    }
    /// The plain count.
    pub const fn count(self) -> u64 {
        self.0
    }
    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}
impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, factor: u64) -> Bytes {
        Bytes(self.0 * factor)
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Bytes {
        sizes.fold(Bytes::ZERO, Add::add)
    }
}

/// A data rate in bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// From bits a second.
    pub const fn bps(bits_per_second: u64) -> Rate {
        Rate(bits_per_second)
    }
    /// From gigabits (10^9 bits) a second.
    pub const fn gbps(gigabits_per_second: u64) -> Rate {
        Rate(gigabits_per_second * 1_000_000_000)
    }
    /// In bits a second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// How long `size` takes at this rate, rounded up to a picosecond. The rate must not be zero.
    pub const fn span_of(self, size: Bytes) -> Span {
        self.span_of_bits(size.bits())
    }
    /// How long `bits` take at this rate, rounded up to a picosecond. The rate must not be zero.
    pub const fn span_of_bits(self, bits: u64) -> Span {
        // Below 2.3 MB: a division of 128 bits takes several times as long.
        match bits.checked_mul(PS_PER_SECOND as u64) {
            Some(picoseconds) => Span::ps(picoseconds.div_ceil(self.0)),
            None => Span::ps(self.wide_span_of_bits(bits)),
        }
    }
    const fn wide_span_of_bits(self, bits: u64) -> u64 {
        (bits as u128 * PS_PER_SECOND).div_ceil(self.0 as u128) as u64
    }
    /// The whole bytes that fit into `span`.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes((span.as_ps() as u128 * self.0 as u128 / (8 * PS_PER_SECOND)) as u64)
    }
}

/// A length of cable in millimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u64);

impl Length {
    /// From millimetres.
    pub const fn mm(millimetres: u64) -> Length {
        Length(millimetres)
    }
    /// From metres.
    pub const fn m(metres: u64) -> Length {
        Length(metres * 1_000)
    }
    /// In millimetres.
    pub const fn as_mm(self) -> u64 {
        self.0
    }
}

/// A hardware clock, kept as its frequency so that `n` cycles never add up `n` rounding errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clock(u64);

impl Clock {
    /// From hertz.
    pub const fn hz(hertz: u64) -> Clock {
        Clock(hertz)
    }
    /// From megahertz.
    pub const fn mhz(megahertz: u64) -> Clock {
        Clock(megahertz * 1_000_000)
    }
    /// In hertz.
    pub const fn as_hz(self) -> u64 {
        self.0
    }
    /// The length of `count` cycles, rounded to the nearest picosecond. The frequency must not be
    /// zero.
    pub const fn cycles(self, count: u64) -> Span {
        let hz = self.0 as u128;
        Span::ps(((count as u128 * PS_PER_SECOND + hz / 2) / hz) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serialization_is_exact_where_it_can_be_and_rounds_up_elsewhere() {
        // 64 payload bits at 25 Gb/s: one 66-bit block at the line rate of 25.78125 Gb/s.
        assert_eq!(Rate::gbps(25).span_of_bits(64), Span::ps(2_560));
        assert_eq!(Rate::gbps(100).span_of(Bytes::new(1500)), Span::ns(120));
        assert_eq!(Rate::bps(3).span_of_bits(1), Span::ps(333_333_333_334));
        assert_eq!(Rate::gbps(100).bytes_in(Span::ns(120)), Bytes::new(1500));
        assert_eq!(Rate::gbps(100).bytes_in(Span::ps(119_999)), Bytes::new(1499));
    }

    proptest! {
        #[test]
        fn the_short_division_gives_what_the_long_one_gives(
            bits in prop_oneof![any::<u64>(), 0u64..40_000_000, 18_446_743u64..18_446_746],
            rate in prop_oneof![1u64..u64::MAX, 1u64..1_000_000_000_000],
        ) {
            let rate = Rate::bps(rate);
            prop_assert_eq!(rate.span_of_bits(bits).as_ps(), rate.wide_span_of_bits(bits));
        }
    }

    #[test]
    fn cycles_do_not_accumulate_rounding() {
        let asic = Clock::mhz(3_000);
        assert_eq!(asic.cycles(1), Span::ps(333));
        assert_eq!(asic.cycles(3), Span::ns(1));
        assert_eq!(Clock::hz(390_625_000).cycles(42), Span::ps(107_520));
    }
}
