//! The idealised receiver-driven protocol between hosts, switch and wires.

use crate::rivals_support::*;
use base::{Bytes, NodeId, Operation, Seed, Span, Time};
use proptest::prelude::*;
use sim::drive::Rig;
use sim::rigs::packet::{Bench, PacketRigConfig, lone, wire_cost_by_simulation};
use sim::rigs::rivals::{ReceiverDrivenRig, receiver_driven};
use transport::config::ReceiverDriven;
use transport::receiver_driven::{CREDIT_WIRE, wire_cost};

const MTU: u64 = 1456;
/// About one round trip of credit and data at 100 Gb/s.
const AMPLE: u64 = 16 * MTU;

fn rival(outstanding: u64) -> ReceiverDriven {
    ReceiverDriven { mtu: Bytes::new(MTU), outstanding: Bytes::new(outstanding) }
}
fn rig(nodes: u32, outstanding: u64) -> ReceiverDrivenRig {
    receiver_driven(&rival(outstanding), &network(nodes))
}

#[test]
fn a_lone_request_takes_what_the_closed_form_says_whether_or_not_the_window_stalls() {
    let sizes = [1, 8, 64, MTU - 1, MTU, MTU + 1, 2 * MTU, 5 * MTU + 7, 33 * MTU, 40 * MTU + 1455, 100_000];
    for cut_through in [false, true] {
        let network = PacketRigConfig { cut_through, ..network(2) };
        for outstanding in [1, MTU, 2 * MTU + 8, 3 * MTU, AMPLE, 64 * MTU] {
            for (operation, bytes) in OPERATIONS.into_iter().flat_map(|op| sizes.map(|size| (op, Bytes::new(size)))) {
                let make = || receiver_driven(&rival(outstanding), &network);
                let (ended, _) = lone(make(), operation, bytes);
                let expected = make().unloaded(operation, bytes).unwrap();
                assert_eq!(ended.end - Time::ZERO, expected, "{operation:?} of {bytes} with {outstanding} outstanding");
            }
        }
    }
}

#[test]
fn a_64_byte_write_costs_a_credit_trip_and_a_data_trip() {
    // 128 bytes of data frame: 8 + 14 + 20 + 8 + 16 + 64 + 4 + 12 with preamble and gap is 146.
    let trip = |wire: u64| Span::ps(557_440) + Span::ps(80) * wire * 2;
    let (ended, _) = lone(rig(2, AMPLE), Operation::Write, Bytes::new(64));
    assert_eq!(ended.end - Time::ZERO, trip(84) + trip(146));
}

#[test]
fn every_packet_of_data_costs_a_credit_on_the_wire() {
    for (operation, bytes) in
        OPERATIONS.into_iter().flat_map(|op| [8, 64, 3 * MTU + 1].map(|size| (op, Bytes::new(size))))
    {
        let counted = wire_cost_by_simulation(rig(2, AMPLE), operation, bytes);
        assert_eq!(counted, wire_cost(&rival(AMPLE), operation, bytes, Bytes::new(8)));
    }
}

#[test]
fn one_long_flow_fills_the_link() {
    let bytes = 4_000_000;
    let (ended, _) = lone(rig(2, AMPLE), Operation::Write, Bytes::new(bytes));
    let goodput = bytes as f64 * 8.0 / (ended.end - Time::ZERO).as_secs_f64();
    let peak = 100e9 * MTU as f64 / 1538.0;
    assert!(goodput > 0.99 * peak && goodput < peak, "{goodput}");
}

#[test]
fn an_incast_keeps_the_receivers_link_busy_and_the_switch_queue_within_the_credits() {
    let (senders, bytes, outstanding) = (8, 50 * MTU, AMPLE);
    let mut bench = Bench::new(rig(senders + 1, outstanding));
    for sender in 1..=senders {
        write(&mut bench, Time::ZERO, sender, 0, bytes);
    }
    bench.run();
    assert_eq!((ended_once(&bench), bench.rig.dropped_packets()), (senders as usize, 0));
    let round_trip = Span::us(2);
    let busy = Span::ps(80 * 1538 * 50 * u64::from(senders));
    assert!(bench.now() - Time::ZERO < busy + round_trip, "the link idled: {:?} for {busy:?}", bench.now());
    let queue = bench.rig.switch().highest_data(NodeId(0));
    assert!(queue <= Bytes::new(outstanding / MTU * 1538), "{queue}");
    // Paced credits come to idle senders at the same distance: hardly anything meets.
    assert!(queue <= Bytes::new(2 * 1538), "{queue}");
}

/// A credit a packet of 123.04 ns: the 18th is the first after 2 us. It travels, the short message
/// leaves right behind a packet of the long one, and waits in the switch until that is on the
/// second hop.
#[test]
fn a_short_message_behind_a_long_one_of_the_same_pair_finishes_first() {
    let mut bench = Bench::new(rig(2, AMPLE));
    let long = write(&mut bench, Time::ZERO, 1, 0, 200 * MTU);
    let short = write(&mut bench, Time::us(2), 1, 0, 64);
    bench.run();
    let end = |ticket| bench.end_of(ticket).map(|ended| ended.end);
    let (packet, fixed) = (Span::ps(80 * 1538), Span::ps(557_440));
    let called = Time::ZERO + packet * 17;
    let there = called + fixed + Span::ps(80 * 2 * 84);
    assert_eq!(end(short), Some(there + packet + Span::ps(80 * 146) + fixed));
    // The long one loses the time of one least frame's credit and of one short packet.
    let alone = rig(2, AMPLE).unloaded(Operation::Write, Bytes::new(200 * MTU)).unwrap();
    assert!(end(long) <= Some(Time::ZERO + alone + packet), "{:?}", end(long));
}

