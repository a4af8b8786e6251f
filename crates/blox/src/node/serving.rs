//! Reads, writes, replicas and the device: Algorithm 2, lines 1 to 6.

use super::StorageNode;
use super::interface::{DeviceJob, NodeOut, Stage, WriteAck};
use super::timers::Alarm;
use super::vssd::{Purpose, Work};
use crate::hermes::{Reading, ReplicaOut, Ticket, Verdict, Writing};
use crate::id::{Origin, Page, Tag, Value, VssdId};
use crate::packet::{Body, ControlMessage, Packet, Refusal, ReplicaMessage, Session, Timestamp};
use crate::schedule::{Job, JobId, JobKind, SchedulingKey};
use base::{NodeId, Span, Time};

/// A client's request that has been accepted and not yet answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    source: NodeId,
    tag: Tag,
    vssd: usize,
    page: Page,
    /// What a write writes; none for a read.
    value: Option<Value>,
    /// Of a write that its client may send again.
    origin: Option<Origin>,
    arrived: Time,
    /// LAT of its packet, which its answer carries on; with the prediction where that is a label.
    latency_ns: u32,
    /// Net and Predict: what it has spent and its answer will spend in networks.
    network: Span,
    /// A write that every live replica has, and that the device here has not taken yet.
    is_replicated: bool,
}

impl Request {
    /// What it writes, if it is a write.
    pub fn value(&self) -> Option<Value> {
        self.value
    }
}

/// What the device has read: a value, or no sound page and the value that it should have, if the
/// device knows that.
pub(super) type Read = Result<Value, Option<Value>>;

/// A write that waits for room in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    vssd: usize,
    page: Page,
    what: WaitingFor,
}

#[derive(Clone, Copy, Debug)]
enum WaitingFor {
    /// A client's write.
    Client(usize),
    /// A peer's INV, or a page that a rebuild has fetched.
    Peer { from: NodeId, message: ReplicaMessage, network: Span },
}

impl Waiting {
    /// What a peer writes; a client's write has its value in its request.
    pub fn value(&self) -> Option<Value> {
        match self.what {
            WaitingFor::Peer { message, .. } => Body::Replica(message).value(),
            WaitingFor::Client(_) => None,
        }
    }
}

/// Identifies a message that waits for room: vSSD, sender, kind, page, timestamp and epoch.
pub(super) type MessageKey = (usize, NodeId, bool, Page, Timestamp, u32);

impl StorageNode {
    pub(super) fn on_read(&mut self, now: Time, packet: &Packet, tag: Tag, page: Page, out: &mut Vec<NodeOut>) {
        let Some(index) = self.accept(now, packet, page, out) else { return };
        if let Some((server, vssd)) = self.units[self.vssds[index].unit].collector.replica_for_reads(packet.vssd) {
            // RackBlox in software: the server itself sends the read on, at the price of a hop. It
            // stays the client's packet.
            self.counters.reads_redirected += 1;
            self.mark(packet.source, tag, Stage::Redirected, out);
            out.push(NodeOut::Send(Packet { target: server, vssd, ..*packet }));
            return;
        }
        let request = self.open(now, index, packet, (tag, page, None, None));
        match self.vssds[index].replica.read(page, ticket(request)) {
            Reading::Serve => self.serve(now, request, out),
            Reading::Wait => {}
            Reading::Refuse(refusal) => self.answer(now, request, Err(refusal), out),
        }
        self.settle(now, index, out);
    }

