//! Hops between vertices, by breadth-first search.

use crate::error::TableError;
use crate::graph::{Graph, VertexId};

/// Marks an unreachable vertex; exceeds the longest path of [`crate::VERTICES_MAX`] vertices.
const UNREACHED: u16 = u16::MAX;
/// Maximum number of vertices of a table of all distances: 128 MiB.
const TABLE_VERTICES_MAX: usize = 1 << 13;

/// Number of links between one vertex and each other one. Distances are symmetric, because links
/// are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distances {
    from: VertexId,
    hops: Vec<u16>,
}

impl Distances {
    /// Returns the vertex from which they are counted.
    pub fn from(&self) -> VertexId {
        self.from
    }

    /// Returns the number of links to `vertex`, or `None` if there is no path.
    pub fn to(&self, vertex: VertexId) -> Option<u32> {
        known(self.hops[vertex.index()])
    }

    /// Returns the same as `to`, but a number above any distance if there is no path.
    pub(crate) fn raw(&self, vertex: VertexId) -> u16 {
        self.hops[vertex.index()]
    }
}

fn known(hops: u16) -> Option<u32> {
    (hops != UNREACHED).then_some(u32::from(hops))
}

/// The distance of every pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceTable {
    vertices: usize,
    hops: Vec<u16>,
}

impl DistanceTable {
    /// Returns the number of links between two vertices, or `None` if there is no path.
    pub fn between(&self, source: VertexId, target: VertexId) -> Option<u32> {
        known(self.hops[source.index() * self.vertices + target.index()])
    }
}

/// Summary of the distances among a set of vertices, over ordered pairs of different vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DistanceSummary {
    /// The largest distance; 0 if no pair is connected.
    pub diameter: u32,
    /// The sum over all connected pairs.
    pub sum: u64,
    /// Number of connected pairs.
    pub pairs: u64,
    /// Number of disconnected pairs.
    pub unreached_pairs: u64,
}

impl DistanceSummary {
    /// Returns the mean over the connected pairs, or `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.sum as f64 / self.pairs as f64)
    }

    fn add(&mut self, distance: Option<u32>) {
        let Some(distance) = distance else {
            self.unreached_pairs += 1;
            return;
        };
        self.diameter = self.diameter.max(distance);
        self.sum += u64::from(distance);
        self.pairs += 1;
    }
}

impl Graph {
    /// Returns the distances from one vertex, which itself does not have to forward; the others on
    /// a path do.
    pub fn distances_from(&self, from: VertexId) -> Distances {
        let mut hops = vec![UNREACHED; self.vertices.len()];
        self.search(from, &mut hops, &mut Vec::new());
        Distances { from, hops }
    }

    /// Returns the distances of every pair.
    ///
    /// # Errors
    ///
    /// When the table would exceed 128 MiB, from 8,193 vertices on.
    pub fn distance_table(&self) -> Result<DistanceTable, TableError> {
        let vertices = self.vertices.len();
        if vertices > TABLE_VERTICES_MAX {
            return Err(TableError { vertices, max: TABLE_VERTICES_MAX });
        }
        let mut hops = vec![UNREACHED; vertices * vertices];
        let mut queue = Vec::with_capacity(vertices);
        for from in self.vertex_ids() {
            self.search(from, &mut hops[from.index() * vertices..][..vertices], &mut queue);
        }
        Ok(DistanceTable { vertices, hops })
    }

    /// Returns the diameter and the mean distance among `nodes`, for instance [`Graph::nodes`].
    pub fn distance_summary(&self, nodes: &[VertexId]) -> DistanceSummary {
        let mut summary = DistanceSummary::default();
        let mut hops = vec![UNREACHED; self.vertices.len()];
        let mut queue = Vec::new();
        for from in nodes {
            hops.fill(UNREACHED);
            self.search(*from, &mut hops, &mut queue);
            let others = nodes.iter().filter(|node| *node != from);
            others.for_each(|node| summary.add(known(hops[node.index()])));
        }
        summary
    }

    /// Searches breadth first; `hops` must be unreached, `queue` is a reused buffer.
    fn search(&self, from: VertexId, hops: &mut [u16], queue: &mut Vec<VertexId>) {
        queue.clear();
        if self.works(from) {
            hops[from.index()] = 0;
            queue.push(from);
        }
        let mut next = 0;
        while let Some(vertex) = queue.get(next).copied() {
            next += 1;
            if vertex != from && !self.forwards(vertex) {
                continue;
            }
            for hop in self.hops(vertex) {
                if hops[hop.to.index()] == UNREACHED {
                    hops[hop.to.index()] = hops[vertex.index()] + 1;
                    queue.push(hop.to);
                }
            }
        }
    }
}
