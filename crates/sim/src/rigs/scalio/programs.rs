//! The programs of each design, what they are told, and what becomes of what they decide.

use super::asks::{Owner, Sent, Submitted};
use super::inputs::{ToClient, ToServer};
use super::remote::RemoteOperation;
use super::{InFlight, IoWork, Now, ScalioEvent, ScalioRig, sizes};
use crate::rigs::seat::Seat;
use base::Time;
use hardware::ssd::CommandKind;
use record::{Place, SpanKind};
use scalio::baseline::{ditto, leed, nvme_of};
use scalio::{Client, ClientOut, FlashAnswer, FlashOperation, Reply, RequestId, Server, ServerOut, Token};

/// Programs of clients, and of the box: one server for each device.
pub enum Programs {
    /// Scalio's.
    Scalio { clients: Vec<Seat<Client<Token>>>, servers: Vec<Seat<Server<Token>>> },
    /// LEED's.
    Leed { clients: Vec<Seat<leed::Client<Token>>>, servers: Vec<Seat<leed::Server<Token>>> },
    /// Ditto's clients, and LEED's servers.
    Ditto { clients: Vec<Seat<ditto::Client<Token>>>, servers: Vec<Seat<leed::Server<Token>>> },
    /// An NVMe over Fabrics target, and no store.
    Bare(Seat<nvme_of::Target>),
}

impl Programs {
    /// Returns the time for which a wake-up event of a client has to be scheduled, if one has to.
    fn arm_client(&mut self, client: u32, now: Time) -> Option<Time> {
        match self {
            Programs::Scalio { clients, .. } => clients[client as usize].arm(now),
            Programs::Leed { clients, .. } => clients[client as usize].arm(now),
            Programs::Ditto { clients, .. } => clients[client as usize].arm(now),
            Programs::Bare(_) => None,
        }
    }

    /// The same of a server.
    fn arm_server(&mut self, device: u32, now: Time) -> Option<Time> {
        match self {
            Programs::Scalio { servers, .. } => servers[device as usize].arm(now),
            Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } => servers[device as usize].arm(now),
            Programs::Bare(_) => None,
        }
    }

    /// Takes a wake-up event of a client. Returns whether no earlier one has overtaken it.
    fn ring_client(&mut self, client: u32, now: Time) -> bool {
        match self {
            Programs::Scalio { clients, .. } => clients[client as usize].ring(now),
            Programs::Leed { clients, .. } => clients[client as usize].ring(now),
            Programs::Ditto { clients, .. } => clients[client as usize].ring(now),
            Programs::Bare(_) => false,
        }
    }

    /// The same of a server.
    fn ring_server(&mut self, device: u32, now: Time) -> bool {
        match self {
            Programs::Scalio { servers, .. } => servers[device as usize].ring(now),
            Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } => servers[device as usize].ring(now),
            Programs::Bare(_) => false,
        }
    }
}

impl ScalioRig {
    /// Tells a client's program, or wakes it. What it then wants belongs to `owner`, or to the
    /// request that is about the same block.
    pub(super) fn run_client(
        &mut self,
        client: u32,
        owner: Owner,
        input: Option<(Sent, ToClient)>,
        context: Now<'_, '_>,
    ) {
        let Some(input) = self.unless_stopped(client, owner, input) else { return };
        if let Some((sent, input)) = &input {
            self.answer_is_seen(owner, *sent, input, context.now);
            self.asks.came(owner);
            self.asks.pass(owner, context.now);
        }
        let input = input.map(|(_, input)| input);
        let (now, place) = (context.now, client as usize);
        match &mut self.programs {
            Programs::Scalio { clients, .. } => {
                let input = match input.map(ToClient::scalio) {
                    Some(None) => return,
                    input => input.flatten(),
                };
                let mut out = clients[place].act(now, input);
                out.drain(..).for_each(|action| self.obey_client(client, owner, action, context));
                if let Programs::Scalio { clients, .. } = &mut self.programs {
                    clients[place].recycle(out);
                }
            }
            Programs::Leed { clients, .. } => {
                let Some(input) = input.and_then(ToClient::leed) else { return };
                let mut out = clients[place].tell(now, input);
                out.drain(..).for_each(|action| self.obey_leed_client(client, owner, action, context));
                if let Programs::Leed { clients, .. } = &mut self.programs {
                    clients[place].recycle(out);
                }
            }
            Programs::Ditto { clients, .. } => {
                let Some(input) = input.and_then(ToClient::ditto) else { return };
                let mut out = clients[place].tell(now, input);
                out.drain(..).for_each(|action| self.obey_ditto(client, owner, action, context));
                if let Programs::Ditto { clients, .. } = &mut self.programs {
                    clients[place].recycle(out);
                }
            }
            Programs::Bare(_) => return,
        }
        if let Some(at) = self.programs.arm_client(client, now) {
            context.at(at, ScalioEvent::WakeClient(client));
        }
    }

