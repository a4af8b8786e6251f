//! The reaction point: one flow's rate (SIGCOMM'15, 3.1 and Figure 7).
//!
//! With [`Reaction::AtOnce`] a notification cuts the rate and raises alpha. With
//! [`Reaction::Periodic`] it is recorded, and two timers check the record: one changes alpha, the
//! other cuts.

use crate::config::{Dcqcn, Reaction};
use base::{Rate, Span, Time};

/// A flow within this fraction of line rate is released from its limiter, as in NICs: halving the
/// distance to the target never quite ends.
const RELEASE: f64 = 1e-3;
const PS_PER_BYTE_AT_1_BPS: f64 = 8e12;

/// Current and target rate, alpha, and the counts of increases since the last cut.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    line_bps: f64,
    /// Lower bound of the rate after a cut.
    least_bps: f64,
    current_bps: f64,
    target_bps: f64,
    alpha: f64,
    /// Increases by timer and by byte counter.
    timer_rounds: u32,
    byte_rounds: u32,
    bytes: u64,
    limited: bool,
    /// Notifications that no periodic check has processed.
    noted: Noted,
    /// When it returned to line rate, where no timer runs: alpha has decayed since then.
    free_since: Time,
}

/// Notifications that wait for each check.
#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    by_alpha: bool,
    by_cut: bool,
}

