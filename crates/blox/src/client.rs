//! The client: sends each request to a replica, retries where that is safe, and reports the result.
//!
//! Reads and writes are sent to the first replica of a volume (for a write it is Hermes's
//! coordinator); the switch may redirect a read. A read without an answer in time is sent to the
//! next replica, another rack's last. **A write without an answer in time is never sent again**:
//! its first copy may still be in flight, or a replica may replay it. A second copy would be a
//! second write of the same value, and after another client's write in between, the late one would
//! restore the replaced value. It ends as [`Indeterminate`](ClientOutcome::Indeterminate). A
//! *rejected* write has never begun (a replica that has begun one does not answer if it cannot end
//! it), so it may be sent to the next replica.
//!
//! With [`ClientConfig::resend`], servers know which writes they have seen
//! ([`NodeConfig::remember`](crate::NodeConfig::remember)), and an unanswered write is sent again
//! like a read: what a live client needs, whose packets are lost and whose servers are killed. Each
//! copy names the oldest write that is open: servers forget what is older. A copy that is not
//! answered either has twice as long as the one before, up to 8 times as long as the first.
//!
//! Who asked may go before the answer comes, and have another client do it ([`ClientIn::Leave`]).
//! A copy that is sent later could overwrite what was written there since.
//!
//! Calling order: [`ClientIn::Issue`] with a tag that no open request has, and with `resend` a
//! higher one each time; exactly one [`ClientOut::Done`] follows for each.

mod volume;

use crate::id::earlier;
use crate::packet::{Body, ControlMessage, Packet, Refusal, Session};
use crate::timeouts::Timeouts;
use crate::{Page, Tag, Value, VssdId};
use base::{NodeId, Operation, Program, Span, Time};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::collections::BTreeMap;
use std::num::NonZero;
use volume::Volume;

/// How often the time for an answer is doubled, where requests are sent again until they are
/// answered: copies that come faster than that take the time of the servers that are late.
const DOUBLINGS: u32 = 3;

/// A client with [`ClientConfig::resend`] that ran so late has been stopped. It waits as long again
/// before it sends anything a second time: who asked may be gone, and say so now.
const SLEPT: Span = Span::ms(500);

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client itself.
    pub node: NodeId,
    /// Nodes below this are in the client's rack.
    pub rack_nodes: u32,
    /// The replicas of each volume in the order of their rank; a volume is named by its place here,
    /// and on the wire by its first vSSD.
    pub volumes: Vec<Vec<(NodeId, VssdId)>>,
    /// Time without an answer after which a read is sent to the next replica.
    pub read_timeout: Span,
    /// After so long without an answer nobody knows whether a write was done.
    pub write_timeout: Span,
    /// Maximum number of times that a request is sent; at least 1.
    pub attempts_max: u32,
    /// Consecutive timeouts in the rack, without a packet from it in between, after which its
    /// switch counts as dead (3.7: "On switch failure, RackBlox relies on replicas in another
    /// rack"): requests then start in the other rack.
    pub silence: u32,
    /// While the rack is silent, one read in so long begins there all the same, to notice that it
    /// is back.
    pub probe_period: Span,
    /// The baseline's rate limit.
    pub limit: Option<LimitConfig>,
    /// Whether LAT of an answer is added to the latency of its request
    /// ([`Emulation::adds_labels`](crate::Emulation::adds_labels)).
    pub adds_labels: bool,
    /// Time since its issue during which a request without an answer is sent again, a write too.
    /// Servers have to [remember](crate::NodeConfig::remember) writes for longer. `None`: a write
    /// is sent once, and a read [`attempts_max`](Self::attempts_max) times, as in the paper.
    pub resend: Option<Span>,
    /// With `resend`: tells the client from what it was before it was started anew, and had
    /// forgotten what it had open.
    pub life: NonZero<u32>,
    /// The control plane, and the interval at which the client asks it for the members of its
    /// groups; `None`: it hears of changes alone.
    pub hello: Option<(NodeId, Span)>,
}

