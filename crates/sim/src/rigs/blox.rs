//! RackBlox and its rivals in the simulator: clients, a switch, storage servers with software-defined flash, the control plane and, for the
//! rivals, a controller. What they decide is in the crate `blox`; here their packets travel, their drives answer and time passes.

mod build;
mod channels;
mod drives;
mod facts;
mod faults;
mod prepare;
mod scene;
mod swaps;
mod track;
mod wires;

use crate::drive::{Context, Ended, Rig, Ticket};
use base::{Bytes, NodeId, Operation, Program, Request, Span, Stream, Time};
use blox::baseline::{ControllerOut, software, vdc};
use blox::{
    Body, Client, ClientIn, ClientOut, ClientOutcome, Control, ControlIn, ControlOut, DeviceJob, NodeIn, NodeOut,
    Packet, Page, ReturnPredictor, Stage, StorageNode, SwapCopy, Switch, SwitchIn, SwitchOut, Tag, Value, VssdId,
};
use drives::{Drives, Written};
use hardware::ssd::Booked;
use history::History;
use record::metric::Meter;
use record::{Outcome, Place, SpanKind};
use std::collections::VecDeque;
use swaps::{Request as DeviceRequest, RequestKind, Swaps};
use track::{Asked, Tracks};
use wires::{Flight, Flights, Places, Wires};

pub use build::BuildError;
pub use prepare::{Prepared, PreparedVssd, precondition};

/// An event of the rig.
#[derive(Clone, Copy, Debug)]
pub enum BloxEvent {
    /// A packet is at the switch.
    AtSwitch(u32),
    /// A packet is at a node.
    AtNode(u32),
    /// A link from the switch can take the next packet, and one waits for it.
    PortsIdle,
    /// A drive has done something for a server.
    Done(u32),
    /// A program wants to run.
    Wake(Who),
    /// Something breaks or comes back.
    Fault(u32),
    /// The next background frame for a server.
    Background(u32),
    /// Two drives begin to exchange what they hold.
    Swap(u32),
    /// The carrier of swaps of a server wants to run.
    Carrier(u32),
}

/// Whose program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A client's.
    Client(u32),
    /// The switch's.
    Switch,
    /// The control plane's.
    Control,
    /// The rivals' controller's.
    Controller,
    /// A storage server's, by its place among all.
    Server(u32),
}

/// Something that a drive is doing.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Read {
        job: DeviceJob,
        value: Value,
        booked: Booked,
        tag: Option<Tag>,
    },
    Write {
        job: DeviceJob,
    },
    Collect {
        vssd: VssdId,
        stream: u32,
        freed: bool,
    },
    /// A page of a swap is read, and this is what it holds, or is written.
    Copy {
        copy: SwapCopy,
        value: Option<Value>,
    },
}

/// The controller of a rival.
enum Controller {
    Vdc(vdc::Controller),
    Software(software::Controller),
}

/// Bursts of other traffic for each server, which no program sees. In a burst one frame follows the other at line rate.
struct Background {
    payload: u32,
    priority: u8,
    /// A frame's time on the wire.
    frame: Span,
    /// Mean lengths of bursts and of the gaps between them, in picoseconds.
    mean_burst_ps: f64,
    mean_gap_ps: f64,
    /// For each server its draws, and when its burst ends.
    servers: Vec<(Stream, Time)>,
}

/// A port of the switch that is sending. Mostly nothing waits behind it, and the switch hears of its end only before it next does anything.
#[derive(Clone, Copy, Debug)]
struct BusyPort {
    node: NodeId,
    free_at: Time,
    has_event: bool,
}

/// What the rig counts beside its programs.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    lost: u64,
    indeterminate: u64,
    predictions: u64,
    predictions_close: u64,
    adopted: u64,
    not_adopted: u64,
    worn_out: u64,
    background_sent: u64,
    /// Blocks that a vSSD of a channel group had from another.
    lent: u64,
    given_back: u64,
}

