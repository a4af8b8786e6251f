//! The arbiter: matches sources and targets slot by slot.

use super::control::{Control, DEMANDS_MAX, SLOTS_MAX, TARGETS_MAX};
use super::{BATCH_MAX, Slots};
use crate::common::{Ready, ReadyRing, Sparse};
use crate::config::Fastpass;
use crate::{HostIn, HostOut, Packet, PacketKind};
use base::{NodeId, Program, Rate, Span, Time};

/// The future slots in which one host already sends, or already receives.
#[derive(Clone, Copy, Debug, Default)]
struct Calendar {
    /// The slot of the lowest bit.
    first: u64,
    taken: u64,
}

impl Calendar {
    /// Advances the lowest bit to slot `first`, and returns the taken slots.
    fn from(&mut self, first: u64) -> u64 {
        let passed = first - self.first;
        self.taken = if passed < 64 { self.taken >> passed } else { 0 };
        self.first = first;
        self.taken
    }
}

/// Total slots demanded and allocated for one source and one target.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    demanded: u64,
    allocated: u64,
}

impl Totals {
    fn left(self) -> u64 {
        self.demanded - self.allocated
    }
}

/// The demands of one source.
#[derive(Clone, Debug, Default)]
struct Demands {
    totals: Sparse<Totals>,
    /// Targets with demanded slots that are not allocated.
    targets: Vec<NodeId>,
    /// Total of those slots.
    left: u64,
    sends: Calendar,
    /// Targets whose demand was repeated: the source is told its allocated total.
    told_again: Vec<NodeId>,
    /// Number of packets sent to it.
    sequence: u64,
}

/// Plans the slots of all endpoints. Its computation takes no time; its link does.
#[derive(Clone, Debug)]
pub struct Arbiter {
    node: NodeId,
    slots: Slots,
    /// Time from sending an allocation until its receiver can act on it.
    lead: Span,
    batch: u64,
    sources: Vec<Demands>,
    receives: Vec<Calendar>,
    /// Sources that may get slots, the least recently allocated first.
    turn: ReadyRing,
    /// Sources that get no more slots until the next batch is planned.
    parked: ReadyRing,
    /// The first slot that can still be allocated.
    first: u64,
    content: Box<[u8]>,
}

impl Arbiter {
    /// Creates the arbiter of `nodes` endpoints; it is node `nodes`. `config.batch` is at most
    /// [`BATCH_MAX`].
    pub fn new(config: Fastpass, nodes: u32, rate: Rate, lead: Span) -> Arbiter {
        assert!((1..=BATCH_MAX).contains(&config.batch), "a Fastpass batch is 1 to {BATCH_MAX} slots");
        let count = nodes as usize;
        Arbiter {
            node: NodeId(nodes),
            slots: Slots::new(&config, rate),
            lead,
            batch: u64::from(config.batch),
            sources: vec![Demands::default(); count],
            receives: vec![Calendar::default(); count],
            turn: ReadyRing::default(),
            parked: ReadyRing::default(),
            first: 0,
            content: Box::default(),
        }
    }
    /// Returns the number of requested, unallocated slots.
    pub fn backlog(&self) -> u64 {
        self.sources.iter().map(|demands| demands.left).sum()
    }

