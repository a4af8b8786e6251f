//! The initiator against a scripted target that does what SPDK, nvmet and others do otherwise than
//! ours. It reads the host's bytes by offsets of its own, so that no codec of ours vouches for
//! itself.

use crate::common::{initiator, subsystem};
use base::Time;
use nvme::initiator::{Action, HostEvent, Initiator, InitiatorConfig, Payload};
use nvme::pdu::{ControllerData, Digests, Framing, Header, InitializeResponse, ReadyToTransfer};
use nvme::{Access, AccessFlags, Body, Cqe, Io, Nqn, Status};
use std::collections::BTreeMap;

/// What the target does otherwise.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// SQID of completions.
    sq_id: u16,
    /// SQHD of completions, where it is not the true one.
    sq_head: Option<u16>,
    /// CNTLID in Identify; Connect says 7.
    identity: u16,
    keep_alive_100_ms: u16,
    sgls: u32,
    capsule_16: u32,
    capsule_offset_16: u16,
    host_data_max: u32,
    /// Digests that it takes.
    digests: Digests,
    /// Reads end by SUCCESS, whatever was said of flow control.
    flags_success: bool,
    /// The last data have no LAST.
    lacks_last: bool,
    refuses_features: bool,
    /// Connections of I/O queues end with CC.SHN, or all of them.
    closes_at_shutdown: Option<Closes>,
    /// Fifth byte of the serial number.
    serial: u8,
    /// CAP.CSS, and what CC.CSS has to be then.
    command_sets: (u8, u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Closes {
    Io,
    All,
}

/// A target like most.
const PLAIN: Habits = Habits {
    sq_id: 0,
    sq_head: None,
    identity: 7,
    keep_alive_100_ms: 100,
    sgls: 0x10_0005,
    capsule_16: 260,
    capsule_offset_16: 0,
    host_data_max: 131_072,
    digests: Digests { header: true, data: true },
    flags_success: false,
    lacks_last: false,
    refuses_features: false,
    closes_at_shutdown: None,
    serial: b'0',
    command_sets: (1, 0),
};

/// As SPDK v26.05 is: every completion names queue 0, reads end by a flag, connections of I/O
/// queues end with the shutdown.
const SPDK: Habits = Habits { flags_success: true, closes_at_shutdown: Some(Closes::Io), ..PLAIN };

#[derive(Default)]
struct Connection {
    input: Vec<u8>,
    framing: Option<Framing>,
    /// Commands that were taken.
    taken: u32,
    entries: u32,
    /// The write whose data were asked for: its id, bytes that came.
    writing: Option<(u16, u32)>,
}

struct Peer {
    habits: Habits,
    connections: BTreeMap<u16, Connection>,
    output: BTreeMap<u16, Vec<u8>>,
    configuration: u32,
    keep_alives: u32,
    is_shut_down: bool,
    /// Data that came in capsules of I/O queues, and the longest H2CData.
    in_capsule: usize,
    longest: u32,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

impl Peer {
    fn say(&mut self, queue: u16, header: &Header, data: &[u8]) {
        let framing = self.connections[&queue].framing.unwrap_or(Framing::INITIAL);
        framing.write(header, data, self.output.entry(queue).or_default());
    }

    fn complete(&mut self, queue: u16, id: u16, status: Status, result: u64) {
        let connection = &self.connections[&queue];
        let true_head = (connection.taken % connection.entries.max(2)) as u16;
        let sq_head = self.habits.sq_head.unwrap_or(true_head);
        let completion = Cqe { result, sq_head, sq_id: self.habits.sq_id, id, status };
        self.say(queue, &Header::Response(completion), &[]);
    }

    fn hear(&mut self, queue: u16, bytes: &[u8]) {
        self.connections.get_mut(&queue).unwrap().input.extend(bytes);
        loop {
            let input = &mut self.connections.get_mut(&queue).unwrap().input;
            if input.len() < 8 || input.len() < word(input, 4) as usize {
                return;
            }
            let length = word(input, 4) as usize;
            let pdu: Vec<u8> = input.drain(..length).collect();
            match pdu[0] {
                0 => self.initialize(queue, &pdu),
                4 => self.command(queue, &pdu),
                6 => self.data(queue, &pdu),
                other => panic!("the host sent a PDU of type {other}: {pdu:02x?}"),
            }
        }
    }

    fn initialize(&mut self, queue: u16, pdu: &[u8]) {
        let Digests { header, data } = self.habits.digests;
        let digests = Digests { header: header && pdu[11] & 1 != 0, data: data && pdu[11] & 2 != 0 };
        let response = InitializeResponse { alignment: 0, digests, host_data_max: self.habits.host_data_max };
        self.say(queue, &Header::InitializeResponse(response), &[]);
        self.connections.get_mut(&queue).unwrap().framing = Some(Framing { digests, alignment: 0 });
    }

    fn command(&mut self, queue: u16, pdu: &[u8]) {
        self.connections.get_mut(&queue).unwrap().taken += 1;
        let (opcode, id, kind) = (pdu[8], half(pdu, 10), pdu[12]);
        match (opcode, queue) {
            (0x7f, _) => self.fabrics(queue, kind, id, pdu),
            (0x06, 0) => self.send(queue, id, &self.identity()),
            (0x09, 0) if self.habits.refuses_features && pdu[48] == 0x0b => {
                self.complete(0, id, Status::INVALID_FIELD, 0);
            }
            (0x09, 0) => self.complete(0, id, Status::SUCCESS, 0),
            (0x18, 0) => {
                self.keep_alives += 1;
                self.complete(0, id, Status::SUCCESS, 0);
            }
            (0x0c, 0) => {}
            (0x01, _) if pdu[47] == 0x5a => {
                self.connections.get_mut(&queue).unwrap().writing = Some((id, 0));
                let ready = ReadyToTransfer { command: id, tag: 3, offset: 0, length: word(pdu, 40) };
                self.say(queue, &Header::ReadyToTransfer(ready), &[]);
            }
            (0x01, _) => {
                self.in_capsule += word(pdu, 40) as usize;
                self.complete(queue, id, Status::SUCCESS, 0);
            }
            (0x02, _) => self.send(queue, id, &vec![0xa5; word(pdu, 40) as usize]),
            other => panic!("the host sent {other:02x?}"),
        }
    }

    fn fabrics(&mut self, queue: u16, kind: u8, id: u16, pdu: &[u8]) {
        let mut result = 0;
        match (kind, word(pdu, 52)) {
            (1, _) => {
                assert_eq!(half(pdu, 50), queue);
                self.connections.get_mut(&queue).unwrap().entries = u32::from(half(pdu, 52)) + 1;
                result = 7;
            }
            (4, 0) => result = 127 | 1 << 16 | 10 << 24 | u64::from(self.habits.command_sets.0) << 37,
            (4, _) => result = if self.is_shut_down { 1 << 3 | 1 } else { 1 },
            (0, 0x14) => {
                self.configuration = word(pdu, 56);
                self.is_shut_down = self.configuration >> 14 & 3 != 0;
            }
            other => panic!("the host sent fabrics command {other:?}"),
        }
        self.complete(queue, id, Status::SUCCESS, result);
    }

    /// Identify controller, by the offsets of Base 2.0, Figure 275.
    fn identity(&self) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[4..24].copy_from_slice(b"SPDK_00000000000001 ");
        page[8] = self.habits.serial;
        page[77] = 5;
        page[78..80].copy_from_slice(&self.habits.identity.to_le_bytes());
        page[320..322].copy_from_slice(&self.habits.keep_alive_100_ms.to_le_bytes());
        page[514..516].copy_from_slice(&128u16.to_le_bytes());
        page[516..520].copy_from_slice(&32u32.to_le_bytes());
        page[536..540].copy_from_slice(&self.habits.sgls.to_le_bytes());
        page[1792..1796].copy_from_slice(&self.habits.capsule_16.to_le_bytes());
        page[1796..1800].copy_from_slice(&1u32.to_le_bytes());
        page[1800..1802].copy_from_slice(&self.habits.capsule_offset_16.to_le_bytes());
        page
    }

    fn send(&mut self, queue: u16, command: u16, data: &[u8]) {
        let (is_last, is_success) = (!self.habits.lacks_last, self.habits.flags_success);
        let header = ControllerData { command, offset: 0, length: data.len() as u32, is_last, is_success };
        self.say(queue, &Header::ControllerData(header), data);
        if !is_success {
            self.complete(queue, command, Status::SUCCESS, 0);
        }
    }

    fn data(&mut self, queue: u16, pdu: &[u8]) {
        let (id, came) = self.connections.get_mut(&queue).unwrap().writing.unwrap();
        let (offset, length, is_last) = (word(pdu, 12), word(pdu, 16), pdu[1] & 4 != 0);
        assert_eq!((half(pdu, 8), half(pdu, 10), offset), (id, 3, came));
        self.longest = self.longest.max(length);
        self.connections.get_mut(&queue).unwrap().writing = Some((id, came + length));
        if is_last {
            self.complete(queue, id, Status::SUCCESS, 0);
        }
    }
}

/// A host and the target, and what the host has told.
struct Stage {
    host: Initiator,
    peer: Peer,
    now: Time,
    events: Vec<HostEvent>,
}

impl Stage {
    fn new(config: InitiatorConfig, habits: Habits) -> Self {
        let peer = Peer {
            habits,
            connections: BTreeMap::new(),
            output: BTreeMap::new(),
            configuration: 0,
            keep_alives: 0,
            is_shut_down: false,
            in_capsule: 0,
            longest: 0,
        };
        let mut stage = Stage { host: Initiator::new(config), peer, now: Time::secs(1), events: Vec::new() };
        stage.settle();
        stage
    }

    /// Bytes go to and fro until nothing moves.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some(action) = self.host.next_action() {
                moved = true;
                match action {
                    Action::Open(queue) => {
                        self.peer.connections.insert(queue, Connection::default());
                        self.host.opened(self.now, queue);
                    }
                    Action::Close(queue) => drop(self.peer.connections.remove(&queue)),
                }
            }
            let queues: Vec<u16> = self.peer.connections.keys().copied().collect();
            for queue in queues {
                let bytes: Vec<u8> = self.host.transmit(queue).flatten().copied().collect();
                self.host.transmitted(queue, bytes.len());
                self.peer.hear(queue, &bytes);
                moved |= !bytes.is_empty();
            }
            moved |= self.close();
            for (queue, bytes) in std::mem::take(&mut self.peer.output) {
                self.host.receive(self.now, queue, &bytes);
                moved = true;
            }
            self.events.extend(std::iter::from_fn(|| self.host.next_event()));
            if !moved {
                return;
            }
        }
    }

    /// Connections end with the shutdown. Whether any did.
    fn close(&mut self) -> bool {
        let Some(closes) = self.peer.habits.closes_at_shutdown.filter(|_| self.peer.is_shut_down) else { return false };
        let first = u16::from(closes == Closes::Io);
        let gone: Vec<u16> = self.peer.connections.keys().copied().filter(|queue| *queue >= first).collect();
        for queue in &gone {
            self.peer.connections.remove(queue);
            self.peer.output.remove(queue);
            self.host.closed(self.now, *queue);
        }
        !gone.is_empty()
    }

    fn is_ready(&self) -> bool {
        self.events.iter().any(|event| matches!(event, HostEvent::Ready { .. }))
    }

    fn tolerated(&self, what: &str) -> bool {
        self.events.iter().any(|event| format!("{event:?}") == format!("Tolerated({what})"))
    }

    fn run(&mut self, body: Io, payload: Payload) -> Status {
        let ticket = self.host.submit(self.now, 1, 1, Body::Io(body), payload).expect("the queue has room");
        self.settle();
        let ended = self.events.iter().rev().find_map(|event| match event {
            HostEvent::Completed { ticket: ended, status, .. } if *ended == ticket => Some(*status),
            _ => None,
        });
        ended.unwrap_or_else(|| panic!("{:?}", self.events.last()))
    }

    /// Reads, small writes and large ones, more of them than the queue has entries, and an end in
    /// order.
    fn works(&mut self) {
        assert!(self.is_ready(), "{:?}", self.events);
        let access = |blocks: u16| Access { start: 0, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() };
        for _ in 0..40 {
            assert_eq!(self.run(Io::Read(access(8)), Payload::ToHost(4096)), Status::SUCCESS);
            let (small, large) = (vec![1; 512], vec![1; 16 << 10]);
            assert_eq!(self.run(Io::Write(access(1)), Payload::ToController(small)), Status::SUCCESS);
            assert_eq!(self.run(Io::Write(access(32)), Payload::ToController(large)), Status::SUCCESS);
        }
        self.host.shut_down(self.now);
        self.settle();
        assert_eq!(self.events.last(), Some(&HostEvent::ShutDown));
    }
}

