//! Two servers, a control plane and a switch that says yes, no or nothing, over devices that run
//! out of blocks and networks that lose packets; one of the servers fails, or is cut off from all
//! but its clients, and comes back, again and again.

use super::*;
use crate::control::{Control, ControlConfig, ControlIn, ControlOut, ServerPlace};
use base::{Seed, Stream};
use proptest::prelude::*;

const CONTROL: NodeId = NodeId(70);
const SERVERS: [(NodeId, VssdId); 2] = [(SERVER, VSSD), (PEER, PEERS_VSSD)];
const PAGES: u64 = 8;
const BLOCKS: u32 = 20;
/// Requests and faults come until then.
const BUSY: Time = Time::ms(400);
/// Then all must settle: retransmissions, a rebuild, collections.
const QUIET: Time = Time::ms(900);
/// Then every page is read at both servers.
const END: Time = Time::ms(1_000);

#[derive(Clone, Copy, Debug)]
enum Event {
    Deliver(Packet),
    Device(usize, NodeIn),
    Collect(usize, u32),
    Power(usize, bool),
    /// The links between this server and everyone but the clients work, or do not.
    Link(usize, bool),
}

/// What the test knows of one request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    page: Page,
    /// None for a read.
    written: Option<Value>,
    at: Time,
    answer: Option<(Time, Result<Value, Refusal>)>,
}

struct Rack {
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    scheduled: u64,
    servers: Vec<StorageNode>,
    control: Control,
    flash: BTreeMap<(usize, u64), Value>,
    free: [u32; 2],
    asked: Vec<Asked>,
    accepted: u64,
    answered: u64,
    lost_with_power: u64,
    power: [bool; 2],
    link: [bool; 2],
    chance: Stream,
}

fn server_config(server: usize, scope: CacheScope, policy: Policy) -> NodeConfig {
    let mut config = config();
    let (id, name) = SERVERS[server];
    config.id = id;
    config.vssds = vec![VssdConfig { pages: PAGES, replicas: with_peer(), ..vssd(name, 0) }];
    config.cache = CacheConfig { pages: 3, flush_above: server as u32, scope };
    config.scheduler = SchedulerConfig { policy, coordinated: server == 0 };
    config.device_depth = 2;
    if server == 1 {
        (config.write_ack, config.collection.grain) = (WriteAck::Dequeued, Grain::Channel);
    }
    config.collection.check_period = Span::ms(20);
    config.collection.first_check = Time::ms(10);
    config.replication.fetch_window = 2;
    config.control = Some(ControlLink { node: CONTROL, heartbeat: Span::ms(2), lease: Span::ms(5) });
    config
}

