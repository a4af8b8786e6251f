//! Keys, and where they belong.

use crate::LimitError;
use base::mix;
use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU8;

/// Bytes of the longest key: the paper's (6.1), and what an item of a segment has room for.
pub const KEY_BYTES_MAX: usize = 16;
/// Bits of a fingerprint in a slot's word.
pub const FINGERPRINT_BITS: u32 = 12;

/// A key of 1 to 16 bytes, any bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; KEY_BYTES_MAX],
    /// Never none, so that a slot with or without a key is as long as a cache line.
    length: NonZeroU8,
}

/// Where a key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its block, of all blocks of the store.
    pub block: u32,
    /// What a slot's word says of it; keys of a block may share one.
    pub fingerprint: u16,
}

impl Key {
    /// Fails on no bytes and on more than [`KEY_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Key, LimitError> {
        let length = u8::try_from(bytes.len()).ok().and_then(NonZeroU8::new);
        let Some(length) = length.filter(|_| bytes.len() <= KEY_BYTES_MAX) else {
            return Err(LimitError::Key { got: bytes.len() });
        };
        let mut key = Key { bytes: [0; KEY_BYTES_MAX], length };
        key.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(key)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length.get())]
    }

    /// Sixteen bytes of which the unused ones are 0: the form in slots, items and records.
    pub(crate) fn padded(&self) -> &[u8; KEY_BYTES_MAX] {
        &self.bytes
    }

    /// Where it belongs in a store of `blocks` blocks, at least one.
    pub fn place(&self, blocks: u32) -> Place {
        let hash = self.hash();
        let block = (u128::from(hash) * u128::from(blocks)) >> 64;
        Place { block: block as u32, fingerprint: (hash & ((1 << FINGERPRINT_BITS) - 1)) as u16 }
    }

    /// High bits choose the block and low ones are the fingerprint, so that the two say different
    /// things.
    fn hash(&self) -> u64 {
        let (low, high) = self.bytes.split_at(8);
        let word = |half: &[u8]| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        mix(word(low) ^ mix(word(high).wrapping_add(u64::from(self.length.get()))))
    }
}

/// Byte by byte, a shorter one before those that begin with it.
impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        let number = |key: &Key| u128::from_be_bytes(key.bytes);
        number(self).cmp(&number(other)).then(self.length.cmp(&other.length))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_16_bytes() {
        assert_eq!(Key::new(b""), Err(LimitError::Key { got: 0 }));
        assert_eq!(Key::new(&[7; 16]).map(|key| key.as_bytes().len()), Ok(16));
        assert_eq!(Key::new(&[7; 17]), Err(LimitError::Key { got: 17 }));
    }

    #[test]
    fn keys_that_differ_in_trailing_zeros_are_not_the_same() {
        let [short, long] = [Key::new(b"a"), Key::new(b"a\0")];
        assert_ne!(short, long);
        assert_ne!(short.map(|key| key.place(1 << 30)), long.map(|key| key.place(1 << 30)));
    }

    #[test]
    fn keys_are_in_the_order_of_their_bytes() {
        let keys = [&b"a"[..], b"a\0", b"a\0b", b"aa", b"b", b"b\xff", &[0xff; 16]].map(Key::new);
        let keys = keys.map(|key| key.expect("short"));
        assert!(keys.is_sorted_by(|first, second| first < second && first.as_bytes() < second.as_bytes()));
    }

    #[test]
    fn blocks_and_fingerprints_are_spread_evenly() {
        let mut blocks = [0u32; 16];
        let mut prints = [0u32; 1 << FINGERPRINT_BITS];
        for number in 0..1u32 << 16 {
            let place = Key::new(format!("user{number}").as_bytes()).expect("short").place(16);
            blocks[place.block as usize] += 1;
            prints[usize::from(place.fingerprint)] += 1;
        }
        // A bin of mean m has a standard deviation of sqrt(m).
        assert!(blocks.iter().all(|count| count.abs_diff(4096) < 5 * 64), "{blocks:?}");
        assert!(prints.iter().all(|count| count.abs_diff(16) < 7 * 4), "{prints:?}");
    }
}
