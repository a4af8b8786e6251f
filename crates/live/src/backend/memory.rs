//! Requests of backends in memory, carried out in the loop without buffers: loans, and writes from
//! the input.

use super::Backends;
use super::disk::Disk;
use super::storage::Lender;
use super::work::{durable, of_read, of_write};
use base::Operation;
use nvme::target::{BackendId, BlockRange, IoOperation, IoRequest, IoResult, IoStatus};

/// The memory of one backend at a time, locked from one request to the next. Unlocking waits until
/// all earlier writes have reached the memory, a seventh of a write of 4 KiB. Drop it before
/// anything else uses the backends.
pub(crate) struct Memory<'a> {
    backends: &'a Backends,
    /// Every request has a row in the records, which needs a request with a buffer.
    is_recorded: bool,
    held: Option<Held<'a>>,
}

/// A disk whose memory is locked.
pub(crate) struct Held<'a> {
    id: BackendId,
    disk: &'a Disk,
    lender: Option<Lender<'a>>,
}

impl<'a> Memory<'a> {
    pub(crate) fn of(backends: &'a Backends, is_recorded: bool) -> Memory<'a> {
        Memory { backends, is_recorded, held: None }
    }

    fn hold(&mut self, id: BackendId) -> Option<&mut Held<'a>> {
        if self.held.as_ref().is_none_or(|held| held.id != id) {
            // Two backends may share one memory: unlock the one before locking the other.
            self.held = None;
            let disk = self.backends.memory_disk(id)?;
            self.held = Some(Held { id, disk, lender: disk.storage.lend() });
        }
        self.held.as_mut()
    }

    /// Carries out a loan, its end, or a write of bytes of `input`. Returns whether that counts as
    /// a read or a write. Returns any other request.
    pub(crate) fn carry_out(
        &mut self,
        request: IoRequest,
        input: &[u8],
    ) -> Result<(IoResult, Option<Operation>), IoRequest> {
        let (backend, is_recorded) = (request.backend, self.is_recorded);
        match request.operation {
            IoOperation::Lend { range } => {
                let is_lent = !is_recorded && self.hold(backend).is_some_and(|held| held.bytes(range).is_some());
                let status = if is_lent { IoStatus::Done } else { IoStatus::Unavailable };
                Ok((IoResult::bare(status), is_lent.then_some(Operation::Read)))
            }
            IoOperation::WriteInput { range, from, to, is_durable } => {
                let data = &input[from..to];
                match self.hold(backend).filter(|_| !is_recorded) {
                    Some(held) => Ok((IoResult::bare(held.write(range, data, is_durable)), Some(Operation::Write))),
                    None => {
                        let operation = IoOperation::Write { range, data: data.to_vec(), is_durable };
                        Err(IoRequest { operation, ..request })
                    }
                }
            }
            IoOperation::EndLoan { range, mut buffer } => {
                let status = match self.hold(backend) {
                    Some(held) => held.read(range, &mut buffer),
                    None => IoStatus::Unavailable,
                };
                Ok((IoResult { status, buffer }, None))
            }
            operation => Err(IoRequest { operation, ..request }),
        }
    }

    /// Returns the memory of a backend, to send what it has lent; `None` when the backend is gone.
    pub(crate) fn lent_by(&mut self, backend: BackendId) -> Option<&Held<'a>> {
        self.hold(backend).map(|held| &*held)
    }
}

impl Held<'_> {
    /// Returns bytes that can be sent from where they lie.
    pub(crate) fn bytes(&self, range: BlockRange) -> Option<&[u8]> {
        let (at, bytes) = self.disk.blocks.bytes(range);
        self.lender.as_ref()?.bytes(at, bytes as usize)
    }

    fn read(&self, range: BlockRange, buffer: &mut [u8]) -> IoStatus {
        match self.bytes(range).filter(|there| there.len() == buffer.len()) {
            Some(there) => {
                buffer.copy_from_slice(there);
                IoStatus::Done
            }
            None => of_read(Err(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn write(&mut self, range: BlockRange, data: &[u8], is_durable: bool) -> IoStatus {
        let at = self.disk.blocks.bytes(range).0;
        let written = self.lender.as_mut().and_then(|lender| lender.write(at, data));
        let storage = &*self.disk.storage;
        let written = written.unwrap_or_else(|| storage.write(at, data));
        of_write(written.and_then(|()| durable(storage, is_durable)))
    }
}
