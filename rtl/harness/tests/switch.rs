//! The whole switch in gates and `crates/edm`: every block on every line out in the same cycle, the
//! same frames, counters and states, whatever the hosts send.

mod common;

use edm::Modify;
use edm::pcs::block::{Block, Sync};
use edm::pcs::memory::response_blocks;
use proptest::prelude::*;
use rtl_harness::switch::{Counts, Lockstep, Variant};
use rtl_harness::talker::{Doing, Manners, Talker};
use std::cell::Cell;
use std::collections::VecDeque;

/// A host does something, so many cycles after the step before.
type Step = (u8, u32, Doing);
/// The steps, and how each host answers.
type Plan = (Vec<Step>, Vec<Vec<u8>>);

/// Numbers of which [`doing_of`] makes something: unions of strategies take longer.
type Numbers = (u8, u32, u32, u64);

fn plan(ports: u32, breaches: u8) -> impl Strategy<Value = Plan> {
    let gap = (0u8..8, 0u8..60).prop_map(|(long, gap)| if long < 7 { gap % 5 } else { gap });
    let numbers = (0u8..100 + breaches, any::<u32>(), any::<u32>(), any::<u64>());
    let step = (gap, 0..ports, numbers).prop_map(move |(gap, port, numbers)| (gap, port, doing_of(ports, numbers)));
    let manners = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..30), ports as usize);
    (prop::collection::vec(step, 1..160), manners)
}

fn bytes_of(number: u32) -> u32 {
    match number % 16 {
        0..9 => 1 + number / 16 % 64,
        9..14 => 1 + number / 16 % 300,
        14 => 64,
        _ if number & 0x70 == 0 => 65_000 + number / 128 % 2_000,
        _ => 0,
    }
}

fn peer_of(ports: u32, number: u32) -> u32 {
    // Now and then no port.
    if number.is_multiple_of(32) { number / 32 % 512 } else { number / 32 % ports }
}

fn doing_of(ports: u32, (kind, peer, size, any): Numbers) -> Doing {
    let (target, bytes) = (peer_of(ports, peer), bytes_of(size));
    match kind {
        0..34 => Doing::Write { target, bytes, batch: if any % 8 == 0 { 1 + (any / 8 % 16) as u8 } else { 1 } },
        34..66 => Doing::Read { memory: target, bytes },
        66..78 => Doing::Modify { memory: target, modify: modify_of(any) },
        78..84 => Doing::Withdraw { back: (any % 4) as u8 },
        84..92 => Doing::Frame { bytes: 14 + size as usize % 300 },
        92..100 => Doing::FrameToHost { bytes: 14 + size as usize % 300 },
        _ => breach_of(ports, target, bytes, size, any),
    }
}

fn modify_of(any: u64) -> Modify {
    match any % 3 {
        0 => Modify::CompareAndSwap { expected: any, new: any + 1 },
        1 => Modify::FetchAndAdd { addend: any },
        _ => Modify::Swap { new: any },
    }
}

fn breach_of(ports: u32, target: u32, bytes: u32, size: u32, any: u64) -> Doing {
    let id = (any >> 40) as u8;
    match any % 16 {
        0..4 => Doing::Chunk { target, source: peer_of(ports, size), id, bytes: bytes % 200 },
        4 if size.is_multiple_of(2) => Doing::Grant { target, id },
        4 => Doing::AskAsWrite { back: id % 2 },
        5 => Doing::Storm { memory: target, count: id % 24 },
        6..8 => Doing::Pause { cycles: (any >> 32) as u8 % 60 },
        8 => Doing::Flip { bits: 1 << (size % 66) },
        _ => Doing::Blocks {
            block: block_of(size, any),
            count: if size.is_multiple_of(64) { (any >> 48) as u8 % 40 } else { 1 },
        },
    }
}

/// A block that means something, or nothing.
fn block_of(size: u32, any: u64) -> Block {
    const TYPES: [u64; 12] = [0x1e, 0x78, 0x87, 0xd2, 0xff, 0x4b, 0x33, 0x2d, 0x00, 0x55, 0x66, 0x42];
    let kind = TYPES[size as usize % TYPES.len()];
    match any % 4 {
        0 => Block { sync: Sync::Data, payload: any },
        1 => Block { sync: Sync::Control, payload: kind },
        // A header that may make sense: small nodes, a short size.
        2 => Block { sync: Sync::Control, payload: kind | (any & 0x00ff_00ff_c1fc_0f9f | 8) << 8 },
        _ => Block { sync: Sync::Control, payload: kind | any << 8 },
    }
}

/// Both play a plan, until all is said and granted, but not for ever: a liar may have announced
/// what it never sends.
fn play(variant: Variant, (steps, manners): &Plan, is_honest: bool) -> Result<Counts, String> {
    let (ports, chunk) = (variant.limits().ports, variant.config().chunk.count() as u32);
    let mut both = Lockstep::new(variant, is_honest);
    let talker = |port: u32| {
        let manners = Manners { numbers: manners[port as usize].clone(), is_honest };
        Talker::new(port, chunk, variant.policy(), manners)
    };
    let mut talkers: Vec<Talker> = (0..ports).map(talker).collect();
    let mut frames = vec![VecDeque::new(); ports as usize];
    let mut steps = steps.iter().peekable();
    let (mut due, mut quiet, mut end) = (0, 0, u64::MAX);
    while quiet < 40 && both.model().now() < end {
        let now = both.model().now();
        while let Some((gap, port, doing)) = steps.peek()
            && due + u64::from(*gap) <= now
        {
            due = now;
            frames[*port as usize].extend(talkers[*port as usize].do_it(*doing));
            steps.next();
        }
        if steps.peek().is_none() && end == u64::MAX {
            end = now + 3_000;
        }
        both.compare()?;
        let model = both.model();
        let lines: Vec<u128> =
            (0..).zip(&mut talkers).map(|(port, talker)| talker.cycle(now, model.line(port))).collect();
        let next = |(port, queue): (usize, &mut VecDeque<Block>)| {
            if model.takes_frame(port) { queue.pop_front() } else { None }
        };
        let taken: Vec<Option<Block>> = frames.iter_mut().enumerate().map(next).collect();
        both.step(&lines, &taken)?;
        let is_quiet = steps.peek().is_none() && talkers.iter().all(Talker::is_quiet) && both.model().is_drained();
        quiet = if is_quiet && frames.iter().all(VecDeque::is_empty) { quiet + 1 } else { 0 };
    }
    both.compare()?;
    Ok(both.counts())
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
