//! A rack of threads on loopback: pages through switch, replicas and flash.

use base::{Bytes, Span};
use plan::rack::{Control, Door as DoorPlan, Flash, Rack, Storage, Switch, Volume as VolumePlan};
use plan::target::{LogFormatName, LogLevelName};
use runtime::storage::Storage as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volumes::{Door, Running, Start, Stop, Volume, control, storage, switch};

const PAGE: usize = 4_096;

fn free_addresses(count: usize) -> Vec<SocketAddr> {
    let sockets: Vec<UdpSocket> =
        (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").expect("there is a free port")).collect();
    sockets.iter().map(|socket| socket.local_addr().expect("it is bound")).collect()
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
    Storage { name: format!("s{server}"), listen, metrics: None, room: 1, flash, cache: Bytes::kib(256) }
}

/// Servers with a volume of `pages` pages on the first two of them.
fn rack(folder: &Path, servers: usize, pages: u64) -> Rack {
    let mut addresses = free_addresses(servers + 3).into_iter();
    let mut next = || addresses.next().expect("there are enough");
    Rack {
        folder: folder.into(),
        log: LogLevelName::Warn,
        log_format: LogFormatName::Text,
        switch: Switch { listen: next(), metrics: None, coordination: true },
        control: Control {
            listen: next(),
            metrics: None,
            beat: Span::ms(30),
            misses: 6,
            lease: Span::ms(120),
            resend: Span::ms(30),
            replace_after: Span::secs(2),
        },
        doors: vec![DoorPlan { name: "door".into(), listen: next(), config: "target.toml".into() }],
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

#[test]
fn hosts_see_delays_and_no_errors_while_each_role_is_stopped_and_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut live = Live::up(rack(folder.path(), 3, 64));
    let volume = live.volume();
    (0..64).for_each(|page| write(&volume, page, 0));
    let until = Instant::now() + Duration::from_secs(6);
    let work = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (mut versions, mut done) = ([0; 64], 0_u64);
            while Instant::now() < until {
                let page = done * 7 % 64;
                versions[page as usize] += 1;
                write(&volume, page, versions[page as usize]);
                let other = done * 11 % 64;
                assert_eq!(read(&volume, other), page_of(other, versions[other as usize]), "page {other}");
                done += 1;
            }
            (versions, done)
        });
        for role in ["s0", "switch", "s1", "control", "s0"] {
            std::thread::sleep(Duration::from_millis(500));
            live.stop(role);
            std::thread::sleep(Duration::from_millis(400));
            live.start(role);
        }
        worker.join().expect("no error, and no page is another")
    });
    for (page, version) in work.0.iter().enumerate() {
        assert_eq!(read(&volume, page as u64), page_of(page as u64, *version), "page {page}");
    }
    assert!(work.1 > 100, "only {} requests", work.1);
}

#[test]
fn a_server_that_stays_away_is_replaced_by_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut live = Live::up(rack(folder.path(), 3, 64));
    let volume = live.volume();
    (0..64).for_each(|page| write(&volume, page, 1));
    // The last one replaces a replica whose peers are replacements themselves.
    for (version, (lost, other, heir)) in (1..).zip([("s0", "s1", "s2"), ("s1", "s2", "s0"), ("s2", "s0", "s1")]) {
        live.stop(lost);
        let made = folder.path().join(heir).join("server.json");
        let until = Instant::now() + Duration::from_secs(20);
        let has_adopted = || std::fs::read_to_string(&made).is_ok_and(|text| !text.contains("\"adopted\":[]"));
        while !has_adopted() {
            assert!(Instant::now() < until, "nobody took in the replica that was lost with {lost}");
            std::thread::sleep(Duration::from_millis(50));
        }
        // Once it serves, the other one may go for a while.
        std::thread::sleep(Duration::from_secs(1));
        live.stop(other);
        for page in 0..64 {
            assert_eq!(read(&volume, page), page_of(page, version), "page {page} without {lost}");
            write(&volume, page, version + 1);
            assert_eq!(read(&volume, page), page_of(page, version + 1), "page {page} without {lost}");
        }
        live.start(other);
        live.start(lost);
        std::thread::sleep(Duration::from_secs(1));
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
