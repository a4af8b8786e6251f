//! The parts of a network, as input of a cost model.

use crate::graph::{Graph, LinkId, Medium, VertexKind};
use base::{Length, Rate};
use std::collections::BTreeMap;

/// Counts of all parts of a graph, including failed ones: these were bought too.
///
/// In a switched network an endpoint's own adapters are not vertices. A cost model derives their
/// number from `by_ports_used` and the ports of an adapter (paper, 5.2: Table 1 has 80 such ports
/// on 40 adapters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Number of vertices of each kind present.
    pub vertices: BTreeMap<VertexKind, u64>,
    /// Number of ports of each kind of vertex present, used or not.
    pub ports: BTreeMap<VertexKind, u64>,
    /// Number of vertices of each kind, by the number of their ports with a cable. Nodes cannot
    /// share a part, so a cost model rounds up for each.
    pub by_ports_used: BTreeMap<(VertexKind, u64), u64>,
    /// Number of cables by length and rate, without boards.
    pub cables: BTreeMap<(Length, Rate), u64>,
}

impl Bill {
    /// Returns the number of vertices of a kind.
    pub fn count(&self, kind: VertexKind) -> u64 {
        self.vertices.get(&kind).copied().unwrap_or(0)
    }

    /// Returns the number of ports with a cable of a kind of vertex.
    pub fn ports_used(&self, kind: VertexKind) -> u64 {
        self.used(kind).map(|(ports, count)| ports * count).sum()
    }

    /// Returns the number of parts with `ports` ports (at least one) that the vertices of a kind
    /// need, with separate parts for each vertex. A link counts as `trunk` cables.
    pub fn parts(&self, kind: VertexKind, ports: u64, trunk: u64) -> u64 {
        self.used(kind).map(|(used, count)| (used * trunk).div_ceil(ports).max(1) * count).sum()
    }

    fn used(&self, kind: VertexKind) -> impl Iterator<Item = (u64, u64)> {
        self.by_ports_used.range((kind, 0)..=(kind, u64::MAX)).map(|((_, ports), count)| (*ports, *count))
    }

    /// Returns the number of cables.
    pub fn cable_count(&self) -> u64 {
        self.cables.values().sum()
    }

    /// Returns the total length of all cables.
    pub fn cable_length(&self) -> Length {
        let lengths = self.cables.iter().map(|((length, _), count)| length.as_mm().saturating_mul(*count));
        Length::mm(lengths.fold(0, u64::saturating_add))
    }
}

impl Graph {
    /// Counts the parts of the graph.
    pub fn bill(&self) -> Bill {
        let mut bill = Bill::default();
        for vertex in &self.vertices {
            *bill.vertices.entry(vertex.kind).or_default() += 1;
            *bill.ports.entry(vertex.kind).or_default() += u64::from(vertex.ports);
        }
        let mut used = vec![0u64; self.vertices.len()];
        let links = (0..self.links.len() as u32).map(|link| self.link(LinkId(link)));
        for link in links.filter(|link| link.medium == Medium::Cable) {
            *bill.cables.entry((link.length, link.rate)).or_default() += 1;
            for end in link.ends {
                used[end.vertex.0 as usize] += 1;
            }
        }
        for (vertex, ports) in self.vertices.iter().zip(used) {
            *bill.by_ports_used.entry((vertex.kind, ports)).or_default() += 1;
        }
        bill
    }
}
