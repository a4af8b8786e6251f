//! Memory messages, demand notifications and grants as blocks, and back (paper 3.1.4 and 3.2).
//!
//! /MS/ holds a header of 48 bits and one byte of payload, each /MD/ eight, /MT/ up to seven; /MST/
//! is /MS/ for a message of at most one byte. The payload of a read request is its address; of a
//! write, address and data; of a read-modify-write, address, opcode and arguments; of a response,
//! its data. Numbers go low byte first.

use super::block::{Block, BlockError, Content};
use super::header::{self, Header, Kind};
use super::sequence::{Sequence, Step};
use crate::message::{Body, Grant, Message, MessageId, Modify, Notification};
use base::NodeId;

pub use super::header::{
    BATCH_MAX, GRANT_FIELD_BITS, ID_BITS, NODE_BITS, NODE_MAX, NOTIFICATION_FIELD_BITS, SIZE_BITS,
};

/// Bytes of a remote address.
pub const ADDRESS_BYTES: u64 = 8;
/// Bytes of the opcode of a read-modify-write.
pub const OPCODE_BYTES: u64 = 1;
/// Bytes that carry the high half of the size of a read of 64 KiB or more.
pub const HIGH_HALF_BYTES: u64 = 2;
/// The largest chunk of a write or response.
pub const CHUNK_MAX: u32 = u16::MAX as u32;
/// Blocks of a notification.
pub const NOTIFICATION_BLOCKS: u64 = 1;
/// Blocks of a grant.
pub const GRANT_BLOCKS: u64 = 1;

/// /MD/ blocks between the /MS/ and the /MT/ of a message with this many bytes of payload.
pub(super) const fn inner_blocks(payload_bytes: u64) -> u64 {
    payload_bytes.saturating_sub(8).div_ceil(8)
}

/// Blocks of a message with this many bytes of payload, address and arguments included.
pub const fn payload_blocks(payload_bytes: u64) -> u64 {
    if payload_bytes <= 1 { 1 } else { 2 + inner_blocks(payload_bytes) }
}

/// Blocks of a read request for `bytes`: two, or three from 64 KiB on.
pub const fn read_request_blocks(bytes: u32) -> u64 {
    let high_half = if bytes > CHUNK_MAX { HIGH_HALF_BYTES } else { 0 };
    payload_blocks(high_half + ADDRESS_BYTES)
}

/// Blocks of one chunk of a write with this many bytes of data.
pub const fn write_blocks(chunk_bytes: u32) -> u64 {
    payload_blocks(ADDRESS_BYTES + chunk_bytes as u64)
}

/// Blocks of one chunk of a response with this many bytes of data.
pub const fn response_blocks(chunk_bytes: u32) -> u64 {
    payload_blocks(chunk_bytes as u64)
}

/// Blocks of a read-modify-write request.
pub const fn rmw_blocks(modify: &Modify) -> u64 {
    payload_blocks(ADDRESS_BYTES + OPCODE_BYTES + argument_bytes(modify) as u64)
}

/// Blocks of any message.
pub const fn message_blocks(body: &Body) -> u64 {
    match body {
        Body::ReadRequest { bytes, .. } => read_request_blocks(*bytes),
        Body::WriteRequest { bytes, .. } => write_blocks(*bytes),
        Body::ReadModifyWrite { modify, .. } => rmw_blocks(modify),
        Body::ReadResponse { bytes, .. } => response_blocks(*bytes),
    }
}

const fn argument_bytes(modify: &Modify) -> u16 {
    match modify {
        Modify::CompareAndSwap { .. } => 16,
        Modify::FetchAndAdd { .. } | Modify::Swap { .. } => 8,
    }
}

