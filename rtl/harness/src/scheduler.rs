//! The scheduler of the gates in lock step with `edm::scheduler::Scheduler`.
//!
//! The model works in time; one cycle is 2.56 ns here, one block at 25 Gb/s (Table 1). What a cycle
//! is to it:
//!
//! * A demand that the gates get in cycle *c* is in the notification queue at the end of *c* + 1
//!   (insert: two cycles). The model gets it in *c* + 1, after that cycle's round has begun.
//! * In each cycle without an iteration under way the model runs a round. If it grants nothing, the
//!   gates have not begun either. If it does, the gates issue the same grants three cycles later.
//!   (The model's own `next_iteration` sleeps while nothing can match, and lets an empty round take
//!   three cycles too. The gates look again in the next cycle.)
//! * The model frees a place in a channel when a round begins, the gates when it ends. Only a
//!   sender that breaks the protocol can tell; its demand is kept from the model then.
//! * The gates compare a withdrawal with the oldest demand of its channel, whose last grant may be
//!   under way. It names that one then, and ends nothing.

use crate::gates::{Functions, Gates};
use base::{Bytes, NodeId, Rate, Time};
use edm::pcs::memory::message_blocks;
use edm::scheduler::{Demand, DemandKind, Match, Refused, Scheduler};
use edm::{Body, Config, Message, MessageId, Modify, Place, Policy, Tag};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
/// Cycles of an iteration.
const ITERATION: u64 = 3;
/// Ids of writes have the top bit.
const WRITE_ID: u8 = 0x80;

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

/// Source, target, and whether it is for writes.
type Channel = (u32, u32, bool);

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
    model: Scheduler,
    place: Place,
    limit: u8,
    now: u64,
    /// The model's next round may begin in this cycle.
    next_round: u64,
    /// What the ports did one cycle ago.
    staged: Vec<(u32, Action, MessageId)>,
    /// Grants by the cycle in which they are valid.
    grants: VecDeque<(u64, Vec<Match>)>,
    /// Answers to the demands of the last cycle, by port.
    answers: Vec<u64>,
    refused: u64,
    /// Ids of the demands of each channel that have a place in the gates, the oldest first, and
    /// whether a grant of it has been seen.
    places: BTreeMap<Channel, VecDeque<(MessageId, bool)>>,
    /// Channels whose oldest demand is withdrawn in the gates, and leaves at the end of this
    /// iteration.
    withdrawn: BTreeSet<Channel>,
    /// Withdrawals that named a demand, and the others.
    named: u64,
    idle: u64,
    granted: u64,
    ids: u8,
}

impl Lockstep {
    /// Both idle.
    pub fn new(variant: Variant) -> Lockstep {
        let (config, ports) = (variant.config(), variant.ports());
        let place = Place { nodes: ports, rate: Rate::gbps(25) };
        Lockstep {
            gates: Gates::new(variant.functions()),
            model: Scheduler::new(config, place),
            place,
            limit: config.active_per_pair,
            now: 0,
            next_round: 0,
            staged: Vec::new(),
            grants: VecDeque::new(),
            answers: vec![0; ports as usize],
            refused: 0,
            places: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            named: 0,
            idle: 0,
            granted: 0,
            ids: 0,
        }
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.now
    }

    /// Grants so far, the same in both.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Withdrawals that named a demand so far, the same in both.
    pub fn withdrawn(&self) -> u64 {
        self.named
    }

    /// Demands refused so far, the same in both.
    pub fn refused(&self) -> u64 {
        self.refused
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
        let idle_from = self.now;
        while !self.is_drained() {
            self.cycle(&[])?;
            if self.now - idle_from > 50_000_000 {
                return Err(format!("cycle {}: demands wait for ever", self.now));
            }
        }
        self.cycle(&[])
    }

    fn is_drained(&self) -> bool {
        let waiting = (0..self.place.nodes).any(|port| self.model.waiting(NodeId(port)) > 0);
        !waiting && self.withdrawn.is_empty() && self.grants.is_empty() && self.staged.is_empty()
    }

