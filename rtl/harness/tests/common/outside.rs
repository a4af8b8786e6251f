//! All that a host hears, for its golden vectors: its application, the switch, and its peers. They
//! answer what it says, the oldest first.

use base::{NodeId, Stream};
use edm::{Body, Grant, Message, MessageId, Modify};
use rtl_harness::follow::{Heard, Setting};
use rtl_harness::host::Writer;
use rtl_harness::system::{Access, Request};
use std::collections::VecDeque;

/// Memory that nobody writes: the source of all data.
const CONSTANT_BYTES: u64 = 1024;
/// Words that peers read, write and change.
const WORDS: u64 = 0x2000;
/// Where writes of peers go, each to a place of its own, and where answers go.
const WRITES: u64 = 0x4000;
const ANSWERS: u64 = 0x8000;
/// Requests of a pair that may be open, as in the gates.
const ACTIVE: usize = 3;
/// Set in the id of a write.
const WRITE_ID: u8 = 0x80;
/// So much is open at most when something new begins.
const OPEN_MAX: usize = 8;
/// Places of a pair: an answer has one by its id.
const PLACES: u8 = 4;
/// An answer that has lost a /G/ is ended after so many steps, long before the timers of the gates.
const LOST_STEPS: u32 = 20;

/// How the peers give their requests ids, and whether they get all that they are granted.
#[derive(Clone, Copy, PartialEq)]
pub enum Peers {
    /// In turn, and no /G/ is lost.
    InTurn,
    /// Some ids are left out, and a /G/ may be lost. A request may find an older answer open in its
    /// place, or more answers open than a pair may have.
    Lossy,
}

/// Something that goes on between the host and a peer, with the bytes that are not granted, or not
/// answered.
#[derive(Clone, Copy, PartialEq)]
struct Open {
    kind: Kind,
    peer: NodeId,
    id: MessageId,
    left: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The host reads at the peer.
    Read,
    /// It writes there.
    Write,
    /// The peer reads at the host.
    Answer,
}

/// What the host hears, and what it has said.
pub struct Outside {
    writer: Writer,
    random: Stream,
    setting: Setting,
    open: VecDeque<Open>,
    /// Requests of the application so far; reads and writes of each target, and those with no end.
    requests: u16,
    made: Vec<[u8; 2]>,
    asked: Vec<[usize; 2]>,
    /// The id of the next read of each peer.
    ids: Vec<u8>,
    next_write: u64,
    next_answer: u64,
    /// Whether something for nobody came in this step: the host withdraws one grant at a time.
    has_lied: bool,
    peers: Peers,
    steps: u32,
    /// Answers that get no /G/ any more, and since which step.
    lost: VecDeque<(NodeId, MessageId, u32)>,
    /// Answers in whose place a request came.
    ended: u32,
}

impl Outside {
    /// The vectors of a host that is busy for so many steps.
    pub fn play(setting: Setting, peers: Peers, mut random: Stream, steps: u32) -> String {
        let constant = (0..CONSTANT_BYTES).map(|_| random.below(256) as u8).collect();
        let mut outside = Outside {
            writer: Writer::new(setting, constant),
            random,
            setting,
            open: VecDeque::new(),
            requests: 0,
            made: vec![[0; 2]; setting.nodes],
            asked: vec![[0; 2]; setting.nodes],
            ids: vec![0; setting.nodes],
            next_write: WRITES,
            next_answer: ANSWERS,
            has_lied: false,
            peers,
            steps: 0,
            lost: VecDeque::new(),
            ended: 0,
        };
        for _ in 0..steps {
            outside.end_lost();
            for _ in 0..=outside.random.below(3) {
                outside.begin();
            }
            outside.rest();
        }
        while !outside.open.is_empty() {
            outside.go_on();
            outside.rest();
        }
        assert!(peers == Peers::InTurn || outside.ended > 10, "{} older answers are ended", outside.ended);
        outside.writer.text()
    }

    fn begin(&mut self) {
        let peer = NodeId(1 + self.random.below(self.setting.nodes as u64 - 1) as u32);
        match self.random.below(20) {
            _ if self.open.len() >= OPEN_MAX => self.go_on(),
            11..15 if self.peers == Peers::Lossy => self.read(peer),
            0..6 => self.ask(peer),
            6..8 => self.read(peer),
            8 | 9 => self.change(peer),
            10 | 11 => self.write(peer),
            12 if !self.has_lied => self.lie(peer),
            _ => self.go_on(),
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end.into()) as u32
    }

