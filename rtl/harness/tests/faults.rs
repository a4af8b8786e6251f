//! Links that break: whoever waits is told, the link is disabled or recovers, and counters say so.

mod common;

use edm::pcs::frame::encode_frame;
use proptest::prelude::*;
use rtl_harness::system::{Access, End, Probe, Request, System, Variant};
use std::cell::Cell;
use std::collections::BTreeMap;

const READ: Request = Request { target: 1, access: Access::Read { bytes: 64 }, there: 64, here: 4096, tag: 5 };

/// Runs until the first request of a node ends, or so many cycles.
fn first_end(system: &mut System, node: usize, patience: u64) -> Option<(End, u16)> {
    for _ in 0..patience {
        system.drive();
        let end = system.ends(node).next();
        system.step();
        if end.is_some() {
            return end;
        }
    }
    None
}

#[test]
fn a_link_that_breaks_in_an_answer_ends_it_with_null_and_is_disabled() {
    let mut system = System::new(Variant::Two);
    system.submit(0, READ);
    let mut answer_begins = None;
    let mut end = None;
    for cycle in 0..200u64 {
        // Two cycles from the offer to the line; the fourth data block loses its synchronisation
        // bits.
        if answer_begins.is_some_and(|begins| cycle == begins + 2 + 4) {
            system.noise(1, true, 0b11);
        }
        system.drive();
        if system.probe(1, Probe::HostOut) && answer_begins.is_none() {
            answer_begins = Some(cycle);
        }
        end = end.or(system.ends(0).next());
        system.step();
    }
    assert_eq!(end, Some((End::Null, READ.tag)));
    assert!(system.is_down(1, true), "the switch disables the link with the fault");
    assert!(!system.is_down(0, false) && !system.is_down(0, true), "the reader's link is good");
    let wrong = system.wrong();
    assert!(wrong.port_faults > 0 && wrong.violations == 1, "{wrong:?}");
    // The memory node is gone: the timer answers.
    system.submit(0, READ);
    assert_eq!(first_end(&mut system, 0, 1_000), None);
    assert_eq!(first_end(&mut system, 0, 25_000), Some((End::ReadExpired, READ.tag)));
    assert_eq!(system.wrong().refused, 1, "the scheduler takes no demand for a dead port");
    // Frames have their own check and still pass.
    let (mut frame, mut blocks) = (vec![7; 64], Vec::new());
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0]);
    encode_frame(&frame, &mut blocks).expect("the length is allowed");
    system.send_frame(1, blocks.clone());
    for _ in 0..200 {
        system.cycle();
    }
    assert_eq!(system.received(0), blocks);
}

#[test]
fn requests_that_make_no_sense_are_refused_by_the_host() {
    let mut system = System::new(Variant::Two);
    let bad = [
        Request { target: 2, ..READ },
        Request { target: 0, ..READ },
        Request { target: 511, ..READ },
        Request { access: Access::Read { bytes: 0 }, ..READ },
        Request { access: Access::Write { bytes: 0 }, ..READ },
    ];
    for request in bad {
        system.submit(0, request);
        assert_eq!(first_end(&mut system, 0, 10), Some((End::Refused, READ.tag)), "{request:?}");
    }
    system.submit(0, READ);
    assert_eq!(first_end(&mut system, 0, 100), Some((End::Answered, READ.tag)));
    // Far outside the memory: zeros, and a count.
    system.submit(0, Request { there: u64::MAX - 3, ..READ });
    assert_eq!(first_end(&mut system, 0, 100), Some((End::Answered, READ.tag)));
    assert_eq!(system.wrong().outside, 1);
}

/// A read longer than 64 KiB has the high half of its size in the payload.
#[test]
fn a_read_longer_than_64_kib_is_answered_whole() {
    let mut system = System::new(Variant::Two);
    let access = Access::Read { bytes: 66_000 };
    system.submit(0, Request { access, there: 0, here: 0, ..READ });
    assert_eq!(first_end(&mut system, 0, 40_000), Some((End::Answered, READ.tag)));
    let wrong = system.wrong();
    assert_eq!(wrong.unexpected + wrong.violations + wrong.lost + wrong.refused, 0, "{wrong:?}");
    assert!(wrong.outside > 0, "both memories have 64 KiB");
}

