//! When answers are overdue. All of one kind are given equally long, so a queue is in order.

use crate::Tag;
use base::{Span, Time};
use std::collections::VecDeque;

/// One sending of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub tag: Tag,
    /// The of its sendings.
    pub sending: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Deadlines {
    timeout: Span,
    queue: VecDeque<(Time, Deadline)>,
}

impl Deadlines {
    pub fn new(timeout: Span) -> Deadlines {
        Deadlines { timeout, queue: VecDeque::new() }
    }

    pub fn push(&mut self, now: Time, deadline: Deadline) {
        self.queue.push_back((now.checked_add(self.timeout).unwrap_or(Time::MAX), deadline));
    }

    pub fn pop_due(&mut self, now: Time) -> Option<Deadline> {
        let is_due = self.queue.front().is_some_and(|(due, _)| *due <= now);
        if is_due { self.queue.pop_front().map(|(_, deadline)| deadline) } else { None }
    }

    pub fn next(&self) -> Option<Time> {
        self.queue.front().map(|(due, _)| *due)
    }

    /// Drops those at the front that do not matter any more.
    pub fn trim(&mut self, matters: impl Fn(&Deadline) -> bool) {
        while self.queue.front().is_some_and(|(_, deadline)| !matters(deadline)) {
            self.queue.pop_front();
        }
    }
}
