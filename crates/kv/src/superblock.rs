//! The first bytes of a store's file: what the store is like, and the seal of its checksums.

use scalio::layout::Seal;

/// Bytes in front of the first zone.
pub const SUPERBLOCK_BYTES: u64 = 4096;
const MAGIC: [u8; 8] = *b"RwKvSto2";
/// Of stores whose marks are in zones of records, and whose zones are filled again without being
/// forgotten: a restart would misread them.
const MAGIC_EARLIER: [u8; 8] = *b"RwKvSto1";
const LENGTH: usize = 28;

/// What cannot change without losing the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks of the index.
    pub blocks: u32,
    /// Zones.
    pub zones: u32,
    /// Sectors of a zone.
    pub zone_sectors: u32,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: nothing was ever stored.
    New,
    /// A store.
    Store {
        /// What it is like.
        shape: Shape,
        /// Its seal.
        seal: Seal,
    },
    /// A store of an earlier version.
    Earlier,
    /// Something else.
    Foreign,
}

/// The superblock as bytes.
pub fn encode(shape: &Shape, seal: Seal) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for field in [shape.blocks, shape.zones, shape.zone_sectors, seal.0] {
        bytes.extend(field.to_le_bytes());
    }
    let sum = crc32c::crc32c(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes.resize(SUPERBLOCK_BYTES as usize, 0);
    bytes
}

/// What the first bytes of a file say.
pub fn decode(bytes: &[u8]) -> Found {
    if bytes.iter().all(|byte| *byte == 0) {
        return Found::New;
    }
    if bytes.starts_with(&MAGIC_EARLIER) {
        return Found::Earlier;
    }
    let Some(head) = bytes.get(..LENGTH).filter(|head| head.starts_with(&MAGIC)) else { return Found::Foreign };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if crc32c::crc32c(&head[..LENGTH - 4]) != word(LENGTH - 4) {
        return Found::Foreign;
    }
    Found::Store { shape: Shape { blocks: word(8), zones: word(12), zone_sectors: word(16) }, seal: Seal(word(20)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_survives_and_a_changed_byte_does_not_pass() {
        let shape = Shape { blocks: 1, zones: 2, zone_sectors: 3 };
        let mut bytes = encode(&shape, Seal(4));
        assert_eq!(decode(&bytes), Found::Store { shape, seal: Seal(4) });
        bytes[13] ^= 1;
        assert_eq!(decode(&bytes), Found::Foreign);
        assert_eq!(decode(&[0; 4096]), Found::New);
        assert_eq!(decode(b"other"), Found::Foreign);
        bytes[7] = b'1';
        assert_eq!(decode(&bytes), Found::Earlier);
    }
}
