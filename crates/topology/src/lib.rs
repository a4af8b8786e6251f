//! Network graphs of switched and switchless storage networks, and everything that follows from their shape alone.
//!
//! * [`Config`] with a [`Kind`] builds any kind of `design/san.md` from plain parameters; [`file`](mod@file) reads a graph of one's own;
//!   [`Builder`] makes one in code. All three end in the same checks and in a [`Graph`].
//! * [`Graph`] is vertices, links and a compressed adjacency, all by index: a link has two [`Channel`]s, one a direction.
//! * [`Distances`], [`DistanceTable`], [`Path`]: hops, all shortest paths and how many there are, dimension-order routes.
//! * [`Graph::disjoint_paths`], [`Graph::bisection`], [`Graph::channel_loads`]: path diversity and bandwidth.
//! * [`Failures`] and [`Graph::without`]: the same graph with parts missing, ids unchanged.
//! * [`Bill`]: what has to be bought. [`picture`](mod@picture): what it looks like. [`Config::closed_form`]: what textbooks say of it.
//!
//! Hosts and targets end a path and never pass one on; adapters and switches do. Orders are by id or by port throughout, so
//! equal input gives equal output.

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
