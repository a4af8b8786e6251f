//! Requests in flight: whose they are, what they are about, and where their time goes.

use super::server_hardware::Worked;
use crate::drive::{Context, Ticket};
use base::{Operation, Time};
use hardware::ssd::Done;
use record::{Ledger, Place, SpanKind};
use std::collections::BTreeMap;

/// Which request a part belongs to. The driver uses tickets again; the serial tells a later request
/// from an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The driver's ticket.
    pub ticket: u32,
    serial: u32,
}

impl Owner {
    /// No request, or nobody knows which.
    pub const NOBODY: Owner = Owner { ticket: u32::MAX, serial: 0 };
}

/// How something comes back to a client.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Since when.
    pub since: Time,
    /// What a core did with it first.
    pub worked: Option<Worked>,
}

impl Sent {
    /// Without a core.
    pub fn at(since: Time) -> Sent {
        Sent { since, worked: None }
    }
}

/// An I/O of a request: since when it waited for its core, and what that did to submit it.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    /// Since when.
    pub since: Time,
    /// The core's work, at whose end the drive has it.
    pub worked: Worked,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What it is about.
    pub asked: AskedFor,
    /// When it began.
    pub start: Time,
    serial: u32,
    /// When something last happened to it. What waits since then says so when it goes on.
    since: Time,
    /// Where its time went so far.
    pub ledger: Ledger,
    is_open: bool,
    /// Answers that are on their way to it.
    awaited: u32,
    /// I/Os of a server for it.
    ios: u32,
}

/// All of them, by ticket.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    asks: Vec<Ask>,
    serial: u32,
    /// Tickets of each client's open requests.
    by_client: Vec<Vec<u32>>,
    /// Requests of calls and requests to servers that have no answer, by client and number.
    calls: BTreeMap<(u32, u64), Owner>,
    /// The node number of the box.
    the_box: u32,
}

impl Asks {
    /// None yet, of so many clients.
    pub fn new(clients: u32) -> Asks {
        Asks { the_box: clients, by_client: vec![Vec::new(); clients as usize], ..Asks::default() }
    }

    /// A request begins.
    pub fn begin<E: Copy>(&mut self, ticket: Ticket, asked: AskedFor, context: &Context<'_, E>) -> Owner {
        self.serial += 1;
        let (serial, now) = (self.serial, context.now);
        let ask = |ledger, is_open| Ask { asked, start: now, serial, since: now, ledger, is_open, awaited: 0, ios: 0 };
        let place = ticket.0 as usize;
        if self.asks.len() <= place {
            self.asks.resize(place + 1, ask(Ledger::open(now, false), false));
        }
        self.asks[place] = ask(context.open_ledger(), true);
        self.by_client[asked.client as usize].push(ticket.0);
        Owner { ticket: ticket.0, serial }
    }

    /// A client has sent a call for a request.
    pub fn note_call(&mut self, client: u32, number: u64, owner: Owner) {
        self.calls.insert((client, number), owner);
    }

    /// The request of a call.
    pub fn of_call(&self, client: u32, number: u64) -> Owner {
        self.calls.get(&(client, number)).copied().unwrap_or(Owner::NOBODY)
    }

    /// The same at its answer.
    pub fn end_call(&mut self, client: u32, number: u64) -> Owner {
        self.calls.remove(&(client, number)).unwrap_or(Owner::NOBODY)
    }

    fn get(&mut self, owner: Owner) -> Option<&mut Ask> {
        self.asks.get_mut(owner.ticket as usize).filter(|ask| ask.serial == owner.serial && ask.is_open)
    }

    /// The open request of a ticket.
    pub fn owner(&self, ticket: u32) -> Owner {
        self.asks.get(ticket as usize).map_or(Owner::NOBODY, |ask| Owner { ticket, serial: ask.serial })
    }

