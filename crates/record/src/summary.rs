//! The summary of a run: counts, loads, latency statistics, mean spans. One definition for every
//! design.

use crate::availability::Availability;
use crate::describe::described;
use std::collections::BTreeMap;

described! {
    /// How many requests ended how. `offered = issued + not_issued`, `issued = finished +
    /// timed_out + rejected + lost + unavailable + in_flight_at_end`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Counts {
        /// Requests that the workload intended, before the stop.
        pub offered: u64 ["requests"],
        /// Requests that the source took up.
        pub issued: u64 ["requests"],
        /// Requests that were answered, or whose data arrived.
        pub finished: u64 ["requests"],
        /// Requests that a timer ended without an answer.
        pub timed_out: u64 ["requests"],
        /// Requests answered with an error: refused, or not carried out.
        pub rejected: u64 ["requests"],
        /// Requests whose data was lost for good.
        pub lost: u64 ["requests"],
        /// Packets or messages that a full buffer dropped (they may have been sent again).
        pub dropped_packets: u64 ["packets"],
        /// Requests taken up but not ended when the run stopped.
        pub in_flight_at_end: u64 ["requests"],
        /// Requests after a fault that were waited for in vain: their data could not be had.
        pub unavailable: u64 ["requests"],
        /// Requests that were intended but never taken up before the stop.
        pub not_issued: u64 ["requests"],
        /// Requests in the statistics: intended after the warm-up and finished.
        pub measured: u64 ["requests"],
    }
}

described! {
    /// Statistics of one quantity over the measured requests of one run, or over seeds. Times are
    /// in nanoseconds, ratios have no dimension.
    #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Statistics {
        /// How many values.
        pub count: u64 ["requests"],
        /// Arithmetic mean.
        pub mean: f64 ["inherited"],
        /// Half-width of the 95 % confidence interval of the mean over seeds (Student's t); absent
        /// for a single run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub mean_ci95: Option<f64> ["inherited"],
        /// Smallest.
        pub min: f64 ["inherited"],
        /// Median.
        pub p50: f64 ["inherited"],
        /// 90th percentile.
        pub p90: f64 ["inherited"],
        /// 99th percentile.
        pub p99: f64 ["inherited"],
        /// 99.9th percentile.
        pub p999: f64 ["inherited"],
        /// Half-width of the 95 % confidence interval of p99 over seeds; absent for a single run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub p99_ci95: Option<f64> ["inherited"],
        /// Largest.
        pub max: f64 ["inherited"],
        /// Percentiles from this one on are lower bounds (0.5, 0.9, 0.99, 0.999; 1 is the largest):
        /// requests that did not end could raise them. Absent where none could.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub lower_bound_from: Option<f64> ["fraction"],
    }
}

described! {
    /// Offered and achieved load.
    #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Load {
        /// What the plan asked for, as a fraction of the busiest link; absent in a closed loop or a
        /// trace.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub planned: Option<f64> ["fraction"],
        /// Payload that the workload intended, in Gb/s over all nodes, while arrivals lasted.
        pub offered_gbps: f64 ["Gb/s"],
        /// Payload of requests finished, in Gb/s over all nodes, over the same window.
        pub achieved_gbps: f64 ["Gb/s"],
        /// Requests finished a second over the same window.
        pub requests_per_second: f64 ["1/s"],
        /// The busiest link's share of time spent sending, over the same window.
        pub busiest_link: f64 ["fraction"],
    }
}

