//! How wide a slot should be: learned from how full the slots turn out, or from a sample of what is
//! pending.
//!
//! Four different times a slot is the aim: fewer, and empty slots are stepped over; more, and
//! sorting costs. (Five events are a cache line; two a slot were measured 3 to 10 % slower on every
//! rack.) Ties count once, for they come sorted. A long idle stretch counts as [`STEPS_MAX`] slots,
//! so that it does not hide how dense the busy stretches are.

use crate::slab::{Due, SHIFT_MAX};
use crate::wheel::Geometry;

/// A slot of 16 ns until something is known.
pub(crate) const FIRST_SHIFT: u32 = 14;
/// At least 2 ps, so that "one slot after the last" is still a number, and at most 4.3 ms.
const SHIFTS: std::ops::RangeInclusive<u32> = 1..=SHIFT_MAX;
/// From 1024 slots (4 KiB) to 32,768 (128 KiB): the ring and its events stay in the cache. With a
/// million pending, a ring for all of them (two million slots) was measured at 145 ns a hold, this
/// one at 60: most events then wait in the far future's chunks.
const SLOTS_LOGS: std::ops::RangeInclusive<u32> = 10..=15;
const STEPS_MAX: u64 = 32;
/// The fewest events from which anything is concluded.
const WINDOW_MIN: u64 = 2048;
const SAMPLES: usize = 256;

/// What the slots held since the last decision.
#[derive(Default)]
pub(crate) struct Occupancy {
    /// Slots that were passed.
    steps: u64,
    /// Different times that were found in them.
    times: u64,
}

impl Occupancy {
    /// The ring went on by `steps` slots and found `times` different times in the last of them.
    #[inline]
    pub(crate) fn reached(&mut self, steps: u64, times: usize) {
        self.steps += steps.min(STEPS_MAX);
        self.times += times as u64;
    }
    /// One more event joined the slot that is being worked off.
    #[inline]
    pub(crate) fn joined(&mut self) {
        self.times += 1;
    }
    /// Returns whether enough was seen for a decision about `pending` events: re-sorting them must
    /// stay cheap beside it.
    #[inline]
    pub(crate) fn is_known(&self, pending: usize) -> bool {
        self.times >= WINDOW_MIN.max(pending as u64)
    }
    /// The shift that would put four times into each slot; the present one while there are up to
    /// eight, or two in three slots: load comes in waves, and such slots cost little more than the
    /// best ones. Fuller ones cost more bundles and more comparisons.
    pub(crate) fn wanted_shift(&self, shift: u32) -> u32 {
        let (steps, times) = (self.steps.max(1) as f64, self.times.max(1) as f64);
        let off_by = (4.0 * steps / times).log2();
        if (-1.0..=2.5).contains(&off_by) {
            return shift;
        }
        shift.saturating_add_signed(off_by.round() as i32).clamp(*SHIFTS.start(), *SHIFTS.end())
    }
}

/// The size of the ring for that many events: with four a slot, it spans at least eight of their
/// mean delays, so that few events have to go by way of the far future, as long as the largest ring
/// is large enough.
pub(crate) fn wanted_slots_log(pending: usize) -> u32 {
    (pending.max(1).ilog2() + 2).clamp(*SLOTS_LOGS.start(), *SLOTS_LOGS.end())
}

/// Returns whether the ring is much too small or much too large for that many events.
pub(crate) fn is_ill_sized(geometry: Geometry, pending: usize) -> bool {
    let wanted = wanted_slots_log(pending);
    wanted > geometry.slots_log || wanted + 3 <= geometry.slots_log
}

/// The shift for four events a slot, guessed from a sample of all pending events: by the mean gap
/// in the earliest eighth, for what lies further is thinner. `None` when every event is due now.
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
