//! The whole switch in lock step with the programs of `crates/edm`: every block on every line, in
//! its cycle, and the counters.
//!
//! | what | whose decision |
//! | --- | --- |
//! | both ends of a line | `edm::pcs::multiplex` |
//! | demands, grants, withdrawals | `edm::scheduler`, in the gates' time ([`Timed`]) |
//! | what a request, an /N/ or a header says | `edm::pcs::memory` |
//! | whether a chunk has a circuit | [`Ingress`], watched by `edm::Circuits` |
//! | blocks of a chunk, queues, cuts, order | [`Ingress`] and [`Egress`], of this harness |

use crate::egress::{Cycle, Egress, Offers};
use crate::gates::{Functions, Gates};
use crate::ingress::{Arrival, Asked, Ingress, Limits, Word};
use crate::system::{Descrambler, Scrambler};
use crate::timed::{Input, Timed};
use base::{Bytes, Rate};
use edm::pcs::block::{Block, Content};
use edm::pcs::multiplex::{Demultiplexer, Fault, Multiplexer, OfferError, Policy, Received};
use edm::scheduler::Match;
use edm::{Config, Place};
use std::collections::VecDeque;

const LINE: usize = 2;
const LINE_OUT: usize = 3;
const FRAME_VALID: usize = 4;
const FRAME_READY: usize = 5;
const FRAME: usize = 6;
const FRAME_OUT: usize = 7;
const DOWN: usize = 8;
const FAULTS: usize = 9;
/// Refused, withdrawn, idle.
const COUNTS: [usize; 3] = [10, 11, 12];
const VIOLATIONS: usize = 13;
const LOST: usize = 14;
const CIRCUITS: usize = 15;
const OPEN: usize = 16;
const LANE: usize = 17;

/// Places at a port for /N/ and /G/, for blocks of messages, and for those of frames.
const PLACES: [usize; 3] = [8, 64, 4];
/// Cycles from the last block of a request to the answer of the scheduler.
const ANSWER_AFTER: u64 = 3;

/// What comes in at the ports in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The bits on the lines in, scrambled.
    pub lines: Vec<u128>,
    /// Blocks of frames for the lines out.
    pub frames: Vec<Option<Block>>,
}

/// What a port shows in a cycle: the block on its line out, that of a frame that it has received, and
/// the numbers of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    line: u128,
    frame: u128,
    state: [u64; NAMES.len()],
}

/// A compiled switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Three ports, X = 2, chunks of 64 B, SRPT, lines shared fairly. Its queues are short and its
    /// timeouts too; a link with four faults is disabled.
    Three,
    /// Four ports, FCFS, memory before frames, else as on the testbed.
    #[cfg(feature = "large")]
    Four,
}

impl Variant {
    /// What its ports are made for.
    pub fn limits(self) -> Limits {
        match self {
            Variant::Three => Limits { ports: 3, active: 2, forward_depth: 32, timeout: 400, stall_max: 40 },
            #[cfg(feature = "large")]
            Variant::Four => Limits { ports: 4, active: 3, forward_depth: 256, timeout: 390_625, stall_max: 1023 },
        }
    }

    /// The same configuration for the scheduler of the model.
    pub fn config(self) -> Config {
        match self {
            Variant::Three => Config { active_per_pair: 2, chunk: Bytes::new(64), ..Config::TESTBED },
            #[cfg(feature = "large")]
            Variant::Four => Config { policy: edm::Policy::Fcfs, ..Config::TESTBED },
        }
    }

    /// Of its lines.
    pub fn policy(self) -> Policy {
        match self {
            Variant::Three => Policy::Fair,
            #[cfg(feature = "large")]
            Variant::Four => Policy::Strict,
        }
    }

    /// Faults that a link may have.
    fn faults_allowed(self) -> u64 {
        match self {
            Variant::Three => 3,
            #[cfg(feature = "large")]
            Variant::Four => 0,
        }
    }

