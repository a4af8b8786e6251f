//! YCSB over log-structured merge trees, as RocksDB builds them: what a key-value store asks of its
//! drive.
//!
//! One request of a client becomes a chain of I/Os, each of which is a request of the record: a
//! *read* asks the memtable, the tables of level 0 from the newest on, and one table of each level
//! below. A Bloom filter spares most of those without the key, the block cache some of the others;
//! each block that is left is an I/O, and the next run is asked when it has ended. An *update* goes
//! to the write-ahead log and the memtable. A full memtable is flushed to level 0; level 0 and
//! every level above its size are compacted into the next: long sequential reads and writes behind
//! everybody's back, and the writers wait when they fall behind.
//!
//! So a [`Source`](crate::Source) needs nothing new: each link of a chain is what follows the end
//! of the one before. The times of whole key-value requests, which no row shows, are in
//! [`Lsm::operations`] and in the summary's extra numbers; what they are is said there.
//!
//! Whether a run holds a key is drawn: after `n` updates a key with the probability `p` is among
//! them with `1 - exp(-p n)`; the last level holds every key. Nobody's position is remembered key
//! by key, so that millions of keys cost no memory. Filters and indexes of tables are taken to be
//! in memory.

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
