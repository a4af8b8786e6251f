//! Does the protocol hold: clients that send writes again see a linearizable volume, whatever
//! servers and links are lost while a write waits. The programs of a rack, on a network that
//! delays, loses and doubles; its histories are judged. (Directed schedules:
//! `crates/blox/tests/repeats.rs`.)

use base::{NodeId, Operation, Program, Seed, Span, Stream, Time};
use blox::{
    Body, Client, ClientConfig, ClientIn, ClientOut, ClientOutcome, Control, ControlConfig, ControlIn, ControlLink,
    ControlOut, NodeConfig, NodeIn, NodeOut, Packet, Page, REPLICAS_MAX, ServerPlace, StorageNode, Tag, Value,
    VssdConfig, VssdId,
};
use history::{Action, History};
use std::collections::BTreeMap;
use std::num::NonZero;

const PAGES: u64 = 3;
const CONTROL: NodeId = NodeId(9);
const FIRST_CLIENT: u32 = 4;
const CLIENTS: usize = 3;
/// Requests of a client that are open at a time.
const DEPTH: usize = 2;
/// Clients and faults are at work until then; then all must settle.
const BUSY: Time = Time::ms(250);
const END: Time = Time::ms(700);
/// A server that has been silent for three beats is noticed, and heard again.
const NOTICED: Span = Span::ms(5);

/// What is to go wrong.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    servers: usize,
    /// Packets lost and doubled, in percent; of answers to clients three times as many are lost.
    loss_percent: u64,
    /// Times that a server fails, and the next one fails as soon as it is back.
    losses: u64,
    /// Times that a server is cut off from all but clients.
    cuts: u64,
    remembers: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Deliver(Packet),
    Device(usize, NodeIn),
    Power(usize, bool),
    /// The links between this server and everyone but clients work again.
    Heal(usize),
    /// A server fails as soon as all replicas serve, or is cut off.
    Fault {
        server: usize,
        away: Span,
        is_cut: bool,
    },
}

#[derive(Clone, Copy)]
struct Asked {
    client: usize,
    page: Page,
    /// What it writes; none for a read.
    written: Option<Value>,
    invoked: Time,
}

fn member(server: usize) -> (NodeId, VssdId) {
    (NodeId(server as u32), VssdId(10 + server as u32))
}

fn server(place: usize, count: usize, remembers: bool) -> StorageNode {
    let mut replicas = [None; REPLICAS_MAX];
    (0..count).for_each(|server| replicas[server] = Some(member(server)));
    let (id, vssd) = member(place);
    let vssd = VssdConfig { id: vssd, pages: PAGES, unit: 0, streams: 1, isolation: None, epoch: 1, replicas };
    let config = NodeConfig {
        control: Some(ControlLink { node: CONTROL, heartbeat: Span::ms(1), lease: Span::us(2_500) }),
        remember: remembers.then_some(Span::secs(60)),
        ..NodeConfig::quiet(id, vec![vssd])
    };
    StorageNode::new(config).expect("it is possible")
}

fn control(count: usize) -> Control {
    let place = |server: usize| ServerPlace { node: member(server).0, rack: 0, room: 0 };
    let config = ControlConfig {
        own: CONTROL,
        rack: 0,
        servers: (0..count).map(place).collect(),
        groups: vec![(0..count).map(member).collect()],
        clients: (0..CLIENTS).map(|client| NodeId(FIRST_CLIENT + client as u32)).collect(),
        beat: Span::ms(1),
        misses: 3,
        patience: Span::ms(9),
        lease: Span::us(2_500),
        resend: Span::us(800),
        first_beat: Span::ZERO,
        replace_after: Span::secs(1_000),
        next_vssd: 100,
        vssd_step: 1,
    };
    Control::new(config).expect("it is possible")
}

fn client(place: usize, count: usize) -> Client {
    let config = ClientConfig {
        node: NodeId(FIRST_CLIENT + place as u32),
        rack_nodes: CONTROL.0,
        volumes: vec![(0..count).map(member).collect()],
        read_timeout: Span::ms(2),
        write_timeout: Span::ms(3),
        attempts_max: u32::MAX,
        silence: u32::MAX,
        probe_period: Span::ms(2),
        limit: None,
        adds_labels: false,
        resend: Some(Span::secs(10)),
        life: NonZero::<u32>::MIN,
        hello: Some((CONTROL, Span::ms(5))),
    };
    Client::new(config).expect("it is possible")
}