/// The rack.
pub struct BloxRig {
    plan: spec::blox::Blox,
    places: Places,
    clients: Vec<Client>,
    switch: Switch,
    control: Control,
    controller: Option<Controller>,
    servers: Vec<StorageNode>,
    /// Whether a server's link, and the server itself, are up.
    is_linked: Vec<bool>,
    is_running: Vec<bool>,
    drives: Vec<Drives>,
    wires: Wires,
    flights: Flights,
    /// By number, with the server whose drive it is.
    doing: Vec<(u32, Doing)>,
    doing_free: Vec<u32>,
    /// Ports of the switch that are sending, until when, and whether an event waits for that.
    busy_ports: Vec<BusyPort>,
    /// Where every packet is encoded to be decoded again, if that is checked.
    wire_check: Option<Vec<u8>>,
    /// When each program is to run next: clients, switch, control plane, controller, servers.
    wakes: Vec<Time>,
    tracks: Tracks,
    /// The servers' predictors of the way back once more, by the number of the vSSD, to judge them by what it takes.
    predictors: Vec<Option<ReturnPredictor>>,
    history: Option<History>,
    /// Only in plans with swaps.
    swaps: Option<Swaps>,
    values: u64,
    background: Option<Background>,
    counts: Counts,
    inputs: VecDeque<(usize, NodeIn)>,
    node_out: Vec<NodeOut>,
    client_out: Vec<ClientOut>,
    switch_out: Vec<SwitchOut>,
    control_out: Vec<ControlOut>,
    controller_out: Vec<ControllerOut>,
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
        for index in 0..self.servers.len() {
            let blocks: Vec<NodeIn> = self.all_blocks(index);
            self.inputs.extend(blocks.into_iter().map(|input| (index, input)));
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
        let page = spec::blox::PAGE.count();
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
        self.wires.busy(out);
    }

    fn dropped_packets(&self) -> u64 {
        self.switch.counters().lost + self.counts.lost
    }

    fn measure(&self, now: Time, meter: &mut Meter) {
        self.facts(now, meter);
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
            Operation::Write | Operation::ReadModifyWrite => {
                self.values += 1;
                Value(self.values)
            }
        };
        let asked = Asked { operation, volume, page, value, at: context.now };
        let tag = self.tracks.open(ticket, asked, context);
        let input = ClientIn::Issue { tag, operation, vssd_group: volume, page, value };
        self.tell_client(client, input, context);
    }

    fn tell_client(&mut self, client: NodeId, input: ClientIn, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.client_out);
        self.clients[client.index()].on(context.now, input, &mut out);
        out.drain(..).for_each(|action| self.client_acts(client, action, context));
        self.client_out = out;
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
            ClientOut::Done { tag, outcome } => self.end(tag, outcome, context),
        }
    }

    fn end(&mut self, tag: Tag, outcome: ClientOutcome, context: Now<'_, '_>) {
        if let (Some(history), Some(track)) = (&mut self.history, self.tracks.get(tag)) {
            let answer = match outcome {
                ClientOutcome::Read(value) => Some((context.now, value)),
                ClientOutcome::Written => Some((context.now, track.asked.value)),
                ClientOutcome::Indeterminate | ClientOutcome::Unanswered | ClientOutcome::Failed(_) => None,
            };
            history.record(track.asked.in_history(tag, answer));
        }
        let outcome = match outcome {
            ClientOutcome::Read(_) | ClientOutcome::Written => Outcome::Finished,
            ClientOutcome::Indeterminate => {
                self.counts.indeterminate += 1;
                Outcome::Null
            }
            ClientOutcome::Unanswered => Outcome::Null,
            ClientOutcome::Failed(_) => Outcome::Lost,
        };
        if let Some(finished) = self.tracks.close(context.now, tag, outcome) {
            let track::Finished { ticket, outcome, start, ledger } = finished;
            context.end(Ended { ticket, outcome, start, end: context.now, ledger });
        }
    }
}

/// Packets.
impl BloxRig {
    /// A node sends a packet, unless it or its link is dead.
    fn send(&mut self, from: NodeId, packet: Packet, context: Now<'_, '_>) {
        if self.places.storage_index(from).is_some_and(|index| !self.is_reachable(index)) {
            self.counts.lost += 1;
            return;
        }
        self.counts.sent += 1;
        self.check_wire(&packet);
        let is_outside = self.wires.is_outside(from, packet.target);
        let (at, flight) = self.wires.send(context.now, from, packet, is_outside);
        let place = self.flights.put(flight);
        context.at(at, if is_outside { BloxEvent::AtNode(place) } else { BloxEvent::AtSwitch(place) });
    }

