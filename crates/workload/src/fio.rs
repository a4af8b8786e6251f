//! fio's job files as loads.
//!
//! [`read_job_file`] reads one as it is: what is supported works as fio's HOWTO says, what concerns fio's own machinery alone is
//! noted ([`JobFile::notes`]), and any other option is an error that names it with its line. [`Player`] plays the jobs: every job is
//! a closed loop of its `iodepth`, held back by its rate if it has one.
//!
//! File names stand for volumes, in the order of [`JobFile::files`]; a job without one gets `name.thread.0` for each of its threads, as
//! fio names its files. Which node a volume is, and how large, is the caller's to say ([`PlayConfig::volumes`]).

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
