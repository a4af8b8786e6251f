//! Resolves the file of a live target to its plan: defaults, ranges that depend on other values,
//! and combinations.

mod hosts;

use super::file::TargetFile;
use super::{Backend, Limits, Namespace, Subsystem, TargetPlan};
use crate::check::{Completeness, check};
use crate::document::Node;
use crate::error::{PlanErrors, Problem, Problems};
use crate::idle::idle_keys;
use crate::soundness::Soundness;
use base::Bytes;
use hardware::ssd::presets::PRESETS;
use nvme::{Nqn, Text};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Turns a document into a plan.
pub(super) fn resolve(name: &str, document: &Node) -> Result<TargetPlan, PlanErrors> {
    let (file, mut resolver): (TargetFile, _) = Resolver::begin(name, document, &super::schema())?;
    let plan = resolver.target(&file);
    resolver.finish().map(|()| plan)
}

/// Collects what is wrong in a file of a live host.
pub(crate) struct Resolver<'a> {
    document: &'a Node,
    problems: Problems,
    soundness: Soundness,
}

impl<'a> Resolver<'a> {
    /// Checks a document against the schema, and reads it.
    pub(crate) fn begin<T: DeserializeOwned>(
        name: &str,
        document: &'a Node,
        schema: &Json,
    ) -> Result<(T, Resolver<'a>), PlanErrors> {
        let (mut problems, mut soundness) = (Problems::new(name, None), Soundness::default());
        check(schema, document, Completeness::Whole, &mut problems);
        let mut sound = document.clone();
        soundness.take_out(&mut sound, problems.errors());
        let file = match serde_json::from_value(sound.to_json()) {
            Ok(file) => file,
            Err(error) => {
                if problems.is_empty() {
                    problems.add(document.place, "", Problem::Conflict(error.to_string()));
                }
                return Err(PlanErrors::new(problems.into_errors()));
            }
        };
        let mut resolver = Resolver { document, problems, soundness };
        for (key, problem) in idle_keys(schema, &sound.to_json(), None) {
            resolver.report(&key, problem);
        }
        Ok((file, resolver))
    }

    /// Fails with everything that was reported.
    pub(crate) fn finish(self) -> Result<(), PlanErrors> {
        self.problems.finish()
    }

    /// Reports nothing of a table in which the schema has refused a key: it may follow from that.
    pub(crate) fn report(&mut self, key: &str, problem: Problem) {
        if self.soundness.is_broken(key) {
            return;
        }
        self.soundness.mark(key);
        self.problems.add(self.document.place_of(key), key, problem);
    }

    /// Reports unless `is_right`.
    pub(crate) fn expect(&mut self, key: &str, is_right: bool, got: impl std::fmt::Display, allowed: &str) {
        if !is_right {
            self.report(key, Problem::out_of_range(got, allowed));
        }
    }

    /// Whether no mistake is known of a table.
    pub(crate) fn holds(&self, table: &str) -> bool {
        self.soundness.holds(&[table])
    }

    fn target(&mut self, file: &TargetFile) -> TargetPlan {
        let plan = file.resolve();
        for (index, port) in plan.ports.iter().enumerate() {
            self.address(&format!("port.{index}.address"), &port.address);
            let advertised = port.advertised.iter();
            advertised.for_each(|address| self.address(&format!("port.{index}.advertised"), address));
        }
        plan.metrics.iter().for_each(|address| self.address("metrics", address));
        self.subsystems(&plan);
        hosts::hosts(self, &plan);
        self.limits(&plan.limits);
        plan
    }

    /// Whether the address itself means anything is for the live host to say.
    pub(crate) fn address(&mut self, key: &str, address: &str) {
        let number = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let is_right = number.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        self.expect(key, is_right, format!("`{address}`"), "ADDRESS:PORT, such as 127.0.0.1:4420 or [::1]:4420");
    }

    fn limits(&mut self, limits: &Limits) {
        let transfer = limits.transfer.count();
        let is_shift = transfer.is_power_of_two() && (4 << 10..=128 << 20).contains(&transfer);
        self.expect("limits.transfer", is_shift, limits.transfer, "a power of two from 4KiB to 128MiB");
        let in_capsule = limits.in_capsule.count();
        let is_right = in_capsule.is_multiple_of(16) && in_capsule <= 64 << 10;
        self.expect("limits.in_capsule", is_right, limits.in_capsule, "a multiple of 16B up to 64KiB");
        let least = if is_shift { transfer } else { 0 };
        let is_right = (least..=1 << 40).contains(&limits.connection_memory.count());
        self.expect("limits.connection_memory", is_right, limits.connection_memory, "at least `transfer`, up to 1TiB");
    }

