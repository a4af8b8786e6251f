//! Reads and writes that a backend carries out while bytes come are answered as those that take the long way, and leave the same blocks.

mod common;

use common::raw::Raw;
use common::*;
use nvme::pdu::{Framing, Header, Pdu};
use nvme::target::{
    AtOnce, BackendId, BlockRange, CloseReason, ConnectionId, IoOperation, IoRequest, IoStatus, IoTag, Piece, Pieces,
    TargetConfig, TargetLimits,
};
use nvme::*;
use proptest::prelude::*;

/// Disks that answer at once, but for one in `refuses_every`, and lend what is read; a socket that takes `takes` bytes a call.
struct Quick<'a> {
    disks: &'a mut Disks,
    refuses_every: u32,
    asked: u32,
    takes: usize,
    /// What the socket took.
    sent: Vec<u8>,
    /// Bytes that were sent from where they lay.
    lent: usize,
    /// Reads and loans that it was asked for, and loans that it took back.
    reads: u32,
    taken_back: u32,
}

impl Quick<'_> {
    fn refuses(&mut self) -> bool {
        self.asked += 1;
        self.asked.is_multiple_of(self.refuses_every)
    }
    fn carry_out(&mut self, backend: BackendId, operation: IoOperation) -> (IoStatus, Vec<u8>) {
        let result = self.disks.carry_out(IoRequest { tag: IoTag::of_bits(0), backend, controller: 0, operation });
        (result.status, result.buffer)
    }
}

impl AtOnce for Quick<'_> {
    fn read(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        if self.refuses() {
            return None;
        }
        self.reads += 1;
        let buffer = vec![0; range.blocks as usize * BLOCK];
        let (status, buffer) = self.carry_out(backend, IoOperation::Read { range, buffer });
        out.extend(buffer);
        Some(status)
    }
    fn write(&mut self, backend: BackendId, range: BlockRange, data: &[u8], is_durable: bool) -> Option<IoStatus> {
        if self.refuses() {
            return None;
        }
        Some(self.carry_out(backend, IoOperation::Write { range, data: data.to_vec(), is_durable }).0)
    }
    fn lends(&mut self, _: ConnectionId, _: BackendId, _: BlockRange) -> bool {
        let lends = !self.refuses();
        self.reads += u32::from(lends);
        lends
    }
    fn take_back(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        self.taken_back += 1;
        let buffer = vec![0; range.blocks as usize * BLOCK];
        let (status, buffer) = self.carry_out(backend, IoOperation::Read { range, buffer });
        out.extend(buffer);
        Some(status)
    }
    fn send(&mut self, _: ConnectionId, lender: BackendId, pieces: Pieces<'_>) -> usize {
        let begin = self.sent.len();
        for piece in pieces {
            let room = begin + self.takes - self.sent.len();
            match piece {
                Piece::Bytes(bytes) => self.sent.extend(&bytes[..bytes.len().min(room)]),
                Piece::Lent { range, from, to } => {
                    let buffer = vec![0; range.blocks as usize * BLOCK];
                    let (_, data) = self.carry_out(lender, IoOperation::Read { range, buffer });
                    let to = to.min(from + room);
                    self.sent.extend(&data[from..to]);
                    self.lent += to - from;
                }
            }
        }
        self.sent.len() - begin
    }
}

/// A command of a host: some of them are refused.
fn pdu(id: u16, start: u64, blocks: u16, is_write: bool, fill: u8) -> Vec<u8> {
    let access = Access { start, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() };
    let length = u32::from(blocks) * BLOCK as u32;
    let (io, data, bytes) = match is_write {
        true => (Io::Write(access), Sgl::InCapsule { offset: 0, length }, vec![fill; length as usize]),
        false => (Io::Read(access), Sgl::Transport { length }, Vec::new()),
    };
    let command = Command { namespace: 1, data, ..Command::new(id, Body::Io(io)) };
    let mut out = Vec::new();
    let header = Header::Command { entry: command.encode(), data_length: bytes.len() as u32 };
    Framing::INITIAL.write(&header, &bytes, &mut out);
    out
}

