//! Loads named for the traces that they imitate, which are too large or not free to be shipped.
//!
//! An [`Imitation`] is a table of published statistics and of our choices where none was found;
//! [`Shape`] is the same as parameters, and [`Imitator`] plays it. Arrivals are hyper-exponential
//! with two phases, which Wajahat et al. ("Analyzing the distribution fit for storage workload and
//! Internet traffic traces", Performance Evaluation 142, 2020) found to fit the gaps of over 250
//! storage traces best; the phases have balanced means, so that rate and variation decide them.
//! Sizes and directions are independent of them. Traces have longer memory than this: daily cycles
//! and phases are not imitated.

mod player;
mod tables;

use base::{Bytes, Span};
use serde::Serialize;

pub use player::Imitator;
pub use tables::{IMITATIONS, imitation};

/// A trace's statistics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imitation {
    /// As experiment files name it.
    pub name: &'static str,
    /// As figures and tables name it.
    pub title: &'static str,
    /// Where the figures come from.
    pub source: &'static str,
    /// The are ours for want of one.
    pub ours: &'static str,
    /// Share of reads among the requests.
    pub read_share: f64,
    /// Sizes of reads in bytes, with weights that sum to 1.
    pub reads: &'static [(u64, f64)],
    /// Sizes of writes in bytes, with weights that sum to 1.
    pub writes: &'static [(u64, f64)],
    /// Share of requests that begin where the one before on their volume has ended.
    pub sequential_share: f64,
    /// Mean rate of the whole trace.
    pub requests_per_second: f64,
    /// Standard deviation of the gaps over their mean.
    pub gap_variation: f64,
    /// Zipf's exponent of the popularity of extents of [`EXTENT`].
    pub theta: f64,
    /// Devices of the recorded machine.
    pub devices: u32,
}

/// The unit of popularity: ours.
pub const EXTENT: Bytes = Bytes::kib(64);

/// What is played: an [`Imitation`], or a change of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Share of reads among the requests.
    pub read_share: f64,
    /// Sizes of reads with weights.
    pub reads: Vec<(Bytes, f64)>,
    /// Sizes of writes with weights.
    pub writes: Vec<(Bytes, f64)>,
    /// Share of requests that begin where the one before on their volume has ended.
    pub sequential_share: f64,
    /// Mean rate of all clients together, before it is scaled.
    pub requests_per_second: f64,
    /// Standard deviation of the gaps over their mean: 1 is Poisson's, less is not to be had with
    /// these phases.
    pub gap_variation: f64,
    /// Zipf's exponent of the popularity of extents, between 0 and 1.
    pub theta: f64,
}

/// How a shape is played. Clients are the nodes `0..clients`, volume `v` is the node `clients + v`;
/// every request draws both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImitationConfig {
    /// The statistics.
    pub shape: Shape,
    /// Number of clients.
    pub clients: u32,
    /// Number of volumes.
    pub volumes: u32,
    /// How much of each volume is used, from its first byte on.
    pub capacity: Bytes,
    /// What gaps are multiplied with: 0.5 plays twice as fast. The traces are from the age of
    /// disks.
    pub time_scale: f64,
    /// The load ends after this many requests...
    pub requests: Option<u64>,
    /// ...or with the last request before this time. At least one of the two is given.
    pub duration: Option<Span>,
}

impl Imitation {
    /// As parameters.
    pub fn shape(&self) -> Shape {
        let sizes = |table: &[(u64, f64)]| table.iter().map(|(bytes, weight)| (Bytes::new(*bytes), *weight)).collect();
        Shape {
            read_share: self.read_share,
            reads: sizes(self.reads),
            writes: sizes(self.writes),
            sequential_share: self.sequential_share,
            requests_per_second: self.requests_per_second,
            gap_variation: self.gap_variation,
            theta: self.theta,
        }
    }
}
