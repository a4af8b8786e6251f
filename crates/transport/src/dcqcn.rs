//! RoCEv2 with DCQCN (Zhu et al., SIGCOMM'15) over priority flow control (IEEE 802.1Qbb).
//!
//! Each ordered pair of hosts has one reliable queue pair. A write is an RDMA write (its first
//! packet carries the RETH), acknowledged once, with its last packet (coalesced, as InfiniBand
//! 9.7.5.1.2 allows). A read is one read request, whose RETH is the request, and response packets.
//! These acknowledge the request and need no acknowledgement of their own; data of a response has
//! [`RESPONSE`] in `priority`.
//!
//! The network is lossless, so packets arrive in order and once; a gap or a full buffer is a broken
//! invariant and panics. There are two traffic classes: data, which can be paused, and control
//! (acknowledgements and congestion notifications), which has priority and is never paused
//! (SIGCOMM'15, 5.1 sends notifications with high priority). A pause lasts until the switch resumes
//! the port: refresh is not modelled.

mod buffer;
mod marking;
mod pacer;
mod rate;
mod switch;
#[cfg(test)]
mod testing;

use crate::common::{Ready, ReadyRing, Sparse, Timers};
use crate::config::Dcqcn;
use crate::cost::{Part, Train, WireCost};
use crate::framing::{roce_ack_wire, roce_notification_wire, roce_request_wire, roce_response_wire, roce_wire};
use crate::{Allowance, HostIn, HostOut, Message, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Rate, Stream, Time};
use std::collections::VecDeque;

pub use buffer::Buffer;
pub use marking::Marking;
pub use pacer::{Due, Notifier, Pacer, RateTimers};
pub use switch::Switch;

/// `priority` of data that answers a read.
pub const RESPONSE: u64 = 1;

/// A NIC with one queue pair per peer.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    config: Dcqcn,
    pairs: Sparse<QueuePair>,
    arrivals: Sparse<Arrivals>,
    control: VecDeque<Packet>,
    /// Queue pairs that may send now.
    ring: ReadyRing,
    /// When queue pairs that have used up their rate may send again.
    paced: Timers,
    /// Timers of queue pairs below line rate.
    rates: RateTimers,
    paused: bool,
}

/// The sending half of a queue pair.
#[derive(Clone, Debug)]
struct QueuePair {
    messages: VecDeque<Message>,
    /// Sent bytes of the first message.
    offset: u64,
    /// Sequence number of the first message.
    sequence: u32,
    pacer: Pacer,
}

/// The receiving half.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    sequence: u32,
    offset: u64,
    notifier: Notifier,
}

/// Creates the NIC of `node`, on links of `rate`.
pub fn host(config: &Dcqcn, node: NodeId, rate: Rate) -> Host {
    Host {
        node,
        config: *config,
        pairs: Sparse::new(QueuePair::new(rate, config)),
        arrivals: Sparse::default(),
        control: VecDeque::new(),
        ring: ReadyRing::default(),
        paced: Timers::default(),
        rates: RateTimers::default(),
        paused: false,
    }
}

/// Creates a switch whose ingress ports have `headroom` above the pause threshold for data in
/// flight; it draws its marks from `random`.
pub fn switch(config: &Dcqcn, ports: u32, headroom: Bytes, random: Stream) -> Switch {
    Switch::new(config, ports, headroom, random)
}

/// Returns the packets of a lone message.
pub fn train(config: &Dcqcn, part: Part, bytes: Bytes) -> Train {
    match part {
        Part::Write => Train { acknowledgements: 1, ..Train::new(bytes, config.mtu, roce_wire, roce_ack_wire()) },
        Part::Ask => unacknowledged(Train::new(bytes, config.mtu, |payload, _| roce_request_wire(payload), 0)),
        Part::Answer => {
            let train = unacknowledged(Train::new(bytes, config.mtu, roce_response_wire, 0));
            Train { last: last_of_response(config, bytes), ..train }
        }
    }
}

fn unacknowledged(train: Train) -> Train {
    Train { acknowledgements: 0, ..train }
}

fn last_of_response(config: &Dcqcn, bytes: Bytes) -> u32 {
    roce_response_wire(((bytes.count() - 1) % config.mtu.count() + 1) as u32, true)
}

/// Returns the wire cost of a lone request.
pub fn wire_cost(config: &Dcqcn, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_parts(operation, bytes, read_request, |part, bytes| train(config, part, bytes))
}

/// Returns the kind, priority and wire bytes of a packet.
fn form(message: &Message, offset: u64, payload: u32) -> (PacketKind, u64, u32) {
    let last = offset + u64::from(payload) == message.bytes.count();
    if message.expects_answer {
        (PacketKind::Request, 0, roce_request_wire(payload))
    } else if message.is_answer {
        (PacketKind::Data, RESPONSE, roce_response_wire(payload, offset == 0 || last))
    } else {
        (PacketKind::Data, 0, roce_wire(payload, offset == 0))
    }
}

