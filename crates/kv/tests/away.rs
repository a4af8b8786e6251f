//! A JBOF that is not in the door's process: over TCP, and with memory and flash shared.

mod common;

use base::Span;
use common::away::{RunningJbof, Way, door, has_fabric, role_config, socket, ways};
use common::{Frame, Running, bulk, error, jbof, ok};
use kv::{FabricPlace, JbofPlace, JbofRole, JbofRoleConfig, PeerAddress};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::time::{Duration, Instant};

const SECRET: Option<&str> = Some("a secret that nobody else knows");

fn number(frame: &Frame) -> i64 {
    match frame {
        Frame::Integer(number) => *number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_door_serves_what_is_in_another_process_and_what_other_doors_store() {
    for (way, secret) in ways().into_iter().flat_map(|way| [(way, None), (way, SECRET)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), secret));
        let doors = [way, Way::Tcp].map(|way| Running::start(door(folder.path(), way, role.address, secret)));
        let [mut one, mut other] = [doors[0].client(), doors[1].client()];
        for (name, value) in [("short", vec![7; 40]), ("long", vec![8; 60_000])] {
            assert_eq!(one.ask(&[b"SET", name.as_bytes(), &value]), ok());
            for _ in 0..3 {
                assert_eq!(other.ask(&[b"GET", name.as_bytes()]), bulk(&value), "{way:?}");
                assert_eq!(one.ask(&[b"GET", name.as_bytes()]), bulk(&value), "{way:?}");
            }
        }
        assert_eq!(number(&one.say("DBSIZE")), 2, "{way:?}");
        assert_eq!(other.say("SET short 1"), ok());
        assert_eq!(one.say("GET short"), bulk("1"));
        assert_eq!(number(&one.say("SETNX short 2")), 0);
        assert_eq!(number(&one.say("EXPIRE short 100")), 1);
        assert!((98..=100).contains(&number(&other.say("TTL short"))));
        assert_eq!(number(&other.say("DEL short long gone")), 2);
        assert_eq!(one.say("GET short"), Frame::Null);
        // The other door's numbers come with its own replies.
        assert_eq!(number(&other.say("DBSIZE")), 0);
        assert_eq!(one.number("jbof_there"), 1);
    }
}

#[test]
fn a_door_that_shares_the_memory_reads_without_the_jbof() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let store = Running::start(door(folder.path(), Way::Shared, role.address, None));
    let mut client = store.client();
    for at in 0..50 {
        assert_eq!(client.ask(&[b"SET", format!("k{at}").as_bytes(), &vec![at; 10 + 100 * usize::from(at % 2)]]), ok());
    }
    for at in 0..50 {
        let value = bulk(vec![at; 10 + 100 * usize::from(at % 2)]);
        assert_eq!(client.say(&format!("GET k{at}")), value);
        assert_eq!(client.say(&format!("GET k{at}")), value);
    }
    assert!(client.number("hits") >= 20 && client.number("misses") >= 50);
    drop(store);
    let mode = std::fs::metadata(socket(folder.path())).expect("it is there");
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o600, "others may not come in");
    assert_eq!(role.end(), [0, 0, 50], "it was asked for updates alone");
}

#[test]
fn a_door_with_libfabric_executes_verbs_itself_whatever_comes_to_the_port() {
    if !has_fabric() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("there is a port");
    let fabric = Some(FabricPlace { provider: "tcp".into(), address: at.to_string() });
    let config = role_config(folder.path(), jbof(folder.path()), SECRET);
    let role = RunningJbof::start(JbofRoleConfig { fabric, ..config });
    // More than the JBOF's own port keeps. Some say a little, and some of them go.
    let mut strangers: Vec<_> = (0..1_200).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    for stranger in &mut strangers[..200] {
        stranger.write_all(&[7; 5]).expect("it is open");
    }
    strangers.drain(..100);
    let store = Running::start(door(folder.path(), Way::Fabric, role.address, SECRET));
    let mut client = store.client();
    for number in 0..50u8 {
        let value = vec![number; 10 + 100 * usize::from(number % 2)];
        assert_eq!(client.ask(&[b"SET", format!("k{number}").as_bytes(), &value]), ok());
        let mut stranger = TcpStream::connect(at).expect("it listens");
        // It may be closed before it has taken all.
        let _ = stranger.write_all(&vec![number; 100 * usize::from(number)]);
        strangers.push(stranger);
        for _ in 0..2 {
            assert_eq!(client.ask(&[b"GET", format!("k{number}").as_bytes()]), bulk(&value));
        }
    }
    assert!(client.number("hits") >= 20 && client.number("misses") >= 50);
    drop(store);
    let [verbs, reads, requests] = role.end();
    assert_eq!((verbs, requests), (0, 50), "it was asked for flash and updates alone");
    assert!(reads >= 100, "a segment and a record each: {reads}");
}

