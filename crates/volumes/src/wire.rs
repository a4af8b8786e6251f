//! Packets in UDP datagrams, behind the tag of their rack. A dead role's port may be another rack's
//! next, and its packets would be taken for its own.

use crate::configs;
use blox::{PAGE_BYTES, Packet, decode_datagram, encode_datagram};
use bytes::{BufMut, Bytes};
use mio::net::UdpSocket;
use plan::rack::Rack;
use runtime::error::StartError;
use std::io;
use std::net::SocketAddr;

/// The longest datagram: a page with all its headers, and room for what is no packet.
const ROOM: usize = 8_192;
/// Bytes of the tag.
const TAG: usize = 8;
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
    /// Datagrams of other racks, or of roles with another version of the rack's file.
    pub foreign: u64,
    /// Datagrams that the system did not take; their senders send them again.
    pub unsent: u64,
}

/// A socket, with room for one datagram each way.
pub struct Wire {
    socket: UdpSocket,
    tag: [u8; TAG],
    room: Box<[u8; ROOM]>,
    out: Vec<u8>,
    counts: WireCounts,
}

impl Wire {
    /// Binds an address of a role of `rack`.
    ///
    /// # Errors
    /// When the address is taken, or not one of this machine.
    pub fn bind(rack: &Rack, address: SocketAddr) -> Result<Wire, StartError> {
        let socket = UdpSocket::bind(address).map_err(|reason| match reason.kind() {
            io::ErrorKind::AddrInUse => StartError::InUse { address: address.to_string(), by: None },
            _ => StartError::Listen { address: address.to_string(), reason },
        })?;
        // Beyond the system's limit only root may go; less makes losses likelier, nothing else.
        use rustix::net::sockopt;
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        }
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        let tag = configs::tag(rack).to_be_bytes();
        Ok(Wire { socket, tag, room: Box::new([0; ROOM]), out: Vec::new(), counts: WireCounts::default() })
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

    /// The next packet with its data; `Some(None)` for a datagram that is counted and means nothing
    /// here, and `None` when no more wait. `data` has the page's bytes, or none.
    pub fn receive(&mut self, data: &mut Vec<u8>) -> Option<Option<Packet>> {
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
        let Some(datagram) = self.room[..length].strip_prefix(&self.tag) else {
            if self.counts.foreign == 0 {
                tracing::warn!("a datagram of another rack, or of a role with another version of this rack's file");
            }
            self.counts.foreign += 1;
            return Some(None);
        };
        match decode_datagram(datagram) {
            Ok((packet, page)) => {
                data.extend_from_slice(page);
                Some(Some(packet))
            }
            Err(error) => {
                tracing::debug!(%error, "not a packet");
                self.counts.malformed += 1;
                Some(None)
            }
        }
    }

    /// Sends a packet. `data` is its page where it carries one.
    pub fn send(&mut self, to: SocketAddr, packet: &Packet, data: Option<&Bytes>) {
        let page: &[u8] = data.map_or(&[], |data| data);
        debug_assert_eq!(page.len(), if packet.body.value().is_some() { PAGE_BYTES as usize } else { 0 });
        self.out.clear();
        self.out.put_slice(&self.tag);
        encode_datagram(packet, page, &mut self.out);
        match self.socket.send_to(&self.out, to) {
            Ok(_) => self.counts.sent += 1,
            Err(_) => self.counts.unsent += 1,
        }
    }
}
