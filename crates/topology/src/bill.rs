//! What a network is bought from: the input of a cost model.

use crate::graph::{Graph, LinkId, Medium, VertexKind};
use base::{Length, Rate};
use std::collections::BTreeMap;

/// Counts of everything in a graph, missing parts included: what failed was bought too.
///
/// In a switched network an endpoint's own adapters are not vertices: a cost model gets their
/// number from `by_ports_used` and the ports of an adapter (paper, 5.2: Table 1 has 80 such ports
/// on 40 adapters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Vertices of each kind that occurs.
    pub vertices: BTreeMap<VertexKind, u64>,
    /// Ports of each kind of vertex that occurs, used or not.
    pub ports: BTreeMap<VertexKind, u64>,
    /// Vertices of each kind by how many of their ports have a cable in them. Nodes cannot share a
    /// part, so a cost model rounds up for each.
    pub by_ports_used: BTreeMap<(VertexKind, u64), u64>,
    /// Cables by length and rate; boards are not among them.
    pub cables: BTreeMap<(Length, Rate), u64>,
}

impl Bill {
    /// Returns the number of vertices of a kind.
    pub fn count(&self, kind: VertexKind) -> u64 {
        self.vertices.get(&kind).copied().unwrap_or(0)
    }

    /// Ports of a kind of vertex that have a cable in them.
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

    /// All cables end to end.
    pub fn cable_length(&self) -> Length {
        let lengths = self.cables.iter().map(|((length, _), count)| length.as_mm().saturating_mul(*count));
        Length::mm(lengths.fold(0, u64::saturating_add))
    }
}

impl Graph {
    /// Counts what it is made of.
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
