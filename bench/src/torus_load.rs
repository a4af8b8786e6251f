//! Constant-rate flows between all pairs of a torus: a load that every network simulator can run,
//! to compare the cost per hop.
//!
//! The rules are those of T27 and T512: one flow for each ordered pair, packets of 4096 bytes,
//! links of 100 Gb/s and 500 ns, store and forward, FIFO, no drops. Routes are in dimension order
//! (x, y, z; the shorter way round, the positive one on a tie). All links would carry 60 % if the
//! traffic were spread evenly. The links are [`FifoPort`]s, the routes those of `topology`. The
//! clock is any [`Agenda`]: the simulator's own event queue or a reference.

use base::{Bytes, Length, Rate, Span, Time};
use hardware::FifoPort;
use kernel::EventQueue;
use slab::Slab;
use topology::{Cabling, Config, Endpoints, Graph, Kind, Lengths, Placement, Ports, RouteError, VertexId};

const PACKET: Bytes = Bytes::new(4_096);
const RATE: Rate = Rate::gbps(100);
const PROPAGATION: Span = Span::ns(500);
/// The target load of each link: the rate of a node's flows together, times the mean distance, over
/// the number of its links. 60 Gb/s.
const LINK_LOAD_BPS: u128 = 60_000_000_000;
const LINKS_A_NODE: u128 = 6;
/// Spreads the first packets of the flows over an interval.
const PHASE_STEP: u128 = 7_919;

/// Pending events in order of time, ties in order of insertion.
pub trait Agenda: Default {
    /// Adds `event` at `at`.
    fn push(&mut self, at: Time, event: Due);
    /// Removes the earliest event.
    fn pop(&mut self) -> Option<(Time, Due)>;
}

impl Agenda for EventQueue<Due> {
    #[inline]
    fn push(&mut self, at: Time, event: Due) {
        EventQueue::push(self, at, event);
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, Due)> {
        EventQueue::pop(self)
    }
}

/// An event of such a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The next flow in turn starts a packet.
    Start,
    /// A whole packet has arrived at a node.
    Arrive {
        /// The packet's number among those in flight.
        packet: u32,
        /// The node that the packet reaches.
        node: u32,
    },
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Packets that arrived at their destination.
    pub packets: u64,
    /// Links that they used.
    pub hops: u64,
    /// The sum of the times of arrival in picoseconds, wrapping.
    pub sum: u64,
}

/// A torus with its routes and flows, ready for any number of runs.
#[derive(Clone, Debug)]
pub struct TorusLoad {
    nodes: u32,
    /// By `at * nodes + destination`: the channel to take, and the node at its end.
    next: Vec<Step>,
    channels: usize,
    interval: Span,
    /// Flows in the order in which they send within an interval.
    turns: Vec<Turn>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    channel: u16,
    node: u16,
}

/// The time in each interval at which a flow sends. All flows have the same rate, so they send in
/// the same order in every interval, and one event suffices for all.
#[derive(Clone, Copy, Debug)]
struct Turn {
    phase: Span,
    source: u32,
    destination: u32,
}

impl TorusLoad {
    /// Builds a torus of `side` nodes per dimension, at most 16.
    ///
    /// # Errors
    /// Never for a whole torus; the error is the router's.
    ///
    /// # Panics
    /// When `side` is below 2 or above 16.
    pub fn new(side: u32) -> Result<TorusLoad, RouteError> {
        assert!((2..=16).contains(&side), "a side of 2 to 16 nodes, so that node and channel fit into 16 bits");
        let graph = torus(side);
        let nodes = side.pow(3);
        let next = routes(&graph, nodes)?;
        let interval = interval(&graph, nodes);
        Ok(TorusLoad { nodes, next, channels: graph.channel_count(), interval, turns: turns(nodes, interval) })
    }

    /// Starts packets of every flow while the time is below `until`, and runs until all packets
    /// have arrived.
    pub fn run<A: Agenda>(&self, until: Time) -> Delivered {
        let mut agenda = A::default();
        let mut ports = vec![FifoPort::new(RATE, PROPAGATION); self.channels];
        let mut packets = Slab::new();
        let mut delivered = Delivered::default();
        let mut flows = Flows { load: self, turn: 0, interval_start: Time::ZERO };
        agenda.push(flows.next_at(), Due::Start);
        while let Some((now, due)) = agenda.pop() {
            let (packet, node) = match due {
                Due::Arrive { packet, node } => (packet, node),
                Due::Start => {
                    let turn = flows.take();
                    if flows.next_at() < until {
                        agenda.push(flows.next_at(), Due::Start);
                    }
                    (packets.insert(turn.destination) as u32, turn.source)
                }
            };
            let destination = packets[packet as usize];
            if node == destination {
                packets.remove(packet as usize);
                delivered.packets += 1;
                delivered.sum = delivered.sum.wrapping_add(now.as_ps());
                continue;
            }
            let step = self.next[(node * self.nodes + destination) as usize];
            delivered.hops += 1;
            let at = ports[usize::from(step.channel)].submit(now, PACKET);
            agenda.push(at, Due::Arrive { packet, node: u32::from(step.node) });
        }
        delivered
    }
}