/// A rate limit that a controller sets (VDC, 4.1). There is no limit before its first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    /// Recipient of demand reports.
    pub controller: NodeId,
    /// Period of demand reports.
    pub period: Span,
    /// Cost units that a volume may use at once after a pause.
    pub burst: u32,
    /// What a write costs; a read costs one.
    pub write_cost: u32,
}

/// Reason why a client cannot be as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A volume is nowhere.
    #[error("volume {volume} has no replicas")]
    NoReplicas {
        /// Its place in the configuration.
        volume: usize,
    },
    /// Orders of the control plane would be ambiguous.
    #[error("volumes {first} and {second} have the same first vSSD, {}", vssd.0)]
    SameName {
        /// The one.
        first: usize,
        /// The other.
        second: usize,
        /// Their name.
        vssd: VssdId,
    },
    /// A request would never be sent, or time out at once, or demand reports would be continuous.
    #[error("{field} is 0: it has to be more")]
    Zero {
        /// The field.
        field: &'static str,
    },
}

/// One sending of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deadline {
    tag: Tag,
    /// Which of its sendings.
    sending: u32,
}

/// Inputs of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientIn {
    /// A request of the workload.
    Issue {
        /// The caller's number; also on the wire.
        tag: Tag,
        /// A read-modify-write is a read and, when it is answered, a write (YCSB F); not atomic.
        operation: Operation,
        /// The volume: a place in [`ClientConfig::volumes`].
        vssd_group: u32,
        /// The page.
        page: Page,
        /// The value to write; ignored by a read.
        value: Value,
    },
    /// A packet has arrived.
    Packet(Packet),
    /// Nobody waits for this request any more: it ends, and is not sent again. None that is open
    /// has the tag: nothing happens.
    Leave(Tag),
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOut {
    /// Sends a packet.
    Send(Packet),
    /// A request has ended.
    Done {
        /// The tag.
        tag: Tag,
        /// The result.
        outcome: ClientOutcome,
        /// To be added to the time that has passed since it was issued (RackBlox, 3.7).
        label: Span,
    },
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientOutcome {
    /// A read was served.
    Read(Value),
    /// A write was done.
    Written,
    /// A write was not answered in time: it may have taken effect, may yet, or never will.
    Indeterminate,
    /// The last contacted replica rejected it, and it has had no effect.
    Failed(Refusal),
    /// A read was not answered by anyone.
    Unanswered,
}

/// What a client has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Requests sent, each attempt.
    pub sent: u64,
    /// Attempts after the first.
    pub retried: u64,
    /// Attempts that were not answered in time.
    pub timeouts: u64,
    /// Requests that waited for the rate limit.
    pub limited: u64,
    /// Requests that ended because nobody waited for them any more.
    pub left: u64,
    /// Answers to what had ended, and packets that are not for a client; without effect.
    pub ignored: u64,
}

/// The program of a client.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    volumes: Vec<Volume>,
    /// The volume an order of the control plane is about.
    names: BTreeMap<VssdId, usize>,
    requests: IndexMap<Tag, Request, FxBuildHasher>,
    read_deadlines: Timeouts<Deadline>,
    write_deadlines: Timeouts<Deadline>,
    /// Requests that wait for the rate limit, in all volumes.
    waiting: usize,
    /// The end of a period with demand.
    report_at: Option<Time>,
    /// Timeouts in the rack since its last packet.
    strikes: u32,
    next_probe: Time,
    /// The number of the next question for members, and its time.
    next_hello: (u64, Time),
    /// Time at which it last ran, from which waiting times count.
    seen: Time,
    /// Before this nothing is sent again; `None`: it has not slept since the last deadline.
    rests_until: Option<Time>,
    counters: ClientCounters,
}

