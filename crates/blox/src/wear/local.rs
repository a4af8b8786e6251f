//! The balancer of one server (RackBlox, 3.6).

use super::{LookOut, SsdPlace, SsdWear, Swap, WearError, imbalance, place_of_largest};

/// How a server's drives are balanced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalConfig {
    /// By how much the most worn drive may exceed the mean: the paper's gamma, 0.1.
    pub gamma: f64,
    /// Days between two checks, each of which makes one swap at most: 12 in the paper.
    pub period_days: u32,
    /// Condition for a swap.
    pub trigger: SwapTrigger,
}

/// Condition for a swap. The paper says that imbalance must not exceed 1 + gamma and that drives
/// are swapped periodically, and not whether a period without need is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapTrigger {
    /// Each check, unless the most worn drive wears no faster than the others.
    EveryLook,
    /// An imbalance that exceeds 1 + gamma, or will after this many days at the present rates. 0
    /// waits until it does, so it exceeds the limit by the wear of one period.
    Uneven {
        /// Days of extrapolation.
        horizon_days: u32,
    },
}

/// Decides which two drives of a server exchange what they hold.
#[derive(Clone, Debug)]
pub struct LocalBalancer {
    config: LocalConfig,
    server: u32,
    look_out: LookOut,
}

impl LocalBalancer {
    /// Of a server of the rack. Fails without a period, or with a gamma below 0.
    pub fn new(config: LocalConfig, server: u32) -> Result<LocalBalancer, WearError> {
        config.check()?;
        Ok(LocalBalancer { config, server, look_out: LookOut::new(config.period_days) })
    }
    /// Checks the server's drives, if a period has passed since the last check: the most worn one
    /// swaps with the one that wears most slowly. `None` also if they are the same, or without
    /// gain.
    pub fn check(&mut self, day: u32, ssds: &[SsdWear]) -> Option<Swap> {
        if !self.look_out.is_due(day) || !self.is_triggered(ssds) {
            return None;
        }
        let worn = place_of_largest(ssds.iter().map(|ssd| ssd.erases))?;
        let resting = place_of_largest(ssds.iter().map(|ssd| -ssd.erases_per_day))?;
        let gains = ssds[worn].erases_per_day > ssds[resting].erases_per_day;
        gains.then(|| Swap { worn: self.place(worn), resting: self.place(resting) })
    }

    fn is_triggered(&self, ssds: &[SsdWear]) -> bool {
        let SwapTrigger::Uneven { horizon_days } = self.config.trigger else { return true };
        let allowed = 1.0 + self.config.gamma;
        let ahead = ssds.iter().map(|ssd| ssd.erases + ssd.erases_per_day * f64::from(horizon_days));
        imbalance(ssds.iter().map(|ssd| ssd.erases)) > allowed || imbalance(ahead) > allowed
    }
    fn place(&self, ssd: usize) -> SsdPlace {
        SsdPlace { server: self.server, ssd: ssd as u32 }
    }
}

impl LocalConfig {
    pub(super) fn check(&self) -> Result<(), WearError> {
        WearError::check(self.gamma >= 0.0, "gamma", self.gamma, "0 or more is allowed")?;
        WearError::check(self.period_days > 0, "period_days", 0, "at least a day is needed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNEVEN: SwapTrigger = SwapTrigger::Uneven { horizon_days: 0 };

    fn balancer(trigger: SwapTrigger) -> LocalBalancer {
        let config = LocalConfig { gamma: 0.1, period_days: 12, trigger };
        LocalBalancer::new(config, 3).expect("these numbers are allowed")
    }

    fn ssds(pairs: &[(f64, f64)]) -> Vec<SsdWear> {
        pairs
            .iter()
            .map(|(erases, erases_per_day)| SsdWear { erases: *erases, erases_per_day: *erases_per_day })
            .collect()
    }

    fn swap(worn: u32, resting: u32) -> Option<Swap> {
        Some(Swap { worn: SsdPlace { server: 3, ssd: worn }, resting: SsdPlace { server: 3, ssd: resting } })
    }

    #[test]
    fn the_most_worn_swaps_with_the_slowest_and_not_with_the_least_worn() {
        let drives = ssds(&[(50.0, 5.0), (100.0, 9.0), (20.0, 7.0), (80.0, 1.0)]);
        assert_eq!(balancer(UNEVEN).check(12, &drives), swap(1, 3));
    }

    #[test]
    fn an_imbalance_of_1_1_is_allowed_and_one_above_is_not() {
        // Mean 100 in both.
        let at = ssds(&[(110.0, 2.0), (90.0, 1.0)]);
        let above = ssds(&[(110.1, 2.0), (89.9, 1.0)]);
        assert_eq!(balancer(UNEVEN).check(12, &at), None);
        assert_eq!(balancer(UNEVEN).check(12, &above), swap(0, 1));
        assert_eq!(balancer(SwapTrigger::EveryLook).check(12, &at), swap(0, 1));
    }

    #[test]
    fn who_looks_ahead_swaps_before_the_limit_is_passed() {
        // 108 and 92 now; after h days 108 + 2h and 92 + h: above 1.1 from h = 5.71 on.
        let drives = ssds(&[(108.0, 2.0), (92.0, 1.0)]);
        assert_eq!(balancer(SwapTrigger::Uneven { horizon_days: 5 }).check(12, &drives), None);
        assert_eq!(balancer(SwapTrigger::Uneven { horizon_days: 6 }).check(12, &drives), swap(0, 1));
    }

    #[test]
    fn no_swap_is_made_within_twelve_days_of_the_last_look() {
        let drives = ssds(&[(200.0, 2.0), (100.0, 1.0)]);
        let mut balancer = balancer(UNEVEN);
        assert_eq!(balancer.check(11, &drives), None);
        assert_eq!(balancer.check(13, &drives), swap(0, 1));
        assert_eq!(balancer.check(24, &drives), None);
        assert_eq!(balancer.check(25, &drives), swap(0, 1));
    }

    #[test]
    fn a_drive_that_rests_already_is_left_alone() {
        let resting = ssds(&[(200.0, 1.0), (100.0, 2.0)]);
        let equal = ssds(&[(100.0, 2.0), (200.0, 2.0)]);
        for trigger in [UNEVEN, SwapTrigger::EveryLook] {
            assert_eq!(balancer(trigger).check(12, &resting), None);
            assert_eq!(balancer(trigger).check(12, &equal), None);
            assert_eq!(balancer(trigger).check(12, &[]), None);
        }
    }

    #[test]
    fn a_balancer_without_a_period_or_with_a_negative_gamma_is_refused() {
        let config = LocalConfig { gamma: 0.1, period_days: 0, trigger: UNEVEN };
        assert!(LocalBalancer::new(config, 0).is_err_and(|error| error.field == "period_days"));
        let config = LocalConfig { gamma: -0.1, period_days: 1, trigger: UNEVEN };
        assert!(LocalBalancer::new(config, 0).is_err_and(|error| error.field == "gamma"));
    }
}
