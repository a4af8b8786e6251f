//! The order of a pair: a read has what was written before it, and nothing that is written after it,
//! however long it takes. The memory node reads a long answer when its chunks leave.

use edm::Modify;
use edm::pcs::frame::encode_frame;
use rtl_harness::system::{Access, End, Request, System, Variant};

const HERE: usize = 0;
const THERE: usize = 1;
/// What is read and written, and where answers go.
const PLACE: u64 = 0x2000;
const ANSWERS: u64 = 0x5000;
const ANSWER_BYTES: u64 = 0x600;
/// Where the answers of modifications go.
const OLD: u64 = 0xc000;
/// The data of a turn begin here, and are others in each.
const TURNS: [u64; 2] = [1, 1_601];
/// Requests of the third node.
const BESIDE: u16 = 1_000;

fn data() -> Vec<u8> {
    (0..4_096u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// One node's requests to another one's memory.
struct Pair {
    system: System,
    asked: u16,
    /// By tag: the cycle in which a request ended.
    ended: Vec<Option<u64>>,
}

impl Pair {
    fn new(variant: Variant) -> Pair {
        let mut system = System::new(variant);
        for node in 0..variant.nodes() {
            system.fill(node, 0, &data());
        }
        Pair { system, asked: 0, ended: Vec::new() }
    }

    fn ask(&mut self, access: Access, there: u64, here: u64) -> u16 {
        let tag = self.asked;
        self.asked += 1;
        self.ended.push(None);
        self.system.submit(HERE, Request { target: THERE as u32, access, there, here, tag });
        tag
    }

    /// Frames of the reader to the memory node, which share its lines.
    fn frames(&mut self, frames: usize, bytes: usize) {
        for _ in 0..frames {
            let mut frame = vec![7; bytes];
            frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, THERE as u8]);
            let mut blocks = Vec::new();
            encode_frame(&frame, &mut blocks).expect("the length is allowed");
            self.system.send_frame(HERE, blocks);
        }
    }

    fn cycle(&mut self) {
        self.system.drive();
        let now = self.system.cycles();
        for (end, tag) in self.system.ends(HERE) {
            assert!(matches!(end, End::Answered | End::Sent), "request {tag}: {end:?}");
            self.ended[tag as usize] = Some(now);
        }
        self.system.step();
    }

    /// Until all have ended; a third node writes to the reader meanwhile, once in so many cycles.
    fn finish(&mut self, writes_of_a_third: Option<u64>) {
        while self.ended.contains(&None) {
            let is_due = writes_of_a_third.is_some_and(|gap| self.system.cycles() % gap == 0);
            if is_due && self.system.unsubmitted(2) == 0 {
                let access = Access::Write { bytes: 64 };
                self.system.submit(2, Request { target: HERE as u32, access, there: 0xf800, here: 0, tag: BESIDE });
            }
            self.cycle();
            assert!(self.system.cycles() < 100_000, "a request never ends");
        }
        (0..300).for_each(|_| self.cycle());
    }

    /// Writes a place, reads it and may change a word of it, and all again with other data. A change
    /// keeps the next write back for itself.
    fn turns(&mut self, number: u64, bytes: u32, modifies: bool) -> [(u64, u64); 2] {
        let there = PLACE + number * ANSWER_BYTES;
        let mut here = ANSWERS + 2 * number * ANSWER_BYTES;
        TURNS.map(|from| {
            self.ask(Access::Write { bytes }, there, from);
            self.ask(Access::Read { bytes }, there, here);
            if modifies {
                self.ask(Access::Modify(Modify::FetchAndAdd { addend: 1 }), there + 8, OLD);
            }
            here += ANSWER_BYTES;
            (here - ANSWER_BYTES, from)
        })
    }

    /// Turns of these lengths, one after the other: each read has the data of its turn.
    fn take_turns(&mut self, lengths: &[u32], modifies: bool, writes_of_a_third: Option<u64>, what: &str) {
        let turns: Vec<_> =
            (0..).zip(lengths).map(|(number, bytes)| (*bytes, self.turns(number, *bytes, modifies))).collect();
        self.finish(writes_of_a_third);
        for (bytes, reads) in turns {
            for (here, from) in reads {
                let got = self.system.dump(HERE, here, bytes as usize);
                let wanted = &data()[from as usize..][..bytes as usize];
                let wrong = got.iter().zip(wanted).position(|(got, wanted)| got != wanted);
                assert_eq!(wrong, None, "{what}: a read of {bytes} has other data from this byte on");
            }
        }
        assert_eq!(self.system.wrong(), Default::default(), "{what}");
    }
}

/// Frames hold up requests at a port of the switch. So they come to the memory node without the time
/// between them that the scheduler has left for their answers.
#[test]
fn frames_that_share_lines_fairly_change_no_order_of_a_pair() {
    for (gap, modifies) in (0..600).step_by(25).flat_map(|gap| [(gap, false), (gap, true)]) {
        let mut pair = Pair::new(Variant::Two);
        pair.frames(4, 1_400);
        (0..gap).for_each(|_| pair.cycle());
        pair.take_turns(&[300, 64, 64, 128, 300, 64], modifies, None, &format!("{gap} cycles after the frames"));
    }
}

/// The scheduler sends shorter messages to the reader first, and lets its next write go meanwhile.
#[test]
fn a_read_of_many_chunks_has_nothing_of_the_write_behind_it() {
    for gap in [10, 15, 20, 40] {
        for lengths in [[1_500].as_slice(), &[300, 64, 200]] {
            let what = format!("{lengths:?}, writes in {gap} cycles");
            Pair::new(Variant::Three).take_turns(lengths, false, Some(gap), &what);
        }
    }
}

/// Whether a request behind a read of the memory is sent before that is answered.
fn overtakes(read: (u64, u32), access: Access, there: u64) -> bool {
    let mut pair = Pair::new(Variant::Two);
    let first = pair.ask(Access::Read { bytes: read.1 }, read.0, ANSWERS);
    let second = pair.ask(access, there, ANSWERS + 2 * ANSWER_BYTES);
    pair.finish(None);
    pair.ended[second as usize] < pair.ended[first as usize]
}

/// Only what changes bytes of a long read waits.
#[test]
fn a_write_waits_for_the_long_reads_of_its_bytes_alone() {
    let long = (PLACE + 3, 2_000);
    let write = |bytes| Access::Write { bytes };
    assert!(overtakes(long, write(64), PLACE + 2_003), "the byte behind it");
    assert!(overtakes(long, write(3), PLACE), "the byte before it");
    assert!(!overtakes(long, write(64), PLACE + 2_002), "its last byte");
    assert!(!overtakes(long, write(4), PLACE), "its first byte");
    assert!(!overtakes(long, write(1), PLACE + 900), "a byte in it");
    assert!(!overtakes((PLACE + 900, 9), write(600), PLACE + 600), "all of it");
    assert!(overtakes((PLACE, 2_000), write(8), PLACE + (1 << 40)), "an address whose high bits differ");
}
