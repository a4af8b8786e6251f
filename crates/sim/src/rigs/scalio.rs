//! Scalio and its rivals: programs of crate `scalio` on a box of SSDs, its adapter, cores and memory, and on clients elsewhere.
//!
//! What a client asks of memory takes two events: it comes to the box's adapter, where it takes effect, and its answer is seen; or EDM's messages carry it (`fabric`). What a
//! read of a block finds is settled when it is seen, since others may have written meanwhile (`looks`). An offloaded read has one event more, at the drive's end. What a server does is charged to cores: receiving and sending to those of the network, I/Os and operations on the index to the device's. Nothing is
//! decided here.

mod asks;
mod bare;
mod build;
mod errands;
mod fabric;
mod facts;
mod faults;
mod flash;
mod keys;
mod looks;
mod plant;
mod programs;
mod sizes;
mod stock;
mod warm;

pub use build::build;

use crate::drive::{Context, Ended, Rig, Ticket};
use crate::slab::Slab;
use asks::{AskedFor, Asks, Owner};
use base::{Bytes, Operation, Request, Span, Time};
use errands::{Errand, Touched};
use fabric::Fabric;
use faults::{BoxState, ClientState};
use flash::{Device, Shelf};
use hardware::ssd::{CommandKind, Done};
use history::{History, StoreHistory};
use keys::Keys;
use looks::Looks;
use plant::Plant;
use programs::{Alarms, Programs, ToClient, ToServer};
use record::{Outcome, SpanKind};
use scalio::baseline::ditto::{Pool, PoolRequest};

use scalio::{ClientOut, Contents, FlashAnswer, FlashOperation, Index, MemoryOperation, RequestId, Token};
use std::collections::BTreeMap;

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

/// Something on its way.
enum Parcel {
    /// An operation on the index, at the box's adapter.
    Verb(Errand),
    /// The same at the logic of EDM, at its client.
    Submission(Errand),
    /// Its answer, at its client.
    Answer { owner: Owner, client: u32, request: RequestId, touched: Touched },
    /// An operation on Ditto's pool, likewise.
    PoolVerb { owner: Owner, client: u32, request: Option<RequestId>, operation: PoolRequest<Token> },
    /// An offloaded read, likewise.
    Offload { owner: Owner, client: u32, request: RequestId, device: u32, operation: FlashOperation<Token> },
    /// The same when its drive is done.
    Offloaded {
        owner: Owner,
        client: u32,
        request: RequestId,
        device: u32,
        operation: FlashOperation<Token>,
        done: Done,
        life: u32,
    },
    /// A message to a server, at the box's adapter.
    Message { owner: Owner, client: u32, device: u32, input: ToServer },
    /// The same when a core has received it.
    Received { owner: Owner, device: u32, input: ToServer, life: u32 },
    /// A client asks for a chunk of the pool, at the box's adapter.
    AskChunk { client: u32 },
    /// A server's I/O, when its drive is done.
    Io { owner: Owner, device: u32, request: RequestId, work: IoWork, done: Done, life: u32 },
    /// The same when a core has completed it.
    IoDone { owner: Owner, device: u32, request: RequestId, answer: FlashAnswer<Token>, life: u32 },
    /// A server's operations on the index, when a core does them.
    Local { device: u32, operations: Vec<(RequestId, u32, MemoryOperation<Token>)>, life: u32 },
    /// Something for a client's program.
    ToClient { owner: Owner, client: u32, input: ToClient },
    /// A read of a drive without a store.
    Bare(bare::BareRead),
}

/// What a server's I/O is.
enum IoWork {
    /// An operation.
    Operation(FlashOperation<Token>),
    /// LEED's compaction writes several things at once.
    Run(Vec<(u64, scalio::Content<Token>)>),
}

/// What only the rig can count.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    gets: u64,
    hits: u64,
    puts: u64,
    refused: u64,
    unknown: u64,
    unavailable: u64,
    swaps: u64,
    swaps_failed: u64,
    verbs: u64,
    offloaded_reads: u64,
    groups: u64,
}

/// Everything of one run.
pub struct ScalioRig {
    plan: spec::scalio::Scalio,
    keys: Keys,
    blocks: u32,
    programs: Programs,
    /// What a client of Scalio has just decided; empty in between, and kept so that this allocates nothing.
    decided: Vec<ClientOut<Token>>,
    plant: Plant,
    devices: Vec<Device>,
    shelf: Shelf,
    index: Option<Index<Token>>,
    /// Reads on their way, where these can be torn.
    looks: Option<Looks>,
    /// EDM, where it carries operations on the index.
    fabric: Option<Box<Fabric>>,
    pool: Option<Pool<Token>>,
    parcels: Slab<Parcel>,
    asks: Asks,
    alarms: Alarms,
    /// Calls and requests that have no answer: client and number.
    owners: BTreeMap<(u32, u64), Owner>,
    clients: Vec<ClientState>,
    state: BoxState,
    histories: Option<BTreeMap<u32, History>>,
    /// All operations, for those who judge elsewhere.
    kept: Option<StoreHistory>,
    counts: Counts,
    last: Time,
    /// Whether every message is encoded and decoded.
    wire_check: bool,
}

