//! Plays a script of [`nvme::attack`] against a target: moves its bytes and keeps its time.

use crate::clock::Clock;
use crate::host::HostError;
use crate::listen::resolve;
use base::Span;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use nvme::attack::{Action, Attack, LINKS, LinkId, Player, Verdict, Victim};
use runtime::waiting::poll_once;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of one read of a socket.
const ROOM: usize = 64 << 10;

/// A connection of the script.
struct Link {
    stream: TcpStream,
    is_open: bool,
    may_read: bool,
    may_write: bool,
}

/// The player with its sockets.
struct Stage {
    address: SocketAddr,
    poll: Poll,
    clock: Clock,
    player: Player,
    links: [Option<Link>; LINKS],
}

/// Plays `attack` on the target at `address`, `ADDRESS:PORT`. A target that sends nothing for
/// `step_timeout` hangs.
///
/// # Errors
/// When the address is invalid or this host runs out of resources. The verdict says what the target
/// does.
pub fn play(address: &str, attack: &Attack, victim: Victim, step_timeout: Span) -> Result<Verdict, HostError> {
    let failed = |reason| HostError::Connect { address: address.into(), reason };
    let clock = Clock::start();
    let mut stage = Stage {
        address: resolve(address).map_err(failed)?,
        poll: Poll::new().map_err(failed)?,
        player: Player::new(clock.now(), attack, victim, step_timeout),
        clock,
        links: Default::default(),
    };
    let mut events = Events::with_capacity(16);
    loop {
        stage.act();
        if let Some(verdict) = stage.player.verdict() {
            return Ok(verdict.clone());
        }
        stage.wait(&mut events).map_err(failed)?;
    }
}

impl Stage {
    /// Carries out what the player wants until it wants nothing more.
    fn act(&mut self) {
        loop {
            while let Some(action) = self.player.next_action() {
                match action {
                    Action::Open(link) => self.open(link),
                    Action::Drop(link) => self.drop(link),
                }
            }
            let sent = (0..LINKS).filter(|link| self.send(*link)).count();
            if sent == 0 || self.player.verdict().is_some() {
                return;
            }
        }
    }

    fn open(&mut self, link: LinkId) {
        let connected = TcpStream::connect(self.address).and_then(|mut stream| {
            self.poll.registry().register(&mut stream, Token(link), Interest::READABLE | Interest::WRITABLE)?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => self.links[link] = Some(Link { stream, is_open: false, may_read: false, may_write: false }),
            Err(_) => self.player.closed(self.clock.now(), link),
        }
    }

    /// Closes with a reset: what is underway is lost on both sides.
    fn drop(&mut self, link: LinkId) {
        if let Some(gone) = self.links[link].take() {
            let _ = rustix::net::sockopt::set_socket_linger(&gone.stream, Some(Duration::ZERO));
        }
    }

    /// Sends once. Returns whether anything was sent.
    fn send(&mut self, link: LinkId) -> bool {
        let Some(open) = self.links[link].as_mut().filter(|open| open.is_open && open.may_write) else { return false };
        let bytes = self.player.transmit(link);
        if bytes.is_empty() {
            return false;
        }
        match open.stream.write(bytes) {
            Ok(sent) => {
                self.player.transmitted(link, sent);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => {
                open.may_write = false;
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.lose(link);
                }
                false
            }
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let now = self.clock.now();
        let timeout = self.player.next_wakeup().map(|at| Clock::wait(now, at));
        poll_once(&mut self.poll, events, timeout)?;
        for event in events.iter() {
            let Some(link) = self.links.get_mut(event.token().0).and_then(Option::as_mut) else { continue };
            link.may_read |= event.is_readable() || event.is_read_closed() || event.is_error();
            link.may_write |= event.is_writable();
        }
        for link in 0..LINKS {
            self.on_ready(link)?;
        }
        let now = self.clock.now();
        if self.player.next_wakeup().is_some_and(|at| at <= now) {
            self.player.on_wakeup(now);
        }
        Ok(())
    }

    fn on_ready(&mut self, link: LinkId) -> io::Result<()> {
        let Some(ready) = self.links[link].as_mut() else { return Ok(()) };
        if !ready.is_open && (ready.may_read || ready.may_write) {
            if ready.stream.take_error()?.is_some() {
                self.lose(link);
                return Ok(());
            }
            if ready.stream.peer_addr().is_err() {
                return Ok(());
            }
            ready.is_open = true;
            let _ = ready.stream.set_nodelay(true);
            self.player.opened(self.clock.now(), link);
        }
        self.receive(link);
        Ok(())
    }

    fn receive(&mut self, link: LinkId) {
        let mut room = vec![0; ROOM];
        while let Some(open) = self.links[link].as_mut().filter(|open| open.may_read) {
            match open.stream.read(&mut room) {
                Ok(0) => return self.lose(link),
                Ok(count) => self.player.receive(self.clock.now(), link, &room[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => open.may_read = false,
                Err(_) => return self.lose(link),
            }
        }
    }

    /// The target has closed a connection.
    fn lose(&mut self, link: LinkId) {
        self.links[link] = None;
        self.player.closed(self.clock.now(), link);
    }
}
