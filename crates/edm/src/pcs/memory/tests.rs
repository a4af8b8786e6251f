use super::*;
use crate::message::MessageId;
use base::NodeId;
use proptest::prelude::*;

fn message(body: Body) -> Message {
    Message { source: NodeId(3), target: NodeId(511), id: MessageId(200), body }
}

fn encoded(message: &Message, data: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    encode_message(message, data, &mut blocks).unwrap();
    blocks
}

fn decoded(blocks: &[Block]) -> Result<(Message, Vec<u8>), MemoryError> {
    let mut data = Vec::new();
    decode_message(blocks, &mut data).map(|message| (message, data))
}

const CAS: Modify = Modify::CompareAndSwap { expected: 5, new: 6 };

#[test]
fn the_papers_messages_take_the_blocks_that_the_layout_says() {
    assert_eq!(read_request_blocks(64), 2);
    assert_eq!(write_blocks(64), 10);
    assert_eq!(response_blocks(64), 9);
    assert_eq!(response_blocks(CAS.response_bytes()), 1);
    assert_eq!(response_blocks(0), 1, "the NULL response");
    assert_eq!(rmw_blocks(&CAS), 5);
    assert_eq!(rmw_blocks(&Modify::FetchAndAdd { addend: 1 }), 4);
}

#[test]
fn the_announced_number_of_blocks_is_the_encoders_for_every_size() {
    let data = vec![7u8; CHUNK_MAX as usize];
    let mut blocks = Vec::new();
    for bytes in (0..=9000).chain([16_384, 65_527, 65_528, CHUNK_MAX]) {
        for (body, expected) in [
            (Body::WriteRequest { address: 1, bytes, last: false }, write_blocks(bytes)),
            (Body::ReadResponse { bytes, last: true }, response_blocks(bytes)),
        ] {
            blocks.clear();
            encode_message(&message(body), &data[..bytes as usize], &mut blocks).unwrap();
            assert_eq!((blocks.len() as u64, message_blocks(&body)), (expected, expected), "{body:?}");
        }
    }
}

#[test]
fn the_announced_number_of_request_blocks_is_the_encoders() {
    for bytes in (0..=9000).chain([CHUNK_MAX, CHUNK_MAX + 1, 1 << 20, u32::MAX]) {
        let request = message(Body::ReadRequest { address: u64::MAX, bytes });
        assert_eq!(encoded(&request, &[]).len() as u64, read_request_blocks(bytes));
    }
    for modify in [CAS, Modify::FetchAndAdd { addend: 1 }, Modify::Swap { new: 2 }] {
        let request = message(Body::ReadModifyWrite { address: 8, modify });
        assert_eq!(encoded(&request, &[]).len() as u64, rmw_blocks(&modify));
    }
}

