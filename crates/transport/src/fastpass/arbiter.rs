//! The arbiter: matches sources and targets slot by slot.

use super::Slots;
use super::entries::{BATCH_MAX, Entries, Entry};
use crate::common::{Ready, ReadyRing, Sparse};
use crate::config::Fastpass;
use crate::{HostIn, HostOut, Packet, PacketKind};
use base::{NodeId, Program, Rate, Span, Time};

/// The slots ahead in which one host already sends, or already receives.
#[derive(Clone, Copy, Debug, Default)]
struct Calendar {
    /// The slot of the lowest bit.
    first: u64,
    taken: u64,
}

impl Calendar {
    /// The taken slots, `first` being the lowest bit from now on.
    fn from(&mut self, first: u64) -> u64 {
        let passed = first - self.first;
        self.taken = if passed < 64 { self.taken >> passed } else { 0 };
        self.first = first;
        self.taken
    }
}

/// What one source wants.
#[derive(Clone, Debug)]
struct Demands {
    /// Slots not allocated, by target.
    slots: Sparse<u64>,
    /// Targets with some.
    targets: Vec<NodeId>,
    total: u64,
    sends: Calendar,
}

/// Plans the slots of all endpoints. Its computing takes no time; its link does.
#[derive(Clone, Debug)]
pub struct Arbiter {
    node: NodeId,
    slots: Slots,
    /// From the moment an allocation is sent to the moment its receiver can act on it.
    lead: Span,
    batch: u32,
    /// How many slots ahead it plans.
    horizon: u32,
    sources: Vec<Demands>,
    receives: Vec<Calendar>,
    /// Sources that may get slots, the least recently allocated first.
    turn: ReadyRing,
    /// Sources that get none before the next slot comes into sight.
    parked: Vec<NodeId>,
    /// The first slot that can still be allocated.
    first: u64,
}

impl Arbiter {
    /// The arbiter of `nodes` endpoints; it is node `nodes`. `config.batch` is at most [`BATCH_MAX`].
    pub fn new(config: Fastpass, nodes: u32, rate: Rate, lead: Span) -> Arbiter {
        assert!((1..=BATCH_MAX).contains(&config.batch), "a Fastpass batch is 1 to {BATCH_MAX} entries");
        let count = nodes as usize;
        let demands = Demands { slots: Sparse::default(), targets: Vec::new(), total: 0, sends: Calendar::default() };
        Arbiter {
            node: NodeId(nodes),
            slots: Slots::new(&config, rate),
            lead,
            batch: config.batch,
            horizon: 2 * config.batch,
            sources: vec![demands; count],
            receives: vec![Calendar::default(); count],
            turn: ReadyRing::default(),
            parked: Vec::new(),
            first: 0,
        }
    }
    /// Slots asked for and not allocated.
    pub fn backlog(&self) -> u64 {
        self.sources.iter().map(|demands| demands.total).sum()
    }

    fn take_demands(&mut self, packet: &Packet) {
        let demands = &mut self.sources[packet.source.index()];
        for Entry { peer, number } in Entries::of(packet) {
            let slots = &mut demands.slots[peer.index()];
            if *slots == 0 {
                demands.targets.push(peer);
            }
            *slots += u64::from(number);
            demands.total += u64::from(number);
        }
        self.turn.add(packet.source);
    }
    /// Lets slots pass out of the plan and others come into sight.
    fn advance(&mut self, now: Time) {
        let first = self.slots.at(now + self.lead) + 1;
        if first > self.first {
            self.first = first;
            self.parked.drain(..).for_each(|source| self.turn.add(source));
        }
    }
    /// The slots of `source` that are free to plan.
    fn free_to_send(&mut self, source: NodeId) -> u64 {
        !self.sources[source.index()].sends.from(self.first) & ((1 << self.horizon) - 1)
    }
    /// The target of `source` with the fewest slots left among those free in one of `free`, its place in the list,
    /// and the common slots.
    fn next_target(&mut self, source: NodeId, free: u64) -> Option<(usize, NodeId, u64)> {
        let demands = &self.sources[source.index()];
        let mut best: Option<(u64, usize, NodeId, u64)> = None;
        for (place, target) in demands.targets.iter().enumerate() {
            let left = demands.slots[target.index()];
            if best.is_some_and(|(least, ..)| least <= left) {
                continue;
            }
            let common = free & !self.receives[target.index()].from(self.first);
            if common != 0 {
                best = Some((left, place, *target, common));
            }
        }
        best.map(|(_, place, target, common)| (place, target, common))
    }
    /// Gives `source` the earliest slots it can have, up to a packet full.
    fn allocate(&mut self, source: NodeId) -> Entries {
        let mut entries = Entries::default();
        let mut free = self.free_to_send(source);
        // A packet for each single slot that comes into sight would waste the arbiter's link.
        if u64::from(free.count_ones()) < self.sources[source.index()].total.min(u64::from(self.batch)) {
            return entries;
        }
        while entries.count() < self.batch {
            let Some((place, target, common)) = self.next_target(source, free) else { break };
            let slot = common.trailing_zeros();
            free &= !(1 << slot);
            self.book(source, place, target, slot);
            entries.push(Entry { peer: target, number: (self.first + u64::from(slot)) as u16 });
        }
        entries
    }
    fn book(&mut self, source: NodeId, place: usize, target: NodeId, slot: u32) {
        let demands = &mut self.sources[source.index()];
        demands.sends.taken |= 1 << slot;
        self.receives[target.index()].taken |= 1 << slot;
        demands.total -= 1;
        let left = &mut demands.slots[target.index()];
        *left -= 1;
        if *left == 0 {
            demands.targets.swap_remove(place);
        }
    }
}

