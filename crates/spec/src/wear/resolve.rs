//! From what is written of wear levelling to a plan: defaults that depend on other values, ranges, and combinations.

use super::file::{ReplacementFile, TriggerName, WearFile};
use super::{DAYS_PER_YEAR, GlobalLevelling, LocalLevelling, Replacement, VSSDS_MAX, Wear, WearLoad, WornDrive};
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::resolve::Resolver;
use workload::storage::{PROFILES, Profile, profile};

/// RackBlox, 3.6: a drive lasts five years.
const YEARS: f64 = 5.0;
/// Ours, see [`WearFile`].
const WINDOW_PERIODS: u32 = 4;
/// RackBlox, Table 2.
const TABLE_2: [&str; 5] = ["tpc-h", "seats", "auction-mark", "tpc-c", "twitter"];
impl Resolver<'_> {
    /// All parts are read even when one is wrong, so that every mistake is reported at once.
    pub(crate) fn wear(&mut self, file: &ExperimentFile) -> Option<Wear> {
        let file = file.wear.clone().unwrap_or_default();
        let local = self.local_levelling(&file);
        let window = file.rate_window_days.unwrap_or(local.period_days.saturating_mul(WINDOW_PERIODS));
        let wear = Wear {
            servers: file.servers(),
            ssds: file.ssds(),
            vssds: file.vssds(),
            days: self.wear_days(&file),
            arm: file.arm(),
            local,
            global: GlobalLevelling { period_days: file.global_period_days(), pairs: file.global_pairs() },
            rate_window_days: window,
            load: self.wear_load(&file),
            drive: WornDrive {
                capacity: file.capacity(),
                endurance: file.endurance(),
                swap_erases: file.swap_erases(),
            },
            replacements: replacements(file.replacement.as_deref().unwrap_or_default()),
        };
        self.check_wear(&wear, file.replacement.as_deref().unwrap_or_default());
        self.problems.is_empty().then_some(wear)
    }

    fn wear_days(&mut self, file: &WearFile) -> u32 {
        if let (Some(years), Some(days)) = (file.years, file.days) {
            self.conflict("wear.days", format!("years = {years} and days = {days} cannot both be given"));
        }
        if let Some(days) = file.days {
            return days;
        }
        let years = file.years.unwrap_or(YEARS);
        // The schema lets at most 100 years pass.
        let days = (years * f64::from(DAYS_PER_YEAR)).round() as u32;
        if days == 0 {
            self.report("wear.years", Problem::out_of_range(years, format!("at least a day, 1/{DAYS_PER_YEAR}")));
        }
        days
    }

    fn local_levelling(&mut self, file: &WearFile) -> LocalLevelling {
        let trigger = file.trigger();
        if let (Some(_), TriggerName::EveryLook) = (file.horizon_days, trigger) {
            self.conflict("wear.horizon_days", "`horizon_days` goes only with trigger = uneven");
        }
        LocalLevelling {
            gamma: file.gamma(),
            period_days: file.local_period_days(),
            trigger,
            horizon_days: file.horizon_days(),
        }
    }

    fn wear_load(&mut self, file: &WearFile) -> WearLoad {
        WearLoad {
            workloads: self.wear_workloads(file.workloads.as_deref()),
            assignment: file.assignment(),
            peak_per_day: file.peak_per_day(),
            write_amplification: file.write_amplification(),
            spread: file.spread(),
            drift: file.drift(),
            drift_days: file.drift_days(),
        }
    }

    fn wear_workloads(&mut self, names: Option<&[String]>) -> Vec<&'static Profile> {
        let Some(names) = names else { return TABLE_2.iter().filter_map(|name| profile(name)).collect() };
        let mut found = Vec::new();
        for (index, name) in names.iter().enumerate() {
            match profile(name) {
                Some(profile) => found.push(profile),
                None => {
                    let allowed = PROFILES.iter().map(|profile| profile.name.into()).collect();
                    self.report(&format!("wear.workloads.{index}"), Problem::not_allowed(name, allowed));
                }
            }
        }
        found
    }

    fn check_wear(&mut self, wear: &Wear, replacements: &[ReplacementFile]) {
        let Wear { servers, ssds, vssds, .. } = *wear;
        let all = wear.vssds_in_rack();
        if all > VSSDS_MAX {
            let reason =
                format!("{servers} servers of {ssds} drives of {vssds} vSSDs are {all}, more than {VSSDS_MAX}");
            self.conflict("wear.vssds", reason);
        }
        for (index, file) in replacements.iter().enumerate() {
            for (key, got, count) in [("server", file.server, servers), ("ssd", file.ssd, ssds)] {
                let last = u64::from(count.saturating_sub(1));
                self.range(&format!("wear.replacement.{index}.{key}"), u64::from(got.unwrap_or(0)), 0..=last);
            }
        }
    }
}

/// In order of their days, so that the order in a file decides nothing. The schema has seen to it that all keys are there.
fn replacements(files: &[ReplacementFile]) -> Vec<Replacement> {
    let replacement =
        |file: &ReplacementFile| Some(Replacement { day: file.day?, server: file.server?, ssd: file.ssd? });
    let mut found: Vec<Replacement> = files.iter().filter_map(replacement).collect();
    found.sort_by_key(|each| (each.day, each.server, each.ssd));
    found
}
