//! All roles of a rack together, in virtual time.
//!
//! A role takes packets in the order of their coming, each for a while, then lets time pass for its
//! timers and sleeps. What a role sends comes at its receiver after the time of the link.
//! Roles of a machine share its processors. One that wakes up gets a free one, or waits in a row;
//! it keeps it until it sleeps. Hosts and targets, which no journal tells of, have processors
//! behind each request.

use super::Anew;
use super::model::{Duty, Kind, Machine, Model, Pause};
use super::requests::{Request, Requests};
use super::run::{Life, TwinError};
use crate::configs::{self, name_of};
use crate::journal::Entry;
use base::{NodeId, Seed, Span, Time};
use blox::{Packet, Page};
use kernel::EventQueue;
use plan::rack::Rack;
use runtime::datagrams::RECEIVED_MAX;
use runtime::moments::{Chance, Loads, Moments, SOON, due};
use std::collections::{BTreeMap, VecDeque};

/// Packets that a role takes before it lets time pass, as a live one.
const BATCH: u32 = 64;
/// How long after the end, and after the last one that ended, requests may take: doors give up
/// before.
const GRACE: Span = Span::secs(40);

/// Turns of target, host and target between two requests.
const OTHERS: u64 = 3;

/// A page that a door is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAsk {
    /// Its time by the clock of the rack.
    pub at: Time,
    /// The door.
    pub door: NodeId,
    /// The volume's place in the rack's file.
    pub volume: u32,
    /// The page.
    pub page: Page,
    /// Whether it is to be written.
    pub is_write: bool,
    /// It comes when so many earlier ones of its door have ended, and not before its time.
    pub ended: u64,
    /// It comes so long after the last of these has ended, whenever that is.
    pub soon: Option<Span>,
}

impl PageAsk {
    /// The one at this place of a host that keeps `depth` open.
    pub(crate) fn of_depth(self, place: u64, depth: u64) -> PageAsk {
        let ended = (place + 1).saturating_sub(depth);
        PageAsk { ended, soon: Some(Span::ZERO), ..self }
    }
}

/// What doors are asked, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The pages.
    pub pages: Vec<PageAsk>,
    /// Pages that are asked for before. The others come as much later as these take.
    pub fill: Vec<PageAsk>,
}

impl Load {
    /// What doors were asked. A host that waited for an end waits for it again: what its door is
    /// asked soon after one has ended comes as soon after it. All else comes at its time, when as
    /// many have ended as then.
    pub fn of(requests: &Requests) -> Load {
        let mut doors: BTreeMap<NodeId, Vec<&Request>> = BTreeMap::new();
        requests.all().iter().for_each(|one| doors.entry(one.door).or_default().push(one));
        let mut pages = Vec::new();
        for all in doors.values_mut() {
            all.sort_by_key(|one| one.asked);
            // One without an end keeps nobody waiting.
            let mut ends: Vec<Time> = all.iter().map(|one| one.ended.map_or(one.asked, |(at, _)| at)).collect();
            ends.sort_unstable();
            pages.extend(all.iter().enumerate().map(|(place, one)| {
                let ended = ends.partition_point(|end| *end <= one.asked).min(place);
                let last = ended.checked_sub(1).map(|last| one.asked.saturating_since(ends[last]));
                PageAsk {
                    at: one.asked,
                    door: one.door,
                    volume: one.volume,
                    page: one.page,
                    is_write: one.is_write,
                    ended: ended as u64,
                    soon: last.filter(|gap| *gap <= SOON),
                }
            }));
        }
        pages.sort_by_key(|page| page.at);
        Load { pages, fill: Vec::new() }
    }

