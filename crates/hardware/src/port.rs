//! An output port that serves in the order of arrival, and the cable behind it: one event a hop.

use crate::link::Link;
use base::{Bytes, Rate, Serialization, Span, Time};

/// One direction of a cable with its queue.
///
/// A packet leaves at `max(now, free) + serialization` and arrives a propagation later, so its
/// arrival is known at once: the port needs no event for the start or the end of a service, and no
/// memory for waiting packets. A port that must choose among waiting packets is a [`Link`] with
/// queues in front.
///
/// Rejected: a ring of packets in flight with only its head in the event queue. It would keep the
/// pending set small, but the kernel's wheel costs about the same at some hundred pending events as
/// at ten thousand, and each event would touch the ring as well.
#[derive(Clone, Copy, Debug)]
pub struct FifoPort {
    link: Link,
    propagation: Span,
    serialization: Serialization,
}

impl FifoPort {
    /// An idle port. `rate` must not be zero.
    pub fn new(rate: Rate, propagation: Span) -> FifoPort {
        FifoPort { link: Link::new(rate), propagation, serialization: Serialization::new(rate) }
    }
    /// Puts `size` at the end of the queue; returns when all of it is at the other end.
    #[inline]
    pub fn submit(&mut self, now: Time, size: Bytes) -> Time {
        let serialization = self.serialization.of(size);
        self.link.occupy(now, serialization).1 + self.propagation
    }
    /// Bytes that were put in and have not left the port whole, as time on the wire.
    pub fn backlog(&self, now: Time) -> Span {
        self.link.free_at().saturating_since(now)
    }
    /// How long it was, or is booked to be, sending.
    pub fn busy(&self) -> Span {
        self.link.busy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(4_096);

    #[test]
    fn a_packet_alone_takes_its_serialization_and_the_cable() {
        let mut port = FifoPort::new(Rate::gbps(100), Span::ns(500));
        assert_eq!(port.submit(Time::ns(7), PACKET), Time::ps(7_000 + 327_680 + 500_000));
        assert_eq!(port.busy(), Span::ps(327_680));
    }

    #[test]
    fn a_packet_waits_while_another_is_sent_and_not_a_picosecond_longer() {
        let mut port = FifoPort::new(Rate::gbps(100), Span::ns(500));
        let first = port.submit(Time::ZERO, PACKET);
        let just_before = port.submit(Time::ps(327_679), PACKET);
        assert_eq!(just_before - first, Span::ps(327_680));
        assert_eq!(port.backlog(Time::ps(327_680)), Span::ps(327_680));
        assert_eq!(port.submit(Time::ps(655_360), PACKET) - just_before, Span::ps(327_680));
        assert_eq!(port.backlog(Time::ps(983_040)), Span::ZERO);
        assert_eq!(port.submit(Time::ps(983_041), PACKET), Time::ps(983_041 + 327_680 + 500_000));
    }
}
