//! Packets with their data as UDP payloads, as live roles exchange them.
//!
//! | bytes | content |
//! | --- | --- |
//! | 4 | `RBX1` |
//! | 4 + 4 | source and target, big-endian: all pass the switch, whose address the sockets know |
//! | 9 + body | RackBlox's header and the body, as on the simulated wire |
//! | 8 | only behind a page of data: the [`Value`] that stands for it |
//!
//! On the simulated wire the value is the first eight bytes of the page. Here the page has data of
//! its own, and the value follows it.

use super::{CodecError, HEADER, PAGE_BYTES, needs, read_payload, write_payload};
use crate::packet::{Body, Packet};
use base::NodeId;
use bytes::{Buf, BufMut};

const MAGIC: u32 = u32::from_be_bytes(*b"RBX1");
/// Magic, source and target.
const ADDRESSES: u32 = 12;
const VALUE: usize = 8;

/// Appends `packet` with the page that it carries. `data` has [`PAGE_BYTES`] bytes where
/// [`Body::value`] is there, and is ignored otherwise. Background traffic has no such form.
pub fn encode_datagram(packet: &Packet, data: &[u8], bytes: &mut Vec<u8>) {
    bytes.put_u32(MAGIC);
    bytes.put_u32(packet.source.0);
    bytes.put_u32(packet.target.0);
    write_payload(packet, bytes);
    if let Some(value) = packet.body.value() {
        let end = bytes.len();
        bytes[end - PAGE_BYTES as usize..].copy_from_slice(data);
        bytes.put_u64(value.0);
    }
}

/// Reads a packet back, and the data that it carries.
///
/// # Errors
/// When the bytes are not exactly one datagram.
pub fn decode_datagram(bytes: &[u8]) -> Result<(Packet, &[u8]), CodecError> {
    let mut rest = bytes;
    needs("the addresses", rest, ADDRESSES)?;
    let magic = rest.get_u32();
    if magic != MAGIC {
        return Err(CodecError::Foreign { field: "first word", got: u64::from(magic) });
    }
    let (source, target) = (NodeId(rest.get_u32()), NodeId(rest.get_u32()));
    let empty = Packet {
        vssd: crate::VssdId(0),
        latency_ns: 0,
        source,
        target,
        body: Body::Background { bytes: 0, priority: 0 },
    };
    // What carries a page says so by its operation: the value lies behind it or does not.
    let with_data = rest.len() > (HEADER + PAGE_BYTES) as usize + VALUE;
    let payload = if with_data { &rest[..rest.len() - VALUE] } else { rest };
    let mut packet = read_payload(empty, payload)?;
    let Some(value) = value_mut(&mut packet.body) else {
        return if with_data { Err(CodecError::Long { part: "the body", extra: VALUE }) } else { Ok((packet, &[])) };
    };
    if !with_data {
        return Err(CodecError::Short { part: "the value", got: 0, needed: VALUE });
    }
    *value = (&rest[payload.len()..]).get_u64();
    Ok((packet, &payload[payload.len() - PAGE_BYTES as usize..]))
}

fn value_mut(body: &mut Body) -> Option<&mut u64> {
    use crate::packet::ReplicaMessage::{Fetched, Invalidate};
    match body {
        Body::Write { value, .. }
        | Body::ReadReply { value: Ok(value), .. }
        | Body::Replica(Invalidate { value, .. } | Fetched { value, .. }) => Some(&mut value.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Refusal, ReplicaMessage, Session, Timestamp};
    use crate::{Origin, Page, Tag, Value, VssdId, WriteId};
    use base::Span;
    use proptest::prelude::*;
    use std::num::NonZero;

    fn bodies() -> Vec<Body> {
        let timestamp = Timestamp { version: 7, node: NodeId(2) };
        let session = Some(Session { life: NonZero::<u32>::MAX, oldest: Tag(1), epoch: 3, again: true });
        let id = WriteId { client: NodeId(3), life: NonZero::<u32>::MIN, tag: Tag(9) };
        let origin = Origin { id, oldest: Tag(8) };
        let (page, value, epoch) = (Page(2), Value(9), 4);
        vec![
            Body::Write { tag: Tag(1), page: Page(2), value: Value(3), session: None },
            Body::Write { tag: Tag(1), page: Page(2), value: Value(3), session },
            Body::Read { tag: Tag(1), page: Page(2) },
            Body::ReadReply { tag: Tag(1), value: Ok(Value(u64::MAX)) },
            Body::ReadReply { tag: Tag(1), value: Err(Refusal::Stale) },
            Body::WriteReply { tag: Tag(1), done: Ok(()) },
            Body::Replica(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: None }),
            Body::Replica(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: Some(origin) }),
            Body::Replica(ReplicaMessage::Fetched { page: Page(2), timestamp, value: Value(0), epoch: 4 }),
            Body::Replica(ReplicaMessage::Fetch { page, after: None, epoch }),
            Body::Replica(ReplicaMessage::Fetch { page, after: Some(id), epoch }),
            Body::Replica(ReplicaMessage::Remembered { page, origin, silence: Span::secs(3), epoch }),
            Body::Replica(ReplicaMessage::Recall { page, origin, known: true, round: 6, epoch }),
            Body::Replica(ReplicaMessage::Recalled { page, id, known: false, round: 6, epoch }),
            Body::Heartbeat { beat: 5 },
        ]
    }

    #[test]
    fn what_was_sent_comes_back_with_its_data_and_no_other_length_does() {
        let data: Vec<u8> = (0..PAGE_BYTES).map(|byte| (byte % 251) as u8 + 1).collect();
        for body in bodies() {
            let packet = Packet { vssd: VssdId(6), latency_ns: 11, source: NodeId(3), target: NodeId(8), body };
            let mut bytes = Vec::new();
            encode_datagram(&packet, &data, &mut bytes);
            let expected = if body.value().is_some() { &data[..] } else { &[] };
            assert_eq!(decode_datagram(&bytes), Ok((packet, expected)));
            for length in 0..bytes.len() {
                assert!(decode_datagram(&bytes[..length]).is_err(), "{body:?} cut to {length}");
            }
            bytes.push(0);
            assert!(decode_datagram(&bytes).is_err(), "{body:?} with a byte too many");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(bytes in prop::collection::vec(any::<u8>(), 0..5_000), has_magic in any::<bool>()) {
            let mut bytes = bytes;
            if has_magic && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(b"RBX1");
            }
            let _ = decode_datagram(&bytes);
        }
    }
}
