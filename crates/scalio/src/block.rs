//! A block of the index: one for all keys of a hash, in memory that clients read and change from
//! afar.

use crate::{Key, SegmentPointer, SlotWord, Version};
use base::{Span, Time};

/// Second of the store's clock at which something is forgotten; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(pub u32);

impl Expiry {
    /// Returns whether it is forgotten at `now`, for a program whose time zero is `start_second` of
    /// the store's clock.
    pub fn is_past(self, now: Time, start_second: u32) -> bool {
        self.0 != 0 && now.as_ps() / SECOND + u64::from(start_second) >= u64::from(self.0)
    }

    /// How long it is there from `now` on; `None` where it is forgotten.
    pub fn left(self, now: Time, start_second: u32) -> Option<Left> {
        if self.0 == 0 {
            return Some(Left::Ever);
        }
        if self.is_past(now, start_second) {
            return None;
        }
        // A clock that was set back by years leaves more than a span holds.
        let end = u64::from(self.0.saturating_sub(start_second)).saturating_mul(SECOND);
        Some(Left::For(Span::ps(end.saturating_sub(now.as_ps()))))
    }
}

/// In picoseconds.
const SECOND: u64 = Span::secs(1).as_ps();

/// How long a key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Until it is deleted.
    Ever,
    /// So long.
    For(Span),
}

/// The header of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHeader {
    /// Of the server: one more after each restart.
    pub epoch: u32,
    /// Where the keys of the block are listed on flash; `None` where there are none yet. One
    /// aligned word, so it is never torn.
    pub segment: Option<SegmentPointer>,
}

/// A key with its value, as a filler wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<V> {
    /// Version of the slot's word under which it was written: another version in the word means
    /// that it is not the word's.
    pub version: Version,
    /// The key.
    pub key: Key,
    /// Its value.
    pub value: V,
    /// When it is forgotten.
    pub expiry: Expiry,
}

/// One slot as a read found it. The word and the payload may be of different moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<V> {
    /// Its word.
    pub word: SlotWord,
    /// Time at which a client last used it.
    pub last_use: Time,
    /// What it holds; `None` where it was never written, or the bytes do not agree with their
    /// checksum.
    pub payload: Option<Payload<V>>,
}

impl<V> Slot<V> {
    /// A slot that was never used in `epoch`.
    pub const fn fresh(epoch: u32) -> Slot<V> {
        Slot { word: SlotWord::fresh(epoch), last_use: Time::ZERO, payload: None }
    }
    /// Its payload, if that belongs to its word.
    pub fn whole(&self) -> Option<&Payload<V>> {
        self.payload.as_ref().filter(|payload| payload.version == self.word.version())
    }
}

/// One block as a read found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<V> {
    /// The header.
    pub header: BlockHeader,
    /// Its slots.
    pub slots: Vec<Slot<V>>,
}

impl<V> Block<V> {
    /// A block of `slots` unused slots.
    pub fn fresh(header: BlockHeader, slots: usize) -> Block<V> {
        Block { header, slots: (0..slots).map(|_| Slot::fresh(header.epoch)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_ends_at_its_second_and_never_overflows() {
        let at = |seconds: u64| Time::secs(seconds);
        let last = at(5) + Span::secs(1) - Span::ps(1);
        assert_eq!(Expiry(106).left(last, 100), Some(Left::For(Span::ps(1))));
        assert_eq!((Expiry(106).left(at(6), 100), Expiry(106).is_past(at(6), 100)), (None, true));
        assert_eq!(Expiry(0).left(at(6), 100), Some(Left::Ever));
        // The clock of the store begins behind it, and long before it.
        assert_eq!(Expiry(99).left(at(0), 100), None);
        assert_eq!(Expiry(u32::MAX).left(at(0), 0), Some(Left::For(Span::ps(u64::MAX))));
    }
}
