//! Authentication of hosts. Secrets in the file are parsed here, so that an error has its line;
//! messages never contain the secret.

use super::super::file::TlsName;
use super::super::{HostKeys, SecretSource, Subsystem, TargetPlan};
use super::Resolver;
use crate::error::Problem;
use nvme::auth::Secret;
use nvme::tls::TlsKey;
use std::collections::BTreeSet;

/// Checks the hosts of the file: each is listed once and allowed somewhere.
pub(super) fn hosts(resolver: &mut Resolver<'_>, plan: &TargetPlan) {
    let mut names = BTreeSet::new();
    for (index, host) in plan.hosts.iter().enumerate() {
        let key = format!("host.{index}");
        check_host(resolver, &key, host);
        if !names.insert(&host.nqn) {
            let reason = format!("{} is listed twice", host.nqn);
            resolver.report(&format!("{key}.nqn"), Problem::Conflict(reason));
        }
        let is_allowed = |subsystem: &Subsystem| subsystem.hosts.as_ref().is_some_and(|all| all.contains(&host.nqn));
        if !plan.subsystems.iter().any(is_allowed) && resolver.soundness.holds(&["subsystem"]) {
            let reason = format!("no subsystem lists {} in `hosts`, so that its keys would not be used", host.nqn);
            resolver.report(&format!("{key}.nqn"), Problem::Conflict(reason));
        }
    }
    let has_key = plan.hosts.iter().any(|host| host.tls.is_some());
    for (index, port) in plan.ports.iter().enumerate() {
        if port.tls == TlsName::Required && !has_key && resolver.soundness.holds(&["host"]) {
            let reason = "no `host` has a `tls_key`, so that no host could connect".into();
            resolver.report(&format!("port.{index}.tls"), Problem::Conflict(reason));
        }
    }
}

fn check_host(resolver: &mut Resolver<'_>, key: &str, host: &HostKeys) {
    resolver.name(&format!("{key}.nqn"), &host.nqn);
    let secret = |text: &str| Secret::parse(text).err().map(|error| error.to_string());
    let tls_key = |text: &str| TlsKey::parse(text).err().map(|error| error.to_string());
    let wrong = |source: &Option<SecretSource>, check: &dyn Fn(&str) -> Option<String>| match source {
        Some(SecretSource::Text(text)) => check(text),
        _ => None,
    };
    let wrongs = [
        ("dhchap_secret", wrong(&host.dhchap, &secret)),
        ("dhchap_controller_secret", wrong(&host.dhchap_controller, &secret)),
        ("tls_key", wrong(&host.tls, &tls_key)),
    ];
    for (name, reason) in wrongs {
        if let Some(reason) = reason {
            resolver.report(&format!("{key}.{name}"), Problem::Conflict(reason));
        }
    }
    if host.dhchap_controller.is_some() && host.dhchap.is_none() {
        let reason = "the host's own secret: the target authenticates itself only to hosts that authenticate";
        resolver.report(key, Problem::missing("dhchap_secret", reason));
    }
}
