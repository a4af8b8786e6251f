//! What comes in on a port of the switch, block by block: the harness's reference for `edm_ingress`
//! and the queue behind it.
//!
//! `crates/edm` decides by messages; what a cycle does to one is here, after paper 3.2.2 and the
//! contract of the module. Blocks are read by the codec of `crates/edm`. Its circuits watch those of
//! the gates, which differ: the grants of one message are one circuit, there are 2 X N at most, and
//! what is unused goes after one timeout to two. Of an honest sender both let the same pass. Of
//! another one they do until a chunk or a grant has made them differ.

use crate::timed::{Input, WRITE_ID};
use base::{NodeId, Time};
use edm::pcs::block::{Block, Content};
use edm::pcs::memory::{Assembler, NOTIFICATION_BLOCKS, decode_notification, decode_opening, encode_message};
use edm::scheduler::{Demand, DemandKind, Match};
use edm::{Body, Circuits, Message, MessageId, Passage, Tag};
use std::collections::VecDeque;

/// What a port and its queues are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Ports of the switch.
    pub ports: u32,
    /// X.
    pub active: u32,
    /// Words of the queue to the other ports.
    pub forward_depth: u64,
    /// Cycles until an unused circuit is old, and again until it goes.
    pub timeout: u64,
    /// Cycles without a block after which an open message is cut.
    pub stall_max: u64,
}

/// A block on its way to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The port.
    pub target: u32,
    /// Whether the message ends with it.
    pub last: bool,
    /// Whether it ends one that has broken off.
    pub cut: bool,
    /// The block.
    pub block: Block,
}

/// A request whose demand the scheduler is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The port of the memory node.
    pub memory: u32,
    /// Its id.
    pub id: MessageId,
    /// Its blocks.
    pub blocks: Vec<Block>,
}

/// What the port and the scheduler bring in one cycle.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// A memory block.
    pub memory: Option<Block>,
    /// A message is broken off, or begins wrongly.
    pub is_broken: bool,
    /// The link is dead.
    pub is_down: bool,
    /// What the port may send.
    pub grant: Option<&'a Match>,
}

/// The message that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Open {
    None,
    /// An RREQ or RMWREQ, so far.
    Request(Asked),
    /// A chunk whose first blocks have left.
    Forward {
        target: u32,
        id: MessageId,
    },
    /// What broke the protocol.
    Dropped,
}

/// The ingress of a port.
pub struct Ingress {
    own: u32,
    limits: Limits,
    circuits: Table,
    /// Those of `crates/edm`.
    model: Circuits,
    /// Whether its sender sends what it is granted, and nothing else.
    is_honest: bool,
    /// Whether a chunk, or a grant that found no room, has made both sets of circuits differ.
    differs: bool,
    open: Open,
    assembler: Assembler,
    /// Cycles since the last block of the open chunk.
    quiet: u64,
    violations: u64,
    queue: Crossing,
    /// Messages for each port that have come in so far.
    entered: Vec<u64>,
    /// Requests for each memory node that are not gone.
    requests: Vec<u32>,
}

impl Ingress {
    /// An idle port. All that `is_honest` sends must pass in `crates/edm` exactly if it passes here.
    pub fn new(own: u32, limits: Limits, lapse_after: base::Span, is_honest: bool) -> Ingress {
        Ingress {
            own,
            limits,
            circuits: Table::new(limits),
            model: Circuits::new(limits.ports, lapse_after),
            is_honest,
            differs: false,
            open: Open::None,
            assembler: Assembler::default(),
            quiet: 0,
            violations: 0,
            queue: Crossing::new(limits.forward_depth),
            entered: vec![0; limits.ports as usize],
            requests: vec![0; limits.ports as usize],
        }
    }

    /// The next word for another port.
    pub fn front(&self) -> Option<Word> {
        self.queue.front
    }

    /// Messages for a port that have come in so far.
    pub fn entered(&self, target: u32) -> u64 {
        self.entered[target as usize]
    }