/// An open request.
#[derive(Clone, Copy, Debug)]
struct Request {
    operation: Operation,
    volume: u32,
    page: Page,
    value: Value,
    /// Whether it writes now: a read-modify-write does in its second half.
    is_writing: bool,
    /// How often it has been sent, in this half.
    attempts: u32,
    /// How many of the last sendings had no answer in time.
    unanswered: u32,
    /// Where it begins, a place among the volume's targets.
    begins_at: u32,
    /// When it was issued.
    issued: Time,
    /// Why the last asked server does not serve it.
    refused: Option<Refusal>,
    /// How many have refused this half since it began or was last due.
    refusals: u32,
    /// A sending of its write had no answer in time: that one may have begun.
    may_have_begun: bool,
    /// The epoch of its volume when it was sent first.
    epoch: u32,
    /// Whom it was sent to last.
    asked: (NodeId, VssdId),
    /// Numbers the sendings of both halves: a deadline of an earlier one has no say.
    sending: u32,
    /// Network time of the answers so far that has not passed.
    label: Span,
}

impl Client {
    /// A client without open requests.
    pub fn new(config: ClientConfig) -> Result<Client, ClientError> {
        check(&config)?;
        let names = names(&config)?;
        let volumes = config.volumes.iter().map(|replicas| Volume::new(replicas, &config)).collect();
        let doublings = config.resend.map_or(0, |_| DOUBLINGS);
        Ok(Client {
            volumes,
            names,
            requests: IndexMap::default(),
            read_deadlines: Timeouts::new(config.read_timeout, doublings),
            write_deadlines: Timeouts::new(config.write_timeout, doublings),
            waiting: 0,
            report_at: None,
            strikes: 0,
            next_probe: Time::ZERO,
            next_hello: (0, Time::ZERO),
            seen: Time::ZERO,
            rests_until: None,
            counters: ClientCounters::default(),
            config,
        })
    }

    /// What it has done so far.
    pub fn counters(&self) -> &ClientCounters {
        &self.counters
    }

    /// Requests that have not ended.
    pub fn under_way(&self) -> usize {
        self.requests.len()
    }

    fn issue(&mut self, now: Time, tag: Tag, mut request: Request, out: &mut Vec<ClientOut>) {
        request.issued = now;
        let Some(volume) = self.volumes.get_mut(request.volume as usize) else {
            return out.push(ClientOut::Done {
                tag,
                outcome: ClientOutcome::Failed(Refusal::UnknownVssd),
                label: Span::ZERO,
            });
        };
        assert!(!self.requests.contains_key(&tag), "a tag names one request at a time, and {tag:?} is under way");
        self.requests.insert(tag, request);
        volume.ask(request.is_write());
        if self.config.resend.is_some() && request.is_write() {
            volume.begin(tag);
        }
        if let Some(limit) = self.config.limit {
            self.report_at = self.report_at.or_else(|| end_of_period(now, limit.period));
        }
        if volume.may_go(now, request.is_write()) {
            self.send(now, tag, out);
        } else {
            volume.waiting.push_back(tag);
            self.waiting += 1;
            self.counters.limited += 1;
        }
    }

    /// Sends a request, for the first time or again, to the replica whose turn it is.
    fn send(&mut self, now: Time, tag: Tag, out: &mut Vec<ClientOut>) {
        let begin = self.begin(now, tag);
        let Some(request) = self.requests.get_mut(&tag) else { return };
        if request.attempts == 0 {
            request.begins_at = begin;
        }
        let volume = &self.volumes[request.volume as usize];
        let turn = (request.begins_at + request.attempts) as usize;
        if request.attempts == 0 {
            request.epoch = volume.epoch();
        }
        request.asked = if request.is_writing && request.attempts > 0 && self.config.resend.is_some() {
            volume.target_of_copy((request.asked, request.refused.is_none()), request.epoch, turn)
        } else {
            volume.targets[turn % volume.targets.len()]
        };
        request.refused = None;
        request.attempts += 1;
        request.sending += 1;
        let deadline = Deadline { tag, sending: request.sending };
        let deadlines = if request.is_writing { &mut self.write_deadlines } else { &mut self.read_deadlines };
        deadlines.push(now, request.unanswered, deadline);
        self.counters.sent += 1;
        self.counters.retried += u64::from(request.attempts > 1);
        let (oldest, life) = (volume.oldest().unwrap_or(tag), self.config.life);
        let Request { epoch, attempts, .. } = *request;
        let session = self.config.resend.map(|_| Session { life, oldest, epoch, again: attempts > 1 });
        out.push(ClientOut::Send(request.packet(self.config.node, tag, session)));
    }

