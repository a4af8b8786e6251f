//! Drives before a run: in the state that the plan says, or saved in that state for other runs.

use super::build::{BuildError, drives_of_all};
use super::drives::Drives;
use base::Seed;
use blox::VssdId;
use hardware::ssd::{KeptFree, RegionArchive, Wear};
use plan::blox::{Blox, Collection, CoordinationName, FlashState};

/// Drives that were prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Their states, for a file.
    pub archive: RegionArchive,
    /// Each vSSD, in order.
    pub vssds: Vec<PreparedVssd>,
}

/// A vSSD that was prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedVssd {
    /// Its number.
    pub vssd: VssdId,
    /// Pages that hold data.
    pub pages: u64,
    /// Write amplification of each window, where it had to become steady.
    pub windows: Vec<f64>,
    /// The share of its blocks that is free.
    pub free: f64,
    /// Erase counts.
    pub wear: Wear,
}

/// Prepares the drives of a plan's rack without running anything. The same plan and seed give the
/// same states.
///
/// # Errors
/// When a drive refuses its numbers, its data, or to become steady.
pub fn precondition(plan: &Blox, seed: Seed) -> Result<Prepared, BuildError> {
    let mut prepared = Prepared { archive: RegionArchive::new(plan.snapshot_shape()), vssds: Vec::new() };
    for (drives, windows) in drives_of_all(plan, seed)? {
        for (vssd, windows) in windows {
            prepared.archive.put(vssd.0, drives.save(vssd)?);
            prepared.vssds.push(prepared_vssd(&drives, vssd, windows)?);
        }
    }
    prepared.vssds.sort_by_key(|prepared| prepared.vssd);
    Ok(prepared)
}

fn prepared_vssd(drives: &Drives, vssd: VssdId, windows: Vec<f64>) -> Result<PreparedVssd, BuildError> {
    let (flash, region) = drives.region(vssd);
    let layer = flash.layer(region).map_err(BuildError::of)?;
    Ok(PreparedVssd { vssd, pages: layer.valid_units(), windows, free: layer.free_ratio(), wear: layer.wear() })
}

/// What a server under load keeps free: it collects when it would like to, if there is somebody who
/// may allow that, or else when it must.
fn kept_free(collection: &Collection) -> KeptFree {
    let Collection { soft, regular, stop, .. } = *collection;
    let begin = if collection.coordination == CoordinationName::Uncoordinated { regular } else { soft };
    KeptFree { begin, end: stop }
}

/// Brings a vSSD into the state of the plan; returns the write amplification of each window, where
/// it has to become steady.
pub(super) fn prepare(plan: &Blox, drives: &mut Drives, vssd: VssdId, seed: Seed) -> Result<Vec<f64>, BuildError> {
    let count = plan.io.working_set_blocks;
    let keep = 1.0 - plan.vssd.used_before;
    let mut pages = seed.stream("prepare");
    let next = || pages.below(count);
    match &plan.flash.state {
        FlashState::Clean => Ok(Vec::new()),
        FlashState::Filled => drives.fill(vssd, count).map(|()| Vec::new()),
        FlashState::Used => drives.prepare(vssd, count, keep, next).map(|()| Vec::new()).map_err(BuildError::of),
        FlashState::Fragmented(steady) => drives.fragment(vssd, count, kept_free(&plan.collection), *steady, next),
        FlashState::Snapshot(snapshot) => {
            let lacking = || BuildError(format!("`{}` has no vSSD {}", snapshot.file, vssd.0));
            let state = snapshot.archive.get(vssd.0).ok_or_else(lacking)?;
            drives.restore(vssd, state).map(|()| Vec::new())
        }
    }
}
