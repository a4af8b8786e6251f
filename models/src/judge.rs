//! Linearizability of one key, checked during an execution.
//!
//! The judge keeps every state that a correct store could have: its value, and the answers of
//! operations that have taken effect and whose clients still wait. An invocation adds the states in
//! which it takes effect, at once or after others. An answer keeps the states that gave this
//! answer. If none is left, the execution is not linearizable. This is exact and needs no unique
//! values. Two executions with the same possible futures have equal judges, so the checker visits
//! them once.

use crate::scenario::{ABSENT, CLIENTS_MAX, Operation, Value};

/// The answer of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// What a GET found.
    Value(Value),
    /// A PUT is done.
    Done,
    /// A DELETE is done; whether there was anything.
    Deleted(bool),
    /// Whether a compare-and-swap found what it expected.
    Swapped(bool),
}

/// A state that a correct store could be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Possible {
    value: Value,
    /// By client: the answer of an operation that has taken effect, and was not answered yet.
    answers: [Option<Answer>; CLIENTS_MAX],
}

/// The judge of one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    /// Sorted.
    possible: Vec<Possible>,
    pending: [Option<Operation>; CLIENTS_MAX],
}

/// What a correct store answers, and holds then.
pub fn apply(operation: Operation, value: Value) -> (Answer, Value) {
    match operation {
        Operation::Get(_) | Operation::ServerGet(_) => (Answer::Value(value), value),
        Operation::Put(_, new) => (Answer::Done, new),
        Operation::Delete(_) => (Answer::Deleted(value != ABSENT), ABSENT),
        Operation::CompareAndSwap { expected, new, .. } if value == expected => (Answer::Swapped(true), new),
        Operation::CompareAndSwap { .. } => (Answer::Swapped(false), value),
    }
}

impl Judge {
    /// No operation yet, and the key holds `value`.
    pub fn new(value: Value) -> Judge {
        Judge { possible: vec![Possible { value, answers: [None; CLIENTS_MAX] }], pending: [None; CLIENTS_MAX] }
    }

    /// An invocation of a client.
    pub fn invoke(&mut self, client: usize, operation: Operation) {
        self.pending[client] = Some(operation);
        let mut fresh = self.possible.clone();
        while let Some(state) = fresh.pop() {
            for next in self.successors(state) {
                if let Err(place) = self.possible.binary_search(&next) {
                    self.possible.insert(place, next);
                    fresh.push(next);
                }
            }
        }
    }

    /// The states in which one more pending operation has taken effect.
    fn successors(&self, state: Possible) -> Vec<Possible> {
        let mut successors = Vec::new();
        for (client, pending) in self.pending.iter().enumerate() {
            let (Some(operation), None) = (*pending, state.answers[client]) else { continue };
            let (answer, value) = apply(operation, state.value);
            let mut next = Possible { value, ..state };
            next.answers[client] = Some(answer);
            successors.push(next);
        }
        successors
    }

    /// A client is answered. `false`: no order of the operations explains the answers.
    #[must_use]
    pub fn respond(&mut self, client: usize, answer: Answer) -> bool {
        self.possible.retain(|state| state.answers[client] == Some(answer));
        for state in &mut self.possible {
            state.answers[client] = None;
        }
        self.possible.sort_unstable();
        self.possible.dedup();
        self.pending[client] = None;
        !self.possible.is_empty()
    }

    /// Writes all that matters of it, clients in this order. What one was answered that waits no
    /// more is nobody's business.
    pub fn write(&self, order: &[usize], is_over: &dyn Fn(usize) -> bool, out: &mut Vec<u8>) {
        let told = |client: usize, answer: Option<Answer>| match answer {
            Some(_) if is_over(client) => 1,
            answer => crate::fold::answer(answer),
        };
        let mut possible: Vec<[u8; 1 + CLIENTS_MAX]> = self
            .possible
            .iter()
            .map(|state| {
                let mut bytes = [state.value; 1 + CLIENTS_MAX];
                let answers = order.iter().map(|client| told(*client, state.answers[*client]));
                bytes[1..]
                    .iter_mut()
                    .zip(answers.chain(std::iter::repeat(0)))
                    .for_each(|(byte, answer)| *byte = answer);
                bytes
            })
            .collect();
        possible.sort_unstable();
        possible.dedup();
        out.push(possible.len() as u8);
        out.extend(possible.concat());
        let pending = order.iter().map(|client| self.pending[*client]);
        pending.for_each(|pending| write_operation(pending, out));
    }

    /// Returns whether a correct store could hold `value` now.
    pub fn allows(&self, value: Value) -> bool {
        self.possible.iter().any(|state| state.value == value)
    }

    /// Returns whether the key is certainly deleted: a read now must find nothing.
    pub fn is_deleted(&self) -> bool {
        self.possible.iter().all(|state| state.value == ABSENT)
    }
}

fn write_operation(operation: Option<Operation>, out: &mut Vec<u8>) {
    match operation {
        None => out.push(0),
        Some(Operation::Get(_) | Operation::ServerGet(_)) => out.push(1),
        Some(Operation::Put(_, new)) => out.extend([2, new]),
        Some(Operation::Delete(_)) => out.push(3),
        Some(Operation::CompareAndSwap { expected, new, .. }) => out.extend([4, expected, new]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: u8 = 0;

    #[test]
    fn a_read_beside_a_write_may_find_either_value() {
        for found in [1, 2] {
            let mut judge = Judge::new(1);
            judge.invoke(0, Operation::Put(X, 2));
            judge.invoke(1, Operation::Get(X));
            assert!(judge.respond(1, Answer::Value(found)));
            assert!(judge.respond(0, Answer::Done));
            assert!(judge.allows(2) && !judge.allows(1));
        }
    }

    #[test]
    fn old_after_new_is_refused_even_while_the_write_runs() {
        let mut judge = Judge::new(1);
        judge.invoke(0, Operation::Put(X, 2));
        judge.invoke(1, Operation::Get(X));
        assert!(judge.respond(1, Answer::Value(2)));
        judge.invoke(1, Operation::Get(X));
        assert!(!judge.respond(1, Answer::Value(1)));
    }

    #[test]
    fn a_write_that_is_never_answered_may_take_effect_late_but_only_once() {
        let mut judge = Judge::new(1);
        judge.invoke(0, Operation::Put(X, 2));
        for (found, is_right) in [(1, true), (2, true), (1, false)] {
            judge.invoke(1, Operation::Get(X));
            assert_eq!(judge.respond(1, Answer::Value(found)), is_right);
        }
    }

    #[test]
    fn of_two_swaps_from_one_value_one_fails() {
        let swap = |new| Operation::CompareAndSwap { key: X, expected: 1, new };
        for (first, second, is_right) in
            [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
        {
            let mut judge = Judge::new(1);
            judge.invoke(0, swap(2));
            judge.invoke(1, swap(3));
            let explained = judge.respond(0, Answer::Swapped(first)) && judge.respond(1, Answer::Swapped(second));
            assert_eq!(explained, is_right, "{first} {second}");
        }
    }

    #[test]
    fn a_delete_says_whether_there_was_anything() {
        let mut judge = Judge::new(1);
        judge.invoke(0, Operation::Delete(X));
        assert!(judge.respond(0, Answer::Deleted(true)));
        assert!(judge.is_deleted());
        judge.invoke(0, Operation::Delete(X));
        assert!(!judge.respond(0, Answer::Deleted(true)));
    }
}
