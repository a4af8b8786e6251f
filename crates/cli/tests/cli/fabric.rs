//! `rackweave fabric`: networks in numbers, and what is no network.

use crate::support::{Home, SMALL};

/// Table 1 of the SAN study: 20 nodes of four ports each, behind switches of 32 ports or without.
const TABLE: &str = r#"title = "twenty nodes"
design.name = "san"
run.requests = 100
[fabric]
hosts = 5
targets = 20
[[sweep.axis]]
name = "architecture"
points = [
  { label = "switched", set = { "fabric.kind" = "single-switch", "fabric.trunk" = 4 } },
  { label = "switchless", set = { "fabric.kind" = "torus", "fabric.dimensions" = [5, 4] } },
]
"#;

fn home() -> Home {
    Home::new().with("a.toml", TABLE)
}

#[test]
fn networks_stand_side_by_side_with_ports_distances_and_the_papers_costs() {
    let found: serde_json::Value = serde_json::from_str(&home().run("fabric a.toml --json")).unwrap();
    let [switched, switchless] = &found.as_array().unwrap()[..] else { panic!("{found}") };
    let costs = |network: &serde_json::Value| {
        ["storage_usd", "formula_usd"].map(|rule| network["cost"][rule].as_f64().unwrap())
    };
    assert_eq!((switched["switches"].as_u64(), switched["storage_ports"].as_u64()), (Some(1), Some(80)));
    // 40 adapters at 900 and ceil(80 / 32) or ceil(160 / 32) switches at 23,000; 20 adapters at
    // 2,600.
    assert_eq!(costs(switched), [105_000.0, 151_000.0]);
    assert_eq!(costs(switchless), [52_000.0, 52_000.0]);
    assert_eq!((switchless["adapters"].as_u64(), switchless["storage_ports"].as_u64()), (Some(20), Some(80)));
    // Host to switch to target; host to adapter, at most 2 + 2 cables round the torus, adapter to
    // target.
    assert_eq!((switched["diameter"].as_u64(), switchless["diameter"].as_u64()), (Some(2), Some(6)));
    assert_eq!(switched["mean_distance"].as_f64(), Some(2.0));
}

#[test]
fn the_table_for_people_says_the_same() {
    let out = home().run("fabric a.toml");
    for word in ["architecture=switched", "architecture=switchless", "105", "52"] {
        assert!(out.contains(word), "{word}: {out}");
    }
}

#[test]
fn the_optimum_of_a_small_network_is_what_its_links_allow() {
    // Two hosts of one cable of 100 Gb/s each and two targets behind a switch: 50 Gb/s for each of
    // the four pairs, if drives have as much.
    let text = "title = \"four\"\ndesign.name = \"san\"\nrun.requests = 100\n[drives]\nper_target = 8\n[fabric]\nkind = \"single-switch\"\nhosts = 2\ntargets = 2\n";
    let out = Home::new().with("a.toml", text).run("fabric a.toml --oracle --json");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let optimum = &found[0]["optimum"];
    assert!((optimum["alike_gbps"].as_f64().unwrap() - 50.0).abs() < 1e-3, "{optimum}");
    assert!((optimum["total_gbps"].as_f64().unwrap() - 200.0).abs() < 1e-3, "{optimum}");
    assert!((optimum["busiest_link"].as_f64().unwrap() - 1.0).abs() < 1e-5, "{optimum}");
}

#[test]
fn one_network_is_drawn_and_several_are_refused() {
    let home = home();
    home.run("fabric a.toml --point 2 --picture torus.svg");
    let picture = home.text("torus.svg");
    assert!(picture.starts_with("<svg") && picture.contains("a19") && picture.contains("t19"), "{:.200}", picture);
    home.say("fabric a.toml --picture all.svg").refused(2, &["--picture draws one network"]);
    home.say("fabric a.toml --point 3").refused(2, &["--point 3: allowed is 1 to 2"]);
}

#[test]
fn an_experiment_without_a_network_to_choose_is_refused() {
    let home = Home::new().with("a.toml", SMALL);
    home.say("fabric a.toml").refused(2, &["the design edm has no network to choose"]);
}

#[test]
fn more_uplinks_than_a_host_can_use_are_refused_with_file_and_line() {
    let text = TABLE.replace("targets = 20\n", "targets = 20\nendpoint_cables = 9\n");
    Home::new()
        .with("a.toml", &text)
        .say("check a.toml")
        .refused(2, &["a.toml:7:19: ", "h0 has 9 uplinks, allowed are 1 to 8"]);
}
