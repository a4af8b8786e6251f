//! A store whose every step is taken by chance: words of a block are read one by one while others
//! write them, sectors are written one by one, messages are lost, doubled and overtaken, clients
//! sleep and die, servers crash and recover.

use super::device::{self, Device};
use super::ledger::{Ledger, Open, Wanted};
use super::memory::{self, Job, Memory};
use super::{Faults, Kind};
use base::{Program, Seed, Span, Stream, Time};
use scalio::layout::{decode_reply, decode_request, encode_reply, encode_request};
use scalio::{
    Client, ClientConfig, ClientId, ClientIn, ClientOut, Condition, Key, Operation, Outcome, Reply, Request,
    RequestBody, Server, ServerConfig, ServerIn, ServerOut, Token, VALUE_BYTES_MAX,
};
use std::collections::{BTreeMap, VecDeque};

/// A client, with what it has open by ticket.
struct Seat {
    client: Client<Token>,
    open: BTreeMap<u64, Open>,
    sleeps_until: Time,
    alive: bool,
}

/// Inputs that have not arrived.
enum Parcel {
    ToServer { device: u32, bytes: Vec<u8> },
    ToClient { client: usize, bytes: Vec<u8> },
    Answer { place: usize, input: Input },
}

/// An answer of memory or flash, for a client or a server.
pub enum Input {
    Client(ClientIn<Token>),
    Server(ServerIn<Token>),
}

/// All clients and servers, and what is between them.
pub struct World {
    kind: Kind,
    random: Stream,
    now: Time,
    step: u64,
    memory: Memory,
    devices: Vec<Device>,
    seats: Vec<Seat>,
    servers: Vec<Server<Token>>,
    parcels: Vec<Parcel>,
    /// Operations on memory, of clients and then of servers, each in its order.
    jobs: Vec<VecDeque<Job>>,
    pub ledger: Ledger,
    next_ticket: u64,
    issued: u32,
    pub crashes: u32,
}

fn server_config(kind: &Kind, device: u32) -> ServerConfig {
    ServerConfig {
        device,
        devices: kind.devices,
        blocks: kind.blocks,
        protocol: kind.protocol,
        group_updates: kind.group_updates,
        group_wait: Span::us(3),
        groups_max: 3,
        zones: 14,
        zone_sectors: device::ZONE_SECTORS,
        reserve_zones: 4,
        compact_below: 11,
        volatile_cache: kind.volatile_cache,
        value_bytes_max: VALUE_BYTES_MAX,
        start_second: 0,
        hand_over: true,
    }
}

fn client_config(kind: &Kind, client: u16) -> ClientConfig {
    ClientConfig {
        client: ClientId(client),
        blocks: kind.blocks,
        devices: kind.devices,
        protocol: kind.protocol,
        lease: Span::us(300),
        retry_wait: if kind.reads_share { Span::us(20) } else { Span::us(2) },
        attempts_max: 500,
        share_waits: kind.reads_share,
        reply_timeout: Span::us(60),
        sends_max: 4,
        touch: true,
        start_second: 0,
    }
}

impl World {
    pub fn new(kind: Kind, seed: u64) -> World {
        let seats = (0..kind.clients).map(|client| Seat {
            client: Client::new(client_config(&kind, client)),
            open: BTreeMap::new(),
            sleeps_until: Time::ZERO,
            alive: true,
        });
        World {
            random: Seed(seed).stream("world"),
            now: Time::ZERO,
            step: 0,
            memory: Memory::new(kind.blocks, kind.slots),
            devices: (0..kind.devices).map(|_| Device::new(14)).collect(),
            seats: seats.collect(),
            servers: (0..kind.devices).map(|device| Server::new(server_config(&kind, device))).collect(),
            parcels: Vec::new(),
            jobs: (0..usize::from(kind.clients) + kind.devices as usize).map(|_| VecDeque::new()).collect(),
            ledger: Ledger::default(),
            next_ticket: 0,
            issued: 0,
            crashes: 0,
            kind,
        }
    }

