//! Paths: the shortest ones between two vertices, one by one or counted.

use crate::distance::Distances;
use crate::graph::{Channel, Graph, Hop, VertexId};

/// A walk along channels. A path of no hops has one vertex and no channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The vertices, both ends included: one more than channels.
    pub vertices: Vec<VertexId>,
    /// The channels between them.
    pub channels: Vec<Channel>,
}

impl Path {
    /// The path that stays where it is.
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

    /// The same links back.
    pub fn reversed(&self) -> Path {
        Path {
            vertices: self.vertices.iter().rev().copied().collect(),
            channels: self.channels.iter().rev().map(|channel| channel.reverse()).collect(),
        }
    }
}

/// All shortest paths of one pair, in the order of the links they take. Two paths that differ only
/// in which cable of a bundle they take are two.
pub struct MinimalPaths<'a> {
    graph: &'a Graph,
    toward: Distances,
    path: Path,
    /// For each vertex of the path: which of its hops is tried next.
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
    /// All shortest paths from `source` to `target`; none when there is no path. Their number can
    /// be astronomical: take what you need.
    pub fn minimal_paths(&self, source: VertexId, target: VertexId) -> MinimalPaths<'_> {
        let toward = self.distances_from(target);
        let tried = toward.to(source).map_or(Vec::new(), |_| vec![0]);
        MinimalPaths { graph: self, toward, path: Path::at(source), tried }
    }

    /// Returns how many shortest paths there are, without walking them; stops at `u128::MAX`.
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

    /// Hands the counts of `front`, all equally far from the target, to the vertices one hop
    /// nearer; returns those.
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

    /// The channels out of `at` that begin a shortest path to where `toward` counts from: what
    /// equal-cost multipath chooses among.
    pub fn minimal_hops<'a>(&'a self, at: VertexId, toward: &'a Distances) -> impl Iterator<Item = Hop> + 'a {
        self.hops(at).iter().filter(move |hop| self.leads(hop, at, toward)).copied()
    }

    /// Returns whether a hop out of `at` comes one nearer, to the end itself or to a vertex that
    /// forwards.
    pub(crate) fn leads(&self, hop: &Hop, at: VertexId, toward: &Distances) -> bool {
        let is_nearer = toward.to(at).is_some_and(|here| toward.to(hop.to).is_some_and(|there| there + 1 == here));
        is_nearer && (hop.to == toward.from() || self.forwards(hop.to))
    }
}
