//! Locks of segments, first come, first served.

use std::collections::{BTreeMap, VecDeque};

/// The holder of each locked segment, and its waiters. A holder that needs several locks requests
/// all of them in one step. The first requester is then first in every queue, and no cycle of
/// waiters can form.
#[derive(Clone, Debug)]
pub(super) struct Locks<T>(BTreeMap<u32, VecDeque<T>>);

impl<T: Copy> Locks<T> {
    pub(super) fn new() -> Locks<T> {
        Locks(BTreeMap::new())
    }

    /// Requests a segment; returns whether `holder` has it now.
    pub(super) fn ask(&mut self, segment: u32, holder: T) -> bool {
        let queue = self.0.entry(segment).or_default();
        queue.push_back(holder);
        queue.len() == 1
    }

    /// The holder releases a segment; returns its next holder.
    pub(super) fn give_back(&mut self, segment: u32) -> Option<T> {
        let queue = self.0.get_mut(&segment).expect("what is unlocked was locked");
        queue.pop_front();
        let next = queue.front().copied();
        if next.is_none() {
            self.0.remove(&segment);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_handed_on_in_the_order_of_asking() {
        let mut locks = Locks::new();
        assert!(locks.ask(7, 'a') && !locks.ask(7, 'b') && locks.ask(8, 'b') && !locks.ask(7, 'c'));
        assert_eq!([locks.give_back(7), locks.give_back(7), locks.give_back(7)], [Some('b'), Some('c'), None]);
        assert_eq!(locks.give_back(8), None);
        assert!(locks.ask(7, 'd'));
    }
}
