//! Why software-defined flash refused, always with the numbers.

use super::RegionId;
use crate::ssd::ftl::{FtlError, SnapshotError};
use crate::ssd::geometry::GeometryError;

/// Reason why software-defined flash refused. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdfError {
    /// Geometry or timing do not hold together.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The translation layer refused: not enough space, a unit beyond the region, no free block.
    #[error(transparent)]
    Layer(#[from] FtlError),
    /// A snapshot could not be written or taken up.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// There is no such region.
    #[error("there is no region {}", .0.0)]
    UnknownRegion(RegionId),
    /// A region needs dies, each once.
    #[error("a region of {dies} dies of which {distinct} differ; it needs at least one, and each once")]
    DiesNotDistinct {
        /// Dies that were named.
        dies: usize,
        /// Different ones among them.
        distinct: usize,
    },
    /// A die that the array does not have.
    #[error("die {die} does not exist: the array has {dies}")]
    UnknownDie {
        /// What was named.
        die: u32,
        /// Dies of the array.
        dies: u32,
    },
    /// Blocks that a die does not have.
    #[error("blocks {start}..{end} of each die do not exist: a die has {blocks_per_die}")]
    UnknownBlocks {
        /// The first that was named.
        start: u32,
        /// One past the last.
        end: u32,
        /// Blocks of a die.
        blocks_per_die: u32,
    },
    /// Hardware isolation needs whole channels.
    #[error("hardware isolation needs whole channels: {given} of the {dies} dies of channel {channel} were given")]
    PartOfChannel {
        /// The channel.
        channel: u32,
        /// Its dies that were named.
        given: u32,
        /// Its dies.
        dies: u32,
    },
    /// One of the two regions does not share channels.
    #[error("channel {channel} belongs to region {}", owner.0)]
    ChannelOwned {
        /// The channel.
        channel: u32,
        /// The owner.
        owner: RegionId,
    },
    /// Blocks of another region.
    #[error("blocks {start}..{end} of die {die} belong to region {}", owner.0)]
    BlocksOwned {
        /// The die.
        die: u32,
        /// The first block, by its place in the die.
        start: u32,
        /// One past the last.
        end: u32,
        /// The owner.
        owner: RegionId,
    },
    /// A request for more than a unit.
    #[error("{bytes} B were requested, and a unit has {unit} B")]
    BeyondUnit {
        /// The rejected value.
        bytes: u64,
        /// What a unit has.
        unit: u64,
    },
    /// Blocks are lent between regions that span the same channels only (RackBlox, 3.5.2).
    #[error("regions {} and {} do not span the same channels", from.0, to.0)]
    NotOneGroup {
        /// The lending region.
        from: RegionId,
        /// The borrowing region.
        to: RegionId,
    },
    /// The lender has no more free blocks than it needs itself.
    #[error("region {} can spare {free} free blocks, and {wanted} were requested", from.0)]
    TooFewFree {
        /// The lending region.
        from: RegionId,
        /// The requested number.
        wanted: u32,
        /// What it can spare.
        free: u32,
    },
    /// A region that has lent or borrowed cannot be deleted or restored.
    #[error("region {} still has {blocks} blocks lent or borrowed", region.0)]
    Indebted {
        /// The region.
        region: RegionId,
        /// Blocks on loan, either way.
        blocks: u32,
    },
}

impl SdfError {
    /// Returns whether garbage has to be collected before this write.
    pub fn is_no_free_block(&self) -> bool {
        matches!(self, SdfError::Layer(FtlError::NoFreeBlock))
    }
}
