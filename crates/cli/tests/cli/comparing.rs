//! `rackweave compare`: runs whose difference is known.

use crate::support::{Home, SMALL, SWEEP};
use serde_json::Value;

/// The difference of a value in the first comparison.
fn found<'a>(comparisons: &'a Value, group: &str, of: &str, statistic: &str) -> &'a Value {
    let all = comparisons[0]["differences"].as_array().unwrap();
    let is_it = |one: &&Value| one["group"] == group && one["of"] == of && one["statistic"] == statistic;
    all.iter().find(is_it).unwrap_or_else(|| panic!("{group} {of} {statistic}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// A cable that is 3 m longer takes 15 ns more each way, four times a read: source, switch, target
/// and back. Nearly idle, so that nothing waits.
#[test]
fn longer_cables_cost_what_light_needs() {
    let home = Home::new().with("small.toml", SMALL);
    let line = "compare small.toml --set workload.load=0.001 --vary fabric.propagation=10ns,25ns --seeds 1..4 \
                --format json --out variants";
    let comparisons: Value = serde_json::from_str(&home.run(line)).unwrap();
    assert_eq!(home.json("variants/compare.json"), comparisons);
    assert_eq!(comparisons[0]["is_paired"], true);
    let propagation = found(&comparisons, "span", "propagation", "mean");
    let all = found(&comparisons, "latency", "all", "mean");
    assert_eq!(propagation["change"], "higher");
    let crossings = number(&propagation["first"]) / 10.0;
    assert!((number(&propagation["difference"]) - 15.0 * crossings).abs() < 1e-6, "{propagation}");
    assert!((number(&all["difference"]) - number(&propagation["difference"])).abs() < 1.0, "{all}");
    assert_eq!(found(&comparisons, "span", "serialization", "mean")["change"], "equal");
    // The folders can be compared again, and as a sweep.
    let folders: Vec<String> =
        home.entries("variants/points").iter().map(|name| format!("variants/points/{name}")).collect();
    let again: Value =
        serde_json::from_str(&home.run(&format!("compare --format json {}", folders.join(" ")))).unwrap();
    assert_eq!(again[0]["differences"], comparisons[0]["differences"]);
    let sweep: Value = serde_json::from_str(&home.run("compare --format json variants")).unwrap();
    assert_eq!(sweep[0]["differences"], comparisons[0]["differences"]);
}

#[test]
fn a_run_equals_itself_in_every_form() {
    let home = Home::new().with("small.toml", SMALL);
    home.run("run small.toml --seeds 1..3 --out one");
    let comparisons: Value = serde_json::from_str(&home.run("compare one one --format json")).unwrap();
    let differences = comparisons[0]["differences"].as_array().unwrap();
    assert!(differences.len() > 20 && differences.iter().all(|one| one["change"] == "equal"), "{differences:?}");
    let csv = home.run("compare one one --format csv");
    assert_eq!(csv.lines().count(), differences.len() + 1);
    assert!(csv.starts_with("first,second,group,of,statistic,unit,a,b,difference,low,high,change\n"), "{csv}");
    let short = home.run("compare one one");
    let long = home.run("compare one one --all");
    assert!(short.contains("latency all p999") && !short.contains("metric "), "{short}");
    assert!(long.contains("metric ") && long.contains("span "), "{long}");
    assert!(short.lines().all(|line| line.len() < 120), "{short}");
    // The mean over seeds is that of the summary.
    let mean = number(&found(&comparisons, "latency", "all", "mean")["first"]);
    assert!((mean - home.summary("one/summary.json").latency_ns["all"].mean).abs() < 1e-6 * mean);
}

#[test]
fn runs_of_other_arrivals_are_compared_only_if_that_is_meant() {
    let home = Home::new().with("small.toml", SMALL);
    home.run("run small.toml --seeds 1..3 --out one");
    home.run("run small.toml --seeds 2..5 --set workload.load=0.4 --out other");
    home.say("compare one other").refused(2, &["one and other", "seed 2, request 0", "--unpaired"]);
    let text = home.run("compare one other --unpaired");
    assert!(text.contains("not paired") && text.contains("3 seeds are in one run only"), "{text}");
    home.run("run small.toml --seed 9 --out third");
    home.say("compare one third").refused(2, &["no seed in common: [1, 2] and [9]"]);
    let one = home.run("compare other one --unpaired --format json");
    assert!(!one.contains("one-seed") || one.contains("\"seeds\": [\n      2\n    ]"), "{one}");
}

#[test]
fn what_is_no_run_is_refused_by_name() {
    let home = Home::new().with("small.toml", SMALL).with("sweep.toml", &(SMALL.to_owned() + SWEEP));
    home.run("run small.toml --out one");
    home.run("sweep sweep.toml --no-records --out bare");
    std::fs::create_dir(home.path("empty")).unwrap();
    home.say("compare one").refused(2, &["one: 1 run to compare", "--vary"]);
    home.say("compare one small.toml").refused(2, &["small.toml: this is a file"]);
    home.say("compare one gone").refused(2, &["gone: there is no such folder"]);
    home.say("compare one empty").refused(2, &["empty: no run"]);
    home.say("compare bare").refused(2, &["records: there are no records", "--no-records"]);
    home.say("compare one one --out here").refused(2, &["--out and --force go with --vary"]);
    home.say("compare small.toml --vary workload.laod=0.1,0.2").refused(2, &["laod"]);
    home.say("compare small.toml --vary workload.load").refused(2, &["KEY=A,B"]);
    home.say("compare small.toml --vary workload.load=0.2").refused(2, &["1 run to compare"]);
    home.say("compare sweep.toml --vary workload.size=64B,128B").refused(2, &["this is a sweep of 4 points"]);
    // Half a run, another version's summary, a damaged part.
    std::fs::rename(home.path("one/summary.json"), home.path("kept")).unwrap();
    home.say("compare one one").refused(2, &["one: the run did not finish"]);
    std::fs::write(home.path("one/summary.json"), "{\"version\": \"9\", \"colour\": 1}").unwrap();
    home.say("compare one one").refused(2, &["one/summary.json", "not a summary of this version"]);
    std::fs::rename(home.path("kept"), home.path("one/summary.json")).unwrap();
    let part = home.path("one/seed-1/records/part-00000.parquet");
    let bytes = std::fs::read(&part).unwrap();
    std::fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    home.say("compare one one").refused(2, &["part-00000.parquet: not a readable Parquet part"]);
}