    /// Bytes of something that is longer than a word.
    fn bytes(&mut self) -> u32 {
        let is_long = (self.below(4) == 0) == (self.peers == Peers::InTurn);
        let most = if is_long { 600 } else { 80 };
        9 + self.below(most)
    }

    /// The application asks for something. With one peer it asks for more than may be open.
    fn ask(&mut self, peer: NodeId) {
        let is_write = self.below(2) == 0;
        let [reads, writes] = self.asked[peer.index()];
        // What waits for a peer would hold up what is for another: the model has a queue for each.
        let fits = if is_write { writes < ACTIVE } else { reads < ACTIVE && writes == 0 };
        if self.setting.nodes > 2 && !fits || reads + writes > 4 * ACTIVE {
            return self.go_on();
        }
        self.asked[peer.index()][usize::from(is_write)] += 1;
        self.made[peer.index()][usize::from(is_write)] += 1;
        // No write is for what a long read reads: the gates keep it until that is answered.
        let there = self.random.below(1 << 40) & !7 | u64::from(is_write) << 40;
        let bytes = if self.below(3) == 0 { 8 } else { self.bytes() };
        let (access, here) = match (is_write, self.below(6)) {
            (true, _) => (Access::Write { bytes }, self.random.below(CONSTANT_BYTES - u64::from(bytes)) & !7),
            (false, 0..4) => (Access::Read { bytes }, place(&mut self.next_answer, bytes)),
            _ => (Access::Modify(self.modify()), place(&mut self.next_answer, 8)),
        };
        let tag = self.requests;
        self.requests += 1;
        self.writer.ask(Request { target: peer.0, access, there, here, tag });
    }

    fn modify(&mut self) -> Modify {
        let (first, new) = (self.random.below(3), self.random.below(3));
        match self.below(4) {
            0 => Modify::CompareAndSwap { expected: first, new },
            1 => Modify::Swap { new },
            _ => Modify::FetchAndAdd { addend: self.random.below(u64::MAX) },
        }
    }

    /// The oldest of what is open goes on by a chunk.
    fn go_on(&mut self) {
        let Some(open) = self.open.front_mut() else { return };
        let bytes = open.left.min(self.setting.chunk as u32);
        open.left -= bytes;
        let Open { kind, peer, id, left } = *open;
        if left == 0 {
            self.open.pop_front();
            if kind != Kind::Answer {
                self.asked[peer.index()][usize::from(kind == Kind::Write)] -= 1;
            }
        }
        if kind == Kind::Read {
            return self.hear(peer, id, Body::ReadResponse { bytes, last: left == 0 });
        }
        if kind == Kind::Answer {
            if self.peers == Peers::Lossy && self.below(2) == 0 {
                self.open.retain(|open| (open.kind, open.peer, open.id) != (kind, peer, id));
                return self.lost.push_back((peer, id, self.steps));
            }
        }
        self.writer.hear(Heard::Grant(Grant { target: peer, id, bytes: bytes as u16 }));
    }

    /// A message from a peer, with any data.
    fn hear(&mut self, source: NodeId, id: MessageId, body: Body) {
        let bytes = match body {
            Body::WriteRequest { bytes, .. } | Body::ReadResponse { bytes, .. } => bytes,
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => 0,
        };
        let data = (0..bytes).map(|_| self.random.below(256) as u8).collect();
        self.writer.hear(Heard::Message(Message { source, target: NodeId(0), id, body }, data));
    }

    /// A request of a peer, if it may have one more.
    fn request(&mut self, peer: NodeId, body: Body, bytes: u32) {
        let left_out = match self.peers {
            Peers::InTurn => 0,
            Peers::Lossy => self.random.below(PLACES.into()) as u8,
        };
        let id = MessageId((self.ids[peer.index()] + left_out) % WRITE_ID);
        let place = place_of(peer, id);
        // Grants come in order: the answer that was there is over.
        let is_free = self.open.iter().all(|open| open.kind != Kind::Answer || place_of(open.peer, open.id) != place);
        if self.peers == Peers::InTurn && !is_free {
            return self.go_on();
        }
        self.request_with(peer, id, body, bytes);
    }

