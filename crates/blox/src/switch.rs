//! The top-of-rack switch: Algorithm 1 over its tables, in-band telemetry, network scheduling at
//! its ports.
//!
//! A packet takes [`SwitchConfig::pipeline`] from the ingress to the queue of its port, and
//! [`SwitchConfig::recirculation`] longer for each further pass. A port sends one packet at a time:
//! [`SwitchOut::Transmit`] starts it, [`SwitchIn::PortIdle`] says that the link can take the next.
//! What a packet has spent in the switch when it starts is added to its LAT field (3.4).

mod coordination;
mod egress;
mod redirects;
mod tables;

use crate::own::ReadPath;
use crate::packet::{Body, CodecError, CollectionNote, Packet, decode};
use crate::{Page, Tag, VssdId};
use base::{Bytes, Decide, NodeId, Program, Span, Time};
use coordination::{Progress, Row, Verdict};
use egress::{CLASSES, Egress, Queued};
use std::collections::VecDeque;
use std::sync::Arc;
use tables::Tables;

pub use egress::NetworkScheduling;
pub use redirects::{Redirect, Redirects};
pub use tables::{TableBytes, table_bytes};

/// What a switch is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// Nodes `0..nodes` are in the rack, each behind the port of its own number.
    pub nodes: u32,
    /// The port behind which everything else lies; not below `nodes`.
    pub uplink: NodeId,
    /// From the ingress to the queue of a port.
    pub pipeline: Span,
    /// What each further pass takes: the loop back and the pipeline to the tables again.
    pub recirculation: Span,
    /// Whether it runs Algorithm 1. If not it is a plain switch: tables stay empty, and `gc_op`,
    /// `create_vssd` and `del_vssd` are dropped.
    pub coordination: bool,
    /// At every port.
    pub scheduling: NetworkScheduling,
    /// What may wait at one port, in bytes on the wire; at least one page's packet.
    pub queue_bytes: Bytes,
    /// vSSDs that the tables have room for, numbered from 0.
    pub table_entries: u32,
}

/// Reason why a switch cannot be as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// The uplink is a node's port.
    #[error("the uplink is port {uplink}, which is a node's: the rack's nodes are below {nodes}")]
    Uplink {
        /// Its port.
        uplink: u32,
        /// Nodes in the rack.
        nodes: u32,
    },
    /// A number is below what makes sense.
    #[error("{field} is {got}: at least {least} is needed")]
    TooSmall {
        /// The field.
        field: &'static str,
        /// The rejected value.
        got: u64,
        /// What it has to be.
        least: u64,
    },
    /// A number is above what is possible.
    #[error("{field} is {got}: at most {most} is possible")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The rejected value.
        got: u64,
        /// What it may be.
        most: u64,
    },
}

/// Inputs of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchIn {
    /// A packet has arrived.
    Packet(Packet),
    /// The link to a node (or the uplink) can take the next packet. Every link can at the start and
    /// after [`LinkUp`](SwitchIn::LinkUp).
    PortIdle(NodeId),
    /// The link to a node is down, or the node behind it: what waits for it is lost.
    LinkDown(NodeId),
    /// The link works again.
    LinkUp(NodeId),
    /// The switch fails: everything in it is lost.
    Fail,
    /// It works again, with empty tables: `create_vssd` packets fill them.
    Recover,
}

/// What a switch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// Starts to send a packet; the port is busy until [`SwitchIn::PortIdle`].
    Transmit {
        /// The node behind the port, or the uplink.
        port: NodeId,
        /// The packet, its latency stamped.
        packet: Packet,
    },
    /// A packet has ended here.
    Dropped {
        /// The packet.
        packet: Packet,
        /// The reason.
        why: DropReason,
    },
}

/// Reason why a packet ended in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Its port had no room.
    QueueFull,
    /// The link it should have taken is down.
    LinkDown,
    /// The switch has failed.
    SwitchDown,
    /// The vSSD (or its replica) has a number beyond the tables, or a server outside the rack.
    OutsideTables,
    /// A `gc_op` for a vSSD that has not been created.
    UnknownVssd,
    /// A `gc_op` for a vSSD of another server.
    NotItsServer,
    /// A `gc_op` that holds an answer.
    NotARequest,
    /// For the switch's program, which is not in use.
    NoCoordination,
}

