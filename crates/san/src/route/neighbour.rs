//! The neighbours of a vertex.

use crate::id::Port;
use base::Rate;
use topology::{Graph, VertexId};

/// The neighbour at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The neighbour's vertex.
    pub vertex: VertexId,
    /// Whether it forwards packets and so advertises distances.
    pub forwards: bool,
    /// Whether it receives advertisements: hops do, and hosts that choose among uplinks.
    pub listens: bool,
    /// Rate of the link.
    pub rate: Rate,
}

/// Returns the neighbours of `vertex` by port. The graph is the whole one, without failures. Hosts
/// receive advertisements if `hosts_listen`.
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

/// Returns the vertex and port at the other end of a port, or `None` if there is no such port.
pub fn peer(graph: &Graph, vertex: VertexId, port: Port) -> Option<(VertexId, Port)> {
    let hop = graph.hops(vertex).get(port.index())?;
    let back = graph.hops(hop.to).iter().position(|other| other.channel == hop.channel.reverse())?;
    Some((hop.to, Port(back as u16)))
}
