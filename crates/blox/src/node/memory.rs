//! The writes that a server has seen lately, so that one that a client sends again is not done twice.
//!
//! A write is known by its value, which no two writes share: a replica that has only had the INV of
//! its first coordinator knows it too. That coordinator cannot have completed it without every
//! member of the epoch, so no survivor takes a completed write for a new one.

use crate::id::{Tag, Value};
use base::{NodeId, Span, Time};
use rustc_hash::FxHashSet;

/// Values that were written lately, and requests that are open.
pub(super) struct Memory {
    span: Span,
    /// What came in this span and in the one before: a value is known for one span at least.
    recent: [FxHashSet<Value>; 2],
    turned: Time,
    open: FxHashSet<(NodeId, Tag)>,
}

impl Memory {
    pub fn new(span: Span) -> Memory {
        Memory { span, recent: Default::default(), turned: Time::ZERO, open: FxHashSet::default() }
    }

    /// A value was put into the local copy.
    pub fn note(&mut self, now: Time, value: Value) {
        if now.saturating_since(self.turned) >= self.span {
            self.turned = now;
            self.recent.swap(0, 1);
            self.recent[0].clear();
        }
        self.recent[0].insert(value);
    }

    pub fn knows(&self, value: Value) -> bool {
        self.recent.iter().any(|values| values.contains(&value))
    }

    pub fn open(&mut self, source: NodeId, tag: Tag) {
        self.open.insert((source, tag));
    }

    pub fn close(&mut self, source: NodeId, tag: Tag) {
        self.open.remove(&(source, tag));
    }

    pub fn is_open(&self, source: NodeId, tag: Tag) -> bool {
        self.open.contains(&(source, tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_for_one_span_and_forgotten_after_two() {
        let mut memory = Memory::new(Span::secs(10));
        memory.note(Time::ZERO + Span::secs(1), Value(1));
        memory.note(Time::ZERO + Span::secs(10), Value(2));
        assert!(memory.knows(Value(1)), "9 s old");
        memory.note(Time::ZERO + Span::secs(19), Value(3));
        assert!(memory.knows(Value(1)));
        memory.note(Time::ZERO + Span::secs(20), Value(4));
        assert_eq!([1, 2, 3, 4].map(|value| memory.knows(Value(value))), [false, true, true, true]);
    }
}
