//! The distances of a network in steady state.

use super::{DistanceVector, peer};
use crate::id::Port;
use std::collections::VecDeque;
use topology::{Graph, VertexId};

/// Exchanges advertisements between vertices until none is pending, all at `now`. `distances` is by
/// vertex, `None` for vertices without distances. The graph is the whole one; the vectors already
/// know which links are down. The paper fills tables when connections are set up (3.2).
pub fn converge(distances: &mut [Option<&mut DistanceVector>], graph: &Graph, now: base::Time) {
    let mut told = VecDeque::new();
    let everybody = || (0..distances.len() as u32).map(VertexId);
    let mut to_ask: VecDeque<VertexId> = everybody().collect();
    while let Some(vertex) = to_ask.pop_front() {
        if let Some(own) = &mut distances[vertex.index()] {
            own.flush(now, |port, advertisement| told.push_back((port, advertisement)));
        }
        for (port, advertisement) in told.drain(..) {
            let (to, by): (VertexId, Port) = peer(graph, vertex, port).expect("a vertex has the ports of the graph");
            if let Some(other) = &mut distances[to.index()] {
                other.on_advertisement(now, by, &advertisement);
                to_ask.push_back(to);
            }
        }
    }
}
