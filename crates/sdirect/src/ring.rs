//! Things that take turns.

use std::collections::VecDeque;

/// Pairs that have something to do, each with its queue; they take turns. A pair is there as long
/// as it has something.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Front: whose turn it is.
    pairs: VecDeque<(u32, VecDeque<T>)>,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { pairs: VecDeque::new() }
    }
}

impl<T> Ring<T> {
    /// Puts `item` behind what its pair has already.
    pub(crate) fn push(&mut self, pair: u32, item: T) {
        match self.pairs.iter_mut().find(|(known, _)| *known == pair) {
            Some((_, items)) => items.push_back(item),
            None => self.pairs.push_back((pair, VecDeque::from([item]))),
        }
    }
    /// Pairs that wait.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }
    /// The item whose turn it is.
    pub(crate) fn front(&self) -> Option<&T> {
        self.pairs.front().and_then(|(_, items)| items.front())
    }
    /// Passes the turn to the next pair. The item stays unless `done`, which removes it.
    pub(crate) fn turn(&mut self, done: bool) {
        let Some((pair, mut items)) = self.pairs.pop_front() else { return };
        if done {
            items.pop_front();
        }
        if !items.is_empty() {
            self.pairs.push_back((pair, items));
        }
    }
    /// Takes out every item that `remove` names.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.pairs.iter_mut().for_each(|(_, items)| items.retain(&mut keep));
        self.pairs.retain(|(_, items)| !items.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_take_turns_and_their_items_stay_in_order() {
        let mut ring = Ring::default();
        for (pair, item) in [(1, "a"), (1, "b"), (2, "c"), (3, "d"), (1, "e")] {
            ring.push(pair, item);
        }
        let mut order = Vec::new();
        while let Some(item) = ring.front() {
            order.push(*item);
            ring.turn(true);
        }
        assert_eq!(order, ["a", "c", "d", "b", "e"]);
    }

    #[test]
    fn who_cannot_go_now_keeps_his_item() {
        let mut ring = Ring::default();
        ring.push(1, "a");
        ring.push(2, "b");
        ring.turn(false);
        assert_eq!(ring.front(), Some(&"b"));
        ring.turn(true);
        assert_eq!((ring.front(), ring.len()), (Some(&"a"), 1));
    }
}
