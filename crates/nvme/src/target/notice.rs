//! Notices and counters for the operator of a target.

use crate::auth::FailureReason;
use crate::pdu::{FatalStatus, PduError};
use crate::target::flight::{Flight, Transfer};
use crate::target::io::IoStatus;
use crate::target::{ConnectionId, PortId, TargetLimits};
use crate::{Body, HostId, Io, Nqn, Status};
use std::collections::VecDeque;

/// Why a connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The host broke the protocol; a termination said so.
    #[error("the host broke the protocol: {0}")]
    Protocol(PduError),
    /// The host ended it with a termination.
    #[error("the host ended the connection: {0:?}")]
    HostTerminated(FatalStatus),
    /// Neither ICReq nor Connect arrived in time.
    #[error("no Connect came in time")]
    Handshake,
    /// It had not authenticated, or not even sent Connect, and the limit of connections was reached
    /// when another came.
    #[error("it made room for another connection: its host had not said or proven who it is")]
    Displaced,
    /// The host failed to authenticate, or did not in time.
    #[error("the host did not authenticate")]
    Authentication,
    /// Its host may no longer use the subsystem.
    #[error("the host is no longer allowed")]
    NotAllowed,
    /// Its host has to authenticate with another secret or key.
    #[error("its secret or key is another now")]
    Replaced,
    /// Its port or subsystem was removed or replaced.
    #[error("its port or subsystem was removed or changed")]
    Removed,
    /// The connection was idle for too long.
    #[error("the host was silent for too long")]
    Idle,
    /// The host did not read its data.
    #[error("the host did not read for too long")]
    Stalled,
    /// The keep-alive timeout of its controller passed.
    #[error("no keep-alive came in time")]
    KeepAlive,
    /// Its controller was reset.
    #[error("the host reset the controller")]
    Reset,
    /// The admin connection of its controller is gone.
    #[error("the admin connection is gone")]
    AssociationEnded,
    /// The host disconnected the queue.
    #[error("the host disconnected the queue")]
    Disconnected,
    /// A backend could not read the blocks that it had lent: the header with the data's length may
    /// have been sent.
    #[error("a backend failed in the middle of an answer")]
    Backend,
}

/// Why an authentication failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationFault {
    /// This side refused the host.
    #[error("{0}")]
    Refused(FailureReason),
    /// The host ended it.
    #[error("the host ended it: {0}")]
    HostEnded(FailureReason),
    /// The host took too long.
    #[error("nothing came in time")]
    Late,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The limit of open connections is reached.
    #[error("{most} connections are open, no more are allowed")]
    Connections {
        /// The limit.
        most: u32,
    },
    /// No such port.
    #[error("port {0:?} is not configured")]
    Port(PortId),
}

/// Deviations of hosts in use that other targets tolerate too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Tolerated {
    /// CC.CSS is 6, although CAP.CSS does not offer it (Base 2.0, Figure 46). It is taken as the
    /// NVM command set.
    #[error("CC.CSS = 6, which CAP does not offer")]
    CommandSets,
    /// Connect leaves HOSTNQN empty (Base 2.0, 6.3).
    #[error("Connect without a HOSTNQN")]
    NoName,
    /// A command has the identifier of an outstanding event request. The host has dropped the
    /// request.
    #[error("the identifier of an outstanding event request is used again")]
    EventIdentifier,
    /// The HOSTID of an I/O queue is not that of the admin queue (Base 2.0, 6.3).
    #[error("the HOSTID of an I/O queue is not that of its admin queue")]
    OtherHostId,
}

