//! Networks for tests, and a strategy over all kinds.

#![allow(dead_code, reason = "each test file uses some of it")]

use base::{Length, Rate};
use proptest::prelude::*;
use topology::{Cabling, Config, Endpoints, Graph, Kind, Lengths, Placement, Ports};

/// Returns a config with one cable of 100 Gb/s between neighbours, enough ports, and no endpoints.
pub fn bare(kind: Kind) -> Config {
    Config {
        kind,
        endpoints: Endpoints { hosts: 0, targets: 0, placement: Placement::Packed },
        ports: Ports { endpoint: 64, adapter: 1 << 16, switch: 1 << 16 },
        cabling: Cabling {
            rate: Rate::gbps(100),
            board_rate: Rate::gbps(500),
            fabric_cables: 1,
            endpoint_cables: 1,
            lengths: Lengths { endpoint: Length::m(1), near: Length::m(2), far: Length::m(5) },
        },
    }
}

/// Returns a config with these numbers of targets and hosts.
pub fn with_endpoints(kind: Kind, targets: u32, hosts: u32) -> Config {
    let placement = Placement::Packed;
    Config { endpoints: Endpoints { hosts, targets, placement }, ..bare(kind) }
}

pub fn torus(dimensions: &[u32]) -> Config {
    bare(Kind::Torus { dimensions: dimensions.to_vec() })
}

pub fn mesh(dimensions: &[u32]) -> Config {
    bare(Kind::Mesh { dimensions: dimensions.to_vec() })
}

pub fn built(config: &Config) -> Graph {
    config.build().unwrap_or_else(|error| panic!("{}: {error}", config.kind))
}

/// Small configs of every kind, with every place of a leaf taken.
pub fn any_config() -> impl Strategy<Value = Config> {
    (any_kind(), 1u32..3, 1u32..3).prop_map(|((kind, endpoints), fabric_cables, endpoint_cables)| {
        let mut config = with_endpoints(kind, endpoints / 2, endpoints - endpoints / 2);
        (config.cabling.fabric_cables, config.cabling.endpoint_cables) = (fabric_cables, endpoint_cables);
        config
    })
}

/// A kind, and the number of endpoints for which it has room (0 for a switchless one).
fn any_kind() -> impl Strategy<Value = (Kind, u32)> {
    let grid = || proptest::collection::vec(2u32..5, 1..4);
    prop_oneof![
        (2u32..14).prop_map(|endpoints| (Kind::SingleSwitch, endpoints)),
        (2u32..4, 2u32..14).prop_map(|(switches, endpoints)| (Kind::RedundantSwitches { switches }, endpoints)),
        (2u32..5, 1u32..4, 2u32..5).prop_map(|(leaves, spines, endpoints_per_leaf)| {
            (Kind::LeafSpine { leaves, spines, endpoints_per_leaf }, leaves * endpoints_per_leaf)
        }),
        (1u32..4, 1u32..4)
            .prop_map(|(half, layers)| { (Kind::FatTree { radix: 2 * half, layers }, 2 * half.pow(layers)) }),
        (2u32..14).prop_map(|nodes| (Kind::DaisyChain { nodes }, 0)),
        (2u32..14).prop_map(|nodes| (Kind::Ring { nodes }, 0)),
        (2u32..9).prop_map(|half| (Kind::DualRing { nodes: 2 * half }, 0)),
        grid().prop_map(|dimensions| (Kind::Mesh { dimensions }, 0)),
        grid().prop_map(|dimensions| (Kind::Torus { dimensions }, 0)),
        (2u32..10).prop_map(|nodes| (Kind::FullMesh { nodes }, 0)),
        (1u32..4, 1u32..4, 0u32..9).prop_map(|(routers, global_cables, groups)| {
            let groups = 2 + groups % (routers * global_cables);
            (Kind::Dragonfly { routers, global_cables, groups }, 0)
        }),
    ]
}

/// Returns the pictures of `docs/reference/topologies.md`: the name of each file in
/// `docs/images/topologies`, and its network.
pub fn documented() -> Vec<(&'static str, Config)> {
    vec![
        ("single-switch", with_endpoints(Kind::SingleSwitch, 4, 4)),
        ("redundant-switches", with_endpoints(Kind::RedundantSwitches { switches: 2 }, 4, 4)),
        ("leaf-spine", with_endpoints(Kind::LeafSpine { leaves: 4, spines: 2, endpoints_per_leaf: 3 }, 6, 6)),
        ("fat-tree", with_endpoints(Kind::FatTree { radix: 4, layers: 3 }, 8, 8)),
        ("daisy-chain", with_endpoints(Kind::DaisyChain { nodes: 4 }, 4, 1)),
        ("ring", bare(Kind::Ring { nodes: 8 })),
        ("dual-ring", bare(Kind::DualRing { nodes: 12 })),
        ("mesh", mesh(&[4, 3])),
        ("torus-2x2", with_endpoints(Kind::Torus { dimensions: vec![2, 2] }, 4, 2)),
        ("torus-3x3x3", torus(&[3, 3, 3])),
        ("full-mesh", bare(Kind::FullMesh { nodes: 6 })),
        ("dragonfly", bare(Kind::Dragonfly { routers: 3, global_cables: 3, groups: 9 })),
    ]
}