    fn loads(&self) -> Loads<2> {
        let mut loads = Loads::default();
        self.pages.iter().for_each(|ask| loads.note(ask.at, usize::from(ask.is_write)));
        loads
    }
}

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The requests of all doors.
    pub requests: Requests,
    /// The counters of each role, by its name: of all its lives together.
    pub numbers: BTreeMap<String, BTreeMap<String, u64>>,
    /// The first requests of each door that filled its volume.
    pub filled: BTreeMap<NodeId, usize>,
    /// When the simulation ended.
    pub end: Time,
    /// Requests that had no end when the simulation had one.
    pub open: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet comes at a node.
    Comes { node: u32, packet: Packet },
    /// A host may ask this door.
    Asked { door: u32 },
    /// The life at this place begins.
    Begins(u32),
    /// The node's life ends.
    Ends { node: u32 },
    /// A node that was asleep wants a processor.
    Wakes(Waking),
    /// A node that is awake goes on, in this of its lives.
    Goes { node: u32, life: u32 },
    /// Others are done with a processor of this machine.
    OthersRest { machine: u32, others: Others },
    /// A node is kept waiting for so long.
    Pauses { node: u32, took: Span },
    /// A timer of a node fires, if it is still set.
    Fires { node: u32 },
}

/// Work of others behind a request: of target, host and target again, one after another.
#[derive(Clone, Copy, Debug)]
struct Others {
    left: u8,
    each: Span,
}

/// Who waits for a processor.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Node(Waking),
    Others(Others),
}

/// A node that wakes up in this of its lives, not before it is awake.
#[derive(Clone, Copy, Debug)]
struct Waking {
    node: u32,
    life: u32,
    awake: Time,
}

/// Processors that are free, and who waits where none is.
struct Processors {
    free: u32,
    waiting: VecDeque<Waiting>,
}

struct Node {
    /// Its machine, where its processors are known, and whether it has one of them.
    machine: Option<usize>,
    has_processor: bool,
    /// None while it does not run.
    anew: Option<Anew>,
    kind: Kind,
    start: Time,
    /// How often it was started.
    life: u32,
    packets: VecDeque<Packet>,
    asks: VecDeque<PageAsk>,
    /// What it takes one after another, and what it has to send when that is done.
    batch: VecDeque<Input>,
    sends: Vec<(NodeId, Packet)>,
    /// Packets of the last call.
    received: usize,
    /// What the door will be asked for.
    left: VecDeque<PageAsk>,
    /// Requests that the door has begun with, or will next, and that have no end.
    open: u64,
    /// When others ended, or were lost.
    ends: Vec<Time>,
    is_awake: bool,
    /// Whether it has done something since it woke, and is about to sleep.
    has_worked: bool,
    is_resting: bool,
    taken: u32,
    slept_at: Time,
    /// Until then it does nothing.
    paused_until: Time,
    /// What the timer is set for, and when it fires.
    alarm: Option<(Time, Time)>,
    chance: Chance,
}

/// What a node takes.
enum Input {
    Ask(PageAsk),
    Packet(Packet),
}

/// The place of a node's machine, where its processors are known.
fn machine_of(model: &Model, node: u32) -> Option<usize> {
    let has = |machine: &Machine| machine.processors > 0 && machine.nodes.contains(&node);
    model.machines.iter().position(has)
}

impl Node {
    /// What it takes next: all that it was asked, or the packets that one call gives it. Each call
    /// asks for twice as many as came last, one at first, as that of a live role.
    fn next_batch(&mut self) {
        if !self.asks.is_empty() {
            return self.batch.extend(self.asks.drain(..).map(Input::Ask));
        }
        let wanted = (2 * self.received).clamp(1, RECEIVED_MAX).min((BATCH - self.taken) as usize);
        self.received = wanted.min(self.packets.len());
        self.batch.extend(self.packets.drain(..self.received).map(Input::Packet));
    }
}

/// Simulates a rack from the beginnings of its roles until all requests have their end. A role that
/// starts again has on flash what the live one had.
///
/// # Errors
/// When a role cannot be made, or the model lacks something.
pub fn simulate(rack: &Rack, lives: &[Life], load: &Load, model: &Model, seed: Seed) -> Result<Simulated, TwinError> {
    if let Some(lack) = model.lacks() {
        return Err(TwinError::Lacking(format!("the model is of a run without {lack}")));
    }
    let mut simulation = Simulation::new(rack, lives, load, model, seed);
    simulation.run()?;
    Ok(simulation.finish())
}

