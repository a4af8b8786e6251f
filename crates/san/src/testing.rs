//! Networks and configurations for tests.

use crate::id::{DriveId, SessionId, Tag};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::reserve::{Estimate, OverCommitment, ReservationConfig};
use crate::route::{DistanceConfig, Horizon, Policy, RouteConfig};
use crate::trail::Trail;
use base::{Bytes, Length, Operation, Rate, RequestId, Span};
use topology::{Cabling, Config, Endpoints, Graph, Kind, Lengths, Placement, Ports, VertexId};

/// Builds a network of 100 Gb/s links with a target at each adapter of a switchless one, or with
/// `targets` targets in a switched one.
pub(crate) fn network(kind: Kind, hosts: u32, targets: u32) -> Graph {
    let cables = if matches!(kind, Kind::RedundantSwitches { .. }) { 1 } else { 2 };
    let config = Config {
        endpoints: Endpoints { hosts, targets, placement: Placement::Spread },
        ports: Ports { endpoint: 8, adapter: 16, switch: 64 },
        cabling: Cabling {
            rate: Rate::gbps(100),
            board_rate: Rate::gbps(400),
            fabric_cables: 1,
            endpoint_cables: if kind.is_switched() { cables } else { 1 },
            lengths: Lengths { endpoint: Length::m(2), near: Length::m(2), far: Length::m(2) },
        },
        kind,
    };
    config.build().expect("the network of a test is right")
}

/// Builds a 3 x 3 torus with a target at every adapter and `hosts` hosts. Vertices: adapters 0 to
/// 8, targets 9 to 17, hosts.
pub(crate) fn torus(hosts: u32) -> Graph {
    network(Kind::Torus { dimensions: vec![3, 3] }, hosts, 9)
}

/// Distances that are advertised at once and never expire.
pub(crate) fn distances() -> DistanceConfig {
    DistanceConfig {
        infinity: 64,
        period: Span::MAX,
        hold: Span::MAX,
        trigger_gap: Span::us(20),
        candidates: 6,
        horizon: Horizon::PoisonedReverse,
    }
}

/// ISR without marks.
pub(crate) fn routes(policy: Policy) -> RouteConfig {
    RouteConfig {
        policy,
        is_symmetric: true,
        has_header: true,
        ewma_weight: 512,
        ecn_threshold: Some(Bytes::kib(32)),
        marks_answers: false,
        stretch_max: 1,
        stale_after: Span::ms(1),
        teams: false,
        distance: distances(),
    }
}

/// Builds the command of an I/O of session 0 from `source` to the first drive of `target`.
pub(crate) fn command(operation: Operation, bytes: u32, source: VertexId, target: VertexId) -> Packet {
    Packet {
        tag: Tag::default(),
        request: RequestId(0),
        kind: PacketKind::Command,
        operation,
        address: 0,
        bytes,
        payload: 0,
        frame: 170,
        source,
        target,
        drive: DriveId(0),
        trail: Trail::default(),
        status: Outcome::Success,
        credit: 0,
        rank: 0,
        ingress: 0,
        marked: false,
        length: 0,
        stream: 0,
    }
}

/// Builds a packet of a read's answer, of session `session`, that has just left the target's
/// adapter with an empty trail.
pub(crate) fn read_data(session: u32, frame: u32) -> Packet {
    Packet {
        tag: Tag { session: SessionId(session), ..Tag::default() },
        kind: PacketKind::ReadData { last: true },
        frame,
        payload: frame,
        ..command(Operation::Read, 4096, VertexId(0), VertexId(1))
    }
}

/// Reads of up to 4 KiB reserve 1 Gb/s, others 10; nothing is over-committed.
pub(crate) fn reservation() -> ReservationConfig {
    ReservationConfig {
        estimates: vec![
            Estimate { bytes_max: Bytes::kib(4), rate: Rate::gbps(1) },
            Estimate { bytes_max: Bytes::kib(128), rate: Rate::gbps(10) },
        ],
        over_commitment: vec![OverCommitment { headroom_min: 0, factor: 1024 }],
        limit: 1024,
        is_conservative: false,
        fills_at_booked: true,
        burst: Bytes::new(9_000),
        classes: 64,
        lapse: Span::ms(10),
        control_delay: Span::ZERO,
        data_end_reads: false,
        passes_rejected: false,
    }
}
