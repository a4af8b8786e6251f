//! The simulator: clock, driver and rigs.

pub mod drive;
mod nested;
pub mod policies;
pub mod rigs;
mod run;
pub mod sampler;
mod scene;
mod slab;
mod wear;

pub use rigs::blox::{BuildError, Prepared, PreparedVssd, precondition};
pub use run::{RunError, RunOptions, run};
