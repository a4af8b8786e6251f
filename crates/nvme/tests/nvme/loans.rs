//! Reads that a backend in memory lends and writes that it takes from the input are answered as
//! those with buffers are, and leave the same blocks.

use crate::common::raw::Raw;
use crate::common::*;
use nvme::journal::{Recorder, replay};
use nvme::pdu::{Digests, Framing, Header, InitializeRequest, Pdu};
use nvme::target::*;
use nvme::*;
use proptest::prelude::*;

/// A target whose backends are in memory, its host's connection, and a socket.
struct Quick {
    world: World,
    raw: Raw,
    /// One request in so many to lend is refused.
    refuses_every: u32,
    asked: u32,
    /// What the host has received.
    sent: Vec<u8>,
    /// Bytes that were sent from where they lay.
    lent: usize,
}

impl Quick {
    fn new(limits: TargetLimits, refuses_every: u32) -> Quick {
        let (world, raw) = ready(limits, true);
        Quick { world, raw, refuses_every, asked: 0, sent: Vec::new(), lent: 0 }
    }

    /// Brings bytes as a host of the target does, but sends nothing.
    fn bring(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.world.target.wants_input(self.raw.connection) {
            let taken = self.world.target.receive(self.world.now, self.raw.connection, rest);
            self.work(rest);
            rest = &rest[taken..];
        }
        assert!(rest.is_empty(), "it takes all of it");
    }

    fn work(&mut self, input: &[u8]) {
        while let Some(mut request) = self.world.target.next_io() {
            let tag = request.tag;
            let is_loan = matches!(request.operation, IoOperation::Lend { .. });
            self.asked += u32::from(is_loan);
            let result = if is_loan && self.asked.is_multiple_of(self.refuses_every) {
                IoResult::bare(IoStatus::Unavailable)
            } else {
                request.operation = with_data(request.operation, input);
                self.world.disks.carry_out(request)
            };
            self.world.target.complete(self.world.now, tag, result);
        }
    }

    /// The socket takes so many bytes, and then no more for now.
    fn send(&mut self, takes: usize) {
        let begin = self.sent.len();
        let connection = self.raw.connection;
        for piece in self.world.target.pieces(connection) {
            let room = begin + takes - self.sent.len();
            match piece {
                Piece::Bytes(bytes) => self.sent.extend(&bytes[..bytes.len().min(room)]),
                Piece::Lent { range, from, to } => {
                    let lender = self.world.target.lender(connection).expect("somebody lends it");
                    let disk = self.world.disks.disk(lender);
                    let (start, to) = (range.start as usize * BLOCK, to.min(from + room));
                    self.sent.extend(&disk[start + from..start + to]);
                    self.lent += to - from;
                }
            }
        }
        self.world.target.transmitted(connection, self.sent.len() - begin);
        self.world.target.end_loans(connection);
        self.work(&[]);
    }

    fn done(&self, name: &str) -> usize {
        self.world.disks.log.iter().filter(|done| **done == name).count()
    }
}

fn ready(limits: TargetLimits, lends: bool) -> (World, Raw) {
    let config = TargetConfig { limits, ..config() };
    let mut world = World::new(if lends { lending(config) } else { config });
    let admin = Raw::admin(&mut world);
    let raw = Raw::queue(&mut world, &admin, 1, 15);
    (world, raw)
}

/// A command of a host to a namespace: some of them are refused.
fn pdu(id: u16, (namespace, start, blocks): (u32, u64, u16), is_write: bool, fill: u8) -> Vec<u8> {
    let access = Access { start, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() };
    let length = u32::from(blocks) * BLOCK as u32;
    let (io, data, bytes) = match is_write {
        true => (Io::Write(access), Sgl::InCapsule { offset: 0, length }, vec![fill; length as usize]),
        false => (Io::Read(access), Sgl::Transport { length }, Vec::new()),
    };
    let command = Command { namespace, data, ..Command::new(id, Body::Io(io)) };
    let mut out = Vec::new();
    let header = Header::Command { entry: command.encode(), data_length: bytes.len() as u32 };
    Framing::INITIAL.write(&header, &bytes, &mut out);
    out
}

fn read(id: u16, start: u64, blocks: u16) -> Vec<u8> {
    pdu(id, (1, start, blocks), false, 0)
}

/// Everything that waits for the host.
fn sent(world: &mut World, raw: &Raw) -> Vec<u8> {
    world.work();
    let bytes: Vec<u8> = world.target.transmit(raw.connection).flatten().copied().collect();
    world.target.transmitted(raw.connection, bytes.len());
    bytes
}