#[test]
fn what_is_wrong_with_libfabric_is_said() {
    if !has_fabric() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let config = role_config(folder.path(), jbof(folder.path()), None);
    let with = |provider: &str, address: &str| JbofRoleConfig {
        fabric: Some(FabricPlace { provider: provider.into(), address: address.into() }),
        ..config.clone()
    };
    let start = |config| JbofRole::start(config, false).err().expect("it does not start").to_string();
    let error = start(with("nothing", "127.0.0.1:0"));
    assert!(error.contains("fabric at 127.0.0.1:0") && error.contains("no provider \"nothing\""), "{error}");
    // An address of no machine (RFC 5737).
    let error = start(with("tcp", "192.0.2.1:0"));
    assert!(error.contains("fabric at 192.0.2.1:0"), "{error}");
    let role = RunningJbof::start(config.clone());
    let other = |provider: &str| {
        let mut config = door(folder.path(), Way::Fabric, role.address, None);
        let JbofPlace::Away(peer) = &mut config.jbof else { panic!("it is away") };
        peer.fabric = Some(provider.into());
        config
    };
    let error = refused(other("verbs"));
    assert!(error.contains("the JBOF has the provider \"tcp\", and this door \"verbs\""), "{error}");
    drop(role);
    let role = RunningJbof::start(JbofRoleConfig { fabric: None, ..config });
    let error = refused(door(folder.path(), Way::Fabric, role.address, None));
    assert!(error.contains("its file needs `fabric`"), "{error}");
}

#[test]
fn a_jbof_that_ends_is_missed_and_one_that_comes_back_is_found() {
    for way in ways() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = role_config(folder.path(), jbof(folder.path()), None);
        let role = RunningJbof::start(config.clone());
        // At the same port again.
        config.listen[0] = PeerAddress::Tcp(role.address.to_string());
        let store = Running::start(door(folder.path(), way, role.address, None));
        let mut client = store.client();
        assert_eq!(client.say("SET a 1"), ok());
        assert_eq!(client.say("GET a"), bulk("1"));
        drop(role);
        let until = Instant::now() + Duration::from_secs(30);
        let told = loop {
            assert!(Instant::now() < until, "{way:?}: nobody misses it");
            if let Frame::Error(text) = client.say("GET a") {
                break text.to_string();
            }
        };
        assert!(told.starts_with("LOADING"), "{told}");
        assert!(error(&client.say("SET a 2")).starts_with("LOADING"));
        assert_eq!(client.number("jbof_there"), 0);
        let _role = RunningJbof::start(config);
        let until = Instant::now() + Duration::from_secs(30);
        while matches!(client.say("GET a"), Frame::Error(_)) {
            assert!(Instant::now() < until, "{way:?}: it is not found");
        }
        assert_eq!(client.say("GET a"), bulk("1"));
        assert_eq!(client.say("SET a 2"), ok());
        assert_eq!(client.say("GET a"), bulk("2"));
        assert_eq!(client.number("jbof_there"), 1);
    }
}

fn refused(config: kv::Config) -> String {
    match kv::Store::start(config, false) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn who_does_not_know_the_secret_stays_outside() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), SECRET));
    let wrong = std::thread::scope(|scope| {
        let start = |secret| {
            let config = door(folder.path(), Way::Tcp, role.address, secret);
            scope.spawn(|| refused(config))
        };
        [start(None), start(Some("another one"))].map(|thread| thread.join().expect("it does not panic"))
    });
    assert!(wrong[0].contains("the other end has a secret"), "{}", wrong[0]);
    let store = Running::start(door(folder.path(), Way::Tcp, role.address, SECRET));
    assert_eq!(store.client().say("SET a 1"), ok());
}

