//! What a target is made of: every limit and every identity, given. Defaults are the caller's.

use crate::identify::IDENTIFY_BYTES;
use crate::log::{AddressFamily, AnaState, TransportSecurity};
use crate::pdu::HOST_DATA_MAX_MIN;
use crate::target::authentication::AuthenticationConfig;
use crate::target::reservations::Reservations;
use crate::target::{BackendId, PortId};
use crate::{Nqn, Text};
use base::Span;
use std::collections::BTreeSet;

/// A whole target.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// What peers may use.
    pub limits: TargetLimits,
    /// Where hosts come in.
    pub ports: Vec<PortConfig>,
    /// What they find.
    pub subsystems: Vec<SubsystemConfig>,
    /// Refuse whatever is against the specification, even what [other targets let
    /// pass](super::Tolerated).
    pub is_strict: bool,
}

/// What peers may use. All of it is bound before memory is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetLimits {
    /// Connections at a time, those included that have not said who they are.
    pub connections_max: u32,
    /// Controllers (hosts' associations) at a time.
    pub controllers_max: u16,
    /// Controllers of one host, by its name, at a time.
    pub controllers_per_host_max: u16,
    /// I/O queues of a controller.
    pub io_queues_max: u16,
    /// Entries of an I/O queue (CAP.MQES + 1, MAXCMD): 2 and up. A host that asks for more has no
    /// more commands carried out at a time.
    pub queue_entries_max: u16,
    /// Longest transfer, as a power of two of 4 KiB (MDTS): 1 to 15, as 0 would tell hosts that
    /// there is no limit.
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
    /// Data that commands of one connection hold at a time, in-capsule data (bound by entries times
    /// their size) apart. At least the longest transfer.
    pub data_budget_bytes: u64,
    /// Bytes of answers that wait for a host before nothing more is read from it.
    pub backlog_bytes_max: usize,
    /// Free buffers that are kept for later commands, of all connections.
    pub pool_bytes_max: u64,
    /// How long a host may take to send ICReq, and then Connect.
    pub handshake: Span,
    /// How long a connection may be silent whose controller has no keep-alive; `None` for ever.
    pub idle: Option<Span>,
    /// How long a host may leave what is sent to it without reading any.
    pub stall: Span,
    /// Granularity of keep-alive timeouts (KAS), units of 100 ms: at least 1. Timeouts are rounded
    /// up to it.
    pub keep_alive_100_ms: u16,
    /// Asynchronous event requests at a time (AERL + 1): 1 to 256.
    pub events_max: u16,
    /// Entries that the error log keeps: 1 to 256.
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

/// Where hosts come in, as the discovery log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Which.
    pub id: PortId,
    /// Family of the address.
    pub family: AddressFamily,
    /// Address as text.
    pub address: Text<256>,
    /// TCP port in decimal.
    pub service: Text<32>,
    /// How it is secured.
    pub security: TransportSecurity,
}

/// Which hosts may use a subsystem.
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
    /// Who may use it.
    pub hosts: HostAccess,
    /// Who of them has to prove it, if anyone.
    pub authentication: Option<AuthenticationConfig>,
    /// By which ports.
    pub ports: BTreeSet<PortId>,
    /// Highest namespace that it will ever have (NN): 1 to 1,024.
    pub namespace_max: u32,
    /// What it holds at first.
    pub namespaces: Vec<NamespaceConfig>,
    /// How groups of asymmetric access are reached by ports; optimized where nothing is said.
    pub paths: Vec<PathState>,
}

/// How a group is reached by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The port.
    pub port: PortId,
    /// The group, from 1 on.
    pub group: u32,
    /// How.
    pub state: AnaState,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceConfig {
    /// Its number, from 1 on.
    pub id: u32,
    /// Who keeps its data.
    pub backend: BackendId,
    /// Blocks: at least 1.
    pub blocks: u64,
    /// Bytes of a block as a power of two: 9 to 16.
    pub block_shift: u8,
    /// Stable unique name, in the order of RFC 4122.
    pub uuid: [u8; 16],
    /// Stable unique name (NGUID), or zeros.
    pub nguid: [u8; 16],
    /// Stable unique name, or zeros.
    pub eui64: [u8; 8],
    /// Group of asymmetric access, from 1 on.
    pub group: u32,
    /// Writes are refused.
    pub is_read_only: bool,
    /// Writes may rest in a volatile cache until they are flushed.
    pub has_volatile_cache: bool,
    /// Whether reservations that ask for it survive a loss of power: somebody carries out
    /// [`IoOperation::PersistReservations`](super::IoOperation).
    pub keeps_reservations: bool,
    /// The backend keeps its data in memory and answers requests in order before it takes the next
    /// one. It is asked to lend what is read ([`IoOperation::Lend`](super::IoOperation::Lend)) and
    /// writes from the input ([`IoOperation::WriteInput`](super::IoOperation::WriteInput)).
    pub lends: bool,
    /// Reservations that outlived the last run.
    pub reservations: Reservations,
}

/// What cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number outside of its bounds.
    #[error("{field}: {got} is outside {least}..={most}")]
    OutOfRange {
        /// Which.
        field: &'static str,
        /// What was given.
        got: u64,
        /// Least allowed.
        least: u64,
        /// Most allowed.
        most: u64,
    },
    /// Two of the same name or number.
    #[error("{what} {name} is there twice")]
    Twice {
        /// Of what kind.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name or number that nothing has.
    #[error("{what} {name} is not there")]
    Missing {
        /// Of what kind.
        what: &'static str,
        /// Its name.
        name: String,
    },
}

/// That `got` is in bounds.
fn between(field: &'static str, got: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    if (least..=most).contains(&got) { Ok(()) } else { Err(ConfigError::OutOfRange { field, got, least, most }) }
}

impl TargetConfig {
    /// That all of it can be.
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
        // Lists of namespaces are told in one page each, and the log of changed ones holds as many
        // (Base 2.0, 5.16.1.5).
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
            // Hosts take namespaces of one name for one (Base 2.0, 4.5.1).
            let uuid = u128::from_be_bytes(namespace.uuid);
            once(&mut uuids, uuid, "the UUID", format_args!("{uuid:032x} of namespace {}", namespace.id))?;
            namespace.check(self.namespace_max)?;
        }
        Ok(())
    }
}

impl NamespaceConfig {
    /// That it can be a namespace of a subsystem whose highest is `namespace_max`.
    pub(super) fn check(&self, namespace_max: u32) -> Result<(), ConfigError> {
        between("namespace", self.id.into(), 1, namespace_max.into())?;
        between("block shift", self.block_shift.into(), 9, 16)?;
        between("blocks", self.blocks, 1, u64::MAX >> self.block_shift)?;
        between("group", self.group.into(), 1, 1024)
    }
}
