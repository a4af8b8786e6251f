//! Another configuration for a running target: one call that changes everything or nothing.

use crate::log::AnaState;
use crate::target::config::{ConfigError, HostAccess, NamespaceConfig, PathState, PortConfig, SubsystemConfig};
use crate::target::connection::Connection;
use crate::target::controller::{Controller, Role};
use crate::target::events::SubsystemEvent;
use crate::target::notice::CloseReason;
use crate::target::subsystem::Subsystem;
use crate::target::{Channel, PortId, Ports, Target, TargetConfig};
use crate::{Nqn, Text};
use base::Time;
use std::collections::BTreeSet;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fate {
    /// It is new.
    #[error("added")]
    Added,
    /// It is gone.
    #[error("removed")]
    Removed,
    /// It is another one under the same number.
    #[error("replaced")]
    Replaced,
    /// It has another size.
    #[error("resized to {0} blocks")]
    Resized(u64),
    /// Something else of it differs.
    #[error("changed")]
    Changed,
}

/// One thing that [`Target::reconfigure`] has done, in the words of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Change {
    /// A port.
    #[error("port {}:{} {fate}", .address.as_str(), .service.as_str())]
    Port {
        /// Its address, as in the discovery log.
        address: Text<256>,
        /// Its TCP port.
        service: Text<32>,
        /// The change.
        fate: Fate,
    },
    /// A subsystem.
    #[error("subsystem {subsystem} {fate}")]
    Subsystem {
        /// The subsystem.
        subsystem: Nqn,
        /// The change.
        fate: Fate,
    },
    /// Access to a subsystem.
    #[error("{what} of {subsystem} changed")]
    Access {
        /// Of which.
        subsystem: Nqn,
        /// Its hosts, their secrets, or its ports.
        what: &'static str,
    },
    /// A namespace.
    #[error("namespace {namespace} of {subsystem} {fate}")]
    Namespace {
        /// Of which subsystem.
        subsystem: Nqn,
        /// The namespace.
        namespace: u32,
        /// The change.
        fate: Fate,
    },
    /// The ANA state of a group on a port.
    #[error("path by port {} to group {} of {subsystem}: {:?}", .path.port.0, .path.group, .path.state)]
    Path {
        /// Of which subsystem.
        subsystem: Nqn,
        /// The path.
        path: PathState,
    },
}

impl Ports {
    fn change(&mut self, ports: Vec<PortConfig>, changes: &mut Vec<Change>) {
        let mut tell = |port: &PortConfig, fate| {
            changes.push(Change::Port { address: port.address, service: port.service, fate });
        };
        for old in &self.all {
            match ports.iter().find(|new| new.id == old.id) {
                None => tell(old, Fate::Removed),
                Some(new) if new != old => tell(new, Fate::Changed),
                Some(_) => {}
            }
        }
        for new in ports.iter().filter(|new| !self.all.iter().any(|old| old.id == new.id)) {
            tell(new, Fate::Added);
        }
        self.all = ports;
    }
}

impl Subsystem {
    fn change_access(&mut self, hosts: HostAccess, ports: BTreeSet<PortId>, changes: &mut Vec<Change>) {
        let config = &mut self.config;
        let subsystem = config.name;
        if config.ports != ports {
            config.ports = ports;
            changes.push(Change::Access { subsystem, what: "ports" });
        }
        if config.hosts != hosts {
            config.hosts = hosts;
            changes.push(Change::Access { subsystem, what: "hosts" });
        }
    }
}

