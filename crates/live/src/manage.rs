//! Replaces a plan while hosts are connected. All that can fail comes first, so that an invalid
//! plan changes nothing.

use crate::busy_poll::BusyPoll;
use crate::error::StartError;
use crate::in_use::InUse;

use crate::secrets::Secrets;
use crate::server::Server;
use crate::setup::{Opened, Preparation, Prepared};
use base::Time;
use nvme::target::{Change, CloseReason};
use plan::target::TargetPlan;

impl Server {
    /// Changes what is served to `plan`, and logs each change.
    pub(crate) fn change(&mut self, now: Time, plan: &TargetPlan) -> Result<(), StartError> {
        let secrets = Secrets::open(plan)?;
        let doors = self.doors.prepare(plan, self.poll.registry(), &InUse::Refused)?;
        let ports = self.doors.numbers(&doors);
        let security = self.security.prepare(plan, &ports)?;
        let Server { target, backends, opened, state, secrets: old_secrets, .. } = self;
        let Some(target) = target.managed() else {
            return Err(StartError::Plan("with a journal everything stays as it began".into()));
        };
        let mut preparation = Preparation::new(backends, state, opened, &|_| None, &secrets, &InUse::Refused);
        let Prepared { plan, config, opened } = preparation.prepare(plan, Some(&self.plan), &ports)?;
        let changes = target.reconfigure(now, config).map_err(StartError::plan)?;
        // Hosts see it already. A failure to save is logged; the identity lasts until the process
        // ends.
        if let Err(error) = preparation.keep() {
            tracing::error!(%error, "identities cannot be saved");
        }
        target.end_channels(now, CloseReason::NotAllowed, |channel| secrets.knows(&plan, channel));
        target.end_channels(now, CloseReason::Replaced, |channel| secrets.has_key_of(old_secrets, channel.host));
        let other_keys = secrets.other_keys(old_secrets);
        let old = std::mem::replace(&mut self.opened, opened);
        self.drop_old(old);
        self.doors.change(doors);
        self.security.change(security, &plan, &secrets);
        self.secrets = secrets;
        self.busy_poll = BusyPoll::new(plan.busy_poll);
        let changes = changes.iter().map(Change::to_string);
        let keys = other_keys.iter().map(|host| format!("TLS key of {host} changed"));
        tell(&changes.chain(keys).collect::<Vec<_>>(), &restarts(&self.plan, &plan));
        self.plan = plan;
        Ok(())
    }

    /// Ends backends that are no longer used, and shrinks disks that are smaller now.
    fn drop_old(&mut self, old: crate::setup::OpenedByName) {
        let stays = |opened: &Opened| self.opened.values().any(|new| new.backend == opened.backend);
        for gone in old.values().filter(|opened| !stays(opened)) {
            self.backends.remove(gone.backend);
        }
        for (name, opened) in &self.opened {
            if let Err(error) = opened.shrink() {
                tracing::error!(subsystem = name.subsystem, namespace = name.namespace, %error, "not shrunk");
            }
        }
    }
}

fn tell(changes: &[String], restarts: &[&str]) {
    changes.iter().for_each(|change| tracing::info!("{change}"));
    tracing::info!(changes = changes.len(), "the file was read anew");
    if !restarts.is_empty() {
        tracing::warn!(keys = restarts.join(", "), "these keys have changed too, and need a restart");
    }
}

/// Keys that differ and cannot change while hosts are connected.
fn restarts(old: &TargetPlan, new: &TargetPlan) -> Vec<&'static str> {
    let differ = [
        ("state", old.state != new.state),
        ("metrics", old.metrics != new.metrics),
        ("log", old.log != new.log),
        ("log_format", old.log_format != new.log_format),
        ("limits", old.limits != new.limits),
        ("strict", old.strict != new.strict),
        ("records", old.records != new.records),
    ];
    differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}
