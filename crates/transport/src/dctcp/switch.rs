//! The switch: drop-tail output queues that mark arriving packets if more than K bytes wait
//! (SIGCOMM'10, 3.1: instantaneous length).

use crate::common::PortQueues;
use crate::config::Dctcp;
use crate::{Packet, PacketKind, SwitchIn, SwitchOut};
use base::{Bytes, NodeId, Program, Time};

/// An output-queued switch with ECN.
#[derive(Clone, Debug)]
pub struct Switch {
    queues: PortQueues,
    mark_above: Bytes,
    marked: u64,
}

impl Switch {
    pub(super) fn new(config: &Dctcp, ports: u32) -> Switch {
        Switch { queues: PortQueues::new(ports, config.queue), mark_above: config.mark_above, marked: 0 }
    }
    /// Returns the number of marked data packets.
    pub fn marked_packets(&self) -> u64 {
        self.marked
    }
    /// Returns the highest number of queued wire bytes for `port`.
    pub fn highest(&self, port: NodeId) -> Bytes {
        self.queues.port(port).highest()
    }
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;

    fn on(&mut self, _: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        let mut packet = input.packet;
        let port = packet.target;
        if packet.kind == PacketKind::Data && self.queues.port(port).used() > self.mark_above {
            packet.marked = true;
            self.marked += 1;
        }
        if let Err(packet) = self.queues.push(port, packet) {
            out.push(SwitchOut::Drop(packet));
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<SwitchOut>) {}
}

impl crate::Switch for Switch {
    fn poll_transmit(&mut self, _: Time, port: NodeId) -> Option<Packet> {
        self.queues.pop(port)
    }
    fn may_transmit(&self, port: NodeId) -> bool {
        !self.queues.port(port).is_empty()
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        self.queues.take_ready(ports);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        self.queues.port(port).used()
    }
    fn queued_packets(&self, port: NodeId) -> usize {
        self.queues.port(port).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Switch as _;
    use base::Span;

    fn config() -> Dctcp {
        Dctcp {
            mss: Bytes::new(1460),
            mark_above: Bytes::new(1538),
            queue: Bytes::new(3 * 1538),
            gain: 1.0 / 16.0,
            initial_window: 10,
            timeout_min: Span::us(100),
            selective: true,
            connections: 1,
        }
    }

    #[test]
    fn it_marks_above_k_and_drops_what_does_not_fit() {
        let mut switch = Switch::new(&config(), 2);
        let mut out = Vec::new();
        let packet = Packet::new(PacketKind::Data, NodeId(0), NodeId(1), 1538);
        (0..4).for_each(|_| switch.on(Time::ZERO, SwitchIn { port: NodeId(0), packet }, &mut out));
        assert_eq!(out.len(), 1);
        let marks: Vec<bool> =
            std::iter::from_fn(|| switch.poll_transmit(Time::ZERO, NodeId(1))).map(|packet| packet.marked).collect();
        assert_eq!(marks, [false, false, true]);
    }
}
