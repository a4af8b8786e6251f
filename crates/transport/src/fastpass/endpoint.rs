//! A compute or memory node under Fastpass.

use super::control::{Control, DEMANDS_MAX};
use super::{Slots, demand_share, train};
use crate::TokenBucket;
use crate::common::{Arrived, Inbox, Ready, ReadyRing, Sparse, Timers};
use crate::config::Fastpass;
use crate::framing::{fastpass_demand_wire, fastpass_wire};
use crate::outgoing::Outgoing;
use crate::{HostIn, HostOut, Message, Packet, PacketKind};
use base::{Bytes, NodeId, Program, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Maximum requested, unallocated slots of one target (public code: `FASTPASS_REQUEST_WINDOW_SIZE`
/// minus one).
const WINDOW: u64 = (1 << 13) - 1;
/// Maximum burst of demand packets (public code: four, `req_bucketlen` over `req_cost`).
const DEMAND_BURST: u64 = 4;
/// Maximum exponent of a demand's back-off. Our choice: it limits repeated demands to a busy
/// arbiter.
const BACKOFF_MAX: u32 = 6;

/// Data for one target.
#[derive(Clone, Debug, Default)]
struct Backlog {
    messages: Outgoing,
    /// Wire bytes of unsent data.
    wire: u64,
    /// Total slots requested from the arbiter.
    asked: u64,
    /// Total slots that the arbiter allocated, as far as known: received and lost ones.
    allocated: u64,
    /// Received slots that have not ended.
    pending: u64,
    /// Consecutive timeouts of the arbiter.
    timeouts: u32,
}

impl Backlog {
    fn unanswered(&self) -> u64 {
        self.asked.saturating_sub(self.allocated)
    }
}

/// An allocated slot that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    slot: u64,
    target: NodeId,
    /// Wire bytes that still fit into it.
    room: u32,
}

/// Requests slots, and sends in the allocated ones.
#[derive(Clone, Debug)]
pub struct Endpoint {
    node: NodeId,
    arbiter: NodeId,
    config: Fastpass,
    slots: Slots,
    targets: Sparse<Backlog>,
    /// Targets that need more slots than requested, or whose demand must be repeated.
    wanting: ReadyRing,
    /// When to repeat the demand for a target.
    timers: Timers,
    /// This endpoint's share of the arbiter's link.
    demands: TokenBucket,
    /// When the share allows the next demand, if one waits for it.
    demand_at: Option<Time>,
    sequence: u64,
    /// The newest packet of the arbiter, and the newest one that reported losses: earlier packets
    /// count as lost.
    newest: u64,
    settled: u64,
    /// Future allocated slots, and their targets.
    allocated: BinaryHeap<Reverse<(u64, NodeId)>>,
    /// Slots that have begun and are not used up. More than one if the link was delayed.
    open: VecDeque<Open>,
    missed: u64,
    inboxes: Sparse<Inbox>,
    content: Box<[u8]>,
    /// The latest time passed to the endpoint.
    now: Time,
}

impl Endpoint {
    /// Returns the payload of the slots that the arbiter has allocated and that are not used up.
    pub fn allocated(&self) -> Bytes {
        let slots = self.allocated.len() + self.open.len();
        Bytes::new(slots as u64 * self.config.slot_payload.count())
    }
    /// Creates endpoint `node` of `nodes`, whose arbiter is node `nodes`.
    pub fn new(config: Fastpass, node: NodeId, nodes: u32, rate: Rate) -> Endpoint {
        let demand = u64::from(fastpass_demand_wire(DEMANDS_MAX as u32));
        let mut demands = TokenBucket::new(Bytes::new(DEMAND_BURST * demand));
        demands.set_rate(Time::ZERO, demand_share(rate, nodes));
        Endpoint {
            node,
            arbiter: NodeId(nodes),
            config,
            slots: Slots::new(&config, rate),
            targets: Sparse::default(),
            wanting: ReadyRing::default(),
            timers: Timers::default(),
            demands,
            demand_at: None,
            sequence: 0,
            newest: 0,
            settled: 0,
            allocated: BinaryHeap::new(),
            open: VecDeque::new(),
            missed: 0,
            inboxes: Sparse::default(),
            content: Box::default(),
            now: Time::ZERO,
        }
    }
    /// Returns the number of slots that had passed before this endpoint received their allocation.
    pub fn missed_slots(&self) -> u64 {
        self.missed
    }

    fn submit(&mut self, message: &Message) {
        let backlog = &mut self.targets[message.target.index()];
        backlog.messages.push(message);
        backlog.wire += train(&self.config, message.bytes).data_bytes();
        self.note_want(message.target);
    }
    /// Returns the number of slots that `target` needs beyond the requested ones, as far as the
    /// window allows. In-order packing may need more, which is detected when a slot has ended.
    fn want(&self, target: NodeId) -> u64 {
        let backlog = &self.targets[target.index()];
        let to_come = backlog.unanswered() + backlog.pending;
        let needed = backlog.wire.div_ceil(u64::from(self.slots.wire)).saturating_sub(to_come);
        needed.min(WINDOW - backlog.unanswered())
    }
    fn note_want(&mut self, target: NodeId) {
        if self.want(target) > 0 {
            self.wanting.add(target);
        }
    }

    /// Handles the content of the arbiter's next packet.
    fn take_control(&mut self) {
        let bytes = std::mem::take(&mut self.content);
        let control = Control::decode(&bytes, self.slots.at(self.now), self.newest);
        let Some(control) = control.filter(|control| control.sequence >= self.settled) else { return };
        self.newest = self.newest.max(control.sequence);
        for (slot, target) in control.slots {
            let backlog = &mut self.targets[target.index()];
            backlog.allocated += 1;
            backlog.pending += 1;
            self.allocated.push(Reverse((slot, target)));
            self.answered(target);
        }
        for (target, count) in control.counts {
            self.settle(target, count, control.sequence);
        }
    }
    /// Compares with the arbiter's total of `count` allocated slots: missing ones are lost, and
    /// requested again.
    fn settle(&mut self, target: NodeId, count: u16, sequence: u64) {
        let backlog = &mut self.targets[target.index()];
        let lost = count.wrapping_sub(backlog.allocated as u16) as i16;
        if let Ok(lost @ 1..) = u64::try_from(lost) {
            backlog.allocated += lost;
            self.settled = self.settled.max(sequence);
            self.answered(target);
        }
    }
    fn answered(&mut self, target: NodeId) {
        let backlog = &mut self.targets[target.index()];
        backlog.timeouts = 0;
        match backlog.unanswered() {
            0 => self.timers.cancel(target.0),
            _ => self.timers.set(target.0, self.now + self.config.timeout),
        }
        self.note_want(target);
    }
    fn receive(&mut self, packet: &Packet, out: &mut Vec<HostOut>) {
        if packet.kind != PacketKind::Data {
            self.take_control();
        } else if let Arrived::Complete(_) = self.inboxes[packet.source.index()].take(packet) {
            out.push(HostOut::Deliver { message: packet.message });
        }
    }

    /// Starts the slots that have begun, and ends those that can no longer send.
    fn advance(&mut self, now: Time) {
        self.now = now;
        let present = self.slots.at(now);
        while let Some(Reverse((slot, target))) = self.allocated.peek().copied().filter(|next| next.0.0 <= present) {
            self.allocated.pop();
            if slot < present {
                self.missed += 1;
                self.end_slot(target);
            } else {
                self.open.push_back(Open { slot, target, room: self.slots.wire });
            }
        }
        while let Some(open) = self.open.front().copied().filter(|open| self.is_over(open, present)) {
            self.open.pop_front();
            self.end_slot(open.target);
        }
    }
    /// Returns whether an open slot is used up, or past without data. Data that control has delayed
    /// are still sent.
    fn is_over(&self, open: &Open, present: u64) -> bool {
        match self.next_wire(open.target) {
            Some(wire) => wire > open.room,
            None => open.slot < present,
        }
    }
    fn next_wire(&self, target: NodeId) -> Option<u32> {
        let piece = self.targets[target.index()].messages.peek(self.config.slot_payload)?;
        Some(fastpass_wire(piece.payload))
    }
    /// Ends a slot; data that did not fit need another one.
    fn end_slot(&mut self, target: NodeId) {
        let backlog = &mut self.targets[target.index()];
        backlog.pending = backlog.pending.saturating_sub(1);
        self.note_want(target);
    }

    /// Sends waiting demands to the arbiter, if this endpoint's share of its link allows.
    fn demand(&mut self, now: Time) -> Option<Packet> {
        let full = Bytes::new(u64::from(fastpass_demand_wire(DEMANDS_MAX as u32)));
        self.demand_at = None;
        if self.wanting.is_empty() {
            return None;
        }
        self.demand_at = self.demands.ready_at(now, full).filter(|at| *at > now);
        if self.demand_at.is_some() {
            return None;
        }
        let control = Control { counts: self.take_demands(now), ..Control::default() };
        if control.is_empty() {
            return None;
        }
        self.demands.take(now, full);
        self.sequence += 1;
        let (packet, bytes) = Control { sequence: self.sequence, ..control }.into_packet(self.node, self.arbiter);
        self.content = bytes;
        Some(packet)
    }
    fn take_demands(&mut self, now: Time) -> Vec<(NodeId, u16)> {
        let mut counts = Vec::new();
        while let Some(target) = self.wanting.front().filter(|_| counts.len() < DEMANDS_MAX) {
            self.wanting.turn(Ready::Done);
            let want = self.want(target);
            let backlog = &mut self.targets[target.index()];
            backlog.asked = backlog.asked.max(backlog.allocated) + want;
            if backlog.unanswered() > 0 {
                counts.push((target, backlog.asked as u16));
                let timeout = self.config.timeout * (1 << backlog.timeouts.min(BACKOFF_MAX));
                self.timers.set(target.0, now + timeout);
            }
        }
        counts
    }
    /// Returns the next packet of a slot that has begun.
    fn data(&mut self) -> Option<Packet> {
        let wire = self.next_wire(self.open.front()?.target)?;
        let open = self.open.front_mut()?;
        open.room = open.room.checked_sub(wire)?;
        let backlog = &mut self.targets[open.target.index()];
        backlog.wire -= u64::from(wire);
        let piece = backlog.messages.take(self.config.slot_payload)?;
        Some(piece.packet(self.node, open.target, wire))
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
    /// Returns the start of the next allocated slot, the time of a delayed demand, or that of a
    /// repeated one.
    fn next_wakeup(&self) -> Option<Time> {
        let slot = self.allocated.peek().map(|Reverse((slot, _))| self.slots.start(*slot));
        // A demand that is already due waits for the link.
        let demand = self.demand_at.filter(|at| *at > self.now);
        [slot, demand, self.timers.next()].into_iter().flatten().min().map(|at| at.max(self.now))
    }
    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        self.advance(now);
        while let Some(target) = self.timers.pop_due(now) {
            self.targets[target as usize].timeouts += 1;
            self.wanting.add(NodeId(target));
        }
    }
}

impl crate::Host for Endpoint {
    /// Control has priority: it is short, and data would leave it no gap.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        self.demand(now).or_else(|| self.data())
    }
    fn take_content(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.content)
    }
    fn give_content(&mut self, content: &[u8]) {
        self.content = content.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host as _;
    use base::Span;

    const ARBITER: NodeId = NodeId(4);

    fn endpoint() -> Endpoint {
        let config = Fastpass { slot_payload: Bytes::new(1460), batch: 2, timeout: Span::us(200) };
        Endpoint::new(config, NodeId(0), 4, Rate::gbps(100))
    }
    fn submit(endpoint: &mut Endpoint, at: Time, target: u32, bytes: u64) {
        let (source, target) = (NodeId(0), NodeId(target));
        let message =
            Message { id: 0, source, target, bytes: Bytes::new(bytes), is_answer: false, expects_answer: false };
        endpoint.on(at, HostIn::Submit(message), &mut Vec::new());
    }
    fn told(endpoint: &mut Endpoint, at: Time, control: Control) {
        let (packet, bytes) = control.into_packet(ARBITER, NodeId(0));
        endpoint.give_content(&bytes);
        endpoint.on(at, HostIn::Receive(packet), &mut Vec::new());
    }
    fn allocate(endpoint: &mut Endpoint, at: Time, slot: u64, target: u32) {
        let sequence = endpoint.newest + 1;
        told(endpoint, at, Control { sequence, slots: vec![(slot, NodeId(target))], counts: Vec::new() });
    }
    /// Returns the demands of the next packet at `at`, as targets and totals; empty if it is not a
    /// demand packet.
    fn demands(endpoint: &mut Endpoint, at: Time) -> Vec<(u32, u16)> {
        let packet = endpoint.poll_transmit(at).filter(|packet| packet.kind == PacketKind::Request);
        let content = packet.map(|_| endpoint.take_content()).unwrap_or_default();
        let control = Control::decode(&content, 0, 0).unwrap_or_default();
        control.counts.into_iter().map(|(target, count)| (target.0, count)).collect()
    }

    #[test]
    fn waiting_demands_share_a_packet_and_are_totals() {
        let mut endpoint = endpoint();
        for (target, bytes) in [(1, 64), (2, 1461), (3, 14_600)] {
            submit(&mut endpoint, Time::ZERO, target, bytes);
        }
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 1), (2, 2), (3, 10)]);
        assert_eq!(endpoint.poll_transmit(Time::ZERO), None);
        submit(&mut endpoint, Time::ZERO, 2, 1460);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(2, 3)]);
    }

    #[test]
    fn no_more_is_asked_for_than_the_window_holds_until_something_came() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 1460 * 9_000);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 8_191)]);
        assert_eq!(demands(&mut endpoint, Time::ZERO), []);
        allocate(&mut endpoint, Time::ZERO, 40, 1);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 8_192)]);
    }

    /// Four packets at once; then one per period in which the arbiter's link carries one of each of
    /// the four endpoints.
    #[test]
    fn an_endpoint_takes_its_share_of_the_arbiters_link_and_no_more() {
        let mut endpoint = endpoint();
        let packet = Rate::gbps(100).span_of(Bytes::new(u64::from(fastpass_demand_wire(10)))) * 4;
        for _ in 0..4 {
            submit(&mut endpoint, Time::ZERO, 1, 1460);
            assert_eq!(demands(&mut endpoint, Time::ZERO).len(), 1);
        }
        submit(&mut endpoint, Time::ZERO, 1, 1460);
        submit(&mut endpoint, Time::ZERO, 2, 1460);
        assert_eq!(demands(&mut endpoint, Time::ZERO), []);
        let due = endpoint.next_wakeup().expect("a demand waits");
        let expected = Time::ZERO + packet;
        assert!(due >= expected && due <= expected + Span::ps(2), "{due:?} against {expected:?}");
        assert_eq!(demands(&mut endpoint, due), [(1, 5), (2, 1)]);
    }

    /// Repeated wake-ups at the same time would stop the clock.
    #[test]
    fn a_demand_whose_time_has_come_waits_for_the_link_without_waking() {
        let mut endpoint = endpoint();
        for target in [1, 2, 3, 1, 2] {
            submit(&mut endpoint, Time::ZERO, target, 1460);
            demands(&mut endpoint, Time::ZERO);
        }
        let due = endpoint.next_wakeup().expect("the fifth demand waits");
        endpoint.on_wakeup(due, &mut Vec::new());
        assert!(endpoint.next_wakeup() > Some(due), "{:?}", endpoint.next_wakeup());
        assert_eq!(demands(&mut endpoint, due), [(2, 2)]);
    }

    #[test]
    fn data_leaves_when_its_slot_begins_also_where_slot_numbers_wrap() {
        let mut endpoint = endpoint();
        let slot = 3 << 20;
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
    fn a_slot_that_control_held_up_is_used_late_and_an_unused_one_ends() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 1460);
        demands(&mut endpoint, Time::ZERO);
        allocate(&mut endpoint, Time::ZERO, 5, 1);
        let late = endpoint.slots.start(6) - Span::ps(1);
        endpoint.on_wakeup(endpoint.slots.start(5), &mut Vec::new());
        assert_eq!(endpoint.poll_transmit(late).map(|packet| packet.payload), Some(1460));
        allocate(&mut endpoint, late, 7, 1);
        endpoint.on_wakeup(endpoint.slots.start(7), &mut Vec::new());
        let after = endpoint.slots.start(8);
        submit(&mut endpoint, after, 1, 1460);
        assert_eq!(demands(&mut endpoint, after), [(1, 3)]);
    }

    #[test]
    fn an_allocation_that_comes_after_its_slot_is_counted_and_asked_for_again() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 64);
        demands(&mut endpoint, Time::ZERO);
        let now = endpoint.slots.start(9);
        allocate(&mut endpoint, now, 5, 1);
        assert_eq!(demands(&mut endpoint, now), [(1, 2)]);
        assert_eq!(endpoint.missed_slots(), 1);
    }

    /// A demand without an answer is repeated with increasing delays; the answer reports the
    /// losses.
    #[test]
    fn a_lost_demand_is_stated_again_and_lost_slots_are_asked_for_again() {
        let mut endpoint = endpoint();
        submit(&mut endpoint, Time::ZERO, 1, 3 * 1460);
        assert_eq!(demands(&mut endpoint, Time::ZERO), [(1, 3)]);
        let again = Time::us(200);
        assert_eq!(endpoint.next_wakeup(), Some(again));
        endpoint.on_wakeup(again, &mut Vec::new());
        assert_eq!(demands(&mut endpoint, again), [(1, 3)]);
        assert_eq!(endpoint.next_wakeup(), Some(again + Span::us(400)));
        // The arbiter has allocated all three, in packets that were lost.
        told(&mut endpoint, again, Control { sequence: 7, slots: Vec::new(), counts: vec![(NodeId(1), 3)] });
        assert_eq!(demands(&mut endpoint, again), [(1, 6)]);
        // One of them arrives late, after it was counted as lost.
        let late = endpoint.slots.at(again) + 9;
        told(&mut endpoint, again, Control { sequence: 6, slots: vec![(late, NodeId(1))], counts: Vec::new() });
        assert_eq!((endpoint.targets[1].allocated, endpoint.targets[1].pending), (3, 0));
    }
}
