use super::*;
use crate::message::{Grant, Message, MessageId};
use crate::pcs::frame::{FrameDecoder, encode_frame};
use crate::pcs::memory::{self, Assembler, decode_grant, encode_grant, encode_message};
use base::NodeId;
use proptest::prelude::*;

const POLICIES: [Policy; 3] = [Policy::Fair, Policy::Strict, Policy::None];

/// Block names on a line, for tests that read as one.
fn names(blocks: &[Block]) -> Vec<&'static str> {
    blocks.iter().map(|block| block.content().unwrap().name()).collect()
}

fn response(data: &[u8]) -> Vec<Block> {
    let body = crate::message::Body::ReadResponse { bytes: data.len() as u32, last: true };
    let message = Message { source: NodeId(1), target: NodeId(2), id: MessageId(3), body };
    let mut blocks = Vec::new();
    encode_message(&message, data, &mut blocks).unwrap();
    blocks
}

fn frame(bytes: &[u8]) -> VecDeque<Block> {
    let mut blocks = Vec::new();
    encode_frame(bytes, &mut blocks).unwrap();
    blocks.into()
}

fn grant(id: u8) -> Grant {
    Grant { target: NodeId(4), id: MessageId(id), bytes: 256 }
}

/// Fills the frame buffer as a MAC does: as far as back pressure lets it.
fn refill(multiplexer: &mut Multiplexer, waiting: &mut VecDeque<Block>) {
    while let Some(block) = waiting.front() {
        match multiplexer.offer_frame(*block) {
            Ok(()) => waiting.pop_front(),
            Err(OfferError::Full(_)) => return,
            Err(other) => panic!("{other}"),
        };
    }
}

/// One frame and one message, both waiting from the start, until the line is idle.
fn both_waiting(policy: Policy) -> Vec<Block> {
    let mut multiplexer = Multiplexer::new(policy);
    let mut waiting = frame(&[1; 60]);
    response(&[2; 24]).into_iter().for_each(|block| multiplexer.offer_memory(block).unwrap());
    let mut sent = Vec::new();
    loop {
        refill(&mut multiplexer, &mut waiting);
        if multiplexer.is_idle() {
            return sent;
        }
        sent.push(multiplexer.next_block());
    }
}

#[test]
fn fair_alternates_block_by_block_and_memory_goes_first_on_an_idle_line() {
    let d = "/D/ or /MD/";
    let expected = ["/MS/", "/S/", d, d, d, d, "/MT/", d, d, d, d, d, d, "/T/", "/E/"];
    assert_eq!(names(&both_waiting(Policy::Fair)), expected);
}

#[test]
fn strict_sends_memory_first() {
    let sent = both_waiting(Policy::Strict);
    assert_eq!(names(&sent)[..5], ["/MS/", "/D/ or /MD/", "/D/ or /MD/", "/MT/", "/S/"]);
}

#[test]
fn a_message_waits_for_at_most_one_block_of_a_frame_unless_preemption_is_off() {
    for (policy, waits) in [(Policy::Fair, 0), (Policy::Strict, 0), (Policy::None, 9)] {
        let mut multiplexer = Multiplexer::new(policy);
        let mut waiting = frame(&[1; 60]);
        refill(&mut multiplexer, &mut waiting);
        assert_eq!(names(&[multiplexer.next_block()]), ["/S/"]);
        multiplexer.offer_memory(response(&[5])[0]).unwrap();
        let before_memory = std::iter::repeat_with(|| {
            refill(&mut multiplexer, &mut waiting);
            multiplexer.next_block().content().unwrap()
        });
        assert_eq!(before_memory.take_while(|content| !matches!(content, Content::MemorySingle(_))).count(), waits);
    }
}

#[test]
fn memory_takes_the_place_of_the_gap() {
    let mut multiplexer = Multiplexer::new(Policy::Fair);
    let mut waiting = frame(&[1; 60]);
    waiting.extend(frame(&[2; 60]));
    let mut sent = Vec::new();
    for _ in 0..21 {
        refill(&mut multiplexer, &mut waiting);
        if sent.len() == 10 {
            multiplexer.offer_memory(response(&[7])[0]).unwrap();
        }
        sent.push(multiplexer.next_block());
    }
    // Ten blocks, one gap block that memory uses, ten blocks: the message cost the frames nothing.
    assert_eq!(names(&sent)[9..12], ["/T/", "/MST/", "/S/"]);
    assert_eq!(names(&sent)[20], "/T/");
}

