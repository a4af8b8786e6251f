//! The event loop: it waits for sockets, threads and timers, and moves bytes between them and the
//! programs.

use crate::alarm::{self, Alarm, Signal};
use crate::command::Late;
use crate::config::{Config, JbofConfig, JbofPlace, Peer};
use crate::connection::{Connection, Life};
use crate::flash;
use crate::frames::Welcome;
use crate::jbof::{Jbof, recovered};
use crate::metrics::{Counts, Snapshot};
use crate::protocol::Reply;
use crate::remote::{Link, Remote};
use crate::session::{Ask, Rules, Want};
use crate::slowlog::SlowLog;
use crate::socket::Acceptor;
use crate::transport::{Arrival, Transport};
use base::{Program, Span, Time};
use bytes::Bytes;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::http::Http;
use runtime::listen::listen;
use runtime::stopper::Stopper;
use scalio::{
    Client, ClientConfig, ClientCounters, ClientId, ClientIn, ClientOut, FlashAnswer, FlashOperation, Operation,
    Outcome, Protocol, Refusal, RequestId, answer, verbs,
};
use signal_hook_mio::v1_0::Signals;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const SIGNALS: Token = Token(2);
const METRICS: Token = Token(3);
const DOOR: Token = Token(4);
const JBOF: Token = Token(5);
const METRICS_CONNECTIONS: std::ops::Range<usize> = 16..32;
/// First token of clients.
const CLIENTS: usize = 64;
const EVENTS: usize = 1_024;
/// Clients accepted in one turn.
const ACCEPTS_MAX: usize = 64;
/// Interval between looks for clients that are too slow.
const SWEEP: Span = Span::ms(50);
/// A filler that takes longer loses its slot. Within one process none does but by a stalled device.
const LEASE: Span = Span::secs(1);
/// Interval between polls of a slot that another request fills.
const RETRY: Span = Span::us(50);
/// Polls and restarts of one read before it gives up: 5 s at least.
const ATTEMPTS_MAX: u32 = 100_000;
/// An update without an answer is sent again after so long...
const REPLY_TIMEOUT: Span = Span::secs(60);
/// ...and so often at most.
const SENDS_MAX: u32 = 2;
/// Bytes of a command beside its value: a key, and what is around both.
const BESIDE_VALUE: usize = 12 << 10;
/// How long a store waits for a JBOF in another process when it starts.
const JBOF_WAIT: Duration = Duration::from_secs(10);
/// Interval at which a silent connection is probed, so that a peer that is gone is found.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Reads the configuration anew.
pub type Reload = Box<dyn FnMut() -> Result<Config, String> + Send>;

/// Who waits for an operation.
struct Ticket {
    client: usize,
    /// The connection: the place may be another's by then.
    number: u64,
    command: u64,
    part: usize,
    /// Whether it may be made though nobody hears of it.
    is_update: bool,
}

/// A client of a JBOF, and what it has to know.
struct Reader {
    program: Client<Bytes>,
    /// How far the JBOF's time is ahead of the loop's, in picoseconds.
    ahead: i64,
    /// The JBOF's time that was used last.
    last: Time,
}

impl Reader {
    fn new(now: Time, welcome: &Welcome) -> Reader {
        let mut program = Client::new(client_config(welcome));
        program.learn_epoch(0, welcome.epoch);
        let mut reader = Reader { program, ahead: 0, last: Time::ZERO };
        reader.learn(now, welcome.now);
        reader
    }

    /// The JBOF's time is `there` now.
    fn learn(&mut self, now: Time, there: Time) {
        self.ahead = there.as_ps().wrapping_sub(now.as_ps()).cast_signed();
    }

    /// The JBOF's time, which never goes back.
    fn there(&mut self, now: Time) -> Time {
        self.last = self.last.max(Time::ps(now.as_ps().saturating_add_signed(self.ahead)));
        self.last
    }

    fn next_wakeup(&self) -> Option<Time> {
        let here = |due: Time| Time::ps(due.as_ps().saturating_add_signed(self.ahead.saturating_neg()));
        self.program.next_wakeup().map(here)
    }
}

