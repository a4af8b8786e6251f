//! An idealised receiver-driven protocol, the "IRD" of EDM (ASPLOS'25), 4.3.
//!
//! It combines the best mechanisms of such protocols, and one part is idealised:
//! * A receiver learns of a message at the time of its submission, off the wire (the idealisation;
//!   the rig forwards [`HostOut::Announce`]).
//! * The receiver grants credits, one per packet, to the message with the least bytes left to grant
//!   (SRPT, as in Homa, SIGCOMM'18, and pHost, CoNEXT'15). This holds within a pair too: a credit
//!   identifies its message. Even the first packet needs one: nothing is sent unscheduled, so no
//!   unscheduled burst can build a queue.
//! * Credits are paced so that the data arrive at line rate (NDP, SIGCOMM'17). ExpressPass
//!   (SIGCOMM'17) limits credits at the switch ports of the receiver's link, which with one switch
//!   is equivalent.
//! * At most `outstanding` bytes are credited and not received, and from one source at most what
//!   keeps it sending for a round trip. An `outstanding` of several round trips is Homa's
//!   overcommitment, which lets a receiver credit other sources while one is busy. A message no
//!   longer than `outstanding` is exempt from both limits: the originals send that much
//!   unscheduled, and credits at busy sources must not delay it.
//! * A sender with credits of several receivers serves the message with the least bytes left to
//!   send. The other receivers' slots stay empty meanwhile: the scheduling conflict that reduces
//!   the throughput of these protocols (EDM, 3.1).
//!
//! Credits are packets of the minimum frame size. They have priority over data, at hosts and in the
//! switch, as in ExpressPass (a separate class) and Homa (highest priority). Data of short messages
//! have priority over other data in the switch, a minimal version of Homa's eight levels. The
//! switch never drops: its queues are unbounded, and paced credits keep them short.

use crate::common::{Arrived, Inbox, Sparse};
use crate::config::ReceiverDriven;
use crate::cost::{Train, WireCost};
use crate::framing::receiver_driven_wire;
use crate::outgoing::Piece;
use crate::{Allowance, HostIn, HostOut, Message, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Wire bytes of a credit.
pub const CREDIT_WIRE: u32 = receiver_driven_wire(0);

/// Creates host `node` of `nodes` on a link of `rate`, which paces its credits. `source_limit` is
/// the payload that keeps a source sending for the round trip of a credit and its data.
pub fn host(config: &ReceiverDriven, node: NodeId, rate: Rate, source_limit: Bytes) -> Host {
    Host::new(*config, node, rate, source_limit)
}

/// Control has priority, then data of messages short enough to be exempt from credit limits.
pub use crate::common::ClassSwitch as Switch;

/// Creates an empty switch. Its queues are unbounded; credits keep them short.
pub fn switch(config: &ReceiverDriven, ports: u32) -> Switch {
    Switch::with_short(ports, config.outstanding)
}

/// Returns the packets of a lone message of `bytes`; its acknowledgements are the credits.
pub fn train(config: &ReceiverDriven, bytes: Bytes) -> Train {
    Train::new(bytes, config.mtu, |payload, _| receiver_driven_wire(payload), CREDIT_WIRE)
}

/// Returns the wire cost of a lone request of `bytes`, whose read request is `read_request` long.
pub fn wire_cost(config: &ReceiverDriven, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

/// The order of messages: least remaining bytes first; among equals, the longest waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Urgency {
    remaining: u64,
    arrival: u64,
    peer: NodeId,
    /// The message's number among those of its pair.
    sequence: u32,
}

/// Messages by their urgency.
#[derive(Clone, Debug, Default)]
struct ShortestFirst {
    heap: BinaryHeap<Reverse<Urgency>>,
    arrivals: u64,
}

impl ShortestFirst {
    /// Returns the entry's number.
    fn push(&mut self, peer: NodeId, sequence: u32, remaining: u64) -> u64 {
        self.arrivals += 1;
        self.heap.push(Reverse(Urgency { remaining, arrival: self.arrivals, peer, sequence }));
        self.arrivals
    }
    fn peek(&self) -> Option<Urgency> {
        self.heap.peek().map(|Reverse(urgency)| *urgency)
    }
    fn pop(&mut self) -> Option<Urgency> {
        self.heap.pop().map(|Reverse(urgency)| urgency)
    }
}

/// A message that may be partly granted, or partly sent.
#[derive(Clone, Copy, Debug)]
struct Started {
    message: u32,
    bytes: u64,
    /// Offset of the next packet.
    next: u64,
    /// At the sender: packets that the receiver has credited and that are not sent yet.
    credits: u32,
}

impl Started {
    fn of(message: &Message) -> Started {
        Started { message: message.id, bytes: message.bytes.count(), next: 0, credits: 0 }
    }
    fn remaining(&self) -> u64 {
        self.bytes - self.next
    }
    /// Returns the next packet with at most `mtu` of payload.
    fn piece(&self, sequence: u32, mtu: Bytes) -> Piece {
        let Started { message, bytes, next: offset, .. } = *self;
        Piece { message, sequence, bytes, offset, payload: mtu.count().min(bytes - offset) as u32 }
    }
    /// Advances past a packet. Returns whether it was the last one.
    fn advance(&mut self, payload: u32) -> bool {
        self.next += u64::from(payload);
        self.next == self.bytes
    }
}

/// The messages from one source.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Number of the next message to be announced.
    next_sequence: u32,
    /// Payload that is credited and not received.
    outstanding: u64,
    /// The number of its valid entry in `grantable`; zero if there is none.
    listed: u64,
    inbox: Inbox,
}

