//! A storage server (RackBlox, 3.3 to 3.5): Algorithm 2 over a write cache, I/O schedulers,
//! replicas and collectors.
//!
//! *A write* waits for room in the DRAM cache, is replicated to every live replica, and is answered
//! once each has a copy in DRAM; the flash gets it later, through the I/O scheduler. *A read* waits
//! until its page is valid here. It is served from the cache if the page is held there, otherwise
//! through the scheduler from the device. Each unit's `Collector` decides about *collection*; this
//! program executes the decisions at switch, controller and device.
//!
//! Every accepted request is answered once. The exceptions are cases where any answer could be
//! wrong: power was lost, the lease has lapsed (another may serve by now), or a write was open when
//! the replica left its group. Then the server is silent, and the client's timeout ends the
//! request.

mod check;
mod collecting;
mod interface;
mod rotten;
mod serving;
mod timers;
mod vssd;

pub use interface::{
    ControlLink, DeviceJob, IsolationConfig, NodeConfig, NodeError, NodeIn, NodeOut, ReplicationConfig, Stage,
    VssdConfig, WriteAck,
};

use crate::cache::{CacheConfig, CacheScope, WriteCache};
use crate::collect::CollectorAction;
use crate::control::Lease;
use crate::hermes::{Contents, Membership, ReplicaOut};
use crate::id::{Page, Value, VssdId, WriteId};
use crate::own::Policies;
use crate::packet::{Body, ControlMessage, Packet};
use crate::schedule::SchedulingKey;
use crate::scrub::Scrub;
use base::{NodeId, Program, Span, Time};
use collecting::Unit;
use serving::{MessageKey, Request, Waiting};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use timers::{Alarm, Timers};
use vssd::{Vssd, Work};

/// Orders of the control plane for vSSDs that are not here yet, at most; a peer must not fill our
/// memory.
const WANTED_MAX: usize = 1_024;

/// What has happened at a storage server, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Reads answered from the write cache.
    pub reads_cached: u64,
    /// Reads answered from the device.
    pub reads_device: u64,
    /// Reads answered with what a replica waited for.
    pub reads_awaited: u64,
    /// Reads sent on to another replica by this server.
    pub reads_redirected: u64,
    /// Writes answered as done.
    pub writes: u64,
    /// Writes (of clients and of peers) that have waited for room in the cache.
    pub waits_for_room: u64,
    /// Flushes that the device has taken.
    pub flushes: u64,
    /// Writes that found no free block, each time they were offered.
    pub writes_refused: u64,
    /// Requests rejected with a reason.
    pub refusals: u64,
    /// Requests that were not answered because the lease did not hold or the outcome was open.
    pub unanswered: u64,
    /// Writes that came again when they had been done.
    pub writes_known: u64,
    /// Copies of writes that their client had no longer open.
    pub writes_over: u64,
    /// Pages that were read to see whether they are sound, or were in memory when it was their
    /// turn.
    pub pages_scrubbed: u64,
    /// Pages that were found rotten.
    pub pages_rotten: u64,
    /// Packets that mean nothing here, and configurations that could not be adopted.
    pub ignored: u64,
}

/// What the server does at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    /// Has not run yet.
    New,
    /// Runs.
    On,
    /// Has failed.
    Off,
}

/// The program of one storage server.
pub struct StorageNode {
    config: NodeConfig,
    own: Policies,
    power: Power,
    life: u32,
    vssds: Vec<Vssd>,
    by_name: BTreeMap<VssdId, usize>,
    units: Vec<Unit>,
    caches: Vec<WriteCache<SchedulingKey, Waiting>>,
    requests: Slab<Request>,
    work: Slab<Work>,
    /// Clients' writes that wait for the device to take their page, by vSSD and page, and whether
    /// the cache has them.
    undequeued: BTreeMap<(usize, Page), Vec<(usize, bool)>>,
    /// Messages of peers that wait for room: one that is sent again meanwhile waits only once.
    messages_waiting: BTreeSet<MessageKey>,
    /// Orders for vSSDs that the host still has to make room for.
    wanted: BTreeMap<VssdId, Membership>,
    lease: Option<Lease>,
    /// Writes under way here that their clients may send again.
    begun: BTreeSet<WriteId>,
    scrub: Option<Scrub>,
    timers: Timers,
    counters: NodeCounters,
    replica_out: Vec<ReplicaOut>,
    actions: Vec<CollectorAction>,
}

