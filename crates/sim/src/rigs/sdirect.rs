//! S-Direct and its rivals: programs of crate `sdirect` in a machine of PCIe links, devices, memory and cores.
//!
//! Four designs, two kinds of clients. The engine is on the NIC; its buffers are there too
//! (S-Direct) or in the host's memory (target offload). The stacks are on the cores, buffers and
//! queues in memory; with clients elsewhere a target is in front of them. Clients on the machine
//! itself take no network: their data are where they are needed.

mod devices;
mod facts;
mod machine;
mod network;
mod scene;
mod track;

use super::blox::BuildError;
use crate::drive::{Context, Ended, Rig, Ticket};
use crate::rigs::alarm::Alarm;
use base::{Bytes, Operation, Program, Request, Seed, Span, Time};
use hardware::Cpu;
use hardware::ssd::Done;
use machine::{CHUNK, Home, INTO_MEMORY, Leg, Machine, OUT_OF_MEMORY, write_way};
use network::Network;
use record::metric::Meter;
use record::{Outcome, Place, SpanKind};
use sdirect::baseline::stack::{Stack, StackCommand, StackIn, StackOut, Work};
use sdirect::baseline::target::{Target, TargetIn, TargetOut};
use sdirect::{
    Client, ClientConfig, ClientId, ClientIn, ClientOut, Command, CommandId, DeviceId, DeviceOperation, Engine,
    EngineConfig, EngineIn, EngineOut, Extent, Geometry, Message, Size, Task,
};
use slab::Slab;
use spec::DesignName;
use spec::sdirect::{ByName, Nic, SDirect, TaskName};
use std::collections::BTreeMap;
use track::{Owner, Tracks};

/// Grants and answers of a target in software, in memory: a completion entry (NVMe Base Specification 2.0, figure 91).
const ANSWER: u32 = 16;

/// An event of the rig.
#[derive(Clone, Copy, Debug)]
pub enum SDirectEvent {
    /// Something is there for a program.
    Deliver(u32),
    /// A device's job is so far.
    Device(u32, Phase),
    /// Data are at the end of a leg of their way.
    Leg(u32),
    /// A program wants to run.
    Wake(Who),
}

/// How far a device's job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The device has the command.
    Fetched,
    /// Its controller begins.
    Begun,
    /// The flash is done.
    Accessed,
    /// So much of a read is in its buffer.
    Chunk(u32),
    /// The device's request for so much of a write is at the buffer.
    Asked(u32),
    /// So much of a write is in the device.
    Landed(u32),
    /// The completion is in its queue.
    Posted,
}

/// Whose program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The NIC's.
    Engine,
    /// The machine's software.
    Stack,
    /// A client's.
    Client(u32),
}

/// Something on its way to a program.
#[derive(Clone, Debug)]
enum Letter {
    /// Through the NIC's logic to the engine, of a request if that is known. What comes from the
    /// network was `sent`.
    Engine { owner: Option<Owner>, sent: Option<Time>, input: EngineIn<Size> },
    /// The NIC's port can take a packet again: the last was `sent`.
    PortFree { owner: Option<Owner>, sent: Time },
    /// Through the network to a client.
    Client { client: u32, sent: Time, input: ClientIn },
    /// Through the network, where it was `sent`, the NIC, at which it was `came`, and memory.
    Target { sent: Time, came: Time, input: TargetIn },
    /// A core has done some work, from `start` on.
    Ran { core: u32, work: Work, start: Time },
}

/// Who has given a device a job.
#[derive(Clone, Copy, Debug)]
enum Giver {
    Engine,
    Core(u32),
}

/// Data on their way through the machine.
#[derive(Clone, Debug)]
struct Haul {
    /// What is left of the way.
    legs: &'static [Leg],
    device: u16,
    bytes: u32,
    begun: Time,
    then: Then,
}

