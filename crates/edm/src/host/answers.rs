//! The host as a memory node: requests and grants become the chunks of answers.
//!
//! A request is the grant of its first chunk. Other grants may come before its data, and are kept
//! as one sum in the answer's *place*: its peer, and its id modulo the places of a peer. Requests
//! of a pair come in order, so the next request in a place ends what was there before. A sum whose
//! request never comes is withdrawn once when its time is over.

use super::{Host, HostOut, Role, Transmission, WRITE_ID, Wire};
use crate::config::{Config, Ordering};
use crate::host::Access;
use crate::message::{Body, Grant, Message, MessageId};
use crate::{Tag, pcs::memory as encoded};
use base::{NodeId, Time};

/// What is granted of an answer that is not there yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    target: NodeId,
    id: MessageId,
    bytes: u32,
    /// A timeout after its first grant.
    deadline: Time,
}

/// The bits of an id that say its place: as many places as ids of a pair that can be open at a
/// time. Without an order an old one may stay open beside any other.
pub(super) fn place_mask(config: &Config) -> u8 {
    let in_order = config.active_per_pair.clamp(2, WRITE_ID).next_power_of_two();
    if config.ordering == Ordering::None { WRITE_ID - 1 } else { in_order - 1 }
}

impl Host {
    fn access_memory(&mut self, body: &Body) -> u64 {
        match *body {
            Body::ReadRequest { address, bytes } if bytes <= 8 => self.memory.read(address),
            Body::ReadModifyWrite { address, modify } => self.memory.modify(address, modify),
            Body::ReadRequest { .. } | Body::WriteRequest { .. } | Body::ReadResponse { .. } => 0,
        }
    }

    pub(super) fn begin(&mut self, message: Message) {
        let word = self.access_memory(&message.body);
        self.begun.push_back((message.source, message.id, word));
    }

    /// An RREQ or RMWREQ is the grant for the first chunk of its response.
    pub(super) fn serve(&mut self, now: Time, message: Message, tag: Tag, out: &mut Vec<HostOut>) {
        let bytes = match message.body {
            Body::ReadRequest { bytes, .. } => bytes,
            Body::ReadModifyWrite { modify, .. } => modify.response_bytes(),
            Body::WriteRequest { .. } | Body::ReadResponse { .. } => return out.push(HostOut::Unexpected),
        };
        let (peer, id) = (message.source, message.id);
        let begun = self.begun.iter().position(|(from, begun, _)| (*from, *begun) == (peer, id));
        let word = begun.and_then(|at| self.begun.remove(at)).map(|(.., word)| word);
        let word = word.unwrap_or_else(|| self.access_memory(&message.body));
        if peer.index() >= self.next_ids.len() || bytes == 0 {
            return out.push(HostOut::Unexpected);
        }
        self.end_answer_before(peer, id, out);
        let early = self.take_early(peer, id, out);
        let chunk = bytes.min(self.config.chunk.count() as u32);
        if chunk == bytes {
            self.send_answer(now, peer, id, bytes, true, word, tag);
            if early > 0 {
                self.withdraw(now, peer, id, out);
            }
            return;
        }
        let slot = self.open_answer(now, peer, id, bytes, word, tag);
        self.answer_chunks(now, slot, chunk.saturating_add(early), out);
    }

    fn open_answer(&mut self, now: Time, target: NodeId, id: MessageId, bytes: u32, word: u64, tag: Tag) -> u32 {
        let slot = self.store(tag, target, Access::Write { address: 0, bytes, word });
        self.items[slot as usize].id = id;
        let mut peer = self.peers.get(target.0);
        self.append(&mut peer, Role::Answering, slot);
        self.peers.set(target.0, peer);
        self.set_timer(now, slot);
        slot
    }

    pub(super) fn grant_answer(&mut self, now: Time, grant: Grant, out: &mut Vec<HostOut>) {
        let peer = self.peers.get(grant.target.0);
        match self.find(&peer, Role::Answering, grant.id) {
            Some(slot) => self.answer_chunks(now, slot, grant.bytes.into(), out),
            None if self.is_answered(&grant) => self.withdraw(now, grant.target, grant.id, out),
            None => self.keep_early(now, grant, out),
        }
    }

    /// Whether the answer that a grant is for is over. A demand is ahead of the later ones of its
    /// channel, so it is the last one that was.
    fn is_answered(&self, grant: &Grant) -> bool {
        self.next_ids[grant.target.index()].answered == grant.id.0
    }

