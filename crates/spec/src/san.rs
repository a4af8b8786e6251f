//! Plans of the room `san`: hosts and drives joined by a switched or a switchless network.

mod fabric;
pub(crate) mod fabric_file;
mod fault;
pub(crate) mod file;
mod print;
pub(crate) mod resolve;
mod warnings;

pub use fabric::{Shape, SharedGraph};
pub use fabric_file::{DriveStateName, FabricKindName, PlacementName};
pub(crate) use print::file_of;

use crate::blox::PresetName;
use crate::plan::Run;
use base::{Bytes, Span, Time};
use san::cost::Prices;
use san::gimbal::GimbalConfig;
use san::route::RouteConfig;
use topology::{LinkId, VertexId};

/// Hosts and drives on a network, and who asks for what.
#[derive(Clone, Debug, PartialEq)]
pub struct San {
    /// With the techniques, or without those that are not asked for.
    pub design: crate::DesignName,
    /// The network.
    pub fabric: SanFabric,
    /// The drives of every target.
    pub drives: Drives,
    /// Which way I/Os take.
    pub routing: RouteConfig,
    /// How a target divides its drives.
    pub gimbal: GimbalConfig,
    /// What parts cost.
    pub prices: Prices,
    /// What is measured, and how long stragglers are waited for.
    pub run: Run,
    /// What breaks and what comes back, in order of time.
    pub faults: Vec<SanFault>,
    /// Whether it is checked that every read finds what was written last and acknowledged.
    pub check_write_order: bool,
}

/// The network of a SAN.
#[derive(Clone, Debug, PartialEq)]
pub struct SanFabric {
    /// What it is built from.
    pub shape: Shape,
    /// What that comes to.
    pub graph: SharedGraph,
    /// Cables of which each link is a team; rates of the graph are those of whole teams.
    pub trunk: u32,
    /// How parts pass packets on.
    pub passing: Passing,
}

/// How parts of a network pass packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// One pass of a packet through an adapter.
    pub adapter_latency: Span,
    /// One pass of a packet through a switch.
    pub switch_latency: Span,
    /// One crossing between a target and its adapter.
    pub board_latency: Span,
    /// Every output queue, in bytes on the wire.
    pub queue: Bytes,
    /// Payload of the largest Ethernet frame: IP, TCP and what they carry.
    pub mtu: Bytes,
}

/// The drives of every target. Nodes of records are hosts first, in the order of their vertices, then drives: drive `d` of the target that is the `t`-th vertex of its kind
/// is the node `hosts + t * per_target + d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drives {
    /// Of each target.
    pub per_target: u32,
    /// Whose geometry and times.
    pub preset: PresetName,
    /// How they were used before.
    pub state: DriveStateName,
    /// What a host sees of each.
    pub capacity: Bytes,
}

/// Something that breaks or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanFault {
    /// When.
    pub at: Time,
    /// What.
    pub part: SanPart,
    /// Whether it comes back; otherwise it breaks.
    pub is_repair: bool,
}

/// A part of a SAN that may break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SanPart {
    /// All links between two vertices.
    Links(Vec<LinkId>),
    /// An adapter, a switch or a target, with all its links.
    Vertex(VertexId),
    /// A drive, counted from 0 over all targets.
    Drive(u32),
}

impl San {
    /// How many requests a run makes, where the plan says so.
    pub fn requests(&self) -> Option<u64> {
        None
    }
}
