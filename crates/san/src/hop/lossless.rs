//! Priority flow control and DCQCN's marks (IEEE 802.1Qbb; SIGCOMM 2015): a neighbour whose packets
//! fill too much of the hop is told to pause, and what leaves by a long queue is marked.
//!
//! Two classes: data, which can be paused, and control (pauses, acknowledgements, notifications),
//! which goes first and is never paused. A packet counts for the port by which it came in as long
//! as it waits. A pause holds until the neighbour is told to go on, or the link goes: its
//! refreshing is not modelled.

use super::config::LosslessConfig;
use crate::id::{DriveId, Port, SessionId, Tag};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::trail::Trail;
use base::{Bytes, NodeId, Operation, RequestId};
use std::collections::VecDeque;
use topology::VertexId;
use transport::dcqcn::{Buffer, Marking};
use transport::framing::pause_wire;

#[derive(Clone, Debug)]
pub(super) struct Lossless {
    here: VertexId,
    buffer: Buffer,
    marking: Marking,
    ports: Vec<Side>,
    /// Bytes that came in by a port and wait at another one: a row each ingress port.
    waiting: Vec<u64>,
    /// What has left a queue, and is not taken off its ingress port yet.
    left: Option<Left>,
    /// The control packet that leaves, to be read where it lies.
    leaving: Option<Packet>,
}

/// What a port has beside its queue.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Pauses first.
    control: VecDeque<Packet>,
    /// Whether the neighbour wants no data.
    is_paused: bool,
}

/// A packet that has left: from where to where, and its bytes.
#[derive(Clone, Copy, Debug)]
struct Left {
    ingress: u16,
    egress: Port,
    frame: u32,
}

impl Lossless {
    pub(super) fn new(config: &LosslessConfig, here: VertexId) -> Lossless {
        let ports = config.headrooms.len();
        Lossless {
            here,
            buffer: Buffer::new(&config.dcqcn, config.headrooms.iter().copied()),
            marking: Marking::new(&config.dcqcn, config.seed.stream("marks")),
            ports: vec![Side::default(); ports],
            waiting: vec![0; ports * ports],
            left: None,
            leaving: None,
        }
    }

    /// Whether the neighbour at a port takes data.
    pub(super) fn is_open(&self, port: Port) -> bool {
        !self.ports[port.index()].is_paused
    }
    /// Whether data may go onto the wire of a port as soon as it is free.
    pub(super) fn takes_data(&self, port: Port) -> bool {
        self.is_open(port) && !self.has_control(port)
    }
    /// Whether something waits at a port that no pause holds.
    pub(super) fn has_control(&self, port: Port) -> bool {
        !self.ports[port.index()].control.is_empty()
    }
    /// Whether the neighbour at a port is told to pause.
    pub(super) fn pauses(&self, port: Port) -> bool {
        self.buffer.is_paused(node(port.0))
    }
    /// The most that ever waited of what came in by a port.
    pub(super) fn highest(&self, port: Port) -> Bytes {
        self.buffer.highest(node(port.0))
    }
    /// Takes the most from now on.
    pub(super) fn restart_highest(&mut self) {
        self.buffer.restart_highest();
    }
    /// Ports at which packets wait that came in by `ingress`.
    pub(super) fn waits_at(&self, ingress: Port) -> impl Iterator<Item = Port> {
        let row = ingress.index() * self.ports.len();
        let bytes = self.waiting[row..row + self.ports.len()].iter();
        (0..).zip(bytes).filter(|(_, bytes)| **bytes > 0).map(|(port, _)| Port(port))
    }

    /// Whether a packet that comes to a queue of so many bytes is marked.
    pub(super) fn marks(&mut self, queued: Bytes) -> bool {
        self.marking.marks(queued)
    }

    /// The neighbour at a port says stop or go.
    pub(super) fn hear(&mut self, port: Port, stop: bool) {
        self.ports[port.index()].is_paused = stop;
    }

    /// Whether a data packet has room, should it have to wait. It always has while links stay up.
    pub(super) fn has_room(&self, packet: &Packet) -> bool {
        self.buffer.has_room(node(packet.ingress), u64::from(packet.frame))
    }

    /// A data packet waits at `egress` from now on; whether its neighbour is told to pause.
    pub(super) fn enter(&mut self, egress: Port, packet: &Packet) -> bool {
        *self.waiting_at(packet.ingress, egress) += u64::from(packet.frame);
        let pauses = self.buffer.charge(node(packet.ingress), u64::from(packet.frame));
        if pauses {
            self.say(Port(packet.ingress), true);
        }
        pauses
    }

    /// A data packet that waited leaves. [`let_go_on`](Self::let_go_on) follows.
    pub(super) fn leave(&mut self, egress: Port, packet: &Packet) {
        self.left = Some(Left { ingress: packet.ingress, egress, frame: packet.frame });
    }

    /// Tells a neighbour to go on that has been paused for what has left; returns its port. Ask
    /// until it names none.
    pub(super) fn let_go_on(&mut self) -> Option<Port> {
        let Left { ingress, egress, frame } = self.left?;
        let waiting = self.waiting_at(ingress, egress);
        *waiting -= u64::from(frame);
        self.buffer.release(node(ingress), u64::from(frame));
        // What is asked again takes nothing more off.
        self.left = Some(Left { ingress, egress, frame: 0 });
        let Some(port) = self.buffer.next_to_resume(node(ingress)) else {
            self.left = None;
            return None;
        };
        let port = Port(port.0 as u16);
        self.say(port, false);
        Some(port)
    }

    /// A control packet waits at a port.
    pub(super) fn put_control(&mut self, port: Port, packet: Packet) {
        self.ports[port.index()].control.push_back(packet);
    }

    /// The control packet that leaves next by a port.
    pub(super) fn next_control(&mut self, port: Port) -> Option<&Packet> {
        let packet = self.ports[port.index()].control.pop_front()?;
        Some(self.leaving.insert(packet))
    }

    /// The link of a port has gone or come back: neither end knows of pauses any more.
    pub(super) fn forget(&mut self, port: Port) {
        self.ports[port.index()] = Side::default();
        self.buffer.forget_pause(node(port.0));
    }

    fn say(&mut self, port: Port, stop: bool) {
        let frame = self.pause_frame(stop);
        let control = &mut self.ports[port.index()].control;
        let place = control.iter().take_while(|packet| matches!(packet.kind, PacketKind::Pause { .. })).count();
        control.insert(place, frame);
    }

    /// It ends at the neighbour: nobody asks it for more than its kind and length.
    fn pause_frame(&self, stop: bool) -> Packet {
        Packet {
            request: RequestId(u64::MAX),
            address: 0,
            tag: Tag { session: SessionId(u32::MAX), command: 0, attempt: 0 },
            bytes: 0,
            payload: 0,
            frame: pause_wire(),
            source: self.here,
            target: self.here,
            drive: DriveId(u32::MAX),
            credit: 0,
            kind: PacketKind::Pause { stop },
            operation: Operation::Read,
            status: Outcome::Success,
            marked: false,
            rank: 0,
            ingress: 0,
            length: 0,
            stream: 0,
            trail: Trail::default(),
        }
    }

    fn waiting_at(&mut self, ingress: u16, egress: Port) -> &mut u64 {
        let ports = self.ports.len();
        &mut self.waiting[usize::from(ingress) * ports + egress.index()]
    }
}

/// As the buffer names ports.
fn node(port: u16) -> NodeId {
    NodeId(u32::from(port))
}
