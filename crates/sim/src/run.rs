//! The one door of the simulator: a plan becomes a rig, and is played.

use crate::drive::{Limits, Observer, Outcomes, Played, Rig, WarmUp, play};
use crate::rigs;
use crate::rigs::blox::{BloxRig, BuildError};
use crate::rigs::edm::{Background, EdmRig, EdmRigConfig, Fault, FaultKind};
use crate::rigs::packet::PacketRigConfig;
use crate::rigs::rivals;
use crate::rigs::san::{SanBuildError, SanRig, SanRigConfig, SanSource, price};
use crate::rigs::sdirect::SDirectRig;
use crate::wear;
use base::{Bytes, Seed, Span, Time};
use edm::analysis::maximal_matching;
use hardware::DramConfig;
use record::metric::{self, Meter};
use record::{Discard, Keep, RunIdentity, Sink, SinkError, Transient};
use spec::blox::Blox;
use spec::san::San;
use spec::scalio::Scalio;
use spec::sdirect::SDirect;
use spec::wear::Wear;
use spec::{Design, Messages, Plan, Protocol, Scene};
use std::collections::BTreeMap;
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
    /// Of which requests the spans are kept in their order, for the sink.
    pub spans: Keep,
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
    match plan.warm_up() {
        Some(spec::WarmUp::Auto) => run_twice(plan, options, sink, observer),
        _ => Play { plan, options, sink, observer, warm_up_found: None }.scene(),
    }
}

/// The first run is measured from its beginning and tells how long the warm-up of the second is.
fn run_twice(
    plan: &Plan,
    options: &RunOptions,
    sink: &mut dyn Sink,
    observer: &mut dyn Observer,
) -> Result<Outcomes, RunError> {
    let first = plan.with_warm_up(Span::ZERO);
    let unheard = RunOptions { keep_history: false, spans: Keep::Nothing, ..options.clone() };
    let found = Play { plan: &first, options: &unheard, sink: &mut Discard, observer, warm_up_found: None }.scene()?;
    let (until, trouble) = match found.transient {
        Transient::Until(time) => (time, None),
        Transient::Unknown => {
            (Time::ZERO, Some("too few requests to tell a transient from the rest: all are measured"))
        }
        Transient::MoreThan(half) => (half, Some("the run has not become steady in its first half, which is left out")),
    };
    let span = until.saturating_since(Time::ZERO);
    let second = plan.with_warm_up(span);
    let mut outcomes = Play { plan: &second, options, sink, observer, warm_up_found: Some(span) }.scene()?;
    outcomes.summary.plan_hash = plan.hash();
    outcomes.summary.warnings.extend(trouble.map(|trouble| format!("warm_up = \"auto\": {trouble}")));
    Ok(outcomes)
}

/// What every rig is played with.
struct Play<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    sink: &'a mut dyn Sink,
    observer: &'a mut dyn Observer,
    /// The warm-up that a first run has found.
    warm_up_found: Option<Span>,
}

impl Play<'_> {
    fn scene(self) -> Result<Outcomes, RunError> {
        match &self.plan.scene {
            Scene::Messages(messages) => self.messages(messages),
            Scene::Blox(blox) => self.blox(blox),
            Scene::San(san) => self.san(san),
            Scene::Wear(wear) => self.wear(wear),
            Scene::SDirect(sdirect) => self.sdirect(sdirect),
            Scene::Scalio(scalio) => self.scalio(scalio),
        }
    }

    fn messages(self, messages: &Messages) -> Result<Outcomes, RunError> {
        let (seed, options) = (Seed(self.plan.seed), self.options);
        let rival = match &messages.design {
            Design::Edm(edm) => {
                let rig = EdmRig::new(edm_config(messages, edm, seed, options));
                let plan = self.plan;
                let mut played = self.on(messages, rig)?;
                measure_matching(messages, edm, seed, &mut played.meter);
                return Ok(finish(plan, played));
            }
            Design::Packet(rival) => rival,
        };
        let (plan, rig) = (self.plan, packet_config(messages, rival, options));
        macro_rules! play {
            ($( $(#[$doc:meta])* $rival:ident $key:ident : $file:ident of $config:ident; )*) => {
                match &rival.protocol { $(
                    Protocol::$rival(config) => self.on(messages, rivals::rig::$key(config, &rig, seed.child("fabric"))),
                )* }
            };
        }
        let played = spec::rivals!(play);
        played.map(|played| finish(plan, played))
    }

    fn on(self, messages: &Messages, mut rig: impl Rig) -> Result<Played, RunError> {
        let mut source = Generator::new(&messages.workload, Seed(self.plan.seed));
        let planned_load = messages.load.map(|load| load.busiest_link);
        let limits = Limits { memory: messages.memory, planned_load, ..self.limits(messages.run) };
        self.drive(&mut rig, &mut source, &limits)
    }

    /// Without a node's own memory, and without a load that was asked for.
    fn limits(&self, run: spec::Run) -> Limits {
        Limits {
            warm_up: warm_up(run),
            drain: run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
            first_fault: self.plan.first_fault(),
            spans: self.options.spans,
        }
    }

    fn blox(self, blox: &Blox) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = BloxRig::new(blox, seed, self.options.wire_check)?;
        let mut source: Box<dyn Source> = match &blox.replay {
            Some(replay) => Box::new(Replay::new(replay.config.clone(), (*replay.trace).clone())),
            None => Box::new(workload::storage::Generator::new(&blox.io, seed)),
        };
        let (plan, limits) = (self.plan, self.limits(blox.run));
        let mut played = self.drive(&mut rig, source.as_mut(), &limits)?;
        rig.judge_history(&mut played.meter);
        Ok(finish(plan, played))
    }

    fn sdirect(self, sdirect: &SDirect) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = SDirectRig::new(sdirect, seed, self.options.wire_check)?;
        let mut source = workload::storage::Generator::new(&sdirect.io, seed);
        let (plan, limits) = (self.plan, self.limits(sdirect.run));
        self.drive(&mut rig, &mut source, &limits).map(|played| finish(plan, played))
    }

    fn scalio(self, scalio: &Scalio) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let options = self.options;
        let mut rig = rigs::scalio::build(scalio, seed, options.wire_check, options.keep_history)?;
        let mut source = workload::storage::Generator::new(&scalio.io, seed);
        let (plan, limits) = (self.plan, self.limits(scalio.run));
        let mut played = self.drive(&mut rig, &mut source, &limits)?;
        rig.judge(&mut played.meter);
        Ok(Outcomes { history: rig.take_history(), ..finish(plan, played) })
    }

    fn san(self, san: &San) -> Result<Outcomes, RunError> {
        let seed = Seed(self.plan.seed);
        let mut rig = SanRig::new(SanRigConfig::of(san, seed, self.options.wire_check)?)?;
        let mut source = SanSource::new(&san.io.load, seed);
        let (plan, limits) = (self.plan, self.limits(san.run));
        let mut played = self.drive(&mut rig, source.as_mut(), &limits)?;
        source.measure(&mut played.meter);
        rig.judge_write_order(&mut played.meter);
        rig.judge_pauses(&mut played.meter);
        price(san, &mut played.meter);
        Ok(finish(plan, played))
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

    fn drive(self, rig: &mut impl Rig, source: &mut dyn Source, limits: &Limits) -> Result<Played, RunError> {
        let identity = self.identity();
        let Play { sink, observer, warm_up_found, .. } = self;
        let mut played = play(rig, source, sink, identity, limits, observer)?;
        if let Some(span) = warm_up_found {
            played.meter.put(metric::warm_up_us, span.as_ns_f64() / 1e3);
        }
        Ok(played)
    }
}

