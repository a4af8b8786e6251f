//! LEED behind Ditto (Shen et al., SOSP 2023): clients keep a cache in memory of the storage node,
//! by one-sided operations alone.
//!
//! | operation | round trips | |
//! | --- | --- | --- |
//! | GET, hit | 2 | bucket, then object; the time of the access is written meanwhile |
//! | GET, miss | 1, LEED's GET, then the fill | one more for each key with the same fingerprint |
//! | fill | 3, and 2 or more if a block has to be evicted | object and bucket at once, compare-and-swap, bucket again for duplicates |
//! | eviction | 2 | four random buckets, the least recently used of the first 5 objects by compare-and-swap |
//! | PUT, DELETE | LEED's, then 1 to 3 | bucket, object, compare-and-swap to empty |
//!
//! Blocks of objects come from chunks that a client requests from the storage node; if none is left
//! it evicts. Ditto is not linearizable, by design: a fill may insert a value that a PUT has
//! meanwhile replaced (the paper's Figure 8b), and nothing removes it.
//!
//! | left out | reason |
//! | --- | --- |
//! | policies other than LRU, the history of evicted objects, the frequency counter's cache | the artifact's configuration is sampling and LRU |
//! | a second storage node | the paper has one |

mod client;
mod heap;
mod pool;
mod slot;
#[cfg(test)]
mod tests;

pub use client::{Client, Counters};
pub use pool::{OBJECT_HEADER_BYTES, Object, Pool, PoolAnswer, PoolGeometry, PoolRequest};
pub use slot::{METADATA_BYTES, Metadata, ObjectWord, SLOT_BYTES, SLOTS, Slot, SlotId};

use super::leed;
use crate::{ClientId, Operation, Outcome, RequestId, Source};

/// Configuration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client.
    pub client: ClientId,
    /// Blocks of the store behind the cache.
    pub blocks: u32,
    /// Devices of the store behind the cache.
    pub devices: u32,
    /// The pool.
    pub pool: PoolGeometry,
    /// Objects among which a victim is chosen; 5 in Ditto.
    pub samples: u32,
    /// Buckets that are read for them at once; 4 in Ditto.
    pub sample_buckets: u32,
    /// How often a fill or an invalidation that lost a race begins again before it gives up.
    pub attempts_max: u32,
    /// Whether a GET that missed is answered only when the cache is filled, as in the artifact, or
    /// as soon as its value is there.
    pub answers_after_fill: bool,
}

/// Reason why a client cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientConfigError {
    /// Something of which there must be at least one.
    #[error("{field} is 0")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// More buckets than there are.
    #[error("samples of {sample_buckets} buckets from a table of {buckets}")]
    Sample {
        /// Buckets read for a sample.
        sample_buckets: u32,
        /// Buckets of the table.
        buckets: u32,
    },
}

impl ClientConfig {
    /// Whether a client can work so.
    fn check(&self) -> Result<(), ClientConfigError> {
        let fields = [
            ("blocks", self.blocks),
            ("devices", self.devices),
            ("block_bytes", self.pool.block_bytes),
            ("chunk_blocks", self.pool.chunk_blocks),
            ("samples", self.samples),
            ("sample_buckets", self.sample_buckets),
            ("attempts_max", self.attempts_max),
        ];
        if let Some((field, _)) = fields.into_iter().find(|(_, value)| *value == 0) {
            return Err(ClientConfigError::Zero { field });
        }
        let (sample_buckets, buckets) = (self.sample_buckets, self.pool.buckets);
        if sample_buckets > buckets {
            return Err(ClientConfigError::Sample { sample_buckets, buckets });
        }
        Ok(())
    }
}

/// Inputs of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientIn<V> {
    /// Its application wants something.
    Issue {
        /// The application's name for it.
        ticket: u64,
        /// The operation.
        operation: Operation<V>,
    },
    /// LEED answers.
    Answer(leed::Answer<V>),
    /// The pool answers.
    Pool {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: PoolAnswer<V>,
    },
    /// The storage node gives a chunk, by its address, or has none left.
    Chunk(Option<u64>),
}

/// Decisions of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOut<V> {
    /// To LEED's server of a device.
    Send {
        /// The device.
        device: u32,
        /// The call.
        call: leed::Call<V>,
    },
    /// One-sided, in the order in which they come.
    Pool {
        /// For the answer; `None`: the client does not want one.
        request: Option<RequestId>,
        /// The operation.
        operation: PoolRequest<V>,
    },
    /// To the storage node: a chunk, please. Answered with [`ClientIn::Chunk`].
    AskChunk,
    /// An operation has ended.
    Done {
        /// The ticket.
        ticket: u64,
        /// The result.
        outcome: Outcome<V>,
        /// The source.
        source: Source,
    },
}
