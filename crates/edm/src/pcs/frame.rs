//! Ordinary Ethernet frames as blocks, and back: preamble in /S/, padding, frame check sequence,
//! /T/ and the gap after it (IEEE 802.3 clauses 3, 4 and 49).
//!
//! Frames start at block boundaries (see [`super::block`]), so the gap is whole blocks after /T/.
//! The standard lets a sender average the twelve bytes over several frames (deficit idle count,
//! 46.3.1.4); we round up each gap, which costs at most seven byte times a frame.

use super::block::{Block, BlockError, Content, Tail};

/// Bytes of the destination and source addresses and the type.
pub const HEADER_BYTES: usize = 14;
/// Bytes of the frame check sequence.
pub const CHECK_BYTES: usize = 4;
/// The shortest frame, check sequence included.
pub const FRAME_BYTES_MIN: usize = 64;
/// The longest frame, check sequence included: a payload of 9,000 bytes (custom: 802.3 itself ends
/// at 2,000) and a VLAN tag.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + 4 + 9_000 + CHECK_BYTES;
/// The least time between frames, in bytes, counted from /T/ on.
pub const GAP_BYTES: usize = 12;
/// The most blocks of a frame: [`FRAME_BYTES_MAX`] bytes in /D/ and /T/, after /S/.
pub const FRAME_BLOCKS_MAX: u64 = frame_blocks(FRAME_BYTES_MAX - CHECK_BYTES).frame;

/// /S/ holds the preamble's last six bytes and the start-of-frame delimiter; the preamble's first
/// byte becomes the type byte.
const PREAMBLE: [u8; 7] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];

/// How long a frame and the gap that must follow it are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBlocks {
    /// /S/ to /T/.
    pub frame: u64,
    /// /E/ before the next /S/ may come.
    pub gap: u64,
}

impl FrameBlocks {
    /// Frame and gap.
    pub const fn total(self) -> u64 {
        self.frame + self.gap
    }
}

/// Blocks of a frame of `bytes` without padding and check sequence.
pub const fn frame_blocks(bytes: usize) -> FrameBlocks {
    let checked = bytes + CHECK_BYTES;
    let on_wire = if checked < FRAME_BYTES_MIN { FRAME_BYTES_MIN } else { checked };
    FrameBlocks { frame: 2 + (on_wire / 8) as u64, gap: gap_blocks(on_wire % 8) }
}

/// /E/ blocks that must follow a /T/ with this many data bytes (at most 7): it holds the gap's
/// first 8 - n bytes itself.
pub const fn gap_blocks(tail_bytes: usize) -> u64 {
    (GAP_BYTES + tail_bytes).saturating_sub(8).div_ceil(8) as u64
}

/// Reason why a frame cannot be sent, or blocks are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A block that is none.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Too short or too long.
    #[error("a frame of {got} bytes: allowed are {min} to {max}")]
    Length {
        /// Its bytes.
        got: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The check sequence does not fit the bytes.
    #[error("frame check sequence {got:#010x}: the bytes give {expected:#010x}")]
    Check {
        /// As received.
        got: u32,
        /// As computed.
        expected: u32,
    },
    /// /S/ without the preamble.
    #[error("/S/ is followed by {got:02x?}: allowed is only preamble and start-of-frame delimiter")]
    Preamble {
        /// The seven bytes.
        got: [u8; 7],
    },
    /// A block that may not come here.
    #[error("{got} {place}: allowed there are {allowed}")]
    Unexpected {
        /// The block.
        got: &'static str,
        /// Inside or between frames.
        place: &'static str,
        /// Blocks that may follow.
        allowed: &'static str,
    },
}

/// Appends the blocks of `frame` (destination address to payload) to `out`, /S/ to /T/: pads it,
/// adds the check sequence.
///
/// # Errors
/// [`FrameError::Length`] when it is shorter than its header or longer than the longest frame.
pub fn encode_frame(frame: &[u8], out: &mut Vec<Block>) -> Result<(), FrameError> {
    let (min, max) = (HEADER_BYTES, FRAME_BYTES_MAX - CHECK_BYTES);
    if !(min..=max).contains(&frame.len()) {
        return Err(FrameError::Length { got: frame.len(), min, max });
    }
    let mut bytes = frame.to_vec();
    bytes.resize(frame.len().max(FRAME_BYTES_MIN - CHECK_BYTES), 0);
    let check = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    out.push(Content::Start(PREAMBLE).block());
    let (words, rest) = bytes.as_chunks::<8>();
    out.extend(words.iter().map(|word| Content::Data(*word).block()));
    let tail = Tail::new(rest).expect("what is left after whole words is at most seven bytes");
    out.push(Content::Terminate(tail).block());
    Ok(())
}