    /// A client's oldest open request for a key of a block that no answer is on the way to: it has
    /// slept.
    pub fn sleeper(&self, client: u32, block: u32) -> Owner {
        let tickets = &self.by_client[client as usize];
        let has_slept = |ask: &Ask| ask.asked.block == block && ask.awaited == 0;
        let found = tickets.iter().find(|ticket| has_slept(&self.asks[**ticket as usize]));
        found.map_or(Owner::NOBODY, |ticket| self.owner(*ticket))
    }

    /// An answer will come. Several are on their way beside each other.
    pub fn expect(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.awaited += 1;
            if ask.awaited > 1 {
                ask.ledger.fork();
            }
        }
    }

    /// It has come.
    pub fn came(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.awaited = ask.awaited.saturating_sub(1);
        }
    }

    /// A server begins an I/O for it. Several go on beside each other.
    pub fn io_begins(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.ios += 1;
            if ask.ios > 1 {
                ask.ledger.fork();
            }
        }
    }

    /// An I/O has ended.
    pub fn io_ends(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.ios = ask.ios.saturating_sub(1);
        }
    }

    /// A span of a request.
    pub fn claim(&mut self, owner: Owner, kind: SpanKind, begin: Time, end: Time, at: Place) {
        if let Some(ask) = self.get(owner) {
            ask.ledger.claim(kind, begin, end, at);
        }
    }

    /// A message's way from a client to the box.
    pub fn claim_way(&mut self, owner: Owner, begin: Time, end: Time) {
        self.claim(owner, SpanKind::Network, begin, end, Place::Link(0));
    }

    /// A core's work, for which it waited since `since`.
    pub fn claim_work(&mut self, owner: Owner, since: Time, (start, end): Worked) {
        let the_box = Place::Target(self.the_box);
        self.claim(owner, SpanKind::StorageQueue, since, start, the_box);
        self.claim(owner, SpanKind::Stack, start, end, the_box);
    }

    /// A drive's time for an operation that it was given at `begin`.
    pub fn claim_flash(&mut self, owner: Owner, begin: Time, done: &Done, device: u32) {
        let served = done.end - done.service;
        self.claim(owner, SpanKind::FlashWait, begin, served, Place::Drive(device));
        self.claim(owner, SpanKind::Flash, served, done.end, Place::Drive(device));
    }

    /// It has waited since something last happened to it.
    pub fn claim_wait(&mut self, owner: Owner, kind: SpanKind, now: Time) {
        let at = if kind == SpanKind::Schedule { Place::Nowhere } else { Place::Target(self.the_box) };
        if let Some(ask) = self.get(owner) {
            ask.ledger.claim(kind, ask.since, now, at);
        }
    }

    /// It is sent again beside what was sent before.
    pub fn fork(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.ledger.fork();
        }
    }

    /// Something happens to a request.
    pub fn pass(&mut self, owner: Owner, now: Time) {
        if let Some(ask) = self.get(owner) {
            ask.since = now;
        }
    }

    /// When something last happened to a request.
    pub fn since(&mut self, owner: Owner) -> Option<Time> {
        self.get(owner).map(|ask| ask.since)
    }

    /// A request ends: what it was.
    pub fn end(&mut self, now: Time, ticket: u32) -> Option<Ask> {
        let owner = self.owner(ticket);
        let ask = self.get(owner)?;
        ask.is_open = false;
        let closed = Ask { ledger: Ledger::open(now, false), ..ask.clone() };
        let ended = std::mem::replace(ask, closed);
        self.by_client[ended.asked.client as usize].retain(|other| *other != ticket);
        Some(ended)
    }

    /// Requests that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.is_open)
    }
}

/// What is known of a request when it begins.
#[derive(Clone, Copy, Debug)]
pub struct AskedFor {
    /// The client that asks.
    pub client: u32,
    /// The key's number.
    pub key: u32,
    /// The key's block.
    pub block: u32,
    /// What is asked.
    pub operation: Operation,
    /// What is written.
    pub value: u64,
    /// The request's number.
    pub id: u64,
}
