//! A host that says what a test wants it to say, PDU by PDU.

use super::*;
use nvme::pdu::{Assembler, Framing, Header, InitializeRequest, Limits, Pdu, Receiver};
use nvme::property::{Configuration, ControllerStatus, PropertyId, Shutdown};
use nvme::{Command, Connect, ConnectAttributes, ConnectData, ConnectReply, Cqe, Fabrics, Sgl};

/// One connection of such a host.
pub struct Raw {
    pub connection: ConnectionId,
    pub framing: Framing,
    assembler: Assembler,
    pub pdus: Vec<Pdu>,
    pub controller: u16,
}

impl Raw {
    pub fn open(world: &mut World) -> Raw {
        let connection = world.target.accept(world.now, PORT).unwrap();
        let limits = Limits { in_capsule_max: 0, data_max: 1 << 20 };
        let assembler = Assembler::new(Receiver::Host, limits);
        Raw { connection, framing: Framing::INITIAL, assembler, pdus: Vec::new(), controller: 0 }
    }

    /// Bytes go to the target, all that it takes.
    pub fn bytes(&mut self, world: &mut World, bytes: &[u8]) -> usize {
        world.target.receive(world.now, self.connection, bytes)
    }

    /// As [`Self::bytes`], and backends answer in between.
    pub fn bring(&mut self, world: &mut World, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && world.target.wants_input(self.connection) {
            let taken = self.bytes(world, rest);
            world.work_on(rest);
            rest = &rest[taken..];
        }
    }

    pub fn send(&mut self, world: &mut World, header: &Header, data: &[u8]) {
        let mut bytes = Vec::new();
        self.framing.write(header, data, &mut bytes);
        assert_eq!(self.bytes(world, &bytes), bytes.len(), "the target takes it");
    }

    pub fn command(&mut self, world: &mut World, command: Command, data: &[u8]) {
        let header = Header::Command { entry: command.encode(), data_length: data.len() as u32 };
        self.send(world, &header, data);
    }

    /// Backends answer, and what the target says is read.
    pub fn listen(&mut self, world: &mut World) -> &mut Vec<Pdu> {
        world.work();
        let bytes: Vec<u8> = world.target.transmit(self.connection).flatten().copied().collect();
        world.target.transmitted(self.connection, bytes.len());
        self.hear(&bytes)
    }

    /// The target has said this.
    pub fn hear(&mut self, bytes: &[u8]) -> &mut Vec<Pdu> {
        let mut input = bytes;
        while let Some(pdu) = self.assembler.next(&mut input).unwrap() {
            if let Header::InitializeResponse(response) = pdu.header {
                self.framing = Framing { digests: response.digests, alignment: response.alignment };
                self.assembler.open(self.framing);
            }
            self.pdus.push(pdu);
        }
        &mut self.pdus
    }

    /// The completion of a command, if it came.
    pub fn completion(&mut self, world: &mut World, id: u16) -> Option<Cqe> {
        self.listen(world).iter().find_map(|pdu| match pdu.header {
            Header::Response(completion) if completion.id == id => Some(completion),
            _ => None,
        })
    }

    pub fn greet(&mut self, world: &mut World) {
        let request = InitializeRequest { alignment: 0, digests: Digests::default(), ready_max_minus_one: 0 };
        self.send(world, &Header::InitializeRequest(request), &[]);
        self.listen(world);
    }

    /// Connect as host 9; its completion.
    pub fn connect(&mut self, world: &mut World, queue: u16, size_minus_one: u16, controller: u16) -> Cqe {
        let data = ConnectData { host_id: HostId([9; 16]), controller, subsystem: subsystem(), host: host(9) };
        self.connect_as(world, (queue, size_minus_one, 0), &data.encode())
    }

    /// Connect of a queue with so many entries and this keep-alive timeout, with any data; its
    /// completion.
    pub fn connect_as(&mut self, world: &mut World, (queue, size_minus_one, ms): (u16, u16, u32), data: &[u8]) -> Cqe {
        let attributes = ConnectAttributes::empty();
        let connect = Connect { queue, size_minus_one, attributes, keep_alive_ms: ms };
        let descriptor = Sgl::InCapsule { offset: 0, length: 1024 };
        let command = Command { data: descriptor, ..Command::new(0xf001, Body::Fabrics(Fabrics::Connect(connect))) };
        self.command(world, command, data);
        let completion = self.completion(world, 0xf001).unwrap();
        self.controller = ConnectReply::decode(completion.result).controller;
        completion
    }

    /// The admin queue of a controller that is ready.
    pub fn admin(world: &mut World) -> Raw {
        let mut raw = Raw::open(world);
        raw.greet(world);
        assert!(raw.connect(world, 0, 31, 0xffff).status.is_success());
        raw.enable(world, 0);
        raw
    }

    /// Sets CC.EN with this CC.CSS.
    pub fn enable(&mut self, world: &mut World, command_set: u8) {
        let shutdown = Shutdown::None;
        let (sqe_size, cqe_size) = (6, 4);
        let on = Configuration { enable: true, command_set, page: 0, arbitration: 0, shutdown, sqe_size, cqe_size };
        let property = PropertyId::Configuration;
        let (offset, size, value) = (property.code(), property.size(), on.encode().into());
        let set = Body::Fabrics(Fabrics::PropertySet { offset, size, value });
        self.command(world, Command::new(0xf002, set), &[]);
        assert!(self.completion(world, 0xf002).unwrap().status.is_success());
    }

    /// CSTS.
    pub fn status(&mut self, world: &mut World) -> ControllerStatus {
        let get = Fabrics::PropertyGet { offset: PropertyId::Status.code(), size: PropertyId::Status.size() };
        self.pdus.clear();
        self.command(world, Command::new(0xf003, Body::Fabrics(get)), &[]);
        ControllerStatus::decode(self.completion(world, 0xf003).unwrap().result as u32).unwrap()
    }

    /// An I/O queue of a ready controller.
    pub fn queue(world: &mut World, admin: &Raw, queue: u16, size_minus_one: u16) -> Raw {
        let mut raw = Raw::open(world);
        raw.greet(world);
        assert!(raw.connect(world, queue, size_minus_one, admin.controller).status.is_success());
        raw
    }
}
