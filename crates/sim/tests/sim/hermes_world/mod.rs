//! A rack in which everything goes wrong: servers with replicas, the control plane, clients, and a
//! network that delays, reorders, doubles and loses.

mod server;

use base::{NodeId, Program, Seed, Span, Stream, Time};
use blox::{
    Body, Control, ControlConfig, ControlIn, ControlMessage, ControlOut, Membership, Packet, Page, ServerPlace,
    Standing, Value, VssdId,
};
use history::{Action, History, Operation};
use server::Server;
use std::collections::BTreeMap;

/// A mistake that an implementation could make, and that the test must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    None,
    /// VAL counts at any timestamp.
    ValidateAny,
    /// Reads are served while the page is invalid.
    ServeInvalid,
    /// What the device returned is passed on without asking again.
    NoSecondLook,
    /// A server serves without a lease.
    NoLease,
    /// An INV is acknowledged by the network card, applied or not.
    HastyAcknowledgement,
    /// A stale replica is taken as up to date.
    TrustStale,
}

/// What is to go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Messages between replicas lost and doubled, in percent.
    pub loss_percent: u64,
    pub crashes: u32,
    pub partitions: u32,
    /// Whether a crash costs what is on the flash too, as if nothing of the write cache had been
    /// flushed.
    pub costs_data: bool,
    pub mistake: Mistake,
}

pub const CONTROLLER: NodeId = NodeId(4);
/// Three replicas (the third in another rack) and a server to rebuild on.
const SERVERS: [(u32, u32); 4] = [(0, 0), (1, 0), (2, 0), (3, 1)];
const MEMBERS: [(NodeId, VssdId); 3] = [(NodeId(0), VssdId(0)), (NodeId(1), VssdId(1)), (NodeId(3), VssdId(2))];
pub const PAGES: u64 = 2;
const CLIENTS: usize = 6;
pub const BEAT: Span = Span::us(1_000);
/// How long clients and faults are at work, and how long the rack then has to recover.
const BUSY: Time = Time::ms(40);
const END: Time = Time::ms(90);
/// From here on nothing is lost, so that nobody is suspected at the last moment.
const CLEAR: Time = Time::ms(60);
const CLIENT_TIMEOUT: Span = Span::us(2_000);

/// What happens at an instant.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Arrive(Packet),
    WakeControl,
    WakeReplicas(usize),
    Beat(usize),
    /// A client's next request.
    Ask(usize),
    Request {
        server: usize,
        request: u64,
    },
    Answer {
        request: u64,
        value: Value,
    },
    GiveUp {
        request: u64,
    },
    ReadDone {
        server: usize,
        starts: u32,
        vssd: VssdId,
        request: u64,
        early: Value,
    },
    Loaded {
        server: usize,
        starts: u32,
        vssd: VssdId,
        page: Page,
    },
    Crash(usize),
    Restart(usize),
    Cut(usize),
    Heal(usize),
}

/// A client's request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    client: usize,
    action: Action,
    page: Page,
    value: Value,
    invoked: Time,
}

pub struct World {
    now: Time,
    sequence: u64,
    events: BTreeMap<(Time, u64), Happening>,
    stream: Stream,
    plan: Plan,
    servers: Vec<Server>,
    cut: Vec<bool>,
    control: Control,
    control_wake: Option<Time>,
    requests: BTreeMap<u64, Request>,
    next_request: u64,
    members: Membership,
    pub history: History,
    pub reads_answered: u64,
    pub writes_answered: u64,
    pub epochs: u32,
    /// The first server that served after the control plane had begun an epoch without it.
    pub stray: Option<String>,
}

fn config() -> ControlConfig {
    ControlConfig {
        own: CONTROLLER,
        rack: 0,
        servers: SERVERS.map(|(node, rack)| ServerPlace { node: NodeId(node), rack, room: u32::MAX }).to_vec(),
        groups: vec![MEMBERS.to_vec()],
        clients: Vec::new(),
        beat: BEAT,
        misses: 4,
        patience: Span::ms(12),
        lease: Span::us(3_000),
        resend: Span::us(800),
        first_beat: Span::ZERO,
        replace_after: Span::ms(6),
        next_vssd: 10,
        vssd_step: 1,
    }
}

