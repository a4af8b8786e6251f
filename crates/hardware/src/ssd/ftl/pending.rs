//! Host writes whose old versions still have to be looked up.
//!
//! The previous place of a unit is a word somewhere in a table of tens of megabytes, and marking
//! that place invalid touches another. A write that does both at once waits for memory twice. The
//! layer therefore delays a few writes and looks all of them up together, with concurrent misses.
//! Its answers do not change: a pending unit is found here first, and code that needs counts of
//! valid units settles them first, or counts the pending ones.
//!
//! The place of a pending write never lies in a victim: all are settled before a victim is chosen,
//! and nothing is written into one.

use super::TranslationLayer;
use super::mapping::Place;
use std::hint::black_box;

/// Maximum waiting writes: about the number of misses that a core can have outstanding.
const PENDING_MAX: usize = 16;

/// Writes whose units the map still has at their old places, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    units: Vec<u64>,
    places: Vec<Place>,
    /// A bit for some units each: what has none is not pending.
    filter: u64,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
    #[inline]
    pub(super) fn contains(&self, unit: u64) -> bool {
        self.filter & bit(unit) != 0 && self.units.contains(&unit)
    }
    /// Where a unit lies, if it is pending.
    #[inline]
    pub(super) fn place_of(&self, unit: u64) -> Option<Place> {
        if self.filter & bit(unit) == 0 {
            return None;
        }
        let at = self.units.iter().rposition(|pending| *pending == unit)?;
        Some(self.places[at])
    }
    fn push(&mut self, unit: u64, place: Place) {
        self.filter |= bit(unit);
        self.units.push(unit);
        self.places.push(place);
    }
    fn is_full(&self) -> bool {
        self.units.len() == PENDING_MAX
    }
    fn clear(&mut self) {
        self.filter = 0;
        self.units.clear();
        self.places.clear();
    }
}

fn bit(unit: u64) -> u64 {
    1 << (unit % 64)
}

impl TranslationLayer {
    /// A unit of the host has a new place; its old one becomes invalid, now or soon.
    #[inline]
    pub(super) fn supersede(&mut self, unit: u64, place: Place) {
        self.pending.push(unit, place);
        // With hot and cold separated, each write prefetches the old place at once.
        if self.pending.is_full() || self.config.hot_cold {
            self.settle();
        }
    }
    /// Lets the map and the counts of valid units say what all writes so far have made of them.
    pub(super) fn settle(&mut self) {
        if !self.pending.is_empty() {
            self.settle_pending();
        }
    }
    /// The layer with nothing pending.
    pub(super) fn settled(&self) -> TranslationLayer {
        let mut settled = self.clone();
        settled.settle();
        settled
    }
    /// The places that pending writes have made invalid.
    pub(super) fn superseded(&self) -> impl Iterator<Item = Place> + '_ {
        self.pending.units.iter().enumerate().filter_map(|(at, unit)| {
            let earlier = self.pending.units[..at].iter().rposition(|pending| pending == unit);
            earlier.map(|at| self.pending.places[at]).or_else(|| self.mapping.locate(*unit))
        })
    }

    /// Each memory access for all writes before the next, so that misses overlap.
    #[inline(never)]
    fn settle_pending(&mut self) {
        let TranslationLayer { pending, mapping, blocks, .. } = self;
        black_box(pending.units.iter().fold(0, |seen, unit| seen ^ mapping.touch(*unit)));
        let mut old = [None; PENDING_MAX];
        for ((unit, place), old) in pending.units.iter().zip(&pending.places).zip(&mut old) {
            *old = mapping.locate(*unit);
            mapping.point(*unit, *place);
        }
        let touch = |seen, place: &Place| seen ^ blocks.valid(place.slot) ^ u32::from(mapping.is_invalid(*place));
        black_box(old.iter().flatten().fold(0, touch));
        for place in old.into_iter().flatten() {
            mapping.invalidate(place);
            blocks.drop_valid(place.slot);
        }
        pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FtlConfig, FtlError, TranslationLayer, VictimPolicy};
    use crate::ssd::{BlockId, Geometry};
    use base::{Bytes, Seed};
    use proptest::prelude::*;

    const UNITS: u64 = 300;

    fn layer(hot_cold: bool) -> TranslationLayer {
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 16,
            pages_per_block: 8,
            page: Bytes::kib(8),
            unit: Bytes::kib(4),
        };
        let victim = VictimPolicy::Greedy;
        let config = FtlConfig { geometry, logical_units: UNITS, victim, hot_cold, endurance: None, seed: Seed(1) };
        TranslationLayer::new(config, (0..32).map(BlockId)).expect("there are spare blocks")
    }
    /// Writes a unit, collects a step on a die in between, trims now and then; what the layer
    /// answers to all of it.
    fn act(layer: &mut TranslationLayer, unit: u64, kind: u8) -> String {
        let mut said = String::new();
        match kind {
            0 => said += &format!("{:?}", layer.trim(unit)),
            1..8 => {
                let victim = layer.victim(Some(crate::ssd::DieId(u32::from(kind % 2))));
                let moved = victim.and_then(|victim| layer.relocate_next(victim));
                said += &format!("{victim:?} {moved:?} {:?}", victim.and_then(|victim| layer.valid_units_of(victim)));
                said += &format!("{:?}", victim.filter(|_| moved.is_none()).map(|victim| layer.erased(victim)));
            }
            _ => said += &format!("{:?}", layer.write(unit)),
        }
        while said.contains("NoFreeBlock") && layer.write(unit) == Err(FtlError::NoFreeBlock) {
            let victim = layer.victim(None).expect("there is garbage");
            while layer.relocate_next(victim).is_some() {}
            said += &format!("{:?}", layer.erased(victim));
            said += &format!("{:?}", layer.wear());
        }
        said + &format!("{:?} {}", layer.locate(unit), layer.valid_units())
    }

    proptest! {
        #[test]
        fn a_layer_that_keeps_writes_back_answers_as_one_that_settles_each_at_once(
            hot_cold in any::<bool>(),
            actions in prop::collection::vec((0..UNITS, 0u8..20), 0..400),
        ) {
            let (mut lazy, mut eager) = (layer(hot_cold), layer(hot_cold));
            for (unit, kind) in actions {
                // Some units are hot, so that a pending one is often written again.
                let unit = if kind % 3 == 0 { unit % 10 } else { unit };
                prop_assert_eq!(act(&mut lazy, unit, kind), act(&mut eager, unit, kind));
                eager.settle();
            }
            prop_assert_eq!(lazy.check(), Ok(()));
            prop_assert_eq!(lazy.counters(), eager.counters());
        }
    }
}
