//! A replicated volume, reached by two doors, while its roles and doors are killed and paused: no
//! error, and a linearizable history, by our judge and by Porcupine.

#[path = "../../../history/tests/porcupine/mod.rs"]
mod porcupine;

use crate::support::{Home, free, volume_target};
use base::{Seed, Span, Time};
use history::{Action, History, Operation, StoreAction, StoreAnswer, StoreHistory, StoreOperation, StoreVerdict};
use live::{Extent, Host, HostError, RemoteDisk, host_id_of};
use nvme::Nqn;
use nvme::initiator::InitiatorConfig;
use rand::RngExt;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use volumes::twin;

const PAGE: usize = 4_096;
/// Few enough that clients meet on them all the time.
const PAGES: u64 = 16;
/// Those of which Porcupine is asked: each page is judged alone, and an hour has many operations.
const PAGES_ASKED: u64 = 4;
const CLIENTS: u64 = 4;
const ROLES: [&str; 4] = ["s0", "s1", "switch", "control"];
const DOORS: [&str; 2] = ["door", "other"];
const NQN: &str = "nqn.2026-11.io.rackweave:kills";
/// After a fault: time for the control plane to notice that a role was away (6 beats of 30 ms), and
/// to note it in its file, if it has its turns.
const NOTICED: Duration = Duration::from_millis(400);
/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The rack's file, with addresses that nobody uses. Leases end after 120 ms. Packets are sealed,
/// and sent to names.
fn rack(metrics: &str) -> String {
    let [switch, control, s0, s1, door, other] = free().map(|address: String| {
        let name = address.replace("127.0.0.1", "localhost");
        format!("'{address}'\naddress = '{name}'")
    });
    format!(
        "folder = 'state'\njournal = 'journal'\nsecret_file = 'secret'\n[switch]\nlisten = {switch}\n\
         [control]\nlisten = {control}\nmetrics = '{metrics}'\nbeat = '30ms'\nmisses = 6\nlease = '120ms'\nresend = '30ms'\n\
         [[storage]]\nname = 's0'\nlisten = {s0}\nflash = {{ size = '4MiB', channels = 2, pages_per_block = 16 }}\n\
         [[storage]]\nname = 's1'\nlisten = {s1}\nflash = {{ size = '4MiB', channels = 2, pages_per_block = 16 }}\n\
         [[volume]]\nname = 'disk'\nsize = '1MiB'\nreplicas = ['s0', 's1']\n\
         [[door]]\nname = 'door'\nlisten = {door}\nconfig = 'door.toml'\n\
         [[door]]\nname = 'other'\nlisten = {other}\nconfig = 'other.toml'\n"
    )
}

/// Processes of the rack, killed when the test is over, however it ends.
struct Roles {
    home: Home,
    /// Where the control plane answers.
    metrics: String,
    /// Where the doors listen for hosts.
    ports: [String; 2],
    running: Vec<(&'static str, Child)>,
}

impl Roles {
    fn up() -> Roles {
        let [metrics, one, other] = free();
        let mut home = Home::new().with("rack.toml", &rack(&metrics)).with("secret", &"s".repeat(32));
        let ports = [one, other];
        for (door, port) in DOORS.iter().zip(&ports) {
            home = home.with(&format!("{door}.toml"), &volume_target(door, port, NQN));
        }
        let mut roles = Roles { home, metrics, ports, running: Vec::new() };
        ROLES.iter().rev().for_each(|name| roles.start(name));
        roles
    }

    fn start(&mut self, name: &'static str) {
        let mut command = self.home.command(&format!("rack role rack.toml {name}"));
        let said = self.greetings(name);
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.home.path(&format!("{name}.log")));
        let log = log.expect("a disk");
        let child = command.stdout(log.try_clone().expect("a file")).stderr(log).spawn().expect("it starts");
        self.running.push((name, child));
        self.wait_until(&format!("{name} is ready"), |roles| roles.greetings(name) > said);
    }

    /// How often a role has said that it is ready.
    fn greetings(&self, name: &str) -> usize {
        let log = std::fs::read_to_string(self.home.path(&format!("{name}.log"))).unwrap_or_default();
        log.lines().filter(|line| line.starts_with("ready") || line.starts_with("listening at ")).count()
    }

    fn child(&mut self, name: &str) -> &mut Child {
        let (_, child) = self.running.iter_mut().find(|(role, _)| *role == name).expect("it runs");
        child
    }