    fn take_demands(&mut self, source: NodeId) {
        let bytes = std::mem::take(&mut self.content);
        let Some(control) = Control::decode(&bytes, self.first, 0) else { return };
        let demands = &mut self.sources[source.index()];
        for (target, count) in control.counts {
            let totals = &mut demands.totals[target.index()];
            let more = count.wrapping_sub(totals.demanded as u16) as i16;
            let Ok(more @ 1..) = u64::try_from(more) else {
                if !demands.told_again.contains(&target) {
                    demands.told_again.push(target);
                }
                continue;
            };
            if totals.left() == 0 {
                demands.targets.push(target);
            }
            totals.demanded += more;
            demands.left += more;
        }
        self.turn.add(source);
    }
    /// Advances the plan: drops past slots and adds a batch when it comes into range.
    fn advance(&mut self, now: Time) {
        let first = self.slots.at(now + self.lead) + 1;
        if first / self.batch > self.first / self.batch {
            while let Some(source) = self.parked.front() {
                self.parked.turn(Ready::Done);
                self.turn.add(source);
            }
        }
        self.first = self.first.max(first);
    }
    /// Returns the free slots of `source` that may be planned: to the end of the batch after the
    /// one that begins now.
    fn free_to_send(&mut self, source: NodeId) -> u64 {
        let in_sight = (self.first / self.batch + 2) * self.batch - self.first;
        !self.sources[source.index()].sends.from(self.first) & (u64::MAX >> (64 - in_sight))
    }
    /// Returns the target of `source` with the fewest remaining slots among those free in one of
    /// `free`, its place in the list, and the common slots. Considers only targets in `known` once
    /// a packet can name no further ones.
    fn next_target(&mut self, source: NodeId, free: u64, known: &[NodeId]) -> Option<(usize, NodeId, u64)> {
        let demands = &self.sources[source.index()];
        let mut best: Option<(u64, usize, NodeId, u64)> = None;
        for (place, target) in demands.targets.iter().enumerate() {
            let left = demands.totals[target.index()].left();
            if best.is_some_and(|(least, ..)| least <= left) || (known.len() == TARGETS_MAX && !known.contains(target))
            {
                continue;
            }
            let common = free & !self.receives[target.index()].from(self.first);
            if common != 0 {
                best = Some((left, place, *target, common));
            }
        }
        best.map(|(_, place, target, common)| (place, target, common))
    }
    /// Allocates the earliest possible slots to `source`, up to a full packet.
    fn allocate(&mut self, source: NodeId) -> Vec<(u64, NodeId)> {
        let (mut slots, mut targets) = (Vec::new(), Vec::new());
        let mut free = self.free_to_send(source);
        while slots.len() < SLOTS_MAX {
            let Some((place, target, common)) = self.next_target(source, free, &targets) else { break };
            let slot = common.trailing_zeros();
            free &= !(1 << slot);
            self.book(source, place, target, slot);
            slots.push((self.first + u64::from(slot), target));
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        slots.sort_unstable();
        slots
    }
    fn book(&mut self, source: NodeId, place: usize, target: NodeId, slot: u32) {
        let demands = &mut self.sources[source.index()];
        demands.sends.taken |= 1 << slot;
        self.receives[target.index()].taken |= 1 << slot;
        demands.left -= 1;
        let totals = &mut demands.totals[target.index()];
        totals.allocated += 1;
        if totals.left() == 0 {
            demands.targets.swap_remove(place);
        }
    }
    /// Returns the allocated totals of `source` for the targets whose demand it has repeated.
    fn tell_again(&mut self, source: NodeId) -> Vec<(NodeId, u16)> {
        let demands = &mut self.sources[source.index()];
        let count = demands.told_again.len().min(DEMANDS_MAX);
        let told = demands.told_again.drain(..count);
        told.map(|target| (target, demands.totals[target.index()].allocated as u16)).collect()
    }
    /// Returns the next packet to `source`, if there is one.
    fn answer(&mut self, source: NodeId) -> Option<Packet> {
        let slots = self.allocate(source);
        let demands = &mut self.sources[source.index()];
        demands.sequence += 1;
        let sequence = demands.sequence;
        let is_full = slots.len() == SLOTS_MAX || distinct(&slots) == TARGETS_MAX;
        let control = Control { sequence, slots, counts: self.tell_again(source) };
        let demands = &self.sources[source.index()];
        let again = is_full && demands.left > 0 || !demands.told_again.is_empty();
        self.turn.turn(if again { Ready::Again } else { Ready::Done });
        if !again && demands.left > 0 {
            self.parked.add(source);
        }
        if control.is_empty() {
            return None;
        }
        let (packet, bytes) = control.into_packet(self.node, source);
        self.content = bytes;
        Some(packet)
    }
}

fn distinct(slots: &[(u64, NodeId)]) -> usize {
    let mut targets: Vec<NodeId> = slots.iter().map(|(_, target)| *target).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.len()
}

impl Program for Arbiter {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, _: &mut Vec<HostOut>) {
        self.advance(now);
        if let HostIn::Receive(packet) = input
            && packet.kind == PacketKind::Request
        {
            self.take_demands(packet.source);
        }
    }
    /// Returns when the next batch comes into range, if a source waits for it.
    fn next_wakeup(&self) -> Option<Time> {
        let next = (self.first / self.batch + 1) * self.batch;
        (!self.parked.is_empty()).then(|| self.slots.start(next - 1) - self.lead)
    }
    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        self.advance(now);
    }
}