impl World {
    /// Plays the plan to its end.
    pub fn play(plan: Plan) -> World {
        let control = Control::new(config()).expect("the configuration is sound");
        let mut world = World {
            now: Time::ZERO,
            sequence: 0,
            events: BTreeMap::new(),
            stream: Seed(plan.seed).stream("world"),
            plan,
            servers: (0..SERVERS.len()).map(|place| Server::new(place, &MEMBERS, plan.mistake)).collect(),
            cut: vec![false; SERVERS.len()],
            members: control.members(0).expect("there is one group"),
            control,
            control_wake: None,
            requests: BTreeMap::new(),
            next_request: 1,
            history: History::default(),
            reads_answered: 0,
            writes_answered: 0,
            epochs: 0,
            stray: None,
        };
        world.begin();
        while let Some(((at, _), happening)) = world.events.pop_first() {
            if at > END {
                break;
            }
            world.now = at;
            world.happen(happening);
            world.look_for_strays();
        }
        world.close();
        world
    }
    fn begin(&mut self) {
        self.after(Span::ZERO, Happening::WakeControl);
        for server in 0..SERVERS.len() {
            self.after(Span::us(server as u64 * 90), Happening::Beat(server));
        }
        for client in 0..CLIENTS {
            self.after(Span::us(300), Happening::Ask(client));
        }
        for _ in 0..self.plan.crashes {
            let (server, at, span) = self.fault();
            self.after(at, Happening::Crash(server));
            self.after(at + span, Happening::Restart(server));
        }
        for _ in 0..self.plan.partitions {
            let (server, at, span) = self.fault();
            self.after(at, Happening::Cut(server));
            self.after(at + span, Happening::Heal(server));
        }
    }
    /// A server, when and for how long: shorter than the timeout of the control plane, and much
    /// longer.
    fn fault(&mut self) -> (usize, Span, Span) {
        let server = self.stream.below(SERVERS.len() as u64) as usize;
        let at = Span::us(500 + self.stream.below(30_000));
        let longest = [1_000, 8_000, 14_000][self.stream.below(3) as usize];
        let span = Span::us(50 + self.stream.below(longest));
        (server, at, span)
    }
    fn after(&mut self, span: Span, happening: Happening) {
        self.sequence += 1;
        self.events.insert((self.now + span, self.sequence), happening);
    }
    fn us(&mut self, from: u64, to: u64) -> Span {
        Span::us(from + self.stream.below(to - from))
    }
    /// Requests that were never answered.
    fn close(&mut self) {
        for (id, request) in std::mem::take(&mut self.requests) {
            self.note(id, request, request.value, None);
        }
    }
    fn note(&mut self, id: u64, request: Request, value: Value, responded: Option<Time>) {
        let Request { action, page, invoked, .. } = request;
        let register = (0, page.0);
        self.history.record(Operation { id, register, action, value: value.0, invoked, responded });
    }
}

/// What happens.
impl World {
    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive(packet) => self.arrive(packet),
            Happening::WakeControl => self.drive_control(None),
            Happening::WakeReplicas(server) => self.drive(server, Server::wake),
            Happening::Beat(server) => self.beat(server),
            Happening::Ask(client) => self.ask(client),
            Happening::Request { server, request } => self.request(server, request),
            Happening::Answer { request, value } => self.answered(request, value),
            Happening::GiveUp { request } => self.give_up(request),
            Happening::ReadDone { server, starts, vssd, request, early } => {
                self.drive_if(server, starts, |server, now| server.read_done(now, vssd, request, early));
            }
            Happening::Loaded { server, starts, vssd, page } => {
                self.drive_if(server, starts, |server, now| server.loaded(now, vssd, page));
            }
            Happening::Crash(server) => self.servers[server].crash(self.plan.costs_data),
            Happening::Restart(server) => self.servers[server].restart(),
            Happening::Cut(server) => self.cut[server] = true,
            Happening::Heal(server) => self.cut[server] = false,
        }
    }
    fn drive_if(&mut self, server: usize, starts: u32, act: impl FnOnce(&mut Server, Time)) {
        if self.servers[server].starts == starts {
            self.drive(server, act);
        }
    }
    /// Lets a server act, and carries out what it wants.
    fn drive(&mut self, place: usize, act: impl FnOnce(&mut Server, Time)) {
        let now = self.now;
        let server = &mut self.servers[place];
        if !server.is_up {
            return;
        }
        act(server, now);
        let starts = server.starts;
        for wish in server.take_wishes() {
            match wish {
                server::Wish::Send(packet) => self.send(packet),
                server::Wish::Answer { request, value } => {
                    let span = self.us(1, 60);
                    self.after(span, Happening::Answer { request, value });
                }
                server::Wish::Read { vssd, request, early } => {
                    let span = self.us(10, 400);
                    self.after(span, Happening::ReadDone { server: place, starts, vssd, request, early });
                }
                server::Wish::Load { vssd, page } => {
                    let span = self.us(10, 200);
                    self.after(span, Happening::Loaded { server: place, starts, vssd, page });
                }
            }
        }
        if let Some(wake) = self.servers[place].next_wakeup() {
            self.after(wake.saturating_since(now), Happening::WakeReplicas(place));
        }
    }
    fn drive_control(&mut self, packet: Option<Packet>) {
        let mut out = Vec::new();
        match packet {
            Some(packet) => self.control.on(self.now, ControlIn::Packet(packet), &mut out),
            None if self.control.next_wakeup().is_some_and(|wake| wake <= self.now) => {
                self.control.on_wakeup(self.now, &mut out);
            }
            None => return,
        }
        for output in out {
            if let ControlOut::Send(packet) = output {
                self.send(packet);
            }
        }
        self.members = self.control.members(0).expect("there is one group");
        self.epochs = self.members.epoch;
        let wake = self.control.next_wakeup();
        if wake != self.control_wake {
            self.control_wake = wake;
            wake.into_iter().for_each(|wake| self.after(wake.saturating_since(self.now), Happening::WakeControl));
        }
    }
    fn beat(&mut self, server: usize) {
        self.drive(server, |server, now| server.beat(now));
        self.after(BEAT, Happening::Beat(server));
    }
    fn send(&mut self, packet: Packet) {
        let copies = match self.stream.below(100) {
            _ if self.now > CLEAR => 1,
            dice if dice < self.plan.loss_percent => 0,
            dice if dice < self.plan.loss_percent * 2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let span = if self.stream.below(40) == 0 { self.us(60, 2_500) } else { self.us(2, 60) };
            self.after(span, Happening::Arrive(packet));
        }
    }
    fn is_cut(&self, node: NodeId) -> bool {
        self.cut.get(node.index()).copied().unwrap_or(false)
    }
    fn arrive(&mut self, packet: Packet) {
        if self.is_cut(packet.source) || self.is_cut(packet.target) {
            return;
        }
        match packet.target {
            CONTROLLER if !matches!(packet.body, Body::Create { .. } | Body::Delete) => {
                self.drive_control(Some(packet));
            }
            CONTROLLER => {}
            target => self.drive(target.index(), |server, now| server.packet(now, &packet)),
        }
    }
}

