//! The 66-bit block: two synchronisation bits and 64 bits of payload (IEEE 802.3 clauses 49 and 82;
//! paper 3.2).
//!
//! Two types: [`Block`] is the checked view on 66 bits, [`Content`] is what they mean.
//!
//! # Block types
//!
//! Clause 49 gives its fifteen block types a Hamming distance of four: they are the [8, 4] extended
//! Hamming code without the word 0x00. That code leaves no byte at distance four from all its
//! words, so a PCS that keeps all fifteen has room for one more type, and EDM needs five. Clause 82
//! (40 and 100 Gb/s) lets frames start only at the first byte of a block, and so never sends the
//! four types for starts and ordered sets in the second half of a block (0x2d, 0x33, 0x55, 0x66).
//! We align starts in the same way at every rate; these four and 0x00 are EDM's, and the distance
//! of four holds for all sixteen. The price: a peer that speaks clause 49 (10 and 25 Gb/s) on an
//! EDM port has to start its frames at a block boundary.

/// Which of the two kinds of block the synchronisation bits announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sync {
    /// All 64 bits are data.
    Data,
    /// The first eight bits are a block type.
    Control,
}

impl Sync {
    /// The two bits, the first one on the line in bit 0 (802.3 49.2.4.3).
    const fn bits(self) -> u128 {
        match self {
            Sync::Data => 0b10,
            Sync::Control => 0b01,
        }
    }
}

/// 66 bits with valid synchronisation bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The kind of block.
    pub sync: Sync,
    /// Eight bytes, the first one on the line in the least significant byte: of a control block,
    /// that one is the type.
    pub payload: u64,
}

impl Block {
    /// The block that says nothing: type 0x1e and eight idle codes, which are zero.
    pub const IDLE: Block = Block { sync: Sync::Control, payload: BlockType::Idle.byte() as u64 };

    /// The 66 bits, the first one on the line in bit 0.
    pub const fn to_bits(self) -> u128 {
        self.sync.bits() | (self.payload as u128) << 2
    }

    /// Reads 66 bits.
    ///
    /// # Errors
    /// [`BlockError::Sync`] when the two first bits are equal, [`BlockError::Width`] when a bit
    /// above the 66th is set.
    #[inline]
    pub const fn from_bits(bits: u128) -> Result<Block, BlockError> {
        if bits >> super::timing::BLOCK_BITS != 0 {
            return Err(BlockError::Width { got: bits });
        }
        let payload = (bits >> 2) as u64;
        match bits & 0b11 {
            0b10 => Ok(Block { sync: Sync::Data, payload }),
            0b01 => Ok(Block { sync: Sync::Control, payload }),
            other => Err(BlockError::Sync { got: other as u8 }),
        }
    }

    /// What the block means.
    ///
    /// # Errors
    /// [`BlockError::Type`] for a type outside the sixteen, [`BlockError::Codes`] where a code
    /// other than idle or a padding bit is set.
    pub fn content(self) -> Result<Content, BlockError> {
        // Most blocks of a line.
        if self == Block::IDLE {
            return Ok(Content::Idle);
        }
        let bytes = self.payload.to_le_bytes();
        if self.sync == Sync::Data {
            return Ok(Content::Data(bytes));
        }
        let [kind, rest @ ..] = bytes;
        match BlockType::from_byte(kind)? {
            BlockType::Idle => Content::Idle.without_codes(self),
            BlockType::Start => Ok(Content::Start(rest)),
            BlockType::Terminate(length) => Content::Terminate(Tail::cut(rest, length)).without_codes(self),
            BlockType::OrderedSet => {
                Content::OrderedSet { bytes: [rest[0], rest[1], rest[2]], code: rest[3] & 0xf }.without_codes(self)
            }
            BlockType::MemoryStart => Ok(Content::MemoryStart(self.payload >> 8)),
            BlockType::MemoryEnd => Ok(Content::MemoryEnd(rest)),
            BlockType::MemorySingle => Ok(Content::MemorySingle(self.payload >> 8)),
            BlockType::Notification => Ok(Content::Notification(self.payload >> 8)),
            BlockType::Grant => Ok(Content::Grant(self.payload >> 8)),
        }
    }
}

/// The type byte of a control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockType {
    /// /E/: eight control codes.
    Idle,
    /// /S/ at the first byte.
    Start,
    /// /T0/ to /T7/: this many data bytes before the end. At most 7.
    Terminate(u8),
    /// /O/ at the first byte: link fault signalling.
    OrderedSet,
    /// /MS/: a memory message starts.
    MemoryStart,
    /// /MT/: it ends.
    MemoryEnd,
    /// /MST/: it starts and ends.
    MemorySingle,
    /// /N/: a demand notification.
    Notification,
    /// /G/: a grant.
    Grant,
}

/// /T0/ to /T7/ (802.3 figure 49-7).
const TERMINATE: [u8; 8] = [0x87, 0x99, 0xaa, 0xb4, 0xcc, 0xd2, 0xe1, 0xff];