#[test]
fn back_pressure_bounds_the_frame_buffer_to_four_blocks() {
    let mut multiplexer = Multiplexer::new(Policy::Strict);
    let blocks = frame(&[1; 60]);
    for block in blocks.iter().take(4) {
        multiplexer.offer_frame(*block).unwrap();
    }
    assert_eq!(multiplexer.offer_frame(blocks[4]), Err(OfferError::Full(blocks[4])));
    multiplexer.next_block();
    assert_eq!(multiplexer.offer_frame(blocks[4]), Ok(()));
}

#[test]
fn blocks_out_of_sequence_are_refused_before_they_are_on_the_line() {
    let mut multiplexer = Multiplexer::new(Policy::Fair);
    let (message, frame) = (response(&[1; 24]), frame(&[1; 60]));
    assert_eq!(multiplexer.offer_memory(message[1]), Err(OfferError::Memory(MemoryError::DataOutside)));
    assert_eq!(multiplexer.offer_memory(message[3]), Err(OfferError::Memory(MemoryError::EndWithoutStart)));
    assert_eq!(multiplexer.offer_memory(frame[0]), Err(OfferError::Memory(MemoryError::NotMemory { got: "/S/" })));
    multiplexer.offer_memory(message[0]).unwrap();
    assert_eq!(multiplexer.offer_memory(message[0]), Err(OfferError::Memory(MemoryError::Nested)));
    assert_eq!(multiplexer.offer_frame(frame[9]), Err(OfferError::Frame { got: "/T/", place: "outside" }));
    multiplexer.offer_frame(frame[0]).unwrap();
    assert_eq!(multiplexer.offer_frame(frame[0]), Err(OfferError::Frame { got: "/S/", place: "inside" }));
    assert_eq!(multiplexer.offer_frame(message[0]), Err(OfferError::Frame { got: "/MS/", place: "inside" }));
    assert_eq!(multiplexer.offer_frame(frame[1]), Ok(()));
    let no_block = Block { payload: 0x42, ..Block::IDLE };
    assert_eq!(multiplexer.offer_frame(no_block), Err(OfferError::Block(BlockError::Type { got: 0x42 })));
    assert_eq!(multiplexer.offer_memory(message[1]), Ok(()), "a refused block changes nothing");
}

#[test]
fn a_message_that_breaks_off_is_cut_by_a_null_response_and_by_nothing_else() {
    let (message, null) = (response(&[1; 30]), response(&[]));
    let mut multiplexer = Multiplexer::new(Policy::Fair);
    message[..2].iter().for_each(|block| multiplexer.offer_memory(*block).unwrap());
    assert!(multiplexer.cut_message(message[0]).is_err(), "it is no message of one block");
    assert!(multiplexer.offer_memory(null[0]).is_err(), "nested");
    multiplexer.cut_message(null[0]).unwrap();
    assert_eq!(multiplexer.waiting(), [0, 3, 0]);
    multiplexer.offer_memory(message[0]).unwrap();
    let line: Vec<Block> = (0..4).map(|_| multiplexer.next_block()).collect();
    assert_eq!(line, [message[0], message[1], null[0], message[0]]);
}

#[test]
fn a_message_of_which_no_more_comes_ends_and_its_frame_goes_on() {
    for policy in POLICIES {
        let message = response(&[1; 30]);
        let mut multiplexer = Multiplexer::new(policy);
        assert!(!multiplexer.end_message(), "nothing is open");
        message[..2].iter().for_each(|block| multiplexer.offer_memory(*block).unwrap());
        let mut waiting = frame(&[1; 60]);
        let mut line = Vec::new();
        let mut run = |multiplexer: &mut Multiplexer, waiting: &mut VecDeque<Block>| {
            for _ in 0..40 {
                refill(multiplexer, waiting);
                line.push(multiplexer.next_block());
            }
        };
        run(&mut multiplexer, &mut waiting);
        // Fair sharing lets the rest of the frame pass, the others hold it.
        assert_eq!(waiting.is_empty(), policy == Policy::Fair);
        assert!(multiplexer.end_message());
        assert!(!multiplexer.end_message(), "once");
        run(&mut multiplexer, &mut waiting);
        assert!(waiting.is_empty() && multiplexer.is_idle(), "{policy:?}: {waiting:?}");
        let mut demultiplexer = Demultiplexer::new(policy);
        let received: Vec<Received> = line.into_iter().map(|block| demultiplexer.push(block)).collect();
        let faults: Vec<Fault> = received.iter().filter_map(|received| received.fault).collect();
        assert_eq!(faults, [Fault::Memory(MemoryError::Nested)]);
        let last = received.iter().filter_map(|received| received.memory).next_back().unwrap();
        let opening = memory::decode_opening(last).unwrap();
        assert_eq!((opening.data, opening.source), (Some(0), opening.target), "a NULL response for nobody");
        let frame_blocks = received.iter().filter(|received| received.frame != Block::IDLE).count();
        assert_eq!(frame_blocks, 10, "the frame is whole");
    }
}

