//! The storage of a backend, and its locking.

use super::storage::Storage;
use super::work::{Blocks, Source, carry_out};
use nvme::target::{BlockRange, IoOperation, IoResult};
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
        if matches!(operation, IoOperation::CompareAndWrite { .. }) {
            let _alone = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            return self.carry_out_alone(operation, sources);
        }
        let _shared = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        self.carry_out_alone(operation, sources)
    }

    /// As [`Self::carry_out`], for a single thread.
    pub(crate) fn carry_out_alone(&self, operation: IoOperation, sources: &Sources) -> IoResult {
        let source = |(disk, range): &'_ (Arc<Disk>, BlockRange)| (disk.storage.clone(), *range);
        let held: Vec<_> = sources.iter().map(source).collect();
        let sources: Vec<_> =
            held.iter().map(|(storage, range)| Source { storage: &**storage, range: *range }).collect();
        carry_out(&*self.storage, self.blocks, operation, &sources)
    }
}
