//! What the programs of a SAN can name: uplinks of a host, hops of a way.

use super::SanFabric;
use crate::error::Problem;
use crate::resolve::Resolver;
use san::HOPS_MAX;
use san::route::RouteConfig;
use san::session::LANES_MAX;
use topology::{Graph, VertexId, VertexKind};

impl Resolver<'_> {
    /// Refuses a network in which a run could not begin, or no command would arrive.
    pub(super) fn within_names(&mut self, fabric: &SanFabric, routing: &RouteConfig) {
        let graph = &*fabric.graph;
        let uplinks = |host: &VertexId| graph.degree(*host);
        if let Some(host) = graph.of_kind(VertexKind::Host).find(|host| uplinks(host) > LANES_MAX) {
            let key = self.first_of(&["fabric.endpoint_cables", "fabric.switches", "fabric.file"]);
            let (name, got) = (&graph.vertex(host).name, uplinks(&host));
            self.conflict(key, format!("{name} has {got} uplinks, allowed are 1 to {LANES_MAX}"));
        }
        let Some((hops, host, target)) = longest_way(graph) else { return };
        let stretch_max = (HOPS_MAX as u32).checked_sub(hops);
        match stretch_max {
            None => {
                let key = self.first_of(&["fabric.nodes", "fabric.dimensions", "fabric.file"]);
                let [host, target] = [host, target].map(|vertex| &graph.vertex(vertex).name);
                let room = format!("the header that records them has room for {HOPS_MAX}");
                self.conflict(key, format!("the way from {host} to {target} passes {hops} hops, and {room}"));
            }
            Some(most) if u32::from(routing.stretch_max) > most && self.document.at("routing.stretch").is_some() => {
                let allowed = format!("0..={most}, as the longest way has {hops} hops of {HOPS_MAX}");
                self.report("routing.stretch", Problem::out_of_range(routing.stretch_max, allowed));
            }
            Some(_) => {}
        }
    }

    /// The first of these keys that stands in the file, else the table of the fabric.
    fn first_of(&self, keys: &[&'static str]) -> &'static str {
        keys.iter().copied().find(|key| self.document.at(key).is_some()).unwrap_or("fabric")
    }
}

/// Hops of the longest of the shortest ways from hosts to targets, and the first of its pairs.
fn longest_way(graph: &Graph) -> Option<(u32, VertexId, VertexId)> {
    let mut longest: Option<(u32, VertexId, VertexId)> = None;
    for host in graph.of_kind(VertexKind::Host) {
        let distances = graph.distances_from(host);
        for target in graph.of_kind(VertexKind::Target) {
            let hops = distances.to(target)?.saturating_sub(1);
            if longest.is_none_or(|(most, ..)| hops > most) {
                longest = Some((hops, host, target));
            }
        }
    }
    longest
}
