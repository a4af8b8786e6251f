//! EDM in its hardware: hosts around one switch, or two in step.
//!
//! The way of a memory message: transmit arbitration, uplink (66-bit blocks), `hop` (PCS, transceiver, fibre,
//! transceiver, PCS), the switch's insert or forward pipeline, downlink, `hop`, the receiver's pipeline. Blocks are
//! cut through: a chunk's serialization counts once, on the uplink; on the downlink it only waits for the blocks before it.
//!
//! With background traffic, ordinary frames share the links (`converged`); without, links are plain FIFOs, which need no event.

mod background;
mod converged;
mod encoder;
mod flight;
mod foresee;
mod inside;
mod plan;
mod ports;
mod track;

use crate::drive::{Context, Ended, Rig, Ticket};
pub use background::Background;
use base::{Bytes, NodeId, Operation, Program, Rate, Request, Span, Time};
use converged::Converged;
use edm::budget::Delays;
use edm::mirror::{self, LinkLoss, Mirror, Networks};
use edm::{Access, Body, Config, Grant, Host, HostIn, HostOut, Place, Switch, SwitchIn, SwitchOut, Tag, cost};
use encoder::Encoder;
use flight::{Flight, Flights, Kind, Stage};
use hardware::{Dram, DramConfig, Link};
use kernel::Soon;
pub(crate) use plan::play;
pub use ports::{Direction, LinkId};
use record::Outcome;
use record::metric::{self, Meter};
use std::collections::{BTreeMap, VecDeque};
use track::{Track, Tracks};

/// What happens to the hardware, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// What.
    pub kind: FaultKind,
}

/// What can happen to the hardware. Nothing comes back within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The link of a node to the primary switch dies, or its scrambler sees corruption and disables it (paper 3.3).
    LinkDown(NodeId),
    /// A switch dies: 0 is the primary, 1 the backup.
    SwitchDown(usize),
    /// A node dies.
    NodeDown(NodeId),
}

/// The network around the programs.
#[derive(Clone, Debug, PartialEq)]
pub struct EdmRigConfig {
    /// The design.
    pub edm: Config,
    /// Compute and memory nodes, one port each; at most 512.
    pub nodes: u32,
    /// Every link.
    pub rate: Rate,
    /// Of one hop.
    pub propagation: Span,
    /// PMA, PMD and transceiver, one crossing.
    pub transceiver: Span,
    /// Every node's memory.
    pub memory: DramConfig,
    /// Whether every node has a second link to a backup switch that runs in step.
    pub redundant: bool,
    /// What breaks.
    pub faults: Vec<Fault>,
    /// Ordinary frames on the same links.
    pub background: Option<Background>,
    /// Whether every message is encoded to blocks and back; a difference panics.
    pub wire_check: bool,
}

/// The rig's own events.
#[derive(Clone, Copy, Debug)]
pub enum EdmEvent {
    /// A node may have something to send and its uplink free.
    Transmit(NodeId),
    /// A flight has passed the switch's receive pipeline.
    AtSwitch(u32),
    /// A flight has passed the receiver's pipeline.
    AtHost(u32),
    /// The switches want to match.
    Match,
    /// A switch's grants reach the egress ports.
    Emit(u8),
    /// A node's timers are due.
    Timer(NodeId),
    /// The fault with this index.
    Fault(u32),
    /// A shared link may have sent something. A [`LinkId`] in pieces, which fit into eight bytes with the rest.
    Link {
        /// The plane.
        plane: u8,
        /// Up or down.
        direction: Direction,
        /// Whose link.
        node: NodeId,
    },
    /// A background generator's frames have passed their MAC.
    Burst(u32),
    /// A frame is at its egress port in the switch.
    FrameAtEgress(u32),
}

/// One switch with the links to and from it.
struct Plane {
    switch: Switch,
    uplinks: Vec<Link>,
    downlinks: Vec<Link>,
    link_up: Vec<bool>,
    up: bool,
    /// Grants on their way from the scheduler to the egress ports.
    emitting: VecDeque<Round>,
    /// Empty lists of rounds that have been emitted.
    spare: Vec<Vec<SwitchOut>>,
}

/// The grants and requests that one round of a scheduler has made.
struct Round {
    /// When they are at their egress ports.
    at: Time,
    said: Vec<SwitchOut>,
}