described! {
    /// Everything that one run (or several seeds of it) comes to.
    ///
    /// # Formulae
    /// Let *M* be the measured requests that finished, of one operation or of `all`, and *n* their
    /// number; *W* the window from the end of the warm-up to the last intended start (both
    /// included), *w* its length in seconds.
    ///
    /// * latency of a request = `end - intended`; `latency_ns.mean` = sum over *M* / *n*, exact up
    ///   to the last rounding to `f64`
    /// * slowdown of a request = latency / unloaded latency; `slowdown.mean` = sum of the ratios /
    ///   *n* (not the ratio of the sums), each ratio rounded to 2⁻³² so that the order of the rows
    ///   cannot change the sum
    /// * percentile *q* = the smallest value such that at least ⌈*q n*⌉ values are not greater,
    ///   from an HdrHistogram with three significant digits: of the values in one bucket the
    ///   greatest, so up to 0.1 % high, and never outside `min..=max`, which are exact. Slowdowns
    ///   are put into their histogram in steps of 1/1000. A measured request that had not ended
    ///   when the run did counts with its age then, which its latency exceeds: `n` has it for
    ///   percentiles, `min` and `max`, not for means. `lower_bound_from` says which percentiles it
    ///   could raise
    /// * `load.offered_gbps` = 8 × bytes of the requests intended within *W* / *w* / 10⁹
    /// * `load.achieved_gbps` = 8 × bytes of the requests that finished within *W*, whenever
    ///   intended, / *w* / 10⁹
    /// * `load.requests_per_second` = number of the requests that finished within *W* / *w*
    /// * over *s* seeds: counts, events and `count` are sums, `min` and `max` the extremes;
    ///   percentiles and `lower_bound_from` are those of all seeds' requests in one histogram;
    ///   metrics are merged as they are declared, all else are plain means of the seeds' values;
    ///   confidence half-width = t(0.975, *s* - 1) × standard deviation of the seeds' values (with
    ///   *s* - 1) / √*s*, for p99 around the mean of the seeds' values
    #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Summary {
        /// The program's version.
        pub version: String ["none"],
        /// SHA-256 of the resolved plan without its seed, hex.
        pub plan_hash: String ["none"],
        /// The design's name.
        pub design: String ["none"],
        /// The seeds that went in; one for a single run.
        pub seeds: Vec<u64> ["none"],
        /// Where this point lies in its sweep: axis name to value, as written in the experiment
        /// file.
        pub labels: BTreeMap<String, String> ["as written"],
        /// How many requests ended how (sums over seeds).
        pub counts: Counts ["none"],
        /// Offered and achieved load (means over seeds).
        pub load: Load ["none"],
        /// What could be had after the first fault; absent where nothing broke.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub availability: Option<Availability> ["none"],
        /// Virtual time that the run covered, in nanoseconds (mean over seeds).
        pub simulated_ns: f64 ["ns"],
        /// Events that the simulator executed (sum over seeds).
        pub events: u64 ["events"],
        /// End-to-end latency in nanoseconds by operation (`read`, `write`, ...) and under `all`.
        pub latency_ns: BTreeMap<String, Statistics> ["ns"],
        /// Latency over the latency of the same request alone in the network (the mean of the
        /// ratios), by operation and `all`.
        pub slowdown: BTreeMap<String, Statistics> ["ratio"],
        /// Mean latency of the same requests alone in the network, in nanoseconds, by operation and
        /// `all`.
        pub unloaded_ns: BTreeMap<String, f64> ["ns"],
        /// Mean time a request spent in each span, in nanoseconds, by operation and `all`.
        pub span_mean_ns: BTreeMap<String, BTreeMap<String, f64>> ["ns"],
        /// What designs and workloads count beside requests, by names of the registry.
        pub metrics: BTreeMap<String, f64> ["by metric"],
        /// What a reader must know before believing the numbers (saturation, unfinished
        /// requests...).
        pub warnings: Vec<String> ["none"],
        /// Whether the run was cut short (Ctrl-C, full disk), or stalled before all of its load was
        /// offered.
        pub partial: bool ["none"],
    }
}

/// Returns the summary as JSON for people and programs: indented, keys in a fixed order, a newline
/// at the end. Equal summaries give equal text.
pub fn summary_json(summary: &Summary) -> String {
    let text = serde_json::to_string_pretty(summary).expect("a summary has string keys and plain values only");
    text + "\n"
}
