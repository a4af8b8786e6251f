//! Packets in UDP datagrams, behind the tag of their rack. A dead role's port may be another rack's
//! next, and its packets would be taken for its own. Racks with a secret seal what follows the tag.

use crate::configs;
use crate::peers::Peers;
use crate::seal::{Broken, Seal};
use base::{NodeId, Time};
use blox::{PAGE_BYTES, Packet, decode_datagram, encode_datagram};
use bytes::{BufMut, Bytes};
use mio::net::UdpSocket;
use plan::rack::Rack;
use runtime::clock::Clock;
use runtime::datagrams::{Inbox, Outbox};
use runtime::error::StartError;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest datagram: a page with all its headers, its seal, and room for what is no packet.
const ROOM: usize = 8_192;
/// Bytes of the tag.
pub(crate) const TAG: usize = 8;
/// What the system may hold of datagrams that came while the role was busy, if it allows that.
const BUFFER: usize = 16 << 20;
/// With less than this, what one rebuild and some writes have under way may not fit.
const BUFFER_MIN: usize = 1 << 20;

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
    /// Datagrams that were not sealed with the rack's secret for this node.
    pub forged: u64,
    /// Datagrams that had come before.
    pub repeated: u64,
    /// Datagrams of another time: of machines whose clock is wrong, or repeated long after.
    pub late: u64,
    /// Datagrams that the system did not take, or whose receiver's name has no address yet; they
    /// are sent again.
    pub unsent: u64,
}

/// A socket, with room for what comes and goes together.
pub struct Wire {
    socket: UdpSocket,
    own: NodeId,
    peers: Peers,
    tag: [u8; TAG],
    seal: Option<Seal>,
    inbox: Inbox,
    outbox: Outbox<NodeId>,
    counts: WireCounts,
    /// Receivers of datagrams that were not sent.
    unreached: BTreeSet<NodeId>,
    /// The roles, by their nodes.
    names: Vec<String>,
    /// Tells when packets leave, if somebody notes it.
    pub clock: Option<Clock>,
    /// When some have left last.
    pub left: Option<Time>,
}

impl Wire {
    /// Binds the address of a node of `rack`.
    ///
    /// # Errors
    /// When the address is taken, or not one of this machine, or the rack's secret cannot be read.
    pub fn bind(rack: &Rack, own: NodeId) -> Result<Wire, StartError> {
        let seal = rack.secret.as_deref().map(Seal::open_file).transpose()?;
        let places = rack.places();
        let address = places[own.index()].listen;
        // All but the switch send to the switch alone.
        let switch = configs::switch_node(rack);
        let is_peer = |node: usize| own == switch || node == switch.index();
        let reached = places.into_iter().enumerate();
        let reached = reached.map(|(node, place)| if is_peer(node) { place.reached } else { String::new() }).collect();
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
        // The system doubles what it gives, for its own needs.
        let given = sockopt::socket_recv_buffer_size(&socket).unwrap_or_default() / 2;
        if given < BUFFER_MIN {
            let (wanted, setting) = (BUFFER, "net.core.rmem_max");
            tracing::warn!(given, wanted, setting, "few datagrams may wait: under load some are lost and sent again");
        }
        let tag = tag_of(rack);
        Ok(Wire {
            socket,
            own,
            peers: Peers::new(reached, address),
            tag,
            seal,
            inbox: Inbox::new(ROOM),
            outbox: Outbox::default(),
            counts: WireCounts::default(),
            unreached: BTreeSet::new(),
            names: (0..=switch.0).map(|node| configs::name_of(rack, NodeId(node))).collect(),
            clock: None,
            left: None,
        })
    }

    /// What was seen so far.
    pub fn counts(&self) -> WireCounts {
        self.counts
    }

    /// Where packets to a node go, if that is known.
    pub fn address_of(&mut self, node: NodeId) -> Option<SocketAddr> {
        self.peers.address(node)
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
        if self.inbox.is_empty() {
            self.flush();
        }
        let Wire { socket, inbox, tag, seal, counts, own, .. } = self;
        let whole = loop {
            match inbox.next(socket) {
                Ok(None) => return None,
                Ok(Some(whole)) => break whole,
                Err(_) => {}
            }
        };
        counts.received += 1;
        data.clear();
        let Some(datagram) = opened(whole, *tag, seal.as_mut(), *own, counts) else { return Some(None) };
        match decode_datagram(datagram) {
            Ok((packet, page)) => {
                data.extend_from_slice(page);
                Some(Some(packet))
            }
            Err(error) => {
                if is_first(&mut self.counts.malformed) {
                    tracing::warn!(%error, "a datagram that is no packet: of a role of another version, or of none");
                }
                Some(None)
            }
        }
    }

    /// Sends a packet to a node of the rack, with what else is sent until [`Self::flush`], or
    /// before the next call of the system for more. `data` is its page where it carries one.
    pub fn send(&mut self, to: NodeId, packet: &Packet, data: Option<&Bytes>) {
        let page: &[u8] = data.map_or(&[], |data| data);
        debug_assert_eq!(page.len(), if packet.body.value().is_some() { PAGE_BYTES as usize } else { 0 });
        let Some(address) = self.peers.address(to) else {
            // Whoever looks its name up says so.
            self.counts.unsent += 1;
            return;
        };
        let Wire { tag, seal, outbox, .. } = self;
        outbox.push(address, to, |bytes| {
            let begin = bytes.len();
            bytes.put_slice(&*tag);
            encode_datagram(packet, page, bytes);
            if let Some(seal) = seal {
                seal.seal(unix_us(), to, begin..begin + TAG, bytes);
            }
        });
        if self.outbox.is_full() {
            self.flush();
        }
    }

