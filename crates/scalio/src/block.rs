//! A block of the index: one for all keys of a hash, in memory that clients read and change from
//! afar.

use crate::{Key, LimitError, SegmentPointer, SlotWord, Version};
use base::{Span, Time};

/// Second of the store's clock at which something is forgotten; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(pub u32);

impl Expiry {
    /// When something is forgotten that is stored at `now` for so long, rounded up to a whole
    /// second, so that nothing is forgotten too early.
    ///
    /// # Errors
    /// When that is beyond the store's clock.
    pub fn after(now: Time, lifetime: Lifetime, start_second: u32) -> Result<Expiry, LimitError> {
        let end = u128::from(now.as_ps()) + u128::from(lifetime.0) * u128::from(MILLISECOND);
        let second = end.div_ceil(SECOND.into()) + u128::from(start_second);
        let second = u32::try_from(second).ok().filter(|second| *second > 0);
        second.map(Expiry).ok_or(LimitError::TimeToLive { got: lifetime })
    }

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
        let end = u64::from(self.0.saturating_sub(start_second)) * 1_000;
        Some(Left::For(Lifetime(end.saturating_sub(now.as_ps().div_ceil(MILLISECOND)))))
    }
}

/// In picoseconds.
const MILLISECOND: u64 = Span::ms(1).as_ps();
const SECOND: u64 = Span::secs(1).as_ps();

/// How long something is kept, in milliseconds: a [`Span`] ends after 213 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime(pub u64);

impl Lifetime {
    /// So many seconds.
    pub const fn secs(count: u32) -> Lifetime {
        Lifetime(count as u64 * 1_000)
    }
}

/// How long a key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Until it is deleted.
    Ever,
    /// So long.
    For(Lifetime),
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
        assert_eq!(Expiry(106).left(last, 100), Some(Left::For(Lifetime(0))));
        assert_eq!(Expiry(106).left(at(5) + Span::ms(1), 100), Some(Left::For(Lifetime(999))));
        assert_eq!((Expiry(106).left(at(6), 100), Expiry(106).is_past(at(6), 100)), (None, true));
        assert_eq!(Expiry(0).left(at(6), 100), Some(Left::Ever));
        // The clock of the store begins behind it, and long before it.
        assert_eq!(Expiry(99).left(at(0), 100), None);
        assert_eq!(Expiry(u32::MAX).left(at(0), 0), Some(Left::For(Lifetime::secs(u32::MAX))));
    }

    #[test]
    fn a_time_to_live_is_rounded_up_and_ends_with_the_store_s_clock() {
        let after = |now, lifetime, start| Expiry::after(now, lifetime, start).map(|expiry| expiry.0);
        assert_eq!(after(Time::secs(5), Lifetime(1_000), 100), Ok(106));
        assert_eq!(after(Time::secs(5), Lifetime(1_001), 100), Ok(107));
        assert_eq!(after(Time::secs(5) + Span::ps(1), Lifetime(1_000), 100), Ok(107));
        let (now, start) = (Time::secs(10), 4_000_000_000);
        let most = Lifetime::secs(u32::MAX - start - 10);
        let got = Lifetime(most.0 + 1);
        assert_eq!(after(now, most, start), Ok(u32::MAX));
        assert_eq!(after(now, got, start), Err(LimitError::TimeToLive { got }));
        let got = Lifetime(u64::MAX);
        assert_eq!(after(Time::ps(u64::MAX), got, u32::MAX), Err(LimitError::TimeToLive { got }));
    }
}
