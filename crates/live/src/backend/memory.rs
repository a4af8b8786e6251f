//! Requests of backends in memory, carried out in the loop without buffers: loans, and writes from
//! the input.

use super::Backends;
use super::disk::Disk;
use super::storage::Lender;
use super::work::{durable, of_read, of_write};
use crate::machine::Machine;
use base::{Operation, Time};
use nvme::target::{BackendId, BlockRange, ConnectionId, IoOperation, IoRequest, IoResult, IoStatus};

/// The memory of one backend at a time, locked from one request to the next. Unlocking waits until
/// all earlier writes have reached the memory, a seventh of a write of 4 KiB. Drop it before
/// anything else uses the backends.
///
/// With several loops it is locked for one request, or while what it lends is sent, and other loops
/// read it then.
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
            self.held = Some(Held { id, disk, lender: disk.storage.lend(!self.backends.is_shared()) });
        }
        self.held.as_mut()
    }

    /// Unlocks what other loops wait for.
    pub(crate) fn let_go(&mut self) {
        self.held.take_if(|_| self.backends.is_shared());
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
                self.let_go();
                Ok((IoResult::bare(status), is_lent.then_some(Operation::Read)))
            }
            IoOperation::WriteInput { range, from, to, is_durable } => {
                let data = &input[from..to];
                match (!is_recorded).then(|| self.write(backend, range, data, is_durable)).flatten() {
                    Some(status) => Ok((IoResult::bare(status), Some(Operation::Write))),
                    None => {
                        let operation = IoOperation::Write { range, data: data.to_vec(), is_durable };
                        Err(IoRequest { operation, ..request })
                    }
                }
            }
            IoOperation::EndLoan { range, buffer } => {
                let result = self.end_loan(backend, range, buffer);
                self.let_go();
                Ok((result, None))
            }
            operation => Err(IoRequest { operation, ..request }),
        }
    }

    /// Writes bytes of the input; `None` when the backend is gone.
    fn write(&mut self, id: BackendId, range: BlockRange, data: &[u8], is_durable: bool) -> Option<IoStatus> {
        if self.backends.is_shared() {
            return self.backends.memory_disk(id).map(|disk| disk.write(range, data, is_durable));
        }
        self.hold(id).map(|held| held.write(range, data, is_durable))
    }

    /// Copies what was lent. The memory stays locked.
    fn end_loan(&mut self, backend: BackendId, range: BlockRange, mut buffer: Vec<u8>) -> IoResult {
        let held = self.hold(backend);
        let status = held.map_or(IoStatus::Unavailable, |held| held.read(range, &mut buffer));
        IoResult { status, buffer }
    }

    /// Has the target copy what a socket has not taken of the loans of `connection`. Other loops
    /// may not change a block of which half is sent, so the memory stays locked since then.
    pub(crate) fn end_loans(&mut self, now: Time, target: &mut Machine, connection: ConnectionId) {
        for _ in 0..target.end_loans(connection) {
            match target.next_io() {
                Some(IoRequest { tag, backend, operation: IoOperation::EndLoan { range, buffer }, .. }) => {
                    target.complete(now, tag, self.end_loan(backend, range, buffer));
                }
                other => unreachable!("loans end before all else: {other:?}"),
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendParts;
    use crate::backend::storage::Memory as Bytes;
    use crate::state::{NamespaceName, State};
    use plan::target::IoName;
    use runtime::in_use::InUse;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// A socket has taken half of a block, and a write by another loop comes then.
    #[test]
    fn the_rest_of_what_is_half_sent_is_copied_before_another_loop_changes_it() {
        let poll = mio::Poll::new().expect("the system has one");
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).expect("the system has one"));
        let state = Arc::new(Mutex::new(State::open(None, &InUse::Refused).expect("it has no file")));
        let mut backends =
            Backends::new(runtime::clock::Clock::start(), waker, state, true).expect("there is a thread");
        let storage = Arc::new(Bytes::new(4096).expect("there is memory"));
        let parts = BackendParts { storage, block_shift: 9, io: IoName::Threads, threads: 0, drive: None };
        let name = NamespaceName { subsystem: "nqn".into(), namespace: 1 };
        let id = backends.add(&name, parts).expect("it is one");
        let disk = backends.memory_disk(id).expect("it is in memory");
        let range = BlockRange { start: 0, blocks: 8 };
        let mut memory = Memory::of(&backends, false);
        assert!(memory.lent_by(id).and_then(|lent| lent.bytes(range)) == Some(&[0; 4096][..]));
        std::thread::scope(|scope| {
            let data = vec![1; 4096];
            scope.spawn(|| disk.carry_out(IoOperation::Write { range, data, is_durable: false }, &Vec::new()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(memory.end_loan(id, range, vec![7; 4096]).buffer == [0; 4096], "a write came between");
            memory.let_go();
        });
        assert!(memory.end_loan(id, range, vec![7; 4096]).buffer == [1; 4096], "the write is lost");
    }
}