/// A running store.
pub struct Store {
    poll: Poll,
    clock: Clock,
    stopper: Stopper,
    config: Config,
    rules: Rules,
    /// What the JBOF is like, or was when it was there.
    welcome: Welcome,
    acceptor: Acceptor,
    reload: Option<Reload>,
    listener: TcpListener,
    /// Whether clients wait that were not accepted yet.
    has_waiting: bool,
    /// Whether some may wait since the system had no room for them.
    accepts_again: bool,
    http: Option<Http>,
    signals: Option<Signals>,
    alarm: Alarm,
    jbof: Box<dyn Transport>,
    /// [`None`] while the JBOF is away.
    reader: Option<Reader>,
    out: Vec<ClientOut<Bytes>>,
    /// Reads of flash on their way.
    reads: BTreeMap<RequestId, FlashOperation<Bytes>>,
    tickets: Slab<Ticket>,
    clients: Slab<Connection>,
    /// Bytes that they hold together.
    held: usize,
    /// Clients that may have something to do.
    listed: VecDeque<usize>,
    asks: Vec<Ask>,
    next_number: u64,
    swept: Time,
    counts: Counts,
    slow: SlowLog,
}

/// The store's clock counts seconds since 1970, so that it goes on over restarts.
pub fn this_second() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX / 2)
}

fn client_config(welcome: &Welcome) -> ClientConfig {
    ClientConfig {
        client: welcome.client,
        blocks: welcome.blocks,
        devices: 1,
        protocol: Protocol::Linearizable,
        lease: LEASE,
        retry_wait: RETRY,
        attempts_max: ATTEMPTS_MAX,
        reply_timeout: REPLY_TIMEOUT,
        sends_max: SENDS_MAX,
        touch: true,
        start_second: welcome.start_second,
    }
}

fn rules_of(config: &Config, welcome: &Welcome) -> Rules {
    Rules::new(config, welcome.blocks, welcome.value_bytes_max)
}

impl Store {
    /// Opens everything that `config` names, recovers what the file holds, and listens. With
    /// `signals`, SIGTERM and SIGINT end [`Self::run`], and SIGHUP reads the configuration anew
    /// ([`Self::reload_with`]); a process has one such store.
    ///
    /// # Errors
    /// When something cannot be opened, or the file is no store as the configuration says.
    pub fn start(config: Config, signals: bool) -> Result<Store, StartError> {
        let system = StartError::system("the event queue");
        let poll = Poll::new().map_err(&system)?;
        let registry = poll.registry();
        let waker = Arc::new(Waker::new(registry, WAKER).map_err(&system)?);
        let clock = Clock::start();
        let acceptor = Acceptor::new(config.tls.as_ref())?;
        let (listener, http) = doors(registry, &config)?;
        let (jbof, welcome) = match &config.jbof {
            JbofPlace::Inside(inside) => inside_of(inside, clock, waker.clone())?,
            JbofPlace::Away(peer) => reached(peer, registry, waker.clone())?,
        };
        check_limits(&config, &welcome).map_err(StartError::plan)?;
        let signals = signals.then(|| alarm::signals(&poll, SIGNALS)).transpose().map_err(&system)?;
        Ok(Store {
            alarm: Alarm::new(registry, TIMER)?,
            rules: rules_of(&config, &welcome),
            poll,
            clock,
            stopper: Stopper::new(waker),
            config,
            acceptor,
            reload: None,
            listener,
            has_waiting: true,
            accepts_again: false,
            http,
            signals,
            jbof,
            reader: Some(Reader::new(clock.now(), &welcome)),
            welcome,
            out: Vec::new(),
            reads: BTreeMap::new(),
            tickets: Slab::new(),
            clients: Slab::new(),
            held: 0,
            listed: VecDeque::new(),
            asks: Vec::new(),
            next_number: 1,
            swept: Time::ZERO,
            counts: Counts::default(),
            slow: SlowLog::default(),
        })
    }

    /// Has SIGHUP read the configuration anew with `reload`.
    pub fn reload_with(&mut self, reload: Reload) {
        self.reload = Some(reload);
    }