impl RateControl {
    /// Creates a limiter at line rate, like every new flow.
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
            noted: Noted::default(),
            free_since: Time::MAX,
        }
    }
    pub(super) fn current_bps(&self) -> f64 {
        self.current_bps
    }
    /// Returns whether timers run: the flow is below line rate or about to be.
    pub(super) fn is_watched(&self) -> bool {
        self.limited || self.noted.by_cut
    }
    /// Reacts to a notification at once: stores the rate as target, cuts it, and raises alpha
    /// (equation 1).
    pub(super) fn cut(&mut self, now: Time, config: &Dcqcn) {
        self.catch_up(now, config);
        self.target_bps = self.current_bps;
        self.lower();
        self.alpha = (1.0 - config.gain) * self.alpha + config.gain;
    }
    /// Records a notification for the next checks. Returns whether their timers have to be started.
    pub(super) fn note(&mut self, now: Time, config: &Dcqcn) -> bool {
        let first = !self.is_watched();
        self.catch_up(now, config);
        self.noted = Noted { by_alpha: true, by_cut: true };
        first
    }
    /// Updates alpha when its timer expires: it rises if a notification was recorded, and falls
    /// otherwise (equation 2).
    pub(super) fn move_alpha(&mut self, gain: f64) {
        let seen = std::mem::take(&mut self.noted.by_alpha);
        self.alpha = (1.0 - gain) * self.alpha + if seen { gain } else { 0.0 };
    }
    /// Ends a cut interval. Returns whether the rate was cut. Cuts without an increase between them
    /// keep the target.
    pub(super) fn cut_noted(&mut self) -> bool {
        if !std::mem::take(&mut self.noted.by_cut) {
            return false;
        }
        if self.timer_rounds > 0 || !self.limited {
            self.target_bps = self.current_bps;
        }
        self.lower();
        true
    }
    /// Raises the rate when the increase timer expires.
    pub(super) fn timer_increase(&mut self, now: Time, config: &Dcqcn) {
        self.timer_rounds += 1;
        self.increase(now, config);
    }
    /// Counts `wire` bytes sent.
    pub(super) fn sent(&mut self, now: Time, wire: u64, config: &Dcqcn) {
        let Reaction::AtOnce { increase_bytes } = config.reaction else { return };
        if !self.limited {
            return;
        }
        self.bytes += wire;
        if self.bytes >= increase_bytes.count() {
            self.bytes -= increase_bytes.count();
            self.byte_rounds += 1;
            self.increase(now, config);
        }
    }
    /// Returns the delay that a packet of `wire` bytes imposes on the next one; zero at line rate,
    /// where the link itself paces.
    pub(super) fn spacing(&self, wire: u64) -> Span {
        if !self.limited {
            return Span::ZERO;
        }
        Span::from_ps_f64(wire as f64 * PS_PER_BYTE_AT_1_BPS / self.current_bps)
    }

    /// Applies the decay of alpha for the time at line rate.
    fn catch_up(&mut self, now: Time, config: &Dcqcn) {
        let free = now.saturating_since(self.free_since);
        self.free_since = Time::MAX;
        let periods = (free.as_ps() / config.alpha_timer.as_ps()).min(i32::MAX as u64) as i32;
        self.alpha *= (1.0 - config.gain).powi(periods);
    }

    /// Cuts the rate by half of alpha, and resets the counts of increases.
    fn lower(&mut self) {
        self.current_bps = (self.current_bps * (1.0 - self.alpha / 2.0)).max(self.least_bps);
        (self.timer_rounds, self.byte_rounds, self.bytes) = (0, 0, 0);
        (self.limited, self.free_since) = (true, Time::MAX);
    }

    /// Returns the change of the target by an increase.
    fn step_bps(&self, config: &Dcqcn) -> f64 {
        let rounds = config.fast_recovery_rounds;
        let (additive, hyper) = (config.additive_bps as f64, config.hyper_bps as f64);
        match config.reaction {
            // Fast recovery until either count passes F, additive increase until both do, then
            // hyper increase.
            Reaction::AtOnce { .. } => {
                let (most, least) = (self.timer_rounds.max(self.byte_rounds), self.timer_rounds.min(self.byte_rounds));
                match (least > rounds, most > rounds) {
                    (true, _) => f64::from(least - rounds) * hyper,
                    (false, true) => additive,
                    (false, false) => 0.0,
                }
            }
            // F rounds of fast recovery, one additive round, then hyper increase by one step per
            // round.
            Reaction::Periodic { .. } => match self.timer_rounds.saturating_sub(rounds) {
                0 => 0.0,
                1 => additive,
                _ => hyper,
            },
        }
    }

    fn increase(&mut self, now: Time, config: &Dcqcn) {
        self.target_bps += self.step_bps(config);
        self.target_bps = self.target_bps.min(self.line_bps);
        self.current_bps = (self.current_bps + self.target_bps) / 2.0;
        if self.current_bps >= self.line_bps * (1.0 - RELEASE) {
            let (alpha, noted) = (self.alpha, self.noted);
            *self = RateControl::new(Rate::bps(self.line_bps as u64), config);
            (self.alpha, self.free_since, self.noted) = (alpha, now, noted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcqcn::testing::config;

    fn rate() -> RateControl {
        RateControl::new(Rate::gbps(100), &config())
    }

    /// Cuts once without changing alpha.
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

    /// SIGCOMM'15, equation 2: alpha decays without notifications, at line rate too.
    #[test]
    fn alpha_decays_at_line_rate_and_does_not_start_anew() {
        let mut rate = rate();
        rate.cut(Time::ZERO, &config());
        (0..40).for_each(|_| rate.timer_increase(Time::us(100), &config()));
        assert!(!rate.is_watched());
        let later = Time::us(100) + config().alpha_timer * 256;
        rate.cut(later, &config());
        let alpha = (1.0f64 - 1.0 / 256.0).powi(256);
        let expected = 100e9 * (1.0 - alpha / 2.0);
        assert!((rate.current_bps() / expected - 1.0).abs() < 1e-9, "{}", rate.current_bps());
    }

    /// Cuts every 4 us, alpha updates every microsecond, as in HPCC's simulator.
    fn periodic() -> Dcqcn {
        let reaction = Reaction::Periodic { cut_interval: Span::us(4) };
        Dcqcn { reaction, alpha_timer: Span::us(1), fast_recovery_rounds: 1, ..config() }
    }

    #[test]
    fn a_noted_notification_cuts_at_the_look_and_a_second_look_without_one_does_not() {
        let mut rate = rate();
        assert!(rate.note(Time::ZERO, &periodic()));
        assert!(!rate.note(Time::ZERO, &periodic()), "looks are due already");
        assert_eq!(rate.current_bps(), 100e9);
        assert!(rate.cut_noted());
        assert_eq!((rate.current_bps(), rate.target_bps), (50e9, 100e9));
        assert!(!rate.cut_noted());
        assert_eq!(rate.current_bps(), 50e9);
    }

    #[test]
    fn alpha_moves_once_a_timer_however_many_notifications_come() {
        let (mut rate, gain) = (rate(), 1.0 / 256.0);
        (0..9).for_each(|_| _ = rate.note(Time::ZERO, &periodic()));
        rate.alpha = 0.5;
        rate.move_alpha(gain);
        assert!((rate.alpha - (0.5 + gain / 2.0)).abs() < 1e-12, "{}", rate.alpha);
        rate.move_alpha(gain);
        assert!((rate.alpha - (0.5 + gain / 2.0) * (1.0 - gain)).abs() < 1e-12, "{}", rate.alpha);
    }

    #[test]
    fn cuts_that_follow_each_other_keep_the_target() {
        let mut rate = rate();
        for cut in 1..=3 {
            rate.note(Time::ZERO, &periodic());
            assert!(rate.cut_noted());
            assert_eq!((rate.current_bps(), rate.target_bps), (100e9 / f64::from(1 << cut), 100e9));
        }
        rate.timer_increase(Time::ZERO, &periodic());
        let raised = rate.current_bps();
        rate.note(Time::ZERO, &periodic());
        rate.cut_noted();
        assert_eq!(rate.target_bps, raised);
    }

    /// One round halves the distance, one adds the additive step, and all others the hyper step,
    /// which does not grow.
    #[test]
    fn the_periodic_reaction_increases_by_its_timer_alone() {
        let mut rate = rate();
        rate.cut(Time::ZERO, &periodic());
        rate.cut(Time::ZERO, &periodic());
        rate.sent(Time::ZERO, 1 << 40, &periodic());
        assert_eq!(rate.byte_rounds, 0);
        let mut targets = Vec::new();
        for _ in 0..4 {
            rate.timer_increase(Time::ZERO, &periodic());
            targets.push(rate.target_bps - 50e9);
        }
        assert_eq!(targets, [0.0, 40e6, 440e6, 840e6]);
    }
}
