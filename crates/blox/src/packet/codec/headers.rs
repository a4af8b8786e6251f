//! Ethernet, IPv4 and UDP around a payload.

use super::{CodecError, needs};
use crate::Packet;
use base::NodeId;
use bytes::{Buf, BufMut};

const PREAMBLE: [u8; 8] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];
const ETHERNET: u32 = 14;
const FCS: u32 = 4;
const GAP: u32 = 12;
/// Shortest frame, destination address to FCS (IEEE 802.3-2022, 4A.4.2).
const FRAME_MIN: u32 = 64;
/// Between frames the line idles; the code for that (IEEE 802.3-2022, 46.2.1).
const IDLE: u8 = 0x07;
pub(super) const IPV4: u32 = 20;
pub(super) const UDP: u32 = 8;
const IPV4_TYPE: u16 = 0x0800;
/// Version 4, five words of header.
const VERSION_AND_LENGTH: u8 = 0x45;
/// Don't fragment; 64 hops.
const DONT_FRAGMENT: u16 = 0x4000;
const HOPS: u8 = 64;
const PROTOCOL_UDP: u8 = 17;
/// 10.0.0.0/8 (RFC 1918): the paper's servers are 10.0.0.16 and 10.0.0.20 (Figure 5).
const NETWORK: u32 = 10 << 24;
const HOST_MASK: u32 = 0xff_ffff;

/// What is put around a payload.
#[derive(Clone, Copy)]
pub(super) struct Datagram {
    pub port: u16,
    /// Class selector: the upper three bits of the type of service (RFC 2474).
    pub priority: u8,
    pub payload: u32,
}

/// What a frame says, and what it carries.
pub(super) struct Frame<'a> {
    pub source: NodeId,
    pub target: NodeId,
    pub port: u16,
    pub priority: u8,
    pub payload: &'a [u8],
}

/// Everything that a UDP payload occupies on a wire.
pub(super) fn frame_bytes(payload: u32) -> u32 {
    let frame = ETHERNET + IPV4 + UDP + payload + FCS;
    PREAMBLE.len() as u32 + frame.max(FRAME_MIN) + GAP
}

/// The address of a node.
pub(super) fn put_address(node: NodeId, bytes: &mut Vec<u8>) {
    bytes.put_u32(NETWORK | node.0 & HOST_MASK);
}

/// The node of an address; four bytes must be there.
pub(super) fn get_address(bytes: &mut &[u8]) -> Result<NodeId, CodecError> {
    let address = bytes.get_u32();
    match address & !HOST_MASK {
        NETWORK => Ok(NodeId(address & HOST_MASK)),
        _ => Err(CodecError::Field { field: "address", got: u64::from(address) }),
    }
}

pub(super) fn write_frame(packet: &Packet, datagram: Datagram, bytes: &mut Vec<u8>, payload: impl Fn(&mut Vec<u8>)) {
    debug_assert!(packet.source.0.max(packet.target.0) <= HOST_MASK, "a node without an address in 10.0.0.0/8");
    bytes.put_slice(&PREAMBLE);
    let start = bytes.len();
    put_station(packet.target, bytes);
    put_station(packet.source, bytes);
    bytes.put_u16(IPV4_TYPE);
    write_ipv4(packet, datagram, bytes);
    write_udp(datagram, bytes, payload);
    bytes.resize(bytes.len().max(start + (FRAME_MIN - FCS) as usize), 0);
    let check = crc32fast::hash(&bytes[start..]);
    bytes.put_u32_le(check);
    bytes.put_bytes(IDLE, GAP as usize);
}

/// A locally administered address with the node's number in its low 32 bits.
fn put_station(node: NodeId, bytes: &mut Vec<u8>) {
    bytes.put_u16(0x0200);
    bytes.put_u32(node.0);
}