impl Target {
    /// Changes the target to `config`, or fails and changes nothing. Limits stay, and so do the
    /// reservations of namespaces that stay.
    ///
    /// A namespace stays if number, backend, size of blocks and names do. Hosts that may no longer
    /// connect lose their controllers; events notify the others. Backends of removed namespaces
    /// have to answer what they have begun.
    pub fn reconfigure(&mut self, now: Time, config: TargetConfig) -> Result<Vec<Change>, ConfigError> {
        config.check()?;
        self.clock.pass(now);
        let mut changes = Vec::new();
        self.remove_subsystems(&config, &mut changes);
        self.ports.change(config.ports, &mut changes);
        for subsystem in config.subsystems {
            match self.subsystems.iter().position(|known| known.config.name == subsystem.name) {
                Some(at) => self.change_subsystem(at, subsystem, &mut changes),
                None => {
                    changes.push(Change::Subsystem { subsystem: subsystem.name, fate: Fate::Added });
                    self.subsystems.push(Subsystem::new(subsystem));
                }
            }
        }
        self.end_strangers();
        if changes.iter().any(|change| !matches!(change, Change::Namespace { .. } | Change::Path { .. })) {
            self.on_discovery_change();
        }
        Ok(changes)
    }

    /// Ends the connections whose pre-shared key does not hold any more, for a reason such as
    /// [`CloseReason::NotAllowed`].
    pub fn end_channels(&mut self, now: Time, reason: CloseReason, holds: impl Fn(&Channel) -> bool) {
        self.clock.pass(now);
        let out = self.connections.indexes_of(|place| place.channel.as_ref().is_some_and(|channel| !holds(channel)));
        self.end_connections(reason, out);
    }

    fn remove_subsystems(&mut self, config: &TargetConfig, changes: &mut Vec<Change>) {
        let stays = |name: Nqn| config.subsystems.iter().any(|subsystem| subsystem.name == name);
        for at in (0..self.subsystems.len()).rev() {
            let subsystem = self.subsystems[at].config.name;
            if stays(subsystem) {
                continue;
            }
            self.end_controllers(CloseReason::Removed, |known| known.role == Role::Storage(at));
            self.subsystems.remove(at);
            // Controllers know their subsystem by its place.
            for controller in self.controllers.iter_mut() {
                if let Role::Storage(place) = &mut controller.role {
                    *place -= usize::from(*place > at);
                }
            }
            changes.push(Change::Subsystem { subsystem, fate: Fate::Removed });
        }
    }

    fn change_subsystem(&mut self, at: usize, new: SubsystemConfig, changes: &mut Vec<Change>) {
        let subsystem = new.name;
        let old = &self.subsystems[at].config;
        if (old.serial, old.model, old.namespace_max) != (new.serial, new.model, new.namespace_max) {
            // A connected host has read the old ones and would not read them again.
            self.end_controllers(CloseReason::Removed, |known| known.role == Role::Storage(at));
            changes.push(Change::Subsystem { subsystem, fate: Fate::Changed });
        }
        let SubsystemConfig { namespaces, paths, authentication, .. } = new;
        self.subsystems[at].change_access(new.hosts, new.ports, changes);
        let secrets = |config: &Option<super::AuthenticationConfig>| config.as_ref().map(|config| config.hosts.clone());
        if secrets(&self.subsystems[at].config.authentication) != secrets(&authentication) {
            changes.push(Change::Access { subsystem, what: "secrets" });
        }
        self.renew_authentication(at, authentication);
        let config = &mut self.subsystems[at].config;
        (config.serial, config.model, config.namespace_max) = (new.serial, new.model, new.namespace_max);
        self.change_namespaces(at, namespaces, changes);
        self.change_paths(at, &paths, changes);
    }

    fn change_namespaces(&mut self, at: usize, new: Vec<NamespaceConfig>, changes: &mut Vec<Change>) {
        let subsystem = self.subsystems[at].config.name;
        let is_gone = |id: &u32| !new.iter().any(|namespace| namespace.id == *id);
        let gone: Vec<u32> = self.subsystems[at].namespaces.keys().copied().filter(is_gone).collect();
        for id in gone {
            self.drop_namespace(at, id);
            changes.push(Change::Namespace { subsystem, namespace: id, fate: Fate::Removed });
        }
        for namespace in new {
            let id = namespace.id;
            if let Some(fate) = self.change_namespace(at, namespace) {
                changes.push(Change::Namespace { subsystem, namespace: id, fate });
                self.on_subsystem_event(at, SubsystemEvent::NamespaceChanged(id));
            }
        }
    }

