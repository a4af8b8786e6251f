//! The histories of a run, and whether they are linearizable.

use super::asks::Ask;
use base::{Operation, Time};
use history::{Action, History, StoreAction, StoreAnswer, StoreHistory, StoreOperation};
use record::metric::{self, Meter};
use scalio::{Outcome, Token};
use std::collections::BTreeMap;

/// Value of a GET that finds nothing. Nobody writes it: the keys of a run are all there.
const NOTHING: u64 = u64::MAX;

/// The histories of a run, as far as they are kept.
pub struct Judges {
    /// By key, for the run's own verdict.
    registers: Option<BTreeMap<u32, History>>,
    /// All operations, for others.
    kept: Option<StoreHistory>,
}

impl Judges {
    /// Histories for the verdict, and for others.
    pub fn new(is_judged: bool, is_kept: bool) -> Judges {
        // Values that were there at first are named after their keys.
        Judges { registers: is_judged.then(BTreeMap::new), kept: is_kept.then(|| StoreHistory::new(Some)) }
    }

    /// Notes what an operation said, if somebody wants it known.
    pub fn remember(&mut self, ask: &Ask, outcome: &Outcome<Token>, now: Time) {
        let said = match outcome {
            Outcome::Value(value) => {
                let value = value.map(|value| value.id);
                Said { action: StoreAction::Get, answered: Some((now, StoreAnswer::Found(value))) }
            }
            Outcome::Stored => Said { answered: Some((now, StoreAnswer::Stored)), ..Said::put(ask) },
            Outcome::Unknown if ask.asked.operation != Operation::Read => Said::put(ask),
            _ => return,
        };
        self.note(ask, said);
    }

    fn note(&mut self, ask: &Ask, said: Said) {
        if let Some(histories) = &mut self.registers {
            // A value that was there at first is named after its key.
            let history = histories.entry(ask.asked.key).or_insert_with(|| History::new(|(_, key)| key));
            history.record(said.on_register(ask));
        }
        if let Some(kept) = &mut self.kept {
            let Said { action, answered } = said;
            let (id, client, key) = (ask.asked.id, ask.asked.client.into(), ask.asked.key.into());
            kept.record(StoreOperation { id, client, key, action, invoked: ask.start, answered });
        }
    }

    /// Judges what clients saw, key by key. Writes that were never answered may have happened.
    pub fn judge<'a>(&mut self, open: impl Iterator<Item = &'a Ask>, meter: &mut Meter) {
        for ask in open.filter(|ask| ask.asked.operation != Operation::Read) {
            self.note(ask, Said::put(ask));
        }
        let Some(histories) = &self.registers else { return };
        let violations: Vec<_> = histories.values().filter_map(|history| history.check().err()).collect();
        meter.count(metric::keys_checked, histories.len() as f64);
        meter.count(metric::history_violations, violations.len() as f64);
        if let Some(first) = violations.first() {
            let count = violations.len();
            meter.warn(format!("what clients saw of {count} keys is not linearizable; the first of them: {first}"));
        }
    }

    /// What clients asked and saw, if it was kept.
    pub fn take(&mut self) -> Option<StoreHistory> {
        self.kept.take()
    }
}

/// What an operation did, and what it was told and when.
#[derive(Clone, Copy, Debug)]
struct Said {
    action: StoreAction,
    answered: Option<(Time, StoreAnswer)>,
}

impl Said {
    /// A PUT that was not answered.
    fn put(ask: &Ask) -> Said {
        Said { action: StoreAction::Put(ask.asked.value), answered: None }
    }

    /// The same for the judge of registers.
    fn on_register(&self, ask: &Ask) -> history::Operation {
        let (action, value) = match self.answered {
            Some((_, StoreAnswer::Found(value))) => (Action::Read, value.unwrap_or(NOTHING)),
            _ => (Action::Write, ask.asked.value),
        };
        let (id, register) = (ask.asked.id, (0, u64::from(ask.asked.key)));
        let responded = self.answered.map(|(at, _)| at);
        history::Operation { id, register, action, value, invoked: ask.start, responded }
    }
}
