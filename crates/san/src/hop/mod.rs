//! The program of an adapter or a switch: routing, reservation and queues combined.
//!
//! Of outward packets ([`PacketKind::is_outward`]), a command is routed, and later packets take the
//! port in the trail. The hop books bandwidth for the answer, ranks the packet, writes itself into
//! the trail and queues the packet. A packet of an answer takes the port in the trail, and a
//! response updates the delays of its path.
//!
//! When a link fails (paper, 4.6), its bookings and learned delays are dropped and distances are
//! advertised. Packets that wait at its port are rerouted: commands and write data are routed again
//! from here. Answers leave their path permanently and take the lowest queue without bandwidth
//! control. The rig drops the packets that were on the wire.

mod cards;
mod config;
mod lossless;
mod message;
mod port;

pub use cards::Cards;
pub use config::{HopConfig, HopCounts, LosslessConfig};
pub use message::{DropReason, HopIn, HopOut, Passed};

use crate::egress::{RankConfig, SchedulingConfig};
use crate::id::{DriveId, Port};
use crate::packet::{Outcome, Packet, PacketKind};
use crate::reserve::ReservationConfig;
use crate::route::{RouteConfig, Router};
use crate::trail::{Trail, TrailHop, Way};
use base::{Bytes, Operation, Program, Rate, Time};
use lossless::Lossless;
use port::{EgressPort, Entry};
use topology::VertexId;

/// An adapter or a switch.
#[derive(Clone, Debug)]
pub struct Hop {
    here: VertexId,
    route: RouteConfig,
    reservation: Option<ReservationConfig>,
    rank: Option<RankConfig>,
    router: Router,
    ports: Vec<EgressPort>,
    /// By drive: the last credit seen plus one, and its target. Zeros for drives without an answer
    /// so far, which take no memory.
    credits: Vec<[u32; 2]>,
    response_frame: u32,
    counts: HopCounts,
    /// A reused buffer for packets that waited at a failed port.
    stranded: Vec<Packet>,
    lossless: Option<Box<Lossless>>,
}

impl Hop {
    /// Creates a hop that knows only its neighbours.
    pub fn new(config: HopConfig) -> Hop {
        assert!(config.here.0 <= u32::from(u16::MAX), "trails on the wire name vertices in 16 bits");
        assert!(config.neighbours.len() < crate::trail::PORTS_MAX, "and ports in 15");
        let reservation = config.reservation.as_ref();
        // In lossless operation, ingress accounting limits the buffer instead.
        let room = if config.lossless.is_some() { Bytes::new(u64::MAX) } else { config.buffer };
        let port = |rate| EgressPort::new(rate, room, &config.scheduling, reservation);
        let lossless = config.lossless.as_ref().map(|lossless| Box::new(Lossless::new(lossless, config.here)));
        Hop {
            here: config.here,
            route: config.route,
            ports: config.neighbours.iter().map(|neighbour| port(neighbour.rate)).collect(),
            rank: match &config.scheduling {
                SchedulingConfig::StorageDriven(scheduling) => Some(scheduling.rank),
                SchedulingConfig::Fifo => None,
            },
            router: Router::new(config.here, config.vertices, config.neighbours, &config.route),
            credits: vec![[0; 2]; config.drives],
            response_frame: config.response_frame,
            counts: HopCounts::default(),
            stranded: Vec::new(),
            lossless,
            reservation: config.reservation,
        }
    }

