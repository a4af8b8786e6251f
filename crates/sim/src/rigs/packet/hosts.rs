//! Host programs and their links.

use super::{Events, Flight, PacketEvent, PacketRig};
use base::{NodeId, Span};
use transport::{Host, HostIn, HostOut, Packet, Switch, framing};

impl<H: Host, S: Switch> PacketRig<H, S> {
    /// Hands `input` to a host, carries out its decisions and those of hosts that it announces
    /// messages to.
    pub(super) fn tell_host(&mut self, node: NodeId, input: HostIn, flight: Option<&Flight>, events: Events) {
        let out = self.places[node.index()].seat.tell(events.now, input);
        self.host_did(node, out, flight, events);
        while let Some(message) = self.scratch.announced.pop() {
            let node = message.target;
            let out = self.places[node.index()].seat.tell(events.now, HostIn::Announced(message));
            self.host_did(node, out, None, events);
        }
    }

    pub(super) fn wake_host(&mut self, node: NodeId, events: Events) {
        if let Some(out) = self.places[node.index()].seat.wake(events.now) {
            self.host_did(node, out, None, events);
        }
    }

    fn host_did(&mut self, node: NodeId, mut out: Vec<HostOut>, flight: Option<&Flight>, events: Events) {
        self.carry_out(&mut out, flight, events);
        self.places[node.index()].seat.recycle(out);
        self.pump_host(node, events);
    }

    fn carry_out(&mut self, out: &mut Vec<HostOut>, flight: Option<&Flight>, events: Events) {
        for decision in out.drain(..) {
            match decision {
                HostOut::Deliver { message } => {
                    let flight = flight.expect("a host delivered a message without having received a packet");
                    self.delivered(message, flight, events);
                }
                HostOut::Announce(message) => self.scratch.announced.push(message),
            }
        }
    }

    /// The host's link may have fallen idle.
    pub(super) fn host_free(&mut self, node: NodeId, events: Events) {
        self.places[node.index()].awaited = false;
        self.pump_host(node, events);
    }

    /// Sends the host's next packet if its link is idle. Schedules the next poll of the host: when
    /// the link falls idle, if there may be something to send, and at its next wake-up.
    pub(super) fn pump_host(&mut self, node: NodeId, events: Events) {
        let place = &mut self.places[node.index()];
        if place.link.is_idle(events.now)
            && let Some(packet) = place.seat.poll_transmit(events.now)
        {
            self.send(node, packet, events);
        }
        let place = &mut self.places[node.index()];
        if !place.awaited && !place.link.is_idle(events.now) && place.seat.may_transmit() {
            place.awaited = true;
            events.at(place.link.free_at(), PacketEvent::HostFree(node));
        }
        if let Some(at) = place.seat.arm(events.now) {
            events.at(at, PacketEvent::HostWake(node));
        }
    }

    fn send(&mut self, node: NodeId, packet: Packet, events: Events) {
        let serialization = self.path.serialization(packet.wire);
        let own_before = self.charge_own(node, &packet, serialization);
        let busy_before = self.places[node.index()].link.busy();
        let tag = self.flights.slab.next_index();
        let packet = Packet { tag: tag + 1, ..packet };
        let content = self.places[node.index()].seat.take_content();
        if !content.is_empty() {
            self.flights.contents.insert(tag, content);
        }
        let (now, from) = (events.now, node);
        self.flights.slab.insert(Flight {
            packet,
            from,
            left_at: now,
            busy_before,
            own_before,
            switch_in: now,
            switch_out: now,
        });
        self.check_wire(&packet);
        self.counts.retransmitted += u64::from(packet.again);
        let place = &mut self.places[node.index()];
        place.link.occupy(now, serialization);
        place.sent += u64::from(packet.wire);
        events.at(now + self.path.host_to_switch(&packet), PacketEvent::AtSwitch(tag));
    }

    /// Counts a packet's serialization as its message's own; returns how much that was before.
    fn charge_own(&mut self, node: NodeId, packet: &Packet, serialization: Span) -> Span {
        match self.transfers.get_mut(packet.message) {
            Some(transfer) if packet.payload > 0 && transfer.sender == node => {
                let before = transfer.own;
                transfer.own += serialization;
                before
            }
            _ => Span::ZERO,
        }
    }

    pub(super) fn check_wire(&mut self, packet: &Packet) {
        if !self.config.wire_check {
            return;
        }
        self.scratch.wire.clear();
        let content = packet
            .tag
            .checked_sub(1)
            .and_then(|tag| self.flights.contents.get(&tag))
            .map_or(&[][..], |content| content);
        framing::encode(self.framing, packet, content, &mut self.scratch.wire);
        let decoded = framing::decode(self.framing, &self.scratch.wire);
        assert_eq!(decoded.as_ref(), Ok(packet), "a packet does not survive its own wire format");
        assert!(framing::holds_content(&self.scratch.wire, content), "what a packet says is not on its wire");
    }
}
