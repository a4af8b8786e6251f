//! What a storage network is made of, as its rig needs it.

use base::{Seed, Span, Time};
use hardware::ssd::{Precondition, QuickConfig, SolidStateConfig};
use san::DriveId;
use std::sync::Arc;
use topology::{Graph, LinkId, VertexId};

/// How parts of the network pass packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// One pass of a packet through an adapter.
    pub adapter_latency: Span,
    /// One pass of a packet through a switch.
    pub switch_latency: Span,
    /// One crossing between a target and its adapter.
    pub board_latency: Span,
}

/// Software of the two ends of a session, as latency: cores are never short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTimes {
    /// From the initiator to its link, each packet.
    pub host_send: Span,
    /// From the response to the application.
    pub host_complete: Span,
    /// Copies and checksums at both ends for each 4 KiB of an I/O, all of it at the end.
    pub per_4_kib: Span,
    /// From the target's link to its program, each packet.
    pub target_receive: Span,
    /// From the target's program to its link, each packet.
    pub target_send: Span,
}

/// Which model answers for a drive.
#[derive(Clone, Debug)]
pub enum DriveModel {
    /// The whole drive: flash, translation, collection.
    Whole {
        /// Its parts.
        config: Box<SolidStateConfig>,
        /// How it was used before.
        precondition: Option<Precondition>,
    },
    /// A few sums with the same latencies.
    Quick(QuickConfig),
}

/// What breaks, or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A cable. What is on it is lost.
    Link(LinkId),
    /// An adapter, a switch or a target: all its links. What a hop had queued and learnt is gone; a target keeps its data.
    Vertex(VertexId),
    /// A drive: it answers nothing, and what it was doing is not done.
    Drive(DriveId),
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// What.
    pub what: FaultKind,
    /// Whether it works from then on.
    pub is_up: bool,
}

/// A storage network with its drives.
#[derive(Clone, Debug)]
pub struct SanRigConfig {
    /// Vertices and links, all of them working. Hosts are the nodes from 0 on; drive `d` of target `t` comes `t * drives_per_target + d` after the last host.
    pub graph: Arc<Graph>,
    /// How parts pass packets on.
    pub passing: Passing,
    /// Software of both ends.
    pub ends: EndTimes,
    /// Of each target.
    pub drives_per_target: u32,
    /// What each drive is.
    pub drive: DriveModel,
    /// From the failure or return of a link until the hops at its ends notice.
    pub detection: Span,
    /// What breaks, in any order.
    pub faults: Vec<Fault>,
    /// Whether the order of acknowledged writes is checked, block by block.
    pub checks_write_order: bool,
    /// Whether every packet is encoded and decoded on its way.
    pub wire_check: bool,
    /// For whatever is random.
    pub seed: Seed,
}

/// Why a storage network cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SanBuildError {
    /// A drive's numbers do not fit each other, or its state cannot be reached.
    #[error("the drives: {reason}")]
    Drive {
        /// What the drive says.
        reason: String,
    },
    /// More than the room's identifiers can name.
    #[error("{what}: {got}, and at most {max} can be told apart")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        got: u64,
        /// How many there can be.
        max: u64,
    },
}
