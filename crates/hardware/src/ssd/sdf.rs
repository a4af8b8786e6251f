//! Software-defined flash: one array divided into regions, each with a translation layer of its
//! own. Its owner decides when a region collects garbage, moves cold data or lends blocks
//! (open-channel drives; RackBlox, 3.2 and 3.5).
//!
//! Calls with `now` book operations on the array, and `now` never runs backward over them. In the
//! order of use:
//!
//! * [`create`](SoftwareDefinedFlash::create) a region: of whole channels, which no other region
//!   uses, or of a share of each die's blocks.
//! * [`read`](SoftwareDefinedFlash::read) and [`write`](SoftwareDefinedFlash::write) units of it.
//!   Writes are gathered until a page is full, in memory that is assumed to survive a loss of
//!   power; [`flush_partial`](SoftwareDefinedFlash::flush_partial) programs partial pages.
//! * [`collect_step`](SoftwareDefinedFlash::collect_step): one read, one program or one erase. The
//!   caller requests the next when this one has ended; dies collect in parallel, each with its own
//!   victim.
//! * [`level_step`](SoftwareDefinedFlash::level_step) makes a cold block a victim, which
//!   `collect_step` then empties.
//! * [`lend`](SoftwareDefinedFlash::lend) and [`return_lent`](SoftwareDefinedFlash::return_lent)
//!   between regions of a channel group.

mod copying;
mod error;
mod lending;
mod precondition;

pub use error::SdfError;
pub use precondition::KeptFree;

use super::array::{ArrayCounters, Booked, FlashArray, FlashOperation, Purpose};
use super::ftl::{FtlConfig, FtlCounters, FtlError, SnapshotError, SpareBlock, TranslationLayer, VictimPolicy, Wear};
use super::geometry::{BlockId, DieId, Geometry, Timing, UnitAddress};
use super::volume::{CollectStep, Found, Volume};
use base::{Bytes, Seed, Span, Time};
use lending::Loan;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::ops::Range;

/// Configuration of the flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdfConfig {
    /// Its array.
    pub geometry: Geometry,
    /// The array's times.
    pub timing: Timing,
    /// How long an answer takes that needs no flash: units that were never written, or that wait
    /// for their program.
    pub without_flash: Span,
}

/// Names a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// Configuration of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionConfig {
    /// Its dies.
    pub dies: Vec<DieId>,
    /// Whether it shares them.
    pub isolation: Isolation,
    /// Units that its host sees. What its blocks hold beyond that is spare.
    pub logical_units: u64,
    /// The block is collected next.
    pub victim: VictimPolicy,
    /// Whether host units that are overwritten soon after they were written go to blocks of their
    /// own.
    pub hot_cold: bool,
    /// Number of erases after which a block goes bad; unlimited if `None`.
    pub endurance: Option<u32>,
    /// Of the random victim policies.
    pub seed: Seed,
}

/// How a region is kept from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// It owns whole channels with all blocks of their dies.
    Hardware,
    /// It owns these blocks of each of its dies, and shares dies and channels. Rates are limited
    /// above.
    Software {
        /// Places of blocks in their die, from 0.
        blocks: Range<u32>,
    },
}

/// What became of a written unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBooked {
    /// Its place.
    pub at: UnitAddress,
    /// The program of the page that it filled; `None` while the page gathers.
    pub program: Option<Booked>,
}

/// Requests to a region and the operations that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionCounters {
    /// Reads of flash.
    pub flash_reads: u64,
    /// Reads answered without flash.
    pub reads_without_flash: u64,
    /// All reads' waits behind requests.
    pub read_wait: Span,
    /// All reads' waits behind collection.
    pub read_collection_wait: Span,
    /// Writes.
    pub writes: u64,
    /// Writes refused because no block was free.
    pub stalls: u64,
    /// Steps of collection.
    pub collection_steps: u64,
    /// Their service.
    pub collection_time: Span,
}

