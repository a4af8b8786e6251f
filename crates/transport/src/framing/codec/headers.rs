//! Encoding and decoding of Ethernet, IPv4 and higher headers. All fields are big-endian.

use super::{Framing, View, WireError};
use crate::dcqcn::RESPONSE;
use crate::dctcp::{BLOCKS_MAX, blocks_of};
use crate::fastpass::{TYPE_COUNTS, TYPE_SLOTS};
use crate::framing::{
    AETH, BTH, ETHERNET, FASTPASS, FCS, FRAME_MIN, GAP, ICRC, IPV4, NOTIFICATION, PFABRIC, PREAMBLE, RECEIVER_DRIVEN,
    RETH, TCP, UDP, request_extension,
};
use crate::{Packet, PacketKind};
use base::NodeId;

const IPV4_TYPE: u16 = 0x0800;
/// MAC control (IEEE 802.3, 31), opcode of priority flow control (802.1Qbb) and its group address.
const CONTROL_TYPE: u16 = 0x8808;
const PAUSE_OPCODE: u16 = 0x0101;
const PAUSE_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 1];
/// Data uses class 3.
const PAUSE_CLASS: u16 = 1 << 3;
/// Largest value of the type field that is a length (IEEE 802.3, 3.2.6), and the type of longer
/// payloads without one.
const LENGTH_MAX: u16 = 1500;
const JUMBO_TYPE: u16 = 0x8870;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_FASTPASS: u8 = 222;
/// ECN field (RFC 3168): not capable, capable, congestion experienced.
const ECN_NONE: u8 = 0;
const ECN_CAPABLE: u8 = 2;
const ECN_EXPERIENCED: u8 = 3;
const TCP_ACK: u8 = 0x10;
const TCP_PUSH: u8 = 0x08;
const TCP_ECHO: u8 = 0x40;
/// Experimental TCP option (RFC 6994): kind, length and 6 bytes of priority.
const OPTION_EXPERIMENT: u8 = 253;
/// TCP options: no operation, and selective acknowledgement (RFC 2018, 3).
const OPTION_PADDING: u8 = 1;
const OPTION_SELECTIVE: u8 = 5;
const ROCE_PORT: u16 = 4791;
const RECEIVER_DRIVEN_PORT: u16 = 41_000;
/// BTH opcodes (InfiniBand 9.2.1, Annex A17.9.3) of reliable connections: write and read response
/// first, middle, last, only; read request; compare and swap, which represents every atomic;
/// acknowledge; congestion notification.
const WRITE_FIRST: u8 = 0x06;
const WRITE_MIDDLE: u8 = 0x07;
const WRITE_LAST: u8 = 0x08;
const WRITE_ONLY: u8 = 0x0a;
const RESPONSE_FIRST: u8 = 0x0d;
const RESPONSE_MIDDLE: u8 = 0x0e;
const RESPONSE_LAST: u8 = 0x0f;
const RESPONSE_ONLY: u8 = 0x10;
const READ_REQUEST: u8 = 0x0c;
const COMPARE_AND_SWAP: u8 = 0x13;
const ACKNOWLEDGE: u8 = 0x11;
const CNP: u8 = 0x81;
const LOW_24: u64 = 0xff_ffff;
const LOW_32: u64 = 0xffff_ffff;

/// The headers of a packet, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    /// The payload alone.
    Raw,
    /// IPv4, TCP.
    Tcp,
    /// IPv4, TCP with pFabric's option.
    TcpPriority,
    /// IPv4, UDP, BTH, the extended header of the opcode, ICRC.
    Roce,
    /// IPv4, UDP, the receiver-driven header.
    ReceiverDriven,
    /// IPv4, the Fastpass header, slots or counts.
    FastpassControl,
    /// MAC control.
    Pause,
    /// No Ethernet.
    Flit,
}

/// Returns the headers of a packet of `kind`.
pub(super) fn stack_of(framing: Framing, kind: PacketKind) -> Stack {
    match (framing, kind) {
        (Framing::Flit, _) => Stack::Flit,
        (_, PacketKind::Pause) => Stack::Pause,
        (Framing::Raw, _) => Stack::Raw,
        (Framing::Roce, _) => Stack::Roce,
        (Framing::ReceiverDriven, _) => Stack::ReceiverDriven,
        (Framing::Fastpass, PacketKind::Request | PacketKind::Grant) => Stack::FastpassControl,
        (Framing::Pfabric, PacketKind::Data | PacketKind::Request) => Stack::TcpPriority,
        (Framing::Tcp | Framing::Pfabric | Framing::Fastpass, _) => Stack::Tcp,
    }
}

