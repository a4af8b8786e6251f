//! The far future: a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, 1990) over blocks of slots.
//!
//! Keys only grow, so an event moves to a lower bucket each time it moves: at most once per bit of
//! its distance. Buckets are sequential chunks, not linked lists of events: a list of a million
//! would miss the cache at every link.

use crate::chunks::{Chunks, Queue};
use crate::slab::{Due, Slab};
use crate::wheel::{Geometry, Wheel};

/// One bucket for the next block, and one for each highest bit in which a block can differ from it.
const BUCKETS: usize = 65;

/// Every event whose block is not on the wheel yet.
pub(crate) struct Far<E> {
    /// The first block that is not on the wheel. No event here is before it.
    next_block: u64,
    buckets: [Queue; BUCKETS],
    chunks: Chunks<E>,
    pending: usize,
}

impl<E: Copy> Far<E> {
    pub(crate) fn new(next_block: u64) -> Self {
        Far { next_block, buckets: [Queue::EMPTY; BUCKETS], chunks: Chunks::new(), pending: 0 }
    }
    #[inline]
    pub(crate) fn next_block(&self) -> u64 {
        self.next_block
    }
    #[inline]
    pub(crate) fn push(&mut self, geometry: Geometry, due: Due<E>) {
        self.pending += 1;
        self.file(geometry, due);
    }
    #[inline]
    fn file(&mut self, geometry: Geometry, due: Due<E>) {
        let difference = geometry.block(due.at) ^ self.next_block;
        let bucket = (u64::BITS - difference.leading_zeros()) as usize;
        self.chunks.push(&mut self.buckets[bucket], due);
    }
    /// Moves blocks to the wheel until `end` is the first one that is not on it.
    pub(crate) fn advance(&mut self, slab: &mut Slab<E>, wheel: &mut Wheel, end: u64) {
        if self.pending == 0 {
            self.next_block = self.next_block.max(end);
        }
        while self.next_block < end {
            self.load_next_block(slab, wheel);
        }
    }
    fn load_next_block(&mut self, slab: &mut Slab<E>, wheel: &mut Wheel) {
        while let Some(due) = self.chunks.pop(&mut self.buckets[0]) {
            wheel.push(slab, due.at, due.event);
            self.pending -= 1;
        }
        self.next_block += 1;
        // All bits below the lowest set bit were ones before, so the buckets of those bits are
        // empty.
        self.spread(wheel.geometry(), self.next_block.trailing_zeros() as usize + 1);
    }
    /// Moves the events of one bucket to lower ones, which must be empty, in order.
    fn spread(&mut self, geometry: Geometry, bucket: usize) {
        let mut events = std::mem::replace(&mut self.buckets[bucket], Queue::EMPTY);
        while let Some(due) = self.chunks.pop(&mut events) {
            self.file(geometry, due);
        }
    }
    /// Skips the blocks without events, provided that the wheel is empty. Returns the block of the
    /// earliest event.
    pub(crate) fn skip_empty_blocks(&mut self, geometry: Geometry) -> Option<u64> {
        let (bucket, earliest) = self.earliest()?;
        self.next_block = geometry.block(earliest);
        if bucket > 0 {
            self.spread(geometry, bucket);
        }
        Some(self.next_block)
    }
    /// Returns the lowest bucket in use and the time of its earliest event, which is the earliest
    /// of all.
    pub(crate) fn earliest(&self) -> Option<(usize, u64)> {
        let bucket = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
        let earliest = self.chunks.times(&self.buckets[bucket]).min()?;
        Some((bucket, earliest))
    }
    /// Moves all events to the end of `all`. Events of equal time keep their order.
    pub(crate) fn take_all(&mut self, all: &mut Vec<Due<E>>) {
        for bucket in &mut self.buckets {
            all.extend(std::iter::from_fn(|| self.chunks.pop(bucket)));
        }
        self.pending = 0;
    }
    /// Removes all events, and sets the end of the wheel to `next_block`.
    pub(crate) fn restart(&mut self, next_block: u64) {
        self.chunks.clear();
        self.buckets = [Queue::EMPTY; BUCKETS];
        (self.next_block, self.pending) = (next_block, 0);
    }
}
