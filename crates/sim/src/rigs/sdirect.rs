//! S-Direct and its rivals: programs of crate `sdirect` in a machine of PCIe links, devices, memory
//! and cores.
//!
//! Four designs, two kinds of clients. The engine is on the NIC; its buffers are there too
//! (S-Direct) or in the host's memory (target offload). The stacks are on the cores, buffers and
//! queues in memory; with clients elsewhere a target is in front of them. Clients on the machine
//! itself take no network: their data are where they are needed.

mod build;
mod clients;
mod devices;
mod engine;
mod facts;
mod machine;
mod network;
mod requests;
mod scene;
mod software;
mod track;

use super::blox::BuildError;
use super::seat::Seat;
use crate::drive::{Context, Ended, Rig, Ticket};
use crate::sampler::Probe;
use crate::slab::Slab;
use base::{Bytes, Operation, Request, Seed, Span, Time};
use hardware::ssd::Done;
use machine::{Home, Leg, Machine};
use network::Network;
use plan::DesignName;
use plan::sdirect::SDirect;
use record::metric::Meter;
use record::{Outcome, Place, Series, SpanKind};
use requests::Requests;
use sdirect::baseline::stack::{StackCommand, StackIn, Work};
use sdirect::baseline::target::TargetIn;
use sdirect::{Client, ClientConfig, ClientId, ClientIn, CommandId, Engine, EngineIn, Size};
use software::{Software, work_of};
use track::Owner;

