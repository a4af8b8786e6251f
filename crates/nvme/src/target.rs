//! The controller's side: a whole NVMe/TCP target as a state machine without I/O. Bytes of
//! connections go in, bytes come out, backends get requests and answer; time is an argument.
//!
//! | kind of call | calls |
//! | --- | --- |
//! | a socket | [`Target::accept`], [`Target::secured`], [`Target::receive`] while [`Target::wants_input`], [`Target::pieces`] and then [`Target::transmitted`], [`Target::end_loans`], [`Target::should_close`], [`Target::closed`] |
//! | backends | [`Target::next_io`] until it gives `None`, after each [`Target::receive`] and before bytes are sent; [`Target::complete`] once for each |
//! | time | [`Target::next_wakeup`], [`Target::on_wakeup`] |
//! | management | [`Target::reconfigure`], [`Target::end_channels`]; one by one [`Target::add_namespace`], [`Target::remove_namespace`], [`Target::resize_namespace`], [`Target::set_path`], [`Target::set_authentication`]; [`Target::reservations`] |
//! | a group | [`Target::join`], [`Target::next_letter`], [`Target::hear`] |
//! | monitoring | [`Target::next_notice`], [`Target::counters`], [`Target::gauges`] |
//!
//! After any of them [`Target::next_active`] names the connections that have bytes to send or have
//! to be closed, each once, and `next_io` may have more.
//!
//! Every command is completed once or dropped with its connection, whatever fails meanwhile. The
//! answer of a backend for a command whose connection is gone is dropped. [`TargetLimits`] bounds
//! what a host can make the target hold.
//!
//! # Parts
//!
//! [`Target`] owns the parts and passes events between them. Each part alone changes its state:
//!
//! | part | state | tells |
//! | --- | --- | --- |
//! | `Connection` | stage, reader, output, outstanding commands, data budget | `DataEvent`: data of a command are here, or the command failed |
//! | `Controller` | properties, features, events, error log, keep-alive timer | `ControllerEvent`: enabled, reset, shutdown requested |
//! | `Subsystem` | namespaces, paths, authentication | `SubsystemEvent` to its controllers, `AuthenticationEvent` to a connection |
//! | `Namespace` | size, reservations | `ReservationEvent`: a state to keep, effects on other hosts |
//! | `Executor` | flights, requests to backends, loans, buffers | `Answer`: what an answer of a backend completes |
//!
//! Several machines may serve one target, as the members of a `Group`: a controller lives in one of
//! them.
//!
//! `IoController` is a controller with its subsystem: it checks an I/O command and turns it into
//! `Work` for backends.

mod admin;
mod agreement;
mod authentication;
mod clock;
mod commands;
mod config;
mod connection;
mod controller;
mod controllers;
mod events;
mod executor;
mod fabrics;
mod features;
mod flight;
mod group;
mod hand_over;
mod identify;
mod io;
mod link;
mod loans;
mod logs;
mod manage;
mod notice;
mod nvm;
mod ports;
mod properties;
mod reconfigure;
mod requests;
mod reservations;
mod reserve;
mod sdirect;
mod subsystem;

pub use crate::outgoing::{Piece, Pieces, Slices};
pub use authentication::{AuthenticationConfig, HostSecrets};
pub use config::{
    ConfigError, HostAccess, NamespaceConfig, PathState, PortConfig, SubsystemConfig, TargetConfig, TargetLimits,
};
pub use group::{Letter, Member};
pub use io::{
    BlockRange, CopySource, EngineDevice, EngineOperation, EnginePlace, IoOperation, IoRequest, IoResult, IoStatus,
    IoTag,
};
pub use manage::ManageError;
pub use notice::{AuthenticationFault, CloseReason, Counters, Gauges, Notice, Refused, Tolerated};
pub use reconfigure::{Change, Fate};
pub use reservations::{HeldKind, REGISTRANTS_MAX, RegisteredHost, Reservations};

use crate::Nqn;
use base::Time;
use clock::Clock;
use connection::{Connections, Stage};
use controller::Controller;
use controllers::Controllers;
use executor::{Answer, Executor};
use group::Group;
use link::Input;
use notice::Observer;
use ports::Ports;
use subsystem::Subsystem;

/// A port of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId(pub u16);

/// The backend of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackendId(pub u32);

/// One connection. No later connection has the same identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    index: u32,
    use_count: u32,
}

impl ConnectionId {
    /// A small number that no other open connection has, for tables of the caller.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// As a number, for logs.
    pub const fn bits(self) -> u64 {
        self.index as u64 | (self.use_count as u64) << 32
    }