    /// Where the attempts of a request begin: in the rack, unless that is silent. Only reads probe
    /// it: a write would be lost to the probe.
    fn begin(&mut self, now: Time, tag: Tag) -> u32 {
        let Some(request) = self.requests.get(&tag).filter(|request| request.attempts == 0) else { return 0 };
        if self.strikes < self.config.silence {
            return 0;
        }
        if !request.is_writing && now >= self.next_probe {
            self.next_probe = now + self.config.probe_period;
            return 0;
        }
        self.volumes[request.volume as usize].first_outside
    }

    fn on_packet(&mut self, now: Time, packet: Packet, out: &mut Vec<ClientOut>) {
        if packet.source.0 < self.config.rack_nodes {
            self.strikes = 0;
        }
        self.label(&packet);
        match packet.body {
            Body::ReadReply { tag, value } => self.on_read_reply(now, tag, value, out),
            Body::WriteReply { tag, done } => self.on_write_reply(now, packet.vssd, tag, done, out),
            Body::Control(ControlMessage::Members { epoch, replicas, stale }) => {
                let members = replicas.into_iter().flatten();
                self.on_members(packet.vssd, epoch, members, stale);
            }
            Body::Control(ControlMessage::Rate { per_second }) => self.on_rate(now, packet.vssd, per_second, out),
            _ => self.counters.ignored += 1,
        }
    }

    /// Adds the LAT of an answer to its request, where that is not time that has passed.
    fn label(&mut self, packet: &Packet) {
        let (tag, is_write) = match packet.body {
            Body::ReadReply { tag, .. } => (tag, false),
            Body::WriteReply { tag, .. } => (tag, true),
            _ => return,
        };
        let request = self.requests.get_mut(&tag).filter(|request| request.is_writing == is_write);
        if let Some(request) = request.filter(|_| self.config.adds_labels) {
            request.label += Span::ns(u64::from(packet.latency_ns));
        }
    }

    /// An answer to an earlier attempt is valid too: its value was read while the request was open.
    fn on_read_reply(&mut self, now: Time, tag: Tag, value: Result<Value, Refusal>, out: &mut Vec<ClientOut>) {
        match (self.requests.get_mut(&tag), value) {
            (Some(request), Ok(value)) if !request.is_writing => match request.operation {
                Operation::ReadModifyWrite => {
                    (request.is_writing, request.attempts) = (true, 0);
                    (request.unanswered, request.refusals) = (0, 0);
                    self.send(now, tag, out);
                    self.trim_deadlines();
                }
                _ => self.end(tag, ClientOutcome::Read(value), out),
            },
            (Some(request), Err(refusal)) if !request.is_writing => self.on_refusal(now, tag, refusal, out),
            _ => self.counters.ignored += 1,
        }
    }

    /// A rejection counts only from the last contacted replica: after an older one the write must
    /// not be sent a second time.
    fn on_write_reply(
        &mut self,
        now: Time,
        from: VssdId,
        tag: Tag,
        done: Result<(), Refusal>,
        out: &mut Vec<ClientOut>,
    ) {
        let request = self.requests.get(&tag).filter(|request| request.is_writing);
        match (request, done) {
            (Some(_), Ok(())) => self.end(tag, ClientOutcome::Written, out),
            (Some(request), Err(refusal)) if request.asked.1 == from => self.on_refusal(now, tag, refusal, out),
            _ => self.counters.ignored += 1,
        }
    }

