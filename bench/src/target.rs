//! The live target against an echo server with messages of the same sizes, which is the maximum for
//! this machine's TCP.
//!
//! Each server is one thread over epoll on the loopback. The same client, in a separate thread,
//! drives both. It knows the length of every answer and sends a request for each. The servers take
//! turns, and are restarted now and then; a ratio is the median over the turns of the target's
//! figure to the echo's. The echo beside a RAM disk touches as much memory as the disk does, at
//! random places: it stores written data and sends stored data. Beside `null` it touches none.
//!
//! `echo_ratio` compares messages per second and `echo_p50_ratio` medians of latency, both by the
//! wall clock. They are meaningful on a machine with two spare cores, one for the client and one
//! for the servers.
//!
//! `echo_cpu_ratio` compares messages per second of the server's own CPU time, including the
//! kernel's work for it, without `busy_poll`: the echo also sleeps when idle. `polling_cpu_ratio`
//! is the same with the default `busy_poll`: if the client is slower than the target, all polling
//! time of the target counts.

use crate::harness::{Figures, server_cpu};
use anyhow::{Context, ensure};
use base::{Seed, Span, Stream};
use live::{Host, Server, ServerOptions, Stopper};
use mio::net::{TcpListener, TcpStream as Socket};
use mio::{Events, Interest, Poll, Token};
use nvme::initiator::InitiatorConfig;
use nvme::pdu::{Digests, Framing, Header};
use nvme::{Access, AccessFlags, Body, Command, HostId, Io, Nqn, Sgl};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The target's qualified name.
const NQN: &str = "nqn.2026-11.io.rackweave:disk";
/// Bytes of a request's data.
const BYTES: usize = 4096;
/// Blocks of such a request, of 512 B.
const BLOCKS: u16 = 8;
/// Number of prepared requests, with distinct ids and addresses: more than are ever outstanding.
pub const PREPARED: u16 = 4096;
/// Bytes of a CapsuleCmd; bytes of the header of data, and of a CapsuleResp (TCP Transport 1.0,
/// 3.6.2).
const COMMAND: usize = 72;
const HEADER: usize = 24;
/// Bytes of a RAM disk, and of the memory of the echo beside it. The step between its blocks visits
/// all of them.
const MEMORY: usize = 64 << 20;
const BLOCK_STEP: usize = 7_919;
/// Number of restarts of the contenders, and turns per start. The placement of their buffers
/// changes the speed of the kernel's copies by up to a third.
const STARTS: usize = 5;
const ROUNDS: usize = 3;
/// Queue depths, and messages per turn.
const MESSAGES: [(usize, usize); 3] = [(1, 20_000), (32, 100_000), (128, 100_000)];
/// Duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(3);
/// Bytes that the client reads at a time.
const ROOM: usize = 256 << 10;
/// Step of the client's buffer with each read, and the number of bytes after which it wraps. The
/// kernel copies with `rep movsb`. On AMD's Zen 3 and 4 this is sixteen times slower if it writes 1
/// to 15 bytes behind its source, modulo a page (measured: 3.4 GB/s instead of 56). A buffer at a
/// fixed address has this offset with every read or with none, by chance, which would dominate the
/// comparison.
const ROOM_STEP: usize = 64;
const ROOM_PERIOD: usize = 4096;
/// Messages per turn over a file.
const FILE_MESSAGES: usize = 50_000;
/// Hosts of the memory run, each with a connection of 128 requests; the buffer of each, and its
/// messages of either kind.
const BUSY_HOSTS: usize = 64;
const HOST_ROOM: usize = 16 << 10;
const BUSY_MESSAGES: usize = 2_000;
/// Hosts that are connected while idle, each with two connections.
const IDLE_HOSTS: usize = 32;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of 4 KiB.
    Read,
    /// Of 4 KiB.
    Write,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Read, Kind::Write];

    /// As in the keys of figures.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
        }
    }
    /// Bytes of a request.
    pub fn request_bytes(self) -> usize {
        if self == Kind::Write { COMMAND + BYTES } else { COMMAND }
    }
    /// Bytes of an answer.
    pub fn answer_bytes(self) -> usize {
        if self == Kind::Read { HEADER + BYTES + HEADER } else { HEADER }
    }
}

