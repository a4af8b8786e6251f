//! DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257) on TCP with selective acknowledgements (RFC 2018,
//! 6675) or NewReno recovery (RFC 5681, 6582), and RFC 6298's timer.
//!
//! Each ordered pair of hosts has one connection, or a few, which live for the whole run. The
//! window, the marked fraction and the round-trip estimate persist across messages. Messages form a
//! byte stream, delivered in order. A segment never contains bytes of two messages (each send is
//! pushed).
//!
//! Every segment is acknowledged at once, which makes the echo of marks exact (SIGCOMM'10, 3.2,
//! with m = 1). Acknowledgements are packets on the wire and have priority over data. A gap is
//! resent when three segments were received beyond it, the tail after a timeout.

mod receiver;
mod selective;
mod sender;
mod switch;

use crate::common::{Ready, ReadyRing, Sparse, Timers};
use crate::config::Dctcp;
use crate::cost::{Train, WireCost};
use crate::framing::{tcp_selective_wire, tcp_wire};
use crate::{Allowance, HostIn, HostOut, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Time};
use receiver::Receiver;
use std::collections::VecDeque;

pub use sender::{Segment, Sender};
pub use switch::Switch;

/// Maximum number of connections per direction between two hosts.
pub const CONNECTIONS_MAX: u32 = 64;
/// Maximum number of blocks of a selective acknowledgement (RFC 2018, 3: three with a timestamp; as
/// many fit into a [`Packet`]).
pub(crate) const BLOCKS_MAX: u32 = 3;

/// A host's TCP: a sender and a receiver for every connection. A connection number combines the
/// peer and an index.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    selective: bool,
    connections: u32,
    senders: Sparse<Sender>,
    receivers: Sparse<Receiver>,
    acknowledgements: VecDeque<Packet>,
    ring: ReadyRing,
    /// Retransmission timers, by connection.
    timers: Timers,
}

/// Creates the TCP of `node`.
pub fn host(config: &Dctcp, node: NodeId) -> Host {
    assert!((1..=CONNECTIONS_MAX).contains(&config.connections), "1 to {CONNECTIONS_MAX} connections a pair");
    Host {
        node,
        selective: config.selective,
        connections: config.connections,
        senders: Sparse::new(Sender::new(config)),
        receivers: Sparse::default(),
        acknowledgements: VecDeque::new(),
        ring: ReadyRing::default(),
        timers: Timers::default(),
    }
}

/// Creates an output-queued switch with `ports` ports.
pub fn switch(config: &Dctcp, ports: u32) -> Switch {
    Switch::new(config, ports)
}

/// Returns the packets of a lone message.
pub fn train(config: &Dctcp, bytes: Bytes) -> Train {
    Train::new(bytes, config.mss, |payload, _| tcp_wire(payload), tcp_wire(0))
}

