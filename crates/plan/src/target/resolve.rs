//! Resolves the file of a live target to its plan: defaults, ranges that depend on other values,
//! and combinations.

mod hosts;

use super::file::{BackendName, NamespaceFile, PathFile, PortFile, RecordsFile, SubsystemFile, TargetFile};
use super::{Backend, Namespace, Path, Port, Records, Subsystem, TargetPlan};
use crate::check::{Completeness, check};
use crate::document::Node;
use crate::error::{PlanErrors, Problem, Problems};
use crate::quantity::Plain;
use crate::soundness::Soundness;
use base::Bytes;
use hardware::ssd::presets::PRESETS;
use nvme::{Nqn, Text};
use std::collections::BTreeSet;

const ADDRESS: &str = "127.0.0.1:4420";
const SIZE: Bytes = Bytes::new(1 << 30);
const DRIVE: &str = "tlc-gen4";

/// Turns a document into a plan.
pub(super) fn resolve(name: &str, document: &Node) -> Result<TargetPlan, PlanErrors> {
    let (mut problems, mut soundness) = (Problems::new(name, None), Soundness::default());
    check(&super::schema(), document, Completeness::Whole, &mut problems);
    let mut document = document.clone();
    soundness.take_out(&mut document, problems.errors());
    let file: TargetFile = match serde_json::from_value(document.to_json()) {
        Ok(file) => file,
        Err(error) => {
            if problems.is_empty() {
                problems.add(document.place, "", Problem::Conflict(error.to_string()));
            }
            return Err(PlanErrors::new(problems.into_errors()));
        }
    };
    let mut resolver = Resolver { document: &document, problems, soundness };
    let plan = resolver.target(&file);
    resolver.problems.finish().map(|()| plan)
}

struct Resolver<'a> {
    document: &'a Node,
    problems: Problems,
    soundness: Soundness,
}

