//! From a plan to a target and its backends.

use crate::backend::storage::{DiskFile, Memory, Nothing, Storage};
use crate::backend::{BackendParts, Backends, Drive};
use crate::error::StartError;
use crate::listen::resolve;
use crate::secrets::Secrets;
use crate::state::{NamespaceName, State};
use base::{Bytes, Span};
use nvme::log::{AddressFamily, AnaState, TransportSecurity};
use nvme::target::{
    BackendId, HostAccess, NamespaceConfig, PathState, PortConfig, PortId, Reservations, SubsystemConfig, TargetConfig,
    TargetLimits,
};
use nvme::{Nqn, Text};
use spec::target::{
    AccessName, Backend, IoName, Limits, Namespace, Path, Port, Subsystem, TargetPlan, TlsName, uuid_bytes,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Data of one H2CData and of one C2HData: what widely used targets take, so that hosts are known to get on with it.
const DATA_PDU_BYTES: u32 = 128 << 10;
/// Keep-alive in steps of a second: hosts ask for some, most for five.
const KEEP_ALIVE_100_MS: u16 = 10;
/// As widely used targets have it (AERL 3).
const EVENTS: u16 = 4;
/// Entries of the error log (ELPE).
const ERRORS: u16 = 64;
/// Notices between two looks of the loop.
const NOTICES: usize = 4096;
/// Numbers that namespaces may have (NN): the most that a target takes, so that any can be added later.
const NAMESPACES: u32 = 1024;

/// A namespace as it came to be, for changes later.
pub(crate) struct Opened {
    pub plan: Namespace,
    pub backend: BackendId,
    pub blocks: u64,
}

/// How a storage is made in place of the plan's own: for tests that lose power.
pub type OpenStorage<'a> = &'a dyn Fn(&Namespace) -> Option<Arc<dyn Storage>>;

/// Opens what a namespace of the plan needs.
pub(crate) fn backend_of(plan: &Namespace, open: OpenStorage<'_>) -> Result<BackendParts, StartError> {
    let block_shift = plan.block.count().trailing_zeros() as u8;
    let parts = |storage, threads, drive| BackendParts { storage, block_shift, io: IoName::Threads, threads, drive };
    if let Some(storage) = open(plan) {
        return Ok(parts(storage, 1, None));
    }
    let size = plan.size.map(Bytes::count);
    let in_memory = || -> Result<Arc<dyn Storage>, StartError> {
        let memory = if plan.prefault { Memory::prefaulted } else { Memory::new }(size.unwrap_or(0));
        Ok(Arc::new(memory.map_err(StartError::system("memory for a namespace"))?))
    };
    let in_file = |path: &str, direct| -> Result<Arc<dyn Storage>, StartError> {
        Ok(Arc::new(DiskFile::open(path.as_ref(), size, direct, plan.read_only)?))
    };
    Ok(match &plan.backend {
        Backend::Ram => parts(in_memory()?, 0, None),
        Backend::Null => parts(Arc::new(Nothing::new(size.unwrap_or(0))), 0, None),
        Backend::File { path, direct, io, threads } => {
            BackendParts { io: *io, ..parts(in_file(path, *direct)?, *threads, None) }
        }
        Backend::Flash { drive, seed, path } => {
            let (storage, threads) = match path {
                Some(path) => (in_file(path, false)?, 4),
                None => (in_memory()?, 0),
            };
            let drive = Drive::of_preset(drive, *seed, Bytes::new(storage.bytes()))?;
            parts(storage, threads, Some(drive))
        }
    })
}

/// What hosts are shown of a namespace.
pub(crate) fn namespace_config(
    plan: &Namespace,
    backend: BackendId,
    blocks: u64,
    uuid: [u8; 16],
    reservations: Reservations,
    keeps_reservations: bool,
) -> NamespaceConfig {
    NamespaceConfig {
        id: plan.id,
        backend,
        blocks,
        block_shift: plan.block.count().trailing_zeros() as u8,
        uuid,
        nguid: [0; 16],
        eui64: [0; 8],
        group: plan.group,
        is_read_only: plan.read_only,
        has_volatile_cache: !matches!(plan.backend, Backend::Ram | Backend::Null),
        keeps_reservations,
        reservations,
    }
}

/// Every namespace with its backend, by name.
pub(crate) type OpenedByName = BTreeMap<NamespaceName, Opened>;

/// A namespace of the plan, opened, before it has a backend.
pub(crate) struct Found {
    pub name: NamespaceName,
    pub plan: Namespace,
    pub parts: BackendParts,
    pub uuid: [u8; 16],
    pub reservations: Reservations,
    /// Whether there is a place for those that are to survive.
    pub keeps_reservations: bool,
}

/// Opens all namespaces. Identities are saved before any host can see them.
pub(crate) fn open_all(plan: &TargetPlan, state: &mut State, open: OpenStorage<'_>) -> Result<Vec<Found>, StartError> {
    let mut all = Vec::new();
    for subsystem in &plan.subsystems {
        for namespace in &subsystem.namespaces {
            all.push(find(name_of(subsystem, namespace), namespace, state, open)?);
        }
    }
    state.save().map_err(StartError::system("identities cannot be saved"))?;
    Ok(all)
}

/// Opens one namespace.
pub(crate) fn find(
    name: NamespaceName,
    plan: &Namespace,
    state: &mut State,
    open: OpenStorage<'_>,
) -> Result<Found, StartError> {
    let parts = backend_of(plan, open)?;
    let uuid = state.uuid(&name, plan.uuid.as_deref().and_then(uuid_bytes));
    let reservations = state.reservations(&name);
    Ok(Found { name, plan: plan.clone(), parts, uuid, reservations, keeps_reservations: state.is_kept() })
}

pub(crate) fn name_of(subsystem: &Subsystem, namespace: &Namespace) -> NamespaceName {
    NamespaceName { subsystem: subsystem.nqn.clone(), namespace: namespace.id }
}

/// The target's configuration with all backends added to `backends`.
pub(crate) fn configure(
    plan: &TargetPlan,
    addresses: &[SocketAddr],
    all: Vec<Found>,
    backends: &mut Backends,
    secrets: &Secrets,
) -> Result<(TargetConfig, OpenedByName), StartError> {
    let mut opened = OpenedByName::new();
    let mut shown: BTreeMap<String, Vec<NamespaceConfig>> = BTreeMap::new();
    for Found { name, plan: namespace, parts, uuid, reservations, keeps_reservations } in all {
        let blocks = parts.storage.bytes() >> parts.block_shift;
        let backend = backends.add(name.clone(), parts)?;
        let config = namespace_config(&namespace, backend, blocks, uuid, reservations, keeps_reservations);
        shown.entry(name.subsystem.clone()).or_default().push(config);
        opened.insert(name, Opened { plan: namespace, backend, blocks });
    }
    let numbered = plan.ports.iter().zip(addresses).zip(1..);
    let config = TargetConfig {
        limits: limits(&plan.limits),
        is_strict: plan.strict,
        ports: numbered.map(|((port, bound), number)| port_config(port, *bound, number)).collect::<Result<_, _>>()?,
        subsystems: plan
            .subsystems
            .iter()
            .map(|subsystem| {
                let authentication = secrets.authentication(&plan.dhchap, subsystem)?;
                let namespaces = shown.remove(&subsystem.nqn).unwrap_or_default();
                Ok(SubsystemConfig { authentication, ..subsystem_config(subsystem, namespaces)? })
            })
            .collect::<Result<_, StartError>>()?,
    };
    Ok((config, opened))
}

fn limits(plan: &Limits) -> TargetLimits {
    TargetLimits {
        connections_max: plan.connections,
        controllers_max: plan.controllers,
        controllers_per_host_max: plan.controllers_per_host,
        io_queues_max: plan.io_queues,
        queue_entries_max: u16::try_from(plan.queue_entries).unwrap_or(u16::MAX),
        // The plan's transfer is a power of two of at least 4 KiB.
        transfer_shift: (plan.transfer.count().trailing_zeros() - 12) as u8,
        in_capsule_bytes: plan.in_capsule.count() as u32,
        host_data_max: DATA_PDU_BYTES,
        controller_data_max: DATA_PDU_BYTES,
        ready_bytes_max: DATA_PDU_BYTES,
        ready_open_max: 1,
        data_budget_bytes: plan.connection_memory.count(),
        backlog_bytes_max: plan.backlog.count() as usize,
        pool_bytes_max: plan.pool.count(),
        handshake: plan.handshake,
        idle: plan.idle,
        stall: plan.stall,
        keep_alive_100_ms: KEEP_ALIVE_100_MS,
        events_max: EVENTS,
        errors_max: ERRORS,
        notices_max: NOTICES,
    }
}

fn port_config(plan: &Port, bound: SocketAddr, number: u16) -> Result<PortConfig, StartError> {
    let shown = match &plan.advertised {
        Some(text) => resolve(text).map_err(|reason| StartError::Address { text: text.clone(), reason })?,
        None => bound,
    };
    Ok(PortConfig {
        id: PortId(number),
        family: if shown.is_ipv6() { AddressFamily::Ipv6 } else { AddressFamily::Ipv4 },
        address: Text::new(&shown.ip().to_string()).map_err(StartError::plan)?,
        service: Text::new(&shown.port().to_string()).map_err(StartError::plan)?,
        security: match plan.tls {
            TlsName::Off => TransportSecurity::None,
            TlsName::Required => TransportSecurity::Tls13,
        },
    })
}

fn subsystem_config(plan: &Subsystem, namespaces: Vec<NamespaceConfig>) -> Result<SubsystemConfig, StartError> {
    let text = |error: nvme::CodecError| StartError::Plan(format!("{}: {error}", plan.nqn));
    Ok(SubsystemConfig {
        name: Nqn::new(&plan.nqn).map_err(text)?,
        serial: Text::new(&plan.serial).map_err(text)?,
        model: Text::new(&plan.model).map_err(text)?,
        firmware: Text::new(env!("CARGO_PKG_VERSION")).map_err(text)?,
        hosts: host_access(plan)?,
        authentication: None,
        ports: plan.ports.iter().map(|port| PortId(*port)).collect(),
        namespace_max: NAMESPACES,
        namespaces,
        paths: plan.paths.iter().map(path_state).collect(),
    })
}

/// Who may use a subsystem.
pub(crate) fn host_access(plan: &Subsystem) -> Result<HostAccess, StartError> {
    let Some(names) = &plan.hosts else { return Ok(HostAccess::Any) };
    let names: Result<_, nvme::CodecError> = names.iter().map(|name| Nqn::new(name)).collect();
    Ok(HostAccess::Listed(names.map_err(|error| StartError::Plan(format!("{}: {error}", plan.nqn)))?))
}

pub(crate) fn path_state(path: &Path) -> PathState {
    let state = match path.access {
        AccessName::Optimized => AnaState::Optimized,
        AccessName::NonOptimized => AnaState::NonOptimized,
        AccessName::Inaccessible => AnaState::Inaccessible,
        AccessName::PersistentLoss => AnaState::PersistentLoss,
        AccessName::Change => AnaState::Change,
    };
    PathState { port: PortId(path.port), group: path.group, state }
}

/// The longest that an orderly end waits for what backends still do.
pub(crate) const END_WAIT: Span = Span::secs(10);
