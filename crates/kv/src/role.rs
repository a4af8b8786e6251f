//! A JBOF in a process of its own: it listens to doors, executes their verbs, reads flash for them,
//! and has the helper carry out their updates.
//!
//! Doors of this machine that come by a Unix socket get the files of memory and flash, and ask for
//! updates alone.

use crate::alarm::{self, Alarm, Signal};
use crate::channel::{Channel, Codec, End, GREETING, Greeting, Line, agree};
use crate::config::{FabricPlace, JbofRoleConfig, PeerAddress};
use crate::frames::{Access, FrameError, ToDoor, ToJbof};
use crate::jbof::{Jbof, recovered};
use crate::metrics::{JbofCounts, JbofSnapshot};
use crate::reader::this_second;
use crate::remote::{BESIDE_VALUE, FILES, QUIET, frame_bytes_max, read_bytes_max, shows};
use crate::rows::DoorRows;
use crate::transport::{Arrival, Transport};
use base::{Span, Time};
use bytes::BytesMut;
use fabric::Target;
use mapped::Mapped;
use mio::net::{TcpListener, UnixListener};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::files::allow_connections;
use runtime::http::Http;
use runtime::listen::{listen, resolve};
use runtime::records::Recorder;
use runtime::secret::random;
use runtime::stopper::Stopper;
use runtime::throttle::{AT_ONCE, Throttle};
use runtime::waiting;
use rustix::event::PollFlags;
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
    sendmsg, socket_with,
};
use scalio::{ClientId, Extent, RequestId, SECTOR_BYTES};
use signal_hook_mio::v1_0::Signals;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const SIGNALS: Token = Token(2);
const METRICS: Token = Token(3);
const LISTENERS: usize = 4;
const LISTENERS_MAX: usize = 12;
const METRICS_CONNECTIONS: std::ops::Range<usize> = 16..32;
/// Memory that doors access by libfabric.
const FABRIC: Token = Token(METRICS_CONNECTIONS.end);
/// First token of doors.
const DOORS: usize = 64;
/// Doors at a time. Each has a name of 16 bits.
const DOORS_MAX: usize = 1_024;
const EVENTS: usize = 256;
/// Interval between looks for doors that do not say who they are.
const SWEEP: Span = Span::secs(1);
/// How long a door may take over that.
const GREETING_TIME: Span = Span::secs(10);
/// Bytes that wait for a door, and of flash that are read for it, before nothing more is taken from
/// it.
const BACKLOG: usize = 4 << 20;
/// Connections that may wait to be accepted.
const WAITING_MAX: i32 = 128;
/// Least interval between turns of libfabric while its file stays readable. It may take one
/// connection in each, and those that wait behind it are no event.
const AGAIN: Span = Span::ms(1);
/// And how often the time that it takes: its file stays so for good where strangers have gone.
const REST: u64 = 30;

/// How far a door has come.
enum Stage {
    /// It has yet to greet.
    Silent,
    /// It has greeted.
    Greeted,
    /// It has said what it is, and has a name.
    Open(ClientId),
}

/// One door.
struct Door {
    /// Which of all that there were.
    number: u64,
    since: Time,
    /// When it said something last.
    heard: Time,
    stage: Stage,
    channel: Channel,
    codec: Codec,
    own: Greeting,
    /// Bytes of flash that are read for it.
    reading: usize,
    is_listed: bool,
    /// Why it has to end.
    wrong: Option<FrameError>,
}

impl Door {
    fn may_take(&self) -> bool {
        self.channel.output.len() + self.reading < BACKLOG
    }

    fn say(&mut self, message: &ToDoor) {
        self.codec.put(&mut self.channel.output, |out| message.encode(out));
    }
}

/// A read of flash for a door.
struct Reading {
    door: usize,
    number: u64,
    request: RequestId,
    bytes: usize,
    extent: Extent,
    came: Time,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn open(address: &PeerAddress) -> Result<Listener, StartError> {
        match address {
            PeerAddress::Tcp(text) => listen(text).map(Listener::Tcp),
            PeerAddress::Unix(path) => unix(path).map(Listener::Unix).map_err(|error| StartError::file(path, error)),
        }
    }

    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Listener::Unix(listener) => registry.register(listener, token, Interest::READABLE),
        }
    }

    fn accept(&self) -> io::Result<Line> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Line::Tcp(stream))
            }
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Line::Unix(stream)),
        }
    }
}

