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

/// The gates and the model.
pub struct Lockstep {
    gates: Gates,
    model: Timed,
    ports: u32,
    granted: u64,
    ids: u8,
}

impl Lockstep {
    /// Both idle.
    pub fn new(variant: Variant) -> Lockstep {
        let ports = variant.ports();
        let (gates, model) = (Gates::new(variant.functions()), Timed::new(variant.config(), ports));
        Lockstep { gates, model, ports, granted: 0, ids: 0 }
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.model.now()
    }

    /// Grants so far, the same in both.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Withdrawals that named a demand so far, the same in both.
    pub fn withdrawn(&self) -> u64 {
        self.model.counts()[1]
    }

    /// Demands refused so far, the same in both.
    pub fn refused(&self) -> u64 {
        self.model.counts()[0]
    }

    /// Plays the steps, and then idles until all demands are granted and the last grant has been
    /// seen.
    ///
    /// # Errors
    /// The first cycle in which gates and model differ, and how.
    pub fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        let mut due = Vec::new();
        for step in steps {
            let same_port = due.iter().any(|(port, _)| *port == step.port);
            if step.gap > 0 || same_port {
                self.cycle(&due)?;
                due.clear();
            }
            for _ in 1..step.gap {
                self.cycle(&[])?;
            }
            due.push((step.port, step.action));
        }
        self.cycle(&due)?;
        let idle_from = self.model.now();
        while !self.model.is_drained() {
            self.cycle(&[])?;
            if self.model.now() - idle_from > 50_000_000 {
                return Err(format!("cycle {}: demands wait for ever", self.model.now()));
            }
        }
        self.cycle(&[])
    }

    /// One cycle in which each of these ports (each at most once) does something. Of demands that
    /// come together, the lower port's is the older one.
    pub fn cycle(&mut self, actions: &[(u32, Action)]) -> Result<(), String> {
        self.compare()?;
        let inputs = self.inputs(actions);
        self.model.cycle(inputs);
        self.gates.tick();
        match Gates::failures() {
            0 => Ok(()),
            failures => Err(format!("cycle {}: {failures} assertions of the gates failed", self.model.now() - 1)),
        }
    }

    /// Gives the gates the inputs of this cycle; they are the model's too.
    fn inputs(&mut self, actions: &[(u32, Action)]) -> Vec<(u32, Input)> {
        for port in [DEMAND_VALID, UPLINK_VALID, DOWN] {
            self.gates.clear(port);
        }
        actions.iter().map(|(port, action)| (*port, self.input(*port, *action))).collect()
    }

    fn input(&mut self, port: u32, action: Action) -> Input {
        let index = port as usize;
        self.ids = self.ids.wrapping_add(1);
        let (action, id) = self.resolved(port, action);
        match action {
            Action::Down => {
                self.gates.set(DOWN, index, 1, 1);
                return Input::Down;
            }
            Action::Uplink { blocks } => {
                self.gates.set(UPLINK_VALID, index, 1, 1);
                self.gates.set(UPLINK_BLOCKS, index * 4, 4, u64::from(blocks));
                return Input::Uplink { blocks: u64::from(blocks) };
            }
            _ => {}
        }
        let demand = demand_of(port, action, id).expect("the action makes a demand");
        self.gates.set(DEMAND_VALID, index, 1, 1);
        self.gates.set(DEMAND, index * DEMAND_BITS, DEMAND_BITS, demand_bits(port, &demand));
        match action {
            Action::Write { target, bytes: 0, .. } => Input::Withdraw { target: NodeId(target), id },
            _ => Input::Demand(demand),
        }
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

    /// Compares the outputs of this cycle.
    fn compare(&mut self) -> Result<(), String> {
        let (now, made) = (self.model.now(), self.model.grants());
        self.granted += made.len() as u64;
        let expected: BTreeMap<u32, u64> = made.iter().map(|made| (made.demand.source.0, grant_bits(made))).collect();
        let got: BTreeMap<u32, u64> = (0..self.ports)
            .filter(|port| self.gates.get(GRANT_VALID, *port as usize, 1) == 1)
            .map(|port| (port, self.gates.get(GRANT, port as usize * GRANT_BITS, GRANT_BITS)))
            .collect();
        if expected != got {
            return Err(format!("cycle {now}: grants by source: model {expected:x?}, gates {got:x?}"));
        }
        let answers: Vec<u64> = (0..self.ports as usize).map(|port| self.gates.get(REFUSED, port * 3, 3)).collect();
        if answers != self.model.answers() {
            return Err(format!("cycle {now}: answers: model {:?}, gates {answers:?}", self.model.answers()));
        }
        let counts = [REFUSED_COUNT, WITHDRAWN_COUNT, IDLE_COUNT].map(|count| self.gates.get(count, 0, 32));
        let expected = self.model.counts();
        if counts != expected {
            return Err(format!("cycle {now}: refused, withdrawn, idle so far: model {expected:?}, gates {counts:?}"));
        }
        Ok(())
    }
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