    pub(super) fn on_write(
        &mut self,
        now: Time,
        packet: &Packet,
        (tag, page, value): (Tag, Page, Value),
        session: Option<&Session>,
        out: &mut Vec<NodeOut>,
    ) {
        let Some(index) = self.accept(now, packet, page, out) else { return };
        let session = session.filter(|_| self.config.remember.is_some());
        let origin = session.map(|session| session.origin(packet.source, tag));
        if let Some(origin) = origin.filter(|origin| self.begun.contains(&origin.id)) {
            return self.recall_again(now, index, &origin, out);
        }
        let (replica, begun) = (&mut self.vssds[index].replica, self.begun.len());
        let judged = session.zip(origin).map(|(session, origin)| replica.judge(now, &origin, session, begun));
        match judged.unwrap_or(Verdict::Fresh) {
            Verdict::Over => self.counters.writes_over += 1,
            Verdict::Refuse(refusal) => self.refuse(now, packet, refusal, out),
            Verdict::Fresh if self.vssds[index].is_worn_out => self.refuse(now, packet, Refusal::WornOut, out),
            Verdict::Fresh => {
                let request = self.open(now, index, packet, (tag, page, Some(value), origin));
                self.begin(now, request, out);
                self.settle(now, index, out);
            }
            Verdict::Doubtful => {
                let request = self.open(now, index, packet, (tag, page, Some(value), origin));
                self.recall(now, request, out);
                self.settle(now, index, out);
            }
        }
    }

    /// It has to be settled whether a write is done that its client has sent again.
    fn recall(&mut self, now: Time, request: usize, out: &mut Vec<NodeOut>) {
        let Request { vssd: index, page, origin, .. } = self.requests[request];
        let Some(origin) = origin else { return };
        self.vssds[index].replica.recall(page, &origin, ticket(request), &mut self.replica_out);
        self.carry_out(now, index, Span::ZERO, out);
    }

    /// The same for one that is under way: its first copy will be answered.
    fn recall_again(&mut self, now: Time, index: usize, origin: &Origin, out: &mut Vec<NodeOut>) {
        self.vssds[index].replica.recall_again(&origin.id, &mut self.replica_out);
        self.carry_out(now, index, Span::ZERO, out);
    }

    /// A write that was sent again is done, or nobody knows it.
    fn on_recalled(&mut self, now: Time, request: usize, is_done: bool, out: &mut Vec<NodeOut>) {
        let Some(Request { vssd, .. }) = self.requests.get(request) else { return };
        if is_done {
            self.counters.writes_known += 1;
            self.answer(now, request, Ok(Value::default()), out);
        } else if self.vssds[*vssd].is_worn_out {
            self.answer(now, request, Err(Refusal::WornOut), out);
        } else {
            self.begin(now, request, out);
        }
    }

    /// A client's write wants room in the cache.
    fn begin(&mut self, now: Time, request: usize, out: &mut Vec<NodeOut>) {
        let Request { vssd, page, network, .. } = self.requests[request];
        self.enter(now, Waiting { vssd, page, what: WaitingFor::Client(request) }, network, out);
    }

    pub(super) fn on_message(&mut self, now: Time, packet: &Packet, message: ReplicaMessage, out: &mut Vec<NodeOut>) {
        let Some(&index) = self.by_name.get(&packet.vssd) else {
            self.counters.ignored += 1;
            return;
        };
        if self.is_begun_here(index, &message) {
            return;
        }
        let network = Span::ns(u64::from(packet.latency_ns));
        match needs_room(index, packet.source, &message) {
            Some(key) if !self.messages_waiting.contains(&key) => {
                if matches!(message, ReplicaMessage::Invalidate { .. }) {
                    self.note_request(now, index);
                }
                let what = WaitingFor::Peer { from: packet.source, message, network };
                self.enter(now, Waiting { vssd: index, page: key.3, what }, network, out);
            }
            Some(_) => {}
            None => self.hand_message(now, index, packet.source, &message, network, out),
        }
        self.settle(now, index, out);
    }

    /// A peer asks about a write that was sent again, and that has begun here, whether or not the
    /// replica knows it: there is no answer yet.
    fn is_begun_here(&self, index: usize, message: &ReplicaMessage) -> bool {
        let ReplicaMessage::Recall { origin, .. } = message else { return false };
        self.begun.contains(&origin.id) && !self.vssds[index].replica.is_recalling(&origin.id)
    }

    pub(super) fn on_read_done(&mut self, now: Time, name: DeviceJob, value: Value, out: &mut Vec<NodeOut>) {
        let Some((index, page, purpose)) = self.take_back(name, |purpose| purpose != Purpose::Flush) else { return };
        self.complete(now, name.slot as usize);
        match purpose {
            Purpose::Read(request) => self.on_fetched(now, request, Ok(value), out),
            Purpose::Scrub => {
                self.vssds[index].replica.sound(page);
                self.scrubbed();
            }
            _ => self.on_loaded(now, index, page, Ok(value), out),
        }
        self.settle(now, index, out);
    }

