//! From a plan to a target and its backends.

use crate::backend::storage::{DiskFile, Hold, Memory, Nothing, Storage};
use crate::backend::{BackendParts, Backends, Drive};
use crate::error::StartError;
use crate::identity::{Image, Uuid, identity_of, name_with, new_uuid, serial_with, uuid_text};
use crate::in_use::InUse;
use crate::listen::resolve;
use crate::secrets::Secrets;
use crate::state::{NamespaceName, SharedState, locked};
use base::{Bytes, Span};
use nvme::log::{AddressFamily, AnaState, TransportSecurity};
use nvme::target::{
    BackendId, HostAccess, NamespaceConfig, PathState, PortConfig, PortId, Reservations, SubsystemConfig, TargetConfig,
    TargetLimits,
};
use nvme::{Nqn, Text};
use plan::target::{
    AccessName, Backend, IoName, Limits, Namespace, Path, Port, Subsystem, TargetPlan, TlsName, uuid_bytes,
};
use runtime::draft::Draft;
use runtime::files::allow_connections;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Data of one H2CData and of one C2HData: the value of widely used targets, which hosts are known
/// to support.
const DATA_PDU_BYTES: u32 = 128 << 10;
/// Granularity of keep-alive timeouts: a second. Most hosts ask for five.
const KEEP_ALIVE_100_MS: u16 = 10;
/// As in widely used targets (AERL 3).
const EVENTS: u16 = 4;
/// Entries of the error log (ELPE).
const ERRORS: u16 = 64;
/// Notices kept between two turns of the loop.
const NOTICES: usize = 4096;
/// Highest namespace identifier (NN): the most that a target takes, so that any can be added later.
const NAMESPACES: u32 = 1024;

/// An open namespace, kept for later changes.
pub(crate) struct Opened {
    pub plan: Namespace,
    pub backend: BackendId,
    pub blocks: u64,
    uuid: Uuid,
    storage: Arc<dyn Storage>,
    image: Option<Image>,
}

/// Makes disks smaller when no loop shows their old size any more: when the last one drops it.
pub(crate) struct Shrinking(Vec<(NamespaceName, Shrink)>);

struct Shrink {
    storage: Arc<dyn Storage>,
    bytes: u64,
}

impl Shrinking {
    /// Those of `opened` that are smaller now. A file without a size keeps its length.
    pub(crate) fn of(opened: &OpenedByName) -> Shrinking {
        let shrink = |opened: &Opened| {
            let bytes = opened.blocks << block_shift(&opened.plan);
            let is_smaller = opened.plan.size.is_some() && bytes < opened.storage.bytes();
            is_smaller.then(|| Shrink { storage: opened.storage.clone(), bytes })
        };
        Shrinking(opened.iter().filter_map(|(name, opened)| Some((name.clone(), shrink(opened)?))).collect())
    }
}

impl Drop for Shrinking {
    fn drop(&mut self) {
        for (name, Shrink { storage, bytes }) in self.0.drain(..) {
            if let Err(error) = storage.resize(bytes) {
                tracing::error!(subsystem = name.subsystem, namespace = name.namespace, %error, "not shrunk");
            }
        }
    }
}

/// Makes a storage in place of the plan's own, for tests of power loss.
pub type OpenStorage<'a> = &'a dyn Fn(&Namespace) -> Option<Arc<dyn Storage>>;

/// Threads that wait for the pages of a volume: that many commands are under way at a time.
const VOLUME_THREADS: u32 = 64;

/// Every namespace with its backend, by name.
pub(crate) type OpenedByName = BTreeMap<NamespaceName, Opened>;

pub(crate) fn name_of(subsystem: &Subsystem, namespace: &Namespace) -> NamespaceName {
    NamespaceName { subsystem: subsystem.name().to_owned(), namespace: namespace.id }
}

/// The file that serves a namespace, if the plan names one.
fn path_of(plan: &Namespace) -> Option<&str> {
    match &plan.backend {
        Backend::File { path, .. } | Backend::Flash { path: Some(path), .. } => Some(path),
        Backend::Ram | Backend::Null | Backend::Volume { .. } | Backend::Flash { path: None, .. } => None,
    }
}