    /// Takes the password, the files of TLS and the limits from the configuration as it is now.
    /// Connections that are open stay as they are.
    fn reload(&mut self) {
        let Some(reload) = &mut self.reload else { return tracing::warn!("there is no file to read anew") };
        let new = match reload() {
            Ok(new) => new,
            Err(error) => return tracing::error!(%error, "the file is not right: nothing was changed"),
        };
        let acceptor = match Acceptor::new(new.tls.as_ref()) {
            Ok(acceptor) => acceptor,
            Err(error) => return tracing::error!(%error, "TLS is not right: nothing was changed"),
        };
        let (password, tls, limits) = (new.password.clone(), new.tls.clone(), new.limits);
        let kept = Config { password, tls, limits, ..self.config.clone() };
        if let Err(error) = check_limits(&kept, &self.welcome) {
            return tracing::error!(%error, "the limits are not right: nothing was changed");
        }
        if kept != new {
            tracing::warn!("only `password`, TLS and `limits` are read anew; the rest needs a restart");
        }
        (self.rules, self.acceptor, self.config) = (rules_of(&kept, &self.welcome), acceptor, kept);
        tracing::info!("the file was read anew");
    }

    /// Where clients come in.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Keys that it has, as far as it knows.
    pub fn keys(&self) -> u64 {
        self.jbof.tally().keys
    }

