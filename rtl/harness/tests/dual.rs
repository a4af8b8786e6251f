//! Hosts with two ports, and two switches: each request completes and takes effect once, whatever
//! becomes of one network. In step, each stage is in the cycle in which it is with one network.

mod common;

use edm::Modify;
use edm::pcs::block::{Block, Content};
use edm::pcs::frame::{FrameDecoder, encode_frame};
use proptest::prelude::*;
use rtl_harness::system::{Access, Descrambler, End, Probe, Request, Scrambler, System, Variant};
use rtl_harness::wave::{HERE, MEMORY, READER, THERE, Wave, pattern};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

const NODES: usize = 2;
/// Memory that nobody writes: the source of all data, the same at both nodes.
const CONSTANT_BYTES: usize = 2048;
/// A word of each node, that the other one adds to.
const COUNTER: u64 = 0x2000;
/// Where writes go, each to a place of its own, and where answers go.
const WRITES: u64 = 0x4000;
const ANSWERS: u64 = 0x8000;
const PLACE_BYTES: u64 = 512;

/// What a node asks the other one for.
#[derive(Clone, Copy, Debug)]
enum Asks {
    Read {
        from: u64,
        bytes: u32,
    },
    Write {
        from: u64,
        bytes: u32,
    },
    /// Adds one to the counter: twice would show.
    Count,
    /// Writes to a place and reads it, and both again with other data: each read has what was written
    /// before it, and nothing that is written after it.
    Turns {
        bytes: u32,
    },
    /// Sends a frame on one network.
    Frame {
        network: usize,
        bytes: usize,
    },
}

/// What happens to a network.
#[derive(Clone, Copy, Debug)]
enum Fails {
    /// Nothing.
    Nothing,
    /// A synchronisation bit changes on a link, once. A bit of data would go unseen, as with one
    /// network: memory blocks have no checksum.
    Bit { link: usize, to_switch: bool, bit: u32 },
    /// A fibre is cut: no light.
    Dark { link: usize, to_switch: bool },
    /// The switch is silent: idles on all lines from it, and nobody says so.
    Silent,
    /// It is lost, and all nodes are told.
    Lost,
}

/// Gap in cycles, node, request.
type Step = (u8, usize, Asks);

#[derive(Clone, Debug)]
struct Plan {
    steps: Vec<Step>,
    /// Which network fails how, after so many cycles.
    network: usize,
    fails: Fails,
    at: u16,
    /// By how many cycles its lines are longer, both ways.
    delay: usize,
    variant: Variant,
}

