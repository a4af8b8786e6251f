//! Scalio at the paper's size: 20 million keys, 160 clients, seven SSDs. Measures operations per
//! CPU second against LEED on the same keys, and the peak memory.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use base::{Seed, Span};
use hardware::DramConfig;
use plan::scalio::Scalio;
use plan::{NoFiles, Scene, parse};
use record::{Discard, RunIdentity};
use sim::drive::{Limits, Unobserved, WarmUp, drive};

const REQUESTS: u32 = 1_000_000;

fn plan(design: &str) -> Scalio {
    let text =
        format!("title = \"bench\"\ndesign.name = \"{design}\"\nio.profile = \"ycsb-b\"\nrun.requests = {REQUESTS}\n");
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    match experiment.points(None).remove(0).plan.scene {
        Scene::Scalio(scalio) => *scalio,
        other => panic!("{other:?} is no store"),
    }
}

/// Runs the load on a preloaded, warm store. Returns the CPU seconds of the load alone.
fn play(plan: &Scalio) -> f64 {
    let mut rig = sim::rigs::scalio::build(plan, Seed(1), false, false).expect("the rack can be built");
    let mut source = workload::storage::Generator::new(&plan.io, Seed(1));
    let memory = DramConfig { latency: Span::ZERO, bandwidth: None };
    let limits = Limits {
        warm_up: WarmUp::Requests(0),
        drain: Span::secs(1),
        memory,
        planned_load: None,
        first_fault: None,
        spans: record::Keep::Nothing,
        series: None,
    };
    let identity = RunIdentity {
        version: String::new(),
        plan_hash: String::new(),
        design: plan.design.word(),
        seed: 1,
        labels: Default::default(),
    };
    cpu_seconds(|| {
        let outcomes = drive(&mut rig, &mut source, &mut Discard, identity, &limits, &mut Unobserved);
        let finished = outcomes.expect("nothing refuses rows").summary.counts.finished;
        assert_eq!(finished, u64::from(REQUESTS), "every operation is done");
    })
}

/// Returns operations per CPU second.
pub fn benchmarks() -> Vec<Group> {
    let contenders = [("scalio", "scalio.operations_per_cpu_s"), ("leed", "scalio_leed.operations_per_cpu_s")];
    let contenders = contenders.map(|(design, key)| {
        let plan = plan(design);
        Contender { key: key.to_owned(), run: Box::new(move || f64::from(REQUESTS) / play(&plan)) }
    });
    vec![Group { better: Better::Higher, rounds: 3, contenders: contenders.into() }]
}

/// Runs Scalio's load, to measure its memory.
pub fn memory_child() {
    play(&plan("scalio"));
}
