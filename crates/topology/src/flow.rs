//! Maximum flows, by `petgraph`'s implementation of Dinic's algorithm: disjoint paths, and minimum
//! cuts for the bisection.

use crate::graph::{Channel, Graph, VertexId};
use crate::path::Path;
use petgraph::Direction;
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// A cut of minimum capacity between two sets of vertices.
pub(crate) struct Cut {
    /// Bits a second from one side to the other, of working links.
    pub capacity_bps: u64,
    /// Number of links.
    pub links: u64,
}

impl Graph {
    /// Returns a maximum set of paths of which no two share a link, shortest first. Their number is
    /// the edge connectivity of the pair (Menger). Parallel cables are different links.
    pub fn disjoint_paths(&self, source: VertexId, target: VertexId) -> Vec<Path> {
        if source == target || !self.works(source) || !self.works(target) {
            return Vec::new();
        }
        let (network, channels) = self.network(|channel| {
            let from = self.source(channel);
            (from == source || self.forwards(from)).then_some(1)
        });
        let (count, flow) = dinics(&network, node(source), node(target));
        let mut used = vec![false; self.channel_count()];
        for (channel, amount) in channels.iter().zip(flow) {
            used[channel.index()] = amount > 0;
        }
        self.drop_opposites(&mut used);
        let mut paths: Vec<Path> = (0..count).map(|_| self.walk_flow(source, target, &mut used)).collect();
        paths.sort_by(|one, other| one.hops().cmp(&other.hops()).then_with(|| one.cmp(other)));
        paths
    }

    /// Cancels the flow of links that carry flow both ways.
    fn drop_opposites(&self, used: &mut [bool]) {
        for both in used.chunks_mut(2).filter(|both| both[0] && both[1]) {
            both.fill(false);
        }
    }

    /// Follows one unit of flow to the target and removes it. Loops are cut out of the path.
    fn walk_flow(&self, source: VertexId, target: VertexId, used: &mut [bool]) -> Path {
        let mut path = Path::at(source);
        while path.end() != target {
            let next = self.hops(path.end()).iter().find(|hop| used[hop.channel.index()]);
            let hop = *next.expect("flow that enters a vertex leaves it again");
            used[hop.channel.index()] = false;
            path.push(hop.channel, hop.to);
            if let Some(before) = path.vertices[..path.vertices.len() - 1].iter().position(|at| *at == hop.to) {
                path.vertices.truncate(before + 1);
                path.channels.truncate(before);
            }
        }
        path
    }

    /// Returns the minimum cut that separates `side[v] == Some(true)` from `Some(false)`; other
    /// vertices join the cheaper side. The cut of disconnected sides is empty.
    pub(crate) fn minimum_cut(&self, side: &[Option<bool>]) -> Cut {
        let (mut network, channels) =
            self.network(|channel| self.passes(channel, side).then(|| self.link(channel.link()).rate.as_bps()));
        let (from, to) = (network.add_node(()), network.add_node(()));
        let cables = channels.len();
        // Above any cut, so that no minimum cut includes an edge that holds a side together.
        let plenty = 1 + self.links.iter().map(|link| link.rate.as_bps()).sum::<u64>();
        for vertex in self.vertex_ids() {
            match side[vertex.index()] {
                Some(true) => network.add_edge(from, node(vertex), plenty),
                Some(false) => network.add_edge(node(vertex), to, plenty),
                None => continue,
            };
        }
        let (capacity_bps, flow) = dinics(&network, from, to);
        let reached = residual_reach(&network, &flow, from);
        let is_cut = |edge: &petgraph::graph::EdgeReference<'_, u64>| {
            reached[edge.source().index()] && !reached[edge.target().index()]
        };
        let links = network.edge_references().take(cables).filter(is_cut).count() as u64;
        Cut { capacity_bps, links }
    }

    /// Returns whether traffic between the sides may use a channel: not through an endpoint that is
    /// on neither side.
    fn passes(&self, channel: Channel, side: &[Option<bool>]) -> bool {
        [self.source(channel), self.target(channel)]
            .iter()
            .all(|end| self.forwards(*end) || side[end.index()].is_some())
    }

    /// Returns the working channels with a `capacity`, as a directed graph over the same vertex
    /// numbers.
    fn network(&self, capacity: impl Fn(Channel) -> Option<u64>) -> (DiGraph<(), u64>, Vec<Channel>) {
        let mut network = DiGraph::with_capacity(self.vertices.len() + 2, self.channel_count());
        for _ in &self.vertices {
            network.add_node(());
        }
        let mut channels = Vec::new();
        for channel in self.working_links().flat_map(|link| [link.forward(), link.backward()]) {
            if let Some(capacity) = capacity(channel) {
                network.add_edge(node(self.source(channel)), node(self.target(channel)), capacity);
                channels.push(channel);
            }
        }
        (network, channels)
    }
}

fn node(vertex: VertexId) -> NodeIndex {
    NodeIndex::new(vertex.index())
}

/// Returns the vertices still reachable in the residual network: one side of a minimum cut (Ford
/// and Fulkerson).
fn residual_reach(network: &DiGraph<(), u64>, flow: &[u64], from: NodeIndex) -> Vec<bool> {
    let mut reached = vec![false; network.node_count()];
    reached[from.index()] = true;
    let mut stack = vec![from];
    while let Some(at) = stack.pop() {
        let forward = network.edges(at).filter(|edge| flow[edge.id().index()] < *edge.weight());
        let backward = network.edges_directed(at, Direction::Incoming).filter(|edge| flow[edge.id().index()] > 0);
        for next in forward.map(|edge| edge.target()).chain(backward.map(|edge| edge.source())) {
            if !std::mem::replace(&mut reached[next.index()], true) {
                stack.push(next);
            }
        }
    }
    reached
}
