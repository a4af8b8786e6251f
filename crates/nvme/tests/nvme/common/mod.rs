//! A target with disks in memory, and hosts that speak to it: bytes go to and fro in portions that
//! a test chooses, time is the test's.
#![allow(dead_code)]

pub mod party;
pub mod raw;

use base::{Span, Time};
use nvme::initiator::{Action, HostEvent, Initiator, InitiatorConfig, Payload, Ticket};
use nvme::log::{AddressFamily, TransportSecurity};
use nvme::pdu::Digests;
use nvme::target::*;
use nvme::{Body, HostId, Nqn, Status, Text};
use std::collections::{BTreeMap, BTreeSet};

pub const BLOCK: usize = 512;
pub const PORT: PortId = PortId(1);
pub const OTHER_PORT: PortId = PortId(2);

pub fn subsystem() -> Nqn {
    Nqn::new("nqn.2014-08.org.rackweave:disk").unwrap()
}

pub fn host(number: u8) -> Nqn {
    Nqn::new(&format!("nqn.2014-08.org.rackweave:host{number}")).unwrap()
}

pub fn limits() -> TargetLimits {
    TargetLimits {
        connections_max: 8,
        controllers_max: 4,
        controllers_per_host_max: 4,
        io_queues_max: 2,
        queue_entries_max: 16,
        transfer_shift: 3,
        in_capsule_bytes: 4096,
        host_data_max: 4096,
        controller_data_max: 6000,
        ready_bytes_max: 8192,
        ready_open_max: 2,
        data_budget_bytes: 64 << 10,
        backlog_bytes_max: 16 << 10,
        pool_bytes_max: 1 << 20,
        handshake: Span::secs(5),
        idle: None,
        stall: Span::secs(30),
        keep_alive_100_ms: 1,
        events_max: 4,
        errors_max: 8,
        notices_max: 64,
    }
}

pub fn namespace(id: u32, blocks: u64) -> NamespaceConfig {
    NamespaceConfig {
        id,
        backend: BackendId(id),
        blocks,
        block_shift: 9,
        uuid: [id as u8; 16],
        nguid: [0; 16],
        eui64: [0; 8],
        group: 1,
        is_read_only: false,
        has_volatile_cache: true,
        keeps_reservations: true,
        lends: false,
        reservations: Reservations::default(),
    }
}

fn port(id: PortId) -> PortConfig {
    PortConfig {
        id,
        family: AddressFamily::Ipv4,
        address: Text::new("127.0.0.1").unwrap(),
        service: Text::new(&format!("{}", 4419 + id.0)).unwrap(),
        security: TransportSecurity::None,
    }
}

pub fn config() -> TargetConfig {
    TargetConfig {
        limits: limits(),
        ports: vec![port(PORT), port(OTHER_PORT)],
        subsystems: vec![SubsystemConfig {
            name: subsystem(),
            serial: Text::new("0001").unwrap(),
            model: Text::new("Rackweave").unwrap(),
            firmware: Text::new("0.1").unwrap(),
            hosts: HostAccess::Any,
            authentication: None,
            ports: BTreeSet::from([PORT, OTHER_PORT]),
            namespace_max: 16,
            namespaces: vec![namespace(1, 1024), namespace(2, 64)],
            paths: Vec::new(),
        }],
        is_strict: false,
    }
}

/// The same with backends in memory, which lend.
pub fn lending(mut config: TargetConfig) -> TargetConfig {
    for namespace in config.subsystems.iter_mut().flat_map(|subsystem| &mut subsystem.namespaces) {
        (namespace.lends, namespace.has_volatile_cache) = (true, false);
    }
    config
}

/// Disks in memory.
#[derive(Default)]
pub struct Disks {
    pub content: BTreeMap<BackendId, Vec<u8>>,
    pub persisted: Vec<Reservations>,
    pub flushes: u32,
    /// Every operation, in order, by its name.
    pub log: Vec<&'static str>,
}