    /// Returns the counters.
    pub fn counts(&self) -> &HopCounts {
        &self.counts
    }
    /// Returns the router.
    pub fn router(&self) -> &Router {
        &self.router
    }
    /// Returns the router, to let it converge before a run.
    pub fn router_mut(&mut self) -> &mut Router {
        &mut self.router
    }
    /// Returns the bytes of frames that wait at a port, queued or held by its policer.
    pub fn waiting(&self, port: Port) -> Bytes {
        self.ports[port.index()].waiting()
    }
    /// Returns the number of these packets.
    pub fn packets(&self, port: Port) -> usize {
        self.ports[port.index()].packets()
    }
    /// Returns whether the hop books bandwidth.
    pub fn reserves(&self) -> bool {
        self.reservation.is_some()
    }
    /// Returns the highest number of queued bytes of frames at a port.
    pub fn waiting_max(&self, port: Port) -> Bytes {
        self.ports[port.index()].queue.highest()
    }
    /// Returns the highest number of bytes of frames that the policer of a port held.
    pub fn held_max(&self, port: Port) -> Bytes {
        self.ports[port.index()].held_max()
    }
    /// Returns the highest number of waiting bytes of frames from an ingress port; zero without
    /// flow control.
    pub fn ingress_max(&self, port: Port) -> Bytes {
        self.lossless.as_ref().map_or(Bytes::ZERO, |lossless| lossless.highest(port))
    }
    /// Restarts the highest fill levels of all ports at the present ones.
    pub fn restart_highest(&mut self) {
        self.ports.iter_mut().for_each(EgressPort::restart_highest);
        if let Some(lossless) = &mut self.lossless {
            lossless.restart_highest();
        }
    }
    /// Returns whether this hop has paused the neighbour at a port.
    pub fn pauses(&self, port: Port) -> bool {
        self.lossless.as_ref().is_some_and(|lossless| lossless.pauses(port))
    }
    /// Returns whether the neighbour at a port has paused this hop.
    pub fn is_paused(&self, port: Port) -> bool {
        self.lossless.as_ref().is_some_and(|lossless| !lossless.is_open(port))
    }
    /// Returns the ports at which packets from `ingress` wait; none without flow control.
    pub fn waits_at(&self, ingress: Port) -> impl Iterator<Item = Port> {
        self.lossless.iter().flat_map(move |lossless| lossless.waits_at(ingress))
    }
    /// Returns the bandwidth booked on a port; zero without reservation. For tests and reports:
    /// scans all classes of sessions.
    pub fn booked(&self, now: Time, port: Port) -> Rate {
        match (&self.reservation, &self.ports[port.index()].booked) {
            (Some(config), Some(booked)) => booked.bookings.booked_at(config, now),
            _ => Rate::bps(0),
        }
    }
    /// Returns the last credit seen for a drive.
    pub fn credit(&self, drive: DriveId) -> Option<u32> {
        self.credits.get(drive.index()).and_then(|[credit, _]| credit.checked_sub(1))
    }

    /// Handles a packet as [`HopIn::Packet`] does, without moving it.
    #[inline(always)]
    pub fn pass(&mut self, now: Time, port: Port, packet: &mut Packet, out: &mut Vec<HopOut>) -> Passed {
        if !self.has_port(port) {
            debug_assert!(false, "the rig names ports that the hop has");
            return Passed::Over;
        }
        if let PacketKind::Pause { stop } = packet.kind {
            return self.on_pause(port, stop);
        }
        packet.ingress = port.0;
        match self.egress_of(now, port, packet, out) {
            Some(egress) => self.enqueue(now, egress, packet, out),
            None => Passed::Over,
        }
    }

    /// Updates a packet and returns its egress port, or `None` if the packet has ended.
    fn egress_of(&mut self, now: Time, port: Port, packet: &mut Packet, out: &mut Vec<HopOut>) -> Option<Port> {
        let egress = if packet.kind.is_outward() {
            self.on_outward(now, port, packet, out)
        } else {
            self.on_answer(now, port, packet, out)
        }?;
        if self.lossless.is_some() {
            self.mark_by_rule(egress, packet);
        }
        Some(egress)
    }

    /// The first half of [`HopIn::PortFree`], without moving the packet. Returns a reference to the
    /// packet to send now on that port. [`port_freed`](Self::port_freed) must follow.
    pub fn next_to_send(&mut self, now: Time, port: Port) -> Option<&Packet> {
        if !self.has_port(port) {
            debug_assert!(false, "the rig names ports that the hop has");
            return None;
        }
        let egress = &mut self.ports[port.index()];
        egress.woken(now);
        let packet = match self.lossless.as_deref_mut() {
            None => egress.next_to_send(now),
            Some(lossless) => next_of_class(now, port, egress, lossless),
        }?;
        self.counts.sent += 1;
        Some(packet)
    }