/// What a switch has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Packets sent, by all ports.
    pub transmitted: u64,
    /// Reads sent to another replica because theirs collected, or as a user's policy says.
    pub redirected: u64,
    /// Reads sent to another replica because their server could not be reached.
    pub rescued: u64,
    /// Soft requests accepted.
    pub soft_accepted: u64,
    /// Soft requests delayed.
    pub soft_delayed: u64,
    /// Regular requests accepted.
    pub regular: u64,
    /// Background collections noted.
    pub background: u64,
    /// Collections finished.
    pub finished: u64,
    /// Further passes.
    pub recirculated: u64,
    /// Packets that were not RackBlox's, sent all the same.
    pub foreign: u64,
    /// Packets that said what no packet says, or about what they have no say; dropped.
    pub malformed: u64,
    /// Packets for the program of a switch that runs none; dropped.
    pub ignored: u64,
    /// Packets lost to full queues, links that are down and failures of the switch.
    pub lost: u64,
}

/// The program of a switch.
#[derive(Clone, Debug)]
pub struct Switch {
    config: SwitchConfig,
    own: Option<OwnReads>,
    tables: Tables,
    /// Packets in transit to another pass, and to a port's queue. All take equally long: both are
    /// in order.
    recirculating: VecDeque<(Time, Passing)>,
    leaving: VecDeque<(Time, Passing)>,
    ports: Vec<Port>,
    /// Bytes that wait at all ports.
    waiting_bytes: u64,
    /// Time to check a port that holds back packets; not after the first moment.
    shaper_wakeup: Time,
    has_failed: bool,
    counters: SwitchCounters,
}

/// A policy of a user's own for reads, and how many it has decided about.
#[derive(Clone, Debug)]
struct OwnReads {
    policy: Arc<dyn Decide<ReadPath>>,
    decided: u64,
}

impl OwnReads {
    fn redirects(&mut self, path: ReadPath) -> bool {
        if path.own.vssd == path.replica.vssd {
            return coordination::redirects(&path);
        }
        self.decided += 1;
        self.policy.decide(&ReadPath { order: self.decided, ..path })
    }
}

/// A packet inside the pipeline.
#[derive(Clone, Copy, Debug)]
struct Passing {
    packet: Packet,
    entered: Time,
    progress: Progress,
}

#[derive(Clone, Debug)]
struct Port {
    queue: Egress,
    bytes: u64,
    packets: u32,
    is_idle: bool,
    is_up: bool,
}

impl Switch {
    /// A switch with empty tables, all links up and idle.
    pub fn new(config: SwitchConfig) -> Result<Switch, SwitchError> {
        check(&config)?;
        // One more flow and port each for everything outside.
        let queue = Egress::new(config.scheduling, config.nodes + 1);
        let port = Port { queue, bytes: 0, packets: 0, is_idle: true, is_up: true };
        Ok(Switch {
            config,
            own: None,
            tables: Tables::new(if config.coordination { config.table_entries } else { 0 }),
            recirculating: VecDeque::new(),
            leaving: VecDeque::new(),
            ports: vec![port; config.nodes as usize + 1],
            waiting_bytes: 0,
            shaper_wakeup: Time::MAX,
            has_failed: false,
            counters: SwitchCounters::default(),
        })
    }

    /// Takes a policy of a user's own, if there is one, that decides which replica serves a read.
    pub fn set_policy(&mut self, policy: Option<Arc<dyn Decide<ReadPath>>>) {
        self.own = policy.map(|policy| OwnReads { policy, decided: 0 });
    }

    /// What it has done so far.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Returns whether the switch believes that a vSSD collects. For checks: in a rack only the
    /// packets know.
    pub fn is_collecting(&self, vssd: VssdId) -> bool {
        self.tables.holds(vssd) && self.tables.bits(vssd).1 == tables::Phase::Granted
    }

    /// Returns whether packets wait for the link behind any port.
    pub fn is_waiting(&self) -> bool {
        self.waiting_bytes > 0
    }

