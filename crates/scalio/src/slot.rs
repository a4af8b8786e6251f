//! The word of a slot: the only shared memory that more than one place changes, and only by
//! compare-and-swap.
//!
//! | bits | content |
//! | --- | --- |
//! | 0 | the paper's flag `complete` |
//! | 1 | the paper's flag `occupied` |
//! | 2..14 | fingerprint of the key |
//! | 14..32 | deadline of a filler's lease, in units of 67 us, modulo 2^18 (17.6 s) |
//! | 32..56 | changes of this slot in this epoch, modulo 2^24 |
//! | 56..64 | epoch of the server, modulo 2^8 |
//!
//! A version (the last two) recurs after 2^24 changes of one slot in one epoch. That is harmless to
//! a client that only takes the slot away: the slot is in the same state as when it was read. It is
//! harmful if a filler's payload or its last compare-and-swap arrives so late that the slot is
//! filled under the same version again (H19 in `docs/concepts/one-sided-caches.md`). Each change is
//! a read and a write of one word over PCIe, at least 0.3 us (ours), so that takes 5 s. A filler
//! sends nothing once its lease has ended by its own clock, and a reliable connection gives up
//! after a second or two. After a crash of the server all versions are new.

use base::{Span, Time};
use std::fmt;

/// 2^26 ps: the unit of leases.
pub const LEASE_UNIT: Span = Span::ps(1 << 26);
/// The longest lease that a word can distinguish from an expired one.
pub const LEASE_MAX: Span = Span::ps((1 << 26) * (LEASE_CYCLE as u64 / 2 - 1));
const LEASE_CYCLE: u32 = 1 << 18;
const COUNT_BITS: u32 = 24;

/// Which change of a slot: epoch in the high 8 bits, count in the low 24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// Before the first change in `epoch`.
    pub const fn first(epoch: u32) -> Version {
        Version(epoch << COUNT_BITS)
    }
    /// After one more change.
    pub const fn next(self) -> Version {
        let count = (self.0 + 1) & ((1 << COUNT_BITS) - 1);
        Version(self.0 >> COUNT_BITS << COUNT_BITS | count)
    }
}

/// State of a slot. The bits are the paper's flags (5.2, Figure 9), with its states A, B, C and D
/// in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Invalidated while it was filled, or just locked (D). The paper's protocol alone has it.
    Dead,
    /// Free (A).
    Free,
    /// Somebody fills it (B).
    Filling,
    /// It holds a key and its value (C).
    Valid,
}

/// The word.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotWord(pub u64);

impl SlotWord {
    /// A free slot that was never used in `epoch`.
    pub const fn fresh(epoch: u32) -> SlotWord {
        SlotWord::assemble(SlotState::Free, 0, 0, Version::first(epoch))
    }

    /// Returns its purpose.
    pub const fn state(self) -> SlotState {
        match self.0 & 3 {
            0 => SlotState::Dead,
            1 => SlotState::Free,
            2 => SlotState::Filling,
            _ => SlotState::Valid,
        }
    }
    /// Of the key that it holds or will hold; means nothing when it is free.
    pub const fn fingerprint(self) -> u16 {
        (self.0 >> 2 & 0xfff) as u16
    }
    /// Which change brought it here.
    pub const fn version(self) -> Version {
        Version((self.0 >> 32) as u32)
    }

    /// Taken by a filler whose lease ends at `deadline`.
    pub fn fill(self, fingerprint: u16, deadline: Time) -> SlotWord {
        SlotWord::assemble(SlotState::Filling, fingerprint, lease_stamp(deadline), self.version().next())
    }
    /// Filled: the same version, which is that of the payload.
    pub const fn validate(self) -> SlotWord {
        SlotWord::assemble(SlotState::Valid, self.fingerprint(), 0, self.version())
    }
    /// Given back or invalidated.
    pub const fn free(self) -> SlotWord {
        SlotWord::assemble(SlotState::Free, 0, 0, self.version().next())
    }
    /// Returns whether the lease of a filler ended before `now`. An answer that is wrong costs time
    /// and nothing else.
    pub fn lease_ended(self, now: Time) -> bool {
        let since = lease_stamp(now).wrapping_sub(self.lease()) % LEASE_CYCLE;
        since != 0 && since < LEASE_CYCLE / 2
    }
    /// Returns whether it holds, or will hold, a key of that fingerprint.
    pub fn is_of(self, fingerprint: u16) -> bool {
        matches!(self.state(), SlotState::Filling | SlotState::Valid) && self.fingerprint() == fingerprint
    }

