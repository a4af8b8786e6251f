//! What clients see at the door, good ones and others.

mod common;

use base::Span;
use bytes::Bytes;
use common::{Frame, Running, bulk, config, error, everywhere, is_closed, jbof, number, ok, with};
use kv::{Config, Limits};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Whether `reply` is what can be left of `whole` seconds that were set after `start`.
fn is_left(reply: &Frame, whole: i64, start: Instant) -> bool {
    let least = whole - 1 - start.elapsed().as_secs() as i64;
    matches!(reply, Frame::Integer(left) if (least..=whole).contains(left))
}

#[test]
fn commands_do_what_they_say() {
    let folder = tempfile::tempdir().expect("a folder");
    everywhere(&config(folder.path()), say_commands);
}

fn say_commands(store: Running) {
    let mut client = store.client();
    assert_eq!(client.say("GET a"), Frame::Null);
    assert_eq!(client.say("SET a 1"), ok());
    assert_eq!(client.say("SET a 2 NX"), Frame::Null);
    assert_eq!(client.say("SET b 2 XX"), Frame::Null);
    assert_eq!(client.say("SET a 3 XX"), ok());
    assert_eq!(client.say("SETNX b 4"), Frame::Integer(1));
    assert_eq!(client.say("MGET a b c a"), Frame::Array(vec![bulk("3"), bulk("4"), Frame::Null, bulk("3")]));
    assert_eq!(client.say("MSET c 5 d 6"), ok());
    assert_eq!(client.say("EXISTS a b c d e a"), Frame::Integer(5));
    assert_eq!(client.say("DBSIZE"), Frame::Integer(4));
    assert_eq!(client.say("DEL a b e a"), Frame::Integer(2));
    assert_eq!(client.say("GET a"), Frame::Null);
    let start = Instant::now();
    assert_eq!(client.say("SET t 1 EX 100"), ok());
    assert!(is_left(&client.say("TTL t"), 100, start));
    let Frame::Integer(milliseconds) = client.say("PTTL t") else { panic!() };
    let least = 99_000 - start.elapsed().as_millis() as i64;
    assert!((least..=101_000).contains(&milliseconds), "{milliseconds}");
    // From a slot, too.
    assert_eq!(client.say("GET t"), bulk("1"));
    assert!(is_left(&client.say("TTL t"), 100, start));
    assert_eq!((client.say("TTL c"), client.say("TTL none")), (Frame::Integer(-1), Frame::Integer(-2)));
    assert_eq!(client.say("TYPE c"), Frame::SimpleString(Bytes::from_static(b"string")));
    assert_eq!((client.say("PERSIST t"), client.say("TTL t")), (Frame::Integer(1), Frame::Integer(-1)));
    assert_eq!((client.say("PERSIST t"), client.say("PERSIST none")), (Frame::Integer(0), Frame::Integer(0)));
    let start = Instant::now();
    assert_eq!(client.say("EXPIRE t 63072000"), Frame::Integer(1));
    assert!(is_left(&client.say("TTL t"), 63_072_000, start), "two years");
    assert_eq!(
        error(&client.say("EXPIRE t 4294967295")),
        "ERR a time to live of 4294967295 s ends beyond the store's clock"
    );
    assert!(is_left(&client.say("TTL t"), 63_072_000, start));
    let start = Instant::now();
    assert_eq!(client.say("PEXPIRE t 50000"), Frame::Integer(1));
    assert!(is_left(&client.say("TTL t"), 50, start));
    assert_eq!((client.say("EXPIRE none 5"), client.say("EXPIRE c 0")), (Frame::Integer(0), Frame::Integer(1)));
    assert_eq!((client.say("GETDEL c"), client.say("SET c 5")), (Frame::Null, ok()));
    assert_eq!((client.say("GETDEL t"), client.say("GETDEL t")), (bulk("1"), Frame::Null));
    assert_eq!(client.say("SELECT 0"), ok());
    assert_eq!(error(&client.say("FLUSHALL now")), "ERR unknown command 'FLUSHALL', with args beginning with: 'now' ");
    assert_eq!(client.say("ECHO x"), bulk("x"));
    assert!(client.info().contains("db0:keys=2"));
    assert_eq!(client.say("QUIT"), ok());
    assert!(is_closed(&mut client.stream));
}

