//! The gates' filter for two networks and `edm::mirror` pass the same copies.

mod common;

use base::NodeId;
use edm::pcs::block::{Block, Content};
use edm::pcs::memory::Assembler;
use edm::{Body, Grant, Message, MessageId, Modify};
use proptest::prelude::*;
use rtl_harness::mirror::{Brings, Copy, DEPTH, LAG_MAX, Lockstep, NODES, is_stranger, peer_of};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

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
    // Now and then it ends what a silent port has begun: it is from a node to itself.
    let message = (peer(), any::<u8>(), body, 0u8..12).prop_map(|(peer, id, body, to_itself)| {
        let target = NodeId(if to_itself == 0 { peer } else { NODES });
        Copy::Message(Message { source: NodeId(peer), target, id: MessageId(id), body })
    });
    prop_oneof![2 => grant, 3 => message]
}

/// What becomes of an interface.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The message that comes in breaks off.
    Fault,
    /// The link is dead.
    Down,
    /// Nothing comes any more, and nobody says so.
    Silence,
}

/// What both networks carry, each in an order of its own; what happens to which interface after how
/// many cycles; which interfaces bring a block in a cycle.
type Plan = (Vec<Copy>, Vec<usize>, Vec<(u16, usize, Event)>, Vec<u8>);

fn plan() -> impl Strategy<Value = Plan> {
    let copies = prop::collection::vec(copy(), 1..60);
    let swaps = prop::collection::vec(0usize..60, 0..20);
    let event = prop_oneof![4 => Just(Event::Fault), 1 => Just(Event::Down), 1 => Just(Event::Silence)];
    let events = prop::collection::vec((0u16..300, 0usize..2, event), 0..3);
    (copies, swaps, events, prop::collection::vec(0u8..16, 1..200))
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

/// Messages by what is counted together: kind and peer.
fn sums<'a>(copies: impl Iterator<Item = &'a Copy>) -> BTreeMap<(u8, u32), u64> {
    let mut sums = BTreeMap::new();
    for copy in copies.filter(|copy| !is_stranger(**copy)) {
        let kind = match copy {
            Copy::Grant(grant) => grant.id.0 >> 7,
            Copy::Message(Message { body: Body::WriteRequest { .. }, .. }) => 2,
            Copy::Message(Message { body: Body::ReadResponse { .. }, .. }) => 3,
            Copy::Message(_) => 4,
        };
        *sums.entry((kind, peer_of(*copy))).or_default() += 1;
    }
    sums
}

/// What has happened in all plans.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    passed: u64,
    copies: u64,
    given_up: u64,
    /// Plans that an interface got through.
    whole: u64,
    lost: u64,
}

fn play((copies, swaps, events, bring): &Plan, seen: &Cell<Seen>) -> Result<u64, TestCaseError> {
    let mut backup = copies.clone();
    for at in swaps {
        let at = at % copies.len();
        backup.swap(at, (at + 1) % copies.len());
    }
    let mut lines = [line_of(copies), line_of(&backup)];
    let (mut failed, mut down) = ([false; 2], [false; 2]);
    let mut both = Lockstep::default();
    let mut whole = Vec::new();
    let (mut cycles, mut quiet) = (0, 0);
    for bring in bring.iter().cycle() {
        let mut brings: [Brings; 2] = Default::default();
        for (interface, line) in lines.iter_mut().enumerate() {
            let now = events.iter().filter(|(at, of, _)| u64::from(*at) == cycles && *of == interface);
            for (.., event) in now {
                failed[interface] = true;
                match event {
                    // The rest of the message is lost.
                    Event::Fault => {
                        brings[interface].is_broken = true;
                        while line.front().is_some_and(|(_, begins)| begins.is_none()) {
                            line.pop_front();
                        }
                    }
                    Event::Down => down[interface] = true,
                    Event::Silence => line.clear(),
                }
            }
            brings[interface].is_down = down[interface];
            // Mostly both, so that they are nearly in step. No plan may let one bring nothing for ever.
            let does = *bring < 12 || cycles % 16 == 0 || (u64::from(*bring) + cycles) % 2 == interface as u64;
            if does && !brings[interface].is_broken {
                brings[interface].block = line.pop_front().filter(|_| !down[interface]);
            }
        }
        whole.extend(both.cycle(brings).map_err(TestCaseError::fail)?.1);
        cycles += 1;
        quiet = if lines.iter().all(VecDeque::is_empty) { quiet + 1 } else { 0 };
        if quiet > 40 || down == [true; 2] {
            break;
        }
    }
    // Each message is whole once, if one interface has brought all.
    let gets_through = failed != [true; 2] && both.lost() == 0;
    if gets_through {
        prop_assert_eq!(sums(whole.iter()), sums(copies.iter()));
    }
    let (passed, second) = both.seen();
    let before = seen.get();
    seen.set(Seen {
        passed: before.passed + passed,
        copies: before.copies + second,
        given_up: before.given_up + 2 - both.alive() as u64,
        whole: before.whole + u64::from(gets_through),
        lost: before.lost + both.lost(),
    });
    Ok(cycles)
}

