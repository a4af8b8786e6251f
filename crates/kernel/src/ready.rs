//! The present: the events of the slot reached last, in their final order.

use crate::slab::{Chain, Due, Slab};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Batches up to this length are sorted by insertion, and late events are inserted into them.
const SHORT: usize = 24;
/// An event with its order of insertion, which breaks ties.
#[derive(Clone, Copy)]
struct Entry<E> {
    at: u64,
    order: u64,
    event: E,
}

/// A sorted batch, and a heap for late events if the batch is too long to insert into.
pub(crate) struct Ready<E> {
    batch: Vec<Due<E>>,
    /// Number of events removed from the batch.
    taken: usize,
    /// Start of the slot reached last in the batch, until more events are pushed.
    last_slot: usize,
    /// While this is not empty, every new event is inserted here, so the batch's events precede it
    /// at equal times.
    late: BinaryHeap<Entry<E>>,
    late_order: u64,
    /// Empty except while a long batch is sorted.
    sorting: Vec<Entry<E>>,
}

impl<E: Copy> Ready<E> {
    pub(crate) fn new() -> Self {
        let (batch, late, sorting) = (Vec::with_capacity(64), BinaryHeap::with_capacity(64), Vec::with_capacity(64));
        Ready { batch, taken: 0, last_slot: 0, late, late_order: 0, sorting }
    }
    /// Removes the earliest event if it is due at `limit` or earlier.
    #[inline(always)]
    pub(crate) fn pop_until(&mut self, limit: u64) -> Option<Due<E>> {
        if !self.late.is_empty() {
            return self.pop_merged(limit);
        }
        let entry = *self.batch.get(self.taken)?;
        if entry.at > limit {
            return None;
        }
        self.taken += 1;
        Some(entry)
    }
    #[inline(never)]
    fn pop_merged(&mut self, limit: u64) -> Option<Due<E>> {
        if self.earliest()? > limit {
            return None;
        }
        let late_at = self.late.peek()?.at;
        match self.batch.get(self.taken) {
            Some(entry) if entry.at <= late_at => {
                self.taken += 1;
                Some(*entry)
            }
            _ => self.late.pop().map(|Entry { at, event, .. }| Due { at, event }),
        }
    }
    /// Returns whether nothing is ready.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.left() == 0 && self.late.is_empty()
    }
    /// Returns the number of remaining events of the batch.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.batch.len() - self.taken
    }
    /// Returns the event of the batch after `between` others.
    #[inline]
    pub(crate) fn ahead(&self, between: usize) -> Option<&E> {
        self.batch.get(self.taken + between).map(|due| &due.event)
    }
    /// Returns the events of the slot reached last.
    #[inline]
    pub(crate) fn newest_batch(&self) -> impl Iterator<Item = &E> {
        self.batch[self.last_slot..].iter().map(|due| &due.event)
    }
    /// Returns the time of the earliest ready event.
    pub(crate) fn earliest(&self) -> Option<u64> {
        let times = [self.batch.get(self.taken).map(|due| due.at), self.late.peek().map(|entry| entry.at)];
        times.into_iter().flatten().min()
    }
    /// Moves the chain of a slot, which starts at `slot_start`, from the slab to the end of the
    /// batch, whose other events are earlier. Returns the number of different times in the chain.
    #[inline]
    pub(crate) fn fill(&mut self, slab: &mut Slab<E>, chain: Chain, slot_start: u64) -> usize {
        self.drop_taken();
        self.last_slot = self.batch.len();
        slab.drain(chain, slot_start, &mut self.batch);
        match &mut self.batch[self.last_slot..] {
            [_] => 1,
            [newer, older] => {
                if older.at <= newer.at {
                    std::mem::swap(newer, older);
                }
                if older.at == newer.at { 1 } else { 2 }
            }
            _ => self.sort(),
        }
    }
    /// Sorts the last slot, whose events are newest first.
    fn sort(&mut self) -> usize {
        let slot = &mut self.batch[self.last_slot..];
        if let Some(times) = sort_few(slot) {
            return times;
        }
        slot.reverse();
        if slot.len() <= SHORT {
            insertion_sort(slot);
        } else if !slot.is_sorted_by_key(|entry| entry.at) {
            // The standard library's stable sort would allocate each time.
            let numbered = slot.iter().zip(0..).map(|(Due { at, event }, order)| (*at, order, *event));
            self.sorting.extend(numbered.map(|(at, order, event)| Entry { at, order, event }));
            self.sorting.sort_unstable_by_key(|entry| (entry.at, entry.order));
            for (due, Entry { at, event, .. }) in slot.iter_mut().zip(self.sorting.drain(..)) {
                *due = Due { at, event };
            }
        }
        times(slot)
    }
    /// Adds an event to the ready slot; returns `false` if its time is known to be present already.
    pub(crate) fn push(&mut self, at: u64, event: E) -> bool {
        if !self.late.is_empty() {
            return self.push_late(at, event);
        }
        self.drop_taken();
        if self.batch.last().is_some_and(|last| last.at > at) && self.batch.len() - self.taken > SHORT {
            return self.push_late(at, event);
        }
        self.insert(at, event)
    }
    /// Inserts an event into the batch, searching from the end.
    fn insert(&mut self, at: u64, event: E) -> bool {
        let later = self.batch[self.taken..].iter().rev().take_while(|other| other.at > at).count();
        let place = self.batch.len() - later;
        let is_new = place == self.taken || self.batch[place - 1].at != at;
        self.batch.insert(place, Due { at, event });
        is_new
    }
    fn push_late(&mut self, at: u64, event: E) -> bool {
        self.late.push(Entry { at, order: self.late_order, event });
        self.late_order += 1;
        true
    }
    /// Keeps the batch from growing forever while events are pushed as fast as they are popped.
    fn drop_taken(&mut self) {
        if self.taken == self.batch.len() {
            self.batch.clear();
            self.taken = 0;
        } else if self.taken >= SHORT && self.taken * 2 >= self.batch.len() {
            self.batch.drain(..self.taken);
            self.taken = 0;
        }
    }
    /// Moves all events to the end of `all`, in order.
    pub(crate) fn take_all(&mut self, all: &mut Vec<Due<E>>) {
        all.extend(std::iter::from_fn(|| self.pop_until(u64::MAX)));
    }
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.taken = 0;
        self.late.clear();
    }
}

