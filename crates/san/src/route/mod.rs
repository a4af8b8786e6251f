//! Routing: the choice of a packet's port.
//!
//! [`DistanceVector`] stores every neighbour's distances and the nearest ports to destinations;
//! [`DelayTables`] store the delays learned from answers; a [`Policy`] selects. [`Router`] combines
//! the three, for hops and for hosts with several uplinks alike (paper, 4.3: in a switched network
//! the host selects, in a switchless one every adapter does).

mod converge;
mod delay;
mod distance;
mod ecmp;
mod isr;
mod neighbour;
mod team;

pub use converge::converge;
pub use delay::DelayTables;
pub use distance::{Advertisement, Candidate, DistanceConfig, DistanceVector, Horizon};
pub use neighbour::{Neighbour, neighbours, peer};

use crate::id::{Port, Tag};
use crate::trail::Trail;
use base::{Bytes, Span, Time};
use topology::VertexId;

/// The selection of the port of an I/O's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// INT-assisted symmetric routing as the text of 4.3 describes it: least delay, then fewest
    /// hops, among paths within [`RouteConfig::stretch_max`].
    Isr,
    /// ISR as Algorithm 1 is printed: a port replaces the previous one only if it is no slower
    /// *and* nearer, so a faster port that is farther never does.
    IsrAsPrinted,
    /// Always the same shortest path: the one by the lowest port.
    ShortestPath,
    /// One of the shortest paths, by a hash.
    Ecmp(EcmpHash),
}

/// The hash key of equal-cost multipath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EcmpHash {
    /// The session, like flows over TCP.
    Session,
    /// The I/O.
    Io,
}

/// Parameters of routing. The paper mentions them without values (4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// The selection of a port.
    pub policy: Policy,
    /// Whether answers return along the path of their request. ISR and reservation require it;
    /// otherwise the policy routes answers too.
    pub is_symmetric: bool,
    /// Whether packets carry the ISR header, so that every hop lengthens them by
    /// [`crate::Trail::HOP_BYTES`].
    pub has_header: bool,
    /// Weight of a new delay in the moving average, of 1,024.
    pub ewma_weight: u16,
    /// A hop marks packets if more than this waits at their port; `None`: never.
    pub ecn_threshold: Option<Bytes>,
    /// Whether answers are marked too, in the entry of the hop that they pass. The paper marks on
    /// the submission path only.
    pub marks_answers: bool,
    /// Maximum number of hops by which ISR's path may exceed the shortest one, seen from the first
    /// hop that routes. Our choice: the paper has no bound. Up to 2, no path ends at a hop from
    /// which all paths lead back.
    pub stretch_max: u16,
    /// Time without updates after which a learned delay counts half, so that a port that was slow
    /// once is tried again. Our choice.
    pub stale_after: Span,
    /// Whether parallel links to one neighbour are a link aggregation group, of which a session
    /// uses one link by a hash (paper, 3.1).
    pub teams: bool,
    /// The distance vector.
    pub distance: DistanceConfig,
}

/// The router of a vertex.
#[derive(Clone, Debug)]
pub struct Router {
    here: VertexId,
    config: RouteConfig,
    distances: DistanceVector,
    delays: DelayTables,
    /// By port: all ports to the same neighbour, in order. Empty without link aggregation.
    teams: Vec<Vec<Port>>,
}

impl Router {
    /// Creates the router of `here` in a network of `vertices` vertices; it knows its neighbours
    /// only.
    pub fn new(here: VertexId, vertices: usize, neighbours: Vec<Neighbour>, config: &RouteConfig) -> Router {
        let delays = DelayTables::new(vertices, neighbours.len(), config.ewma_weight, config.stale_after);
        let teams = if config.teams { team::teams(&neighbours) } else { Vec::new() };
        let distances = DistanceVector::new(here, vertices, neighbours, &config.distance);
        Router { here, config: *config, distances, delays, teams }
    }

    /// Returns the distances.
    pub fn distances(&self) -> &DistanceVector {
        &self.distances
    }
    /// Returns the distances, to update them.
    pub fn distances_mut(&mut self) -> &mut DistanceVector {
        &mut self.distances
    }
    /// Returns the learned delays.
    pub fn delays(&self) -> &DelayTables {
        &self.delays
    }

    /// Returns the port for the first packet of an I/O, or `None` if every path leads through a hop
    /// of the trail, or there is none. The first choice writes the maximum length of the path into
    /// the trail.
    pub fn choose(&mut self, now: Time, destination: VertexId, tag: Tag, trail: &mut Trail) -> Option<Port> {
        self.distances.prepare(destination);
        let port = match self.config.policy {
            Policy::Isr => {
                let stretch_max = self.config.stretch_max;
                isr::choose(&self.distances, &mut self.delays, now, destination, trail, stretch_max)
            }
            Policy::IsrAsPrinted => isr::choose_as_printed(&self.distances, &self.delays, now, destination, trail),
            Policy::ShortestPath => ecmp::choose(&self.distances, destination, trail, 0),
            Policy::Ecmp(hash) => ecmp::choose(&self.distances, destination, trail, ecmp::hash(hash, tag, self.here)),
        };
        port.map(|port| self.of_team(port, destination, tag))
    }

    /// Returns the link of a port's group that the session uses: one of those that work.
    fn of_team(&self, port: Port, destination: VertexId, tag: Tag) -> Port {
        let Some(team) = self.teams.get(port.index()).filter(|team| team.len() > 1) else { return port };
        let hash = ecmp::hash(EcmpHash::Session, tag, self.here);
        team::choose(team, hash, |port| self.distances.distance_by(destination, port).is_some()).unwrap_or(port)
    }

    /// Returns the port for packets of an I/O whose path has failed: the same for all of them while
    /// distances do not change.
    pub fn choose_steady(&mut self, destination: VertexId, tag: Tag, trail: &Trail) -> Option<Port> {
        self.distances.prepare(destination);
        ecmp::choose(&self.distances, destination, trail, ecmp::hash(EcmpHash::Io, tag, self.here))
    }

    /// Updates the delays from an answer of `destination` on `port`, with `level` marked hops on
    /// its path. It arrived `delay_ns` after its request left, without the time at the drive.
    pub fn learn(&mut self, now: Time, port: Port, destination: VertexId, level: u32, delay_ns: u32) {
        self.delays.learn(now, port, destination, level, delay_ns);
    }

    /// Handles the failure of a port's link; its learned delays are dropped.
    pub fn link_down(&mut self, now: Time, port: Port) {
        self.distances.link_down(now, port);
        self.delays.forget(port);
    }

    /// Handles the recovery of a port's link.
    pub fn link_up(&mut self, now: Time, port: Port) {
        self.distances.link_up(now, port);
    }
}

#[cfg(test)]
mod tests;
