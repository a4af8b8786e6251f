//! The whole system in gates: hosts with memories and the switch. The harness is the applications,
//! the processors, the layer-2 switch for frames, and the noise on the lines.

use crate::gates::{Functions, Gates};
use edm::Modify;
use edm::pcs::block::{Block, Content};
use std::collections::VecDeque;

macro_rules! ports {
    ($($name:ident)*) => { ports!(@ 2; $($name)*); };
    (@ $at:expr; $name:ident $($rest:ident)*) => { const $name: usize = $at; ports!(@ $at + 1; $($rest)*); };
    (@ $at:expr;) => {};
}

ports! {
    ACCESS_VALID ACCESS ACCESS_READY ANSWERED ANSWERED_NULL ANSWERED_TAG SENT SENT_TAG
    EXPIRED_READ EXPIRED_READ_TAG EXPIRED_WRITE EXPIRED_WRITE_TAG REFUSED REFUSED_TAG WRITTEN
    CPU_WRITE CPU_READY CPU_READ CPU_ADDRESS CPU_WRITE_DATA CPU_READ_DATA
    HOST_FRAME_VALID HOST_FRAME HOST_FRAME_READY HOST_FRAME_OUT
    PORT_FRAME_VALID PORT_FRAME PORT_FRAME_READY PORT_FRAME_OUT
    NOISE_UP NOISE_DOWN UP DOWN
    HOST_DOWN HOST_FAULTS HOST_UNEXPECTED OUTSIDE PORT_DOWN PORT_FAULTS DEMAND_REFUSED
    WITHDRAWN WITHDRAWN_IDLE VIOLATIONS LOST
    PROBE
    SWITCH_LOST USED GIVEN_UP COPIES MIRROR_LOST
}

/// An idle: synchronisation bits 01, then its type.
const IDLE_BITS: u128 = 0x1e << 2 | 0b01;
const ACCESS_BITS: usize = 323;
const TAG_BITS: usize = 16;
const PROBES: usize = 10;

/// A compiled system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Two nodes with the parameters of the testbed; memory and frames share a line fairly, and a
    /// link with a fault is disabled.
    Two,
    /// Three nodes, chunks of 64 B; memory goes before frames, and links bear faults.
    Three,
    /// As `Two`, with two networks and two ports a node; memory goes before frames.
    Dual,
    /// As `Dual`; memory and frames share a line fairly.
    DualFair,
}

impl Variant {
    /// How many nodes it has.
    pub fn nodes(self) -> usize {
        match self {
            Variant::Two | Variant::Dual | Variant::DualFair => 2,
            Variant::Three => 3,
        }
    }

    /// How many networks it has.
    pub fn networks(self) -> usize {
        if matches!(self, Variant::Dual | Variant::DualFair) { 2 } else { 1 }
    }

    fn functions(self) -> Functions {
        match self {
            Variant::Two => {
                crate::unit_functions!(
                    crate::units::SYSTEM_PORTS,
                    system2_new,
                    system2_free,
                    system2_eval,
                    system2_port
                )
            }
            Variant::Dual => {
                crate::unit_functions!(crate::units::DUAL_PORTS, dual2_new, dual2_free, dual2_eval, dual2_port)
            }
            Variant::DualFair => {
                crate::unit_functions!(
                    crate::units::DUAL_PORTS,
                    dual2_fair_new,
                    dual2_fair_free,
                    dual2_fair_eval,
                    dual2_fair_port
                )
            }
            Variant::Three => {
                crate::unit_functions!(
                    crate::units::SYSTEM_PORTS,
                    system3_new,
                    system3_free,
                    system3_eval,
                    system3_port
                )
            }
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read `bytes` of the target's memory.
    Read {
        /// Bytes.
        bytes: u32,
    },
    /// Write `bytes` to it.
    Write {
        /// Bytes.
        bytes: u32,
    },
    /// Change a word of it.
    Modify(Modify),
}

/// A request of the application at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The memory node.
    pub target: u32,
    /// What it does.
    pub access: Access,
    /// The address at the memory node.
    pub there: u64,
    /// The address of the data in the node's own memory.
    pub here: u64,
    /// Comes back when it ends.
    pub tag: u16,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A read or modification is answered.
    Answered,
    /// It is answered with NULL.
    Null,
    /// A write has left.
    Sent,
    /// A read got no answer in time.
    ReadExpired,
    /// A write got no grant in time.
    WriteExpired,
    /// The host does not take it.
    Refused,
}

/// What a node's stages show in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A memory block is out of the port of the switch.
    PortIn = 0,
    /// The switch offers a memory block to the port.
    PortOut = 1,
    /// A demand goes to the scheduler.
    Demand = 2,
    /// A grant for this port comes from the scheduler.
    Grant = 3,
    /// The host offers a memory block to its port.
    HostOut = 4,
    /// A memory block is out of the port of the host.
    HostIn = 5,
    /// Something goes into the grant queue.
    Queued = 6,
    /// Something is at the front of the grant queue.
    Dequeued = 7,
    /// The receiver reads the memory.
    MemoryRead = 8,
    /// The receiver writes the memory.
    MemoryWrite = 9,
}

