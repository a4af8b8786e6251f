//! Policies of a user's own that are compiled in. The modules are the programs that `rackweave
//! new-policy` writes.

#[path = "../../cli/starters/policy/collect.rs"]
#[allow(dead_code, reason = "its `main` runs in a program of its own")]
mod collect;
#[path = "../../cli/starters/policy/order.rs"]
#[allow(dead_code, reason = "its `main` runs in a program of its own")]
mod order;
#[path = "../../cli/starters/policy/priority.rs"]
#[allow(dead_code, reason = "its `main` runs in a program of its own")]
mod priority;
#[path = "../../cli/starters/policy/replica.rs"]
#[allow(dead_code, reason = "its `main` runs in a program of its own")]
mod replica;

use base::{Decide, Decision};
use blox::{CollectionCheck, QueuedJob, ReadPath, Urgency};
use campaign::arguments::{Form, OutputArguments, RunArguments, SeedArguments, SourceArguments};
use campaign::own::Own;
use campaign::run::run;
use campaign::{Console, Done, Failure, Stop};
use edm::Competitor;
use plan::{NoFiles, Plan};
use record::{Keep, Row, Summary};
use sim::RunOptions;
use sim::drive::Unobserved;
use sim::policies::{Place, Policies};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MIXED: &str = "title = 'Two sizes'\ndesign.name = 'edm'\nfabric = { nodes = 4, rate = '100Gbps' }\n\
                     workload = { load = 0.8, size = { table = [['64B', 9], ['4KiB', 1]] } }\nrun.requests = 2_000\n";

/// Two volumes on drives so small that they collect all the time, and replicas in this rack and in
/// another.
const RACK: &str = r#"
title = "A rack that collects"
design.name = "rackblox"
rack = { servers = 4, clients = 3, network = "fast" }
flash = { pages_per_block = 8 }
vssd = { per_ssd = 1, capacity = "16MiB", write_cache = "256KiB" }
scheduler = { policy = "fifo" }
collection = { check_period = "4ms", idle_threshold = "1ms" }
io = { addresses = "uniform", write_share = 0.5, depth = 16 }
run = { requests = 4_000, warm_up = "0ns" }
"#;

/// A policy whose questions are counted.
#[derive(Debug)]
struct Counted<P>(P, Arc<AtomicU64>);

impl<D: Decision, P: Decide<D>> Decide<D> for Counted<P> {
    fn decide(&self, situation: &D) -> D::Answer {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.decide(situation)
    }
}

fn plan_of(text: &str) -> Plan {
    let experiment = plan::parse("own.toml", text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

fn simulated(plan: &Plan, policies: Policies) -> (Vec<Row>, Summary) {
    let mut rows = Vec::new();
    let options = RunOptions { policies, ..RunOptions::default() };
    let outcomes = sim::run(plan, &options, &mut rows, &mut Unobserved).unwrap();
    (rows, outcomes.summary)
}

/// Plays with a policy and without, and says how often it was asked, and whether every row and
/// every number is the same.
fn compared<D: Place>(text: &str, policy: impl Decide<D> + 'static) -> (u64, bool) {
    let (plan, asked) = (plan_of(text), Arc::new(AtomicU64::new(0)));
    let mut policies = Policies::default();
    *D::of(&mut policies) = Some(Arc::new(Counted(policy, asked.clone())));
    let (own, built_in) = (simulated(&plan, policies), simulated(&plan, Policies::default()));
    (asked.load(Ordering::Relaxed), own == built_in)
}

fn is_built_in<D: Place>(text: &str, policy: impl Decide<D> + 'static) {
    let (asked, is_same) = compared(text, policy);
    assert!(asked > 100, "{asked} questions show nothing");
    assert!(is_same, "the rows of {asked} questions differ from those of the built-in policy");
}

fn differs<D: Place>(text: &str, policy: impl Decide<D> + 'static) {
    let (asked, is_same) = compared(text, policy);
    assert!(asked > 100 && !is_same, "{asked} answers of another kind changed nothing");
}

#[test]
fn the_starter_of_a_priority_is_shortest_remaining_first() {
    is_built_in(MIXED, priority::Mine);
}

#[test]
fn the_starter_of_an_order_is_the_coordinated_fifo() {
    is_built_in(RACK, order::Mine);
}

#[test]
fn the_starter_of_a_replica_is_what_the_switch_does() {
    is_built_in(RACK, replica::Mine);
}

#[test]
fn the_starter_of_a_collection_has_the_thresholds_of_plans() {
    is_built_in(RACK, collect::Mine);
}

/// A server that restarts, and a link that comes back.
const FAULTS: &str = r#"
fault = [
    { at = "5ms", kind = "node-down", node = 0 },
    { at = "20ms", kind = "node-up", node = 0 },
    { at = "30ms", kind = "link-down", node = 1 },
    { at = "35ms", kind = "link-up", node = 1 },
]
"#;

#[test]
fn built_in_policies_are_those_of_users_after_faults_too() {
    let faulty = format!("{RACK}{FAULTS}");
    is_built_in(&faulty, order::Mine);
    is_built_in(&faulty, replica::Mine);
    is_built_in(&faulty, collect::Mine);
}

#[test]
fn the_rivals_of_rackblox_have_queues_and_collect_too() {
    let vdc = RACK.replace("rackblox", "vdc");
    is_built_in(&vdc, By(|_: &QueuedJob| 0));
    is_built_in(&vdc, collect::Mine);
    let software = RACK.replace("rackblox", "rackblox-software");
    is_built_in(&software, order::Mine);
    is_built_in(&software, collect::Mine);
}

/// Answers what a function does.
struct By<F>(F);

impl<F> std::fmt::Debug for By<F> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("By")
    }
}