    /// Returns whether packets wait for the link behind a port.
    pub fn is_waiting_at(&self, port: NodeId) -> bool {
        self.ports[self.port_index(port)].bytes > 0
    }

    /// Returns the bytes and the number of the packets that wait for each port: those of nodes, and
    /// last that of everything outside the rack.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, u32)> {
        self.ports.iter().map(|port| (port.bytes, port.packets))
    }

    /// Takes note that the link to a node can take the next packet if nothing comes of that, and
    /// says whether it was so. If not, [`SwitchIn::PortIdle`] has to say it.
    pub fn idles(&mut self, now: Time, port: NodeId) -> bool {
        let index = self.port_index(port);
        let is_quiet = self.ports[index].bytes == 0 && self.next_in_pipeline().min(self.shaper_wakeup) > now;
        self.ports[index].is_idle |= is_quiet;
        is_quiet
    }

    /// Returns whether a vSSD is in the tables.
    pub fn is_registered(&self, vssd: VssdId) -> bool {
        self.tables.is_registered(vssd)
    }

    /// Returns where a read that is addressed to a vSSD's own server goes now, if to another
    /// replica. `None` with a policy of a user's own, which is asked for each read.
    pub fn redirect_of(&mut self, vssd: VssdId) -> Option<Redirect> {
        let server = self.tables.server_of(vssd).filter(|_| self.own.is_none())?;
        let body = Body::Read { tag: Tag::default(), page: Page::default() };
        let packet = Packet { vssd, latency_ns: 0, source: server, target: server, body };
        match self.decide(&Passing { packet, entered: Time::ZERO, progress: Progress::Arrived }) {
            Verdict::Redirect { server, replica } => Some((server, replica)),
            _ => None,
        }
    }

    /// Processes a frame as bytes. A frame that is not RackBlox's is counted and returned to the
    /// caller, who forwards it at the lower layers. A malformed one is counted and dropped. Neither
    /// changes a table.
    pub fn on_bytes(&mut self, now: Time, bytes: &[u8], out: &mut Vec<SwitchOut>) -> Result<(), CodecError> {
        let packet = decode(bytes).inspect_err(|error| match error {
            CodecError::Foreign { .. } => self.counters.foreign += 1,
            _ => self.counters.malformed += 1,
        })?;
        self.on(now, SwitchIn::Packet(packet), out);
        Ok(())
    }

    fn on_packet(&mut self, now: Time, packet: Packet, out: &mut Vec<SwitchOut>) {
        if self.has_failed {
            return self.drop(packet, DropReason::SwitchDown, out);
        }
        self.pass(now, now, Passing { packet, entered: now, progress: Progress::Arrived }, out);
    }

    /// One pass through the pipeline, its tables at `at`.
    fn pass(&mut self, now: Time, at: Time, mut passing: Passing, out: &mut Vec<SwitchOut>) {
        match self.decide(&passing) {
            Verdict::Forward => {}
            Verdict::Redirect { server, replica } => {
                let is_rescue = !self.is_up(passing.packet.target);
                *(if is_rescue { &mut self.counters.rescued } else { &mut self.counters.redirected }) += 1;
                (passing.packet.target, passing.packet.vssd) = (server, replica);
            }
            Verdict::Answer(note) => self.answer(&mut passing.packet, note),
            Verdict::Again(progress) => {
                self.counters.recirculated += 1;
                let due = at + self.config.recirculation;
                return self.recirculating.push_back((due, Passing { progress, ..passing }));
            }
            Verdict::Consumed => return,
            Verdict::Refused(why) => return self.drop(passing.packet, why, out),
        }
        let leaves_at = at + self.config.pipeline;
        if leaves_at <= now && self.is_next(leaves_at) {
            self.enqueue(now, passing, out);
        } else {
            self.leaving.push_back((leaves_at, passing));
        }
    }

    /// Returns whether what leaves the pipeline at this time is due before everything else in it.
    fn is_next(&self, leaves_at: Time) -> bool {
        self.leaving.is_empty() && self.recirculating.front().is_none_or(|(due, _)| *due > leaves_at)
    }

    fn decide(&mut self, passing: &Passing) -> Verdict {
        let Passing { packet, progress, .. } = passing;
        match packet.body {
            Body::Collection(_) | Body::Create { .. } | Body::Delete if !self.config.coordination => {
                Verdict::Refused(DropReason::NoCoordination)
            }
            Body::Read { .. } if self.config.coordination && self.is_inside(packet.target) => self.decide_read(packet),
            Body::Collection(note) => coordination::collection(&mut self.tables, packet, note, *progress),
            Body::Create { server, replica, replica_server } => {
                // Reads cannot be redirected to a replica elsewhere: the vSSD is single.
                let replica = if self.is_inside(replica_server) { replica } else { packet.vssd };
                let row = Row { server, replica };
                match self.is_inside(server) {
                    true => coordination::replace(&mut self.tables, packet.vssd, Some(row), *progress),
                    false => Verdict::Refused(DropReason::OutsideTables),
                }
            }
            Body::Delete => coordination::replace(&mut self.tables, packet.vssd, None, *progress),
            _ => Verdict::Forward,
        }
    }

    fn decide_read(&mut self, packet: &Packet) -> Verdict {
        let Switch { tables, ports, own, .. } = self;
        let is_up = |server: NodeId| ports.get(server.index()).is_some_and(|port| port.is_up);
        let waiting = |server: NodeId| ports.get(server.index()).map_or(0, |port| port.bytes);
        match own {
            None => coordination::read(tables, packet, is_up, waiting, |path| coordination::redirects(&path)),
            Some(own) => coordination::read(tables, packet, is_up, waiting, |path| own.redirects(path)),
        }
    }

    /// Line 24: back to where it came from, with the verdict.
    fn answer(&mut self, packet: &mut Packet, note: CollectionNote) {
        let counter = match (packet.body, note) {
            (Body::Collection(CollectionNote::Soft), CollectionNote::Accept) => &mut self.counters.soft_accepted,
            (Body::Collection(CollectionNote::Soft), _) => &mut self.counters.soft_delayed,
            (Body::Collection(CollectionNote::Regular), _) => &mut self.counters.regular,
            (Body::Collection(CollectionNote::Background), _) => &mut self.counters.background,
            _ => &mut self.counters.finished,
        };
        *counter += 1;
        packet.body = Body::Collection(note);
        packet.target = packet.source;
    }

    fn is_inside(&self, node: NodeId) -> bool {
        node.0 < self.config.nodes
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.ports[self.port_index(node)].is_up
    }

    /// The last port is the uplink.
    fn port_index(&self, node: NodeId) -> usize {
        node.0.min(self.config.nodes) as usize
    }

    fn enqueue(&mut self, now: Time, passing: Passing, out: &mut Vec<SwitchOut>) {
        let queued = self.queued(passing);
        let index = self.port_index(queued.packet.target);
        if !self.ports[index].is_up {
            return self.drop(queued.packet, DropReason::LinkDown, out);
        }
        if self.ports[index].lets_through(queued.bytes, self.config.queue_bytes) {
            self.transmit(now, index, queued, out);
        } else if self.make_room(index, &queued, out) {
            self.waiting_bytes += u64::from(queued.bytes);
            self.ports[index].push(queued);
            self.depart(now, index, out);
        } else {
            self.drop(queued.packet, DropReason::QueueFull, out);
        }
    }

    fn queued(&self, passing: Passing) -> Queued {
        let Passing { packet, entered, .. } = passing;
        let class = match (packet.body, self.config.scheduling) {
            (Body::Background { priority, .. }, _) => priority,
            (_, NetworkScheduling::Priority { storage }) => storage,
            _ => 0,
        };
        let flow = packet.source.0.min(self.config.nodes);
        Queued { packet, entered, bytes: packet.wire_bytes().count() as u32, flow, class }
    }

    /// Returns whether there is room for `queued` now, at the cost of others with less right where
    /// the policy says so.
    fn make_room(&mut self, index: usize, queued: &Queued, out: &mut Vec<SwitchOut>) -> bool {
        loop {
            let port = &mut self.ports[index];
            if port.bytes + u64::from(queued.bytes) <= self.config.queue_bytes.count() {
                return true;
            }
            let Some(evicted) = port.queue.evict_for(queued) else { return false };
            port.bytes -= u64::from(evicted.bytes);
            port.packets -= 1;
            self.waiting_bytes -= u64::from(evicted.bytes);
            self.drop(evicted.packet, DropReason::QueueFull, out);
        }
    }

    /// Starts the next packet of a port, if its link is idle and one may go.
    fn depart(&mut self, now: Time, index: usize, out: &mut Vec<SwitchOut>) {
        let port = &mut self.ports[index];
        if !port.is_idle || !port.is_up || port.bytes == 0 {
            return;
        }
        match port.pop(now) {
            Some(queued) => {
                self.waiting_bytes -= u64::from(queued.bytes);
                self.transmit(now, index, queued, out);
            }
            None => self.shaper_wakeup = self.shaper_wakeup.min(port.queue.next_allowed(now).unwrap_or(Time::MAX)),
        }
    }

    fn transmit(&mut self, now: Time, index: usize, queued: Queued, out: &mut Vec<SwitchOut>) {
        self.ports[index].is_idle = false;
        self.counters.transmitted += 1;
        let node = if index == self.config.nodes as usize { self.config.uplink } else { NodeId(index as u32) };
        out.push(SwitchOut::Transmit { port: node, packet: self.stamped(now, queued) });
    }

    /// Adds the time in this hop to LAT, in nanoseconds rounded down, as a hardware clock counts.
    fn stamped(&mut self, now: Time, queued: Queued) -> Packet {
        let mut packet = queued.packet;
        if let Body::Background { .. } = packet.body {
            self.counters.foreign += 1;
            return packet;
        }
        let spent = now.saturating_since(queued.entered) / Span::ns(1);
        packet.latency_ns = packet.latency_ns.saturating_add(u32::try_from(spent).unwrap_or(u32::MAX));
        packet
    }

    fn drop(&mut self, packet: Packet, why: DropReason, out: &mut Vec<SwitchOut>) {
        let counter = match why {
            DropReason::QueueFull | DropReason::LinkDown | DropReason::SwitchDown => &mut self.counters.lost,
            DropReason::NoCoordination => &mut self.counters.ignored,
            _ => &mut self.counters.malformed,
        };
        *counter += 1;
        out.push(SwitchOut::Dropped { packet, why });
    }

    fn port_idle(&mut self, now: Time, node: NodeId, out: &mut Vec<SwitchOut>) {
        let index = self.port_index(node);
        self.ports[index].is_idle = true;
        self.depart(now, index, out);
    }

    fn link_down(&mut self, index: usize, out: &mut Vec<SwitchOut>) {
        self.ports[index].is_up = false;
        self.lose_queue(index, DropReason::LinkDown, out);
    }

    fn lose_queue(&mut self, index: usize, why: DropReason, out: &mut Vec<SwitchOut>) {
        while let Some(queued) = self.ports[index].queue.drain() {
            self.drop(queued.packet, why, out);
        }
        self.ports[index].packets = 0;
        self.waiting_bytes -= std::mem::take(&mut self.ports[index].bytes);
    }

    fn fail(&mut self, out: &mut Vec<SwitchOut>) {
        self.has_failed = true;
        self.tables.clear();
        for (_, passing) in self.recirculating.split_off(0).into_iter().chain(self.leaving.split_off(0)) {
            self.drop(passing.packet, DropReason::SwitchDown, out);
        }
        (0..self.ports.len()).for_each(|index| self.lose_queue(index, DropReason::SwitchDown, out));
    }

    fn look_at_shapers(&mut self, now: Time, out: &mut Vec<SwitchOut>) {
        if self.shaper_wakeup <= now {
            self.shaper_wakeup = Time::MAX;
            (0..self.ports.len()).for_each(|index| self.depart(now, index, out));
        }
    }

    /// Returns the time at which the first packet inside the pipeline is due; the largest time if
    /// there is none.
    #[inline]
    fn next_in_pipeline(&self) -> Time {
        due(&self.recirculating).min(due(&self.leaving))
    }

    /// Lets the packets inside the pipeline that are due by `now` leave it, in the order of time.
    #[inline]
    fn run_pipeline(&mut self, now: Time, out: &mut Vec<SwitchOut>) {
        while self.next_in_pipeline() <= now && self.step(now, out) {}
    }

    fn step(&mut self, now: Time, out: &mut Vec<SwitchOut>) -> bool {
        let is_again = due(&self.recirculating) <= due(&self.leaving);
        let queue = if is_again { &mut self.recirculating } else { &mut self.leaving };
        match queue.pop_front() {
            Some((at, passing)) if is_again => self.pass(now, at, passing, out),
            Some((_, passing)) => self.enqueue(now, passing, out),
            None => return false,
        }
        true
    }
}

