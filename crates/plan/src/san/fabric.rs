//! The fabric of a SAN: from keys to a graph, and back.

use super::fabric_file::FabricKindName;
use super::{Passing, SanFabric};
use crate::error::Problem;
use crate::file::FabricFile;
use crate::quantity::{Plain, Quantity};
use crate::resolve::Resolver;
use crate::table::{part, variants};
use base::{Bytes, Rate};
use std::sync::Arc;
use topology::{BuildError, Cabling, Config, Endpoints, Graph, Hop, Kind, Lengths, Ports, VertexKind};

/// A graph that the copies of a plan share.
pub type SharedGraph = Arc<Graph>;

/// What a fabric is built from.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Parameters.
    Config {
        /// All of them, rates of whole teams of cables.
        config: Box<Config>,
    },
    /// A file.
    Custom {
        /// The file, as written.
        file: String,
        /// SHA-256 of the graph as [`topology::file::write`] writes it, hex.
        digest: String,
    },
}

/// Ports that are 100 GbE (paper, 3.1).
const RATE: Rate = Rate::gbps(100);
/// More ports than any part has: radixes are given, or counted afterwards.
const PORTS_UNBOUNDED: u32 = 1 << 20;

impl Resolver<'_> {
    /// The network of a SAN, `None` after a complaint.
    pub(crate) fn san_fabric(&mut self, file: &FabricFile) -> Option<SanFabric> {
        let passing = self.passing(file);
        let kind = file.kind?;
        let (shape, graph) = match kind {
            FabricKindName::Custom => self.custom_graph(file)?,
            _ => self.graph_of(file, kind)?,
        };
        self.check_graph(&graph);
        Some(SanFabric { shape, graph, trunk: file.trunk(), passing })
    }

    pub(super) fn passing(&mut self, file: &FabricFile) -> Passing {
        let passing = file.passing().expect("each of its keys has a default");
        let least = Bytes::new(passing.mtu.count() * 2);
        if passing.queue < least {
            let allowed = format!("at least {least}, two of the largest frames");
            self.report("fabric.queue", Problem::out_of_range(passing.queue, allowed));
        }
        passing
    }

    fn graph_of(&mut self, file: &FabricFile, kind: FabricKindName) -> Option<(Shape, SharedGraph)> {
        let mut config = self.topology(file, kind)?;
        match build(&mut config, file) {
            Ok(graph) => Some((Shape::Config { config: Box::new(config) }, Arc::new(graph))),
            Err(error) => {
                let key = self.key_of(&error);
                self.conflict(&key, error.to_string());
                None
            }
        }
    }

    /// The key of a refusal, if the file has it.
    fn key_of(&self, error: &BuildError) -> String {
        let key = match error {
            BuildError::PortsOverRadix { kind: VertexKind::Host | VertexKind::Target, .. } => "endpoint_ports",
            BuildError::PortsOverRadix { kind, .. } if *kind == VertexKind::Switch => "switch_ports",
            BuildError::PortsOverRadix { .. } => "adapter_ports",
            BuildError::OutOfRange { field, .. } | BuildError::Odd { field, .. } => field,
            BuildError::DimensionTooSmall { .. } => "dimensions",
            BuildError::NoRoom { what: "targets", .. } => "targets",
            BuildError::NoRoom { .. } => "hosts",
            _ => return "fabric".into(),
        };
        let path = format!("fabric.{key}");
        if self.document.at(&path).is_some() { path } else { "fabric".into() }
    }

    fn topology(&mut self, file: &FabricFile, name: FabricKindName) -> Option<Config> {
        self.check_topology(file, name);
        let kind = file.topology_kind(name)?;
        Some(Config {
            endpoints: Endpoints {
                hosts: file.hosts?,
                targets: file.targets.or_else(|| adapters_of(&kind))?,
                placement: file.placement(),
            },
            ports: Ports {
                endpoint: file.endpoint_ports.unwrap_or(PORTS_UNBOUNDED),
                adapter: file.adapter_ports.unwrap_or(PORTS_UNBOUNDED),
                switch: file.switch_ports.unwrap_or(PORTS_UNBOUNDED),
            },
            cabling: cabling(file),
            kind,
        })
    }

    fn check_topology(&mut self, file: &FabricFile, name: FabricKindName) {
        if file.targets.is_none() && name.is_switched() {
            self.report("fabric", Problem::missing("targets", "how many storage nodes a switched fabric joins"));
        }
    }

    fn custom_graph(&mut self, file: &FabricFile) -> Option<(Shape, SharedGraph)> {
        let name = file.file.as_ref()?;
        let read = self.sources.graph(self.files, name);
        let shared = read.map_err(|problem| self.report("fabric.file", problem)).ok()?;
        if file.file_digest.as_ref().is_some_and(|digest| *digest != shared.digest) {
            let reason = format!("`{name}` has the digest {}: it is another graph", shared.digest);
            self.conflict("fabric.file_digest", reason);
        }
        Some((Shape::Custom { file: name.clone(), digest: shared.digest }, shared.graph))
    }

    fn check_graph(&mut self, graph: &Graph) {
        for kind in [VertexKind::Host, VertexKind::Target] {
            if graph.of_kind(kind).next().is_none() {
                self.conflict("fabric", format!("there is no {kind}: a SAN requires hosts and targets"));
            }
        }
    }
}

