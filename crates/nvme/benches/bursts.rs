//! What the target itself spends on a burst of 4 KiB reads or writes of a backend in memory,
//! without sockets: nanoseconds a command, the least of some rounds.
//!
//! `cargo bench --package nvme`. For instruction counts, run the built binary in
//! `valgrind --tool=callgrind` with the names of a kind and a depth (`read 32`).

#[path = "../tests/nvme/common/mod.rs"]
mod common;

use common::raw::Raw;
use common::*;
use nvme::pdu::{Framing, Header};
use nvme::target::*;
use nvme::*;
use std::time::{Duration, Instant};

const DEPTHS: [u16; 4] = [1, 8, 32, 128];
/// Blocks of a command: 4 KiB.
const BLOCKS: u16 = 8;
const ROUNDS: usize = 30;
/// Commands of a round.
const COMMANDS: usize = 64 << 10;
/// Commands of the one round that callgrind counts.
const COUNTED: usize = 1 << 13;

/// A ready I/O queue of a target whose backend lends.
fn ready() -> (World, Raw) {
    let limits = TargetLimits {
        queue_entries_max: 128,
        host_data_max: 128 << 10,
        controller_data_max: 128 << 10,
        in_capsule_bytes: 8192,
        data_budget_bytes: 1 << 20,
        backlog_bytes_max: 1 << 20,
        ..limits()
    };
    let mut world = World::new(lending(TargetConfig { limits, ..config() }));
    let admin = Raw::admin(&mut world);
    let raw = Raw::queue(&mut world, &admin, 1, 127);
    (world, raw)
}

/// `depth` commands, one behind the other.
fn burst(is_write: bool, depth: u16) -> Vec<u8> {
    let length = u32::from(BLOCKS) * BLOCK as u32;
    let data = vec![0x5a; if is_write { length as usize } else { 0 }];
    let mut bytes = Vec::new();
    for id in 0..depth {
        let start = u64::from(id * 37 % 128 * BLOCKS);
        let access = Access { start, blocks_minus_one: BLOCKS - 1, flags: AccessFlags::empty() };
        let (io, data_at) = match is_write {
            true => (Io::Write(access), Sgl::InCapsule { offset: 0, length }),
            false => (Io::Read(access), Sgl::Transport { length }),
        };
        let command = Command { namespace: 1, data: data_at, ..Command::new(id, Body::Io(io)) };
        let header = Header::Command { entry: command.encode(), data_length: data.len() as u32 };
        Framing::INITIAL.write(&header, &data, &mut bytes);
    }
    bytes
}

/// Serves one burst as a host of the target does, with a backend and a socket that cost nothing.
fn serve(world: &mut World, connection: ConnectionId, bytes: &[u8]) {
    let (target, now) = (&mut world.target, world.now);
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[target.receive(now, connection, rest)..];
        while let Some(request) = target.next_io() {
            std::hint::black_box(&request.operation);
            target.complete(now, request.tag, IoResult::bare(IoStatus::Done));
        }
    }
    while let Some(active) = target.next_active() {
        let length = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Lent { from, to, .. } => to - from,
        };
        let waiting = target.pieces(active).map(length).sum();
        target.transmitted(active, waiting);
    }
}

fn round(is_write: bool, depth: u16, commands: usize) -> Duration {
    let (mut world, raw) = ready();
    let bytes = burst(is_write, depth);
    let begun = Instant::now();
    for _ in 0..commands / usize::from(depth) {
        serve(&mut world, raw.connection, &bytes);
    }
    let spent = begun.elapsed();
    let counters = world.target.counters();
    assert_eq!(counters.reads + counters.writes, commands as u64, "every command is answered");
    spent
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [kind, depth] = &arguments[..] {
        round(kind == "write", depth.parse().expect("a depth is a number"), COUNTED);
        return;
    }
    for (kind, is_write) in [("read", false), ("write", true)] {
        for depth in DEPTHS {
            let spent = (0..ROUNDS).map(|_| round(is_write, depth, COMMANDS)).min().unwrap_or_default();
            println!("{kind} {depth:>3}: {:>6.1} ns a command", spent.as_secs_f64() * 1e9 / COMMANDS as f64);
        }
    }
}
