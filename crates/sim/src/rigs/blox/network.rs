//! The rack's network: wires, packets on them, and the ports of the switch that are sending.

use super::BloxEvent;
use super::wires::{Flight, WireConfig, Wires};
use crate::slab::Slab;
use base::{NodeId, Span, Time};
use blox::{Body, Packet};

/// A port of the switch that is sending. Mostly nothing waits behind it, and the switch learns of
/// the end only before its next input.
#[derive(Clone, Copy, Debug)]
struct BusyPort {
    node: NodeId,
    free_at: Time,
    has_event: bool,
}

/// Wires and what is on them.
pub struct Network {
    wires: Wires,
    flights: Slab<Flight>,
    busy_ports: Vec<BusyPort>,
    /// Buffer in which every packet is encoded and decoded, in a checked run.
    wire_check: Option<Vec<u8>>,
}

impl Network {
    /// An idle network.
    pub fn new(config: WireConfig, wire_check: bool) -> Network {
        let wire_check = wire_check.then(Vec::new);
        Network { wires: Wires::new(config), flights: Slab::new(), busy_ports: Vec::new(), wire_check }
    }

    /// A node sends a packet; returns its arrival.
    pub fn send(&mut self, now: Time, from: NodeId, packet: Packet) -> (Time, BloxEvent) {
        self.check(&packet);
        let is_outside = self.wires.is_outside(from, packet.target);
        let (at, flight) = self.wires.send(now, from, packet, is_outside);
        let place = self.flights.insert(flight);
        (at, if is_outside { BloxEvent::AtNode(place) } else { BloxEvent::AtSwitch(place) })
    }

    /// The switch starts to send a packet; returns its arrival, unless it is background traffic,
    /// which nobody receives.
    pub fn transmit(&mut self, now: Time, port: NodeId, packet: Packet) -> Option<(Time, BloxEvent)> {
        self.check(&packet);
        let (at, free_at, flight) = self.wires.transmit(now, port, packet);
        self.busy_ports.push(BusyPort { node: port, free_at, has_event: false });
        let is_background = matches!(packet.body, Body::Background { .. });
        (!is_background).then(|| (at, BloxEvent::AtNode(self.flights.insert(flight))))
    }

    /// Ends a packet's leg. Returns it and the parts of the leg's time.
    pub fn land(&mut self, place: u32) -> (Flight, [(record::SpanKind, Span); 6]) {
        let flight = self.flights.remove(place);
        (flight, self.wires.parts(&flight.times))
    }

    /// Takes a port that has become idle.
    pub fn idle_port(&mut self, now: Time) -> Option<NodeId> {
        let place = self.busy_ports.iter().position(|port| port.free_at <= now)?;
        Some(self.busy_ports.swap_remove(place).node)
    }

    /// A link is dead: its port sends nothing.
    pub fn cut(&mut self, node: NodeId) {
        self.busy_ports.retain(|port| port.node != node);
    }

    /// The times at which ports fall idle behind which packets wait, each once.
    pub fn awaited(&mut self, is_waiting: impl Fn(NodeId) -> bool) -> impl Iterator<Item = Time> {
        let awaited = self.busy_ports.iter_mut().filter(move |port| !port.has_event && is_waiting(port.node));
        awaited.map(|port| {
            port.has_event = true;
            port.free_at
        })
    }

    /// Busy time of each direction of each link.
    pub fn busy(&self, out: &mut Vec<Span>) {
        self.wires.busy(out);
    }

    /// Encodes and decodes a packet in a checked run: its bytes carry all of it.
    fn check(&mut self, packet: &Packet) {
        let Some(bytes) = &mut self.wire_check else { return };
        bytes.clear();
        blox::encode(packet, bytes);
        assert_eq!(blox::decode(bytes).as_ref(), Ok(packet), "a packet's bytes decode to the packet");
        assert_eq!(bytes.len() as u64, packet.wire_bytes().count(), "a packet is as long as its bytes");
    }
}
