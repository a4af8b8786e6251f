//! Vertices, links and the adjacency between them. A finished graph is always valid: see
//! [`crate::Builder`].

use crate::config::Config;
use base::{Length, Rate};
use std::fmt;

/// Maximum number of vertices of a graph: distances fit into 16 bits.
pub const VERTICES_MAX: usize = 1 << 16;
/// Maximum number of links of a graph, checked before memory is allocated.
pub const LINKS_MAX: usize = 1 << 20;

/// Maximum rate of a link, so that the rates of all links add up within 63 bits. Our choice.
pub const RATE_MAX: Rate = Rate::gbps(8_000);

/// A vertex, numbered from 0 in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VertexId(pub u32);

/// A link, numbered from 0 in the order of adding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One direction of a link. Links are full duplex, so each direction has the full rate of the link.
/// Channels `2 * link` (from the first end to the second) and `2 * link + 1` (back) belong to one
/// link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

impl VertexId {
    /// Returns the index into [`Graph::vertices`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Returns the index into [`Graph::links`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// Returns the channel from the first end to the second.
    pub const fn forward(self) -> Channel {
        Channel(2 * self.0)
    }
    /// Returns the channel from the second end to the first.
    pub const fn backward(self) -> Channel {
        Channel(2 * self.0 + 1)
    }
}

impl Channel {
    /// Returns the index into tables of [`Graph::channel_count`] entries.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// Returns the link.
    pub const fn link(self) -> LinkId {
        LinkId(self.0 / 2)
    }
    /// Returns the other direction of the same link.
    pub const fn reverse(self) -> Channel {
        Channel(self.0 ^ 1)
    }
    /// Returns whether it leads from the link's first end to the second.
    pub const fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }
}

/// The kind of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VertexKind {
    /// A client, which can only be an end of a path.
    Host,
    /// A storage node, which can only be an end of a path.
    Target,
    /// A low-radix adapter of a switchless SAN, inside a storage node. It forwards packets that are
    /// not for that node (paper, 3.2).
    Adapter,
    /// A high-radix switch.
    Switch,
}

impl VertexKind {
    /// Every kind, in order.
    pub const ALL: [VertexKind; 4] = [VertexKind::Host, VertexKind::Target, VertexKind::Adapter, VertexKind::Switch];

    /// Returns whether a path may lead through it.
    pub const fn forwards(self) -> bool {
        matches!(self, VertexKind::Adapter | VertexKind::Switch)
    }

    /// Returns its name in files and messages.
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

/// A vertex of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vertex {
    /// Kind of the vertex.
    pub kind: VertexKind,
    /// Its name, unique in the graph.
    pub name: String,
    /// Number of its ports, used or not.
    pub ports: u32,
}

/// The medium of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// A cable between two ports.
    Cable,
    /// Traces inside a storage node, between a target and its adapter: no port, no cable.
    Board,
}

impl Medium {
    /// Returns its name in files.
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
    /// The vertex at this end.
    pub vertex: VertexId,
    /// The port of the vertex, from 0; `None` on a board.
    pub port: Option<u32>,
}

/// A full-duplex link between two vertices. Parallel links are allowed: a bundle, or a torus with a
/// dimension of 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its two ends, of different vertices.
    pub ends: [End; 2],
    /// The rate in each direction.
    pub rate: Rate,
    /// Length of the cable; zero on a board.
    pub length: Length,
    /// The medium.
    pub medium: Medium,
}

/// A hop from a vertex to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The outgoing channel.
    pub channel: Channel,
    /// The vertex to which it leads.
    pub to: VertexId,
}

/// A network. Two graphs are equal if their vertices, links, failed parts and origin are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) links: Vec<Link>,
    /// The parameters from which it was built; `None` for custom graphs.
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
    /// Creates a graph without failures. The caller has checked the parts.
    pub(crate) fn new(vertices: Vec<Vertex>, links: Vec<Link>, config: Option<Config>) -> Graph {
        let (vertex_works, link_works) = (vec![true; vertices.len()], vec![true; links.len()]);
        let mut graph =
            Graph { vertices, links, config, vertex_works, link_works, offsets: Vec::new(), hops: Vec::new() };
        graph.index();
        graph
    }

    /// Builds the adjacency of the working parts, by counting sort over the links.
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

    /// Returns every vertex, including failed ones, in the order of ids.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Returns every link, including failed ones, in the order of ids.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns a vertex.
    pub fn vertex(&self, vertex: VertexId) -> &Vertex {
        &self.vertices[vertex.index()]
    }

    /// Returns a link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// Returns the ids of all vertices.
    pub fn vertex_ids(&self) -> impl Iterator<Item = VertexId> + use<> {
        (0..self.vertices.len() as u32).map(VertexId)
    }

    /// Returns the ids of all vertices of a kind.
    pub fn of_kind(&self, kind: VertexKind) -> impl Iterator<Item = VertexId> {
        self.vertex_ids().filter(move |vertex| self.vertex(*vertex).kind == kind)
    }

    /// Returns the vertex of this name, by a linear search.
    pub fn named(&self, name: &str) -> Option<VertexId> {
        self.vertex_ids().find(|vertex| self.vertex(*vertex).name == name)
    }

    /// Returns twice the number of links: the length of a table by channel.
    pub fn channel_count(&self) -> usize {
        2 * self.links.len()
    }

    /// Returns the start of a channel.
    pub fn source(&self, channel: Channel) -> VertexId {
        self.channel_end(channel, !channel.is_forward()).vertex
    }

    /// Returns the end of a channel.
    pub fn target(&self, channel: Channel) -> VertexId {
        self.channel_end(channel, channel.is_forward()).vertex
    }

    /// Returns the egress port of a channel, or `None` on a board.
    pub fn egress_port(&self, channel: Channel) -> Option<u32> {
        self.channel_end(channel, !channel.is_forward()).port
    }

    fn channel_end(&self, channel: Channel, is_second: bool) -> End {
        self.link(channel.link()).ends[usize::from(is_second)]
    }

    /// Returns the working hops from a vertex, by link id, which is the order of ports for a vertex
    /// without board links.
    pub fn hops(&self, vertex: VertexId) -> &[Hop] {
        &self.hops[self.offsets[vertex.index()] as usize..self.offsets[vertex.index() + 1] as usize]
    }

    /// Returns the number of working links of a vertex.
    pub fn degree(&self, vertex: VertexId) -> usize {
        self.hops(vertex).len()
    }

    /// Returns the channels from `source` to `target`: several if a bundle joins the two.
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

    /// Returns the working links.
    pub fn working_links(&self) -> impl Iterator<Item = LinkId> {
        (0..self.links.len() as u32).map(LinkId).filter(|link| self.link_works(*link))
    }

    /// Returns whether every vertex and every link works.
    pub fn is_whole(&self) -> bool {
        self.vertex_works.iter().chain(&self.link_works).all(|works| *works)
    }

    /// Returns the parameters from which it was built, or `None` for custom graphs.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Returns the vertices between which distances and bandwidth are counted. These are the
    /// working adapters if there are any (in a switchless SAN an adapter represents its storage
    /// node), else hosts and targets, else switches.
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
