//! EDM in its hardware: hosts around one switch, or two in step.
//!
//! The way of a memory message: transmit arbitration, uplink (66-bit blocks), `hop` (PCS,
//! transceiver, fibre, transceiver, PCS), the switch's insert or forward pipeline, downlink, `hop`,
//! the receiver's pipeline. Blocks are cut through: a chunk's serialization counts once, on the
//! uplink; on the downlink it only waits for the blocks before it.
//!
//! With background traffic, ordinary frames share the links (`converged`); without, links are plain
//! FIFOs, which need no event.

mod arrival;
mod background;
mod claims;
mod config;
mod converged;
mod departure;
mod encoder;
mod event;
mod faults;
mod flight;
mod flights;
mod grants;
mod inside;
mod memories;
mod nodes;
mod plan;
mod planes;
mod ports;
mod prefetch;
mod track;

pub use background::Background;
pub use config::{EdmRigConfig, Fault, FaultKind};
pub use event::EdmEvent;
pub(crate) use plan::play;
pub use ports::{Direction, LinkId};

use super::seat::Alarm;
use crate::drive::{Context, Ended, Rig, Ticket};
use crate::sampler::Probe;
use base::{Bytes, Decide, NodeId, Operation, Program, Request, Span, Time};
use edm::budget::Delays;
use edm::mirror::Mirror;
use edm::{Access, Competitor, Host, HostIn, HostOut, Place, SwitchIn, SwitchOut, Tag, cost};
use encoder::Encoder;
use flight::{Flight, Kind};
use flights::Flights;
use hardware::{Dram, Link, RemoteAccess};
use inside::Probes;
use kernel::Soon;
use memories::Fetches;
use nodes::{IDLE, Node, Pace};
use planes::Planes;
use record::metric::{self, Meter};
use record::{Outcome, Series};
use std::sync::Arc;
use track::{Track, Tracks};

/// The constants of every way.
#[derive(Clone, Copy, Debug)]
struct Timing {
    place: Place,
    delays: Delays,
    hop: Span,
    /// One block on a link.
    block: Span,
}

/// Counters of the rig beside those of its programs.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    unexpected: u64,
    lost_messages: u64,
    longest_data_wait: Span,
    longest_request_wait: Span,
}

/// Buffers of decisions, empty between events. Nodes share one, so that it stays in the cache.
#[derive(Default)]
struct Scratch {
    host: Vec<HostOut>,
    switch: Vec<SwitchOut>,
}

/// EDM's programs inside hardware models. Implements [`Rig`].
pub struct EdmRig {
    config: EdmRigConfig,
    timing: Timing,
    planes: Planes,
    nodes: Vec<Node>,
    paces: Vec<Pace>,
    flights: Flights,
    tracks: Tracks,
    counts: Counts,
    probes: Probes,
    scratch: Scratch,
    encoder: Encoder,
    /// What remote requests take of the memories; nothing of those that take no time.
    remote: RemoteAccess,
    /// When the answer that is being taken is in memory; zero if it need not be.
    stored_at: Time,
}

type Ctx<'a, 'b> = &'a mut Context<'b, EdmEvent>;

impl EdmRig {
    /// A network at rest. `config` was checked by `plan`: at most 512 nodes, chunks of at most
    /// 65,535 bytes.
    pub fn new(config: EdmRigConfig) -> EdmRig {
        let place = Place { nodes: config.nodes, rate: config.rate };
        let delays = Delays::new(&config.edm);
        let hop = delays.pcs * 2 + config.transceiver * 2 + config.propagation;
        let node = |id| Node {
            host: Host::new(NodeId(id), config.edm, place),
            memory: Dram::new(config.memory),
            fetches: Fetches::default(),
            mirror: config.redundant.then(|| Mirror::new(config.nodes)),
        };
        let costs = claims::Costs::new(&delays, &place, config.transceiver, config.propagation);
        EdmRig {
            timing: Timing { place, delays, hop, block: place.blocks(1) },
            planes: Planes::new(&config, place),
            paces: vec![IDLE; config.nodes as usize],
            nodes: (0..config.nodes).map(node).collect(),
            flights: Flights::default(),
            tracks: Tracks::new(costs, if config.redundant { hop * 16 } else { Span::ZERO }),
            counts: Counts::default(),
            probes: Probes::default(),
            scratch: Scratch::default(),
            encoder: Encoder::new(config.wire_check),
            remote: RemoteAccess::default(),
            stored_at: Time::ZERO,
            config,
        }
    }

