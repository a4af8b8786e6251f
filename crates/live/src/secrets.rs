//! Secrets of hosts, read from the places that the plan names. They are never logged.

use crate::error::StartError;
use nvme::Nqn;
use nvme::auth::{Entropy, GroupId, HashId, Secret};
use nvme::target::{AuthenticationConfig, Channel, HostSecrets};
use nvme::tls::{Derivation, TlsKey};
use plan::target::{Dhchap, GroupName, HashName, HostKeys, SecretSource, Subsystem, TargetPlan, TlsDerivationName};
pub(crate) use runtime::secret::random;
pub use runtime::secret::{long_secret_in, secret_in};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Returns unpredictable bytes from the system.
///
/// # Errors
/// When the system has none.
pub fn entropy() -> io::Result<Entropy> {
    random().map(Entropy::new)
}

/// All secrets and keys of hosts.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    chap: BTreeMap<Nqn, HostSecrets>,
    tls: BTreeMap<Nqn, (TlsKey, &'static [Derivation])>,
}

/// A host's TLS key and its use.
#[derive(Clone)]
#[cfg_attr(not(feature = "tls"), allow(dead_code, reason = "read by TLS alone"))]
pub(crate) struct TlsAccess {
    pub key: TlsKey,
    /// Derivations of the key that a host may use; the first one wins where an identity fits
    /// several.
    pub derivations: &'static [Derivation],
    /// The subsystems that its host may connect to.
    pub subsystems: Vec<Nqn>,
}

/// TLS keys by their hosts.
pub(crate) type TlsKeys = BTreeMap<Nqn, TlsAccess>;

impl Secrets {
    /// Reads the secrets of the plan.
    pub(crate) fn open(plan: &TargetPlan) -> Result<Secrets, StartError> {
        let mut secrets = Secrets::default();
        for host in &plan.hosts {
            secrets.add(host)?;
        }
        for subsystem in &plan.subsystems {
            warn_of_strangers(&secrets, subsystem);
        }
        Ok(secrets)
    }

    fn add(&mut self, host: &HostKeys) -> Result<(), StartError> {
        let name = Nqn::new(&host.nqn).map_err(|error| StartError::Plan(format!("{}: {error}", host.nqn)))?;
        let secret = |source: &Option<SecretSource>, key: &str| {
            source.as_ref().map(|source| read(source, &host.nqn, key, Secret::parse)).transpose()
        };
        let controller = secret(&host.dhchap_controller, "dhchap_controller_secret")?;
        if let Some(own) = secret(&host.dhchap, "dhchap_secret")? {
            self.chap.insert(name, HostSecrets { host: own, controller });
        }
        if let Some(source) = &host.tls {
            let key = read(source, &host.nqn, "tls_key", TlsKey::parse)?;
            self.tls.insert(name, (key, derivations(host.tls_derivation)));
        }
        Ok(())
    }

    /// The hosts of a subsystem that have to authenticate; `None` without any.
    pub(crate) fn authentication(
        &self,
        how: &Dhchap,
        subsystem: &Subsystem,
    ) -> Result<Option<AuthenticationConfig>, StartError> {
        let named = subsystem.hosts.iter().flatten().filter_map(|name| Nqn::new(name).ok());
        let hosts: BTreeMap<Nqn, HostSecrets> =
            named.filter_map(|name| Some((name, self.chap.get(&name)?.clone()))).collect();
        if hosts.is_empty() {
            return Ok(None);
        }
        let entropy = entropy().map_err(StartError::system("random numbers"))?;
        let hashes = how.hashes.iter().map(|name| hash(*name)).collect();
        let groups = how.groups.iter().map(|name| group(*name)).collect();
        let exponent_cost_per_second = how.stranger_cost;
        Ok(Some(AuthenticationConfig { entropy, hosts, hashes, groups, exponent_cost_per_second }))
    }

