//! Resolves the table of wear levelling to a plan: defaults that depend on other values, ranges,
//! and combinations.

use super::file::ReplacementFile;
use super::{DAYS_PER_YEAR, VSSDS_MAX, Wear};
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::resolve::Resolver;
use workload::storage::{PROFILES, Profile, profile};

/// RackBlox, Table 2.
const TABLE_2: [&str; 5] = ["tpc-h", "seats", "auction-mark", "tpc-c", "twitter"];

impl Resolver<'_> {
    /// Reads all parts even if one is wrong, so that every error is reported at once.
    pub(crate) fn wear(&mut self, file: &ExperimentFile) -> Option<Wear> {
        let file = file.wear.clone().unwrap_or_default();
        let wear = file.resolve(self.wear_workloads(file.workloads.as_deref()));
        if let (0, Some(years)) = (wear.days, file.years) {
            self.report("wear.years", Problem::out_of_range(years, format!("at least a day, 1/{DAYS_PER_YEAR}")));
        }
        self.check_wear(&wear, file.replacement.as_deref().unwrap_or_default());
        self.problems.is_empty().then_some(wear)
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