    /// The same whose remote requests take these accesses of the memories.
    pub fn with_remote_access(self, remote: RemoteAccess) -> EdmRig {
        EdmRig { remote: remote.in_memory(&self.config.memory), ..self }
    }

    /// The same whose switches follow this priority, if there is one.
    pub fn with_priority(mut self, priority: Option<Arc<dyn Decide<Competitor>>>) -> EdmRig {
        for plane in self.planes.iter_mut() {
            priority.iter().for_each(|priority| plane.switch.set_priority(priority.clone()));
        }
        self
    }

    /// Hands a request with its exact access to its source; [`Rig::issue`] for those who choose
    /// addresses and operations.
    pub fn submit(&mut self, ticket: Ticket, source: NodeId, target: NodeId, access: Access, context: Ctx) {
        let track = Track::new(ticket.0, &access, &self.config.edm, context.keeps_spans);
        let tag = self.tracks.open(context.now, track::Ends { source, target }, track);
        if !self.paces[source.index()].up {
            return self.end(tag, Outcome::Lost, context.now, context);
        }
        if self.remote != RemoteAccess::default() {
            self.fetch_data(tag, source, &access, context.now);
        }
        self.tell_host(source, HostIn::Submit { tag: Tag(tag), target, access }, context);
    }

    /// Inlined, so that each caller has its own input's part of the program only.
    #[inline(always)]
    fn tell_host(&mut self, node: NodeId, input: HostIn, context: Ctx) {
        let mut out = std::mem::take(&mut self.scratch.host);
        self.nodes[node.index()].host.on(context.now, input, &mut out);
        self.after_host(node, &mut out, context);
        self.scratch.host = out;
    }

    fn after_host(&mut self, node: NodeId, out: &mut Vec<HostOut>, context: Ctx) {
        for said in out.iter().copied() {
            match said {
                HostOut::Answered { tag, word } => {
                    if let Some(answers) = &mut self.probes.answers {
                        answers.insert(self.tracks[tag.0 as usize].ticket, word);
                    }
                    self.end(tag.0, Outcome::Finished, context.now.max(self.stored_at), context);
                }
                HostOut::Null { tag } => self.end(tag.0, Outcome::TimedOut, context.now, context),
                HostOut::Written => {}
                HostOut::Unexpected => self.counts.unexpected += 1,
            }
        }
        out.clear();
        self.transmit(node, context);
        self.arm_timer(node, context);
    }

    fn end(&mut self, tag: u32, outcome: Outcome, end: Time, context: Ctx) {
        let ticket = Ticket(self.tracks[tag as usize].ticket);
        let (start, ledger) = self.tracks.ledger(tag, outcome, end, context.least_kept);
        context.end(Ended { ticket, outcome, start, end, label: Span::ZERO, ledger });
        self.tracks.close(tag, outcome, end);
    }

    fn arm_timer(&mut self, node: NodeId, context: Ctx) {
        let pace = &mut self.paces[node.index()];
        // One event a node, and only while nothing earlier is armed: timers that were forgotten
        // meanwhile find nothing due.
        if pace.timer != Alarm::OFF {
            return;
        }
        if let Some(at) = pace.timer.arm(self.nodes[node.index()].host.next_wakeup()) {
            context.at(at.max(context.now), EdmEvent::Timer(node));
        }
    }

    #[inline(never)]
    fn timer(&mut self, node: NodeId, context: Ctx) {
        let pace = &mut self.paces[node.index()];
        pace.timer.ring(context.now);
        if !pace.up {
            return;
        }
        let mut out = std::mem::take(&mut self.scratch.host);
        self.nodes[node.index()].host.on_wakeup(context.now, &mut out);
        self.after_host(node, &mut out, context);
        self.scratch.host = out;
    }

