//! Network graphs of switched and switchless storage networks, and the properties that follow from
//! their shape.
//!
//! * [`Config`] with a [`Kind`] builds any kind of network from plain parameters;
//!   [`file`](mod@file) reads a custom graph; [`Builder`] makes one in code. All three apply the
//!   same checks and return a [`Graph`].
//! * [`Graph`] has vertices, links and a compressed adjacency, all by index: a link has two
//!   [`Channel`]s, one per direction.
//! * [`Distances`], [`DistanceTable`], [`Path`]: hops, all shortest paths and their number,
//!   dimension-order routes.
//! * [`Graph::disjoint_paths`], [`Graph::bisection`], [`Graph::channel_loads`]: path diversity and
//!   bandwidth.
//! * [`Failures`] and [`Graph::without`]: the same graph without failed parts, ids unchanged.
//! * [`Bill`]: the parts to buy. [`picture`](mod@picture): drawings. [`Config::closed_form`]:
//!   textbook formulas.
//!
//! Hosts and targets are ends of a path; only adapters and switches forward. All orders are by id
//! or by port, so equal input gives equal output.

mod bill;
mod bisection;
mod build;
mod builder;
mod closed_form;
mod config;
mod distance;
mod error;
mod failure;
pub mod file;
mod flow;
mod graph;
mod grid;
mod load;
mod partition;
mod path;
pub mod picture;

pub use bill::Bill;
pub use bisection::{Bisection, Method};
pub use builder::Builder;
pub use closed_form::ClosedForm;
pub use config::{Cabling, Config, Endpoints, Kind, Lengths, Placement, Ports};
pub use distance::{DistanceSummary, DistanceTable, Distances};
pub use error::{BuildError, RouteError, TableError};
pub use failure::Failures;
pub use graph::{
    Channel, End, Graph, Hop, LINKS_MAX, Link, LinkId, Medium, RATE_MAX, VERTICES_MAX, Vertex, VertexId, VertexKind,
};
pub use grid::Grid;
pub use path::{MinimalPaths, Path};
