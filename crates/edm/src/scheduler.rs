//! The matching scheduler of the switch: notification queues and priority PIM (paper 3.1.1 to
//! 3.1.3).
//!
//! A *channel* is an ordered pair (source and target of data) together with the purpose of the
//! data: writes of the source, or answers to the target's reads. Demands of a channel are served in
//! order, so only the head of a channel competes. (With one queue for both, two nodes that read and
//! write each other's memory can wait for each other in a cycle.) Each target port has a
//! notification queue of channel heads in order of priority. Each source port has an array of the
//! same heads, to select the best of several requests. An iteration takes three cycles: every free
//! target requests the free source of its best head; every source accepts the best request; both
//! are marked busy until `l/B` after the grant.
//!
//! The size of a chunk (`l`) is counted in 66-bit blocks with framing. The /G/ or RREQ that the
//! scheduler itself sends on the source's downlink is booked there too. With payload bytes alone,
//! its own control traffic would oversubscribe every port, and the zero-queue property of 3.1.1
//! would fail at full load.
//!
//! *Slots.* Continuous rounds let the chunks of different pairs end at different times. A chunk can
//! only be granted when its source and its target are free together, so long transfers out of phase
//! hold up a third one, whatever its priority. With [`Matching::Slotted`](crate::Matching) a round
//! starts once a chunk time, and all ports take part.
//!
//! *No starvation under FCFS.* To request the best demand *with a free source* is not enough. A
//! source and a target in constant demand, with chunks that end half a chunk apart, are never free
//! together, so a demand between them could wait forever (`tests/scheduler.rs` builds that case). A
//! target that has passed over its oldest demand X*N times in a row, a full notification queue of
//! 3.1.2, therefore requests nothing else until it has been granted. SRPT has no such rule.

use crate::config::{Config, Place, Policy};
use crate::host::WRITE_ID;
use crate::message::{Body, Message, MessageId};
use crate::pcs::memory as encoded;
use crate::priority::Competitor;
use crate::sparse::Sparse;
use crate::{Ordering, Tag};
use base::{Decide, NodeId, Span, Time};
use prefetch_index::prefetch_index;
use std::sync::Arc;

/// Purpose of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandKind {
    /// A write, or a batch of small ones: the source waits for /G/.
    Write {
        /// Messages that share the notification.
        batch: u8,
    },
    /// The answer to this buffered RREQ or RMWREQ, which is sent on as the first grant.
    Response {
        /// The request.
        request: Message,
    },
}

/// Bytes that a source has for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The sender of the data.
    pub source: NodeId,
    /// The receiver of the data.
    pub target: NodeId,
    /// The message's number between the two.
    pub id: MessageId,
    /// Length in bytes; not zero.
    pub bytes: u32,
    /// The purpose.
    pub kind: DemandKind,
    /// Carried along for traces; not on any wire.
    pub tag: Tag,
}

/// A grant that an iteration has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The demand as it was announced.
    pub demand: Demand,
    /// Bytes that may be sent now.
    pub bytes: u32,
    /// 66-bit blocks that they make: the circuit is booked for so long.
    pub blocks: u64,
    /// Whether this is the first grant of its demand.
    pub first: bool,
    /// Whether nothing remains after it.
    pub last: bool,
}

/// Reason why a demand was not taken: the sender broke the protocol. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A node number beyond the last port, or a node that wants to talk to itself.
    #[error("a demand from {} to {} is not between two of this switch's {nodes} ports", source_port.0, target.0)]
    NoSuchPort {
        /// The sender.
        source_port: NodeId,
        /// The receiver.
        target: NodeId,
        /// Ports of the switch.
        nodes: u32,
    },
    /// Nothing to send.
    #[error("a demand for zero bytes")]
    Empty,
    /// The pair has X active notifications of this kind already.
    #[error("more than {limit} active notifications of one kind from {} to {}", source_port.0, target.0)]
    PairFull {
        /// The sender.
        source_port: NodeId,
        /// The receiver.
        target: NodeId,
        /// The X of the configuration.
        limit: u8,
    },
    /// One of the two ports is disabled.
    #[error("port {} is disabled", port.0)]
    PortDisabled {
        /// The demand.
        port: NodeId,
    },
}

