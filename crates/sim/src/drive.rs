//! The part of a simulation that is the same for every design: the clock, the workload, the records, the end of a run.
//!
//! A [`Rig`] puts programs into models. It is handed requests and its own events, schedules further events, and says which
//! requests have ended; everything else is done here, once.

use base::{Bytes, Operation, Request, Span, Time};
use kernel::EventQueue;
use record::{Outcome, Spans};

/// A request that has ended, as its rig reports it.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What was handed to [`Rig::issue`].
    pub ticket: Ticket,
    /// How it ended.
    pub outcome: Outcome,
    /// When the source took it up.
    pub start: Time,
    /// When it ended. Now, or up to a fixed pipeline delay ahead of the event that settled it.
    pub end: Time,
    /// Where the time from `intended` to `end` went.
    pub spans: Spans,
}

/// The driver's handle on a request in flight: a small number that is used again after the request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// What a rig may do while it handles something.
pub struct Context<'a, E> {
    pub(crate) queue: &'a mut EventQueue<Event<E>>,
    pub(crate) ended: &'a mut Vec<Ended>,
    /// The present.
    pub now: Time,
}

/// An event of the driver or of the rig.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<E> {
    /// The workload's arrival with this index in the driver's table is due.
    Arrival(u32),
    /// Something of the rig's own.
    Rig(E),
}

impl<E: Copy> Context<'_, E> {
    /// Schedules `event` at `at`, not before now.
    pub fn at(&mut self, at: Time, event: E) {
        self.queue.push(at, Event::Rig(event));
    }
    /// Schedules `event` after `span`.
    pub fn after(&mut self, span: Span, event: E) {
        self.at(self.now + span, event);
    }
    /// Reports the end of a request. Exactly once a ticket.
    pub fn end(&mut self, ended: Ended) {
        self.ended.push(ended);
    }
}

/// A design inside its hardware models.
pub trait Rig {
    /// The rig's own events: small and plain, the queue copies them.
    type Event: Copy;
    /// The workload wants `request` to start now (`intended` in an open loop is now, and never later).
    fn issue(&mut self, ticket: Ticket, request: &Request, intended: Time, context: &mut Context<'_, Self::Event>);
    /// One of its own events is due.
    fn on(&mut self, event: Self::Event, context: &mut Context<'_, Self::Event>);
    /// The end-to-end time of such a request alone in this network.
    fn unloaded(&self, operation: Operation, bytes: Bytes) -> Span;
    /// How long each direction of each link was busy so far: the driver takes differences for utilisation.
    fn link_busy(&self, out: &mut Vec<Span>);
    /// Packets or messages that full buffers dropped so far.
    fn dropped_packets(&self) -> u64;
    /// What only this design can tell, by name with its unit at the end.
    fn extra(&self, out: &mut std::collections::BTreeMap<String, f64>);
}
