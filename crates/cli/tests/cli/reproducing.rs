//! `rackweave reproduce`: from experiments to verdicts.

use crate::support::{Home, LONG, SMALL};
use serde_json::Value;

const SWEPT: &str = "[sweep]\n\"design.name\" = [\"edm\", \"rocev2\"]\n[scale.quick]\nrun.requests = 200\n";
const CLAIMS: &str = r#"
[[claim]]
id = "edm.table1.read.total"
measure = { metric = "latency_ns.read.mean", where = { design = "edm" } }
reason = "this test loads the network"
[[claim]]
id = "edm.fig8a.order"
measure = { all = [{ left = { metric = "latency_ns.all.mean", where = { design = "edm" } }, op = "<", right = { metric = "latency_ns.all.mean", where = { design = "rocev2" } } }] }
"#;
const FIGURE: &str = r#"
title = "Latency"
caption = "Of two designs."
kind = "bars"
published = "published.csv"
[x]
label = "design"
title = "Design"
[y]
metric = "latency_ns.all.mean"
title = "Mean latency (ns)"
"#;

fn home() -> Home {
    Home::new()
        .with("lab/edm/pair/experiment.toml", &format!("{SMALL}{SWEPT}"))
        .with("lab/edm/pair/claims.toml", CLAIMS)
        .with("lab/edm/pair/figure.toml", FIGURE)
        .with("lab/edm/pair/published.csv", "series,x,value,source\nedm,edm,300,paper\n")
        .with("lab/edm/pair/README.md", "Two designs **side by side**.")
        .with("lab/edm/alone/experiment.toml", SMALL)
}

fn claims(home: &Home, file: &str) -> Vec<Value> {
    serde_json::from_str(&home.text(file)).unwrap()
}

fn claim<'a>(claims: &'a [Value], id: &str) -> &'a Value {
    claims.iter().find(|claim| claim["id"] == id).unwrap()
}

