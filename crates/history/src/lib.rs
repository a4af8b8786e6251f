//! Histories of operations on registers, and checks that they are linearizable (Herlihy and Wing,
//! TOPLAS 1990).
//!
//! Linearizability is local: each register is checked alone. If values are unique, one register is
//! fast to check (Gibbons and Korach, SIAM J. Comput. 1997). A write and the reads that returned it
//! are a *cluster*. Between its first response `f` and its last invocation `s` lies its *zone*,
//! forward if `f < s`. The history is linearizable under three conditions: no read returns a value
//! before its write, no two forward zones overlap, and no backward zone lies within a forward one.
//! A cluster therefore needs only three operations, however often it was read, and a register costs
//! `n log n` of its values.
//!
//! [`StoreHistory`] is for a key-value store: deletions and compare-and-swaps require a search for
//! an order.
//!
//! [`WriteOrder`] checks a weaker property during a run, with less memory: the last acknowledged
//! write of a block wins.
//!
//! An operation precedes another if it ended *before* the other began. At the same instant they are
//! concurrent.

mod operation;
mod register;
mod store;
mod write_order;

pub use operation::{Action, Operation, RegisterId, Violation, Why};
pub use store::{StoreAction, StoreAnswer, StoreHistory, StoreKey, StoreOperation, StoreValue, StoreVerdict};
pub use write_order::{BlockId, Found, OrderViolation, Write, WriteEnd, WriteOrder};

use base::Time;
use register::Register;
use std::collections::BTreeMap;

/// What clients have done and seen, in any order of recording.
pub struct History {
    registers: BTreeMap<RegisterId, Register>,
    initial: fn(RegisterId) -> u64,
    operations: u64,
    broken: Option<Violation>,
}

impl Default for History {
    fn default() -> History {
        History::new(|_| 0)
    }
}

impl History {
    /// Nothing has happened yet; `initial` is what each register holds.
    pub fn new(initial: fn(RegisterId) -> u64) -> History {
        History { registers: BTreeMap::new(), initial, operations: 0, broken: None }
    }
    /// Adds an operation. A read without an answer says nothing and is forgotten; a write without
    /// one may or may not have happened.
    pub fn record(&mut self, operation: Operation) {
        if operation.action == Action::Read && operation.responded.is_none() {
            return;
        }
        self.operations += 1;
        let initial = self.initial;
        let register = self.registers.entry(operation.register);
        let register = register.or_insert_with(|| Register::new(initial(operation.register)));
        if let Err(violation) = register.record(&operation) {
            self.broken.get_or_insert(violation);
        }
    }
    /// Promises that every operation that was invoked before `before` has been recorded, judges
    /// what there is, and forgets values that nothing later can have to do with. (A read that
    /// returns one of those is then a read of a value that nobody wrote.)
    pub fn settle(&mut self, before: Time) -> Result<(), Violation> {
        self.broken.clone().map_or(Ok(()), Err)?;
        self.registers.iter_mut().try_for_each(|(id, register)| register.settle(*id, before))
    }
    /// Whether everything that was recorded is linearizable; else the first register, in their
    /// order, that is not.
    pub fn check(&self) -> Result<(), Violation> {
        self.broken.clone().map_or(Ok(()), Err)?;
        self.registers.iter().try_for_each(|(id, register)| register.check(*id))
    }
    /// Operations recorded so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }
    /// Values that are remembered now, over all registers.
    pub fn values(&self) -> usize {
        self.registers.values().map(Register::values).sum()
    }
}
