//! Many datagrams with one call of the system.
//!
//! An [`Inbox`] receives by `recvmmsg`. An [`Outbox`] hands over datagrams of one length for one
//! receiver as one, which the kernel or the adapter cuts again (`UDP_SEGMENT`; de Bruijn and
//! Dumazet, Optimizing UDP for content delivery, LPC 2018). The last of them may be shorter. Where
//! the system refuses that, each is sent alone: a segment has to fit into a frame, and a datagram
//! alone may travel in fragments.
//!
//! Datagrams for one receiver leave in the order in which they came. Those for others may overtake
//! them.

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, recv, recvmmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

/// Datagrams of one call, at most.
pub const RECEIVED_MAX: usize = 32;
/// Segments of one call, at most (Linux, `UDP_MAX_SEGMENTS` before 6.9).
const SEGMENTS_MAX: usize = 64;
/// Bytes of one call, at most: what an IP packet of 65,535 B has room for, whatever its headers.
const SEGMENTS_BYTES_MAX: usize = 65_000;
/// With so many datagrams or bytes it is time to send them.
const WAITING_MAX: usize = 64;
const WAITING_BYTES_MAX: usize = 1 << 18;

/// What a socket has received, one datagram after the other.
#[derive(Debug)]
pub struct Inbox {
    rooms: Vec<u8>,
    /// Bytes that a datagram may have; longer ones are cut.
    room: usize,
    /// Lengths of the datagrams that have come.
    lengths: Vec<usize>,
    /// How many of them were taken.
    taken: usize,
    /// How many the next call asks for: twice as many as came last, as few as one.
    wanted: usize,
}

impl Inbox {
    /// One with room for datagrams of so many bytes.
    pub fn new(room: usize) -> Inbox {
        Inbox { rooms: vec![0; room * RECEIVED_MAX], room, lengths: Vec::new(), taken: 0, wanted: 1 }
    }

    /// Whether the next one comes from the system.
    pub fn is_empty(&self) -> bool {
        self.taken == self.lengths.len()
    }

    /// The next datagram; `None` when no more wait. The socket does not block.
    ///
    /// # Errors
    /// As the system says. A later call may succeed.
    pub fn next(&mut self, socket: &impl AsRawFd) -> io::Result<Option<&mut [u8]>> {
        if self.is_empty() {
            (self.taken, self.wanted) = (0, (2 * self.lengths.len()).clamp(1, RECEIVED_MAX));
            self.lengths.clear();
            match self.receive(socket.as_raw_fd()) {
                Ok(()) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let Some(length) = self.lengths.get(self.taken).copied() else { return Ok(None) };
        let begin = self.taken * self.room;
        self.taken += 1;
        Ok(Some(&mut self.rooms[begin..begin + length]))
    }

    fn receive(&mut self, socket: RawFd) -> Result<(), Errno> {
        if self.wanted == 1 {
            let length = recv(socket, &mut self.rooms[..self.room], MsgFlags::MSG_DONTWAIT)?;
            self.lengths.push(length);
            return Ok(());
        }
        // Its pointers keep it from being sent to another thread, so it is made each time.
        let mut headers = MultiHeaders::<()>::preallocate(self.wanted, None);
        let rooms = self.rooms.chunks_exact_mut(self.room).take(self.wanted);
        let mut rooms: Vec<[IoSliceMut; 1]> = rooms.map(|room| [IoSliceMut::new(room)]).collect();
        let received = recvmmsg(socket, &mut headers, &mut rooms, MsgFlags::MSG_DONTWAIT, None)?;
        self.lengths.extend(received.map(|message| message.bytes));
        Ok(())
    }
}

/// A datagram that waits.
#[derive(Clone, Debug)]
struct Waiting<T> {
    address: SocketAddr,
    /// What the caller calls its receiver.
    receiver: T,
    bytes: Range<usize>,
}

/// Datagrams that wait to be sent together. `T` names a receiver.
#[derive(Debug)]
pub struct Outbox<T> {
    bytes: Vec<u8>,
    waiting: Vec<Waiting<T>>,
    /// Segments of this length, or longer ones, the system has refused.
    refused: usize,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Outbox { bytes: Vec::new(), waiting: Vec::new(), refused: usize::MAX }
    }
}

impl<T> Outbox<T> {
    /// Appends a datagram: what `write` appends to the bytes of others.
    pub fn push(&mut self, address: SocketAddr, receiver: T, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        self.waiting.push(Waiting { address, receiver, bytes: begin..self.bytes.len() });
    }

    /// Whether nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether it has so many that they should be sent.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.bytes.len() >= WAITING_BYTES_MAX
    }

    /// Sends all and forgets them. `unsent` hears of each that the system did not take. Returns how
    /// many it took.
    pub fn send(&mut self, socket: &impl AsRawFd, unsent: impl FnMut(&T, io::Error)) -> u64 {
        let socket = socket.as_raw_fd();
        self.send_by(|parts, segment, address| transmit(socket, parts, segment, address), unsent)
    }