/// The first entry of a channel, in a table of channels of which most are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct First(u32);

impl Default for First {
    fn default() -> First {
        First(NONE)
    }
}

/// The channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Channel {
    source: NodeId,
    target: NodeId,
    class: Class,
}

impl Channel {
    /// Its name among those of its source.
    fn key(self) -> u32 {
        self.target.0 * 2 + self.class as u32
    }
}

impl Demand {
    fn channel(&self) -> Channel {
        Channel { source: self.source, target: self.target, class: self.kind.class() }
    }
}

/// Purpose of the data of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Write,
    Response,
}

impl DemandKind {
    fn class(&self) -> Class {
        match self {
            DemandKind::Write { .. } => Class::Write,
            DemandKind::Response { .. } => Class::Response,
        }
    }
}

/// The channel heads that one port could serve, best first: an ordered list as in 3.1.2. Keys are
/// unique.
#[derive(Clone, Debug, Default)]
struct OrderedList(Vec<(u64, Peer)>);

/// The port at the other end of a channel, and the channel's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    port: u32,
    class: Class,
}

impl OrderedList {
    fn with_room() -> OrderedList {
        OrderedList(Vec::with_capacity(ROOM))
    }
    fn insert(&mut self, key: u64, peer: Peer) {
        // What comes last is mostly the least urgent.
        if self.0.last().is_none_or(|(last, _)| *last < key) {
            return self.0.push((key, peer));
        }
        let position = self.0.partition_point(|(other, _)| *other < key);
        self.0.insert(position, (key, peer));
    }
    fn remove(&mut self, key: u64) {
        let position = self.0.partition_point(|(other, _)| *other < key);
        debug_assert_eq!(self.0[position].0, key, "the ordered list lost an entry");
        self.0.remove(position);
    }
}

const NONE: u32 = u32::MAX;
/// Room for what a port usually has waiting, so that a run settles soon and then allocates nothing.
const ROOM: usize = 32;

/// A demand in the slab, linked to the next of its channel. One cache line; what only a response
/// has is beside it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Entry {
    source: NodeId,
    target: NodeId,
    bytes: u32,
    remaining: u32,
    tag: Tag,
    next: u32,
    sequence: u64,
    /// Its key in the lists while it is an exposed head.
    key: u64,
    id: MessageId,
    class: Class,
    /// Of a write: messages that share the notification.
    batch: u8,
    exposed: bool,
    started: bool,
}

const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    fn new(demand: &Demand, sequence: u64) -> Entry {
        let Demand { source, target, id, bytes, kind, tag } = *demand;
        let batch = match kind {
            DemandKind::Write { batch } => batch,
            DemandKind::Response { .. } => 1,
        };
        let (remaining, class) = (bytes, kind.class());
        let (next, key, exposed, started) = (NONE, 0, false, false);
        Entry { source, target, bytes, remaining, tag, next, sequence, key, id, class, batch, exposed, started }
    }

    fn competitor(&self) -> Competitor {
        let Entry { source, target, bytes, remaining, class, sequence, .. } = *self;
        Competitor { source, target, bytes, remaining, is_answer: class == Class::Response, order: sequence }
    }
}

/// The request of a response, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Asked(Message);