/// The result of a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Messages per second.
    per_second: f64,
    /// Messages per second of the server's CPU time.
    per_cpu_second: f64,
    /// Median time of a message, microseconds of the wall clock.
    p50_us: f64,
}

/// The contenders: target with `busy_poll`, target without, and echo.
const CONTENDERS: usize = 3;
const POLLING: usize = 0;
const SLEEPING: usize = 1;
const ECHO: usize = 2;

/// The turns of all contenders, in order.
struct Turns(Vec<[Turn; CONTENDERS]>);

impl Turns {
    /// Returns the median over the turns of the ratio of two contenders.
    fn ratio(&self, ours: usize, theirs: usize, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.0.iter().map(|turns| of(&turns[ours]) / of(&turns[theirs])).collect())
    }
    /// Returns the median over the turns of one contender.
    fn median(&self, whose: usize, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.0.iter().map(|turns| of(&turns[whose])).collect())
    }
}

/// Returns the median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// Measures and returns all figures.
pub fn figures() -> anyhow::Result<Figures> {
    let mut figures = Figures::new();
    for (depth, messages) in MESSAGES {
        let mut all = Vec::new();
        for backend in ["null", "ram"] {
            for kind in Kind::ALL {
                let turns = compare(backend, kind, depth, messages)?;
                insert_medians(&turns, &format!("qd{depth}.{backend}_{}", kind.name()), &mut figures);
                all.push(turns);
            }
        }
        insert_ratios(&all, depth, &mut figures);
    }
    figures.insert("target.idle_cpu".into(), idle_percent()?);
    figures.insert("target.uring_ratio.qd32".into(), uring_ratio()?);
    figures.iter().for_each(|(key, value)| println!("{key:<44} {value:>12.2}"));
    Ok(figures)
}

fn insert_medians(turns: &Turns, name: &str, figures: &mut Figures) {
    for (who, whose) in [("", POLLING), ("sleeping_", SLEEPING), ("echo_", ECHO)] {
        let mut insert = |what: &str, value| figures.insert(format!("target.{who}{what}.{name}"), value);
        insert("per_second", turns.median(whose, |turn| turn.per_second));
        insert("per_cpu_second", turns.median(whose, |turn| turn.per_cpu_second));
    }
}

/// Inserts the worst of the four ratios.
fn insert_ratios(all: &[Turns], depth: usize, figures: &mut Figures) {
    let least =
        |ours, of: fn(&Turn) -> f64| all.iter().map(|turns| turns.ratio(ours, ECHO, of)).fold(f64::INFINITY, f64::min);
    let mut insert = |what: &str, value| figures.insert(format!("target.{what}.qd{depth}"), value);
    insert("echo_ratio", least(POLLING, |turn| turn.per_second));
    insert("echo_cpu_ratio", least(SLEEPING, |turn| turn.per_cpu_second));
    insert("polling_cpu_ratio", least(POLLING, |turn| turn.per_cpu_second));
    if depth == 1 {
        let worst = all.iter().map(|turns| turns.ratio(POLLING, ECHO, |turn| turn.p50_us)).fold(0.0, f64::max);
        insert("echo_p50_ratio", worst);
    }
}

fn compare(backend: &str, kind: Kind, depth: usize, messages: usize) -> anyhow::Result<Turns> {
    let everywhere = sched_getaffinity(None)?;
    let mut turns = Vec::new();
    for _ in 0..STARTS {
        stay_on(Side::Server)?;
        let targets = [Target::start("", backend)?, Target::start("busy_poll = '0us'", backend)?];
        let echo = Echo::start(kind, backend == "ram")?;
        sched_setaffinity(None, &everywhere)?;
        stay_on(Side::Client)?;
        let measured = compare_here(&targets, &echo, kind, depth, messages);
        sched_setaffinity(None, &everywhere)?;
        turns.extend(measured?);
    }
    Ok(Turns(turns))
}

/// Does the same, with client and servers pinned to their processors.
fn compare_here(
    [polling, sleeping]: &[Target; 2],
    echo: &Echo,
    kind: Kind,
    depth: usize,
    messages: usize,
) -> anyhow::Result<Vec<[Turn; CONTENDERS]>> {
    let ((_host, mut polling), (_other, mut sleeping)) = (polling.connect()?, sleeping.connect()?);
    let mut theirs = TcpStream::connect(&echo.address)?;
    theirs.set_nodelay(true)?;
    take_turns([&mut polling, &mut sleeping, &mut theirs], kind, depth, messages)
}

