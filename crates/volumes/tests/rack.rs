//! A rack of threads on loopback: pages through switch, replicas and flash. Journals of its roles
//! are replayed afterwards: each makes the same decisions again.

mod common;

use common::{Live, PAGE, assert_replays, free_addresses, json, noted, page_of, rack, read, wait_until, write};
use plan::rack::{Rack, Switch};
use runtime::storage::Storage as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use volumes::{Door, Volume};

/// Ends all roles. Each makes the same decisions again: how many there were.
fn end_and_replay(live: Live, volume: Volume) -> u64 {
    drop(volume);
    let rack = live.rack.clone();
    drop(live);
    assert_replays(&rack)
}

#[test]
fn what_is_written_is_read_and_what_was_never_written_is_zeros() {
    let folder = tempfile::tempdir().expect("a folder");
    let live = Live::up(rack(folder.path(), 2, 64));
    let volume = live.volume();
    assert_eq!(volume.bytes(), 64 * PAGE as u64);
    assert_eq!(read(&volume, 5), vec![0; PAGE]);
    write(&volume, 5, 1);
    assert_eq!(read(&volume, 5), page_of(5, 1));
    let many: Vec<u8> = (10..42).flat_map(|page| page_of(page, 3)).collect();
    volume.write(10 * PAGE as u64, &many).expect("many pages");
    let mut back = vec![0; many.len()];
    volume.read(10 * PAGE as u64, &mut back).expect("they are read");
    assert_eq!(back, many);
    volume.zero(11 * PAGE as u64, PAGE as u64, true).expect("zeroed");
    assert_eq!(read(&volume, 11), vec![0; PAGE]);
    for (at, bytes) in [(1, PAGE), (0, 100), (63 * PAGE as u64, 2 * PAGE), (u64::MAX - 4_095, PAGE)] {
        assert!(volume.read(at, &mut vec![0; bytes]).is_err(), "{bytes} at {at}");
    }
}

#[test]
fn overwriting_a_full_volume_collects_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let live = Live::up(noted(folder.path(), 2, 512));
    let volume = live.volume();
    for round in 0..8 {
        let all: Vec<u8> = (0..512).flat_map(|page| page_of(page, round)).collect();
        volume.write(0, &all).expect("all of it");
    }
    for page in 0..512 {
        assert_eq!(read(&volume, page), page_of(page, 7), "page {page}");
    }
    assert!(end_and_replay(live, volume) > 10_000, "eight times 512 writes, and reads");
}

#[test]
fn after_an_orderly_end_of_all_roles_everything_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = rack(folder.path(), 2, 64);
    for round in 1..4 {
        let live = Live::up(rack.clone());
        let volume = live.volume();
        if round > 1 {
            for page in 0..64 {
                assert_eq!(read(&volume, page), page_of(page, round - 1), "page {page} in round {round}");
            }
        }
        (0..64).for_each(|page| write(&volume, page, round));
    }
}

/// Has a loop end when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn hosts_see_delays_and_no_errors_while_each_role_is_stopped_and_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut live = Live::up(noted(folder.path(), 3, 64));
    let volume = live.volume();
    (0..64).for_each(|page| write(&volume, page, 0));
    let (ends, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let versions = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (mut versions, mut done) = ([0; 64], 0_u64);
            while !ends.load(Ordering::Relaxed) {
                let page = done * 7 % 64;
                versions[page as usize] += 1;
                write(&volume, page, versions[page as usize]);
                let other = done * 11 % 64;
                assert_eq!(read(&volume, other), page_of(other, versions[other as usize]), "page {other}");
                done += 1;
                count.store(done, Ordering::Relaxed);
            }
            versions
        });
        // Also where a check fails: the worker is awaited before that is told.
        let at_the_end = Ends(&ends);
        for role in ["s0", "switch", "s1", "control", "s0"] {
            std::thread::sleep(Duration::from_millis(500));
            live.wait_until_whole();
            live.stop(role);
            std::thread::sleep(Duration::from_millis(400));
            live.start(role);
        }
        std::thread::sleep(Duration::from_secs(1));
        wait_until("100 requests", || count.load(Ordering::Relaxed) > 100 || worker.is_finished());
        drop(at_the_end);
        worker.join().expect("no error, and no page is another")
    });
    for (page, version) in versions.iter().enumerate() {
        assert_eq!(read(&volume, page as u64), page_of(page as u64, *version), "page {page}");
    }
    end_and_replay(live, volume);
}

