//! Grants for answers whose requests do not come: hosts in gates and in `crates/edm` get the same
//! ones from a switch that lies, and send and count the same.

mod common;

use base::NodeId;
use edm::pcs::memory::encode_grant;
use edm::pcs::multiplex::Policy;
use edm::{Grant, MessageId};
use proptest::prelude::*;
use rtl_harness::follow::{Follower, Setting};
use rtl_harness::liar::Liar;
use rtl_harness::system::{Access, End, Request, System, Variant};

const NODES: usize = 2;
/// Cycles of a timeout of the hosts.
const TIMEOUT: u64 = 20_000;
/// Until all places have been looked at, and the withdrawal of the last one is on the line.
const TURN: u64 = 8 * 16 + 40;
/// The memory that answers are read from.
const BYTES: usize = 1024;

struct Play {
    system: System,
    follower: Follower,
    /// By node: what comes from the switch.
    liars: [Liar; NODES],
    /// Reads of each node so far.
    reads: [u64; NODES],
    ended: u64,
    first_lie: Option<u64>,
    last_lie: u64,
}

impl Play {
    fn new() -> Play {
        let mut system = System::new(Variant::Two);
        let constant: Vec<u8> = (0..BYTES).map(|index| ((index * 37) >> 3) as u8).collect();
        (0..NODES).for_each(|node| system.fill(node, 0, &constant));
        let setting = Setting { nodes: NODES, chunk: 256, policy: Policy::Fair, has_liars: true };
        Play {
            system,
            follower: Follower::new(setting, constant),
            liars: Default::default(),
            reads: [0; NODES],
            ended: 0,
            first_lie: None,
            last_lie: 0,
        }
    }

    fn cycles(&mut self, cycles: u64) -> Result<(), String> {
        for _ in 0..cycles {
            self.system.drive();
            for (node, liar) in self.liars.iter_mut().enumerate() {
                let line = self.system.line(node, false);
                let says = liar.push(line);
                if says != line {
                    self.system.replace(node, false, says);
                }
            }
            let at = |error: String| format!("cycle {}: {error}", self.system.cycles());
            self.follower.cycle(&self.system).map_err(at)?;
            for (end, tag) in (0..NODES).flat_map(|node| self.system.ends(node)) {
                if end != End::Answered {
                    return Err(format!("cycle {}: read {tag}: {end:?}", self.system.cycles()));
                }
                self.ended += 1;
            }
            self.system.step();
        }
        Ok(())
    }

    /// A grant of an answer to the other node, which is so many ids ahead of its next read.
    fn lie(&mut self, node: usize, ahead: u64, bytes: u16) {
        let other = 1 - node;
        let id = MessageId(((self.reads[other] + ahead) % 128) as u8);
        let grant = Grant { target: NodeId(other as u32), id, bytes };
        self.liars[node].waiting.push_back(encode_grant(&grant).expect("it fits its fields"));
        self.last_lie = self.system.cycles();
        self.first_lie.get_or_insert(self.last_lie);
    }

    fn read(&mut self, node: usize, bytes: u32) {
        let tag = self.reads[node] as u16;
        self.reads[node] += 1;
        let request = Request { target: 1 - node as u32, access: Access::Read { bytes }, there: 64, here: 0x4000, tag };
        self.system.submit(node, request);
    }

    /// Until all reads have ended and the lines are quiet.
    fn rest(&mut self) -> Result<(), String> {
        for _ in 0..100 {
            self.cycles(100)?;
            if self.ended == self.reads.iter().sum::<u64>() {
                return self.cycles(100);
            }
        }
        Err(format!("{} of {:?} reads end; {:?}", self.ended, self.reads, self.system.wrong()))
    }

    /// Lets what was granted early lapse, and compares all.
    fn lapse(&mut self) -> Result<(), String> {
        let lapses = self.first_lie.map_or(TIMEOUT, |first| first + TIMEOUT);
        assert!(self.system.cycles() < lapses, "the schedule is longer than a timeout");
        self.follower.time_out();
        self.cycles(self.last_lie + TIMEOUT + TURN - self.system.cycles())?;
        let (wrong, model) = (self.system.wrong(), self.follower.unexpected());
        match self.follower.is_idle() && wrong.unexpected == model {
            true => Ok(()),
            false => Err(format!("the models have sent more, or {model} are unexpected to them: {wrong:?}")),
        }
    }
}

/// Grants meanwhile do not put the timer off.
#[test]
fn a_grant_whose_request_never_comes_is_withdrawn_once_by_both() {
    let mut play = Play::new();
    for _ in 0..4 {
        play.lie(1, 5, 256);
        play.cycles(300).unwrap();
    }
    assert_eq!((play.system.withdrawals(), play.follower.unexpected()), ((0, 0), 0));
    play.lapse().unwrap();
    assert_eq!((play.system.withdrawals(), play.follower.unexpected()), ((0, 1), 1));
    play.cycles(TIMEOUT + TURN).unwrap();
    assert_eq!(play.system.withdrawals(), (0, 1));
}

/// The read with its id is the fifth behind it, and has three chunks as any.
#[test]
fn the_next_request_in_its_place_ends_a_grant_of_both() {
    let mut play = Play::new();
    play.lie(1, 5, 256);
    play.cycles(50).unwrap();
    (0..8).for_each(|_| play.read(0, 600));
    play.rest().unwrap();
    assert_eq!((play.system.wrong().unexpected, play.follower.unexpected()), (1, 1));
    play.lapse().unwrap();
    assert_eq!(play.system.withdrawals(), (0, 0));
}

/// A lie to a node, of a read so far ahead and of so many bytes; then reads of either node.
type Step = (usize, u64, u16, Vec<(usize, u32)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Shorter ones are words, which the models keep.
    let reads = prop::collection::vec((0..NODES, 9u32..700), 0..8);
    prop::collection::vec((0..NODES, 4u64..28, 1u16..=256, reads), 1..10)
}

fn agree(steps: &[Step]) -> Result<u64, String> {
    let mut play = Play::new();
    for (node, ahead, bytes, reads) in steps {
        play.lie(*node, *ahead, *bytes);
        // No other lapses in the same turn.
        play.cycles(TURN)?;
        reads.iter().for_each(|(node, bytes)| play.read(*node, *bytes));
        play.rest()?;
    }
    play.lapse()?;
    Ok(play.system.cycles())
}

#[test]
fn early_grants_are_kept_ended_and_withdrawn_alike() {
    let cycles = common::run(&steps(), 4, |steps| agree(&steps).map_err(TestCaseError::fail));
    eprintln!("{cycles} cycles with early grants for nothing, alike");
}