const KINDS: [PacketKind; 7] = [
    PacketKind::Data,
    PacketKind::Acknowledgement,
    PacketKind::Request,
    PacketKind::Grant,
    PacketKind::CongestionNotification,
    PacketKind::Pause,
    PacketKind::CreditReturn,
];

pub(super) fn kind_code(kind: PacketKind) -> u8 {
    kind as u8
}

pub(super) fn kind_of_code(code: u8) -> Result<PacketKind, WireError> {
    KINDS.get(usize::from(code)).copied().ok_or(WireError::Field { field: "kind", got: u64::from(code) })
}

/// Content of an Ethernet header.
pub(super) struct Ethernet {
    pub source: NodeId,
    /// `None` for a group address.
    pub target: Option<NodeId>,
    pub ether_type: u16,
}

/// Appends an Ethernet header with locally administered addresses, which contain the node's number
/// in the low 32 bits.
pub(super) fn write_ethernet(stack: Stack, packet: &Packet, bytes: &mut Vec<u8>) {
    let (target, ether_type) = match stack {
        Stack::Pause => (PAUSE_GROUP, CONTROL_TYPE),
        Stack::Raw => (address(packet.target), raw_type(packet.payload)),
        _ => (address(packet.target), IPV4_TYPE),
    };
    bytes.extend_from_slice(&target);
    bytes.extend_from_slice(&address(packet.source));
    put16(bytes, ether_type);
}

/// Decodes an Ethernet header; `frame` must have at least 14 bytes.
pub(super) fn read_ethernet(frame: &[u8]) -> Ethernet {
    let node = |at: usize| NodeId(get32(frame, at + 2));
    let target = (frame[..6] != PAUSE_GROUP).then(|| node(0));
    Ethernet { source: node(6), target, ether_type: get16(frame, 12) }
}

fn address(node: NodeId) -> [u8; 6] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

/// Appends everything between Ethernet header and padding.
pub(super) fn write_network(stack: Stack, packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) {
    match stack {
        Stack::Pause => write_pause(packet, bytes),
        Stack::Raw => fill(bytes, packet.payload),
        Stack::Tcp | Stack::TcpPriority => write_tcp(stack, packet, bytes),
        Stack::Roce => write_roce(packet, bytes),
        Stack::ReceiverDriven => write_receiver_driven(packet, bytes),
        Stack::FastpassControl => write_fastpass(packet, content, bytes),
        Stack::Flit => unreachable!("a flit has no Ethernet frame"),
    }
}

/// Decodes everything behind the Ethernet header, including padding; at least 46 bytes.
pub(super) fn read_network(framing: Framing, ether_type: u16, network: &[u8]) -> Result<View, WireError> {
    if ether_type == CONTROL_TYPE {
        return read_pause(network);
    }
    if framing == Framing::Raw {
        return read_raw(ether_type, network);
    }
    known("EtherType", ether_type == IPV4_TYPE, u64::from(ether_type))?;
    let ip = read_ipv4(network)?;
    match (framing, ip.protocol) {
        (Framing::Tcp | Framing::Pfabric | Framing::Fastpass, PROTOCOL_TCP) => read_tcp(&ip),
        (Framing::Roce, PROTOCOL_UDP) => read_roce(&ip, network),
        (Framing::ReceiverDriven, PROTOCOL_UDP) => read_receiver_driven(&ip),
        (Framing::Fastpass, PROTOCOL_FASTPASS) => read_fastpass(&ip),
        (_, protocol) => Err(WireError::Field { field: "IPv4 protocol", got: u64::from(protocol) }),
    }
}

fn raw_type(payload: u32) -> u16 {
    u16::try_from(payload).ok().filter(|length| *length <= LENGTH_MAX).unwrap_or(JUMBO_TYPE)
}

fn read_raw(ether_type: u16, network: &[u8]) -> Result<View, WireError> {
    let jumbo = ether_type == JUMBO_TYPE && network.len() > usize::from(LENGTH_MAX);
    let payload = if jumbo { network.len() } else { usize::from(ether_type) };
    known("length", jumbo || (ether_type <= LENGTH_MAX && payload <= network.len()), u64::from(ether_type))?;
    Ok(View { kind: PacketKind::Data, payload: payload as u32, marked: false, offset: (0, 0) })
}

fn write_pause(packet: &Packet, bytes: &mut Vec<u8>) {
    put16(bytes, PAUSE_OPCODE);
    put16(bytes, PAUSE_CLASS);
    let quanta = if packet.value > 0 { u16::MAX } else { 0 };
    (0..8).for_each(|class| put16(bytes, if 1 << class == PAUSE_CLASS { quanta } else { 0 }));
}

