//! Replaces a plan while hosts are connected. All that can fail comes first, so that an invalid
//! plan changes nothing.

use crate::common::{Change, Parcel};
use crate::error::StartError;
use crate::in_use::InUse;
use crate::secrets::Secrets;
use crate::serving::Loop;
use crate::setup::{Opened, OpenedByName, Preparation, Prepared, Shrinking};
use base::Time;
use nvme::target::{CloseReason, Target};
use plan::target::TargetPlan;
use std::sync::Arc;

impl Loop {
    /// Changes what is served to `plan`, in all loops, and logs each change.
    pub(crate) fn change(&mut self, now: Time, plan: &TargetPlan) -> Result<(), StartError> {
        let secrets = Arc::new(Secrets::open(plan)?);
        let doors = self.doors.prepare(plan, self.poll.registry(), &InUse::Refused)?;
        let ports = self.doors.numbers(&doors);
        let security = self.security.prepare(plan, &ports)?;
        let Loop { target, backends, opened, state, secrets: old_secrets, .. } = self;
        let Some(target) = target.managed() else {
            return Err(StartError::Plan("with a journal everything stays as it began".into()));
        };
        let mut preparation = Preparation::new(backends, state, opened, &|_| None, &secrets, &InUse::Refused);
        let Prepared { plan, config, opened } = preparation.prepare(plan, Some(&self.plan), &ports)?;
        let changes = target.reconfigure(now, config.clone()).map_err(StartError::plan)?;
        // Hosts see it already. A failure to save is logged; the identity lasts until the process
        // ends.
        if let Err(error) = preparation.keep() {
            tracing::error!(%error, "identities cannot be saved");
        }
        end_channels(target, now, &plan, (&secrets, old_secrets));
        let other_keys = secrets.other_keys(old_secrets);
        let old = std::mem::replace(&mut self.opened, opened);
        self.drop_old(&old);
        self.doors.change(doors);
        self.security.change(security, &plan, &secrets);
        let old_secrets = std::mem::replace(&mut self.secrets, secrets.clone());
        self.common.ways.poll_at_most(plan.busy_poll);
        // What this loop has decided before reaches the others before.
        self.post();
        let shared = Change {
            plan: Arc::new(plan.clone()),
            config,
            backends: self.backends.all(),
            secrets,
            old_secrets,
            shrinking: Arc::new(Shrinking::of(&self.opened)),
        };
        self.common.others().for_each(|other| self.common.give(other, Parcel::Change(Box::new(shared.clone()))));
        drop(shared);
        let changes = changes.iter().map(ToString::to_string);
        let keys = other_keys.iter().map(|host| format!("TLS key of {host} changed"));
        tell(&changes.chain(keys).collect::<Vec<_>>(), &restarts(&self.plan, &plan));
        self.plan = plan;
        Ok(())
    }

    /// Takes the configuration that the first loop has taken.
    pub(crate) fn follow(&mut self, now: Time, change: Change) {
        let Change { plan, config, backends, secrets, old_secrets, shrinking } = change;
        let Some(target) = self.target.managed() else { return };
        if let Err(error) = target.reconfigure(now, config) {
            // The first loop's machine has taken the same.
            tracing::error!(%error, "a loop keeps the old configuration");
        }
        end_channels(target, now, &plan, (&secrets, &old_secrets));
        self.backends.replace(backends);
        drop(shrinking);
    }

    /// Ends backends that are no longer used.
    fn drop_old(&mut self, old: &OpenedByName) {
        let stays = |opened: &Opened| self.opened.values().any(|new| new.backend == opened.backend);
        for gone in old.values().filter(|opened| !stays(opened)) {
            self.backends.remove(gone.backend);
        }
    }
}

/// Ends connections whose key does not hold any more.
fn end_channels(target: &mut Target, now: Time, plan: &TargetPlan, (new, old): (&Secrets, &Secrets)) {
    target.end_channels(now, CloseReason::NotAllowed, |channel| new.knows(plan, channel));
    target.end_channels(now, CloseReason::Replaced, |channel| new.has_key_of(old, channel.host));
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
        ("loops", old.loops != new.loops),
        ("limits", old.limits != new.limits),
        ("strict", old.strict != new.strict),
        ("records", old.records != new.records),
    ];
    differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}
