//! Decisions that a policy of a user's own may take in place of RackBlox's: which request goes
//! first at a server's queue, which replica serves a read, and when a unit collects garbage.

use crate::collect::Urgency;
use crate::id::{Page, VssdId};
use crate::schedule::JobKind;
use base::{Decide, Decision, NodeId, Span, Time};
use std::sync::Arc;

/// A job joins the queue of a vSSD: the decision is its rank there. The least value goes first; of
/// equal ones, the job that has come first. The queue replaces FIFO, Deadline or Kyber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedJob {
    /// The server.
    pub server: NodeId,
    /// Its vSSD.
    pub vssd: VssdId,
    /// What the job does: a read, or a write of the cache to the flash.
    pub kind: JobKind,
    /// The page.
    pub page: Page,
    /// Time at which it came to the storage stack.
    pub arrived: Time,
    /// What it has spent in the network, and what its answer will probably spend (RackBlox, 3.4:
    /// Net + Predict).
    pub network: Span,
    /// Its place in the order of the queue's jobs, from 1.
    pub order: u64,
}

impl Decision for QueuedJob {
    type Answer = i64;
    const NAME: &'static str = "order";
    const NEUTRAL: i64 = 0;
}

/// A read passes the switch: the decision is whether the replica serves it, and not the vSSD that
/// it is addressed to. There is none for a vSSD that has no replica in the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPath {
    /// The vSSD that it is addressed to.
    pub own: Candidate,
    /// Its replica.
    pub replica: Candidate,
    /// Its place in the order of the reads that were decided about at this switch, from 1.
    pub order: u64,
}

/// A vSSD that may serve a read, as the switch knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The vSSD.
    pub vssd: VssdId,
    /// Its server.
    pub server: NodeId,
    /// Whether it collects garbage. Of the vSSD that is addressed: whether that was granted; of its
    /// replica: whether it has asked for it.
    pub is_collecting: bool,
    /// Whether the link to its server is up. What is sent to one that is down is lost.
    pub is_reachable: bool,
    /// Bytes that wait for that link.
    pub waiting_bytes: u64,
}

impl Decision for ReadPath {
    type Answer = bool;
    const NAME: &'static str = "replica";
    const NEUTRAL: bool = false;
}

/// A unit's ratio of free blocks is checked: the decision is whether the unit wants to collect
/// garbage. A unit that collects is asked too. A write that finds no free block makes its unit
/// collect at once, without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionCheck {
    /// The server.
    pub server: NodeId,
    /// The first vSSD of the unit.
    pub vssd: VssdId,
    /// Free blocks of all vSSDs of the unit.
    pub free: u64,
    /// Their blocks.
    pub owned: u64,
    /// Whether a soft wish can be denied, so that replicas take turns. Where it cannot, any wish
    /// begins a collection.
    pub is_coordinated: bool,
    /// Whether no request is expected.
    pub is_idle: bool,
    /// Whether the unit collects already.
    pub is_collecting: bool,
    /// The time of the check.
    pub now: Time,
}

impl Decision for CollectionCheck {
    type Answer = Option<Urgency>;
    const NAME: &'static str = "collect";
    const NEUTRAL: Option<Urgency> = None;
}

/// Policies of a user's own, where there are any.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Which job goes first at the queue of a vSSD.
    pub order: Option<Arc<dyn Decide<QueuedJob>>>,
    /// Which replica serves a read, at a switch that coordinates.
    pub replica: Option<Arc<dyn Decide<ReadPath>>>,
    /// When a unit collects.
    pub collect: Option<Arc<dyn Decide<CollectionCheck>>>,
}
