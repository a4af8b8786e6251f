//! Properties of a kind that are known without building it.

use crate::build::switchless::cables_per_pair;
use crate::config::{Config, Kind};
use crate::grid::Grid;

/// Numbers of a network by formula, for [`Graph::nodes`](crate::Graph::nodes): adapters of a
/// switchless network, endpoints of a switched one. Cables behind adapters, to hosts and on boards,
/// are left out.
///
/// A field is `None` if there is no exact formula, or only one for full trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedForm {
    /// Number of adapters or endpoints.
    pub nodes: u64,
    /// Number of switches.
    pub switches: u64,
    /// Number of cables, including those of endpoints to switches.
    pub cables: u64,
    /// The largest distance of two nodes, in hops.
    pub diameter: Option<u32>,
    /// The sum of the distances of all ordered pairs of nodes. The mean is this over `nodes *
    /// (nodes - 1)`.
    pub distance_sum: Option<u64>,
    /// The least number of cables between two halves of the nodes, whose sizes differ by one if the
    /// number of nodes is odd.
    pub bisection_cables: Option<u64>,
}

/// The same for one cable between neighbours.
struct Shape {
    joins: u64,
    diameter: Option<u32>,
    distance_sum: Option<u64>,
    bisection: Option<u64>,
}

impl Config {
    /// Returns the numbers by formula, for a config that [`Config::build`] accepts.
    ///
    /// # Panics
    ///
    /// May panic on parameters that [`Config::build`] rejects, such as a grid without dimensions:
    /// build first.
    pub fn closed_form(&self) -> ClosedForm {
        if self.kind.is_switched() { self.switched_form() } else { self.switchless_form() }
    }

    fn switchless_form(&self) -> ClosedForm {
        let (nodes, shape) = match &self.kind {
            Kind::FullMesh { nodes } => (u64::from(*nodes), full_mesh(u64::from(*nodes))),
            Kind::Dragonfly { routers, global_cables, groups } => (
                u64::from(*routers) * u64::from(*groups),
                dragonfly(u64::from(*routers), u64::from(*groups), cables_per_pair(*routers, *global_cables, *groups)),
            ),
            kind => {
                let grid = kind.grid().expect("every other switchless kind is a grid");
                (grid.places(), grid_shape(kind, &grid))
            }
        };
        let cables = u64::from(self.cabling.fabric_cables);
        ClosedForm {
            nodes,
            switches: 0,
            cables: shape.joins * cables,
            diameter: shape.diameter,
            distance_sum: shape.distance_sum,
            bisection_cables: shape.bisection.map(|joins| joins * cables),
        }
    }

    fn switched_form(&self) -> ClosedForm {
        let nodes = u64::from(self.endpoints.hosts) + u64::from(self.endpoints.targets);
        match &self.kind {
            Kind::LeafSpine { leaves, spines, endpoints_per_leaf } => {
                self.leaf_spine(nodes, u64::from(*leaves), u64::from(*spines), u64::from(*endpoints_per_leaf))
            }
            Kind::FatTree { radix, layers } => self.fat_tree(nodes, u64::from(*radix / 2), *layers),
            Kind::RedundantSwitches { switches } => self.stars(nodes, u64::from(*switches)),
            _ => self.stars(nodes, 1),
        }
    }

    /// Parallel switches. A half is cut at its own cables: each switch belongs to the larger half.
    fn stars(&self, nodes: u64, switches: u64) -> ClosedForm {
        let cables = u64::from(self.cabling.endpoint_cables) * switches;
        ClosedForm {
            nodes,
            switches,
            cables: nodes * cables,
            diameter: Some(if nodes > 1 { 2 } else { 0 }),
            distance_sum: Some(2 * nodes * nodes.saturating_sub(1)),
            bisection_cables: Some(nodes / 2 * cables),
        }
    }

    /// A full leaf-spine network. A half is cut off either at its endpoints' cables, or between
    /// leaves and spines with half of the leaves on each side. If the number of leaves is odd, half
    /// of the endpoints of the middle leaf are cut too. The cut is linear in between, so
    /// intermediate cuts are never smaller.
    fn leaf_spine(&self, nodes: u64, leaves: u64, spines: u64, room: u64) -> ClosedForm {
        let (fabric, endpoint) = (u64::from(self.cabling.fabric_cables), u64::from(self.cabling.endpoint_cables));
        let is_full = nodes == leaves * room && leaves > 1 && room > 1;
        let between_leaves = spines * fabric * (leaves / 2) + leaves % 2 * (room / 2) * endpoint;
        ClosedForm {
            nodes,
            switches: leaves + spines,
            cables: leaves * spines * fabric + nodes * endpoint,
            diameter: is_full.then_some(4),
            distance_sum: is_full.then(|| nodes * (2 * (room - 1) + 4 * (nodes - room))),
            bisection_cables: is_full.then(|| between_leaves.min(nodes / 2 * endpoint)),
        }
    }