#[test]
fn a_dry_message_inside_a_frame_costs_fair_one_pass_a_data_block() {
    let mut multiplexer = Multiplexer::new(Policy::Fair);
    let mut waiting = frame(&[1; 60]);
    multiplexer.offer_memory(response(&[2; 24])[0]).unwrap();
    let sent: Vec<Block> = (0..20)
        .map(|_| {
            refill(&mut multiplexer, &mut waiting);
            multiplexer.next_block()
        })
        .collect();
    let d = "/D/ or /MD/";
    assert_eq!(names(&sent)[..7], ["/MS/", "/S/", "/E/", d, "/E/", d, "/E/"]);
    assert_eq!(names(&sent)[16..19], ["/E/", d, "/T/"], "the end of the frame needs no turn");
}

/// What a receiver makes of a line.
#[derive(Debug, Default, PartialEq)]
struct Got {
    messages: Vec<(Message, Vec<u8>)>,
    grants: Vec<Grant>,
    frames: Vec<Vec<u8>>,
    faults: Vec<Fault>,
    frame_side: Vec<Block>,
    buffered_highest: u64,
}

fn receive(policy: Policy, line: &[Block]) -> Got {
    let (mut demultiplexer, mut by_blocks) = (Demultiplexer::new(policy), Demultiplexer::new(policy));
    let (mut assembler, mut decoder, mut got) = (Assembler::default(), FrameDecoder::default(), Got::default());
    // Idle cycles at the end let the last frames out; one that never ends stays.
    for cycle in 0..line.len() + FRAME_BLOCKS_MAX as usize {
        if cycle >= line.len() && demultiplexer.buffered() == 0 {
            break;
        }
        let block = line.get(cycle).copied().unwrap_or(Block::IDLE);
        let received = demultiplexer.push_bits(block.to_bits());
        assert_eq!(received, by_blocks.push(block), "bits and blocks of cycle {cycle}");
        got.faults.extend(received.fault);
        if let Some(block) = received.memory {
            if let Ok(grant) = decode_grant(block) {
                got.grants.push(grant);
            } else if let Ok(Some(message)) = assembler.push(block) {
                got.messages.push((message, assembler.data().to_vec()));
            }
        }
        got.frame_side.push(received.frame);
        got.frames.extend(decoder.push(received.frame).ok().flatten());
    }
    got.buffered_highest = demultiplexer.buffered_highest();
    got
}

#[test]
fn what_alternated_comes_apart_and_the_decoder_sees_consecutive_cycles() {
    for policy in POLICIES {
        let got = receive(policy, &both_waiting(policy));
        assert_eq!(got.faults, []);
        assert_eq!(got.frames, [vec![1; 60]]);
        assert_eq!(got.messages[0].1, [2; 24]);
        let start = got.frame_side.iter().position(|block| *block != Block::IDLE).unwrap();
        assert_eq!(got.frame_side[start..start + 10], Vec::from(frame(&[1; 60])));
    }
}

#[test]
fn ordered_sets_reach_the_decoder_between_frames() {
    let remote_fault = Content::OrderedSet { code: 0, bytes: [0, 0, 2] }.block();
    let mut multiplexer = Multiplexer::new(Policy::Fair);
    let mut waiting = frame(&[1; 60]);
    waiting.push_back(remote_fault);
    waiting.extend(frame(&[2; 60]));
    let mut line = Vec::new();
    while !(waiting.is_empty() && multiplexer.is_idle()) {
        refill(&mut multiplexer, &mut waiting);
        line.push(multiplexer.next_block());
    }
    let got = receive(Policy::Fair, &line);
    assert_eq!((got.faults.len(), got.frames), (0, vec![vec![1; 60], vec![2; 60]]));
    assert_eq!(got.frame_side.iter().filter(|block| **block == remote_fault).count(), 1);
}