    pub(super) fn on_write_done(&mut self, now: Time, name: DeviceJob, out: &mut Vec<NodeOut>) {
        let Some((index, page, _)) = self.take_back(name, |purpose| purpose == Purpose::Flush) else { return };
        self.counters.flushes += 1;
        self.complete(now, name.slot as usize);
        let vssd = &self.vssds[index];
        self.caches[vssd.cache].flushed(vssd.cache_slot, page);
        self.settle(now, index, out);
    }

    pub(super) fn on_write_refused(&mut self, now: Time, name: DeviceJob, out: &mut Vec<NodeOut>) {
        let Some((index, ..)) = self.take_back(name, |purpose| purpose == Purpose::Flush) else { return };
        self.counters.writes_refused += 1;
        self.work[name.slot as usize].given = None;
        self.vssds[index].refused(JobId(name.slot));
        self.run_short(now, self.vssds[index].unit, out);
        self.settle(now, index, out);
    }

    /// The vSSD accepts no new writes; those that wait for room are rejected.
    pub(super) fn on_worn_out(&mut self, now: Time, vssd: VssdId, out: &mut Vec<NodeOut>) {
        let Some(&index) = self.by_name.get(&vssd) else { return };
        self.vssds[index].is_worn_out = true;
        let is_turned_away = |write: &Waiting| write.vssd == index && matches!(write.what, WaitingFor::Client(_));
        for write in self.caches[self.vssds[index].cache].withdraw(is_turned_away) {
            if let WaitingFor::Client(request) = write.what {
                self.answer(now, request, Err(Refusal::WornOut), out);
            }
        }
        self.settle(now, index, out);
    }

    pub(super) fn wake_vssd(&mut self, now: Time, index: usize, out: &mut Vec<NodeOut>) {
        self.vssds[index].on_wakeup(now);
        self.vssds[index].replica.on_wakeup(now, &mut self.replica_out);
        self.carry_out(now, index, Span::ZERO, out);
        self.settle(now, index, out);
    }

    /// Does what a replica has decided. `network` is what the write at hand has spent and will
    /// spend in networks.
    pub(super) fn carry_out(&mut self, now: Time, index: usize, network: Span, out: &mut Vec<NodeOut>) {
        while !self.replica_out.is_empty() {
            let mut outputs = std::mem::take(&mut self.replica_out);
            for output in outputs.drain(..) {
                self.carry_out_one(now, index, network, output, out);
            }
            // What came up meanwhile (a page loaded from the cache) is next; the emptied vector is
            // kept for its memory.
            std::mem::swap(&mut outputs, &mut self.replica_out);
            self.replica_out.append(&mut outputs);
        }
    }

    /// Lets everything move that can: writes into the cache, flushes and reads to the device, and
    /// sets the alarm.
    pub(super) fn settle(&mut self, now: Time, index: usize, out: &mut Vec<NodeOut>) {
        let cache = self.vssds[index].cache;
        loop {
            let vssds = &self.vssds;
            if let Some(write) = self.caches[cache].next_admitted(|write| (vssds[write.vssd].cache_slot, write.page)) {
                self.admit(now, write, out);
            } else if let Some(flush) = self.caches[cache].next_flush() {
                let owner = self.owner_of(cache, flush.slot);
                self.enqueue(now, owner, Purpose::Flush, flush.page, (now, flush.latency));
                if owner != index {
                    self.dispatch(now, owner, out);
                }
            } else {
                break;
            }
        }
        self.dispatch(now, index, out);
    }

    /// Gives the device what it can take, and sets the vSSD's alarm.
    pub(super) fn dispatch(&mut self, now: Time, index: usize, out: &mut Vec<NodeOut>) {
        while !self.units[self.vssds[index].unit].is_occupied()
            && let Some(JobId(slot)) = self.vssds[index].next_job(now)
        {
            self.give_to_device(now, slot, out);
        }
        if let Some(time) = self.vssds[index].next_wakeup(now) {
            self.timers.ring_by(Alarm::Vssd(index as u32), time);
        }
    }