/// The side that is pinned to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// Pins this thread, and those that it starts, to one processor, if there is one for each side.
/// Otherwise the scheduler's placement of two threads that wake each other would affect the result
/// more than their work.
fn stay_on(side: Side) -> anyhow::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    let (first, last) = (processors.next(), processors.next_back());
    if let (Some(first), Some(last)) = (first, last) {
        let mut only = CpuSet::new();
        only.set(if side == Side::Client { first } else { last });
        sched_setaffinity(None, &only)?;
    }
    Ok(())
}

/// Runs the turns of some connections round robin.
fn take_turns<const N: usize>(
    mut streams: [&mut TcpStream; N],
    kind: Kind,
    depth: usize,
    messages: usize,
) -> anyhow::Result<Vec<[Turn; N]>> {
    let requests = requests(kind);
    let mut room = vec![0; ROOM + ROOM_PERIOD];
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let mut turns = [Turn::default(); N];
        for (taken, stream) in turns.iter_mut().zip(&mut streams) {
            *taken = turn(stream, kind, &requests, &mut room, depth, messages)?;
        }
        all.push(turns);
    }
    Ok(all)
}

/// Returns the ratio of messages per second by io_uring to those by threads, for random reads of a
/// file in the page cache.
fn uring_ratio() -> anyhow::Result<f64> {
    let path = |name: &str| format!("target/bench-{name}-{}.disk", std::process::id());
    let start = |io: &str| Target::start("", &format!("file', path = '{}', io = '{io}", path(io)));
    let (ring, threads) = (start("uring")?, start("threads")?);
    let ((_first, mut by_ring), (_second, mut by_threads)) = (ring.connect()?, threads.connect()?);
    let measured = take_turns([&mut by_ring, &mut by_threads], Kind::Read, 32, FILE_MESSAGES);
    for io in ["uring", "threads"] {
        std::fs::remove_file(path(io))?;
        std::fs::remove_file(path(io) + ".rackweave")?;
    }
    Ok(median(measured?.iter().map(|[ring, threads]| ring.per_second / threads.per_second).collect()))
}

/// Runs busy hosts at full depth. The peak of this process includes the hosts, so it is above that
/// of the target.
pub fn memory_child() {
    let target = Target::start("", "null").expect("it starts");
    let prepared = Kind::ALL.map(|kind| (kind, requests(kind)));
    thread::scope(|scope| {
        for _ in 0..BUSY_HOSTS {
            scope.spawn(|| {
                let (_host, mut stream) = target.connect().expect("it is let in");
                let mut room = vec![0; HOST_ROOM + ROOM_PERIOD];
                for (kind, requests) in &prepared {
                    turn(&mut stream, *kind, requests, &mut room, 128, BUSY_MESSAGES).expect("it is answered");
                }
            });
        }
    });
}

/// Builds consecutive requests with random addresses.
pub fn requests(kind: Kind) -> Vec<u8> {
    let mut stream: Stream = Seed(1).stream("bench/target");
    let framing = Framing { digests: Digests { header: false, data: false }, alignment: 0 };
    let data = vec![0x5a; BYTES];
    let mut bytes = Vec::new();
    for id in 0..PREPARED {
        let access = Access {
            start: stream.below(16 << 10) * u64::from(BLOCKS),
            blocks_minus_one: BLOCKS - 1,
            flags: AccessFlags::empty(),
        };
        let (io, sgl, data): (_, _, &[u8]) = match kind {
            Kind::Read => (Io::Read(access), Sgl::Transport { length: BYTES as u32 }, &[]),
            Kind::Write => (Io::Write(access), Sgl::InCapsule { offset: 0, length: BYTES as u32 }, &data),
        };
        let command = Command { namespace: 1, data: sgl, ..Command::new(id, Body::Io(io)) };
        let header = Header::Command { entry: command.encode(), data_length: data.len() as u32 };
        framing.write(&header, data, &mut bytes);
    }
    bytes
}