fn asks((kind, from, length, network): (u8, u64, u32, usize)) -> Asks {
    let bytes = if length % 4 == 0 { 1 + length % 301 } else { 1 + length % 72 };
    match kind {
        0..4 => Asks::Read { from, bytes },
        4..8 => Asks::Write { from, bytes },
        8..11 => Asks::Count,
        _ => Asks::Frame { network, bytes: 14 + length as usize % 300 },
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let asks = (0u8..12, 0u64..1400, any::<u32>(), 0usize..2).prop_map(asks);
    let gap = (0u8..8, 0u8..60).prop_map(|(long, gap)| if long < 6 { gap % 4 } else { gap });
    let steps = prop::collection::vec((gap, 0..NODES, asks), 1..30);
    let fails = (0u8..6, 0..NODES, any::<bool>(), 0u32..2).prop_map(|(kind, link, to_switch, bit)| match kind {
        0 => Fails::Nothing,
        1 | 2 => Fails::Bit { link, to_switch, bit },
        3 => Fails::Dark { link, to_switch },
        4 => Fails::Silent,
        _ => Fails::Lost,
    });
    let delay = prop_oneof![2 => Just(0usize), 1 => 1usize..30];
    (steps, 0usize..2, fails, 20u16..600, delay).prop_map(|(steps, network, fails, at, delay)| Plan {
        steps,
        network,
        fails,
        at,
        delay,
        variant: Variant::Dual,
    })
}

/// A longer line: what was on it is on it again, so many cycles later, with a scrambler of its own.
struct Longer {
    heard: Descrambler,
    says: Scrambler,
    blocks: VecDeque<u128>,
}

/// The bits of an idle.
const IDLE: u128 = 0x1e << 2 | 0b01;

impl Longer {
    fn new(cycles: usize) -> Longer {
        let blocks = std::iter::repeat_n(IDLE, cycles).collect();
        Longer { heard: Descrambler::default(), says: Scrambler::default(), blocks }
    }

    /// The block behind these bits, and what arrives instead of them; an idle if the sender is silent.
    fn push(&mut self, line: u128, is_silent: bool) -> (u128, u128) {
        let block = self.heard.push(line);
        self.blocks.push_back(if is_silent { IDLE } else { block });
        let arrives = self.blocks.pop_front().expect("it has just come");
        (block, self.says.push(arrives))
    }
}

/// Cycles in which all has left that was in the queues of a port.
const QUEUED_MAX: u64 = 200;

/// Whether a memory message begins or ends with it, or it is an /N/.
fn is_memory(block: u128) -> bool {
    let content = Block::from_bits(block).map(Block::content);
    let is = |content: &Content| {
        matches!(
            content,
            Content::MemoryStart(_) | Content::MemoryEnd(_) | Content::MemorySingle(_) | Content::Notification(_)
        )
    };
    content.is_ok_and(|content| content.as_ref().is_ok_and(is))
}

struct Rack {
    system: System,
    plan: Plan,
    /// Of the network that fails: by node, to the switch and from it.
    longer: Vec<[Longer; 2]>,
    /// By node: when it abandoned that network.
    abandoned: [Option<u64>; NODES],
    now: u64,
}

impl Rack {
    fn new(plan: Plan) -> Rack {
        let longer = || [Longer::new(plan.delay), Longer::new(plan.delay)];
        let longer = (0..NODES).map(|_| longer()).collect();
        let system = System::new(plan.variant);
        let mut rack = Rack { system, plan, longer, abandoned: [None; NODES], now: 0 };
        // Both scramblers begin with what the line has before the first cycle.
        rack.cycle();
        let constant = constant();
        for node in 0..NODES {
            rack.fill(node, &constant);
        }
        rack
    }

    /// A node's memory, while the lines are idle.
    fn fill(&mut self, node: usize, bytes: &[u8]) {
        for (at, word) in bytes.chunks(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("whole words"));
            self.system.poke(node, at as u64 * 8, Some(word));
            self.cycle();
        }
        self.system.poke(node, COUNTER, Some(0));
        self.cycle();
        self.system.poke(node, 0, None);
    }

    fn cycle(&mut self) -> Vec<(usize, End, u16)> {
        self.system.drive();
        for node in 0..NODES {
            for to_switch in [true, false] {
                self.line(node, to_switch);
            }
        }
        let ends = |node| self.system.ends(node).map(move |(end, tag)| (node, end, tag));
        let ended = (0..NODES).flat_map(ends).collect();
        self.system.step();
        self.now += 1;
        ended
    }

    /// What arrives on a line of the network that fails.
    fn line(&mut self, node: usize, to_switch: bool) {
        let Plan { network, fails, .. } = self.plan;
        let link = network * NODES + node;
        let sent = self.system.line(link, to_switch);
        let failed = self.failed();
        let is_silent = failed && !to_switch && matches!(fails, Fails::Silent | Fails::Lost);
        let longer = &mut self.longer[node][usize::from(!to_switch)];
        let (block, mut arrives) = longer.push(sent, is_silent);
        if to_switch && !self.system.network(node, network).0 {
            let since = *self.abandoned[node].get_or_insert(self.now);
            assert!(self.now < since + QUEUED_MAX || !is_memory(block), "node {node} still sends on network {network}");
        }
        match fails {
            Fails::Bit { link, to_switch: way, bit } if link == node && way == to_switch && self.is_now() => {
                arrives ^= 1 << bit;
            }
            Fails::Dark { link, to_switch: way } if failed && link == node && way == to_switch => arrives = 0,
            _ => {}
        }
        if arrives != sent {
            self.system.replace(link, to_switch, arrives);
        }
        if matches!(fails, Fails::Lost) && self.is_now() {
            self.system.lose_switch(network);
        }
    }

    fn fails_at(&self) -> u64 {
        BEGIN + u64::from(self.plan.at)
    }

    fn is_now(&self) -> bool {
        self.now == self.fails_at()
    }

    fn failed(&self) -> bool {
        self.now >= self.fails_at() && !matches!(self.plan.fails, Fails::Nothing)
    }
}

