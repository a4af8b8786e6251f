//! Repair of a page whose copy here is rotten: the device has no data, or others than were written.
//!
//! The replica asks its peers by [`Fetch`](ReplicaMessage::Fetch), one after the other, as a
//! rebuild does. A peer answers with its copy, or with [`Value::ROTTEN`] where it has none that is
//! sound. A copy is taken
//!
//! * from a peer that serves, if it is of the write that is the last one here: then the page is the
//!   same at both;
//! * from any peer, if it has the value that the device names for the page: a value names one write
//!   for ever. So a stale peer may help one that has the group's data alone.
//!
//! It is applied, and the device writes it anew. Where no peer has a sound copy, the page is lost
//! until it is written. Who has waited for it learns that, and the next one asks again.
//!
//! A page is repaired only while nobody writes it: a write replaces what was lost.

use super::flight::List;
use super::table::Entry;
use super::{Replica, ReplicaOut, Standing, Ticket};
use crate::id::{Page, Value, WriteId};
use crate::packet::{ReplicaMessage, Timestamp};
use base::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// How often the time for an answer is doubled.
const DOUBLINGS: u32 = 6;

/// A page that is being repaired.
#[derive(Clone, Copy)]
struct Repair {
    /// Of its last write.
    timestamp: Timestamp,
    /// What the device should have, if that is known.
    named: Option<Value>,
    /// A bit for each peer that has not said that it has no sound copy.
    missing: u8,
    /// The peer that was asked last.
    asked: usize,
    tries: u32,
    due: Time,
    readers: List,
    /// Whether the stale peer waits for it, and which of its writes that has.
    wanted: bool,
    after: Option<WriteId>,
}

/// Pages that are being repaired, and those that cannot be.
#[derive(Default)]
pub(super) struct Repairs {
    pages: BTreeMap<Page, Repair>,
    lost: BTreeSet<Page>,
    repaired: u64,
}

impl Repairs {
    pub fn next_due(&self) -> Option<Time> {
        self.pages.values().map(|repair| repair.due).min()
    }
    /// A page has no sound copy anywhere: so a peer says.
    pub fn note_lost(&mut self, page: Page) {
        self.lost.insert(page);
    }
    /// Notes that the stale peer wants a page. Returns false if it is not being repaired.
    pub fn want(&mut self, page: Page, after: Option<WriteId>) -> bool {
        let Some(repair) = self.pages.get_mut(&page) else { return false };
        (repair.wanted, repair.after) = (true, repair.after.max(after));
        true
    }
    pub fn has(&self, page: Page) -> bool {
        self.pages.contains_key(&page)
    }
    fn is_idle(&self) -> bool {
        self.pages.is_empty() && self.lost.is_empty()
    }
}

