//! Changes while hosts are connected: namespaces come, go and grow, paths change. Hosts are told by
//! events.

use crate::feature::Event;
use crate::log::AnaState;
use crate::target::authentication::AuthenticationConfig;
use crate::target::config::{ConfigError, NamespaceConfig, PathState};
use crate::target::controller::{Controller, Role};
use crate::target::notice::CloseReason;
use crate::target::reservations::Reservations;
use crate::target::subsystem::{Namespace, Path};
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

impl Target {
    fn find_subsystem(&self, name: Nqn) -> Result<usize, ManageError> {
        let found = self.subsystems.iter().position(|subsystem| subsystem.config.name == name);
        found.ok_or(ManageError::Subsystem(name.into()))
    }

    fn find_namespace(&mut self, name: Nqn, id: u32) -> Result<(usize, &mut Namespace), ManageError> {
        let at = self.find_subsystem(name)?;
        let namespace = self.subsystems[at].namespaces.get_mut(&id);
        Ok((at, namespace.ok_or(ManageError::Namespace { subsystem: name.into(), id })?))
    }

    /// Adds a namespace; hosts are told.
    pub fn add_namespace(&mut self, now: base::Time, name: Nqn, config: NamespaceConfig) -> Result<(), ManageError> {
        self.pass(now);
        let at = self.find_subsystem(name)?;
        config.check(self.subsystems[at].config.namespace_max)?;
        let id = config.id;
        if self.subsystems[at].namespaces.contains_key(&id) {
            return Err(ManageError::Exists { subsystem: name.into(), id });
        }
        self.put_namespace(at, config);
        self.tell_namespace(at, id);
        Ok(())
    }

    pub(super) fn put_namespace(&mut self, at: usize, config: NamespaceConfig) {
        self.subsystems[at].namespaces.insert(config.id, Namespace::new(config));
    }

    /// Takes a namespace away; hosts are told. Commands that its backend has not begun fail, those
    /// that it works on end as they end: its backend has to stay until it has answered all. Returns
    /// whose data it were.
    pub fn remove_namespace(&mut self, now: base::Time, name: Nqn, id: u32) -> Result<BackendId, ManageError> {
        self.pass(now);
        let (at, _) = self.find_namespace(name, id)?;
        self.drop_namespace(at, id).ok_or(ManageError::Namespace { subsystem: name.into(), id })
    }

    pub(super) fn drop_namespace(&mut self, at: usize, id: u32) -> Option<BackendId> {
        let gone = self.subsystems[at].namespaces.remove(&id)?;
        for slot in gone.waiting {
            self.finish(slot, Status::INVALID_NAMESPACE.without_retry(), 0);
        }
        self.tell_namespace(at, id);
        Some(gone.config.backend)
    }

    /// Another size; hosts are told. A backend has to have grown before, and may shrink only after.
    pub fn resize_namespace(&mut self, now: base::Time, name: Nqn, id: u32, blocks: u64) -> Result<(), ManageError> {
        self.pass(now);
        let at = self.find_subsystem(name)?;
        let most = self.subsystems[at].config.namespace_max;
        let (_, namespace) = self.find_namespace(name, id)?;
        NamespaceConfig { blocks, ..namespace.config.clone() }.check(most)?;
        namespace.config.blocks = blocks;
        self.tell_namespace(at, id);
        Ok(())
    }

    /// How a port reaches a group of namespaces from now on; hosts of that port are told.
    pub fn set_path(&mut self, now: base::Time, name: Nqn, path: PathState) -> Result<(), ManageError> {
        self.pass(now);
        let at = self.find_subsystem(name)?;
        self.put_path(at, path);
        Ok(())
    }

    pub(super) fn put_path(&mut self, at: usize, path: PathState) {
        let subsystem = &mut self.subsystems[at];
        subsystem.path_changes += 1;
        let changes = subsystem.path_changes;
        subsystem.paths.insert((path.port, path.group), Path { state: path.state, changes });
        let hosts = self.controllers.ids_of(|known| known.role == Role::Storage(at) && known.port == path.port);
        self.tell_all(&hosts, Event::ASYMMETRIC_ACCESS_CHANGED);
    }

    /// What the discovery log says has changed.
    pub(super) fn tell_discovery(&mut self) {
        self.discovery_generation += 1;
        let discovery = self.controllers.ids_of(|known| known.role == Role::Discovery);
        self.tell_all(&discovery, Event::DISCOVERY_CHANGED);
    }

    pub(super) fn end_controllers(&mut self, reason: CloseReason, is_out: impl Fn(&Controller) -> bool) {
        let out = self.controllers.ids_of(is_out);
        out.into_iter().for_each(|id| self.end_controller(id, reason));
    }

    /// Who has to prove itself from now on, and by what. A host that has to by another secret than
    /// before, or had none, loses its controllers.
    pub fn set_authentication(
        &mut self,
        now: base::Time,
        name: Nqn,
        authentication: Option<AuthenticationConfig>,
    ) -> Result<(), ManageError> {
        self.pass(now);
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

    /// How a port reaches a group.
    pub fn path(&self, name: Nqn, port: crate::target::PortId, group: u32) -> Result<AnaState, ManageError> {
        Ok(self.subsystems[self.find_subsystem(name)?].path(port, group).state)
    }

    /// Who reserved a namespace.
    pub fn reservations(&self, name: Nqn, id: u32) -> Result<&Reservations, ManageError> {
        let namespace = self.subsystems[self.find_subsystem(name)?].namespaces.get(&id);
        let namespace = namespace.ok_or(ManageError::Namespace { subsystem: name.into(), id })?;
        Ok(&namespace.config.reservations)
    }

    pub(super) fn tell_namespace(&mut self, subsystem: usize, id: u32) {
        let of_subsystem = |role: Role| role == Role::Storage(subsystem);
        let mut hosts = Vec::new();
        for controller in self.controllers.iter_mut().filter(|known| of_subsystem(known.role)) {
            controller.changed_namespaces.insert(id);
            hosts.push(controller.id);
        }
        self.tell_all(&hosts, Event::NAMESPACE_CHANGED);
    }
}