impl StorageNode {
    /// A server before its first moment. Errors name the numbers that do not fit.
    pub fn new(config: NodeConfig) -> Result<StorageNode, NodeError> {
        check::check(&config)?;
        let mut node = StorageNode {
            own: Policies::default(),
            power: Power::New,
            life: 0,
            vssds: Vec::new(),
            by_name: BTreeMap::new(),
            units: Vec::new(),
            caches: Vec::new(),
            requests: Slab::new(),
            work: Slab::new(),
            undequeued: BTreeMap::new(),
            messages_waiting: BTreeSet::new(),
            wanted: BTreeMap::new(),
            lease: config.control.map(|control| Lease::new(control.lease, 0)),
            begun: BTreeSet::new(),
            scrub: config.scrub.map(Scrub::new),
            timers: Timers::default(),
            counters: NodeCounters::default(),
            replica_out: Vec::new(),
            actions: Vec::new(),
            config,
        };
        for index in 0..node.config.vssds.len() {
            node.add_vssd(node.config.vssds[index], Contents::Original)?;
        }
        Ok(node)
    }

    /// Takes policies of a user's own, before its first moment.
    pub fn set_policies(&mut self, own: Policies) {
        for vssd in &mut self.vssds {
            vssd.set_order(&self.config, own.order.clone());
        }
        for unit in &mut self.units {
            unit.collector.set_policy(self.config.id, own.collect.clone());
        }
        self.own = own;
    }

    /// What has happened so far.
    pub fn counters(&self) -> &NodeCounters {
        &self.counters
    }

    /// Before its first moment: its process has been started before, for the `starts`-th time now
    /// (from 1). It waits for [`NodeIn::Recover`], as after [`NodeIn::Fail`].
    pub fn resume(&mut self, starts: u32) {
        self.on_fail();
        self.life = starts;
    }

    /// The order for a vSSD that [`NodeOut::Wanted`] has asked room for.
    pub fn wanted(&self, vssd: VssdId) -> Option<Membership> {
        self.wanted.get(&vssd).copied()
    }

