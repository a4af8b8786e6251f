//! A receiver's position in the blocks of memory messages: the one state machine for reassembly and
//! demultiplexing.

use super::block::Content;
use super::header::Header;
use super::memory::{MemoryError, inner_blocks};

/// The most /MD/ blocks of any message: a write of a 65,535-byte chunk.
const INNER_BLOCKS_MAX: u64 = inner_blocks(super::memory::ADDRESS_BYTES + u16::MAX as u64);

/// Where in a message a receiver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Between messages.
    #[default]
    Closed,
    /// After /MS/, with this many /MD/ to come before /MT/.
    Open {
        /// How many its header announced.
        announced: u64,
        /// How many of them are still to come.
        left: u64,
    },
    /// After an /MS/ whose header made no sense: its blocks are dropped up to /MT/, or up to the
    /// longest message there is.
    Skipping {
        /// How many more /MD/ can belong to it.
        left: u64,
    },
}

/// What a block is to the message it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The first block, with its header and first byte; `Single` if it is the last one too.
    Begin(Header, u8),
    Single(Header, u8),
    Data([u8; 8]),
    End([u8; 7]),
    /// Nothing: to be dropped.
    Drop,
}

impl Sequence {
    pub(super) fn is_open(self) -> bool {
        self != Sequence::Closed
    }

    /// Takes the next block of memory messages (never /N/, /G/ or a block of a frame) and moves on.
    /// A fault may come with a step: a start inside a message is the fault of the one that it ends,
    /// and begins the next.
    pub(super) fn accept(&mut self, content: Content) -> (Step, Option<MemoryError>) {
        match content {
            Content::MemoryStart(fields) => self.start(fields, false),
            Content::MemorySingle(fields) => self.start(fields, true),
            Content::Data(bytes) => self.data(bytes),
            Content::MemoryEnd(bytes) => self.end(bytes),
            other => (Step::Drop, Some(MemoryError::NotMemory { got: other.name() })),
        }
    }

    fn start(&mut self, fields: u64, single: bool) -> (Step, Option<MemoryError>) {
        let nested = matches!(self, Sequence::Open { .. }).then_some(MemoryError::Nested);
        match checked_header(fields, single) {
            Ok((header, first)) if single => {
                *self = Sequence::Closed;
                (Step::Single(header, first), nested)
            }
            Ok((header, first)) => {
                let announced = inner_blocks(header.payload_bytes());
                *self = Sequence::Open { announced, left: announced };
                (Step::Begin(header, first), nested)
            }
            Err(error) => {
                *self = if single { Sequence::Closed } else { Sequence::Skipping { left: INNER_BLOCKS_MAX } };
                (Step::Drop, Some(error))
            }
        }
    }

    fn data(&mut self, bytes: [u8; 8]) -> (Step, Option<MemoryError>) {
        match self {
            Sequence::Open { left: 0, announced } => {
                let fault = MemoryError::TooLong { announced: *announced };
                *self = Sequence::Closed;
                (Step::Drop, Some(fault))
            }
            Sequence::Open { left, .. } => {
                *left -= 1;
                (Step::Data(bytes), None)
            }
            Sequence::Skipping { left: 0 } | Sequence::Closed => {
                *self = Sequence::Closed;
                (Step::Drop, Some(MemoryError::DataOutside))
            }
            Sequence::Skipping { left } => {
                *left -= 1;
                (Step::Drop, None)
            }
        }
    }

    fn end(&mut self, bytes: [u8; 7]) -> (Step, Option<MemoryError>) {
        match std::mem::take(self) {
            Sequence::Open { left: 0, .. } => (Step::End(bytes), None),
            Sequence::Open { announced, left } => {
                (Step::Drop, Some(MemoryError::TooShort { announced, got: announced - left }))
            }
            Sequence::Skipping { .. } => (Step::Drop, None),
            Sequence::Closed => (Step::Drop, Some(MemoryError::EndWithoutStart)),
        }
    }
}

/// A header whose size fits its block: /MST/ has one byte, /MS/ is for everything longer.
fn checked_header(fields: u64, single: bool) -> Result<(Header, u8), MemoryError> {
    let (header, first) = Header::decode(fields)?;
    let bytes = header.payload_bytes();
    if single != (bytes <= 1) {
        let got = if single { "/MST/" } else { "/MS/" };
        return Err(MemoryError::WrongStart { got, bytes });
    }
    Ok((header, first))
}
