//! The loop of a role: it waits for packets, timers, signals and questions about metrics.

use crate::journal::{End, State, Writer};
use crate::rows::Rows;
use crate::wire::{Wire, WireCounts};
use base::{NodeId, Span, Time};
use blox::{Packet, Page, Tag, Value, VssdId};
use bytes::Bytes;
use mio::{Events, Interest, Poll, Token, Waker};
use plan::rack::Rack;
use runtime::clock::Clock;
use runtime::error::{RunError, StartError};
use runtime::http::Http;
use runtime::listen::listen;
use runtime::metrics::{Number, counter, text};
use runtime::stopper::Stopper;
use runtime::timer::Timer;
use runtime::waiting;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

const WAKER: Token = Token(0);
const TIMER: Token = Token(1);
const SIGNALS: Token = Token(2);
const METRICS: Token = Token(3);
const SOCKET: Token = Token(4);
const METRICS_CONNECTIONS: std::ops::Range<usize> = 16..32;
const EVENTS: usize = 64;
/// Packets taken in one turn, before timers have theirs.
const BATCH: usize = 64;

/// What takes the packets of a role, and hears of the requests of a door.
pub(crate) trait Carrier {
    /// Sends a packet to a node of the rack. `data` is its page where it carries one.
    fn send(&mut self, to: NodeId, packet: &Packet, data: Option<&Bytes>);
    /// Where packets to a node go, if that is known.
    fn address_of(&mut self, _node: NodeId) -> Option<SocketAddr> {
        None
    }
    /// A door begins with a page of a volume.
    fn asked(&mut self, now: Time, volume: u32, page: Page, is_write: bool);
    /// The host of a request of a door has gone.
    fn left(&mut self, _now: Time, _tag: Tag) {}
    /// A request of a door has ended.
    fn ended(&mut self, tag: Tag, end: End);
    /// A read has found a page of the flash rotten, which should have the named value.
    fn rotted(&mut self, vssd: VssdId, page: Page, named: Option<Value>);
    /// The flash reads a page for a request of a door, and takes so long.
    fn read_from_flash(&mut self, _request: (NodeId, Tag), _span: Span) {}
}

/// A socket, and the journal and the records of what goes through it.
struct Noted {
    wire: Wire,
    journal: Option<Writer>,
    rows: Option<Rows>,
    clock: Clock,
}

impl Noted {
    fn flush(&mut self) {
        self.wire.flush();
        self.note_left();
    }

    /// Notes when packets have left, if some have.
    fn note_left(&mut self) {
        if let (Some(journal), Some(at)) = (&mut self.journal, self.wire.left.take()) {
            journal.left(at);
        }
    }
}

impl Carrier for Noted {
    fn send(&mut self, to: NodeId, packet: &Packet, data: Option<&Bytes>) {
        self.journal.iter_mut().for_each(|journal| journal.sent(to, packet));
        let clock = self.clock;
        self.rows.iter_mut().for_each(|rows| rows.sent(|| clock.now(), packet));
        self.wire.send(to, packet, data);
        self.note_left();
    }
    fn address_of(&mut self, node: NodeId) -> Option<SocketAddr> {
        self.wire.address_of(node)
    }
    fn asked(&mut self, now: Time, volume: u32, page: Page, is_write: bool) {
        self.journal.iter_mut().for_each(|journal| journal.asked(now, volume, page, is_write));
    }
    fn left(&mut self, now: Time, tag: Tag) {
        self.journal.iter_mut().for_each(|journal| journal.host_left(now, tag));
    }
    fn ended(&mut self, tag: Tag, end: End) {
        self.journal.iter_mut().for_each(|journal| journal.ended(tag, end));
    }
    fn rotted(&mut self, vssd: VssdId, page: Page, named: Option<Value>) {
        self.journal.iter_mut().for_each(|journal| journal.rotted(vssd, page, named));
    }
    fn read_from_flash(&mut self, request: (NodeId, Tag), span: Span) {
        self.rows.iter_mut().for_each(|rows| rows.flash(request, span));
    }
}