/// One node.
struct Node {
    host: Host,
    memory: Dram,
    /// Present when there are two planes.
    mirror: Option<Mirror>,
}

/// What is looked at each time that anything happens at a node: apart from the [`Node`], so that those of a rack stay in the cache.
#[derive(Clone, Copy)]
struct Pace {
    /// When the uplinks are free: those of all living planes are busy alike. Shared links have their own books.
    uplink_free_at: Time,
    transmit_armed: Time,
    timer_armed: Time,
    up: bool,
}

const IDLE: Pace = Pace { uplink_free_at: Time::ZERO, transmit_armed: Time::MAX, timer_armed: Time::MAX, up: true };

/// EDM's programs inside hardware models. Implements [`Rig`].
pub struct EdmRig {
    config: EdmRigConfig,
    place: Place,
    delays: Delays,
    hop: Span,
    /// One block on a link.
    block: Span,
    costs: track::Costs,
    planes: Vec<Plane>,
    networks: Networks,
    living_planes: u8,
    match_armed: Time,
    /// The links instead of those of the planes, if there are frames on them.
    converged: Option<Box<Converged>>,
    nodes: Vec<Node>,
    paces: Vec<Pace>,
    flights: Flights,
    tracks: Tracks,
    unexpected: u64,
    lost_messages: u64,
    longest_data_wait: Span,
    longest_request_wait: Span,
    /// Words that answers carried, by ticket, for those who run programs on this memory.
    answers: Option<BTreeMap<u32, u64>>,
    /// Tickets of reads and read-modify-writes that have reached their memory, likewise.
    reached: Option<Vec<u32>>,
    host_out: Vec<HostOut>,
    switch_out: Vec<SwitchOut>,
    encoder: Encoder,
}

type Ctx<'a, 'b> = &'a mut Context<'b, EdmEvent>;

impl EdmRig {
    /// A network at rest. `config` was checked by `spec`: at most 512 nodes, chunks of at most 65,535 bytes.
    pub fn new(config: EdmRigConfig) -> EdmRig {
        let place = Place { nodes: config.nodes, rate: config.rate };
        let delays = Delays::new(&config.edm);
        let hop = delays.pcs * 2 + config.transceiver * 2 + config.propagation;
        let planes = if config.redundant { 2 } else { 1 };
        let node = |id| Node {
            host: Host::new(NodeId(id), config.edm, place),
            memory: Dram::new(config.memory),
            mirror: config.redundant.then(|| Mirror::new(config.nodes)),
        };
        EdmRig {
            place,
            delays,
            hop,
            block: place.blocks(1),
            costs: track::Costs::new(&delays, &place, config.transceiver, config.propagation),
            planes: (0..planes).map(|_| Plane::new(&config, place)).collect(),
            match_armed: Time::MAX,
            converged: config.background.as_ref().map(|background| Box::new(Converged::new(&config, background))),
            networks: Networks::new(config.redundant),
            living_planes: planes,
            paces: vec![IDLE; config.nodes as usize],
            nodes: (0..config.nodes).map(node).collect(),
            flights: Flights::default(),
            tracks: Tracks::new(if config.redundant { hop * 16 } else { Span::ZERO }),
            unexpected: 0,
            lost_messages: 0,
            longest_data_wait: Span::ZERO,
            longest_request_wait: Span::ZERO,
            answers: None,
            reached: None,
            host_out: Vec::new(),
            switch_out: Vec::new(),
            encoder: Encoder::new(config.wire_check),
            config,
        }
    }

    /// Hands a request with its exact access to its source; [`Rig::issue`] for those who choose addresses and operations.
    pub fn submit(&mut self, ticket: Ticket, source: NodeId, target: NodeId, access: Access, context: Ctx) {
        let track = Track::new(ticket.0, &access, &self.config.edm, context.keeps_spans);
        let tag = self.tracks.open(context.now, track::Ends { source, target }, track);
        if !self.paces[source.index()].up {
            return self.end(tag, Outcome::Lost, context.now, context);
        }
        self.tell_host(source, HostIn::Submit { tag: Tag(tag), target, access }, context);
    }