struct Simulation<'a> {
    rack: &'a Rack,
    lives: &'a [Life],
    nodes: Vec<Node>,
    machines: Vec<Processors>,
    queue: EventQueue<Event>,
    load: &'a Load,
    model: &'a Model,
    requests: Requests,
    open: u64,
    /// Whether volumes are being filled, and by how much later the rest comes.
    is_filling: bool,
    later: Span,
    /// When a request ended last.
    ended: Time,
    now: Time,
    numbers: BTreeMap<String, BTreeMap<String, u64>>,
}

impl<'a> Simulation<'a> {
    fn new(rack: &'a Rack, lives: &'a [Life], load: &'a Load, model: &'a Model, seed: Seed) -> Simulation<'a> {
        let mut queue = EventQueue::new();
        (0..).zip(lives).for_each(|(place, life)| queue.push(life.start, Event::Begins(place)));
        // Most slow times are a wait for a core, which another role had meanwhile: each draws of
        // moments by its own chance, or all would be slow at once.
        let moments = Moments::new(&load.loads(), &model.loads);
        let chance = |node| Chance::new(seed.stream(&format!("node/{node}")), moments.clone());
        let node = |node| Node {
            machine: machine_of(model, node),
            has_processor: false,
            anew: None,
            kind: Kind::of(rack, NodeId(node)),
            start: Time::ZERO,
            life: 0,
            packets: VecDeque::new(),
            asks: VecDeque::new(),
            batch: VecDeque::new(),
            sends: Vec::new(),
            received: 0,
            left: VecDeque::new(),
            open: 0,
            ends: Vec::new(),
            is_awake: false,
            has_worked: false,
            is_resting: false,
            taken: 0,
            slept_at: Time::ZERO,
            paused_until: Time::ZERO,
            alarm: None,
            chance: chance(node),
        };
        let nodes = (0..=configs::switch_node(rack).0).map(node).collect();
        let processors = |machine: &Machine| Processors { free: machine.processors, waiting: VecDeque::new() };
        let machines = model.machines.iter().map(processors).collect();
        let (requests, numbers) = (Requests::default(), BTreeMap::new());
        let (open, is_filling, later, ended, now) = (0, !load.fill.is_empty(), Span::ZERO, Time::ZERO, Time::ZERO);
        Simulation {
            rack,
            lives,
            nodes,
            machines,
            queue,
            load,
            model,
            requests,
            open,
            is_filling,
            later,
            ended,
            now,
            numbers,
        }
    }

    /// Those of the model, as far as this rack has their nodes.
    fn expect_pauses(&mut self) {
        for Pause { at_ns, took_ns, node } in &self.model.pauses {
            if (*node as usize) < self.nodes.len() {
                let pauses = Event::Pauses { node: *node, took: Span::ns(*took_ns) };
                self.queue.push(Time::ZERO + Span::ns(*at_ns), pauses);
            }
        }
    }

    fn run(&mut self) -> Result<(), TwinError> {
        self.expect_pauses();
        self.expect(if self.is_filling { &self.load.fill } else { &self.load.pages });
        let end = self.lives.iter().map(|life| life.end).max().unwrap_or(Time::ZERO);
        while let Some((now, event)) = self.queue.pop() {
            let is_over = now > end && self.open == 0 && self.nodes.iter().all(|node| node.left.is_empty());
            if is_over || now > end.max(self.ended) + GRACE {
                break;
            }
            self.now = now;
            match event {
                Event::Begins(place) => self.begins(now, place)?,
                Event::Ends { node } => self.ends(node),
                Event::Comes { node, packet } => self.comes(now, node, packet),
                Event::Asked { door } => self.asked(now, door),
                Event::Goes { node, life } if self.nodes[node as usize].life == life => self.goes(now, node),
                Event::Goes { .. } => {}
                Event::Wakes(waking) => self.wakes(now, waking),
                Event::OthersRest { machine, others } => self.others_rest(now, machine as usize, others),
                Event::Pauses { node, took } => {
                    let at = &mut self.nodes[node as usize];
                    at.paused_until = at.paused_until.max(now + took);
                }
                Event::Fires { node } => self.fires(now, node),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Simulated {
        // Nobody gets what roles leave behind.
        self.nodes.iter_mut().for_each(|node| node.has_processor = false);
        (0..self.nodes.len() as u32).for_each(|node| self.ends(node));
        self.requests.finish();
        let mut filled = BTreeMap::new();
        self.load.fill.iter().for_each(|ask| *filled.entry(ask.door).or_default() += 1);
        Simulated { numbers: self.numbers, open: self.open, requests: self.requests, filled, end: self.now }
    }

    fn begins(&mut self, now: Time, place: u32) -> Result<(), TwinError> {
        let life = &self.lives[place as usize];
        let node = NodeId(life.beginning.node);
        self.requests.begin(node, &life.beginning.state);
        let at = &mut self.nodes[node.index()];
        at.anew = Some(Anew::new(self.rack, &life.beginning).map_err(TwinError::Start)?);
        (at.start, at.life, at.is_awake, at.alarm) = (now, at.life + 1, true, None);
        self.queue.push(now, Event::Wakes(Waking { node: node.0, life: at.life, awake: now }));
        if life.ends {
            self.queue.push(life.end.max(now), Event::Ends { node: node.0 });
        }
        Ok(())
    }

    /// A role that ends is deaf, and its counters are what they are.
    fn ends(&mut self, node: u32) {
        let at = &mut self.nodes[node as usize];
        if let Some(anew) = at.anew.take() {
            let numbers = self.numbers.entry(name_of(self.rack, NodeId(node))).or_default();
            anew.counters().into_iter().for_each(|(name, value)| *numbers.entry(name).or_default() += value);
            at.packets.clear();
            at.asks.clear();
            at.batch.clear();
            at.sends.clear();
            at.ends.extend((0..std::mem::take(&mut at.open)).map(|_| self.now));
            (at.is_awake, at.life, at.alarm) = (false, at.life + 1, None);
            self.rests(self.now, node);
        }
    }

    fn comes(&mut self, now: Time, node: u32, packet: Packet) {
        let at = &mut self.nodes[node as usize];
        // A socket that is not open loses what comes.
        if at.anew.is_none() {
            return;
        }
        at.packets.push_back(packet);
        if !at.is_awake {
            at.is_awake = true;
            let slept = now.saturating_since(at.slept_at);
            let awake = now + self.model.host(at.kind).wake(slept, at.chance.at(now));
            let waking = Waking { node, life: at.life, awake };
            self.wakes(now, waking);
        }
    }

    /// Hosts will ask for these pages.
    fn expect(&mut self, pages: &[PageAsk]) {
        pages.iter().for_each(|ask| self.nodes[ask.door.index()].left.push_back(*ask));
        for (door, node) in (0..).zip(&mut self.nodes) {
            node.ends.clear();
            if let Some(first) = node.left.front() {
                self.queue.push(first.at + self.later, Event::Asked { door });
            }
        }
    }

    /// Hosts ask a door for all that they may.
    fn asked(&mut self, now: Time, door: u32) {
        let at = &mut self.nodes[door as usize];
        while let Some(ask) = at.left.front().copied()
            && let Some(due) = due(ask.at + self.later, ask.ended, ask.soon, &at.ends)
        {
            if due > now {
                self.queue.push(due, Event::Asked { door });
                break;
            }
            at.left.pop_front();
            if at.anew.is_none() {
                at.ends.push(now);
                continue;
            }
            (self.open, at.open) = (self.open + 1, at.open + 1);
            at.asks.push_back(ask);
            let PageAsk { volume, page, is_write, .. } = ask;
            self.requests.see(now, NodeId(door), &Entry::Asked { at: now, volume, page, is_write });
        }
        // The load says when the door begins with it, not when it is woken.
        if !at.asks.is_empty() && !at.is_awake {
            at.is_awake = true;
            self.queue.push(now, Event::Wakes(Waking { node: door, life: at.life, awake: now }));
        }
    }

    fn fires(&mut self, now: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        if !at.is_awake && at.alarm.is_some_and(|(_, fires)| fires <= now) {
            (at.is_awake, at.alarm) = (true, None);
            let life = at.life;
            self.wakes(now, Waking { node, life, awake: now });
        }
    }

    /// A node gets a processor, or waits for one.
    fn wakes(&mut self, now: Time, waking: Waking) {
        let Waking { node, life, awake } = waking;
        let at = &mut self.nodes[node as usize];
        if at.life != life {
            return;
        }
        if let Some(machine) = at.machine {
            let processors = &mut self.machines[machine];
            if processors.free == 0 {
                return processors.waiting.push_back(Waiting::Node(waking));
            }
            (processors.free, at.has_processor) = (processors.free - 1, true);
        }
        self.queue.push(now.max(awake), Event::Goes { node, life });
    }

    /// A node gives its processor back.
    fn rests(&mut self, now: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        if std::mem::take(&mut at.has_processor)
            && let Some(machine) = at.machine
        {
            self.pass_on(now, machine);
        }
    }

    /// A processor of a machine is free: who has waited longest has it.
    fn pass_on(&mut self, now: Time, machine: usize) {
        while let Some(next) = self.machines[machine].waiting.pop_front() {
            match next {
                Waiting::Node(Waking { node, life, awake }) if self.nodes[node as usize].life == life => {
                    self.nodes[node as usize].has_processor = true;
                    return self.queue.push(now.max(awake), Event::Goes { node, life });
                }
                Waiting::Node(_) => {}
                Waiting::Others(others) => return self.others_run(now, machine, others),
            }
        }
        self.machines[machine].free += 1;
    }

    fn others_run(&mut self, now: Time, machine: usize, others: Others) {
        self.queue.push(now + others.each, Event::OthersRest { machine: machine as u32, others });
    }

    /// Others want a processor.
    fn others_wake(&mut self, now: Time, machine: usize, others: Others) {
        let processors = &mut self.machines[machine];
        if processors.free == 0 {
            return processors.waiting.push_back(Waiting::Others(others));
        }
        processors.free -= 1;
        self.others_run(now, machine, others);
    }

    fn others_rest(&mut self, now: Time, machine: usize, Others { left, each }: Others) {
        self.pass_on(now, machine);
        if left > 0 {
            self.others_wake(now, machine, Others { left: left - 1, each });
        }
    }

    /// A node that is awake hands over what its batch has caused, does what is next, or goes to
    /// sleep.
    fn goes(&mut self, now: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        if at.paused_until > now {
            return self.queue.push(at.paused_until, Event::Goes { node, life: at.life });
        }
        if at.batch.is_empty() && !at.sends.is_empty() {
            return self.leave(now, node);
        }
        if at.batch.is_empty() {
            at.next_batch();
        }
        let local = Time::ZERO + now.saturating_since(at.start);
        let follows = at.taken > 0;
        let Some((duty, has_data)) = self.does(now, local, node) else { return };
        let at = &mut self.nodes[node as usize];
        if duty == Duty::Rest && at.packets.is_empty() && at.asks.is_empty() {
            return self.rest(now, local, node);
        }
        (at.is_resting, at.has_worked) = (false, at.has_worked || duty != Duty::Rest);
        let host = self.model.host(at.kind);
        let (count, sends_data) = at.anew.as_ref().map_or((0, false), Anew::sends);
        let times = if duty == Duty::Turn { count } else { 1 };
        let took = (0..times).map(|_| host.takes(duty, has_data || sends_data, follows, at.chance.at(now)));
        let end = took.fold(now, |end, took| end + took);
        let life = at.life;
        self.carry_out(now, node);
        self.queue.push(end, Event::Goes { node, life });
    }

    /// A node that runs does what is next in its batch, or lets time pass. Returns what that is,
    /// and whether it came with a page of data.
    fn does(&mut self, now: Time, local: Time, node: u32) -> Option<(Duty, bool)> {
        let at = &mut self.nodes[node as usize];
        let anew = at.anew.as_mut()?;
        Some(match at.batch.pop_front() {
            Some(Input::Ask(PageAsk { volume, page, is_write, .. })) => {
                anew.ask(volume, page, is_write);
                anew.begin(local);
                (Duty::Ask, false)
            }
            Some(Input::Packet(packet)) => {
                self.requests.see(now, NodeId(node), &Entry::Packet { at: now, packet });
                anew.take(local, packet);
                at.taken += 1;
                (Duty::Packet, packet.body.value().is_some())
            }
            None => {
                at.taken = 0;
                anew.wake(local);
                (if anew.done.0.is_empty() { Duty::Rest } else { Duty::Turn }, false)
            }
        })
    }

    /// A node hands over what it has to send.
    fn leave(&mut self, now: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        let (sends, life, host) = (std::mem::take(&mut at.sends), at.life, self.model.host(at.kind));
        let has_data = sends.iter().any(|(_, packet)| packet.body.value().is_some());
        let took = sends.iter().map(|_| host.takes(Duty::Leave, has_data, false, at.chance.at(now)));
        let end = took.fold(now, |end, took| end + took);
        let from = at.kind;
        for (to, packet) in sends {
            let least = self.model.least(from, self.nodes[to.index()].kind);
            self.queue.push(now + least, Event::Comes { node: to.0, packet });
        }
        self.queue.push(end, Event::Goes { node, life });
    }

    /// Carries out what a node has done.
    fn carry_out(&mut self, now: Time, node: u32) {
        let done = self.nodes[node as usize].anew.as_mut().map(|anew| std::mem::take(&mut anew.done.0));
        for entry in done.unwrap_or_default() {
            self.requests.see(now, NodeId(node), &entry);
            let at = &mut self.nodes[node as usize];
            match entry {
                Entry::Sent { to, packet } => at.sends.push((to, packet)),
                Entry::Ended { .. } => {
                    self.open = self.open.saturating_sub(1);
                    self.ended = now;
                    at.open = at.open.saturating_sub(1);
                    at.ends.push(now);
                    if let Some(machine) = at.machine {
                        let each = self.model.machines[machine].others_ns.draw(at.chance.at(now)) / OTHERS;
                        self.others_wake(now, machine, Others { left: OTHERS as u8 - 1, each });
                    }
                    self.asked(now, node);
                    self.begin_load(now);
                }
                _ => {}
            }
        }
    }

    /// Volumes are filled: what the load asks comes now.
    fn begin_load(&mut self, now: Time) {
        if self.open > 0 || !std::mem::take(&mut self.is_filling) {
            return;
        }
        let begin = self.load.fill.first().map_or(now, |ask| ask.at);
        self.later = now.saturating_since(begin);
        self.expect(&self.load.pages);
    }

    /// A node has nothing more to do: what that takes has a processor too. What comes meanwhile
    /// needs not wake it up.
    fn rest(&mut self, now: Time, local: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        let class = usize::from(std::mem::take(&mut at.has_worked));
        let took =
            if at.is_resting { Span::ZERO } else { self.model.host(at.kind).rest_ns[class].draw(at.chance.at(now)) };
        at.is_resting = took > Span::ZERO;
        match at.is_resting {
            true => self.queue.push(now + took, Event::Goes { node, life: at.life }),
            false => self.sleep(now, local, node),
        }
    }

    fn sleep(&mut self, now: Time, local: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        (at.is_awake, at.slept_at) = (false, now);
        let due = at.anew.as_ref().and_then(|anew| anew.role.next_wakeup());
        if let Some(due) = due.filter(|due| at.alarm.is_none_or(|(set, fires)| set != *due || fires <= now)) {
            let host = self.model.host(at.kind);
            let late = host.late_ns.draw(at.chance.at(now)).max(Span::ns(1));
            let fires = now + due.saturating_since(local) + late;
            at.alarm = Some((due, fires));
            self.queue.push(fires, Event::Fires { node });
        }
        self.rests(now, node);
    }
}
