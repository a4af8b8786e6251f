//! A subsystem and its namespaces as they are now.

use crate::log::AnaState;
use crate::target::authentication::Exertion;
use crate::target::config::{NamespaceConfig, SubsystemConfig};
use crate::target::reservations::Intent;
use crate::target::{BackendId, PortId};
use crate::{HostId, Status};
use std::collections::{BTreeMap, VecDeque};

/// A subsystem.
#[derive(Debug)]
pub(super) struct Subsystem {
    pub(super) config: SubsystemConfig,
    pub(super) namespaces: BTreeMap<u32, Namespace>,
    /// States that are not optimized, and when they were changed, by port and group.
    pub(super) paths: BTreeMap<(PortId, u32), Path>,
    /// Counts changes of paths.
    pub(super) path_changes: u64,
    /// Recent cost of authentications.
    pub(super) exertion: Exertion,
}

/// ANA state of a group on a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) state: AnaState,
    /// The count of changes when it last changed.
    pub(super) changes: u64,
}

/// An access to a namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// For reservations; `None` if they do not restrict it.
    pub(super) intent: Option<Intent>,
    /// Blocks are changed.
    pub(super) changes: bool,
    /// First block, and number of blocks.
    pub(super) range: Option<(u64, u64)>,
}

impl Wanted {
    /// To know the namespace, no more.
    pub(super) const ANYTHING: Wanted = Wanted { intent: None, changes: false, range: None };
}

/// A namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) config: NamespaceConfig,
    /// The command that has changed the reservations and is not answered yet. Others wait.
    pub(super) reserving: Option<u32>,
    pub(super) waiting: VecDeque<u32>,
}

impl Namespace {
    pub(super) fn new(config: NamespaceConfig) -> Self {
        Namespace { config, reserving: None, waiting: VecDeque::new() }
    }

    /// Whether `host` may now make this access.
    fn admit(&self, host: HostId, wanted: Wanted) -> Result<(), Status> {
        let config = &self.config;
        let is_within = |(start, blocks): (u64, u64)| start.checked_add(blocks).is_some_and(|end| end <= config.blocks);
        if wanted.intent.is_some_and(|intent| !config.reservations.allows(host, intent)) {
            Err(Status::RESERVATION_CONFLICT.without_retry())
        } else if wanted.changes && config.is_read_only {
            Err(Status::WRITE_PROTECTED.without_retry())
        } else if !wanted.range.is_none_or(is_within) {
            Err(Status::LBA_OUT_OF_RANGE.without_retry())
        } else {
            Ok(())
        }
    }
}

impl Subsystem {
    pub(super) fn new(mut config: SubsystemConfig) -> Self {
        let namespaces = std::mem::take(&mut config.namespaces).into_iter();
        let paths = std::mem::take(&mut config.paths).into_iter();
        Subsystem {
            config,
            namespaces: namespaces.map(|namespace| (namespace.id, Namespace::new(namespace))).collect(),
            paths: paths.map(|path| ((path.port, path.group), Path { state: path.state, changes: 0 })).collect(),
            path_changes: 0,
            exertion: Exertion::default(),
        }
    }

    /// The ANA state of `group` on `port`.
    pub(super) fn path(&self, port: PortId, group: u32) -> Path {
        self.paths.get(&(port, group)).copied().unwrap_or(Path { state: AnaState::Optimized, changes: 0 })
    }

    /// The namespace `id`.
    pub(super) fn namespace(&self, id: u32) -> Result<&Namespace, Status> {
        self.namespaces.get(&id).ok_or(Status::INVALID_NAMESPACE.without_retry())
    }

    /// The namespace `id`, if `host` may now make this access by `port`.
    pub(super) fn admit(&self, port: PortId, host: HostId, id: u32, wanted: Wanted) -> Result<&Namespace, Status> {
        let namespace = self.namespace(id)?;
        match self.path(port, namespace.config.group).state {
            AnaState::Optimized | AnaState::NonOptimized => {}
            AnaState::Inaccessible => return Err(Status::ANA_INACCESSIBLE),
            AnaState::PersistentLoss => return Err(Status::ANA_PERSISTENT_LOSS),
            AnaState::Change => return Err(Status::ANA_TRANSITION),
        }
        namespace.admit(host, wanted).map(|()| namespace)
    }

    /// Backends with a volatile cache.
    pub(super) fn volatile_backends(&self) -> Vec<BackendId> {
        let namespaces = self.namespaces.values();
        namespaces.filter(|space| space.config.has_volatile_cache).map(|space| space.config.backend).collect()
    }

    /// Groups that namespaces are in, rising, each with its namespaces.
    pub(super) fn groups(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut groups = BTreeMap::<u32, Vec<u32>>::new();
        for (id, namespace) in &self.namespaces {
            groups.entry(namespace.config.group).or_default().push(*id);
        }
        groups
    }
}
