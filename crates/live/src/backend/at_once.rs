//! Small reads and writes of backends in memory, carried out while their connection's bytes are read.

use super::Backends;
use super::disk::Disk;
use super::work::{durable, of_read, of_write};
use crate::metrics::Metrics;
use crate::socket::{Moved, Socket};
use base::Operation;
use nvme::target::{AtOnce, BackendId, BlockRange, ConnectionId, IoStatus, Piece, Pieces};

/// The backends that the loop itself carries requests out on; `None` while every request has to be seen by others (records).
pub(crate) struct Quick<'a> {
    pub backends: Option<&'a Backends>,
    pub metrics: &'a mut Metrics,
    /// The connection whose bytes are read.
    pub socket: &'a mut Socket,
    /// What sending to it has come to.
    pub moved: Moved,
}

impl Quick<'_> {
    fn disk(&self, id: BackendId) -> Option<&Disk> {
        self.backends.and_then(|backends| backends.quick_disk(id))
    }

    fn append(&self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        let Some(disk) = self.disk(backend) else { return self.append_cached(backend, range, out) };
        let (at, bytes) = disk.blocks.bytes(range);
        Some(of_read(disk.storage.append(at, bytes as usize, out)))
    }

    /// Of a backend with threads: what they would not have to wait for.
    fn append_cached(&self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        let disk = self.backends?.prompt_disk(backend)?;
        let (at, bytes) = disk.blocks.bytes(range);
        disk.storage.append_at_once(at, bytes as usize, out).then_some(IoStatus::Done)
    }
}

impl AtOnce for Quick<'_> {
    fn read(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        let status = self.append(backend, range, out)?;
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

    /// TLS takes a record or two at a time and copies them anyway.
    fn lends(&mut self, connection: ConnectionId, backend: BackendId, range: BlockRange) -> bool {
        let is_lent = connection == self.socket.id
            && self.socket.is_plain()
            && self.disk(backend).is_some_and(|disk| {
                let (at, bytes) = disk.blocks.bytes(range);
                disk.storage.lends(at, bytes as usize)
            });
        if is_lent {
            self.metrics.observe_at_once(Operation::Read);
        }
        is_lent
    }

    fn take_back(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        self.append(backend, range, out)
    }

    fn send(&mut self, _: ConnectionId, lender: BackendId, pieces: Pieces<'_>) -> usize {
        let Some(disk) = self.backends.and_then(|backends| backends.quick_disk(lender)) else { return 0 };
        let Some(lent) = disk.storage.lend() else { return 0 };
        // What cannot be lent ends what is sent: the target then reads it, which says why.
        let slices = pieces.map_while(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Lent { range, from, to } => {
                let (at, bytes) = disk.blocks.bytes(range);
                lent.bytes(at, bytes as usize)?.get(from..to)
            }
        });
        match self.socket.send(slices) {
            Ok(sent) => sent,
            Err(moved) => {
                self.moved = moved;
                0
            }
        }
    }
}
