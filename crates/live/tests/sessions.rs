//! Hosts against the live target over the loopback: does it run, and does it keep what it was
//! given.

mod support;

use live::{Extent, HostError};
use nvme::initiator::{HostEvent, InitiatorConfig, Payload};
use nvme::pdu::Digests;
use nvme::{Access, AccessFlags, Body, DatasetManagement, DatasetUse, Io};
use std::io::{Read, Write};
use support::{Running, config, free_address, http, metric, pattern};

const BACKENDS: [&str; 4] = [
    "[[subsystem]]\nnamespace = [{ size = '16MiB' }]",
    "[[subsystem]]\nnamespace = [{ backend = 'flash', drive = 'optane', size = '16MiB', block = '4KiB' }]",
    "[[subsystem]]\nnamespace = [{ backend = 'file', path = 'PATH', size = '16MiB' }]",
    "[[subsystem]]\nnamespace = [{ backend = 'file', path = 'PATH', size = '16MiB', io = 'threads' }]",
];

/// Every backend that keeps data.
fn each_backend(test: impl Fn(&Running)) {
    for text in BACKENDS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk").display().to_string();
        let target = Running::start(&text.replace("PATH", &path));
        test(&target);
        target.stop();
    }
}

#[test]
fn what_was_written_is_read_back_in_every_size_and_after_a_new_connection() {
    each_backend(|target| {
        let mut disk = target.disk();
        let bytes = disk.block_bytes() as usize;
        let mut start = 3;
        for blocks in [1, 2, 7, 16, 100, disk.transfer_blocks_max()] {
            let data = pattern(start, 1, blocks as usize * bytes);
            disk.write(Extent { start, blocks }, data.clone(), blocks == 7).expect("it is taken");
            assert_eq!(disk.read(Extent { start, blocks }).expect("it is there"), data, "{blocks} blocks");
            start += u64::from(blocks);
        }
        disk.flush().expect("it is kept");
        disk.disconnect().expect("in order");
        let mut again = target.disk();
        assert_eq!(again.read(Extent { start: 3, blocks: 1 }).expect("it is there"), pattern(3, 1, bytes));
        assert_eq!(again.read(Extent { start: 0, blocks: 3 }).expect("it is there"), vec![0; 3 * bytes]);
    });
}

#[test]
fn every_way_to_connect_moves_the_same_data() {
    let target = Running::start(BACKENDS[0]);
    for (header, data) in [(false, false), (true, false), (false, true), (true, true)] {
        for flow_control in [true, false] {
            let digests = Digests { header, data };
            let mut disk = target.disk_as(InitiatorConfig { digests, flow_control, ..config("one") }, 1);
            let written = pattern(9, 2, 48 << 9);
            disk.write(Extent { start: 9, blocks: 48 }, written.clone(), false).expect("it is taken");
            assert_eq!(disk.read(Extent { start: 9, blocks: 48 }).expect("it is there"), written);
            disk.disconnect().expect("in order");
        }
    }
    target.stop();
}

#[test]
fn a_host_that_vanishes_leaves_its_data_and_may_come_back() {
    each_backend(|target| {
        for version in 1..6 {
            let mut disk = target.disk();
            let data = pattern(0, version, 64 * disk.block_bytes() as usize);
            if version > 1 {
                let last = pattern(0, version - 1, data.len());
                assert_eq!(disk.read(Extent { start: 0, blocks: 64 }).expect("it is there"), last);
            }
            disk.write(Extent { start: 0, blocks: 64 }, data, false).expect("it is taken");
            // Requests are underway when the sockets close.
            for start in 0..32 {
                disk.submit_read(1, Extent { start, blocks: 64 }).expect("there is room");
            }
            let _ = disk.host().next_event_within(std::time::Duration::ZERO).expect("it is connected");
        }
    });
}

