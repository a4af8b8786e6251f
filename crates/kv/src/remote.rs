//! A door's connection to a JBOF in another process.
//!
//! Over TCP, the JBOF executes verbs and reads flash for the door. Over a Unix socket the door gets
//! the files of memory and flash, and does both itself: no process of the JBOF wakes up for a read.
//! With libfabric the door learns over TCP where the memory is, and executes verbs itself. With a
//! target of the flash, it reads that itself.
//!
//! Memory of a JBOF that has ended is out of date as soon as another one serves the file. A door
//! learns of the end from its socket, and believes what it has read only within [`BELIEF`] of
//! having looked there. A JBOF that shares its memory serves nobody before [`QUIET`] after it took
//! the file.

use crate::attempts::{Attempts, Looked};
use crate::channel::{Channel, Codec, End, GREETING, Greeting, Line, agree};
use crate::config::{FlashPeer, Peer, PeerAddress};
use crate::direct::Direct;
use crate::disk::{Disk, Shelf};
use crate::far::Far;
use crate::frames::{Access, Tally, ToDoor, ToJbof, Welcome};
use crate::transport::{Arrival, FlashCounts, Transport};
use base::{Span, Time};
use bytes::{Bytes, BytesMut};
use mapped::Mapped;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, Waker};
use runtime::clock::Clock;
use runtime::listen::resolve;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use scalio::{ENTRY_BYTES, Extent, Request, RequestId, SECTOR_BYTES, Verb, memory_words, page_sectors};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what is read of shared memory is believed after a look at the JBOF's socket.
const BELIEF: Span = Span::ms(100);
/// How long a JBOF that shares its memory serves nobody after it took the file. More than
/// [`BELIEF`]: the system frees the file of a process that ends before it closes its sockets.
pub const QUIET: Span = Span::ms(500);
/// How long an answer to the first frame may take.
const GREETING_TIME: Duration = Duration::from_secs(5);
/// Interval between attempts to reach a JBOF that is away.
const AGAIN: Duration = Duration::from_millis(50);
/// Interval between questions whether it is there.
const PING: Span = Span::ms(500);
/// A JBOF without an answer for so long is lost.
const SILENCE: Span = Span::secs(10);
/// A pong that was on its way for longer says nothing about the time.
const PONG: Span = Span::ms(20);
/// Bytes of a frame without a value, at most.
pub const BESIDE_VALUE: usize = 64 << 10;
/// Files that come with the welcome: memory and flash.
pub const FILES: usize = 2;

/// A connection that stands.
pub struct Link {
    /// What the JBOF is like.
    pub welcome: Welcome,
    /// When its welcome came: the rest of connecting takes a while.
    welcomed: Instant,
    channel: Channel,
    codec: Codec,
    found: Found,
    /// The target of the flash.
    disk: Option<Disk>,
}

/// What a door has found to access the memory.
enum Found {
    Nothing,
    Files(Mapped, File),
    Far(Box<Far>),
}

/// A stream before it is the loop's.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(address: &PeerAddress) -> io::Result<Stream> {
        match address {
            PeerAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(GREETING_TIME))?;
                stream.set_write_timeout(Some(GREETING_TIME))?;
                Ok(Stream::Unix(stream))
            }
            PeerAddress::Tcp(text) => {
                let stream = TcpStream::connect_timeout(&resolve(text)?, GREETING_TIME)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(GREETING_TIME))?;
                stream.set_write_timeout(Some(GREETING_TIME))?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Reads once, with the files that come.
    fn read(&mut self, room: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let stream = match self {
            Stream::Tcp(stream) => return stream.read(room),
            Stream::Unix(stream) => stream,
        };
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(stream, &mut [IoSliceMut::new(room)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        Ok(got.bytes)
    }

    fn line(self) -> io::Result<Line> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Line::Tcp(mio::net::TcpStream::from_std(stream)))
            }
            Stream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Line::Unix(mio::net::UnixStream::from_std(stream)))
            }
        }
    }
}

fn wrong(reason: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
}

