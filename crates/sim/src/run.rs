//! The one door of the simulator: a plan becomes a rig, and is played.

use crate::drive::{Limits, Observer, Outcomes, Rig, WarmUp, drive};
use crate::rigs;
use crate::rigs::blox::{BloxRig, BuildError};
use crate::rigs::edm::{Background, BackgroundStream, EdmRig, EdmRigConfig, Fault, FaultKind};
use crate::rigs::packet::{self, PacketRigConfig};
use crate::rigs::rivals;
use crate::rigs::san::{SanBuildError, SanRig, SanRigConfig, price};
use crate::rigs::sdirect::SDirectRig;
use crate::wear;
use base::{Bytes, Seed, Span};
use edm::analysis::maximal_matching;
use edm::pcs::multiplex::Policy;
use hardware::DramConfig;
use record::{RunIdentity, Sink, SinkError};
use spec::blox::Blox;
use spec::san::{San, SanLoad};
use spec::scalio::Scalio;
use spec::sdirect::SDirect;
use spec::wear::Wear;
use spec::{Design, Messages, Plan, PreemptionName, Protocol, Scene};
use std::collections::BTreeMap;
use transport::framing::Framing;
use workload::block_trace::Replay;
use workload::{Generator, Source};

/// How a plan is run, beside what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The program's version, for the summary.
    pub version: String,
    /// Where the point lies in its sweep, for the summary.
    pub labels: BTreeMap<String, String>,
    /// Whether every message is encoded and decoded on its way.
    pub wire_check: bool,
    /// Whether the history of a key-value store is kept, and judged whatever the plan says.
    pub keep_history: bool,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The sink takes no more rows. Rows taken so far stay as they are.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A part of the plan's rack refuses its numbers.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A part of the plan's storage network refuses its numbers.
    #[error(transparent)]
    San(#[from] SanBuildError),
    /// The model of wear refuses the plan's numbers.
    #[error(transparent)]
    Wear(#[from] blox::WearError),
}

/// Runs `plan`; its rows go to `sink`, in the order in which requests end.
///
/// # Errors
/// When the rack cannot be built, or the sink takes no more rows.
pub fn run(
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn Sink,
    observer: &mut dyn Observer,
) -> Result<Outcomes, RunError> {
    let play = Play { plan, options, sink, observer };
    match &plan.scene {
        Scene::Messages(messages) => play.messages(messages),
        Scene::Blox(blox) => play.blox(blox),
        Scene::San(san) => play.san(san),
        Scene::Wear(wear) => play.wear(wear),
        Scene::SDirect(sdirect) => play.sdirect(sdirect),
        Scene::Scalio(scalio) => play.scalio(scalio),
    }
}

/// What every rig is played with.
struct Play<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    sink: &'a mut dyn Sink,
    observer: &'a mut dyn Observer,
}

