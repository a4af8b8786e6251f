//! What a network is bought from: the input of a cost model.

use crate::graph::{Graph, LinkId, Medium, VertexKind};
use base::{Length, Rate};
use std::collections::BTreeMap;

/// Counts of everything in a graph, missing parts included: what failed was bought too.
///
/// In a switched network an endpoint's own adapters are not vertices: a cost model gets their number from `ports_used` and the ports of
/// an adapter (paper, 5.2: Table 1 has 80 such ports on 40 adapters).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Vertices of each kind that occurs.
    pub vertices: BTreeMap<VertexKind, u64>,
    /// Ports of each kind of vertex that occurs, used or not.
    pub ports: BTreeMap<VertexKind, u64>,
    /// Ports with a cable in them.
    pub ports_used: BTreeMap<VertexKind, u64>,
    /// Cables by length and rate; boards are not among them.
    pub cables: BTreeMap<(Length, Rate), u64>,
}

impl Bill {
    /// How many vertices of a kind there are.
    pub fn count(&self, kind: VertexKind) -> u64 {
        self.vertices.get(&kind).copied().unwrap_or(0)
    }

    /// How many cables there are.
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
        let links = (0..self.links.len() as u32).map(|link| self.link(LinkId(link)));
        for link in links.filter(|link| link.medium == Medium::Cable) {
            *bill.cables.entry((link.length, link.rate)).or_default() += 1;
            for end in link.ends {
                *bill.ports_used.entry(self.vertex(end.vertex).kind).or_default() += 1;
            }
        }
        bill
    }
}
