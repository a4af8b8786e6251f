//! The credit-based fabric between devices, switch and wires.

use crate::rivals_support::*;
use base::{Bytes, NodeId, Operation, Span, Time};
use proptest::prelude::*;
use sim::drive::Rig;
use sim::rigs::packet::{Bench, PacketRigConfig, lone, wire_cost_by_simulation};
use sim::rigs::rivals::{self, CreditBasedRig, credit_based_message, never_out_of_credits};
use transport::config::CreditBased;
use transport::credit_based::wire_cost;

/// More than enough for a rack's credit loop.
const AMPLE: u32 = 128;

fn cxl(nodes: u32) -> PacketRigConfig {
    PacketRigConfig { stack: hardware::EthernetStack::CXL, ..network(nodes) }
}
/// CXL's 68-byte flits.
fn rival(buffer_flits: u32) -> CreditBased {
    CreditBased {
        flit_payload: Bytes::new(64),
        flit_wire: Bytes::new(68),
        switch_buffer_flits: buffer_flits,
        device_buffer_flits: buffer_flits,
    }
}
fn rig(nodes: u32, buffer_flits: u32) -> CreditBasedRig {
    rivals::cxl(&rival(buffer_flits), &cxl(nodes))
}

#[test]
fn a_lone_request_takes_what_the_closed_form_says() {
    for (operation, bytes) in
        OPERATIONS.into_iter().flat_map(|op| [1, 8, 64, 65, 4096, 100_001].map(|size| (op, Bytes::new(size))))
    {
        let (ended, _) = lone(rig(2, AMPLE), operation, bytes);
        assert_eq!(
            ended.end - Time::ZERO,
            rig(2, AMPLE).unloaded(operation, bytes).unwrap(),
            "{operation:?} of {bytes}"
        );
    }
}

/// Pond (ASPLOS'23): 160 ns of ports, retimers and switch for both ways; 20 ns of wire a trip; two
/// flits serialized twice each; memory.
#[test]
fn a_64_byte_read_takes_the_latencies_of_ponds_parts() {
    let (ended, _) = lone(rig(2, AMPLE), Operation::Read, Bytes::new(64));
    let memory = Span::ns(50) + Span::ps(1_280);
    assert_eq!(ended.end - Time::ZERO, Span::ns(160) + Span::ns(40) + Span::ps(5_440) * 4 + memory);
}

#[test]
fn flits_are_all_that_a_small_request_puts_on_the_wire() {
    for (operation, bytes) in OPERATIONS.into_iter().flat_map(|op| [8, 64, 1000].map(|size| (op, Bytes::new(size)))) {
        let counted = wire_cost_by_simulation(rig(2, AMPLE), operation, bytes);
        assert_eq!(counted, wire_cost(&rival(AMPLE), operation, bytes, Bytes::new(8)));
    }
}

#[test]
fn one_long_flow_gets_the_flits_share_of_the_link() {
    let bytes = 4_000_000;
    let (ended, _) = lone(rig(2, AMPLE), Operation::Write, Bytes::new(bytes));
    let goodput = bytes as f64 * 8.0 / (ended.end - Time::ZERO).as_secs_f64();
    let peak = 100e9 * 64.0 / 68.0;
    assert!(goodput > 0.99 * peak && goodput < peak, "{goodput}");
}

#[test]
fn the_smallest_buffer_that_covers_the_credit_loop_fills_the_link_and_half_of_it_does_not() {
    let enough = (1..AMPLE).find(|flits| never_out_of_credits(&rival(*flits), &cxl(2))).expect("some buffer suffices");
    let bytes = Bytes::new(64 * 5_000);
    let time = |flits| lone(rig(2, flits), Operation::Write, bytes).0.end - Time::ZERO;
    let line_rate = credit_based_message(&rival(enough), &cxl(2), bytes);
    println!("credit-based: {enough} flits cover the loop");
    assert_eq!(time(enough), line_rate);
    assert!(time(enough / 2) > line_rate * 3 / 2);
    // Where buffers are too small for the closed form, the unloaded time is simulated.
    assert_eq!(rig(2, enough / 2).unloaded(Operation::Write, bytes).unwrap(), time(enough / 2));
}

