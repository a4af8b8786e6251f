//! pFabric (Alizadeh et al., SIGCOMM'13): small priority queues in the switch, and minimal rate
//! control in the hosts.
//!
//! A message is a flow. Its packets have its remaining (unacknowledged) bytes as priority. A host
//! sends the flow with the least first, each with a fixed window of about a bandwidth-delay
//! product. It detects losses only by a fixed, short timeout (4.3: no fast retransmit). Every
//! packet is acknowledged individually. After several timeouts in a row a flow sends only probes;
//! when a probe is answered, it restarts with a window of one.
//!
//! As an alternative, [`RateControl::Dctcp`] makes each flow a connection of DCTCP, as in EDM
//! (ASPLOS'25, 4.3): marks of the switch, cumulative acknowledgements that echo them, fast
//! retransmit, and a timeout that follows round trips.

mod flow;
mod minimal;
mod over_dctcp;
mod switch;

use crate::common::{Arrived, Inbox, Sparse, Timers};
use crate::config::{Pfabric, RateControl};
use crate::cost::{Train, WireCost};
use crate::framing::{pfabric_ack_wire, pfabric_wire};
use crate::{HostIn, HostOut, Message, Packet, PacketKind};
use base::{Bytes, NodeId, Operation, Program, Time};
use flow::{Flow, Outbox, Send};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use switch::Switch;

/// A host: its flows, and the reassembly of messages from every peer.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    config: Pfabric,
    /// Slots of flows, which are reused.
    flows: Vec<Flow>,
    free: Vec<u32>,
    outboxes: Sparse<Outbox>,
    inboxes: Sparse<Inbox>,
    acknowledgements: VecDeque<Packet>,
    /// Flows that can send, least remaining bytes first, older first. Contains stale entries: see
    /// [`Flow::listed`].
    urgent: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Number of flows created.
    made: u64,
    /// Retransmission and probe timers, by slot.
    timers: Timers,
}

/// Creates the transport of `node`.
pub fn host(config: &Pfabric, node: NodeId) -> Host {
    Host {
        node,
        config: *config,
        flows: Vec::new(),
        free: Vec::new(),
        outboxes: Sparse::default(),
        inboxes: Sparse::default(),
        acknowledgements: VecDeque::new(),
        urgent: BinaryHeap::new(),
        made: 0,
        timers: Timers::default(),
    }
}

/// Creates a switch with `ports` priority queues.
pub fn switch(config: &Pfabric, ports: u32) -> Switch {
    let mark_above = match &config.control {
        RateControl::Minimal { .. } => None,
        RateControl::Dctcp(dctcp) => Some(dctcp.mark_above),
    };
    Switch::new(config.queue, mark_above, ports)
}

/// Returns the packets of a lone message.
pub fn train(config: &Pfabric, bytes: Bytes) -> Train {
    Train::new(bytes, config.mss, |payload, _| pfabric_wire(payload), pfabric_ack_wire())
}

/// Returns the wire cost of a lone request.
pub fn wire_cost(config: &Pfabric, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    WireCost::of_messages(operation, bytes, read_request, |bytes| train(config, bytes))
}

