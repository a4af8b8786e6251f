//! The transitions of one replica.

use super::flight::{Alarm, Alarms, Drive, Flight, State, Waiting};
use super::rebuild::Rebuild;
use super::recall::Recalls;
use super::repair::Repairs;
use super::table::{Entry, Table, VERSION_MAX};
use super::writes::Writes;
use super::{Contents, Membership, Reading, ReplicaConfig, ReplicaOut, Standing, Ticket, Writing};
use crate::id::{Origin, Page, Value, VssdId, WriteId, earlier};
use crate::packet::{Refusal, ReplicaMessage, Timestamp};
use base::{NodeId, Span, Time};
use slab::Slab;

/// Loads for a stale peer at a time; it repeats requests beyond that.
const LOADS_MAX: usize = 1_024;

/// A page that peers wait for.
#[derive(Clone, Copy)]
struct Load {
    page: Page,
    /// Its last write when the load began.
    before: Timestamp,
    /// Whether the stale peer waits for it, and the last of its writes that that has.
    is_wanted: bool,
    after: Option<WriteId>,
    /// A bit for each peer whose copy is rotten.
    others: u8,
}

/// One replica of a vSSD.
///
/// *Why an own timestamp is never used twice.* A replica that has lost its state may have left a
/// write of its own at a peer, which will replay it. With the version that it then learns from
/// others it could give another value the same timestamp. So every member reports
/// [`ReplicaOut::UpToDate`] only when all writes open at the adoption of the epoch have become
/// valid, and are thus known to the stale member too. A stale member serves only in a later epoch,
/// which the control plane begins when all have reported. For the same reason a removed replica
/// drops its timestamps.
pub struct Replica {
    pub(super) config: ReplicaConfig,
    pub(super) table: Table,
    pub(super) flights: Slab<Flight>,
    pub(super) waiting: Waiting,
    alarms: Alarms,
    pub(super) epoch: u32,
    pub(super) peers: Vec<(NodeId, VssdId)>,
    /// Which of the peers is stale.
    pub(super) stale: Option<usize>,
    pub(super) standing: Standing,
    contents: Contents,
    rebuild: Option<Rebuild>,
    /// Writes that clients may send again.
    pub(super) writes: Option<Writes>,
    pub(super) recalls: Recalls,
    /// The epoch in which it became a member with what its peers knew; 0 from the start.
    pub(super) joined: u32,
    /// Pages that were in flight when the epoch began and have not been valid since.
    unsettled: usize,
    reported: bool,
    /// Pages that peers wait for.
    loads: Vec<Load>,
    pub(super) repairs: Repairs,
    pub(super) ignored: u64,
}

