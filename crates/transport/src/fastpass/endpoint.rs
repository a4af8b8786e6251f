//! A compute or memory node under Fastpass.

use super::entries::{BATCH_MAX, Entries, Entry};
use super::{Slots, train};
use crate::common::{Arrived, Inbox, Ready, ReadyRing, Sparse};
use crate::config::Fastpass;
use crate::framing::fastpass_wire;
use crate::outgoing::Outgoing;
use crate::{HostIn, HostOut, Message, Packet, PacketKind};
use base::{NodeId, Program, Rate, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What goes to one target.
#[derive(Clone, Debug, Default)]
struct Backlog {
    messages: Outgoing,
    /// Wire bytes of what is not sent.
    wire: u64,
    /// Slots asked of the arbiter that have not passed.
    asked: u64,
}

/// The slot that is now, if it is ours.
#[derive(Clone, Copy, Debug)]
struct Current {
    slot: u64,
    target: NodeId,
    /// Wire bytes that may still be sent in it.
    room: u32,
}

/// Asks for slots, and sends in those that it gets.
#[derive(Clone, Debug)]
pub struct Endpoint {
    node: NodeId,
    arbiter: NodeId,
    config: Fastpass,
    slots: Slots,
    targets: Sparse<Backlog>,
    /// Targets for which more slots are needed than were asked.
    wanting: ReadyRing,
    /// Slots to come that are ours, and their targets.
    allocated: BinaryHeap<Reverse<(u64, NodeId)>>,
    current: Option<Current>,
    missed: u64,
    inboxes: Sparse<Inbox>,
    /// The latest time that the endpoint has been told.
    now: Time,
}

impl Endpoint {
    /// Endpoint `node` of `nodes`, whose arbiter is node `nodes`.
    pub fn new(config: Fastpass, node: NodeId, nodes: u32, rate: Rate) -> Endpoint {
        Endpoint {
            node,
            arbiter: NodeId(nodes),
            config,
            slots: Slots::new(&config, rate),
            targets: Sparse::default(),
            wanting: ReadyRing::default(),
            allocated: BinaryHeap::new(),
            current: None,
            missed: 0,
            inboxes: Sparse::default(),
            now: Time::ZERO,
        }
    }
    /// Slots that were over before this endpoint knew that they were its own.
    pub fn missed_slots(&self) -> u64 {
        self.missed
    }

    fn submit(&mut self, message: &Message) {
        let backlog = &mut self.targets[message.target.index()];
        backlog.messages.push(message);
        backlog.wire += train(&self.config, message.bytes).data_bytes();
        self.note_want(message.target);
    }
    /// Slots that `target` needs beyond those asked for. In-order packing may need more: that shows when a slot is
    /// over.
    fn want(&self, target: NodeId) -> u64 {
        let backlog = &self.targets[target.index()];
        backlog.wire.div_ceil(u64::from(self.slots.wire)).saturating_sub(backlog.asked)
    }
    fn note_want(&mut self, target: NodeId) {
        if self.want(target) > 0 {
            self.wanting.add(target);
        }
    }
    fn take_allocations(&mut self, packet: &Packet) {
        let present = self.slots.at(self.now);
        for Entry { peer, number } in Entries::of(packet) {
            // The arbiter plans a few slots ahead, so 16 bits tell which one is meant.
            let ahead = number.wrapping_sub(present as u16) as i16;
            self.allocated.push(Reverse((present.saturating_add_signed(i64::from(ahead)), peer)));
        }
    }
    fn receive(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        if packet.kind == PacketKind::Grant {
            self.take_allocations(packet);
        } else if let Arrived::Complete(_) = self.inboxes[packet.source.index()].take(packet) {
            out.push(HostOut::Deliver { message: packet.message });
        }
    }

    /// Forgets slots that are over and takes up the one that is now.
    fn advance(&mut self, now: Time) {
        self.now = now;
        let present = self.slots.at(now);
        if self.current.is_some_and(|current| current.slot < present) {
            self.close();
        }
        while let Some(Reverse((slot, target))) = self.allocated.peek().copied() {
            if slot > present || self.current.is_some() {
                return;
            }
            self.allocated.pop();
            self.current = Some(Current { slot, target, room: self.slots.wire });
            if slot < present {
                self.missed += 1;
                self.close();
            }
        }
    }
    /// Ends the slot that is now: what did not fit needs another.
    fn close(&mut self) {
        let Some(current) = self.current.take() else { return };
        let backlog = &mut self.targets[current.target.index()];
        backlog.asked = backlog.asked.saturating_sub(1);
        self.note_want(current.target);
    }

    fn demand(&mut self) -> Option<Packet> {
        let mut entries = Entries::default();
        while entries.count() < self.config.batch.min(BATCH_MAX) {
            let Some(peer) = self.wanting.front() else { break };
            let number = self.want(peer).min(u64::from(u16::MAX));
            if number > 0 {
                self.targets[peer.index()].asked += number;
                entries.push(Entry { peer, number: number as u16 });
            }
            self.wanting.turn(if self.want(peer) > 0 { Ready::Again } else { Ready::Done });
        }
        (entries.count() > 0).then(|| entries.into_packet(PacketKind::Request, self.node, self.arbiter))
    }
    /// The next packet to the target of the slot that is now, if it still fits.
    fn data(&mut self, now: Time) -> Option<Packet> {
        let current = self.current.as_mut()?;
        let backlog = &mut self.targets[current.target.index()];
        let wire = fastpass_wire(backlog.messages.peek(self.config.slot_payload)?.payload);
        if wire > current.room || !self.slots.holds(current.slot, now, wire) {
            self.close();
            return None;
        }
        current.room -= wire;
        backlog.wire -= u64::from(wire);
        let piece = backlog.messages.take(self.config.slot_payload)?;
        Some(piece.packet(self.node, current.target, wire))
    }
}

impl Program for Endpoint {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        self.advance(now);
        match input {
            HostIn::Submit(message) => self.submit(&message),
            HostIn::Receive(packet) => self.receive(&packet, out),
            HostIn::Announced(_) => {}
        }
    }
    /// The start of the next slot of ours.
    fn next_wakeup(&self) -> Option<Time> {
        let Reverse((slot, _)) = self.allocated.peek()?;
        Some(self.slots.start(*slot)).filter(|start| *start > self.now)
    }
    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        self.advance(now);
    }
}