impl Play<'_> {
    fn messages(self, messages: &Messages) -> Result<Outcomes, RunError> {
        let (seed, options) = (Seed(self.plan.seed), self.options);
        let rival = match &messages.design {
            Design::Edm(edm) => {
                let rig = EdmRig::new(edm_config(messages, edm, seed, options));
                let mut outcomes = self.on(messages, rig)?;
                measure_matching(messages, edm, seed, &mut outcomes.summary.extra);
                return Ok(outcomes);
            }
            Design::Packet(rival) => rival,
        };
        let rig = packet_config(messages, rival, options);
        match &rival.protocol {
            Protocol::Dctcp(config) => self.on(messages, packet::dctcp(config, &rig)),
            Protocol::Dcqcn(config) => self.on(messages, packet::dcqcn(config, &rig, seed.child("fabric"))),
            Protocol::Pfabric(config) => self.on(messages, packet::pfabric(config, &rig)),
            Protocol::ReceiverDriven(config) => self.on(messages, rivals::receiver_driven(config, &rig)),
            Protocol::Cxl(config) => self.on(messages, rivals::credit_based(config, &rig)),
            Protocol::Fastpass(config) => self.on(messages, rivals::fastpass(config, &rig)),
            Protocol::RawEthernet(config) => self.on(messages, packet::uncontrolled(config, Framing::Raw, &rig)),
            Protocol::Rocev2(config) => self.on(messages, packet::uncontrolled(config, Framing::Roce, &rig)),
            Protocol::HardwareTcp(config) => self.on(messages, packet::uncontrolled(config, Framing::Tcp, &rig)),
        }
    }

    fn on(self, messages: &Messages, mut rig: impl Rig) -> Result<Outcomes, RunError> {
        let mut source = Generator::new(&messages.workload, Seed(self.plan.seed));
        let limits = Limits {
            warm_up: warm_up(messages.run),
            drain: messages.run.drain_limit,
            memory: messages.memory,
            planned_load: messages.load.map(|load| load.busiest_link),
        };
        self.drive(&mut rig, &mut source, &limits)
    }

    fn blox(self, blox: &Blox) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = BloxRig::new(blox, seed, self.options.wire_check)?;
        let mut source: Box<dyn Source> = match &blox.replay {
            Some(replay) => Box::new(Replay::new(replay.config.clone(), (*replay.trace).clone())),
            None => Box::new(workload::storage::Generator::new(&blox.io, seed)),
        };
        let limits = Limits {
            warm_up: warm_up(blox.run),
            drain: blox.run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
        };
        let mut outcomes = self.drive(&mut rig, source.as_mut(), &limits)?;
        rig.report_channels(&mut outcomes.summary);
        rig.judge_history(&mut outcomes.summary);
        Ok(outcomes)
    }

    fn sdirect(self, sdirect: &SDirect) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = SDirectRig::new(sdirect, seed, self.options.wire_check)?;
        let mut source = workload::storage::Generator::new(&sdirect.io, seed);
        let limits = Limits {
            warm_up: warm_up(sdirect.run),
            drain: sdirect.run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
        };
        self.drive(&mut rig, &mut source, &limits)
    }

    fn scalio(self, scalio: &Scalio) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let options = self.options;
        let mut rig = rigs::scalio::build(scalio, seed, options.wire_check, options.keep_history)?;
        let mut source = workload::storage::Generator::new(&scalio.io, seed);
        let limits = Limits {
            warm_up: warm_up(scalio.run),
            drain: scalio.run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
        };
        let mut outcomes = self.drive(&mut rig, &mut source, &limits)?;
        rig.judge(&mut outcomes.summary);
        outcomes.history = rig.take_history();
        Ok(outcomes)
    }

    fn san(self, san: &San) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = SanRig::new(SanRigConfig::of(san, seed, self.options.wire_check)?)?;
        let mut source = san_source(&san.io.load, seed);
        let limits = Limits {
            warm_up: warm_up(san.run),
            drain: san.run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
        };
        let mut outcomes = self.drive(&mut rig, source.as_mut(), &limits)?;
        rig.judge_write_order(&mut outcomes.summary);
        price(san, &mut outcomes.summary);
        Ok(outcomes)
    }

    /// Without requests: the sink gets no rows.
    fn wear(self, wear: &Wear) -> Result<Outcomes, RunError> {
        let mut outcomes = wear::play(wear, self.identity(), self.observer)?;
        outcomes.summary.warnings.splice(0..0, self.plan.warnings.iter().cloned());
        Ok(outcomes)
    }

    fn identity(&self) -> RunIdentity {
        RunIdentity {
            version: self.options.version.clone(),
            plan_hash: self.plan.hash(),
            design: self.plan.design().word(),
            seed: self.plan.seed,
            labels: self.options.labels.clone(),
        }
    }

    fn drive(self, rig: &mut impl Rig, source: &mut dyn Source, limits: &Limits) -> Result<Outcomes, RunError> {
        let identity = self.identity();
        let Play { plan, sink, observer, .. } = self;
        let mut outcomes = drive(rig, source, sink, identity, limits, observer)?;
        outcomes.summary.warnings.splice(0..0, plan.warnings.iter().cloned());
        Ok(outcomes)
    }
}

/// Who asks a storage network.
fn san_source(load: &SanLoad, seed: Seed) -> Box<dyn Source> {
    match load {
        SanLoad::Requests { config, .. } => Box::new(workload::storage::Generator::new(config, seed)),
        SanLoad::Mixed { play, .. } | SanLoad::Jobs { play, .. } => Box::new(workload::fio::Player::new(play, seed)),
        SanLoad::Trace(replay) => Box::new(Replay::new(replay.config.clone(), (*replay.trace).clone())),
        SanLoad::Imitation { config, .. } => Box::new(workload::imitation::Imitator::new(config.clone(), seed)),
        SanLoad::Stores(config) => Box::new(workload::lsm::Lsm::new(config, seed)),
    }
}

fn warm_up(run: spec::Run) -> WarmUp {
    match run.warm_up {
        spec::WarmUp::Time(span) => WarmUp::Time(span),
        spec::WarmUp::Requests(count) => WarmUp::Requests(count),
    }
}