/// What a role is, for its loop. All decisions are its program's.
pub(crate) trait Role {
    /// A packet has come, with the page that it carries.
    fn on_packet(&mut self, now: Time, packet: Packet, data: &Bytes, wire: &mut dyn Carrier);
    /// When it wants to run next.
    fn next_wakeup(&self) -> Option<Time>;
    /// Lets time pass.
    fn on_wakeup(&mut self, now: Time, wire: &mut dyn Carrier);
    /// Its counters.
    fn numbers(&self) -> Vec<Number>;
    /// Another thread has something for it.
    fn on_waker(&mut self, _now: Time, _wire: &mut dyn Carrier) {}
    /// The host of a request of a door has gone.
    fn leave(&mut self, _now: Time, _tag: Tag, _wire: &mut dyn Carrier) {}
    /// In a twin: what its flash did, in [`Carrier::rotted`].
    fn rot(&mut self, _vssd: VssdId, _page: Page, _named: Option<Value>) {}
    /// Why it cannot go on.
    fn fault(&mut self) -> Option<RunError> {
        None
    }
    /// Keeps what an orderly end keeps.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether SIGTERM and SIGINT end the role, and SIGHUP does nothing: so in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// They do.
    Process,
    /// They are somebody else's.
    Thread,
}

/// Ends a role from another thread.
pub type Stop = Stopper;

/// A role that has opened all that it needs.
pub struct Running {
    run: Box<dyn FnMut() -> Result<(), RunError> + Send>,
    stopper: Stopper,
    address: SocketAddr,
}

impl Running {
    /// Serves until an end is requested.
    ///
    /// # Errors
    /// When the event queue fails, or what an orderly end keeps cannot be kept.
    pub fn run(mut self) -> Result<(), RunError> {
        (self.run)()
    }

    /// Returns a handle that ends [`Self::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Where its packets come in.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

struct Loop<R> {
    name: &'static str,
    role: R,
    wire: Noted,
    poll: Poll,
    clock: Clock,
    stopper: Stopper,
    http: Option<Http>,
    signals: Option<Signals>,
    timer: Timer,
    alarm: Option<Time>,
    page: Vec<u8>,
    /// The socket may have more than a turn took.
    has_waiting: bool,
}

/// What a loop is made for.
pub(crate) struct Setup<'a> {
    /// The role's name in its metrics.
    pub name: &'static str,
    /// The rack.
    pub rack: &'a Rack,
    /// The role's node.
    pub node: NodeId,
    /// Where its metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Whether it has a process of its own.
    pub start: Start,
    /// What it knows, for its journal.
    pub state: State,
    /// Its records.
    pub rows: Option<Rows>,
}

/// Opens everything for a role, which other threads may wake.
pub(crate) fn start<R: Role + Send + 'static>(
    setup: Setup<'_>,
    role: impl FnOnce(Arc<Waker>) -> R,
) -> Result<Running, StartError> {
    let Setup { name, rack, node, metrics, start, state, rows } = setup;
    let mut wire = Wire::bind(rack, node)?;
    let system = StartError::system("the event queue");
    let poll = Poll::new().map_err(&system)?;
    let registry = poll.registry();
    let waker = Arc::new(Waker::new(registry, WAKER).map_err(&system)?);
    registry.register(wire.socket(), SOCKET, Interest::READABLE).map_err(&system)?;
    let mut listener = metrics.map(|address| listen(&address.to_string())).transpose()?;
    if let Some(listener) = &mut listener {
        registry.register(listener, METRICS, Interest::READABLE).map_err(&system)?;
    }
    let signals = (start == Start::Process).then(|| signals_of(&poll)).transpose().map_err(&system)?;
    let address = wire.address().map_err(&system)?;
    let stopper = Stopper::new(waker.clone());
    let clock = Clock::start();
    let journal = Writer::begin(rack, node, clock, state)?;
    wire.clock = journal.is_some().then_some(clock);
    let mut host = Loop {
        name,
        timer: Timer::new(registry, TIMER)?,
        role: role(waker),
        wire: Noted { wire, journal, rows, clock },
        clock,
        stopper: stopper.clone(),
        http: listener.map(|listener| Http::new(listener, METRICS_CONNECTIONS)),
        signals,
        alarm: None,
        page: Vec::new(),
        has_waiting: true,
        poll,
    };
    Ok(Running { run: Box::new(move || host.run()), stopper, address })
}

fn signals_of(poll: &Poll) -> io::Result<Signals> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
    Ok(signals)
}