    /// Hands all that waits to the system.
    pub fn flush(&mut self) {
        if let Some(clock) = self.clock.filter(|_| !self.outbox.is_empty()) {
            self.left = Some(clock.now());
        }
        let Wire { socket, outbox, counts, unreached, names, .. } = self;
        let unsent = &mut counts.unsent;
        counts.sent += outbox.send(socket, |to, error| {
            *unsent += 1;
            let receiver = names.get(to.index()).map_or("", |name| name);
            if unreached.insert(*to) {
                tracing::warn!(%error, receiver, "a datagram cannot be sent: others to it will not be logged");
            } else {
                tracing::debug!(%error, receiver, "a datagram cannot be sent");
            }
        });
    }
}

/// What all datagrams of a rack begin with.
pub(crate) fn tag_of(rack: &Rack) -> [u8; TAG] {
    configs::tag(rack).to_be_bytes()
}

/// What is behind the tag of a datagram of this rack. Others are counted.
pub(crate) fn opened<'a>(
    whole: &'a mut [u8],
    tag: [u8; TAG],
    seal: Option<&mut Seal>,
    own: NodeId,
    counts: &mut WireCounts,
) -> Option<&'a [u8]> {
    if !whole.starts_with(&tag) {
        if is_first(&mut counts.foreign) {
            tracing::warn!("a datagram of another rack, or of a role with another version of this rack's file");
        }
        return None;
    }
    match seal {
        None => Some(&whole[TAG..]),
        Some(seal) => seal.open(unix_us(), own, TAG, whole).map_err(|broken| note(counts, broken)).ok(),
    }
}

/// Counts a datagram that is not taken. The first of its kind is logged.
fn note(counts: &mut WireCounts, broken: Broken) {
    let count = match broken {
        Broken::Forged => &mut counts.forged,
        Broken::Repeated => &mut counts.repeated,
        Broken::Late { .. } => &mut counts.late,
    };
    if !is_first(count) {
        return;
    }
    match broken {
        Broken::Forged => tracing::warn!("a datagram that was not sealed for this role with the secret of its rack"),
        Broken::Repeated => tracing::warn!("a datagram that had come before: the network repeats them, or somebody"),
        Broken::Late { behind_us } => {
            let behind_s = behind_us / 1_000_000;
            tracing::warn!(behind_s, "a datagram of another time: repeated, or its sender's clock is wrong");
        }
    }
}

/// Counts one, and returns whether it is the first.
fn is_first(count: &mut u64) -> bool {
    *count += 1;
    *count == 1
}

fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blox::{Body, VssdId};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    const SWITCH: NodeId = NodeId(2);
    const SERVER: NodeId = NodeId(0);

    /// A rack of one server at free addresses, with a secret of a letter, or none.
    fn rack(folder: &tempfile::TempDir, addresses: &[SocketAddr; 3], secret: Option<&str>) -> Rack {
        let [server, control, switch] = addresses;
        let text = format!(
            "switch.listen = '{switch}'\ncontrol.listen = '{control}'\n[[storage]]\nname = 's'\nlisten = '{server}'\n"
        );
        let mut rack = plan::rack::parse("rack.toml", &text).expect("a rack");
        rack.secret = secret.map(|letter| -> PathBuf {
            let path = folder.path().join(letter);
            std::fs::write(&path, letter.repeat(40)).expect("a disk");
            path
        });
        rack
    }

    /// How many of four packets a server with the one secret takes from a switch with the other,
    /// and what it counts.
    fn sent(own: Option<&str>, other: Option<&str>) -> (u64, WireCounts) {
        let folder = tempfile::tempdir().expect("a folder");
        let sockets =
            [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0".parse().expect("an address")).expect("it is free"));
        let addresses = sockets.map(|socket| socket.local_addr().expect("it is bound"));
        let mut server = Wire::bind(&rack(&folder, &addresses, own), SERVER).expect("it is free");
        let mut switch = Wire::bind(&rack(&folder, &addresses, other), SWITCH).expect("it is free");
        let body = Body::Heartbeat { beat: 7 };
        let packet = Packet { vssd: VssdId(3), latency_ns: 5, source: NodeId(1), target: SERVER, body };
        (0..4).for_each(|_| switch.send(SERVER, &packet, None));
        switch.flush();
        let (mut data, mut taken) = (Vec::new(), 0);
        let until = Instant::now() + Duration::from_secs(60);
        while server.counts().received < 4 {
            assert!(Instant::now() < until, "loopback loses nothing");
            match server.receive(&mut data) {
                Some(Some(came)) => {
                    assert_eq!(came, packet);
                    taken += 1;
                }
                Some(None) => {}
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        (taken, server.counts())
    }

    #[test]
    fn roles_with_the_same_secret_hear_each_other_and_no_others() {
        assert_eq!([sent(Some("a"), Some("a")).0, sent(None, None).0], [4, 4]);
        let (taken, counts) = sent(Some("a"), Some("b"));
        assert_eq!((taken, counts.forged, counts.foreign), (0, 4, 0));
        for (own, other) in [(Some("a"), None), (None, Some("a"))] {
            let (taken, counts) = sent(own, other);
            assert_eq!((taken, counts.forged, counts.foreign), (0, 0, 4), "{own:?} {other:?}");
        }
    }
}
