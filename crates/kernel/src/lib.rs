//! The deterministic event queue of the simulator.
//!
//! # Design
//!
//! Events are in one of three stages, by how soon they are due; each stage feeds the one before it.
//!
//! * **ready**: the slot reached last, sorted. Pops take events from here.
//! * **wheel**: the near future, a ring of slots of `2^k` picoseconds with about four different
//!   times each. A bitmap finds the next occupied slot. Each slot links to its events, in bundles
//!   of a cache line.
//! * **far**: everything beyond the ring, a radix heap by blocks of slots.
//!
//! Bundles on the wheel are in one table and linked by index; events beyond it are in reused
//! chunks. A queue that has reached its size therefore allocates nothing. Every stage keeps events
//! of equal time in order of insertion. Events carry no sequence number for that; only a slot too
//! full to sort or insert in place assigns some.
//!
//! The width of a slot adapts to the events. It is estimated from a sample when the queue outgrows
//! its ring, and corrected when slots are too full or too empty. It affects the speed of the queue,
//! never its results.
//!
//! # Rejected alternatives
//!
//! `bench` has the figures of this queue. Per hold, a binary heap took 79 ns at 10,000 pending
//! events and 817 ns at a million. A 4-ary heap took 60 and 492 ns, a radix heap alone 48 and 60
//! ns, and a calendar queue 51 and 169 ns. A wheel of fixed width is as fast, but only at the time
//! scale for which it was made.

mod bitmap;
mod chunks;
mod far;
mod ready;
mod slab;
mod tuning;
mod wheel;

use base::{Span, Time};
use far::Far;
use ready::Ready;
use slab::{Due, Slab};
use tuning::Occupancy;
use wheel::{BLOCKS, Geometry, Wheel};

/// Pending events in order of time; ties in order of insertion.
///
/// Events are copied in and out, so they should be small: an index or a few words. Any time from
/// [`now`](Self::now) to [`Time::MAX`] may be used.
pub struct EventQueue<E> {
    now: Time,
    /// The first slot not reached yet; events in earlier ones are ready.
    cursor: u64,
    ready: Ready<E>,
    wheel: Wheel,
    far: Far<E>,
    slab: Slab<E>,
    /// One event kept separately: see [`push_aside`](Self::push_aside).
    aside: Option<E>,
    /// Its time; [`NEVER`] if there is none.
    aside_at: u64,
    /// Empty except while the ring is reshaped; kept so that reshaping does not allocate either.
    in_transit: Vec<Due<E>>,
    occupancy: Occupancy,
    /// If more events than this are pending, the ring is too small and its slots are likely too
    /// wide.
    roomy_up_to: usize,
    pushed: u64,
    popped: u64,
    retunes: u64,
}

/// How soon an event will be popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soon {
    /// After a few other events.
    Later,
    /// After two other events.
    Shortly,
    /// Next, unless an earlier one is pushed.
    Next,
}

/// Receives events before they are due.
pub trait Prefetcher<E> {
    /// Called for an event that will be popped soon, unless an earlier one is pushed.
    fn prefetch(&self, soon: Soon, event: &E);
}

/// Later than the time of any separate event.
const NEVER: u64 = u64::MAX;

/// Number of events that a prefetching driver keeps ready.
const AHEAD: usize = 5;
/// Maximum distance, in slots, of a slot that is made ready for that: events pushed before it would
/// have to be inserted.
const CLOSE: u64 = 8;

