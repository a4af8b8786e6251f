//! Packets as bytes, as they would be on the wire: what `--wire` puts every packet of a run
//! through, and what a live host sends.
//!
//! | layer | bytes | source |
//! | --- | --- | --- |
//! | preamble, start delimiter; inter-frame gap | 8; 12 | IEEE 802.3-2022, 4.2.5, 4.4.2 |
//! | Ethernet header; FCS | 14; 4 | IEEE 802.3-2022, 3.1.1 |
//! | IPv4 without options | 20 | RFC 791; address 10.0.0.0 + node |
//! | UDP on port [`RACKBLOX_PORT`], both ends | 8 | RFC 768 |
//! | RackBlox header: OP, vSSD_ID, LAT | 1 + 4 + 4 | paper, 3.3 and Figure 6; big-endian |
//! | body | by operation | `bodies`; a page of data is 4,096 B |
//!
//! A page does not fit into the 1,500 B of an ordinary Ethernet payload: the rack has to carry
//! jumbo frames (9,000 B), as racks that carry 4 KiB blocks do; the paper does not say how it split
//! them.

mod bodies;
mod datagram;
mod headers;

pub use datagram::{decode_datagram, encode_datagram};

use super::{Body, Packet};
use base::Bytes;
use bytes::{Buf, BufMut};
use headers::Datagram;

/// The UDP port of RackBlox packets (3.3: "a reserved TCP/UDP port"). The number is ours, from the
/// dynamic range (RFC 6335, 6).
pub const RACKBLOX_PORT: u16 = 50_023;
/// Data of one page on the wire; the first eight bytes are the [`Value`](crate::Value), the others
/// are zero and ignored.
pub const PAGE_BYTES: u32 = 4_096;

/// Where traffic that is not RackBlox's is sent: discard (RFC 863).
const DISCARD_PORT: u16 = 9;
/// OP, vSSD_ID, LAT.
const HEADER: u32 = 9;
/// The most UDP payload in a jumbo frame of 9,000 B.
const BACKGROUND_MAX: u32 = 9_000 - headers::IPV4 - headers::UDP;

/// Reason why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Fewer bytes than the headers and the body need.
    #[error("{got} bytes are too few for {part}: {needed} are needed")]
    Short {
        /// What is cut off.
        part: &'static str,
        /// Bytes there.
        got: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// More bytes than the packet says it has.
    #[error("{extra} bytes too many behind {part}")]
    Long {
        /// Behind what.
        part: &'static str,
        /// Bytes too many.
        extra: usize,
    },
    /// A sound frame of somebody else: another protocol or port. A switch forwards it.
    #[error("not RackBlox: the {field} is {got:#x}")]
    Foreign {
        /// The field says so.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
    /// A field holds what no packet has there.
    #[error("the {field} holds {got:#x}, which no packet has")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
    /// A checksum does not fit the bytes that it covers.
    #[error("the {field} is wrong: the frame is damaged")]
    Checksum {
        /// The checksum.
        field: &'static str,
    },
}

impl Packet {
    /// What the packet occupies on a wire: its frame with preamble, padding, FCS and inter-frame
    /// gap. As long as what [`encode`] writes.
    pub fn wire_bytes(&self) -> Bytes {
        Bytes::new(u64::from(headers::frame_bytes(payload_bytes(&self.body))))
    }
}

/// UDP payload.
fn payload_bytes(body: &Body) -> u32 {
    match body {
        Body::Background { bytes, .. } => (*bytes).min(BACKGROUND_MAX),
        body => HEADER + bodies::length(body),
    }
}

/// Appends `packet` as bytes, preamble to inter-frame gap. Nodes have to be below 2^24, the hosts
/// of 10.0.0.0/8.
pub fn encode(packet: &Packet, bytes: &mut Vec<u8>) {
    let payload = payload_bytes(&packet.body);
    let datagram = match packet.body {
        Body::Background { priority, .. } => Datagram { port: DISCARD_PORT, priority, payload },
        _ => Datagram { port: RACKBLOX_PORT, priority: 0, payload },
    };
    headers::write_frame(packet, datagram, bytes, |bytes| write_payload(packet, bytes));
}

fn write_payload(packet: &Packet, bytes: &mut Vec<u8>) {
    if let Body::Background { .. } = packet.body {
        bytes.put_bytes(0, payload_bytes(&packet.body) as usize);
        return;
    }
    bytes.put_u8(bodies::operation(&packet.body));
    bytes.put_u32(packet.vssd.0);
    bytes.put_u32(packet.latency_ns);
    bodies::write(&packet.body, bytes);
}

/// Reads a packet back from exactly the bytes that [`encode`] appended.
pub fn decode(bytes: &[u8]) -> Result<Packet, CodecError> {
    let frame = headers::read_frame(bytes)?;
    let packet = Packet {
        vssd: crate::VssdId(0),
        latency_ns: 0,
        source: frame.source,
        target: frame.target,
        body: Body::Background { bytes: frame.payload.len() as u32, priority: frame.priority },
    };
    match frame.port {
        DISCARD_PORT => Ok(packet),
        RACKBLOX_PORT => read_payload(packet, frame.payload),
        port => Err(CodecError::Foreign { field: "UDP port", got: u64::from(port) }),
    }
}

fn read_payload(packet: Packet, mut payload: &[u8]) -> Result<Packet, CodecError> {
    needs("the RackBlox header", payload, HEADER)?;
    let operation = payload.get_u8();
    let packet =
        Packet { vssd: crate::VssdId(payload.get_u32()), latency_ns: payload.get_u32(), body: packet.body, ..packet };
    let body = bodies::read(operation, &mut payload)?;
    match payload.len() {
        0 => Ok(Packet { body, ..packet }),
        extra => Err(CodecError::Long { part: "the body", extra }),
    }
}

fn needs(part: &'static str, bytes: &[u8], needed: u32) -> Result<(), CodecError> {
    let needed = needed as usize;
    if bytes.len() < needed { Err(CodecError::Short { part, got: bytes.len(), needed }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