#[test]
fn faults_are_named_and_the_next_start_recovers() {
    let (message, frame) = (response(&[1; 24]), Vec::from(frame(&[1; 60])));
    let fault = |line: &[Block]| receive(Policy::Fair, line).faults;
    assert_eq!(fault(&frame[1..2]), [Fault::DataOutside]);
    assert_eq!(fault(&frame[9..]), [Fault::EndWithoutStart]);
    assert_eq!(fault(&message[3..]), [Fault::Memory(MemoryError::EndWithoutStart)]);

    let got = receive(Policy::Fair, &[&message[..2], &message[..]].concat());
    assert_eq!(got.faults, [Fault::Memory(MemoryError::Nested)]);
    assert_eq!(got.messages.len(), 1);

    let got = receive(Policy::Fair, &[&frame[..5], &frame[..]].concat());
    assert_eq!(got.faults, [Fault::FrameNotEnded { got: "/S/" }]);
    assert_eq!(got.frames, [vec![1; 60]]);
}

#[test]
fn a_lost_end_of_a_message_does_not_swallow_the_next_frame() {
    let (message, frame) = (response(&[1; 24]), Vec::from(frame(&[1; 60])));
    let got = receive(Policy::Strict, &[&message[..3], &frame[..], &frame[..], &message[..]].concat());
    assert_eq!(got.faults, [Fault::Memory(MemoryError::TooLong { announced: 2 })]);
    assert_eq!(got.frames, [vec![1; 60]], "the first frame lost a block to the message");
    assert_eq!(got.messages.len(), 1);
}

#[test]
fn an_endless_frame_is_dropped_at_the_bound() {
    let blocks = Vec::from(frame(&[1; 60]));
    let endless = [vec![blocks[0]], vec![blocks[1]; 3 * FRAME_BLOCKS_MAX as usize], blocks.clone()].concat();
    let got = receive(Policy::Fair, &endless);
    assert_eq!(got.faults, [Fault::FrameTooLong { max: FRAME_BLOCKS_MAX }]);
    assert_eq!(got.frames, [vec![1; 60]]);
    assert_eq!(got.buffered_highest, FRAME_BLOCKS_MAX);
}

#[test]
fn the_longest_frame_and_the_shortest_behind_it_fit_the_buffer() {
    let mut line = Vec::from(frame(&[1; crate::pcs::frame::FRAME_BYTES_MAX - 4]));
    for _ in 0..150 {
        crate::pcs::frame::append_gap(&mut line);
        line.extend(frame(&[2; 60]));
    }
    let got = receive(Policy::Fair, &line);
    assert_eq!((got.faults.len(), got.frames.len()), (0, 151));
    assert!(got.buffered_highest <= Demultiplexer::BUFFER_BLOCKS_MAX);
}

/// Traffic, and in which cycles which class has a block to offer. The pattern repeats.
#[derive(Clone, Debug)]
struct Traffic {
    messages: Vec<(Message, Vec<u8>)>,
    grants: u8,
    frames: Vec<Vec<u8>>,
    memory_arrives: Vec<bool>,
    frame_arrives: Vec<bool>,
    grant_arrives: Vec<bool>,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let arrivals = || {
        proptest::collection::vec(any::<bool>(), 1..40).prop_map(|mut pattern| {
            pattern[0] = true;
            pattern
        })
    };
    let frame = proptest::collection::vec(any::<u8>(), 60..200);
    let messages = proptest::collection::vec(crate::pcs::memory::tests::messages(), 0..6);
    (messages, 0u8..10, proptest::collection::vec(frame, 0..6), arrivals(), arrivals(), arrivals()).prop_map(
        |(messages, grants, frames, memory_arrives, frame_arrives, grant_arrives)| Traffic {
            messages,
            grants,
            frames,
            memory_arrives,
            frame_arrives,
            grant_arrives,
        },
    )
}

impl Traffic {
    /// Sends everything, block by block as the patterns say; also how long the frame buffer ever
    /// was.
    fn send(&self, policy: Policy) -> (Vec<Block>, usize) {
        let mut multiplexer = Multiplexer::new(policy);
        let mut memory = Vec::new();
        self.messages.iter().for_each(|(message, data)| encode_message(message, data, &mut memory).unwrap());
        let mut memory = VecDeque::from(memory);
        let mut frames: VecDeque<Block> = self.frames.iter().flat_map(|bytes| frame(bytes)).collect();
        let mut grants: VecDeque<Block> = (0..self.grants).map(|id| encode_grant(&grant(id)).unwrap()).collect();
        let mut line = Vec::new();
        while !(memory.is_empty() && frames.is_empty() && grants.is_empty() && multiplexer.is_idle()) {
            let arrives = |pattern: &[bool]| pattern[line.len() % pattern.len()];
            if arrives(&self.memory_arrives) {
                memory.pop_front().into_iter().for_each(|block| multiplexer.offer_memory(block).unwrap());
            }
            if arrives(&self.grant_arrives) {
                grants.pop_front().into_iter().for_each(|block| multiplexer.offer_memory(block).unwrap());
            }
            if arrives(&self.frame_arrives)
                && frames.front().is_some_and(|block| multiplexer.offer_frame(*block).is_ok())
            {
                frames.pop_front();
            }
            line.push(multiplexer.next_block());
            assert!(line.len() < 100_000, "the line is stuck");
        }
        (line, multiplexer.frame_buffer_highest())
    }
}