#[test]
fn keys_and_values_of_every_length_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    everywhere(&config(folder.path()), store_every_length);
}

fn store_every_length(store: Running) {
    let mut client = store.client();
    let names: Vec<Vec<u8>> = [0, 1, 15, 16, 17, 200, 8192].map(|length| vec![0xfe; length]).to_vec();
    let lengths = [0, 1, 63, 64, 65, 255, 256, 257, 511, 512, 4096, 65280, 65281, 64 << 10];
    for round in 0..2u8 {
        for name in &names {
            for length in lengths {
                let value: Vec<u8> = (0..length).map(|at| at as u8 ^ round).collect();
                assert_eq!(client.ask(&[b"SET", name, &value]), ok(), "{} {length}", name.len());
                // From flash, then from a slot if there is room in one.
                assert_eq!(client.ask(&[b"GET", name]), bulk(&value), "{} {length}", name.len());
                assert_eq!(client.ask(&[b"GET", name]), bulk(&value), "{} {length}", name.len());
            }
        }
    }
    assert!(error(&client.ask(&[b"SET", b"k", &vec![0; (64 << 10) + 1]])).contains("allowed are at most"));
    assert!(error(&client.ask(&[b"SET", &[0; 8193], b"v"])).contains("a key of 8193 bytes"));
    assert_eq!(client.say("DBSIZE"), Frame::Integer(names.len() as i64));
}

#[test]
fn a_time_to_live_ends_and_is_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(config(folder.path()));
    let mut client = store.client();
    assert_eq!(client.say("SET b 1 EX 1000"), ok());
    // The store counts in seconds: it is there for a second at least.
    loop {
        let start = Instant::now();
        assert_eq!(client.say("SET a 1 PX 10"), ok());
        let found = client.say("EXISTS a");
        if start.elapsed() < Duration::from_secs(1) {
            break assert_eq!(found, Frame::Integer(1));
        }
    }
    std::thread::sleep(Duration::from_millis(2_100));
    assert_eq!(client.say("MGET a b"), Frame::Array(vec![Frame::Null, bulk("1")]));
    assert_eq!(client.say("SET a 2 XX"), Frame::Null);
    assert_eq!(client.say("SET a 2 NX"), ok());
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    everywhere(&config(folder.path()), send_a_pipeline);
}

fn send_a_pipeline(store: Running) {
    let mut client = store.client();
    for number in 0..500u32 {
        let (key, value) = (format!("k{}", number % 7), number.to_string());
        client.send(&[b"SET", key.as_bytes(), value.as_bytes()]);
        client.send(&[b"GET", key.as_bytes()]);
    }
    for number in 0..500u32 {
        assert_eq!(client.reply(), Some(ok()));
        assert_eq!(client.reply(), Some(bulk(number.to_string())));
    }
}

#[test]
fn a_password_is_demanded_and_versions_are_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(Config { password: Some(Bytes::from_static(b"secret")), ..config(folder.path()) });
    let mut client = store.client();
    assert!(error(&client.say("GET a")).starts_with("NOAUTH"));
    assert!(error(&client.say("AUTH wrong")).starts_with("WRONGPASS"));
    // Before the password a request may not be long.
    let mut long = store.client();
    let _ = long.try_send(&[b"SET", b"a", &vec![0; 20 << 10]]);
    assert!(error(&long.reply().expect("it is told")).contains("invalid bulk length"));
    assert!(is_closed(&mut long.stream));
    assert_eq!(client.say("AUTH secret"), ok());
    assert_eq!(client.say("GET a"), Frame::Null);
}

