//! Pages that are not valid: their state, their waiters, and their timers.

use super::Ticket;
use crate::id::{Origin, Page, Value, WriteId, earlier};
use crate::packet::Timestamp;
use crate::timeouts::Timeouts;
use base::{Span, Time};
use slab::Slab;

/// How often the time until an INV is sent again is doubled.
const DOUBLINGS: u32 = 4;

/// What a page in flight waits for. (Valid pages have no state of their own.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Another replica writes: its VAL.
    Invalid,
    /// Another replica's write has overtaken ours: acknowledgements of ours first, then the other's
    /// VAL.
    InvalidWrite,
    /// We write: acknowledgements.
    Write,
    /// We finish another's write in its place: acknowledgements.
    Replay,
}

/// A write that this replica drives.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    pub timestamp: Timestamp,
    pub value: Value,
    /// Whose write it is, if it may be sent again.
    pub origin: Option<Origin>,
    /// The request that waits for it; `None` for a replay.
    pub ticket: Option<Ticket>,
}

pub struct Flight {
    pub page: Page,
    pub state: State,
    /// Of the newest write that is known.
    pub timestamp: Timestamp,
    /// Its value.
    pub value: Value,
    /// Whose it is, if it may be sent again.
    pub origin: Option<Origin>,
    /// What we drive; of no meaning in [`State::Invalid`]. Older than `timestamp` in
    /// [`State::InvalidWrite`], the same otherwise.
    pub drive: Drive,
    /// A bit for each peer whose acknowledgement of `drive` is missing.
    pub missing: u8,
    /// How often its INV was sent.
    pub sendings: u32,
    /// Whether the page was in flight when the epoch began, and has not been valid since.
    pub settling: bool,
    /// Whether the stale peer waits for the page, and for which of its writes.
    pub wanted: bool,
    pub after: Option<WriteId>,
    /// The alarm that counts; those with other stamps are dead.
    pub armed: u64,
    pub reads: List,
    pub writes: List,
}

impl Flight {
    /// A page that another replica writes.
    pub fn invalid(page: Page, timestamp: Timestamp, value: Value, origin: Option<Origin>) -> Flight {
        Flight {
            page,
            state: State::Invalid,
            timestamp,
            value,
            origin,
            drive: Drive { timestamp, value, origin, ticket: None },
            missing: 0,
            sendings: 0,
            settling: false,
            wanted: false,
            after: None,
            armed: 0,
            reads: List::EMPTY,
            writes: List::EMPTY,
        }
    }
    /// Puts the write that we drive, and that is the newest, to its start.
    pub fn start(&mut self, state: State, drive: Drive, missing: u8) {
        (self.state, self.timestamp, self.value) = (state, drive.timestamp, drive.value);
        (self.origin, self.drive, self.missing, self.sendings) = (drive.origin, drive, missing, 0);
    }
}

/// A queue within [`Waiting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: usize,
    tail: usize,
}

impl List {
    const NONE: usize = usize::MAX;
    pub const EMPTY: List = List { head: List::NONE, tail: List::NONE };
}

/// Requests that wait for pages, in queues that share one slab.
#[derive(Default)]
pub struct Waiting(Slab<Waiter>);

#[derive(Clone, Copy)]
struct Waiter {
    ticket: Ticket,
    value: Value,
    origin: Option<Origin>,
    next: usize,
}

impl Waiting {
    /// `value` and `origin` are of no meaning for reads.
    pub fn push(&mut self, list: &mut List, ticket: Ticket, value: Value, origin: Option<Origin>) {
        let place = self.0.insert(Waiter { ticket, value, origin, next: List::NONE });
        match self.0.get_mut(list.tail) {
            Some(tail) => tail.next = place,
            None => list.head = place,
        }
        list.tail = place;
    }
    /// Values of all that wait.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.0.iter().map(|(_, waiter)| waiter.value)
    }
    pub fn pop(&mut self, list: &mut List) -> Option<(Ticket, Value, Option<Origin>)> {
        let first = self.0.try_remove(list.head)?;
        list.head = first.next;
        if first.next == List::NONE {
            list.tail = List::NONE;
        }
        Some((first.ticket, first.value, first.origin))
    }
}

/// Purpose of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Sends INV again to members that have not acknowledged it.
    Retransmit,
    /// Replay the page.
    Replay,
}

/// Alarms in flight.
pub struct Alarms {
    retransmit: Timeouts<Due>,
    replay: Timeouts<Due>,
    stamp: u64,
}

#[derive(Clone, Copy)]
struct Due {
    slot: usize,
    stamp: u64,
}

impl Alarms {
    pub fn new(retransmit: Span, replay: Span) -> Alarms {
        Alarms { retransmit: Timeouts::new(retransmit, DOUBLINGS), replay: Timeouts::new(replay, 0), stamp: 0 }
    }
    /// Arms the slot's alarm, which replaces an older one.
    pub fn arm(&mut self, now: Time, alarm: Alarm, slot: usize, flight: &mut Flight) {
        self.stamp += 1;
        flight.armed = self.stamp;
        let due = Due { slot, stamp: self.stamp };
        self.queue(alarm).push(now, flight.sendings.saturating_sub(1), due);
    }
    /// Drops alarms that nobody needs from the fronts, so that nobody is woken for them.
    pub fn prune(&mut self, flights: &Slab<Flight>) {
        for queue in [&mut self.retransmit, &mut self.replay] {
            queue.trim(|due| is_live(due, flights));
        }
    }
    pub fn next(&self) -> Option<Time> {
        earlier(self.retransmit.next(), self.replay.next())
    }
    /// The next slot with an alarm of that kind due.
    pub fn pop(&mut self, now: Time, alarm: Alarm, flights: &Slab<Flight>) -> Option<usize> {
        let queue = self.queue(alarm);
        std::iter::from_fn(|| queue.pop_due(now)).find(|due| is_live(due, flights)).map(|due| due.slot)
    }
    fn queue(&mut self, alarm: Alarm) -> &mut Timeouts<Due> {
        match alarm {
            Alarm::Retransmit => &mut self.retransmit,
            Alarm::Replay => &mut self.replay,
        }
    }
}

fn is_live(due: &Due, flights: &Slab<Flight>) -> bool {
    flights.get(due.slot).is_some_and(|flight| flight.armed == due.stamp)
}