fn bytes(range: BlockRange) -> std::ops::Range<usize> {
    let start = range.start as usize * BLOCK;
    start..start + range.blocks as usize * BLOCK
}

impl Disks {
    pub fn disk(&mut self, backend: BackendId) -> &mut Vec<u8> {
        self.content.entry(backend).or_insert_with(|| vec![0; 2048 * BLOCK])
    }

    pub fn carry_out(&mut self, request: IoRequest) -> IoResult {
        self.log.push(name(&request.operation));
        let disk = self.content.entry(request.backend).or_insert_with(|| vec![0; 2048 * BLOCK]);
        match request.operation {
            IoOperation::Read { range, mut buffer } | IoOperation::EndLoan { range, mut buffer } => {
                buffer.copy_from_slice(&disk[bytes(range)]);
                return IoResult { status: IoStatus::Done, buffer };
            }
            IoOperation::Write { range, data, .. } => {
                disk[bytes(range)].copy_from_slice(&data);
                return IoResult { status: IoStatus::Done, buffer: data };
            }
            IoOperation::Compare { range, data } => {
                let status = if disk[bytes(range)] == data { IoStatus::Done } else { IoStatus::Miscompare };
                return IoResult { status, buffer: data };
            }
            IoOperation::CompareAndWrite { range, expected, data, .. } => {
                let is_equal = disk[bytes(range)] == expected;
                if is_equal {
                    disk[bytes(range)].copy_from_slice(&data);
                }
                let status = if is_equal { IoStatus::Done } else { IoStatus::Miscompare };
                return IoResult { status, buffer: data };
            }
            // Nobody writes but this.
            IoOperation::Lend { .. } => {}
            IoOperation::WriteInput { .. } => unreachable!("its data were put in"),
            IoOperation::Flush => self.flushes += 1,
            IoOperation::WriteZeroes { range, .. } => disk[bytes(range)].fill(0),
            IoOperation::Deallocate { ranges } => ranges.into_iter().for_each(|range| disk[bytes(range)].fill(0)),
            IoOperation::Verify { .. } => {}
            IoOperation::Copy { start, sources, .. } => {
                let parts: Vec<u8> =
                    sources.iter().flat_map(|source| self.disk(source.backend)[bytes(source.range)].to_vec()).collect();
                let from = start as usize * BLOCK;
                self.disk(request.backend)[from..from + parts.len()].copy_from_slice(&parts);
            }
            IoOperation::PersistReservations { state } => self.persisted.push(state),
            IoOperation::Engine(operation) => return self.of_engine(operation),
        }
        IoResult::bare(IoStatus::Done)
    }

    /// What the engine would do where nothing fails; what it refuses is its own tests' affair.
    fn of_engine(&mut self, operation: EngineOperation) -> IoResult {
        match operation {
            EngineOperation::MultiCast { from, to, bytes } => {
                let at = from.address as usize;
                let data = self.disk(from.device.backend)[at..at + bytes as usize].to_vec();
                for place in to {
                    let at = place.address as usize;
                    self.disk(place.device.backend)[at..at + data.len()].copy_from_slice(&data);
                }
                IoResult::of_engine(IoStatus::Done, 0)
            }
            EngineOperation::AddWrite { device, first, second } => {
                let disk = self.disk(device.backend);
                let word = |at: u64| u64::from_le_bytes(disk[at as usize..at as usize + 8].try_into().unwrap());
                let sum = word(first).wrapping_add(word(second));
                disk[second as usize..second as usize + 8].copy_from_slice(&sum.to_le_bytes());
                IoResult::of_engine(IoStatus::Done, sum)
            }
        }
    }
}

/// A write from the input as one with data of its own.
pub fn with_data(operation: IoOperation, input: &[u8]) -> IoOperation {
    match operation {
        IoOperation::WriteInput { range, from, to, is_durable } => {
            IoOperation::Write { range, data: input[from..to].to_vec(), is_durable }
        }
        other => other,
    }
}