    fn carry_out_one(&mut self, now: Time, index: usize, network: Span, output: ReplicaOut, out: &mut Vec<NodeOut>) {
        match output {
            ReplicaOut::Send { to, vssd, message } => self.send(to, vssd, 0, Body::Replica(message), out),
            ReplicaOut::Apply { page, value, .. } => {
                let vssd = &self.vssds[index];
                self.caches[vssd.cache].put(vssd.cache_slot, page, value, network);
                for (request, is_held) in self.undequeued.get_mut(&(index, page)).into_iter().flatten() {
                    *is_held |= self.requests[*request].value == Some(value);
                }
            }
            ReplicaOut::WriteDone { ticket } => {
                self.mark_request(ticket.0 as usize, Stage::Replicated, out);
                self.on_replicated(now, ticket.0 as usize, out);
            }
            ReplicaOut::ReadReady { ticket, value } => {
                self.counters.reads_awaited += 1;
                self.mark_request(ticket.0 as usize, Stage::Valid, out);
                self.answer(now, ticket.0 as usize, Ok(value), out);
            }
            ReplicaOut::Lost { ticket } => self.answer(now, ticket.0 as usize, Err(Refusal::Lost), out),
            ReplicaOut::Load { page } => self.load(now, index, page),
            ReplicaOut::Abandoned { ticket, started: false } => {
                self.answer(now, ticket.0 as usize, Err(Refusal::Stale), out)
            }
            ReplicaOut::Abandoned { ticket, started: true } => {
                self.forget(ticket.0 as usize);
                self.counters.unanswered += 1;
            }
            ReplicaOut::Recalled { ticket, is_done } => self.on_recalled(now, ticket.0 as usize, is_done, out),
            ReplicaOut::UpToDate { epoch } => self.report_up_to_date(self.vssds[index].config.id, epoch, out),
        }
    }

    pub(super) fn report_up_to_date(&self, vssd: VssdId, epoch: u32, out: &mut Vec<NodeOut>) {
        if let Some(control) = self.config.control {
            let body = Body::Control(ControlMessage::UpToDate { epoch });
            self.send(control.node, vssd, 0, body, out);
        }
    }

    fn load(&mut self, now: Time, index: usize, page: Page) {
        match self.held(index, page) {
            Some(value) => self.loaded(now, index, page, Ok(value)),
            None => self.enqueue(now, index, Purpose::Load, page, (now, Span::ZERO)),
        }
    }

    pub(super) fn on_loaded(&mut self, now: Time, index: usize, page: Page, read: Read, out: &mut Vec<NodeOut>) {
        // A write may have come while the device was reading.
        let read = self.held(index, page).map_or(read, Ok);
        self.loaded(now, index, page, read);
        self.carry_out(now, index, Span::ZERO, out);
    }

    /// The value of a page that is in memory.
    pub(super) fn held(&self, index: usize, page: Page) -> Option<Value> {
        let vssd = &self.vssds[index];
        self.caches[vssd.cache].read(vssd.cache_slot, page)
    }

    /// Returns the vSSD of a request, if it is here and contains the page. Otherwise rejects the
    /// request.
    fn accept(&mut self, now: Time, packet: &Packet, page: Page, out: &mut Vec<NodeOut>) -> Option<usize> {
        let index = self.by_name.get(&packet.vssd).copied();
        let refusal = match index {
            _ if !self.may_answer(now) => {
                self.counters.unanswered += 1;
                return None;
            }
            None => Refusal::UnknownVssd,
            Some(index) if page.0 >= self.vssds[index].config.pages => Refusal::OutOfRange,
            found => return found,
        };
        self.refuse(now, packet, refusal, out);
        None
    }