/// Everything that waits for the host.
fn sent(world: &mut World, raw: &Raw) -> Vec<u8> {
    world.work();
    let bytes: Vec<u8> = world.target.transmit(raw.connection).flatten().copied().collect();
    world.target.transmitted(raw.connection, bytes.len());
    bytes
}

fn quick(disks: &mut Disks, refuses_every: u32, takes: usize) -> Quick<'_> {
    Quick { disks, refuses_every, asked: 0, takes, sent: Vec::new(), lent: 0, reads: 0, taken_back: 0 }
}

/// How many bytes the target took, and what it sent meanwhile.
fn at_once(world: &mut World, raw: &Raw, bytes: &[u8], refuses_every: u32, takes: usize) -> (usize, Vec<u8>) {
    let mut quick = quick(&mut world.disks, refuses_every, takes);
    let taken = world.target.receive_at_once(world.now, raw.connection, bytes, &mut quick);
    (taken, quick.sent)
}

fn ready() -> (World, Raw) {
    ready_with(limits())
}

fn ready_with(limits: TargetLimits) -> (World, Raw) {
    let mut world = World::new(TargetConfig { limits, ..config() });
    let admin = Raw::admin(&mut world);
    let raw = Raw::queue(&mut world, &admin, 1, 15);
    (world, raw)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_short_way_and_the_long_way_send_the_same_bytes_and_leave_the_same_blocks(
        commands in prop::collection::vec((0u64..1030, 1u16..9, any::<bool>(), any::<u8>()), 1..40),
        cut in 1usize..9000,
        refuses_every in 2u32..50,
        takes in 0usize..9000,
    ) {
        let ((mut long, long_raw), (mut short, short_raw)) = (ready(), ready());
        for (id, (start, blocks, is_write, fill)) in commands.into_iter().enumerate() {
            let bytes = pdu(id as u16, start, blocks, is_write, fill);
            prop_assert_eq!(long.target.receive(long.now, long_raw.connection, &bytes), bytes.len());
            let mut answers = Vec::new();
            for piece in bytes.chunks(cut) {
                let (taken, mut early) = at_once(&mut short, &short_raw, piece, refuses_every, takes);
                prop_assert_eq!(taken, piece.len());
                answers.append(&mut early);
            }
            answers.extend(sent(&mut short, &short_raw));
            prop_assert_eq!(sent(&mut long, &long_raw), answers);
        }
        prop_assert_eq!(long.disks.content, short.disks.content);
        prop_assert_eq!(long.target.counters(), short.target.counters());
        prop_assert_eq!(short.target.gauges().commands, 0);
    }

    /// What is lent is what was there when the command was carried out, whatever was written behind it before it was sent.
    #[test]
    fn reads_and_writes_that_come_together_are_answered_as_if_each_were_sent_before_the_next(
        commands in prop::collection::vec((0u64..12, 4u16..9, any::<bool>(), any::<u8>()), 1..8),
        takes in 0usize..9000,
    ) {
        // With less, some would take the long way, where reads and writes overtake each other.
        let limits = TargetLimits { backlog_bytes_max: 1 << 20, ..limits() };
        let ((mut one, one_raw), (mut all, all_raw)) = (ready_with(limits), ready_with(limits));
        let pdus: Vec<_> = commands
            .into_iter()
            .enumerate()
            .map(|(id, (start, blocks, is_write, fill))| pdu(id as u16, start, blocks, is_write, fill))
            .collect();
        let mut expected = Vec::new();
        for bytes in &pdus {
            one.target.receive(one.now, one_raw.connection, bytes);
            expected.extend(sent(&mut one, &one_raw));
        }
        let (burst, mut answers, mut at) = (pdus.concat(), Vec::new(), 0);
        while at < burst.len() {
            let (taken, mut early) = at_once(&mut all, &all_raw, &burst[at..], u32::MAX, takes);
            at += taken;
            answers.append(&mut early);
            answers.extend(sent(&mut all, &all_raw));
        }
        prop_assert_eq!((expected, one.disks.content), (answers, all.disks.content));
    }
}

