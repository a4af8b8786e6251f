//! What is refused, and bytes that are not what they should be.

use crate::{KEY_BYTES_MAX, Lifetime};

/// An argument beyond what the store can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A key that is empty or too long.
    #[error("a key of {got} bytes, allowed are 1 to {KEY_BYTES_MAX}")]
    Key {
        /// Its length.
        got: usize,
    },
    /// A value that is too long.
    #[error("a value of {got} bytes, allowed are at most {most}")]
    Value {
        /// Its length.
        got: u32,
        /// The longest allowed.
        most: u32,
    },
    /// A time to live beyond the clock of the store, which counts 2^32 seconds.
    #[error("a time to live of {} s ends beyond the store's clock", got.0 as f64 / 1e3)]
    TimeToLive {
        /// The requested number.
        got: Lifetime,
    },
}

/// Reason why a server rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A key, a value or a time to live beyond the limits.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// No room on the device, and none to be gained.
    #[error("the flash is full: {live} of {capacity} bytes are in use")]
    Full {
        /// Bytes of live data.
        live: u64,
        /// Bytes that live data may take.
        capacity: u64,
    },
    /// More keys belong to one block than a segment can list.
    #[error("a segment lists {most} keys, and this would be one more")]
    SegmentFull {
        /// How many it can.
        most: u32,
    },
    /// Its updates are numbered, and no number is left. What it holds can be read, and copied.
    #[error("the store has made as many updates as it can number: copy what it holds into a new one")]
    UsedUp,
    /// What is on the device is not what was written; it is counted, and never returned as data.
    #[error("the record on flash is corrupt")]
    Corrupt,
    /// The device failed.
    #[error("the device failed")]
    Device,
    /// The request was made before the server restarted, and may have been carried out then.
    #[error("the request is of epoch {got}, the server is in epoch {current}")]
    WrongEpoch {
        /// The request's.
        got: u32,
        /// The server's.
        current: u32,
    },
    /// The server has no such operation.
    #[error("the server has no such operation")]
    NoOperation,
    /// The server reads its log and takes no requests yet.
    #[error("the server is recovering")]
    Recovering,
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// They end too early.
    #[error("{got} bytes, at least {needed} are needed")]
    Short {
        /// The actual length.
        got: usize,
        /// What there has to be.
        needed: usize,
    },
    /// They do not begin as such a thing does.
    #[error("magic {got:#010x} instead of {expected:#010x}")]
    Magic {
        /// The actual value.
        got: u32,
        /// The expected value.
        expected: u32,
    },
    /// They were changed, or written in part.
    #[error("the checksum is {got:#010x}, and {expected:#010x} was written")]
    Checksum {
        /// Of what is there.
        got: u32,
        /// The actual value.
        expected: u32,
    },
    /// A field says what it cannot.
    #[error("{field} = {got} is not allowed")]
    Field {
        /// The field.
        field: &'static str,
        /// The actual value.
        got: u64,
    },
    /// They are whole, and of something else: the place was used again.
    #[error("another {what} is stored there")]
    Foreign {
        /// The expected record.
        what: &'static str,
    },
}
