//! Wear levelling over years: the model of crate `blox` as a run without requests.

#[cfg(test)]
mod tests;

use crate::drive::{Flow, Observer, Outcomes, Progress};
use base::{Bytes, Seed};
use blox::{
    Assignment, DriveFlash, GlobalConfig, LocalConfig, SsdPlace, SwapTrigger, WearArm, WearConfig, WearError,
    WearModel, WearReport, WearWorkload, imbalance,
};
use record::{RunIdentity, Summary, Transient};
use spec::wear::{
    ArmName, DAYS_PER_YEAR, LocalLevelling, Replacement, TriggerName, Wear, WearAssignmentName, WearLoad,
};
use std::collections::BTreeMap;

const NS_PER_DAY: f64 = 86_400e9;
/// The server whose drives are told one by one (Figure 22 shows one server).
const OBSERVED_SERVER: usize = 0;

/// Plays `wear`. The observer is asked every day; a run that it stops is summarised as partial.
///
/// # Errors
/// When the model refuses the numbers, which `spec` has checked.
pub(crate) fn play(wear: &Wear, identity: RunIdentity, observer: &mut dyn Observer) -> Result<Outcomes, WearError> {
    let model = WearModel::new(config(wear, Seed(identity.seed)))?;
    let goes_on = |day: u32| {
        let progress = Progress { events: u64::from(day - 1), ..Progress::default() };
        observer.progress(&progress) == Flow::Continue
    };
    let report = model.run_while(goes_on);
    let summary = summary(wear, identity, &report);
    Ok(Outcomes { summary, histograms: BTreeMap::new(), transient: Transient::Unknown, history: None })
}

fn config(wear: &Wear, seed: Seed) -> WearConfig {
    let WearLoad { peak_per_day, spread, drift, drift_days, .. } = wear.load;
    WearConfig {
        servers: wear.servers,
        ssds: wear.ssds,
        vssds: wear.vssds,
        // Only the product of block size and number counts.
        flash: DriveFlash { block: wear.drive.capacity, blocks: 1, endurance: wear.drive.endurance },
        workloads: workloads(&wear.load),
        assignment: match wear.load.assignment {
            WearAssignmentName::InTurn => Assignment::InTurn,
            WearAssignmentName::Drawn => Assignment::Drawn,
        },
        peak_per_day: Bytes::new(peak_per_day.count()),
        rate_spread: spread,
        drift,
        drift_days,
        days: wear.days,
        local: local(&wear.local),
        global: GlobalConfig { period_days: wear.global.period_days, pairs: wear.global.pairs },
        rate_window_days: wear.rate_window_days,
        erases_per_swap: wear.drive.swap_erases,
        replacements: wear.replacements.iter().map(replacement).collect(),
        arm: match wear.arm {
            ArmName::None => WearArm::NoSwap,
            ArmName::Local => WearArm::Local,
            ArmName::LocalAndGlobal => WearArm::LocalAndGlobal,
        },
        // Only the last day's is looked at.
        snapshot_days: wear.days,
        seed: seed.child("wear"),
    }
}

fn workloads(load: &WearLoad) -> Vec<WearWorkload> {
    let workload = |profile: &&workload::storage::Profile| WearWorkload {
        name: profile.name.into(),
        write_share: profile.mix().write_share(),
        write_amplification: load.write_amplification,
    };
    load.workloads.iter().map(workload).collect()
}

fn local(local: &LocalLevelling) -> LocalConfig {
    let trigger = match local.trigger {
        TriggerName::EveryLook => SwapTrigger::EveryLook,
        TriggerName::Uneven => SwapTrigger::Uneven { horizon_days: local.horizon_days },
    };
    LocalConfig { gamma: local.gamma, period_days: local.period_days, trigger }
}

fn replacement(replacement: &Replacement) -> blox::Replacement {
    let Replacement { day, server, ssd } = *replacement;
    blox::Replacement { day, place: SsdPlace { server, ssd } }
}

