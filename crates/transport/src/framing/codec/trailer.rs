//! The simulator's bookkeeping behind a frame: big-endian, fixed length, not on the wire.

use super::{WireError, headers};
use crate::Packet;
use base::NodeId;

/// Bytes of simulated bookkeeping behind each encoded packet; not counted in [`Packet::wire`].
pub const TRAILER: usize = 50;

pub(super) fn write(packet: &Packet, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[headers::kind_code(packet.kind), u8::from(packet.marked) | u8::from(packet.again) << 1]);
    for word in [packet.message, packet.sequence, packet.source.0, packet.target.0, packet.payload, packet.tag] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    for word in [packet.offset, packet.priority, packet.value] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
}

/// Decodes the packet of a trailer, with `wire` zero.
pub(super) fn read(bytes: &[u8]) -> Result<Packet, WireError> {
    let short = WireError::Short { got: bytes.len(), needed: TRAILER };
    let (kind, rest) = bytes.split_first_chunk::<2>().ok_or(short)?;
    let (narrow, wide) = rest.split_first_chunk::<24>().ok_or(short)?;
    let wide = wide.first_chunk::<24>().ok_or(short)?;
    let word = |index: usize| u32::from_be_bytes(std::array::from_fn(|byte| narrow[4 * index + byte]));
    let long = |index: usize| u64::from_be_bytes(std::array::from_fn(|byte| wide[8 * index + byte]));
    if kind[1] > 3 {
        return Err(WireError::Field { field: "flags", got: u64::from(kind[1]) });
    }
    Ok(Packet {
        kind: headers::kind_of_code(kind[0])?,
        marked: kind[1] & 1 == 1,
        again: kind[1] & 2 == 2,
        message: word(0),
        sequence: word(1),
        source: NodeId(word(2)),
        target: NodeId(word(3)),
        payload: word(4),
        tag: word(5),
        offset: long(0),
        priority: long(1),
        value: long(2),
        wire: 0,
    })
}
