//! Fastpass between endpoints, arbiter, switch and wires.

mod rivals_support;

use base::{Bytes, NodeId, Operation, Seed, Span, Time};
use proptest::prelude::*;
use rivals_support::*;
use sim::drive::Rig;
use sim::rigs::packet::{Bench, PacketRigConfig, lone, wire_cost_by_simulation};
use sim::rigs::rivals::{FastpassRig, fastpass, fastpass_message};
use transport::config::Fastpass;
use transport::fastpass::{Host, Slots, wire_cost};

const SLOT: u64 = 1460;
const RIVAL: Fastpass = Fastpass { slot_payload: Bytes::new(SLOT), batch: 8 };

fn rig(nodes: u32) -> FastpassRig {
    fastpass(&RIVAL, &network(nodes))
}
fn missed_slots(rig: &FastpassRig, nodes: u32) -> u64 {
    let missed = |node| match rig.host(NodeId(node)) {
        Host::Endpoint(endpoint) => endpoint.missed_slots(),
        Host::Arbiter(_) => 0,
    };
    (0..nodes).map(missed).sum()
}

#[test]
fn a_lone_request_takes_what_the_closed_form_says() {
    let sizes = [1, 8, 64, SLOT, SLOT + 1, 8 * SLOT, 17 * SLOT + 3, 33 * SLOT, 200_000];
    for cut_through in [false, true] {
        let network = PacketRigConfig { cut_through, ..network(2) };
        for (operation, bytes) in OPERATIONS.into_iter().flat_map(|op| sizes.map(|size| (op, Bytes::new(size)))) {
            let (ended, _) = lone(fastpass(&RIVAL, &network), operation, bytes);
            let expected = fastpass(&RIVAL, &network).unloaded(operation, bytes);
            assert_eq!(ended.end - Time::ZERO, expected, "{operation:?} of {bytes}");
        }
    }
}

#[test]
fn a_request_waits_for_the_grid_of_slots_wherever_it_begins() {
    for at in (0..40).map(|step| Time::ps(step * 7_919)) {
        let mut bench = Bench::new(rig(2));
        let ticket = write(&mut bench, at, 0, 1, 64);
        bench.run();
        let end = bench.end_of(ticket).map(|ended| ended.end);
        assert_eq!(end, Some(fastpass_message(&RIVAL, &network(2), at, Bytes::new(64))));
    }
}

#[test]
fn demands_and_allocations_are_frames_on_the_wire() {
    let sizes = [8, 64, 3 * SLOT + 1, 21 * SLOT];
    for (operation, bytes) in OPERATIONS.into_iter().flat_map(|op| sizes.map(|size| (op, Bytes::new(size)))) {
        let counted = wire_cost_by_simulation(rig(2), operation, bytes);
        assert_eq!(counted, wire_cost(&RIVAL, operation, bytes, Bytes::new(8)), "{operation:?} of {bytes}");
    }
    let (_, rig) = lone(rig(2), Operation::Write, Bytes::new(64));
    let arbiter = rig.link_bytes(NodeId(2));
    assert_eq!((arbiter.down, arbiter.up), (84, 84));
}

#[test]
fn one_long_flow_sends_in_every_slot() {
    let slots = 3_000;
    let (ended, rig) = lone(rig(2), Operation::Write, Bytes::new(slots * SLOT));
    let span = Slots::new(&RIVAL, RATE).span;
    let elapsed = ended.end - Time::ZERO;
    assert!(elapsed > span * slots && elapsed < span * (slots + 30), "{elapsed:?}");
    assert_eq!(missed_slots(&rig, 2), 0);
}

#[test]
fn small_messages_to_one_target_share_slots() {
    let mut bench = Bench::new(rig(2));
    for _ in 0..100 {
        write(&mut bench, Time::ZERO, 0, 1, 64);
    }
    bench.run();
    // 64 bytes are a frame of 142 with preamble and gap: ten to a slot, so ten slots.
    let lone = fastpass_message(&RIVAL, &network(2), Time::ZERO, Bytes::new(64)) - Time::ZERO;
    let span = Slots::new(&RIVAL, RATE).span;
    assert!(bench.now() - Time::ZERO < lone + span * 12, "{:?}", bench.now());
    assert_eq!(ended_once(&bench), 100);
}