/// The scheduler. Calling order: [`insert`](Scheduler::insert) at any time;
/// [`iterate`](Scheduler::iterate) at [`next_iteration`](Scheduler::next_iteration).
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: Config,
    place: Place,
    priority: Option<Arc<dyn Decide<Competitor>>>,
    round: Span,
    /// From the start of a slotted round to the next; zero without slots.
    slot: Span,
    look_ahead: Span,
    /// One block on a link.
    block: Span,
    /// The first entry of each channel that has any, by source. A channel holds X entries at most.
    heads: Vec<Sparse<First>>,
    entries: Vec<Entry>,
    /// By entry: the request of a response, and of a write nothing that matters.
    requests: Vec<Asked>,
    free_entries: Vec<u32>,
    /// One notification queue a target port: exposed heads by priority; the peer is the source.
    queues: Vec<OrderedList>,
    /// One array a source port: exposed heads by priority; the peer is the target.
    arrays: Vec<OrderedList>,
    /// One bit a target port: its queue is not empty.
    wanted: Vec<u64>,
    waiting: Vec<u32>,
    /// How many grants in a row each target has had past the first demand in its queue.
    passed_over: Vec<u32>,
    source_free_at: Vec<Time>,
    target_free_at: Vec<Time>,
    disabled: Vec<bool>,
    sequence: u64,
    round_end: Time,
    next: Option<Time>,
    scratch: Requests,
    longest_queue: u32,
    iterations: u64,
}

/// The requests of one iteration, kept to be used again.
#[derive(Clone, Debug, Default)]
struct Requests {
    /// One bit a port: free as a target.
    free_targets: Vec<u64>,
    /// The channel and source that each target requests, if any, and the set of these targets.
    asked: Vec<Option<Peer>>,
    asking: Vec<u32>,
    /// Whether what each target requests is the first in its queue.
    asked_first: Vec<bool>,
    /// Number of targets that request each source.
    count: Vec<u32>,
    /// Sources with at least one request, and the first requesting target, with the class.
    sources: Vec<(u32, Peer)>,
}

impl Requests {
    fn new(nodes: usize) -> Requests {
        let (asked, count, sources) = (vec![None; nodes], vec![0; nodes], Vec::new());
        let (free_targets, asking, asked_first) = (vec![0; nodes.div_ceil(64)], Vec::new(), vec![false; nodes]);
        Requests { free_targets, asked, asking, asked_first, count, sources }
    }
    /// No requests yet, among targets of which some are free at `soon`.
    fn begin(&mut self, target_free_at: &[Time], soon: Time) {
        for (source, _) in self.sources.drain(..) {
            self.count[source as usize] = 0;
        }
        for target in self.asking.drain(..) {
            self.asked[target as usize] = None;
        }
        mark_free(&mut self.free_targets, target_free_at, soon);
    }
    /// The target requests the source at `place` of its queue.
    fn ask(&mut self, target: usize, place: usize, source: Peer) {
        self.asked[target] = Some(source);
        self.asked_first[target] = place == 0;
        self.asking.push(target as u32);
        let count = &mut self.count[source.port as usize];
        if *count == 0 {
            self.sources.push((source.port, Peer { port: target as u32, class: source.class }));
        }
        *count += 1;
    }
}

/// Sets the bits of the ports that are free at `soon`. Without a branch: which those are nobody can
/// guess. Eight at a time, so that no bit has to wait for all before it.
fn mark_free(bits: &mut [u64], free_at: &[Time], soon: Time) {
    for (word, free_at) in bits.iter_mut().zip(free_at.chunks(64)) {
        let (eights, rest) = free_at.as_chunks::<8>();
        let whole = eights.iter().rev().fold(0, |bits, eight| bits << 8 | free_bits(eight, soon));
        *word = whole | free_bits(rest, soon).checked_shl(8 * eights.len() as u32).unwrap_or(0);
    }
}

#[inline(always)]
fn free_bits(free_at: &[Time], soon: Time) -> u64 {
    free_at.iter().zip(0..).fold(0, |bits, (at, bit)| bits | u64::from(*at <= soon) << bit)
}

