//! Hosts, memories and the switch in gates under random loads: every message of every host is the
//! one that `crates/edm` sends, all data arrive, and frames are preempted and whole.

mod common;

use edm::Modify;
use edm::pcs::frame::{FrameDecoder, encode_frame};
use edm::pcs::multiplex::Policy;
use proptest::prelude::*;
use rtl_harness::follow::{Follower, Setting, word_of};
use rtl_harness::system::{Access, End, Request, System, Variant};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Memory that nobody writes: the source of all data. The same at all nodes.
const CONSTANT_BYTES: usize = 2048;
/// Words that all nodes change.
const WORDS: u64 = 0x2000;
const WORDS_SHARED: u64 = 4;
/// One word for each node, which it alone changes.
const PRIVATE: u64 = 0x2100;
/// Where bulk writes go, each to a place of its own, and where answers go.
const WRITES: u64 = 0x4000;
const ANSWERS: u64 = 0x8000;

/// Something that a node does.
#[derive(Clone, Copy, Debug)]
enum Doing {
    BulkRead {
        from: u64,
        bytes: u32,
    },
    BulkWrite {
        from: u64,
        bytes: u32,
        skew: u64,
    },
    /// On a shared word, or on the node's own.
    Word {
        shared: Option<u64>,
        on: OnWord,
    },
    Frame {
        bytes: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum OnWord {
    Read,
    /// Writes the constant's word with this number.
    Write(u64),
    Modify(Modify),
}

/// Numbers of which [`doing_of`] makes something: unions of strategies would take a fifth of the
/// time of all gates.
fn doing() -> impl Strategy<Value = Doing> {
    let bulk = (0u64..1400, 0u32..8, 9u32..=600).prop_map(|(from, length, bytes)| {
        let bytes = match length {
            0..4 => 9 + bytes % 72,
            4..6 => bytes,
            6 => 64,
            _ => 256,
        };
        (from, bytes)
    });
    (0u8..11, bulk, 0u64..8, 0u8..9, any::<u64>()).prop_map(|(kind, (from, bytes), small, on, any)| match kind {
        0..3 => Doing::BulkRead { from, bytes },
        3..6 => Doing::BulkWrite { from, bytes, skew: small },
        6 => Doing::Frame { bytes: 14 + from as usize % 386 },
        _ => Doing::Word { shared: (small < 4).then_some(small % WORDS_SHARED), on: on_word(on, any) },
    })
}

fn on_word(on: u8, any: u64) -> OnWord {
    match on {
        0..3 => OnWord::Read,
        3..5 => OnWord::Write(any % 100),
        5..7 => OnWord::Modify(Modify::CompareAndSwap { expected: any % 3, new: any / 3 % 3 }),
        7 => OnWord::Modify(Modify::FetchAndAdd { addend: any }),
        _ => OnWord::Modify(Modify::Swap { new: any % 3 }),
    }
}

/// Gap in cycles, node, how far the target is from it, and what is done.
type Step = (u8, usize, usize, Doing);

fn steps(nodes: usize) -> impl Strategy<Value = Vec<Step>> {
    let gap = (0u8..8, 0u8..60).prop_map(|(long, gap)| if long < 6 { gap % 4 } else { gap });
    prop::collection::vec((gap, 0..nodes, 1..nodes, doing()), 1..120)
}

static CONSTANT: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..CONSTANT_BYTES as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect());

/// What must be in memories and at frame decoders in the end.
#[derive(Default)]
struct Outcome {
    /// By node and address.
    bytes: Vec<(usize, u64, Vec<u8>)>,
    /// By source and destination.
    frames: BTreeMap<(usize, usize), Vec<Vec<u8>>>,
    /// The private word of a node at another, after all that it has asked for.
    private: BTreeMap<(usize, usize), u64>,
}

struct Play {
    system: System,
    follower: Follower,
    outcome: Outcome,
    nodes: usize,
    next_write: Vec<u64>,
    next_answer: Vec<u64>,
    requests: usize,
    ended: usize,
}

impl Play {
    fn new(variant: Variant) -> Play {
        let nodes = variant.nodes();
        let mut system = System::new(variant);
        let (policy, chunk) = match variant {
            Variant::Two | Variant::DualFair => (Policy::Fair, 256),
            Variant::Dual => (Policy::Strict, 256),
            Variant::Three => (Policy::Strict, 64),
        };
        for node in 0..nodes {
            system.fill(node, 0, &CONSTANT);
        }
        Play {
            system,
            follower: Follower::new(Setting { nodes, chunk, policy, has_liars: false }, CONSTANT.clone()),
            outcome: Outcome::default(),
            nodes,
            next_write: vec![WRITES; nodes],
            next_answer: vec![ANSWERS; nodes],
            requests: 0,
            ended: 0,
        }
    }

