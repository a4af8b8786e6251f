//! Fastpass between endpoints, arbiter, switch and wires.

use crate::rivals_support::*;
use base::{Bytes, NodeId, Operation, Seed, Span, Time};
use proptest::prelude::*;
use sim::drive::Rig;
use sim::rigs::packet::{Bench, PacketRigConfig, lone, wire_cost_by_simulation};
use sim::rigs::rivals::{FastpassRig, fastpass, fastpass_message};
use transport::config::Fastpass;
use transport::fastpass::{Host, Slots, wire_cost};

const SLOT: u64 = 1460;
const RIVAL: Fastpass = Fastpass { slot_payload: Bytes::new(SLOT), batch: 16, timeout: Span::us(200) };

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
            let expected = fastpass(&RIVAL, &network).unloaded(operation, bytes).unwrap();
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
    let sizes = [8, 64, 3 * SLOT + 1, 16 * SLOT];
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
    let last = bench.ended.iter().map(|ended| ended.end).max().expect("some ended");
    // The first demand left for one message alone, and the slot of the others may be another
    // batch's.
    assert!(last - Time::ZERO < lone + span * 13, "{last:?} {lone:?}");
    assert_eq!(ended_once(&bench), 100);
}

/// SIGCOMM'14, abstract: queues of 4.35 MB fall to 18 KB. Here every link carries data in every
/// slot, both ways, for 100 us, and control beside it.
#[test]
fn an_incast_and_a_shuffle_leave_the_switch_nearly_without_queues() {
    let nodes = 16;
    let mut bench = Bench::new(rig(nodes));
    for source in 1..nodes {
        write(&mut bench, Time::ZERO, source, 0, 40 * SLOT);
        write(&mut bench, Time::ZERO, source, (source + 5) % nodes, 800 * SLOT);
    }
    bench.run_until(Time::us(100));
    let busy = utilisation(&bench.rig, 1..nodes, Time::us(100));
    bench.run();
    assert_eq!(ended_once(&bench), 2 * (nodes as usize - 1));
    let highest = (0..nodes).map(|node| bench.rig.switch().highest_data(NodeId(node))).max();
    println!("fastpass: links busy {busy:.3}, highest queue {highest:?}");
    // A packet counts as queued at the instant it passes; an allocation may hold up the one before
    // it.
    assert!(highest <= Some(Bytes::new(2 * 1538)), "{highest:?}");
    assert!(busy > 0.85, "{busy}");
    assert_eq!(missed_slots(&bench.rig, nodes), 0);
}

/// A byte a slot. A batch of 16 slots to one target is a packet of 38 + 20 + 8 + 4 + 2 + 16 bytes,
/// 5.5 a slot. The plan is one batch ahead, so the first packet holds up to two.
#[test]
fn a_long_flow_costs_the_arbiters_link_five_and_a_half_bytes_a_slot() {
    let batches = 200;
    let (_, rig) = lone(rig(2), Operation::Write, Bytes::new(batches * 16 * SLOT));
    let arbiter = rig.link_bytes(NodeId(2));
    assert_eq!(arbiter.down, 84, "one demand");
    let expected = batches * 88;
    assert!(arbiter.up.abs_diff(expected) <= 2 * 88, "{} against {expected}", arbiter.up);
}

/// Sixty targets at once from each of 64 nodes. The first demand leaves alone, and the others share
/// packets of ten (108 bytes). Slots share packets of up to fifteen targets (116 bytes, 7.7 a
/// slot).
#[test]
fn demands_and_slots_of_many_targets_share_packets() {
    let nodes = 64;
    let mut bench = Bench::new(rig(nodes));
    for step in 1..=60 {
        for source in 0..nodes {
            write(&mut bench, Time::ZERO, source, (source + step) % nodes, 64);
        }
    }
    bench.run();
    assert_eq!(ended_once(&bench), 60 * nodes as usize);
    let arbiter = bench.rig.link_bytes(NodeId(nodes));
    // 1 and 59: five packets of ten and one of nine.
    assert_eq!(arbiter.down, u64::from(nodes) * (84 + 5 * 108 + 104));
    let a_slot = arbiter.up as f64 / (60.0 * f64::from(nodes));
    println!("fastpass: {a_slot:.2} bytes of the arbiter's link a slot, the least is {:.2}", 116.0 / 15.0);
    assert!((116.0 / 15.0..20.0).contains(&a_slot), "{a_slot}");
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
    let last = bench.ended.iter().map(|ended| ended.end).max().expect("some ended");
    assert!(last - Time::ZERO < span * (u64::from(senders) * slots + 40), "{last:?}");
}

/// Mean latency of 64-byte writes between random pairs of `nodes`, with so many a microsecond from
/// each, and how busy the arbiter's links were.
fn small_writes(nodes: u32, per_node_us: f64) -> (Span, f64, f64) {
    let window = Span::us(15);
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

/// EDM (ASPLOS'25), 4.3.1: the arbiter's link is overwhelmed by small messages long before the
/// others are. Ten demands are 108 bytes: with 144 nodes it carries 8.04 demands a microsecond from
/// each, 4.1 % of their links in payload.
#[test]
fn many_small_messages_saturate_the_arbiters_link_at_a_load_far_below_one() {
    let nodes = 144;
    let unloaded = rig(2).unloaded(Operation::Write, Bytes::new(64)).unwrap();
    let (below, few, _) = small_writes(nodes, 0.5);
    let (above, down, up) = small_writes(nodes, 12.0);
    println!(
        "fastpass, 144 nodes: unloaded {unloaded:?}, 0.5/us {below:?} ({few:.3}), 12/us {above:?}, \
         arbiter down {down:.3} up {up:.3}"
    );
    assert!(below < unloaded * 3 / 2, "{below:?}");
    // Nearly every demand goes alone: 72 least frames of 6.72 ns a microsecond.
    assert!((0.42..0.49).contains(&few), "{few}");
    assert!(above > unloaded * 2, "{above:?}");
    assert!(down > 0.9, "{down}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_request_ends_exactly_once_and_nothing_is_dropped(
        seed in any::<u64>(), nodes in 2u32..9, batch in 1u32..=32, slot in 40u64..1_500, within_us in 1u64..50,
    ) {
        let config = Fastpass { slot_payload: Bytes::new(slot), batch, ..RIVAL };
        let mut bench = Bench::new(fastpass(&config, &network(nodes)));
        random_requests(&mut bench, seed, nodes, 150, Span::us(within_us), 10_000);
        bench.run();
        prop_assert_eq!(ended_once(&bench), 150);
        prop_assert_eq!(bench.rig.dropped_packets(), 0);
        prop_assert_eq!(missed_slots(&bench.rig, nodes), 0);
    }
}