/// Returns whether a packet may be credited in addition to `outstanding` bytes; always if these are
/// zero.
fn fits(piece: &Piece, outstanding: u64, limit: Bytes) -> bool {
    outstanding == 0 || outstanding + u64::from(piece.payload) <= limit.count()
}

/// Returns whether a message is short enough to be exempt from the limits: Homa and NDP send as
/// much unscheduled, pHost has tokens for it.
fn is_short(piece: &Piece, config: &ReceiverDriven) -> bool {
    piece.bytes <= config.outstanding.count()
}

/// The receiving side of a host: decides which sources may send to it.
#[derive(Clone, Debug)]
struct Receiver {
    config: ReceiverDriven,
    /// Maximum payload that is credited to one source in advance.
    source_limit: Bytes,
    sources: Sparse<Incoming>,
    /// Announced messages that are not fully granted, by source, ungranted bytes, and sequence.
    ungranted: BTreeMap<(NodeId, u64, u32), Started>,
    /// The shortest message of each source below its limit. Invalid entries are removed when they
    /// are first.
    grantable: ShortestFirst,
    /// Payload that is credited and not received.
    outstanding: u64,
    /// When the link will have room for the data of the next credit.
    next_credit: Time,
    /// Since when a credit could be granted apart from pacing: the pace does not slip while a due
    /// credit waits for the host's own link.
    grantable_since: Option<Time>,
}

/// The sending side of a host.
#[derive(Clone, Debug)]
struct Sender {
    mtu: Bytes,
    /// Number of the next message, by target.
    next_sequence: Sparse<u32>,
    /// Submitted messages that are not fully sent, by target and sequence.
    open: BTreeMap<(NodeId, u32), Started>,
    /// Messages with a credit.
    sendable: ShortestFirst,
}

/// A host: both sender and receiver.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    rate: Rate,
    sender: Sender,
    receiver: Receiver,
    /// The latest time passed to the host.
    now: Time,
}

impl Host {
    fn new(config: ReceiverDriven, node: NodeId, rate: Rate, source_limit: Bytes) -> Host {
        Host {
            node,
            rate,
            sender: Sender {
                mtu: config.mtu,
                next_sequence: Sparse::default(),
                open: BTreeMap::new(),
                sendable: ShortestFirst::default(),
            },
            receiver: Receiver {
                config,
                source_limit,
                sources: Sparse::default(),
                ungranted: BTreeMap::new(),
                grantable: ShortestFirst::default(),
                outstanding: 0,
                next_credit: Time::ZERO,
                grantable_since: None,
            },
            now: Time::ZERO,
        }
    }
    /// Returns the payload bytes that this host has credited and not received.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new(self.receiver.outstanding)
    }
    /// Returns the next credit, if it is due.
    fn credit(&mut self, now: Time) -> Option<Packet> {
        if now < self.receiver.next_credit {
            return None;
        }
        let (source, piece) = self.receiver.grant()?;
        let data = Bytes::new(u64::from(receiver_driven_wire(piece.payload)));
        let due = self.receiver.next_credit.max(self.receiver.grantable_since.unwrap_or(now));
        self.receiver.next_credit = due + self.rate.span_of(data);
        self.receiver.note_grantable(now);
        let Piece { message, sequence, offset, payload, .. } = piece;
        let bare = Packet::new(PacketKind::Grant, self.node, source, CREDIT_WIRE);
        Some(Packet { message, sequence, offset, priority: piece.remaining(), value: u64::from(payload), ..bare })
    }
    /// Returns the most urgent credited packet.
    fn data(&mut self) -> Option<Packet> {
        let (target, piece) = self.sender.take()?;
        let packet = piece.packet(self.node, target, receiver_driven_wire(piece.payload));
        Some(Packet { priority: piece.remaining(), ..packet })
    }
}

