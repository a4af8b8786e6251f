//! Tests of the protocols: every message ends, whatever the network loses or delays.
//!
//! Hosts that repair losses communicate over a network that drops and delays packets at random. The
//! world stops when no packet is in flight, no timer is set and no host has something to send: a
//! message that is open then would stay open forever. Fastpass repairs only lost control packets
//! (TCP handles its data), the receiver-driven protocol none: they run on networks whose losses
//! they can repair.

use base::{Bytes, NodeId, Program, Rate, Seed, Span, Stream, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use transport::config::{Dctcp, Fastpass, Pfabric, RateControl, ReceiverDriven};
use transport::{Host, HostIn, HostOut, Message, Packet, PacketKind, dctcp, fastpass, pfabric, receiver_driven};

const NODES: u32 = 4;
/// One-way delay of the network, without jitter.
const DELAY: Span = Span::us(1);
/// Transmission time of a byte at 100 Gb/s.
const BYTE: Span = Span::ps(80);
/// Far beyond the need of any of these loads.
const EVENTS_MAX: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    /// Whether only control packets are lost.
    spares_data: bool,
    jitter: Span,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Submit(usize),
    Arrive(usize),
    /// The host's link is free, or one of its timers is due.
    Turn(u32),
}

struct World<H> {
    hosts: Vec<H>,
    free_at: Vec<Time>,
    /// The earliest scheduled turn of each host.
    armed: Vec<Time>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    pushed: u64,
    packets: Vec<Option<(Packet, Box<[u8]>)>>,
    messages: Vec<Message>,
    delivered: Vec<bool>,
    network: Network,
    random: Stream,
    dropped: u64,
    resent: u64,
}

impl<H: Host> World<H> {
    fn new(hosts: Vec<H>, network: Network) -> World<H> {
        World {
            free_at: vec![Time::ZERO; hosts.len()],
            armed: vec![Time::MAX; hosts.len()],
            hosts,
            events: BinaryHeap::new(),
            pushed: 0,
            packets: Vec::new(),
            messages: Vec::new(),
            delivered: Vec::new(),
            network,
            random: Seed(network.seed).stream("network"),
            dropped: 0,
            resent: 0,
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((at, self.pushed, event)));
    }

    fn submit(&mut self, at: Time, source: u32, target: u32, bytes: u64) {
        let id = self.messages.len() as u32;
        let (source, target, bytes) = (NodeId(source), NodeId(target), Bytes::new(bytes));
        self.messages.push(Message { id, source, target, bytes, is_answer: false, expects_answer: false });
        self.delivered.push(false);
        self.push(at, Event::Submit(id as usize));
    }

    /// Runs until no event is left. Returns the messages that did not end.
    fn run(&mut self) -> Vec<u32> {
        let mut out = Vec::new();
        for _ in 0..EVENTS_MAX {
            let Some(Reverse((now, _, event))) = self.events.pop() else {
                let open = (0..).zip(&self.delivered).filter(|(_, delivered)| !**delivered);
                return open.map(|(id, _)| id).collect();
            };
            let node = self.play(now, event, &mut out);
            for decision in std::mem::take(&mut out) {
                self.carry_out(now, decision);
            }
            self.pump(now, node);
        }
        panic!("{EVENTS_MAX} events and no end");
    }

    fn carry_out(&mut self, now: Time, decision: HostOut) {
        match decision {
            HostOut::Deliver { message } => {
                let delivered = std::mem::replace(&mut self.delivered[message as usize], true);
                assert!(!delivered, "message {message} was delivered twice");
            }
            HostOut::Announce(message) => {
                self.hosts[message.target.index()].on(now, HostIn::Announced(message), &mut Vec::new());
                self.pump(now, message.target);
            }
        }
    }

    fn play(&mut self, now: Time, event: Event, out: &mut Vec<HostOut>) -> NodeId {
        let (node, input) = match event {
            Event::Submit(message) => {
                let message = self.messages[message];
                (message.source, HostIn::Submit(message))
            }
            Event::Arrive(slot) => {
                let (packet, content) = self.packets[slot].take().expect("a packet arrives once");
                if !content.is_empty() {
                    self.hosts[packet.target.index()].give_content(&content);
                }
                (packet.target, HostIn::Receive(packet))
            }
            Event::Turn(node) => {
                if self.armed[node as usize] <= now {
                    self.armed[node as usize] = Time::MAX;
                    self.hosts[node as usize].on_wakeup(now, out);
                }
                return NodeId(node);
            }
        };
        self.hosts[node.index()].on(now, input, out);
        node
    }

