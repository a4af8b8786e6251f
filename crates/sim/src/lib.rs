//! The simulator: clock, driver and rigs.

pub mod drive;
pub mod rigs;
mod run;

pub use rigs::blox::BuildError;
pub use run::{RunError, RunOptions, run};
