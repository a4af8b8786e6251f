//! The time for which the loop polls before it sleeps.
//!
//! In a virtual machine, a wake-up takes tens of microseconds, more than a request costs. The loop
//! therefore polls before it sleeps: briefly at first, twice as long after each sleep that a longer
//! poll would have avoided. It stops after a sleep that no poll would have avoided. Linux does the
//! same for virtual processors (`halt_poll_ns`, Documentation/virt/kvm/halt-polling.rst).
//!
//! Where requests arrive in groups, a loop that sleeps may serve as many with less processor time.
//! The loop then tries for one [`EPOCH`] now and then to sleep at once. It continues while that
//! serves about as many requests a second; otherwise it tries again after twice as many epochs.

use base::{Span, Time};

/// Length of the first poll.
const FIRST: Span = Span::us(5);
/// Time for which one way of waiting is tried.
const EPOCH: Span = Span::ms(2);
/// Most epochs between two trials.
const KEPT_MAX: u32 = 64;
/// Requests per wait from which on they arrive in groups.
const GROUP: u64 = 4;
/// Requests that sleeping has to serve, in percent of polling. Epochs differ by 5 %.
const SLEEP_PERCENT: u64 = 90;

/// Learns how long to poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyPoll {
    longest: Span,
    span: Span,
    /// Sleeps at once.
    sleeps: bool,
    /// This epoch tries the other way of waiting.
    is_trial: bool,
    /// Epochs until the next trial, and from one trial to the next.
    left: u32,
    kept: u32,
    /// Requests a second in the last epoch of the current way.
    rate: u64,
    /// Start of this epoch, and the requests served by then.
    began: Time,
    served: u64,
    /// Waits in this epoch.
    waits: u64,
}

impl BusyPoll {
    /// A loop that has seen nothing yet. It polls for at most `longest`; zero disables polling.
    pub(crate) fn new(longest: Span) -> BusyPoll {
        BusyPoll {
            longest,
            span: Span::ZERO,
            sleeps: false,
            is_trial: false,
            left: 1,
            kept: 1,
            rate: 0,
            began: Time::ZERO,
            served: 0,
            waits: 0,
        }
    }

    /// The time to poll now, when `served` requests have been served since the start.
    pub(crate) fn span(&mut self, now: Time, served: u64) -> Span {
        let elapsed = now.saturating_since(self.began);
        if elapsed >= EPOCH {
            self.end_epoch(elapsed, served - self.served);
            (self.began, self.served, self.waits) = (now, served, 0);
        }
        self.waits += 1;
        if self.sleeps { Span::ZERO } else { self.span }
    }

    fn end_epoch(&mut self, elapsed: Span, count: u64) {
        let rate = (count as f64 / elapsed.as_secs_f64()) as u64;
        if count < GROUP * self.waits {
            (self.sleeps, self.is_trial, self.left, self.kept) = (false, false, 1, 1);
        } else if self.is_trial {
            self.judge(rate);
        } else {
            let is_other_load = rate > self.rate * 2 || rate < self.rate / 2;
            self.left = if is_other_load { 0 } else { self.left - 1 };
            self.rate = rate;
            if self.left == 0 {
                (self.sleeps, self.is_trial) = (!self.sleeps, true);
            }
        }
    }

    /// Keeps the way that was tried, which served `rate` requests a second, or reverts it.
    fn judge(&mut self, rate: u64) {
        let (asleep, polling) = if self.sleeps { (rate, self.rate) } else { (self.rate, rate) };
        let sleeps = asleep * 100 > polling * SLEEP_PERCENT;
        self.kept = if sleeps == self.sleeps { 1 } else { (self.kept * 2).min(KEPT_MAX) };
        (self.sleeps, self.is_trial, self.left) = (sleeps, false, self.kept);
    }

    /// A sleep of `span` followed, including the wake-up, which is taken to cost no more than the
    /// longest poll.
    pub(crate) fn slept(&mut self, span: Span) {
        self.span = if span > self.longest * 2 { Span::ZERO } else { (self.span * 2).max(FIRST).min(self.longest) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Span = Span::us(50);

    #[test]
    fn short_sleeps_double_the_poll_up_to_the_longest() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        let polls: Vec<u64> = (0..6)
            .map(|_| {
                let span = busy_poll.span(Time::ZERO, 0);
                busy_poll.slept(LONGEST * 2);
                span.as_ps() / Span::us(1).as_ps()
            })
            .collect();
        assert_eq!(polls, [0, 5, 10, 20, 40, 50]);
    }

    #[test]
    fn one_long_sleep_ends_polling() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        (0..6).for_each(|_| busy_poll.slept(Span::ZERO));
        busy_poll.slept(LONGEST * 2 + Span::ps(1));
        assert_eq!(busy_poll.span(Time::ZERO, 0), Span::ZERO);
    }

    #[test]
    fn without_a_longest_poll_there_is_none() {
        let mut busy_poll = BusyPoll::new(Span::ZERO);
        busy_poll.slept(Span::ZERO);
        assert_eq!(busy_poll.span(Time::ZERO, 0), Span::ZERO);
    }

    /// Plays a second of waits.
    fn share_asleep(busy_poll: &mut BusyPoll, group: u64, polling: u64, asleep: u64) -> f64 {
        share_in(Span::secs(1), busy_poll, group, polling, asleep)
    }

    /// Plays waits that end with `group` requests each, of which a loop that polls serves `polling`
    /// a second and one that sleeps `asleep`. Returns the share of waits without polling.
    fn share_in(length: Span, busy_poll: &mut BusyPoll, group: u64, polling: u64, asleep: u64) -> f64 {
        let (start, mut served) = (busy_poll.began, busy_poll.served);
        let (mut now, mut waits, mut without) = (start, 0, 0);
        busy_poll.span = LONGEST;
        while now.saturating_since(start) < length {
            let sleeps = busy_poll.span(now, served) == Span::ZERO;
            (waits, without) = (waits + 1, without + u64::from(sleeps));
            now += Span::ns(group * 1_000_000_000 / if sleeps { asleep } else { polling });
            served += group;
        }
        without as f64 / waits as f64
    }

    #[test]
    fn groups_that_sleeping_serves_as_fast_end_polling() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        let share = share_asleep(&mut busy_poll, 32, 1_000_000, 950_000);
        assert!(share > 0.9, "{share}");
    }

    #[test]
    fn groups_that_polling_serves_faster_are_polled_for_but_in_few_trials() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        let share = share_asleep(&mut busy_poll, 32, 600_000, 300_000);
        assert!(share > 0.0 && share < 0.02, "{share}");
    }

    #[test]
    fn lone_requests_are_always_polled_for_also_after_groups() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        assert_eq!(share_asleep(&mut busy_poll, 1, 60_000, 60_000), 0.0);
        share_asleep(&mut busy_poll, 32, 1_000_000, 1_000_000);
        let share = share_asleep(&mut busy_poll, 1, 60_000, 60_000);
        assert!(share < 0.005, "{share}");
    }

    #[test]
    fn a_load_that_changes_is_tried_at_once() {
        let mut busy_poll = BusyPoll::new(LONGEST);
        share_asleep(&mut busy_poll, 32, 600_000, 300_000);
        let left = busy_poll.left;
        let share = share_in(EPOCH * 8, &mut busy_poll, 64, 2_000_000, 2_000_000);
        assert!(left > 16 && share > 0.5, "{left}, {share}");
    }
}
