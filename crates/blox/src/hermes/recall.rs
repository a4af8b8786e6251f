//! Writes that are sent again: whether one is done is settled among all members before it is done
//! or answered.
//!
//! *A write that is known here* has an effect here once its page is valid: no write of the page
//! that is known is newer than that. But a peer may not know it, where its coordinator has died. It
//! is answered when all know it: no late copy is then done once more.
//!
//! *A write that is not known here* may be known to a peer alone, which will replay it for a dead
//! coordinator. It is done when no peer knows it. A peer that has said so does not begin it: it
//! gives up its own question, and the client asks one server at a time.
//!
//! A first copy is done without questions, if its client had heard of the epoch in which this
//! replica became a member: then no copy of it had been there before.
//!
//! Questions are about one epoch. They are not repeated by themselves: the client does that.

use super::writes::Knowledge;
use super::{Replica, ReplicaOut, Standing, Ticket};
use crate::id::{Origin, Page, WriteId};
use crate::packet::{Refusal, ReplicaMessage, Session};
use base::Time;
use std::collections::BTreeMap;

/// Questions under way, and peers that wait for an answer, at most.
const RECALLS_MAX: usize = 4_096;

/// What is to become of a write that its client may send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new.
    Fresh,
    /// It may have been done: it has to be recalled.
    Doubtful,
    /// Its client does not wait for it any longer: no answer.
    Over,
    /// Not now, or not here.
    Refuse(Refusal),
}

/// A write about which all peers are asked.
struct Round {
    page: Page,
    origin: Origin,
    ticket: Ticket,
    /// Tells answers to this question from others.
    number: u32,
    /// It is done. Peers are not asked, but told.
    is_known: bool,
    /// It is known, and its page is not valid yet.
    waits: bool,
    /// A bit for each peer whose answer is missing.
    missing: u8,
}

/// A peer that has asked about a write that is known here, and whose page is not valid yet.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Late {
    page: Page,
    peer: usize,
    id: WriteId,
    round: u32,
}

/// Questions of a replica.
#[derive(Default)]
pub(super) struct Recalls {
    rounds: BTreeMap<WriteId, Round>,
    late: Vec<Late>,
    last: u32,
}

impl Recalls {
    /// Nobody will answer in the next epoch.
    pub fn give_up(&mut self, out: &mut Vec<ReplicaOut>) {
        let rounds = std::mem::take(&mut self.rounds);
        out.extend(rounds.into_values().map(|round| ReplicaOut::Abandoned { ticket: round.ticket, started: true }));
        self.late.clear();
    }

    fn next_number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }
}

/// Writes that are sent again.
impl Replica {
    /// What is to become of a write of a client, while the host has `begun` that it has not passed
    /// in.
    pub fn judge(&mut self, now: Time, origin: &Origin, session: &Session, begun: usize) -> Verdict {
        let Some(writes) = &mut self.writes else { return Verdict::Fresh };
        if self.standing != Standing::Serving {
            return Verdict::Refuse(Refusal::Stale);
        }
        if !writes.has_room(&origin.id, begun) {
            // This copy says perhaps that others are over. Else the write itself will, once begun.
            writes.hear(now, origin);
        }
        match writes.of(&origin.id) {
            Knowledge::Over => Verdict::Over,
            _ if self.recalls.rounds.len() >= RECALLS_MAX => Verdict::Refuse(Refusal::Full),
            Knowledge::Seen => Verdict::Doubtful,
            Knowledge::New if !writes.has_room(&origin.id, begun) => Verdict::Refuse(Refusal::Full),
            Knowledge::New if session.again || session.epoch < self.joined => Verdict::Doubtful,
            Knowledge::New => Verdict::Fresh,
        }
    }

    /// Settles whether a doubtful write is done. [`ReplicaOut::Recalled`] or
    /// [`ReplicaOut::Abandoned`] follows.
    pub fn recall(&mut self, page: Page, origin: &Origin, ticket: Ticket, out: &mut Vec<ReplicaOut>) {
        let (number, missing) = (self.recalls.next_number(), self.all_peers());
        let (origin, is_known) = (*origin, self.knows(&origin.id));
        let waits = is_known && !self.is_valid(page);
        self.recalls.rounds.insert(origin.id, Round { page, origin, ticket, number, is_known, waits, missing });
        self.go_on(origin.id, out);
    }

    /// Asks those peers again that have not answered.
    pub fn recall_again(&mut self, id: &WriteId, out: &mut Vec<ReplicaOut>) {
        self.go_on(*id, out);
    }

    /// Whether a write is being recalled.
    pub fn is_recalling(&self, id: &WriteId) -> bool {
        self.recalls.rounds.contains_key(id)
    }

    /// Writes that are known.
    pub fn writes_known(&self) -> usize {
        self.writes.as_ref().map_or(0, super::writes::Writes::len)
    }

