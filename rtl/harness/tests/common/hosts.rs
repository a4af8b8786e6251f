//! Hosts at the ports of a switch: what they do, from random numbers.

use edm::Modify;
use edm::pcs::block::{Block, Sync};
use rtl_harness::switch::{Inputs, Model, Variant};
use rtl_harness::talker::{Doing, Manners, Talker};
use std::collections::VecDeque;
use std::iter::Peekable;
use std::slice::Iter;

/// A host does something, so many cycles after the step before.
pub type Step = (u8, u32, Doing);
/// The steps, and how each host answers.
pub type Plan = (Vec<Step>, Vec<Vec<u8>>);

/// Numbers of which [`doing_of`] makes something: unions of strategies take longer. The first is
/// below 100, or by so much above as there are breaches.
pub type Numbers = (u8, u32, u32, u64);

fn bytes_of(number: u32) -> u32 {
    match number % 16 {
        0..9 => 1 + number / 16 % 64,
        9..14 => 1 + number / 16 % 300,
        14 => 64,
        _ if number & 0x70 == 0 => 65_000 + number / 128 % 2_000,
        _ => 0,
    }
}

fn peer_of(ports: u32, number: u32) -> u32 {
    // Now and then no port.
    if number.is_multiple_of(32) { number / 32 % 512 } else { number / 32 % ports }
}

pub fn doing_of(ports: u32, (kind, peer, size, any): Numbers) -> Doing {
    let (target, bytes) = (peer_of(ports, peer), bytes_of(size));
    match kind {
        0..34 => Doing::Write { target, bytes, batch: if any % 8 == 0 { 1 + (any / 8 % 16) as u8 } else { 1 } },
        34..66 => Doing::Read { memory: target, bytes },
        66..78 => Doing::Modify { memory: target, modify: modify_of(any) },
        78..84 => Doing::Withdraw { back: (any % 4) as u8 },
        84..92 => Doing::Frame { bytes: 14 + size as usize % 300 },
        92..100 => Doing::FrameToHost { bytes: 14 + size as usize % 300 },
        _ => breach_of(ports, target, bytes, size, any),
    }
}

fn modify_of(any: u64) -> Modify {
    match any % 3 {
        0 => Modify::CompareAndSwap { expected: any, new: any + 1 },
        1 => Modify::FetchAndAdd { addend: any },
        _ => Modify::Swap { new: any },
    }
}

fn breach_of(ports: u32, target: u32, bytes: u32, size: u32, any: u64) -> Doing {
    let id = (any >> 40) as u8;
    match any % 16 {
        0..4 => Doing::Chunk { target, source: peer_of(ports, size), id, bytes: bytes % 200 },
        4 if size.is_multiple_of(2) => Doing::Grant { target, id },
        4 => Doing::AskAsWrite { back: id % 2 },
        5 => Doing::Storm { memory: target, count: id % 24 },
        6..8 => Doing::Pause { cycles: (any >> 32) as u8 % 60 },
        8 => Doing::Flip { bits: 1 << (size % 66) },
        _ => Doing::Blocks {
            block: block_of(size, any),
            count: if size.is_multiple_of(64) { (any >> 48) as u8 % 40 } else { 1 },
        },
    }
}

/// A block that means something, or nothing.
fn block_of(size: u32, any: u64) -> Block {
    const TYPES: [u64; 12] = [0x1e, 0x78, 0x87, 0xd2, 0xff, 0x4b, 0x33, 0x2d, 0x00, 0x55, 0x66, 0x42];
    let kind = TYPES[size as usize % TYPES.len()];
    match any % 4 {
        0 => Block { sync: Sync::Data, payload: any },
        1 => Block { sync: Sync::Control, payload: kind },
        // A header that may make sense: small nodes, a short size.
        2 => Block { sync: Sync::Control, payload: kind | (any & 0x00ff_00ff_c1fc_0f9f | 8) << 8 },
        _ => Block { sync: Sync::Control, payload: kind | any << 8 },
    }
}

/// They play a plan, until all is said and granted, but not for ever: a liar may have announced what
/// it never sends.
pub struct Hosts<'a> {
    talkers: Vec<Talker>,
    frames: Vec<VecDeque<Block>>,
    steps: Peekable<Iter<'a, Step>>,
    due: u64,
    quiet: u32,
    end: u64,
}

impl Hosts<'_> {
    pub fn new(variant: Variant, (steps, manners): &Plan, is_honest: bool) -> Hosts<'_> {
        let (ports, chunk) = (variant.limits().ports, variant.config().chunk.count() as u32);
        let talker = |port: u32| {
            let manners = Manners { numbers: manners[port as usize].clone(), is_honest };
            Talker::new(port, chunk, variant.policy(), manners)
        };
        Hosts {
            talkers: (0..ports).map(talker).collect(),
            frames: vec![VecDeque::new(); ports as usize],
            steps: steps.iter().peekable(),
            due: 0,
            quiet: 0,
            end: u64::MAX,
        }
    }

    /// What comes in at the ports in this cycle, and blocks of frames for the lines out. `None`: all
    /// has been said.
    pub fn cycle(&mut self, model: &Model) -> Option<Inputs> {
        let now = model.now();
        let is_quiet = self.steps.peek().is_none() && self.talkers.iter().all(Talker::is_quiet) && model.is_drained();
        self.quiet = if is_quiet && self.frames.iter().all(VecDeque::is_empty) { self.quiet + 1 } else { 0 };
        if self.quiet == 40 || now >= self.end {
            return None;
        }
        while let Some((gap, port, doing)) = self.steps.peek()
            && self.due + u64::from(*gap) <= now
        {
            self.due = now;
            self.frames[*port as usize].extend(self.talkers[*port as usize].do_it(*doing));
            self.steps.next();
        }
        if self.steps.peek().is_none() && self.end == u64::MAX {
            self.end = now + 3_000;
        }
        let lines = (0..).zip(&mut self.talkers).map(|(port, talker)| talker.cycle(now, model.line(port))).collect();
        let next = |(port, queue): (usize, &mut VecDeque<Block>)| {
            if model.takes_frame(port) { queue.pop_front() } else { None }
        };
        Some(Inputs { lines, frames: self.frames.iter_mut().enumerate().map(next).collect() })
    }
}
