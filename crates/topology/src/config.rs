//! The parameters of every kind of network, without defaults: these are in `plan`.

use crate::grid::Grid;
use base::{Length, Rate};
use std::fmt;

/// The shape of the fabric, which joins the endpoints (switched) or the storage nodes' adapters
/// (switchless).
///
/// Adapters and switches have the first ids. Endpoints follow, targets before hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Switched: one top-of-rack switch.
    SingleSwitch,
    /// Switched: several top-of-rack switches that share no cable; every endpoint is cabled to
    /// each.
    RedundantSwitches {
        /// Number of switches, at least 2.
        switches: u32,
    },
    /// Switched: two layers, every leaf cabled to every spine.
    LeafSpine {
        /// Number of switches to which endpoints are cabled.
        leaves: u32,
        /// Number of switches to which leaves are cabled.
        spines: u32,
        /// Maximum endpoints of a leaf.
        endpoints_per_leaf: u32,
    },
    /// Switched: a folded Clos network of equal switches with full bisection bandwidth, the m-port
    /// n-tree of Lin, Chung and Huang (IPDPS 2004). Three layers are the fat tree of Al-Fares et
    /// al. (SIGCOMM 2008), two the one of the paper, 5.3.
    FatTree {
        /// Ports of a switch that the tree uses, even.
        radix: u32,
        /// Layers of switches, at least 1; `2 * (radix / 2)^layers` endpoints.
        layers: u32,
    },
    /// Switchless: a row.
    DaisyChain {
        /// Number of adapters.
        nodes: u32,
    },
    /// Switchless: a cycle.
    Ring {
        /// Number of adapters.
        nodes: u32,
    },
    /// Switchless: two rings of `nodes / 2`, and a rung between each adapter of one and its twin on
    /// the other. Three ports per adapter, like the paper's dual ring (3.2, and 300 GbE in 5.5);
    /// two rings over the same neighbours are a [`Kind::Ring`] with 2 cables.
    DualRing {
        /// Number of adapters, even, at least 4.
        nodes: u32,
    },
    /// Switchless: a grid of any number of dimensions. All dimensions 2: a hypercube.
    Mesh {
        /// Adapters in each dimension.
        dimensions: Vec<u32>,
    },
    /// Switchless: a grid that wraps around in every dimension. A dimension of 2 has two cables
    /// between its two adapters, so that every adapter has 2 cables per dimension: four for the
    /// four nodes of the paper, 5.1.
    Torus {
        /// Adapters in each dimension.
        dimensions: Vec<u32>,
    },
    /// Switchless: every adapter is cabled to every other one.
    FullMesh {
        /// Number of adapters.
        nodes: u32,
    },
    /// Switchless: fully meshed groups that are fully meshed with each other (Kim et al., ISCA
    /// 2008). Each pair of groups has the same number of cables, as many as the global ports allow:
    /// `routers * global_cables / (groups - 1)`, rounded down. Remaining ports stay free. With 3
    /// routers, 3 global cables and 9 groups (27 nodes), each group has 9 global ports and uses 8.
    /// A group's cable `c` leads to the group `c + 1` positions ahead and belongs to router `c /
    /// global_cables`, the relative arrangement of Camarero et al. (ACM TACO 2014).
    Dragonfly {
        /// Adapters per group.
        routers: u32,
        /// Ports of an adapter for other groups.
        global_cables: u32,
        /// Number of groups, at least 2.
        groups: u32,
    },
}

impl Kind {
    /// Returns whether its vertices are joined by switches instead of adapters.
    pub fn is_switched(&self) -> bool {
        matches!(
            self,
            Kind::SingleSwitch | Kind::RedundantSwitches { .. } | Kind::LeafSpine { .. } | Kind::FatTree { .. }
        )
    }