/// Requests of clients and the host.
impl Replica {
    /// A replica that waits for its first [`Membership`].
    pub fn new(config: ReplicaConfig, contents: Contents) -> Replica {
        Replica {
            table: Table::new(config.pages),
            flights: Slab::new(),
            waiting: Waiting::default(),
            alarms: Alarms::new(config.retransmit, config.replay),
            epoch: 0,
            peers: Vec::new(),
            stale: None,
            standing: Standing::Out,
            contents,
            rebuild: None,
            writes: config.remember.map(Writes::new),
            recalls: Recalls::default(),
            joined: 0,
            unsettled: 0,
            reported: false,
            loads: Vec::new(),
            repairs: Repairs::default(),
            ignored: 0,
            config,
        }
    }
    /// A client's read; the module calls when it is due.
    pub fn read(&mut self, page: Page, ticket: Ticket) -> Reading {
        if self.standing != Standing::Serving {
            return Reading::Refuse(Refusal::Stale);
        }
        match self.table.get(page) {
            Some(Entry::Settled(_)) => Reading::Serve,
            Some(Entry::InFlight(slot)) => {
                self.waiting.push(&mut self.flights[slot].reads, ticket, Value(0), None);
                Reading::Wait
            }
            None => Reading::Refuse(Refusal::OutOfRange),
        }
    }
    /// A client's write, to be coordinated here, and its origin if it may be sent again. Versions
    /// end at 2^31: such a page is worn out.
    pub fn write(
        &mut self,
        now: Time,
        page: Page,
        (value, origin): (Value, Option<Origin>),
        ticket: Ticket,
        out: &mut Vec<ReplicaOut>,
    ) -> Writing {
        if self.standing != Standing::Serving {
            return Writing::Refuse(Refusal::Stale);
        }
        match self.table.get(page) {
            Some(Entry::Settled(last)) if last.version == VERSION_MAX => Writing::Refuse(Refusal::WornOut),
            Some(Entry::Settled(last)) => {
                self.begin(now, page, last, (value, origin), ticket, out);
                Writing::Taken
            }
            Some(Entry::InFlight(slot)) => {
                self.waiting.push(&mut self.flights[slot].writes, ticket, value, origin);
                Writing::Taken
            }
            None => Writing::Refuse(Refusal::OutOfRange),
        }
    }
    /// Values that a message may still carry: of pages in flight, and of writes that wait for them.
    pub fn held_values(&self) -> impl Iterator<Item = Value> + '_ {
        let flights = self.flights.iter().flat_map(|(_, flight)| [flight.value, flight.drive.value]);
        flights.chain(self.waiting.values())
    }
    /// A message of a peer's server. One of another epoch, of no member or of a page that does not
    /// exist is ignored.
    pub fn message(&mut self, now: Time, from: NodeId, message: &ReplicaMessage, out: &mut Vec<ReplicaOut>) {
        let (page, epoch) = subject(message);
        let peer = self.peers.iter().position(|(server, _)| *server == from);
        let entry = self.table.get(page);
        let (Some(peer), Some(entry), true) = (peer, entry, epoch == self.epoch) else {
            self.ignored += 1;
            return;
        };
        match *message {
            ReplicaMessage::Invalidate { timestamp, value, origin, .. } => {
                self.on_invalidate(now, (page, entry), peer, timestamp, (value, origin), out);
            }
            ReplicaMessage::Acknowledge { timestamp, .. } => self.on_acknowledge(now, entry, peer, timestamp, out),
            ReplicaMessage::Validate { timestamp, .. } => self.on_validate(now, entry, timestamp, out),
            ReplicaMessage::Fetch { after, .. } if self.stale == Some(peer) => {
                self.on_fetch(page, entry, after, out);
            }
            ReplicaMessage::Fetch { .. } => self.on_fetch_of_rotten((page, entry), peer, out),
            ReplicaMessage::Fetched { timestamp, value, .. } if self.rebuild.is_some() => {
                self.on_fetched(now, (page, entry), timestamp, value, out);
            }
            ReplicaMessage::Fetched { timestamp, value, .. } => {
                self.on_copy(now, page, peer, (timestamp, value), out);
            }
            ReplicaMessage::Remembered { origin, silence, .. } => {
                self.on_remembered(now, page, &origin, silence, out);
            }
            ReplicaMessage::Recall { origin, known, round, .. } => {
                self.on_recall(now, page, peer, &origin, (known, round), out);
            }
            ReplicaMessage::Recalled { id, known, round, .. } => {
                self.on_recalled(now, peer, &id, (known, round), out);
            }
        }
    }
    /// The value requested by [`ReplicaOut::Load`]. It is passed on only if no write has touched
    /// the page meanwhile.
    pub fn loaded(&mut self, page: Page, value: Value, out: &mut Vec<ReplicaOut>) {
        let Some(load) = self.end_load(page, out) else { return };
        if load.is_wanted {
            self.hand_over(page, load.before, value, load.after, out);
        }
        self.answer_others(&load, value, out);
    }
    /// As [`Self::loaded`] where the device has no sound copy; `named` is the value that it
    /// should have, if it knows that. Peers that wait for a copy are told so, and the stale one
    /// waits until it is repaired. Returns whether that is news.
    pub fn load_rotten(&mut self, now: Time, page: Page, named: Option<Value>, out: &mut Vec<ReplicaOut>) -> bool {
        let Some(load) = self.end_load(page, out) else { return false };
        self.answer_others(&load, Value::ROTTEN, out);
        let is_new = self.rotten(now, page, named, None, out);
        if load.is_wanted && !self.repairs.want(page, load.after) {
            // Nobody could help.
            self.hand_over(page, load.before, Value::ROTTEN, load.after, out);
        }
        is_new
    }
    /// Takes a page that was loaded for peers off their list, if it is what it was when the load
    /// began. Otherwise it is loaded again, or awaited.
    fn end_load(&mut self, page: Page, out: &mut Vec<ReplicaOut>) -> Option<Load> {
        let place = self.loads.iter().position(|load| load.page == page)?;
        let load = self.loads.swap_remove(place);
        match self.table.get(page)? {
            Entry::Settled(timestamp) if timestamp == load.before => return Some(load),
            entry if load.is_wanted => self.on_fetch(page, entry, load.after, out),
            // A page that is written is not repaired: nobody waits for it any longer.
            _ => {}
        }
        None
    }
    fn answer_others(&self, load: &Load, value: Value, out: &mut Vec<ReplicaOut>) {
        let Load { page, before: timestamp, others, .. } = *load;
        let message = ReplicaMessage::Fetched { page, timestamp, value, epoch: self.epoch };
        let peers = (0..self.peers.len()).filter(|peer| others & (1 << peer) != 0);
        peers.for_each(|peer| self.to_peer(peer, message, out));
    }
    /// Returns the time at which [`on_wakeup`](Replica::on_wakeup) has something to do at the
    /// earliest.
    pub fn next_wakeup(&self) -> Option<Time> {
        let rebuild = self.rebuild.as_ref().and_then(Rebuild::next_due);
        earlier(self.alarms.next(), earlier(rebuild, self.repairs.next_due()))
    }
    /// Sends again what is overdue, and replays.
    pub fn on_wakeup(&mut self, now: Time, out: &mut Vec<ReplicaOut>) {
        while let Some(slot) = self.alarms.pop(now, Alarm::Retransmit, &self.flights) {
            self.send_invalidate(now, slot, out);
        }
        while let Some(slot) = self.alarms.pop(now, Alarm::Replay, &self.flights) {
            self.replay(now, slot, out);
        }
        self.ask(now, out);
        self.repair_overdue(now, out);
    }
    /// What it does for clients.
    pub fn standing(&self) -> Standing {
        self.standing
    }
    /// The epoch that it is in; 0 before the first.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }
    /// Returns whether nobody is writing the page, as far as this replica knows.
    pub fn is_valid(&self, page: Page) -> bool {
        matches!(self.table.get(page), Some(Entry::Settled(_)))
    }
    /// The last write of a page that this replica knows; version 0 when there is none.
    pub fn timestamp(&self, page: Page) -> Timestamp {
        match self.table.get(page) {
            Some(Entry::Settled(timestamp)) => timestamp,
            Some(Entry::InFlight(slot)) => self.flights[slot].timestamp,
            None => Timestamp::default(),
        }
    }
    /// Pages that are not plainly valid.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }
    /// Messages that were ignored: of another epoch, of no member, of no page.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// Writing.