    /// A request for a memory node has left, or its demand is refused: from the next cycle on, there
    /// is room for another one.
    pub fn request_is_gone(&mut self, memory: u32) {
        self.requests[memory as usize] -= 1;
    }

    /// The link of a port is dead.
    pub fn port_is_down(&mut self, port: u32) {
        self.model.port_down(NodeId(port));
    }

    /// Breaches of the protocol.
    pub fn violations(&self) -> u64 {
        self.violations
    }

    /// Circuits, and the number of the open message's state in the gates.
    pub fn state(&self) -> (u64, u64) {
        let open = match self.open {
            Open::None => 0,
            Open::Request(_) => 1,
            Open::Forward { .. } => 2,
            Open::Dropped => 3,
        };
        (self.circuits.open.len() as u64, open)
    }

    /// A cycle, in which another port takes the front or not. What it brings in reaches the
    /// scheduler in the next cycle, and with it the request, if it is one.
    ///
    /// # Errors
    /// If `crates/edm` decides otherwise on a chunk.
    pub fn cycle(
        &mut self,
        now: u64,
        time: Time,
        arrival: Arrival,
        is_taken: bool,
    ) -> Result<(Vec<Input>, Option<Asked>), String> {
        let (mut inputs, mut asked, mut breach) = (Vec::new(), None, false);
        let is_forward = matches!(self.open, Open::Forward { .. });
        let is_stalled = self.quiet == self.limits.stall_max;
        let pushed = if is_forward && (arrival.is_broken || arrival.is_down || is_stalled) {
            breach = true;
            Some(self.cut())
        } else {
            let pushed = arrival.memory.map_or(Ok((None, false)), |block| self.message(now, time, block))?;
            breach |= pushed.1;
            pushed.0
        };
        if let Open::Request(request) = &mut self.open
            && arrival.memory.is_some_and(|block| matches!(block.content(), Ok(Content::MemoryEnd(_))))
        {
            let request = std::mem::replace(request, Asked { memory: 0, id: MessageId(0), blocks: Vec::new() });
            self.open = Open::None;
            // Twice as many as a pair may have at once.
            let has_room = self.requests[request.memory as usize] < 2 * self.limits.active;
            match self.demand(&request).filter(|_| has_room) {
                Some(demand) => {
                    self.requests[request.memory as usize] += 1;
                    inputs = vec![Input::Uplink { blocks: request.blocks.len() as u64 }, Input::Demand(demand)];
                    asked = Some(request);
                }
                None => breach = true,
            }
        }
        match arrival.memory.map(|block| (block, block.content())) {
            Some((_, Ok(Content::Grant(_)))) => breach = true,
            Some((block, Ok(Content::Notification(_)))) => match self.notification(block) {
                Some(input) => inputs = vec![Input::Uplink { blocks: NOTIFICATION_BLOCKS }, input],
                None => breach = true,
            },
            _ => {}
        }
        if arrival.is_down && !is_forward {
            self.open = Open::None;
        }
        self.quiet = if is_forward && pushed.is_none() && !is_stalled { self.quiet + 1 } else { 0 };
        self.violations += u64::from(breach) + u64::from(self.grants(now, time, arrival.grant));
        self.queue.cycle(now, pushed, is_taken);
        Ok((inputs, asked))
    }

    /// Circuits of this cycle: what is old goes, then a grant opens one. Returns whether that found
    /// no room.
    fn grants(&mut self, now: u64, time: Time, grant: Option<&Match>) -> bool {
        if now % (self.limits.timeout + 1) == self.limits.timeout {
            self.circuits.lapse();
        }
        let Some(Match { demand: Demand { source, target, id, .. }, bytes, .. }) = grant else { return false };
        self.model.open(time, *source, *target, *id, *bytes);
        !self.circuits.grant(target.0, *id, u64::from(*bytes))
    }