    /// Changes one namespace to `new`; `None` without a difference.
    fn change_namespace(&mut self, at: usize, new: NamespaceConfig) -> Option<Fate> {
        let identity =
            |config: &NamespaceConfig| (config.backend, config.block_shift, config.uuid, config.nguid, config.eui64);
        let Some(known) = self.subsystems[at].namespaces.get_mut(&new.id) else {
            self.subsystems[at].put_namespace(new);
            return Some(Fate::Added);
        };
        let old = &mut known.config;
        if identity(old) != identity(&new) {
            self.drop_namespace(at, new.id);
            self.on_subsystem_event(at, SubsystemEvent::NamespaceReplaced(new.id));
            self.subsystems[at].put_namespace(new);
            return Some(Fate::Replaced);
        }
        let new = NamespaceConfig { reservations: old.reservations.clone(), ..new };
        let old = std::mem::replace(old, new.clone());
        if old.group != new.group {
            self.subsystems[at].path_changes += 1;
            self.on_subsystem_event(at, SubsystemEvent::GroupChanged);
        }
        match (old == new, old.blocks == new.blocks) {
            (true, _) => None,
            (false, true) => Some(Fate::Changed),
            (false, false) => Some(Fate::Resized(new.blocks)),
        }
    }

    /// A path that is no longer spoken of is optimized again.
    fn change_paths(&mut self, at: usize, new: &[PathState], changes: &mut Vec<Change>) {
        let known = self.subsystems[at].paths.iter();
        let known = known.map(|(&(port, group), path)| PathState { port, group, state: path.state });
        let old: Vec<PathState> = known.filter(|path| path.state != AnaState::Optimized).collect();
        let is_said = |path: &PathState| new.iter().any(|other| (other.port, other.group) == (path.port, path.group));
        let back = old.iter().filter(|path| !is_said(path) && self.ports.contain(path.port));
        let back = back.map(|path| PathState { state: AnaState::Optimized, ..*path });
        let is_news = |path: &&PathState| self.subsystems[at].path(path.port, path.group).state != path.state;
        let changed: Vec<PathState> = back.chain(new.iter().filter(is_news).copied()).collect();
        for path in changed {
            self.change_path(at, path);
            changes.push(Change::Path { subsystem: self.subsystems[at].config.name, path });
        }
    }

    /// Ends controllers and connections that could not connect now.
    fn end_strangers(&mut self) {
        let subsystems = &self.subsystems;
        let reaches =
            |known: &Controller| known.subsystem().is_none_or(|at| subsystems[at].config.ports.contains(&known.port));
        let may =
            |known: &Controller| known.subsystem().is_none_or(|at| subsystems[at].config.hosts.allows(&known.host));
        let unreached = self.controllers.ids_of(|known| !reaches(known));
        let refused = self.controllers.ids_of(|known| !may(known));
        unreached.into_iter().for_each(|id| self.end_controller(id, CloseReason::Removed));
        refused.into_iter().for_each(|id| self.end_controller(id, CloseReason::NotAllowed));
        let out = self.connections.indexes_of(|place| !self.ports.contain(place.port));
        self.end_connections(CloseReason::Removed, out);
        let is_out = |place: &Connection| place.channel.is_none() && !self.ports.is_plain(place.port);
        let out = self.connections.indexes_of(is_out);
        self.end_connections(CloseReason::NotAllowed, out);
    }

    /// Ends connections, and controllers with any of theirs.
    fn end_connections(&mut self, reason: CloseReason, out: Vec<u32>) {
        for index in out {
            match self.connections[index].controller() {
                Some(controller) => self.end_controller(controller, reason),
                None => self.close(index, reason),
            }
        }
    }
}
