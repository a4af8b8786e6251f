//! The server of one device: takes updates of its blocks, commits them in groups, and keeps the log
//! in order.
//!
//! A group is: write the records of puts and read the segments, write new segments, make all of it
//! durable, publish the new places, take away every slot that may hold an older value, answer. The
//! order is what makes the cache linearizable. A segment is in one group at a time. Where another
//! update waits for it meanwhile, it stays in memory for the next group, as in the artifact.

mod apply;
mod asked;
mod commit;
mod compact;
mod group;
mod kept;
mod log;
mod recovery;
mod replies;

pub use group::LONG_PAGE_SECTORS_MAX;
pub use kept::{Kept, KeptZone};

use crate::{
    ClientId, Expiry, Extent, FlashAnswer, FlashOperation, Item, MemoryAnswer, MemoryOperation, Protocol, Refusal,
    Reply, Request, RequestBody, RequestId, RequestResult, Segment, SegmentPointer, Sequence, SlotWord, Value,
    check_value,
};
use base::{Program, Span, Time};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Configuration of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Which device: the server's blocks are those `b` with `b % devices == device`.
    pub device: u32,
    /// Devices of the store.
    pub devices: u32,
    /// Blocks of the store.
    pub blocks: u32,
    /// The protocol.
    pub protocol: Protocol,
    /// Updates in a group at most.
    pub group_updates: u32,
    /// A group that is not full is committed so long after its first update.
    pub group_wait: Span,
    /// Maximum groups in flight.
    pub groups_max: u32,
    /// Zones of the log.
    pub zones: u32,
    /// Sectors of a zone.
    pub zone_sectors: u32,
    /// Zones that only compaction may take, at least 4: it opens a zone of each kind and one more
    /// before it wins one back, and a restart needs one.
    pub reserve_zones: u32,
    /// Compaction begins when fewer zones than this are free.
    pub compact_below: u32,
    /// Whether the device may lose what it acknowledged: a flush comes before publishing.
    pub volatile_cache: bool,
    /// Bytes of the longest value. Beyond [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX) no slot
    /// holds it; a page with one such record ([`page_sectors`](crate::page_sectors)) may be an
    /// eighth of a zone at most.
    pub value_bytes_max: u32,
    /// Second of the store's clock at the server's time zero.
    pub start_second: u32,
    /// Whether a segment for which an update waits stays in memory for it; otherwise each group
    /// reads the device.
    pub hand_over: bool,
}

/// Inputs of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerIn<V> {
    /// A client's request.
    Request(Request<V>),
    /// An operation on the index is done.
    Memory {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: MemoryAnswer<V>,
    },
    /// An operation on the device is done.
    Flash {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: FlashAnswer<V>,
    },
}

/// Decisions of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOut<V> {
    /// An operation on the index.
    Memory {
        /// For the answer.
        request: RequestId,
        /// On which block.
        block: u32,
        /// The operation.
        operation: MemoryOperation<V>,
    },
    /// An operation on its device.
    Flash {
        /// For the answer.
        request: RequestId,
        /// The operation.
        operation: FlashOperation<V>,
    },
    /// To a client.
    Reply(Reply<V>),
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Updates committed.
    pub updates: u64,
    /// Groups committed.
    pub groups: u64,
    /// Slots taken away.
    pub invalidations: u64,
    /// Compare-and-swaps on slots that came too late and were made again.
    pub invalidation_retries: u64,
    /// Requests answered from memory, since they had been carried out.
    pub repeats: u64,
    /// Segments that a group got from the one before it, without a read.
    pub handed_over: u64,
    /// Segments and records that were not whole.
    pub corrupt: u64,
    /// Sectors written for updates.
    pub sectors_written: u64,
    /// Sectors written by compaction.
    pub sectors_moved: u64,
    /// Zones won back.
    pub zones_reclaimed: u64,
}

/// Something that is to happen to a segment.
#[derive(Clone, Debug)]
enum Pending<V> {
    /// A client's update.
    Update(Update<V>),
    /// What of it lies in this zone moves out.
    Move { zone: u32 },
}

/// A client's update, checked.
#[derive(Clone, Debug)]
struct Update<V> {
    client: ClientId,
    number: u64,
    came: Time,
    block: u32,
    body: RequestBody<V>,
    expiry: Expiry,
}

impl<V> Update<V> {
    /// What it stores.
    fn value(&self) -> Option<&V> {
        self.body.value()
    }
    /// Whether it stores its value whatever is there.
    fn is_put(&self) -> bool {
        matches!(self.body, RequestBody::Put { .. })
    }
}