    /// Returns a handle that ends [`Self::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Serves until an end is requested. What was acknowledged is on the flash already.
    ///
    /// # Errors
    /// When the event queue fails.
    pub fn run(&mut self) -> Result<(), RunError> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stopper.is_asked() {
            let timeout = self.timeout()?;
            alarm::wait(&mut self.poll, &mut events, timeout)?;
            for event in &events {
                self.on_event(event);
            }
            self.turn();
        }
        Ok(())
    }

    fn timeout(&mut self) -> Result<Option<Duration>, RunError> {
        if !self.listed.is_empty() || self.has_waiting {
            return Ok(Some(Duration::ZERO));
        }
        let now = self.clock.now();
        let reader = self.reader.as_ref().and_then(Reader::next_wakeup);
        let fine = [reader, self.jbof.due(now)].into_iter().flatten().min();
        self.alarm.set(now, fine)?;
        let http = self.http.as_ref().and_then(Http::next_wakeup);
        let sweep = (self.accepts_again || !self.clients.is_empty()).then_some(self.swept + SWEEP);
        Ok([http, sweep].into_iter().flatten().min().map(|until| Clock::wait(now, until)))
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        match event.token() {
            WAKER => {}
            TIMER => self.alarm.rang(),
            SIGNALS => match alarm::heard(&mut self.signals) {
                Some(Signal::End) => {
                    tracing::info!("shutting down");
                    self.stopper.stop();
                }
                Some(Signal::Reload) => self.reload(),
                None => {}
            },
            METRICS => {
                if let Some(http) = &mut self.http {
                    http.accept(self.clock.now(), self.poll.registry());
                }
            }
            DOOR => self.has_waiting = true,
            JBOF => self.jbof.on_event(),
            token if METRICS_CONNECTIONS.contains(&token.0) => {
                let Store { http, jbof, reader, counts, clients, held, .. } = self;
                if let Some(http) = http {
                    let connections = (clients.len(), *held);
                    http.on_event(token, || snapshot(&**jbof, reader.as_ref(), *counts, connections).text());
                }
            }
            Token(token) => {
                let client = token.wrapping_sub(CLIENTS);
                if let Some(connection) = self.clients.get_mut(client) {
                    let is_closing = event.is_read_closed() || event.is_error();
                    connection.is_ready(event.is_readable() || is_closing, is_closing);
                    self.list(client);
                }
            }
        }
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        // To ask in vain makes the system a socket each time.
        if self.has_waiting {
            self.accept(now);
        }
        self.jbof.turn(now);
        if let Some(reader) = &mut self.reader {
            let there = reader.there(now);
            reader.program.on_wakeup(there, &mut self.out);
        }
        self.settle(now);
        for _ in 0..self.listed.len() {
            let Some(client) = self.listed.pop_front() else { break };
            if let Some(connection) = self.clients.get_mut(client) {
                connection.is_listed = false;
                self.serve(now, client);
                self.evict();
            }
        }
        self.jbof.flush();
        if now.saturating_since(self.swept) >= SWEEP {
            self.swept = now;
            self.has_waiting |= std::mem::take(&mut self.accepts_again);
            self.sweep(now);
        }
        if let Some(http) = &mut self.http {
            http.on_wakeup(now);
        }
    }

    fn accept(&mut self, now: Time) {
        self.has_waiting = false;
        for _ in 0..ACCEPTS_MAX {
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(now, stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                }
                Err(error) => {
                    // Most likely out of file descriptors. Those who wait are no event again.
                    tracing::error!(%error, "cannot accept connections for now");
                    self.accepts_again = true;
                    return;
                }
            }
        }
        self.has_waiting = true;
    }

    fn admit(&mut self, now: Time, mut stream: TcpStream, peer: SocketAddr) {
        if self.clients.len() >= self.config.limits.connections {
            self.counts.refused += 1;
            // It is told if that takes no waiting, and can be read.
            if self.config.tls.is_none() {
                let _ = stream.write(b"-ERR max number of clients reached\r\n");
            }
            return;
        }
        let entry = self.clients.vacant_entry();
        let (client, token) = (entry.key(), Token(CLIENTS + entry.key()));
        let registered = self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE);
        let probed = registered.and_then(|()| stream.set_nodelay(true)).and_then(|()| keep_alive(&stream));
        let socket = match probed.and_then(|()| self.acceptor.socket(stream)) {
            Ok(socket) => socket,
            Err(error) => return tracing::warn!(%peer, %error, "connection lost"),
        };
        tracing::debug!(%peer, number = self.next_number, "connection accepted");
        entry.insert(Connection::new(now, self.next_number, peer, socket, &self.rules));
        self.next_number += 1;
        self.counts.accepted += 1;
        self.list(client);
    }

    /// Has the client served in this turn or the next.
    fn list(&mut self, client: usize) {
        let Some(connection) = self.clients.get_mut(client) else { return };
        if !std::mem::replace(&mut connection.is_listed, true) {
            self.listed.push_back(client);
        }
    }

    /// Takes commands of a client, and gives it what is ready.
    fn serve(&mut self, now: Time, client: usize) {
        let Some(connection) = self.clients.get_mut(client) else { return };
        let mut asks = std::mem::take(&mut self.asks);
        let taken = connection.take(now, &self.rules, &self.config.limits, &mut asks);
        let number = connection.number;
        self.counts.commands += taken as u64;
        for Ask { command, part, want } in asks.drain(..) {
            let is_update = matches!(want, Want::Operation(Operation::Update(_)));
            let ticket = self.tickets.insert(Ticket { client, number, command, part, is_update }) as u64;
            let input = match want {
                Want::Operation(operation) => ClientIn::Issue { ticket, operation },
                Want::Describe(key) => ClientIn::Describe { ticket, key },
                Want::Names(block) => ClientIn::Names { ticket, block },
            };
            match &mut self.reader {
                Some(reader) => {
                    let there = reader.there(now);
                    reader.program.on(there, input, &mut self.out);
                }
                None => self.done(ticket, Outcome::Refused(Refusal::Recovering)),
            }
        }
        self.asks = asks;
        self.settle(now);
        self.give(now, client, taken > 0);
        self.count(client);
    }

    fn count(&mut self, client: usize) {
        if let Some(connection) = self.clients.get_mut(client) {
            let held = connection.held();
            self.held = self.held + held - std::mem::replace(&mut connection.counted, held);
        }
    }

    /// Ends the clients that hold the most until the others are within the limit.
    fn evict(&mut self) {
        while self.held > self.config.limits.memory {
            let most = self.clients.iter().max_by_key(|(_, connection)| connection.counted);
            let Some((client, _)) = most else { return };
            self.counts.evicted += 1;
            self.close(client, Some("all clients together hold more than `limits.memory`, and it holds the most"));
        }
    }

    fn give(&mut self, now: Time, client: usize, has_taken: bool) {
        let limits = self.config.limits;
        let connections = (self.clients.len(), self.held);
        let Store { jbof, reader, counts, clients, slow, .. } = self;
        let Some(connection) = clients.get_mut(client) else { return };
        let mut late = |late: &Late| match late {
            Late::Slow(wanted) => slow.answer(*wanted),
            Late::Keys => Reply::Number(jbof.tally().keys as i64),
            Late::Info => Reply::text(snapshot(&**jbof, reader.as_ref(), *counts, connections).info()),
        };
        let life = connection.give(now, &limits, |session, output| session.write(output, limits.backlog, &mut late));
        match life {
            Life::Over => self.close(client, None),
            // Commands may wait in the buffer, or in the socket.
            Life::HasMore => self.list(client),
            Life::Waits if has_taken => self.list(client),
            Life::Waits => {}
        }
    }

    /// Carries everything out that the client has decided, and what follows from it.
    fn settle(&mut self, now: Time) {
        loop {
            for out in std::mem::take(&mut self.out) {
                self.carry(now, out);
            }
            let Some(arrival) = self.jbof.next() else {
                if self.out.is_empty() {
                    return;
                }
                continue;
            };
            let input = match arrival {
                Arrival::Met(welcome) => {
                    self.meet(welcome);
                    continue;
                }
                Arrival::Lost => {
                    self.lose();
                    continue;
                }
                Arrival::Time(there) => {
                    let now = self.clock.now();
                    self.reader.iter_mut().for_each(|reader| reader.learn(now, there));
                    continue;
                }
                Arrival::Verbs { request, results } => ClientIn::Memory { request, answer: answer(&results) },
                Arrival::Reply(reply) => ClientIn::Reply(reply),
                Arrival::Read { request, bytes } => self.read(request, bytes),
            };
            if let Some(reader) = &mut self.reader {
                let there = reader.there(now);
                reader.program.on(there, input, &mut self.out);
            }
        }
    }

    /// A JBOF is there: what it knows of clients begins now.
    fn meet(&mut self, welcome: Welcome) {
        self.lose();
        if let Err(reason) = check_limits(&self.config, &welcome) {
            tracing::error!(reason, "the JBOF is not the one that was there");
        }
        self.rules = rules_of(&self.config, &welcome);
        self.reader = Some(Reader::new(self.clock.now(), &welcome));
        self.welcome = welcome;
    }

    /// Ends all that waits for a JBOF which will not answer.
    fn lose(&mut self) {
        self.reader = None;
        self.out.clear();
        self.reads.clear();
        let all: Vec<(u64, bool)> =
            self.tickets.iter().map(|(ticket, waits)| (ticket as u64, waits.is_update)).collect();
        for (ticket, is_update) in all {
            self.done(ticket, if is_update { Outcome::Unknown } else { Outcome::Refused(Refusal::Recovering) });
        }
    }

    fn carry(&mut self, now: Time, out: ClientOut<Bytes>) {
        match out {
            ClientOut::Memory { request, block, operation } => {
                self.jbof.post(request, verbs(block, self.welcome.slots, &operation));
            }
            ClientOut::Flash { request, device, operation } => {
                if let Some(extent) = operation.extent() {
                    self.reads.insert(request, operation);
                    self.jbof.read(request, device, extent);
                }
            }
            ClientOut::Send { device, request } => self.jbof.send(now, device, request),
            ClientOut::Done { ticket, outcome, .. } => self.done(ticket, outcome),
        }
    }

    /// What a read of flash has brought.
    fn read(&mut self, request: RequestId, bytes: Option<Vec<u8>>) -> ClientIn<Bytes> {
        let operation = self.reads.remove(&request);
        let seal = self.welcome.seal;
        let answer = operation.zip(bytes).map(|(operation, bytes)| flash::decode(&operation, bytes.into(), seal));
        ClientIn::Flash { request, answer: answer.unwrap_or(FlashAnswer::Failed) }
    }

    fn done(&mut self, ticket: u64, outcome: Outcome<Bytes>) {
        let Some(Ticket { client, number, command, part, .. }) = self.tickets.try_remove(ticket as usize) else {
            return;
        };
        let connection = self.clients.get_mut(client).filter(|connection| connection.number == number);
        if let Some(connection) = connection {
            if let Some(slow) = connection.session.done(self.clock.now(), command, part, outcome) {
                let who = (connection.peer, connection.session.name().clone());
                self.slow.add(slow, u64::from(this_second()), who, self.config.limits.slow_commands);
                self.counts.slow = self.slow.total();
            }
            self.count(client);
            self.list(client);
        }
    }

    /// Ends clients that are too slow.
    fn sweep(&mut self, now: Time) {
        let limits = &self.config.limits;
        let overdue = |(at, client): (usize, &Connection)| client.overdue(now, limits).map(|why| (at, why));
        let all: Vec<(usize, &'static str)> = self.clients.iter().filter_map(overdue).collect();
        for (client, why) in all {
            self.counts.too_slow += 1;
            self.close(client, Some(why));
        }
    }

    fn close(&mut self, client: usize, why: Option<&'static str>) {
        let Some(mut connection) = self.clients.try_remove(client) else { return };
        self.held -= connection.counted;
        // The socket closes in any case.
        let _ = self.poll.registry().deregister(connection.stream());
        match why {
            Some(why) => tracing::warn!(peer = %connection.peer, why, "connection closed"),
            None => tracing::debug!(peer = %connection.peer, "connection closed"),
        }
    }
}

