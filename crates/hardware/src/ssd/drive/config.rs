//! What a drive is made of, whether that fits together, and why a drive refuses.

use crate::ssd::ftl::{FtlConfig, FtlError, SnapshotError, VictimPolicy};
use crate::ssd::geometry::{BlockId, Geometry, GeometryError, Timing};
use base::{Bytes, Rate, Seed, Span};
use serde::Serialize;

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct SolidStateConfig {
    /// Its flash.
    pub geometry: Geometry,
    /// The flash's times.
    pub timing: Timing,
    /// Spare space, as a share of what the host sees: with 0.07 there are 1.07 times the host's bytes.
    pub over_provisioning: f64,
    /// To the host.
    pub link: HostLink,
    /// The controller's own time.
    pub firmware: Firmware,
    /// Where writes wait for their program.
    pub buffer: WriteBuffer,
    /// When garbage is collected, and which.
    pub collection: CollectionConfig,
    /// Erases until a block goes bad; endless if `None`.
    pub endurance: Option<u32>,
    /// How often reads of worn blocks are repeated, by ascending wear; empty for never.
    pub read_retry: Vec<RetryStep>,
    /// Of the random victim policies.
    pub seed: Seed,
}

/// The link between host and drive (PCIe): each direction sends one transfer after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostLink {
    /// Of data, each direction.
    #[serde(skip)]
    pub rate: Rate,
    /// What a command takes beside its data: doorbell, fetch of the command, completion. A latency; commands overlap.
    pub command: Span,
}

/// A time for each command and one for each 4 KiB of it, begun ones counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Once.
    pub command: Span,
    /// For each 4 KiB.
    pub per_4_kib: Span,
}

/// The controller's own time. A latency; commands overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Firmware {
    /// Of a read.
    pub read: Cost,
    /// Of a write.
    pub write: Cost,
}

/// DRAM in front of the flash, with power for its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBuffer {
    /// What fits into it: data of pages that gather and of those that are programmed.
    pub capacity: Bytes,
    /// How long it takes to store a command's data.
    pub write_in: Cost,
    /// When what it holds is programmed.
    pub flush: FlushPolicy,
}

/// When a write buffer is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushPolicy {
    /// A page as soon as it is full. One that is not waits for more, for a flush, or until the buffer is full of such.
    FullPages,
    /// As well, and pages that are not full when nothing was written for so long.
    AfterIdle(Span),
    /// There is no buffer: every command programs its pages, full or not, and ends after that.
    Through,
}

/// Garbage collection of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionConfig {
    /// Which block is collected next.
    pub victim: VictimPolicy,
    /// Whether host units that are overwritten soon after they were written go to blocks of their own.
    pub hot_cold: bool,
    /// Collection of a die begins when it has so few free blocks.
    pub start: u32,
    /// It ends when it has so many again.
    pub stop: u32,
}

/// How often a read is repeated from some wear on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RetryStep {
    /// For blocks erased at least so often.
    pub erases: u32,
    /// Repetitions.
    pub retries: u32,
}

/// Why a drive refused. Nothing has changed then, save that a write of several units may have been stored in part when
/// [`DriveError::Layer`] says that the drive is worn out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Geometry or timing do not hold together.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The translation layer refused: not enough spare space, or worn out.
    #[error(transparent)]
    Layer(#[from] FtlError),
    /// A snapshot could not be taken up.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A number that does not fit.
    #[error("{field}: {reason}")]
    Config {
        /// The field of [`SolidStateConfig`].
        field: &'static str,
        /// What was got and what is allowed.
        reason: String,
    },
    /// A command past the end.
    #[error("{bytes} B at {address} are beyond the drive's {capacity} B")]
    Beyond {
        /// First byte.
        address: u64,
        /// How many.
        bytes: u64,
        /// What the drive has.
        capacity: u64,
    },
    /// A command that moves nothing.
    #[error("a command of 0 B at {address}")]
    NoBytes {
        /// Its address.
        address: u64,
    },
}

impl Cost {
    /// Nothing.
    pub const NONE: Cost = Cost { command: Span::ZERO, per_4_kib: Span::ZERO };

    /// The time of a command.
    pub fn of(&self, bytes: Bytes) -> Span {
        self.command + self.per_4_kib * bytes.count().div_ceil(4096)
    }
}

impl SolidStateConfig {
    /// Whether the numbers fit each other. (Whether the spare space is enough, the translation layer says.)
    pub fn check(&self) -> Result<(), DriveError> {
        self.geometry.check()?;
        self.timing.check()?;
        self.check_space()?;
        self.check_thresholds()?;
        if self.link.rate.as_bps() == 0 {
            return Err(DriveError::config("link.rate", "0 b/s, and more is needed"));
        }
        if !self.read_retry.is_sorted_by_key(|step| step.erases) {
            return Err(DriveError::config("read_retry", "its steps are not in the order of wear"));
        }
        Ok(())
    }
    /// The same drive with more or less flash behind the same dies: latencies and bandwidths stay.
    pub fn with_blocks_per_plane(mut self, blocks: u32) -> SolidStateConfig {
        self.geometry.blocks_per_plane = blocks;
        self
    }
    /// Units that the host sees.
    pub fn logical_units(&self) -> u64 {
        self.geometry.logical_units(self.geometry.blocks(), self.over_provisioning)
    }

    pub(super) fn layer(&self) -> FtlConfig {
        FtlConfig {
            geometry: self.geometry,
            logical_units: self.logical_units(),
            victim: self.collection.victim,
            hot_cold: self.collection.hot_cold,
            endurance: self.endurance,
            seed: self.seed,
        }
    }
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.geometry.blocks()).map(BlockId)
    }
    /// Repetitions of a read of a block with this wear.
    pub(super) fn retries(&self, erases: u32) -> u32 {
        let passed = self.read_retry.partition_point(|step| step.erases <= erases);
        passed.checked_sub(1).map_or(0, |index| self.read_retry[index].retries)
    }

    fn check_space(&self) -> Result<(), DriveError> {
        if !(self.over_provisioning.is_finite() && self.over_provisioning >= 0.0) {
            let reason = format!("{}, and a share of at least 0 is needed", self.over_provisioning);
            return Err(DriveError::config("over_provisioning", reason));
        }
        let (capacity, page) = (self.buffer.capacity.count(), self.geometry.page.count());
        if self.buffer.flush != FlushPolicy::Through && capacity < page {
            let reason = format!("{capacity} B do not hold a page of {page} B");
            return Err(DriveError::config("buffer.capacity", reason));
        }
        Ok(())
    }
    fn check_thresholds(&self) -> Result<(), DriveError> {
        let CollectionConfig { start, stop, .. } = self.collection;
        let blocks = self.geometry.blocks_per_die();
        if start >= stop || stop >= blocks {
            let reason = format!(
                "start at {start} and stop at {stop} free blocks; needed is start < stop < {blocks}, the blocks of a die"
            );
            return Err(DriveError::config("collection", reason));
        }
        Ok(())
    }
}

impl DriveError {
    pub(super) fn config(field: &'static str, reason: impl Into<String>) -> DriveError {
        DriveError::Config { field, reason: reason.into() }
    }
}
