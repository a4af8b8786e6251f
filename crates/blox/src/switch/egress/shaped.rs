//! A token bucket a flow; tokens are bits on the wire.

use super::Queued;
use crate::TokenBucket;
use base::{Bytes, Rate, Time};
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
    bucket: TokenBucket,
}

impl Shaped {
    pub fn new(rate: Rate, burst: Bytes, flows: u32) -> Shaped {
        let flow = Flow { packets: VecDeque::new(), bucket: TokenBucket::new(rate.as_bps(), burst.bits()) };
        Shaped { flows: vec![flow; flows as usize], waiting: Vec::new(), arrivals: 0 }
    }

    pub fn push(&mut self, queued: Queued) {
        let flow = &mut self.flows[queued.flow as usize];
        if flow.packets.is_empty() {
            self.waiting.push(queued.flow);
        }
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

    fn arrival(&self, place: usize) -> u64 {
        self.flows[self.waiting[place] as usize].packets.front().map_or(u64::MAX, |(arrival, _)| *arrival)
    }

    fn take(&mut self, place: usize) -> Option<Queued> {
        let flow = &mut self.flows[self.waiting[place] as usize];
        let (_, queued) = flow.packets.pop_front()?;
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
