//! Parts that have failed.

use crate::graph::{Graph, LinkId, VertexId};
use std::collections::BTreeSet;

/// Failed links and vertices. The links of a failed vertex fail with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Failed links.
    pub links: BTreeSet<LinkId>,
    /// Failed vertices.
    pub vertices: BTreeSet<VertexId>,
}

impl Failures {
    /// Creates failures of these links.
    pub fn of_links(links: impl IntoIterator<Item = LinkId>) -> Failures {
        Failures { links: links.into_iter().collect(), vertices: BTreeSet::new() }
    }

    /// Creates failures of these vertices.
    pub fn of_vertices(vertices: impl IntoIterator<Item = VertexId>) -> Failures {
        Failures { links: BTreeSet::new(), vertices: vertices.into_iter().collect() }
    }
}

impl Graph {
    /// Returns this graph with `failures` removed too. Ids, ports and names stay; the result may be
    /// disconnected. Unknown ids are ignored.
    pub fn without(&self, failures: &Failures) -> Graph {
        let mut graph = self.clone();
        for vertex in &failures.vertices {
            graph.vertex_works.get_mut(vertex.index()).into_iter().for_each(|works| *works = false);
        }
        for link in &failures.links {
            graph.link_works.get_mut(link.index()).into_iter().for_each(|works| *works = false);
        }
        for (link, works) in graph.links.iter().zip(&mut graph.link_works) {
            *works &= link.ends.iter().all(|end| graph.vertex_works[end.vertex.index()]);
        }
        graph.index();
        graph
    }

    /// Returns the failed parts, the inverse of [`Graph::without`].
    pub fn failures(&self) -> Failures {
        Failures {
            links: (0..self.links.len() as u32).map(LinkId).filter(|link| !self.link_works(*link)).collect(),
            vertices: self.vertex_ids().filter(|vertex| !self.works(*vertex)).collect(),
        }
    }

    /// Returns whether the working `nodes` can all reach each other.
    pub fn joins(&self, nodes: &[VertexId]) -> bool {
        nodes.first().is_none_or(|first| {
            let distances = self.distances_from(*first);
            nodes.iter().all(|node| distances.to(*node).is_some())
        })
    }
}
