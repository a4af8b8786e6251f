//! NVMe-oF packets as plain data. Their encoded form is `nvme` PDUs and the ISR header.

use crate::id::{DriveId, Tag};
use crate::trail::Trail;
use base::{Operation, RequestId};
use topology::VertexId;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A command capsule, host to target. The first packet of an I/O: its routing sets the path of
    /// the others.
    Command,
    /// A request for the data of a write, target to host.
    ReadyToTransfer,
    /// Data of a write, host to target, along the command's path.
    WriteData {
        /// Whether this is the last data of the I/O.
        last: bool,
    },
    /// Data of a read, target to host.
    ReadData {
        /// Whether only the response of this I/O follows.
        last: bool,
    },
    /// A response capsule, from the target (or the hop that refuses) to the host. Every I/O has
    /// exactly one.
    Response,
    /// Acknowledges everything before [`Packet::stream`] ([`crate::connection`]).
    Acknowledgement {
        /// Whether it acknowledges packets of a target, and is sent to that target.
        to_target: bool,
    },
    /// A congestion notification of RoCE: packets of the connection arrive marked.
    Notification {
        /// Whether the marked packets are a target's, and this one is sent to that target.
        to_target: bool,
    },
    /// Priority flow control: stops or resumes the neighbour. Valid on one link only.
    Pause {
        /// Whether the neighbour is to stop.
        stop: bool,
    },
}

impl PacketKind {
    /// Returns whether the packet travels from the host to the target.
    pub const fn is_outward(self) -> bool {
        use PacketKind::{Acknowledgement, Command, Notification, WriteData};
        let has_data = matches!(self, Command | WriteData { .. });
        has_data || matches!(self, Acknowledgement { to_target: true } | Notification { to_target: true })
    }

    /// Returns whether the packet belongs to the class that priority flow control never pauses.
    pub const fn is_control(self) -> bool {
        use PacketKind::{Acknowledgement, Notification, Pause};
        matches!(self, Acknowledgement { .. } | Notification { .. } | Pause { .. })
    }
}

/// The result of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The I/O succeeded; in packets other than responses: no error so far.
    #[default]
    Success,
    /// A hop had no bandwidth left to reserve. Nothing was done: the host may resend the command.
    Rejected,
    /// A hop had no route. This command had no effect at the target.
    Unreachable,
    /// Data of a write are missing. Nothing was done: the host may resend the command.
    Incomplete,
    /// The drive has failed.
    DriveFailed,
    /// The target aborted the command (abort, reset of the controller).
    Aborted,
}

/// One packet on a wire. The memory order is fixed: the trail, which most packets leave mostly
/// unused, comes last.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The request of the run that it serves. It represents the data, which simulated packets do
    /// not contain, and is not on the wire.
    pub request: RequestId,
    /// First byte of the I/O on the drive.
    pub address: u64,
    /// The command to which it belongs.
    pub tag: Tag,
    /// Payload of the whole I/O, bytes. 0 in an admin command (the reset of an association,
    /// [`crate::retry`]) and its response.
    pub bytes: u32,
    /// Payload of this packet, bytes.
    pub payload: u32,
    /// Size on the wire with all headers, preamble and gap, bytes. A hop that lengthens the trail
    /// increases it.
    pub frame: u32,
    /// The host of the I/O, in both directions.
    pub source: VertexId,
    /// The target of the I/O, in both directions.
    pub target: VertexId,
    /// The drive at the target.
    pub drive: DriveId,
    /// In packets from the target, the number of I/Os that the session may have open at the drive;
    /// 0 in others.
    pub credit: u32,
    /// The kind.
    pub kind: PacketKind,
    /// The operation of the I/O.
    pub operation: Operation,
    /// The result of the I/O, in a response.
    pub status: Outcome,
    /// Whether a hop with a long queue has marked it (ECN). DCTCP reads it.
    pub marked: bool,
    /// Urgency, 0 first. Hops write it into commands; the target copies it to the
    /// ready-to-transfer, and the host to its write data.
    pub rank: u8,
    /// The ingress port at the hop that currently holds the packet; meaningless elsewhere.
    pub ingress: u16,
    /// Length in its connection's stream, bytes ([`crate::connection`]). In TCP, the TCP header
    /// implies it.
    pub length: u32,
    /// Offset in the stream; in an acknowledgement the next expected offset.
    pub stream: u64,
    /// The ISR header.
    pub trail: Trail,
}

impl Packet {
    /// Copies the packet without the unused part of its trail, which saves cache lines.
    #[inline]
    pub(crate) fn copied(&self) -> Packet {
        let mut trail = Trail::default();
        trail.become_copy_of(&self.trail);
        self.with_trail(trail)
    }

    /// Returns this packet with another trail.
    #[inline]
    pub fn with_trail(&self, trail: Trail) -> Packet {
        Packet {
            request: self.request,
            address: self.address,
            tag: self.tag,
            bytes: self.bytes,
            payload: self.payload,
            frame: self.frame,
            source: self.source,
            target: self.target,
            drive: self.drive,
            credit: self.credit,
            kind: self.kind,
            operation: self.operation,
            status: self.status,
            marked: self.marked,
            rank: self.rank,
            ingress: self.ingress,
            length: self.length,
            stream: self.stream,
            trail,
        }
    }

    /// As `*self = *other`, without the unused part of the trail: more than half of most packets.
    #[inline]
    pub fn become_copy_of(&mut self, other: &Packet) {
        (self.request, self.address, self.tag) = (other.request, other.address, other.tag);
        (self.bytes, self.payload, self.frame) = (other.bytes, other.payload, other.frame);
        (self.source, self.target, self.drive) = (other.source, other.target, other.drive);
        (self.credit, self.kind, self.operation) = (other.credit, other.kind, other.operation);
        (self.status, self.rank, self.marked) = (other.status, other.rank, other.marked);
        self.ingress = other.ingress;
        (self.length, self.stream) = (other.length, other.stream);
        self.trail.become_copy_of(&other.trail);
    }

    /// Returns the destination: the target for outward packets, else the source.
    pub const fn destination(&self) -> VertexId {
        if self.kind.is_outward() { self.target } else { self.source }
    }
}