    /// The message that leaves ends with a NULL response: its sender has failed.
    fn cut(&mut self) -> Word {
        let Open::Forward { target, id } = std::mem::replace(&mut self.open, Open::Dropped) else {
            unreachable!("only a message that leaves is cut")
        };
        let body = Body::ReadResponse { bytes: 0, last: true };
        let message = Message { source: NodeId(self.own), target: NodeId(target), id, body };
        let mut blocks = Vec::new();
        encode_message(&message, &[], &mut blocks).expect("its numbers came in a header");
        Word { target, last: true, cut: true, block: blocks[0] }
    }

    /// A block of a message, if it is one: the word that it makes, and whether it is a breach.
    fn message(&mut self, now: u64, time: Time, block: Block) -> Result<(Option<Word>, bool), String> {
        match block.content() {
            Ok(Content::MemoryStart(_)) => self.begin(now, time, block, false),
            Ok(Content::MemorySingle(_)) => self.begin(now, time, block, true),
            Ok(Content::Data(_)) => Ok((self.go_on(block, false), false)),
            Ok(Content::MemoryEnd(_)) => Ok((self.go_on(block, true), false)),
            _ => Ok((None, false)),
        }
    }

    fn go_on(&mut self, block: Block, last: bool) -> Option<Word> {
        match &mut self.open {
            Open::Request(request) => {
                request.blocks.push(block);
                None
            }
            Open::Forward { target, .. } => {
                let word = Word { target: *target, last, cut: false, block };
                self.open = if last { Open::None } else { self.open.clone() };
                Some(word)
            }
            Open::None | Open::Dropped => {
                self.open = if last { Open::None } else { self.open.clone() };
                None
            }
        }
    }

    fn begin(&mut self, now: u64, time: Time, block: Block, single: bool) -> Result<(Option<Word>, bool), String> {
        let opening = decode_opening(block).map_err(|error| format!("the line lets {block:?} pass: {error}"))?;
        let (target, id) = (opening.target.0, opening.id);
        self.open = Open::Dropped;
        let is_own = opening.source.0 == self.own && target != self.own && target < self.limits.ports;
        match opening.data {
            _ if !is_own => return Ok((None, true)),
            // Ids of writes have the top bit, and no request has one of them.
            None if id.0 & WRITE_ID != 0 => return Ok((None, true)),
            None => {
                self.open = Open::Request(Asked { memory: target, id, blocks: vec![block] });
                return Ok((None, false));
            }
            Some(bytes) => {
                // Room for the message, and for a cut.
                if self.queue.room(now) <= opening.blocks || !self.passes(time, target, id, bytes)? {
                    return Ok((None, true));
                }
            }
        }
        self.entered[target as usize] += 1;
        self.open = if single { Open::None } else { Open::Forward { target, id } };
        Ok((Some(Word { target, last: single, cut: false, block }), false))
    }

    /// Whether a chunk has a circuit, and `crates/edm` says so too.
    fn passes(&mut self, time: Time, target: u32, id: MessageId, bytes: u32) -> Result<bool, String> {
        let passes = self.circuits.pass(target, id, u64::from(bytes));
        // A dead port swallows what it is offered, and here that is what passes.
        let model = self.model.pass(time, NodeId(self.own), NodeId(target), id, bytes) != Passage::NoCircuit;
        // A chunk of two grants has one circuit here and none there, and takes its bytes only here.
        self.differs |= self.circuits.lost || (passes && !model && !self.is_honest);
        let agrees = model == passes || self.differs;
        if !agrees {
            return Err(format!("port {}, {bytes} bytes of {id:?} for {target}: crates/edm {model}", self.own));
        }
        Ok(passes)
    }

    /// The demand of a whole request; none if it contradicts itself.
    fn demand(&mut self, request: &Asked) -> Option<Demand> {
        let mut whole = None;
        for block in &request.blocks {
            whole = self.assembler.push(*block).ok()?;
        }
        let message = whole?;
        let bytes = match message.body {
            Body::ReadRequest { bytes, .. } => bytes,
            Body::ReadModifyWrite { modify, .. } => modify.response_bytes(),
            Body::WriteRequest { .. } | Body::ReadResponse { .. } => return None,
        };
        let (source, target) = (message.target, message.source);
        let kind = DemandKind::Response { request: message };
        Some(Demand { source, target, id: message.id, bytes, kind, tag: Tag::NONE })
    }

