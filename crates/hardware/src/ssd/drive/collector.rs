//! When a drive collects garbage. Each die with few free blocks collects by itself, one step after the other, until it has enough.

use super::config::CollectionConfig;
use super::report::Observed;
use crate::ssd::array::FlashArray;
use crate::ssd::ftl::TranslationLayer;
use crate::ssd::geometry::DieId;
use crate::ssd::volume::{CollectStep, Volume};
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which dies collect, and when each takes its next step.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    config: CollectionConfig,
    /// One entry a collecting die; equal times are taken in the order of dies.
    due: BinaryHeap<Reverse<(Time, DieId)>>,
    is_collecting: Vec<bool>,
}

impl Collector {
    pub(super) fn new(config: CollectionConfig, dies: usize) -> Collector {
        Collector { config, due: BinaryHeap::with_capacity(dies), is_collecting: vec![false; dies] }
    }
    /// When the next step is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }
    /// A die has a free block fewer.
    pub(super) fn block_opened(&mut self, now: Time, die: DieId, layer: &TranslationLayer) {
        let is_collecting = &mut self.is_collecting[die.0 as usize];
        if !*is_collecting && layer.free_blocks_of(die) <= self.config.start {
            *is_collecting = true;
            self.due.push(Reverse((now, die)));
        }
    }
    /// Takes the step that is due next, at its time.
    pub(super) fn step(&mut self, array: &mut FlashArray, volume: &mut Volume, observed: &mut Observed) {
        let Some(Reverse((at, die))) = self.due.pop() else { return };
        let step = volume.collect_step(at, array, Some(die));
        observed.collection(&step);
        let has_enough = matches!(step, CollectStep::Erased { .. } if volume.layer.free_blocks_of(die) >= self.config.stop);
        match step.end().filter(|_| !has_enough) {
            Some(end) => self.due.push(Reverse((end, die))),
            None => self.is_collecting[die.0 as usize] = false,
        }
    }
    /// Collects the best victim now, all of it; its die is taken until that is done. Returns whether a block was erased.
    pub(super) fn collect_at_once(
        &mut self,
        now: Time,
        array: &mut FlashArray,
        volume: &mut Volume,
        observed: &mut Observed,
    ) -> bool {
        let Some(victim) = volume.layer.victim(None) else { return false };
        let die = array.geometry().die_of(victim);
        observed.forced_collections += 1;
        loop {
            let step = volume.collect_step(now, array, Some(die));
            observed.collection(&step);
            match step {
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
        self.is_collecting.fill(false);
    }
}
