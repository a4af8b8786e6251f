//! Key-value stores as a load: the table and its defaults. "RocksDB" is its default of version 8; "ours" is what neither it nor the paper says.

use super::io::Ground;
use crate::file::written;
use crate::plan::WarmUp;
use crate::quantity::{Plain, Quantity};
use base::{Bytes, Span};
use workload::lsm::{LsmConfig, TreeConfig, Wal, YcsbMix};

written! {
    /// Key-value stores on log-structured trees in place of `[io]` (paper, Figure 12: RocksDB). `run.requests` counts key-value requests, and so does `run.warm_up_requests` for
    /// those that are not timed. With the designs san and san-plain.
    LsmFile {
        /// How many; store `i` runs at host `i` modulo hosts on drive `i` modulo drives (paper, 5.1: 8 on 4 clients).
        #[schemars(range(min = 1, max = 65_536), extend("default" = 8))]
        stores: u32,
        /// Keys of a store. Ours: the paper's 10 million, scaled down with the drives.
        #[schemars(range(min = 2, max = 1_000_000_000_000_u64), extend("default" = 100_000))]
        keys: u64,
        /// A key with its value (paper, Figure 12: 1 KB).
        #[schemars(extend("default" = "1KiB"))]
        record: Quantity<Bytes>,
        /// Exponent of the popularity of keys (paper, Figure 12: 0.99).
        #[schemars(range(min = 0.01, max = 0.999), extend("default" = 0.99))]
        theta: f64,
        /// Weight of reads. Ours: YCSB A, half reads and half updates.
        #[schemars(range(min = 0.0), extend("default" = 0.5))]
        reads: f64,
        /// Weight of updates.
        #[schemars(range(min = 0.0), extend("default" = 0.5))]
        updates: f64,
        /// Weight of reads that are followed by an update of the same key.
        #[schemars(range(min = 0.0), extend("default" = 0.0))]
        read_modify_writes: f64,
        /// Requests outstanding at each store. Ours.
        #[schemars(range(min = 1, max = 65_536), extend("default" = 16))]
        threads: u32,
        /// What a request costs its host before its first I/O. Ours: some microseconds of RocksDB's code.
        #[schemars(extend("default" = "3us"))]
        service: Quantity<Span>,
        /// `block_size` (RocksDB).
        #[schemars(extend("default" = "4KiB"))]
        block: Quantity<Bytes>,
        /// `write_buffer_size`. RocksDB's 64 MiB, scaled down with the keys; ours.
        #[schemars(extend("default" = "1MiB"))]
        memtable: Quantity<Bytes>,
        /// `max_write_buffer_number` (RocksDB).
        #[schemars(range(min = 2, max = 64), extend("default" = 2))]
        memtables_max: u32,
        /// `level0_file_num_compaction_trigger` (RocksDB).
        #[schemars(range(min = 1, max = 1_024), extend("default" = 4))]
        level0_trigger: u32,
        /// `level0_stop_writes_trigger` (RocksDB).
        #[schemars(range(min = 1, max = 1_024), extend("default" = 36))]
        level0_stop: u32,
        /// `max_bytes_for_level_base`. RocksDB's 256 MiB, scaled down with the keys; ours.
        #[schemars(extend("default" = "4MiB"))]
        level_base: Quantity<Bytes>,
        /// `max_bytes_for_level_multiplier` (RocksDB).
        #[schemars(range(min = 2, max = 1_024), extend("default" = 10))]
        multiplier: u32,
        /// `target_file_size_base`. RocksDB's 64 MiB, scaled down with the keys; ours.
        #[schemars(extend("default" = "1MiB"))]
        table: Quantity<Bytes>,
        /// How likely a filter lets a key pass that is not there. Ours: 10 bits a key.
        #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.01))]
        false_positive: f64,
        /// The block cache of a store. RocksDB's 32 MiB, scaled down with the keys; ours.
        #[schemars(extend("default" = "2MiB"))]
        block_cache: Quantity<Bytes>,
        /// Whether an update is answered when it is in the log on the drive. RocksDB's default is not.
        #[schemars(extend("default" = false))]
        sync: bool,
        /// Without `sync`: the log's buffer, which is written out when it is full. Ours.
        #[schemars(extend("default" = "16KiB"))]
        log_buffer: Quantity<Bytes>,
        /// Size of the I/Os of flushes and compactions. Ours: the paper's largest.
        #[schemars(extend("default" = "128KiB"))]
        chunk: Quantity<Bytes>,
        /// How many of them a flush or a compaction has in flight. Ours.
        #[schemars(range(min = 1, max = 4_096), extend("default" = 4))]
        chunk_depth: u32,
    }
}

