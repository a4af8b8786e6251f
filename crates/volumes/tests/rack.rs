//! A rack of threads on loopback: pages through switch, replicas and flash.

use base::{Bytes, Span};
use plan::rack::{Control, Door as DoorPlan, Flash, Rack, Storage, Switch, Volume as VolumePlan};
use plan::target::{LogFormatName, LogLevelName};
use runtime::storage::Storage as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volumes::{Door, Running, Start, Stop, Volume, control, storage, switch};

const PAGE: usize = 4_096;

/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Addresses that nobody has, below those that the system hands out (ip(7)): nobody is given one
/// before it is bound, or while its role is away.
fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() * 61 % 20_000) as u16;
    let all = (0..2_000).map(|_| SocketAddr::from(([127, 0, 0, 1], first + NEXT.fetch_add(1, Ordering::Relaxed))));
    let free: Vec<SocketAddr> = all.filter(|address| UdpSocket::bind(address).is_ok()).take(count).collect();
    assert_eq!(free.len(), count, "there are free ports");
    free
}

fn server_of(folder: &Path, server: usize, pages: u64, listen: SocketAddr) -> Storage {
    let flash = Flash {
        path: Some(folder.join(format!("s{server}"))),
        size: Bytes::kib(4) * pages * 8,
        spare: 0.2,
        channels: 2,
        pages_per_block: 16,
        read: Span::ZERO,
        program: Span::ZERO,
        erase: Span::ZERO,
    };
    let name = format!("s{server}");
    Storage { name, listen, address: None, metrics: None, room: 1, flash, cache: Bytes::kib(256) }
}

/// Servers with a volume of `pages` pages on the first two of them.
fn rack(folder: &Path, servers: usize, pages: u64) -> Rack {
    let mut addresses = free_addresses(servers + 3).into_iter();
    let mut next = || addresses.next().expect("there are enough");
    Rack {
        folder: folder.into(),
        log: LogLevelName::Warn,
        log_format: LogFormatName::Text,
        secret: None,
        switch: Switch { listen: next(), address: None, metrics: None, coordination: true },
        control: Control {
            listen: next(),
            address: None,
            metrics: None,
            beat: Span::ms(30),
            misses: 6,
            lease: Span::ms(120),
            resend: Span::ms(30),
            replace_after: Span::secs(2),
        },
        doors: vec![DoorPlan { name: "door".into(), listen: next(), address: None, config: "target.toml".into() }],
        storage: (0..servers).map(|server| server_of(folder, server, pages, next())).collect(),
        volumes: vec![VolumePlan { name: "disk".into(), size: Bytes::kib(4) * pages, replicas: vec![0, 1] }],
        stores: Vec::new(),
    }
}

/// Roles on threads. Dropping it ends them in order.
struct Live {
    rack: Rack,
    roles: Vec<(String, Stop, JoinHandle<()>)>,
}

impl Live {
    fn up(rack: Rack) -> Live {
        let mut live = Live { rack, roles: Vec::new() };
        live.start("control");
        live.start("switch");
        for server in 0..live.rack.storage.len() {
            live.start(&format!("s{server}"));
        }
        live
    }

    fn start(&mut self, name: &str) {
        let running: Running = match name {
            "control" => control::start(&self.rack, Start::Thread),
            "switch" => switch::start(&self.rack, Start::Thread),
            server => {
                let place = server[1..].parse().expect("s and a number");
                storage::start(&self.rack, place, Start::Thread)
            }
        }
        .unwrap_or_else(|error| panic!("{name}: {error}"));
        let stop = running.stopper();
        let thread = std::thread::spawn(move || running.run().expect("it runs"));
        self.roles.push((name.into(), stop, thread));
    }

    fn stop(&mut self, name: &str) {
        let place = self.roles.iter().position(|(role, ..)| role == name).expect("it runs");
        let (_, stop, thread) = self.roles.remove(place);
        stop.stop();
        thread.join().expect("it ends");
    }

    /// Whether both replicas are up to date, on servers that run as the control plane knows them.
    /// It notes in its file what it decides, before anybody hears of it.
    fn is_whole(&self) -> bool {
        let state = json(&self.rack.folder.join("control.json"));
        let group = &state["groups"][0];
        let none = |key: &str| group[key].as_array().is_some_and(Vec::is_empty);
        let Some([one, other]) = group["members"].as_array().map(Vec::as_slice) else { return false };
        let is_here = |member: &serde_json::Value| {
            member[1][0].as_u64().is_some_and(|server| self.is_known(&state, server as usize))
        };
        group["stale"].is_null() && ["lost", "awaited"].into_iter().all(none) && is_here(one) && is_here(other)
    }

    /// Whether the control plane has heard of the last start of a server.
    fn is_known(&self, state: &serde_json::Value, server: usize) -> bool {
        // Its file counts its starts, its beats those before the last.
        let starts = json(&self.rack.folder.join(format!("s{server}/server.json")))["starts"].as_u64();
        let known = &state["servers"][server];
        known["standing"] == "Alive" && starts == known["starts"].as_u64().map(|before| before + 1)
    }

    fn wait_until_whole(&self) {
        wait_until("both replicas serve", || self.is_whole());
    }

    fn volume(&self) -> Volume {
        let door = Door::open(&self.rack, "door").expect("it opens");
        door.volume(&self.rack, "disk").expect("it is there")
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        while let Some((name, ..)) = self.roles.last() {
            let name = name.clone();
            self.stop(&name);
        }
    }
}

fn json(path: &Path) -> serde_json::Value {
    std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < until, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn page_of(page: u64, version: u64) -> Vec<u8> {
    let mut seed = page << 32 | version;
    let word = |_| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed.to_le_bytes()
    };
    (0..PAGE / 8).flat_map(word).collect()
}

fn read(volume: &Volume, page: u64) -> Vec<u8> {
    let mut data = vec![1; PAGE];
    volume.read(page * PAGE as u64, &mut data).expect("it is read");
    data
}

fn write(volume: &Volume, page: u64, version: u64) {
    volume.write(page * PAGE as u64, &page_of(page, version)).expect("it is written");
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
    let live = Live::up(rack(folder.path(), 2, 512));
    let volume = live.volume();
    for round in 0..8 {
        let all: Vec<u8> = (0..512).flat_map(|page| page_of(page, round)).collect();
        volume.write(0, &all).expect("all of it");
    }
    for page in 0..512 {
        assert_eq!(read(&volume, page), page_of(page, 7), "page {page}");
    }
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
    let mut live = Live::up(rack(folder.path(), 3, 64));
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
