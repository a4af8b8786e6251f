//! A target of two loops: what they share is right, and the suites pass as with one.
#![allow(clippy::duplicate_mod, reason = "each suite is a program of its own too, with its support")]

#[path = "durability.rs"]
mod durability;
#[path = "security.rs"]
mod security;
#[path = "sessions.rs"]
mod sessions;
#[path = "soak.rs"]
mod soak;
mod support;

use live::{Extent, RemoteDisk, Server, ServerOptions};
use nvme::initiator::Payload;
use nvme::reservation::*;
use nvme::{Access, AccessFlags, Body, Io, ReservationAcquire, ReservationRegister, Status};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{Running, config, free_address, metric, pattern, plan};

const RAM: &str = "[[subsystem]]\nnamespace = [{ size = '16MiB' }]";

fn disks(target: &Running, count: u8) -> Vec<RemoteDisk> {
    let disks: Vec<RemoteDisk> =
        (0..count).map(|number| target.disk_as(config(&format!("host-{number}")), 1)).collect();
    let loop_of = |disk: &RemoteDisk| disk.controller().expect("it was identified").controller % 2;
    assert!((0..2).all(|own| disks.iter().filter(|disk| loop_of(disk) == own).count() == usize::from(count / 2)));
    disks
}

#[test]
fn the_metrics_and_the_records_are_those_of_both_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    let (rows, metrics) = (folder.path().join("rows"), free_address());
    let text = format!("metrics = '{metrics}'\n[records]\nfolder = '{}'\nsample = 1\n{RAM}", rows.display());
    let target = Running::start(&text);
    let mut disks = disks(&target, 4);
    for (number, disk) in (0..).zip(&mut disks) {
        for round in 0..10 {
            let extent = Extent { start: number * 10 + round, blocks: 1 };
            disk.write(extent, pattern(extent.start, 1, 512), false).expect("it is taken");
            disk.read(extent).expect("it is there");
        }
    }
    let number = |name: &str| metric(&metrics, &format!("rackweave_target_{name}"));
    assert_eq!((number("writes_total"), number("reads_total")), (40, 40));
    assert_eq!((number("controllers"), number("connections")), (4, 8));
    assert_eq!(number("connections_accepted_total"), 8);
    drop(disks);
    target.stop();
    let part = std::fs::File::open(rows.join("target.1/part-00000.parquet")).expect("it was written");
    let rows = record::read_part("part", &part).expect("it is whole").rows;
    assert_eq!(rows.len(), 80);
    let sources: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.source.0).collect();
    assert_eq!((sources.len(), sources.iter().filter(|id| *id % 2 == 0).count()), (4, 2));
}

/// Reads are sent from where a RAM disk keeps them, and more of them than a socket takes at a time.
#[test]
fn a_read_by_one_loop_has_no_half_of_a_write_by_the_other() {
    const BLOCKS: u32 = 32;
    const DEPTH: u64 = 120;
    let target = Running::start(RAM);
    let deep = |name: &str| nvme::initiator::InitiatorConfig { io_entries: 128, ..config(name) };
    let [mut reader, mut writer] = ["reader", "writer"].map(|name| target.disk_as(deep(name), 1));
    let (is_over, versions) = (AtomicBool::new(false), AtomicU64::new(0));
    let torn = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                let version = versions.fetch_add(1, Ordering::Relaxed) as u8;
                let data = vec![version; BLOCKS as usize * 512];
                writer.write(Extent { start: 0, blocks: BLOCKS }, data, false).expect("it is taken");
            }
        });
        let _end = Over(&is_over);
        let mut torn = 0;
        for _ in 0..200 {
            for _ in 0..DEPTH {
                reader.submit_read(1, Extent { start: 0, blocks: BLOCKS }).expect("there is room");
            }
            for _ in 0..DEPTH {
                let data = reader.host().next_completed().expect("an answer").data;
                torn += u64::from(data.iter().any(|byte| *byte != data[0]));
            }
        }
        torn
    });
    assert_eq!(torn, 0, "so many reads have parts of two writes");
    assert!(versions.into_inner() > 100, "nothing was written meanwhile");
}

