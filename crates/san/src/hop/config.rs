//! What a hop has to know.

use crate::egress::SchedulingConfig;
use crate::reserve::ReservationConfig;
use crate::route::{Neighbour, RouteConfig};
use base::{Bytes, Seed};
use topology::VertexId;
use transport::config::Dcqcn;

/// Everything that a hop has to know. Its techniques can be turned off one by one: another
/// [`crate::route::Policy`], no `reservation`, [`SchedulingConfig::Fifo`].
#[derive(Clone, Debug, PartialEq)]
pub struct HopConfig {
    /// Which vertex it is, below 65,536.
    pub here: VertexId,
    /// What is at its ports.
    pub neighbours: Vec<Neighbour>,
    /// How many vertices the network has.
    pub vertices: usize,
    /// How many drives.
    pub drives: usize,
    /// Routing.
    pub route: RouteConfig,
    /// Eager bandwidth reservation, which needs `route.is_symmetric`.
    pub reservation: Option<ReservationConfig>,
    /// Queues.
    pub scheduling: SchedulingConfig,
    /// Buffer of each port; without a meaning where `lossless` has thresholds.
    pub buffer: Bytes,
    /// Priority flow control and DCQCN's marks; `None`: a full buffer drops.
    pub lossless: Option<LosslessConfig>,
    /// What a response capsule without hops in its trail takes on the wire: hops make such
    /// responses when they refuse a command.
    pub response_frame: u32,
}

/// What makes a hop lossless (IEEE 802.1Qbb).
#[derive(Clone, Debug, PartialEq)]
pub struct LosslessConfig {
    /// When ports are paused and packets are marked.
    pub dcqcn: Dcqcn,
    /// By port: what may still come in once its neighbour is told to pause.
    pub headrooms: Vec<Bytes>,
    /// Of the marks.
    pub seed: Seed,
}

/// What a hop has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets that the buffer had no room for.
    pub dropped_full: u64,
    /// Packets that knew no way.
    pub dropped_no_route: u64,
    /// Packets that had been at too many hops.
    pub dropped_trail_full: u64,
    /// Commands that were refused for want of bandwidth.
    pub rejected: u64,
    /// Commands that were answered because there was no way.
    pub unreachable: u64,
    /// Answers that left the way of their request here.
    pub detoured: u64,
    /// Packets marked.
    pub marked: u64,
    /// Pause frames sent, those that let the neighbour go on not counted.
    pub pauses: u64,
    /// Answers that the policer held back.
    pub held: u64,
    /// Distances told.
    pub advertised: u64,
}

impl HopCounts {
    /// All packets that ended here.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_no_route + self.dropped_trail_full
    }
}
