//! What a workload is made of. Plain structs with every field given; defaults and checks are in
//! `plan`.

use base::{Bytes, NodeId, Operation, Span, Time};
use serde::Serialize;

/// A whole workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Number of nodes; ids run from 0.
    pub nodes: u32,
    /// The traffic pattern.
    pub pattern: Pattern,
    /// The operations, with weights that need not sum to 1.
    pub mix: Vec<Class>,
    /// Share of requests for the client node's own memory: their target is their source, and no
    /// network carries them.
    pub local_fraction: f64,
    /// The arrival process.
    pub arrivals: Arrivals,
    /// The workload ends after this many requests of all nodes together...
    pub requests: Option<u64>,
    /// ...or with the last request whose intended start lies before this time, whichever comes
    /// first. At least one of the two is given, except for a trace, which ends by itself.
    pub duration: Option<Span>,
}

/// One class of requests in the mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The operation.
    pub operation: Operation,
    /// Its share.
    pub weight: f64,
    /// The size.
    pub size: SizeDistribution,
}

/// The traffic pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every node sends to every other, uniformly.
    AllToAll,
    /// The first `compute` nodes send to the others, uniformly.
    RoleSplit {
        /// How many compute nodes; the rest are memory nodes.
        compute: u32,
    },
    /// All other nodes (or the first `sources` of them) send to one.
    Incast {
        /// The target.
        target: NodeId,
        /// Number of sources.
        sources: u32,
    },
    /// Each node sends to one fixed other, and receives from one fixed other (a seeded
    /// derangement).
    Permutation,
}

/// The arrival process.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Open loop: independent exponential gaps at each client node.
    Poisson {
        /// Mean gap at one client node, in picoseconds (not rounded: loads would drift).
        mean_gap_ps: f64,
    },
    /// Open loop: equal gaps, each node starting at a random phase.
    Deterministic {
        /// Gap at one client node, in picoseconds.
        gap_ps: f64,
    },
    /// Open loop: exponential on and off periods; Poisson while on. The mean rate of a node is `on
    /// / (on + off) / mean_gap_ps` from the start, because each node begins on or off with these
    /// shares.
    OnOff {
        /// Mean gap while on, in picoseconds.
        mean_gap_ps: f64,
        /// Mean length of an on period.
        on: Span,
        /// Mean length of an off period.
        off: Span,
    },
    /// Closed loop: each client node keeps `depth` requests outstanding.
    Closed {
        /// Requests outstanding at each client node.
        depth: u32,
        /// From an answer to the next request of that slot.
        think: Span,
    },
    /// As a trace says; `pattern` and `mix` are not used.
    Trace {
        /// The messages of all nodes, in order of time.
        messages: Vec<TraceMessage>,
    },
}

/// One line of a message trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceMessage {
    /// Intended start.
    pub at: Time,
    /// The operation.
    pub operation: Operation,
    /// The source node.
    pub source: NodeId,
    /// The target node.
    pub target: NodeId,
    /// Length in bytes.
    pub bytes: Bytes,
}

/// How large requests are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// All the same.
    Constant {
        /// The size.
        bytes: Bytes,
    },
    /// Some sizes with weights.
    Table {
        /// `(size, weight)`.
        entries: Vec<(Bytes, f64)>,
    },
    /// A cumulative distribution, linear between its points (inverse transform).
    Cdf {
        /// Where it comes from: a file's name or a shipped profile.
        name: String,
        /// `(size in bytes, cumulative probability)`, both non-decreasing, from probability 0 (or
        /// the first point's) to 1.
        points: Vec<(f64, f64)>,
    },
}
