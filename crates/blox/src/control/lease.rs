//! A server's right to serve, which expires by itself.
//!
//! The control plane echoes each heartbeat of a server that it counts as a member. The lease runs
//! from the time when that beat was *sent*, the control plane's timeout from the time when it was
//! *received*. With a lease shorter than the timeout, a server is silent before another takes its
//! place, whatever the network does. Where the control plane is more patient, the echo names a
//! longer lease. (Clocks run equally fast; the difference of the two is the
//! margin for those that do not.)

use base::{Span, Time};
use std::collections::VecDeque;

/// Beats whose echo may still come; older ones could not lengthen the lease.
const REMEMBERED_MAX: usize = 64;

/// One server's heartbeats and its lease. A restarted server makes a new one.
#[derive(Clone, Debug)]
pub struct Lease {
    span: Span,
    next_beat: u64,
    sent: VecDeque<(u64, Time)>,
    until: Option<Time>,
}

impl Lease {
    /// A server that has just started for the `starts`-th time (from 0), and may not serve before
    /// the first echo. Its beats are `starts` in the upper half and a count in the lower: they rise
    /// for ever, and a restart shows.
    pub fn new(span: Span, starts: u32) -> Lease {
        Lease { span, next_beat: u64::from(starts) << 32, sent: VecDeque::with_capacity(REMEMBERED_MAX), until: None }
    }
    /// The right of a server that is a member from the start of the run: the control plane's
    /// patience with it runs from then, too.
    pub fn hold_from_start(&mut self) {
        self.until = self.until.max(Some(Time::ZERO + self.span));
    }
    /// The number of the heartbeat that is sent now.
    pub fn beat(&mut self, now: Time) -> u64 {
        if self.sent.len() == REMEMBERED_MAX {
            self.sent.pop_front();
        }
        let beat = self.next_beat;
        self.sent.push_back((beat, now));
        self.next_beat += 1;
        beat
    }
    /// A heartbeat has come back from the control plane. One that was never sent, or long ago,
    /// changes nothing.
    pub fn echoed(&mut self, beat: u64) {
        self.granted(beat, self.span);
    }
    /// It has come back with a lease of `span`.
    pub fn granted(&mut self, beat: u64, span: Span) {
        while let Some((sent_beat, at)) = self.sent.front().copied().filter(|(sent_beat, _)| *sent_beat <= beat) {
            self.sent.pop_front();
            if sent_beat == beat {
                self.until = self.until.max(Some(at.checked_add(span).unwrap_or(Time::MAX)));
            }
        }
    }
    /// Returns whether the server may answer clients now.
    pub fn holds(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }
    /// Returns the time at which the lease ends unless it is renewed; `None` before the first echo.
    pub fn until(&self) -> Option<Time> {
        self.until
    }
}
