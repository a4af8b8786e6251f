//! Vertices, links and the adjacency between them. A finished graph is always valid: see
//! [`crate::Builder`].

use crate::config::Config;
use base::{Length, Rate};
use std::fmt;

/// The most vertices of a graph: distances fit into 16 bits.
pub const VERTICES_MAX: usize = 1 << 16;
/// The most links of a graph; a bound before memory is taken.
pub const LINKS_MAX: usize = 1 << 20;

/// The highest rate of a link, so that the rates of all links add up within 63 bits. Ours.
pub const RATE_MAX: Rate = Rate::gbps(8_000);

/// A vertex, counted from 0 in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// A link, counted from 0 in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One direction of a link. Links are full duplex, so each direction has the link's rate to itself.
/// Channels `2 * link` (from the first end to the second) and `2 * link + 1` (back) belong to one
/// link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

impl VertexId {
    /// As an index into [`Graph::vertices`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// As an index into [`Graph::links`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// From the first end to the second.
    pub const fn forward(self) -> Channel {
        Channel(2 * self.0)
    }
    /// From the second end to the first.
    pub const fn backward(self) -> Channel {
        Channel(2 * self.0 + 1)
    }
}

impl Channel {
    /// As an index into tables of [`Graph::channel_count`] entries.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The link.
    pub const fn link(self) -> LinkId {
        LinkId(self.0 / 2)
    }
    /// The other direction of the same link.
    pub const fn reverse(self) -> Channel {
        Channel(self.0 ^ 1)
    }
    /// Returns whether it leads from the link's first end to the second.
    pub const fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }
}

/// What a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VertexKind {
    /// A client. It starts and ends paths only.
    Host,
    /// A storage node. It starts and ends paths only.
    Target,
    /// A low-radix adapter of a switchless SAN: it sits in a storage node and passes on what is not
    /// for that node (paper, 3.2).
    Adapter,
    /// A high-radix switch.
    Switch,
}

impl VertexKind {
    /// Every kind, in their order.
    pub const ALL: [VertexKind; 4] = [VertexKind::Host, VertexKind::Target, VertexKind::Adapter, VertexKind::Switch];

    /// Returns whether a path may lead through it.
    pub const fn forwards(self) -> bool {
        matches!(self, VertexKind::Adapter | VertexKind::Switch)
    }

    /// The word for it in files and messages.
    pub const fn word(self) -> &'static str {
        match self {
            VertexKind::Host => "host",
            VertexKind::Target => "target",
            VertexKind::Adapter => "adapter",
            VertexKind::Switch => "switch",
        }
    }
}

impl fmt::Display for VertexKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// A place of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// Kind of the vertex.
    pub kind: VertexKind,
    /// Its name, unique in the graph.
    pub name: String,
    /// Number of its ports, used or not.
    pub ports: u32,
}

/// Configuration of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// A cable between two ports.
    Cable,
    /// Traces inside a storage node, between a target and its adapter: no port, no cable.
    Board,
}

impl Medium {
    /// The word for it in files.
    pub const fn word(self) -> &'static str {
        match self {
            Medium::Cable => "cable",
            Medium::Board => "board",
        }
    }
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The vertex at the other end.
    pub vertex: VertexId,
    /// The port there, from 0; `None` on a board.
    pub port: Option<u32>,
}

/// A full-duplex connection of two vertices. Parallel links are allowed: a bundle, or a torus that
/// is 2 wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its two ends, of different vertices.
    pub ends: [End; 2],
    /// The rate in each direction.
    pub rate: Rate,
    /// How long it is; zero on a board.
    pub length: Length,
    /// What it is made of.
    pub medium: Medium,
}

/// A step out of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The channel that leaves.
    pub channel: Channel,
    /// The vertex that it leads to.
    pub to: VertexId,
}

/// A network. Two graphs are equal when their vertices, links, missing parts and origin are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) links: Vec<Link>,
    /// What it was built from; `None` of custom graphs.
    pub(crate) config: Option<Config>,
    /// By vertex: whether it works.
    pub(crate) vertex_works: Vec<bool>,
    /// By link: whether it and both its ends work.
    pub(crate) link_works: Vec<bool>,
    /// Compressed adjacency: the hops of vertex `v` are `hops[offsets[v]..offsets[v + 1]]`, in the
    /// order of links (and so of ports).
    offsets: Vec<u32>,
    hops: Vec<Hop>,
}

impl Graph {
    /// Everything works. The caller has checked the parts.
    pub(crate) fn new(vertices: Vec<Vertex>, links: Vec<Link>, config: Option<Config>) -> Graph {
        let (vertex_works, link_works) = (vec![true; vertices.len()], vec![true; links.len()]);
        let mut graph =
            Graph { vertices, links, config, vertex_works, link_works, offsets: Vec::new(), hops: Vec::new() };
        graph.index();
        graph
    }