/// What comes at the end of a way.
#[derive(Clone, Debug)]
enum Then {
    Device(u32, Phase),
    Letter(Letter),
    /// Out of the NIC's port.
    Send(CommandId, ClientIn),
}

/// A command that a device has.
#[derive(Clone, Copy, Debug)]
struct Job {
    device: u16,
    slot: u16,
    giver: Giver,
    operation: DeviceOperation,
    address: u64,
    bytes: u32,
    /// How much of its data is where it has to be.
    moved: u32,
    /// Of a read, when its completion is in its queue, if its data are there.
    posted: Option<Time>,
    is_aborted: bool,
    /// Events that will still name it: as long as there are any, its place is not used again.
    events: u32,
    /// When its last phase ended.
    since: Time,
    done: Option<Done>,
    owner: Option<Owner>,
}

/// What serves.
enum Server {
    Engine(Box<Engine<Size>>),
    Software(Box<Software>),
}

struct Software {
    stack: Stack,
    cpu: Cpu,
    target: Target,
    /// Of tickets of the target, whose command it is.
    served: BTreeMap<u32, Owner>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    failed: u64,
}

/// Everything of one run.
pub struct SDirectRig {
    plan: SDirect,
    machine: Machine,
    network: Network,
    server: Server,
    clients: Vec<Client>,
    /// Requests of clients on the machine itself, which are their own numbers.
    next_number: u32,
    owners: BTreeMap<CommandId, Owner>,
    tracks: Tracks,
    letters: Slab<Letter>,
    jobs: Slab<Job>,
    hauls: Slab<Haul>,
    engine_alarm: Alarm,
    stack_alarm: Alarm,
    client_alarms: Vec<Alarm>,
    counts: Counts,
    /// Whether every message in the network is encoded and decoded.
    wire_check: bool,
}

type Now<'a, 'b> = &'a mut Context<'b, SDirectEvent>;

impl SDirectRig {
    /// The rig of a plan.
    ///
    /// # Errors
    /// When a part refuses its numbers.
    pub fn new(plan: &SDirect, seed: Seed, wire_check: bool) -> Result<SDirectRig, BuildError> {
        let client = |number| {
            let config = ClientConfig {
                client: ClientId(number as u16),
                timeout: plan.clients.timeout,
                attempts_max: plan.clients.attempts,
            };
            Client::new(config)
        };
        Ok(SDirectRig {
            machine: Machine::new(plan, seed)?,
            network: Network::new(&plan.clients, seed),
            server: server(plan)?,
            clients: (0..plan.clients.count).map(client).collect(),
            next_number: 0,
            owners: BTreeMap::new(),
            tracks: Tracks::default(),
            letters: Slab::new(),
            jobs: Slab::new(),
            hauls: Slab::new(),
            engine_alarm: Alarm::default(),
            stack_alarm: Alarm::default(),
            client_alarms: vec![Alarm::default(); plan.clients.count as usize],
            counts: Counts::default(),
            wire_check,
            plan: plan.clone(),
        })
    }

    fn step(&self) -> Span {
        self.plan.nic.map_or(Span::ZERO, |nic| nic.processing)
    }

    /// Where queue pairs are.
    fn queues(&self) -> Home {
        if self.plan.software.is_some() { Home::Memory } else { Home::Nic }
    }

    /// Where data of devices go, and come from.
    fn buffers(&self) -> Home {
        if self.plan.design == DesignName::SDirect { Home::Nic } else { Home::Memory }
    }

    fn post(&mut self, at: Time, letter: Letter, context: Now<'_, '_>) {
        let place = self.letters.insert(letter) as u32;
        context.at(at, SDirectEvent::Deliver(place));
    }

    /// To the engine, through its logic.
    fn tell_engine(&mut self, at: Time, owner: Option<Owner>, input: EngineIn<Size>, context: Now<'_, '_>) {
        self.post(at + self.step(), Letter::Engine { owner, sent: None, input }, context);
    }

