//! From the plan of a live target back to the file that says all of it.

use super::file::{
    BackendName, DhchapFile, HostFile, LimitsFile, NamespaceFile, PathFile, PortFile, RecordsFile, SubsystemFile,
    TargetFile,
};
use super::{Backend, HostKeys, Namespace, Records, SecretSource, Subsystem, TargetPlan};
use crate::quantity::Quantity;

pub(super) fn to_toml(plan: &TargetPlan) -> String {
    let port = |port: &super::Port| PortFile {
        address: Some(port.address.clone()),
        advertised: port.advertised.clone(),
        tls: Some(port.tls),
    };
    let dhchap = DhchapFile {
        hashes: Some(plan.dhchap.hashes.clone()),
        groups: Some(plan.dhchap.groups.clone()),
        stranger_cost: Some(plan.dhchap.stranger_cost),
    };
    let file = TargetFile {
        state: plan.state.clone(),
        metrics: plan.metrics.clone(),
        log: Some(plan.log),
        log_format: Some(plan.log_format),
        busy_poll: Some(Quantity(plan.busy_poll)),
        strict: Some(plan.strict),
        port: Some(plan.ports.iter().map(port).collect()),
        host: (!plan.hosts.is_empty()).then(|| plan.hosts.iter().map(host).collect()),
        dhchap: Some(dhchap),
        subsystem: Some(plan.subsystems.iter().map(subsystem).collect()),
        limits: Some(LimitsFile::of(&plan.limits)),
        records: plan.records.as_ref().map(records),
    };
    toml::to_string_pretty(&file).expect("a file of texts, numbers and tables is TOML")
}

fn host(plan: &HostKeys) -> HostFile {
    let split = |source: &Option<SecretSource>| match source.clone() {
        None => (None, None),
        Some(SecretSource::Text(text)) => (Some(text), None),
        Some(SecretSource::File(path)) => (None, Some(path)),
    };
    let (dhchap_secret, dhchap_secret_file) = split(&plan.dhchap);
    let (dhchap_controller_secret, dhchap_controller_secret_file) = split(&plan.dhchap_controller);
    let (tls_key, tls_key_file) = split(&plan.tls);
    HostFile {
        nqn: Some(plan.nqn.clone()),
        dhchap_secret,
        dhchap_secret_file,
        dhchap_controller_secret,
        dhchap_controller_secret_file,
        tls_key,
        tls_key_file,
        tls_derivation: plan.tls.is_some().then_some(plan.tls_derivation),
    }
}

fn subsystem(plan: &Subsystem) -> SubsystemFile {
    let path =
        |path: &super::Path| PathFile { port: Some(path.port), group: Some(path.group), access: Some(path.access) };
    SubsystemFile {
        nqn: plan.nqn.clone(),
        serial: plan.serial.clone(),
        model: Some(plan.model.clone()),
        hosts: plan.hosts.clone(),
        ports: Some(plan.ports.clone()),
        namespace: Some(plan.namespaces.iter().map(namespace).collect()),
        path: (!plan.paths.is_empty()).then(|| plan.paths.iter().map(path).collect()),
    }
}

fn namespace(plan: &Namespace) -> NamespaceFile {
    let common = NamespaceFile {
        id: Some(plan.id),
        size: plan.size.map(Quantity),
        block: Some(Quantity(plan.block)),
        uuid: plan.uuid.clone(),
        group: Some(plan.group),
        read_only: Some(plan.read_only),
        shared: plan.shared.then_some(true),
        ..NamespaceFile::default()
    };
    let prefault = plan.prefault.then_some(true);
    match plan.backend.clone() {
        Backend::Ram => NamespaceFile { backend: Some(BackendName::Ram), prefault, ..common },
        Backend::Null => NamespaceFile { backend: Some(BackendName::Null), ..common },
        Backend::File { path, direct, io, threads } => NamespaceFile {
            backend: Some(BackendName::File),
            path: Some(path),
            direct: Some(direct),
            io: Some(io),
            threads: Some(threads),
            ..common
        },
        Backend::Flash { drive, seed, path } => NamespaceFile {
            backend: Some(BackendName::Flash),
            drive: Some(drive),
            seed: Some(seed),
            path,
            prefault,
            ..common
        },
    }
}

fn records(plan: &Records) -> RecordsFile {
    RecordsFile { folder: Some(plan.folder.clone()), sample: Some(plan.sample), tail: Some(Quantity(plan.tail)) }
}