/// Purpose of an answer.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// A group's step.
    Group { group: usize, part: Part },
    /// A step of compaction.
    Compaction,
    /// A block that recovery has closed.
    Closed,
    /// A step of recovery on the device.
    Recovery(recovery::Ask),
    /// Nobody waits for it.
    Nothing,
}

/// Which part of a group's step.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The segment of a member.
    Segment { member: usize },
    /// A record that a member needs.
    Record { member: usize, item: Item },
    /// A write of the group.
    Write { extent: Extent },
    /// The flush behind them.
    Flush,
    /// The new place of a member.
    Publish { member: usize },
    /// The block of a member, read to find slots with older values.
    Block { member: usize },
    /// A slot of a member, taken away.
    Swap { member: usize, expected: SlotWord },
}

/// The server of one device.
#[derive(Clone)]
pub struct Server<V> {
    config: ServerConfig,
    epoch: u32,
    sequence: Sequence,
    /// Up to here no group of this epoch has failed.
    failed_after: Option<Sequence>,
    /// Where each of its blocks' keys are listed, by `block / devices`.
    pointers: Vec<Option<SegmentPointer>>,
    log: log::Log,
    ring: VecDeque<Update<V>>,
    /// Blocks that a group has in hand.
    locked: BTreeSet<u32>,
    /// Published segments in memory, by block. For each an update waits in the ring.
    kept: BTreeMap<u32, Arc<Segment>>,
    groups: Slab<group::Group<V>>,
    asked: asked::Asked<Purpose>,
    replies: replies::Replies<V>,
    compaction: Option<compact::Compaction>,
    /// Sectors written for updates since compaction last began.
    since_compaction: u32,
    recovery: Option<recovery::Recovery>,
    counters: ServerCounters,
}