    fn at_switch(&mut self, place: u32, context: Now<'_, '_>) {
        let packet = self.land(place, context.now).packet;
        self.tell_switch(SwitchIn::Packet(packet), context);
    }

    fn tell_switch(&mut self, input: SwitchIn, context: Now<'_, '_>) {
        self.free_ports(context);
        if let SwitchIn::LinkDown(node) = input {
            self.busy_ports.retain(|port| port.node != node);
        }
        let mut out = std::mem::take(&mut self.switch_out);
        self.switch.on(context.now, input, &mut out);
        self.switch_did(out, context);
        self.arm(Who::Switch, context);
    }

    /// Tells the switch of links that have become idle.
    fn free_ports(&mut self, context: Now<'_, '_>) {
        while let Some(place) = self.busy_ports.iter().position(|port| port.free_at <= context.now) {
            let port = self.busy_ports.swap_remove(place);
            if self.switch.idles(context.now, port.node) {
                continue;
            }
            let mut out = std::mem::take(&mut self.switch_out);
            self.switch.on(context.now, SwitchIn::PortIdle(port.node), &mut out);
            self.switch_did(out, context);
        }
    }

    fn switch_did(&mut self, mut out: Vec<SwitchOut>, context: Now<'_, '_>) {
        out.drain(..).for_each(|action| self.switch_acts(action, context));
        self.switch_out = out;
        if !self.switch.is_waiting() {
            return;
        }
        for port in &mut self.busy_ports {
            if !port.has_event && self.switch.is_waiting_at(port.node) {
                port.has_event = true;
                // A port that is free by now is told so in a moment of its own, not within this one.
                context.at(port.free_at.max(context.now), BloxEvent::PortsIdle);
            }
        }
    }

    fn switch_acts(&mut self, action: SwitchOut, context: Now<'_, '_>) {
        let SwitchOut::Transmit { port, packet } = action else { return };
        if let Some(track) = tag_of(&packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::SwitchQueue, Place::Port(port.0));
        }
        self.check_wire(&packet);
        let (at, free_at, flight) = self.wires.transmit(context.now, port, packet);
        self.busy_ports.push(BusyPort { node: port, free_at, has_event: false });
        if matches!(packet.body, Body::Background { .. }) {
            return;
        }
        let place = self.flights.put(flight);
        context.at(at, BloxEvent::AtNode(place));
    }

    /// Encodes and decodes a packet, if that is wanted: the bytes say all of it.
    fn check_wire(&mut self, packet: &Packet) {
        let Some(bytes) = &mut self.wire_check else { return };
        bytes.clear();
        blox::encode(packet, bytes);
        assert_eq!(blox::decode(bytes).as_ref(), Ok(packet), "a packet's bytes decode to the packet");
        assert_eq!(bytes.len() as u64, packet.wire_bytes().count(), "a packet is as long as its bytes");
    }

    fn at_node(&mut self, place: u32, context: Now<'_, '_>) {
        let flight = self.land(place, context.now);
        let (node, packet, on_return) = (flight.node, flight.packet, flight.times.on_return());
        if self.places.is_client(node) {
            self.judge(&packet, on_return);
            return self.tell_client(node, ClientIn::Packet(packet), context);
        }
        match self.places.storage_index(node) {
            Some(index) if self.is_reachable(index) => {
                self.learn(&packet);
                self.feed(index, NodeIn::Packet(packet), context);
            }
            Some(_) => self.counts.lost += 1,
            None if node == self.places.control() => self.tell_control(ControlIn::Packet(packet), context),
            None => self.tell_controller(packet, context),
        }
    }

    /// Ends a packet's leg, and says where its time has gone.
    fn land(&mut self, place: u32, now: Time) -> &Flight {
        let flight = self.flights.take(place);
        if let Some(track) = tag_of(&flight.packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.claim_parts(now, self.wires.parts(&flight.times), Place::Link(flight.node.0));
            track.pass(now);
        }
        flight
    }

    fn tell_control(&mut self, input: ControlIn, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.control_out);
        self.control.on(context.now, input, &mut out);
        self.control_acts(&mut out, context);
        self.control_out = out;
        self.arm(Who::Control, context);
    }

    fn control_acts(&mut self, out: &mut Vec<ControlOut>, context: Now<'_, '_>) {
        for action in out.drain(..) {
            if let ControlOut::Send(packet) = action {
                self.send(self.places.control(), packet, context);
            }
        }
    }

    fn tell_controller(&mut self, packet: Packet, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.controller_out);
        match &mut self.controller {
            Some(Controller::Vdc(controller)) => controller.on(context.now, packet, &mut out),
            Some(Controller::Software(controller)) => controller.on(context.now, packet, &mut out),
            None => self.counts.lost += 1,
        }
        self.controller_acts(&mut out, context);
        self.controller_out = out;
        self.arm(Who::Controller, context);
    }

    fn controller_acts(&mut self, out: &mut Vec<ControllerOut>, context: Now<'_, '_>) {
        for ControllerOut::Send(packet) in out.drain(..) {
            self.send(self.places.controller(), packet, context);
        }
    }

    fn is_reachable(&self, index: usize) -> bool {
        self.is_running[index] && self.is_linked[index]
    }
}

