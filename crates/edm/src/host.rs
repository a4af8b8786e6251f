//! The host program: EDM's network stack in the NIC of a compute node, a memory node, or one that
//! is both (paper 3.2.1).
//!
//! Requests wait in a queue per destination until one of X active notifications is free. RREQ,
//! RMWREQ and /N/ leave as control, chunks of WREQ and RRES as data once they are granted. Message
//! ids of reads have the top bit clear and those of writes have it set. A /G/ thus distinguishes a
//! write to a node from a response to it without another field.

mod answers;
mod ids;
mod prefetch;

use crate::config::{Config, Ordering, Place};
use crate::fifo::Fifo;
use crate::memory::Memory;
use crate::message::{Body, Grant, Message, MessageId, Modify, Notification};
use crate::sparse::Sparse;
use crate::{Tag, pcs::memory as encoded};
use answers::Early;
use base::{NodeId, Program, Time};
use ids::{FIRST_IDS, NextIds};
use std::collections::VecDeque;

/// An application's request to remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read `bytes` from `address`; `word` of the answer holds them if they are at most eight.
    Read {
        /// Address at the memory node.
        address: u64,
        /// Length in bytes; not zero.
        bytes: u32,
    },
    /// Write `bytes` to `address`.
    Write {
        /// Address at the memory node.
        address: u64,
        /// Length in bytes; not zero.
        bytes: u32,
        /// The data, if it is at most eight bytes.
        word: u64,
    },
    /// Change the word at `address` atomically.
    Modify {
        /// Address at the memory node.
        address: u64,
        /// The modification.
        modify: Modify,
    },
}

/// Inputs of a host, past the receive side of its PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIn {
    /// A request of the application.
    Submit {
        /// The caller's name for this request; comes back when it ends.
        tag: Tag,
        /// The memory node.
        target: NodeId,
        /// The request.
        access: Access,
    },
    /// A /G/ has been taken, and its chunk is ready to be made.
    Granted(Grant),
    /// An RREQ or RMWREQ has reached the memory, whose data will be ready later: it is read (and
    /// changed) now, in the order of arrival, so that a slow memory changes no answer. Not needed
    /// before a [`Serve`](HostIn::Serve) at the same time.
    Begin {
        /// The request.
        message: Message,
    },
    /// An RREQ or RMWREQ has reached the memory, and its data is ready.
    Serve {
        /// The request.
        message: Message,
        /// The request's tag, for traces.
        tag: Tag,
    },
    /// A chunk of a WREQ or RRES has come in whole.
    Take {
        /// The chunk.
        message: Message,
        /// Its payload, if the whole message is at most eight bytes.
        word: u64,
    },
}

/// Decisions of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOut {
    /// A read or read-modify-write is answered.
    Answered {
        /// The request.
        tag: Tag,
        /// The data, if it is at most eight bytes.
        word: u64,
    },
    /// The last chunk of a write has come in at this memory node.
    Written,
    /// A request got no answer in time: the application gets a NULL response (paper 3.3).
    Null {
        /// The request.
        tag: Tag,
    },
    /// Something came in that nobody waits for (any more): a late answer or grant after a NULL, or
    /// a broken peer. A grant's demand is withdrawn.
    Unexpected,
}

/// A transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A memory message.
    Memory(Message),
    /// A demand notification.
    Notification(Notification),
}

/// One thing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The message.
    pub what: Wire,
    /// How many 66-bit blocks it makes.
    pub blocks: u64,
    /// Payload of up to eight bytes.
    pub word: u64,
    /// The request that it belongs to (a notification of a batch: the first), for traces.
    pub tag: Tag,
    /// The request before it in its batch, whose notification and grant are its own too; otherwise
    /// `tag`.
    pub lead: Tag,
    /// Whether another request of its batch comes right after it.
    pub followed: bool,
    /// Time at which the host decided to send it.
    pub queued: Time,
}

impl Transmission {
    #[inline(always)]
    fn alone(what: Wire, blocks: u64, word: u64, tag: Tag, queued: Time) -> Transmission {
        Transmission { what, blocks, word, tag, lead: tag, followed: false, queued }
    }
}