    fn send_by(
        &mut self,
        mut transmit: impl FnMut(&[IoSlice], Option<u16>, SocketAddr) -> Result<(), Errno>,
        mut unsent: impl FnMut(&T, io::Error),
    ) -> u64 {
        self.waiting.sort_by_key(|one| one.address);
        let (mut rest, mut sent) = (&self.waiting[..], 0);
        while !rest.is_empty() {
            let (group, others) = rest.split_at(together(rest, self.refused));
            rest = others;
            let length = group[0].bytes.len();
            let parts: Vec<IoSlice> = group.iter().map(|one| IoSlice::new(&self.bytes[one.bytes.clone()])).collect();
            let segment = u16::try_from(length).ok().filter(|_| group.len() > 1);
            if segment.is_some() && transmit(&parts, segment, group[0].address).is_ok() {
                sent += group.len() as u64;
                continue;
            }
            let mut alone = 0;
            for (one, part) in group.iter().zip(parts) {
                match transmit(&[part], None, one.address) {
                    Ok(()) => alone += 1,
                    Err(error) => unsent(&one.receiver, error.into()),
                }
            }
            sent += alone;
            if segment.is_some() && alone > 0 {
                self.refused = self.refused.min(length);
            }
        }
        self.waiting.clear();
        self.bytes.clear();
        sent
    }
}

/// How many of the first datagrams can be sent as one: of the same receiver and length. The last
/// may be shorter.
fn together<T>(waiting: &[Waiting<T>], refused: usize) -> usize {
    let first = &waiting[0];
    let length = first.bytes.len();
    if length == 0 || length >= refused {
        return 1;
    }
    let most = (SEGMENTS_BYTES_MAX / length).clamp(1, SEGMENTS_MAX);
    let fits = |one: &&Waiting<T>| one.address == first.address && one.bytes.len() == length;
    let equal = waiting.iter().take(most).take_while(fits).count();
    let is_last = |one: &Waiting<T>| one.address == first.address && (1..length).contains(&one.bytes.len());
    equal + usize::from(equal < most && waiting.get(equal).is_some_and(is_last))
}

fn transmit(socket: RawFd, parts: &[IoSlice], segment: Option<u16>, address: SocketAddr) -> Result<(), Errno> {
    let segment = segment.as_ref().map(ControlMessage::UdpGsoSegments);
    match address {
        SocketAddr::V4(address) => transmit_to(socket, parts, segment.as_slice(), &SockaddrIn::from(address)),
        SocketAddr::V6(address) => transmit_to(socket, parts, segment.as_slice(), &SockaddrIn6::from(address)),
    }
}

