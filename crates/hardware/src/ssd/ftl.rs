//! The translation layer of a region of flash: the place of each logical unit in the blocks of the
//! region. It is bookkeeping without time; its owner turns its answers into operations of an array.
//!
//! Its calls, in the order of use:
//!
//! * Host: [`write`](TranslationLayer::write) gathers units into pages, striped over channels, then
//!   dies, and returns pages to program; [`pad`](TranslationLayer::pad) closes partial pages;
//!   [`locate`](TranslationLayer::locate) returns what to read; [`trim`](TranslationLayer::trim)
//!   drops units.
//! * Collection: [`victim`](TranslationLayer::victim), then
//!   [`relocate_next`](TranslationLayer::relocate_next) until it is empty, then
//!   [`erased`](TranslationLayer::erased). A write that returns [`FtlError::NoFreeBlock`] requires
//!   that.
//! * Wear: [`level_step`](TranslationLayer::level_step) names a block whose data should move, like
//!   a victim.
//! * Lending: [`take_free`](TranslationLayer::take_free) and [`give`](TranslationLayer::give).
//!
//! Each die keeps one free block that the host cannot open. A die has one victim at a time, and
//! receives the data of one victim at a time, for which it had room when that was chosen. A started
//! collection can therefore always be completed.

mod blocks;
mod check;
mod collect;
mod dies;
mod lend;
mod mapping;
mod min_tree;
mod packed;
mod pending;
mod snapshot;
mod types;
mod victim;
mod wear;

pub use types::{
    EraseOutcome, FtlConfig, FtlCounters, FtlError, Relocation, SnapshotError, SpareBlock, VictimPolicy, Wear, Written,
};

use super::geometry::{BlockId, DieId, PageAddress, UnitAddress};
use blocks::{Blocks, Stream};
use dies::{Dies, Frontier};
use mapping::{Mapping, Place};
use pending::Pending;
use victim::Draws;

/// The translation layer of a region.
#[derive(Clone, Debug)]
pub struct TranslationLayer {
    config: FtlConfig,
    units_per_page: u32,
    units_per_block: u32,
    mapping: Mapping,
    pending: Pending,
    blocks: Blocks,
    dies: Dies,
    /// Victims that are being moved, by slot, the oldest first.
    collecting: Vec<u32>,
    /// The die, by its place, at which a search that takes dies in turn begins: for a victim, for a
    /// block to level.
    search_turns: [u32; 2],
    draws: Draws,
    counters: FtlCounters,
}

impl TranslationLayer {
    /// A layer over erased blocks, with nothing mapped. An error if the geometry, the policy or a
    /// block does not exist, a block comes twice, or the blocks do not hold the logical units
    /// beside the spare blocks of each die: one that the host fills, one that moved units fill (two
    /// of both with hot and cold apart), and one free.
    pub fn new(config: FtlConfig, blocks: impl IntoIterator<Item = BlockId>) -> Result<TranslationLayer, FtlError> {
        TranslationLayer::with_wear(config, blocks.into_iter().map(|block| SpareBlock { block, erases: 0 }))
    }
    /// Like [`new`](Self::new) for blocks that were erased before, in the service of others.
    pub fn with_wear(
        config: FtlConfig,
        blocks: impl IntoIterator<Item = SpareBlock>,
    ) -> Result<TranslationLayer, FtlError> {
        config.geometry.check()?;
        if config.victim == VictimPolicy::Choices(0) {
            return Err(FtlError::NoChoice);
        }
        let mut blocks: Vec<SpareBlock> = blocks.into_iter().collect();
        blocks.sort_by_key(|spare| spare.block);
        let mut layer = TranslationLayer::without_blocks(config, blocks.len() as u32);
        layer.give(&blocks)?;
        layer.dies.set_turns([0; 2]);
        layer.check_spare()?;
        Ok(layer)
    }
    /// Books for `slots` blocks, of which none is there yet. The geometry must be checked. No
    /// memory is taken for units that cannot be held.
    fn without_blocks(config: FtlConfig, slots: u32) -> TranslationLayer {
        let geometry = config.geometry;
        let units_max = u64::from(slots) * u64::from(geometry.units_per_block());
        TranslationLayer {
            units_per_page: geometry.units_per_page(),
            units_per_block: geometry.units_per_block(),
            mapping: Mapping::new(config.logical_units.min(units_max), slots, geometry.units_per_block()),
            pending: Pending::default(),
            blocks: Blocks::new(geometry.blocks()),
            dies: Dies::new(&geometry),
            collecting: Vec::new(),
            search_turns: [0; 2],
            draws: Draws::new(config.seed),
            counters: FtlCounters::default(),
            config,
        }
    }