/// Set in the number of a write, clear in that of a request and its response.
pub(crate) const WRITE_ID: u8 = 0x80;
const NONE: u32 = u32::MAX;
/// Capacity for a typical number of open items, so that a run soon stops allocating.
const ROOM: usize = 64;
/// The generation of a slot that holds nothing.
const ENDED: u32 = 0;

/// A request or response in the slab, in one of its peer's lists. One cache line: thousands are
/// alive in a rack, and each is touched a few times only.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Item {
    tag: Tag,
    peer: NodeId,
    id: MessageId,
    access: Access,
    /// Bytes granted or received so far.
    done: u32,
    /// How often the timer has fired since it last grew; one if it never has.
    idle: u8,
    /// Next time at which the timer fires.
    deadline: Time,
    /// Identifies to the timer whether the slot still holds the same request.
    generation: u32,
    next: u32,
    role: Role,
}

impl Item {
    fn progress(&mut self, bytes: u32) {
        let before = self.done;
        self.done = before.saturating_add(bytes);
        if self.done > before {
            self.idle = 0;
        }
    }
}

/// Which list of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Not yet notified.
    Waiting,
    /// Reads and read-modify-writes without their whole answer.
    Reading,
    /// Writes notified and not wholly granted.
    Writing,
    /// Answers to the peer, not wholly granted.
    Answering,
}

impl Role {
    /// How often the timer fires for an item that does not grow before it is given up. The reader
    /// of an answer gives it up at the second time after its last chunk, which may be under way.
    fn patience(self) -> u8 {
        if self == Role::Answering { 3 } else { 1 }
    }
}

/// What a host keeps for a node that it has something to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    /// Last of the waiting items, which are linked in a ring: the next one is the first.
    waiting_tail: u32,
    /// First of the open items of any role, linked in order of arrival. There are at most a few.
    under_way: u32,
    reads_active: u8,
    writes_active: u8,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer { waiting_tail: NONE, under_way: NONE, reads_active: 0, writes_active: 0 }
    }
}

/// A request to check at its deadline.
#[derive(Clone, Copy, Debug)]
struct Timer {
    slot: u32,
    generation: u32,
}

/// The host.
#[derive(Clone, Debug)]
pub struct Host {
    node: NodeId,
    config: Config,
    make_request: base::Span,
    /// How long data take through the switch, which is more than what an RREQ takes with a fast
    /// scheduler.
    forward: base::Span,
    peers: Sparse<Peer>,
    next_ids: Vec<NextIds>,
    items: Vec<Item>,
    /// First of the free items, which are linked by `next`.
    free_item: u32,
    data: Fifo<Transmission>,
    control: Fifo<Transmission>,
    /// An /N/ of zero bytes, for a grant that nothing waits for. One is enough: the next grant of
    /// that demand makes another one. It goes before `control`, whose next /N/ may need its place
    /// of X. One for grants that have lapsed may have no next grant, and waits in `control`.
    withdrawal: Option<Transmission>,
    /// Whether control is next if both wait.
    control_next: bool,
    /// In order: the timeout is the same for all. Those of ended requests stay until room is
    /// needed.
    timers: VecDeque<Timer>,
    generation: u32,
    /// What is granted of answers whose data the memory has not delivered yet: the grant queue of
    /// 3.2.1 holds it. In the order of the deadlines.
    early: Vec<Early>,
    /// Writes that may be inside the switch, until when: a few, for as long as data take through
    /// it.
    passing: Vec<(Time, NodeId)>,
    /// Words of answers that the memory has not delivered yet, in the order of [`HostIn::Begin`].
    begun: VecDeque<(NodeId, MessageId, u64)>,
    place_mask: u8,
    memory: Memory,
}

impl Host {
    /// An idle host with an empty memory.
    pub fn new(node: NodeId, config: Config, place: Place) -> Host {
        Host {
            node,
            config,
            make_request: crate::budget::Delays::new(&config).make_request,
            forward: crate::budget::Delays::new(&config).forward,
            peers: Sparse::new(place.nodes, ROOM),
            next_ids: vec![FIRST_IDS; place.nodes as usize],
            items: Vec::with_capacity(ROOM),
            free_item: NONE,
            data: Fifo::with_capacity(ROOM),
            control: Fifo::with_capacity(ROOM),
            withdrawal: None,
            control_next: false,
            timers: VecDeque::with_capacity(ROOM),
            generation: 0,
            early: Vec::new(),
            passing: Vec::new(),
            begun: VecDeque::new(),
            place_mask: answers::place_mask(&config),
            memory: Memory::default(),
        }
    }