impl Replica {
    fn begin(
        &mut self,
        now: Time,
        page: Page,
        last: Timestamp,
        (value, origin): (Value, Option<Origin>),
        ticket: Ticket,
        out: &mut Vec<ReplicaOut>,
    ) {
        let timestamp = self.after(last);
        if self.peers.is_empty() {
            self.note(now, page, origin);
            self.write_over(page);
            out.extend([ReplicaOut::Apply { page, value, timestamp }, ReplicaOut::WriteDone { ticket }]);
            self.table.set(page, Entry::Settled(timestamp));
            return;
        }
        let slot = self.flights.insert(Flight::invalid(page, timestamp, value, origin));
        self.table.set(page, Entry::InFlight(slot));
        self.overtake(slot);
        self.begin_in(now, slot, Drive { timestamp, value, origin, ticket: Some(ticket) }, out);
    }
    /// Begins a write of a page that has a slot.
    fn begin_in(&mut self, now: Time, slot: usize, drive: Drive, out: &mut Vec<ReplicaOut>) {
        let missing = self.all_peers();
        let flight = &mut self.flights[slot];
        flight.start(State::Write, drive, missing);
        let page = flight.page;
        out.push(ReplicaOut::Apply { page, value: drive.value, timestamp: drive.timestamp });
        self.note(now, page, drive.origin);
        self.send_invalidate(now, slot, out);
    }
    fn after(&self, last: Timestamp) -> Timestamp {
        Timestamp { version: last.version + 1, node: self.config.own.0 }
    }
    /// INV to everyone whose acknowledgement is missing; again when that takes too long.
    fn send_invalidate(&mut self, now: Time, slot: usize, out: &mut Vec<ReplicaOut>) {
        let flight = &mut self.flights[slot];
        let Drive { timestamp, value, origin, .. } = flight.drive;
        let message = ReplicaMessage::Invalidate { page: flight.page, timestamp, value, epoch: self.epoch, origin };
        for (place, (to, vssd)) in self.peers.iter().enumerate() {
            if flight.missing & (1 << place) != 0 {
                out.push(ReplicaOut::Send { to: *to, vssd: *vssd, message });
            }
        }
        flight.sendings += 1;
        self.alarms.arm(now, Alarm::Retransmit, slot, flight);
    }
    fn on_acknowledge(
        &mut self,
        now: Time,
        entry: Entry,
        peer: usize,
        timestamp: Timestamp,
        out: &mut Vec<ReplicaOut>,
    ) {
        let Entry::InFlight(slot) = entry else { return };
        let flight = &mut self.flights[slot];
        if flight.state != State::Invalid && flight.drive.timestamp == timestamp {
            flight.missing &= !(1 << peer);
            self.finish_if_acknowledged(now, slot, out);
        }
    }
    fn finish_if_acknowledged(&mut self, now: Time, slot: usize, out: &mut Vec<ReplicaOut>) {
        let flight = &mut self.flights[slot];
        if flight.missing != 0 {
            return;
        }
        let (page, timestamp) = (flight.page, flight.drive.timestamp);
        out.extend(flight.drive.ticket.take().map(|ticket| ReplicaOut::WriteDone { ticket }));
        match flight.state {
            State::Invalid => {}
            State::InvalidWrite => self.wait_for_validation(now, slot, out),
            State::Write | State::Replay => {
                self.to_peers(ReplicaMessage::Validate { page, timestamp, epoch: self.epoch }, out);
                self.settle(now, slot, out);
            }
        }
    }
    /// The page has become valid: waiting reads are served, and the next write begins.
    fn settle(&mut self, now: Time, slot: usize, out: &mut Vec<ReplicaOut>) {
        loop {
            self.release(slot, out);
            let flight = &mut self.flights[slot];
            let (page, last) = (flight.page, flight.timestamp);
            let Some((ticket, value, origin)) = self.waiting.pop(&mut flight.writes) else {
                self.flights.remove(slot);
                self.table.set(page, Entry::Settled(last));
                break;
            };
            if last.version == VERSION_MAX {
                out.push(ReplicaOut::Abandoned { ticket, started: false });
                continue;
            }
            let drive = Drive { timestamp: self.after(last), value, origin, ticket: Some(ticket) };
            self.begin_in(now, slot, drive, out);
            if !self.peers.is_empty() {
                break;
            }
            out.push(ReplicaOut::WriteDone { ticket });
        }
        self.alarms.prune(&self.flights);
        self.report(out);
    }
    fn release(&mut self, slot: usize, out: &mut Vec<ReplicaOut>) {
        let flight = &mut self.flights[slot];
        let (page, timestamp, value) = (flight.page, flight.timestamp, flight.value);
        while let Some((ticket, ..)) = self.waiting.pop(&mut flight.reads) {
            out.push(ReplicaOut::ReadReady { ticket, value });
        }
        if std::mem::take(&mut flight.settling) {
            self.unsettled -= 1;
        }
        let after = flight.after.take();
        if std::mem::take(&mut flight.wanted) {
            self.hand_over(page, timestamp, value, after, out);
        }
        self.on_valid(page, out);
    }
}

