//! The controller's side: a whole NVMe/TCP target as a state machine without I/O. Bytes of
//! connections go in, bytes come out, backends are asked and answer; time comes as an argument.
//!
//! | kind of call | calls |
//! | --- | --- |
//! | a socket | [`Target::accept`], [`Target::secured`], [`Target::receive`] while [`Target::wants_input`], [`Target::pieces`] and then [`Target::transmitted`], [`Target::end_loans`], [`Target::should_close`], [`Target::closed`] |
//! | backends | [`Target::next_io`] until it gives `None`, after each [`Target::receive`] and before bytes are sent; [`Target::complete`] once for each |
//! | time | [`Target::next_wakeup`], [`Target::on_wakeup`] |
//! | management | [`Target::reconfigure`], [`Target::end_channels`]; one by one [`Target::add_namespace`], [`Target::remove_namespace`], [`Target::resize_namespace`], [`Target::set_path`], [`Target::set_authentication`]; [`Target::reservations`] |
//! | whoever watches | [`Target::next_notice`], [`Target::counters`], [`Target::gauges`] |
//!
//! After any of them [`Target::next_active`] names the connections that have bytes to send or have
//! to be closed, each once, and `next_io` may have more.
//!
//! Every command that came is answered once or dropped with its connection, whoever fails
//! meanwhile; a result of a backend for a command whose connection is gone is taken and dropped.
//! What a host can make the target hold is bound by [`TargetLimits`] before it is taken.

mod admin;
mod answers;
mod authentication;
mod commands;
mod config;
mod connection;
mod controller;
mod controllers;
mod fabrics;
mod features;
mod finish;
mod flight;
mod identify;
mod io;
mod link;
mod loans;
mod logs;
mod manage;
mod notice;
mod nvm;
mod properties;
mod reconfigure;
mod requests;
mod reservations;
mod reserve;
mod sdirect;
mod subsystem;
mod timers;

pub use crate::outgoing::{Piece, Pieces, Slices};
pub use authentication::{AuthenticationConfig, HostSecrets};
pub use config::{
    ConfigError, HostAccess, NamespaceConfig, PathState, PortConfig, SubsystemConfig, TargetConfig, TargetLimits,
};
pub use io::{
    BlockRange, CopySource, EngineDevice, EngineOperation, EnginePlace, IoOperation, IoRequest, IoResult, IoStatus,
    IoTag,
};
pub use manage::ManageError;
pub use notice::{AuthenticationFault, CloseReason, Counters, Gauges, Notice, Refused, Tolerated};
pub use reconfigure::{Change, Fate};
pub use reservations::{HeldKind, REGISTRANTS_MAX, RegisteredHost, Reservations};

use crate::Nqn;
use crate::pool::Pool;
use base::Time;
use connection::{Connections, Stage};
use controllers::Controllers;
use flight::Flights;
use link::Input;
use loans::Loans;
use requests::Requests;
use std::collections::VecDeque;
use subsystem::Subsystem;

/// A place where hosts come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId(pub u16);

/// Who keeps the data of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackendId(pub u32);

/// One connection; never the name of another, later one.
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

/// Whom the peer of a secured connection has proved to be: what its pre-shared key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The host.
    pub host: Nqn,
    /// What it may connect to.
    pub subsystem: Nqn,
}

/// All subsystems, namespaces, controllers and connections of a process.
#[derive(Debug)]
pub struct Target {
    limits: TargetLimits,
    ports: Vec<PortConfig>,
    subsystems: Vec<Subsystem>,
    is_strict: bool,
    /// Counts changes of what the discovery log says.
    discovery_generation: u64,
    connections: Connections,
    controllers: Controllers,
    flights: Flights,
    requests: Requests,
    loans: Option<Loans>,
    active: VecDeque<ConnectionId>,
    notices: VecDeque<Notice>,
    /// Challenges that were made.
    challenges: u64,
    pool: Pool,
    counters: Counters,
    /// The latest time that any call brought.
    now: Time,
    started: Option<Time>,
    /// No deadline is before this.
    wakeup: Option<Time>,
}

impl Target {
    /// A target without connections. Fails when `config` cannot be.
    pub fn new(config: TargetConfig) -> Result<Target, ConfigError> {
        config.check()?;
        Ok(Target {
            pool: Pool::new(config.limits.pool_bytes_max),
            limits: config.limits,
            is_strict: config.is_strict,
            ports: config.ports,
            subsystems: config.subsystems.into_iter().map(Subsystem::new).collect(),
            discovery_generation: 1,
            connections: Connections::default(),
            controllers: Controllers::default(),
            flights: Flights::default(),
            requests: Requests::default(),
            loans: None,
            active: VecDeque::new(),
            notices: VecDeque::new(),
            challenges: 0,
            counters: Counters::default(),
            now: Time::ZERO,
            started: None,
            wakeup: None,
        })
    }

    /// Numbers controllers from `last + 1` on, and not from 1: two targets that serve one subsystem
    /// must not give the same number.
    pub fn number_controllers_after(&mut self, last: u16) {
        self.controllers.number_after(last);
    }

    /// A host has opened a connection by `port`.
    pub fn accept(&mut self, now: Time, port: PortId) -> Result<ConnectionId, Refused> {
        self.pass(now);
        if !self.ports.iter().any(|known| known.id == port) {
            return Err(Refused::Port(port));
        }
        let most = self.limits.connections_max;
        if self.connections.count() >= most as usize {
            self.counters.connections_refused += 1;
            return Err(Refused::Connections { most });
        }
        self.counters.connections_accepted += 1;
        let index = self.connections.open(port, &self.limits);
        self.set_deadline(index, self.limits.handshake);
        Ok(self.connections[index].id)
    }

