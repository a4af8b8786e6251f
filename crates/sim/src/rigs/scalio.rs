//! Scalio and its rivals: programs of crate `scalio` on a box of SSDs, its adapter, cores and
//! memory, and on clients elsewhere.
//!
//! What a client asks of memory takes two events: it comes to the box's adapter, where it takes
//! effect, and its answer is seen; or EDM's messages carry it (`fabric`). What a read of a block
//! finds is settled when it is seen, since others may have written meanwhile (`torn_reads`). An
//! offloaded read has one event more, at the drive's end. What a server does is charged to cores:
//! receiving and sending to those of the network, I/Os and operations on the index to the device's.
//! Nothing is decided here.

mod asks;
mod bare;
mod build;
mod fabric;
mod facts;
mod faults;
mod flash;
mod in_flight;
mod inputs;
mod judges;
mod keys;
mod leed_preload;
mod programs;
mod remote;
mod sample;
mod scene;
mod server_hardware;
mod sizes;
mod torn_reads;
mod warm;

pub use build::build;

use crate::drive::{Context, Ended, Rig, Ticket};
use crate::sampler::Probe;
use crate::slab::Slab;
use asks::{AskedFor, Asks, Owner, Sent};
use base::{Bytes, Operation, Request, Span, Time};
use fabric::Fabric;
use facts::Counts;
use faults::Liveness;
use flash::{Device, PreloadedStore};
use hardware::ssd::CommandKind;
use history::StoreHistory;
use in_flight::{InFlight, IoWork};
use inputs::{ToClient, ToServer};
use judges::Judges;
use keys::Keys;
use programs::Programs;
use record::metric::Meter;
use record::{Outcome, Place, SpanKind};
use scalio::baseline::ditto::{Pool, PoolRequest};
use server_hardware::ServerHardware;
use torn_reads::TornReads;

use scalio::{Contents, FlashAnswer, FlashOperation, Index, MemoryOperation, Protocol, RequestId, Token};

/// An event of the rig.
#[derive(Clone, Copy, Debug)]
pub enum ScalioEvent {
    /// Something on its way is where it was going.
    Step(u32),
    /// A client's program wants to run.
    WakeClient(u32),
    /// A server's program wants to run.
    WakeServer(u32),
    /// Something stops or comes back.
    Fault(u32),
    /// EDM's network has something to do.
    Fabric,
}

/// What the box holds.
struct Store {
    keys: Keys,
    blocks: u32,
    protocol: Protocol,
    devices: Vec<Device>,
    preloaded: PreloadedStore,
    index: Option<Index<Token>>,
    /// Reads on their way, where these can be torn.
    torn_reads: Option<TornReads>,
    pool: Option<Pool<Token>>,
}

/// Everything of one run.
pub struct ScalioRig {
    plan: plan::scalio::Scalio,
    programs: Programs,
    hardware: ServerHardware,
    store: Store,
    /// EDM, where it carries operations on the index.
    fabric: Option<Box<Fabric>>,
    in_flight: Slab<InFlight>,
    asks: Asks,
    state: Liveness,
    judges: Judges,
    counts: Counts,
    /// Whether every message is encoded and decoded.
    wire_check: bool,
}

type Now<'a, 'b> = &'a mut Context<'b, ScalioEvent>;

impl ScalioRig {
    fn post(&mut self, at: Time, packet: InFlight, context: Now<'_, '_>) {
        let place = self.in_flight.insert(packet);
        context.at(at, ScalioEvent::Step(place));
    }

