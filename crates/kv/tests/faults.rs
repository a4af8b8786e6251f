//! Stores in processes of their own that are killed and paused, that lose clients, and whose drive
//! takes no more: some order of their operations explains what clients saw. Porcupine says so too.

mod common;
#[path = "common/device.rs"]
mod device;
#[path = "common/game.rs"]
mod game;
#[path = "../../history/tests/porcupine/mod.rs"]
mod porcupine;
#[path = "common/process.rs"]
mod process;

use base::{Seed, Stream, Time};
use common::away::{Way, has_fabric};
use common::target::Relay;
use common::{Client, Frame, Running, bulk, ok};
use device::Device;
use game::{Told, name_of, send, told};
use history::{StoreAction, StoreHistory, StoreOperation, StoreVerdict};
use process::{Process, config_in};
use runtime::storage::DiskFile;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 6;
/// Longer than a door waits for a read of the target.
const PAST_A_READ: Duration = Duration::from_millis(2_500);
/// Keys that are used at the same time.
const KEYS: u64 = 4;
/// Faults after which other keys are used: an update without an answer may come at any time later,
/// and many of them on one key are long to judge.
const FAULTS_A_KEY: u64 = 3;
/// A reader's claim of a slot ends after a second (`LEASE` of the store).
const PAST_THE_LEASE: Duration = Duration::from_millis(1_300);
/// Games by the paper's protocol at most. Its flaw needs a pause at the wrong moment.
const PAPER_GAMES_MAX: usize = 8;
/// Operations of a key that the judge tries at most.
const STEPS_MAX: u64 = 20_000_000;

/// What clients share.
struct Game {
    start: Instant,
    /// Where the doors of the store listen now.
    doors: Mutex<Vec<SocketAddr>>,
    faults: AtomicU64,
    next: AtomicU64,
    is_over: AtomicBool,
    done: Mutex<Vec<StoreOperation>>,
    /// Whether the store is one that may refuse operations by mistake.
    is_flawed: bool,
}

impl Game {
    fn new(doors: Vec<SocketAddr>) -> Game {
        Game {
            start: Instant::now(),
            doors: Mutex::new(doors),
            faults: AtomicU64::new(0),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            done: Mutex::default(),
            is_flawed: false,
        }
    }

    fn now(&self) -> Time {
        Time::ps(self.start.elapsed().as_nanos() as u64 * 1_000)
    }

    fn operations(&self) -> u64 {
        self.done.lock().expect("nobody panics with it").len() as u64
    }

    /// Plays until all is over. A client that is told nothing never comes back: another one does.
    fn play(&self, number: u64) {
        let mut random = Seed(11).stream(&format!("client {number}"));
        let mut client = None;
        while !self.is_over.load(Relaxed) {
            let address = self.door(number, &mut random);
            let connected = client.take().or_else(|| Client::try_new(address).map(|new| (self.number(), new)));
            let Some((as_client, mut connection)) = connected else {
                sleep(Duration::from_millis(5));
                continue;
            };
            if self.operate(as_client, &mut connection, &mut random) {
                client = Some((as_client, connection));
            }
        }
    }

