//! Who makes requests, and when.

use base::{Request, Time};

/// A request and the time at which the workload wants it to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The intended start.
    pub at: Time,
    /// The request.
    pub request: Request,
}

/// A source of requests, as the hosts of Rackweave drive it.
pub trait Source {
    /// The first arrivals of every node (one a node in an open loop, `depth` a node in a closed one; all nodes in order of id).
    fn start(&mut self, out: &mut Vec<Arrival>);
    /// An open loop's next arrival at the node of `taken`, now that `taken` has been handed to the design; `None` in a
    /// closed loop, or when the workload is exhausted at this node.
    fn after_arrival(&mut self, taken: &Arrival) -> Option<Arrival>;
    /// A closed loop's next arrival at the node of `finished`, which ended at `now`; `None` in an open loop, or when exhausted.
    fn after_end(&mut self, now: Time, finished: &Request) -> Option<Arrival>;
}
