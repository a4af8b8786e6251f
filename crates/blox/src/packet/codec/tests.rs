use super::*;
use crate::packet::{CollectionNote, ControlMessage, REPLICAS_MAX, Refusal, ReplicaMessage, Session, Timestamp};
use crate::{Origin, Page, Tag, Value, VssdId, WriteId};
use base::{NodeId, Span};
use proptest::prelude::*;
use proptest::sample::Index;
use std::num::NonZero;

fn node() -> impl Strategy<Value = NodeId> {
    (0_u32..1 << 24).prop_map(NodeId)
}

fn note() -> impl Strategy<Value = CollectionNote> {
    use CollectionNote::*;
    prop::sample::select(vec![Soft, Regular, Background, Accept, Delay, Finish])
}

fn refusal() -> impl Strategy<Value = Refusal> {
    use Refusal::*;
    prop::sample::select(vec![UnknownVssd, OutOfRange, Stale, WornOut, Full])
}

fn life() -> impl Strategy<Value = NonZero<u32>> {
    (1..=u32::MAX).prop_map(|life| NonZero::new(life).expect("it is more"))
}

/// Of a write with this tag, if it may be sent again.
fn session(tag: u64, is_there: bool) -> impl Strategy<Value = Option<Session>> {
    (life(), 0..=tag, any::<u32>(), any::<bool>()).prop_map(move |(life, oldest, epoch, again)| {
        is_there.then_some(Session { life, oldest: Tag(oldest), epoch, again })
    })
}

fn write() -> impl Strategy<Value = Body> {
    let session = (any::<u64>(), any::<bool>()).prop_flat_map(|(tag, is_there)| (Just(tag), session(tag, is_there)));
    (session, any::<[u64; 2]>()).prop_map(|((tag, session), [page, value])| Body::Write {
        tag: Tag(tag),
        page: Page(page),
        value: Value(value),
        session,
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    let tags = any::<u64>().prop_flat_map(|tag| (Just(tag), 0..=tag));
    (any::<u32>(), life(), tags).prop_map(|(client, life, (tag, oldest))| Origin {
        id: WriteId { client: NodeId(client), life, tag: Tag(tag) },
        oldest: Tag(oldest),
    })
}

fn place() -> impl Strategy<Value = Option<(NodeId, VssdId)>> {
    prop::option::of((node(), any::<u32>().prop_map(VssdId)))
}

fn request() -> impl Strategy<Value = Body> {
    prop_oneof![
        (node(), any::<u32>(), node()).prop_map(|(server, replica, replica_server)| Body::Create {
            server,
            replica: VssdId(replica),
            replica_server
        }),
        Just(Body::Delete),
        write(),
        any::<[u64; 2]>().prop_map(|[tag, page]| Body::Read { tag: Tag(tag), page: Page(page) }),
        note().prop_map(Body::Collection),
        (any::<u64>(), prop::result::maybe_ok(any::<u64>().prop_map(Value), refusal()))
            .prop_map(|(tag, value)| Body::ReadReply { tag: Tag(tag), value }),
        (any::<u64>(), prop::result::maybe_ok(Just(()), refusal()))
            .prop_map(|(tag, done)| Body::WriteReply { tag: Tag(tag), done }),
        any::<u64>().prop_map(|beat| Body::Heartbeat { beat }),
    ]
}

fn replica() -> impl Strategy<Value = Body> {
    let about = (any::<[u64; 2]>(), any::<[u32; 4]>(), any::<bool>());
    (0..10, about, origin()).prop_map(|(kind, ([page, value], [version, node, epoch, round], known), origin)| {
        let timestamp = Timestamp { version, node: NodeId(node) };
        let (page, value) = (Page(page), Value(value));
        Body::Replica(match kind {
            0 => ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: None },
            1 => ReplicaMessage::Acknowledge { page, timestamp, epoch },
            2 => ReplicaMessage::Validate { page, timestamp, epoch },
            3 => ReplicaMessage::Fetch { page, after: None, epoch },
            4 => ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: Some(origin) },
            5 => ReplicaMessage::Fetch { page, after: Some(origin.id), epoch },
            6 => ReplicaMessage::Remembered { page, origin, silence: Span::ps(value.0), epoch },
            7 => ReplicaMessage::Recall { page, origin, known, round, epoch },
            8 => ReplicaMessage::Recalled { page, id: origin.id, known, round, epoch },
            _ => ReplicaMessage::Fetched { page, timestamp, value, epoch },
        })
    })
}

