//! Wear levelling as an experiment file: what is filled in, what is refused, and what is warned of.

use crate::common;

use crate::common::{complaint, complaints, plan};
use plan::wear::{ArmName, Replacement, TriggerName, Wear};
use plan::{Plan, Scene, schema};
use serde_json::Value;

const SMALL: &str = "title = 'years'\ndesign.name = 'wear-levelling'\n";

const EVERY_KEY: &str = r#"
title = "every key"
seed = 9
design.name = "wear-levelling"
[wear]
servers = 3
ssds = 5
vssds = 2
days = 700
arm = "local"
gamma = 0.25
local_period_days = 10
trigger = "uneven"
horizon_days = 96
global_period_days = 60
global_pairs = 4
rate_window_days = 21
workloads = ["ycsb-a", "twitter"]
assignment = "drawn"
peak_per_day = "100GB"
write_amplification = 1.5
spread = 0.1
drift = 0.3
drift_days = 7
capacity = "512GiB"
endurance = 10000
swap_erases = 0.5
[[wear.replacement]]
day = 300
server = 2
ssd = 4
[[wear.replacement]]
day = 200
server = 0
ssd = 1
"#;

fn with(keys: &str) -> String {
    format!("{SMALL}[wear]\n{keys}\n")
}

fn wear(plan: &Plan) -> Wear {
    let Scene::Wear(wear) = &plan.scene else { panic!("{:?}", plan.scene) };
    (**wear).clone()
}

#[test]
fn a_title_and_the_design_are_the_rack_of_the_paper() {
    let wear = wear(&plan(SMALL));
    assert_eq!((wear.servers, wear.ssds, wear.vssds, wear.days), (32, 16, 4, 1_825));
    assert_eq!((wear.arm, wear.local.trigger), (ArmName::LocalAndGlobal, TriggerName::EveryLook));
    assert_eq!((wear.local.gamma, wear.local.period_days, wear.global.period_days), (0.1, 12, 56));
    assert_eq!((wear.drive.endurance, wear.rate_window_days), (30_000, 48));
    let names: Vec<&str> = wear.load.workloads.iter().map(|profile| profile.name).collect();
    assert_eq!(names, ["tpc-h", "seats", "auction-mark", "tpc-c", "twitter"]);
    // 4.5 TB a day, 44.836 % writes on average, twice on flash, 4 vSSDs, 1,825 days, on 1 TiB of
    // 30,000 erases.
    let used = 4.5e12 * 0.448_36 * 2.0 * 4.0 * 1_825.0 / 1_099_511_627_776.0 / 30_000.0;
    assert!((wear.used_mean() - used).abs() < 1e-9 && (0.85..0.95).contains(&used), "{} {used}", wear.used_mean());
}