    /// Sends one packet if the link is free, and schedules the host's next turn if it may have more
    /// to do.
    fn pump(&mut self, now: Time, node: NodeId) {
        let host = &mut self.hosts[node.index()];
        if self.free_at[node.index()] <= now
            && let Some(packet) = host.poll_transmit(now)
        {
            let content = host.take_content();
            self.send(now, packet, content);
        }
        let host = &self.hosts[node.index()];
        let free_at = self.free_at[node.index()];
        let wake = host.next_wakeup();
        let free_at = Some(free_at).filter(|free_at| host.may_transmit() && *free_at > now);
        let turn = wake.into_iter().chain(free_at).min().map(|at| at.max(now));
        if let Some(at) = turn.filter(|at| *at < self.armed[node.index()]) {
            self.armed[node.index()] = at;
            self.push(at, Event::Turn(node.0));
        }
    }

    fn send(&mut self, now: Time, packet: Packet, content: Box<[u8]>) {
        let sent = now + BYTE * u64::from(packet.wire);
        self.free_at[packet.source.index()] = sent;
        self.resent += u64::from(packet.again);
        let may_lose = packet.kind != PacketKind::Data || !self.network.spares_data;
        if may_lose && self.random.unit() < self.network.loss {
            self.dropped += 1;
            return;
        }
        let jitter = Span::ps(self.random.below(self.network.jitter.as_ps() + 1));
        let slot = self.packets.len();
        self.packets.push(Some((packet, content)));
        self.push(sent + DELAY + jitter, Event::Arrive(slot));
    }
}

fn pfabrics(config: &Pfabric) -> Vec<pfabric::Host> {
    (0..NODES).map(|node| pfabric::host(config, NodeId(node))).collect()
}

fn dctcps(config: &Dctcp) -> Vec<dctcp::Host> {
    (0..NODES).map(|node| dctcp::host(config, NodeId(node))).collect()
}

fn fastpasses(config: &Fastpass) -> Vec<fastpass::Host> {
    fastpass::hosts(config, NODES, Rate::gbps(100), DELAY + Span::ns(150))
}

fn receivers(outstanding: u64) -> Vec<receiver_driven::Host> {
    let config = ReceiverDriven { mtu: Bytes::new(1_456), outstanding: Bytes::new(outstanding) };
    let limit = Bytes::new(1_456 * 18);
    (0..NODES).map(|node| receiver_driven::host(&config, NodeId(node), Rate::gbps(100), limit)).collect()
}

fn pfabric_config(window: u32) -> Pfabric {
    let control = RateControl::Minimal { probe_after: 5 };
    Pfabric { mss: Bytes::new(1_452), queue: Bytes::new(36_000), window, timeout: Span::us(8), control }
}

/// The same, over DCTCP.
fn over_dctcp_config(window: u32) -> Pfabric {
    let config = pfabric_config(window);
    let Pfabric { mss, queue, timeout, .. } = config;
    let dctcp = Dctcp { mss, queue, initial_window: window, timeout_min: timeout, ..dctcp_config() };
    Pfabric { control: RateControl::Dctcp(dctcp), ..config }
}

fn dctcp_config() -> Dctcp {
    Dctcp {
        mss: Bytes::new(1_460),
        mark_above: Bytes::new(65 * 1_538),
        queue: Bytes::new(700_000),
        gain: 1.0 / 16.0,
        initial_window: 10,
        timeout_min: Span::us(20),
        selective: true,
        connections: 1,
    }
}

/// Start in nanoseconds, source, distance to the target, and size from a byte to 140 packets.
fn load() -> impl Strategy<Value = Vec<(u64, u32, u32, u64)>> {
    let bytes = prop_oneof![1u64..3_000, 1u64..200_000];
    proptest::collection::vec((0u64..50_000, 0..NODES, 1..NODES, bytes), 1..20)
}

fn network() -> impl Strategy<Value = Network> {
    let loss = prop_oneof![Just(0.0), Just(0.15), 0.0..0.4];
    let jitter = prop_oneof![Just(0), Just(12_000), 0u64..40_000];
    let network = |(loss, jitter, seed)| Network { loss, spares_data: false, jitter: Span::ns(jitter), seed };
    (loss, jitter, any::<u64>()).prop_map(network)
}

