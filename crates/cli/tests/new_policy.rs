//! `rackweave new-policy`: the program that it writes. `crates/campaign/tests/own.rs` runs it.

mod support;

use support::Home;

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
    assert!(program.contains("campaign::own::main(\"shortest-first\", Own)"), "{program}");
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