    fn functions(self) -> Functions {
        use crate::units::SWITCH_PORTS as PORTS;
        match self {
            Variant::Three => crate::unit_functions!(PORTS, switch3_new, switch3_free, switch3_eval, switch3_port),
            #[cfg(feature = "large")]
            Variant::Four => crate::unit_functions!(PORTS, switch4_new, switch4_free, switch4_eval, switch4_port),
        }
    }
}

/// Both ends of the line of one port.
struct Port {
    multiplexer: Multiplexer,
    demultiplexer: Demultiplexer,
    /// What is on the line out, what the receiver shows, and the bits that it gets next.
    line: Block,
    received: Received,
    arrived: u128,
    /// Faults that count against the link, and all.
    bad: u64,
    faults: u64,
    is_down: bool,
    /// Messages that it has ended because its link is dead.
    ended: u64,
}

impl Port {
    fn new(policy: Policy) -> Port {
        Port {
            multiplexer: Multiplexer::new(policy),
            demultiplexer: Demultiplexer::new(policy),
            line: Block::IDLE,
            received: Received { memory: None, frame: Block::IDLE, fault: None },
            arrived: Block::IDLE.to_bits(),
            bad: 0,
            faults: 0,
            is_down: false,
            ended: 0,
        }
    }

    /// What comes in on a dead link is not to be trusted.
    fn memory(&self) -> Option<Block> {
        self.received.memory.filter(|_| !self.is_down)
    }

    fn is_broken(&self) -> bool {
        matches!(self.received.fault, Some(Fault::Memory(_)))
    }

    /// The end of a cycle in which these bits are on the line in.
    fn receive(&mut self, bits: u128, faults_allowed: u64) {
        let cut = self.is_broken() && self.received.memory.is_some_and(is_null_answer);
        self.bad += u64::from(self.received.fault.is_some() && !cut);
        self.is_down |= self.bad > faults_allowed;
        self.received = self.demultiplexer.push_bits(std::mem::replace(&mut self.arrived, bits));
        self.faults += u64::from(self.received.fault.is_some());
    }

    /// The end of a cycle, in which the switch and the decoder offer something. A dead link swallows
    /// what the switch offers, and ends the message that it is in when there is room.
    fn send(&mut self, offers: Offers, frame: Option<Block>, was_down: bool) -> Result<(), OfferError> {
        let [_, has_room, _] = self.is_ready();
        self.line = self.multiplexer.next_block();
        if let Some(block) = frame {
            self.multiplexer.offer_frame(block)?;
        }
        if was_down {
            self.ended += u64::from(has_room && self.multiplexer.end_message());
            return Ok(());
        }
        if let Some(block) = offers.control {
            self.multiplexer.offer_memory(block)?;
        }
        match offers.message {
            Some((block, true)) => self.multiplexer.cut_message(block),
            Some((block, false)) => self.multiplexer.offer_memory(block),
            None => Ok(()),
        }
    }

    /// Of /G/, messages, frames: whether there is room in this cycle.
    fn is_ready(&self) -> [bool; 3] {
        let waiting = self.multiplexer.waiting();
        std::array::from_fn(|lane| waiting[lane] < PLACES[lane])
    }
}

/// /MST/ of an RRES without data.
fn is_null_answer(block: Block) -> bool {
    let single = matches!(block.content(), Ok(Content::MemorySingle(_)));
    single && edm::pcs::memory::decode_opening(block).is_ok_and(|opening| opening.data == Some(0))
}

/// Requests by what the scheduler says to their demands.
#[derive(Default)]
struct Answered {
    /// With their requester.
    taken: Vec<(u32, Asked)>,
    /// Requester and memory node.
    refused: Vec<(u32, u32)>,
}