    /// The same for what a client sends now and what is at the NIC's port at `at`.
    fn send_to_engine(&mut self, at: Time, id: CommandId, input: EngineIn<Size>, context: Now<'_, '_>) {
        let (owner, sent) = (self.owner_of(id), Some(context.now));
        self.post(at + self.step(), Letter::Engine { owner, sent, input }, context);
    }

    /// Sends data on their way through the machine, from `at` on.
    fn haul(&mut self, at: Time, haul: Haul, context: Now<'_, '_>) {
        if let Then::Device(job, _) = haul.then {
            self.jobs[job as usize].events += 1;
        }
        let place = self.hauls.insert(haul) as u32;
        match at > context.now {
            true => context.at(at, SDirectEvent::Leg(place)),
            false => self.go_on(place, context),
        }
    }

    fn go_on(&mut self, place: u32, context: Now<'_, '_>) {
        let Haul { legs, device, bytes, .. } = self.hauls[place as usize];
        if let Some((leg, rest)) = legs.split_first() {
            let at = self.machine.leg(context.now, *leg, device, bytes);
            self.hauls[place as usize].legs = rest;
            return context.at(at, SDirectEvent::Leg(place));
        }
        let Haul { begun, then, .. } = self.hauls.remove(place as usize);
        match then {
            Then::Device(job, phase) => self.device(job, phase, context),
            Then::Letter(letter) => self.open(letter, context),
            Then::Send(id, input) => {
                let owner = self.owner_of(id);
                self.tracks.claim(owner, SpanKind::Serialization, begun, context.now, Place::Bus(0));
                self.tracks.pass(owner, context.now);
                self.send(id, bytes, input, context);
            }
        }
    }

    fn deliver(&mut self, place: u32, context: Now<'_, '_>) {
        let letter = self.letters.remove(place as usize);
        self.open(letter, context);
    }

    /// Something is where it was going: its way takes a part of its request's time.
    fn open(&mut self, letter: Letter, context: Now<'_, '_>) {
        match letter {
            Letter::Engine { owner, sent, input } => {
                self.engine_is_told(owner, sent, &input, context.now);
                self.run_engine(Some(input), context);
            }
            Letter::PortFree { owner, sent } => {
                self.tracks.claim(owner, SpanKind::Serialization, sent, context.now, Place::Nic(0));
                self.tracks.pass(owner, context.now);
                self.run_engine(Some(EngineIn::PortFree), context);
            }
            Letter::Client { client, sent, input } => {
                let owner = self.about(&input);
                self.tracks.claim(owner, SpanKind::Serialization, sent, context.now, Place::Link(client));
                self.tracks.pass(owner, context.now);
                self.run_client(client, Some(input), context);
            }
            Letter::Target { sent, came, input } => {
                let owner = match &input {
                    TargetIn::Command { id, .. } | TargetIn::Data { id, .. } => self.owner_of(*id),
                    TargetIn::Finished { .. } => None,
                };
                self.tracks.claim(owner, SpanKind::Serialization, sent, came, Place::Nic(0));
                self.tracks.claim(owner, SpanKind::Serialization, came, context.now, Place::Bus(0));
                self.tracks.pass(owner, context.now);
                self.run_target(owner, input, context);
            }
            Letter::Ran { core, work, start } => {
                let owner = work_of(&work).and_then(|ticket| self.request_of(ticket));
                self.tracks.claim_wait(owner, SpanKind::StorageQueue, start, Place::Core(core));
                self.tracks.claim(owner, SpanKind::Stack, start, context.now, Place::Core(core));
                self.tracks.pass(owner, context.now);
                self.run_stack(Some(StackIn::Ran { core, work }), context);
            }
        }
    }

    /// The request that a command belongs to.
    fn owner_of(&self, id: CommandId) -> Option<Owner> {
        self.owners.get(&id).copied()
    }

    /// The request that something for a client is about.
    fn about(&self, input: &ClientIn) -> Option<Owner> {
        match input {
            ClientIn::Data { id, .. } | ClientIn::Grant { id, .. } | ClientIn::Answer { id, .. } => self.owner_of(*id),
            ClientIn::Issue { .. } => None,
        }
    }

