use crate::drive::{Flow, Observer, Outcomes, Progress, Unobserved};
use crate::{RunOptions, run};
use plan::{NoFiles, Plan, parse};
use record::{Discard, Pool, Summary};
use std::collections::BTreeMap;

/// One server of two drives with a vSSD each; the first writes ten times the drive's size a day,
/// the second (YCSB C) nothing.
const PAIR: &str = r#"
title = "a drive that works and one that rests"
design.name = "wear-levelling"
[wear]
servers = 1
ssds = 2
vssds = 1
days = 24
workloads = ["ycsb-a", "ycsb-c"]
peak_per_day = "20GB"
capacity = "1GB"
write_amplification = 1.0
spread = 0.0
drift = 0.0
endurance = 1000
"#;

fn plan(text: &str) -> Plan {
    let experiment = parse("wear.toml", text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn play(plan: &Plan, observer: &mut dyn Observer) -> Outcomes {
    let labels = BTreeMap::from([("wear.arm".to_string(), "local".to_string())]);
    let options = RunOptions { version: "0".into(), labels, ..RunOptions::default() };
    run(plan, &options, &mut Discard, observer).expect("the plan was checked")
}

fn summary(text: &str) -> Summary {
    play(&plan(text), &mut Unobserved).summary
}

fn is(summary: &Summary, name: &str, wanted: f64) {
    let got = summary.metrics.get(name).copied();
    assert!(got.is_some_and(|got| (got - wanted).abs() < 1e-9), "{name}: {got:?}, not {wanted}");
}

#[test]
fn a_plan_wears_its_drives_by_what_it_says() {
    let alone = summary(&format!("{PAIR}arm = 'none'"));
    // 24 days of 10 drive writes, on one of two drives.
    is(&alone, "server_imbalance_max_ratio", 2.0);
    is(&alone, "rack_imbalance_ratio", 2.0);
    is(&alone, "rack_imbalance_of_servers_ratio", 1.0);
    is(&alone, "used_max_lifetime_fraction", 0.24);
    is(&alone, "used_mean_lifetime_fraction", 0.12);
    is(&alone, "first_worn_out_at_this_rate_years", 24.0 / 365.0 / 0.24);
    is(&alone, "local_swaps", 0.0);
    is(&alone, "uneven_days", 24.0);
    is(&alone, "server_0_ssd_00_wear_ratio", 2.0);
    is(&alone, "server_0_ssd_01_wear_ratio", 0.0);
}

#[test]
fn a_swap_after_half_of_the_days_evens_the_two_drives_and_costs_each_an_erase() {
    let levelled = summary(&format!("{PAIR}arm = 'local'"));
    // Looks on days 12 and 24; on the latter both have worn alike and equally fast, so that a swap
    // would gain nothing.
    is(&levelled, "local_swaps", 1.0);
    is(&levelled, "server_imbalance_max_ratio", 1.0);
    is(&levelled, "used_max_lifetime_fraction", 0.121);
    is(&levelled, "swaps_worst_case_lifetime_fraction", 0.001);
    is(&levelled, "swaps_mean_lifetime_fraction", 0.001);
}

#[test]
fn a_run_without_requests_is_not_reported_as_one_that_measured_none() {
    let plan = plan(PAIR);
    let outcomes = play(&plan, &mut Unobserved);
    let summary = &outcomes.summary;
    assert_eq!(summary.warnings, plan.warnings);
    assert_eq!(
        (&*summary.version, &*summary.design, summary.seeds.as_slice()),
        ("0", "wear-levelling", [1].as_slice())
    );
    assert_eq!((summary.plan_hash.clone(), summary.labels["wear.arm"].as_str()), (plan.hash(), "local"));
    assert_eq!((summary.counts.offered, summary.events, summary.simulated_ns), (0, 24, 24.0 * 86_400e9));
    assert!(outcomes.histograms.is_empty() && !summary.partial);
    assert!(!summary.metrics.contains_key("server_imbalance_max_from_year_1_ratio"), "it ends before");
}

#[test]
fn drives_that_outlive_their_endurance_are_counted_and_warned_of() {
    let worn = summary(&PAIR.replace("endurance = 1000", "endurance = 200\narm = 'none'"));
    is(&worn, "worn_out_drives", 1.0);
    assert_eq!(
        worn.warnings,
        [
            "drives wore beyond the 200 erases that a block endures, and the model lets them go on; worn_out_drives counts them"
        ]
    );
}

#[test]
fn a_replaced_drive_is_new() {
    let replaced = summary(&format!("{PAIR}arm = 'none'\n[[wear.replacement]]\nday = 13\nserver = 0\nssd = 0"));
    // The days from the 13th on.
    is(&replaced, "used_max_lifetime_fraction", 0.12);
}

#[test]
fn seeds_decide_spread_and_drift_and_summaries_of_several_go_together() {
    let rack = "title = 'rack'\ndesign.name = 'wear-levelling'\nwear = { servers = 2, years = 2.0 }";
    let of = |seed: u64| summary(&format!("seed = {seed}\n{rack}"));
    assert_eq!(of(4), of(4));
    let [four, five] = [of(4), of(5)];
    let name = "server_imbalance_max_from_year_1_ratio";
    assert_ne!(four.metrics[name], five.metrics[name]);
    let runs = [four.clone(), five.clone()];
    let both = Summary::over_seeds(&runs, &Pool::default()).expect("they differ in their seed alone");
    is(&both, name, four.metrics[name].max(five.metrics[name]));
    let mean = "server_imbalance_mean_ratio";
    is(&both, mean, (four.metrics[mean] + five.metrics[mean]) / 2.0);
}

/// Stops before a day.
struct Until(u64);

impl Observer for Until {
    fn progress(&mut self, progress: &Progress) -> Flow {
        if progress.events < self.0 { Flow::Continue } else { Flow::Stop }
    }
}

#[test]
fn a_run_that_is_stopped_is_partial_and_says_how_far_it_came() {
    let stopped = play(&plan(&format!("{PAIR}arm = 'none'")), &mut Until(6)).summary;
    assert!(stopped.partial);
    assert_eq!(
        (stopped.events, stopped.warnings.as_slice()),
        (6, ["the run was cut short after 6 of 24 days".to_string()].as_slice())
    );
    is(&stopped, "used_max_lifetime_fraction", 0.06);
}
