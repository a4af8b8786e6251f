//! Follows the hosts of the system with the programs of `crates/edm`: whatever a host in gates
//! gets, the model of it gets too, and what it then sends must be what the model sends.
//!
//! The lines are read by the codec of `crates/edm`. A pair's messages of one class are compared in
//! order. The time between them is the gates' own: one queue of requests and stages of whole cycles
//! are not the model's.

use crate::system::{self, Descrambler, Request, System};
use base::{Bytes, NodeId, Program, Rate, Span, Time};
use edm::pcs::block::Block;
use edm::pcs::block::Content;
use edm::pcs::memory::{Assembler, decode_grant, decode_notification};
use edm::pcs::multiplex::{Demultiplexer, Policy};
use edm::{Access, Body, Config, Grant, Host, HostIn, HostOut, Message, Notification, Place, Tag, Wire};
use std::collections::{BTreeMap, VecDeque};

/// What is heard on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message and its data.
    Message(Message, Vec<u8>),
    /// An /N/.
    Notification(Notification),
    /// A /G/.
    Grant(Grant),
}

/// Listens to one direction of a link, which may have run for a while.
pub struct Tap {
    /// Whether the descrambler has seen the block before.
    primed: bool,
    descrambler: Descrambler,
    demultiplexer: Demultiplexer,
    assembler: Assembler,
}

impl Tap {
    /// On a line that is idle now.
    pub fn new(policy: Policy) -> Tap {
        Tap {
            primed: false,
            descrambler: Descrambler::default(),
            demultiplexer: Demultiplexer::new(policy),
            assembler: Assembler::default(),
        }
    }

    /// Takes 66 bits; returns what they complete.
    ///
    /// # Errors
    /// Anything that no sender may send.
    pub fn push(&mut self, line: u128) -> Result<Option<Heard>, String> {
        let bits = self.descrambler.push(line);
        if !std::mem::replace(&mut self.primed, true) {
            return Ok(None);
        }
        let received = self.demultiplexer.push_bits(bits);
        if let Some(fault) = received.fault {
            return Err(fault.to_string());
        }
        received.memory.map_or(Ok(None), |block| self.memory(block))
    }

    fn memory(&mut self, block: Block) -> Result<Option<Heard>, String> {
        match block.content() {
            Ok(Content::Notification(_)) => decode_notification(block).map(|said| Some(Heard::Notification(said))),
            Ok(Content::Grant(_)) => decode_grant(block).map(|said| Some(Heard::Grant(said))),
            _ => {
                let whole = self.assembler.push(block);
                whole.map(|whole| whole.map(|message| Heard::Message(message, self.assembler.data().to_vec())))
            }
        }
        .map_err(|error| error.to_string())
    }
}

/// Messages of one pair that keep their order among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Request,
    Notification,
    Chunk,
    Answer,
}

/// What the model of a host has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expected {
    what: Wire,
    /// The data, if they are known.
    data: Option<Vec<u8>>,
    /// The request that it belongs to.
    tag: Tag,
}

/// A request that the application of a node has made.
#[derive(Clone, Copy, Debug)]
struct Asked {
    there: u64,
    data: u64,
}

/// No timer of a model fires unasked.
const TIMEOUT: Span = Span::ms(1_000_000);

/// The models of all hosts.
pub struct Follower {
    hosts: Vec<Host>,
    up: Vec<Tap>,
    down: Vec<Tap>,
    now: Vec<Time>,
    expected: BTreeMap<(u32, u32, Class), VecDeque<Expected>>,
    /// By node and tag.
    asked: BTreeMap<(usize, u32), Asked>,
    /// Memory that nobody writes, the same at all nodes: the source of bulk data.
    constant: Vec<u8>,
    compared: u64,
    /// Whether hosts may get what nobody waits for, and how often the models have.
    may_be_unexpected: bool,
    unexpected: u64,
    out: Vec<HostOut>,
}

/// What the models assume of the gates.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Nodes.
    pub nodes: usize,
    /// Most bytes of a chunk.
    pub chunk: u64,
    /// Who goes first on a line.
    pub policy: Policy,
    /// Whether hosts get what nobody waits for: counted, and otherwise an error.
    pub has_liars: bool,
}

impl Follower {
    /// Idle models; `constant` is in every memory from address 0 on, and nobody writes there.
    pub fn new(setting: Setting, constant: Vec<u8>) -> Follower {
        let Setting { nodes, chunk, policy, has_liars } = setting;
        // One message a notification, and no timeout of the model's own.
        let config = Config { chunk: Bytes::new(chunk), batch: Bytes::new(0), timeout: TIMEOUT, ..Config::TESTBED };
        let place = Place { nodes: nodes as u32, rate: Rate::gbps(25) };
        let taps = || (0..nodes).map(|_| Tap::new(policy)).collect();
        Follower {
            hosts: (0..nodes as u32).map(|node| Host::new(NodeId(node), config, place)).collect(),
            up: taps(),
            down: taps(),
            now: vec![Time::ZERO; nodes],
            expected: BTreeMap::new(),
            asked: BTreeMap::new(),
            constant,
            compared: 0,
            may_be_unexpected: has_liars,
            unexpected: 0,
            out: Vec::new(),
        }
    }

