//! What the programs of a SAN can name: uplinks of a host, hops of a way.

use super::SanFabric;
use crate::error::Problem;
use crate::resolve::Resolver;
use san::PORTS_MAX;
use san::route::RouteConfig;
use san::session::LANES_MAX;
use san::wire::{WireConfig, WireFormat};
use topology::{Graph, VertexId, VertexKind};

/// The longest of the shortest ways from hosts to targets, in hops, and the first of its pairs.
pub(super) type LongestWay = (u32, VertexId, VertexId);

/// What a distance has to be below where no way has more than some 30 hops. Ours.
const INFINITY_MIN: u32 = 64;
/// The most hops of a header that the segment of a window had room for before headers grew with the
/// network.
const COUNTED_HOPS_MIN: u32 = 24;

/// The longest way, and the hops that the header of a packet counts, where there is one. Sets the
/// bound of distances.
pub(super) fn ways(graph: &Graph, routing: &mut RouteConfig) -> (Option<LongestWay>, Option<u32>) {
    // What cannot be named is refused, and need not be measured.
    let longest = if crowded(graph).is_some() { None } else { longest_way(graph) };
    routing.distance.infinity = infinity(longest);
    (longest, routing.has_header.then(|| hops_counted(longest, routing)))
}

/// What a distance has to be below: ways around what has failed may be twice as long as the longest
/// that there is.
fn infinity(longest: Option<LongestWay>) -> u16 {
    let links = longest.map_or(0, |(hops, ..)| hops + 1);
    (2 * links + 2).clamp(INFINITY_MIN, u32::from(u16::MAX)) as u16
}

/// Hops that the longest packet has in its header.
fn hops_counted(longest: Option<LongestWay>, routing: &RouteConfig) -> u32 {
    let hops = longest.map_or(0, |(hops, ..)| hops + u32::from(routing.stretch_max));
    hops.max(COUNTED_HOPS_MIN)
}

impl Resolver<'_> {
    /// Refuses a network in which a run could not begin, or no command would arrive.
    pub(super) fn within_names(
        &mut self,
        fabric: &SanFabric,
        wire: &WireConfig,
        routing: &RouteConfig,
        longest: Option<LongestWay>,
    ) {
        let graph = &*fabric.graph;
        let uplinks = |host: &VertexId| graph.degree(*host);
        if let Some(host) = graph.of_kind(VertexKind::Host).find(|host| uplinks(host) > LANES_MAX) {
            let key = self.first_of(&["fabric.endpoint_cables", "fabric.switches", "fabric.file"]);
            let (name, got) = (&graph.vertex(host).name, uplinks(&host));
            self.conflict(key, format!("{name} has {got} uplinks, allowed are 1 to {LANES_MAX}"));
        }
        if let Some(crowded) = crowded(graph) {
            let key = self.first_of(&["fabric.hosts", "fabric.targets", "fabric.file"]);
            let (name, got, most) = (&graph.vertex(crowded).name, graph.degree(crowded), PORTS_MAX - 1);
            self.conflict(key, format!("{name} has {got} links, and headers on the wire can name {most}"));
        }
        let Some((hops, host, target)) = longest.filter(|_| wire.has_header && self.sound(&["wire", "routing"])) else {
            return;
        };
        let hops_max = WireFormat::hops_max(wire);
        // A frame without any room was complained of as such.
        if hops_max == 0 {
            return;
        }
        let stretch_max = hops_max.checked_sub(hops);
        match stretch_max {
            None => {
                let key = self.first_of(&["fabric.nodes", "fabric.dimensions", "fabric.file"]);
                let [host, target] = [host, target].map(|vertex| &graph.vertex(vertex).name);
                let room = format!("in a frame of {} B the header that records them has room for {hops_max}", wire.mtu);
                self.conflict(key, format!("the way from {host} to {target} passes {hops} hops, and {room}"));
            }
            Some(most) if u32::from(routing.stretch_max) > most && self.document.at("routing.stretch").is_some() => {
                let allowed = format!("0..={most}, as the longest way has {hops} hops of {hops_max}");
                self.report("routing.stretch", Problem::out_of_range(routing.stretch_max, allowed));
            }
            Some(_) => {}
        }
    }

    /// The first of these keys in the file, else the table of the fabric.
    fn first_of(&self, keys: &[&'static str]) -> &'static str {
        keys.iter().copied().find(|key| self.document.at(key).is_some()).unwrap_or("fabric")
    }
}

/// The first vertex with more links than a header can tell apart.
fn crowded(graph: &Graph) -> Option<VertexId> {
    graph.vertex_ids().find(|vertex| graph.degree(*vertex) >= PORTS_MAX)
}

/// See [`LongestWay`]; `None` where some target cannot be reached.
fn longest_way(graph: &Graph) -> Option<LongestWay> {
    let mut longest: Option<LongestWay> = None;
    let targets: Vec<VertexId> = graph.of_kind(VertexKind::Target).collect();
    for host in graph.of_kind(VertexKind::Host) {
        let distances = graph.distances_from(host);
        for target in targets.iter().copied() {
            let hops = distances.to(target)?.saturating_sub(1);
            if longest.is_none_or(|(most, ..)| hops > most) {
                longest = Some((hops, host, target));
            }
        }
    }
    longest
}
