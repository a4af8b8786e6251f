//! The switch program and its ports.

use super::{Events, Flight, PacketEvent, PacketRig};
use base::{NodeId, Span, Time};
use transport::{Host, HostIn, Packet, Switch, SwitchIn, SwitchOut};

impl<H: Host, S: Switch> PacketRig<H, S> {
    pub(super) fn at_switch(&mut self, tag: u32, events: Events) {
        let flight = &mut self.flights.slab[tag];
        flight.switch_in = events.now;
        let input = SwitchIn { port: flight.from, packet: flight.packet };
        if flight.packet.is_one_hop() {
            self.flights.slab.remove(tag);
        }
        let out = self.switch.tell(events.now, input);
        self.after_switch(out, events);
    }

    pub(super) fn wake_switch(&mut self, events: Events) {
        if let Some(out) = self.switch.wake(events.now) {
            self.after_switch(out, events);
        }
    }

    fn after_switch(&mut self, mut out: Vec<SwitchOut>, events: Events) {
        for SwitchOut::Drop(packet) in out.drain(..) {
            self.counts.dropped += 1;
            self.counts.dropped_wire += u64::from(packet.wire);
            self.flights.slab.remove(packet.tag - 1);
            self.flights.contents.remove(&(packet.tag - 1));
        }
        self.switch.recycle(out);
        self.pump_ready(events);
    }

    /// Sends on every idle port that the switch has named, and on those that this makes ready.
    fn pump_ready(&mut self, events: Events) {
        let mut ready = std::mem::take(&mut self.scratch.ready);
        self.switch.take_ready(&mut ready);
        while let Some(port) = ready.pop() {
            self.pump_port(port, events);
            self.switch.take_ready(&mut ready);
        }
        self.scratch.ready = ready;
        self.arm_switch(events);
    }

    /// A port's link may have fallen idle.
    pub(super) fn port_free(&mut self, node: NodeId, events: Events) {
        self.ports[node.index()].awaited = false;
        self.pump_port(node, events);
        self.pump_ready(events);
    }

    /// Sends the next packet of a port if its link is idle, and sees to it that it is asked again.
    fn pump_port(&mut self, node: NodeId, events: Events) {
        if self.ports[node.index()].link.is_idle(events.now)
            && let Some(packet) = self.switch.poll_transmit(events.now, node)
        {
            self.forward(node, packet, events);
        }
        let port = &mut self.ports[node.index()];
        if !port.awaited && !port.link.is_idle(events.now) && self.switch.may_transmit(node) {
            port.awaited = true;
            events.at(port.link.free_at(), PacketEvent::PortFree(node));
        }
    }

    fn forward(&mut self, node: NodeId, packet: Packet, events: Events) {
        let tag = self.take_up(packet, events.now);
        self.check_wire(&packet);
        let port = &mut self.ports[node.index()];
        let (_, free) = port.link.occupy(events.now, self.path.serialization(packet.wire));
        port.sent += u64::from(packet.wire);
        events.at(free + self.path.switch_to_host(&packet), PacketEvent::AtHost(tag));
    }

    /// The flight of a packet that leaves the switch: the one it came in as, or a new one if the
    /// switch made it.
    fn take_up(&mut self, packet: Packet, now: Time) -> u32 {
        if let Some(tag) = packet.tag.checked_sub(1) {
            let flight = &mut self.flights.slab[tag];
            flight.packet = packet;
            flight.switch_out = now;
            return tag;
        }
        let (from, busy_before, own_before) = (packet.source, Span::ZERO, Span::ZERO);
        self.flights.slab.insert(Flight {
            packet,
            from,
            left_at: now,
            busy_before,
            own_before,
            switch_in: now,
            switch_out: now,
        })
    }

    fn arm_switch(&mut self, events: Events) {
        if let Some(at) = self.switch.arm(events.now) {
            events.at(at, PacketEvent::SwitchWake);
        }
    }

    pub(super) fn at_host(&mut self, tag: u32, node: NodeId, events: Events) {
        let flight = self.flights.slab.remove(tag);
        self.counts.delivered_packets += 1;
        if !self.flights.contents.is_empty()
            && let Some(content) = self.flights.contents.remove(&tag)
        {
            self.places[node.index()].seat.give_content(&content);
        }
        self.tell_host(node, HostIn::Receive(flight.packet), Some(&flight), events);
    }
}
