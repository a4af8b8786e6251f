//! Frames under memory traffic: preempted, and whole for a decoder that is not ours.

use edm::pcs::block::{Block, Content};
use edm::pcs::frame::encode_frame;
use rtl_harness::system::{Access, Descrambler, End, Request, System, Variant};
use std::io::Write;
use std::process::{Command, Stdio};

/// The Internet's sum of words of 16 bits (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let fold = |all: u32| (all & 0xffff) + (all >> 16);
    !fold(fold(words.sum())) as u16
}

/// UDP over IPv4, in a frame of so many bytes without its check sequence.
fn frame(number: usize, bytes: usize) -> Vec<u8> {
    const ADDRESSES: [u8; 8] = [10, 0, 0, 1, 10, 0, 0, 2];
    let words = |words: &[usize]| words.iter().flat_map(|word| (*word as u16).to_be_bytes()).collect::<Vec<u8>>();
    let (packet, datagram) = (bytes - 14, bytes - 34);
    let mut ip = [words(&[0x4500, packet, number, 0x4000, 0x4011, 0]), ADDRESSES.to_vec()].concat();
    let own = sum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&own);
    let mut udp = words(&[4_000, 5_000, datagram, 0]);
    udp.extend((8..datagram).map(|index| (index * 31 + number * 17) as u8));
    let own = sum(&[&ADDRESSES[..], &words(&[17, datagram]), &udp].concat()).to_be_bytes();
    udp[6..8].copy_from_slice(&own);
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x08, 0x00], &ip[..], &udp].concat()
}

/// Counts the memory blocks between /S/ and /T/ on a line.
#[derive(Default)]
struct Preemption {
    descrambler: Descrambler,
    in_frame: bool,
    blocks: u64,
}

impl Preemption {
    fn look(&mut self, line: u128) {
        let Ok(block) = Block::from_bits(self.descrambler.push(line)) else { return };
        match block.content() {
            Ok(Content::Start(_)) => self.in_frame = true,
            Ok(Content::Terminate(_)) => self.in_frame = false,
            Ok(
                Content::MemoryStart(_) | Content::MemorySingle(_) | Content::MemoryEnd(_) | Content::Notification(_),
            ) => {
                self.blocks += u64::from(self.in_frame);
            }
            _ => {}
        }
    }
}

/// What `frames.py` makes of the blocks that a host's decoder got.
fn decode(blocks: &[Block]) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frames.py");
    // With scapy: tools/setup-rtl.sh installs it there.
    let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/rtl/bin/python3"))
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut text = String::new();
    for block in blocks {
        let bytes: String = block.payload.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{:02b} {bytes}\n", block.to_bits() & 3));
    }
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("the script reads all");
    let output = child.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "a frame is broken");
    String::from_utf8(output.stdout).expect("hexadecimal").lines().map(String::from).collect()
}

#[test]
fn memory_preempts_frames_and_zlib_and_scapy_find_them_whole() {
    let mut system = System::new(Variant::Two);
    let sizes = [60, 61, 63, 64, 67, 100, 512, 1_500, 1_514, 9_018, 9_018, 9_018];
    let frames: Vec<Vec<u8>> = sizes.iter().enumerate().map(|(number, bytes)| frame(number, *bytes)).collect();
    for frame in &frames {
        let mut blocks = Vec::new();
        encode_frame(frame, &mut blocks).expect("the length is allowed");
        system.send_frame(0, blocks);
    }
    let (mut line, mut asked, mut begun, mut longest) = (Preemption::default(), 0u16, None, 0);
    while system.frames_wait() || begun.is_some() {
        // One read at a time, as soon as the one before is answered.
        if begun.is_none() && system.frames_wait() {
            let access = if asked % 2 == 0 { Access::Read { bytes: 64 } } else { Access::Read { bytes: 8 } };
            system.submit(0, Request { target: 1, access, there: 64, here: 4096, tag: asked });
            begun = Some(system.cycles());
            asked += 1;
        }
        system.drive();
        line.look(system.line(0, true));
        if system.ends(0).any(|end| end == (End::Answered, asked.wrapping_sub(1))) {
            longest = longest.max(system.cycles() - begun.take().expect("one is asked"));
        }
        system.step();
        assert!(system.cycles() < 100_000, "reads or frames never end");
    }
    for _ in 0..2_000 {
        system.cycle();
    }
    let got = decode(system.received(1));
    let sent = frames.iter().map(|frame| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    assert_eq!(got, sent.collect::<Vec<_>>());
    assert_eq!(system.wrong(), Default::default());
    let cycles = system.cycles();
    eprintln!(
        "{cycles} cycles: {} frames whole, {asked} reads beside them, {} memory blocks inside frames; longest read {longest}",
        got.len(),
        line.blocks
    );
    assert!(line.blocks > 100, "memory did not preempt frames");
    // Alone a read of 64 B ends after 52 cycles; a jumbo frame is 1,129 blocks long.
    assert!(longest < 120, "a read waited for frames: {longest} cycles");
}