/// Following.
impl Replica {
    /// A newer write is applied; every one is acknowledged with its own timestamp, and known from
    /// then on: one that a newer has overtaken must not be done once more after that.
    fn on_invalidate(
        &mut self,
        now: Time,
        (page, entry): (Page, Entry),
        peer: usize,
        timestamp: Timestamp,
        (value, origin): (Value, Option<Origin>),
        out: &mut Vec<ReplicaOut>,
    ) {
        let is_possible = (1..=VERSION_MAX).contains(&timestamp.version);
        if !is_possible || !self.note(now, page, origin) {
            self.ignored += 1;
            return;
        }
        if timestamp > self.timestamp(page) {
            out.push(ReplicaOut::Apply { page, value, timestamp });
            self.invalidate(now, (page, entry), timestamp, (value, origin));
        }
        self.to_peer(peer, ReplicaMessage::Acknowledge { page, timestamp, epoch: self.epoch }, out);
    }
    fn invalidate(
        &mut self,
        now: Time,
        (page, entry): (Page, Entry),
        timestamp: Timestamp,
        (value, origin): (Value, Option<Origin>),
    ) {
        let slot = match entry {
            Entry::InFlight(slot) => slot,
            Entry::Settled(_) => {
                let slot = self.flights.insert(Flight::invalid(page, timestamp, value, origin));
                self.overtake(slot);
                slot
            }
        };
        self.table.set(page, Entry::InFlight(slot));
        let flight = &mut self.flights[slot];
        (flight.timestamp, flight.value, flight.origin) = (timestamp, value, origin);
        flight.state = match flight.state {
            State::Invalid | State::Replay => State::Invalid,
            State::Write | State::InvalidWrite => State::InvalidWrite,
        };
        if flight.state == State::Invalid {
            self.alarms.arm(now, Alarm::Replay, slot, flight);
        }
    }
    fn on_validate(&mut self, now: Time, entry: Entry, timestamp: Timestamp, out: &mut Vec<ReplicaOut>) {
        let Entry::InFlight(slot) = entry else { return };
        let flight = &mut self.flights[slot];
        if flight.timestamp != timestamp {
            return;
        }
        // Every member has this write. If one of ours is still without acknowledgements, then
        // either it is this one, replayed by a peer, or this one has overtaken it everywhere: it
        // counts as done just before.
        let done = flight.drive.ticket.take();
        out.extend(done.map(|ticket| ReplicaOut::WriteDone { ticket }));
        self.settle(now, slot, out);
    }
    fn wait_for_validation(&mut self, now: Time, slot: usize, out: &mut Vec<ReplicaOut>) {
        let flight = &mut self.flights[slot];
        flight.state = State::Invalid;
        match self.is_live(self.flights[slot].timestamp.node) {
            true => self.alarms.arm(now, Alarm::Replay, slot, &mut self.flights[slot]),
            false => self.replay(now, slot, out),
        }
    }
    /// Returns whether a write's coordinator can still finish it: a stale member has forgotten its
    /// writes.
    fn is_live(&self, node: NodeId) -> bool {
        self.peers.iter().enumerate().any(|(place, (server, _))| *server == node && self.stale != Some(place))
    }
    /// Finishes another's write: same timestamp, same value.
    fn replay(&mut self, now: Time, slot: usize, out: &mut Vec<ReplicaOut>) {
        let missing = self.all_peers();
        let flight = &mut self.flights[slot];
        let drive = Drive { timestamp: flight.timestamp, value: flight.value, origin: flight.origin, ticket: None };
        flight.start(State::Replay, drive, missing);
        self.send_invalidate(now, slot, out);
        self.finish_if_acknowledged(now, slot, out);
    }
}

