//! What backends have to do, and what they answer.

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

/// Blocks to copy from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// Who keeps them; of the same block size.
    pub backend: BackendId,
    /// Which.
    pub range: BlockRange,
}

/// What is to be done. Ranges were checked against the namespace's size when the command came; a namespace may shrink meanwhile, so a backend
/// checks again. Buffers are as long as their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoOperation {
    /// Fill all of `buffer`, whose content is left over from other commands, and give it back.
    Read {
        /// Which blocks.
        range: BlockRange,
        /// Room for them.
        buffer: Vec<u8>,
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
}

/// What a backend answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoResult {
    /// How it ended.
    pub status: IoStatus,
    /// The buffer of the operation, filled if it was a read; empty for operations without one.
    pub buffer: Vec<u8>,
}

impl IoResult {
    /// Without a buffer.
    pub const fn bare(status: IoStatus) -> Self {
        IoResult { status, buffer: Vec::new() }
    }
}