    fn at_switch(&mut self, index: u32, context: Ctx) {
        let sent = self.flights.get(index);
        if !self.planes[sent.plane()].carries(sent.node()) {
            self.forget_flight(index);
            return self.lose(sent, context);
        }
        if sent.is_data() {
            self.data_at_switch(index, sent, context);
        } else {
            self.forget_flight(index);
            self.control_at_switch(sent, context);
        }
        self.arm_match(context);
    }

    fn control_at_switch(&mut self, sent: Flight, context: Ctx) {
        let (now, tag) = (context.now, sent.tag());
        let mut out = std::mem::take(&mut self.scratch.switch);
        let switch = &mut self.planes[sent.plane()].switch;
        match sent.kind() {
            Kind::Notification => {
                let (port, notification) = (sent.source(), sent.said());
                switch.on(now, SwitchIn::Notification { port, notification, tag }, &mut out);
            }
            _ => switch.on(now, SwitchIn::Request { message: sent.message(), tag }, &mut out),
        }
        // What it says, that it refuses the demand, it has counted.
        out.clear();
        self.scratch.switch = out;
    }

    /// Data along its circuit to the port of its target, or nowhere.
    fn data_at_switch(&mut self, index: u32, sent: Flight, context: Ctx) {
        let (source, target) = (sent.source(), sent.target());
        let side = &mut self.planes[sent.plane()];
        if !side.switch.forwards(context.now, source, target, sent.id(), sent.bytes()) {
            self.forget_flight(index);
            return self.lose(sent, context);
        }
        if self.planes.converged.is_some() {
            return self.forward_shared(index, sent, context);
        }
        let serialization = self.timing.block * sent.blocks();
        let side = &mut self.planes[sent.plane()];
        let (first, last) = side.downlinks[target.index()].occupy(context.now, serialization);
        let waited = first - context.now;
        self.counts.longest_data_wait = self.counts.longest_data_wait.max(waited);
        self.tracks[sent.tag().0 as usize].forwarded(waited);
        self.flights.turn_to_target(index);
        context.at(last + self.timing.hop + self.timing.delays.take_data, EdmEvent::AtHost(index));
    }

    /// Something died with a message on it. Only the last chunk of a write has nobody left who
    /// would notice.
    #[inline(never)]
    fn lose(&mut self, flight: Flight, context: Ctx) {
        self.counts.lost_messages += 1;
        let tag = flight.tag().0;
        if flight.kind() == Kind::WriteEnd && self.tracks[tag as usize].lost_last_copy() {
            self.end(tag, Outcome::Lost, context.now, context);
        }
    }
}

impl Rig for EdmRig {
    type Event = EdmEvent;