/// What the target has said, apart from how many commands it had taken by then.
fn said(mut raw: Raw, bytes: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let pdus = std::mem::take(raw.hear(bytes)).into_iter();
    let timeless = |pdu: Pdu| match pdu.header {
        Header::Response(completion) => (Header::Response(Cqe { sq_head: 0, ..completion }), pdu.data),
        header => (header, pdu.data),
    };
    pdus.map(timeless).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn lent_data_and_buffers_send_the_same_bytes_and_leave_the_same_blocks(
        commands in prop::collection::vec((1u32..3, 0u64..70, 1u16..9, any::<bool>(), any::<u8>()), 1..40),
        cut in 1usize..9000,
        refuses_every in 2u32..50,
        takes in 0usize..9000,
    ) {
        let (mut world, raw) = ready(limits(), false);
        let mut quick = Quick::new(limits(), refuses_every);
        for (id, (namespace, start, blocks, is_write, fill)) in commands.into_iter().enumerate() {
            let bytes = pdu(id as u16, (namespace, start, blocks), is_write, fill);
            prop_assert_eq!(world.target.receive(world.now, raw.connection, &bytes), bytes.len());
            for piece in bytes.chunks(cut) {
                quick.bring(piece);
            }
            quick.send(takes);
            quick.send(usize::MAX >> 1);
            prop_assert_eq!(sent(&mut world, &raw), std::mem::take(&mut quick.sent));
        }
        prop_assert_eq!(world.disks.content, quick.world.disks.content);
        prop_assert_eq!(world.target.counters(), quick.world.target.counters());
        let Gauges { commands, data_bytes, .. } = quick.world.target.gauges();
        prop_assert_eq!((commands, data_bytes), (0, 0));
    }

    /// What is lent is what was there when the command was carried out, whatever was written behind
    /// it before it was sent, to this namespace or another.
    #[test]
    fn reads_and_writes_that_come_together_are_answered_as_if_each_were_sent_before_the_next(
        commands in prop::collection::vec((1u32..3, 0u64..12, 1u16..9, any::<bool>(), any::<u8>()), 1..14),
        takes in 0usize..9000,
    ) {
        let ((mut one, one_raw), mut all) = (ready(limits(), false), Quick::new(limits(), u32::MAX));
        let pdus: Vec<_> = commands
            .into_iter()
            .enumerate()
            .map(|(id, (namespace, start, blocks, is_write, fill))| pdu(id as u16, (namespace, start, blocks), is_write, fill))
            .collect();
        let mut expected = Vec::new();
        for bytes in &pdus {
            one.target.receive(one.now, one_raw.connection, bytes);
            expected.extend(sent(&mut one, &one_raw));
        }
        all.bring(&pdus.concat());
        all.send(takes);
        all.send(usize::MAX >> 1);
        prop_assert_eq!(said(one_raw, &expected), said(all.raw, &all.sent));
        prop_assert_eq!(one.disks.content, all.world.disks.content);
    }
}

#[test]
fn a_loan_that_the_socket_does_not_take_is_copied_and_is_no_second_read() {
    const ANSWER: usize = 24 + 4096 + 24;
    // The last: the first answer, the header of the second and a byte of its data.
    for (takes, copied, lent) in [(0, 2, 0), (2 * ANSWER, 0, 8192), (ANSWER + 24 + 1, 1, 4097)] {
        let mut quick = Quick::new(limits(), u32::MAX);
        quick.bring(&[read(1, 0, 8), read(2, 8, 8)].concat());
        assert_eq!(quick.world.target.gauges().data_bytes, 8192, "loans count as buffers do");
        quick.send(takes);
        assert_eq!((quick.done("lend"), quick.done("end loan"), quick.lent), (2, copied, lent));
        quick.send(usize::MAX >> 1);
        assert_eq!((quick.sent.len(), quick.lent, quick.done("read")), (2 * ANSWER, lent, 0));
    }
}

#[test]
fn more_reads_than_the_data_budget_has_room_for_wait_until_loans_are_sent() {
    let limits = TargetLimits { data_budget_bytes: 32 << 10, ..limits() };
    let mut quick = Quick::new(limits, u32::MAX);
    let reads: Vec<u8> = (0..10).flat_map(|id| read(id, 0, 8)).collect();
    quick.bring(&reads);
    assert_eq!((quick.done("lend"), quick.world.target.gauges().data_bytes), (8, 32 << 10));
    quick.send(24 + 4096 + 24);
    assert_eq!(quick.done("lend"), 9);
    while quick.world.target.has_output(quick.raw.connection) {
        quick.send(usize::MAX >> 1);
    }
    assert_eq!((quick.done("lend"), quick.world.target.gauges().data_bytes), (10, 0));
}

