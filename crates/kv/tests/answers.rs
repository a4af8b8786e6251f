//! Answers beside those of redis-server, the second source of what each command does. Skipped with
//! a sentence where there is no redis-server: its package would start one.

mod common;

use bytes::Bytes;
use common::{Client, Frame, Running, config};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::cell::Cell;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A redis-server that keeps nothing; dropped, it ends.
struct Redis {
    process: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Redis {
    /// `None` where it is not installed.
    fn start() -> Option<Redis> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("there is a free port");
        let folder = tempfile::tempdir().expect("a folder");
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no", "--databases", "1"]);
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let redis = Redis { process: command.spawn().ok()?, address, _folder: folder };
        for _ in 0..1_000 {
            if TcpStream::connect(address).is_ok() {
                return Some(redis);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("redis-server does not listen");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

type Words = Vec<Vec<u8>>;

fn key() -> impl Strategy<Value = Vec<u8>> {
    let long = [b'k'; 40];
    prop::sample::select(vec![b"a".to_vec(), b"b".to_vec(), b"key:3".to_vec(), long.to_vec(), b"\x00\xff".to_vec()])
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let lengths = prop_oneof![Just(0usize), Just(1), 120usize..140, Just(5_000)];
    let noise = (lengths, b' '..=b'~').prop_map(|(length, byte)| vec![byte; length]);
    let known = ["1", "-5", "\r\n", "nx", "ex", "99999999999999999999"].map(|text| text.as_bytes().to_vec());
    prop_oneof![noise, prop::sample::select(known.to_vec())]
}

/// Seconds or milliseconds, and much that is no number. Times to live that are no whole seconds, or
/// end after the year 2106, differ by design.
fn number() -> impl Strategy<Value = Vec<u8>> {
    let all = ["100000", "5000000", "1000000000", "0", "-1", "-77", "9223372036854775808", "+5", "05", "-0", " 5"];
    let others = ["5 ", "abc", "", "1.5", "1e3", "0x10"];
    let all: Vec<Vec<u8>> = all.into_iter().chain(others).map(|text| text.as_bytes().to_vec()).collect();
    prop_oneof![Just(b"100000".to_vec()), prop::sample::select(all)]
}

fn several(word: &'static str, least: usize) -> impl Strategy<Value = Words> {
    prop::collection::vec(key(), least..5).prop_map(move |keys| [vec![word.as_bytes().to_vec()], keys].concat())
}

fn words(parts: impl IntoIterator<Item = Vec<u8>>) -> Words {
    parts.into_iter().collect()
}

fn set() -> impl Strategy<Value = Words> {
    let option = prop_oneof![
        number().prop_map(|number| vec![b"ex".to_vec(), number]),
        number().prop_map(|number| vec![b"PX".to_vec(), number]),
        prop::sample::select(vec![
            vec![b"nx".to_vec()],
            vec![b"Xx".to_vec()],
            vec![b"foo".to_vec()],
            vec![b"ex".to_vec()]
        ]),
    ];
    let options = prop::collection::vec(option, 0..4);
    (key(), value(), options).prop_map(|(key, value, options)| {
        let mut all = words([b"set".to_vec(), key, value]);
        all.extend(options.into_iter().flatten());
        all
    })
}

/// A word with values behind it.
fn with_values(known: &[&'static str], most: usize) -> impl Strategy<Value = Words> + use<> {
    let values = prop::collection::vec(value(), 0..=most);
    let known = prop::sample::select(known.to_vec());
    (known, values).prop_map(|(word, values)| [vec![word.as_bytes().to_vec()], values].concat())
}

/// What is about no key: commands that there are not or with too few arguments, greetings that are
/// refused, names of the connection.
fn oddity() -> impl Strategy<Value = Words> {
    let wrong = ["get", "SET", "mset", "ttl", "setex", "echo", "select", "setnx", "nope", "N"];
    let lines = [
        "hello 4",
        "hello 1",
        "hello x",
        "hello 2 foo",
        "hello 2 setname",
        "hello 2 auth a",
        "client getname",
        "client setname me",
        "client setname m\te",
        "select 0",
    ];
    let lines = prop::sample::select(lines.to_vec());
    let lines = lines.prop_map(|line| words(line.split(' ').map(|word| word.as_bytes().to_vec())));
    prop_oneof![1 => with_values(&wrong, 1), 2 => lines]
}

fn command() -> impl Strategy<Value = Words> {
    let of_key = prop::sample::select(vec!["get", "getdel", "persist", "ttl", "type"]);
    let of_key = (of_key, key()).prop_map(|(word, key)| words([word.as_bytes().to_vec(), key]));
    let timed = prop::sample::select(vec!["expire", "pexpire"]);
    let timed = (timed, key(), number()).prop_map(|(word, key, number)| words([word.as_bytes().to_vec(), key, number]));
    let stored = prop::sample::select(vec!["setex", "psetex"]);
    let stored = (stored, key(), number(), value());
    let stored = stored.prop_map(|(word, key, number, value)| words([word.as_bytes().to_vec(), key, number, value]));
    let absent = (key(), value()).prop_map(|(key, value)| words([b"setnx".to_vec(), key, value]));
    let pairs = prop::collection::vec((key(), value()), 1..4);
    let pairs = (pairs, prop::bool::weighted(0.1)).prop_map(|(pairs, is_odd)| {
        let odd = is_odd.then(|| b"odd".to_vec());
        words([b"mset".to_vec()].into_iter().chain(pairs.into_iter().flat_map(|(key, value)| [key, value])).chain(odd))
    });
    prop_oneof![
        4 => set(),
        4 => of_key,
        2 => timed,
        1 => stored,
        1 => absent,
        1 => pairs,
        1 => with_values(&["ping", "echo"], 2),
        3 => oddity(),
        2 => several("mget", 1),
        1 => several("exists", 1),
        1 => several("DEL", 1),
        1 => several("unlink", 1),
    ]
}

/// What has to be the same of both: an answer, without what we say more.
fn essence(frame: &Frame) -> Frame {
    let Frame::Error(text) = frame else { return frame.clone() };
    let more = "' command: 1 ms to ";
    text.find(more).map_or(frame.clone(), |at| Frame::Error(text[..at + "' command".len()].into()))
}

/// Whether two answers to a command say the same: how long a key is left may differ by the second
/// to which the store rounds up.
fn agree(words: &Words, ours: &Frame, theirs: &Frame) -> bool {
    match (ours, theirs) {
        (Frame::Integer(one), Frame::Integer(other)) if words[0].eq_ignore_ascii_case(b"ttl") && *other >= 0 => {
            one.abs_diff(*other) <= 1
        }
        _ => essence(ours) == essence(theirs),
    }
}

/// Commands of one key space in a case, so that cases share nothing.
fn within(case: u64, words: &Words) -> Words {
    const KEYLESS: [&str; 9] = ["ping", "echo", "hello", "client", "select", "nope", "n", "mset", "set"];
    let word = String::from_utf8_lossy(&words[0]).to_lowercase();
    let prefixed = |bytes: &Vec<u8>| [format!("{case}:").as_bytes(), bytes].concat();
    let is_key = |at: usize| match word.as_str() {
        "mset" => at % 2 == 1,
        "set" | "setex" | "psetex" | "setnx" | "expire" | "pexpire" => at == 1,
        word => at > 0 && !KEYLESS.contains(&word),
    };
    words.iter().enumerate().map(|(at, bytes)| if is_key(at) { prefixed(bytes) } else { bytes.clone() }).collect()
}

#[test]
fn commands_are_answered_as_redis_server_answers_them() {
    let Some(redis) = Redis::start() else { return eprintln!("skipped: redis-server is not installed") };
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(config(folder.path()));
    let case = Cell::new(0);
    let mut runner = TestRunner::new(Cases { cases: 200, failure_persistence: None, ..Cases::default() });
    let cases = prop::collection::vec(command(), 1..60);
    let ran = runner.run(&cases, |commands| {
        case.set(case.get() + 1);
        let (mut ours, mut theirs) = (store.client(), Client::new(redis.address));
        for words in &commands {
            let words = within(case.get(), words);
            let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let (answer, expected) = (ours.ask(&slices), theirs.ask(&slices));
            let shown: Vec<Bytes> =
                words.iter().map(|word| Bytes::copy_from_slice(&word[..word.len().min(60)])).collect();
            prop_assert!(agree(&words, &answer, &expected), "{shown:?}: {answer:?}, and Redis {expected:?}");
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
}
