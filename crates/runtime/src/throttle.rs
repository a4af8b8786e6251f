//! Limits log lines that many peers, or a failing disk, cause: one a second of each kind, with the
//! number of suppressed lines.

use base::{Span, Time};

/// Time between two lines of a kind.
const GAP: Span = Span::secs(1);

/// Lines of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throttle {
    /// No line is written before this time.
    next: Option<Time>,
    left_out: u64,
}

impl Throttle {
    /// Returns how many lines were suppressed before this one, or `None` if this one is suppressed.
    pub fn admit(&mut self, now: Time) -> Option<u64> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + GAP);
        Some(std::mem::take(&mut self.left_out))
    }

    /// Returns the number of suppressed lines, once a line about them is allowed.
    pub fn take_due(&mut self, now: Time) -> Option<u64> {
        if self.next_due()? > now { None } else { self.admit(now) }
    }

    /// Time at which [`Self::take_due`] has something to report.
    pub fn next_due(&self) -> Option<Time> {
        self.next.filter(|_| self.left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_is_written_and_the_others_are_counted() {
        let mut throttle = Throttle::default();
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
}
