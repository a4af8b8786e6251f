//! Hosts and a switch that break the protocol on purpose: storms of /N/ beyond X and for nobody, of
//! /G/ that nobody waits for, and of messages without a grant. Each comes with a scrambler of its
//! own, so that the line has no fault. Counters say so, every request ends, and after it all is as
//! before.

mod common;

use base::NodeId;
use edm::pcs::block::Block;
use edm::pcs::memory::{encode_grant, encode_message, encode_notification};
use edm::{Body, Grant, Message, MessageId, Notification};
use proptest::prelude::*;
use rtl_harness::liar::Liar;
use rtl_harness::system::{Access, End, Request, System, Variant, Wrong};
use std::cell::Cell;

const NODES: usize = 2;
/// Ids of writes have the top bit.
const WRITE_ID: u8 = 0x80;

/// What is said, at a node's end of its link with the switch or at the switch's.
#[derive(Clone, Debug)]
struct Storm {
    node: usize,
    to_switch: bool,
    /// One block, so often.
    block: Block,
    times: u16,
}

struct Rack {
    system: System,
    /// By node: to the switch, and from it.
    liars: Vec<[Liar; 2]>,
}

impl Rack {
    fn new() -> Rack {
        let liars = (0..NODES).map(|_| Default::default()).collect();
        let mut rack = Rack { system: System::new(Variant::Two), liars };
        // Both scramblers begin with what the line has before the first cycle.
        rack.cycle();
        rack
    }

    fn cycle(&mut self) -> Vec<(usize, End)> {
        self.system.drive();
        for node in 0..NODES {
            for (liar, at_switch) in self.liars[node].iter_mut().zip([true, false]) {
                let line = self.system.line(node, at_switch);
                let says = liar.push(line);
                if says != line {
                    self.system.replace(node, at_switch, says);
                }
            }
        }
        let ends = |node| self.system.ends(node).map(move |(end, _)| (node, end));
        let ended = (0..NODES).flat_map(ends).collect();
        self.system.step();
        ended
    }

    /// A read and a write of each node, of 64 B.
    fn submit(&mut self) {
        for node in 0..NODES {
            for access in [Access::Write { bytes: 64 }, Access::Read { bytes: 64 }] {
                let request = Request { target: 1 - node as u32, access, there: 0x3000, here: 0x4000, tag: 7 };
                self.system.submit(node, request);
            }
        }
    }
}

fn notification() -> impl Strategy<Value = Block> {
    let target = prop_oneof![3 => 0u32..2, 1 => 0u32..512];
    let bytes = prop_oneof![3 => 1u32..400, 1 => Just(0u32), 1 => Just(u32::MAX)];
    (target, any::<u8>(), bytes, 1u8..=16).prop_map(|(target, id, bytes, batch)| {
        let said = Notification { target: NodeId(target), id: MessageId(id), bytes, batch };
        encode_notification(&said).expect("it fits its fields")
    })
}

fn grant() -> impl Strategy<Value = Block> {
    let target = prop_oneof![3 => 0u32..2, 1 => 0u32..512];
    (target, any::<u8>(), any::<u16>()).prop_map(|(target, id, bytes)| {
        let said = Grant { target: NodeId(target), id: MessageId(id), bytes };
        encode_grant(&said).expect("it fits its fields")
    })
}

/// An RRES of one byte, which is one block.
fn answer() -> impl Strategy<Value = Block> {
    (0u32..3, 0u32..3, 0u8..WRITE_ID).prop_map(|(source, target, id)| {
        let body = Body::ReadResponse { bytes: 1, last: true };
        let message = Message { source: NodeId(source), target: NodeId(target), id: MessageId(id), body };
        let mut blocks = Vec::new();
        encode_message(&message, &[0], &mut blocks).expect("it is one byte");
        blocks[0]
    })
}

fn storms() -> impl Strategy<Value = Vec<Storm>> {
    let block = prop_oneof![4 => notification(), 3 => grant(), 2 => answer()];
    let storm = (0..NODES, any::<bool>(), block, prop_oneof![3 => 1u16..8, 1 => 100u16..400])
        .prop_map(|(node, to_switch, block, times)| Storm { node, to_switch, block, times });
    prop::collection::vec(storm, 1..24)
}

