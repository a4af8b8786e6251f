//! What the model of years is made of.

use crate::wear::{GlobalConfig, LocalConfig, SsdPlace, SwapTrigger, WearError};
use base::{Bytes, Seed};
use serde::Serialize;

/// Most drives and vSSDs of a rack, so that their numbers fit.
const VSSDS_MAX: u64 = 1 << 24;

/// A rack, its load and its balancers.
#[derive(Clone, Debug, PartialEq)]
pub struct WearConfig {
    /// Servers of the rack.
    pub servers: u32,
    /// Drives of a server.
    pub ssds: u32,
    /// vSSDs of a drive. All move with their drive's contents.
    pub vssds: u32,
    /// Configuration of a drive.
    pub flash: DriveFlash,
    /// What vSSDs run.
    pub workloads: Vec<WearWorkload>,
    /// The of them runs which.
    pub assignment: Assignment,
    /// What a vSSD would write a day if it only wrote.
    pub peak_per_day: Bytes,
    /// By how much vSSDs of one workload differ: each has a factor between 1 minus this and 1 plus
    /// this, drawn once.
    pub rate_spread: f64,
    /// Drift of a vSSD's load: its factor moves steadily from one number between 1 minus this and 1
    /// plus this to the next.
    pub drift: f64,
    /// Days from one of these numbers to the next.
    pub drift_days: u32,
    /// Days that are played.
    pub days: u32,
    /// Within servers.
    pub local: LocalConfig,
    /// Between servers.
    pub global: GlobalConfig,
    /// Days over which a drive's rate of wear is smoothed, see [`RateMeter`](crate::RateMeter).
    pub rate_window_days: u32,
    /// What a swap costs either drive, in erases of a block: 1 for a drive that is written once as
    /// a whole.
    pub erases_per_swap: f64,
    /// Drives that are replaced.
    pub replacements: Vec<Replacement>,
    /// Levels that swap.
    pub arm: WearArm,
    /// Days between two [`WearSnapshot`](crate::WearSnapshot)s.
    pub snapshot_days: u32,
    /// Of the assignment, the spread and the drift.
    pub seed: Seed,
}

/// Configuration of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFlash {
    /// What an erase block holds.
    pub block: Bytes,
    /// Erase blocks of the drive, spare ones included.
    pub blocks: u32,
    /// Erases that a block endures.
    pub endurance: u32,
}

/// What a vSSD runs.
#[derive(Clone, Debug, PartialEq)]
pub struct WearWorkload {
    /// As tables name it.
    pub name: String,
    /// Writes of all requests, 0 to 1.
    pub write_share: f64,
    /// Pages written to flash per page of a request, 1 or more.
    pub write_amplification: f64,
}

/// Which vSSD runs which workload. vSSDs are handed to servers in turn, and by a server to its
/// drives in turn, as 4.6 has it; the workloads' order is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// The next vSSD runs the next workload.
    InTurn,
    /// Each runs one that is drawn.
    Drawn,
}

/// A drive that is replaced by a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// When, at the start of the day; the first day is 1.
    pub day: u32,
    /// The place.
    pub place: SsdPlace,
}

/// Levels that swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WearArm {
    /// Nobody.
    NoSwap,
    /// The servers, within themselves.
    Local,
    /// The servers, and the rack between them.
    LocalAndGlobal,
}

impl WearWorkload {
    /// The five applications of RackBlox's Table 2, with its write shares and one write
    /// amplification for all.
    pub fn table_2(write_amplification: f64) -> Vec<WearWorkload> {
        let shares = [("tpc-h", 2.27), ("seats", 10.34), ("auction-mark", 53.76), ("tpc-c", 59.95), ("twitter", 97.86)];
        let workload = |(name, percent): (&str, f64)| WearWorkload {
            name: name.into(),
            write_share: percent / 100.0,
            write_amplification,
        };
        shares.map(workload).into()
    }
}