/// The memories are filled by then.
const BEGIN: u64 = (NODES * (CONSTANT_BYTES / 8 + 1) + 1) as u64;

fn constant() -> Vec<u8> {
    (0..CONSTANT_BYTES as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// What has happened in all plans.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    cycles: u64,
    requests: u64,
    copies: u64,
    given_up: u64,
    frames: u64,
}

/// What must be in memories and at decoders in the end.
#[derive(Default)]
struct Outcome {
    bytes: Vec<(usize, u64, Vec<u8>)>,
    counts: [u64; NODES],
    frames: BTreeMap<usize, Vec<Vec<u8>>>,
    places: u64,
    requests: u64,
}

impl Outcome {
    /// A node asks the other one.
    fn ask(&mut self, system: &mut System, node: usize, asks: Asks) {
        let other = 1 - node;
        self.places += 1;
        let place = self.places * PLACE_BYTES % (ANSWERS - WRITES);
        let constant = constant();
        let part = |from: u64, bytes: u32| constant[from as usize..from as usize + bytes as usize].to_vec();
        let (access, there, here) = match asks {
            Asks::Read { from, bytes } => {
                self.bytes.push((node, ANSWERS + place, part(from, bytes)));
                (Access::Read { bytes }, from, ANSWERS + place)
            }
            Asks::Write { from, bytes } => {
                self.bytes.push((other, WRITES + place, part(from, bytes)));
                (Access::Write { bytes }, WRITES + place, from)
            }
            Asks::Count => {
                self.counts[other] += 1;
                (Access::Modify(Modify::FetchAndAdd { addend: 1 }), COUNTER, ANSWERS + place)
            }
            Asks::Turns { bytes } => return self.turns(system, node, bytes),
            Asks::Frame { network, bytes } => return self.frame(system, node, network, bytes),
        };
        self.submit(system, node, access, there, here);
    }

    fn submit(&mut self, system: &mut System, node: usize, access: Access, there: u64, here: u64) {
        self.requests += 1;
        let tag = self.requests as u16;
        system.submit(node, Request { target: 1 - node as u32, access, there, here, tag });
    }

    fn turns(&mut self, system: &mut System, node: usize, bytes: u32) {
        let there = WRITES + self.places * PLACE_BYTES % (ANSWERS - WRITES);
        let constant = constant();
        for from in [1, 600] {
            self.submit(system, node, Access::Write { bytes }, there, from);
            self.places += 1;
            let here = ANSWERS + self.places * PLACE_BYTES % (ANSWERS - WRITES);
            self.submit(system, node, Access::Read { bytes }, there, here);
            self.bytes.push((node, here, constant[from as usize..(from + u64::from(bytes)) as usize].to_vec()));
        }
    }

    fn frame(&mut self, system: &mut System, node: usize, network: usize, bytes: usize) {
        let other = 1 - node;
        let mut frame: Vec<u8> = (0..bytes).map(|at| (at + node) as u8).collect();
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, other as u8]);
        let mut blocks = Vec::new();
        encode_frame(&frame, &mut blocks).expect("the length is allowed");
        system.send_frame(network * NODES + node, blocks);
        frame.resize(bytes.max(60), 0);
        self.frames.entry(network * NODES + other).or_default().push(frame);
    }
}

