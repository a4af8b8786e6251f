//! What the model of years has seen.

use super::{Drive, WearArm};
use crate::wear::imbalance;
use serde::Serialize;

/// What one run has seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WearReport {
    /// Levels that swapped.
    pub arm: WearArm,
    /// One a day, after its swaps, in order.
    pub samples: Vec<WearSample>,
    /// Every so many days and on the last.
    pub snapshots: Vec<WearSnapshot>,
    /// The swaps.
    pub swaps: SwapCounts,
    /// What that cost, and what the drives have left.
    pub lifetime: Lifetime,
}

/// Imbalances at the end of a day; each is the largest over the mean of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WearSample {
    /// From 1.
    pub day: u32,
    /// Between the drives of a server, largest of all servers (Figure 22).
    pub server_max: f64,
    /// The same, mean of all servers.
    pub server_mean: f64,
    /// Between servers, each by the mean of its drives (RackBlox, 3.6). Swaps within servers cannot
    /// change it.
    pub rack_servers: f64,
    /// Between all drives of the rack (Figure 23, whose local arm would else equal that without
    /// swaps).
    pub rack_ssds: f64,
    /// Erases of a block, mean over all drives.
    pub erases_mean: f64,
    /// Swaps so far, within servers and between them.
    pub swaps: u32,
}

/// Wear of all drives at the end of a day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WearSnapshot {
    /// From 1.
    pub day: u32,
    /// Erases of a block of each drive, server by server.
    pub erases: Vec<f64>,
}

/// Swaps that were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwapCounts {
    /// Within each server.
    pub local: Vec<u32>,
    /// Between servers, in pairs of drives.
    pub global: u32,
    /// Checks between servers that led to a swap.
    pub global_looks: u32,
}

/// Shares of the erases that a block endures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lifetime {
    /// Used for swaps, mean of all drives.
    pub swaps_mean: f64,
    /// Used for swaps by the drive that swapped most.
    pub swaps_max: f64,
    /// Share of endurance used by a hypothetical drive in every swap of the server with the most
    /// swaps, and in one of each check between servers. The worst case, of which 3.6 says 0.5 %
    /// (without the latter).
    pub swaps_worst_case: f64,
    /// Used by the mean drive, for everything.
    pub used_mean: f64,
    /// Used by the most worn drive, for everything. Above 1 it would have died.
    pub used_max: f64,
}

impl WearReport {
    /// The largest imbalance between the drives of a server from the end of a day on (Figure 22,
    /// where that is when levelling has set in); `None` if the run is not that long.
    pub fn server_imbalance_max(&self, from_day: u32) -> Option<f64> {
        self.samples.iter().filter(|sample| sample.day >= from_day).map(|sample| sample.server_max).reduce(f64::max)
    }
    /// The last day's sample.
    pub fn last(&self) -> Option<&WearSample> {
        self.samples.last()
    }
    /// Days at whose end a server exceeds an imbalance of 1 + gamma.
    pub fn days_above(&self, gamma: f64) -> usize {
        self.samples.iter().filter(|sample| sample.server_max > 1.0 + gamma).count()
    }
}

impl SwapCounts {
    /// Within all servers.
    pub fn local_total(&self) -> u32 {
        self.local.iter().sum()
    }
}

impl WearSample {
    pub(super) fn of(day: u32, drives: &[Drive], ssds: usize, swaps: u32) -> WearSample {
        let servers = || drives.chunks(ssds);
        let within = |server: &[Drive]| imbalance(server.iter().map(|drive| drive.erases));
        WearSample {
            day,
            server_max: servers().map(within).fold(1.0, f64::max),
            server_mean: mean(servers().map(within)),
            rack_servers: imbalance(servers().map(|server| mean(server.iter().map(|drive| drive.erases)))),
            rack_ssds: within(drives),
            erases_mean: mean(drives.iter().map(|drive| drive.erases)),
            swaps,
        }
    }
}

impl Lifetime {
    pub(super) fn of(drives: &[Drive], endurance: f64, worst_case_erases: f64) -> Lifetime {
        let swaps = || drives.iter().map(|drive| drive.swap_erases / endurance);
        let used = || drives.iter().map(|drive| drive.erases / endurance);
        Lifetime {
            swaps_mean: mean(swaps()),
            swaps_max: swaps().fold(0.0, f64::max),
            swaps_worst_case: worst_case_erases / endurance,
            used_mean: mean(used()),
            used_max: used().fold(0.0, f64::max),
        }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}
