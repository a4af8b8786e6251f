//! The writes that a server has seen lately, so that one that a client sends again is not done
//! twice.
//!
//! A write is known by its value, which no two writes share: a replica that has only had the INV of
//! its first coordinator knows it too. That coordinator cannot have completed it without every
//! member of the epoch, so no survivor takes a completed write for a new one. A replica that leaves
//! its group forgets what it has seen: writes that it alone had are not done.

use crate::id::{Tag, Value};
use base::{NodeId, Span, Time};
use std::collections::BTreeSet;

/// Values that were written lately, and requests that are open.
pub(super) struct Memory {
    span: Span,
    /// What came in this span and in the one before: a value is known for one span at least.
    recent: [BTreeSet<(usize, Value)>; 2],
    turned: Time,
    open: BTreeSet<(NodeId, Tag)>,
}

impl Memory {
    pub fn new(span: Span) -> Memory {
        Memory { span, recent: Default::default(), turned: Time::ZERO, open: BTreeSet::new() }
    }

    /// A value was put into the local copy of a vSSD.
    pub fn note(&mut self, now: Time, vssd: usize, value: Value) {
        if now.saturating_since(self.turned) >= self.span {
            self.turned = now;
            self.recent.swap(0, 1);
            self.recent[0].clear();
        }
        self.recent[0].insert((vssd, value));
    }

    pub fn knows(&self, vssd: usize, value: Value) -> bool {
        self.recent.iter().any(|values| values.contains(&(vssd, value)))
    }

    /// The vSSD's replica has left its group.
    pub fn forget(&mut self, vssd: usize) {
        self.recent.iter_mut().for_each(|values| values.retain(|(other, _)| *other != vssd));
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
        let note = |memory: &mut Memory, second, value| memory.note(Time::secs(second), 0, Value(value));
        note(&mut memory, 1, 1);
        note(&mut memory, 10, 2);
        assert!(memory.knows(0, Value(1)), "9 s old");
        note(&mut memory, 19, 3);
        assert!(memory.knows(0, Value(1)));
        note(&mut memory, 20, 4);
        assert_eq!([1, 2, 3, 4].map(|value| memory.knows(0, Value(value))), [false, true, true, true]);
    }

    #[test]
    fn a_replica_that_leaves_forgets_its_own_writes_and_no_other() {
        let mut memory = Memory::new(Span::secs(10));
        (0..2).for_each(|vssd| memory.note(Time::ZERO, vssd, Value(1)));
        memory.forget(0);
        assert_eq!([0, 1].map(|vssd| memory.knows(vssd, Value(1))), [false, true]);
    }
}
