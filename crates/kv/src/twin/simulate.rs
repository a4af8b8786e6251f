//! The programs of a JBOF and of its doors together, in virtual time.
//!
//! A loop takes what has come, each thing for a while, and first what answers its own questions.
//! Memory answers while it is asked, or after the time of verbs. Processors are not simulated:
//! where a live program waited for one, that is part of how long it took.

use super::flash::Contents;
use super::model::{HELPER, Model, WOKE, kind_of_input, kind_of_request, question, question_of_flash, question_of_row};
use super::requests::Requests;
use super::seen::{GRACE, HelperSeen, Seen};
use crate::journal::Entry;
use crate::noted::{client_numbers, server_numbers};
use crate::reader::Reader;
use crate::writes::joined;
use base::{Program, Seed, Span, Stream, Time};
use kernel::EventQueue;
use scalio::{
    ClientIn, ClientOut, Extent, FlashOperation, Index, Length, MemoryOperation, RequestId, Server, ServerIn, ServerOut,
};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The operations of all doors.
    pub requests: Requests,
    /// The counters of each program, by its name.
    pub numbers: BTreeMap<String, BTreeMap<String, u64>>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A loop is asked what is at this place of its load.
    Asked { number: u32, place: u32 },
    /// A letter is there.
    Comes { letter: u32 },
    /// A loop that is awake goes on.
    Goes { number: u32 },
    /// A timer of a loop fires.
    Fires { number: u32 },
    /// The helper goes on.
    Works,
}

/// What is on its way.
enum Letter {
    /// To a loop.
    Answer { number: u32, input: ClientIn<Length> },
    /// Of a loop to memory. The answer comes at that time.
    Verbs { number: u32, request: Option<RequestId>, block: u32, operation: MemoryOperation<Length>, back: Time },
    /// To the helper.
    Helper(ServerIn<Length>),
}

struct Door {
    reader: Reader<Length>,
    arrived: VecDeque<ClientIn<Length>>,
    /// What its hosts want, as far as they would ask for it now.
    asks: VecDeque<ClientIn<Length>>,
    held: VecDeque<ClientIn<Length>>,
    open: u64,
    is_awake: bool,
    /// When the last verb on a block reaches memory: they do so in their order.
    verbs_at: BTreeMap<u32, Time>,
    stream: Stream,
}

struct Simulation<'a> {
    seen: &'a Seen,
    helper: &'a HelperSeen,
    model: &'a Model,
    queue: EventQueue<Event>,
    letters: Slab<Letter>,
    doors: Vec<Door>,
    index: Index<Length>,
    contents: Contents,
    server: Server<Length>,
    work: VecDeque<ServerIn<Length>>,
    /// Writes that go to flash when the helper has dealt with an input.
    writes: Vec<(Extent, ServerIn<Length>)>,
    is_working: bool,
    requests: Requests,
    stream: Stream,
    issued: u64,
    tickets: u64,
    open: u64,
}

/// Simulates a JBOF and its doors with what they were asked.
///
/// # Errors
/// Why that is impossible.
pub fn simulate(seen: &Seen, model: &Model, seed: Seed) -> Result<Simulated, String> {
    if let Some(lack) = seen.lacks() {
        return Err(lack);
    }
    let mut simulation = Simulation::new(seen, model, seed).ok_or("its helper cannot begin so")?;
    simulation.run();
    Ok(simulation.finish())
}

