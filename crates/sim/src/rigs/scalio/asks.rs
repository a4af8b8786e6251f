//! Requests in flight: whose they are, what they are about, and where their time goes.
//!
//! A request has a mark: everything up to it is accounted for. Whoever moves a part of it says for what the time since the mark was, so that the spans sum to
//! the latency however many parts move at the same time: each moment counts as what ended next.

use crate::drive::Ticket;
use base::{Operation, Span, Time};
use hardware::ssd::Done;
use record::{SpanKind, Spans};

/// Which request a part belongs to. The driver uses tickets again; the serial tells a later request from an earlier one.
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

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// What it is about.
    pub asked: AskedFor,
    /// When it began.
    pub start: Time,
    serial: u32,
    mark: Time,
    /// Where its time went so far.
    pub spans: Spans,
    is_open: bool,
    /// Answers that are on their way to it.
    awaited: u32,
}

/// All of them, by ticket.
#[derive(Clone, Debug, Default)]
pub struct Asks {
    asks: Vec<Ask>,
    serial: u32,
    /// Tickets of each client's open requests.
    by_client: Vec<Vec<u32>>,
}

impl Asks {
    /// None yet, of so many clients.
    pub fn new(clients: u32) -> Asks {
        Asks { by_client: vec![Vec::new(); clients as usize], ..Asks::default() }
    }

    /// A request begins.
    pub fn begin(&mut self, now: Time, ticket: Ticket, asked: AskedFor) -> Owner {
        self.serial += 1;
        let (serial, mark, spans) = (self.serial, now, Spans::default());
        let ask = Ask { asked, start: now, serial, mark, spans, is_open: true, awaited: 0 };
        let place = ticket.0 as usize;
        if self.asks.len() <= place {
            self.asks.resize(place + 1, Ask { is_open: false, ..ask });
        }
        self.asks[place] = ask;
        self.by_client[asked.client as usize].push(ticket.0);
        Owner { ticket: ticket.0, serial }
    }

    fn get(&mut self, owner: Owner) -> Option<&mut Ask> {
        self.asks.get_mut(owner.ticket as usize).filter(|ask| ask.serial == owner.serial && ask.is_open)
    }

    /// The open request of a ticket.
    pub fn owner(&self, ticket: u32) -> Owner {
        self.asks.get(ticket as usize).map_or(Owner::NOBODY, |ask| Owner { ticket, serial: ask.serial })
    }

    /// A client's oldest open request for a key of a block that no answer is on the way to: it has slept.
    pub fn sleeper(&self, client: u32, block: u32) -> Owner {
        let tickets = &self.by_client[client as usize];
        let has_slept = |ask: &Ask| ask.asked.block == block && ask.awaited == 0;
        let found = tickets.iter().find(|ticket| has_slept(&self.asks[**ticket as usize]));
        found.map_or(Owner::NOBODY, |ticket| self.owner(*ticket))
    }

    /// An answer will come.
    pub fn expect(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.awaited += 1;
        }
    }

    /// It has come.
    pub fn came(&mut self, owner: Owner) {
        if let Some(ask) = self.get(owner) {
            ask.awaited = ask.awaited.saturating_sub(1);
        }
    }

    /// Everything since the mark was `kind`.
    pub fn reach(&mut self, now: Time, owner: Owner, kind: SpanKind) {
        let Some(ask) = self.get(owner) else { return };
        ask.spans.add(kind, now.saturating_since(ask.mark));
        ask.mark = ask.mark.max(now);
    }

    /// Of the time since the mark up to `span` was `first`, the rest `second`.
    pub fn reach_by(&mut self, now: Time, owner: Owner, (first, span): (SpanKind, Span), second: SpanKind) {
        let Some(ask) = self.get(owner) else { return };
        let whole = now.saturating_since(ask.mark);
        ask.spans.add(first, span.min(whole));
        ask.spans.add(second, whole - span.min(whole));
        ask.mark = ask.mark.max(now);
    }

    /// Everything since the mark was a device's doing.
    pub fn reach_flash(&mut self, now: Time, owner: Owner, done: &Done) {
        self.reach_by(now, owner, (SpanKind::Flash, done.service), SpanKind::FlashWait);
    }

    /// A request ends: what it was, in its spans what nobody has claimed as waiting in the box.
    pub fn end(&mut self, now: Time, ticket: u32) -> Option<Ask> {
        let owner = self.owner(ticket);
        self.reach(now, owner, SpanKind::StorageQueue);
        let ask = self.get(owner)?;
        ask.is_open = false;
        give_back(&mut ask.spans, ask.mark.saturating_since(now));
        let ended = *ask;
        self.by_client[ended.asked.client as usize].retain(|other| *other != ticket);
        Some(ended)
    }

    /// Requests that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|ask| ask.is_open)
    }
}

/// Cores book ahead. What a request has been booked for beyond its end, since it was answered otherwise, was not its time.
fn give_back(spans: &mut Spans, beyond: Span) {
    let mut left = beyond;
    for kind in SpanKind::ALL {
        let part = left.min(spans.get(kind));
        spans.take(kind, part);
        left -= part;
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
