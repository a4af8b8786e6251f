//! What a load of key-value stores is made of.

use crate::problem::{Checker, DEPTH_MAX, NODES_MAX, Problem};
use base::{Bytes, Span};
use serde::Serialize;

/// The most keys of a store.
const KEYS_MAX: u64 = 1 << 40;

/// Key-value stores and their clients. Clients are the nodes `0..clients`, volume `v` is the node
/// `clients + v`; store `i` runs at client `i` modulo clients and lies on volume `i` modulo
/// volumes, behind the stores that are there already.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LsmConfig {
    /// Number of stores.
    pub stores: u32,
    /// Number of clients with stores.
    pub clients: u32,
    /// Number of volumes with stores.
    pub volumes: u32,
    /// Keys of a store.
    pub keys: u64,
    /// Bytes of a key with its value.
    pub record: Bytes,
    /// Zipf's exponent of the popularity of keys, between 0 and 1; YCSB's is 0.99.
    pub theta: f64,
    /// The operations.
    pub mix: YcsbMix,
    /// Requests that are outstanding at each store.
    pub threads: u32,
    /// Key-value requests of all stores that are not timed, the first to begin...
    pub warm_up_requests: u64,
    /// ...and those that begin before this much time has passed.
    pub warm_up: Span,
    /// What a request costs its client before its first I/O; more than 0.
    pub service: Span,
    /// The tree.
    pub tree: TreeConfig,
    /// The load ends after this many key-value requests of all stores...
    pub operations: Option<u64>,
    /// ...or with the last I/O before this time. At least one of the two is given.
    pub duration: Option<Span>,
}

/// Weights of requests: YCSB A is half reads and half updates, B 95 to 5, C reads only, F half
/// reads and half read-modify-writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct YcsbMix {
    /// Reads of one key.
    pub reads: f64,
    /// Updates of one key.
    pub updates: f64,
    /// Reads that are followed by an update of the same key.
    pub read_modify_writes: f64,
}

/// A store's tree. RocksDB's names are given where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TreeConfig {
    /// `block_size`: the size of a table read.
    pub block: Bytes,
    /// `write_buffer_size`: a memtable, and so a table of level 0.
    pub memtable: Bytes,
    /// `max_write_buffer_number`: writers wait when this many memtables are full.
    pub memtables_max: u32,
    /// `level0_file_num_compaction_trigger`
    pub level0_trigger: u32,
    /// `level0_stop_writes_trigger`
    pub level0_stop: u32,
    /// `max_bytes_for_level_base`: level 1.
    pub level_base: Bytes,
    /// `max_bytes_for_level_multiplier`
    pub multiplier: u32,
    /// `target_file_size_base`: what is compacted at a time.
    pub table: Bytes,
    /// How likely a filter lets a key pass that is not there: about 0.01 with 10 bits a key.
    pub false_positive: f64,
    /// The block cache of a store; nothing turns it off.
    pub block_cache: Bytes,
    /// The write-ahead log.
    pub wal: Wal,
    /// The size of the I/Os of flushes and compactions.
    pub chunk: Bytes,
    /// How many of them a flush or a compaction has in flight.
    pub chunk_depth: u32,
}

/// When an update is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wal {
    /// When it is in the log on the drive (`sync`). Updates that come during a write of the log
    /// share the next one.
    Synced,
    /// At once. The thread that fills the buffer writes it out and waits for that.
    ///
    /// Between its I/Os a thread runs ahead of the clock, by up to a buffer of updates: all threads
    /// together may be ahead by a quarter of a memtable at most.
    Buffered {
        /// The buffer.
        buffer: Bytes,
    },
}

impl LsmConfig {
    /// What is impossible about it, in the order of its fields. Whether the stores fit the volumes
    /// is the caller's to check: see [`LsmConfig::volume_bytes`].
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Checker::default();
        check.range("stores", u64::from(self.stores), 1, u64::from(NODES_MAX));
        check.range("clients", u64::from(self.clients), 1, u64::from(NODES_MAX) - 1);
        let volumes_max = u64::from(NODES_MAX).saturating_sub(u64::from(self.clients)).max(1);
        check.range("volumes", u64::from(self.volumes), 1, volumes_max);
        check.range("keys", self.keys, 2, KEYS_MAX);
        check.range("record", self.record.count(), 1, 1 << 20);
        let is_exponent = self.theta > 0.0 && self.theta < 1.0;
        check.number("theta", self.theta, "between 0 and 1, both excluded", is_exponent);
        let YcsbMix { reads, updates, read_modify_writes } = self.mix;
        check.weights("mix", [reads, updates, read_modify_writes].into_iter());
        // A write of the log may hold an update of every thread.
        let threads_max = ((1 << 30) / self.record.count().max(1).next_multiple_of(1 << 12)).min(u64::from(DEPTH_MAX));
        check.range("threads", u64::from(self.threads), 1, threads_max.max(1));
        if self.service == Span::ZERO {
            let (field, got, min) = ("service".into(), self.service, Span::ps(1));
            check.add(Problem::TooShort { field, got, min });
        }
        self.tree.check(self.record, self.threads, &mut check);
        if self.operations.is_none() && self.duration.is_none() {
            check.add(Problem::NoEnd);
        }
        check.problems()
    }

    /// What the keys of a store take.
    pub(super) fn data(&self) -> u64 {
        self.keys * self.record.count()
    }

    /// Returns how many stores the fullest volume holds.
    pub(super) fn stores_a_volume(&self) -> u64 {
        u64::from(self.stores.div_ceil(self.volumes))
    }

    /// How large a volume must be: a store takes its data, what its upper levels hold, level 0 and
    /// the log, each with room to be written anew beside the old one.
    pub fn volume_bytes(&self) -> Bytes {
        Bytes::new(super::tree::store_bytes(self).saturating_mul(self.stores_a_volume()))
    }
}

impl TreeConfig {
    fn check(&self, record: Bytes, threads: u32, check: &mut Checker) {
        check.range("tree.block", self.block.count(), 512, 1 << 24);
        check.range("tree.memtable", self.memtable.count(), record.count().max(self.block.count()), 1 << 40);
        check.range("tree.memtables_max", u64::from(self.memtables_max), 2, 1 << 10);
        check.range("tree.level0_trigger", u64::from(self.level0_trigger), 1, 1 << 10);
        let trigger = u64::from(self.level0_trigger);
        check.range("tree.level0_stop", u64::from(self.level0_stop), trigger + 1, 1 << 11);
        check.range("tree.level_base", self.level_base.count(), self.table.count().max(1), 1 << 44);
        check.range("tree.multiplier", u64::from(self.multiplier), 2, 1 << 10);
        check.range("tree.table", self.table.count(), self.block.count(), 1 << 40);
        let is_share = (0.0..=1.0).contains(&self.false_positive);
        check.number("tree.false_positive", self.false_positive, "between 0 and 1", is_share);
        check.range("tree.block_cache", self.block_cache.count(), 0, 1 << 36);
        if let Wal::Buffered { buffer } = self.wal {
            let buffer_max = self.memtable.count() / 4 / u64::from(threads.max(1));
            check.range("tree.wal.buffer", buffer.count(), record.count(), buffer_max);
        }
        check.range("tree.chunk", self.chunk.count(), self.block.count(), 1 << 30);
        check.range("tree.chunk_depth", u64::from(self.chunk_depth), 1, 1 << 10);
    }
}