/// Bytes between the data of one frame and the start of the next, for all frames of a stream that a
/// decoder sees.
fn gaps(frame_side: &[Block]) -> Vec<usize> {
    let (mut gaps, mut since_end) = (Vec::new(), None);
    for block in frame_side {
        match block.content().unwrap() {
            Content::Terminate(tail) => since_end = Some(8 - tail.bytes().len()),
            Content::Start(_) => gaps.extend(since_end.take()),
            _ => since_end = since_end.map(|bytes| bytes + 8),
        }
    }
    gaps
}

fn any_line() -> impl Strategy<Value = Vec<Block>> {
    let kinds: Vec<u8> = crate::pcs::block::BlockType::ALL.iter().map(|kind| kind.byte()).collect();
    let block = (proptest::sample::select(kinds), any::<u64>(), 0..4u8).prop_map(|(kind, fields, shape)| match shape {
        0 => Content::Data(fields.to_le_bytes()).block(),
        1 => Block { payload: kind.into(), ..Block::IDLE },
        _ => Block { payload: fields << 8 | u64::from(kind), ..Block::IDLE },
    });
    proptest::collection::vec(block, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_mix_in_any_arrival_pattern_comes_out_intact_and_in_order(traffic in traffic()) {
        for policy in POLICIES {
            let (line, buffer_highest) = traffic.send(policy);
            let got = receive(policy, &line);
            prop_assert_eq!(&got.faults, &[]);
            prop_assert_eq!(&got.messages, &traffic.messages);
            prop_assert_eq!(&got.grants, &(0..traffic.grants).map(grant).collect::<Vec<_>>());
            prop_assert_eq!(&got.frames, &traffic.frames);
            prop_assert!(gaps(&got.frame_side).iter().all(|bytes| *bytes >= crate::pcs::frame::GAP_BYTES));
            prop_assert!(buffer_highest <= FRAME_BUFFER_BLOCKS);
            prop_assert!(got.buffered_highest <= Demultiplexer::BUFFER_BLOCKS_MAX);
        }
    }

    #[test]
    fn with_both_backlogged_interleaving_costs_no_block(mut traffic in traffic()) {
        traffic.memory_arrives = vec![true];
        traffic.frame_arrives = vec![true];
        traffic.grants = 0;
        for policy in POLICIES {
            let memory: u64 = traffic.messages.iter().map(|(message, _)| memory::message_blocks(&message.body)).sum();
            let frames = traffic.frames.iter().map(|bytes| crate::pcs::frame::frame_blocks(bytes.len()));
            let (blocks, gaps) = frames.fold((0, 0), |sum, frame| (sum.0 + frame.frame, sum.1 + frame.gap));
            let length = traffic.send(policy).0.len() as u64;
            prop_assert!(length >= memory + blocks);
            prop_assert!(length <= memory + blocks + gaps, "{policy:?}: {length} blocks");
        }
    }

    #[test]
    fn any_line_at_all_never_panics_and_the_decoder_never_sees_a_memory_block(line in any_line()) {
        for policy in POLICIES {
            let got = receive(policy, &line);
            let memory = got.frame_side.iter().any(|block| {
                use Content::{Grant, MemoryEnd, MemorySingle, MemoryStart, Notification};
                let content = block.content().unwrap();
                matches!(content, Grant(_) | MemoryEnd(_) | MemorySingle(_) | MemoryStart(_) | Notification(_))
            });
            prop_assert!(!memory);
            prop_assert!(got.buffered_highest <= Demultiplexer::BUFFER_BLOCKS_MAX);
        }
    }

    #[test]
    fn a_healthy_message_and_frame_get_through_after_any_line(line in any_line()) {
        // A message that ends, a frame that ends: the first of each may be hurt by what was open
        // before, the second not.
        let healthy = [response(&[1; 24]), Vec::from(frame(&[1; 60])), vec![Block::IDLE]].concat();
        for policy in POLICIES {
            let got = receive(policy, &[&line[..], &healthy, &healthy].concat());
            prop_assert_eq!(got.messages.last().map(|(_, data)| data.clone()), Some(vec![1; 24]));
            prop_assert_eq!(got.frames.last().cloned(), Some(vec![1; 60]));
        }
    }
}