    fn step(&mut self, place: u32, context: Now<'_, '_>) {
        self.counts.last = context.now;
        match self.in_flight.remove(place) {
            InFlight::Verb(remote) => self.verb(remote, context),
            InFlight::Submission(remote) => self.submit_remote(remote, context),
            InFlight::Answer { owner, client, request, touched, since } => {
                let answer = ToClient::memory(request, self.settled(touched));
                self.run_client(client, owner, Some((Sent::at(since), answer)), context);
            }
            InFlight::PoolVerb { owner, client, request, operation, since } => {
                self.claim_awaited_way(owner, request, since, context.now);
                self.pool_verb(owner, client, request, operation, context)
            }
            InFlight::Offload { owner, client, request, device, operation, since } => {
                self.asks.claim_way(owner, since, context.now);
                self.offload(owner, client, request, device, operation, context);
            }
            InFlight::Offloaded { owner, client, request, device, operation, submitted, done, life } => {
                let nic = Place::Nic(0);
                self.asks.claim(owner, SpanKind::Stack, submitted.0, submitted.1, nic);
                self.asks.claim_flash(owner, submitted.1, &done, device);
                self.asks.claim(owner, SpanKind::Stack, done.end, context.now, nic);
                self.offloaded((owner, client, request), device, &operation, life, context);
            }
            InFlight::Message { owner, client, device, input, since } => {
                self.message(owner, client, device, input, since, context);
            }
            InFlight::Received { owner, device, input, life, since, seen, worked } if life == self.state.life => {
                self.asks.claim_way(owner, since, seen);
                self.asks.claim_work(owner, seen, worked);
                self.asks.pass(owner, context.now);
                self.run_server(device, Some((owner, input)), context);
            }
            InFlight::AskChunk { client } => self.give_chunk(client, context),
            InFlight::Io { owner, device, request, work, submitted, done, life } if life == self.state.life => {
                self.asks.claim_work(owner, submitted.since, submitted.worked);
                self.asks.claim_flash(owner, submitted.worked.1, &done, device);
                self.io_is_done((owner, device, request), &work, context);
            }
            InFlight::Io { device, work, .. } => self.io_is_lost(device, work),
            InFlight::IoDone { owner, device, request, answer, life, since, worked } if life == self.state.life => {
                self.asks.claim_work(owner, since, worked);
                self.asks.io_ends(owner);
                self.asks.pass(owner, context.now);
                self.tell_io(owner, device, request, answer, context);
            }
            InFlight::Local { device, operations, life } if life == self.state.life => {
                self.local(device, operations, context)
            }
            InFlight::ToClient { owner, client, input, sent } => {
                self.run_client(client, owner, Some((sent, input)), context);
            }
            InFlight::Bare(read) => self.bare_step(read, context),
            InFlight::Received { .. } | InFlight::IoDone { .. } | InFlight::Local { .. } => {}
        }
    }

    /// The way of an operation to the box. What nobody waits for takes no time of its request.
    fn claim_awaited_way(&mut self, owner: Owner, request: Option<RequestId>, since: Time, now: Time) {
        if request.is_some() {
            self.asks.claim_way(owner, since, now);
        }
    }

    fn pool_verb(
        &mut self,
        owner: Owner,
        client: u32,
        request: Option<RequestId>,
        operation: PoolRequest<Token>,
        context: Now<'_, '_>,
    ) {
        self.counts.verbs += 1;
        let Some(pool) = &mut self.store.pool else { return };
        let (verb, bytes) = sizes::of_pool(&operation, pool.geometry());
        let answer = pool.execute(operation);
        let at = self.hardware.serve(context.now, verb, bytes);
        if let Some(request) = request {
            let (input, sent) = (ToClient::pool(request, answer), Sent::at(context.now));
            self.post(at, InFlight::ToClient { owner, client, input, sent }, context);
        }
    }

    fn offload(
        &mut self,
        owner: Owner,
        client: u32,
        request: RequestId,
        device: u32,
        operation: FlashOperation<Token>,
        context: Now<'_, '_>,
    ) {
        let (life, now) = (self.state.life, context.now);
        if self.state.is_down {
            let (input, sent) = (ToClient::flash(request, FlashAnswer::Failed), Sent::at(now));
            return self.post(now + faults::GIVE_UP, InFlight::ToClient { owner, client, input, sent }, context);
        }
        self.counts.offloaded_reads += 1;
        let at = self.hardware.offload.submit(now);
        let done = self.store.devices[device as usize].submit(at, CommandKind::Read, operation.extent());
        let end = self.hardware.offload.complete(done.end);
        let submitted = (now, at);
        let packet = InFlight::Offloaded { owner, client, request, device, operation, submitted, done, life };
        self.post(end, packet, context);
    }

