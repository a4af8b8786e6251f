//! The sender-driven rivals and the stacks without control in their rigs, each with the closed form of its lone request.

use super::{Departures, Pacing, PacketRig, PacketRigConfig, Path, Unloaded, WORD};
use base::{Bytes, NodeId, Operation, Seed, Span};
use hardware::DramConfig;
use transport::config::{Dcqcn, Dctcp, Pfabric, RateControl};
use transport::cost::{MODIFY_REQUEST, Part, Train};
use transport::framing::{Framing, pause_wire, roce_wire};
use transport::uncontrolled::Uncontrolled;
use transport::{dcqcn, dctcp, pfabric, uncontrolled};

/// DCTCP hosts around an ECN switch.
pub fn dctcp(config: &Dctcp, rig: &PacketRigConfig) -> PacketRig<dctcp::Host, dctcp::Switch> {
    let hosts = nodes(rig).map(|node| dctcp::host(config, node)).collect();
    let design = *config;
    let pacing = Pacing::SlowStart(u64::from(config.initial_window));
    let unloaded = closed_form(rig, pacing, move |_, bytes| dctcp::train(&design, bytes));
    PacketRig::new(rig, Framing::Tcp, hosts, dctcp::switch(config, rig.nodes), unloaded)
}

/// RoCEv2 NICs with DCQCN around a switch with priority flow control. Its random marks follow from `seed`.
pub fn dcqcn(config: &Dcqcn, rig: &PacketRigConfig, seed: Seed) -> PacketRig<dcqcn::Host, dcqcn::Switch> {
    let hosts = nodes(rig).map(|node| dcqcn::host(config, node, rig.rate)).collect();
    let switch = dcqcn::switch(config, rig.nodes, headroom(config, rig), seed.stream("switch/marks"));
    let design = *config;
    let unloaded = closed_form(rig, Pacing::Line, move |part, bytes| dcqcn::train(&design, part, bytes));
    PacketRig::new(rig, Framing::Roce, hosts, switch, unloaded)
}

/// pFabric hosts around a priority-dropping switch.
pub fn pfabric(config: &Pfabric, rig: &PacketRigConfig) -> PacketRig<pfabric::Host, pfabric::Switch> {
    let hosts = nodes(rig).map(|node| pfabric::host(config, node)).collect();
    let design = *config;
    let pacing = match config.control {
        RateControl::Minimal { .. } => Pacing::Window(u64::from(config.window)),
        RateControl::Dctcp(_) => Pacing::SlowStart(u64::from(config.window)),
    };
    let unloaded = closed_form(rig, pacing, move |_, bytes| pfabric::train(&design, bytes));
    PacketRig::new(rig, Framing::Pfabric, hosts, pfabric::switch(config, rig.nodes), unloaded)
}

/// Hosts without congestion control, whose frames are those of `framing`, around a switch without a limit.
pub fn uncontrolled(
    config: &Uncontrolled,
    framing: Framing,
    rig: &PacketRigConfig,
) -> PacketRig<uncontrolled::Host, uncontrolled::Switch> {
    let hosts = nodes(rig).map(|node| uncontrolled::host(config, framing, node)).collect();
    let design = *config;
    let unloaded = closed_form(rig, Pacing::Line, move |_, bytes| uncontrolled::train(&design, framing, bytes));
    PacketRig::new(rig, framing, hosts, uncontrolled::switch(rig.nodes), unloaded)
}

/// What an ingress port may still receive after it crossed the pause threshold: all that the host sends until the pause reaches
/// its program, and the packet that crossed it.
fn headroom(config: &Dcqcn, rig: &PacketRigConfig) -> Bytes {
    let longest = roce_wire(config.mtu.count() as u32, true);
    let in_loop = rig.rate.bytes_in(Path::new(rig).pause_loop(pause_wire(), longest));
    in_loop + Bytes::new(2 * u64::from(longest))
}

fn nodes(rig: &PacketRigConfig) -> impl Iterator<Item = NodeId> {
    (0..rig.nodes).map(NodeId)
}

/// Trips and memory one after the other. An acknowledgement of the request leaves the target before the answer, which
/// waits for it if memory was quicker.
fn closed_form(
    rig: &PacketRigConfig,
    pacing: Pacing,
    train: impl Fn(Part, Bytes) -> Train + Send + 'static,
) -> Unloaded {
    let (path, request, memory) = (Path::new(rig), rig.read_request_bytes, rig.memory);
    let departures = Departures::new(&path, &train(Part::Write, request), pacing);
    Box::new(move |operation, bytes| {
        let message = |part, bytes| path.lone_message(&train(part, bytes), &departures);
        let (ask, access) = match operation {
            Operation::Write => return message(Part::Write, bytes),
            Operation::Read => (request, lone_access(&memory, bytes)),
            Operation::ReadModifyWrite => (MODIFY_REQUEST, lone_access(&memory, WORD)),
        };
        let acknowledged = path.serialization(train(Part::Ask, ask).acknowledgement);
        message(Part::Ask, ask) + access.max(acknowledged) + message(Part::Answer, bytes)
    })
}

fn lone_access(memory: &DramConfig, bytes: Bytes) -> Span {
    memory.latency + memory.bandwidth.map_or(Span::ZERO, |bandwidth| bandwidth.span_of(bytes))
}
