//! How loops wait for events: they poll for a while, sleep at once, or yield the processor first.
//!
//! In a virtual machine, a wake-up takes tens of microseconds, more than a request costs. A loop
//! therefore polls before it sleeps: briefly at first, twice as long after each sleep that a longer
//! poll would have avoided. It stops after a sleep that no poll would have avoided. Linux does the
//! same for virtual processors (`halt_poll_ns`, Documentation/virt/kvm/halt-polling.rst).
//!
//! Where requests arrive in groups, other ways may serve as many with less processor time. A loop
//! that sleeps at once leaves the processor to others. One that yields first lets those that share
//! its processor send more, and finds larger groups. But it also waits for the slices of time of
//! whoever else is busy there. So each way is tried for 10 ms now and then, and what is measured
//! decides. The loops of a server try together: one that yields alone only waits for the others.

use crate::clock::Clock;
use crate::error::RunError;
use crate::lock::lock;
use crate::processor::thread_ran_ns;
use base::{Span, Time};
use mio::{Events, Poll};
use rustix::thread::sched_yield;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Length of the first poll.
const FIRST: Span = Span::us(5);
/// Time for which one way of waiting is tried: some slices of time of a busy processor.
const EPOCH: Span = Span::ms(10);
/// Interval at which a loop tells its processor time.
const TOLD: Span = Span::us(500);
/// Most epochs between two trials of a way.
const KEPT_MAX: u32 = 64;
/// Requests per wait from which on they arrive in groups.
const GROUP: u64 = 4;
/// Requests that a way has to serve, of those of another, for its processor time to count.
const AS_MANY: f64 = 0.9;

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Polls before it sleeps.
    Poll,
    /// Sleeps at once.
    Sleep,
    /// Yields the processor once before it sleeps.
    Yield,
}

impl Way {
    const ALL: [Way; 3] = [Way::Poll, Way::Sleep, Way::Yield];
}

/// What loops have done since their start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    waits: u64,
    /// Requests.
    served: u64,
    /// Nanoseconds of processor time.
    cpu: u64,
}

impl Totals {
    fn since(self, before: Totals) -> Totals {
        Totals {
            waits: self.waits.saturating_sub(before.waits),
            served: self.served.saturating_sub(before.served),
            cpu: self.cpu.saturating_sub(before.cpu),
        }
    }
}

/// What an epoch has shown of a way.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Requests a second.
    rate: f64,
    /// Nanoseconds of processor time of a request.
    cpu: f64,
}

impl Seen {
    /// Whether this way is better: it serves more, or about as many with less processor time.
    fn beats(self, other: Seen) -> bool {
        if self.rate < other.rate * AS_MANY {
            return false;
        }
        other.rate < self.rate * AS_MANY || self.cpu < other.cpu
    }
}

/// When a way is tried again.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Epochs until then, and from the last trial until then.
    left: u32,
    kept: u32,
}

/// Learns which way to wait is best.
#[derive(Clone, Copy, Debug)]
struct Learner {
    polls: bool,
    /// The way where requests arrive in groups.
    way: Way,
    /// Whether the last ones did.
    is_grouped: bool,
    /// This epoch tries `way` in place of this one.
    before: Option<Way>,
    trials: [Trial; 3],
    /// The last epoch of the way that is not on trial.
    seen: Seen,
    /// Start of this epoch, and what was done by then.
    began: Time,
    done: Totals,
}

impl Learner {
    /// One that has seen nothing, of loops that may poll or not.
    fn new(polls: bool) -> Learner {
        Learner {
            polls,
            way: Way::Yield,
            is_grouped: false,
            before: None,
            trials: [Trial { left: 1, kept: 1 }; 3],
            seen: Seen { rate: 0.0, cpu: 0.0 },
            began: Time::ZERO,
            done: Totals::default(),
        }
    }

    /// The way to wait now.
    fn way(&self) -> Way {
        match self.is_grouped {
            true => self.way,
            false if self.polls => Way::Poll,
            false => Way::Sleep,
        }
    }