impl crate::Host for Arbiter {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        while let Some(source) = self.turn.front() {
            if let Some(packet) = self.answer(source) {
                return Some(packet);
            }
        }
        None
    }
    fn take_content(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.content)
    }
    fn give_content(&mut self, content: &[u8]) {
        self.content = content.into();
    }
    fn may_transmit(&self) -> bool {
        !self.turn.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host as _;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const NODES: u32 = 6;
    const LEAD: Span = Span::us(1);

    fn arbiter(batch: u32) -> Arbiter {
        let config = Fastpass { slot_payload: base::Bytes::new(1460), batch, timeout: Span::us(200) };
        Arbiter::new(config, NODES, Rate::gbps(100), LEAD)
    }
    /// Sends totals to the arbiter, encoded as on the wire.
    fn demand(arbiter: &mut Arbiter, at: Time, source: u32, totals: &[(u32, u16)]) {
        let counts = totals.iter().map(|(target, count)| (NodeId(*target), *count)).collect();
        let control = Control { counts, ..Control::default() };
        let (packet, bytes) = control.into_packet(NodeId(source), NodeId(NODES));
        arbiter.give_content(&bytes);
        arbiter.on(at, HostIn::Receive(packet), &mut Vec::new());
    }
    /// Returns the next packet at `at`, with its receiver.
    fn said(arbiter: &mut Arbiter, at: Time) -> Option<(u32, Control)> {
        let packet = arbiter.poll_transmit(at)?;
        let control = Control::decode(&arbiter.take_content(), arbiter.first, 0).expect("it was just encoded");
        Some((packet.target.0, control))
    }
    /// Returns `(slot, source, target)` of the next allocation packet at `at`.
    fn next(arbiter: &mut Arbiter, at: Time) -> Option<Vec<(u64, u32, u32)>> {
        let (source, control) = said(arbiter, at)?;
        Some(control.slots.into_iter().map(|(slot, target)| (slot, source, target.0)).collect())
    }

    #[test]
    fn the_first_slot_is_the_first_that_the_answer_can_reach() {
        let mut arbiter = arbiter(16);
        let slots = arbiter.slots;
        let edge = slots.start(20) - LEAD;
        demand(&mut arbiter, edge - Span::ps(1), 0, &[(1, 1)]);
        assert_eq!(next(&mut arbiter, edge - Span::ps(1)), Some(vec![(20, 0, 1)]));
        demand(&mut arbiter, edge, 2, &[(3, 1)]);
        assert_eq!(next(&mut arbiter, edge), Some(vec![(21, 2, 3)]));
    }

    /// LEAD is a little more than 8 slots, so slot 9 is the first. Batches of 4 are planned to the
    /// end of the next one.
    #[test]
    fn sources_take_turns_and_each_serves_its_shortest_demand_first() {
        let mut arbiter = arbiter(4);
        demand(&mut arbiter, Time::ZERO, 0, &[(2, 9), (3, 1)]);
        demand(&mut arbiter, Time::ZERO, 1, &[(4, 1)]);
        assert_eq!(arbiter.first, 9);
        let all = |slots: std::ops::Range<u64>| slots.map(|slot| (slot, 0, 2)).collect::<Vec<_>>();
        let first = [vec![(9, 0, 3)], all(10..16)].concat();
        assert_eq!(next(&mut arbiter, Time::ZERO), Some(first));
        assert_eq!(next(&mut arbiter, Time::ZERO), Some(vec![(9, 1, 4)]));
        // The rest waits until the next batch is planned, and then leaves in one packet.
        assert_eq!(next(&mut arbiter, Time::ZERO), None);
        let wake = arbiter.next_wakeup().expect("somebody waits");
        assert_eq!(wake, arbiter.slots.start(11) - LEAD);
        arbiter.on_wakeup(wake, &mut Vec::new());
        assert_eq!(next(&mut arbiter, wake), Some(all(16..19)));
        assert_eq!((arbiter.backlog(), arbiter.next_wakeup()), (0, None));
    }

    #[test]
    fn a_demand_stated_again_brings_no_slots_but_what_was_allocated() {
        let mut arbiter = arbiter(16);
        demand(&mut arbiter, Time::ZERO, 0, &[(1, 3)]);
        assert_eq!(next(&mut arbiter, Time::ZERO).map(|slots| slots.len()), Some(3));
        demand(&mut arbiter, Time::ZERO, 0, &[(1, 3)]);
        let (_, again) = said(&mut arbiter, Time::ZERO).expect("an answer");
        assert_eq!((again.slots, again.counts, again.sequence), (vec![], vec![(NodeId(1), 3)], 2));
        assert_eq!(arbiter.poll_transmit(Time::ZERO), None);
    }

    proptest! {
        #[test]
        fn every_slot_is_a_matching_and_every_demand_is_met_exactly(
            batch in 1u32..=BATCH_MAX,
            demands in proptest::collection::vec((0u32..NODES, 1u32..NODES, 1u16..20, 0u64..400_000), 1..40),
        ) {
            let mut arbiter = arbiter(batch);
            let in_time = |(source, step, count, at): &(u32, u32, u16, u64)| (*at, *source, (source + step) % NODES, *count);
            let mut due: Vec<_> = demands.iter().map(in_time).collect();
            due.sort_unstable();
            due.reverse();
            let mut left: BTreeMap<(u32, u32), i64> = BTreeMap::new();
            let mut totals: BTreeMap<(u32, u32), u16> = BTreeMap::new();
            let (mut senders, mut receivers, mut now) = (BTreeSet::new(), BTreeSet::new(), Time::ZERO);
            while !due.is_empty() || arbiter.backlog() > 0 {
                while due.last().is_some_and(|(at, ..)| Time::ps(*at) <= now) {
                    let (_, source, target, count) = due.pop().expect("looked at");
                    let total = totals.entry((source, target)).or_default();
                    *total += count;
                    demand(&mut arbiter, now, source, &[(target, *total)]);
                    *left.entry((source, target)).or_default() += i64::from(count);
                }
                for (slot, source, target) in next(&mut arbiter, now).unwrap_or_default() {
                    let is_matching = senders.insert((slot, source)) && receivers.insert((slot, target));
                    prop_assert!(is_matching, "slot {slot} twice");
                    prop_assert!(arbiter.slots.start(slot) > now + LEAD);
                    *left.get_mut(&(source, target)).expect("it was asked for") -= 1;
                }
                now += Span::ns(7);
            }
            prop_assert!(left.values().all(|slots| *slots == 0));
        }
    }
}
