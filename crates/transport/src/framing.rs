//! Bytes on the wire, layer by layer, and the frames of every rival as bytes (see [`encode`]).
//!
//! | layer | bytes | source |
//! | --- | --- | --- |
//! | preamble and start delimiter | 8 | IEEE 802.3-2022, 4.2.5 and 4.2.6 |
//! | Ethernet header, FCS | 14 + 4 | IEEE 802.3-2022, 3.1.1 |
//! | least frame, header to FCS | 64 | IEEE 802.3-2022, 4A.4.2 |
//! | inter-frame gap | 12 | IEEE 802.3-2022, 4A.4.2 |
//! | IPv4 without options | 20 | RFC 791, 3.1 |
//! | UDP | 8 | RFC 768 |
//! | TCP without options | 20 | RFC 9293, 3.1 (no timestamps: one round trip a few microseconds long needs none) |
//! | RoCEv2 BTH, RETH, AtomicETH, AETH, ICRC | 12, 16, 28, 4, 4 | InfiniBand Architecture 1.2.1, 9.2, 9.3; Annex A17 |
//! | congestion notification | BTH + 16 reserved | InfiniBand Annex A17.9.3 |
//! | PFC pause frame | 64 | IEEE 802.1Qbb: one least frame |
//! | pFabric | TCP + 8 for the remaining bytes | SIGCOMM'13, 4: a packet carries one priority number |
//! | receiver-driven | UDP + 16 | our own: message, offset, length, remaining or credits, 4 bytes each |
//! | Fastpass demands | IPv4 + 8 + 2 + 4 a demand | its public code, `src/protocol/fpproto.c` |
//! | Fastpass allocation | IPv4 + 8 + 4 + 2 a target + 1 a time slot | the same |

mod codec;

pub use codec::{Framing, TRAILER, WireError, decode, encode, holds_content};

/// Preamble and start-of-frame delimiter.
pub const PREAMBLE: u32 = 8;
/// Destination, source, EtherType.
pub const ETHERNET: u32 = 14;
/// Frame check sequence.
pub const FCS: u32 = 4;
/// Inter-frame gap.
pub const GAP: u32 = 12;
/// Shortest frame from destination address to FCS.
pub const FRAME_MIN: u32 = 64;
/// IPv4 header.
pub const IPV4: u32 = 20;
/// UDP header.
pub const UDP: u32 = 8;
/// TCP header.
pub const TCP: u32 = 20;
/// RoCEv2 base transport header.
pub const BTH: u32 = 12;
/// RDMA extended transport header: first packet of a write.
pub const RETH: u32 = 16;
/// Atomic extended transport header.
pub const ATOMIC: u32 = 28;
/// Acknowledge extended transport header: acknowledgements, first and last packet of a read's
/// response.
pub const AETH: u32 = 4;
/// Invariant CRC.
pub const ICRC: u32 = 4;
/// Reserved bytes behind the BTH of a congestion notification packet.
pub const NOTIFICATION: u32 = 16;
/// pFabric's priority field behind the TCP header of data.
pub const PFABRIC: u32 = 8;
/// Header of the receiver-driven protocol behind UDP.
pub const RECEIVER_DRIVEN: u32 = 16;
/// Header of a Fastpass control packet behind IPv4 (its public code: sequence number, acknowledged
/// one, mask of those before, checksum).
pub const FASTPASS: u32 = 8;