fn read_pause(network: &[u8]) -> Result<View, WireError> {
    let opcode = get16(network, 0);
    known("MAC control opcode", opcode == PAUSE_OPCODE, u64::from(opcode))?;
    Ok(View { kind: PacketKind::Pause, payload: 0, marked: false, offset: (0, 0) })
}

/// The fields of an IPv4 header, and its payload.
struct Ipv4<'a> {
    protocol: u8,
    marked: bool,
    carried: &'a [u8],
}

fn write_ipv4(protocol: u8, ecn: u8, carried: u32, packet: &Packet, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0x45, ecn]);
    put16(bytes, (IPV4 + carried) as u16);
    // Identification 0, don't fragment, 64 hops.
    bytes.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    for node in [packet.source, packet.target] {
        put32(bytes, 0x0a00_0000 | node.0 & 0xff_ffff);
    }
    let check = !ones_sum(&bytes[start..]);
    bytes[start + 10..start + 12].copy_from_slice(&check.to_be_bytes());
}

fn read_ipv4(network: &[u8]) -> Result<Ipv4<'_>, WireError> {
    let header = IPV4 as usize;
    known("IPv4 version", network[0] == 0x45, u64::from(network[0]))?;
    if ones_sum(&network[..header]) != 0xffff {
        return Err(WireError::Checksum { field: "IPv4 header checksum" });
    }
    let total = usize::from(get16(network, 2));
    let carried = network.get(header..total).ok_or(WireError::Field { field: "IPv4 length", got: total as u64 })?;
    Ok(Ipv4 { protocol: network[9], marked: network[1] & 3 == ECN_EXPERIENCED, carried })
}

fn ecn_of(packet: &Packet) -> u8 {
    match (packet.kind, packet.marked) {
        (_, true) => ECN_EXPERIENCED,
        (PacketKind::Data, false) => ECN_CAPABLE,
        _ => ECN_NONE,
    }
}

/// Appends IPv4, TCP and the payload. The mark of an acknowledgement is the echo in the TCP flags;
/// that of data is in the IPv4 header. The checksum stays zero, as before offloading to the NIC:
/// the FCS covers the segment.
fn write_tcp(stack: Stack, packet: &Packet, bytes: &mut Vec<u8>) {
    let is_acknowledgement = packet.kind == PacketKind::Acknowledgement;
    let ecn = if is_acknowledgement { ECN_NONE } else { ecn_of(packet) };
    let blocks: Vec<(u64, u64)> = if is_acknowledgement { blocks_of(packet).collect() } else { Vec::new() };
    let option = match (stack, blocks.len() as u32) {
        (Stack::TcpPriority, _) => PFABRIC,
        (_, 0) => 0,
        (_, blocks) => 4 + 8 * blocks,
    };
    write_ipv4(PROTOCOL_TCP, ecn, TCP + option + packet.payload, packet, bytes);
    put16(bytes, packet.source.0 as u16);
    put16(bytes, packet.target.0 as u16);
    let offset = packet.offset as u32;
    put32(bytes, if is_acknowledgement { 0 } else { offset });
    put32(bytes, if is_acknowledgement { offset } else { 0 });
    let echo = if is_acknowledgement && packet.marked { TCP_ECHO } else { 0 };
    let push = if is_acknowledgement { 0 } else { TCP_PUSH };
    bytes.push((((TCP + option) / 4) << 4) as u8);
    bytes.push(TCP_ACK | echo | push);
    bytes.extend_from_slice(&[0xff, 0xff, 0, 0, 0, 0]);
    if stack == Stack::TcpPriority {
        bytes.extend_from_slice(&[OPTION_EXPERIMENT, PFABRIC as u8]);
        bytes.extend_from_slice(&packet.priority.to_be_bytes()[2..]);
    } else if option > 0 {
        bytes.extend_from_slice(&[OPTION_PADDING, OPTION_PADDING, OPTION_SELECTIVE, option as u8 - 2]);
        blocks.iter().flat_map(|(start, end)| [start, end]).for_each(|edge| put32(bytes, *edge as u32));
    }
    fill(bytes, packet.payload);
}