/// Counters of a queue, to explain its speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Number of pushed events.
    pub pushed: u64,
    /// Number of popped events.
    pub popped: u64,
    /// Number of times that all pending events were sorted into slots of another width or number.
    pub retunes: u64,
    /// The present width of a slot.
    pub slot_width: Span,
    /// The present number of slots.
    pub slots: usize,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// Creates an empty queue at time zero.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }
    /// Creates an empty queue at time zero with room for `pending` events; it grows if necessary.
    pub fn with_capacity(pending: usize) -> Self {
        let geometry = Geometry { shift: tuning::FIRST_SHIFT, slots_log: tuning::wanted_slots_log(pending) };
        EventQueue {
            now: Time::ZERO,
            cursor: 0,
            ready: Ready::new(),
            wheel: Wheel::new(geometry),
            far: Far::new(BLOCKS),
            slab: Slab::with_capacity(pending),
            aside: None,
            aside_at: NEVER,
            in_transit: Vec::new(),
            occupancy: Occupancy::default(),
            roomy_up_to: 0,
            pushed: 0,
            popped: 0,
            retunes: 0,
        }
    }
    /// Adds `event` at `at`, behind all events that are pending for the same time.
    ///
    /// # Panics
    /// When `at` is before [`now`](Self::now): an effect would precede its cause.
    pub fn push(&mut self, at: Time, event: E) {
        if at < self.now {
            scheduled_in_the_past(at, self.now);
        }
        // The separate event was pushed first.
        if at.as_ps() == self.aside_at {
            self.file_aside();
        }
        self.pushed += 1;
        self.file(at.as_ps(), event);
    }
    /// Adds an event like [`push`](Self::push), in the same order. For one event that is nearly
    /// always pending, such as the next arrival of a load. It is kept separately as long as
    /// possible, which is cheaper. Only one event can be separate: while there is one, and at
    /// [`Time::MAX`], this is [`push`](Self::push).
    ///
    /// # Panics
    /// As [`push`](Self::push) does.
    #[inline]
    pub fn push_aside(&mut self, at: Time, event: E) {
        if self.aside.is_some() || at.as_ps() == NEVER || at < self.now {
            return self.push(at, event);
        }
        self.pushed += 1;
        (self.aside, self.aside_at) = (Some(event), at.as_ps());
    }
    /// Inserts the separate event among the others, behind those of the same time, which were
    /// pushed before it.
    #[cold]
    #[inline(never)]
    fn file_aside(&mut self) {
        if let Some(due) = self.take_aside() {
            self.file(due.at, due.event);
        }
    }
    #[inline]
    fn take_aside(&mut self) -> Option<Due<E>> {
        let at = std::mem::replace(&mut self.aside_at, NEVER);
        self.aside.take().map(|event| Due { at, event })
    }
    /// Inserts an event into its stage.
    #[inline(always)]
    fn file(&mut self, at: u64, event: E) {
        if self.wheel.geometry().slot(at) < self.cursor {
            self.push_ready(at, event);
        } else {
            self.file_ahead(at, event);
        }
    }
    #[inline(always)]
    fn file_ahead(&mut self, at: u64, event: E) {
        if self.wheel.geometry().block(at) < self.far.next_block() {
            self.wheel.push(&mut self.slab, at, event);
        } else {
            self.push_far(at, event);
        }
    }
    /// Separate, so that the common case of a push stays short.
    #[inline(never)]
    fn push_far(&mut self, at: u64, event: E) {
        self.far.push(self.wheel.geometry(), Due { at, event });
    }
    /// Adds an event to the ready slot, and narrows slots if they prove far too wide.
    #[inline(never)]
    fn push_ready(&mut self, at: u64, event: E) {
        let is_new_time = self.ready.push(at, event) && at > self.now.as_ps();
        if is_new_time {
            self.occupancy.joined();
            if self.occupancy.is_known(self.len()) {
                self.correct_width();
            }
        }
    }
    /// Removes the earliest event and advances [`now`](Self::now) to its time.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let entry = match self.ready.pop_until(self.aside_at) {
            Some(entry) => entry,
            None => self.pop_next()?,
        };
        self.now = Time::ps(entry.at);
        self.popped += 1;
        Some((self.now, entry.event))
    }
    /// Pops like [`pop`](Self::pop), and shows `prefetcher` events that will pop soon, so that the
    /// caller can prefetch their memory. It shows most events once in each state of [`Soon`]. Late
    /// and isolated events appear in fewer states.
    #[inline]
    pub fn pop_prefetching(&mut self, prefetcher: &impl Prefetcher<E>) -> Option<(Time, E)> {
        if self.ready.left() < AHEAD {
            self.reach_further(prefetcher);
        }
        let popped = self.pop()?;
        if let Some(next) = self.ready.ahead(0) {
            prefetcher.prefetch(Soon::Next, next);
        }
        if let Some(later) = self.ready.ahead(2) {
            prefetcher.prefetch(Soon::Shortly, later);
        }
        Some(popped)
    }
    /// Makes one more slot ready, if the next occupied one is close and events are still ready.
    #[inline(never)]
    fn reach_further(&mut self, prefetcher: &impl Prefetcher<E>) {
        if self.ready.left() == 0 {
            return;
        }
        let Some(slot) = self.wheel.next_occupied(self.cursor) else { return };
        if slot - self.cursor < CLOSE {
            self.reach(slot);
            self.ready.newest_batch().for_each(|event| prefetcher.prefetch(Soon::Later, event));
        }
        if let Some(slot) = self.wheel.next_occupied(self.cursor) {
            self.slab.prefetch_elder(self.wheel.chain(slot));
            if let Some(after) = self.wheel.next_occupied(slot + 1) {
                self.slab.prefetch(self.wheel.chain(after));
            }
        }
    }
    /// Returns the time of the earliest event, which stays pending.
    pub fn peek_time(&self) -> Option<Time> {
        let earliest = self.ready.earliest().or_else(|| self.earliest_on_wheel());
        let earliest = earliest.or_else(|| self.far.earliest().map(|(_, at)| at));
        let aside = self.aside.map(|_| self.aside_at);
        earliest.into_iter().chain(aside).min().map(Time::ps)
    }
    fn earliest_on_wheel(&self) -> Option<u64> {
        let slot = self.wheel.next_occupied(self.cursor)?;
        self.slab.times(self.wheel.chain(slot), self.wheel.geometry().start(slot)).min()
    }
    /// Returns the time of the last popped event.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }
    /// Returns the number of pending events.
    #[inline]
    pub fn len(&self) -> usize {
        (self.pushed - self.popped) as usize
    }
    /// Returns whether no event is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pushed == self.popped
    }
    /// Removes all pending events and resets the time to zero. Keeps memory and slot width for the
    /// next use; counters restart.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.wheel.clear();
        self.slab.clear();
        self.far.restart(BLOCKS);
        (self.aside, self.aside_at) = (None, NEVER);
        self.occupancy = Occupancy::default();
        (self.now, self.cursor, self.roomy_up_to) = (Time::ZERO, 0, 0);
        (self.pushed, self.popped, self.retunes) = (0, 0, 0);
    }
    /// Returns the counters of the queue.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            pushed: self.pushed,
            popped: self.popped,
            retunes: self.retunes,
            slot_width: Span::ps(1 << self.wheel.geometry().shift),
            slots: self.wheel.geometry().slots(),
        }
    }
}