/// Returns the wire bytes of a frame with `network` bytes between Ethernet header and FCS.
pub const fn frame_wire(network: u32) -> u32 {
    let frame = ETHERNET + network + FCS;
    PREAMBLE + GAP + if frame < FRAME_MIN { FRAME_MIN } else { frame }
}
/// Returns the wire bytes of a TCP segment; `payload` 0 is a bare acknowledgement (84 bytes).
pub const fn tcp_wire(payload: u32) -> u32 {
    frame_wire(IPV4 + TCP + payload)
}
/// Returns the wire bytes of a bare TCP acknowledgement with this many selective blocks (RFC 2018:
/// two bytes of padding, kind, length, 8 per block).
pub const fn tcp_selective_wire(blocks: u32) -> u32 {
    if blocks == 0 { tcp_wire(0) } else { frame_wire(IPV4 + TCP + 4 + 8 * blocks) }
}
/// Returns the wire bytes of a RoCEv2 packet of an RDMA write; the first of a message carries the
/// RETH.
pub const fn roce_wire(payload: u32, first: bool) -> u32 {
    frame_wire(IPV4 + UDP + BTH + if first { RETH } else { 0 } + payload + ICRC)
}
/// Returns the wire bytes of a RoCEv2 read or atomic request: a request of `bytes` is contained in
/// its RETH or, if longer, in its AtomicETH.
pub const fn roce_request_wire(bytes: u32) -> u32 {
    frame_wire(IPV4 + UDP + BTH + request_extension(bytes) + ICRC)
}
/// Returns the length of the extended header of a request of `bytes`.
const fn request_extension(bytes: u32) -> u32 {
    if bytes <= RETH {
        RETH
    } else if bytes <= ATOMIC {
        ATOMIC
    } else {
        bytes
    }
}
/// Returns the wire bytes of a RoCEv2 packet of a read's response; the first and the last of a
/// message carry an AETH.
pub const fn roce_response_wire(payload: u32, first_or_last: bool) -> u32 {
    frame_wire(IPV4 + UDP + BTH + if first_or_last { AETH } else { 0 } + payload + ICRC)
}
/// Returns the wire bytes of a RoCEv2 acknowledgement.
pub const fn roce_ack_wire() -> u32 {
    frame_wire(IPV4 + UDP + BTH + AETH + ICRC)
}
/// Returns the wire bytes of a congestion notification packet of DCQCN.
pub const fn roce_notification_wire() -> u32 {
    frame_wire(IPV4 + UDP + BTH + NOTIFICATION + ICRC)
}
/// Returns the wire bytes of a priority flow control frame.
pub const fn pause_wire() -> u32 {
    frame_wire(FRAME_MIN - ETHERNET - FCS)
}
/// Returns the wire bytes of pFabric data, or of a probe with `payload` 0.
pub const fn pfabric_wire(payload: u32) -> u32 {
    frame_wire(IPV4 + TCP + PFABRIC + payload)
}
/// Returns the wire bytes of a pFabric acknowledgement. It needs no priority field:
/// acknowledgements are always the most urgent.
pub const fn pfabric_ack_wire() -> u32 {
    tcp_wire(0)
}
/// Returns the wire bytes of data of the receiver-driven protocol, or of its control packets with
/// `payload` 0.
pub const fn receiver_driven_wire(payload: u32) -> u32 {
    frame_wire(IPV4 + UDP + RECEIVER_DRIVEN + payload)
}
/// Returns the wire bytes of Fastpass data: an ordinary TCP segment.
pub const fn fastpass_wire(payload: u32) -> u32 {
    tcp_wire(payload)
}
/// Returns the wire bytes of a Fastpass control packet of `content` bytes behind IPv4.
pub const fn fastpass_control_wire(content: u32) -> u32 {
    frame_wire(IPV4 + content)
}
/// Returns the wire bytes of a Fastpass packet with this many demands.
pub const fn fastpass_demand_wire(demands: u32) -> u32 {
    fastpass_control_wire(FASTPASS + 2 + 4 * demands)
}
/// Returns the wire bytes of a Fastpass packet that allocates `slots` consecutive slots to
/// `targets` targets: a byte per slot, rounded up to an even number.
pub const fn fastpass_allocation_wire(targets: u32, slots: u32) -> u32 {
    fastpass_control_wire(FASTPASS + 4 + 2 * targets + slots.next_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_frames_are_padded_and_the_first_byte_past_the_padding_counts() {
        assert_eq!(frame_wire(46), 84);
        assert_eq!(frame_wire(47), 85);
        assert_eq!(tcp_wire(0), 84);
        assert_eq!(tcp_wire(6), 84);
        assert_eq!(tcp_wire(7), 85);
        assert_eq!(pause_wire(), 84);
    }

    #[test]
    fn a_full_ethernet_frame_is_1538_bytes_whatever_is_in_it() {
        assert_eq!(tcp_wire(1460), 1538);
        assert_eq!(receiver_driven_wire(1456), 1538);
        assert_eq!(roce_wire(1024, true) - roce_wire(1024, false), 16);
        assert_eq!((roce_request_wire(8), roce_request_wire(24)), (98, 110));
        assert_eq!(roce_wire(64, true), 8 + 14 + 20 + 8 + 12 + 16 + 64 + 4 + 4 + 12);
    }
}
