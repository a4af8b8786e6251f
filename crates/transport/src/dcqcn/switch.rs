//! The switch: output queues with RED-like marking, and priority flow control by ingress port.

use super::buffer::Buffer;
use super::marking::Marking;
use crate::common::PortQueues;
use crate::config::Dcqcn;
use crate::framing::pause_wire;
use crate::{Packet, PacketKind, SwitchIn, SwitchOut};
use base::{Bytes, NodeId, Program, Stream, Time};

/// A lossless switch with two classes: control has priority over data.
#[derive(Clone, Debug)]
pub struct Switch {
    data: PortQueues,
    control: PortQueues,
    /// Pause frames for the neighbours, with priority over everything else.
    pauses: PortQueues,
    buffer: Buffer,
    marking: Marking,
    pause_frames: u64,
}

impl Switch {
    pub(super) fn new(config: &Dcqcn, ports: u32, headroom: Bytes, random: Stream) -> Switch {
        let unlimited = Bytes::new(u64::MAX);
        let queues = || PortQueues::new(ports, unlimited);
        Switch {
            data: queues(),
            control: queues(),
            pauses: queues(),
            buffer: Buffer::new(config, (0..ports).map(|_| headroom)),
            marking: Marking::new(config, random),
            pause_frames: 0,
        }
    }
    /// Returns the highest number of buffered wire bytes of data from `port`.
    pub fn ingress_highest(&self, port: NodeId) -> Bytes {
        self.buffer.highest(port)
    }
    /// Returns the number of pause frames sent, without those that resume.
    pub fn pause_frames(&self) -> u64 {
        self.pause_frames
    }

    fn take_data(&mut self, from: NodeId, mut packet: Packet) {
        let queued = self.data.port(packet.target).used();
        packet.marked |= self.marking.marks(queued);
        let has_room = self.buffer.has_room(from, u64::from(packet.wire));
        assert!(has_room, "headroom was too small: a lossless switch would drop from {from:?}");
        if self.buffer.charge(from, u64::from(packet.wire)) {
            self.pause_frames += 1;
            self.say(from, 1);
        }
        put(&mut self.data, packet.target, packet);
    }

    fn release(&mut self, from: NodeId, wire: u64) {
        self.buffer.release(from, wire);
        while let Some(port) = self.buffer.next_to_resume(from) {
            self.say(port, 0);
        }
    }

    /// Pauses (1) or resumes (0) the neighbour at `port`.
    fn say(&mut self, port: NodeId, value: u64) {
        let frame = Packet { value, ..Packet::new(PacketKind::Pause, port, port, pause_wire()) };
        put(&mut self.pauses, port, frame);
    }
}

/// Appends to an unlimited queue: ingress ports bound the data, messages in flight bound the
/// control packets.
fn put(queues: &mut PortQueues, port: NodeId, packet: Packet) {
    queues.push(port, packet).expect("an unlimited queue has room");
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;

    fn on(&mut self, _: Time, input: SwitchIn, _: &mut Vec<SwitchOut>) {
        match input.packet.kind {
            PacketKind::Data | PacketKind::Request => self.take_data(input.port, input.packet),
            _ => put(&mut self.control, input.packet.target, input.packet),
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<SwitchOut>) {}
}

impl crate::Switch for Switch {
    fn poll_transmit(&mut self, _: Time, port: NodeId) -> Option<Packet> {
        if let Some(packet) = self.pauses.pop(port).or_else(|| self.control.pop(port)) {
            return Some(packet);
        }
        let packet = self.data.pop(port)?;
        self.release(packet.source, u64::from(packet.wire));
        Some(packet)
    }
    fn may_transmit(&self, port: NodeId) -> bool {
        [&self.data, &self.control, &self.pauses].iter().any(|queues| !queues.port(port).is_empty())
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        self.pauses.take_ready(ports);
        self.control.take_ready(ports);
        self.data.take_ready(ports);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        [&self.data, &self.control, &self.pauses].iter().map(|queues| queues.port(port).used()).sum()
    }
    fn queued_packets(&self, port: NodeId) -> usize {
        [&self.data, &self.control, &self.pauses].iter().map(|queues| queues.port(port).len()).sum()
    }
}
