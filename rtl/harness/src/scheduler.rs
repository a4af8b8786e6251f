//! The scheduler of the gates in lock step with `edm::scheduler::Scheduler`: [`Timed`] says
//! what a cycle is to the model.

use crate::gates::{Functions, Gates};
use crate::timed::{Input, Timed, WRITE_ID};
use base::{Bytes, NodeId};
use edm::pcs::memory::message_blocks;
use edm::scheduler::{Demand, DemandKind, Match};
use edm::{Body, Config, Message, MessageId, Modify, Policy, Tag};
use std::collections::BTreeMap;

const DEMAND_VALID: usize = 2;
const DEMAND: usize = 3;
const UPLINK_VALID: usize = 4;
const UPLINK_BLOCKS: usize = 5;
const DOWN: usize = 6;
const REFUSED: usize = 7;
const GRANT_VALID: usize = 8;
const GRANT: usize = 9;
const REFUSED_COUNT: usize = 10;
const WITHDRAWN_COUNT: usize = 11;
const IDLE_COUNT: usize = 12;

/// Bits of `demand_t` and `grant_t`.
const DEMAND_BITS: usize = 54;
const GRANT_BITS: usize = 36;

/// A compiled scheduler and the configuration that it was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Four ports with the parameters of the testbed: X = 3, chunks of 256 B, SRPT.
    Four,
    /// Three ports, X = 1, no look-ahead.
    Three,
    /// Four ports, X = 2, chunks of 64 B, FCFS.
    FourFcfs,
    /// Sixteen ports, else like `Four`.
    Sixteen,
    /// As many ports as the cluster of the paper has nodes, else like `Four`.
    #[cfg(feature = "large")]
    Cluster,
}

impl Variant {
    /// Its ports.
    pub fn ports(self) -> u32 {
        match self {
            Variant::Four | Variant::FourFcfs => 4,
            Variant::Three => 3,
            Variant::Sixteen => 16,
            #[cfg(feature = "large")]
            Variant::Cluster => 144,
        }
    }

    /// The same configuration for the model.
    pub fn config(self) -> Config {
        let testbed = Config::TESTBED;
        match self {
            Variant::Four | Variant::Sixteen => testbed,
            #[cfg(feature = "large")]
            Variant::Cluster => testbed,
            Variant::Three => Config { active_per_pair: 1, look_ahead_cycles: 0, ..testbed },
            Variant::FourFcfs => Config { active_per_pair: 2, chunk: Bytes::new(64), policy: Policy::Fcfs, ..testbed },
        }
    }

    fn functions(self) -> Functions {
        use crate::units::SCHEDULER_PORTS as PORTS;
        match self {
            Variant::Four => {
                crate::unit_functions!(PORTS, scheduler4_new, scheduler4_free, scheduler4_eval, scheduler4_port)
            }
            Variant::Sixteen => {
                crate::unit_functions!(PORTS, scheduler16_new, scheduler16_free, scheduler16_eval, scheduler16_port)
            }
            #[cfg(feature = "large")]
            Variant::Cluster => {
                crate::unit_functions!(PORTS, scheduler144_new, scheduler144_free, scheduler144_eval, scheduler144_port)
            }
            Variant::Three => {
                crate::unit_functions!(PORTS, scheduler3_new, scheduler3_free, scheduler3_eval, scheduler3_port)
            }
            Variant::FourFcfs => crate::unit_functions!(
                PORTS,
                scheduler4_fcfs_new,
                scheduler4_fcfs_free,
                scheduler4_fcfs_eval,
                scheduler4_fcfs_port
            ),
        }
    }
}

/// What a port does in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An /N/.
    Write {
        /// The target, in range or not.
        target: u32,
        /// Bytes of all its messages. None: it withdraws the write with its id, which is new.
        bytes: u32,
        /// Messages that share it, 1 to 16.
        batch: u8,
    },
    /// An RREQ.
    Read {
        /// The memory node, in range or not.
        memory: u32,
        /// Bytes to read.
        bytes: u32,
    },
    /// An RMWREQ.
    Modify {
        /// The memory node, in range or not.
        memory: u32,
        /// The operation.
        modify: Modify,
    },
    /// An /N/ of zero bytes for a demand that the port has.
    Withdraw {
        /// Which of the channels in use, counted round.
        channel: u8,
        /// How many demands are before it there. Beyond the last, it names none.
        place: u8,
    },
    /// Blocks on the uplink that the scheduler books, without a demand.
    Uplink {
        /// How many, up to 15.
        blocks: u8,
    },
    /// The link is dead from now on.
    Down,
}