    /// The second half of [`HopIn::PortFree`]: releases packets that may follow. Returns when to
    /// call for this port again, if no such call was requested yet.
    pub fn port_freed(&mut self, now: Time, port: Port, out: &mut Vec<HopOut>) -> Option<Time> {
        if !self.has_port(port) {
            return None;
        }
        self.let_go_on(out);
        self.release_held(now, port, out);
        self.let_go_on(out);
        self.wake(port)
    }

    /// Returns when to call for a port, if no such call was requested yet.
    #[inline]
    fn wake(&mut self, port: Port) -> Option<Time> {
        let egress = &mut self.ports[port.index()];
        let Some(lossless) = &self.lossless else { return egress.wake() };
        egress.wake_for(lossless.has_control(port) || lossless.is_open(port) && !egress.queue.is_empty())
    }

    /// Prefetches the bookings of a packet that will soon arrive on a port. Has no other effect.
    #[inline]
    pub fn prefetch(&self, port: Port, packet: &Packet) {
        let Some(config) = &self.reservation else { return };
        if packet.operation == Operation::Write {
            return;
        }
        // A request is booked at its ingress port, by which its answer leaves.
        let booked =
            if packet.kind.is_outward() { Some(port) } else { packet.trail.behind().map(|hop| Port(hop.port)) };
        let egress = booked.and_then(|port| self.ports.get(port.index()));
        if let Some(booked) = egress.and_then(|egress| egress.booked.as_ref()) {
            booked.prefetch(config.class_of(packet.tag.session));
        }
    }

    /// Returns the egress port of an outward packet: from the trail if known, otherwise routed.
    fn on_outward(&mut self, now: Time, port: Port, packet: &mut Packet, out: &mut Vec<HopOut>) -> Option<Port> {
        match self.known_way_out(packet) {
            Some(egress) => self.depart(now, port, egress, packet, out),
            None => self.choose_way_out(now, port, packet, true, out),
        }
    }

    fn known_way_out(&self, packet: &Packet) -> Option<Port> {
        let hop = packet.trail.ahead().filter(|hop| hop.vertex == self.here.0)?;
        Some(Port(hop.port)).filter(|port| self.router.distances().is_up(*port))
    }

    /// Routes a command, or data whose path has failed. `books` is false for a command that has
    /// already booked here.
    #[inline(never)]
    fn choose_way_out(
        &mut self,
        now: Time,
        port: Port,
        packet: &mut Packet,
        books: bool,
        out: &mut Vec<HopOut>,
    ) -> Option<Port> {
        self.cut(packet, packet.trail.position());
        let is_command = packet.kind == PacketKind::Command;
        let chosen = if is_command {
            self.router.choose(now, packet.target, packet.tag, &mut packet.trail)
        } else {
            self.router.choose_steady(packet.target, packet.tag, &packet.trail)
        };
        match chosen {
            None if is_command => self.refuse(now, port, packet, Outcome::Unreachable, out),
            None => self.discard(packet, DropReason::NoRoute, out),
            Some(egress) if is_command && books && !self.book(now, port, packet) => {
                self.reject(now, port, egress, packet, out)
            }
            Some(egress) => self.depart(now, port, egress, packet, out),
        }
    }

    /// Books bandwidth for the answer of a read. Returns whether there was enough.
    fn book(&mut self, now: Time, port: Port, packet: &Packet) -> bool {
        let (Some(config), Some(booked)) = (&self.reservation, &mut self.ports[port.index()].booked) else {
            return true;
        };
        let is_rejected = packet.status == Outcome::Rejected;
        packet.operation == Operation::Write || is_rejected || booked.book(config, now, packet)
    }

    /// Refuses a command for lack of bandwidth for its answer. A command that is part of a stream
    /// is also forwarded, without effect.
    #[inline(never)]
    fn reject(
        &mut self,
        now: Time,
        ingress: Port,
        egress: Port,
        packet: &mut Packet,
        out: &mut Vec<HopOut>,
    ) -> Option<Port> {
        if !self.reservation.as_ref().is_some_and(|config| config.passes_rejected) {
            return self.refuse(now, ingress, packet, Outcome::Rejected, out);
        }
        let mut answer = packet.copied();
        if let Some(back) = self.refuse(now, ingress, &mut answer, Outcome::Rejected, out) {
            self.send(now, back, &answer, out);
        }
        packet.status = Outcome::Rejected;
        self.depart(now, ingress, egress, packet, out)
    }