    /// The next free place, with room for `bytes` and some to see whether more was written.
    fn place(next: &mut u64, bytes: u32) -> u64 {
        let at = *next;
        *next += u64::from(bytes).next_multiple_of(8) + 16;
        at
    }

    fn begin(&mut self, node: usize, target: usize, doing: Doing) {
        let tag = self.requests as u16;
        let (access, there, here) = match doing {
            Doing::Frame { bytes } => return self.frame(node, target, bytes),
            Doing::BulkRead { from, bytes } => {
                let here = Play::place(&mut self.next_answer[node], bytes);
                let data = CONSTANT[from as usize..][..bytes as usize].to_vec();
                self.outcome.bytes.push((node, here, data));
                (Access::Read { bytes }, from, here)
            }
            Doing::BulkWrite { from, bytes, skew } => {
                let there = Play::place(&mut self.next_write[target], bytes + 8) + skew;
                let data = CONSTANT[from as usize..][..bytes as usize].to_vec();
                self.outcome.bytes.push((target, there, data));
                (Access::Write { bytes }, there, from)
            }
            Doing::Word { shared, on } => self.word(node, target, shared, on),
        };
        self.requests += 1;
        self.system.submit(node, Request { target: target as u32, access, there, here, tag });
    }

    fn word(&mut self, node: usize, target: usize, shared: Option<u64>, on: OnWord) -> (Access, u64, u64) {
        let there = shared.map_or(PRIVATE + node as u64 * 8, |word| WORDS + word * 8);
        let own = self.outcome.private.entry((node, target)).or_default();
        let before = *own;
        let (access, after, answer) = match on {
            OnWord::Read => (Access::Read { bytes: 8 }, before, before.to_le_bytes().to_vec()),
            OnWord::Write(word) => {
                let after = word_of(&CONSTANT[word as usize * 8..][..8]);
                let access = Access::Write { bytes: 8 };
                if shared.is_none() {
                    *own = after;
                }
                return (access, there, word * 8);
            }
            OnWord::Modify(modify) => {
                let (after, answer) = match modify {
                    Modify::CompareAndSwap { expected, new } if before == expected => (new, vec![1]),
                    Modify::CompareAndSwap { .. } => (before, vec![0]),
                    Modify::FetchAndAdd { addend } => (before.wrapping_add(addend), before.to_le_bytes().to_vec()),
                    Modify::Swap { new } => (new, before.to_le_bytes().to_vec()),
                };
                (Access::Modify(modify), after, answer)
            }
        };
        let here = Play::place(&mut self.next_answer[node], 8);
        if shared.is_none() {
            // Nobody else changes it, and the pair keeps its order.
            *own = after;
            self.outcome.bytes.push((node, here, answer));
        }
        (access, there, here)
    }