/// What a port does, and how many cycles after the action before it in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Cycles since the last step.
    pub gap: u8,
    /// The port.
    pub port: u32,
    /// What it does.
    pub action: Action,
}

/// What a port is given in a cycle, as the gates see it: `demand_t`, blocks on the uplink, or that
/// the link is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Demand(u64),
    Uplink(u8),
    Down,
}

/// What a scheduler shows in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    /// `grant_t` by source.
    grants: BTreeMap<u32, u64>,
    /// `refused_e` by port.
    answers: Vec<u64>,
    /// Demands refused so far, withdrawn, and withdrawals that named none.
    counts: [u64; 3],
}

/// The model, and the ids that its ports use.
struct Asked {
    model: Timed,
    ids: u8,
}

/// The gates and the model.
pub struct Lockstep {
    gates: Gates,
    asked: Asked,
    ports: u32,
    granted: u64,
}

/// What ports do in each cycle.
fn cycles(steps: &[Step]) -> Vec<Vec<(u32, Action)>> {
    let mut all: Vec<Vec<(u32, Action)>> = vec![Vec::new()];
    for step in steps {
        let is_taken = |due: &Vec<(u32, Action)>| due.iter().any(|(port, _)| *port == step.port);
        let gap = usize::from(step.gap).max(all.last().is_some_and(is_taken).into());
        all.resize(all.len() + gap, Vec::new());
        all.last_mut().into_iter().for_each(|due| due.push((step.port, step.action)));
    }
    all
}

impl Lockstep {
    /// Both idle.
    pub fn new(variant: Variant) -> Lockstep {
        let asked = Asked::new(variant);
        Lockstep { gates: Gates::new(variant.functions()), asked, ports: variant.ports(), granted: 0 }
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.asked.model.now()
    }

    /// Grants so far, the same in both.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Withdrawals that named a demand so far, the same in both.
    pub fn withdrawn(&self) -> u64 {
        self.asked.model.counts()[1]
    }

    /// Demands refused so far, the same in both.
    pub fn refused(&self) -> u64 {
        self.asked.model.counts()[0]
    }

    /// Plays the steps, and then idles until all demands are granted and the last grant has been
    /// seen.
    ///
    /// # Errors
    /// The first cycle in which gates and model differ, and how.
    pub fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        for actions in cycles(steps) {
            self.cycle(&actions)?;
        }
        let idle_from = self.cycles();
        while !self.asked.model.is_drained() {
            self.cycle(&[])?;
            if self.cycles() - idle_from > 50_000_000 {
                return Err(format!("cycle {}: demands wait for ever", self.cycles()));
            }
        }
        self.cycle(&[])
    }

    /// One cycle in which each of these ports (each at most once) does something. Of demands that
    /// come together, the lower port's is the older one.
    pub fn cycle(&mut self, actions: &[(u32, Action)]) -> Result<(), String> {
        let (now, model) = (self.cycles(), self.asked.shown());
        self.granted += model.grants.len() as u64;
        let gates = shown_by(&self.gates, self.ports);
        if model != gates {
            return Err(format!("cycle {now}: model {model:x?}, gates {gates:x?}"));
        }
        give(&mut self.gates, &self.asked.cycle(actions));
        tick(&mut self.gates, now)
    }
}

impl Asked {
    fn new(variant: Variant) -> Asked {
        Asked { model: Timed::new(variant.config(), variant.ports()), ids: 0 }
    }

    /// What the model shows in this cycle. Call it once a cycle.
    fn shown(&mut self) -> Shown {
        let made = self.model.grants();
        Shown {
            grants: made.iter().map(|made| (made.demand.source.0, grant_bits(made))).collect(),
            answers: self.model.answers().to_vec(),
            counts: self.model.counts(),
        }
    }

    /// Ends the model's cycle, and says what ports are given in it.
    fn cycle(&mut self, actions: &[(u32, Action)]) -> Vec<(u32, Given)> {
        let (mut given, mut inputs) = (Vec::new(), Vec::new());
        for (port, action) in actions {
            let (bits, input) = self.input(*port, *action);
            given.push((*port, bits));
            inputs.push((*port, input));
        }
        self.model.cycle(inputs);
        given
    }