    fn open(
        &mut self,
        now: Time,
        index: usize,
        packet: &Packet,
        (tag, page, value, origin): (Tag, Page, Option<Value>, Option<Origin>),
    ) -> usize {
        let kind = if value.is_some() { JobKind::Write } else { JobKind::Read };
        self.note_request(now, index);
        let vssd = &mut self.vssds[index];
        vssd.returns.on_packet(kind, packet.latency_ns);
        let network = Span::ns(u64::from(packet.latency_ns)) + vssd.returns.predict(kind);
        let Packet { source, latency_ns, .. } = *packet;
        self.begun.extend(origin.map(|origin| origin.id));
        self.requests.insert(Request {
            source,
            tag,
            vssd: index,
            page,
            value,
            origin,
            arrived: now,
            latency_ns,
            network,
            is_replicated: false,
        })
    }

    /// A request wants the vSSD's device: it is not idle, and background collection makes way.
    fn note_request(&mut self, now: Time, index: usize) {
        let vssd = &mut self.vssds[index];
        vssd.idle.on_request(now);
        self.units[vssd.unit].collector.disturb();
    }

    /// A write enters the cache, or waits for room.
    fn enter(&mut self, now: Time, write: Waiting, network: Span, out: &mut Vec<NodeOut>) {
        let vssd = &self.vssds[write.vssd];
        if self.caches[vssd.cache].admits(vssd.cache_slot, write.page) {
            return self.admit(now, write, out);
        }
        self.counters.waits_for_room += 1;
        if let WaitingFor::Peer { from, message, .. } = write.what {
            self.messages_waiting.extend(needs_room(write.vssd, from, &message));
        }
        // Ordered as the scheduler orders: by arrival alone where it knows nothing of the network.
        let network = if self.config.scheduler.coordinated { network } else { Span::ZERO };
        self.caches[vssd.cache].wait(SchedulingKey::new(now, network, Span::ZERO), write);
    }

    /// There is room for a write.
    fn admit(&mut self, now: Time, write: Waiting, out: &mut Vec<NodeOut>) {
        match write.what {
            WaitingFor::Client(request) => self.coordinate(now, request, out),
            WaitingFor::Peer { from, message, network } => {
                if let Some(key) = needs_room(write.vssd, from, &message) {
                    self.messages_waiting.remove(&key);
                }
                self.hand_message(now, write.vssd, from, &message, network, out);
            }
        }
    }

    /// This replica coordinates a client's write (Hermes).
    fn coordinate(&mut self, now: Time, request: usize, out: &mut Vec<NodeOut>) {
        self.mark_request(request, Stage::Admitted, out);
        let Request { vssd: index, page, value, origin, network, .. } = self.requests[request];
        let value = value.expect("a request that waits for room is a write");
        if self.config.write_ack == WriteAck::Dequeued {
            self.undequeued.entry((index, page)).or_default().push((request, false));
        }
        let outputs = &mut self.replica_out;
        match self.vssds[index].replica.write(now, page, (value, origin), ticket(request), outputs) {
            Writing::Taken => self.carry_out(now, index, network, out),
            Writing::Refuse(refusal) => self.answer(now, request, Err(refusal), out),
        }
    }

    /// All replicas have a client's write. It may have to wait for the device.
    fn on_replicated(&mut self, now: Time, request: usize, out: &mut Vec<NodeOut>) {
        let Some(Request { vssd, page, is_replicated, .. }) = self.requests.get_mut(request) else { return };
        let waiting = self.undequeued.get(&(*vssd, *page));
        *is_replicated = waiting.is_some_and(|waiting| waiting.contains(&(request, true)));
        if !*is_replicated {
            self.answer(now, request, Ok(Value::default()), out);
        }
    }

    /// The device takes a page: the writes of it that the cache has need wait for it no longer.
    fn on_dequeued(&mut self, now: Time, index: usize, page: Page, out: &mut Vec<NodeOut>) {
        let Some(waiting) = self.undequeued.get_mut(&(index, page)) else { return };
        let taken: Vec<usize> = waiting.iter().filter(|(_, is_held)| *is_held).map(|(request, _)| *request).collect();
        waiting.retain(|(_, is_held)| !is_held);
        if waiting.is_empty() {
            self.undequeued.remove(&(index, page));
        }
        for request in taken {
            if self.requests[request].is_replicated {
                self.answer(now, request, Ok(Value::default()), out);
            }
        }
    }