    /// Builds the adjacency of what works, by counting sort over the links.
    pub(crate) fn index(&mut self) {
        let mut offsets = vec![0u32; self.vertices.len() + 1];
        for link in self.working_links() {
            for end in self.links[link.index()].ends {
                offsets[end.vertex.index() + 1] += 1;
            }
        }
        for vertex in 0..self.vertices.len() {
            offsets[vertex + 1] += offsets[vertex];
        }
        let mut next = offsets.clone();
        let mut hops = vec![Hop { channel: Channel(0), to: VertexId(0) }; offsets[self.vertices.len()] as usize];
        for link in self.working_links() {
            let [first, second] = self.links[link.index()].ends.map(|end| end.vertex);
            for (from, channel, to) in [(first, link.forward(), second), (second, link.backward(), first)] {
                hops[next[from.index()] as usize] = Hop { channel, to };
                next[from.index()] += 1;
            }
        }
        (self.offsets, self.hops) = (offsets, hops);
    }

    /// Every vertex, missing ones too, in the order of ids.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Every link, missing ones too, in the order of ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// A vertex.
    pub fn vertex(&self, vertex: VertexId) -> &Vertex {
        &self.vertices[vertex.index()]
    }

    /// A link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// The ids of all vertices.
    pub fn vertex_ids(&self) -> impl Iterator<Item = VertexId> + use<> {
        (0..self.vertices.len() as u32).map(VertexId)
    }

    /// The ids of all vertices of a kind.
    pub fn of_kind(&self, kind: VertexKind) -> impl Iterator<Item = VertexId> {
        self.vertex_ids().filter(move |vertex| self.vertex(*vertex).kind == kind)
    }

    /// The vertex of this name; a search through all.
    pub fn named(&self, name: &str) -> Option<VertexId> {
        self.vertex_ids().find(|vertex| self.vertex(*vertex).name == name)
    }

    /// Twice the number of links: the length of a table by channel.
    pub fn channel_count(&self) -> usize {
        2 * self.links.len()
    }

    /// Returns the start of a channel.
    pub fn source(&self, channel: Channel) -> VertexId {
        self.channel_end(channel, !channel.is_forward()).vertex
    }

    /// Where a channel ends.
    pub fn target(&self, channel: Channel) -> VertexId {
        self.channel_end(channel, channel.is_forward()).vertex
    }

    /// The port out of which a channel leads; `None` on a board.
    pub fn egress_port(&self, channel: Channel) -> Option<u32> {
        self.channel_end(channel, !channel.is_forward()).port
    }

    fn channel_end(&self, channel: Channel, is_second: bool) -> End {
        self.link(channel.link()).ends[usize::from(is_second)]
    }

    /// The working hops out of a vertex, by link id; on a vertex without board links that is by
    /// port.
    pub fn hops(&self, vertex: VertexId) -> &[Hop] {
        &self.hops[self.offsets[vertex.index()] as usize..self.offsets[vertex.index() + 1] as usize]
    }

    /// Returns how many working links a vertex has.
    pub fn degree(&self, vertex: VertexId) -> usize {
        self.hops(vertex).len()
    }

    /// The channels out of `source` that lead to `target`: several when the two are joined by a
    /// bundle.
    pub fn channels_between(&self, source: VertexId, target: VertexId) -> impl Iterator<Item = Channel> {
        self.hops(source).iter().filter(move |hop| hop.to == target).map(|hop| hop.channel)
    }

    /// Returns whether a vertex works.
    pub fn works(&self, vertex: VertexId) -> bool {
        self.vertex_works[vertex.index()]
    }

    /// Returns whether a link and both its ends work.
    pub fn link_works(&self, link: LinkId) -> bool {
        self.link_works[link.index()]
    }

    /// The links that work.
    pub fn working_links(&self) -> impl Iterator<Item = LinkId> {
        (0..self.links.len() as u32).map(LinkId).filter(|link| self.link_works(*link))
    }

    /// Returns whether every vertex and every link works.
    pub fn is_whole(&self) -> bool {
        self.vertex_works.iter().chain(&self.link_works).all(|works| *works)
    }

    /// The parameters it was built from; `None` of custom graphs.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Between whom the network's distances and bandwidth are counted: the working adapters where
    /// there are any (in a switchless SAN an adapter *is* the storage node's place), else hosts and
    /// targets, else switches.
    pub fn nodes(&self) -> Vec<VertexId> {
        let of = |wanted: &[VertexKind]| -> Vec<VertexId> {
            self.vertex_ids().filter(|id| self.works(*id) && wanted.contains(&self.vertex(*id).kind)).collect()
        };
        [&[VertexKind::Adapter][..], &[VertexKind::Host, VertexKind::Target], &[VertexKind::Switch]]
            .into_iter()
            .map(of)
            .find(|nodes| !nodes.is_empty())
            .unwrap_or_default()
    }

    /// Returns whether a path may pass through a vertex.
    pub(crate) fn forwards(&self, vertex: VertexId) -> bool {
        self.vertex(vertex).kind.forwards()
    }
}