fn name(operation: &IoOperation) -> &'static str {
    match operation {
        IoOperation::Read { .. } => "read",
        IoOperation::Lend { .. } => "lend",
        IoOperation::EndLoan { .. } => "end loan",
        IoOperation::Write { .. } | IoOperation::WriteInput { .. } => "write",
        IoOperation::Flush => "flush",
        IoOperation::WriteZeroes { .. } => "write zeroes",
        IoOperation::Deallocate { .. } => "deallocate",
        IoOperation::Compare { .. } => "compare",
        IoOperation::CompareAndWrite { .. } => "compare and write",
        IoOperation::Verify { .. } => "verify",
        IoOperation::Copy { .. } => "copy",
        IoOperation::PersistReservations { .. } => "persist",
        IoOperation::Engine(EngineOperation::MultiCast { .. }) => "multicast",
        IoOperation::Engine(EngineOperation::AddWrite { .. }) => "add and write",
    }
}

pub fn initiator(number: u8) -> InitiatorConfig {
    InitiatorConfig {
        io_queues: 2,
        io_entries: 16,
        keep_alive_ms: 10_000,
        timeout: Span::secs(10),
        ..InitiatorConfig::new(host(number), HostId([number; 16]), subsystem())
    }
}

/// One host of the world.
pub struct Guest {
    pub initiator: Initiator,
    pub port: PortId,
    pub queues: BTreeMap<u16, ConnectionId>,
    pub events: Vec<HostEvent>,
}

/// A target, its disks, its hosts.
pub struct World {
    pub now: Time,
    pub target: Target,
    pub disks: Disks,
    pub guests: Vec<Guest>,
    /// Bytes that a socket moves at a time, in turn.
    pub portions: Vec<usize>,
    turn: usize,
    /// Whether backends answer at once.
    pub answers: bool,
    pub held: Vec<IoRequest>,
}

impl World {
    pub fn new(config: TargetConfig) -> Self {
        World {
            now: Time::secs(1),
            target: Target::new(config).unwrap(),
            disks: Disks::default(),
            guests: Vec::new(),
            portions: vec![usize::MAX],
            turn: 0,
            answers: true,
            held: Vec::new(),
        }
    }

    /// A world with one host that has connected.
    pub fn connected(config: TargetConfig, initiator: InitiatorConfig) -> Self {
        let mut world = World::new(config);
        world.join(initiator, PORT);
        world
    }

    /// A host connects; its place in `guests`.
    pub fn join(&mut self, initiator: InitiatorConfig, port: PortId) -> usize {
        self.join_as(Initiator::new(initiator), port)
    }

    pub fn join_as(&mut self, initiator: Initiator, port: PortId) -> usize {
        self.guests.push(Guest { initiator, port, queues: BTreeMap::new(), events: Vec::new() });
        self.settle();
        self.guests.len() - 1
    }

    pub fn portion(&mut self) -> usize {
        self.turn += 1;
        self.portions[self.turn % self.portions.len()].max(1)
    }

    /// Everything goes on until nothing moves.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// Whether anything moved.
    fn step(&mut self) -> bool {
        let mut moved = false;
        for guest in 0..self.guests.len() {
            moved |= self.act(guest) | self.carry_to_target(guest) | self.carry_to_host(guest);
            while let Some(event) = self.guests[guest].initiator.next_event() {
                self.guests[guest].events.push(event);
                moved = true;
            }
        }
        moved | self.work()
    }

    fn act(&mut self, guest: usize) -> bool {
        let Some(action) = self.guests[guest].initiator.next_action() else { return false };
        let place = &mut self.guests[guest];
        match action {
            Action::Open(queue) => match self.target.accept(self.now, place.port) {
                Ok(connection) => {
                    place.queues.insert(queue, connection);
                    place.initiator.opened(self.now, queue);
                }
                Err(_) => place.initiator.closed(self.now, queue),
            },
            Action::Close(queue) => {
                if let Some(connection) = self.guests[guest].queues.remove(&queue) {
                    self.target.closed(self.now, connection);
                }
            }
        }
        true
    }

