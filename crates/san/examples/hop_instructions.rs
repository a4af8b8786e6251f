//! The cost of one packet at one hop of a 3 x 3 x 3 torus with all traffic control enabled, in
//! instructions.
//!
//! Run a case with two counts under an instruction counter. The cost of one packet is the
//! difference of the results over the difference of the counts: `valgrind --tool=callgrind
//! target/release/examples/hop_instructions request 100000`.
//!
//! Each case includes the work of those before it:
//!
//! * `nothing`: the loop alone.
//! * `request`: a read's command is routed, booked for, and ranked.
//! * `response`: the response to that read updates the delays and releases the booking.
//! * `data`: one data packet of that read passes before the response.
//! * `queued`: instead of one, nine data packets; eight wait at the busy port and are sent at
//!   wake-ups.

use base::{Bytes, Operation, Program, Rate, RequestId, Span, Time};
use san::egress::{RankConfig, SchedulingConfig, Service, StorageDrivenConfig};
use san::hop::{Hop, HopConfig, Passed};
use san::reserve::{Estimate, OverCommitment, ReservationConfig};
use san::route::{DistanceConfig, Horizon, Policy, RouteConfig, converge, neighbours, peer};
use san::{DriveId, HopIn, HopOut, Outcome, Packet, PacketKind, Port, SessionId, Tag, Trail};
use topology::{Builder, Graph, VertexId, VertexKind};

const SIDE: u32 = 3;
const NODES: u32 = SIDE * SIDE * SIDE;

fn torus() -> Graph {
    let mut builder = Builder::new();
    for (kind, ports) in [(VertexKind::Adapter, 8), (VertexKind::Target, 1), (VertexKind::Host, 1)] {
        (0..NODES).for_each(|number| {
            builder.vertex(kind, format!("{}{number}", kind.word()), ports);
        });
    }
    let cable = |builder: &mut Builder, one: u32, other: u32| {
        builder.cable([VertexId(one), VertexId(other)], Rate::gbps(100), base::Length::m(2));
    };
    for node in 0..NODES {
        for step in [1, SIDE, SIDE * SIDE] {
            let place = node / step % SIDE;
            cable(&mut builder, node, node - place * step + (place + 1) % SIDE * step);
        }
        builder.board([VertexId(node), VertexId(NODES + node)], Rate::gbps(600));
        cable(&mut builder, node, 2 * NODES + node);
    }
    builder.finish().expect("the torus is right")
}

/// ISR without timers.
fn route() -> RouteConfig {
    RouteConfig {
        policy: Policy::Isr,
        is_symmetric: true,
        has_header: true,
        ewma_weight: 128,
        ecn_threshold: Some(Bytes::kib(64)),
        marks_answers: false,
        stretch_max: 1,
        stale_after: Span::ms(1),
        teams: false,
        distance: DistanceConfig {
            infinity: 32,
            period: Span::MAX,
            hold: Span::MAX,
            trigger_gap: Span::us(20),
            candidates: 6,
            horizon: Horizon::PoisonedReverse,
        },
    }
}

fn config(graph: &Graph, here: VertexId, estimate: Rate) -> HopConfig {
    let rank = RankConfig { quantum: 8, rank_max: 7, unknown_credit: 8, read_rank: 4 };
    HopConfig {
        here,
        neighbours: neighbours(graph, here, false),
        vertices: graph.vertices().len(),
        drives: NODES as usize,
        route: route(),
        reservation: Some(ReservationConfig {
            estimates: vec![Estimate { bytes_max: Bytes::kib(4), rate: estimate }],
            over_commitment: vec![
                OverCommitment { headroom_min: 512, factor: 1024 },
                OverCommitment { headroom_min: 0, factor: 512 },
            ],
            limit: 1024,
            is_conservative: false,
            fills_at_booked: true,
            burst: Bytes::kib(64),
            classes: NODES * NODES,
            lapse: Span::ms(10),
            control_delay: Span::ZERO,
            data_end_reads: false,
            passes_rejected: false,
        }),
        scheduling: SchedulingConfig::StorageDriven(StorageDrivenConfig {
            rank,
            queues: 8,
            service: Service::WeightedRoundRobin(vec![64, 32, 16, 8, 4, 2, 1]),
        }),
        buffer: Bytes::kib(16 << 10),
        lossless: None,
        response_frame: 120,
    }
}