impl Probe {
    /// All of them, in the order of their bits.
    pub const ALL: [Probe; PROBES] = [
        Probe::PortIn,
        Probe::PortOut,
        Probe::Demand,
        Probe::Grant,
        Probe::HostOut,
        Probe::HostIn,
        Probe::Queued,
        Probe::Dequeued,
        Probe::MemoryRead,
        Probe::MemoryWrite,
    ];

    /// Its name in a wave.
    pub fn name(self) -> &'static str {
        match self {
            Probe::PortIn => "port_in",
            Probe::PortOut => "port_out",
            Probe::Demand => "demand",
            Probe::Grant => "grant",
            Probe::HostOut => "host_out",
            Probe::HostIn => "host_in",
            Probe::Queued => "queued",
            Probe::Dequeued => "dequeued",
            Probe::MemoryRead => "memory_read",
            Probe::MemoryWrite => "memory_write",
        }
    }
}

/// Counters of what was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// Faults on the lines to hosts.
    pub host_faults: u64,
    /// Messages and grants that no host waits for.
    pub unexpected: u64,
    /// Accesses outside memories.
    pub outside: u64,
    /// Faults on the lines to the switch.
    pub port_faults: u64,
    /// Demands that the scheduler refused.
    pub refused: u64,
    /// Breaches of the protocol.
    pub violations: u64,
    /// Grants and requests that found no room.
    pub lost: u64,
}

/// Frames that wait at a host or at a port of the switch, as blocks.
type Frames = Vec<VecDeque<Block>>;

/// The gates, and what the harness is to them. Link number `network * nodes + node` joins a node with
/// the switch of a network; with one network it is the node's number.
pub struct System {
    gates: Gates,
    nodes: usize,
    links: usize,
    now: u64,
    waiting: Vec<VecDeque<Request>>,
    taken: Vec<Option<Request>>,
    /// Requests and blocks of frames that wait.
    queued: usize,
    /// Whether something was offered in the last cycle.
    offered: bool,
    host_frames: Frames,
    port_frames: Frames,
    /// Blocks of the frame that comes in at each port of the switch.
    relay: Vec<Vec<Block>>,
    /// Blocks that each host's frame decoder has got, idles left out.
    received: Vec<Vec<Block>>,
    noise_up: Vec<u128>,
    noise_down: Vec<u128>,
    /// Whether there is noise for this cycle, and whether there was in the last one.
    is_noisy: bool,
    was_noisy: bool,
}

