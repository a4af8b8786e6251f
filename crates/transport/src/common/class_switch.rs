//! An output-queued switch without loss, in which control goes before data: what several rivals have.

use super::PortQueues;
use crate::{Packet, PacketKind, SwitchIn, SwitchOut};
use base::{Bytes, NodeId, Program, Time};

/// Two unbounded classes a port: control packets, and data after them. First in, first out in each.
#[derive(Clone, Debug)]
pub struct ClassSwitch {
    control: PortQueues,
    data: PortQueues,
}

impl ClassSwitch {
    /// A switch with `ports` ports.
    pub fn new(ports: u32) -> ClassSwitch {
        let unbounded = Bytes::new(u64::MAX);
        ClassSwitch { control: PortQueues::new(ports, unbounded), data: PortQueues::new(ports, unbounded) }
    }
    /// The most wire bytes of data that ever waited at `port`.
    pub fn highest_data(&self, port: NodeId) -> Bytes {
        self.data.port(port).highest()
    }
    /// The most wire bytes of control packets that ever waited at `port`.
    pub fn highest_control(&self, port: NodeId) -> Bytes {
        self.control.port(port).highest()
    }
}

impl Program for ClassSwitch {
    type In = SwitchIn;
    type Out = SwitchOut;
    fn on(&mut self, _: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        let packet = input.packet;
        let class = if packet.kind == PacketKind::Data { &mut self.data } else { &mut self.control };
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
        self.control.pop(port).or_else(|| self.data.pop(port))
    }
    fn may_transmit(&self, port: NodeId) -> bool {
        !(self.control.port(port).is_empty() && self.data.port(port).is_empty())
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        self.control.take_ready(ports);
        self.data.take_ready(ports);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        self.control.port(port).used() + self.data.port(port).used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Switch;

    #[test]
    fn control_goes_before_data_that_came_earlier() {
        let mut switch = ClassSwitch::new(2);
        let packet = |kind| Packet::new(kind, NodeId(0), NodeId(1), 84);
        for kind in [PacketKind::Data, PacketKind::Grant] {
            let input = SwitchIn { port: NodeId(0), packet: packet(kind) };
            switch.on(Time::ZERO, input, &mut Vec::new());
        }
        assert_eq!(switch.queued(NodeId(1)), Bytes::new(168));
        let mut next = || switch.poll_transmit(Time::ZERO, NodeId(1)).map(|packet| packet.kind);
        assert_eq!([next(), next(), next()], [Some(PacketKind::Grant), Some(PacketKind::Data), None]);
    }
}
