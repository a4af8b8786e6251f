//! Plays a script against a target.

use crate::attack::{Attack, Call, Damage, DataChange, Expectation, LINKS, Leeway, LinkId, Step, Verdict, Victim};
use crate::identify::{IDENTIFY_BYTES, IdentifyId};
use crate::pdu::{
    DIGEST_BYTES, Digests, Event, FatalStatus, Framing, Header, HostData, InitializeRequest, Limits, PduKind, Reader,
    ReadyToTransfer, Receiver,
};
use crate::property::{Configuration, ControllerStatus, PropertyId, Shutdown};
use crate::{
    Admin, Body, Command, Connect, ConnectAttributes, ConnectData, ConnectReply, Cqe, Fabrics, Identify, Sgl, Sqe,
    Status,
};
use base::{Span, Time};
use std::collections::VecDeque;

/// Ids of the player's own commands; scripts use those below.
const OWN_IDS: u16 = 0xf000;
/// Most data of one PDU of a target before the player stops reading.
const DATA_MAX: u32 = 16 << 20;
/// Most R2Ts on one connection: far more than any script needs.
const READY_MAX: usize = 4096;
/// Time between two reads of CSTS.
const POLL: Span = Span::ms(5);

/// What the caller has to do with sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection, then call [`Player::opened`] or [`Player::closed`].
    Open(LinkId),
    /// Close it at once, with a reset where the platform can.
    Drop(LinkId),
}

/// One connection as the player sees it.
#[derive(Debug)]
struct Link {
    is_open: bool,
    is_closed: bool,
    is_initialized: bool,
    /// Initialization was an ordinary one.
    is_greeted: bool,
    termination: Option<FatalStatus>,
    reader: Reader,
    framing: Framing,
    digests: Digests,
    /// Data that one H2CData may carry, bytes.
    host_data_max: u32,
    out: VecDeque<u8>,
    /// Bytes that go one at a time.
    trickles: bool,
    completions: Vec<Cqe>,
    ready: Vec<ReadyToTransfer>,
    controller: u16,
    next_id: u16,
}

impl Link {
    fn new() -> Self {
        Link {
            is_open: false,
            is_closed: false,
            is_initialized: false,
            is_greeted: false,
            termination: None,
            reader: Reader::new(Receiver::Host, Limits { in_capsule_max: 0, data_max: DATA_MAX }),
            framing: Framing::INITIAL,
            digests: Digests::default(),
            host_data_max: 4096,
            out: VecDeque::new(),
            trickles: false,
            completions: Vec::new(),
            ready: Vec::new(),
            controller: 0,
            next_id: OWN_IDS,
        }
    }

    fn is_over(&self) -> bool {
        self.is_closed || self.termination.is_some()
    }

    fn completion(&self, id: u16) -> Option<&Cqe> {
        self.completions.iter().find(|completion| completion.id == id)
    }

    /// H2CData whose length and digest may be wrong.
    fn send_changed(&mut self, data: HostData, change: DataChange) {
        let mut bytes = Vec::new();
        self.framing.write(&Header::HostData(data), &vec![0x5a; data.length as usize], &mut bytes);
        let claimed = data.length.wrapping_add(change.claimed);
        bytes[16..20].copy_from_slice(&claimed.to_le_bytes());
        if change.is_damaged {
            *bytes.last_mut().expect("a PDU has bytes") ^= 0x80;
        }
        self.out.extend(bytes);
    }

    fn send(&mut self, header: &Header, data: &[u8]) {
        let mut bytes = Vec::new();
        self.framing.write(header, data, &mut bytes);
        self.out.extend(bytes);
    }
}

/// State of the current step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Not begun.
    New,
    /// The player's own command with this id has to be answered.
    Called(u16),
    /// CSTS is read again at this time.
    Polling(Time),
    /// The step is sent; an answer has to arrive.
    Waiting,
}

/// Whether a step is over.
enum Outcome {
    Done,
    Wait,
    End(Verdict),
}

