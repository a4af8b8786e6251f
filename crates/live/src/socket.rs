//! One connection of a host: its socket, its readiness, and bytes that the target has not taken
//! yet.

use crate::backend::{Backends, Memory};
use crate::machine::Machine;
use crate::stream::Stream;
use base::Time;
use mio::net::TcpStream;
use nvme::target::{Channel, ConnectionId, Piece, PortId, Target};
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

/// Slices that one call sends at most: a third of the system's limit. A full queue of 128 reads has
/// fewer, one slice for each header and one for its data.
const SLICES_MAX: usize = 320;

/// Outcome of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Nothing more to do for now.
    Settled,
    /// There may be more at once.
    More,
    /// The peer or the network has closed the connection.
    Ended,
}

/// A connection.
pub(crate) struct Socket {
    pub id: ConnectionId,
    pub peer: SocketAddr,
    /// The port by which it came.
    pub port: PortId,
    stream: Stream,
    /// Bytes that were read and not taken by the target.
    left: Vec<u8>,
    may_read: bool,
    may_write: bool,
    /// The peer sends nothing more. Reading continues until its end, since the system reports this
    /// only once.
    is_half_closed: bool,
    /// It is in the loop's list of connections with possible input.
    pub is_listed: bool,
}

impl Socket {
    pub(crate) fn new(id: ConnectionId, peer: SocketAddr, port: PortId, stream: Stream) -> Socket {
        let left = Vec::new();
        Socket {
            id,
            peer,
            port,
            stream,
            left,
            may_read: false,
            may_write: true,
            is_half_closed: false,
            is_listed: false,
        }
    }

    /// It is a connection of another loop from now on, which has seen nothing of its readiness.
    pub(crate) fn moved(&mut self, id: ConnectionId) {
        (self.id, self.is_listed) = (id, false);
        (self.may_read, self.may_write) = (true, true);
    }

    /// Why the handshake of TLS has failed, if it has.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.stream.failure()
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.stream.socket()
    }

    /// The system reports that the socket is readable or writable.
    pub(crate) fn is_ready(&mut self, to_read: bool, to_write: bool) {
        self.may_read |= to_read;
        self.may_write |= to_write;
    }

    /// The system reports that the peer has closed its side.
    pub(crate) fn half_closed(&mut self) {
        self.is_half_closed = true;
    }

    /// Whether there may be bytes for the target.
    pub(crate) fn has_input(&self) -> bool {
        self.may_read || !self.left.is_empty()
    }

    /// Puts bytes for the target at the front of `room`: those that it left, or those of one read,
    /// so that every connection has its turn.
    pub(crate) fn read(&mut self, room: &mut [u8]) -> Result<usize, Moved> {
        if !self.left.is_empty() {
            let count = self.left.len();
            room[..count].copy_from_slice(&self.left);
            self.left.clear();
            return Ok(count);
        }
        match self.stream.read(room) {
            Ok(0) => Err(Moved::Ended),
            Ok(count) => {
                // A read that did not fill its room has emptied the stream (epoll(7)), except for
                // its end.
                self.may_read = count == room.len() || self.is_half_closed || self.stream.has_ended();
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_read = false;
                Err(Moved::Settled)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(Moved::More),
            Err(_) => Err(Moved::Ended),
        }
    }

    /// Returns the peer's identity from a handshake, once, before its first bytes go to the target.
    pub(crate) fn take_channel(&mut self) -> Option<Channel> {
        self.stream.take_channel()
    }

    /// Keeps the bytes that the target has not taken: no more than the room that they were read
    /// into.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.left.extend_from_slice(bytes);
    }

    /// Sends the target's output as far as the system accepts it, and ends the loans of the rest.
    pub(crate) fn push(&mut self, now: Time, target: &mut Machine, backends: &Backends) -> Moved {
        let mut memory = Memory::of(backends, false);
        while self.may_write && target.target().pieces(self.id).next().is_some() {
            match self.send_from(target.target(), &mut memory) {
                Ok(sent) => target.transmitted(self.id, sent),
                Err(moved) => return moved,
            }
            if self.may_write {
                // All of it was sent: no block has a half that is still lent.
                memory.let_go();
            }
        }
        memory.end_loans(now, target, self.id);
        Moved::Settled
    }

    fn send_from(&mut self, target: &Target, memory: &mut Memory<'_>) -> Result<usize, Moved> {
        let Some(lender) = target.lender(self.id) else { return self.send(target.transmit(self.id)) };
        let lent = memory.lent_by(lender);
        // A block that cannot be sent from where it lies ends the slices: reading it then gives the
        // reason.
        let slices = target.pieces(self.id).map_while(|piece| match piece {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Lent { range, from, to } => lent?.bytes(range)?.get(from..to),
        });
        self.send(slices)
    }

    /// Sends what the system accepts of `waiting` by one call. Returns the number of bytes.
    fn send<'a>(&mut self, waiting: impl Iterator<Item = &'a [u8]>) -> Result<usize, Moved> {
        if !self.may_write {
            return Ok(0);
        }
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut bytes) = (0, 0);
        for (place, slice) in slices.iter_mut().zip(waiting) {
            *place = IoSlice::new(slice);
            (count, bytes) = (count + 1, bytes + slice.len());
        }
        match self.stream.write_vectored(&slices[..count]) {
            Ok(0) if bytes > 0 => Err(Moved::Ended),
            Ok(sent) => {
                self.may_write = sent == bytes;
                Ok(sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_write = false;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(_) => Err(Moved::Ended),
        }
    }

    /// Closes it from this side. The peer can still read what was sent last: unread bytes would
    /// make the system send a reset, which overtakes it.
    pub(crate) fn end(mut self) {
        /// Reads of surplus bytes of a peer; more than that are its own loss.
        const READS_MAX: usize = 256;
        let mut room = [0; 16 << 10];
        self.stream.end();
        for _ in 0..READS_MAX {
            if !matches!(self.stream.read(&mut room), Ok(count) if count > 0) {
                break;
            }
        }
    }
}
