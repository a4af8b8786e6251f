//! Changes while hosts are connected: of namespaces, ANA states and authentication. Events notify
//! hosts.

use crate::log::AnaState;
use crate::target::authentication::AuthenticationConfig;
use crate::target::config::{ConfigError, NamespaceConfig, PathState};
use crate::target::controller::{Controller, Role};
use crate::target::events::SubsystemEvent;
use crate::target::notice::CloseReason;
use crate::target::reservations::Reservations;
use crate::target::subsystem::{Namespace, Path, Subsystem};
use crate::target::{BackendId, Target};
use crate::{Nqn, Status};

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManageError {
    /// No such subsystem.
    #[error("there is no subsystem {0}")]
    Subsystem(Box<Nqn>),
    /// No such namespace.
    #[error("{subsystem} has no namespace {id}")]
    Namespace {
        /// The subsystem.
        subsystem: Box<Nqn>,
        /// The namespace.
        id: u32,
    },
    /// It is there already.
    #[error("{subsystem} has namespace {id} already")]
    Exists {
        /// The subsystem.
        subsystem: Box<Nqn>,
        /// The namespace.
        id: u32,
    },
    /// It cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Subsystem {
    fn namespace_mut(&mut self, id: u32) -> Result<&mut Namespace, ManageError> {
        let subsystem = self.config.name;
        let namespace = self.namespaces.get_mut(&id);
        namespace.ok_or(ManageError::Namespace { subsystem: subsystem.into(), id })
    }

    pub(super) fn put_namespace(&mut self, config: NamespaceConfig) {
        self.namespaces.insert(config.id, Namespace::new(config));
    }

    pub(super) fn put_path(&mut self, path: PathState) {
        self.path_changes += 1;
        let changes = self.path_changes;
        self.paths.insert((path.port, path.group), Path { state: path.state, changes });
    }
}

impl Target {
    fn find_subsystem(&self, name: Nqn) -> Result<usize, ManageError> {
        let found = self.subsystems.iter().position(|subsystem| subsystem.config.name == name);
        found.ok_or(ManageError::Subsystem(name.into()))
    }

    /// Adds a namespace, and notifies hosts.
    pub fn add_namespace(&mut self, now: base::Time, name: Nqn, config: NamespaceConfig) -> Result<(), ManageError> {
        self.clock.pass(now);
        let at = self.find_subsystem(name)?;
        let (subsystem, id) = (&mut self.subsystems[at], config.id);
        config.check(subsystem.config.namespace_max)?;
        if subsystem.namespaces.contains_key(&id) {
            return Err(ManageError::Exists { subsystem: name.into(), id });
        }
        subsystem.put_namespace(config);
        self.on_subsystem_event(at, SubsystemEvent::NamespaceChanged(id));
        Ok(())
    }

    /// Removes a namespace, and notifies hosts. Commands that its backend has not begun fail. The
    /// others end as the backend answers: keep it until it has answered all. Returns the backend.
    pub fn remove_namespace(&mut self, now: base::Time, name: Nqn, id: u32) -> Result<BackendId, ManageError> {
        self.clock.pass(now);
        let at = self.find_subsystem(name)?;
        self.drop_namespace(at, id).ok_or(ManageError::Namespace { subsystem: name.into(), id })
    }

    pub(super) fn drop_namespace(&mut self, at: usize, id: u32) -> Option<BackendId> {
        let gone = self.subsystems[at].namespaces.remove(&id)?;
        for slot in gone.waiting {
            self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        }
        self.on_subsystem_event(at, SubsystemEvent::NamespaceChanged(id));
        Some(gone.config.backend)
    }

    /// Resizes a namespace, and notifies hosts. A backend has to grow before, and may shrink only
    /// after.
    pub fn resize_namespace(&mut self, now: base::Time, name: Nqn, id: u32, blocks: u64) -> Result<(), ManageError> {
        self.clock.pass(now);
        let at = self.find_subsystem(name)?;
        let most = self.subsystems[at].config.namespace_max;
        let namespace = self.subsystems[at].namespace_mut(id)?;
        NamespaceConfig { blocks, ..namespace.config.clone() }.check(most)?;
        namespace.config.blocks = blocks;
        self.on_subsystem_event(at, SubsystemEvent::NamespaceChanged(id));
        Ok(())
    }

    /// Sets the ANA state of a group of namespaces on a port, and notifies hosts of that port.
    pub fn set_path(&mut self, now: base::Time, name: Nqn, path: PathState) -> Result<(), ManageError> {
        self.clock.pass(now);
        let at = self.find_subsystem(name)?;
        self.change_path(at, path);
        Ok(())
    }

    pub(super) fn change_path(&mut self, at: usize, path: PathState) {
        self.subsystems[at].put_path(path);
        self.on_subsystem_event(at, SubsystemEvent::PathChanged(path.port));
    }

    /// Passes an event of a subsystem to its controllers, which report it to their hosts.
    pub(super) fn on_subsystem_event(&mut self, at: usize, event: SubsystemEvent<'_>) {
        let told = self.controllers.on_subsystem_event(at, event);
        self.report_events(&told);
    }

    /// The discovery log changed.
    pub(super) fn on_discovery_change(&mut self) {
        self.ports.generation += 1;
        let told = self.controllers.on_discovery_change();
        self.report_events(&told);
    }

    pub(super) fn end_controllers(&mut self, reason: CloseReason, is_out: impl Fn(&Controller) -> bool) {
        let out = self.controllers.ids_of(is_out);
        out.into_iter().for_each(|id| self.end_controller(id, reason));
    }

    /// Replaces the authentication of a subsystem. A host with another secret than before, or with
    /// a new one, loses its controllers.
    pub fn set_authentication(
        &mut self,
        now: base::Time,
        name: Nqn,
        authentication: Option<AuthenticationConfig>,
    ) -> Result<(), ManageError> {
        self.clock.pass(now);
        let at = self.find_subsystem(name)?;
        self.renew_authentication(at, authentication);
        Ok(())
    }

    pub(super) fn renew_authentication(&mut self, at: usize, authentication: Option<AuthenticationConfig>) {
        let old = std::mem::replace(&mut self.subsystems[at].config.authentication, authentication);
        let new = self.subsystems[at].config.authentication.as_ref();
        let is_other = |host: &Nqn| {
            let secrets = new.and_then(|config| config.hosts.get(host));
            secrets.is_some() && secrets != old.as_ref().and_then(|config| config.hosts.get(host))
        };
        let out = self.controllers.ids_of(|known| known.role == Role::Storage(at) && is_other(&known.host));
        out.into_iter().for_each(|id| self.end_controller(id, CloseReason::Replaced));
    }

    /// The ANA state of a group of namespaces on a port.
    pub fn path(&self, name: Nqn, port: crate::target::PortId, group: u32) -> Result<AnaState, ManageError> {
        Ok(self.subsystems[self.find_subsystem(name)?].path(port, group).state)
    }

    /// The reservations of a namespace.
    pub fn reservations(&self, name: Nqn, id: u32) -> Result<&Reservations, ManageError> {
        let namespace = self.subsystems[self.find_subsystem(name)?].namespaces.get(&id);
        let namespace = namespace.ok_or(ManageError::Namespace { subsystem: name.into(), id })?;
        Ok(&namespace.config.reservations)
    }
}