    /// Messages, notifications and grants compared.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// How often hosts got what nobody waits for.
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }

    /// Lets the timers of all models fire that run. Nothing but early grants may wait.
    pub fn time_out(&mut self) {
        for node in 0..self.hosts.len() {
            self.now[node] += TIMEOUT;
            self.out.clear();
            self.hosts[node].on_wakeup(self.now[node], &mut self.out);
            self.unexpected += self.out.len() as u64;
            self.send_all(node);
        }
    }

    /// What the last input has made a model decide.
    pub fn decided(&self) -> &[HostOut] {
        &self.out
    }

    /// Takes what the model of a host has sent and nobody has seen: targets in order, classes in
    /// order, and those of one class as they were sent. Each with the tag of its request.
    ///
    /// # Panics
    /// If the data of a message are not known.
    pub fn take_sent(&mut self, node: usize) -> Vec<(Heard, Tag)> {
        let own = self.expected.iter_mut().filter(|((from, ..), _)| *from as usize == node);
        let sent = own.flat_map(|(_, queue)| queue.drain(..));
        sent.map(|Expected { what, data, tag }| match what {
            Wire::Memory(message) if payload_of(&message) == 0 => (Heard::Message(message, Vec::new()), tag),
            Wire::Memory(message) => (Heard::Message(message, data.expect("the data are known")), tag),
            Wire::Notification(said) => (Heard::Notification(said), tag),
        })
        .collect()
    }

    /// Whether all that the models have sent has been seen.
    pub fn is_idle(&self) -> bool {
        self.expected.values().all(VecDeque::is_empty)
    }

    /// The model of a host.
    pub fn host(&self, node: usize) -> &Host {
        &self.hosts[node]
    }

    /// Looks at what hosts take and at the lines of this cycle, after [`System::drive`].
    ///
    /// # Errors
    /// What differs.
    pub fn cycle(&mut self, system: &System) -> Result<(), String> {
        for node in 0..self.hosts.len() {
            if let Some(request) = system.taken(node) {
                self.submit(node, request);
            }
            let up = self.up[node].push(system.line(node, true));
            if let Some(heard) = up.map_err(|error| format!("from {node}: {error}"))? {
                self.compare(node, heard)?;
            }
            let down = self.down[node].push(system.line(node, false));
            if let Some(heard) = down.map_err(|error| format!("to {node}: {error}"))? {
                self.receive(node, heard)?;
            }
        }
        Ok(())
    }

    /// Gives the model of a host a request of its application.
    pub fn submit(&mut self, node: usize, request: Request) {
        let Request { there, here, .. } = request;
        let access = match request.access {
            system::Access::Read { bytes } => Access::Read { address: there, bytes },
            system::Access::Write { bytes } => {
                let word = if bytes <= 8 { word_of(&self.constant_at(here, bytes as usize)) } else { 0 };
                Access::Write { address: there, bytes, word }
            }
            system::Access::Modify(modify) => Access::Modify { address: there, modify },
        };
        let tag = Tag(u32::from(request.tag));
        self.asked.insert((node, tag.0), Asked { there, data: here });
        self.feed(node, HostIn::Submit { tag, target: NodeId(request.target), access });
    }

    fn constant_at(&self, address: u64, bytes: usize) -> Vec<u8> {
        self.constant[address as usize..address as usize + bytes].to_vec()
    }

    /// Gives the model of a host what comes from the switch.
    ///
    /// # Errors
    /// It is nothing that the host waits for, and no host may get such.
    pub fn receive(&mut self, node: usize, heard: Heard) -> Result<(), String> {
        let input = match heard {
            Heard::Grant(grant) => HostIn::Granted(grant),
            Heard::Notification(_) => return Err(format!("to {node}: an /N/ goes to the switch alone")),
            Heard::Message(message, data) => match message.body {
                Body::ReadRequest { address, .. } => {
                    self.asked.insert((node, answer_tag(&message)), Asked { there: 0, data: address });
                    HostIn::Serve { message, tag: Tag(answer_tag(&message)) }
                }
                Body::ReadModifyWrite { .. } => {
                    // Its answer is a word, not a part of the memory.
                    self.asked.remove(&(node, answer_tag(&message)));
                    HostIn::Serve { message, tag: Tag(answer_tag(&message)) }
                }
                _ => HostIn::Take { message, word: if data.len() <= 8 { word_of(&data) } else { 0 } },
            },
        };
        self.compared += 1;
        self.feed(node, input);
        let unexpected = self.out.iter().filter(|out| **out == HostOut::Unexpected);
        self.unexpected += unexpected.count() as u64;
        match self.out.iter().find(|out| matches!(out, HostOut::Unexpected | HostOut::Null { .. })) {
            Some(HostOut::Unexpected) if self.may_be_unexpected => Ok(()),
            Some(out) => Err(format!("to {node}: the model says {out:?}")),
            None => Ok(()),
        }
    }

    fn feed(&mut self, node: usize, input: HostIn) {
        self.out.clear();
        self.hosts[node].on(self.now[node], input, &mut self.out);
        self.send_all(node);
    }

    fn send_all(&mut self, node: usize) {
        while let Some(ready) = self.hosts[node].transmit_ready() {
            self.now[node] = self.now[node].max(ready) + Span::us(1);
            let Some(sent) = self.hosts[node].poll_transmit(self.now[node]) else { continue };
            let data = match sent.what {
                Wire::Memory(message) => self.data_of(node, &message, sent.word, sent.tag),
                Wire::Notification(_) => None,
            };
            let key = key_of(node, &sent.what);
            self.expected.entry(key).or_default().push_back(Expected { what: sent.what, data, tag: sent.tag });
        }
    }

    /// The data that a chunk of the model must carry: a word, or the next part of what never
    /// changes. Of an answer under way, `there` counts the bytes that are gone.
    fn data_of(&mut self, node: usize, message: &Message, word: u64, tag: Tag) -> Option<Vec<u8>> {
        match message.body {
            Body::WriteRequest { address, bytes, .. } => {
                let asked = self.asked.get(&(node, tag.0))?;
                Some(self.constant_at(asked.data + (address - asked.there), bytes as usize))
            }
            Body::ReadResponse { bytes, last } => {
                let word = word.to_le_bytes();
                let Some(asked) = self.asked.get_mut(&(node, tag.0)) else {
                    return Some(word[..bytes as usize].to_vec());
                };
                let at = asked.data + asked.there;
                let whole = asked.there == 0 && last;
                asked.there += u64::from(bytes);
                if whole && bytes <= 8 {
                    return Some(word[..bytes as usize].to_vec());
                }
                Some(self.constant_at(at, bytes as usize))
            }
            _ => None,
        }
    }

    fn compare(&mut self, node: usize, heard: Heard) -> Result<(), String> {
        let (what, data) = match heard {
            Heard::Message(message, data) => (Wire::Memory(message), data),
            Heard::Notification(said) => (Wire::Notification(said), Vec::new()),
            Heard::Grant(_) => return Err(format!("from {node}: a /G/ comes from the switch alone")),
        };
        self.compared += 1;
        let expected = self.expected.entry(key_of(node, &what)).or_default().pop_front();
        let same = expected.as_ref().is_some_and(|expected| {
            expected.what == what && expected.data.as_ref().is_none_or(|expected| *expected == data)
        });
        if same { Ok(()) } else { Err(format!("from {node}: gates {what:?} with {data:x?}, model {expected:x?}")) }
    }
}

