//! A host at a port of the switch alone: says what it is told to say, and answers what it hears. Its
//! line is that of `edm::pcs::multiplex`, with noise on top.

use crate::system::Scrambler;
use crate::timed::WRITE_ID;
use base::NodeId;
use edm::pcs::block::{Block, Content};
use edm::pcs::frame::encode_frame;
use edm::pcs::memory::{Assembler, decode_grant, encode_grant, encode_message, encode_notification};
use edm::pcs::multiplex::{Demultiplexer, Multiplexer, Policy};
use edm::{Body, Grant, Message, MessageId, Modify, Notification};
use std::collections::{BTreeSet, VecDeque};

/// Places for blocks of frames.
const FRAME_PLACES: usize = 4;

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Says that it has something to write.
    Write {
        /// The target, in range or not.
        target: u32,
        /// Bytes.
        bytes: u32,
        /// Messages.
        batch: u8,
    },
    /// Asks for data.
    Read {
        /// The memory node, in range or not.
        memory: u32,
        /// Bytes.
        bytes: u32,
    },
    /// Asks for a change of a word.
    Modify {
        /// The memory node, in range or not.
        memory: u32,
        /// The change.
        modify: Modify,
    },
    /// Withdraws one of its last writes.
    Withdraw {
        /// How many came after it.
        back: u8,
    },
    /// Sends a frame.
    Frame {
        /// Its bytes.
        bytes: usize,
    },
    /// The layer-2 switch sends it a frame.
    FrameToHost {
        /// Its bytes.
        bytes: usize,
    },
    /// Breach: a chunk that nobody has granted.
    Chunk {
        /// The target, in range or not.
        target: u32,
        /// The sender that it names.
        source: u32,
        /// Its id.
        id: u8,
        /// Bytes.
        bytes: u32,
    },
    /// Breach: an RREQ of a byte with the target and the id of one of its last writes.
    AskAsWrite {
        /// How many writes came after it.
        back: u8,
    },
    /// Breach: more reads of a byte than a pair may have.
    Storm {
        /// The memory node, in range or not.
        memory: u32,
        /// How many.
        count: u8,
    },
    /// Breach: a /G/ from a host.
    Grant {
        /// The target.
        target: u32,
        /// Its id.
        id: u8,
    },
    /// Breach: these blocks are on the line, one for each that it would send.
    Blocks {
        /// The first one.
        block: Block,
        /// How many.
        count: u8,
    },
    /// Noise: these bits change on the line.
    Flip {
        /// The bits.
        bits: u128,
    },
    /// Breach: it stops, in the middle of what it says.
    Pause {
        /// For so many cycles.
        cycles: u8,
    },
}

/// How a host answers a grant or a request, as a number of a random list.
#[derive(Clone, Debug)]
pub struct Manners {
    /// The list, which is used round and round.
    pub numbers: Vec<u8>,
    /// Whether it sends what it is granted, or withdraws it.
    pub is_honest: bool,
}

/// A host.
pub struct Talker {
    own: u32,
    chunk: u32,
    manners: Manners,
    answers: usize,
    multiplexer: Multiplexer,
    frames: VecDeque<Block>,
    heard: Demultiplexer,
    assembler: Assembler,
    scrambler: Scrambler,
    /// What it will say, not before its cycle.
    later: VecDeque<(u64, Vec<Block>)>,
    pause: u8,
    instead: VecDeque<Block>,
    flip: u128,
    ids: u8,
    /// Its writes.
    said: Vec<(u32, u8)>,
    /// Requests that it has heard, and grants that came before theirs: a /G/ may overtake it.
    asked: BTreeSet<(u32, u8)>,
    early: Vec<Grant>,
    data: u8,
}

