//! The 56 bits of fields in EDM's control blocks: the header of a message, a notification, a grant.

use super::bits::{Packer, Unpacker};
use super::memory::MemoryError;
use crate::message::{Grant, MessageId, Notification};
use base::NodeId;

/// Bits of a node's number: 512 nodes (paper 3.1.4).
pub const NODE_BITS: u32 = 9;
/// Bits of a message id (paper 3.1.4).
pub const ID_BITS: u32 = 8;
/// Bits of a size (paper 3.1.4).
pub const SIZE_BITS: u32 = 16;
/// Bits of a notification, by the paper's count (3.1.4): destination, id and size.
pub const NOTIFICATION_FIELD_BITS: u32 = NODE_BITS + ID_BITS + SIZE_BITS;
/// Bits of a grant, by the paper's count (3.1.4): destination, id and chunk.
pub const GRANT_FIELD_BITS: u32 = NODE_BITS + ID_BITS + SIZE_BITS;
/// The highest node number that fits.
pub const NODE_MAX: u32 = (1 << NODE_BITS) - 1;

const KIND_BITS: u32 = 3;
const FLAG_BITS: u32 = 1;
const BYTE_BITS: u32 = 8;
/// A notification's size is wider than the paper's: the block has room, and messages may be longer
/// than one chunk.
const DEMAND_BITS: u32 = 32;
const BATCH_BITS: u32 = 4;
/// Maximum messages per notification.
pub const BATCH_MAX: u8 = 1 << BATCH_BITS;

/// The kind of a message, as in the first three bits of its header. Zero is none, so that a dead
/// line is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ReadRequest = 1,
    WriteRequest = 2,
    ReadModifyWrite = 3,
    ReadResponse = 4,
}

impl Kind {
    fn from_bits(bits: u64) -> Result<Kind, MemoryError> {
        match bits {
            1 => Ok(Kind::ReadRequest),
            2 => Ok(Kind::WriteRequest),
            3 => Ok(Kind::ReadModifyWrite),
            4 => Ok(Kind::ReadResponse),
            other => Err(MemoryError::Kind { got: other as u8 }),
        }
    }

    /// Returns whether such messages arrive in chunks, so that `last` is meaningful.
    fn has_chunks(self) -> bool {
        matches!(self, Kind::WriteRequest | Kind::ReadResponse)
    }
}

/// The fields of /MS/ and /MST/ before the one byte of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Whether this is the last chunk; always set for kinds that have only one.
    pub(super) last: bool,
    /// Whether the payload starts with the high half of the size; only in read requests.
    pub(super) long: bool,
    pub(super) target: NodeId,
    pub(super) source: NodeId,
    pub(super) id: MessageId,
    /// Read request: bytes to read (low half if `long`). Write, response: bytes of this chunk. RMW:
    /// bytes of the arguments.
    pub(super) size: u16,
}

impl Header {
    /// The fields of a block, with `first` as the payload byte.
    pub(super) fn encode(self, first: u8) -> Result<u64, MemoryError> {
        Ok(Packer::default()
            .put(self.kind as u64, KIND_BITS)
            .put(self.last.into(), FLAG_BITS)
            .put(self.long.into(), FLAG_BITS)
            .put(0, FLAG_BITS)
            .put(node("target", self.target)?, NODE_BITS)
            .put(node("source", self.source)?, NODE_BITS)
            .put(self.id.0.into(), ID_BITS)
            .put(self.size.into(), SIZE_BITS)
            .put(first.into(), BYTE_BITS)
            .word())
    }

    /// Header and payload byte of a block.
    pub(super) fn decode(fields: u64) -> Result<(Header, u8), MemoryError> {
        let mut rest = Unpacker(fields);
        let kind = Kind::from_bits(rest.take(KIND_BITS))?;
        let (last, long, reserved) = (rest.flag(), rest.flag(), rest.take(FLAG_BITS));
        let target = NodeId(rest.take(NODE_BITS) as u32);
        let source = NodeId(rest.take(NODE_BITS) as u32);
        let id = MessageId(rest.take(ID_BITS) as u8);
        let size = rest.take(SIZE_BITS) as u16;
        let header = Header { kind, last, long, target, source, id, size };
        header.check(reserved)?;
        Ok((header, rest.take(BYTE_BITS) as u8))
    }