    /// Answers a command in the target's place.
    fn refuse(
        &mut self,
        now: Time,
        port: Port,
        packet: &mut Packet,
        status: Outcome,
        out: &mut Vec<HopOut>,
    ) -> Option<Port> {
        match status {
            Outcome::Rejected => self.counts.rejected += 1,
            _ => self.counts.unreachable += 1,
        }
        packet.kind = PacketKind::Response;
        packet.status = status;
        packet.payload = 0;
        let header = if self.route.has_header { packet.trail.hops().len() as u32 * Trail::HOP_BYTES } else { 0 };
        packet.frame = self.response_frame + header;
        if self.router.distances().is_up(port) { Some(port) } else { self.stray(now, port, packet, out) }
    }

    /// Ranks and marks a packet, and writes this hop into its trail.
    fn depart(
        &mut self,
        now: Time,
        ingress: Port,
        egress: Port,
        packet: &mut Packet,
        out: &mut Vec<HopOut>,
    ) -> Option<Port> {
        if let (PacketKind::Command, Some(rank)) = (packet.kind, &self.rank) {
            let halvings = u32::from(self.is_wary(ingress));
            packet.rank = rank.of_credit(self.credit(packet.drive).map(|credit| credit >> halvings));
        }
        let is_marked = self.is_marked(egress);
        packet.marked |= is_marked && self.lossless.is_none();
        if self.write_hop(now, ingress, packet, is_marked) {
            Some(egress)
        } else {
            self.discard(packet, DropReason::TrailFull, out)
        }
    }

    /// Returns whether the rank of commands from a port counts only half of their drives' credit.
    fn is_wary(&self, ingress: Port) -> bool {
        let booked = self.ports.get(ingress.index()).and_then(|port| port.booked.as_ref());
        self.reservation.as_ref().is_some_and(|config| config.is_conservative)
            && booked.is_some_and(|booked| booked.bookings.is_over_subscribed())
    }

    fn is_marked(&mut self, egress: Port) -> bool {
        let queued = || self.ports[egress.index()].queue.used();
        let is_marked = self.route.ecn_threshold.is_some_and(|threshold| queued() > threshold);
        self.counts.marked += u64::from(is_marked && self.lossless.is_none());
        is_marked
    }

    /// Returns `false` if the trail is full.
    fn write_hop(&mut self, now: Time, ingress: Port, packet: &mut Packet, is_marked: bool) -> bool {
        let before = packet.trail.hops().len();
        let time_ns = nanoseconds(now);
        let hop = TrailHop { vertex: self.here.0, port: ingress.0, time_ns, is_marked };
        let has_room = packet.trail.pass_out(hop, is_marked).is_some();
        if self.route.has_header {
            packet.frame += (packet.trail.hops().len() - before) as u32 * Trail::HOP_BYTES;
        }
        has_room
    }

    /// Returns the egress port of an answer: from the trail, unless that path has failed, or
    /// answers are routed independently.
    #[inline(always)]
    fn on_answer(&mut self, now: Time, port: Port, packet: &mut Packet, out: &mut Vec<HopOut>) -> Option<Port> {
        let known = if self.route.is_symmetric && !packet.trail.has_left() { packet.trail.behind() } else { None };
        match known.copied().filter(|hop| hop.vertex == self.here.0) {
            Some(hop) => self.go_back(now, port, &hop, packet, out),
            None => self.stray(now, port, packet, out),
        }
    }

    fn go_back(
        &mut self,
        now: Time,
        port: Port,
        hop: &TrailHop,
        packet: &mut Packet,
        out: &mut Vec<HopOut>,
    ) -> Option<Port> {
        if packet.kind == PacketKind::Response {
            self.learn(now, port, hop, packet);
        }
        let egress = Port(hop.port);
        if !self.router.distances().is_up(egress) {
            return self.stray(now, port, packet, out);
        }
        let is_marked = self.route.marks_answers && self.is_marked(egress);
        packet.marked |= is_marked && self.lossless.is_none();
        packet.trail.pass_back(port, is_marked);
        Some(egress)
    }

