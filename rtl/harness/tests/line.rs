//! The gates of a line and `crates/edm` send the same blocks in the same cycles, and receive the
//! same from any bits.

mod common;

use base::NodeId;
use edm::pcs::block::{Block, Content, Sync};
use edm::pcs::frame::{FRAME_BLOCKS_MAX, FrameDecoder, encode_frame};
use edm::pcs::memory::{Assembler, encode_grant, encode_message, encode_notification};
use edm::pcs::multiplex::Policy;
use edm::{Body, Grant, Message, MessageId, Notification};
use proptest::prelude::*;
use rtl_harness::line::{Lane, Lockstep, Offers, Wire};

/// Something to send, and how many cycles after the one before it.
#[derive(Clone, Debug)]
enum Item {
    Frame(Vec<u8>),
    Write(Vec<u8>),
    Read(u32),
    Response(Vec<u8>),
    Notification(u32),
    Grant(u16),
    /// Any block at any entrance.
    Stray(Lane, Block),
    /// The first blocks of a frame that never ends.
    Endless(u16),
}

fn item() -> impl Strategy<Value = Item> {
    let data = |longest| prop::collection::vec(any::<u8>(), 0..longest);
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 14..300).prop_map(Item::Frame),
        6 => data(300).prop_map(Item::Write),
        4 => (1u32..200_000).prop_map(Item::Read),
        6 => data(80).prop_map(Item::Response),
        3 => any::<u32>().prop_map(Item::Notification),
        3 => any::<u16>().prop_map(Item::Grant),
    ]
}

/// What a broken sender offers.
fn stray() -> impl Strategy<Value = Item> {
    let kinds = vec![0x1eu64, 0x78, 0x87, 0xd2, 0xff, 0x4b, 0x33, 0x2d, 0x00, 0x55, 0x66, 0x42];
    let block = (prop::sample::select(kinds), any::<u64>(), 0u8..4).prop_map(|(kind, fields, form)| match form {
        0 => Block { sync: Sync::Data, payload: fields },
        1 => Block { sync: Sync::Control, payload: kind },
        // A header that may make sense.
        2 => Block { sync: Sync::Control, payload: kind | (fields & 0x00ff_ffff_ffff_ff9f | 8) << 8 },
        _ => Block { sync: Sync::Control, payload: kind | fields << 8 },
    });
    (prop::sample::select(Lane::ALL.to_vec()), block).prop_map(|(lane, block)| Item::Stray(lane, block))
}

fn items(strays: u32) -> impl Strategy<Value = Vec<(u8, u8, Item)>> {
    let any_item = prop_oneof![20 => item(), strays.max(1) => stray(), strays.div_ceil(20).max(1) => (1000u16..1300).prop_map(Item::Endless)];
    let item = if strays == 0 { item().boxed() } else { any_item.boxed() };
    // Blocks of one item come every `stride` cycles: 1 is back to back, more runs dry inside it.
    prop::collection::vec((0u8..60, prop_oneof![4 => Just(1u8), 2 => 2u8..5], item), 1..40)
}

fn message(body: Body) -> Message {
    Message { source: NodeId(3), target: NodeId(511), id: MessageId(200), body }
}

/// The lane of an item, and its blocks.
fn blocks_of(item: &Item) -> (Lane, Vec<Block>) {
    let mut out = Vec::new();
    let lane = match item {
        Item::Frame(bytes) => encode_frame(bytes, &mut out).map(|()| Lane::Frame).expect("the length is allowed"),
        Item::Write(data) => {
            let body = Body::WriteRequest { address: 77, bytes: data.len() as u32, last: true };
            encode_message(&message(body), data, &mut out).map(|()| Lane::Message).expect("a good message")
        }
        Item::Read(bytes) => {
            let body = Body::ReadRequest { address: 99, bytes: *bytes };
            encode_message(&message(body), &[], &mut out).map(|()| Lane::Message).expect("a good message")
        }
        Item::Response(data) => {
            let body = Body::ReadResponse { bytes: data.len() as u32, last: false };
            encode_message(&message(body), data, &mut out).map(|()| Lane::Message).expect("a good message")
        }
        Item::Notification(bytes) => {
            let said = Notification { target: NodeId(5), id: MessageId(1), bytes: *bytes, batch: 3 };
            out.push(encode_notification(&said).expect("a good notification"));
            Lane::Control
        }
        Item::Grant(bytes) => {
            let said = Grant { target: NodeId(5), id: MessageId(1), bytes: *bytes };
            out.push(encode_grant(&said).expect("a good grant"));
            Lane::Control
        }
        Item::Stray(lane, block) => {
            out.push(*block);
            *lane
        }
        Item::Endless(blocks) => {
            out.push(Content::Start([0x55; 7]).block());
            out.extend((0..*blocks).map(|word| Content::Data([word as u8; 8]).block()));
            Lane::Frame
        }
    };
    (lane, out)
}

fn offers_of(items: &[(u8, u8, Item)]) -> Offers {
    let (mut offers, mut cycle) = (Offers::default(), 0);
    for (gap, stride, item) in items {
        cycle += u64::from(*gap);
        let (lane, blocks) = blocks_of(item);
        for (index, block) in blocks.into_iter().enumerate() {
            offers.push(lane, cycle + index as u64 * u64::from(*stride), block);
        }
    }
    offers
}

