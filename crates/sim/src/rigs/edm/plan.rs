//! EDM's scene: from a plan to a rig, and the analysis that the plan asks for.

use super::{Background, EdmRig, EdmRigConfig, Fault, FaultKind};
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::Stage;
use base::Seed;
use edm::analysis::maximal_matching;
use plan::Messages;
use record::metric::{self, Meter};

/// Plays EDM under the load of `plan`.
pub(crate) fn play(plan: &Messages, edm: &plan::Edm, stage: Stage<'_>) -> Result<Played, RunError> {
    let (seed, wire_check) = (stage.seed(), stage.options.wire_check);
    let rig = EdmRig::new(EdmRigConfig::of(plan, edm, seed, wire_check));
    let mut rig = rig.with_remote_access(plan.memory.remote).with_priority(stage.options.policies.edm.clone());
    let mut played = stage.play_messages(plan, &mut rig)?;
    measure_matching(plan, edm, seed, &mut played.meter);
    Ok(played)
}

impl EdmRigConfig {
    /// The network of `plan`.
    pub fn of(plan: &Messages, edm: &plan::Edm, seed: Seed, wire_check: bool) -> EdmRigConfig {
        EdmRigConfig {
            edm: edm.config,
            nodes: plan.fabric.nodes,
            rate: plan.fabric.rate,
            propagation: plan.fabric.propagation,
            transceiver: plan.fabric.transceiver,
            memory: plan.memory.dram,
            redundant: edm.redundant,
            faults: plan.faults.iter().filter_map(Fault::of).collect(),
            background: plan.background.clone().map(|frames| Background {
                frames,
                preemption: edm.preemption,
                seed: seed.child("background"),
            }),
            wire_check,
        }
    }
}

impl Fault {
    /// A corrupt link counts as dead: its scrambler notices and disables it (EDM, 3.3).
    fn of(fault: &plan::Fault) -> Option<Fault> {
        use plan::FaultKind as Planned;
        let kind = match fault.kind {
            Planned::LinkDown { node, .. } | Planned::LinkCorrupt { node, .. } => FaultKind::LinkDown(node),
            Planned::SwitchDown { switch } => FaultKind::SwitchDown(switch as usize),
            Planned::NodeDown { node } => FaultKind::NodeDown(node),
            // `plan` rejects these here.
            Planned::LinkUp { .. } | Planned::SwitchUp | Planned::NodeUp { .. } => return None,
        };
        Some(Fault { at: fault.at, kind })
    }
}

/// Measures the time to a maximal matching, if the plan asks for it (EDM, 3.1.3).
fn measure_matching(plan: &Messages, edm: &plan::Edm, seed: Seed, meter: &mut Meter) {
    if edm.matching_trials == 0 {
        return;
    }
    let place = edm::Place { nodes: plan.fabric.nodes, rate: plan.fabric.rate };
    let found = maximal_matching(&edm.config, place, edm.matching_trials, seed.child("analysis"));
    meter.put(metric::matching_iterations_to_maximal, found.iterations);
    meter.put(metric::matching_iterations_to_99_percent, found.iterations_to_99_percent);
    meter.put(metric::matching_latency_ns, found.latency_ns);
    meter.put(metric::matching_latency_to_99_percent_ns, found.latency_to_99_percent_ns);
    meter.put(metric::matching_matched_fraction, found.matched);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;
    use edm::pcs::multiplex::Policy;
    use plan::{BackgroundStream, Design, Plan};

    const SHARED: &str = r#"
title = "shared links"
seed = 3
fabric = { nodes = 4, rate = "100Gbps" }
design = { name = "edm", edm.preemption = "strict" }
workload = { load = 0.2 }
run = { requests = 300 }
[background]
egress_queue = "64KiB"
[[background.stream]]
name = "storage"
frame = "9018B"
load = 0.25
burst_frames = 4
[[background.stream]]
name = "ip"
load = 0.1
"#;

    fn plan(text: &str) -> Plan {
        let experiment =
            plan::parse("shared.toml", text, &plan::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        experiment.points(None).remove(0).plan
    }

    fn rig_of(plan: &Plan) -> EdmRigConfig {
        let messages = plan.messages().expect("EDM carries messages");
        let Design::Edm(edm) = &messages.design else { panic!("{:?}", messages.design) };
        EdmRigConfig::of(messages, edm, Seed(plan.seed), false)
    }

    #[test]
    fn a_background_reaches_the_rig_as_it_is_planned() {
        let stream = |name: &str, frame: u64, load: f64, burst_frames: u32| BackgroundStream {
            name: name.into(),
            frame: Bytes::new(frame),
            load,
            burst_frames,
        };
        let streams = vec![stream("storage", 9_018, 0.25, 4), stream("ip", 1_518, 0.1, 1)];
        let expected = Background {
            frames: plan::Background { egress_queue: Bytes::kib(64), streams },
            preemption: Policy::Strict,
            seed: Seed(3).child("background"),
        };
        assert_eq!(rig_of(&plan(SHARED)).background, Some(expected));
    }

    #[test]
    fn without_a_background_links_are_plain() {
        let (without, _) = SHARED.split_once("[background]").expect("the text has one");
        assert_eq!(rig_of(&plan(without)).background, None);
    }

    #[test]
    fn each_preemption_of_a_plan_is_a_policy_of_the_line() {
        for (name, policy) in [("fair", Policy::Fair), ("strict", Policy::Strict), ("none", Policy::None)] {
            let rig = rig_of(&plan(&SHARED.replace("strict", name)));
            assert_eq!(rig.background.map(|background| background.preemption), Some(policy));
        }
    }
}
