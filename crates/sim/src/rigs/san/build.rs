//! From a configuration to a network that can run.

use super::bytes::WireCheck;
use super::carrier::Carrier;
use super::config::{SanBuildError, SanRigConfig};
use super::drives::Drives;
use super::engines::Engines;
use super::facts::Observed;
use super::order::OrderCheck;
use super::track::Tracks;
use super::wires::{Wires, headroom};
use super::{Gossip, Place, Programs, SanRig};
use crate::rigs::seat::Alarm;
use crate::slab::Slab;
use base::{Bytes, Rate};
use san::hop::{Hop, HopConfig, LosslessConfig};
use san::host::{Host, HostConfig, HostSessions, Uplinks};
use san::route::{Router, neighbours};
use san::target::{Target, TargetConfig, TargetSession};
use san::wire::WireFormat;
use san::{DriveId, PacketKind, SessionId};
use std::collections::BTreeSet;
use std::sync::Arc;
use topology::{Graph, VertexId, VertexKind};

/// Sessions are numbered in 32 bits.
const SESSIONS_MAX: u64 = u32::MAX as u64;

impl SanRigConfig {
    /// Whether hosts choose among uplinks, and so have to know distances.
    pub(super) fn hosts_listen(&self) -> bool {
        self.graph.of_kind(VertexKind::Host).any(|host| self.graph.degree(host) > 1)
    }

    pub(super) fn drive_count(&self) -> usize {
        self.graph.of_kind(VertexKind::Target).count() * self.drives.per_target as usize
    }

    /// What a hop has to know.
    pub(super) fn hop(&self, here: VertexId, response_frame: u32) -> HopConfig {
        HopConfig {
            here,
            neighbours: neighbours(&self.graph, here, self.hosts_listen()),
            vertices: self.graph.vertices().len(),
            drives: self.drive_count(),
            route: self.hop.route,
            reservation: self.hop.reservation.clone(),
            scheduling: self.hop.scheduling.clone(),
            buffer: self.passing.queue,
            lossless: self.lossless(here),
            response_frame,
        }
    }

    /// Flow control of a hop, where sessions ask for it.
    fn lossless(&self, here: VertexId) -> Option<LosslessConfig> {
        let stream = self.host.stream.as_ref()?;
        let longest = Bytes::new(u64::from(stream.segment));
        let links = self.graph.hops(here).iter().map(|hop| hop.channel.reverse());
        Some(LosslessConfig {
            dcqcn: *stream.dcqcn()?,
            headrooms: links.map(|link| headroom(&self.graph, &self.passing, &self.ends, link, longest)).collect(),
            seed: self.seed.child(&format!("hop/{}", here.0)),
        })
    }

    /// By port: the rates of a vertex' links.
    fn links(&self, vertex: VertexId) -> Vec<Rate> {
        self.graph.hops(vertex).iter().map(|hop| self.graph.link(hop.channel.link()).rate).collect()
    }

    /// By number: all drives, and where they are.
    fn drives(&self, targets: &[VertexId]) -> Arc<[(DriveId, VertexId)]> {
        let target = |drive: u32| targets[(drive / self.drives.per_target) as usize];
        (0..self.drive_count() as u32).map(|drive| (DriveId(drive), target(drive))).collect()
    }

    /// One session with each drive, those of a drive numbered one after the other.
    fn host_program(
        &self,
        place: u32,
        vertices: &Vertices,
        drives: &Arc<[(DriveId, VertexId)]>,
    ) -> Result<Host, SanBuildError> {
        let vertex = vertices.hosts[place as usize];
        let (first, stride) = (SessionId(place), vertices.hosts.len() as u32);
        let sessions = HostSessions { drives: drives.clone(), first, stride };
        let around = neighbours(&self.graph, vertex, self.hosts_listen());
        let uplinks = match around.len() {
            1 => Uplinks::One,
            _ => Uplinks::Routed(Box::new(Router::new(vertex, self.graph.vertices().len(), around, &self.hop.route))),
        };
        let links = self.links(vertex);
        Ok(Host::new(HostConfig { vertex, sessions, links, ..self.host.clone() }, uplinks)?)
    }

