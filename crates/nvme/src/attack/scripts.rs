//! The scripts. Ids of their commands are below F000h, and none is used twice unless that is the
//! attack.

mod data;
mod framing;
mod logic;

use crate::attack::{Attack, Call, LinkId, Rule, Step, Victim, rules};
use crate::pdu::{Digests, Framing, Header, InitializeRequest};
use crate::{Access, AccessFlags, Body, Command, Io, Sgl, Sqe};

/// All of them, for a victim.
pub fn scripts(victim: &Victim) -> Vec<Attack> {
    let mut all = framing::scripts();
    all.extend(data::scripts(victim));
    all.extend(logic::scripts(victim));
    all
}

const PLAIN: Digests = Digests { header: false, data: false };
const BOTH: Digests = Digests { header: true, data: true };

fn attack(name: &'static str, about: &'static str, steps: impl IntoIterator<Item = Vec<Step>>) -> Attack {
    let steps = steps.into_iter().flatten().collect();
    Attack { name, about, rule: rules::STREAM, leeway: Vec::new(), barred: None, steps }
}

/// All of them stem from one rule.
fn under(rule: &'static Rule, all: Vec<Attack>) -> Vec<Attack> {
    all.into_iter().map(|attack| attack.under(rule)).collect()
}

/// A connection whose parameters are agreed on.
fn greeted(link: LinkId, digests: Digests) -> Vec<Step> {
    vec![Step::Open(link), Step::Hello(link, digests)]
}

/// The admin queue of a controller that is ready.
fn admin(link: LinkId, digests: Digests) -> Vec<Step> {
    let calls = [Step::Call(link, Call::ConnectAdmin), Step::Call(link, Call::Enable)];
    greeted(link, digests).into_iter().chain(calls).collect()
}

/// The admin queue on link 0 and an I/O queue of 16 entries on link 1.
fn queues(digests: Digests) -> Vec<Step> {
    let call = Call::ConnectIo { admin: 0, queue: 1, size_minus_one: 15 };
    [admin(0, digests), greeted(1, digests), vec![Step::Call(1, call)]].concat()
}

fn initialize(alignment: u8) -> Vec<u8> {
    let request = InitializeRequest { alignment, digests: PLAIN, ready_max_minus_one: 0 };
    pdu(&Header::InitializeRequest(request), &[])
}

fn pdu(header: &Header, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Framing::INITIAL.write(header, data, &mut bytes);
    bytes
}

fn capsule(entry: Sqe, data: &[u8]) -> Vec<u8> {
    pdu(&Header::Command { entry, data_length: data.len() as u32 }, data)
}

/// `bytes` with these put at a place.
fn patched(mut bytes: Vec<u8>, at: usize, patch: &[u8]) -> Vec<u8> {
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

fn access(start: u64, blocks: u32) -> Access {
    Access { start, blocks_minus_one: (blocks - 1) as u16, flags: AccessFlags::empty() }
}

fn write(victim: &Victim, id: u16, start: u64, blocks: u32, data: Sgl) -> Sqe {
    let body = Body::Io(Io::Write(access(start, blocks)));
    Command { namespace: victim.namespace, data, ..Command::new(id, body) }.encode()
}

fn read(victim: &Victim, id: u16, start: u64, blocks: u32, data: Sgl) -> Sqe {
    let body = Body::Io(Io::Read(access(start, blocks)));
    Command { namespace: victim.namespace, data, ..Command::new(id, body) }.encode()
}

/// A write that is asked for its data: too large for a capsule. Where the victim leaves no such
/// write the script is barred, see [`asked`].
fn open_write(victim: &Victim, id: u16) -> Vec<Step> {
    let length = asked_bytes(victim);
    let entry = write(victim, id, 0, length / victim.block_bytes, Sgl::Transport { length });
    vec![Step::Entry(1, Box::new(entry), Vec::new()), Step::AwaitReady(1, id)]
}

/// Bytes of that write.
fn asked_bytes(victim: &Victim) -> u32 {
    victim.asked_blocks().unwrap_or(8) * victim.block_bytes
}

/// A script that needs a write which is asked for its data.
fn asked(victim: &Victim, attack: Attack) -> Attack {
    attack.barred_unless(victim.asked_blocks().is_some(), "every write that its MDTS allows fits into a capsule")
}