/// Says that something is over when it is dropped, by a panic too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_preempted_host_of_the_other_loop_writes_nothing_after_the_answer() {
    let register = |key: u64| {
        let (action, persist) = (RegisterAction::Register, PersistChange::Keep);
        let io = Io::ReservationRegister(ReservationRegister { action, ignore_key: false, persist });
        (Body::Io(io), Payload::ToController(RegisterKeys { current: 0, new: key }.encode().to_vec()))
    };
    let acquire = |action, current, preempt| {
        let kind = ReservationKind::WriteExclusive;
        let io = Io::ReservationAcquire(ReservationAcquire { action, ignore_key: false, kind });
        (Body::Io(io), Payload::ToController(AcquireKeys { current, preempt }.encode().to_vec()))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk").display().to_string();
    let target = Running::start(&format!(
        "[[subsystem]]\nnamespace = [{{ backend = 'file', path = '{path}', size = '16MiB', io = 'threads' }}]"
    ));
    for round in 0..20u64 {
        let mut both = disks(&target, 2);
        let (mut own, mut other) = (both.remove(0), both.remove(0));
        let ask = |disk: &mut RemoteDisk, (body, payload): (Body, Payload)| {
            disk.host().call(1, 1, body, payload).expect("an answer").status
        };
        assert!(ask(&mut own, register(1)).is_success() && ask(&mut other, register(2)).is_success());
        assert!(ask(&mut other, acquire(AcquireAction::Acquire, 2, 0)).is_success());
        let (is_over, block) = (AtomicBool::new(false), Extent { start: round, blocks: 1 });
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut other = other;
                for version in 0.. {
                    let access = Access { start: round, blocks_minus_one: 0, flags: AccessFlags::empty() };
                    let data = Payload::ToController(pattern(round, version, 512));
                    let ended = other.host().call(1, 1, Body::Io(Io::Write(access)), data).expect("an answer");
                    if !ended.status.is_success() {
                        assert_eq!(ended.status, Status::RESERVATION_CONFLICT.without_retry());
                        return version;
                    }
                    assert!(!is_over.load(Ordering::Acquire) || version < 1_000_000);
                }
                0
            });
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(ask(&mut own, acquire(AcquireAction::Preempt, 1, 2)).is_success());
            is_over.store(true, Ordering::Release);
            let after = own.read(block).expect("it is there");
            let written = writer.join().expect("it does not panic");
            assert_eq!(own.read(block).expect("it is there"), after, "{written} writes, and one more after the answer");
        });
        let (body, payload) = (
            Body::Io(Io::ReservationRelease(nvme::ReservationRelease {
                action: ReleaseAction::Clear,
                ignore_key: false,
                kind: ReservationKind::WriteExclusive,
            })),
            Payload::ToController(1u64.to_le_bytes().to_vec()),
        );
        assert!(ask(&mut own, (body, payload)).is_success());
    }
    target.stop();
}

/// S-Direct's engine is in one loop, and hosts of the other ask it too.
#[test]
fn what_hosts_of_both_loops_add_at_once_is_all_there() {
    const ROUNDS: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for backend in [
        "size = '1MiB'".to_owned(),
        "backend = 'flash', drive = 'optane', size = '1MiB', block = '4KiB'".to_owned(),
        format!("backend = 'file', path = '{}', size = '1MiB'", path("auto")),
        format!("backend = 'file', path = '{}', size = '1MiB', io = 'threads'", path("threads")),
    ] {
        let target = Running::start(&format!("[[subsystem]]\nnamespace = [{{ {backend} }}]"));
        let mut all = disks(&target, 4);
        let bytes = all[0].block_bytes();
        all[0].write(Extent { start: 1, blocks: 1 }, one(bytes as usize), false).expect("it is taken");
        std::thread::scope(|scope| {
            for mut disk in all {
                scope.spawn(move || {
                    let mut added = 0;
                    while added < ROUNDS {
                        // One that loses too many races may be tried again.
                        added += u64::from(disk.add_write(bytes, 2 * bytes).is_ok());
                    }
                });
            }
        });
        let sum = target.disk().read(Extent { start: 2, blocks: 1 }).expect("it is there");
        assert_eq!(sum.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)), Some(4 * ROUNDS), "{backend}");
        target.stop();
    }
}

fn one(bytes: usize) -> Vec<u8> {
    let mut block = vec![0; bytes];
    block[0] = 1;
    block
}