impl WearConfig {
    /// The rack of RackBlox's 4.6: 32 servers of 16 drives of 4 vSSDs, five years, gamma of 0.1,
    /// swaps every 12 days within a server and every 8 weeks between two (3.6), 30,000 writes a
    /// block.
    ///
    /// Ours, as the paper gives none of it: drives of 1 TiB with the blocks of the P-SSD (256 pages
    /// of 16 KiB, `blox.md`); 4.5 TB a day (52 MB/s) at peak and a write amplification of 2, with
    /// which the mean drive uses nine tenths of its erases in the five years that 3.6 says a drive
    /// lasts; a spread and a drift of 20 %, the latter by the month; rates smoothed over four local
    /// periods; one drive of either server in a swap between servers; a swap at each look, as 3.6
    /// says "periodically" and counts the cost of one every 12 days.
    pub fn rackblox(arm: WearArm, seed: Seed) -> WearConfig {
        WearConfig {
            servers: 32,
            ssds: 16,
            vssds: 4,
            flash: DriveFlash { block: Bytes::kib(4_096), blocks: 1 << 18, endurance: 30_000 },
            workloads: WearWorkload::table_2(2.0),
            assignment: Assignment::InTurn,
            peak_per_day: Bytes::new(4_500_000_000_000),
            rate_spread: 0.2,
            drift: 0.2,
            drift_days: 30,
            days: 5 * 365,
            local: LocalConfig { gamma: 0.1, period_days: 12, trigger: SwapTrigger::EveryLook },
            global: GlobalConfig { period_days: 56, pairs: 1 },
            rate_window_days: 48,
            erases_per_swap: 1.0,
            replacements: Vec::new(),
            arm,
            snapshot_days: 30,
            seed,
        }
    }
    /// What one vSSD of a workload adds to the erases of a block of its drive in a day, before
    /// spread and drift.
    pub fn erases_per_day(&self, workload: &WearWorkload) -> f64 {
        let written = self.peak_per_day.count() as f64 * workload.write_share * workload.write_amplification;
        written / (self.flash.block.count() as f64 * f64::from(self.flash.blocks))
    }

    pub(super) fn check(&self) -> Result<(), WearError> {
        self.check_counts()?;
        self.check_shares()?;
        self.local.check()?;
        self.global.check()?;
        self.check_places()
    }
    fn check_counts(&self) -> Result<(), WearError> {
        let counts = [
            ("servers", self.servers),
            ("ssds", self.ssds),
            ("vssds", self.vssds),
            ("flash.blocks", self.flash.blocks),
            ("flash.endurance", self.flash.endurance),
            ("workloads", self.workloads.len() as u32),
            ("drift_days", self.drift_days),
            ("days", self.days),
            ("snapshot_days", self.snapshot_days),
        ];
        for (field, count) in counts {
            WearError::check(count > 0, field, count, "at least 1 is needed")?;
        }
        WearError::check(self.flash.block > Bytes::ZERO, "flash.block", 0, "at least 1 B is needed")?;
        let vssds = [self.ssds, self.vssds]
            .iter()
            .fold(u64::from(self.servers), |product, each| product.saturating_mul(u64::from(*each)));
        WearError::check(vssds <= VSSDS_MAX, "servers * ssds * vssds", vssds, "at most 16,777,216 are allowed")
    }
    fn check_shares(&self) -> Result<(), WearError> {
        for (field, share) in [("rate_spread", self.rate_spread), ("drift", self.drift)] {
            WearError::check((0.0..=1.0).contains(&share), field, share, "0 to 1 is allowed")?;
        }
        for each in &self.workloads {
            let (share, amplification) = (each.write_share, each.write_amplification);
            WearError::check((0.0..=1.0).contains(&share), "write_share", share, "0 to 1 is allowed")?;
            let is_allowed = amplification >= 1.0 && amplification.is_finite();
            WearError::check(is_allowed, "write_amplification", amplification, "1 or more is allowed")?;
        }
        let cost = self.erases_per_swap;
        WearError::check(cost >= 0.0 && cost.is_finite(), "erases_per_swap", cost, "0 or more is allowed")
    }
    fn check_places(&self) -> Result<(), WearError> {
        let has = |place: SsdPlace| place.server < self.servers && place.ssd < self.ssds;
        match self.replacements.iter().find(|each| !has(each.place)) {
            Some(each) => {
                let got = format!("server {}, drive {}", each.place.server, each.place.ssd);
                WearError::check(false, "replacements", got, "only drives of the rack are allowed")
            }
            None => Ok(()),
        }
    }
}