    /// Returns the time at which [`poll_transmit`](Host::poll_transmit) will next have something;
    /// `None` if nothing waits to be sent.
    pub fn transmit_ready(&self) -> Option<Time> {
        if self.data.is_empty() { self.control_ready() } else { Some(Time::ZERO) }
    }

    /// Returns the time at which the first control message may be sent.
    fn control_ready(&self) -> Option<Time> {
        let control = self.first_control()?;
        let made = control.queued + self.make_request;
        Some(match control.what {
            Wire::Memory(request) if self.config.ordering == Ordering::Pair => self.clear_at(request.target).max(made),
            _ => made,
        })
    }

    #[inline]
    fn first_control(&self) -> Option<&Transmission> {
        self.withdrawal.as_ref().or_else(|| self.control.front())
    }

    /// What to put on the uplink now that it is free. Data and control take turns while both wait:
    /// data alone would starve requests on a fully granted uplink, control alone would keep
    /// circuits waiting after a burst of requests.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmission> {
        self.transmit_with(now, |transmission| *transmission)
    }

    /// [`poll_transmit`](Host::poll_transmit) for callers in a hurry: `send` sees what is next
    /// where it has waited.
    #[inline(always)]
    pub fn transmit_with<R>(&mut self, now: Time, send: impl FnOnce(&Transmission) -> R) -> Option<R> {
        let control_ready = self.control_ready().is_some_and(|ready| ready <= now) && !self.would_overtake();
        let is_control = control_ready && (self.control_next || self.data.is_empty());
        self.control_next = !is_control;
        if !is_control {
            self.remember_passing(now);
        } else if let Some(withdrawal) = self.withdrawal.take() {
            return Some(send(&withdrawal));
        }
        let queue = if is_control { &mut self.control } else { &mut self.data };
        queue.pop_front_with(send)
    }

    /// Notes that the next chunk, if it is a write's, will be inside the switch for a while.
    fn remember_passing(&mut self, now: Time) {
        if let Some(Transmission { what: Wire::Memory(message), .. }) = self.data.front()
            && matches!(message.body, Body::WriteRequest { .. })
        {
            let target = message.target;
            self.passing.retain(|(until, _)| *until > now);
            self.passing.push((now + self.forward, target));
        }
    }

    /// Before this a request to `target` could overtake a write to it inside the switch.
    fn clear_at(&self, target: NodeId) -> Time {
        let writes = self.passing.iter().filter(|(_, to)| *to == target);
        writes.map(|(until, _)| *until).max().unwrap_or(Time::ZERO)
    }

    /// Returns whether the first control message is a request that would leave before chunks of its
    /// pair's earlier writes, which are granted but still here.
    fn would_overtake(&self) -> bool {
        let Some(Transmission { what: Wire::Memory(request), .. }) = self.first_control() else { return false };
        self.config.ordering == Ordering::Pair
            && self.data.iter().any(|data| match data.what {
                Wire::Memory(Message { target, body: Body::WriteRequest { .. }, .. }) => target == request.target,
                _ => false,
            })
    }

    /// Takes out everything that waits to be sent: a node that has died sends nothing. A withdrawal
    /// is of no request and ends here.
    pub fn take_unsent(&mut self) -> Vec<Transmission> {
        self.withdrawal = None;
        let control = std::iter::from_fn(|| self.control.pop_front());
        let unsent = std::iter::from_fn(|| self.data.pop_front()).chain(control);
        unsent.filter(|sent| sent.tag != Tag::NONE).collect()
    }

    /// The requests of this node's application that have no end yet.
    pub fn outstanding(&self) -> Vec<Tag> {
        let mut tags = Vec::new();
        for peer in self.peers.keys().map(|peer| self.peers.get(peer)) {
            for role in [Role::Waiting, Role::Reading, Role::Writing] {
                let items = self.walk(&peer, role);
                tags.extend(items.map(|slot| self.items[slot as usize].tag));
            }
        }
        tags
    }

    /// This node's memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
    /// This node's memory, to be filled before a run.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    fn submit(&mut self, now: Time, tag: Tag, target: NodeId, access: Access) {
        let slot = self.store(tag, target, access);
        let mut peer = self.peers.get(target.0);
        if peer.waiting_tail == NONE && self.may_go(&peer, slot) {
            self.go(now, target, &mut peer, slot);
        } else {
            self.append_waiting(&mut peer, slot);
        }
        self.peers.set(target.0, peer);
    }

    /// Notifies waiting requests for `target` as far as its limits and order allow.
    fn release(&mut self, now: Time, target: NodeId, peer: &mut Peer) {
        while let Some(slot) = self.first_waiting(peer) {
            if !self.may_go(peer, slot) {
                return;
            }
            self.take_waiting(peer);
            self.go(now, target, peer, slot);
        }
    }

    /// Whether limits and order let a request go. The host in gates lets a write wait for a long
    /// read of the same bytes, too. Here only words have data, and the memory node reads them in
    /// the order of arrival.
    fn may_go(&self, peer: &Peer, slot: u32) -> bool {
        let Peer { reads_active: reads, writes_active: writes, .. } = *peer;
        let (limit, counts_other) = (self.config.active_per_pair, u8::from(self.config.active_together));
        if self.is_next_id_open(peer, slot) {
            return false;
        }
        if self.is_write(slot) {
            return writes + reads * counts_other < limit;
        }
        // A read must not overtake the pair's earlier writes, which are before it in `data` once
        // nothing of them is ungranted.
        let writes_ahead = self.config.ordering == Ordering::Pair && writes > 0;
        reads + writes * counts_other < limit && !writes_ahead
    }

    /// Whether the id that a request would get is still in use: the others have gone round while
    /// its answer or its grant was lost.
    fn is_next_id_open(&self, peer: &Peer, slot: u32) -> bool {
        let next = &self.next_ids[self.items[slot as usize].peer.index()];
        match self.is_write(slot) {
            true => self.find(peer, Role::Writing, next.write()).is_some(),
            false => self.find(peer, Role::Reading, next.read()).is_some(),
        }
    }

    fn is_write(&self, slot: u32) -> bool {
        matches!(self.items[slot as usize].access, Access::Write { .. })
    }

    fn go(&mut self, now: Time, target: NodeId, peer: &mut Peer, slot: u32) {
        if self.is_write(slot) {
            self.notify_writes(now, target, peer, slot);
        } else {
            self.request(now, target, peer, slot);
        }
    }

    fn request(&mut self, now: Time, target: NodeId, peer: &mut Peer, slot: u32) {
        peer.reads_active += 1;
        let next = &mut self.next_ids[target.index()];
        let id = next.read();
        next.read = (next.read + 1) % WRITE_ID;
        let item = &mut self.items[slot as usize];
        item.id = id;
        let body = match item.access {
            Access::Read { address, bytes } => Body::ReadRequest { address, bytes },
            Access::Modify { address, modify } => Body::ReadModifyWrite { address, modify },
            Access::Write { .. } => unreachable!("a write is notified, not requested"),
        };
        let message = Message { source: self.node, target, id, body };
        let blocks = encoded::message_blocks(&body);
        let tag = item.tag;
        self.control.push_back(Transmission::alone(Wire::Memory(message), blocks, 0, tag, now));
        self.append(peer, Role::Reading, slot);
        self.set_timer(now, slot);
    }

    /// Makes one notification for a write, and for small ones that wait behind it.
    fn notify_writes(&mut self, now: Time, target: NodeId, peer: &mut Peer, first: u32) {
        peer.writes_active += 1;
        let next = &mut self.next_ids[target.index()];
        let id = next.write();
        next.write = (next.write + 1) % WRITE_ID;
        let (mut batch, mut total) = (1, self.begin_write(now, peer, first, id));
        while let Some(slot) = self.first_waiting(peer) {
            let Access::Write { bytes, .. } = self.items[slot as usize].access else { break };
            let fits = u64::from(total) + u64::from(bytes) <= self.config.batch.count() && batch < encoded::BATCH_MAX;
            if !fits {
                break;
            }
            self.take_waiting(peer);
            total += self.begin_write(now, peer, slot, id);
            batch += 1;
        }
        let what = Wire::Notification(Notification { target, id, bytes: total, batch });
        let (blocks, tag) = (encoded::NOTIFICATION_BLOCKS, self.items[first as usize].tag);
        self.control.push_back(Transmission::alone(what, blocks, 0, tag, now));
    }

    /// Takes a write up under notification `id`; its bytes.
    fn begin_write(&mut self, now: Time, peer: &mut Peer, slot: u32, id: MessageId) -> u32 {
        self.items[slot as usize].id = id;
        self.append(peer, Role::Writing, slot);
        self.set_timer(now, slot);
        let Access::Write { bytes, .. } = self.items[slot as usize].access else {
            unreachable!("the caller has looked")
        };
        bytes
    }

    fn granted(&mut self, now: Time, grant: Grant, out: &mut Vec<HostOut>) {
        if grant.target.index() >= self.next_ids.len() || grant.bytes == 0 {
            return out.push(HostOut::Unexpected);
        }
        if grant.id.0 & WRITE_ID == 0 {
            self.grant_answer(now, grant, out);
        } else {
            self.write_chunks(now, grant, out);
        }
    }

    /// Sends the granted bytes of a write, or of each write of a batch.
    fn write_chunks(&mut self, now: Time, grant: Grant, out: &mut Vec<HostOut>) {
        let mut peer = self.peers.get(grant.target.0);
        let mut left = u32::from(grant.bytes);
        let mut lead = None;
        while left > 0 {
            let Some(slot) = self.find(&peer, Role::Writing, grant.id) else {
                self.withdraw(now, grant.target, grant.id, out);
                break;
            };
            left -= self.write_chunk(now, slot, grant, left, &mut lead);
            let item = &self.items[slot as usize];
            if matches!(item.access, Access::Write { bytes, .. } if bytes == item.done) {
                self.end_write(now, grant.target, &mut peer, slot);
            }
        }
        self.peers.set(grant.target.0, peer);
    }

    /// Nothing waits for what is granted: tells the switch that nothing is left of its demand.
    #[cold]
    fn withdraw(&mut self, now: Time, target: NodeId, id: MessageId, out: &mut Vec<HostOut>) {
        self.withdrawal.get_or_insert_with(|| withdrawal_of(now, target, id));
        out.push(HostOut::Unexpected);
    }

    /// Sends what a grant of `left` bytes lets through of one write; how much that is.
    fn write_chunk(&mut self, now: Time, slot: u32, grant: Grant, left: u32, lead: &mut Option<Tag>) -> u32 {
        let item = &mut self.items[slot as usize];
        let Access::Write { address, bytes, word } = item.access else { unreachable!("the list holds writes") };
        let chunk = left.min(bytes - item.done);
        let last = item.done + chunk == bytes;
        let body = Body::WriteRequest { address: address.wrapping_add(u64::from(item.done)), bytes: chunk, last };
        item.progress(chunk);
        let message = Message { source: self.node, target: grant.target, id: grant.id, body };
        let (tag, blocks) = (item.tag, encoded::write_blocks(chunk));
        let alone = Transmission::alone(Wire::Memory(message), blocks, word, tag, now);
        let lead = lead.replace(tag).unwrap_or(tag);
        self.data.push_back(Transmission { lead, followed: last && left > chunk, ..alone });
        chunk
    }

    /// Forgets a write. Its notification is used up when no write with its id is left.
    fn end_write(&mut self, now: Time, target: NodeId, peer: &mut Peer, slot: u32) {
        let id = self.items[slot as usize].id;
        self.remove(peer, slot);
        self.free(slot);
        if self.find(peer, Role::Writing, id).is_none() {
            peer.writes_active -= 1;
            self.release(now, target, peer);
        }
    }

    fn take(&mut self, now: Time, message: Message, word: u64, out: &mut Vec<HostOut>) {
        match message.body {
            Body::WriteRequest { address, bytes, last } => {
                if last && bytes <= 8 {
                    self.memory.write(address, word);
                }
                if last {
                    out.push(HostOut::Written);
                }
            }
            Body::ReadResponse { bytes, last } => self.take_response(now, message, bytes, last, word, out),
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => out.push(HostOut::Unexpected),
        }
    }

    fn take_response(
        &mut self,
        now: Time,
        message: Message,
        bytes: u32,
        last: bool,
        word: u64,
        out: &mut Vec<HostOut>,
    ) {
        let source = message.source;
        let mut peer = self.peers.get(source.0);
        let Some(slot) = self.find(&peer, Role::Reading, message.id) else { return out.push(HostOut::Unexpected) };
        let item = &mut self.items[slot as usize];
        item.progress(bytes);
        if last {
            out.push(HostOut::Answered { tag: item.tag, word });
            self.finish_read(now, source, &mut peer, slot);
            self.peers.set(source.0, peer);
        }
    }

    fn finish_read(&mut self, now: Time, target: NodeId, peer: &mut Peer, slot: u32) {
        self.remove(peer, slot);
        self.free(slot);
        peer.reads_active -= 1;
        self.release(now, target, peer);
    }

    fn set_timer(&mut self, now: Time, slot: u32) {
        if self.timers.len() == self.timers.capacity() {
            self.drop_ended_timers();
        }
        let item = &mut self.items[slot as usize];
        item.deadline = now + self.config.timeout;
        self.timers.push_back(Timer { slot, generation: item.generation });
    }

    /// From the front, so that the list stays about as short as what is in flight.
    fn drop_ended_timers(&mut self) {
        while self.timers.front().is_some_and(|timer| !self.is_current(timer)) {
            self.timers.pop_front();
        }
    }

    /// Returns whether the slot still holds the request that the timer was set for.
    fn is_current(&self, timer: &Timer) -> bool {
        self.items[timer.slot as usize].generation == timer.generation
    }

    fn deadline(&self, timer: &Timer) -> Time {
        self.items[timer.slot as usize].deadline
    }

    /// Gives a slot back.
    fn free(&mut self, slot: u32) {
        let item = &mut self.items[slot as usize];
        (item.generation, item.next) = (ENDED, std::mem::replace(&mut self.free_item, slot));
    }

    fn expire(&mut self, now: Time, slot: u32, out: &mut Vec<HostOut>) {
        let item = &mut self.items[slot as usize];
        if item.idle < item.role.patience() {
            item.idle += 1;
            return self.set_timer(now, slot);
        }
        let (target, role) = (item.peer, item.role);
        if role != Role::Answering {
            out.push(HostOut::Null { tag: item.tag });
        }
        let mut peer = self.peers.get(target.0);
        match role {
            Role::Reading => self.finish_read(now, target, &mut peer, slot),
            // The other writes of its batch have timers of their own.
            Role::Writing => self.end_write(now, target, &mut peer, slot),
            Role::Answering => self.end_answer(&mut peer, slot),
            Role::Waiting => unreachable!("only what was sent has a timer"),
        }
        self.peers.set(target.0, peer);
    }

    fn store(&mut self, tag: Tag, peer: NodeId, access: Access) -> u32 {
        self.generation = self.generation.wrapping_add(1).max(ENDED + 1);
        let (id, generation, role) = (MessageId(0), self.generation, Role::Waiting);
        let (idle, deadline, next) = (1, Time::MAX, NONE);
        let item = Item { tag, peer, id, access, done: 0, idle, deadline, generation, next, role };
        let slot = self.free_item;
        if slot == NONE {
            self.items.push(item);
            return self.items.len() as u32 - 1;
        }
        self.free_item = self.items[slot as usize].next;
        self.items[slot as usize] = item;
        slot
    }

    /// The items of one role, in order.
    fn walk(&self, peer: &Peer, role: Role) -> impl Iterator<Item = u32> + '_ {
        let (first, last) = match role {
            Role::Waiting if peer.waiting_tail == NONE => (NONE, NONE),
            // The ring of waiting items ends where it would begin again.
            Role::Waiting => (self.items[peer.waiting_tail as usize].next, peer.waiting_tail),
            Role::Reading | Role::Writing | Role::Answering => (peer.under_way, NONE),
        };
        let some = |slot: u32| Some(slot).filter(|slot| *slot != NONE);
        let after = move |slot: &u32| if *slot == last { None } else { some(self.items[*slot as usize].next) };
        std::iter::successors(some(first), after).filter(move |slot| self.items[*slot as usize].role == role)
    }
    /// Returns the open item in `role` with this id.
    fn find(&self, peer: &Peer, role: Role, id: MessageId) -> Option<u32> {
        self.walk(peer, role).find(|slot| self.items[*slot as usize].id == id)
    }
    /// Opens an item.
    fn append(&mut self, peer: &mut Peer, role: Role, slot: u32) {
        let item = &mut self.items[slot as usize];
        (item.role, item.next) = (role, NONE);
        if peer.under_way == NONE {
            peer.under_way = slot;
            return;
        }
        let mut last = peer.under_way;
        while self.items[last as usize].next != NONE {
            last = self.items[last as usize].next;
        }
        self.items[last as usize].next = slot;
    }
    /// Removes an item from its list.
    fn remove(&mut self, peer: &mut Peer, slot: u32) {
        let next = self.items[slot as usize].next;
        if peer.under_way == slot {
            peer.under_way = next;
            return;
        }
        let mut before = peer.under_way;
        while self.items[before as usize].next != slot {
            before = self.items[before as usize].next;
        }
        self.items[before as usize].next = next;
    }
    fn append_waiting(&mut self, peer: &mut Peer, slot: u32) {
        self.items[slot as usize].role = Role::Waiting;
        let tail = std::mem::replace(&mut peer.waiting_tail, slot);
        if tail == NONE {
            self.items[slot as usize].next = slot;
            return;
        }
        self.items[slot as usize].next = self.items[tail as usize].next;
        self.items[tail as usize].next = slot;
    }
    fn first_waiting(&self, peer: &Peer) -> Option<u32> {
        (peer.waiting_tail != NONE).then(|| self.items[peer.waiting_tail as usize].next)
    }
    /// Takes the first waiting item, which the caller has seen.
    fn take_waiting(&mut self, peer: &mut Peer) {
        let tail = peer.waiting_tail;
        let first = self.items[tail as usize].next;
        if first == tail {
            peer.waiting_tail = NONE;
        } else {
            self.items[tail as usize].next = self.items[first as usize].next;
        }
    }
}