    /// A full fat tree. `half^j - half^(j - 1)` endpoints are at distance `2j`, and those of all
    /// other pods at `2 * layers`.
    fn fat_tree(&self, nodes: u64, half: u64, layers: u32) -> ClosedForm {
        let (fabric, endpoint) = (u64::from(self.cabling.fabric_cables), u64::from(self.cabling.endpoint_cables));
        let reach = |layer: u32| half.saturating_pow(layer);
        let top = reach(layers.saturating_sub(1));
        let full = top.saturating_mul(half).saturating_mul(2);
        let is_full = nodes == full && layers >= 1;
        let within_pod = (1..layers).map(|layer| 2 * u64::from(layer) * (reach(layer) - reach(layer - 1))).sum::<u64>();
        let layers_wide = u64::from(layers);
        ClosedForm {
            nodes,
            switches: top.saturating_mul((2 * layers_wide).saturating_sub(1)),
            cables: full
                .saturating_mul(layers_wide.saturating_sub(1))
                .saturating_mul(fabric)
                .saturating_add(nodes * endpoint),
            diameter: is_full.then_some(2 * layers),
            distance_sum: is_full.then(|| nodes * (within_pod + 2 * layers_wide * (nodes - top))),
            bisection_cables: is_full.then(|| nodes / 2 * if layers > 1 { endpoint.min(fabric) } else { endpoint }),
        }
    }
}

fn full_mesh(nodes: u64) -> Shape {
    Shape {
        joins: nodes * nodes.saturating_sub(1) / 2,
        diameter: Some(1),
        distance_sum: Some(nodes * nodes.saturating_sub(1)),
        bisection: Some((nodes / 2) * nodes.div_ceil(2)),
    }
}

/// Distances depend on the assignment of global cables to adapters, so there is no formula for
/// them; at most they are local, global, local.
fn dragonfly(routers: u64, groups: u64, cables_per_pair: u32) -> Shape {
    let local = groups * (routers * routers.saturating_sub(1) / 2);
    let global = u64::from(cables_per_pair) * (groups * groups.saturating_sub(1) / 2);
    Shape { joins: local + global, diameter: None, distance_sum: None, bisection: None }
}

fn grid_shape(kind: &Kind, grid: &Grid) -> Shape {
    let places = grid.places();
    let each = || grid.sizes.iter().zip(&grid.wraps).map(|(size, wraps)| (u64::from(*size).max(1), *wraps));
    let joins = |(size, wraps): (u64, bool)| places / size * if wraps { size } else { size - 1 };
    let longest = |(size, wraps): (u64, bool)| if wraps { size / 2 } else { size - 1 };
    // Sum along one line of `size`: size * floor(size^2 / 4) on a ring, size * (size^2 - 1) / 3 on
    // a row. Every pair of lines contributes it.
    let along = |(size, wraps): (u64, bool)| {
        let line = if wraps { size * (size * size / 4) } else { size * (size * size - 1) / 3 };
        line * (places / size) * (places / size)
    };
    Shape {
        joins: each().map(joins).sum(),
        diameter: Some(each().map(longest).sum::<u64>() as u32),
        distance_sum: Some(each().map(along).sum()),
        bisection: bisection_of_grid(kind, grid),
    }
}

/// Arjona Aroca and Fernandez Anta, "Bisection (band)width of product networks with application to
/// data centers" (IEEE TPDS 2014). With sizes in descending order, a mesh has the sum over the
/// dimensions up to the first even one (or all) of the product of the later sizes; a torus has
/// twice that.
///
/// The dual ring is a torus times a mesh of 2: either its rungs are cut, or both rings (where an
/// odd ring leaves one more rung).
fn bisection_of_grid(kind: &Kind, grid: &Grid) -> Option<u64> {
    let mut sizes: Vec<u64> = grid.sizes.iter().map(|size| u64::from(*size)).collect();
    if let Kind::DualRing { .. } = kind {
        return Some(sizes[0].min(4 + sizes[0] % 2));
    }
    sizes.sort_by(|first, second| second.cmp(first));
    let cut_dimensions = sizes.iter().position(|size| size % 2 == 0).map_or(sizes.len(), |even| even + 1);
    let cables: u64 = (0..cut_dimensions).map(|dimension| sizes[dimension + 1..].iter().product::<u64>()).sum();
    Some(if grid.wraps[0] { 2 * cables } else { cables })
}