    /// A wake-up event of a client's program.
    pub(super) fn wake_client(&mut self, client: u32, context: Now<'_, '_>) {
        if self.programs.ring_client(client, context.now) {
            self.run_client(client, Owner::NOBODY, None, context);
        }
    }

    /// The same of a server's program.
    pub(super) fn wake_server(&mut self, device: u32, context: Now<'_, '_>) {
        if self.programs.ring_server(device, context.now) {
            self.run_server(device, None, context);
        }
    }

    /// The way back, of which a core or the box's memory had a part.
    fn answer_is_seen(&mut self, owner: Owner, sent: Sent, input: &ToClient, now: Time) {
        let mut since = sent.since;
        if let Some(worked) = sent.worked {
            self.asks.claim_work(owner, since, worked);
            since = worked.1;
        }
        if let ToClient::Memory { .. } | ToClient::Pool { .. } = input {
            let read = now.min(since + self.memory_takes(input));
            self.asks.claim(owner, SpanKind::Memory, since, read, Place::Memory(0));
            since = read;
        }
        self.asks.claim(owner, SpanKind::Return, since, now, Place::Link(0));
    }

    fn obey_client(&mut self, client: u32, owner: Owner, action: ClientOut<Token>, context: Now<'_, '_>) {
        match action {
            ClientOut::Memory { request, block, operation } => {
                let owner = self.owner_or(owner, client, block, context.now);
                if request.is_some() {
                    self.asks.expect(owner);
                }
                if self.wire_check {
                    sizes::check_memory(&operation);
                }
                let since = context.now;
                self.begin_remote(RemoteOperation { owner, client, request, block, operation, since }, context);
            }
            ClientOut::Flash { request, device, operation } => {
                self.asks.expect(owner);
                let at = self.hardware.post(context.now, client, sizes::COMMAND);
                let since = context.now;
                self.post(at, InFlight::Offload { owner, client, request, device, operation, since }, context);
            }
            ClientOut::Send { device, request } => {
                let owner = self.repeated(owner, client, request.number, context.now);
                self.asks.note_call(client, request.number, owner);
                let (request, bytes) = sizes::of_request(request, self.wire_check);
                let at = self.hardware.post(context.now, client, bytes);
                let input = ToServer::Request(request);
                self.post(at, InFlight::Message { owner, client, device, input, since: context.now }, context);
            }
            ClientOut::Done { ticket, outcome, source } => self.done(owner, ticket as u32, &outcome, source, context),
        }
    }

    /// Of a program that woke by itself: the request that is about this block, which has waited
    /// until now.
    fn owner_or(&mut self, owner: Owner, client: u32, block: u32, now: Time) -> Owner {
        if owner != Owner::NOBODY {
            return owner;
        }
        let owner = self.asks.sleeper(client, block);
        self.asks.claim_wait(owner, SpanKind::Schedule, now);
        owner
    }

    /// Whose request this is, when it is sent again.
    fn repeated(&mut self, owner: Owner, client: u32, number: u64, now: Time) -> Owner {
        if owner != Owner::NOBODY {
            self.asks.expect(owner);
            return owner;
        }
        let owner = self.asks.of_call(client, number);
        self.asks.fork(owner);
        self.asks.claim_wait(owner, SpanKind::Schedule, now);
        owner
    }