struct World {
    plan: Plan,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    scheduled: u64,
    servers: Vec<StorageNode>,
    power: Vec<bool>,
    /// Which have lost their memory and were not built anew since.
    is_empty: Vec<bool>,
    link: Vec<bool>,
    /// When a link has worked again last.
    healed: Time,
    control: Control,
    clients: Vec<Client>,
    flash: BTreeMap<(usize, Page), Value>,
    asked: BTreeMap<Tag, Asked>,
    next: u64,
    history: History,
    answered: u64,
    chance: Stream,
}

impl World {
    fn play(plan: Plan) -> World {
        let mut world = World {
            plan,
            now: Time::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            servers: (0..plan.servers).map(|place| server(place, plan.servers, plan.remembers)).collect(),
            power: vec![true; plan.servers],
            is_empty: vec![false; plan.servers],
            link: vec![true; plan.servers],
            healed: Time::ZERO,
            control: control(plan.servers),
            clients: (0..CLIENTS).map(|place| client(place, plan.servers)).collect(),
            flash: BTreeMap::new(),
            asked: BTreeMap::new(),
            next: 1,
            history: History::default(),
            answered: 0,
            chance: Seed(plan.seed).stream("world"),
        };
        world.plan_faults();
        (0..CLIENTS * DEPTH).for_each(|client| world.ask(client % CLIENTS));
        world.run();
        for (tag, asked) in std::mem::take(&mut world.asked) {
            world.note(tag, asked, asked.written.unwrap_or_default(), None);
        }
        world
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.insert((time, self.scheduled), event);
        self.scheduled += 1;
    }

    fn after_us(&mut self, least: u64, most: u64, event: Event) {
        let delay = Span::us(least + self.chance.below(most - least));
        self.at(self.now + delay, event);
    }

    fn plan_faults(&mut self) {
        for _ in 0..self.plan.losses {
            let at = Time::us(1_000 + self.chance.below(200_000));
            let first = self.chance.below(self.plan.servers as u64) as usize;
            for further in 0..2 {
                let server = (first + further) % self.plan.servers;
                let away = Span::us(100 + self.chance.below(12_000));
                self.at(at + Span::us(10) * further as u64, Event::Fault { server, away, is_cut: false });
            }
        }
        for _ in 0..self.plan.cuts {
            let at = Time::us(1_000 + self.chance.below(200_000));
            let server = self.chance.below(self.plan.servers as u64) as usize;
            let away = Span::us(500 + self.chance.below(9_000));
            self.at(at, Event::Fault { server, away, is_cut: true });
        }
    }

    fn run(&mut self) {
        loop {
            let event = self.events.first_key_value().map(|((time, _), _)| *time);
            let servers = self.servers.iter().zip(&self.power).filter(|(_, on)| **on);
            let wakes = servers.map(|(server, _)| server.next_wakeup());
            let wakes = wakes.chain(self.clients.iter().map(Client::next_wakeup)).chain([self.control.next_wakeup()]);
            let next = event.into_iter().chain(wakes.flatten()).min();
            let Some(next) = next.filter(|next| *next <= END) else { return };
            self.now = self.now.max(next);
            self.wake();
            if event.is_some_and(|event| event <= self.now)
                && let Some((_, event)) = self.events.pop_first()
            {
                self.happen(event);
            }
        }
    }

