//! A lossless output-queued switch in which control has priority over data, shared by several
//! rivals.

use super::PortQueues;
use crate::{Packet, PacketKind, SwitchIn, SwitchOut};
use base::{Bytes, NodeId, Program, Time};

/// A switch with unbounded classes per port: control packets, data of short messages, then other
/// data. Each class is first in, first out.
#[derive(Clone, Debug)]
pub struct ClassSwitch {
    control: PortQueues,
    short: PortQueues,
    data: PortQueues,
    /// Maximum length of a short message, in bytes.
    short_max: Bytes,
}

impl ClassSwitch {
    /// Creates a switch with `ports` ports and no class for short messages.
    pub fn new(ports: u32) -> ClassSwitch {
        ClassSwitch::with_short(ports, Bytes::ZERO)
    }
    /// Creates a switch with `ports` ports in which messages of up to `short_max` have priority
    /// over longer ones.
    pub fn with_short(ports: u32, short_max: Bytes) -> ClassSwitch {
        let class = || PortQueues::new(ports, Bytes::new(u64::MAX));
        ClassSwitch { control: class(), short: class(), data: class(), short_max }
    }
    /// Returns an upper bound of the queued data at `port`: the sum of the maxima of both classes,
    /// in wire bytes.
    pub fn highest_data(&self, port: NodeId) -> Bytes {
        self.short.port(port).highest() + self.data.port(port).highest()
    }
    /// Returns the highest number of queued wire bytes of control packets at `port`.
    pub fn highest_control(&self, port: NodeId) -> Bytes {
        self.control.port(port).highest()
    }
}

impl Program for ClassSwitch {
    type In = SwitchIn;
    type Out = SwitchOut;
    fn on(&mut self, _: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        let packet = input.packet;
        let class = match packet.kind {
            PacketKind::Data if packet.value <= self.short_max.count() => &mut self.short,
            PacketKind::Data => &mut self.data,
            _ => &mut self.control,
        };
        if let Err(refused) = class.push(packet.target, packet) {
            out.push(SwitchOut::Drop(refused));
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<SwitchOut>) {}
}

impl crate::Switch for ClassSwitch {
    fn poll_transmit(&mut self, _: Time, port: NodeId) -> Option<Packet> {
        self.control.pop(port).or_else(|| self.short.pop(port)).or_else(|| self.data.pop(port))
    }
    fn may_transmit(&self, port: NodeId) -> bool {
        [&self.control, &self.short, &self.data].into_iter().any(|class| !class.port(port).is_empty())
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        self.control.take_ready(ports);
        self.short.take_ready(ports);
        self.data.take_ready(ports);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        [&self.control, &self.short, &self.data].into_iter().map(|class| class.port(port).used()).sum()
    }
    fn queued_packets(&self, port: NodeId) -> usize {
        [&self.control, &self.short, &self.data].into_iter().map(|class| class.port(port).len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Switch;

    #[test]
    fn control_goes_before_short_messages_and_those_before_others_that_came_earlier() {
        let mut switch = ClassSwitch::with_short(2, Bytes::new(100));
        let packet = |kind, value| Packet { value, ..Packet::new(kind, NodeId(0), NodeId(1), 84) };
        for (kind, value) in [(PacketKind::Data, 101), (PacketKind::Data, 100), (PacketKind::Grant, 101)] {
            let input = SwitchIn { port: NodeId(0), packet: packet(kind, value) };
            switch.on(Time::ZERO, input, &mut Vec::new());
        }
        assert_eq!(switch.queued(NodeId(1)), Bytes::new(252));
        let mut next = || switch.poll_transmit(Time::ZERO, NodeId(1)).map(|packet| (packet.kind, packet.value));
        let order =
            [Some((PacketKind::Grant, 101)), Some((PacketKind::Data, 100)), Some((PacketKind::Data, 101)), None];
        assert_eq!([next(), next(), next(), next()], order);
    }
}