    /// A request is no longer open.
    fn forget(&mut self, request: usize) -> Option<Request> {
        let forgotten = self.requests.try_remove(request)?;
        if let Some(origin) = forgotten.origin {
            self.begun.remove(&origin.id);
        }
        let place = (forgotten.vssd, forgotten.page);
        if let Some(waiting) = self.undequeued.get_mut(&place) {
            waiting.retain(|(waiting, _)| *waiting != request);
            if waiting.is_empty() {
                self.undequeued.remove(&place);
            }
        }
        Some(forgotten)
    }

    fn hand_message(
        &mut self,
        now: Time,
        index: usize,
        from: NodeId,
        message: &ReplicaMessage,
        network: Span,
        out: &mut Vec<NodeOut>,
    ) {
        self.vssds[index].replica.message(now, from, message, &mut self.replica_out);
        self.carry_out(now, index, network, out);
    }

    /// A read whose page is valid: from DRAM if the page is held there, else from the device.
    fn serve(&mut self, now: Time, request: usize, out: &mut Vec<NodeOut>) {
        let Request { vssd: index, page, arrived, network, .. } = self.requests[request];
        match self.held(index, page) {
            Some(Value::ROTTEN) => self.meet_rot(now, index, page, None, Some(ticket(request)), out),
            Some(value) => {
                self.counters.reads_cached += 1;
                self.mark_request(request, Stage::Cached, out);
                self.answer(now, request, Ok(value), out);
            }
            None => self.enqueue(now, index, Purpose::Read(request), page, (arrived, network)),
        }
    }

    /// The device has read a page for a client. A write may have come in between: then the page may
    /// be invalid, and what the device has read (perhaps the new value, which other replicas do not
    /// have yet) must not go out.
    pub(super) fn on_fetched(&mut self, now: Time, request: usize, read: Read, out: &mut Vec<NodeOut>) {
        self.mark_request(request, Stage::Fetched, out);
        let Request { vssd: index, page, .. } = self.requests[request];
        match self.vssds[index].replica.read(page, ticket(request)) {
            Reading::Serve => match self.held(index, page).map_or(read, Ok) {
                Ok(Value::ROTTEN) => self.meet_rot(now, index, page, None, Some(ticket(request)), out),
                Err(named) => self.meet_rot(now, index, page, named, Some(ticket(request)), out),
                Ok(value) => {
                    self.counters.reads_device += 1;
                    self.answer(now, request, Ok(value), out);
                }
            },
            Reading::Wait => {}
            Reading::Refuse(refusal) => self.answer(now, request, Err(refusal), out),
        }
    }

    /// Answers a request and forgets it.
    fn answer(&mut self, now: Time, request: usize, outcome: Result<Value, Refusal>, out: &mut Vec<NodeOut>) {
        let Some(asked) = self.forget(request) else { return };
        if !self.may_answer(now) {
            self.counters.unanswered += 1;
            return;
        }
        let Request { source, tag, vssd, value, latency_ns, network, .. } = asked;
        let labelled = u32::try_from(network.as_ps() / 1_000).unwrap_or(u32::MAX);
        let latency_ns = if self.config.adds_labels { labelled } else { latency_ns };
        self.counters.refusals += u64::from(outcome.is_err());
        self.counters.writes += u64::from(outcome.is_ok() && value.is_some());
        self.send(source, self.vssds[vssd].config.id, latency_ns, reply(tag, value.is_some(), outcome), out);
    }

    /// Refuses a request that was never opened.
    fn refuse(&mut self, now: Time, packet: &Packet, refusal: Refusal, out: &mut Vec<NodeOut>) {
        debug_assert!(self.may_answer(now), "a server without a lease says nothing");
        let body = match packet.body {
            Body::Read { tag, .. } => reply(tag, false, Err(refusal)),
            Body::Write { tag, .. } => reply(tag, true, Err(refusal)),
            _ => return,
        };
        self.counters.refusals += 1;
        self.send(packet.source, packet.vssd, packet.latency_ns, body, out);
    }

