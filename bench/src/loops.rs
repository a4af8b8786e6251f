//! What a second loop gives a target and a store: two loops against one.
//!
//! The client is one thread for all connections, and copies nothing, so that it is no bottleneck.
//! It sends prepared requests out of a file in memory (`sendfile`), and has the kernel drop the
//! answers (MSG_TRUNC). It knows the length of every answer, and reads the first of each
//! connection.
//!
//! `cpu_ratio` is the servers' CPU time for a message with two loops over that with one, and
//! `rate_ratio` the same of messages per second. Both are medians over turns. `client_cpu` is the
//! part of a processor that the client has had. Where there are only two, loops have the rest.
//!
//! `same_load_ratio` is the servers' CPU time for a message where each loop has the same load:
//! one loop with half of the connections, and two with all, each connection with a batch every
//! [`PACE`] at most. Loops sleep between batches and are woken as often, so that the ratio has
//! what loops cost each other: locks, and memory that both write.
//!
//! It also has what three busy threads cost each other on two processors. So both loads are also
//! measured with two servers of one loop each, which share nothing and have half of the connections
//! each: `apart_ratio` and `same_load_apart_ratio` are two loops over these.

use crate::harness::{Figures, server_cpu};
use crate::target::{Kind, PREPARED, Target, median, requests};
use anyhow::{Context, ensure};
use kv::{Config, JbofConfig, JbofPlace, Store};
use live::Host;
use mio::net::TcpStream as Socket;
use mio::{Events, Interest, Poll, Token};
use runtime::processor::thread_ran_ns;
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections of the client; the loops have as many each.
const CONNECTIONS: usize = 8;
/// Requests of a connection that are outstanding at a time, and all of a turn.
const DEPTH: usize = 32;
const MESSAGES: usize = 200_000;
/// Requests of a connection that go out together: a loop that is not busy would otherwise wake up
/// for each, and a busy one finds several.
const BATCH: usize = 16;
/// Turns of either number of loops.
const ROUNDS: usize = 7;
/// Bytes that one call drops.
const AT_ONCE: usize = 1 << 20;
/// Requests of a connection that go out together where loops have the same load, and the time from
/// one such batch to the next.
const PACED_BATCH: usize = 16;
const PACE: Duration = Duration::from_millis(1);
/// Messages of a loop then.
const PACED_MESSAGES: usize = 30_000;
/// How long nothing may come before a turn is given up.
const SILENCE: Duration = Duration::from_secs(20);

/// What a client sends and how long each answer is.
struct Load {
    /// Requests of equal length, one after the other, and a file in memory of them.
    requests: Vec<u8>,
    file: File,
    request: usize,
    /// Bytes of an answer, and those with which it begins.
    answer: usize,
    begins: Vec<u8>,
}

/// A server for a turn, and its connections.
struct Served {
    streams: Vec<TcpStream>,
    /// Keeps it alive.
    server: Box<dyn std::any::Any>,
}

impl Served {
    /// Both of them, to one client. Connections of the two take turns.
    fn beside(self, other: Served) -> Served {
        let streams = self.streams.into_iter().zip(other.streams).flat_map(|(one, another)| [one, another]);
        Served { streams: streams.collect(), server: Box::new((self.server, other.server)) }
    }
}

/// When requests go out.
#[derive(Clone, Copy)]
enum Pace {
    /// For each batch of answers another one: the loops have as much as they can serve.
    Saturating,
    /// A batch each [`PACE`], where the one before is answered.
    SameLoad,
}

/// The result of a turn.
#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    cpu_ns: f64,
    client: f64,
}

/// Measures and returns the figures whose keys start with `only`.
pub fn figures(only: &str) -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    for backend in ["null", "ram"] {
        for kind in Kind::ALL {
            let name = format!("loops.target_{backend}_{}", kind.name());
            measure(&name, only, &mut figures, &Load::of_target(kind)?, |loops, connections| {
                target(backend, loops, connections)
            })?;
        }
    }
    for bytes in [30, 4096] {
        for is_get in [true, false] {
            let name = format!("loops.store_{}_{bytes}", if is_get { "get" } else { "set" });
            let (load, fill) = (Load::of_store(is_get, bytes)?, Load::of_store(false, bytes)?);
            measure(&name, only, &mut figures, &load, |loops, connections| store(loops, connections, &fill))?;
        }
    }
    figures.iter().for_each(|(key, value)| println!("{key:<44} {value:>12.2}"));
    Ok(figures)
}