    fn wake(&mut self, who: Who, context: Now<'_, '_>) {
        match who {
            Who::Engine => {
                self.engine_alarm.ring(context.now);
                self.run_engine(None, context);
            }
            Who::Stack => {
                self.stack_alarm.ring(context.now);
                self.run_stack(None, context);
            }
            Who::Client(client) => {
                self.client_alarms[client as usize].ring(context.now);
                self.run_client(client, None, context);
            }
        }
    }

    fn end(&mut self, ticket: u32, outcome: Option<sdirect::Outcome>, context: Now<'_, '_>) {
        let outcome = match outcome {
            Some(sdirect::Outcome::Done) => Outcome::Finished,
            Some(_) => Outcome::Null,
            None => Outcome::Lost,
        };
        self.counts.failed += u64::from(outcome != Outcome::Finished);
        let (start, ledger) = self.tracks.end(context.now, ticket);
        context.end(Ended { ticket: Ticket(ticket), outcome, start, end: context.now, ledger });
    }
}

/// What serves, by the plan.
fn server(plan: &SDirect) -> Result<Server, BuildError> {
    if let Some(config) = plan.software {
        return Ok(Server::Software(Box::new(Software {
            stack: Stack::new(config),
            cpu: Cpu::new(config.cores),
            target: Target::new(),
            served: BTreeMap::new(),
        })));
    }
    let nic = plan.nic.ok_or_else(|| BuildError("a plan without software has a NIC's logic".into()))?;
    let engine = Engine::new(engine_config(plan, &nic)).map_err(BuildError::of)?;
    Ok(Server::Engine(Box::new(engine)))
}

fn engine_config(plan: &SDirect, nic: &Nic) -> EngineConfig {
    let geometry = Geometry { capacity: plan.capacity(), block: Bytes::kib(4) };
    EngineConfig {
        devices: vec![geometry; plan.machine.devices as usize],
        queue_depth: nic.queue_depth as u16,
        piece: nic.transfer_max.count() as u32,
        fifo: nic.fifo.count(),
        packet: plan.clients.packet.count() as u32,
        commands_max: nic.commands_max as usize,
        targets_max: plan.machine.devices.max(1) as usize,
        // A client that waits for so many answers has forgotten none of them.
        remembered: nic.commands_max as usize,
        patience: nic.grant_timeout,
        grants_max: nic.grants_max,
    }
}

/// Requests and what clients make of them.
impl SDirectRig {
    fn issue_request(&mut self, ticket: Ticket, request: &Request, context: Now<'_, '_>) {
        let owner = self.tracks.begin(ticket, self.forks(), context);
        let task = self.task_of(request);
        if self.plan.clients.remote {
            let client = request.source.0;
            let input = ClientIn::Issue { ticket: ticket.0, task };
            return self.run_client(client, Some(input), context);
        }
        let Task::Command(command) = task else { unreachable!("the plan lets only clients elsewhere move data") };
        if let Server::Software(_) = &self.server {
            let command = stack_command(ticket.0, &command);
            return self.run_stack(Some(StackIn::Issue(command)), context);
        }
        let id = CommandId { client: ClientId(request.source.0 as u16), number: self.next_number };
        self.next_number = self.next_number.wrapping_add(1);
        self.owners.insert(id, owner);
        self.tell_engine(context.now, Some(owner), EngineIn::Command { id, command }, context);
    }

    /// Whether parts of a request move at the same time: data and completion on their way to the
    /// engine, commands of several pieces, packets and the answer behind them.
    fn forks(&self) -> bool {
        let task = self.plan.task;
        let is_one = task.kind == TaskName::ReadWrite && task.bytes.count() <= u64::from(CHUNK);
        self.plan.software.is_none() || self.plan.clients.remote || !is_one
    }