impl System {
    /// An idle system with empty memories.
    pub fn new(variant: Variant) -> System {
        let nodes = variant.nodes();
        let links = variant.networks() * nodes;
        let empty = || vec![VecDeque::new(); links];
        System {
            gates: Gates::new(variant.functions()),
            nodes,
            links,
            now: 0,
            waiting: vec![VecDeque::new(); nodes],
            taken: vec![None; nodes],
            queued: 0,
            offered: true,
            host_frames: empty(),
            port_frames: empty(),
            relay: vec![Vec::new(); links],
            received: vec![Vec::new(); links],
            noise_up: vec![0; links],
            noise_down: vec![0; links],
            is_noisy: false,
            was_noisy: false,
        }
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// Lets a node's application make a request as soon as the host takes it.
    pub fn submit(&mut self, node: usize, request: Request) {
        self.waiting[node].push_back(request);
        self.queued += 1;
    }

    /// Requests that the host has not taken.
    pub fn unsubmitted(&self, node: usize) -> usize {
        self.waiting[node].len()
    }

    /// Sends a frame's blocks from a host on a link; the layer-2 switch looks at the last byte of the
    /// destination.
    pub fn send_frame(&mut self, link: usize, blocks: impl IntoIterator<Item = Block>) {
        let before = self.host_frames[link].len();
        self.host_frames[link].extend(blocks);
        self.queued += self.host_frames[link].len() - before;
    }

    /// Blocks of frames that a host's decoder has got from a link, in order.
    pub fn received(&self, link: usize) -> &[Block] {
        &self.received[link]
    }

    /// Whether frames are still on their way to a port.
    pub fn frames_wait(&self) -> bool {
        [&self.host_frames, &self.port_frames].into_iter().flatten().any(|queue| !queue.is_empty())
            || self.relay.iter().any(|frame| !frame.is_empty())
    }

    /// Changes bits of what arrives in the next cycle, at the switch or at the host.
    pub fn noise(&mut self, link: usize, at_switch: bool, bits: u128) {
        let noise = if at_switch { &mut self.noise_up } else { &mut self.noise_down };
        noise[link] = bits;
        self.is_noisy = true;
    }

    /// Writes a node's memory as its processor; `bytes` in whole words. Takes a cycle a word.
    pub fn fill(&mut self, node: usize, address: u64, bytes: &[u8]) {
        self.gates.set_bit(CPU_WRITE, node, true);
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            self.gates.set(CPU_ADDRESS, node * 64, 64, address + index as u64 * 8);
            self.gates.set(CPU_WRITE_DATA, node * 64, 64, word);
            loop {
                let taken = self.gates.bit(CPU_READY, node);
                self.cycle();
                if taken {
                    break;
                }
            }
        }
        self.gates.set_bit(CPU_WRITE, node, false);
    }

    /// Lets a node's processor write a word in this cycle and those to come, or nothing. The receiver
    /// goes before it.
    pub fn poke(&mut self, node: usize, address: u64, word: Option<u64>) {
        self.gates.set_bit(CPU_WRITE, node, word.is_some());
        self.gates.set(CPU_ADDRESS, node * 64, 64, address);
        self.gates.set(CPU_WRITE_DATA, node * 64, 64, word.unwrap_or(0));
    }

    /// Reads a node's memory as its processor. Takes a cycle a word.
    pub fn dump(&mut self, node: usize, address: u64, bytes: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.gates.set_bit(CPU_READ, node, true);
        for at in (0..bytes).step_by(8) {
            self.gates.set(CPU_ADDRESS, node * 64, 64, address + at as u64);
            self.cycle();
            out.extend(self.gates.get(CPU_READ_DATA, node * 64, 64).to_le_bytes());
        }
        self.gates.set_bit(CPU_READ, node, false);
        out.truncate(bytes);
        out
    }

    /// Whether a stage shows something in this cycle.
    pub fn probe(&self, node: usize, probe: Probe) -> bool {
        self.gates.bit(PROBE, node * PROBES + probe as usize)
    }

    /// What ends in this cycle at a node.
    pub fn ends(&self, node: usize) -> impl Iterator<Item = (End, u16)> {
        let null = self.gates.bit(ANSWERED_NULL, node);
        let answered = if null { End::Null } else { End::Answered };
        let all = [
            (ANSWERED, ANSWERED_TAG, answered),
            (SENT, SENT_TAG, End::Sent),
            (EXPIRED_READ, EXPIRED_READ_TAG, End::ReadExpired),
            (EXPIRED_WRITE, EXPIRED_WRITE_TAG, End::WriteExpired),
            (REFUSED, REFUSED_TAG, End::Refused),
        ];
        let some = all.into_iter().filter(move |(valid, ..)| self.gates.bit(*valid, node));
        some.map(move |(_, tag, end)| (end, self.gates.get(tag, node * TAG_BITS, TAG_BITS) as u16))
    }

    /// Whether a write to the node is whole in this cycle.
    pub fn written(&self, node: usize) -> bool {
        self.gates.bit(WRITTEN, node)
    }

    /// The bits that arrive on a link, at the switch or at the node.
    pub fn line(&self, link: usize, at_switch: bool) -> u128 {
        self.gates.block(if at_switch { UP } else { DOWN }, link)
    }

    /// Whether the switch, or the host, has disabled a link.
    pub fn is_down(&self, link: usize, at_switch: bool) -> bool {
        self.gates.bit(if at_switch { PORT_DOWN } else { HOST_DOWN }, link)
    }