/// An array and its regions, see the [module's description](self).
#[derive(Clone, Debug)]
pub struct SoftwareDefinedFlash {
    array: FlashArray,
    without_flash: Span,
    regions: Vec<Option<Region>>,
    /// Wear of blocks of deleted regions, for those that come next.
    resting: BTreeMap<BlockId, u32>,
    /// Whether a block has ever belonged to a region. One that has and is in no region now, and
    /// does not rest, has gone bad.
    is_used: Vec<bool>,
    loans: Vec<Loan>,
}

#[derive(Clone, Debug)]
struct Region {
    config: RegionConfig,
    channels: BTreeSet<u32>,
    volume: Volume,
    counters: RegionCounters,
}

impl SoftwareDefinedFlash {
    /// An array without regions.
    pub fn new(config: SdfConfig) -> Result<SoftwareDefinedFlash, SdfError> {
        let array = FlashArray::new(config.geometry, config.timing)?;
        Ok(SoftwareDefinedFlash {
            array,
            without_flash: config.without_flash,
            regions: Vec::new(),
            resting: BTreeMap::new(),
            is_used: vec![false; config.geometry.blocks() as usize],
            loans: Vec::new(),
        })
    }
    /// Makes a region. Fails when its blocks do not exist, belong to another region, are part of a
    /// channel where it needs the whole, or cannot hold its units.
    pub fn create(&mut self, config: RegionConfig) -> Result<RegionId, SdfError> {
        self.check_dies(&config)?;
        self.check_owners(&config)?;
        let blocks = self.blocks_for(&config);
        let layer = TranslationLayer::with_wear(self.layer_config(&config), self.with_wear(&blocks))?;
        for block in blocks {
            self.is_used[block.0 as usize] = true;
            self.resting.remove(&block);
        }
        let channels = config.dies.iter().map(|die| self.geometry().channel_of(*die)).collect();
        let region = Region { config, channels, volume: Volume::new(layer), counters: RegionCounters::default() };
        self.regions.push(Some(region));
        Ok(RegionId(self.regions.len() as u32 - 1))
    }
    /// Ends a region and erases every block of it; returns when that is done. Its blocks keep their
    /// wear. Fails while it has lent or borrowed.
    pub fn delete(&mut self, now: Time, id: RegionId) -> Result<Time, SdfError> {
        self.check_debts(id)?;
        let blocks = self.layer(id)?.erase_counts();
        self.regions[id.0 as usize] = None;
        let mut done = now;
        for SpareBlock { block, erases } in blocks {
            done = done.max(self.array.submit(now, FlashOperation::Erase { block }, Purpose::Collection).end);
            self.resting.insert(block, erases + 1);
        }
        Ok(done)
    }
    /// Reads `bytes` of a unit.
    pub fn read(&mut self, now: Time, id: RegionId, unit: u64, bytes: Bytes) -> Result<Booked, SdfError> {
        let (size, without_flash) = (self.geometry().unit, self.without_flash);
        if bytes > size {
            return Err(SdfError::BeyondUnit { bytes: bytes.count(), unit: size.count() });
        }
        let (array, region) = self.parts(id)?;
        region.check_unit(unit)?;
        let Found::InFlash(at) = region.volume.find(unit) else {
            region.counters.reads_without_flash += 1;
            return Ok(Booked::without_flash(now, without_flash));
        };
        let operation = FlashOperation::Read { page: at.page, bytes, retries: 0 };
        let booked = array.submit(now, operation, Purpose::Host);
        region.counters.flash_reads += 1;
        region.counters.read_wait += booked.wait;
        region.counters.read_collection_wait += booked.collection_wait;
        Ok(booked)
    }
    /// Writes a unit. Fails with [`FtlError::NoFreeBlock`] (see [`SdfError::is_no_free_block`])
    /// when garbage has to be collected first.
    pub fn write(&mut self, now: Time, id: RegionId, unit: u64) -> Result<WriteBooked, SdfError> {
        let (array, region) = self.parts(id)?;
        let written = region.volume.layer.write(unit).inspect_err(|error| {
            region.counters.stalls += u64::from(*error == FtlError::NoFreeBlock);
        })?;
        region.counters.writes += 1;
        let program = written.program.map(|page| array.submit(now, FlashOperation::Program { page }, Purpose::Host));
        Ok(WriteBooked { at: written.at, program })
    }
    /// Gives a unit up. Returns whether it held anything.
    pub fn trim(&mut self, id: RegionId, unit: u64) -> Result<bool, SdfError> {
        let region = self.region_mut(id)?;
        region.check_unit(unit)?;
        Ok(region.volume.layer.trim(unit))
    }
    /// Programs the pages that are not full; returns when the last is done, or `None` when there
    /// were none.
    pub fn flush_partial(&mut self, now: Time, id: RegionId) -> Result<Option<Time>, SdfError> {
        let (array, region) = self.parts(id)?;
        let pages = region.volume.layer.pad().into_iter();
        Ok(pages.map(|page| array.submit(now, FlashOperation::Program { page }, Purpose::Host).end).max())
    }
    /// Runs the next step of a region's collection, on one die (dies collect in parallel) or where
    /// most is gained. Call it again when the step has ended.
    pub fn collect_step(&mut self, now: Time, id: RegionId, die: Option<DieId>) -> Result<CollectStep, SdfError> {
        let dies = self.geometry().dies();
        if let Some(die) = die.filter(|die| die.0 >= dies) {
            return Err(SdfError::UnknownDie { die: die.0, dies });
        }
        let (array, region) = self.parts(id)?;
        let step = region.volume.collect_step(now, array, die);
        if let Some(booked) = step.booked() {
            region.counters.collection_steps += 1;
            region.counters.collection_time += booked.service;
        }
        Ok(step)
    }
    /// If a die's least worn block with data is more than `spread_max` erases behind its most worn
    /// one, makes it the victim of its die and returns that die: `collect_step` does the rest.
    /// Checks one die per call, in turn.
    pub fn level_step(&mut self, id: RegionId, spread_max: u32) -> Result<Option<DieId>, SdfError> {
        let geometry = *self.geometry();
        let region = self.region_mut(id)?;
        Ok(region.volume.layer.level_step(spread_max).map(|block| geometry.die_of(block)))
    }
    /// Writes a unit without taking time and collects where needed: to prepare a region.
    pub fn write_untimed(&mut self, id: RegionId, unit: u64) -> Result<(), SdfError> {
        Ok(self.region_mut(id)?.volume.write_untimed(unit)?)
    }
    /// Collects one victim without taking time; returns whether that freed a block.
    pub fn collect_untimed(&mut self, id: RegionId, die: Option<DieId>) -> Result<bool, SdfError> {
        Ok(self.region_mut(id)?.volume.collect_untimed(die))
    }
}

