//! Rates on their way through a switch's control plane.

use super::ClassId;
use base::{Rate, Span, Time};
use std::collections::VecDeque;

/// Changes of fill rates that are not installed yet, in order of time.
#[derive(Clone, Debug)]
pub(super) struct ControlPlane {
    delay: Span,
    pending: VecDeque<(Time, ClassId, Rate)>,
}

impl ControlPlane {
    /// Returns an empty one, or `None` for a `delay` of zero.
    pub(super) fn new(delay: Span) -> Option<Box<ControlPlane>> {
        (delay > Span::ZERO).then(|| Box::new(ControlPlane { delay, pending: VecDeque::new() }))
    }

    /// Requests a rate, which is installed a delay later.
    pub(super) fn request(&mut self, now: Time, class: ClassId, rate: Rate) {
        self.pending.push_back((now + self.delay, class, rate));
    }

    /// Returns when the next rate is installed.
    pub(super) fn next(&self) -> Option<Time> {
        self.pending.front().map(|(at, ..)| *at)
    }

    /// Removes the next rate to install by `now`, and when it was.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(Time, ClassId, Rate)> {
        self.pending.pop_front_if(|(at, ..)| *at <= now)
    }

    /// Drops all requests.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }
}
