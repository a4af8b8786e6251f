//! What the first fault did to the throughput, and for how long (paper, Figure 16).

use base::{Bytes, Span, Time};
use record::metric::{self, Meter};

/// How finely throughput is kept. Ours: a fifth of the shortest recovery in the paper.
const BIN: Span = Span::us(100);
/// Bins on each side of the fault that make up its drop: what is before is longer, as nothing
/// happens there.
const BINS_BEFORE: usize = 20;
const BINS_AFTER: usize = 10;

/// Bytes finished over time, and what the fault concerned.
#[derive(Clone, Debug, Default)]
pub(super) struct Aftermath {
    fault_at: Option<Time>,
    /// Bytes finished in each bin since time zero; empty without faults, at most a bin each [`BIN`]
    /// of simulated time.
    finished: Vec<u64>,
    affected: u64,
    recovered_at: Time,
}

impl Aftermath {
    /// A run whose first fault comes at `fault_at`, if there is any.
    pub fn new(fault_at: Option<Time>) -> Aftermath {
        Aftermath { fault_at, recovered_at: fault_at.unwrap_or(Time::ZERO), ..Aftermath::default() }
    }

    /// An I/O has ended at `now`; `was_hit` when it was sent again or failed, asked for at
    /// `asked_at`. What is asked for more than `noticed_after` behind the fault cannot have been
    /// hit by it.
    pub fn ended(&mut self, now: Time, bytes: Bytes, asked_at: Time, was_hit: bool, noticed_after: Span) {
        let Some(fault_at) = self.fault_at else { return };
        let bin = (now.as_ps() / BIN.as_ps()) as usize;
        if self.finished.len() <= bin {
            self.finished.resize(bin + 1, 0);
        }
        self.finished[bin] += bytes.count();
        if was_hit && now >= fault_at && asked_at <= fault_at + noticed_after {
            self.affected += 1;
            self.recovered_at = self.recovered_at.max(now);
        }
    }

    /// What it was like. Without whole bins on both sides nothing is said of the drop.
    pub fn facts(&self, meter: &mut Meter) {
        let Some(fault_at) = self.fault_at else { return };
        meter.count(metric::fault_affected, self.affected as f64);
        let recovery = self.recovered_at.saturating_since(fault_at);
        meter.put(metric::fault_recovery_us, recovery.as_ns_f64() / 1e3);
        let at = (fault_at.as_ps() / BIN.as_ps()) as usize;
        if at < BINS_BEFORE || self.finished.len() < at + BINS_AFTER {
            return;
        }
        let before = mean(&self.finished[at - BINS_BEFORE..at]);
        let after = &self.finished[at..at + BINS_AFTER];
        let least = after.iter().copied().min().unwrap_or(0) as f64;
        if before > 0.0 {
            meter.put(metric::fault_drop_fraction, 1.0 - mean(after) / before);
            meter.put(metric::fault_deepest_drop_fraction, 1.0 - least / before);
        }
    }
}

fn mean(bins: &[u64]) -> f64 {
    bins.iter().sum::<u64>() as f64 / bins.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const FAULT: Time = Time::ps(5_000_000_000);
    const NOTICED: Span = Span::us(100);

    fn at_us(us: u64) -> Time {
        Time::ps(us * 1_000_000)
    }

    fn facts_of(ends: &[(u64, u64, bool)]) -> BTreeMap<String, f64> {
        let mut aftermath = Aftermath::new(Some(FAULT));
        for (asked, ended, was_hit) in ends {
            aftermath.ended(at_us(*ended), Bytes::kib(4), at_us(*asked), *was_hit, NOTICED);
        }
        let mut meter = Meter::new();
        aftermath.facts(&mut meter);
        meter.finish().0
    }

    #[test]
    fn recovery_lasts_until_the_last_io_that_the_fault_hit() {
        let facts =
            facts_of(&[(4_900, 5_600, true), (5_050, 5_800, true), (5_200, 9_000, true), (5_000, 8_000, false)]);
        assert_eq!((facts["fault_affected"], facts["fault_recovery_us"]), (2.0, 800.0));
    }

    #[test]
    fn half_as_much_for_a_millisecond_is_a_drop_by_a_half() {
        let steady = (0..50).map(|bin| (bin * 100, bin * 100 + 10, false));
        let twice = (0..50).map(|bin| (bin * 100, bin * 100 + 20, false));
        let after = (50..60).map(|bin| (bin * 100, bin * 100 + 10, false));
        let facts = facts_of(&steady.chain(twice).chain(after).collect::<Vec<_>>());
        assert_eq!((facts["fault_drop_fraction"], facts["fault_deepest_drop_fraction"]), (0.5, 0.5));
    }

    #[test]
    fn without_a_fault_nothing_is_kept() {
        let mut aftermath = Aftermath::new(None);
        aftermath.ended(at_us(10), Bytes::kib(4), at_us(1), true, NOTICED);
        let mut meter = Meter::new();
        aftermath.facts(&mut meter);
        assert!(meter.finish().0.is_empty() && aftermath.finished.is_empty());
    }
}