    fn check(&self, reserved: u64) -> Result<(), MemoryError> {
        if reserved != 0 {
            return Err(MemoryError::Reserved { block: "/MS/", got: reserved });
        }
        if self.long && self.kind != Kind::ReadRequest {
            return Err(MemoryError::Flag { flag: "long", allowed: "unset but in a read request" });
        }
        if !self.last && !self.kind.has_chunks() {
            return Err(MemoryError::Flag { flag: "last", allowed: "set in a message that is never cut into chunks" });
        }
        if self.kind == Kind::ReadModifyWrite && !matches!(self.size, 8 | 16) {
            return Err(MemoryError::Arguments { got: self.size });
        }
        Ok(())
    }

    /// Bytes of payload in the blocks, from the header alone: a receiver never waits for /MT/ to
    /// know its buffer.
    pub(super) fn payload_bytes(&self) -> u64 {
        let size = self.size as u64;
        match self.kind {
            Kind::ReadRequest if self.long => super::memory::HIGH_HALF_BYTES + super::memory::ADDRESS_BYTES,
            Kind::ReadRequest => super::memory::ADDRESS_BYTES,
            Kind::WriteRequest => super::memory::ADDRESS_BYTES + size,
            Kind::ReadModifyWrite => super::memory::ADDRESS_BYTES + super::memory::OPCODE_BYTES + size,
            Kind::ReadResponse => size,
        }
    }
}

/// The fields of /N/.
pub(super) fn encode_notification(notification: &Notification) -> Result<u64, MemoryError> {
    if !(1..=BATCH_MAX).contains(&notification.batch) {
        return Err(MemoryError::Batch { got: notification.batch });
    }
    Ok(Packer::default()
        .put(node("target", notification.target)?, NODE_BITS)
        .put(notification.id.0.into(), ID_BITS)
        .put(notification.bytes.into(), DEMAND_BITS)
        .put((notification.batch - 1).into(), BATCH_BITS)
        .word())
}

pub(super) fn decode_notification(fields: u64) -> Result<Notification, MemoryError> {
    let mut rest = Unpacker(fields);
    let target = NodeId(rest.take(NODE_BITS) as u32);
    let id = MessageId(rest.take(ID_BITS) as u8);
    let bytes = rest.take(DEMAND_BITS) as u32;
    let batch = rest.take(BATCH_BITS) as u8 + 1;
    nothing_left("/N/", rest)?;
    Ok(Notification { target, id, bytes, batch })
}

/// The fields of /G/.
pub(super) fn encode_grant(grant: &Grant) -> Result<u64, MemoryError> {
    Ok(Packer::default()
        .put(node("target", grant.target)?, NODE_BITS)
        .put(grant.id.0.into(), ID_BITS)
        .put(grant.bytes.into(), SIZE_BITS)
        .word())
}

pub(super) fn decode_grant(fields: u64) -> Result<Grant, MemoryError> {
    let mut rest = Unpacker(fields);
    let target = NodeId(rest.take(NODE_BITS) as u32);
    let id = MessageId(rest.take(ID_BITS) as u8);
    let bytes = rest.take(SIZE_BITS) as u16;
    nothing_left("/G/", rest)?;
    Ok(Grant { target, id, bytes })
}

fn node(field: &'static str, node: NodeId) -> Result<u64, MemoryError> {
    if node.0 > NODE_MAX { Err(MemoryError::Node { field, got: node.0 }) } else { Ok(node.0.into()) }
}

fn nothing_left(block: &'static str, rest: Unpacker) -> Result<(), MemoryError> {
    if rest.0 == 0 { Ok(()) } else { Err(MemoryError::Reserved { block, got: rest.0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_33_bits_are_its_three_fields() {
        assert_eq!(NOTIFICATION_FIELD_BITS, 33);
        assert_eq!(GRANT_FIELD_BITS, 33);
    }

    #[test]
    fn every_header_fits_the_56_bits_beside_a_block_type() {
        let header = KIND_BITS + 3 * FLAG_BITS + 2 * NODE_BITS + ID_BITS + SIZE_BITS + BYTE_BITS;
        assert_eq!(header, 56);
        let notification = NODE_BITS + ID_BITS + DEMAND_BITS + BATCH_BITS;
        assert_eq!(notification, 56 - 3, "three bits stay reserved");
    }
}