impl BlockType {
    /// All sixteen.
    pub const ALL: [BlockType; 16] = [
        BlockType::Idle,
        BlockType::Start,
        BlockType::Terminate(0),
        BlockType::Terminate(1),
        BlockType::Terminate(2),
        BlockType::Terminate(3),
        BlockType::Terminate(4),
        BlockType::Terminate(5),
        BlockType::Terminate(6),
        BlockType::Terminate(7),
        BlockType::OrderedSet,
        BlockType::MemoryStart,
        BlockType::MemoryEnd,
        BlockType::MemorySingle,
        BlockType::Notification,
        BlockType::Grant,
    ];

    /// The byte on the line. 0x00 went to a type whose fields are invalid when all are zero, so
    /// that a dead line is no message.
    pub const fn byte(self) -> u8 {
        match self {
            BlockType::Idle => 0x1e,
            BlockType::Start => 0x78,
            BlockType::Terminate(length) => TERMINATE[length as usize],
            BlockType::OrderedSet => 0x4b,
            BlockType::MemoryStart => 0x33,
            BlockType::MemoryEnd => 0x2d,
            BlockType::MemorySingle => 0x00,
            BlockType::Notification => 0x55,
            BlockType::Grant => 0x66,
        }
    }

    /// The type of a byte from the line.
    ///
    /// # Errors
    /// [`BlockError::Type`] for the other 240 bytes.
    pub fn from_byte(byte: u8) -> Result<BlockType, BlockError> {
        OF_BYTE[byte as usize].ok_or(BlockError::Type { got: byte })
    }
}

/// The type of each byte.
static OF_BYTE: [Option<BlockType>; 256] = {
    let (mut types, mut at) = ([None; 256], 0);
    while at < BlockType::ALL.len() {
        types[BlockType::ALL[at].byte() as usize] = Some(BlockType::ALL[at]);
        at += 1;
    }
    types
};

/// The last bytes of a frame: up to seven before /T/.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tail {
    bytes: [u8; 7],
    length: u8,
}

impl Tail {
    /// The tail with these bytes, or `None` when there are more than seven.
    pub fn new(bytes: &[u8]) -> Option<Tail> {
        let mut tail = Tail { bytes: [0; 7], length: bytes.len() as u8 };
        tail.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(tail)
    }

    /// The first `length` (at most 7) of `bytes`.
    fn cut(bytes: [u8; 7], length: u8) -> Tail {
        let mut tail = Tail { bytes: [0; 7], length };
        tail.bytes[..length as usize].copy_from_slice(&bytes[..length as usize]);
        tail
    }

    /// The bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

/// What a block means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// /D/ or /MD/: eight bytes of a frame or of a memory message.
    Data([u8; 8]),
    /// /E/.
    Idle,
    /// /S/ and the seven bytes after it.
    Start([u8; 7]),
    /// /T/ and the bytes before it.
    Terminate(Tail),
    /// /O/: link fault signalling and the like.
    OrderedSet {
        /// The four-bit O code.
        code: u8,
        /// The three bytes after it.
        bytes: [u8; 3],
    },
    /// /MS/ and its 56 bits of fields.
    MemoryStart(u64),
    /// /MT/ and its seven bytes; the message's size says how many of them count.
    MemoryEnd([u8; 7]),
    /// /MST/ and its 56 bits of fields.
    MemorySingle(u64),
    /// /N/ and its 56 bits of fields.
    Notification(u64),
    /// /G/ and its 56 bits of fields.
    Grant(u64),
}

impl Content {
    /// The block that means this. Fields wider than their place (56 bits, 4 bits) are cut.
    pub fn block(self) -> Block {
        match self {
            Content::Data(bytes) => Block { sync: Sync::Data, payload: u64::from_le_bytes(bytes) },
            Content::Idle => Block::IDLE,
            Content::Start(bytes) => control(BlockType::Start, seven(bytes)),
            Content::Terminate(tail) => control(BlockType::Terminate(tail.length), seven(tail.bytes)),
            Content::OrderedSet { code, bytes: [a, b, c] } => {
                control(BlockType::OrderedSet, seven([a, b, c, code & 0xf, 0, 0, 0]))
            }
            Content::MemoryStart(fields) => control(BlockType::MemoryStart, fields),
            Content::MemoryEnd(bytes) => control(BlockType::MemoryEnd, seven(bytes)),
            Content::MemorySingle(fields) => control(BlockType::MemorySingle, fields),
            Content::Notification(fields) => control(BlockType::Notification, fields),
            Content::Grant(fields) => control(BlockType::Grant, fields),
        }
    }

    /// The paper's name for such a block, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Content::Data(_) => "/D/ or /MD/",
            Content::Idle => "/E/",
            Content::Start(_) => "/S/",
            Content::Terminate(_) => "/T/",
            Content::OrderedSet { .. } => "/O/",
            Content::MemoryStart(_) => "/MS/",
            Content::MemoryEnd(_) => "/MT/",
            Content::MemorySingle(_) => "/MST/",
            Content::Notification(_) => "/N/",
            Content::Grant(_) => "/G/",
        }
    }

    /// Itself, if `block` carries nothing beside it: every other code is idle, which is zero, as is
    /// padding.
    fn without_codes(self, block: Block) -> Result<Content, BlockError> {
        if self.block() == block { Ok(self) } else { Err(BlockError::Codes { got: block.payload }) }
    }
}

