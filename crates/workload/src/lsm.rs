//! YCSB over log-structured merge trees, as RocksDB builds them: the drive load of a key-value
//! store.
//!
//! One request of a client becomes a chain of I/Os, each of which is a request of the record. A
//! *read* searches the memtable, the tables of level 0 from the newest on, and one table of each
//! level below. A Bloom filter excludes most of those without the key, and the block cache some of
//! the others. Each remaining block is an I/O, and the search continues when it has ended. An
//! *update* is written to the write-ahead log and the memtable. A full memtable is flushed to level
//! 0. Level 0 and every level above its size are compacted into the next, by long sequential reads
//! and writes in the background; writers wait when compaction falls behind.
//!
//! A [`Source`](crate::Source) suffices: each link of a chain follows the end of the previous one.
//! The times of whole key-value requests, which no row contains, are in [`Lsm::operations`], which
//! defines them, and in the summary's metrics.
//!
//! The keys of a run are drawn: after `n` updates, a key with the probability `p` is among them
//! with `1 - exp(-p n)`; the last level holds every key. No position is stored per key, so millions
//! of keys cost no memory. Filters and indexes of tables are assumed to be in memory.

mod cache;
mod config;
mod instance;
mod job;
mod operations;
mod player;
#[cfg(test)]
mod tests;
mod tree;

pub use config::{LsmConfig, TreeConfig, Wal, YcsbMix};
pub use operations::{Kind, KindSummary, Operations};
pub use player::Lsm;
