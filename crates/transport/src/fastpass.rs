//! Fastpass (SIGCOMM'14): an arbiter schedules every packet.
//!
//! Time is divided into slots, the same for all. An endpoint requests slots to a target from the
//! arbiter; the arbiter answers with the allocated slots; the endpoint sends in them. No slot has a
//! source or a target twice, so the switch queues (almost) nothing. The arbiter is a host behind
//! the same switch, and each demand and allocation crosses its one link. That link, not the
//! computing, is its bottleneck (EDM, ASPLOS'25, 4.3, which assumes infinite speed).
//!
//! The paper and its public code have the following, unless marked as ours
//! (`docs/concepts/rivals-fastpass.md` has more):
//! * Demands are counts of slots per target; several packets to one target share a slot if they
//!   fit.
//! * Control packets have the public code's layout: up to 10 demands, or up to 64 slots of up to 15
//!   targets at a byte per slot. An endpoint uses at most its share of the arbiter's link for
//!   demands, four packets at once. Waiting demands share packets (the public code paces likewise,
//!   with a lower limit).
//! * The arbiter plans a batch of 16 slots at a time, and one ahead. It serves sources in turn, the
//!   least recently allocated first, as the paper's fair policy does. Within a source, the target
//!   with the fewest remaining slots comes first, as in its policy for short completion times. Each
//!   takes the earliest slots in which it and its target are both free: greedy, as in the paper.
//!   Allocations leave in the next packet, without delay.
//! * It plans when its link can carry the answer: no allocation waits in the arbiter until its slot
//!   has passed.
//! * A slot has the length of a full data frame and a 64th more (ours), the share of control on a
//!   busy link.
//! * Control has priority over data, at endpoints and in the switch. Queues are unbounded, so none
//!   is lost.
//! * Counts are totals, so lost control packets do no harm. A demand without an answer is repeated
//!   after `timeout`, and the arbiter then reports the slots that it has allocated. The public code
//!   acknowledges every packet instead, at a frame each. There, TCP handles lost data; here no data
//!   are lost.
//! * All hosts share one clock (the paper synchronises them by PTP).

mod arbiter;
mod control;
mod endpoint;

pub use arbiter::Arbiter;
pub(crate) use control::{TYPE_COUNTS, TYPE_SLOTS};
pub use endpoint::Endpoint;

use crate::config::Fastpass;
use crate::cost::{MODIFY_REQUEST, Train, WireCost};
use crate::framing::{fastpass_allocation_wire, fastpass_demand_wire, fastpass_wire};
use crate::{Allowance, HostIn, HostOut, Packet};
use base::{Bytes, NodeId, Operation, Program, Rate, Span, Time};

/// Maximum slots of a batch: two batches are planned, and a packet carries as many slots.
pub const BATCH_MAX: u32 = control::SLOTS_MAX as u32 / 2;
/// A slot is longer than its data by this fraction (its inverse).
const SLACK_PART: u64 = 64;

/// Creates endpoints 0 to `nodes - 1` on links of `rate`, then the arbiter. Its answers take `lead`
/// until an endpoint can act on them.
pub fn hosts(config: &Fastpass, nodes: u32, rate: Rate, lead: Span) -> Vec<Host> {
    let endpoint = |node| Host::Endpoint(Box::new(Endpoint::new(*config, NodeId(node), nodes, rate)));
    let arbiter = Host::Arbiter(Box::new(Arbiter::new(*config, nodes, rate, lead)));
    (0..nodes).map(endpoint).chain([arbiter]).collect()
}

/// Control has priority over data.
pub use crate::common::ClassSwitch as Switch;

/// Creates an empty switch; `ports` includes the arbiter's.
pub fn switch(ports: u32) -> Switch {
    Switch::new(ports)
}

/// Returns the data packets of a lone message of `bytes`, one per slot, without control packets.
pub fn train(config: &Fastpass, bytes: Bytes) -> Train {
    Train::new(bytes, config.slot_payload, |payload, _| fastpass_wire(payload), 0)
}

