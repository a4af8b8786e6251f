//! `edm::scheduler::Scheduler` in the time of the gates.
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

use base::{NodeId, Rate, Time};
use edm::scheduler::{Demand, DemandKind, Match, Refused, Scheduler};
use edm::{Config, MessageId, Place};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Cycles of an iteration.
const ITERATION: u64 = 3;
/// Ids of writes have the top bit.
pub const WRITE_ID: u8 = 0x80;

/// What a port brings in, in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A demand; its source, or for a response its target, is the port.
    Demand(Demand),
    /// An /N/ of zero bytes.
    Withdraw {
        /// The target, in range or not.
        target: NodeId,
        /// The id of the demand.
        id: MessageId,
    },
    /// Blocks on the uplink besides chunks.
    Uplink {
        /// How many.
        blocks: u64,
    },
    /// The link is dead from now on.
    Down,
}

/// Source, target, and whether it is for writes.
type Channel = (u32, u32, bool);

/// The model, a cycle at a time.
pub struct Timed {
    model: Scheduler,
    place: Place,
    limit: u8,
    now: u64,
    /// The model's next round may begin in this cycle.
    next_round: u64,
    /// What the ports brought in one cycle ago, by port.
    staged: Vec<(u32, Input)>,
    /// Grants by the cycle in which they are valid.
    grants: VecDeque<(u64, Vec<Match>)>,
    /// Answers to the demands of the last cycle, by port: `refused_e`.
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
}

impl Timed {
    /// An idle scheduler of so many ports.
    pub fn new(config: Config, ports: u32) -> Timed {
        let place = Place { nodes: ports, rate: Rate::gbps(25) };
        Timed {
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
        }
    }

    /// This cycle.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The begin of this cycle.
    pub fn time(&self) -> Time {
        Time::ZERO + self.place.blocks(self.now)
    }

    /// Demands refused so far, withdrawn, and withdrawals that named none.
    pub fn counts(&self) -> [u64; 3] {
        [self.refused, self.named, self.idle]
    }

    /// What the gates answer in this cycle to the demands of two cycles ago, by port: `refused_e`.
    pub fn answers(&self) -> &[u64] {
        &self.answers
    }

    /// Whether nothing waits, and nothing is under way.
    pub fn is_drained(&self) -> bool {
        let waiting = (0..self.place.nodes).any(|port| self.model.waiting(NodeId(port)) > 0);
        !waiting && self.withdrawn.is_empty() && self.grants.is_empty() && self.staged.is_empty()
    }

    /// Peer, id and class of a demand that a source has: of the `channel`-th of its channels in use,
    /// counted round, the one with `place` before it.
    pub fn demand_of(&self, source: u32, channel: usize, place: usize) -> Option<(u32, Option<MessageId>)> {
        let used = || self.places.iter().filter(|((port, ..), ids)| *port == source && !ids.is_empty());
        let ((_, target, _), ids) = used().nth(channel % used().count().max(1))?;
        Some((*target, ids.get(place).map(|(id, _)| *id)))
    }

    /// The grants that are valid in this cycle. Call it once a cycle, before [`Timed::cycle`].
    pub fn grants(&mut self) -> Vec<Match> {
        let made = match self.grants.front() {
            Some((at, _)) if *at == self.now => self.grants.pop_front().map(|(_, made)| made),
            _ => None,
        };
        let made = made.unwrap_or_default();
        for made in &made {
            let channel = channel_of(&made.demand);
            if made.last {
                self.withdrawn.remove(&channel);
                self.leave(channel);
            } else if let Some((_, started)) = self.places.get_mut(&channel).and_then(VecDeque::front_mut) {
                *started = true;
            }
        }
        made
    }

    /// Ends this cycle, in which these ports bring something in. Of demands that come together, the
    /// lower port's is the older one.
    pub fn cycle(&mut self, mut inputs: Vec<(u32, Input)>) {
        self.round();
        self.take_inputs();
        inputs.sort_by_key(|(port, _)| *port);
        self.staged = inputs;
        self.now += 1;
    }

    fn round(&mut self) {
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

    /// What the ports brought in one cycle ago reaches the model's queues.
    fn take_inputs(&mut self) {
        self.answers.fill(0);
        let staged = std::mem::take(&mut self.staged);
        for (port, input) in &staged {
            if let Input::Withdraw { target, id } = *input {
                self.withdraw((*port, target.0, id.0 & WRITE_ID != 0), id);
            }
        }
        for (port, _) in staged.iter().filter(|(_, input)| *input == Input::Down) {
            self.model.disable(NodeId(*port), &mut Vec::new());
            self.places.retain(|(source, target, _), _| source != port && target != port);
            self.withdrawn.retain(|(source, target, _)| source != port && target != port);
        }
        for (port, input) in staged {
            match input {
                Input::Uplink { blocks } => self.model.book_uplink(self.time(), NodeId(port), blocks),
                Input::Demand(demand) => {
                    self.answers[port as usize] = self.insert(demand);
                    self.refused += u64::from(self.answers[port as usize] != 0);
                }
                Input::Withdraw { .. } | Input::Down => {}
            }
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
}

fn channel_of(demand: &Demand) -> Channel {
    (demand.source.0, demand.target.0, matches!(demand.kind, DemandKind::Write { .. }))
}
