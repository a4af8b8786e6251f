//! A loop of the live target: one thread that waits for sockets, backends and timers, and moves
//! bytes between them and [`nvme::target::Target`], which makes all decisions.
//!
//! [`Loop::run`] waits, [`Loop::turn`] serves what has happened. After each connection's turn,
//! `settle` carries out everything that it caused before the next. An idle thread sleeps.

use crate::backend::{Backends, Completion, Memory, Submitted};
use crate::clock::Clock;
use crate::common::{Common, Parcel};
use crate::doors::Doors;
use crate::engine::{EngineRole, Errand};
use crate::error::{RunError, StartError};
use crate::floods::{Flood, Floods};
use crate::http::Http;
use crate::machine::Machine;
use crate::metrics::{Counted, Metrics, Size};
use crate::records::Recorder;
use crate::secrets::Secrets;
use crate::server::Reload;
use crate::setup::{END_WAIT, OpenedByName};
use crate::socket::{Moved, Socket};
use crate::state::SharedState;
use crate::stream::Security;
use crate::timer::Timer;
use base::{Span, Time};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nvme::pdu::PduError;
use nvme::target::{CloseReason, ConnectionId, IoRequest, Member, Notice, PortId};
use plan::target::TargetPlan;
use runtime::stopper::Stopper;
use runtime::waiting::{self, Waiting};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const SIGNALS: Token = Token(2);
const METRICS: Token = Token(3);
/// Tokens of listeners. A plan has 64 ports at most, and a reload has those of two plans.
pub(crate) const PORTS: std::ops::Range<usize> = 16..144;
/// Tokens of connections to the metrics.
const METRICS_CONNECTIONS: std::ops::Range<usize> = 144..176;
/// First token of connections of hosts, by their index.
const HOSTS: usize = 1024;
/// Bytes of one read of a connection: enough for a burst of 4 KiB writes at a depth of 64.
const ROOM: usize = 256 << 10;
/// Events of one turn.
const EVENTS: usize = 1024;
/// Connections that a port accepts in one turn, so that a flood of them does not keep others
/// waiting.
const ACCEPTS_MAX: usize = 64;
/// Time without accepting after the system ran out of a resource.
const PAUSE: Span = Span::ms(100);

/// Where a loop works, and with whom.
pub(crate) struct Seat {
    pub own: Member,
    pub common: Arc<Common>,
    pub poll: Poll,
    pub waker: Arc<Waker>,
    pub clock: Clock,
}

/// What each loop needs.
pub(crate) struct LoopParts {
    pub plan: TargetPlan,
    pub target: Machine,
    pub backends: Backends,
    pub state: SharedState,
    pub secrets: Arc<Secrets>,
    pub recorder: Option<Recorder>,
}

/// What the first loop alone has: where hosts and operators come in.
pub(crate) struct Front {
    pub doors: Doors,
    pub opened: OpenedByName,
    pub security: Security,
    pub reload: Option<Reload>,
    pub metrics: Option<TcpListener>,
    pub signals: bool,
}

/// One loop of a running target.
pub(crate) struct Loop {
    pub(crate) poll: Poll,
    clock: Clock,
    stopper: Stopper,
    /// Loops that end with this one.
    others: Vec<Stopper>,
    own: Member,
    pub(crate) common: Arc<Common>,
    pub(crate) plan: TargetPlan,
    pub(crate) doors: Doors,
    /// No connections are accepted before this time.
    accept_from: Option<Time>,
    pub(crate) target: Machine,
    pub(crate) backends: Backends,
    engine: EngineRole,
    pub(crate) opened: OpenedByName,
    pub(crate) security: Security,
    /// Current secrets of hosts.
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) state: SharedState,
    sockets: Vec<Option<Socket>>,
    /// Connections that may have more input.
    listed: VecDeque<ConnectionId>,
    waiting: Waiting,
    timer: Timer,
    /// Time to which the timer is set.
    alarm: Option<Time>,
    signals: Option<Signals>,
    reload: Option<Reload>,
    http: Option<Http>,
    metrics: Metrics,
    floods: Floods,
    recorder: Option<Recorder>,
    room: Vec<u8>,
    over: Vec<Completion>,
}

