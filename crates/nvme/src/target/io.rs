//! Requests to backends, and their answers.

use crate::Status;
use crate::target::BackendId;
use crate::target::reservations::Reservations;

/// Identifies a request to a backend. Return it with the answer, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoTag {
    pub(super) slot: u32,
    pub(super) use_count: u32,
}

impl IoTag {
    /// As a number, for logs and completions of an operating system.
    pub const fn bits(self) -> u64 {
        self.slot as u64 | (self.use_count as u64) << 32
    }

    /// From [`Self::bits`].
    pub const fn of_bits(bits: u64) -> Self {
        IoTag { slot: bits as u32, use_count: (bits >> 32) as u32 }
    }
}

/// A request to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Returned with the answer.
    pub tag: IoTag,
    /// The backend.
    pub backend: BackendId,
    /// The controller of the command; 0, which no controller has, for the target's own requests.
    pub controller: u16,
    /// The operation.
    pub operation: IoOperation,
}

/// Blocks of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First block.
    pub start: u64,
    /// Blocks: at least 1.
    pub blocks: u32,
}

impl BlockRange {
    /// Whether the ranges share a block.
    pub fn overlaps(self, other: BlockRange) -> bool {
        let end = |range: BlockRange| range.start.saturating_add(range.blocks.into());
        self.start < end(other) && other.start < end(self)
    }
}

/// Blocks to copy from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// Their backend, of the same block size.
    pub backend: BackendId,
    /// The range.
    pub range: BlockRange,
}

/// A namespace, for the engine of S-Direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineDevice {
    /// The backend of its data.
    pub backend: BackendId,
    /// Bytes of a block as a power of two.
    pub block_shift: u8,
    /// Its size in blocks.
    pub blocks: u64,
}

/// A place on a namespace, for the engine of S-Direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnginePlace {
    /// Its namespace.
    pub device: EngineDevice,
    /// First byte.
    pub address: u64,
}

/// A command of S-Direct. The target has checked access and namespaces; the engine decides whether
/// and how to carry it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOperation {
    /// Write the data at `from` to every other place. The result has a bit for each target, in
    /// their order, that does not hold all of it.
    MultiCast {
        /// Source.
        from: EnginePlace,
        /// Destinations: 1 to 32 places.
        to: Vec<EnginePlace>,
        /// Length in bytes; whole blocks.
        bytes: u64,
    },
    /// Write the sum of two words over the second. The result is the sum.
    AddWrite {
        /// The namespace of both.
        device: EngineDevice,
        /// First byte of the first.
        first: u64,
        /// First byte of the second.
        second: u64,
    },
}

/// An operation. Ranges were checked against the namespace's size when the command came. A
/// namespace may shrink meanwhile, so a backend checks again. Buffers are as long as their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoOperation {
    /// Fill all of `buffer`, which holds data of other commands, and return it.
    Read {
        /// Which blocks.
        range: BlockRange,
        /// Room for them.
        buffer: Vec<u8>,
    },
    /// Keep these blocks as they are, so that [`Target::pieces`](super::Target::pieces) may name
    /// them to be sent from where they lie. [`IoStatus::Done`] grants the loan and counts as a
    /// read. After any other answer the blocks are read into a buffer. A granted loan lasts until
    /// its bytes are sent, or until [`Self::EndLoan`], which precedes every request that changes
    /// them.
    Lend {
        /// Which blocks.
        range: BlockRange,
    },
    /// Fill all of `buffer` with lent blocks, and return it: the loan is over.
    EndLoan {
        /// Which blocks.
        range: BlockRange,
        /// Room for them.
        buffer: Vec<u8>,
    },
    /// Write a part of the bytes of the last [`Target::receive`](super::Target::receive), before
    /// its next call.
    WriteInput {
        /// Which blocks.
        range: BlockRange,
        /// First of those bytes.
        from: usize,
        /// First byte behind them.
        to: usize,
        /// As in Write.
        is_durable: bool,
    },
    /// Write `data`, give the buffer back.
    Write {
        /// Which blocks.
        range: BlockRange,
        /// The data to write.
        data: Vec<u8>,
        /// Answer only when it would survive a power loss (FUA).
        is_durable: bool,
    },
    /// Answer when all earlier answered writes would survive a power loss.
    Flush,
    /// Write zeros.
    WriteZeroes {
        /// Which blocks.
        range: BlockRange,
        /// Room may be given back.
        deallocate: bool,
        /// As in Write.
        is_durable: bool,
    },
    /// Free the room of these blocks; they read as zeros or as before.
    Deallocate {
        /// The ranges.
        ranges: Vec<BlockRange>,
    },
    /// Answer [`IoStatus::Miscompare`] unless the blocks hold `data`.
    Compare {
        /// Which blocks.
        range: BlockRange,
        /// The expected data.
        data: Vec<u8>,
    },
    /// As Compare and, if equal, Write, atomically.
    CompareAndWrite {
        /// Which blocks.
        range: BlockRange,
        /// The expected data.
        expected: Vec<u8>,
        /// The data to write; the buffer to give back.
        data: Vec<u8>,
        /// As in Write.
        is_durable: bool,
    },
    /// Read, and drop the data.
    Verify {
        /// Which blocks.
        range: BlockRange,
    },
    /// Write the data of the sources, one behind the other, from `start` on.
    Copy {
        /// First block that is written.
        start: u64,
        /// The sources.
        sources: Vec<CopySource>,
        /// As in Write.
        is_durable: bool,
    },
    /// Keep this state in place of the last, and answer when it would survive a power loss.
    PersistReservations {
        /// The state of the namespace to keep.
        state: Reservations,
    },
    /// Have the engine of S-Direct carry this out, by ordinary requests to the backends that it
    /// names. Answer with [`IoResult::of_engine`].
    Engine(EngineOperation),
}

