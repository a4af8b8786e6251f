//! Does the protocol hold: the quick judge agrees with one that tries every order.

use base::{Seed, Time};
use history::{Action, History, Operation};
use std::collections::BTreeSet;

/// Wing and Gong's search (JPDC 1993), remembering what it has seen (Lowe, 2017): which operations
/// took effect and the value then.
fn some_order_explains(operations: &[Operation]) -> bool {
    let mut stack = vec![(0u32, 0u64)];
    let mut seen = BTreeSet::new();
    let needed = mask(operations.iter().map(|operation| operation.responded.is_some()));
    while let Some((done, value)) = stack.pop() {
        if done & needed == needed {
            return true;
        }
        if seen.insert((done, value)) {
            stack.extend((0..operations.len()).filter_map(|next| step(operations, done, value, next)));
        }
    }
    false
}

fn mask(bits: impl Iterator<Item = bool>) -> u32 {
    bits.enumerate().map(|(place, bit)| u32::from(bit) << place).sum()
}

/// Lets `next` take effect, if nothing that is yet to come ended before it began.
fn step(operations: &[Operation], done: u32, value: u64, next: usize) -> Option<(u32, u64)> {
    let operation = operations[next];
    let is_open = |place: usize| done & (1 << place) == 0;
    let precedes = |other: &Operation| other.responded.is_some_and(|end| end < operation.invoked);
    let overtakes = operations.iter().enumerate().any(|(place, other)| is_open(place) && precedes(other));
    let fits = operation.action == Action::Write || operation.value == value;
    (is_open(next) && !overtakes && fits).then_some((done | 1 << next, operation.value))
}

/// Up to nine operations in a few instants: unlucky, or nearly right.
fn random_history(seed: u64) -> Vec<Operation> {
    let mut stream = Seed(seed).stream("history");
    let count = 2 + stream.below(8);
    let horizon = 2 + stream.below(14);
    let mut written = vec![0];
    (0..count)
        .map(|id| {
            let invoked = stream.below(horizon);
            let responded = invoked + stream.below(1 + horizon / 2);
            let is_write = stream.below(5) < 2;
            let value = if is_write { id + 1 } else { written[stream.below(written.len() as u64) as usize] };
            if is_write {
                written.push(value);
            }
            let action = if is_write { Action::Write } else { Action::Read };
            let is_answered = !is_write || stream.below(6) > 0;
            let responded = is_answered.then_some(Time::ps(responded));
            Operation { id, register: (0, 0), action, value, invoked: Time::ps(invoked), responded }
        })
        .collect()
}

fn judged(operations: &[Operation]) -> bool {
    let mut history = History::default();
    operations.iter().for_each(|operation| history.record(*operation));
    history.check().is_ok()
}

/// The same, told in the order of responses, with a promise after each.
fn judged_as_it_goes(operations: &[Operation]) -> bool {
    let mut left = operations.to_vec();
    left.sort_by_key(|operation| operation.responded.unwrap_or(Time::ZERO));
    let mut history = History::default();
    for place in 0..left.len() {
        history.record(left[place]);
        let before = left[place + 1..].iter().map(|operation| operation.invoked).min();
        if history.settle(before.unwrap_or(Time::MAX)).is_err() {
            return false;
        }
    }
    history.check().is_ok()
}

#[test]
fn the_zones_decide_as_trying_every_order_does() {
    let mut verdicts = [0u32; 2];
    for seed in 0..60_000 {
        let operations = random_history(seed);
        let truth = some_order_explains(&operations);
        verdicts[usize::from(truth)] += 1;
        assert_eq!(judged(&operations), truth, "seed {seed}: {operations:#?}");
        assert_eq!(judged_as_it_goes(&operations), truth, "as it goes, seed {seed}: {operations:#?}");
    }
    assert!(verdicts.iter().all(|count| *count > 5_000), "both verdicts must be common: {verdicts:?}");
}
