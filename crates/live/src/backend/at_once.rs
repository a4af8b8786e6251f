//! Small reads and writes of backends in memory, carried out while their connection's bytes are read.

use super::Backends;
use super::disk::Disk;
use super::storage::Lender;
use super::work::{durable, of_read, of_write};
use crate::metrics::Metrics;
use crate::socket::{Moved, Socket};
use base::Operation;
use nvme::target::{AtOnce, BackendId, BlockRange, ConnectionId, IoStatus, Piece, Pieces};

/// The backends that the loop itself carries requests out on; `None` while every request has to be seen by others (records).
pub(crate) struct Quick<'a> {
    backends: Option<&'a Backends>,
    metrics: &'a mut Metrics,
    /// The connection whose bytes are read.
    socket: &'a mut Socket,
    /// What sending to it has come to.
    moved: Moved,
    /// The disk of the last request.
    held: Option<Held<'a>>,
}

/// A disk and its memory, which stays locked from one request to the next: giving a lock back waits
/// until all that was written before has reached the memory, a seventh of a write of 4 KiB.
struct Held<'a> {
    id: BackendId,
    disk: &'a Disk,
    lender: Option<Lender<'a>>,
}

impl<'a> Quick<'a> {
    pub(crate) fn new(backends: Option<&'a Backends>, metrics: &'a mut Metrics, socket: &'a mut Socket) -> Quick<'a> {
        Quick { backends, metrics, socket, moved: Moved::Settled, held: None }
    }

    /// Gives back what it holds; what sending has come to.
    pub(crate) fn end(self) -> Moved {
        self.moved
    }

    fn hold(&mut self, id: BackendId) -> Option<&mut Held<'a>> {
        if self.held.as_ref().is_none_or(|held| held.id != id) {
            // Two names may be one memory: the one is given back before the other is taken.
            self.held = None;
            let disk = self.backends?.quick_disk(id)?;
            self.held = Some(Held { id, disk, lender: disk.storage.lend() });
        }
        self.held.as_mut()
    }

    fn append(&mut self, backend: BackendId, range: BlockRange, out: &mut Vec<u8>) -> Option<IoStatus> {
        let Some(held) = self.hold(backend) else { return self.append_cached(backend, range, out) };
        let (at, bytes) = held.disk.blocks.bytes(range);
        if let Some(there) = held.bytes(at, bytes as usize) {
            out.extend_from_slice(there);
            return Some(IoStatus::Done);
        }
        // In several pieces, or not in memory. What is held is given back before it is taken again.
        let disk = held.disk;
        self.held = None;
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
        let held = self.hold(backend)?;
        let (disk, at) = (held.disk, held.disk.blocks.bytes(range).0);
        let written = held.lender.as_mut().and_then(|lender| lender.write(at, data));
        let written = written.unwrap_or_else(|| disk.storage.write(at, data));
        let status = of_write(written.and_then(|()| durable(&*disk.storage, is_durable)));
        self.metrics.observe_at_once(Operation::Write);
        Some(status)
    }

    /// TLS takes a record or two at a time and copies them anyway.
    fn lends(&mut self, connection: ConnectionId, backend: BackendId, range: BlockRange) -> bool {
        let is_lent = connection == self.socket.id
            && self.socket.is_plain()
            && self.hold(backend).is_some_and(|held| {
                let (at, bytes) = held.disk.blocks.bytes(range);
                held.bytes(at, bytes as usize).is_some()
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
        if self.hold(lender).is_none() {
            return 0;
        }
        let Quick { held: Some(held), socket, moved, .. } = self else { return 0 };
        // What cannot be lent ends what is sent: the target then reads it, which says why.
        let slices = pieces.map_while(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Lent { range, from, to } => {
                let (at, bytes) = held.disk.blocks.bytes(range);
                held.bytes(at, bytes as usize)?.get(from..to)
            }
        });
        match socket.send(slices) {
            Ok(sent) => sent,
            Err(reason) => {
                *moved = reason;
                0
            }
        }
    }
}

impl Held<'_> {
    /// What can be sent from where it lies.
    fn bytes(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.lender.as_ref()?.bytes(at, bytes)
    }
}