    /// Inlined, so that each caller has its own input's part of the program only.
    #[inline(always)]
    fn tell_host(&mut self, node: NodeId, input: HostIn, context: Ctx) {
        let mut out = std::mem::take(&mut self.host_out);
        self.nodes[node.index()].host.on(context.now, input, &mut out);
        self.after_host(node, &mut out, context);
        self.host_out = out;
    }

    fn after_host(&mut self, node: NodeId, out: &mut Vec<HostOut>, context: Ctx) {
        for said in out.iter().copied() {
            match said {
                HostOut::Answered { tag, word } => {
                    if let Some(answers) = &mut self.answers {
                        answers.insert(self.tracks[tag.0 as usize].ticket, word);
                    }
                    self.end(tag.0, Outcome::Finished, context.now, context);
                }
                HostOut::Null { tag } => self.end(tag.0, Outcome::Null, context.now, context),
                HostOut::Written => {}
                HostOut::Unexpected => self.unexpected += 1,
            }
        }
        out.clear();
        self.transmit(node, context);
        self.arm_timer(node, context);
    }

    fn end(&mut self, tag: u32, outcome: Outcome, end: Time, context: Ctx) {
        let ticket = Ticket(self.tracks[tag as usize].ticket);
        let (start, ledger) = self.tracks.ledger(tag, outcome, end, &self.costs);
        context.end(Ended { ticket, outcome, start, end, ledger });
        self.tracks.close(tag, outcome, end);
    }

    fn arm_timer(&mut self, node: NodeId, context: Ctx) {
        let pace = &mut self.paces[node.index()];
        // One event a node, and only while nothing earlier is armed: timers that were forgotten meanwhile find nothing due.
        if pace.timer_armed < Time::MAX {
            return;
        }
        if let Some(at) = self.nodes[node.index()].host.next_wakeup() {
            pace.timer_armed = at;
            context.at(at.max(context.now), EdmEvent::Timer(node));
        }
    }

    #[inline(never)]
    fn timer(&mut self, node: NodeId, context: Ctx) {
        let pace = &mut self.paces[node.index()];
        pace.timer_armed = Time::MAX;
        if !pace.up {
            return;
        }
        let mut out = std::mem::take(&mut self.host_out);
        self.nodes[node.index()].host.on_wakeup(context.now, &mut out);
        self.after_host(node, &mut out, context);
        self.host_out = out;
    }

    /// Sends what waits if the uplink is free, or makes sure that it is tried again when it is.
    #[inline(always)]
    fn transmit(&mut self, node: NodeId, context: Ctx) {
        let pace = &self.paces[node.index()];
        // Many calls end here, and none of what waits has been touched.
        if pace.uplink_free_at <= context.now || pace.transmit_armed > pace.uplink_free_at {
            self.transmit_ready(node, context);
        }
    }

    #[inline(never)]
    fn transmit_ready(&mut self, node: NodeId, context: Ctx) {
        let now = context.now;
        while !self.is_sending(node) {
            let pace = &mut self.paces[node.index()];
            let free_at = pace.uplink_free_at;
            if free_at > now && pace.transmit_armed <= free_at {
                return;
            }
            let Some(ready) = self.nodes[node.index()].host.transmit_ready() else { return };
            let at = ready.max(free_at).max(now);
            if at > now {
                if at < pace.transmit_armed {
                    pace.transmit_armed = at;
                    context.at(at, EdmEvent::Transmit(node));
                }
                return;
            }
            self.transmit_next(node, context);
        }
    }

    /// Apart from [`transmit`](Self::transmit), which mostly has nothing to send and should be quick about it.
    #[inline(never)]
    fn transmit_next(&mut self, node: NodeId, context: Ctx) {
        let (now, living) = (context.now, self.living_planes);
        let EdmRig { nodes, tracks, encoder, .. } = self;
        let sent = nodes[node.index()].host.transmit_with(now, |sent| {
            tracks.sent(sent, now, living);
            match encoder.transmission(sent, node) {
                None => Flight::sent(0, node, &sent.what, sent.word, sent.tag),
                Some(received) => Flight::sent(0, node, &received.what, received.word, received.tag),
            }
        });
        let flight = sent.expect("a ready host has something to send");
        let is_plain = self.planes.len() == 1 && self.converged.is_none() && self.planes[0].carries(node);
        if is_plain {
            self.launch_on(flight, node, context);
        } else {
            self.launch(flight, node, context);
        }
    }

