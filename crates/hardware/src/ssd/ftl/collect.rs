//! Collecting garbage: a victim is chosen, its valid units move page by page, and it is erased.

use super::blocks::{State, Stream};
use super::dies::{Collection, Die};
use super::mapping::Place;
use super::victim::Pool;
use super::{EraseOutcome, Relocation, TranslationLayer, VictimPolicy};
use crate::ssd::geometry::{BlockId, DieId, PageAddress};

/// Units of a victim whose owners are prefetched at once, or a page of them if that has more. Many
/// dies collect at the same time, and prefetched lines have to stay in the second-level cache until
/// used: 64 per die did not.
const WARMED: u32 = 8;

impl TranslationLayer {
    /// Returns the block to collect, on a die or (`None`) anywhere. A victim stays the answer until
    /// it is erased: the die's own, and for the whole region the oldest. `None`: nothing would be
    /// gained, or no die has room for the valid units.
    ///
    /// Over the whole region, cost-benefit takes dies in turn and the best block of the first that
    /// has one: since ages matter, the best of all would require a search through all blocks. The
    /// other policies consider all of them.
    pub fn victim(&mut self, die: Option<DieId>) -> Option<BlockId> {
        let slot = match die {
            Some(id) => self.victim_on(self.dies.place_of(id)?),
            None => self.victim_anywhere(),
        };
        slot.map(|slot| self.blocks.block_of(slot))
    }
    /// Makes a given block its die's victim, regardless of its valid units, to empty it. Returns
    /// false if it is not a completely written block of this region, its die has another victim, or
    /// there is no room.
    pub fn collect_block(&mut self, block: BlockId) -> bool {
        let slot = self.blocks.slot_of(block).filter(|slot| self.blocks.state(*slot) == State::Full);
        slot.is_some_and(|slot| self.begin(slot, false))
    }
    /// Moves the valid units of the next page of a victim that has any. `None` if there are none
    /// any more, or the block is no victim.
    pub fn relocate_next(&mut self, victim: BlockId) -> Option<Relocation> {
        let slot = self.blocks.slot_of(victim)?;
        let die = self.die_of(slot);
        let collection = self.dies.get(die).collection.filter(|collection| collection.slot == slot)?;
        let mut next = collection.next;
        loop {
            let first = self.mapping.next_valid(slot, next)?;
            let page = first / self.units_per_page;
            next = (page + 1) * self.units_per_page;
            let warmed = self.warm(collection, first);
            let (units, programs) = self.move_units(collection, first, next);
            // A page may hold nothing but units with a newer version that is pending.
            if units > 0 {
                self.counters.relocated_units += u64::from(units);
                self.dies.get_mut(die).collection = Some(Collection { next, warmed, ..collection });
                return Some(Relocation { from: PageAddress { block: victim, page }, units, programs });
            }
        }
    }
    /// Takes note that a victim without valid units was erased.
    pub fn erased(&mut self, block: BlockId) -> EraseOutcome {
        self.settle();
        let Some(slot) = self.blocks.slot_of(block) else {
            return EraseOutcome::Refused;
        };
        if self.blocks.state(slot) != State::Victim || self.blocks.valid(slot) > 0 {
            return EraseOutcome::Refused;
        }
        self.end_collection(slot);
        self.mapping.clear(slot);
        self.counters.erases += 1;
        if self.blocks.erase(slot, self.config.endurance) == State::Bad {
            self.lose(slot)
        } else {
            let die = self.die_of(slot);
            self.dies.get_mut(die).free.push_back(slot);
            self.dies.note_ready(die);
            EraseOutcome::Free
        }
    }