/// What became of storms.
struct Survived {
    cycles: u64,
    /// Blocks said.
    said: u64,
    wrong: Wrong,
    withdrawn: u64,
    /// Nodes that wait since they lied about a size and do not withdraw it.
    waiting: u64,
}

/// Plays storms beside requests, and then requests alone. Some nodes withdraw nothing.
fn survives(storms: &[Storm], withhold: [bool; NODES]) -> Result<Survived, TestCaseError> {
    let mut rack = Rack::new();
    for (liars, withholds) in rack.liars.iter_mut().zip(withhold) {
        liars[0].withholds = withholds;
    }
    for Storm { node, to_switch, block, times } in storms {
        let liar = &mut rack.liars[*node][usize::from(!to_switch)];
        liar.waiting.extend((0..*times).map(|_| *block));
    }
    rack.submit();
    let mut ended = 0;
    // A lie may make a request end wrongly, but it ends; what was booked for nobody lapses.
    for _ in 0..60_000 {
        ended += rack.cycle().len();
    }
    let before = rack.system.wrong();
    prop_assert!(ended >= 2 * NODES, "{ended} requests end; {before:?}");
    (0..1_000).for_each(|_| drop(rack.cycle()));
    let wrong = rack.system.wrong();
    // A demand for more than there is: it holds up the one who lied and does not withdraw it.
    let has_ghost = wrong != before;
    let may_wait = |node: usize| withhold[node] && storms.iter().any(|storm| storm.to_switch && storm.node == node);
    prop_assert!(!has_ghost || (0..NODES).any(may_wait), "a host is still granted what it never had");
    let said = rack.liars.iter().flatten().map(|liar| liar.said).sum();
    prop_assert_eq!(wrong.host_faults + wrong.port_faults, 0, "the lines have no fault");
    rack.submit();
    let mut good = [0; NODES];
    for _ in 0..5_000 {
        for (node, end) in rack.cycle() {
            prop_assert!(matches!(end, End::Answered | End::Sent), "{node}: {end:?}; {:?}", rack.system.wrong());
            good[node] += 1;
        }
    }
    let waiting: Vec<usize> = (0..NODES).filter(|node| good[*node] < 2).collect();
    for node in &waiting {
        prop_assert!(has_ghost && may_wait(*node), "{} waits; {:?}", node, rack.system.wrong());
    }
    prop_assert!(has_ghost || rack.system.wrong() == wrong, "nothing is wrong any more");
    let (cycles, withdrawn, waiting) = (rack.system.cycles(), rack.system.withdrawals().0, waiting.len() as u64);
    Ok(Survived { cycles, said, wrong, withdrawn, waiting })
}

#[test]
fn storms_of_notifications_and_grants_for_nobody_are_survived() {
    let sums = Cell::new([0; 6]);
    let withhold = prop::array::uniform2(prop::bool::weighted(0.2));
    let cycles = common::run(&(storms(), withhold), 1, |(storms, withhold)| {
        let Survived { cycles, said, wrong, withdrawn, waiting } = survives(&storms, withhold)?;
        let new = [said, wrong.refused, wrong.violations, wrong.unexpected, withdrawn, waiting];
        let before = sums.get();
        sums.set(std::array::from_fn(|index| before[index] + new[index]));
        Ok(cycles)
    });
    let [said, refused, violations, unexpected, withdrawn, waiting] = sums.get();
    eprintln!(
        "{cycles} cycles, {said} lies: {refused} refused, {violations} breaches, {unexpected} unexpected, \
         {withdrawn} withdrawn, {waiting} liars wait"
    );
    assert!(refused > 0 && violations > 0 && unexpected > 0 && withdrawn > 0, "each kind is counted");
}

/// Three demands of 4 GiB that nobody has fill the channel of their pair. A node that withdraws
/// nothing waits for them, and nobody else does.
#[test]
fn a_liar_who_does_not_withdraw_harms_itself_alone() {
    let said = Notification { target: NodeId(1), id: MessageId(WRITE_ID | 9), bytes: u32::MAX, batch: 1 };
    let block = encode_notification(&said).expect("it fits its fields");
    let storms = [Storm { node: 0, to_switch: true, block, times: 40 }];
    let honest = survives(&storms, [false; NODES]).unwrap();
    assert!(honest.withdrawn > 0 && honest.waiting == 0);
    let liar = survives(&storms, [true, false]).unwrap();
    assert_eq!((liar.withdrawn, liar.waiting), (0, 1));
}
