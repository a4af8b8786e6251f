//! When a drive collects garbage: one rule for a drive at rest, under load and in preparation.
//!
//! Each die holds a fixed *reserve* of space ([`SolidStateConfig::reserve_units`]): erased blocks,
//! the empty part of open blocks, and the emptied part of the victim. A page that the host programs
//! on a die consumes space, and the collector then owes the steps that restore it. Each step starts
//! when the previous one has ended, so requests run in between. Steps still owed when the host
//! programs another page of the die run at once; otherwise a die with a long queue would run out of
//! free blocks. The space of a die thus stays within two pages of its reserve under any load, the
//! rest holds data, and collection has exactly the requested over-provisioning.
//!
//! Rejected: two thresholds between which a die collected. The average space of a die then depended
//! on load and preparation, and with few blocks a die it was most of the over-provisioning (970-pro
//! with 64 blocks: write amplification 183 instead of 7.8).
//!
//! [`SolidStateConfig::reserve_units`]: super::config::SolidStateConfig::reserve_units

use super::report::Observed;
use crate::ssd::array::FlashArray;
use crate::ssd::geometry::DieId;
use crate::ssd::volume::{CollectStep, Volume};
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which dies owe steps of collection, and when each takes its next one.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    /// Units that each die keeps room for.
    reserve: u64,
    /// How far its room may be below that before steps are taken at once: a page.
    grace: u64,
    /// At most one entry a die; equal times are taken in the order of dies.
    due: BinaryHeap<Reverse<(Time, DieId)>>,
    is_due: Vec<bool>,
}

/// What the steps of collection work on.
pub(super) struct Work<'a> {
    pub(super) array: &'a mut FlashArray,
    pub(super) volume: &'a mut Volume,
    pub(super) observed: &'a mut Observed,
}

impl Work<'_> {
    fn step(&mut self, now: Time, die: DieId) -> CollectStep {
        let step = self.volume.collect_step(now, self.array, Some(die));
        self.observed.collection(&step);
        step
    }
}

impl Collector {
    /// Of dies that each keep room for `reserve` units, in pages of `grace` units.
    pub(super) fn new(reserve: u64, grace: u64, dies: usize) -> Collector {
        Collector { reserve, grace, due: BinaryHeap::with_capacity(dies), is_due: vec![false; dies] }
    }
    /// Returns the time at which the next step is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }
    /// Takes the step that is due next, at its time, if it is still owed.
    pub(super) fn step(&mut self, mut work: Work) {
        let Some(Reverse((at, die))) = self.due.pop() else { return };
        self.is_due[die.0 as usize] = false;
        if work.volume.layer.room_of(die) < self.reserve
            && let Some(end) = work.step(at, die).end()
        {
            self.make_due(end, die);
        }
    }
    /// The host programs a page of a die.
    pub(super) fn host_programs(&mut self, now: Time, die: DieId, mut work: Work) {
        while work.volume.layer.room_of(die) + self.grace < self.reserve && work.step(now, die) != CollectStep::Nothing
        {
        }
        if work.volume.layer.room_of(die) < self.reserve {
            self.make_due(now, die);
        }
    }
    /// The same without taking time: all that is owed at once.
    pub(super) fn host_programs_untimed(&self, die: DieId, volume: &mut Volume) {
        while volume.layer.room_of(die) < self.reserve && volume.collect_step_untimed(die) {}
    }
    /// Collects the best victim now, all of it; its die is taken until that is done. Returns
    /// whether a block was erased.
    pub(super) fn collect_at_once(&mut self, now: Time, mut work: Work) -> bool {
        let Some(victim) = work.volume.layer.victim(None) else { return false };
        let die = work.array.geometry().die_of(victim);
        work.observed.forced_collections += 1;
        loop {
            match work.step(now, die) {
                CollectStep::Erased { .. } => return true,
                CollectStep::Nothing => return false,
                CollectStep::Read(_) | CollectStep::Programmed(_) => {}
            }
        }
    }
    /// Forgets what is underway.
    pub(super) fn rest(&mut self) {
        self.due.clear();
        self.is_due.fill(false);
    }

    fn make_due(&mut self, at: Time, die: DieId) {
        if !std::mem::replace(&mut self.is_due[die.0 as usize], true) {
            self.due.push(Reverse((at, die)));
        }
    }
}