/// Repairing.
impl Replica {
    /// The device has no sound copy of a page; `named` is the value that it should have, if it
    /// knows that. A reader that waits gets [`ReplicaOut::ReadReady`], [`ReplicaOut::Lost`] or
    /// [`ReplicaOut::Abandoned`]. Returns whether that is news.
    pub fn rotten(
        &mut self,
        now: Time,
        page: Page,
        named: Option<Value>,
        reader: Option<Ticket>,
        out: &mut Vec<ReplicaOut>,
    ) -> bool {
        if self.standing != Standing::Serving {
            // A rebuild fetches the page anyway.
            out.extend(reader.map(|ticket| ReplicaOut::Abandoned { ticket, started: false }));
            return false;
        }
        let timestamp = match self.table.get(page) {
            Some(Entry::Settled(timestamp)) => timestamp,
            Some(Entry::InFlight(slot)) => {
                let reads = &mut self.flights[slot].reads;
                reader.into_iter().for_each(|ticket| self.waiting.push(reads, ticket, Value(0), None));
                return false;
            }
            None => return false,
        };
        let (is_new, missing) = (!self.repairs.has(page), self.helpers(named));
        let asked = self.peers.len().saturating_sub(1);
        let (readers, wanted, after) = (List::EMPTY, false, None);
        let begun = Repair { timestamp, named, missing, asked, tries: 0, due: now, readers, wanted, after };
        let repair = self.repairs.pages.entry(page).or_insert(begun);
        reader.into_iter().for_each(|ticket| self.waiting.push(&mut repair.readers, ticket, Value(0), None));
        if is_new {
            self.ask_next(now, page, out);
        }
        is_new
    }
    /// A scrub has found the page sound: the device did not read it once, and now does.
    pub fn sound(&mut self, page: Page) {
        self.repairs.lost.remove(&page);
    }
    /// Pages without a sound copy anywhere, as far as is known here.
    pub fn pages_lost(&self) -> usize {
        self.repairs.lost.len()
    }
    /// Pages that were rotten here and are not any more.
    pub fn pages_repaired(&self) -> u64 {
        self.repairs.repaired
    }
    /// Peers that may have a copy that can be taken: a stale one only if its value tells.
    fn helpers(&self, named: Option<Value>) -> u8 {
        let stale = self.stale.filter(|_| named.is_none()).map_or(0, |stale| 1 << stale);
        self.all_peers() & !stale
    }
    /// Asks the next peer that may have a sound copy; gives up if there is none.
    fn ask_next(&mut self, now: Time, page: Page, out: &mut Vec<ReplicaOut>) {
        let (count, epoch) = (self.peers.len(), self.epoch);
        let Some(repair) = self.repairs.pages.get_mut(&page) else { return };
        let turns = (1..=count).map(|turn| (repair.asked + turn) % count);
        let may_help = |peer: &usize| repair.missing & (1 << peer) != 0;
        // Those that serve have what was written last.
        let next = turns.clone().find(|peer| may_help(peer) && self.stale != Some(*peer));
        let Some(peer) = next.or_else(|| turns.clone().find(may_help)) else { return self.give_up(page, out) };
        let span = self.config.retransmit.max(Span::ps(1)) * (1 << repair.tries.min(DOUBLINGS));
        (repair.asked, repair.tries) = (peer, repair.tries + 1);
        repair.due = now.checked_add(span).unwrap_or(Time::MAX);
        self.to_peer(peer, ReplicaMessage::Fetch { page, after: None, epoch }, out);
    }
    /// A peer's copy, or [`Value::ROTTEN`].
    pub(super) fn on_copy(
        &mut self,
        now: Time,
        page: Page,
        peer: usize,
        (timestamp, value): (Timestamp, Value),
        out: &mut Vec<ReplicaOut>,
    ) {
        let serves = self.stale != Some(peer);
        let Some(repair) = self.repairs.pages.get_mut(&page) else {
            self.ignored += 1;
            return;
        };
        let is_same = serves && timestamp == repair.timestamp || Some(value) == repair.named;
        if value != Value::ROTTEN && is_same {
            return self.repair(page, value, out);
        }
        repair.missing &= !(1 << peer);
        if repair.asked == peer {
            self.ask_next(now, page, out);
        }
    }
    fn repair(&mut self, page: Page, value: Value, out: &mut Vec<ReplicaOut>) {
        let Some(mut repair) = self.repairs.pages.remove(&page) else { return };
        let timestamp = repair.timestamp;
        self.repairs.lost.remove(&page);
        self.repairs.repaired += 1;
        out.push(ReplicaOut::Apply { page, value, timestamp });
        while let Some((ticket, ..)) = self.waiting.pop(&mut repair.readers) {
            out.push(ReplicaOut::ReadReady { ticket, value });
        }
        if repair.wanted {
            self.hand_over(page, timestamp, value, repair.after, out);
        }
    }
    fn give_up(&mut self, page: Page, out: &mut Vec<ReplicaOut>) {
        let Some(mut repair) = self.repairs.pages.remove(&page) else { return };
        self.repairs.lost.insert(page);
        while let Some((ticket, ..)) = self.waiting.pop(&mut repair.readers) {
            out.push(ReplicaOut::Lost { ticket });
        }
        if repair.wanted {
            self.hand_over(page, repair.timestamp, Value::ROTTEN, repair.after, out);
        }
    }
    /// Asks again where an answer is overdue.
    pub(super) fn repair_overdue(&mut self, now: Time, out: &mut Vec<ReplicaOut>) {
        let due = self.repairs.pages.iter().filter(|(_, repair)| repair.due <= now);
        let due: Vec<Page> = due.map(|(page, _)| *page).collect();
        due.into_iter().for_each(|page| self.ask_next(now, page, out));
    }
    /// A write of the page begins: who has waited for a copy waits for that.
    pub(super) fn overtake(&mut self, slot: usize) {
        let page = self.flights[slot].page;
        if self.repairs.is_idle() {
            return;
        }
        self.repairs.lost.remove(&page);
        let Some(mut repair) = self.repairs.pages.remove(&page) else { return };
        let flight = &mut self.flights[slot];
        while let Some((ticket, value, origin)) = self.waiting.pop(&mut repair.readers) {
            self.waiting.push(&mut flight.reads, ticket, value, origin);
        }
        (flight.wanted, flight.after) = (repair.wanted, repair.after);
    }
    /// A write of the page is done at once, as there are no peers.
    pub(super) fn write_over(&mut self, page: Page) {
        // Without peers no repair waits.
        self.repairs.lost.remove(&page);
    }
    /// In a new epoch, all its peers are asked anew. A stale one has to say again what it wants.
    pub(super) fn repair_again(&mut self, now: Time, out: &mut Vec<ReplicaOut>) {
        let pages: Vec<Page> = self.repairs.pages.keys().copied().collect();
        for page in pages {
            let all = self.repairs.pages.get(&page).map(|repair| self.helpers(repair.named));
            let Some((repair, missing)) = self.repairs.pages.get_mut(&page).zip(all) else { continue };
            (repair.missing, repair.asked, repair.tries) = (missing, self.peers.len().saturating_sub(1), 0);
            (repair.wanted, repair.after) = (false, None);
            self.ask_next(now, page, out);
        }
    }
    /// The replica leaves its group.
    pub(super) fn abandon_repairs(&mut self, out: &mut Vec<ReplicaOut>) {
        for (_, mut repair) in std::mem::take(&mut self.repairs.pages) {
            while let Some((ticket, ..)) = self.waiting.pop(&mut repair.readers) {
                out.push(ReplicaOut::Abandoned { ticket, started: false });
            }
        }
        self.repairs.lost.clear();
    }
}