/// A namespace's properties as hosts see them.
fn namespace_config(
    opened: &Opened,
    lends: bool,
    (reservations, keeps_reservations): (Reservations, bool),
) -> NamespaceConfig {
    let Opened { plan, backend, blocks, uuid, .. } = opened;
    NamespaceConfig {
        id: plan.id,
        backend: *backend,
        blocks: *blocks,
        block_shift: block_shift(plan),
        uuid: *uuid,
        nguid: *uuid,
        eui64: [0; 8],
        group: plan.group,
        is_read_only: plan.read_only,
        // A volume's write is in the memory of every live replica when it is answered.
        has_volatile_cache: matches!(plan.backend, Backend::File { .. } | Backend::Flash { .. }),
        keeps_reservations,
        lends,
        reservations,
    }
}

fn block_shift(plan: &Namespace) -> u8 {
    plan.block.count().trailing_zeros() as u8
}

/// A storage that has grown, and its former size.
struct Grown {
    storage: Arc<dyn Storage>,
    bytes: u64,
    /// Of the underlying file.
    length: Option<u64>,
}

/// All resources of a plan, opened and not yet used. Dropping it takes everything back;
/// [`Self::keep`] keeps it.
pub(crate) struct Preparation<'a> {
    pub backends: &'a mut Backends,
    pub state: &'a SharedState,
    /// The namespaces that are served now.
    pub before: &'a OpenedByName,
    pub open: OpenStorage<'a>,
    pub secrets: &'a Secrets,
    pub in_use: &'a InUse,
    drafts: Vec<Draft>,
    added: Vec<BackendId>,
    new: Vec<Arc<dyn Storage>>,
    grown: Vec<Grown>,
    /// Files whose lock becomes shared or exclusive, and whether it was shared before.
    reshared: Vec<(Arc<dyn Storage>, bool)>,
    /// Files whose room becomes reserved or is so no more, and whether it was before.
    kept_room: Vec<(Arc<dyn Storage>, bool)>,
}

/// A plan with all names filled in, and its resources.
pub(crate) struct Prepared {
    pub plan: TargetPlan,
    pub config: TargetConfig,
    pub opened: OpenedByName,
}

