//! Builds a checked graph from vertices and links.

use crate::config::Config;
use crate::error::BuildError;
use crate::graph::{End, Graph, LINKS_MAX, Link, LinkId, Medium, RATE_MAX, VERTICES_MAX, Vertex, VertexId, VertexKind};
use base::{Length, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// Collects vertices and links. Ports are assigned in the order of the cables; nothing is checked
/// before [`Builder::finish`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    vertices: Vec<Vertex>,
    links: Vec<Link>,
    /// By vertex: number of ports used by cables.
    ports_taken: Vec<u32>,
}

impl Builder {
    /// Creates an empty builder.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds a vertex with this number of ports.
    pub fn vertex(&mut self, kind: VertexKind, name: impl Into<String>, ports: u32) -> VertexId {
        self.vertices.push(Vertex { kind, name: name.into(), ports });
        self.ports_taken.push(0);
        VertexId(self.vertices.len() as u32 - 1)
    }

    /// Adds a cable, in the next free port of each end.
    ///
    /// # Panics
    ///
    /// When an end is not a vertex of this builder.
    pub fn cable(&mut self, ends: [VertexId; 2], rate: Rate, length: Length) -> LinkId {
        let ends = ends.map(|vertex| {
            let taken = self.ports_taken.get_mut(vertex.index()).expect("a cable joins vertices of its builder");
            *taken += 1;
            End { vertex, port: Some(*taken - 1) }
        });
        self.push(Link { ends, rate, length, medium: Medium::Cable })
    }

    /// Joins a target and the adapter in its node, or a host and its adapter, without using a port.
    ///
    /// # Panics
    ///
    /// When an end is not a vertex of this builder.
    pub fn board(&mut self, ends: [VertexId; 2], rate: Rate) -> LinkId {
        assert!(ends.iter().all(|end| end.index() < self.vertices.len()), "a board joins vertices of its builder");
        let ends = ends.map(|vertex| End { vertex, port: None });
        self.push(Link { ends, rate, length: Length::mm(0), medium: Medium::Board })
    }

    /// Returns the number of free ports of a vertex; 0 if too many are taken.
    pub(crate) fn free_ports(&self, vertex: VertexId) -> u32 {
        self.vertices[vertex.index()].ports.saturating_sub(self.ports_taken[vertex.index()])
    }

    fn push(&mut self, link: Link) -> LinkId {
        self.links.push(link);
        LinkId(self.links.len() as u32 - 1)
    }

    /// Checks and returns the graph.
    ///
    /// # Errors
    ///
    /// When a vertex has more cables than ports, or two vertices share a name. When a link joins a
    /// vertex to itself, or has a rate of 0 or above [`RATE_MAX`](crate::RATE_MAX). When a board
    /// joins anything but an endpoint and an adapter. When a vertex cannot be reached, or there are
    /// too many vertices or links.
    pub fn finish(self) -> Result<Graph, BuildError> {
        self.finish_as(None)
    }

    pub(crate) fn finish_as(self, config: Option<Config>) -> Result<Graph, BuildError> {
        self.check_counts()?;
        self.check_names()?;
        self.check_ports()?;
        (0..self.links.len()).try_for_each(|link| self.check_link(LinkId(link as u32)))?;
        let graph = Graph::new(self.vertices, self.links, config);
        check_connected(&graph)?;
        Ok(graph)
    }