/// Reason why something is no message, or cannot be made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A block that is none.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A node number that does not fit its field.
    #[error("{field} node {got} is above {max}, the highest that a block can name", max = NODE_MAX)]
    Node {
        /// The of the two.
        field: &'static str,
        /// Its number.
        got: u32,
    },
    /// A chunk that is too large.
    #[error("a chunk of {got} bytes is above {max}, the largest in one message", max = CHUNK_MAX)]
    Chunk {
        /// Its bytes.
        got: u32,
    },
    /// Payload and message disagree.
    #[error("{got} bytes of payload beside a message that has {allowed}")]
    Payload {
        /// Bytes given.
        got: usize,
        /// Bytes that the message names.
        allowed: usize,
    },
    /// A batch of no message, or of too many.
    #[error("a batch of {got} messages: allowed are 1 to 16")]
    Batch {
        /// Its messages.
        got: u8,
    },
    /// No such kind of message.
    #[error("message kind {got}: allowed are 1 (read request) to 4 (read response)")]
    Kind {
        /// The three bits.
        got: u8,
    },
    /// No such modify operation.
    #[error("opcode {got}: allowed are 1 (compare-and-swap), 2 (fetch-and-add) and 3 (swap)")]
    Opcode {
        /// The byte.
        got: u8,
    },
    /// Arguments that no operation, or not this one, has.
    #[error("{got} bytes of arguments: allowed are 16 for a compare-and-swap and 8 for a fetch-and-add or swap")]
    Arguments {
        /// Bytes of arguments.
        got: u16,
    },
    /// A flag with a value that it cannot have here.
    #[error("flag `{flag}`: allowed is only {allowed}")]
    Flag {
        /// Its name.
        flag: &'static str,
        /// When it has which value.
        allowed: &'static str,
    },
    /// Bits that must be zero are not.
    #[error("reserved bits of {block} hold {got:#x}: allowed is 0")]
    Reserved {
        /// The block.
        block: &'static str,
        /// The bits.
        got: u64,
    },
    /// Bytes after the payload that must be zero are not.
    #[error("the bytes of /MT/ or /MST/ after the message's {payload} bytes of payload are not all zero")]
    Padding {
        /// Bytes of payload.
        payload: u64,
    },
    /// A size below 64 KiB written as a long one.
    #[error("long size {got}: allowed is `long` only above 65535")]
    NotLong {
        /// The size.
        got: u32,
    },
    /// A start block of the wrong type for its size.
    #[error("{bytes} bytes of payload start with {got}: up to 1 byte takes /MST/, more take /MS/")]
    WrongStart {
        /// Its name.
        got: &'static str,
        /// Bytes of payload that it announces.
        bytes: u64,
    },
    /// A block that belongs to no memory message.
    #[error("{got} among the blocks of memory messages")]
    NotMemory {
        /// Its name.
        got: &'static str,
    },
    /// /MD/ without /MS/.
    #[error("a data block outside any memory message: an /MS/ must come first")]
    DataOutside,
    /// /MS/ or /MST/ after /MS/.
    #[error("a memory message starts inside another: an /MT/ must come first")]
    Nested,
    /// /MT/ without /MS/.
    #[error("/MT/ outside any memory message: an /MS/ must come first")]
    EndWithoutStart,
    /// More /MD/ than the header announced.
    #[error("a data block too many: the header announced {announced}, then /MT/")]
    TooLong {
        /// Data blocks that the header announced.
        announced: u64,
    },
    /// /MT/ too early.
    #[error("/MT/ after {got} data blocks: the header announced {announced}")]
    TooShort {
        /// Data blocks that the header announced.
        announced: u64,
        /// Data blocks that came.
        got: u64,
    },
    /// The blocks end inside a message.
    #[error("the message is not complete after {got} blocks")]
    Truncated {
        /// Blocks that came.
        got: usize,
    },
    /// The blocks go on after the message.
    #[error("{got} blocks where the message has {allowed}")]
    Trailing {
        /// Blocks that came.
        got: usize,
        /// Blocks of the message.
        allowed: usize,
    },
}

/// The block of a notification.
///
/// # Errors
/// A node above 511, a batch outside 1 to 16.
pub fn encode_notification(notification: &Notification) -> Result<Block, MemoryError> {
    Ok(Content::Notification(header::encode_notification(notification)?).block())
}

/// The block of a grant.
///
/// # Errors
/// A node above 511.
pub fn encode_grant(grant: &Grant) -> Result<Block, MemoryError> {
    Ok(Content::Grant(header::encode_grant(grant)?).block())
}

/// The notification in a block.
///
/// # Errors
/// Another block, reserved bits that are set.
pub fn decode_notification(block: Block) -> Result<Notification, MemoryError> {
    match block.content()? {
        Content::Notification(fields) => header::decode_notification(fields),
        other => Err(MemoryError::NotMemory { got: other.name() }),
    }
}

/// The grant in a block.
///
/// # Errors
/// Another block, reserved bits that are set.
pub fn decode_grant(block: Block) -> Result<Grant, MemoryError> {
    match block.content()? {
        Content::Grant(fields) => header::decode_grant(fields),
        other => Err(MemoryError::NotMemory { got: other.name() }),
    }
}

/// What the first block of a message says: all that a switch knows when it begins to forward it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The sender.
    pub source: NodeId,
    /// The receiver.
    pub target: NodeId,
    /// The message's number between these two.
    pub id: MessageId,
    /// Bytes of data of a WREQ or RRES; `None` for an RREQ or RMWREQ.
    pub data: Option<u32>,
    /// Blocks of the whole message.
    pub blocks: u64,
}

