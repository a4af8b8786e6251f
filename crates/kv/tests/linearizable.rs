//! What concurrent clients see is explained by some order of their operations.

mod common;
#[path = "common/game.rs"]
mod game;
#[path = "../../history/tests/porcupine/mod.rs"]
mod porcupine;

use base::{Seed, Time};
use common::away::{RunningJbof, Way, door, role_config, ways};
use common::{Client, Running, config, jbof, with};
use game::{ONLY, Told, name_of, send, told};
use history::{StoreAction, StoreAnswer, StoreHistory, StoreOperation, StoreVerdict};
use kv::{Config, JbofConfig};
use std::net::SocketAddr;
use std::time::Instant;

const CLIENTS: u64 = 6;
const OPERATIONS: u64 = 400;
const KEYS: u64 = 4;
/// Operations of a key that the judge tries at most.
const STEPS_MAX: u64 = 10_000_000;

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
        let (invoked, asks) = (now(), only && at % 2 == 0);
        send(&mut client, name_of(key).as_bytes(), action, asks).expect("it is read");
        let Told::Answer(answer) = told(client.reply(), action, asks) else { panic!("{action:?} is not answered") };
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
    let config = with(config(folder.path()), |jbof| (jbof.blocks, jbof.slots) = (1, 2));
    judge_at(&[&Running::start(config.clone())], only);
    // Each loop has two of the clients.
    std::fs::remove_file(folder.path().join("flash")).expect("it is there");
    judge_at(&[&Running::start(Config { loops: 3, ..config })], only);
}

/// Doors in one process with the JBOF's and in threads of their own: no two share anything else.
#[test]
fn a_history_by_doors_that_share_the_memory_and_others_is_linearizable() {
    for only in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let role = RunningJbof::start(role_config(folder, JbofConfig { blocks: 1, slots: 2, ..jbof(folder) }, None));
        // Some clients of each, and two doors that share with each other.
        let ways = ways().into_iter().chain([Way::Shared]);
        let doors: Vec<_> = ways.map(|way| Running::start(door(folder, way, role.address, None))).collect();
        judge_at(&doors.iter().collect::<Vec<_>>(), only);
    }
}

fn judge_at(doors: &[&Running], only: bool) {
    let start = Instant::now();
    let all: Vec<StoreOperation> = std::thread::scope(|scope| {
        let address = |number: u64| doors[number as usize % doors.len()].address;
        let play = |number| scope.spawn(move || play(address(number), number, start, only));
        let clients: Vec<_> = (0..CLIENTS).map(play).collect();
        clients.into_iter().flat_map(|client| client.join().expect("it ends")).collect()
    });
    let mut history = StoreHistory::new(|_| None);
    all.iter().for_each(|operation| history.record(*operation));
    assert_eq!(history.operations() as u64, CLIENTS * OPERATIONS);
    assert_eq!(porcupine::verdict(&history, STEPS_MAX), StoreVerdict::Linearizable);
    // The judge sees an answer that is wrong.
    let wrong = all.iter().find(|one| one.action == StoreAction::Get).expect("some are");
    let answered = wrong.answered.map(|(at, _)| (at, StoreAnswer::Found(Some(u64::MAX))));
    history.record(StoreOperation { id: u64::MAX, answered, ..*wrong });
    assert!(matches!(porcupine::verdict(&history, STEPS_MAX), StoreVerdict::Illegal { .. }));
}
