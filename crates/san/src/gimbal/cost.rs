//! What a write costs (Gimbal, 4.3): bytes of reads that the drive could serve for one byte
//! written.

use super::{GimbalConfig, IoKind};
use base::{Span, Time};

/// Fractions of the cost are 1/256.
const ONE: u32 = 256;

/// The worth of a written byte in read bytes: between 1 and its greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteCost {
    /// In 1/256.
    cost: u32,
    max: u32,
    step: u32,
    slow_above: Span,
    overloaded_above: Span,
    period: Span,
    is_as_released: bool,
    /// When the present period began.
    since: Time,
    /// Latencies of the writes that completed in the present period, and how many.
    latencies: Span,
    writes: u64,
    has_reads: bool,
}

impl WriteCost {
    /// The greatest cost: a drive is taken to be slow at writes until it shows otherwise.
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

    /// An I/O took `latency`. At the end of a period the mean latency of its writes decides: over
    /// the lower bound of latencies the cost goes halfway to its greatest, else it falls a step.
    /// (The released code takes another mean than it says; this is what it says.) A period without
    /// writes says nothing.
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

    /// After a period, and `idle` more in which nothing completed.
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

    /// Whether writes that take `mean` make the cost rise. In the released code
    /// (`spdk_nvmf_tmgr_poller`) they do with reads beside them only, unless the drive is
    /// overloaded; and the cost falls whenever it does not rise, without writes too.
    fn rises(&self, mean: Span) -> bool {
        let counts = !self.is_as_released || self.has_reads || mean > self.overloaded_above;
        counts && mean > self.slow_above
    }

    fn fall(&mut self, periods: u64) {
        let less = u64::from(self.step).saturating_mul(periods).min(u64::from(self.cost)) as u32;
        self.cost = (self.cost - less).max(ONE);
    }

    /// What `bytes` of a kind weigh in bytes of reads.
    pub fn weight(&self, kind: IoKind, bytes: u32) -> u64 {
        match kind {
            IoKind::Read => u64::from(bytes),
            IoKind::Write => u64::from(bytes) * u64::from(self.cost) / u64::from(ONE),
        }
    }

    /// Of `tokens` those of reads: cost / (cost + 1) of them.
    pub(crate) fn share_of_reads(&self, tokens: u64) -> u64 {
        tokens * u64::from(self.cost) / u64::from(self.cost + ONE)
    }

    /// The least tokens of which `wanted` or more are those of reads: share_of_reads(t) >= w just
    /// where t * cost >= w * (cost + 1).
    pub(crate) fn total_for_reads(&self, wanted: u64) -> u64 {
        (wanted * u64::from(self.cost + ONE)).div_ceil(u64::from(self.cost))
    }

    /// The least tokens of which `wanted` or more are those of writes: these are t / (cost + 1)
    /// rounded up, so that t / (cost + 1) > w - 1.
    pub(crate) fn total_for_writes(&self, wanted: u64) -> u64 {
        let Some(less) = wanted.checked_sub(1) else { return 0 };
        less * u64::from(self.cost + ONE) / u64::from(ONE) + 1
    }

    /// The cost as a number.
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
