//! Drives the gates of `rtl/edm` and the programs of `crates/edm` with the same inputs, cycle by
//! cycle.

pub mod follow;
pub mod gates;
pub mod line;
pub mod mirror;
pub mod scheduler;
pub mod system;
pub mod units;
pub mod wave;
