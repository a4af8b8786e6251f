//! Authentication of hosts. Secrets in the file are parsed here, so that an error has its line;
//! messages never contain the secret.

use super::super::file::{DhchapFile, GroupName, HashName, HostFile, TargetFile, TlsName};
use super::super::{Dhchap, HostKeys, Port, SecretSource, Subsystem};
use super::Resolver;
use crate::error::Problem;
use nvme::auth::Secret;
use nvme::tls::TlsKey;
use std::collections::BTreeSet;

pub(super) fn dhchap(file: Option<&DhchapFile>) -> Dhchap {
    let file = file.cloned().unwrap_or_default();
    Dhchap {
        stranger_cost: file.stranger_cost(),
        hashes: file.hashes.unwrap_or_else(|| vec![HashName::Sha256, HashName::Sha384, HashName::Sha512]),
        groups: file.groups.unwrap_or_else(|| {
            use GroupName::{Ffdhe2048, Ffdhe3072, Ffdhe4096, Ffdhe6144, Ffdhe8192, Null};
            vec![Null, Ffdhe2048, Ffdhe3072, Ffdhe4096, Ffdhe6144, Ffdhe8192]
        }),
    }
}

/// The hosts of the file, each once and each allowed somewhere.
pub(super) fn hosts(
    resolver: &mut Resolver<'_>,
    file: &TargetFile,
    ports: &[Port],
    subsystems: &[Subsystem],
) -> Vec<HostKeys> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for (index, file) in file.host.iter().flatten().enumerate() {
        let key = format!("host.{index}");
        let host = host(resolver, &key, file);
        if !names.insert(host.nqn.clone()) {
            let reason = format!("{} is listed twice", host.nqn);
            resolver.report(&format!("{key}.nqn"), Problem::Conflict(reason));
        }
        let is_allowed = |subsystem: &Subsystem| subsystem.hosts.as_ref().is_some_and(|all| all.contains(&host.nqn));
        if !subsystems.iter().any(is_allowed) && resolver.soundness.holds(&["subsystem"]) {
            let reason = format!("no subsystem lists {} in `hosts`, so that its keys would not be used", host.nqn);
            resolver.report(&format!("{key}.nqn"), Problem::Conflict(reason));
        }
        all.push(host);
    }
    let has_key = all.iter().any(|host| host.tls.is_some());
    for (index, port) in ports.iter().enumerate() {
        if port.tls == TlsName::Required && !has_key && resolver.soundness.holds(&["host"]) {
            let reason = "no `host` has a `tls_key`, so that no host could connect".into();
            resolver.report(&format!("port.{index}.tls"), Problem::Conflict(reason));
        }
    }
    all
}

fn host(resolver: &mut Resolver<'_>, key: &str, file: &HostFile) -> HostKeys {
    let nqn = file.nqn.clone().unwrap_or_default();
    resolver.name(&format!("{key}.nqn"), &nqn);
    let secret = |text: &str| Secret::parse(text).map(drop).map_err(|error| error.to_string());
    let HostFile { dhchap_secret, dhchap_secret_file, dhchap_controller_secret, .. } = file;
    let dhchap = source(resolver, key, "dhchap_secret", (dhchap_secret, dhchap_secret_file), secret);
    let both = (dhchap_controller_secret, &file.dhchap_controller_secret_file);
    let dhchap_controller = source(resolver, key, "dhchap_controller_secret", both, secret);
    if dhchap_controller.is_some() && dhchap.is_none() {
        let reason = "the host's own secret: the target authenticates itself only to hosts that authenticate";
        resolver.report(key, Problem::missing("dhchap_secret", reason));
    }
    let tls_key = |text: &str| TlsKey::parse(text).map(drop).map_err(|error| error.to_string());
    let tls = source(resolver, key, "tls_key", (&file.tls_key, &file.tls_key_file), tls_key);
    if tls.is_none() && file.tls_derivation.is_some() {
        resolver.report(key, Problem::missing("tls_key", "`tls_derivation` says how others are derived from it"));
    }
    let tls_derivation = file.tls_derivation();
    HostKeys { nqn, dhchap, dhchap_controller, tls, tls_derivation }
}

/// A secret or the file of it, not both.
fn source(
    resolver: &mut Resolver<'_>,
    host: &str,
    key: &str,
    (text, file): (&Option<String>, &Option<String>),
    check: impl Fn(&str) -> Result<(), String>,
) -> Option<SecretSource> {
    let place = format!("{host}.{key}");
    match (text, file) {
        (Some(_), Some(_)) => {
            resolver.report(&place, Problem::Conflict(format!("`{key}` and `{key}_file` say the same: give one")));
            None
        }
        (Some(text), None) => {
            if let Err(reason) = check(text) {
                resolver.report(&place, Problem::Conflict(reason));
            }
            Some(SecretSource::Text(text.clone()))
        }
        (None, Some(file)) => Some(SecretSource::File(file.clone())),
        (None, None) => None,
    }
}