fn seven([a, b, c, d, e, f, g]: [u8; 7]) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, g, 0])
}

fn control(kind: BlockType, fields: u64) -> Block {
    Block { sync: Sync::Control, payload: kind.byte() as u64 | fields << 8 }
}

/// Reason why 66 bits are no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Neither data nor control.
    #[error("synchronisation bits {got:#04b}: allowed are 0b10 (data) and 0b01 (control)")]
    Sync {
        /// The two bits.
        got: u8,
    },
    /// More than 66 bits.
    #[error("{got:#x} has more than the 66 bits of a block")]
    Width {
        /// The number.
        got: u128,
    },
    /// No such type.
    #[error("block type {got:#04x} is not one of the sixteen in use")]
    Type {
        /// The byte.
        got: u8,
    },
    /// A control code other than idle, or a padding bit.
    #[error("control block {got:#018x} holds a code other than idle or a padding bit that is set")]
    Codes {
        /// The payload, type byte last.
        got: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Clause 49 has these too; see the module's documentation for why they are EDM's here.
    const SECOND_HALF_TYPES: [u8; 4] = [0x2d, 0x33, 0x55, 0x66];

    #[test]
    fn any_two_types_differ_in_four_bits_or_more() {
        for (index, one) in BlockType::ALL.iter().enumerate() {
            for other in &BlockType::ALL[index + 1..] {
                let distance = (one.byte() ^ other.byte()).count_ones();
                assert!(distance >= 4, "{one:?} and {other:?} differ in {distance} bits");
            }
        }
    }

    #[test]
    fn no_seventeenth_type_would_fit() {
        let far_from_all = |byte: u8| BlockType::ALL.iter().all(|kind| (kind.byte() ^ byte).count_ones() >= 4);
        assert_eq!((0..=255).filter(|byte| far_from_all(*byte)).count(), 0);
    }

    #[test]
    fn edm_takes_the_types_that_frames_aligned_to_blocks_leave_free() {
        use BlockType::{Grant, MemoryEnd, MemorySingle, MemoryStart, Notification};
        let mut taken = [MemoryStart, MemoryEnd, Notification, Grant].map(BlockType::byte);
        taken.sort();
        assert_eq!(taken, SECOND_HALF_TYPES);
        assert_eq!(MemorySingle.byte(), 0);
    }

    #[test]
    fn the_synchronisation_bits_are_those_of_the_standard() {
        // 802.3: data is 0 then 1 on the line, control is 1 then 0.
        assert_eq!(Content::Data([0; 8]).block().to_bits(), 0b10);
        assert_eq!(Block::IDLE.to_bits(), 0b01 | 0x1e << 2);
        assert_eq!(Block::from_bits(0b11), Err(BlockError::Sync { got: 0b11 }));
        assert_eq!(Block::from_bits(1 << 66 | 1), Err(BlockError::Width { got: 1 << 66 | 1 }));
    }

    #[test]
    fn a_code_other_than_idle_is_an_error() {
        let error_codes = Block { sync: Sync::Control, payload: 0x1e | 0x1e << 8 };
        assert_eq!(error_codes.content(), Err(BlockError::Codes { got: 0x1e1e }));
        let padded_end = Block { sync: Sync::Control, payload: 0x99 | 0x42 << 8 | 1 << 16 };
        assert_eq!(padded_end.content(), Err(BlockError::Codes { got: padded_end.payload }));
        assert_eq!(Tail::new(&[0; 8]), None);
    }

    fn content() -> impl Strategy<Value = Content> {
        let fields = 0u64..1 << 56;
        prop_oneof![
            any::<[u8; 8]>().prop_map(Content::Data),
            Just(Content::Idle),
            any::<[u8; 7]>().prop_map(Content::Start),
            proptest::collection::vec(any::<u8>(), 0..=7)
                .prop_map(|bytes| Content::Terminate(Tail::new(&bytes).unwrap())),
            (0u8..16, any::<[u8; 3]>()).prop_map(|(code, bytes)| Content::OrderedSet { code, bytes }),
            fields.clone().prop_map(Content::MemoryStart),
            any::<[u8; 7]>().prop_map(Content::MemoryEnd),
            fields.clone().prop_map(Content::MemorySingle),
            fields.clone().prop_map(Content::Notification),
            fields.prop_map(Content::Grant),
        ]
    }

    proptest! {
        #[test]
        fn every_content_survives_its_66_bits(content in content()) {
            let bits = content.block().to_bits();
            prop_assert_eq!(Block::from_bits(bits).unwrap().content(), Ok(content));
        }

        #[test]
        fn any_bits_are_a_block_that_writes_the_same_bits_or_an_error(bits in 0u128..1 << 66) {
            if let Ok(block) = Block::from_bits(bits) {
                prop_assert_eq!(block.to_bits(), bits);
                if let Ok(content) = block.content() {
                    prop_assert_eq!(content.block(), block);
                }
            }
        }
    }
}