    /// An epoch ends, by the end of which so much was done.
    fn end_epoch(&mut self, now: Time, done: Totals) {
        let Totals { waits, served, cpu } = done.since(self.done);
        let elapsed = now.saturating_since(self.began).as_secs_f64();
        let was_grouped = std::mem::replace(&mut self.is_grouped, served > 0 && served >= GROUP * waits);
        (self.began, self.done) = (now, done);
        if was_grouped && self.is_grouped {
            self.learn(Seen { rate: served as f64 / elapsed, cpu: cpu as f64 / served as f64 });
        } else if let Some(before) = self.before.take() {
            self.way = before;
        }
    }

    fn learn(&mut self, seen: Seen) {
        match self.before.take() {
            None => {
                self.seen = seen;
                self.try_another();
            }
            Some(before) if seen.beats(self.seen) => {
                self.seen = seen;
                self.trials[before as usize].left = 1;
            }
            Some(before) => {
                let trial = &mut self.trials[std::mem::replace(&mut self.way, before) as usize];
                trial.kept = (trial.kept * 2).min(KEPT_MAX);
                trial.left = trial.kept;
            }
        }
    }

    /// Begins the trial that is due, if one is.
    fn try_another(&mut self) {
        let now = self.way;
        for way in Way::ALL.into_iter().filter(|way| *way != now && (self.polls || *way != Way::Poll)) {
            let trial = &mut self.trials[way as usize];
            trial.left = trial.left.saturating_sub(1);
            if trial.left == 0 && self.before.is_none() {
                (self.way, self.before) = (way, Some(now));
            }
        }
    }
}

/// What a loop tells the others. Each has a line of the cache, or two, to itself.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Told {
    waits: AtomicU64,
    served: AtomicU64,
    cpu: AtomicU64,
}

/// How the loops of a server wait.
#[derive(Debug)]
pub struct Ways {
    told: Box<[Told]>,
    learner: Mutex<Learner>,
    /// The way of now, and the picosecond at which the epoch ends.
    way: AtomicU8,
    until: AtomicU64,
    /// Picoseconds of the longest poll.
    longest: AtomicU64,
}

impl Ways {
    /// Those of so many loops, which poll for at most `longest`; zero disables polling.
    pub fn new(loops: usize, longest: Span) -> Ways {
        let ways = Ways {
            told: (0..loops).map(|_| Told::default()).collect(),
            learner: Mutex::new(Learner::new(false)),
            way: AtomicU8::new(Way::Sleep as u8),
            until: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        };
        ways.poll_at_most(longest);
        ways
    }

    /// Has all loops poll for at most `longest` from now on, and forgets what they have learnt.
    pub fn poll_at_most(&self, longest: Span) {
        let mut learner = lock(&self.learner);
        *learner = Learner::new(longest > Span::ZERO);
        self.way.store(learner.way() as u8, Ordering::Relaxed);
        self.longest.store(longest.as_ps(), Ordering::Relaxed);
    }

    fn longest(&self) -> Span {
        Span::ps(self.longest.load(Ordering::Relaxed))
    }

    /// The way to wait now.
    fn way(&self, now: Time) -> Way {
        if now.as_ps() >= self.until.load(Ordering::Relaxed)
            // Another loop is at it otherwise.
            && let Ok(mut learner) = self.learner.try_lock()
        {
            let sum = |of: fn(&Told) -> &AtomicU64| self.told.iter().map(|told| of(told).load(Ordering::Relaxed)).sum();
            let [waits, served, cpu] = [sum(|told| &told.waits), sum(|told| &told.served), sum(|told| &told.cpu)];
            learner.end_epoch(now, Totals { waits, served, cpu });
            self.way.store(learner.way() as u8, Ordering::Relaxed);
            self.until.store((now + EPOCH).as_ps(), Ordering::Relaxed);
        }
        Way::ALL[usize::from(self.way.load(Ordering::Relaxed))]
    }
}

