//! Inputs of a design's defaults: the rack and the stack.

use crate::design_file::{DesignName, StackName};
use crate::stack::stack_of;
use base::{Bytes, Rate, Span};
use hardware::EthernetStack;

/// The rack and the stack under a design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ground {
    pub rate: Rate,
    pub propagation: Span,
    pub stack: EthernetStack,
}

/// A full Ethernet frame on the wire: 1500 bytes of payload, header, FCS, preamble and gap (IEEE
/// 802.3).
const FRAME_WIRE: Bytes = Bytes::new(1538);
/// A minimum frame on the wire: what an acknowledgement takes.
const FRAME_WIRE_MIN: Bytes = Bytes::new(84);

impl Ground {
    /// The ground whose defaults the schema shows: 100 Gb/s, 10 ns of fibre, 19 ns of transceiver,
    /// the design's own stack.
    pub(crate) fn shown(design: DesignName) -> Ground {
        let stack = stack_of(design, StackName::Own, Span::ns(19));
        Ground { rate: Rate::gbps(100), propagation: Span::ns(10), stack }
    }
    /// One way from application to application, without serialization.
    pub(crate) fn one_way(&self) -> Span {
        let stack = &self.stack;
        stack.host_pass() * 2 + stack.switch_receive() + stack.switch_transmit() + self.propagation * 2
    }
    /// A full frame there and its acknowledgement back, nothing else on the way; each is sent twice
    /// (store and forward).
    pub(crate) fn round_trip(&self) -> Span {
        (self.one_way() + self.rate.span_of(FRAME_WIRE) + self.rate.span_of(FRAME_WIRE_MIN)) * 2
    }
    /// What a link carries in a round trip, in whole full frames (at least one), as bytes on the
    /// wire.
    pub(crate) fn bandwidth_delay(&self) -> Bytes {
        FRAME_WIRE * u64::from(self.frames_in_flight())
    }
    /// The longest that a packet waits for others on its way and its acknowledgement's: `queue` in
    /// the switch, and at each host a frame that is being sent.
    pub(crate) fn full_queue(&self, queue: Bytes) -> Span {
        self.rate.span_of(queue + FRAME_WIRE * 2)
    }
    /// Full frames that fill a round trip, rounded up.
    pub(crate) fn frames_in_flight(&self) -> u32 {
        let in_flight = self.rate.bytes_in(self.round_trip()).count().div_ceil(FRAME_WIRE.count());
        u32::try_from(in_flight.max(1)).unwrap_or(u32::MAX)
    }
    /// A value published for 40 Gb/s, scaled with the link rate.
    pub(crate) fn scaled_from_40g(&self, value: u64) -> u64 {
        self.scaled(value, Rate::gbps(40))
    }
    /// A value published for links of `rate`, scaled with the link rate.
    pub(crate) fn scaled(&self, value: u64, rate: Rate) -> u64 {
        let scaled = u128::from(value) * u128::from(self.rate.as_bps()) / u128::from(rate.as_bps());
        u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two one-way trips of 1889.84 ns (EDM, Table 1: TCP), two full frames of 123.04 ns and two
    /// least ones of 6.72 ns.
    #[test]
    fn the_round_trip_is_the_closed_formula() {
        let ground = Ground::shown(DesignName::Dctcp);
        assert_eq!(ground.round_trip(), Span::ps(2 * (1_889_840 + 123_040 + 6_720)));
        // 4039.2 ns at 12.5 bytes a nanosecond: 50,490 bytes, 32.8 frames.
        assert_eq!(ground.frames_in_flight(), 33);
    }

    #[test]
    fn a_slow_link_still_has_a_frame_in_flight_and_scaling_never_reaches_zero() {
        let slow = Ground { rate: Rate::bps(1_000), stack: EthernetStack::RAW, ..Ground::shown(DesignName::Dctcp) };
        assert!(slow.frames_in_flight() >= 1);
        assert_eq!(slow.scaled_from_40g(5_000), 1);
        assert_eq!(Ground::shown(DesignName::Dctcp).scaled_from_40g(5_000), 12_500);
    }
}