#[test]
fn the_first_copies_of_two_networks_pass_as_in_the_model() {
    let seen = Cell::new(Seen::default());
    let cycles = common::run(&plan(), 8, |plan| play(&plan, &seen));
    let seen = seen.get();
    eprintln!("{cycles} cycles alike: {seen:?}");
    let Seen { passed, copies, given_up, whole, lost } = seen;
    assert!(passed > 0 && copies > 0 && given_up > 0 && whole > 0 && lost > 0, "the plans tried nothing");
}

fn grant() -> (Block, Copy) {
    let copy = Copy::Grant(Grant { target: NodeId(1), id: MessageId(3), bytes: 64 });
    (copy.blocks().expect("the numbers fit")[0], copy)
}

/// Both interfaces bring a /G/ or nothing.
fn grants(which: [bool; 2]) -> [Brings; 2] {
    let (block, copy) = grant();
    which.map(|brings| Brings { block: brings.then_some((block, Some(copy))), ..Brings::default() })
}

#[test]
fn the_backup_may_fall_back_as_far_as_its_counter_goes_and_takes_over() {
    let mut both = Lockstep::default();
    let mut say = |interface: usize, count: u64| {
        for _ in 0..count {
            both.cycle(grants([interface == 0, interface == 1])).unwrap();
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
    let mut both = Lockstep::default();
    for _ in 0..LAG_MAX + 2 {
        both.cycle(grants([true, false])).unwrap();
    }
    for _ in 0..LAG_MAX + 2 {
        both.cycle(grants([false, true])).unwrap();
    }
    let differs = both.cycle(grants([false, true]));
    assert!(differs.is_err_and(|error| error.starts_with("the stream: model Some")));
}

fn answer(peer: u32, bytes: u32) -> Copy {
    let body = Body::ReadResponse { bytes, last: true };
    Copy::Message(Message { source: NodeId(peer), target: NodeId(0), id: MessageId(1), body })
}

/// The backup's long message is held up by the primary's /G/, and the primary's messages wait for it.
/// It breaks off when both queues are all but full, so the last interface loses blocks. Whichever these are,
/// what goes on of their message is never whole, and no block goes on outside one.
#[test]
fn a_block_that_the_last_interface_loses_takes_the_rest_of_its_message_with_it() {
    const BREAKS: usize = 2 * DEPTH - 1;
    let mut torn = 0;
    for first in 2..200 {
        // The last ones come when there is room again.
        let [sent, last] = [[answer(1, first), answer(1, 250)], [answer(1, 9), answer(1, 10)]];
        let mut primary: VecDeque<_> = [grant().1; DEPTH - 1].iter().flat_map(|copy| line_of(&[*copy])).collect();
        primary.extend(line_of(&sent));
        let mut backup = line_of(&[answer(2, 300)]);
        let mut both = Lockstep::default();
        let (mut whole, mut assembled, mut assembler) = (Vec::new(), Vec::new(), Assembler::default());
        for cycle in 0..140 {
            primary.extend(line_of(if cycle == 110 { &last } else { &[] }));
            let mut brings: [Brings; 2] = Default::default();
            brings[0].block = if cycle == 0 { None } else { primary.pop_front() };
            brings[1].is_broken = cycle == BREAKS;
            brings[1].block = backup.pop_front().filter(|_| cycle < BREAKS);
            let (block, copy) = both.cycle(brings).unwrap_or_else(|error| panic!("{first} B, cycle {cycle}: {error}"));
            whole.extend(copy.filter(|copy| matches!(copy, Copy::Message(_))));
            let of_message = block.filter(|block| !matches!(block.content(), Ok(Content::Grant(_))));
            assembled.extend(of_message.and_then(|block| assembler.push(block).ok()).flatten().map(Copy::Message));
        }
        assert_eq!(assembled, whole, "{first} B");
        assert!(both.lost() > 0 && whole.ends_with(&last), "{first} B: {whole:?}");
        torn += sent.len() + last.len() - whole.len();
    }
    assert!(torn > 0);
}

#[test]
fn of_two_interfaces_that_fail_together_the_backup_is_kept() {
    let mut both = Lockstep::default();
    both.cycle([Brings { is_broken: true, ..Brings::default() }; 2]).unwrap();
    let (block, _) = both.cycle(grants([true, true])).unwrap();
    assert_eq!((block, both.alive()), (Some(grant().0), 1));
}

#[test]
fn an_interface_that_stands_still_in_a_message_is_given_up_and_not_the_one_that_waits_for_it() {
    for still in 0..2 {
        let mut both = Lockstep::default();
        let mut lines = [line_of(&[answer(1, 60)]), line_of(&[answer(1, 60)])];
        let mut whole = Vec::new();
        for cycle in 0..60 {
            let mut brings: [Brings; 2] = Default::default();
            for (at, line) in lines.iter_mut().enumerate() {
                // The one that stands still begins first, and stops after three blocks.
                let comes = if at == still { cycle < 3 } else { cycle > 3 };
                brings[at].block = if comes { line.pop_front() } else { None };
            }
            whole.extend(both.cycle(brings).unwrap().1);
        }
        assert_eq!((whole, both.alive()), (vec![answer(1, 60)], 1), "interface {still} stands still");
    }
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