    fn is_in_place(&self, of: (NodeId, MessageId), peer: NodeId, id: MessageId) -> bool {
        of.0 == peer && (of.1.0 ^ id.0) & self.place_mask == 0
    }

    /// Adds a grant to the sum in its place. Of an older answer nothing will come any more.
    fn keep_early(&mut self, now: Time, Grant { target, id, bytes }: Grant, out: &mut Vec<HostOut>) {
        if let Some(kept) = self.early.iter_mut().find(|kept| (kept.target, kept.id) == (target, id)) {
            kept.bytes = kept.bytes.saturating_add(bytes.into());
            return;
        }
        self.take_early(target, id, out);
        self.early.push(Early { target, id, bytes: bytes.into(), deadline: now + self.config.timeout });
    }

    /// Empties the place of an answer and returns what has been granted of this one.
    fn take_early(&mut self, peer: NodeId, id: MessageId, out: &mut Vec<HostOut>) -> u32 {
        let in_place = |kept: &Early| self.is_in_place((kept.target, kept.id), peer, id);
        let Some(at) = self.early.iter().position(in_place) else { return 0 };
        let kept = self.early.remove(at);
        if kept.id == id {
            return kept.bytes;
        }
        out.push(HostOut::Unexpected);
        0
    }

    pub(super) fn early_deadline(&self) -> Option<Time> {
        self.early.first().map(|kept| kept.deadline)
    }

    /// Withdraws what was granted of answers whose requests have not come in time.
    pub(super) fn lapse_early(&mut self, now: Time, out: &mut Vec<HostOut>) {
        while self.early_deadline().is_some_and(|deadline| deadline <= now) {
            let Early { target, id, .. } = self.early.remove(0);
            self.control.push_back(super::withdrawal_of(now, target, id));
            out.push(HostOut::Unexpected);
        }
    }

    /// Sends what is granted of an answer, chunk by chunk. More than is left of it is withdrawn.
    fn answer_chunks(&mut self, now: Time, slot: u32, granted: u32, out: &mut Vec<HostOut>) {
        let chunk_max = self.config.chunk.count() as u32;
        let item = self.items[slot as usize];
        let Access::Write { bytes, word, .. } = item.access else { unreachable!("an answer is kept as a write") };
        let (target, id) = (item.peer, item.id);
        let (mut done, mut left) = (item.done, granted);
        while left > 0 && done < bytes {
            let chunk = left.min(bytes - done).min(chunk_max);
            (done, left) = (done + chunk, left - chunk);
            self.send_answer(now, target, id, chunk, done == bytes, word, item.tag);
        }
        self.items[slot as usize].progress(done - item.done);
        if done == bytes {
            let mut peer = self.peers.get(target.0);
            self.end_answer(&mut peer, slot);
            self.peers.set(target.0, peer);
        }
        if left > 0 {
            self.withdraw(now, target, id, out);
        }
    }

    /// An answer that is still open in the place of a new one has lost a grant.
    fn end_answer_before(&mut self, target: NodeId, id: MessageId, out: &mut Vec<HostOut>) {
        let mut peer = self.peers.get(target.0);
        let open = self.walk(&peer, Role::Answering);
        let mut before = open.filter(|slot| self.is_in_place((target, self.items[*slot as usize].id), target, id));
        if let Some(slot) = before.next() {
            drop(before);
            self.end_answer(&mut peer, slot);
            self.peers.set(target.0, peer);
            out.push(HostOut::Unexpected);
        }
    }

    /// Forgets an answer. What is granted of it from now on is withdrawn.
    pub(super) fn end_answer(&mut self, peer: &mut super::Peer, slot: u32) {
        let item = &self.items[slot as usize];
        self.next_ids[item.peer.index()].answered = item.id.0;
        self.remove(peer, slot);
        self.free(slot);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    fn send_answer(&mut self, now: Time, target: NodeId, id: MessageId, bytes: u32, last: bool, word: u64, tag: Tag) {
        let message = Message { source: self.node, target, id, body: Body::ReadResponse { bytes, last } };
        if last {
            self.next_ids[target.index()].answered = id.0;
        }
        let blocks = encoded::response_blocks(bytes);
        self.data.push_back(Transmission::alone(Wire::Memory(message), blocks, word, tag, now));
    }
}
