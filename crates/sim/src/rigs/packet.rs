//! Packet-switched rivals: hosts with an Ethernet stack around one switch.
//!
//! The host program emits a packet when the link is idle. The packet crosses stack, MAC, PCS and
//! transceiver (a pipeline with a constant delay), is serialized and travels. After its last bit it
//! crosses the switch's receive side and layer-2 pipeline and waits in the switch program. It is
//! serialized again, travels, and crosses the receiver's stack. Pause and credit frames cross MAC
//! and PHY only.
//!
//! A read is two messages, a small request and the data, with the target's memory between them. A
//! write is one message and ends with its delivery. A read-modify-write is a request with its
//! arguments and a response.

mod bench;
mod hosts;
mod path;
mod switch;
mod transfers;

pub use bench::{Bench, LinkBytes, lone, unloaded_by_simulation, wire_cost_by_simulation};
pub use path::{Departures, Pacing, Path};

use super::seat::Seat;
use crate::drive::{Context, Rig, Ticket};
use crate::sampler::Probe;
use crate::slab::Slab;
use base::{Bytes, NodeId, Operation, Rate, Request, Seed, Span, Time};
use hardware::{Dram, DramConfig, EthernetStack, Link, RemoteAccess};
use record::metric::{self, Meter};
use record::{Ledger, Place as At, Series, SpanKind};
use std::collections::BTreeMap;
use transport::cost::MODIFY_REQUEST;
use transport::framing::Framing;
use transport::{Allowance, Host, Message, Packet, Switch};

/// The word that a read-modify-write is about.
pub(super) const WORD: Bytes = Bytes::new(8);

/// The network around the programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketRigConfig {
    /// Compute and memory nodes, one port each. A design may add nodes of its own (an arbiter)
    /// behind them.
    pub nodes: u32,
    /// Every link.
    pub rate: Rate,
    /// Of one link.
    pub propagation: Span,
    /// Stack, MAC, PHY and forwarding latencies.
    pub stack: EthernetStack,
    /// The message that asks for a read.
    pub read_request_bytes: Bytes,
    /// Every node's memory.
    pub memory: DramConfig,
    /// What remote requests take of it.
    pub remote: RemoteAccess,
    /// Whether the switch begins with a packet once its header is in; it waits for the last bit
    /// otherwise.
    pub cut_through: bool,
    /// Whether every packet is encoded to bytes and back on each wire; a difference panics.
    pub wire_check: bool,
    /// Of the random draws of a switch.
    pub seed: Seed,
}

impl PacketRigConfig {
    /// The network of `plan` for `rival`.
    pub fn of(plan: &plan::Messages, rival: &plan::Packet, seed: Seed, wire_check: bool) -> PacketRigConfig {
        PacketRigConfig {
            nodes: plan.fabric.nodes,
            rate: plan.fabric.rate,
            propagation: plan.fabric.propagation,
            stack: rival.stack,
            read_request_bytes: Bytes::new(plan::READ_REQUEST.count()),
            memory: plan.memory.dram,
            remote: plan.memory.remote,
            cut_through: false,
            wire_check,
            seed: seed.child("fabric"),
        }
    }
}

/// The end-to-end time of a lone request, without the accesses to memory of
/// [`PacketRigConfig::remote`], which come before and after it.
pub type Unloaded = Box<dyn Fn(Operation, Bytes) -> Span + Send>;

/// The rig's own events.
#[derive(Clone, Copy, Debug)]
pub enum PacketEvent {
    /// A flight has passed the switch's receive pipeline.
    AtSwitch(u32),
    /// A flight has passed the receiver's stack.
    AtHost(u32),
    /// A host's link is idle again.
    HostFree(NodeId),
    /// A switch port's link is idle again.
    PortFree(NodeId),
    /// A host wanted to run now.
    HostWake(NodeId),
    /// The switch wanted to run now.
    SwitchWake,
    /// The memory has answered this transfer's request.
    Answer(u32),
    /// The source's memory has the data of this transfer's write.
    Fetched(u32),
}

/// A host program with its link and its memory.
struct Place<H: Host> {
    seat: Seat<H>,
    link: Link,
    memory: Dram,
    sent: u64,
    /// Whether an event is pending for when the link falls idle.
    awaited: bool,
}