    fn carry_to_target(&mut self, guest: usize) -> bool {
        let mut moved = false;
        for (queue, connection) in self.guests[guest].queues.clone() {
            let most = self.portion();
            let bytes: Vec<u8> = self.guests[guest].initiator.transmit(queue).flatten().copied().take(most).collect();
            if bytes.is_empty() {
                continue;
            }
            let taken = self.target.receive(self.now, connection, &bytes);
            self.work_on(&bytes);
            self.guests[guest].initiator.transmitted(queue, taken);
            moved |= taken > 0;
        }
        moved
    }

    fn carry_to_host(&mut self, guest: usize) -> bool {
        let mut moved = false;
        for (queue, connection) in self.guests[guest].queues.clone() {
            let most = self.portion();
            let bytes: Vec<u8> = self.target.transmit(connection).flatten().copied().take(most).collect();
            if !bytes.is_empty() {
                self.guests[guest].initiator.receive(self.now, queue, &bytes);
                self.target.transmitted(connection, bytes.len());
                moved = true;
            }
            self.target.end_loans(connection);
            if self.target.should_close(connection).is_some() {
                self.guests[guest].queues.remove(&queue);
                self.guests[guest].initiator.closed(self.now, queue);
                self.target.closed(self.now, connection);
                moved = true;
            }
        }
        moved
    }

    pub fn work(&mut self) -> bool {
        self.work_on(&[])
    }

    /// Backends answer; some requests are about bytes of `input`.
    pub fn work_on(&mut self, input: &[u8]) -> bool {
        let mut moved = false;
        while let Some(mut request) = self.target.next_io() {
            moved = true;
            request.operation = with_data(request.operation, input);
            if self.answers {
                self.answer(request);
            } else {
                self.held.push(request);
            }
        }
        moved
    }

    pub fn answer(&mut self, request: IoRequest) {
        let tag = request.tag;
        let result = self.disks.carry_out(request);
        self.target.complete(self.now, tag, result);
    }

    /// Backends answer what they held back.
    pub fn answer_held(&mut self) {
        for request in std::mem::take(&mut self.held) {
            self.answer(request);
        }
        self.settle();
    }

    pub fn submit(&mut self, guest: usize, queue: u16, namespace: u32, body: Body, payload: Payload) -> Ticket {
        self.guests[guest].initiator.submit(self.now, queue, namespace, body, payload).unwrap()
    }

    /// Submits and waits: status, result and data.
    pub fn run(
        &mut self,
        guest: usize,
        queue: u16,
        namespace: u32,
        body: Body,
        payload: Payload,
    ) -> (Status, u64, Vec<u8>) {
        let ticket = self.submit(guest, queue, namespace, body, payload);
        self.settle();
        self.ended(guest, ticket).expect("the command is over")
    }

    /// How a command ended, if it did.
    pub fn ended(&mut self, guest: usize, ticket: Ticket) -> Option<(Status, u64, Vec<u8>)> {
        let events = &mut self.guests[guest].events;
        let is_it = |event: &HostEvent| matches!(event, HostEvent::Completed { ticket: ended, .. } if *ended == ticket);
        let place = events.iter().position(is_it)?;
        match events.remove(place) {
            HostEvent::Completed { status, result, data, .. } => Some((status, result, data)),
            _ => None,
        }
    }

    /// Time passes, and everyone notices.
    pub fn pass(&mut self, span: Span) {
        self.now += span;
        self.target.on_wakeup(self.now);
        for guest in &mut self.guests {
            guest.initiator.on_wakeup(self.now);
        }
        self.settle();
    }

    pub fn is_ready(&self, guest: usize) -> bool {
        self.guests[guest].events.iter().any(|event| matches!(event, HostEvent::Ready { .. }))
    }
}