/// Plays one script.
#[derive(Debug)]
pub struct Player {
    victim: Victim,
    steps: VecDeque<Step>,
    /// Steps of the ordinary host at the end.
    epilogue: VecDeque<Step>,
    links: Vec<Link>,
    actions: VecDeque<Action>,
    progress: Progress,
    now: Time,
    step_timeout: Span,
    deadline: Option<Time>,
    leeway: Vec<Leeway>,
    /// Completions that the link of the current step had when the step began.
    answered: usize,
    /// The verdict on the attack itself, while the ordinary host is still to come.
    found: Option<Verdict>,
    verdict: Option<Verdict>,
}

impl Player {
    /// Plays `attack` on `victim` from now on; every step may take `step_timeout`.
    pub fn new(now: Time, attack: &Attack, victim: Victim, step_timeout: Span) -> Self {
        let last = LINKS - 1;
        let calls = [Call::ConnectAdmin, Call::Enable, Call::Identify].map(|call| Step::Call(last, call));
        let epilogue = [Step::Open(last), Step::Hello(last, Digests::default())].into_iter().chain(calls);
        let mut player = Player {
            victim,
            steps: attack.steps.iter().cloned().collect(),
            epilogue: epilogue.collect(),
            links: (0..LINKS).map(|_| Link::new()).collect(),
            actions: VecDeque::new(),
            progress: Progress::New,
            now,
            step_timeout,
            deadline: None,
            leeway: attack.leeway.clone(),
            answered: 0,
            found: None,
            verdict: attack.barred.map(|why| Verdict::NotApplicable(why.into())),
        };
        player.renew_deadline();
        player.advance();
        player
    }

    /// The next action on sockets.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The verdict, when the script is over.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// A connection is open.
    pub fn opened(&mut self, now: Time, link: LinkId) {
        self.now = self.now.max(now);
        self.links[link].is_open = true;
        self.advance();
    }

    /// A connection was closed by the target, or could not be opened.
    pub fn closed(&mut self, now: Time, link: LinkId) {
        self.now = self.now.max(now);
        self.links[link].is_closed = true;
        self.advance();
    }

    /// Bytes to send on a connection; at most so many at a time as they arrive.
    pub fn transmit(&self, link: LinkId) -> &[u8] {
        let place = &self.links[link];
        let (first, _) = place.out.as_slices();
        if place.trickles { &first[..first.len().min(1)] } else { first }
    }

    /// So many of them left.
    pub fn transmitted(&mut self, link: LinkId, bytes: usize) {
        self.links[link].out.drain(..bytes);
        self.advance();
    }

    /// Takes bytes of a connection.
    pub fn receive(&mut self, now: Time, link: LinkId, bytes: &[u8]) {
        self.now = self.now.max(now);
        // After the end of the attack its connections are ignored.
        let is_listened_to = self.found.is_none() || link == LINKS - 1;
        if let Err(why) = self.read(link, bytes)
            && is_listened_to
        {
            self.end(Verdict::Accepted(why));
        }
        self.advance();
    }

    /// When to call [`Self::on_wakeup`] at the latest.
    pub fn next_wakeup(&self) -> Option<Time> {
        let poll = match self.progress {
            Progress::Polling(at) => Some(at),
            _ => None,
        };
        poll.into_iter().chain(self.deadline).min().filter(|_| self.verdict.is_none())
    }

    /// Time has passed.
    pub fn on_wakeup(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.advance();
        if self.deadline.is_some_and(|deadline| deadline <= self.now) {
            let step = self.steps.front().or(self.epilogue.front()).cloned();
            let verdict = step.map_or(Verdict::Hung(String::new()), |step| self.too_late(&step));
            self.end(verdict);
            self.advance();
        }
    }

    /// The attack has come to something, or the ordinary host behind it has failed. The latter is
    /// the worse.
    fn end(&mut self, verdict: Verdict) {
        if !self.steps.is_empty() {
            self.steps.clear();
            self.found = Some(verdict.within(&self.leeway));
            self.progress = Progress::New;
            return self.renew_deadline();
        }
        let before = self.found.as_ref().map_or(String::new(), |found| format!("; before that: {found}"));
        self.verdict.get_or_insert_with(|| match verdict {
            Verdict::NotPlayed(what) | Verdict::Hung(what) => Verdict::Died(what + &before),
            other => other,
        });
    }