impl Resolver<'_> {
    /// Reports nothing of a table in which the schema has refused a key: it may follow from that.
    fn report(&mut self, key: &str, problem: Problem) {
        if self.soundness.is_broken(key) {
            return;
        }
        self.soundness.mark(key);
        self.problems.add(self.document.place_of(key), key, problem);
    }

    /// Reports unless `is_right`.
    fn expect(&mut self, key: &str, is_right: bool, got: impl std::fmt::Display, allowed: &str) {
        if !is_right {
            self.report(key, Problem::out_of_range(got, allowed));
        }
    }

    fn target(&mut self, file: &TargetFile) -> TargetPlan {
        let default_port = [PortFile::default()];
        let ports = file.port.as_deref().unwrap_or(&default_port);
        let ports: Vec<Port> = ports.iter().enumerate().map(|(index, port)| self.port(index, port)).collect();
        if let Some(metrics) = &file.metrics {
            self.address("metrics", metrics);
        }
        let subsystems = self.subsystems(file, ports.len() as u16);
        let hosts = hosts::hosts(self, file, &ports, &subsystems);
        TargetPlan {
            hosts,
            dhchap: hosts::dhchap(file.dhchap.as_ref()),
            state: file.state.clone(),
            metrics: file.metrics.clone(),
            log: file.log(),
            log_format: file.log_format(),
            busy_poll: file.busy_poll(),
            strict: file.strict(),
            subsystems,
            ports,
            limits: self.limits(file),
            records: file.records.as_ref().map(records),
        }
    }

    fn port(&mut self, index: usize, file: &PortFile) -> Port {
        let address = file.address.clone().unwrap_or_else(|| ADDRESS.into());
        self.address(&format!("port.{index}.address"), &address);
        if let Some(advertised) = &file.advertised {
            self.address(&format!("port.{index}.advertised"), advertised);
        }
        Port { address, advertised: file.advertised.clone(), tls: file.tls() }
    }

    /// Whether the address itself means anything is for the live host to say.
    fn address(&mut self, key: &str, address: &str) {
        let number = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let is_right = number.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        self.expect(key, is_right, format!("`{address}`"), "ADDRESS:PORT, such as 127.0.0.1:4420 or [::1]:4420");
    }

    fn limits(&mut self, file: &TargetFile) -> super::Limits {
        let limits = file.limits.clone().unwrap_or_default().resolve();
        let transfer = limits.transfer.count();
        let is_shift = transfer.is_power_of_two() && (4 << 10..=128 << 20).contains(&transfer);
        self.expect("limits.transfer", is_shift, limits.transfer, "a power of two from 4KiB to 128MiB");
        let in_capsule = limits.in_capsule.count();
        let is_right = in_capsule.is_multiple_of(16) && in_capsule <= 64 << 10;
        self.expect("limits.in_capsule", is_right, limits.in_capsule, "a multiple of 16B up to 64KiB");
        let least = if is_shift { transfer } else { 0 };
        let is_right = (least..=1 << 40).contains(&limits.connection_memory.count());
        self.expect("limits.connection_memory", is_right, limits.connection_memory, "at least `transfer`, up to 1TiB");
        limits
    }

    fn subsystems(&mut self, file: &TargetFile, ports: u16) -> Vec<Subsystem> {
        let default_subsystem = [SubsystemFile::default()];
        let files = file.subsystem.as_deref().unwrap_or(&default_subsystem);
        let mut names = BTreeSet::from([Nqn::discovery().as_str().to_owned()]);
        let mut subsystems = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let key = format!("subsystem.{index}");
            if file.nqn.is_none() && files.len() > 1 {
                self.report(&key, Problem::missing("nqn", "one of several subsystems needs a name of its own"));
            }
            let subsystem = self.subsystem(&key, file, ports);
            if !names.insert(subsystem.name().to_owned()) && file.nqn.is_some() {
                let reason = format!("{} is the name of another subsystem already", subsystem.name());
                self.report(&format!("{key}.nqn"), Problem::Conflict(reason));
            }
            subsystems.push(subsystem);
        }
        subsystems
    }

    fn subsystem(&mut self, key: &str, file: &SubsystemFile, ports: u16) -> Subsystem {
        if let Some(nqn) = &file.nqn {
            self.name(&format!("{key}.nqn"), nqn);
        }
        for (index, host) in file.hosts.iter().flatten().enumerate() {
            self.name(&format!("{key}.hosts.{index}"), host);
        }
        for (index, port) in file.ports.iter().flatten().enumerate() {
            self.port_number(&format!("{key}.ports.{index}"), *port, ports);
        }
        if let Some(serial) = &file.serial {
            self.expect(&format!("{key}.serial"), Text::<20>::new(serial).is_ok(), serial, "20 printable characters");
        }
        let model = file.model.clone().unwrap_or_else(|| "Rackweave".into());
        self.expect(&format!("{key}.model"), Text::<40>::new(&model).is_ok(), &model, "40 printable characters");
        Subsystem {
            nqn: file.nqn.clone(),
            serial: file.serial.clone(),
            model,
            hosts: file.hosts.clone(),
            ports: file.ports.clone().unwrap_or_else(|| (1..=ports).collect()),
            namespaces: self.namespaces(key, file),
            paths: self.paths(key, file, ports),
        }
    }

    fn name(&mut self, key: &str, name: &str) {
        if let Err(error) = Nqn::new(name) {
            self.report(key, Problem::Conflict(format!("`{name}` is no NVMe qualified name: {error}")));
        }
    }

    fn port_number(&mut self, key: &str, port: u16, ports: u16) {
        let is_right = (1..=ports).contains(&port) || self.soundness.is_broken("port");
        self.expect(key, is_right, port, &format!("1..={ports}, the ports of this file"));
    }

    fn paths(&mut self, key: &str, file: &SubsystemFile, ports: u16) -> Vec<Path> {
        let mut paths = Vec::new();
        for (index, file) in file.path.iter().flatten().enumerate() {
            let PathFile { port: Some(port), access: Some(access), .. } = *file else { continue };
            self.port_number(&format!("{key}.path.{index}.port"), port, ports);
            paths.push(Path { port, access, group: file.group() });
        }
        paths
    }

    fn namespaces(&mut self, key: &str, file: &SubsystemFile) -> Vec<Namespace> {
        let default_namespace = [NamespaceFile::default()];
        let files = file.namespace.as_deref().unwrap_or(&default_namespace);
        let mut ids = BTreeSet::new();
        let mut namespaces = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let key = format!("{key}.namespace.{index}");
            let namespace = self.namespace(&key, file, index as u32 + 1);
            if !ids.insert(namespace.id) {
                let reason = format!("there is a namespace {} already", namespace.id);
                self.report(&format!("{key}.id"), Problem::Conflict(reason));
            }
            namespaces.push(namespace);
        }
        namespaces
    }

    fn namespace(&mut self, key: &str, file: &NamespaceFile, place: u32) -> Namespace {
        let block = file.block();
        let is_right = block.count().is_power_of_two() && (512..=65_536).contains(&block.count());
        self.expect(&format!("{key}.block"), is_right, block, "a power of two from 512B to 64KiB");
        let backend = self.backend(key, file);
        let given = file.size.map(Plain::plain);
        let size = if matches!(backend, Backend::File { .. }) { given } else { Some(given.unwrap_or(SIZE)) };
        if let Some(size) = size.filter(|_| is_right) {
            let is_whole = size > Bytes::ZERO && size.count().is_multiple_of(block.count());
            self.expect(&format!("{key}.size"), is_whole, size, &format!("one or more whole blocks of {block}"));
        }
        if let Some(uuid) = &file.uuid {
            let is_uuid = super::uuid_bytes(uuid).is_some_and(|bytes| bytes != [0; 16]);
            let allowed =
                "32 hexadecimal digits with dashes, such as 5d2f1c1e-7a0b-4a53-9f0e-0242ac120002, not all zero";
            self.expect(&format!("{key}.uuid"), is_uuid, format!("`{uuid}`"), allowed);
        }
        Namespace {
            id: file.id.unwrap_or(place),
            backend,
            size,
            block,
            uuid: file.uuid.clone(),
            prefault: file.prefault(),
            group: file.group(),
            read_only: file.read_only(),
            shared: file.shared(),
        }
    }

    fn backend(&mut self, key: &str, file: &NamespaceFile) -> Backend {
        let name = file.backend();
        self.foreign_keys(key, file, name);
        match name {
            BackendName::Ram => Backend::Ram,
            BackendName::Null => Backend::Null,
            BackendName::File => {
                if file.path.is_none() {
                    self.report(key, Problem::missing("path", "the file or block device"));
                }
                Backend::File {
                    path: file.path.clone().unwrap_or_default(),
                    direct: file.direct(),
                    io: file.io(),
                    threads: file.threads(),
                }
            }
            BackendName::Flash => self.flash(key, file),
        }
    }

    fn flash(&mut self, key: &str, file: &NamespaceFile) -> Backend {
        let drive = file.drive.clone().unwrap_or_else(|| DRIVE.into());
        if !PRESETS.iter().any(|preset| preset.name == drive) {
            let allowed = PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
            self.report(&format!("{key}.drive"), Problem::not_allowed(&drive, allowed));
        }
        if file.prefault.is_some() && file.path.is_some() {
            let reason = "`prefault` is about memory, and the data lie in the file at `path`".into();
            self.report(&format!("{key}.prefault"), Problem::Conflict(reason));
        }
        Backend::Flash { drive, seed: file.seed(), path: file.path.clone() }
    }

    /// A key that means nothing to the backend is a mistake.
    fn foreign_keys(&mut self, key: &str, file: &NamespaceFile, backend: BackendName) {
        use BackendName::{File, Flash, Ram};
        let given: [(&str, bool, &[BackendName]); 8] = [
            ("path", file.path.is_some(), &[File, Flash]),
            ("shared", file.shared.is_some(), &[File, Flash]),
            ("direct", file.direct.is_some(), &[File]),
            ("io", file.io.is_some(), &[File]),
            ("threads", file.threads.is_some(), &[File]),
            ("drive", file.drive.is_some(), &[Flash]),
            ("seed", file.seed.is_some(), &[Flash]),
            ("prefault", file.prefault.is_some(), &[Ram, Flash]),
        ];
        for (name, _, backends) in given.iter().filter(|(_, given, backends)| *given && !backends.contains(&backend)) {
            let words: Vec<String> = backends.iter().map(|backend| backend.word()).collect();
            let reason =
                format!("`{name}` is valid only with backend = {}, not with {}", words.join(" or "), backend.word());
            self.report(&format!("{key}.{name}"), Problem::Conflict(reason));
        }
    }
}

fn records(file: &RecordsFile) -> Records {
    Records { folder: file.folder.clone().unwrap_or_default(), sample: file.sample(), tail: file.tail() }
}
