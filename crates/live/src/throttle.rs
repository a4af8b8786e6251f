//! Lines of the log that many peers, or a failing disk, would fill it with: one a second of a kind, and
//! how many were left out.

use base::{Span, Time};

/// Between two lines of a kind.
const GAP: Span = Span::secs(1);

/// Lines of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle {
    /// No line is written before.
    next: Option<Time>,
    left_out: u64,
}

impl Throttle {
    /// Whether a line may be written, and how many were left out before it. `None`: this one is left out.
    pub(crate) fn admit(&mut self, now: Time) -> Option<u64> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + GAP);
        Some(std::mem::take(&mut self.left_out))
    }

    /// How many lines were left out, once there may be one that says so.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<u64> {
        if self.next_due()? > now { None } else { self.admit(now) }
    }

    /// When [`Self::take_due`] has something to say.
    pub(crate) fn next_due(&self) -> Option<Time> {
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