impl Tolerated {
    /// A distinct bit, for sets.
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Something that the operator of a target may want to know. Its text is for a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Notice {
    /// A host has a controller.
    #[error("host {host} has controller {controller} of {subsystem}")]
    Connected {
        /// By which connection.
        connection: ConnectionId,
        /// The host.
        host: Nqn,
        /// Its identifier.
        host_id: HostId,
        /// The subsystem.
        subsystem: Nqn,
        /// The controller.
        controller: u16,
    },
    /// A host has an I/O queue.
    #[error("controller {controller} has queue {queue} of {entries} entries")]
    QueueConnected {
        /// By which connection.
        connection: ConnectionId,
        /// The controller.
        controller: u16,
        /// The queue.
        queue: u16,
        /// Its entries.
        entries: u32,
    },
    /// A host is not allowed to connect.
    #[error("host {host} may not use {subsystem}: {status}")]
    NotAllowed {
        /// The host.
        host: Nqn,
        /// The subsystem.
        subsystem: Nqn,
        /// The status that it got.
        status: Status,
    },
    /// A host has as many controllers as it may have.
    #[error("host {host} may not connect to {subsystem}: it has {most} controllers, the limit of a host")]
    Crowded {
        /// The host.
        host: Nqn,
        /// The subsystem.
        subsystem: Nqn,
        /// The limit.
        most: u16,
    },
    /// A deviation from the specification was tolerated. Once of each kind on a connection.
    #[error("tolerated: {what}")]
    Tolerated {
        /// On which connection.
        connection: ConnectionId,
        /// The deviation.
        what: Tolerated,
    },
    /// A host did not authenticate.
    #[error("host {host} did not authenticate to {subsystem}: {why}")]
    NotAuthenticated {
        /// By which connection.
        connection: ConnectionId,
        /// The name that it gave.
        host: Nqn,
        /// The subsystem.
        subsystem: Nqn,
        /// The reason.
        why: AuthenticationFault,
    },
    /// A controller is gone.
    #[error("controller {controller} of host {host} is gone: {reason}")]
    ControllerGone {
        /// The controller.
        controller: u16,
        /// Its host.
        host: Nqn,
        /// The reason.
        reason: CloseReason,
    },
    /// A connection ends.
    #[error("connection closes: {reason}")]
    Closing {
        /// The connection.
        connection: ConnectionId,
        /// The reason.
        reason: CloseReason,
    },
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections taken.
    pub connections_accepted: u64,
    /// Connections refused for their number.
    pub connections_refused: u64,
    /// Connections that made room for others.
    pub connections_displaced: u64,
    /// Connections that broke the protocol.
    pub protocol_errors: u64,
    /// Received commands.
    pub commands: u64,
    /// Commands that failed.
    pub commands_failed: u64,
    /// Reads that were answered with data.
    pub reads: u64,
    /// Writes that were answered with success.
    pub writes: u64,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Bytes that writes brought.
    pub written_bytes: u64,
    /// Reads and writes that the medium failed.
    pub media_errors: u64,
    /// Data digests that were wrong.
    pub data_digest_errors: u64,
    /// Failed authentications.
    pub authentications_failed: u64,
    /// Keep-alive timeouts.
    pub keep_alive_expirations: u64,
    /// Results that backends gave of requests that were not theirs.
    pub unknown_results: u64,
    /// Notices that nobody fetched.
    pub notices_dropped: u64,
}

/// Numbers of what exists now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections.
    pub connections: u64,
    /// Controllers.
    pub controllers: u64,
    /// Outstanding commands.
    pub commands: u64,
    /// Bytes of data that commands hold.
    pub data_bytes: u64,
    /// Bytes of free buffers.
    pub pool_bytes: u64,
}

/// Adds field by field.
macro_rules! sum {
    ($name:ident: $($field:ident),+ $(,)?) => {
        impl std::ops::Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name { $($field: self.$field + other.$field),+ }
            }
        }
    };
}

sum!(Counters: connections_accepted, connections_refused, connections_displaced, protocol_errors, commands,
    commands_failed, reads, writes, read_bytes, written_bytes, media_errors, data_digest_errors,
    authentications_failed, keep_alive_expirations, unknown_results, notices_dropped);
sum!(Gauges: connections, controllers, commands, data_bytes, pool_bytes);

/// What the target reports to its operator.
#[derive(Debug)]
pub(super) struct Observer {
    notices: VecDeque<Notice>,
    notices_max: usize,
    pub(super) counters: Counters,
}

impl Observer {
    pub(super) fn new(limits: &TargetLimits) -> Self {
        Observer { notices: VecDeque::new(), notices_max: limits.notices_max, counters: Counters::default() }
    }

    /// Keeps a notice, and drops the oldest where there are too many.
    pub(super) fn notice(&mut self, notice: Notice) {
        if self.notices.len() >= self.notices_max {
            self.notices.pop_front();
            self.counters.notices_dropped += 1;
        }
        self.notices.push_back(notice);
    }

    pub(super) fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Counts a command that ends.
    pub(super) fn count(&mut self, flight: &Flight, status: Status) {
        let counters = &mut self.counters;
        if !status.is_success() {
            counters.commands_failed += 1;
            let is_media = [IoStatus::ReadError, IoStatus::WriteError].iter().any(|known| known.status() == status);
            counters.media_errors += u64::from(is_media);
            return;
        }
        match (&flight.command.body, flight.transfer) {
            (Body::Io(Io::Read(_)), Transfer::Out(bytes)) => {
                counters.reads += 1;
                counters.read_bytes += u64::from(bytes);
            }
            (Body::Io(Io::Write(_)), Transfer::In(bytes)) => {
                counters.writes += 1;
                counters.written_bytes += u64::from(bytes);
            }
            _ => {}
        }
    }

    /// An authentication failed.
    pub(super) fn authentication_failed(
        &mut self,
        connection: ConnectionId,
        names: (Nqn, Nqn),
        why: AuthenticationFault,
    ) {
        let (host, subsystem) = names;
        self.counters.authentications_failed += 1;
        self.notice(Notice::NotAuthenticated { connection, host, subsystem, why });
    }
}
