//! An idealised receiver-driven protocol, the "IRD" of EDM (ASPLOS'25), 4.3.
//!
//! It combines the best of its kind and is granted one thing for nothing:
//! * A receiver learns of a message at the instant of its submission, off the wire (the idealisation; the rig hands
//!   [`HostOut::Announce`] on).
//! * The receiver grants credits, one a packet, to the message with the least bytes left to grant (SRPT, as Homa,
//!   SIGCOMM'18, and pHost, CoNEXT'15), in order of announcement within a pair. Even the first packet needs
//!   one: nothing is sent blindly, so there is no queue that an unscheduled burst could build.
//! * Credits are paced so that what they call for arrives at line rate (NDP, SIGCOMM'17; ExpressPass,
//!   SIGCOMM'17, limits them at the switch ports of the receiver's link, which with one switch is the same
//!   place). At most `outstanding` bytes are called for and not there, and of one source at most what keeps it
//!   sending for a round trip: an `outstanding` of several round trips is Homa's overcommitment, which lets a
//!   receiver call for others' data while one source is busy.
//! * A sender with credits of several receivers serves the message with the least bytes left to send. The other
//!   receivers' slots stay empty meanwhile: the scheduling conflict that costs this family its throughput (EDM, 3.1).
//!
//! Credits are packets of the least frame size. They go before data, at hosts and in the switch, as in ExpressPass (a
//! class of their own) and Homa (highest priority). The switch never has to drop: credits bound its queues.

use crate::common::{Arrived, Inbox, Sparse};
use crate::config::ReceiverDriven;
use crate::cost::{Train, WireCost};
use crate::framing::receiver_driven_wire;
use crate::outgoing::{Outgoing, Piece};
use crate::{HostIn, HostOut, Message, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A credit on the wire.
pub const CREDIT_WIRE: u32 = receiver_driven_wire(0);

/// Host `node` of `nodes` on a link of `rate`, which it paces its credits by. `source_limit` is the payload that
/// keeps a source sending for the round trip of a credit and its data.
pub fn host(config: &ReceiverDriven, node: NodeId, rate: Rate, source_limit: Bytes) -> Host {
    Host::new(*config, node, rate, source_limit)
}

/// Control goes first, data after it.
pub use crate::common::ClassSwitch as Switch;

/// An empty switch. Its queues have no bound but the one that the credits give them.
pub fn switch(ports: u32) -> Switch {
    Switch::new(ports)
}

/// The packets of a lone message of `bytes`; its acknowledgements are the credits.
pub fn train(config: &ReceiverDriven, bytes: Bytes) -> Train {
    Train::new(bytes, config.mtu, |payload, _| receiver_driven_wire(payload), CREDIT_WIRE)
}

/// What a lone request of `bytes`, whose read request is `read_request` long, puts on the wires.
pub fn wire_cost(config: &ReceiverDriven, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

/// Least remaining bytes first; among equals, who has waited longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Urgency {
    remaining: u64,
    arrival: u64,
    peer: NodeId,
}

/// Peers by the urgency of the first message of each. A peer is in it at most once.
#[derive(Clone, Debug, Default)]
struct ShortestFirst {
    heap: BinaryHeap<Reverse<Urgency>>,
    arrivals: u64,
}

impl ShortestFirst {
    fn push(&mut self, peer: NodeId, remaining: u64) {
        self.heap.push(Reverse(Urgency { remaining, arrival: self.arrivals, peer }));
        self.arrivals += 1;
    }
    fn peek(&self) -> Option<NodeId> {
        self.heap.peek().map(|Reverse(urgency)| urgency.peer)
    }
    fn pop(&mut self) -> Option<NodeId> {
        self.heap.pop().map(|Reverse(urgency)| urgency.peer)
    }
}

/// What a host sends to one target.
#[derive(Clone, Debug, Default)]
struct Called {
    messages: Outgoing,
    /// Packets that the target has called for and that are not sent yet.
    credits: u32,
}

/// What a host expects from one source.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Announced and not wholly granted.
    ungranted: Outgoing,
    /// Payload called for and not there.
    outstanding: u64,
    /// Whether it is among the grantable.
    is_listed: bool,
    inbox: Inbox,
}

