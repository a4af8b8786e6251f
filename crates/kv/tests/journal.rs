//! What programs of a store note is read as it was written.

use base::{Span, Time};
use kv::Journal;
use kv::journal::{Entry, Part, Reader, Writer};
use proptest::prelude::*;
use runtime::clock::Clock;
use scalio::{
    Block, BlockHeader, ClientId, ClientIn, Condition, Content, Corrupt, Expiry, Extent, FlashAnswer, FlashOperation,
    Item, KEY_BYTES_MAX, Key, Length, Lifetime, LimitError, MemoryAnswer, MemoryOperation, NAME_BYTES_MAX, Name,
    Operation, Page, Payload, Record, RecordPlace, Refusal, Reply, RequestBody, RequestId, RequestResult, Segment,
    SegmentPointer, Sequence, ServerOut, Slot, SlotWord, Version, ZoneKind,
};
use std::sync::Arc;

fn key() -> impl Strategy<Value = Key> {
    prop::collection::vec(any::<u8>(), 1..=KEY_BYTES_MAX).prop_map(|bytes| Key::new(&bytes).expect("short"))
}

fn extent() -> impl Strategy<Value = Extent> {
    (any::<u64>(), any::<u32>()).prop_map(|(sector, sectors)| Extent { sector, sectors })
}

fn pointer() -> impl Strategy<Value = SegmentPointer> {
    (extent(), any::<u32>()).prop_map(|(extent, tag)| SegmentPointer { extent, tag })
}

