//! The queue returns the same as a sorted map of (time, order of insertion), for any interleaving.

use base::{Seed, Span, Time};
use kernel::{EventQueue, Prefetcher, Soon};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// The queue and its model; every result is compared.
#[derive(Default)]
struct Pair {
    queue: EventQueue<u64>,
    model: BTreeMap<(Time, u64), ()>,
    pending: BTreeSet<u64>,
    pushed: u64,
    /// Whether pops show events ahead of time.
    prefetches: bool,
}

/// Checks that all events shown are pending.
struct Pending<'a> {
    events: &'a BTreeSet<u64>,
    all: Cell<bool>,
}

impl Prefetcher<u64> for Pending<'_> {
    fn prefetch(&self, _: Soon, event: &u64) {
        self.all.set(self.all.get() && self.events.contains(event));
    }
}

/// An operation on a queue. Delays are in picoseconds.
#[derive(Clone, Debug)]
enum Step {
    /// Pushes one event after this delay.
    Push(u64),
    /// Repeats: push a separate event due after the first delay, push another after the second, and
    /// pop.
    Aside { count: usize, delays: [u64; 2] },
    /// Pushes `count` events, the first after `delay`, each `gap` after the previous one; a gap of
    /// zero makes ties.
    Burst { count: u64, delay: u64, gap: u64 },
    /// Pops this many times.
    Pop(usize),
    /// Repeats: pop, and push two events after these delays while `grow` is set, else one.
    Hold { count: usize, delays: [u64; 2], grow: bool },
    /// Pops until the queue is empty.
    Drain,
}

impl Pair {
    fn push(&mut self, at: Time) {
        self.queue.push(at, self.pushed);
        self.note(at);
    }
    fn push_aside(&mut self, at: Time) {
        self.queue.push_aside(at, self.pushed);
        self.note(at);
    }
    fn note(&mut self, at: Time) {
        self.model.insert((at, self.pushed), ());
        self.pending.insert(self.pushed);
        self.pushed += 1;
    }
    /// Nothing can be pushed past the end of time: such an event is pushed at the last moment.
    fn push_after(&mut self, delay: u64) {
        self.push(self.after(delay));
    }
    fn after(&self, delay: u64) -> Time {
        self.queue.now().checked_add(Span::ps(delay)).unwrap_or(Time::MAX)
    }
    fn pop(&mut self) -> Result<bool, TestCaseError> {
        let expected = self.model.pop_first().map(|(key, ())| key);
        prop_assert_eq!(self.queue.peek_time(), expected.map(|(at, _)| at));
        let prefetcher = Pending { events: &self.pending, all: Cell::new(true) };
        let popped = if self.prefetches { self.queue.pop_prefetching(&prefetcher) } else { self.queue.pop() };
        prop_assert!(prefetcher.all.get(), "an event that is not pending was shown");
        prop_assert_eq!(popped, expected);
        if let Some((_, event)) = popped {
            self.pending.remove(&event);
        }
        prop_assert_eq!(self.queue.len(), self.model.len());
        prop_assert_eq!(self.queue.is_empty(), self.model.is_empty());
        if let Some((at, _)) = expected {
            prop_assert_eq!(self.queue.now(), at);
        }
        Ok(expected.is_some())
    }
    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Push(delay) => self.push_after(delay),
            Step::Aside { count, delays } => self.asides(count, delays)?,
            Step::Burst { count, delay, gap } => {
                (0..count).for_each(|n| self.push_after(delay.saturating_add(n.saturating_mul(gap))));
            }
            Step::Pop(count) => self.pops(count)?,
            Step::Hold { count, delays, grow } => self.hold(count, delays, grow)?,
            Step::Drain => while self.pop()? {},
        }
        Ok(())
    }
    fn pops(&mut self, count: usize) -> Result<(), TestCaseError> {
        (0..count).try_for_each(|_| self.pop().map(|_| ()))
    }
    fn asides(&mut self, count: usize, delays: [u64; 2]) -> Result<(), TestCaseError> {
        for _ in 0..count {
            self.push_aside(self.after(delays[0]));
            self.push_after(delays[1]);
            self.pop()?;
        }
        Ok(())
    }
    fn hold(&mut self, count: usize, delays: [u64; 2], grow: bool) -> Result<(), TestCaseError> {
        for n in 0..count {
            self.pop()?;
            self.push_after(delays[n % 2]);
            if grow {
                self.push_after(delays[(n + 1) % 2].wrapping_mul(n as u64) >> 8);
            }
        }
        Ok(())
    }
}

