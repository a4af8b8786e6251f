//! What a translation layer is configured with, and what it answers.

use crate::ssd::geometry::{BlockId, Geometry, GeometryError, PageAddress, UnitAddress};
use base::Seed;

/// Configuration of a translation layer.
#[derive(Clone, Debug, PartialEq)]
pub struct FtlConfig {
    /// The array's geometry, of which the region owns some blocks.
    pub geometry: Geometry,
    /// Units that the host sees.
    pub logical_units: u64,
    /// The block is collected next.
    pub victim: VictimPolicy,
    /// Whether host units whose last version was overwritten before collection moved it go to
    /// blocks of their own.
    pub hot_cold: bool,
    /// Number of erases after which a block goes bad; unlimited if `None`.
    pub endurance: Option<u32>,
    /// Of the random victim policies.
    pub seed: Seed,
}

/// Which of the full blocks is collected next. None ever takes a block that holds valid data only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VictimPolicy {
    /// The one with the fewest valid units.
    Greedy,
    /// The one with the largest `age * (1 - u) / 2u`, where `u` is its valid share (Kawaguchi,
    /// Nishioka and Motoda, USENIX 1995).
    CostBenefit,
    /// The one that was filled first.
    Fifo,
    /// Any.
    Random,
    /// The one with the fewest valid units of some that are drawn at random (Van Houdt, SIGMETRICS
    /// 2013).
    Choices(u32),
}

/// Reason why the layer refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FtlError {
    /// The geometry's numbers do not fit each other.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A policy that compares no blocks.
    #[error("a choice between 0 blocks, and at least 1 is needed")]
    NoChoice,
    /// There is no spare space to collect garbage with.
    #[error(
        "{logical_units} units do not fit: {blocks} blocks on {dies} dies hold at most {units_max} beside the {spare} spare blocks that each die needs"
    )]
    NoSpare {
        /// Units that the host shall see.
        logical_units: u64,
        /// Units that these blocks can offer.
        units_max: u64,
        /// Blocks of the region.
        blocks: u32,
        /// Dies that they are on.
        dies: u32,
        /// Blocks of each die that hold no data of the host.
        spare: u32,
    },
    /// A block that the array does not have.
    #[error("block {} does not exist: the array has {blocks}", block.0)]
    UnknownBlock {
        /// What was named.
        block: BlockId,
        /// Blocks of the array.
        blocks: u32,
    },
    /// A block that the region already owns.
    #[error("block {} is owned already", block.0)]
    OwnedAlready {
        /// What was named.
        block: BlockId,
    },
    /// A unit beyond the region.
    #[error("unit {unit} is beyond the region of {units} units")]
    OutOfRange {
        /// What was named.
        unit: u64,
        /// Units of the region.
        units: u64,
    },
    /// Garbage has to be collected first.
    #[error("no free block: garbage has to be collected first")]
    NoFreeBlock,
    /// So many blocks went bad that nothing is left to collect.
    #[error(
        "worn out: {good_blocks} good blocks with {valid_units} valid units left, {bad_blocks} are bad, and none can be collected"
    )]
    WornOut {
        /// Blocks that can still be written.
        good_blocks: u32,
        /// Blocks past their endurance.
        bad_blocks: u64,
        /// Units that they hold for the host.
        valid_units: u64,
    },
}

/// Where a written unit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its place.
    pub at: UnitAddress,
    /// The page that it filled, to be programmed now.
    pub program: Option<PageAddress>,
}

/// A page that was moved out of a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The page to read.
    pub from: PageAddress,
    /// How many valid units it held.
    pub units: u32,
    /// The page that they filled, to be programmed now.
    pub programs: Option<PageAddress>,
}

/// What became of a block that was to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EraseOutcome {
    /// It is free.
    Free,
    /// It was erased for the last time: the region has lost it.
    Bad,
    /// It is no victim, or still holds valid units: nothing has changed.
    Refused,
}

/// A free block in transit between regions, with its wear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareBlock {
    /// The block.
    pub block: BlockId,
    /// How often it was erased.
    pub erases: u32,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Units that the host wrote.
    pub host_units: u64,
    /// Units that were moved.
    pub relocated_units: u64,
    /// Units that were left empty to close a page.
    pub padded_units: u64,
    /// Pages that were filled.
    pub programs: u64,
    /// Blocks that were erased.
    pub erases: u64,
    /// Blocks that went bad.
    pub bad_blocks: u64,
    /// Mapped units that the host gave up.
    pub trims: u64,
    /// Blocks whose data were moved to level wear.
    pub levelled_blocks: u64,
}

/// Erase counts of the blocks of a region, bad ones not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// The fewest.
    pub min: u32,
    /// Their mean.
    pub mean: f64,
    /// The most.
    pub max: u32,
    /// Blocks counted.
    pub blocks: u32,
}

impl Wear {
    /// How far the most worn block is ahead of the least worn one, in erases.
    pub fn spread(&self) -> u32 {
        self.max - self.min
    }
}

impl FtlCounters {
    /// Units that were programmed, padding included, for each unit that the host wrote; 1 before it
    /// wrote any.
    pub fn write_amplification(&self) -> f64 {
        if self.host_units == 0 {
            return 1.0;
        }
        (self.host_units + self.relocated_units + self.padded_units) as f64 / self.host_units as f64
    }
}

/// Reason why a snapshot could not be taken up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It could not be read, or ended too early.
    #[error("cannot read the snapshot: {0}")]
    Read(#[from] std::io::Error),
    /// It is no snapshot, of another version, of another configuration, or damaged.
    #[error("the snapshot cannot be used: {0}")]
    Unusable(String),
}
