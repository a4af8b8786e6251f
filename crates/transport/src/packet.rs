//! What travels, and the two places that it travels between, for every packet-switched rival.
//!
//! A rival is a host program and a switch program over the same [`Packet`]. Programs push decisions and the rig
//! pulls packets: after any input the rig asks each idle port of that place with `poll_transmit`, which returns the packet to
//! put on the wire now, or `None`. A program that becomes able to send at a later time says so by `next_wakeup`.

use base::{Bytes, NodeId, Program, Time};

/// A one-way message between two hosts, as the rig numbers it. Reads are two of them: a small request one way and
/// the data the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rig's own number, unique among messages in flight (numbers are used again).
    pub id: u32,
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub target: NodeId,
    /// Payload; at least one byte.
    pub bytes: Bytes,
}

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Carries payload of a message.
    Data,
    /// Acknowledges data.
    Acknowledgement,
    /// Asks for, or announces, something (a demand to an arbiter).
    Request,
    /// Permits sending: a credit, token or time slot.
    Grant,
    /// Congestion notification packet of DCQCN.
    CongestionNotification,
    /// Priority flow control: stop (`value` 1) or go (`value` 0). One hop only.
    Pause,
    /// Link-level credits given back, `value` of them. One hop only.
    CreditReturn,
}

/// One packet on a wire. Plain data: the bytes on the wire are what its design's codec makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is for.
    pub kind: PacketKind,
    /// The message it belongs to, or 0.
    pub message: u32,
    /// Who made it.
    pub source: NodeId,
    /// Who gets it.
    pub target: NodeId,
    /// Offset of the payload in its message, or the acknowledged offset, in bytes.
    pub offset: u64,
    /// Payload bytes.
    pub payload: u32,
    /// All bytes that the packet occupies on a wire: preamble, headers, padding, FCS and inter-frame gap included.
    pub wire: u32,
    /// Smaller is more urgent (remaining bytes for SRPT designs).
    pub priority: u64,
    /// Congestion experienced (set by a switch), or echoed (in an acknowledgement).
    pub marked: bool,
    /// A number whose meaning depends on `kind` (credits, slots, pause state, last byte of the message...).
    pub value: u64,
}

/// What may happen to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIn {
    /// The application has a message to send.
    Submit(Message),
    /// A packet has come in, wholly received and past the protocol stack.
    Receive(Packet),
}

/// What a host may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOut {
    /// Every byte of this message, which was sent to this host, has arrived. Exactly once a message.
    Deliver {
        /// The message's number.
        message: u32,
    },
    /// A packet was judged lost and is sent again: for statistics.
    Retransmit {
        /// The message's number.
        message: u32,
    },
}

/// A host of a packet-switched design.
pub trait Host: Program<In = HostIn, Out = HostOut> {
    /// The packet to put on the wire at `now`, when the link is free, or `None`.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
}

/// What may happen to a switch: a packet has come in on a port, wholly received and past the layer-2 pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchIn {
    /// The port, which is the number of the node behind it.
    pub port: NodeId,
    /// What came in.
    pub packet: Packet,
}

/// What a switch may decide besides queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// This packet found no room, or lost its place to a more urgent one.
    Drop(Packet),
}

/// A switch of a packet-switched design.
pub trait Switch: Program<In = SwitchIn, Out = SwitchOut> {
    /// The packet to put on the wire of `port` at `now`, when that link is free, or `None`.
    fn poll_transmit(&mut self, now: Time, port: NodeId) -> Option<Packet>;
    /// Ports whose `poll_transmit` may answer differently since the last call: appended to `ports`, then forgotten.
    fn take_ready(&mut self, ports: &mut Vec<NodeId>);
    /// Payload and headers queued for `port`, in wire bytes.
    fn queued(&self, port: NodeId) -> Bytes;
}