fn config(flow_control: bool) -> InitiatorConfig {
    InitiatorConfig { flow_control, keep_alive_ms: 5_000, ..initiator(1) }
}

#[test]
fn a_target_like_most_and_one_like_spdk_are_used() {
    for habits in [PLAIN, SPDK] {
        for flow_control in [false, true] {
            let mut stage = Stage::new(config(flow_control), habits);
            stage.works();
            assert_eq!(stage.tolerated("FlagWithFlowControl"), flow_control && habits.flags_success);
        }
    }
}

#[test]
fn the_queue_that_a_completion_names_is_not_read() {
    for sq_id in [0, 1, 2, 0xffff] {
        Stage::new(config(true), Habits { sq_id, ..PLAIN }).works();
    }
}

#[test]
fn a_head_that_cannot_be_is_passed_over_and_no_queue_stalls() {
    for sq_head in [0, 5, 0xffff] {
        let mut stage = Stage::new(config(true), Habits { sq_head: Some(sq_head), ..PLAIN });
        stage.works();
        assert!(stage.tolerated("OddHead"), "{sq_head}");
        Stage::new(config(false), Habits { sq_head: Some(sq_head), ..PLAIN }).works();
    }
}

#[test]
fn reads_without_last_end_by_their_response() {
    let mut stage = Stage::new(config(false), Habits { lacks_last: true, ..PLAIN });
    stage.works();
    assert!(stage.tolerated("LastMissing"));
}

