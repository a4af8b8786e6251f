//! The simulator: clock, driver and rigs.

pub mod drive;
pub mod rigs;
mod run;

pub use run::{RunOptions, run};