    /// Plays to the end, then reads every key once more.
    pub fn play(&mut self) {
        let mut steps = 0u32;
        while self.issued < self.kind.operations || self.is_busy() {
            self.take_step();
            steps += 1;
            assert!(steps < 3_000_000, "nothing ends: {:?}", self.kind);
        }
        self.kind.faults = Faults::default();
        for key in 0..self.kind.keys {
            self.last_reads(key);
        }
        self.check_space();
    }

    fn last_reads(&mut self, key: u8) {
        let reader = self.seats.iter().position(|seat| seat.alive).expect("one client never dies");
        self.issue(reader, key, Wanted::Get);
        while self.is_busy() {
            self.take_step();
        }
    }

    fn is_busy(&self) -> bool {
        let clients = self.seats.iter().any(|seat| seat.alive && !seat.open.is_empty());
        clients
            || !self.parcels.is_empty()
            || self.jobs.iter().any(|jobs| !jobs.is_empty())
            || self.devices.iter().any(Device::is_busy)
            || self.servers.iter().any(|server| !server.is_idle() && server.next_wakeup().is_some())
    }

    fn chance(&mut self, of_thousand: u64) -> bool {
        of_thousand > 0 && self.random.below(1000) < of_thousand
    }

    fn take_step(&mut self) {
        self.step += 1;
        self.now += Span::ns(self.random.below(400));
        self.strike();
        match self.random.below(10) {
            0 => self.issue_something(),
            1 | 2 => self.deliver(),
            3..=6 => self.progress_memory(),
            7 | 8 => self.progress_flash(),
            _ => self.wake(),
        }
    }

    fn strike(&mut self) {
        let faults = self.kind.faults;
        if self.chance(faults.sleep) {
            let seat = self.random.below(self.seats.len() as u64) as usize;
            self.seats[seat].sleeps_until = self.now + Span::us(self.random.below(1500));
        }
        if self.chance(faults.death) {
            // The last one lives, so that a client is left to read.
            let seat = self.random.below(self.seats.len() as u64 - 1) as usize;
            self.die(seat);
        }
        if self.chance(faults.crash) {
            let device = self.random.below(self.kind.devices.into()) as usize;
            self.crash(device);
        }
    }

    /// What it had posted may still be carried out, or not.
    fn die(&mut self, seat: usize) {
        if !std::mem::replace(&mut self.seats[seat].alive, false) {
            return;
        }
        let keep = self.random.below(self.jobs[seat].len() as u64 + 1) as usize;
        self.jobs[seat].truncate(keep);
        let open = std::mem::take(&mut self.seats[seat].open);
        open.into_values().for_each(|open| self.ledger.unknown(open));
    }

    /// The server is gone with all its requests. Any part of the data that its device had not made
    /// durable may be kept. Memory may survive.
    fn crash(&mut self, device: usize) {
        self.crashes += 1;
        let place = self.seats.len() + device;
        self.jobs[place].clear();
        self.parcels.retain(|parcel| !matches!(parcel, Parcel::Answer { place: at, .. } if *at == place));
        self.devices[device].crash(&mut self.random);
        if self.random.below(2) == 0 {
            self.memory.scramble(device as u32, self.kind.devices);
        }
        let mut out = Vec::new();
        self.servers[device] = Server::recover(server_config(&self.kind, device as u32), &mut out);
        self.carry_server(device, out);
    }

    fn issue_something(&mut self) {
        let seat = self.random.below(self.seats.len() as u64) as usize;
        if self.issued >= self.kind.operations
            || !self.seats[seat].alive
            || self.seats[seat].open.len() >= self.kind.depth
        {
            return;
        }
        self.issued += 1;
        let key = self.random.below(self.kind.keys.into()) as u8;
        let new = Token { id: self.next_ticket + 1, bytes: 8 + self.random.below(57) as u32 };
        let is_read = self.kind.reads_share && self.random.below(3) > 0;
        let wanted = match self.random.below(10) {
            _ if is_read => Wanted::Get,
            0..=4 => Wanted::Get,
            5..=7 => Wanted::Put { value: new },
            8 => Wanted::Delete,
            _ => {
                // A value that was written lately, so that some compare-and-swaps swap; or none.
                let back = self.random.below(3) as usize;
                Wanted::CompareAndSwap { expected: self.ledger.recently_put(key, back), new }
            }
        };
        self.issue(seat, key, wanted);
        if is_read {
            // Others want the same at about the same time.
            let more = self.kind.depth - self.seats[seat].open.len();
            (0..more).for_each(|_| self.issue(seat, key, Wanted::Get));
        }
    }

