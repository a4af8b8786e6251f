//! What a run comes to: counts, loads, latency statistics, mean spans. One definition for every design.

use std::collections::BTreeMap;

/// How many requests ended how. `offered = issued + not_issued`, `issued = finished + null + lost + in_flight_at_end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Requests that the workload intended, before the stop.
    pub offered: u64,
    /// Requests that the source took up.
    pub issued: u64,
    /// Requests that were answered, or whose data arrived.
    pub finished: u64,
    /// Requests answered with nothing by a timer.
    pub null: u64,
    /// Requests whose data was lost for good.
    pub lost: u64,
    /// Packets or messages that a full buffer dropped (they may have been sent again).
    pub dropped_packets: u64,
    /// Requests taken up but not ended when the run stopped.
    pub in_flight_at_end: u64,
    /// Requests that were intended but never taken up before the stop.
    pub not_issued: u64,
    /// Requests in the statistics: intended after the warm-up and finished.
    pub measured: u64,
}

/// Statistics of one quantity over the measured requests of one run, or over seeds. Times are in nanoseconds,
/// ratios have no dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// How many values.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half-width of the 95 % confidence interval of the mean over seeds (Student's t); absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_ci95: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Half-width of the 95 % confidence interval of p99 over seeds; absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub p99_ci95: Option<f64>,
    /// Largest.
    pub max: f64,
}

/// Offered and achieved load.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What the plan asked for, as a fraction of the busiest link; absent in a closed loop or a trace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub planned: Option<f64>,
    /// Payload that the workload intended, in Gb/s over all nodes, while arrivals lasted.
    pub offered_gbps: f64,
    /// Payload of requests finished, in Gb/s over all nodes, over the same window.
    pub achieved_gbps: f64,
    /// Requests finished a second over the same window.
    pub requests_per_second: f64,
    /// The busiest link's share of time spent sending, over the same window.
    pub busiest_link: f64,
}

/// Everything that one run (or several seeds of it) comes to.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The program's version.
    pub version: String,
    /// SHA-256 of the resolved plan, hex.
    pub plan_hash: String,
    /// The design's name.
    pub design: String,
    /// The seeds that went in; one for a single run.
    pub seeds: Vec<u64>,
    /// Where this point lies in its sweep: axis name to value, as written in the experiment file.
    pub labels: BTreeMap<String, String>,
    /// How many requests ended how (sums over seeds).
    pub counts: Counts,
    /// Offered and achieved load (means over seeds).
    pub load: Load,
    /// Virtual time that the run covered, in nanoseconds (mean over seeds).
    pub simulated_ns: f64,
    /// Events that the simulator executed.
    pub events: u64,
    /// End-to-end latency in nanoseconds by operation (`read`, `write`, ...) and under `all`.
    pub latency_ns: BTreeMap<String, Statistics>,
    /// Latency over the latency of the same request alone in the network (the mean of the ratios), by operation and `all`.
    pub slowdown: BTreeMap<String, Statistics>,
    /// Mean latency of the same requests alone in the network, in nanoseconds, by operation and `all`.
    pub unloaded_ns: BTreeMap<String, f64>,
    /// Mean time a request spent in each span, in nanoseconds, by operation and `all`.
    pub span_mean_ns: BTreeMap<String, BTreeMap<String, f64>>,
    /// What only this design can tell, by name with its unit at the end.
    pub extra: BTreeMap<String, f64>,
    /// What a reader must know before believing the numbers (saturation, unfinished requests...).
    pub warnings: Vec<String>,
    /// Whether the run was cut short (Ctrl-C, full disk).
    pub partial: bool,
}