/// How one loop waits.
#[derive(Debug)]
pub struct Waiting {
    ways: Arc<Ways>,
    number: usize,
    clock: Clock,
    /// The poll of now.
    span: Span,
    /// When it told its processor time.
    told: Time,
}

impl Waiting {
    /// The loop of this number among those of `ways`. All of them have the same clock.
    pub fn new(ways: Arc<Ways>, number: usize, clock: Clock) -> Waiting {
        Waiting { ways, number, clock, span: Span::ZERO, told: Time::ZERO }
    }

    /// Waits for events until `timeout` is over, where this loop has served `served` requests since
    /// its start. A signal may end that early.
    ///
    /// # Errors
    /// When the event queue fails.
    pub fn wait(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        timeout: Option<Duration>,
        served: u64,
    ) -> Result<(), RunError> {
        if timeout == Some(Duration::ZERO) {
            return sleep(poll, events, timeout);
        }
        let began = self.clock.now();
        self.tell(began, served);
        match self.ways.way(began) {
            Way::Poll if self.poll_until(poll, events, began + self.span())? => return Ok(()),
            Way::Poll | Way::Sleep => {}
            Way::Yield => sched_yield(),
        }
        // A timeout may be late by one poll or yield; precise timers are events.
        let waited = Clock::wait(began, self.clock.now());
        sleep(poll, events, timeout.map(|timeout| timeout.saturating_sub(waited)))?;
        self.slept(self.clock.now().saturating_since(began));
        Ok(())
    }

    fn tell(&mut self, now: Time, served: u64) {
        let told = &self.ways.told[self.number];
        // Nobody else writes it.
        told.waits.store(told.waits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        told.served.store(served, Ordering::Relaxed);
        if now.saturating_since(self.told) >= TOLD {
            told.cpu.store(thread_ran_ns(), Ordering::Relaxed);
            self.told = now;
        }
    }

    /// How long to poll now: the longest may have become shorter.
    fn span(&self) -> Span {
        self.span.min(self.ways.longest())
    }

    /// Polls until an event arrives or `until` passes, and yields the processor in between. Returns
    /// whether one arrived.
    fn poll_until(&self, poll: &mut Poll, events: &mut Events, until: Time) -> Result<bool, RunError> {
        while self.clock.now() < until {
            sleep(poll, events, Some(Duration::ZERO))?;
            if !events.is_empty() {
                return Ok(true);
            }
            sched_yield();
        }
        Ok(false)
    }

    /// A sleep of `span` followed, including the wake-up, which is taken to cost no more than the
    /// longest poll.
    fn slept(&mut self, span: Span) {
        let longest = self.ways.longest();
        self.span = if span > longest * 2 { Span::ZERO } else { (self.span * 2).max(FIRST).min(longest) };
    }
}

/// Waits for events without polling. A signal may end that early.
///
/// # Errors
/// When the event queue fails.
pub fn sleep(poll: &mut Poll, events: &mut Events, timeout: Option<Duration>) -> Result<(), RunError> {
    poll_once(poll, events, timeout).map_err(RunError::in_("waiting for events"))
}

/// The same for who reports the error himself.
///
/// # Errors
/// When the event queue fails.
pub fn poll_once(poll: &mut Poll, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
    match poll.poll(events, timeout) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Token, Waker};

    const LONGEST: Span = Span::us(50);

    fn waiting(longest: Span) -> Waiting {
        Waiting::new(Arc::new(Ways::new(1, longest)), 0, Clock::start())
    }

    #[test]
    fn short_sleeps_double_the_poll_up_to_the_longest() {
        let mut waiting = waiting(LONGEST);
        let polls: Vec<u64> = (0..6)
            .map(|_| {
                let span = waiting.span;
                waiting.slept(LONGEST * 2);
                span.as_ps() / Span::us(1).as_ps()
            })
            .collect();
        assert_eq!(polls, [0, 5, 10, 20, 40, 50]);
    }