    fn obey_leed_client(&mut self, client: u32, owner: Owner, action: leed::ClientOut<Token>, context: Now<'_, '_>) {
        match action {
            leed::ClientOut::Send { device, call } => self.send_call(client, owner, device, call, context),
            leed::ClientOut::Done { ticket, outcome, source } => {
                self.done(owner, ticket as u32, &outcome, source, context)
            }
        }
    }

    fn obey_ditto(&mut self, client: u32, owner: Owner, action: ditto::ClientOut<Token>, context: Now<'_, '_>) {
        match action {
            ditto::ClientOut::Send { device, call } => self.send_call(client, owner, device, call, context),
            ditto::ClientOut::Pool { request, operation } => {
                let at = self.hardware.post(context.now, client, sizes::REQUEST.max(operation.carried_bytes()));
                let since = context.now;
                self.post(at, InFlight::PoolVerb { owner, client, request, operation, since }, context);
            }
            ditto::ClientOut::AskChunk => {
                let at = self.hardware.post(context.now, client, sizes::COMMAND);
                self.post(at, InFlight::AskChunk { client }, context);
            }
            ditto::ClientOut::Done { ticket, outcome, source } => {
                self.done(owner, ticket as u32, &outcome, source, context)
            }
        }
    }

    fn send_call(&mut self, client: u32, owner: Owner, device: u32, call: leed::Call<Token>, context: Now<'_, '_>) {
        self.asks.note_call(client, call.number, owner);
        let (call, bytes) = sizes::of_call(call, self.wire_check);
        let at = self.hardware.post(context.now, client, bytes);
        let (input, since) = (ToServer::Call(call), context.now);
        self.post(at, InFlight::Message { owner, client, device, input, since }, context);
    }