    /// Updates delays and credit from a response: Algorithm 1, `PATH_ADAPT`, and the credit of 4.5.
    /// Only responses of the target itself measure the path to it.
    fn learn(&mut self, now: Time, port: Port, hop: &TrailHop, packet: &Packet) {
        if matches!(packet.status, Outcome::Rejected | Outcome::Unreachable | Outcome::Incomplete) {
            return;
        }
        let round_trip = nanoseconds(now).wrapping_sub(hop.time_ns);
        let delay_ns = round_trip.saturating_sub(packet.trail.drive_latency_ns());
        let level = packet.trail.congestion_from(packet.trail.position() - 1);
        self.router.learn(now, port, packet.target, level, delay_ns);
        if let Some(known) = self.credits.get_mut(packet.drive.index()) {
            let is_gone = packet.status == Outcome::DriveFailed;
            *known = if is_gone { [0; 2] } else { [packet.credit.saturating_add(1), packet.target.0] };
        }
    }

    /// Routes an answer without a known return path like a request.
    #[inline(never)]
    fn stray(&mut self, now: Time, port: Port, packet: &mut Packet, out: &mut Vec<HopOut>) -> Option<Port> {
        if !packet.trail.has_left() {
            let forgotten = packet.trail.leave(if self.route.is_symmetric { Way::Detour } else { Way::Free });
            self.shorten(packet, forgotten);
            self.counts.detoured += u64::from(self.route.is_symmetric);
        }
        let chosen = if self.route.is_symmetric {
            self.router.choose_steady(packet.source, packet.tag, &packet.trail)
        } else {
            self.router.choose(now, packet.source, packet.tag, &mut packet.trail)
        };
        match chosen {
            None => self.discard(packet, DropReason::NoRoute, out),
            Some(egress) => {
                let is_marked = self.route.marks_answers && self.is_marked(egress);
                packet.marked |= is_marked && self.lossless.is_none();
                if self.write_hop(now, port, packet, is_marked) {
                    Some(egress)
                } else {
                    self.discard(packet, DropReason::TrailFull, out)
                }
            }
        }
    }

    /// Removes an abandoned path from the trail.
    fn cut(&self, packet: &mut Packet, position: usize) {
        let cut = packet.trail.truncate(position);
        self.shorten(packet, cut);
    }

    fn shorten(&self, packet: &mut Packet, hops: usize) {
        if self.route.has_header {
            packet.frame = packet.frame.saturating_sub(hops as u32 * Trail::HOP_BYTES);
        }
    }

