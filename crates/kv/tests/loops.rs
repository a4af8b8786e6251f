//! A store of several loops is one store: its limits, counts and slow log are those of all, and it
//! ends as one.

mod common;

use base::Span;
use common::{Frame, Running, bulk, config, error, ok};
use kv::{Config, Limits, Store};
use std::time::{Duration, Instant};

const LOOPS: usize = 3;

#[test]
fn counts_and_limits_are_those_of_all_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits { connections: 4, slow_after: Span::ZERO, ..Limits::default() };
    let store = Running::start(Config { loops: LOOPS, limits, ..config(folder.path()) });
    let mut clients: Vec<_> = (0..4).map(|_| store.client()).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&[b"SET", format!("key {at}").as_bytes(), b"x"]), ok());
        // What another loop has acknowledged, this one counts.
        assert_eq!(client.say("DBSIZE"), Frame::Integer(at as i64 + 1));
    }
    assert_eq!(clients[0].number("connections"), 4);
    assert_eq!(clients[3].say("SLOWLOG LEN"), Frame::Integer(4));
    assert_eq!(clients[1].say("SLOWLOG RESET"), ok());
    assert_eq!(clients[2].say("SLOWLOG LEN"), Frame::Integer(0));
    let told = store.client().reply().map(|reply| error(&reply));
    assert_eq!(told.as_deref(), Some("ERR max number of clients reached"));
    clients.truncate(3);
    let start = Instant::now();
    while clients[0].number("connections") > 3 && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    clients.push(store.client());
    assert_eq!(clients[3].say("GET nothing"), Frame::Null);
    // What the other loops count is that of their latest turns.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(clients[3].number("connections_accepted"), 5);
    assert_eq!(clients[3].number("updates"), 4);
}

#[test]
fn strangers_that_keep_all_connections_keep_nobody_out() {
    const MOST: usize = 6;
    for loops in [1, LOOPS] {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = Limits { connections: MOST, handshake: Span::secs(3_600), ..Limits::default() };
        let password = Some("p".into());
        let store = Running::start(Config { loops, limits, password, ..config(folder.path()) });
        let mut strangers: Vec<_> = (0..MOST).map(|_| store.client()).collect();
        for stranger in &mut strangers {
            assert!(error(&stranger.say("GET a")).starts_with("NOAUTH"));
        }
        let refused = || Frame::Error("ERR max number of clients reached".into());
        let start = Instant::now();
        let come = || loop {
            let mut client = store.client();
            // Strangers of other loops make room for the next.
            match client.try_ask(&[b"AUTH", b"p"]) {
                Some(told) if told == ok() => return client,
                told => assert!(loops > 1 && told.is_none_or(|told| told == refused())),
            }
            assert!(start.elapsed() < Duration::from_secs(60), "nobody makes room");
        };
        let mut known: Vec<_> = (0..MOST).map(|_| come()).collect();
        assert!(known.iter_mut().all(|client| client.say("GET a") == Frame::Null));
        // Who has proved itself makes room for nobody.
        let last = store.client().try_ask(&[b"AUTH", b"p"]);
        assert!(last.is_none_or(|told| told == refused()));
        assert!(known.iter_mut().all(|client| client.say("GET a") == Frame::Null));
        assert!(strangers.iter_mut().all(|stranger| stranger.try_ask(&[b"PING"]).is_none()));
    }
}

#[test]
fn memory_is_that_of_all_loops_and_the_heaviest_one_gives_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits { memory: 2 << 20, reply: 512 << 10, request: 512 << 10, ..Limits::default() };
    let store = Running::start(Config { loops: LOOPS, limits, ..config(folder.path()) });
    let mut good = store.client();
    assert_eq!(good.ask(&[b"SET", b"a", &[7; 60_000]]), ok());
    // Each begins a request of 400 kB, and never ends it. No loop has six of them.
    let mut greedy: Vec<_> = (0..9).map(|_| store.client()).collect();
    for client in &mut greedy {
        client.begin_and_leave(400_000);
        assert_eq!(good.ask(&[b"GET", b"a"]), bulk([7; 60_000]));
    }
    let mut looks = (0..200).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        good.number("connections_evicted") >= 4 && good.number("held_bytes") <= 2 << 20
    });
    assert!(looks.any(|is_within| is_within), "what clients hold stays beyond the limit");
    assert!(good.number("connections") >= 2, "no more are ended than have to be");
    drop(greedy);
}

#[test]
fn what_one_loop_stores_another_one_reads_and_a_restart_keeps_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for loops in [LOOPS, 1, 2] {
        let store = Running::start(Config { loops, ..config(folder.path()) });
        let mut clients: Vec<_> = (0..LOOPS).map(|_| store.client()).collect();
        for (at, client) in clients.iter_mut().enumerate() {
            let name = format!("{loops} {at}");
            assert_eq!(client.ask(&[b"SET", name.as_bytes(), &vec![at as u8; 50_000]]), ok());
        }
        for client in &mut clients {
            for at in 0..LOOPS {
                let before = format!("{LOOPS} {at}");
                assert_eq!(client.ask(&[b"GET", before.as_bytes()]), bulk(vec![at as u8; 50_000]));
            }
        }
    }
}

#[test]
fn as_many_loops_as_cannot_be_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for loops in [0, 65] {
        let refused = Store::start(Config { loops, ..config(folder.path()) }, false);
        let reason = refused.err().expect("it is refused").to_string();
        assert!(reason.contains("1 to 64 loops"), "{reason}");
    }
}