#[test]
fn slow_clients_and_half_open_ones_are_ended_and_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    // Longer than a machine with other work may keep `good` from reading.
    let quick = Limits {
        handshake: Span::secs(3),
        stall: Span::secs(3),
        backlog: 4 << 10,
        connections: 5,
        ..Limits::default()
    };
    let store = Running::start(Config { limits: quick, ..config(folder.path()) });
    let mut good = store.client();
    assert_eq!(good.ask(&[b"SET", b"a", &[7; 60_000]]), ok());
    // One begins a command and drips the rest.
    let mut dripping = store.client();
    dripping.stream.write_all(b"*2\r\n$3\r\nGET\r\n$100\r\n").expect("it is read");
    // One asks and never reads.
    let mut deaf = store.client();
    deaf.stream.set_write_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    let deaf = std::thread::spawn(move || {
        while deaf.try_send(&[b"ECHO", &[7; 60_000]]).is_ok() {}
        is_closed(&mut deaf.stream)
    });
    // One reads what it asks for, though that is more than waits for it at a time.
    (0..20).for_each(|_| good.send(&[b"GET", b"a"]));
    (0..20).for_each(|_| assert_eq!(good.reply(), Some(bulk([7; 60_000]))));
    // One is half open: it sends no more, and gets its answers.
    let mut half = store.client();
    half.send(&[b"PING"]);
    half.stream.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(half.reply(), Some(Frame::SimpleString(Bytes::from_static(b"PONG"))));
    assert!(is_closed(&mut half.stream));
    for _ in 0..32 {
        let _ = dripping.stream.write_all(b"x");
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(good.say("EXISTS a"), Frame::Integer(1));
    }
    assert!(is_closed(&mut dripping.stream));
    assert!(deaf.join().expect("it does not panic"));
    // Idle for longer than all of that, and still served.
    assert_eq!(good.say("PING"), Frame::SimpleString(Bytes::from_static(b"PONG")));
    let mut all: Vec<_> = (0..6).map(|_| store.client()).collect();
    let refused = all.iter_mut().filter_map(|client| {
        client.send(&[b"PING"]);
        client.reply().filter(|frame| matches!(frame, Frame::Error(_)))
    });
    assert_eq!(refused.count(), 2, "five connections are the limit, one is `good`");
}

#[test]
fn a_walk_finds_every_key_while_others_come_and_go_and_zones_are_won_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = with(config(folder.path()), |jbof| (jbof.zone_sectors, jbof.value_bytes_max) = (1024, 32 << 10));
    everywhere(&config, walk_while_zones_are_won_back);
}

fn walk_while_zones_are_won_back(store: Running) {
    let mut client = store.client();
    let stay: BTreeSet<String> = (0..300)
        .map(|at| if at % 2 == 0 { format!("k{at}") } else { format!("user:a name of many bytes:{at}") })
        .collect();
    for name in &stay {
        assert_eq!(client.ask(&[b"SET", name.as_bytes(), &[7; 3_000]]), ok());
    }
    let (mut found, mut cursor, mut turn) = (BTreeSet::new(), String::from("0"), 0);
    loop {
        let frame = client.say(&format!("SCAN {cursor} COUNT 8"));
        let Frame::Array(parts) = frame else { panic!("{frame:?}") };
        let [Frame::BulkString(next), Frame::Array(names)] = &parts[..] else { panic!("{parts:?}") };
        for name in names {
            let Frame::BulkString(name) = name else { panic!("{name:?}") };
            found.insert(String::from_utf8_lossy(name).into_owned());
        }
        cursor = String::from_utf8_lossy(next).into_owned();
        if cursor == "0" {
            break;
        }
        for at in 0..20 {
            let name = format!("a key that comes and goes {}", (turn * 20 + at) % 60);
            assert_eq!(client.ask(&[b"SET", name.as_bytes(), &[7; 20_000]]), ok());
        }
        turn += 1;
    }
    assert!(turn >= 30 && found.is_superset(&stay), "{turn}: {:?}", stay.difference(&found).collect::<Vec<_>>());
    assert!(client.number("zones_reclaimed") > 0);
    let Frame::Array(parts) = client.say("SCAN 0 MATCH user:*:1 COUNT 256") else { panic!() };
    assert_eq!(parts[1], Frame::Array(vec![bulk("user:a name of many bytes:1")]));
}

