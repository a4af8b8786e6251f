//! RackBlox and its rivals in the simulator: clients, a switch, storage servers with
//! software-defined flash, the control plane and, for the rivals, a controller. The programs are in
//! the crate `blox`; here their packets travel, their drives answer and time passes.

mod background;
mod build;
mod channels;
mod configs;
mod devices;
mod drives;
mod event;
mod facts;
mod faults;
mod judges;
mod layout;
mod network;
mod prepare;
mod programs;
mod sample;
mod scene;
mod servers;
mod swaps;
mod track;
mod wires;

use crate::drive::{Context, Ended, Rig, Ticket};
use crate::sampler::Probe;
use background::Background;
use base::{Bytes, NodeId, Operation, Request, Span, Time};
use blox::baseline::ControllerOut;
use blox::{
    Body, ClientIn, ClientOut, ClientOutcome, ControlIn, ControlOut, NodeIn, Packet, Page, SwitchIn, SwitchOut, Tag,
    Value, VssdId,
};
use devices::Devices;
use facts::Counts;
use faults::Reach;
use judges::Judges;
use network::Network;
use programs::Programs;
use record::metric::Meter;
use record::{Outcome, Place, SpanKind};
use swaps::Swaps;
use track::{Asked, Tracks};
use wires::{Flight, Places};

pub use build::BuildError;
pub use event::{BloxEvent, Who};
pub use prepare::{Prepared, PreparedVssd, precondition};

/// The rack.
pub struct BloxRig {
    plan: plan::blox::Blox,
    places: Places,
    programs: Programs,
    reach: Reach,
    devices: Devices,
    network: Network,
    tracks: Tracks,
    judges: Judges,
    /// Only in plans with swaps.
    swaps: Option<Swaps>,
    background: Option<Background>,
    counts: Counts,
}

type Now<'a, 'b> = &'a mut Context<'b, BloxEvent>;

impl Rig for BloxRig {
    type Event = BloxEvent;

    fn start(&mut self, context: Now<'_, '_>) {
        for index in 0..self.plan.faults.len() {
            context.at(self.plan.faults[index].at, BloxEvent::Fault(index as u32));
        }
        for index in 0..self.plan.swaps.len() {
            context.at(self.plan.swaps[index].at, BloxEvent::Swap(index as u32));
        }
        self.announce(context);
        for index in 0..self.programs.servers.len() {
            let blocks: Vec<NodeIn> = self.all_blocks(index);
            self.programs.inputs.extend(blocks.into_iter().map(|input| (index, input)));
            self.settle(context);
        }
        for client in 0..self.places.clients {
            self.arm(Who::Client(client), context);
        }
        [Who::Switch, Who::Control, Who::Controller].into_iter().for_each(|who| self.arm(who, context));
        for server in 0..self.places.servers {
            self.next_background(server, context);
        }
    }

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: Now<'_, '_>) {
        let page = plan::blox::PAGE.count();
        let first = request.address / page;
        let pages = ((request.address + request.bytes.count()).div_ceil(page) - first).max(1) as u32;
        let volume = request.target.0 - self.places.clients;
        self.tracks.begin(context.now, ticket, pages);
        for offset in 0..u64::from(pages) {
            let place = Page(first + offset);
            self.ask(ticket, request.source, request.operation, volume, place, context);
        }
    }

    fn on(&mut self, event: BloxEvent, context: Now<'_, '_>) {
        match event {
            BloxEvent::AtSwitch(flight) => self.at_switch(flight, context),
            BloxEvent::AtNode(flight) => self.at_node(flight, context),
            BloxEvent::PortsIdle => {
                self.free_ports(context);
                // A port that is idle may hold back what it has, until a time.
                self.arm(Who::Switch, context);
            }
            BloxEvent::Done(place) => self.done(place, context),
            BloxEvent::Wake(who) => self.wake(who, context),
            BloxEvent::Fault(index) => self.fault(index as usize, context),
            BloxEvent::Background(server) => self.background(server, context),
            BloxEvent::Swap(index) => self.begin_swap(index, context),
            BloxEvent::Carrier(server) => self.wake_carrier(server as usize, context),
        }
    }

    /// Not known: the networks around the rack have no least delay.
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        None
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        self.network.busy(out);
    }

    fn dropped_packets(&self) -> u64 {
        self.programs.switch.counters().lost + self.counts.lost
    }

    fn measure(&self, now: Time, meter: &mut Meter) {
        self.facts(now, meter);
    }

    fn sample(&self, _now: Time, probe: &mut Probe) {
        self.sample_state(probe);
    }
}