    /// From [`Self::bits`].
    pub const fn of_bits(bits: u64) -> Self {
        ConnectionId { index: bits as u32, use_count: (bits >> 32) as u32 }
    }
}

/// The identity of a TLS connection's peer, from its pre-shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The host.
    pub host: Nqn,
    /// The subsystem that it may connect to.
    pub subsystem: Nqn,
}

/// All subsystems, namespaces, controllers and connections of a process.
#[derive(Debug)]
pub struct Target {
    limits: TargetLimits,
    ports: Ports,
    subsystems: Vec<Subsystem>,
    connections: Connections,
    controllers: Controllers,
    io: Executor,
    observer: Observer,
    clock: Clock,
    group: Group,
    /// Counts the challenges of all authentications.
    challenges: u64,
}

impl Target {
    /// A target without connections. Fails when `config` is invalid.
    pub fn new(config: TargetConfig) -> Result<Target, ConfigError> {
        config.check()?;
        Ok(Target {
            ports: Ports::new(config.ports),
            subsystems: config.subsystems.into_iter().map(Subsystem::new).collect(),
            connections: Connections::new(&config.limits, config.is_strict),
            controllers: Controllers::default(),
            io: Executor::new(config.limits.pool_bytes_max),
            observer: Observer::new(&config.limits),
            clock: Clock::default(),
            group: Group::alone(),
            challenges: 0,
            limits: config.limits,
        })
    }

    /// Numbers controllers from `last + 1` on, and not from 1. Two targets that serve one subsystem
    /// must not use the same number.
    pub fn number_controllers_after(&mut self, last: u16) {
        self.controllers.number_after(last);
    }

    /// Accepts a connection on `port`. Where as many are open as may be, the one that came first of
    /// those that have not sent Connect, or have yet to authenticate, makes room.
    pub fn accept(&mut self, now: Time, port: PortId) -> Result<ConnectionId, Refused> {
        self.clock.pass(now);
        if !self.ports.contain(port) {
            return Err(Refused::Port(port));
        }
        let most = self.limits.connections_max;
        if self.connections.limited() + self.group.away >= most as usize {
            let Some(stranger) = self.connections.next_stranger() else {
                self.observer.counters.connections_refused += 1;
                return Err(Refused::Connections { most });
            };
            self.observer.counters.connections_displaced += 1;
            self.close(stranger, CloseReason::Displaced);
        }
        self.observer.counters.connections_accepted += 1;
        let index = self.connections.open(port, &self.limits);
        let place = &mut self.connections[index];
        place.deadline = self.clock.deadline(self.limits.handshake);
        Ok(place.id)
    }

    /// The connection is secured by TLS, with the key of `channel`. Call it before the first
    /// [`receive`](Self::receive). A port whose [security](PortConfig::security) is not `None`
    /// takes no host without it.
    pub fn secured(&mut self, now: Time, connection: ConnectionId, channel: Channel) {
        self.clock.pass(now);
        if let Some(index) = self.connections.find(connection) {
            self.connections[index].channel = Some(channel);
        }
    }

    /// Takes bytes of a connection, in any split, and returns how many. It takes all bytes of a
    /// connection that is gone. It takes less than all
    ///
    /// - while too much output waits for the host, or when the connection closes, as it does when
    ///   the keep-alive timeout has passed by `now`;
    /// - when a backend in memory has requests: take them from [`Self::next_io`], then bring the
    ///   rest while [`Self::wants_input`] says so.
    pub fn receive(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) -> usize {
        self.clock.pass(now);
        // Before what has come: its host may have given it up, and have done it by another path.
        if self.clock.next_wakeup().is_some_and(|at| at <= now) {
            self.on_wakeup(now);
        }
        let Some(index) = self.connections.find(connection) else { return bytes.len() };
        // Requests may be about bytes of the last call.
        if self.io.requests.hold_input() {
            return 0;
        }
        let (mut input, commands) = (Input::new(bytes), self.observer.counters.commands);
        while !self.io.requests.suffice()
            && self.connections[index].takes_input(&self.limits)
            && self.take_pdu(index, &mut input)
        {}
        if self.observer.counters.commands > commands {
            self.restart_keep_alive(index);
        }
        self.refresh_idle(index);
        input.taken()
    }

