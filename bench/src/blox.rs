//! RackBlox and its rivals: requests per CPU second of a rack of 4 servers with one P-SSD each,
//! under YCSB A.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use plan::{NoFiles, Plan, parse};
use record::Discard;
use sim::drive::Unobserved;
use sim::{RunOptions, run};

const DESIGNS: [&str; 3] = ["rackblox", "rackblox-software", "vdc"];
const REQUESTS: u32 = 200_000;

/// Builds a plan with proportionally smaller drives, so that they collect garbage: see
/// `experiments/blox/fig9`.
fn plan(design: &str) -> Plan {
    let text = format!(
        "title = \"bench\"\ndesign.name = \"{design}\"\nflash.pages_per_block = 64\nvssd.capacity = \"256MiB\"\n\
         collection.check_period = \"100ms\"\nio.profile = \"ycsb-a\"\nrun.requests = {REQUESTS}\n"
    );
    let experiment = parse("bench", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    experiment.points(None).remove(0).plan
}

/// Returns every design under the same load.
pub fn benchmarks() -> Vec<Group> {
    let contenders = DESIGNS.map(|design| {
        let plan = plan(design);
        let key = match design {
            "rackblox" => "blox.requests_per_cpu_s".to_owned(),
            rival => format!("{rival}.requests_per_cpu_s"),
        };
        let run = move || {
            let seconds = cpu_seconds(|| {
                let outcomes = run(&plan, &RunOptions::default(), &mut Discard, &mut Unobserved);
                outcomes.expect("the rack can be built and nothing is written");
            });
            f64::from(REQUESTS) / seconds
        };
        Contender { key, run: Box::new(run) }
    });
    vec![Group { better: Better::Higher, rounds: 3, contenders: contenders.into() }]
}