fn control() -> impl Strategy<Value = Body> {
    let members = (any::<u32>(), prop::collection::vec(place(), REPLICAS_MAX), place());
    prop_oneof![
        members.prop_map(|(epoch, replicas, stale)| {
            let replicas = replicas.try_into().expect("as many places as there may be replicas");
            ControlMessage::Members { epoch, replicas, stale }
        }),
        any::<u32>().prop_map(|epoch| ControlMessage::UpToDate { epoch }),
        note().prop_map(ControlMessage::Ask),
        (note(), place()).prop_map(|(note, free)| ControlMessage::Answer { note, free }),
        any::<[u32; 2]>().prop_map(|[requests, writes]| ControlMessage::Demand { requests, writes }),
        any::<u32>().prop_map(|per_second| ControlMessage::Rate { per_second }),
        any::<[u64; 2]>().prop_map(|[beat, span]| ControlMessage::Lease { beat, span: Span::ps(span) }),
    ]
    .prop_map(Body::Control)
}

fn storage_packet() -> impl Strategy<Value = Packet> {
    let body = prop_oneof![request(), replica(), control()];
    (any::<[u32; 2]>(), node(), node(), body).prop_map(|([vssd, latency_ns], source, target, body)| Packet {
        vssd: VssdId(vssd),
        latency_ns,
        source,
        target,
        body,
    })
}