fn play(plan: Plan) -> Result<Seen, TestCaseError> {
    let mut rack = Rack::new(plan);
    let mut outcome = Outcome::default();
    let (mut ended, mut quiet) = (0, 0);
    let mut steps = std::mem::take(&mut rack.plan.steps).into_iter().peekable();
    let mut due = rack.now;
    while quiet < 400 {
        while let Some((gap, node, asks)) = steps.next_if(|(gap, ..)| due + u64::from(*gap) <= rack.now) {
            due += u64::from(gap);
            outcome.ask(&mut rack.system, node, asks);
        }
        for (node, end, tag) in rack.cycle() {
            let is_good = matches!(end, End::Answered | End::Sent);
            prop_assert!(is_good, "cycle {}: node {node}: request {tag}: {end:?}", rack.now);
            ended += 1;
        }
        let is_quiet = steps.peek().is_none() && ended == outcome.requests && !rack.system.frames_wait();
        quiet = if is_quiet { quiet + 1 } else { 0 };
        prop_assert!(rack.now < BEGIN + 40_000, "{} of {} requests have ended", ended, outcome.requests);
    }
    let (copies, lost) = rack.system.copies();
    prop_assert_eq!(lost, 0, "no queue of a mirror is full");
    let networks = (0..NODES).flat_map(|node| [0, 1].map(|network| (node, network)));
    let given_up = networks.filter(|(node, network)| rack.system.network(*node, *network).1).count();
    check(&mut rack, &outcome)?;
    let frames = outcome.frames.values().map(Vec::len).sum::<usize>() as u64;
    Ok(Seen { cycles: rack.now, requests: outcome.requests, copies, given_up: given_up as u64, frames })
}

/// Memories and counters, and the frames of the network that does not fail. Lines are as they are made
/// from here on.
fn check(rack: &mut Rack, outcome: &Outcome) -> Result<(), TestCaseError> {
    for (node, address, bytes) in &outcome.bytes {
        // The processor reads whole words.
        let from = address & !7;
        let got = rack.system.dump(*node, from, bytes.len() + 7);
        let begin = (address - from) as usize;
        prop_assert_eq!(&got[begin..begin + bytes.len()], bytes.as_slice(), "node {} at {:#x}", node, address);
    }
    for node in 0..NODES {
        let got = rack.system.dump(node, COUNTER, 8);
        prop_assert_eq!(u64::from_le_bytes(got.try_into().expect("a word")), outcome.counts[node], "each count once");
    }
    for (link, frames) in &outcome.frames {
        if matches!(rack.plan.fails, Fails::Nothing) || link / NODES != rack.plan.network {
            let mut decoder = FrameDecoder::default();
            let pushed = rack.system.received(*link).iter().map(|block| decoder.push(*block));
            let got: Result<Vec<_>, _> = pushed.collect();
            let got: Vec<Vec<u8>> =
                got.map_err(|error| TestCaseError::fail(error.to_string()))?.into_iter().flatten().collect();
            prop_assert_eq!(&got, frames, "frames of link {}", link);
        }
    }
    Ok(())
}

#[test]
fn requests_complete_once_whatever_becomes_of_one_network() {
    let seen = Cell::new(Seen::default());
    common::run(&plan(), 8, |plan| {
        let one = play(plan)?;
        let all = seen.get();
        seen.set(Seen {
            cycles: all.cycles + one.cycles,
            requests: all.requests + one.requests,
            copies: all.copies + one.copies,
            given_up: all.given_up + one.given_up,
            frames: all.frames + one.frames,
        });
        Ok(one.cycles)
    });
    let seen = seen.get();
    eprintln!("{seen:?}");
    assert!(seen.requests > 0 && seen.copies > 0 && seen.given_up > 0 && seen.frames > 0, "the plans tried nothing");
}