    fn offloaded(
        &mut self,
        (owner, client, request): (Owner, u32, RequestId),
        device: u32,
        operation: &FlashOperation<Token>,
        life: u32,
        context: Now<'_, '_>,
    ) {
        let is_lost = life != self.state.life;
        let answer = match is_lost {
            true => FlashAnswer::Failed,
            false => self.store.devices[device as usize].finish(operation, &self.store.preloaded),
        };
        let at = self.hardware.forward(context.now, sizes::of_read(operation));
        let (input, sent) = (ToClient::flash(request, answer), Sent::at(context.now));
        self.post(at, InFlight::ToClient { owner, client, input, sent }, context);
    }

    fn message(&mut self, owner: Owner, client: u32, device: u32, input: ToServer, since: Time, context: Now<'_, '_>) {
        if self.state.is_down {
            return;
        }
        let seen = self.hardware.adapter.take(context.now);
        let worked = self.hardware.receive(seen, client);
        let life = self.state.life;
        self.post(worked.1, InFlight::Received { owner, device, input, life, since, seen, worked }, context);
    }

    fn give_chunk(&mut self, client: u32, context: Now<'_, '_>) {
        let chunk = self.store.pool.as_mut().and_then(Pool::give_chunk);
        let seen = self.hardware.adapter.take(context.now);
        let (_, end) = self.hardware.control(seen);
        let at = self.hardware.answer(context.now, end, sizes::REPLY);
        let (owner, input, sent) = (Owner::NOBODY, ToClient::chunk(chunk), Sent::at(context.now));
        self.post(at, InFlight::ToClient { owner, client, input, sent }, context);
    }

    fn io_is_done(&mut self, (owner, device, request): (Owner, u32, RequestId), work: &IoWork, context: Now<'_, '_>) {
        let place = &mut self.store.devices[device as usize];
        let answer = match work {
            IoWork::Operation(operation) => place.finish(operation, &self.store.preloaded),
            IoWork::Run(contents) => {
                contents.iter().for_each(|(sector, content)| place.put(*sector, content.clone()));
                FlashAnswer::Done
            }
        };
        let worked = self.hardware.complete(context.now, device);
        let (life, since) = (self.state.life, context.now);
        self.post(worked.1, InFlight::IoDone { owner, device, request, answer, life, since, worked }, context);
    }

    fn local(&mut self, device: u32, operations: Vec<(RequestId, u32, MemoryOperation<Token>)>, context: Now<'_, '_>) {
        for (request, block, operation) in operations {
            let answer = self.memory(context.now, block, operation);
            self.run_server(device, Some((Owner::NOBODY, ToServer::memory(request, answer))), context);
        }
    }

    fn slots(&self) -> u8 {
        self.plan.options.map_or(0, |options| if options.cache { options.slots as u8 } else { 0 })
    }

    fn issue_request(&mut self, ticket: Ticket, request: &Request, context: Now<'_, '_>) {
        let client = request.source.0;
        let number = (request.address / self.plan.io.block.count()) as u32;
        let key = self.store.keys.key(number);
        let block = key.place(self.store.blocks).block;
        // Names of written values lie above those of keys, which what was there at first is named
        // after.
        let value = (1 << 32) + request.id.0;
        let asked = AskedFor { client, key: number, block, operation: request.operation, value, id: request.id.0 };
        let owner = self.asks.begin(ticket, asked, context);
        if let Programs::Bare(_) = &self.programs {
            return self.bare_issue(owner, client, request, context);
        }
        let operation = match request.operation {
            Operation::Read => scalio::Operation::Get { key },
            _ => {
                let value = Token { id: value, bytes: self.store.keys.value_bytes };
                scalio::Operation::Update(scalio::RequestBody::Put {
                    key,
                    value,
                    time_to_live: None,
                    condition: scalio::Condition::Always,
                })
            }
        };
        let input = ToClient::Issue { ticket: u64::from(ticket.0), operation };
        self.run_client(client, owner, Some((Sent::at(context.now), input)), context);
    }