    /// The same with this id. An older answer in its place is ended.
    fn request_with(&mut self, peer: NodeId, id: MessageId, body: Body, bytes: u32) {
        let place = place_of(peer, id);
        let before = self.open.len() + self.lost.len();
        self.open.retain(|open| open.kind != Kind::Answer || place_of(open.peer, open.id) != place);
        self.lost.retain(|(peer, id, _)| place_of(*peer, *id) != place);
        self.ended += (before - self.open.len() - self.lost.len()) as u32;
        self.ids[peer.index()] = (id.0 + 1) % WRITE_ID;
        // A request is the grant of its first chunk.
        let left = bytes.saturating_sub(self.setting.chunk as u32);
        if left > 0 {
            self.open.push_back(Open { kind: Kind::Answer, peer, id, left });
        }
        self.hear(peer, id, body);
    }

    /// Peers ask again where an answer has waited for long.
    fn end_lost(&mut self) {
        while let Some(&(peer, id, _)) = self.lost.front().filter(|(.., since)| since + LOST_STEPS < self.steps) {
            let (id, bytes) = (MessageId((id.0 + PLACES) % WRITE_ID), self.bytes());
            self.request_with(peer, id, Body::ReadRequest { address: 0, bytes }, bytes);
        }
    }

    fn word(&mut self) -> u64 {
        WORDS + 8 * self.random.below(4)
    }

    fn read(&mut self, peer: NodeId) {
        let long = self.bytes();
        let (address, bytes) = match self.below(3) {
            0 => (self.word(), 8),
            _ => (self.random.below(CONSTANT_BYTES - u64::from(long)), long),
        };
        self.request(peer, Body::ReadRequest { address, bytes }, bytes);
    }

    fn change(&mut self, peer: NodeId) {
        let (address, modify) = (self.word(), self.modify());
        self.request(peer, Body::ReadModifyWrite { address, modify }, modify.response_bytes());
    }

    /// A write of a word, or chunks of one, one after another.
    fn write(&mut self, peer: NodeId) {
        let id = MessageId(WRITE_ID | self.below(128) as u8);
        if self.below(3) == 0 {
            let address = self.word();
            return self.hear(peer, id, Body::WriteRequest { address, bytes: 8, last: true });
        }
        let chunks: Vec<u32> = (0..=self.below(2)).map(|_| self.bytes().min(self.setting.chunk as u32)).collect();
        let mut address = place(&mut self.next_write, chunks.iter().sum::<u32>() + 8) + self.random.below(8);
        for (at, bytes) in (1..).zip(&chunks) {
            self.hear(peer, id, Body::WriteRequest { address, bytes: *bytes, last: at == chunks.len() });
            address += u64::from(*bytes);
        }
    }

    /// A /G/ or an answer that the host does not wait for: its id is far from those in use.
    fn lie(&mut self, peer: NodeId) {
        self.has_lied = true;
        let is_write = self.below(2) == 0;
        let id = self.made[peer.index()][usize::from(is_write)].wrapping_add(64);
        if is_write {
            let id = MessageId(WRITE_ID | id);
            return self.writer.hear(Heard::Grant(Grant { target: peer, id, bytes: 64 }));
        }
        let bytes = self.bytes().min(self.setting.chunk as u32);
        self.hear(peer, MessageId(id % WRITE_ID), Body::ReadResponse { bytes, last: true });
    }

    /// Lets the host rest, and takes up what it has said.
    fn rest(&mut self) {
        self.has_lied = false;
        self.steps += 1;
        for said in self.writer.rest() {
            let open = match said {
                Heard::Notification(said) if said.bytes > 0 => {
                    Open { kind: Kind::Write, peer: said.target, id: said.id, left: said.bytes }
                }
                Heard::Message(Message { target, id, body, .. }, _) => match body {
                    Body::ReadRequest { bytes, .. } => Open { kind: Kind::Read, peer: target, id, left: bytes },
                    Body::ReadModifyWrite { modify, .. } => {
                        Open { kind: Kind::Read, peer: target, id, left: modify.response_bytes() }
                    }
                    _ => continue,
                },
                _ => continue,
            };
            self.open.push_back(open);
        }
    }
}

/// Where an answer is kept.
fn place_of(peer: NodeId, id: MessageId) -> (NodeId, u8) {
    (peer, id.0 % PLACES)
}

/// The next free place, in whole words, with a word after it.
fn place(next: &mut u64, bytes: u32) -> u64 {
    let at = *next;
    *next += u64::from(bytes).next_multiple_of(8) + 8;
    at
}