/// The /N/ of zero bytes.
fn withdrawal_of(now: Time, target: NodeId, id: MessageId) -> Transmission {
    let what = Wire::Notification(Notification { target, id, bytes: 0, batch: 1 });
    Transmission::alone(what, encoded::NOTIFICATION_BLOCKS, 0, Tag::NONE, now)
}

impl Program for Host {
    type In = HostIn;
    type Out = HostOut;

    #[inline(always)]
    fn on(&mut self, now: Time, input: HostIn, out: &mut Vec<HostOut>) {
        match input {
            HostIn::Submit { tag, target, access } => self.submit(now, tag, target, access),
            HostIn::Granted(grant) => self.granted(now, grant, out),
            HostIn::Begin { message } => self.begin(message),
            HostIn::Serve { message, tag } => self.serve(now, message, tag, out),
            HostIn::Take { message, word } => self.take(now, message, word, out),
        }
    }

    /// The next timer. Sending has its own call, [`transmit_ready`](Host::transmit_ready).
    fn next_wakeup(&self) -> Option<Time> {
        let timer = self.timers.iter().find(|timer| self.is_current(timer)).map(|timer| self.deadline(timer));
        timer.into_iter().chain(self.early_deadline()).min()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<HostOut>) {
        self.drop_ended_timers();
        while let Some(timer) = self.timers.front().copied().filter(|timer| self.deadline(timer) <= now) {
            self.timers.pop_front();
            self.expire(now, timer.slot, out);
            self.drop_ended_timers();
        }
        self.lapse_early(now, out);
    }
}

const _: () = assert!(size_of::<Item>() == 64);