    /// What the plan makes of a request.
    fn task_of(&self, request: &Request) -> Task {
        let task = self.plan.task;
        let (devices, bytes) = (self.plan.machine.devices, task.bytes.count());
        let device = request.target.0 - self.plan.clients.count;
        let at =
            |ahead: u32| Extent { device: DeviceId(((device + ahead) % devices) as u16), address: request.address };
        let from = at(0);
        let to: Vec<_> = (1..=task.targets).map(at).collect();
        match (task.kind, task.moved_by) {
            (TaskName::ReadWrite, _) if request.operation == Operation::Read => {
                Task::Command(Command::Read { from, bytes })
            }
            (TaskName::ReadWrite, _) => Task::Command(Command::Write { to: from, bytes }),
            (TaskName::AddWrite, _) => {
                let (device, first) = (from.device, from.address);
                Task::Command(Command::AddWrite { device, first, second: first + bytes })
            }
            (TaskName::Copy | TaskName::Replicate, ByName::Client) => Task::CopyByClient { from, to, bytes },
            (TaskName::Copy, ByName::Nic) => Task::Command(Command::Copy { from, to: to[0], bytes }),
            (TaskName::Replicate, ByName::Nic) => Task::Command(Command::MultiCast { from, to, bytes }),
        }
    }

    fn run_client(&mut self, client: u32, input: Option<ClientIn>, context: Now<'_, '_>) {
        let mut out = Vec::new();
        let program = &mut self.clients[client as usize];
        match input {
            Some(input) => program.on(context.now, input, &mut out),
            None => program.on_wakeup(context.now, &mut out),
        }
        let next = program.next_wakeup();
        if let Some(at) = self.client_alarms[client as usize].set(next) {
            context.at(at, SDirectEvent::Wake(Who::Client(client)));
        }
        out.into_iter().for_each(|action| self.obey_client(client, action, context));
    }

    fn obey_client(&mut self, client: u32, action: ClientOut, context: Now<'_, '_>) {
        match action {
            ClientOut::Command { ticket, id, command } => {
                // Of a command that is sent again: no answer has come.
                let owner = self.tracks.owner(ticket);
                self.tracks.claim_wait(owner, SpanKind::Schedule, context.now, Place::Host(client));
                self.tracks.pass(owner, context.now);
                self.owners.extend(owner.map(|owner| (id, owner)));
                let bytes = self.on_the_wire(&Message::Command { id, command: command.clone() });
                let Some(at) = self.network.send_to_nic(context.now, client, bytes) else { return };
                self.command_is_at_nic(at, id, command, bytes, context);
            }
            ClientOut::Data { id, offset, bytes } => {
                let mut from = offset;
                for packet in self.network.packets(bytes) {
                    self.on_the_wire(&Message::Data { id, offset: from, bytes: packet });
                    if let Some(at) = self.network.send_to_nic(context.now, client, packet) {
                        self.data_are_at_nic(at, id, from, packet, context);
                    }
                    from += u64::from(packet);
                }
            }
            ClientOut::Finish { ticket, outcome } => {
                // Of a command that is given up: no answer has come.
                let owner = self.tracks.owner(ticket);
                self.tracks.claim_wait(owner, SpanKind::Schedule, context.now, Place::Host(client));
                self.end(ticket, outcome, context);
            }
        }
    }

    /// A command goes from the NIC's port to whoever serves.
    fn command_is_at_nic(&mut self, at: Time, id: CommandId, command: Command, bytes: u32, context: Now<'_, '_>) {
        match &self.server {
            Server::Engine(_) => self.send_to_engine(at, id, EngineIn::Command { id, command }, context),
            Server::Software(_) => self.send_to_target(at, TargetIn::Command { id, command }, bytes, context),
        }
    }

    fn data_are_at_nic(&mut self, at: Time, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        match &self.server {
            Server::Engine(_) => {
                self.send_to_engine(at, id, EngineIn::Data { id, offset, data: Size(bytes) }, context);
            }
            Server::Software(_) => self.send_to_target(at, TargetIn::Data { id, bytes }, bytes, context),
        }
    }