    fn wake(&mut self) {
        for place in 0..self.servers.len() {
            if self.power[place] && self.servers[place].next_wakeup().is_some_and(|time| time <= self.now) {
                let mut out = Vec::new();
                self.servers[place].on_wakeup(self.now, &mut out);
                self.server_says(place, out);
            }
        }
        for place in 0..CLIENTS {
            if self.clients[place].next_wakeup().is_some_and(|time| time <= self.now) {
                let mut out = Vec::new();
                self.clients[place].on_wakeup(self.now, &mut out);
                self.client_says(place, out);
            }
        }
        if self.control.next_wakeup().is_some_and(|time| time <= self.now) {
            let mut out = Vec::new();
            self.control.on_wakeup(self.now, &mut out);
            self.control_says(out);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver(packet) if self.is_cut_off(&packet) => {}
            Event::Deliver(packet) if packet.target == CONTROL => {
                let mut out = Vec::new();
                self.control.on(self.now, ControlIn::Packet(packet), &mut out);
                self.control_says(out);
            }
            Event::Deliver(packet) if packet.target.0 >= FIRST_CLIENT => {
                let place = (packet.target.0 - FIRST_CLIENT) as usize;
                let mut out = Vec::new();
                self.clients[place].on(self.now, ClientIn::Packet(packet), &mut out);
                self.client_says(place, out);
            }
            Event::Deliver(packet) => self.tell(packet.target.index(), NodeIn::Packet(packet)),
            Event::Device(server, input) => self.tell(server, input),
            Event::Heal(server) => (self.link[server], self.healed) = (true, self.now),
            Event::Power(server, on) => {
                (self.power[server], self.is_empty[server]) = (on, true);
                self.tell(server, if on { NodeIn::Recover } else { NodeIn::Fail });
            }
            // One fault at a time: the only server that has the data stays.
            Event::Fault { server, away, is_cut } if self.is_whole() => {
                if is_cut {
                    self.link[server] = false;
                    self.at(self.now + away, Event::Heal(server));
                } else {
                    self.happen(Event::Power(server, false));
                    self.at(self.now + away, Event::Power(server, true));
                }
            }
            Event::Fault { .. } if self.now < BUSY => self.after_us(20, 400, event),
            Event::Fault { .. } => {}
        }
    }

    /// Whether all replicas serve, and the control plane had time to notice the last fault.
    fn is_whole(&self) -> bool {
        if self.now.saturating_since(self.healed) < NOTICED {
            return false;
        }
        let members = self.control.members(0).expect("there is one group");
        let serves = |server: usize| members.replicas.contains(&Some(member(server)));
        let has_data = |server: usize| self.power[server] && self.link[server] && !self.is_empty[server];
        members.stale.is_none() && (0..self.servers.len()).all(|server| serves(server) && has_data(server))
    }

    fn is_cut_off(&self, packet: &Packet) -> bool {
        let is_client = |node: NodeId| (FIRST_CLIENT..CONTROL.0).contains(&node.0);
        let works = |node: NodeId| self.link.get(node.index()).copied().unwrap_or(true);
        let ends = [packet.source, packet.target];
        !ends.into_iter().any(is_client) && !ends.into_iter().all(works)
    }

    fn tell(&mut self, place: usize, input: NodeIn) {
        let mut out = Vec::new();
        self.servers[place].on(self.now, input, &mut out);
        self.server_says(place, out);
    }

    fn server_says(&mut self, place: usize, out: Vec<NodeOut>) {
        for decided in out {
            match decided {
                NodeOut::Send(packet) => self.send(packet),
                NodeOut::Read { job, page, .. } => {
                    let value = self.flash.get(&(place, page)).copied().unwrap_or_default();
                    self.after_us(5, 60, Event::Device(place, NodeIn::ReadDone { job, value }));
                }
                NodeOut::Write { job, page, value, .. } => {
                    self.flash.insert((place, page), value);
                    self.after_us(10, 150, Event::Device(place, NodeIn::WriteDone { job }));
                }
                _ => {}
            }
        }
    }

    fn control_says(&mut self, out: Vec<ControlOut>) {
        for said in out {
            match said {
                ControlOut::Send(packet) if packet.target != CONTROL => self.send(packet),
                ControlOut::Happened(blox::Event::Rebuilt { replica, .. }) => self.is_empty[replica.0.index()] = false,
                _ => {}
            }
        }
    }

    fn client_says(&mut self, place: usize, out: Vec<ClientOut>) {
        for said in out {
            match said {
                ClientOut::Send(packet) => self.send(packet),
                ClientOut::Done { tag, outcome, .. } => self.done(place, tag, outcome),
            }
        }
    }

    fn send(&mut self, packet: Packet) {
        let is_answer = matches!(packet.body, Body::WriteReply { .. });
        let loss = self.plan.loss_percent * if is_answer { 3 } else { 1 };
        let dice = self.chance.below(100);
        // Nobody is suspected who is there: that would be a fault besides.
        let is_beat = matches!(packet.body, Body::Heartbeat { .. });
        let copies = match dice {
            _ if self.now >= BUSY || is_beat => 1,
            _ if dice < loss => 0,
            _ if dice < loss + self.plan.loss_percent => 2,
            _ => 1,
        };
        for _ in 0..copies {
            // Some wait in a queue for longer than servers are away.
            let is_slow = self.plan.loss_percent > 0 && !is_beat && self.now < BUSY && self.chance.below(60) == 0;
            let most = if is_slow { 12_000 } else { 80 };
            self.after_us(5, most, Event::Deliver(packet));
        }
    }

