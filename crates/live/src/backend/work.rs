//! A request to a backend, carried out on its storage.

use super::storage::Storage;
use nvme::target::{BlockRange, IoOperation, IoResult, IoStatus};
use std::io;

/// An operation on a storage, with blocks as bytes.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    /// Bytes of a block as a power of two.
    pub shift: u8,
}

impl Blocks {
    /// First byte and bytes of a range. The target has checked ranges against namespaces; an
    /// impossible one is outside of every storage.
    pub(crate) fn bytes(self, range: BlockRange) -> (u64, u64) {
        let at = range.start.saturating_mul(1 << self.shift);
        (at, u64::from(range.blocks) << self.shift)
    }
}

/// A storage that data are copied from, and the address.
pub(crate) struct Source<'a> {
    pub storage: &'a dyn Storage,
    pub range: BlockRange,
}

/// Bytes of a step of work that needs a buffer of its own.
const PIECE: usize = 256 << 10;

/// Carries it out. `sources` are those of a copy, in its order. Flushes and durable writes return
/// after the sync.
pub(crate) fn carry_out(
    storage: &dyn Storage,
    blocks: Blocks,
    operation: IoOperation,
    sources: &[Source<'_>],
) -> IoResult {
    match operation {
        IoOperation::Read { range, mut buffer } | IoOperation::EndLoan { range, mut buffer } => {
            let status = of_read(storage.read(blocks.bytes(range).0, &mut buffer));
            IoResult { status, buffer }
        }
        IoOperation::Write { range, data, is_durable } => {
            let written = storage.write(blocks.bytes(range).0, &data);
            IoResult { status: of_write(written.and_then(|()| durable(storage, is_durable))), buffer: data }
        }
        IoOperation::Flush => IoResult::bare(of_write(storage.sync())),
        IoOperation::WriteZeroes { range, deallocate, is_durable } => {
            let (at, bytes) = blocks.bytes(range);
            let zeroed = storage.zero(at, bytes, deallocate);
            IoResult::bare(of_write(zeroed.and_then(|()| durable(storage, is_durable))))
        }
        IoOperation::Deallocate { ranges } => {
            let mut all = ranges.iter().map(|range| blocks.bytes(*range));
            IoResult::bare(of_write(all.try_for_each(|(at, bytes)| storage.give_back(at, bytes))))
        }
        IoOperation::Compare { range, data } => {
            IoResult { status: compare(storage, blocks.bytes(range).0, &data), buffer: data }
        }
        IoOperation::CompareAndWrite { range, expected, data, is_durable } => {
            let at = blocks.bytes(range).0;
            let status = match compare(storage, at, &expected) {
                IoStatus::Done => of_write(storage.write(at, &data).and_then(|()| durable(storage, is_durable))),
                other => other,
            };
            IoResult { status, buffer: data }
        }
        IoOperation::Verify { range } => IoResult::bare(verify(storage, blocks.bytes(range))),
        IoOperation::Copy { start, is_durable, .. } => {
            IoResult::bare(copy(storage, blocks, start, sources, is_durable))
        }
        // The state's keeper, S-Direct's engine and `Memory` carry these out.
        IoOperation::PersistReservations { .. }
        | IoOperation::Engine(_)
        | IoOperation::Lend { .. }
        | IoOperation::WriteInput { .. } => IoResult::bare(IoStatus::Unsupported),
    }
}

pub(super) fn durable(storage: &dyn Storage, is_durable: bool) -> io::Result<()> {
    if is_durable { storage.sync() } else { Ok(()) }
}

fn compare(storage: &dyn Storage, at: u64, expected: &[u8]) -> IoStatus {
    let mut there = vec![0; expected.len().min(PIECE)];
    for (index, piece) in expected.chunks(PIECE).enumerate() {
        let place = &mut there[..piece.len()];
        match storage.read(at.saturating_add((index * PIECE) as u64), place) {
            Ok(()) if place == piece => {}
            Ok(()) => return IoStatus::Miscompare,
            error => return of_read(error),
        }
    }
    IoStatus::Done
}

fn verify(storage: &dyn Storage, (at, bytes): (u64, u64)) -> IoStatus {
    let mut room = vec![0; PIECE.min(usize::try_from(bytes).unwrap_or(PIECE))];
    let mut done = 0;
    while done < bytes {
        let length = room.len().min((bytes - done) as usize);
        if let Err(error) = storage.read(at.saturating_add(done), &mut room[..length]) {
            return of_read(Err(error));
        }
        done += length as u64;
    }
    IoStatus::Done
}

/// Everything is read before anything is written: sources and target may overlap. The target bounds
/// their sum.
fn copy(storage: &dyn Storage, blocks: Blocks, start: u64, sources: &[Source<'_>], is_durable: bool) -> IoStatus {
    let mut data = Vec::new();
    for Source { storage, range } in sources {
        let (at, bytes) = blocks.bytes(*range);
        let from = data.len();
        if at.checked_add(bytes).is_none_or(|end| end > storage.bytes()) {
            return IoStatus::OutOfRange;
        }
        data.resize(from + bytes as usize, 0);
        if let Err(error) = storage.read(at, &mut data[from..]) {
            return of_read(Err(error));
        }
    }
    let at = blocks.bytes(BlockRange { start, blocks: 1 }).0;
    of_write(storage.write(at, &data).and_then(|()| durable(storage, is_durable)))
}

pub(super) fn of_read(result: io::Result<()>) -> IoStatus {
    status(result, IoStatus::ReadError)
}

pub(super) fn of_write(result: io::Result<()>) -> IoStatus {
    status(result, IoStatus::WriteError)
}

fn status(result: io::Result<()>, otherwise: IoStatus) -> IoStatus {
    let Err(error) = result else { return IoStatus::Done };
    match error.kind() {
        io::ErrorKind::UnexpectedEof => IoStatus::OutOfRange,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoStatus::NoSpace,
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::super::storage::Memory;
    use super::*;

    const BLOCKS: Blocks = Blocks { shift: 9 };

    fn range(start: u64, blocks: u32) -> BlockRange {
        BlockRange { start, blocks }
    }

    fn filled() -> Memory {
        let memory = Memory::new(64 << 9).expect("there is room");
        for block in 0..64 {
            memory.write(block << 9, &[block as u8; 512]).expect("it is inside");
        }
        memory
    }

    fn block(memory: &Memory, number: u64) -> u8 {
        let mut back = [0; 512];
        memory.read(number << 9, &mut back).expect("it is inside");
        assert!(back.iter().all(|byte| *byte == back[0]));
        back[0]
    }

    fn status_of(memory: &Memory, operation: IoOperation, sources: &[Source<'_>]) -> IoStatus {
        carry_out(memory, BLOCKS, operation, sources).status
    }

    #[test]
    fn a_copy_onto_its_own_source_moves_what_was_there_before() {
        let memory = filled();
        let sources =
            [Source { storage: &memory, range: range(10, 4) }, Source { storage: &memory, range: range(0, 1) }];
        let copy = IoOperation::Copy { start: 12, sources: Vec::new(), is_durable: true };
        assert_eq!(status_of(&memory, copy, &sources), IoStatus::Done);
        assert_eq!((10..18).map(|at| block(&memory, at)).collect::<Vec<_>>(), [10, 11, 10, 11, 12, 13, 0, 17]);
    }

    #[test]
    fn compare_and_write_writes_only_what_compares_equal() {
        let memory = filled();
        let attempt = |expected: u8| IoOperation::CompareAndWrite {
            range: range(5, 1),
            expected: vec![expected; 512],
            data: vec![99; 512],
            is_durable: false,
        };
        assert_eq!(status_of(&memory, attempt(6), &[]), IoStatus::Miscompare);
        assert_eq!(block(&memory, 5), 5);
        assert_eq!(status_of(&memory, attempt(5), &[]), IoStatus::Done);
        assert_eq!(block(&memory, 5), 99);
    }

    #[test]
    fn a_namespace_that_has_shrunk_meanwhile_is_out_of_range() {
        let memory = filled();
        for operation in [
            IoOperation::Read { range: range(63, 2), buffer: vec![0; 1024] },
            IoOperation::Write { range: range(u64::MAX >> 9, 1), data: vec![0; 512], is_durable: false },
            IoOperation::Verify { range: range(64, 1) },
            IoOperation::WriteZeroes { range: range(60, 5), deallocate: true, is_durable: false },
            IoOperation::Deallocate { ranges: vec![range(0, 1), range(64, 1)] },
            IoOperation::Compare { range: range(64, 1), data: vec![0; 512] },
        ] {
            assert_eq!(status_of(&memory, operation.clone(), &[]), IoStatus::OutOfRange, "{operation:?}");
        }
    }
}