    fn issue(&mut self, seat: usize, key: u8, wanted: Wanted) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let name = key_of(key);
        let operation = match wanted {
            Wanted::Get => Operation::Get { key: name },
            Wanted::Put { value } => Operation::Update(RequestBody::Put {
                key: name,
                value,
                time_to_live: None,
                condition: Condition::Always,
            }),
            Wanted::Delete => Operation::Update(RequestBody::Delete { key: name }),
            Wanted::CompareAndSwap { expected, new } => {
                Operation::Update(RequestBody::CompareAndSwap { key: name, expected, new })
            }
        };
        self.ledger.asked(wanted);
        self.seats[seat].open.insert(ticket, Open { client: seat, key, wanted, start: self.step });
        self.give_client(seat, ClientIn::Issue { ticket, operation });
    }

    fn deliver(&mut self) {
        if self.parcels.is_empty() {
            return;
        }
        let at = self.random.below(self.parcels.len() as u64) as usize;
        if let Parcel::Answer { place, .. } = &self.parcels[at]
            && self.seats.get(*place).is_some_and(|seat| seat.sleeps_until > self.now)
        {
            return;
        }
        match self.parcels.swap_remove(at) {
            Parcel::Answer { place, input: Input::Client(input) } => self.give_client(place, input),
            Parcel::Answer { place, input: Input::Server(input) } => self.give_server(place - self.seats.len(), input),
            Parcel::ToServer { device, bytes } => {
                if !self.survives(|bytes| Parcel::ToServer { device, bytes }, &bytes) {
                    return;
                }
                let request: Request<Token> = decode_request(&bytes).expect("what was sent comes whole");
                self.give_server(device as usize, ServerIn::Request(request));
            }
            Parcel::ToClient { client, bytes } => {
                if self.seats[client].sleeps_until > self.now {
                    return self.parcels.push(Parcel::ToClient { client, bytes });
                }
                if !self.survives(|bytes| Parcel::ToClient { client, bytes }, &bytes) {
                    return;
                }
                let reply: Reply<Token> = decode_reply(&bytes).expect("what was sent comes whole");
                self.give_client(client, ClientIn::Reply(reply));
            }
        }
    }

    /// Returns whether a message arrives; a copy of it may arrive again.
    fn survives(&mut self, again: impl FnOnce(Vec<u8>) -> Parcel, bytes: &[u8]) -> bool {
        if self.chance(self.kind.faults.double) {
            self.parcels.push(again(bytes.to_vec()));
        }
        !self.chance(self.kind.faults.lose)
    }

    fn progress_memory(&mut self) {
        let place = self.random.below(self.jobs.len() as u64) as usize;
        let ready = memory::ready(&self.jobs[place]);
        if ready.is_empty() {
            return;
        }
        let at = ready[self.random.below(ready.len() as u64) as usize];
        let Some((request, answer)) = self.memory.progress(&mut self.jobs[place][at], &mut self.random) else { return };
        self.jobs[place].remove(at);
        let Some(request) = request else { return };
        let input = if place < self.seats.len() {
            Input::Client(ClientIn::Memory { request, answer })
        } else {
            Input::Server(ServerIn::Memory { request, answer })
        };
        self.parcels.push(Parcel::Answer { place, input });
    }

    fn progress_flash(&mut self) {
        let device = self.random.below(self.kind.devices.into()) as usize;
        if let Some((place, input)) = self.devices[device].progress(&mut self.random, self.kind.volatile_cache) {
            let place = place.unwrap_or(self.seats.len() + device);
            self.parcels.push(Parcel::Answer { place, input });
        }
    }

    fn wake(&mut self) {
        let places = self.seats.len() + self.servers.len();
        let place = self.random.below(places as u64) as usize;
        let mut out = Vec::new();
        match self.seats.get_mut(place) {
            Some(seat) if !seat.alive || seat.sleeps_until > self.now => {}
            Some(seat) => {
                seat.client.on_wakeup(self.now, &mut out);
                self.carry_client(place, out);
            }
            None => {
                let mut out = Vec::new();
                let device = place - self.seats.len();
                self.servers[device].on_wakeup(self.now, &mut out);
                self.carry_server(device, out);
            }
        }
    }

    fn give_client(&mut self, seat: usize, input: ClientIn<Token>) {
        if !self.seats[seat].alive {
            return;
        }
        let mut out = Vec::new();
        self.seats[seat].client.on(self.now, input, &mut out);
        self.carry_client(seat, out);
    }

    fn carry_client(&mut self, seat: usize, out: Vec<ClientOut<Token>>) {
        for action in out {
            match action {
                ClientOut::Memory { request, block, operation } => {
                    self.jobs[seat].push_back(Job::new(request, block, operation))
                }
                ClientOut::Flash { request, device, operation } => {
                    self.devices[device as usize].ask(Some(seat), request, operation)
                }
                ClientOut::Send { device, request } => {
                    self.parcels.push(Parcel::ToServer { device, bytes: encode_request(&request) })
                }
                ClientOut::Done { ticket, outcome, .. } => self.done(seat, ticket, outcome),
            }
        }
    }

    fn give_server(&mut self, device: usize, input: ServerIn<Token>) {
        let mut out = Vec::new();
        self.servers[device].on(self.now, input, &mut out);
        self.carry_server(device, out);
    }

    fn carry_server(&mut self, device: usize, out: Vec<ServerOut<Token>>) {
        let place = self.seats.len() + device;
        for action in out {
            match action {
                ServerOut::Memory { request, block, operation } => {
                    self.jobs[place].push_back(Job::new(Some(request), block, operation))
                }
                ServerOut::Flash { request, operation } => self.devices[device].ask(None, request, operation),
                ServerOut::Reply(reply) => {
                    let client = usize::from(reply.client.0);
                    self.parcels.push(Parcel::ToClient { client, bytes: encode_reply(&reply) });
                }
            }
        }
    }

    fn done(&mut self, seat: usize, ticket: u64, outcome: Outcome<Token>) {
        match self.seats[seat].open.remove(&ticket) {
            Some(open) => self.ledger.answered(open, outcome, self.step),
            None => self.ledger.complain(format!("ticket {ticket} ended twice")),
        }
    }

    /// The server counts exactly the listed records of its segments as live, regardless of
    /// compaction.
    fn check_space(&mut self) {
        while self.is_busy() {
            self.take_step();
        }
        for (device, server) in self.servers.iter().enumerate() {
            let pointers = (device as u32..self.kind.blocks)
                .step_by(self.kind.devices as usize)
                .filter_map(|block| server.pointer(block));
            let listed: u64 = pointers.map(|pointer| self.devices[device].live_of(pointer)).sum();
            if listed != server.live_bytes() {
                self.ledger.complain(format!("{listed} bytes are listed and {} counted", server.live_bytes()));
            }
        }
    }

    pub fn zones_reclaimed(&self) -> u64 {
        self.servers.iter().map(|server| server.counters().zones_reclaimed).sum()
    }
    pub fn handed_over(&self) -> u64 {
        self.servers.iter().map(|server| server.counters().handed_over).sum()
    }
    pub fn hits(&self) -> u64 {
        self.seats.iter().map(|seat| seat.client.counters().hits).sum()
    }
    pub fn shared(&self) -> u64 {
        self.seats.iter().map(|seat| seat.client.counters().shared).sum()
    }
}

fn key_of(number: u8) -> Key {
    Key::new(&[b'k', number]).expect("two bytes")
}