/// Storage servers and their drives.
impl BloxRig {
    fn feed(&mut self, index: usize, input: NodeIn, context: Now<'_, '_>) {
        if self.inputs.is_empty() {
            self.tell_server(index, input, context);
        } else {
            self.inputs.push_back((index, input));
        }
        self.settle(context);
    }

    /// Until nothing happens at this moment any more: some answers of drives take no time.
    fn settle(&mut self, context: Now<'_, '_>) {
        while let Some((index, input)) = self.inputs.pop_front() {
            self.tell_server(index, input, context);
        }
    }

    fn tell_server(&mut self, index: usize, input: NodeIn, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.node_out);
        self.servers[index].on(context.now, input, &mut out);
        out.drain(..).for_each(|action| self.server_acts(index, action, context));
        self.node_out = out;
        self.arm(Who::Server(index as u32), context);
    }

    fn server_acts(&mut self, index: usize, action: NodeOut, context: Now<'_, '_>) {
        let drives = &mut self.drives[index];
        match action {
            NodeOut::Send(packet) => self.server_sends(index, packet, context),
            NodeOut::Read { job, vssd, page, request } => self.read(index, job, vssd, page, request, context),
            NodeOut::Write { job, vssd, page, value } => self.write(index, job, vssd, (page, value), context),
            NodeOut::Collect { vssd, stream } => self.collect(index, vssd, stream, context),
            NodeOut::Lend(moved) => {
                let lent = drives.lend(moved);
                self.counts.lent += u64::from(lent.blocks);
                self.inputs.push_back((index, NodeIn::Lent(lent)));
                self.report_blocks(index, moved.from);
                self.report_blocks(index, moved.to);
            }
            NodeOut::Return(moved) => {
                let returned = drives.give_back(moved);
                self.counts.given_back += u64::from(returned.blocks);
                self.inputs.push_back((index, NodeIn::Returned(returned)));
                self.report_blocks(index, moved.from);
                self.report_blocks(index, moved.to);
            }
            NodeOut::Wanted { vssd } => self.adopt(index, vssd),
            NodeOut::Mark { source: _, tag, stage } => {
                let server = self.places.storage(index);
                if let Some(track) = self.tracks.get(tag) {
                    track.waited(context.now, waited_before(stage), Place::Target(server.0));
                    track.pass(context.now);
                }
            }
        }
    }

    /// What a server still had to do before its answer, and the prediction that came with it.
    fn server_sends(&mut self, index: usize, packet: Packet, context: Now<'_, '_>) {
        let server = self.places.storage(index);
        if let Some(track) = tag_of(&packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::StorageQueue, Place::Target(server.0));
        }
        self.send(server, packet, context);
    }

    fn read(
        &mut self,
        index: usize,
        job: DeviceJob,
        vssd: VssdId,
        page: Page,
        request: Option<(NodeId, Tag)>,
        context: Now<'_, '_>,
    ) {
        let tag = request.map(|(_, tag)| tag);
        let server = self.places.storage(index);
        if let Some(track) = tag.and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::StorageQueue, Place::Target(server.0));
            track.pass(context.now);
        }
        if self.swaps.is_some() {
            let request = DeviceRequest { job, vssd, page, what: RequestKind::Read(tag) };
            return self.request_amid_swaps(index, request, context);
        }
        let (value, booked) = self.drives[index]
            .read(context.now, vssd, page)
            .expect("a node reads only pages of the vSSDs that it was made with");
        self.book(Doing::Read { job, value, booked, tag }, index, booked.end, context);
    }

    fn write(&mut self, index: usize, job: DeviceJob, vssd: VssdId, data: (Page, Value), context: Now<'_, '_>) {
        if self.swaps.is_some() {
            let request = DeviceRequest { job, vssd, page: data.0, what: RequestKind::Write(data.1) };
            return self.request_amid_swaps(index, request, context);
        }
        match self.drives[index].write(context.now, vssd, data.0, data.1) {
            Written::At(end) => drop(self.book(Doing::Write { job }, index, end, context)),
            Written::Refused => self.inputs.push_back((index, NodeIn::WriteRefused { job })),
            Written::WornOut => {
                self.counts.worn_out += 1;
                self.inputs.push_back((index, NodeIn::WornOut { vssd }));
                self.inputs.push_back((index, NodeIn::WriteRefused { job }));
            }
        }
        self.report_blocks(index, vssd);
    }

    fn collect(&mut self, index: usize, vssd: VssdId, stream: u32, context: Now<'_, '_>) {
        let collected = self.drives[index]
            .collect(context.now, vssd, stream)
            .expect("a node collects only in vSSDs that it was made with");
        if collected.nothing {
            self.inputs.push_back((index, NodeIn::Collected { vssd, stream, freed: false, nothing: true }));
        } else {
            let freed = collected.freed;
            self.book(Doing::Collect { vssd, stream, freed }, index, collected.end, context);
        }
    }

    /// Something that a drive does until then; its number.
    fn book(&mut self, doing: Doing, index: usize, at: Time, context: Now<'_, '_>) -> u32 {
        let place = self.doing_free.pop().unwrap_or_else(|| {
            self.doing.push((index as u32, doing));
            self.doing.len() as u32 - 1
        });
        self.doing[place as usize] = (index as u32, doing);
        context.at(at, BloxEvent::Done(place));
        place
    }

    fn done(&mut self, place: u32, context: Now<'_, '_>) {
        self.doing_free.push(place);
        let (index, doing) = self.doing[place as usize];
        let index = index as usize;
        let server = self.places.storage(index);
        self.request_ended(place, context);
        match doing {
            Doing::Copy { copy, value } => self.copied(index, copy, value, context),
            Doing::Read { job, value, booked, tag } => {
                if let Some(track) = tag.and_then(|tag| self.tracks.get(tag)) {
                    let parts = [
                        (SpanKind::FlashWait, booked.wait),
                        (SpanKind::CollectionWait, booked.collection_wait),
                        (SpanKind::Flash, booked.service),
                    ];
                    track.claim_parts(context.now, parts, Place::Target(server.0));
                    track.pass(context.now);
                }
                return self.feed(index, NodeIn::ReadDone { job, value }, context);
            }
            Doing::Write { job } => return self.feed(index, NodeIn::WriteDone { job }, context),
            Doing::Collect { vssd, stream, freed } => {
                self.report_blocks(index, vssd);
                self.inputs.push_back((index, NodeIn::Collected { vssd, stream, freed, nothing: false }));
            }
        }
        self.settle(context);
    }

    fn report_blocks(&mut self, index: usize, vssd: VssdId) {
        if let Some((free, owned)) = self.drives[index].changed_blocks(vssd) {
            self.inputs.push_back((index, NodeIn::Blocks { vssd, free, owned }));
        }
    }

    fn all_blocks(&mut self, index: usize) -> Vec<NodeIn> {
        let vssds: Vec<VssdId> = self.drives[index].vssds().collect();
        let drives = &mut self.drives[index];
        vssds
            .into_iter()
            .filter_map(|vssd| {
                let (free, owned) = drives.changed_blocks(vssd)?;
                Some(NodeIn::Blocks { vssd, free, owned })
            })
            .collect()
    }
}

