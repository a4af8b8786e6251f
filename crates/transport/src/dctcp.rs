//! DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257) on TCP with NewReno recovery (RFC 5681, 6582, 6298).
//!
//! One connection for each ordered pair of hosts lives as long as the run: its window, its marked fraction and its
//! round-trip estimate survive from message to message, and messages to one peer are a byte stream, delivered in order. A segment
//! never holds bytes of two messages (each send is pushed). Every segment is acknowledged at once, which makes the echo of
//! marks exact (SIGCOMM'10, 3.2, with m = 1); acknowledgements are packets on the wire and go before data. No selective
//! acknowledgements: a hole is filled by fast retransmit, further holes by partial acknowledgements, the tail by the timer.

mod receiver;
mod sender;
mod switch;

use crate::common::{Ready, ReadyRing, Sparse, Timers};
use crate::config::Dctcp;
use crate::cost::{Train, WireCost};
use crate::framing::tcp_wire;
use crate::{HostIn, HostOut, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Time};
use receiver::Receiver;
use std::collections::VecDeque;

pub use sender::{Segment, Sender};
pub use switch::Switch;

/// A host's TCP: one sender and one receiver for every peer.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    senders: Sparse<Sender>,
    receivers: Sparse<Receiver>,
    acknowledgements: VecDeque<Packet>,
    ring: ReadyRing,
    /// Retransmission timers, by peer.
    timers: Timers,
}

/// The TCP of `node`.
pub fn host(config: &Dctcp, node: NodeId) -> Host {
    Host {
        node,
        senders: Sparse::new(Sender::new(config)),
        receivers: Sparse::default(),
        acknowledgements: VecDeque::new(),
        ring: ReadyRing::default(),
        timers: Timers::default(),
    }
}

/// An output-queued switch with `ports` ports.
pub fn switch(config: &Dctcp, ports: u32) -> Switch {
    Switch::new(config, ports)
}

/// The packets of a lone message.
pub fn train(config: &Dctcp, bytes: Bytes) -> Train {
    Train::new(bytes, config.mss, |payload, _| tcp_wire(payload), tcp_wire(0))
}

/// What a lone request puts on the wires.
pub fn wire_cost(config: &Dctcp, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

impl Host {
    /// Congestion window towards `peer`.
    pub fn window(&self, peer: NodeId) -> Bytes {
        Bytes::new(self.senders[peer.index()].window())
    }
    /// The estimated fraction of marked bytes on the way to `peer`.
    pub fn marked_fraction(&self, peer: NodeId) -> f64 {
        self.senders[peer.index()].alpha()
    }

    fn on_data(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        let receiver = &mut self.receivers[packet.source.index()];
        let expected = receiver.take(packet, |message| out.push(HostOut::Deliver { message }));
        self.acknowledgements.push_back(Packet {
            offset: expected,
            marked: packet.marked,
            ..Packet::new(PacketKind::Acknowledgement, self.node, packet.source, tcp_wire(0))
        });
    }

    fn on_acknowledgement(&mut self, now: Time, packet: &Packet) {
        let peer = packet.source;
        let sender = &mut self.senders[peer.index()];
        sender.acknowledge(now, packet.offset, packet.marked);
        match sender.deadline() {
            Some(deadline) => self.timers.set(peer.0, deadline),
            None => self.timers.cancel(peer.0),
        }
        self.list_if_able(peer);
    }

    fn list_if_able(&mut self, peer: NodeId) {
        if self.senders[peer.index()].can_send() {
            self.ring.add(peer);
        }
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => {
                self.senders[message.target.index()].submit(message.id, message.bytes.count());
                self.list_if_able(message.target);
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
        while let Some(peer) = self.timers.pop_due(now) {
            self.senders[peer as usize].time_out();
            self.list_if_able(NodeId(peer));
        }
    }
}

impl crate::Host for Host {
    fn may_transmit(&self) -> bool {
        !(self.acknowledgements.is_empty() && self.ring.is_empty())
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(acknowledgement) = self.acknowledgements.pop_front() {
            return Some(acknowledgement);
        }
        while let Some(peer) = self.ring.front() {
            let sender = &mut self.senders[peer.index()];
            let Some(segment) = sender.next_segment(now) else {
                self.ring.turn(Ready::Done);
                continue;
            };
            self.ring.turn(if sender.can_send() { Ready::Again } else { Ready::Done });
            if self.timers.deadline(peer.0).is_none()
                && let Some(deadline) = sender.deadline()
            {
                self.timers.set(peer.0, deadline);
            }
            return Some(Packet {
                message: segment.message,
                offset: segment.offset,
                payload: segment.payload,
                value: segment.message_end,
                again: segment.again,
                ..Packet::new(PacketKind::Data, self.node, peer, tcp_wire(segment.payload))
            });
        }
        None
    }
}
