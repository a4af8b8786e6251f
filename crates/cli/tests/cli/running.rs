//! `rackweave run`: what it leaves, that it repeats itself, and what it refuses.

use crate::support::{Home, LONG, SMALL, SWEEP};
use base::Span;
use std::collections::BTreeSet;
use std::fs;

/// EDM and every rival that is registered.
fn designs() -> impl Iterator<Item = String> {
    let rivals = plan::DesignName::RIVALS.iter().map(|design| design.word());
    [plan::DesignName::Edm.word()].into_iter().chain(rivals)
}

#[test]
fn a_run_leaves_its_plan_its_records_and_its_summaries() {
    let home = Home::new().with("a.toml", SMALL);
    let out = home.run("run a.toml --out out");
    assert!(out.contains("400 offered, 400 finished") && out.contains("results    out"), "{out}");
    assert_eq!(home.entries("out"), ["index.html", "plan.toml", "rackweave-output", "seed-1", "summary.json"]);
    let seed = ["latency.all.hdr", "latency.read.hdr", "latency.write.hdr", "records", "summary.json"];
    assert_eq!(home.entries("out/seed-1"), seed);
    let (summary, rows) = (home.summary("out/summary.json"), home.rows("out/seed-1/records"));
    assert_eq!((summary.counts.finished, rows.len()), (400, 400));
    assert!(rows.iter().all(|row| row.adds_up()));
    let checked = home.run("check a.toml");
    assert!(home.text("out/plan.toml") == checked && checked.contains(&summary.plan_hash));
}

#[test]
fn the_history_of_a_store_is_kept_on_demand_and_nothing_else_has_one() {
    let store = "title = 'pairs'\ndesign.name = 'scalio'\nio.profile = 'ycsb-a'\nrun.requests = 200\n\
                 store = { devices = 1, clients = 4, client_nodes = 1, keys = 100, cached_keys = 16 }\n";
    let home = Home::new().with("pairs.toml", store).with("a.toml", SMALL);
    home.run("run pairs.toml --out without");
    home.run("run pairs.toml --history --out with");
    let history = home.text("with/seed-1/history.jsonl");
    let is_first = |line: &&str| line.ends_with(r#""start":0,"end":0}"#);
    let (first, rest): (Vec<&str>, Vec<&str>) = history.lines().partition(is_first);
    assert_eq!((rest.len(), first.len() as f64), (200, home.summary("with/summary.json").metrics["keys_checked"]));
    assert_eq!(home.summary("with/summary.json").metrics["history_violations"], 0.0);
    assert!(home.rows("with/seed-1/records") == home.rows("without/seed-1/records"));
    assert!(!home.entries("without/seed-1").contains(&"history.jsonl".to_string()));
    home.say("run a.toml --history --out refused").refused(2, &["--history", "leed-ditto"]);
}

/// The spans of some requests, with begin, end and place, are those of their rows, and no row
/// changes.
#[test]
fn the_spans_of_some_requests_are_kept_in_their_order_on_demand() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --out without");
    assert!(!home.entries("without/seed-1").contains(&"spans".to_string()));
    for (asked, requests) in [("slowest:3", 3), ("every:100", 4), ("all", 400)] {
        home.run(&format!("run a.toml --spans {asked} --out {requests}"));
        let rows = home.rows(&format!("{requests}/seed-1/records"));
        assert!(rows == home.rows("without/seed-1/records"));
        let spans = home.spans(&format!("{requests}/seed-1/spans"));
        let told: BTreeSet<u64> = spans.iter().map(|span| span.request.0).collect();
        assert_eq!(told.len(), requests, "{asked}");
        for row in rows.iter().filter(|row| told.contains(&row.request.0)) {
            let mine: Vec<_> = spans.iter().filter(|span| span.request == row.request).collect();
            let (first, last) = (mine[0].entry.begin, mine[mine.len() - 1].entry.end);
            assert_eq!((first, last), (row.intended, row.end));
            assert!(mine.windows(2).all(|pair| pair[0].entry.end == pair[1].entry.begin));
            for (kind, span) in row.spans.iter() {
                let entries = mine.iter().map(|span| span.entry).filter(|entry| entry.kind == kind);
                assert_eq!(entries.map(|entry| entry.counted).sum::<Span>(), span, "{kind:?}");
            }
        }
    }
    let rows = home.rows("without/seed-1/records");
    let longest = rows.iter().map(|row| row.latency()).max();
    let first = home.spans("3/seed-1/spans")[0].request;
    assert_eq!(rows.iter().find(|row| row.request == first).map(|row| row.latency()), longest);
    home.say("run a.toml --spans few --out refused").refused(2, &["few", "slowest:K", "every:N"]);
}

