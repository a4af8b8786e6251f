//! A rig by itself: requests in, ends out, without workload and records. For closed forms that are
//! measured, and for tests.

use super::{PacketEvent, PacketRig, Unloaded};
use crate::drive::{Context, Ended, Event, Rig, Ticket};
use base::{Bytes, NodeId, Operation, Request, RequestId, Span, Time};
use kernel::EventQueue;
use std::cell::RefCell;
use std::collections::BTreeMap;
use transport::cost::WireCost;
use transport::{Host, Switch};

/// Wire bytes that both directions of one node's link have carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBytes {
    /// Node to switch.
    pub up: u64,
    /// Switch to node.
    pub down: u64,
}

/// Runs a rig. Tickets are the numbers of the requests in the order in which they were given.
pub struct Bench<H: Host, S: Switch> {
    /// The rig, to look at between steps.
    pub rig: PacketRig<H, S>,
    queue: EventQueue<Event<PacketEvent>>,
    requests: Vec<Request>,
    /// Everything that has ended, in that order.
    pub ended: Vec<Ended>,
}

impl<H: Host, S: Switch> Bench<H, S> {
    /// Nothing under way.
    pub fn new(rig: PacketRig<H, S>) -> Self {
        Bench { rig, queue: EventQueue::new(), requests: Vec::new(), ended: Vec::new() }
    }
    /// Plans a request for `at`, not before [`now`](Self::now).
    pub fn issue(&mut self, at: Time, operation: Operation, source: NodeId, target: NodeId, bytes: Bytes) -> Ticket {
        let number = self.requests.len() as u32;
        self.requests.push(Request { id: RequestId(u64::from(number)), operation, source, target, address: 0, bytes });
        self.queue.push(at, Event::Arrival(number));
        Ticket(number)
    }
    /// The time of the last step.
    pub fn now(&self) -> Time {
        self.queue.now()
    }
    /// Handles the next event; `false` when there is none.
    pub fn step(&mut self) -> bool {
        let Some((now, event)) = self.queue.pop() else { return false };
        let (queue, ended) = (&mut self.queue, &mut self.ended);
        let mut context = Context { queue, ended, now, keeps_spans: false, least_kept: Span::ZERO };
        match event {
            Event::Arrival(number) => {
                self.rig.issue(Ticket(number), &self.requests[number as usize], now, &mut context);
            }
            Event::Rig(event) => self.rig.on(event, &mut context),
        }
        true
    }
    /// Handles every event; returns how many there were.
    pub fn run(&mut self) -> u64 {
        let mut events = 0;
        while self.step() {
            events += 1;
        }
        events
    }
    /// Handles every event up to the first one after `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.now() <= until && self.step() {}
    }
    /// The end of one request, if it has ended.
    pub fn end_of(&self, ticket: Ticket) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.ticket == ticket)
    }
}

/// One request from node 0 to node 1 of an idle network, and the rig afterwards, at rest.
pub fn lone<H: Host, S: Switch>(rig: PacketRig<H, S>, operation: Operation, bytes: Bytes) -> (Ended, PacketRig<H, S>) {
    let mut bench = Bench::new(rig);
    bench.issue(Time::ZERO, operation, NodeId(0), NodeId(1), bytes);
    bench.run();
    assert_eq!(bench.ended.len(), 1, "a lone request must end exactly once");
    let ended = bench.ended.remove(0);
    (ended, bench.rig)
}

/// The end-to-end time of a lone request, simulated in a fresh rig once for each operation and size
/// and remembered: for designs without a closed form.
pub fn unloaded_by_simulation<H, S>(make: impl Fn() -> PacketRig<H, S> + Send + 'static) -> Unloaded
where
    H: Host + 'static,
    S: Switch + 'static,
{
    let known = RefCell::new(BTreeMap::new());
    Box::new(move |operation, bytes| {
        let simulate = || lone(make(), operation, bytes).0.end.saturating_since(Time::ZERO);
        *known.borrow_mut().entry((operation, bytes)).or_insert_with(simulate) as Span
    })
}

/// What a lone request puts on the wires, counted in a fresh rig.
pub fn wire_cost_by_simulation<H: Host, S: Switch>(
    rig: PacketRig<H, S>,
    operation: Operation,
    bytes: Bytes,
) -> WireCost {
    let (_, rig) = lone(rig, operation, bytes);
    let (requester, target) = (rig.link_bytes(NodeId(0)), rig.link_bytes(NodeId(1)));
    WireCost {
        requester_up: requester.up,
        requester_down: requester.down,
        target_up: target.up,
        target_down: target.down,
    }
}