/// Returns the wire cost of a lone request of `bytes`, whose read request is `read_request` long,
/// for its two hosts. The arbiter's link carries the same control packets in the opposite
/// direction.
pub fn wire_cost(config: &Fastpass, operation: Operation, bytes: Bytes, read_request: Bytes) -> WireCost {
    let data = |bytes| train(config, bytes);
    let mut cost = WireCost::of_messages(operation, bytes, read_request, data);
    let (asked, answered) = match operation {
        Operation::Write => (bytes, None),
        Operation::Read => (read_request, Some(bytes)),
        Operation::ReadModifyWrite => (MODIFY_REQUEST, Some(bytes)),
    };
    let demand = u64::from(fastpass_demand_wire(1));
    cost.requester_up += demand;
    cost.requester_down += allocation_wire(config, data(asked).packets);
    if let Some(bytes) = answered {
        cost.target_up += demand;
        cost.target_down += allocation_wire(config, data(bytes).packets);
    }
    cost
}

/// Returns the wire bytes of the allocations of a lone message of `slots` slots, with a full batch
/// in each but the last.
fn allocation_wire(config: &Fastpass, slots: u64) -> u64 {
    let batch = u64::from(config.batch);
    let (full, rest) = (slots / batch, (slots % batch) as u32);
    let last = if rest > 0 { u64::from(fastpass_allocation_wire(1, rest)) } else { 0 };
    full * u64::from(fastpass_allocation_wire(1, config.batch)) + last
}

/// Returns the size of the arbiter's largest packet.
pub fn longest_allocation_wire(config: &Fastpass) -> u32 {
    let slots = 2 * config.batch;
    fastpass_allocation_wire(slots.min(control::TARGETS_MAX as u32), slots)
}

/// Returns the share of one of `nodes` endpoints in the arbiter's link.
fn demand_share(rate: Rate, nodes: u32) -> Rate {
    Rate::bps((rate.as_bps() / u64::from(nodes.max(1))).max(1))
}

/// The grid of slots that all hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Time from one slot to the next.
    pub span: Span,
    /// Wire bytes of data that fit into a slot.
    pub wire: u32,
}

impl Slots {
    /// Creates the grid for links of `rate`.
    pub fn new(config: &Fastpass, rate: Rate) -> Slots {
        let wire = fastpass_wire(config.slot_payload.count() as u32);
        let data = rate.span_of(Bytes::new(u64::from(wire)));
        Slots { span: data + data / SLACK_PART, wire }
    }
    /// Returns the slot at `now`.
    pub fn at(&self, now: Time) -> u64 {
        now.as_ps() / self.span.as_ps()
    }
    /// Returns the start of `slot`.
    pub fn start(&self, slot: u64) -> Time {
        Time::ps(slot * self.span.as_ps())
    }
}

/// Either kind of host. The arbiter has the number of the last port.
#[derive(Clone, Debug)]
pub enum Host {
    /// A compute or memory node.
    Endpoint(Box<Endpoint>),
    /// The arbiter.
    Arbiter(Box<Arbiter>),
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;
    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match self {
            Host::Endpoint(endpoint) => endpoint.on(now, input, out),
            Host::Arbiter(arbiter) => arbiter.on(now, input, out),
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        match self {
            Host::Endpoint(endpoint) => endpoint.next_wakeup(),
            Host::Arbiter(arbiter) => arbiter.next_wakeup(),
        }
    }
    fn on_wakeup(&mut self, now: Time, out: &mut Vec<HostOut>) {
        match self {
            Host::Endpoint(endpoint) => endpoint.on_wakeup(now, out),
            Host::Arbiter(arbiter) => arbiter.on_wakeup(now, out),
        }
    }
}

impl crate::Host for Host {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match self {
            Host::Endpoint(endpoint) => crate::Host::poll_transmit(&mut **endpoint, now),
            Host::Arbiter(arbiter) => crate::Host::poll_transmit(&mut **arbiter, now),
        }
    }
    fn take_content(&mut self) -> Box<[u8]> {
        match self {
            Host::Endpoint(endpoint) => crate::Host::take_content(&mut **endpoint),
            Host::Arbiter(arbiter) => crate::Host::take_content(&mut **arbiter),
        }
    }
    fn give_content(&mut self, content: &[u8]) {
        match self {
            Host::Endpoint(endpoint) => crate::Host::give_content(&mut **endpoint, content),
            Host::Arbiter(arbiter) => crate::Host::give_content(&mut **arbiter, content),
        }
    }
    fn may_transmit(&self) -> bool {
        match self {
            Host::Endpoint(_) => true,
            Host::Arbiter(arbiter) => crate::Host::may_transmit(&**arbiter),
        }
    }
    fn allowance(&self) -> Allowance {
        match self {
            Host::Endpoint(endpoint) => Allowance::Granted(endpoint.allocated()),
            Host::Arbiter(_) => Allowance::None,
        }
    }
}