/// Clients.
impl World {
    /// A read or a write of a new value, at a member or, by a client that does not know better,
    /// anywhere.
    fn ask(&mut self, client: usize) {
        if self.now > BUSY {
            return;
        }
        let id = self.next_request;
        self.next_request += 1;
        let action = if self.stream.below(3) == 0 { Action::Write } else { Action::Read };
        let page = Page(self.stream.below(PAGES));
        let request = Request { client, action, page, value: Value(id), invoked: self.now };
        self.requests.insert(id, request);
        let members: Vec<NodeId> = self.members.replicas.iter().flatten().map(|(node, _)| *node).collect();
        let server = match self.stream.below(8) {
            0 => self.stream.below(SERVERS.len() as u64) as usize,
            _ => members[self.stream.below(members.len() as u64) as usize].index(),
        };
        let span = self.us(1, 60);
        self.after(span, Happening::Request { server, request: id });
        self.after(CLIENT_TIMEOUT, Happening::GiveUp { request: id });
    }
    fn request(&mut self, server: usize, id: u64) {
        let Some(request) = self.requests.get(&id).copied() else { return };
        self.drive(server, |server, now| match request.action {
            Action::Write => server.client_write(now, id, request.page, request.value),
            Action::Read => server.client_read(now, id, request.page),
        });
    }
    fn answered(&mut self, id: u64, value: Value) {
        let Some(request) = self.requests.remove(&id) else { return };
        match request.action {
            Action::Read => self.reads_answered += 1,
            Action::Write => self.writes_answered += 1,
        }
        let value = if request.action == Action::Read { value } else { request.value };
        self.note(id, request, value, Some(self.now));
        let span = self.us(1, 100);
        self.after(span, Happening::Ask(request.client));
    }
    fn give_up(&mut self, id: u64) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.note(id, request, request.value, None);
        self.after(Span::us(1), Happening::Ask(request.client));
    }
}

/// What must hold all the time, and what is left in the end.
impl World {
    /// Who may answer clients is a member of the present epoch that is not stale there: never do
    /// two epochs serve that differ in their members.
    fn look_for_strays(&mut self) {
        for server in &self.servers {
            let Some(member) = server.answers(self.now) else { continue };
            let is_member = self.members.replicas.contains(&Some(member)) && self.members.stale != Some(member);
            if !is_member {
                let (now, members) = (self.now, self.members);
                self.stray.get_or_insert_with(|| format!("{member:?} at {now:?} in {members:?}"));
            }
        }
    }
    /// Why the rack is not whole again: three members that serve, agree and have nothing in flight.
    pub fn unhealed(&self) -> Option<String> {
        let members: Vec<(NodeId, VssdId)> = self.members.replicas.iter().flatten().copied().collect();
        let states: Vec<String> = members.iter().map(|(node, vssd)| self.servers[node.index()].state(*vssd)).collect();
        let is_one = states.windows(2).all(|pair| pair[0] == pair[1]);
        let serves =
            |member: &(NodeId, VssdId)| self.servers[member.0.index()].standing(member.1) == Some(Standing::Serving);
        let is_whole = members.len() == 3 && self.members.stale.is_none() && members.iter().all(serves);
        (!is_one || !is_whole).then(|| format!("{:?}: {states:#?}", self.members))
    }
}

/// The packet in which a server or the controller says something.
fn packet(source: NodeId, target: NodeId, vssd: VssdId, body: Body) -> Packet {
    Packet { vssd, latency_ns: 0, source, target, body }
}

/// A server's confirmation.
fn up_to_date(epoch: u32) -> Body {
    Body::Control(ControlMessage::UpToDate { epoch })
}
