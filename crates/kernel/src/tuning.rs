//! The width of slots, derived from their occupancy, or from a sample of the pending events.
//!
//! The target is four different times per slot. With fewer, time is spent on empty slots; with
//! more, on sorting. (Five events are a cache line; two per slot were measured 3 to 10 % slower on
//! every rack.) Ties count once, because they are stored in order. A long idle stretch counts as
//! [`STEPS_MAX`] slots, so that it does not hide the density of busy stretches.

use crate::slab::{Due, SHIFT_MAX};
use crate::wheel::Geometry;

/// Initial width: slots of 16 ns.
pub(crate) const FIRST_SHIFT: u32 = 14;
/// At least 2 ps, so that "one slot after the last" is still a number, and at most 4.3 ms.
const SHIFTS: std::ops::RangeInclusive<u32> = 1..=SHIFT_MAX;
/// From 1024 slots (4 KiB) to 32,768 (128 KiB): the ring and its events stay in the cache. With a
/// million pending, a ring for all of them (two million slots) was measured at 145 ns a hold, this
/// one at 60: most events then wait in the far future's chunks.
const SLOTS_LOGS: std::ops::RangeInclusive<u32> = 10..=15;
const STEPS_MAX: u64 = 32;
/// Minimum number of observed times for a decision.
const WINDOW_MIN: u64 = 2048;
const SAMPLES: usize = 256;

/// The occupancy of slots since the last decision.
#[derive(Default)]
pub(crate) struct Occupancy {
    /// Number of slots passed.
    steps: u64,
    /// Number of different times in them.
    times: u64,
}

impl Occupancy {
    /// Records that the ring advanced by `steps` slots, with `times` different times in the last of
    /// them.
    #[inline]
    pub(crate) fn reached(&mut self, steps: u64, times: usize) {
        self.steps += steps.min(STEPS_MAX);
        self.times += times as u64;
    }
    /// Records that one more event joined the ready slot.
    #[inline]
    pub(crate) fn joined(&mut self) {
        self.times += 1;
    }
    /// Returns whether there are enough observations for a decision about `pending` events: sorting
    /// them again must be cheap in comparison.
    #[inline]
    pub(crate) fn is_known(&self, pending: usize) -> bool {
        self.times >= WINDOW_MIN.max(pending as u64)
    }
    /// Returns the shift that would put four times into each slot. The present one is kept while
    /// there are between 0.7 and eight: load varies, and such slots cost little more than the best
    /// ones. Fuller ones cost more bundles and more comparisons.
    pub(crate) fn wanted_shift(&self, shift: u32) -> u32 {
        let (steps, times) = (self.steps.max(1) as f64, self.times.max(1) as f64);
        let off_by = (4.0 * steps / times).log2();
        if (-1.0..=2.5).contains(&off_by) {
            return shift;
        }
        shift.saturating_add_signed(off_by.round() as i32).clamp(*SHIFTS.start(), *SHIFTS.end())
    }
}

/// Returns the size of the ring for `pending` events. With four per slot, it spans at least eight
/// mean delays, so that few events pass through the far future, as long as the largest ring
/// suffices.
pub(crate) fn wanted_slots_log(pending: usize) -> u32 {
    (pending.max(1).ilog2() + 2).clamp(*SLOTS_LOGS.start(), *SLOTS_LOGS.end())
}

/// Returns whether the ring is much too small or much too large for `pending` events.
pub(crate) fn is_ill_sized(geometry: Geometry, pending: usize) -> bool {
    let wanted = wanted_slots_log(pending);
    wanted > geometry.slots_log || wanted + 3 <= geometry.slots_log
}

/// Estimates the shift for four events per slot from a sample of all pending events. It uses the
/// mean gap in the earliest eighth, because later events are sparser. Returns `None` if every event
/// is due now.
pub(crate) fn guessed_shift<E>(pending: &[Due<E>], now: u64) -> Option<u32> {
    let every = pending.len().div_ceil(SAMPLES).max(1);
    let mut samples = [0; SAMPLES];
    let mut len = 0;
    for (sample, due) in samples.iter_mut().zip(pending.iter().step_by(every)) {
        *sample = due.at;
        len += 1;
    }
    let times = &mut samples[..len];
    times.sort_unstable();
    let rank = times.iter().position(|at| *at > now)?.max(times.len() / 8);
    let gap = (times[rank] - now) / ((rank + 1) * every) as u64;
    Some((gap.saturating_mul(6)).max(1).ilog2().clamp(*SHIFTS.start(), *SHIFTS.end()))
}