    /// A write has begun, here or elsewhere. Returns false where it must not be taken in.
    pub(super) fn note(&mut self, now: Time, page: Page, origin: Option<Origin>) -> bool {
        match (&mut self.writes, origin) {
            (Some(writes), Some(origin)) => writes.note(now, page, &origin),
            _ => true,
        }
    }

    fn knows(&self, id: &WriteId) -> bool {
        self.writes.as_ref().is_some_and(|writes| writes.of(id) != Knowledge::New)
    }

    /// Asks or tells who has not answered, or ends the round.
    fn go_on(&mut self, id: WriteId, out: &mut Vec<ReplicaOut>) {
        let Some(round) = self.recalls.rounds.get(&id).filter(|round| !round.waits) else { return };
        if round.missing == 0 {
            return self.end(id, out);
        }
        let Round { page, origin, is_known: known, number: round, missing, .. } = *round;
        let message = ReplicaMessage::Recall { page, origin, known, round, epoch: self.epoch };
        let asked = (0..self.peers.len()).filter(|peer| missing & (1 << peer) != 0);
        asked.for_each(|peer| self.to_peer(peer, message, out));
    }

    fn end(&mut self, id: WriteId, out: &mut Vec<ReplicaOut>) {
        let Some(round) = self.recalls.rounds.remove(&id) else { return };
        let Round { page, origin, ticket, is_known, .. } = round;
        if !is_known && self.knows(&id) {
            // An INV of it came after the first answers.
            return self.recall(page, &origin, ticket, out);
        }
        out.push(ReplicaOut::Recalled { ticket, is_done: is_known });
    }

    /// A page has become valid, and with it the writes that are known of it.
    pub(super) fn on_valid(&mut self, page: Page, out: &mut Vec<ReplicaOut>) {
        let Recalls { rounds, late, .. } = &mut self.recalls;
        if rounds.is_empty() && late.is_empty() {
            return;
        }
        let epoch = self.epoch;
        for Late { peer, id, round, .. } in late.extract_if(.., |late| late.page == page) {
            let (to, vssd) = self.peers[peer];
            let message = ReplicaMessage::Recalled { page, id, known: true, round, epoch };
            out.push(ReplicaOut::Send { to, vssd, message });
        }
        let waiting = rounds.values_mut().filter(|round| round.waits && round.page == page);
        let ids: Vec<WriteId> = waiting
            .map(|round| {
                round.waits = false;
                round.origin.id
            })
            .collect();
        ids.into_iter().for_each(|id| self.go_on(id, out));
    }

    /// A peer asks about a write, or says that it is done everywhere.
    pub(super) fn on_recall(
        &mut self,
        now: Time,
        page: Page,
        peer: usize,
        origin: &Origin,
        (known, round): (bool, u32),
        out: &mut Vec<ReplicaOut>,
    ) {
        let id = origin.id;
        let is_taken = !known || self.note(now, page, Some(*origin));
        if self.writes.is_none() || !is_taken {
            self.ignored += 1;
            return;
        }
        if known {
            self.learn(id, peer, out);
        } else if self.knows(&id) && !self.is_valid(page) {
            let late = Late { page, peer, id, round };
            if self.recalls.late.len() < RECALLS_MAX && !self.recalls.late.contains(&late) {
                self.recalls.late.push(late);
            }
            return;
        } else if !self.knows(&id) {
            // Two that ask at once would both begin it.
            let given_up = self.recalls.rounds.remove(&id);
            out.extend(given_up.map(|round| ReplicaOut::Abandoned { ticket: round.ticket, started: true }));
        }
        let known = self.knows(&id);
        self.to_peer(peer, ReplicaMessage::Recalled { page, id, known, round, epoch: self.epoch }, out);
    }

    pub(super) fn on_recalled(
        &mut self,
        now: Time,
        peer: usize,
        id: &WriteId,
        (known, number): (bool, u32),
        out: &mut Vec<ReplicaOut>,
    ) {
        let Some(round) = self.recalls.rounds.get_mut(id).filter(|round| round.number == number) else { return };
        if known && !round.is_known {
            let (page, origin) = (round.page, round.origin);
            if self.note(now, page, Some(origin)) {
                self.learn(*id, peer, out);
            }
            return;
        }
        round.missing &= !(1 << peer);
        if round.missing == 0 {
            self.go_on(*id, out);
        }
    }

    /// A peer knows that a write is done everywhere: what was a question becomes a message.
    fn learn(&mut self, id: WriteId, peer: usize, out: &mut Vec<ReplicaOut>) {
        let (number, all) = (self.recalls.next_number(), self.all_peers());
        let Some(round) = self.recalls.rounds.get_mut(&id) else { return };
        if !round.is_known {
            (round.is_known, round.number, round.missing) = (true, number, all);
        }
        round.waits = false;
        round.missing &= !(1 << peer);
        self.go_on(id, out);
    }
}