/// Time.
impl BloxRig {
    /// Sees to it that a program runs when it wants to.
    fn arm(&mut self, who: Who, context: Now<'_, '_>) {
        let next = match who {
            Who::Client(client) => self.clients[client as usize].next_wakeup(),
            Who::Switch => self.switch.next_wakeup(),
            Who::Control => self.control.next_wakeup(),
            Who::Controller => match &self.controller {
                Some(Controller::Vdc(controller)) => controller.next_wakeup(),
                Some(Controller::Software(controller)) => controller.next_wakeup(),
                None => None,
            },
            Who::Server(index) => self.servers[index as usize].next_wakeup(),
        };
        let Some(next) = next else { return };
        let place = self.wake_place(who);
        let next = next.max(context.now);
        if next < self.wakes[place] {
            self.wakes[place] = next;
            context.at(next, BloxEvent::Wake(who));
        }
    }

    fn wake_place(&self, who: Who) -> usize {
        match who {
            Who::Switch => 0,
            Who::Control => 1,
            Who::Controller => 2,
            Who::Client(client) => 3 + client as usize,
            Who::Server(index) => 3 + self.clients.len() + index as usize,
        }
    }

    fn wake(&mut self, who: Who, context: Now<'_, '_>) {
        let place = self.wake_place(who);
        // An earlier wake-up has taken this one's place.
        if self.wakes[place] != context.now {
            return;
        }
        self.wakes[place] = Time::MAX;
        match who {
            Who::Client(client) => self.wake_client(NodeId(client), context),
            Who::Switch => {
                self.free_ports(context);
                let mut out = std::mem::take(&mut self.switch_out);
                self.switch.on_wakeup(context.now, &mut out);
                self.switch_did(out, context);
            }
            Who::Control => {
                let mut out = std::mem::take(&mut self.control_out);
                self.control.on_wakeup(context.now, &mut out);
                self.control_acts(&mut out, context);
                self.control_out = out;
            }
            Who::Controller => self.wake_controller(context),
            Who::Server(index) => self.wake_server(index as usize, context),
        }
        self.arm(who, context);
    }

