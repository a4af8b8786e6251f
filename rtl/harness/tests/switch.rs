//! The whole switch in gates and `crates/edm`: every block on every line out in the same cycle, the
//! same frames, counters and states, whatever the hosts send.

mod common;
#[path = "common/hosts.rs"]
mod hosts;

use edm::pcs::memory::response_blocks;
use hosts::{Hosts, Plan, Step, doing_of};
use proptest::prelude::*;
use rtl_harness::switch::{Counts, Lockstep, Variant};
use rtl_harness::talker::Doing;
use std::cell::Cell;

fn plan(ports: u32, breaches: u8) -> impl Strategy<Value = Plan> {
    let gap = (0u8..8, 0u8..60).prop_map(|(long, gap)| if long < 7 { gap % 5 } else { gap });
    let numbers = (0u8..100 + breaches, any::<u32>(), any::<u32>(), any::<u64>());
    let step = (gap, 0..ports, numbers).prop_map(move |(gap, port, numbers)| (gap, port, doing_of(ports, numbers)));
    let manners = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..30), ports as usize);
    (prop::collection::vec(step, 1..160), manners)
}

/// Both play a plan.
fn play(variant: Variant, plan: &Plan, is_honest: bool) -> Result<Counts, String> {
    let (mut both, mut hosts) = (Lockstep::new(variant, is_honest), Hosts::new(variant, plan, is_honest));
    loop {
        both.compare()?;
        match hosts.cycle(both.model()) {
            Some(inputs) => both.step(&inputs)?,
            None => return Ok(both.counts()),
        }
    }
}

/// Gates and model agree for a `share`th of the cycles. Returns what has happened.
fn agree(variant: Variant, share: u64, breaches: u8) -> Counts {
    let sums = Cell::new(Counts::default());
    let is_honest = breaches == 0;
    common::run(&plan(variant.limits().ports, breaches), share, |plan| {
        let counts = play(variant, &plan, is_honest).map_err(TestCaseError::fail)?;
        sums.set(sum(sums.get(), counts));
        Ok(counts.cycles)
    });
    let sums = sums.get();
    eprintln!("{variant:?}, breaches {breaches}: alike: {sums:?}");
    sums
}

fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        cycles: a.cycles + b.cycles,
        passed: a.passed + b.passed,
        granted: a.granted + b.granted,
        refused: a.refused + b.refused,
        withdrawn: a.withdrawn + b.withdrawn,
        idle: a.idle + b.idle,
        violations: a.violations + b.violations,
        lost: a.lost + b.lost,
        faults: a.faults + b.faults,
        down: a.down + b.down,
        ended: a.ended + b.ended,
    }
}

#[test]
fn every_block_of_honest_hosts_leaves_in_its_cycle() {
    let seen = agree(Variant::Three, 2, 0);
    assert!(seen.passed > 0 && seen.granted > 0 && seen.refused > 0 && seen.withdrawn > 0, "the plans tried nothing");
    assert_eq!((seen.faults, seen.down), (0, 0), "the lines have no fault");
}

#[test]
fn every_block_leaves_in_its_cycle_whatever_the_hosts_break() {
    let seen = agree(Variant::Three, 2, 40);
    let Counts { refused, withdrawn, idle, violations, faults, down, ended, .. } = seen;
    let all = [refused, withdrawn, idle, violations, faults, down, ended];
    assert!(all.iter().all(|count| *count > 0), "each kind is counted: {all:?}");
}

/// A sender whose chunk for port 1 stands still holds up the requests for it, so more of them come than
/// there is room for. One that is dropped makes no demand: its grant would find no request, and no
/// later one of the pair would pass.
#[test]
fn a_request_that_is_dropped_makes_no_demand_and_later_ones_of_its_pair_pass() {
    const BYTES: u32 = 64;
    let storm = [
        (0, 2, Doing::Write { target: 1, bytes: BYTES, batch: 1 }),
        (PAUSES_AFTER, 2, Doing::Pause { cycles: 38 }),
        (0, 0, Doing::Storm { memory: 1, count: 24 }),
    ];
    let last = (250, 0, Doing::Read { memory: 1, bytes: BYTES });
    let seen = |steps: Vec<Step>| play(Variant::Three, &(steps, vec![vec![0]; 3]), true).unwrap();
    let without = seen(storm.to_vec());
    assert!(without.violations > 0, "requests are dropped: {without:?}");
    let with = seen([storm.as_slice(), &[last]].concat());
    assert_eq!(with.violations, without.violations);
    assert_eq!(with.passed - without.passed, response_blocks(BYTES), "the last read is answered");
}

/// Frames have half of the line of port 1, and two hosts write to it until its queue is full. Then its
/// link is disabled: in that cycle it takes again what is offered, and drops it.
#[test]
fn a_port_that_is_disabled_with_a_full_queue_holds_up_nobody() {
    let writes = [0, 2].map(|port| (0, port, Doing::Write { target: 1, bytes: 4_000, batch: 1 }));
    let frames = (0, 1, Doing::FrameToHost { bytes: 4_000 });
    let faults = [1; 4].map(|gap| (gap, 1, Doing::Flip { bits: 1 }));
    for wait in 200..240 {
        let steps = [writes.as_slice(), &[frames, (wait, 1, Doing::Flip { bits: 1 })], &faults].concat();
        let seen =
            play(Variant::Three, &(steps, vec![vec![0]; 3]), true).unwrap_or_else(|error| panic!("{wait}: {error}"));
        assert_eq!(seen.down, 1, "the link is disabled: {seen:?}");
    }
}

/// Cycles from an /N/ until its chunk is on the line, but for its end.
const PAUSES_AFTER: u8 = 30;

#[cfg(feature = "large")]
#[test]
fn every_block_leaves_in_its_cycle_with_four_ports_first_come_first_served() {
    agree(Variant::Four, 10, 0);
    agree(Variant::Four, 10, 40);
}
