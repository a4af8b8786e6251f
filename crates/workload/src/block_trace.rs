//! Recorded loads of block storage: parsing, inspection and replay.
//!
//! * [`Format`] names the readable formats; [`open_block_trace`] decompresses gzip, detects the
//!   format if it is not given, and returns a [`BlockReader`], which yields one [`BlockRequest`]
//!   after the other in constant memory.
//! * [`Inspection`] summarises a trace of any length; [`BlockReader::collect`] keeps one, and
//!   [`Replay`] replays it as a load.
//! * A bad line is a [`FileError`](crate::FileError) with file, line and value; [`Tolerance`] sets
//!   the number of skipped lines.
//!
//! Every format's times are exact, in picoseconds since the first request; nothing is rounded.

mod decode;
mod format;
mod inspect;
mod open;
mod read;
mod replay;
mod text;

use base::{Bytes, Operation, Span, Time};
use serde::Serialize;

pub use format::{Format, UnknownFormat};
pub use inspect::{DeviceCount, Footprint, Inspection, Report, SizeSummary};
pub use open::{OpenReader, open_block_trace};
pub use read::{BlockReader, REQUESTS_MAX, read_block_trace};
pub use replay::{Devices, Replay, ReplayConfig};

/// The unit of addresses and lengths in the formats that count sectors.
pub const SECTOR: Bytes = Bytes::new(512);

/// One request of a block trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockRequest {
    /// When, counted from the first request.
    pub at: Time,
    /// On which device of the recorded machine: its number, or, where a format names devices, its
    /// place in the order of their first requests.
    pub device: u32,
    /// A read or a write.
    pub operation: Operation,
    /// The first byte.
    pub address: u64,
    /// How much; a request stays one request, however many blocks it spans.
    pub bytes: Bytes,
}

/// What a reader lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tolerance {
    /// How large every device is; `None` when any address will do.
    pub volume: Option<Bytes>,
    /// What becomes of requests beyond it.
    pub beyond: Beyond,
    /// How many bad lines are skipped and counted before the next one is an error.
    pub skip_bad: u64,
    /// What becomes of a request that comes behind a later one.
    pub inversions: Inversions,
}

/// What becomes of a request whose line comes behind that of a later one, by [`INVERSION_MAX`] at
/// most; by more, its line is bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inversions {
    /// It is put where its time says. Requests of one time stay in the order of their lines.
    #[default]
    Sort,
    /// Its line is bad.
    Refuse,
}

impl Inversions {
    /// By how much a request may come behind a later one.
    pub(crate) fn longest(self) -> Span {
        match self {
            Inversions::Sort => INVERSION_MAX,
            Inversions::Refuse => Span::ZERO,
        }
    }
}

/// How far a request that is put in order may be behind. Ours: recorders that merge the events of
/// several processors are microseconds off; a clock that was set back is not a trace of one time.
pub const INVERSION_MAX: Span = Span::ms(1);

/// What becomes of a request that ends beyond the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// Its line is bad.
    Refuse,
    /// Its address is taken modulo the volume, and moved down where its end would still lie beyond.
    /// Distances between blocks change, and blocks that were different may become one. A request
    /// larger than the volume is bad all the same.
    Fold,
}

/// A trace as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTrace {
    /// Its requests, in order of time.
    pub requests: Vec<BlockRequest>,
    /// How many bad lines were skipped.
    pub skipped: u64,
    /// The first few of them, and what is wrong with each.
    pub skipped_first: Vec<String>,
    /// How many requests came behind a later one, and were put in order.
    pub inverted: u64,
}

impl BlockTrace {
    /// The devices with requests, in rising order.
    pub fn devices(&self) -> Vec<u32> {
        let mut devices: Vec<u32> = self.requests.iter().map(|request| request.device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Where the last byte of all ends: a volume must be at least this large.
    pub fn end(&self) -> Bytes {
        let ends = self.requests.iter().map(|request| request.address + request.bytes.count());
        Bytes::new(ends.max().unwrap_or(0))
    }
}
