//! Coordinates of chains, rings, meshes and tori, and their dimension-order routes.

use crate::error::RouteError;
use crate::graph::{Channel, Graph, VertexId};
use crate::path::Path;

/// A grid of vertices. The first dimension varies fastest: in three dimensions, vertex `(z * Y + y)
/// * X + x` has the coordinates `x, y, z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of vertices in each dimension.
    pub sizes: Vec<u32>,
    /// By dimension: whether the last vertex is joined to the first.
    pub wraps: Vec<bool>,
}

impl Grid {
    /// Returns the number of vertices.
    pub fn places(&self) -> u64 {
        self.sizes.iter().map(|size| u64::from(*size)).product()
    }

    /// Returns the coordinates of a vertex.
    pub fn coordinates(&self, vertex: VertexId) -> Vec<u32> {
        let mut rest = vertex.0;
        self.sizes.iter().map(|size| (rest % size, rest /= size).0).collect()
    }

    /// Returns the vertex at these coordinates.
    pub fn vertex(&self, coordinates: &[u32]) -> VertexId {
        let along = self.sizes.iter().zip(coordinates).rev();
        VertexId(along.fold(0, |vertex, (size, coordinate)| vertex * size + coordinate))
    }

    /// Returns the difference of the ids of neighbours in a dimension.
    pub(crate) fn stride(&self, dimension: usize) -> u32 {
        self.sizes[..dimension].iter().product()
    }

    /// Returns the vertex one step up or down in a dimension, or `None` beyond an edge.
    pub(crate) fn step(&self, vertex: VertexId, dimension: usize, is_up: bool) -> Option<VertexId> {
        let (size, stride) = (self.sizes[dimension], self.stride(dimension));
        let at = vertex.0 / stride % size;
        let next = if is_up { (at + 1) % size } else { (at + size - 1) % size };
        let is_over_edge = if is_up { next == 0 } else { at == 0 };
        (self.wraps[dimension] || !is_over_edge).then(|| VertexId(vertex.0 - at * stride + next * stride))
    }

    /// Returns the number of steps from one coordinate to another, and whether they lead upwards:
    /// the shorter way round, up on a tie.
    fn way(&self, dimension: usize, from: u32, to: u32) -> (u32, bool) {
        let size = self.sizes[dimension];
        let (up, down) = ((to + size - from) % size, (from + size - to) % size);
        match self.wraps[dimension] {
            true if up <= down => (up, true),
            true => (down, false),
            false => (from.abs_diff(to), from <= to),
        }
    }
}

impl Graph {
    /// Returns the coordinate system of the first vertices, or `None` if the graph was not built as
    /// a grid.
    pub fn grid(&self) -> Option<Grid> {
        self.config.as_ref().and_then(|config| config.kind.grid())
    }

    /// Returns the dimension-order route: all steps of the first dimension, then of the second and
    /// so on. In a wrapped dimension it takes the shorter way round, upwards on a tie. Of parallel
    /// cables it takes the first working one.
    ///
    /// # Errors
    ///
    /// When the graph is not a grid, an end is not on it, or a cable of the route has failed.
    pub fn dimension_order_route(&self, source: VertexId, target: VertexId) -> Result<Path, RouteError> {
        let grid = self.grid().ok_or(RouteError::NotAGrid)?;
        for end in [source, target] {
            if u64::from(end.0) >= grid.places() {
                return Err(RouteError::NotOnTheGrid { name: self.vertex(end).name.clone() });
            }
        }
        let mut path = Path::at(source);
        let (from, to) = (grid.coordinates(source), grid.coordinates(target));
        for dimension in 0..grid.sizes.len() {
            let (steps, is_up) = grid.way(dimension, from[dimension], to[dimension]);
            for _ in 0..steps {
                let at = path.end();
                let next = grid.step(at, dimension, is_up).expect("the shorter way stays on the grid");
                path.push(self.grid_channel(at, next, is_up)?, next);
            }
        }
        Ok(path)
    }

    /// Cables are laid upwards, so up is forward. This distinguishes the two cables of a dimension
    /// of 2.
    fn grid_channel(&self, from: VertexId, to: VertexId, is_up: bool) -> Result<Channel, RouteError> {
        let name = |vertex: VertexId| self.vertex(vertex).name.clone();
        let mut along = self.channels_between(from, to).filter(|channel| channel.is_forward() == is_up);
        along.next().ok_or_else(|| RouteError::Broken { from: name(from), to: name(to) })
    }
}
