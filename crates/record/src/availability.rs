//! The availability of data after a fault.

use crate::describe::described;
use crate::row::{Outcome, Row};
use base::Time;

described! {
    /// What of the data could be had after the first fault of a run. A request counts that was
    /// underway then or intended later, in the warm-up too.
    #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Availability {
        /// When the first fault came, in nanoseconds.
        pub first_fault_ns: f64 ["ns"],
        /// Requests that were underway at that time or intended later.
        pub requests: u64 ["requests"],
        /// Those of them that were not served: timed out, rejected, lost or unavailable.
        pub unserved: u64 ["requests"],
        /// The share that was served.
        pub fraction: f64 ["fraction"],
        /// From the first fault to the intended start of the last request that was not served; 0 if
        /// all were. Absent if no request that was intended later was served. Over seeds the
        /// longest.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub recovery_ns: Option<f64> ["ns"],
    }
}

/// The requests of a run since its first fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinceFault {
    first_fault: Time,
    requests: u64,
    unserved: u64,
    last_unserved: Option<Time>,
    last_served: Option<Time>,
}

impl SinceFault {
    pub fn new(first_fault: Time) -> SinceFault {
        SinceFault { first_fault, requests: 0, unserved: 0, last_unserved: None, last_served: None }
    }

    pub fn add(&mut self, row: &Row) {
        // Requests that the end of the run cut off are no evidence of faults.
        if row.end < self.first_fault || row.outcome == Outcome::Unfinished {
            return;
        }
        self.requests += 1;
        let last = match row.outcome {
            Outcome::Finished => &mut self.last_served,
            _ => {
                self.unserved += 1;
                &mut self.last_unserved
            }
        };
        *last = (*last).max(Some(row.intended.max(self.first_fault)));
    }

    /// Returns the availability, or `None` without requests.
    pub fn availability(&self) -> Option<Availability> {
        let SinceFault { first_fault, requests, unserved, last_unserved, last_served } = *self;
        let recovery = match (last_unserved, last_served) {
            (None, _) => Some(0.0),
            (Some(unserved), Some(served)) if served > unserved => {
                Some(unserved.saturating_since(first_fault).as_ns_f64())
            }
            _ => None,
        };
        (requests > 0).then(|| Availability {
            first_fault_ns: first_fault.as_ns_f64(),
            requests,
            unserved,
            fraction: 1.0 - unserved as f64 / requests as f64,
            recovery_ns: recovery,
        })
    }
}

impl Availability {
    /// Merges several seeds: requests are summed, and the recovery is the longest, or absent if one
    /// run has none.
    pub(crate) fn over_seeds<'a>(runs: impl Iterator<Item = &'a Availability>) -> Option<Availability> {
        let longer = |one: Option<f64>, other: Option<f64>| Some(one?.max(other?));
        let sum = runs.copied().reduce(|sum, run| Availability {
            first_fault_ns: sum.first_fault_ns.min(run.first_fault_ns),
            requests: sum.requests + run.requests,
            unserved: sum.unserved + run.unserved,
            fraction: 0.0,
            recovery_ns: longer(sum.recovery_ns, run.recovery_ns),
        })?;
        Some(Availability { fraction: 1.0 - sum.unserved as f64 / sum.requests as f64, ..sum })
    }
}