#[test]
fn several_hosts_and_queues_do_not_mix_their_data() {
    let target = Running::start(BACKENDS[0]);
    std::thread::scope(|scope| {
        for host in 0..4u64 {
            let target = &target;
            scope.spawn(move || {
                let config = InitiatorConfig { io_queues: 2, ..config(&format!("host-{host}")) };
                let mut disk = target.disk_as(config, 1);
                for round in 0..50 {
                    let extent = Extent { start: host * 1000 + round * 8, blocks: 8 };
                    let data = pattern(extent.start, host, 8 << 9);
                    let queue = 1 + (round % 2) as u16;
                    disk.submit_write(queue, extent, data.clone(), false).expect("there is room");
                    assert!(disk.host().next_completed().expect("an answer").status.is_success());
                    assert_eq!(disk.read(extent).expect("it is there"), data);
                }
                disk.disconnect().expect("in order");
            });
        }
    });
    target.stop();
}

#[test]
fn a_reset_ends_the_association_and_the_next_one_works() {
    let target = Running::start(BACKENDS[0]);
    let mut disk = target.disk();
    disk.write(Extent { start: 0, blocks: 1 }, pattern(0, 1, 512), false).expect("it is taken");
    disk.host().disable();
    let ended = std::iter::from_fn(|| Some(disk.host().next_event())).find(Result::is_err);
    assert!(matches!(ended, Some(Err(HostError::Association(_)))));
    assert_eq!(target.disk().read(Extent { start: 0, blocks: 1 }).expect("it is there"), pattern(0, 1, 512));
    target.stop();
}

#[test]
fn a_host_that_is_not_on_the_list_is_told_so() {
    let target = Running::start("[[subsystem]]\nhosts = ['nqn.2026-11.io.rackweave:one']\n");
    target.disk().disconnect().expect("it is on the list");
    let error = target.host(config("two")).err().expect("it is not").to_string();
    assert!(error.starts_with("Connect was refused") && error.contains("host"), "{error}");
    target.stop();
}

#[test]
fn discovery_tells_a_host_of_what_it_may_use() {
    let target = Running::start(
        "[[subsystem]]\nnqn = 'nqn.2026-11.io.rackweave:disk'\n[[subsystem]]\nnqn = 'nqn.2026-11.io.rackweave:other'\nhosts = ['nqn.2026-11.io.rackweave:two']\n",
    );
    let names = |host: &str| -> Vec<String> {
        let entries = live::discover(&target.address, config(host), &live::Proof::default()).expect("it answers");
        entries
            .iter()
            .filter(|entry| entry.kind == nvme::log::SubsystemKind::Nvm)
            .map(|entry| entry.subsystem.to_string())
            .collect()
    };
    assert_eq!(names("one"), ["nqn.2026-11.io.rackweave:disk"]);
    assert_eq!(names("two").len(), 2);
    target.stop();
}

#[test]
fn what_is_trimmed_or_zeroed_reads_as_zeros_and_its_neighbours_stay() {
    each_backend(|target| {
        let mut disk = target.disk();
        let bytes = disk.block_bytes() as usize;
        disk.write(Extent { start: 0, blocks: 32 }, vec![1; 32 * bytes], false).expect("it is taken");
        let access = Access { start: 8, blocks_minus_one: 7, flags: AccessFlags::DEALLOCATE };
        let zeroes = disk.host().call(1, 1, Body::Io(Io::WriteZeroes(access)), Payload::None).expect("an answer");
        assert!(zeroes.status.is_success(), "{}", zeroes.status);
        // One range (attributes, blocks, start) in room for 256, as Linux sends it.
        let mut range = [0u32.to_le_bytes(), 4u32.to_le_bytes()].concat();
        range.extend(24u64.to_le_bytes());
        range.resize(4096, 0);
        let manage = DatasetManagement { ranges_minus_one: 0, intent: DatasetUse::DEALLOCATE };
        let trim = disk.host().call(1, 1, Body::Io(Io::DatasetManagement(manage)), Payload::ToController(range));
        assert!(trim.expect("an answer").status.is_success());
        let back = disk.read(Extent { start: 0, blocks: 32 }).expect("it is there");
        let expected: Vec<u8> = (0..32).map(|block| u8::from(!(8..16).contains(&block))).collect();
        for block in (0..24).chain(28..32) {
            assert_eq!(back[block * bytes..(block + 1) * bytes], vec![expected[block]; bytes], "block {block}");
        }
    });
}

