//! Answers that may have to be given again, because the fabric lost them.

use crate::{CommandId, Outcome};
use std::collections::{BTreeMap, VecDeque};

/// What is known of a command that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has not come before.
    New,
    /// It is being executed.
    Running,
    /// It has ended like this.
    Ended(Outcome),
    /// It is older than what is remembered: its client has had its answer.
    Forgotten,
}

/// A client's commands in the order of their numbers; those that have ended, with their outcome.
type Line = VecDeque<(u32, Option<Outcome>)>;

fn place_of(line: &Line, number: u32) -> Option<usize> {
    line.binary_search_by_key(&number, |(known, _)| *known).ok()
}

/// Each client's last commands.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    remembered: usize,
    clients: BTreeMap<u16, Line>,
}

impl Results {
    /// Remembers this many commands of each client, at least one.
    pub(crate) fn new(remembered: usize) -> Results {
        Results { remembered: remembered.max(1), clients: BTreeMap::new() }
    }
    pub(crate) fn know(&self, id: CommandId) -> Known {
        let Some(line) = self.clients.get(&id.client.0) else { return Known::New };
        match place_of(line, id.number).map(|place| &line[place].1) {
            Some(None) => Known::Running,
            Some(Some(outcome)) => Known::Ended(outcome.clone()),
            None if line.len() >= self.remembered && line.front().is_some_and(|(oldest, _)| id.number < *oldest) => {
                Known::Forgotten
            }
            None => Known::New,
        }
    }
    /// A command begins. Ended ones beyond what is remembered are forgotten, the oldest first.
    pub(crate) fn begin(&mut self, id: CommandId) {
        let line = self.clients.entry(id.client.0).or_default();
        let place = line.partition_point(|(number, _)| *number < id.number);
        line.insert(place, (id.number, None));
        while line.len() > self.remembered && line.front().is_some_and(|(_, outcome)| outcome.is_some()) {
            line.pop_front();
        }
    }
    /// A command has ended.
    pub(crate) fn end(&mut self, id: CommandId, outcome: &Outcome) {
        let line = self.clients.entry(id.client.0).or_default();
        if let Some(place) = place_of(line, id.number) {
            line[place].1 = Some(outcome.clone());
        }
    }
}