/// Returns the number of different times in a slot, which is sorted and not empty.
fn times<E>(slot: &[Due<E>]) -> usize {
    1 + slot.windows(2).filter(|pair| pair[0].at != pair[1].at).count()
}

/// Sorts a slot of a few events that are newest first, and returns the number of different times in
/// it, or `None` if there are more events.
fn sort_few<E: Copy>(slot: &mut [Due<E>]) -> Option<usize> {
    Some(match slot.len() {
        3 => sort_by_rank::<3, E>(slot),
        4 => sort_by_rank::<4, E>(slot),
        5 => sort_by_rank::<5, E>(slot),
        6 => sort_by_rank::<6, E>(slot),
        7 => sort_by_rank::<7, E>(slot),
        8 => sort_by_rank::<8, E>(slot),
        _ => return None,
    })
}

/// Computes each event's position as the number of those before it: more comparisons than
/// necessary, but no branch that depends on the times.
fn sort_by_rank<const LEN: usize, E: Copy>(slot: &mut [Due<E>]) -> usize {
    let newest_first: [Due<E>; LEN] = std::array::from_fn(|index| slot[index]);
    let mut ranks = [0; LEN];
    for older in 1..LEN {
        for newer in 0..older {
            let is_before = newest_first[older].at <= newest_first[newer].at;
            ranks[newer] += usize::from(is_before);
            ranks[older] += usize::from(!is_before);
        }
    }
    for (due, rank) in newest_first.iter().zip(ranks) {
        slot[rank] = *due;
    }
    times(&slot[..LEN])
}

/// Stable, in place, and fast for the few events that a slot usually holds.
fn insertion_sort<E: Copy>(batch: &mut [Due<E>]) {
    for end in 1..batch.len() {
        let entry = batch[end];
        let mut place = end;
        while place > 0 && batch[place - 1].at > entry.at {
            batch[place] = batch[place - 1];
            place -= 1;
        }
        batch[place] = entry;
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed: the standard heap returns its greatest element first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<E> Eq for Entry<E> {}