    /// Work joins the queue of its vSSD; `since` is when it came and what it spends in networks.
    pub(super) fn enqueue(&mut self, now: Time, index: usize, purpose: Purpose, page: Page, since: (Time, Span)) {
        let entry = self.work.vacant_entry();
        let kind = if purpose == Purpose::Flush { JobKind::Write } else { JobKind::Read };
        let key = SchedulingKey::new(since.0, since.1, Span::ZERO);
        let job = Job { id: JobId(entry.key() as u32), kind, page, key, arrived: since.0 };
        entry.insert(Work { vssd: index, purpose, job, given: None });
        self.vssds[index].enqueue(now, job);
    }

    fn give_to_device(&mut self, now: Time, slot: u32, out: &mut Vec<NodeOut>) {
        let work = &mut self.work[slot as usize];
        work.given = Some(now);
        let Work { vssd: index, purpose, job: Job { page, .. }, .. } = *work;
        let job = DeviceJob { slot, life: self.life };
        let vssd = &self.vssds[index];
        let name = vssd.config.id;
        match purpose {
            Purpose::Flush => {
                let value = self.caches[vssd.cache].begin_flush(vssd.cache_slot, page);
                out.push(NodeOut::Write { job, vssd: name, page, value });
                self.on_dequeued(now, index, page, out);
            }
            Purpose::Read(request) => {
                self.mark_request(request, Stage::Dispatched, out);
                let Request { source, tag, .. } = self.requests[request];
                out.push(NodeOut::Read { job, vssd: name, page, request: Some((source, tag)) });
            }
            Purpose::Load | Purpose::Scrub => out.push(NodeOut::Read { job, vssd: name, page, request: None }),
        }
    }

    /// What the device answers, if that is out there in this life and of the right kind: its vSSD,
    /// page and purpose.
    pub(super) fn take_back(
        &mut self,
        name: DeviceJob,
        fits: impl Fn(Purpose) -> bool,
    ) -> Option<(usize, Page, Purpose)> {
        let work = self.work.get_mut(name.slot as usize).filter(|_| name.life == self.life)?;
        work.given.filter(|_| fits(work.purpose))?;
        Some((work.vssd, work.job.page, work.purpose))
    }

    /// The device has done it: the scheduler hears of it and the slot is free.
    pub(super) fn complete(&mut self, now: Time, slot: usize) {
        let Work { vssd, job, given, .. } = self.work.remove(slot);
        let device_time = given.map_or(Span::ZERO, |given| now.saturating_since(given));
        self.vssds[vssd].completed(now, &job, device_time);
    }

    fn owner_of(&self, cache: usize, slot: u32) -> usize {
        match self.config.cache.scope {
            crate::cache::CacheScope::Server => slot as usize,
            crate::cache::CacheScope::Vssd => cache,
        }
    }

    fn mark_request(&self, request: usize, stage: Stage, out: &mut Vec<NodeOut>) {
        if let Some(request) = self.requests.get(request) {
            self.mark(request.source, request.tag, stage, out);
        }
    }

    fn mark(&self, source: NodeId, tag: Tag, stage: Stage, out: &mut Vec<NodeOut>) {
        if self.config.marks {
            out.push(NodeOut::Mark { source, tag, stage });
        }
    }
}

fn ticket(request: usize) -> Ticket {
    Ticket(request as u32)
}

fn reply(tag: Tag, is_write: bool, outcome: Result<Value, Refusal>) -> Body {
    if is_write { Body::WriteReply { tag, done: outcome.map(|_| ()) } } else { Body::ReadReply { tag, value: outcome } }
}

/// Names a message that is handed on only when the cache has room for its page.
fn needs_room(index: usize, from: NodeId, message: &ReplicaMessage) -> Option<MessageKey> {
    match *message {
        ReplicaMessage::Invalidate { page, timestamp, epoch, .. } => Some((index, from, true, page, timestamp, epoch)),
        ReplicaMessage::Fetched { page, timestamp, epoch, .. } => Some((index, from, false, page, timestamp, epoch)),
        _ => None,
    }
}
