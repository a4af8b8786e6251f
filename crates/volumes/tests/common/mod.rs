//! A rack of threads on loopback.

#![allow(dead_code, reason = "each suite uses some of it")]

use base::{Bytes, Span};
use plan::rack::{Control, Door as DoorPlan, Flash, Rack, Storage, Switch, Volume as VolumePlan};
use plan::target::{LogFormatName, LogLevelName};
use runtime::storage::Storage as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volumes::{Door, Running, Start, Stop, Volume, control, storage, switch, twin};

pub const PAGE: usize = 4_096;

/// Longer than anything takes here.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Addresses that nobody has, below those that the system hands out (ip(7)): nobody is given one
/// before it is bound, or while its role is away.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() * 61 % 20_000) as u16;
    let all = (0..2_000).map(|_| SocketAddr::from(([127, 0, 0, 1], first + NEXT.fetch_add(1, Ordering::Relaxed))));
    let free: Vec<SocketAddr> = all.filter(|address| UdpSocket::bind(address).is_ok()).take(count).collect();
    assert_eq!(free.len(), count, "there are free ports");
    free
}

pub fn server_of(folder: &Path, server: usize, pages: u64, listen: SocketAddr) -> Storage {
    let flash = Flash {
        path: Some(folder.join(format!("s{server}"))),
        size: Bytes::kib(4) * pages * 8,
        reserve: false,
        spare: 0.2,
        channels: 2,
        pages_per_block: 16,
        read: Span::ZERO,
        program: Span::ZERO,
        erase: Span::ZERO,
    };
    let name = format!("s{server}");
    Storage {
        name,
        listen,
        address: None,
        metrics: None,
        room: 1,
        flash,
        cache: Bytes::kib(256),
        scrub: Span::secs(86_400),
    }
}

/// Servers with a volume of `pages` pages on the first two of them.
pub fn rack(folder: &Path, servers: usize, pages: u64) -> Rack {
    let mut addresses = free_addresses(servers + 3).into_iter();
    let mut next = || addresses.next().expect("there are enough");
    Rack {
        folder: folder.into(),
        log: LogLevelName::Warn,
        log_format: LogFormatName::Text,
        secret: None,
        journal: None,
        records: None,
        switch: Switch { listen: next(), address: None, metrics: None, coordination: true, xdp: None },
        control: Control {
            listen: next(),
            address: None,
            metrics: None,
            beat: Span::ms(30),
            misses: 6,
            patience: Span::secs(3),
            lease: Span::ms(120),
            resend: Span::ms(30),
            replace_after: Span::secs(2),
        },
        doors: vec![DoorPlan { name: "door".into(), listen: next(), address: None, config: "target.toml".into() }],
        storage: (0..servers).map(|server| server_of(folder, server, pages, next())).collect(),
        volumes: vec![VolumePlan { name: "disk".into(), size: Bytes::kib(4) * pages, replicas: vec![0, 1] }],
        jbofs: Vec::new(),
        targets: Vec::new(),
        stores: Vec::new(),
        loads: Vec::new(),
        store_loads: Vec::new(),
        model: None,
    }
}

/// The same, whose roles keep journals.
pub fn noted(folder: &Path, servers: usize, pages: u64) -> Rack {
    Rack { journal: Some(folder.join("journal")), ..rack(folder, servers, pages) }
}

/// Roles on threads. Dropping it ends them in order.
pub struct Live {
    pub rack: Rack,
    roles: Vec<(String, Stop, JoinHandle<()>)>,
}

impl Live {
    pub fn up(rack: Rack) -> Live {
        let mut live = Live { rack, roles: Vec::new() };
        live.start("control");
        live.start("switch");
        for server in 0..live.rack.storage.len() {
            live.start(&format!("s{server}"));
        }
        live
    }

    pub fn start(&mut self, name: &str) {
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

    pub fn stop(&mut self, name: &str) {
        let place = self.roles.iter().position(|(role, ..)| role == name).expect("it runs");
        let (_, stop, thread) = self.roles.remove(place);
        stop.stop();
        thread.join().expect("it ends");
    }

    /// Whether both replicas are up to date, on servers that run as the control plane knows them.
    /// It notes in its file what it decides, before anybody hears of it.
    pub fn is_whole(&self) -> bool {
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
    pub fn is_known(&self, state: &serde_json::Value, server: usize) -> bool {
        // Its file counts its starts, its beats those before the last.
        let starts = json(&self.rack.folder.join(format!("s{server}/server.json")))["starts"].as_u64();
        let known = &state["servers"][server];
        known["standing"] == "Alive" && starts == known["starts"].as_u64().map(|before| before + 1)
    }

    pub fn wait_until_whole(&self) {
        wait_until("both replicas serve", || self.is_whole());
    }

    pub fn volume(&self) -> Volume {
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

pub fn json(path: &Path) -> serde_json::Value {
    std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < until, "not within {TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn page_of(page: u64, version: u64) -> Vec<u8> {
    let mut seed = page << 32 | version;
    let word = |_| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed.to_le_bytes()
    };
    (0..PAGE / 8).flat_map(word).collect()
}

pub fn read(volume: &Volume, page: u64) -> Vec<u8> {
    let mut data = vec![1; PAGE];
    volume.read(page * PAGE as u64, &mut data).expect("it is read");
    data
}

pub fn write(volume: &Volume, page: u64, version: u64) {
    volume.write(page * PAGE as u64, &page_of(page, version)).expect("it is written");
}

/// Each journal of the rack, by the same role again, makes the same decisions: how many there were.
pub fn assert_replays(rack: &Rack) -> u64 {
    let folder = rack.journal.as_ref().expect("the rack has journals");
    let told = twin::Journals::open(rack, folder).and_then(|journals| journals.replay(rack)).expect("they are read");
    for role in &told.replayed {
        assert_eq!((role.differences, &role.first), (0, &None), "{}", role.name);
        assert_eq!((&*role.counters, role.is_cut, role.is_whole), (&[][..], false, true), "{}", role.name);
    }
    told.replayed.iter().map(|role| role.decisions).sum()
}
