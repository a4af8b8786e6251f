//! What a peer did wrong, so that the connection has to end, and how a termination says it
//! (3.6.2.4).

use crate::layout::codes;
use crate::pdu::PduKind;

codes! {
    /// Fatal error status (FES).
    pub enum FatalStatus: u16 {
        /// A field of a header; the information is its offset in bytes.
        InvalidField = 1,
        /// A PDU that may not come now.
        Sequence = 2,
        /// The header digest; the information is the digest that came.
        HeaderDigest = 3,
        /// Data outside of the requested range.
        OutOfRange = 4,
        /// Of a controller: more data in a PDU than MAXH2CDATA. Of a host: more R2Ts than MAXR2T.
        LimitExceeded = 5,
        /// A parameter of the connection that is not supported; the information is its offset in
        /// bytes.
        Unsupported = 6,
    }
}

/// A violation by a peer. The connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PduError {
    /// A field of a header has an invalid value.
    #[error("{field} (byte {at}) is {got:#x}, allowed is {allowed}")]
    Field {
        /// Which, in the specification's letters.
        field: &'static str,
        /// Where it begins, bytes from the start of the PDU.
        at: u8,
        /// Its value.
        got: u64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A length in a header is not the one that follows from the others.
    #[error("{field} (byte {at}) is {got}, must be {least} to {most}")]
    Length {
        /// The field.
        field: &'static str,
        /// Where it begins.
        at: u8,
        /// Its value.
        got: u64,
        /// Least allowed.
        least: u64,
        /// Most allowed.
        most: u64,
    },
    /// A parameter of the connection that is not supported.
    #[error("{field} (byte {at}) is {got:#x}, supported is {supported}")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// Where it begins.
        at: u8,
        /// The requested value.
        got: u64,
        /// The supported values.
        supported: &'static str,
    },
    /// A PDU that may not come now.
    #[error("{kind:?} received, allowed is only {allowed}")]
    Sequence {
        /// The received type.
        kind: PduKind,
        /// The allowed types.
        allowed: &'static str,
    },
    /// The header digest is wrong.
    #[error("header digest {got:#010x}, the header's is {computed:#010x}")]
    HeaderDigest {
        /// The one that came.
        got: u32,
        /// The one that fits the header.
        computed: u32,
    },
    /// Data outside of the allowed range.
    #[error("{kind:?} has bytes {offset} to {offset}+{length}, allowed are {from} to {to}")]
    OutOfRange {
        /// The type of the PDU.
        kind: PduKind,
        /// First byte.
        offset: u32,
        /// Bytes.
        length: u32,
        /// First byte that may come.
        from: u32,
        /// Where they have to end at the latest.
        to: u32,
    },
    /// More than was agreed on.
    #[error("{what} is {got}, agreed was at most {most}")]
    LimitExceeded {
        /// The limit.
        what: &'static str,
        /// The received value.
        got: u64,
        /// The agreed value.
        most: u64,
    },
}

impl PduError {
    /// The termination's FES.
    pub const fn fatal_status(&self) -> FatalStatus {
        match self {
            PduError::Field { .. } | PduError::Length { .. } => FatalStatus::InvalidField,
            PduError::Unsupported { .. } => FatalStatus::Unsupported,
            PduError::Sequence { .. } => FatalStatus::Sequence,
            PduError::HeaderDigest { .. } => FatalStatus::HeaderDigest,
            PduError::OutOfRange { .. } => FatalStatus::OutOfRange,
            PduError::LimitExceeded { .. } => FatalStatus::LimitExceeded,
        }
    }

    /// The termination's FEI; 0 where it is reserved.
    pub const fn information(&self) -> u32 {
        match self {
            PduError::Field { at, .. } | PduError::Length { at, .. } | PduError::Unsupported { at, .. } => *at as u32,
            PduError::HeaderDigest { got, .. } => *got,
            _ => 0,
        }
    }
}
