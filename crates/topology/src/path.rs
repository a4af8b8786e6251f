//! Paths: enumeration and counting of the shortest ones between two vertices.

use crate::distance::Distances;
use crate::graph::{Channel, Graph, Hop, VertexId};

/// A walk along channels. A path of no hops has one vertex and no channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The vertices, including both ends: one more than channels.
    pub vertices: Vec<VertexId>,
    /// The channels between them.
    pub channels: Vec<Channel>,
}

impl Path {
    /// Creates the path without hops at a vertex.
    pub fn at(vertex: VertexId) -> Path {
        Path { vertices: vec![vertex], channels: Vec::new() }
    }

    /// Returns its number of links.
    pub fn hops(&self) -> usize {
        self.channels.len()
    }

    /// Returns the last vertex.
    pub fn end(&self) -> VertexId {
        *self.vertices.last().expect("a path has a vertex")
    }

    pub(crate) fn push(&mut self, channel: Channel, to: VertexId) {
        self.channels.push(channel);
        self.vertices.push(to);
    }

    /// Returns the path over the same links in the opposite direction.
    pub fn reversed(&self) -> Path {
        Path {
            vertices: self.vertices.iter().rev().copied().collect(),
            channels: self.channels.iter().rev().map(|channel| channel.reverse()).collect(),
        }
    }
}

/// All shortest paths of one pair, in the order of their links. Paths that differ only in the cable
/// of a bundle are different.
pub struct MinimalPaths<'a> {
    graph: &'a Graph,
    toward: Distances,
    path: Path,
    /// For each vertex of the path: its next hop to try.
    tried: Vec<usize>,
}

impl Iterator for MinimalPaths<'_> {
    type Item = Path;

    fn next(&mut self) -> Option<Path> {
        while let Some(tried) = self.tried.last_mut() {
            let at = self.path.end();
            let next = self.graph.hops(at).iter().skip(*tried).position(|hop| self.graph.leads(hop, at, &self.toward));
            match next {
                Some(skipped) => {
                    let hop = self.graph.hops(at)[*tried + skipped];
                    *tried += skipped + 1;
                    self.path.push(hop.channel, hop.to);
                    self.tried.push(0);
                }
                None if at == self.toward.from() => {
                    let found = self.path.clone();
                    self.back();
                    return Some(found);
                }
                None => self.back(),
            }
        }
        None
    }
}

impl MinimalPaths<'_> {
    fn back(&mut self) {
        self.tried.pop();
        if !self.tried.is_empty() {
            self.path.vertices.pop();
            self.path.channels.pop();
        }
    }
}

impl Graph {
    /// Returns all shortest paths from `source` to `target`; none if there is no path. Their number
    /// can be astronomical: take only as many as needed.
    pub fn minimal_paths(&self, source: VertexId, target: VertexId) -> MinimalPaths<'_> {
        let toward = self.distances_from(target);
        let tried = toward.to(source).map_or(Vec::new(), |_| vec![0]);
        MinimalPaths { graph: self, toward, path: Path::at(source), tried }
    }

    /// Returns the number of shortest paths without enumerating them; saturates at `u128::MAX`.
    pub fn count_minimal_paths(&self, source: VertexId, target: VertexId) -> u128 {
        let toward = self.distances_from(target);
        let mut counts = vec![0u128; self.vertices.len()];
        counts[source.index()] = u128::from(toward.to(source).is_some());
        let mut front = vec![source];
        while !front.is_empty() && front != [target] {
            front = self.count_one_hop(&front, &toward, &mut counts);
        }
        counts[target.index()]
    }

    /// Adds the counts of `front`, all equally far from the target, to the vertices one hop nearer;
    /// returns those.
    fn count_one_hop(&self, front: &[VertexId], toward: &Distances, counts: &mut [u128]) -> Vec<VertexId> {
        let mut next = Vec::new();
        for at in front {
            for hop in self.hops(*at).iter().filter(|hop| self.leads(hop, *at, toward)) {
                if counts[hop.to.index()] == 0 {
                    next.push(hop.to);
                }
                counts[hop.to.index()] = counts[hop.to.index()].saturating_add(counts[at.index()]);
            }
        }
        next
    }

    /// Returns the channels from `at` that begin a shortest path to the origin of `toward`: the
    /// choices of equal-cost multipath.
    pub fn minimal_hops<'a>(&'a self, at: VertexId, toward: &'a Distances) -> impl Iterator<Item = Hop> + 'a {
        self.hops(at).iter().filter(move |hop| self.leads(hop, at, toward)).copied()
    }

    /// Returns whether a hop from `at` leads one hop nearer, to the end itself or to a forwarding
    /// vertex.
    pub(crate) fn leads(&self, hop: &Hop, at: VertexId, toward: &Distances) -> bool {
        let is_nearer = toward.to(at).is_some_and(|here| toward.to(hop.to).is_some_and(|there| there + 1 == here));
        is_nearer && (hop.to == toward.from() || self.forwards(hop.to))
    }
}
