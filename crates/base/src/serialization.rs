//! Serialization times at one rate, cached for repeated sizes.

use crate::{Bytes, Rate, Span};

/// How long sizes take at a rate, without a wide division for the size that came last or where a
/// byte takes whole picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Serialization {
    rate: Rate,
    /// Picoseconds a byte; 0 where they are not whole.
    byte_ps: u64,
    last: (Bytes, Span),
}

impl Serialization {
    /// At `rate`, which must not be zero.
    pub fn new(rate: Rate) -> Serialization {
        let (bits_ps, bps) = (8_000_000_000_000, rate.as_bps());
        let byte_ps = if bps <= bits_ps && bits_ps % bps == 0 { bits_ps / bps } else { 0 };
        Serialization { rate, byte_ps, last: (Bytes::ZERO, Span::ZERO) }
    }
    /// Of `size`: the same as [`Rate::span_of`].
    #[inline]
    pub fn of(&mut self, size: Bytes) -> Span {
        if self.byte_ps != 0 {
            return Span::ps(self.byte_ps * size.count());
        }
        if self.last.0 != size {
            self.last = (size, self.rate.span_of(size));
        }
        self.last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_what_its_rate_says_whether_bytes_take_whole_picoseconds_or_not() {
        for bps in [1, 3, 7_999, 25_000_000_000, 100_000_000_000, 240_000_000_000, 400_000_000_000, 8_000_000_000_001] {
            let rate = Rate::bps(bps);
            let mut serialization = Serialization::new(rate);
            for bytes in [0, 1, 64, 64, 4_096, 9_018, 64].map(Bytes::new) {
                assert_eq!(serialization.of(bytes), rate.span_of(bytes), "{bytes:?} at {bps} bit/s");
            }
        }
    }
}