    /// Makes a full block its die's victim, if the die has none and there is room for its data.
    pub(super) fn begin(&mut self, slot: u32, levels_wear: bool) -> bool {
        self.settle();
        let Some(target) = self.target_of(slot) else {
            return false;
        };
        self.blocks.collect(slot);
        self.collecting.push(slot);
        self.dies.get_mut(target).receives = Some(slot);
        self.die_mut(slot).collection = Some(Collection { slot, target, next: 0, warmed: 0, levels_wear });
        true
    }
    /// The die that can take what is valid in a block, if it can become a victim: its own or else
    /// the next that has room.
    pub(super) fn target_of(&self, slot: u32) -> Option<u32> {
        let own = self.die_of(slot);
        if self.dies.get(own).collection.is_some() {
            return None;
        }
        let valid = u64::from(self.blocks.valid(slot));
        let stream = self.blocks.stream(slot).after_move();
        let can_take = |place: &u32| {
            let die = self.dies.get(*place);
            die.receives.is_none() && self.room(die, stream) >= valid
        };
        (own..self.dies.len()).chain(0..own).find(can_take)
    }
    /// Units that can be moved to a die and stream.
    pub(super) fn room(&self, die: &Die, stream: Stream) -> u64 {
        let upb = u64::from(self.units_per_block);
        let open = die.open[stream as usize].map_or(0, |open| {
            let used = open.page * self.units_per_page + open.gathered;
            upb - u64::from(used)
        });
        open + die.free.len() as u64 * upb
    }
    pub(super) fn die_of(&self, slot: u32) -> u32 {
        let id = self.config.geometry.die_of(self.blocks.block_of(slot));
        self.dies.place_of(id).expect("a region knows the dies of its blocks")
    }
    fn die_mut(&mut self, slot: u32) -> &mut Die {
        let die = self.die_of(slot);
        self.dies.get_mut(die)
    }

    fn victim_on(&mut self, place: u32) -> Option<u32> {
        if let Some(collection) = self.dies.get(place).collection {
            return Some(collection.slot);
        }
        self.settle();
        let pool = Pool {
            blocks: &self.blocks,
            segments: &self.dies.get(place).segments,
            units_per_block: self.units_per_block,
        };
        let chosen = pool.choose(self.config.victim, &mut self.draws)?;
        let emptiest = pool.choose(VictimPolicy::Greedy, &mut self.draws)?;
        self.begin_either(chosen, emptiest)
    }
    fn victim_anywhere(&mut self) -> Option<u32> {
        if let Some(slot) = self.collecting.first() {
            return Some(*slot);
        }
        if self.config.victim == VictimPolicy::CostBenefit {
            return self.victim_of_dies_in_turn();
        }
        self.settle();
        let segments = [(0, self.blocks.slots())];
        let pool = Pool { blocks: &self.blocks, segments: &segments, units_per_block: self.units_per_block };
        let chosen = pool.choose(self.config.victim, &mut self.draws)?;
        let emptiest = pool.choose(VictimPolicy::Greedy, &mut self.draws)?;
        self.begin_either(chosen, emptiest)
    }
    fn victim_of_dies_in_turn(&mut self) -> Option<u32> {
        for _ in 0..self.dies.len() {
            let [turn, _] = self.search_turns;
            self.search_turns[0] = (turn + 1) % self.dies.len();
            if let Some(slot) = self.victim_on(turn) {
                return Some(slot);
            }
        }
        None
    }
    /// When room is short, only the emptiest block may fit.
    fn begin_either(&mut self, chosen: u32, emptiest: u32) -> Option<u32> {
        if self.begin(chosen, false) {
            return Some(chosen);
        }
        self.begin(emptiest, false).then_some(emptiest)
    }
    fn warm(&self, collection: Collection, offset: u32) -> u32 {
        if offset < collection.warmed {
            return collection.warmed;
        }
        let window = WARMED.max(self.units_per_page);
        let end = (offset / window + 1) * window;
        self.mapping.warm(collection.slot, offset, end);
        end
    }
    /// Moves what is valid from `first`, which is, up to `end`; a page at most is filled by it, as
    /// it is a page that is emptied.
    fn move_units(&mut self, collection: Collection, first: u32, end: u32) -> (u32, Option<PageAddress>) {
        let stream = self.blocks.stream(collection.slot).after_move();
        let (mut units, mut programs) = (0, None);
        for offset in first..end {
            let place = Place { slot: collection.slot, offset };
            if self.mapping.is_invalid(place) {
                continue;
            }
            let unit = self.mapping.owner(place).expect("a valid unit is mapped by a unit of its group");
            if self.pending.contains(unit) {
                continue;
            }
            let (target, _, program) = self.append(collection.target, stream, unit);
            self.mapping.point(unit, target);
            self.invalidate(place);
            programs = programs.or(program);
            units += 1;
        }
        (units, programs)
    }
    fn end_collection(&mut self, slot: u32) {
        let die = self.die_of(slot);
        let collection = self.dies.get_mut(die).collection.take().expect("a victim's die knows it");
        self.dies.get_mut(collection.target).receives = None;
        self.collecting.retain(|other| *other != slot);
    }
    fn lose(&mut self, slot: u32) -> EraseOutcome {
        let die = self.die_of(slot);
        self.dies.get_mut(die).owned -= 1;
        self.dies.note_ready(die);
        self.counters.bad_blocks += 1;
        EraseOutcome::Bad
    }
}
