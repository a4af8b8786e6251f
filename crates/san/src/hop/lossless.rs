//! Priority flow control and DCQCN's marks (IEEE 802.1Qbb; SIGCOMM 2015). The hop pauses a
//! neighbour whose packets fill too much of its buffer, and marks packets that join a long queue.
//!
//! There are two classes: data, which can be paused, and control (pauses, acknowledgements,
//! notifications), which has priority and is never paused. A waiting packet is charged to its
//! ingress port. A pause holds until the neighbour is resumed, or the link fails: refresh of pauses
//! is not modelled.

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
    /// Bytes by ingress port (row) and by the egress port where they wait.
    waiting: Vec<u64>,
    /// A packet that has left a queue and is not yet released from its ingress port.
    left: Option<Left>,
    /// The control packet that leaves, which callers read in place.
    leaving: Option<Packet>,
}

/// The state of a port besides its queue.
#[derive(Clone, Debug, Default)]
struct Side {
    /// Control packets, pauses first.
    control: VecDeque<Packet>,
    /// Whether the neighbour has paused data.
    is_paused: bool,
}

/// A packet that has left: its ingress, its egress and its bytes.
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

    /// Returns whether the neighbour at a port accepts data.
    pub(super) fn is_open(&self, port: Port) -> bool {
        !self.ports[port.index()].is_paused
    }
    /// Returns whether data may be sent on a port as soon as it is free.
    pub(super) fn takes_data(&self, port: Port) -> bool {
        self.is_open(port) && !self.has_control(port)
    }
    /// Returns whether control packets wait at a port.
    pub(super) fn has_control(&self, port: Port) -> bool {
        !self.ports[port.index()].control.is_empty()
    }
    /// Returns whether this hop has paused the neighbour at a port.
    pub(super) fn pauses(&self, port: Port) -> bool {
        self.buffer.is_paused(node(port.0))
    }
    /// Returns the highest number of waiting bytes from an ingress port.
    pub(super) fn highest(&self, port: Port) -> Bytes {
        self.buffer.highest(node(port.0))
    }
    /// Restarts the highest fill levels at the present ones.
    pub(super) fn restart_highest(&mut self) {
        self.buffer.restart_highest();
    }
    /// Returns the ports at which packets from `ingress` wait.
    pub(super) fn waits_at(&self, ingress: Port) -> impl Iterator<Item = Port> {
        let row = ingress.index() * self.ports.len();
        let bytes = self.waiting[row..row + self.ports.len()].iter();
        (0..).zip(bytes).filter(|(_, bytes)| **bytes > 0).map(|(port, _)| Port(port))
    }

    /// Returns whether a packet that joins a queue of `queued` bytes is marked.
    pub(super) fn marks(&mut self, queued: Bytes) -> bool {
        self.marking.marks(queued)
    }

    /// Handles a pause or resume by the neighbour at a port.
    pub(super) fn hear(&mut self, port: Port, stop: bool) {
        self.ports[port.index()].is_paused = stop;
    }

    /// Returns whether the buffer has room for a data packet, should it have to wait. While links
    /// stay up it always has.
    pub(super) fn has_room(&self, packet: &Packet) -> bool {
        self.buffer.has_room(node(packet.ingress), u64::from(packet.frame))
    }

    /// Charges a data packet that waits at `egress`. Returns whether its neighbour is paused for
    /// it.
    pub(super) fn enter(&mut self, egress: Port, packet: &Packet) -> bool {
        *self.waiting_at(packet.ingress, egress) += u64::from(packet.frame);
        let pauses = self.buffer.charge(node(packet.ingress), u64::from(packet.frame));
        if pauses {
            self.say(Port(packet.ingress), true);
        }
        pauses
    }

    /// Records that a waiting data packet leaves. [`let_go_on`](Self::let_go_on) must follow.
    pub(super) fn leave(&mut self, egress: Port, packet: &Packet) {
        self.left = Some(Left { ingress: packet.ingress, egress, frame: packet.frame });
    }

    /// Resumes a neighbour that can be resumed after the last departure; returns its port. Call
    /// until it returns `None`.
    pub(super) fn let_go_on(&mut self) -> Option<Port> {
        let Left { ingress, egress, frame } = self.left?;
        let waiting = self.waiting_at(ingress, egress);
        *waiting -= u64::from(frame);
        self.buffer.release(node(ingress), u64::from(frame));
        // The next calls must not release the bytes again.
        self.left = Some(Left { ingress, egress, frame: 0 });
        let Some(port) = self.buffer.next_to_resume(node(ingress)) else {
            self.left = None;
            return None;
        };
        let port = Port(port.0 as u16);
        self.say(port, false);
        Some(port)
    }

    /// Queues a control packet at a port.
    pub(super) fn put_control(&mut self, port: Port, packet: Packet) {
        self.ports[port.index()].control.push_back(packet);
    }

    /// Returns the next control packet of a port.
    pub(super) fn next_control(&mut self, port: Port) -> Option<&Packet> {
        let packet = self.ports[port.index()].control.pop_front()?;
        Some(self.leaving.insert(packet))
    }

    /// Clears the pauses of a port whose link went down or came up.
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

    /// Creates a pause frame. It ends at the neighbour, which reads only its kind and length.
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

/// Returns the identifier of a port in the buffer.
fn node(port: u16) -> NodeId {
    NodeId(u32::from(port))
}
