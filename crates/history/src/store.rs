//! Histories of a key-value store (get, put, delete, compare-and-swap), and checks that they are
//! linearizable.
//!
//! Each key is checked alone. A key with only reads and writes of unique values uses the fast
//! algorithm of [`crate::History`]; any other is searched.

mod json_lines;
mod search;

use crate::register::Register;
use crate::{Action, Operation, Why};
use base::Time;
use std::collections::BTreeMap;

/// A key, by the caller's number for it.
pub type StoreKey = u64;
/// A value, by the caller's number for it; `None`: the key is not there.
pub type StoreValue = Option<u64>;

/// An operation on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAction {
    /// Finds the key's value.
    Get,
    /// Stores a value.
    Put(u64),
    /// Removes the key.
    Delete,
    /// Stores `new` if the key holds `expected`.
    CompareAndSwap {
        /// What the key must hold.
        expected: StoreValue,
        /// What it holds then.
        new: StoreValue,
    },
}

/// What the store said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAnswer {
    /// A get found this.
    Found(StoreValue),
    /// A put is done.
    Stored,
    /// A delete is done; whether the key was there.
    Removed(bool),
    /// Whether a compare-and-swap found what it expected.
    Swapped(bool),
}

/// One operation as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOperation {
    /// The caller's number for it, for messages.
    pub id: u64,
    /// The requesting client.
    pub client: u64,
    /// On what.
    pub key: StoreKey,
    /// The operation.
    pub action: StoreAction,
    /// Time of the invocation.
    pub invoked: Time,
    /// When it was answered, and what; `None` if it never was. Then it may have taken effect, or
    /// will, or never does.
    pub answered: Option<(Time, StoreAnswer)>,
}

impl StoreOperation {
    /// What the key holds after the operation, if a store that held `held` answers so.
    fn applied(&self, held: StoreValue) -> Option<StoreValue> {
        let (answer, next) = match self.action {
            StoreAction::Get => (StoreAnswer::Found(held), held),
            StoreAction::Put(value) => (StoreAnswer::Stored, Some(value)),
            StoreAction::Delete => (StoreAnswer::Removed(held.is_some()), None),
            StoreAction::CompareAndSwap { expected, new } if held == expected => (StoreAnswer::Swapped(true), new),
            StoreAction::CompareAndSwap { .. } => (StoreAnswer::Swapped(false), held),
        };
        let fits = self.answered.is_none_or(|(_, told)| told == answer);
        fits.then_some(next)
    }
}

/// Content of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreVerdict {
    /// Some order of the operations explains every answer.
    Linearizable,
    /// No order does.
    Illegal {
        /// The first key, in their order, for which there is none.
        key: StoreKey,
        /// Operations that show it, by their numbers: of a searched key the first whose answer
        /// cannot be explained.
        operations: Vec<u64>,
    },
    /// The search was given up; no key was found illegal.
    Unknown {
        /// The first key that took too long.
        key: StoreKey,
    },
}

/// What clients have done and seen, in any order of recording.
pub struct StoreHistory {
    keys: BTreeMap<StoreKey, Vec<StoreOperation>>,
    initial: fn(StoreKey) -> StoreValue,
}

impl StoreHistory {
    /// Nothing has happened yet; `initial` is what each key holds.
    pub fn new(initial: fn(StoreKey) -> StoreValue) -> StoreHistory {
        StoreHistory { keys: BTreeMap::new(), initial }
    }

    /// Adds an operation. A get without an answer says nothing and is forgotten.
    pub fn record(&mut self, operation: StoreOperation) {
        if operation.action != StoreAction::Get || operation.answered.is_some() {
            self.keys.entry(operation.key).or_default().push(operation);
        }
    }

    /// Operations that are remembered.
    pub fn operations(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// Checks each key, in their order. Gives up a searched key after `steps_max` steps, or when
    /// 128 of its operations overlap. An unanswered operation overlaps all later ones.
    pub fn check(&self, steps_max: u64) -> StoreVerdict {
        let mut verdict = StoreVerdict::Linearizable;
        for (key, operations) in &self.keys {
            let initial = (self.initial)(*key);
            let judged = check_quickly(*key, initial, operations)
                .unwrap_or_else(|| search::check(*key, initial, operations, steps_max));
            match judged {
                StoreVerdict::Linearizable => {}
                StoreVerdict::Illegal { .. } => return judged,
                StoreVerdict::Unknown { .. } if verdict == StoreVerdict::Linearizable => verdict = judged,
                StoreVerdict::Unknown { .. } => {}
            }
        }
        verdict
    }

    /// Writes the history for `tools/porcupine`: a JSON object a line. Keys and values become
    /// decimal strings. Times are a picosecond later than they were, so that what keys held at
    /// first can be put there before everything.
    pub fn write_json_lines(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        for (key, operations) in &self.keys {
            json_lines::write_initial(out, *key, (self.initial)(*key))?;
            operations.iter().try_for_each(|operation| json_lines::write(out, operation))?;
        }
        Ok(())
    }
}

/// The quick way; `None` where it is not open.
fn check_quickly(key: StoreKey, initial: StoreValue, operations: &[StoreOperation]) -> Option<StoreVerdict> {
    let mut register = Register::new(number(initial)?);
    for operation in operations {
        if let Err(violation) = register.record(&as_register(key, operation)?) {
            // A value that was written twice is for the search.
            return (violation.why != Why::WrittenTwice).then(|| illegal(key, &violation.operations));
        }
    }
    let judged = register.check((key, 0));
    Some(judged.map_or_else(|violation| illegal(key, &violation.operations), |()| StoreVerdict::Linearizable))
}

fn illegal(key: StoreKey, operations: &[Operation]) -> StoreVerdict {
    StoreVerdict::Illegal { key, operations: operations.iter().map(|operation| operation.id).collect() }
}

/// A value as a register's number: "not there" is 0.
fn number(value: StoreValue) -> Option<u64> {
    value.map_or(Some(0), |value| value.checked_add(1))
}

fn as_register(key: StoreKey, operation: &StoreOperation) -> Option<Operation> {
    let (action, value) = match (operation.action, operation.answered) {
        (StoreAction::Put(value), None | Some((_, StoreAnswer::Stored))) => (Action::Write, number(Some(value))?),
        (StoreAction::Get, Some((_, StoreAnswer::Found(value)))) => (Action::Read, number(value)?),
        _ => return None,
    };
    let responded = operation.answered.map(|(at, _)| at);
    Some(Operation { id: operation.id, register: (key, 0), action, value, invoked: operation.invoked, responded })
}