/// Keeps `depth` requests outstanding until `messages` were answered. `room` is [`ROOM_PERIOD`]
/// bytes longer than a read.
fn turn(
    stream: &mut TcpStream,
    kind: Kind,
    requests: &[u8],
    room: &mut [u8],
    depth: usize,
    messages: usize,
) -> anyhow::Result<Turn> {
    let (request, answer) = (kind.request_bytes(), kind.answer_bytes());
    let mut spans_ns: Vec<u32> = Vec::with_capacity(if depth == 1 { messages } else { 0 });
    let (mut sent, mut answered, mut rest, mut reads) = (0, 0, 0, 0);
    let length = room.len() - ROOM_PERIOD;
    let (begun, began) = (server_cpu(), Instant::now());
    let mut due = depth.min(messages);
    while answered < messages {
        let at = Instant::now();
        while due > 0 {
            let place = sent % usize::from(PREPARED);
            let now = due.min(usize::from(PREPARED) - place);
            stream.write_all(&requests[place * request..(place + now) * request])?;
            (sent, due) = (sent + now, due - now);
        }
        let start = reads * ROOM_STEP % ROOM_PERIOD;
        let count = stream.read(&mut room[start..start + length])?;
        reads += 1;
        ensure!(count > 0, "the server has ended the connection");
        rest += count;
        let done = rest / answer;
        rest %= answer;
        answered += done;
        due = done.min(messages - sent);
        if depth == 1 && done == 1 {
            spans_ns.push(at.elapsed().as_nanos() as u32);
        }
    }
    let per_second = messages as f64 / began.elapsed().as_secs_f64();
    let per_cpu_second = messages as f64 / server_cpu().saturating_sub(begun).as_secs_f64();
    Ok(Turn { per_second, per_cpu_second, p50_us: median_us(spans_ns) })
}

/// Returns the median, or NaN without values.
fn median_us(mut spans_ns: Vec<u32>) -> f64 {
    spans_ns.sort_unstable();
    spans_ns.get(spans_ns.len() / 2).map_or(f64::NAN, |ns| f64::from(*ns) / 1e3)
}

/// The live target in a thread.
pub struct Target {
    address: String,
    stopper: Stopper,
}

impl Target {
    /// Starts one with a namespace of 64 MiB.
    pub fn start(settings: &str, backend: &str) -> anyhow::Result<Target> {
        let text = format!(
            "{settings}\nport = [{{ address = '127.0.0.1:0' }}]\n[[subsystem]]\nnqn = '{NQN}'\nnamespace = [{{ backend = '{backend}', size = '64MiB' }}]"
        );
        let plan = plan::target::parse("bench", &text)?;
        let mut server = Server::start(&plan, ServerOptions::default())?;
        let (address, stopper) = (server.addresses()[0].to_string(), server.stopper());
        thread::spawn(move || server.run());
        Ok(Target { address, stopper })
    }

    /// Returns a connected host, and the connection of its I/O queue for exclusive use.
    pub fn connect(&self) -> anyhow::Result<(Host, TcpStream)> {
        let mut host = Host::connect(&self.address, config()?)?;
        let stream = host.detach(1).context("it has an I/O queue")??;
        Ok((host, stream))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

fn config() -> anyhow::Result<InitiatorConfig> {
    Ok(InitiatorConfig {
        host: Nqn::new("nqn.2026-11.io.rackweave:bench")?,
        host_id: HostId([1; 16]),
        subsystem: Nqn::new(NQN)?,
        digests: Digests { header: false, data: false },
        alignment: 0,
        ready_max_minus_one: 0,
        flow_control: true,
        admin_entries: 32,
        io_queues: 1,
        io_entries: 128,
        event_requests: 0,
        keep_alive_ms: 0,
        transfer_bytes_max: 1 << 20,
        timeout: Span::secs(60),
    })
}

/// A thread that answers every message of one size with one of another, as simply as epoll allows:
/// it reads everything available, and writes all answers.
struct Echo {
    address: String,
    stop: Arc<AtomicBool>,
}

impl Echo {
    fn start(kind: Kind, has_memory: bool) -> anyhow::Result<Echo> {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?.to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        thread::spawn(move || echo(listener, &asked, kind, &mut Answers::new(kind, has_memory)));
        Ok(Echo { address, stop })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The thread checks the flag when an event arrives.
        let _ = TcpStream::connect(&self.address);
    }
}

fn echo(mut listener: TcpListener, stop: &AtomicBool, kind: Kind, answers: &mut Answers) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(64);
    poll.registry().register(&mut listener, Token(0), Interest::READABLE)?;
    let mut peer: Option<Socket> = None;
    let mut room = vec![0; 256 << 10];
    let (request, mut rest) = (kind.request_bytes(), 0);
    while !stop.load(Ordering::Acquire) {
        poll.poll(&mut events, None)?;
        if peer.is_none() {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            poll.registry().register(&mut stream, Token(1), Interest::READABLE | Interest::WRITABLE)?;
            peer = Some(stream);
        }
        let Some(stream) = &mut peer else { continue };
        let came = rest + take_all(stream, &mut room)?;
        rest = came % request;
        answers.ask(came / request, &room);
        answers.send(stream)?;
    }
    Ok(())
}

/// The pending answers of the echo, and its memory beside a RAM disk.
struct Answers {
    kind: Kind,
    /// Bytes still to be sent.
    owed: usize,
    /// The content of answers without memory, and the headers of answers with memory.
    plain: Vec<u8>,
    memory: Vec<u8>,
    block: usize,
}

/// Messages sent by one call.
const AT_ONCE: usize = 128;

impl Answers {
    fn new(kind: Kind, has_memory: bool) -> Answers {
        let plain = vec![0; kind.answer_bytes() * AT_ONCE];
        let memory = vec![0x5a; if has_memory { MEMORY } else { 0 }];
        Answers { kind, owed: 0, plain, memory, block: 0 }
    }