impl<R: Role> Loop<R> {
    fn run(&mut self) -> Result<(), RunError> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.stopper.is_asked() {
            let timeout = self.timeout()?;
            waiting::sleep(&mut self.poll, &mut events, timeout)?;
            let now = self.clock.now();
            for event in &events {
                self.on_event(now, event.token());
            }
            self.turn();
            if let Some(error) = self.role.fault() {
                return Err(error);
            }
        }
        let numbers = self.role.numbers();
        self.wire.journal.iter_mut().for_each(|journal| journal.finish(&numbers));
        let Loop { clock, wire, .. } = self;
        wire.rows.iter_mut().for_each(|rows| rows.finish(clock.now()));
        self.role.end().map_err(RunError::in_("keeping what was in memory"))
    }

    fn timeout(&mut self) -> Result<Option<std::time::Duration>, RunError> {
        if self.has_waiting {
            return Ok(Some(std::time::Duration::ZERO));
        }
        let now = self.clock.now();
        let due = self.role.next_wakeup();
        if let Some(due) = due.filter(|due| self.alarm.is_none_or(|alarm| alarm > *due || alarm <= now)) {
            self.timer.set(Clock::wait(now, due)).map_err(RunError::in_("setting a timer"))?;
            self.alarm = Some(due);
        }
        Ok(self.http.as_ref().and_then(Http::next_wakeup).map(|until| Clock::wait(now, until)))
    }

    fn on_event(&mut self, now: Time, token: Token) {
        let Loop { name, role, wire, http, .. } = self;
        match token {
            WAKER => role.on_waker(now, wire),
            TIMER => self.alarm = None,
            SIGNALS => {
                for signal in self.signals.iter_mut().flat_map(|signals| signals.pending()) {
                    if signal == SIGHUP {
                        tracing::warn!("nothing is read anew: a rack's file holds from start to end");
                    } else {
                        tracing::info!("shutting down");
                        self.stopper.stop();
                    }
                }
            }
            METRICS => {
                let registry = self.poll.registry();
                http.iter_mut().for_each(|http| http.accept(now, registry));
            }
            SOCKET => self.has_waiting = true,
            token => {
                let page =
                    || text(&format!("rackweave_{name}"), &all(role.numbers(), wire.wire.counts(), wire.rows.as_ref()));
                http.iter_mut().for_each(|http| http.on_event(token, page));
            }
        }
    }

    fn turn(&mut self) {
        self.has_waiting = self.take_packets();
        self.wire.flush();
        let now = self.clock.now();
        self.wire.journal.iter_mut().for_each(|journal| journal.woke(now));
        self.role.on_wakeup(now, &mut self.wire);
        self.wire.flush();
        let Loop { clock, wire, .. } = self;
        wire.journal.iter_mut().for_each(|journal| journal.rests(|| clock.now()));
        self.http.iter_mut().for_each(|http| http.on_wakeup(now));
    }

    /// Takes a batch of packets; returns whether there may be more.
    fn take_packets(&mut self) -> bool {
        for _ in 0..BATCH {
            let received = self.wire.wire.receive(&mut self.page);
            self.wire.note_left();
            let Some(received) = received else { return false };
            if let Some(packet) = received {
                let data = Bytes::copy_from_slice(&self.page);
                let now = self.clock.now();
                self.wire.journal.iter_mut().for_each(|journal| journal.came(now, &packet));
                self.wire.rows.iter_mut().for_each(|rows| rows.came(now, &packet));
                self.role.on_packet(now, packet, &data, &mut self.wire);
            }
        }
        true
    }
}

/// The numbers of a role, of its socket and of its records.
fn all(mut numbers: Vec<Number>, counts: WireCounts, rows: Option<&Rows>) -> Vec<Number> {
    let dropped = |rows| counter("record_rows_dropped", "Rows of records that are missing.", Rows::dropped(rows));
    numbers.extend(rows.map(dropped));
    numbers.extend([
        counter("datagrams_received", "Datagrams received.", counts.received),
        counter("datagrams_sent", "Datagrams sent.", counts.sent),
        counter("datagrams_malformed", "Datagrams that are no packets.", counts.malformed),
        counter("datagrams_foreign", "Datagrams of other racks, or other versions of its file.", counts.foreign),
        counter("datagrams_forged", "Datagrams not sealed with the rack's secret.", counts.forged),
        counter("datagrams_repeated", "Datagrams that had come before.", counts.repeated),
        counter("datagrams_late", "Datagrams of another time.", counts.late),
        counter("datagrams_unsent", "Datagrams that could not be sent.", counts.unsent),
    ]);
    numbers
}