/// Delays of every scale: zero, a few picoseconds, and every power of two up to the whole range.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        2 => 0u64..20,
        6 => (0u32..45, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1)),
        1 => (0u32..64, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => delay().prop_map(Step::Push),
        4 => (1usize..30, [delay(), delay()]).prop_map(|(count, delays)| Step::Aside { count, delays }),
        3 => (1u64..400, delay(), prop_oneof![Just(0), delay()])
            .prop_map(|(count, delay, gap)| Step::Burst { count, delay, gap: gap >> 6 }),
        6 => (1usize..60).prop_map(Step::Pop),
        2 => (1usize..1500, [delay(), delay()], any::<bool>())
            .prop_map(|(count, delays, grow)| Step::Hold { count, delays, grow }),
        1 => Just(Step::Drain),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn any_interleaving_comes_out_by_time_and_then_by_order_of_arrival(
        steps in prop::collection::vec(step(), 1..40),
        prefetches: bool,
    ) {
        let mut pair = Pair { prefetches, ..Pair::default() };
        steps.into_iter().try_for_each(|step| pair.step(step))?;
        pair.step(Step::Drain)?;
    }

    /// Times from a small set, so that most events tie, with ties in every stage of the queue.
    #[test]
    fn ties_stay_in_order_on_every_level(
        times in prop::collection::vec(delay(), 1..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, any::<bool>()), 1..3000),
        prefetches: bool,
    ) {
        let mut pair = Pair { prefetches, ..Pair::default() };
        for (pick, pops, aside) in picks {
            let at = Time::ps(times[pick.index(times.len())]).max(pair.queue.now());
            if aside { pair.push_aside(at) } else { pair.push(at) }
            pair.pops(usize::from(pops) / 2)?;
        }
        pair.step(Step::Drain)?;
    }
}

/// Pops everything and returns the payloads.
fn drain(queue: &mut EventQueue<u64>) -> Vec<u64> {
    std::iter::from_fn(|| queue.pop()).map(|(_, payload)| payload).collect()
}

#[test]
fn an_event_pushed_for_now_comes_after_those_that_were_pending_for_now() {
    let mut queue = EventQueue::new();
    (0..3).for_each(|payload| queue.push(Time::us(1), payload));
    queue.push(Time::us(2), 9);
    assert_eq!(queue.pop(), Some((Time::us(1), 0)));
    queue.push(queue.now(), 3);
    queue.push(queue.now(), 4);
    assert_eq!(drain(&mut queue), [1, 2, 3, 4, 9]);
}

#[test]
fn a_chain_of_immediate_events_runs_as_long_as_it_likes_before_time_goes_on() {
    let mut queue = EventQueue::new();
    queue.push(Time::us(1), 0);
    queue.push(Time::us(1) + Span::ps(1), u64::MAX);
    for payload in 0..100_000 {
        assert_eq!(queue.pop(), Some((Time::us(1), payload)));
        queue.push(queue.now(), payload + 1);
    }
    assert_eq!(drain(&mut queue), [100_000, u64::MAX]);
}

