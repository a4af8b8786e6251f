//! A token bucket whose rate may change at any time.

use base::{Bytes, Rate, Span, Time};

/// Tokens are 2^-32 bytes: a bucket polled every picosecond still fills at its rate.
const TOKEN_SHIFT: u32 = 32;
/// Rates are in 2^-40 bytes per picosecond.
const RATE_SHIFT: u32 = 40;
/// 2^-40 bytes per picosecond in a bit per second, times 2^64: rates change with every request, and
/// a division would dominate the cost.
const UNITS_PER_BPS: u128 = (1 << (RATE_SHIFT + 64)) / 8_000_000_000_000;

/// Fills at a rate up to a burst. Rate changes neither lose nor gain tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Negative after a packet larger than the burst.
    level: i64,
    burst: i64,
    rate: u64,
    updated: Time,
}

impl TokenBucket {
    /// Creates a full bucket for `burst` bytes (at least 1, below 2 GiB) that does not fill yet.
    pub fn new(burst: Bytes) -> TokenBucket {
        assert!((1..1 << 31).contains(&burst.count()), "a burst is at least a byte and less than 2 GiB");
        let burst = (burst.count() << TOKEN_SHIFT) as i64;
        TokenBucket { level: burst, burst, rate: 0, updated: Time::ZERO }
    }

    /// Restores a bucket from the result of [`held`](Self::held).
    pub fn holding(burst: Bytes, held: i64) -> TokenBucket {
        TokenBucket { level: held, ..TokenBucket::new(burst) }
    }

    /// Returns the whole state, except the burst, of a bucket that does not fill; `None` if it
    /// fills.
    pub fn held(&self) -> Option<i64> {
        (self.rate == 0).then_some(self.level)
    }

