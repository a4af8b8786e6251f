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
use rtl_harness::system::{Access, Descrambler, End, Request, Scrambler, System, Variant, Wrong};
use std::cell::Cell;
use std::collections::VecDeque;

const NODES: usize = 2;
/// The bits of an idle.
const IDLE: u128 = 0x1e << 2 | 0b01;
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

/// Says other blocks in place of idles, in one direction of a link.
#[derive(Default)]
struct Liar {
    heard: Descrambler,
    says: Scrambler,
    waiting: VecDeque<Block>,
    /// Whether a message of the true sender is on the line: nothing may come between its blocks.
    is_open: bool,
    said: u64,
}

impl Liar {
    /// What is on the line instead of these bits.
    fn push(&mut self, line: u128) -> u128 {
        let mut bits = self.heard.push(line);
        match bits >> 2 & 0xff {
            0x33 if bits & 3 == 1 => self.is_open = true,
            0x2d if bits & 3 == 1 => self.is_open = false,
            _ => {}
        }
        if bits == IDLE
            && !self.is_open
            && let Some(block) = self.waiting.pop_front()
        {
            self.said += 1;
            bits = block.to_bits();
        }
        self.says.push(bits)
    }
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

/// Plays storms beside requests, and then requests alone. Returns cycles, blocks said, and counters.
fn survives(storms: &[Storm]) -> Result<(u64, u64, Wrong), TestCaseError> {
    let mut rack = Rack::new();
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
    // A demand for more than there is: it holds up the one who lied (rtl/edm/README.md).
    let has_ghost = wrong.unexpected > before.unexpected;
    let has_lied = |node| storms.iter().any(|storm| storm.to_switch && storm.node == node);
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
    for (node, good) in good.into_iter().enumerate() {
        let waits = has_ghost && has_lied(node);
        prop_assert!(good == 2 || waits, "the links have recovered; {:?}", rack.system.wrong());
    }
    prop_assert!(has_ghost || rack.system.wrong() == wrong, "nothing is wrong any more");
    Ok((rack.system.cycles(), said, wrong))
}

#[test]
fn storms_of_notifications_and_grants_for_nobody_are_survived() {
    let (said, refused, violations, unexpected) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let add = |to: &Cell<u64>, count: u64| to.set(to.get() + count);
    let cycles = common::run(&storms(), 1, |storms| {
        let (cycles, blocks, wrong) = survives(&storms)?;
        add(&said, blocks);
        add(&refused, wrong.refused);
        add(&violations, wrong.violations);
        add(&unexpected, wrong.unexpected);
        Ok(cycles)
    });
    let [refused, violations, unexpected] = [refused.get(), violations.get(), unexpected.get()];
    eprintln!(
        "{cycles} cycles, {} lies: {refused} refused, {violations} breaches, {unexpected} unexpected",
        said.get()
    );
    assert!(refused > 0 && violations > 0 && unexpected > 0, "each kind is counted");
}