/// Every cut of a network in every cycle of a read and a write. Frames on it do not wait for the rest
/// of a message that its end stops in the middle of.
#[test]
fn a_read_and_a_write_survive_a_failure_in_each_cycle_of_theirs() {
    let mut given_up = 0;
    for at in 0..150 {
        for network in [0, 1] {
            let fails = [
                Fails::Silent,
                Fails::Lost,
                Fails::Dark { link: 0, to_switch: at % 8 == 2 },
                Fails::Bit { link: 1, to_switch: at % 8 == 3, bit: 0 },
            ];
            let asks = [Asks::Read { from: 3, bytes: 200 }, Asks::Write { from: 5, bytes: 200 }, Asks::Count];
            let frames = [READER, MEMORY].map(|node| (0, node, Asks::Frame { network, bytes: 600 }));
            let steps = asks.map(|asks| (0, READER, asks)).into_iter().chain(frames).collect();
            let plan = Plan { steps, network, fails: fails[at as usize % 4], at, delay: 0, variant: Variant::Dual };
            let seen = play(plan).unwrap_or_else(|error| panic!("network {network} in cycle {at}: {error}"));
            given_up += seen.given_up;
        }
    }
    assert!(given_up > 0, "networks are given up");
}

/// Frames on one network, writes and what comes then, so many cycles later.
fn beside_frames(variant: Variant, then: [Asks; 2]) {
    for at in 0..24 {
        for network in [0, 1] {
            let frames = [1_400; 2].map(|bytes| (0, READER, Asks::Frame { network, bytes }));
            let writes = [512; 4].map(|bytes| (0, READER, Asks::Write { from: 7, bytes }));
            let steps = frames.into_iter().chain(writes).chain(then.map(|asks| (at, READER, asks))).collect();
            let plan = Plan { steps, network, fails: Fails::Nothing, at: 0, delay: 0, variant };
            play(plan).unwrap_or_else(|error| panic!("network {network}, {at} cycles: {error}"));
        }
    }
}

#[test]
fn frames_on_one_network_change_no_order_of_a_pair() {
    beside_frames(Variant::Dual, [Asks::Turns { bytes: 300 }, Asks::Turns { bytes: 64 }]);
}

/// Nor with fair sharing: a write waits for the long reads of its bytes, whenever those are answered.
#[test]
fn frames_that_share_one_network_fairly_change_no_order_of_a_pair() {
    beside_frames(Variant::DualFair, [Asks::Turns { bytes: 300 }, Asks::Turns { bytes: 64 }]);
}

/// With fair sharing, frames hold up the port of one network until its queue is full: then the other
/// one takes no block either. A write waits until both lines have had the read before it, which
/// `edm_dual_host` asserts.
#[test]
fn a_port_whose_queue_is_full_holds_up_the_other_one() {
    beside_frames(Variant::DualFair, [Asks::Read { from: 3, bytes: 300 }, Asks::Write { from: 5, bytes: 64 }]);
}

#[test]
fn two_networks_in_step_take_as_long_as_one() {
    for access in [Access::Read { bytes: 64 }, Access::Write { bytes: 64 }] {
        let (one, _) = Wave::of(access);
        let (two, mut system) = Wave::of_variant(Variant::Dual, access);
        for node in [READER, MEMORY] {
            for probe in Probe::ALL {
                assert_eq!(one.shown(node, probe), two.shown(node, probe), "{access:?}: {probe:?} of node {node}");
            }
        }
        assert_eq!((one.ends(), one.written()), (two.ends(), two.written()));
        let (node, at, number) =
            if matches!(access, Access::Read { .. }) { (READER, HERE, 2) } else { (MEMORY, THERE, 1) };
        assert_eq!(system.dump(node, at, 64), pattern(number));
        assert_eq!(system.wrong(), Default::default());
        let (copies, lost) = system.copies();
        assert!(copies > 0 && lost == 0, "{copies} second copies, {lost} lost");
    }
}
