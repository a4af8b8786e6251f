//! The target's time: what calls bring, and the earliest deadline.

use base::{Span, Time};

/// Time as calls bring it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The latest time that any call brought.
    now: Time,
    started: Option<Time>,
    /// No deadline is before this.
    wakeup: Option<Time>,
}

impl Clock {
    /// A call brings the time `now`. Time never goes back.
    pub(super) fn pass(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.started.get_or_insert(now);
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Time since the first call.
    pub(super) fn uptime(&self) -> Span {
        self.started.map_or(Span::ZERO, |started| self.now.saturating_since(started))
    }

    /// The time of the next wake-up; `None` without a deadline. It may be earlier than needed.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    /// Wakes up at `deadline` at the latest.
    pub(super) fn wake_by(&mut self, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.wakeup = Some(self.wakeup.map_or(deadline, |known| known.min(deadline)));
        }
    }

    /// The deadline `span` from now.
    pub(super) fn deadline(&mut self, span: Span) -> Option<Time> {
        let deadline = self.now.checked_add(span);
        self.wake_by(deadline);
        deadline
    }

    /// Replaces the next wake-up: `earliest` is the earliest deadline of all.
    pub(super) fn restart(&mut self, earliest: Option<Time>) {
        self.wakeup = earliest;
    }
}
