//! Deadlocks of a lossless network (priority flow control): a cycle of links, each of which waits
//! for the next. Dally and Seitz (1987): there can be none if the routes of packets form no cycle
//! of links.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use topology::{Channel, Graph, VertexId};

/// Steps after which the search for a cycle is given up: some tenths of a second.
const STEPS_MAX: u64 = 20_000_000;

/// Returns a cycle of links between hops, where packets may take each link directly after the one
/// before. Packets take shortest paths or, with `detours`, any path that does not immediately turn
/// back. Returns `None` if there is no cycle, or if the network is too large to search.
pub fn circle_of_ways(graph: &Graph, detours: bool) -> Option<Vec<Channel>> {
    let mut ways = Ways { graph, next: vec![BTreeSet::new(); graph.channel_count()], steps: 0 };
    if detours {
        ways.add_all();
        return circle(&ways.next);
    }
    let mut until_look = 1;
    for (count, end) in (1..).zip(ends(graph)) {
        ways.add_shortest_to(end);
        if count == until_look {
            until_look *= 2;
            if let Some(circle) = circle(&ways.next) {
                return Some(circle);
            }
        }
        if ways.steps > STEPS_MAX {
            return None;
        }
    }
    circle(&ways.next)
}

/// Returns the links that are deadlocked. `paused` maps each paused link to the links for which the
/// packets that arrived on it wait. The packets of a deadlocked link wait for deadlocked links
/// alone.
pub fn stuck(paused: &BTreeMap<Channel, Vec<Channel>>) -> BTreeSet<Channel> {
    let mut stuck: BTreeSet<Channel> = paused.keys().copied().collect();
    loop {
        let waits = |link: &Channel| &paused[link];
        let goes_on = |link: &&Channel| waits(link).is_empty() || waits(link).iter().any(|next| !stuck.contains(next));
        let moving: Vec<Channel> = stuck.iter().filter(goes_on).copied().collect();
        if moving.is_empty() {
            return stuck;
        }
        moving.iter().for_each(|link| _ = stuck.remove(link));
    }
}

/// Returns one cycle among links that are [`stuck`].
pub fn circle_of_stuck(paused: &BTreeMap<Channel, Vec<Channel>>, stuck: &BTreeSet<Channel>) -> Vec<Channel> {
    let mut way: Vec<Channel> = Vec::new();
    let mut next = stuck.first().copied();
    while let Some(link) = next {
        if let Some(from) = way.iter().position(|other| *other == link) {
            return way.split_off(from);
        }
        way.push(link);
        next = paused.get(&link).and_then(|waits| waits.first().copied());
    }
    way
}

/// Returns the hops at which packets leave the network, each once.
fn ends(graph: &Graph) -> Vec<VertexId> {
    let forwards = |vertex: &VertexId| graph.vertex(*vertex).kind.forwards();
    let has_end = |vertex: &VertexId| graph.hops(*vertex).iter().any(|hop| !forwards(&hop.to));
    graph.vertex_ids().filter(forwards).filter(has_end).collect()
}

/// For each link, the links that packets may take directly after it.
struct Ways<'a> {
    graph: &'a Graph,
    next: Vec<BTreeSet<u32>>,
    steps: u64,
}

impl Ways<'_> {
    fn forwards(&self, vertex: VertexId) -> bool {
        self.graph.vertex(vertex).kind.forwards()
    }

    /// Adds every turn except straight back.
    fn add_all(&mut self) {
        for channel in (0..self.graph.channel_count() as u32).map(Channel) {
            let (from, at) = (self.graph.source(channel), self.graph.target(channel));
            if self.forwards(from) && self.forwards(at) {
                let onward = self.graph.hops(at).iter().filter(|hop| self.forwards(hop.to) && hop.to != from);
                self.next[channel.index()] = onward.map(|hop| hop.channel.0).collect();
            }
        }
    }

    /// Adds the turns of shortest paths to a hop.
    fn add_shortest_to(&mut self, end: VertexId) {
        let (graph, known) = (self.graph, self.graph.distances_from(end));
        let forwards = |vertex: VertexId| graph.vertex(vertex).kind.forwards();
        for at in graph.vertex_ids().filter(|vertex| forwards(*vertex) && *vertex != end) {
            let Some(distance) = known.to(at) else { continue };
            let hops = || graph.hops(at).iter().filter(|hop| forwards(hop.to));
            let nearer = hops().filter(|hop| known.to(hop.to).is_some_and(|there| there + 1 == distance));
            let nearer: Vec<u32> = nearer.map(|hop| hop.channel.0).collect();
            for hop in hops().filter(|hop| known.to(hop.to) == Some(distance + 1)) {
                self.steps += nearer.len() as u64;
                self.next[hop.channel.reverse().index()].extend(&nearer);
            }
        }
    }
}