    /// A door to connect to.
    fn door(&self, number: u64, random: &mut Stream) -> SocketAddr {
        let doors = self.doors.lock().expect("nobody panics with it");
        doors[(number + random.below(2)) as usize % doors.len()]
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// One operation; whether the client knows how it ended.
    fn operate(&self, client: u64, connection: &mut Client, random: &mut Stream) -> bool {
        let id = self.number();
        let key = self.faults.load(Relaxed) / FAULTS_A_KEY * KEYS + random.below(KEYS);
        let action = match random.below(10) {
            0..=4 => StoreAction::Get,
            5..=6 => StoreAction::Put(id),
            7 => StoreAction::Delete,
            _ => StoreAction::CompareAndSwap { expected: None, new: Some(id) },
        };
        let invoked = self.now();
        let is_sent = send(connection, name_of(key).as_bytes(), action, false).is_ok();
        // One in some hundreds goes away with its request on the way.
        let dies = random.below(400) == 0;
        let frame = if is_sent && !dies { connection.reply() } else { None };
        let answered = match told(frame, action, false) {
            Told::Answer(answer) => Some((self.now(), answer)),
            Told::Unknown => None,
            // The door's JBOF is away: nothing was made.
            Told::Refused(text) if text.starts_with("LOADING") => {
                sleep(Duration::from_millis(1));
                return true;
            }
            Told::Refused(_) if self.is_flawed => None,
            // A store that is being killed refuses nothing else, and this one is never full.
            Told::Refused(text) => panic!("{action:?}: {text}"),
        };
        let operation = StoreOperation { id, client, key, action, invoked, answered };
        self.done.lock().expect("nobody panics with it").push(operation);
        answered.is_some()
    }

    /// Has clients play while faults happen, so many as are wanted.
    fn go(&self, mut fault: impl FnMut(u64)) {
        scope(|scope| {
            (0..CLIENTS).for_each(|number| drop(scope.spawn(move || self.play(number))));
            // Clients end whatever happens here.
            let _end = Ends(&self.is_over);
            for number in 0..faults() {
                self.wait_for(100 + 37 * number % 150);
                fault(number);
                self.faults.fetch_add(1, Relaxed);
            }
            self.wait_for(100);
        });
    }

    /// A door listens elsewhere now.
    fn moved(&self, door: usize, address: SocketAddr) {
        self.doors.lock().expect("nobody panics with it")[door] = address;
    }

    /// Asserts that some order of all operations explains what clients saw.
    fn judge(self) {
        let (verdict, unknown) = self.verdict();
        assert_eq!(verdict, StoreVerdict::Linearizable);
        assert!(unknown > 0, "nothing was ever interrupted");
    }

    /// Whether some order of all operations explains what clients saw, and how many operations have
    /// no answer.
    fn verdict(self) -> (StoreVerdict, usize) {
        let done = self.done.into_inner().expect("nobody panicked with it");
        let unknown = done.iter().filter(|operation| operation.answered.is_none()).count();
        let mut history = StoreHistory::new(|_| None);
        done.iter().for_each(|operation| history.record(*operation));
        eprintln!("{} operations, {unknown} without an answer", done.len());
        (porcupine::verdict(&history, STEPS_MAX), unknown)
    }

    /// Waits until clients have done so much more.
    fn wait_for(&self, operations: u64) {
        let (until, from) = (Instant::now() + Duration::from_secs(60), self.operations());
        while self.operations() < from + operations {
            assert!(Instant::now() < until, "the store stands still");
            sleep(Duration::from_millis(2));
        }
    }
}

/// As many as the variable says, or a few.
fn faults() -> u64 {
    std::env::var("RACKWEAVE_KV_FAULTS").map_or(8, |text| text.parse().expect("a number of faults"))
}

#[test]
fn a_history_over_kills_pauses_and_lost_clients_is_linearizable() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Process::crowded(folder.path());
    let game = Game::new(vec![store.address]);
    game.go(|fault| {
        if fault % 2 == 0 {
            // The one before is killed first.
            store.replace(|| Process::crowded(folder.path()));
            game.moved(0, store.address);
        } else {
            store.pause(PAST_THE_LEASE);
        }
    });
    game.judge();
}

#[test]
fn a_history_over_faults_of_doors_and_their_jbof_is_linearizable() {
    faults_with([Way::Shared, Way::Shared, Way::Tcp]);
}

#[test]
fn a_history_over_faults_with_memory_by_libfabric_is_linearizable() {
    if has_fabric() {
        faults_with([Way::Fabric, Way::Fabric, Way::Shared]);
    }
}

/// The target of the flash is killed, paused for longer than a read may take, and cut off, while
/// doors read by it; now and then the JBOF restarts beneath.
#[test]
fn a_history_over_faults_of_the_target_of_the_flash_is_linearizable() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut jbof = Process::jbof(folder.path(), None);
    let at = jbof.address;
    let mut target = Process::target(folder.path(), None);
    let target_at = target.address;
    let relay = Relay::start(folder.path(), target_at);
    let doors = [Way::Nvme, Way::Nvme, Way::Tcp].map(|way| Process::door(folder.path(), way, at));
    let game = Game::new(doors.iter().map(|door| door.address).collect());
    let readers = [&doors[0], &doors[1]].map(|door| door.address);
    game.go(|fault| {
        // Half of the faults come while doors read by the target, half may come while they cannot.
        if fault % 2 == 0 {
            readers.iter().for_each(|door| drop(with_target(*door)));
            game.wait_for(100);
        }
        match fault % 4 {
            0 => target.replace(|| Process::target(folder.path(), Some(target_at))),
            1 => relay.cut(),
            2 => {
                // Doors have given it up by then.
                target.pause(PAST_A_READ);
                jbof.replace(|| Process::jbof(folder.path(), Some(at)));
            }
            _ => {
                target.signal("STOP");
                game.wait_for(50);
                relay.cut();
                target.signal("CONT");
            }
        }
    });
    for door in readers {
        let mut client = with_target(door);
        let [reads, returned] = ["flash_reads", "flash_returned"].map(|name| client.number(name));
        eprintln!("{reads} reads by the target, {returned} by the JBOF");
        assert!(reads > 50 && returned > 0, "{reads} and {returned}");
    }
    game.judge();
}