impl Rack {
    fn new(seed: u64, scope: CacheScope, policy: Policy) -> Rack {
        let servers = SERVERS.map(|(node, _)| ServerPlace { node, rack: 0, room: 8 }).to_vec();
        let control = ControlConfig {
            own: CONTROL,
            rack: 0,
            servers,
            groups: vec![SERVERS.to_vec()],
            clients: Vec::new(),
            beat: Span::ms(2),
            misses: 4,
            patience: Span::ms(24),
            lease: Span::ms(5),
            resend: Span::ms(4),
            first_beat: Span::ZERO,
            replace_after: Span::secs(1_000),
            next_vssd: 1_000,
            vssd_step: 1,
        };
        let node = |server| StorageNode::new(server_config(server, scope, policy)).expect("a configuration that fits");
        Rack {
            now: Time::ZERO,
            events: BTreeMap::new(),
            scheduled: 0,
            servers: vec![node(0), node(1)],
            control: Control::new(control).expect("a configuration that fits"),
            flash: BTreeMap::new(),
            free: [BLOCKS; 2],
            asked: Vec::new(),
            accepted: 0,
            answered: 0,
            lost_with_power: 0,
            power: [true; 2],
            link: [true; 2],
            chance: Seed(seed).stream("rack"),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.events.insert((time, self.scheduled), event);
        self.scheduled += 1;
    }
    fn after_us(&mut self, least: u64, most: u64, event: Event) {
        let delay = Span::us(least + self.chance.below(most - least));
        self.at(self.now + delay, event);
    }
    fn once_in(&mut self, count: u64) -> bool {
        self.chance.below(count) == 0
    }

    /// The network loses a packet in fifty, until all is to settle.
    fn loses(&mut self) -> bool {
        self.now < BUSY && self.once_in(50)
    }

    /// A client asks at some moment.
    fn plan_request(&mut self, at: Time, server: usize, page: Page, is_write: bool) {
        let tag = Tag(self.asked.len() as u64);
        let value = Value(tag.0 + 1);
        self.asked.push(Asked { page, written: is_write.then_some(value), at, answer: None });
        let (target, vssd) = SERVERS[server];
        let body = if is_write { Body::Write { tag, page, value, session: None } } else { Body::Read { tag, page } };
        self.at(at, Event::Deliver(Packet { vssd, latency_ns: 0, source: CLIENT, target, body }));
    }

    fn plan_load(&mut self, requests: u64) {
        for _ in 0..requests {
            let at = Time::us(self.chance.below(BUSY.as_ps() / Time::us(1).as_ps()));
            let (server, page) = (self.chance.below(2) as usize, Page(self.chance.below(PAGES)));
            let is_write = self.once_in(2);
            self.plan_request(at, server, page, is_write);
        }
    }

    fn plan_failures(&mut self, server: usize, failures: u64) {
        let mut at = Time::ZERO;
        for _ in 0..failures {
            at += Span::ms(5 + self.chance.below(80));
            let fault = if self.once_in(2) { Event::Power } else { Event::Link };
            self.at(at, fault(server, false));
            at += Span::ms(1 + self.chance.below(40));
            self.at(at, fault(server, true));
        }
    }

    /// Every page is read at both servers.
    fn plan_last_look(&mut self) -> usize {
        let first = self.asked.len();
        for page in 0..PAGES {
            (0..2).for_each(|server| self.plan_request(QUIET, server, Page(page), false));
        }
        first
    }

    fn run(&mut self, until: Time) {
        loop {
            let event = self.events.first_key_value().map(|((time, _), _)| *time);
            let wakes = self.servers.iter().map(|server| server.next_wakeup()).chain([self.control.next_wakeup()]);
            let wake = wakes.flatten().min();
            let Some(next) = event.into_iter().chain(wake).min().filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            self.wake();
            if event.is_some_and(|event| event <= self.now)
                && let Some((_, event)) = self.events.pop_first()
            {
                self.happen(event);
            }
        }
        self.now = until;
    }

    fn wake(&mut self) {
        for server in 0..2 {
            if self.servers[server].next_wakeup().is_some_and(|time| time <= self.now) {
                let mut out = Vec::new();
                self.servers[server].on_wakeup(self.now, &mut out);
                self.carry_out(server, out);
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
            Event::Deliver(packet) => self.deliver(packet),
            Event::Device(server, NodeIn::Collected { .. }) if !self.power[server] => {}
            Event::Device(server, input) => self.tell(server, input),
            Event::Collect(server, stream) => self.collect(server, stream),
            Event::Link(server, works) => self.link[server] = works,
            Event::Power(server, on) => {
                if !on {
                    self.lost_with_power += self.servers[server].open_requests() as u64;
                }
                self.power[server] = on;
                self.tell(server, if on { NodeIn::Recover } else { NodeIn::Fail });
            }
        }
    }

    fn is_cut_off(&self, packet: &Packet) -> bool {
        let mut ends =
            SERVERS.iter().zip(self.link).filter(|((server, _), _)| [packet.source, packet.target].contains(server));
        packet.source != CLIENT && ends.any(|(_, works)| !works)
    }

    fn deliver(&mut self, packet: Packet) {
        let Some(server) = SERVERS.iter().position(|(node, _)| *node == packet.target) else { return };
        let is_request = matches!(packet.body, Body::Read { .. } | Body::Write { .. });
        self.accepted += u64::from(is_request && self.power[server]);
        self.tell(server, NodeIn::Packet(packet));
    }

    fn tell(&mut self, server: usize, input: NodeIn) {
        let mut out = Vec::new();
        self.servers[server].on(self.now, input, &mut out);
        self.carry_out(server, out);
    }

    fn control_says(&mut self, out: Vec<ControlOut>) {
        for said in out {
            match said {
                ControlOut::Send(packet) if packet.target != CONTROL && !self.loses() => {
                    self.after_us(20, 200, Event::Deliver(packet));
                }
                _ => {}
            }
        }
    }

    fn carry_out(&mut self, server: usize, out: Vec<NodeOut>) {
        for decided in out {
            match decided {
                NodeOut::Send(packet) => self.send(packet),
                NodeOut::Read { job, page, .. } => {
                    let value = self.flash.get(&(server, page.0)).copied().unwrap_or_default();
                    self.after_us(40, 400, Event::Device(server, NodeIn::ReadDone { job, value }));
                }
                NodeOut::Write { job, page, value, .. } => self.program(server, job, page, value),
                NodeOut::Collect { stream, .. } => self.after_us(200, 2_000, Event::Collect(server, stream)),
                _ => panic!("{decided:?} has no place in this test"),
            }
        }
    }

    fn send(&mut self, packet: Packet) {
        match packet.body {
            Body::ReadReply { tag, value } => self.note_answer(tag, value),
            Body::WriteReply { tag, done } => self.note_answer(tag, done.map(|()| Value(0))),
            Body::Collection(CollectionNote::Soft | CollectionNote::Regular) if !self.once_in(3) => {
                let is_soft = packet.body == Body::Collection(CollectionNote::Soft);
                let note = if is_soft && self.once_in(2) { CollectionNote::Delay } else { CollectionNote::Accept };
                let answer = Packet { target: packet.source, body: Body::Collection(note), ..packet };
                self.after_us(20, 200, Event::Deliver(answer));
            }
            Body::Collection(_) => {}
            _ if self.loses() => {}
            _ => self.after_us(20, 200, Event::Deliver(packet)),
        }
    }

    fn note_answer(&mut self, tag: Tag, outcome: Result<Value, Refusal>) {
        let asked = &mut self.asked[tag.0 as usize];
        assert_eq!(asked.answer, None, "{asked:?} is answered a second time");
        asked.answer = Some((self.now, outcome));
        self.answered += 1;
    }

    /// The device programs a page, or has no block left. One write in three opens a new block.
    fn program(&mut self, server: usize, job: DeviceJob, page: Page, value: Value) {
        if self.free[server] == 0 {
            return self.after_us(1, 3, Event::Device(server, NodeIn::WriteRefused { job }));
        }
        if self.once_in(3) {
            self.free[server] -= 1;
            self.report_blocks(server);
        }
        self.flash.insert((server, page.0), value);
        self.after_us(100, 1_000, Event::Device(server, NodeIn::WriteDone { job }));
    }

    fn collect(&mut self, server: usize, stream: u32) {
        let nothing = self.free[server] == BLOCKS;
        let freed = !nothing && self.once_in(2);
        self.free[server] += u32::from(freed);
        self.report_blocks(server);
        let vssd = SERVERS[server].1;
        self.at(self.now, Event::Device(server, NodeIn::Collected { vssd, stream, freed, nothing }));
    }

    fn report_blocks(&mut self, server: usize) {
        let blocks = NodeIn::Blocks { vssd: SERVERS[server].1, free: self.free[server], owned: BLOCKS };
        self.at(self.now, Event::Device(server, blocks));
    }

    /// When a write had certainly taken effect: its answer, or the first answer to a read that saw
    /// it.
    fn effects(&self) -> Vec<Option<Time>> {
        let mut effects: Vec<Option<Time>> = vec![None; self.asked.len()];
        for (number, asked) in self.asked.iter().enumerate() {
            let Some((at, Ok(value))) = asked.answer else { continue };
            let writer = if asked.written.is_some() { Some(number) } else { (value.0 as usize).checked_sub(1) };
            if let Some(writer) = writer {
                effects[writer] = Some(effects[writer].map_or(at, |known| known.min(at)));
            }
        }
        effects
    }

    /// No read may return a value that was written over, with an effect that somebody had seen,
    /// before the read began.
    fn assert_no_read_is_outdated(&self) {
        let effects = self.effects();
        for read in self.asked.iter().filter(|asked| asked.written.is_none()) {
            let Some((_, Ok(value))) = read.answer else { continue };
            let written_by = match (value.0 as usize).checked_sub(1) {
                None => Time::ZERO,
                Some(writer) => {
                    assert_eq!((self.asked[writer].written, self.asked[writer].page), (Some(value), read.page));
                    effects[writer].expect("this very read has seen it")
                }
            };
            let over = self.asked.iter().zip(&effects).find(|(later, effect)| {
                let is_write = later.written.is_some() && later.page == read.page && later.at > written_by;
                is_write && effect.is_some_and(|effect| effect < read.at)
            });
            assert!(over.is_none(), "{read:?} is outdated by {over:?}");
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Fifo),
        Just(Policy::Deadline { read: Span::us(500), write: Span::us(1_750) }),
        Just(Policy::Kyber { read: Span::us(750), write: Span::ms(3) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever devices, network, switch and power do: no request is answered twice; each that
    /// reached a running server was answered, or lost with the power, or kept unanswered for a
    /// reason that is counted; no read is outdated; and in the end both servers serve, with the
    /// same data.
    #[test]
    fn every_request_ends_once_and_no_read_is_outdated(
        seed in any::<u64>(), requests in 50_u64..3_000, victim in 0_usize..2, failures in 0_u64..5, shared in any::<bool>(), policy in policy(),
    ) {
        let scope = if shared { CacheScope::Server } else { CacheScope::Vssd };
        let mut rack = Rack::new(seed, scope, policy);
        (0..2).for_each(|server| rack.report_blocks(server));
        rack.plan_load(requests);
        rack.plan_failures(victim, failures);
        let last_look = rack.plan_last_look();
        rack.run(END);

        let unanswered: u64 = rack.servers.iter().map(|server| server.counters().unanswered).sum();
        prop_assert!(rack.servers.iter().all(|server| server.open_requests() == 0));
        prop_assert_eq!(rack.accepted, rack.answered + unanswered + rack.lost_with_power);
        rack.assert_no_read_is_outdated();
        for looks in rack.asked[last_look..].chunks(2) {
            let values: Vec<_> = looks.iter().map(|look| look.answer.map(|(_, outcome)| outcome)).collect();
            prop_assert!(matches!(values[0], Some(Ok(_))) && values[0] == values[1], "{:?}", values);
        }
    }
}

#[test]
fn without_faults_every_request_is_served() {
    let mut rack = Rack::new(8, CacheScope::Vssd, Policy::Fifo);
    (0..2).for_each(|server| rack.report_blocks(server));
    // The first echo of a heartbeat is the right to serve.
    rack.run(Time::ms(3));
    for number in 0..500 {
        let (server, page) = (number % 2, Page(number as u64 % PAGES));
        rack.plan_request(Time::ms(20) + Span::us(number as u64 * 500), server, page, number % 3 == 0);
    }
    rack.run(END);
    let served = rack.asked.iter().filter(|asked| matches!(asked.answer, Some((_, Ok(_))))).count();
    assert!(served >= 490, "{served} of 500; a lost heartbeat may cost a lease");
    assert!(rack.servers.iter().any(|server| server.counters().writes_refused > 0), "the devices ran out of blocks");
}