/// Finds a cycle in a graph of links, given the successors of each. It removes links without a
/// successor until none is left to remove; any remaining link leads into a cycle.
fn circle(next: &[BTreeSet<u32>]) -> Option<Vec<Channel>> {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); next.len()];
    for (link, follows) in (0..).zip(next) {
        follows.iter().for_each(|other| before[*other as usize].push(link));
    }
    let mut left: Vec<usize> = next.iter().map(BTreeSet::len).collect();
    let mut done: VecDeque<u32> = (0..).zip(&left).filter(|(_, left)| **left == 0).map(|(link, _)| link).collect();
    while let Some(link) = done.pop_front() {
        for other in &before[link as usize] {
            left[*other as usize] -= 1;
            if left[*other as usize] == 0 {
                done.push_back(*other);
            }
        }
    }
    let mut link = left.iter().position(|left| *left > 0)?;
    let mut way = Vec::new();
    while !way.contains(&link) {
        way.push(link);
        link = next[link].iter().map(|next| *next as usize).find(|next| left[*next] > 0)?;
    }
    let from = way.iter().position(|other| *other == link)?;
    Some(way[from..].iter().map(|link| Channel(*link as u32)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::network;
    use topology::Kind;

    fn has_circle(kind: Kind, hosts: u32, targets: u32) -> bool {
        let graph = network(kind, hosts, targets);
        let Some(circle) = circle_of_ways(&graph, false) else { return false };
        for (link, next) in circle.iter().zip(circle.iter().cycle().skip(1)) {
            assert_eq!(graph.target(*link), graph.source(*next), "the links of a circle follow each other");
        }
        true
    }

    /// The longest shortest path in a ring of three has one link, in a ring of four two.
    #[test]
    fn rings_and_tori_have_circles_from_four_nodes_a_dimension_on() {
        for (nodes, expected) in [(3, false), (4, true), (5, true), (8, true)] {
            assert_eq!(has_circle(Kind::Ring { nodes }, nodes, nodes), expected, "a ring of {nodes}");
        }
        assert!(has_circle(Kind::Torus { dimensions: vec![4, 4] }, 16, 16));
        assert!(has_circle(Kind::Torus { dimensions: vec![8] }, 8, 8));
    }

    #[test]
    fn what_has_one_way_only_or_goes_up_and_down_has_none() {
        assert!(!has_circle(Kind::DaisyChain { nodes: 6 }, 6, 6));
        assert!(!has_circle(Kind::SingleSwitch, 4, 4));
        assert!(!has_circle(Kind::RedundantSwitches { switches: 2 }, 4, 4));
        assert!(!has_circle(Kind::LeafSpine { leaves: 4, spines: 2, endpoints_per_leaf: 4 }, 8, 8));
        assert!(!has_circle(Kind::FullMesh { nodes: 5 }, 5, 5));
    }

    #[test]
    fn detours_make_circles_of_a_full_mesh() {
        let mesh = network(Kind::FullMesh { nodes: 4 }, 4, 4);
        assert!(circle_of_ways(&mesh, false).is_none() && circle_of_ways(&mesh, true).is_some());
        let chain = network(Kind::DaisyChain { nodes: 4 }, 4, 4);
        assert!(circle_of_ways(&chain, true).is_none());
    }

    fn waits(links: &[(u32, &[u32])]) -> BTreeMap<Channel, Vec<Channel>> {
        let links = links.iter().map(|(link, next)| (Channel(*link), next.iter().copied().map(Channel).collect()));
        links.collect()
    }

    #[test]
    fn links_that_wait_for_each_other_alone_are_stuck_and_others_are_not() {
        let open = waits(&[(0, &[1]), (1, &[2]), (2, &[9])]);
        assert!(stuck(&open).is_empty(), "the last one waits for a link that nobody has paused");
        let half = waits(&[(0, &[1]), (1, &[0, 9])]);
        assert!(stuck(&half).is_empty(), "part of what link 1 brought can leave");
        let closed = waits(&[(0, &[1]), (1, &[2]), (2, &[1]), (3, &[])]);
        let found = stuck(&closed);
        assert_eq!(found, [0, 1, 2].map(Channel).into());
        assert_eq!(circle_of_stuck(&closed, &found), [Channel(1), Channel(2)]);
    }
}