/// `connections` are so many, and hold so many bytes.
fn snapshot(jbof: &dyn Transport, reader: Option<&Reader>, counts: Counts, connections: (usize, usize)) -> Snapshot {
    Snapshot {
        counts,
        connections: connections.0 as u64,
        held_bytes: connections.1 as u64,
        client: reader.map_or_else(ClientCounters::default, |reader| reader.program.counters()),
        is_there: reader.is_some(),
        jbof: jbof.tally(),
    }
}

/// Where clients come in, and where metrics are asked for.
fn doors(registry: &Registry, config: &Config) -> Result<(TcpListener, Option<Http>), StartError> {
    let door = |address: &str, token| {
        let mut listener = listen(address)?;
        registry.register(&mut listener, token, Interest::READABLE).map_err(StartError::system("the event queue"))?;
        Ok::<_, StartError>(listener)
    };
    let metrics = config.metrics.as_deref().map(|address| door(address, METRICS)).transpose()?;
    Ok((door(&config.listen, DOOR)?, metrics.map(|listener| Http::new(listener, METRICS_CONNECTIONS))))
}

/// What a value of the JBOF needs at the door.
fn check_limits(config: &Config, welcome: &Welcome) -> Result<(), String> {
    let (value, limits) = (welcome.value_bytes_max as usize, &config.limits);
    if limits.reply >= value && limits.request >= value + BESIDE_VALUE {
        return Ok(());
    }
    Err(format!(
        "the JBOF's values have up to {value} bytes: `limits.reply` is {}, and has to be {value} at least; \
         `limits.request` is {}, and has to be {} at least",
        limits.reply,
        limits.request,
        value + BESIDE_VALUE
    ))
}

/// A JBOF in this process, when it has read its log.
fn inside_of(
    config: &JbofConfig,
    clock: Clock,
    waker: Arc<Waker>,
) -> Result<(Box<dyn Transport>, Welcome), StartError> {
    let jbof = recovered(Jbof::start(config, this_second(), waker)?, clock, config)?;
    let welcome = jbof.welcome(ClientId(0), clock.now());
    Ok((Box::new(jbof), welcome))
}

/// A JBOF in another process, when it answers.
fn reached(peer: &Peer, registry: &Registry, waker: Arc<Waker>) -> Result<(Box<dyn Transport>, Welcome), StartError> {
    let begin = std::time::Instant::now();
    loop {
        match Link::open(peer) {
            Ok(link) => {
                let welcome = link.welcome;
                let remote = Remote::new(peer.clone(), link, registry, JBOF, waker);
                return Ok((Box::new(remote.map_err(StartError::system("the event queue"))?), welcome));
            }
            Err(error) if begin.elapsed() > JBOF_WAIT => {
                return Err(StartError::plan(format!("the JBOF at {} does not answer: {error}", peer.address)));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    Ok(())
}