    /// Loses the switch of a network in the next cycle: all nodes are told. With two networks.
    pub fn lose_switch(&mut self, network: usize) {
        self.gates.set_bit(SWITCH_LOST, network, true);
    }

    /// Whether a node of two networks sends on one, and whether it has given it up as a receiver.
    pub fn network(&self, node: usize, network: usize) -> (bool, bool) {
        let at = 2 * node + network;
        (self.gates.bit(USED, at), self.gates.bit(GIVEN_UP, at))
    }

    /// Second copies that all nodes of two networks have dropped, and blocks that found no room.
    pub fn copies(&self) -> (u64, u64) {
        let sum = |port| (0..self.nodes).map(|node| self.gates.get(port, node * 32, 32)).sum();
        (sum(COPIES), sum(MIRROR_LOST))
    }

    /// All counters.
    pub fn wrong(&self) -> Wrong {
        let sum = |port, of| (0..of).map(|at| self.gates.get(port, at * 32, 32)).sum();
        let (nodes, links) = (self.nodes, self.links);
        Wrong {
            host_faults: sum(HOST_FAULTS, links),
            unexpected: sum(HOST_UNEXPECTED, nodes),
            outside: sum(OUTSIDE, nodes),
            port_faults: sum(PORT_FAULTS, links),
            refused: self.gates.get(DEMAND_REFUSED, 0, 32),
            violations: sum(VIOLATIONS, links),
            lost: sum(LOST, links),
        }
    }

    /// Withdrawals that named a demand, and those that named none.
    pub fn withdrawals(&self) -> (u64, u64) {
        (self.gates.get(WITHDRAWN, 0, 32), self.gates.get(WITHDRAWN_IDLE, 0, 32))
    }

    /// The request that a node's host takes in this cycle.
    pub fn taken(&self, node: usize) -> Option<Request> {
        self.taken[node]
    }

    /// Sets the inputs of this cycle. Outputs may be read from now on, and [`step`](System::step)
    /// ends it.
    pub fn drive(&mut self) {
        // Mostly there is nothing to offer.
        let offers = self.queued > 0;
        let offered = std::mem::replace(&mut self.offered, offers);
        if offers || offered {
            self.offer();
        }
        self.make_noise();
        self.gates.eval();
    }

    fn offer(&mut self) {
        for node in 0..self.nodes {
            self.taken[node] = self.offer_access(node);
        }
        for link in 0..self.links {
            let host = [HOST_FRAME_READY, HOST_FRAME_VALID, HOST_FRAME];
            let from_host = offer_frame(&mut self.gates, &mut self.host_frames[link], host, link);
            let port = [PORT_FRAME_READY, PORT_FRAME_VALID, PORT_FRAME];
            let from_port = offer_frame(&mut self.gates, &mut self.port_frames[link], port, link);
            self.queued -= usize::from(from_host) + usize::from(from_port);
        }
    }

    /// Puts other bits on the line of this cycle than its sender does: call it after
    /// [`drive`](System::drive).
    pub fn replace(&mut self, link: usize, at_switch: bool, bits: u128) {
        let sent = self.line(link, at_switch);
        self.gates.set_block(if at_switch { NOISE_UP } else { NOISE_DOWN }, link, sent ^ bits);
        self.was_noisy = true;
        self.gates.eval();
    }

    /// Ends the cycle.
    ///
    /// # Panics
    /// If an assertion of the gates fails.
    pub fn step(&mut self) {
        for link in 0..self.links {
            self.take_frames(link);
        }
        self.gates.tick();
        self.now += 1;
        assert_eq!(Gates::failures(), 0, "assertions of the gates failed in cycle {}", self.now - 1);
    }

    /// A whole cycle.
    pub fn cycle(&mut self) {
        self.drive();
        self.step();
    }

    /// Puts the noise of this cycle on the lines, and takes that of the last one off.
    fn make_noise(&mut self) {
        let is_noisy = std::mem::take(&mut self.is_noisy);
        if is_noisy || self.was_noisy {
            for link in 0..self.links {
                self.gates.set_block(NOISE_UP, link, std::mem::take(&mut self.noise_up[link]));
                self.gates.set_block(NOISE_DOWN, link, std::mem::take(&mut self.noise_down[link]));
            }
        }
        self.was_noisy = is_noisy;
    }