#[inline]
fn due(queue: &VecDeque<(Time, Passing)>) -> Time {
    queue.front().map_or(Time::MAX, |(due, _)| *due)
}

impl Port {
    /// Returns whether a packet of this length would be queued and sent in one moment, and leave no
    /// trace in the queue.
    fn lets_through(&self, bytes: u32, room: Bytes) -> bool {
        self.is_idle && self.bytes == 0 && u64::from(bytes) <= room.count() && self.queue.is_memoryless()
    }

    fn push(&mut self, queued: Queued) {
        self.bytes += u64::from(queued.bytes);
        self.packets += 1;
        self.queue.push(queued);
    }

    fn pop(&mut self, now: Time) -> Option<Queued> {
        let queued = self.queue.pop(now)?;
        self.bytes -= u64::from(queued.bytes);
        self.packets -= 1;
        Some(queued)
    }
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;

    fn on(&mut self, now: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        self.on_wakeup(now, out);
        match input {
            SwitchIn::Packet(packet) => self.on_packet(now, packet, out),
            SwitchIn::PortIdle(node) => self.port_idle(now, node, out),
            SwitchIn::LinkDown(node) => self.link_down(self.port_index(node), out),
            SwitchIn::LinkUp(node) => {
                let index = self.port_index(node);
                self.ports[index].is_up = true;
                self.port_idle(now, node, out);
            }
            SwitchIn::Fail => self.fail(out),
            SwitchIn::Recover => self.has_failed = false,
        }
        // A pipeline that takes no time has let the packet through already.
        self.run_pipeline(now, out);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let next = self.next_in_pipeline().min(self.shaper_wakeup);
        (next < Time::MAX).then_some(next)
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<SwitchOut>) {
        self.run_pipeline(now, out);
        self.look_at_shapers(now, out);
    }
}