    /// Whether a connection's key is still valid.
    pub(crate) fn knows(&self, plan: &TargetPlan, channel: &Channel) -> bool {
        self.tls_keys(plan).get(&channel.host).is_some_and(|access| access.subsystems.contains(&channel.subsystem))
    }

    /// Whether a host's key is unchanged. Other derivations are another key, unless they include
    /// the earlier ones.
    pub(crate) fn has_key_of(&self, old: &Secrets, host: Nqn) -> bool {
        match (old.tls.get(&host), self.tls.get(&host)) {
            (Some((old, before)), Some((new, now))) => old == new && before.iter().all(|how| now.contains(how)),
            _ => false,
        }
    }

    /// Hosts whose key differs between two plans.
    pub(crate) fn other_keys(&self, old: &Secrets) -> Vec<Nqn> {
        let hosts: BTreeSet<Nqn> = old.tls.keys().chain(self.tls.keys()).copied().collect();
        hosts.into_iter().filter(|host| !self.has_key_of(old, *host)).collect()
    }

    /// TLS keys, each with the subsystems that its host may use.
    pub(crate) fn tls_keys(&self, plan: &TargetPlan) -> TlsKeys {
        let allowed = |host: &Nqn| {
            let allows = |subsystem: &&Subsystem| {
                subsystem.hosts.as_ref().is_none_or(|all| all.iter().any(|name| name == host.as_str()))
            };
            let names = plan.subsystems.iter().filter(allows).filter_map(|subsystem| Nqn::new(subsystem.name()).ok());
            names.chain([Nqn::discovery()]).collect()
        };
        let access = |(host, (key, derivations)): (&Nqn, &(TlsKey, &'static [Derivation]))| {
            (*host, TlsAccess { key: key.clone(), derivations, subsystems: allowed(host) })
        };
        self.tls.iter().map(access).collect()
    }
}

fn derivations(name: TlsDerivationName) -> &'static [Derivation] {
    match name {
        TlsDerivationName::Any => Derivation::ALL,
        TlsDerivationName::Specification => &[Derivation::Specification],
        TlsDerivationName::Libnvme => &[Derivation::Libnvme],
    }
}

fn read<T, E: std::fmt::Display>(
    source: &SecretSource,
    host: &str,
    key: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, StartError> {
    match source {
        SecretSource::Text(text) => {
            parse(text).map_err(|error| StartError::Plan(format!("host {host}: {key}: {error}")))
        }
        SecretSource::File(path) => secret_in(path.as_ref(), parse).map_err(|error| match error {
            StartError::File { path, reason } => {
                StartError::File { path, reason: format!("{key} of host {host}: {reason}") }
            }
            other => other,
        }),
    }
}

/// A name without a secret proves nothing if other hosts have secrets.
fn warn_of_strangers(secrets: &Secrets, subsystem: &Subsystem) {
    let has_secret = |name: &&String| Nqn::new(name).is_ok_and(|name| secrets.chap.contains_key(&name));
    let Some(hosts) = &subsystem.hosts else { return };
    let without: Vec<&str> = hosts.iter().filter(|name| !has_secret(name)).map(String::as_str).collect();
    if !without.is_empty() && without.len() < hosts.len() {
        let hosts = without.join(", ");
        tracing::warn!(subsystem = subsystem.name(), hosts, "these hosts are accepted by name alone, without a secret");
    }
}

fn hash(name: HashName) -> HashId {
    match name {
        HashName::Sha256 => HashId::Sha256,
        HashName::Sha384 => HashId::Sha384,
        HashName::Sha512 => HashId::Sha512,
    }
}

fn group(name: GroupName) -> GroupId {
    match name {
        GroupName::Null => GroupId::Null,
        GroupName::Ffdhe2048 => GroupId::Ffdhe2048,
        GroupName::Ffdhe3072 => GroupId::Ffdhe3072,
        GroupName::Ffdhe4096 => GroupId::Ffdhe4096,
        GroupName::Ffdhe6144 => GroupId::Ffdhe6144,
        GroupName::Ffdhe8192 => GroupId::Ffdhe8192,
    }
}