/// Returns the hop of adapter 0 in a converged network.
fn hop(graph: &Graph, estimate: Rate) -> Hop {
    let mut hops: Vec<Hop> = (0..NODES).map(|node| Hop::new(config(graph, VertexId(node), estimate))).collect();
    let mut distances: Vec<_> = hops.iter_mut().map(|hop| Some(hop.router_mut().distances_mut())).collect();
    distances.resize_with(graph.vertices().len(), || None);
    converge(&mut distances, graph, Time::ZERO);
    hops.swap_remove(0)
}

fn command(number: u32) -> Packet {
    let target = number % (NODES - 1) + 1;
    Packet {
        tag: Tag { session: SessionId(target), command: number as u16, attempt: 0 },
        request: RequestId(u64::from(number)),
        kind: PacketKind::Command,
        operation: Operation::Read,
        address: 0,
        bytes: 4096,
        payload: 0,
        frame: 170,
        source: VertexId(2 * NODES),
        target: VertexId(NODES + target),
        drive: DriveId(target),
        trail: Trail::default(),
        status: Outcome::Success,
        credit: 0,
        rank: 0,
        marked: false,
        ingress: 0,
        length: 0,
        stream: 0,
    }
}

struct Bench {
    hop: Hop,
    now: Time,
    out: Vec<HopOut>,
}

impl Bench {
    /// Passes one packet to the hop. Returns its port and the packet if it left at once.
    fn take(&mut self, port: Port, mut packet: Packet) -> Option<(Port, Packet)> {
        self.out.clear();
        match self.hop.pass(self.now, port, &mut packet, &mut self.out) {
            Passed::On(port) => Some((port, packet)),
            Passed::Waits(..) | Passed::Over => None,
        }
    }

    fn answer(&mut self, port: Port, request: &Packet, kind: PacketKind, frame: u32) -> Option<(Port, Packet)> {
        let trail = request.trail.clone().turned_at_target(80_000);
        self.take(port, Packet { kind, frame, credit: 16, ..request.with_trail(trail) })
    }

    fn one(&mut self, case: &str, number: u32, host: Port) {
        self.now += Span::us(1);
        if case == "nothing" {
            return;
        }
        let Some((port, sent)) = self.take(host, command(number)) else { return };
        self.now += Span::us(20);
        match case {
            "data" => drop(self.answer(port, &sent, PacketKind::ReadData { last: true }, 4_200)),
            "queued" => self.queued(host, port, &sent),
            _ => {}
        }
        if case != "request" {
            self.now += Span::us(1);
            self.answer(port, &sent, PacketKind::Response, 120);
        }
    }

    /// Sends nine data packets at once, of which eight wait.
    fn queued(&mut self, host: Port, port: Port, sent: &Packet) {
        for _ in 0..9 {
            self.answer(port, sent, PacketKind::ReadData { last: false }, 4_200);
        }
        for _ in 0..8 {
            self.now += Rate::gbps(100).span_of(Bytes::new(4_200));
            self.out.clear();
            self.hop.on(self.now, HopIn::PortFree(host), &mut self.out);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_else(|| "request".into());
    let count: u32 = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let graph = torus();
    let host = (0..8).map(Port).find(|port| peer(&graph, VertexId(0), *port).is_some_and(|(to, _)| to.0 == 2 * NODES));
    // Requests without responses must not fill the port.
    let estimate = if case == "request" { Rate::bps(100_000) } else { Rate::gbps(10) };
    let mut bench = Bench { hop: hop(&graph, estimate), now: Time::ZERO, out: Vec::new() };
    let host = host.expect("adapter 0 has a host");
    (0..count).for_each(|number| bench.one(&case, number, host));
    println!("{case}: {count}, {:?}", bench.hop.counts());
}