    /// One cycle in which each of these ports (each at most once) does something. Of demands that
    /// come together, the lower port's is the older one.
    pub fn cycle(&mut self, actions: &[(u32, Action)]) -> Result<(), String> {
        self.compare()?;
        self.model_round();
        self.model_inputs();
        self.gates_inputs(actions);
        self.gates.tick();
        self.now += 1;
        match Gates::failures() {
            0 => Ok(()),
            failures => Err(format!("cycle {}: {failures} assertions of the gates failed", self.now - 1)),
        }
    }

    fn time(&self) -> Time {
        Time::ZERO + self.place.blocks(self.now)
    }

    fn model_round(&mut self) {
        if self.now < self.next_round {
            return;
        }
        for channel in std::mem::take(&mut self.withdrawn) {
            self.leave(channel);
        }
        let mut made = Vec::new();
        self.model.iterate(self.time(), &mut made);
        if !made.is_empty() {
            self.next_round = self.now + ITERATION;
            self.grants.push_back((self.next_round, made));
        }
    }

    /// What the ports did one cycle ago reaches the model's queues.
    fn model_inputs(&mut self) {
        self.answers.fill(0);
        let staged = std::mem::take(&mut self.staged);
        for (port, action, id) in &staged {
            if let Action::Write { target, bytes: 0, .. } = *action {
                self.withdraw((*port, target, id.0 & WRITE_ID != 0), *id);
            }
        }
        for (port, ..) in staged.iter().filter(|(_, action, _)| *action == Action::Down) {
            self.model.disable(NodeId(*port), &mut Vec::new());
            self.places.retain(|(source, target, _), _| source != port && target != port);
            self.withdrawn.retain(|(source, target, _)| source != port && target != port);
        }
        for (port, action, id) in staged {
            if let Action::Uplink { blocks } = action {
                self.model.book_uplink(self.time(), NodeId(port), u64::from(blocks));
            }
            if matches!(action, Action::Write { bytes: 0, .. }) {
                continue;
            }
            let Some(demand) = demand_of(port, action, id) else { continue };
            self.answers[port as usize] = self.insert(demand);
            self.refused += u64::from(self.answers[port as usize] != 0);
        }
    }

    /// The gates see the oldest demand until the iteration under way is over.
    fn withdraw(&mut self, channel: Channel, id: MessageId) {
        let oldest = self.places.get(&channel).and_then(VecDeque::front);
        // A read that was not sent on is not known to its memory node.
        let is_named = oldest.is_some_and(|(oldest, started)| *oldest == id && (channel.2 || *started));
        if !is_named || !self.withdrawn.insert(channel) {
            self.idle += 1;
            return;
        }
        self.named += 1;
        let made = self.grants.iter().flat_map(|(_, made)| made);
        if !made.filter(|made| made.last).any(|made| channel_of(&made.demand) == channel) {
            let (source, target, _) = channel;
            assert!(self.model.withdraw(self.time(), NodeId(source), NodeId(target), id), "the model has no {id:?}");
        }
    }

    /// The oldest demand of a channel gives its place in the gates back.
    fn leave(&mut self, channel: Channel) {
        if let Some(ids) = self.places.get_mut(&channel) {
            ids.pop_front();
        }
    }

    /// Inserts a demand and returns the gates' answer to it.
    fn insert(&mut self, demand: Demand) -> u64 {
        let channel = channel_of(&demand);
        let taken = self.places.get(&channel).map_or(0, VecDeque::len);
        if taken == usize::from(self.limit) && demand.bytes > 0 {
            return 4;
        }
        match self.model.insert(self.time(), demand) {
            Ok(()) => {
                self.places.entry(channel).or_default().push_back((demand.id, false));
                0
            }
            Err(Refused::NoSuchPort { .. }) => 1,
            Err(Refused::Empty) => 2,
            Err(Refused::PortDisabled { .. }) => 3,
            Err(Refused::PairFull { .. }) => 4,
        }
    }

