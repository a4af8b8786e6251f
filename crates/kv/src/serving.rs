//! One event loop of a store: it waits for sockets, threads and timers, and moves bytes between
//! them and the programs. The first one also accepts connections, serves metrics and hears signals.

use crate::alarm::{self, Alarm, Signal};
use crate::command::Late;
use crate::common::{Common, Handed, Part};
use crate::config::Config;
use crate::connection::{Connection, Life};
use crate::flash;
use crate::frames::Welcome;
use crate::journal::{Part as JournalPart, Writer};
use crate::metrics::{Counts, Snapshot};
use crate::noted::NotedReader;
use crate::protocol::Reply;
use crate::reader::this_second;
use crate::rows::Asked;
use crate::session::{Ask, Rules, Want};
use crate::socket::Acceptor;
use crate::transport::{Arrival, Transport};
use base::{Span, Time};
use bytes::Bytes;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::files::allow_connections;
use runtime::http::Http;
use runtime::listen::listen;
use runtime::lock::lock;
use runtime::records::Recorder;
use runtime::stopper::Stopper;
use runtime::throttle::{AT_ONCE, Throttle};
use runtime::waiting;
use scalio::{
    ClientIn, ClientOut, FlashAnswer, FlashOperation, Operation, Outcome, Refusal, RequestId, Source, answer, verbs,
};
use signal_hook_mio::v1_0::Signals;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What others wake a loop by.
pub const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const SIGNALS: Token = Token(2);
const METRICS: Token = Token(3);
const DOOR: Token = Token(4);
/// The socket of a JBOF in another process.
pub const JBOF: Token = Token(5);
const METRICS_CONNECTIONS: std::ops::Range<usize> = 16..32;
/// First token of clients.
const CLIENTS: usize = 64;
const EVENTS: usize = 1_024;
/// Clients accepted in one turn.
const ACCEPTS_MAX: usize = 64;
/// Interval between looks for clients that are too slow.
const SWEEP: Span = Span::ms(50);
/// Bytes of a command beside its value: a key, and what is around both.
const BESIDE_VALUE: usize = 12 << 10;
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
    /// For its row.
    asked: Option<Asked>,
}

/// What the first loop alone does: it accepts connections, serves metrics and hears signals.
pub struct Front {
    listener: TcpListener,
    /// Whether clients wait that were not accepted yet.
    has_waiting: bool,
    /// Whether some may wait since the system had no room for them.
    accepts_again: bool,
    failures: Throttle,
    http: Option<Http>,
    signals: Option<Signals>,
    reload: Option<Reload>,
}

impl Front {
    /// Listens. With `signals`, those of the process are heard.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn open(poll: &Poll, config: &Config, signals: bool) -> Result<Front, StartError> {
        let system = StartError::system("the event queue");
        let door = |address: &str, token| {
            let mut listener = listen(address)?;
            poll.registry().register(&mut listener, token, Interest::READABLE).map_err(&system)?;
            Ok::<_, StartError>(listener)
        };
        let metrics = config.metrics.as_deref().map(|address| door(address, METRICS)).transpose()?;
        allow_connections(config.limits.connections as u64);
        Ok(Front {
            listener: door(&config.listen, DOOR)?,
            has_waiting: true,
            accepts_again: false,
            failures: Throttle::default(),
            http: metrics.map(|listener| Http::new(listener, METRICS_CONNECTIONS)),
            signals: signals.then(|| alarm::signals(poll, SIGNALS)).transpose().map_err(&system)?,
            reload: None,
        })
    }
}

/// One loop, with the clients that it serves.
pub struct Loop {
    /// Its place among those of the store.
    number: usize,
    common: Arc<Common>,
    poll: Poll,
    clock: Clock,
    stopper: Stopper,
    config: Config,
    rules: Rules,
    /// What the JBOF is like, or was when it was there.
    welcome: Welcome,
    acceptor: Acceptor,
    front: Option<Front>,
    alarm: Alarm,
    jbof: Box<dyn Transport>,
    /// Its client of the JBOF.
    reader: NotedReader,
    out: Vec<ClientOut<Bytes>>,
    /// Reads of flash on their way.
    reads: BTreeMap<RequestId, FlashOperation<Bytes>>,
    tickets: Slab<Ticket>,
    clients: Slab<Connection>,
    /// Those that have not proved themselves when they came, the eldest first, by place and number.
    strangers: VecDeque<(usize, u64)>,
    /// Bytes that they hold together.
    held: usize,
    /// Clients that may have something to do.
    listed: VecDeque<usize>,
    asks: Vec<Ask>,
    swept: Time,
    losses: Throttle<AT_ONCE>,
    counts: Counts,
}