fn play<H: Host>(hosts: Vec<H>, network: Network, load: &[(u64, u32, u32, u64)]) -> (World<H>, Vec<u32>) {
    let mut world = World::new(hosts, network);
    for (at, source, step, bytes) in load {
        world.submit(Time::ns(*at), *source, (source + step) % NODES, *bytes);
    }
    let open = world.run();
    (world, open)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_message_of_pfabric_ends(network in network(), load in load(), window in 1u32..40) {
        let (_, open) = play(pfabrics(&pfabric_config(window)), network, &load);
        prop_assert_eq!(open, Vec::<u32>::new());
    }

    #[test]
    fn every_message_of_pfabric_over_dctcp_ends(network in network(), load in load(), window in 1u32..40) {
        let (_, open) = play(pfabrics(&over_dctcp_config(window)), network, &load);
        prop_assert_eq!(open, Vec::<u32>::new());
    }

    #[test]
    fn every_message_of_dctcp_ends(
        network in network(), load in load(), selective in any::<bool>(), connections in 1u32..5, window in 1u32..40,
    ) {
        let config = Dctcp { selective, connections, initial_window: window, ..dctcp_config() };
        let (_, open) = play(dctcps(&config), network, &load);
        prop_assert_eq!(open, Vec::<u32>::new());
    }

    #[test]
    fn every_message_of_fastpass_ends_whatever_control_is_lost(network in network(), load in load(), batch in 1u32..=32) {
        let config = Fastpass { slot_payload: Bytes::new(1_460), batch, timeout: Span::us(50) };
        let network = Network { spares_data: true, ..network };
        let (_, open) = play(fastpasses(&config), network, &load);
        prop_assert_eq!(open, Vec::<u32>::new());
    }

    #[test]
    fn every_message_of_the_receiver_driven_protocol_ends_whatever_is_late(
        network in network(), load in load(), outstanding in 1u64..60_000,
    ) {
        let (_, open) = play(receivers(outstanding), Network { loss: 0.0, ..network }, &load);
        prop_assert_eq!(open, Vec::<u32>::new());
    }
}

/// A tenth of the control packets, and nothing else, is lost: slots of lost allocations are
/// requested again.
#[test]
fn fastpass_repairs_its_control_packets() {
    for seed in 0..10 {
        let network = Network { loss: 0.1, spares_data: true, jitter: Span::ZERO, seed };
        let load: Vec<_> = (0..NODES).map(|node| (0, node, 1, 500_000)).collect();
        let config = Fastpass { slot_payload: Bytes::new(1_460), batch: 16, timeout: Span::us(50) };
        let (world, open) = play(fastpasses(&config), network, &load);
        assert_eq!(open, Vec::<u32>::new(), "seed {seed}");
        assert!(world.dropped > 0 && world.resent == 0);
    }
}

/// One packet in seven is lost, and late acknowledgements arrive after the timeouts that they would
/// have prevented.
#[test]
fn large_messages_of_pfabric_end_with_losses_and_jitter() {
    for (seed, config) in (0..30).flat_map(|seed| [(seed, pfabric_config(33)), (seed, over_dctcp_config(33))]) {
        let network = Network { loss: 0.15, spares_data: false, jitter: Span::us(12), seed };
        let load: Vec<_> = (0..NODES).map(|node| (0, node, 1, 500_000)).collect();
        let (world, open) = play(pfabrics(&config), network, &load);
        assert_eq!(open, Vec::<u32>::new(), "seed {seed}: {config:?}");
        assert!(world.dropped > 0 && world.resent >= world.dropped / 4);
    }
}

/// Without loss and jitter nothing is retransmitted, and the count of packets is exact.
#[test]
fn packets_sent_again_are_counted_one_by_one() {
    let quiet = Network { loss: 0.0, spares_data: false, jitter: Span::ZERO, seed: 1 };
    let (world, _) = play(pfabrics(&pfabric_config(33)), quiet, &[(0, 0, 1, 100_000)]);
    assert_eq!(world.resent, 0);
    let mut host = pfabric::host(&pfabric_config(4), NodeId(0));
    let message = Message {
        id: 0,
        source: NodeId(0),
        target: NodeId(1),
        bytes: Bytes::new(4 * 1_452),
        is_answer: false,
        expects_answer: false,
    };
    host.on(Time::ZERO, HostIn::Submit(message), &mut Vec::new());
    let first: Vec<Packet> = std::iter::from_fn(|| host.poll_transmit(Time::ZERO)).collect();
    assert!(first.len() == 4 && first.iter().all(|packet| packet.kind == PacketKind::Data && !packet.again));
    host.on_wakeup(Time::us(9), &mut Vec::new());
    let second: Vec<Packet> = std::iter::from_fn(|| host.poll_transmit(Time::us(9))).collect();
    assert_eq!(second.len(), 1, "a window of one after a timeout");
    assert!(second[0].again && second[0].offset == 0);
}
