//! Frames as bytes: with `--wire`, every packet of a run is encoded and decoded.
//!
//! [`encode`] writes exactly [`Packet::wire`] bytes, as on the wire (preamble to inter-frame gap,
//! payload as zeros). A trailer of [`TRAILER`] bytes follows, which is **not** on the wire and
//! **not** counted: the simulator's own identifiers, and the full width of fields that the real
//! header truncates. [`decode`] reads the headers into a view and checks their lengths and
//! checksums. It then checks that the view agrees with the trailer in every field of a real header.

mod headers;
mod trailer;

use super::{ETHERNET, FCS, FRAME_MIN, GAP, IPV4, PREAMBLE, frame_wire, request_extension};
use crate::{Packet, PacketKind};
use headers::Stack;

pub use trailer::TRAILER;

/// The frame format of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Ethernet alone: the payload follows the MAC header, whose type field holds its length (IEEE
    /// 802.3, 3.2.6).
    Raw,
    /// DCTCP: TCP over IPv4 over Ethernet.
    Tcp,
    /// DCQCN: RoCEv2 over Ethernet with priority flow control.
    Roce,
    /// pFabric: TCP; data carries its priority in an experimental option (RFC 6994).
    Pfabric,
    /// The receiver-driven protocol over UDP.
    ReceiverDriven,
    /// Fastpass: TCP data, and its own control packets over IPv4 (its public code: protocol 222).
    Fastpass,
    /// CXL-like flits and PCIe-like credit packets, no Ethernet: two bytes in front and a CRC of
    /// two bytes behind.
    Flit,
}

/// Reason why bytes are not a packet of the expected framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Shorter than its headers.
    #[error("{got} bytes are too few: at least {needed} are needed")]
    Short {
        /// Number of bytes present.
        got: usize,
        /// Number of bytes needed.
        needed: usize,
    },
    /// A field has a value that this framing never uses.
    #[error("the field `{field}` holds {got:#x}, which this framing does not use")]
    Field {
        /// The field.
        field: &'static str,
        /// The rejected value.
        got: u64,
    },
    /// A checksum does not match the bytes it covers.
    #[error("the {field} is wrong: the frame is damaged")]
    Checksum {
        /// The checksum.
        field: &'static str,
    },
    /// Header and trailer have different values.
    #[error("header and trailer disagree about `{field}`")]
    Disagreement {
        /// The field.
        field: &'static str,
    },
}

/// The fields of a packet that real headers contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    kind: PacketKind,
    payload: u32,
    marked: bool,
    /// Low bits of the offset, with a mask of those that the header contains.
    offset: (u64, u64),
}

const IDLE: u8 = 0x07;
const START: [u8; PREAMBLE as usize] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
const FLIT_CRC: usize = 2;

/// Appends the encoded `packet`. Its kind must be one of `framing`'s. `content` is the content of a
/// control packet beyond its fields ([`crate::Host::take_content`]).
pub fn encode(framing: Framing, packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) {
    let start = bytes.len();
    match headers::stack_of(framing, packet.kind) {
        Stack::Flit => encode_flit(packet, bytes),
        stack => encode_frame(stack, packet, content, bytes),
    }
    debug_assert_eq!(bytes.len() - start, packet.wire as usize, "the frame is not as long as the packet says");
    trailer::write(packet, bytes);
}

/// Decodes a packet from exactly the bytes that [`encode`] appended.
pub fn decode(framing: Framing, bytes: &[u8]) -> Result<Packet, WireError> {
    let needed = TRAILER + 2 + FLIT_CRC;
    let body = bytes.len().checked_sub(TRAILER).filter(|body| *body >= 2 + FLIT_CRC);
    let body = body.ok_or(WireError::Short { got: bytes.len(), needed })?;
    let (wire, trailer) = bytes.split_at(body);
    let packet = Packet { wire: body as u32, ..trailer::read(trailer)? };
    let view = match framing {
        Framing::Flit => view_flit(wire, &packet)?,
        _ => view_frame(framing, wire, &packet)?,
    };
    agree("kind", view.kind == packet.kind)?;
    agree("payload", view.payload == packet.payload || is_extended_header(framing, &packet, view.payload))?;
    agree("marked", view.marked == packet.marked)?;
    agree("offset", view.offset.0 == packet.offset & view.offset.1)?;
    Ok(packet)
}

/// Returns whether the seen length is that of a RoCEv2 request's extended header, which has a fixed
/// length and may be longer than the request.
fn is_extended_header(framing: Framing, packet: &Packet, seen: u32) -> bool {
    framing == Framing::Roce && packet.kind == PacketKind::Request && seen == request_extension(packet.payload)
}

fn agree(field: &'static str, holds: bool) -> Result<(), WireError> {
    if holds { Ok(()) } else { Err(WireError::Disagreement { field }) }
}

/// Returns whether the bytes that [`encode`] appended contain `content` behind their IPv4 header.
pub fn holds_content(bytes: &[u8], content: &[u8]) -> bool {
    let behind = bytes.get((PREAMBLE + ETHERNET + IPV4) as usize..);
    content.is_empty() || behind.is_some_and(|behind| behind.starts_with(content))
}

fn encode_frame(stack: Stack, packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&START);
    let frame = bytes.len();
    headers::write_ethernet(stack, packet, bytes);
    headers::write_network(stack, packet, content, bytes);
    let padded = frame + (FRAME_MIN - FCS) as usize;
    bytes.resize(bytes.len().max(padded), 0);
    let check = crc32fast::hash(&bytes[frame..]);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes.resize(bytes.len() + GAP as usize, IDLE);
}

fn view_frame(framing: Framing, wire: &[u8], packet: &Packet) -> Result<View, WireError> {
    let needed = frame_wire(0) as usize;
    if wire.len() < needed {
        return Err(WireError::Short { got: wire.len(), needed });
    }
    if !wire.starts_with(&START) {
        return Err(WireError::Field { field: "preamble", got: u64::from(wire[0]) });
    }
    let frame = &wire[PREAMBLE as usize..wire.len() - GAP as usize];
    let (covered, check) = frame.split_at(frame.len() - FCS as usize);
    if crc32fast::hash(covered).to_le_bytes() != check {
        return Err(WireError::Checksum { field: "FCS" });
    }
    let ethernet = headers::read_ethernet(covered);
    agree("source", ethernet.source == packet.source)?;
    agree("target", ethernet.target.is_none_or(|target| target == packet.target))?;
    headers::read_network(framing, ethernet.ether_type, &covered[ETHERNET as usize..])
}

/// Encodes a flit: protocol identifier (kind and mark), filler, CRC-16 truncated from CRC-32. The
/// internal layout of a flit is not modelled.
fn encode_flit(packet: &Packet, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[headers::kind_code(packet.kind), u8::from(packet.marked)]);
    bytes.resize(start + packet.wire as usize - FLIT_CRC, 0);
    let check = crc32fast::hash(&bytes[start..]) as u16;
    bytes.extend_from_slice(&check.to_be_bytes());
}

fn view_flit(wire: &[u8], packet: &Packet) -> Result<View, WireError> {
    let (covered, check) = wire.split_at(wire.len() - FLIT_CRC);
    if (crc32fast::hash(covered) as u16).to_be_bytes() != check {
        return Err(WireError::Checksum { field: "flit CRC" });
    }
    let kind = headers::kind_of_code(covered[0])?;
    Ok(View { kind, payload: packet.payload, marked: covered[1] != 0, offset: (0, 0) })
}

#[cfg(test)]
mod tests;