    /// Every value that an output may still name: of pages in DRAM and of writes under way. A host
    /// that keeps data beside the program may forget what is not among them, and what it has not
    /// given to the program lately.
    pub fn held_values(&self) -> impl Iterator<Item = Value> + '_ {
        let pages = self.caches.iter().flat_map(|cache| cache.pages().map(|(_, _, value)| value));
        let waiting = self.caches.iter().flat_map(WriteCache::waiting).filter_map(Waiting::value);
        let requests = self.requests.iter().filter_map(|(_, request)| request.value());
        let replicas = self.vssds.iter().flat_map(|vssd| vssd.replica.held_values());
        pages.chain(waiting).chain(requests).chain(replicas)
    }

    /// The pages in DRAM that the flash does not have, or has of old: what an orderly end writes.
    pub fn pages_in_memory(&self) -> impl Iterator<Item = (VssdId, Page, Value)> + '_ {
        self.vssds.iter().flat_map(|vssd| {
            let pages = self.caches[vssd.cache].pages();
            let own = pages.filter(|(slot, ..)| *slot == vssd.cache_slot);
            own.map(|(_, page, value)| (vssd.config.id, page, value))
        })
    }

    /// Returns whether a vSSD collects garbage now; false for one that is not here.
    pub fn is_collecting(&self, vssd: VssdId) -> bool {
        self.by_name.get(&vssd).is_some_and(|&index| self.units[self.vssds[index].unit].collector.is_collecting())
    }

    /// Requests accepted and not yet answered.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Writes that are known, so that none of them is done twice.
    pub fn writes_remembered(&self) -> usize {
        self.vssds.iter().map(|vssd| vssd.replica.writes_known()).sum()
    }

    /// Pages that were rotten here and have been written anew from another replica's copy.
    pub fn pages_repaired(&self) -> u64 {
        self.vssds.iter().map(|vssd| vssd.replica.pages_repaired()).sum()
    }

    /// Pages of which no replica has a sound copy, as far as is known here.
    pub fn pages_lost(&self) -> usize {
        self.vssds.iter().map(|vssd| vssd.replica.pages_lost()).sum()
    }

    /// Pages in DRAM that the flash does not have yet.
    pub fn pages_held(&self) -> usize {
        self.caches.iter().map(WriteCache::used).sum()
    }

    fn add_vssd(&mut self, config: VssdConfig, contents: Contents) -> Result<usize, NodeError> {
        let index = self.vssds.len();
        let cache = self.cache_of_new_vssd();
        let unit = self.join_unit(&config);
        let mut vssd = Vssd::new(&self.config, config, unit, cache, contents)?;
        vssd.set_order(&self.config, self.own.order.clone());
        self.vssds.push(vssd);
        self.by_name.insert(config.id, index);
        Ok(index)
    }

    fn cache_of_new_vssd(&mut self) -> (usize, u32) {
        let is_shared = self.config.cache.scope == CacheScope::Server;
        if self.caches.is_empty() || !is_shared {
            let flush_above = match self.config.write_ack {
                WriteAck::Dram => self.config.cache.flush_above,
                WriteAck::Dequeued => 0,
            };
            self.caches.push(WriteCache::new(CacheConfig { flush_above, ..self.config.cache }));
        }
        let cache = self.caches.len() - 1;
        (cache, self.caches[cache].add_vssd())
    }

    fn start(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        self.power = Power::On;
        self.lease.iter_mut().for_each(Lease::hold_from_start);
        for index in 0..self.vssds.len() {
            let order = self.vssds[index].membership();
            self.order_members(now, index, &order, out);
        }
        self.arm_all(now);
    }

    fn arm_all(&mut self, now: Time) {
        if self.lease.is_some() {
            self.timers.ring_by(Alarm::Heartbeat, now);
        }
        for unit in 0..self.units.len() {
            self.arm_unit(unit);
        }
        self.begin_scrub(now);
    }

    fn on_packet(&mut self, now: Time, packet: &Packet, out: &mut Vec<NodeOut>) {
        match packet.body {
            Body::Read { tag, page } => self.on_read(now, packet, tag, page, out),
            Body::Write { tag, page, value, session } => {
                self.on_write(now, packet, (tag, page, value), session.as_ref(), out);
            }
            Body::Replica(message) => self.on_message(now, packet, message, out),
            Body::Collection(note) => self.on_note(packet.vssd, note, None, now, out),
            Body::Control(ControlMessage::Answer { note, free }) => self.on_note(packet.vssd, note, free, now, out),
            Body::Control(ControlMessage::Members { epoch, replicas, stale }) => {
                self.on_members(now, packet.vssd, Membership { epoch, replicas, stale }, out);
            }
            Body::Heartbeat { beat } => self.on_lease(now, |lease| lease.echoed(beat), out),
            Body::Control(ControlMessage::Lease { beat, span }) => {
                self.on_lease(now, |lease| lease.granted(beat, span), out);
            }
            _ => self.counters.ignored += 1,
        }
    }

    /// What was sent while the lease had lapsed may have been lost.
    fn on_lease(&mut self, now: Time, renew: impl FnOnce(&mut Lease), out: &mut Vec<NodeOut>) {
        let Some(lease) = &mut self.lease else { return };
        let lapsed = lease.until().filter(|until| *until <= now);
        renew(lease);
        if let Some(since) = lapsed.filter(|_| lease.holds(now)) {
            for index in 0..self.vssds.len() {
                self.vssds[index].replica.ask_again(now, since, &mut self.replica_out);
                self.carry_out(now, index, Span::ZERO, out);
                self.settle(now, index, out);
            }
        }
    }

    fn on_members(&mut self, now: Time, vssd: VssdId, order: Membership, out: &mut Vec<NodeOut>) {
        if let Some(&index) = self.by_name.get(&vssd) {
            self.order_members(now, index, &order, out);
        } else if order.stale != Some((self.config.id, vssd)) {
            // A member of old that has lost even its vSSD has nothing to settle.
            self.report_up_to_date(vssd, order.epoch, out);
        } else if self.wanted.len() >= WANTED_MAX {
            self.counters.ignored += 1;
        } else if self.wanted.insert(vssd, order).is_none() {
            out.push(NodeOut::Wanted { vssd });
        }
    }

    fn order_members(&mut self, now: Time, index: usize, order: &Membership, out: &mut Vec<NodeOut>) {
        self.vssds[index].replica.members(now, order, &mut self.replica_out);
        self.carry_out(now, index, Span::ZERO, out);
        self.settle(now, index, out);
    }

    fn on_adopt(&mut self, now: Time, config: VssdConfig, out: &mut Vec<NodeOut>) {
        let is_new = !self.by_name.contains_key(&config.id) && check::check_vssd(&config).is_ok();
        let Some(index) = is_new.then(|| self.add_vssd(config, Contents::Lost).ok()).flatten() else {
            self.counters.ignored += 1;
            return;
        };
        self.arm_unit(self.vssds[index].unit);
        if let Some(order) = self.wanted.remove(&config.id) {
            self.order_members(now, index, &order, out);
        }
    }

    fn on_fail(&mut self) {
        self.power = Power::Off;
        self.life += 1;
        self.timers.clear();
        self.requests.clear();
        self.work.clear();
        self.undequeued.clear();
        self.messages_waiting.clear();
        self.wanted.clear();
        self.caches.iter_mut().for_each(WriteCache::clear);
        self.begun.clear();
        self.units.iter_mut().for_each(Unit::reset);
        for vssd in &mut self.vssds {
            vssd.restart(&self.config);
        }
    }

    fn on_recover(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        self.power = Power::On;
        self.lease = self.config.control.map(|control| Lease::new(control.lease, self.life));
        self.take_back_grants(now, out);
        self.arm_all(now);
    }

    fn heartbeat(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        if let Some((control, lease)) = self.config.control.zip(self.lease.as_mut()) {
            let beat = lease.beat(now);
            self.timers.ring_by(Alarm::Heartbeat, now + control.heartbeat);
            self.send(control.node, VssdId::default(), 0, Body::Heartbeat { beat }, out);
        }
    }

    /// Returns whether clients may be answered now.
    fn may_answer(&self, now: Time) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.holds(now))
    }

    fn send(&self, target: NodeId, vssd: VssdId, latency_ns: u32, body: Body, out: &mut Vec<NodeOut>) {
        out.push(NodeOut::Send(Packet { vssd, latency_ns, source: self.config.id, target, body }));
    }

    fn on_powered(&mut self, now: Time, input: NodeIn, out: &mut Vec<NodeOut>) {
        match input {
            NodeIn::Packet(packet) => self.on_packet(now, &packet, out),
            NodeIn::ReadDone { job, value } => self.on_read_done(now, job, value, out),
            NodeIn::ReadRotten { job, named } => self.on_read_rotten(now, job, named, out),
            NodeIn::WriteDone { job } => self.on_write_done(now, job, out),
            NodeIn::WriteRefused { job } => self.on_write_refused(now, job, out),
            NodeIn::Collected { vssd, stream, freed, nothing } => {
                self.on_collected(now, vssd, stream, freed, nothing, out)
            }
            NodeIn::Blocks { vssd, free, owned } => self.on_blocks(vssd, free, owned, out),
            NodeIn::Lent(moved) => self.on_lent(now, moved, out),
            NodeIn::Returned(moved) => self.on_returned(moved),
            NodeIn::WornOut { vssd } => self.on_worn_out(now, vssd, out),
            NodeIn::Adopt(config) => self.on_adopt(now, config, out),
            NodeIn::Fail => self.on_fail(),
            NodeIn::Recover => {}
        }
    }
}