fn write_ipv4(packet: &Packet, datagram: Datagram, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.put_slice(&[VERSION_AND_LENGTH, datagram.priority << 5]);
    bytes.put_u16((IPV4 + UDP + datagram.payload) as u16);
    bytes.put_u16(0);
    bytes.put_u16(DONT_FRAGMENT);
    bytes.put_slice(&[HOPS, PROTOCOL_UDP, 0, 0]);
    put_address(packet.source, bytes);
    put_address(packet.target, bytes);
    let check = !folded(words(&bytes[start..]));
    bytes[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
}

fn write_udp(datagram: Datagram, bytes: &mut Vec<u8>, payload: impl Fn(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.put_u16(datagram.port);
    bytes.put_u16(datagram.port);
    bytes.put_u16((UDP + datagram.payload) as u16);
    bytes.put_u16(0);
    payload(bytes);
    let addresses = &bytes[start - 8..start];
    // Zero would mean "none" (RFC 768), and says the same as its complement.
    let check = match !udp_sum(addresses, &bytes[start..]) {
        0 => u16::MAX,
        check => check,
    };
    bytes[start + 6..start + 8].copy_from_slice(&check.to_be_bytes());
}

/// The sum of a datagram with its pseudo header (RFC 768).
fn udp_sum(addresses: &[u8], datagram: &[u8]) -> u16 {
    folded(words(addresses) + u64::from(PROTOCOL_UDP) + datagram.len() as u64 + words(datagram))
}

/// The plain sum of 16-bit words, a last odd byte padded.
fn words(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + last
}

/// A sum in ones' complement (RFC 1071).
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub(super) fn read_frame(bytes: &[u8]) -> Result<Frame<'_>, CodecError> {
    needs("a frame", bytes, frame_bytes(0))?;
    if !bytes.starts_with(&PREAMBLE) {
        return Err(CodecError::Field { field: "preamble", got: u64::from(bytes[0]) });
    }
    let frame = &bytes[PREAMBLE.len()..bytes.len() - GAP as usize];
    let (covered, check) = frame.split_at(frame.len() - FCS as usize);
    if crc32fast::hash(covered).to_le_bytes() != check {
        return Err(CodecError::Checksum { field: "frame check sequence" });
    }
    let (ethernet, network) = covered.split_at(ETHERNET as usize);
    let ether_type = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    foreign_unless(ether_type == IPV4_TYPE, "EtherType", u64::from(ether_type))?;
    read_ipv4(network)
}

/// Behind an Ethernet header: at least 46 bytes, padding included.
fn read_ipv4(network: &[u8]) -> Result<Frame<'_>, CodecError> {
    let (mut header, carried) = network.split_at(IPV4 as usize);
    foreign_unless(header[0] == VERSION_AND_LENGTH, "IP version and header length", u64::from(header[0]))?;
    if folded(words(header)) != u16::MAX {
        return Err(CodecError::Checksum { field: "IPv4 header checksum" });
    }
    foreign_unless(header[9] == PROTOCOL_UDP, "IP protocol", u64::from(header[9]))?;
    let datagram = cut_padding(network, carried)?;
    let priority = header[1] >> 5;
    let addresses = &header[12..];
    let (port, payload) = read_udp(addresses, datagram)?;
    header.advance(12);
    Ok(Frame { source: get_address(&mut header)?, target: get_address(&mut header)?, port, priority, payload })
}

/// What the total length covers; only a frame of least length may be padded.
fn cut_padding<'a>(network: &[u8], carried: &'a [u8]) -> Result<&'a [u8], CodecError> {
    let total = usize::from(u16::from_be_bytes([network[2], network[3]]));
    let padded = total.max((FRAME_MIN - FCS - ETHERNET) as usize);
    if network.len() > padded {
        return Err(CodecError::Long { part: "the IPv4 packet", extra: network.len() - padded });
    }
    let end = total.checked_sub(IPV4 as usize).filter(|end| *end >= UDP as usize);
    let end = end.ok_or(CodecError::Field { field: "IPv4 total length", got: total as u64 })?;
    carried.get(..end).ok_or(CodecError::Short { part: "the IPv4 packet", got: network.len(), needed: total })
}

/// Port and payload; at least a header's length must be there.
fn read_udp<'a>(addresses: &[u8], datagram: &'a [u8]) -> Result<(u16, &'a [u8]), CodecError> {
    let (mut header, payload) = datagram.split_at(UDP as usize);
    let (source, target, length) = (header.get_u16(), header.get_u16(), header.get_u16());
    foreign_unless(target == source, "UDP source port", u64::from(source))?;
    if usize::from(length) != datagram.len() {
        return Err(CodecError::Field { field: "UDP length", got: u64::from(length) });
    }
    if udp_sum(addresses, datagram) != u16::MAX || header.get_u16() == 0 {
        return Err(CodecError::Checksum { field: "UDP checksum" });
    }
    Ok((target, payload))
}

fn foreign_unless(holds: bool, field: &'static str, got: u64) -> Result<(), CodecError> {
    if holds { Ok(()) } else { Err(CodecError::Foreign { field, got }) }
}

/// Every read of a fixed field stays inside the shortest frame.
const _: () = assert!(FRAME_MIN - ETHERNET - FCS >= IPV4 + UDP);
