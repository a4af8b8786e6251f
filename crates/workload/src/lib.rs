//! Load generators and message-trace readers.

mod config;
mod generator;

pub use config::{Arrivals, Class, Config, Pattern, SizeDistribution, TraceMessage};
pub use generator::{Arrival, Source};
