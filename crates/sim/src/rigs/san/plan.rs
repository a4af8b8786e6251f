//! From a plan to what the rig is made of.

use super::config::{Checks, DriveModel, DrivesConfig, Fault, FaultKind, HopPolicy, SanBuildError, SanRigConfig};
use base::{Bytes, Seed};
use hardware::ssd::presets::{DriveConfig, pm9a3_960_quick, pm9a3_960_quick_fragmented};
use hardware::ssd::{Pattern, Precondition, QuickConfig, SolidStateConfig, Steady};
use plan::blox::{Flash, PresetName};
use plan::san::{DriveModelName, DriveStateName, Drives, San, SanFault, SanPart};
use san::DriveId;

/// Blocks a plane of a drive that is cut down: enough for collection to choose among.
const BLOCKS_PER_PLANE: u32 = 24;
/// When a fragmented drive's write amplification counts as steady. Ours.
const STEADY: Steady = Steady { window: 0.25, windows: 3, tolerance: 0.05, windows_max: 40 };

impl SanRigConfig {
    /// What a plan asks for.
    ///
    /// # Errors
    /// When its drives cannot be had.
    pub fn of(plan: &San, seed: Seed, wire_check: bool) -> Result<SanRigConfig, SanBuildError> {
        Ok(SanRigConfig {
            graph: plan.fabric.graph.clone(),
            passing: plan.fabric.passing,
            ends: plan.ends,
            drives: DrivesConfig {
                per_target: plan.drives.per_target,
                model: drive_model(&plan.drives, plan.flash.as_ref().and_then(Flash::whole), seed)?,
            },
            hop: HopPolicy {
                route: plan.routing,
                reservation: plan.reservation.clone(),
                scheduling: plan.scheduling.clone(),
            },
            host: plan.host.clone(),
            target: plan.target.clone(),
            faults: plan.faults.iter().flat_map(faults_of).collect(),
            seed,
            checks: Checks { write_order: plan.check_write_order, wire: wire_check },
        })
    }
}

fn faults_of(fault: &SanFault) -> Vec<Fault> {
    let one = |what| Fault { at: fault.at, what, is_up: fault.is_repair };
    match &fault.part {
        SanPart::Links(links) => links.iter().map(|link| one(FaultKind::Link(*link))).collect(),
        SanPart::Vertex(vertex) => vec![one(FaultKind::Vertex(*vertex))],
        SanPart::Drive(drive) => vec![one(FaultKind::Drive(DriveId(*drive)))],
    }
}

/// `own` is a drive whose numbers are not its preset's.
fn drive_model(drives: &Drives, own: Option<SolidStateConfig>, seed: Seed) -> Result<DriveModel, SanBuildError> {
    let refuse = |reason: &str| SanBuildError::Drive { reason: reason.to_owned() };
    if let (DriveModelName::Quick, Some(own)) = (drives.model, &own) {
        return Ok(DriveModel::Quick(QuickConfig::of_flash(own, drives.capacity)));
    }
    let drive = own.map_or_else(|| drives.preset.drive(), DriveConfig::SolidState);
    match (drives.model, drives.preset, drive) {
        (DriveModelName::Quick, PresetName::Pm9a3, _) => {
            let preset = match drives.state {
                DriveStateName::Clean => pm9a3_960_quick(drives.capacity),
                DriveStateName::Fragmented => pm9a3_960_quick_fragmented(drives.capacity),
            };
            Ok(DriveModel::Quick(QuickConfig { buffer: drives.buffer, ..preset }))
        }
        (DriveModelName::Quick, ..) => Err(refuse("the quick model knows the numbers of pm9a3 alone")),
        (DriveModelName::Whole, _, DriveConfig::SolidState(config)) => Ok(DriveModel::Whole {
            config: Box::new(SolidStateConfig { seed: seed.child("drives"), ..cut_down(config, drives.capacity) }),
            precondition: match drives.state {
                DriveStateName::Clean => None,
                DriveStateName::Fragmented => Some(Precondition { fill: 1.0, pattern: Pattern::Fragmented(STEADY) }),
            },
        }),
        (DriveModelName::Whole, _, DriveConfig::Direct(_)) => {
            Err(refuse("a medium that is written in place has no state and is no drive of a target here"))
        }
    }
}

/// The same drive with so much flash behind its dies that a host sees `capacity` or a little more:
/// blocks have fewer pages, and are erased in proportion, so that latencies and bandwidths stay.
fn cut_down(mut config: SolidStateConfig, capacity: Bytes) -> SolidStateConfig {
    let whole = config.geometry.pages_per_block;
    let holds = |config: &SolidStateConfig| config.geometry.unit * config.logical_units() >= capacity;
    let with_pages = |pages| {
        let mut cut = config.clone();
        cut.geometry.pages_per_block = pages;
        let least = cut.blocks_per_plane_min().unwrap_or(whole).max(BLOCKS_PER_PLANE);
        cut.with_blocks_per_plane(least)
    };
    // The shortest blocks with which the least count of them is enough.
    let (mut few, mut pages) = (0, whole);
    while pages - few > 1 {
        let middle = few + (pages - few) / 2;
        if holds(&with_pages(middle)) { pages = middle } else { few = middle }
    }
    config = with_pages(pages);
    while !holds(&config) {
        let blocks = config.geometry.blocks_per_plane;
        config = config.with_blocks_per_plane(blocks + (blocks / 16).max(1));
    }
    config.timing.erase = config.timing.erase * u64::from(pages) / u64::from(whole);
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use hardware::ssd::SolidState;

    /// Whatever `check` accepts runs.
    #[test]
    fn a_drive_of_flash_that_is_cut_down_to_any_size_keeps_its_spare_blocks() {
        for preset in hardware::ssd::presets::PRESETS {
            let DriveConfig::SolidState(config) = (preset.config)(Seed(1)) else { continue };
            for mib in [64, 100, 512, 1_000, 2_048, 5_000] {
                let cut = cut_down(config.clone(), Bytes::kib(mib << 10));
                let drive = SolidState::new(cut).map(|_| ());
                assert!(drive.is_ok(), "{} of {mib} MiB: {drive:?}", preset.name);
            }
        }
    }

    #[test]
    fn a_drive_that_is_cut_down_holds_what_was_asked_for_and_little_more() {
        for gib in [1, 2, 16, 400] {
            let capacity = Bytes::kib(gib << 20);
            let DriveConfig::SolidState(config) = PresetName::Pm9a3.drive() else { panic!("it is flash") };
            let cut = cut_down(config, capacity);
            let seen = cut.logical_units() * cut.geometry.unit.count();
            let most = capacity.count() + capacity.count() / 8 + (256 << 20);
            assert!((capacity.count()..most).contains(&seen), "{gib} GiB: {seen}");
            assert!(cut.check().is_ok());
        }
    }
}