#[test]
fn long_values_come_back_and_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    // Beyond 16 MiB, where a length of few bits and a page of 2^16 sectors would end.
    let config = with(config(folder.path()), |jbof| {
        (jbof.zones, jbof.zone_sectors, jbof.value_bytes_max) = (12, 9 * (41 << 20) / 512, 40 << 20);
    });
    let limits = Limits { request: 41 << 20, reply: 40 << 20, ..config.limits };
    let config = Config { limits, ..config };
    everywhere(&config, |store| store_long_values(&store, &LONG[4..]));
    store_long_values(&Running::start(config.clone()), &LONG[..4]);
    let store = Running::start(config);
    for length in LONG {
        let got = store.client().ask(&[b"GET", &long_name(length)]);
        assert!(got == bulk(long_value(length)), "{length} after a restart: {}", error(&got));
    }
}

/// As long as Redis's own may be, and one byte more.
#[test]
fn the_longest_value_that_a_file_may_allow_comes_back_and_a_longer_one_is_refused() {
    const LONGEST: usize = 512 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    // The file has holes: what is not written takes no room.
    let config = with(config(folder.path()), |jbof| {
        (jbof.zones, jbof.zone_sectors, jbof.value_bytes_max) = (12, 9 * 513 * 2048, LONGEST as u32);
    });
    let limits = Limits { request: 513 << 20, reply: LONGEST, memory: 2 << 30, ..config.limits };
    let store = Running::start(Config { limits, ..config });
    let mut client = store.client();
    let mut value = long_value(LONGEST);
    assert_eq!(client.ask(&[b"SET", b"longest", &value]), ok());
    value.push(7);
    assert!(matches!(client.ask(&[b"SET", b"longer", &value]), Frame::Error(_)));
    value.pop();
    // Nobody wants to see what it is if it is not the same.
    assert!(client.ask(&[b"GET", b"longest"]) == bulk(value));
    assert_eq!(client.ask(&[b"EXISTS", b"longest", b"longer"]), Frame::Integer(1));
}

fn store_long_values(store: &Running, lengths: &[usize]) {
    let mut client = store.client();
    for length in lengths {
        assert_eq!(client.ask(&[b"SET", &long_name(*length), &long_value(*length)]), ok());
        let got = client.ask(&[b"GET", &long_name(*length)]);
        assert!(got == bulk(long_value(*length)), "{length}: {}", error(&got));
    }
}

const LONG: [usize; 6] = [(16 << 20) - 64, (16 << 20) - 63, 16 << 20, (32 << 20) - 60, 32 << 20, 40 << 20];

fn long_value(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) >> 7) as u8).collect()
}

fn long_name(length: usize) -> Vec<u8> {
    format!("a long name of {length}").into_bytes()
}

#[test]
fn clients_that_hold_too_much_together_are_ended_the_greatest_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits { memory: 2 << 20, reply: 512 << 10, request: 512 << 10, ..Limits::default() };
    let store = Running::start(Config { limits, ..config(folder.path()) });
    let mut good = store.client();
    assert_eq!(good.ask(&[b"SET", b"a", &[7; 60_000]]), ok());
    // Each begins a request of 400 kB, and never ends it.
    let mut greedy: Vec<_> = (0..8).map(|_| store.client()).collect();
    for client in &mut greedy {
        client.begin_and_leave(400_000);
        assert_eq!(good.ask(&[b"GET", b"a"]), bulk([7; 60_000]));
    }
    // The last bytes are written. The store reads them when its turn comes.
    let mut looks = (0..200).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let info = good.info();
        assert!(number(&info, "held_bytes") <= 2 << 20, "{info}");
        number(&info, "connections_evicted")
    });
    assert!(looks.any(|ended| ended > 0), "nobody was ended");
    drop(greedy);
}