impl Program for StorageNode {
    type In = NodeIn;
    type Out = NodeOut;

    fn on(&mut self, now: Time, input: NodeIn, out: &mut Vec<NodeOut>) {
        if self.power == Power::New {
            self.start(now, out);
        }
        match (self.power, input) {
            (Power::Off, NodeIn::Recover) => self.on_recover(now, out),
            // Flash and its tables outlive the server's power.
            (Power::Off, NodeIn::Blocks { vssd, free, owned }) => self.note_blocks(vssd, free, owned),
            (Power::Off, NodeIn::Lent(moved)) => self.note_lent(moved),
            (Power::Off, NodeIn::Returned(moved)) => self.on_returned(moved),
            (Power::Off, _) => {}
            _ => self.on_powered(now, input, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        match self.power {
            Power::New => Some(Time::ZERO),
            _ => self.timers.next(),
        }
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        if self.power == Power::New {
            self.start(now, out);
        }
        while let Some(alarm) = self.timers.due(now) {
            match alarm {
                Alarm::Heartbeat => self.heartbeat(now, out),
                Alarm::Unit(unit) => self.wake_unit(now, unit as usize, out),
                Alarm::Vssd(index) => self.wake_vssd(now, index as usize, out),
                Alarm::Scrub => self.wake_scrub(now, out),
            }
        }
    }
}

#[cfg(test)]
mod tests;
