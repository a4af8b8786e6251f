//! What a reader must know about a plan before believing its numbers.

use crate::cost::{arbiter_cost, largest_packet, unloaded};
use crate::ground::Ground;
use crate::load::asking_nodes;
use crate::plan::{Background, Design, Messages, Protocol, WarmUp};
use base::{Bytes, NodeId, Operation, Span};
use std::collections::BTreeSet;
use transport::config::Pause;
use workload::block_trace::{BlockTrace, INVERSION_MAX};
use workload::{Arrivals, Pattern};

/// Below this many measured requests p99.9 is not even one of them.
const MEASURED_MIN: u64 = 1_000;
/// Below this many unloaded round trips a run has no steady state.
const ROUND_TRIPS_MIN: f64 = 10.0;

/// What a block trace lost and what was changed in it.
pub(crate) fn of_trace(trace: &BlockTrace, out: &mut Vec<String>) {
    let BlockTrace { skipped, skipped_first, inverted, .. } = trace;
    if *skipped > 0 {
        let first = skipped_first.join("; ");
        out.push(format!("{skipped} bad lines of the trace were skipped: {first}"));
    }
    inversions(*inverted, "requests", "io", out);
}

fn inversions(number: u64, what: &str, table: &str, out: &mut Vec<String>) {
    if number > 0 {
        out.push(format!(
            "{number} {what} of the trace came behind a later one, by {INVERSION_MAX} at most, \
             and were put in order; {table}.inversions = \"refuse\" refuses them"
        ));
    }
}

/// Values that are legal but probably unintended.
pub(crate) fn warnings(plan: &Messages) -> Vec<String> {
    let expected = Expected::of(plan);
    let mut out = Vec::new();
    if let Some(trace) = &plan.trace {
        inversions(trace.inverted, "messages", "workload", &mut out);
    }
    overload(plan, &mut out);
    arbiter(plan, &expected, &mut out);
    bursts(plan, &mut out);
    warm_up(plan, &expected, &mut out);
    length(plan, &expected, &mut out);
    drain(plan, &mut out);
    buffers(plan, &mut out);
    retransmissions(plan, &mut out);
    idle_nodes(plan, &mut out);
    out
}

/// How long arrivals last, roughly; `None` where that is unknown.
pub(crate) fn expected_length(plan: &Messages) -> Option<Span> {
    let length_ps = Expected::of(plan).length_ps;
    length_ps.is_finite().then(|| Span::from_ps_f64(length_ps))
}

/// Averages of the plan.
struct Expected {
    requests: f64,
    /// In picoseconds, until the last arrival.
    length_ps: f64,
    /// Of a lone request of mean size, in picoseconds.
    unloaded_ps: f64,
}

impl Expected {
    fn of(plan: &Messages) -> Expected {
        let unloaded_ps = mean_unloaded(plan).as_ps() as f64;
        let duration_ps = plan.workload.duration.map_or(f64::INFINITY, |duration| duration.as_ps() as f64);
        let limit = plan.workload.requests.map_or(f64::INFINITY, |requests| requests as f64);
        if let Arrivals::Trace { messages } = &plan.workload.arrivals {
            let last = messages.last().map_or(0.0, |message| message.at.as_ps() as f64);
            return Expected {
                requests: limit.min(messages.len() as f64),
                length_ps: last.min(duration_ps),
                unloaded_ps,
            };
        }
        let rate = f64::from(asking_nodes(&plan.workload.pattern, plan.fabric.nodes)) / gap_ps(plan, unloaded_ps);
        let requests = limit.min(duration_ps * rate);
        Expected { requests, length_ps: requests / rate, unloaded_ps }
    }
}

/// The mean gap of one source. In a closed loop it is at least the unloaded time of a request.
fn gap_ps(plan: &Messages, unloaded_ps: f64) -> f64 {
    match &plan.workload.arrivals {
        Arrivals::Poisson { mean_gap_ps } => *mean_gap_ps,
        Arrivals::Deterministic { gap_ps } => *gap_ps,
        Arrivals::OnOff { mean_gap_ps, on, off } => mean_gap_ps / share_on(*on, *off),
        Arrivals::Closed { depth, think } => (unloaded_ps + think.as_ps() as f64).max(1.0) / f64::from(*depth),
        Arrivals::Trace { .. } => f64::INFINITY,
    }
}

fn share_on(on: Span, off: Span) -> f64 {
    on.as_ps() as f64 / (on.as_ps() as f64 + off.as_ps() as f64)
}