/// Appends the gap that must follow the blocks of a frame.
pub fn append_gap(out: &mut Vec<Block>) {
    if let Some(Ok(Content::Terminate(tail))) = out.last().map(|block| block.content()) {
        let gap = gap_blocks(tail.bytes().len()) as usize;
        out.extend(std::iter::repeat_n(Block::IDLE, gap));
    }
}

/// The standard decoder and MAC: takes blocks in consecutive cycles and returns frames. It knows no
/// memory block.
///
/// After an error it resumes at the next /S/.
#[derive(Clone, Debug, Default)]
pub struct FrameDecoder {
    /// The bytes of the open frame.
    open: Option<Vec<u8>>,
}

impl FrameDecoder {
    /// Takes the next block, and returns the frame that it completes: destination address to
    /// payload, with padding.
    ///
    /// # Errors
    /// A block that cannot come here, a frame that is too short or too long, or a wrong check
    /// sequence.
    pub fn push(&mut self, block: Block) -> Result<Option<Vec<u8>>, FrameError> {
        let open = self.open.take();
        match (block.content()?, open) {
            (Content::Idle | Content::OrderedSet { .. }, None) => Ok(None),
            (Content::Start(preamble), None) => self.start(preamble),
            (Content::Start(preamble), Some(_)) => {
                self.start(preamble)?;
                Err(inside("/S/"))
            }
            (Content::Data(word), Some(bytes)) => self.extend(bytes, &word),
            (Content::Terminate(tail), Some(mut bytes)) => {
                bytes.extend_from_slice(tail.bytes());
                checked(bytes).map(Some)
            }
            (other, Some(_)) => Err(inside(other.name())),
            (other, None) => Err(between(other.name())),
        }
    }

    fn start(&mut self, preamble: [u8; 7]) -> Result<Option<Vec<u8>>, FrameError> {
        if preamble != PREAMBLE {
            return Err(FrameError::Preamble { got: preamble });
        }
        self.open = Some(Vec::new());
        Ok(None)
    }

    fn extend(&mut self, mut bytes: Vec<u8>, word: &[u8; 8]) -> Result<Option<Vec<u8>>, FrameError> {
        bytes.extend_from_slice(word);
        check_length(bytes.len().max(FRAME_BYTES_MIN))?;
        self.open = Some(bytes);
        Ok(None)
    }
}

fn check_length(got: usize) -> Result<(), FrameError> {
    let (min, max) = (FRAME_BYTES_MIN, FRAME_BYTES_MAX);
    if (min..=max).contains(&got) { Ok(()) } else { Err(FrameError::Length { got, min, max }) }
}

/// The frame without its check sequence, if that fits.
fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
    check_length(bytes.len())?;
    let (frame, check) = bytes.split_last_chunk::<CHECK_BYTES>().expect("the length is at least 64");
    let (got, expected) = (u32::from_le_bytes(*check), crc32fast::hash(frame));
    if got != expected {
        return Err(FrameError::Check { got, expected });
    }
    bytes.truncate(bytes.len() - CHECK_BYTES);
    Ok(bytes)
}

fn inside(got: &'static str) -> FrameError {
    FrameError::Unexpected { got, place: "inside a frame", allowed: "/D/ and /T/" }
}