    /// The next replica may serve what this one does not, save a page beyond the volume, or one for
    /// whose copies this one has asked all others. With `resend` it is asked at once while there is
    /// one that has not refused, and then at the deadline: else servers would hand it to and fro.
    fn on_refusal(&mut self, now: Time, tag: Tag, refusal: Refusal, out: &mut Vec<ClientOut>) {
        let Some(request) = self.requests.get_mut(&tag) else { return };
        (request.refused, request.unanswered) = (Some(refusal), 0);
        request.refusals += 1;
        let have_all = request.refusals as usize >= self.volumes[request.volume as usize].targets.len();
        let waits = matches!(refusal, Refusal::Stale | Refusal::Full) || have_all;
        let is_final = matches!(refusal, Refusal::OutOfRange | Refusal::Lost);
        let is_live = self.config.resend.is_some();
        if is_final || !is_live && self.has_tried_enough(now, tag) {
            self.end(tag, ClientOutcome::Failed(refusal), out);
        } else if !(is_live && waits) {
            self.send(now, tag, out);
        }
    }

    /// No replica gets a write twice: its first rejection, if duplicated, would look like the
    /// second.
    fn has_tried_enough(&self, now: Time, tag: Tag) -> bool {
        let Some(request) = self.requests.get(&tag) else { return true };
        if let Some(give_up) = self.config.resend {
            return now.saturating_since(request.issued) >= give_up;
        }
        let replicas = self.volumes[request.volume as usize].targets.len();
        request.attempts >= self.config.attempts_max || request.is_writing && request.attempts as usize >= replicas
    }

    fn end(&mut self, tag: Tag, outcome: ClientOutcome, out: &mut Vec<ClientOut>) {
        let ended = self.requests.swap_remove(&tag);
        ended.iter().for_each(|request| self.volumes[request.volume as usize].end(tag));
        let label = ended.map_or(Span::ZERO, |request| request.label);
        self.trim_deadlines();
        out.push(ClientOut::Done { tag, outcome, label });
    }

    /// A server may have begun a write, and may yet get a copy that is under way.
    fn leave(&mut self, tag: Tag, out: &mut Vec<ClientOut>) {
        if let Some(request) = self.requests.get(&tag) {
            let outcome = request.without_answer();
            self.counters.left += 1;
            self.end(tag, outcome, out);
        }
    }

    fn on_members(
        &mut self,
        name: VssdId,
        epoch: u32,
        members: impl Iterator<Item = (NodeId, VssdId)> + Clone,
        stale: Option<(NodeId, VssdId)>,
    ) {
        let volume = self.names.get(&name).map(|index| &mut self.volumes[*index]);
        let is_taken = volume.is_some_and(|volume| volume.members(epoch, members, stale, self.config.rack_nodes));
        self.counters.ignored += u64::from(!is_taken);
    }

    fn on_rate(&mut self, now: Time, name: VssdId, per_second: u32, out: &mut Vec<ClientOut>) {
        match (self.names.get(&name), self.config.limit) {
            (Some(index), Some(limit)) => {
                self.volumes[*index].set_rate(now, per_second, &limit);
                self.release(now, *index, out);
            }
            _ => self.counters.ignored += 1,
        }
    }

    /// Sends the requests that the rate limit of a volume allows.
    fn release(&mut self, now: Time, index: usize, out: &mut Vec<ClientOut>) {
        while let Some(tag) = self.volumes[index].waiting.front().copied() {
            let is_write = self.requests.get(&tag).is_some_and(Request::is_write);
            if !self.volumes[index].may_leave(now, is_write) {
                return;
            }
            self.volumes[index].waiting.pop_front();
            self.waiting -= 1;
            self.send(now, tag, out);
        }
    }

    fn release_all(&mut self, now: Time, out: &mut Vec<ClientOut>) {
        if self.waiting > 0 {
            (0..self.volumes.len()).for_each(|index| self.release(now, index, out));
        }
    }

    /// Reports demand to the controller, volume by volume.
    fn report(&mut self, now: Time, out: &mut Vec<ClientOut>) {
        let (Some(limit), true) = (self.config.limit, self.report_at.is_some_and(|at| at <= now)) else { return };
        self.report_at = None;
        for volume in &mut self.volumes {
            if let Some((requests, writes)) = volume.take_demand() {
                let body = Body::Control(ControlMessage::Demand { requests, writes });
                let (source, target) = (self.config.node, limit.controller);
                out.push(ClientOut::Send(Packet { vssd: volume.name, latency_ns: 0, source, target, body }));
            }
        }
    }