    #[test]
    fn one_long_sleep_ends_polling() {
        let mut waiting = waiting(LONGEST);
        (0..6).for_each(|_| waiting.slept(Span::ZERO));
        waiting.slept(LONGEST * 2 + Span::ps(1));
        assert_eq!(waiting.span, Span::ZERO);
    }

    #[test]
    fn a_longest_poll_that_became_shorter_holds_from_the_next_poll_on() {
        let mut waiting = waiting(LONGEST);
        (0..6).for_each(|_| waiting.slept(Span::ZERO));
        assert_eq!(waiting.span(), LONGEST);
        waiting.ways.poll_at_most(FIRST);
        assert_eq!(waiting.span(), FIRST);
    }

    #[test]
    fn without_a_longest_poll_there_is_none() {
        let mut waiting = waiting(Span::ZERO);
        waiting.slept(Span::ZERO);
        assert_eq!((waiting.span, waiting.ways.way(Time::ZERO)), (Span::ZERO, Way::Sleep));
    }

    #[test]
    fn a_way_is_better_by_its_rate_and_by_its_processor_time_where_it_serves_nine_tenths() {
        let seen = |rate, cpu| Seen { rate, cpu };
        assert!(seen(90.0, 1.0).beats(seen(100.0, 2.0)) && !seen(89.0, 1.0).beats(seen(100.0, 2.0)));
        assert!(!seen(100.0, 2.0).beats(seen(90.0, 1.0)) && seen(100.0, 2.0).beats(seen(89.0, 1.0)));
        assert!(!seen(100.0, 1.0).beats(seen(100.0, 1.0)));
    }

    /// Requests in a second of loops that wait in a way, and nanoseconds of processor time of one.
    type Load = fn(Way) -> (u64, u64);

    /// Plays waits that end with `group` requests each. Returns the share of time of each way.
    fn shares(learner: &mut Learner, length: Span, group: u64, load: Load) -> [f64; 3] {
        let mut shares = [0.0; 3];
        let until = learner.began + length;
        while learner.began < until {
            let (rate, cpu) = load(learner.way());
            shares[learner.way() as usize] += EPOCH.as_secs_f64() / length.as_secs_f64();
            let served = (rate as f64 * EPOCH.as_secs_f64()) as u64;
            let Totals { waits, served: before, cpu: had } = learner.done;
            let done = Totals { waits: waits + served / group, served: before + served, cpu: had + served * cpu };
            learner.end_epoch(learner.began + EPOCH, done);
        }
        shares
    }

    const SECOND: Span = Span::secs(1);

    #[test]
    fn groups_that_a_way_serves_as_fast_with_less_processor_time_are_waited_for_in_that_way() {
        let loads: [Load; 3] = [
            |way| if way == Way::Poll { (950_000, 500) } else { (1_000_000, 600) },
            |way| if way == Way::Sleep { (950_000, 500) } else { (1_000_000, 600) },
            |way| if way == Way::Yield { (950_000, 500) } else { (1_000_000, 600) },
        ];
        for (best, load) in loads.into_iter().enumerate() {
            let shares = shares(&mut Learner::new(true), SECOND, 32, load);
            assert!(shares[best] > 0.8, "{best}: {shares:?}");
        }
    }

    #[test]
    fn a_way_that_serves_far_less_is_tried_in_few_epochs() {
        // Who yields waits for the slices of busy processes of others.
        let load: Load = |way| if way == Way::Yield { (50_000, 300) } else { (600_000, 600) };
        let mut learner = Learner::new(false);
        shares(&mut learner, SECOND, 32, load);
        let [polled, _, yielded] = shares(&mut learner, SECOND * 10, 32, load);
        assert!(polled == 0.0 && yielded > 0.0 && yielded < 0.02, "{polled} {yielded}");
    }