/// Returns the wire cost of a lone request.
pub fn wire_cost(config: &Dctcp, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

/// An acknowledgement stores its blocks in fields that only data needs, each as a distance from its
/// offset and a length. The connection is above the last length, which is clamped to the remaining
/// bits: reporting less than was received is still correct.
const CONNECTION_SHIFT: u32 = 26;

/// Stores blocks in an acknowledgement. Distances are within a window: 32 bits.
fn with_blocks(packet: Packet, blocks: impl Iterator<Item = (u64, u64)>) -> Packet {
    let mut places = [(0u32, 0u32); BLOCKS_MAX as usize];
    let mut count = 0;
    for (place, (start, end)) in places.iter_mut().zip(blocks) {
        *place = ((start - packet.offset) as u32, (end - start).min((1 << CONNECTION_SHIFT) - 1) as u32);
        count += 1;
    }
    let wide = |(start, length): (u32, u32)| u64::from(start) << 32 | u64::from(length);
    let [first, second, (message, length)] = places;
    let sequence = packet.sequence << CONNECTION_SHIFT | length;
    let wire = tcp_selective_wire(count);
    Packet { priority: wide(first), value: wide(second), message, sequence, wire, ..packet }
}

/// Returns the blocks of an acknowledgement, as stream offsets; its wire length determines their
/// number.
pub(crate) fn blocks_of(packet: &Packet) -> impl Iterator<Item = (u64, u64)> {
    let count = (1..=BLOCKS_MAX).find(|count| packet.wire == tcp_selective_wire(*count)).unwrap_or(0);
    let split = |wide: u64| ((wide >> 32) as u32, wide as u32);
    let length = packet.sequence & ((1 << CONNECTION_SHIFT) - 1);
    let places = [split(packet.priority), split(packet.value), (packet.message, length)];
    let offset = packet.offset;
    places.into_iter().take(count as usize).map(move |(start, length)| {
        let start = offset.wrapping_add(u64::from(start));
        (start, start.wrapping_add(u64::from(length)))
    })
}

impl Host {
    /// Returns the congestion window towards `peer`, on the first connection.
    pub fn window(&self, peer: NodeId) -> Bytes {
        Bytes::new(self.senders[self.connection(peer, 0) as usize].window())
    }
    /// Returns the estimated fraction of marked bytes towards `peer`, on the first connection.
    pub fn marked_fraction(&self, peer: NodeId) -> f64 {
        self.senders[self.connection(peer, 0) as usize].alpha()
    }

    fn connection(&self, peer: NodeId, place: u32) -> u32 {
        peer.0 * self.connections + place
    }
    fn peer(&self, connection: u32) -> NodeId {
        NodeId(connection / self.connections)
    }
    /// Returns the connection to `peer` with the smallest backlog, for a new message.
    fn least_busy(&self, peer: NodeId) -> u32 {
        let all = (0..self.connections).map(|place| self.connection(peer, place));
        all.min_by_key(|connection| self.senders[*connection as usize].backlog()).expect("a pair has a connection")
    }

    fn on_data(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        let connection = self.connection(packet.source, packet.sequence);
        let receiver = &mut self.receivers[connection as usize];
        let expected = receiver.take(packet, |message| out.push(HostOut::Deliver { message }));
        let acknowledgement = Packet {
            offset: expected,
            sequence: packet.sequence,
            marked: packet.marked,
            ..Packet::new(PacketKind::Acknowledgement, self.node, packet.source, tcp_wire(0))
        };
        let count = if self.selective { BLOCKS_MAX as usize } else { 0 };
        let blocks = receiver.blocks(packet.offset, count);
        self.acknowledgements.push_back(with_blocks(acknowledgement, blocks));
    }

    fn on_acknowledgement(&mut self, now: Time, packet: &Packet) {
        let connection = self.connection(packet.source, packet.sequence >> CONNECTION_SHIFT);
        let sender = &mut self.senders[connection as usize];
        sender.acknowledge_selectively(now, packet.offset, packet.marked, blocks_of(packet));
        match sender.deadline() {
            Some(deadline) => self.timers.set(connection, deadline),
            None => self.timers.cancel(connection),
        }
        self.list_if_able(connection);
    }

    fn list_if_able(&mut self, connection: u32) {
        if self.senders[connection as usize].can_send() {
            self.ring.add(NodeId(connection));
        }
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => {
                let connection = self.least_busy(message.target);
                self.senders[connection as usize].submit(message.id, message.bytes.count());
                self.list_if_able(connection);
            }
            HostIn::Receive(packet) if packet.kind == PacketKind::Data => self.on_data(&packet, out),
            HostIn::Receive(packet) if packet.kind == PacketKind::Acknowledgement => {
                self.on_acknowledgement(now, &packet);
            }
            HostIn::Receive(_) | HostIn::Announced(_) => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_wakeup(&mut self, now: Time, _out: &mut Vec<HostOut>) {
        while let Some(connection) = self.timers.pop_due(now) {
            self.senders[connection as usize].time_out();
            self.list_if_able(connection);
        }
    }
}

impl crate::Host for Host {
    fn allowance(&self) -> Allowance {
        Allowance::Window(Bytes::new(self.senders.used().map(Sender::window).sum()))
    }
    fn may_transmit(&self) -> bool {
        !(self.acknowledgements.is_empty() && self.ring.is_empty())
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(acknowledgement) = self.acknowledgements.pop_front() {
            return Some(acknowledgement);
        }
        while let Some(NodeId(connection)) = self.ring.front() {
            let sender = &mut self.senders[connection as usize];
            let Some(segment) = sender.next_segment(now) else {
                self.ring.turn(Ready::Done);
                continue;
            };
            self.ring.turn(if sender.can_send() { Ready::Again } else { Ready::Done });
            if self.timers.deadline(connection).is_none()
                && let Some(deadline) = sender.deadline()
            {
                self.timers.set(connection, deadline);
            }
            return Some(self.data(connection, &segment));
        }
        None
    }
}

impl Host {
    fn data(&self, connection: u32, segment: &Segment) -> Packet {
        Packet {
            message: segment.message,
            sequence: connection % self.connections,
            offset: segment.offset,
            payload: segment.payload,
            value: segment.message_end,
            again: segment.again,
            ..Packet::new(PacketKind::Data, self.node, self.peer(connection), tcp_wire(segment.payload))
        }
    }
}
