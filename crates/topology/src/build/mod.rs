//! Builds every [`Kind`](crate::Kind) from its parameters.

mod endpoints;
mod switched;
pub(crate) mod switchless;

use crate::builder::Builder;
use crate::config::{Config, Kind};
use crate::error::BuildError;
use crate::graph::{Graph, LINKS_MAX, RATE_MAX, VERTICES_MAX, VertexId, VertexKind};
use base::Length;

impl Config {
    /// Builds the graph.
    ///
    /// # Errors
    ///
    /// When a parameter is out of range, there are more endpoints than room for them, or a vertex
    /// needs more ports than it has. The error contains the numbers.
    pub fn build(&self) -> Result<Graph, BuildError> {
        self.check_cabling()?;
        let mut fabric = Fabric { config: self, builder: Builder::new() };
        let edge = fabric.lay()?;
        endpoints::attach(&mut fabric, &edge)?;
        fabric.builder.finish_as(Some(self.clone()))
    }

    fn check_cabling(&self) -> Result<(), BuildError> {
        let most = LINKS_MAX as u64;
        in_range("cabling.rate (bps)", self.cabling.rate.as_bps(), 1, RATE_MAX.as_bps())?;
        in_range("cabling.board_rate (bps)", self.cabling.board_rate.as_bps(), 1, RATE_MAX.as_bps())?;
        in_range("cabling.fabric_cables", u64::from(self.cabling.fabric_cables), 1, most)?;
        in_range("cabling.endpoint_cables", u64::from(self.cabling.endpoint_cables), 1, most)?;
        let endpoints = u64::from(self.endpoints.hosts) + u64::from(self.endpoints.targets);
        in_range("endpoints.hosts + endpoints.targets", endpoints, 0, VERTICES_MAX as u64)
    }
}

/// Checks a parameter before memory is allocated for it.
pub(crate) fn in_range(field: &'static str, got: u64, min: u64, max: u64) -> Result<(), BuildError> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(BuildError::OutOfRange { field, got, min, max }) }
}

/// A graph under construction.
struct Fabric<'a> {
    config: &'a Config,
    builder: Builder,
}

/// The attachment of endpoints.
enum Edge {
    /// Each endpoint to all of these vertices.
    All(Vec<VertexId>),
    /// Each endpoint to one of these vertices, each of which accepts this many.
    One(Vec<VertexId>, u32),
    /// To the free ports of these adapters.
    FreePorts(Vec<VertexId>),
}

impl Fabric<'_> {
    fn lay(&mut self) -> Result<Edge, BuildError> {
        match &self.config.kind {
            Kind::SingleSwitch => self.switches(1),
            Kind::RedundantSwitches { switches } => self.redundant(*switches),
            Kind::LeafSpine { leaves, spines, endpoints_per_leaf } => {
                self.leaf_spine(*leaves, *spines, *endpoints_per_leaf)
            }
            Kind::FatTree { radix, layers } => self.fat_tree(*radix, *layers),
            Kind::FullMesh { nodes } => self.full_mesh(*nodes),
            Kind::Dragonfly { routers, global_cables, groups } => self.dragonfly(*routers, *global_cables, *groups),
            Kind::DaisyChain { nodes } | Kind::Ring { nodes } => {
                in_range("nodes", u64::from(*nodes), 2, VERTICES_MAX as u64)?;
                self.grid()
            }
            Kind::DualRing { nodes } => {
                in_range("nodes", u64::from(*nodes), 4, VERTICES_MAX as u64)?;
                even("nodes", *nodes)?;
                self.grid()
            }
            Kind::Mesh { .. } | Kind::Torus { .. } => self.grid(),
        }
    }

    /// Adds `count` vertices, named by the first letter of their kind and numbered from `first`.
    fn add(&mut self, kind: VertexKind, first: u32, count: u32) -> Vec<VertexId> {
        let ports = match kind {
            VertexKind::Switch => self.config.ports.switch,
            VertexKind::Adapter => self.config.ports.adapter,
            VertexKind::Host | VertexKind::Target => self.config.ports.endpoint,
        };
        let letter = &kind.word()[..1];
        (first..first + count).map(|index| self.builder.vertex(kind, format!("{letter}{index}"), ports)).collect()
    }

    /// Joins two neighbours of the fabric with the configured number of cables.
    fn join(&mut self, ends: [VertexId; 2], length: Length) {
        for _ in 0..self.config.cabling.fabric_cables {
            self.builder.cable(ends, self.config.cabling.rate, length);
        }
    }

    /// Checks the number of cables of the fabric, which has `joins` pairs of neighbours.
    fn check_joins(&self, joins: u64) -> Result<(), BuildError> {
        let cables = joins.saturating_mul(u64::from(self.config.cabling.fabric_cables));
        in_range("cables of the fabric", cables, 0, LINKS_MAX as u64)
    }
}

fn even(field: &'static str, got: u32) -> Result<(), BuildError> {
    if got.is_multiple_of(2) { Ok(()) } else { Err(BuildError::Odd { field, got }) }
}