impl Loop {
    /// A loop over what is open. The first one gets `front` too.
    pub(crate) fn new(seat: Seat, parts: LoopParts, front: Option<Front>) -> Result<Loop, StartError> {
        let Seat { own, common, poll, waker, clock } = seat;
        let LoopParts { plan, target, backends, state, secrets, recorder } = parts;
        let mut serving = Loop {
            waiting: Waiting::new(common.ways.clone(), usize::from(own.0), clock),
            timer: Timer::new(poll.registry(), TIMER)?,
            poll,
            clock,
            stopper: Stopper::new(waker),
            others: Vec::new(),
            own,
            common,
            doors: Doors::new(PORTS),
            accept_from: None,
            target,
            backends,
            engine: EngineRole::new(own).map_err(StartError::plan)?,
            opened: OpenedByName::new(),
            security: Security::new(),
            secrets,
            state,
            sockets: Vec::new(),
            listed: VecDeque::new(),
            alarm: None,
            signals: None,
            reload: None,
            http: None,
            metrics: Metrics::default(),
            floods: Floods::default(),
            recorder,
            room: vec![0; ROOM],
            over: Vec::new(),
            plan,
        };
        if let Some(front) = front {
            let Front { doors, opened, security, reload, metrics, signals } = front;
            (serving.doors, serving.opened, serving.security, serving.reload) = (doors, opened, security, reload);
            serving.register(metrics, signals)?;
        }
        Ok(serving)
    }

    fn register(&mut self, metrics: Option<TcpListener>, signals: bool) -> Result<(), StartError> {
        let system = StartError::system("the event queue");
        let registry = self.poll.registry();
        if let Some(mut listener) = metrics {
            registry.register(&mut listener, METRICS, Interest::READABLE).map_err(&system)?;
            self.http = Some(Http::new(listener, METRICS_CONNECTIONS));
        }
        if signals {
            let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(&system)?;
            registry.register(&mut signals, SIGNALS, Interest::READABLE).map_err(&system)?;
            self.signals = Some(signals);
        }
        Ok(())
    }

    /// Returns a handle that ends [`Self::run`].
    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Has these loops end when this one is asked to.
    pub(crate) fn ends_with(&mut self, others: Vec<Stopper>) {
        self.others = others;
    }

