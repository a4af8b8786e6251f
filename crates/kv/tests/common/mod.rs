//! A store in this process, and a client of its door.
#![allow(dead_code, reason = "not every test needs all of it")]

pub mod away;
pub mod target;

use away::{RunningJbof, Way, door, role_config, ways};
use bytes::{Bytes, BytesMut};
use kv::{Config, JbofConfig, JbofPlace, Limits, RunError, Stopper, Store};
use redis_protocol::resp2;
pub use redis_protocol::resp2::types::BytesFrame as Frame;
use scalio::Protocol;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// A small store without a flush, at a free port.
pub fn config(folder: &Path) -> Config {
    Config {
        listen: "127.0.0.1:0".into(),
        password: None,
        tls: None,
        metrics: None,
        jbof: JbofPlace::Inside(jbof(folder)),
        loops: 1,
        limits: Limits::default(),
        records: None,
        journal: None,
    }
}

/// Its flash and its memory.
pub fn jbof(folder: &Path) -> JbofConfig {
    JbofConfig {
        path: folder.join("flash"),
        zones: 16,
        zone_sectors: 2048,
        blocks: 256,
        slots: 4,
        value_bytes_max: 64 << 10,
        flush: false,
        reserve: false,
        protocol: Protocol::Linearizable,
    }
}

/// The same store with another JBOF inside.
pub fn with(config: Config, change: impl FnOnce(&mut JbofConfig)) -> Config {
    let JbofPlace::Inside(mut jbof) = config.jbof else { panic!("its JBOF is away") };
    change(&mut jbof);
    Config { jbof: JbofPlace::Inside(jbof), ..config }
}

/// A store on a thread; dropped, it ends.
pub struct Running {
    pub address: SocketAddr,
    pub stopper: Stopper,
    thread: Option<JoinHandle<Result<(), RunError>>>,
    /// Its JBOF, where that is another role.
    jbof: Option<RunningJbof>,
}

/// Plays with a store wherever its JBOF may be: inside, in a thread of its own for three loops,
/// over TCP and sealed, shared, with flash by NVMe/TCP, and by libfabric where that is there. Each
/// has a file of its own.
pub fn everywhere(config: &Config, play: impl Fn(Running)) {
    play(Running::start(config.clone()));
    let JbofPlace::Inside(inside) = &config.jbof else { panic!("its JBOF is away") };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("flash");
    play(Running::start(Config { loops: 3, ..with(config.clone(), |jbof| jbof.path = path) }));
    for way in ways() {
        let secret = (way != Way::Shared).then_some("a secret");
        let folder = tempfile::tempdir().expect("a folder");
        let jbof = JbofConfig { path: folder.path().join("flash"), ..inside.clone() };
        let role = RunningJbof::start(role_config(folder.path(), jbof, secret));
        let place = door(folder.path(), way, role.address, secret).jbof;
        let mut store = Running::start(Config { jbof: place, ..config.clone() });
        store.jbof = Some(role);
        play(store);
    }
}

impl Running {
    pub fn start(config: Config) -> Running {
        let mut store = Store::start(config, false).unwrap_or_else(|error| panic!("{error}"));
        let (address, stopper) = (store.address().expect("it is bound"), store.stopper());
        Running { address, stopper, thread: Some(std::thread::spawn(move || store.run())), jbof: None }
    }
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was started").expect("it does not panic").expect("it runs");
        }
    }
}

/// A client.
pub struct Client {
    pub stream: TcpStream,
    input: BytesMut,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client::try_new(address).expect("it listens")
    }

    /// A client of a store that may be gone.
    pub fn try_new(address: SocketAddr) -> Option<Client> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).expect("it is a socket");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
        Some(Client { stream, input: BytesMut::new() })
    }

    /// Sends a command without waiting.
    pub fn send(&mut self, arguments: &[&[u8]]) {
        self.try_send(arguments).expect("it is read");
    }

    /// Sends a command that may not be taken.
    pub fn try_send(&mut self, arguments: &[&[u8]]) -> std::io::Result<()> {
        let items = arguments.iter().map(|bytes| Frame::BulkString(Bytes::copy_from_slice(bytes)));
        let mut bytes = BytesMut::new();
        resp2::encode::extend_encode(&mut bytes, &Frame::Array(items.collect()), false).expect("it fits");
        self.stream.write_all(&bytes)
    }

    /// Begins to store a value of so many bytes, and never ends it. The store may close the
    /// connection meanwhile.
    pub fn begin_and_leave(&mut self, bytes: usize) {
        let _ = self.stream.write_all(format!("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n${bytes}\r\n").as_bytes());
        let _ = self.stream.write_all(&vec![0; bytes - 10_000]);
    }

    /// Asks a store that may be gone.
    pub fn try_ask(&mut self, arguments: &[&[u8]]) -> Option<Frame> {
        self.try_send(arguments).ok().and_then(|()| self.reply())
    }

    /// The next reply; `None` when the store has closed the connection.
    pub fn reply(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, ..)) = resp2::decode::decode_bytes_mut(&mut self.input).expect("a reply") {
                return Some(frame);
            }
            let mut room = [0; 64 << 10];
            match self.stream.read(&mut room) {
                // A process that was stopped and goes on (signal(7)).
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return None,
                Ok(count) => self.input.extend_from_slice(&room[..count]),
            }
        }
    }

    pub fn ask(&mut self, arguments: &[&[u8]]) -> Frame {
        self.send(arguments);
        self.reply().expect("the store answers")
    }

    /// What INFO says.
    pub fn info(&mut self) -> String {
        let Frame::BulkString(info) = self.say("INFO") else { panic!("INFO is a text") };
        String::from_utf8(info.to_vec()).expect("it is text")
    }

    /// A number of INFO.
    pub fn number(&mut self, name: &str) -> u64 {
        number(&self.info(), name)
    }

    /// A command of words.
    pub fn say(&mut self, line: &str) -> Frame {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }
}

/// A number of what INFO says.
pub fn number(info: &str, name: &str) -> u64 {
    let mut values = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {info}"))
}

/// Whether the store has closed a connection: it answers nothing more.
pub fn is_closed(stream: &mut TcpStream) -> bool {
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

pub fn ok() -> Frame {
    Frame::SimpleString(Bytes::from_static(b"OK"))
}
pub fn bulk(bytes: impl AsRef<[u8]>) -> Frame {
    Frame::BulkString(Bytes::copy_from_slice(bytes.as_ref()))
}
pub fn error(frame: &Frame) -> String {
    match frame {
        Frame::Error(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}
