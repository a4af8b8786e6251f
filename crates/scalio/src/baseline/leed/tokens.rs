//! Admission to one SSD: an operation takes tokens before it starts and gives them back when it has
//! been answered.

use std::collections::VecDeque;

/// Tokens of a device, and what waits for them, first come, first served.
#[derive(Clone, Debug)]
pub(super) struct TokenQueue<T> {
    capacity: u32,
    taken: u32,
    waiting: VecDeque<(u32, T)>,
}

impl<T> TokenQueue<T> {
    pub(super) fn new(capacity: u32) -> TokenQueue<T> {
        TokenQueue { capacity, taken: 0, waiting: VecDeque::new() }
    }

    /// Queues `item`; [`next`](TokenQueue::next) says when it may start. What costs more than there
    /// ever is would wait for ever: the caller's configuration excludes it.
    pub(super) fn push(&mut self, cost: u32, item: T) {
        self.waiting.push_back((cost, item));
    }

    /// The oldest that waits, if there are tokens for it; it has taken them. A cheap newcomer never
    /// overtakes a dear one, as it may in LEED's source: that starves writes under a stream of
    /// reads.
    pub(super) fn next(&mut self) -> Option<T> {
        let (cost, _) = self.waiting.front()?;
        if self.taken + cost > self.capacity {
            return None;
        }
        self.taken += cost;
        self.waiting.pop_front().map(|(_, item)| item)
    }

    /// Gives back what an operation took.
    pub(super) fn give_back(&mut self, cost: u32) {
        self.taken -= cost;
    }

    pub(super) fn taken(&self) -> u32 {
        self.taken
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_to_the_last_token_starts_and_one_more_waits() {
        let mut queue = TokenQueue::new(8);
        queue.push(5, 'a');
        queue.push(3, 'b');
        queue.push(1, 'c');
        assert_eq!((queue.next(), queue.next(), queue.next()), (Some('a'), Some('b'), None));
        assert_eq!((queue.taken(), queue.waiting()), (8, 1));
        queue.give_back(3);
        assert_eq!(queue.next(), Some('c'));
    }

    #[test]
    fn nobody_overtakes() {
        let mut queue = TokenQueue::new(8);
        queue.push(3, "first");
        queue.push(8, "dear");
        queue.push(1, "cheap");
        assert_eq!((queue.next(), queue.next()), (Some("first"), None));
        queue.give_back(3);
        assert_eq!((queue.next(), queue.next()), (Some("dear"), None));
        queue.give_back(8);
        assert_eq!(queue.next(), Some("cheap"));
    }
}