/// Membership.
impl Replica {
    /// An order of the control plane. An old one is ignored; the present one again is answered
    /// again. One that a replica with lost contents cannot follow (to serve as if it had them) is
    /// ignored too.
    pub fn members(&mut self, now: Time, order: &Membership, out: &mut Vec<ReplicaOut>) {
        if order.epoch <= self.epoch {
            self.reported &= order.epoch != self.epoch;
            return self.report(out);
        }
        let is_stale = order.stale == Some(self.config.own);
        if !order.replicas.contains(&Some(self.config.own)) {
            self.leave(out);
        } else if !is_stale && self.contents == Contents::Lost {
            return;
        } else if !is_stale {
            (self.standing, self.rebuild) = (Standing::Serving, None);
        } else if !self.goes_on_rebuilding(order.epoch) {
            self.leave(out);
            (self.standing, self.joined) = (Standing::Rebuilding, order.epoch);
            self.rebuild = Some(Rebuild::new(self.config.pages, self.config.fetch_window, self.config.retransmit));
        }
        self.adopt(now, order, out);
    }
    /// A rebuild continues in the next epoch: no write can have completed without this replica.
    /// After a gap it may have been no member for a while.
    fn goes_on_rebuilding(&self, epoch: u32) -> bool {
        matches!(self.standing, Standing::Rebuilding | Standing::Rebuilt) && epoch == self.epoch + 1
    }
    /// Forgets everything, timestamps too: a write of ours that no one else has must not outrank
    /// theirs later. Nor may it count as done.
    fn leave(&mut self, out: &mut Vec<ReplicaOut>) {
        for mut flight in self.flights.drain() {
            out.extend(flight.drive.ticket.map(|ticket| ReplicaOut::Abandoned { ticket, started: true }));
            for list in [&mut flight.reads, &mut flight.writes] {
                while let Some((ticket, ..)) = self.waiting.pop(list) {
                    out.push(ReplicaOut::Abandoned { ticket, started: false });
                }
            }
        }
        self.abandon_repairs(out);
        self.alarms.prune(&self.flights);
        self.table.clear();
        self.writes.iter_mut().for_each(Writes::clear);
        (self.standing, self.contents, self.rebuild) = (Standing::Out, Contents::Lost, None);
    }
    fn adopt(&mut self, now: Time, order: &Membership, out: &mut Vec<ReplicaOut>) {
        let own = self.config.own;
        self.epoch = order.epoch;
        self.peers.clear();
        if self.standing != Standing::Out {
            self.peers.extend(order.replicas.iter().flatten().filter(|member| **member != own));
        }
        self.stale = order.stale.and_then(|stale| self.peers.iter().position(|peer| *peer == stale));
        self.loads.clear();
        self.recalls.give_up(out);
        self.reported = false;
        self.carry_over(now, out);
        self.repair_again(now, out);
        if self.peers.is_empty() {
            self.rebuild.iter_mut().for_each(Rebuild::give_up);
        }
        self.ask_again(now, Time::ZERO, out);
        self.report(out);
    }
    /// Open writes of the old epoch continue in the new one; the write of a removed member is
    /// replayed.
    fn carry_over(&mut self, now: Time, out: &mut Vec<ReplicaOut>) {
        let all = self.all_peers();
        self.unsettled = self.flights.len();
        for (_, flight) in &mut self.flights {
            (flight.settling, flight.missing, flight.sendings) = (true, all, 0);
            (flight.wanted, flight.after) = (false, None);
        }
        let slots: Vec<usize> = self.flights.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            if self.flights[slot].state == State::Invalid {
                self.wait_for_validation(now, slot, out);
                continue;
            }
            self.send_invalidate(now, slot, out);
            self.finish_if_acknowledged(now, slot, out);
        }
    }
    fn report(&mut self, out: &mut Vec<ReplicaOut>) {
        let is_due = self.epoch > 0 && self.unsettled == 0 && self.standing != Standing::Rebuilding;
        if is_due && !std::mem::replace(&mut self.reported, true) {
            out.push(ReplicaOut::UpToDate { epoch: self.epoch });
        }
    }
    pub(super) fn all_peers(&self) -> u8 {
        (1 << self.peers.len()) - 1
    }
    fn to_peers(&self, message: ReplicaMessage, out: &mut Vec<ReplicaOut>) {
        out.extend(self.peers.iter().map(|(to, vssd)| ReplicaOut::Send { to: *to, vssd: *vssd, message }));
    }
    pub(super) fn to_peer(&self, peer: usize, message: ReplicaMessage, out: &mut Vec<ReplicaOut>) {
        let (to, vssd) = self.peers[peer];
        out.push(ReplicaOut::Send { to, vssd, message });
    }
    fn to_stale_peer(&self, message: ReplicaMessage, out: &mut Vec<ReplicaOut>) {
        if let Some(stale) = self.stale {
            self.to_peer(stale, message, out);
        }
    }
}

