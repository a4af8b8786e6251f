//! `rackweave new-policy`: the program that it writes. `crates/campaign/tests/own.rs` runs it.

use crate::support::Home;

#[test]
fn a_program_is_written_for_the_sources_that_this_one_was_built_from() {
    let home = Home::new();
    let out = home.run("new-policy shortest-first");
    assert!(out.contains("cd shortest-first && cargo run --release"), "{out}");
    assert_eq!(home.entries("shortest-first"), ["Cargo.lock", "Cargo.toml", "src"]);
    let manifest: toml::Table = home.text("shortest-first/Cargo.toml").parse().unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("shortest-first"));
    let campaign = manifest["dependencies"]["campaign"]["path"].as_str().unwrap();
    assert!(std::path::Path::new(campaign).join("src/own.rs").is_file(), "{campaign}");
    let program = home.text("shortest-first/src/main.rs");
    assert!(program.contains("Own::of(\"shortest-first\", Mine)"), "{program}");
}

#[test]
fn each_decision_has_a_program_with_the_crate_that_it_needs() {
    let home = Home::new();
    for (decision, room, situation) in [
        ("priority", "edm", "Competitor"),
        ("order", "blox", "QueuedJob"),
        ("replica", "blox", "ReadPath"),
        ("collect", "blox", "CollectionCheck"),
    ] {
        home.run(&format!("new-policy my-{decision} --decision {decision}"));
        let manifest: toml::Table = home.text(&format!("my-{decision}/Cargo.toml")).parse().unwrap();
        let needed: Vec<&str> = manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
        let mut expected = ["base", "campaign", room];
        expected.sort();
        assert_eq!(needed, expected);
        let program = home.text(&format!("my-{decision}/src/main.rs"));
        assert!(program.contains(&format!("impl Decide<{situation}> for Mine")), "{program}");
    }
    home.say("new-policy mine --decision weight").refused(2, &["weight", "priority, order, replica, collect"]);
}

/// What cargo says of the program's manifest, without a network.
fn cargo(home: &Home) -> (bool, String) {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    let host = std::process::Command::new("rustc").args(["--print", "host-tuple"]).output().unwrap().stdout;
    // Packages of other platforms need not be on this machine.
    cargo.args(["metadata", "--offline", "--format-version", "1", "--filter-platform"]);
    cargo.arg(String::from_utf8(host).unwrap().trim()).current_dir(home.path("mine"));
    let done = cargo.output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn sources_of_another_version_are_refused_by_name() {
    let home = Home::new();
    home.run("new-policy mine");
    let manifest = home.text("mine/Cargo.toml");
    let (works, said) = cargo(&home);
    assert!(works, "{said}");
    let other = manifest.replace(&format!("={}", env!("CARGO_PKG_VERSION")), "=0.0.1");
    assert_ne!(other, manifest);
    std::fs::write(home.path("mine/Cargo.toml"), other).unwrap();
    let (works, said) = cargo(&home);
    assert!(!works && said.contains("=0.0.1") && said.contains("required by package `mine"), "{said}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let home = Home::new().with("there/file", "");
    home.say("new-policy there").refused(2, &["there exists"]);
    home.say("new-policy 9lives").refused(2, &["9lives", "a letter first"]);
    home.say("new-policy Mine").refused(2, &["Mine", "a-z"]);
    home.say("new-policy mine --source there").refused(2, &["there", "--source"]);
    assert_eq!(home.entries("."), ["there"]);
}