#[test]
fn metrics_count_what_was_done_and_health_is_told() {
    let address = free_address();
    let target = Running::start(&format!("metrics = '{address}'\n{}", BACKENDS[0]));
    let mut disk = target.disk();
    for start in 0..10 {
        disk.write(Extent { start, blocks: 1 }, vec![1; 512], false).expect("it is taken");
    }
    disk.read(Extent { start: 0, blocks: 4 }).expect("it is there");
    assert!(http(&address, "/healthz").ends_with("\r\n\r\nok\n"));
    assert_eq!(metric(&address, "rackweave_target_writes_total"), 10);
    assert_eq!(metric(&address, "rackweave_target_read_bytes_total"), 2048);
    assert_eq!(metric(&address, "rackweave_target_controllers"), 1);
    assert!(http(&address, "/other").starts_with("HTTP/1.1 404"));
    disk.disconnect().expect("in order");
    target.stop();
}

#[test]
fn connections_that_say_nothing_cost_nothing() {
    const CONNECTIONS: usize = 64;
    let address = free_address();
    let limits = "limits = { handshake = '1h' }";
    let target = Running::start(&format!("metrics = '{address}'\n{limits}\n{}", BACKENDS[0]));
    let silent: Vec<_> =
        (0..CONNECTIONS).map(|_| std::net::TcpStream::connect(&target.address).expect("it listens")).collect();
    while metric(&address, "rackweave_target_connections") < CONNECTIONS as u64 {}
    let before = metric(&address, "rackweave_target_turns_total");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let turns = metric(&address, "rackweave_target_turns_total") - before;
    // The question itself takes some turns; a loop that spins would take many thousands.
    assert!(turns < 50, "{turns} turns while nothing happened");
    drop(silent);
    target.stop();
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_noticed() {
    let target = Running::start(&format!("limits = {{ handshake = '1h', idle = '1h' }}\n{}", BACKENDS[0]));
    let mut peer = std::net::TcpStream::connect(&target.address).expect("it listens");
    // Too few to mean anything. Corked: the system hears of the bytes and of the end at once, and
    // tells of both in one event.
    rustix::net::sockopt::set_tcp_cork(&peer, true).expect("it is TCP");
    peer.write_all(&[0; 4]).expect("there is room");
    peer.shutdown(std::net::Shutdown::Write).expect("it is open");
    peer.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("it is longer than nothing");
    let closed = peer.read_to_end(&mut Vec::new());
    assert!(closed.is_ok(), "the target has let go of it: {closed:?}");
    target.stop();
}

#[test]
fn a_target_that_is_full_refuses_and_goes_on() {
    let target = Running::start(&format!("limits = {{ connections = 4 }}\n{}", BACKENDS[0]));
    let disk = target.disk();
    let other = target.host(config("two")).expect("there is room for it");
    assert!(target.host(config("three")).is_err(), "two hosts, each with an admin and an I/O queue");
    disk.disconnect().expect("in order");
    while target.host(config("three")).is_err() {}
    drop(other);
    target.stop();
}

#[test]
fn strangers_that_fill_a_target_make_room_for_hosts() {
    let target = Running::start(&format!("limits = {{ connections = 6, handshake = '1h' }}\n{}", BACKENDS[0]));
    let mut disk = target.disk();
    let strangers: Vec<_> =
        (0..20).map(|_| std::net::TcpStream::connect(&target.address).expect("it listens")).collect();
    let other = target.host(config("two")).expect("strangers make room for it");
    let data = vec![7; 512];
    disk.write(Extent { start: 0, blocks: 1 }, data, true).expect("its host is no stranger");
    let mut ended = 0;
    for mut stranger in strangers {
        stranger.set_read_timeout(Some(std::time::Duration::from_millis(200))).expect("a socket");
        ended += usize::from(matches!(stranger.read(&mut [0; 1]), Ok(0)));
    }
    assert_eq!(ended, 18, "two hosts have four of six connections");
    drop(other);
    target.stop();
}

#[test]
fn an_event_tells_hosts_of_nothing_when_nothing_changes() {
    let target = Running::start(BACKENDS[0]);
    let mut host = target.host(config("one")).expect("it is let in");
    let event = host.next_event_within(std::time::Duration::from_millis(100)).expect("it is connected");
    assert!(!matches!(event, Some(HostEvent::Notice(_))), "{event:?}");
    target.stop();
}
