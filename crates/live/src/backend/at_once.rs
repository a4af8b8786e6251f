//! Small reads and writes of backends in memory, carried out while their connection's bytes are read.

use super::Backends;
use super::disk::Disk;
use super::work::{durable, of_read, of_write};
use crate::metrics::Metrics;
use base::Operation;
use nvme::target::{AtOnce, BackendId, BlockRange, IoStatus};

/// The backends that the loop itself carries requests out on; `None` while every request has to be seen by others (records).
pub(crate) struct Quick<'a> {
    pub backends: Option<&'a Backends>,
    pub metrics: &'a mut Metrics,
}

impl Quick<'_> {
    fn disk(&self, id: BackendId) -> Option<&Disk> {
        self.backends.and_then(|backends| backends.quick_disk(id))
    }
}

impl AtOnce for Quick<'_> {
    fn read(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        let disk = self.disk(backend)?;
        let (at, bytes) = disk.blocks.bytes(range);
        let status = of_read(disk.storage.append(at, bytes as usize, out));
        self.metrics.observe_at_once(Operation::Read);
        Some(status)
    }

    fn write(&mut self, backend: BackendId, range: BlockRange, data: &[u8], is_durable: bool) -> Option<IoStatus> {
        let disk = self.disk(backend)?;
        let written = disk.storage.write(disk.blocks.bytes(range).0, data);
        let status = of_write(written.and_then(|()| durable(&*disk.storage, is_durable)));
        self.metrics.observe_at_once(Operation::Write);
        Some(status)
    }

    fn wants_to_expect(&self) -> bool {
        self.backends.is_some_and(|backends| backends.has_memory)
    }

    fn expect(&mut self, backend: BackendId, range: BlockRange) {
        if let Some(disk) = self.disk(backend) {
            let (at, bytes) = disk.blocks.bytes(range);
            disk.storage.expect(at, bytes as usize);
        }
    }
}
