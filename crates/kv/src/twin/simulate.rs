//! The programs of a JBOF and of its doors together, in virtual time.
//!
//! Programs take turns, as live. A loop takes what has come when its turn begins, each thing for a
//! while: all of a batch that it has begun with, and else first what answers its own questions.
//! Decisions of a batch are carried out when it ends. Updates leave when the turn ends, and so do
//! reads, writes and answers of a helper. A helper that is inside has the turns of its loop. Memory
//! answers while it is asked, or after the time of verbs. Processors are not simulated: where a
//! live program waited for one, that is part of how long it took.

use super::flash::Contents;
use super::model::{
    Chain, HELPER, Model, REQUEST, Taken, WOKE, is_asked, kind_of_input, kind_of_request, question, question_of_flash,
    question_of_reads, question_of_row, read_sectors,
};
use super::requests::Requests;
use super::seen::{GRACE, HelperSeen, LoopSeen, Seen};
use crate::frames::Welcome;
use crate::journal::Entry;
use crate::noted::{client_numbers, server_numbers};
use crate::reader::Reader;
use crate::writes::joined;
use base::{Program, Seed, Span, Time};
use kernel::EventQueue;
use runtime::moments::{Chance, Moments, due};
use scalio::{
    ClientIn, ClientOut, Extent, FlashOperation, Index, Length, MemoryOperation, Reply, Request, RequestId, Server,
    ServerIn, ServerOut,
};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// What a helper takes next: of flash, or the request at this place.
enum Next {
    Work,
    Asked(usize),
}

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The operations of all doors.
    pub requests: Requests,
    /// The counters of each program, by its name.
    pub numbers: BTreeMap<String, BTreeMap<String, u64>>,
}

/// The helper among programs, where loops have their places.
const HELPS: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Hosts may ask this loop.
    Asked { number: u32 },
    /// A letter is there.
    Comes { letter: u32 },
    /// A program begins a turn.
    Begins { node: u32 },
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
    Verbs { number: u32, request: Option<RequestId>, block: u32, operation: MemoryOperation<Length>, back: [Time; 2] },
    /// To the helper.
    Helper(ServerIn<Length>),
}

/// Where a program has its turns.
struct Seat {
    is_awake: bool,
    /// When its turn began.
    turn: Time,
    chain: Chain,
    chance: Chance,
}

impl Seat {
    fn new(chance: Chance) -> Seat {
        Seat { is_awake: false, turn: Time::ZERO, chain: Chain::default(), chance }
    }
}

struct Door {
    reader: Reader<Length>,
    /// What has come, and when.
    arrived: VecDeque<(Time, ClientIn<Length>)>,
    /// What its hosts want, as far as they would ask for it now: since when, and the place of its
    /// batch.
    asks: VecDeque<(Time, u32, ClientIn<Length>)>,
    /// The place of the batch that they ask for next, and when operations ended.
    next: usize,
    ends: Vec<Time>,
    /// The batch of which it takes one after another, and what it has decided about that.
    batch: Option<u32>,
    decided: Vec<ClientOut<Length>>,
    seat: Seat,
    /// Updates that leave with the end of the turn.
    sends: Vec<Request<Length>>,
    /// When the last verb on a block reaches memory: they do so in their order.
    verbs_at: BTreeMap<u32, Time>,
}

impl Door {
    fn new(welcome: &Welcome, seat: Seat) -> Door {
        Door {
            reader: Reader::new(Time::ZERO, welcome),
            arrived: VecDeque::new(),
            asks: VecDeque::new(),
            next: 0,
            ends: Vec::new(),
            batch: None,
            decided: Vec::new(),
            seat,
            sends: Vec::new(),
            verbs_at: BTreeMap::new(),
        }
    }

    /// Whether the next thing is of the same batch.
    fn goes_on(&self) -> bool {
        self.batch.is_some() && self.asks.front().map(|(_, batch, _)| *batch) == self.batch
    }

    /// Whether what it takes next was asked; `None`: nothing has come before its turn began.
    fn is_next_asked(&self) -> Option<bool> {
        if self.goes_on() {
            return Some(true);
        }
        let is_of_turn = |came: &Time| *came <= self.seat.turn;
        if self.arrived.front().is_some_and(|(came, _)| is_of_turn(came)) {
            return Some(false);
        }
        self.asks.front().is_some_and(|(came, ..)| is_of_turn(came)).then_some(true)
    }