/// The next flow in turn.
struct Flows<'a> {
    load: &'a TorusLoad,
    turn: usize,
    interval_start: Time,
}

impl Flows<'_> {
    fn next_at(&self) -> Time {
        self.interval_start + self.load.turns[self.turn].phase
    }
    fn take(&mut self) -> Turn {
        let turn = self.load.turns[self.turn];
        self.turn += 1;
        if self.turn == self.load.turns.len() {
            (self.turn, self.interval_start) = (0, self.interval_start + self.load.interval);
        }
        turn
    }
}

fn torus(side: u32) -> Graph {
    let config = Config {
        kind: Kind::Torus { dimensions: vec![side; 3] },
        endpoints: Endpoints { hosts: 0, targets: 0, placement: Placement::Spread },
        ports: Ports { endpoint: 1, adapter: LINKS_A_NODE as u32, switch: 1 },
        cabling: Cabling {
            rate: RATE,
            board_rate: RATE,
            fabric_cables: 1,
            endpoint_cables: 1,
            lengths: Lengths { endpoint: Length::m(1), near: Length::m(1), far: Length::m(1) },
        },
    };
    config.build().expect("a torus without endpoints has no way to be wrong")
}

fn routes(graph: &Graph, nodes: u32) -> Result<Vec<Step>, RouteError> {
    let mut next = vec![Step::default(); (nodes * nodes) as usize];
    for (at, destination) in pairs(nodes) {
        let path = graph.dimension_order_route(VertexId(at), VertexId(destination))?;
        next[(at * nodes + destination) as usize] =
            Step { channel: path.channels[0].0 as u16, node: path.vertices[1].0 as u16 };
    }
    Ok(next)
}

/// Returns the ordered pairs of different nodes, the source in the outer loop.
fn pairs(nodes: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..nodes).flat_map(move |source| (0..nodes).map(move |other| (source, other))).filter(|(a, b)| a != b)
}

/// Returns the time between two packets of a flow.
fn interval(graph: &Graph, nodes: u32) -> Span {
    let distances = graph.distances_from(VertexId(0));
    let sum: u128 = (1..nodes).filter_map(|node| distances.to(VertexId(node))).map(u128::from).sum();
    // bits * 10^12 / (load * links / sum), rounded down once.
    Span::ps((u128::from(PACKET.bits()) * 1_000_000_000_000 * sum / (LINK_LOAD_BPS * LINKS_A_NODE)) as u64)
}

fn turns(nodes: u32, interval: Span) -> Vec<Turn> {
    let flows = u128::from(nodes) * u128::from(nodes - 1);
    let interval = u128::from(interval.as_ps());
    let phase = |flow: u128| Span::ps((flow * PHASE_STEP * interval / flows % interval) as u64);
    let mut turns: Vec<Turn> = pairs(nodes)
        .zip(0..)
        .map(|((source, destination), flow)| Turn { phase: phase(flow), source, destination })
        .collect();
    // Stable: flows of the same phase send in the order of their numbers.
    turns.sort_by_key(|turn| turn.phase);
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_27_node_torus_delivers_what_other_simulators_deliver_in_a_millisecond() {
        let load = TorusLoad::new(3).expect("a whole torus");
        let delivered = load.run::<EventQueue<Due>>(Time::ms(1));
        assert_eq!(format!("{:#x}", delivered.sum), "0x413012eb55cc");
    }

    #[test]
    fn the_27_node_torus_delivers_every_packet_of_ten_milliseconds() {
        let load = TorusLoad::new(3).expect("a whole torus");
        let delivered = load.run::<EventQueue<Due>>(Time::ms(10));
        assert_eq!(delivered, Delivered { packets: 1_428_223, hops: 2_966_303, sum: 0x0019_6132_e0d2_fa93 });
    }

    #[test]
    fn the_512_node_torus_delivers_every_packet_of_a_millisecond() {
        let load = TorusLoad::new(8).expect("a whole torus");
        let delivered = load.run::<EventQueue<Due>>(Time::ms(1));
        assert_eq!((delivered.packets, delivered.hops), (935_669, 5_624_972));
    }
}