    /// Tells a server's program, or wakes it.
    pub(super) fn run_server(&mut self, device: u32, input: Option<(Owner, ToServer)>, context: Now<'_, '_>) {
        if self.state.is_down {
            return;
        }
        let (now, place) = (context.now, device as usize);
        let owner = input.as_ref().map_or(Owner::NOBODY, |(owner, _)| *owner);
        let input = input.map(|(_, input)| input);
        match &mut self.programs {
            Programs::Scalio { servers, .. } => {
                let groups = servers[place].counters().groups;
                let mut out = servers[place].act(now, input.and_then(ToServer::scalio));
                let formed = servers[place].counters().groups - groups;
                self.obey_server(device, formed, &mut out, context);
                if let Programs::Scalio { servers, .. } = &mut self.programs {
                    servers[place].recycle(out);
                }
            }
            Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } => {
                let Some(input) = input.and_then(ToServer::leed) else { return };
                let mut out = servers[place].tell(now, input);
                self.obey_leed_server(device, owner, &mut out, context);
                if let Programs::Leed { servers, .. } | Programs::Ditto { servers, .. } = &mut self.programs {
                    servers[place].recycle(out);
                }
            }
            Programs::Bare(_) => return,
        }
        if let Some(at) = self.programs.arm_server(device, now) {
            context.at(at, ScalioEvent::WakeServer(device));
        }
    }

    /// A group's I/Os belong to several requests: what they take counts as waiting in the box.
    pub(super) fn obey_server(
        &mut self,
        device: u32,
        groups: u64,
        out: &mut Vec<ServerOut<Token>>,
        context: Now<'_, '_>,
    ) {
        for _ in 0..groups {
            self.hardware.group(context.now, device);
        }
        let mut operations = Vec::new();
        for action in out.drain(..) {
            match action {
                ServerOut::Memory { request, block, operation } => operations.push((request, block, operation)),
                ServerOut::Flash { request, operation } => {
                    self.submit(Owner::NOBODY, device, request, IoWork::Operation(operation), context);
                }
                ServerOut::Reply(reply) => self.reply(reply, context),
            }
        }
        if !operations.is_empty() {
            let (_, end) = self.hardware.memory(context.now, device, operations.len() as u64);
            self.post(end, InFlight::Local { device, operations, life: self.state.life }, context);
        }
    }

    /// What follows an answer within one call of the program belongs to another request, and nobody
    /// says to which.
    fn obey_leed_server(
        &mut self,
        device: u32,
        owner: Owner,
        out: &mut Vec<leed::ServerOut<Token>>,
        context: Now<'_, '_>,
    ) {
        let mut owner = owner;
        for action in out.drain(..) {
            match action {
                leed::ServerOut::Flash { request, operation } => {
                    self.submit(owner, device, request, IoWork::Operation(operation), context);
                }
                leed::ServerOut::WriteRun { request, contents, .. } => {
                    self.submit(Owner::NOBODY, device, request, IoWork::Run(contents), context);
                }
                leed::ServerOut::Answer(answer) => {
                    owner = Owner::NOBODY;
                    self.answer(answer, context);
                }
            }
        }
    }

    fn submit(&mut self, owner: Owner, device: u32, request: RequestId, work: IoWork, context: Now<'_, '_>) {
        self.asks.io_begins(owner);
        let worked = self.hardware.submit(context.now, device);
        let submitted = Submitted { since: self.asks.since(owner).unwrap_or(context.now), worked };
        if self.wire_check {
            sizes::check_flash(&work);
        }
        let (kind, extent) = shape(&work);
        let done = self.store.devices[device as usize].submit(worked.1, kind, extent);
        let life = self.state.life;
        self.post(done.end, InFlight::Io { owner, device, request, work, submitted, done, life }, context);
    }

    pub(super) fn tell_io(
        &mut self,
        owner: Owner,
        device: u32,
        request: RequestId,
        answer: FlashAnswer<Token>,
        context: Now<'_, '_>,
    ) {
        self.run_server(device, Some((owner, ToServer::Flash { request, answer })), context);
    }

    fn reply(&mut self, reply: Reply<Token>, context: Now<'_, '_>) {
        let client = u32::from(reply.client.0);
        let (reply, bytes) = sizes::of_reply(reply, self.wire_check);
        let number = reply.number;
        self.send_back(client, number, bytes, ToClient::Reply(reply), context);
    }

    fn answer(&mut self, answer: leed::Answer<Token>, context: Now<'_, '_>) {
        let client = u32::from(answer.client.0);
        let (answer, bytes) = sizes::of_answer(answer, self.wire_check);
        let number = answer.number;
        self.send_back(client, number, bytes, ToClient::Answer(answer), context);
    }

    fn send_back(&mut self, client: u32, number: u64, bytes: u32, input: ToClient, context: Now<'_, '_>) {
        let owner = self.asks.end_call(client, number);
        self.asks.claim_wait(owner, SpanKind::StorageQueue, context.now);
        let worked = self.hardware.send(context.now, client);
        let at = self.hardware.answer(context.now, worked.1, bytes);
        let sent = Sent { since: context.now, worked: Some(worked) };
        self.post(at, InFlight::ToClient { owner, client, input, sent }, context);
    }
}

/// What a drive is asked for.
fn shape(work: &IoWork) -> (CommandKind, Option<scalio::Extent>) {
    match work {
        IoWork::Operation(operation) => {
            let kind = match operation {
                FlashOperation::ReadSegment { .. }
                | FlashOperation::ReadRecord { .. }
                | FlashOperation::ReadHead { .. }
                | FlashOperation::ReadKind { .. }
                | FlashOperation::Scan { .. }
                | FlashOperation::List { .. } => CommandKind::Read,
                FlashOperation::Write { .. } => CommandKind::Write,
                FlashOperation::Flush => CommandKind::Flush,
                FlashOperation::Trim { .. } => CommandKind::Trim,
            };
            (kind, operation.extent())
        }
        IoWork::Run(contents) => (CommandKind::Write, sizes::run_extent(contents)),
    }
}