    /// Where a unit lies; `None` if it was never written or was trimmed, or is beyond the region.
    pub fn locate(&self, unit: u64) -> Option<UnitAddress> {
        if unit >= self.config.logical_units {
            return None;
        }
        let place = self.pending.place_of(unit).or_else(|| self.mapping.locate(unit))?;
        let page = PageAddress { block: self.blocks.block_of(place.slot), page: place.offset / self.units_per_page };
        Some(UnitAddress { page, slot: place.offset % self.units_per_page })
    }
    /// Returns whether a page still gathers units: those it has are in the controller's memory and
    /// not in flash.
    pub fn is_gathering(&self, page: PageAddress) -> bool {
        let die = self.dies.find(self.config.geometry.die_of(page.block));
        let open = die.into_iter().flat_map(|die| die.open.iter().flatten());
        let slot = self.blocks.slot_of(page.block);
        open.into_iter().any(|open| Some(open.slot) == slot && open.page == page.page && open.gathered > 0)
    }
    /// Gives a unit a new place, after which its old one is invalid. [`FtlError::NoFreeBlock`]:
    /// first collect garbage, nothing has changed. A die without a block to spare loses its turn.
    pub fn write(&mut self, unit: u64) -> Result<Written, FtlError> {
        if unit >= self.config.logical_units {
            return Err(FtlError::OutOfRange { unit, units: self.config.logical_units });
        }
        let stream = self.stream_of(unit);
        let Some(die) = self.dies.next_for_host(stream) else {
            return Err(self.refusal());
        };
        let (place, at, program) = self.append(die, stream, unit);
        self.supersede(unit, place);
        if program.is_some() {
            self.dies.advance(stream);
        }
        self.counters.host_units += 1;
        Ok(Written { at, program })
    }
    /// Closes the pages in which units of the host are gathered, with padding: the pages to program
    /// now, at most one, or two with hot and cold apart. Pages that gather moved units stay, as
    /// their units are still in the victims or safe in the controller's memory.
    pub fn pad(&mut self) -> Vec<PageAddress> {
        [Stream::Cold, Stream::Hot].into_iter().filter_map(|stream| self.pad_stream(stream)).collect()
    }
    /// Forgets a unit. False if it was not mapped.
    pub fn trim(&mut self, unit: u64) -> bool {
        self.settle();
        let place = (unit < self.config.logical_units).then(|| self.mapping.locate(unit)).flatten();
        if let Some(place) = place {
            self.mapping.unmap(unit);
            self.invalidate(place);
            self.counters.trims += 1;
        }
        place.is_some()
    }