#[test]
fn a_secured_connection_and_one_with_data_digests_borrow_nothing() {
    let mut quick = Quick::new(limits(), u32::MAX);
    let channel = Channel { host: host(9), subsystem: subsystem() };
    quick.world.target.secured(quick.world.now, quick.raw.connection, channel);
    quick.bring(&read(1, 0, 8));
    assert_eq!((quick.done("lend"), quick.done("read")), (0, 1));

    let mut quick = Quick::new(limits(), u32::MAX);
    let admin = Raw::admin(&mut quick.world);
    let mut raw = Raw::open(&mut quick.world);
    let digests = Digests { header: false, data: true };
    let request = InitializeRequest { alignment: 0, digests, ready_max_minus_one: 0 };
    raw.send(&mut quick.world, &Header::InitializeRequest(request), &[]);
    raw.listen(&mut quick.world);
    assert!(raw.connect(&mut quick.world, 1, 15, admin.controller).status.is_success());
    quick.raw = raw;
    quick.bring(&read(1, 0, 8));
    assert_eq!((quick.done("lend"), quick.done("read")), (0, 1));
}

#[test]
fn input_is_not_taken_while_a_write_from_the_last_input_is_not_done() {
    let mut quick = Quick::new(limits(), u32::MAX);
    let write = pdu(1, (1, 0, 1), true, 7);
    let (now, connection) = (quick.world.now, quick.raw.connection);
    assert_eq!(quick.world.target.receive(now, connection, &write), write.len());
    assert_eq!(quick.world.target.receive(now, connection, &read(2, 0, 1)), 0);
    quick.work(&write);
    quick.bring(&read(2, 0, 1));
    quick.send(usize::MAX >> 1);
    assert_eq!(quick.sent[24 + 24..24 + 24 + 512], [7; 512]);
}

#[test]
fn a_loan_whose_bytes_do_not_come_ends_the_connection_and_not_the_stream_in_the_middle() {
    let mut quick = Quick::new(limits(), u32::MAX);
    quick.bring(&read(1, 0, 8));
    let (now, connection) = (quick.world.now, quick.raw.connection);
    let target = &mut quick.world.target;
    target.end_loans(connection);
    assert_eq!(target.transmit(connection).flatten().count(), 24, "up to the data");
    let request = target.next_io().expect("the loan ends");
    assert!(matches!(request.operation, IoOperation::EndLoan { .. }));
    target.complete(now, request.tag, IoResult::bare(IoStatus::ReadError));
    assert_eq!(target.transmit(connection).count(), 0);
    assert_eq!(target.should_close(connection), Some(CloseReason::Backend));
    assert_eq!(target.gauges().data_bytes, 0);
}

#[test]
fn a_connection_that_ends_before_its_loans_are_answered_leaves_none() {
    let mut quick = Quick::new(limits(), u32::MAX);
    let (now, connection) = (quick.world.now, quick.raw.connection);
    quick.world.target.receive(now, connection, &[read(1, 0, 8), read(2, 8, 8)].concat());
    let first = quick.world.target.next_io().expect("it is asked");
    quick.world.target.complete(now, first.tag, IoResult::bare(IoStatus::Done));
    assert_eq!(quick.world.target.lender(connection), Some(BackendId(1)));
    quick.world.target.closed(now, connection);
    quick.work(&[]);
    // Another connection at its place may borrow of another backend.
    let admin = Raw::admin(&mut quick.world);
    quick.raw = Raw::queue(&mut quick.world, &admin, 1, 15);
    quick.bring(&pdu(1, (2, 0, 8), false, 0));
    quick.send(usize::MAX >> 1);
    assert_eq!((quick.lent, quick.world.target.gauges().commands), (4096, 0));
}

#[test]
fn a_burst_is_answered_whole_however_often_answers_are_sent_in_between() {
    let mut quick = Quick::new(limits(), u32::MAX);
    quick.raw.listen(&mut quick.world).clear();
    for id in 0..15 {
        quick.bring(&pdu(id, (1, u64::from(id) * 8, 8), id % 2 == 0, id as u8));
        if id % 4 == 3 {
            quick.send(1000);
        }
    }
    quick.send(usize::MAX >> 1);
    let completed = |pdu: &Pdu| match pdu.header {
        Header::Response(completion) => Some((completion.id, completion.status)),
        _ => None,
    };
    let completed: Vec<_> = quick.raw.hear(&quick.sent).iter().filter_map(completed).collect();
    assert_eq!(completed, (0..15).map(|id| (id, Status::SUCCESS)).collect::<Vec<_>>());
}