fn record() -> impl Strategy<Value = Record<Length>> {
    (key(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(key, sequence, expiry, value)| Record {
        key,
        sequence: Sequence(sequence),
        expiry: Expiry(expiry),
        value: Length(value),
    })
}

fn item() -> impl Strategy<Value = Item> {
    (record(), any::<u64>(), any::<bool>()).prop_map(|(record, place, is_fresh)| Item {
        key: record.key,
        record: RecordPlace(place),
        sequence: record.sequence,
        value_bytes: record.value.0,
        expiry: record.expiry,
        is_fresh,
    })
}

fn segment() -> impl Strategy<Value = Arc<Segment>> {
    (any::<(u32, u32, u64, u64)>(), prop::collection::vec(item(), 0..20)).prop_map(|(numbers, items)| {
        let (block, epoch, sequence, settled) = numbers;
        Arc::new(Segment { block, epoch, sequence: Sequence(sequence), settled: Sequence(settled), items })
    })
}

fn content() -> impl Strategy<Value = Content<Length>> {
    let page = (any::<u32>(), prop::collection::vec(record(), 0..9));
    prop_oneof![
        segment().prop_map(Content::Segment),
        page.prop_map(|(epoch, records)| Content::Page(Arc::new(Page { epoch, records }))),
    ]
}

fn block() -> impl Strategy<Value = Block<Length>> {
    let payload = (any::<u32>(), record()).prop_map(|(version, record)| Payload {
        version: Version(version),
        key: record.key,
        value: record.value,
        expiry: record.expiry,
    });
    let slot = (any::<u64>(), any::<u64>(), prop::option::of(payload)).prop_map(|(word, last_use, payload)| Slot {
        word: SlotWord(word),
        last_use: Time::ps(last_use),
        payload,
    });
    (any::<u32>(), prop::option::of(pointer()), prop::collection::vec(slot, 0..9))
        .prop_map(|(epoch, segment, slots)| Block { header: BlockHeader { epoch, segment }, slots })
}

fn body() -> impl Strategy<Value = RequestBody<Length>> {
    let life = prop::option::of(any::<u64>().prop_map(Lifetime));
    let condition = prop::sample::select(vec![Condition::Always, Condition::Absent, Condition::Present]);
    (key(), any::<(u32, Option<u32>)>(), life, condition, 0..5).prop_map(|(key, values, life, condition, kind)| {
        let (value, expected) = (Length(values.0), values.1.map(Length));
        match kind {
            0 => RequestBody::Put { key, value, time_to_live: life, condition },
            1 => RequestBody::Delete { key },
            2 => RequestBody::Take { key },
            3 => RequestBody::Expire { key, time_to_live: life },
            _ => RequestBody::CompareAndSwap { key, expected, new: value },
        }
    })
}

fn result() -> impl Strategy<Value = RequestResult<Length>> {
    (any::<(bool, u64, u64)>(), prop::option::of(any::<u32>()), 0..10).prop_map(
        |((found, live, capacity), value, kind)| {
            let value = value.map(Length);
            match kind {
                0 => RequestResult::Stored,
                1 => RequestResult::Unmet,
                2 => RequestResult::Deleted { found },
                3 => RequestResult::Taken { found: value },
                4 => RequestResult::Differs { found: value },
                5 => RequestResult::Refused(Refusal::Full { live, capacity }),
                6 => RequestResult::Refused(Refusal::Limit(LimitError::TimeToLive { got: Lifetime(live) })),
                7 => RequestResult::Refused(Refusal::WrongEpoch { got: live as u32, current: capacity as u32 }),
                8 => RequestResult::Refused(Refusal::SegmentFull { most: live as u32 }),
                _ => RequestResult::Refused(Refusal::Recovering),
            }
        },
    )
}

fn request_id() -> impl Strategy<Value = RequestId> {
    any::<u64>().prop_map(RequestId)
}

fn operation() -> impl Strategy<Value = MemoryOperation<Length>> {
    let numbers = any::<(u8, u64, u64, Option<bool>, Option<bool>)>();
    (numbers, block(), pointer(), 0..9).prop_map(|((slot, one, other, occupied, complete), block, segment, kind)| {
        let payload = block.slots.iter().find_map(|slot| slot.payload);
        match (kind, payload) {
            (0, _) => MemoryOperation::ReadBlock,
            (1, _) => MemoryOperation::Check { slot },
            (2, _) => MemoryOperation::Swap { slot, expected: SlotWord(one), new: SlotWord(other) },
            (3, Some(payload)) => MemoryOperation::WritePayload { slot, payload },
            (4, _) => MemoryOperation::Touch { slot, at: Time::ps(one) },
            (5, _) => MemoryOperation::StoreFlags { slot, occupied, complete, lease: occupied.map(|_| Time::ps(one)) },
            (6, _) => MemoryOperation::Publish { segment },
            (7, _) => MemoryOperation::Reset { header: block.header },
            _ => MemoryOperation::Close,
        }
    })
}

fn client_in() -> impl Strategy<Value = ClientIn<Length>> {
    let memory = prop_oneof![
        block().prop_map(MemoryAnswer::Block),
        (block(), any::<u64>()).prop_map(|(block, word)| MemoryAnswer::Checked { block, word: SlotWord(word) }),
        any::<u64>().prop_map(|word| MemoryAnswer::Found(SlotWord(word))),
        Just(MemoryAnswer::Unreachable),
    ];
    let flash = prop_oneof![
        segment().prop_map(|segment| FlashAnswer::Segment(Ok(segment))),
        record().prop_map(|record| FlashAnswer::Record(Ok(record))),
        any::<(u32, u32)>().prop_map(|(got, expected)| FlashAnswer::Record(Err(Corrupt::Checksum { got, expected }))),
        prop::collection::vec((any::<u64>(), content()), 0..3).prop_map(FlashAnswer::Listed),
        prop::collection::vec(any::<u8>(), 0..NAME_BYTES_MAX)
            .prop_map(|bytes| FlashAnswer::Head(Ok(Name::new(bytes.into()).expect("short")))),
        Just(FlashAnswer::Kind(Some(ZoneKind::Records))),
        Just(FlashAnswer::Failed),
    ];
    prop_oneof![
        (any::<u64>(), key()).prop_map(|(ticket, key)| ClientIn::Issue { ticket, operation: Operation::Get { key } }),
        (any::<u64>(), body())
            .prop_map(|(ticket, body)| ClientIn::Issue { ticket, operation: Operation::Update(body) }),
        (any::<u64>(), key()).prop_map(|(ticket, key)| ClientIn::Describe { ticket, key }),
        any::<(u64, u32)>().prop_map(|(ticket, block)| ClientIn::Names { ticket, block }),
        (request_id(), memory).prop_map(|(request, answer)| ClientIn::Memory { request, answer }),
        (request_id(), flash).prop_map(|(request, answer)| ClientIn::Flash { request, answer }),
        (any::<(u16, u64, u32)>(), result()).prop_map(|((client, number, epoch), result)| {
            ClientIn::Reply(Reply { client: ClientId(client), number, epoch, result })
        }),
    ]
}

fn server_out() -> impl Strategy<Value = ServerOut<Length>> {
    let flash = prop_oneof![
        (any::<u32>(), pointer()).prop_map(|(block, pointer)| FlashOperation::ReadSegment { block, pointer }),
        item().prop_map(|item| FlashOperation::ReadRecord { item }),
        (extent(), content()).prop_map(|(extent, content)| FlashOperation::Write { extent, content }),
        extent().prop_map(|extent| FlashOperation::Trim { extent }),
        Just(FlashOperation::Flush),
    ];
    prop_oneof![
        (request_id(), any::<u32>(), operation()).prop_map(|(request, block, operation)| ServerOut::Memory {
            request,
            block,
            operation
        }),
        (request_id(), flash).prop_map(|(request, operation)| ServerOut::Flash { request, operation }),
        (any::<(u16, u64, u32)>(), result()).prop_map(|((client, number, epoch), result)| {
            ServerOut::Reply(Reply { client: ClientId(client), number, epoch, result })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_noted_is_read_and_what_is_cut_is_told(
        inputs in prop::collection::vec((any::<u32>(), client_in()), 1..20),
        decisions in prop::collection::vec(server_out(), 1..20),
        cut in 1_usize..40,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Journal { folder: folder.path().into(), role: "r".into() };
        let mut writer = Writer::begin(&place, Part::Helper, Clock::start()).expect("a disk");
        let mut at = Time::ZERO;
        let mut expected = Vec::new();
        for (wait, input) in inputs {
            at += Span::ns(1) * u64::from(wait);
            expected.push(Entry::Turn { now: at });
            expected.push(Entry::Input { at, input });
        }
        expected.extend(decisions.into_iter().map(Entry::Decided));
        expected.iter().for_each(|entry| writer.write(entry));
        drop(writer);
        let path = folder.path().join("r.helper.1.journal");
        let read = |path: &std::path::Path| {
            let (mut reader, mut entries) = (Reader::open(path).expect("it is one"), Vec::new());
            while let Some(entry) = reader.next::<ClientIn<Length>, ServerOut<Length>>().expect("it is whole") {
                entries.push(entry);
            }
            (entries, reader.is_cut())
        };
        let (entries, is_cut) = read(&path);
        prop_assert!(!is_cut);
        prop_assert_eq!(&entries, &expected);
        let bytes = std::fs::read(&path).expect("it is there");
        std::fs::write(&path, &bytes[..bytes.len() - cut.min(bytes.len() / 8)]).expect("a disk");
        let (entries, _) = read(&path);
        prop_assert!(entries.len() < expected.len() && expected.starts_with(&entries));
    }
}