fn between(got: &'static str) -> FrameError {
    FrameError::Unexpected { got, place: "between frames", allowed: "/E/, /O/ and /S/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(frame: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        encode_frame(frame, &mut blocks).unwrap();
        blocks
    }

    fn decoded(blocks: &[Block]) -> Vec<Result<Vec<u8>, FrameError>> {
        let mut decoder = FrameDecoder::default();
        blocks.iter().filter_map(|block| decoder.push(*block).transpose()).collect()
    }

    #[test]
    fn the_shortest_frame_takes_at_least_the_nine_blocks_of_the_paper() {
        // 3.2 counts /S/, seven /D/ and /T/. With the whole preamble in /S/, 64 bytes are eight /D/
        // and an empty /T/.
        let blocks = encoded(&[1; 60]);
        assert_eq!(blocks.len(), 10);
        assert_eq!(encoded(&[1; HEADER_BYTES]).len(), 10, "padded");
        assert_eq!(blocks[9].content(), Ok(Content::Terminate(Tail::new(&[]).unwrap())));
        // 84 byte times on the wire, rounded up to whole blocks.
        assert_eq!(frame_blocks(60).total(), 84u64.div_ceil(8));
    }

    #[test]
    fn the_gap_is_at_least_twelve_bytes_and_never_a_block_too_long() {
        for tail in 0..=7 {
            let bytes = (8 - tail) + 8 * gap_blocks(tail) as usize;
            assert!((GAP_BYTES..GAP_BYTES + 8).contains(&bytes), "/T{tail}/ is followed by a gap of {bytes} bytes");
            let mut blocks = encoded(&vec![0; 68 + tail]);
            let frame = blocks.len() as u64;
            append_gap(&mut blocks);
            assert_eq!(FrameBlocks { frame, gap: blocks.len() as u64 - frame }, frame_blocks(68 + tail));
        }
    }

    #[test]
    fn the_check_sequence_is_that_of_ethernet() {
        // CRC-32/ISO-HDLC has the check value 0xcbf43926 for these nine bytes in every catalogue.
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        let mut blocks = encoded(&[0x42; 100]);
        blocks[3].payload ^= 1;
        assert!(matches!(decoded(&blocks)[..], [Err(FrameError::Check { .. })]));
    }

    #[test]
    fn lengths_outside_the_standard_are_refused() {
        let mut out = Vec::new();
        for got in [HEADER_BYTES - 1, FRAME_BYTES_MAX - CHECK_BYTES + 1] {
            assert!(matches!(encode_frame(&vec![0; got], &mut out), Err(FrameError::Length { .. })));
        }
        assert_eq!(out, []);
        assert_eq!(encoded(&[0; FRAME_BYTES_MAX - CHECK_BYTES]).len() as u64, FRAME_BLOCKS_MAX);
        let blocks = encoded(&[0; 60]);
        let runt = [blocks[0], blocks[1], blocks[9]];
        assert!(matches!(decoded(&runt)[..], [Err(FrameError::Length { got: 8, .. })]));
        let endless: Vec<Block> = [blocks[0]].into_iter().chain(vec![blocks[1]; 1_128]).collect();
        assert!(matches!(decoded(&endless)[..], [Err(FrameError::Length { got: 9_024, .. })]));
    }

    #[test]
    fn a_frame_after_a_broken_one_comes_through() {
        let lost = encoded(&[1; 60]);
        let idle_inside = [&lost[..4], &[Block::IDLE], &encoded(&[2; 60])[..]].concat();
        assert_eq!(decoded(&idle_inside), [Err(inside("/E/")), Ok(vec![2; 60])]);
        let start_inside = [&lost[..4], &encoded(&[2; 60])[..]].concat();
        assert_eq!(decoded(&start_inside), [Err(inside("/S/")), Ok(vec![2; 60])]);
        let data_outside = [&lost[1..2], &encoded(&[2; 60])[..]].concat();
        assert_eq!(decoded(&data_outside), [Err(between("/D/ or /MD/")), Ok(vec![2; 60])]);
        let wrong_preamble = Content::Start([0; 7]).block();
        assert_eq!(decoded(&[wrong_preamble]), [Err(FrameError::Preamble { got: [0; 7] })]);
    }

    #[test]
    fn a_standard_decoder_refuses_memory_blocks() {
        let blocks = [Content::MemoryStart(0).block(), Content::Grant(0).block()];
        assert_eq!(decoded(&blocks), [Err(between("/MS/")), Err(between("/G/"))]);
    }

    proptest! {
        #[test]
        fn every_frame_survives_its_blocks(frames in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), HEADER_BYTES..300), 1..5,
        )) {
            let mut blocks = Vec::new();
            for frame in &frames {
                let before = blocks.len() as u64;
                encode_frame(frame, &mut blocks).unwrap();
                append_gap(&mut blocks);
                prop_assert_eq!(blocks.len() as u64 - before, frame_blocks(frame.len()).total());
            }
            let padded = frames.into_iter().map(|mut frame| { frame.resize(frame.len().max(60), 0); Ok(frame) });
            prop_assert_eq!(decoded(&blocks), padded.collect::<Vec<_>>());
        }

        #[test]
        fn garbage_never_panics(bits in proptest::collection::vec(0u128..1 << 66, 0..40)) {
            let mut decoder = FrameDecoder::default();
            for block in bits.into_iter().filter_map(|bits| Block::from_bits(bits).ok()) {
                prop_assert!(!matches!(decoder.push(block), Ok(Some(_))), "garbage passed the check sequence");
            }
        }
    }
}