/// What a host says first on a connection of `queue`.
fn hello(queue: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut say = |header: Header, data: &[u8]| Framing::INITIAL.write(&header, data, &mut bytes);
    let digests = Digests::default();
    say(Header::InitializeRequest(InitializeRequest { alignment: 0, digests, ready_max_minus_one: 0 }), &[]);
    let controller = if queue == 0 { u16::MAX } else { 1 };
    let data = ConnectData { host_id: HostId([9; 16]), controller, subsystem: subsystem(), host: host(9) };
    let (attributes, size_minus_one) = (ConnectAttributes::empty(), 15);
    let connect = Fabrics::Connect(Connect { queue, size_minus_one, attributes, keep_alive_ms: 0 });
    let descriptor = Sgl::InCapsule { offset: 0, length: 1024 };
    let command = Command { data: descriptor, ..Command::new(0xf0, Body::Fabrics(connect)) };
    say(Header::Command { entry: command.encode(), data_length: 1024 }, &data.encode());
    if queue == 0 {
        // CC.EN, with entries of 64 and 16 bytes.
        let set = Fabrics::PropertySet { offset: 0x14, size: PropertySize::Four, value: 0x46_0001 };
        say(Header::Command { entry: Command::new(0xf1, Body::Fabrics(set)).encode(), data_length: 0 }, &[]);
    }
    bytes
}

/// Plays a host's bytes to a target or a recorder; what backends are asked for, and what is sent.
macro_rules! play {
    ($target:expr, $bytes:expr, $takes:expr) => {{
        let (now, mut disks) = (base::Time::secs(1), Disks::default());
        let (mut asked, mut sent) = (Vec::new(), Vec::new());
        for bytes in $bytes {
            let connection = $target.accept(now, PORT).unwrap();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let taken = $target.receive(now, connection, rest);
                while let Some(request) = $target.next_io() {
                    asked.push(format!("{:?}", request.operation));
                    let operation = with_data(request.operation, rest);
                    let result = disks.carry_out(IoRequest { operation, ..request });
                    $target.complete(now, request.tag, result);
                }
                rest = &rest[taken..];
            }
            // The socket takes some of it, and later the rest.
            let lent = |range: BlockRange| &disks.content[&BackendId(1)][range.start as usize * BLOCK..];
            let bytes: Vec<u8> = $target
                .pieces(connection)
                .flat_map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.to_vec(),
                    Piece::Lent { range, from, to } => lent(range)[from..to].to_vec(),
                })
                .collect();
            let takes = bytes.len().min($takes);
            $target.transmitted(connection, takes);
            $target.end_loans(connection);
            while let Some(request) = $target.next_io() {
                asked.push(format!("{:?}", request.operation));
                let result = disks.carry_out(request.clone());
                $target.complete(now, request.tag, result);
            }
            let rest: Vec<u8> = $target.transmit(connection).flatten().copied().collect();
            assert_eq!(rest, bytes[takes..]);
            $target.transmitted(connection, rest.len());
            sent.push(bytes);
        }
        (asked, sent)
    }};
}

/// What a journal holds is what served: the backend is asked for the same, in the same order.
#[test]
fn a_recorded_target_asks_for_the_same_loans_and_its_journal_plays_them_again() {
    let config = lending(config());
    let burst: Vec<u8> = (0..12).flat_map(|id| pdu(id, (1, u64::from(id % 3) * 8, 8), id % 4 == 3, id as u8)).collect();
    let bytes = [hello(0), [hello(1), burst].concat()];
    let mut target = Target::new(config.clone()).unwrap();
    let mut recorder = Recorder::new(config.clone(), Vec::new()).unwrap();
    let served = play!(target, &bytes, 5000);
    for kind in ["Lend", "EndLoan", "WriteInput"] {
        assert!(served.0.iter().any(|operation| operation.starts_with(kind)), "{kind}: {:?}", served.0);
    }
    assert!(served == play!(recorder, &bytes, 5000), "a journal changes nothing");
    let journal = recorder.finish().1.unwrap();
    let played = replay(config.clone(), &journal[..]).unwrap();
    assert_eq!(played.loans, 9);
    // One byte of what a host has written is another: the request for it differs.
    let mut changed = journal;
    let place = changed.windows(512).position(|window| window == [7; 512]).expect("it was written");
    changed[place] ^= 1;
    replay(config, &changed[..]).unwrap_err();
}
