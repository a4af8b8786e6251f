//! NVMe/TCP protocol data units (NVMe/TCP Transport Specification 1.0, 3.6).
//!
//! A [`Header`] is the meaning of everything but the data, and knows how many bytes of data follow;
//! the simulator carries it as it is. [`Framing`] is what two ends agreed on (digests, alignment)
//! and turns headers into bytes. [`Reader`] takes bytes in any split and gives back headers and
//! slices of data, without taking memory; [`Assembler`] collects whole PDUs where that is easier.
//!
//! Order of a connection: the host sends `InitializeRequest`, the controller answers
//! `InitializeResponse`, both call [`Reader::open`], and then capsules and data follow. A side that
//! finds a violation sends a termination with its reason ([`PduError`]) and closes.

mod assembler;
mod fault;
mod framing;
mod header;
mod reader;

pub use assembler::{Assembler, Pdu};
pub use fault::{FatalStatus, PduError};
pub use framing::{Digests, Framing};
pub use header::{
    ControllerData, Header, HostData, InitializeRequest, InitializeResponse, PduKind, ReadyToTransfer, Termination,
};
pub use reader::{Event, Limits, Reader, Receiver};

/// The common header: type, flags, header length, data offset, length of all.
pub const COMMON_BYTES: usize = 8;
/// Longest header, that of the connection's first two PDUs.
pub const HEADER_BYTES_MAX: usize = 128;
/// Bytes of a digest: CRC32C.
pub const DIGEST_BYTES: usize = 4;
/// Most bytes of an offending header in a termination (3.6.2.4).
pub const TERMINATION_DATA_MAX: u32 = 128;
/// Least that a controller may allow as data of one H2CData (3.6.2.3, MAXH2CDATA).
pub const HOST_DATA_MAX_MIN: u32 = 4096;

#[cfg(test)]
mod tests;
