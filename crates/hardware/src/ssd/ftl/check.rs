//! What must hold between any two calls: no block is lost or counted twice, and the map is a
//! bijection between mapped units and valid places.

use super::TranslationLayer;
use super::blocks::State;
use super::dies::Die;

/// What was found to be wrong.
type Finding = Result<(), String>;

impl TranslationLayer {
    /// Checks all tables for inconsistencies and returns the first. For tests and restored
    /// snapshots: it takes seconds for tens of millions of units.
    pub fn check(&self) -> Result<(), String> {
        if !self.pending.is_empty() {
            return self.settled().check();
        }
        self.check_slots()?;
        self.dies.iter().try_for_each(|die| self.check_die(die))?;
        let are_noted = super::Stream::ALL[..2].iter().all(|stream| self.dies.are_noted(*stream));
        holds(are_noted, || "a die that can take units of the host is not known to, or the other way round".into())?;
        let sum = |count: fn(&Die) -> u32| self.dies.iter().map(count).sum::<u32>();
        let are_counted = self.dies.sums() == [sum(|die| die.free.len() as u32), sum(|die| die.owned)];
        holds(are_counted, || "the dies' free or good blocks are not what was counted".into())?;
        self.check_collections()?;
        self.check_map()
    }

    /// Every slot belongs to one die, and is in the one list that its state says.
    fn check_slots(&self) -> Finding {
        let mut seen = vec![0u32; self.blocks.slots() as usize];
        let mut listed = seen.clone();
        for die in self.dies.iter() {
            for slot in die.slots() {
                *seen.get_mut(slot as usize).ok_or("a die has a slot that does not exist")? += 1;
            }
            let open = die.open.iter().flatten().map(|open| open.slot);
            let collected = die.collection.iter().map(|collection| collection.slot);
            for slot in die.free.iter().chain(&die.vacant).copied().chain(open).chain(collected) {
                *listed.get_mut(slot as usize).ok_or("a die lists a slot that does not exist")? += 1;
            }
        }
        holds(seen.iter().all(|count| *count == 1), || "a slot belongs to no die or to several".into())?;
        for slot in 0..self.blocks.slots() {
            let state = self.blocks.state(slot);
            let lists = u32::from(!matches!(state, State::Full | State::Bad));
            holds(listed[slot as usize] == lists, || {
                format!("slot {slot} is {state:?} and in {} lists", listed[slot as usize])
            })?;
        }
        Ok(())
    }
    /// Takes for granted that all slots exist.
    fn check_die(&self, die: &Die) -> Finding {
        let has = |slot: u32, state| self.blocks.state(slot) == state && self.is_on(slot, die);
        let name = die.id.0;
        holds(die.free.iter().all(|slot| has(*slot, State::Free)), || {
            format!("die {name} queues a block that is not free")
        })?;
        let is_vacant = |slot: &u32| self.blocks.state(*slot) == State::Vacant && die.slots().any(|own| own == *slot);
        holds(die.vacant.iter().all(is_vacant), || format!("die {name} has a vacant slot with a block"))?;
        for (open, stream) in die.open.iter().zip(super::Stream::ALL) {
            let Some(open) = open else { continue };
            let fits = open.page < self.config.geometry.pages_per_block && open.gathered < self.units_per_page;
            let is_open = has(open.slot, State::Open) && self.blocks.stream(open.slot) == stream;
            holds(fits && is_open, || format!("die {name} fills a block that is not open, or beyond its end"))?;
        }
        let good = |slot: &u32| !matches!(self.blocks.state(*slot), State::Vacant | State::Bad);
        let owned = die.slots().filter(good).count() as u32;
        holds(owned == die.owned, || format!("die {name} has {owned} good blocks and counts {}", die.owned))?;
        let is_here = |slot: u32| self.blocks.state(slot) == State::Vacant || self.is_on(slot, die);
        holds(die.slots().all(is_here), || format!("die {name} has a slot whose block is elsewhere"))
    }
    fn is_on(&self, slot: u32, die: &Die) -> bool {
        self.config.geometry.die_of(self.blocks.block_of(slot)) == die.id
    }
    /// Victims, the dies that take their data and the list of both agree, and there is room for
    /// what is yet to be moved.
    fn check_collections(&self) -> Finding {
        let victims: Vec<_> = self.dies.iter().filter_map(|die| die.collection).collect();
        let receivers = self.dies.iter().filter(|die| die.receives.is_some()).count();
        let is_listed = victims.iter().all(|victim| self.collecting.contains(&victim.slot));
        let agree = is_listed && victims.len() == self.collecting.len() && victims.len() == receivers;
        holds(agree, || "victims, receivers and their list disagree".into())?;
        for victim in victims {
            holds(victim.target < self.dies.len(), || "a victim's data go to no die".into())?;
            let target = self.dies.get(victim.target);
            let is_victim = self.blocks.state(victim.slot) == State::Victim && target.receives == Some(victim.slot);
            let valid = u64::from(self.blocks.valid(victim.slot));
            let is_ready = is_victim && self.room(target, self.blocks.stream(victim.slot).after_move()) >= valid;
            holds(is_ready, || format!("slot {} is no victim, or has no room to go to", victim.slot))?;
            let is_behind = self.mapping.next_valid(victim.slot, 0).is_some_and(|valid| valid < victim.next);
            holds(!is_behind, || format!("slot {} has valid units behind its cursor", victim.slot))?;
        }
        Ok(())
    }
    /// Every mapped unit has a valid place of its own, and there are no other valid places; what is
    /// not written is not invalid.
    fn check_map(&self) -> Finding {
        let words = (self.units_per_block as usize).div_ceil(64);
        let mut seen = vec![0u64; words * self.blocks.slots() as usize];
        let mut valid = vec![0u32; self.blocks.slots() as usize];
        let written: Vec<u32> = (0..self.blocks.slots()).map(|slot| self.written(slot)).collect();
        for unit in 0..self.mapping.units() {
            let Some(place) = self.mapping.locate(unit) else { continue };
            let is_written = written.get(place.slot as usize).is_some_and(|written| place.offset < *written);
            let is_valid = is_written && !self.mapping.is_invalid(place) && self.mapping.is_of_group(place, unit);
            holds(is_valid, || format!("unit {unit} is mapped to {place:?}, which is not valid or not its own"))?;
            let word = &mut seen[place.slot as usize * words + place.offset as usize / 64];
            holds(*word >> (place.offset % 64) & 1 == 0, || format!("{place:?} has two units"))?;
            *word |= 1 << (place.offset % 64);
            valid[place.slot as usize] += 1;
        }
        for slot in 0..self.blocks.slots() {
            let (mapped, counted) = (valid[slot as usize], self.blocks.valid(slot));
            let (invalid, written) = (self.mapping.invalid_units(slot), written[slot as usize]);
            let adds_up = mapped == counted && mapped + invalid == written;
            holds(adds_up, || {
                format!("slot {slot}: {mapped} units mapped, {counted} counted, {invalid} invalid, {written} written")
            })?;
        }
        Ok(())
    }
    /// Units of a slot that were written since it was erased.
    pub(super) fn written(&self, slot: u32) -> u32 {
        match self.blocks.state(slot) {
            State::Vacant | State::Free | State::Bad => 0,
            State::Full | State::Victim => self.units_per_block,
            State::Open => {
                let mut open = self.dies.get(self.die_of(slot)).open.iter().flatten();
                open.find(|open| open.slot == slot).map_or(0, |open| open.page * self.units_per_page + open.gathered)
            }
        }
    }
}