fn noise() -> impl Strategy<Value = Wire> {
    let stray = stray().prop_map(|item| match item {
        Item::Stray(_, block) => Wire::Replace(block.to_bits()),
        _ => Wire::Clean,
    });
    prop_oneof![
        30 => Just(Wire::Clean),
        2 => (0u32..66).prop_map(|bit| Wire::Flip(1 << bit)),
        1 => (0u128..1 << 66).prop_map(Wire::Replace),
        6 => stray,
    ]
}

/// Over a clean wire, what was sent comes out whole: frames with their check sequence, messages
/// with their data.
fn delivers_all(policy: Policy, items: &[(u8, u8, Item)]) -> Result<u64, TestCaseError> {
    let mut both = Lockstep::new(policy);
    let (mut frames, mut messages) = (Vec::new(), Vec::new());
    let (mut decoder, mut assembler) = (FrameDecoder::default(), Assembler::default());
    let mut broken = None;
    let played = both.play(offers_of(items), &[], |memory, frame| {
        match decoder.push(frame) {
            Ok(whole) => frames.extend(whole),
            Err(error) => broken = Some(error.to_string()),
        }
        let is_control = |block: &Block| matches!(block.content(), Ok(Content::Notification(_) | Content::Grant(_)));
        let Some(block) = memory.filter(|block| !is_control(block)) else { return };
        match assembler.push(block) {
            Ok(Some(whole)) => messages.push((whole.body, assembler.data().to_vec())),
            Ok(None) => {}
            Err(error) => broken = Some(error.to_string()),
        }
    });
    played.map_err(TestCaseError::fail)?;
    prop_assert_eq!(broken, None);
    let sent = items.iter().filter_map(|(.., item)| match item {
        Item::Frame(bytes) => Some(bytes),
        _ => None,
    });
    let padded = sent.map(|bytes| [bytes.clone(), vec![0; 60usize.saturating_sub(bytes.len())]].concat());
    prop_assert_eq!(frames, padded.collect::<Vec<_>>());
    let sent = items.iter().filter_map(|(.., item)| match item {
        Item::Write(data) => {
            Some((Body::WriteRequest { address: 77, bytes: data.len() as u32, last: true }, data.clone()))
        }
        Item::Read(bytes) => Some((Body::ReadRequest { address: 99, bytes: *bytes }, Vec::new())),
        Item::Response(data) => Some((Body::ReadResponse { bytes: data.len() as u32, last: false }, data.clone())),
        _ => None,
    });
    prop_assert_eq!(messages, sent.collect::<Vec<_>>());
    prop_assert_eq!(both.refused_and_faults(), (0, 0));
    Ok(both.cycles())
}

/// Over a noisy wire, with a broken sender, both still agree in every cycle.
fn survives(policy: Policy, items: &[(u8, u8, Item)], wire: &[Wire]) -> Result<(u64, u64), TestCaseError> {
    let mut both = Lockstep::new(policy);
    both.play(offers_of(items), wire, |_, _| {}).map_err(TestCaseError::fail)?;
    let (refused, faults) = both.refused_and_faults();
    Ok((both.cycles(), refused + faults))
}

const POLICIES: [Policy; 3] = [Policy::Fair, Policy::Strict, Policy::None];

#[test]
fn a_clean_line_delivers_frames_and_messages_whole() {
    for policy in POLICIES {
        let cycles = common::run(&items(0), 6, |items| delivers_all(policy, &items));
        eprintln!("{policy:?}: {cycles} cycles alike, everything delivered");
    }
}

#[test]
fn broken_senders_and_noise_are_survived_alike() {
    for policy in POLICIES {
        let seen = std::cell::Cell::new(0);
        let schedule = (items(8), prop::collection::vec(noise(), 0..1500));
        let cycles = common::run(&schedule, 6, |(items, wire)| {
            let (cycles, wrong) = survives(policy, &items, &wire)?;
            seen.set(seen.get() + wrong);
            Ok(cycles)
        });
        eprintln!("{policy:?}: {cycles} cycles alike, {} refusals and faults", seen.get());
        assert!(seen.get() > 0, "the schedules tried nothing");
    }
}

#[test]
fn a_frame_that_never_ends_and_frames_without_gaps_are_dropped_alike() {
    for policy in POLICIES {
        let start = Content::Start([0x55; 7]).block().to_bits();
        let data = Content::Data([7; 8]).block().to_bits();
        let end = Block { sync: Sync::Control, payload: 0x87 }.to_bits();
        let endless = [vec![start], vec![data; 1_200], vec![end]].concat();
        let long = [vec![start], vec![data; FRAME_BLOCKS_MAX as usize - 2], vec![end]].concat();
        let wire: Vec<Wire> = [endless, long.repeat(6)].concat().into_iter().map(Wire::Replace).collect();
        let mut both = Lockstep::new(policy);
        both.play(Offers::default(), &wire, |_, _| {}).unwrap();
        assert!(both.refused_and_faults().1 >= 2, "too long, and an overrun");
    }
}