/// A client of a door that reads flash by the target, or does so again soon.
fn with_target(door: SocketAddr) -> Client {
    let mut client = Client::new(door);
    let until = Instant::now() + Duration::from_secs(30);
    while client.number("flash_away") > 0 {
        assert!(Instant::now() < until, "the target is not found again");
        sleep(Duration::from_millis(20));
    }
    client
}

/// Three processes with doors, which reach the fourth in these ways. Doors are killed, and paused
/// while they hold slots; the JBOF is killed, and paused, under them.
fn faults_with(ways: [Way; 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut jbof = Process::jbof(folder.path(), None);
    let at = jbof.address;
    let mut doors = ways.map(|way| Process::door(folder.path(), way, at));
    let game = Game::new(doors.iter().map(|door| door.address).collect());
    game.go(|fault| {
        let place = (fault / 4) as usize % doors.len();
        match fault % 4 {
            0 => doors[place].pause(PAST_THE_LEASE),
            1 => jbof.replace(|| Process::jbof(folder.path(), Some(at))),
            2 => {
                // One that was stopped while its JBOF was replaced does not believe its memory.
                doors[place].signal("STOP");
                jbof.replace(|| Process::jbof(folder.path(), Some(at)));
                game.wait_for(50);
                doors[place].signal("CONT");
            }
            _ => {
                jbof.pause(PAST_THE_LEASE);
                doors[place].replace(|| Process::door(folder.path(), ways[place], at));
                game.moved(place, doors[place].address);
            }
        }
    });
    game.judge();
}

/// Games of doors that are paused while they hold slots, by the paper's protocol. They end with one
/// that no order explains.
#[test]
fn the_paper_s_protocol_is_caught() {
    let mut verdicts = (0..PAPER_GAMES_MAX).map(|_| {
        let folder = tempfile::tempdir().expect("a folder");
        let jbof = Process::paper_jbof(folder.path());
        let ways = [Way::Shared, Way::Shared, Way::Tcp];
        let doors = ways.map(|way| Process::door(folder.path(), way, jbof.address));
        let addresses = doors.iter().map(|door| door.address).collect();
        let game = Game { is_flawed: true, ..Game::new(addresses) };
        game.go(|fault| doors[fault as usize % doors.len()].pause(PAST_THE_LEASE));
        game.verdict().0
    });
    let is_caught = verdicts.any(|verdict| matches!(verdict, StoreVerdict::Illegal { .. }));
    assert!(is_caught, "{PAPER_GAMES_MAX} games were linearizable");
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Writes until the store says no for the third time. Returns all that was acknowledged.
fn write_until_refused(client: &mut Client) -> (Vec<u64>, Vec<String>) {
    let (mut stored, mut refused) = (Vec::new(), Vec::new());
    for number in 0.. {
        match client.ask(&[b"SET", format!("key {number}").as_bytes(), &long(number)]) {
            Frame::Error(text) => refused.push(text.to_string()),
            frame => {
                assert_eq!(frame, ok());
                stored.push(number);
            }
        }
        if refused.len() == 3 {
            return (stored, refused);
        }
        assert!(number < 2_000, "a store of 16 MiB takes 40 MiB");
    }
    unreachable!("the numbers do not end")
}

fn long(number: u64) -> Vec<u8> {
    format!("{number:05}").into_bytes().repeat(4_000)
}

#[test]
fn a_drive_that_takes_no_more_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    // The file has its size before it is limited.
    drop(Running::start(config_in(folder.path())));
    let (stored, told) = {
        let store = Process::with_writes_up_to(6 << 10, folder.path());
        let mut client = Client::new(store.address);
        let (stored, told) = write_until_refused(&mut client);
        // It reads on, and says what it cannot do.
        for number in &stored {
            assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(long(*number)), "{number}");
        }
        (stored, told)
    };
    eprintln!("{} values stored, then {told:?}", stored.len());
    assert!(stored.len() > 50, "{stored:?}");
    assert!(told.iter().all(|text| text.starts_with("ERR the outcome is unknown")), "{told:?}");
    // A drive that writes again.
    let store = Running::start(config_in(folder.path()));
    let mut client = store.client();
    for number in &stored {
        assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(long(*number)), "{number}");
    }
    assert_eq!(client.say("SET after 1"), ok());
}