/// Listens at a path that the owner alone may reach. A socket that nobody listens at is replaced.
fn unix(path: &Path) -> io::Result<UnixListener> {
    if path.exists() {
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(error) => return Err(error),
        }
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the permissions of the socket (unix(7)).
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, WAITING_MAX)?;
    Ok(UnixListener::from_std(socket.into()))
}

/// All listeners, each with a token of its own.
fn listeners(addresses: &[PeerAddress], registry: &Registry) -> Result<Vec<Listener>, StartError> {
    if addresses.is_empty() || addresses.len() > LISTENERS_MAX {
        return Err(StartError::plan(format!("a JBOF listens at 1 to {LISTENERS_MAX} addresses")));
    }
    let mut listeners = addresses.iter().map(Listener::open).collect::<Result<Vec<_>, _>>()?;
    for (at, listener) in listeners.iter_mut().enumerate() {
        listener.register(registry, Token(LISTENERS + at)).map_err(StartError::system("the event queue"))?;
    }
    Ok(listeners)
}

/// A running JBOF.
pub struct JbofRole {
    poll: Poll,
    clock: Clock,
    stopper: Stopper,
    config: JbofRoleConfig,
    jbof: Jbof,
    /// Its memory, for doors that access it by libfabric.
    target: Option<Target<Mapped>>,
    listeners: Vec<Listener>,
    http: Option<Http>,
    signals: Option<Signals>,
    alarm: Alarm,
    doors: Slab<Door>,
    /// Doors by their names.
    names: BTreeMap<ClientId, usize>,
    next_name: u16,
    next_number: u64,
    /// Doors that may have something to say.
    listed: Vec<usize>,
    readings: Slab<Reading>,
    swept: Time,
    /// Some may wait since the system had no room for them.
    accepts_again: bool,
    failures: Throttle,
    losses: Throttle<AT_ONCE>,
    counts: JbofCounts,
    /// Rows of what doors ask for.
    rows: Option<DoorRows>,
}

impl JbofRole {
    /// Opens the flash, recovers what is there, and listens. With `signals`, SIGTERM and SIGINT end
    /// [`Self::run`]; a process has one such role.
    ///
    /// # Errors
    /// When something cannot be opened, or the file is no store as the configuration says.
    pub fn start(config: JbofRoleConfig, signals: bool) -> Result<JbofRole, StartError> {
        let system = StartError::system("the event queue");
        let poll = Poll::new().map_err(&system)?;
        let registry = poll.registry();
        let waker = Arc::new(Waker::new(registry, WAKER).map_err(&system)?);
        let clock = Clock::start();
        let listeners = listeners(&config.listen, registry)?;
        allow_connections(DOORS_MAX as u64);
        let http = config.metrics.as_deref().map(|address| metrics(address, registry)).transpose()?;
        let jbof = alone(&config, clock, waker.clone())?;
        let target = config.fabric.as_ref().map(|place| target(place, &jbof, registry)).transpose()?;
        let plan = format!("{:?}", config.jbof);
        let recorder = config.records.as_ref().map(|records| Recorder::start(records, "jbof", &plan)).transpose()?;
        let signals = signals.then(|| alarm::signals(&poll, SIGNALS)).transpose().map_err(&system)?;
        Ok(JbofRole {
            alarm: Alarm::new(registry, TIMER)?,
            poll,
            clock,
            stopper: Stopper::new(waker),
            config,
            jbof,
            target,
            listeners,
            http,
            signals,
            doors: Slab::new(),
            names: BTreeMap::new(),
            next_name: 0,
            next_number: 0,
            listed: Vec::new(),
            readings: Slab::new(),
            swept: Time::ZERO,
            accepts_again: false,
            failures: Throttle::default(),
            losses: Throttle::default(),
            counts: JbofCounts::default(),
            rows: recorder.map(DoorRows::new),
        })
    }

