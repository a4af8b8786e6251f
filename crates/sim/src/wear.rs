//! Wear levelling over years: the model of crate `blox` as a run without requests.

#[cfg(test)]
mod tests;

use crate::drive::{Flow, Played, Progress};
use crate::run::RunError;
use crate::sampler::{Probe, Sampler};
use crate::scene::{Scene, Stage};
use base::{Bytes, Seed};
use blox::{
    Assignment, DriveFlash, GlobalConfig, LocalConfig, SsdPlace, SwapTrigger, WearArm, WearConfig, WearModel,
    WearReport, WearWorkload, imbalance,
};
use plan::wear::{
    ArmName, DAYS_PER_YEAR, LocalLevelling, Replacement, TriggerName, Wear, WearAssignmentName, WearLoad,
};
use record::metric::{self, Meter};
use record::{RunIdentity, Series, Sink, SinkError, Summary};

const NS_PER_DAY: f64 = 86_400e9;
/// The server whose drives are told one by one (Figure 22 shows one server).
const OBSERVED_SERVER: usize = 0;

/// Without requests: the sink gets no rows. The observer is called once a day; a run that it stops
/// is summarised as partial.
impl Scene for Wear {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        let every = stage.plan.series_days();
        let model =
            WearModel::new(WearConfig { snapshot_days: every.unwrap_or(self.days), ..config(self, stage.seed()) })?;
        let identity = stage.identity();
        let goes_on = |day: u32| {
            let progress = Progress { events: u64::from(day - 1), ..Progress::default() };
            stage.observer.progress(&progress) == Flow::Continue
        };
        let report = model.run_while(goes_on);
        if every.is_some() {
            sample(&report, stage.sink)?;
        }
        Ok(played(self, identity, &report))
    }
}

/// Writes the series: the ends of the days with snapshots.
fn sample(report: &WearReport, sink: &mut dyn Sink) -> Result<(), SinkError> {
    let mut sampler = Sampler::new(None);
    for snapshot in &report.snapshots {
        let Some(sample) = report.samples.get(snapshot.day as usize - 1) else { continue };
        let state = |probe: &mut Probe| {
            probe.put(Series::ErasesMean, sample.erases_mean);
            probe.put_each(Series::Erases, 0, snapshot.erases.iter().copied());
            probe.put(Series::Swaps, f64::from(sample.swaps));
        };
        sampler.sample_day(snapshot.day, state, sink)?;
    }
    Ok(())
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
        // Only the last day's is looked at, unless there are series.
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

fn played(wear: &Wear, identity: RunIdentity, report: &WearReport) -> Played {
    let days = report.samples.len();
    let summary = Summary {
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
    let mut meter = Meter::new();
    measure_imbalances(wear, report, &mut meter);
    measure_lifetime(report, &mut meter);
    measure_drives(wear, report, &mut meter);
    if summary.partial {
        meter.warn(format!("the run was cut short after {days} of {} days", wear.days));
    }
    Played::without_requests(summary, meter)
}

/// Largest over mean, see `blox::WearSample`.
fn measure_imbalances(wear: &Wear, report: &WearReport, meter: &mut Meter) {
    let Some(last) = report.last() else { return };
    meter.put(metric::server_imbalance_max_ratio, last.server_max);
    meter.put(metric::server_imbalance_mean_ratio, last.server_mean);
    meter.put(metric::rack_imbalance_ratio, last.rack_ssds);
    meter.put(metric::rack_imbalance_of_servers_ratio, last.rack_servers);
    meter.put(metric::uneven_days, report.days_above(wear.local.gamma) as f64);
    if let Some(settled) = report.server_imbalance_max(DAYS_PER_YEAR) {
        meter.put(metric::server_imbalance_max_from_year_1_ratio, settled);
    }
}

/// Shares of the erases that a block endures, see `blox::Lifetime`, and swaps.
fn measure_lifetime(report: &WearReport, meter: &mut Meter) {
    let (lifetime, swaps) = (report.lifetime, &report.swaps);
    meter.put(metric::swaps_worst_case_lifetime_fraction, lifetime.swaps_worst_case);
    meter.put(metric::swaps_mean_lifetime_fraction, lifetime.swaps_mean);
    meter.put(metric::swaps_max_lifetime_fraction, lifetime.swaps_max);
    meter.put(metric::used_mean_lifetime_fraction, lifetime.used_mean);
    meter.put(metric::used_max_lifetime_fraction, lifetime.used_max);
    meter.count(metric::local_swaps, f64::from(swaps.local_total()));
    let most = swaps.local.iter().max().copied().unwrap_or(0);
    meter.put(metric::local_swaps_of_a_server_max, f64::from(most));
    meter.count(metric::global_swaps, f64::from(swaps.global));
    if lifetime.used_max > 0.0 {
        let years = report.samples.len() as f64 / f64::from(DAYS_PER_YEAR);
        meter.put(metric::first_worn_out_at_this_rate_years, years / lifetime.used_max);
    }
}

/// What each drive has worn on the last day.
fn measure_drives(wear: &Wear, report: &WearReport, meter: &mut Meter) {
    let is_last = |snapshot: &&blox::WearSnapshot| snapshot.day == wear.days;
    let Some(last) = report.snapshots.last().filter(is_last) else { return };
    let worn_out = last.erases.iter().filter(|erases| **erases > f64::from(wear.drive.endurance)).count();
    meter.put(metric::worn_out_drives, worn_out as f64);
    if worn_out > 0 {
        // Without their number, so that seeds and points share it.
        let endurance = wear.drive.endurance;
        meter.warn(format!(
            "drives wore beyond the {endurance} erases that a block endures, and the model lets them go on; worn_out_drives counts them"
        ));
    }
    let Some(server) = last.erases.chunks(wear.ssds as usize).nth(OBSERVED_SERVER) else { return };
    let mean = server.iter().sum::<f64>() / server.len() as f64;
    for (ssd, erases) in server.iter().enumerate().filter(|_| mean > 0.0) {
        let drive = metric::server_ssd_wear_ratio.at(&[&OBSERVED_SERVER, &format!("{ssd:02}")]);
        meter.put(drive, erases / mean);
    }
    let spread = imbalance(server.iter().copied());
    meter.put(metric::server_imbalance_ratio.at(&[&OBSERVED_SERVER]), spread);
}