impl Program for Arbiter {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, _: &mut Vec<HostOut>) {
        self.advance(now);
        if let HostIn::Receive(packet) = input
            && packet.kind == PacketKind::Request
        {
            self.take_demands(&packet);
        }
    }
    /// When the next slot comes into sight, if somebody waits for that.
    fn next_wakeup(&self) -> Option<Time> {
        (!self.parked.is_empty()).then(|| self.slots.start(self.first) - self.lead)
    }
    fn on_wakeup(&mut self, now: Time, _: &mut Vec<HostOut>) {
        self.advance(now);
    }
}

impl crate::Host for Arbiter {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        while let Some(source) = self.turn.front() {
            let entries = self.allocate(source);
            let is_done = self.sources[source.index()].total == 0;
            if entries.count() > 0 {
                self.turn.turn(if is_done { Ready::Done } else { Ready::Again });
                return Some(entries.into_packet(PacketKind::Grant, self.node, source));
            }
            self.turn.turn(Ready::Done);
            if !is_done {
                self.parked.push(source);
            }
        }
        None
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
        let config = Fastpass { slot_payload: base::Bytes::new(1460), batch };
        Arbiter::new(config, NODES, Rate::gbps(100), LEAD)
    }
    fn demand(arbiter: &mut Arbiter, at: Time, source: u32, wanted: &[(u32, u16)]) {
        let mut entries = Entries::default();
        wanted.iter().for_each(|(peer, number)| entries.push(Entry { peer: NodeId(*peer), number: *number }));
        let packet = entries.into_packet(PacketKind::Request, NodeId(source), NodeId(NODES));
        arbiter.on(at, HostIn::Receive(packet), &mut Vec::new());
    }
    /// `(slot, source, target)` of the next allocation packet at `at`.
    fn next(arbiter: &mut Arbiter, at: Time) -> Option<Vec<(u16, u32, u32)>> {
        let packet = arbiter.poll_transmit(at)?;
        Some(Entries::of(&packet).map(|entry| (entry.number, packet.target.0, entry.peer.0)).collect())
    }

    #[test]
    fn the_first_slot_is_the_first_that_the_answer_can_reach() {
        let mut arbiter = arbiter(8);
        let slots = arbiter.slots;
        let edge = slots.start(20) - LEAD;
        demand(&mut arbiter, edge - Span::ps(1), 0, &[(1, 1)]);
        assert_eq!(next(&mut arbiter, edge - Span::ps(1)), Some(vec![(20, 0, 1)]));
        demand(&mut arbiter, edge, 2, &[(3, 1)]);
        assert_eq!(next(&mut arbiter, edge), Some(vec![(21, 2, 3)]));
    }

    #[test]
    fn sources_take_turns_and_each_serves_its_shortest_demand_first() {
        let mut arbiter = arbiter(2);
        demand(&mut arbiter, Time::ZERO, 0, &[(2, 4), (3, 1)]);
        demand(&mut arbiter, Time::ZERO, 1, &[(4, 1)]);
        let slot = arbiter.first as u16;
        assert_eq!(next(&mut arbiter, Time::ZERO), Some(vec![(slot, 0, 3), (slot + 1, 0, 2)]));
        assert_eq!(next(&mut arbiter, Time::ZERO), Some(vec![(slot, 1, 4)]));
        assert_eq!(next(&mut arbiter, Time::ZERO), Some(vec![(slot + 2, 0, 2), (slot + 3, 0, 2)]));
        // Four slots ahead are planned: the last one has to wait for the next to come into sight.
        assert_eq!(next(&mut arbiter, Time::ZERO), None);
        let wake = arbiter.next_wakeup().expect("somebody waits");
        assert_eq!(wake, arbiter.slots.start(u64::from(slot)) - LEAD);
        assert_eq!(next(&mut arbiter, wake), Some(vec![(slot + 4, 0, 2)]));
        assert_eq!(arbiter.backlog(), 0);
    }

    proptest! {
        #[test]
        fn every_slot_is_a_matching_and_every_demand_is_met_exactly(
            batch in 1u32..=8,
            demands in proptest::collection::vec((0u32..NODES, 1u32..NODES, 1u16..20, 0u64..400_000), 1..40),
        ) {
            let mut arbiter = arbiter(batch);
            let in_time = |(source, step, count, at): &(u32, u32, u16, u64)| (*at, *source, (source + step) % NODES, *count);
            let mut due: Vec<_> = demands.iter().map(in_time).collect();
            due.sort_unstable();
            due.reverse();
            let mut left: BTreeMap<(u32, u32), i64> = BTreeMap::new();
            let (mut senders, mut receivers, mut now) = (BTreeSet::new(), BTreeSet::new(), Time::ZERO);
            while !due.is_empty() || arbiter.backlog() > 0 {
                while due.last().is_some_and(|(at, ..)| Time::ps(*at) <= now) {
                    let (_, source, target, count) = due.pop().expect("looked at");
                    demand(&mut arbiter, now, source, &[(target, count)]);
                    *left.entry((source, target)).or_default() += i64::from(count);
                }
                for (slot, source, target) in next(&mut arbiter, now).unwrap_or_default() {
                    let is_matching = senders.insert((slot, source)) && receivers.insert((slot, target));
                    prop_assert!(is_matching, "slot {slot} twice");
                    prop_assert!(arbiter.slots.start(u64::from(slot)) > now + LEAD);
                    *left.get_mut(&(source, target)).expect("it was asked for") -= 1;
                }
                now += Span::ns(7);
            }
            prop_assert!(left.values().all(|slots| *slots == 0));
        }
    }
}
