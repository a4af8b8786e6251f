//! Faults of a SAN: from names to parts, and back.

use super::{Drives, SanFault, SanPart};
use crate::file::{FaultFile, FaultName};
use crate::quantity::Quantity;
use crate::resolve::Resolver;
use topology::{Graph, LinkId, VertexId, VertexKind};

/// A kind of fault as it concerns a SAN: what it is about, and whether it is a repair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Link,
    Vertex(VertexKind),
    Drive,
}

const fn about(name: FaultName) -> Option<(About, bool)> {
    Some(match name {
        FaultName::LinkDown => (About::Link, false),
        FaultName::LinkUp => (About::Link, true),
        FaultName::SwitchDown => (About::Vertex(VertexKind::Switch), false),
        FaultName::SwitchUp => (About::Vertex(VertexKind::Switch), true),
        FaultName::AdapterDown => (About::Vertex(VertexKind::Adapter), false),
        FaultName::AdapterUp => (About::Vertex(VertexKind::Adapter), true),
        FaultName::NodeDown => (About::Vertex(VertexKind::Target), false),
        FaultName::NodeUp => (About::Vertex(VertexKind::Target), true),
        FaultName::DriveDown => (About::Drive, false),
        FaultName::DriveUp => (About::Drive, true),
        FaultName::LinkCorrupt => return None,
    })
}

impl Resolver<'_> {
    /// Of a network that is not known, no names are judged.
    pub(crate) fn san_faults(&mut self, files: &[FaultFile], graph: Option<&Graph>, drives: &Drives) -> Vec<SanFault> {
        let mut faults: Vec<SanFault> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            faults.extend(self.san_fault(&format!("fault.{index}"), file, graph, drives));
        }
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    fn san_fault(&mut self, key: &str, file: &FaultFile, graph: Option<&Graph>, drives: &Drives) -> Option<SanFault> {
        let name = file.kind?;
        self.at_most(&format!("{key}.at"), file.at?.0.saturating_since(base::Time::ZERO), crate::resolve::HORIZON);
        let Some((about, is_repair)) = about(name) else {
            self.conflict(&format!("{key}.kind"), "corruption is modelled for design edm only");
            return None;
        };
        let graph = graph?;
        let part = match about {
            About::Link => SanPart::Links(self.links_between(key, file.ends.as_deref()?, graph)?),
            About::Vertex(kind) => SanPart::Vertex(self.vertex_of(key, file.vertex.as_deref()?, kind, graph)?),
            About::Drive => SanPart::Drive(self.drive_of(key, file.drive?, graph, drives)),
        };
        Some(SanFault { at: file.at?.0, part, is_repair })
    }

    fn links_between(&mut self, key: &str, ends: &[String], graph: &Graph) -> Option<Vec<LinkId>> {
        let found: Vec<Option<VertexId>> = ends.iter().map(|name| graph.named(name)).collect();
        for (index, _) in found.iter().enumerate().filter(|(_, vertex)| vertex.is_none()) {
            self.unknown_vertex(&format!("{key}.ends.{index}"), &ends[index], graph, None);
        }
        let [Some(first), Some(second)] = found[..] else { return None };
        let links: Vec<LinkId> = graph.channels_between(first, second).map(|channel| channel.link()).collect();
        if links.is_empty() {
            self.conflict(&format!("{key}.ends"), format!("there is no link between {} and {}", ends[0], ends[1]));
            return None;
        }
        Some(links)
    }

    fn vertex_of(&mut self, key: &str, name: &str, kind: VertexKind, graph: &Graph) -> Option<VertexId> {
        let found = graph.named(name).filter(|vertex| graph.vertex(*vertex).kind == kind);
        if found.is_none() {
            self.unknown_vertex(&format!("{key}.vertex"), name, graph, Some(kind));
        }
        found
    }

    /// Says which names there are; of a large network the first and the last.
    fn unknown_vertex(&mut self, key: &str, name: &str, graph: &Graph, kind: Option<VertexKind>) {
        let is_wanted = |vertex: &VertexId| kind.is_none_or(|kind| graph.vertex(*vertex).kind == kind);
        let names: Vec<&str> =
            graph.vertex_ids().filter(is_wanted).map(|vertex| graph.vertex(vertex).name.as_str()).collect();
        let what = kind.map_or("vertex", VertexKind::word);
        let known = match names[..] {
            [] => "none".into(),
            [first, .., last] if names.len() > 8 => format!("{first} to {last}"),
            _ => names.join(", "),
        };
        self.conflict(key, format!("there is no {what} `{name}`; there are {known}"));
    }

    fn drive_of(&mut self, key: &str, drive: u32, graph: &Graph, drives: &Drives) -> u32 {
        let count = graph.of_kind(VertexKind::Target).count() as u64 * u64::from(drives.per_target);
        if self.sound(&["drives"]) {
            self.range(&format!("{key}.drive"), u64::from(drive), 0..=count.saturating_sub(1));
        }
        drive
    }
}

/// The table that says all of a fault.
pub(super) fn fault_of(fault: &SanFault, graph: &Graph) -> FaultFile {
    let name = |vertex: VertexId| graph.vertex(vertex).name.clone();
    let mut file = FaultFile { at: Some(Quantity(fault.at)), ..FaultFile::default() };
    let what = match &fault.part {
        SanPart::Links(links) => {
            file.ends = links.first().map(|link| graph.link(*link).ends.map(|end| name(end.vertex)).to_vec());
            About::Link
        }
        SanPart::Vertex(vertex) => {
            file.vertex = Some(name(*vertex));
            About::Vertex(graph.vertex(*vertex).kind)
        }
        SanPart::Drive(drive) => {
            file.drive = Some(*drive);
            About::Drive
        }
    };
    file.kind = FaultName::ALL.iter().copied().find(|name| about(*name) == Some((what, fault.is_repair)));
    file
}