    /// Where doors come in over TCP, if they may.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(|listener| match listener {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
        })
    }

    /// Keys that it has.
    pub fn keys(&self) -> u64 {
        self.jbof.tally().keys
    }

    /// Verbs executed, reads of flash, and requests taken, for doors.
    pub fn counted(&self) -> [u64; 3] {
        [self.counts.verbs, self.counts.reads, self.counts.requests]
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
        self.accept_all();
        while !self.stopper.is_asked() {
            let timeout = self.timeout()?;
            waiting::sleep(&mut self.poll, &mut events, timeout)?;
            for event in &events {
                self.on_event(event);
            }
            self.turn();
        }
        self.jbof.end();
        for address in &self.config.listen {
            if let PeerAddress::Unix(path) = address {
                // Another process would replace it as well.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }

    fn timeout(&mut self) -> Result<Option<Duration>, RunError> {
        let before = self.clock.now();
        // Asked last: whatever comes from now on is an event.
        if !self.listed.is_empty() || self.target.as_mut().is_some_and(|target| !target.may_sleep()) {
            return Ok(Some(Duration::ZERO));
        }
        let now = self.clock.now();
        self.alarm.set(now, self.jbof.due(now))?;
        let http = self.http.as_ref().and_then(Http::next_wakeup);
        let sweep = (self.accepts_again || !self.doors.is_empty()).then_some(self.swept + SWEEP);
        let again = self.target.as_ref().is_some_and(|target| shows(target.fd(), PollFlags::IN));
        let again = again.then_some(now + AGAIN.max((now - before) * REST));
        Ok([http, sweep, again].into_iter().flatten().min().map(|until| Clock::wait(now, until)))
    }

    fn on_event(&mut self, event: &mio::event::Event) {
        match event.token() {
            // The target has its turn in any case.
            WAKER | FABRIC => {}
            TIMER => self.alarm.rang(),
            SIGNALS => match alarm::heard(&mut self.signals) {
                Some(Signal::End) => {
                    tracing::info!("shutting down");
                    self.stopper.stop();
                }
                Some(Signal::Reload) => tracing::warn!("a JBOF reads its file at its start alone"),
                None => {}
            },
            METRICS => {
                if let Some(http) = &mut self.http {
                    http.accept(self.clock.now(), self.poll.registry());
                }
            }
            token if METRICS_CONNECTIONS.contains(&token.0) => {
                let snapshot = JbofSnapshot {
                    counts: self.counts,
                    doors: self.doors.len() as u64,
                    tally: self.jbof.tally(),
                    rows_dropped: self.rows.as_ref().map_or(0, DoorRows::dropped),
                };
                if let Some(http) = &mut self.http {
                    http.on_event(token, || snapshot.text());
                }
            }
            Token(token) if token < METRICS_CONNECTIONS.start => self.accept_all(),
            Token(token) => {
                let door = token.wrapping_sub(DOORS);
                if let Some(found) = self.doors.get_mut(door) {
                    found.channel.is_ready();
                    self.list(door);
                }
            }
        }
    }

    fn list(&mut self, door: usize) {
        let Some(found) = self.doors.get_mut(door) else { return };
        if !std::mem::replace(&mut found.is_listed, true) {
            self.listed.push(door);
        }
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        if let Some(Err(error)) = self.target.as_mut().map(Target::turn) {
            // A door went away in the middle, for instance. It hears of it on its socket.
            tracing::warn!(%error, "an access to the memory has failed");
        }
        self.jbof.turn(now);
        for door in std::mem::take(&mut self.listed) {
            if let Some(found) = self.doors.get_mut(door) {
                found.is_listed = false;
                self.serve(now, door);
            }
        }
        self.route(self.clock.now());
        self.settle(now);
        self.jbof.flush();
        if now.saturating_since(self.swept) >= SWEEP {
            self.swept = now;
            if std::mem::take(&mut self.accepts_again) {
                self.accept_all();
            }
        }
        if let Some(http) = &mut self.http {
            http.on_wakeup(now);
        }
    }

    fn accept_all(&mut self) {
        let out_of_files = [Errno::MFILE, Errno::NFILE].map(|error| Some(error.raw_os_error()));
        for at in 0..self.listeners.len() {
            loop {
                match self.listeners[at].accept() {
                    Ok(line) => self.admit(line),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error)
                        if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {}
                    Err(error) if out_of_files.contains(&error.raw_os_error()) && self.make_room() => {}
                    Err(error) => {
                        self.failures.tell(self.clock.now(), |left_out| {
                            tracing::error!(%error, left_out, "cannot accept doors for now");
                        });
                        self.accepts_again = true;
                        break;
                    }
                }
            }
        }
    }

    fn admit(&mut self, mut line: Line) {
        let secret = self.config.secret.as_ref();
        let (Ok(own), true) = (Greeting::new(secret), self.doors.len() < DOORS_MAX || self.make_room()) else {
            self.counts.refused += 1;
            return;
        };
        let entry = self.doors.vacant_entry();
        let door = entry.key();
        if let Err(error) = line.register(self.poll.registry(), Token(DOORS + door)) {
            let tell = |left_out| tracing::warn!(%error, left_out, "connection lost");
            return self.losses.tell(self.clock.now(), tell);
        }
        self.next_number += 1;
        let now = self.clock.now();
        entry.insert(Door {
            number: self.next_number,
            since: now,
            heard: now,
            stage: Stage::Silent,
            channel: Channel::new(line, BytesMut::new()),
            codec: Codec::new(None, BESIDE_VALUE),
            own,
            reading: 0,
            is_listed: false,
            wrong: None,
        });
        self.counts.accepted += 1;
        self.list(door);
    }

    /// Who is silent for longest makes room, where all places are taken: strangers that keep
    /// connections open do not keep doors out.
    fn make_room(&mut self) -> bool {
        let strangers = self.doors.iter().filter(|(_, door)| !matches!(door.stage, Stage::Open(_)));
        let Some((oldest, _)) = strangers.min_by_key(|(_, door)| door.number) else { return false };
        self.doors.remove(oldest).channel.line.deregister(self.poll.registry());
        self.counts.refused += 1;
        true
    }

    /// Reads once, and takes what is there.
    fn serve(&mut self, now: Time, door: usize) {
        let Some(found) = self.doors.get_mut(door) else { return };
        if found.may_take() {
            let before = found.channel.input.len();
            found.channel.read();
            if found.channel.input.len() > before {
                found.heard = now;
            }
        }
        while self.doors.get(door).is_some_and(Door::may_take) {
            match self.take(now, door) {
                Ok(true) => {}
                Ok(false) => break,
                Err(wrong) => {
                    self.doors[door].wrong = Some(wrong);
                    break;
                }
            }
        }
        let Some(found) = self.doors.get(door) else { return };
        if found.may_take() && found.channel.has_more() && found.wrong.is_none() {
            self.list(door);
        }
    }

    /// Takes the next frame of a door; `false` where there is none.
    fn take(&mut self, now: Time, door: usize) -> Result<bool, FrameError> {
        let Some(found) = self.doors.get_mut(door) else { return Ok(false) };
        if let Stage::Silent = found.stage {
            let Some(greeting) = found.channel.input.first_chunk::<GREETING>() else { return Ok(false) };
            let other = Greeting::decode(greeting)?;
            let _ = found.channel.input.split_to(GREETING);
            // The other end is told by ours, whatever follows.
            found.channel.output.extend_from_slice(&found.own.encode());
            let keys = agree(End::Jbof, self.config.secret.as_ref(), &found.own, &other)?;
            let most = frame_bytes_max(self.config.jbof.value_bytes_max);
            (found.codec, found.stage) = (Codec::new(keys, most), Stage::Greeted);
            return Ok(true);
        }
        let Some(body) = found.codec.take(&mut found.channel.input)? else { return Ok(false) };
        let message = ToJbof::decode(body)?;
        match (&found.stage, message) {
            (Stage::Greeted, ToJbof::Hello { access }) => self.welcome(now, door, access),
            (Stage::Open(name), message) => {
                let name = *name;
                self.carry_out(now, door, name, message)?;
            }
            _ => return Err(FrameError::Greeting),
        }
        Ok(true)
    }

    /// Gives a door its name, and what it needs to access the memory.
    fn welcome(&mut self, now: Time, door: usize, access: Access) {
        let Some(found) = self.doors.get_mut(door) else { return };
        if access == Access::Far && self.target.is_none() {
            let reason = "this JBOF has no memory for libfabric: its file needs `fabric`";
            return found.say(&ToDoor::Refused(reason.into()));
        }
        let name = loop {
            let name = ClientId(self.next_name);
            self.next_name = self.next_name.wrapping_add(1);
            if !self.names.contains_key(&name) {
                break name;
            }
        };
        let mut welcome = self.jbof.welcome(name, now);
        welcome.shares = access == Access::Shared && matches!(found.channel.line, Line::Unix(_));
        found.channel.flush();
        let mut frame = BytesMut::new();
        found.codec.put(&mut frame, |out| ToDoor::Welcome(welcome).encode(out));
        if let (Line::Unix(stream), true) = (&found.channel.line, welcome.shares) {
            match self.jbof.files().and_then(|files| send_with(stream, &frame, &files)) {
                Ok(sent) => drop(frame.split_to(sent)),
                Err(error) => {
                    tracing::error!(%error, "memory and flash cannot be shared");
                    frame.clear();
                    found.say(&ToDoor::Refused(format!("memory and flash cannot be shared: {error}")));
                }
            }
        }
        found.channel.output.extend_from_slice(&frame);
        if let (Access::Far, Some(target)) = (access, &self.target) {
            found.say(&ToDoor::Place(target.place().clone()));
        }
        found.stage = Stage::Open(name);
        self.names.insert(name, door);
        tracing::info!(door = name.0, ?access, "a door came in");
    }

    fn carry_out(&mut self, now: Time, door: usize, name: ClientId, message: ToJbof) -> Result<(), FrameError> {
        let Some(found) = self.doors.get_mut(door) else { return Ok(()) };
        match message {
            ToJbof::Verbs { request, verbs } => {
                self.counts.verbs += verbs.len() as u64;
                let results = self.jbof.execute(&verbs);
                if let Some(request) = request {
                    found.say(&ToDoor::Results { request, results });
                }
            }
            ToJbof::Read { request, extent } => self.read(now, door, request, extent),
            ToJbof::Request(request) if request.client == name => {
                self.counts.requests += 1;
                self.rows.iter_mut().for_each(|rows| rows.came(now, &request));
                self.jbof.send(now, 0, request);
            }
            ToJbof::Request(request) => {
                return Err(FrameError::Field { field: "client", got: request.client.0.into() });
            }
            ToJbof::Ping { at } => found.say(&ToDoor::Pong { asked: at, now, tally: self.jbof.tally() }),
            ToJbof::Hello { .. } => return Err(FrameError::Greeting),
        }
        Ok(())
    }

    fn read(&mut self, now: Time, door: usize, request: RequestId, extent: Extent) {
        let Some(found) = self.doors.get_mut(door) else { return };
        self.counts.reads += 1;
        let most = read_bytes_max(self.config.jbof.value_bytes_max);
        let bytes = (extent.sectors as usize).saturating_mul(SECTOR_BYTES as usize);
        let sectors = u64::from(self.config.jbof.zones) * u64::from(self.config.jbof.zone_sectors);
        let is_inside = extent.sector.checked_add(extent.sectors.into()).is_some_and(|end| end <= sectors);
        if bytes > most || !is_inside {
            if let (Some(rows), Stage::Open(name)) = (&mut self.rows, &found.stage) {
                rows.read(*name, extent, false, now, now);
            }
            return found.say(&ToDoor::Read { request, bytes: None });
        }
        found.reading += bytes;
        let reading = Reading { door, number: found.number, request, bytes, extent, came: now };
        let tag = RequestId(self.readings.insert(reading) as u64);
        self.jbof.read(tag, 0, extent);
    }

    /// Gives answers to the doors that they are for.
    fn route(&mut self, now: Time) {
        let mut is_told = BTreeSet::new();
        while let Some(arrival) = self.jbof.next() {
            match arrival {
                Arrival::Read { request, bytes } => {
                    let Some(reading) = self.readings.try_remove(request.0 as usize) else { continue };
                    let door = self.doors.get_mut(reading.door).filter(|door| door.number == reading.number);
                    if let Some(door) = door {
                        if let (Some(rows), Stage::Open(name)) = (&mut self.rows, &door.stage) {
                            rows.read(*name, reading.extent, bytes.is_some(), reading.came, now);
                        }
                        door.reading -= reading.bytes;
                        door.say(&ToDoor::Read { request: reading.request, bytes });
                        self.list(reading.door);
                    }
                }
                Arrival::Reply(reply) => {
                    self.rows.iter_mut().for_each(|rows| rows.answered(now, &reply));
                    let Some(door) = self.names.get(&reply.client).copied() else { continue };
                    let Some(found) = self.doors.get_mut(door) else { continue };
                    // A count of keys that is asked for after this reply includes it.
                    if is_told.insert(door) {
                        found.say(&ToDoor::Tally(self.jbof.tally()));
                    }
                    found.say(&ToDoor::Reply(reply));
                }
                Arrival::Verbs { .. } | Arrival::Met(..) | Arrival::Lost | Arrival::Time(_) => {}
            }
        }
    }

    /// Sends what waits, and ends doors that are gone, wrong or too slow.
    fn settle(&mut self, now: Time) {
        let mut over = Vec::new();
        for (at, door) in &mut self.doors {
            let was_full = !door.may_take();
            door.channel.flush();
            if was_full && door.may_take() && !std::mem::replace(&mut door.is_listed, true) {
                self.listed.push(at);
            }
            let is_late = !matches!(door.stage, Stage::Open(_)) && now.saturating_since(door.since) > GREETING_TIME;
            // One that does not read what waits for it is not heard either.
            let is_silent = now.saturating_since(door.heard) > self.config.silence;
            if door.channel.is_ended() || is_late || is_silent || door.wrong.is_some() {
                over.push(at);
            }
        }
        for door in over {
            let mut door = self.doors.remove(door);
            door.channel.line.deregister(self.poll.registry());
            match &door.wrong {
                Some(wrong) => {
                    self.counts.wrong += 1;
                    let tell = |left_out| tracing::warn!(door = door.number, %wrong, left_out, "a door was closed");
                    self.losses.tell(now, tell);
                }
                None if matches!(door.stage, Stage::Open(_)) => tracing::info!(door = door.number, "a door is gone"),
                None => tracing::debug!(door = door.number, "a stranger is gone"),
            }
            if let Stage::Open(name) = door.stage {
                self.names.remove(&name);
                self.rows.iter_mut().for_each(|rows| rows.forget(now, name));
                self.jbof.forget(name);
            }
        }
    }
}

/// Sends the first bytes of a frame with files; how many were sent.
fn send_with(stream: impl AsFd, frame: &[u8], files: &[std::os::fd::OwnedFd; FILES]) -> io::Result<usize> {
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    Ok(sendmsg(stream, &[IoSlice::new(frame)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Registers the memory, with a key that nobody can guess.
fn target(place: &FabricPlace, jbof: &Jbof, registry: &Registry) -> Result<Target<Mapped>, StartError> {
    let wrong = |error: &dyn std::fmt::Display| StartError::plan(format!("fabric at {}: {error}", place.address));
    let address = resolve(&place.address).map_err(|error| wrong(&error))?;
    let memory = jbof.memory().map_err(StartError::system("registered memory"))?;
    let key = u64::from_le_bytes(random().map_err(StartError::system("random bytes"))?);
    let target = Target::open(&place.provider, address, memory, key).map_err(|error| wrong(&error))?;
    let file = target.fd().as_raw_fd();
    let registered = registry.register(&mut SourceFd(&file), FABRIC, Interest::READABLE);
    registered.map_err(StartError::system("the event queue"))?;
    Ok(target)
}

/// Recovers the flash, and waits until doors of an earlier process have heard of its end.
fn alone(config: &JbofRoleConfig, clock: Clock, waker: Arc<Waker>) -> Result<Jbof, StartError> {
    let jbof = Jbof::start(&config.jbof, this_second(), waker)?;
    let taken = Instant::now();
    let jbof = recovered(jbof, clock, &config.jbof, config.journal.as_ref())?;
    if config.listen.iter().any(|address| matches!(address, PeerAddress::Unix(_))) {
        let quiet = Duration::from_nanos(QUIET.as_ps() / 1_000);
        std::thread::sleep(quiet.saturating_sub(taken.elapsed()));
    }
    Ok(jbof)
}

fn metrics(address: &str, registry: &Registry) -> Result<Http, StartError> {
    let mut listener = listen(address)?;
    registry.register(&mut listener, METRICS, Interest::READABLE).map_err(StartError::system("the event queue"))?;
    Ok(Http::new(listener, METRICS_CONNECTIONS))
}
