//! Drives the gates of `rtl/edm` and the programs of `crates/edm` with the same inputs, cycle by
//! cycle.

pub mod egress;
pub mod follow;
pub mod gates;
pub mod host;
pub mod ingress;
pub mod liar;
pub mod line;
pub mod mirror;
pub mod scheduler;
pub mod switch;
pub mod system;
pub mod talker;
pub mod timed;
pub mod units;
pub mod wave;

/// CPU seconds of this thread so far; 0 where the system does not say.
pub fn cpu_seconds() -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    spent.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(0.0) / 1e9
}
