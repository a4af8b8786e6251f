//! The search for an order (Wing and Gong, JPDC 1993), just in time and remembering what it has seen (Lowe, Concurrency and Computation 2017).
//!
//! Events are taken in the order of time. Kept is the set of *situations* that some order of the operations leads to: the value, and which of the operations under way
//! have taken effect. An operation is made to take effect when it is answered at the latest, perhaps after others that are under way. So the work grows
//! with what is under way at once, not with the length of the history. An operation that changes nothing and fits takes effect at once: later would be no better.

use super::{StoreKey, StoreOperation, StoreValue, StoreVerdict};
use std::collections::BTreeSet;

/// What is held, and by place the operations under way that have taken effect.
type Situation = (StoreValue, u128);

/// Operations under way at once, at most; those without an answer are so for ever.
const UNDER_WAY_MAX: usize = 128;

/// The search was given up.
struct GivenUp;

struct Search<'a> {
    /// By place.
    under_way: Vec<Option<&'a StoreOperation>>,
    situations: BTreeSet<Situation>,
    steps_left: u64,
}

/// Judges one key.
pub fn check(key: StoreKey, initial: StoreValue, operations: &[StoreOperation], steps_max: u64) -> StoreVerdict {
    let mut search =
        Search { under_way: Vec::new(), situations: BTreeSet::from([(initial, 0)]), steps_left: steps_max };
    for event in events(operations) {
        let operation = &operations[event.operation];
        let outcome = if event.is_answer { search.answered(operation) } else { search.invoked(operation) };
        match outcome {
            Err(GivenUp) => return StoreVerdict::Unknown { key },
            Ok(()) if search.situations.is_empty() => {
                return StoreVerdict::Illegal { key, operations: vec![operation.id] };
            }
            Ok(()) => {}
        }
    }
    StoreVerdict::Linearizable
}

/// Ordered by time, and at one instant calls before answers: operations that touch overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: base::Time,
    is_answer: bool,
    operation: usize,
}

fn events(operations: &[StoreOperation]) -> Vec<Event> {
    let calls =
        operations.iter().enumerate().map(|(place, it)| Event { at: it.invoked, is_answer: false, operation: place });
    // An answer before its call is the caller's mistake, and taken for one at the same instant.
    let answer = |(place, it): (usize, &StoreOperation)| {
        it.answered.map(|(at, _)| Event { at: at.max(it.invoked), is_answer: true, operation: place })
    };
    let mut events: Vec<Event> = calls.chain(operations.iter().enumerate().filter_map(answer)).collect();
    events.sort_unstable();
    events
}

impl<'a> Search<'a> {
    fn invoked(&mut self, operation: &'a StoreOperation) -> Result<(), GivenUp> {
        let free = self.under_way.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        if place >= UNDER_WAY_MAX {
            return Err(GivenUp);
        }
        self.under_way[place] = Some(operation);
        let situations = std::mem::take(&mut self.situations);
        self.situations = situations.into_iter().map(|situation| self.settled(situation)).collect();
        Ok(())
    }

    /// Lets everything take effect that fits and changes nothing.
    fn settled(&self, (held, mut done): Situation) -> Situation {
        for (place, operation) in self.open(done) {
            // Without an answer it need not take effect, and what changes nothing helps nobody.
            if operation.answered.is_some() && operation.applied(held) == Some(held) {
                done |= 1 << place;
            }
        }
        (held, done)
    }

    /// Operations under way that have not taken effect.
    fn open(&self, done: u128) -> impl Iterator<Item = (usize, &'a StoreOperation)> {
        let places = self.under_way.iter().enumerate();
        places.filter_map(move |(place, it)| it.filter(|_| done & (1 << place) == 0).map(|it| (place, it)))
    }

    /// Keeps what explains the answer: every situation in which the operation has taken effect, now at the latest.
    fn answered(&mut self, operation: &StoreOperation) -> Result<(), GivenUp> {
        let is_it = |it: &Option<&StoreOperation>| it.is_some_and(|it| std::ptr::eq(it, operation));
        let place = self.under_way.iter().position(is_it).expect("an operation is under way until its answer");
        let answered = 1 << place;
        let mut stack: Vec<Situation> = std::mem::take(&mut self.situations).into_iter().collect();
        let mut seen: BTreeSet<Situation> = stack.iter().copied().collect();
        while let Some((held, done)) = stack.pop() {
            if done & answered != 0 {
                self.situations.insert((held, done & !answered));
                continue;
            }
            self.steps_left = self.steps_left.checked_sub(1).ok_or(GivenUp)?;
            let next = self.open(done).filter_map(|(place, it)| Some((it.applied(held)?, done | 1 << place)));
            // What is left to take effect and fits changes something, or was never answered.
            let next: Vec<Situation> =
                next.filter(|(now, _)| *now != held).map(|situation| self.settled(situation)).collect();
            stack.extend(next.into_iter().filter(|situation| seen.insert(*situation)));
        }
        self.under_way[place] = None;
        Ok(())
    }
}