    /// The outcome of a step whose answer did not arrive in time.
    fn too_late(&self, step: &Step) -> Verdict {
        let Step::Expect(link, Expectation::Terminates(_)) = step else {
            let what = describe(step);
            // Ordinary commands have to succeed before the attack proves anything.
            let is_ordinary = matches!(step, Step::Open(_) | Step::Hello(..) | Step::Call(..) | Step::AwaitReady(..));
            return if is_ordinary { Verdict::NotPlayed(what) } else { Verdict::Hung(what) };
        };
        let place = &self.links[*link];
        let told = place.completions.get(self.answered..).unwrap_or_default();
        match told.iter().find(|told| told.status.is_success()).or(told.first()) {
            Some(told) if told.status.is_success() => {
                Verdict::Accepted(format!("command {:#x} succeeded where the connection has to end", told.id))
            }
            Some(told) => Verdict::RefusedWrongly(format!(
                "command {:#x} failed ({}) where the connection has to end",
                told.id, told.status
            )),
            None if place.is_initialized && !place.is_greeted => Verdict::Accepted("it answered with ICResp".into()),
            None => Verdict::Hung(describe(step)),
        }
    }

    fn renew_deadline(&mut self) {
        self.deadline = self.now.checked_add(self.step_timeout);
    }

    /// Takes steps as long as they can be taken.
    fn advance(&mut self) {
        while self.verdict.is_none() {
            let Some(step) = self.steps.front().or(self.epilogue.front()).cloned() else {
                self.verdict = Some(self.found.take().unwrap_or(Verdict::Refused));
                return;
            };
            match self.take(&step) {
                Outcome::Done => {
                    let rest = if self.steps.is_empty() { &mut self.epilogue } else { &mut self.steps };
                    rest.pop_front();
                    self.progress = Progress::New;
                    self.renew_deadline();
                }
                Outcome::Wait => return,
                Outcome::End(verdict) => self.end(verdict),
            }
        }
    }