fn summary(wear: &Wear, identity: RunIdentity, report: &WearReport) -> Summary {
    let days = report.samples.len();
    let mut summary = Summary {
        version: identity.version,
        plan_hash: identity.plan_hash,
        design: identity.design,
        seeds: vec![identity.seed],
        labels: identity.labels,
        simulated_ns: days as f64 * NS_PER_DAY,
        events: days as u64,
        partial: days < wear.days as usize,
        ..Summary::default()
    };
    add_imbalances(wear, report, &mut summary.extra);
    add_lifetime(report, &mut summary.extra);
    add_drives(wear, report, &mut summary);
    if summary.partial {
        summary.warnings.push(format!("the run was cut short after {days} of {} days", wear.days));
    }
    summary
}

/// Largest over mean, see `blox::WearSample`.
fn add_imbalances(wear: &Wear, report: &WearReport, extra: &mut BTreeMap<String, f64>) {
    let Some(last) = report.last() else { return };
    let values = [
        ("server_imbalance_max_ratio", last.server_max),
        ("server_imbalance_mean_ratio", last.server_mean),
        ("rack_imbalance_ratio", last.rack_ssds),
        ("rack_imbalance_of_servers_ratio", last.rack_servers),
        ("uneven_days", report.days_above(wear.local.gamma) as f64),
    ];
    let settled = report.server_imbalance_max(DAYS_PER_YEAR);
    let values = values.into_iter().chain(settled.map(|value| ("server_imbalance_max_from_year_1_ratio", value)));
    extra.extend(values.map(|(name, value)| (name.to_string(), value)));
}

/// Shares of the erases that a block endures, see `blox::Lifetime`, and swaps.
fn add_lifetime(report: &WearReport, extra: &mut BTreeMap<String, f64>) {
    let (lifetime, swaps) = (report.lifetime, &report.swaps);
    let values = [
        ("swaps_worst_case_lifetime_fraction", lifetime.swaps_worst_case),
        ("swaps_mean_lifetime_fraction", lifetime.swaps_mean),
        ("swaps_max_lifetime_fraction", lifetime.swaps_max),
        ("used_mean_lifetime_fraction", lifetime.used_mean),
        ("used_max_lifetime_fraction", lifetime.used_max),
        ("local_swaps", f64::from(swaps.local_total())),
        ("local_swaps_of_a_server_max", f64::from(swaps.local.iter().max().copied().unwrap_or(0))),
        ("global_swaps", f64::from(swaps.global)),
    ];
    extra.extend(values.map(|(name, value)| (name.to_string(), value)));
    if lifetime.used_max > 0.0 {
        let years = report.samples.len() as f64 / f64::from(DAYS_PER_YEAR);
        extra.insert("first_worn_out_at_this_rate_years".into(), years / lifetime.used_max);
    }
}

/// What each drive has worn on the last day.
fn add_drives(wear: &Wear, report: &WearReport, summary: &mut Summary) {
    let Some(last) = report.snapshots.last() else { return };
    let worn_out = last.erases.iter().filter(|erases| **erases > f64::from(wear.drive.endurance)).count();
    summary.extra.insert("worn_out_drives".into(), worn_out as f64);
    if worn_out > 0 {
        // Without their number, so that seeds and points share it.
        let endurance = wear.drive.endurance;
        summary.warnings.push(format!(
            "drives wore beyond the {endurance} erases that a block endures, and the model lets them go on; worn_out_drives counts them"
        ));
    }
    let Some(server) = last.erases.chunks(wear.ssds as usize).nth(OBSERVED_SERVER) else { return };
    let mean = server.iter().sum::<f64>() / server.len() as f64;
    for (ssd, erases) in server.iter().enumerate().filter(|_| mean > 0.0) {
        summary.extra.insert(format!("server_{OBSERVED_SERVER}_ssd_{ssd:02}_wear_ratio"), erases / mean);
    }
    let spread = imbalance(server.iter().copied());
    summary.extra.insert(format!("server_{OBSERVED_SERVER}_imbalance_ratio"), spread);
}
