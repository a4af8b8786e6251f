//! Distances as they are in a network that has been up for long.

use base::{Span, Time};
use san::Port;
use san::route::{Advertisement, DistanceConfig, DistanceVector, Horizon, neighbours, peer};
use std::collections::VecDeque;
use topology::{Channel, Distances, Graph, VertexId, VertexKind};

/// An advertisement that is at a vertex.
pub(super) struct Told {
    /// Whose port heard it.
    pub at: VertexId,
    /// Which port.
    pub port: Port,
    /// The distances.
    pub advertisement: Advertisement,
}

/// What every listening vertex was told last, channel by channel, when distances have settled.
pub(super) fn settled(graph: &Graph, config: &DistanceConfig, hosts_listen: bool, tell: impl FnMut(Told)) {
    match config.horizon {
        Horizon::PoisonedReverse => searched(graph, config, hosts_listen, tell),
        // What is told of a second way is not told anew when that alone changes, so that it hangs
        // on the order of news.
        Horizon::BestOther => told(graph, config, hosts_listen).into_iter().for_each(tell),
    }
}

/// With poisoned reverse what is told last follows from the graph: the distance, by the best way,
/// and none to the neighbour that the best way leads to. One search a vertex, where telling takes a
/// round for each hop of the diameter.
fn searched(graph: &Graph, config: &DistanceConfig, hosts_listen: bool, mut tell: impl FnMut(Told)) {
    let forwards = |vertex: VertexId| graph.vertex(vertex).kind.forwards();
    let distances: Vec<Option<Distances>> =
        graph.vertex_ids().map(|vertex| forwards(vertex).then(|| graph.distances_from(vertex))).collect();
    let first: Vec<Vec<u32>> = graph.vertex_ids().map(|vertex| first_hops(graph, vertex, &distances)).collect();
    for channel in (0..graph.channel_count() as u32).map(Channel) {
        let (from, at) = (graph.source(channel), graph.target(channel));
        let listens = forwards(at) || hosts_listen && graph.vertex(at).kind == VertexKind::Host;
        let Some(known) = distances[from.index()].as_ref().filter(|_| listens) else { continue };
        let told = |to: VertexId| match known.to(to) {
            Some(distance) if first[from.index()][to.index()] != at.0 => (distance as u16).min(config.infinity),
            _ => config.infinity,
        };
        let port = graph.hops(from).iter().position(|hop| hop.channel == channel);
        let (_, port) = port.and_then(|port| peer(graph, from, Port(port as u16))).expect("a link has two ends");
        tell(Told { at, port, advertisement: Advertisement { distances: graph.vertex_ids().map(told).collect() } });
    }
}

/// By vertex: the neighbour to which the best way leads, by the lowest of its ports; of a vertex
/// that passes nothing on none.
fn first_hops(graph: &Graph, from: VertexId, distances: &[Option<Distances>]) -> Vec<u32> {
    let Some(known) = &distances[from.index()] else { return Vec::new() };
    let comes_nearer = |to: VertexId, next: VertexId| match &distances[next.index()] {
        Some(there) => there.to(to).zip(known.to(to)).is_some_and(|(there, here)| there + 1 == here),
        None => next == to,
    };
    let first =
        |to: VertexId| graph.hops(from).iter().find(|hop| comes_nearer(to, hop.to)).map_or(NOBODY, |hop| hop.to.0);
    graph.vertex_ids().map(first).collect()
}

/// No vertex.
const NOBODY: u32 = u32::MAX;

