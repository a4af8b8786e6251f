//! The hash table of Ditto: buckets of 8 slots of 48 bytes. Each has a word that only
//! compare-and-swap changes, and the data of an object for its replacement policies. (Its source
//! keeps fingerprint, length, pointer; hash of the key, insertion, last access, a counter,
//! frequency.)

use crate::Key;
use base::Time;

/// Slots of a bucket.
pub const SLOTS: usize = 8;
/// Bytes of a slot.
pub const SLOT_BYTES: u32 = 48;
/// Bytes of what a slot keeps for replacement: all but its word.
pub const METADATA_BYTES: u32 = SLOT_BYTES - 8;
const POINTER_BITS: u32 = 48;

/// The word of a slot: fingerprint in the high 8 bits, then length in units of 64 bytes, then the
/// address of the object plus one in 48 bits. All zeros: empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectWord(pub u64);

impl ObjectWord {
    /// An empty slot.
    pub const EMPTY: ObjectWord = ObjectWord(0);

    /// The word of an object of `bytes` bytes at `address`, which must be less than 2^48 - 1.
    /// Longer ones than 16,320 bytes are said to be of 16,320.
    pub fn new(fingerprint: u8, bytes: u32, address: u64) -> ObjectWord {
        let units = u64::from(bytes.div_ceil(64).min(255));
        ObjectWord(u64::from(fingerprint) << 56 | units << POINTER_BITS | (address + 1))
    }
    /// The part of a key's hash that a word keeps.
    pub fn fingerprint_of(key: &Key) -> u8 {
        (key.place(1).fingerprint & 0xff) as u8
    }
    /// Returns whether nothing is kept.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Of the key; keys of a bucket may share one. Means nothing when it is empty.
    pub const fn fingerprint(self) -> u8 {
        (self.0 >> 56) as u8
    }
    /// Where the object lies; `None` when it is empty.
    pub const fn address(self) -> Option<u64> {
        (self.0 & ((1 << POINTER_BITS) - 1)).checked_sub(1)
    }
    /// Returns whether an object of that fingerprint is kept.
    pub const fn is_of(self, fingerprint: u8) -> bool {
        !self.is_empty() && self.fingerprint() == fingerprint
    }
}

/// What replacement is decided by. Written without any order against the word, so that for a moment
/// it may be that of the slot's last object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Time at which the object was put in.
    pub inserted: Time,
    /// Time of the last read, all that LRU needs.
    pub accessed: Time,
    /// Number of insertions and changes. Reads are not counted: Ditto counts them for other
    /// policies, and LRU does not need them.
    pub frequency: u64,
}

/// A slot as it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Changed by compare-and-swap alone.
    pub word: ObjectWord,
    /// Changed by plain writes.
    pub metadata: Metadata,
}

/// Which slot of the table: its bucket times [`SLOTS`], plus its place there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(pub u64);

impl SlotId {
    pub(super) fn of(bucket: u32, place: usize) -> SlotId {
        SlotId(u64::from(bucket) * SLOTS as u64 + place as u64)
    }
}

/// The least recently used of `candidates`; the first of those that are equally old.
pub(super) fn oldest<T: Copy>(candidates: impl IntoIterator<Item = (T, Slot)>) -> Option<(T, Slot)> {
    candidates.into_iter().min_by_key(|(_, slot)| slot.metadata.accessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_what_it_is_made_of_and_address_0_is_not_empty() {
        let word = ObjectWord::new(0xab, 88, 0);
        assert!(!word.is_empty() && word.is_of(0xab) && !word.is_of(0xac));
        assert_eq!(word.address(), Some(0));
        assert_eq!(ObjectWord::new(0, 65, (1 << 48) - 2).address(), Some((1 << 48) - 2));
        assert_eq!((ObjectWord::EMPTY.address(), ObjectWord::EMPTY.is_of(0)), (None, false));
    }
}
