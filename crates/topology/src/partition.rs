//! Improves a halving of a graph iteratively: Fiduccia and Mattheyses, "A linear-time heuristic for
//! improving network partitions" (DAC 1982). The nodes of the network are balanced; the other
//! vertices are free.

use crate::graph::{Graph, VertexId};
use std::collections::BTreeSet;

/// Maximum number of passes. A pass never makes the cut worse, and the search stops at the first
/// without a gain.
const PASSES_MAX: usize = 32;

/// Two sides of a graph.
pub(crate) struct Partition<'a> {
    graph: &'a Graph,
    /// By vertex: whether it counts for balance.
    is_node: Vec<bool>,
    /// By vertex: whether it is part of the problem: nodes and forwarding vertices.
    takes_part: Vec<bool>,
    /// By vertex: whether it is on the first side.
    is_first: Vec<bool>,
    /// Nodes on the first side minus those on the second.
    surplus: i64,
    cut_bps: u64,
}

/// Vertices that may still move in a pass, the best last: by gain in bits per second, then by lower
/// id.
struct Movable {
    /// Nodes on the first side, nodes on the second, and vertices that are not nodes.
    groups: [BTreeSet<(i64, std::cmp::Reverse<VertexId>)>; 3],
}

impl<'a> Partition<'a> {
    /// Returns a good halving from `start`: its nearer half first, then improved. Deterministic.
    pub(crate) fn search(graph: &'a Graph, nodes: &[VertexId], start: VertexId) -> Partition<'a> {
        let mut partition = Partition::grown(graph, nodes, start);
        for _ in 0..PASSES_MAX {
            if !partition.pass() {
                break;
            }
        }
        partition
    }

    fn grown(graph: &'a Graph, nodes: &[VertexId], start: VertexId) -> Partition<'a> {
        let mut is_node = vec![false; graph.vertices.len()];
        nodes.iter().for_each(|node| is_node[node.index()] = true);
        let takes_part = |id: VertexId| graph.works(id) && (is_node[id.index()] || graph.forwards(id));
        let distances = graph.distances_from(start);
        let mut order: Vec<VertexId> = graph.vertex_ids().filter(|id| takes_part(*id)).collect();
        order.sort_by_key(|vertex| distances.raw(*vertex));
        let mut is_first = vec![false; graph.vertices.len()];
        let mut missing = nodes.len() / 2;
        for vertex in order {
            if missing == 0 {
                break;
            }
            is_first[vertex.index()] = true;
            missing -= usize::from(is_node[vertex.index()]);
        }
        let takes_part = graph.vertex_ids().map(takes_part).collect();
        let surplus = 2 * (nodes.len() / 2) as i64 - nodes.len() as i64;
        let mut partition = Partition { graph, is_node, takes_part, is_first, surplus, cut_bps: 0 };
        partition.cut_bps = partition.count_cut();
        partition
    }

    /// Returns the rate of the links between the sides.
    pub(crate) fn cut_bps(&self) -> u64 {
        self.cut_bps
    }

    pub(crate) fn is_first(&self, vertex: VertexId) -> bool {
        self.is_first[vertex.index()]
    }

    /// If the number of nodes is odd, makes the first side the smaller one.
    pub(crate) fn make_first_half_smaller(&mut self) {
        if self.surplus > 0 {
            self.is_first.iter_mut().for_each(|side| *side = !*side);
            self.surplus = -self.surplus;
        }
    }

    fn count_cut(&self) -> u64 {
        let parts = |vertex: VertexId| self.takes_part[vertex.index()];
        let links = self.graph.working_links().map(|link| self.graph.link(link));
        let cut = links.filter(|link| {
            let [first, second] = link.ends.map(|end| end.vertex);
            parts(first) && parts(second) && self.is_first(first) != self.is_first(second)
        });
        cut.map(|link| link.rate.as_bps()).sum()
    }

    /// Moves every vertex once, always the best one that balance allows, and then returns to the
    /// best balanced state. Returns whether that is better than the start.
    fn pass(&mut self) -> bool {
        let before = self.cut_bps;
        let mut gains: Vec<i64> = self.graph.vertex_ids().map(|vertex| self.gain(vertex)).collect();
        let mut movable = self.all_movable(&gains);
        let mut moved = Vec::new();
        let (mut best, mut best_moves) = (before, 0);
        while let Some(vertex) = movable.take(self.surplus) {
            self.shift(vertex, &mut gains, &mut movable);
            moved.push(vertex);
            if self.cut_bps < best && self.surplus.abs() <= 1 {
                (best, best_moves) = (self.cut_bps, moved.len());
            }
        }
        moved[best_moves..].iter().for_each(|vertex| self.flip(*vertex));
        self.cut_bps = best;
        best < before
    }

    /// Returns the reduction of the cut if `vertex` changes sides, in bits a second.
    fn gain(&self, vertex: VertexId) -> i64 {
        let parts = self.graph.hops(vertex).iter().filter(|hop| self.takes_part[hop.to.index()]);
        parts
            .map(|hop| {
                let bps = self.graph.link(hop.channel.link()).rate.as_bps() as i64;
                if self.is_first(hop.to) == self.is_first(vertex) { -bps } else { bps }
            })
            .sum()
    }

    fn all_movable(&self, gains: &[i64]) -> Movable {
        let mut movable = Movable { groups: Default::default() };
        for vertex in self.graph.vertex_ids().filter(|vertex| self.takes_part[vertex.index()]) {
            movable.groups[self.group(vertex)].insert((gains[vertex.index()], std::cmp::Reverse(vertex)));
        }
        movable
    }

    fn group(&self, vertex: VertexId) -> usize {
        match (self.is_node[vertex.index()], self.is_first(vertex)) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        }
    }

    /// Moves a vertex for this pass and updates the gains of its neighbours.
    fn shift(&mut self, vertex: VertexId, gains: &mut [i64], movable: &mut Movable) {
        self.cut_bps = (self.cut_bps as i64 - gains[vertex.index()]) as u64;
        self.flip(vertex);
        for hop in self.graph.hops(vertex) {
            let (neighbour, gain) = (hop.to, gains[hop.to.index()]);
            let bps = self.graph.link(hop.channel.link()).rate.as_bps() as i64;
            let change = if self.is_first(neighbour) == self.is_first(vertex) { -2 * bps } else { 2 * bps };
            gains[neighbour.index()] += change;
            let group = &mut movable.groups[self.group(neighbour)];
            if group.remove(&(gain, std::cmp::Reverse(neighbour))) {
                group.insert((gain + change, std::cmp::Reverse(neighbour)));
            }
        }
    }

    fn flip(&mut self, vertex: VertexId) {
        let side = &mut self.is_first[vertex.index()];
        *side = !*side;
        if self.is_node[vertex.index()] {
            self.surplus += if *side { 2 } else { -2 };
        }
    }
}

impl Movable {
    /// Returns the best vertex that may move: any that is not a node, or a node of the side with at
    /// least as many nodes. During a pass the sides may differ by two (three if the number is odd).
    fn take(&mut self, surplus: i64) -> Option<VertexId> {
        let open = [surplus >= 0, surplus <= 0, true];
        let best = (0..3).filter(|group| open[*group]).filter_map(|group| Some((self.groups[group].last()?.0, group)));
        let (_, group) = best.max_by_key(|(gain, group)| (*gain, std::cmp::Reverse(*group)))?;
        self.groups[group].pop_last().map(|(_, vertex)| vertex.0)
    }
}
