//! Bytes that a stream of PDUs takes on an Ethernet wire.
//!
//! | layer | bytes | source |
//! | --- | --- | --- |
//! | preamble, start delimiter; inter-frame gap | 8; 12 | IEEE 802.3-2022, 4.2.5, 4.4.2 |
//! | Ethernet header; FCS; least frame | 14; 4; 64 | IEEE 802.3-2022, 3.1.1, 4.4.2 |
//! | IPv4 without options | 20 | RFC 791 |
//! | TCP, options | 20, 12 with timestamps | RFC 9293; RFC 7323, Appendix A |

use base::Bytes;

/// Preamble, start delimiter, Ethernet header, FCS, inter-frame gap: outside of what the MTU
/// counts.
const ETHERNET: u64 = 8 + 14 + 4 + 12;
/// Preamble and gap, which the least frame does not count.
const AROUND: u64 = 8 + 12;
const FRAME_MIN: u64 = 64;
const IPV4: u64 = 20;
const TCP: u64 = 20;

/// Why packets of a size carry nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an MTU of {mtu} B has no room behind {headers} B of headers")]
pub struct MtuError {
    /// The MTU, bytes.
    pub mtu: u32,
    /// Headers inside it, bytes.
    pub headers: u64,
}

/// Headers of every packet of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    mtu: u32,
    headers: u64,
}

impl Packets {
    /// Packets of up to `mtu` bytes (Ethernet's MTU: 1,500 or, jumbo, 9,000). They have so many
    /// bytes of TCP options (12 with timestamps) and of a design's own header. Fails when they
    /// leave no room.
    pub fn new(mtu: u32, tcp_options: u32, own_header: u32) -> Result<Self, MtuError> {
        let headers = IPV4 + TCP + u64::from(tcp_options) + u64::from(own_header);
        if u64::from(mtu) <= headers { Err(MtuError { mtu, headers }) } else { Ok(Packets { mtu, headers }) }
    }

    /// Payload of a full packet.
    pub fn payload_max(&self) -> Bytes {
        Bytes::new(u64::from(self.mtu) - self.headers)
    }

    /// Packets for a burst of `payload` bytes that begins in a packet of its own.
    pub fn count(&self, payload: Bytes) -> u64 {
        payload.count().div_ceil(self.payload_max().count())
    }

    /// One packet with `payload` bytes, at most [`Self::payload_max`], preamble to gap. 0 is a bare
    /// acknowledgement.
    pub fn packet_bytes(&self, payload: Bytes) -> Bytes {
        Bytes::new((payload.count() + self.headers + ETHERNET).max(FRAME_MIN + AROUND))
    }

    /// A burst of `payload` bytes: full packets and the rest in a last one.
    pub fn wire_bytes(&self, payload: Bytes) -> Bytes {
        let full = payload.count() / self.payload_max().count();
        let left = payload.count() % self.payload_max().count();
        let last = if left > 0 { self.packet_bytes(Bytes::new(left)).count() } else { 0 };
        Bytes::new(full * self.packet_bytes(self.payload_max()).count() + last)
    }

    /// The part of [`Self::wire_bytes`] that is not payload.
    pub fn overhead(&self, payload: Bytes) -> Bytes {
        Bytes::new(self.wire_bytes(payload).count() - payload.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packets(mtu: u32) -> Packets {
        Packets::new(mtu, 12, 0).unwrap()
    }

    #[test]
    fn an_mtu_with_one_byte_of_room_is_taken_and_one_without_is_not() {
        assert_eq!(packets(53).payload_max(), Bytes::new(1));
        assert_eq!(Packets::new(52, 12, 0), Err(MtuError { mtu: 52, headers: 52 }));
    }

    /// 4,096 B of data in C2HData (24 B) over 1,500: 1,448 + 1,448 + 1,224 B of payload, 52 B and
    /// 38 B of headers each.
    #[test]
    fn four_kibibytes_take_three_ordinary_packets_or_one_jumbo() {
        let payload = Bytes::new(4096 + 24);
        assert_eq!(packets(1500).count(payload), 3);
        assert_eq!(packets(1500).wire_bytes(payload), Bytes::new(4120 + 3 * 90));
        assert_eq!(packets(9000).wire_bytes(payload), Bytes::new(4120 + 90));
        assert_eq!(packets(9000).overhead(payload), Bytes::new(90));
    }

    #[test]
    fn a_frame_is_never_shorter_than_64_bytes() {
        let bare = Packets::new(1500, 0, 0).unwrap();
        assert_eq!(bare.packet_bytes(Bytes::ZERO), Bytes::new(84));
        assert_eq!(bare.packet_bytes(Bytes::new(6)), Bytes::new(84));
        assert_eq!(bare.packet_bytes(Bytes::new(7)), Bytes::new(85));
    }

    #[test]
    fn a_full_packet_is_the_mtu_and_ethernet_and_a_byte_more_takes_another() {
        let full = packets(1500).payload_max();
        assert_eq!(packets(1500).wire_bytes(full), Bytes::new(1538));
        let more = Bytes::new(full.count() + 1);
        assert_eq!((packets(1500).count(full), packets(1500).count(more)), (1, 2));
        assert_eq!(packets(1500).wire_bytes(more), Bytes::new(1538 + 91));
    }

    proptest! {
        #[test]
        fn a_burst_takes_what_its_packets_take(payload in 0u64..100_000, mtu in 100u32..9000) {
            let packets = packets(mtu);
            let (mut left, mut sum, mut count) = (payload, 0, 0);
            while left > 0 {
                let now = left.min(packets.payload_max().count());
                sum += packets.packet_bytes(Bytes::new(now)).count();
                (left, count) = (left - now, count + 1);
            }
            prop_assert_eq!(packets.wire_bytes(Bytes::new(payload)), Bytes::new(sum));
            prop_assert_eq!(packets.count(Bytes::new(payload)), count);
        }
    }
}
