//! Positions of vertices in a picture.

use crate::config::Kind;
use crate::graph::{Graph, VertexId, VertexKind};
use crate::grid::Grid;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Half the height of a vertex of the fabric, and of an attached endpoint.
const RADIUS: f64 = 14.0;
const RADIUS_HUNG: f64 = 9.0;
/// Distance of the centres of neighbours; the second if endpoints are attached to them.
const STEP: f64 = 64.0;
const STEP_HUNG: f64 = 96.0;
/// Distance of an endpoint from its adapter.
const HANG: f64 = 32.0;
/// Directions of endpoints, in degrees from the right, clockwise. Further endpoints are placed on
/// outer rings.
const HANG_ANGLES: [f64; HUNG_RING] = [45.0, 225.0, 135.0, 315.0, 15.0, 195.0, 75.0, 255.0];
const HUNG_RING: usize = 8;
const HANG_RING: f64 = 24.0;
/// One step in the third dimension.
const INTO_X: f64 = 40.0;
const INTO_Y: f64 = 30.0;
/// Distance between layers of switches, and between neighbours in one.
const LAYER: f64 = 110.0;
const BESIDE: f64 = 38.0;
/// Maximum number of vertices of a chain per row.
const CHAIN_ROW: u32 = 16;
/// Distance of an arc's handles from the row of its grid.
const ARC: f64 = 44.0;
/// Space between the panels that show dimensions after the third.
const PANEL: f64 = 70.0;

/// A position; `x` to the right, `y` down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// The position of each vertex.
pub(super) struct Layout {
    places: Vec<Point>,
    radii: Vec<f64>,
    /// For graphs drawn as grids: identifies cables that wrap around.
    grid: Option<Grid>,
}

impl Layout {
    pub(super) fn of(graph: &Graph) -> Layout {
        let mut layout = Layout {
            places: vec![Point { x: 0.0, y: 0.0 }; graph.vertices().len()],
            radii: vec![RADIUS; graph.vertices().len()],
            grid: None,
        };
        match graph.config().map(|config| &config.kind) {
            Some(kind) if !kind.is_switched() => {
                layout.place_adapters(graph, kind);
                layout.hang_endpoints(graph);
            }
            None if graph.of_kind(VertexKind::Switch).next().is_none() => {
                let adapters: Vec<VertexId> =
                    graph.vertex_ids().filter(|id| graph.vertex(*id).kind.forwards()).collect();
                layout.circle(&adapters, step(graph), 0.0);
                layout.hang_endpoints(graph);
            }
            _ => layout.place_layers(graph),
        }
        layout
    }

    pub(super) fn at(&self, vertex: VertexId) -> Point {
        self.places[vertex.index()]
    }

    pub(super) fn radius(&self, vertex: VertexId) -> f64 {
        self.radii[vertex.index()]
    }

    /// Returns the distance by which a wrapping cable of a row, or a cable between panels, bulges
    /// to the left of the line from its lower end. `None` for all others.
    pub(super) fn arc(&self, ends: [VertexId; 2]) -> Option<f64> {
        let grid = self.grid.as_ref()?;
        if ends.iter().any(|end| u64::from(end.0) >= grid.places()) {
            return None;
        }
        let [first, second] = ends.map(|end| grid.coordinates(end));
        let dimension = (0..first.len()).find(|dimension| first[*dimension] != second[*dimension])?;
        let apart = first[dimension].abs_diff(second[dimension]);
        (apart > 1 || dimension > 2).then_some(if dimension == 2 { ARC / 2.0 } else { ARC })
    }

    /// Moves everything so that the leftmost point is at `left` and the topmost at `top`, centred
    /// in at least `width`. Returns the lower right corner.
    pub(super) fn settle(&mut self, left: f64, top: f64, width: f64) -> Point {
        let round = if self.grid.as_ref().is_some_and(|grid| grid.wraps.contains(&true)) { ARC } else { 0.0 };
        let edge = |pick: fn(&Point) -> f64, sign: f64| {
            let far = self.places.iter().zip(&self.radii).map(|(place, radius)| sign * pick(place) + radius);
            sign * (far.fold(f64::NEG_INFINITY, f64::max) + round * 0.75)
        };
        let (low, high) = (
            Point { x: edge(|p| p.x, -1.0), y: edge(|p| p.y, -1.0) },
            Point { x: edge(|p| p.x, 1.0), y: edge(|p| p.y, 1.0) },
        );
        let spare = (width - (high.x - low.x)).max(0.0);
        let shift = Point { x: left + spare / 2.0 - low.x, y: top - low.y };
        for place in &mut self.places {
            *place = Point { x: place.x + shift.x, y: place.y + shift.y };
        }
        Point { x: high.x + shift.x + spare / 2.0, y: high.y + shift.y }
    }

