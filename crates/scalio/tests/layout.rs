//! Does the protocol hold: whatever is written as bytes is read as what it was, and whatever is
//! damaged has no meaning.

use base::Time;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use scalio::layout::{
    HeaderBytes, Scan, Seal, SlotBytes, decode_block, decode_page, decode_record, decode_reply, decode_request,
    decode_segment, decode_slot, encode_content, encode_header, encode_reply, encode_request, encode_slot, scan,
};
use scalio::{
    Block, BlockHeader, ClientId, Condition, Content, Expiry, Extent, Item, Key, Length, Lifetime, LimitError, Page,
    Payload, Record, RecordPlace, Refusal, Reply, Request, RequestBody, RequestResult, SEGMENT_ITEMS_MAX, Segment,
    SegmentPointer, Sequence, Slot, SlotWord, Version, listed_bytes,
};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

type Bytes = Vec<u8>;

fn keys() -> impl Strategy<Value = Key> {
    vec(any::<u8>(), 1..=16).prop_map(|bytes| Key::new(&bytes).expect("1 to 16 bytes"))
}

fn values() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=64)
}

fn slots() -> impl Strategy<Value = Slot<Bytes>> {
    let payload = (any::<u32>(), keys(), values(), any::<u32>());
    let payload = payload.prop_map(|(version, key, value, expiry)| Payload {
        version: Version(version),
        key,
        value,
        expiry: Expiry(expiry),
    });
    (any::<u64>(), any::<u64>(), proptest::option::of(payload)).prop_map(|(word, last_use, payload)| Slot {
        word: SlotWord(word),
        last_use: Time::ps(last_use),
        payload,
    })
}

/// What a slot has room for, and longer.
fn lengthy() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => values(), 1 => vec(any::<u8>(), 0..2000)]
}

fn conditions() -> impl Strategy<Value = Condition> {
    prop_oneof![Just(Condition::Always), Just(Condition::Absent), Just(Condition::Present)]
}

const SEAL: Seal = Seal(0x1234_5678);

fn headers() -> impl Strategy<Value = BlockHeader> {
    let pointer = (0..1u64 << 34, 1..64u32, 0..1u32 << 24);
    let pointer = pointer.prop_map(|(sector, sectors, tag)| SegmentPointer { extent: Extent { sector, sectors }, tag });
    (any::<u32>(), proptest::option::of(pointer)).prop_map(|(epoch, segment)| BlockHeader { epoch, segment })
}

fn segments() -> impl Strategy<Value = Segment> {
    let item = (0..1u64 << 40, 0..1u64 << 40, prop_oneof![0..=64u32, 0..=1u32 << 30], any::<u32>(), any::<bool>());
    let sequences = (0..1u64 << 40, 0..1u64 << 40);
    (any::<u32>(), any::<u32>(), sequences, btree_map(keys(), item, 0..50)).prop_map(
        |(block, epoch, (sequence, settled), items)| {
            let items = items.into_iter().map(|(key, (place, sequence, value_bytes, expiry, is_fresh))| Item {
                key,
                record: RecordPlace(place),
                sequence: Sequence(sequence),
                value_bytes: listed_bytes(value_bytes),
                expiry: Expiry(expiry),
                is_fresh,
            });
            let (sequence, settled) = (Sequence(sequence), Sequence(settled));
            Segment { block, epoch, sequence, settled, items: items.collect() }
        },
    )
}

fn pages() -> impl Strategy<Value = Page<Bytes>> {
    let record = (keys(), 0..1u64 << 40, any::<u32>(), lengthy());
    let record = record.prop_map(|(key, sequence, expiry, value)| Record {
        key,
        sequence: Sequence(sequence),
        expiry: Expiry(expiry),
        value,
    });
    (any::<u32>(), vec(record, 0..36)).prop_map(|(epoch, records)| Page { epoch, records })
}

fn bodies() -> impl Strategy<Value = RequestBody<Bytes>> {
    let span = proptest::option::of((1..u64::MAX).prop_map(Lifetime));
    prop_oneof![
        (keys(), lengthy(), span, conditions()).prop_map(|(key, value, time_to_live, condition)| RequestBody::Put {
            key,
            value,
            time_to_live,
            condition,
        }),
        keys().prop_map(|key| RequestBody::Delete { key }),
        keys().prop_map(|key| RequestBody::Take { key }),
        (keys(), proptest::option::of((1..u64::MAX).prop_map(Lifetime)))
            .prop_map(|(key, time_to_live)| RequestBody::Expire { key, time_to_live }),
        (keys(), proptest::option::of(values()), values())
            .prop_map(|(key, expected, new)| RequestBody::CompareAndSwap { key, expected, new }),
    ]
}

