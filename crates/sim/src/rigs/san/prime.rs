//! Distances as they are in a network that has been up for long.

use base::{Span, Time};
use san::Port;
use san::route::{Advertisement, DistanceConfig, DistanceVector, neighbours};
use std::collections::VecDeque;
use topology::{Graph, VertexId};

/// An advertisement that is at a vertex.
pub(super) struct Told {
    /// Whose port heard it.
    pub at: VertexId,
    /// Which port.
    pub port: Port,
    /// The distances.
    pub advertisement: Advertisement,
}

/// What every listening vertex was told last, when distances have settled. The vectors tell each other without delay: a real network had all the
/// time it wanted.
pub(super) fn settled(graph: &Graph, config: &DistanceConfig, hosts_listen: bool) -> Vec<Told> {
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
        let config = Config {
            kind: Kind::Torus { dimensions: vec![4, 3] },
            endpoints: Endpoints { hosts: 2, targets: 12, placement: Placement::Spread },
            ports: Ports { endpoint: 2, adapter: 8, switch: 1 },
            cabling: Cabling {
                rate: Rate::gbps(100),
                board_rate: Rate::gbps(100),
                fabric_cables: 1,
                endpoint_cables: 1,
                lengths: Lengths { endpoint: Length::m(1), near: Length::m(1), far: Length::m(1) },
            },
        };
        config.build().expect("it has room")
    }

    #[test]
    fn what_is_told_last_are_the_distances_of_the_graph() {
        let graph = torus();
        let distance = DistanceConfig {
            infinity: 32,
            period: Span::ms(1),
            hold: Span::ms(5),
            trigger_gap: Span::us(50),
            candidates: 4,
            horizon: Horizon::BestOther,
        };
        let told = settled(&graph, &distance, false);
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
