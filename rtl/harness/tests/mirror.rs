//! The gates' filter for two networks and `edm::mirror` pass the same copies.

mod common;

use base::NodeId;
use edm::pcs::block::Block;
use edm::{Body, Grant, Message, MessageId, Modify};
use proptest::prelude::*;
use rtl_harness::mirror::{Arrival, Copy, LAG_MAX, Lockstep, NODES};
use std::cell::Cell;
use std::collections::VecDeque;

fn copy() -> impl Strategy<Value = Copy> {
    // Now and then a node that does not exist.
    let peer = || prop_oneof![12 => 0..NODES, 1 => NODES..512];
    let grant = (peer(), any::<u8>(), 1u16..300)
        .prop_map(|(peer, id, bytes)| Copy::Grant(Grant { target: NodeId(peer), id: MessageId(id), bytes }));
    let body = prop_oneof![
        (any::<u64>(), 1u32..100_000).prop_map(|(address, bytes)| Body::ReadRequest { address, bytes }),
        any::<u64>().prop_map(|address| Body::ReadModifyWrite { address, modify: Modify::FetchAndAdd { addend: 1 } }),
        (any::<u64>(), 1u32..60, any::<bool>()).prop_map(|(address, bytes, last)| Body::WriteRequest {
            address,
            bytes,
            last
        }),
        (0u32..60).prop_map(|bytes| Body::ReadResponse { bytes, last: true }),
    ];
    let message = (peer(), any::<u8>(), body).prop_map(|(peer, id, body)| {
        Copy::Message(Message { source: NodeId(peer), target: NodeId(0), id: MessageId(id), body })
    });
    prop_oneof![2 => grant, 3 => message]
}

/// What both networks carry, each in an order of its own; where the primary ends; gaps.
type Plan = (Vec<Copy>, Vec<usize>, Option<usize>, Vec<bool>);

fn plan() -> impl Strategy<Value = Plan> {
    let copies = prop::collection::vec(copy(), 1..60);
    let swaps = prop::collection::vec(0usize..60, 0..20);
    (copies, swaps, prop::option::of(0usize..60), prop::collection::vec(any::<bool>(), 1..200))
}

/// Blocks of an interface, each with the copy that it begins.
fn line_of(copies: &[Copy]) -> VecDeque<(Block, Option<Copy>)> {
    let blocks_of = |copy: &Copy| {
        let blocks = copy.blocks().expect("the numbers fit");
        let copy = *copy;
        blocks.into_iter().enumerate().map(move |(index, block)| (block, (index == 0).then_some(copy)))
    };
    copies.iter().flat_map(blocks_of).collect()
}

fn play((copies, swaps, dies, gaps): &Plan, seen: &Cell<(u64, u64)>) -> Result<u64, TestCaseError> {
    let mut backup = copies.clone();
    for at in swaps {
        let at = at % copies.len();
        backup.swap(at, (at + 1) % copies.len());
    }
    let alive = dies.map_or(copies.len(), |dies| dies.min(copies.len()));
    let mut lines = [line_of(&copies[..alive]), line_of(&backup)];
    let mut both = Lockstep::default();
    let mut cycles = 0;
    for gap in gaps.iter().cycle() {
        let mut arrivals: [Arrival; 2] = [None; 2];
        for (interface, line) in lines.iter_mut().enumerate() {
            if *gap != (interface == 0) || cycles % 3 == 0 {
                arrivals[interface] = line.pop_front();
            }
        }
        both.cycle(arrivals).map_err(TestCaseError::fail)?;
        cycles += 1;
        if lines.iter().all(VecDeque::is_empty) {
            break;
        }
    }
    both.cycle([None; 2]).map_err(TestCaseError::fail)?;
    let (passed, dropped) = both.seen();
    seen.set((seen.get().0 + passed, seen.get().1 + dropped));
    Ok(cycles)
}

#[test]
fn the_first_copies_of_two_networks_pass_as_in_the_model() {
    let seen = Cell::new((0, 0));
    let cycles = common::run(&plan(), 8, |plan| play(&plan, &seen));
    let (passed, dropped) = seen.get();
    eprintln!("{cycles} cycles, {passed} messages passed and {dropped} second copies dropped alike");
    assert!(passed > 0 && dropped > 0, "the plans tried nothing");
}

fn grant() -> (Block, Copy) {
    let copy = Copy::Grant(Grant { target: NodeId(1), id: MessageId(3), bytes: 64 });
    (copy.blocks().expect("the numbers fit")[0], copy)
}

#[test]
fn the_backup_may_fall_back_as_far_as_its_counter_goes_and_takes_over() {
    let (block, copy) = grant();
    let mut both = Lockstep::default();
    let mut say = |interface: usize, count: u64| {
        for _ in 0..count {
            let mut arrivals = [None; 2];
            arrivals[interface] = Some((block, Some(copy)));
            both.cycle(arrivals).unwrap();
        }
        both.seen()
    };
    assert_eq!(say(0, LAG_MAX - 1), (LAG_MAX - 1, 0));
    assert_eq!(say(1, LAG_MAX - 1), (LAG_MAX - 1, LAG_MAX - 1));
    assert_eq!(say(1, 5), (LAG_MAX + 4, LAG_MAX - 1));
}

/// The model counts on; the gates give the interface up. So they differ in the first copy that the
/// lost interface would bring.
#[test]
fn an_interface_that_has_fallen_back_too_far_does_not_return() {
    let (block, copy) = grant();
    let mut both = Lockstep::default();
    for _ in 0..LAG_MAX + 2 {
        both.cycle([Some((block, Some(copy))), None]).unwrap();
    }
    for _ in 0..LAG_MAX + 2 {
        both.cycle([None, Some((block, Some(copy)))]).unwrap();
    }
    let differs = both.cycle([None, Some((block, Some(copy)))]);
    assert!(differs.is_err_and(|error| error.starts_with("interface 1: model Some")));
}

#[test]
fn networks_are_abandoned_as_in_the_model() {
    let mut both = Lockstep::default();
    both.lose(None).unwrap();
    both.lose(Some(1)).unwrap();
    let mut other = Lockstep::default();
    other.lose(Some(1)).unwrap();
    other.lose(Some(0)).unwrap();
}
