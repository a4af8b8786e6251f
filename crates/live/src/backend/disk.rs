//! The storage of a backend, and its locking.

use super::storage::Storage;
use super::work::{Blocks, Source, carry_out, durable, of_write};
use nvme::target::{BlockRange, IoOperation, IoResult, IoStatus};
use std::sync::{Arc, PoisonError, RwLock};

/// The data of a namespace.
pub(crate) struct Disk {
    pub storage: Arc<dyn Storage>,
    pub blocks: Blocks,
    /// Taken exclusively by requests that must see no change between reading and writing.
    turn: RwLock<()>,
}

/// A disk that a copy reads.
pub(crate) type Sources = Vec<(Arc<Disk>, BlockRange)>;

impl Disk {
    pub(crate) fn new(storage: Arc<dyn Storage>, block_shift: u8) -> Disk {
        Disk { storage, blocks: Blocks { shift: block_shift }, turn: RwLock::new(()) }
    }

    /// Carries out a request of this disk while other threads do the same; a copy reads from
    /// `sources`.
    pub(crate) fn carry_out(&self, operation: IoOperation, sources: &Sources) -> IoResult {
        self.carry_out_on(&*self.storage, operation, sources)
    }

    /// As [`Self::carry_out`], by this disk's storage [for one request](Storage::leavable).
    pub(crate) fn carry_out_on(&self, storage: &dyn Storage, operation: IoOperation, sources: &Sources) -> IoResult {
        if matches!(operation, IoOperation::CompareAndWrite { .. }) {
            let _alone = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            return self.by_itself(storage, operation, sources);
        }
        let _shared = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        self.by_itself(storage, operation, sources)
    }

    /// Writes bytes of an input while other threads carry out requests.
    pub(crate) fn write(&self, range: BlockRange, data: &[u8], is_durable: bool) -> IoStatus {
        let _shared = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        let written = self.storage.write(self.blocks.bytes(range).0, data);
        of_write(written.and_then(|()| durable(&*self.storage, is_durable)))
    }

    /// As [`Self::carry_out`], for a single thread.
    pub(crate) fn carry_out_alone(&self, operation: IoOperation, sources: &Sources) -> IoResult {
        self.by_itself(&*self.storage, operation, sources)
    }

    fn by_itself(&self, storage: &dyn Storage, operation: IoOperation, sources: &Sources) -> IoResult {
        let source = |(disk, range): &'_ (Arc<Disk>, BlockRange)| (disk.storage.clone(), *range);
        let held: Vec<_> = sources.iter().map(source).collect();
        let sources: Vec<_> =
            held.iter().map(|(storage, range)| Source { storage: &**storage, range: *range }).collect();
        carry_out(storage, self.blocks, operation, &sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::storage::Memory;

    /// Two loops count in one block: each adds to what it has read, unless the other was quicker.
    #[test]
    fn a_compare_and_write_of_one_loop_sees_no_write_of_another_between_its_halves() {
        const COUNT: u64 = 20_000;
        let disk = Arc::new(Disk::new(Arc::new(Memory::new(4096).expect("there is memory")), 12));
        let range = BlockRange { start: 0, blocks: 1 };
        let add = |disk: &Disk| loop {
            let buffer = vec![0; 4096];
            let expected = disk.carry_out(IoOperation::Read { range, buffer }, &Vec::new()).buffer;
            let count = expected.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let mut data = expected.clone();
            data[..8].copy_from_slice(&(count + 1).to_le_bytes());
            let write = IoOperation::CompareAndWrite { range, expected, data, is_durable: false };
            if disk.carry_out(write, &Vec::new()).status == IoStatus::Done {
                return;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..COUNT).for_each(|_| add(&disk)));
            }
        });
        let result = disk.carry_out(IoOperation::Read { range, buffer: vec![0; 4096] }, &Vec::new());
        assert_eq!(result.buffer.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)), Some(2 * COUNT));
    }
}