    #[test]
    fn another_load_has_its_own_way_within_a_second() {
        let mut learner = Learner::new(false);
        let yields: Load = |way| if way == Way::Yield { (900_000, 400) } else { (900_000, 600) };
        let sleeps: Load = |way| if way == Way::Sleep { (600_000, 600) } else { (50_000, 300) };
        for (load, best) in [(yields, Way::Yield), (sleeps, Way::Sleep), (yields, Way::Yield)] {
            shares(&mut learner, SECOND, 32, load);
            let shares = shares(&mut learner, SECOND, 32, load);
            assert!(shares[best as usize] > 0.9, "{best:?} {shares:?}");
        }
    }

    #[test]
    fn a_way_that_another_has_beaten_is_tried_again_soon_and_may_win_for_good() {
        let mut learner = Learner::new(false);
        let sleeps: Load = |way| if way == Way::Sleep { (600_000, 600) } else { (50_000, 300) };
        shares(&mut learner, SECOND, 32, sleeps);
        while learner.way() != Way::Yield {
            shares(&mut learner, EPOCH, 32, sleeps);
        }
        // The others were idle for a moment.
        shares(&mut learner, EPOCH, 32, |_| (900_000, 300));
        let ways: Vec<Way> = (0..40)
            .map(|_| {
                let way = learner.way();
                shares(&mut learner, EPOCH, 32, sleeps);
                way
            })
            .collect();
        let first = [Way::Yield, Way::Sleep, Way::Sleep, Way::Yield];
        assert!(ways.starts_with(&first) && ways[4..].iter().all(|way| *way == Way::Sleep), "{ways:?}");
    }

    #[test]
    fn lone_requests_are_polled_for_and_never_yielded_for_also_after_groups() {
        let load: Load = |_| (60_000, 600);
        for (polls, usual) in [(true, Way::Poll), (false, Way::Sleep)] {
            let mut learner = Learner::new(polls);
            assert!((shares(&mut learner, SECOND, 1, load)[usual as usize] - 1.0).abs() < 1e-9);
            shares(&mut learner, SECOND, 32, load);
            let shares = shares(&mut learner, SECOND, GROUP - 1, load);
            assert!(shares[usual as usize] > 0.98, "{shares:?}");
        }
    }

    #[test]
    fn loops_wait_in_one_way_by_what_they_do_together() {
        let ways = Ways::new(2, Span::ZERO);
        let tell = |number: usize, waits, served| {
            ways.told[number].waits.store(waits, Ordering::Relaxed);
            ways.told[number].served.store(served, Ordering::Relaxed);
        };
        assert_eq!(ways.way(Time::ZERO), Way::Sleep);
        // One has groups of 7, the other none: together they have groups of 4.
        tell(0, 100, 100);
        tell(1, 100, 700);
        assert_eq!(ways.way(Time::ZERO + EPOCH - Span::ps(1)), Way::Sleep);
        assert_eq!(ways.way(Time::ZERO + EPOCH), Way::Yield);
        tell(0, 200, 100);
        assert_eq!(ways.way(Time::ZERO + EPOCH * 2), Way::Sleep);
    }

    #[test]
    fn an_event_and_a_timeout_end_each_way() {
        const WAKER: Token = Token(3);
        let mut poll = Poll::new().expect("there are queues");
        let waker = Waker::new(poll.registry(), WAKER).expect("there are wakers");
        let mut events = Events::with_capacity(4);
        for way in Way::ALL {
            let mut waiting = waiting(LONGEST);
            waiting.span = LONGEST;
            waiting.ways.until.store(u64::MAX, Ordering::Relaxed);
            waiting.ways.way.store(way as u8, Ordering::Relaxed);
            waker.wake().expect("it wakes");
            waiting.wait(&mut poll, &mut events, None, 0).expect("it waits");
            assert_eq!(events.iter().map(|event| event.token()).collect::<Vec<_>>(), [WAKER], "{way:?}");
            waiting.wait(&mut poll, &mut events, Some(Duration::from_millis(2)), 0).expect("it waits");
            assert!(events.is_empty(), "{way:?}");
        }
    }
}