    /// Returns its coordinate system, or `None` if it is not a chain, ring, dual ring, mesh or
    /// torus.
    pub fn grid(&self) -> Option<Grid> {
        let (sizes, wraps) = match self {
            Kind::DaisyChain { nodes } => (vec![*nodes], vec![false]),
            Kind::Ring { nodes } => (vec![*nodes], vec![true]),
            Kind::DualRing { nodes } => (vec![*nodes / 2, 2], vec![true, false]),
            Kind::Mesh { dimensions } => (dimensions.clone(), vec![false; dimensions.len()]),
            Kind::Torus { dimensions } => (dimensions.clone(), vec![true; dimensions.len()]),
            _ => return None,
        };
        Some(Grid { sizes, wraps })
    }
}

/// Formats sizes as in `4x1x3`.
pub(crate) fn by(sizes: &[u32]) -> String {
    sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::SingleSwitch => write!(out, "single switch"),
            Kind::RedundantSwitches { switches } => write!(out, "{switches} redundant switches"),
            Kind::LeafSpine { leaves, spines, .. } => write!(out, "leaf-spine of {leaves} leaves and {spines} spines"),
            Kind::FatTree { radix, layers } => write!(out, "{layers}-layer fat tree of {radix}-port switches"),
            Kind::DaisyChain { nodes } => write!(out, "daisy chain of {nodes}"),
            Kind::Ring { nodes } => write!(out, "ring of {nodes}"),
            Kind::DualRing { nodes } => write!(out, "dual ring of {nodes}"),
            Kind::Mesh { dimensions } => write!(out, "{} mesh", by(dimensions)),
            Kind::Torus { dimensions } => write!(out, "{} torus", by(dimensions)),
            Kind::FullMesh { nodes } => write!(out, "full mesh of {nodes}"),
            Kind::Dragonfly { routers, groups, .. } => write!(out, "dragonfly of {groups} groups of {routers}"),
        }
    }
}

/// Placement of endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Fills each switch or adapter before the next one.
    Packed,
    /// One endpoint per switch or adapter, round robin.
    Spread,
}

/// Hosts and targets of the network.
///
/// In a switched fabric every endpoint is a vertex with cables to a switch. In a switchless one the
/// adapters belong to the storage nodes: target `i` is behind adapter `i` on a board, and a host is
/// cabled to free ports of an adapter (paper, 4.6, "Client Connectivity"). With neither hosts nor
/// targets, a switchless graph consists of its adapters only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Number of clients.
    pub hosts: u32,
    /// Number of storage nodes; in a switchless fabric 0, or at most one per adapter.
    pub targets: u32,
    /// Their distribution over leaf switches, and that of hosts over adapters.
    pub placement: Placement,
}

/// Number of ports of each vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Ports of a host, and of a target in a switched fabric.
    pub endpoint: u32,
    /// Ports of an adapter, its radix.
    pub adapter: u32,
    /// Ports of a switch, its radix.
    pub switch: u32,
}

/// Lengths of cables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// From a host or target to its switch or adapter.
    pub endpoint: Length,
    /// To a neighbour in a chain, ring or grid, within a group of a dragonfly, between layers of
    /// switches.
    pub near: Length,
    /// Around a ring or torus, between groups of a dragonfly, to the topmost of three or more
    /// layers.
    pub far: Length,
}

/// The properties of the links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cabling {
    /// Rate of every cable.
    pub rate: Rate,
    /// Rate between a target and its adapter in the same node.
    pub board_rate: Rate,
    /// Parallel cables between neighbours of the fabric.
    pub fabric_cables: u32,
    /// Parallel cables from an endpoint to its switch (to each of its switches) or adapter.
    pub endpoint_cables: u32,
    /// Lengths of the cables.
    pub lengths: Lengths,
}

/// The parameters of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The shape.
    pub kind: Kind,
    /// The endpoints.
    pub endpoints: Endpoints,
    /// Ports of the vertices.
    pub ports: Ports,
    /// The links.
    pub cabling: Cabling,
}