    fn take(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Open(link) => self.open(*link),
            Step::Hello(link, digests) => self.hello(*link, *digests),
            Step::Call(link, call) => self.call(*link, *call),
            Step::RefusedCall(link, call) => self.refused_call(*link, *call),
            Step::Disguise(host, host_id) => {
                (self.victim.host, self.victim.host_id) = (*host, *host_id);
                Outcome::Done
            }
            Step::Send(link, bytes) => {
                self.links[*link].out.extend(bytes);
                Outcome::Done
            }
            Step::Trickle(link, bytes) => self.trickle(*link, bytes),
            Step::Entry(link, entry, data) => {
                let header = Header::Command { entry: **entry, data_length: data.len() as u32 };
                self.links[*link].send(&header, data);
                Outcome::Done
            }
            Step::Damaged(link, entry, data, damage) => self.send_damaged(*link, entry, data, *damage),
            Step::AwaitReady(link, id) => self.await_ready(*link, *id, Verdict::NotPlayed),
            Step::MustReady(link, id) => self.await_ready(*link, *id, Verdict::RefusedWrongly),
            Step::ServeIfAsked(link, id) => self.serve_if_asked(*link, *id),
            Step::Data(link, change) => self.send_data(*link, *change),
            Step::Expect(link, expectation) => {
                self.begin_to_expect(*link);
                self.expect(*link, *expectation)
            }
            Step::Drop(link) => {
                // The target may have been quicker.
                if !std::mem::replace(&mut self.links[*link].is_closed, true) {
                    self.actions.push_back(Action::Drop(*link));
                }
                Outcome::Done
            }
        }
    }

    fn open(&mut self, link: LinkId) -> Outcome {
        if self.progress == Progress::New {
            self.progress = Progress::Waiting;
            self.actions.push_back(Action::Open(link));
        }
        match &self.links[link] {
            place if place.is_closed => Outcome::End(Verdict::NotPlayed("no connection".into())),
            place if place.is_open => Outcome::Done,
            _ => Outcome::Wait,
        }
    }

    fn hello(&mut self, link: LinkId, digests: Digests) -> Outcome {
        let place = &mut self.links[link];
        if self.progress == Progress::New {
            self.progress = Progress::Waiting;
            (place.is_greeted, place.digests) = (true, digests);
            let request = InitializeRequest { alignment: 0, digests, ready_max_minus_one: 0 };
            place.send(&Header::InitializeRequest(request), &[]);
        }
        match place {
            place if place.is_initialized && place.framing.digests != digests => {
                Outcome::End(Verdict::NotApplicable("the target does without the digests".into()))
            }
            place if place.is_initialized => Outcome::Done,
            place if place.is_over() => Outcome::End(Verdict::NotPlayed("an ordinary ICReq was refused".into())),
            _ => Outcome::Wait,
        }
    }

    fn trickle(&mut self, link: LinkId, bytes: &[u8]) -> Outcome {
        let place = &mut self.links[link];
        if self.progress == Progress::New {
            self.progress = Progress::Waiting;
            place.trickles = true;
            place.out.extend(bytes);
        }
        if place.out.is_empty() || place.is_over() {
            place.trickles = false;
            return Outcome::Done;
        }
        Outcome::Wait
    }

    fn call(&mut self, link: LinkId, call: Call) -> Outcome {
        match self.progress {
            Progress::New => self.send_call(link, call),
            Progress::Polling(at) if at <= self.now => self.send_poll(link),
            Progress::Polling(_) => return Outcome::Wait,
            _ => {}
        }
        let Progress::Called(id) = self.progress else { return Outcome::Wait };
        let place = &self.links[link];
        match place.completion(id).copied() {
            None if place.is_over() => Outcome::End(Verdict::NotPlayed(format!("{call:?}: the connection ended"))),
            None => Outcome::Wait,
            Some(completion) if !completion.status.is_success() => {
                Outcome::End(Verdict::NotPlayed(format!("{call:?}: {}", completion.status)))
            }
            Some(completion) => self.after_call(link, call, completion),
        }
    }

    fn refused_call(&mut self, link: LinkId, call: Call) -> Outcome {
        if self.progress == Progress::New {
            self.send_call(link, call);
        }
        let Progress::Called(id) = self.progress else { return Outcome::Wait };
        self.expect(link, Expectation::Refuses(id))
    }

    fn after_call(&mut self, link: LinkId, call: Call, completion: Cqe) -> Outcome {
        match call {
            Call::ConnectAdmin => self.links[link].controller = ConnectReply::decode(completion.result).controller,
            Call::Enable => {
                let ready = ControllerStatus::decode(completion.result as u32).is_ok_and(|status| status.ready);
                // The first answer completes Property Set; its result is reserved.
                if !ready {
                    self.progress = self.now.checked_add(POLL).map_or(Progress::Waiting, Progress::Polling);
                    return Outcome::Wait;
                }
            }
            Call::ConnectIo { .. } | Call::Identify => {}
        }
        Outcome::Done
    }

    fn send_call(&mut self, link: LinkId, call: Call) {
        let (body, data) = match call {
            Call::ConnectAdmin => self.connect(0, 31, ConnectData::DYNAMIC),
            Call::ConnectIo { admin, queue, size_minus_one } => {
                self.connect(queue, size_minus_one, self.links[admin].controller)
            }
            Call::Enable => (Body::Fabrics(enable()), Vec::new()),
            Call::Identify => {
                let structure = IdentifyId::Controller.code();
                let asked = Identify { structure, controller: 0, specific_id: 0, command_set: 0 };
                (Body::Admin(Admin::Identify(asked)), Vec::new())
            }
        };
        self.send_own(link, body, &data);
    }

    fn send_poll(&mut self, link: LinkId) {
        let property = PropertyId::Status;
        let body = Body::Fabrics(Fabrics::PropertyGet { offset: property.code(), size: property.size() });
        self.send_own(link, body, &[]);
    }

    fn send_own(&mut self, link: LinkId, body: Body, data: &[u8]) {
        let place = &mut self.links[link];
        let id = place.next_id;
        place.next_id = place.next_id.wrapping_add(1).max(OWN_IDS);
        let length = data.len() as u32;
        let descriptor = match body {
            Body::Admin(_) => Sgl::Transport { length: IDENTIFY_BYTES as u32 },
            _ if data.is_empty() => Sgl::NONE,
            _ => Sgl::InCapsule { offset: 0, length },
        };
        let entry = Command { data: descriptor, ..Command::new(id, body) }.encode();
        place.send(&Header::Command { entry, data_length: length }, data);
        self.progress = Progress::Called(id);
    }

    fn connect(&self, queue: u16, size_minus_one: u16, controller: u16) -> (Body, Vec<u8>) {
        let attributes = ConnectAttributes::empty();
        let connect = Connect { queue, size_minus_one, attributes, keep_alive_ms: 0 };
        let Victim { host_id, subsystem, host, .. } = self.victim;
        let data = ConnectData { host_id, controller, subsystem, host };
        (Body::Fabrics(Fabrics::Connect(connect)), data.encode().to_vec())
    }

    fn send_damaged(&mut self, link: LinkId, entry: &Sqe, data: &[u8], damage: Damage) -> Outcome {
        let place = &mut self.links[link];
        let header = Header::Command { entry: *entry, data_length: data.len() as u32 };
        let mut bytes = Vec::new();
        place.framing.write(&header, data, &mut bytes);
        let at = match damage {
            Damage::Header => PduKind::Command.header_bytes() + DIGEST_BYTES - 1,
            Damage::Data => bytes.len() - 1,
        };
        bytes[at] ^= 0x80;
        place.out.extend(bytes);
        Outcome::Done
    }

    fn await_ready(&mut self, link: LinkId, id: u16, without: fn(String) -> Verdict) -> Outcome {
        let place = &self.links[link];
        if place.ready.iter().any(|ready| ready.command == id) {
            Outcome::Done
        } else if place.is_over() || place.completion(id).is_some() {
            Outcome::End(without("an ordinary write was not asked for its data".into()))
        } else {
            Outcome::Wait
        }
    }

    fn serve_if_asked(&mut self, link: LinkId, id: u16) -> Outcome {
        let place = &self.links[link];
        if place.completion(id).is_some() || place.is_over() {
            Outcome::Done
        } else if place.ready.iter().any(|ready| ready.command == id) {
            self.send_data(link, DataChange::default())
        } else {
            Outcome::Wait
        }
    }

    fn send_data(&mut self, link: LinkId, change: DataChange) -> Outcome {
        let place = &mut self.links[link];
        let unasked = ReadyToTransfer { command: 0, tag: 0, offset: 0, length: 512 };
        let ready = place.ready.last().copied().unwrap_or(unasked);
        let length = change.length.unwrap_or(ready.length);
        // Ordinary data keep to MAXH2CDATA; data that are changed in length are one PDU, wrong as
        // they are.
        let piece_max = if change.length.is_some() { length } else { place.host_data_max.min(length) };
        let mut sent = 0;
        while sent < length || length == 0 {
            let piece = piece_max.min(length - sent);
            let ends = sent + piece == ready.length;
            let data = HostData {
                command: ready.command.wrapping_add(change.command),
                tag: ready.tag.wrapping_add(change.tag),
                offset: ready.offset.wrapping_add(change.offset).wrapping_add(sent),
                length: piece,
                is_last: ends != (change.flips_last && sent + piece == length),
            };
            place.send_changed(data, change);
            sent += piece;
            if length == 0 {
                break;
            }
        }
        Outcome::Done
    }

    fn expect(&self, link: LinkId, expectation: Expectation) -> Outcome {
        let place = &self.links[link];
        let over = |what: &str| Outcome::End(Verdict::RefusedWrongly(what.into()));
        let accepted = |id: u16| Outcome::End(Verdict::Accepted(format!("command {id:#x} succeeded")));
        let status = |id: u16| place.completion(id).map(|completion| completion.status);
        match expectation {
            Expectation::Terminates(allowed) => self.expect_end(link, allowed),
            Expectation::Fails(id) => match status(id) {
                Some(status) if status.is_success() => accepted(id),
                Some(_) => Outcome::Done,
                None if place.is_over() => over("the connection ended where a status was due"),
                None => Outcome::Wait,
            },
            Expectation::Refuses(id) | Expectation::RefusesConnect(id) => match status(id) {
                Some(status) if status.is_success() => accepted(id),
                Some(_) => Outcome::Done,
                None if place.is_over() => Outcome::Done,
                None => Outcome::Wait,
            },
            Expectation::Answers(id) | Expectation::Succeeds(id) => match status(id) {
                Some(status) if expectation == Expectation::Succeeds(id) && !status.is_success() => {
                    over(&format!("command {id:#x}: {status}"))
                }
                Some(_) => Outcome::Done,
                None if place.is_over() => over("the connection ended where an answer was due"),
                None => Outcome::Wait,
            },
            Expectation::RefusesOneOf(ids) => {
                let refused = |id: &&u16| status(**id).is_some_and(|status: Status| !status.is_success());
                let is_answered = ids.iter().all(|id| status(*id).is_some());
                match ids.iter().find(refused) {
                    Some(_) => Outcome::Done,
                    None if place.is_over() => Outcome::Done,
                    None if is_answered => Outcome::End(Verdict::Accepted("all of them succeeded".into())),
                    None => Outcome::Wait,
                }
            }
        }
    }

    /// Notes which completions arrived before the expected one.
    fn begin_to_expect(&mut self, link: LinkId) {
        if self.progress == Progress::New {
            (self.progress, self.answered) = (Progress::Waiting, self.links[link].completions.len());
        }
    }

    fn expect_end(&self, link: LinkId, allowed: &[FatalStatus]) -> Outcome {
        let place = &self.links[link];
        match place.termination {
            Some(status) if allowed.is_empty() || allowed.contains(&status) => Outcome::Done,
            Some(status) => {
                Outcome::End(Verdict::RefusedWrongly(format!("it was told as {status:?}, not {allowed:?}")))
            }
            None if place.is_closed => Outcome::Done,
            None => Outcome::Wait,
        }
    }

    /// Reads the target's bytes. Fails on what no conforming target sends.
    fn read(&mut self, link: LinkId, bytes: &[u8]) -> Result<(), String> {
        let place = &mut self.links[link];
        let mut input = bytes;
        while let Some(event) =
            place.reader.next(&mut input).map_err(|error| format!("the target sent nonsense: {error}"))?
        {
            let Event::Header(header) = event else { continue };
            match header {
                Header::InitializeResponse(response) => {
                    place.is_initialized = true;
                    place.reader.open(Framing { digests: response.digests, alignment: 0 });
                    place.framing = Framing { digests: response.digests, alignment: response.alignment };
                    place.host_data_max = response.host_data_max / 4 * 4;
                }
                Header::ControllerTermination(end) => place.termination = Some(end.status),
                Header::ReadyToTransfer(_) if place.ready.len() >= READY_MAX => {
                    return Err(format!("more than {READY_MAX} R2Ts"));
                }
                Header::ReadyToTransfer(ready) => place.ready.push(ready),
                Header::Response(completion) => {
                    if place.completion(completion.id).is_some() {
                        return Err(format!("command {:#x} was completed twice", completion.id));
                    }
                    place.completions.push(completion);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn enable() -> Fabrics {
    let shutdown = Shutdown::None;
    let wanted =
        Configuration { enable: true, command_set: 0, page: 0, arbitration: 0, shutdown, sqe_size: 6, cqe_size: 4 };
    let property = PropertyId::Configuration;
    Fabrics::PropertySet { offset: property.code(), size: property.size(), value: wanted.encode().into() }
}

/// A step in few words.
fn describe(step: &Step) -> String {
    match step {
        Step::Open(_) => "no connection".into(),
        Step::Hello(..) => "no ICResp".into(),
        Step::Call(_, call) => format!("no answer to {call:?}"),
        Step::AwaitReady(..) | Step::MustReady(..) => "no R2T".into(),
        Step::ServeIfAsked(..) => "neither an answer nor an R2T".into(),
        Step::Expect(_, expectation) => format!("waited for: {expectation:?}"),
        Step::Trickle(..) => "it reads nothing".into(),
        _ => "nothing".into(),
    }
}
