//! Plans of the room `san`: hosts and drives joined by a switched or a switchless network.

mod ends;
mod estimate;
mod fabric;
pub(crate) mod fabric_file;
mod fault;
pub(crate) mod file;
mod io;
mod limits;
pub(crate) mod lsm;
mod print;
pub(crate) mod resolve;
mod warnings;

pub use estimate::Estimate;
pub use fabric::{Shape, SharedGraph};
pub use fabric_file::{DriveModelName, DriveStateName, FabricKindName, PlacementName};
pub(crate) use print::file_of;

use crate::blox::file::{AddressesName, IoArrivalsName};
use crate::blox::{BlockReplay, Flash, PresetName};
use crate::plan::Run;
use base::{Bytes, Span, Time};
use san::cost::Prices;
use san::egress::SchedulingConfig;
use san::host::HostConfig;
use san::reserve::ReservationConfig;
use san::route::RouteConfig;
use san::target::TargetConfig;
use topology::{LinkId, VertexId};
use workload::fio::PlayConfig;
use workload::imitation::ImitationConfig;
use workload::lsm::LsmConfig;

/// Hosts and drives on a network, with their load.
#[derive(Clone, Debug, PartialEq)]
pub struct San {
    /// With the techniques, or without those that are off.
    pub design: crate::DesignName,
    /// The network.
    pub fabric: SanFabric,
    /// The drives of every target.
    pub drives: Drives,
    /// Numbers of the drives in place of their preset's, as `rackweave fit` writes them.
    pub flash: Option<Flash>,
    /// Routing of I/Os.
    pub routing: RouteConfig,
    /// Bandwidth for answers; `None` when none is booked.
    pub reservation: Option<ReservationConfig>,
    /// Queues of every port.
    pub scheduling: SchedulingConfig,
    /// Every host, its place and sessions left out.
    pub host: HostConfig,
    /// Every target, its drives and sessions left out.
    pub target: TargetConfig,
    /// Software at both ends.
    pub ends: EndTimes,
    /// The load.
    pub io: SanIo,
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
    /// From one frame that an adapter forwards to the next, at least.
    pub adapter_gap: Span,
    /// One pass of a packet through a switch.
    pub switch_latency: Span,
    /// One crossing between a target and its adapter.
    pub board_latency: Span,
    /// One crossing of a packet between two cards of an adapter.
    pub card_crossing: Span,
    /// Cable ports of a card.
    pub card_ports: u32,
    /// From the failure or return of a link until the parts at its ends notice.
    pub detection: Span,
    /// Every output queue, in bytes on the wire.
    pub queue: Bytes,
    /// Payload of the largest Ethernet frame: IP, TCP and what they carry.
    pub mtu: Bytes,
}

/// The drives of every target. Nodes of records are hosts first, in the order of their vertices,
/// then drives: drive `d` of the target that is the `t`-th vertex of its kind is the node
/// `hosts + t * per_target + d`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drives {
    /// Of each target.
    pub per_target: u32,
    /// Model of the drive.
    pub preset: PresetName,
    /// How they were used before.
    pub state: DriveStateName,
    /// How much of them is simulated.
    pub model: DriveModelName,
    /// What a host sees of each.
    pub capacity: Bytes,
    /// Write buffer of a quick one without numbers of its own.
    pub buffer: Bytes,
}

/// Software at the two ends of a session, as latency: cores are never short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTimes {
    /// Latency from the initiator to its link, for each packet.
    pub host_send: Span,
    /// Latency from the response to the application.
    pub host_complete: Span,
    /// Time of copies and checksums at both ends for each 4 KiB of an I/O.
    pub per_4_kib: Span,
    /// Latency from the target's link to its program, for each packet.
    pub target_receive: Span,
    /// Latency from the target's program to its link, for each packet.
    pub target_send: Span,
}

/// The load. Clients are hosts, volumes are drives.
#[derive(Clone, Debug, PartialEq)]
pub struct SanIo {
    /// What is played.
    pub load: SanLoad,
    /// How much of each drive is used, from its first byte on.
    pub footprint: Bytes,
}

/// What is played on a SAN.
#[derive(Clone, Debug, PartialEq)]
pub enum SanLoad {
    /// Single reads and writes of one size.
    Requests {
        /// All of it.
        config: workload::storage::Config,
        /// Offered load of all hosts, in requests a second; `None` in a closed loop.
        requests_per_second: Option<f64>,
    },
    /// Reads and writes of several sizes, as a fio job.
    Mixed {
        /// As given.
        mixed: MixedSizes,
        /// As it is played.
        play: PlayConfig,
    },
    /// A fio job file.
    Jobs {
        /// The file, as written.
        file: String,
        /// SHA-256 of its jobs, hex.
        digest: String,
        /// As it is played.
        play: PlayConfig,
    },
    /// A block trace.
    Trace(BlockReplay),
    /// A load with the statistics of a trace.
    Imitation {
        /// Of which.
        name: String,
        /// As it is played.
        config: ImitationConfig,
    },
    /// Key-value stores.
    Stores(Box<LsmConfig>),
}

/// Reads and writes of several sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedSizes {
    /// Sizes with percentages that add up to 100.
    pub sizes: Vec<(Bytes, u32)>,
    /// Share of writes.
    pub write_share: f64,
    /// Distribution of addresses.
    pub addresses: AddressesName,
    /// Exponent of a skew.
    pub theta: f64,
    /// Arrival process.
    pub arrivals: IoArrivalsName,
    /// Requests that each host keeps outstanding at most.
    pub depth: u32,
    /// What all hosts offer together; `None` in a closed loop.
    pub requests_per_second: Option<f64>,
    /// The only drive of the load.
    pub drive: Option<u32>,
}

/// Something that breaks or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanFault {
    /// Time from the start of the run.
    pub at: Time,
    /// The part that breaks or returns.
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
        match &self.io.load {
            SanLoad::Trace(replay) => Some(replay.trace.requests.len() as u64),
            _ => self.io.limits().0,
        }
    }
}