#[test]
fn broken_bytes_end_one_connection_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(config(folder.path()));
    let mut good = store.client();
    for bytes in [
        &b"*1\r\n*1\r\n*1\r\n"[..],
        b"*999999999\r\n",
        b"*1\r\n$99999999999\r\n",
        b"*1\r\n$3\r\nabcdef",
        b"*-5\r\n\xff",
    ] {
        let mut bad = store.client();
        bad.stream.write_all(bytes).expect("it is read");
        bad.stream.shutdown(Shutdown::Write).expect("it is open");
        assert!(is_closed(&mut bad.stream), "{}", bytes.escape_ascii());
        assert_eq!(good.say("PING"), Frame::SimpleString(Bytes::from_static(b"PONG")));
    }
}

#[test]
fn a_full_store_says_so_keeps_what_it_has_and_takes_again_after_deletes() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = with(config(folder.path()), |jbof| (jbof.zone_sectors, jbof.value_bytes_max) = (1024, 32 << 10));
    everywhere(&config, fill);
}

fn fill(store: Running) {
    let mut client = store.client();
    let value = |number: u32| vec![number as u8; 20_000 + number as usize];
    let mut stored = 0;
    let full = loop {
        match client.ask(&[b"SET", format!("key {stored}").as_bytes(), &value(stored)]) {
            frame if frame == ok() => stored += 1,
            other => break error(&other),
        }
        assert!(stored < 1_000, "8 MiB have no room for that");
    };
    assert!(full.starts_with("OOM ") && stored > 50, "{stored}: {full}");
    for number in 0..stored {
        assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(value(number)), "{number}");
    }
    // What is there can be replaced and deleted all the same.
    for round in 0..5 * stored {
        let number = round % stored;
        assert_eq!(client.ask(&[b"SET", format!("key {number}").as_bytes(), &value(number)]), ok(), "{round}");
    }
    for number in 0..stored / 2 {
        assert_eq!(client.ask(&[b"DEL", format!("key {number}").as_bytes()]), Frame::Integer(1));
    }
    for number in 0..stored / 4 {
        assert_eq!(client.ask(&[b"SET", format!("new {number}").as_bytes(), &value(number)]), ok(), "{number}");
    }
    for number in stored / 2..stored {
        assert_eq!(client.ask(&[b"GET", format!("key {number}").as_bytes()]), bulk(value(number)), "{number}");
    }
}

#[test]
fn a_full_store_takes_overwrites_by_many_at_a_time_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let full = with(config(folder.path()), |jbof| {
        (jbof.zones, jbof.blocks, jbof.value_bytes_max) = (48, 4096, 80 << 10);
    });
    let store = Running::start(full);
    let mut client = store.client();
    let value = vec![7; 4096];
    let mut store_all = |keys: &[u64]| -> usize {
        let mut stored = 0;
        for some in keys.chunks(64) {
            for key in some {
                client.send(&[b"SET", format!("k{key:014}").as_bytes(), &value]);
            }
            stored += some.iter().filter(|_| client.reply() == Some(ok())).count();
        }
        stored
    };
    let stored = store_all(&(0..8_000).collect::<Vec<_>>());
    assert!(stored > 4_000 && stored < 8_000, "{stored} fill it");
    let mut random = base::Seed(1).stream("keys");
    let keys: Vec<u64> = (0..15_000).map(|_| random.below(stored as u64 - 64)).collect();
    assert_eq!(store_all(&keys), keys.len());
}

