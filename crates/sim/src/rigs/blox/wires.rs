//! Links of the rack, the networks around it, and what is on them.

use base::{Bytes, NodeId, Rate, Seed, Span, Time};
use blox::{Body, Emulation, Leg, Packet, Passed};
use hardware::{Link, NetworkDelay};
use record::SpanKind;

/// A packet on its way over one leg, and where the leg's time goes.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// What travels.
    pub packet: Packet,
    /// The end of the leg that is not the switch; for a leg that does not touch the switch, its
    /// target.
    pub node: NodeId,
    /// Where the leg's time goes.
    pub times: LegTimes,
}

// Copied at each hop: the compiler calls memcpy for anything larger.
const _: () = assert!(size_of::<Flight>() <= 128);

/// Where the time of a leg goes, save what takes the same on every leg.
#[derive(Clone, Copy, Debug)]
pub struct LegTimes {
    /// Waiting for the link.
    queue: Span,
    /// On the link.
    serialization: Span,
    /// In the networks around the rack.
    network: Span,
    /// In the switch's pipeline.
    forwarding: Span,
    /// Time in the networks that the packet carries and does not wait for, in the unit of LAT.
    label_ns: u32,
    way: Way,
}

/// Which leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// From a node, or between two outside the rack.
    FromNode,
    /// From the switch to a node.
    FromSwitch,
    /// From the switch back to the client.
    Return,
}

impl LegTimes {
    /// Network time that the packet carries and has not waited for.
    pub fn label(&self) -> Span {
        Span::ns(u64::from(self.label_ns))
    }

    /// In the network on the way back to a client.
    pub fn on_return(&self) -> Span {
        if self.way == Way::Return { self.network } else { Span::ZERO }
    }
}

/// Who is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Clients are the nodes from 0.
    pub clients: u32,
    /// Storage servers of the rack come next.
    pub servers: u32,
    /// Servers in the other rack come after the uplink's number.
    pub remote: u32,
}

impl Places {
    /// A storage server of the rack.
    pub fn server(&self, index: u32) -> NodeId {
        NodeId(self.clients + index)
    }
    /// The control plane.
    pub fn control(&self) -> NodeId {
        NodeId(self.clients + self.servers)
    }
    /// The rivals' controller.
    pub fn controller(&self) -> NodeId {
        NodeId(self.clients + self.servers + 1)
    }
    /// Ports of the switch: everyone in the rack.
    pub fn in_rack(&self) -> u32 {
        self.clients + self.servers + 2
    }
    /// The port to everything else.
    pub fn uplink(&self) -> NodeId {
        NodeId(self.in_rack())
    }
    /// A server in the other rack.
    pub fn remote(&self, index: u32) -> NodeId {
        NodeId(self.in_rack() + 1 + index)
    }
    /// A storage server by its place among all, those of the other rack last.
    pub fn storage(&self, index: usize) -> NodeId {
        match (index as u32).checked_sub(self.servers) {
            Some(remote) => self.remote(remote),
            None => self.server(index as u32),
        }
    }
    /// The place of a storage server among all, those of the other rack last.
    pub fn storage_index(&self, node: NodeId) -> Option<usize> {
        let local = node.0.checked_sub(self.clients).filter(|index| *index < self.servers);
        let remote = node.0.checked_sub(self.in_rack() + 1).filter(|index| *index < self.remote);
        local.or(remote.map(|index| self.servers + index)).map(|index| index as usize)
    }
    /// Whether a node is a client.
    pub fn is_client(&self, node: NodeId) -> bool {
        node.0 < self.clients
    }
    /// Whether a node is in the other rack.
    pub fn is_remote(&self, node: NodeId) -> bool {
        node.0 > self.in_rack()
    }
}

/// Links and networks.
pub struct Wires {
    places: Places,
    /// From each node of the rack to the switch.
    up: Vec<Link>,
    /// From the switch to each node of the rack, and the uplink last.
    down: Vec<Link>,
    /// Each client's path, and behind them that of every other node of the rack, if such have one.
    networks: Vec<NetworkDelay>,
    emulation: Emulation,
    host: Span,
    propagation: Span,
    pipeline: Span,
    remote_delay: Span,
    rate: Rate,
    /// Lengths of packets and how long each takes on a link, the last used first: there are few,
    /// and the division is slow.
    serialization: [(Bytes, Span); 2],
}

/// What wires are made of.
pub struct WireConfig {
    /// Who is where.
    pub places: Places,
    /// Line rate of every link.
    pub rate: Rate,
    /// Host software a packet.
    pub host: Span,
    /// Light in a fibre of the rack.
    pub propagation: Span,
    /// The switch's pipeline, which takes the same of every packet: it counts to the wire before
    /// it.
    pub pipeline: Span,
    /// One way between the racks.
    pub remote_delay: Span,
    /// Whose delays packets between clients and rack have, if any.
    pub network: Option<hardware::DelaySource>,
    /// Which packets cross the networks, and how.
    pub emulation: Emulation,
    /// Of the networks.
    pub seed: Seed,
}