/// Questions.
impl SoftwareDefinedFlash {
    /// Free blocks in all blocks that a region owns at present.
    pub fn free_ratio(&self, id: RegionId) -> Result<f64, SdfError> {
        Ok(self.layer(id)?.free_ratio())
    }
    /// Erase counts of a region.
    pub fn wear(&self, id: RegionId) -> Result<Wear, SdfError> {
        Ok(self.layer(id)?.wear())
    }
    /// Erase counts of the device: all regions, and the blocks of deleted ones. `None` without any
    /// block that was ever owned.
    pub fn device_wear(&self) -> Option<Wear> {
        let regions = self.regions.iter().flatten().map(|region| region.volume.layer.wear());
        let resting = self.resting.values().map(|erases| Wear {
            min: *erases,
            mean: f64::from(*erases),
            max: *erases,
            blocks: 1,
        });
        regions.chain(resting).filter(|wear| wear.blocks > 0).reduce(both)
    }
    /// A region's translation layer: where its units lie, its free blocks a die, its check.
    pub fn layer(&self, id: RegionId) -> Result<&TranslationLayer, SdfError> {
        Ok(&self.region(id)?.volume.layer)
    }
    /// Requests to a region.
    pub fn counters(&self, id: RegionId) -> Result<RegionCounters, SdfError> {
        Ok(self.region(id)?.counters)
    }
    /// What a region's translation layer has done.
    pub fn layer_counters(&self, id: RegionId) -> Result<FtlCounters, SdfError> {
        Ok(self.layer(id)?.counters())
    }
    /// What channels and dies have done.
    pub fn array_counters(&self) -> &ArrayCounters {
        self.array.counters()
    }
    /// The array, for the ends of operations that may have been interrupted.
    pub fn array(&self) -> &FlashArray {
        &self.array
    }
    /// What it is made of.
    pub fn geometry(&self) -> &Geometry {
        self.array.geometry()
    }
    /// The dies of a region, in the order of its configuration.
    pub fn dies(&self, id: RegionId) -> Result<&[DieId], SdfError> {
        Ok(&self.region(id)?.config.dies)
    }
    /// Saves where a region's data lie. What is underway counts as done.
    pub fn save(&self, id: RegionId, target: impl Write) -> Result<(), SdfError> {
        self.layer(id)?.save(target).map_err(|error| SdfError::Snapshot(SnapshotError::Read(error)))
    }
    /// Loads the saved state of a region with the same configuration.
    pub fn restore(&mut self, id: RegionId, source: impl Read) -> Result<(), SdfError> {
        self.check_debts(id)?;
        let config = self.layer(id)?.config().clone();
        let layer = TranslationLayer::restore(config, source)?;
        self.region_mut(id)?.volume = Volume::new(layer);
        Ok(())
    }
}

