//! `rackweave settle`: where in a box of parameters a claim holds.

use crate::support::{Home, SMALL};

/// Our value is the mean read in microseconds, of which the fibre's delay is a part: four hops.
const CLAIMS: &str = r#"
[[claim]]
id = "edm.fig7.cxl"
measure = { metric = "latency_ns.read.mean", scale = 0.001 }
"#;
const BOX: &str = r#"
claims = ["edm.fig7.cxl"]
[[parameter]]
key = "fabric.propagation"
range = ["10ns", "500ns"]
source = "no page gives the length of the fibre"
"#;

fn home(settle: &str) -> Home {
    // Nothing waits at this load.
    let idle = SMALL.replace("load = 0.5", "load = 0.001");
    let home = Home::new().with("lab/edm/pair/experiment.toml", &idle).with("lab/edm/pair/claims.toml", CLAIMS);
    home.with("lab/edm/pair/settle.toml", settle)
}

const SETTLE: &str = "settle edm.fig7.cxl --experiments lab --points 32 --around 8";

#[test]
fn the_region_in_which_a_claim_holds_is_that_of_the_closed_formula() {
    let home = home(BOX);
    let out = home.run(&format!("{SETTLE} --out out"));
    assert!(out.contains("edm.fig7.cxl") && out.contains("fabric.propagation"), "{out}");
    let settled = home.json("out/settled.json");
    let answer = &settled[0]["answers"][0];
    assert_eq!((answer["points"].as_u64(), answer["agrees"].as_bool()), (Some(40), Some(false)));
    let ns = |text: &serde_json::Value| -> f64 {
        text.as_str().unwrap().trim_matches('"').trim_end_matches("ns").parse().unwrap()
    };
    // The claim agrees from 0.9 to 1.3 us; each nanosecond of fibre is passed four times.
    let at_defaults = answer["ours"].as_f64().unwrap();
    let fibre = |micros: f64| 10.0 + (micros - at_defaults) * 1_000.0 / 4.0;
    let (low, high) = (&answer["region"]["fabric.propagation"][0], &answer["region"]["fabric.propagation"][1]);
    let step = (500.0 - 10.0) / 32.0;
    assert!((0.0..=2.0 * step).contains(&(ns(low) - fibre(0.9))), "{low} and {}", fibre(0.9));
    assert!((0.0..=2.0 * step).contains(&(fibre(1.3) - ns(high))), "{high} and {}", fibre(1.3));
}

#[test]
fn what_a_search_has_found_decides_the_verdict() {
    let verdict = |settle: &str| {
        let home = home(settle);
        home.run(&format!("{SETTLE} --out out"));
        let settled = home.text("out/settled.json");
        let home = home.with("lab/edm/settled.json", &settled);
        home.run("reproduce edm/pair --experiments lab --out again");
        let claims = home.json("again/claims.json");
        let claims = claims.as_array().unwrap();
        let one = claims.iter().find(|claim| claim["id"] == "edm.fig7.cxl").unwrap().clone();
        (one, home)
    };
    let (undetermined, home) = verdict(BOX);
    assert_eq!(undetermined["verdict"], "undetermined", "{undetermined}");
    assert_eq!(undetermined["parameter"], "fabric.propagation");
    assert_eq!(undetermined["source"], "no page gives the length of the fibre");
    assert!(undetermined["range"][0].as_str().unwrap().ends_with("ns"), "{undetermined}");
    assert_eq!(undetermined["searched"]["points"], 40);
    let page = home.text("again/index.html");
    assert!(page.contains("over what the paper does not print") && page.contains("fabric.propagation"));
    // A box that has changed since does not count.
    let home = home.with("lab/edm/pair/settle.toml", &BOX.replace("500ns", "400ns"));
    let said = home.say("reproduce edm/pair --experiments lab --out stale");
    assert!(said.err.contains("another box than edm/pair/settle.toml"), "{}", said.err);
    let claims = home.json("stale/claims.json");
    let differs = claims.as_array().unwrap().iter().find(|claim| claim["id"] == "edm.fig7.cxl").unwrap();
    assert_eq!((differs["verdict"].as_str(), &differs["searched"]), (Some("differs"), &serde_json::Value::Null));

    let (differs, _) = verdict(&BOX.replace("500ns", "30ns"));
    assert_eq!((differs["verdict"].as_str(), &differs["parameter"]), (Some("differs"), &serde_json::Value::Null));
    let searched = &differs["searched"];
    assert_eq!((&searched["box"]["fabric.propagation"][1], &searched["points"]), (&"30ns".into(), &40.into()));
    assert!(searched["nearest"].as_f64().unwrap() < 0.9, "{searched}");
}

#[test]
fn a_resumed_search_gives_the_bytes_of_a_whole_one() {
    let home = home(BOX);
    home.run(&format!("{SETTLE} --out whole --jobs 2"));
    let lines = home.text("whole/edm-pair.jsonl");
    let half: Vec<&str> = lines.lines().take(12).collect();
    std::fs::create_dir(home.path("part")).unwrap();
    // The last line is cut, as by a kill.
    std::fs::write(home.path("part/edm-pair.jsonl"), format!("{}\n{{\"index\":40,\"tr", half.join("\n"))).unwrap();
    let resumed = home.say(&format!("{SETTLE} --out part --resume"));
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(resumed.err.lines().filter(|line| line.ends_with("points tried")).count(), 41 - 11, "{}", resumed.err);
    assert_eq!(home.text("part/settled.json"), home.text("whole/settled.json"));
    home.say("settle edm --experiments lab --points 8 --out part --resume").refused(2, &["another search", "part"]);
}

#[test]
fn bad_boxes_are_refused_before_anything_is_played() {
    for (from, to, words) in [
        ("fabric.propagation", "fabric.propagatoin", &["settle.toml:3", "fabric.propagatoin"][..]),
        ("[\"10ns\", \"500ns\"]", "[\"500ns\", \"10ns\"]", &["settle.toml:3", "is not below"]),
        ("[\"10ns\", \"500ns\"]", "[\"10s\", \"500s\"]", &["settle.toml:3", "fabric.propagation"]),
        ("edm.fig7.cxl", "san.fig2.latency", &["settle.toml:2", "the design has no claim san.fig2.latency"]),
    ] {
        let home = home(&BOX.replace(from, to));
        home.say("settle edm --experiments lab --out out").refused(2, words);
        assert!(!home.path("out").exists(), "{to}");
    }
    let home = home(BOX);
    home.say("settle edm.fig6.throughput --experiments lab").refused(2, &["no settle.toml is about it"]);
    home.say("settle edn --experiments lab").refused(2, &["there is no design `edn`"]);
}
