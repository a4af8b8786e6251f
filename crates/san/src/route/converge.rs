//! Distances as they are when a network has been up for a while.

use super::{DistanceVector, peer};
use crate::id::Port;
use std::collections::VecDeque;
use topology::{Graph, VertexId};

/// Lets vertices tell each other distances until nobody has news, all at `now`. `distances` is by
/// vertex, `None` where none are kept; the graph is the whole one, and links that are down are
/// known to be so. The paper fills tables when connections are set up (3.2).
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