    fn place_adapters(&mut self, graph: &Graph, kind: &Kind) {
        let first = |count: u32| (0..count).map(VertexId).collect::<Vec<_>>();
        let step = step(graph);
        match kind {
            Kind::DaisyChain { nodes } => self.serpentine(*nodes, step),
            Kind::Ring { nodes } | Kind::FullMesh { nodes } => self.circle(&first(*nodes), step, 0.0),
            Kind::DualRing { nodes } => {
                let (inner, outer) = (first(*nodes / 2), (nodes / 2..*nodes).map(VertexId).collect::<Vec<_>>());
                self.circle(&inner, step, 0.0);
                self.circle(&outer, step, step);
            }
            Kind::Dragonfly { routers, groups, .. } => self.place_groups(*routers, *groups, step),
            kind => self.place_grid(kind.grid().expect("every other switchless kind is a grid"), step),
        }
    }

    /// Places rows in alternating directions, so that neighbours stay adjacent.
    fn serpentine(&mut self, nodes: u32, step: f64) {
        for node in 0..nodes {
            let (row, along) = (node / CHAIN_ROW, node % CHAIN_ROW);
            let column = if row % 2 == 0 { along } else { CHAIN_ROW - 1 - along };
            self.places[node as usize] = Point { x: f64::from(column) * step, y: f64::from(row) * step };
        }
    }

    /// Places vertices on a circle, the first at the top, then clockwise, with neighbours at least
    /// `step` apart. The radius is increased by `wider`.
    fn circle(&mut self, ids: &[VertexId], step: f64, wider: f64) {
        let radius = around(ids.len(), step) + wider;
        for (index, id) in ids.iter().enumerate() {
            self.places[id.index()] = on_circle(radius, index, ids.len(), -FRAC_PI_2);
        }
    }

    /// Places groups on a circle, each a circle whose first router faces outwards.
    fn place_groups(&mut self, routers: u32, groups: u32, step: f64) {
        let small = around(routers as usize, step * 0.8);
        let large = around(groups as usize, 2.0 * small + 1.5 * step);
        for group in 0..groups as usize {
            let centre = on_circle(large, group, groups as usize, -FRAC_PI_2);
            let outwards = -FRAC_PI_2 + TAU * group as f64 / f64::from(groups);
            for router in 0..routers as usize {
                let at = on_circle(small, router, routers as usize, outwards);
                self.places[group * routers as usize + router] = Point { x: centre.x + at.x, y: centre.y + at.y };
            }
        }
    }

    /// Places the first dimension to the right, the second down, the third into the page; further
    /// ones as panels, alternately to the right and down.
    fn place_grid(&mut self, grid: Grid, step: f64) {
        let last = |dimension: usize| grid.sizes.get(dimension).map_or(0.0, |size| f64::from(size - 1));
        let (into_x, into_y) = (INTO_X * step / STEP, INTO_Y * step / STEP);
        let cell = Point { x: step + into_x * last(2), y: step + into_y * last(2) };
        let mut steps = vec![Point { x: cell.x, y: 0.0 }, Point { x: 0.0, y: cell.y }, Point { x: into_x, y: -into_y }];
        let mut extent = Point { x: cell.x * last(0) + into_x * last(2), y: cell.y * last(1) + into_y * last(2) };
        for dimension in 3..grid.sizes.len() {
            let to_the_right = dimension % 2 == 1;
            let panel = if to_the_right { extent.x } else { extent.y } + PANEL + step / 2.0;
            steps.push(if to_the_right { Point { x: panel, y: 0.0 } } else { Point { x: 0.0, y: panel } });
            let widened = if to_the_right { &mut extent.x } else { &mut extent.y };
            *widened += panel * last(dimension);
        }
        for index in 0..grid.places() as u32 {
            let along = grid.coordinates(VertexId(index)).into_iter().map(f64::from).zip(&steps);
            let add =
                |at: Point, (count, step): (f64, &Point)| Point { x: at.x + count * step.x, y: at.y + count * step.y };
            self.places[index as usize] = along.fold(Point { x: 0.0, y: 0.0 }, add);
        }
        self.grid = Some(grid);
    }