    /// Fills at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        let rate = ((u128::from(rate.as_bps()) * UNITS_PER_BPS) >> 64) as u64;
        if rate != self.rate {
            self.fill(now);
            self.rate = rate;
        }
    }

    /// Returns whether the bucket fills.
    pub fn fills(&self) -> bool {
        self.rate > 0
    }

    /// Returns the whole bytes in it at `now`; zero while in debt.
    pub fn level(&mut self, now: Time) -> Bytes {
        self.fill(now);
        Bytes::new(self.level.max(0) as u64 >> TOKEN_SHIFT)
    }

    /// Takes `bytes`, if available. More than the burst may be taken from a full bucket, and is
    /// then owed. Returns whether they were taken.
    pub fn take(&mut self, now: Time, bytes: Bytes) -> bool {
        self.fill(now);
        let is_there = self.level >= self.needed(bytes);
        if is_there {
            self.level -= (bytes.count() << TOKEN_SHIFT) as i64;
        }
        is_there
    }

    /// Returns when [`take`](Self::take) of `bytes` will succeed if the rate stays and nothing else
    /// is taken, or `None` if never.
    pub fn ready_at(&mut self, now: Time, bytes: Bytes) -> Option<Time> {
        self.fill(now);
        let missing = self.needed(bytes) - self.level;
        if missing <= 0 {
            return Some(now);
        }
        (self.rate > 0).then(|| now + Span::ps(self.time_for(missing as u64)))
    }

    /// Returns the picoseconds in which this many tokens fill, rounded up. The rate must not be
    /// zero.
    fn time_for(&self, tokens: u64) -> u64 {
        const SHIFT: u32 = RATE_SHIFT - TOKEN_SHIFT;
        // Up to 16 MiB, the usual case, without a wide division.
        match tokens.leading_zeros() >= SHIFT {
            true => (tokens << SHIFT).div_ceil(self.rate),
            false => (u128::from(tokens) << SHIFT).div_ceil(u128::from(self.rate)) as u64,
        }
    }

    fn needed(&self, bytes: Bytes) -> i64 {
        ((bytes.count() << TOKEN_SHIFT) as i64).min(self.burst)
    }

    fn fill(&mut self, now: Time) {
        let elapsed = now.saturating_since(self.updated).as_ps();
        self.updated = now;
        let filled = (u128::from(self.rate) * u128::from(elapsed)) >> (RATE_SHIFT - TOKEN_SHIFT);
        let room = (self.burst - self.level) as u128;
        self.level += filled.min(room) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let mut bucket = TokenBucket::new(Bytes::new(1_000));
        bucket.set_rate(Time::ZERO, Rate::gbps(8));
        assert!(bucket.take(Time::ZERO, Bytes::new(1_000)));
        assert!(!bucket.take(Time::ps(499_000), Bytes::new(500)));
        let ready = bucket.ready_at(Time::ps(499_000), Bytes::new(500)).expect("it fills");
        assert!(ready.saturating_since(Time::ns(500)) <= Span::ps(1), "500 bytes at a byte a nanosecond: {ready:?}");
        assert!(bucket.take(ready, Bytes::new(500)));
    }

    #[test]
    fn what_is_larger_than_the_burst_passes_a_full_bucket_and_is_owed() {
        let mut bucket = TokenBucket::new(Bytes::new(100));
        bucket.set_rate(Time::ZERO, Rate::gbps(8));
        assert!(bucket.take(Time::ZERO, Bytes::new(300)));
        assert_eq!(bucket.level(Time::ns(199)), Bytes::ZERO);
        assert!(!bucket.take(Time::ns(250), Bytes::new(100)));
        assert!(bucket.take(Time::ns(301), Bytes::new(100)));
    }

    #[test]
    fn a_bucket_that_does_not_fill_is_made_again_from_what_it_holds() {
        let mut bucket = TokenBucket::new(Bytes::new(1_000));
        bucket.set_rate(Time::ZERO, Rate::gbps(8));
        assert!(bucket.take(Time::ns(7), Bytes::new(900)));
        assert_eq!(bucket.held(), None, "it fills");
        bucket.set_rate(Time::ps(33_333), Rate::bps(0));
        let mut again = TokenBucket::holding(Bytes::new(1_000), bucket.held().expect("it does not"));
        for bucket in [&mut bucket, &mut again] {
            bucket.set_rate(Time::us(1), Rate::gbps(1));
        }
        let need = Bytes::new(950);
        assert_eq!(bucket.ready_at(Time::us(2), need), again.ready_at(Time::us(2), need));
    }

    #[test]
    fn without_a_rate_an_empty_bucket_is_never_ready() {
        let mut bucket = TokenBucket::new(Bytes::new(10));
        assert!(bucket.take(Time::ZERO, Bytes::new(10)));
        assert_eq!(bucket.ready_at(Time::ZERO, Bytes::new(1)), None);
        assert_eq!(bucket.level(Time::secs(1)), Bytes::ZERO);
    }

    proptest! {
        #[test]
        fn never_more_than_burst_and_rate_allow_and_never_late(
            gbps in 1u64..400, steps in prop::collection::vec((0u64..200_000, 1u64..2_000), 1..100),
        ) {
            let burst = Bytes::new(4_000);
            let mut bucket = TokenBucket::new(burst);
            bucket.set_rate(Time::ZERO, Rate::gbps(gbps));
            let (mut now, mut taken) = (Time::ZERO, 0);
            for (gap_ps, bytes) in steps {
                now += Span::ps(gap_ps);
                let ready = bucket.ready_at(now, Bytes::new(bytes)).expect("it fills");
                prop_assert!(ready == now || !bucket.clone().take(ready - Span::ps(2), Bytes::new(bytes)));
                now = ready;
                prop_assert!(bucket.take(now, Bytes::new(bytes)), "ready and yet refused");
                taken += bytes;
                let allowed = burst.count() + Rate::gbps(gbps).bytes_in(now - Time::ZERO).count() + 1;
                prop_assert!(taken <= allowed, "{} bytes of {}", taken, allowed);
            }
        }
    }
}