impl<'a> Preparation<'a> {
    pub(crate) fn new(
        backends: &'a mut Backends,
        state: &'a SharedState,
        before: &'a OpenedByName,
        open: OpenStorage<'a>,
        secrets: &'a Secrets,
        in_use: &'a InUse,
    ) -> Preparation<'a> {
        let (drafts, added, new) = (Vec::new(), Vec::new(), Vec::new());
        let (grown, reshared, kept_room) = (Vec::new(), Vec::new(), Vec::new());
        Preparation { backends, state, before, open, secrets, in_use, drafts, added, new, grown, reshared, kept_room }
    }

    /// Opens everything that `plan` names and is not open yet. `old` is the plan that is served
    /// now, and `ports` are those of `plan`, in order.
    pub(crate) fn prepare(
        &mut self,
        plan: &TargetPlan,
        old: Option<&TargetPlan>,
        ports: &[(PortId, SocketAddr)],
    ) -> Result<Prepared, StartError> {
        let mut plan = plan.clone();
        plan.subsystems.iter_mut().for_each(|subsystem| known_names(subsystem, old));
        let mut all = Vec::new();
        for subsystem in &plan.subsystems {
            let namespaces = subsystem.namespaces.iter();
            let opened = namespaces.map(|namespace| self.opened(name_of(subsystem, namespace), namespace));
            all.push(opened.collect::<Result<Vec<Opened>, _>>()?);
        }
        for (subsystem, opened) in plan.subsystems.iter_mut().zip(&all) {
            self.give_names(subsystem, opened.first())?;
        }
        let named = plan.subsystems.iter().zip(all);
        let named = named.flat_map(|(subsystem, all)| {
            all.into_iter().map(|opened| (name_of(subsystem, &opened.plan), opened)).collect::<Vec<_>>()
        });
        let opened: OpenedByName = named.collect();
        check_identities(&opened)?;
        allow_connections(plan.limits.connections.into());
        for (name, opened) in opened.iter().filter(|(_, opened)| self.added.contains(&opened.backend)) {
            self.backends.name(opened.backend, name.clone());
        }
        let config = self.configure(&plan, ports, &opened)?;
        let state = locked(self.state).draft();
        self.drafts.extend(state.map_err(StartError::system("identities cannot be saved"))?);
        Ok(Prepared { plan, config, opened })
    }

    /// Keeps everything, or takes all of it back.
    pub(crate) fn end(self, stays: bool) -> io::Result<()> {
        if stays { self.keep() } else { Ok(()) }
    }

    /// Keeps everything.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        locked(self.state).keep();
        self.new.drain(..).filter_map(|storage| storage.file().map(DiskFile::keep)).for_each(drop);
        self.added.clear();
        self.grown.clear();
        self.reshared.clear();
        self.kept_room.clear();
        self.drafts.drain(..).try_for_each(Draft::keep)
    }

    /// A namespace that is open already, or is opened now.
    fn opened(&mut self, name: NamespaceName, plan: &Namespace) -> Result<Opened, StartError> {
        let known = self.before.get(&name);
        if let Some(known) = known.filter(|known| is_same_disk(&known.plan, plan)) {
            return self.resized(known, plan);
        }
        let (parts, image) = self.parts(plan, known)?;
        let uuid = match (plan.uuid.as_deref().and_then(uuid_bytes), &image) {
            (Some(uuid), _) => uuid,
            (None, Some(image)) => identity_of(image, &mut locked(self.state), &mut self.drafts)?,
            (None, None) => match volumes::identity_of(&plan.backend)? {
                Some(uuid) => uuid,
                None => new_uuid()?,
            },
        };
        let storage = parts.storage.clone();
        let blocks = storage.bytes() >> parts.block_shift;
        if blocks == 0 {
            let path = path_of(plan).unwrap_or_default();
            let reason = format!("it has {} bytes, and a block has {}", storage.bytes(), plan.block.count());
            return Err(StartError::file(path, reason));
        }
        let backend = self.backends.add(&name, parts)?;
        self.added.push(backend);
        Ok(Opened { plan: plan.clone(), backend, blocks, uuid, storage, image })
    }

    /// A namespace that stays, in the size of `plan`. It grows now, before hosts see it, and
    /// shrinks after they have seen it.
    fn resized(&mut self, known: &Opened, plan: &Namespace) -> Result<Opened, StartError> {
        let before = known.storage.bytes();
        let length = known.storage.file().map(DiskFile::length).transpose();
        let length = length.map_err(StartError::system("the length of a file"))?;
        let bytes = plan.size.map_or(length.unwrap_or(before), Bytes::count);
        if bytes != before && matches!(plan.backend, Backend::Flash { .. }) {
            let reason = "an emulated drive keeps its size; take it out, reload, and put it in again";
            return Err(StartError::Plan(format!("namespace {}: {reason}", plan.id)));
        }
        if bytes > before {
            self.grown.push(Grown { storage: known.storage.clone(), bytes: before, length });
            known.storage.resize(bytes).map_err(|error| {
                StartError::Plan(format!("namespace {} cannot have {bytes} bytes: {error}", plan.id))
            })?;
        }
        if let Some(file) = known.storage.file().filter(|_| plan.shared != known.plan.shared) {
            file.share(plan.shared)?;
            self.reshared.push((known.storage.clone(), known.plan.shared));
        }
        if let Some(file) = known.storage.file().filter(|_| plan.reserve != known.plan.reserve) {
            match plan.reserve {
                true => file.reserve(false).map_err(|error| StartError::file(file.path(), error))?,
                false => file.end_reservation(),
            }
            self.kept_room.push((known.storage.clone(), known.plan.reserve));
        }
        let uuid = plan.uuid.as_deref().and_then(uuid_bytes).unwrap_or(known.uuid);
        let (storage, image) = (known.storage.clone(), known.image.clone());
        let blocks = bytes >> block_shift(plan);
        Ok(Opened { plan: plan.clone(), backend: known.backend, blocks, uuid, storage, image })
    }

    /// Opens the storage of a namespace, and returns its file.
    fn parts(&mut self, plan: &Namespace, known: Option<&Opened>) -> Result<(BackendParts, Option<Image>), StartError> {
        let block_shift = block_shift(plan);
        let parts =
            |storage, threads, drive| BackendParts { storage, block_shift, io: IoName::Threads, threads, drive };
        if let Some(storage) = (self.open)(plan) {
            return Ok((parts(storage, 1, None), None));
        }
        if let Backend::Volume { rack, door, volume } = &plan.backend {
            return Ok((parts(self.volume(rack, door, volume)?, VOLUME_THREADS, None), None));
        }
        let size = plan.size.map(Bytes::count);
        let Some(path) = path_of(plan) else {
            let bytes = size.unwrap_or(0);
            if matches!(plan.backend, Backend::Null) {
                return Ok((parts(Arc::new(Nothing::new(bytes)), 0, None), None));
            }
            let memory = if plan.prefault { Memory::prefaulted } else { Memory::new }(bytes);
            let memory = memory.map_err(StartError::system("memory for a namespace"))?;
            let drive = drive_of(plan, bytes)?;
            return Ok((parts(Arc::new(memory), 0, drive), None));
        };
        let direct = matches!(plan.backend, Backend::File { direct: true, .. });
        let hold = self.hold(plan, known);
        let file = DiskFile::try_open(path.as_ref(), size, direct, plan.read_only, hold, self.in_use)?;
        let file = Arc::new(file);
        self.new.push(file.clone());
        if plan.reserve {
            file.reserve(!self.in_use.is_refused()).map_err(|error| StartError::file(path, error))?;
        }
        let image = Image::of(&file).map_err(|error| StartError::file(path, error))?;
        let drive = drive_of(plan, file.bytes())?;
        let (io, threads) = match plan.backend {
            Backend::File { io, threads, .. } => (io, threads),
            _ => (IoName::Threads, 4),
        };
        Ok((BackendParts { io, ..parts(file, threads, drive) }, Some(image)))
    }

    /// A volume of a rack. A check goes on where another process is its door.
    fn volume(&self, rack: &str, door: &str, volume: &str) -> Result<Arc<dyn Storage>, StartError> {
        match volumes::open(rack, door, volume) {
            Ok(volume) => Ok(Arc::new(volume)),
            Err(error @ StartError::InUse { .. }) => {
                self.in_use.meet(error)?;
                Ok(Arc::new(Nothing::new(volumes::bytes_of(rack, volume)?)))
            }
            Err(error) => Err(error),
        }
    }

    /// The lock for a namespace's file. A second namespace of this target with the file that does
    /// not share it is refused later, by name.
    fn hold(&self, plan: &Namespace, known: Option<&Opened>) -> Hold {
        if plan.unlocked {
            return Hold::Unlocked;
        }
        let path = path_of(plan).and_then(|path| std::fs::canonicalize(path).ok());
        let is_it = |opened: &&Opened| opened.image.as_ref().is_some_and(|image| Some(&image.path) == path.as_ref());
        let old = known.into_iter().chain(self.before.values()).find(is_it);
        let new = || {
            let files = self.new.iter().filter_map(|storage| storage.file());
            files.filter(|_| path.is_some()).find(|file| std::fs::canonicalize(file.path()).ok() == path)
        };
        match old.and_then(|opened| opened.storage.file()).or_else(new) {
            Some(file) => Hold::As(file.lock()),
            None if plan.shared => Hold::Shared,
            None => Hold::Alone,
        }
    }

    /// Generates the names that the plan leaves out: the target's own if they are kept, else those
    /// of the first disk.
    fn give_names(&self, subsystem: &mut Subsystem, first: Option<&Opened>) -> Result<(), StartError> {
        let (uuid, of) = match (locked(self.state).instance(), first) {
            (Some(uuid), _) => (uuid, subsystem.nqn.clone().unwrap_or_default()),
            (None, Some(opened)) => (opened.uuid, String::new()),
            (None, None) => (new_uuid()?, String::new()),
        };
        subsystem.nqn.get_or_insert_with(|| name_with(&uuid));
        subsystem.serial.get_or_insert_with(|| serial_with(&uuid, &of));
        Ok(())
    }

    fn configure(
        &self,
        plan: &TargetPlan,
        ports: &[(PortId, SocketAddr)],
        opened: &OpenedByName,
    ) -> Result<TargetConfig, StartError> {
        let state = locked(self.state);
        let subsystem = |plan_of_it: &Subsystem| {
            let namespaces = plan_of_it.namespaces.iter().filter_map(|namespace| {
                let name = name_of(plan_of_it, namespace);
                let opened = opened.get(&name)?;
                let reserved = (state.reservations(&name), state.is_kept());
                Some(namespace_config(opened, self.backends.lends(opened.backend), reserved))
            });
            let config = subsystem_config(plan_of_it, namespaces.collect(), ports)?;
            let authentication = self.secrets.authentication(&plan.dhchap, plan_of_it)?;
            Ok(SubsystemConfig { authentication, ..config })
        };
        Ok(TargetConfig {
            limits: limits(&plan.limits, plan.loops),
            is_strict: plan.strict,
            ports: plan
                .ports
                .iter()
                .zip(ports)
                .map(|(plan, port)| port_config(plan, *port))
                .collect::<Result<_, _>>()?,
            subsystems: plan.subsystems.iter().map(subsystem).collect::<Result<_, StartError>>()?,
        })
    }
}

