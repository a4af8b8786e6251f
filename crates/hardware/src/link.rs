//! One direction of a point-to-point link: a FIFO serializer.

use base::{Bytes, Rate, Span, Time};

/// One direction of a link. What is put in leaves in order, one after the other, at the line rate.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    rate: Rate,
    free_at: Time,
    busy: Span,
}

impl Link {
    /// An idle link. `rate` must not be zero.
    pub fn new(rate: Rate) -> Link {
        Link { rate, free_at: Time::ZERO, busy: Span::ZERO }
    }
    /// Starts sending `size` as soon as the link is free; returns when its first and its last bit
    /// leave.
    pub fn submit(&mut self, now: Time, size: Bytes) -> (Time, Time) {
        self.occupy(now, self.rate.span_of(size))
    }
    /// Like [`submit`](Link::submit) for something whose serialization the caller knows.
    pub fn occupy(&mut self, now: Time, serialization: Span) -> (Time, Time) {
        let start = self.free_at.max(now);
        self.free_at = start + serialization;
        self.busy += serialization;
        (start, self.free_at)
    }
    /// Inserts something small (a 66-bit control block) between the units of the current
    /// transmission, without waiting for its end; returns the time at which its last bit leaves.
    /// Earlier transmissions keep their times: the next one bears the delay of one block, so the
    /// link never carries more than its rate.
    pub fn insert(&mut self, now: Time, serialization: Span) -> Time {
        self.free_at = self.free_at.max(now) + serialization;
        self.busy += serialization;
        now + serialization
    }
    /// Returns the time at which the last bit of everything put in so far leaves.
    pub fn free_at(&self) -> Time {
        self.free_at
    }
    /// Returns how much of what was put in leaves later than `now`.
    pub fn backlog(&self, now: Time) -> Bytes {
        self.rate.bytes_in(self.free_at.saturating_since(now))
    }
    /// Returns whether something put in at `now` would leave at once.
    pub fn is_idle(&self, now: Time) -> bool {
        self.free_at <= now
    }
    /// How long the link was, or is booked to be, sending: for its utilisation.
    pub fn busy(&self) -> Span {
        self.busy
    }
    /// The line rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_block_goes_between_and_the_next_pays() {
        let mut link = Link::new(Rate::gbps(100));
        link.submit(Time::ZERO, Bytes::new(125));
        assert_eq!(link.insert(Time::ns(4), Span::ps(640)), Time::ps(4_640));
        assert_eq!(link.submit(Time::ns(5), Bytes::new(125)).0, Time::ps(10_640));
        assert_eq!(link.insert(Time::ns(50), Span::ps(640)), Time::ps(50_640));
        assert_eq!(link.free_at(), Time::ps(50_640));
    }

    #[test]
    fn a_link_is_fifo_and_never_faster_than_its_rate() {
        let mut link = Link::new(Rate::gbps(100));
        assert_eq!(link.submit(Time::ns(5), Bytes::new(1500)), (Time::ns(5), Time::ns(125)));
        assert_eq!(link.submit(Time::ns(6), Bytes::new(125)), (Time::ns(125), Time::ns(135)));
        assert!(!link.is_idle(Time::ps(134_999)));
        assert!(link.is_idle(Time::ns(135)));
        assert_eq!(link.submit(Time::ns(200), Bytes::new(125)), (Time::ns(200), Time::ns(210)));
        assert_eq!(link.busy(), Span::ns(140));
    }
}