impl Talker {
    /// A host that has said nothing. Chunks have so many bytes at most.
    pub fn new(own: u32, chunk: u32, policy: Policy, manners: Manners) -> Talker {
        Talker {
            own,
            chunk,
            manners,
            answers: 0,
            multiplexer: Multiplexer::new(policy),
            frames: VecDeque::new(),
            heard: Demultiplexer::new(policy),
            assembler: Assembler::default(),
            scrambler: Scrambler::default(),
            later: VecDeque::new(),
            pause: 0,
            instead: VecDeque::new(),
            flip: 0,
            ids: 0,
            said: Vec::new(),
            asked: BTreeSet::new(),
            early: Vec::new(),
            data: 0,
        }
    }

    /// Whether it has nothing more to say.
    pub fn is_quiet(&self) -> bool {
        self.later.is_empty() && self.frames.is_empty() && self.multiplexer.is_idle() && self.pause == 0
    }

    /// Does something; of a frame for it, returns the blocks.
    pub fn do_it(&mut self, doing: Doing) -> Vec<Block> {
        self.ids = self.ids.wrapping_add(1);
        let (read, write) = (MessageId(self.ids % WRITE_ID), MessageId(self.ids | WRITE_ID));
        match doing {
            Doing::Write { target, bytes, batch } => {
                self.said.push((target, write.0));
                self.notify(target, write, bytes, batch);
            }
            Doing::Withdraw { back } => {
                let (target, id) = self.last_write(back);
                self.notify(target, id, 0, 1);
            }
            Doing::AskAsWrite { back } => {
                let (target, id) = self.last_write(back);
                self.message(target, id, Body::ReadRequest { address: 8, bytes: 1 });
            }
            Doing::Storm { memory, count } => {
                for _ in 0..count {
                    self.ids = self.ids.wrapping_add(1);
                    let id = MessageId(self.ids % WRITE_ID);
                    self.message(memory, id, Body::ReadRequest { address: 8, bytes: 1 });
                }
            }
            Doing::Read { memory, bytes } => self.message(memory, read, Body::ReadRequest { address: 8, bytes }),
            Doing::Modify { memory, modify } => {
                self.message(memory, read, Body::ReadModifyWrite { address: 8, modify });
            }
            Doing::Chunk { target, source, id, bytes } => {
                let blocks = self.chunk_of(source, target, MessageId(id), bytes);
                self.offer(blocks);
            }
            Doing::Grant { target, id } => {
                let said = Grant { target: NodeId(target), id: MessageId(id), bytes: 1 };
                self.offer(encode_grant(&said).into_iter().collect());
            }
            Doing::Frame { bytes } => self.frames.extend(frame_of(bytes)),
            Doing::FrameToHost { bytes } => return frame_of(bytes),
            Doing::Blocks { block, count } => self.instead.extend((0..count).map(|_| block)),
            Doing::Flip { bits } => self.flip = bits,
            Doing::Pause { cycles } => self.pause = cycles,
        }
        Vec::new()
    }

    /// A cycle in which `line` comes from the switch. Returns the bits on the line to it.
    pub fn cycle(&mut self, now: u64, line: Block) -> u128 {
        if let Some(block) = self.heard.push(line).memory {
            self.hear(now, block);
        }
        while self.later.front().is_some_and(|(at, _)| *at <= now) {
            let (_, blocks) = self.later.pop_front().expect("there is a front");
            self.offer(blocks);
        }
        let mut block = Block::IDLE;
        if self.pause > 0 {
            self.pause -= 1;
        } else {
            block = self.multiplexer.next_block();
        }
        if self.multiplexer.waiting()[2] < FRAME_PLACES
            && let Some(block) = self.frames.pop_front()
        {
            self.multiplexer.offer_frame(block).expect("whole frames, and there is room");
        }
        let block = self.instead.pop_front().unwrap_or(block);
        self.scrambler.push(block.to_bits()) ^ std::mem::take(&mut self.flip)
    }