/// Grants and answers of a target in software, in memory: a completion entry (NVMe Base
/// Specification 2.0, figure 91).
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
enum Delivery {
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
struct DmaTransfer {
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
    Deliver(Delivery),
    /// Out of the NIC's port.
    Send(CommandId, ClientIn),
}

/// A command that a device has.
#[derive(Clone, Copy, Debug)]
struct Job {
    slot: u16,
    giver: Giver,
    command: StackCommand,
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
    Engine(Box<Seat<Engine<Size>>>),
    Software(Box<Software>),
}

/// Everything of one run.
pub struct SDirectRig {
    plan: SDirect,
    machine: Machine,
    network: Network,
    server: Server,
    clients: Vec<Seat<Client>>,
    requests: Requests,
    deliveries: Slab<Delivery>,
    jobs: Slab<Job>,
    transfers: Slab<DmaTransfer>,
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
            Seat::new(Client::new(config))
        };
        Ok(SDirectRig {
            machine: Machine::new(plan, seed)?,
            network: Network::new(&plan.clients, seed),
            server: build::server(plan)?,
            clients: (0..plan.clients.count).map(client).collect(),
            requests: Requests::default(),
            deliveries: Slab::new(),
            jobs: Slab::new(),
            transfers: Slab::new(),
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

    fn post(&mut self, at: Time, delivery: Delivery, context: Now<'_, '_>) {
        let place = self.deliveries.insert(delivery);
        context.at(at, SDirectEvent::Deliver(place));
    }

    /// To the engine, through its logic.
    fn tell_engine(&mut self, at: Time, owner: Option<Owner>, input: EngineIn<Size>, context: Now<'_, '_>) {
        self.post(at + self.step(), Delivery::Engine { owner, sent: None, input }, context);
    }

    /// The same for what a client sends now and what is at the NIC's port at `at`.
    fn send_to_engine(&mut self, at: Time, id: CommandId, input: EngineIn<Size>, context: Now<'_, '_>) {
        let (owner, sent) = (self.requests.owner_of(id), Some(context.now));
        self.post(at + self.step(), Delivery::Engine { owner, sent, input }, context);
    }

    /// Sends data on their way through the machine, from `at` on.
    fn transfer(&mut self, at: Time, transfer: DmaTransfer, context: Now<'_, '_>) {
        if let Then::Device(job, _) = transfer.then {
            self.jobs[job].events += 1;
        }
        let place = self.transfers.insert(transfer);
        match at > context.now {
            true => context.at(at, SDirectEvent::Leg(place)),
            false => self.go_on(place, context),
        }
    }

    fn go_on(&mut self, place: u32, context: Now<'_, '_>) {
        let DmaTransfer { legs, device, bytes, .. } = self.transfers[place];
        if let Some((leg, rest)) = legs.split_first() {
            let at = self.machine.leg(context.now, *leg, device, bytes);
            self.transfers[place].legs = rest;
            return context.at(at, SDirectEvent::Leg(place));
        }
        let DmaTransfer { begun, then, .. } = self.transfers.remove(place);
        match then {
            Then::Device(job, phase) => self.device(job, phase, context),
            Then::Deliver(delivery) => self.open(delivery, context),
            Then::Send(id, input) => {
                let owner = self.requests.owner_of(id);
                self.requests.tracks.claim(owner, SpanKind::Serialization, begun, context.now, Place::Bus(0));
                self.requests.tracks.pass(owner, context.now);
                self.send(id, bytes, input, context);
            }
        }
    }

    fn deliver(&mut self, place: u32, context: Now<'_, '_>) {
        let delivery = self.deliveries.remove(place);
        self.open(delivery, context);
    }

    /// Something is where it was going: its way takes a part of its request's time.
    fn open(&mut self, delivery: Delivery, context: Now<'_, '_>) {
        match delivery {
            Delivery::Engine { owner, sent, input } => {
                self.engine_is_told(owner, sent, &input, context.now);
                self.run_engine(Some(input), context);
            }
            Delivery::PortFree { owner, sent } => {
                self.requests.tracks.claim(owner, SpanKind::Serialization, sent, context.now, Place::Nic(0));
                self.requests.tracks.pass(owner, context.now);
                self.run_engine(Some(EngineIn::PortFree), context);
            }
            Delivery::Client { client, sent, input } => {
                let owner = self.about(&input);
                self.requests.tracks.claim(owner, SpanKind::Serialization, sent, context.now, Place::Link(client));
                self.requests.tracks.pass(owner, context.now);
                self.run_client(client, Some(input), context);
            }
            Delivery::Target { sent, came, input } => {
                let owner = match &input {
                    TargetIn::Command { id, .. } | TargetIn::Data { id, .. } => self.requests.owner_of(*id),
                    TargetIn::Finished { .. } => None,
                };
                self.requests.tracks.claim(owner, SpanKind::Serialization, sent, came, Place::Nic(0));
                self.requests.tracks.claim(owner, SpanKind::Serialization, came, context.now, Place::Bus(0));
                self.requests.tracks.pass(owner, context.now);
                self.run_target(owner, input, context);
            }
            Delivery::Ran { core, work, start } => {
                let owner = work_of(&work).and_then(|ticket| self.request_of(ticket));
                self.requests.tracks.claim_wait(owner, SpanKind::StorageQueue, start, Place::Core(core));
                self.requests.tracks.claim(owner, SpanKind::Stack, start, context.now, Place::Core(core));
                self.requests.tracks.pass(owner, context.now);
                self.run_stack(Some(StackIn::Ran { core, work }), context);
            }
        }
    }

    /// The request that something for a client is about.
    fn about(&self, input: &ClientIn) -> Option<Owner> {
        match input {
            ClientIn::Data { id, .. } | ClientIn::Grant { id, .. } | ClientIn::Answer { id, .. } => {
                self.requests.owner_of(*id)
            }
            ClientIn::Issue { .. } => None,
        }
    }

    fn wake(&mut self, who: Who, context: Now<'_, '_>) {
        match who {
            Who::Engine => self.run_engine(None, context),
            Who::Stack => self.run_stack(None, context),
            Who::Client(client) => self.run_client(client, None, context),
        }
    }

    fn end(&mut self, ticket: u32, outcome: Option<sdirect::Outcome>, context: Now<'_, '_>) {
        let outcome = match outcome {
            Some(sdirect::Outcome::Done) => Outcome::Finished,
            Some(_) => Outcome::Rejected,
            None => Outcome::TimedOut,
        };
        self.requests.failed += u64::from(outcome != Outcome::Finished);
        let (start, ledger) = self.requests.tracks.end(context.now, ticket);
        context.end(Ended { ticket: Ticket(ticket), outcome, start, end: context.now, label: Span::ZERO, ledger });
    }
}

impl Rig for SDirectRig {
    type Event = SDirectEvent;

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: Now<'_, '_>) {
        self.issue_request(ticket, request, context);
    }

    fn on(&mut self, event: SDirectEvent, context: Now<'_, '_>) {
        match event {
            SDirectEvent::Deliver(delivery) => self.deliver(delivery, context),
            SDirectEvent::Device(job, phase) => self.device(job, phase, context),
            SDirectEvent::Leg(transfer) => self.go_on(transfer, context),
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

    fn sample(&self, now: Time, probe: &mut Probe) {
        let mut under_way = vec![0_u32; self.plan.machine.devices as usize];
        for (_, job) in self.jobs.iter() {
            under_way[usize::from(job.command.device.0)] += 1;
        }
        probe.put_each(Series::DriveCommands, 0, under_way.into_iter().map(f64::from));
        probe.put_drives(self.machine.drives());
        match &self.server {
            Server::Engine(engine) => probe.put(Series::NicBytes, engine.counters().held as f64),
            Server::Software(software) => probe.put_cores(now, &software.cpu),
        }
    }

    fn end_warm_up(&mut self, _now: Time) {
        self.machine.restart_reports();
        if let Server::Engine(engine) = &mut self.server {
            engine.restart_highest();
        }
    }
}