    /// Places endpoints around the vertex to which they are joined first, between the directions of
    /// a grid's cables.
    fn hang_endpoints(&mut self, graph: &Graph) {
        let mut hung = vec![0; graph.vertices().len()];
        for (endpoint, holder) in holders(graph) {
            let (turn, ring) = (hung[holder.index()] % HUNG_RING, hung[holder.index()] / HUNG_RING);
            hung[holder.index()] += 1;
            let (angle, away) = (HANG_ANGLES[turn].to_radians(), HANG + HANG_RING * ring as f64);
            let at = self.places[holder.index()];
            self.places[endpoint.index()] = Point { x: at.x + away * angle.cos(), y: at.y + away * angle.sin() };
            self.radii[endpoint.index()] = RADIUS_HUNG;
        }
    }

    /// Places endpoints in the lowest row, and each forwarding vertex as many rows up as its
    /// distance from an endpoint.
    fn place_layers(&mut self, graph: &Graph) {
        let layers = layers(graph);
        let widest = layers.iter().map(Vec::len).max().unwrap_or(1);
        let width = BESIDE * widest as f64;
        for (layer, vertices) in layers.iter().enumerate() {
            let step = width / vertices.len().max(1) as f64;
            for (index, vertex) in vertices.iter().enumerate() {
                let (x, y) = ((index as f64 + 0.5) * step, -(layer as f64) * layer_height(width));
                self.places[vertex.index()] = Point { x, y };
            }
        }
    }
}

/// Returns the height of a layer: wide pictures need room for flat cables.
fn layer_height(width: f64) -> f64 {
    LAYER.max(width / 12.0)
}

/// Returns the distance between centres, with room for the endpoints of the fullest vertex.
fn step(graph: &Graph) -> f64 {
    let mut hung = vec![0; graph.vertices().len()];
    holders(graph).for_each(|(_, holder)| hung[holder.index()] += 1);
    match hung.into_iter().max() {
        None | Some(0) => STEP,
        Some(most) => STEP_HUNG + 2.0 * HANG_RING * ((most - 1) / HUNG_RING) as f64,
    }
}

/// Returns each endpoint with the first vertex to which it is joined.
fn holders(graph: &Graph) -> impl Iterator<Item = (VertexId, VertexId)> {
    let mut is_held = vec![false; graph.vertices().len()];
    let mut holders = Vec::new();
    for [first, second] in graph.links().iter().map(|link| link.ends.map(|end| end.vertex)) {
        for (endpoint, holder) in [(first, second), (second, first)] {
            let hangs = !graph.vertex(endpoint).kind.forwards();
            if hangs && !std::mem::replace(&mut is_held[endpoint.index()], true) {
                holders.push((endpoint, holder));
            }
        }
    }
    holders.sort();
    holders.into_iter()
}

/// Returns the radius of a circle on which `count` points are `step` apart.
fn around(count: usize, step: f64) -> f64 {
    if count < 2 { 0.0 } else { step / (2.0 * (PI / count as f64).sin()) }
}

fn on_circle(radius: f64, index: usize, count: usize, start: f64) -> Point {
    let angle = start + TAU * index as f64 / count as f64;
    Point { x: radius * angle.cos(), y: radius * angle.sin() }
}

/// Returns the vertices by their hops from the nearest endpoint. Endpoints are in the order of
/// their switches.
fn layers(graph: &Graph) -> Vec<Vec<VertexId>> {
    let mut neighbours: Vec<Vec<VertexId>> = vec![Vec::new(); graph.vertices().len()];
    for [first, second] in graph.links().iter().map(|link| link.ends.map(|end| end.vertex)) {
        neighbours[first.index()].push(second);
        neighbours[second.index()].push(first);
    }
    let mut lowest: Vec<VertexId> = graph.vertex_ids().filter(|id| !graph.vertex(*id).kind.forwards()).collect();
    lowest.sort_by_key(|id| (neighbours[id.index()].first().copied(), *id));
    if lowest.is_empty() {
        lowest.extend(graph.vertex_ids().next());
    }
    let mut placed = vec![false; graph.vertices().len()];
    lowest.iter().for_each(|id| placed[id.index()] = true);
    let mut layers = vec![lowest];
    loop {
        let mut next: Vec<VertexId> = Vec::new();
        for id in layers.last().into_iter().flatten().flat_map(|id| &neighbours[id.index()]) {
            if !std::mem::replace(&mut placed[id.index()], true) {
                next.push(*id);
            }
        }
        if next.is_empty() {
            return layers;
        }
        next.sort();
        layers.push(next);
    }
}