    /// Puts a flight onto the uplinks of all planes.
    #[inline(never)]
    fn launch(&mut self, flight: Flight, node: NodeId, context: Ctx) {
        let mut copies = 0;
        for plane in 0..self.planes.len() {
            if self.planes[plane].carries(node) {
                copies += 1;
                let flight = flight.by_plane(plane);
                match self.converged {
                    Some(_) => self.launch_shared(flight, context),
                    None => self.launch_on(flight, node, context),
                }
            }
        }
        if copies == 0 {
            self.lose(flight, context);
        }
    }

    #[inline(always)]
    fn launch_on(&mut self, sent: Flight, node: NodeId, context: Ctx) {
        let uplink = &mut self.planes[sent.plane()].uplinks[node.index()];
        let (first, last) = uplink.occupy(context.now, self.block * sent.blocks());
        let pace = &mut self.paces[node.index()];
        pace.uplink_free_at = pace.uplink_free_at.max(last);
        let at = match sent.is_data() {
            true => first + self.hop + self.delays.forward,
            false => last + self.hop + self.delays.insert,
        };
        let flight = self.flights.add(sent);
        context.at(at, EdmEvent::AtSwitch(flight));
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
        let mut out = std::mem::take(&mut self.switch_out);
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
        self.switch_out = out;
    }

    /// Data along its circuit to the port of its target, or nowhere.
    fn data_at_switch(&mut self, index: u32, sent: Flight, context: Ctx) {
        let (source, target) = (sent.source(), sent.target());
        let side = &mut self.planes[sent.plane()];
        if !side.switch.forwards(context.now, source, target, sent.id(), sent.bytes()) {
            self.forget_flight(index);
            return self.lose(sent, context);
        }
        if self.converged.is_some() {
            return self.forward_shared(index, sent, context);
        }
        let (first, last) = side.downlinks[target.index()].occupy(context.now, self.block * sent.blocks());
        let waited = first - context.now;
        self.longest_data_wait = self.longest_data_wait.max(waited);
        self.tracks[sent.tag().0 as usize].forwarded(waited);
        self.flights.turn_to_target(index);
        context.at(last + self.hop + self.delays.take_data, EdmEvent::AtHost(index));
    }

    /// One event for both planes: with one each, something else at the same instant could come between them, and only one of
    /// them would see it.
    fn arm_match(&mut self, context: Ctx) {
        let living = self.planes.iter().filter(|plane| plane.up);
        let Some(at) = living.filter_map(|plane| plane.switch.next_wakeup()).min() else { return };
        let at = at.max(context.now);
        if at < self.match_armed {
            self.match_armed = at;
            context.at(at, EdmEvent::Match);
        }
    }

    fn match_all(&mut self, context: Ctx) {
        // An event that a later, earlier one has overtaken finds nothing due.
        if self.match_armed > context.now {
            return;
        }
        self.match_armed = Time::MAX;
        for plane in 0..self.planes.len() {
            if self.planes[plane].up {
                self.match_round(plane, context);
            }
        }
        self.arm_match(context);
    }

    fn match_round(&mut self, plane: usize, context: Ctx) {
        let side = &mut self.planes[plane];
        let mut said = side.spare.pop().unwrap_or_default();
        side.switch.on_wakeup(context.now, &mut said);
        let Some(SwitchOut::Grant { at, .. } | SwitchOut::Request { at, .. }) = said.first() else {
            return side.spare.push(said);
        };
        let at = *at + self.delays.emit;
        side.emitting.push_back(Round { at, said });
        context.at(at, EdmEvent::Emit(plane as u8));
    }

    /// The grants of one round go to their egress ports.
    fn emit(&mut self, plane: usize, context: Ctx) {
        while self.planes[plane].emitting.front().is_some_and(|round| round.at <= context.now) {
            let Some(Round { mut said, .. }) = self.planes[plane].emitting.pop_front() else { return };
            for said in &said {
                match *said {
                    SwitchOut::Grant { to, grant, tag, .. } => self.send_grant(plane, to, grant, tag, context),
                    SwitchOut::Request { message, tag, .. } => self.send_request(plane, message, tag, context),
                    _ => unreachable!("a round makes grants and requests only"),
                }
            }
            said.clear();
            self.planes[plane].spare.push(said);
        }
    }

