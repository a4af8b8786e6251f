//! Packets between vertices.

use super::bytes::WireCheck;
use super::wires::Wires;
use super::{Now, Place, SanEvent, SanRig};
use base::Program;
use record::SpanKind;
use san::hop::{HopIn, HopOut};
use san::route::Advertisement;
use san::{Packet, Port};
use topology::{Channel, VertexId};

impl SanRig {
    /// Puts a packet on the link of a port.
    pub(super) fn send(&mut self, vertex: VertexId, port: Port, packet: &Packet, context: Now<'_, '_>) {
        let is_running = self.is_running[vertex.index()];
        let Some(channel) = link_for(&mut self.wire_check, &self.wires, is_running, vertex, port, packet) else {
            self.counts.lost_on_wire += 1;
            return;
        };
        self.counts.hops += 1;
        let (at, leaving) = self.wires.send(context.now, channel, packet);
        let flight = self.flights.insert(packet, leaving);
        context.at(at, SanEvent::Arrive(flight));
    }

    /// As [`send`](Self::send), for a packet that lies in its place already: nothing of it is copied. It has arrived just now, so that its track
    /// has nothing to add.
    fn send_on(&mut self, vertex: VertexId, port: Port, place: u32, context: Now<'_, '_>) {
        let (flight, is_running) = (&mut self.flights[place], self.is_running[vertex.index()]);
        let packet = &flight.packet;
        let Some(channel) = link_for(&mut self.wire_check, &self.wires, is_running, vertex, port, packet) else {
            self.counts.lost_on_wire += 1;
            self.flights.discard(place);
            return;
        };
        self.counts.hops += 1;
        let (at, leaving) = self.wires.send(context.now, channel, packet);
        flight.leaving = leaving;
        context.at(at, SanEvent::Arrive(place));
    }

    /// A packet is at the end of its link.
    pub(super) fn arrive(&mut self, place: u32, context: Now<'_, '_>) {
        let flight = &self.flights[place];
        if flight.leaving.is_lost {
            self.flights.discard(place);
            self.counts.lost_on_wire += 1;
            return;
        }
        if let Some(track) = self.tracks.of(&flight.packet) {
            track.reach_by(context.now, self.wires.parts(context.now, flight));
        }
        let (vertex, port) = self.wires.end(flight.leaving.channel);
        match self.places[vertex.index()] {
            Place::Hop(hop) => self.pass_hop(vertex, hop, port, place, context),
            Place::Host(host) => self.host_receives(vertex, host, port, place, context),
            Place::Target(target) => self.target_receives(vertex, target, port, place, context),
        }
    }

    /// A hop has a packet, which stays where it is when it goes on at once.
    fn pass_hop(&mut self, vertex: VertexId, hop: u32, port: Port, place: u32, context: Now<'_, '_>) {
        let packet = &mut self.flights[place].packet;
        let goes_on = self.hops[hop as usize].pass(context.now, port, packet, &mut self.hop_out);
        if goes_on.is_none() {
            self.flights.discard(place);
        }
        self.hop_did(vertex, context);
        if let Some(port) = goes_on {
            self.send_on(vertex, port, place, context);
        }
    }

    pub(super) fn tell_hop(&mut self, vertex: VertexId, input: HopIn, context: Now<'_, '_>) {
        let Place::Hop(place) = self.places[vertex.index()] else { return };
        self.hops[place as usize].on(context.now, input, &mut self.hop_out);
        self.hop_did(vertex, context);
        self.arm(vertex, context);
    }

    pub(super) fn wake_hop(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        let Place::Hop(place) = self.places[vertex.index()] else { return };
        self.hops[place as usize].on_wakeup(context.now, &mut self.hop_out);
        self.hop_did(vertex, context);
        self.arm(vertex, context);
    }

    /// Nothing to arm after this: distances move by what neighbours say, not by packets.
    pub(super) fn port_free(&mut self, vertex: VertexId, port: Port, context: Now<'_, '_>) {
        let Place::Hop(place) = self.places[vertex.index()] else { return };
        if self.is_running[vertex.index()] {
            self.hops[place as usize].port_free(context.now, port, &mut self.hop_out);
            self.hop_did(vertex, context);
        }
    }

    fn hop_did(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        if self.hop_out.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.hop_out);
        for action in &mut out {
            self.do_for_hop(vertex, action, context);
        }
        out.clear();
        self.hop_out = out;
    }

    fn do_for_hop(&mut self, vertex: VertexId, action: &mut HopOut, context: Now<'_, '_>) {
        match action {
            HopOut::Send { port, packet } => {
                if let Some(track) = self.tracks.of(packet) {
                    track.reach(context.now, SpanKind::SwitchQueue);
                }
                self.send(vertex, *port, packet, context);
            }
            HopOut::Wake { port, at } => context.at((*at).max(context.now), SanEvent::PortFree(vertex, *port)),
            HopOut::Advertise { port, advertisement: Advertisement { distances } } => {
                let advertisement = Advertisement { distances: std::mem::take(distances) };
                self.tell(vertex, *port, advertisement, context);
            }
            HopOut::Drop { .. } => self.counts.dropped += 1,
        }
    }
}

/// The channel of a port for a packet, if frames pass there; a packet that cannot be written as bytes has no business here.
#[inline(always)]
fn link_for(
    check: &mut Option<WireCheck>,
    wires: &Wires,
    is_running: bool,
    vertex: VertexId,
    port: Port,
    packet: &Packet,
) -> Option<Channel> {
    if let Some(check) = check {
        check.check(packet);
    }
    let channel = wires.channel(vertex, port);
    (wires.is_up(channel) && is_running).then_some(channel)
}