#[test]
fn progress_is_lines_of_json_where_there_is_no_terminal() {
    let home = Home::new().with("a.toml", SMALL);
    let said = home.say("run a.toml --out out");
    let line: serde_json::Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    assert_eq!((line["event"].as_str(), line["done"].as_u64()), (Some("point"), Some(1)));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --seed 7 --out first");
    home.run("run a.toml --seed 7 --out second");
    home.run("run a.toml --seed 8 --out other");
    assert_eq!(home.files("first"), home.files("second"));
    let part = |out: &str, seed| fs::read(home.path(&format!("{out}/seed-{seed}/records/part-00000.parquet"))).unwrap();
    assert_ne!(part("first", 7), part("other", 8));
}

#[test]
fn several_seeds_are_summarised_together_and_each() {
    let home = Home::new().with("a.toml", SMALL);
    home.run("run a.toml --seeds 3..5 --out out");
    let both = home.summary("out/summary.json");
    let means = [3, 4].map(|seed| home.summary(&format!("out/seed-{seed}/summary.json")).latency_ns["all"].mean);
    assert_eq!((both.seeds, both.counts.offered), (vec![3, 4], 800));
    assert_eq!(both.latency_ns["all"].mean, (means[0] + means[1]) / 2.0);
    assert!(both.latency_ns["all"].mean_ci95.is_some() && means[0] != means[1]);
    home.run("run a.toml --seed 4 --out alone");
    assert_eq!(home.files("out/seed-4"), home.files("alone/seed-4"), "its neighbours change nothing");
}

#[test]
fn the_plan_of_a_run_replays_as_it_was_with_its_files_and_all_seeds() {
    let trace = SMALL.replace("load = 0.5", "arrivals = \"trace\"\nfile = \"t.csv\"");
    let trace = trace.replace("[run]\nrequests = 400\n", "");
    let lines: String = (0..50).map(|place| format!("{place}ns,{},7,read,64\n", place % 7)).collect();
    let lines = format!("time,source,target,operation,bytes\n{lines}");
    let home = Home::new().with("mine/a.toml", &trace).with("mine/t.csv", &lines);
    home.run("run mine/a.toml --seeds 3..5 --out out");
    home.run("run out/plan.toml --out again");
    assert_eq!(home.files("out"), home.files("again"));
    assert_eq!(home.summary("again/summary.json").seeds, [3, 4]);
    let plan = home.text("out/plan.toml");
    assert!(plan.contains("\nfiles = \"../mine\"\n") && plan.contains("\nseeds = [3, 4]\n"), "{plan}");
    // A sweep's points lie deeper, and one seed of a list can be had alone.
    home.run("sweep mine/a.toml --out swept --seeds 3..5");
    home.run("run swept/points/000/plan.toml --out third --seed 4");
    assert_eq!(home.files("third/seed-4"), home.files("out/seed-4"));
    // The folder can be given beside the file, and is one for all points.
    let home = home.with("b.toml", &trace);
    home.say("run b.toml --out none").refused(2, &["b.toml:", "t.csv"]);
    home.run("run b.toml --out beside --set files=mine --seed 4");
    assert_eq!(home.files("beside/seed-4"), home.files("out/seed-4"));
    let home = home.with("c.toml", &format!("{trace}[sweep]\nfiles = [\"mine\", \"yours\"]\n"));
    home.say("check c.toml").refused(2, &["c.toml:", "files: files are read once"]);
    let seeds = |keys: &str| format!("{keys}\n{SMALL}");
    let home = Home::new().with("both.toml", &seeds("seed = 1\nseeds = [1, 2]"));
    home.say("check both.toml").refused(2, &["both.toml", "`seed` is not valid with `seeds`"]);
    let home = Home::new().with("twice.toml", &seeds("seeds = [7, 2, 7]"));
    home.say("check twice.toml").refused(2, &["twice.toml:1:", "7 is listed twice"]);
}

#[test]
fn encoding_every_message_changes_no_record_of_any_design() {
    let home = Home::new().with("a.toml", SMALL);
    for design in designs() {
        home.run(&format!("run a.toml --set design.name={design} --out {design}"));
        home.run(&format!("run a.toml --set design.name={design} --out {design}-wire --wire"));
        assert_eq!(home.files(&design), home.files(&format!("{design}-wire")), "{design}");
        assert_eq!(home.rows(&format!("{design}/seed-1/records")).len(), 400, "{design}");
    }
}

#[test]
fn a_folder_that_exists_is_replaced_only_when_told_and_only_our_own() {
    let home = Home::new().with("a.toml", SMALL).with("thesis/draft.tex", "");
    home.run("run a.toml --out out");
    let before = home.files("out");
    home.say("run a.toml --out out --seed 2").refused(2, &["out exists", "--force"]);
    assert_eq!(home.files("out"), before);
    home.run("run a.toml --out out --seed 2 --force");
    assert_eq!(home.entries("out"), ["index.html", "plan.toml", "rackweave-output", "seed-2", "summary.json"]);
    home.say("run a.toml --out thesis --force").refused(2, &["thesis is not replaced", "rackweave-output"]);
    home.say("run a.toml --out a.toml --force").refused(2, &["a.toml is not replaced"]);
    assert_eq!(home.entries("thesis"), ["draft.tex"]);
}