    fn send_grant(&mut self, plane: usize, to: NodeId, grant: Grant, tag: Tag, context: Ctx) {
        let grant = self.encoder.grant(grant, to);
        if self.converged.is_some() {
            return self.grant_shared(Flight::granting(plane, to, grant, tag), context);
        }
        // A /G/ is one block and goes between the blocks of whatever the downlink carries (paper 3.2.3): behind queued data
        // it would make its own data late, which would queue behind other data in its turn.
        let blocks = edm::pcs::memory::GRANT_BLOCKS;
        let last = self.planes[plane].downlinks[to.index()].insert(context.now, self.block * blocks);
        self.tracks[tag.0 as usize].granted(context.now, Span::ZERO, blocks);
        self.land_grant(Flight::granting(plane, to, grant, tag), last, context);
    }

    /// The buffered request goes on to its memory node, whose memory is read as soon as it is there.
    fn send_request(&mut self, plane: usize, message: edm::Message, tag: Tag, context: Ctx) {
        let message = self.encoder.request(message, message.source);
        if self.converged.is_some() {
            return self.request_shared(Flight::request(plane, &message, tag), context);
        }
        let flight = Flight::request(plane, &message, tag);
        let serialization = self.block * flight.blocks();
        let downlink = &mut self.planes[plane].downlinks[message.target.index()];
        let (first, last) = downlink.occupy(context.now, serialization);
        self.request_waited(context.now, first - context.now, flight);
        self.serve(flight, last, context);
    }

    /// A request has waited for its downlink from `at` on.
    fn request_waited(&mut self, at: Time, waited: Span, request: Flight) {
        self.longest_request_wait = self.longest_request_wait.max(waited);
        self.tracks[request.tag().0 as usize].request_granted(at, waited, request.blocks());
    }

    /// A request whose last block leaves the downlink at `last` reaches its memory node, and the memory is read.
    #[inline(always)]
    fn serve(&mut self, request: Flight, last: Time, context: Ctx) {
        let asked = last + self.hop + self.delays.take_request;
        // A memory that takes no time needs no event of its own.
        let made = if self.memory_takes_time() { Span::ZERO } else { self.delays.make_response };
        self.land(request, asked + made, context);
    }

    /// A grant whose last block leaves the downlink at `last` reaches its host.
    #[inline(always)]
    fn land_grant(&mut self, grant: Flight, last: Time, context: Ctx) {
        let at = last + self.hop + self.delays.take_grant;
        self.land(grant, at, context);
    }

    fn memory_takes_time(&self) -> bool {
        self.config.memory.latency > Span::ZERO || self.config.memory.bandwidth.is_some()
    }

    #[inline(always)]
    fn land(&mut self, flight: Flight, at: Time, context: Ctx) {
        let flight = self.flights.add(flight);
        context.at(at, EdmEvent::AtHost(flight));
    }

    fn at_host(&mut self, index: u32, context: Ctx) {
        let flight = self.flights.remove(index);
        let node = flight.node();
        let is_inside = matches!(flight.kind(), Kind::Request(Stage::Reading, _));
        if !self.paces[node.index()].up || !(is_inside || self.planes[flight.plane()].carries(node)) {
            return self.lose(flight, context);
        }
        if !is_inside && !self.is_first_copy(flight) {
            return;
        }
        match flight.kind() {
            Kind::Grant => self.tell_host(node, HostIn::Granted(flight.grant()), context),
            Kind::Request(Stage::Granted, _) if self.memory_takes_time() => self.asked(flight, context),
            Kind::Request(stage, _) => {
                let (message, tag) = (flight.message(), flight.tag());
                if stage == Stage::Granted {
                    self.note_reached(tag);
                }
                self.tell_host(node, HostIn::Serve { message, tag }, context);
            }
            _ => self.take(flight, context),
        }
    }