    fn offer_access(&mut self, node: usize) -> Option<Request> {
        let ready = self.gates.bit(ACCESS_READY, node);
        let next = self.waiting[node].front().copied().filter(|_| ready);
        self.gates.set_bit(ACCESS_VALID, node, next.is_some());
        let request = next?;
        self.waiting[node].pop_front();
        self.queued -= 1;
        let (kind, bytes, opcode, first, second) = match request.access {
            Access::Read { bytes } => (0, bytes, 0, 0, 0),
            Access::Write { bytes } => (1, bytes, 0, 0, 0),
            Access::Modify(Modify::CompareAndSwap { expected, new }) => (2, 0, 1, expected, new),
            Access::Modify(Modify::FetchAndAdd { addend }) => (2, 0, 2, addend, 0),
            Access::Modify(Modify::Swap { new }) => (2, 0, 3, new, 0),
        };
        let fields = [
            (u64::from(request.tag), 16),
            (second, 64),
            (first, 64),
            (opcode, 8),
            (u64::from(bytes), 32),
            (request.here, 64),
            (request.there, 64),
            (u64::from(request.target), 9),
            (kind, 2),
        ];
        let mut at = node * ACCESS_BITS;
        for (value, width) in fields {
            self.gates.set(ACCESS, at, width, value);
            at += width;
        }
        Some(request)
    }

    /// Takes the blocks that both frame decoders of a link get in this cycle; a whole frame goes on to
    /// the port of its destination.
    fn take_frames(&mut self, link: usize) {
        if let Some(block) = frame_block(&self.gates, HOST_FRAME_OUT, link) {
            self.received[link].push(block);
        }
        let Some(block) = frame_block(&self.gates, PORT_FRAME_OUT, link) else { return };
        self.relay[link].push(block);
        if matches!(block.content(), Ok(Content::Terminate(_))) {
            let frame = std::mem::take(&mut self.relay[link]);
            // The six bytes of the destination are in the first block after /S/.
            let to = frame[1].payload.to_le_bytes()[5] as usize;
            self.queued += frame.len();
            self.port_frames[link / self.nodes * self.nodes + to % self.nodes].extend(frame);
        }
    }
}

fn frame_block(gates: &Gates, port: usize, node: usize) -> Option<Block> {
    let bits = gates.block(port, node);
    // Most of them are idle.
    let some = (bits != IDLE_BITS).then(|| Block::from_bits(bits));
    some.map(|block| block.expect("the demultiplexer hands on whole blocks"))
}

/// Offers the next block of a queue, if it is taken: whether it is.
fn offer_frame(gates: &mut Gates, queue: &mut VecDeque<Block>, [ready, valid, port]: [usize; 3], node: usize) -> bool {
    let next = queue.front().copied().filter(|_| gates.bit(ready, node));
    gates.set_bit(valid, node, next.is_some());
    if let Some(block) = next {
        queue.pop_front();
        gates.set_block(port, node, block.to_bits());
    }
    next.is_some()
}

/// Puts the scrambler on a line, a block at a time: the inverse of [`Descrambler`].
#[derive(Clone, Debug, Default)]
pub struct Scrambler {
    after: Descrambler,
}

impl Scrambler {
    /// The 66 bits on the line for a block.
    pub fn push(&mut self, block: u128) -> u128 {
        let before = self.after.before;
        let mut line = 0u64;
        for bit in 0..64 {
            let at = |back: u32| if bit < back { before >> (58 + bit - back) } else { line >> (bit - back) };
            line |= (((block >> (2 + bit)) as u64 ^ at(39) ^ at(58)) & 1) << bit;
        }
        let line = u128::from(line) << 2 | block & 3;
        self.after.push(line);
        line
    }
}

/// Takes the scrambler off a line (IEEE 802.3, 49.2.6), a block at a time.
#[derive(Clone, Debug)]
pub struct Descrambler {
    /// The last 58 bits on the line; the oldest is bit 0.
    before: u64,
}

impl Default for Descrambler {
    fn default() -> Descrambler {
        Descrambler { before: (1 << 58) - 1 }
    }
}

impl Descrambler {
    /// The block behind 66 bits of the line.
    #[inline]
    pub fn push(&mut self, line: u128) -> u128 {
        let (payload, before) = ((line >> 2) as u64, self.before);
        self.before = payload >> 6;
        // Each bit is added to those 39 and 58 places before it.
        let bits = payload ^ (payload << 39 | before >> 19) ^ (payload << 58 | before);
        line & 3 | u128::from(bits) << 2
    }
}
