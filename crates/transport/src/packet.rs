//! Packets, hosts and switches of every packet-switched rival.
//!
//! A rival is a host program and a switch program over the same [`Packet`]. Programs push decisions
//! and the rig pulls packets: after any input the rig calls `poll_transmit` for each idle port of
//! that host or switch, which returns the packet to put on the wire now, or `None`. A program that
//! can send only later returns that time from `next_wakeup`.

use base::{Bytes, NodeId, Program, Time};

/// A one-way message between two hosts, numbered by the rig. A read consists of two: a small
/// request in one direction and the data in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rig's number, unique among messages in flight (numbers are reused).
    pub id: u32,
    /// The sender.
    pub source: NodeId,
    /// The receiver.
    pub target: NodeId,
    /// Payload in bytes, at least one.
    pub bytes: Bytes,
    /// Whether it answers another message (the data of a read). Fabrics with message classes keep
    /// answers in a separate virtual channel, so that requests cannot block them. Others may ignore
    /// it.
    pub is_answer: bool,
    /// Whether another message will answer it (the request of a read). RDMA sends such a message as
    /// a read request, which the answer acknowledges. Others may ignore it.
    pub expects_answer: bool,
}

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Carries payload of a message.
    Data,
    /// Acknowledges data.
    Acknowledgement,
    /// Requests or announces something (a demand to an arbiter).
    Request,
    /// Permits sending: a credit, token or time slot.
    Grant,
    /// Congestion notification packet of DCQCN.
    CongestionNotification,
    /// Priority flow control: stop (`value` 1) or resume (`value` 0). One hop only.
    Pause,
    /// Link-level credits that are returned, `value` of them. One hop only.
    CreditReturn,
}

/// One packet on a wire. Plain data: the design's codec produces its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its purpose.
    pub kind: PacketKind,
    /// The rig's number of its message (reused after the message's end), or 0.
    pub message: u32,
    /// The message's number among those of its ordered pair of hosts, counted by its sender from
    /// zero and never reused. It distinguishes a late duplicate from a new message with the same
    /// rig number. Designs without loss may leave it 0.
    pub sequence: u32,
    /// The sender.
    pub source: NodeId,
    /// The receiver.
    pub target: NodeId,
    /// Offset of the payload in its message, or the acknowledged offset, in bytes.
    pub offset: u64,
    /// Payload bytes.
    pub payload: u32,
    /// Wire bytes of the packet, including preamble, headers, padding, FCS and inter-frame gap.
    pub wire: u32,
    /// Smaller is more urgent (remaining bytes for SRPT designs).
    pub priority: u64,
    /// Congestion experienced (set by a switch), or echoed (in an acknowledgement).
    pub marked: bool,
    /// Whether the sender has sent these bytes before: for statistics.
    pub again: bool,
    /// A number whose meaning depends on `kind` and design (bytes of the whole message, credits,
    /// slots, pause state...).
    pub value: u64,
    /// The rig's number of this packet in flight: a program creates it as 0 and forwards received
    /// values.
    pub tag: u32,
}

impl Packet {
    /// Creates a packet with every other field zero: `Packet { offset, payload, ..Packet::new(kind,
    /// source, target, wire) }`.
    pub const fn new(kind: PacketKind, source: NodeId, target: NodeId, wire: u32) -> Packet {
        Packet {
            kind,
            message: 0,
            sequence: 0,
            source,
            target,
            offset: 0,
            payload: 0,
            wire,
            priority: 0,
            marked: false,
            again: false,
            value: 0,
            tag: 0,
        }
    }
    /// Returns whether the neighbour on this link consumes it: such packets pass MAC and PHY, but
    /// neither the protocol stack nor the layer-2 pipeline.
    pub const fn is_one_hop(&self) -> bool {
        matches!(self.kind, PacketKind::Pause | PacketKind::CreditReturn)
    }
}

/// Inputs of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIn {
    /// The application has a message to send.
    Submit(Message),
    /// A whole packet was received and has passed the protocol stack.
    Receive(Packet),
    /// Another host announced this message, of which this host is the target, out of band.
    Announced(Message),
}

/// Decisions of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOut {
    /// Every byte of this message, which was sent to this host, has arrived. Emitted exactly once
    /// per message, and only for the [`HostIn::Receive`] of a packet that was sent after the
    /// message was submitted.
    Deliver {
        /// The message's number.
        message: u32,
    },
    /// Announces this message to its target instantly and off the wire: the idealisation that EDM
    /// (ASPLOS'25), 4.3, assumes for receiver-driven protocols. The target gets
    /// [`HostIn::Announced`] at the same time.
    Announce(Message),
}

/// A host of a packet-switched design.
pub trait Host: Program<In = HostIn, Out = HostOut> {
    /// Returns the packet to put on the wire at `now`, when the link is free, or `None`.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
    /// Returns the content, beyond its fields, of the packet that
    /// [`poll_transmit`](Host::poll_transmit) has just returned, as bytes of its wire format: for
    /// control packets of variable length. Empty for most designs.
    fn take_content(&mut self) -> Box<[u8]> {
        Box::default()
    }
    /// Passes that content to the receiver, just before the [`HostIn::Receive`] of that packet; not
    /// called if it is empty.
    fn give_content(&mut self, _content: &[u8]) {}
    /// Returns whether [`poll_transmit`](Host::poll_transmit) might return a packet without further
    /// input or wake-up. `true` is always correct; `false` saves the rig an event when the link
    /// becomes idle.
    fn may_transmit(&self) -> bool {
        true
    }
    /// Returns what the protocol lets this host send at present, for series.
    fn allowance(&self) -> Allowance {
        Allowance::None
    }
}

/// What a host's protocol lets it send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    /// It has no such state, or one of each packet.
    None,
    /// The sum of its windows or of the credits that it has left, payload bytes.
    Window(Bytes),
    /// Payload bytes that it has granted to senders and that have not arrived.
    Granted(Bytes),
    /// The sum of the rates of its flows with something to send, bits per second.
    Rate(f64),
}

/// Input of a switch: a whole packet was received on a port and has passed the layer-2 pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchIn {
    /// The port, which is the number of the node at its other end.
    pub port: NodeId,
    /// The packet that arrived.
    pub packet: Packet,
}

/// Decisions of a switch besides queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// This packet found no room, or was displaced by a more urgent one.
    Drop(Packet),
}

/// A switch of a packet-switched design.
pub trait Switch: Program<In = SwitchIn, Out = SwitchOut> {
    /// Returns the packet to put on the wire of `port` at `now`, when that link is free, or `None`.
    fn poll_transmit(&mut self, now: Time, port: NodeId) -> Option<Packet>;
    /// Returns whether [`poll_transmit`](Switch::poll_transmit) might return a packet for `port`
    /// without further input or wake-up. `true` is always correct; `false` saves the rig an event
    /// when the link becomes idle.
    fn may_transmit(&self, _port: NodeId) -> bool {
        true
    }
    /// Moves to `ports` the ports whose `poll_transmit` may have a new result since the last call.
    fn take_ready(&mut self, ports: &mut Vec<NodeId>);
    /// Returns the queued wire bytes for `port`.
    fn queued(&self, port: NodeId) -> Bytes;
    /// Returns the number of packets queued for `port`.
    fn queued_packets(&self, port: NodeId) -> usize;
}
