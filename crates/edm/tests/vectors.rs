//! Golden vectors of a line, for gates and other implementations: `rtl/vectors/line-*.txt`. This
//! test writes them again and compares; with `WRITE_VECTORS=1` it writes the files.
//!
//! `rtl/harness` plays them to the gates. A line has what a multiplexer and a demultiplexer see and
//! show in a cycle, in hexadecimal digits: 66 bits of a block, the sync header last, or `-`. The
//! fields are three offers (/N/ or /G/, message, frame), the block on the line, the bits that come
//! out of the wire, the memory block and the frame block that are received, and the fault's number.
//! What is offered, and what comes out of the wire, shows in the next cycle at the earliest. A
//! queue is offered a block when it was empty before this cycle, so a place for one is enough.

use base::{Seed, Stream};
use edm::pcs::block::Block;
use edm::pcs::frame::encode_frame;
use edm::pcs::memory::{encode_grant, encode_message, encode_notification};
use edm::pcs::multiplex::{Demultiplexer, Fault, Multiplexer, Policy, Received};
use edm::{Body, Grant, Message, MessageId, Notification};
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

const CYCLES: u32 = 700;
/// From then on the wire changes blocks.
const NOISE_FROM: u32 = 400;

/// Blocks that wait for their turn to be offered: /N/ and /G/, messages, frames.
type Lanes = [VecDeque<Block>; 3];

fn bytes(count: u64, random: &mut Stream) -> Vec<u8> {
    (0..count).map(|_| random.below(256) as u8).collect()
}

/// Something of any kind.
fn add_item(lanes: &mut Lanes, random: &mut Stream) {
    let mut blocks = Vec::new();
    let (target, id) = (base::NodeId(random.below(512) as u16 as u32), MessageId(random.below(256) as u8));
    let mut message = |body, data: &[u8]| {
        let message = Message { source: base::NodeId(3), target, id, body };
        encode_message(&message, data, &mut blocks).expect("a good message");
    };
    let lane = match random.below(6) {
        0 => {
            let said = Notification { target, id, bytes: random.below(1 << 16) as u32, batch: 1 };
            blocks.push(encode_notification(&said).expect("a good notification"));
            0
        }
        1 => {
            let said = Grant { target, id, bytes: random.below(1 << 12) as u16 };
            blocks.push(encode_grant(&said).expect("a good grant"));
            0
        }
        2 => {
            message(Body::ReadRequest { address: random.below(1 << 40), bytes: random.below(1 << 16) as u32 }, &[]);
            1
        }
        3 => {
            let data = bytes(1 + random.below(100), random);
            let body = Body::WriteRequest { address: random.below(1 << 40), bytes: data.len() as u32, last: true };
            message(body, &data);
            1
        }
        4 => {
            let data = bytes(1 + random.below(64), random);
            message(Body::ReadResponse { bytes: data.len() as u32, last: false }, &data);
            1
        }
        _ => {
            let length = 60 + random.below(140);
            encode_frame(&bytes(length, random), &mut blocks).expect("its length is allowed");
            2
        }
    };
    lanes[lane].extend(blocks);
}

/// What the wire makes of a block.
fn wire(cycle: u32, bits: u128, random: &mut Stream) -> u128 {
    match random.below(12) {
        0 if cycle >= NOISE_FROM => bits ^ 1 << random.below(66),
        1 if cycle >= NOISE_FROM => u128::from(random.below(1 << 33)) << 33 | u128::from(random.below(1 << 33)),
        _ => bits,
    }
}

/// `fault_e` of the gates.
fn number(fault: Option<Fault>) -> u8 {
    match fault {
        None => 0,
        Some(Fault::Block(_)) => 1,
        Some(Fault::Memory(_)) => 2,
        Some(Fault::DataOutside) => 3,
        Some(Fault::FrameNotEnded { .. }) => 4,
        Some(Fault::EndWithoutStart) => 5,
        Some(Fault::FrameTooLong { .. }) => 6,
        Some(Fault::Overrun { .. }) => 7,
        Some(other) => panic!("{other} has no number"),
    }
}

fn told(block: Option<Block>) -> String {
    block.map_or("-".into(), |block| format!("{:017x}", block.to_bits()))
}

fn vectors(name: &str, policy: Policy) -> String {
    let mut random = Seed(21).stream(name);
    let (mut multiplexer, mut demultiplexer) = (Multiplexer::new(policy), Demultiplexer::new(policy));
    let (mut lanes, mut text) = (Lanes::default(), String::new());
    let (mut line, mut received) = (Block::IDLE, Received { memory: None, frame: Block::IDLE, fault: None });
    for cycle in 0..CYCLES {
        if random.below(9) == 0 || lanes.iter().all(VecDeque::is_empty) {
            add_item(&mut lanes, &mut random);
        }
        let (shown, seen) = (line, received);
        let bits = wire(cycle, shown.to_bits(), &mut random);
        received = demultiplexer.push_bits(bits);
        let waiting = multiplexer.waiting();
        line = multiplexer.next_block();
        let offers: [Option<Block>; 3] = std::array::from_fn(|lane| {
            let block = lanes[lane].pop_front_if(|_| waiting[lane] == 0)?;
            if lane == 2 { multiplexer.offer_frame(block) } else { multiplexer.offer_memory(block) }.expect("in order");
            Some(block)
        });
        let fields = [told(offers[0]), told(offers[1]), told(offers[2]), told(Some(shown)), format!("{bits:017x}")];
        let after = [told(seen.memory), told(Some(seen.frame)), number(seen.fault).to_string()];
        writeln!(text, "{} {}", fields.join(" "), after.join(" ")).expect("a text takes all");
    }
    text
}

#[test]
fn the_golden_vectors_are_what_the_model_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl/vectors");
    for (name, policy) in [("fair", Policy::Fair), ("strict", Policy::Strict), ("whole", Policy::None)] {
        let (path, text) = (folder.join(format!("line-{name}.txt")), vectors(name, policy));
        if std::env::var_os("WRITE_VECTORS").is_some() {
            std::fs::write(&path, &text).expect("a disk");
        }
        let kept = std::fs::read_to_string(&path).expect("it is there");
        let differs = kept.lines().zip(text.lines()).position(|(kept, now)| kept != now);
        assert_eq!((differs, kept.len()), (None, text.len()), "{name}: the first cycle that differs");
        // Each kind of thing is in them.
        let has = |field: usize, is_wanted: &dyn Fn(&str) -> bool| {
            text.lines().filter_map(|line| line.split(' ').nth(field)).filter(|value| is_wanted(value)).count()
        };
        let counts = [0, 1, 2, 5].map(|field| has(field, &|value| value != "-"));
        assert!(counts.iter().all(|count| *count > 20) && has(7, &|value| value != "0") > 10, "{name}: {counts:?}");
    }
}