/// A switch port's outgoing link.
struct Port {
    link: Link,
    sent: u64,
    /// Whether an event is pending for when the link falls idle.
    awaited: bool,
}

/// A packet between two programs, with what its way has cost so far.
#[derive(Clone, Copy)]
struct Flight {
    packet: Packet,
    /// The host whose link it left by.
    from: NodeId,
    left_at: Time,
    /// How long that link had been busy when it left.
    busy_before: Span,
    /// How long that link had been busy with the packet's own message since the message was
    /// submitted.
    own_before: Span,
    switch_in: Time,
    switch_out: Time,
}

/// Which message of its request a transfer is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leg {
    /// The first of two: asks.
    Ask,
    /// The last or only one.
    Last,
}

/// One request in flight; its slab index is the number of its current message.
#[derive(Clone)]
struct Transfer {
    ticket: Ticket,
    request: Request,
    leg: Leg,
    start: Time,
    ledger: Ledger,
    /// When the current message was submitted, by whom, and how long that link had been busy then.
    submitted: Time,
    sender: NodeId,
    busy_at_submit: Span,
    /// Serialization of the current message's packets so far.
    own: Span,
}

/// Packets between two programs.
struct Flights {
    slab: Slab<Flight>,
    /// Contents beyond the fields of packets, by their tags: of control packets of some designs.
    contents: BTreeMap<u32, Box<[u8]>>,
}

/// Totals since the begin of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    dropped: u64,
    dropped_wire: u64,
    retransmitted: u64,
    delivered_packets: u64,
}

/// Lists that are empty between events.
#[derive(Default)]
struct Scratch {
    ready: Vec<NodeId>,
    announced: Vec<Message>,
    wire: Vec<u8>,
}

/// Host programs and a switch program inside hardware models. Implements [`Rig`].
pub struct PacketRig<H: Host, S: Switch> {
    config: PacketRigConfig,
    framing: Framing,
    path: Path,
    places: Vec<Place<H>>,
    switch: Seat<S>,
    ports: Vec<Port>,
    flights: Flights,
    transfers: Slab<Transfer>,
    unloaded: Unloaded,
    counts: Counts,
    scratch: Scratch,
}

impl<H: Host, S: Switch> PacketRig<H, S> {
    /// One port for each of `hosts`: the nodes of `config`, then whatever else the design needs.
    pub fn new(config: &PacketRigConfig, framing: Framing, hosts: Vec<H>, switch: S, unloaded: Unloaded) -> Self {
        assert!(hosts.len() >= config.nodes as usize, "a node without a host program");
        let port = || Port { link: Link::new(config.rate), sent: 0, awaited: false };
        PacketRig {
            config: *config,
            framing,
            path: Path::new(config),
            ports: hosts.iter().map(|_| port()).collect(),
            places: hosts.into_iter().map(|program| Place::new(program, config)).collect(),
            switch: Seat::new(switch),
            flights: Flights { slab: Slab::new(), contents: BTreeMap::new() },
            transfers: Slab::new(),
            unloaded,
            counts: Counts::default(),
            scratch: Scratch::default(),
        }
    }
    /// The switch program, to look at.
    pub fn switch(&self) -> &S {
        &self.switch
    }
    /// A host program, to look at.
    pub fn host(&self, node: NodeId) -> &H {
        &self.places[node.index()].seat
    }
    /// Wire bytes sent so far by `node` to the switch, and by the switch to `node`.
    pub fn link_bytes(&self, node: NodeId) -> LinkBytes {
        LinkBytes { up: self.places[node.index()].sent, down: self.ports[node.index()].sent }
    }
    /// Wire bytes that were dropped so far.
    pub fn dropped_bytes(&self) -> Bytes {
        Bytes::new(self.counts.dropped_wire)
    }
    /// Whether no packet and no request is under way.
    pub fn is_at_rest(&self) -> bool {
        self.flights.slab.len() == 0 && self.transfers.len() == 0
    }
    /// Data packets that hosts have sent more than once so far.
    pub fn retransmitted_packets(&self) -> u64 {
        self.counts.retransmitted
    }
    /// Packets that have come in at hosts so far.
    pub fn received_packets(&self) -> u64 {
        self.counts.delivered_packets
    }
}