    /// Whether the target takes bytes of the connection: read its socket only then.
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        self.connections.get(connection).is_some_and(|place| place.takes_input(&self.limits))
    }

    /// The output of a connection, as slices in order: headers, and data straight from the buffers
    /// that backends filled. It ends where data are lent: see [`Self::pieces`].
    pub fn transmit(&self, connection: ConnectionId) -> Slices<'_> {
        self.connections.get(connection).map_or(Slices::none(), |place| place.out.slices())
    }

    /// The output of a connection, in order. Blocks that are lent belong to [`Self::lender`].
    pub fn pieces(&self, connection: ConnectionId) -> Pieces<'_> {
        self.connections.get(connection).map_or(Pieces::none(), |place| place.out.pieces())
    }

    /// The backend whose blocks [`Self::pieces`] may name; `None` when it names none.
    pub fn lender(&self, connection: ConnectionId) -> Option<BackendId> {
        self.io.lender(connection)
    }

    /// Whether the connection has output.
    pub fn has_output(&self, connection: ConnectionId) -> bool {
        self.connections.get(connection).is_some_and(|place| !place.out.is_empty())
    }

    /// The socket has sent this many bytes of the output.
    pub fn transmitted(&mut self, connection: ConnectionId, bytes: usize) {
        let Some(index) = self.connections.find(connection).filter(|_| bytes > 0) else { return };
        if self.connections.transmitted(index, bytes, &mut self.io, &mut self.clock) {
            self.unpark(index);
        }
    }

    /// The socket accepts no more for now: [`Self::next_io`] requests the bytes of all loans. Call
    /// it for a connection with a [lender](Self::lender) before the backend does anything else.
    /// Returns their number; their requests come next.
    pub fn end_loans(&mut self, connection: ConnectionId) -> usize {
        match self.lender(connection) {
            Some(_) => self.io.end_loans(&mut self.connections, self.clock.now()),
            None => 0,
        }
    }

    /// Whether nobody hears of a request's result any more: the connection of its command is gone.
    /// A backend may end it early. It answers it all the same.
    pub fn is_abandoned(&self, tag: IoTag) -> bool {
        let slot = self.io.flights.working(tag);
        slot.map(|slot| &self.io.flights[slot])
            .is_some_and(|flight| flight.connection.is_none() && flight.own.is_none())
    }

    /// The socket is closed.
    pub fn closed(&mut self, now: Time, connection: ConnectionId) {
        self.clock.pass(now);
        let Some(index) = self.connections.find(connection) else { return };
        if !self.connections[index].is_closing() {
            self.detach(index, CloseReason::AssociationEnded);
        }
        self.connections.close(index, &mut self.io);
        self.tell_closed();
    }

    /// The reason to close the connection now; `None` while it stays open or has output to send.
    pub fn should_close(&self, connection: ConnectionId) -> Option<CloseReason> {
        let connection = self.connections.get(connection)?;
        match connection.stage {
            Stage::Closing(reason) if connection.out.is_empty() => Some(reason),
            _ => None,
        }
    }

    /// A connection that has output or has to be closed; each once until it changes again.
    pub fn next_active(&mut self) -> Option<ConnectionId> {
        self.connections.next_active()
    }

    /// The next request to a backend.
    pub fn next_io(&mut self) -> Option<IoRequest> {
        self.io.next(&mut self.connections, self.clock.now())
    }

    /// Takes the answer of a backend, once for each request. An answer that no request awaits is
    /// counted and dropped.
    pub fn complete(&mut self, now: Time, tag: IoTag, result: IoResult) {
        self.clock.pass(now);
        match self.io.answer(tag, result) {
            Answer::Unknown => self.observer.counters.unknown_results += 1,
            Answer::Partial => {}
            Answer::Loan { slot, is_granted } => self.on_loan_answered(slot, is_granted),
            Answer::Complete(slot) => self.on_worked(slot),
        }
    }

    /// The time to call [`Self::on_wakeup`] at the latest; `None` without a deadline. May be
    /// earlier than needed.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.clock.next_wakeup()
    }

    /// Closes what has passed its deadline. Call it at [`Self::next_wakeup`] or later.
    pub fn on_wakeup(&mut self, now: Time) {
        self.clock.pass(now);
        self.expire();
        let deadlines = [self.controllers.earliest_deadline(), self.connections.earliest_deadline()];
        self.clock.restart(deadlines.into_iter().flatten().min());
    }

    /// The oldest notice that was not fetched.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.observer.next_notice()
    }

    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        self.observer.counters
    }

    /// Numbers of what exists now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            connections: self.connections.count() as u64,
            controllers: self.controllers.count() as u64,
            commands: self.io.flights.open_count() as u64,
            data_bytes: self.connections.iter().map(|(_, connection)| connection.charged).sum(),
            pool_bytes: self.io.pool.held(),
        }
    }

    /// The controller of a connection that has one.
    fn controller_of(&mut self, index: u32) -> Option<&mut Controller> {
        let id = self.connections[index].controller()?;
        self.controllers.get_mut(id)
    }
}
