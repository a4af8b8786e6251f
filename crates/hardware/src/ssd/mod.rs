//! Software-defined flash: geometry, timing of dies and channels, translation layers, and whole
//! solid-state drives made of them.
//!
//! * [`Geometry`], [`Timing`]: what a drive is made of and how long its parts take; [`presets`] has
//!   named drives with their sources.
//! * [`mod@array`]: channels and dies that answer *when* a page is read or programmed or a block
//!   erased, and how much of the wait was for other I/O and how much for garbage collection.
//! * `ftl`: where each logical unit lies in a set of blocks; free blocks, victims, wear. It knows
//!   no time.
//! * [`sdf`]: an array divided into regions, each with a translation layer of its own; the owner
//!   decides when a region collects garbage (open-channel drives, RackBlox).
//! * [`drive`]: a solid-state drive that decides itself: host link, firmware, write buffer, its own
//!   garbage collection.
//! * [`DirectDrive`]: a drive that writes in place (Optane).
//! * [`RegionArchive`]: the states of many regions in one file.
//! * [`QuickDrive`]: a solid-state drive as a few sums, for racks of many.
//! * `fit`: moves a drive's parameters until it answers as a real one did (fio's JSON).

mod amplification;
mod archive;
pub mod array;
mod direct;
pub mod drive;
mod endurance;
mod fit;
mod ftl;
mod geometry;
pub mod presets;
mod quick;
pub mod sdf;
mod volume;

pub use amplification::uniform_amplification;
pub use archive::RegionArchive;
pub use array::{ArrayCounters, Booked, Busy, FlashArray, FlashOperation, Purpose, Ticket};
pub use direct::{DirectConfig, DirectDrive};
pub use drive::{
    CollectionConfig, Command, CommandKind, Cost, Done, DriveError, DriveReport, Firmware, FlushPolicy, HostLink,
    LatencyQuantiles, Pattern, Precondition, PreconditionError, PreconditionReport, RetryStep, SolidState,
    SolidStateConfig, Steady, WriteBuffer,
};
pub use endurance::Endurance;
pub use fit::{
    ClosedLoad, FioError, FioRun, Fit, FitError, FitPoint, FitRequest, FittedParameter, FittedPoint, Free,
    KNOWN_WITHIN_MAX, Outcome, Parameter, Range, WrittenState, fit, predict, read_fio,
};
pub use ftl::{
    EraseOutcome, FtlConfig, FtlCounters, FtlError, Relocation, SnapshotError, SpareBlock, TranslationLayer,
    VictimPolicy, Wear, Written,
};
pub use geometry::{BlockId, DieId, Geometry, GeometryError, PageAddress, PageTimes, Suspension, Timing, UnitAddress};
pub use quick::{QuickConfig, QuickDrive};
pub use sdf::{
    Isolation, KeptFree, RegionConfig, RegionCounters, RegionId, SdfConfig, SdfError, SoftwareDefinedFlash, WriteBooked,
};
pub use volume::CollectStep;
