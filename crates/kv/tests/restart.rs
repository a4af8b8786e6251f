//! What was acknowledged survives the end of the process.

mod common;
#[path = "common/process.rs"]
mod process;

use common::{Client, Frame, Running, bulk, ok};
use process::{Process, config_in};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn value_of(key: u32, version: u32) -> Vec<u8> {
    let length = [3, 60, 100, 5_000, 20_000][key as usize % 5];
    let mut value = format!("{key}:{version}:").into_bytes();
    value.resize(length.max(value.len()), b'.');
    value
}

/// Keys of a client.
const KEYS: u32 = 7;
const CLIENTS: u32 = 4;

/// How writers and the one who kills the store hear of each other.
#[derive(Default)]
struct Round {
    is_over: AtomicBool,
    /// Clients each of whose keys was acknowledged once.
    begun: AtomicUsize,
}

/// Writes until the store is gone. Returns the last acknowledged version of each key, and the one
/// whose answer did not come.
fn write_on(address: SocketAddr, client: u32, from: u32, round: &Round) -> BTreeMap<u32, (u32, u32)> {
    let mut connection = Client::new(address);
    let mut told = BTreeMap::new();
    for version in from.. {
        let key = client * 100 + version % KEYS;
        let before = told.get(&key).map_or(0, |(acknowledged, _)| *acknowledged);
        told.insert(key, (before, version));
        if round.is_over.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("key {key}");
        match connection.try_ask(&[b"SET", name.as_bytes(), &value_of(key, version)]) {
            Some(frame) => {
                assert_eq!(frame, ok());
                told.insert(key, (version, version));
                if version == from + KEYS - 1 {
                    round.begun.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => break,
        }
    }
    told
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut known: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for round in 0..3u32 {
        let process = Process::start(folder.path());
        let address = process.address;
        check(address, &known);
        let shared = Round::default();
        let told: Vec<_> = std::thread::scope(|scope| {
            let write = |client| {
                scope.spawn({
                    let shared = &shared;
                    move || write_on(address, client, round * 1_000_000 + 1, shared)
                })
            };
            let writers: Vec<_> = (0..CLIENTS).map(write).collect();
            std::thread::sleep(Duration::from_millis(500));
            let until = Instant::now() + Duration::from_secs(60);
            while shared.begun.load(Ordering::Relaxed) < CLIENTS as usize && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            drop(process);
            shared.is_over.store(true, Ordering::Relaxed);
            writers.into_iter().map(|writer| writer.join().expect("it ends")).collect()
        });
        for (key, (acknowledged, tried)) in told.into_iter().flatten() {
            let before = known.get(&key).map_or(0, |(acknowledged, _)| *acknowledged);
            known.insert(key, (acknowledged.max(before), tried));
        }
        assert!(known.values().filter(|(acknowledged, _)| *acknowledged > round * 1_000_000).count() > 8, "{known:?}");
    }
    let process = Process::start(folder.path());
    check(process.address, &known);
}

/// Each key has the version that was acknowledged last, or the one whose answer did not come.
fn check(address: SocketAddr, known: &BTreeMap<u32, (u32, u32)>) {
    let mut client = Client::new(address);
    for (key, (acknowledged, tried)) in known {
        let found = client.ask(&[b"GET", format!("key {key}").as_bytes()]);
        let allowed = [*acknowledged, *tried].map(|version| bulk(value_of(*key, version)));
        let is_nothing = *acknowledged == 0 && found == Frame::Null;
        assert!(allowed.contains(&found) || is_nothing, "key {key}: {acknowledged} or {tried}, not {found:?}");
    }
}

#[test]
fn an_orderly_end_keeps_everything_and_time_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let store = Running::start(config_in(folder.path()));
        let mut client = store.client();
        for number in 0..300u32 {
            assert_eq!(client.ask(&[b"SET", format!("k{number}").as_bytes(), &value_of(number, 1)]), ok());
        }
        assert_eq!(client.say("SET short 1 EX 1"), ok());
        assert_eq!(client.say("SET long 1 EX 100"), ok());
        assert_eq!(client.say("DEL k0 k1"), Frame::Integer(2));
    }
    std::thread::sleep(Duration::from_millis(2_100));
    let store = Running::start(config_in(folder.path()));
    let mut client = store.client();
    assert_eq!(
        client.say("MGET k0 k1 short long"),
        Frame::Array(vec![Frame::Null, Frame::Null, Frame::Null, bulk("1")])
    );
    for number in 2..300u32 {
        assert_eq!(client.ask(&[b"GET", format!("k{number}").as_bytes()]), bulk(value_of(number, 1)));
    }
    // The first update after a restart is answered like any other.
    assert_eq!(client.say("SET k0 again"), ok());
}