    /// What a client sends now and is at the NIC's port at `at` goes into memory.
    fn send_to_target(&mut self, at: Time, input: TargetIn, bytes: u32, context: Now<'_, '_>) {
        let then = Then::Letter(Letter::Target { sent: context.now, came: at, input });
        self.haul(at, Haul { legs: INTO_MEMORY, device: 0, bytes, begun: at, then }, context);
    }

    /// Bytes of a message's body without data; in a checked run it has to come out of its bytes as it went in.
    fn on_the_wire(&self, message: &Message) -> u32 {
        if self.wire_check {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert_eq!(Message::decode(&bytes).as_ref(), Ok(message), "a message is read as it was written");
        }
        message.body_bytes() as u32
    }

    /// A packet of the NIC for a client; when the port is free again.
    fn send(&mut self, id: CommandId, bytes: u32, input: ClientIn, context: Now<'_, '_>) -> Time {
        let client = u32::from(id.client.0);
        let bytes = match message_of(&input) {
            Some(message @ Message::Data { .. }) => {
                self.on_the_wire(&message);
                bytes
            }
            Some(message) => self.on_the_wire(&message),
            None => bytes,
        };
        let (free, at) = self.network.send_to_client(context.now, client, bytes);
        if let Some(at) = at {
            self.post(at, Letter::Client { client, sent: context.now, input }, context);
        }
        free
    }
}

/// What the NIC says to a client.
fn message_of(input: &ClientIn) -> Option<Message> {
    Some(match input.clone() {
        ClientIn::Data { id, offset, bytes } => Message::Data { id, offset, bytes },
        ClientIn::Grant { id, offset, bytes } => Message::Grant { id, offset, bytes },
        ClientIn::Answer { id, outcome } => Message::Answer { id, outcome },
        ClientIn::Issue { .. } => return None,
    })
}

/// The engine.
impl SDirectRig {
    /// The engine is told something: before that it was in the NIC's logic, and before that in the
    /// network.
    fn engine_is_told(&mut self, owner: Option<Owner>, sent: Option<Time>, input: &EngineIn<Size>, now: Time) {
        let came = Time::ps(now.as_ps() - self.step().as_ps());
        if let Some(sent) = sent {
            self.tracks.claim(owner, SpanKind::Serialization, sent, came, Place::Nic(0));
        }
        self.tracks.claim(owner, SpanKind::Stack, came, now, Place::Nic(0));
        self.tracks.pass(owner, now);
        if let EngineIn::Fetch { device, slot, .. } = input
            && let Some(job) = self.job_of(*device, *slot)
        {
            self.jobs[job as usize].since = now;
        }
    }

    fn run_engine(&mut self, input: Option<EngineIn<Size>>, context: Now<'_, '_>) {
        let Server::Engine(engine) = &mut self.server else { return };
        let mut out = Vec::new();
        match input {
            Some(input) => engine.on(context.now, input, &mut out),
            None => engine.on_wakeup(context.now, &mut out),
        }
        if let Some(at) = self.engine_alarm.set(engine.next_wakeup()) {
            context.at(at, SDirectEvent::Wake(Who::Engine));
        }
        out.into_iter().for_each(|action| self.obey_engine(action, context));
    }

    fn obey_engine(&mut self, action: EngineOut<Size>, context: Now<'_, '_>) {
        match action {
            EngineOut::Submit { id, device, slot, operation, address, bytes } => {
                let owner = self.owner_of(id);
                self.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
                self.tracks.pass(owner, context.now);
                let command = StackCommand { ticket: 0, device, operation, address, bytes };
                self.give(Giver::Engine, slot, command, owner, context);
            }
            EngineOut::Supply { device, slot, data } => self.supply(device, slot, data.0, context),
            EngineOut::Abort { device, slot } => self.abort(device, slot, context),
            EngineOut::Send { id, offset, data } => self.send_from_engine(id, offset, data.0, context),
            EngineOut::Grant { id, offset, bytes } => self.grant(id, offset, bytes, context),
            EngineOut::Answer { id, outcome } => self.answer(id, outcome, context),
        }
    }