/// A gap in cycles, the node, which end of its link, and the bits that change.
type Noise = (u16, usize, bool, u128);

fn noise() -> impl Strategy<Value = Vec<Noise>> {
    let bits = prop_oneof![3 => (0u32..66).prop_map(|bit| 1u128 << bit), 1 => 1u128..1 << 66];
    prop::collection::vec((0u16..120, 0usize..3, any::<bool>(), bits), 1..40)
}

fn requests() -> impl Strategy<Value = Vec<(u16, usize, usize, u32, bool)>> {
    prop::collection::vec((0u16..80, 0usize..3, 1usize..3, 1u32..300, any::<bool>()), 1..60)
}

/// What became of a schedule.
struct Survived {
    cycles: u64,
    /// Faults and breaches.
    wrong: u64,
    /// Demands that were longer than their messages, and that their sources have withdrawn.
    withdrawn: u64,
}

/// Every request ends, whatever the lines do; and when they are quiet again, all is as before.
fn survives(noise: &[Noise], requests: &[(u16, usize, usize, u32, bool)]) -> Result<Survived, TestCaseError> {
    let mut system = System::new(Variant::Three);
    let mut noises = BTreeMap::new();
    let mut at = 0;
    for (gap, node, at_switch, bits) in noise {
        at += u64::from(*gap);
        noises.insert(at, (*node, *at_switch, *bits));
    }
    let mut ends = 0;
    let mut count = |system: &mut System, cycles: u64| {
        for _ in 0..cycles {
            if let Some((node, at_switch, bits)) = noises.remove(&system.cycles()) {
                system.noise(node, at_switch, bits);
            }
            system.drive();
            ends += (0..3).map(|node| system.ends(node).count()).sum::<usize>();
            system.step();
        }
        ends
    };
    for (gap, node, far, bytes, is_write) in requests {
        let access = if *is_write { Access::Write { bytes: *bytes } } else { Access::Read { bytes: *bytes } };
        let target = ((node + far) % 3) as u32;
        count(&mut system, u64::from(*gap));
        system.submit(*node, Request { target, access, there: 0x1000, here: 0x2000, tag: 1 });
    }
    // Requests behind others wait for as many timeouts.
    let mut left = 400_000;
    while count(&mut system, 1_000) < requests.len() && left > 0 {
        left -= 1_000;
    }
    prop_assert_eq!(count(&mut system, 0), requests.len(), "requests end; {:?}", system.wrong());
    count(&mut system, 45_000);
    let wrong = system.wrong();
    let all = wrong.host_faults + wrong.port_faults + wrong.unexpected + wrong.violations;
    count(&mut system, 1_000);
    prop_assert_eq!(system.wrong(), wrong, "a host is still granted what it never had");
    // Quiet again: reads and writes of all pairs are answered in time.
    for node in 0..3 {
        for far in 1..3 {
            let target = ((node + far) % 3) as u32;
            system
                .submit(node, Request { target, access: Access::Write { bytes: 64 }, there: 0x3000, here: 0, tag: 2 });
            system.submit(
                node,
                Request { target, access: Access::Read { bytes: 64 }, there: 0x3000, here: 0x4000, tag: 3 },
            );
        }
    }
    let mut good = 0;
    for _ in 0..5_000 {
        system.drive();
        for node in 0..3 {
            let ends: Vec<_> = system.ends(node).collect();
            prop_assert!(ends.iter().all(|(end, _)| matches!(end, End::Answered | End::Sent)), "{ends:?}");
            good += ends.len();
        }
        system.step();
    }
    prop_assert_eq!(good, 12, "the links have recovered; {:?}", system.wrong());
    Ok(Survived { cycles: system.cycles(), wrong: all, withdrawn: system.withdrawals().0 })
}

