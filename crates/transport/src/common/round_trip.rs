//! The smoothed round-trip time and its deviation (RFC 6298, 2).

use base::Span;

/// Round trips seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmoothedRoundTrip {
    /// Zero before the first sample.
    smoothed: Span,
    variation: Span,
}

impl SmoothedRoundTrip {
    /// Adds a round trip: with a weight of an eighth, its deviation with a quarter.
    pub fn sample(&mut self, seen: Span) {
        if self.smoothed == Span::ZERO {
            (self.smoothed, self.variation) = (seen, seen / 2);
            return;
        }
        let error = self.smoothed.saturating_sub(seen) + seen.saturating_sub(self.smoothed);
        self.variation = self.variation - self.variation / 4 + error / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + seen / 8;
    }

    /// Returns the smoothed round trip plus four deviations; zero before the first sample.
    pub fn timeout(&self) -> Span {
        self.smoothed + self.variation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298, 2.2 and 2.3, by hand: 100, then 180 us.
    #[test]
    fn the_timeout_is_that_of_the_rfc() {
        let mut seen = SmoothedRoundTrip::default();
        assert_eq!(seen.timeout(), Span::ZERO);
        seen.sample(Span::us(100));
        assert_eq!(seen.timeout(), Span::us(100 + 4 * 50));
        seen.sample(Span::us(180));
        // Deviation 50 * 3/4 + 80 / 4, smoothed 100 * 7/8 + 180 / 8.
        assert_eq!(seen.timeout(), Span::us(110) + Span::ns(57_500) * 4);
    }

    #[test]
    fn equal_round_trips_leave_no_deviation() {
        let mut seen = SmoothedRoundTrip::default();
        (0..200).for_each(|_| seen.sample(Span::us(90)));
        let timeout = seen.timeout();
        assert!(timeout.saturating_sub(Span::us(90)) < Span::ns(1), "{timeout}");
    }
}