type Now<'a, 'b> = &'a mut Context<'b, ScalioEvent>;

impl ScalioRig {
    fn post(&mut self, at: Time, parcel: Parcel, context: Now<'_, '_>) {
        let place = self.parcels.insert(parcel);
        context.at(at, ScalioEvent::Step(place));
    }

    fn step(&mut self, place: u32, context: Now<'_, '_>) {
        self.last = context.now;
        match self.parcels.remove(place) {
            Parcel::Verb(errand) => self.verb(errand, context),
            Parcel::Submission(errand) => self.submit_errand(errand, context),
            Parcel::Answer { owner, client, request, touched } => {
                let answer = self.settled(touched);
                self.run_client(client, owner, Some(ToClient::memory(request, answer)), context);
            }
            Parcel::PoolVerb { owner, client, request, operation } => {
                self.pool_verb(owner, client, request, operation, context)
            }
            Parcel::Offload { owner, client, request, device, operation } => {
                self.offload(owner, client, request, device, operation, context);
            }
            Parcel::Offloaded { owner, client, request, device, operation, done, life } => {
                self.offloaded((owner, client, request), device, &operation, (&done, life), context);
            }
            Parcel::Message { owner, client, device, input } => self.message(owner, client, device, input, context),
            Parcel::Received { owner, device, input, life } if life == self.state.life => {
                self.run_server(device, Some((owner, input)), context);
            }
            Parcel::AskChunk { client } => self.give_chunk(client, context),
            Parcel::Io { owner, device, request, work, done, life } if life == self.state.life => {
                self.io_is_done((owner, device, request), &work, &done, context);
            }
            Parcel::Io { device, work, .. } => self.io_is_lost(device, work),
            Parcel::IoDone { owner, device, request, answer, life } if life == self.state.life => {
                self.tell_io(owner, device, request, answer, context);
            }
            Parcel::Local { device, operations, life } if life == self.state.life => {
                self.local(device, operations, context)
            }
            Parcel::ToClient { owner, client, input } => self.run_client(client, owner, Some(input), context),
            Parcel::Bare(read) => self.bare_step(read, context),
            Parcel::Received { .. } | Parcel::IoDone { .. } | Parcel::Local { .. } => {}
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
        let Some(pool) = &mut self.pool else { return };
        self.asks.reach(context.now, owner, SpanKind::Network);
        let (verb, bytes) = sizes::of_pool(&operation, pool.geometry());
        let answer = pool.execute(operation);
        let at = self.plant.serve(context.now, verb, bytes);
        if let Some(request) = request {
            self.post(at, Parcel::ToClient { owner, client, input: ToClient::pool(request, answer) }, context);
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
        self.asks.reach(context.now, owner, SpanKind::Network);
        let life = self.state.life;
        if self.state.is_down {
            let input = ToClient::flash(request, FlashAnswer::Failed);
            return self.post(context.now + faults::GIVE_UP, Parcel::ToClient { owner, client, input }, context);
        }
        self.counts.offloaded_reads += 1;
        let at = self.plant.offload.submit(context.now);
        self.asks.reach(at, owner, SpanKind::Stack);
        let done = self.devices[device as usize].submit(at, CommandKind::Read, operation.extent());
        let end = self.plant.offload.complete(done.end);
        self.post(end, Parcel::Offloaded { owner, client, request, device, operation, done, life }, context);
    }

    fn offloaded(
        &mut self,
        (owner, client, request): (Owner, u32, RequestId),
        device: u32,
        operation: &FlashOperation<Token>,
        (done, life): (&Done, u32),
        context: Now<'_, '_>,
    ) {
        self.asks.reach_flash(done.end, owner, done);
        self.asks.reach(context.now, owner, SpanKind::Stack);
        let is_lost = life != self.state.life;
        let answer = match is_lost {
            true => FlashAnswer::Failed,
            false => self.devices[device as usize].finish(operation, &self.shelf),
        };
        let at = self.plant.forward(context.now, sizes::of_read(operation));
        self.post(at, Parcel::ToClient { owner, client, input: ToClient::flash(request, answer) }, context);
    }

    fn message(&mut self, owner: Owner, client: u32, device: u32, input: ToServer, context: Now<'_, '_>) {
        if self.state.is_down {
            return;
        }
        let seen = self.plant.adapter.take(context.now);
        self.asks.reach(seen, owner, SpanKind::Network);
        let (start, end) = self.plant.receive(seen, client);
        self.asks.reach(start, owner, SpanKind::StorageQueue);
        self.asks.reach(end, owner, SpanKind::Stack);
        self.post(end, Parcel::Received { owner, device, input, life: self.state.life }, context);
    }

    fn give_chunk(&mut self, client: u32, context: Now<'_, '_>) {
        let chunk = self.pool.as_mut().and_then(Pool::give_chunk);
        let seen = self.plant.adapter.take(context.now);
        let (_, end) = self.plant.control(seen);
        let at = self.plant.answer(context.now, end, sizes::REPLY);
        self.post(at, Parcel::ToClient { owner: Owner::NOBODY, client, input: ToClient::chunk(chunk) }, context);
    }

    fn io_is_done(
        &mut self,
        (owner, device, request): (Owner, u32, RequestId),
        work: &IoWork,
        done: &Done,
        context: Now<'_, '_>,
    ) {
        self.asks.reach_flash(context.now, owner, done);
        let place = &mut self.devices[device as usize];
        let answer = match work {
            IoWork::Operation(operation) => place.finish(operation, &self.shelf),
            IoWork::Run(contents) => {
                contents.iter().for_each(|(sector, content)| place.put(*sector, content.clone()));
                FlashAnswer::Done
            }
        };
        let (start, end) = self.plant.complete(context.now, device);
        self.asks.reach(start, owner, SpanKind::StorageQueue);
        self.asks.reach(end, owner, SpanKind::Stack);
        self.post(end, Parcel::IoDone { owner, device, request, answer, life: self.state.life }, context);
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
        let key = self.keys.key(number);
        let block = key.place(self.blocks).block;
        // Names of written values lie above those of keys, which what was there at first is named after.
        let value = (1 << 32) + request.id.0;
        let asked = AskedFor { client, key: number, block, operation: request.operation, value, id: request.id.0 };
        let owner = self.asks.begin(context.now, ticket, asked);
        if self.plan.design == spec::DesignName::NvmeOf || self.plan.design == spec::DesignName::NvmeOfOffload {
            return self.bare_issue(owner, client, request, context);
        }
        let operation = match request.operation {
            Operation::Read => scalio::Operation::Get { key },
            _ => {
                let value = Token { id: value, bytes: self.keys.value_bytes };
                scalio::Operation::Update(scalio::RequestBody::Put { key, value, time_to_live: None })
            }
        };
        let input = ToClient::Issue { ticket: u64::from(ticket.0), operation };
        self.run_client(client, owner, Some(input), context);
    }

    /// A request has ended for its client.
    fn done(&mut self, ticket: u32, outcome: &scalio::Outcome<Token>, source: scalio::Source, context: Now<'_, '_>) {
        let Some(ask) = self.asks.end(context.now, ticket) else { return };
        self.count(&ask, outcome, source);
        self.remember(&ask, outcome, context.now);
        let is_done = matches!(
            outcome,
            scalio::Outcome::Value(_)
                | scalio::Outcome::Stored
                | scalio::Outcome::Deleted { .. }
                | scalio::Outcome::Differs { .. }
        );
        let outcome = if is_done { Outcome::Finished } else { Outcome::Null };
        context.end(Ended { ticket: Ticket(ticket), outcome, start: ask.start, end: context.now, spans: ask.spans });
    }

    fn count(&mut self, ask: &asks::Ask, outcome: &scalio::Outcome<Token>, source: scalio::Source) {
        let is_get = ask.asked.operation == Operation::Read;
        self.counts.gets += u64::from(is_get);
        self.counts.puts += u64::from(!is_get);
        self.counts.hits += u64::from(is_get && source == scalio::Source::Cache);
        match outcome {
            scalio::Outcome::Refused(_) => self.counts.refused += 1,
            scalio::Outcome::Unknown => self.counts.unknown += 1,
            scalio::Outcome::Unavailable => self.counts.unavailable += 1,
            _ => {}
        }
    }

    fn bare_end(&mut self, ticket: u32, context: Now<'_, '_>) {
        let Some(ask) = self.asks.end(context.now, ticket) else { return };
        self.counts.gets += 1;
        context.end(Ended {
            ticket: Ticket(ticket),
            outcome: Outcome::Finished,
            start: ask.start,
            end: context.now,
            spans: ask.spans,
        });
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
            ScalioEvent::WakeClient(client) => {
                self.alarms.clients[client as usize].ring(context.now);
                self.run_client(client, Owner::NOBODY, None, context);
            }
            ScalioEvent::WakeServer(device) => {
                self.alarms.servers[device as usize].ring(context.now);
                self.run_server(device, None, context);
            }
            ScalioEvent::Fault(place) => self.fault(place, context),
            ScalioEvent::Fabric => self.fabric_is_due(context),
        }
    }

    /// Not known in closed form: what a request takes depends on where its key is.
    fn unloaded(&self, _: Operation, _: Bytes) -> Span {
        Span::ZERO
    }

    fn link_busy(&self, out: &mut Vec<Span>) {
        self.plant.busy(out);
        if let Some(fabric) = &self.fabric {
            fabric.busy(out);
        }
    }

    fn dropped_packets(&self) -> u64 {
        0
    }

    fn extra(&self, out: &mut BTreeMap<String, f64>) {
        self.facts(out);
    }
}
