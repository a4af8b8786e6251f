//! Changes of a running target: what a new plan has that the old one has not.

use crate::backend::Backends;
use crate::secrets::Secrets;
use crate::setup::{Opened, OpenedByName, find, host_access, name_of, namespace_config, path_state};
use crate::state::{NamespaceName, SharedState, locked};
use base::Time;
use nvme::Nqn;
use nvme::log::AnaState;
use nvme::target::{PathState, Target};
use spec::target::{Dhchap, Namespace, Subsystem, TargetPlan};

/// The parts of a server that change.
pub(crate) struct Managed<'a> {
    pub now: Time,
    pub target: &'a mut Target,
    pub backends: &'a mut Backends,
    pub opened: &'a mut OpenedByName,
    pub state: &'a SharedState,
}

impl Managed<'_> {
    /// Makes of `old` what `new` says, as far as that goes while hosts are connected, and logs what it does. What has failed stays as it was.
    pub(crate) fn apply(&mut self, old: &TargetPlan, new: &TargetPlan, secrets: &Secrets) {
        for subsystem in &new.subsystems {
            match old.subsystems.iter().find(|known| known.nqn == subsystem.nqn) {
                Some(known) => {
                    self.change_access(known, subsystem, &new.dhchap, secrets);
                    self.change_subsystem(known, subsystem);
                }
                None => tracing::warn!(subsystem = subsystem.nqn, "a new subsystem needs a restart"),
            }
        }
        if fixed(old) != fixed(new) {
            tracing::warn!("ports, limits, logs, records and the state's folder change with a restart only");
        }
    }

    /// Who may use it, and by which secrets: for whoever connects from now on. Who is no longer allowed is out.
    fn change_access(&mut self, old: &Subsystem, new: &Subsystem, how: &Dhchap, secrets: &Secrets) {
        let changed = self.try_change_access(old, new, how, secrets);
        if let Err(error) = changed {
            tracing::error!(subsystem = new.nqn, error, "hosts not changed");
        }
    }

    fn try_change_access(
        &mut self,
        old: &Subsystem,
        new: &Subsystem,
        how: &Dhchap,
        secrets: &Secrets,
    ) -> Result<(), String> {
        let nqn = Nqn::new(&new.nqn).map_err(|error| error.to_string())?;
        // What hosts have to prove comes first, so that nobody who is let in by its name alone slips in between.
        let authentication = secrets.authentication(how, new).map_err(|error| error.to_string())?;
        self.target.set_authentication(self.now, nqn, authentication).map_err(|error| error.to_string())?;
        if old.hosts != new.hosts {
            let hosts = host_access(new).map_err(|error| error.to_string())?;
            self.target.set_hosts(self.now, nqn, hosts).map_err(|error| error.to_string())?;
            tracing::info!(subsystem = new.nqn, "hosts changed");
        }
        Ok(())
    }

    fn change_subsystem(&mut self, old: &Subsystem, new: &Subsystem) {
        let Ok(nqn) = Nqn::new(&new.nqn) else { return };
        let gone = |opened: &NamespaceName| {
            opened.subsystem == new.nqn && !new.namespaces.iter().any(|namespace| namespace.id == opened.namespace)
        };
        let gone: Vec<NamespaceName> = self.opened.keys().filter(|name| gone(name)).cloned().collect();
        gone.iter().for_each(|name| self.remove(nqn, name));
        for namespace in &new.namespaces {
            let name = name_of(new, namespace);
            match self.opened.get(&name) {
                None => self.add(nqn, name, namespace),
                Some(opened) if opened.plan == *namespace => {}
                Some(opened) if (Namespace { size: namespace.size, ..opened.plan.clone() }) == *namespace => {
                    self.resize(nqn, &name, namespace);
                }
                Some(_) => tracing::warn!(
                    subsystem = name.subsystem,
                    namespace = name.namespace,
                    "only the size of a namespace can change; take it out, reload, and put it in again"
                ),
            }
        }
        self.change_paths(nqn, old, new);
    }

    fn add(&mut self, nqn: Nqn, name: NamespaceName, plan: &Namespace) {
        let (subsystem, namespace) = (name.subsystem.clone(), name.namespace);
        match self.try_add(nqn, name, plan) {
            Ok(()) => tracing::info!(subsystem, namespace, "namespace added"),
            Err(error) => tracing::error!(subsystem, namespace, error, "namespace not added"),
        }
    }

    fn try_add(&mut self, nqn: Nqn, name: NamespaceName, plan: &Namespace) -> Result<(), String> {
        let mut state = locked(self.state);
        let found = find(name.clone(), plan, &mut state, &|_| None).map_err(|error| error.to_string())?;
        state.save().map_err(|error| error.to_string())?;
        drop(state);
        let blocks = found.parts.storage.bytes() >> found.parts.block_shift;
        let backend = self.backends.add(name.clone(), found.parts).map_err(|error| error.to_string())?;
        let config = namespace_config(plan, backend, blocks, found.uuid, found.reservations, found.keeps_reservations);
        self.target.add_namespace(self.now, nqn, config).map_err(|error| {
            self.backends.remove(backend);
            error.to_string()
        })?;
        self.opened.insert(name, Opened { plan: plan.clone(), backend, blocks });
        Ok(())
    }

    fn remove(&mut self, nqn: Nqn, name: &NamespaceName) {
        let (subsystem, namespace) = (&name.subsystem, name.namespace);
        match self.target.remove_namespace(self.now, nqn, namespace) {
            Ok(backend) => {
                self.backends.remove(backend);
                self.opened.remove(name);
                tracing::info!(subsystem, namespace, "namespace removed");
            }
            Err(error) => tracing::error!(subsystem, namespace, %error, "namespace not removed"),
        }
    }

    fn resize(&mut self, nqn: Nqn, name: &NamespaceName, plan: &Namespace) {
        let (subsystem, namespace) = (&name.subsystem, name.namespace);
        match self.try_resize(nqn, name, plan) {
            Ok(bytes) => tracing::info!(subsystem, namespace, bytes, "namespace resized"),
            Err(error) => tracing::error!(subsystem, namespace, error, "namespace not resized"),
        }
    }

    /// A backend grows before hosts see it, and shrinks after.
    fn try_resize(&mut self, nqn: Nqn, name: &NamespaceName, plan: &Namespace) -> Result<u64, String> {
        if matches!(plan.backend, spec::target::Backend::Flash { .. }) {
            return Err("an emulated drive keeps its size".into());
        }
        let opened = self.opened.get_mut(name).ok_or("it is not there")?;
        let bytes = plan.size.ok_or("a file without a size keeps the one that it had")?.count();
        let shift = plan.block.count().trailing_zeros();
        let blocks = bytes >> shift;
        let of_backend = || self.backends.resize(opened.backend, bytes).map_err(|error| error.to_string());
        if blocks > opened.blocks {
            of_backend()?;
        }
        let resized = self.target.resize_namespace(self.now, nqn, name.namespace, blocks);
        resized.map_err(|error| error.to_string())?;
        if blocks < opened.blocks {
            of_backend()?;
        }
        (opened.blocks, opened.plan) = (blocks, plan.clone());
        Ok(bytes)
    }

    fn change_paths(&mut self, nqn: Nqn, old: &Subsystem, new: &Subsystem) {
        let is_said = |path: &spec::target::Path| {
            new.paths.iter().any(|other| (other.port, other.group) == (path.port, path.group))
        };
        let back = old.paths.iter().filter(|path| !is_said(path));
        let back = back.map(|path| PathState { state: AnaState::Optimized, ..path_state(path) });
        let changed = new.paths.iter().filter(|path| !old.paths.contains(path)).map(path_state);
        for path in back.chain(changed) {
            let (port, group, state) = (path.port.0, path.group, path.state);
            match self.target.set_path(self.now, nqn, path) {
                Ok(()) => tracing::info!(subsystem = %nqn, port, group, ?state, "path changed"),
                Err(error) => tracing::error!(subsystem = %nqn, port, group, %error, "path not changed"),
            }
        }
    }
}

/// A plan without what can change while it runs.
fn fixed(plan: &TargetPlan) -> TargetPlan {
    let mut plan = plan.clone();
    for subsystem in &mut plan.subsystems {
        subsystem.namespaces.clear();
        subsystem.hosts = None;
        subsystem.paths.clear();
    }
    plan.hosts.clear();
    plan.dhchap = TargetPlan::standard().dhchap;
    plan.subsystems.sort_by(|left, right| left.nqn.cmp(&right.nqn));
    plan
}
