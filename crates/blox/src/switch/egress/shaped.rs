//! A token bucket a flow; tokens are bits on the wire. A full port loses the last packet of the
//! longest flow, as under fair queueing: what is beyond a flow's rate waits here, and would fill
//! the buffer for all.

use super::Queued;
use crate::TokenBucket;
use base::{Bytes, Rate, Time};
use std::cmp::Reverse;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(in crate::switch) struct Shaped {
    flows: Vec<Flow>,
    /// Flows with packets, in no order that matters.
    waiting: Vec<u32>,
    /// Counts arrivals, to serve those that may go in their order.
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    packets: VecDeque<(u64, Queued)>,
    bytes: u64,
    bucket: TokenBucket,
}

impl Shaped {
    pub fn new(rate: Rate, burst: Bytes, flows: u32) -> Shaped {
        let flow = Flow { packets: VecDeque::new(), bytes: 0, bucket: TokenBucket::new(rate.as_bps(), burst.bits()) };
        Shaped { flows: vec![flow; flows as usize], waiting: Vec::new(), arrivals: 0 }
    }

    pub fn push(&mut self, queued: Queued) {
        let flow = &mut self.flows[queued.flow as usize];
        if flow.packets.is_empty() {
            self.waiting.push(queued.flow);
        }
        flow.bytes += u64::from(queued.bytes);
        flow.packets.push_back((self.arrivals, queued));
        self.arrivals += 1;
    }

    pub fn pop(&mut self, now: Time) -> Option<Queued> {
        let may_go = |place: &usize| self.flows[self.waiting[*place] as usize].allowed_at(now) <= now;
        let first = (0..self.waiting.len()).filter(may_go).min_by_key(|place| self.arrival(*place))?;
        let queued = self.take(first)?;
        self.flows[queued.flow as usize].bucket.charge(now, bits(&queued));
        Some(queued)
    }

    pub fn next_allowed(&self, now: Time) -> Option<Time> {
        self.waiting.iter().map(|flow| self.flows[*flow as usize].allowed_at(now)).min()
    }

    pub fn drain(&mut self) -> Option<Queued> {
        let first = (0..self.waiting.len()).min_by_key(|place| self.arrival(*place))?;
        self.take(first)
    }

    pub fn evict_for(&mut self, newcomer: &Queued) -> Option<Queued> {
        let bytes = |place: &usize| self.flows[self.waiting[*place] as usize].bytes;
        // Of equals the lowest number: places have no order that matters.
        let longest = (0..self.waiting.len()).max_by_key(|place| (bytes(place), Reverse(self.waiting[*place])))?;
        let own = self.flows[newcomer.flow as usize].bytes + u64::from(newcomer.bytes);
        let index = self.waiting[longest];
        let flow = &mut self.flows[index as usize];
        if index == newcomer.flow || flow.bytes <= own {
            return None;
        }
        let (_, evicted) = flow.packets.pop_back()?;
        flow.bytes -= u64::from(evicted.bytes);
        if flow.packets.is_empty() {
            self.waiting.swap_remove(longest);
        }
        Some(evicted)
    }

    fn arrival(&self, place: usize) -> u64 {
        self.flows[self.waiting[place] as usize].packets.front().map_or(u64::MAX, |(arrival, _)| *arrival)
    }

    fn take(&mut self, place: usize) -> Option<Queued> {
        let flow = &mut self.flows[self.waiting[place] as usize];
        let (_, queued) = flow.packets.pop_front()?;
        flow.bytes -= u64::from(queued.bytes);
        if flow.packets.is_empty() {
            self.waiting.swap_remove(place);
        }
        Some(queued)
    }
}

impl Flow {
    fn allowed_at(&self, now: Time) -> Time {
        self.packets.front().map_or(Time::MAX, |(_, queued)| self.bucket.next_allowed(now, bits(queued)))
    }
}

fn bits(queued: &Queued) -> u64 {
    Bytes::new(u64::from(queued.bytes)).bits()
}