impl Incoming {
    /// The next packet to call for, if there is one and it fits beside what is outstanding.
    fn next(&self, mtu: Bytes, limit: Bytes) -> Option<Piece> {
        self.ungranted.peek(mtu).filter(|piece| fits(piece, self.outstanding, limit))
    }
}

/// Whether a packet may be called for beside `outstanding` bytes; alone, any may.
fn fits(piece: &Piece, outstanding: u64, limit: Bytes) -> bool {
    outstanding == 0 || outstanding + u64::from(piece.payload) <= limit.count()
}

/// The receiving side of a host: decides who may send to it.
#[derive(Clone, Debug)]
struct Receiver {
    config: ReceiverDriven,
    /// The most payload that one source is asked for ahead.
    source_limit: Bytes,
    sources: Sparse<Incoming>,
    /// Sources with something to grant, and below their limit.
    grantable: ShortestFirst,
    /// Payload called for and not there.
    outstanding: u64,
    /// When the link will have room for what the next credit calls for.
    next_credit: Time,
    /// Since when a credit could be given if it were its time: the pace does not slip while a due credit waits for the
    /// host's own link.
    grantable_since: Option<Time>,
}

/// The sending side of a host.
#[derive(Clone, Debug)]
struct Sender {
    mtu: Bytes,
    targets: Sparse<Called>,
    /// Targets with a credit.
    sendable: ShortestFirst,
}

/// A host: sender to some and receiver of others.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    config: ReceiverDriven,
    rate: Rate,
    sender: Sender,
    receiver: Receiver,
    /// The latest time that the host has been told.
    now: Time,
}

impl Host {
    fn new(config: ReceiverDriven, node: NodeId, rate: Rate, source_limit: Bytes) -> Host {
        Host {
            node,
            config,
            rate,
            sender: Sender { mtu: config.mtu, targets: Sparse::default(), sendable: ShortestFirst::default() },
            receiver: Receiver {
                config,
                source_limit,
                sources: Sparse::default(),
                grantable: ShortestFirst::default(),
                outstanding: 0,
                next_credit: Time::ZERO,
                grantable_since: None,
            },
            now: Time::ZERO,
        }
    }
    /// Payload bytes that this host has called for and that are not there.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new(self.receiver.outstanding)
    }
    /// The next credit, if its time has come.
    fn credit(&mut self, now: Time) -> Option<Packet> {
        if now < self.receiver.next_credit {
            return None;
        }
        let (source, piece) = self.receiver.grant()?;
        let data = Bytes::new(u64::from(receiver_driven_wire(piece.payload)));
        let due = self.receiver.next_credit.max(self.receiver.grantable_since.unwrap_or(now));
        self.receiver.next_credit = due + self.rate.span_of(data);
        self.receiver.note_grantable(now);
        let Piece { message, offset, payload, .. } = piece;
        let bare = Packet::new(PacketKind::Grant, self.node, source, CREDIT_WIRE);
        Some(Packet { message, offset, priority: piece.remaining(), value: u64::from(payload), ..bare })
    }
    /// The most urgent packet that somebody has called for.
    fn data(&mut self) -> Option<Packet> {
        let target = self.sender.sendable.pop()?;
        let called = &mut self.sender.targets[target.index()];
        let piece = called.messages.take(self.config.mtu)?;
        called.credits -= 1;
        self.sender.list(target);
        let packet = piece.packet(self.node, target, receiver_driven_wire(piece.payload));
        Some(Packet { priority: piece.remaining(), ..packet })
    }
}