#[test]
fn an_incast_loses_nothing_and_never_overfills_a_buffer() {
    let (senders, flits, buffer) = (8, 2_000, 16);
    let mut bench = Bench::new(rig(senders + 1, buffer));
    for sender in 1..=senders {
        write(&mut bench, Time::ZERO, sender, 0, 64 * flits);
    }
    bench.run();
    assert_eq!((ended_once(&bench), bench.rig.dropped_packets()), (senders as usize, 0));
    // Up to three credits may wait for a fourth before they go back.
    let highest = bench.rig.switch().highest_input();
    assert!(highest <= buffer as usize && highest > buffer as usize - 4, "{highest}");
}

/// The rate at which 1 writes to the idle node 9 while 1 and `others` more write to node 0, as a
/// share of the line.
fn bystander_share(others: u32) -> f64 {
    let mut bench = Bench::new(rig(10, 64));
    for sender in 1..=1 + others {
        write(&mut bench, Time::ZERO, sender, 0, 4_000_000);
    }
    write(&mut bench, Time::ZERO, 1, 9, 4_000_000);
    let until = Time::us(50);
    bench.run_until(until);
    utilisation(&bench.rig, 9..10, until)
}

/// EDM (ASPLOS'25), 4.3.1: an incast eats the credits of its victim's port and blocks other traffic
/// of the same inputs.
#[test]
fn an_incasts_victim_slows_a_flow_to_an_idle_target_through_the_same_input() {
    let (alone, with_incast) = (bystander_share(0), bystander_share(7));
    println!("credit-based: bystander gets {alone:.3} of the line alone, {with_incast:.3} beside an 8-to-1 incast");
    assert!(alone > 0.48, "{alone}");
    // Half of input 1 would be its own, but it moves at the pace of the victim's share: an eighth.
    assert!(with_incast < 0.14 && with_incast > 0.11, "{with_incast}");
}

#[test]
fn a_flow_through_another_input_is_not_slowed() {
    let mut bench = Bench::new(rig(10, 64));
    for sender in 1..8 {
        write(&mut bench, Time::ZERO, sender, 0, 4_000_000);
    }
    write(&mut bench, Time::ZERO, 8, 9, 4_000_000);
    let until = Time::us(50);
    bench.run_until(until);
    assert!(utilisation(&bench.rig, 9..10, until) > 0.98);
}

#[test]
fn answers_pass_where_requests_are_blocked() {
    let mut bench = Bench::new(rig(10, 64));
    for sender in 1..8 {
        write(&mut bench, Time::ZERO, sender, 0, 1_000_000);
    }
    let read = bench.issue(Time::us(10), Operation::Read, NodeId(9), NodeId(1), Bytes::new(64));
    let blocked = write(&mut bench, Time::us(10), 1, 8, 64);
    bench.run();
    let took = |ticket| bench.end_of(ticket).expect("it ended").end - Time::us(10);
    let unloaded = |operation| rig(10, 64).unloaded(operation, Bytes::new(64)).unwrap();
    assert!(took(read) < unloaded(Operation::Read) * 2, "{:?}", took(read));
    assert!(took(blocked) > unloaded(Operation::Write) * 4, "{:?}", took(blocked));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_traffic_through_tiny_buffers_neither_deadlocks_nor_loses_anything(
        seed in any::<u64>(), nodes in 2u32..9, switch_buffer in 1u32..8, device_buffer in 1u32..8,
        within_us in 1u64..50,
    ) {
        let config = CreditBased { switch_buffer_flits: switch_buffer, device_buffer_flits: device_buffer, ..rival(1) };
        let mut bench = Bench::new(rivals::cxl(&config, &cxl(nodes)));
        random_requests(&mut bench, seed, nodes, 150, Span::us(within_us), 3_000);
        bench.run();
        prop_assert_eq!(ended_once(&bench), 150);
        prop_assert_eq!(bench.rig.dropped_packets(), 0);
        prop_assert!(bench.rig.switch().highest_input() <= switch_buffer as usize);
    }
}
