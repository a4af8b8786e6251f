//! From an experiment file to a checked plan: the only place that has defaults.
//!
//! * [`parse`] reads a TOML file and finds everything that is wrong with it ([`PlanErrors`]), with
//!   lines and allowed values.
//! * [`Experiment::points`] are its runs: a [`Plan`] each, in which nothing is left to choose, and
//!   the labels of the sweep.
//! * [`Plan::to_toml`] prints a plan with every default, [`Plan::hash`] names it,
//!   [`Plan::warnings`](Plan#structfield.warnings) say what to know before believing its numbers.
//! * [`schema()`] is the JSON Schema of the file, and what the file is checked against.
//!
//! * [`target`], [`kv`] and [`rack`] are the same for the files of a live target, a key-value store
//!   and a live rack, which are no experiments.
//!
//! How a file becomes a plan: text, a tree with places (`document`), the schema's checks (`check`),
//! sweeps and scales by key path (`sweep`), keys that mean nothing beside others (`idle`), defaults
//! and combinations (`resolve`), the rate that a load comes to (`load`), warnings.

pub mod blox;
mod check;
mod cost;
mod design_file;
mod document;
mod error;
mod experiment;
mod file;
mod ground;
mod idle;
pub mod jbof;
pub mod kv;
mod load;
mod plan;
mod print;
mod quantity;
pub mod rack;
pub mod reference;
mod resolve;
mod rivals;
pub mod san;
pub mod scalio;
mod scene;
mod schema;
pub mod sdirect;
mod series;
mod soundness;
mod sources;
mod stack;
mod sweep;
mod table;
pub mod target;
mod warnings;
pub mod wear;

pub use cost::{READ_REQUEST, wire_cost};
pub use design_file::{DesignName, StackName};
pub use error::{Place, PlanError, PlanErrors, Problem};
pub use experiment::{Experiment, Point, Scale, parse};
pub use file::LoadBasis;
pub use load::payload_cost;
pub use plan::{
    Background, BackgroundStream, Design, Edm, Fabric, Fault, FaultKind, Messages, Packet, Plan, PlannedLoad, Protocol,
    Run, Scene, TraceSource, WarmUp,
};
pub use schema::schema;
pub use series::{SERIES_VALUES_MAX, SeriesEstimate};
pub use sources::{Files, NoFiles};