    fn signal(&mut self, name: &str, signal: &str) {
        let pid = self.child(name).id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("there is kill").success());
    }

    fn kill(&mut self, name: &str) {
        let child = self.child(name);
        assert_eq!(child.try_wait().expect("it is ours"), None, "{name} has ended by itself");
        child.kill().and_then(|()| child.wait()).expect("it is killed");
        self.running.retain(|(role, _)| *role != name);
    }

    /// Waits until both replicas serve: so that the next fault is one fault.
    fn wait_until_whole(&self) {
        self.wait_until("both replicas serve", |roles| is_whole(&roles.home));
    }

    /// Waits until the control plane has had its turns since the last fault.
    fn wait_for_control(&self) {
        std::thread::sleep(NOTICED);
        // What had come before the first question was read before the second was answered.
        (0..2).for_each(|_| self.wait_until("the control plane answers", |roles| is_healthy(&roles.metrics)));
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Roles) -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < until, "not within {TIMEOUT:?}: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let read = |name: &str| std::fs::read_to_string(self.home.path(name)).unwrap_or_default();
            eprintln!("control.json: {}", read("state/control.json"));
            for name in ROLES.iter().chain(&DOORS) {
                let log = read(&format!("{name}.log"));
                let last: Vec<&str> = log.lines().rev().take(8).collect();
                eprintln!("{name}: {last:#?}");
            }
        }
        for (_, child) in &mut self.running {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

fn is_healthy(address: &str) -> bool {
    let answer = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    });
    answer.is_ok_and(|text| text.starts_with("HTTP/1.1 200"))
}

/// Whether the control plane's file says that both serve, and is about their last starts: a server
/// that was killed and started again has lost its memory, whether or not that was noticed.
fn is_whole(home: &Home) -> bool {
    let read = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(home.path(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    };
    let state = read("state/control.json");
    let group = &state["groups"][0];
    let none = |key: &str| group[key].as_array().is_some_and(Vec::is_empty);
    // A server's file counts its starts, its beats those before the last.
    let is_known = |server: usize| {
        let starts = read(&format!("state/s{server}.flash/server.json"))["starts"].as_u64();
        let known = &state["servers"][server];
        known["standing"] == "Alive" && starts == known["starts"].as_u64().map(|before| before + 1)
    };
    group["stale"].is_null() && ["lost", "awaited", "leaving"].into_iter().all(none) && (0..2).all(is_known)
}

/// Tells clients to end, also where a check fails: the others are awaited before it is told.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A disk by two doors, as native multipath has it: a command whose door has gone goes by the other
/// one.
struct TwoPaths<'a> {
    ports: &'a [String; 2],
    /// The door in use.
    at: usize,
    config: InitiatorConfig,
    disk: Option<RemoteDisk>,
}

impl TwoPaths<'_> {
    fn new(ports: &[String; 2], client: u64) -> TwoPaths<'_> {
        let host = Nqn::new(&format!("nqn.2026-11.io.rackweave:client-{client}")).expect("a name");
        let config = InitiatorConfig::new(host, host_id_of(&host), Nqn::new(NQN).expect("a name"));
        TwoPaths { ports, at: client as usize % 2, config, disk: None }
    }

    fn disk(&mut self) -> Result<&mut RemoteDisk, HostError> {
        if self.disk.is_none() {
            self.disk = Some(RemoteDisk::open(Host::connect(&self.ports[self.at], self.config)?, 1)?);
        }
        Ok(self.disk.as_mut().expect("it is open"))
    }

    fn call<T>(&mut self, page: u64, command: impl Fn(&mut RemoteDisk, Extent) -> Result<T, HostError>) -> T {
        let until = Instant::now() + TIMEOUT;
        loop {
            let called = self.disk().and_then(|disk| {
                let blocks = PAGE as u64 / disk.block_bytes();
                command(disk, Extent { start: page * blocks, blocks: blocks as u32 })
            });
            match called {
                Ok(answer) => return answer,
                // Status of the path: of a host that has lost its door.
                Err(HostError::Command { status, what }) if status.kind != 3 => {
                    panic!("hosts see delays, and no errors: {what}: {status}")
                }
                Err(error) => assert!(Instant::now() < until, "no door serves: {error}"),
            }
            (self.disk, self.at) = (None, 1 - self.at);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn write(&mut self, page: u64, value: u64) {
        let data = value.to_le_bytes().repeat(PAGE / 8);
        self.call(page, |disk, extent| disk.write(extent, data.clone(), false));
    }

    fn read(&mut self, page: u64) -> u64 {
        let data = self.call(page, RemoteDisk::read);
        let value = u64::from_le_bytes(data[..8].try_into().expect("eight"));
        assert!(data.chunks(8).all(|word| word == value.to_le_bytes()), "page {page} is torn: {value}");
        value
    }
}

/// Clients that read and write a few pages, and what they saw.
struct Clients<'a> {
    ports: &'a [String; 2],
    start: Instant,
    ends: &'a AtomicBool,
    next: &'a AtomicU64,
    history: &'a Mutex<(History, StoreHistory)>,
}