fn rules_of(config: &Config, welcome: &Welcome) -> Rules {
    Rules::new(config, welcome.blocks, welcome.value_bytes_max)
}

/// What a loop needs to begin.
pub struct Seat {
    /// Its place.
    pub number: usize,
    /// What it shares with others.
    pub common: Arc<Common>,
    /// Its events.
    pub poll: Poll,
    /// What wakes it, at [`WAKER`].
    pub waker: Arc<Waker>,
    /// The time of all loops.
    pub clock: Clock,
    /// What makes sockets of its connections.
    pub acceptor: Acceptor,
}

impl Loop {
    /// One that reaches its JBOF by `jbof`.
    ///
    /// # Errors
    /// When the limits are too low for the JBOF's values, or the system has no timer.
    pub fn new(
        seat: Seat,
        config: &Config,
        (jbof, welcome): (Box<dyn Transport>, Welcome),
        front: Option<Front>,
    ) -> Result<Loop, StartError> {
        let Seat { number, common, poll, waker, clock, acceptor } = seat;
        check_limits(config, &welcome).map_err(StartError::plan)?;
        let place = config.journal.as_ref();
        let journal = place.map(|place| Writer::begin(place, JournalPart::Loop(number), clock)).transpose()?;
        let mut reader = NotedReader::new(journal);
        reader.meet(clock.now(), &welcome);
        Ok(Loop {
            number,
            common,
            alarm: Alarm::new(poll.registry(), TIMER)?,
            rules: rules_of(config, &welcome),
            poll,
            clock,
            stopper: Stopper::new(waker),
            acceptor,
            config: config.clone(),
            front,
            jbof,
            reader,
            welcome,
            out: Vec::new(),
            reads: BTreeMap::new(),
            tickets: Slab::new(),
            clients: Slab::new(),
            strangers: VecDeque::new(),
            held: 0,
            listed: VecDeque::new(),
            asks: Vec::new(),
            swept: Time::ZERO,
            losses: Throttle::default(),
            counts: Counts::default(),
        })
    }

    /// Has SIGHUP read the configuration anew with `reload`.
    pub fn reload_with(&mut self, reload: Reload) {
        if let Some(front) = &mut self.front {
            front.reload = Some(reload);
        }
    }

    /// Reads the configuration anew, for all loops.
    fn reload(&mut self) {
        let Some(reload) = self.front.as_mut().and_then(|front| front.reload.as_mut()) else {
            return tracing::warn!("there is no file to read anew");
        };
        let new = match reload() {
            Ok(new) => new,
            Err(error) => return tracing::error!(%error, "the file is not right: nothing was changed"),
        };
        if self.take_over(&new) {
            allow_connections(new.limits.connections as u64);
            if self.config != new {
                tracing::warn!("only `password`, TLS and `limits` are read anew; the rest needs a restart");
            }
            for other in self.common.others(self.number) {
                self.common.hand(other, Handed::Config(Box::new(new.clone())));
            }
            tracing::info!("the file was read anew");
        }
    }

    /// Takes the password, the files of TLS and the limits from the configuration as it is now, if
    /// they are right. Connections that are open stay as they are.
    fn take_over(&mut self, new: &Config) -> bool {
        let acceptor = match Acceptor::new(new.tls.as_ref()) {
            Ok(acceptor) => acceptor,
            Err(error) => {
                tracing::error!(%error, "TLS is not right: nothing was changed");
                return false;
            }
        };
        let (password, tls, limits) = (new.password.clone(), new.tls.clone(), new.limits);
        let kept = Config { password, tls, limits, ..self.config.clone() };
        if let Err(error) = check_limits(&kept, &self.welcome) {
            tracing::error!(%error, "the limits are not right: nothing was changed");
            return false;
        }
        (self.rules, self.acceptor, self.config) = (rules_of(&kept, &self.welcome), acceptor, kept);
        true
    }

