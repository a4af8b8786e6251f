//! When a load ends.

use base::{RequestId, Span, Time};

/// Counts requests and says when there may be no more.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    made: u64,
    requests: u64,
    end: Time,
}

impl Limits {
    /// At most `requests`, all of them before `duration` has passed.
    pub(crate) fn new(requests: Option<u64>, duration: Option<Span>) -> Limits {
        let end = duration.map_or(Time::MAX, |span| Time::ZERO + span);
        Limits { made: 0, requests: requests.unwrap_or(u64::MAX), end }
    }

    /// The number of a request that starts at `at`, or `None` when it is one too many or too late.
    pub(crate) fn admit(&mut self, at: Time) -> Option<RequestId> {
        if !self.is_open(at) {
            return None;
        }
        self.made += 1;
        Some(RequestId(self.made - 1))
    }

    /// Returns whether a request that starts at `at` would be admitted.
    pub(crate) fn is_open(&self, at: Time) -> bool {
        self.made < self.requests && at < self.end
    }

    /// Returns how many were admitted.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }
}