/// The switch as the programs of `crates/edm` make it, a cycle at a time.
pub struct Model {
    variant: Variant,
    scheduler: Timed,
    ports: Vec<Port>,
    ingress: Vec<Ingress>,
    egress: Vec<Egress>,
    /// What the ports brought in one cycle ago.
    demands: Vec<(u32, Input)>,
    /// Requests by the cycle of the answer to their demand, and their requester.
    asked: VecDeque<(u64, u32, Asked)>,
    was_down: Vec<bool>,
    /// Blocks that have passed from port to port, and grants.
    passed: u64,
    granted: u64,
}

impl Model {
    /// An idle switch. `is_honest` says that no port breaks the protocol.
    pub fn new(variant: Variant, is_honest: bool) -> Model {
        let limits = variant.limits();
        let place = Place { nodes: limits.ports, rate: Rate::gbps(25) };
        let lapse_after = place.blocks(limits.timeout);
        let ports = 0..limits.ports;
        Model {
            variant,
            scheduler: Timed::new(variant.config(), limits.ports),
            ports: ports.clone().map(|_| Port::new(variant.policy())).collect(),
            ingress: ports.clone().map(|port| Ingress::new(port, limits, lapse_after, is_honest)).collect(),
            egress: ports.map(|port| Egress::new(port, limits.ports)).collect(),
            demands: Vec::new(),
            asked: VecDeque::new(),
            was_down: vec![false; limits.ports as usize],
            passed: 0,
            granted: 0,
        }
    }

    /// This cycle.
    pub fn now(&self) -> u64 {
        self.scheduler.now()
    }

    /// The block on a port's line out.
    pub fn line(&self, port: usize) -> Block {
        self.ports[port].line
    }

    fn shown(&self, port: usize) -> Shown {
        let Port { is_down, faults, received, .. } = &self.ports[port];
        let (ingress, egress) = (&self.ingress[port], &self.egress[port]);
        let (circuits, open) = ingress.state();
        let (down, ready) = (u64::from(*is_down), u64::from(self.takes_frame(port)));
        let state = [down, ready, *faults, ingress.violations(), egress.lost(), circuits, open, egress.state()];
        Shown { line: self.line(port).to_bits(), frame: received.frame.to_bits(), state }
    }

    /// Whether the scheduler has nothing to do.
    pub fn is_drained(&self) -> bool {
        self.scheduler.is_drained()
    }

    /// Whether a port takes a block of a frame in this cycle.
    pub fn takes_frame(&self, port: usize) -> bool {
        self.ports[port].is_ready()[2]
    }

    /// A cycle with these blocks on the lines in (as bits, without the scrambler), and these of
    /// frames for the lines out.
    ///
    /// # Errors
    /// If programs of `crates/edm` contradict the references of this harness.
    pub fn cycle(&mut self, lines: &[u128], frames: &[Option<Block>]) -> Result<(), String> {
        let grants = self.scheduler.grants();
        self.granted += grants.len() as u64;
        let of = |port: usize| grants.iter().find(|made| made.demand.source.index() == port);
        let fronts: Vec<Option<Word>> = self.ingress.iter().map(Ingress::front).collect();
        let mut taken = vec![false; self.ports.len()];
        let Answered { taken: answered, refused: mut gone } = self.answered();
        let offers: Vec<Offers> =
            (0..self.ports.len()).map(|port| self.offers(port, of(port), &fronts, &answered)).collect();
        for source in offers.iter().filter_map(|offers| offers.taken) {
            taken[source as usize] = true;
            self.passed += 1;
        }
        let mut inputs = std::mem::take(&mut self.demands);
        for (port, taken) in taken.into_iter().enumerate() {
            self.take(port, of(port), taken, &mut inputs)?;
        }
        gone.extend((0..).zip(&offers).filter_map(|(memory, offers)| offers.left.map(|requester| (requester, memory))));
        for (requester, memory) in gone {
            self.ingress[requester as usize].request_is_gone(memory);
        }
        self.scheduler.cycle(inputs);
        for (port, offers) in offers.into_iter().enumerate() {
            let was_down = self.ports[port].is_down;
            let sent = self.ports[port].send(offers, frames[port], was_down);
            sent.map_err(|error| format!("port {port} of the model refuses what the switch offers: {error}"))?;
            self.ports[port].receive(lines[port], self.variant.faults_allowed());
        }
        Ok(())
    }