impl IoOperation {
    /// Whether a backend in memory carries it out before more input is taken.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self, IoOperation::Lend { .. } | IoOperation::WriteInput { .. })
    }

    /// Whether it may change blocks. Each read of a lender asks this.
    pub(super) fn may_change(&self) -> bool {
        !matches!(self, IoOperation::Lend { .. } | IoOperation::Read { .. })
    }

    /// Calls `is_wanted` with the ranges that it changes until it returns true. Returns true also
    /// if other ranges may change.
    pub(super) fn changes(&self, is_wanted: impl Fn(BlockRange) -> bool) -> bool {
        match self {
            IoOperation::Write { range, .. }
            | IoOperation::WriteInput { range, .. }
            | IoOperation::WriteZeroes { range, .. }
            | IoOperation::CompareAndWrite { range, .. } => is_wanted(*range),
            IoOperation::Deallocate { ranges } => ranges.iter().any(|range| is_wanted(*range)),
            IoOperation::Copy { start, sources, .. } => {
                let blocks = sources.iter().map(|source| source.range.blocks).sum();
                is_wanted(BlockRange { start: *start, blocks })
            }
            IoOperation::Engine(_) => true,
            IoOperation::Read { .. }
            | IoOperation::Lend { .. }
            | IoOperation::EndLoan { .. }
            | IoOperation::Compare { .. }
            | IoOperation::Verify { .. }
            | IoOperation::Flush
            | IoOperation::PersistReservations { .. } => false,
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoStatus {
    /// Done.
    Done,
    /// Blocks beyond the backend's size.
    OutOfRange,
    /// Compare: not equal.
    Miscompare,
    /// The medium cannot read the blocks.
    ReadError,
    /// The medium cannot write the blocks.
    WriteError,
    /// No room on the medium.
    NoSpace,
    /// The backend does not support the operation.
    Unsupported,
    /// The backend is not available now; a retry may succeed.
    Unavailable,
    /// No room for the request, or a conflict with another; a retry may succeed.
    Busy,
    /// The operation is impossible for any backend.
    Invalid,
}

impl IoStatus {
    /// The status of the completion.
    pub(super) fn status(self) -> Status {
        match self {
            IoStatus::Done => Status::SUCCESS,
            IoStatus::OutOfRange => Status::LBA_OUT_OF_RANGE.without_retry(),
            IoStatus::Miscompare => Status::COMPARE_FAILURE.without_retry(),
            IoStatus::ReadError => Status::UNRECOVERED_READ.without_retry(),
            IoStatus::WriteError => Status::WRITE_FAULT.without_retry(),
            IoStatus::NoSpace => Status::CAPACITY_EXCEEDED.without_retry(),
            IoStatus::Unsupported => Status::INVALID_OPCODE.without_retry(),
            IoStatus::Unavailable => Status::INTERNAL_PATH,
            IoStatus::Busy => Status::INTERRUPTED,
            IoStatus::Invalid => Status::INVALID_FIELD.without_retry(),
        }
    }
}

/// The answer of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoResult {
    /// The outcome.
    pub status: IoStatus,
    /// The buffer of the operation, filled if it was a read; empty for operations without one. The
    /// engine's result: 8 bytes, little endian.
    pub buffer: Vec<u8>,
}

impl IoResult {
    /// Without a buffer.
    pub const fn bare(status: IoStatus) -> Self {
        IoResult { status, buffer: Vec::new() }
    }

    /// For a command of S-Direct, with the result of its [`EngineOperation`].
    pub fn of_engine(status: IoStatus, result: u64) -> Self {
        IoResult { status, buffer: result.to_le_bytes().to_vec() }
    }
}
