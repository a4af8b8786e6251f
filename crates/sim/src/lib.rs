//! The simulator: clock, driver and rigs.

pub mod drive;
pub mod rigs;
mod run;
mod wear;

pub use rigs::blox::{BuildError, Prepared, PreparedVssd, precondition};
pub use run::{RunError, RunOptions, run};
