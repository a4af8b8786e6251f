//! Frames around datagrams: sound ones, and such as the data path must not touch.

use super::source;
use express::{Neighbour, Own, Station};
use std::net::SocketAddrV4;

const HEADERS: usize = 42;
/// A frame with less is none of a packet, and not counted in the kernel.
pub const LEAST: usize = 71;
/// What the sender's machine chose.
const SERVICE: u8 = 0x48;
const IDENTITY: [u8; 2] = [0x12, 0x34];
const SENDER: Station = [2, 0, 0, 0, 9, 4];

/// What is odd about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Nothing.
    Plain,
    /// No checksum of UDP, which is allowed.
    WithoutSum,
    /// Bytes behind the packet, as in the shortest frames.
    Padded(usize),
    /// The datagram was damaged on its way: its checksum is wrong.
    Damaged,
    /// The checksum was left to a card: it covers the addresses alone.
    Unsummed,
    /// For another machine, port or station.
    OtherAddress,
    OtherPort,
    OtherStation,
    /// Not IPv4, or not UDP.
    OtherType,
    OtherProtocol,
    /// A header of another version of IP, all else in its place.
    OtherVersion,
    /// A header of IPv4 with options.
    Options,
    /// A part of a packet.
    Fragment,
    LaterFragment,
    /// Lengths that contradict each other, or the frame.
    LongerPacket,
    ShorterDatagram,
    Cut(usize),
    /// A damaged header of IPv4.
    DamagedHeader,
    /// In a VLAN.
    Tagged,
}

impl Frame {
    pub const ALL: [Frame; 19] = [
        Frame::Plain,
        Frame::WithoutSum,
        Frame::Padded(9),
        Frame::Damaged,
        Frame::Unsummed,
        Frame::OtherAddress,
        Frame::OtherPort,
        Frame::OtherStation,
        Frame::OtherType,
        Frame::OtherProtocol,
        Frame::OtherVersion,
        Frame::Options,
        Frame::Fragment,
        Frame::LaterFragment,
        Frame::LongerPacket,
        Frame::ShorterDatagram,
        Frame::Cut(1),
        Frame::DamagedHeader,
        Frame::Tagged,
    ];

    /// Whether its datagram comes to the role exactly as it is. (One that is damaged does not: the
    /// kernel forwards it damaged, and its receiver drops it.)
    pub fn reaches_the_role(self) -> bool {
        matches!(self, Frame::Plain | Frame::WithoutSum | Frame::Padded(_) | Frame::Damaged)
    }

    /// The frame around a datagram from a door to the switch.
    pub fn bytes(self, own: &Own, datagram: &[u8]) -> Vec<u8> {
        self.between((SENDER, source()), (own.station, own.address), 33, datagram)
    }

    /// The frame that a switch makes of it: the same datagram, or that of a redirected read.
    pub fn answered(self, own: &Own, to: &Neighbour, datagram: &[u8]) -> Vec<u8> {
        self.between((own.station, own.address), (to.station, to.address), 64, datagram)
    }

    fn between(self, from: (Station, SocketAddrV4), to: (Station, SocketAddrV4), hops: u8, datagram: &[u8]) -> Vec<u8> {
        let mut frame = plain(from, to, hops, datagram);
        self.spoil(&mut frame);
        frame
    }

    fn spoil(self, frame: &mut Vec<u8>) {
        match self {
            Frame::Plain => {}
            Frame::WithoutSum => frame[40..42].fill(0),
            Frame::Padded(more) => frame.resize(frame.len() + more, 0x5a),
            Frame::Damaged => add(frame, 40, 0x0101),
            Frame::Unsummed => {
                let sum = pseudo(frame);
                frame[40..42].copy_from_slice(&folded(sum).to_be_bytes());
            }
            Frame::OtherAddress => frame[33] ^= 1,
            Frame::OtherPort => frame[37] ^= 1,
            Frame::OtherStation => frame[5] ^= 1,
            Frame::OtherType => frame[12..14].copy_from_slice(&[0x86, 0xdd]),
            Frame::OtherProtocol => frame[23] = 6,
            Frame::OtherVersion => frame[14] = 0x65,
            Frame::Options => {
                frame[14] = 0x46;
                frame.splice(34..34, [1, 1, 1, 1]);
                let length = u16::from_be_bytes([frame[16], frame[17]]) + 4;
                frame[16..18].copy_from_slice(&length.to_be_bytes());
            }
            Frame::Fragment => frame[20] |= 0x20,
            Frame::LaterFragment => frame[21] = 3,
            Frame::LongerPacket => frame[17] ^= 1,
            Frame::ShorterDatagram => frame[39] ^= 1,
            Frame::Cut(less) => frame.truncate(frame.len() - less),
            Frame::DamagedHeader => return frame[15] ^= 4,
            Frame::Tagged => drop(frame.splice(12..12, [0x81, 0, 0, 7])),
        }
        let is_around = matches!(self, Frame::OtherType | Frame::Tagged | Frame::OtherStation | Frame::Cut(_));
        if !is_around {
            let words = usize::from(frame[14] & 15);
            let end = 14 + words * 4;
            frame[24..26].fill(0);
            let check = !folded(sum(&frame[14..end]));
            frame[24..26].copy_from_slice(&check.to_be_bytes());
        }
    }
}

/// Adds to a checksum. In ones' complement it is then as wrong before the switch as behind it.
fn add(frame: &mut [u8], at: usize, more: u16) {
    let held = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let wrong = folded(u64::from(held) + u64::from(more));
    frame[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
}

/// Whether a checksum looks as if it were left to a card: one of 65,536 right ones does.
pub fn looks_unsummed(frame: &[u8]) -> bool {
    frame.len() >= HEADERS && frame[40..42] == folded(pseudo(frame)).to_be_bytes()
}

fn plain(from: (Station, SocketAddrV4), to: (Station, SocketAddrV4), hops: u8, datagram: &[u8]) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00]].concat();
    let (udp, ip) = (datagram.len() as u16 + 8, datagram.len() as u16 + 28);
    frame.extend([&[0x45, SERVICE], &ip.to_be_bytes()[..], &IDENTITY, &[0x40, 0, hops, 17, 0, 0]].concat());
    frame.extend([from.1.ip().octets(), to.1.ip().octets()].concat());
    let check = !folded(sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame.extend([from.1.port(), to.1.port(), udp, 0].map(u16::to_be_bytes).concat());
    frame.extend_from_slice(datagram);
    let check = !folded(pseudo(&frame) + sum(&frame[34..38]) + u64::from(udp) + sum(&frame[HEADERS..]));
    let check = if check == 0 { u16::MAX } else { check };
    frame[40..42].copy_from_slice(&check.to_be_bytes());
    frame
}

/// The pseudo header of UDP: addresses, protocol and length (RFC 768).
fn pseudo(frame: &[u8]) -> u64 {
    sum(&frame[26..34]) + 17 + sum(&frame[38..40])
}

/// The sum of 16-bit words, a last odd byte padded.
fn sum(bytes: &[u8]) -> u64 {
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