    /// What an /N/ says, if it makes sense.
    fn notification(&self, block: Block) -> Option<Input> {
        let said = decode_notification(block).ok()?;
        if said.bytes == 0 {
            return Some(Input::Withdraw { target: said.target, id: said.id });
        }
        let kind = DemandKind::Write { batch: said.batch };
        let (source, target, tag) = (NodeId(self.own), said.target, Tag::NONE);
        let demand = Demand { source, target, id: said.id, bytes: said.bytes, kind, tag };
        (said.id.0 & WRITE_ID != 0).then_some(Input::Demand(demand))
    }
}

/// The circuits of a port as the gates have them.
struct Table {
    /// Target, id, bytes, and whether it is old.
    open: Vec<(u32, MessageId, u64, bool)>,
    most: usize,
    /// Whether a grant has ever found no room.
    lost: bool,
}

impl Table {
    fn new(limits: Limits) -> Table {
        Table { open: Vec::new(), most: 2 * (limits.active * limits.ports) as usize, lost: false }
    }

    fn pass(&mut self, target: u32, id: MessageId, bytes: u64) -> bool {
        let fits = |circuit: &(u32, MessageId, u64, bool)| circuit.0 == target && circuit.1 == id && circuit.2 >= bytes;
        let Some(at) = self.open.iter().position(fits) else { return false };
        self.open[at].2 -= bytes;
        if self.open[at].2 == 0 {
            self.open.remove(at);
        }
        true
    }

    fn lapse(&mut self) {
        self.open.retain(|circuit| !circuit.3);
        self.open.iter_mut().for_each(|circuit| circuit.3 = true);
    }

    /// Whether the grant has a place.
    fn grant(&mut self, target: u32, id: MessageId, bytes: u64) -> bool {
        if let Some(same) = self.open.iter_mut().find(|circuit| circuit.0 == target && circuit.1 == id) {
            same.2 += bytes;
            same.3 = false;
            return true;
        }
        let has_room = self.open.len() < self.most;
        if has_room {
            self.open.push((target, id, bytes, false));
        }
        self.lost |= !has_room;
        has_room
    }
}

/// A queue between two clocks of one speed: each side sees what the other did three cycles ago, and
/// the next word is in a register (`edm_crossing`).
struct Crossing {
    depth: u64,
    /// By the cycle in which they may be loaded.
    words: VecDeque<(u64, Word)>,
    front: Option<Word>,
    pushed: u64,
    /// Words loaded, by the cycle from which the other side knows.
    loaded: VecDeque<u64>,
    known: u64,
}

impl Crossing {
    const SEEN_AFTER: u64 = 3;

    fn new(depth: u64) -> Crossing {
        Crossing { depth, words: VecDeque::new(), front: None, pushed: 0, loaded: VecDeque::new(), known: 0 }
    }

    /// So many words may come in this cycle.
    fn room(&mut self, now: u64) -> u64 {
        while self.loaded.front().is_some_and(|at| *at <= now) {
            self.loaded.pop_front();
            self.known += 1;
        }
        self.depth - (self.pushed - self.known)
    }

    fn cycle(&mut self, now: u64, word: Option<Word>, is_taken: bool) {
        if is_taken {
            self.front = None;
        }
        if self.front.is_none() && self.words.front().is_some_and(|(at, _)| *at <= now) {
            self.front = self.words.pop_front().map(|(_, word)| word);
            self.loaded.push_back(now + Crossing::SEEN_AFTER);
        }
        if let Some(word) = word {
            self.words.push_back((now + Crossing::SEEN_AFTER, word));
            self.pushed += 1;
        }
    }
}
