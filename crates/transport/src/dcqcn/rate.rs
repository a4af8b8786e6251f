//! The reaction point: one flow's rate (SIGCOMM'15, 3.1 and Figure 7).

use crate::config::Dcqcn;
use base::{Rate, Span, Time};

/// Below line rate by less than this fraction, a flow is let go and its limiter forgets it, as NICs do: halving the distance
/// to the target never quite ends.
const RELEASE: f64 = 1e-3;
const PS_PER_BYTE_AT_1_BPS: f64 = 8e12;

/// Current and target rate, alpha, and the counts of increases since the last cut.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    line_bps: f64,
    /// No cut goes below this.
    least_bps: f64,
    current_bps: f64,
    target_bps: f64,
    alpha: f64,
    /// Increases by timer and by byte counter.
    timer_rounds: u32,
    byte_rounds: u32,
    bytes: u64,
    limited: bool,
    /// When it came back to line rate, where no timer runs: alpha has decayed since then.
    free_since: Time,
}

impl RateControl {
    /// At line rate, as every flow starts.
    pub(super) fn new(line: Rate, config: &Dcqcn) -> RateControl {
        let line_bps = line.as_bps() as f64;
        RateControl {
            line_bps,
            least_bps: line_bps.min(config.rate_min_bps as f64),
            current_bps: line_bps,
            target_bps: line_bps,
            alpha: 1.0,
            timer_rounds: 0,
            byte_rounds: 0,
            bytes: 0,
            limited: false,
            free_since: Time::MAX,
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
    pub(super) fn cut(&mut self, now: Time, config: &Dcqcn) {
        self.catch_up(now, config);
        self.target_bps = self.current_bps;
        self.current_bps = (self.current_bps * (1.0 - self.alpha / 2.0)).max(self.least_bps);
        self.alpha = (1.0 - config.gain) * self.alpha + config.gain;
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
        self.limited = true;
    }
    /// No notification for an alpha timer (equation 2).
    pub(super) fn decay(&mut self, gain: f64) {
        self.alpha *= 1.0 - gain;
    }
    /// The increase timer is due.
    pub(super) fn timer_increase(&mut self, now: Time, config: &Dcqcn) {
        self.timer_rounds += 1;
        self.increase(now, config);
    }
    /// Counts `wire` bytes sent.
    pub(super) fn sent(&mut self, now: Time, wire: u64, config: &Dcqcn) {
        if !self.limited {
            return;
        }
        self.bytes += wire;
        if self.bytes >= config.increase_bytes.count() {
            self.bytes -= config.increase_bytes.count();
            self.byte_rounds += 1;
            self.increase(now, config);
        }
    }
    /// How long a packet of `wire` bytes keeps the next one back; nothing at line rate, where the
    /// link itself paces.
    pub(super) fn spacing(&self, wire: u64) -> Span {
        if !self.limited {
            return Span::ZERO;
        }
        Span::from_ps_f64(wire as f64 * PS_PER_BYTE_AT_1_BPS / self.current_bps)
    }

    /// Lets alpha decay for the time at line rate.
    fn catch_up(&mut self, now: Time, config: &Dcqcn) {
        let free = now.saturating_since(self.free_since);
        self.free_since = Time::MAX;
        let periods = (free.as_ps() / config.alpha_timer.as_ps()).min(i32::MAX as u64) as i32;
        self.alpha *= (1.0 - config.gain).powi(periods);
    }

    /// Fast recovery until either count passes F, additive increase until both do, hyper increase after that.
    fn increase(&mut self, now: Time, config: &Dcqcn) {
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
            let alpha = self.alpha;
            *self = RateControl::new(Rate::bps(self.line_bps as u64), config);
            (self.alpha, self.free_since) = (alpha, now);
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
            rate_min_bps: 100_000_000,
            notification_interval: Span::us(50),
            alpha_timer: Span::us(55),
            increase_timer: Span::us(55),
            increase_bytes: Bytes::new(10_000_000),
            fast_recovery_rounds: 5,
            additive_bps: 40_000_000,
            hyper_bps: 400_000_000,
        }
    }

    fn rate() -> RateControl {
        RateControl::new(Rate::gbps(100), &config())
    }

    /// Cuts once, and leaves alpha as it is.
    fn halve(rate: &mut RateControl) {
        rate.cut(Time::ZERO, &Dcqcn { gain: 0.0, ..config() });
    }

    #[test]
    fn the_first_cut_halves_and_fast_recovery_halves_the_distance() {
        let mut rate = rate();
        rate.cut(Time::ZERO, &config());
        assert_eq!(rate.current_bps(), 50e9);
        rate.timer_increase(Time::ZERO, &config());
        assert_eq!(rate.current_bps(), 75e9);
        rate.timer_increase(Time::ZERO, &config());
        assert_eq!(rate.current_bps(), 87.5e9);
    }

    #[test]
    fn after_five_rounds_the_target_rises_by_additive_steps_and_after_both_counts_by_hyper_steps() {
        let mut rate = rate();
        halve(&mut rate);
        halve(&mut rate);
        assert_eq!((rate.current_bps(), rate.target_bps), (25e9, 50e9));
        (0..5).for_each(|_| rate.timer_increase(Time::ZERO, &config()));
        assert_eq!(rate.target_bps, 50e9);
        rate.timer_increase(Time::ZERO, &config());
        assert_eq!(rate.target_bps, 50.04e9);
        (0..5).for_each(|_| rate.sent(Time::ZERO, 10_000_000, &config()));
        assert_eq!(rate.target_bps, 50.24e9);
        rate.sent(Time::ZERO, 10_000_000, &config());
        assert_eq!(rate.target_bps, 50.64e9);
    }

    #[test]
    fn a_flow_at_line_rate_is_not_paced_and_one_at_half_is_spaced_by_twice_its_serialization() {
        let mut rate = rate();
        assert_eq!(rate.spacing(1500), Span::ZERO);
        halve(&mut rate);
        assert_eq!(rate.spacing(1500), Span::ns(240));
    }

    #[test]
    fn notifications_without_end_leave_the_least_rate() {
        let mut rate = rate();
        (0..9).for_each(|_| rate.cut(Time::ZERO, &config()));
        assert!(rate.current_bps() > 1e8, "{}", rate.current_bps());
        (0..11).for_each(|_| rate.cut(Time::ZERO, &config()));
        assert_eq!(rate.current_bps(), 1e8);
        let slow = Rate::bps(50_000_000);
        let mut slower_than_the_least = RateControl::new(slow, &config());
        slower_than_the_least.cut(Time::ZERO, &config());
        assert_eq!(slower_than_the_least.current_bps(), 5e7);
    }

    /// SIGCOMM'15, equation 2: alpha decays whenever no notification comes, at line rate too.
    #[test]
    fn alpha_decays_at_line_rate_and_does_not_start_anew() {
        let mut rate = rate();
        rate.cut(Time::ZERO, &config());
        (0..40).for_each(|_| rate.timer_increase(Time::us(100), &config()));
        assert!(!rate.is_limited());
        let later = Time::us(100) + config().alpha_timer * 256;
        rate.cut(later, &config());
        let alpha = (1.0f64 - 1.0 / 256.0).powi(256);
        let expected = 100e9 * (1.0 - alpha / 2.0);
        assert!((rate.current_bps() / expected - 1.0).abs() < 1e-9, "{}", rate.current_bps());
    }
}
