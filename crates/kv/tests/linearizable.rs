//! What concurrent clients see is explained by some order of their operations.

mod common;

use base::{Seed, Time};
use common::{Client, Frame, Running, config, ok};
use history::{StoreAction, StoreAnswer, StoreHistory, StoreOperation, StoreVerdict};
use kv::Config;
use std::net::SocketAddr;
use std::time::Instant;

const CLIENTS: u64 = 6;
const OPERATIONS: u64 = 400;
const KEYS: u64 = 4;

/// Values of all lengths: those that a slot holds and those that it does not.
fn bytes_of(value: u64) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.resize([8, 60, 300][value as usize % 3], b' ');
    bytes
}

fn value_in(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Null => None,
        Frame::BulkString(bytes) => {
            let text = str::from_utf8(bytes).expect("digits");
            let value = text.trim().parse().expect("digits");
            assert_eq!(bytes, &bytes_of(value), "a value is whole");
            Some(value)
        }
        other => panic!("{other:?}"),
    }
}

/// The only value of a game in which it matters alone whether a key is there.
const ONLY: u64 = 1;

fn operate(client: &mut Client, key: &[u8], action: StoreAction, (asks, only): (bool, bool)) -> StoreAnswer {
    match action {
        StoreAction::Get if only && asks => {
            let is_there = client.ask(&[b"EXISTS", key]) == Frame::Integer(1);
            StoreAnswer::Found(is_there.then_some(ONLY))
        }
        StoreAction::Get => StoreAnswer::Found(value_in(&client.ask(&[b"GET", key]))),
        StoreAction::Put(value) => {
            assert_eq!(client.ask(&[b"SET", key, &bytes_of(value)]), ok());
            StoreAnswer::Stored
        }
        StoreAction::Delete => StoreAnswer::Removed(client.ask(&[b"DEL", key]) == Frame::Integer(1)),
        StoreAction::CompareAndSwap { new, .. } => {
            let value = bytes_of(new.expect("SETNX stores something"));
            StoreAnswer::Swapped(client.ask(&[b"SETNX", key, &value]) == Frame::Integer(1))
        }
    }
}

fn play(address: SocketAddr, number: u64, start: Instant, only: bool) -> Vec<StoreOperation> {
    let mut random = Seed(7).stream(&format!("client {number}"));
    let mut client = Client::new(address);
    let mut done = Vec::new();
    let now = || Time::ps(start.elapsed().as_nanos() as u64 * 1_000);
    for at in 0..OPERATIONS {
        let (id, key) = (number * OPERATIONS + at, random.below(KEYS));
        let value = if only { ONLY } else { id };
        let action = match random.below(10) {
            0..=4 => StoreAction::Get,
            5..=6 => StoreAction::Put(value),
            7 => StoreAction::Delete,
            _ => StoreAction::CompareAndSwap { expected: None, new: Some(value) },
        };
        // Half of the keys are their own names in the store, half are hashed.
        let name = if key % 2 == 0 { format!("k{key}") } else { format!("a longer name of a key: {key}") };
        let invoked = now();
        let answer = operate(&mut client, name.as_bytes(), action, (at % 2 == 0, only));
        done.push(StoreOperation { id, client: number, key, action, invoked, answered: Some((now(), answer)) });
    }
    done
}

#[test]
fn a_history_of_concurrent_clients_is_linearizable() {
    judge(false);
}

#[test]
fn whether_a_key_is_there_is_linearizable_too() {
    judge(true);
}

fn judge(only: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    // One block of two slots: every key is in the way of every other.
    let store = Running::start(Config { blocks: 1, slots: 2, ..config(folder.path()) });
    let start = Instant::now();
    let all: Vec<StoreOperation> = std::thread::scope(|scope| {
        let address = store.address;
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || play(address, number, start, only))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("it ends")).collect()
    });
    let mut history = StoreHistory::new(|_| None);
    all.iter().for_each(|operation| history.record(*operation));
    assert_eq!(history.operations() as u64, CLIENTS * OPERATIONS);
    assert_eq!(history.check(10_000_000), StoreVerdict::Linearizable);
    // The judge sees an answer that is wrong.
    let wrong = all.iter().find(|one| one.action == StoreAction::Get).expect("some are");
    let answered = wrong.answered.map(|(at, _)| (at, StoreAnswer::Found(Some(u64::MAX))));
    history.record(StoreOperation { id: u64::MAX, answered, ..*wrong });
    assert!(matches!(history.check(10_000_000), StoreVerdict::Illegal { .. }));
}
