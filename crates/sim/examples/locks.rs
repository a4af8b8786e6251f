//! A spin lock on remote memory (EDM, paper 3.2.1: atomic operations for locks and mutexes).
//! Compare-and-swap or swap takes it, and a write releases it. Its holder reads and writes a
//! counter beside it.
//!
//! Run it with `cargo run -p sim --example locks`. Five compute nodes share one memory node of a
//! simulated 100 Gb/s rack. The counter is right although its increments are a read and a write,
//! because no two nodes are ever inside. The order of the two last steps matters. The write of the
//! counter and the write that releases the lock go from one node to one memory, so EDM keeps them
//! in order. The program need not wait for the first to end.
#![allow(dead_code)]

#[path = "../tests/sim/support/mod.rs"]
pub mod support;

use base::{NodeId, Time};
use edm::{Access, Modify};
use sim::rigs::edm::{EdmRig, EdmRigConfig};
use support::programs::{Ask, Program, run};

const MEMORY: NodeId = NodeId(0);
const LOCK: u64 = 0;
const COUNTER: u64 = 8;
const FREE: u64 = 0;
const TAKEN: u64 = 1;

/// Which atomic operation takes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stores "taken" if it reads "free"; the answer is one byte.
    CompareAndSwap,
    /// Stores "taken" in any case; whoever reads "free" has it.
    Swap,
}

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Has done nothing yet.
    Start,
    /// Has tried to take the lock.
    Taking,
    /// Has the lock since then and has asked for the counter.
    Reading { since: Time },
    /// Has written the counter.
    Writing { since: Time },
    /// Has given the lock back.
    Releasing,
}

/// One node that increments the counter so many times, under the lock.
struct Worker {
    kind: Kind,
    state: State,
    left: u32,
    tries: u32,
    /// From having the lock to asking to give it back.
    sections: Vec<(Time, Time)>,
}

impl Worker {
    fn take_lock(&mut self) -> Option<Ask> {
        if self.left == 0 {
            return None;
        }
        self.state = State::Taking;
        self.tries += 1;
        let modify = match self.kind {
            Kind::CompareAndSwap => Modify::CompareAndSwap { expected: FREE, new: TAKEN },
            Kind::Swap => Modify::Swap { new: TAKEN },
        };
        Some(Ask { target: MEMORY, access: Access::Modify { address: LOCK, modify } })
    }

    fn has_it(&self, answer: u64) -> bool {
        match self.kind {
            Kind::CompareAndSwap => answer == 1,
            Kind::Swap => answer == FREE,
        }
    }
}

impl Program for Worker {
    fn next(&mut self, now: Time, answer: Option<u64>) -> Option<Ask> {
        let (state, access) = match (self.state, answer) {
            (State::Taking, Some(answer)) if self.has_it(answer) => {
                (State::Reading { since: now }, Access::Read { address: COUNTER, bytes: 8 })
            }
            (State::Reading { since }, Some(count)) => {
                (State::Writing { since }, Access::Write { address: COUNTER, bytes: 8, word: count + 1 })
            }
            (State::Writing { since }, _) => {
                self.sections.push((since, now));
                self.left -= 1;
                (State::Releasing, Access::Write { address: LOCK, bytes: 8, word: FREE })
            }
            _ => return self.take_lock(),
        };
        self.state = state;
        Some(Ask { target: MEMORY, access })
    }
}

/// What has come of it.
#[derive(Debug)]
pub struct Counted {
    /// What the counter holds.
    pub counter: u64,
    /// When somebody had the lock.
    pub sections: Vec<(Time, Time)>,
    /// How often it was asked for.
    pub tries: u32,
    /// When all were done.
    pub end: Time,
}

/// Lets every node but the memory node increment the counter `each` times.
pub fn count_under_lock(config: EdmRigConfig, kind: Kind, each: u32) -> Counted {
    let worker = || Worker { kind, state: State::Start, left: each, tries: 0, sections: Vec::new() };
    let mut workers: Vec<Worker> = (1..config.nodes).map(|_| worker()).collect();
    let mut rig = EdmRig::new(config);
    let programs = workers.iter_mut().map(|worker| Some(worker as &mut dyn Program));
    let (done, _) = run(&mut rig, Vec::new(), std::iter::once(None).chain(programs).collect());
    Counted {
        counter: rig.host(MEMORY).memory().read(COUNTER),
        sections: workers.iter().flat_map(|worker| worker.sections.clone()).collect(),
        tries: workers.iter().map(|worker| worker.tries).sum(),
        end: done.iter().map(|done| done.ended).max().unwrap_or(Time::ZERO),
    }
}

fn main() {
    for kind in [Kind::CompareAndSwap, Kind::Swap] {
        let counted = count_under_lock(support::cluster(6), kind, 100);
        let Counted { counter, sections, tries, end } = counted;
        println!("{kind:?}: counter {counter} after {} sections, {tries} tries, {end}", sections.len());
    }
}