#[test]
fn a_full_file_system_refuses_writes_and_serves_again_when_there_is_room() {
    /// As many as the store has room for when it has stored 6 MiB.
    const MORE: u64 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let Some(store) = Process::on_a_small_disk(6, folder.path()) else { return };
    let mut client = Client::new(store.address);
    let (stored, told) = write_until_refused(&mut client);
    eprintln!("{} values stored, then {told:?}", stored.len());
    assert!(stored.len() > 50, "{stored:?}");
    assert!(told.iter().all(|text| text.starts_with("ERR the outcome is unknown")), "{told:?}");
    let has_all = |client: &mut Client| {
        for number in &stored {
            assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(long(*number)), "{number}");
        }
    };
    has_all(&mut client);
    store.drop_ballast(folder.path());
    // The same process writes again, what was refused as well.
    for number in 0..MORE {
        assert_eq!(client.ask(&[b"SET", format!("more {number}").as_bytes(), &long(number)]), ok(), "{number}");
    }
    has_all(&mut client);
    for number in 0..MORE {
        assert_eq!(client.ask(&[b"GET", format!("more {number}").as_bytes()]), bulk(long(number)), "{number}");
    }
}

/// A block device in the place of the store's file, of which so many zones can be written.
fn device_in(folder: &Path, zones: u64) -> Option<Device> {
    let device = Device::over(folder, 17 << 20, 4096 + (zones << 20))?;
    symlink(&device.path, folder.join("flash")).expect("a link");
    Some(device)
}

#[test]
fn a_block_device_holds_a_store_that_nobody_else_has_claimed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = device_in(folder.path(), 16) else { return };
    // As a file system does that is mounted.
    let claim = DiskFile::open(&device.path, None, false, false).expect("it is there");
    let refused = kv::Store::start(config_in(folder.path()), false).err().expect("it is claimed");
    assert!(refused.to_string().contains("mounted"), "{refused}");
    drop(claim);
    // Three times what it has room for: zones are won back.
    for round in 0..3 {
        let store = Running::start(config_in(folder.path()));
        let mut client = store.client();
        for number in 0..150 {
            let value = long(number + round);
            assert_eq!(client.ask(&[b"SET", format!("key {number}").as_bytes(), &value]), ok(), "{number}");
        }
    }
    let process = Process::start(folder.path());
    let mut client = Client::new(process.address);
    for number in 0..150 {
        assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(long(number + 2)), "{number}");
    }
}

/// The device takes writes into the page cache, and fails when they are to be flushed (EIO, or what
/// its kind says).
#[test]
fn a_device_that_fails_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = device_in(folder.path(), 6) else { return };
    let stored = {
        let store = Process::start(folder.path());
        let mut client = Client::new(store.address);
        let (stored, told) = write_until_refused(&mut client);
        eprintln!("{} values stored, then {told:?}", stored.len());
        assert!(stored.len() > 50, "{stored:?}");
        assert!(told.iter().all(|text| text.starts_with("ERR the outcome is unknown")), "{told:?}");
        // After a flush that failed nobody knows what the system dropped: it takes no more updates.
        device.mend();
        let Frame::Error(text) = client.say("SET after 1") else { panic!("a flush has failed") };
        assert!(text.starts_with("ERR the outcome is unknown"), "{text}");
        stored
    };
    let store = Process::start(folder.path());
    let mut client = Client::new(store.address);
    for number in &stored {
        assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(long(*number)), "{number}");
    }
    assert_eq!(client.say("SET after 1"), ok());
}
