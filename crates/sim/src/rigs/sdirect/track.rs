//! Requests in flight, by ticket: where their time goes, and when something last happened to them.

use crate::drive::{Context, Ticket};
use base::Time;
use hardware::ssd::Done;
use record::{Ledger, Place, SpanKind};

/// A request in flight. Tickets are used again: what comes late for an earlier one names another
/// serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The driver's ticket.
    pub ticket: u32,
    serial: u32,
}

#[derive(Clone, Debug)]
struct Track {
    serial: u32,
    start: Time,
    /// When it last went from one program or model to another. What waits since then says so when
    /// it goes on.
    since: Time,
    ledger: Ledger,
}

/// All requests in flight, by ticket.
#[derive(Clone, Debug, Default)]
pub struct Tracks(Vec<Track>);

impl Tracks {
    /// A request begins. Its parts may move at the same time if it `forks`.
    pub fn begin<E: Copy>(&mut self, ticket: Ticket, forks: bool, context: &Context<'_, E>) -> Owner {
        let (place, now) = (ticket.0 as usize, context.now);
        if self.0.len() <= place {
            let none = Track { serial: 0, start: now, since: now, ledger: Ledger::open(now, false) };
            self.0.resize(place + 1, none);
        }
        let mut ledger = context.open_ledger();
        if forks {
            ledger.fork();
        }
        let serial = self.0[place].serial;
        self.0[place] = Track { serial, start: now, since: now, ledger };
        Owner { ticket: ticket.0, serial }
    }

    /// The request that has a ticket now.
    pub fn owner(&self, ticket: u32) -> Option<Owner> {
        self.0.get(ticket as usize).map(|track| Owner { ticket, serial: track.serial })
    }

    fn get(&mut self, owner: Option<Owner>) -> Option<&mut Track> {
        let Owner { ticket, serial } = owner?;
        self.0.get_mut(ticket as usize).filter(|track| track.serial == serial)
    }

    /// A span of a request.
    pub fn claim(&mut self, owner: Option<Owner>, kind: SpanKind, begin: Time, end: Time, place: Place) {
        if let Some(track) = self.get(owner) {
            track.ledger.claim(kind, begin, end, place);
        }
    }

    /// A device's time for a command, which it was given at `begin`.
    pub fn claim_device(&mut self, owner: Option<Owner>, begin: Time, done: &Done, place: Place) {
        if let Some(track) = self.get(owner) {
            let [wait, collection] =
                [(SpanKind::FlashWait, done.wait), (SpanKind::CollectionWait, done.collection_wait)];
            track.ledger.claim_parts(begin, place, [wait, collection, (SpanKind::Flash, done.service)]);
        }
    }

    /// It has waited since something last happened to it.
    pub fn claim_wait(&mut self, owner: Option<Owner>, kind: SpanKind, end: Time, place: Place) {
        if let Some(track) = self.get(owner) {
            track.ledger.claim(kind, track.since, end.max(track.since), place);
        }
    }

    /// Something happens to a request.
    pub fn pass(&mut self, owner: Option<Owner>, now: Time) {
        if let Some(track) = self.get(owner) {
            track.since = track.since.max(now);
        }
    }

    /// A request ends: when it began, and its ledger.
    pub fn end(&mut self, now: Time, ticket: u32) -> (Time, Ledger) {
        let track = &mut self.0[ticket as usize];
        track.serial = track.serial.wrapping_add(1);
        (track.start, std::mem::replace(&mut track.ledger, Ledger::open(now, false)))
    }
}