impl Receiver {
    fn announce(&mut self, message: &Message) {
        self.sources[message.source.index()].ungranted.push(message);
        self.list(message.source);
    }
    /// Lists `source`, unless it is, or has nothing to grant, or has reached its limit.
    fn list(&mut self, source: NodeId) {
        let incoming = &mut self.sources[source.index()];
        if let (Some(piece), false) = (incoming.next(self.config.mtu, self.source_limit), incoming.is_listed) {
            incoming.is_listed = true;
            self.grantable.push(source, piece.remaining());
        }
    }
    /// Calls for the next packet: its source, and what it is to carry.
    fn grant(&mut self) -> Option<(NodeId, Piece)> {
        if !self.may_grant() {
            return None;
        }
        let source = self.grantable.pop()?;
        let incoming = &mut self.sources[source.index()];
        incoming.is_listed = false;
        let piece = incoming.ungranted.take(self.config.mtu)?;
        incoming.outstanding += u64::from(piece.payload);
        self.outstanding += u64::from(piece.payload);
        self.list(source);
        Some((source, piece))
    }
    /// Whether the most urgent packet fits into what may be outstanding.
    fn may_grant(&self) -> bool {
        let Some(source) = self.grantable.peek() else { return false };
        let next = self.sources[source.index()].ungranted.peek(self.config.mtu);
        next.is_some_and(|piece| fits(&piece, self.outstanding, self.config.outstanding))
    }
    fn note_grantable(&mut self, now: Time) {
        self.grantable_since = self.may_grant().then(|| self.grantable_since.unwrap_or(now));
    }
    fn take(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        let (source, payload) = (packet.source, u64::from(packet.payload));
        let incoming = &mut self.sources[source.index()];
        incoming.outstanding = incoming.outstanding.saturating_sub(payload);
        self.outstanding = self.outstanding.saturating_sub(payload);
        if let Arrived::Complete(_) = incoming.inbox.take(packet) {
            out.push(HostOut::Deliver { message: packet.message });
        }
        self.list(source);
    }
}

impl Sender {
    fn take_credit(&mut self, receiver: NodeId) {
        let called = &mut self.targets[receiver.index()];
        called.credits += 1;
        if called.credits == 1 {
            self.list(receiver);
        }
    }
    /// Lists `target` if it has called for something that is there.
    fn list(&mut self, target: NodeId) {
        let called = &self.targets[target.index()];
        if let (Some(piece), true) = (called.messages.peek(self.mtu), called.credits > 0) {
            self.sendable.push(target, piece.remaining());
        }
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        self.now = now;
        match input {
            HostIn::Submit(message) => {
                self.sender.targets[message.target.index()].messages.push(&message);
                out.push(HostOut::Announce(message));
            }
            HostIn::Announced(message) => self.receiver.announce(&message),
            HostIn::Receive(packet) if packet.kind == PacketKind::Grant => self.sender.take_credit(packet.source),
            HostIn::Receive(packet) => self.receiver.take(&packet, out),
        }
        self.receiver.note_grantable(now);
    }
    /// The next credit's time. When that has passed, the credit waits for the link and needs no wake-up.
    fn next_wakeup(&self) -> Option<Time> {
        let next = self.receiver.next_credit;
        (next > self.now && self.receiver.may_grant()).then_some(next)
    }
    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        self.now = now;
    }
}

