//! What travels: NVMe-oF packets as plain data. Their bytes are `nvme` PDUs and the ISR header.

use crate::id::{DriveId, Tag};
use crate::trail::Trail;
use base::{Operation, RequestId};
use topology::VertexId;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// A command capsule, host to target. The first packet of an I/O: it chooses the way.
    Command,
    /// Target to host: send the data of a write now.
    ReadyToTransfer,
    /// Data of a write, host to target, along the command's way.
    WriteData {
        /// Nothing of this I/O follows.
        last: bool,
    },
    /// Data of a read, target to host.
    ReadData {
        /// Only the response of this I/O follows.
        last: bool,
    },
    /// A response capsule, target (or the hop that refuses) to host. Every I/O has exactly one.
    Response,
    /// Everything before [`Packet::stream`] has come ([`crate::connection`]).
    Acknowledgement {
        /// Of what a target sent.
        to_target: bool,
    },
    /// Packets of the connection come marked: the congestion notification of RoCE.
    Notification {
        /// They are a target's.
        to_target: bool,
    },
    /// Priority flow control: the neighbour is to send no more, or to go on. One link only.
    Pause {
        /// No more.
        stop: bool,
    },
}

impl PacketKind {
    /// Whether it goes from the host to the target.
    pub const fn is_outward(self) -> bool {
        use PacketKind::{Acknowledgement, Command, Notification, WriteData};
        let has_data = matches!(self, Command | WriteData { .. });
        has_data || matches!(self, Acknowledgement { to_target: true } | Notification { to_target: true })
    }

    /// Whether it is of the class that priority flow control never pauses.
    pub const fn is_control(self) -> bool {
        use PacketKind::{Acknowledgement, Notification, Pause};
        matches!(self, Acknowledgement { .. } | Notification { .. } | Pause { .. })
    }
}

/// How an I/O ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Done; of packets that are not responses: nothing is wrong so far.
    #[default]
    Success,
    /// A hop had no bandwidth left to reserve. Nothing was done: the host may send it again.
    Rejected,
    /// A hop knew no way on. Nothing was done at the target by this command.
    Unreachable,
    /// Data of a write are missing. Nothing was done: the host may send it again.
    Incomplete,
    /// The drive has failed.
    DriveFailed,
    /// The target gave the command up (abort, reset of the controller).
    Aborted,
}

/// One packet on a wire. In this order in memory: the trail, most of which is unused in most
/// packets, comes last.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The request of the run that it serves: stands for the data, which nobody carries here, and
    /// is not on the wire.
    pub request: RequestId,
    /// First byte of the I/O on the drive.
    pub address: u64,
    /// The I/O it belongs to.
    pub tag: Tag,
    /// Payload of the whole I/O, bytes. 0 in an admin command (the reset of an association,
    /// [`crate::retry`]) and its response.
    pub bytes: u32,
    /// Payload in this packet, bytes.
    pub payload: u32,
    /// On the wire with all headers, preamble and gap, bytes. A hop that lengthens the trail
    /// lengthens this.
    pub frame: u32,
    /// The host of the I/O, in both directions.
    pub source: VertexId,
    /// The target of the I/O, in both directions.
    pub target: VertexId,
    /// Which drive there.
    pub drive: DriveId,
    /// I/Os that the session may have open at the drive, in packets from the target; 0 in others.
    pub credit: u32,
    /// What it is for.
    pub kind: PacketKind,
    /// What the I/O does.
    pub operation: Operation,
    /// How the I/O ended, in a response.
    pub status: Outcome,
    /// Whether a hop has marked it: its queue there was long. DCTCP reads it.
    pub marked: bool,
    /// Urgency, 0 first: written by hops into commands, copied by the target to the
    /// ready-to-transfer and by the host to its write data.
    pub rank: u8,
    /// The port by which the hop got it that has it now; of packets elsewhere it says nothing.
    pub ingress: u16,
    /// Bytes that it takes of its connection's stream ([`crate::connection`]); TCP knows it by
    /// itself.
    pub length: u32,
    /// Where these begin; of an acknowledgement what is expected next.
    pub stream: u64,
    /// The ISR header.
    pub trail: Trail,
}

impl Packet {
    /// A copy, without what nobody looks at: it lies in lines of memory that nobody else needs.
    #[inline]
    pub(crate) fn copied(&self) -> Packet {
        let mut trail = Trail::default();
        trail.become_copy_of(&self.trail);
        self.with_trail(trail)
    }

    /// The same with another trail.
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

    /// As `*self = *other`, without what nobody looks at: of most packets that is more than half.
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

    /// Where it goes.
    pub const fn destination(&self) -> VertexId {
        if self.kind.is_outward() { self.target } else { self.source }
    }
}