/// Rebuilding.
impl Replica {
    /// Peers can be reached again, which they could not `since` then: a stale replica asks at once
    /// for what it asked for meanwhile.
    pub fn ask_again(&mut self, now: Time, since: Time, out: &mut Vec<ReplicaOut>) {
        self.rebuild.iter_mut().for_each(|rebuild| rebuild.ask_again(now, since));
        self.ask(now, out);
    }
    /// As a stale replica: requests pages.
    fn ask(&mut self, now: Time, out: &mut Vec<ReplicaOut>) {
        let (Some(rebuild), epoch) = (&mut self.rebuild, self.epoch) else { return };
        let mut fetch = |page: Page, tries: usize, after: Option<WriteId>| {
            let (to, vssd) = self.peers[tries % self.peers.len()];
            out.push(ReplicaOut::Send { to, vssd, message: ReplicaMessage::Fetch { page, after, epoch } });
        };
        while let Some((page, tries)) = rebuild.overdue(now) {
            fetch(page, tries, rebuild.after(page));
        }
        while let Some(page) = rebuild.next_page(now) {
            fetch(page, 0, None);
        }
        if rebuild.is_done() && self.standing == Standing::Rebuilding {
            (self.standing, self.contents) = (Standing::Rebuilt, Contents::Original);
            self.report(out);
        }
    }
    /// As a peer of a stale replica: only a valid page is passed on, else it could become valid
    /// there alone. The same holds for the writes that are known of it.
    fn on_fetch(&mut self, page: Page, entry: Entry, after: Option<WriteId>, out: &mut Vec<ReplicaOut>) {
        if self.standing != Standing::Serving {
            return;
        }
        match entry {
            Entry::InFlight(slot) => {
                let flight = &mut self.flights[slot];
                (flight.wanted, flight.after) = (true, flight.after.max(after));
            }
            Entry::Settled(timestamp) => {
                if let Some(message) = self.next_write(page, after) {
                    self.to_stale_peer(message, out);
                } else if !self.repairs.want(page, after) {
                    self.load(
                        (page, timestamp),
                        |load| (load.is_wanted, load.after) = (true, load.after.max(after)),
                        out,
                    );
                }
            }
        }
    }
    /// A peer has no sound copy of a page: any copy may help it, be it that of a replica that is
    /// stale itself. It knows all writes of the page that are done.
    fn on_fetch_of_rotten(&mut self, (page, entry): (Page, Entry), peer: usize, out: &mut Vec<ReplicaOut>) {
        // One that is written here will be written there.
        let Entry::Settled(timestamp) = entry else { return };
        if self.repairs.has(page) {
            let message = ReplicaMessage::Fetched { page, timestamp, value: Value::ROTTEN, epoch: self.epoch };
            return self.to_peer(peer, message, out);
        }
        self.load((page, timestamp), |load| load.others |= 1 << peer, out);
    }
    /// Has the device read a page that a peer waits for, unless it does so already.
    fn load(&mut self, (page, before): (Page, Timestamp), note: impl FnOnce(&mut Load), out: &mut Vec<ReplicaOut>) {
        if let Some(load) = self.loads.iter_mut().find(|load| load.page == page) {
            note(load);
        } else if self.loads.len() < LOADS_MAX {
            let mut load = Load { page, before, is_wanted: false, after: None, others: 0 };
            note(&mut load);
            self.loads.push(load);
            out.push(ReplicaOut::Load { page });
        }
    }
    /// A valid page for the stale peer; before it come the writes that are known of it. With a page
    /// that has a write, and without that write, the peer would do it once more.
    pub(super) fn hand_over(
        &self,
        page: Page,
        timestamp: Timestamp,
        value: Value,
        after: Option<WriteId>,
        out: &mut Vec<ReplicaOut>,
    ) {
        let fetched = ReplicaMessage::Fetched { page, timestamp, value, epoch: self.epoch };
        self.to_stale_peer(self.next_write(page, after).unwrap_or(fetched), out);
    }
    fn next_write(&self, page: Page, after: Option<WriteId>) -> Option<ReplicaMessage> {
        let (origin, silence) = self.writes.as_ref()?.next_of(page, after)?;
        Some(ReplicaMessage::Remembered { page, origin, silence, epoch: self.epoch })
    }
    /// A write that a peer remembers of a requested page: the next one is requested.
    fn on_remembered(&mut self, now: Time, page: Page, origin: &Origin, silence: Span, out: &mut Vec<ReplicaOut>) {
        let is_refused = |writes: &mut Writes| !writes.note_after(now, silence, page, origin);
        if self.rebuild.is_none() || self.writes.as_mut().is_some_and(is_refused) {
            self.ignored += 1;
            return;
        }
        if let Some(turn) = self.rebuild.as_mut().and_then(|rebuild| rebuild.remembered(now, page, origin.id)) {
            let message = ReplicaMessage::Fetch { page, after: Some(origin.id), epoch: self.epoch };
            self.to_peer(turn % self.peers.len(), message, out);
        }
    }
    /// A page that was valid at a peer in this epoch: all earlier writes are complete, and any
    /// current write needs this replica too.
    fn on_fetched(
        &mut self,
        now: Time,
        (page, entry): (Page, Entry),
        timestamp: Timestamp,
        value: Value,
        out: &mut Vec<ReplicaOut>,
    ) {
        let is_expected = self.rebuild.as_mut().is_some_and(|rebuild| rebuild.answered(now, page));
        if !is_expected || timestamp.version > VERSION_MAX {
            self.ignored += 1;
            return;
        }
        let known = self.timestamp(page);
        if value == Value::ROTTEN && timestamp >= known {
            self.repairs.note_lost(page);
        }
        if timestamp > known || timestamp.version == 0 && known.version == 0 {
            out.push(ReplicaOut::Apply { page, value, timestamp });
        }
        match entry {
            Entry::Settled(_) if timestamp > known => self.table.set(page, Entry::Settled(timestamp)),
            Entry::InFlight(slot) if timestamp >= known => {
                let flight = &mut self.flights[slot];
                if timestamp > known {
                    flight.origin = None;
                }
                // A copy that came by INV is sound, whatever the peer's has become.
                if timestamp > known || value != Value::ROTTEN {
                    flight.value = value;
                }
                flight.timestamp = timestamp;
                self.settle(now, slot, out);
            }
            _ => {}
        }
        self.ask(now, out);
    }
}

/// The page and the epoch of a message.
fn subject(message: &ReplicaMessage) -> (Page, u32) {
    match *message {
        ReplicaMessage::Invalidate { page, epoch, .. }
        | ReplicaMessage::Acknowledge { page, epoch, .. }
        | ReplicaMessage::Validate { page, epoch, .. }
        | ReplicaMessage::Fetch { page, epoch, .. }
        | ReplicaMessage::Remembered { page, epoch, .. }
        | ReplicaMessage::Recall { page, epoch, .. }
        | ReplicaMessage::Recalled { page, epoch, .. }
        | ReplicaMessage::Fetched { page, epoch, .. } => (page, epoch),
    }
}