fn background_packet() -> impl Strategy<Value = Packet> {
    let body = (0..=BACKGROUND_MAX, 0_u8..8).prop_map(|(bytes, priority)| Body::Background { bytes, priority });
    (node(), node(), body).prop_map(|(source, target, body)| Packet {
        vssd: VssdId(0),
        latency_ns: 0,
        source,
        target,
        body,
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    prop_oneof![4 => storage_packet(), 1 => background_packet()]
}

fn encoded(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, &mut bytes);
    bytes
}

/// A frame that carries `payload` where a packet's would be, with every checksum right.
fn framed(payload: &[u8], port: u16) -> Vec<u8> {
    let packet = read_packet(0, 0);
    let mut bytes = Vec::new();
    let datagram = Datagram { port, priority: 0, payload: payload.len() as u32 };
    headers::write_frame(&packet, datagram, &mut bytes, |bytes| bytes.extend_from_slice(payload));
    bytes
}

fn read_packet(vssd: u32, latency_ns: u32) -> Packet {
    let body = Body::Read { tag: Tag(0x11), page: Page(0x22) };
    Packet { vssd: VssdId(vssd), latency_ns, source: NodeId(1), target: NodeId(16), body }
}

proptest! {
    #[test]
    fn every_packet_comes_back_equal_and_takes_the_bytes_it_says(packet in packet()) {
        let bytes = encoded(&packet);
        prop_assert_eq!(bytes.len() as u64, packet.wire_bytes().count());
        prop_assert_eq!(decode(&bytes), Ok(packet));
    }

    #[test]
    fn a_flipped_bit_in_a_frame_is_found(packet in packet(), place in any::<Index>(), bit in 0_u8..8) {
        let mut bytes = encoded(&packet);
        let place = place.index(bytes.len() - 12);
        bytes[place] ^= 1 << bit;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn noise_and_cut_frames_are_errors(
        packet in packet(), cut in any::<Index>(), noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = encoded(&packet);
        prop_assert!(decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert!(decode(&noise).is_err());
    }

    /// A hostile sender makes its checksums fit: nothing but the body's own rules stands between it
    /// and the tables.
    #[test]
    fn noise_behind_sound_headers_never_panics_and_what_is_taken_is_sound(
        operation in 0_u8..72, mut noise in prop::collection::vec(0_u8..12, 0..80),
    ) {
        noise.insert(0, operation);
        if let Ok(packet) = decode(&framed(&noise, RACKBLOX_PORT)) {
            prop_assert_eq!(packet.wire_bytes().count(), framed(&noise, RACKBLOX_PORT).len() as u64);
        }
    }

    #[test]
    fn a_body_one_byte_too_short_or_too_long_is_refused(packet in storage_packet()) {
        let mut payload = Vec::new();
        write_payload(&packet, &mut payload);
        payload.push(0);
        let long = CodecError::Long { part: "the body", extra: 1 };
        prop_assert_eq!(decode(&framed(&payload, RACKBLOX_PORT)), Err(long));
        payload.truncate(payload.len() - 2);
        let cut = decode(&framed(&payload, RACKBLOX_PORT));
        prop_assert!(matches!(cut, Err(CodecError::Short { .. })), "{cut:?}");
    }
}

#[test]
fn a_read_is_what_figure_6_and_a_capture_would_show() {
    let bytes = encoded(&read_packet(0x0102_0304, 0x0a0b_0c0d));
    assert_eq!(bytes[8..22], [2, 0, 0, 0, 0, 16, 2, 0, 0, 0, 0, 1, 8, 0], "stations and EtherType");
    assert_eq!(bytes[22..26], [0x45, 0, 0, 53], "IPv4, 20 + 8 + 9 + 16 bytes");
    assert_eq!(bytes[34..42], [10, 0, 0, 1, 10, 0, 0, 16]);
    assert_eq!(bytes[42..48], [0xc3, 0x67, 0xc3, 0x67, 0, 33], "UDP, port 50023");
    assert_eq!(bytes[50..59], [4, 1, 2, 3, 4, 0xa, 0xb, 0xc, 0xd], "OP, vSSD_ID, LAT");
}

/// Worked by hand from RFC 1071: 0x4500 + 0x0035 + 0x4000 + 0x4011 + 0x0a00 + 0x0001 + 0x0a00 +
/// 0x0010 = 0xd957.
#[test]
fn the_ipv4_checksum_is_the_rfcs() {
    let bytes = encoded(&read_packet(1, 2));
    assert_eq!(bytes[32..34], (!0xd957_u16).to_be_bytes());
}

#[test]
fn a_page_needs_a_jumbo_frame_and_a_note_the_shortest_one() {
    let write = Body::Write { tag: Tag(1), page: Page(2), value: Value(3), session: None };
    let with = |body| Packet { body, ..read_packet(1, 0) }.wire_bytes();
    assert_eq!(with(write), Bytes::new(8 + 14 + 20 + 8 + 9 + 16 + 4_096 + 4 + 12));
    assert_eq!(with(Body::Collection(CollectionNote::Soft)), Bytes::new(84));
    assert_eq!(with(Body::Background { bytes: 18, priority: 0 }), Bytes::new(84));
    assert_eq!(with(Body::Background { bytes: 19, priority: 0 }), Bytes::new(85));
    assert_eq!(with(Body::Background { bytes: 1_000_000, priority: 0 }), Bytes::new(9_000 + 38));
}

#[test]
fn the_data_of_a_page_begins_with_its_value() {
    let body = Body::Write { tag: Tag(1), page: Page(2), value: Value(0x0102_0304_0506_0708), session: None };
    let bytes = encoded(&Packet { body, ..read_packet(1, 0) });
    assert_eq!(bytes[59 + 16..59 + 24], [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn other_ports_are_foreign_and_unknown_operations_are_not() {
    let port = CodecError::Foreign { field: "UDP port", got: 53 };
    assert_eq!(decode(&framed(&[0; 40], 53)), Err(port));
    let operation = CodecError::Field { field: "OP", got: 0 };
    assert_eq!(decode(&framed(&[0; 40], RACKBLOX_PORT)), Err(operation));
    let mut collection = [0; 10];
    (collection[0], collection[9]) = (5, 6);
    let note = CodecError::Field { field: "gc", got: 6 };
    assert_eq!(decode(&framed(&collection, RACKBLOX_PORT)), Err(note));
}

#[test]
fn a_write_older_than_the_oldest_that_is_open_is_no_packet() {
    let field = |oldest: u64| CodecError::Field { field: "oldest open write", got: oldest };
    let session = Some(Session { life: NonZero::<u32>::MIN, oldest: Tag(6), epoch: 2, again: true });
    let id = WriteId { client: NodeId(1), life: NonZero::<u32>::MIN, tag: Tag(5) };
    let origin = Origin { id, oldest: Tag(6) };
    let bodies = [
        Body::Write { tag: Tag(5), page: Page(2), value: Value(3), session },
        Body::Replica(ReplicaMessage::Remembered { page: Page(2), origin, silence: Span::ZERO, epoch: 4 }),
    ];
    for body in bodies {
        assert_eq!(decode(&encoded(&Packet { body, ..read_packet(1, 0) })), Err(field(6)));
    }
}
