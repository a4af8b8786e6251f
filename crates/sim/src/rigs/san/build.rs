//! From a configuration to a network that can run.

use super::bytes::WireCheck;
use super::config::{SanBuildError, SanRigConfig};
use super::drives::Drives;
use super::track::Tracks;
use super::wires::Wires;
use super::{Counts, Place, SanRig};
use crate::slab::Slab;
use base::Time;
use san::hop::{Hop, HopConfig, HopCounts};
use san::route::neighbours;
use std::collections::BTreeSet;
use topology::{VertexId, VertexKind};

/// Trails name vertices in 16 bits.
const VERTICES_MAX: u64 = 1 << 16;
/// Sessions are numbered in 32 bits.
const SESSIONS_MAX: u64 = u32::MAX as u64;

impl SanRigConfig {
    /// Whether hosts choose among uplinks, and so have to know distances.
    pub(super) fn hosts_listen(&self) -> bool {
        self.graph.of_kind(VertexKind::Host).any(|host| self.graph.degree(host) > 1)
    }

    pub(super) fn drive_count(&self) -> usize {
        self.graph.of_kind(VertexKind::Target).count() * self.drives_per_target as usize
    }

    /// What a hop has to know.
    pub(super) fn hop(&self, here: VertexId) -> HopConfig {
        HopConfig {
            here,
            neighbours: neighbours(&self.graph, here, self.hosts_listen()),
            vertices: self.graph.vertices().len(),
            drives: self.drive_count(),
            route: self.route,
            reservation: self.reservation.clone(),
            scheduling: self.scheduling.clone(),
            buffer: self.buffer,
        }
    }

    fn check(&self) -> Result<(), SanBuildError> {
        let hosts = self.graph.of_kind(VertexKind::Host).count() as u64;
        for (what, got, max) in [
            ("vertices", self.graph.vertices().len() as u64, VERTICES_MAX),
            ("sessions", hosts * self.drive_count() as u64, SESSIONS_MAX),
        ] {
            if got > max {
                return Err(SanBuildError::TooMany { what, got, max });
            }
        }
        Ok(())
    }
}

impl SanRig {
    /// A network in which everything works and nothing has happened.
    ///
    /// # Errors
    /// When a drive cannot be had, or there is more of something than can be named.
    pub fn new(config: SanRigConfig) -> Result<SanRig, SanBuildError> {
        config.check()?;
        let graph = config.graph.clone();
        let vertices = |kind: VertexKind| -> Vec<VertexId> { graph.of_kind(kind).collect() };
        let (host_vertices, target_vertices) = (vertices(VertexKind::Host), vertices(VertexKind::Target));
        let hop_vertices: Vec<VertexId> =
            graph.vertex_ids().filter(|vertex| graph.vertex(*vertex).kind.forwards()).collect();
        let mut places = vec![Place::Host(0); graph.vertices().len()];
        for (index, vertex) in (0..).zip(&host_vertices) {
            places[vertex.index()] = Place::Host(index);
        }
        for (index, vertex) in (0..).zip(&target_vertices) {
            places[vertex.index()] = Place::Target(index);
        }
        for (index, vertex) in (0..).zip(&hop_vertices) {
            places[vertex.index()] = Place::Hop(index);
        }
        Ok(SanRig {
            hosts: host_vertices.iter().map(|vertex| config.host_program(*vertex)).collect(),
            targets: target_vertices.iter().map(|vertex| config.target_program(*vertex)).collect(),
            hops: hop_vertices.iter().map(|vertex| Hop::new(config.hop(*vertex))).collect(),
            wires: Wires::new(&graph, &config.passing, &config.ends),
            drives: Drives::new(&config.drive, config.drive_count())?,
            is_running: vec![true; places.len()],
            wakes: vec![Time::MAX; places.len()],
            cut_links: BTreeSet::new(),
            places,
            host_vertices,
            target_vertices,
            hop_vertices,
            flights: Slab::new(),
            told: Slab::new(),
            working: Slab::new(),
            tracks: Tracks::default(),
            wire_check: config.wire_check.then(WireCheck::new),
            write_order: config.checks_write_order.then(history::WriteOrder::new),
            counts: Counts::default(),
            counts_of_stopped: HopCounts::default(),
            hop_out: Vec::new(),
            host_out: Vec::new(),
            target_out: Vec::new(),
            config,
        })
    }
}