#[test]
fn an_event_pushed_from_afar_comes_before_one_pushed_for_the_same_time_from_nearby() {
    let mut queue = EventQueue::new();
    let far = Time::secs(3);
    queue.push(far, 0);
    for (payload, at) in [(1, Time::secs(1)), (2, Time::secs(2)), (3, far - Span::us(1)), (4, far - Span::ps(1))] {
        queue.push(at, payload + 10);
        assert_eq!(queue.pop(), Some((at, payload + 10)));
        queue.push(far, payload);
    }
    assert_eq!(drain(&mut queue), [0, 1, 2, 3, 4]);
}

#[test]
fn ties_stay_in_order_when_slots_change_their_width() {
    let mut queue = EventQueue::new();
    let tie = Time::ms(1);
    let mut expected = Vec::new();
    for payload in 0..50_000 {
        queue.push(tie, payload);
        expected.push(payload);
        queue.push(queue.now() + Span::ps(1 + payload % 7), u64::MAX);
        assert_eq!(queue.pop().map(|(_, payload)| payload), Some(u64::MAX));
    }
    assert!(queue.statistics().retunes > 1, "the width never changed: {:?}", queue.statistics());
    assert_eq!(drain(&mut queue), expected);
}

#[test]
fn the_last_moments_of_time_can_be_used() {
    let mut queue = EventQueue::new();
    let last = Time::MAX - Span::ps(1);
    for (payload, at) in [last, Time::ZERO, Time::MAX, last, Time::MAX].into_iter().enumerate() {
        queue.push(at, payload as u64);
    }
    assert_eq!(drain(&mut queue), [1, 0, 3, 2, 4]);
    queue.push(Time::MAX, 5);
    assert_eq!(queue.pop(), Some((Time::MAX, 5)));
}

#[test]
#[should_panic(expected = "an event was scheduled in the past: at 999999 ps, but it is 1000000 ps already")]
fn an_event_in_the_past_is_a_broken_invariant() {
    let mut queue = EventQueue::new();
    queue.push(Time::us(1), ());
    queue.pop();
    queue.push(Time::us(1) - Span::ps(1), ());
}

#[test]
fn peeking_changes_nothing() {
    let mut queue = EventQueue::new();
    assert_eq!(queue.peek_time(), None);
    queue.push(Time::secs(5), 1);
    assert_eq!(queue.peek_time(), Some(Time::secs(5)));
    queue.push(Time::ns(5), 0);
    assert_eq!((queue.peek_time(), queue.now(), queue.len()), (Some(Time::ns(5)), Time::ZERO, 2));
    assert_eq!(drain(&mut queue), [0, 1]);
}

#[test]
fn a_cleared_queue_is_as_good_as_new() {
    let mut queue = EventQueue::with_capacity(10);
    (0..5_000).for_each(|payload| queue.push(Time::ns(payload * payload), payload));
    assert_eq!((0..2_000).filter_map(|_| queue.pop()).count(), 2_000);
    queue.clear();
    assert_eq!((queue.len(), queue.now(), queue.pop()), (0, Time::ZERO, None));
    (0..5_000).for_each(|payload| queue.push(Time::ns(5_000 - payload), payload));
    assert!(drain(&mut queue).into_iter().eq((0..5_000).rev()));
}

/// A thousand events on hold: on average one is due every thousandth of the mean delay.
#[test]
fn the_width_of_a_slot_follows_the_events_to_any_time_scale() {
    let mut queue = EventQueue::new();
    let mut stream = Seed(1).stream("delays");
    for mean_ps in [1e6, 1e12, 1e4, 1e9] {
        drain(&mut queue);
        let start = queue.now();
        (0..1_000).for_each(|payload| queue.push(start, payload));
        for _ in 0..40_000 {
            let (now, payload) = queue.pop().expect("as many go in as come out");
            queue.push(now + Span::from_ps_f64(stream.exponential(mean_ps)), payload);
        }
        let events_per_slot = queue.statistics().slot_width.as_ps() as f64 / (mean_ps / 1_000.0);
        assert!((0.2..16.0).contains(&events_per_slot), "{events_per_slot} events a slot at a mean of {mean_ps} ps");
    }
}
