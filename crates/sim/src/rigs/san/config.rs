//! What a storage network is made of, as its rig needs it.

use base::{Seed, Time};
use hardware::ssd::{Precondition, QuickConfig, SolidStateConfig};
use nvme::wire::MtuError;
use plan::san::{EndTimes, Passing};
use san::DriveId;
use san::egress::SchedulingConfig;
use san::host::{HostConfig, HostError};
use san::reserve::ReservationConfig;
use san::route::RouteConfig;
use san::target::{TargetConfig, TargetError};
use std::sync::Arc;
use topology::{Graph, LinkId, VertexId};

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
    /// An adapter, a switch or a target: all its links. What a hop had queued and learnt is gone; a
    /// target keeps its data.
    Vertex(VertexId),
    /// A drive: it answers nothing, and what it was doing is not done.
    Drive(DriveId),
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time of the fault.
    pub at: Time,
    /// The part that breaks or comes back.
    pub what: FaultKind,
    /// Whether it works from then on.
    pub is_up: bool,
}

/// A storage network with its drives.
#[derive(Clone, Debug)]
pub struct SanRigConfig {
    /// Vertices and links, all of them working. Hosts are the nodes from 0 on; drive `d` of target
    /// `t` comes `t * drives.per_target + d` after the last host.
    pub graph: Arc<Graph>,
    /// How parts pass packets on.
    pub passing: Passing,
    /// Software of both ends.
    pub ends: EndTimes,
    /// Of every target.
    pub drives: DrivesConfig,
    /// Every hop.
    pub hop: HopPolicy,
    /// Every host; its place and sessions are the rig's to say: one with each drive.
    pub host: HostConfig,
    /// Every target; its drives, sessions and lanes are the rig's to say.
    pub target: TargetConfig,
    /// What breaks, in any order.
    pub faults: Vec<Fault>,
    /// Of the marks of hops.
    pub seed: Seed,
    /// What is checked during the run.
    pub checks: Checks,
}

/// The drives of every target.
#[derive(Clone, Debug)]
pub struct DrivesConfig {
    /// Of each target.
    pub per_target: u32,
    /// What each drive is.
    pub model: DriveModel,
}

/// What every hop decides by.
#[derive(Clone, Debug)]
pub struct HopPolicy {
    /// Which way packets go.
    pub route: RouteConfig,
    /// Bandwidth for answers; `None` when none is booked.
    pub reservation: Option<ReservationConfig>,
    /// Queues of every port.
    pub scheduling: SchedulingConfig,
}

/// Checks of a run as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Whether the order of acknowledged writes is checked, block by block.
    pub write_order: bool,
    /// Whether every packet is encoded and decoded on its way.
    pub wire: bool,
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
    /// A host refuses its numbers.
    #[error("the hosts: {0}")]
    Host(#[from] HostError),
    /// A target refuses its numbers.
    #[error("the targets: {0}")]
    Target(#[from] TargetError),
    /// Packets have no room for data.
    #[error("the wire: {0}")]
    Wire(#[from] MtuError),
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
