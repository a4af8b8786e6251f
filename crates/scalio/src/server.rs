//! The server of one device: takes updates of its blocks, commits them in groups, and keeps the log in order.
//!
//! A group is: read the segments, write records and new segments, make them durable, publish the new places, take away every slot that may hold an older
//! value, answer. The order is what makes the cache linearizable. A segment is in one group at a time.

use crate::{FlashAnswer, FlashOperation, MemoryAnswer, MemoryOperation, Protocol, Reply, Request, RequestId};
use base::Span;

/// What a server is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Which device: the server's blocks are those `b` with `b % devices == device`.
    pub device: u32,
    /// Devices of the store.
    pub devices: u32,
    /// Blocks of the store.
    pub blocks: u32,
    /// Whose protocol.
    pub protocol: Protocol,
    /// Updates in a group at most.
    pub group_updates: u32,
    /// A group that is not full is committed so long after its first update.
    pub group_wait: Span,
    /// Groups on their way at once at most.
    pub groups_max: u32,
    /// Zones of the log.
    pub zones: u32,
    /// Sectors of a zone.
    pub zone_sectors: u32,
    /// Zones that only compaction may take.
    pub reserve_zones: u32,
    /// Compaction begins when fewer zones than this are free.
    pub compact_below: u32,
    /// Whether the device may lose what it acknowledged: a flush comes before publishing.
    pub volatile_cache: bool,
}

/// What happens to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerIn<V> {
    /// A client asks.
    Request(Request<V>),
    /// An operation on the index is done.
    Memory {
        /// Which.
        request: RequestId,
        /// How.
        answer: MemoryAnswer<V>,
    },
    /// An operation on the device is done.
    Flash {
        /// Which.
        request: RequestId,
        /// How.
        answer: FlashAnswer<V>,
    },
}

/// What a server decides.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOut<V> {
    /// An operation on the index.
    Memory {
        /// For the answer.
        request: RequestId,
        /// On which block.
        block: u32,
        /// What.
        operation: MemoryOperation<V>,
    },
    /// An operation on its device.
    Flash {
        /// For the answer.
        request: RequestId,
        /// What.
        operation: FlashOperation<V>,
    },
    /// To a client.
    Reply(Reply<V>),
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Updates committed.
    pub updates: u64,
    /// Groups committed.
    pub groups: u64,
    /// Slots taken away.
    pub invalidations: u64,
    /// Compare-and-swaps on slots that came too late and were made again.
    pub invalidation_retries: u64,
    /// Requests answered from memory, since they had been carried out.
    pub repeats: u64,
    /// Segments and records that were not whole.
    pub corrupt: u64,
    /// Sectors written for updates.
    pub sectors_written: u64,
    /// Sectors written by compaction.
    pub sectors_moved: u64,
    /// Zones won back.
    pub zones_reclaimed: u64,
}