impl<'a> Simulation<'a> {
    fn new(seen: &'a Seen, model: &'a Model, seed: Seed) -> Option<Simulation<'a>> {
        let helper = seen.helpers.first()?;
        let server = Server::resume(helper.config, helper.kept.clone())?;
        let slots = seen.loops.iter().filter_map(|one| one.welcome).map(|welcome| welcome.slots).max()?;
        let mut queue = EventQueue::new();
        let mut doors = Vec::new();
        for (number, one) in (0..).zip(&seen.loops) {
            let mut welcome = one.welcome?;
            welcome.now = Time::ZERO;
            if let Some((at, _)) = one.asked.first() {
                queue.push(*at, Event::Asked { number, place: 0 });
            }
            doors.push(Door {
                reader: Reader::new(Time::ZERO, &welcome),
                arrived: VecDeque::new(),
                asks: VecDeque::new(),
                held: VecDeque::new(),
                open: 0,
                is_awake: false,
                verbs_at: BTreeMap::new(),
                stream: seed.stream(&format!("store/{}", one.name)),
            });
        }
        let mut index = Index::new(helper.config.blocks, slots);
        for (block, segment) in (0..).zip(&helper.kept.pointers) {
            let header = scalio::BlockHeader { epoch: helper.kept.epoch, segment: *segment };
            index.carry_out(block, MemoryOperation::Reset { header });
        }
        Some(Simulation {
            seen,
            helper,
            model,
            queue,
            letters: Slab::new(),
            doors,
            index,
            contents: seen.contents.clone(),
            server,
            work: VecDeque::new(),
            writes: Vec::new(),
            is_working: false,
            requests: Requests::default(),
            stream: seed.stream(&format!("helper/{}", seen.site.jbof)),
            issued: 0,
            tickets: 0,
            open: 0,
        })
    }

    fn run(&mut self) {
        let all: u64 = self.seen.loops.iter().map(|one| one.asked.len() as u64).sum();
        let last = self.seen.loops.iter().filter_map(|one| one.asked.last()).map(|(at, _)| *at).max();
        let end = last.unwrap_or(Time::ZERO) + GRACE;
        while let Some((now, event)) = self.queue.pop() {
            if self.issued == all && self.open == 0 || now > end {
                break;
            }
            match event {
                Event::Asked { number, place } => self.asked(now, number, place),
                Event::Comes { letter } => self.comes(now, letter),
                Event::Goes { number } => self.goes(now, number),
                Event::Fires { number } => self.fires(now, number),
                Event::Works => self.works(now),
            }
        }
    }

    fn finish(mut self) -> Simulated {
        self.requests.finish();
        let doors = self.seen.loops.iter().zip(&self.doors);
        let mut numbers: BTreeMap<_, _> =
            doors.map(|(one, door)| (one.name.clone(), client_numbers(&door.reader.program.counters()))).collect();
        numbers.insert(format!("{}.helper", self.seen.site.jbof), server_numbers(&self.server));
        Simulated { requests: self.requests, numbers }
    }

    /// The JBOF's time.
    fn there(&self, now: Time) -> Time {
        Time::ZERO + now.saturating_since(self.helper.zero)
    }

    fn send(&mut self, at: Time, letter: Letter) {
        let letter = self.letters.insert(letter) as u32;
        self.queue.push(at, Event::Comes { letter });
    }

    fn asked(&mut self, now: Time, number: u32, place: u32) {
        let load = &self.seen.loops[number as usize].asked;
        if let Some((next, _)) = load.get(place as usize + 1) {
            self.queue.push((*next).max(now), Event::Asked { number, place: place + 1 });
        }
        self.issued += 1;
        self.tickets += 1;
        self.open += 1;
        let mut input = load[place as usize].1.clone();
        // Live names are used again, when others have ended already.
        if let ClientIn::Issue { ticket, .. } | ClientIn::Describe { ticket, .. } = &mut input {
            *ticket = self.tickets;
        }
        self.doors[number as usize].held.push_back(input);
        self.admit(now, number);
    }

    /// Lets a loop have what its hosts hold, as far as they would.
    fn admit(&mut self, now: Time, number: u32) {
        let open_max = self.seen.loops[number as usize].open_max;
        let door = &mut self.doors[number as usize];
        while door.open < open_max
            && let Some(input) = door.held.pop_front()
        {
            door.open += 1;
            door.asks.push_back(input);
        }
        if !door.asks.is_empty() {
            self.wake(now, number);
        }
    }

    fn wake(&mut self, now: Time, number: u32) {
        if !std::mem::replace(&mut self.doors[number as usize].is_awake, true) {
            self.queue.push(now, Event::Goes { number });
        }
    }

    fn comes(&mut self, now: Time, letter: u32) {
        match self.letters.remove(letter as usize) {
            Letter::Answer { number, input } => {
                self.doors[number as usize].arrived.push_back(input);
                self.wake(now, number);
            }
            Letter::Verbs { number, request, block, operation, back } => {
                let answer = self.index.carry_out(block, operation);
                if let Some(request) = request {
                    self.send(back, Letter::Answer { number, input: ClientIn::Memory { request, answer } });
                }
            }
            Letter::Helper(input) => {
                self.work.push_back(input);
                if !std::mem::replace(&mut self.is_working, true) {
                    self.queue.push(now, Event::Works);
                }
            }
        }
    }

    fn fires(&mut self, now: Time, number: u32) {
        if !self.doors[number as usize].is_awake {
            self.wake(now, number);
        }
    }

    /// A loop that is awake takes what is next, or goes to sleep.
    fn goes(&mut self, now: Time, number: u32) {
        let there = self.there(now);
        let door = &mut self.doors[number as usize];
        let mut out = Vec::new();
        let (entry, kind) = match door.arrived.pop_front().or_else(|| door.asks.pop_front()) {
            Some(input) => {
                let kind = kind_of_input(&input);
                let entry = Entry::Input { at: now, input: input.clone() };
                door.reader.program.on(there, input, &mut out);
                (entry, kind)
            }
            None if door.reader.program.next_wakeup().is_some_and(|due| due <= there) => {
                door.reader.program.on_wakeup(there, &mut out);
                (Entry::Woke { at: now }, WOKE)
            }
            None => return self.sleep(now, number),
        };
        let ends = out.iter().any(|one| matches!(one, ClientOut::Done { .. }));
        let took = self.model.takes(kind, ends, &mut door.stream);
        self.requests.see_loop(number as usize, Some(now), &entry);
        for one in out {
            let entry = Entry::Decided(one);
            self.requests.see_loop(number as usize, None, &entry);
            if let Entry::Decided(one) = entry {
                self.carry(now, number, one);
            }
        }
        self.queue.push(now + took, Event::Goes { number });
    }

    fn sleep(&mut self, now: Time, number: u32) {
        let there = self.there(now);
        let door = &mut self.doors[number as usize];
        door.is_awake = false;
        if let Some(due) = door.reader.program.next_wakeup() {
            let late = self.model.late(&mut door.stream).max(Span::ns(1));
            self.queue.push(now + due.saturating_since(there) + late, Event::Fires { number });
        }
    }

    /// Carries out what a loop has decided.
    fn carry(&mut self, now: Time, number: u32, out: ClientOut<Length>) {
        let asked = question(&out).map(|(_, question)| question);
        let door = &mut self.doors[number as usize];
        match out {
            ClientOut::Memory { request, block, operation } => {
                // What nobody waits for takes the same way.
                let way = self.model.answer(&asked.unwrap_or_else(|| "verbs".into()), &mut door.stream);
                match way {
                    None => {
                        let answer = self.index.carry_out(block, operation);
                        door.arrived.extend(request.map(|request| ClientIn::Memory { request, answer }));
                    }
                    Some(way) => {
                        let last = door.verbs_at.entry(block).or_default();
                        *last = (*last).max(now + way / 2);
                        let (at, back) = (*last, (*last).max(now + way));
                        self.send(at, Letter::Verbs { number, request, block, operation, back });
                    }
                }
            }
            ClientOut::Flash { request, operation, .. } => {
                let way = asked.and_then(|question| self.model.answer(&question, &mut door.stream));
                let input = ClientIn::Flash { request, answer: self.contents.carry_out(&operation) };
                match way {
                    None => door.arrived.push_back(input),
                    Some(way) => self.send(now + way, Letter::Answer { number, input }),
                }
            }
            ClientOut::Send { request, .. } => {
                let way = self.model.way(0, &mut door.stream);
                self.send(now + way, Letter::Helper(ServerIn::Request(request)));
            }
            ClientOut::Done { .. } => {
                door.open -= 1;
                self.open -= 1;
                self.admit(now, number);
            }
        }
    }

    /// The helper takes what is next.
    fn works(&mut self, now: Time) {
        let Some(input) = self.work.pop_front() else {
            self.is_working = false;
            return;
        };
        let kind = kind_of_request(&input);
        let there = self.there(now);
        self.requests.see_helper(Some(now), &Entry::Input { at: now, input: input.clone() });
        let (mut out, mut ends) = (Vec::new(), false);
        self.server.on(there, input, &mut out);
        while !out.is_empty() {
            for one in std::mem::take(&mut out) {
                ends |= matches!(one, ServerOut::Reply(_));
                self.requests.see_helper(Some(now), &Entry::Decided(one.clone()));
                self.carry_helper((now, there), one, &mut out);
            }
        }
        let took = kind.map_or(Span::ZERO, |kind| self.model.takes(kind, ends, &mut self.stream));
        self.write(now + took);
        self.queue.push(now + took, Event::Works);
    }

    /// Has flash write. What lies side by side is answered together. Rows that are handed over
    /// together wait for the same processors and the same disk, so they share their luck: drawn one
    /// by one, the last of two would be too late.
    fn write(&mut self, now: Time) {
        if self.writes.is_empty() {
            return;
        }
        let luck = self.stream.unit();
        for (row, inputs) in joined(std::mem::take(&mut self.writes)) {
            let way = self.model.answer_of(&question_of_row(row), luck).unwrap_or(Span::ZERO);
            inputs.into_iter().for_each(|input| self.send(now + way, Letter::Helper(input)));
        }
    }

    /// Carries out what the helper has decided. Its own memory answers at once.
    fn carry_helper(&mut self, (now, there): (Time, Time), one: ServerOut<Length>, out: &mut Vec<ServerOut<Length>>) {
        match one {
            ServerOut::Memory { request, block, operation } => {
                let answer = self.index.carry_out(block, operation);
                self.server.on(there, ServerIn::Memory { request, answer }, out);
            }
            ServerOut::Flash { request, operation } => self.flash(now, request, &operation),
            ServerOut::Reply(reply) => {
                let is_its = |one: &super::seen::LoopSeen| one.welcome.is_some_and(|its| its.client == reply.client);
                if let Some(number) = self.seen.loops.iter().position(is_its) {
                    let way = self.model.way(1, &mut self.stream);
                    let input = ClientIn::Reply(reply);
                    self.send(now + way, Letter::Answer { number: number as u32, input });
                }
            }
        }
    }

    fn flash(&mut self, now: Time, request: RequestId, operation: &FlashOperation<Length>) {
        let input = ServerIn::Flash { request, answer: self.contents.carry_out(operation) };
        if let FlashOperation::Write { extent, .. } = operation {
            return self.writes.push((*extent, input));
        }
        let question = question_of_flash(HELPER, operation);
        let way = self.model.answer(&question, &mut self.stream).unwrap_or(Span::ZERO);
        self.send(now + way, Letter::Helper(input));
    }
}
