//! Which port a packet takes.
//!
//! [`DistanceVector`] keeps every neighbour's distances and the best few ports to each vertex;
//! [`DelayTables`] keep what answers have taught about them; a [`Policy`] chooses. [`Router`] is
//! the three together, for hops and for hosts with several uplinks alike (paper, 4.3: in a switched
//! network the host chooses, in a switchless one every adapter does).

mod converge;
mod delay;
mod distance;
mod ecmp;
mod isr;
mod neighbour;

pub use converge::converge;
pub use delay::DelayTables;
pub use distance::{Advertisement, Candidate, DistanceConfig, DistanceVector, Horizon};
pub use neighbour::{Neighbour, neighbours, peer};

use crate::id::{Port, Tag};
use crate::trail::Trail;
use base::{Bytes, Span, Time};
use topology::VertexId;

/// How the port of an I/O's first packet is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// INT-assisted symmetric routing as the text of 4.3 has it: least delay, then fewest hops; of
    /// ways within [`RouteConfig::stretch_max`].
    Isr,
    /// ISR as Algorithm 1 is printed: a port replaces the one found before only if it is no slower
    /// *and* nearer, so that a faster port that is farther never does.
    IsrAsPrinted,
    /// Always the same of the shortest ways: the one by the lowest port.
    ShortestPath,
    /// One of the shortest ways, by a hash.
    Ecmp(EcmpHash),
}

/// What equal-cost multipath hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EcmpHash {
    /// The session: as flows over TCP are.
    Session,
    /// The I/O.
    Io,
}

/// Parameters of routing. The paper gives none of them but says that there are (4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// How a port is chosen.
    pub policy: Policy,
    /// Whether answers go back the way of their request. ISR and reservation need it; else the
    /// policy chooses their way too.
    pub is_symmetric: bool,
    /// Whether packets carry the ISR header, so that every hop lengthens them by
    /// [`crate::Trail::HOP_BYTES`].
    pub has_header: bool,
    /// Weight of a new delay in the moving average, of 1,024.
    pub ewma_weight: u16,
    /// A hop marks packets when more than this waits at their port; `None`: never.
    pub ecn_threshold: Option<Bytes>,
    /// Whether answers are marked too, in the bit of the hop that they pass. The paper marks on the
    /// submission path only.
    pub marks_answers: bool,
    /// How many hops more than the shortest way ISR's way may have as a whole, seen from the first
    /// that chooses. Ours: the paper has no bound. Up to 2 no way ends at a hop from which all ways
    /// lead back.
    pub stretch_max: u16,
    /// What was learnt counts half after each such span without news, so that a port that was slow
    /// once is tried again. Ours.
    pub stale_after: Span,
    /// The distance vector.
    pub distance: DistanceConfig,
}

/// Routing at one place.
#[derive(Clone, Debug)]
pub struct Router {
    here: VertexId,
    config: RouteConfig,
    distances: DistanceVector,
    delays: DelayTables,
}

impl Router {
    /// The router of `here` among `vertices` vertices; knows its neighbours only.
    pub fn new(here: VertexId, vertices: usize, neighbours: Vec<Neighbour>, config: &RouteConfig) -> Router {
        let delays = DelayTables::new(vertices, neighbours.len(), config.ewma_weight, config.stale_after);
        let distances = DistanceVector::new(here, vertices, neighbours, &config.distance);
        Router { here, config: *config, distances, delays }
    }

    /// Its distances.
    pub fn distances(&self) -> &DistanceVector {
        &self.distances
    }
    /// Its distances, to feed them.
    pub fn distances_mut(&mut self) -> &mut DistanceVector {
        &mut self.distances
    }
    /// What it has learnt.
    pub fn delays(&self) -> &DelayTables {
        &self.delays
    }

    /// The port for the first packet of an I/O; `None` when every way leads through a hop of the
    /// trail, or there is none. The first that chooses writes into the trail how long the way may
    /// be.
    pub fn choose(&mut self, now: Time, destination: VertexId, tag: Tag, trail: &mut Trail) -> Option<Port> {
        self.distances.prepare(destination);
        match self.config.policy {
            Policy::Isr => {
                let stretch_max = self.config.stretch_max;
                isr::choose(&self.distances, &mut self.delays, now, destination, trail, stretch_max)
            }
            Policy::IsrAsPrinted => isr::choose_as_printed(&self.distances, &self.delays, now, destination, trail),
            Policy::ShortestPath => ecmp::choose(&self.distances, destination, trail, 0),
            Policy::Ecmp(hash) => ecmp::choose(&self.distances, destination, trail, ecmp::hash(hash, tag, self.here)),
        }
    }

    /// The port for packets of an I/O that have lost its way: the same for all of them while
    /// distances stay.
    pub fn choose_steady(&mut self, destination: VertexId, tag: Tag, trail: &Trail) -> Option<Port> {
        self.distances.prepare(destination);
        ecmp::choose(&self.distances, destination, trail, ecmp::hash(EcmpHash::Io, tag, self.here))
    }

    /// An answer from `destination` came in by `port`, `delay_ns` after its request left, the time
    /// at the drive not counted, and `level` hops on the way were marked.
    pub fn learn(&mut self, now: Time, port: Port, destination: VertexId, level: u32, delay_ns: u32) {
        self.delays.learn(now, port, destination, level, delay_ns);
    }

    /// The link of a port has gone, and with it all that was learnt about it.
    pub fn link_down(&mut self, now: Time, port: Port) {
        self.distances.link_down(now, port);
        self.delays.forget(port);
    }

    /// The link of a port is there again.
    pub fn link_up(&mut self, now: Time, port: Port) {
        self.distances.link_up(now, port);
    }
}

#[cfg(test)]
mod tests;