fn results() -> impl Strategy<Value = RequestResult<Bytes>> {
    let refusals = prop_oneof![
        any::<u16>().prop_map(|got| Refusal::Limit(LimitError::Key { got: got.into() })),
        (any::<u32>(), any::<u32>()).prop_map(|(got, most)| Refusal::Limit(LimitError::Value { got, most })),
        any::<u64>().prop_map(|got| Refusal::Limit(LimitError::TimeToLive { got: Lifetime(got) })),
        (any::<u64>(), any::<u64>()).prop_map(|(live, capacity)| Refusal::Full { live, capacity }),
        Just(Refusal::SegmentFull { most: SEGMENT_ITEMS_MAX }),
        Just(Refusal::Corrupt),
        Just(Refusal::Device),
        Just(Refusal::Recovering),
        Just(Refusal::NoOperation),
        Just(Refusal::UsedUp),
        (any::<u32>(), any::<u32>()).prop_map(|(got, current)| Refusal::WrongEpoch { got, current }),
    ];
    prop_oneof![
        Just(RequestResult::Stored),
        Just(RequestResult::Unmet),
        any::<bool>().prop_map(|found| RequestResult::Deleted { found }),
        proptest::option::of(values()).prop_map(|found| RequestResult::Differs { found }),
        proptest::option::of(lengthy()).prop_map(|found| RequestResult::Taken { found }),
        refusals.prop_map(RequestResult::Refused),
    ]
}

/// As a device with little memory lists it.
fn in_pieces(mut left: Extent, mut bytes: &[u8], piece: u32) -> Vec<(u64, Content<Length>)> {
    let (mut found, mut needs) = (Vec::new(), 0);
    while left.sectors > 0 {
        let length = bytes.len().min((piece as usize * 512).max(needs));
        let scanned = scan::<Length>(left, &bytes[..length], SEAL);
        assert!(scanned.sectors > 0 || scanned.needs > length, "{scanned:?}");
        found.extend(scanned.found);
        needs = scanned.needs;
        left = Extent { sector: left.sector + u64::from(scanned.sectors), sectors: left.sectors - scanned.sectors };
        bytes = &bytes[scanned.sectors as usize * 512..];
    }
    found
}

#[test]
fn listed_lengths_at_the_edges_of_their_steps() {
    let steps =
        [(255, 255), (256, 256), (257, 264), (511, 512), (513, 528), (4096, 4096), (4097, 4224), (1 << 30, 1 << 30)];
    for (bytes, listed) in steps {
        assert_eq!(listed_bytes(bytes), listed, "{bytes}");
    }
}

#[test]
fn an_item_keeps_the_length_of_a_value_of_every_octave() {
    let lengths = (8..30).flat_map(|octave| [1u32 << octave, (1 << octave) + 1, (2 << octave) - 1]);
    for value_bytes in lengths.map(listed_bytes).chain([0, 1, 255]) {
        let key = Key::new(b"0123456789abcdef").expect("16 bytes");
        let item =
            Item { key, record: RecordPlace(1), sequence: Sequence(2), value_bytes, expiry: Expiry(3), is_fresh: true };
        let segment = Segment { items: vec![item], ..Segment::empty(4) };
        let bytes = encode_content::<Bytes>(&Content::Segment(Arc::new(segment.clone())), SEAL);
        assert_eq!(decode_segment(&bytes, SEAL), Ok(segment), "{value_bytes}");
    }
}