    /// What it takes next.
    fn take(&mut self) -> Option<ClientIn<Length>> {
        if self.is_next_asked()? {
            let (_, batch, input) = self.asks.pop_front()?;
            self.batch = Some(batch);
            return Some(input);
        }
        self.batch = None;
        self.arrived.pop_front().map(|(_, input)| input)
    }

    /// What it takes next in the same chain, or could.
    fn next_kind(&self) -> Option<&'static str> {
        let asked = self.asks.front().map(|(.., input)| input);
        let arrived = self.arrived.front().map(|(_, input)| input);
        let kind = kind_of_input(if self.is_next_asked()? { asked } else { arrived }?);
        (self.goes_on() || !is_asked(kind)).then_some(kind)
    }

    /// Whether something waits for its next turn.
    fn has_more(&self) -> bool {
        !self.arrived.is_empty() || !self.asks.is_empty()
    }
}

struct Simulation<'a> {
    seen: &'a Seen,
    helper: &'a HelperSeen,
    model: &'a Model,
    queue: EventQueue<Event>,
    /// With the time at which who gets it is awake, if it slept.
    letters: Slab<(Time, Letter)>,
    doors: Vec<Door>,
    index: Index<Length>,
    contents: Contents,
    server: Server<Length>,
    /// What has come to the helper, and when: of flash, and of doors. A turn begins with the first,
    /// and takes of each door what one read of its socket brings.
    work: VecDeque<(Time, ServerIn<Length>)>,
    asked: VecDeque<(Time, Request<Length>)>,
    taken: Taken,
    /// Writes that go to flash, and answers that leave, when the helper's turn ends.
    writes: Vec<(Extent, ServerIn<Length>)>,
    reads: Vec<(u32, ServerIn<Length>)>,
    replies: Vec<Reply<Length>>,
    seat: Seat,
    /// Whether the helper is in the thread of the only loop.
    is_inside: bool,
    requests: Requests,
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
        let moments = model.of_run.as_ref().map(|other| Moments::new(&seen.loads(), other)).unwrap_or_default();
        let mut queue = EventQueue::new();
        let mut doors = Vec::new();
        for (number, one) in (0..).zip(&seen.loops) {
            let mut welcome = one.welcome?;
            welcome.now = Time::ZERO;
            if let Some(batch) = one.asked.first() {
                queue.push(batch.at, Event::Asked { number });
            }
            let stream = seed.stream(&format!("store/{}", one.name));
            doors.push(Door::new(&welcome, Seat::new(Chance::new(stream, moments.clone()))));
        }
        let mut index = Index::new(helper.config.blocks, slots);
        for (block, segment) in (0..).zip(&helper.kept.pointers) {
            let header = scalio::BlockHeader { epoch: helper.kept.epoch, segment: *segment };
            index.carry_out(block, MemoryOperation::Reset { header });
        }
        let stream = seed.stream(&format!("helper/{}", seen.site.jbof));
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
            asked: VecDeque::new(),
            taken: Taken::default(),
            writes: Vec::new(),
            reads: Vec::new(),
            replies: Vec::new(),
            seat: Seat::new(Chance::new(stream, moments)),
            is_inside: seen.is_inside(),
            requests: Requests::default(),
            issued: 0,
            tickets: 0,
            open: 0,
        })
    }

    fn run(&mut self) {
        let all: u64 = self.seen.loops.iter().flat_map(|one| &one.asked).map(|batch| batch.inputs.len() as u64).sum();
        let last = self.seen.loops.iter().filter_map(|one| one.asked.last()).map(|batch| batch.at).max();
        let end = last.unwrap_or(Time::ZERO) + GRACE;
        while let Some((now, event)) = self.queue.pop() {
            if self.issued == all && self.open == 0 || now > end {
                break;
            }
            match event {
                Event::Asked { number } => self.asked(now, number),
                Event::Comes { letter } => self.comes(now, letter),
                Event::Goes { number } => self.goes(now, number),
                Event::Fires { number } => self.wake(now, number),
                Event::Works => self.works(now),
                Event::Begins { node } => self.begins(now, node),
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

    /// A letter comes at `at`. Who gets it, and slept, is awake at `awake`.
    fn send(&mut self, (at, awake): (Time, Time), letter: Letter) {
        let letter = self.letters.insert((awake, letter)) as u32;
        self.queue.push(at, Event::Comes { letter });
    }

    /// Hosts ask a loop for all that they may: a host that waited for an end waits for it again.
    fn asked(&mut self, now: Time, number: u32) {
        let door = &mut self.doors[number as usize];
        while let Some(batch) = self.seen.loops[number as usize].asked.get(door.next)
            && let Some(due) = due(batch.at, batch.ended, batch.soon, &door.ends)
        {
            if due > now {
                self.queue.push(due, Event::Asked { number });
                break;
            }
            let asked = batch.inputs.len() as u64;
            (self.issued, self.open) = (self.issued + asked, self.open + asked);
            for mut input in batch.inputs.iter().cloned() {
                self.tickets += 1;
                // Live names are used again, when others have ended already.
                if let ClientIn::Issue { ticket, .. } | ClientIn::Describe { ticket, .. } = &mut input {
                    *ticket = self.tickets;
                }
                door.asks.push_back((now, door.next as u32, input));
            }
            door.next += 1;
        }
        if !door.asks.is_empty() {
            self.wake(now, number);
        }
    }

    fn seat(&mut self, node: u32) -> &mut Seat {
        self.doors.get_mut(node as usize).map_or(&mut self.seat, |door| &mut door.seat)
    }

    /// A program that sleeps wakes up, and is awake at `awake`.
    fn wake(&mut self, awake: Time, node: u32) {
        let seat = self.seat(node);
        if !std::mem::replace(&mut seat.is_awake, true) {
            self.queue.push(awake, Event::Begins { node });
        }
    }

    fn begins(&mut self, now: Time, node: u32) {
        self.seat(node).turn = now;
        if self.is_inside || node == HELPS {
            (self.seat.turn, self.taken) = (now, Taken::default());
        }
        match node {
            HELPS => self.works(now),
            number => self.goes(now, number),
        }
    }

    /// Whether something waits for the next turn of a helper.
    fn has_work(&self) -> bool {
        !self.work.is_empty() || !self.asked.is_empty()
    }

    fn comes(&mut self, now: Time, letter: u32) {
        let (awake, letter) = self.letters.remove(letter as usize);
        match letter {
            Letter::Answer { number, input } => {
                self.doors[number as usize].arrived.push_back((now, input));
                self.wake(awake, number);
            }
            Letter::Verbs { number, request, block, operation, back } => {
                let answer = self.index.carry_out(block, operation);
                if let Some(request) = request {
                    self.send(back.into(), Letter::Answer { number, input: ClientIn::Memory { request, answer } });
                }
            }
            Letter::Helper(input) => {
                match input {
                    ServerIn::Request(request) => self.asked.push_back((now, request)),
                    input => self.work.push_back((now, input)),
                }
                self.wake(awake, if self.is_inside { 0 } else { HELPS });
            }
        }
    }

    /// A loop that is awake takes what is next, ends its turn, or goes to sleep.
    fn goes(&mut self, now: Time, number: u32) {
        let there = self.there(now);
        if self.is_inside {
            if let Some(took) = self.help(now) {
                return self.queue.push(now + took, Event::Goes { number });
            }
            self.answer(now);
        }
        let door = &mut self.doors[number as usize];
        let mut out = Vec::new();
        let (entry, kind) = match door.take() {
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
            None => return self.end_turn(now, number),
        };
        let answers = out.iter().filter(|one| matches!(one, ClientOut::Done { .. })).count() as u32;
        self.requests.see_loop(number as usize, Some(now), &entry);
        self.decide(now, number, out);
        let door = &mut self.doors[number as usize];
        let next = door.next_kind();
        let place = door.seat.chain.place(kind, next);
        let took = self.model.takes(kind, answers, place, door.seat.chance.at(now));
        if door.is_next_asked().is_none() {
            self.leave((now, now + took), number);
        }
        self.queue.push(now + took, Event::Goes { number });
    }

    /// Updates of a turn that ends at `end` leave.
    fn leave(&mut self, (now, end): (Time, Time), number: u32) {
        let door = &mut self.doors[number as usize];
        let sends = std::mem::take(&mut door.sends);
        if sends.is_empty() {
            return;
        }
        let luck = door.seat.chance.at(now);
        let comes = [false, true].map(|sleeps| self.model.comes((now, end), sleeps, luck));
        for request in sends {
            self.send(comes.into(), Letter::Helper(ServerIn::Request(request)));
        }
    }

    /// Notes what a loop has decided. Where its batch has ended, all of that is carried out.
    fn decide(&mut self, now: Time, number: u32, out: Vec<ClientOut<Length>>) {
        for one in out {
            let entry = Entry::Decided(one);
            self.requests.see_loop(number as usize, None, &entry);
            if let Entry::Decided(one) = entry {
                self.doors[number as usize].decided.push(one);
            }
        }
        if !self.doors[number as usize].goes_on() {
            for one in std::mem::take(&mut self.doors[number as usize].decided) {
                self.carry(now, number, one);
            }
        }
    }

    /// All that was there when the turn of a loop began is dealt with.
    fn end_turn(&mut self, now: Time, number: u32) {
        self.leave((now, now), number);
        if self.is_inside {
            self.write(now);
        }
        if self.doors[number as usize].has_more() || self.is_inside && self.has_work() {
            return self.queue.push(now, Event::Begins { node: number });
        }
        self.sleep(now, number);
    }

    fn sleep(&mut self, now: Time, number: u32) {
        let there = self.there(now);
        let door = &mut self.doors[number as usize];
        door.seat.is_awake = false;
        if let Some(due) = door.reader.program.next_wakeup() {
            let late = self.model.late(door.seat.chance.at(now)).max(Span::ns(1));
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
                let way = self.model.answer(&asked.unwrap_or_else(|| "verbs".into()), door.seat.chance.at(now));
                match way {
                    None => {
                        let answer = self.index.carry_out(block, operation);
                        let turn = door.seat.turn;
                        door.arrived.extend(request.map(|request| (turn, ClientIn::Memory { request, answer })));
                    }
                    Some(way) => {
                        let last = door.verbs_at.entry(block).or_default();
                        *last = (*last).max(now + way / 2);
                        let early = self.model.early(way, door.seat.chance.at(now));
                        let (at, back) = (*last, [early, way].map(|way| (*last).max(now + way)));
                        self.send((at, at), Letter::Verbs { number, request, block, operation, back });
                    }
                }
            }
            ClientOut::Flash { request, operation, .. } => {
                let way = asked.and_then(|question| self.model.answer(&question, door.seat.chance.at(now)));
                let input = ClientIn::Flash { request, answer: self.contents.carry_out(&operation) };
                match way {
                    None => door.arrived.push_back((door.seat.turn, input)),
                    Some(way) => {
                        let at = self.model.early(way, door.seat.chance.at(now));
                        self.send((now + at, now + way), Letter::Answer { number, input });
                    }
                }
            }
            ClientOut::Send { request, .. } if self.is_inside => {
                self.tell_helper(now, ServerIn::Request(request));
            }
            ClientOut::Send { request, .. } => door.sends.push(request),
            ClientOut::Done { .. } => {
                door.ends.push(now);
                self.open -= 1;
                self.asked(now, number);
            }
        }
    }

    /// A helper of its own thread takes what is next, or ends its turn.
    fn works(&mut self, now: Time) {
        if let Some(took) = self.help(now) {
            return self.queue.push(now + took, Event::Works);
        }
        self.answer(now);
        self.write(now);
        self.seat.is_awake = self.has_work();
        if self.seat.is_awake {
            self.queue.push(now, Event::Begins { node: HELPS });
        }
    }

    /// The helper takes what is next, if that has come before its turn began. Returns how long that
    /// occupies it.
    fn help(&mut self, now: Time) -> Option<Span> {
        let input = match self.next_of_turn()? {
            Next::Work => self.work.pop_front()?.1,
            Next::Asked(place) => ServerIn::Request(self.asked.remove(place)?.1),
        };
        if let ServerIn::Request(request) = &input {
            self.taken.take(request);
        }
        let kind = kind_of_request(&input);
        let answers = self.tell_helper(now, input);
        let next = self.next_of_turn().and_then(|next| match next {
            Next::Work => self.work.front().and_then(|(_, input)| kind_of_request(input)),
            Next::Asked(_) => Some(REQUEST),
        });
        let took = kind.map(|kind| {
            let place = self.seat.chain.place(kind, next);
            self.model.takes(kind, answers, place, self.seat.chance.at(now))
        });
        Some(took.unwrap_or(Span::ZERO))
    }

    /// What the helper takes next, if that has come before its turn began.
    fn next_of_turn(&self) -> Option<Next> {
        if self.work.front().is_some_and(|(came, _)| *came <= self.seat.turn) {
            return Some(Next::Work);
        }
        let most = self.model.piece_bytes.max(1);
        let may =
            |(came, request): &(Time, Request<Length>)| *came <= self.seat.turn && self.taken.of(request.client) < most;
        self.asked.iter().position(may).map(Next::Asked)
    }

    /// Tells the helper something. Returns how many updates it answers.
    fn tell_helper(&mut self, now: Time, input: ServerIn<Length>) -> u32 {
        let there = self.there(now);
        self.requests.see_helper(Some(now), &Entry::Input { at: now, input: input.clone() });
        let (mut out, mut answers) = (Vec::new(), 0);
        self.server.on(there, input, &mut out);
        while !out.is_empty() {
            for one in std::mem::take(&mut out) {
                answers += u32::from(matches!(one, ServerOut::Reply(_)));
                self.requests.see_helper(Some(now), &Entry::Decided(one.clone()));
                self.carry_helper((now, there), one, &mut out);
            }
        }
        answers
    }

    /// Has the helper's answers leave: those to one loop together.
    fn answer(&mut self, now: Time) {
        let mut ways = BTreeMap::new();
        for reply in std::mem::take(&mut self.replies) {
            let is_its = |one: &LoopSeen| one.welcome.is_some_and(|its| its.client == reply.client);
            let Some(number) = self.seen.loops.iter().position(is_its) else { continue };
            let (door, input) = (&mut self.doors[number], ClientIn::Reply(reply));
            if self.is_inside {
                door.arrived.push_back((door.seat.turn, input));
                continue;
            }
            let luck = || self.seat.chance.at(now);
            let luck = *ways.entry(number).or_insert_with(luck);
            let [at, awake] = [false, true].map(|sleeps| now + self.model.way(1, sleeps, luck));
            self.send((at, awake), Letter::Answer { number: number as u32, input });
        }
    }

    /// Has flash read and write what a turn has decided. Reads are done one after another. Writes
    /// that lie side by side are answered together. Rows that are handed over together wait for the
    /// same processors and the same disk, so they share their luck: drawn one by one, the last of
    /// two would be too late.
    fn write(&mut self, now: Time) {
        let reads = std::mem::take(&mut self.reads);
        if let Some(sectors) = reads.iter().map(|(sectors, _)| *sectors).max() {
            let question = question_of_reads(reads.len(), sectors);
            let way = self.model.answer(&question, self.seat.chance.at(now)).unwrap_or(Span::ZERO);
            let count = reads.len() as u64;
            for (place, (_, input)) in (1..).zip(reads) {
                let at = now + way * place / count;
                self.send((at, at), Letter::Helper(input));
            }
        }
        if self.writes.is_empty() {
            return;
        }
        let luck = self.seat.chance.at(now);
        for (row, inputs) in joined(std::mem::take(&mut self.writes)) {
            let way = self.model.answer(&question_of_row(row), luck).unwrap_or(Span::ZERO);
            let at = (now + way, now + way);
            inputs.into_iter().for_each(|input| self.send(at, Letter::Helper(input)));
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
            ServerOut::Reply(reply) => self.replies.push(reply),
        }
    }

    fn flash(&mut self, now: Time, request: RequestId, operation: &FlashOperation<Length>) {
        let input = ServerIn::Flash { request, answer: self.contents.carry_out(operation) };
        if let FlashOperation::Write { extent, .. } = operation {
            return self.writes.push((*extent, input));
        }
        if let Some(sectors) = read_sectors(operation) {
            return self.reads.push((sectors, input));
        }
        let question = question_of_flash(HELPER, operation);
        let way = self.model.answer(&question, self.seat.chance.at(now)).unwrap_or(Span::ZERO);
        self.send((now + way, now + way), Letter::Helper(input));
    }
}