#[test]
fn a_controller_without_keep_alive_is_sent_none() {
    for subsystem in [Nqn::discovery(), subsystem()] {
        let config = InitiatorConfig { subsystem, ..config(false) };
        let mut stage = Stage::new(config, Habits { keep_alive_100_ms: 0, ..PLAIN });
        assert!(stage.is_ready() && stage.tolerated("NoKeepAlive"), "{:?}", stage.events);
        stage.now += base::Span::secs(20);
        stage.host.on_wakeup(stage.now);
        stage.settle();
        assert_eq!(stage.peer.keep_alives, 0);
    }
    let mut stage = Stage::new(config(false), PLAIN);
    stage.now += base::Span::secs(3);
    stage.host.on_wakeup(stage.now);
    stage.settle();
    assert_eq!(stage.peer.keep_alives, 1, "and one that has it is");
}

#[test]
fn a_controller_may_call_itself_0_and_one_of_discovery_what_it_likes_and_no_other() {
    let discovery = InitiatorConfig { subsystem: Nqn::discovery(), io_queues: 0, ..config(false) };
    assert!(Stage::new(discovery, Habits { identity: 9, ..PLAIN }).tolerated("OtherControllerId"));
    Stage::new(config(false), Habits { identity: 0, ..PLAIN }).works();
    let stage = Stage::new(config(false), Habits { identity: 9, ..PLAIN });
    assert!(matches!(stage.events.last(), Some(HostEvent::Failed(_))), "I/O queues would go to another");
}

