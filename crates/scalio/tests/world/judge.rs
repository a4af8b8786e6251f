//! Whether a history of one key is linearizable (Wing and Gong, JPDC 1993, with the memory of Lowe, CCPE 2017).

use scalio::Token;
use std::collections::BTreeSet;

/// What was done to a key, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Get { found: Option<Token> },
    Put { value: Token },
    Delete { found: bool },
    CompareAndSwap { expected: Option<Token>, new: Token, swapped: bool, found: Option<Token> },
}

/// When: steps of the world. Without an end it may or may not have happened, at any time after its start.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub action: Action,
    pub start: u64,
    pub end: Option<u64>,
}

/// Tries all orders that the times allow, remembering which sets of operations led to which value. At most 128 events.
pub fn is_linearizable(events: &[Event]) -> bool {
    assert!(events.len() <= 128, "{} events", events.len());
    let must: u128 = events.iter().enumerate().filter(|(_, event)| event.end.is_some()).map(|(at, _)| 1 << at).sum();
    search(events, must, 0, None, &mut BTreeSet::new())
}

fn search(
    events: &[Event],
    must: u128,
    done: u128,
    value: Option<Token>,
    seen: &mut BTreeSet<(u128, Option<Token>)>,
) -> bool {
    if must & !done == 0 {
        return true;
    }
    if !seen.insert((done, value)) {
        return false;
    }
    let open = |at: &usize| done & (1 << at) == 0;
    let first_end = (0..events.len()).filter(open).filter_map(|at| events[at].end).min().unwrap_or(u64::MAX);
    (0..events.len()).filter(open).filter(|at| events[*at].start <= first_end).any(|at| {
        let next = after(&events[at], value);
        next.is_some_and(|value| search(events, must, done | 1 << at, value, seen))
    })
}

/// The value after an operation; `None` where it cannot have happened then. Of one without an end the result is not known.
fn after(event: &Event, value: Option<Token>) -> Option<Option<Token>> {
    let known = event.end.is_some();
    match event.action {
        Action::Get { found } => (found == value).then_some(value),
        Action::Put { value } => Some(Some(value)),
        Action::Delete { found } => (!known || found == value.is_some()).then_some(None),
        Action::CompareAndSwap { expected, new, swapped, found } => {
            let swaps = expected == value;
            let agrees = !known || (swapped == swaps && (swaps || found == value));
            agrees.then_some(if swaps { Some(new) } else { value })
        }
    }
}