#[test]
fn a_sweep_is_no_single_run_until_its_axes_are_fixed() {
    let home = Home::new().with("a.toml", &format!("{SMALL}{SWEEP}"));
    home.say("run a.toml --out out").refused(2, &["4 points over design.name, workload.load", "rackweave sweep"]);
    assert!(!home.path("out").exists());
    home.run("run a.toml --out out --set design.name=cxl --set workload.load=0.2");
    assert_eq!(home.summary("out/summary.json").design, "cxl");
}

#[test]
fn broken_files_beside_an_experiment_are_named_by_line_and_nothing_is_written() {
    let cdf = SMALL.replace("load = 0.5", "load = 0.5\nsize = { cdf = \"sizes.txt\" }");
    for (sizes, words) in [
        ("64 1 0.5\n32 1 1.0\n", ["sizes.txt", ":2:"]),
        ("64 1 0.5\n128 1 nan\n", ["sizes.txt", ":2:"]),
        ("64 1 0.5\n128 1\n", ["sizes.txt", ":2:"]),
    ] {
        refuses_file(&cdf, "sizes.txt", sizes, &words);
    }
    let trace =
        SMALL.replace("load = 0.5", "arrivals = \"trace\"\nfile = \"t.csv\"").replace("[run]\nrequests = 400\n", "");
    let head = "time,source,target,operation,bytes\n0ns,0,1,read,64\n";
    for line in ["-5ns,0,1,read,64\n", "10ns,0,1,read", "10ns,0,99,read,64\n", "10,0,1,read,64\n"] {
        refuses_file(&trace, "t.csv", &format!("{head}{line}"), &["t.csv", ":3:"]);
    }
    let home = Home::new().with("a.toml", &trace).with("t.csv", head);
    home.run("run a.toml --out out");
    assert_eq!(home.rows("out/seed-1/records").len(), 1);
}

#[test]
fn what_is_wrong_with_a_file_is_said_so_that_it_can_be_mended() {
    let home = Home::new()
        .with("a.toml", SMALL)
        .with("bad.toml", &SMALL.replace("load = 0.5", "load = \"x\""))
        .with("twice.toml", &SMALL.replace("nodes = 8", "nodes = 8\nnodes = 9"))
        .with("empty.toml", "\n")
        .with("none.toml", &format!("{SMALL}[sweep]\n"))
        .with("messages.csv", "time,source,target,operation,bytes\n0ns,0,1,read,64\n");
    fs::write(home.path("binary.toml"), [b't', 0xff, 0xfe]).expect("a disk");
    home.say("check twice.toml").refused(2, &["twice.toml:4:1: ", "duplicate key `nodes`"]);
    home.say("check empty.toml").refused(2, &["empty.toml: the file is empty", "`design.name`"]);
    home.say("check binary.toml").refused(2, &["binary.toml: it is not text (byte 1 is not UTF-8)"]);
    home.say("check none.toml").refused(2, &["none.toml:11:", "sweep: it has no axis"]);
    home.say("trace messages.csv").refused(2, &["a trace of messages", "workload.file"]);
    home.say("fit a.toml").refused(2, &["a.toml: line 1 column 2: not JSON: expected"]);
    // What the file says wrongly, a setting heals; an empty one takes a key away.
    home.say("check bad.toml").refused(2, &["bad.toml:8:8: workload.load"]);
    assert!(home.run("check bad.toml --set workload.load=0.4").contains("\nload = 0.4\n"));
    home.say("check a.toml --set workload.load=")
        .refused(2, &["workload: `load` is missing: arrivals = poisson needs it"]);
    home.say("check a.toml --set workload.mix=").refused(2, &["the file does not have it"]);
    assert!(home.run("check a.toml --set fabric.rate= --set fabric.rate=25Gbps").contains("rate = \"25Gbps\""));
}

#[test]
fn what_would_take_days_is_refused_with_an_estimate_unless_it_is_meant() {
    let home = Home::new().with("a.toml", SMALL);
    let days = ["1000000000000 requests take about 116 days of a core, and 30000 GB", "--long"];
    home.say("run a.toml --out out --set run.requests=1000000000000").refused(2, &days);
    let sweep = "sweep a.toml --out out --set run.requests=10000000000 --seeds 1..=3";
    home.say(sweep).refused(2, &["30000000000 requests", "--long"]);
    assert!(!home.path("out").exists());
}

#[test]
fn what_takes_long_says_so_before_it_begins() {
    let home = Home::new().with("a.toml", &SMALL.replace("400", LONG));
    let running = home.start("run a.toml --out out", "out/plan.toml");
    running.signal("INT");
    running.end().refused(130, &["estimate: about", "of a core", "of records"]);
    assert!(!home.say("run a.toml --out short --set run.requests=400").err.contains("estimate"));
}

fn refuses_file(experiment: &str, name: &str, text: &str, words: &[&str]) {
    let home = Home::new().with("folder/a.toml", experiment).with(&format!("folder/{name}"), text);
    home.say("run folder/a.toml --out out").refused(2, &[&["folder/a.toml:9:"], words].concat());
    assert_eq!(home.entries("."), ["folder"], "{text}");
}