    /// Queues a packet at a port, or lets it pass.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HopOut>) -> Passed {
        if self.lossless.is_some() {
            return self.enqueue_lossless(now, port, packet, out);
        }
        let egress = &mut self.ports[port.index()];
        match egress.enter(self.reservation.as_ref(), now, packet, true) {
            Entry::Wire => {
                self.counts.sent += 1;
                return Passed::On(port);
            }
            Entry::Queue => {}
            Entry::Policer => self.counts.held += 1,
            Entry::Refused => {
                self.discard(packet, DropReason::BufferFull, out);
                return Passed::Over;
            }
        }
        egress.wake().map_or(Passed::Over, |at| Passed::Waits(port, at))
    }

    /// Queues a packet at a port, or sends it.
    fn send(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HopOut>) {
        let passed = self.enqueue(now, port, packet, out);
        out.extend(passed.action(packet));
    }

    /// The same with flow control, which prevents drops.
    #[inline(never)]
    fn enqueue_lossless(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HopOut>) -> Passed {
        let Some(lossless) = self.lossless.as_deref_mut() else { return Passed::Over };
        let egress = &mut self.ports[port.index()];
        let entry = if packet.kind.is_control() {
            control_enters(now, port, packet, egress, lossless)
        } else if lossless.has_room(packet) {
            egress.enter(self.reservation.as_ref(), now, packet, lossless.takes_data(port))
        } else {
            Entry::Refused
        };
        match entry {
            Entry::Wire => {
                self.counts.sent += 1;
                return Passed::On(port);
            }
            Entry::Refused => {
                self.discard(packet, DropReason::BufferFull, out);
                return Passed::Over;
            }
            Entry::Queue | Entry::Policer => self.counts.held += u64::from(entry == Entry::Policer),
        }
        if !packet.kind.is_control() && lossless.enter(port, packet) {
            self.counts.pauses += 1;
            let (port, at) = (Port(packet.ingress), self.wake(Port(packet.ingress)));
            out.extend(at.map(|at| HopOut::Wake { port, at }));
        }
        self.wake(port).map_or(Passed::Over, |at| Passed::Waits(port, at))
    }

    /// Handles a pause or resume of data by the neighbour at a port.
    fn on_pause(&mut self, port: Port, stop: bool) -> Passed {
        let Some(lossless) = &mut self.lossless else { return Passed::Over };
        lossless.hear(port, stop);
        if stop { Passed::Over } else { self.wake(port).map_or(Passed::Over, |at| Passed::Waits(port, at)) }
    }

    /// Resumes neighbours for whose packets there is room again.
    fn let_go_on(&mut self, out: &mut Vec<HopOut>) {
        while let Some(port) = self.lossless.as_deref_mut().and_then(Lossless::let_go_on) {
            out.extend(self.wake(port).map(|at| HopOut::Wake { port, at }));
        }
    }

    fn forget_pauses(&mut self, port: Port) {
        if let Some(lossless) = &mut self.lossless {
            lossless.forget(port);
        }
    }

    /// Marks a packet by DCQCN's rule.
    #[inline(never)]
    fn mark_by_rule(&mut self, egress: Port, packet: &mut Packet) {
        let Some(lossless) = self.lossless.as_deref_mut().filter(|_| !packet.kind.is_control()) else { return };
        let is_marked = lossless.marks(self.ports[egress.index()].queue.used());
        packet.marked |= is_marked;
        self.counts.marked += u64::from(is_marked);
    }

    #[cold]
    fn discard(&mut self, packet: &Packet, reason: DropReason, out: &mut Vec<HopOut>) -> Option<Port> {
        *match reason {
            DropReason::BufferFull => &mut self.counts.dropped_full,
            DropReason::NoRoute => &mut self.counts.dropped_no_route,
            DropReason::TrailFull => &mut self.counts.dropped_trail_full,
        } += 1;
        out.push(HopOut::Drop { packet: packet.copied(), reason });
        None
    }

    /// Releases packets from the policer: usually it holds none.
    #[inline]
    fn release_held(&mut self, now: Time, port: Port, out: &mut Vec<HopOut>) {
        if self.ports[port.index()].may_release() {
            self.release_all(now, port, out);
        }
    }

    #[inline(never)]
    fn release_all(&mut self, now: Time, port: Port, out: &mut Vec<HopOut>) {
        let Some(config) = &self.reservation else { return };
        let is_open = self.lossless.as_ref().is_none_or(|lossless| lossless.takes_data(port));
        while let Some((packet, entry)) = self.ports[port.index()].release(config, now, is_open) {
            match entry {
                Entry::Wire => {
                    self.counts.sent += 1;
                    if let Some(lossless) = &mut self.lossless {
                        lossless.leave(port, &packet);
                    }
                    out.push(HopOut::Send { port, packet });
                }
                Entry::Queue => {}
                Entry::Policer | Entry::Refused => unreachable!("the policer lets out what the queue has room for"),
            }
        }
    }

    fn on_link_down(&mut self, now: Time, port: Port, out: &mut Vec<HopOut>) {
        self.router.link_down(now, port);
        self.forget_lost();
        let mut stranded = std::mem::take(&mut self.stranded);
        self.ports[port.index()].fail(&mut stranded);
        self.forget_pauses(port);
        let failed = port;
        for packet in &mut stranded {
            if let Some(lossless) = &mut self.lossless {
                lossless.leave(failed, packet);
            }
            self.let_go_on(out);
            let egress = self.another_way(now, packet, out);
            if let Some(port) = egress {
                self.send(now, port, packet, out);
            }
        }
        stranded.clear();
        self.stranded = stranded;
        self.tell(now, out);
    }

    /// Reroutes a packet that waited at a failed port, as if it had just arrived.
    fn another_way(&mut self, now: Time, packet: &mut Packet, out: &mut Vec<HopOut>) -> Option<Port> {
        let trail = &packet.trail;
        if packet.kind.is_outward() || trail.has_left() {
            let position = trail.position().saturating_sub(1);
            let came_by = trail.hops().get(position).map_or(Port(0), |hop| Port(hop.port));
            self.cut(packet, position);
            if packet.kind.is_outward() {
                self.choose_way_out(now, came_by, packet, false, out)
            } else {
                self.stray(now, came_by, packet, out)
            }
        } else {
            let came_by = trail.ahead().map_or(Port(0), |hop| Port(hop.port));
            self.stray(now, came_by, packet, out)
        }
    }

    /// Forgets the credit of drives that cannot be reached any more (paper, 4.6).
    fn forget_lost(&mut self) {
        for lost in self.router.distances_mut().drain_lost() {
            let of_lost = self.credits.iter_mut().filter(|[credit, target]| *credit > 0 && *target == lost.0);
            of_lost.for_each(|known| *known = [0; 2]);
        }
    }

    fn tell(&mut self, now: Time, out: &mut Vec<HopOut>) {
        let told = &mut self.counts.advertised;
        self.router.distances_mut().poll(now, |port, advertisement| {
            *told += 1;
            out.push(HopOut::Advertise { port, advertisement });
        });
    }

    fn has_port(&self, port: Port) -> bool {
        port.index() < self.ports.len()
    }
}