impl crate::Host for Endpoint {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        self.data(now).or_else(|| self.demand())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host as _;
    use base::{Bytes, Span};

    const ARBITER: NodeId = NodeId(4);

    fn endpoint() -> Endpoint {
        Endpoint::new(Fastpass { slot_payload: Bytes::new(1460), batch: 2 }, NodeId(0), 4, Rate::gbps(100))
    }
    fn submit(endpoint: &mut Endpoint, at: Time, target: u32, bytes: u64) {
        let (source, target) = (NodeId(0), NodeId(target));
        let message =
            Message { id: 0, source, target, bytes: Bytes::new(bytes), is_answer: false, expects_answer: false };
        endpoint.on(at, HostIn::Submit(message), &mut Vec::new());
    }
    fn allocate(endpoint: &mut Endpoint, at: Time, slot: u64, target: u32) {
        let mut entries = Entries::default();
        entries.push(Entry { peer: NodeId(target), number: slot as u16 });
        let packet = entries.into_packet(PacketKind::Grant, ARBITER, NodeId(0));
        endpoint.on(at, HostIn::Receive(packet), &mut Vec::new());
    }
    /// The demands of the next packet at `at`, as `(target, slots)`; empty if it is not one.
    fn demands(endpoint: &mut Endpoint, at: Time) -> Vec<(u32, u16)> {
        let packet = endpoint.poll_transmit(at).filter(|packet| packet.kind == PacketKind::Request);
        packet.iter().flat_map(Entries::of).map(|entry| (entry.peer.0, entry.number)).collect()
    }

    #[test]
    fn waiting_demands_share_a_packet_up_to_the_batch() {
        let mut endpoint = endpoint();
        for (target, bytes) in [(1, 64), (2, 1461), (3, 14_600)] {
            submit(&mut endpoint, Time::ZERO, target, bytes);
        }
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 1), (2, 2)]);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(3, 10)]);
        assert_eq!(endpoint.poll_transmit(Time::ZERO), None);
    }

    #[test]
    fn a_demand_of_more_than_16_bits_goes_in_parts() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 1460 * 70_000);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 65_535), (1, 4_465)]);
    }

    #[test]
    fn data_leaves_when_its_slot_begins_also_where_slot_numbers_wrap() {
        let mut endpoint = endpoint();
        let slot = 3 << 16;
        let start = endpoint.slots.start(slot);
        let before = start - Span::us(1);
        submit(&mut endpoint, before, 1, 1460);
        demands(&mut endpoint, before);
        allocate(&mut endpoint, before, slot, 1);
        assert_eq!(endpoint.next_wakeup(), Some(start));
        assert_eq!(endpoint.poll_transmit(start - Span::ps(1)), None);
        assert_eq!(endpoint.poll_transmit(start).map(|packet| packet.payload), Some(1460));
    }

    #[test]
    fn a_packet_that_no_longer_fits_into_its_slot_asks_for_another() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 1460);
        demands(&mut endpoint, Time::ZERO);
        allocate(&mut endpoint, Time::ZERO, 5, 1);
        let slack = endpoint.slots.span - Rate::gbps(100).span_of(Bytes::new(1538));
        let late = endpoint.slots.start(5) + slack + Span::ps(1);
        assert_eq!(demands(&mut endpoint, late), [(1, 1)]);
        assert_eq!(endpoint.missed_slots(), 0);
    }

    #[test]
    fn an_allocation_that_comes_after_its_slot_is_counted_and_asked_for_again() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 64);
        demands(&mut endpoint, Time::ZERO);
        let now = endpoint.slots.start(9);
        allocate(&mut endpoint, now, 5, 1);
        assert_eq!(demands(&mut endpoint, now), [(1, 1)]);
        assert_eq!(endpoint.missed_slots(), 1);
    }
}
