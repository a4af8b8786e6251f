//! Fabrics of adapters.

use super::{Edge, Fabric, in_range};
use crate::config::by;
use crate::error::BuildError;
use crate::graph::{VERTICES_MAX, VertexId, VertexKind};

impl Fabric<'_> {
    /// Builds a chain, ring, mesh or torus. Cables lead upwards from each adapter, dimension by
    /// dimension.
    pub(super) fn grid(&mut self) -> Result<Edge, BuildError> {
        let grid = self.config.kind.grid().expect("only grids are built as grids");
        in_range("dimensions", grid.sizes.len() as u64, 1, u64::from(u32::BITS))?;
        if let Some(flat) = grid.sizes.iter().position(|size| *size < 2) {
            let (index, got) = (flat + 1, grid.sizes[flat]);
            return Err(BuildError::DimensionTooSmall { index, grid: by(&grid.sizes), got });
        }
        let places = grid.sizes.iter().fold(1u64, |places, size| places.saturating_mul(u64::from(*size)));
        in_range("product of the dimensions", places, 2, VERTICES_MAX as u64)?;
        self.check_joins(places * grid.sizes.len() as u64)?;
        let adapters = self.add(VertexKind::Adapter, 0, places as u32);
        for adapter in &adapters {
            for dimension in 0..grid.sizes.len() {
                if let Some(next) = grid.step(*adapter, dimension, true) {
                    self.join([*adapter, next], self.grid_length(*adapter, next));
                }
            }
        }
        Ok(Edge::FreePorts(adapters))
    }

    /// Returns the length of a cable: one upwards to a lower id wraps around.
    fn grid_length(&self, from: VertexId, to: VertexId) -> base::Length {
        if to < from { self.config.cabling.lengths.far } else { self.config.cabling.lengths.near }
    }

    pub(super) fn full_mesh(&mut self, nodes: u32) -> Result<Edge, BuildError> {
        in_range("nodes", u64::from(nodes), 2, VERTICES_MAX as u64)?;
        self.check_joins(pairs(nodes))?;
        let adapters = self.add(VertexKind::Adapter, 0, nodes);
        self.mesh_fully(&adapters);
        Ok(Edge::FreePorts(adapters))
    }

    fn mesh_fully(&mut self, adapters: &[VertexId]) {
        for (index, first) in adapters.iter().enumerate() {
            for second in &adapters[index + 1..] {
                self.join([*first, *second], self.config.cabling.lengths.near);
            }
        }
    }

    pub(super) fn dragonfly(&mut self, routers: u32, global_cables: u32, groups: u32) -> Result<Edge, BuildError> {
        in_range("routers", u64::from(routers), 1, VERTICES_MAX as u64)?;
        in_range("global_cables", u64::from(global_cables), 1, VERTICES_MAX as u64)?;
        // With more groups than a group has global ports plus one, some pair of groups would have
        // no cable.
        let global_ports = u64::from(routers) * u64::from(global_cables);
        in_range("groups", u64::from(groups), 2, global_ports + 1)?;
        in_range("routers * groups", u64::from(routers) * u64::from(groups), 2, VERTICES_MAX as u64)?;
        let rounds = cables_per_pair(routers, global_cables, groups);
        self.check_joins(pairs(routers) * u64::from(groups) + u64::from(rounds) * pairs(groups))?;
        let adapters = self.add(VertexKind::Adapter, 0, routers * groups);
        for group in adapters.chunks(routers as usize) {
            self.mesh_fully(group);
        }
        for group in 0..groups {
            for cable in 0..rounds * (groups - 1) {
                self.global_cable(&adapters, group, cable);
            }
        }
        Ok(Edge::FreePorts(adapters))
    }

    /// Adds cable `cable` of `group`, if the group is the lower one of the two that it joins. Seen
    /// from the other group, the offset is the rest of the way round, in the same round.
    fn global_cable(&mut self, adapters: &[VertexId], group: u32, cable: u32) {
        let crate::config::Kind::Dragonfly { routers, global_cables, groups } = self.config.kind else {
            unreachable!("only a dragonfly has global cables")
        };
        let (round, offset) = (cable / (groups - 1), cable % (groups - 1));
        let other = (group + offset + 1) % groups;
        if other < group {
            return;
        }
        let cable_there = round * (groups - 1) + groups - 2 - offset;
        let router = |group: u32, cable: u32| adapters[(group * routers + cable / global_cables) as usize];
        self.join([router(group, cable), router(other, cable_there)], self.config.cabling.lengths.far);
    }
}

/// Returns the number of cables between each pair of groups of a dragonfly.
pub(crate) fn cables_per_pair(routers: u32, global_cables: u32, groups: u32) -> u32 {
    (u64::from(routers) * u64::from(global_cables) / u64::from(groups - 1)) as u32
}

fn pairs(count: u32) -> u64 {
    u64::from(count) * (u64::from(count) - 1) / 2
}