/// The tag of an answer: requester and id, above all tags of the application.
fn answer_tag(request: &Message) -> u32 {
    1 << 31 | request.source.0 << 8 | u32::from(request.id.0)
}

/// Bytes of data of a message.
fn payload_of(message: &Message) -> u32 {
    match message.body {
        Body::WriteRequest { bytes, .. } | Body::ReadResponse { bytes, .. } => bytes,
        Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => 0,
    }
}

/// Puts what was heard from a node in the order of [`Follower::take_sent`].
pub fn in_order(node: usize, heard: &mut [Heard]) {
    heard.sort_by_key(|heard| match heard {
        Heard::Message(message, _) => key_of(node, &Wire::Memory(*message)),
        Heard::Notification(said) => key_of(node, &Wire::Notification(*said)),
        Heard::Grant(grant) => (node as u32, grant.target.0, Class::Answer),
    });
}

fn key_of(node: usize, what: &Wire) -> (u32, u32, Class) {
    let node = node as u32;
    match what {
        Wire::Notification(said) => (node, said.target.0, Class::Notification),
        Wire::Memory(message) => match message.body {
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => (node, message.target.0, Class::Request),
            Body::WriteRequest { .. } => (node, message.target.0, Class::Chunk),
            Body::ReadResponse { .. } => (node, message.target.0, Class::Answer),
        },
    }
}

/// Up to eight bytes as a number, low byte first.
pub fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
