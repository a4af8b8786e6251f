//! Payload offered and finished between the end of the warm-up and the end of arrivals, which is
//! known only at the end.

use crate::row::{Outcome, Row};
use base::Time;
use std::time::Duration;

/// Number of finished requests, and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finished {
    pub requests: u64,
    pub bytes: u128,
}

/// The running sums of the window.
///
/// A request that finished no later than another was intended has finished before arrivals end, so
/// it can be added at once. The others wait in a list, which is about as long as the list of
/// requests in flight.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    start: Time,
    offered_bytes: u128,
    finished: Finished,
    /// End time and bytes of requests that ended after `latest_intended` at the last sweep.
    later: Vec<(Time, u64)>,
    /// The length at which the list is swept.
    sweep_at: usize,
    latest_intended: Time,
    latest_end: Time,
}

/// Shorter lists are not swept.
const SMALL: usize = 1024;

impl Window {
    /// Creates a window whose start is not known yet: it is no earlier than any request intended
    /// before [`begin`](Self::begin).
    pub fn not_begun() -> Window {
        Window::new(Time::MAX)
    }

    /// Starts a window that has not begun, at the time of the next intended request.
    pub fn begin(&mut self, start: Time) {
        self.start = start;
        self.later.retain(|(end, _)| *end >= start);
    }

    fn is_begun(&self) -> bool {
        self.start < Time::MAX
    }

    pub fn new(start: Time) -> Window {
        Window {
            start,
            offered_bytes: 0,
            finished: Finished::default(),
            later: Vec::new(),
            sweep_at: SMALL,
            latest_intended: Time::ZERO,
            latest_end: Time::ZERO,
        }
    }

    pub fn add(&mut self, row: &Row) {
        self.latest_intended = self.latest_intended.max(row.intended);
        self.latest_end = self.latest_end.max(row.end);
        if row.intended >= self.start {
            self.offered_bytes += u128::from(row.bytes.count());
        }
        if row.outcome == Outcome::Finished && (row.end >= self.start || !self.is_begun()) {
            self.later.push((row.end, row.bytes.count()));
            self.sweep_when_long();
        }
    }

    fn sweep_when_long(&mut self) {
        if self.later.len() < self.sweep_at {
            return;
        }
        if self.is_begun() {
            self.finished = self.finished_by(self.latest_intended);
        }
        let settled = self.latest_intended;
        self.later.retain(|(end, _)| *end > settled);
        self.sweep_at = SMALL.max(2 * self.later.len());
    }

    /// Returns what finished from the start of the window to `end`, which is at or after every
    /// intended time.
    pub fn finished_by(&self, end: Time) -> Finished {
        self.later.iter().filter(|(at, _)| *at <= end).fold(self.finished, |sum, (_, bytes)| Finished {
            requests: sum.requests + 1,
            bytes: sum.bytes + u128::from(*bytes),
        })
    }

    /// Returns the payload of the requests intended since the start of the window.
    pub fn offered_bytes(&self) -> u128 {
        self.offered_bytes
    }

    pub fn latest_intended(&self) -> Time {
        self.latest_intended
    }

    pub fn length_ps(&self, end: Time) -> u64 {
        end.saturating_since(self.start).as_ps()
    }

    /// Returns the start and the length of the time from the end of the warm-up to the last end.
    pub fn span_of_rows(&self) -> (Duration, Duration) {
        let length = self.latest_end.saturating_since(self.start).as_ps();
        (Duration::from_nanos(self.start.as_ps() / 1_000), Duration::from_nanos(length / 1_000))
    }
}