impl Program for Hop {
    type In = HopIn;
    type Out = HopOut;

    fn on(&mut self, now: Time, input: HopIn, out: &mut Vec<HopOut>) {
        match input {
            HopIn::Packet { port, mut packet } => {
                let passed = self.pass(now, port, &mut packet, out);
                out.extend(passed.action(&packet));
            }
            HopIn::PortFree(port) => {
                out.extend(self.next_to_send(now, port).map(|packet| HopOut::Send { port, packet: packet.copied() }));
                let wake = self.port_freed(now, port, out);
                out.extend(wake.map(|at| HopOut::Wake { port, at }));
            }
            HopIn::Advertisement { port, advertisement } => {
                self.router.distances_mut().on_advertisement(now, port, &advertisement);
                self.forget_lost();
                self.tell(now, out);
            }
            HopIn::LinkDown(port) if self.has_port(port) => self.on_link_down(now, port, out),
            HopIn::LinkUp(port) if self.has_port(port) => {
                self.forget_pauses(port);
                self.router.link_up(now, port);
                self.tell(now, out);
            }
            HopIn::LinkDown(_) | HopIn::LinkUp(_) => {
                debug_assert!(false, "the rig names ports that the hop has");
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.router.distances().next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<HopOut>) {
        self.tell(now, out);
        self.forget_lost();
    }
}

/// Queues or sends a control packet: it has priority over data, and is never paused.
fn control_enters(now: Time, port: Port, packet: &Packet, egress: &mut EgressPort, lossless: &mut Lossless) -> Entry {
    if egress.is_free(now) && !lossless.has_control(port) {
        egress.occupy(now, packet.frame);
        return Entry::Wire;
    }
    lossless.put_control(port, packet.copied());
    Entry::Queue
}

/// Returns the next packet of a port: control first, then data unless they are paused.
fn next_of_class<'a>(
    now: Time,
    port: Port,
    egress: &'a mut EgressPort,
    lossless: &'a mut Lossless,
) -> Option<&'a Packet> {
    if !egress.is_free(now) {
        return None;
    }
    if lossless.has_control(port) {
        let packet = lossless.next_control(port)?;
        egress.occupy(now, packet.frame);
        return Some(packet);
    }
    if !lossless.is_open(port) {
        return None;
    }
    let packet = egress.next_to_send(now)?;
    lossless.leave(port, packet);
    Some(packet)
}

/// Returns a time as trails encode it.
fn nanoseconds(now: Time) -> u32 {
    (now.as_ps() / 1_000) as u32
}

/// Returns the last time before `now` that a trail encodes as `time_ns`.
fn moment(now: Time, time_ns: u32) -> Time {
    let age_ns = nanoseconds(now).wrapping_sub(time_ns);
    Time::ns((now.as_ps() / 1_000).saturating_sub(u64::from(age_ns)))
}

#[cfg(test)]
mod tests;