impl SoftwareDefinedFlash {
    fn check_dies(&self, config: &RegionConfig) -> Result<(), SdfError> {
        let geometry = self.geometry();
        let dies: BTreeSet<DieId> = config.dies.iter().copied().collect();
        if dies.is_empty() || dies.len() != config.dies.len() {
            return Err(SdfError::DiesNotDistinct { dies: config.dies.len(), distinct: dies.len() });
        }
        if let Some(die) = dies.iter().find(|die| die.0 >= geometry.dies()) {
            return Err(SdfError::UnknownDie { die: die.0, dies: geometry.dies() });
        }
        match &config.isolation {
            Isolation::Software { blocks } if blocks.is_empty() || blocks.end > geometry.blocks_per_die() => {
                let (start, end) = (blocks.start, blocks.end);
                Err(SdfError::UnknownBlocks { start, end, blocks_per_die: geometry.blocks_per_die() })
            }
            Isolation::Software { .. } => Ok(()),
            Isolation::Hardware => self.check_whole_channels(&dies),
        }
    }
    fn check_whole_channels(&self, dies: &BTreeSet<DieId>) -> Result<(), SdfError> {
        let geometry = self.geometry();
        let channels: BTreeSet<u32> = dies.iter().map(|die| geometry.channel_of(*die)).collect();
        for channel in channels {
            let given = geometry.dies_of(channel).filter(|die| dies.contains(die)).count() as u32;
            if given != geometry.dies_per_channel {
                return Err(SdfError::PartOfChannel { channel, given, dies: geometry.dies_per_channel });
            }
        }
        Ok(())
    }
    fn check_owners(&self, config: &RegionConfig) -> Result<(), SdfError> {
        for (index, region) in self.regions.iter().enumerate() {
            let Some(region) = region else { continue };
            let owner = RegionId(index as u32);
            let shared = config.dies.iter().map(|die| self.geometry().channel_of(*die));
            let shared = shared.filter(|channel| region.channels.contains(channel)).min();
            let Some(channel) = shared else { continue };
            match (&config.isolation, &region.config.isolation) {
                (Isolation::Software { blocks: wanted }, Isolation::Software { blocks: owned }) => {
                    let start = wanted.start.max(owned.start);
                    let end = wanted.end.min(owned.end);
                    let die = config.dies.iter().find(|die| region.config.dies.contains(die));
                    if let Some(die) = die.filter(|_| start < end) {
                        return Err(SdfError::BlocksOwned { die: die.0, start, end, owner });
                    }
                }
                _ => return Err(SdfError::ChannelOwned { channel, owner }),
            }
        }
        Ok(())
    }
    /// The blocks that a new region gets: those that its configuration names and that are not bad.
    /// For those that lending has left with a neighbour it gets resting ones that were the
    /// neighbour's.
    fn blocks_for(&self, config: &RegionConfig) -> Vec<BlockId> {
        let named = self.blocks_of(config);
        let is_elsewhere = |block: &&BlockId| self.owner_of(**block).is_some();
        let elsewhere = named.iter().filter(is_elsewhere).count();
        let strays = if elsewhere == 0 { Vec::new() } else { self.strays(elsewhere) };
        let is_at_hand = |block: &BlockId| !self.is_used[block.0 as usize] || self.resting.contains_key(block);
        named.into_iter().filter(is_at_hand).chain(strays).collect()
    }
    /// Resting blocks that the configuration of a living region names.
    fn strays(&self, count: usize) -> Vec<BlockId> {
        let regions = self.regions.iter().flatten();
        let named: BTreeSet<BlockId> = regions.flat_map(|region| self.blocks_of(&region.config)).collect();
        self.resting.keys().filter(|block| named.contains(block)).take(count).copied().collect()
    }
    fn owner_of(&self, block: BlockId) -> Option<RegionId> {
        let owns = |region: &Option<Region>| {
            region.as_ref().is_some_and(|region| region.volume.layer.erases_of(block).is_some())
        };
        self.regions.iter().position(owns).map(|index| RegionId(index as u32))
    }
    /// All blocks that a configuration names.
    fn blocks_of(&self, config: &RegionConfig) -> Vec<BlockId> {
        let per_die = self.geometry().blocks_per_die();
        let places = match &config.isolation {
            Isolation::Hardware => 0..per_die,
            Isolation::Software { blocks } => blocks.clone(),
        };
        config.dies.iter().flat_map(|die| places.clone().map(|place| BlockId(die.0 * per_die + place))).collect()
    }
    fn layer_config(&self, config: &RegionConfig) -> FtlConfig {
        FtlConfig {
            geometry: *self.geometry(),
            logical_units: config.logical_units,
            victim: config.victim,
            hot_cold: config.hot_cold,
            endurance: config.endurance,
            seed: config.seed,
        }
    }
    fn with_wear(&self, blocks: &[BlockId]) -> impl Iterator<Item = SpareBlock> {
        let erases = |block| self.resting.get(block).copied().unwrap_or(0);
        blocks.iter().map(move |block| SpareBlock { block: *block, erases: erases(block) })
    }
    fn region(&self, id: RegionId) -> Result<&Region, SdfError> {
        self.regions.get(id.0 as usize).and_then(Option::as_ref).ok_or(SdfError::UnknownRegion(id))
    }
    fn region_mut(&mut self, id: RegionId) -> Result<&mut Region, SdfError> {
        Ok(self.parts(id)?.1)
    }
    fn parts(&mut self, id: RegionId) -> Result<(&mut FlashArray, &mut Region), SdfError> {
        let region = self.regions.get_mut(id.0 as usize).and_then(Option::as_mut);
        Ok((&mut self.array, region.ok_or(SdfError::UnknownRegion(id))?))
    }
}

impl Region {
    fn check_unit(&self, unit: u64) -> Result<(), FtlError> {
        let units = self.config.logical_units;
        if unit < units { Ok(()) } else { Err(FtlError::OutOfRange { unit, units }) }
    }
}

/// The wear of two sets of blocks, neither of them empty, together.
fn both(one: Wear, other: Wear) -> Wear {
    let blocks = one.blocks + other.blocks;
    let sum = one.mean * f64::from(one.blocks) + other.mean * f64::from(other.blocks);
    Wear { min: one.min.min(other.min), mean: sum / f64::from(blocks), max: one.max.max(other.max), blocks }
}
