//! What a drive is made of, whether that fits together, and why a drive refuses.

use crate::ssd::amplification::uniform_amplification;
use crate::ssd::ftl::{FtlConfig, FtlError, SnapshotError, VictimPolicy};
use crate::ssd::geometry::{BlockId, Geometry, GeometryError, Timing};
use base::{Bytes, Rate, Seed, Span};
use serde::Serialize;

/// Blocks of spare space that a die needs beside its reserve. Ours.
const SPARE_BLOCKS_MIN: f64 = 2.0;
/// Spare space of a die, in standard deviations of what is valid on it: writes go to dies in turn
/// and are overwritten at random, so that the valid units of a die vary as a Poisson count does,
/// and a die with less spare space loses more than one with more wins. At 4 that costs 2 %
/// (measured).
const SPARE_DEVIATIONS_MIN: f64 = 4.0;

/// Blocks of a plane beyond which nobody is sent.
const BLOCKS_PER_PLANE_MAX: u32 = 1 << 16;

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct SolidStateConfig {
    /// Its flash.
    pub geometry: Geometry,
    /// The flash's times.
    pub timing: Timing,
    /// Spare space, as a share of what the host sees: with 0.07 there are 1.07 times the host's
    /// bytes, beside the reserve of each die ([`reserve_units`](Self::reserve_units)).
    pub over_provisioning: f64,
    /// To the host.
    pub link: HostLink,
    /// The controller's own time.
    pub firmware: Firmware,
    /// Where writes wait for their program.
    pub buffer: WriteBuffer,
    /// When garbage is collected, and which.
    pub collection: CollectionConfig,
    /// Number of erases after which a block goes bad; unlimited if `None`.
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
    /// What a command takes beside its data: doorbell, fetch of the command, completion. A latency;
    /// commands overlap.
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
    /// A page as soon as it is full. One that is not waits for more, for a flush, or until the
    /// buffer is full of such.
    FullPages,
    /// As well, and pages that are not full when nothing was written for so long.
    AfterIdle(Span),
    /// There is no buffer: every command programs its pages, full or not, and ends after that.
    Through,
}

/// Garbage collection of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionConfig {
    /// The block is collected next.
    pub victim: VictimPolicy,
    /// Whether host units that are overwritten soon after they were written go to blocks of their
    /// own.
    pub hot_cold: bool,
}

/// How often a read is repeated from some wear on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RetryStep {
    /// For blocks erased at least so often.
    pub erases: u32,
    /// Repetitions.
    pub retries: u32,
}

/// Reason why a drive refused. Nothing has changed then, save that a write of several units may
/// have been stored in part when [`DriveError::Layer`] says that the drive is worn out.
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
        /// The actual number.
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
    /// Whether the numbers fit each other.
    pub fn check(&self) -> Result<(), DriveError> {
        self.geometry.check()?;
        self.timing.check()?;
        self.check_space()?;
        self.check_spare()?;
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
    /// Units that the host sees: those of all dies beside their reserves, less the
    /// over-provisioning.
    pub fn logical_units(&self) -> u64 {
        let of_die = self.units_per_die().saturating_sub(self.reserve_units());
        (of_die as f64 * f64::from(self.geometry.dies()) / (1.0 + self.over_provisioning)) as u64
    }
    /// Room that collection holds on each die, in units: a block that the host fills, one that
    /// moved units fill, and one of the two that a die must have free for the host to open one (the
    /// victim is the other); with hot and cold apart two more that are filled; and the pages by
    /// which a die may be behind. With that a die can always open a block: its free blocks are more
    /// than 1 then.
    pub fn reserve_units(&self) -> u64 {
        let apart = u64::from(self.collection.hot_cold);
        let geometry = &self.geometry;
        (3 + 2 * apart) * u64::from(geometry.units_per_block()) + (2 + apart) * u64::from(geometry.units_per_page())
    }
    /// Write amplification of uniformly random writes of whole units, if there is a closed form for
    /// this drive's victims; see [`uniform_amplification`].
    pub fn uniform_amplification(&self) -> Option<f64> {
        let ratio = 1.0 + self.over_provisioning;
        uniform_amplification(self.collection.victim, ratio, self.geometry.units_per_block())
    }
    /// The least blocks of a plane with which [`check`](Self::check) finds enough spare space;
    /// `None` if no number does.
    pub fn blocks_per_plane_min(&self) -> Option<u32> {
        // More blocks are never worse.
        let (mut few, mut enough) = (0, BLOCKS_PER_PLANE_MAX);
        let has_spare = |blocks| self.clone().with_blocks_per_plane(blocks).lacking_spare().is_none();
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if has_spare(middle) { enough = middle } else { few = middle }
        }
        has_spare(enough).then_some(enough)
    }

    fn units_per_die(&self) -> u64 {
        u64::from(self.geometry.blocks_per_die()) * u64::from(self.geometry.units_per_block())
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
    /// Whether the spare space of a die is enough for collection to choose among. With less, write
    /// amplification is not that of the over-provisioning (tests hold 5 % from here on).
    fn check_spare(&self) -> Result<(), DriveError> {
        let Some((spare, least)) = self.lacking_spare() else { return Ok(()) };
        let block = f64::from(self.geometry.units_per_block());
        let cure = self.blocks_per_plane_min().map_or_else(
            || "more over-provisioning is needed".to_owned(),
            |least| format!("at least {least} blocks a plane or more over-provisioning are needed"),
        );
        let reason = format!(
            "the {} blocks of a die, less {:.1} that collection keeps empty, leave {:.1} blocks of spare space at an \
             over-provisioning of {} %, and {:.1} are the least with which collection works as asked: {cure}",
            self.geometry.blocks_per_die(),
            self.reserve_units() as f64 / block,
            spare / block,
            (self.over_provisioning * 1e4).round() / 1e2,
            least / block,
        );
        Err(DriveError::config("blocks_per_plane", reason))
    }
    /// Returns the spare units of a die and the required number, if there are too few.
    fn lacking_spare(&self) -> Option<(f64, f64)> {
        let beside = self.units_per_die().saturating_sub(self.reserve_units()) as f64;
        let valid = beside / (1.0 + self.over_provisioning);
        let spare = beside - valid;
        let block = f64::from(self.geometry.units_per_block());
        let least = (SPARE_BLOCKS_MIN * block).max(SPARE_DEVIATIONS_MIN * valid.sqrt());
        (spare < least).then_some((spare, least))
    }
}

impl DriveError {
    pub(super) fn config(field: &'static str, reason: impl Into<String>) -> DriveError {
        DriveError::Config { field, reason: reason.into() }
    }
}