impl<D: Decision, F: Fn(&D) -> D::Answer + Send + Sync> Decide<D> for By<F> {
    fn decide(&self, situation: &D) -> D::Answer {
        (self.0)(situation)
    }
}

#[test]
fn first_come_first_served_is_an_order_that_never_differs() {
    let plain = RACK.replace("policy = \"fifo\"", "policy = \"fifo\", coordinated = false");
    is_built_in(&plain, By(|_: &QueuedJob| 0));
}

#[test]
fn what_a_policy_answers_decides() {
    differs(MIXED, By(|demand: &Competitor| u32::MAX - demand.remaining));
    differs(RACK, By(|job: &QueuedJob| -(job.order as i64)));
    differs(RACK, By(|read: &ReadPath| read.order.is_multiple_of(2)));
    differs(RACK, By(|unit: &CollectionCheck| (unit.free * 100 < unit.owned * 30).then_some(Urgency::Regular)));
}

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

fn arguments(home: &Path, name: &str, text: &str, own: Own) -> RunArguments {
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
        own,
        spans: Keep::Nothing,
        rows_per_part: 65_536,
        format: Form::Table,
        export: None,
    }
}

fn played(home: &Path, name: &str, text: &str, own: Own) -> Result<Done, Failure> {
    run(&arguments(home, name, text, own), &Quiet(Stop::new()))
}

fn summary(folder: &Path) -> Summary {
    serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).unwrap()).unwrap()
}

/// The program of the starter of a priority. Cargo builds it beside the tests.
fn starter(home: &Path, arguments: &[&str]) -> Output {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/policy");
    Command::new(program).args(arguments).current_dir(home).output().unwrap()
}