    fn subsystems(&mut self, plan: &TargetPlan) {
        let mut names = BTreeSet::from([Nqn::discovery().as_str().to_owned()]);
        for (index, subsystem) in plan.subsystems.iter().enumerate() {
            let key = format!("subsystem.{index}");
            if subsystem.nqn.is_none() && plan.subsystems.len() > 1 {
                self.report(&key, Problem::missing("nqn", "one of several subsystems needs a name of its own"));
            }
            self.subsystem(&key, subsystem, plan.ports.len() as u16);
            if !names.insert(subsystem.name().to_owned()) && subsystem.nqn.is_some() {
                let reason = format!("{} is the name of another subsystem already", subsystem.name());
                self.report(&format!("{key}.nqn"), Problem::Conflict(reason));
            }
        }
    }

    fn subsystem(&mut self, key: &str, subsystem: &Subsystem, ports: u16) {
        let Subsystem { nqn, serial, model, .. } = subsystem;
        nqn.iter().for_each(|nqn| self.name(&format!("{key}.nqn"), nqn));
        for (index, host) in subsystem.hosts.iter().flatten().enumerate() {
            self.name(&format!("{key}.hosts.{index}"), host);
        }
        for (index, port) in subsystem.ports.iter().enumerate() {
            self.port_number(&format!("{key}.ports.{index}"), *port, ports);
        }
        if let Some(serial) = serial {
            self.expect(&format!("{key}.serial"), Text::<20>::new(serial).is_ok(), serial, "20 printable characters");
        }
        self.expect(&format!("{key}.model"), Text::<40>::new(model).is_ok(), model, "40 printable characters");
        let mut ids = BTreeSet::new();
        for (index, namespace) in subsystem.namespaces.iter().enumerate() {
            let key = format!("{key}.namespace.{index}");
            self.namespace(&key, namespace);
            if !ids.insert(namespace.id) {
                let reason = format!("there is a namespace {} already", namespace.id);
                self.report(&format!("{key}.id"), Problem::Conflict(reason));
            }
        }
        for (index, path) in subsystem.paths.iter().enumerate() {
            self.port_number(&format!("{key}.path.{index}.port"), path.port, ports);
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

    fn namespace(&mut self, key: &str, namespace: &Namespace) {
        let Namespace { block, size, uuid, .. } = namespace;
        let is_right = block.count().is_power_of_two() && (512..=65_536).contains(&block.count());
        self.expect(&format!("{key}.block"), is_right, block, "a power of two from 512B to 64KiB");
        if let Some(size) = size.filter(|_| is_right) {
            let is_whole = size > Bytes::ZERO && size.count().is_multiple_of(block.count());
            self.expect(&format!("{key}.size"), is_whole, size, &format!("one or more whole blocks of {block}"));
        }
        if let Some(uuid) = uuid {
            let is_uuid = super::uuid_bytes(uuid).is_some_and(|bytes| bytes != [0; 16]);
            let allowed =
                "32 hexadecimal digits with dashes, such as 5d2f1c1e-7a0b-4a53-9f0e-0242ac120002, not all zero";
            self.expect(&format!("{key}.uuid"), is_uuid, format!("`{uuid}`"), allowed);
        }
        let is_right = !namespace.unlocked || namespace.read_only && !namespace.shared;
        let problem = "another process changes the file: it needs `read_only = true`, and has no `shared`";
        if !is_right {
            self.report(&format!("{key}.unlocked"), Problem::Conflict(problem.into()));
        }
        if namespace.reserve && namespace.read_only {
            let problem = "what nobody writes needs no room: it is not valid with `read_only`";
            self.report(&format!("{key}.reserve"), Problem::Conflict(problem.into()));
        }
        match &namespace.backend {
            Backend::File { path, .. } if path.is_empty() => {
                self.report(key, Problem::missing("path", "the file or block device"));
            }
            Backend::Flash { drive, .. } if !PRESETS.iter().any(|preset| preset.name == drive) => {
                let allowed = PRESETS.iter().map(|preset| preset.name.to_owned()).collect();
                self.report(&format!("{key}.drive"), Problem::not_allowed(drive, allowed));
            }
            Backend::Volume { rack, door, volume } => self.volume(key, namespace, [rack, door, volume]),
            _ => {}
        }
    }

    /// A volume of a live rack, by the names of rack, door and volume.
    fn volume(&mut self, key: &str, namespace: &Namespace, named: [&String; 3]) {
        let wanted = [
            ("rack", "the file of the live rack"),
            ("door", "the rack's door that this target is"),
            ("volume", "the volume's name"),
        ];
        for ((name, what), _) in wanted.into_iter().zip(named).filter(|(_, text)| text.is_empty()) {
            self.report(key, Problem::missing(name, what));
        }
        let is_right = namespace.block.count() >= crate::rack::PAGE.count();
        self.expect(&format!("{key}.block"), is_right, namespace.block, "4KiB or more for a volume of a rack");
        if let Some(size) = namespace.size {
            let problem = format!("{size}: the rack's file gives a volume its size");
            self.report(&format!("{key}.size"), Problem::Conflict(problem));
        }
    }
}
