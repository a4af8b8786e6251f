//! The reaction point: one flow's rate (SIGCOMM'15, 3.1 and Figure 7).

use crate::config::Dcqcn;
use base::{Rate, Span};

/// Below line rate by less than this fraction, a flow is let go and its limiter forgets it, as NICs do: halving the distance
/// to the target never quite ends.
const RELEASE: f64 = 1e-3;
const PS_PER_BYTE_AT_1_BPS: f64 = 8e12;

/// Current and target rate, alpha, and the counts of increases since the last cut.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    line_bps: f64,
    current_bps: f64,
    target_bps: f64,
    alpha: f64,
    /// Increases by timer and by byte counter.
    timer_rounds: u32,
    byte_rounds: u32,
    bytes: u64,
    limited: bool,
}

impl RateControl {
    /// At line rate, as every flow starts.
    pub(super) fn new(line: Rate) -> RateControl {
        let line_bps = line.as_bps() as f64;
        RateControl {
            line_bps,
            current_bps: line_bps,
            target_bps: line_bps,
            alpha: 1.0,
            timer_rounds: 0,
            byte_rounds: 0,
            bytes: 0,
            limited: false,
        }
    }
    pub(super) fn current_bps(&self) -> f64 {
        self.current_bps
    }
    /// Whether it is below line rate, so that timers run.
    pub(super) fn is_limited(&self) -> bool {
        self.limited
    }
    /// A congestion notification: remember the rate as target, cut it, raise alpha (equation 1).
    pub(super) fn cut(&mut self, gain: f64) {
        self.target_bps = self.current_bps;
        self.current_bps *= 1.0 - self.alpha / 2.0;
        self.alpha = (1.0 - gain) * self.alpha + gain;
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
        self.limited = true;
    }
    /// No notification for an alpha timer (equation 2).
    pub(super) fn decay(&mut self, gain: f64) {
        self.alpha *= 1.0 - gain;
    }
    /// The increase timer is due.
    pub(super) fn timer_increase(&mut self, config: &Dcqcn) {
        self.timer_rounds += 1;
        self.increase(config);
    }
    /// Counts `wire` bytes sent; how long until the next packet may start, or `None` at line rate.
    pub(super) fn sent(&mut self, wire: u64, config: &Dcqcn) -> Option<Span> {
        if !self.limited {
            return None;
        }
        self.bytes += wire;
        if self.bytes >= config.increase_bytes.count() {
            self.bytes -= config.increase_bytes.count();
            self.byte_rounds += 1;
            self.increase(config);
        }
        Some(Span::from_ps_f64(wire as f64 * PS_PER_BYTE_AT_1_BPS / self.current_bps))
    }

    /// Fast recovery until either count passes F, additive increase until both do, hyper increase after that.
    fn increase(&mut self, config: &Dcqcn) {
        let most = self.timer_rounds.max(self.byte_rounds);
        let least = self.timer_rounds.min(self.byte_rounds);
        let rounds = config.fast_recovery_rounds;
        if least > rounds {
            self.target_bps += f64::from(least - rounds) * config.hyper_bps as f64;
        } else if most > rounds {
            self.target_bps += config.additive_bps as f64;
        }
        self.target_bps = self.target_bps.min(self.line_bps);
        self.current_bps = (self.current_bps + self.target_bps) / 2.0;
        if self.current_bps >= self.line_bps * (1.0 - RELEASE) {
            *self = RateControl::new(Rate::bps(self.line_bps as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;

    fn config() -> Dcqcn {
        Dcqcn {
            mtu: Bytes::new(1024),
            mark_from: Bytes::kib(5),
            mark_all: Bytes::kib(200),
            mark_probability: 0.01,
            pause_above: Bytes::kib(64),
            resume_below: Bytes::kib(60),
            gain: 1.0 / 256.0,
            notification_interval: Span::us(50),
            alpha_timer: Span::us(55),
            increase_timer: Span::us(55),
            increase_bytes: Bytes::new(10_000_000),
            fast_recovery_rounds: 5,
            additive_bps: 40_000_000,
            hyper_bps: 400_000_000,
        }
    }

    #[test]
    fn the_first_cut_halves_and_fast_recovery_halves_the_distance() {
        let mut rate = RateControl::new(Rate::gbps(100));
        rate.cut(1.0 / 256.0);
        assert_eq!(rate.current_bps(), 50e9);
        rate.timer_increase(&config());
        assert_eq!(rate.current_bps(), 75e9);
        rate.timer_increase(&config());
        assert_eq!(rate.current_bps(), 87.5e9);
    }

    #[test]
    fn after_five_rounds_the_target_rises_by_additive_steps_and_after_both_counts_by_hyper_steps() {
        let mut rate = RateControl::new(Rate::gbps(100));
        rate.cut(0.0);
        rate.cut(0.0);
        assert_eq!((rate.current_bps(), rate.target_bps), (25e9, 50e9));
        (0..5).for_each(|_| rate.timer_increase(&config()));
        assert_eq!(rate.target_bps, 50e9);
        rate.timer_increase(&config());
        assert_eq!(rate.target_bps, 50.04e9);
        (0..5).for_each(|_| assert!(rate.sent(10_000_000, &config()).is_some()));
        assert_eq!(rate.target_bps, 50.24e9);
        rate.sent(10_000_000, &config());
        assert_eq!(rate.target_bps, 50.64e9);
    }

    #[test]
    fn a_flow_at_line_rate_is_not_paced_and_one_at_half_is_spaced_by_twice_its_serialization() {
        let mut rate = RateControl::new(Rate::gbps(100));
        assert_eq!(rate.sent(1500, &config()), None);
        rate.cut(0.0);
        assert_eq!(rate.sent(1500, &config()), Some(Span::ns(240)));
    }
}