    /// What becomes of requests in this cycle.
    fn answered(&mut self) -> Answered {
        let mut answered = Answered::default();
        while self.asked.front().is_some_and(|(at, ..)| *at == self.now()) {
            let (_, requester, asked) = self.asked.pop_front().expect("there is a front");
            if self.scheduler.answers()[requester as usize] == 0 {
                answered.taken.push((requester, asked));
            } else {
                answered.refused.push((requester, asked.memory));
            }
        }
        answered
    }

    fn offers(
        &mut self,
        port: usize,
        grant: Option<&Match>,
        fronts: &[Option<Word>],
        answered: &[(u32, Asked)],
    ) -> Offers {
        let entered: Vec<u64> = self.ingress.iter().map(|ingress| ingress.entered(port as u32)).collect();
        let requests = answered.iter().filter(|(_, asked)| asked.memory as usize == port).cloned().collect();
        let [control, message, _] = self.ports[port].is_ready().map(|ready| ready || self.ports[port].is_down);
        let cycle = Cycle { grant, fronts, entered: &entered, requests, is_ready: [control, message] };
        self.egress[port].cycle(cycle)
    }

    /// What comes in on a port, and what of it reaches the scheduler now and in the next cycle.
    fn take(
        &mut self,
        port: usize,
        grant: Option<&Match>,
        is_taken: bool,
        inputs: &mut Vec<(u32, Input)>,
    ) -> Result<(), String> {
        let Port { is_down, .. } = self.ports[port];
        if is_down && !std::mem::replace(&mut self.was_down[port], true) {
            inputs.push((port as u32, Input::Down));
            self.ingress.iter_mut().for_each(|ingress| ingress.port_is_down(port as u32));
        }
        let (memory, is_broken) = (self.ports[port].memory(), self.ports[port].is_broken());
        let arrival = Arrival { memory, is_broken, is_down, grant };
        let (now, time) = (self.scheduler.now(), self.scheduler.time());
        let (made, asked) = self.ingress[port].cycle(now, time, arrival, is_taken)?;
        self.demands.extend(made.into_iter().map(|input| (port as u32, input)));
        self.asked.extend(asked.map(|asked| (now + ANSWER_AFTER, port as u32, asked)));
        Ok(())
    }
}

/// What has happened in a play, the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cycles.
    pub cycles: u64,
    /// Blocks that have passed from port to port.
    pub passed: u64,
    /// Grants.
    pub granted: u64,
    /// Demands refused, withdrawn, and withdrawals of none.
    pub refused: u64,
    /// Demands that were withdrawn.
    pub withdrawn: u64,
    /// Withdrawals that named none.
    pub idle: u64,
    /// Breaches of the protocol at all ports.
    pub violations: u64,
    /// Grants that found no room.
    pub lost: u64,
    /// Faults on the lines.
    pub faults: u64,
    /// Links disabled.
    pub down: u64,
    /// Messages that a link ended which was disabled in the middle.
    pub ended: u64,
}

/// The gates and the model.
pub struct Lockstep {
    gates: Gates,
    model: Model,
    heard: Vec<Descrambler>,
    arrives: Vec<Descrambler>,
    ports: usize,
}

impl Lockstep {
    /// Both idle.
    pub fn new(variant: Variant, is_honest: bool) -> Lockstep {
        let ports = variant.limits().ports as usize;
        let descramblers = || vec![Descrambler::default(); ports];
        Lockstep {
            gates: Gates::new(variant.functions()),
            model: Model::new(variant, is_honest),
            heard: descramblers(),
            arrives: descramblers(),
            ports,
        }
    }

