//! Packets on their way: puts them on links and keeps them until they are at the other end.

use super::bytes::WireCheck;
use super::flights::Flights;
use super::wires::Wires;
use super::{Now, SanEvent};
use san::{Packet, Port};
use topology::{Channel, VertexId};

/// All links with what is on them.
pub(super) struct Carrier {
    pub wires: Wires,
    pub flights: Flights,
    /// By vertex: whether it runs.
    pub is_running: Vec<bool>,
    /// Where packets are to be checked as bytes: one that cannot be written so has no business on a
    /// link.
    pub check: Option<WireCheck>,
    /// Packets that were put on a link.
    pub crossings: u64,
    /// Packets that a link which is down, or goes down, has lost.
    pub lost: u64,
}

impl Carrier {
    /// Nothing on any link yet, and all of so many vertices running.
    pub fn new(wires: Wires, vertices: usize, check: Option<WireCheck>) -> Carrier {
        Carrier { wires, flights: Flights::new(), is_running: vec![true; vertices], check, crossings: 0, lost: 0 }
    }

    /// Puts a packet on the link of a port.
    pub fn send(&mut self, vertex: VertexId, port: Port, packet: &Packet, context: Now<'_, '_>) {
        if let Some(check) = &mut self.check {
            check.check(packet);
        }
        let Some(channel) = self.link(vertex, port) else { return self.lost += 1 };
        self.crossings += 1;
        let (at, leaving) = self.wires.send(context.now, channel, packet);
        let flight = self.flights.insert(packet, leaving);
        context.at(at, SanEvent::Arrive(flight));
    }

    /// As [`send`](Self::send), for a packet that lies in its place already: nothing of it is
    /// copied. It has arrived just now, so that its track has nothing to add.
    #[inline]
    pub fn send_on(&mut self, vertex: VertexId, port: Port, place: u32, context: Now<'_, '_>) {
        if let Some(check) = &mut self.check {
            check.check(&self.flights[place].packet);
        }
        let Some(channel) = self.link(vertex, port) else { return self.lose(place) };
        self.crossings += 1;
        let flight = &mut self.flights[place];
        let (at, leaving) = self.wires.send(context.now, channel, &flight.packet);
        flight.leaving = leaving;
        context.at(at, SanEvent::Arrive(place));
    }

    /// A packet on a link is lost.
    pub fn lose(&mut self, place: u32) {
        self.flights.discard(place);
        self.lost += 1;
    }

    /// The channel of a port, if frames pass there.
    #[inline]
    fn link(&self, vertex: VertexId, port: Port) -> Option<Channel> {
        let channel = self.wires.channel(vertex, port);
        (self.wires.is_up(channel) && self.is_running[vertex.index()]).then_some(channel)
    }
}