impl Host {
    /// Returns the number of flows that are not fully acknowledged.
    pub fn open_flows(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    fn submit(&mut self, message: &Message) {
        let sequence = self.outboxes[message.target.index()].next_sequence();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as u32 - 1
        });
        self.flows[slot as usize].begin(message, sequence, self.made, &self.config);
        self.made += 1;
        self.outboxes[message.target.index()].open(slot);
        self.list(slot);
    }

    /// Lists the flow in `slot` under its remaining bytes, if it can send.
    fn list(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let remaining = flow.remaining();
        if flow.can_send() && flow.listed != Some(remaining) {
            flow.listed = Some(remaining);
            self.urgent.push(Reverse((remaining, flow.order, slot)));
        }
    }

    /// Returns the listed flow with the least remaining bytes that can send.
    fn most_urgent(&mut self) -> Option<u32> {
        while let Some(Reverse((remaining, order, slot))) = self.urgent.peek().copied() {
            let flow = &mut self.flows[slot as usize];
            if flow.order == order && flow.listed == Some(remaining) {
                if flow.can_send() {
                    return Some(slot);
                }
                flow.listed = None;
            }
            self.urgent.pop();
        }
        None
    }

    /// Removes the most urgent flow, in `slot`, from the list if it can no longer send.
    fn delist_if_unable(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if !flow.can_send() {
            flow.listed = None;
            self.urgent.pop();
        }
    }

    fn on_data(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        let inbox = &mut self.inboxes[packet.source.index()];
        if packet.kind == PacketKind::Data && matches!(inbox.take(packet), Arrived::Complete(_)) {
            out.push(HostOut::Deliver { message: packet.message });
        }
        // The packet's own bytes or, as in TCP, all contiguous bytes.
        let (offset, value, marked) = match self.config.control {
            RateControl::Minimal { .. } => (packet.offset, u64::from(packet.payload), false),
            RateControl::Dctcp(_) => (inbox.arrived_in_order(packet), 0, packet.marked),
        };
        self.acknowledgements.push_back(Packet {
            message: packet.message,
            sequence: packet.sequence,
            offset,
            value,
            marked,
            ..Packet::new(PacketKind::Acknowledgement, self.node, packet.source, pfabric_ack_wire())
        });
    }

    fn on_acknowledgement(&mut self, now: Time, packet: &Packet) {
        let outbox = &mut self.outboxes[packet.source.index()];
        let Some(slot) = outbox.slot_of(packet.sequence) else { return };
        let flow = &mut self.flows[slot as usize];
        flow.acknowledge(now, packet, &self.config);
        if flow.remaining() == 0 {
            outbox.close(packet.sequence);
            flow.listed = None;
            self.timers.cancel(slot);
            self.free.push(slot);
            return;
        }
        match flow.deadline() {
            Some(deadline) => self.timers.set(slot, deadline),
            None => self.timers.cancel(slot),
        }
        self.list(slot);
    }

    fn send_from(&mut self, now: Time, slot: u32) -> Packet {
        let flow = &mut self.flows[slot as usize];
        let send = flow.next_send(now, &self.config);
        if self.timers.deadline(slot).is_none()
            && let Some(deadline) = flow.deadline()
        {
            self.timers.set(slot, deadline);
        }
        let (kind, offset, payload, again) = match send {
            Send::Data { offset, payload, again } => (PacketKind::Data, offset, payload, again),
            Send::Probe => (PacketKind::Request, 0, 0, false),
        };
        Packet {
            message: flow.message.id,
            sequence: flow.sequence,
            offset,
            payload,
            again,
            priority: flow.remaining(),
            value: flow.message.bytes.count(),
            ..Packet::new(kind, self.node, flow.message.target, pfabric_wire(payload))
        }
    }
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit(message) => self.submit(&message),
            HostIn::Receive(packet) => match packet.kind {
                PacketKind::Data | PacketKind::Request => self.on_data(&packet, out),
                PacketKind::Acknowledgement => self.on_acknowledgement(now, &packet),
                _ => {}
            },
            HostIn::Announced(_) => {}
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.timers.next()
    }

    fn on_wakeup(&mut self, now: Time, _out: &mut Vec<HostOut>) {
        while let Some(slot) = self.timers.pop_due(now) {
            self.flows[slot as usize].time_out();
            self.list(slot);
        }
    }
}

impl crate::Host for Host {
    fn may_transmit(&self) -> bool {
        !(self.acknowledgements.is_empty() && self.urgent.is_empty())
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some(acknowledgement) = self.acknowledgements.pop_front() {
            return Some(acknowledgement);
        }
        let slot = self.most_urgent()?;
        let packet = self.send_from(now, slot);
        self.delist_if_unable(slot);
        Some(packet)
    }
}
