//! Configuration of a target: all limits and identities, without defaults.

use crate::identify::IDENTIFY_BYTES;
use crate::log::{AddressFamily, AnaState, TransportSecurity};
use crate::pdu::HOST_DATA_MAX_MIN;
use crate::target::authentication::AuthenticationConfig;
use crate::target::reservations::Reservations;
use crate::target::{BackendId, PortId};
use crate::{Nqn, Text};
use base::Span;
use std::collections::BTreeSet;

/// Configuration of a target.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// Limits of peers.
    pub limits: TargetLimits,
    /// Ports.
    pub ports: Vec<PortConfig>,
    /// Subsystems.
    pub subsystems: Vec<SubsystemConfig>,
    /// Refuse all deviations from the specification, even those that [other targets
    /// tolerate](super::Tolerated).
    pub is_strict: bool,
}

/// Limits of peers, which are checked before memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// Most connections at a time, with those before Connect.
    pub connections_max: u32,
    /// Controllers at a time.
    pub controllers_max: u16,
    /// Controllers of one host, by its name, at a time.
    pub controllers_per_host_max: u16,
    /// I/O queues of a controller.
    pub io_queues_max: u16,
    /// Entries of an I/O queue (CAP.MQES + 1, MAXCMD): 2 and up. More entries of a host do not mean
    /// more commands at a time.
    pub queue_entries_max: u16,
    /// Longest transfer, as a power of two of 4 KiB (MDTS): 1 to 15, as 0 would mean no limit.
    pub transfer_shift: u8,
    /// In-capsule data of I/O queues (IOCCSZ x 16 - 64): a multiple of 16.
    pub in_capsule_bytes: u32,
    /// Data of one H2CData (MAXH2CDATA): at least 4,096, a multiple of 4.
    pub host_data_max: u32,
    /// Data of one C2HData.
    pub controller_data_max: u32,
    /// Bytes of one R2T.
    pub ready_bytes_max: u32,
    /// R2Ts of a command that are open at a time; never more than the host's MAXR2T + 1.
    pub ready_open_max: u32,
    /// Data that commands of one connection hold at a time, without in-capsule data (bound by
    /// entries times their size). At least the longest transfer.
    pub data_budget_bytes: u64,
    /// Bytes of output that wait for a host before its input is no longer read.
    pub backlog_bytes_max: usize,
    /// Free buffers of all connections that are kept for later commands.
    pub pool_bytes_max: u64,
    /// Longest time until ICReq, and then until Connect.
    pub handshake: Span,
    /// Longest silence of a connection whose controller has no keep-alive timeout; `None` for ever.
    pub idle: Option<Span>,
    /// Longest time in which a host reads nothing of its output.
    pub stall: Span,
    /// Granularity of keep-alive timeouts (KAS), units of 100 ms: at least 1. Timeouts are rounded
    /// up to it.
    pub keep_alive_100_ms: u16,
    /// Asynchronous event requests at a time (AERL + 1): 1 to 256.
    pub events_max: u16,
    /// Entries of the error log: 1 to 256.
    pub errors_max: u16,
    /// Notices that wait to be fetched; older ones are dropped and counted.
    pub notices_max: usize,
}

impl TargetLimits {
    /// Longest transfer, bytes.
    pub const fn transfer_bytes(&self) -> u32 {
        (IDENTIFY_BYTES as u32) << self.transfer_shift
    }
}

/// A port, as the discovery log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The number of the port.
    pub id: PortId,
    /// Family of the address.
    pub family: AddressFamily,
    /// Address as text.
    pub address: Text<256>,
    /// TCP port in decimal.
    pub service: Text<32>,
    /// TLS of the port.
    pub security: TransportSecurity,
}

/// The hosts that may use a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAccess {
    /// All.
    Any,
    /// These.
    Listed(BTreeSet<Nqn>),
}

impl HostAccess {
    /// Whether `host` is one of them.
    pub fn allows(&self, host: &Nqn) -> bool {
        match self {
            HostAccess::Any => true,
            HostAccess::Listed(hosts) => hosts.contains(host),
        }
    }
}

/// A subsystem.
#[derive(Clone, Debug)]
pub struct SubsystemConfig {
    /// Its name.
    pub name: Nqn,
    /// Serial number: the same after every restart.
    pub serial: Text<20>,
    /// Model.
    pub model: Text<40>,
    /// Firmware revision.
    pub firmware: Text<8>,
    /// Hosts that may use it.
    pub hosts: HostAccess,
    /// Hosts that have to authenticate, if any.
    pub authentication: Option<AuthenticationConfig>,
    /// Its ports.
    pub ports: BTreeSet<PortId>,
    /// Highest namespace identifier (NN): 1 to 1,024.
    pub namespace_max: u32,
    /// Namespaces at the start.
    pub namespaces: Vec<NamespaceConfig>,
    /// ANA states of groups by port; optimized if not given.
    pub paths: Vec<PathState>,
}