/// Adds the figures of one load, in turns of both numbers of loops.
fn measure(
    name: &str,
    only: &str,
    figures: &mut Figures,
    load: &Load,
    start: impl Fn(usize, usize) -> anyhow::Result<Served>,
) -> anyhow::Result<()> {
    if !name.starts_with(only) && !only.starts_with(name) {
        return Ok(());
    }
    let (mut turns, mut paced) = (Vec::new(), Vec::new());
    let half = CONNECTIONS / 2;
    let apart = || anyhow::Ok(start(1, half)?.beside(start(1, half)?));
    for _ in 0..ROUNDS {
        let saturated = |served| turn(served, load, MESSAGES, Pace::Saturating);
        turns.push([saturated(start(1, CONNECTIONS)?)?, saturated(start(2, CONNECTIONS)?)?, saturated(apart()?)?]);
        let even = |loops, served| turn(served, load, PACED_MESSAGES * loops, Pace::SameLoad);
        paced.push([even(1, start(1, half)?)?, even(2, start(2, CONNECTIONS)?)?, even(2, apart()?)?]);
    }
    let mut insert = |what: &str, turns: &[[Turn; 3]], of: &dyn Fn(&[Turn; 3]) -> f64| {
        let value = median(turns.iter().map(of).collect());
        figures.insert(format!("{name}.{what}"), value);
    };
    insert("same_load_ratio", &paced, &|[one, two, _]| two.cpu_ns / one.cpu_ns);
    insert("same_load_apart_ratio", &paced, &|[_, two, apart]| two.cpu_ns / apart.cpu_ns);
    insert("cpu_ratio", &turns, &|[one, two, _]| two.cpu_ns / one.cpu_ns);
    insert("apart_ratio", &turns, &|[_, two, apart]| two.cpu_ns / apart.cpu_ns);
    insert("rate_ratio", &turns, &|[one, two, _]| two.per_second / one.per_second);
    for (place, of) in ["one", "two", "apart"].into_iter().enumerate() {
        insert(&format!("cpu_ns.{of}"), &turns, &|turns| turns[place].cpu_ns);
        insert(&format!("per_second.{of}"), &turns, &|turns| turns[place].per_second);
        insert(&format!("client_cpu.{of}"), &turns, &|turns| turns[place].client);
    }
    Ok(())
}

impl Load {
    fn new(requests: Vec<u8>, begins: Vec<u8>, answer: usize) -> anyhow::Result<Load> {
        let mut file = File::from(memfd_create("requests", MemfdFlags::CLOEXEC)?);
        file.write_all(&requests)?;
        let request = requests.len() / usize::from(PREPARED);
        Ok(Load { requests, file, request, answer, begins })
    }

    fn of_target(kind: Kind) -> anyhow::Result<Load> {
        // Type and flags of C2HData, which has all data, and of CapsuleResp (TCP Transport 1.0,
        // 3.6).
        let begins = if kind == Kind::Read { vec![0x07, 0x04] } else { vec![0x05, 0x00] };
        Load::new(requests(kind), begins, kind.answer_bytes())
    }

    /// GETs or SETs, each of another key.
    fn of_store(is_get: bool, bytes: usize) -> anyhow::Result<Load> {
        let (value, mut requests) = ("x".repeat(bytes), String::new());
        for key in 0..PREPARED {
            let key = format!("$5\r\nk{key:04}\r\n");
            requests += &match is_get {
                true => format!("*2\r\n$3\r\nGET\r\n{key}"),
                false => format!("*3\r\n$3\r\nSET\r\n{key}${bytes}\r\n{value}\r\n"),
            };
        }
        let answer = if is_get { format!("${bytes}\r\n{value}\r\n") } else { "+OK\r\n".to_owned() };
        let length = answer.len();
        Load::new(requests.into_bytes(), answer.into_bytes(), length)
    }
}

fn target(backend: &str, loops: usize, connections: usize) -> anyhow::Result<Served> {
    let target = Target::start(&format!("loops = {loops}\nbusy_poll = '0us'"), backend)?;
    let connected: Vec<(Host, TcpStream)> =
        (0..connections).map(|_| target.connect()).collect::<anyhow::Result<_>>()?;
    let (hosts, streams): (Vec<Host>, Vec<TcpStream>) = connected.into_iter().unzip();
    Ok(Served { streams, server: Box::new((hosts, target)) })
}

/// A store in threads, which ends and takes its file with it.
struct RunningStore {
    stopper: kv::Stopper,
    thread: Option<thread::JoinHandle<()>>,
    path: PathBuf,
}