    fn frame(&mut self, node: usize, target: usize, bytes: usize) {
        let mut frame: Vec<u8> = (0..bytes).map(|index| (index * 7 + self.requests) as u8).collect();
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, target as u8]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, node as u8]);
        let mut blocks = Vec::new();
        encode_frame(&frame, &mut blocks).expect("the length is allowed");
        self.system.send_frame(node, blocks);
        frame.resize(bytes.max(60), 0);
        self.outcome.frames.entry((node, target)).or_default().push(frame);
    }

    fn cycle(&mut self) -> Result<(), String> {
        self.system.drive();
        let at = |error: String| format!("cycle {}: {error}", self.system.cycles());
        self.follower.cycle(&self.system).map_err(at)?;
        for node in 0..self.nodes {
            for (end, tag) in self.system.ends(node) {
                if !matches!(end, End::Answered | End::Sent) {
                    return Err(format!("cycle {}: request {tag} of {node}: {end:?}", self.system.cycles()));
                }
                self.ended += 1;
            }
        }
        self.system.step();
        Ok(())
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        for (gap, node, far, doing) in steps {
            for _ in 0..*gap {
                self.cycle()?;
            }
            self.begin(*node, (node + far) % self.nodes, *doing);
        }
        let last = self.system.cycles();
        while self.ended < self.requests || self.system.frames_wait() {
            self.cycle()?;
            if self.system.cycles() - last > 15_000 {
                let (ended, requests, wrong) = (self.ended, self.requests, self.system.wrong());
                return Err(format!("{ended} of {requests} requests end; {wrong:?}"));
            }
        }
        for _ in 0..600 {
            self.cycle()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.system.wrong(), Default::default());
        prop_assert!(self.follower.is_idle(), "the models have sent more");
        for (node, address, data) in std::mem::take(&mut self.outcome.bytes) {
            let from = address & !7;
            let skip = (address - from) as usize;
            let got = self.system.dump(node, from, skip + data.len() + 8);
            prop_assert_eq!(&got[skip..skip + data.len()], &data[..], "node {} at {:#x}", node, address);
            prop_assert!(
                got[..skip].iter().chain(&got[skip + data.len()..]).all(|byte| *byte == 0),
                "more was written"
            );
        }
        for node in 0..self.nodes {
            for word in 0..WORDS_SHARED {
                let got = word_of(&self.system.dump(node, WORDS + word * 8, 8));
                prop_assert_eq!(got, self.follower.host(node).memory().read(WORDS + word * 8));
            }
        }
        for ((node, target), word) in &self.outcome.private {
            prop_assert_eq!(word_of(&self.system.dump(*target, PRIVATE + *node as u64 * 8, 8)), *word);
        }
        self.check_frames()
    }

    fn check_frames(&self) -> Result<(), TestCaseError> {
        let mut got: BTreeMap<(usize, usize), Vec<Vec<u8>>> = BTreeMap::new();
        for node in 0..self.nodes {
            let mut decoder = FrameDecoder::default();
            for block in self.system.received(node) {
                let frame = decoder.push(*block).map_err(|error| TestCaseError::fail(error.to_string()))?;
                let Some(frame) = frame else { continue };
                got.entry((frame[11] as usize, node)).or_default().push(frame);
            }
        }
        prop_assert_eq!(&got, &self.outcome.frames);
        Ok(())
    }
}

fn agree(variant: Variant) {
    let (compared, all) = (Cell::new(0), Cell::new(0));
    let begin = rtl_harness::cpu_seconds();
    let cycles = common::run(&steps(variant.nodes()), 8, |steps| {
        let mut play = Play::new(variant);
        play.run(&steps).map_err(TestCaseError::fail)?;
        let cycles = play.system.cycles();
        play.check()?;
        compared.set(compared.get() + play.follower.compared());
        all.set(all.get() + play.system.cycles());
        Ok(cycles)
    });
    let took = rtl_harness::cpu_seconds() - begin;
    eprintln!("{variant:?}: {cycles} cycles, {} messages as crates/edm sends them", compared.get());
    // The memories are read at the end, a word a cycle.
    eprintln!("{variant:?}: {} cycles with those that read the memories, {took:.2} s of CPU", all.get());
    assert!(compared.get() > 0, "the schedules tried nothing");
}

#[test]
fn two_nodes_that_share_their_lines_fairly_do_what_the_model_does() {
    agree(Variant::Two);
}

#[test]
fn three_nodes_with_memory_first_do_what_the_model_does() {
    agree(Variant::Three);
}
