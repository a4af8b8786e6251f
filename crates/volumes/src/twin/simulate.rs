//! All roles of a rack together, in virtual time.
//!
//! A role takes packets in the order of their coming, each for a while, then lets time pass for its
//! timers and sleeps. What a role sends comes at its receiver after the time of the link.
//! Processors are not simulated. Where a live role waited for one, that is part of how long it
//! took.

use super::Anew;
use super::model::{Duty, Kind, Model, Pause};
use super::requests::Requests;
use super::run::{Life, TwinError};
use crate::configs::{self, name_of};
use crate::journal::Entry;
use base::{NodeId, Seed, Span, Time};
use blox::{Packet, Page};
use kernel::EventQueue;
use plan::rack::Rack;
use runtime::datagrams::RECEIVED_MAX;
use runtime::moments::{Chance, Loads, Moments};
use std::collections::{BTreeMap, VecDeque};

/// Packets that a role takes before it lets time pass, as a live one.
const BATCH: u32 = 64;
/// How long after the end, and after the last one that ended, requests may take: doors give up
/// before.
const GRACE: Span = Span::secs(40);

/// Pages that are open at a time at each door while volumes are filled.
const FILL_DEPTH: u64 = 64;

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
}

/// What doors are asked, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The pages.
    pub pages: Vec<PageAsk>,
    /// Pages that are asked for before, 64 at a time at each door. The others come as much later as
    /// these take.
    pub fill: Vec<PageAsk>,
    /// The most requests of a door that are open at a time; as many as come, where it is not said.
    /// Further ones wait until one ends: a host has a bound of its own.
    pub open_max: BTreeMap<NodeId, u64>,
}

impl Load {
    /// What doors were asked. None has more open than it once had.
    pub fn of(requests: &Requests) -> Load {
        let asked = requests.all().iter().map(|request| PageAsk {
            at: request.asked,
            door: request.door,
            volume: request.volume,
            page: request.page,
            is_write: request.is_write,
        });
        let mut pages: Vec<PageAsk> = asked.collect();
        pages.sort_by_key(|page| page.at);
        Load { pages, open_max: most_open(requests), ..Load::default() }
    }

    fn loads(&self) -> Loads<2> {
        let mut loads = Loads::default();
        self.pages.iter().for_each(|ask| loads.note(ask.at, usize::from(ask.is_write)));
        loads
    }
}

/// The most requests that each door had open at a time.
fn most_open(requests: &Requests) -> BTreeMap<NodeId, u64> {
    // Of the same time, an end is before a beginning.
    let begins = requests.all().iter().map(|request| (request.asked, true, request.door));
    let ends = requests.all().iter().filter_map(|request| Some((request.ended?.0, false, request.door)));
    let mut changes: Vec<(Time, bool, NodeId)> = begins.chain(ends).collect();
    changes.sort_unstable();
    let (mut open, mut most) = (BTreeMap::new(), BTreeMap::new());
    for (_, begins, door) in changes {
        let now: &mut u64 = open.entry(door).or_default();
        *now = if begins { *now + 1 } else { now.saturating_sub(1) };
        let before: &mut u64 = most.entry(door).or_default();
        *before = (*before).max(*now);
    }
    most
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
    /// Doors are asked for the pages that fill volumes.
    Filled,
    /// A door is asked for the page at this place of the load.
    Asked(u32),
    /// The life at this place begins.
    Begins(u32),
    /// The node's life ends.
    Ends { node: u32 },
    /// A node that is awake goes on, in this of its lives.
    Goes { node: u32, life: u32 },
    /// A node is kept waiting for so long.
    Pauses { node: u32, took: Span },
    /// A timer of a node fires, if it is still set.
    Fires { node: u32 },
}