impl Drop for Preparation<'_> {
    fn drop(&mut self) {
        for Grown { storage, bytes, length } in self.grown.drain(..).rev() {
            let cut = || storage.file().zip(length).map_or(Ok(()), |(file, length)| file.shorten(length));
            if let Err(error) = storage.resize(bytes).and_then(|()| cut()) {
                tracing::error!(%error, "a disk that has grown for nothing stays so");
            }
        }
        for (storage, was_shared) in self.reshared.drain(..) {
            let _ = storage.file().map(|file| file.share(was_shared));
        }
        for (storage, was_reserved) in self.kept_room.drain(..) {
            let Some(file) = storage.file() else { continue };
            match was_reserved {
                // It has the room still.
                true => _ = file.reserve(true),
                false => file.end_reservation(),
            }
        }
        self.new.drain(..).filter_map(|storage| storage.file().map(DiskFile::undo)).for_each(drop);
        self.added.drain(..).for_each(|backend| self.backends.remove(backend));
    }
}

/// Copies generated names of what is served now: they stay.
fn known_names(subsystem: &mut Subsystem, old: Option<&TargetPlan>) {
    let Some(old) = old else { return };
    if subsystem.nqn.is_none() {
        // Only a single subsystem may have no name.
        subsystem.nqn = old.subsystems.first().and_then(|known| known.nqn.clone());
    }
    let known = old.subsystems.iter().find(|known| known.nqn == subsystem.nqn);
    if let (None, Some(known)) = (&subsystem.serial, known) {
        subsystem.serial = known.serial.clone();
    }
}

