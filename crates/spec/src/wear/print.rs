//! From a plan of wear levelling back to the file that says all of it.

use super::file::{ReplacementFile, TriggerName, WearFile};
use super::{GlobalLevelling, LocalLevelling, Replacement, Wear, WearLoad, WornDrive};
use crate::design_file::{DesignFile, DesignName};
use crate::file::ExperimentFile;
use crate::quantity::Quantity;

/// The file that says all of `wear`, save title and seed.
pub(crate) fn file_of(wear: &Wear) -> ExperimentFile {
    let mut file = WearFile {
        servers: Some(wear.servers),
        ssds: Some(wear.ssds),
        vssds: Some(wear.vssds),
        days: Some(wear.days),
        arm: Some(wear.arm),
        rate_window_days: Some(wear.rate_window_days),
        replacement: (!wear.replacements.is_empty()).then(|| wear.replacements.iter().map(replacement_of).collect()),
        ..WearFile::default()
    };
    write_levelling(&wear.local, &wear.global, &mut file);
    write_load(&wear.load, &mut file);
    write_drive(&wear.drive, &mut file);
    ExperimentFile {
        design: Some(DesignFile { name: Some(DesignName::WearLevelling), ..DesignFile::default() }),
        wear: Some(file),
        ..ExperimentFile::default()
    }
}

fn write_levelling(local: &LocalLevelling, global: &GlobalLevelling, file: &mut WearFile) {
    file.gamma = Some(local.gamma);
    file.local_period_days = Some(local.period_days);
    file.trigger = Some(local.trigger);
    file.horizon_days = (local.trigger == TriggerName::Uneven).then_some(local.horizon_days);
    file.global_period_days = Some(global.period_days);
    file.global_pairs = Some(global.pairs);
}

fn write_load(load: &WearLoad, file: &mut WearFile) {
    file.workloads = Some(load.workloads.iter().map(|each| each.name.into()).collect());
    file.assignment = Some(load.assignment);
    file.peak_per_day = Some(Quantity(load.peak_per_day));
    file.write_amplification = Some(load.write_amplification);
    file.spread = Some(load.spread);
    file.drift = Some(load.drift);
    file.drift_days = Some(load.drift_days);
}

fn write_drive(drive: &WornDrive, file: &mut WearFile) {
    file.capacity = Some(Quantity(drive.capacity));
    file.endurance = Some(drive.endurance);
    file.swap_erases = Some(drive.swap_erases);
}

fn replacement_of(replacement: &Replacement) -> ReplacementFile {
    let Replacement { day, server, ssd } = *replacement;
    ReplacementFile { day: Some(day), server: Some(server), ssd: Some(ssd) }
}