impl<H: Host> Place<H> {
    fn new(program: H, config: &PacketRigConfig) -> Place<H> {
        let (link, memory) = (Link::new(config.rate), Dram::new(config.memory));
        Place { seat: Seat::new(program), link, memory, sent: 0, awaited: false }
    }
    /// How long the link has been busy by `now`: what is still being sent counts up to now.
    fn busy_until(&self, now: Time) -> Span {
        self.link.busy() - self.link.free_at().saturating_since(now)
    }
}

type Events<'a, 'b> = &'a mut Context<'b, PacketEvent>;

impl<H: Host, S: Switch> Rig for PacketRig<H, S> {
    type Event = PacketEvent;

    fn issue(&mut self, ticket: Ticket, request: &Request, intended: Time, context: &mut Context<'_, PacketEvent>) {
        let mut ledger = context.open_ledger();
        ledger.claim(SpanKind::Wait, intended, context.now, At::Host(request.source.0));
        let (leg, bytes) = match request.operation {
            Operation::Read => (Leg::Ask, self.config.read_request_bytes),
            Operation::Write => (Leg::Last, request.bytes),
            Operation::ReadModifyWrite => (Leg::Ask, MODIFY_REQUEST),
        };
        let id = self.transfers.insert(Transfer {
            ticket,
            request: *request,
            leg,
            start: context.now,
            ledger,
            submitted: context.now,
            sender: request.source,
            busy_at_submit: Span::ZERO,
            own: Span::ZERO,
        });
        if self.remote().fetches(request.operation) {
            return self.fetch_write(id, request, context);
        }
        self.submit(id, request.target, bytes, context);
    }

    fn on(&mut self, event: PacketEvent, context: &mut Context<'_, PacketEvent>) {
        match event {
            PacketEvent::AtSwitch(tag) => self.at_switch(tag, context),
            PacketEvent::AtHost(tag) => {
                let node = self.flights.slab[tag].packet.target;
                self.at_host(tag, node, context);
            }
            PacketEvent::HostFree(node) => self.host_free(node, context),
            PacketEvent::PortFree(node) => self.port_free(node, context),
            PacketEvent::HostWake(node) => self.wake_host(node, context),
            PacketEvent::SwitchWake => self.wake_switch(context),
            PacketEvent::Answer(id) => self.answer(id, context),
            PacketEvent::Fetched(id) => self.fetched(id, context),
        }
    }

    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span> {
        let access = |takes: bool| if takes { self.config.memory.access(bytes) } else { Span::ZERO };
        let around = access(self.config.remote.fetches(operation)) + access(self.config.remote.stores(operation));
        Some((self.unloaded)(operation, bytes) + around)
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        out.extend(self.places.iter().map(|place| place.link.busy()));
        out.extend(self.ports.iter().map(|port| port.link.busy()));
    }

    fn dropped_packets(&self) -> u64 {
        self.counts.dropped
    }

    fn sample(&self, _now: Time, probe: &mut Probe) {
        let ports = || (0..self.ports.len() as u32).map(NodeId);
        let (bytes, packets) = (Series::PortQueueBytes, Series::PortQueuePackets);
        probe.put_each(bytes, 0, ports().map(|port| self.switch.queued(port).count() as f64));
        probe.put_each(packets, 0, ports().map(|port| self.switch.queued_packets(port) as f64));
        for (node, place) in (0..).zip(&self.places) {
            match place.seat.allowance() {
                Allowance::None => {}
                Allowance::Window(bytes) => probe.put_at(Series::WindowBytes, node, bytes.count() as f64),
                Allowance::Granted(bytes) => probe.put_at(Series::GrantedBytes, node, bytes.count() as f64),
                Allowance::Rate(bps) => probe.put_at(Series::SendRate, node, bps),
            }
        }
    }

    fn measure(&self, _now: Time, meter: &mut Meter) {
        meter.count(metric::retransmitted_packets, self.counts.retransmitted as f64);
        meter.count(metric::received_packets, self.counts.delivered_packets as f64);
    }
}
