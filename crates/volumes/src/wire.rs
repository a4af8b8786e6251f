//! Packets in UDP datagrams.

use blox::{CodecError, PAGE_BYTES, Packet, decode_datagram, encode_datagram};
use bytes::Bytes;
use mio::net::UdpSocket;
use runtime::error::StartError;
use runtime::listen::resolve;
use std::io;
use std::net::SocketAddr;

/// The longest datagram: a page with all its headers, and room for what is no packet.
const ROOM: usize = 8_192;
/// What the system may hold of datagrams that came while the role was busy, if it allows that.
const BUFFER: usize = 16 << 20;

/// What a socket has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct WireCounts {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that are no packets.
    pub malformed: u64,
    /// Datagrams that the system did not take; their senders send them again.
    pub unsent: u64,
}

/// A socket, with room for one datagram each way.
pub struct Wire {
    socket: UdpSocket,
    room: Box<[u8; ROOM]>,
    out: Vec<u8>,
    counts: WireCounts,
}

impl Wire {
    /// Binds `text`, `ADDRESS:PORT`.
    ///
    /// # Errors
    /// When the address is wrong or taken.
    pub fn bind(text: &str) -> Result<Wire, StartError> {
        let address = resolve(text).map_err(|reason| StartError::Address { text: text.into(), reason })?;
        let socket = UdpSocket::bind(address).map_err(|reason| match reason.kind() {
            io::ErrorKind::AddrInUse => StartError::InUse { address: text.into(), by: None },
            _ => StartError::Listen { address: text.into(), reason },
        })?;
        // Beyond the system's limit only root may go; less makes losses likelier, nothing else.
        use rustix::net::sockopt;
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        }
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        Ok(Wire { socket, room: Box::new([0; ROOM]), out: Vec::new(), counts: WireCounts::default() })
    }

    /// What was seen so far.
    pub fn counts(&self) -> WireCounts {
        self.counts
    }

    /// Its socket, to wait for.
    pub fn socket(&mut self) -> &mut UdpSocket {
        &mut self.socket
    }

    /// Its address.
    ///
    /// # Errors
    /// As the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next packet with its data, an error for a datagram that is none, and `None` when no more
    /// wait. `data` has the page's bytes, or none.
    pub fn receive(&mut self, data: &mut Vec<u8>) -> Option<Result<Packet, CodecError>> {
        let length = loop {
            match self.socket.recv(&mut *self.room) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // A role that is not there: the system tells the next call.
                Err(_) => {}
            }
        };
        self.counts.received += 1;
        data.clear();
        let decoded = decode_datagram(&self.room[..length]).map(|(packet, page)| {
            data.extend_from_slice(page);
            packet
        });
        self.counts.malformed += u64::from(decoded.is_err());
        Some(decoded)
    }

    /// Sends a packet. `data` is its page where it carries one.
    pub fn send(&mut self, to: SocketAddr, packet: &Packet, data: Option<&Bytes>) {
        let page: &[u8] = data.map_or(&[], |data| data);
        debug_assert_eq!(page.len(), if packet.body.value().is_some() { PAGE_BYTES as usize } else { 0 });
        self.out.clear();
        encode_datagram(packet, page, &mut self.out);
        match self.socket.send_to(&self.out, to) {
            Ok(_) => self.counts.sent += 1,
            Err(_) => self.counts.unsent += 1,
        }
    }
}