/// What an /MS/ or /MST/ says of its message.
///
/// # Errors
/// Another block, or fields that contradict each other.
pub fn decode_opening(block: Block) -> Result<Opening, MemoryError> {
    let header = match block.content()? {
        Content::MemoryStart(fields) | Content::MemorySingle(fields) => Header::decode(fields)?.0,
        other => return Err(MemoryError::NotMemory { got: other.name() }),
    };
    let Header { kind, source, target, id, size, .. } = header;
    let is_data = matches!(kind, Kind::WriteRequest | Kind::ReadResponse);
    let (data, blocks) = (is_data.then_some(size.into()), payload_blocks(header.payload_bytes()));
    Ok(Opening { source, target, id, data, blocks })
}

/// Appends the blocks of `message` to `out`. `data` is the data of a write or response chunk, and
/// empty for the other kinds.
///
/// # Errors
/// A node above 511, a chunk above [`CHUNK_MAX`], data that are not as long as the message says.
/// `out` is as before then.
pub fn encode_message(message: &Message, data: &[u8], out: &mut Vec<Block>) -> Result<(), MemoryError> {
    let (header, prefix) = parts(message)?;
    let allowed = header.payload_bytes() as usize - prefix.bytes().len();
    if data.len() != allowed {
        return Err(MemoryError::Payload { got: data.len(), allowed });
    }
    let mut payload = prefix.bytes().iter().chain(data).copied();
    let fields = header.encode(payload.next().unwrap_or(0))?;
    if header.payload_bytes() <= 1 {
        out.push(Content::MemorySingle(fields).block());
        return Ok(());
    }
    out.push(Content::MemoryStart(fields).block());
    for _ in 0..inner_blocks(header.payload_bytes()) {
        out.push(Content::Data(next_bytes(&mut payload)).block());
    }
    out.push(Content::MemoryEnd(next_bytes(&mut payload)).block());
    Ok(())
}

/// The next bytes, zero after the last.
fn next_bytes<const N: usize>(payload: &mut impl Iterator<Item = u8>) -> [u8; N] {
    std::array::from_fn(|_| payload.next().unwrap_or(0))
}

/// The part before the data: at most address, opcode and two arguments.
#[derive(Default)]
struct Prefix {
    bytes: [u8; 25],
    length: usize,
}

impl Prefix {
    fn with(mut self, bytes: &[u8]) -> Prefix {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A message as its header and the bytes before its data.
fn parts(message: &Message) -> Result<(Header, Prefix), MemoryError> {
    let Message { source, target, id, body } = *message;
    let header = |kind, size| Header { kind, last: true, long: false, target, source, id, size };
    Ok(match body {
        Body::ReadRequest { address, bytes } => {
            let short = header(Kind::ReadRequest, bytes as u16);
            if bytes > CHUNK_MAX {
                let high_half = ((bytes >> 16) as u16).to_le_bytes();
                (Header { long: true, ..short }, Prefix::default().with(&high_half).with(&address.to_le_bytes()))
            } else {
                (short, Prefix::default().with(&address.to_le_bytes()))
            }
        }
        Body::WriteRequest { address, bytes, last } => {
            let header = header(Kind::WriteRequest, chunk_size(bytes)?);
            (Header { last, ..header }, Prefix::default().with(&address.to_le_bytes()))
        }
        Body::ReadModifyWrite { address, modify } => (
            header(Kind::ReadModifyWrite, argument_bytes(&modify)),
            with_arguments(Prefix::default().with(&address.to_le_bytes()), modify),
        ),
        Body::ReadResponse { bytes, last } => {
            (Header { last, ..header(Kind::ReadResponse, chunk_size(bytes)?) }, Prefix::default())
        }
    })
}

fn chunk_size(bytes: u32) -> Result<u16, MemoryError> {
    u16::try_from(bytes).map_err(|_| MemoryError::Chunk { got: bytes })
}

fn with_arguments(prefix: Prefix, modify: Modify) -> Prefix {
    match modify {
        Modify::CompareAndSwap { expected, new } => {
            prefix.with(&[1]).with(&expected.to_le_bytes()).with(&new.to_le_bytes())
        }
        Modify::FetchAndAdd { addend } => prefix.with(&[2]).with(&addend.to_le_bytes()),
        Modify::Swap { new } => prefix.with(&[3]).with(&new.to_le_bytes()),
    }
}

/// Reads exactly one message; its data (of a write or response chunk) replace what is in `data`.
///
/// # Errors
/// Anything but the blocks that [`encode_message`] makes of one message. `data` is then
/// unspecified.
pub fn decode_message(blocks: &[Block], data: &mut Vec<u8>) -> Result<Message, MemoryError> {
    let mut assembler = Assembler { payload: std::mem::take(data), ..Assembler::default() };
    for (index, block) in blocks.iter().enumerate() {
        if let Some(message) = assembler.push(*block)? {
            *data = assembler.payload;
            let allowed = index + 1;
            let trailing = MemoryError::Trailing { got: blocks.len(), allowed };
            return if allowed == blocks.len() { Ok(message) } else { Err(trailing) };
        }
    }
    Err(MemoryError::Truncated { got: blocks.len() })
}

/// Reassembles messages from their blocks, one block at a time.
///
/// After an error it resumes at the next /MS/ or /MST/; [`MemoryError::Nested`] has already started
/// the second message.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    sequence: Sequence,
    /// The header of the open message.
    header: Option<Header>,
    payload: Vec<u8>,
}

impl Assembler {
    /// Takes the next block of memory messages; /N/ and /G/ go elsewhere ([`decode_notification`],
    /// [`decode_grant`]). Returns the message that this block completes; its data are in
    /// [`Assembler::data`] until the next call.
    ///
    /// # Errors
    /// A block out of sequence, or a message whose fields contradict each other.
    pub fn push(&mut self, block: Block) -> Result<Option<Message>, MemoryError> {
        let (step, fault) = self.sequence.accept(block.content()?);
        let message = self.take(step)?;
        match fault {
            Some(fault) => Err(fault),
            None => Ok(message),
        }
    }

