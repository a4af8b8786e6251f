//! One connection: its socket, its session, and the bytes between them.

use crate::config::Limits;
use crate::output::Output;
use crate::session::{Ask, Rules, Session};
use crate::socket::Socket;
use base::Time;
use bytes::BytesMut;
use mio::net::TcpStream;
use std::io::{self, Read};
use std::net::SocketAddr;

/// Bytes of one read, at least and at most: a client that sends much is given more room. Room is
/// filled with zeros before it is read into.
const READ_BYTES: [usize; 2] = [4 << 10, 64 << 10];

/// One connection.
pub struct Connection {
    /// Which of all that there were.
    pub number: u64,
    /// Its other end.
    pub peer: SocketAddr,
    /// Its commands.
    pub session: Session,
    socket: Socket,
    input: BytesMut,
    output: Output,
    /// Bytes of the next read.
    room: usize,
    is_readable: bool,
    /// The other end sends no more than what is there.
    is_closing: bool,
    is_ended: bool,
    /// Whether commands that are here wait until answers were read.
    is_held: bool,
    /// Whether the loop has it on its list.
    pub is_listed: bool,
    /// [`Self::held`] when the loop last counted it.
    pub counted: usize,
    since: Time,
    /// Since when a command is there in part.
    partial_since: Option<Time>,
    /// Since when answers wait without any having been taken.
    unread_since: Option<Time>,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It waits for its socket or for the store.
    Waits,
    /// It has more to do at once.
    HasMore,
    /// It is over.
    Over,
}

impl Connection {
    /// A connection that was accepted at `now`.
    pub fn new(now: Time, number: u64, peer: SocketAddr, socket: Socket, rules: &Rules) -> Connection {
        Connection {
            number,
            peer,
            session: Session::new(number, rules),
            socket,
            input: BytesMut::new(),
            output: Output::default(),
            room: READ_BYTES[0],
            is_readable: true,
            is_closing: false,
            is_ended: false,
            is_held: false,
            is_listed: false,
            counted: 0,
            since: now,
            partial_since: None,
            unread_since: None,
        }
    }

    /// Bytes of memory that it has of commands and answers.
    pub fn held(&self) -> usize {
        self.input.capacity() + self.output.held() + self.session.held()
    }

    /// Its socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.socket.stream()
    }

    /// Something has happened at its socket.
    pub fn is_ready(&mut self, to_read: bool, is_closing: bool) {
        self.is_readable |= to_read;
        self.is_closing |= is_closing;
    }

    /// Takes commands that are there, and reads once if there is room for more. Returns the number
    /// of commands.
    pub fn take(&mut self, now: Time, rules: &Rules, limits: &Limits, asks: &mut Vec<Ask>) -> usize {
        // Answers to what is taken are held in memory until they are read.
        self.is_held = self.output.len() >= limits.backlog;
        if self.is_held {
            return 0;
        }
        let mut taken = self.session.take(now, &mut self.input, rules, asks);
        if self.may_read(limits) {
            self.read();
            taken += self.session.take(now, &mut self.input, rules, asks);
        }
        let is_partial = !self.input.is_empty() && !self.session.is_full() && !self.session.is_over();
        self.partial_since = match self.partial_since.filter(|_| taken == 0) {
            _ if !is_partial => None,
            None => Some(now),
            since => since,
        };
        if self.is_ended && !self.session.is_full() {
            // The rest of a command will never come.
            self.session.end();
        }
        taken
    }

    fn may_read(&self, limits: &Limits) -> bool {
        let is_open = self.is_readable && !self.is_ended && !self.session.is_over() && !self.session.is_full();
        is_open && self.output.len() < limits.backlog
    }

    fn read(&mut self) {
        let start = self.input.len();
        self.input.resize(start + self.room, 0);
        let got = loop {
            match self.socket.read(&mut self.input[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        let count = match got {
            Ok(count) => {
                self.is_ended |= count == 0;
                // Less than there is room for: more is an event again (epoll(7)), the end is not.
                self.is_readable = count == self.room || self.is_closing || !self.socket.gives_all();
                self.room = (2 * count.next_power_of_two()).clamp(READ_BYTES[0], READ_BYTES[1]);
                count
            }
            Err(error) => {
                self.is_ended |= error.kind() != io::ErrorKind::WouldBlock;
                self.is_readable = false;
                0
            }
        };
        self.input.truncate(start + count);
    }

    /// Appends replies with `write` as long as there are some and the socket takes them.
    pub fn give(&mut self, now: Time, limits: &Limits, mut write: impl FnMut(&mut Session, &mut Output)) -> Life {
        loop {
            write(&mut self.session, &mut self.output);
            if self.output.is_empty() {
                break;
            }
            match self.send() {
                Ok(true) => {}
                Ok(false) => {
                    self.unread_since.get_or_insert(now);
                    break;
                }
                Err(_) => return Life::Over,
            }
        }
        self.output.shrink(limits.backlog);
        self.life(limits)
    }

    /// Sends what waits; `false` where the socket takes no more of it now.
    fn send(&mut self) -> io::Result<bool> {
        while !self.output.is_empty() {
            match self.output.write(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => self.unread_since = None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn life(&self, limits: &Limits) -> Life {
        if self.session.is_over() && self.session.is_idle() && self.output.is_empty() {
            return Life::Over;
        }
        let has_room = self.output.len() < limits.backlog;
        if self.may_read(limits) || self.is_held && has_room { Life::HasMore } else { Life::Waits }
    }

    /// Whether the client has yet to agree on TLS, or to give the password.
    pub fn is_stranger(&self) -> bool {
        !self.socket.is_agreed() || !self.session.is_known()
    }

    /// Why it has to end at `now`, if so.
    pub fn overdue(&self, now: Time, limits: &Limits) -> Option<&'static str> {
        let is_past = |since: Option<Time>, span| since.is_some_and(|since| now.saturating_since(since) > span);
        if !self.socket.is_agreed() && is_past(Some(self.since), limits.handshake) {
            Some("no TLS in time")
        } else if !self.session.is_known() && is_past(Some(self.since), limits.handshake) {
            Some("no password in time")
        } else if is_past(self.partial_since, limits.stall) {
            Some("the rest of a command did not come in time")
        } else if is_past(self.unread_since, limits.stall) {
            Some("answers were not read in time")
        } else {
            None
        }
    }
}