#[test]
fn noise_on_all_lines_is_survived_and_links_recover() {
    let (seen, withdrawn) = (Cell::new(0), Cell::new(0));
    let cycles = common::run(&(noise(), requests()), 1, |(noise, requests)| {
        let survived = survives(&noise, &requests)?;
        seen.set(seen.get() + survived.wrong);
        withdrawn.set(withdrawn.get() + survived.withdrawn);
        Ok(survived.cycles)
    });
    let (seen, withdrawn) = (seen.get(), withdrawn.get());
    eprintln!("{cycles} cycles, {seen} faults and breaches survived, {withdrawn} demands withdrawn");
    assert!(seen > 0, "the noise hit nothing");
}

/// The request of a read is lost on the line to its memory node, which gets the grants of all later
/// chunks. The reader's timer ends the read, and the memory node withdraws what it was granted once.
/// Ids come round meanwhile, and no later read has more than it is granted.
#[test]
fn what_was_granted_for_a_lost_request_is_withdrawn_once() {
    let mut system = System::new(Variant::Three);
    let read = |tag| Request { access: Access::Read { bytes: 600 }, tag, ..READ };
    system.submit(0, read(0));
    let (mut offered, mut ends) = (None, Vec::new());
    for cycle in 0..45_000 {
        if offered.is_some_and(|at| cycle == at + 2) {
            system.noise(1, false, 0b11);
        }
        system.drive();
        if system.probe(1, Probe::PortOut) && offered.is_none() {
            offered = Some(cycle);
        }
        ends.extend(system.ends(0));
        system.step();
    }
    assert_eq!(ends, [(End::ReadExpired, 0)]);
    let wrong = system.wrong();
    assert_eq!((system.withdrawals(), wrong.unexpected, wrong.host_faults), ((0, 1), 1, 2), "{wrong:?}");
    for tag in 1..=200 {
        system.submit(0, read(tag));
        assert_eq!(first_end(&mut system, 0, 1_000), Some((End::Answered, tag)));
    }
    assert_eq!((system.withdrawals(), system.wrong()), ((0, 1), wrong));
}

/// A bit of an /N/ that says 1 byte makes it say 2^19 + 1. `make rtl` has found it.
#[test]
fn a_demand_that_noise_has_made_longer_is_survived() {
    let reads = [52, 44, 13, 13, 49, 51, 3, 55, 42, 59, 25, 57, 76].map(|gap| (gap, 0, 1, 1, false));
    let requests: Vec<_> = reads.into_iter().chain([(65, 2, 1, 1, true)]).collect();
    let noise = [44, 10, 8, 106, 83, 46, 77, 114, 4].map(|gap| (gap, 0, false, 1));
    let noise: Vec<_> = noise.into_iter().chain([(116, 2, true, 1 << 46)]).collect();
    let survived = survives(&noise, &requests).unwrap();
    assert_eq!(survived.withdrawn, 1);
}

/// Cycles until a write of these bytes and one of 64 B behind it have left, and withdrawals: those
/// that named a demand, and the others. A bit of the size in the first /N/ flips on the line, or
/// none.
fn two_writes(bytes: u32, bit: Option<u32>) -> (u64, (u64, u64)) {
    let mut system = System::new(Variant::Three);
    let write = |bytes| Request { target: 1, access: Access::Write { bytes }, there: 64, here: 4096, tag: 1 };
    system.submit(0, write(bytes));
    let (mut offered, mut sent, mut last) = (None, 0, 0);
    for cycle in 0..2_000 {
        // The descrambler repeats a wrong bit in the next block.
        if offered.is_some_and(|at| cycle == at + 3) {
            system.submit(0, write(64));
        }
        // Two cycles from the offer to the line. The size begins behind two synchronisation bits,
        // the type, the target and the id.
        if let Some(bit) = bit.filter(|_| offered.is_some_and(|at| cycle == at + 2)) {
            system.noise(0, true, 1 << (2 + 8 + 9 + 8 + bit));
        }
        system.drive();
        if system.probe(0, Probe::HostOut) {
            offered = offered.or(Some(cycle));
        }
        for (end, _) in system.ends(0) {
            assert_eq!(end, End::Sent);
            (sent, last) = (sent + 1, cycle);
        }
        system.step();
    }
    assert_eq!(sent, 2, "both leave; {:?}", system.wrong());
    (last, system.withdrawals())
}

