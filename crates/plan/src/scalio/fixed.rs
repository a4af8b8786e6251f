//! What no key of a key-value store says: numbers that are the same in every plan, each with its
//! source.

use base::{Bytes, Span};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// The longest value that a slot has room for (paper, 6.1).
pub const SLOT_VALUE_MAX: Bytes = Bytes::new(64);
/// Sectors of a zone of Scalio's log where no key says other ones: 4 MiB. Ours: many segments with
/// their records.
pub const ZONE_SECTORS: u32 = 8_192;
/// Records of a page of 4 KiB.
pub const PAGE_RECORDS: u32 = 36;
/// Zones that only compaction takes. Ours.
pub const RESERVE_ZONES: u32 = 4;
/// How many zones are free when compaction begins. Ours.
pub const COMPACT_BELOW: u32 = 8;
/// Zones that even a small store has. Ours.
pub const ZONES_MIN: u64 = 24;
/// Groups of updates that a server has on their way. Ours: enough that none waits for another's
/// I/Os.
pub const GROUPS: u32 = 32;
/// Reads of one GET before it gives up. Ours: never in a run without faults.
pub const READS_OF_A_GET: u32 = 100_000;
/// The lease of a filler where the paper's protocol has none: what is given is not used.
pub const NO_LEASE: Span = Span::secs(1);
/// What drives have without a store, of which readers see 16 GiB.
pub const BARE_CAPACITY: Bytes = Bytes::kib(16 << 20);

/// A log of LEED's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeedLog {
    /// Sectors that compaction reads at once.
    pub chunk_sectors: u32,
    /// Chunks that it reads at once.
    pub chunks_at_once: u32,
    /// When it begins.
    pub compact_below: u32,
}

/// The log of segments (LEED's artifact).
pub const LEED_SEGMENTS: LeedLog = LeedLog { chunk_sectors: 512, chunks_at_once: 1, compact_below: 12_288 };
/// The log of records (LEED's artifact).
pub const LEED_RECORDS: LeedLog = LeedLog { chunk_sectors: 256, chunks_at_once: 4, compact_below: 8_192 };

/// What operations take of an SSD's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeedTokens {
    /// A GET.
    pub get: u32,
    /// A SET.
    pub put: u32,
    /// A DEL.
    pub delete: u32,
}

/// LEED's artifact.
pub const LEED_TOKENS: LeedTokens = LeedTokens { get: 3, put: 8, delete: 4 };

/// Bytes of a block of Ditto's memory, as it is shipped.
pub const DITTO_BLOCK: u32 = 256;
/// Buckets that an eviction samples for a victim, as it is shipped.
pub const DITTO_SAMPLE_BUCKETS: u32 = 4;
/// How often a client of Ditto tries an operation on a slot. Ours.
pub const DITTO_ATTEMPTS: u32 = 8;
/// Chunks of Ditto's pool for each client. Ours: a megabyte each, as shipped, would leave clients
/// of a small pool without any.
pub const CHUNKS_OF_A_CLIENT: u32 = 4;