    fn ask(&mut self, client: usize) {
        if self.now >= BUSY {
            return;
        }
        let tag = Tag(self.next);
        self.next += 1;
        let (page, is_write) = (Page(self.chance.below(PAGES)), self.chance.below(2) == 0);
        let operation = if is_write { Operation::Write } else { Operation::Read };
        let value = Value(tag.0);
        self.asked.insert(tag, Asked { client, page, written: is_write.then_some(value), invoked: self.now });
        let mut out = Vec::new();
        let issue = ClientIn::Issue { tag, operation, vssd_group: 0, page, value };
        self.clients[client].on(self.now, issue, &mut out);
        self.client_says(client, out);
    }

    fn done(&mut self, client: usize, tag: Tag, outcome: ClientOutcome) {
        let asked = self.asked.remove(&tag).expect("a request ends once");
        assert_eq!(asked.client, client);
        self.answered += 1;
        match outcome {
            ClientOutcome::Read(value) => self.note(tag, asked, value, Some(self.now)),
            ClientOutcome::Written => self.note(tag, asked, asked.written.unwrap_or_default(), Some(self.now)),
            other => panic!("{:?}: {tag:?} ends with {other:?}", self.plan),
        }
        self.ask(client);
    }

    fn note(&mut self, tag: Tag, asked: Asked, value: Value, responded: Option<Time>) {
        let action = if asked.written.is_some() { Action::Write } else { Action::Read };
        let (register, value, invoked) = ((0, asked.page.0), value.0, asked.invoked);
        self.history.record(history::Operation { id: tag.0, register, action, value, invoked, responded });
    }
}

const CALM: Plan = Plan { seed: 0, servers: 2, loss_percent: 0, losses: 0, cuts: 0, remembers: true };

fn assert_lawful(plan: Plan) -> World {
    let world = World::play(plan);
    if let Err(violation) = world.history.check() {
        panic!("{plan:?}: {violation}");
    }
    let open: usize = world.clients.iter().map(Client::under_way).sum();
    assert_eq!(open, 0, "{plan:?}: every request ends once all is calm");
    world
}

#[test]
fn clients_of_a_rack_without_faults_are_served() {
    for seed in 0..4 {
        let world = assert_lawful(Plan { seed, servers: 2 + seed as usize % 2, ..CALM });
        assert!(world.answered > 1_000, "{}", world.answered);
        let known: u64 = world.servers.iter().map(|server| server.counters().writes_known).sum();
        assert_eq!(known, 0);
    }
}

#[test]
fn no_write_is_done_twice_when_packets_are_lost_doubled_and_late() {
    let worlds: Vec<World> = (0..60)
        .map(|seed| assert_lawful(Plan { seed, servers: 2 + seed as usize % 2, loss_percent: 5, ..CALM }))
        .collect();
    let known = worlds.iter().flat_map(|world| &world.servers).map(|server| server.counters().writes_known);
    assert!(known.sum::<u64>() > 100, "answers are lost");
}

#[test]
fn no_write_is_done_twice_when_two_of_two_servers_are_lost_within_its_life() {
    (0..150).for_each(|seed| drop(assert_lawful(Plan { seed, loss_percent: 6, losses: 6, ..CALM })));
}

#[test]
fn no_write_is_done_twice_when_two_of_three_servers_are_lost_within_its_life() {
    (0..150).for_each(|seed| drop(assert_lawful(Plan { seed, servers: 3, loss_percent: 6, losses: 6, ..CALM })));
}

#[test]
fn no_write_is_done_twice_when_everything_happens() {
    let plan = Plan { loss_percent: 8, losses: 4, cuts: 5, ..CALM };
    (0..200).for_each(|seed| drop(assert_lawful(Plan { seed, servers: 2 + seed as usize % 2, ..plan })));
}

/// The tests can fail: servers that remember nothing show it.
#[test]
fn servers_that_remember_nothing_are_caught() {
    let plan = Plan { loss_percent: 6, losses: 6, remembers: false, ..CALM };
    let mut worlds = (0..50).map(|seed| World::play(Plan { seed, ..plan }));
    assert!(worlds.any(|world| world.history.check().is_err()));
}