    fn wake_client(&mut self, client: NodeId, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.client_out);
        self.clients[client.index()].on_wakeup(context.now, &mut out);
        out.drain(..).for_each(|action| self.client_acts(client, action, context));
        self.client_out = out;
    }

    fn wake_controller(&mut self, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.controller_out);
        match &mut self.controller {
            Some(Controller::Vdc(controller)) => controller.on_wakeup(context.now, &mut out),
            Some(Controller::Software(controller)) => controller.on_wakeup(context.now, &mut out),
            None => {}
        }
        self.controller_acts(&mut out, context);
        self.controller_out = out;
    }

    fn wake_server(&mut self, index: usize, context: Now<'_, '_>) {
        let mut out = std::mem::take(&mut self.node_out);
        self.servers[index].on_wakeup(context.now, &mut out);
        out.drain(..).for_each(|action| self.server_acts(index, action, context));
        self.node_out = out;
        self.settle(context);
    }
}

/// Traffic that nobody here sends.
impl BloxRig {
    fn next_background(&mut self, server: u32, context: Now<'_, '_>) {
        let Some(background) = &mut self.background else { return };
        let (stream, burst_ends) = &mut background.servers[server as usize];
        let mut next = context.now + background.frame;
        if next >= *burst_ends {
            next += Span::from_ps_f64(stream.exponential(background.mean_gap_ps));
            *burst_ends = next + Span::from_ps_f64(stream.exponential(background.mean_burst_ps));
        }
        context.at(next, BloxEvent::Background(server));
    }

    fn background(&mut self, server: u32, context: Now<'_, '_>) {
        let Some(background) = &self.background else { return };
        let body = Body::Background { bytes: background.payload, priority: background.priority };
        let (source, target) = (self.places.controller(), self.places.server(server));
        let packet = Packet { vssd: VssdId::default(), latency_ns: 0, source, target, body };
        self.counts.background_sent += 1;
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

/// What a request was doing until it reached a stage.
fn waited_before(stage: Stage) -> SpanKind {
    match stage {
        Stage::Valid | Stage::Replicated => SpanKind::Replication,
        Stage::Queued | Stage::Dispatched | Stage::Fetched | Stage::Cached | Stage::Admitted | Stage::Redirected => {
            SpanKind::StorageQueue
        }
    }
}
