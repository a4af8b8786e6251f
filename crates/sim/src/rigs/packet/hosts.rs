//! Host programs and their links.

use super::{Events, Flight, PacketEvent, PacketRig};
use base::{NodeId, Span, Time};
use transport::{Host, HostIn, HostOut, Packet, Switch, framing};

impl<H: Host, S: Switch> PacketRig<H, S> {
    /// Hands `input` to a host, carries out its decisions and those of hosts that it announces messages to.
    pub(super) fn tell_host(&mut self, node: NodeId, input: HostIn, flight: Option<&Flight>, events: Events) {
        let mut out = std::mem::take(&mut self.host_out);
        self.places[node.index()].program.on(events.now, input, &mut out);
        self.carry_out(&mut out, flight, events);
        self.pump_host(node, events);
        while let Some(message) = self.announced.pop() {
            self.places[message.target.index()].program.on(events.now, HostIn::Announced(message), &mut out);
            self.carry_out(&mut out, None, events);
            self.pump_host(message.target, events);
        }
        self.host_out = out;
    }

    pub(super) fn wake_host(&mut self, node: NodeId, events: Events) {
        let place = &mut self.places[node.index()];
        if place.armed > events.now {
            return;
        }
        place.armed = Time::MAX;
        let mut out = std::mem::take(&mut self.host_out);
        place.program.on_wakeup(events.now, &mut out);
        self.carry_out(&mut out, None, events);
        self.pump_host(node, events);
        self.host_out = out;
    }

    fn carry_out(&mut self, out: &mut Vec<HostOut>, flight: Option<&Flight>, events: Events) {
        for decision in out.drain(..) {
            match decision {
                HostOut::Deliver { message } => {
                    let flight = flight.expect("a host delivered a message without having received a packet");
                    self.delivered(message, flight, events);
                }
                HostOut::Announce(message) => self.announced.push(message),
            }
        }
    }

    /// The host's link may have fallen idle.
    pub(super) fn host_free(&mut self, node: NodeId, events: Events) {
        self.places[node.index()].awaited = false;
        self.pump_host(node, events);
    }

    /// Sends the host's next packet if its link is idle, and sees to it that the host is asked again: when the link falls
    /// idle, if there may be something to send, and at its next wake-up.
    pub(super) fn pump_host(&mut self, node: NodeId, events: Events) {
        let place = &mut self.places[node.index()];
        if place.link.is_idle(events.now)
            && let Some(packet) = place.program.poll_transmit(events.now)
        {
            self.send(node, packet, events);
        }
        let place = &mut self.places[node.index()];
        if !place.awaited && !place.link.is_idle(events.now) && place.program.may_transmit() {
            place.awaited = true;
            events.at(place.link.free_at(), PacketEvent::HostFree(node));
        }
        if let Some(at) = place.program.next_wakeup()
            && at < place.armed
        {
            place.armed = at.max(events.now);
            events.at(place.armed, PacketEvent::HostWake(node));
        }
    }

    fn send(&mut self, node: NodeId, packet: Packet, events: Events) {
        let serialization = self.path.serialization(packet.wire);
        let own_before = self.charge_own(node, &packet, serialization);
        let busy_before = self.places[node.index()].link.busy();
        let tag = self.flights.next_index();
        let packet = Packet { tag: tag + 1, ..packet };
        let content = self.places[node.index()].program.take_content();
        if !content.is_empty() {
            self.contents.insert(tag, content);
        }
        let (now, from) = (events.now, node);
        self.flights.insert(Flight {
            packet,
            from,
            left_at: now,
            busy_before,
            own_before,
            switch_in: now,
            switch_out: now,
        });
        self.check_wire(&packet);
        self.retransmitted += u64::from(packet.again);
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
        self.wire.clear();
        let content =
            packet.tag.checked_sub(1).and_then(|tag| self.contents.get(&tag)).map_or(&[][..], |content| content);
        framing::encode(self.framing, packet, content, &mut self.wire);
        let decoded = framing::decode(self.framing, &self.wire);
        assert_eq!(decoded.as_ref(), Ok(packet), "a packet does not survive its own wire format");
        assert!(framing::holds_content(&self.wire, content), "what a packet says is not on its wire");
    }
}