#[test]
fn a_reserved_file_has_all_its_room_from_the_start_and_keeps_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = with(config(folder.path()), |jbof| jbof.reserve = true);
    let room = || {
        let about = std::fs::metadata(jbof(folder.path()).path).expect("the store");
        (about.blocks() * 512 >= about.len(), about.len())
    };
    let store = Running::start(config.clone());
    assert!(room().0);
    let mut client = store.client();
    // More than the file has, so that zones are won back.
    for number in 0..2 * room().1 / (60 << 10) {
        let name = (number % 10).to_string();
        assert_eq!(client.ask(&[b"SET", name.as_bytes(), &[7; 60 << 10]]), ok());
    }
    assert!(client.number("zones_reclaimed") > 0 && room().0);
    drop(store);
    assert_eq!(Running::start(config).client().ask(&[b"GET", b"9"]), bulk(vec![7; 60 << 10]));
}

#[test]
fn a_file_that_is_no_store_or_another_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |config: Config| match kv::Store::start(config, false) {
        Ok(_) => panic!("it is refused"),
        Err(error) => error.to_string(),
    };
    let first = config(folder.path());
    let running = Running::start(first.clone());
    assert!(refused(first.clone()).contains("another process"));
    drop(running);
    assert!(refused(with(first.clone(), |jbof| jbof.blocks = 512)).contains("these cannot change"));
    std::fs::write(folder.path().join("other"), vec![1; 8192]).expect("it is written");
    let other = with(first, |jbof| jbof.path = folder.path().join("other"));
    assert!(refused(other.clone()).contains("it is no store"));
    // As on a device of some file systems, whose first block is empty.
    let mut bytes = vec![0; 128 << 10];
    bytes[64 << 10] = 1;
    std::fs::write(folder.path().join("other"), &bytes).expect("it is written");
    assert!(refused(other.clone()).contains("there are data at byte 65536"));
    assert_eq!(std::fs::read(folder.path().join("other")).expect("it is there"), bytes, "not touched");
    std::fs::write(folder.path().join("other"), vec![0; 128 << 10]).expect("it is written");
    drop(Running::start(other));
}

/// Cut short, a store has lost records. One that serves without them would lie.
#[test]
fn a_store_that_was_cut_short_is_refused_and_serves_what_is_left_when_that_is_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path());
    drop(Running::start(config.clone()));
    let file = std::fs::OpenOptions::new().write(true).open(jbof(folder.path()).path).expect("the store");
    let whole = file.metadata().expect("its length").len();
    for (length, why) in [(whole - 1, "cut short"), (4096, "cut short"), (20, "first bytes are damaged")] {
        file.set_len(length).expect("it is cut");
        let error = kv::Store::start(config.clone(), false).err().expect("it is refused").to_string();
        assert!(error.contains(why), "{length}: {error}");
        assert_eq!(file.metadata().expect("its length").len(), length, "not touched");
    }
    file.set_len(0).expect("it is cut");
    drop(Running::start(config));
    assert_eq!(file.metadata().expect("its length").len(), whole, "nothing is a new store");
}

/// As a drive that has lost its end: what cannot be read is an error, and nothing else is.
#[test]
fn what_flash_cannot_read_fails_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Running::start(config(folder.path()));
    let mut client = store.client();
    let value = |number: u32| format!("{number}").repeat(500).into_bytes();
    let key = |number: u32| format!("key {number}").into_bytes();
    for number in 0..100 {
        assert_eq!(client.ask(&[b"SET", &key(number), &value(number)]), ok());
    }
    // A slot of memory has it.
    assert_eq!(client.ask(&[b"SET", b"short", b"1"]), ok());
    assert_eq!(client.ask(&[b"GET", b"short"]), bulk("1"));
    let file = std::fs::OpenOptions::new().write(true).open(jbof(folder.path()).path).expect("the store");
    file.set_len(4096).expect("it is cut");
    for number in 0..100 {
        let told = error(&client.ask(&[b"GET", &key(number)]));
        assert!(told.starts_with("ERR "), "{number}: {told}");
    }
    assert_eq!(client.ask(&[b"GET", b"short"]), bulk("1"));
    assert_eq!(client.say("PING"), Frame::SimpleString(Bytes::from_static(b"PONG")));
}
