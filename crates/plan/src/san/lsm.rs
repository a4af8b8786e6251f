//! Key-value stores as a load: the table and its defaults. "RocksDB" is its default of version 8;
//! "ours" is what neither it nor the paper says.

use super::io::Ground;
use crate::plan::WarmUp;
use crate::quantity::Quantity;
use crate::table::table;
use base::{Bytes, Span};
use workload::lsm::{LsmConfig, TreeConfig, Wal, YcsbMix};

table! {
    /// Key-value stores on log-structured trees in place of `[io]` (paper, Figure 12: RocksDB).
    /// `run.requests` counts key-value requests, and so does `run.warm_up_requests` for those that
    /// are not timed. With the designs san and san-plain.
    LsmFile => LsmConfig with ground: &Ground {
        /// How many; store `i` runs at host `i` modulo hosts on drive `i` modulo drives (paper,
        /// 5.1: 8 on 4 clients).
        stores: u32 [1 to 65_536] = 8,
        /// Keys of a store. Ours: the paper's 10 million, scaled down with the drives.
        keys: u64 [2 to 1_000_000_000_000_u64] = 100_000,
        /// A key with its value (paper, Figure 12: 1 KB).
        record: Quantity<Bytes> = Bytes::kib(1),
        /// Exponent of the popularity of keys (paper, Figure 12: 0.99).
        theta: f64 [0.01 to 0.999] = 0.99,
        /// Weight of reads. Ours: YCSB A, half reads and half updates.
        reads: f64 [from 0.0] = 0.5,
        /// Weight of updates.
        updates: f64 [from 0.0] = 0.5,
        /// Weight of reads that are followed by an update of the same key.
        read_modify_writes: f64 [from 0.0] = 0.0,
        /// Requests outstanding at each store. Ours.
        threads: u32 [1 to 65_536] = 16,
        /// What a request costs its host before its first I/O. Ours: some microseconds of RocksDB's
        /// code.
        service: Quantity<Span> = Span::us(3),
        /// `block_size` (RocksDB).
        block: Quantity<Bytes> = Bytes::kib(4),
        /// `write_buffer_size`. RocksDB's 64 MiB, scaled down with the keys; ours.
        memtable: Quantity<Bytes> = Bytes::kib(1 << 10),
        /// `max_write_buffer_number` (RocksDB).
        memtables_max: u32 [2 to 64] = 2,
        /// `level0_file_num_compaction_trigger` (RocksDB).
        level0_trigger: u32 [1 to 1_024] = 4,
        /// `level0_stop_writes_trigger` (RocksDB).
        level0_stop: u32 [1 to 1_024] = 36,
        /// `max_bytes_for_level_base`. RocksDB's 256 MiB, scaled down with the keys; ours.
        level_base: Quantity<Bytes> = Bytes::kib(4 << 10),
        /// `max_bytes_for_level_multiplier` (RocksDB).
        multiplier: u32 [2 to 1_024] = 10,
        /// `target_file_size_base`. RocksDB's 64 MiB, scaled down with the keys; ours.
        table: Quantity<Bytes> = Bytes::kib(1 << 10),
        /// Probability that a filter lets a key pass that is not there. Ours: 10 bits a key.
        false_positive: f64 [0.0 to 1.0] = 0.01,
        /// The block cache of a store. RocksDB's 32 MiB, scaled down with the keys; ours.
        block_cache: Quantity<Bytes> = Bytes::kib(2 << 10),
        /// Whether an update is answered when it is in the log on the drive. RocksDB's default is
        /// not.
        sync: bool = false,
        /// The log's buffer, which is written out when it is full. Ours.
        log_buffer: Quantity<Bytes> where [sync = false] = Bytes::kib(16),
        /// Size of the I/Os of flushes and compactions. Ours: the paper's largest.
        chunk: Quantity<Bytes> = Bytes::kib(128),
        /// How many of them a flush or a compaction has in flight. Ours.
        chunk_depth: u32 [1 to 4_096] = 4,
    } as {
        stores,
        clients,
        volumes,
        keys,
        record,
        theta,
        mix: YcsbMix { reads, updates, read_modify_writes },
        threads,
        warm_up_requests,
        warm_up,
        service,
        tree: TreeConfig {
            block,
            memtable,
            memtables_max,
            level0_trigger,
            level0_stop,
            level_base,
            multiplier,
            table,
            false_positive,
            block_cache,
            wal,
            chunk,
            chunk_depth,
        },
        operations,
        duration,
    } from {
        let (clients, volumes) = (ground.hosts, ground.drives);
        let (operations, duration) = (ground.requests, ground.duration);
        let (warm_up_requests, warm_up) = match ground.warm_up {
            WarmUp::Requests(requests) => (requests, Span::ZERO),
            WarmUp::Time(span) => (0, span),
            // What is found then takes its place.
            WarmUp::Auto => (0, Span::ZERO),
        };
        let wal = if sync { Wal::Synced } else { Wal::Buffered { buffer: log_buffer } };
    } to {
        let (sync, log_buffer) = match wal {
            Wal::Synced => (true, Bytes::ZERO),
            Wal::Buffered { buffer } => (false, buffer),
        };
    }
}