impl crate::Host for Host {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.now = now;
        self.credit(now).or_else(|| self.data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host as _;
    use base::Span;

    const MTU: u64 = 1456;
    const PACKET: Span = Span::ps(1538 * 80);

    fn receiver(outstanding_packets: u64, source_packets: u64) -> Host {
        let config = ReceiverDriven { mtu: Bytes::new(MTU), outstanding: Bytes::new(outstanding_packets * MTU) };
        host(&config, NodeId(0), Rate::gbps(100), Bytes::new(source_packets * MTU))
    }
    fn announced(host: &mut Host, at: Time, source: u32, bytes: u64) {
        let message = Message {
            id: source,
            source: NodeId(source),
            target: NodeId(0),
            bytes: Bytes::new(bytes),
            is_answer: false,
            expects_answer: false,
        };
        host.on(at, HostIn::Announced(message), &mut Vec::new());
    }
    fn data(source: u32, offset: u64, whole: u64) -> HostIn {
        let bare = Packet::new(PacketKind::Data, NodeId(source), NodeId(0), 1538);
        HostIn::Receive(Packet { message: source, offset, payload: MTU as u32, value: whole, ..bare })
    }
    /// Whom the host calls at `at`, if anybody.
    fn called(host: &mut Host, at: Time) -> Option<u32> {
        host.poll_transmit(at).map(|credit| credit.target.0)
    }

    #[test]
    fn credits_are_a_data_packet_apart_and_go_to_the_shortest_message() {
        let mut host = receiver(8, 8);
        announced(&mut host, Time::ZERO, 1, 3 * MTU);
        announced(&mut host, Time::ZERO, 2, MTU);
        assert_eq!(called(&mut host, Time::ZERO), Some(2));
        let due = Time::ZERO + PACKET;
        assert_eq!(called(&mut host, due - Span::ps(1)), None);
        assert_eq!(host.next_wakeup(), Some(due));
        assert_eq!(called(&mut host, due), Some(1));
    }

    #[test]
    fn a_credit_that_waited_for_the_link_does_not_slow_the_pace() {
        let mut host = receiver(8, 8);
        announced(&mut host, Time::ZERO, 1, 4 * MTU);
        assert_eq!(called(&mut host, Time::ns(100)), Some(1));
        assert_eq!(called(&mut host, Time::ZERO + PACKET), Some(1));
        // But time in which nothing could be granted is not made up for.
        let mut idle = receiver(8, 8);
        announced(&mut idle, Time::us(1), 1, 2 * MTU);
        assert_eq!(called(&mut idle, Time::us(1)), Some(1));
        assert_eq!(called(&mut idle, Time::us(1)), None);
    }

    #[test]
    fn what_is_outstanding_is_bounded_until_data_comes() {
        let mut host = receiver(2, 8);
        announced(&mut host, Time::ZERO, 1, 4 * MTU);
        let late = Time::us(9);
        assert_eq!([0, 1, 2].map(|_| called(&mut host, late)), [Some(1), Some(1), None]);
        assert_eq!((host.outstanding(), host.next_wakeup()), (Bytes::new(2 * MTU), None));
        host.on(late, data(1, 0, 4 * MTU), &mut Vec::new());
        assert_eq!(called(&mut host, late), Some(1));
    }

    #[test]
    fn a_silent_source_leaves_room_for_a_longer_message_of_another() {
        let mut host = receiver(3, 2);
        announced(&mut host, Time::ZERO, 1, 4 * MTU);
        announced(&mut host, Time::ZERO, 2, 9 * MTU);
        let late = Time::us(9);
        assert_eq!([0, 1, 2, 3].map(|_| called(&mut host, late)), [Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn a_sender_waits_for_credits_and_serves_the_shortest_message_first() {
        let mut host = receiver(8, 8);
        for (target, bytes) in [(1, 3 * MTU), (2, 2 * MTU)] {
            let (source, target) = (NodeId(0), NodeId(target));
            let message = Message {
                id: target.0,
                source,
                target,
                bytes: Bytes::new(bytes),
                is_answer: false,
                expects_answer: false,
            };
            let mut out = Vec::new();
            host.on(Time::ZERO, HostIn::Submit(message), &mut out);
            assert_eq!(out, [HostOut::Announce(message)]);
        }
        assert_eq!(host.poll_transmit(Time::ZERO), None);
        for target in [1, 1, 2] {
            let credit = Packet::new(PacketKind::Grant, NodeId(target), NodeId(0), CREDIT_WIRE);
            host.on(Time::ZERO, HostIn::Receive(credit), &mut Vec::new());
        }
        let sent: Vec<_> = std::iter::from_fn(|| host.poll_transmit(Time::ZERO)).map(|data| data.target.0).collect();
        assert_eq!(sent, [2, 1, 1]);
    }
}