#[cold]
#[inline(never)]
fn scheduled_in_the_past(at: Time, now: Time) -> ! {
    panic!("an event was scheduled in the past: at {} ps, but it is {} ps already", at.as_ps(), now.as_ps());
}

/// Advancing the ring.
impl<E: Copy> EventQueue<E> {
    /// Removes the earliest event if it is the separate one or no event is ready. Returns `None` if
    /// none is pending.
    fn pop_next(&mut self) -> Option<Due<E>> {
        if self.aside.is_some() && self.aside_is_next() {
            return self.take_aside();
        }
        self.reach_next_slot()?;
        self.ready.pop_until(self.aside_at).or_else(|| self.take_aside())
    }
    /// Returns whether the separate event precedes all others. No ready event may be due before it.
    /// If it is beyond the wheel, where the order is unknown, it is inserted among the others.
    fn aside_is_next(&mut self) -> bool {
        let geometry = self.wheel.geometry();
        let slot = geometry.slot(self.aside_at);
        if !self.ready.is_empty() || slot < self.cursor {
            return true;
        }
        if geometry.block(self.aside_at) < self.far.next_block() {
            return self.wheel.next_occupied(self.cursor).is_none_or(|next| next > slot);
        }
        self.file_aside();
        false
    }
    /// Makes the earliest slot ready, or returns `None` if no event is pending.
    fn reach_next_slot(&mut self) -> Option<()> {
        if self.is_empty() {
            return None;
        }
        self.retune_if_due();
        let slot = self.wheel.next_occupied(self.cursor).or_else(|| self.bring_far_slot())?;
        self.reach(slot);
        Some(())
    }
    /// Refills the empty wheel from the far future, and returns its first occupied slot.
    fn bring_far_slot(&mut self) -> Option<u64> {
        let geometry = self.wheel.geometry();
        let block = self.far.skip_empty_blocks(geometry)?;
        self.far.advance(&mut self.slab, &mut self.wheel, block + 1);
        self.wheel.next_occupied(geometry.first_slot(block))
    }
    #[inline(always)]
    fn reach(&mut self, slot: u64) {
        let chain = self.wheel.take(slot);
        let times = self.ready.fill(&mut self.slab, chain, self.wheel.geometry().start(slot));
        self.occupancy.reached(slot + 1 - self.cursor, times);
        self.cursor = slot + 1;
        self.look_ahead();
    }
    /// Moves all events less than one turn ahead to the wheel. Each block is moved before any event
    /// is pushed to it directly, so far events, which were pushed earlier, stay in front.
    #[inline]
    fn look_ahead(&mut self) {
        let end = self.wheel.geometry().block_of_slot(self.cursor) + BLOCKS;
        if self.far.next_block() < end {
            self.far.advance(&mut self.slab, &mut self.wheel, end);
        }
    }
}

