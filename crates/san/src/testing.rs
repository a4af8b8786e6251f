//! Networks and settings that several tests use.

use crate::route::{DistanceConfig, Horizon, Policy, RouteConfig};
use base::{Bytes, Length, Rate, Span};
use topology::{Cabling, Config, Endpoints, Graph, Kind, Lengths, Placement, Ports};

/// A network of 100 Gb/s links with a target at every place of a switchless one, or `targets` of them in a switched one.
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

/// A 3 x 3 torus with a target at every adapter and `hosts` hosts. Vertices: adapters 0 to 8, targets 9 to 17, hosts.
pub(crate) fn torus(hosts: u32) -> Graph {
    network(Kind::Torus { dimensions: vec![3, 3] }, hosts, 9)
}

/// Told at once, kept for ever.
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
        distance: distances(),
    }
}