    /// What it was made with.
    pub fn config(&self) -> &FtlConfig {
        &self.config
    }
    /// Units that the host sees.
    pub fn logical_units(&self) -> u64 {
        self.config.logical_units
    }
    /// Units that the host has written and not trimmed. Visits every block.
    pub fn valid_units(&self) -> u64 {
        let counted: u64 = self.blocks.good().map(|slot| u64::from(self.blocks.valid(slot))).sum();
        counted - self.superseded().count() as u64
    }
    /// Valid units of a block; `None` if the region does not own it.
    pub fn valid_units_of(&self, block: BlockId) -> Option<u32> {
        let slot = self.blocks.slot_of(block)?;
        let superseded = self.superseded().filter(|place| place.slot == slot).count();
        Some(self.blocks.valid(slot) - superseded as u32)
    }
    /// Good blocks that are erased and not being written.
    pub fn free_blocks(&self) -> u32 {
        self.dies.sums()[0]
    }
    /// Good blocks.
    pub fn owned_blocks(&self) -> u32 {
        self.dies.sums()[1]
    }
    /// Free blocks of all good ones; 0 if there are none.
    pub fn free_ratio(&self) -> f64 {
        f64::from(self.free_blocks()) / f64::from(self.owned_blocks().max(1))
    }
    /// Units of a die that hold no data, nor garbage: those of free blocks, what is not yet written
    /// of open ones, and what has been emptied of its victim. 0 for a die that the region does not
    /// know.
    pub fn room_of(&self, die: DieId) -> u64 {
        let Some(die) = self.dies.find(die) else { return 0 };
        let upb = u64::from(self.units_per_block);
        let used = |open: &Frontier| u64::from(open.page * self.units_per_page + open.gathered);
        let open: u64 = die.open.iter().flatten().map(|open| upb - used(open)).sum();
        let emptied = die.collection.map_or(0, |collection| u64::from(collection.next));
        die.free.len() as u64 * upb + open + emptied
    }
    /// Free blocks of a die.
    pub fn free_blocks_of(&self, die: DieId) -> u32 {
        self.dies.find(die).map_or(0, |die| die.free.len() as u32)
    }
    /// Free blocks of the die with the fewest; 0 without dies.
    pub fn fewest_free_blocks(&self) -> u32 {
        self.dies.striped().map(|die| die.free.len() as u32).min().unwrap_or(0)
    }
    /// Good blocks of a die.
    pub fn owned_blocks_of(&self, die: DieId) -> u32 {
        self.dies.find(die).map_or(0, |die| die.owned)
    }
    /// The dies that the region has, or had, blocks on, in the order in which writes go to them.
    pub fn dies(&self) -> Vec<DieId> {
        self.dies.striped().map(|die| die.id).collect()
    }
    /// What happened so far.
    pub fn counters(&self) -> FtlCounters {
        self.counters
    }
    /// See [`FtlCounters::write_amplification`].
    pub fn write_amplification(&self) -> f64 {
        self.counters.write_amplification()
    }
    /// What all tables take.
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.mapping.memory_bytes() + self.blocks.memory_bytes() + self.dies.memory_bytes();
        tables + size_of::<TranslationLayer>() as u64
    }

    /// Place of a host unit. With hot and cold separated, it is hot if its last version was
    /// overwritten before collection moved it, or if collection moved it only from hot to warm (the
    /// rule is ours). The better hot units are kept together, the more rarely any of them is moved.
    ///
    /// Rejected: a threshold on the age of the last version, the mean life of collected hot blocks
    /// (SepBIT, FAST 2022). With greedy cleaning it spirals down: fewer hot units, so hot blocks
    /// are cleaned earlier, so the threshold falls, until nothing is hot.
    #[inline]
    fn stream_of(&self, unit: u64) -> Stream {
        if !self.config.hot_cold {
            return Stream::Cold;
        }
        let old = self.mapping.locate(unit);
        let is_hot = old.is_some_and(|place| self.blocks.stream(place.slot) != Stream::Moved);
        if is_hot { Stream::Hot } else { Stream::Cold }
    }
    /// Puts a unit into the open block of a stream on a die that has room for it. Where it lies now
    /// is for the caller to say.
    #[inline]
    fn append(&mut self, die: u32, stream: Stream, unit: u64) -> (Place, UnitAddress, Option<PageAddress>) {
        let open = self.open_block(die, stream);
        let place = Place { slot: open.slot, offset: open.page * self.units_per_page + open.gathered };
        self.mapping.hold(place, unit);
        self.blocks.add_valid(open.slot);
        let page = PageAddress { block: self.blocks.block_of(open.slot), page: open.page };
        let is_full = self.go_on(die, stream, open, 1);
        (place, UnitAddress { page, slot: open.gathered }, is_full.then_some(page))
    }
    fn open_block(&mut self, die: u32, stream: Stream) -> Frontier {
        if let Some(open) = self.dies.get(die).open[stream as usize] {
            return open;
        }
        let most_worn = matches!(stream, Stream::Moved | Stream::Warm)
            && self.dies.get(die).collection.is_some_and(|collection| collection.levels_wear);
        let slot = if most_worn { self.most_worn_free(die) } else { self.dies.get_mut(die).free.pop_front() };
        let slot = slot.expect("a die that is written to has an open or a free block");
        self.blocks.open(slot, stream);
        let open = Frontier { slot, page: 0, gathered: 0 };
        self.dies.get_mut(die).open[stream as usize] = Some(open);
        self.dies.note_ready(die);
        open
    }
    /// Counts `units` more in an open block; whether they fill its page.
    #[inline]
    fn go_on(&mut self, die: u32, stream: Stream, open: Frontier, units: u32) -> bool {
        let gathered = open.gathered + units;
        let is_full = gathered == self.units_per_page;
        let next = if is_full {
            Frontier { slot: open.slot, page: open.page + 1, gathered: 0 }
        } else {
            Frontier { gathered, ..open }
        };
        let has_more = next.page < self.config.geometry.pages_per_block;
        self.dies.get_mut(die).open[stream as usize] = has_more.then_some(next);
        self.counters.programs += u64::from(is_full);
        if !has_more {
            self.dies.note_ready(die);
            self.blocks.fill(open.slot);
        }
        is_full
    }
    #[inline]
    fn invalidate(&mut self, place: Place) {
        self.mapping.invalidate(place);
        self.blocks.drop_valid(place.slot);
    }
    fn pad_stream(&mut self, stream: Stream) -> Option<PageAddress> {
        let die = self.dies.at_turn(stream)?;
        let open = self.dies.get(die).open[stream as usize].filter(|open| open.gathered > 0)?;
        for gathered in open.gathered..self.units_per_page {
            let offset = open.page * self.units_per_page + gathered;
            self.mapping.invalidate(Place { slot: open.slot, offset });
        }
        let units = self.units_per_page - open.gathered;
        self.counters.padded_units += u64::from(units);
        self.go_on(die, stream, open, units);
        self.dies.advance(stream);
        Some(PageAddress { block: self.blocks.block_of(open.slot), page: open.page })
    }
    /// Why the host cannot write: garbage is to be collected, or there is none that could be.
    fn refusal(&mut self) -> FtlError {
        self.settle();
        let emptiest = self.blocks.emptiest(0, self.blocks.slots(), self.units_per_block);
        let can_begin = emptiest.is_some_and(|(_, slot)| self.target_of(slot).is_some());
        if can_begin || !self.collecting.is_empty() {
            return FtlError::NoFreeBlock;
        }
        FtlError::WornOut {
            good_blocks: self.owned_blocks(),
            bad_blocks: self.counters.bad_blocks,
            valid_units: self.valid_units(),
        }
    }
}
