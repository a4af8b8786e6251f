//! Which demand wins a port in EDM's scheduler. `cargo run --release -- run FILE` plays an
//! experiment with it.

use base::Decide;
use campaign::own::{Own, main as play};
use edm::Competitor;
use std::process::ExitCode;

/// Shortest remaining first, as the built-in policy `srpt`. Write your own here.
#[derive(Debug)]
pub struct Mine;

impl Decide<Competitor> for Mine {
    /// The least value goes first; of equal ones, the demand that has come first.
    fn decide(&self, demand: &Competitor) -> u32 {
        demand.remaining
    }
}

fn main() -> ExitCode {
    play(Own::of("NAME", Mine))
}
