//! Packets between vertices.

use super::carrier::Carrier;
use super::wires::Fate;
use super::{Now, Place as At, SanEvent, SanRig};
use base::{Program, Time};
use record::{Place, SpanKind};
use san::Port;
use san::hop::{HopIn, HopOut, Passed};
use san::route::Advertisement;
use topology::VertexId;

/// A hop is called about a port then.
#[inline]
fn wake_at(vertex: VertexId, port: Port, at: Time, context: Now<'_, '_>) {
    context.at(at.max(context.now), SanEvent::PortFree(vertex, port));
}

impl SanRig {
    /// A packet is at the end of its link.
    pub(super) fn arrive(&mut self, place: u32, context: Now<'_, '_>) {
        let Carrier { wires, flights, .. } = &mut self.carrier;
        let flight = &flights[place];
        if flight.leaving.fate == Fate::Lost {
            return self.carrier.lose(place);
        }
        if let Some(track) = self.tracks.of(&flight.packet) {
            let ready_at = flight.leaving.ready_at;
            let parts = wires.parts(context.now, flight);
            track.claim_leg(ready_at, Place::Link(flight.leaving.channel.0), parts);
        }
        let (vertex, port) = wires.end(flight.leaving.channel);
        match self.vertices.places[vertex.index()] {
            At::Hop(hop) => match self.engines.take(context.now, vertex, &flight.packet) {
                Some(begin) => self.await_engine(place, begin, context),
                None => self.pass_hop(vertex, hop, port, place, context),
            },
            At::Host(host) => self.host_receives(vertex, host, port, place, context),
            At::Target(target) => self.target_receives(vertex, target, port, place, context),
        }
    }

    /// A packet is in an adapter whose engine is not free. Links that break do not reach it there.
    #[cold]
    fn await_engine(&mut self, place: u32, begin: Time, context: Now<'_, '_>) {
        let flight = &mut self.carrier.flights[place];
        flight.leaving.fate = Fate::Waits;
        self.tracks.waits(context.now, &flight.packet);
        context.at(begin, SanEvent::Forward(place));
    }

    /// The engine has come to a packet, unless its adapter has failed meanwhile.
    #[inline(never)]
    pub(super) fn forward(&mut self, place: u32, context: Now<'_, '_>) {
        let Carrier { wires, flights, is_running, .. } = &self.carrier;
        let (vertex, port) = wires.end(flights[place].leaving.channel);
        let At::Hop(hop) = self.vertices.places[vertex.index()] else { return };
        if !is_running[vertex.index()] {
            return self.carrier.lose(place);
        }
        if let Some(track) = self.tracks.of(&flights[place].packet) {
            track.waited(context.now, SpanKind::SwitchQueue, Place::Switch(vertex.0));
        }
        self.pass_hop(vertex, hop, port, place, context);
    }

    /// A hop has a packet, which stays where it is when it goes on at once.
    #[inline(always)]
    fn pass_hop(&mut self, vertex: VertexId, hop: u32, port: Port, place: u32, context: Now<'_, '_>) {
        let packet = &mut self.carrier.flights[place].packet;
        let passed = self.programs.hops[hop as usize].pass(context.now, port, packet, &mut self.programs.hop_out);
        if !matches!(passed, Passed::On(_)) {
            self.tracks.waits(context.now, packet);
        }
        self.hop_did(vertex, context);
        if let Passed::On(port) = passed {
            return self.carrier.send_on(vertex, port, place, context);
        }
        self.carrier.flights.discard(place);
        if let Passed::Waits(port, at) = passed {
            wake_at(vertex, port, at, context);
        }
    }

    pub(super) fn tell_hop(&mut self, vertex: VertexId, input: HopIn, context: Now<'_, '_>) {
        let At::Hop(place) = self.vertices.places[vertex.index()] else { return };
        self.programs.hops[place as usize].on(context.now, input, &mut self.programs.hop_out);
        self.hop_did(vertex, context);
        self.arm(vertex, context);
    }

    pub(super) fn wake_hop(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        let At::Hop(place) = self.vertices.places[vertex.index()] else { return };
        self.programs.hops[place as usize].on_wakeup(context.now, &mut self.programs.hop_out);
        self.hop_did(vertex, context);
        self.arm(vertex, context);
    }

    /// Nothing to arm after this: distances move by what neighbours say, not by packets.
    pub(super) fn port_free(&mut self, vertex: VertexId, port: Port, context: Now<'_, '_>) {
        let At::Hop(place) = self.vertices.places[vertex.index()] else { return };
        if !self.carrier.is_running[vertex.index()] {
            return;
        }
        let hop = &mut self.programs.hops[place as usize];
        if let Some(packet) = hop.next_to_send(context.now, port) {
            if let Some(track) = self.tracks.of(packet) {
                track.waited(context.now, SpanKind::SwitchQueue, Place::Switch(vertex.0));
            }
            self.carrier.send(vertex, port, packet, context);
        }
        let wake = hop.port_freed(context.now, port, &mut self.programs.hop_out);
        self.hop_did(vertex, context);
        if let Some(at) = wake {
            wake_at(vertex, port, at, context);
        }
    }

    /// Usually nothing: a packet that goes on at once is not among what comes out.
    #[inline]
    fn hop_did(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        if !self.programs.hop_out.is_empty() {
            self.do_all_for_hop(vertex, context);
        }
    }

    #[inline(never)]
    fn do_all_for_hop(&mut self, vertex: VertexId, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.programs.hop_out);
        for action in &mut out {
            self.do_for_hop(vertex, action, context);
        }
        out.clear();
        self.programs.hop_out = out;
    }

    fn do_for_hop(&mut self, vertex: VertexId, action: &mut HopOut, context: Now<'_, '_>) {
        match action {
            HopOut::Send { port, packet } => {
                if let Some(track) = self.tracks.of(packet) {
                    track.waited(context.now, SpanKind::SwitchQueue, Place::Switch(vertex.0));
                }
                self.carrier.send(vertex, *port, packet, context);
            }
            HopOut::Wake { port, at } => wake_at(vertex, *port, *at, context),
            HopOut::Advertise { port, advertisement: Advertisement { distances } } => {
                let advertisement = Advertisement { distances: std::mem::take(distances) };
                self.tell(vertex, *port, advertisement, context);
            }
            HopOut::Drop { .. } => self.observed.counts.dropped += 1,
        }
    }
}