    fn gates_inputs(&mut self, actions: &[(u32, Action)]) {
        for port in [DEMAND_VALID, UPLINK_VALID, DOWN] {
            self.gates.clear(port);
        }
        for (port, action) in actions {
            let index = *port as usize;
            self.ids = self.ids.wrapping_add(1);
            let (action, id) = self.resolved(*port, *action);
            match action {
                Action::Down => self.gates.set(DOWN, index, 1, 1),
                Action::Uplink { blocks } => {
                    self.gates.set(UPLINK_VALID, index, 1, 1);
                    self.gates.set(UPLINK_BLOCKS, index * 4, 4, u64::from(blocks));
                }
                _ => {
                    let demand = demand_of(*port, action, id).expect("the action makes a demand");
                    self.gates.set(DEMAND_VALID, index, 1, 1);
                    self.gates.set(DEMAND, index * DEMAND_BITS, DEMAND_BITS, demand_bits(*port, &demand));
                }
            }
            self.staged.push((*port, action, id));
        }
        self.staged.sort_by_key(|(port, ..)| *port);
    }

    /// An action with the next id of its class; of a withdrawal, the /N/ that it is.
    fn resolved(&self, port: u32, action: Action) -> (Action, MessageId) {
        let (read, write) = (MessageId(self.ids % WRITE_ID), MessageId(self.ids | WRITE_ID));
        let Action::Withdraw { channel, place } = action else {
            return (action, if matches!(action, Action::Write { .. }) { write } else { read });
        };
        let used = || self.places.iter().filter(|((source, ..), ids)| *source == port && !ids.is_empty());
        let chosen = used().nth(usize::from(channel) % used().count().max(1));
        let target = chosen.map_or(u32::from(channel), |((_, target, _), _)| *target);
        let id = chosen.and_then(|(_, ids)| ids.get(usize::from(place))).map(|(id, _)| *id);
        (Action::Write { target, bytes: 0, batch: 1 }, id.unwrap_or(read))
    }

    /// Compares the outputs of this cycle.
    fn compare(&mut self) -> Result<(), String> {
        let made = match self.grants.front() {
            Some((at, _)) if *at == self.now => self.grants.pop_front().map(|(_, made)| made),
            _ => None,
        };
        let made = made.unwrap_or_default();
        self.granted += made.len() as u64;
        for made in &made {
            let channel = channel_of(&made.demand);
            if made.last {
                self.withdrawn.remove(&channel);
                self.leave(channel);
            } else if let Some((_, started)) = self.places.get_mut(&channel).and_then(VecDeque::front_mut) {
                *started = true;
            }
        }
        let expected: BTreeMap<u32, u64> = made.iter().map(|made| (made.demand.source.0, grant_bits(made))).collect();
        let got: BTreeMap<u32, u64> = (0..self.place.nodes)
            .filter(|port| self.gates.get(GRANT_VALID, *port as usize, 1) == 1)
            .map(|port| (port, self.gates.get(GRANT, port as usize * GRANT_BITS, GRANT_BITS)))
            .collect();
        if expected != got {
            return Err(format!("cycle {}: grants by source: model {expected:x?}, gates {got:x?}", self.now));
        }
        let answers: Vec<u64> =
            (0..self.place.nodes as usize).map(|port| self.gates.get(REFUSED, port * 3, 3)).collect();
        if answers != self.answers {
            return Err(format!("cycle {}: answers: model {:?}, gates {answers:?}", self.now, self.answers));
        }
        let counts = [REFUSED_COUNT, WITHDRAWN_COUNT, IDLE_COUNT].map(|count| self.gates.get(count, 0, 32));
        let expected = [self.refused, self.named, self.idle];
        if counts != expected {
            return Err(format!(
                "cycle {}: refused, withdrawn, idle so far: model {expected:?}, gates {counts:?}",
                self.now
            ));
        }
        Ok(())
    }
}

fn channel_of(demand: &Demand) -> Channel {
    (demand.source.0, demand.target.0, matches!(demand.kind, DemandKind::Write { .. }))
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