    fn input(&mut self, port: u32, action: Action) -> (Given, Input) {
        self.ids = self.ids.wrapping_add(1);
        let (action, id) = self.resolved(port, action);
        match action {
            Action::Down => return (Given::Down, Input::Down),
            Action::Uplink { blocks } => {
                return (Given::Uplink(blocks), Input::Uplink { blocks: u64::from(blocks) });
            }
            _ => {}
        }
        let demand = demand_of(port, action, id).expect("the action makes a demand");
        let input = match action {
            Action::Write { target, bytes: 0, .. } => Input::Withdraw { target: NodeId(target), id },
            _ => Input::Demand(demand),
        };
        (Given::Demand(demand_bits(port, &demand)), input)
    }

    /// An action with the next id of its class; of a withdrawal, the /N/ that it is.
    fn resolved(&self, port: u32, action: Action) -> (Action, MessageId) {
        let (read, write) = (MessageId(self.ids % WRITE_ID), MessageId(self.ids | WRITE_ID));
        let Action::Withdraw { channel, place } = action else {
            return (action, if matches!(action, Action::Write { .. }) { write } else { read });
        };
        let chosen = self.model.demand_of(port, usize::from(channel), usize::from(place));
        let (target, id) = chosen.unwrap_or((u32::from(channel), None));
        (Action::Write { target, bytes: 0, batch: 1 }, id.unwrap_or(read))
    }
}

/// What the gates show in this cycle.
fn shown_by(gates: &Gates, ports: u32) -> Shown {
    let granted = (0..ports).filter(|port| gates.get(GRANT_VALID, *port as usize, 1) == 1);
    Shown {
        grants: granted.map(|port| (port, gates.get(GRANT, port as usize * GRANT_BITS, GRANT_BITS))).collect(),
        answers: (0..ports as usize).map(|port| gates.get(REFUSED, port * 3, 3)).collect(),
        counts: [REFUSED_COUNT, WITHDRAWN_COUNT, IDLE_COUNT].map(|count| gates.get(count, 0, 32)),
    }
}

/// Gives the gates the inputs of this cycle.
fn give(gates: &mut Gates, given: &[(u32, Given)]) {
    [DEMAND_VALID, UPLINK_VALID, DOWN].into_iter().for_each(|port| gates.clear(port));
    for (port, given) in given {
        let port = *port as usize;
        match given {
            Given::Demand(bits) => {
                gates.set(DEMAND_VALID, port, 1, 1);
                gates.set(DEMAND, port * DEMAND_BITS, DEMAND_BITS, *bits);
            }
            Given::Uplink(blocks) => {
                gates.set(UPLINK_VALID, port, 1, 1);
                gates.set(UPLINK_BLOCKS, port * 4, 4, u64::from(*blocks));
            }
            Given::Down => gates.set(DOWN, port, 1, 1),
        }
    }
}

fn tick(gates: &mut Gates, now: u64) -> Result<(), String> {
    gates.tick();
    match Gates::failures() {
        0 => Ok(()),
        failures => Err(format!("cycle {now}: {failures} assertions of the gates failed")),
    }
}

/// Golden vectors of a scheduler, by `edm::scheduler`. A line is a cycle: what ports are given
/// (`PORT:dDEMAND`, `PORT:uBLOCKS` or `PORT:x` for a dead link), grants by source (`PORT:GRANT`),
/// the answers of all ports, and demands refused, withdrawn and not named so far. `DEMAND` and
/// `GRANT` are `demand_t` and `grant_t`. All numbers are hexadecimal. What is given shows in the
/// next cycle at the earliest.
pub fn vectors(variant: Variant, steps: &[Step]) -> String {
    let (mut asked, mut text) = (Asked::new(variant), String::new());
    let mut cycles = cycles(steps).into_iter();
    loop {
        let actions = cycles.next();
        if actions.is_none() && asked.model.is_drained() {
            return text;
        }
        let shown = asked.shown();
        let given = asked.cycle(&actions.unwrap_or_default());
        text += &line(&given, &shown);
    }
}