impl QueuePair {
    fn new(rate: Rate, config: &Dcqcn) -> QueuePair {
        QueuePair { messages: VecDeque::new(), offset: 0, sequence: 0, pacer: Pacer::new(rate, config) }
    }
    /// Returns the next packet, of at most `mtu` payload; there must be a message.
    fn next_packet(&mut self, node: NodeId, mtu: u64) -> Packet {
        let message = self.messages[0];
        let (offset, bytes) = (self.offset, message.bytes.count());
        let payload = mtu.min(bytes - offset) as u32;
        let (kind, priority, wire) = form(&message, offset, payload);
        let packet = Packet {
            message: message.id,
            sequence: self.sequence,
            offset,
            payload,
            priority,
            value: bytes,
            ..Packet::new(kind, node, message.target, wire)
        };
        self.offset += u64::from(payload);
        if self.offset == bytes {
            self.messages.pop_front();
            self.offset = 0;
            self.sequence = self.sequence.wrapping_add(1);
        }
        packet
    }
}

impl Host {
    /// Returns the present rate of the queue pair to `peer`, in bits per second.
    pub fn rate_bps(&self, peer: NodeId) -> f64 {
        self.pairs[peer.index()].pacer.rate_bps()
    }
    /// Returns whether the switch has paused this host.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    fn submit(&mut self, now: Time, message: Message) {
        let pair = &mut self.pairs[message.target.index()];
        pair.messages.push_back(message);
        if pair.messages.len() == 1 {
            self.list(now, message.target);
        }
    }

    /// Lists a queue pair with something to send, now or when its rate allows.
    fn list(&mut self, now: Time, peer: NodeId) {
        let next_send = self.pairs[peer.index()].pacer.next_send();
        if next_send <= now {
            self.ring.add(peer);
        } else {
            self.paced.set(peer.0, next_send);
        }
    }

    fn on_data(&mut self, now: Time, packet: &Packet, out: &mut Vec<HostOut>) {
        let arrivals = &mut self.arrivals[packet.source.index()];
        let expected = (arrivals.sequence, arrivals.offset);
        assert_eq!((packet.sequence, packet.offset), expected, "a lossless fabric lost or reordered a packet");
        arrivals.offset += u64::from(packet.payload);
        if packet.marked && arrivals.notifier.is_due(now, &self.config) {
            let wire = roce_notification_wire();
            let kind = PacketKind::CongestionNotification;
            self.control.push_back(Packet::new(kind, self.node, packet.source, wire));
        }
        if arrivals.offset == packet.value {
            arrivals.offset = 0;
            arrivals.sequence = arrivals.sequence.wrapping_add(1);
            out.push(HostOut::Deliver { message: packet.message });
            self.acknowledge(packet);
        }
    }

    /// Acknowledges the last packet of a write. Answers acknowledge requests, and need no
    /// acknowledgement themselves.
    fn acknowledge(&mut self, last: &Packet) {
        if last.kind == PacketKind::Data && last.priority != RESPONSE {
            let bare = Packet::new(PacketKind::Acknowledgement, self.node, last.source, roce_ack_wire());
            self.control.push_back(Packet { message: last.message, sequence: last.sequence, ..bare });
        }
    }

    fn on_notification(&mut self, now: Time, peer: NodeId) {
        self.rates.notified(now, peer.0, &mut self.pairs[peer.index()].pacer, &self.config);
    }

    /// Reschedules a waiting packet after a rate change.
    fn repace(&mut self, now: Time, peer: NodeId) {
        if self.paced.deadline(peer.0).is_some() {
            self.paced.set(peer.0, self.pairs[peer.index()].pacer.next_send().max(now));
        }
    }

    fn release_paced(&mut self, now: Time) {
        while let Some(peer) = self.paced.pop_due(now) {
            self.ring.add(NodeId(peer));
        }
    }

    fn send_to(&mut self, now: Time, peer: NodeId) -> Packet {
        let pair = &mut self.pairs[peer.index()];
        let packet = pair.next_packet(self.node, self.config.mtu.count());
        pair.pacer.sent(now, packet.wire, &self.config);
        let next_send = pair.pacer.next_send();
        let more = !pair.messages.is_empty();
        let stays = more && next_send <= now;
        self.ring.turn(if stays { Ready::Again } else { Ready::Done });
        if more && !stays {
            self.paced.set(peer.0, next_send);
        }
        packet
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => self.submit(now, message),
            HostIn::Receive(packet) => match packet.kind {
                PacketKind::Data | PacketKind::Request => self.on_data(now, &packet, out),
                PacketKind::CongestionNotification => self.on_notification(now, packet.source),
                PacketKind::Pause => self.paused = packet.value > 0,
                _ => {}
            },
            HostIn::Announced(_) => {}
        }
    }

    /// While the host is paused, pacing timers are ignored.
    fn next_wakeup(&self) -> Option<Time> {
        let paced = self.paced.next().filter(|_| !self.paused);
        [self.rates.next(), paced].into_iter().flatten().min()
    }

    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        while let Some(due) = self.rates.pop_due(now) {
            let peer = NodeId(due.flow());
            self.rates.fire(now, due, &mut self.pairs[peer.index()].pacer, &self.config);
            self.repace(now, peer);
        }
        self.release_paced(now);
    }
}

impl crate::Host for Host {
    fn allowance(&self) -> Allowance {
        let sending = self.pairs.used().filter(|pair| !pair.messages.is_empty());
        Allowance::Rate(sending.map(|pair| pair.pacer.rate_bps()).sum())
    }
    fn may_transmit(&self) -> bool {
        !(self.control.is_empty() && (self.paused || self.ring.is_empty()))
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(packet) = self.control.pop_front() {
            return Some(packet);
        }
        if self.paused {
            return None;
        }
        self.release_paced(now);
        let peer = self.ring.front()?;
        Some(self.send_to(now, peer))
    }
}