impl Wires {
    /// Idle wires.
    pub fn new(config: WireConfig) -> Wires {
        let in_rack = config.places.in_rack() as usize;
        let others = if config.emulation.redirects { config.places.in_rack() } else { 0 };
        let stream = |node| match node < config.places.clients {
            true => config.seed.stream(&format!("network/client/{node}")),
            false => config.seed.stream(&format!("network/node/{node}")),
        };
        let path = |source, node| NetworkDelay::new(source, stream(node));
        let nodes = config.places.clients.max(others);
        let paths = |source| (0..nodes).map(|node| path(source, node)).collect();
        let networks = config.network.as_ref().map(paths).unwrap_or_default();
        Wires {
            places: config.places,
            up: vec![Link::new(config.rate); in_rack],
            down: vec![Link::new(config.rate); in_rack + 1],
            networks,
            emulation: config.emulation,
            host: config.host,
            propagation: config.propagation,
            pipeline: config.pipeline,
            remote_delay: config.remote_delay,
            rate: config.rate,
            serialization: [(Bytes::ZERO, Span::ZERO); 2],
        }
    }

    /// A node sends a packet, which never sees the rack's switch if both ends are outside; when it
    /// is at the switch, or then at its target.
    pub fn send(&mut self, now: Time, from: NodeId, mut packet: Packet, is_outside: bool) -> (Time, Flight) {
        let length = self.serialization(packet.wire_bytes());
        let ready = now + self.host;
        let (start, end) = match self.up.get_mut(from.index()) {
            Some(link) => link.occupy(ready, length),
            None => (ready, ready + length),
        };
        let racks = self.between_racks(from, packet.target, is_outside);
        let forwarding = if is_outside { Span::ZERO } else { self.pipeline };
        let (leg, path) = match packet.target {
            _ if self.places.is_client(from) => (Leg::FromClient, from),
            target if is_outside => (Leg::ToClient, target),
            _ => (Leg::Between, from),
        };
        let passed = self.pass(leg, path, &packet.body, racks + forwarding);
        packet.latency_ns = packet.latency_ns.saturating_add(nanoseconds(passed.counted));
        let network = passed.waits + racks;
        let at = end + self.propagation + network + forwarding;
        let (queue, serialization) = (start - ready, end - start);
        let label_ns = nanoseconds(passed.label);
        let times = LegTimes { queue, serialization, network, forwarding, label_ns, way: Way::FromNode };
        let node = if is_outside { packet.target } else { from };
        (at, Flight { packet, node, times })
    }

    /// The switch starts to send a packet; when it is at the other end, its software included, and
    /// when the port is free again.
    pub fn transmit(&mut self, now: Time, port: NodeId, mut packet: Packet) -> (Time, Time, Flight) {
        let length = self.serialization(packet.wire_bytes());
        let (start, end) = self.down[port.index()].occupy(now, length);
        let far = if port == self.places.uplink() { self.remote_delay } else { Span::ZERO };
        let (way, passed) = match self.places.is_client(port) {
            true => (Way::Return, self.pass(Leg::ToClient, port, &packet.body, Span::ZERO)),
            // It has crossed the network on its way to the switch.
            false => (Way::FromSwitch, Passed { counted: far, ..Passed::default() }),
        };
        packet.latency_ns = packet.latency_ns.saturating_add(nanoseconds(passed.counted));
        let (network, label_ns) = (passed.waits + far, nanoseconds(passed.label));
        let at = end + self.propagation + network + self.host;
        let (queue, serialization) = (start - now, end - start);
        let times = LegTimes { queue, serialization, network, forwarding: Span::ZERO, label_ns, way };
        let node = if port == self.places.uplink() { packet.target } else { port };
        (at, end, Flight { packet, node, times })
    }

    /// Where all of a leg's time goes.
    pub fn parts(&self, times: &LegTimes) -> [(SpanKind, Span); 6] {
        let (queue, network) = match times.way {
            Way::FromNode => (SpanKind::NicQueue, SpanKind::Network),
            Way::FromSwitch => (SpanKind::SwitchQueue, SpanKind::Network),
            Way::Return => (SpanKind::SwitchQueue, SpanKind::Return),
        };
        [
            (SpanKind::Stack, self.host),
            (queue, times.queue),
            (SpanKind::Serialization, times.serialization),
            (SpanKind::Propagation, self.propagation),
            (network, times.network),
            (SpanKind::Forwarding, times.forwarding),
        ]
    }

    /// Whether a packet between these two never sees the rack's switch.
    pub fn is_outside(&self, from: NodeId, to: NodeId) -> bool {
        let is_out = |node: NodeId| self.places.is_remote(node) || self.places.is_client(node);
        is_out(from) && is_out(to)
    }

    /// The way between the racks, where a leg from one node towards another has it. The other rack
    /// is as far from a client as it is from this one, both ways.
    fn between_racks(&self, from: NodeId, to: NodeId, is_outside: bool) -> Span {
        let is_far = self.places.is_remote(from) || is_outside && self.places.is_remote(to);
        if is_far { self.remote_delay } else { Span::ZERO }
    }

    /// A packet takes a leg over the path of that node.
    fn pass(&mut self, leg: Leg, path: NodeId, body: &Body, real: Span) -> Passed {
        let network = self.networks.get_mut(path.index());
        self.emulation.pass(leg, body, real, || network.map_or(Span::ZERO, NetworkDelay::draw))
    }

    #[inline]
    fn serialization(&mut self, bytes: Bytes) -> Span {
        if self.serialization[0].0 != bytes {
            self.serialization.swap(0, 1);
            if self.serialization[0].0 != bytes {
                self.serialization[0] = (bytes, self.rate.span_of(bytes));
            }
        }
        self.serialization[0].1
    }

    /// How long each direction of each link was busy.
    pub fn busy(&self, out: &mut Vec<Span>) {
        out.extend(self.up.iter().chain(&self.down).map(Link::busy));
    }
}

fn nanoseconds(span: Span) -> u32 {
    u32::try_from(span.as_ps() / 1_000).unwrap_or(u32::MAX)
}