    /// Where clients come in, if they come in here.
    pub fn address(&self) -> Option<io::Result<SocketAddr>> {
        self.front.as_ref().map(|front| front.listener.local_addr())
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
            waiting::sleep(&mut self.poll, &mut events, timeout)?;
            for event in &events {
                self.on_event(event);
            }
            self.turn();
        }
        self.reader.finish();
        self.jbof.end();
        Ok(())
    }

    fn timeout(&mut self) -> Result<Option<Duration>, RunError> {
        let front = self.front.as_ref();
        if !self.listed.is_empty() || front.is_some_and(|front| front.has_waiting) {
            return Ok(Some(Duration::ZERO));
        }
        let now = self.clock.now();
        let reader = self.reader.next_wakeup();
        let fine = [reader, self.jbof.due(now)].into_iter().flatten().min();
        self.alarm.set(now, fine)?;
        let http = front.and_then(|front| front.http.as_ref()).and_then(Http::next_wakeup);
        let accepts_again = front.is_some_and(|front| front.accepts_again);
        let sweep = (accepts_again || !self.clients.is_empty()).then_some(self.swept + SWEEP);
        Ok([http, sweep].into_iter().flatten().min().map(|until| Clock::wait(now, until)))
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        match event.token() {
            WAKER => {}
            TIMER => self.alarm.rang(),
            JBOF => self.jbof.on_event(),
            token if token.0 < CLIENTS => self.on_front(token),
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

    /// Something has happened at what the first loop alone has.
    fn on_front(&mut self, token: Token) {
        let Loop { front: Some(front), poll, clock, stopper, jbof, reader, counts, common, number, .. } = self else {
            return;
        };
        match (token, &mut front.http) {
            (SIGNALS, _) => match alarm::heard(&mut front.signals) {
                Some(Signal::End) => {
                    tracing::info!("shutting down");
                    stopper.stop();
                }
                Some(Signal::Reload) => self.reload(),
                None => {}
            },
            (DOOR, _) => front.has_waiting = true,
            (METRICS, Some(http)) => http.accept(clock.now(), poll.registry()),
            (token, Some(http)) => {
                let own = || part(&**jbof, reader, *counts);
                http.on_event(token, || snapshot(&**jbof, common, *number, own()).text());
            }
            (_, None) => {}
        }
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        // To ask in vain makes the system a socket each time.
        if self.front.as_ref().is_some_and(|front| front.has_waiting) {
            self.accept(now);
        }
        if self.common.is_shared() {
            self.take_handed(now);
        }
        self.jbof.turn(now);
        self.reader.wake(now, &mut self.out);
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
        self.reader.rest();
        let is_due = now.saturating_since(self.swept) >= SWEEP;
        if is_due {
            self.swept = now;
            self.sweep(now);
        }
        if let Some(front) = &mut self.front {
            front.has_waiting |= is_due && std::mem::take(&mut front.accepts_again);
            front.http.iter_mut().for_each(|http| http.on_wakeup(now));
        }
        if self.common.is_shared() {
            self.common.publish(self.number, part(&*self.jbof, &self.reader, self.counts));
        }
    }

    /// Takes what other loops have handed to this one, and ends clients that hold too much: another
    /// loop may have seen that these do.
    fn take_handed(&mut self, now: Time) {
        for handed in self.common.handed(self.number) {
            match handed {
                Handed::Client(stream, peer) => self.admit(now, stream, peer),
                Handed::Config(config) => drop(self.take_over(&config)),
                Handed::Full => drop(self.make_room()),
            }
        }
        self.evict();
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..ACCEPTS_MAX {
            let Some(front) = &mut self.front else { return };
            front.has_waiting = false;
            match front.listener.accept() {
                Ok((stream, peer)) => self.receive(now, stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                }
                Err(error) => {
                    // Most likely out of file descriptors. Those who wait are no event again.
                    front.failures.tell(now, |left_out| {
                        tracing::error!(%error, left_out, "cannot accept connections for now");
                    });
                    front.accepts_again = true;
                    return;
                }
            }
        }
        self.front.iter_mut().for_each(|front| front.has_waiting = true);
    }

    /// Gives a connection to the loop that has the fewest.
    fn receive(&mut self, now: Time, mut stream: TcpStream, peer: SocketAddr) {
        if self.common.connections() >= self.config.limits.connections && !self.make_room() {
            self.counts.refused += 1;
            if self.rules.password.is_some() || self.config.tls.is_some() {
                self.common.others(self.number).for_each(|other| self.common.hand(other, Handed::Full));
            }
            // It is told if that takes no waiting, and can be read.
            if self.config.tls.is_none() {
                let _ = stream.write(b"-ERR max number of clients reached\r\n");
            }
            return;
        }
        let place = self.common.place();
        if place == self.number {
            self.admit(now, stream, peer);
        } else {
            self.common.hand(place, Handed::Client(stream, peer));
        }
    }

    /// The eldest of this loop's clients that has not proved itself makes room: strangers that keep
    /// connections open keep nobody out for long.
    fn make_room(&mut self) -> bool {
        let Some(eldest) = self.eldest_stranger() else { return false };
        self.close(eldest, Some("others wait for its place, and it has not proved itself"));
        true
    }

    fn eldest_stranger(&mut self) -> Option<usize> {
        let is_one = |client: usize, number| {
            let connection = self.clients.get(client).filter(|connection| connection.number == number);
            connection.is_some_and(Connection::is_stranger)
        };
        while let Some((client, number)) = self.strangers.front().copied() {
            if is_one(client, number) {
                return Some(client);
            }
            self.strangers.pop_front();
        }
        None
    }

    fn admit(&mut self, now: Time, mut stream: TcpStream, peer: SocketAddr) {
        // Those that are none any more do not stay in the list.
        self.eldest_stranger();
        let entry = self.clients.vacant_entry();
        let (client, token) = (entry.key(), Token(CLIENTS + entry.key()));
        let registered = self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE);
        let probed = registered.and_then(|()| stream.set_nodelay(true)).and_then(|()| keep_alive(&stream));
        let socket = match probed.and_then(|()| self.acceptor.socket(stream)) {
            Ok(socket) => socket,
            Err(error) => {
                self.common.left(self.number);
                let tell = |left_out| tracing::warn!(%peer, %error, left_out, "connection lost");
                return self.losses.tell(now, tell);
            }
        };
        let number = self.common.number();
        tracing::debug!(%peer, number, "connection accepted");
        if entry.insert(Connection::new(now, number, peer, socket, &self.rules)).is_stranger() {
            self.strangers.push_back((client, number));
        }
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
        let has_rows = self.common.recorder.is_some();
        for Ask { command, part, came, want } in asks.drain(..) {
            let is_update = matches!(want, Want::Operation(Operation::Update(_)));
            let asked = has_rows.then(|| match &want {
                Want::Operation(operation) => Asked::operation(came, now, operation),
                Want::Describe(key) => Asked::look(came, now, key),
                Want::Names(_) => Asked::walk(came, now),
            });
            let ticket = self.tickets.insert(Ticket { client, number, command, part, is_update, asked }) as u64;
            let input = match want {
                Want::Operation(operation) => ClientIn::Issue { ticket, operation },
                Want::Describe(key) => ClientIn::Describe { ticket, key },
                Want::Names(block) => ClientIn::Names { ticket, block },
            };
            if !self.reader.tell(now, input, &mut self.out) {
                self.done(ticket, Outcome::Refused(Refusal::Recovering), None);
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
            self.common.holds(self.number, self.held);
        }
    }

    /// Ends the clients that hold the most until the others are within the limit. It is for the
    /// loop whose clients hold the most.
    fn evict(&mut self) {
        while self.common.held() > self.config.limits.memory {
            let heaviest = self.common.heaviest();
            if heaviest != self.number {
                return self.common.wake(heaviest);
            }
            let most = self.clients.iter().max_by_key(|(_, connection)| connection.counted);
            let Some((client, _)) = most else { return };
            self.counts.evicted += 1;
            self.close(client, Some("all clients together hold more than `limits.memory`, and it holds the most"));
        }
    }

    fn give(&mut self, now: Time, client: usize, has_taken: bool) {
        let limits = self.config.limits;
        let Loop { jbof, reader, counts, clients, common, number, .. } = self;
        let Some(connection) = clients.get_mut(client) else { return };
        let mut late = |late: &Late| match late {
            Late::Slow(wanted) => lock(&common.slow).answer(*wanted),
            Late::Keys => Reply::Number(jbof.tally().keys as i64),
            Late::Info => {
                let own = part(&**jbof, reader, *counts);
                Reply::text(snapshot(&**jbof, common, *number, own).info())
            }
        };
        let life = connection.give(now, &limits, |session, output| session.write(output, limits.backlog, &mut late));
        match life {
            Life::Over => {
                let fault = connection.session.fault();
                self.close(client, fault);
            }
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
                Arrival::Met(welcome, at) => {
                    self.meet(welcome, at);
                    continue;
                }
                Arrival::Lost => {
                    self.lose();
                    continue;
                }
                Arrival::Time(there) => {
                    let now = self.clock.now();
                    self.reader.learn(now, there);
                    continue;
                }
                Arrival::Verbs { request, results } => {
                    ClientIn::Memory { request, answer: answer(self.welcome.protocol, &results) }
                }
                Arrival::Reply(reply) => ClientIn::Reply(reply),
                Arrival::Read { request, bytes } => self.read(request, bytes),
            };
            self.reader.tell(now, input, &mut self.out);
        }
    }

    /// A JBOF is there, which said its time at `at`: what it knows of clients begins now.
    fn meet(&mut self, mut welcome: Welcome, at: Time) {
        self.lose();
        if let Err(reason) = check_limits(&self.config, &welcome) {
            tracing::error!(reason, "the JBOF is not the one that was there");
        }
        self.rules = rules_of(&self.config, &welcome);
        // Its journal goes by the time: the loss of the one before was earlier.
        let now = self.clock.now();
        welcome.now += now.saturating_since(at);
        self.reader.meet(now, &welcome);
        self.welcome = welcome;
    }

    /// Ends all that waits for a JBOF which will not answer.
    fn lose(&mut self) {
        self.reader.lose();
        self.out.clear();
        self.reads.clear();
        let all: Vec<(u64, bool)> =
            self.tickets.iter().map(|(ticket, waits)| (ticket as u64, waits.is_update)).collect();
        for (ticket, is_update) in all {
            let outcome = if is_update { Outcome::Unknown } else { Outcome::Refused(Refusal::Recovering) };
            self.done(ticket, outcome, None);
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
            ClientOut::Done { ticket, outcome, source } => self.done(ticket, outcome, Some(source)),
        }
    }

    /// What a read of flash has brought.
    fn read(&mut self, request: RequestId, bytes: Option<Vec<u8>>) -> ClientIn<Bytes> {
        let operation = self.reads.remove(&request);
        let seal = self.welcome.seal;
        let answer = operation.zip(bytes).map(|(operation, bytes)| flash::decode(&operation, bytes.into(), seal));
        ClientIn::Flash { request, answer: answer.unwrap_or(FlashAnswer::Failed) }
    }

    /// An operation has ended; `source` is who has answered, if anybody has.
    fn done(&mut self, ticket: u64, outcome: Outcome<Bytes>, source: Option<Source>) {
        let Some(Ticket { client, number, command, part, asked, .. }) = self.tickets.try_remove(ticket as usize) else {
            return;
        };
        if let (Some(asked), Some(recorder)) = (asked, &self.common.recorder) {
            recorder.take(asked.row(recorder.number(), number, (&outcome, source), self.clock.now()));
        }
        let connection = self.clients.get_mut(client).filter(|connection| connection.number == number);
        if let Some(connection) = connection {
            let ended = connection.session.done(self.clock.now(), command, part, outcome);
            if let Some(ended) = &ended {
                let latency = if ended.is_write { &mut self.counts.writes } else { &mut self.counts.reads };
                latency.count(ended.took);
            }
            if let Some(slow) = ended.and_then(|ended| ended.slow) {
                let who = (connection.peer, connection.session.name().clone());
                let most = self.config.limits.slow_commands;
                lock(&self.common.slow).add(slow, u64::from(this_second()), who, most);
                self.counts.slow += 1;
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
        self.common.holds(self.number, self.held);
        self.common.left(self.number);
        // The socket closes in any case.
        let _ = self.poll.registry().deregister(connection.stream());
        match why {
            Some(why) => self.losses.tell(self.clock.now(), |left_out| {
                tracing::warn!(peer = %connection.peer, why, left_out, "connection closed");
            }),
            None => tracing::debug!(peer = %connection.peer, "connection closed"),
        }
    }
}

/// What one loop has counted.
fn part(jbof: &dyn Transport, reader: &NotedReader, counts: Counts) -> Part {
    Part { counts, client: reader.counters(), is_there: reader.is_there(), flash: jbof.flash() }
}

/// What all loops have counted; `own` is that of the loop `number`.
fn snapshot(jbof: &dyn Transport, common: &Common, number: usize, own: Part) -> Snapshot {
    let Part { counts, client, is_there, flash } = common.sum(number, own);
    Snapshot {
        counts,
        connections: common.connections() as u64,
        held_bytes: common.held() as u64,
        client,
        is_there,
        flash,
        jbof: jbof.tally(),
        rows_dropped: common.recorder.as_ref().map_or(0, Recorder::dropped),
    }
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

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    Ok(())
}
