//! A queue with a stated capacity: a full one hands the item back instead of growing.

use std::collections::VecDeque;

/// A first-in first-out queue of at most `capacity` items.
#[derive(Clone, Debug)]
pub struct BoundedQueue<T> {
    items: VecDeque<T>,
    capacity: usize,
    highest: usize,
}

/// The queue was full; here is the item back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the queue is full")]
pub struct Full<T>(pub T);

impl<T> BoundedQueue<T> {
    /// An empty queue for at most `capacity` items.
    pub fn new(capacity: usize) -> Self {
        BoundedQueue { items: VecDeque::new(), capacity, highest: 0 }
    }
    /// Appends `item`, or returns it when the queue is full.
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        if self.items.len() == self.capacity {
            return Err(Full(item));
        }
        self.items.push_back(item);
        self.highest = self.highest.max(self.items.len());
        Ok(())
    }
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }
    /// The oldest item, left in place.
    pub fn front(&self) -> Option<&T> {
        self.items.front()
    }
    /// Returns the number of waiting items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Returns whether none waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The most that may wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
    /// The most that ever waited at once.
    pub fn highest(&self) -> usize {
        self.highest
    }
    /// The waiting items, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_hands_the_item_back_and_takes_it_after_a_pop() {
        let mut queue = BoundedQueue::new(2);
        assert_eq!(queue.push(1), Ok(()));
        assert_eq!(queue.push(2), Ok(()));
        assert_eq!(queue.push(3), Err(Full(3)));
        assert_eq!(queue.pop(), Some(1));
        assert_eq!(queue.push(3), Ok(()));
        assert_eq!((queue.len(), queue.highest()), (2, 2));
    }
}
