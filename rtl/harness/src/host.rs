//! Golden vectors of a host: what it gets, and what it then says, message by message. `crates/edm`
//! writes them; the gates of a host are held against them.
//!
//! They have no cycles, since no program of `crates/edm` has those of a host. A step is all that
//! the host gets before it rests. Then come what it says and what it tells its application. A line
//! has one of these, in hexadecimal digits; a block has 66 bits, the sync header last:
//!
//! - `fill ADDRESS BYTES`: what the host's memory holds at the begin.
//! - `ask KIND TARGET THERE HERE TAG NUMBERS`: a request of its application. `read` and `write`
//!   have bytes; `compare` what is expected and what is new, `add` and `swap` one number.
//! - `hear BLOCKS`: a message or a /G/ from the switch.
//! - `say BLOCKS`: a message or an /N/ of the host. Targets are in order. Of one target, requests
//!   are first, then /N/, chunks of writes, and answers. Those of one kind are as they were sent.
//!   An /N/ of zero bytes has no order with others, and is last.
//! - `end answered TAG` and `end sent TAG`: in alphabetical order.
//! - `count WRITTEN UNEXPECTED`: writes that are whole at the host, and what nobody waits for.
//! - `rest`: the step is over.
//! - `hold ADDRESS BYTES`: what the host's memory holds at the end.

use crate::follow::{Follower, Heard, Setting, Tap, in_order};
use crate::liar::Liar;
use crate::system::{Access, Descrambler, End, Request, Scrambler, System, Variant, Wrong};
use base::NodeId;
use edm::pcs::block::Block;
use edm::pcs::memory::{encode_grant, encode_message, encode_notification};
use edm::pcs::multiplex::Policy;
use edm::{Body, HostOut, MessageId, Modify, Tag};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The host has nothing more to say when it was silent for so many cycles.
const SILENCE: u32 = 200;
/// It must be then.
const REST_MAX: u32 = 10_000;
/// The host that is looked at.
const OWN: usize = 0;

/// What the gates of a variant are.
pub fn setting(variant: Variant) -> Setting {
    let (policy, chunk) = match variant {
        Variant::Two | Variant::DualFair => (Policy::Fair, 256),
        Variant::Dual => (Policy::Strict, 256),
        Variant::Three => (Policy::Strict, 64),
    };
    Setting { nodes: variant.nodes(), chunk, policy, has_liars: true }
}

/// Writes vectors of a host: node 0.
pub struct Writer {
    follower: Follower,
    inputs: String,
    text: String,
    ends: Vec<String>,
    counts: [u64; 2],
    /// Where the answer of a request goes, by tag.
    here: BTreeMap<u32, u64>,
    /// Where the next byte of an answer goes, by target and id.
    answers: BTreeMap<(NodeId, MessageId), u64>,
    /// Bytes that have changed in the host's memory.
    held: BTreeMap<u64, u8>,
}

