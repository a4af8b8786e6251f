//! A client's own blocks of the pool: it requests whole chunks from the storage node, cuts them,
//! and keeps freed blocks.

use super::PoolGeometry;

/// Free blocks of one client, by their addresses; the last freed is taken first, as in Ditto's
/// lists.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    geometry: PoolGeometry,
    free: Vec<u64>,
    is_dry: bool,
}

impl Heap {
    pub(super) fn new(geometry: PoolGeometry) -> Heap {
        Heap { geometry, free: Vec::new(), is_dry: false }
    }

    pub(super) fn take(&mut self) -> Option<u64> {
        self.free.pop()
    }

    pub(super) fn give_back(&mut self, address: u64) {
        self.free.push(address);
    }

    /// Cuts a chunk that the storage node gave, or notes that it has none left.
    pub(super) fn add_chunk(&mut self, chunk: Option<u64>) {
        match chunk {
            Some(start) => {
                let block = u64::from(self.geometry.block_bytes);
                let blocks = self.geometry.chunk_blocks;
                self.free.extend((0..blocks).rev().map(|number| start + u64::from(number) * block));
            }
            None => self.is_dry = true,
        }
    }

    /// Returns whether the storage node has no chunks left.
    pub(super) fn is_dry(&self) -> bool {
        self.is_dry
    }

    pub(super) fn free(&self) -> &[u64] {
        &self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_cut_into_blocks_that_lie_side_by_side() {
        let geometry = PoolGeometry { buckets: 1, block_bytes: 256, chunk_blocks: 3, chunks: 2 };
        let mut heap = Heap::new(geometry);
        assert_eq!(heap.take(), None);
        heap.add_chunk(Some(768));
        assert_eq!([heap.take(), heap.take(), heap.take(), heap.take()], [Some(768), Some(1024), Some(1280), None]);
        heap.give_back(1024);
        assert_eq!((heap.take(), heap.is_dry()), (Some(1024), false));
        heap.add_chunk(None);
        assert!(heap.is_dry());
    }
}