    /// Serves until a shutdown is requested. Then it completes what backends are doing.
    ///
    /// # Errors
    /// When the event queue fails.
    pub(crate) fn run(&mut self) -> Result<(), RunError> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stopper.is_asked() {
            self.wait(&mut events)?;
            for event in &events {
                self.on_event(event);
            }
            self.turn();
        }
        self.others.iter().for_each(Stopper::stop);
        self.end(&mut events)
    }

    /// Waits until an event arrives or a timer is due.
    fn wait(&mut self, events: &mut Events) -> Result<(), RunError> {
        let timeout = self.timeout()?;
        // Backends need the processor themselves.
        if self.backends.open() > 0 {
            return waiting::sleep(&mut self.poll, events, timeout);
        }
        let served = self.target.target().counters().commands;
        self.waiting.wait(&mut self.poll, events, timeout, served)
    }

    fn timeout(&mut self) -> Result<Option<Duration>, RunError> {
        if !self.listed.is_empty() {
            return Ok(Some(Duration::ZERO));
        }
        let http = self.http.as_ref().and_then(Http::next_wakeup);
        let told = self.floods.next_due();
        let coarse = [self.target.next_wakeup(), http, self.accept_from, told].into_iter().flatten().min();
        let fine = self.backends.next_due();
        if coarse.is_none() && fine.is_none() {
            return Ok(None);
        }
        let now = self.clock.now();
        if let Some(due) = fine.filter(|due| self.alarm.is_none_or(|alarm| alarm > *due || alarm <= now)) {
            self.timer.set(Clock::wait(now, due)).map_err(RunError::in_("setting a timer"))?;
            self.alarm = Some(due);
        }
        Ok(coarse.map(|until| Clock::wait(now, until)))
    }

    fn on_event(&mut self, event: &Event) {
        match event.token() {
            WAKER => {}
            TIMER => self.alarm = None,
            SIGNALS => self.on_signals(),
            METRICS => self.accept_metrics(),
            Token(token) if PORTS.contains(&token) => {
                self.doors.of_token(token).into_iter().for_each(|door| self.accept(door));
            }
            token if METRICS_CONNECTIONS.contains(&token.0) => self.serve_metrics(token),
            Token(token) => self.on_socket(token.wrapping_sub(HOSTS), event),
        }
    }

    fn on_signals(&mut self) {
        let pending: Vec<i32> = self.signals.iter_mut().flat_map(|signals| signals.pending()).collect();
        for signal in pending {
            if signal == SIGHUP {
                self.reload();
            } else {
                tracing::info!("shutting down: completing outstanding requests; signal again to exit at once");
                self.stopper.stop();
            }
        }
    }

    fn reload(&mut self) {
        let Some(reload) = &mut self.reload else { return tracing::warn!("there is no file to read anew") };
        let plan = reload();
        let changed = plan.and_then(|plan| self.change(self.clock.now(), &plan).map_err(|error| error.to_string()));
        if let Err(error) = changed {
            tracing::error!(error, "nothing was changed");
        }
    }

    fn accept_metrics(&mut self) {
        if let Some(http) = &mut self.http {
            http.accept(self.clock.now(), self.poll.registry());
        }
    }

    fn serve_metrics(&mut self, token: Token) {
        let Loop { http, metrics, target, recorder, opened, common, .. } = self;
        let Some(http) = http else { return };
        http.on_event(token, || {
            let sizes = opened.iter().map(|(name, opened)| Size {
                subsystem: name.subsystem.clone(),
                namespace: name.namespace,
                bytes: opened.blocks * opened.plan.block.count(),
            });
            let dropped = recorder.as_ref().map_or(0, Recorder::dropped);
            common.sum(counted(metrics, target)).text(dropped, sizes.collect())
        });
    }

    /// Accepts connections that wait at a port, some of them now and the rest in the next turn.
    fn accept(&mut self, door: usize) {
        let now = self.clock.now();
        let number = self.doors.all[door].id;
        for _ in 0..ACCEPTS_MAX {
            match self.doors.all[door].listener.accept() {
                Ok((stream, peer)) => self.take(now, number, stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                }
                Err(error) => {
                    // Most likely out of file descriptors: no event reports that some are free
                    // again.
                    self.floods.tell(now, Flood::Unaccepted, |left_out| {
                        tracing::error!(%error, left_out, "cannot accept connections for now");
                    });
                    self.accept_from = Some(now + PAUSE);
                    return;
                }
            }
        }
        self.accept_from = Some(now);
    }

    fn take(&mut self, now: Time, number: PortId, mut stream: TcpStream, peer: SocketAddr) {
        let id = match self.target.accept(now, number) {
            Ok(id) => id,
            Err(refused) => {
                let tell = |left_out| tracing::warn!(%peer, %refused, left_out, "connection refused");
                return self.floods.tell(now, Flood::Refused, tell);
            }
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut stream, Token(HOSTS + id.index()), interest);
        // Answers are small and complete: Nagle's algorithm (RFC 896) would only delay them.
        if let Err(error) = registered.and_then(|()| stream.set_nodelay(true)) {
            let tell = |left_out| tracing::warn!(%peer, %error, left_out, "connection lost");
            self.floods.tell(now, Flood::Wrong, tell);
            return self.target.closed(now, id);
        }
        tracing::debug!(%peer, connection = id.bits(), port = number.0, "connection accepted");
        let stream = match self.security.stream(number, stream) {
            Ok(stream) => stream,
            Err(error) => {
                let tell = |left_out| tracing::warn!(%peer, error, left_out, "connection lost");
                self.floods.tell(now, Flood::Wrong, tell);
                return self.target.closed(now, id);
            }
        };
        self.put(Socket::new(id, peer, number, stream));
    }

    fn on_socket(&mut self, index: usize, event: &Event) {
        let Some(Some(socket)) = self.sockets.get_mut(index) else { return };
        let to_read = event.is_readable() || event.is_read_closed() || event.is_error();
        socket.is_ready(to_read, event.is_writable());
        if event.is_read_closed() {
            socket.half_closed();
        }
        let id = socket.id;
        if to_read {
            self.list(id);
        }
        if event.is_writable() {
            self.serve(id);
        }
    }

    fn list(&mut self, id: ConnectionId) {
        if let Some(Some(socket)) = self.sockets.get_mut(id.index())
            && !std::mem::replace(&mut socket.is_listed, true)
        {
            self.listed.push_back(id);
        }
    }

    /// Serves everything that has happened.
    fn turn(&mut self) {
        self.metrics.turns += 1;
        let now = self.clock.now();
        if self.common.is_shared() {
            self.common.given(self.own).into_iter().for_each(|parcel| self.unpack(now, parcel));
        }
        for _ in 0..self.listed.len() {
            if let Some(id) = self.listed.pop_front() {
                self.pull(now, id);
            }
        }
        self.finish_over(now);
        if self.target.next_wakeup().is_some_and(|at| at <= now) {
            self.target.on_wakeup(now);
        }
        if let Some(http) = &mut self.http {
            http.on_wakeup(now);
        }
        if self.accept_from.is_some_and(|at| at <= now) {
            self.accept_from = None;
            (0..self.doors.all.len()).for_each(|door| self.accept(door));
        }
        self.settle(now);
        if self.common.is_shared() {
            self.post();
        }
        self.log_notices(now);
    }

    /// Reads a connection once, and passes the bytes to the target.
    fn pull(&mut self, now: Time, id: ConnectionId) {
        let Some(socket) = socket_of(&mut self.sockets, id) else { return };
        socket.is_listed = false;
        if !self.target.wants_input(id) {
            return;
        }
        let mut room = std::mem::take(&mut self.room);
        match socket.read(&mut room) {
            Ok(count) => {
                // A turn that began before this process was stopped does not say for how long.
                let now = self.clock.now();
                if let Some(channel) = socket.take_channel() {
                    self.target.secured(now, id, channel);
                }
                self.feed(now, id, &room[..count]);
            }
            Err(Moved::Settled) => {}
            Err(Moved::More) => self.list(id),
            Err(Moved::Ended) => self.lose(now, id),
        }
        self.room = room;
    }

    /// Passes `bytes` to the target as far as it takes them, and sends the answers.
    fn feed(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let mut input = Input { id, brought: &[], rest: bytes };
        loop {
            self.carry_out(now, &mut input);
            self.settle(now);
            if input.rest.is_empty() || !self.target.wants_input(id) {
                break;
            }
        }
        let Some(socket) = socket_of(&mut self.sockets, id) else { return };
        socket.keep(input.rest);
        if socket.has_input() && self.target.wants_input(id) {
            self.list(id);
        }
    }

    /// Carries out the target's requests and sends its output until there is none.
    fn settle(&mut self, now: Time) {
        loop {
            let mut is_quiet = !self.carry_out(now, &mut Input::none());
            while let Some(id) = self.target.next_active() {
                is_quiet = false;
                self.serve(id);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// Gives other loops what is for them. A socket goes with the bytes that were read from it, so
    /// call this between turns of connections.
    pub(crate) fn post(&mut self) {
        while let Some(letter) = self.target.next_letter() {
            let socket = letter.connection.and_then(|id| self.sockets.get_mut(id.index())?.take());
            let socket = socket.map(|mut socket| {
                let _ = self.poll.registry().deregister(socket.stream());
                Box::new(socket)
            });
            self.common.give(letter.to, Parcel::Letter(letter, socket));
        }
        while let Some(errand) = self.engine.next_errand() {
            match errand {
                Errand::Asked(request) => {
                    self.common.give(Member::FIRST, Parcel::Engine(self.own, Box::new(request)));
                }
                Errand::Answered(member, tag, result) => self.common.give(member, Parcel::Answer(tag, result)),
            }
        }
    }

    fn unpack(&mut self, now: Time, parcel: Parcel) {
        match parcel {
            Parcel::Letter(letter, socket) => {
                if let Some(id) = self.target.hear(now, letter) {
                    self.adopt(now, id, socket);
                }
            }
            Parcel::Change(change) => self.follow(now, *change),
            Parcel::Engine(member, request) => self.engine.take(now, member, *request),
            Parcel::Answer(tag, result) => self.target.complete(now, tag, result),
            Parcel::Count(question) => self.common.tell(self.own, question, counted(&self.metrics, &self.target)),
        }
    }

    /// Serves the socket of another loop's connection.
    fn adopt(&mut self, now: Time, id: ConnectionId, socket: Option<Box<Socket>>) {
        let Some(mut socket) = socket else { return self.target.closed(now, id) };
        let (peer, token) = (socket.peer, Token(HOSTS + id.index()));
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(socket.stream(), token, interest) {
            let tell = |left_out| tracing::warn!(%peer, %error, left_out, "connection lost");
            self.floods.tell(now, Flood::Wrong, tell);
            return self.target.closed(now, id);
        }
        tracing::debug!(%peer, connection = id.bits(), by = self.own.0, "connection taken over");
        socket.moved(id);
        self.put(*socket);
        self.list(id);
    }

    fn put(&mut self, socket: Socket) {
        let index = socket.id.index();
        if self.sockets.len() <= index {
            self.sockets.resize_with(index + 1, || None);
        }
        self.sockets[index] = Some(socket);
    }

    /// Carries out all requests of the target, and passes it `input` as far as it takes it. Returns
    /// whether there were any requests.
    fn carry_out(&mut self, now: Time, input: &mut Input<'_>) -> bool {
        let mut was_asked = false;
        while let Some(request) = self.answer_from_memory(now, input, &mut was_asked) {
            was_asked = true;
            if let Submitted::Over(completion) = self.backends.submit(now, request) {
                self.complete(now, completion);
            }
        }
        was_asked
    }

    /// Answers requests of backends in memory. Returns the first request for another backend.
    fn answer_from_memory(&mut self, now: Time, input: &mut Input<'_>, was_asked: &mut bool) -> Option<IoRequest> {
        let Loop { engine, target, backends, metrics, recorder, .. } = self;
        let mut memory = Memory::of(backends, recorder.is_some());
        loop {
            while let Some(request) = engine.next_io(now, target) {
                let tag = request.tag;
                let (result, counts_as) = match memory.carry_out(request, input.brought) {
                    Ok(answered) => answered,
                    Err(request) => return Some(request),
                };
                if let Some(operation) = counts_as {
                    metrics.observe_at_once(operation);
                }
                target.complete(now, tag, result);
                *was_asked = true;
            }
            if input.rest.is_empty() || !target.wants_input(input.id) {
                return None;
            }
            input.bring(target, now);
        }
    }

    fn finish_over(&mut self, now: Time) {
        let mut over = std::mem::take(&mut self.over);
        self.backends.take_over(now, &mut over);
        over.drain(..).for_each(|completion| self.complete(now, completion));
        self.over = over;
    }

    fn complete(&mut self, now: Time, completion: Completion) {
        self.metrics.observe(&completion.facts, now);
        if let Some(recorder) = &self.recorder {
            let clock = self.clock;
            recorder.observe(&completion, || clock.now());
        }
        self.engine.complete(now, &mut self.target, completion.tag, completion.result);
    }

    /// Sends the output of a connection, closes it if that is due, and lists it to read on.
    fn serve(&mut self, id: ConnectionId) {
        let Some(socket) = socket_of(&mut self.sockets, id) else { return };
        if socket.push(self.clock.now(), &mut self.target, &self.backends) == Moved::Ended {
            return self.lose(self.clock.now(), id);
        }
        if let Some(reason) = self.target.should_close(id) {
            let peer = socket.peer;
            let flood = match reason {
                CloseReason::Handshake => Some(Flood::Silent),
                CloseReason::Displaced => Some(Flood::Displaced),
                CloseReason::Protocol(_) | CloseReason::Authentication => Some(Flood::Wrong),
                _ => None,
            };
            match flood {
                Some(flood) => self.floods.tell(self.clock.now(), flood, |left_out| {
                    let hint = hint(&reason);
                    tracing::warn!(%peer, connection = id.bits(), %reason, left_out, "connection ended{hint}");
                }),
                None => tracing::debug!(%peer, connection = id.bits(), %reason, "connection ended"),
            }
            self.close(self.clock.now(), id);
        } else if socket.has_input() && self.target.wants_input(id) {
            self.list(id);
        }
    }

    /// The peer or the network has closed a connection.
    fn lose(&mut self, now: Time, id: ConnectionId) {
        if let Some(mut socket) = self.sockets.get_mut(id.index()).and_then(Option::take) {
            let (peer, port) = (socket.peer, socket.port.0);
            match socket.failure() {
                Some(reason) => self.floods.tell(now, Flood::Handshake, |left_out| {
                    tracing::warn!(%peer, port, reason, left_out, "TLS handshake failed");
                }),
                None => tracing::debug!(%peer, connection = id.bits(), "connection lost"),
            }
            let _ = self.poll.registry().deregister(socket.stream());
        }
        self.forget(now, id);
    }

    /// Closes a connection from this side.
    fn close(&mut self, now: Time, id: ConnectionId) {
        if let Some(mut socket) = self.sockets.get_mut(id.index()).and_then(Option::take) {
            let _ = self.poll.registry().deregister(socket.stream());
            socket.end();
        }
        self.forget(now, id);
    }

    /// A connection is gone. What its host waited for is not done later than now.
    fn forget(&mut self, now: Time, id: ConnectionId) {
        self.target.closed(now, id);
        let target = &self.target;
        self.backends.leave(|tag| target.is_abandoned(tag));
    }

    fn log_notices(&mut self, now: Time) {
        while let Some(notice) = self.target.next_notice() {
            match &notice {
                Notice::Crowded { .. } => {
                    self.floods.tell(now, Flood::Crowded, |left_out| tracing::warn!(left_out, "{notice}"));
                }
                Notice::Tolerated { connection, .. } => self.floods.tell(now, Flood::Tolerated, |left_out| {
                    tracing::info!(connection = connection.bits(), left_out, "{notice}");
                }),
                Notice::Connected { .. } | Notice::ControllerGone { .. } => {
                    self.floods.tell(now, Flood::Hosts, |left_out| tracing::info!(left_out, "{notice}"));
                }
                Notice::NotAllowed { .. } | Notice::NotAuthenticated { .. } => {
                    self.floods.tell(now, Flood::NotLetIn, |left_out| tracing::warn!(left_out, "{notice}"));
                }
                Notice::Closing { connection, .. } => tracing::debug!(connection = connection.bits(), "{notice}"),
                _ => tracing::debug!("{notice}"),
            }
        }
        self.floods.tell_due(now);
    }

    /// Accepts nothing new, completes what backends do, sends the answers.
    fn end(&mut self, events: &mut Events) -> Result<(), RunError> {
        self.doors.all.clear();
        self.http = None;
        let until = self.clock.now() + END_WAIT;
        while self.backends.open() > 0 && self.clock.now() < until {
            self.listed.clear();
            self.timeout()?;
            let wait = Clock::wait(self.clock.now(), until);
            waiting::sleep(&mut self.poll, events, Some(wait))?;
            if !self.signals.iter_mut().flat_map(|signals| signals.pending()).all(|signal| signal == SIGHUP) {
                tracing::warn!("exiting at once");
                std::process::exit(130);
            }
            let now = self.clock.now();
            self.alarm = self.alarm.filter(|alarm| *alarm > now);
            self.finish_over(now);
            self.settle(now);
        }
        self.sockets.clear();
        self.recorder = None;
        Ok(())
    }

    /// Syncs all disks.
    pub(crate) fn sync_all(&self) -> Result<(), RunError> {
        self.backends.sync_all().map_err(RunError::in_("the last sync"))
    }
}

/// What a loop and its machine have counted.
fn counted(metrics: &Metrics, target: &Machine) -> Counted {
    let target = target.target();
    Counted { own: *metrics, counters: target.counters(), gauges: target.gauges() }
}

/// Bytes of a connection for the target.
struct Input<'a> {
    id: ConnectionId,
    /// Bytes of the last call: requests may refer to them.
    brought: &'a [u8],
    /// Bytes that the target has not taken.
    rest: &'a [u8],
}

impl Input<'_> {
    fn none() -> Self {
        Input { id: ConnectionId::of_bits(0), brought: &[], rest: &[] }
    }

    fn bring(&mut self, target: &mut Machine, now: Time) {
        self.brought = self.rest;
        self.rest = &self.rest[target.receive(now, self.id, self.rest)..];
    }
}

/// A likely cause of the end of a connection.
fn hint(reason: &CloseReason) -> &'static str {
    /// The first byte of a TLS handshake (RFC 8446, 5.1).
    const HANDSHAKE: u64 = 22;
    match reason {
        CloseReason::Protocol(PduError::Field { at: 0, got: HANDSHAKE, .. }) => " (TLS at a port without?)",
        _ => "",
    }
}

/// Returns the socket of a connection; `None` when the connection is gone, even if its index was
/// reused.
fn socket_of(sockets: &mut [Option<Socket>], id: ConnectionId) -> Option<&mut Socket> {
    sockets.get_mut(id.index())?.as_mut().filter(|socket| socket.id == id)
}