/// Requests.
impl BloxRig {
    fn ask(
        &mut self,
        ticket: Ticket,
        client: NodeId,
        operation: Operation,
        volume: u32,
        page: Page,
        context: Now<'_, '_>,
    ) {
        let value = match operation {
            Operation::Read => Value(0),
            Operation::Write | Operation::ReadModifyWrite => self.tracks.new_value(),
        };
        let asked = Asked { operation, volume, page, value, at: context.now };
        let tag = self.tracks.open(ticket, asked, context);
        let input = ClientIn::Issue { tag, operation, vssd_group: volume, page, value };
        self.tell_client(client, input, context);
    }

    fn tell_client(&mut self, client: NodeId, input: ClientIn, context: Now<'_, '_>) {
        let out = self.programs.clients[client.index()].tell(context.now, input);
        self.client_did(client, out, context);
    }

    fn client_did(&mut self, client: NodeId, mut out: Vec<ClientOut>, context: Now<'_, '_>) {
        out.drain(..).for_each(|action| self.client_acts(client, action, context));
        self.programs.clients[client.index()].recycle(out);
        self.arm(Who::Client(client.0), context);
    }

    fn client_acts(&mut self, client: NodeId, action: ClientOut, context: Now<'_, '_>) {
        match action {
            ClientOut::Send(packet) => {
                if let Body::Read { tag, .. } | Body::Write { tag, .. } = packet.body
                    && let Some(track) = self.tracks.get(tag)
                {
                    track.sends(context.now);
                }
                self.send(client, packet, context);
            }
            ClientOut::Done { tag, outcome, label } => self.end(tag, outcome, label, context),
        }
    }

    fn end(&mut self, tag: Tag, outcome: ClientOutcome, label: Span, context: Now<'_, '_>) {
        if let Some(track) = self.tracks.get(tag) {
            let answer = match outcome {
                ClientOutcome::Read(value) => Some((context.now, value)),
                ClientOutcome::Written => Some((context.now, track.asked.value)),
                ClientOutcome::Indeterminate | ClientOutcome::Unanswered | ClientOutcome::Failed(_) => None,
            };
            self.judges.record(tag, &track.asked, answer);
            track.adds(context.now, label);
        }
        let outcome = match outcome {
            ClientOutcome::Read(_) | ClientOutcome::Written => Outcome::Finished,
            ClientOutcome::Indeterminate => {
                self.counts.indeterminate += 1;
                Outcome::TimedOut
            }
            ClientOutcome::Unanswered => Outcome::TimedOut,
            ClientOutcome::Failed(_) => Outcome::Rejected,
        };
        if let Some(finished) = self.tracks.close(context.now, tag, outcome) {
            let track::Finished { ticket, outcome, start, label, ledger } = finished;
            context.end(Ended { ticket, outcome, start, end: context.now + label, label, ledger });
        }
    }
}

/// Packets.
impl BloxRig {
    /// A node sends a packet, unless it or its link is dead.
    fn send(&mut self, from: NodeId, packet: Packet, context: Now<'_, '_>) {
        if self.places.storage_index(from).is_some_and(|index| !self.reach.is_up(index)) {
            self.counts.lost += 1;
            return;
        }
        self.counts.sent += 1;
        let (at, event) = self.network.send(context.now, from, packet);
        context.at(at, event);
    }

    fn at_switch(&mut self, place: u32, context: Now<'_, '_>) {
        let packet = self.land(place, context.now).packet;
        self.tell_switch(SwitchIn::Packet(packet), context);
    }

    fn tell_switch(&mut self, input: SwitchIn, context: Now<'_, '_>) {
        self.free_ports(context);
        if let SwitchIn::LinkDown(node) = input {
            self.network.cut(node);
        }
        let out = self.programs.switch.tell(context.now, input);
        self.switch_did(out, context);
        self.arm(Who::Switch, context);
    }

    /// Tells the switch of links that have become idle.
    fn free_ports(&mut self, context: Now<'_, '_>) {
        while let Some(port) = self.network.idle_port(context.now) {
            if !self.programs.switch.idles(context.now, port) {
                let out = self.programs.switch.tell(context.now, SwitchIn::PortIdle(port));
                self.switch_did(out, context);
            }
        }
    }

    fn switch_did(&mut self, mut out: Vec<SwitchOut>, context: Now<'_, '_>) {
        out.drain(..).for_each(|action| self.switch_acts(action, context));
        self.programs.switch.recycle(out);
        let switch = &self.programs.switch;
        if switch.is_waiting() {
            for free_at in self.network.awaited(|port| switch.is_waiting_at(port)) {
                // A port that is free by now gets an event of its own, not one within this moment.
                context.at(free_at.max(context.now), BloxEvent::PortsIdle);
            }
        }
    }