/// Reshaping the ring.
impl<E: Copy> EventQueue<E> {
    fn retune_if_due(&mut self) {
        if self.len() > self.roomy_up_to {
            self.reshape(None);
        } else if self.occupancy.is_known(self.len()) {
            self.correct_width();
        }
    }
    fn correct_width(&mut self) {
        let geometry = self.wheel.geometry();
        let shift = self.occupancy.wanted_shift(geometry.shift);
        self.occupancy = Occupancy::default();
        if shift != geometry.shift || tuning::is_ill_sized(geometry, self.len()) {
            self.reshape(Some(shift));
        }
    }
    /// Sorts all pending events into slots of width `2^shift`, or of a width estimated from a
    /// sample of them.
    fn reshape(&mut self, shift: Option<u32>) {
        self.take_all();
        let shift = shift.or_else(|| tuning::guessed_shift(&self.in_transit, self.now.as_ps()));
        let shift = shift.unwrap_or(self.wheel.geometry().shift);
        let geometry = Geometry { shift, slots_log: tuning::wanted_slots_log(self.len()) };
        self.wheel.reshape(geometry);
        self.cursor = geometry.slot(self.now.as_ps());
        self.far.restart(geometry.block_of_slot(self.cursor) + BLOCKS);
        let mut in_transit = std::mem::take(&mut self.in_transit);
        in_transit.drain(..).for_each(|due| self.file_ahead(due.at, due.event));
        self.in_transit = in_transit;
        self.occupancy = Occupancy::default();
        self.roomy_up_to = self.len().saturating_mul(4);
        self.retunes += 1;
    }
    /// Moves all pending events to `in_transit`; those of equal time keep their order.
    fn take_all(&mut self) {
        self.ready.take_all(&mut self.in_transit);
        self.wheel.take_all(&mut self.slab, self.cursor, &mut self.in_transit);
        self.far.take_all(&mut self.in_transit);
        self.slab.clear();
    }
}