impl<V: Value> Server<V> {
    /// The server of a device on which nothing is stored.
    pub fn new(config: ServerConfig) -> Server<V> {
        let blocks = (config.blocks - config.device).div_ceil(config.devices);
        Server {
            config,
            epoch: 0,
            sequence: Sequence(0),
            failed_after: None,
            pointers: vec![None; blocks as usize],
            log: log::Log::new(config.zones, config.zone_sectors, config.reserve_zones, group::tail_sectors(&config)),
            ring: VecDeque::new(),
            locked: BTreeSet::new(),
            kept: BTreeMap::new(),
            groups: Slab::new(),
            asked: asked::Asked::default(),
            replies: replies::Replies::default(),
            compaction: None,
            since_compaction: 0,
            recovery: None,
            counters: ServerCounters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> ServerCounters {
        self.counters
    }
    /// One more after each restart.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
    /// Bytes of segments and records that are of use.
    pub fn live_bytes(&self) -> u64 {
        self.log.live()
    }
    /// Bytes that these may be at most.
    pub fn capacity_bytes(&self) -> u64 {
        self.log.capacity()
    }
    /// Keys that are listed on flash; some may have expired.
    pub fn keys(&self) -> u64 {
        self.log.records()
    }
    /// Whether a restart has succeeded; [`None`] while it reads the log.
    pub fn recovered(&self) -> Option<bool> {
        match &self.recovery {
            None => Some(true),
            Some(recovery) => recovery.has_failed().then_some(false),
        }
    }
    /// Updates that have come and are in no group yet.
    pub fn waiting(&self) -> usize {
        self.ring.len()
    }
    /// Returns whether it has nothing to do and waits for nothing.
    pub fn is_idle(&self) -> bool {
        self.ring.is_empty() && self.groups.is_empty() && self.compaction.is_none() && self.recovery.is_none()
    }
    /// A client is gone, and its name may be another's from now on.
    pub fn forget(&mut self, client: ClientId) {
        self.replies.forget(client);
    }
    /// Where the keys of one of its blocks are listed.
    pub fn pointer(&self, block: u32) -> Option<SegmentPointer> {
        self.pointers.get((block / self.config.devices) as usize).copied().flatten()
    }

    fn set_pointer(&mut self, block: u32, pointer: SegmentPointer) {
        self.pointers[(block / self.config.devices) as usize] = Some(pointer);
    }

    fn next_sequence(&mut self) -> Sequence {
        self.sequence.0 += 1;
        self.sequence
    }

    fn request(&mut self, now: Time, request: Request<V>, out: &mut Vec<ServerOut<V>>) {
        let (client, number) = (request.client, request.number);
        if self.recovery.is_some() {
            return self.reply(client, number, RequestResult::Refused(Refusal::Recovering), out);
        }
        if request.epoch != self.epoch {
            let refusal = Refusal::WrongEpoch { got: request.epoch, current: self.epoch };
            return self.reply(client, number, RequestResult::Refused(refusal), out);
        }
        match self.replies.came(client, number, request.settled) {
            replies::Known::Ignore => {}
            replies::Known::Answered(result) => {
                self.counters.repeats += 1;
                self.reply(client, number, result, out);
            }
            replies::Known::New => match self.check(now, request) {
                Ok(update) => {
                    self.ring.push_back(update);
                    self.advance(now, out);
                }
                Err(refusal) => self.settle(client, number, RequestResult::Refused(refusal), out),
            },
        }
    }

    fn check(&self, now: Time, request: Request<V>) -> Result<Update<V>, Refusal> {
        if self.sequence >= Sequence::UPDATES_MAX {
            return Err(Refusal::UsedUp);
        }
        if let Some(value) = request.body.value() {
            check_value(value, self.config.value_bytes_max)?;
        }
        let expiry = match request.body.time_to_live() {
            Some(lifetime) => Expiry::after(now, lifetime, self.config.start_second)?,
            None => Expiry::default(),
        };
        let block = request.body.key().place(self.config.blocks).block;
        Ok(Update { client: request.client, number: request.number, came: now, block, body: request.body, expiry })
    }

    /// Answers for the first time.
    fn settle(&mut self, client: ClientId, number: u64, result: RequestResult<V>, out: &mut Vec<ServerOut<V>>) {
        self.replies.answered(client, number, &result);
        self.reply(client, number, result, out);
    }

    fn reply(&self, client: ClientId, number: u64, result: RequestResult<V>, out: &mut Vec<ServerOut<V>>) {
        out.push(ServerOut::Reply(Reply { client, number, epoch: self.epoch, result }));
    }

    fn ask_flash(&mut self, purpose: Purpose, operation: FlashOperation<V>, out: &mut Vec<ServerOut<V>>) {
        let request = self.asked.ask(purpose);
        out.push(ServerOut::Flash { request, operation });
    }

    fn ask_memory(&mut self, purpose: Purpose, block: u32, operation: MemoryOperation<V>, out: &mut Vec<ServerOut<V>>) {
        let request = self.asked.ask(purpose);
        out.push(ServerOut::Memory { request, block, operation });
    }

    /// Starts all work that can start.
    fn advance(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) {
        if self.recovery.is_some() {
            return;
        }
        self.compact(now, out);
        while self.form_group(now, out) {}
        self.refuse_what_waits_for_ever(out);
    }

    /// Updates that wait for room while no open operation could free any.
    fn refuse_what_waits_for_ever(&mut self, out: &mut Vec<ServerOut<V>>) {
        if !self.groups.is_empty() || !self.lacks_room() || self.is_compacting() {
            return;
        }
        self.compaction = None;
        self.kept.clear();
        let refusal = Refusal::Full { live: self.log.live(), capacity: self.log.capacity() };
        for update in std::mem::take(&mut self.ring) {
            self.settle(update.client, update.number, RequestResult::Refused(refusal), out);
        }
    }
}

impl<V: Value> Program for Server<V> {
    type In = ServerIn<V>;
    type Out = ServerOut<V>;

    fn on(&mut self, now: Time, input: ServerIn<V>, out: &mut Vec<ServerOut<V>>) {
        match input {
            ServerIn::Request(request) => self.request(now, request, out),
            ServerIn::Memory { request, answer } => match self.asked.answered(request) {
                Some(Purpose::Group { group, part }) => self.group_memory(now, group, part, answer, out),
                Some(Purpose::Closed) => self.block_closed(out),
                Some(Purpose::Compaction | Purpose::Recovery(_) | Purpose::Nothing) | None => {}
            },
            ServerIn::Flash { request, answer } => match self.asked.answered(request) {
                Some(Purpose::Group { group, part }) => self.group_flash(now, group, part, answer, out),
                Some(Purpose::Compaction) => self.compaction_flash(now, answer, out),
                Some(Purpose::Recovery(ask)) => self.recovery_flash(ask, answer, out),
                Some(Purpose::Closed | Purpose::Nothing) | None => {}
            },
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.group_due()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) {
        self.advance(now, out);
    }
}
