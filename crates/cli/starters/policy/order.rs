//! Which job goes first at the queue of a storage server of RackBlox. `cargo run --release -- run
//! FILE` plays an experiment with it.

use base::Decide;
use blox::QueuedJob;
use campaign::own::{Own, main as play};
use std::process::ExitCode;

/// First what has the least time left, networks included, as the plan's coordinated `fifo`. Write
/// your own here.
#[derive(Debug)]
pub struct Mine;

impl Decide<QueuedJob> for Mine {
    /// The least value goes first; of equal ones, the job that has come first.
    fn decide(&self, job: &QueuedJob) -> i64 {
        job.arrived.as_ps() as i64 - job.network.as_ps() as i64
    }
}

fn main() -> ExitCode {
    play(Own::of("NAME", Mine))
}