impl Clients<'_> {
    fn now(&self) -> Time {
        Time::ps(self.start.elapsed().as_nanos() as u64 * 1_000)
    }

    fn run(&self, client: u64) {
        let mut paths = TwoPaths::new(self.ports, client);
        let mut random = Seed(client).stream("client");
        while !self.ends.load(Ordering::Relaxed) {
            let page = random.random_range(0..PAGES);
            let is_write = random.random_bool(0.5);
            let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
            let invoked = self.now();
            let (action, value) = if is_write {
                paths.write(page, id);
                (Action::Write, id)
            } else {
                (Action::Read, paths.read(page))
            };
            let responded = Some(self.now());
            let operation = Operation { id, register: (0, page), action, value, invoked, responded };
            let mut history = self.history.lock().expect("nobody panics with it");
            history.0.record(operation);
            if page < PAGES_ASKED {
                history.1.record(as_of_a_store(client, operation));
            }
        }
    }
}

/// A page as a key that always has a value.
fn as_of_a_store(client: u64, operation: Operation) -> StoreOperation {
    let Operation { id, register: (_, key), action, value, invoked, responded } = operation;
    let (action, answer) = match action {
        Action::Read => (StoreAction::Get, StoreAnswer::Found(Some(value))),
        Action::Write => (StoreAction::Put(value), StoreAnswer::Stored),
    };
    StoreOperation { id, client, key, action, invoked, answered: responded.map(|at| (at, answer)) }
}

/// One fault: a role is killed and started anew, or paused for longer than its lease. Others go on
/// without it then, and it does not know.
fn strike(roles: &mut Roles, name: &'static str, pause: Duration, kills: bool) {
    if kills {
        roles.kill(name);
        std::thread::sleep(pause);
        roles.start(name);
    } else {
        roles.signal(name, "-STOP");
        std::thread::sleep(pause + Duration::from_millis(200));
        roles.signal(name, "-CONT");
    }
}

/// `RACK_FAULTS=1000` for a soak.
#[test]
fn no_write_is_lost_and_no_host_sees_an_error_whatever_role_is_killed_or_paused() {
    let faults: u64 = std::env::var("RACK_FAULTS").map_or(10, |count| count.parse().expect("a number"));
    let mut roles = Roles::up();
    // Each life lasts longer than its journal's last 0.1 s, which a kill loses.
    roles.wait_for_control();
    DOORS.iter().for_each(|door| roles.start(door));
    let ports = roles.ports.clone();
    let (ends, next, history) =
        (AtomicBool::new(false), AtomicU64::new(0), Mutex::new((History::default(), StoreHistory::new(|_| Some(0)))));
    let clients = Clients { ports: &ports, start: Instant::now(), ends: &ends, next: &next, history: &history };
    std::thread::scope(|scope| {
        let (clients, _ends) = (&clients, Ends(&ends));
        let workers: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || clients.run(client))).collect();
        let mut random = Seed(faults).stream("faults");
        let all = [&ROLES[..], &DOORS].concat();
        for fault in 0..faults {
            std::thread::sleep(Duration::from_millis(random.random_range(0..200)));
            let name = all[random.random_range(0..all.len())];
            let pause = Duration::from_millis(random.random_range(0..400));
            roles.wait_until_whole();
            strike(&mut roles, name, pause, fault % 4 != 3);
            roles.wait_for_control();
            if workers.iter().any(|worker| worker.is_finished()) {
                break;
            }
        }
        roles.wait_until_whole();
        let enough = |_: &Roles| history.lock().is_ok_and(|history| history.0.operations() > 100 * faults);
        let is_over = || workers.iter().any(|worker| worker.is_finished());
        roles.wait_until("100 operations a fault", |roles| enough(roles) || is_over());
    });
    let (history, asked) = history.into_inner().expect("nobody panicked with it");
    assert_eq!(porcupine::verdict(&asked, u64::MAX), StoreVerdict::Linearizable, "{} operations", asked.operations());
    history.check().unwrap_or_else(|violation| panic!("{violation}"));
    assert!(history.operations() > 100 * faults, "only {} operations", history.operations());
    assert_replays(&roles.home);
}

