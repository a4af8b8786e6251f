//! `rackweave explain`: runs whose cause is known must be explained by it.

use crate::support::{Home, SMALL, SWEEP};
use serde_json::Value;

/// Runs a file and returns the explanation.
fn explained(text: &str) -> Value {
    let home = Home::new().with("a.toml", text);
    home.run("run a.toml --out out");
    serde_json::from_str(&home.run("explain out --format json")).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The share of a span in the extra time.
fn share(explanation: &Value, span: &str) -> f64 {
    let spans = explanation["spans"].as_array().unwrap();
    spans.iter().find(|one| one["span"] == span).map_or(0.0, |one| number(&one["extra_share"]))
}

/// What holds for every explanation.
fn check(explanation: &Value) {
    let spans = explanation["spans"].as_array().unwrap();
    let sum = |key: &str| -> f64 { spans.iter().map(|span| number(&span[key])).sum() };
    let extra = number(&explanation["extra_ns"]);
    assert!((sum("slow_ns") - sum("usual_ns") - extra).abs() < 1e-6 * extra, "spans sum to the extra time");
    let (slow, requests) = (number(&explanation["slow"]), number(&explanation["requests"]));
    assert!(slow >= 0.01 * requests && slow <= 0.02 * requests + 1.0, "{slow} of {requests}");
    let worst: Vec<f64> =
        explanation["worst"].as_array().unwrap().iter().map(|one| number(&one["latency_ns"])).collect();
    assert!(worst.is_sorted_by(|one, other| one >= other) && worst.len() == 5, "{worst:?}");
    assert!(worst[4] >= number(&explanation["p99_ns"]));
}

const INCAST: &str = r#"
title = "incast"
fabric = { nodes = 16, rate = "100Gbps" }
design.name = "dctcp"
workload = { pattern = "incast", target = 3, load = 0.9, size = "4KiB", read_fraction = 0.0 }
run.requests = 10000
"#;

#[test]
fn an_incast_is_named_with_its_node() {
    let found = explained(INCAST);
    check(&found);
    assert_eq!((&found["cause"]["kind"], &found["cause"]["node"]), (&"incast".into(), &3.into()), "{found}");
    assert!(share(&found, "switch_queue") > 0.9, "{found}");
    // The same load between all pairs has no such node.
    let even = explained(&INCAST.replace(r#"pattern = "incast", target = 3, "#, ""));
    check(&even);
    assert_eq!(even["cause"]["kind"], "network", "{even}");
}

const COLLECTION: &str = r#"
title = "collection"
design.name = "san-plain"
fabric = { kind = "single-switch", hosts = 1, targets = 1 }
drives = { per_target = 1, model = "whole", capacity = "256MiB", state = "fragmented" }
io = { depth = 4, write_share = 0.3, footprint = "128MiB" }
run.requests = 40000
"#;

#[test]
fn garbage_collection_is_told_from_a_busy_drive() {
    let found = explained(COLLECTION);
    check(&found);
    assert_eq!(found["cause"]["kind"], "collection", "{found}");
    assert!(share(&found, "collection_wait") > 0.5, "{found}");
    // Reads alone collect nothing.
    let reads = explained(&COLLECTION.replace("write_share = 0.3", "write_share = 0.0"));
    assert_eq!((&reads["cause"]["kind"], share(&reads, "collection_wait")), (&"device".into(), 0.0), "{reads}");
}

const HOT_KEY: &str = r#"
title = "hot key"
design.name = "scalio"
store = { devices = 4, clients = 32, client_nodes = 4, keys = 100000, cached_keys = 10000 }
io = { write_share = 0.5, addresses = "zipfian", theta = 0.99 }
run.requests = 40000
"#;

#[test]
fn a_hot_key_is_named() {
    let found = explained(HOT_KEY);
    check(&found);
    assert_eq!((&found["cause"]["kind"], &found["cause"]["address"]), (&"hot-address".into(), &0.into()), "{found}");
    let common = found["common"].as_array().unwrap();
    let key = common.iter().find(|common| common["of"] == "address").unwrap();
    assert!(number(&key["all_share"]) < 0.1, "few requests are for it: {key}");
    let uniform = explained(&HOT_KEY.replace(r#""zipfian", theta = 0.99"#, r#""uniform""#));
    assert_ne!(uniform["cause"]["kind"], "hot-address", "{uniform}");
}

const CUT: &str = r#"
title = "cut"
design.name = "san"
fabric = { kind = "torus", dimensions = [2, 2, 2], hosts = 8 }
drives = { per_target = 1, model = "quick" }
io = { depth = 8, write_share = 0.3 }
run.requests = 4000
[[fault]]
at = "4ms"
kind = "link-down"
ends = ["a0", "a1"]
"#;

#[test]
fn a_cut_link_is_named() {
    let found = explained(CUT);
    check(&found);
    assert_eq!(found["cause"]["kind"], "fault", "{found}");
    assert!(found["worst"].as_array().unwrap().iter().all(|one| one["across_fault"] == true), "{found}");
    let whole = explained(CUT.split("[[fault]]").next().unwrap());
    assert_eq!(whole["cause"]["kind"], "device", "{whole}");
    assert!(whole["worst"].as_array().unwrap().iter().all(|one| one["across_fault"] == false), "{whole}");
}

#[test]
fn an_explanation_is_words_and_tables() {
    let home = Home::new().with("a.toml", INCAST);
    home.run("run a.toml --out out --seeds 1..3");
    let text = home.run("explain out --seed 2 --worst 3");
    assert!(text.starts_with("run        out, seed 2\nrequests   9000 measured, "), "{text}");
    assert!(text.contains("\ncause      an incast: data from many nodes converge on node 3\n"), "{text}");
    assert_eq!(text.lines().skip_while(|line| !line.starts_with("request ")).count(), 4, "{text}");
    assert_eq!(home.run("explain out --seed 2 --worst 3"), text, "the same bytes");
    assert_ne!(home.run("explain out --worst 3"), text, "another seed");
    assert!(!home.run("explain out --worst 0").contains("\n 1"), "no request");
}

#[test]
fn what_cannot_be_explained_is_refused_by_name() {
    let home = Home::new().with("a.toml", SMALL).with("sweep.toml", &(SMALL.to_owned() + SWEEP));
    home.run("run a.toml --out out");
    home.run("sweep sweep.toml --out sweep --no-records");
    home.say("explain out --seed 7").refused(2, &["out: it has no such seed; its seeds are [1]"]);
    home.say("explain sweep").refused(2, &["sweep: a sweep of 4 points"]);
    home.say("explain sweep/points/000-design=edm,load=0.2").refused(2, &["there are no records"]);
    home.say("explain gone").refused(2, &["gone: there is no such folder"]);
    let wear = "title = \"w\"\ndesign.name = \"wear-levelling\"\n";
    std::fs::write(home.path("w.toml"), wear).unwrap();
    home.run("run w.toml --out wear");
    home.say("explain wear").refused(2, &["wear: no measured request has finished"]);
}

#[test]
fn who_held_the_place_is_named_if_spans_were_kept() {
    let home = Home::new().with("a.toml", INCAST);
    home.run("run a.toml --spans all --out out");
    let text = home.run("explain out --svg out.svg --format json");
    let found: Value = serde_json::from_str(&text).unwrap();
    let behind = found["behind"].as_array().unwrap();
    assert_eq!(behind.len(), 5);
    for one in behind {
        let request = one["request"].as_u64().unwrap();
        // All wait for the link of the node that all write to. Of each message of three packets the
        // last is claimed: a quarter of the time.
        assert_eq!((&one["resource"], &one["span"]), (&"link 3".into(), &"switch_queue".into()), "{one}");
        assert!((0.2..0.4).contains(&number(&one["explained"])), "{one}");
        let holders: Vec<u64> =
            one["holders"].as_array().unwrap().iter().map(|holder| holder["request"].as_u64().unwrap()).collect();
        assert!(holders.len() == 3 && holders.iter().all(|holder| *holder < request && request - *holder < 200));
    }
    assert!(home.text("out.svg").contains("an incast"));
    let text = home.run("explain out");
    assert!(text.contains(" at port 3 for link 3, behind "), "{text}");
    // Without spans nothing is said of it.
    home.run("run a.toml --out plain");
    let plain: Value = serde_json::from_str(&home.run("explain plain --format json")).unwrap();
    assert_eq!(plain["behind"], Value::Array(Vec::new()));
}
