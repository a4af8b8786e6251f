//! Plans of wear levelling: a rack of drives over years, without requests (RackBlox, 3.6 and 4.6).
//!
//! Days are bare numbers here: `base::Time` counts picoseconds and ends after 213 days.

pub(crate) mod file;
pub(crate) mod resolve;
mod warnings;

use base::Bytes;
pub use file::{ArmName, TriggerName, WearAssignmentName};
use workload::storage::Profile;

/// Days of a year: leap days are left out.
pub const DAYS_PER_YEAR: u32 = 365;
/// How often a block can be written (RackBlox, 3.6).
pub const ENDURANCE: u32 = 30_000;
/// Swaps of a drive in five years, one every twelve days (RackBlox, 3.6).
pub const SWAPS_IN_FIVE_YEARS: f64 = 152.0;
/// vSSDs that a rack may have.
pub const VSSDS_MAX: u64 = 1 << 24;

/// A rack of drives, their writes, and the policy of swaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// Servers of the rack.
    pub servers: u32,
    /// Drives of a server.
    pub ssds: u32,
    /// vSSDs of a drive, which stay together.
    pub vssds: u32,
    /// Days that are played.
    pub days: u32,
    /// Policy of swaps.
    pub arm: ArmName,
    /// Within servers.
    pub local: LocalLevelling,
    /// Between servers.
    pub global: GlobalLevelling,
    /// Days over which a drive's rate of wear is smoothed.
    pub rate_window_days: u32,
    /// What is written.
    pub load: WearLoad,
    /// What each drive is made of.
    pub drive: WornDrive,
    /// Drives that are replaced by new ones, in order of their days.
    pub replacements: Vec<Replacement>,
}

/// Wear levelling within a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalLevelling {
    /// By how much the most worn drive may exceed the mean.
    pub gamma: f64,
    /// Days between two checks.
    pub period_days: u32,
    /// What makes a look swap.
    pub trigger: TriggerName,
    /// With [`TriggerName::Uneven`]: days to look ahead.
    pub horizon_days: u32,
}

/// Wear levelling between servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalLevelling {
    /// Days between two checks.
    pub period_days: u32,
    /// Drives of either server that a look exchanges at most.
    pub pairs: u32,
}

/// What vSSDs write.
#[derive(Clone, Debug, PartialEq)]
pub struct WearLoad {
    /// The applications.
    pub workloads: Vec<&'static Profile>,
    /// Which vSSD runs which.
    pub assignment: WearAssignmentName,
    /// What a vSSD would write a day if it only wrote.
    pub peak_per_day: Bytes,
    /// Write amplification: pages written to flash for each page of the host.
    pub write_amplification: f64,
    /// By how much vSSDs of one application differ.
    pub spread: f64,
    /// By how much the load of a vSSD drifts.
    pub drift: f64,
    /// Days from one turn of the drift to the next.
    pub drift_days: u32,
}

/// What a drive is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WornDrive {
    /// Flash, spare blocks included.
    pub capacity: Bytes,
    /// Erases that a block endures.
    pub endurance: u32,
    /// What a swap costs either drive, in erases of all its blocks.
    pub swap_erases: f64,
}

/// A drive that is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// At the start of which day; the first is 1.
    pub day: u32,
    /// Its server, from 0.
    pub server: u32,
    /// Its place in the server, from 0.
    pub ssd: u32,
}

impl Wear {
    /// vSSDs of the rack.
    pub fn vssds_in_rack(&self) -> u64 {
        u64::from(self.servers).saturating_mul(u64::from(self.ssds)).saturating_mul(u64::from(self.vssds))
    }

    /// Days of all vSSDs together: what a run takes time for.
    pub fn vssd_days(&self) -> u64 {
        self.vssds_in_rack().saturating_mul(u64::from(self.days))
    }

    /// Share of its endurance that the mean drive uses in the whole run, swaps left out; that of
    /// workloads that are dealt out evenly.
    pub fn used_mean(&self) -> f64 {
        let WearLoad { workloads, peak_per_day, write_amplification, .. } = &self.load;
        let share = workloads.iter().map(|each| each.mix().write_share()).sum::<f64>() / workloads.len() as f64;
        let bytes_per_day = peak_per_day.count() as f64 * share * write_amplification * f64::from(self.vssds);
        let erases = bytes_per_day * f64::from(self.days) / self.drive.capacity.count() as f64;
        erases / f64::from(self.drive.endurance)
    }
}
