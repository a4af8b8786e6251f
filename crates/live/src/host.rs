//! A host: [`nvme::initiator::Initiator`] behind sockets, for one thread that waits for its
//! completions.

use crate::clock::Clock;
use crate::listen::resolve;
use crate::stream::Stream;
use crate::tls::Session;
use base::{Span, Time};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use nvme::initiator::{
    Action, Credentials, HostEvent, Initiator, InitiatorConfig, InitiatorError, Payload, SubmitError, Ticket, Tolerance,
};
use nvme::property::PropertyId;
use nvme::tls::{Derivation, IdentityVersion, PreSharedKey, TlsKey};
use nvme::{Body, Fabrics, HostId, Nqn, Status};
use runtime::waiting::poll_once;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Bytes of one read of a socket.
const ROOM: usize = 256 << 10;
/// Slices that one call sends at most.
const SLICES_MAX: usize = 128;

/// Why a host cannot continue. Its association is over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No target answers at the address.
    #[error("{address}: {reason}{}", hint(.reason))]
    Connect {
        /// The address.
        address: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// The association ended.
    #[error(transparent)]
    Association(#[from] InitiatorError),
    /// The initiator refuses a command.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// A command failed.
    #[error("{what} failed: {status}")]
    Command {
        /// The command.
        what: &'static str,
        /// Its status.
        status: Status,
    },
    /// An answer of the target cannot be decoded.
    #[error("{what} cannot be read: {error}")]
    Answer {
        /// The structure.
        what: &'static str,
        /// The reason.
        error: nvme::CodecError,
    },
    /// The TLS handshake of a connection failed.
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    /// The system refuses a resource.
    #[error("{what}: {reason}")]
    System {
        /// The resource.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::ConnectionRefused => " (is the target running, and at this port?)",
        io::ErrorKind::TimedOut => " (is a firewall in between?)",
        _ => "",
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> HostError {
    move |reason| HostError::System { what, reason }
}

/// Returns the key for the names of a host and its subsystem.
fn pre_shared(key: &TlsKey, config: &InitiatorConfig) -> Result<PreSharedKey, HostError> {
    let psk = key.pre_shared(Derivation::Specification, IdentityVersion::Digest, config.host, config.subsystem);
    psk.ok_or_else(|| HostError::Tls("the names of host and subsystem are too long".into()))
}

/// The connection of one queue.
struct Queue {
    stream: Stream,
    is_open: bool,
    /// Time by which it has to be open, the TLS handshake included.
    open_by: Option<Time>,
    may_read: bool,
    may_write: bool,
    /// Closes when its output is sent.
    is_closing: bool,
}

/// How a host authenticates, or secures its connections.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// By secrets, if the target asks for authentication.
    pub credentials: Option<Credentials>,
    /// By TLS.
    pub tls: Option<TlsKey>,
}

/// A completed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The command.
    pub ticket: Ticket,
    /// Its status.
    pub status: Status,
    /// Dwords 0 and 1 of the completion.
    pub result: u64,
    /// The data of a read, or the buffer of a write.
    pub data: Vec<u8>,
}

/// A connected host.
pub struct Host {
    address: SocketAddr,
    poll: Poll,
    events: Events,
    clock: Clock,
    initiator: Initiator,
    /// How connections are secured.
    psk: Option<PreSharedKey>,
    queues: BTreeMap<u16, Queue>,
    room: Vec<u8>,
    io_queues: u16,
    timeout: Span,
}

/// A file that is readable when [`Host::turn`] may have something to do.
impl AsRawFd for Host {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}

/// Returns the identifier of a host by its name: the same host is the same to reservations whenever
/// it comes.
pub fn host_id_of(host: &Nqn) -> HostId {
    let mut id = HostId([0; 16]);
    id.0.copy_from_slice(&Sha256::digest(host.as_str())[..16]);
    id
}

impl Host {
    /// Connects to `address`, `ADDRESS:PORT`, and returns when all queues are connected.
    pub fn connect(address: &str, config: InitiatorConfig) -> Result<Host, HostError> {
        Host::connect_with(address, config, &Proof::default())
    }

    /// As [`Self::connect`], with authentication or TLS.
    pub fn connect_with(address: &str, config: InitiatorConfig, proof: &Proof) -> Result<Host, HostError> {
        let initiator = Initiator::new(config);
        let refused = |reason| HostError::Connect { address: address.into(), reason };
        let mut host = Host {
            address: resolve(address).map_err(refused)?,
            poll: Poll::new().map_err(system("the event queue"))?,
            events: Events::with_capacity(64),
            clock: Clock::start(),
            initiator: match proof.credentials.clone() {
                Some(credentials) => initiator.with_credentials(credentials),
                None => initiator,
            },
            psk: proof.tls.as_ref().map(|key| pre_shared(key, &config)).transpose()?,
            queues: BTreeMap::new(),
            room: vec![0; ROOM],
            io_queues: 0,
            timeout: config.timeout,
        };
        loop {
            if let HostEvent::Ready { io_queues } = host.next_event()? {
                host.io_queues = io_queues;
                return Ok(host);
            }
        }
    }

    /// Returns the number of I/O queues; they are numbered from 1 on.
    pub fn io_queues(&self) -> u16 {
        self.io_queues
    }

    /// Returns the properties of the association.
    pub fn initiator(&self) -> &Initiator {
        &self.initiator
    }

    /// Returns the time of its own clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends a command. [`Self::next_completed`] returns its completion.
    pub fn submit(&mut self, queue: u16, namespace: u32, body: Body, payload: Payload) -> Result<Ticket, HostError> {
        let ticket = self.initiator.submit(self.clock.now(), queue, namespace, body, payload)?;
        Ok(ticket)
    }

    /// Sends a command and waits for its completion. No other command may be outstanding.
    pub fn call(&mut self, queue: u16, namespace: u32, body: Body, payload: Payload) -> Result<Completed, HostError> {
        let ticket = self.submit(queue, namespace, body, payload)?;
        loop {
            let completed = self.next_completed()?;
            if completed.ticket == ticket {
                return Ok(completed);
            }
        }
    }

    /// Waits for the completion of a command.
    pub fn next_completed(&mut self) -> Result<Completed, HostError> {
        loop {
            if let HostEvent::Completed { ticket, status, result, data } = self.next_event()? {
                return Ok(Completed { ticket, status, result, data });
            }
        }
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> Result<HostEvent, HostError> {
        loop {
            self.send_all()?;
            match self.take_event()? {
                Some(event) => return Ok(event),
                None => self.wait(None)?,
            }
        }
    }

    fn log(&self, what: Tolerance) {
        tracing::info!(target = %self.address, %what, "the controller deviates from what most controllers do; it is used all the same");
    }

    /// Returns the next event that arrives within `wait`.
    pub fn next_event_within(&mut self, wait: Duration) -> Result<Option<HostEvent>, HostError> {
        let until = std::time::Instant::now() + wait;
        loop {
            self.send_all()?;
            match self.take_event()? {
                Some(event) => return Ok(Some(event)),
                None => {
                    let left = until.saturating_duration_since(std::time::Instant::now());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.wait(Some(left))?;
                }
            }
        }
    }

    /// Moves bytes without waiting, for a caller that waits for other files too.
    /// [`Self::take_event`] returns what came of it. To be called when [`AsRawFd`]'s file is
    /// readable, after commands were submitted, and now and then for what is due.
    pub fn turn(&mut self) -> Result<(), HostError> {
        self.wait(Some(Duration::ZERO))?;
        self.send_all()
    }

    /// Sends what was submitted, as far as the sockets take it.
    pub fn flush(&mut self) -> Result<(), HostError> {
        self.send_all()
    }

    /// Returns the next event that is there.
    pub fn take_event(&mut self) -> Result<Option<HostEvent>, HostError> {
        loop {
            match self.initiator.next_event() {
                Some(HostEvent::Failed(error)) => return Err(error.into()),
                Some(HostEvent::Tolerated(what)) => self.log(what),
                event => return Ok(event),
            }
        }
    }

    /// Detaches the connection of a queue, blocking again, for a caller that writes its bytes
    /// itself. The association continues without it.
    pub fn detach(&mut self, queue: u16) -> Option<io::Result<std::net::TcpStream>> {
        let mut taken = self.queues.remove(&queue)?;
        let _ = self.poll.registry().deregister(taken.stream.socket());
        let Stream::Plain(stream) = taken.stream else { return None };
        let stream = std::net::TcpStream::from(stream);
        Some(stream.set_nonblocking(false).map(|()| stream))
    }

    /// Resets the controller: this ends the association, and [`Self::next_event`] reports it.
    pub fn disable(&mut self) {
        let property = PropertyId::Configuration;
        let clear = Fabrics::PropertySet { offset: property.code(), size: property.size(), value: 0 };
        // If it cannot be sent, the association is over already.
        let _ = self.initiator.submit(self.clock.now(), 0, 0, Body::Fabrics(clear), Payload::None);
    }

    /// Shuts the controller down in order. Returns when that is done or has failed.
    pub fn disconnect(mut self) -> Result<(), HostError> {
        self.initiator.shut_down(self.clock.now());
        loop {
            match self.next_event() {
                Ok(HostEvent::ShutDown) => {
                    let _ = self.send_all();
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens and closes the connections that the initiator wants, and sends its output.
    fn send_all(&mut self) -> Result<(), HostError> {
        while let Some(action) = self.initiator.next_action() {
            match action {
                Action::Open(queue) => self.open(queue)?,
                Action::Close(queue) => {
                    if let Some(queue) = self.queues.get_mut(&queue) {
                        queue.is_closing = true;
                    }
                }
            }
        }
        let queues: Vec<u16> = self.queues.keys().copied().collect();
        queues.into_iter().for_each(|queue| self.send(queue));
        Ok(())
    }

    fn open(&mut self, queue: u16) -> Result<(), HostError> {
        let refused = |reason| HostError::Connect { address: self.address.to_string(), reason };
        let mut stream = TcpStream::connect(self.address).map_err(refused)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = self.poll.registry().register(&mut stream, Token(queue.into()), interest);
        registered.map_err(system("the event queue"))?;
        let stream = match self.psk.clone() {
            None => Stream::Plain(stream),
            Some(psk) => Stream::Secured(Box::new(Session::connect(psk, stream).map_err(HostError::Tls)?)),
        };
        let open_by = self.clock.now().checked_add(self.timeout);
        let state = Queue { stream, is_open: false, open_by, may_read: false, may_write: false, is_closing: false };
        self.queues.insert(queue, state);
        Ok(())
    }

    /// Sleeps until an event arrives, and reads what was received.
    fn wait(&mut self, most: Option<Duration>) -> Result<(), HostError> {
        let now = self.clock.now();
        let opening = self.queues.values().filter_map(|queue| queue.open_by).min();
        let due = [self.initiator.next_wakeup(), opening].into_iter().flatten().min().map(|at| Clock::wait(now, at));
        let timeout = [due, most].into_iter().flatten().min();
        poll_once(&mut self.poll, &mut self.events, timeout).map_err(system("waiting for events"))?;
        let happened: Vec<(u16, bool, bool)> = self
            .events
            .iter()
            .map(|event| {
                (
                    event.token().0 as u16,
                    event.is_readable() || event.is_read_closed() || event.is_error(),
                    event.is_writable(),
                )
            })
            .collect();
        for (queue, to_read, to_write) in happened {
            self.on_ready(queue, to_read, to_write)?;
        }
        let now = self.clock.now();
        if self.queues.values().any(|queue| queue.open_by.is_some_and(|by| by <= now)) {
            return Err(match self.psk {
                Some(_) => HostError::Tls("no answer in time (is it a port with TLS?)".into()),
                None => {
                    HostError::Connect { address: self.address.to_string(), reason: io::ErrorKind::TimedOut.into() }
                }
            });
        }
        if self.initiator.next_wakeup().is_some_and(|at| at <= now) {
            self.initiator.on_wakeup(now);
        }
        Ok(())
    }

    fn on_ready(&mut self, number: u16, to_read: bool, to_write: bool) -> Result<(), HostError> {
        let Some(queue) = self.queues.get_mut(&number) else { return Ok(()) };
        queue.may_read |= to_read;
        queue.may_write |= to_write;
        if !queue.is_open {
            let failed = queue.stream.socket().take_error().ok().flatten();
            if let Some(reason) = failed {
                return Err(HostError::Connect { address: self.address.to_string(), reason });
            }
            if queue.stream.socket().peer_addr().is_err() {
                return Ok(());
            }
            // Commands are small and whole (see the server).
            queue.stream.socket().set_nodelay(true).map_err(system("a socket"))?;
            if !queue.stream.is_ready().map_err(HostError::Tls)? {
                return Ok(());
            }
            (queue.is_open, queue.open_by) = (true, None);
            self.initiator.opened(self.clock.now(), number);
        }
        self.receive(number);
        Ok(())
    }

    fn receive(&mut self, number: u16) {
        while let Some(queue) = self.queues.get_mut(&number).filter(|queue| queue.may_read) {
            match queue.stream.read(&mut self.room) {
                Ok(0) => return self.lose(number),
                Ok(count) => {
                    queue.may_read = count == self.room.len() || queue.stream.has_ended();
                    self.initiator.receive(self.clock.now(), number, &self.room[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => queue.may_read = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(number),
            }
        }
    }

    fn send(&mut self, number: u16) {
        while let Some(queue) = self.queues.get_mut(&number).filter(|queue| queue.is_open && queue.may_write) {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let (mut count, mut bytes) = (0, 0);
            for (place, slice) in slices.iter_mut().zip(self.initiator.transmit(number)) {
                *place = IoSlice::new(slice);
                (count, bytes) = (count + 1, bytes + slice.len());
            }
            if count == 0 {
                if queue.is_closing {
                    self.queues.remove(&number);
                }
                return;
            }
            match queue.stream.write_vectored(&slices[..count]) {
                Ok(sent) => {
                    queue.may_write = sent == bytes;
                    self.initiator.transmitted(number, sent);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => queue.may_write = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(number),
            }
        }
    }

    fn lose(&mut self, number: u16) {
        let was_closing = self.queues.remove(&number).is_some_and(|queue| queue.is_closing);
        if !was_closing {
            self.initiator.closed(self.clock.now(), number);
        }
    }
}