/// Cycles until a read of 64 B is answered that comes behind one of so many bytes, and withdrawals.
/// The first one asks for a bit more, which flips on the line between the switch and the memory
/// node, or for no more. Behind both, the node reads 64 B of the third node so many times.
fn two_reads(bytes: u32, bit: Option<u32>, others: u16) -> (u64, (u64, u64)) {
    let mut system = System::new(Variant::Three);
    let asked = bytes | bit.map_or(0, |bit| 1 << bit);
    for (bytes, tag) in [(asked, 1), (64, 2)] {
        system.submit(0, Request { access: Access::Read { bytes }, tag, ..READ });
    }
    for tag in 3..3 + others {
        system.submit(0, Request { target: 2, access: Access::Read { bytes: 64 }, tag, ..READ });
    }
    let (mut offered, mut answered) = (None, None);
    for cycle in 0..2_000 {
        // The size begins behind two synchronisation bits, the type and 32 bits of the header.
        if let Some(bit) = bit.filter(|_| offered.is_some_and(|at| cycle == at + 2)) {
            system.noise(1, false, 1 << (2 + 8 + 32 + bit));
        }
        system.drive();
        if system.probe(1, Probe::PortOut) {
            offered = offered.or(Some(cycle));
        }
        for end in system.ends(0) {
            assert!(answered.is_none() || end.1 != 2, "{end:?}");
            answered = (end == (End::Answered, 2)).then_some(cycle).or(answered);
        }
        system.step();
    }
    let answered = answered.unwrap_or_else(|| panic!("{bytes} bytes: the second waits; {:?}", system.wrong()));
    (answered, system.withdrawals())
}

/// Cycles from a grant for nothing to the end of its demand, besides the chunk before it: emit, out
/// and in, take, grant queue; the decision; the withdrawal: two registers, out and in, identify,
/// insert, and the rest of an iteration.
const ROUND_TRIP: u64 = 1 + 2 + 2 + 2 + 4 + 1 + 2 + 2 + 2 + 1 + 2 + 2;

/// What comes behind a ghost waits for one round trip of a grant and its withdrawal, and for chunks
/// that are granted meanwhile. A chunk makes so many blocks; `play` gives the cycles and the
/// withdrawals for a size and a bit that flips in it. So many shorter messages may go first.
fn lasts_a_round_trip(chunk: u64, first: u64, bits: &[u32], play: impl Fn(u32, Option<u32>) -> (u64, (u64, u64))) {
    let round_trip = ROUND_TRIP + chunk;
    // One chunk a round trip more than was asked for, and one that has just been granted.
    let meanwhile = round_trip.div_ceil(chunk);
    let most = round_trip + (2 + first) * chunk;
    for bytes in [1, 64, 128, 300] {
        let (without, none) = play(bytes, None);
        assert_eq!(none, (0, 0));
        for &bit in bits {
            let (with, (withdrawn, idle)) = play(bytes, Some(bit));
            let what = format!("{bytes} bytes and 2^{bit}: {} cycles more, {idle} idle", with - without);
            eprintln!("{what}");
            assert_eq!(withdrawn, 1, "{what}");
            assert!(idle <= meanwhile, "{what}: {meanwhile} are allowed");
            assert!(with <= without + most, "{what}: {most} are allowed");
        }
    }
}

#[test]
fn a_ghost_lasts_a_round_trip_and_the_chunks_granted_meanwhile() {
    lasts_a_round_trip(edm::pcs::memory::write_blocks(64), 0, &[9, 12, 19, 31], two_writes);
}

/// The memory node withdraws what is more than the answer. Reads of a third node are shorter than
/// the ghost, so its next grant comes when the answer is over, and not only while it is open.
#[test]
fn a_ghost_of_a_read_lasts_no_longer() {
    for others in [0, 1, 3] {
        eprintln!("{others} reads of a third node");
        lasts_a_round_trip(edm::pcs::memory::response_blocks(64), others.into(), &[9, 12, 15], |bytes, bit| {
            two_reads(bytes, bit, others)
        });
    }
}
