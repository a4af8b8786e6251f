//! Limits log lines that many peers, or a failing disk, cause: some of each kind at once, then one
//! a second, with the number of suppressed lines.

use base::{Span, Time};

/// Time between two lines of a kind.
const GAP: Span = Span::secs(1);

/// Lines of a kind that may come at once where each tells of another peer.
pub const AT_ONCE: u64 = 10;

/// Lines of one kind, of which so many may come at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throttle<const BURST: u64 = 1> {
    /// The time by which the lines so far would have been written one a second.
    next: Option<Time>,
    left_out: u64,
}

impl<const BURST: u64> Throttle<BURST> {
    /// How far lines may be ahead.
    const AHEAD: Span = Span::secs(BURST - 1);

    /// Returns how many lines were suppressed before this one, or `None` if this one is suppressed.
    pub fn admit(&mut self, now: Time) -> Option<u64> {
        let next = self.next.map_or(now, |next| next.max(now));
        if next > now + Self::AHEAD {
            self.left_out += 1;
            return None;
        }
        self.next = Some(next + GAP);
        Some(std::mem::take(&mut self.left_out))
    }

    /// Calls `line` to write one, with the number of lines suppressed before it, or suppresses it.
    pub fn tell(&mut self, now: Time, line: impl FnOnce(u64)) {
        if let Some(left_out) = self.admit(now) {
            line(left_out);
        }
    }

    /// Returns the number of suppressed lines, once a line about them is allowed.
    pub fn take_due(&mut self, now: Time) -> Option<u64> {
        if self.next_due()? > now { None } else { self.admit(now) }
    }

    /// Time at which [`Self::take_due`] has something to report.
    pub fn next_due(&self) -> Option<Time> {
        let next = self.next.filter(|_| self.left_out > 0)?;
        Some(Time::ZERO + next.saturating_since(Time::ZERO + Self::AHEAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_is_written_and_the_others_are_counted() {
        let mut throttle = Throttle::<1>::default();
        let start = Time::us(5);
        assert_eq!(throttle.admit(start), Some(0));
        assert_eq!(throttle.next_due(), None);
        assert_eq!((throttle.admit(start), throttle.admit(start + Span::ms(999))), (None, None));
        assert_eq!(throttle.next_due(), Some(start + GAP));
        assert_eq!(throttle.take_due(start + Span::ms(999)), None);
        assert_eq!(throttle.take_due(start + GAP), Some(2));
        assert_eq!(throttle.admit(start + GAP), None, "the sum was a line too");
        assert_eq!(throttle.admit(start + GAP + GAP), Some(1));
        assert_eq!(throttle.next_due(), None);
    }

    #[test]
    fn some_lines_may_come_at_once_and_the_next_ones_each_second() {
        let mut throttle = Throttle::<3>::default();
        let start = Time::us(5);
        let at = |throttle: &mut Throttle<3>, ms| [(); 2].map(|()| throttle.admit(start + Span::ms(ms)));
        assert_eq!(at(&mut throttle, 0), [Some(0), Some(0)]);
        assert_eq!(at(&mut throttle, 0), [Some(0), None]);
        assert_eq!(throttle.next_due(), Some(start + GAP));
        assert_eq!(at(&mut throttle, 999), [None, None]);
        assert_eq!(at(&mut throttle, 1_000), [Some(3), None]);
        assert_eq!(at(&mut throttle, 60_000), [Some(1), Some(0)]);
        assert_eq!(at(&mut throttle, 60_000), [Some(0), None]);
    }
}
