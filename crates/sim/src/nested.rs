//! A rig within another one: its events wait in a queue of their own, and its requests end for the
//! outer rig.

use crate::drive::{Context, Ended, Event, Rig};
use base::{Span, Time};
use kernel::EventQueue;

/// The inner rig with what the driver has for an outer one.
pub(crate) struct Nested<R: Rig> {
    rig: R,
    queue: EventQueue<Event<R::Event>>,
    ended: Vec<Ended>,
}

impl<R: Rig> Nested<R> {
    /// A rig at rest. What it would do in its [`start`](Rig::start) is not asked for.
    pub(crate) fn new(rig: R) -> Nested<R> {
        Nested { rig, queue: EventQueue::new(), ended: Vec::new() }
    }

    /// The rig, to look at.
    pub(crate) fn rig(&self) -> &R {
        &self.rig
    }

    /// The rig, to be changed without its doing anything.
    pub(crate) fn rig_mut(&mut self) -> &mut R {
        &mut self.rig
    }

    /// Has the rig do something now. Its events before now are all done.
    pub(crate) fn act(&mut self, now: Time, act: impl FnOnce(&mut R, &mut Context<'_, R::Event>)) {
        let (queue, ended) = (&mut self.queue, &mut self.ended);
        act(&mut self.rig, &mut Context { queue, ended, now, keeps_spans: false, least_kept: Span::ZERO });
    }

    /// Executes the next event that is due by now; whether there was one.
    pub(crate) fn step(&mut self, now: Time) -> bool {
        if self.next().is_none_or(|at| at > now) {
            return false;
        }
        if let Some((at, Event::Rig(event))) = self.queue.pop() {
            self.act(at, |rig, context| rig.on(event, context));
        }
        true
    }

    /// When the next event is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.queue.peek_time()
    }

    /// A request that has ended and was not asked for yet.
    pub(crate) fn pop_ended(&mut self) -> Option<Ended> {
        self.ended.pop()
    }
}