#[test]
fn what_is_no_door_is_closed_and_harms_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let store = Running::start(door(folder.path(), Way::Tcp, role.address, None));
    let mut client = store.client();
    assert_eq!(client.say("SET a 1"), ok());
    let greeting = [&b"RwJbof1\0\0"[..], &[7; 32]].concat();
    let frame = |body: &[u8]| [&(body.len() as u32).to_le_bytes()[..], body].concat();
    let hello = frame(&[1, 0]);
    // A request of another door's name.
    let request = {
        let mut body = [&[4, 1, 2, 0xff, 0x7f][..], &[0; 4 + 24]].concat();
        body.extend([1, b'a']);
        let sum = crc32c::crc32c_append(crc32c::crc32c(&body[1..5]), &body[9..]);
        body[5..9].copy_from_slice(&sum.to_le_bytes());
        frame(&body)
    };
    let after_hello = |rest: &[u8]| [&greeting[..], &hello, rest].concat();
    let cases = [
        b"GET / HTTP/1.1\r\nHost: a-name-that-is-long-enough\r\n\r\n".to_vec(),
        [&greeting[..], &frame(&[5; 9])].concat(),
        [&greeting[..], &u32::MAX.to_le_bytes()[..]].concat(),
        after_hello(&frame(&[9])),
        after_hello(&hello),
        after_hello(&frame(&[2])),
        after_hello(&request),
    ];
    for (at, bytes) in cases.iter().enumerate() {
        let mut stream = TcpStream::connect(role.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
        // It may be closed before it has taken all.
        let _ = stream.write_all(bytes);
        let mut room = Vec::new();
        let closed = stream.read_to_end(&mut room).map_err(|error| error.kind());
        assert!(matches!(closed, Ok(_) | Err(ErrorKind::ConnectionReset)), "case {at} stays open: {closed:?}");
        assert!(room.len() < 200, "case {at}");
        assert_eq!(client.say("GET a"), bulk("1"), "case {at}");
    }
    // What lies outside is answered and not read.
    let mut stream = TcpStream::connect(role.address).expect("it listens");
    let read =
        |sector: u64, sectors: u32| frame(&[&[3][..], &[0; 8], &sector.to_le_bytes(), &sectors.to_le_bytes()].concat());
    stream.write_all(&after_hello(&[read(u64::MAX, 1), read(0, u32::MAX), read(32_768, 1)].concat())).expect("sent");
    let mut got = [0; 41 + 4 + 34 + 3 * (4 + 10)];
    stream.read_exact(&mut got).expect("it answers");
    let answer = frame(&[&[4][..], &[0; 8], &[0]].concat());
    assert_eq!(&got[41 + 4 + 34..], answer.repeat(3));
}

#[test]
fn strangers_that_keep_all_connections_do_not_keep_a_door_out() {
    let folder = tempfile::tempdir().expect("a folder");
    // It raises the limit of open files, for the strangers of this process too.
    let role = RunningJbof::start(role_config(folder.path(), jbof(folder.path()), None));
    let earlier = Running::start(door(folder.path(), Way::Tcp, role.address, None));
    assert_eq!(earlier.client().say("SET a 1"), ok());
    // It has room for 1,024.
    let mut strangers: Vec<_> = (0..1_100).map(|_| TcpStream::connect(role.address).expect("it listens")).collect();
    strangers[0].set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    let first = strangers[0].read(&mut [0; 64]).map_err(|error| error.kind());
    assert!(matches!(first, Ok(0) | Err(ErrorKind::ConnectionReset)), "the first makes room: {first:?}");
    strangers[1_099].set_nonblocking(true).expect("it is a socket");
    let last = strangers[1_099].read(&mut [0; 64]).map_err(|error| error.kind());
    assert_eq!(last, Err(ErrorKind::WouldBlock), "the last came in");
    let later = Running::start(door(folder.path(), Way::Tcp, role.address, None));
    assert_eq!(later.client().say("GET a"), bulk("1"));
    assert_eq!(earlier.client().say("SET a 2"), ok());
    assert_eq!([&earlier, &later].map(|store| store.client().number("jbof_there")), [1; 2]);
}

#[test]
fn a_door_that_is_gone_without_a_word_is_closed_and_one_that_idles_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = role_config(folder.path(), jbof(folder.path()), None);
    let role = RunningJbof::start(JbofRoleConfig { silence: Span::secs(3), ..config });
    let store = Running::start(door(folder.path(), Way::Tcp, role.address, None));
    let mut client = store.client();
    assert_eq!(client.say("SET a 1"), ok());
    let mut silent = TcpStream::connect(role.address).expect("it listens");
    silent.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
    let hello = [&b"RwJbof1\0\0"[..], &[7; 32], &[2, 0, 0, 0, 1, 0]].concat();
    silent.write_all(&hello).expect("it is taken");
    let mut room = Vec::new();
    let count = silent.read_to_end(&mut room).expect("it is closed in order");
    assert_eq!(count, 41 + 4 + 34, "it was welcome");
    assert_eq!(client.say("GET a"), bulk("1"));
    assert_eq!(client.number("jbof_there"), 1);
}

#[test]
fn a_jbof_that_cannot_be_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = role_config(folder.path(), jbof(folder.path()), None);
    let role = RunningJbof::start(config.clone());
    let start = |config| match JbofRole::start(config, false) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    };
    assert!(start(config.clone()).contains("another process listens there"));
    let only_tcp = JbofRoleConfig { listen: vec![config.listen[0].clone()], ..config.clone() };
    assert!(start(only_tcp).contains("another process has it open"));
    assert!(start(JbofRoleConfig { listen: Vec::new(), ..config.clone() }).contains("1 to 12 addresses"));
    drop(role);
    // A socket that nobody listens at is in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(socket(folder.path())).expect("the file was removed"));
    assert!(socket(folder.path()).exists());
    drop(RunningJbof::start(config));
}