    fn grant(&mut self, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        let owner = self.owner_of(id);
        self.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
        if self.plan.clients.remote {
            self.send(id, ANSWER, ClientIn::Grant { id, offset, bytes }, context);
        } else {
            // The data of an asker on the NIC itself are there.
            let input = EngineIn::Data { id, offset, data: Size(bytes) };
            self.tell_engine(context.now, owner, input, context);
        }
    }

    fn send_from_engine(&mut self, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        let owner = self.owner_of(id);
        self.tracks.claim_wait(owner, SpanKind::NicQueue, context.now, Place::Nic(0));
        let free = match self.plan.clients.remote {
            true => self.send(id, bytes, ClientIn::Data { id, offset, bytes }, context),
            false => context.now,
        };
        self.post(free, Letter::PortFree { owner, sent: context.now }, context);
    }

    fn answer(&mut self, id: CommandId, outcome: sdirect::Outcome, context: Now<'_, '_>) {
        let owner = self.owner_of(id);
        self.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
        if self.plan.clients.remote {
            self.send(id, ANSWER, ClientIn::Answer { id, outcome }, context);
        } else if let Some(owner) = self.owners.remove(&id) {
            self.end(owner.ticket, Some(outcome), context);
        }
    }

    /// Data of the NIC go to a device that has asked for them, through memory where its buffers are there.
    fn supply(&mut self, device: DeviceId, slot: u16, bytes: u32, context: Now<'_, '_>) {
        let Some(job) = self.job_of(device, slot) else { return };
        let Job { owner, since, .. } = self.jobs[job as usize];
        self.tracks.claim(owner, SpanKind::StorageQueue, since, context.now, Place::Nic(0));
        self.jobs[job as usize].since = context.now;
        let legs = write_way(self.buffers(), true);
        let (begun, then) = (context.now, Then::Device(job, Phase::Landed(bytes)));
        self.haul(begun, Haul { legs, device: device.0, bytes, begun, then }, context);
    }

    fn abort(&mut self, device: DeviceId, slot: u16, context: Now<'_, '_>) {
        let Some(job) = self.job_of(device, slot) else { return };
        if !std::mem::replace(&mut self.jobs[job as usize].is_aborted, true) {
            self.end_aborted(job, context);
        }
    }

    /// The engine's job in a slot of a device.
    fn job_of(&self, device: DeviceId, slot: u16) -> Option<u32> {
        let is_it = |job: &Job| job.device == device.0 && job.slot == slot && matches!(job.giver, Giver::Engine);
        self.jobs.iter().find(|(_, job)| is_it(job)).map(|(place, _)| place as u32)
    }
}

/// The machine's software.
impl SDirectRig {
    fn run_stack(&mut self, input: Option<StackIn>, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        let mut out = Vec::new();
        match input {
            Some(input) => software.stack.on(context.now, input, &mut out),
            None => software.stack.on_wakeup(context.now, &mut out),
        }
        if let Some(at) = self.stack_alarm.set(software.stack.next_wakeup()) {
            context.at(at, SDirectEvent::Wake(Who::Stack));
        }
        out.into_iter().for_each(|action| self.obey_stack(action, context));
    }