/// Cables; `rate` of teams, and of the crossing to a target what a team has, until the node's
/// cables were counted.
fn cabling(file: &FabricFile) -> Cabling {
    let rate = file.rate.map_or(RATE, Plain::plain);
    let team = Rate::bps(rate.as_bps().saturating_mul(u64::from(file.trunk())));
    Cabling {
        rate: team,
        board_rate: file.board_rate.map_or(team, Plain::plain),
        fabric_cables: file.fabric_cables(),
        endpoint_cables: file.endpoint_cables(),
        lengths: Lengths { endpoint: file.endpoint_length(), near: file.near_length(), far: file.far_length() },
    }
}

/// Builds it once to count what a file may leave open, the ports in use and what a node's cables
/// carry, and once more with that.
fn build(config: &mut Config, file: &FabricFile) -> Result<Graph, BuildError> {
    let graph = config.build()?;
    config.ports = Ports {
        endpoint: file.endpoint_ports.unwrap_or_else(|| ports_used(&graph, &[VertexKind::Host, VertexKind::Target])),
        adapter: file.adapter_ports.unwrap_or_else(|| ports_used(&graph, &[VertexKind::Adapter])),
        switch: file.switch_ports.unwrap_or_else(|| ports_used(&graph, &[VertexKind::Switch])),
    };
    if file.board_rate.is_none() && !config.kind.is_switched() {
        config.cabling.board_rate = node_rate(&graph, config.cabling.rate);
    }
    config.build()
}

/// Cables of the vertex of these kinds that has most; at least one.
fn ports_used(graph: &Graph, kinds: &[VertexKind]) -> u32 {
    let of_kinds = graph.vertex_ids().filter(|vertex| kinds.contains(&graph.vertex(*vertex).kind));
    let is_cable = |hop: &&Hop| graph.egress_port(hop.channel).is_some();
    of_kinds.map(|vertex| graph.hops(vertex).iter().filter(is_cable).count()).max().unwrap_or(0).max(1) as u32
}

/// What the cables between an adapter and others carry together, of the adapter that has most.
fn node_rate(graph: &Graph, cable: Rate) -> Rate {
    let fabric_cables = |adapter| {
        let to_adapters = graph.hops(adapter).iter().filter(|hop| graph.vertex(hop.to).kind == VertexKind::Adapter);
        to_adapters.count() as u64
    };
    let most = graph.of_kind(VertexKind::Adapter).map(fabric_cables).max().unwrap_or(1).max(1);
    Rate::bps(cable.as_bps().saturating_mul(most).min(topology::RATE_MAX.as_bps()))
}

/// How many adapters a switchless kind has; it is checked when it is built.
fn adapters_of(kind: &Kind) -> Option<u32> {
    let product = |sizes: &[u32]| sizes.iter().fold(1_u32, |product, size| product.saturating_mul(*size));
    match kind {
        Kind::DaisyChain { nodes } | Kind::Ring { nodes } | Kind::DualRing { nodes } | Kind::FullMesh { nodes } => {
            Some(*nodes)
        }
        Kind::Mesh { dimensions } | Kind::Torus { dimensions } => Some(product(dimensions)),
        Kind::Dragonfly { routers, groups, .. } => Some(routers.saturating_mul(*groups)),
        _ => None,
    }
}

variants! {
    FabricFile.kind: FabricKindName => Kind by topology_kind, write_kind {
        SingleSwitch,
        RedundantSwitches(switches),
        LeafSpine(leaves, spines, endpoints_per_leaf),
        FatTree(radix, layers),
        DaisyChain(nodes),
        Ring(nodes),
        DualRing(nodes),
        Mesh(dimensions),
        Torus(dimensions),
        FullMesh(nodes),
        Dragonfly(routers, global_cables, groups),
    } else Custom
}

part! {
    FabricFile => Passing by passing, write_passing {
        { adapter_latency, adapter_gap, switch_latency, board_latency, card_crossing, card_ports, detection, queue, mtu }
    }
}

/// The table that says all of `fabric`.
pub(crate) fn fabric_of(fabric: &SanFabric) -> FabricFile {
    let mut file = FabricFile::default();
    file.write_passing(&fabric.passing);
    match &fabric.shape {
        Shape::Custom { file: name, digest } => {
            file.kind = Some(FabricKindName::Custom);
            (file.file, file.file_digest) = (Some(name.clone()), Some(digest.clone()));
        }
        Shape::Config { config } => {
            file.write_kind(&config.kind);
            write_config(config, fabric.trunk, &mut file);
        }
    }
    file
}

fn write_config(config: &Config, trunk: u32, file: &mut FabricFile) {
    let Config { endpoints, ports, cabling, .. } = config;
    (file.hosts, file.targets) = (Some(endpoints.hosts), Some(endpoints.targets));
    file.placement = Some(Plain::written(endpoints.placement));
    file.endpoint_ports = Some(ports.endpoint);
    (file.adapter_ports, file.switch_ports) = (Some(ports.adapter), Some(ports.switch));
    file.rate = Some(Quantity(Rate::bps(cabling.rate.as_bps() / u64::from(trunk))));
    file.board_rate = (!config.kind.is_switched()).then_some(Quantity(cabling.board_rate));
    file.trunk = Some(trunk);
    (file.fabric_cables, file.endpoint_cables) = (Some(cabling.fabric_cables), Some(cabling.endpoint_cables));
    file.endpoint_length = Some(Quantity(cabling.lengths.endpoint));
    (file.near_length, file.far_length) = (Some(Quantity(cabling.lengths.near)), Some(Quantity(cabling.lengths.far)));
}
