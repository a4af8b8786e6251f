//! Requests of clients and their answers.

use base::Time;
use history::{StoreAction, StoreAnswer, StoreHistory, StoreOperation, StoreValue, StoreVerdict};
use scalio::{Outcome, Token};
use std::collections::BTreeMap;

/// Steps of a search for an order. Ours: some worlds with lost messages take more than a tenth.
const SEARCH_STEPS_MAX: u64 = 50_000_000;

/// What a client wants of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Get,
    Put { value: Token },
    Delete,
    CompareAndSwap { expected: Option<Token>, new: Token },
}

/// An operation that has no answer yet.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub client: usize,
    pub key: u8,
    pub wanted: Wanted,
    /// The step of the invocation.
    pub start: u64,
}

/// All operations.
#[derive(Default)]
pub struct Ledger {
    operations: Vec<StoreOperation>,
    /// Everything that anybody wanted to store, by number.
    tokens: BTreeMap<u64, Token>,
    wrong: Option<String>,
}

impl Ledger {
    /// A client wants this.
    pub fn asked(&mut self, wanted: Wanted) {
        if let Wanted::Put { value: token } | Wanted::CompareAndSwap { new: token, .. } = wanted {
            self.tokens.insert(token.id, token);
        }
    }

    /// Its client will never know what came of it. It may have happened, or will.
    pub fn unknown(&mut self, open: Open) {
        let action = match open.wanted {
            Wanted::Get => return,
            Wanted::Put { value } => StoreAction::Put(value.id),
            Wanted::Delete => StoreAction::Delete,
            Wanted::CompareAndSwap { expected, new } => {
                StoreAction::CompareAndSwap { expected: expected.map(|token| token.id), new: Some(new.id) }
            }
        };
        self.record(open, action, None);
    }

    /// The answer to its client.
    pub fn answered(&mut self, open: Open, outcome: Outcome<Token>, step: u64) {
        let told = |answer| Some((Time::ps(step), answer));
        match (open.wanted, outcome) {
            (Wanted::Get, Outcome::Value(found)) => self.found(open, found, step),
            (Wanted::Put { value }, Outcome::Stored) => {
                self.record(open, StoreAction::Put(value.id), told(StoreAnswer::Stored))
            }
            (Wanted::Delete, Outcome::Deleted { found }) => {
                self.record(open, StoreAction::Delete, told(StoreAnswer::Removed(found)))
            }
            (Wanted::CompareAndSwap { expected, new }, Outcome::Stored) => {
                let (expected, new) = (expected.map(|token| token.id), Some(new.id));
                let action = StoreAction::CompareAndSwap { expected, new };
                self.record(open, action, told(StoreAnswer::Swapped(true)))
            }
            // What does not swap is a read.
            (Wanted::CompareAndSwap { expected, .. }, Outcome::Differs { found }) if found != expected => {
                self.found(open, found, step)
            }
            (_, Outcome::Unknown) => self.unknown(open),
            (Wanted::Get, Outcome::Unavailable) => {}
            (_, outcome) => self.complain(format!("{open:?} ended as {outcome:?}")),
        }
    }

    fn found(&mut self, open: Open, found: Option<Token>, step: u64) {
        if let Some(token) = found.filter(|token| self.tokens.get(&token.id) != Some(token)) {
            self.complain(format!("{open:?} found foreign bytes: {token:?}"));
        }
        let value: StoreValue = found.map(|token| token.id);
        self.record(open, StoreAction::Get, Some((Time::ps(step), StoreAnswer::Found(value))));
    }

    fn record(&mut self, open: Open, action: StoreAction, answered: Option<(Time, StoreAnswer)>) {
        let id = self.operations.len() as u64;
        let (client, key, invoked) = (open.client as u64, open.key.into(), Time::ps(open.start));
        self.operations.push(StoreOperation { id, client, key, action, invoked, answered });
    }

    /// Something else is wrong. The first counts.
    pub fn complain(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    /// The `back`th last value that was put under a key.
    pub fn recently_put(&self, key: u8, back: usize) -> Option<Token> {
        let of_key = self.operations.iter().rev().filter(|operation| operation.key == u64::from(key));
        let put = |operation: &StoreOperation| match operation.action {
            StoreAction::Put(id) => self.tokens.get(&id).copied(),
            _ => None,
        };
        of_key.filter_map(put).nth(back)
    }

    /// What is wrong, if anything is.
    pub fn verdict(&self) -> Option<String> {
        let mut history = StoreHistory::new(|_| None);
        self.operations.iter().for_each(|operation| history.record(*operation));
        self.wrong.clone().or_else(|| match history.check(SEARCH_STEPS_MAX) {
            StoreVerdict::Linearizable => None,
            StoreVerdict::Unknown { key } => Some(format!("key {key} takes too long to judge")),
            StoreVerdict::Illegal { key, operations } => {
                let of_key: Vec<_> = self.operations.iter().filter(|operation| operation.key == key).collect();
                Some(format!("key {key} is not linearizable, see {operations:?} of {of_key:#?}"))
            }
        })
    }
}
