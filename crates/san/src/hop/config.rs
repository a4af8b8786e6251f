//! The configuration and the counters of a hop.

use crate::egress::SchedulingConfig;
use crate::reserve::ReservationConfig;
use crate::route::{Neighbour, RouteConfig};
use base::{Bytes, Seed};
use topology::VertexId;
use transport::config::Dcqcn;

/// The configuration of a hop. Its techniques can be disabled one by one: another
/// [`crate::route::Policy`], no `reservation`, [`SchedulingConfig::Fifo`].
#[derive(Clone, Debug, PartialEq)]
pub struct HopConfig {
    /// The hop's vertex, below 65,536.
    pub here: VertexId,
    /// The neighbour at each port.
    pub neighbours: Vec<Neighbour>,
    /// Number of vertices of the network.
    pub vertices: usize,
    /// Number of drives of the network.
    pub drives: usize,
    /// Routing.
    pub route: RouteConfig,
    /// Eager bandwidth reservation, which needs `route.is_symmetric`.
    pub reservation: Option<ReservationConfig>,
    /// Scheduling of the queues.
    pub scheduling: SchedulingConfig,
    /// Buffer of each port; unused if `lossless` has thresholds.
    pub buffer: Bytes,
    /// Priority flow control and DCQCN's marks; `None`: a full buffer drops.
    pub lossless: Option<LosslessConfig>,
    /// Size of a response capsule without hops in its trail, bytes on the wire: hops send such
    /// responses when they refuse a command.
    pub response_frame: u32,
}

/// The configuration of lossless operation (IEEE 802.1Qbb).
#[derive(Clone, Debug, PartialEq)]
pub struct LosslessConfig {
    /// The thresholds at which ports are paused and packets are marked.
    pub dcqcn: Dcqcn,
    /// By port: maximum bytes that arrive after a pause was sent to its neighbour.
    pub headrooms: Vec<Bytes>,
    /// The seed of random marking.
    pub seed: Seed,
}

/// The counters of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped by a full buffer.
    pub dropped_full: u64,
    /// Packets dropped without a route.
    pub dropped_no_route: u64,
    /// Packets dropped with a full trail.
    pub dropped_trail_full: u64,
    /// Commands refused for lack of bandwidth.
    pub rejected: u64,
    /// Commands answered for lack of a route.
    pub unreachable: u64,
    /// Answers that left the path of their request here.
    pub detoured: u64,
    /// Packets marked.
    pub marked: u64,
    /// Pause frames sent, not counting those that resume the neighbour.
    pub pauses: u64,
    /// Answers that the policer held back.
    pub held: u64,
    /// Distance advertisements sent.
    pub advertised: u64,
}

impl HopCounts {
    /// Returns the number of packets dropped here.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_no_route + self.dropped_trail_full
    }
}