#[test]
fn an_experiment_becomes_verdicts_a_page_and_records() {
    let home = home();
    let out = home.run("reproduce edm --experiments lab --out out");
    for words in ["edm.fig8a.order", "agrees", "this test loads the network", "20 claims: 1 agree, 1 differ"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let entries = [
        "claims.json",
        "edm-alone.html",
        "edm-pair.html",
        "figures.js",
        "index.html",
        "points.json",
        "rackweave-output",
        "records",
        "results.json",
    ];
    assert_eq!(home.entries("out"), entries);
    let found = claims(&home, "out/claims.json");
    assert_eq!((found.len(), claim(&found, "edm.fig8a.order")["ours"].as_bool()), (20, Some(true)));
    let mean = home.summary("out/records/edm/pair/000-design=edm/summary.json").latency_ns["read"].mean;
    let ours = claim(&found, "edm.table1.read.total")["ours"].as_f64().unwrap();
    assert!((ours / mean - 1.0).abs() < 1e-9, "ours is computed from the run");
    assert_eq!(home.rows("out/records/edm/pair/001-design=rocev2/seed-1/records").len(), 200);
    assert_eq!(home.rows("out/records/edm/alone/000/seed-1/records").len(), 400, "no scale, the file's own size");
    assert!(home.text("out/index.html").contains("rackweave reproduce edm --scale quick"));
    assert!(home.text("out/edm-pair.html").contains("<strong>side by side</strong>"));
    assert_eq!(home.json("out/points.json")["edm/pair"].as_array().unwrap().len(), 2);
}

#[test]
fn reproducing_twice_gives_the_same_bytes() {
    let home = home();
    home.run("reproduce edm --experiments lab --out first --jobs 1");
    home.run("reproduce edm --experiments lab --out second --jobs 3");
    assert_eq!(home.files("first"), home.files("second"));
}

#[test]
fn one_figure_leaves_the_other_claims_not_run() {
    let home = home();
    let out = home.run("reproduce edm/pair --experiments lab --out out --no-records --seeds 1..3 --scale paper");
    assert!(out.contains("2 claims: 1 agree"), "{out}");
    assert_eq!(home.entries("out/records/edm"), ["pair"]);
    let point = home.summary("out/records/edm/pair/000-design=edm/summary.json");
    assert_eq!((point.seeds, point.counts.offered), (vec![1, 2], 800));
    assert!(!home.path("out/records/edm/pair/000-design=edm/seed-1/records").exists());
    let found = claims(&home, "out/claims.json");
    assert!(claim(&found, "edm.fig7.cxl")["ours"].is_null());
    assert!(claim(&found, "edm.fig7.cxl")["reason"].as_str().unwrap().starts_with("not run"));
}

#[test]
fn the_claims_of_a_folder_say_where_they_are_from() {
    let home = home();
    home.run("reproduce edm/pair --experiments lab --out out");
    let text = home.run("claims --design edm --from out");
    assert!(text.contains("2 verdicts are from out/results.json: quick scale, rackweave"), "{text}");
    let listed: Vec<Value> = serde_json::from_str(&home.run("claims --json --from out")).unwrap();
    let (kept, written) = (claim(&listed, "edm.table1.read.total"), claims(&home, "out/claims.json"));
    let written = claim(&written, "edm.table1.read.total");
    assert!(["ours", "verdict", "reason"].iter().all(|key| kept[key] == written[key]), "{kept} {written}");
    assert_eq!((kept["from"]["scale"].as_str(), kept["from"]["partial"].as_bool()), (Some("quick"), Some(false)));
    assert_eq!(listed.len(), 94);
    assert!(claim(&listed, "edm.fig7.cxl")["from"].is_null());
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let home = home();
    let blox = ["blox has no experiment", "the nearest are edm/", "--list"];
    home.say("reproduce blox --experiments lab").refused(2, &blox);
    let nearest = ["edm/pear has no experiment; the nearest are edm/pair, edm/alone;"];
    home.say("reproduce edm/pear --experiments lab").refused(2, &nearest);
    let listed = home.run("reproduce --list --experiments lab");
    assert!(listed.starts_with("points      requests     time of a core"), "{listed}");
    assert!(listed.contains(" edm/alone ") && listed.contains(" edm/pair "), "{listed}");
    assert!(!home.path("rackweave-results").exists(), "nothing was played");
    home.say("reproduce edn --experiments lab").refused(2, &["edn", "edm, blox, san, sdirect, scalio"]);
    home.say("reproduce --experiments none").refused(2, &["none: No such file"]);
    assert_eq!(home.entries("."), ["lab"]);
}

#[test]
fn a_mistake_beside_an_experiment_is_found_before_anything_is_run() {
    for (file, text, words) in [
        ("claims.toml", "[[claim]]\nid = 'edm.none'\nmeasure = { metric = 'events' }\n", "claims.toml:1: no ledger"),
        ("claims.toml", "[[claim]]\nid = 3\n", "claims.toml:2:"),
        (
            "claims.toml",
            "[[claim]]\nid = 'edm.table1.read'\nmeasure = { metric = 'metrics.cache_hit' }\n",
            "claims.toml:1: claim edm.table1.read: measure: a summary has no number `metrics.cache_hit`; \
             the nearest are metrics.cache_hit_ratio, ",
        ),
        ("figure.toml", "title = 'x'\n", "figure.toml:1:"),
        ("published.csv", "a,b\n", "published.csv:1:"),
        ("experiment.toml", "title = 'x'\n", "experiment.toml:1:1"),
    ] {
        let home = home().with(&format!("lab/edm/pair/{file}"), text);
        home.say("reproduce --experiments lab --out out").refused(2, &[words]);
        assert!(!home.path("out").exists(), "{file}");
    }
}

#[test]
fn an_interrupted_reproduction_reports_what_it_has() {
    let home = home().with("lab/edm/long/experiment.toml", &SMALL.replace("400", LONG));
    let line = "reproduce edm --experiments lab --out out --jobs 4";
    let running = home.start(line, "out/records/edm/pair/001-design=rocev2/summary.json");
    home.wait("out/records/edm/long/.000.unfinished/seed-1/records/part-00000.parquet");
    running.signal("INT");
    running.end().refused(130, &["interrupted"]);
    assert!(home.summary("out/records/edm/long/000/summary.json").partial);
    assert_eq!(home.json("out/results.json")["partial"].as_bool(), Some(true));
    assert!(home.text("out/index.html").contains("Partial results"));
    assert_eq!(claim(&claims(&home, "out/claims.json"), "edm.fig8a.order")["ours"].as_bool(), Some(true));
}

#[test]
fn the_shipped_experiments_run_from_any_folder() {
    let home = Home::new();
    let out = home.run("reproduce edm/table1 --no-records --out out");
    assert!(out.contains("edm.table1.read.total") && out.contains("agrees"), "{out}");
}

#[test]
fn what_a_tool_has_measured_is_a_page_without_a_run() {
    let home = Home::new();
    home.run("reproduce edm/rtl --out gates");
    let page = home.text("gates/index.html");
    for shown in ["edm_multiplexer", "LUTs", "not counted"] {
        assert!(page.contains(shown), "{shown}");
    }
}