/// Whether the backend of `old` can serve `new`: they differ only in properties that may change
/// while hosts are connected.
fn is_same_disk(old: &Namespace, new: &Namespace) -> bool {
    let needs_another_file = old.read_only != new.read_only && path_of(new).is_some();
    let changeable = Namespace {
        size: new.size,
        group: new.group,
        uuid: new.uuid.clone(),
        read_only: new.read_only,
        shared: new.shared,
        prefault: new.prefault,
        reserve: new.reserve,
        ..old.clone()
    };
    changeable == *new && !needs_another_file
}

/// Checks that no two namespaces have one file or one identity: hosts would take them for the same
/// data.
fn check_identities(opened: &OpenedByName) -> Result<(), StartError> {
    let pairs =
        opened.iter().enumerate().flat_map(|(at, left)| opened.iter().skip(at + 1).map(move |right| (left, right)));
    for ((left_name, left), (right_name, right)) in pairs {
        let place = |opened: &Opened| opened.image.as_ref().map(|image| image.place);
        let is_one_file = place(left).is_some() && place(left) == place(right);
        let both = || {
            let text = |name: &NamespaceName| format!("namespace {} of {}", name.namespace, name.subsystem);
            format!("{} and {}", text(left_name), text(right_name))
        };
        if is_one_file && !(left.plan.shared && right.plan.shared) {
            let reason = format!("{} both serve it; `shared = true` on both says that it is meant", both());
            return Err(StartError::file(path_of(&left.plan).unwrap_or_default(), reason));
        }
        if left.uuid == right.uuid && !is_one_file {
            let uuid = uuid_text(&left.uuid);
            tracing::warn!(uuid, "{} have one identity: a host that sees both takes them for one disk", both());
        }
    }
    Ok(())
}

fn drive_of(plan: &Namespace, bytes: u64) -> Result<Option<Drive>, StartError> {
    match &plan.backend {
        Backend::Flash { drive, seed, .. } => Drive::of_preset(drive, *seed, Bytes::new(bytes)).map(Some),
        _ => Ok(None),
    }
}