    /// The connection is secured from now on (TLS), by the key that `channel` names: before any
    /// byte of it is [received](Self::receive). On a port whose [security](PortConfig::security) is
    /// not `None` nobody is let in without.
    pub fn secured(&mut self, now: Time, connection: ConnectionId, channel: Channel) {
        self.pass(now);
        if let Some(index) = self.connections.find(connection) {
            self.connections[index].channel = Some(channel);
        }
    }

    /// Takes bytes of a connection, in any split, and returns how many. It takes less than all when
    /// too much waits to be sent to the host, when the connection ends, or when a backend in memory
    /// has requests to answer: take those from [`Self::next_io`], then bring the rest while
    /// [`Self::wants_input`] says so. It takes all bytes of a connection that is gone.
    pub fn receive(&mut self, now: Time, connection: ConnectionId, bytes: &[u8]) -> usize {
        self.pass(now);
        let Some(index) = self.connections.find(connection) else { return bytes.len() };
        // Requests may be about bytes of the last call.
        if self.requests.hold_input() {
            return 0;
        }
        let (mut input, commands) = (Input::new(bytes), self.counters.commands);
        while !self.requests.suffice()
            && self.connections[index].takes_input(&self.limits)
            && self.take_pdu(index, &mut input)
        {}
        if self.counters.commands > commands {
            self.keep_alive_of(index);
        }
        self.refresh_idle(index);
        input.taken()
    }

    /// Whether bytes of the host would be taken: read its socket only then.
    pub fn wants_input(&self, connection: ConnectionId) -> bool {
        let index = self.connections.find(connection);
        index.is_some_and(|index| self.connections[index].takes_input(&self.limits))
    }

    /// What waits to be sent, as slices in order: headers, and data straight from the buffers that
    /// backends filled. It ends where data are lent: [`Self::pieces`] goes on.
    pub fn transmit(&self, connection: ConnectionId) -> Slices<'_> {
        match self.connections.find(connection) {
            Some(index) => self.connections[index].out.slices(),
            None => Slices::none(),
        }
    }

    /// Whether anything waits to be sent.
    pub fn has_output(&self, connection: ConnectionId) -> bool {
        self.connections.find(connection).is_some_and(|index| !self.connections[index].out.is_empty())
    }

    /// So many bytes of [`Self::transmit`] have left.
    pub fn transmitted(&mut self, connection: ConnectionId, bytes: usize) {
        let Some(index) = self.connections.find(connection).filter(|_| bytes > 0) else { return };
        let place = &mut self.connections[index];
        let freed = place.out.advance(bytes, &mut self.pool);
        place.charged -= freed.bytes;
        self.loans_over(freed.loans);
        self.restart_stall(index);
        if freed.bytes > 0 {
            self.unpark(index);
        }
    }

    /// The socket is gone.
    pub fn closed(&mut self, now: Time, connection: ConnectionId) {
        self.pass(now);
        let Some(index) = self.connections.find(connection) else { return };
        if !self.connections[index].is_closing() {
            self.detach(index, CloseReason::AssociationEnded);
        }
        if let Some(mut gone) = self.connections.close(index) {
            let freed = gone.out.clear(&mut self.pool);
            self.loans_over(freed.loans);
        }
    }

    /// Whether the connection has to be closed now, and why. What had to be sent first has been
    /// sent.
    pub fn should_close(&self, connection: ConnectionId) -> Option<CloseReason> {
        let connection = &self.connections[self.connections.find(connection)?];
        match connection.stage {
            Stage::Closing(reason) if connection.out.is_empty() => Some(reason),
            _ => None,
        }
    }

    /// A connection that has something to send or has to be closed; each once until it changes
    /// again.
    pub fn next_active(&mut self) -> Option<ConnectionId> {
        loop {
            let id = self.active.pop_front()?;
            if let Some(index) = self.connections.find(id) {
                self.connections[index].is_active = false;
                return Some(id);
            }
        }
    }

    /// What a backend has to do next.
    pub fn next_io(&mut self) -> Option<IoRequest> {
        if self.loans.is_some() && self.requests.first().is_some_and(|next| self.ends_loans(next)) {
            self.end_all_loans();
        }
        self.requests.take()
    }

    /// When to call [`Self::on_wakeup`] at the latest; `None` when nothing is awaited. May be
    /// earlier than needed.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    /// What happened since the last call, oldest first.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// How much was done.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many there are now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            connections: self.connections.count() as u64,
            controllers: self.controllers.count() as u64,
            commands: self.flights.open_count() as u64,
            data_bytes: self.connections.iter().map(|(_, connection)| connection.charged).sum(),
            pool_bytes: self.pool.held(),
        }
    }

    /// Whether something against the specification may pass; tells of it once a connection.
    fn tolerates(&mut self, index: u32, what: Tolerated) -> bool {
        let place = &mut self.connections[index];
        let (connection, is_new) = (place.id, place.tolerated & what.bit() == 0);
        if !self.is_strict && is_new {
            place.tolerated |= what.bit();
            self.notice(Notice::Tolerated { connection, what });
        }
        !self.is_strict
    }

    /// Time never goes back.
    fn pass(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.started.get_or_insert(now);
    }

    /// The connection has something for the caller.
    fn mark_active(&mut self, index: u32) {
        let connection = &mut self.connections[index];
        if !connection.is_active {
            connection.is_active = true;
            self.active.push_back(connection.id);
        }
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() >= self.limits.notices_max {
            self.notices.pop_front();
            self.counters.notices_dropped += 1;
        }
        self.notices.push_back(notice);
    }
}
