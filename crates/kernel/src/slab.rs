//! Where the events of the near future wait: one growing table of nodes, linked by 32-bit index, so that scheduling
//! allocates nothing.

use prefetch_index::prefetch_index;

/// The end of a chain.
pub(crate) const NONE: u32 = u32::MAX;

/// An event and when it is due, in picoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Due<E> {
    pub at: u64,
    pub event: E,
}

/// One waiting event, or a free place.
#[derive(Clone, Copy)]
struct Node<E> {
    due: Due<E>,
    /// The next node of the chain that this one is in.
    next: u32,
}

/// All nodes. The place freed last is used first: it is still in the cache.
pub(crate) struct Slab<E> {
    nodes: Vec<Node<E>>,
    free: u32,
}

impl<E: Copy> Slab<E> {
    pub(crate) fn with_capacity(nodes: usize) -> Self {
        Slab { nodes: Vec::with_capacity(nodes), free: NONE }
    }
    /// Stores an event in front of the chain that starts at `next`, and returns the chain's new start. Word by word: a copy of the
    /// whole node from where its words have just been written would wait for them.
    #[inline(always)]
    pub(crate) fn store(&mut self, at: u64, event: E, next: u32) -> u32 {
        let index = self.free;
        if index == NONE {
            return self.grow(at, event, next);
        }
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.due.at = at;
        node.due.event = event;
        node.next = next;
        index
    }
    #[cold]
    #[inline(never)]
    fn grow(&mut self, at: u64, event: E, next: u32) -> u32 {
        let node = Node { due: Due { at, event }, next };
        let index = self.nodes.len();
        assert!(index < NONE as usize, "more than 2^32 - 2 events are pending");
        self.nodes.push(node);
        index as u32
    }
    /// Hands every event of the chain to `take`, frees the chain, and changes nothing else.
    #[inline]
    pub(crate) fn drain(&mut self, start: u32, mut take: impl FnMut(Due<E>)) {
        let (mut index, mut end) = (start, NONE);
        while index != NONE {
            let node = &self.nodes[index as usize];
            take(node.due);
            (end, index) = (index, node.next);
        }
        if end != NONE {
            self.nodes[end as usize].next = self.free;
            self.free = start;
        }
    }
    /// The chain that starts at `start` will be drained soon.
    #[inline]
    pub(crate) fn foresee(&self, start: u32) {
        prefetch_index(&self.nodes, start as usize);
    }
    /// The times of the chain that starts at `start`.
    pub(crate) fn times(&self, start: u32) -> impl Iterator<Item = u64> {
        let get = |index: u32| (index != NONE).then(|| &self.nodes[index as usize]);
        std::iter::successors(get(start), move |node| get(node.next)).map(|node| node.due.at)
    }
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.free = NONE;
    }
}