fn mean_unloaded(plan: &Messages) -> Span {
    let total: f64 = plan.workload.mix.iter().map(|class| class.weight).sum();
    let classes = plan.workload.mix.iter().map(|class| {
        let bytes = Bytes::new((class.size.mean_bytes() as u64).max(1));
        unloaded(plan, class.operation, bytes).as_ps() as f64 * class.weight / total
    });
    if plan.workload.mix.is_empty() {
        unloaded(plan, Operation::Read, Bytes::new(64))
    } else {
        Span::from_ps_f64(classes.sum())
    }
}

fn overload(plan: &Messages, out: &mut Vec<String>) {
    let background = plan.background.as_ref().map_or(0.0, Background::load);
    let Some(load) = plan.load else { return background_alone(background, out) };
    let total = load.busiest_link + background;
    if total > 1.0 {
        let with = if background > 0.0 { format!(" ({background:.3} of it background)") } else { String::new() };
        let (fraction, basis) = (load.fraction, load.basis.word());
        out.push(format!(
            "load {fraction} ({basis}) puts {total:.3} of its rate on the busiest link direction{with}: more than it can \
             carry, so queues grow for as long as requests arrive"
        ));
    }
}

/// Without an offered load nothing is known of the memory traffic, but frames alone may be too
/// many.
fn background_alone(background: f64, out: &mut Vec<String>) {
    if background > 1.0 {
        out.push(format!(
            "background streams offer {background:.3} of every uplink: more than it can carry, so their frames wait in \
             their hosts for as long as requests arrive"
        ));
    }
}

/// Fastpass has one link through which all demands and allocations go (EDM, 4.3.1: it becomes the
/// bottleneck).
fn arbiter(plan: &Messages, expected: &Expected, out: &mut Vec<String>) {
    let total: f64 = plan.workload.mix.iter().map(|class| class.weight).sum();
    let mut bytes = [0.0; 2];
    for class in &plan.workload.mix {
        let mean = Bytes::new((class.size.mean_bytes() as u64).max(1));
        let Some(cost) = arbiter_cost(&plan.design, class.operation, mean) else { return };
        bytes = [0, 1].map(|direction| bytes[direction] + cost[direction] * class.weight / total);
    }
    let carried_ps = bytes[0].max(bytes[1]) * 8e12 / plan.fabric.rate.as_bps() as f64;
    let load = expected.requests * carried_ps / expected.length_ps.max(1.0);
    if load > 1.0 {
        out.push(format!(
            "demands and allocations of single messages would put {load:.1} of its rate on the arbiter's link: it is the \
             bottleneck unless they share packets"
        ));
    }
}

fn bursts(plan: &Messages, out: &mut Vec<String>) {
    let (Some(load), Arrivals::OnOff { on, off, .. }) = (plan.load, &plan.workload.arrivals) else { return };
    let while_on = load.busiest_link / share_on(*on, *off);
    if while_on > 1.0 && load.busiest_link <= 1.0 {
        out.push(format!(
            "while a node is on it offers {while_on:.3} of the busiest link direction: a hint, since bursts are what \
             on-off is for"
        ));
    }
}

/// The warm-up as a share of the run; an estimate where a time is given.
fn warm_up_share(plan: &Messages, expected: &Expected) -> f64 {
    match plan.run.warm_up {
        WarmUp::Time(span) => span.as_ps() as f64 / expected.length_ps.max(1.0),
        WarmUp::Requests(count) => count as f64 / expected.requests.max(1.0),
        WarmUp::Auto => 0.0,
    }
}

fn warm_up(plan: &Messages, expected: &Expected, out: &mut Vec<String>) {
    let measured = (expected.requests * (1.0 - warm_up_share(plan, expected))).round();
    if measured < MEASURED_MIN as f64 {
        out.push(format!("about {measured} requests are measured, fewer than {MEASURED_MIN}: p99.9 is their largest"));
    }
}

/// Why a warm-up leaves nothing to measure of what is expected of a run, if so.
pub(crate) fn nothing_expected(plan: &Messages) -> Option<String> {
    let expected = Expected::of(plan);
    if warm_up_share(plan, &expected) < 1.0 {
        return None;
    }
    let text = match plan.run.warm_up {
        WarmUp::Time(span) => span.to_string(),
        WarmUp::Requests(count) => format!("{count} requests"),
        WarmUp::Auto => return None,
    };
    let (requests, length) = (expected.requests.round(), readable(expected.length_ps));
    Some(format!("the warm-up of {text} is as long as the run ({requests} requests in about {length})"))
}

