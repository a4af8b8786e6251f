//! Load generators, message-size distributions and trace readers: who asks whom for how much, and
//! when.
//!
//! * [`Config`] says what a workload is made of; [`Config::problems`] says what is impossible about
//!   it.
//! * [`Generator`] plays it: a [`Source`] that a host asks for one [`Arrival`] after the other.
//! * [`SizeDistribution`] has closed-form moments, [`profile`] has the five application
//!   distributions of the EDM paper.
//! * [`storage`] has loads of block storage: volumes, addresses, application profiles;
//!   [`mod@block_trace`] reads, inspects and replays recorded ones, [`fio`] plays fio's job files,
//!   [`imitation`] stands for traces that cannot be shipped, [`lsm`] asks what key-value stores ask
//!   of their drives.
//! * [`read_cdf`], [`read_trace`] and [`write_trace`] are the file formats; a bad line is a
//!   [`FileError`] that names it.
//!
//! Every node has one random stream a purpose (`workload/node/3/arrivals`, `.../phases`,
//! `.../target`, `.../size`, `.../operation`), and every request takes exactly one number from each
//! of the last three: other sizes or another mix leave the arrival times and the targets as they
//! were.

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