/// SIGCOMM'14, abstract: the arbiter's slots leave the switch with zero queues.
#[test]
fn an_incast_and_a_shuffle_leave_the_switch_without_queues() {
    let nodes = 16;
    let mut bench = Bench::new(rig(nodes));
    for source in 1..nodes {
        write(&mut bench, Time::ZERO, source, 0, 40 * SLOT);
        write(&mut bench, Time::ZERO, source, (source + 5) % nodes, 40 * SLOT);
    }
    bench.run();
    assert_eq!(ended_once(&bench), 2 * (nodes as usize - 1));
    let highest = (0..nodes).map(|node| bench.rig.switch().highest_data(NodeId(node))).max();
    // A packet counts as queued at the instant it passes; it never finds another there.
    assert!(highest <= Some(Bytes::new(1538)), "{highest:?}");
    assert_eq!(missed_slots(&bench.rig, nodes), 0);
}

#[test]
fn an_incast_fills_every_slot_of_its_target() {
    let (senders, slots) = (8, 200);
    let mut bench = Bench::new(rig(senders + 1));
    for source in 1..=senders {
        write(&mut bench, Time::ZERO, source, 0, slots * SLOT);
    }
    bench.run();
    let span = Slots::new(&RIVAL, RATE).span;
    assert!(bench.now() - Time::ZERO < span * (u64::from(senders) * slots + 40), "{:?}", bench.now());
}

/// Mean latency of 64-byte writes between random pairs of 64 nodes, with so many a microsecond from each, and how
/// busy the arbiter's links were.
fn small_writes(per_node_us: f64) -> (Span, f64, f64) {
    let (nodes, window) = (64, Span::us(20));
    let mut bench = Bench::new(rig(nodes));
    let mut stream = Seed(7).stream("test/small");
    let mut starts = Vec::new();
    let mut at = 0.0;
    while at < window.as_ps() as f64 {
        at += stream.exponential(1e6 / (per_node_us * f64::from(nodes)));
        let source = stream.below(u64::from(nodes)) as u32;
        let target = (source + 1 + stream.below(u64::from(nodes) - 1) as u32) % nodes;
        let start = Time::ps(at as u64);
        write(&mut bench, start, source, target, 64);
        starts.push(start);
    }
    bench.run_until(Time::ZERO + window);
    let arbiter = bench.rig.link_bytes(NodeId(nodes));
    let share = |bytes: u64| bytes as f64 * 80.0 / window.as_ps() as f64;
    bench.run();
    assert_eq!(ended_once(&bench), starts.len());
    let total: Span = bench.ended.iter().map(|ended| ended.end - starts[ended.ticket.0 as usize]).sum();
    (total / starts.len() as u64, share(arbiter.down), share(arbiter.up))
}

/// EDM (ASPLOS'25), 4.3.1: the arbiter's link is overwhelmed by small messages long before the others are. It carries
/// 149 million least frames a second: 2.3 a microsecond from each of 64 nodes, 1.2 % of their links in payload.
#[test]
fn many_small_messages_saturate_the_arbiters_link_at_a_load_far_below_one() {
    let unloaded = rig(2).unloaded(Operation::Write, Bytes::new(64));
    let (below, ..) = small_writes(1.0);
    let (above, down, up) = small_writes(6.0);
    println!(
        "fastpass, 64 nodes: unloaded {unloaded:?}, 1/us {below:?}, 6/us {above:?}, arbiter down {down:.3} up {up:.3}"
    );
    assert!(below < unloaded * 3 / 2, "{below:?}");
    assert!(above > unloaded * 3, "{above:?}");
    assert!(down > 0.9, "{down}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_request_ends_exactly_once_and_nothing_is_dropped(
        seed in any::<u64>(), nodes in 2u32..9, batch in 1u32..9, slot in 40u64..1_500, within_us in 1u64..50,
    ) {
        let config = Fastpass { slot_payload: Bytes::new(slot), batch };
        let mut bench = Bench::new(fastpass(&config, &network(nodes)));
        random_requests(&mut bench, seed, nodes, 150, Span::us(within_us), 10_000);
        bench.run();
        prop_assert_eq!(ended_once(&bench), 150);
        prop_assert_eq!(bench.rig.dropped_packets(), 0);
        prop_assert_eq!(missed_slots(&bench.rig, nodes), 0);
    }
}