fn length(plan: &Messages, expected: &Expected, out: &mut Vec<String>) {
    let round_trips = expected.length_ps / expected.unloaded_ps.max(1.0);
    let is_trace = matches!(plan.workload.arrivals, Arrivals::Trace { .. });
    if round_trips < ROUND_TRIPS_MIN && !is_trace {
        let (length, unloaded) = (readable(expected.length_ps), readable(expected.unloaded_ps));
        out.push(format!(
            "arrivals last about {length}, {round_trips:.1} unloaded requests of {unloaded} each: too short for a steady state"
        ));
    }
}

fn drain(plan: &Messages, out: &mut Vec<String>) {
    let longest = match &plan.workload.arrivals {
        Arrivals::Trace { messages } => {
            messages.iter().max_by_key(|message| message.bytes).map(|message| (message.operation, message.bytes))
        }
        _ => plan
            .workload
            .mix
            .iter()
            .map(|class| (class.operation, class.size.max_bytes()))
            .max_by_key(|(_, bytes)| *bytes),
    };
    let Some((operation, bytes)) = longest else { return };
    let (needed, limit) = (unloaded(plan, operation, bytes), plan.run.drain_limit);
    if limit < needed {
        let needed = readable(needed.as_ps() as f64);
        out.push(format!(
            "the drain limit of {limit} is shorter than the {needed} that a {} of {bytes} takes alone: the last requests will be unfinished",
            operation.name()
        ));
    }
}

fn buffers(plan: &Messages, out: &mut Vec<String>) {
    let Design::Packet(packet) = &plan.design else { return };
    let (queue, key) = match &packet.protocol {
        Protocol::Dctcp(config) => (config.queue, "design.dctcp.queue"),
        Protocol::Pfabric(config) => (config.queue, "design.pfabric.queue"),
        Protocol::Dcqcn(config) => match config.pause {
            Pause::Static { above, .. } => (above, "design.dcqcn.pause_above"),
            Pause::Dynamic { shared, .. } => (shared, "design.dcqcn.shared_buffer"),
        },
        _ => return,
    };
    let largest = largest_packet(&packet.protocol);
    if queue < largest {
        out.push(format!("{key} of {queue} has no room for a full packet of {largest} on the wire"));
    }
}

/// A timeout that a packet can reach by waiting in the queue.
fn retransmissions(plan: &Messages, out: &mut Vec<String>) {
    let Design::Packet(packet) = &plan.design else { return };
    let Protocol::Pfabric(config) = &packet.protocol else { return };
    let ground = Ground { rate: plan.fabric.rate, propagation: plan.fabric.propagation, stack: packet.stack };
    let longest = ground.round_trip() + ground.full_queue(config.queue);
    if config.timeout < longest {
        out.push(format!(
            "design.pfabric.timeout of {} is shorter than a round trip through a full queue, {longest}: \
             packets that only wait are sent again",
            config.timeout
        ));
    }
}

fn idle_nodes(plan: &Messages, out: &mut Vec<String>) {
    let nodes = plan.fabric.nodes;
    let busy = match (&plan.workload.arrivals, &plan.workload.pattern) {
        (Arrivals::Trace { messages }, _) => {
            let named: BTreeSet<NodeId> =
                messages.iter().flat_map(|message| [message.source, message.target]).collect();
            named.len() as u32
        }
        (_, Pattern::Incast { sources, .. }) => sources + 1,
        _ => nodes,
    };
    if busy < nodes {
        out.push(format!("{} of {nodes} nodes neither send nor receive requests", nodes - busy));
    }
}

/// A time for a reader: in the unit that suits it.
fn readable(ps: f64) -> String {
    match ps {
        ps if ps < 1e6 => format!("{:.1}ns", ps / 1e3),
        ps if ps < 1e9 => format!("{:.1}us", ps / 1e6),
        ps => format!("{:.1}ms", ps / 1e9),
    }
}

/// Measured requests of a run with a limit of requests.
pub(crate) fn measured(warm_up: WarmUp, requests: Option<u64>, out: &mut Vec<String>) {
    let (WarmUp::Requests(count), Some(requests)) = (warm_up, requests) else { return };
    let measured = requests.saturating_sub(count);
    if measured < MEASURED_MIN {
        out.push(format!("{measured} requests are measured, fewer than {MEASURED_MIN}: p99.9 is their largest"));
    }
}