/// What lies in the socket of a door that sleeps is done by the other door meanwhile. Executed
/// after that, it would restore what is overwritten.
#[test]
fn a_door_that_slept_for_longer_than_its_hosts_wait_executes_nothing_of_them() {
    let mut roles = Roles::up();
    DOORS.iter().for_each(|door| roles.start(door));
    let ports = roles.ports.clone();
    let mut paths = TwoPaths::new(&ports, 0);
    // The target counts its keep-alive timeout in seconds: a host that waits for longer is safe.
    (paths.config.keep_alive_ms, paths.config.timeout) = (1_000, Span::ms(1_500));
    paths.write(0, 1);
    // A machine with other work may be slower than that.
    while paths.at != 0 {
        (paths.disk, paths.at) = (None, 0);
        paths.write(0, 1);
    }
    roles.signal("door", "-STOP");
    paths.write(0, 2);
    assert_eq!(paths.at, 1, "it has gone by the other door");
    paths.write(0, 3);
    roles.signal("door", "-CONT");
    let mut later = TwoPaths::new(&ports, 0);
    for _ in 0..20 {
        assert_eq!((later.read(0), later.at), (3, 0));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Hosts give up commands that nobody answers, have them done by the other door, and write again.
/// What the first door had begun must not come after that.
#[test]
fn a_door_sends_nothing_again_for_a_host_that_has_gone() {
    let mut roles = Roles::up();
    DOORS.iter().for_each(|door| roles.start(door));
    let ports = roles.ports.clone();
    let write_and_read = |client: u64, value: u64| {
        let mut paths = TwoPaths::new(&ports, client);
        paths.config.timeout = Span::ms(1_500);
        paths.write(client, value);
        let other = 1 - paths.at;
        (paths.disk, paths.at) = (None, other);
        paths.write(client, value + 1);
        for _ in 0..20 {
            assert_eq!(paths.read(client), value + 1);
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    write_and_read(0, 1);
    roles.kill("switch");
    std::thread::scope(|scope| {
        (0..8).for_each(|client| drop(scope.spawn(move || write_and_read(client, 10))));
        std::thread::sleep(Duration::from_secs(2));
        roles.start("switch");
    });
    drop(roles);
}

/// A service manager that reloads all its units must not end a role that reads nothing anew.
#[test]
fn sighup_ends_no_role_and_is_answered_in_the_log() {
    let mut roles = Roles::up();
    for name in ROLES {
        roles.signal(name, "-HUP");
        roles.wait_until(&format!("{name} says so"), |roles| {
            let log = std::fs::read_to_string(roles.home.path(&format!("{name}.log"))).unwrap_or_default();
            log.contains("nothing is read anew")
        });
        assert_eq!(roles.child(name).try_wait().expect("it is ours"), None, "{name} runs");
    }
    roles.wait_until_whole();
}

/// Two control planes would decide two things, and two servers with the same flash would ruin it. A
/// second process has neither the files nor the address, and changes nothing.
#[test]
fn no_role_runs_twice() {
    let roles = Roles::up();
    roles.wait_until_whole();
    for (name, why) in ROLES.into_iter().zip(["role runs", "role runs", "is in use", "role runs"]) {
        roles.home.say(&format!("rack role rack.toml {name}")).refused(2, &[why]);
    }
    assert!(is_whole(&roles.home));
}

/// All lives of all roles, also those that were killed, decide again as they did.
fn assert_replays(home: &Home) {
    let rack = plan::rack::Rack::read(&home.path("rack.toml")).expect("it is right");
    let journals = twin::Journals::open(&rack, &home.path("journal")).expect("they are there");
    for role in journals.replay(&rack).expect("they are read").replayed {
        assert_eq!(role.first, None, "{}: {} inputs", role.name, role.inputs);
        assert!(role.inputs > 0, "{}", role.name);
    }
}