    fn target_program(&self, place: u32, vertices: &Vertices, lanes: usize) -> Result<Target, SanBuildError> {
        let hosts = vertices.hosts.len() as u32;
        let first = place * self.drives.per_target;
        let drives = first..first + self.drives.per_target;
        let of_drive = |drive: u32| {
            (0..hosts).map(move |host| TargetSession { id: SessionId(drive * hosts + host), drive: DriveId(drive) })
        };
        Ok(Target::new(&TargetConfig {
            sessions: drives.clone().flat_map(of_drive).collect(),
            drives: drives.map(DriveId).collect(),
            lanes: lanes as u8,
            links: self.links(vertices.targets[place as usize]),
            ..self.target.clone()
        })?)
    }

    fn host_programs(&self, vertices: &Vertices) -> Result<Vec<Host>, SanBuildError> {
        let drives = self.drives(&vertices.targets);
        (0..vertices.hosts.len() as u32).map(|place| self.host_program(place, vertices, &drives)).collect()
    }

    fn target_programs(&self, vertices: &Vertices) -> Result<Vec<Target>, SanBuildError> {
        let lanes = vertices.hosts.iter().map(|host| self.graph.degree(*host)).max().unwrap_or(1);
        (0..vertices.targets.len() as u32).map(|place| self.target_program(place, vertices, lanes)).collect()
    }

    fn hop_programs(&self, vertices: &Vertices, response_frame: u32) -> Vec<Hop> {
        vertices.hops.iter().map(|vertex| Hop::new(self.hop(*vertex, response_frame))).collect()
    }

    fn programs(&self, vertices: &Vertices, response_frame: u32) -> Result<Programs, SanBuildError> {
        Ok(Programs {
            hosts: self.host_programs(vertices)?,
            targets: self.target_programs(vertices)?,
            hops: self.hop_programs(vertices, response_frame),
            wakes: vec![Alarm::OFF; vertices.places.len()],
            response_frame,
            hop_out: Vec::new(),
            host_out: Vec::new(),
            target_out: Vec::new(),
        })
    }

    fn carrier(&self, places: usize, format: WireFormat) -> Carrier {
        let wires = Wires::new(&self.graph, &self.passing, &self.ends);
        Carrier::new(wires, places, self.checks.wire.then(|| WireCheck::new(format)))
    }

    fn check(&self) -> Result<(), SanBuildError> {
        let hosts = self.graph.of_kind(VertexKind::Host).count() as u64;
        let (what, got, max) = ("sessions", hosts * self.drive_count() as u64, SESSIONS_MAX);
        if got > max { Err(SanBuildError::TooMany { what, got, max }) } else { Ok(()) }
    }
}

impl SanRig {
    /// A network in which everything works and nothing has happened.
    ///
    /// # Errors
    /// When a drive cannot be had, or there is more of something than can be named.
    pub fn new(config: SanRigConfig) -> Result<SanRig, SanBuildError> {
        config.check()?;
        let vertices = Vertices::of(&config.graph);
        let format = WireFormat::new(&config.host.wire)?;
        Ok(SanRig {
            programs: config.programs(&vertices, format.frame(PacketKind::Response, 0, 0))?,
            carrier: config.carrier(vertices.places.len(), format),
            engines: Engines::new(&config.graph, &config.passing),
            drives: Drives::new(&config.drives.model, config.drive_count())?,
            working: Slab::new(),
            tracks: Tracks::new(config.host.wire.success_flag),
            order: config.checks.write_order.then(|| OrderCheck::new(vertices.hosts.len())),
            observed: Observed::new(&config),
            gossip: Gossip { told: Slab::new(), is_priming: false },
            cut_links: BTreeSet::new(),
            vertices,
            config,
        })
    }
}

/// The vertices of each kind, in their order.
pub(super) struct Vertices {
    /// By vertex: its place among its like. Every vertex is of one kind.
    pub places: Vec<Place>,
    pub hosts: Vec<VertexId>,
    pub targets: Vec<VertexId>,
    pub hops: Vec<VertexId>,
}

impl Vertices {
    fn of(graph: &Graph) -> Vertices {
        let mut places = vec![Place::Host(0); graph.vertices().len()];
        let mut number = |is_wanted: fn(VertexKind) -> bool, place: fn(u32) -> Place| -> Vec<VertexId> {
            let wanted = graph.vertex_ids().filter(|vertex| is_wanted(graph.vertex(*vertex).kind));
            let numbered = (0..).zip(wanted);
            numbered.map(|(index, vertex)| (places[vertex.index()] = place(index), vertex).1).collect()
        };
        let hosts = number(|kind| kind == VertexKind::Host, Place::Host);
        let targets = number(|kind| kind == VertexKind::Target, Place::Target);
        let hops = number(VertexKind::forwards, Place::Hop);
        Vertices { places, hosts, targets, hops }
    }
}