fn read_tcp(ip: &Ipv4) -> Result<View, WireError> {
    let segment = long_enough(ip.carried, TCP)?;
    let header = u32::from(segment[12] >> 4) * 4;
    let payload = (segment.len() as u32).checked_sub(header);
    let payload = payload.ok_or(WireError::Field { field: "TCP data offset", got: u64::from(header) })?;
    let has_option = header == TCP + PFABRIC || (1..=BLOCKS_MAX).any(|blocks| header == TCP + 4 + 8 * blocks);
    known("TCP data offset", has_option || header == TCP, u64::from(header))?;
    let kind = match (segment[13] & TCP_PUSH != 0, payload) {
        (false, _) => PacketKind::Acknowledgement,
        (true, 0) => PacketKind::Request,
        (true, _) => PacketKind::Data,
    };
    let is_acknowledgement = kind == PacketKind::Acknowledgement;
    let marked = if is_acknowledgement { segment[13] & TCP_ECHO != 0 } else { ip.marked };
    let offset = get32(segment, if is_acknowledgement { 8 } else { 4 });
    Ok(View { kind, payload, marked, offset: (u64::from(offset), LOW_32) })
}

/// Appends a RoCEv2 packet. The byte offset replaces the packet sequence number, whose 24 bits are
/// its low bits. The payload of a request is its extended header.
fn write_roce(packet: &Packet, bytes: &mut Vec<u8>) {
    let (opcode, extension) = roce_opcode(packet);
    let payload = if packet.kind == PacketKind::Request { 0 } else { packet.payload };
    let carried = UDP + BTH + extension + payload + ICRC;
    let network = bytes.len();
    write_ipv4(PROTOCOL_UDP, ecn_of(packet), carried, packet, bytes);
    write_udp(packet.source.0 as u16, ROCE_PORT, carried, bytes);
    bytes.extend_from_slice(&[opcode, 0, 0xff, 0xff]);
    put32(bytes, packet.source.0 & LOW_24 as u32);
    put32(bytes, (packet.offset & LOW_24) as u32);
    fill(bytes, extension + payload);
    let check = crc32fast::hash(&bytes[network..]);
    bytes.extend_from_slice(&check.to_le_bytes());
}

/// Returns the opcode, and the length of its extended header in bytes.
fn roce_opcode(packet: &Packet) -> (u8, u32) {
    let (first, last) = (packet.offset == 0, packet.offset + u64::from(packet.payload) == packet.value);
    match packet.kind {
        PacketKind::CongestionNotification => (CNP, NOTIFICATION),
        PacketKind::Acknowledgement => (ACKNOWLEDGE, AETH),
        PacketKind::Request if packet.payload <= RETH => (READ_REQUEST, RETH),
        PacketKind::Request => (COMPARE_AND_SWAP, request_extension(packet.payload)),
        _ if packet.priority == RESPONSE => response_opcode(first, last),
        _ => write_opcode(first, last),
    }
}

fn write_opcode(first: bool, last: bool) -> (u8, u32) {
    match (first, last) {
        (true, true) => (WRITE_ONLY, RETH),
        (true, false) => (WRITE_FIRST, RETH),
        (false, true) => (WRITE_LAST, 0),
        (false, false) => (WRITE_MIDDLE, 0),
    }
}

fn response_opcode(first: bool, last: bool) -> (u8, u32) {
    match (first, last) {
        (true, true) => (RESPONSE_ONLY, AETH),
        (true, false) => (RESPONSE_FIRST, AETH),
        (false, true) => (RESPONSE_LAST, AETH),
        (false, false) => (RESPONSE_MIDDLE, 0),
    }
}

/// Returns the kind, and the bytes of the extended header that are not payload.
fn roce_kind(opcode: u8) -> Result<(PacketKind, u32), WireError> {
    match opcode {
        WRITE_FIRST | WRITE_ONLY => Ok((PacketKind::Data, RETH)),
        RESPONSE_FIRST | RESPONSE_LAST | RESPONSE_ONLY => Ok((PacketKind::Data, AETH)),
        WRITE_MIDDLE | WRITE_LAST | RESPONSE_MIDDLE => Ok((PacketKind::Data, 0)),
        READ_REQUEST | COMPARE_AND_SWAP => Ok((PacketKind::Request, 0)),
        ACKNOWLEDGE => Ok((PacketKind::Acknowledgement, AETH)),
        CNP => Ok((PacketKind::CongestionNotification, NOTIFICATION)),
        _ => Err(WireError::Field { field: "BTH opcode", got: u64::from(opcode) }),
    }
}

fn read_roce(ip: &Ipv4, network: &[u8]) -> Result<View, WireError> {
    let datagram = long_enough(ip.carried, UDP + BTH + ICRC)?;
    let port = get16(datagram, 2);
    known("UDP port", port == ROCE_PORT, u64::from(port))?;
    let covered = IPV4 as usize + datagram.len() - ICRC as usize;
    if crc32fast::hash(&network[..covered]).to_le_bytes() != network[covered..covered + ICRC as usize] {
        return Err(WireError::Checksum { field: "ICRC" });
    }
    let (kind, extension) = roce_kind(datagram[UDP as usize])?;
    let headers = UDP + BTH + extension + ICRC;
    let payload = long_enough(datagram, headers)?.len() as u32 - headers;
    let offset = u64::from(get32(datagram, (UDP + 8) as usize)) & LOW_24;
    Ok(View { kind, payload, marked: ip.marked, offset: (offset, LOW_24) })
}

