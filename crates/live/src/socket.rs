//! One connection of a host: its socket, what the system has said of it, and bytes that the target has not taken yet.

use crate::machine::Machine;
use crate::stream::Stream;
use mio::net::TcpStream;
use nvme::target::ConnectionId;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

/// Slices that one call sends at most: a third of what the system takes, and more than a burst of small answers needs.
const SLICES_MAX: usize = 256;

/// What came of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All that there was to do for now.
    Settled,
    /// There may be more at once.
    More,
    /// The peer or the network has ended it.
    Ended,
}

/// A connection.
pub(crate) struct Socket {
    pub id: ConnectionId,
    pub peer: SocketAddr,
    stream: Stream,
    /// Read, but not taken by the target.
    left: Vec<u8>,
    may_read: bool,
    may_write: bool,
    /// It is in the loop's list of those that may have more.
    pub is_listed: bool,
}

impl Socket {
    pub(crate) fn new(id: ConnectionId, peer: SocketAddr, stream: Stream) -> Socket {
        Socket { id, peer, stream, left: Vec::new(), may_read: false, may_write: true, is_listed: false }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        self.stream.socket()
    }

    /// The system says that there is something to read, or room to write.
    pub(crate) fn is_ready(&mut self, to_read: bool, to_write: bool) {
        self.may_read |= to_read;
        self.may_write |= to_write;
    }

    /// Whether there may be something for the target.
    pub(crate) fn has_input(&self) -> bool {
        self.may_read || !self.left.is_empty()
    }

    /// Brings the target what it takes of what is there: one read at most, so that every connection has its turn. `room` is shared by all.
    pub(crate) fn pull(&mut self, now: base::Time, target: &mut Machine, room: &mut [u8]) -> Moved {
        if !target.wants_input(self.id) {
            return Moved::Settled;
        }
        if !self.left.is_empty() {
            let taken = target.receive(now, self.id, &self.left);
            self.left.drain(..taken);
            return if self.left.is_empty() && self.may_read { Moved::More } else { Moved::Settled };
        }
        match self.stream.read(room) {
            Ok(0) => Moved::Ended,
            Ok(count) => {
                if let Some(channel) = self.stream.take_channel() {
                    target.secured(now, self.id, channel);
                }
                let taken = target.receive(now, self.id, &room[..count]);
                self.left.extend_from_slice(&room[taken..count]);
                // A stream that gave less than there was room for is empty (epoll(7)).
                self.may_read = count == room.len() || self.stream.has_ended();
                if self.may_read { Moved::More } else { Moved::Settled }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.may_read = false;
                Moved::Settled
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Moved::More,
            Err(_) => Moved::Ended,
        }
    }

    /// Sends what the target has for it, as far as the system takes it.
    pub(crate) fn push(&mut self, target: &mut Machine) -> Moved {
        while self.may_write {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let (mut count, mut bytes) = (0, 0);
            for (place, slice) in slices.iter_mut().zip(target.transmit(self.id)) {
                *place = IoSlice::new(slice);
                (count, bytes) = (count + 1, bytes + slice.len());
            }
            if count == 0 {
                return Moved::Settled;
            }
            match self.stream.write_vectored(&slices[..count]) {
                Ok(0) => return Moved::Ended,
                Ok(sent) => {
                    target.transmitted(self.id, sent);
                    self.may_write = sent == bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_write = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Moved::Ended,
            }
        }
        Moved::Settled
    }

    /// Ends it from this side: what was sent last can still be read. Unread bytes would make the system send a reset, which overtakes it.
    pub(crate) fn end(mut self, room: &mut [u8]) {
        /// Reads of what a peer has sent too much; more than that is its own loss.
        const READS_MAX: usize = 16;
        self.stream.end();
        for _ in 0..READS_MAX {
            if !matches!(self.stream.read(room), Ok(count) if count > 0) {
                break;
            }
        }
    }
}