impl Scheduler {
    /// An idle scheduler for the ports of `place`.
    pub fn new(config: Config, place: Place) -> Scheduler {
        let nodes = place.nodes as usize;
        Scheduler {
            round: crate::budget::Delays::new(&config).iteration,
            slot: crate::budget::slot(&config, &place).unwrap_or(Span::ZERO),
            look_ahead: config.scheduler_clock.cycles(u64::from(config.look_ahead_cycles)),
            block: place.blocks(1),
            config,
            place,
            priority: None,
            heads: (0..nodes).map(|_| Sparse::new(place.nodes * 2, ROOM)).collect(),
            entries: Vec::new(),
            requests: Vec::new(),
            free_entries: Vec::new(),
            queues: (0..nodes).map(|_| OrderedList::with_room()).collect(),
            arrays: (0..nodes).map(|_| OrderedList::with_room()).collect(),
            wanted: vec![0; nodes.div_ceil(64)],
            waiting: vec![0; nodes],
            passed_over: vec![0; nodes],
            source_free_at: vec![Time::ZERO; nodes],
            target_free_at: vec![Time::ZERO; nodes],
            disabled: vec![false; nodes],
            sequence: 0,
            round_end: Time::ZERO,
            next: None,
            scratch: Requests::new(nodes),
            longest_queue: 0,
            iterations: 0,
        }
    }

    /// Takes a priority of one's own in place of the policy. Nothing may wait yet.
    pub fn set_priority(&mut self, priority: Arc<dyn Decide<Competitor>>) {
        debug_assert!(self.waiting.iter().all(|waiting| *waiting == 0), "keys of two kinds in one list");
        self.priority = Some(priority);
    }

    /// Returns the time at which the next iteration should start; `None` while there is nothing to
    /// match.
    pub fn next_iteration(&self) -> Option<Time> {
        self.next
    }
    /// The span from the start of a round to its grants.
    pub fn round(&self) -> Span {
        self.round
    }
    /// The most notifications that ever waited for one target port, or since
    /// [`restart_longest_queue`](Scheduler::restart_longest_queue).
    pub fn longest_queue(&self) -> u32 {
        self.longest_queue
    }
    /// Takes the longest queue from now on, with what waits now.
    pub fn restart_longest_queue(&mut self) {
        self.longest_queue = self.waiting.iter().copied().max().unwrap_or(0);
    }
    /// Notifications that wait for `target`.
    pub fn waiting(&self, target: NodeId) -> u32 {
        self.waiting[target.index()]
    }
    /// Iterations run so far.
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Adds a demand to the notification queue of its target.
    pub fn insert(&mut self, now: Time, demand: Demand) -> Result<(), Refused> {
        let last = self.check(&demand)?;
        let slot = self.store(&demand);
        let channel = demand.channel();
        if self.config.ordering == Ordering::None {
            self.link_by_priority(channel, slot);
        } else if last == NONE {
            self.set_first(channel, slot);
        } else {
            self.entries[last as usize].next = slot;
        }
        self.expose(now, channel.source, channel.target, channel.class);
        let waiting = &mut self.waiting[demand.target.index()];
        *waiting += 1;
        self.longest_queue = self.longest_queue.max(*waiting);
        Ok(())
    }

    /// Retires the demand of `source` for `target` with this id: its source has nothing left of it.
    /// It must be the head of its channel, and a response must have been sent on, or its source
    /// would not know of it. Returns whether there was one.
    pub fn withdraw(&mut self, now: Time, source: NodeId, target: NodeId, id: MessageId) -> bool {
        if source.0.max(target.0) >= self.place.nodes {
            return false;
        }
        let class = if id.0 & WRITE_ID == 0 { Class::Response } else { Class::Write };
        let channel = Channel { source, target, class };
        let head = self.first(channel);
        let is_named = |entry: &Entry| entry.id == id && (class == Class::Write || entry.started);
        if !self.entries.get(head as usize).is_some_and(is_named) {
            return false;
        }
        self.retire(now, head, channel);
        // Under FCFS it may have been the only one that its target would request.
        let start = self.earliest_eligible().map(|at| self.slot_from(at.max(now).max(self.round_end)));
        self.next = self.next.into_iter().chain(start).min();
        true
    }