impl Link {
    /// Connects, and waits for the welcome.
    ///
    /// # Errors
    /// When nobody answers, or not as a JBOF with the same secret does.
    pub fn open(peer: &Peer) -> io::Result<Link> {
        let mut stream = Stream::connect(&peer.address)?;
        let own = Greeting::new(peer.secret.as_ref())?;
        stream.write_all(&own.encode())?;
        let (mut input, mut files) = (BytesMut::new(), Vec::new());
        read_until(&mut stream, &mut input, &mut files, |input| Ok((input.len() >= GREETING).then_some(())))?;
        let greeting = input.split_to(GREETING);
        let greeting = greeting.first_chunk().ok_or_else(|| wrong("no greeting"))?;
        let other = Greeting::decode(greeting).map_err(wrong)?;
        let keys = agree(End::Door, peer.secret.as_ref(), &own, &other).map_err(wrong)?;
        let mut codec = Codec::new(keys, BESIDE_VALUE);
        let mut hello = BytesMut::new();
        let access = match (&peer.address, &peer.fabric) {
            (PeerAddress::Unix(_), _) => Access::Shared,
            (PeerAddress::Tcp(_), Some(_)) => Access::Far,
            (PeerAddress::Tcp(_), None) => Access::Asked,
        };
        codec.put(&mut hello, |out| ToJbof::Hello { access }.encode(out));
        stream.write_all(&hello)?;
        let welcome = match next(&mut stream, &mut codec, &mut input, &mut files)? {
            ToDoor::Welcome(welcome) => welcome,
            ToDoor::Refused(reason) => return Err(wrong(reason)),
            _ => return Err(wrong("it does not begin with a welcome")),
        };
        let welcomed = Instant::now();
        let found = match &peer.fabric {
            Some(provider) if access == Access::Far => match next(&mut stream, &mut codec, &mut input, &mut files)? {
                ToDoor::Place(place) => Found::Far(Box::new(Far::open(provider, place, &welcome)?)),
                _ => return Err(wrong("it does not say where its memory is")),
            },
            _ => files_of(&welcome, files)?,
        };
        codec.allow(frame_bytes_max(welcome.value_bytes_max));
        Ok(Link { welcome, welcomed, channel: Channel::new(stream.line()?, input), codec, found, disk: None })
    }

    /// Connects to the target of the flash too, if there is one.
    ///
    /// # Errors
    /// When it is not reached, does not let the door in, or has another flash.
    pub fn with_flash(self, peer: &Peer) -> io::Result<Link> {
        let open = |flash: &FlashPeer| {
            let named = |error| io::Error::other(format!("its flash, by the target at {}: {error}", flash.address));
            Disk::open(flash, &self.welcome).map_err(named)
        };
        let disk = peer.flash.as_deref().map(open).transpose()?;
        Ok(Link { disk, ..self })
    }
}

/// The next message, before there is a loop.
fn next(stream: &mut Stream, codec: &mut Codec, input: &mut BytesMut, files: &mut Vec<OwnedFd>) -> io::Result<ToDoor> {
    let body = read_until(stream, input, files, |input| codec.take(input).map_err(wrong))?;
    ToDoor::decode(body).map_err(wrong)
}

/// Memory and flash of a JBOF of this machine, if it shares them.
fn files_of(welcome: &Welcome, files: Vec<OwnedFd>) -> io::Result<Found> {
    match (welcome.shares, <[OwnedFd; FILES]>::try_from(files)) {
        (false, _) => Ok(Found::Nothing),
        (true, Ok([memory, flash])) => {
            let memory = Mapped::open(&memory)?;
            if memory.len() != memory_words(welcome.blocks, welcome.slots) {
                return Err(wrong("the shared memory is not of the size of its blocks"));
            }
            Ok(Found::Files(memory, File::from(flash)))
        }
        (true, Err(_)) => Err(wrong("the files of memory and flash did not come")),
    }
}

