//! EDM and its rivals: messages and events per CPU second, the Hadoop run, growth with ports,
//! memory of a long run.
//!
//! For comparison: the authors' own simulator, optimised, finishes 8.8 k messages of 64 B per CPU
//! second at load 0.8 with 144 nodes. It takes 100 CPU seconds for 2,000 messages of the Hadoop
//! distribution (measured once on such a machine; not run here).

use crate::harness::{Better, Contender, Group, cpu_seconds};
use plan::{NoFiles, Plan, parse};
use record::Discard;
use sim::drive::Unobserved;
use sim::{RunOptions, run};

const DESIGNS: [&str; 7] = ["edm", "receiver-driven", "pfabric", "dcqcn", "dctcp", "cxl", "fastpass"];
const MEMORY_MESSAGES: u64 = 10_000_000;

/// Builds a plan of 64 B reads and writes, all to all, or of the messages of an application.
fn plan(design: &str, nodes: u32, load: f64, size: &str, requests: u64) -> Plan {
    let text = format!(
        "title = \"bench\"\nfabric = {{ nodes = {nodes}, rate = \"100Gbps\" }}\ndesign.name = \"{design}\"\n\
         workload = {{ load = {load}, size = {size} }}\nrun = {{ requests = {requests}, drain_limit = \"10s\" }}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

/// Runs a plan. Returns its CPU seconds and its number of events.
fn play(plan: &Plan) -> (f64, u64) {
    let mut events = 0;
    let seconds = cpu_seconds(|| {
        let outcomes = run(plan, &RunOptions::default(), &mut Discard, &mut Unobserved);
        events = outcomes.expect("nothing is written, so nothing fails").summary.events;
    });
    (seconds, events)
}

fn contender(key: String, run: impl FnMut() -> f64 + 'static) -> Contender {
    Contender { key, run: Box::new(run) }
}

/// Returns small messages and the Hadoop run, EDM against its rivals; EDM at 144 and 512 nodes.
pub fn benchmarks() -> Vec<Group> {
    let per_design = |suffix: &str, figure: fn(&Plan) -> f64, size: &'static str, load: f64, requests: u64| {
        let contenders = DESIGNS.iter().map(|design| {
            let plan = plan(design, 144, load, size, requests);
            contender(format!("{design}.{suffix}"), move || figure(&plan))
        });
        contenders.collect::<Vec<_>>()
    };
    let small = |figure: fn(&Plan) -> f64, suffix| per_design(suffix, figure, "\"64B\"", 0.8, 200_000);
    let hadoop = per_design("hadoop_cpu_s", |plan| play(plan).0, "{ profile = \"hadoop\" }", 0.4, 2_000);
    vec![
        Group { better: Better::Higher, rounds: 3, contenders: small(messages_a_second, "messages_per_cpu_s") },
        Group { better: Better::Higher, rounds: 1, contenders: small(events_a_second, "events_per_cpu_s") },
        Group { better: Better::Lower, rounds: 2, contenders: hadoop },
        Group { better: Better::Lower, rounds: 3, contenders: growth() },
    ]
}

fn messages_a_second(plan: &Plan) -> f64 {
    plan.requests().expect("every plan here has a limit") as f64 / play(plan).0
}

fn events_a_second(plan: &Plan) -> f64 {
    let (seconds, events) = play(plan);
    events as f64 / seconds
}

/// Returns CPU nanoseconds per message by number of nodes, in steady state: the difference of a
/// long and a short run excludes the construction of the rack.
fn growth() -> Vec<Contender> {
    let by_nodes = |nodes: u32| {
        let (short, long) = (50_000, 450_000);
        let plans = [short, long].map(|requests| plan("edm", nodes, 0.8, "\"64B\"", requests));
        let cost = move || (play(&plans[1]).0 - play(&plans[0]).0) * 1e9 / (long - short) as f64;
        contender(format!("edm.cpu_ns_per_message.{nodes}"), cost)
    };
    vec![by_nodes(144), by_nodes(512)]
}

/// Simulates ten million messages.
pub fn memory_child() {
    play(&plan("edm", 144, 0.8, "\"64B\"", MEMORY_MESSAGES));
}

/// Simulates the rival with the most state per pair, for a million messages to a million of 16.8
/// million pairs.
pub fn rivals_memory_child() {
    play(&plan("dctcp", 4096, 0.5, "\"64B\"", 1_000_000));
}