    /// The first copy of a request is at a memory node whose memory takes time.
    #[inline(never)]
    fn asked(&mut self, flight: Flight, context: Ctx) {
        let (node, message) = (flight.node(), flight.message());
        self.note_reached(flight.tag());
        self.tell_host(node, HostIn::Begin { message }, context);
        let bytes = match message.body {
            Body::ReadRequest { bytes, .. } => Bytes::new(u64::from(bytes)),
            _ => Bytes::new(8),
        };
        let read = self.nodes[node.index()].memory.submit(context.now, bytes);
        self.tracks.memory_read(flight.tag(), read - context.now);
        self.land(Flight::reading(&message, flight.tag()), read + self.delays.make_response, context);
    }

    fn note_reached(&mut self, tag: Tag) {
        if let Some(reached) = &mut self.reached {
            reached.push(self.tracks[tag.0 as usize].ticket);
        }
    }

    fn take(&mut self, chunk: Flight, context: Ctx) {
        self.tell_host(chunk.node(), HostIn::Take { message: chunk.message(), word: chunk.word() }, context);
        if chunk.kind() == Kind::WriteEnd {
            self.tracks[chunk.tag().0 as usize].arrived();
            self.end(chunk.tag().0, Outcome::Finished, context.now, context);
        }
    }

    fn is_first_copy(&mut self, flight: Flight) -> bool {
        let Some(mirror) = &mut self.nodes[flight.node().index()].mirror else { return true };
        let (peer, kind) = match flight.kind() {
            Kind::Grant if flight.id().0 & 0x80 != 0 => (flight.target(), mirror::Kind::WriteGrant),
            Kind::Grant => (flight.target(), mirror::Kind::ResponseGrant),
            Kind::Request(..) => (flight.source(), mirror::Kind::Request),
            Kind::Response | Kind::ResponseEnd => (flight.source(), mirror::Kind::Response),
            Kind::Write | Kind::WriteEnd => (flight.source(), mirror::Kind::Write),
            Kind::Notification => return true,
        };
        mirror.accept(flight.plane(), peer, kind)
    }

    /// Something died with a message on it. Only the last chunk of a write has nobody left who would notice.
    #[inline(never)]
    fn lose(&mut self, flight: Flight, context: Ctx) {
        self.lost_messages += 1;
        let tag = flight.tag().0;
        if flight.kind() == Kind::WriteEnd && self.tracks[tag as usize].lost_last_copy() {
            self.end(tag, Outcome::Lost, context.now, context);
        }
    }

    #[inline(never)]
    fn fault(&mut self, kind: FaultKind, context: Ctx) {
        match kind {
            FaultKind::LinkDown(node) => {
                if self.networks.on_link_loss() == LinkLoss::Node {
                    self.planes[0].link_up[node.index()] = false;
                    self.port_down(node, context);
                }
            }
            FaultKind::SwitchDown(plane) => self.networks.on_switch_loss(plane),
            FaultKind::NodeDown(node) if !self.paces[node.index()].up => {}
            FaultKind::NodeDown(node) => {
                self.paces[node.index()].up = false;
                self.port_down(node, context);
                self.drop_requests_of(node, context);
            }
        }
        self.count_the_living();
    }

    fn count_the_living(&mut self) {
        for (number, plane) in self.planes.iter_mut().enumerate() {
            plane.up = self.networks.is_used(number);
        }
        self.living_planes = self.networks.used().count() as u8;
        for (pace, node) in self.paces.iter_mut().zip((0..).map(NodeId)) {
            let carrying = self.planes.iter().filter(|plane| plane.carries(node));
            let free_at = carrying.map(|plane| plane.uplinks[node.index()].free_at()).max();
            pace.uplink_free_at = free_at.unwrap_or(Time::ZERO);
        }
    }

    fn port_down(&mut self, port: NodeId, context: Ctx) {
        for plane in 0..self.planes.len() {
            let mut out = std::mem::take(&mut self.switch_out);
            self.planes[plane].switch.on(context.now, SwitchIn::PortDown { port }, &mut out);
            out.clear();
            self.switch_out = out;
            self.arm_match(context);
        }
    }

    /// A dead node's own requests have nobody left to answer, and what it had yet to send is gone.
    fn drop_requests_of(&mut self, node: NodeId, context: Ctx) {
        for sent in self.nodes[node.index()].host.take_unsent() {
            self.tracks[sent.tag.0 as usize].never_left();
            self.lose(Flight::sent(0, node, &sent.what, sent.word, sent.tag), context);
        }
        for tag in self.nodes[node.index()].host.outstanding() {
            self.end(tag.0, Outcome::Lost, context.now, context);
        }
    }
}