/// How busy the receivers' links are while every source has plenty for each of `targets`, in
/// messages of many sizes.
fn backlogged(outstanding: u64, targets: &dyn Fn(u32) -> Vec<u32>) -> f64 {
    let nodes = 16;
    let mut sizes = Seed(3).stream("test/sizes");
    let mut bench = Bench::new(rig(nodes, outstanding));
    for source in 0..nodes {
        let targets = targets(source);
        for message in 0..60 {
            write(&mut bench, Time::ZERO, source, targets[message % targets.len()], MTU * (20 + sizes.below(40)));
        }
    }
    let until = Time::us(100);
    bench.run_until(until);
    utilisation(&bench.rig, 0..nodes, until)
}

/// EDM (ASPLOS'25), 3.1: receivers that choose the same sender leave their slots empty. Without
/// conflicts the same credits suffice for the whole link; more credits (overcommitment) win back a
/// part.
#[test]
fn conflicts_at_senders_cost_throughput_that_a_permutation_has() {
    let all = |source| (0..16).filter(|target| *target != source).collect::<Vec<u32>>();
    let permutation = backlogged(AMPLE, &|source| vec![(source + 1) % 16]);
    let (conflicts, overcommitted) = (backlogged(AMPLE, &all), backlogged(4 * AMPLE, &all));
    println!(
        "receiver-driven: permutation {permutation:.3}, all-to-all {conflicts:.3}, overcommitted {overcommitted:.3}"
    );
    assert!(permutation > 0.96, "{permutation}");
    assert!(conflicts < 0.9 * permutation, "{conflicts}");
    assert!(overcommitted > conflicts * 1.05 && overcommitted < permutation, "{overcommitted}");
}

/// Homa (SIGCOMM'18), abstract: round trips of short messages take less than 15 us in 99 of 100
/// cases, at 10 Gb/s and a load of 80 %, among 16 hosts. Here a read of 100 bytes is the round
/// trip, and messages of ten to 200 packets the load.
#[test]
fn round_trips_of_short_messages_are_short_beside_long_messages_at_80_percent() {
    let (nodes, long, window) = (16u64, (10..200), Span::ms(10));
    let slow = PacketRigConfig { rate: base::Rate::gbps(10), ..network(nodes as u32) };
    let config = rival(8 * MTU);
    let mut bench = Bench::new(receiver_driven(&config, &slow));
    let mut stream = Seed(11).stream("test/short");
    let mean_packets = (long.start + long.end) as f64 / 2.0;
    let gap = 1538.0 * 800.0 * mean_packets / 0.8 / nodes as f64;
    let (mut at, mut short) = (0.0, Vec::new());
    while at < window.as_ps() as f64 {
        at += stream.exponential(gap);
        let [source, step] = [stream.below(nodes) as u32, 1 + stream.below(nodes - 1) as u32];
        let bytes = MTU * (long.start + stream.below(long.end - long.start));
        write(&mut bench, Time::ps(at as u64), source, (source + step) % nodes as u32, bytes);
        let [source, step] = [stream.below(nodes) as u32, 1 + stream.below(nodes - 1) as u32];
        let target = (source + step) % nodes as u32;
        short.push(bench.issue(Time::ps(at as u64), Operation::Read, NodeId(source), NodeId(target), Bytes::new(100)));
    }
    bench.run();
    let ends: std::collections::BTreeMap<_, _> = bench.ended.iter().map(|ended| (ended.ticket, ended)).collect();
    let mut trips: Vec<Span> = short.iter().map(|ticket| ends[ticket].end - ends[ticket].start).collect();
    trips.sort();
    let (middle, tail) = (trips[trips.len() / 2], trips[trips.len() * 99 / 100]);
    let alone = bench.rig.unloaded(Operation::Read, Bytes::new(100)).unwrap();
    println!("receiver-driven: {} short reads, median {middle}, p99 {tail}, alone {alone}", trips.len());
    assert!(trips.len() > 800 && tail < Span::us(15), "{tail}");
}

#[test]
fn credits_share_the_wire_with_data() {
    let mut bench = Bench::new(rig(2, AMPLE));
    write(&mut bench, Time::ZERO, 0, 1, 100 * MTU);
    bench.run();
    let link = bench.rig.link_bytes(NodeId(1));
    assert_eq!((link.down, link.up), (100 * 1538, 100 * u64::from(CREDIT_WIRE)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_request_ends_exactly_once_and_nothing_is_dropped(
        seed in any::<u64>(), nodes in 2u32..9, outstanding in 1u64..40_000, within_us in 1u64..50,
    ) {
        let mut bench = Bench::new(rig(nodes, outstanding));
        random_requests(&mut bench, seed, nodes, 200, Span::us(within_us), 20_000);
        bench.run();
        prop_assert_eq!(ended_once(&bench), 200);
        prop_assert_eq!(bench.rig.dropped_packets(), 0);
        prop_assert!((0..nodes).all(|node| bench.rig.host(NodeId(node)).outstanding() == Bytes::ZERO));
    }
}