    /// The model: what it shows, the gates have shown too.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        let [refused, withdrawn, idle] = self.model.scheduler.counts();
        let ports = &self.model.ports;
        Counts {
            cycles: self.model.now(),
            passed: self.model.passed,
            granted: self.model.granted,
            refused,
            withdrawn,
            idle,
            violations: self.model.ingress.iter().map(Ingress::violations).sum(),
            lost: self.model.egress.iter().map(Egress::lost).sum(),
            faults: ports.iter().map(|port| port.faults).sum(),
            down: ports.iter().filter(|port| port.is_down).count() as u64,
            ended: ports.iter().map(|port| port.ended).sum(),
        }
    }

    /// Compares what gates and model show in this cycle.
    ///
    /// # Errors
    /// How they differ.
    pub fn compare(&mut self) -> Result<(), String> {
        let now = self.model.now();
        for port in 0..self.ports {
            let (seen, model) = (seen(&self.gates, &mut self.heard[port], port), self.model.shown(port));
            if seen != model {
                return Err(format!("cycle {now}: port {port}: {NAMES:?}: model {model:x?}, gates {seen:x?}"));
            }
        }
        let counts = counts(&self.gates);
        let model = self.model.scheduler.counts();
        if counts != model {
            return Err(format!("cycle {now}: refused, withdrawn, idle: model {model:?}, gates {counts:?}"));
        }
        Ok(())
    }

    /// Ends the cycle that [`compare`](Lockstep::compare) has looked at, with these inputs.
    ///
    /// # Errors
    /// If an assertion of the gates fails, or the model contradicts itself.
    pub fn step(&mut self, inputs: &Inputs) -> Result<(), String> {
        let now = self.model.now();
        let bits = inputs.bits(&mut self.arrives);
        give(&mut self.gates, inputs, now)?;
        self.model.cycle(&bits, &inputs.frames).map_err(|error| format!("cycle {now}: {error}"))
    }
}

impl Inputs {
    /// The blocks on the lines, without the scrambler.
    fn bits(&self, arrives: &mut [Descrambler]) -> Vec<u128> {
        self.lines.iter().zip(arrives).map(|(line, arrives)| arrives.push(*line)).collect()
    }
}

fn seen(gates: &Gates, heard: &mut Descrambler, port: usize) -> Shown {
    let state = [
        gates.get(DOWN, port, 1),
        gates.get(FRAME_READY, port, 1),
        gates.get(FAULTS, port * 32, 32),
        gates.get(VIOLATIONS, port * 32, 32),
        gates.get(LOST, port * 32, 32),
        gates.get(CIRCUITS, port * 16, 16),
        gates.get(OPEN, port * 8, 8),
        gates.get(LANE, port * 8, 8),
    ];
    Shown { line: heard.push(gates.block(LINE_OUT, port)), frame: gates.block(FRAME_OUT, port), state }
}

fn counts(gates: &Gates) -> [u64; 3] {
    COUNTS.map(|count| gates.get(count, 0, 32))
}

/// A cycle of the gates.
fn give(gates: &mut Gates, inputs: &Inputs, now: u64) -> Result<(), String> {
    for (port, (line, frame)) in inputs.lines.iter().zip(&inputs.frames).enumerate() {
        gates.set_block(LINE, port, *line);
        gates.set_bit(FRAME_VALID, port, frame.is_some());
        if let Some(block) = frame {
            gates.set_block(FRAME, port, block.to_bits());
        }
    }
    gates.tick();
    match Gates::failures() {
        0 => Ok(()),
        failures => Err(format!("cycle {now}: {failures} assertions of the gates failed")),
    }
}

