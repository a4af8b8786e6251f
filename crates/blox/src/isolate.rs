//! A token bucket: the software half of isolation (RackBlox, 3.3 and 4.5.2), which also enforces a
//! controller's rates. Exact: no fraction of a token is ever lost or created, at any polling times.

use base::{Span, Time};

/// Tokens are kept in units of a picosecond of one token a second, so that every rate adds whole
/// units every picosecond.
const UNITS_PER_TOKEN: i128 = 1_000_000_000_000;

/// Fills with `rate_per_second` tokens per second up to `burst`, starts full. The caller defines a
/// token: a request, a byte, a cost unit.
///
/// A cost above `burst` is allowed once the bucket is full, and leaves a debt that the rate pays
/// off first: a single large request is slow, never stuck. The long-term rate still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate_per_second: u64,
    burst: u64,
    /// What is there at `since`, in [`UNITS_PER_TOKEN`]ths of a token; negative is a debt.
    level: i128,
    since: Time,
}

impl TokenBucket {
    /// A full bucket at the start of the run. A rate of 0 never refills.
    pub fn new(rate_per_second: u64, burst: u64) -> TokenBucket {
        TokenBucket { rate_per_second, burst, level: units(burst), since: Time::ZERO }
    }

    /// The rate in force, in tokens a second.
    pub fn rate_per_second(&self) -> u64 {
        self.rate_per_second
    }

    /// Another rate from `now` on. What has been saved or is owed stays.
    pub fn set_rate(&mut self, now: Time, rate_per_second: u64) {
        self.settle(now);
        self.rate_per_second = rate_per_second;
    }

    /// The first moment, not before `now`, at which `cost` tokens may be taken if nobody takes
    /// others before; [`Time::MAX`] when that is never or past the end of time.
    pub fn next_allowed(&self, now: Time, cost: u64) -> Time {
        let missing = self.needed(cost) - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        if self.rate_per_second == 0 {
            return Time::MAX;
        }
        let wait = missing.unsigned_abs().div_ceil(u128::from(self.rate_per_second));
        u64::try_from(wait).ok().and_then(|wait| now.checked_add(Span::ps(wait))).unwrap_or(Time::MAX)
    }

    /// Takes `cost` tokens if that is allowed now, and says whether it was.
    pub fn try_take(&mut self, now: Time, cost: u64) -> bool {
        self.settle(now);
        let allowed = self.level >= self.needed(cost);
        if allowed {
            self.level -= units(cost);
        }
        allowed
    }

    /// Takes `cost` tokens in any case; the bucket may be in debt afterwards.
    pub fn charge(&mut self, now: Time, cost: u64) {
        self.settle(now);
        self.level -= units(cost);
    }

    /// Whole tokens that are there at `now`; none while in debt.
    pub fn tokens(&self, now: Time) -> u64 {
        (self.level_at(now).max(0) / UNITS_PER_TOKEN) as u64
    }

    fn needed(&self, cost: u64) -> i128 {
        units(cost.min(self.burst))
    }

    fn settle(&mut self, now: Time) {
        self.level = self.level_at(now);
        self.since = self.since.max(now);
    }

    fn level_at(&self, now: Time) -> i128 {
        // The product of two 64-bit numbers may need one bit more than an i128 has; such a bucket
        // is full anyway.
        let gained = u128::from(now.saturating_since(self.since).as_ps()) * u128::from(self.rate_per_second);
        let gained = i128::try_from(gained).unwrap_or(i128::MAX);
        self.level.saturating_add(gained).min(units(self.burst))
    }
}

fn units(tokens: u64) -> i128 {
    i128::from(tokens) * UNITS_PER_TOKEN
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_burst_passes_at_once_and_the_rate_rules_afterwards() {
        let mut bucket = TokenBucket::new(1_000, 10);
        assert!((0..10).all(|_| bucket.try_take(Time::ZERO, 1)));
        assert!(!bucket.try_take(Time::ZERO, 1));
        assert_eq!(bucket.next_allowed(Time::ZERO, 1), Time::ms(1));
        assert!(!bucket.try_take(Time::ps(Time::ms(1).as_ps() - 1), 1));
        assert!(bucket.try_take(Time::ms(1), 1));
    }

    #[test]
    fn a_third_of_a_token_is_neither_lost_nor_made_by_asking() {
        let mut asked_often = TokenBucket::new(3, 1_000);
        assert!(asked_often.try_take(Time::ZERO, 1_000));
        let mut asked_once = asked_often.clone();
        for millisecond in 1..=7_000 {
            assert!(!asked_often.try_take(Time::ms(millisecond), 100));
        }
        asked_once.settle(Time::secs(7));
        assert_eq!(asked_often, asked_once);
        assert_eq!(asked_once.tokens(Time::secs(7)), 21);
    }

    #[test]
    fn a_cost_above_the_burst_waits_for_a_full_bucket_and_leaves_a_debt() {
        let mut bucket = TokenBucket::new(100, 10);
        assert!(bucket.try_take(Time::ZERO, 5));
        assert_eq!(bucket.next_allowed(Time::ZERO, 40), Time::ms(50));
        assert!(bucket.try_take(Time::ms(50), 40));
        assert_eq!(bucket.next_allowed(Time::ms(50), 1), Time::ms(50 + 310));
    }

    #[test]
    fn a_new_rate_holds_from_its_moment_on() {
        let mut bucket = TokenBucket::new(10, 100);
        assert!(bucket.try_take(Time::ZERO, 100));
        bucket.set_rate(Time::secs(1), 30);
        assert_eq!((bucket.tokens(Time::secs(1)), bucket.tokens(Time::secs(2))), (10, 40));
        bucket.set_rate(Time::secs(2), 0);
        assert_eq!(bucket.next_allowed(Time::secs(2), 40), Time::secs(2));
        assert_eq!(bucket.next_allowed(Time::secs(2), 41), Time::MAX);
    }

    proptest! {
        #[test]
        fn what_passes_in_any_interval_is_at_most_burst_plus_rate(
            rate in 1_u64..10_000, burst in 1_u64..50, requests in prop::collection::vec((0_u64..2_000, 1_u64..60), 1..200),
        ) {
            let mut bucket = TokenBucket::new(rate, burst);
            let (mut now, mut passed, mut largest) = (Time::ZERO, 0, 0);
            for (gap_us, cost) in requests {
                now += Span::us(gap_us);
                if bucket.try_take(now, cost) {
                    passed += cost;
                    largest = largest.max(cost);
                }
                let earned = u128::from(now.as_ps()) * u128::from(rate) / 1_000_000_000_000;
                prop_assert!(u128::from(passed) <= u128::from(burst.max(largest)) + earned);
            }
        }

        #[test]
        fn the_moment_named_is_the_first_that_is_allowed(
            rate in 1_u64..1_000_000, burst in 1_u64..50, spent in 0_u64..80, cost in 1_u64..80, at_us in 0_u64..1_000,
        ) {
            let mut bucket = TokenBucket::new(rate, burst);
            bucket.charge(Time::ZERO, spent);
            let now = Time::us(at_us);
            let moment = bucket.next_allowed(now, cost);
            prop_assert!(bucket.clone().try_take(moment, cost));
            if moment > now {
                prop_assert!(!bucket.try_take(moment - Span::ps(1), cost));
            }
        }
    }
}
