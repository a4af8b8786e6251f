//! Packets between vertices.

use super::{Now, Place, SanEvent, SanRig};
use base::Program;
use record::SpanKind;
use san::hop::{HopIn, HopOut};
use san::{Packet, Port};
use topology::VertexId;

impl SanRig {
    /// Puts a packet on the link of a port.
    pub(super) fn send(&mut self, vertex: VertexId, port: Port, packet: Packet, context: Now<'_, '_>) {
        if let Some(check) = &mut self.wire_check {
            check.check(&packet);
        }
        let channel = self.wires.channel(vertex, port);
        if !self.wires.is_up(channel) || !self.is_running[vertex.index()] {
            self.counts.lost_on_wire += 1;
            return;
        }
        self.counts.hops += 1;
        let (at, flight) = self.wires.send(context.now, channel, packet);
        let flight = self.flights.insert(flight);
        context.at(at, SanEvent::Arrive(flight));
    }

    /// A packet is at the end of its link.
    pub(super) fn arrive(&mut self, place: u32, context: Now<'_, '_>) {
        let flight = &self.flights[place];
        if flight.is_lost {
            self.flights.discard(place);
            self.counts.lost_on_wire += 1;
            return;
        }
        if let Some(track) = self.tracks.of(&flight.packet) {
            track.reach_by(context.now, &self.wires.parts(flight));
        }
        let packet = flight.packet;
        let (vertex, port) = self.wires.end(flight.channel);
        self.flights.discard(place);
        match self.places[vertex.index()] {
            Place::Hop(_) => self.tell_hop(vertex, HopIn::Packet { port, packet }, context),
            Place::Host(_) => self.host_receives(vertex, port, packet, context),
            Place::Target(_) => self.target_receives(vertex, port, packet, context),
        }
    }

    pub(super) fn tell_hop(&mut self, vertex: VertexId, input: HopIn, context: Now<'_, '_>) {
        let Place::Hop(place) = self.places[vertex.index()] else { return };
        // Distances move by what neighbours say, not by packets.
        let may_arm = !matches!(input, HopIn::Packet { .. } | HopIn::PortFree(_));
        let mut out = std::mem::take(&mut self.hop_out);
        self.hops[place as usize].on(context.now, input, &mut out);
        self.hop_did(vertex, &mut out, context);
        self.hop_out = out;
        if may_arm {
            self.arm(vertex, context);
        }
    }

    pub(super) fn wake_hop(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        let Place::Hop(place) = self.places[vertex.index()] else { return };
        let mut out = std::mem::take(&mut self.hop_out);
        self.hops[place as usize].on_wakeup(context.now, &mut out);
        self.hop_did(vertex, &mut out, context);
        self.hop_out = out;
        self.arm(vertex, context);
    }

    fn hop_did(&mut self, vertex: VertexId, out: &mut Vec<HopOut>, context: Now<'_, '_>) {
        for action in out.drain(..) {
            match action {
                HopOut::Send { port, packet } => {
                    if let Some(track) = self.tracks.of(&packet) {
                        track.reach(context.now, SpanKind::SwitchQueue);
                    }
                    self.send(vertex, port, packet, context);
                }
                HopOut::Wake { port, at } => context.at(at.max(context.now), SanEvent::PortFree(vertex, port)),
                HopOut::Advertise { port, advertisement } => self.tell(vertex, port, advertisement, context),
                HopOut::Drop { .. } => self.counts.dropped += 1,
            }
        }
    }

    pub(super) fn port_free(&mut self, vertex: VertexId, port: Port, context: Now<'_, '_>) {
        if self.is_running[vertex.index()] {
            self.tell_hop(vertex, HopIn::PortFree(port), context);
        }
    }
}