/// The vectors tell each other without delay: a real network had all the time it wanted.
fn told(graph: &Graph, config: &DistanceConfig, hosts_listen: bool) -> Vec<Told> {
    let at_once = DistanceConfig { trigger_gap: Span::ZERO, period: Span::MAX, hold: Span::MAX, ..*config };
    let vertices = graph.vertices().len();
    let mut vectors: Vec<Option<DistanceVector>> = graph
        .vertex_ids()
        .map(|vertex| {
            let forwards = graph.vertex(vertex).kind.forwards();
            forwards.then(|| DistanceVector::new(vertex, vertices, neighbours(graph, vertex, hosts_listen), &at_once))
        })
        .collect();
    let mut last: Vec<Option<Told>> = Vec::new();
    last.resize_with(graph.channel_count(), || None);
    let mut due: VecDeque<VertexId> = graph.vertex_ids().filter(|vertex| vectors[vertex.index()].is_some()).collect();
    while let Some(vertex) = due.pop_front() {
        let mut told = Vec::new();
        let vector = vectors[vertex.index()].as_mut().expect("only vertices that forward are due");
        vector.poll(Time::ZERO, |port, advertisement| told.push((port, advertisement)));
        for (port, advertisement) in told {
            let hop = graph.hops(vertex)[port.index()];
            let back = graph.hops(hop.to).iter().position(|other| other.channel == hop.channel.reverse());
            let port = Port(back.expect("a link has two ends") as u16);
            if let Some(vector) = &mut vectors[hop.to.index()] {
                vector.on_advertisement(Time::ZERO, port, &advertisement);
                due.push_back(hop.to);
            }
            last[hop.channel.index()] = Some(Told { at: hop.to, port, advertisement });
        }
    }
    last.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Length, Rate};
    use san::route::Horizon;
    use topology::{Cabling, Config, Endpoints, Kind, Lengths, Placement, Ports};

    fn torus() -> Graph {
        built(Kind::Torus { dimensions: vec![4, 3] }, 2, 12)
    }

    fn built(kind: Kind, hosts: u32, targets: u32) -> Graph {
        let cables = if matches!(kind, Kind::RedundantSwitches { .. }) { 2 } else { 1 };
        let config = Config {
            kind,
            endpoints: Endpoints { hosts, targets, placement: Placement::Spread },
            ports: Ports { endpoint: 4, adapter: 16, switch: 64 },
            cabling: Cabling {
                rate: Rate::gbps(100),
                board_rate: Rate::gbps(100),
                fabric_cables: 1,
                endpoint_cables: cables,
                lengths: Lengths { endpoint: Length::m(1), near: Length::m(1), far: Length::m(1) },
            },
        };
        config.build().expect("it has room")
    }

    fn distance(horizon: Horizon) -> DistanceConfig {
        DistanceConfig {
            infinity: 32,
            period: Span::ms(1),
            hold: Span::ms(5),
            trigger_gap: Span::us(50),
            candidates: 4,
            horizon,
        }
    }

    fn collected(graph: &Graph, config: &DistanceConfig, hosts_listen: bool) -> Vec<Told> {
        let mut all = Vec::new();
        settled(graph, config, hosts_listen, |told| all.push(told));
        all
    }

    #[test]
    fn with_poisoned_reverse_a_search_finds_what_vertices_tell_each_other() {
        let mut graphs = vec![torus()];
        for (kind, hosts, targets) in [
            (Kind::Ring { nodes: 5 }, 2, 5),
            (Kind::Ring { nodes: 8 }, 8, 8),
            (Kind::DualRing { nodes: 6 }, 3, 6),
            (Kind::Torus { dimensions: vec![2, 2] }, 4, 4),
            (Kind::Torus { dimensions: vec![3, 3, 3] }, 5, 27),
            (Kind::Dragonfly { routers: 3, global_cables: 3, groups: 4 }, 2, 12),
            (Kind::SingleSwitch, 4, 4),
            (Kind::RedundantSwitches { switches: 2 }, 3, 4),
            (Kind::LeafSpine { leaves: 3, spines: 2, endpoints_per_leaf: 4 }, 6, 6),
        ] {
            graphs.push(built(kind, hosts, targets));
        }
        let config = distance(Horizon::PoisonedReverse);
        for graph in &graphs {
            for hosts_listen in [false, true] {
                let (found, told) = (collected(graph, &config, hosts_listen), told(graph, &config, hosts_listen));
                assert_eq!(found.len(), told.len());
                for (found, told) in found.iter().zip(&told) {
                    assert_eq!((found.at, found.port), (told.at, told.port));
                    assert_eq!(found.advertisement, told.advertisement, "to {:?} by {:?}", told.at, told.port);
                }
            }
        }
    }

    #[test]
    fn what_is_told_last_are_the_distances_of_the_graph() {
        let graph = torus();
        let told = collected(&graph, &distance(Horizon::BestOther), false);
        assert!(!told.is_empty());
        for Told { at, port, advertisement } in &told {
            let neighbour = graph.hops(*at)[port.index()].to;
            let from_there = graph.distances_from(neighbour);
            for vertex in graph.vertex_ids() {
                let real = from_there.to(vertex).expect("all reach all");
                // A way that leads back through the listener is longer or none.
                assert!(u32::from(advertisement.distances[vertex.index()]) >= real, "{neighbour:?} to {vertex:?}");
            }
        }
        let nearest = |at: VertexId, to: VertexId| {
            told.iter()
                .filter(|one| one.at == at)
                .map(|one| u32::from(one.advertisement.distances[to.index()]) + 1)
                .min()
        };
        let adapters: Vec<VertexId> = graph.of_kind(topology::VertexKind::Adapter).collect();
        for at in &adapters {
            let from_here = graph.distances_from(*at);
            for to in adapters.iter().filter(|to| *to != at) {
                assert_eq!(nearest(*at, *to), from_here.to(*to), "{at:?} to {to:?}");
            }
        }
    }
}