/// The largest packet: a jumbo frame of background traffic.
const PACKET_MAX: u64 = 9_038;

fn check(config: &SwitchConfig) -> Result<(), SwitchError> {
    let SwitchConfig { nodes, uplink, queue_bytes, table_entries, scheduling, .. } = *config;
    if uplink.0 < nodes {
        return Err(SwitchError::Uplink { uplink: uplink.0, nodes });
    }
    at_least("nodes", u64::from(nodes), 1)?;
    // Every port has a queue for every flow: more is no rack.
    at_most("nodes", u64::from(nodes), 1 << 10)?;
    at_least("queue_bytes", queue_bytes.count(), PACKET_MAX)?;
    at_least("table_entries", u64::from(table_entries), 1)?;
    match scheduling {
        NetworkScheduling::Fifo => Ok(()),
        NetworkScheduling::TokenBucket { rate, burst } => {
            at_least("rate", rate.as_bps(), 1)?;
            at_least("burst", burst.count(), 1)
        }
        NetworkScheduling::FairQueue { quantum } => at_least("quantum", quantum.count(), 1),
        NetworkScheduling::Priority { storage } => at_most("storage", u64::from(storage), u64::from(CLASSES) - 1),
    }
}

fn at_least(field: &'static str, got: u64, least: u64) -> Result<(), SwitchError> {
    if got < least { Err(SwitchError::TooSmall { field, got, least }) } else { Ok(()) }
}

fn at_most(field: &'static str, got: u64, most: u64) -> Result<(), SwitchError> {
    if got > most { Err(SwitchError::TooLarge { field, got, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