    fn obey_stack(&mut self, action: StackOut, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        match action {
            StackOut::Run { core, work, span } => {
                let (start, end) = software.cpu.run(context.now, core as usize, work.name(), span);
                self.post(end, Letter::Ran { core, work, start }, context);
            }
            StackOut::Submit { core, slot, command } => {
                let owner = self.request_of(command.ticket);
                self.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Core(core));
                self.tracks.pass(owner, context.now);
                self.give(Giver::Core(core), slot, command, owner, context);
            }
            StackOut::Finish { ticket } if self.plan.clients.remote => {
                self.run_target(None, TargetIn::Finished { ticket }, context);
            }
            StackOut::Finish { ticket } => self.end(ticket, Some(sdirect::Outcome::Done), context),
        }
    }

    /// The request that a ticket of the stack stands for.
    fn request_of(&self, ticket: u32) -> Option<Owner> {
        match &self.server {
            Server::Software(software) if self.plan.clients.remote => software.served.get(&ticket).copied(),
            _ => self.tracks.owner(ticket),
        }
    }

    fn run_target(&mut self, asked: Option<Owner>, input: TargetIn, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        let mut out = Vec::new();
        software.target.on(context.now, input, &mut out);
        out.into_iter().for_each(|action| self.obey_target(asked, action, context));
    }

    fn obey_target(&mut self, asked: Option<Owner>, action: TargetOut, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        match action {
            TargetOut::Issue(command) => {
                software.served.extend(asked.map(|owner| (command.ticket, owner)));
                self.run_stack(Some(StackIn::Issue(command)), context);
            }
            TargetOut::Grant { id, bytes } => self.fetch(id, ANSWER, ClientIn::Grant { id, offset: 0, bytes }, context),
            TargetOut::Send { id, bytes } => {
                let mut offset = 0;
                for packet in self.network.packets(bytes) {
                    self.fetch(id, packet, ClientIn::Data { id, offset, bytes: packet }, context);
                    offset += u64::from(packet);
                }
            }
            TargetOut::Answer { id, outcome } => self.fetch(id, ANSWER, ClientIn::Answer { id, outcome }, context),
        }
    }

    /// The NIC fetches a packet from memory and sends it.
    fn fetch(&mut self, id: CommandId, bytes: u32, input: ClientIn, context: Now<'_, '_>) {
        let (begun, then) = (context.now, Then::Send(id, input));
        self.haul(begun, Haul { legs: OUT_OF_MEMORY, device: 0, bytes, begun, then }, context);
    }
}

/// The request of a piece of work, if it is one's.
fn work_of(work: &Work) -> Option<u32> {
    match work {
        Work::Submission(command) => Some(command.ticket),
        Work::Completion { ticket } | Work::ContextSwitch { ticket } => Some(*ticket),
        Work::Doorbell | Work::Interrupt | Work::Look => None,
    }
}

fn stack_command(ticket: u32, command: &Command) -> StackCommand {
    let (place, bytes, operation) = match command {
        Command::Read { from, bytes } => (*from, *bytes, DeviceOperation::Read),
        Command::Write { to, bytes } => (*to, *bytes, DeviceOperation::Write),
        _ => unreachable!("the plan gives a stack reads and writes alone"),
    };
    StackCommand { ticket, device: place.device, operation, address: place.address, bytes: bytes as u32 }
}

impl Rig for SDirectRig {
    type Event = SDirectEvent;

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: Now<'_, '_>) {
        self.issue_request(ticket, request, context);
    }

    fn on(&mut self, event: SDirectEvent, context: Now<'_, '_>) {
        match event {
            SDirectEvent::Deliver(letter) => self.deliver(letter, context),
            SDirectEvent::Device(job, phase) => self.device(job, phase, context),
            SDirectEvent::Leg(haul) => self.go_on(haul, context),
            SDirectEvent::Wake(who) => self.wake(who, context),
        }
    }

    /// Not known in closed form: what flash takes depends on where data lie.
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        None
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        self.machine.busy(out);
        self.network.busy(out);
    }

    fn dropped_packets(&self) -> u64 {
        self.network.lost()
    }

    fn measure(&self, _now: Time, meter: &mut Meter) {
        self.facts(meter);
    }

    fn end_warm_up(&mut self, _now: Time) {
        self.machine.restart_reports();
        if let Server::Engine(engine) = &mut self.server {
            engine.restart_highest();
        }
    }
}