#[test]
fn a_journal_with_two_loops_is_refused_by_the_key() {
    let options = ServerOptions { journal: Some(Box::new(Vec::new())), ..ServerOptions::default() };
    let refused = Server::start(&plan(RAM), options).map(drop).expect_err("it is refused");
    assert!(refused.to_string().contains("loops: "), "{refused}");
}

/// The processor time of a command with two loops over that with one, in this process, by turns.
/// `cargo test -p live --test two_loops -- --ignored --nocapture cost`
#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_command_by_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk").display().to_string();
    for backend in [
        format!("backend = 'file', path = '{path}', size = '64MiB', io = 'threads'"),
        "size = '64MiB'".to_owned(),
        "backend = 'null', size = '64MiB'".to_owned(),
    ] {
        for is_read in [true, false] {
            let mut turns: Vec<[Cost; 2]> = Vec::new();
            for _ in 0..5 {
                turns.push([1, 2].map(|loops| cost(&backend, loops, is_read)));
            }
            let median = |of: &dyn Fn(&[Cost; 2]) -> f64| {
                let mut ratios: Vec<f64> = turns.iter().map(of).collect();
                ratios.sort_by(f64::total_cmp);
                ratios[ratios.len() / 2]
            };
            let work = if is_read { "read" } else { "write" };
            let cpu = median(&|[one, two]| two.cpu_ns / one.cpu_ns);
            let rate = median(&|[one, two]| two.rate / one.rate);
            println!("{work} of 4 KiB, {backend}: {cpu:.2} times the CPU time, {rate:.2} times the rate");
        }
    }
}

/// What a command takes of the target's threads, and how many are served in a second.
struct Cost {
    cpu_ns: f64,
    rate: f64,
}

fn cost(backend: &str, loops: u32, is_read: bool) -> Cost {
    const HOSTS: u64 = 4;
    const COMMANDS: u64 = 20_000;
    const DEPTH: u64 = 32;
    let mut plan = plan(&format!("busy_poll = '0us'\n[[subsystem]]\nnamespace = [{{ {backend} }}]"));
    plan.loops = loops;
    let (sender, receiver) = std::sync::mpsc::channel();
    let first = std::thread::Builder::new().name("loop-0".into()).spawn(move || {
        let mut server = Server::start(&plan, ServerOptions::default()).expect("it starts");
        sender.send((server.addresses()[0].to_string(), server.stopper())).expect("somebody waits");
        server.run()
    });
    let (address, stopper) = receiver.recv().expect("it starts");
    let connect = |number: u64| {
        let host = live::Host::connect(&address, config(&format!("host-{number}"))).expect("it is let in");
        RemoteDisk::open(host, 1).expect("it is there")
    };
    let mut disks: Vec<RemoteDisk> = (0..HOSTS).map(connect).collect();
    let (before, began) = (cpu_ns(), std::time::Instant::now());
    std::thread::scope(|scope| {
        for (number, disk) in (0..).zip(&mut disks) {
            scope.spawn(move || {
                let submit = |disk: &mut RemoteDisk, command: u64| {
                    let extent = Extent { start: (number * 4096 + command * 7919) % 16_000 * 8, blocks: 8 };
                    match is_read {
                        true => disk.submit_read(1, extent).map(drop),
                        false => disk.submit_write(1, extent, vec![1; 4096], false).map(drop),
                    }
                    .expect("there is room");
                };
                (0..DEPTH).for_each(|command| submit(disk, command));
                for command in DEPTH..COMMANDS {
                    assert!(disk.host().next_completed().expect("an answer").status.is_success());
                    submit(disk, command);
                }
                (0..DEPTH).for_each(|_| drop(disk.host().next_completed().expect("an answer")));
            });
        }
    });
    let (cpu, took) = (cpu_ns() - before, began.elapsed().as_secs_f64());
    stopper.stop();
    first.expect("a thread").join().expect("it does not panic").expect("it ends in order");
    let commands = (HOSTS * COMMANDS) as f64;
    Cost { cpu_ns: cpu as f64 / commands, rate: commands / took }
}

/// Nanoseconds that threads of the target have run.
fn cpu_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux").flatten().map(|task| task.path());
    let is_ours = |path: &std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        name.starts_with("loop-") || name.starts_with("backend-")
    };
    let run = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    tasks.filter(is_ours).filter_map(run).sum()
}