#[test]
fn a_read_of_64_kib_is_the_first_long_one() {
    let longest_short = message(Body::ReadRequest { address: 0x40, bytes: CHUNK_MAX });
    let shortest_long = message(Body::ReadRequest { address: 0x40, bytes: CHUNK_MAX + 1 });
    assert_eq!(encoded(&longest_short, &[]).len(), 2);
    assert_eq!(encoded(&shortest_long, &[]).len(), 3);
    assert_eq!(decoded(&encoded(&shortest_long, &[])), Ok((shortest_long, vec![])));
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_no_blocks() {
    let mut out = Vec::new();
    let far = Message { target: NodeId(512), ..message(Body::ReadResponse { bytes: 1, last: true }) };
    let refused = encode_message(&far, &[1], &mut out);
    assert_eq!(refused, Err(MemoryError::Node { field: "target", got: 512 }));
    let large = message(Body::ReadResponse { bytes: CHUNK_MAX + 1, last: true });
    let refused = encode_message(&large, &vec![0; 65_536], &mut out);
    assert_eq!(refused, Err(MemoryError::Chunk { got: 65_536 }));
    let short = message(Body::WriteRequest { address: 0, bytes: 8, last: true });
    assert_eq!(encode_message(&short, &[0; 7], &mut out), Err(MemoryError::Payload { got: 7, allowed: 8 }));
    assert_eq!(out, []);
    let grant = Grant { target: NodeId(512), id: MessageId(0), bytes: 0 };
    assert_eq!(encode_grant(&grant), Err(MemoryError::Node { field: "target", got: 512 }));
}

#[test]
fn a_batch_has_one_to_sixteen_messages() {
    let notification = |batch| Notification { target: NodeId(1), id: MessageId(2), bytes: 3, batch };
    for batch in [0, 17] {
        assert_eq!(encode_notification(&notification(batch)), Err(MemoryError::Batch { got: batch }));
    }
    for batch in [1, 16] {
        let block = encode_notification(&notification(batch)).unwrap();
        assert_eq!(decode_notification(block), Ok(notification(batch)));
    }
}

#[test]
fn wrong_sequences_are_told_apart() {
    let blocks = encoded(&message(Body::ReadResponse { bytes: 24, last: true }), &[9; 24]);
    let [start, one, two, end] = blocks[..] else { panic!("24 bytes take four blocks, not {}", blocks.len()) };
    assert_eq!(decoded(&[one]), Err(MemoryError::DataOutside));
    assert_eq!(decoded(&[end]), Err(MemoryError::EndWithoutStart));
    assert_eq!(decoded(&[start, start]), Err(MemoryError::Nested));
    assert_eq!(decoded(&[start, one, end]), Err(MemoryError::TooShort { announced: 2, got: 1 }));
    assert_eq!(decoded(&[start, one, two, one]), Err(MemoryError::TooLong { announced: 2 }));
    assert_eq!(decoded(&[start, one, two]), Err(MemoryError::Truncated { got: 3 }));
    assert_eq!(decoded(&[start, one, two, end, one]), Err(MemoryError::Trailing { got: 5, allowed: 4 }));
    assert_eq!(decoded(&[Block::IDLE]), Err(MemoryError::NotMemory { got: "/E/" }));
    assert_eq!(decoded(&[]), Err(MemoryError::Truncated { got: 0 }));
}

/// The blocks of a message with bit `bit` of block `index` turned over; bit 8 is the first after
/// the block type.
fn flipped(message: &Message, data: &[u8], index: usize, bit: u32) -> Result<(Message, Vec<u8>), MemoryError> {
    let mut blocks = encoded(message, data);
    blocks[index].payload ^= 1 << bit;
    decoded(&blocks)
}

#[test]
fn fields_that_contradict_each_other_are_errors() {
    let read = message(Body::ReadRequest { address: 1, bytes: 64 });
    assert_eq!(flipped(&read, &[], 0, 8), Err(MemoryError::Kind { got: 0 }));
    assert!(matches!(flipped(&read, &[], 0, 11), Err(MemoryError::Flag { flag: "last", .. })));
    assert_eq!(flipped(&read, &[], 0, 13), Err(MemoryError::Reserved { block: "/MS/", got: 1 }));
    let write = message(Body::WriteRequest { address: 1, bytes: 4, last: true });
    assert!(matches!(flipped(&write, &[1; 4], 0, 12), Err(MemoryError::Flag { flag: "long", .. })));
    assert_eq!(flipped(&write, &[1; 4], 2, 63), Err(MemoryError::Padding { payload: 12 }));
    let swap = message(Body::ReadModifyWrite { address: 1, modify: Modify::Swap { new: 2 } });
    assert_eq!(flipped(&swap, &[], 0, 40), Err(MemoryError::Arguments { got: 9 }));
    assert_eq!(flipped(&swap, &[], 1, 57), Err(MemoryError::Arguments { got: 8 }));
    assert_eq!(flipped(&swap, &[], 1, 58), Err(MemoryError::Opcode { got: 7 }));
    let long = message(Body::ReadRequest { address: 1, bytes: 65_536 });
    assert_eq!(flipped(&long, &[], 0, 56), Err(MemoryError::NotLong { got: 0 }));
    let null = message(Body::ReadResponse { bytes: 0, last: true });
    assert_eq!(flipped(&null, &[], 0, 56), Err(MemoryError::Padding { payload: 0 }));
    assert_eq!(flipped(&null, &[], 0, 41), Err(MemoryError::WrongStart { got: "/MST/", bytes: 2 }));
}

#[test]
fn a_message_after_a_broken_one_comes_through() {
    let lost = encoded(&message(Body::ReadResponse { bytes: 64, last: true }), &[1; 64]);
    let next = message(Body::ReadResponse { bytes: 10, last: true });
    let mut assembler = Assembler::default();
    for block in &lost[..4] {
        assert_eq!(assembler.push(*block), Ok(None));
    }
    let results: Vec<_> = encoded(&next, &[2; 10]).into_iter().map(|block| assembler.push(block)).collect();
    assert_eq!(results, [Err(MemoryError::Nested), Ok(None), Ok(Some(next))]);
    assert_eq!(assembler.data(), [2; 10]);
}

#[test]
fn a_dead_line_is_no_message() {
    let zeros = Block { sync: crate::pcs::block::Sync::Control, payload: 0 };
    assert_eq!(decoded(&[zeros]), Err(MemoryError::Kind { got: 0 }));
}

fn modify_strategy() -> impl Strategy<Value = Modify> {
    prop_oneof![
        (any::<u64>(), any::<u64>()).prop_map(|(expected, new)| Modify::CompareAndSwap { expected, new }),
        any::<u64>().prop_map(|addend| Modify::FetchAndAdd { addend }),
        any::<u64>().prop_map(|new| Modify::Swap { new }),
    ]
}

fn with_data() -> impl Strategy<Value = (Body, Vec<u8>)> {
    let data = proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        (any::<u64>(), any::<u32>()).prop_map(|(address, bytes)| (Body::ReadRequest { address, bytes }, vec![])),
        (any::<u64>(), modify_strategy())
            .prop_map(|(address, modify)| (Body::ReadModifyWrite { address, modify }, vec![])),
        (any::<u64>(), any::<bool>(), data.clone()).prop_map(|(address, last, data)| {
            (Body::WriteRequest { address, bytes: data.len() as u32, last }, data)
        }),
        (any::<bool>(), data).prop_map(|(last, data)| (Body::ReadResponse { bytes: data.len() as u32, last }, data)),
    ]
}