#[test]
fn every_default_of_the_schema_is_in_the_resolved_plan() {
    let (root, printed) = (schema(), serde_json::to_value(plan(SMALL)).expect("a plan is JSON"));
    let properties = root["$defs"]["WearFile"]["properties"].as_object().expect("wear is a table");
    let defaults = properties.iter().filter_map(|(key, property)| Some((key, property.get("default")?)));
    let mut seen = 0;
    for (key, default) in defaults {
        let written = &printed["wear"][key];
        let is_of_another_trigger = key == "horizon_days" && written.is_null();
        assert!(default == written || is_of_another_trigger, "{key}: {default} in the schema, {written} in the plan");
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn every_key_reaches_the_plan_and_the_printed_plan_is_the_same() {
    let plan = plan(EVERY_KEY);
    let again = common::plan(&plan.to_toml());
    assert_eq!((again.hash(), &again), (plan.hash(), &plan));
    let written: Value = serde_json::to_value(&plan).expect("a plan is JSON");
    let asked: toml::Table = toml::from_str(EVERY_KEY).expect("it is TOML");
    for (key, value) in asked["wear"].as_table().expect("a table").iter().filter(|(key, _)| *key != "replacement") {
        assert_eq!(written["wear"][key], serde_json::to_value(value).expect("it is plain"), "{key}");
    }
    // In the order of their days.
    let [first, second] = wear(&plan).replacements[..] else { panic!("two drives are replaced") };
    assert_eq!(first, Replacement { day: 200, server: 0, ssd: 1 });
    assert_eq!(second, Replacement { day: 300, server: 2, ssd: 4 });
}

#[test]
fn every_key_is_in_the_schema_and_no_other_is_allowed() {
    let root = schema();
    let properties = root["$defs"]["WearFile"]["properties"].as_object().expect("wear is a table");
    let asked: toml::Table = toml::from_str(EVERY_KEY).expect("it is TOML");
    let written = asked["wear"].as_table().expect("a table");
    let missing: Vec<&String> = properties.keys().filter(|key| !written.contains_key(key.as_str())).collect();
    // `years` says the same as `days`.
    assert_eq!(missing, ["years"]);
    let unknown = complaint(&with("servrs = 3"));
    assert!(unknown.contains("unknown key `servrs`, did you mean `servers`?"), "{unknown}");
    let unknown = complaint(&EVERY_KEY.replace("ssd = 4", "ssd = 4\ncolour = 1"));
    assert!(unknown.contains("unknown key `colour`"), "{unknown}");
}

#[test]
fn years_are_of_365_days() {
    for (years, days) in [("1", 365), ("0.5", 183), ("5.0", 1_825), ("100", 36_500)] {
        assert_eq!(wear(&plan(&with(&format!("years = {years}")))).days, days, "{years}");
    }
    let refused = complaint(&with("years = 0.001"));
    assert_eq!(refused, "small.toml:4:9: wear.years: 0.001 is out of range; allowed is at least a day, 1/365");
    let refused = complaint(&with("years = 2.0\ndays = 3"));
    assert_eq!(refused, "small.toml:4:9: wear.years: `years` is not valid with `days`");
    assert!(complaint(&with("years = 100.1")).contains("100.1 is out of range"));
}

#[test]
fn a_rate_is_smoothed_over_four_local_periods_unless_it_is_said() {
    assert_eq!(wear(&plan(&with("local_period_days = 30"))).rate_window_days, 120);
    assert_eq!(wear(&plan(&with("local_period_days = 30\nrate_window_days = 7"))).rate_window_days, 7);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    for (keys, message) in [
        ("servers = 0", "wear.servers: 0 is out of range; allowed is 1..=4096"),
        ("days = 36501", "wear.days: 36501 is out of range; allowed is 1..=36500"),
        ("gamma = -0.1", "wear.gamma: -0.1 is out of range; allowed is 0..=100"),
        ("local_period_days = 0", "wear.local_period_days: 0 is out of range; allowed is 1..=36500"),
        ("write_amplification = 0.9", "wear.write_amplification: 0.9 is out of range; allowed is 1..=100"),
        ("spread = 1.1", "wear.spread: 1.1 is out of range; allowed is 0..=1"),
        ("capacity = '0B'", "wear.capacity: 0B is out of range; allowed is above 0B"),
        ("peak_per_day = '0B'", "wear.peak_per_day: 0B is out of range; allowed is above 0B"),
        ("peak_per_day = 4", "wear.peak_per_day: "),
        ("workloads = []", "wear.workloads: a list of 0 is out of range"),
        ("workloads = ['tpc-x']", "wear.workloads.0: `tpc-x` is not allowed, did you mean `tpc-"),
        ("arm = 'global'", "wear.arm: `global` is not allowed"),
        (
            "horizon_days = 3",
            "wear.horizon_days: `horizon_days` is valid only with trigger = uneven, not with every-look",
        ),
        (
            "servers = 4096\nssds = 1024\nvssds = 5",
            "wear.vssds: 4096 servers of 1024 drives of 5 vSSDs are 20971520, more than 16777216",
        ),
        (
            "replacement = [{ day = 1, server = 32, ssd = 0 }]",
            "wear.replacement.0.server: 32 is out of range; allowed is 0..=31",
        ),
        (
            "replacement = [{ day = 1, server = 31, ssd = 16 }]",
            "wear.replacement.0.ssd: 16 is out of range; allowed is 0..=15",
        ),
        ("replacement = [{ day = 1, server = 31 }]", "`ssd` is missing"),
        ("replacement = [{ day = 0, server = 31, ssd = 1 }]", "wear.replacement.0.day: 0 is out of range"),
    ] {
        let refused = complaint(&with(keys));
        assert!(refused.contains(message), "{keys}: {refused}");
    }
    // The largest rack that is allowed.
    assert_eq!(wear(&plan(&with("servers = 4096\nssds = 1024\nvssds = 4\ndays = 1"))).vssds_in_rack(), 1 << 24);
}

#[test]
fn tables_of_runs_that_make_requests_do_not_go_with_it_nor_it_with_them() {
    let tables = [
        ("run", "requests = 10"),
        ("io", "profile = 'ycsb-a'"),
        ("fabric", "nodes = 4\nrate = '100Gbps'"),
        ("rack", "servers = 4"),
        ("memory", "latency = '1us'"),
    ];
    for (table, keys) in tables {
        let refused = complaint(&format!("{SMALL}[{table}]\n{keys}\n"));
        let expected = format!("{table}: `{table}` is not valid with the design wear-levelling");
        assert!(refused.contains(&expected), "{refused}");
    }
    let refused = complaint(&format!("{SMALL}[[fault]]\nat = '1s'\nkind = 'switch-down'\n"));
    assert!(refused.contains("`fault` is not valid with the design wear-levelling"), "{refused}");
    assert!(complaint(&format!("{SMALL}design.stack = 'raw'\n")).contains("`stack` is not valid with"));
    let refused = complaint(&format!("{}[wear]\nservers = 4\n", common::SMALL));
    assert!(refused.contains("wear: `wear` is not valid with the design edm"), "{refused}");
    let volumes = complaints("title = 't'\ndesign.name = 'vdc'\nrun.requests = 10\nwear.servers = 4\n");
    assert!(volumes[0].contains("wear: `wear` is not valid with the design vdc"), "{volumes:?}");
}

#[test]
fn a_rack_that_is_not_what_was_meant_is_warned_of_with_numbers() {
    let warned = |keys: &str| plan(&with(keys)).warnings;
    assert_eq!(warned(""), [""; 0]);
    for (keys, message) in [
        ("years = 6.0", "in 2190 days the mean drive uses 1.07 times the 30000 erases that a block endures"),
        ("days = 11", "a run of 11 days ends before the first check within servers, on day 12"),
        ("days = 55", "a run of 55 days ends before the first check between servers, on day 56"),
        ("ssds = 1", "a server of one drive has nothing to swap it with"),
        ("servers = 1", "a rack of one server has nothing to swap between servers"),
        (
            "days = 60\nreplacement = [{ day = 61, server = 0, ssd = 0 }]",
            "1 drives would be replaced after the last day, 60",
        ),
        ("servers = 4096\nssds = 256\ndays = 500", "4194304 vSSDs over 500 days are 2097152000 steps"),
    ] {
        let warned = warned(keys);
        assert!(warned.iter().any(|warning| warning.starts_with(message)), "{keys}: {warned:?}");
    }
    // On the edge nothing is wrong, and who does not swap is not told that swaps come late.
    for keys in ["days = 56", "days = 12\narm = 'local'", "days = 3\narm = 'none'", "ssds = 1\narm = 'none'"] {
        assert_eq!(warned(keys), [""; 0], "{keys}");
    }
}

#[test]
fn a_sweep_varies_who_swaps_and_for_how_long() {
    let text = format!(
        "{SMALL}[sweep]\n'wear.arm' = ['none', 'local']\n'wear.years' = [1, 2.5]\n[scale.quick]\n'sweep.wear.years' = [3]\n"
    );
    let days = |scale| -> Vec<u32> {
        common::experiment(&text).points(scale).iter().map(|point| wear(&point.plan).days).collect()
    };
    assert_eq!(days(None), [365, 913, 365, 913]);
    assert_eq!(days(Some(plan::Scale::Quick)), [1_095, 1_095]);
}