/// Ours: see the table.
const LOG_BUFFER: Bytes = Bytes::kib(16);

impl LsmFile {
    /// What is given, and defaults for the rest.
    pub(super) fn resolve(&self, ground: &Ground) -> LsmConfig {
        let (warm_up_requests, warm_up) = match ground.warm_up {
            WarmUp::Requests(requests) => (requests, Span::ZERO),
            WarmUp::Time(span) => (0, span),
            // What is found then takes its place.
            WarmUp::Auto => (0, Span::ZERO),
        };
        LsmConfig {
            stores: self.stores.unwrap_or(8),
            clients: ground.hosts,
            volumes: ground.drives,
            keys: self.keys.unwrap_or(100_000),
            record: plain(self.record, 1),
            theta: self.theta.unwrap_or(0.99),
            mix: YcsbMix {
                reads: self.reads.unwrap_or(0.5),
                updates: self.updates.unwrap_or(0.5),
                read_modify_writes: self.read_modify_writes.unwrap_or(0.0),
            },
            threads: self.threads.unwrap_or(16),
            warm_up_requests,
            warm_up,
            service: self.service.map_or(Span::us(3), Plain::plain),
            tree: self.tree(),
            operations: ground.requests,
            duration: ground.duration,
        }
    }

    fn tree(&self) -> TreeConfig {
        TreeConfig {
            block: plain(self.block, 4),
            memtable: plain(self.memtable, 1 << 10),
            memtables_max: self.memtables_max.unwrap_or(2),
            level0_trigger: self.level0_trigger.unwrap_or(4),
            level0_stop: self.level0_stop.unwrap_or(36),
            level_base: plain(self.level_base, 4 << 10),
            multiplier: self.multiplier.unwrap_or(10),
            table: plain(self.table, 1 << 10),
            false_positive: self.false_positive.unwrap_or(0.01),
            block_cache: plain(self.block_cache, 2 << 10),
            wal: match self.sync.unwrap_or(false) {
                true => Wal::Synced,
                false => Wal::Buffered { buffer: self.log_buffer.map_or(LOG_BUFFER, Plain::plain) },
            },
            chunk: plain(self.chunk, 128),
            chunk_depth: self.chunk_depth.unwrap_or(4),
        }
    }
}

fn plain(given: Option<Quantity<Bytes>>, default_kib: u64) -> Bytes {
    given.map_or(Bytes::kib(default_kib), Plain::plain)
}

/// The table that says all of a load of stores.
pub(super) fn lsm_of(config: &LsmConfig) -> LsmFile {
    let tree = &config.tree;
    let bytes = |bytes| Some(Quantity(bytes));
    let (sync, log_buffer) = match tree.wal {
        Wal::Synced => (true, None),
        Wal::Buffered { buffer } => (false, bytes(buffer)),
    };
    LsmFile {
        stores: Some(config.stores),
        keys: Some(config.keys),
        record: bytes(config.record),
        theta: Some(config.theta),
        reads: Some(config.mix.reads),
        updates: Some(config.mix.updates),
        read_modify_writes: Some(config.mix.read_modify_writes),
        threads: Some(config.threads),
        service: Some(Quantity(config.service)),
        block: bytes(tree.block),
        memtable: bytes(tree.memtable),
        memtables_max: Some(tree.memtables_max),
        level0_trigger: Some(tree.level0_trigger),
        level0_stop: Some(tree.level0_stop),
        level_base: bytes(tree.level_base),
        multiplier: Some(tree.multiplier),
        table: bytes(tree.table),
        false_positive: Some(tree.false_positive),
        block_cache: bytes(tree.block_cache),
        sync: Some(sync),
        log_buffer,
        chunk: bytes(tree.chunk),
        chunk_depth: Some(tree.chunk_depth),
    }
}