#[test]
fn a_burst_is_answered_whole_however_often_answers_are_sent_in_between() {
    let (mut world, mut raw) = ready();
    raw.listen(&mut world).clear();
    let burst: Vec<u8> = (0..15).flat_map(|id| pdu(id, u64::from(id) * 8, 8, id % 2 == 0, id as u8)).collect();
    let (mut at, mut answered) = (0, Vec::new());
    while at < burst.len() {
        at += at_once(&mut world, &raw, &burst[at..], u32::MAX, 0).0;
        answered.append(raw.listen(&mut world));
    }
    let completed = |pdu: &Pdu| match pdu.header {
        Header::Response(completion) => Some((completion.id, completion.status)),
        _ => None,
    };
    // What had no room to be answered at once came later.
    let mut completed: Vec<_> = answered.iter().filter_map(completed).collect();
    completed.sort_by_key(|(id, _)| *id);
    assert_eq!(completed, (0..15).map(|id| (id, Status::SUCCESS)).collect::<Vec<_>>());
    assert_eq!(world.target.gauges().commands, 0);
}

#[test]
fn reads_of_two_kilobytes_are_lent_and_shorter_ones_copied() {
    let (mut world, raw) = ready();
    for (blocks, lent) in [(3, 0), (4, 2048), (8, 4096)] {
        let mut quick = quick(&mut world.disks, u32::MAX, usize::MAX >> 1);
        world.target.receive_at_once(world.now, raw.connection, &pdu(blocks, 0, blocks, false, 0), &mut quick);
        assert_eq!(quick.lent, lent, "{blocks} blocks");
        sent(&mut world, &raw);
    }
}

#[test]
fn a_loan_that_the_socket_does_not_take_is_copied_and_is_no_second_read() {
    let (mut world, raw) = ready();
    // The header of the first, its data, the answer, the header of the second and a byte of its data.
    for (takes, taken_back) in [(0, 2), (24 + 4096 + 24 + 24 + 1, 1), (2 * (24 + 4096 + 24), 0)] {
        let both = [pdu(1, 0, 8, false, 0), pdu(2, 8, 8, false, 0)].concat();
        let mut quick = quick(&mut world.disks, u32::MAX, takes);
        world.target.receive_at_once(world.now, raw.connection, &both, &mut quick);
        assert_eq!((quick.reads, quick.taken_back, quick.sent.len()), (2, taken_back, takes));
        assert_eq!(takes + sent(&mut world, &raw).len(), 2 * (24 + 4096 + 24));
    }
}

/// Lends, and then has nothing.
struct Fickle;

impl AtOnce for Fickle {
    fn read(&mut self, _: BackendId, _: BlockRange, _: &mut Vec<u8>) -> Option<IoStatus> {
        Some(IoStatus::ReadError)
    }
    fn write(&mut self, _: BackendId, _: BlockRange, _: &[u8], _: bool) -> Option<IoStatus> {
        None
    }
    fn lends(&mut self, _: ConnectionId, _: BackendId, _: BlockRange) -> bool {
        true
    }
}

#[test]
fn a_loan_that_can_neither_be_sent_nor_read_ends_the_connection_and_not_the_stream_in_the_middle() {
    let (mut world, raw) = ready();
    world.target.receive_at_once(world.now, raw.connection, &pdu(1, 0, 8, false, 0), &mut Fickle);
    assert_eq!(world.target.transmit(raw.connection).count(), 0, "nothing that is half true is sent");
    assert_eq!(world.target.should_close(raw.connection), Some(CloseReason::Backend));
}
