//! fio's job files as loads.
//!
//! [`read_job_file`] reads an unmodified job file. Supported options work as in fio's HOWTO,
//! options of fio's own machinery are noted ([`JobFile::notes`]), and any other option is an error
//! with its line. [`Player`] runs the jobs: every job is a closed loop of its `iodepth`, limited by
//! its rate if it has one.
//!
//! File names represent volumes, in the order of [`JobFile::files`]; a job without one gets
//! `name.thread.0` for each of its threads, as fio names its files. The caller maps a volume to a
//! node and a size ([`PlayConfig::volumes`]).

mod address;
mod ini;
mod job;
mod options;
mod player;
mod thread;
mod value;

#[cfg(test)]
mod tests;

pub use ini::read_job_file;
pub use job::{
    Amount, BlockSizes, Distribution, FileOrder, Job, JobFile, Mixture, Order, RateLimit, RateProcess, Split, Zone,
    ZoneExtent,
};
pub use player::{PlayConfig, Player, Volume};