/// A host that gives up has its write done by the other door, and writes again. No copy of the
/// first write may come after that.
#[test]
fn a_write_whose_host_has_gone_is_not_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rack = noted(folder.path(), 2, 64);
    let (name, listen) = ("other".into(), free_addresses(1)[0]);
    rack.doors.push(plan::rack::Door { name, listen, ..rack.doors[0].clone() });
    let mut live = Live::up(rack);
    let volume = live.volume();
    let other = Door::open(&live.rack, "other").and_then(|door| door.volume(&live.rack, "disk")).expect("it opens");
    write(&volume, 5, 1);
    for round in 0..4 {
        live.wait_until_whole();
        // Whatever is sent now is lost.
        live.stop("switch");
        let (request, leave) = volume.leavable().expect("servers may be long away");
        let (late, now) = (2 * round + 2, 2 * round + 3);
        let ended = std::thread::scope(|scope| {
            let ends = scope.spawn(|| request.write(5 * PAGE as u64, &page_of(5, late)));
            std::thread::sleep(Duration::from_millis(100));
            leave();
            ends.join().expect("it returns")
        });
        assert_eq!(ended.expect_err("nobody has answered").kind(), std::io::ErrorKind::ConnectionAborted);
        live.start("switch");
        write(&other, 5, now);
        // A copy would come within 8 times 50 ms.
        for _ in 0..10 {
            assert_eq!(read(&other, 5), page_of(5, now), "round {round}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    // One that its host has left before the door begins with it.
    let (request, leave) = volume.leavable().expect("servers may be long away");
    leave();
    let ended = request.write(5 * PAGE as u64, &page_of(5, 100));
    assert_eq!(ended.expect_err("it is not begun").kind(), std::io::ErrorKind::ConnectionAborted);
    assert_eq!(read(&volume, 5), page_of(5, 9));
    drop((request, other));
    end_and_replay(live, volume);
}

#[test]
fn a_server_that_stays_away_is_replaced_by_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut live = Live::up(rack(folder.path(), 3, 64));
    let volume = live.volume();
    (0..64).for_each(|page| write(&volume, page, 1));
    // The last one replaces a replica whose peers are replacements themselves.
    for (version, (lost, other, heir)) in (1..).zip([("s0", "s1", "s2"), ("s1", "s2", "s0"), ("s2", "s0", "s1")]) {
        live.wait_until_whole();
        live.stop(lost);
        let made = folder.path().join(heir).join("server.json");
        let has_adopted = || std::fs::read_to_string(&made).is_ok_and(|text| !text.contains("\"adopted\":[]"));
        wait_until(&format!("somebody takes in the replica that was lost with {lost}"), has_adopted);
        // Once it serves, the other one may go for a while.
        live.wait_until_whole();
        live.stop(other);
        for page in 0..64 {
            assert_eq!(read(&volume, page), page_of(page, version), "page {page} without {lost}");
            write(&volume, page, version + 1);
            assert_eq!(read(&volume, page), page_of(page, version + 1), "page {page} without {lost}");
        }
        // The lost one comes when it can no longer take in what the other one has.
        live.start(other);
        live.wait_until_whole();
        live.start(lost);
        let server = lost[1..].parse().expect("s and a number");
        wait_until("the control plane has heard of it", || {
            live.is_known(&json(&folder.path().join("control.json")), server)
        });
    }
    for page in 0..64 {
        assert_eq!(read(&volume, page), page_of(page, 4), "page {page}");
    }
}

#[test]
fn a_volume_has_the_same_identity_at_every_start_and_no_other_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = free_addresses(2)[..] else { panic!("two") };
    let file = folder.path().join("rack.toml");
    let text = format!(
        "[[storage]]\nname = 's'\nlisten = '{one}'\n[[volume]]\nname = 'a'\nsize = '1MiB'\nreplicas = ['s']\n\
         [[volume]]\nname = 'b'\nsize = '2MiB'\nreplicas = ['s']\n\
         [[door]]\nname = 'd'\nlisten = '{other}'\nconfig = 't.toml'\n"
    );
    std::fs::write(&file, text).expect("a disk");
    let rack = file.display().to_string();
    let of = |volume: &str| {
        let (rack, door) = (rack.clone(), "d".into());
        let backend = plan::target::Backend::Volume { rack, door, volume: volume.into() };
        volumes::identity_of(&backend).expect("it can be kept").expect("a volume has one")
    };
    assert_eq!(of("a"), of("a"));
    assert_ne!(of("a"), of("b"));
    assert_eq!(of("a")[6] >> 4, 8, "RFC 9562");
    assert_eq!(volumes::identity_of(&plan::target::Backend::Ram).expect("nothing is read"), None);
    assert_eq!(volumes::bytes_of(&rack, "b").expect("it is there"), 2 << 20);
    let missing = volumes::bytes_of(&rack, "c").expect_err("there are two").to_string();
    assert!(missing.contains("the rack has no volume `c`; it has a, b"), "{missing}");
}

#[test]
fn datagrams_of_another_rack_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [own, other] = [1, 2].map(|name| rack(&folder.path().join(name.to_string()), 2, 64));
    // The other rack's door sends to this rack's switch.
    let stray = Rack { switch: Switch { listen: own.switch.listen, ..other.switch.clone() }, ..other };
    let live = Live::up(own);
    let volume = live.volume();
    write(&volume, 5, 1);
    let wrong = Door::open(&stray, "door").expect("it opens").volume(&stray, "disk").expect("it is there");
    // It waits for its answer for longer than this test lasts.
    std::thread::spawn(move || wrong.write(5 * PAGE as u64, &page_of(5, 2)));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(read(&volume, 5), page_of(5, 1));
}
