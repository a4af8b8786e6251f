//! Scalio (Sun et al., OSDI 2025): a key-value store on a JBOF whose clients read memory and flash
//! remotely, without the JBOF's processor.
//!
//! | part | function |
//! | --- | --- |
//! | [`Client`] | GET by one-sided operations alone: the block of the key, else segment and record from flash, and fills the cache; sends other requests to the server |
//! | [`Server`] | one for each device: takes updates, commits them in groups to a log, publishes, invalidates, answers; compacts and recovers the log |
//! | [`layout`] | all of it as bytes |
//! | [`verbs`], [`RegisteredMemory`] | the index as reads, writes and compare-and-swaps of bytes |
//! | [`Name`] | keys and values of applications, of any length |
//! | [`CoreMap`] | which core of the box serves whom |
//! | [`baseline`] | the paper's rivals: LEED, LEED with Ditto, and NVMe-oF without a store |
//!
//! The paper's protocol (5.2) loses linearizability when a lease expires under a living client,
//! when a block is read while it is written, and in other ways that
//! `docs/concepts/one-sided-caches.md` shows. [`Protocol::Linearizable`] is ours;
//! [`Protocol::Paper`] is for study.

pub mod baseline;
mod block;
mod client;
mod cores;
mod entry;
mod error;
mod index;
mod key;
pub mod layout;
mod message;
mod ports;
mod preload;
mod segment;
mod server;
mod slot;
mod value;
mod verbs;

pub use block::{Block, BlockHeader, Expiry, Left, Lifetime, Payload, Slot};
pub use client::{Client, ClientConfig, ClientCounters, ClientIn, ClientOut, Operation, Outcome, Protocol, Source};
pub use cores::CoreMap;
pub use entry::{ENTRY_BYTES, NAME_BYTES_MAX, Name, NameError};
pub use error::{Corrupt, LimitError, Refusal};
pub use index::{Change, Index};
pub use key::{FINGERPRINT_BITS, KEY_BYTES_MAX, Key, Place};
pub use message::{ClientId, Condition, Reply, Request, RequestBody, RequestResult};
pub use ports::{Content, FlashAnswer, FlashOperation, MemoryAnswer, MemoryOperation, RequestId, ZoneKind};
pub use preload::{Contents, Dealt, Preload, PreloadError};
pub use segment::{
    BUCKET_ITEMS, BUCKETS_MAX, Extent, GRANULE_BYTES, Item, PAGE_HEADER_BYTES, POINTER_SEQUENCE_BITS, Page,
    RECORD_HEADER_BYTES, RECORD_VALUE_BYTES_MAX, Record, RecordPlace, SECTOR_BYTES, SECTORS_MAX, SEGMENT_ITEMS_MAX,
    Segment, SegmentPointer, Sequence, listed_bytes, page_sectors, record_bytes,
};
pub use server::{Kept, KeptZone, LONG_PAGE_SECTORS_MAX, Server, ServerConfig, ServerCounters, ServerIn, ServerOut};
pub use slot::{LEASE_MAX, LEASE_UNIT, SlotState, SlotWord, Version};
pub use value::{Length, Token, VALUE_BYTES_MAX, Value, check_value};
pub use verbs::{Done, RegisteredMemory, Verb, answer, memory_words, verbs};