struct Node {
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
    /// Requests that the door has begun with, or will next, and that have no end.
    open: u64,
    /// Those whose host waits until others end.
    held: VecDeque<PageAsk>,
    is_awake: bool,
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
        match (load.fill.first(), load.pages.first()) {
            (Some(first), _) => queue.push(first.at, Event::Filled),
            (None, Some(first)) => queue.push(first.at, Event::Asked(0)),
            (None, None) => {}
        }
        // Most slow times are a wait for a core, which another role had meanwhile: each draws of
        // moments by its own chance, or all would be slow at once.
        let moments = Moments::new(&load.loads(), &model.loads);
        let chance = |node| Chance::new(seed.stream(&format!("node/{node}")), moments.clone());
        let node = |node| Node {
            anew: None,
            kind: Kind::of(rack, NodeId(node)),
            start: Time::ZERO,
            life: 0,
            packets: VecDeque::new(),
            asks: VecDeque::new(),
            batch: VecDeque::new(),
            sends: Vec::new(),
            received: 0,
            open: 0,
            held: VecDeque::new(),
            is_awake: false,
            taken: 0,
            slept_at: Time::ZERO,
            paused_until: Time::ZERO,
            alarm: None,
            chance: chance(node),
        };
        let nodes = (0..=configs::switch_node(rack).0).map(node).collect();
        let (requests, numbers) = (Requests::default(), BTreeMap::new());
        let (open, is_filling, later, ended, now) = (0, !load.fill.is_empty(), Span::ZERO, Time::ZERO, Time::ZERO);
        Simulation { rack, lives, nodes, queue, load, model, requests, open, is_filling, later, ended, now, numbers }
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
        let end = self.lives.iter().map(|life| life.end).max().unwrap_or(Time::ZERO);
        let mut asked = 0;
        while let Some((now, event)) = self.queue.pop() {
            let is_over = now > end && self.open == 0 && asked == self.load.pages.len();
            if is_over || now > end.max(self.ended) + GRACE {
                break;
            }
            self.now = now;
            match event {
                Event::Begins(place) => self.begins(now, place)?,
                Event::Ends { node } => self.ends(node),
                Event::Comes { node, packet } => self.comes(now, node, packet),
                Event::Filled => self.load.fill.iter().for_each(|ask| self.ask(now, *ask)),
                Event::Asked(place) => asked = self.asked(now, place),
                Event::Goes { node, life } if self.nodes[node as usize].life == life => self.goes(now, node),
                Event::Goes { .. } => {}
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
        self.queue.push(now, Event::Goes { node: node.0, life: at.life });
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
            at.held.clear();
            at.open = 0;
            (at.is_awake, at.life, at.alarm) = (false, at.life + 1, None);
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
            let host = self.model.host(at.kind);
            let slept = now.saturating_since(at.slept_at);
            let wake = host.wake(slept, at.chance.at(now));
            self.queue.push(now + wake, Event::Goes { node, life: at.life });
        }
    }

    /// Doors are asked for the page at this place, and for all others whose time it is. Returns the
    /// place of the next one.
    fn asked(&mut self, now: Time, mut place: u32) -> usize {
        while let Some(ask) = self.load.pages.get(place as usize) {
            let at = ask.at + self.later;
            if at > now {
                self.queue.push(at, Event::Asked(place));
                break;
            }
            self.ask(now, *ask);
            place += 1;
        }
        place as usize
    }

    fn ask(&mut self, now: Time, ask: PageAsk) {
        let at = &mut self.nodes[ask.door.index()];
        if at.anew.is_none() {
            return;
        }
        self.open += 1;
        at.held.push_back(ask);
        self.admit(now, ask.door);
    }

    /// Lets a door begin with what its hosts hold, as far as they would.
    fn admit(&mut self, now: Time, door: NodeId) {
        let open_max = self.load.open_max.get(&door).copied().unwrap_or(u64::MAX);
        let open_max = if self.is_filling { FILL_DEPTH } else { open_max };
        let at = &mut self.nodes[door.index()];
        while at.open < open_max
            && let Some(ask) = at.held.pop_front()
        {
            at.open += 1;
            at.asks.push_back(ask);
            let PageAsk { volume, page, is_write, .. } = ask;
            self.requests.see(now, door, &Entry::Asked { at: now, volume, page, is_write });
        }
        // The load says when the door begins with it, not when it is woken.
        if !at.asks.is_empty() && !at.is_awake {
            at.is_awake = true;
            self.queue.push(now, Event::Goes { node: door.0, life: at.life });
        }
    }

    fn fires(&mut self, now: Time, node: u32) {
        let at = &mut self.nodes[node as usize];
        if !at.is_awake && at.alarm.is_some_and(|(_, fires)| fires <= now) {
            (at.is_awake, at.alarm) = (true, None);
            self.goes(now, node);
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
            return self.sleep(now, local, node);
        }
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
                    self.admit(now, NodeId(node));
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
        if let Some(first) = self.load.pages.first() {
            self.queue.push(first.at + self.later, Event::Asked(0));
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
    }
}