    /// The same word with other flags: the paper's protocol stores them alone, each for itself.
    pub const fn with_flags(self, occupied: Option<bool>, complete: Option<bool>) -> SlotWord {
        let word = match occupied {
            Some(set) => self.0 & !2 | (set as u64) << 1,
            None => self.0,
        };
        match complete {
            Some(set) => SlotWord(word & !1 | set as u64),
            None => SlotWord(word),
        }
    }
    /// The same word with the deadline of a lease: the paper's protocol stores it beside the flags.
    pub fn with_lease(self, deadline: Time) -> SlotWord {
        SlotWord(self.0 & !(u64::from(LEASE_CYCLE - 1) << 14) | u64::from(lease_stamp(deadline)) << 14)
    }

    const fn lease(self) -> u32 {
        (self.0 >> 14) as u32 % LEASE_CYCLE
    }

    const fn assemble(state: SlotState, fingerprint: u16, lease: u32, version: Version) -> SlotWord {
        let state = match state {
            SlotState::Dead => 0,
            SlotState::Free => 1,
            SlotState::Filling => 2,
            SlotState::Valid => 3,
        };
        SlotWord(state | (fingerprint as u64) << 2 | (lease as u64) << 14 | (version.0 as u64) << 32)
    }
}

/// Rounded up: a lease is never shorter than requested.
fn lease_stamp(time: Time) -> u32 {
    (time.as_ps().div_ceil(LEASE_UNIT.as_ps()) % u64::from(LEASE_CYCLE)) as u32
}

impl fmt::Debug for SlotWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:#x}, version {:#x})", self.state(), self.fingerprint(), self.version().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_what_it_is_made_of() {
        let free = SlotWord::fresh(3);
        let filling = free.fill(0xabc, Time::ms(5));
        assert_eq!((filling.state(), filling.fingerprint()), (SlotState::Filling, 0xabc));
        assert_eq!(filling.version(), free.version().next());
        assert_eq!(filling.validate().version(), filling.version());
        assert_eq!(filling.validate().state(), SlotState::Valid);
        assert!(filling.is_of(0xabc) && filling.validate().is_of(0xabc) && !filling.free().is_of(0xabc));
    }

    #[test]
    fn no_two_words_of_a_slot_s_life_are_equal() {
        let mut word = SlotWord::fresh(0);
        let mut seen = vec![word];
        for _ in 0..100 {
            let filling = word.fill(1, Time::ms(1));
            seen.extend([filling, filling.validate(), filling.free()]);
            word = filling.free();
        }
        let lives = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), lives);
    }

    #[test]
    fn a_lease_ends_at_its_deadline_and_the_clock_may_wrap() {
        for start in [Time::ZERO, Time::ms(17_500), Time::secs(400)] {
            let deadline = start + Span::ms(10);
            let word = SlotWord::fresh(0).fill(1, deadline);
            assert!(!word.lease_ended(start));
            assert!(!word.lease_ended(deadline));
            assert!(word.lease_ended(deadline + LEASE_UNIT + LEASE_UNIT));
        }
        let longest = SlotWord::fresh(0).fill(1, Time::ZERO + LEASE_MAX);
        assert!(!longest.lease_ended(Time::ZERO));
    }

    #[test]
    fn versions_wrap_within_their_epoch() {
        let last = Version((7 << COUNT_BITS) | ((1 << COUNT_BITS) - 1));
        assert_eq!(last.next(), Version::first(7));
    }

    #[test]
    fn the_paper_s_flags_are_stored_each_for_itself() {
        let valid = SlotWord::fresh(0).fill(9, Time::ZERO).validate();
        assert_eq!(valid.with_flags(Some(false), None).state(), SlotState::Free);
        assert_eq!(valid.with_flags(None, Some(false)).state(), SlotState::Filling);
        assert_eq!(valid.with_flags(Some(false), Some(false)).state(), SlotState::Dead);
        assert_eq!(valid.with_flags(Some(false), None).with_flags(Some(true), None), valid);
    }
}