    /// Prefetches the state of the channels between two ports: a demand of either direction will
    /// arrive shortly.
    #[inline]
    pub fn prefetch(&self, port: NodeId, other: NodeId) {
        let classes = |source: NodeId, target: NodeId| {
            if let Some(heads) = self.heads.get(source.index()) {
                heads.prefetch(Channel { source, target, class: Class::Write }.key());
            }
        };
        classes(port, other);
        classes(other, port);
    }

    /// Books blocks that a source has put on its own uplink besides its chunks. They push back what
    /// it was granted, so a busy port stays busy for so much longer; an idle one has already sent
    /// them.
    pub fn book_uplink(&mut self, now: Time, source: NodeId, blocks: u64) {
        let free_at = &mut self.source_free_at[source.index()];
        if *free_at > now {
            *free_at += self.block * blocks;
        }
    }

    /// Runs the round that starts at `start` and appends its grants, which are issued at `start +
    /// round()`.
    pub fn iterate(&mut self, start: Time, out: &mut Vec<Match>) {
        self.iterate_each(start, |made| out.push(made));
    }

    /// [`iterate`](Self::iterate) without a buffer: passes each grant to `take` at once.
    pub fn iterate_each(&mut self, start: Time, mut take: impl FnMut(Match)) {
        let issue_at = start + self.round;
        let mut any = false;
        for _ in 0..self.config.iterations_per_round {
            self.iterations += 1;
            self.request(issue_at);
            if self.scratch.sources.is_empty() {
                break;
            }
            any = true;
            self.accept(start, issue_at, &mut take);
        }
        self.round_end = issue_at;
        // A round that matched something may be followed by one that matches more; after an empty
        // one nothing changes until a port becomes free or a demand comes in.
        let next = if any { Some(issue_at) } else { self.earliest_eligible().map(|at| at.max(issue_at)) };
        self.next = next.map(|at| self.slot_from(at));
    }

    /// Takes a port out of service and forgets its demands, whose tags go to `dropped`.
    pub fn disable(&mut self, port: NodeId, dropped: &mut Vec<Tag>) {
        self.disabled[port.index()] = true;
        for other in (0..self.place.nodes).map(NodeId) {
            for class in [Class::Write, Class::Response] {
                self.clear_channel(port, other, class, dropped);
                self.clear_channel(other, port, class, dropped);
            }
        }
    }

    /// The last entry of the demand's channel, if it may have another one.
    fn check(&self, demand: &Demand) -> Result<u32, Refused> {
        let (source_port, target, nodes) = (demand.source, demand.target, self.place.nodes);
        if source_port.0 >= nodes || target.0 >= nodes || source_port == target {
            return Err(Refused::NoSuchPort { source_port, target, nodes });
        }
        if demand.bytes == 0 {
            return Err(Refused::Empty);
        }
        if let Some(port) = [source_port, target].into_iter().find(|port| self.disabled[port.index()]) {
            return Err(Refused::PortDisabled { port });
        }
        let mut at = self.first(demand.channel());
        let (mut active, mut last) = (0, NONE);
        while at != NONE {
            (active, last, at) = (active + 1, at, self.entries[at as usize].next);
        }
        let limit = self.config.active_per_pair;
        if active >= limit { Err(Refused::PairFull { source_port, target, limit }) } else { Ok(last) }
    }

    /// The first entry of a channel.
    fn first(&self, channel: Channel) -> u32 {
        self.heads[channel.source.index()].get(channel.key()).0
    }
    #[inline]
    fn set_first(&mut self, channel: Channel, slot: u32) {
        self.heads[channel.source.index()].set(channel.key(), First(slot));
    }

