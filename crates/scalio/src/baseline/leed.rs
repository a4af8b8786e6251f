//! LEED (Guo et al., SIGCOMM 2023): a key-value store on a box of SSDs in which the box's cores do
//! everything. All operations are calls.
//!
//! | operation | reads | writes | tokens |
//! | --- | --- | --- | --- |
//! | GET | segment, then record | | 3 |
//! | PUT | segment, under its lock | record, meanwhile; then segment | 8 |
//! | DELETE | segment, under its lock | segment | 4 |
//! | CAS (ours: LEED has none) | segment, under its lock, then record | record and segment | 8 |
//!
//! A lock that somebody waited for comes with its segment in memory: nothing is read.
//!
//! A key that is not there costs a GET one read, or none where its segment lists nothing. A device
//! has 1,024 tokens; requests wait for them in their order. Its memory keeps a pointer a segment.
//! Segments and records lie in two circular logs, which compaction keeps from filling up:
//!
//! * segments: a chunk at the head is read at once, what the index still points to is appended at
//!   once;
//! * records: a chunk is read at once; the segments of all keys in it are locked and read, those of
//!   its records that they still list are appended at once, and so are the segments.
//!
//! | where ours differs | why |
//! | --- | --- |
//! | segment and record are ours: they describe themselves, items are found by key, times to live work | "same data structures" (6.1) |
//! | owners of records are read from the records, not from a third log | the same reads, a hundredth of the writes less |
//! | space is not overwritten while somebody reads it; LEED trusts that compaction lags behind | no torn answer under any schedule |
//! | compaction gives a record a sector of its own; LEED packs | space is counted exactly, and the logs are sized for it |
//! | no recovery | LEED scans its segments; nobody measures it |

mod client;
mod codec;
mod index;
mod locks;
mod log;
mod server;
#[cfg(test)]
mod tests;
mod tokens;

pub(in crate::baseline) use client::key_of;
pub use client::{Client, ClientIn, ClientOut};
pub use codec::{answer_bytes, call_bytes, decode_answer, decode_call, encode_answer, encode_call};
pub use server::{Server, ServerCounters};

use crate::{ClientId, Content, Extent, FlashAnswer, FlashOperation, Operation, RequestId, RequestResult};

/// A client's call to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<V> {
    /// The requesting client.
    pub client: ClientId,
    /// The client's number for it.
    pub number: u64,
    /// The operation.
    pub operation: Operation<V>,
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<V> {
    /// The recipient.
    pub client: ClientId,
    /// To which of its calls.
    pub number: u64,
    /// The result.
    pub result: CallResult<V>,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallResult<V> {
    /// A GET: what is there.
    Value(Option<V>),
    /// An update, or a GET that was refused.
    Update(RequestResult<V>),
}

/// Tokens of a device and what each operation takes of them (LEED, 3.5; its source).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// How many there are; 1,024 in LEED.
    pub capacity: u32,
    /// A GET takes; 3 in LEED.
    pub get: u32,
    /// A PUT or a compare-and-swap takes; 8 in LEED.
    pub put: u32,
    /// A DELETE takes; 4 in LEED.
    pub delete: u32,
}

/// A circular log on a device, and when it is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Its place.
    pub extent: Extent,
    /// Sectors that compaction reads at once: 512 of segments and 256 of records in LEED.
    pub chunk_sectors: u32,
    /// Chunks compacted at once: 4 in LEED. Segments are compacted one chunk at a time.
    pub chunks_at_once: u32,
    /// Compaction runs while fewer sectors than this are free: 12,288 for segments and 8,192 for
    /// records in LEED.
    pub compact_below: u32,
}

impl LogConfig {
    /// What only compaction may take: a chunk for each that is compacted at once, and as much again
    /// for what is skipped at the log's end.
    pub fn reserve(&self) -> u64 {
        2 * u64::from(self.chunk_sectors) * u64::from(self.chunks_at_once)
    }
}

/// Configuration of the server of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Which device: the server's segments are those of the blocks `b` with `b % devices ==
    /// device`.
    pub device: u32,
    /// Devices of the store.
    pub devices: u32,
    /// Blocks of the store; each has a segment.
    pub blocks: u32,
    /// Admission.
    pub tokens: Tokens,
    /// Segments.
    pub segments: LogConfig,
    /// Records.
    pub records: LogConfig,
    /// Whether the next holder of a segment's lock gets the segment from memory, as in LEED's
    /// source; otherwise it reads the device.
    pub hand_over: bool,
}

/// Reason why a server cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerConfigError {
    /// No such device.
    #[error("device {device} of {devices}")]
    Device {
        /// The device.
        device: u32,
        /// The actual number.
        devices: u32,
    },
    /// An operation that could never start.
    #[error("an operation takes {cost} tokens, and there are {capacity}")]
    Tokens {
        /// The dearest.
        cost: u32,
        /// The actual number.
        capacity: u32,
    },
    /// A log without room beside what compaction keeps, or with chunks smaller than what lies in
    /// them.
    #[error("a log of {sectors} sectors, at least {needed} are needed")]
    Log {
        /// The available amount.
        sectors: u32,
        /// The required amount.
        needed: u64,
    },
    /// A chunk that cannot hold the longest thing in the log.
    #[error("chunks of {got} sectors, at least {needed} are needed")]
    Chunk {
        /// The given value.
        got: u32,
        /// Sectors of the longest segment or record.
        needed: u32,
    },
}

/// Inputs of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerIn<V> {
    /// A client calls.
    Call(Call<V>),
    /// An operation on the device is done.
    Flash {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: FlashAnswer<V>,
    },
}

/// Decisions of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOut<V> {
    /// An operation on its device.
    Flash {
        /// For the answer.
        request: RequestId,
        /// The operation.
        operation: FlashOperation<V>,
    },
    /// One write of compaction, of several things that lie in a row. Answered with
    /// [`FlashAnswer::Done`] or [`FlashAnswer::Failed`].
    WriteRun {
        /// For the answer.
        request: RequestId,
        /// The extent.
        extent: Extent,
        /// What, each with its first sector.
        contents: Vec<(u64, Content<V>)>,
    },
    /// To a client.
    Answer(Answer<V>),
}