#[test]
fn a_starter_is_a_program_that_plays() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("mixed.toml"), MIXED).unwrap();
    let done = starter(home.path(), &["run", "mixed.toml", "--out", "own"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    played(home.path(), "built-in", MIXED, Own::default()).unwrap().end.unwrap();
    let (own, built_in) = (summary(&home.path().join("own")), summary(&home.path().join("built-in")));
    assert_eq!(own.latency_ns, built_in.latency_ns);
    assert_eq!(own.labels["priority"], "NAME");
    assert!(own.warnings.iter().any(|warning| warning.contains("`priority` by `NAME`")), "{:?}", own.warnings);
}

#[test]
fn a_starter_refuses_what_the_command_line_does() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(starter(home.path(), &["run", "nowhere.toml"]).status.code(), Some(2));
    fs::write(home.path().join("mixed.toml"), MIXED.replace("'edm'", "'dctcp'")).unwrap();
    let done = starter(home.path(), &["run", "mixed.toml"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("priority: not decided in the design dctcp; designs: edm"));
}

#[test]
fn policies_for_several_decisions_play_together_and_the_same_again() {
    let home = tempfile::tempdir().unwrap();
    let own = || {
        let own = Own::of("last", By(|job: &QueuedJob| -(job.order as i64)));
        own.and("each", By(|read: &ReadPath| read.order.is_multiple_of(2)))
    };
    let summary = |name| {
        played(home.path(), name, RACK, own()).unwrap().end.unwrap();
        summary(&home.path().join(name))
    };
    let first = summary("first");
    assert_eq!((first.labels["order"].as_str(), first.labels["replica"].as_str()), ("last", "each"));
    assert_eq!(first, summary("second"));
}

#[test]
fn a_policy_that_nothing_asks_is_warned_of() {
    let home = tempfile::tempdir().unwrap();
    let warned = |name, text| {
        let never = Own::of("never", By(|_: &CollectionCheck| None::<Urgency>));
        played(home.path(), name, text, never.and("each", By(|_: &ReadPath| false))).unwrap().end.unwrap();
        let Summary { warnings, .. } = summary(&home.path().join(name));
        warnings.into_iter().filter(|warning| warning.contains("was never asked")).collect::<Vec<_>>()
    };
    assert_eq!(warned("often", RACK), Vec::<String>::new());
    let late = RACK.replace("check_period = \"4ms\"", "check_period = \"30s\"");
    let warning = "`collect` by `never` was never asked: nothing that it decides came up in this run";
    assert_eq!(warned("late", &late), [warning]);
}

#[test]
fn a_policy_of_another_design_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let vdc = RACK.replace("rackblox", "vdc");
    let refused = |text, own| played(home.path(), "out", text, own).unwrap_err().to_string();
    let replica = refused(&vdc, Own::of("each", By(|_: &ReadPath| true)));
    assert_eq!(replica, "replica: not decided in the design vdc; designs: rackblox");
    let order = refused(MIXED, Own::of("any", By(|_: &QueuedJob| 0)));
    assert_eq!(order, "order: not decided in the design edm; designs: rackblox, rackblox-software, vdc");
}

#[test]
fn a_policy_that_panics_is_named_with_its_reason_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let refused = |text, own| match played(home.path(), "out", text, own).unwrap_err() {
        Failure::BadInput(reason) => reason,
        failure => panic!("{failure}"),
    };
    let nowhere = |demand: &Competitor| [1_u32; 3][demand.source.0 as usize % 3 + 3];
    let reason = refused(MIXED, Own::of("nowhere", By(nowhere)));
    assert!(reason.starts_with("`priority` by `nowhere` panicked for Competitor { source: "), "{reason}");
    assert!(reason.contains("index out of bounds: the len is 3"), "{reason}");
    let reason = refused(RACK, Own::of("unsure", By(|_: &CollectionCheck| -> Option<Urgency> { panic!("which?") })));
    assert!(reason.starts_with("`collect` by `unsure` panicked for CollectionCheck { server: "), "{reason}");
    assert!(reason.ends_with(": which?"), "{reason}");
    assert!(!home.path().join("out").exists());
}

#[test]
fn a_policy_that_reports_a_failure_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut own = Own::default();
    let failed = own.failed().clone();
    let fails = move |_: &Competitor| {
        failed.report(|| "it gave nothing".into());
        0
    };
    own.choose("failing".into(), Arc::new(By(fails)));
    let failure = played(home.path(), "out", MIXED, own).unwrap_err();
    assert!(matches!(&failure, Failure::BadInput(reason) if reason == "it gave nothing"), "{failure}");
    assert!(!home.path().join("out").exists());
}

/// Not a test: the program that the next test starts, if the environment names its experiment.
#[test]
#[ignore = "the program of another test"]
fn a_program_whose_policy_does_not_end() {
    let Ok(file) = std::env::var("ENDLESS_EXPERIMENT") else { return };
    let endless = |demand: &Competitor| loop {
        std::hint::black_box(demand);
    };
    let arguments = ["program", "run", &file, "--out", "out", "--seeds", "1..2", "--policy-timeout", "1"];
    campaign::own::play(Own::of("endless", By(endless)), arguments.map(Into::into));
}

#[test]
fn a_call_that_does_not_end_ends_the_program_with_its_name_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("mixed.toml"), MIXED).unwrap();
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_program_whose_policy_does_not_end", "--nocapture"])
        .env("ENDLESS_EXPERIMENT", home.path().join("mixed.toml"))
        .current_dir(home.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("`priority` by `endless`: the call for Competitor { source: "), "{said}");
    assert!(said.contains("has not ended for 1 s; --policy-timeout allows more"), "{said}");
    assert!(!home.path().join("out").exists());
}
