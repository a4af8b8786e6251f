//! Load generators, message-size distributions and trace readers.
//!
//! * [`Config`] describes a workload; [`Config::problems`] lists what is impossible about it.
//! * [`Generator`] runs it: a [`Source`] that yields one [`Arrival`] after the other.
//! * [`SizeDistribution`] has closed-form moments, [`profile`] has the five application
//!   distributions of the EDM paper.
//! * [`storage`] has loads of block storage: volumes, addresses, application profiles.
//!   [`mod@block_trace`] reads, inspects and replays recorded ones, [`fio`] runs fio's job files,
//!   [`imitation`] replaces traces that cannot be shipped, and [`lsm`] generates the drive load of
//!   key-value stores.
//! * [`read_cdf`], [`read_trace`] and [`write_trace`] are the file formats; a bad line is a
//!   [`FileError`] with its place.
//!
//! Every node has one random stream per purpose (`workload/node/3/arrivals`, `.../phases`,
//! `.../target`, `.../size`, `.../operation`). Every request draws exactly one number from each of
//! the last three: other sizes or another mix do not change arrival times and targets.

pub mod block_trace;
mod cdf;
mod config;
mod delays;
mod file;
pub mod fio;
mod generator;
pub mod imitation;
mod limits;
pub mod lsm;
mod open;
mod outbox;
mod permutation;
mod problem;
mod profiles;
mod size;
pub mod storage;
mod target;
mod trace;

pub use cdf::read_cdf;
pub use config::{Arrivals, Class, Config, Pattern, SizeDistribution, TraceMessage};
pub use delays::read_delays;
pub use file::{FileError, Reason};
pub use generator::{Arrival, Generator, Source};
pub use problem::{NODES_MAX, Problem, SIZE_MAX};
pub use profiles::{PROFILES, Profile, profile};
pub use trace::{MessageTrace, read_trace, write_trace};