    fn start(&mut self, context: &mut Context<'_, EdmEvent>) {
        for (index, fault) in self.config.faults.iter().enumerate() {
            context.at(fault.at, EdmEvent::Fault(index as u32));
        }
        self.start_background(context);
    }

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: &mut Context<'_, EdmEvent>) {
        // Generated requests have address 0: the fabric does not care, and no memory grows.
        let bytes = request.bytes.count() as u32;
        let access = match request.operation {
            Operation::Read => Access::Read { address: request.address, bytes },
            Operation::Write => Access::Write { address: request.address, bytes, word: 0 },
            Operation::ReadModifyWrite => {
                Access::Modify { address: request.address, modify: cost::REPRESENTATIVE_MODIFY }
            }
        };
        self.submit(ticket, request.source, request.target, access, context);
    }

    fn on(&mut self, event: EdmEvent, context: &mut Context<'_, EdmEvent>) {
        match event {
            EdmEvent::Transmit(node) => {
                let pace = &mut self.paces[node.index()];
                // An event that a later, earlier one has overtaken does nothing, or each would go
                // on beside the other.
                if pace.up && pace.transmit.ring(context.now) {
                    self.transmit(node, context);
                }
            }
            EdmEvent::AtSwitch(flight) => self.at_switch(flight, context),
            EdmEvent::AtHost(flight) => self.at_host(flight, context),
            EdmEvent::Fetched(flight) => self.fetched(flight, context),
            EdmEvent::Match => self.match_all(context),
            EdmEvent::Emit(plane) => self.emit(usize::from(plane), context),
            EdmEvent::Timer(node) => self.timer(node, context),
            EdmEvent::Fault(index) => self.fault(self.config.faults[index as usize].kind, context),
            EdmEvent::Link { plane, direction, node } => self.link_sent(LinkId { plane, direction, node }, context),
            EdmEvent::Burst(generator) => self.burst(generator, context),
            EdmEvent::FrameAtEgress(frame) => self.frame_at_egress(frame, context),
        }
    }

    const PREFETCHES: bool = true;

    #[inline(always)]
    fn prefetch(&self, soon: Soon, event: EdmEvent) -> Option<Ticket> {
        self.fetch(soon, event)
    }

    fn prefetch_request(&self, request: &Request) {
        self.nodes[request.source.index()].host.prefetch_request(request.target);
    }

    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span> {
        let EdmRigConfig { edm, transceiver, propagation, memory, .. } = &self.config;
        let place = &self.timing.place;
        let access = |takes: bool, bytes| if takes { memory.access(bytes) } else { Span::ZERO };
        let fabric = cost::unloaded(edm, place, *transceiver, *propagation, operation, bytes);
        let before = match operation {
            Operation::Write => access(self.remote.fetches_writes, bytes).saturating_sub(cost::until_granted(
                edm,
                place,
                *transceiver,
                *propagation,
            )),
            Operation::Read => memory.access(bytes),
            Operation::ReadModifyWrite => memory.access(Bytes::new(8)),
        };
        let delayed = before.max(cost::slot_gaps(edm, place, operation, bytes));
        Some(fabric + delayed + access(self.remote.stores(operation), bytes))
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        if let Some(converged) = &self.planes.converged {
            return converged.busy(out);
        }
        for plane in self.planes.iter() {
            out.extend(plane.uplinks.iter().chain(&plane.downlinks).map(Link::busy));
        }
    }

    fn dropped_packets(&self) -> u64 {
        self.counts.lost_messages
    }

    fn measure(&self, _now: Time, meter: &mut Meter) {
        let switch = &self.planes[0].switch;
        meter.put(metric::longest_notification_queue, f64::from(switch.scheduler().longest_queue()));
        meter.count(metric::matching_iterations, switch.scheduler().iterations() as f64);
        meter.put(metric::longest_data_wait_at_switch_ns, self.counts.longest_data_wait.as_ns_f64());
        meter.put(metric::longest_request_wait_at_switch_ns, self.counts.longest_request_wait.as_ns_f64());
        meter.count(metric::protocol_violations, switch.violations() as f64);
        meter.count(metric::unexpected_messages, self.counts.unexpected as f64);
        if let Some(converged) = &self.planes.converged {
            converged.measure(self.planes.first_living(), meter);
        }
        let (bits, announced) = switch.notification_bits();
        let overhead = metric::notification_bits_per_data_bit;
        let (bits, announced) = (meter.grown(overhead, 0, bits as f64), meter.grown(overhead, 1, announced as f64));
        if announced > 0.0 {
            meter.put(overhead, bits / announced);
        }
    }

    fn sample(&self, now: Time, probe: &mut Probe) {
        let plane = self.planes.first_living();
        match &self.planes.converged {
            Some(converged) => converged.sample(plane, probe),
            None => {
                let waiting = self.planes[plane].downlinks.iter().map(|link| link.backlog(now).count() as f64);
                probe.put_each(Series::PortQueueBytes, 0, waiting);
            }
        }
        let switch = &self.planes[plane].switch;
        let nodes = || (0..self.config.nodes).map(NodeId);
        let waiting = nodes().map(|node| f64::from(switch.scheduler().waiting(node)));
        probe.put_each(Series::DemandsWaiting, 0, waiting);
        probe.put_each(Series::GrantedBytes, 0, nodes().map(|node| switch.granted(node) as f64));
    }

    fn end_warm_up(&mut self, now: Time) {
        (self.counts.longest_data_wait, self.counts.longest_request_wait) = (Span::ZERO, Span::ZERO);
        self.planes.iter_mut().for_each(|plane| plane.switch.restart_longest_queue());
        if let Some(converged) = &mut self.planes.converged {
            converged.end_warm_up(now);
        }
    }
}