/// Golden vectors of a switch, by the model. A line is a cycle, a part before each `|` a port, and the
/// last part has demands refused, withdrawn and not named so far. A port has the block that comes in,
/// that of a frame for its line out, the block on its line out, that of a frame that it has received,
/// and eight numbers: whether its link is disabled, whether it takes a block of a frame, faults, breaches
/// of the protocol, grants that found no room, circuits, those that are open, and whose turn it is.
/// Blocks have 66 bits, the sync header last, without the scrambler; `-` is an idle, and no block for the
/// line out. All numbers are hexadecimal. What comes in shows in the next cycle at the earliest.
///
/// # Errors
/// If programs of `crates/edm` contradict the references of this harness.
pub fn vectors(
    variant: Variant,
    is_honest: bool,
    mut hosts: impl FnMut(&Model) -> Option<Inputs>,
) -> Result<String, String> {
    let (mut model, mut text) = (Model::new(variant, is_honest), String::new());
    let mut arrives = vec![Descrambler::default(); variant.limits().ports as usize];
    while let Some(inputs) = hosts(&model) {
        let bits = inputs.bits(&mut arrives);
        let shown: Vec<Shown> = (0..bits.len()).map(|port| model.shown(port)).collect();
        text += &line(&bits, &inputs.frames, &shown, model.scheduler.counts());
        model.cycle(&bits, &inputs.frames)?;
    }
    Ok(text)
}

fn line(bits: &[u128], frames: &[Option<Block>], shown: &[Shown], counts: [u64; 3]) -> String {
    let told = |bits: u128| if bits == Block::IDLE.to_bits() { "-".into() } else { format!("{bits:017x}") };
    let mut text = String::new();
    for ((bits, frame), shown) in bits.iter().zip(frames).zip(shown) {
        let frame = frame.map_or("-".into(), |block| format!("{:017x}", block.to_bits()));
        text += &format!("{} {frame} {} {}", told(*bits), told(shown.line), told(shown.frame));
        shown.state.iter().for_each(|number| text += &format!(" {number:x}"));
        text += " | ";
    }
    let [refused, withdrawn, idle] = counts;
    text + &format!("{refused:x} {withdrawn:x} {idle:x}\n")
}

/// Plays [`vectors`] to the gates, and compares what they show in each cycle.
///
/// # Errors
/// The first cycle in which they differ, or that is no vector.
pub fn replay(variant: Variant, text: &str) -> Result<(), String> {
    let ports = variant.limits().ports as usize;
    let mut gates = Gates::new(variant.functions());
    let (mut heard, mut says) = (vec![Descrambler::default(); ports], vec![Scrambler::default(); ports]);
    for (cycle, expected) in (0..).zip(text.lines()) {
        let parts: Option<Vec<_>> = expected.split(" | ").take(ports).map(given_of).collect();
        let given = parts.filter(|given| given.len() == ports);
        let given = given.ok_or_else(|| format!("cycle {cycle}: no vector: {expected}"))?;
        let (bits, frames): (Vec<u128>, Vec<Option<Block>>) = given.into_iter().unzip();
        let shown: Vec<Shown> = (0..ports).map(|port| seen(&gates, &mut heard[port], port)).collect();
        let got = line(&bits, &frames, &shown, counts(&gates));
        if got.trim_end() != expected {
            return Err(format!("cycle {cycle}: the gates show {got}, expected is {expected}"));
        }
        let lines = bits.iter().zip(&mut says).map(|(bits, says)| says.push(*bits)).collect();
        give(&mut gates, &Inputs { lines, frames }, cycle)?;
    }
    Ok(())
}

/// What comes in at a port, and the block of a frame for its line out.
fn given_of(part: &str) -> Option<(u128, Option<Block>)> {
    let block = |field: &str| match field {
        "-" => Some(None),
        digits => u128::from_str_radix(digits, 16).ok().filter(|bits| bits >> 66 == 0).map(Some),
    };
    let mut fields = part.split(' ').map(block);
    let (bits, frame) = (fields.next()??, fields.next()??);
    let frame = frame.map(Block::from_bits).transpose().ok()?;
    Some((bits.unwrap_or(Block::IDLE.to_bits()), frame))
}

const NAMES: [&str; 8] = ["down", "frame ready", "faults", "violations", "lost", "circuits", "open", "lane"];