impl Receiver {
    fn announce(&mut self, message: &Message) {
        let incoming = &mut self.sources[message.source.index()];
        let sequence = incoming.next_sequence;
        incoming.next_sequence = sequence.wrapping_add(1);
        let is_listed = incoming.listed != 0;
        self.ungranted.insert((message.source, message.bytes.count(), sequence), Started::of(message));
        // A listed message keeps its order among equals.
        if !is_listed || self.next(message.source).is_some_and(|(_, piece)| piece.sequence == sequence) {
            self.list(message.source);
        }
    }
    /// Returns the shortest message of `source`, and its next packet.
    fn next(&self, source: NodeId) -> Option<((NodeId, u64, u32), Piece)> {
        let (key, started) = self.ungranted.range((source, 0, 0)..=(source, u64::MAX, u32::MAX)).next()?;
        Some((*key, started.piece(key.2, self.config.mtu)))
    }
    /// Lists the shortest message of `source`, unless the source has reached its limit.
    fn list(&mut self, source: NodeId) {
        let (limit, outstanding) = (self.source_limit, self.sources[source.index()].outstanding);
        let may = |piece: &Piece| is_short(piece, &self.config) || fits(piece, outstanding, limit);
        let next = self.next(source).filter(|(_, piece)| may(piece));
        let listed = next.map(|(_, piece)| self.grantable.push(source, piece.sequence, piece.remaining()));
        self.sources[source.index()].listed = listed.unwrap_or(0);
        while self.grantable.peek().is_some_and(|first| self.sources[first.peer.index()].listed != first.arrival) {
            self.grantable.pop();
        }
    }
    /// Grants the next packet. Returns its source and its content.
    fn grant(&mut self) -> Option<(NodeId, Piece)> {
        if !self.may_grant() {
            return None;
        }
        let source = self.grantable.pop()?.peer;
        let (key, piece) = self.next(source)?;
        let incoming = &mut self.sources[source.index()];
        incoming.outstanding += u64::from(piece.payload);
        self.outstanding += u64::from(piece.payload);
        let mut started = self.ungranted.remove(&key)?;
        if !started.advance(piece.payload) {
            self.ungranted.insert((source, started.remaining(), piece.sequence), started);
        }
        self.list(source);
        Some((source, piece))
    }
    /// Returns whether the most urgent packet is within the limit on outstanding data.
    fn may_grant(&self) -> bool {
        let next = self.grantable.peek().and_then(|first| self.next(first.peer));
        let may =
            |piece: &Piece| is_short(piece, &self.config) || fits(piece, self.outstanding, self.config.outstanding);
        next.is_some_and(|(_, piece)| may(&piece))
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
        if incoming.listed == 0 {
            self.list(source);
        }
    }
}

impl Sender {
    fn submit(&mut self, message: &Message) {
        let sequence = &mut self.next_sequence[message.target.index()];
        self.open.insert((message.target, *sequence), Started::of(message));
        *sequence = sequence.wrapping_add(1);
    }
    /// Handles a credit for the next packet of a message.
    fn take_credit(&mut self, credit: &Packet) {
        let (target, sequence) = (credit.source, credit.sequence);
        let Some(started) = self.open.get_mut(&(target, sequence)) else { return };
        started.credits += 1;
        if started.credits == 1 {
            self.sendable.push(target, sequence, started.remaining());
        }
    }
    fn take(&mut self) -> Option<(NodeId, Piece)> {
        let Urgency { peer: target, sequence, .. } = self.sendable.pop()?;
        let started = self.open.get_mut(&(target, sequence))?;
        let piece = started.piece(sequence, self.mtu);
        started.credits -= 1;
        if started.advance(piece.payload) {
            self.open.remove(&(target, sequence));
        } else if started.credits > 0 {
            self.sendable.push(target, sequence, started.remaining());
        }
        Some((target, piece))
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        self.now = now;
        match input {
            HostIn::Submit(message) => {
                self.sender.submit(&message);
                out.push(HostOut::Announce(message));
            }
            HostIn::Announced(message) => self.receiver.announce(&message),
            HostIn::Receive(packet) if packet.kind == PacketKind::Grant => self.sender.take_credit(&packet),
            HostIn::Receive(packet) => self.receiver.take(&packet, out),
        }
        self.receiver.note_grantable(now);
    }
    /// Returns when the next credit is due. After that time the credit waits for the link and needs
    /// no wake-up.
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
    fn allowance(&self) -> Allowance {
        Allowance::Granted(self.outstanding())
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
    /// Returns the source that the host credits at `at`, if any.
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
        // But time in which nothing could be granted is not compensated.
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
    fn a_short_message_is_called_for_before_a_long_one_of_the_same_pair() {
        let mut host = receiver(8, 8);
        announced(&mut host, Time::ZERO, 1, 3 * MTU);
        announced(&mut host, Time::ZERO, 1, 2 * MTU);
        announced(&mut host, Time::ZERO, 1, 2 * MTU);
        let late = Time::us(9);
        let calls = std::iter::from_fn(|| host.poll_transmit(late));
        let calls: Vec<_> = calls.map(|credit| (credit.sequence, credit.offset / MTU)).collect();
        assert_eq!(calls, [(1, 0), (1, 1), (2, 0), (2, 1), (0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn a_short_message_is_called_for_however_much_is_outstanding() {
        let mut host = receiver(2, 2);
        announced(&mut host, Time::ZERO, 1, 9 * MTU);
        let late = Time::us(9);
        assert_eq!([0, 1, 2].map(|_| called(&mut host, late)), [Some(1), Some(1), None]);
        announced(&mut host, late, 2, 2 * MTU);
        announced(&mut host, late, 1, 64);
        announced(&mut host, late, 2, 2 * MTU + 1);
        let later = [10, 11, 12, 13].map(|at| called(&mut host, Time::us(at)));
        assert_eq!(later, [Some(1), Some(2), Some(2), None]);
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