    /// Asks the control plane for the members of its groups.
    fn say_hello(&mut self, now: Time, out: &mut Vec<ClientOut>) {
        let Some((target, period)) = self.config.hello else { return };
        let (beat, at) = self.next_hello;
        if at <= now {
            self.next_hello = (beat + 1, now + period);
            let body = Body::Heartbeat { beat };
            let source = self.config.node;
            out.push(ClientOut::Send(Packet { vssd: VssdId::default(), latency_ns: 0, source, target, body }));
        }
    }

    /// Whether it rests, having slept since `seen`.
    fn rests(&mut self, now: Time, seen: Time) -> bool {
        let due = earlier(self.read_deadlines.next(), self.write_deadlines.next());
        let Some(due) = due.filter(|due| *due <= now && self.config.resend.is_some()) else { return false };
        let has_slept = now.saturating_since(due).min(now.saturating_since(seen)) >= SLEPT;
        if has_slept && self.rests_until.is_none() {
            self.rests_until = Some(now + SLEPT);
        }
        self.rests_until.is_some_and(|until| now < until)
    }

    fn on_timeouts(&mut self, now: Time, seen: Time, out: &mut Vec<ClientOut>) {
        if self.rests(now, seen) {
            return;
        }
        self.rests_until = None;
        while let Some(Deadline { tag, sending }) = self.read_deadlines.pop_due(now) {
            self.on_deadline(now, tag, sending, out);
        }
        while let Some(Deadline { tag, sending }) = self.write_deadlines.pop_due(now) {
            self.on_deadline(now, tag, sending, out);
        }
    }

    fn on_deadline(&mut self, now: Time, tag: Tag, sending: u32, out: &mut Vec<ClientOut>) {
        if !self.is_current(tag, sending) {
            return;
        }
        self.strike(tag);
        let Some(request) = self.requests.get_mut(&tag) else { return };
        request.refusals = 0;
        let outcome = match request.refused {
            Some(refusal) if !request.may_have_begun => ClientOutcome::Failed(refusal),
            _ => request.without_answer(),
        };
        let may_go_again = !request.is_writing || self.config.resend.is_some();
        if may_go_again && !self.has_tried_enough(now, tag) {
            self.send(now, tag, out);
        } else {
            self.end(tag, outcome, out);
        }
    }

    fn is_current(&self, tag: Tag, sending: u32) -> bool {
        self.requests.get(&tag).is_some_and(|request| request.sending == sending)
    }

    /// Counts a sending that has no answer in time. One that was refused has an answer.
    fn strike(&mut self, tag: Tag) {
        let Some(request) = self.requests.get_mut(&tag).filter(|request| request.refused.is_none()) else { return };
        request.unanswered += 1;
        request.may_have_begun |= request.is_writing;
        self.counters.timeouts += 1;
        let in_rack = request.asked.0.0 < self.config.rack_nodes;
        self.strikes = self.strikes.saturating_add(u32::from(in_rack));
    }

    /// Forgets deadlines of what has ended, so that they wake nobody.
    fn trim_deadlines(&mut self) {
        let Client { requests, read_deadlines, write_deadlines, .. } = self;
        let is_current = |deadline: &Deadline| {
            requests.get(&deadline.tag).is_some_and(|request| request.sending == deadline.sending)
        };
        read_deadlines.trim(is_current);
        write_deadlines.trim(is_current);
    }

    /// Returns the time at which the rate limit lets the first of the waiting go.
    fn release_at(&self, now: Time) -> Option<Time> {
        if self.waiting == 0 {
            return None;
        }
        let write = |tag: &Tag| self.requests.get(tag).is_some_and(Request::is_write);
        self.volumes.iter().filter_map(|volume| volume.allowed_at(now, write)).min()
    }
}