/// What a run comes to, with the warnings of its plan first.
fn finish(plan: &Plan, played: Played) -> Outcomes {
    let mut outcomes = played.finish();
    outcomes.summary.warnings.splice(0..0, plan.warnings.iter().cloned());
    outcomes
}

fn warm_up(run: spec::Run) -> WarmUp {
    match run.warm_up {
        spec::WarmUp::Time(span) => WarmUp::Time(span),
        spec::WarmUp::Requests(count) => WarmUp::Requests(count),
        // It is found by a first run, which begins with none.
        spec::WarmUp::Auto => WarmUp::Time(Span::ZERO),
    }
}

/// The time to a maximal matching, if the plan asks for it (EDM, 3.1.3).
fn measure_matching(plan: &Messages, edm: &spec::Edm, seed: Seed, meter: &mut Meter) {
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
        background: plan.background.clone().map(|frames| Background {
            frames,
            preemption: edm.preemption,
            seed: seed.child("background"),
        }),
        wire_check: options.wire_check,
    }
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
    use edm::pcs::multiplex::Policy;
    use spec::BackgroundStream;

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
        let streams = vec![stream("storage", 9_018, 0.25, 4), stream("ip", 1_518, 0.1, 1)];
        let expected = Background {
            frames: spec::Background { egress_queue: Bytes::kib(64), streams },
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

    const COLD: &str = r#"
title = "nothing is underway at first"
fabric = { nodes = 4, rate = "100Gbps" }
design = { name = "edm" }
workload = { load = 0.9 }
run = { requests = 20_000, warm_up = "auto" }
"#;

    fn rows(plan: &Plan) -> (Vec<record::Row>, Outcomes) {
        let mut rows = Vec::new();
        let outcomes = run(plan, &RunOptions::default(), &mut rows, &mut crate::drive::Unobserved);
        (rows, outcomes.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn a_warm_up_that_is_found_is_one_that_could_be_given() {
        let auto = plan(COLD);
        let (found, outcomes) = rows(&auto);
        let us = outcomes.summary.metrics["warm_up_us"];
        assert!(us > 0.0 && outcomes.summary.plan_hash == auto.hash(), "{us}");
        let given = plan(&COLD.replace("auto", &format!("{us}us")));
        let (same, as_given) = rows(&given);
        assert_eq!(found, same);
        assert_eq!(outcomes.summary.latency_ns, as_given.summary.latency_ns);
        assert!(outcomes.summary.counts.measured < 20_000);
    }

    #[test]
    fn a_run_too_short_for_its_warm_up_to_be_found_says_so() {
        let (_, outcomes) = rows(&plan(&COLD.replace("20_000", "50")));
        assert_eq!(outcomes.summary.counts.measured, 50);
        assert!(outcomes.summary.warnings.iter().any(|warning| warning.contains("too few requests to tell")));
    }

    #[test]
    fn a_dead_node_of_eight_takes_a_quarter_of_uniform_messages_with_it() {
        // Its own and those to it: 2 of 8, since nobody sends to itself.
        let dead = r#"
title = "one node dies"
fabric = { nodes = 8, rate = "100Gbps" }
design = { name = "edm" }
workload = { load = 0.3 }
run = { requests = 40_000 }
fault = [{ at = "1us", kind = "node-down", node = 3 }]
"#;
        let (_, outcomes) = rows(&plan(dead));
        let availability = outcomes.summary.availability.expect("something broke");
        assert!((availability.fraction - 0.75).abs() < 0.01, "{availability:?}");
        assert_eq!(outcomes.summary.counts.in_flight_at_end, 0);
    }
}
