//! The write cost (Gimbal, 4.3): bytes of reads that the drive could serve per written byte.

use super::{GimbalConfig, IoKind};
use base::{Span, Time};

/// Denominator of the cost.
const ONE: u32 = 256;

/// The cost of a written byte in read bytes: between 1 and its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCost {
    /// The cost in 1/256.
    cost: u32,
    max: u32,
    step: u32,
    slow_above: Span,
    overloaded_above: Span,
    period: Span,
    is_as_released: bool,
    /// Start of the present period.
    since: Time,
    /// Sum of the latencies of the writes that completed in the present period, and their number.
    latencies: Span,
    writes: u64,
    has_reads: bool,
}

impl WriteCost {
    /// Creates a write cost at its maximum: a drive is assumed to be slow at writes until its
    /// latencies show otherwise.
    pub fn new(config: &GimbalConfig) -> Self {
        let max = (config.cost_max_halves * ONE / 2).max(ONE);
        WriteCost {
            cost: max,
            max,
            step: config.cost_step_halves * ONE / 2,
            slow_above: config.latency_min,
            overloaded_above: config.latency_max,
            period: config.cost_period,
            is_as_released: config.cost_is_as_released,
            since: Time::ZERO,
            latencies: Span::ZERO,
            writes: 0,
            has_reads: false,
        }
    }

    /// Records an I/O's `latency`. At the end of a period the mean latency of its writes decides.
    /// Above the lower bound of latencies, the cost moves halfway to its maximum; otherwise it
    /// falls by a step. (The released code computes another mean than it documents; this is the
    /// documented one.) A period without writes changes nothing.
    pub(crate) fn record(&mut self, now: Time, kind: IoKind, latency: Span) {
        if kind == IoKind::Write {
            self.latencies += latency;
            self.writes += 1;
        }
        self.has_reads |= kind == IoKind::Read;
        let passed = now.saturating_since(self.since);
        if passed >= self.period {
            self.adapt(passed.as_ps() / self.period.as_ps() - 1);
            (self.since, self.latencies, self.writes, self.has_reads) = (now, Span::ZERO, 0, false);
        }
    }

    /// Adapts the cost after a period, and `idle` more in which nothing completed.
    fn adapt(&mut self, idle: u64) {
        let mean = (self.writes > 0).then(|| self.latencies / self.writes);
        match mean {
            Some(mean) if self.rises(mean) => self.cost = (self.cost + self.max) / 2,
            None if !self.is_as_released => {}
            _ => self.fall(1),
        }
        if self.is_as_released {
            self.fall(idle);
        }
    }

    /// Returns whether writes with latency `mean` raise the cost. In the released code
    /// (`spdk_nvmf_tmgr_poller`) they do only if the period has reads or the drive is overloaded.
    /// There, the cost falls whenever it does not rise, without writes too.
    fn rises(&self, mean: Span) -> bool {
        let counts = !self.is_as_released || self.has_reads || mean > self.overloaded_above;
        counts && mean > self.slow_above
    }

    fn fall(&mut self, periods: u64) {
        let less = u64::from(self.step).saturating_mul(periods).min(u64::from(self.cost)) as u32;
        self.cost = (self.cost - less).max(ONE);
    }

    /// Returns the weight of `bytes` of a kind in bytes of reads.
    pub fn weight(&self, kind: IoKind, bytes: u32) -> u64 {
        match kind {
            IoKind::Read => u64::from(bytes),
            IoKind::Write => u64::from(bytes) * u64::from(self.cost) / u64::from(ONE),
        }
    }

    /// Returns the reads' share of `tokens`: cost / (cost + 1).
    pub(crate) fn share_of_reads(&self, tokens: u64) -> u64 {
        tokens * u64::from(self.cost) / u64::from(self.cost + ONE)
    }

    /// Returns the least number of tokens whose read share is at least `wanted`: share_of_reads(t)
    /// >= w exactly where t * cost >= w * (cost + 1).
    pub(crate) fn total_for_reads(&self, wanted: u64) -> u64 {
        (wanted * u64::from(self.cost + ONE)).div_ceil(u64::from(self.cost))
    }

    /// Returns the least number of tokens whose write share is at least `wanted`. The share is t /
    /// (cost + 1) rounded up, so t / (cost + 1) > w - 1.
    pub(crate) fn total_for_writes(&self, wanted: u64) -> u64 {
        let Some(less) = wanted.checked_sub(1) else { return 0 };
        less * u64::from(self.cost + ONE) / u64::from(ONE) + 1
    }

    /// Returns the cost as a number.
    pub fn as_f64(&self) -> f64 {
        f64::from(self.cost) / f64::from(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_tokens_for_a_share_give_it_and_one_less_does_not(cost in ONE..=32 * ONE, wanted in 1u64..1 << 40) {
            let (slow_above, period, zero) = (Span::us(250), Span::ms(100), Span::ZERO);
            let cost = WriteCost {
                cost,
                max: cost,
                step: 0,
                slow_above,
                overloaded_above: slow_above,
                period,
                is_as_released: false,
                since: Time::ZERO,
                latencies: zero,
                writes: 0,
                has_reads: false,
            };
            let of_writes = |tokens: u64| tokens - cost.share_of_reads(tokens);
            let (reads, writes) = (cost.total_for_reads(wanted), cost.total_for_writes(wanted));
            prop_assert!(cost.share_of_reads(reads) >= wanted && cost.share_of_reads(reads - 1) < wanted);
            prop_assert!(of_writes(writes) >= wanted && of_writes(writes - 1) < wanted);
            prop_assert_eq!((cost.total_for_reads(0), cost.total_for_writes(0)), (0, 0));
        }
    }
}