/// Messages with their data, for every test that needs traffic.
pub(in crate::pcs) fn messages() -> impl Strategy<Value = (Message, Vec<u8>)> {
    (0..=NODE_MAX, 0..=NODE_MAX, any::<u8>(), with_data()).prop_map(|(source, target, id, (body, data))| {
        (Message { source: NodeId(source), target: NodeId(target), id: MessageId(id), body }, data)
    })
}

fn any_block() -> impl Strategy<Value = Block> {
    let kinds: Vec<u8> = crate::pcs::block::BlockType::ALL.iter().map(|kind| kind.byte()).collect();
    (proptest::sample::select(kinds), any::<u64>(), any::<bool>()).prop_map(|(kind, fields, data)| Block {
        sync: if data { crate::pcs::block::Sync::Data } else { crate::pcs::block::Sync::Control },
        payload: fields << 8 | u64::from(kind),
    })
}

proptest! {
    #[test]
    fn every_message_survives_its_blocks((message, data) in messages()) {
        let blocks = encoded(&message, &data);
        prop_assert_eq!(blocks.len() as u64, message_blocks(&message.body));
        prop_assert_eq!(decoded(&blocks), Ok((message, data)));
    }

    #[test]
    fn every_notification_and_grant_survives_its_block(
        target in 0..=NODE_MAX, id: u8, bytes: u32, batch in 1u8..=16, chunk: u16,
    ) {
        let (target, id) = (NodeId(target), MessageId(id));
        let notification = Notification { target, id, bytes, batch };
        prop_assert_eq!(decode_notification(encode_notification(&notification).unwrap()), Ok(notification));
        let grant = Grant { target, id, bytes: chunk };
        prop_assert_eq!(decode_grant(encode_grant(&grant).unwrap()), Ok(grant));
    }

    #[test]
    fn a_truncated_message_is_never_taken_for_a_whole_one((message, data) in messages(), cut: prop::sample::Index) {
        let blocks = encoded(&message, &data);
        let kept = cut.index(blocks.len());
        prop_assert_eq!(decoded(&blocks[..kept]), Err(MemoryError::Truncated { got: kept }));
    }

    #[test]
    fn garbage_never_panics_and_what_is_accepted_is_canonical(blocks in proptest::collection::vec(any_block(), 0..12)) {
        let mut assembler = Assembler::default();
        for block in &blocks {
            let _ = assembler.push(*block);
            if let Ok(notification) = decode_notification(*block) {
                prop_assert_eq!(encode_notification(&notification), Ok(*block));
            }
            if let Ok(grant) = decode_grant(*block) {
                prop_assert_eq!(encode_grant(&grant), Ok(*block));
            }
        }
        if let Ok((message, data)) = decoded(&blocks) {
            prop_assert_eq!(encoded(&message, &data), blocks);
        }
    }
}

#[test]
fn the_first_block_says_whose_the_message_is_and_how_long() {
    let (source, target, id) = (NodeId(3), NodeId(511), MessageId(200));
    let bodies = [
        (Body::ReadRequest { address: 1, bytes: 70_000 }, None),
        (Body::ReadModifyWrite { address: 1, modify: Modify::Swap { new: 2 } }, None),
        (Body::WriteRequest { address: 1, bytes: 20, last: true }, Some(20)),
        (Body::ReadResponse { bytes: 20, last: false }, Some(20)),
        (Body::ReadResponse { bytes: 0, last: true }, Some(0)),
    ];
    for (body, data) in bodies {
        let mut blocks = Vec::new();
        let bytes = vec![7; data.unwrap_or(0) as usize];
        encode_message(&Message { source, target, id, body }, &bytes, &mut blocks).unwrap();
        let opening = Opening { source, target, id, data, blocks: blocks.len() as u64 };
        assert_eq!(decode_opening(blocks[0]), Ok(opening));
    }
    let grant = encode_grant(&Grant { target, id, bytes: 1 }).unwrap();
    assert_eq!(decode_opening(grant), Err(MemoryError::NotMemory { got: grant.content().unwrap().name() }));
}