/// Reads until `found` finds something in what came.
fn read_until<T>(
    stream: &mut Stream,
    input: &mut BytesMut,
    files: &mut Vec<OwnedFd>,
    mut found: impl FnMut(&mut BytesMut) -> io::Result<Option<T>>,
) -> io::Result<T> {
    let mut room = [0; 4096];
    loop {
        if let Some(found) = found(input)? {
            return Ok(found);
        }
        match stream.read(&mut room, files) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => input.extend_from_slice(&room[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Who executes verbs.
enum Reach {
    /// The JBOF, when it is asked.
    Asked,
    /// The door, in memory that both map. It reads the flash too.
    Shared(Direct),
    /// The door, by libfabric.
    Far(Box<Far>),
}

/// A connection that stands, and what is known of its other end.
struct Up {
    channel: Channel,
    codec: Codec,
    reach: Reach,
    /// Who reads the flash, if that is not who executes verbs.
    shelf: Option<Shelf>,
    /// When the JBOF was there for certain.
    seen: Time,
    asked: Time,
    answered: Time,
}

/// A JBOF in another process, there or away.
pub struct Remote {
    peer: Peer,
    registry: Registry,
    token: Token,
    waker: Arc<Waker>,
    clock: Clock,
    up: Option<Up>,
    attempts: Option<Attempts<Link>>,
    arrived: VecDeque<Arrival>,
    tally: Tally,
    flash: FlashCounts,
    /// Reads for which the JBOF has to be asked.
    returned: Vec<(RequestId, Extent)>,
    /// Libfabric has something to do before the loop may sleep.
    is_awake: bool,
}

impl Remote {
    /// Takes over a connection. The loop, whose time is `clock`, tells what happens at `token`, and
    /// `waker` wakes it.
    ///
    /// # Errors
    /// When the system has no more threads or events.
    pub fn new(
        peer: Peer,
        link: Link,
        registry: &Registry,
        token: Token,
        (waker, clock): (Arc<Waker>, Clock),
    ) -> io::Result<Remote> {
        let mut remote = Remote {
            peer,
            registry: registry.try_clone()?,
            token,
            waker,
            clock,
            up: None,
            attempts: None,
            arrived: VecDeque::new(),
            tally: Tally::default(),
            flash: FlashCounts::default(),
            returned: Vec::new(),
            is_awake: false,
        };
        remote.take_over(link)?;
        Ok(remote)
    }

    fn take_over(&mut self, link: Link) -> io::Result<()> {
        let Link { welcome, welcomed, mut channel, codec, found, disk } = link;
        channel.line.register(&self.registry, self.token)?;
        let reach = match found {
            Found::Nothing => Reach::Asked,
            Found::Files(memory, flash) => Reach::Shared(Direct::new(memory, flash, welcome.seal, self.waker.clone())?),
            Found::Far(far) => {
                self.registry.register(&mut SourceFd(&far.file()), self.token, Interest::READABLE)?;
                Reach::Far(far)
            }
        };
        let shelf = self.peer.flash.as_deref().map(|peer| {
            let place = (&self.registry, self.token);
            Shelf::new((peer, &welcome), disk, place, &self.waker)
        });
        let shelf = shelf.transpose()?;
        let now = self.clock.now();
        self.arrived.clear();
        let since = now.saturating_since(Time::ZERO + Span::ns(welcomed.elapsed().as_nanos() as u64));
        self.arrived.push_back(Arrival::Met(welcome, Time::ZERO + since));
        self.up = Some(Up { channel, codec, reach, shelf, seen: now, asked: now, answered: now });
        Ok(())
    }

    /// The connection is of no more use.
    fn lose(&mut self, why: &str) {
        let Some(mut up) = self.up.take() else { return };
        tracing::warn!(jbof = %self.peer.address, why, "the JBOF is away");
        up.channel.line.deregister(&self.registry);
        if let Reach::Far(far) = &up.reach {
            // The file closes in any case.
            let _ = self.registry.deregister(&mut SourceFd(&far.file()));
        }
        self.is_awake = false;
        self.returned.clear();
        self.arrived.clear();
        self.arrived.push_back(Arrival::Lost);
        self.attempts = Some(attempts(&self.peer, &self.waker));
    }

    /// Whether a thread has reached it.
    fn try_again(&mut self) {
        let Some(looking) = &self.attempts else { return };
        match looking.look() {
            Looked::NotYet => return,
            Looked::Ended => {}
            Looked::Found(link) => match self.take_over(link) {
                Ok(()) => {
                    self.attempts = None;
                    return tracing::info!(jbof = %self.peer.address, "the JBOF is there again");
                }
                Err(error) => tracing::error!(%error, "the connection to the JBOF cannot be used"),
            },
        }
        self.attempts = Some(attempts(&self.peer, &self.waker));
    }

    fn say(&mut self, message: &ToJbof) {
        if let Some(up) = &mut self.up {
            up.codec.put(&mut up.channel.output, |out| message.encode(out));
        }
    }

    /// Whether what was read of shared memory just now was the JBOF's.
    fn is_current(&mut self) -> bool {
        let Some(up) = &mut self.up else { return false };
        let now = self.clock.now();
        if now.saturating_since(up.seen) <= BELIEF {
            return true;
        }
        if is_gone(&up.channel.line) {
            return false;
        }
        up.seen = now;
        true
    }

    fn receive(&mut self) {
        loop {
            let Some(up) = &mut self.up else { return };
            up.channel.read();
            loop {
                let Some(up) = &mut self.up else { return };
                let body = up.codec.take(&mut up.channel.input);
                match body.and_then(|body| body.map(ToDoor::decode).transpose()) {
                    Ok(None) => break,
                    Ok(Some(message)) => self.heard(message),
                    Err(error) => return self.lose(&error.to_string()),
                }
            }
            let Some(up) = &self.up else { return };
            if up.channel.is_ended() {
                return self.lose("its connection has ended");
            }
            if !up.channel.has_more() {
                return;
            }
        }
    }

    fn heard(&mut self, message: ToDoor) {
        let Some(up) = &mut self.up else { return };
        match message {
            ToDoor::Results { request, results } => self.arrived.push_back(Arrival::Verbs { request, results }),
            ToDoor::Read { request, bytes } => self.arrived.push_back(Arrival::Read { request, bytes }),
            ToDoor::Reply(reply) => self.arrived.push_back(Arrival::Reply(reply)),
            ToDoor::Tally(tally) => self.tally = tally,
            ToDoor::Pong { asked, now, tally } => {
                let here = self.clock.now();
                (up.answered, self.tally) = (here, tally);
                let took = here.saturating_since(asked);
                if took <= PONG {
                    self.arrived.push_back(Arrival::Time(now + took / 2));
                }
            }
            ToDoor::Welcome(_) | ToDoor::Refused(_) | ToDoor::Place(_) => self.lose("it greets in the middle"),
        }
    }

    /// Asks whether it is there, now and then.
    fn ping(&mut self) {
        let now = self.clock.now();
        let Some(up) = &mut self.up else { return };
        if now.saturating_since(up.answered) > SILENCE && up.asked > up.answered {
            return self.lose("it does not answer");
        }
        if now.saturating_since(up.asked) >= PING {
            up.asked = now;
            self.say(&ToJbof::Ping { at: now });
        }
    }
}

/// Whether the other end of a socket is closed, by a look at it.
fn is_gone(line: &Line) -> bool {
    let file: BorrowedFd<'_> = match line {
        Line::Tcp(stream) => stream.as_fd(),
        Line::Unix(stream) => stream.as_fd(),
    };
    shows(file, PollFlags::RDHUP)
}

/// Whether a file shows any of these now, or an error.
pub fn shows(file: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut looked = [PollFd::from_borrowed_fd(file, flags)];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut looked, Some(&none)) {
        Ok(_) => !looked[0].revents().is_empty(),
        Err(_) => true,
    }
}

fn attempts(peer: &Peer, waker: &Arc<Waker>) -> Attempts<Link> {
    let of = peer.clone();
    Attempts::start(format!("the JBOF at {}", peer.address), AGAIN, waker.clone(), move || Link::open(&of))
}

impl Transport for Remote {
    fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>) {
        let now = self.clock.now();
        match self.up.as_mut().map(|up| &mut up.reach) {
            Some(Reach::Shared(shared)) => {
                let results = shared.execute(&verbs);
                if !self.is_current() {
                    return self.lose("it has ended");
                }
                self.arrived.extend(request.map(|request| Arrival::Verbs { request, results }));
            }
            Some(Reach::Far(far)) => {
                if let Err(error) = far.post(now, request, verbs) {
                    self.lose(&error.to_string());
                }
            }
            Some(Reach::Asked) | None => self.say(&ToJbof::Verbs { request, verbs }),
        }
    }

    fn read(&mut self, request: RequestId, _: u32, extent: Extent) {
        let Some(up) = &mut self.up else { return };
        match (&mut up.reach, &mut up.shelf) {
            (Reach::Shared(shared), _) => shared.read(request, extent, &mut self.arrived),
            (_, Some(shelf)) => {
                if !shelf.read(request, extent) {
                    self.returned.push((request, extent));
                }
            }
            (_, None) => self.say(&ToJbof::Read { request, extent }),
        }
    }

    fn send(&mut self, _: Time, _: u32, request: Request<Bytes>) {
        self.say(&ToJbof::Request(request));
    }

    fn next(&mut self) -> Option<Arrival> {
        self.arrived.pop_front()
    }

    fn turn(&mut self, _: Time) {
        self.try_again();
        if let Some(up) = &mut self.up {
            let now = self.clock.now();
            if matches!(up.reach, Reach::Shared(_)) && !is_gone(&up.channel.line) {
                up.seen = now;
            }
        }
        self.receive();
        let now = self.clock.now();
        let taken = match self.up.as_mut().map(|up| &mut up.reach) {
            Some(Reach::Shared(shared)) => {
                shared.take(&mut self.arrived);
                Ok(())
            }
            Some(Reach::Far(far)) => far.take(now, &mut self.arrived),
            Some(Reach::Asked) | None => Ok(()),
        };
        if let Err(why) = taken {
            self.lose(&why);
        }
        if let Some(shelf) = self.up.as_mut().and_then(|up| up.shelf.as_mut()) {
            let before = self.arrived.len();
            shelf.turn(&mut self.arrived, &mut self.returned);
            self.flash.reads += (self.arrived.len() - before) as u64;
        }
        self.ping();
    }

    fn flush(&mut self) {
        if let Some(shelf) = self.up.as_mut().and_then(|up| up.shelf.as_mut()) {
            shelf.flush(&mut self.returned);
        }
        for (request, extent) in std::mem::take(&mut self.returned) {
            self.flash.returned += 1;
            self.say(&ToJbof::Read { request, extent });
        }
        if let Some(up) = &mut self.up {
            up.channel.flush();
            // Asked last: whatever comes from now on is an event.
            self.is_awake = match &mut up.reach {
                Reach::Far(far) => !far.may_sleep(),
                Reach::Asked | Reach::Shared(_) => false,
            };
        }
    }

    fn on_event(&mut self) {
        if let Some(up) = &mut self.up {
            up.channel.is_ready();
        }
    }

    fn due(&self, now: Time) -> Option<Time> {
        if self.is_awake {
            return Some(now);
        }
        Some(self.up.as_ref().map_or(now, |up| up.asked) + PING)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn flash(&self) -> FlashCounts {
        let is_missed = |up: &Up| up.shelf.as_ref().is_some_and(|shelf| !shelf.is_there());
        FlashCounts { away: self.up.as_ref().is_some_and(is_missed).into(), ..self.flash }
    }
}

/// Bytes that a door may read of flash at once: a segment, or the record of a value of the greatest
/// length, which flash stores with a rounded length.
pub fn read_bytes_max(value_bytes_max: u32) -> usize {
    page_sectors(value_bytes_max + ENTRY_BYTES) as usize * SECTOR_BYTES as usize + BESIDE_VALUE / 2
}

/// Bytes of a frame at most.
pub fn frame_bytes_max(value_bytes_max: u32) -> usize {
    read_bytes_max(value_bytes_max) + BESIDE_VALUE / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{JbofConfig, JbofRoleConfig};
    use crate::role::JbofRole;
    use mio::Poll;
    use scalio::Done;
    use std::thread;

    #[test]
    fn memory_of_a_jbof_that_has_ended_is_not_believed_for_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("flash");
        let jbof = JbofConfig {
            path,
            zones: 12,
            zone_sectors: 1024,
            blocks: 4,
            slots: 2,
            value_bytes_max: 4096,
            flush: false,
            reserve: false,
            protocol: scalio::Protocol::Linearizable,
        };
        let address = PeerAddress::Unix(folder.path().join("socket"));
        let config = JbofRoleConfig {
            listen: vec![address.clone()],
            secret: None,
            fabric: None,
            metrics: None,
            silence: Span::secs(30),
            records: None,
            journal: None,
            jbof,
        };
        let (begin, clock) = (Instant::now(), Clock::start());
        let mut role = JbofRole::start(config, false).expect("it starts");
        assert!(begin.elapsed().as_nanos() >= u128::from(QUIET.as_ps() / 1_000), "it does not wait for other doors");
        let stopper = role.stopper();
        let running = thread::spawn(move || role.run());
        let peer = Peer { address, secret: None, fabric: None, flash: None };
        let link = Link::open(&peer).expect("it answers");
        let poll = Poll::new().expect("there are events");
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).expect("there are events"));
        thread::sleep(Duration::from_millis(50));
        let mut remote = Remote::new(peer, link, poll.registry(), Token(1), (waker, clock)).expect("there are threads");
        let Some(Arrival::Met(_, at)) = remote.next() else { panic!("it is there") };
        assert!(clock.now().saturating_since(at) >= Span::ms(50), "the JBOF's time was told before that");
        remote.turn(clock.now());
        assert!(remote.due(clock.now()) > Some(clock.now()), "a door with nothing to do would never sleep");
        let mut ask = || {
            remote.post(Some(RequestId(7)), vec![Verb::Read { at: 0, bytes: 8 }]);
            remote.next()
        };
        let is_answered = |arrival: Option<Arrival>| match arrival {
            Some(Arrival::Verbs { results, .. }) => matches!(results[..], [Done::Read(_)]),
            Some(Arrival::Lost) => false,
            other => panic!("{other:?}"),
        };
        assert!(is_answered(ask()));
        // A look at the socket says that it is still there.
        thread::sleep(Duration::from_millis(110));
        assert!(is_answered(ask()));
        stopper.stop();
        running.join().expect("it does not panic").expect("it runs");
        thread::sleep(Duration::from_millis(110));
        assert!(!is_answered(ask()), "its memory is still there, and another one may serve the file");
    }
}
