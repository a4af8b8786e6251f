//! Errors that a caller can handle.

use crate::graph::{LinkId, VertexKind};
use base::Rate;

/// Reason why a graph could not be built. Contains the numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A parameter lies outside its range.
    #[error("{field}: {got} is outside {min}..={max}")]
    OutOfRange {
        /// Name of the parameter.
        field: &'static str,
        /// The rejected value.
        got: u64,
        /// The minimum.
        min: u64,
        /// The maximum.
        max: u64,
    },
    /// A dimension of a grid is too small to join anything.
    #[error("dimension {index} of {grid} is {got}, each must be 2 or more")]
    DimensionTooSmall {
        /// The dimension, from 1.
        index: usize,
        /// All sizes, as in `4x1x3`.
        grid: String,
        /// Its size.
        got: u32,
    },
    /// A number that must be even is odd.
    #[error("{field}: {got} is odd, it must be even")]
    Odd {
        /// Name of the parameter.
        field: &'static str,
        /// The rejected value.
        got: u32,
    },
    /// More endpoints than places for them.
    #[error("{got} {what}, but there is room for {places}: {because}")]
    NoRoom {
        /// Hosts, targets or both.
        what: &'static str,
        /// The requested number.
        got: u64,
        /// Number of places.
        places: u64,
        /// The origin of the limit.
        because: String,
    },
    /// A vertex would need more ports than it has.
    #[error("{kind} {name} has {cables} cables but {ports} ports")]
    PortsOverRadix {
        /// The vertex.
        name: String,
        /// Kind of the vertex.
        kind: VertexKind,
        /// Number of its cables.
        cables: u32,
        /// Number of its ports.
        ports: u32,
    },
    /// A link joins a vertex to itself.
    #[error("link {} joins {name} to itself", link.0)]
    JoinsItself {
        /// The link.
        link: LinkId,
        /// The vertex.
        name: String,
    },
    /// A rate of zero, or one so high that sums could overflow.
    #[error("link {} between {} and {} has a rate of {got}, it must be more than 0bps and at most {max}", link.0, ends[0], ends[1])]
    BadRate {
        /// The link.
        link: LinkId,
        /// Its ends.
        ends: [String; 2],
        /// Its rate.
        got: Rate,
        /// The maximum rate.
        max: Rate,
    },
    /// A board joins vertices of the wrong kinds.
    #[error("link {} is a board between {} {} and {} {}, it must join a host or target with an adapter",
        link.0, kinds[0], ends[0], kinds[1], ends[1])]
    BadBoard {
        /// The link.
        link: LinkId,
        /// Its ends.
        ends: [String; 2],
        /// Kinds of both ends.
        kinds: [VertexKind; 2],
    },
    /// Two vertices have the same name.
    #[error("vertices {first} and {second} are both named `{name}`")]
    NameTwice {
        /// The name.
        name: String,
        /// The earlier vertex.
        first: usize,
        /// The later vertex.
        second: usize,
    },
    /// A vertex cannot be reached. Hosts and targets do not forward.
    #[error("disconnected: {reached} of {vertices} vertices are reached from {from}, {unreached} is not")]
    Disconnected {
        /// The start of the search.
        from: String,
        /// The first vertex not reached.
        unreached: String,
        /// Number of reached vertices.
        reached: usize,
        /// Number of vertices that had to be reached.
        vertices: usize,
    },
}

/// Reason why there is no dimension-order route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The graph has no dimensions.
    #[error("the graph is not a grid: dimension order needs a chain, ring, mesh or torus")]
    NotAGrid,
    /// An end is not a vertex of the grid itself.
    #[error("{name} is no place of the grid, the route must be between two of its adapters")]
    NotOnTheGrid {
        /// The vertex.
        name: String,
    },
    /// The only route that dimension order allows is broken.
    #[error("no working cable from {from} to {to} on the dimension-order route")]
    Broken {
        /// The vertex before the gap.
        from: String,
        /// The vertex behind the gap.
        to: String,
    },
}

/// Reason why no table of all distances was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{vertices} vertices are too many for a table of all distances, allowed are {max}")]
pub struct TableError {
    /// Number of vertices.
    pub vertices: usize,
    /// Maximum number of vertices.
    pub max: usize,
}
