//! Datagrams per CPU second over loopback, many at a time, as the roles of a live rack exchange
//! them, against one call of the system for each.

use crate::harness::{Better, Contender, Group, cpu_seconds};
use runtime::datagrams::{Inbox, Outbox};
use std::net::{SocketAddr, UdpSocket};

/// The name of a size, its bytes, and how many travel together: they fit into the buffer that a
/// socket has by default.
const SIZES: [(&str, usize, u64); 2] = [("60", 60, 64), ("page", 4_180, 15)];
const DATAGRAMS: u64 = 200_000;
const ROOM: usize = 8_192;

struct Pair {
    source: UdpSocket,
    target: UdpSocket,
    address: SocketAddr,
}

fn pair() -> Pair {
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let (source, target) = (socket(), socket());
    target.set_nonblocking(true).expect("a socket can be made so");
    let address = target.local_addr().expect("it is bound");
    Pair { source, target, address }
}

fn together(pair: &Pair, (inbox, outbox): &mut (Inbox, Outbox<()>), text: &[u8], burst: u64) {
    (0..burst).for_each(|_| outbox.push(pair.address, (), |bytes| bytes.extend_from_slice(text)));
    let sent = outbox.send(&pair.source, |(), error| panic!("loopback takes all: {error}"));
    let mut came = 0;
    while let Some(datagram) = inbox.next(&pair.target).expect("the socket is sound") {
        assert_eq!(datagram.len(), text.len());
        came += 1;
    }
    assert_eq!((sent, came), (burst, burst), "loopback loses nothing that has room");
}

fn alone(pair: &Pair, room: &mut [u8], text: &[u8], burst: u64) {
    for _ in 0..burst {
        assert_eq!(pair.source.send_to(text, pair.address).expect("loopback takes all"), text.len());
    }
    let mut came = 0;
    while let Ok(length) = pair.target.recv(room) {
        assert_eq!(length, text.len());
        came += 1;
    }
    assert_eq!(came, burst, "loopback loses nothing that has room");
}

/// Datagrams per CPU second, sent and received, by size.
pub fn benchmarks() -> Vec<Group> {
    let of = |(name, bytes, burst): (&str, usize, u64)| {
        let text = vec![7; bytes];
        let other_text = text.clone();
        let (ours, theirs) = (pair(), pair());
        let mut boxes = (Inbox::new(ROOM), Outbox::default());
        let mut room = vec![0; ROOM];
        let bursts = DATAGRAMS / burst;
        let rate = move |burst: u64, seconds: f64| (bursts * burst) as f64 / seconds;
        let together =
            move || rate(burst, cpu_seconds(|| (0..bursts).for_each(|_| together(&ours, &mut boxes, &text, burst))));
        let alone = move || {
            rate(burst, cpu_seconds(|| (0..bursts).for_each(|_| alone(&theirs, &mut room, &other_text, burst))))
        };
        let contenders = vec![
            Contender { key: format!("datagrams.per_cpu_s.{name}"), run: Box::new(together) },
            Contender { key: format!("datagrams.per_cpu_s.{name}.one_by_one"), run: Box::new(alone) },
        ];
        Group { better: Better::Higher, rounds: 9, contenders }
    };
    SIZES.into_iter().map(of).collect()
}