impl Request {
    fn new(operation: Operation, volume: u32, page: Page, value: Value) -> Request {
        Request {
            operation,
            volume,
            page,
            value,
            is_writing: operation == Operation::Write,
            attempts: 0,
            begins_at: 0,
            unanswered: 0,
            issued: Time::ZERO,
            refused: None,
            refusals: 0,
            may_have_begun: false,
            epoch: 0,
            asked: (NodeId(0), VssdId(0)),
            sending: 0,
            label: Span::ZERO,
        }
    }

    /// Returns whether it counts and costs as a write.
    fn is_write(&self) -> bool {
        self.operation != Operation::Read
    }

    /// How it ends when nobody has answered.
    fn without_answer(&self) -> ClientOutcome {
        if self.is_writing { ClientOutcome::Indeterminate } else { ClientOutcome::Unanswered }
    }

    fn packet(&self, source: NodeId, tag: Tag, session: Option<Session>) -> Packet {
        let (target, vssd) = self.asked;
        let body = if self.is_writing {
            Body::Write { tag, page: self.page, value: self.value, session }
        } else {
            Body::Read { tag, page: self.page }
        };
        Packet { vssd, latency_ns: 0, source, target, body }
    }
}

impl Program for Client {
    type In = ClientIn;
    type Out = ClientOut;

    fn on(&mut self, now: Time, input: ClientIn, out: &mut Vec<ClientOut>) {
        match input {
            ClientIn::Issue { tag, operation, vssd_group, page, value } => {
                self.issue(now, tag, Request::new(operation, vssd_group, page, value), out);
            }
            ClientIn::Packet(packet) => self.on_packet(now, packet, out),
            ClientIn::Leave(tag) => self.leave(tag, out),
        }
        self.on_wakeup(now, out);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let deadline = earlier(self.read_deadlines.next(), self.write_deadlines.next());
        let deadline = deadline.map(|due| self.rests_until.map_or(due, |until| due.max(until)));
        let hello = self.config.hello.map(|_| self.next_hello.1);
        earlier(earlier(deadline, hello), earlier(self.report_at, self.release_at(self.seen)))
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ClientOut>) {
        let seen = std::mem::replace(&mut self.seen, now);
        self.on_timeouts(now, seen, out);
        self.release_all(now, out);
        self.report(now, out);
        self.say_hello(now, out);
    }
}

/// Periods begin at multiples of their length, for all clients alike. `None` past the end of time.
fn end_of_period(now: Time, period: Span) -> Option<Time> {
    let begun = now.saturating_since(Time::ZERO) % period;
    (now - begun).checked_add(period)
}

fn names(config: &ClientConfig) -> Result<BTreeMap<VssdId, usize>, ClientError> {
    let mut names = BTreeMap::new();
    for (volume, replicas) in config.volumes.iter().enumerate() {
        let (_, vssd) = *replicas.first().ok_or(ClientError::NoReplicas { volume })?;
        if let Some(first) = names.insert(vssd, volume) {
            return Err(ClientError::SameName { first, second: volume, vssd });
        }
    }
    Ok(names)
}

fn check(config: &ClientConfig) -> Result<(), ClientError> {
    let limit = config.limit;
    let fields = [
        ("read_timeout", config.read_timeout == Span::ZERO),
        ("write_timeout", config.write_timeout == Span::ZERO),
        ("attempts_max", config.attempts_max == 0),
        ("silence", config.silence == 0),
        ("probe_period", config.probe_period == Span::ZERO),
        ("resend", config.resend == Some(Span::ZERO)),
        ("hello", config.hello.is_some_and(|(_, period)| period == Span::ZERO)),
        ("limit.period", limit.is_some_and(|limit| limit.period == Span::ZERO)),
        ("limit.burst", limit.is_some_and(|limit| limit.burst == 0)),
        ("limit.write_cost", limit.is_some_and(|limit| limit.write_cost == 0)),
    ];
    match fields.into_iter().find(|(_, is_zero)| *is_zero) {
        Some((field, _)) => Err(ClientError::Zero { field }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
