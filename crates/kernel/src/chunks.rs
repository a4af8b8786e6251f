//! Storage for the events of the far future: queues of whole chunks from one store. Events that
//! move from queue to queue are thus copied sequentially, and need no more room than the highest
//! number of pending events.

use crate::slab::{Due, NONE};

/// Events per chunk. Enough for sequential reads, few enough that a half-empty chunk costs little.
const CHUNK: usize = 32;

/// All chunks, used and free.
pub(crate) struct Chunks<E> {
    /// Chunk `c` is `events[c * CHUNK..][..CHUNK]`.
    events: Vec<Due<E>>,
    /// The chunk after each chunk, in its queue or in the free list.
    next: Vec<u32>,
    free: u32,
}

/// A first-in first-out queue of events in [`Chunks`].
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
    /// Number of events removed from the first chunk.
    start: usize,
    /// Number of events in the last chunk.
    end: usize,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { first: NONE, last: NONE, start: 0, end: CHUNK };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl<E: Copy> Chunks<E> {
    pub(crate) fn new() -> Self {
        Chunks { events: Vec::new(), next: Vec::new(), free: NONE }
    }
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut Queue, due: Due<E>) {
        if queue.end == CHUNK {
            self.append_chunk(queue, due);
        }
        self.events[queue.last as usize * CHUNK + queue.end] = due;
        queue.end += 1;
    }
    fn append_chunk(&mut self, queue: &mut Queue, filler: Due<E>) {
        let chunk = self.new_chunk(filler);
        match queue.last {
            NONE => queue.first = chunk,
            last => self.next[last as usize] = chunk,
        }
        (queue.last, queue.end) = (chunk, 0);
    }
    fn new_chunk(&mut self, filler: Due<E>) -> u32 {
        let chunk = self.free;
        if chunk == NONE {
            self.next.push(NONE);
            self.events.resize(self.next.len() * CHUNK, filler);
            return self.next.len() as u32 - 1;
        }
        self.free = std::mem::replace(&mut self.next[chunk as usize], NONE);
        chunk
    }
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut Queue) -> Option<Due<E>> {
        if queue.is_empty() {
            return None;
        }
        let due = self.events[queue.first as usize * CHUNK + queue.start];
        queue.start += 1;
        if queue.first == queue.last && queue.start == queue.end {
            self.free_first(queue);
            *queue = Queue::EMPTY;
        } else if queue.start == CHUNK {
            queue.first = self.free_first(queue);
            queue.start = 0;
        }
        Some(due)
    }
    /// Frees a queue's first chunk and returns the next one.
    fn free_first(&mut self, queue: &Queue) -> u32 {
        let next = std::mem::replace(&mut self.next[queue.first as usize], self.free);
        self.free = queue.first;
        next
    }
    /// Returns the times of all events of a queue.
    pub(crate) fn times(&self, queue: &Queue) -> impl Iterator<Item = u64> {
        let (first, last, start, end) = (queue.first, queue.last, queue.start, queue.end);
        let chunks = std::iter::successors((first != NONE).then_some(first), move |chunk| {
            (*chunk != last).then(|| self.next[*chunk as usize])
        });
        chunks.flat_map(move |chunk| {
            let from = if chunk == first { start } else { 0 };
            let to = if chunk == last { end } else { CHUNK };
            self.events[chunk as usize * CHUNK..][from..to].iter().map(|due| due.at)
        })
    }
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.next.clear();
        self.free = NONE;
    }
}