fn limits(plan: &Limits, loops: u32) -> TargetLimits {
    TargetLimits {
        connections_max: plan.connections,
        controllers_max: plan.controllers,
        controllers_per_host_max: plan.controllers_per_host,
        io_queues_max: plan.io_queues,
        queue_entries_max: u16::try_from(plan.queue_entries).unwrap_or(u16::MAX),
        // The plan's transfer size is a power of two of at least 4 KiB.
        transfer_shift: (plan.transfer.count().trailing_zeros() - 12) as u8,
        in_capsule_bytes: plan.in_capsule.count() as u32,
        host_data_max: DATA_PDU_BYTES,
        controller_data_max: DATA_PDU_BYTES,
        ready_bytes_max: DATA_PDU_BYTES,
        ready_open_max: 1,
        data_budget_bytes: plan.connection_memory.count(),
        backlog_bytes_max: plan.backlog.count() as usize,
        // Each loop has a pool of its own.
        pool_bytes_max: plan.pool.count() / u64::from(loops),
        handshake: plan.handshake,
        idle: plan.idle,
        stall: plan.stall,
        keep_alive_100_ms: KEEP_ALIVE_100_MS,
        events_max: EVENTS,
        errors_max: ERRORS,
        notices_max: NOTICES,
    }
}

fn port_config(plan: &Port, (id, bound): (PortId, SocketAddr)) -> Result<PortConfig, StartError> {
    let shown = match &plan.advertised {
        Some(text) => resolve(text).map_err(|reason| StartError::Address { text: text.clone(), reason })?,
        None => bound,
    };
    Ok(PortConfig {
        id,
        family: if shown.is_ipv6() { AddressFamily::Ipv6 } else { AddressFamily::Ipv4 },
        address: Text::new(&shown.ip().to_string()).map_err(StartError::plan)?,
        service: Text::new(&shown.port().to_string()).map_err(StartError::plan)?,
        security: match plan.tls {
            TlsName::Off => TransportSecurity::None,
            TlsName::Required => TransportSecurity::Tls13,
        },
    })
}

fn subsystem_config(
    plan: &Subsystem,
    namespaces: Vec<NamespaceConfig>,
    ports: &[(PortId, SocketAddr)],
) -> Result<SubsystemConfig, StartError> {
    let text = |error: nvme::CodecError| StartError::Plan(format!("{}: {error}", plan.name()));
    // The plan numbers its ports from 1 and names no others.
    let port = |number: u16| ports[usize::from(number) - 1].0;
    Ok(SubsystemConfig {
        name: Nqn::new(plan.name()).map_err(text)?,
        serial: Text::new(plan.serial.as_deref().unwrap_or_default()).map_err(text)?,
        model: Text::new(&plan.model).map_err(text)?,
        firmware: Text::new(env!("CARGO_PKG_VERSION")).map_err(text)?,
        hosts: host_access(plan)?,
        authentication: None,
        ports: plan.ports.iter().map(|number| port(*number)).collect(),
        namespace_max: NAMESPACES,
        namespaces,
        paths: plan.paths.iter().map(|path| PathState { port: port(path.port), ..path_state(path) }).collect(),
    })
}

/// The hosts that may use a subsystem.
fn host_access(plan: &Subsystem) -> Result<HostAccess, StartError> {
    let Some(names) = &plan.hosts else { return Ok(HostAccess::Any) };
    let names: Result<_, nvme::CodecError> = names.iter().map(|name| Nqn::new(name)).collect();
    Ok(HostAccess::Listed(names.map_err(|error| StartError::Plan(format!("{}: {error}", plan.name())))?))
}

fn path_state(path: &Path) -> PathState {
    let state = match path.access {
        AccessName::Optimized => AnaState::Optimized,
        AccessName::NonOptimized => AnaState::NonOptimized,
        AccessName::Inaccessible => AnaState::Inaccessible,
        AccessName::PersistentLoss => AnaState::PersistentLoss,
        AccessName::Change => AnaState::Change,
    };
    PathState { port: PortId(path.port), group: path.group, state }
}

/// Longest time that an orderly shutdown waits for backends.
pub(crate) const END_WAIT: Span = Span::secs(10);