/// The time to a maximal matching, if the plan asks for it (EDM, 3.1.3).
fn measure_matching(plan: &Messages, edm: &spec::Edm, seed: Seed, extra: &mut BTreeMap<String, f64>) {
    if edm.matching_trials == 0 {
        return;
    }
    let place = edm::Place { nodes: plan.fabric.nodes, rate: plan.fabric.rate };
    let found = maximal_matching(&edm.config, place, edm.matching_trials, seed.child("analysis"));
    extra.insert("matching_iterations_to_maximal".into(), found.iterations);
    extra.insert("matching_iterations_to_99_percent".into(), found.iterations_to_99_percent);
    extra.insert("matching_latency_ns".into(), found.latency_ns);
    extra.insert("matching_latency_to_99_percent_ns".into(), found.latency_to_99_percent_ns);
    extra.insert("matching_matched_fraction".into(), found.matched);
}

fn edm_config(plan: &Messages, edm: &spec::Edm, seed: Seed, options: &RunOptions) -> EdmRigConfig {
    EdmRigConfig {
        edm: edm.config,
        nodes: plan.fabric.nodes,
        rate: plan.fabric.rate,
        propagation: plan.fabric.propagation,
        transceiver: plan.fabric.transceiver,
        memory: plan.memory,
        redundant: edm.redundant,
        faults: plan.faults.iter().filter_map(fault).collect(),
        background: plan.background.as_ref().map(|frames| background(frames, edm.preemption, seed)),
        wire_check: options.wire_check,
    }
}

fn background(frames: &spec::Background, preemption: PreemptionName, seed: Seed) -> Background {
    Background {
        streams: frames.streams.iter().map(background_stream).collect(),
        preemption: match preemption {
            PreemptionName::Fair => Policy::Fair,
            PreemptionName::Strict => Policy::Strict,
            PreemptionName::None => Policy::None,
        },
        egress_queue: frames.egress_queue,
        seed: seed.child("background"),
    }
}

fn background_stream(stream: &spec::BackgroundStream) -> BackgroundStream {
    let spec::BackgroundStream { name, frame, load, burst_frames } = stream.clone();
    BackgroundStream { name, frame, load, burst_frames }
}

/// Corruption is noticed by the scrambler, and the link disabled: to the network it is a dead link (EDM, 3.3).
fn fault(fault: &spec::Fault) -> Option<Fault> {
    let kind = match fault.kind {
        spec::FaultKind::LinkDown { node, .. } | spec::FaultKind::LinkCorrupt { node, .. } => FaultKind::LinkDown(node),
        spec::FaultKind::SwitchDown { switch } => FaultKind::SwitchDown(switch as usize),
        spec::FaultKind::NodeDown { node } => FaultKind::NodeDown(node),
        // `spec` refuses these here.
        spec::FaultKind::LinkUp { .. } | spec::FaultKind::SwitchUp { .. } | spec::FaultKind::NodeUp { .. } => {
            return None;
        }
    };
    Some(Fault { at: fault.at, kind })
}

fn packet_config(plan: &Messages, rival: &spec::Packet, options: &RunOptions) -> PacketRigConfig {
    PacketRigConfig {
        nodes: plan.fabric.nodes,
        rate: plan.fabric.rate,
        propagation: plan.fabric.propagation,
        stack: rival.stack,
        read_request_bytes: Bytes::new(spec::READ_REQUEST.count()),
        memory: plan.memory,
        cut_through: false,
        wire_check: options.wire_check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            spec::parse("shared.toml", text, &spec::NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        experiment.points(None).remove(0).plan
    }

    fn rig_of(plan: &Plan) -> EdmRigConfig {
        let messages = plan.messages().expect("EDM carries messages");
        let Design::Edm(edm) = &messages.design else { panic!("{:?}", messages.design) };
        edm_config(messages, edm, Seed(plan.seed), &RunOptions::default())
    }

    #[test]
    fn a_background_reaches_the_rig_as_it_is_planned() {
        let stream = |name: &str, frame: u64, load: f64, burst_frames: u32| BackgroundStream {
            name: name.into(),
            frame: Bytes::new(frame),
            load,
            burst_frames,
        };
        let expected = Background {
            streams: vec![stream("storage", 9_018, 0.25, 4), stream("ip", 1_518, 0.1, 1)],
            preemption: Policy::Strict,
            egress_queue: Bytes::kib(64),
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
