//! Reads and writes that a backend carries out while bytes come are answered as those that take the long way, and leave the same blocks.

mod common;

use common::raw::Raw;
use common::*;
use nvme::pdu::{Framing, Header, Pdu};
use nvme::target::{AtOnce, BackendId, BlockRange, IoOperation, IoRequest, IoStatus, IoTag};
use nvme::*;
use proptest::prelude::*;

/// Disks that answer at once, but for one in `refuses_every`.
struct Quick<'a> {
    disks: &'a mut Disks,
    refuses_every: u32,
    asked: u32,
    expected: Vec<BlockRange>,
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
    fn wants_to_expect(&self) -> bool {
        true
    }
    fn expect(&mut self, _: BackendId, range: BlockRange) {
        self.expected.push(range);
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

fn at_once(world: &mut World, raw: &Raw, bytes: &[u8], refuses_every: u32) -> usize {
    let mut quick = Quick { disks: &mut world.disks, refuses_every, asked: 0, expected: Vec::new() };
    world.target.receive_at_once(world.now, raw.connection, bytes, &mut quick)
}

fn ready() -> (World, Raw) {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let raw = Raw::queue(&mut world, &admin, 1, 15);
    (world, raw)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_short_way_and_the_long_way_send_the_same_bytes_and_leave_the_same_blocks(
        commands in prop::collection::vec((0u64..1030, 1u16..9, any::<bool>(), any::<u8>()), 1..40),
        cut in 1usize..5000,
        refuses_every in 2u32..50,
    ) {
        let ((mut long, long_raw), (mut short, short_raw)) = (ready(), ready());
        for (id, (start, blocks, is_write, fill)) in commands.into_iter().enumerate() {
            let bytes = pdu(id as u16, start, blocks, is_write, fill);
            prop_assert_eq!(long.target.receive(long.now, long_raw.connection, &bytes), bytes.len());
            for piece in bytes.chunks(cut) {
                prop_assert_eq!(at_once(&mut short, &short_raw, piece, refuses_every), piece.len());
            }
            prop_assert_eq!(sent(&mut long, &long_raw), sent(&mut short, &short_raw));
        }
        prop_assert_eq!(long.disks.content, short.disks.content);
        prop_assert_eq!(long.target.counters(), short.target.counters());
        prop_assert_eq!(short.target.gauges().commands, 0);
    }
}

#[test]
fn a_burst_is_answered_whole_however_often_answers_are_sent_in_between() {
    let (mut world, mut raw) = ready();
    raw.listen(&mut world).clear();
    let burst: Vec<u8> = (0..15).flat_map(|id| pdu(id, u64::from(id) * 8, 8, id % 2 == 0, id as u8)).collect();
    let (mut at, mut answered) = (0, Vec::new());
    while at < burst.len() {
        at += at_once(&mut world, &raw, &burst[at..], u32::MAX);
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
fn a_backend_is_told_of_the_next_command_before_it_comes() {
    let (mut world, raw) = ready();
    let both = [pdu(1, 8, 2, true, 7), pdu(2, 100, 3, false, 0)].concat();
    let mut quick = Quick { disks: &mut world.disks, refuses_every: u32::MAX, asked: 0, expected: Vec::new() };
    world.target.receive_at_once(world.now, raw.connection, &both, &mut quick);
    assert_eq!(quick.expected, [BlockRange { start: 100, blocks: 3 }]);
}
