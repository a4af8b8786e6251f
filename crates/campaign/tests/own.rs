//! Priorities of a user's own that are compiled in.

use campaign::arguments::{Form, OutputArguments, RunArguments, SeedArguments, SourceArguments};
use campaign::own::OwnPriority;
use campaign::run::run;
use campaign::{Console, Done, Failure, Stop};
use edm::{Competitor, Priority};
use record::{Keep, Summary};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

const MIXED: &str = "title = 'Two sizes'\ndesign.name = 'edm'\nfabric = { nodes = 4, rate = '100Gbps' }\n\
                     workload = { load = 0.8, size = { table = [['64B', 9], ['4KiB', 1]] } }\nrun.requests = 2_000\n";

/// Nobody who hears anything.
struct Quiet(Stop);

impl Console for Quiet {
    fn say(&self, _: &str) {}

    fn has_bar(&self) -> bool {
        false
    }

    fn event(&self, _: &serde_json::Value) {}

    fn listen(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn stop(&self) -> &Stop {
        &self.0
    }
}

fn arguments(home: &Path, name: &str, text: &str, priority: Option<Arc<dyn OwnPriority>>) -> RunArguments {
    RunArguments {
        source: SourceArguments {
            file: "mixed.toml".into(),
            text: Some(text.into()),
            scale: None,
            settings: Vec::new(),
        },
        seeds: SeedArguments { seed: None, seeds: None },
        output: OutputArguments { out: Some(home.join(name)), force: false },
        long: false,
        wire: false,
        history: false,
        priority,
        spans: Keep::Nothing,
        rows_per_part: 65_536,
        format: Form::Table,
        export: None,
    }
}

fn played(home: &Path, name: &str, priority: Option<Arc<dyn OwnPriority>>) -> Result<Done, Failure> {
    run(&arguments(home, name, MIXED, priority), &Quiet(Stop::new()))
}

fn summary(folder: &Path) -> Summary {
    serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap()
}

/// The program that `rackweave new-policy` writes. Cargo builds it beside the tests.
fn starter(home: &Path, arguments: &[&str]) -> Output {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/policy");
    Command::new(program).args(arguments).current_dir(home).output().unwrap()
}

#[test]
fn the_starter_is_shortest_remaining_first() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("mixed.toml"), MIXED).unwrap();
    let done = starter(home.path(), &["run", "mixed.toml", "--out", "own"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    played(home.path(), "built-in", None).unwrap().end.unwrap();
    let (own, built_in) = (summary(&home.path().join("own")), summary(&home.path().join("built-in")));
    assert_eq!(own.latency_ns, built_in.latency_ns);
    assert_eq!(own.labels["priority"], "NAME");
    assert!(own.warnings.iter().any(|warning| warning.contains("the priority `NAME`")), "{:?}", own.warnings);
}

#[test]
fn the_starter_refuses_what_the_command_line_does() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(starter(home.path(), &["run", "nowhere.toml"]).status.code(), Some(2));
    fs::write(home.path().join("mixed.toml"), MIXED.replace("'edm'", "'dctcp'")).unwrap();
    let done = starter(home.path(), &["run", "mixed.toml"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("the design dctcp takes none"));
}

#[derive(Debug)]
struct Largest;

impl Priority for Largest {
    fn of(&self, demand: &Competitor) -> u32 {
        u32::MAX - demand.remaining
    }
}

impl OwnPriority for Largest {
    fn name(&self) -> String {
        "largest".into()
    }

    fn failure(&self) -> Option<String> {
        None
    }
}

#[test]
fn another_priority_gives_other_results_and_the_same_ones_again() {
    let home = tempfile::tempdir().unwrap();
    let own = |name: &str| {
        played(home.path(), name, Some(Arc::new(Largest))).unwrap().end.unwrap();
        summary(&home.path().join(name))
    };
    let (first, second) = (own("first"), own("second"));
    played(home.path(), "built-in", None).unwrap().end.unwrap();
    assert_eq!(first, second);
    assert_ne!(first.latency_ns, summary(&home.path().join("built-in")).latency_ns);
}

#[derive(Debug)]
struct Failing;

impl Priority for Failing {
    fn of(&self, _: &Competitor) -> u32 {
        0
    }
}

impl OwnPriority for Failing {
    fn name(&self) -> String {
        "failing".into()
    }

    fn failure(&self) -> Option<String> {
        Some("it gave nothing".into())
    }
}

#[test]
fn a_priority_that_fails_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let failure = played(home.path(), "out", Some(Arc::new(Failing))).unwrap_err();
    assert!(matches!(&failure, Failure::BadInput(reason) if reason == "it gave nothing"), "{failure}");
    assert!(!home.path().join("out").exists());
}
