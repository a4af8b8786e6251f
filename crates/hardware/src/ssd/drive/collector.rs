//! When a drive collects garbage. Each die with few free blocks collects by itself until it has enough, in two ways at once:
//!
//! * by time: a step, and when it has ended the next one, so that an idle drive catches up;
//! * by the host's pace: with each page that the host programs on the die, as many steps as keep the victim's emptying level with what it
//!   will give. Without that a die with a long queue of programs would take its steps too late, and its free blocks would run out.

use super::config::CollectionConfig;
use super::report::Observed;
use crate::ssd::array::FlashArray;
use crate::ssd::geometry::DieId;
use crate::ssd::volume::{CollectStep, Volume};
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which dies collect, and when each takes its next step.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    config: CollectionConfig,
    /// At most one entry a die; equal times are taken in the order of dies.
    due: BinaryHeap<Reverse<(Time, DieId)>>,
    dies: Vec<DieState>,
}

/// What the steps of collection work on.
pub(super) struct Work<'a> {
    pub(super) array: &'a mut FlashArray,
    pub(super) volume: &'a mut Volume,
    pub(super) observed: &'a mut Observed,
}

#[derive(Clone, Copy, Debug, Default)]
struct DieState {
    is_collecting: bool,
    /// Whether it has an entry in the list of what is due.
    is_due: bool,
    pace: Option<Pace>,
}

/// How far a victim is emptied, and how far what it gives has been used.
#[derive(Clone, Copy, Debug)]
struct Pace {
    steps: u64,
    taken: u64,
    gain: u64,
    used: u64,
}

impl Collector {
    pub(super) fn new(config: CollectionConfig, dies: usize) -> Collector {
        Collector { config, due: BinaryHeap::with_capacity(dies), dies: vec![DieState::default(); dies] }
    }
    /// When the next step is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }
    /// Takes the step that is due next, at its time.
    pub(super) fn step(&mut self, work: Work) {
        let Some(Reverse((at, die))) = self.due.pop() else { return };
        self.dies[die.0 as usize].is_due = false;
        if self.dies[die.0 as usize].is_collecting
            && let Some(end) = self.take_step(at, die, work.array, work.volume, work.observed).end()
        {
            self.make_due(end, die);
        }
    }
    /// The host programs a page of a die, the first of its block or another.
    pub(super) fn host_programs(&mut self, now: Time, die: DieId, is_first: bool, work: Work) {
        if is_first
            && !self.dies[die.0 as usize].is_collecting
            && work.volume.layer.free_blocks_of(die) <= self.config.start
        {
            self.dies[die.0 as usize].is_collecting = true;
            self.make_due(now, die);
        }
        if self.dies[die.0 as usize].is_collecting {
            self.keep_pace(now, die, work);
        }
    }
    /// Collects the best victim now, all of it; its die is taken until that is done. Returns whether a block was erased.
    pub(super) fn collect_at_once(&mut self, now: Time, work: Work) -> bool {
        let Some(victim) = work.volume.layer.victim(None) else { return false };
        let die = work.array.geometry().die_of(victim);
        work.observed.forced_collections += 1;
        loop {
            match self.take_step(now, die, work.array, work.volume, work.observed) {
                CollectStep::Erased { .. } => return true,
                CollectStep::Nothing => return false,
                CollectStep::Read(_) | CollectStep::Programmed(_) => {}
            }
        }
    }
    /// Collects without taking time what a die needs after a block was opened.
    pub(super) fn collect_untimed(&self, die: DieId, volume: &mut Volume) {
        if volume.layer.free_blocks_of(die) <= self.config.start {
            while volume.layer.free_blocks_of(die) < self.config.stop && volume.collect_untimed(Some(die)) {}
        }
    }
    /// Forgets what is underway.
    pub(super) fn rest(&mut self) {
        self.due.clear();
        self.dies.fill(DieState::default());
    }

    fn keep_pace(&mut self, now: Time, die: DieId, work: Work) {
        let Some(pace) = self.pace_of(die, work.volume) else { return };
        pace.used += 1;
        while self.dies[die.0 as usize].pace.is_some_and(|pace| pace.is_behind()) {
            self.take_step(now, die, work.array, work.volume, work.observed);
        }
    }
    fn pace_of(&mut self, die: DieId, volume: &mut Volume) -> Option<&mut Pace> {
        let state = &mut self.dies[die.0 as usize];
        if state.pace.is_none() {
            state.pace = Pace::of_victim(die, volume);
        }
        state.pace.as_mut()
    }
    /// Takes a step, and sees whether that is enough.
    fn take_step(
        &mut self,
        now: Time,
        die: DieId,
        array: &mut FlashArray,
        volume: &mut Volume,
        observed: &mut Observed,
    ) -> CollectStep {
        let step = volume.collect_step(now, array, Some(die));
        observed.collection(&step);
        let state = &mut self.dies[die.0 as usize];
        if let Some(pace) = &mut state.pace {
            pace.taken += 1;
        }
        match step {
            CollectStep::Read(_) | CollectStep::Programmed(_) => return step,
            CollectStep::Erased { .. } => {
                state.pace = None;
                state.is_collecting &= volume.layer.free_blocks_of(die) < self.config.stop;
            }
            CollectStep::Nothing => *state = DieState { is_due: state.is_due, ..DieState::default() },
        }
        step
    }
    fn make_due(&mut self, at: Time, die: DieId) {
        if !std::mem::replace(&mut self.dies[die.0 as usize].is_due, true) {
            self.due.push(Reverse((at, die)));
        }
    }
}

impl Pace {
    /// That of a die's victim: its valid pages are read and programmed again, then it is erased; the rest of it is what it gives.
    fn of_victim(die: DieId, volume: &mut Volume) -> Option<Pace> {
        let victim = volume.layer.victim(Some(die))?;
        let geometry = volume.layer.config().geometry;
        let valid = u64::from(volume.layer.valid_units_of(victim)?);
        let pages = u64::from(geometry.pages_per_block);
        let programs = valid.div_ceil(u64::from(geometry.units_per_page()));
        let steps = valid.min(pages) + programs + 1;
        Some(Pace { steps, taken: 0, gain: pages.saturating_sub(programs).max(1), used: 0 })
    }
    fn is_behind(&self) -> bool {
        self.taken * self.gain < self.used * self.steps
    }
}