    fn store(&mut self, demand: &Demand) -> u32 {
        self.sequence += 1;
        let entry = Entry::new(demand, self.sequence);
        let slot = match self.free_entries.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => self.grow(entry),
        };
        if let DemandKind::Response { request } = demand.kind {
            self.requests[slot as usize] = Asked(request);
        }
        slot
    }
    #[cold]
    fn grow(&mut self, entry: Entry) -> u32 {
        let Entry { source, target, id, .. } = entry;
        self.entries.push(entry);
        self.requests.push(Asked(Message { source, target, id, body: Body::ReadResponse { bytes: 0, last: true } }));
        self.entries.len() as u32 - 1
    }
    /// A demand as it was announced.
    fn demand(&self, slot: u32) -> Demand {
        let Entry { source, target, id, bytes, tag, class, batch, .. } = self.entries[slot as usize];
        let kind = match class {
            Class::Write => DemandKind::Write { batch },
            Class::Response => DemandKind::Response { request: self.requests[slot as usize].0 },
        };
        Demand { source, target, id, bytes, kind, tag }
    }

    /// Puts a demand before the first of its channel that is less urgent. A head that is overtaken
    /// no longer competes.
    fn link_by_priority(&mut self, channel: Channel, slot: u32) {
        let key = self.key(slot);
        let (mut before, mut at) = (NONE, self.first(channel));
        while at != NONE && self.key(at) < key {
            (before, at) = (at, self.entries[at as usize].next);
        }
        self.entries[slot as usize].next = at;
        if before != NONE {
            self.entries[before as usize].next = slot;
            return;
        }
        if at != NONE {
            self.hide(at);
        }
        self.set_first(channel, slot);
    }

    fn hide(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        if std::mem::replace(&mut entry.exposed, false) {
            let (target, source, key) = (entry.target.index(), entry.source.index(), entry.key);
            let queue = &mut self.queues[target];
            queue.remove(key);
            self.wanted[target / 64] &= !(u64::from(queue.0.is_empty()) << (target % 64));
            self.arrays[source].remove(key);
        }
    }

    /// Lets the head of a channel compete, unless an earlier read of the same pair holds it back.
    fn expose(&mut self, now: Time, source: NodeId, target: NodeId, class: Class) {
        let head = self.first(Channel { source, target, class });
        if head == NONE || self.entries[head as usize].exposed || self.held_back(head) {
            return;
        }
        let key = self.key(head);
        let entry = &mut self.entries[head as usize];
        (entry.key, entry.exposed) = (key, true);
        self.queues[target.index()].insert(key, Peer { port: source.0, class });
        self.wanted[target.index() / 64] |= 1 << (target.0 % 64);
        self.arrays[source.index()].insert(key, Peer { port: target.0, class });
        let eligible = self.source_free_at[source.index()].max(self.target_free_at[target.index()]);
        let start = self.slot_from(self.round_start_for(eligible).max(now).max(self.round_end));
        self.next = Some(self.next.map_or(start, |next| next.min(start)));
    }

    /// A write waits until the pair's earlier reads have been sent on, so that it cannot overtake
    /// them.
    fn held_back(&self, head: u32) -> bool {
        let Entry { source, target, class, sequence, .. } = &self.entries[head as usize];
        if self.config.ordering != Ordering::Pair || *class == Class::Response {
            return false;
        }
        let reads = Channel { source: *target, target: *source, class: Class::Response };
        let mut at = self.first(reads);
        while at != NONE && self.entries[at as usize].started {
            at = self.entries[at as usize].next;
        }
        at != NONE && self.entries[at as usize].sequence < *sequence
    }

    fn key(&self, slot: u32) -> u64 {
        let entry = &self.entries[slot as usize];
        // The low half of the sequence number makes keys unique and equal urgency first come, first
        // served.
        let key = |urgency: u32| (u64::from(urgency) << 32) | (entry.sequence & 0xffff_ffff);
        match (&self.priority, self.config.policy) {
            (Some(priority), _) => key(priority.decide(&entry.competitor())),
            (None, Policy::Srpt) => key(entry.remaining),
            (None, Policy::Fcfs) => entry.sequence,
        }
    }

    /// Whether demands go in the order in which they came.
    fn is_fcfs(&self) -> bool {
        self.priority.is_none() && self.config.policy == Policy::Fcfs
    }

    /// Returns the demands that a target may request: all in its queue, or only the oldest if that
    /// has been passed over too often.
    fn candidates(&self, target: usize) -> &[(u64, Peer)] {
        let queue = &self.queues[target].0;
        let passes_max = u32::from(self.config.active_per_pair) * self.place.nodes;
        let oldest_only = self.is_fcfs() && self.passed_over[target] >= passes_max;
        if oldest_only { &queue[..queue.len().min(1)] } else { queue }
    }

    /// Cycle 1: each free target requests the first free source in its queue.
    fn request(&mut self, issue_at: Time) {
        let soon = issue_at + self.look_ahead;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.begin(&self.target_free_at, soon);
        for word in 0..scratch.free_targets.len() {
            let mut targets = scratch.free_targets[word] & self.wanted[word];
            while targets != 0 {
                let target = word * 64 + targets.trailing_zeros() as usize;
                targets &= targets - 1;
                let mut candidates = self.candidates(target).iter().map(|(_, source)| *source).enumerate();
                let free = |(_, source): &(usize, Peer)| self.source_free_at[source.port as usize] <= soon;
                if let Some((place, source)) = candidates.find(free) {
                    scratch.ask(target, place, source);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Cycles 2 and 3: each source takes its best request, and the ports are marked busy.
    fn accept(&mut self, start: Time, issue_at: Time, take: &mut impl FnMut(Match)) {
        self.prefetch_grants();
        for index in 0..self.scratch.sources.len() {
            let (source, first) = self.scratch.sources[index];
            let target = if self.scratch.count[source as usize] == 1 { first } else { self.best_request(source) };
            take(self.grant(start, issue_at, NodeId(source), NodeId(target.port), target.class));
        }
    }

    /// Most requests will be granted, and each demand is in another cold place: all are fetched at
    /// once.
    fn prefetch_grants(&self) {
        for (source, Peer { port, class }) in &self.scratch.sources {
            let head = self.first(Channel { source: NodeId(*source), target: NodeId(*port), class: *class });
            prefetch_index(&self.entries, head as usize);
            prefetch_index(&self.requests, head as usize);
        }
    }

    /// The priority encoder over the source's array.
    fn best_request(&self, source: u32) -> Peer {
        let asks = |target: &Peer| {
            self.scratch.asked[target.port as usize] == Some(Peer { port: source, class: target.class })
        };
        let best = self.arrays[source as usize].0.iter().find(|(_, target)| asks(target));
        best.expect("a source was asked by a target that is not in its array").1
    }

    fn grant(&mut self, start: Time, issue_at: Time, source: NodeId, target: NodeId, class: Class) -> Match {
        let head = self.first(Channel { source, target, class });
        let entry = &mut self.entries[head as usize];
        let bytes = entry.remaining.min(self.config.chunk.count() as u32);
        let first = !std::mem::replace(&mut entry.started, true);
        entry.remaining -= bytes;
        let (last, old_key) = (entry.remaining == 0, entry.key);
        let demand = self.demand(head);
        self.count_passed_over(target);
        let blocks = chunk_blocks(&demand, bytes);
        self.book(issue_at, source, target, blocks, grant_blocks(&demand, first));
        if last {
            self.retire(start, head, Channel { source, target, class });
        } else if !self.is_fcfs() {
            self.reposition(head, source, target, old_key);
        }
        if first && class == Class::Response {
            self.expose(start, target, source, Class::Write);
        }
        Match { demand, bytes, blocks, first, last }
    }

    /// The queue may have changed since the target's request: another grant of the iteration can
    /// send a read on, and so let an older write in. Nobody has passed over that one.
    fn count_passed_over(&mut self, target: NodeId) {
        let passed_over = &mut self.passed_over[target.index()];
        *passed_over = if self.scratch.asked_first[target.index()] { 0 } else { passed_over.saturating_add(1) };
    }

    /// Both ports are busy for `l/B` from the moment of the grant; the grant itself takes its place
    /// on the source's downlink.
    fn book(&mut self, issue_at: Time, source: NodeId, target: NodeId, blocks: u64, grant_blocks: u64) {
        let free_at = self.source_free_at[source.index()].max(self.target_free_at[target.index()]);
        let until = issue_at.max(free_at) + self.block * blocks;
        self.source_free_at[source.index()] = until;
        self.target_free_at[target.index()] = until;
        let downlink = &mut self.target_free_at[source.index()];
        *downlink = (*downlink).max(issue_at) + self.block * grant_blocks;
    }

    fn reposition(&mut self, slot: u32, source: NodeId, target: NodeId, old_key: u64) {
        let key = self.key(slot);
        let entry = &mut self.entries[slot as usize];
        entry.key = key;
        let class = entry.class;
        self.queues[target.index()].remove(old_key);
        self.queues[target.index()].insert(key, Peer { port: source.0, class });
        self.arrays[source.index()].remove(old_key);
        self.arrays[source.index()].insert(key, Peer { port: target.0, class });
    }

    /// Takes the head off its channel and lets the next one compete.
    fn retire(&mut self, now: Time, head: u32, channel: Channel) {
        self.hide(head);
        let next = self.entries[head as usize].next;
        self.set_first(channel, next);
        self.waiting[channel.target.index()] -= 1;
        self.free_entries.push(head);
        if next != NONE {
            self.expose(now, channel.source, channel.target, channel.class);
        }
    }

    fn clear_channel(&mut self, source: NodeId, target: NodeId, class: Class, dropped: &mut Vec<Tag>) {
        let channel = Channel { source, target, class };
        while self.first(channel) != NONE {
            let head = self.first(channel);
            dropped.push(self.entries[head as usize].tag);
            self.retire(self.round_end, head, channel);
        }
    }

    /// The earliest start of an iteration that would find a free pair; `None` if no demand waits.
    fn earliest_eligible(&self) -> Option<Time> {
        let waiting = (0..self.queues.len()).map(|target| (target, self.candidates(target)));
        let free_at = waiting.filter(|(_, candidates)| !candidates.is_empty()).map(|(target, candidates)| {
            let source = candidates.iter().map(|(_, source)| self.source_free_at[source.port as usize]).min();
            self.target_free_at[target].max(source.unwrap_or(Time::MAX))
        });
        free_at.min().map(|at| self.round_start_for(at))
    }

    /// The start of the first slot that is not before `at`; `at` itself without slots.
    #[inline]
    fn slot_from(&self, at: Time) -> Time {
        if self.slot == Span::ZERO { at } else { Time::ps(at.as_ps().next_multiple_of(self.slot.as_ps())) }
    }

    /// The earliest start of a round that may grant a port that is free at `at`.
    fn round_start_for(&self, at: Time) -> Time {
        Time::ps(at.as_ps().saturating_sub((self.round + self.look_ahead).as_ps()))
    }
}

/// Blocks that a chunk of `demand` makes. A batch is at most one chunk; each of its messages has
/// its own framing.
fn chunk_blocks(demand: &Demand, bytes: u32) -> u64 {
    match demand.kind {
        DemandKind::Response { .. } => encoded::response_blocks(bytes),
        DemandKind::Write { batch: 1 } => encoded::write_blocks(bytes),
        DemandKind::Write { batch } => {
            let batch = u64::from(batch);
            // The address fills /MS/ and /MT/ of each message, and each may round up to a whole
            // block: an upper bound.
            2 * batch + u64::from(bytes).div_ceil(8) + batch - 1
        }
    }
}

/// Blocks that the grant itself makes on the source's downlink.
fn grant_blocks(demand: &Demand, first: bool) -> u64 {
    match demand.kind {
        DemandKind::Response { request } if first => encoded::message_blocks(&request.body),
        _ => encoded::GRANT_BLOCKS,
    }
}
