//! A priority for EDM's scheduler: which demand wins a port. `cargo run --release -- run FILE`
//! plays an experiment with it.

use edm::{Competitor, Priority};
use std::process::ExitCode;

/// Shortest remaining first, as the built-in policy `srpt`. Write your own here.
#[derive(Debug)]
struct Own;

impl Priority for Own {
    /// The least value goes first; of equal ones, the demand that has come first.
    fn of(&self, demand: &Competitor) -> u32 {
        demand.remaining
    }
}

fn main() -> ExitCode {
    campaign::own::main("NAME", Own)
}