impl Plane {
    fn new(config: &EdmRigConfig, place: Place) -> Plane {
        let nodes = config.nodes as usize;
        Plane {
            switch: Switch::new(config.edm, place),
            uplinks: vec![Link::new(config.rate); nodes],
            downlinks: vec![Link::new(config.rate); nodes],
            link_up: vec![true; nodes],
            up: true,
            emitting: VecDeque::new(),
            spare: Vec::new(),
        }
    }
    /// Whether anything passes between this switch and `node`.
    fn carries(&self, node: NodeId) -> bool {
        self.up && self.link_up[node.index()]
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
                // An event that a later, earlier one has overtaken does nothing, or each would go on beside the other.
                if pace.transmit_armed <= context.now && pace.up {
                    pace.transmit_armed = Time::MAX;
                    self.transmit(node, context);
                }
            }
            EdmEvent::AtSwitch(flight) => self.at_switch(flight, context),
            EdmEvent::AtHost(flight) => self.at_host(flight, context),
            EdmEvent::Match => self.match_all(context),
            EdmEvent::Emit(plane) => self.emit(usize::from(plane), context),
            EdmEvent::Timer(node) => self.timer(node, context),
            EdmEvent::Fault(index) => self.fault(self.config.faults[index as usize].kind, context),
            EdmEvent::Link { plane, direction, node } => self.link_sent(LinkId { plane, direction, node }, context),
            EdmEvent::Burst(generator) => self.burst(generator, context),
            EdmEvent::FrameAtEgress(frame) => self.frame_at_egress(frame, context),
        }
    }

    const FORESEES: bool = true;

    #[inline(always)]
    fn foresee(&self, soon: Soon, event: EdmEvent) -> Option<Ticket> {
        self.fetch(soon, event)
    }

    fn foresee_request(&self, request: &Request) {
        self.nodes[request.source.index()].host.foresee_request(request.target);
    }

    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Option<Span> {
        let config = &self.config;
        let fabric = cost::unloaded(&config.edm, &self.place, config.transceiver, config.propagation, operation, bytes);
        if operation == Operation::Write {
            return Some(fabric);
        }
        let read = if operation == Operation::Read { bytes } else { Bytes::new(8) };
        Some(fabric + Dram::new(config.memory).submit(Time::ZERO, read).saturating_since(Time::ZERO))
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        if let Some(converged) = &self.converged {
            return converged.busy(out);
        }
        for plane in &self.planes {
            out.extend(plane.uplinks.iter().chain(&plane.downlinks).map(Link::busy));
        }
    }

    fn dropped_packets(&self) -> u64 {
        self.lost_messages
    }

    fn measure(&self, _now: Time, meter: &mut Meter) {
        let switch = &self.planes[0].switch;
        meter.put(metric::longest_notification_queue, f64::from(switch.scheduler().longest_queue()));
        meter.count(metric::matching_iterations, switch.scheduler().iterations() as f64);
        meter.put(metric::longest_data_wait_at_switch_ns, self.longest_data_wait.as_ns_f64());
        meter.put(metric::longest_request_wait_at_switch_ns, self.longest_request_wait.as_ns_f64());
        meter.count(metric::protocol_violations, switch.violations() as f64);
        meter.count(metric::unexpected_messages, self.unexpected as f64);
        if let Some(converged) = &self.converged {
            converged.measure(self.counting_plane(), meter);
        }
        let (bits, announced) = switch.notification_bits();
        let overhead = metric::notification_bits_per_data_bit;
        let (bits, announced) = (meter.grown(overhead, 0, bits as f64), meter.grown(overhead, 1, announced as f64));
        if announced > 0.0 {
            meter.put(overhead, bits / announced);
        }
    }

    fn end_warm_up(&mut self, now: Time) {
        (self.longest_data_wait, self.longest_request_wait) = (Span::ZERO, Span::ZERO);
        self.planes.iter_mut().for_each(|plane| plane.switch.restart_longest_queue());
        if let Some(converged) = &mut self.converged {
            converged.end_warm_up(now);
        }
    }
}

const _: () = assert!(size_of::<crate::drive::Event<EdmEvent>>() == 8);