fn transmit_to<S: SockaddrLike>(
    socket: RawFd,
    parts: &[IoSlice],
    control: &[ControlMessage],
    address: &S,
) -> Result<(), Errno> {
    sendmsg(socket, parts, control, MsgFlags::MSG_DONTWAIT, Some(address)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::UdpSocket;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket");
        socket
    }

    fn address(socket: &UdpSocket) -> SocketAddr {
        socket.local_addr().expect("it is bound")
    }

    /// Datagrams of these lengths: what each says first is its number.
    fn numbered(lengths: &[usize]) -> Vec<Vec<u8>> {
        let datagram =
            |(number, length): (usize, &usize)| (0..*length).map(|byte| (number * 31 + byte) as u8).collect();
        lengths.iter().enumerate().map(datagram).collect()
    }

    fn all(inbox: &mut Inbox, socket: &UdpSocket) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(datagram) = inbox.next(socket).expect("a sound socket") {
            all.push(datagram.to_vec());
        }
        all
    }

    fn address_of(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn what_is_sent_together_comes_one_by_one_at_its_receiver_and_in_order() {
        let (source, targets) = (socket(), [socket(), socket()]);
        let lengths = [60, 60, 60, 20, 60, 0, 4_200, 4_200, 4_200, 1, 0, 0, 4_200];
        let mut outbox = Outbox::default();
        for (number, datagram) in numbered(&lengths).into_iter().enumerate() {
            let target = number % 3 % 2;
            outbox.push(address(&targets[target]), target, |bytes| bytes.extend_from_slice(&datagram));
        }
        let sent = outbox.send(&source, |target, error| panic!("{target}: {error}"));
        assert_eq!(sent, lengths.len() as u64);
        let sent_to = |wanted: usize| -> Vec<Vec<u8>> {
            let all = numbered(&lengths).into_iter().enumerate();
            all.filter(|(number, _)| number % 3 % 2 == wanted).map(|(_, datagram)| datagram).collect()
        };
        let mut inbox = Inbox::new(8_192);
        assert_eq!(all(&mut inbox, &targets[0]), sent_to(0));
        assert_eq!(all(&mut inbox, &targets[1]), sent_to(1));
        assert_eq!(outbox.send(&source, |_, _| panic!("none waits")), 0);
    }

    #[test]
    fn more_than_one_call_takes_all_come_and_longer_ones_are_cut() {
        let (source, target) = (socket(), socket());
        let lengths: Vec<usize> = (0..100).map(|number| 1 + number % 7).chain([40]).collect();
        for datagram in numbered(&lengths) {
            source.send_to(&datagram, address(&target)).expect("loopback");
        }
        let mut wanted = numbered(&lengths);
        wanted[100].truncate(16);
        assert_eq!(all(&mut Inbox::new(16), &target), wanted);
    }

    #[test]
    fn both_kinds_of_addresses_are_reached() {
        let target = UdpSocket::bind("[::1]:0").expect("a free port");
        target.set_nonblocking(true).expect("a socket");
        let source = UdpSocket::bind("[::1]:0").expect("a free port");
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push(address(&target), (), |bytes| bytes.extend_from_slice(b"six"));
        }
        assert_eq!(outbox.send(&source, |(), error| panic!("{error}")), 3);
        assert_eq!(all(&mut Inbox::new(16), &target), [b"six"; 3]);
    }

    /// What a system that refuses segments of `refused` bytes or more is given: datagrams of each
    /// call.
    fn given(outbox: &mut Outbox<u16>, refused: usize) -> Vec<(usize, bool)> {
        let mut calls = Vec::new();
        let take = |parts: &[IoSlice], segment: Option<u16>, _: SocketAddr| {
            let is_taken = segment.is_none_or(|segment| usize::from(segment) < refused);
            calls.push((parts.len(), is_taken));
            if is_taken { Ok(()) } else { Err(Errno::EINVAL) }
        };
        outbox.send_by(take, |receiver, error| panic!("{receiver}: {error}"));
        calls
    }

    #[test]
    fn a_system_that_refuses_segments_gets_one_by_one_and_is_not_asked_again() {
        let mut outbox = Outbox::default();
        let push = |outbox: &mut Outbox<u16>, lengths: &[usize]| {
            for datagram in numbered(lengths) {
                outbox.push(address_of(7), 7, |bytes| bytes.extend_from_slice(&datagram));
            }
        };
        push(&mut outbox, &[4_200; 3]);
        assert_eq!(given(&mut outbox, 1_400), [(3, false), (1, true), (1, true), (1, true)]);
        push(&mut outbox, &[4_200, 4_200, 60, 60, 4_300, 4_300]);
        assert_eq!(given(&mut outbox, 1_400), [(1, true), (1, true), (2, true), (1, true), (1, true)]);
        push(&mut outbox, &[60; 2]);
        assert_eq!(given(&mut outbox, 0), [(2, false), (1, true), (1, true)]);
        push(&mut outbox, &[60, 60, 59, 59]);
        assert_eq!(given(&mut outbox, 60), [(1, true), (1, true), (2, true)]);
    }

    #[test]
    fn each_datagram_that_the_system_does_not_take_is_named_and_the_others_go() {
        let mut outbox = Outbox::default();
        for (port, length) in [(1, 60), (2, 60), (2, 60), (3, 60)] {
            outbox.push(address_of(port), port, |bytes| bytes.resize(bytes.len() + length, 0));
        }
        let mut failed = Vec::new();
        let take = |_: &[IoSlice], _: Option<u16>, to: SocketAddr| match to.port() {
            2 => Err(Errno::EHOSTUNREACH),
            _ => Ok(()),
        };
        let sent = outbox.send_by(take, |port, error| failed.push((*port, error.raw_os_error())));
        let unreachable = Some(Errno::EHOSTUNREACH as i32);
        assert_eq!((sent, failed), (2, vec![(2, unreachable), (2, unreachable)]));
        assert_eq!(outbox.refused, usize::MAX, "it was not for their segments");
    }

    proptest! {
        /// Whatever is sent to whom: each receiver gets its own datagrams in their order.
        #[test]
        fn segments_are_cut_where_they_were(
            sends in prop::collection::vec((0_u16..3, prop_oneof![Just(60_usize), Just(4_200), 0..9_000_usize]), 0..200),
            refused in prop_oneof![Just(0_usize), Just(1_400), Just(usize::MAX)],
        ) {
            let mut outbox = Outbox::default();
            let mut wanted = [const { Vec::new() }; 3];
            for ((port, _), datagram) in sends.iter().zip(numbered(&sends.iter().map(|(_, length)| *length).collect::<Vec<_>>())) {
                outbox.push(address_of(*port), *port, |bytes| bytes.extend_from_slice(&datagram));
                wanted[usize::from(*port)].push(datagram);
            }
            let mut came = [const { Vec::new() }; 3];
            let take = |parts: &[IoSlice], segment: Option<u16>, to: SocketAddr| {
                let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                let Some(segment) = segment.map(usize::from) else {
                    assert_eq!(parts.len(), 1);
                    came[usize::from(to.port())].push(whole);
                    return Ok(());
                };
                // As the kernel has it (net/ipv4/udp.c, `udp_send_skb`).
                assert!(whole.len() <= 65_507 && whole.len().div_ceil(segment) <= SEGMENTS_MAX);
                if segment >= refused {
                    return Err(Errno::EINVAL);
                }
                came[usize::from(to.port())].extend(whole.chunks(segment).map(<[u8]>::to_vec));
                Ok(())
            };
            let sent = outbox.send_by(take, |port, error| panic!("{port}: {error}"));
            prop_assert_eq!(sent, sends.len() as u64);
            prop_assert_eq!(came, wanted);
        }
    }
}