/// ANA state of a group on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The port.
    pub port: PortId,
    /// The group, from 1 on.
    pub group: u32,
    /// The ANA state.
    pub state: AnaState,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// Its identifier, from 1 on.
    pub id: u32,
    /// The backend of its data.
    pub backend: BackendId,
    /// Blocks: at least 1.
    pub blocks: u64,
    /// Bytes of a block as a power of two: 9 to 16.
    pub block_shift: u8,
    /// Stable unique name (UUID), in the byte order of RFC 4122.
    pub uuid: [u8; 16],
    /// Stable unique name (NGUID), or zeros.
    pub nguid: [u8; 16],
    /// Stable unique name, or zeros.
    pub eui64: [u8; 8],
    /// ANA group, from 1 on.
    pub group: u32,
    /// Writes are refused.
    pub is_read_only: bool,
    /// Writes may stay in a volatile cache until they are flushed.
    pub has_volatile_cache: bool,
    /// Whether the backend keeps reservations through a power loss, by
    /// [`IoOperation::PersistReservations`](super::IoOperation).
    pub keeps_reservations: bool,
    /// The backend keeps its data in memory, and answers requests in order before it takes the next
    /// one. It lends the data of reads ([`IoOperation::Lend`](super::IoOperation::Lend)) and writes
    /// from the input ([`IoOperation::WriteInput`](super::IoOperation::WriteInput)).
    pub lends: bool,
    /// Reservations that have survived the last run.
    pub reservations: Reservations,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number outside of its bounds.
    #[error("{field}: {got} is outside {least}..={most}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The given value.
        got: u64,
        /// Least allowed.
        least: u64,
        /// Most allowed.
        most: u64,
    },
    /// A duplicate name or number.
    #[error("{what} {name} is there twice")]
    Twice {
        /// The kind.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An unknown name or number.
    #[error("{what} {name} is not there")]
    Missing {
        /// The kind.
        what: &'static str,
        /// Its name.
        name: String,
    },
}

/// Checks that `got` is in bounds.
fn between(field: &'static str, got: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    if (least..=most).contains(&got) { Ok(()) } else { Err(ConfigError::OutOfRange { field, got, least, most }) }
}

impl TargetConfig {
    /// Checks the whole configuration.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.limits.check()?;
        let mut ports = BTreeSet::new();
        for port in &self.ports {
            once(&mut ports, port.id, "port", port.id.0)?;
        }
        let mut names = BTreeSet::from([Nqn::discovery()]);
        for subsystem in &self.subsystems {
            once(&mut names, subsystem.name, "subsystem", subsystem.name)?;
            subsystem.check(&ports)?;
        }
        Ok(())
    }
}

fn once<T: Ord>(
    known: &mut BTreeSet<T>,
    new: T,
    what: &'static str,
    name: impl std::fmt::Display,
) -> Result<(), ConfigError> {
    if known.insert(new) { Ok(()) } else { Err(ConfigError::Twice { what, name: name.to_string() }) }
}

impl TargetLimits {
    fn check(&self) -> Result<(), ConfigError> {
        between("connections", self.connections_max.into(), 1, 1 << 20)?;
        between("controllers", self.controllers_max.into(), 1, 0xffef)?;
        between("controllers of a host", self.controllers_per_host_max.into(), 1, 0xffef)?;
        between("I/O queues", self.io_queues_max.into(), 1, 0xfffe)?;
        between("queue entries", self.queue_entries_max.into(), 2, u64::from(u16::MAX))?;
        between("transfer shift", self.transfer_shift.into(), 1, 15)?;
        between("in-capsule bytes", (self.in_capsule_bytes / 16).into(), 0, 1 << 16)?;
        between("in-capsule bytes modulo 16", (self.in_capsule_bytes % 16).into(), 0, 0)?;
        between("MAXH2CDATA", self.host_data_max.into(), HOST_DATA_MAX_MIN.into(), u32::MAX.into())?;
        between("MAXH2CDATA modulo 4", (self.host_data_max % 4).into(), 0, 0)?;
        between("C2HData bytes", self.controller_data_max.into(), 4, 1 << 30)?;
        between("R2T bytes", self.ready_bytes_max.into(), 4, u32::MAX.into())?;
        between("open R2Ts", self.ready_open_max.into(), 1, 1 << 10)?;
        between("data budget", self.data_budget_bytes, self.transfer_bytes().into(), 1 << 40)?;
        between("backlog", self.backlog_bytes_max as u64, 4096, 1 << 30)?;
        between("keep-alive granularity", self.keep_alive_100_ms.into(), 1, u64::from(u16::MAX))?;
        between("event requests", self.events_max.into(), 1, 256)?;
        between("error log entries", self.errors_max.into(), 1, 256)
    }
}

impl SubsystemConfig {
    fn check(&self, ports: &BTreeSet<PortId>) -> Result<(), ConfigError> {
        // A list of namespaces has one page, and the log of changed ones holds as many (Base 2.0,
        // 5.16.1.5).
        between("highest namespace", self.namespace_max.into(), 1, 1024)?;
        let named = self.ports.iter().copied().chain(self.paths.iter().map(|path| path.port));
        for port in named {
            if !ports.contains(&port) {
                return Err(ConfigError::Missing { what: "port", name: port.0.to_string() });
            }
        }
        let (mut ids, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for namespace in &self.namespaces {
            once(&mut ids, namespace.id, "namespace", namespace.id)?;
            // Hosts take namespaces with one name for the same (Base 2.0, 4.5.1).
            let uuid = u128::from_be_bytes(namespace.uuid);
            once(&mut uuids, uuid, "the UUID", format_args!("{uuid:032x} of namespace {}", namespace.id))?;
            namespace.check(self.namespace_max)?;
        }
        Ok(())
    }
}

impl NamespaceConfig {
    /// Checks a namespace of a subsystem whose highest is `namespace_max`.
    pub(super) fn check(&self, namespace_max: u32) -> Result<(), ConfigError> {
        between("namespace", self.id.into(), 1, namespace_max.into())?;
        between("block shift", self.block_shift.into(), 9, 16)?;
        between("blocks", self.blocks, 1, u64::MAX >> self.block_shift)?;
        between("group", self.group.into(), 1, 1024)
    }
}
