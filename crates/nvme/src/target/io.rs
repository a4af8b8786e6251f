//! What backends have to do, and what they answer.

use crate::Status;
use crate::target::BackendId;
use crate::target::reservations::Reservations;

/// Names one request to a backend. Give it back with the result, once.
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

/// What a backend has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoRequest {
    /// Comes back with the result.
    pub tag: IoTag,
    /// Who has to do it.
    pub backend: BackendId,
    /// The controller by which a host asked; 0, which no controller has, where the target asks for
    /// itself.
    pub controller: u16,
    /// What.
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
    /// Whether a block is in both.
    pub fn overlaps(self, other: BlockRange) -> bool {
        let end = |range: BlockRange| range.start.saturating_add(range.blocks.into());
        self.start < end(other) && other.start < end(self)
    }
}

/// Blocks to copy from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// Who keeps them; of the same block size.
    pub backend: BackendId,
    /// Which.
    pub range: BlockRange,
}

/// What the engine of S-Direct has to know of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineDevice {
    /// Who keeps its data.
    pub backend: BackendId,
    /// Bytes of a block as a power of two.
    pub block_shift: u8,
    /// How many blocks it has.
    pub blocks: u64,
}

/// A place on a namespace, for the engine of S-Direct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnginePlace {
    /// On which.
    pub device: EngineDevice,
    /// First byte.
    pub address: u64,
}

/// A command of S-Direct. The host may do it, on namespaces that are there; whether it can be done,
/// and how, is the engine's to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOperation {
    /// Write what stands at `from` to every other place. The result is a bit for each target, in
    /// their order, that does not hold all of it.
    MultiCast {
        /// What is read.
        from: EnginePlace,
        /// What is written: 1 to 32 places.
        to: Vec<EnginePlace>,
        /// How many bytes; whole blocks.
        bytes: u64,
    },
    /// Write the sum of two words over the second. The result is the sum.
    AddWrite {
        /// Where both are.
        device: EngineDevice,
        /// First byte of the first.
        first: u64,
        /// First byte of the second.
        second: u64,
    },
}

/// What is to be done. Ranges were checked against the namespace's size when the command came; a
/// namespace may shrink meanwhile, so a backend checks again. Buffers are as long as their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoOperation {
    /// Fill all of `buffer`, whose content is left over from other commands, and give it back.
    Read {
        /// Which blocks.
        range: BlockRange,
        /// Room for them.
        buffer: Vec<u8>,
    },
    /// Keep these blocks as they are, so that [`Target::pieces`](super::Target::pieces) may name
    /// them to be sent from where they lie. [`IoStatus::Done`] grants the loan, which is a read;
    /// after any other answer the blocks are read into a buffer. A granted loan lasts until its
    /// bytes are sent or [`Self::EndLoan`] comes, which precedes every request that changes them.
    Lend {
        /// Which blocks.
        range: BlockRange,
    },
    /// Fill all of `buffer` with blocks that were lent and give it back: the loan is over.
    EndLoan {
        /// Which blocks.
        range: BlockRange,
        /// Room for them.
        buffer: Vec<u8>,
    },
    /// Write a part of the bytes that the last [`Target::receive`](super::Target::receive) was
    /// called with, before it is called again.
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
        /// What.
        data: Vec<u8>,
        /// Answer only when it would survive a loss of power (FUA).
        is_durable: bool,
    },
    /// Answer when all writes that were answered before would survive a loss of power.
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
    /// Room of these blocks may be given back; they read as zeros or as before.
    Deallocate {
        /// Which.
        ranges: Vec<BlockRange>,
    },
    /// Answer [`IoStatus::Miscompare`] unless the blocks hold `data`.
    Compare {
        /// Which blocks.
        range: BlockRange,
        /// What they should hold.
        data: Vec<u8>,
    },
    /// As Compare and, where equal, Write, and nothing else of these blocks in between.
    CompareAndWrite {
        /// Which blocks.
        range: BlockRange,
        /// What they should hold.
        expected: Vec<u8>,
        /// What to write; the buffer to give back.
        data: Vec<u8>,
        /// As in Write.
        is_durable: bool,
    },
    /// Read, and keep the data to itself.
    Verify {
        /// Which blocks.
        range: BlockRange,
    },
    /// Write what the sources hold, one behind the other, from `start` on.
    Copy {
        /// First block that is written.
        start: u64,
        /// Where from.
        sources: Vec<CopySource>,
        /// As in Write.
        is_durable: bool,
    },
    /// Keep this state in place of the last, so that it survives a loss of power, and answer then.
    PersistReservations {
        /// All that has to be kept of the namespace.
        state: Reservations,
    },
    /// Have the engine of S-Direct do this, with ordinary operations of the backends that it names.
    /// Answer with [`IoResult::of_engine`].
    Engine(EngineOperation),
}

impl IoOperation {
    /// Whether only a backend in memory is asked to do it, before more input is taken.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self, IoOperation::Lend { .. } | IoOperation::WriteInput { .. })
    }

    /// Whether it may change blocks. Each read of a lender asks this.
    pub(super) fn may_change(&self) -> bool {
        !matches!(self, IoOperation::Lend { .. } | IoOperation::Read { .. })
    }

    /// Calls `is_wanted` with ranges that it changes until one is; true when it may change others.
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

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoStatus {
    /// Done.
    Done,
    /// Blocks outside of what the backend has.
    OutOfRange,
    /// Compare: not equal.
    Miscompare,
    /// The medium cannot read it.
    ReadError,
    /// The medium cannot write it.
    WriteError,
    /// No room on the medium.
    NoSpace,
    /// The backend does not do this.
    Unsupported,
    /// The backend is not there now; later may help.
    Unavailable,
    /// There is no room for the request, or somebody else was quicker; again may help.
    Busy,
    /// What is asked for cannot be done, whoever does it.
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

/// What a backend answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoResult {
    /// How it ended.
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

    /// Of a command of S-Direct, with what [`EngineOperation`] calls its result.
    pub fn of_engine(status: IoStatus, result: u64) -> Self {
        IoResult { status, buffer: result.to_le_bytes().to_vec() }
    }
}