    /// Handles `count` requests, the last of which are in `room`.
    fn ask(&mut self, count: usize, room: &[u8]) {
        self.owed += count * self.kind.answer_bytes();
        if self.kind == Kind::Write && !self.memory.is_empty() {
            for index in 0..count {
                let (to, from) = (self.next_block(), index * BYTES % room.len());
                self.memory[to..to + BYTES].copy_from_slice(&room[from..from + BYTES]);
            }
        }
    }

    /// Returns the offset of the next block: each block has its turn, and consecutive ones are far
    /// apart.
    fn next_block(&mut self) -> usize {
        let blocks = self.memory.len() / BYTES;
        self.block = (self.block + BLOCK_STEP) % blocks;
        self.block * BYTES
    }

    /// Sends pending bytes until the socket would block.
    fn send(&mut self, stream: &mut Socket) -> io::Result<()> {
        while self.owed > 0 {
            let sent = match self.memory.is_empty() || self.kind == Kind::Write {
                true => stream.write(&self.plain[..self.owed.min(self.plain.len())]),
                false => self.send_blocks(stream),
            };
            match sent {
                Ok(count) => self.owed -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send_blocks(&mut self, stream: &mut Socket) -> io::Result<usize> {
        let answer = self.kind.answer_bytes();
        let blocks: Vec<usize> = (0..self.owed.div_ceil(answer).min(AT_ONCE)).map(|_| self.next_block()).collect();
        let headers = &self.plain[..answer - BYTES];
        let mut slices: Vec<IoSlice<'_>> = blocks
            .iter()
            .flat_map(|at| [IoSlice::new(headers), IoSlice::new(&self.memory[*at..*at + BYTES])])
            .collect();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, (answer - self.owed % answer) % answer);
        stream.write_vectored(rest)
    }
}

/// Reads everything available; returns the number of bytes.
fn take_all(stream: &mut Socket, room: &mut [u8]) -> io::Result<usize> {
    let mut total = 0;
    loop {
        match stream.read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => total += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
            Err(error) => return Err(error),
        }
        // A read that did not fill its buffer has emptied the stream, as in the target.
        if !total.is_multiple_of(room.len()) {
            return Ok(total);
        }
    }
}

/// Returns the CPU use of a target with idle hosts, in percent of a core.
fn idle_percent() -> anyhow::Result<f64> {
    let target = Target::start("", "ram")?;
    let hosts: Vec<Host> =
        (0..IDLE_HOSTS).map(|_| Ok(Host::connect(&target.address, config()?)?)).collect::<anyhow::Result<_>>()?;
    let before = server_cpu();
    thread::sleep(IDLE);
    // The two clocks of `server_cpu` are not read at the same time.
    let spent = server_cpu().saturating_sub(before);
    drop(hosts);
    Ok(spent.as_secs_f64() / IDLE.as_secs_f64() * 100.0)
}
