//! The search for an order (Wing and Gong, JPDC 1993), just in time and with memoization (Lowe,
//! Concurrency and Computation 2017).
//!
//! The search processes events in the order of time. It keeps the set of *situations* that some
//! order of the operations leads to: the value, and the set of open operations that have taken
//! effect. An operation takes effect at its response at the latest, perhaps after other open
//! operations. The work thus grows with the number of concurrent operations, not with the length of
//! the history.
//!
//! Two rules reduce the set. An operation that changes nothing and fits takes effect at once, since
//! later would be no better. An unanswered operation stays open forever. Values that no operation
//! read or expected count as one, and of two equal unanswered operations the first takes effect
//! first, since no observer can distinguish them.

use super::{StoreAction, StoreAnswer, StoreKey, StoreOperation, StoreValue, StoreVerdict};
use std::collections::BTreeSet;

/// The value, and by place the open operations that have taken effect.
type Situation = (StoreValue, u128);

/// Maximum number of concurrent operations; unanswered ones stay open forever.
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
    let operations = &with_unseen_values_as_one(initial, operations);
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

/// Values that were stored, and that no answer and no swap speaks of, are one value.
fn with_unseen_values_as_one(initial: StoreValue, operations: &[StoreOperation]) -> Vec<StoreOperation> {
    let spoken = |operation: &StoreOperation| match (operation.action, operation.answered) {
        (StoreAction::CompareAndSwap { expected, .. }, _) => expected,
        (_, Some((_, StoreAnswer::Found(found)))) => found,
        _ => None,
    };
    let seen: BTreeSet<u64> = operations.iter().filter_map(spoken).chain(initial).collect();
    let Some(one) = (0..=u64::MAX).rev().find(|value| !seen.contains(value)) else { return operations.to_vec() };
    let folded = |value: u64| if seen.contains(&value) { value } else { one };
    let fold = |operation: &StoreOperation| {
        let action = match operation.action {
            StoreAction::Put(value) => StoreAction::Put(folded(value)),
            StoreAction::CompareAndSwap { expected, new } => {
                StoreAction::CompareAndSwap { expected, new: new.map(folded) }
            }
            other => other,
        };
        StoreOperation { action, ..*operation }
    };
    operations.iter().map(fold).collect()
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
            // Without an answer it need not take effect, and what changes nothing helps nobody. A
            // put of what is there may change something later.
            let is_put = matches!(operation.action, StoreAction::Put(_));
            if operation.answered.is_some() && !is_put && operation.applied(held) == Some(held) {
                done |= 1 << place;
            }
        }
        (held, done)
    }

    /// Open operations that have not taken effect.
    fn open(&self, done: u128) -> impl Iterator<Item = (usize, &'a StoreOperation)> {
        let places = self.under_way.iter().enumerate();
        places.filter_map(move |(place, it)| it.filter(|_| done & (1 << place) == 0).map(|it| (place, it)))
    }

    /// Returns whether an earlier place holds an equal operation, both unanswered.
    fn has_twin(&self, done: u128, place: usize, operation: &StoreOperation) -> bool {
        let is_twin = |(other, it): (usize, &StoreOperation)| {
            other < place && it.answered.is_none() && it.action == operation.action
        };
        operation.answered.is_none() && self.open(done).any(is_twin)
    }

    /// After an operation that is worth taking effect now.
    fn next(&self, held: StoreValue, done: u128, place: usize, operation: &StoreOperation) -> Option<Situation> {
        let now = operation.applied(held)?;
        // Of what changes nothing, puts with an answer are left.
        let is_of_use = now != held || operation.answered.is_some();
        (is_of_use && !self.has_twin(done, place, operation)).then(|| self.settled((now, done | 1 << place)))
    }

    /// Keeps what explains the answer: every situation in which the operation has taken effect, now
    /// at the latest.
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
            let next: Vec<Situation> =
                self.open(done).filter_map(|(place, it)| self.next(held, done, place, it)).collect();
            stack.extend(next.into_iter().filter(|situation| seen.insert(*situation)));
        }
        self.under_way[place] = None;
        Ok(())
    }
}
