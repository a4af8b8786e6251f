//! The network around EDM's programs.

use super::Background;
use base::{NodeId, Rate, Span, Time};
use edm::Config;
use hardware::DramConfig;

/// What happens to the hardware, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time of the fault.
    pub at: Time,
    /// The fault.
    pub kind: FaultKind,
}

/// What can happen to the hardware. Nothing comes back within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The link of a node to the primary switch dies, or its scrambler sees corruption and disables
    /// it (paper 3.3).
    LinkDown(NodeId),
    /// A switch dies: 0 is the primary, 1 the backup.
    SwitchDown(usize),
    /// A node dies.
    NodeDown(NodeId),
}

/// The network around the programs.
#[derive(Clone, Debug, PartialEq)]
pub struct EdmRigConfig {
    /// The design.
    pub edm: Config,
    /// Compute and memory nodes, one port each; at most 512.
    pub nodes: u32,
    /// Every link.
    pub rate: Rate,
    /// Of one hop.
    pub propagation: Span,
    /// PMA, PMD and transceiver, one crossing.
    pub transceiver: Span,
    /// Every node's memory.
    pub memory: DramConfig,
    /// Whether every node has a second link to a backup switch that runs in step.
    pub redundant: bool,
    /// What breaks.
    pub faults: Vec<Fault>,
    /// Ordinary frames on the same links.
    pub background: Option<Background>,
    /// Whether every message is encoded to blocks and back; a difference panics.
    pub wire_check: bool,
}