    /// A request has ended for its client, which was told something about `owner`. If that is
    /// another request, this one has waited for it, or for an alarm.
    fn done(
        &mut self,
        owner: Owner,
        ticket: u32,
        outcome: &scalio::Outcome<Token>,
        source: scalio::Source,
        context: Now<'_, '_>,
    ) {
        let ended = self.asks.owner(ticket);
        if ended != owner {
            self.asks.fork(ended);
            self.asks.claim_wait(ended, SpanKind::Schedule, context.now);
        }
        let Some(ask) = self.asks.end(context.now, ticket) else { return };
        self.counts.end(&ask, outcome, source);
        self.judges.remember(&ask, outcome, context.now);
        let outcome = match outcome {
            scalio::Outcome::Value(_)
            | scalio::Outcome::Stored
            | scalio::Outcome::Unmet
            | scalio::Outcome::Deleted { .. }
            | scalio::Outcome::Described(_)
            | scalio::Outcome::Names(_)
            | scalio::Outcome::Taken { .. }
            | scalio::Outcome::Differs { .. } => Outcome::Finished,
            scalio::Outcome::Refused(_) => Outcome::Rejected,
            scalio::Outcome::Unknown | scalio::Outcome::Unavailable => Outcome::TimedOut,
        };
        let (ticket, start, end) = (Ticket(ticket), ask.start, context.now);
        context.end(Ended { ticket, outcome, start, end, label: Span::ZERO, ledger: ask.ledger });
    }

    /// Judges what clients saw.
    pub(crate) fn judge(&mut self, meter: &mut Meter) {
        self.judges.judge(self.asks.open(), meter);
    }

    /// Operations of clients and their answers, if they were kept.
    pub(crate) fn take_history(&mut self) -> Option<StoreHistory> {
        self.judges.take()
    }
}

impl Rig for ScalioRig {
    type Event = ScalioEvent;

    fn start(&mut self, context: &mut Context<'_, ScalioEvent>) {
        for (place, fault) in (0u32..).zip(&self.plan.faults) {
            context.at(fault.at, ScalioEvent::Fault(place));
        }
    }

    fn issue(&mut self, ticket: Ticket, request: &Request, _intended: Time, context: &mut Context<'_, ScalioEvent>) {
        self.issue_request(ticket, request, context);
    }

    fn on(&mut self, event: ScalioEvent, context: &mut Context<'_, ScalioEvent>) {
        match event {
            ScalioEvent::Step(place) => self.step(place, context),
            ScalioEvent::WakeClient(client) => self.wake_client(client, context),
            ScalioEvent::WakeServer(device) => self.wake_server(device, context),
            ScalioEvent::Fault(place) => self.fault(place, context),
            ScalioEvent::Fabric => self.fabric_is_due(context),
        }
    }

    /// Not known in closed form: what a request takes depends on where its key is.
    fn unloaded(&self, _: Operation, _: Bytes) -> Option<Span> {
        None
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        self.hardware.busy(out);
        if let Some(fabric) = &self.fabric {
            fabric.busy(out);
        }
    }

    fn dropped_packets(&self) -> u64 {
        0
    }

    fn measure(&self, now: Time, meter: &mut Meter) {
        self.facts(now, meter);
    }

    fn sample(&self, now: Time, probe: &mut Probe) {
        self.sample_state(now, probe);
    }

    fn end_warm_up(&mut self, now: Time) {
        match &mut self.programs {
            Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } => {
                servers.iter_mut().for_each(|server| server.restart_waiting_max());
            }
            Programs::Scalio { .. } | Programs::Bare(_) => {}
        }
        if let Some(fabric) = &mut self.fabric {
            fabric.end_warm_up(now);
        }
    }
}