impl Writer {
    /// An idle host; `constant` is in its memory from address 0 on, and nobody writes there.
    pub fn new(setting: Setting, constant: Vec<u8>) -> Writer {
        Writer {
            text: format!("fill 0 {}\n", digits(&constant)),
            follower: Follower::new(setting, constant),
            inputs: String::new(),
            ends: Vec::new(),
            counts: [0; 2],
            here: BTreeMap::new(),
            answers: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// A request of the application.
    pub fn ask(&mut self, request: Request) {
        self.inputs += &line_of(&request);
        self.here.insert(request.tag.into(), request.here);
        self.follower.submit(OWN, request);
    }

    /// A message or a /G/ from the switch.
    ///
    /// # Panics
    /// If it is none that a host may get.
    pub fn hear(&mut self, heard: Heard) {
        writeln!(self.inputs, "hear {}", blocks_of(&heard)).expect("a text takes all");
        self.follower.receive(OWN, heard.clone()).expect("a host may get it");
        let before = self.counts[1];
        for out in self.follower.decided() {
            match *out {
                HostOut::Answered { tag, .. } => self.ends.push(format!("end answered {:04x}", tag.0)),
                HostOut::Written => self.counts[0] += 1,
                HostOut::Unexpected => self.counts[1] += 1,
                HostOut::Null { .. } => panic!("no timer fires"),
            }
        }
        // A request may end an older answer, and is served.
        if let Heard::Message(message, data) = heard
            && (self.counts[1] == before || matches!(message.body, Body::ReadModifyWrite { .. }))
        {
            self.keep(message.source, message.id, message.body, &data);
        }
    }

    /// Notes what a message changes in the host's memory.
    fn keep(&mut self, source: NodeId, id: MessageId, body: Body, data: &[u8]) {
        let word;
        let (address, bytes) = match body {
            Body::WriteRequest { address, .. } => (address, data),
            Body::ReadModifyWrite { address, .. } => {
                word = self.follower.host(OWN).memory().read(address).to_le_bytes();
                (address, &word[..])
            }
            Body::ReadResponse { bytes, .. } => {
                let next = self.answers.get_mut(&(source, id)).expect("it was asked for");
                *next += u64::from(bytes);
                (*next - u64::from(bytes), data)
            }
            Body::ReadRequest { .. } => return,
        };
        self.held.extend((address..).zip(bytes.iter().copied()));
    }

    /// Lets the host rest; what it has said in this step.
    pub fn rest(&mut self) -> Vec<Heard> {
        let sent = self.follower.take_sent(OWN);
        for (heard, Tag(tag)) in &sent {
            let Heard::Message(message, _) = heard else { continue };
            match message.body {
                Body::WriteRequest { last: true, .. } => self.ends.push(format!("end sent {tag:04x}")),
                Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => {
                    self.answers.insert((message.target, message.id), self.here[tag]);
                }
                _ => {}
            }
        }
        let said: Vec<Heard> = sent.into_iter().map(|(heard, _)| heard).collect();
        self.text += &std::mem::take(&mut self.inputs);
        self.text += &outcome(&said, std::mem::take(&mut self.ends), std::mem::take(&mut self.counts));
        self.text += "rest\n";
        said
    }

    /// The vectors.
    pub fn text(mut self) -> String {
        let mut bytes = self.held.into_iter().peekable();
        while let Some((first, byte)) = bytes.next() {
            let mut range = vec![byte];
            while let Some((_, byte)) = bytes.next_if(|(address, _)| *address == first + range.len() as u64) {
                range.push(byte);
            }
            writeln!(self.text, "hold {first:x} {}", digits(&range)).expect("a text takes all");
        }
        self.text
    }
}

/// The lines of what a host says and tells in a step.
fn outcome(said: &[Heard], mut ends: Vec<String>, [written, unexpected]: [u64; 2]) -> String {
    ends.sort();
    let is_withdrawal = |heard: &&Heard| matches!(heard, Heard::Notification(said) if said.bytes == 0);
    let (last, first): (Vec<&Heard>, Vec<&Heard>) = said.iter().partition(is_withdrawal);
    let said: String = first.iter().chain(&last).map(|heard| format!("say {}\n", blocks_of(heard))).collect();
    let ends: String = ends.iter().map(|end| format!("{end}\n")).collect();
    format!("{said}{ends}count {written:x} {unexpected:x}\n")
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(heard: &Heard) -> Vec<Block> {
    let mut blocks = Vec::new();
    match heard {
        Heard::Message(message, data) => encode_message(message, data, &mut blocks).expect("the numbers fit"),
        Heard::Notification(said) => blocks.push(encode_notification(said).expect("the numbers fit")),
        Heard::Grant(grant) => blocks.push(encode_grant(grant).expect("the numbers fit")),
    }
    blocks
}

fn blocks_of(heard: &Heard) -> String {
    encoded(heard).iter().map(|block| format!("{:017x}", block.to_bits())).collect::<Vec<_>>().join(" ")
}

fn line_of(request: &Request) -> String {
    let (kind, numbers) = match request.access {
        Access::Read { bytes } => ("read", format!("{bytes:x}")),
        Access::Write { bytes } => ("write", format!("{bytes:x}")),
        Access::Modify(Modify::CompareAndSwap { expected, new }) => ("compare", format!("{expected:x} {new:x}")),
        Access::Modify(Modify::FetchAndAdd { addend }) => ("add", format!("{addend:x}")),
        Access::Modify(Modify::Swap { new }) => ("swap", format!("{new:x}")),
    };
    let Request { target, there, here, tag, .. } = request;
    format!("ask {kind} {target:x} {there:x} {here:x} {tag:04x} {numbers}\n")
}

fn request_of(fields: &[&str]) -> Option<Request> {
    let [kind, numbers @ ..] = fields else { return None };
    let numbers: Option<Vec<u64>> = numbers.iter().map(|field| u64::from_str_radix(field, 16).ok()).collect();
    let numbers = numbers?;
    let &[target, there, here, tag, first, ref second @ ..] = numbers.as_slice() else { return None };
    let access = match (*kind, second) {
        ("read", []) => Access::Read { bytes: first.try_into().ok()? },
        ("write", []) => Access::Write { bytes: first.try_into().ok()? },
        ("compare", &[new]) => Access::Modify(Modify::CompareAndSwap { expected: first, new }),
        ("add", []) => Access::Modify(Modify::FetchAndAdd { addend: first }),
        ("swap", []) => Access::Modify(Modify::Swap { new: first }),
        _ => return None,
    };
    Some(Request { target: target.try_into().ok()?, access, there, here, tag: tag.try_into().ok()? })
}

fn bytes_of(fields: &[&str]) -> Option<(u64, Vec<u8>)> {
    let &[address, digits] = fields else { return None };
    let pair = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(pair).collect();
    Some((u64::from_str_radix(address, 16).ok()?, bytes?))
}

fn heard_of(fields: &[&str]) -> Option<Vec<Block>> {
    let bits = |field: &&str| u128::from_str_radix(field, 16).ok().filter(|bits| bits >> 66 == 0);
    fields.iter().map(|field| Block::from_bits(bits(field)?).ok()).collect()
}

/// The gates of a host that hear what a test says in place of the switch. The switch hears idles.
struct Alone {
    system: System,
    switch: Liar,
    tap: Tap,
    /// What the host says, and what the switch hears instead.
    up: (Descrambler, Scrambler),
    is_cut: bool,
    said: Vec<Heard>,
    ends: Vec<String>,
    written: u64,
    unexpected: u64,
    silence: u32,
}

impl Alone {
    fn new(variant: Variant) -> Alone {
        Alone {
            system: System::new(variant),
            switch: Liar::default(),
            tap: Tap::new(setting(variant).policy),
            up: Default::default(),
            is_cut: false,
            said: Vec::new(),
            ends: Vec::new(),
            written: 0,
            unexpected: 0,
            silence: 0,
        }
    }

    /// Takes a line that is an input; whether it is one.
    fn input(&mut self, line: &str) -> Option<bool> {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields[0] {
            "fill" => {
                let (address, bytes) = bytes_of(&fields[1..])?;
                self.system.fill(OWN, address, &bytes);
            }
            "ask" => self.system.submit(OWN, request_of(&fields[1..])?),
            "hear" => self.switch.waiting.extend(heard_of(&fields[1..])?),
            "say" | "end" | "count" | "rest" | "hold" => return Some(false),
            _ => return None,
        }
        Some(true)
    }

    fn cycle(&mut self) -> Result<(), String> {
        self.system.drive();
        let (up, down) = (self.system.line(OWN, true), self.system.line(OWN, false));
        self.silence += 1;
        if let Some(heard) = self.tap.push(up)? {
            self.said.push(heard);
            self.silence = 0;
        }
        for (end, tag) in self.system.ends(OWN) {
            match end {
                End::Answered => self.ends.push(format!("end answered {tag:04x}")),
                End::Sent => self.ends.push(format!("end sent {tag:04x}")),
                _ => return Err(format!("request {tag}: {end:?}")),
            }
        }
        self.written += u64::from(self.system.written(OWN));
        let says = self.switch.push(down);
        if says != down {
            self.system.replace(OWN, false, says);
        }
        // The first block says where the scramblers are.
        let said = self.up.0.push(up);
        let is_cut = std::mem::replace(&mut self.is_cut, true);
        let heard = self.up.1.push(if is_cut { Block::IDLE.to_bits() } else { said });
        if heard != up {
            self.system.replace(OWN, true, heard);
        }
        self.system.step();
        Ok(())
    }

    /// The lines of what the host does until it rests.
    fn rest(&mut self) -> Result<String, String> {
        self.silence = 0;
        let mut cycles = 0;
        while self.silence < SILENCE {
            self.cycle()?;
            cycles += 1;
            if !self.switch.waiting.is_empty() {
                self.silence = 0;
            }
            if cycles > REST_MAX {
                return Err("the host does not rest".into());
            }
        }
        let unexpected = self.system.wrong().unexpected;
        let more = unexpected - std::mem::replace(&mut self.unexpected, unexpected);
        let mut said = std::mem::take(&mut self.said);
        in_order(OWN, &mut said);
        Ok(outcome(&said, std::mem::take(&mut self.ends), [std::mem::take(&mut self.written), more]))
    }
}

/// Plays [`Writer`]'s vectors to the gates, and compares what they do in each step.
///
/// # Errors
/// The first step in which they differ, or a line that is no vector.
pub fn replay(variant: Variant, text: &str) -> Result<(), String> {
    let mut gates = Alone::new(variant);
    let (mut step, mut expected, mut held) = (0, String::new(), Vec::new());
    for line in text.lines() {
        let is_input = gates.input(line).ok_or_else(|| format!("step {step}: no vector: {line}"))?;
        match line.split_once(' ') {
            _ if is_input => {}
            Some(("hold", rest)) => {
                let bytes = bytes_of(&rest.split(' ').collect::<Vec<_>>());
                held.push(bytes.ok_or_else(|| format!("step {step}: no vector: {line}"))?);
            }
            Some(_) => expected += &format!("{line}\n"),
            None => {
                let got = gates.rest().map_err(|error| format!("step {step}: {error}"))?;
                if got != expected {
                    return Err(format!("step {step}: the gates do\n{got}expected is\n{expected}"));
                }
                expected.clear();
                step += 1;
            }
        }
    }
    let wrong = gates.system.wrong();
    if wrong != (Wrong { unexpected: wrong.unexpected, ..Wrong::default() }) {
        return Err(format!("{wrong:?}"));
    }
    compare_memory(&mut gates.system, &held)
}

/// Reads the memory. Its cycles have the switch's own line, whose scrambler the host does not know.
fn compare_memory(system: &mut System, held: &[(u64, Vec<u8>)]) -> Result<(), String> {
    for (address, bytes) in held {
        let (from, skip) = (address & !7, (address % 8) as usize);
        let got = system.dump(OWN, from, skip + bytes.len());
        if got[skip..] != **bytes {
            let (got, bytes) = (digits(&got[skip..]), digits(bytes));
            return Err(format!("at {address:x} the gates hold {got}, expected is {bytes}"));
        }
    }
    Ok(())
}
