//! Which replica serves a read that passes RackBlox's switch. `cargo run --release -- run FILE`
//! plays an experiment with it.

use base::Decide;
use blox::ReadPath;
use campaign::own::{Own, main as play};
use std::process::ExitCode;

/// The replica serves it while the vSSD that it is addressed to collects garbage or cannot be
/// reached, as in RackBlox. Write your own here.
#[derive(Debug)]
pub struct Mine;

impl Decide<ReadPath> for Mine {
    /// Whether the replica serves the read.
    fn decide(&self, read: &ReadPath) -> bool {
        let ReadPath { own, replica, .. } = read;
        let is_better = own.is_collecting && !replica.is_collecting;
        replica.is_reachable && (is_better || !own.is_reachable)
    }
}

fn main() -> ExitCode {
    play(Own::of("NAME", Mine))
}