#[test]
fn data_keep_to_what_a_target_takes_however_odd() {
    for (host_data_max, longest) in [(4096, 4096), (4100, 4100), (65_535, 16 << 10), (510, 508), (4, 4)] {
        let mut stage = Stage::new(config(false), Habits { host_data_max, ..PLAIN });
        stage.works();
        assert_eq!(stage.peer.longest, longest);
        assert_eq!(stage.tolerated("OddDataMax"), !matches!(host_data_max, 4096 | 4100));
    }
}

#[test]
fn a_target_whose_capsules_hold_nothing_is_sent_all_data_apart() {
    for habits in
        [Habits { capsule_16: 4, ..PLAIN }, Habits { capsule_16: 0, ..PLAIN }, Habits { capsule_offset_16: 4, ..PLAIN }]
    {
        let mut stage = Stage::new(config(false), habits);
        stage.works();
        assert_eq!(stage.peer.in_capsule, 0, "{habits:?}");
    }
    let mut stage = Stage::new(config(false), Habits { sgls: 0, ..PLAIN });
    stage.works();
    assert!(stage.peer.in_capsule > 0 && stage.tolerated("NoSgls"));
}

#[test]
fn digests_are_used_where_they_are_asked_for_and_a_target_without_them_is_refused_in_words() {
    let digests = Digests { header: true, data: true };
    Stage::new(InitiatorConfig { digests, ..config(false) }, PLAIN).works();
    for without in [Digests { header: false, data: true }, Digests { header: true, data: false }] {
        let stage = Stage::new(InitiatorConfig { digests, ..config(false) }, Habits { digests: without, ..PLAIN });
        let Some(HostEvent::Failed(error)) = stage.events.last() else { panic!("it was used") };
        assert!(error.to_string().contains("does without a digest that was asked for"), "{error}");
        // Nobody asked: nothing is missing.
        Stage::new(config(false), Habits { digests: without, ..PLAIN }).works();
    }
}

#[test]
fn a_target_that_refuses_to_mask_events_or_closes_at_the_shutdown_is_used() {
    Stage::new(config(false), Habits { refuses_features: true, ..PLAIN }).works();
    for closes in [Closes::Io, Closes::All] {
        Stage::new(config(false), Habits { closes_at_shutdown: Some(closes), ..PLAIN }).works();
    }
}

#[test]
fn the_command_set_is_one_that_the_controller_has() {
    for command_sets in [(1, 0), (0x41, 0), (0x40, 6), (0x80, 7)] {
        let stage = Stage::new(config(false), Habits { command_sets, ..PLAIN });
        assert!(stage.is_ready());
        assert_eq!(stage.peer.configuration >> 4 & 7, command_sets.1, "CAP.CSS {:#x}", command_sets.0);
    }
}

#[test]
fn a_serial_number_that_is_not_printable_is_only_shown() {
    let mut stage = Stage::new(config(false), Habits { serial: 0xff, ..PLAIN });
    assert_eq!(stage.host.controller().map(|controller| controller.serial.as_str()), Some("SPDK?00000000000001"));
    stage.works();
}
