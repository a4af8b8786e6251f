//! Log lines that many peers cause: see [`Throttle`].

use base::Time;
use runtime::throttle::{AT_ONCE, Throttle};

/// Events that peers may cause often enough to fill the log.
#[derive(Clone, Copy)]
pub(crate) enum Flood {
    Refused,
    Silent,
    Displaced,
    Crowded,
    Tolerated,
    Unaccepted,
    Wrong,
    NotLetIn,
    Handshake,
    Hosts,
}

impl Flood {
    /// The log's text about suppressed lines, in the order of the kinds.
    const ALL: [&str; 10] = [
        "more connections refused",
        "more connections ended: no Connect came in time",
        "more connections ended: they made room for others",
        "more Connects of hosts with as many controllers as a host may have",
        "more departures from the specification tolerated",
        "more failures to accept connections",
        "more connections ended: protocol, secret or network",
        "more hosts not let in",
        "more TLS handshakes failed",
        "more hosts that came or went",
    ];
}

/// Lines of every kind.
#[derive(Debug, Default)]
pub(crate) struct Floods([Throttle<AT_ONCE>; Flood::ALL.len()]);

impl Floods {
    /// Calls `tell` to write a line with the number of lines suppressed before it, or suppresses
    /// it.
    pub(crate) fn tell(&mut self, now: Time, flood: Flood, tell: impl FnOnce(u64)) {
        self.0[flood as usize].tell(now, tell);
    }

    /// Writes the number of suppressed lines of each kind for which that is allowed now.
    pub(crate) fn tell_due(&mut self, now: Time) {
        for (flood, what) in self.0.iter_mut().zip(Flood::ALL) {
            if let Some(left_out) = flood.take_due(now) {
                tracing::warn!(left_out, "{what}");
            }
        }
    }

    /// Time at which [`Self::tell_due`] has something to report.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.0.iter().filter_map(Throttle::next_due).min()
    }
}