impl Drop for RunningStore {
    fn drop(&mut self) {
        self.stopper.stop();
        // A panic of it has been reported.
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A store that has the values of `fill`.
fn store(loops: usize, connections: usize, fill: &Load) -> anyhow::Result<Served> {
    static STORES: AtomicU32 = AtomicU32::new(0);
    let number = STORES.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(format!("target/bench-loops-{}-{number}.flash", std::process::id()));
    let (zones, zone_sectors, blocks, slots, value_bytes_max) = (64, 32 << 10, 8_192, 8, 64 << 10);
    let protocol = kv::Protocol::Linearizable;
    let jbof = JbofConfig {
        path: path.clone(),
        zones,
        zone_sectors,
        blocks,
        slots,
        value_bytes_max,
        flush: false,
        reserve: false,
        protocol,
    };
    let config = Config { listen: "127.0.0.1:0".into(), jbof: JbofPlace::Inside(jbof), loops, ..Config::default() };
    let mut store = Store::start(config, false).map_err(|error| anyhow::anyhow!("{error}"))?;
    let (address, stopper) = (store.address()?, store.stopper());
    let run = move || store.run().expect("its events come");
    let running = RunningStore { stopper, thread: Some(thread::spawn(run)), path };
    let connect = |_| TcpStream::connect(address);
    let mut streams = (0..connections).map(connect).collect::<io::Result<Vec<_>>>()?;
    streams.iter().try_for_each(|stream| stream.set_nodelay(true))?;
    for request in fill.requests.chunks(fill.request * DEPTH) {
        streams[0].write_all(request)?;
        streams[0].read_exact(&mut vec![0; request.len() / fill.request * fill.answer])?;
    }
    Ok(Served { streams, server: Box::new(running) })
}

/// A connection and what it still has to send and to get.
struct Connection {
    socket: Socket,
    /// Where in the requests the next byte is, and how many bytes may go.
    place: usize,
    due: usize,
    /// Requests that were allowed, and bytes of answers that came.
    asked: usize,
    came: usize,
}

impl Connection {
    /// Allows more requests for the answers that are complete.
    fn allow(&mut self, load: &Load, messages: usize, pace: Pace) {
        let answered = self.came / load.answer;
        let allowed = match pace {
            Pace::Saturating => answered / BATCH * BATCH + DEPTH,
            Pace::SameLoad if answered == self.asked => self.asked + PACED_BATCH,
            Pace::SameLoad => self.asked,
        };
        let allowed = allowed.min(messages);
        self.due += (allowed - self.asked) * load.request;
        self.asked = allowed;
    }

    /// Sends what is due until the socket takes no more.
    fn send(&mut self, load: &Load) -> io::Result<()> {
        while self.due > 0 {
            let (end, mut place) = (load.requests.len().min(self.place + self.due), self.place as u64);
            match sendfile(&self.socket, &load.file, Some(&mut place), end - self.place) {
                Ok(count) => {
                    self.due -= count;
                    self.place = (self.place + count) % load.requests.len();
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Drops what has come.
    fn take(&mut self, room: &mut [u8]) -> io::Result<()> {
        loop {
            match recv(&self.socket, &mut *room, RecvFlags::TRUNC) {
                Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((_, count)) => {
                    self.came += count;
                    if count < room.len() {
                        return Ok(());
                    }
                }
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Runs one turn, after a first request of each connection.
fn turn(served: Served, load: &Load, messages: usize, pace: Pace) -> anyhow::Result<Turn> {
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for (number, mut stream) in served.streams.into_iter().enumerate() {
        stream.write_all(&load.requests[..load.request])?;
        let mut first = vec![0; load.answer];
        stream.read_exact(&mut first)?;
        ensure!(first.starts_with(&load.begins), "the first answer is another: {:?}", &first[..first.len().min(16)]);
        stream.set_nonblocking(true)?;
        let mut socket = Socket::from_std(stream);
        poll.registry().register(&mut socket, Token(number), Interest::READABLE | Interest::WRITABLE)?;
        connections.push(Connection { socket, place: load.request, due: 0, asked: 0, came: 0 });
    }
    let each = messages / connections.len();
    let (cpu, client, began) = (server_cpu(), thread_ran_ns(), Instant::now());
    play(&mut poll, &mut connections, load, each, pace)?;
    let took = began.elapsed().as_secs_f64();
    let messages = (each * connections.len()) as f64;
    let turn = Turn {
        per_second: messages / took,
        cpu_ns: server_cpu().saturating_sub(cpu).as_secs_f64() * 1e9 / messages,
        client: (thread_ran_ns() - client) as f64 / 1e9 / took,
    };
    drop(connections);
    drop(served.server);
    Ok(turn)
}

fn play(poll: &mut Poll, connections: &mut [Connection], load: &Load, each: usize, pace: Pace) -> anyhow::Result<()> {
    let mut events = Events::with_capacity(64);
    let mut room = vec![0; AT_ONCE];
    let (mut heard, mut next) = (Instant::now(), Instant::now());
    while connections.iter().any(|connection| connection.came < each * load.answer) {
        if next <= Instant::now() {
            for connection in &mut *connections {
                connection.allow(load, each, pace);
                connection.send(load)?;
            }
            next = Instant::now() + if let Pace::SameLoad = pace { PACE } else { SILENCE };
        }
        poll.poll(&mut events, Some(next.saturating_duration_since(Instant::now())))?;
        ensure!(heard.elapsed() < SILENCE, "no answer came for {SILENCE:?}");
        for event in &events {
            let connection = connections.get_mut(event.token().0).context("it is registered")?;
            connection.take(&mut room)?;
            if let Pace::Saturating = pace {
                connection.allow(load, each, pace);
            }
            connection.send(load)?;
            heard = Instant::now();
        }
    }
    let answers = each * load.answer;
    ensure!(connections.iter().all(|connection| connection.came == answers), "answers of another length came");
    Ok(())
}