fn holds(condition: bool, finding: impl FnOnce() -> String) -> Finding {
    if condition { Ok(()) } else { Err(finding()) }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::Mapping;
    use super::super::{FtlConfig, FtlError, TranslationLayer, VictimPolicy};
    use crate::ssd::{BlockId, Geometry};
    use base::{Bytes, Seed};

    fn used_layer(group_bits: u32) -> TranslationLayer {
        let (page, unit) = (Bytes::kib(8), Bytes::kib(4));
        let geometry = Geometry {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 20,
            pages_per_block: 40,
            page,
            unit,
        };
        let config = FtlConfig {
            geometry,
            logical_units: 2_000,
            victim: VictimPolicy::Greedy,
            hot_cold: false,
            endurance: None,
            seed: Seed(1),
        };
        let mut layer = TranslationLayer::new(config, (0..40).map(BlockId)).expect("there are spare blocks");
        layer.mapping = Mapping::with_groups(2_000, 40, 80, group_bits);
        let mut stream = Seed(2).stream("overwrites");
        (0..20_000).for_each(|_| write(&mut layer, stream.below(2_000)));
        layer.settle();
        layer
    }
    fn write(layer: &mut TranslationLayer, unit: u64) {
        while layer.write(unit) == Err(FtlError::NoFreeBlock) {
            let victim = layer.victim(None).expect("there is garbage");
            while layer.relocate_next(victim).is_some() {}
            let _ = layer.erased(victim);
        }
    }

    /// Only large drives keep groups.
    #[test]
    fn a_layer_whose_places_keep_groups_does_what_one_does_whose_places_keep_units() {
        let plain = used_layer(0);
        for group_bits in [3, 6] {
            let grouped = used_layer(group_bits);
            grouped.check().expect("the books are in order");
            assert!((0..2_000).all(|unit| grouped.locate(unit) == plain.locate(unit)));
            assert_eq!(grouped.counters(), plain.counters());
        }
    }

    #[test]
    fn books_that_are_not_in_order_are_found_out() {
        let spoiled = |spoil: fn(&mut TranslationLayer)| {
            let mut layer = used_layer(0);
            layer.check().expect("the books are in order");
            spoil(&mut layer);
            layer.check().is_err()
        };
        assert!(spoiled(|layer| layer.mapping.unmap(7)));
        assert!(spoiled(|layer| {
            let place = layer.mapping.locate(7).expect("it was written");
            layer.mapping.point(8, place);
        }));
        assert!(spoiled(|layer| layer.mapping.clear(layer.mapping.locate(7).expect("it was written").slot)));
        assert!(spoiled(|layer| layer.dies.get_mut(0).free.clear()));
        assert!(spoiled(|layer| layer.dies.get_mut(0).free.push_back(39)));
        assert!(spoiled(|layer| layer.dies.get_mut(1).owned += 1));
        assert!(spoiled(|layer| layer.dies.get_mut(0).receives = Some(3)));
        assert!(spoiled(|layer| layer.blocks.add_valid(layer.mapping.locate(7).expect("it was written").slot)));
    }
}