fn line(given: &[(u32, Given)], shown: &Shown) -> String {
    let given = given.iter().map(|(port, given)| match given {
        Given::Demand(bits) => format!("{port:x}:d{bits:x} "),
        Given::Uplink(blocks) => format!("{port:x}:u{blocks:x} "),
        Given::Down => format!("{port:x}:x "),
    });
    let grants = shown.grants.iter().map(|(port, bits)| format!("{port:x}:{bits:x} "));
    let answers = shown.answers.iter().map(|answer| format!("{answer:x}"));
    let [refused, withdrawn, idle] = shown.counts;
    let (given, grants): (String, String) = (given.collect(), grants.collect());
    format!("{given}| {grants}| {} | {refused:x} {withdrawn:x} {idle:x}\n", answers.collect::<String>())
}

/// Plays [`vectors`] to the gates, and compares what they show in each cycle.
///
/// # Errors
/// The first cycle in which they differ, or that is no vector.
pub fn replay(variant: Variant, text: &str) -> Result<(), String> {
    let mut gates = Gates::new(variant.functions());
    for (cycle, expected) in (0..).zip(text.lines()) {
        let fields = expected.split('|').next().unwrap_or_default().split_whitespace();
        let given: Option<Vec<(u32, Given)>> = fields.map(|field| given_of(field, variant.ports())).collect();
        let given = given.ok_or_else(|| format!("cycle {cycle}: no vector: {expected}"))?;
        let got = line(&given, &shown_by(&gates, variant.ports()));
        if got.trim_end() != expected {
            return Err(format!("cycle {cycle}: the gates show {got}, expected is {expected}"));
        }
        give(&mut gates, &given);
        tick(&mut gates, cycle)?;
    }
    Ok(())
}

fn given_of(field: &str, ports: u32) -> Option<(u32, Given)> {
    let (port, what) = field.split_once(':')?;
    let port = u32::from_str_radix(port, 16).ok().filter(|port| *port < ports)?;
    let (kind, number) = what.split_at_checked(1)?;
    let number = || u64::from_str_radix(number, 16).ok();
    let given = match kind {
        "d" => Given::Demand(number().filter(|bits| bits >> DEMAND_BITS == 0)?),
        "u" => Given::Uplink(number().filter(|blocks| *blocks < 16)? as u8),
        "x" => Given::Down,
        _ => return None,
    };
    Some((port, given))
}

/// The demand that an action of `port` makes.
fn demand_of(port: u32, action: Action, id: MessageId) -> Option<Demand> {
    let own = NodeId(port);
    let response = |memory: u32, body, bytes| {
        let request = Message { source: own, target: NodeId(memory), id, body };
        (NodeId(memory), own, bytes, DemandKind::Response { request })
    };
    let (source, target, bytes, kind) = match action {
        Action::Write { target, bytes, batch } => (own, NodeId(target), bytes, DemandKind::Write { batch }),
        Action::Read { memory, bytes } => response(memory, Body::ReadRequest { address: 0, bytes }, bytes),
        Action::Modify { memory, modify } => {
            response(memory, Body::ReadModifyWrite { address: 0, modify }, modify.response_bytes())
        }
        Action::Withdraw { .. } | Action::Uplink { .. } | Action::Down => return None,
    };
    Some(Demand { source, target, id, bytes, kind, tag: Tag(0) })
}

/// `demand_t`: class, peer, id, bytes, extra, from the most significant bit down.
fn demand_bits(port: u32, demand: &Demand) -> u64 {
    let (class, extra) = match demand.kind {
        DemandKind::Write { batch } => (0, u64::from(batch) - 1),
        DemandKind::Response { request } => (1, message_blocks(&request.body)),
    };
    let peer = if demand.source.0 == port && class == 0 { demand.target.0 } else { demand.source.0 };
    class << 53 | u64::from(peer) << 44 | u64::from(demand.id.0) << 36 | u64::from(demand.bytes) << 4 | extra
}

/// `grant_t`: class, target, id, bytes, first, last.
fn grant_bits(made: &Match) -> u64 {
    let class = u64::from(matches!(made.demand.kind, DemandKind::Response { .. }));
    let Match { demand, bytes, first, last, .. } = made;
    class << 35
        | u64::from(demand.target.0) << 26
        | u64::from(demand.id.0) << 18
        | u64::from(*bytes) << 2
        | u64::from(*first) << 1
        | u64::from(*last)
}