    fn switch_acts(&mut self, action: SwitchOut, context: Now<'_, '_>) {
        let SwitchOut::Transmit { port, packet } = action else { return };
        if let Some(track) = tag_of(&packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::SwitchQueue, Place::Port(port.0));
        }
        if let Some((at, event)) = self.network.transmit(context.now, port, packet) {
            context.at(at, event);
        }
    }

    fn at_node(&mut self, place: u32, context: Now<'_, '_>) {
        let Flight { node, packet, times } = self.land(place, context.now);
        if self.places.is_client(node) {
            self.judges.judge(&packet, times.on_return());
            return self.tell_client(node, ClientIn::Packet(packet), context);
        }
        match self.places.storage_index(node) {
            Some(index) if self.reach.is_up(index) => {
                self.judges.learn(&packet);
                self.feed(index, NodeIn::Packet(packet), context);
            }
            Some(_) => self.counts.lost += 1,
            None if node == self.places.control() => self.tell_control(ControlIn::Packet(packet), context),
            None => self.tell_controller(packet, context),
        }
    }

    /// Ends a packet's leg and claims its time.
    fn land(&mut self, place: u32, now: Time) -> Flight {
        let (flight, parts) = self.network.land(place);
        if let Some(track) = tag_of(&flight.packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.claim_parts(now, parts, Place::Link(flight.node.0));
            track.carries(flight.times.label());
            track.pass(now);
        }
        flight
    }

    fn tell_control(&mut self, input: ControlIn, context: Now<'_, '_>) {
        let out = self.programs.control.tell(context.now, input);
        self.control_did(out, context);
    }

    fn control_did(&mut self, mut out: Vec<ControlOut>, context: Now<'_, '_>) {
        for action in out.drain(..) {
            if let ControlOut::Send(packet) = action {
                self.send(self.places.control(), packet, context);
            }
        }
        self.programs.control.recycle(out);
        self.arm(Who::Control, context);
    }

    fn tell_controller(&mut self, packet: Packet, context: Now<'_, '_>) {
        match &mut self.programs.controller {
            Some(controller) => {
                let out = controller.tell(context.now, packet);
                self.controller_did(out, context);
            }
            None => self.counts.lost += 1,
        }
    }

    fn controller_did(&mut self, mut out: Vec<ControllerOut>, context: Now<'_, '_>) {
        for ControllerOut::Send(packet) in out.drain(..) {
            self.send(self.places.controller(), packet, context);
        }
        if let Some(controller) = &mut self.programs.controller {
            controller.recycle(out);
        }
        self.arm(Who::Controller, context);
    }
}

/// Time.
impl BloxRig {
    /// Schedules the next wake-up of a program, if none is due before.
    fn arm(&mut self, who: Who, context: Now<'_, '_>) {
        if let Some(at) = self.programs.arm(who, context.now) {
            context.at(at, BloxEvent::Wake(who));
        }
    }

    fn wake(&mut self, who: Who, context: Now<'_, '_>) {
        let now = context.now;
        match who {
            Who::Client(client) => {
                if let Some(out) = self.programs.clients[client as usize].wake(now) {
                    self.client_did(NodeId(client), out, context);
                }
            }
            Who::Switch => {
                if self.programs.switch.ring(now) {
                    self.free_ports(context);
                    let out = self.programs.switch.run(now);
                    self.switch_did(out, context);
                    self.arm(who, context);
                }
            }
            Who::Control => {
                if let Some(out) = self.programs.control.wake(now) {
                    self.control_did(out, context);
                }
            }
            Who::Controller => {
                if let Some(out) = self.programs.controller.as_mut().and_then(|controller| controller.wake(now)) {
                    self.controller_did(out, context);
                }
            }
            Who::Server(server) => self.wake_server(server as usize, context),
        }
    }

    fn next_background(&mut self, server: u32, context: Now<'_, '_>) {
        if let Some(background) = &mut self.background {
            context.at(background.next(context.now, server), BloxEvent::Background(server));
        }
    }

    fn background(&mut self, server: u32, context: Now<'_, '_>) {
        let Some(background) = &mut self.background else { return };
        let (source, target) = (self.places.controller(), self.places.server(server));
        let packet = Packet { vssd: VssdId::default(), latency_ns: 0, source, target, body: background.frame() };
        self.tell_switch(SwitchIn::Packet(packet), context);
        self.next_background(server, context);
    }
}

/// The client's number in a packet that belongs to a request.
fn tag_of(body: &Body) -> Option<Tag> {
    match body {
        Body::Read { tag, .. }
        | Body::Write { tag, .. }
        | Body::ReadReply { tag, .. }
        | Body::WriteReply { tag, .. } => Some(*tag),
        _ => None,
    }
}