    fn check_counts(&self) -> Result<(), BuildError> {
        let range = |field: &'static str, got: usize, min: u64, max: usize| {
            let (got, max) = (got as u64, max as u64);
            if (min..=max).contains(&got) { Ok(()) } else { Err(BuildError::OutOfRange { field, got, min, max }) }
        };
        range("vertices", self.vertices.len(), 1, VERTICES_MAX)?;
        range("links", self.links.len(), 0, LINKS_MAX)
    }

    fn check_names(&self) -> Result<(), BuildError> {
        let mut seen = BTreeMap::new();
        for (index, vertex) in self.vertices.iter().enumerate() {
            if let Some(first) = seen.insert(vertex.name.as_str(), index) {
                return Err(BuildError::NameTwice { name: vertex.name.clone(), first, second: index });
            }
        }
        Ok(())
    }

    fn check_ports(&self) -> Result<(), BuildError> {
        for (vertex, taken) in self.vertices.iter().zip(&self.ports_taken) {
            if *taken > vertex.ports {
                let (name, kind, ports) = (vertex.name.clone(), vertex.kind, vertex.ports);
                return Err(BuildError::PortsOverRadix { name, kind, cables: *taken, ports });
            }
        }
        Ok(())
    }

    fn check_link(&self, id: LinkId) -> Result<(), BuildError> {
        let link = &self.links[id.index()];
        let [first, second] = link.ends.map(|end| &self.vertices[end.vertex.index()]);
        if std::ptr::eq(first, second) {
            return Err(BuildError::JoinsItself { link: id, name: first.name.clone() });
        }
        let ends = || [first.name.clone(), second.name.clone()];
        if !(1..=RATE_MAX.as_bps()).contains(&link.rate.as_bps()) {
            return Err(BuildError::BadRate { link: id, ends: ends(), got: link.rate, max: RATE_MAX });
        }
        let adapters = [first, second].iter().filter(|vertex| vertex.kind == VertexKind::Adapter).count();
        let endpoints = [first, second].iter().filter(|vertex| !vertex.kind.forwards()).count();
        if link.medium == Medium::Board && (adapters, endpoints) != (1, 1) {
            return Err(BuildError::BadBoard { link: id, ends: ends(), kinds: [first.kind, second.kind] });
        }
        Ok(())
    }
}

/// Hosts, targets and adapters must all reach each other, and they must reach every switch. Two of
/// them that touch the same islands of forwarding vertices (redundant switches are one each) reach
/// the same vertices, so one search per set of islands suffices.
fn check_connected(graph: &Graph) -> Result<(), BuildError> {
    let islands = islands(graph);
    let mut ends: Vec<VertexId> =
        graph.vertex_ids().filter(|id| graph.vertex(*id).kind != VertexKind::Switch).collect();
    if ends.is_empty() {
        ends.extend(graph.vertex_ids());
    }
    let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
    for (index, end) in ends.iter().enumerate() {
        let around = graph.hops(*end).iter().map(|hop| hop.to).chain([*end]);
        let touched: BTreeSet<u32> = around.filter_map(|vertex| islands[vertex.index()]).collect();
        if touched.is_empty() || seen.insert(touched.into_iter().collect()) {
            let must_reach: Vec<VertexId> = if index == 0 { graph.vertex_ids().collect() } else { ends.clone() };
            check_reach(graph, *end, &must_reach)?;
        }
    }
    Ok(())
}

fn check_reach(graph: &Graph, from: VertexId, must_reach: &[VertexId]) -> Result<(), BuildError> {
    let distances = graph.distances_from(from);
    match must_reach.iter().find(|vertex| distances.to(**vertex).is_none()) {
        None => Ok(()),
        Some(unreached) => Err(BuildError::Disconnected {
            from: graph.vertex(from).name.clone(),
            unreached: graph.vertex(*unreached).name.clone(),
            reached: graph.vertex_ids().filter(|vertex| distances.to(*vertex).is_some()).count(),
            vertices: graph.vertices.len(),
        }),
    }
}

/// Returns, for each forwarding vertex, the number of its connected component in the graph without
/// endpoints.
fn islands(graph: &Graph) -> Vec<Option<u32>> {
    let mut islands = vec![None; graph.vertices.len()];
    let mut count = 0;
    for start in graph.vertex_ids().filter(|id| graph.forwards(*id)) {
        if islands[start.index()].is_some() {
            continue;
        }
        let mut stack = vec![start];
        while let Some(vertex) = stack.pop() {
            if islands[vertex.index()].replace(count).is_none() {
                let next = graph.hops(vertex).iter().map(|hop| hop.to);
                stack.extend(next.filter(|to| graph.forwards(*to) && islands[to.index()].is_none()));
            }
        }
        count += 1;
    }
    islands
}