/// Appends a UDP header; a zero checksum means none (RFC 768).
fn write_udp(source: u16, target: u16, length: u32, bytes: &mut Vec<u8>) {
    put16(bytes, source);
    put16(bytes, target);
    put32(bytes, length << 16);
}

/// Appends a packet of the receiver-driven protocol; the port encodes the kind.
fn write_receiver_driven(packet: &Packet, bytes: &mut Vec<u8>) {
    let carried = UDP + RECEIVER_DRIVEN + packet.payload;
    write_ipv4(PROTOCOL_UDP, ecn_of(packet), carried, packet, bytes);
    let port = RECEIVER_DRIVEN_PORT + u16::from(kind_code(packet.kind));
    write_udp(packet.source.0 as u16, port, carried, bytes);
    put32(bytes, packet.message);
    put32(bytes, packet.offset as u32);
    put32(bytes, packet.payload);
    put32(bytes, packet.priority as u32);
    fill(bytes, packet.payload);
}

fn read_receiver_driven(ip: &Ipv4) -> Result<View, WireError> {
    let datagram = long_enough(ip.carried, UDP + RECEIVER_DRIVEN)?;
    let port = get16(datagram, 2);
    let code = u8::try_from(port.wrapping_sub(RECEIVER_DRIVEN_PORT)).unwrap_or(u8::MAX);
    let kind = kind_of_code(code).map_err(|_| WireError::Field { field: "UDP port", got: u64::from(port) })?;
    let payload = datagram.len() as u32 - UDP - RECEIVER_DRIVEN;
    let written = get32(datagram, (UDP + 8) as usize);
    known("payload length", written == payload, u64::from(written))?;
    let offset = u64::from(get32(datagram, (UDP + 4) as usize));
    Ok(View { kind, payload, marked: ip.marked, offset: (offset, LOW_32) })
}

/// Appends the content, padded with zeros; without content, an empty packet of its kind.
fn write_fastpass(packet: &Packet, content: &[u8], bytes: &mut Vec<u8>) {
    let network = packet.wire - (PREAMBLE + ETHERNET + FCS + GAP);
    write_ipv4(PROTOCOL_FASTPASS, ecn_of(packet), network - IPV4, packet, bytes);
    let start = bytes.len();
    if content.is_empty() {
        let kind = if packet.kind == PacketKind::Grant { TYPE_SLOTS } else { TYPE_COUNTS };
        fill(bytes, FASTPASS);
        bytes.push(kind << 4);
    } else {
        bytes.extend_from_slice(content);
    }
    bytes.resize(start + (network - IPV4) as usize, 0);
}

fn read_fastpass(ip: &Ipv4) -> Result<View, WireError> {
    let control = long_enough(ip.carried, FASTPASS + 1)?;
    let part = control[FASTPASS as usize] >> 4;
    let kind = if part == TYPE_SLOTS { PacketKind::Grant } else { PacketKind::Request };
    known("Fastpass payload type", part == TYPE_SLOTS || part == TYPE_COUNTS, u64::from(part))?;
    Ok(View { kind, payload: 0, marked: ip.marked, offset: (0, 0) })
}

fn long_enough(bytes: &[u8], needed: u32) -> Result<&[u8], WireError> {
    let needed = needed as usize;
    if bytes.len() < needed { Err(WireError::Short { got: bytes.len(), needed }) } else { Ok(bytes) }
}

fn known(field: &'static str, holds: bool, got: u64) -> Result<(), WireError> {
    if holds { Ok(()) } else { Err(WireError::Field { field, got }) }
}

/// Returns the ones' complement sum of 16-bit words (RFC 1071) over an even number of bytes.
fn ones_sum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(get16(pair, 0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded + (folded >> 16)) as u16
}

fn fill(bytes: &mut Vec<u8>, count: u32) {
    bytes.resize(bytes.len() + count as usize, 0);
}
fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_be_bytes());
}
fn put32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_be_bytes());
}
fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Bounds every read above: the shortest frame without its Ethernet header and FCS contains the
/// IPv4 header.
const _: () = assert!(FRAME_MIN - ETHERNET - FCS >= IPV4 && FRAME_MIN - ETHERNET - FCS >= 20);
