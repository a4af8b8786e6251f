//! The documents match the program: every file of a live target would be served, and every command
//! exists with its options.

use crate::support::Home;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The fenced blocks of TOML.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[test]
fn every_example_is_a_target_by_itself() {
    let home = Home::new()
        .with("host1.secret", "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:\n")
        .with("host1.key", "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:\n");
    let mut found = 0;
    for name in ["docs/guide/live-target.md", "docs/reference/target.md"] {
        for example in examples(&fs::read_to_string(document(name)).expect("it is there")) {
            found += 1;
            // Secrets and addresses of this machine in the place of the reader's.
            let here = example.replace("/etc/rackweave/", "").replace("10.0.0.1:4420", "127.0.0.1:0");
            let here = here.replace("10.0.1.1:4420", "127.0.0.2:0");
            fs::write(home.path("example.toml"), &here).expect("the home can be written");
            let checked = home.say("target --check --config example.toml");
            if example.contains("tls = \"required\"") && !cfg!(feature = "tls") {
                checked.refused(2, &["built without TLS"]);
            } else {
                assert_eq!(checked.code, Some(0), "{name}:\n{example}\n{checked:?}");
            }
        }
    }
    assert!(found >= 2, "{found} examples were found");
}

#[test]
fn the_table_of_claims_and_its_counts_are_those_of_the_shipped_results() {
    let home = Home::new();
    let (page, path) = (home.run("claims --markdown"), document("docs/fidelity.md"));
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).expect("the table can be written");
    }
    let stale = "docs/fidelity.md is stale: BLESS=1 cargo test --workspace documents";
    assert!(fs::read_to_string(&path).is_ok_and(|shipped| shipped == page), "{stale}");
    let told = home.run("claims");
    let tally = told.lines().find(|line| line.contains(" claims: ")).expect("a count");
    for name in ["README.md", "docs/reference/fidelity.md"] {
        let text = fs::read_to_string(document(name)).expect("it is there").replace('\n', " ");
        assert!(text.contains(tally), "{name} does not say: {tally}");
    }
}

/// Appends every Markdown file below `folder`.
fn pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).expect("a folder of documents").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            self::pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// Returns the arguments of every command of `rackweave` in a page: code spans, and lines of code.
fn commands(text: &str) -> Vec<String> {
    let lines = text.replace("\\\n", " ");
    let line = |line: &str| {
        line.trim_start().trim_start_matches("target/release/").strip_prefix("rackweave ").map(str::to_owned)
    };
    let spans = text.split('`').skip(1).step_by(2).filter_map(line);
    lines.lines().filter_map(line).chain(spans).collect()
}

#[test]
fn every_command_exists_with_its_options() {
    let home = Home::new();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let mut all = vec![document("README.md"), document("CONTRIBUTING.md")];
    pages(&document("docs"), &mut all);
    pages(&document("experiments"), &mut all);
    let mut found = 0;
    for page in all {
        for command in commands(&fs::read_to_string(&page).expect("a page")) {
            // Comments and further commands of the line.
            let own =
                command.split(" #").next().unwrap_or_default().split([';', '|', '&', ')']).next().unwrap_or_default();
            let name = own.split_whitespace().next().unwrap_or_default();
            if name.is_empty() || name.starts_with('-') {
                continue;
            }
            // A command of `disk` stands behind the address, and has options of its own.
            let (command, options) =
                own.split_once(" --").map_or((own, ""), |(command, _)| (command, &own[command.len()..]));
            let place = format!("{}: rackweave {own}", page.display());
            let mut knows = |command: &str, option: &str| {
                let help = helps.entry(command.to_owned()).or_insert_with(|| {
                    let said = home.say(&format!("{command} --help"));
                    assert_eq!(said.code, Some(0), "{place}: {}", said.err);
                    said.out
                });
                option.is_empty() || help.split([' ', '\n', ',', '[']).any(|word| word == option)
            };
            assert!(knows(name, ""));
            for option in options.split_whitespace().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or_default();
                assert!(knows(name, option) || knows(command, option), "{place}: there is no {option}");
            }
            found += 1;
        }
    }
    assert!(found > 60, "only {found} commands were found");
}

#[test]
fn systemd_reads_the_units_without_a_complaint() {
    for name in ["rackweave-target.service", "rackweave-kv.service", "rackweave-jbof.service"] {
        let unit = fs::read_to_string(document("examples/systemd").join(name)).expect("it is there");
        let unit = unit.replace("/usr/local/bin/rackweave", env!("CARGO_BIN_EXE_rackweave"));
        let home = Home::new().with(name, &unit.replace("#LoadCredential", "LoadCredential"));
        let mut analyze = std::process::Command::new("systemd-analyze");
        match analyze.args(["verify", "--man=no"]).arg(home.path(name)).output() {
            Err(error) => println!("SKIPPED: there is no systemd-analyze: {error}"),
            Ok(verified) => {
                let told = String::from_utf8_lossy(&verified.stderr);
                // It may complain of other units of this machine.
                assert!(verified.status.success() && !told.contains(name), "{told}");
            }
        }
    }
}

/// README.md calls OpenSSL's headers optional: then no build of `make test` may ask for them.
#[test]
fn make_test_builds_nothing_with_tls_where_it_cannot() {
    let mut make = std::process::Command::new("make");
    make.args(["--dry-run", "test", "TLS=--no-default-features"]).current_dir(document("")).env_remove("MAKEFLAGS");
    let said = String::from_utf8(make.output().expect("make is there").stdout).expect("text");
    let builds =
        |line: &&str| ["cargo clippy", "cargo test", "cargo doc", "test-python"].iter().any(|word| line.contains(word));
    let lines: Vec<_> = said.lines().filter(builds).collect();
    assert!(lines.len() >= 4, "{said}");
    lines.iter().for_each(|line| assert!(line.contains("--no-default-features"), "{line}"));
}
