//! What is at the other end of a port.

use crate::id::Port;
use base::Rate;
use topology::{Graph, VertexId};

/// What is at the other end of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The vertex there.
    pub vertex: VertexId,
    /// Whether it passes packets on and so advertises distances.
    pub forwards: bool,
    /// Whether it wants advertisements: hops do, and hosts that choose among uplinks.
    pub listens: bool,
    /// Of the link.
    pub rate: Rate,
}

/// The neighbours of `vertex` by port. The graph is the whole one, without failures. Hosts listen
/// where `hosts_listen`.
pub fn neighbours(graph: &Graph, vertex: VertexId, hosts_listen: bool) -> Vec<Neighbour> {
    let of = |hop: &topology::Hop| {
        let kind = graph.vertex(hop.to).kind;
        Neighbour {
            vertex: hop.to,
            forwards: kind.forwards(),
            listens: kind.forwards() || hosts_listen && kind == topology::VertexKind::Host,
            rate: graph.link(hop.channel.link()).rate,
        }
    };
    graph.hops(vertex).iter().map(of).collect()
}

/// The other end of a port: the vertex there and its own port. `None` when there is no such port.
pub fn peer(graph: &Graph, vertex: VertexId, port: Port) -> Option<(VertexId, Port)> {
    let hop = graph.hops(vertex).get(port.index())?;
    let back = graph.hops(hop.to).iter().position(|other| other.channel == hop.channel.reverse())?;
    Some((hop.to, Port(back as u16)))
}