    fn last_write(&self, back: u8) -> (u32, MessageId) {
        let at = self.said.len().checked_sub(1 + usize::from(back));
        at.map_or((0, MessageId(0)), |at| (self.said[at].0, MessageId(self.said[at].1)))
    }

    fn offer(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            self.multiplexer.offer_memory(block).expect("whole messages");
        }
    }

    fn notify(&mut self, target: u32, id: MessageId, bytes: u32, batch: u8) {
        let said = Notification { target: NodeId(target), id, bytes, batch };
        self.offer(encode_notification(&said).into_iter().collect());
    }

    fn message(&mut self, target: u32, id: MessageId, body: Body) {
        let message = Message { source: NodeId(self.own), target: NodeId(target), id, body };
        let mut blocks = Vec::new();
        encode_message(&message, &[], &mut blocks).expect("the numbers fit");
        self.offer(blocks);
    }

    /// A chunk of a write or an answer, by its id; each with other data.
    fn chunk_of(&mut self, source: u32, target: u32, id: MessageId, bytes: u32) -> Vec<Block> {
        let body = if id.0 & WRITE_ID != 0 {
            Body::WriteRequest { address: u64::from(self.data), bytes, last: true }
        } else {
            Body::ReadResponse { bytes, last: true }
        };
        self.data = self.data.wrapping_add(1);
        let message = Message { source: NodeId(source), target: NodeId(target), id, body };
        let mut blocks = Vec::new();
        encode_message(&message, &vec![self.data; bytes as usize], &mut blocks).expect("the numbers fit");
        blocks
    }

    fn hear(&mut self, now: u64, block: Block) {
        match block.content() {
            Ok(Content::Grant(_)) => {
                if let Ok(grant) = decode_grant(block) {
                    self.early.push(grant);
                }
            }
            Ok(Content::Notification(_)) => {}
            _ => {
                let Ok(Some(message)) = self.assembler.push(block) else { return };
                let bytes = match message.body {
                    Body::ReadRequest { bytes, .. } => bytes.min(self.chunk),
                    Body::ReadModifyWrite { modify, .. } => modify.response_bytes(),
                    Body::WriteRequest { .. } | Body::ReadResponse { .. } => return,
                };
                self.asked.insert((message.source.0, message.id.0));
                self.answer(now, message.source.0, message.id, bytes);
            }
        }
        self.answer_grants(now);
    }

    /// Those whose request it knows, or all if it does not care.
    fn answer_grants(&mut self, now: u64) {
        for Grant { target, id, bytes } in std::mem::take(&mut self.early) {
            let is_known = id.0 & WRITE_ID != 0 || self.asked.contains(&(target.0, id.0));
            if is_known || !self.manners.is_honest {
                self.answer(now, target.0, id, bytes.into());
            } else {
                self.early.push(Grant { target, id, bytes });
            }
        }
    }

    /// Sends what it may, mostly.
    fn answer(&mut self, now: u64, target: u32, id: MessageId, bytes: u32) {
        let number = self.manners.numbers[self.answers % self.manners.numbers.len()];
        self.answers += 1;
        let blocks = match number {
            200..216 => {
                let said = Notification { target: NodeId(target), id, bytes: 0, batch: 1 };
                encode_notification(&said).into_iter().collect()
            }
            216..226 if !self.manners.is_honest => Vec::new(),
            226..236 if !self.manners.is_honest => self.chunk_of(self.own, target, id, bytes + 1),
            236.. if !self.manners.is_honest => self.chunk_of(self.own, target, id, bytes / 2),
            _ => self.chunk_of(self.own, target, id, bytes),
        };
        // In order: no answer overtakes the one before it.
        let at = now + u64::from(number % 24);
        let at = self.later.back().map_or(at, |(before, _)| at.max(*before));
        self.later.push_back((at, blocks));
    }
}

/// A frame with these many bytes.
fn frame_of(bytes: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let data: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
    encode_frame(&data, &mut blocks).expect("the length is allowed");
    blocks
}