proptest! {
    #[test]
    fn a_block_survives_its_bytes(header in headers(), slots in vec(slots(), 0..16)) {
        let mut bytes = encode_header(&header).as_bytes().to_vec();
        slots.iter().for_each(|slot| bytes.extend_from_slice(encode_slot(slot).as_bytes()));
        prop_assert_eq!(decode_block::<Bytes>(&bytes), Some(Block { header, slots }));
    }

    #[test]
    fn a_payload_of_words_of_two_writings_is_no_payload(old in slots(), new in slots(), cut in 2..13usize) {
        prop_assume!(old.payload.is_some() && new.payload.is_some());
        let [old_bytes, new_bytes] = [encode_slot(&old), encode_slot(&new)];
        let mut mixed = old_bytes.as_bytes().to_vec();
        mixed[cut * 8..].copy_from_slice(&new_bytes.as_bytes()[cut * 8..]);
        let slot = decode_slot::<Bytes>(SlotBytes::ref_from_bytes(&mixed).expect("a whole slot"));
        prop_assert!(slot.payload.is_none() || slot.payload == old.payload || slot.payload == new.payload);
    }

    #[test]
    fn with_another_seal_nothing_is_found(segment in segments(), page in pages()) {
        prop_assume!(!page.records.is_empty());
        let parts = [Content::Segment(Arc::new(segment)), Content::Page(Arc::new(page))];
        for part in &parts {
            let bytes = encode_content::<Bytes>(part, SEAL);
            let extent = Extent { sector: 0, sectors: part.sectors() };
            prop_assert_eq!(scan::<Bytes>(extent, &bytes, SEAL).found.len(), 1);
            prop_assert_eq!(scan::<Bytes>(extent, &bytes, Seal::default()).found.len(), 0);
        }
    }

    #[test]
    fn a_segment_survives_its_bytes(segment in segments()) {
        let bytes = encode_content::<Bytes>(&Content::Segment(Arc::new(segment.clone())), SEAL);
        prop_assert_eq!(bytes.len() as u32, segment.sectors() * 512);
        prop_assert_eq!(decode_segment(&bytes, SEAL), Ok(segment));
    }

    #[test]
    fn a_segment_with_a_changed_bit_is_corrupt(segment in segments(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode_content::<Bytes>(&Content::Segment(Arc::new(segment)), SEAL);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_segment(&bytes, SEAL).is_err());
    }

    #[test]
    fn a_record_with_a_changed_bit_is_corrupt(page in pages(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        prop_assume!(!page.records.is_empty());
        let mut bytes = encode_content(&Content::Page(Arc::new(page.clone())), SEAL);
        let length = 40 + page.records[0].value.len();
        prop_assert_eq!(decode_record::<Bytes>(&bytes[16..], SEAL), Ok(page.records[0].clone()));
        bytes[16 + at.index(length)] ^= 1 << bit;
        prop_assert!(decode_record::<Bytes>(&bytes[16..], SEAL).is_err());
    }

    #[test]
    fn what_was_written_is_found_by_a_scan(parts in vec(prop_oneof![
        segments().prop_map(|segment| Content::Segment(Arc::new(segment))),
        pages().prop_map(|page| Content::Page(Arc::new(page))),
    ], 0..6), gap in 0..3usize, first in 0..1000u64, piece in 1..20u32) {
        let mut bytes = vec![0; gap * 512];
        let mut written = Vec::new();
        for part in parts {
            written.push((first + bytes.len() as u64 / 512, part.clone()));
            bytes.extend(encode_content::<Bytes>(&part, SEAL));
        }
        let extent = Extent { sector: first, sectors: bytes.len() as u32 / 512 };
        let all = Scan { found: written.clone(), sectors: extent.sectors, needs: 0 };
        prop_assert_eq!(scan::<Bytes>(extent, &bytes, SEAL), all);
        let listed: Vec<_> = written.iter().map(|(sector, content)| (*sector, content.listed())).collect();
        prop_assert_eq!(in_pieces(extent, &bytes, piece), listed);
    }

    #[test]
    fn a_row_that_was_cut_off_is_gone_through_in_pieces_too(parts in vec(pages(), 1..4), cut in any::<prop::sample::Index>(), piece in 1..9u32) {
        let mut bytes: Bytes = parts.into_iter().flat_map(|page| encode_content(&Content::Page(Arc::new(page)), SEAL)).collect();
        let cut = cut.index(bytes.len());
        bytes[cut..].fill(0xa5);
        let extent = Extent { sector: 7, sectors: bytes.len() as u32 / 512 };
        prop_assert_eq!(in_pieces(extent, &bytes, piece), scan::<Length>(extent, &bytes, SEAL).found);
    }

    #[test]
    fn a_listed_length_is_no_shorter_and_a_32nd_longer_at_most(bytes in 0..=1u32 << 30) {
        let listed = listed_bytes(bytes);
        prop_assert!(listed >= bytes && listed - bytes <= bytes / 32, "{bytes} {listed}");
        prop_assert_eq!(listed_bytes(listed), listed);
        prop_assert!(bytes > 255 || listed == bytes);
    }

    #[test]
    fn a_page_that_was_cut_off_has_the_records_before_the_cut(page in pages(), cut in any::<prop::sample::Index>()) {
        let bytes = encode_content(&Content::Page(Arc::new(page.clone())), SEAL);
        let cut = 16 + cut.index(bytes.len() - 15);
        if let Ok(left) = decode_page::<Bytes>(&bytes[..cut], SEAL) {
            prop_assert_eq!(&left.records[..], &page.records[..left.records.len()]);
        }
    }

    #[test]
    fn a_request_survives_its_bytes(client in any::<u16>(), number in any::<u64>(), settled in any::<u64>(), epoch in any::<u32>(), body in bodies()) {
        let request = Request { client: ClientId(client), number, settled, epoch, body };
        prop_assert_eq!(decode_request(&encode_request(&request)), Ok(request));
    }

    #[test]
    fn a_reply_survives_its_bytes(client in any::<u16>(), number in any::<u64>(), epoch in any::<u32>(), result in results()) {
        let reply = Reply { client: ClientId(client), number, epoch, result };
        prop_assert_eq!(decode_reply(&encode_reply(&reply)), Ok(reply));
    }

    #[test]
    fn a_message_with_a_changed_bit_is_refused(body in bodies(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode_request(&Request { client: ClientId(1), number: 2, settled: 1, epoch: 3, body });
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_request::<Bytes>(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..1600)) {
        let _ = decode_block::<Bytes>(&bytes);
        let _ = (decode_segment(&bytes, SEAL), decode_page::<Bytes>(&bytes, SEAL));
        let _ = decode_record::<Bytes>(&bytes, SEAL);
        let _ = (decode_request::<Bytes>(&bytes), decode_reply::<Bytes>(&bytes));
        let _ = scan::<Bytes>(Extent { sector: 0, sectors: 4 }, &bytes, SEAL);
        let _ = HeaderBytes::read_from_prefix(&bytes);
    }
}