    /// The data of the message that the last call to [`Assembler::push`] completed.
    pub fn data(&self) -> &[u8] {
        &self.payload
    }

    fn take(&mut self, step: Step) -> Result<Option<Message>, MemoryError> {
        match step {
            Step::Begin(header, first) => {
                self.begin(header, first);
                Ok(None)
            }
            Step::Single(header, first) => {
                self.begin(header, first);
                self.finish(header)
            }
            Step::Data(bytes) => {
                self.payload.extend_from_slice(&bytes);
                Ok(None)
            }
            Step::End(bytes) => {
                self.payload.extend_from_slice(&bytes);
                self.header.take().map_or(Ok(None), |header| self.finish(header))
            }
            Step::Drop => Ok(None),
        }
    }

    /// The size field has 16 bits, so a hostile header reserves 64 KiB at most.
    fn begin(&mut self, header: Header, first: u8) {
        self.header = Some(header);
        self.payload.clear();
        self.payload.reserve(header.payload_bytes() as usize + 8);
        self.payload.push(first);
    }

    fn finish(&mut self, header: Header) -> Result<Option<Message>, MemoryError> {
        let payload = header.payload_bytes();
        if self.payload[payload as usize..].iter().any(|byte| *byte != 0) {
            return Err(MemoryError::Padding { payload });
        }
        self.payload.truncate(payload as usize);
        let mut rest = self.payload.as_slice();
        let body = body(&header, &mut rest)?;
        let before_data = self.payload.len() - rest.len();
        self.payload.drain(..before_data);
        Ok(Some(Message { source: header.source, target: header.target, id: header.id, body }))
    }
}

/// The body from a header and its payload, of which only the data are left over.
fn body(header: &Header, payload: &mut &[u8]) -> Result<Body, MemoryError> {
    let (bytes, last) = (header.size as u32, header.last);
    Ok(match header.kind {
        Kind::ReadRequest if header.long => {
            let bytes = (u16::from_le_bytes(take(payload)?) as u32) << 16 | bytes;
            if bytes <= CHUNK_MAX {
                return Err(MemoryError::NotLong { got: bytes });
            }
            Body::ReadRequest { bytes, address: take_word(payload)? }
        }
        Kind::ReadRequest => Body::ReadRequest { bytes, address: take_word(payload)? },
        Kind::WriteRequest => Body::WriteRequest { bytes, last, address: take_word(payload)? },
        Kind::ReadModifyWrite => {
            let address = take_word(payload)?;
            Body::ReadModifyWrite { address, modify: modify(header.size, payload)? }
        }
        Kind::ReadResponse => Body::ReadResponse { bytes, last },
    })
}

fn modify(argument_size: u16, payload: &mut &[u8]) -> Result<Modify, MemoryError> {
    let [opcode] = take(payload)?;
    match (opcode, argument_size) {
        (1, 16) => Ok(Modify::CompareAndSwap { expected: take_word(payload)?, new: take_word(payload)? }),
        (2, 8) => Ok(Modify::FetchAndAdd { addend: take_word(payload)? }),
        (3, 8) => Ok(Modify::Swap { new: take_word(payload)? }),
        (1..=3, got) => Err(MemoryError::Arguments { got }),
        (got, _) => Err(MemoryError::Opcode { got }),
    }
}

fn take_word(payload: &mut &[u8]) -> Result<u64, MemoryError> {
    take(payload).map(u64::from_le_bytes)
}

/// The next `N` bytes. The header has already fixed the payload's length, so that they are there.
fn take<const N: usize>(payload: &mut &[u8]) -> Result<[u8; N], MemoryError> {
    let (bytes, rest) =
        payload.split_first_chunk::<N>().ok_or(MemoryError::Payload { got: payload.len(), allowed: N })?;
    *payload = rest;
    Ok(*bytes)
}

#[cfg(test)]
pub(super) mod tests;
