//! Packets that the switch of a live rack forwards per second of its CPU time: by its data path in
//! the kernel, and by its role.
//!
//! The role is measured whole, over loopback: receiving many datagrams with one call, deciding, and
//! sending, with the kernel's work for its calls. Of the data path the kernel runs the program
//! alone, again and again over one frame: from its headers to the checksums of the frame that it
//! sends. What a driver or the network stack does before and after is not in that number.

use crate::harness::{Better, Contender, Group, cpu_seconds, server_cpu};
use base::NodeId;
use blox::{Body, PAGE_BYTES, Packet, Page, Tag, Value, VssdId, encode_datagram};
use express::{Express, Neighbour, Own, Verdict};
use plan::rack::Rack;
use runtime::datagrams::{Inbox, Outbox};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use volumes::{Start, Stop, switch};

/// Packets of a turn.
const PACKETS: u64 = 200_000;
const ROOM: usize = 8_192;
const SERVER: NodeId = NodeId(0);
const DOOR: NodeId = NodeId(1);
/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is forwarded, and how many of them travel together: they fit into the buffer that a socket
/// has by default.
fn kinds() -> [(&'static str, Body, u64); 2] {
    let (tag, page, value) = (Tag(7), Page(9), Value(3));
    [("read", Body::Read { tag, page }, 64), ("page", Body::ReadReply { tag, value: Ok(value) }, 15)]
}

/// The role on a thread of its own, and sockets that stand for the others.
struct Role {
    tag: [u8; 8],
    address: SocketAddr,
    source: UdpSocket,
    target: UdpSocket,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Role {
    fn start() -> Role {
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
        let [target, source, control, own] = [socket(), socket(), socket(), socket()];
        let [server, door, hears, address] =
            [&target, &source, &control, &own].map(|socket| socket.local_addr().expect("it is bound"));
        drop(own);
        let text = format!(
            "switch.listen = '{address}'\ncontrol.listen = '{hears}'\n[[storage]]\nname = 's'\nlisten = '{server}'\n\
             [[door]]\nname = 'd'\nlisten = '{door}'\nconfig = 't.toml'\n"
        );
        let rack: Rack = plan::rack::parse("bench", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let running = switch::start(&rack, Start::Thread).unwrap_or_else(|error| panic!("{error}"));
        let stop = running.stopper();
        let thread = std::thread::spawn(move || running.run().expect("it runs"));
        // All datagrams of a rack begin alike: also the switch's signs of life.
        let mut sign = [0; 64];
        control.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        control.recv(&mut sign).expect("the switch says that it lives");
        let tag = *sign.first_chunk().expect("it is longer");
        target.set_nonblocking(true).expect("a socket can be made so");
        Role { tag, address, source, target, stop, thread: Some(thread) }
    }

    /// Sends packets through the role, and awaits them.
    fn burst(&self, (inbox, outbox): &mut (Inbox, Outbox<()>), datagram: &[u8], burst: u64) {
        (0..burst).for_each(|_| outbox.push(self.address, (), |bytes| bytes.extend_from_slice(datagram)));
        assert_eq!(outbox.send(&self.source, |(), error| panic!("loopback takes all: {error}")), burst);
        let (mut came, until) = (0, Instant::now() + TIMEOUT);
        while came < burst {
            match inbox.next(&self.target).expect("the socket is sound") {
                Some(got) => came += u64::from(got.len() == datagram.len()),
                None => {
                    assert!(Instant::now() < until, "loopback loses nothing that has room");
                    std::thread::yield_now();
                }
            }
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it ends"));
    }
}

fn datagram(tag: [u8; 8], body: Body) -> Vec<u8> {
    let packet = Packet { vssd: VssdId(0), latency_ns: 0, source: DOOR, target: SERVER, body };
    let mut bytes = tag.to_vec();
    encode_datagram(&packet, &[7; PAGE_BYTES as usize], &mut bytes);
    bytes
}

/// A frame without a checksum of UDP, from and to the switch: behind the data path it is as before.
fn frame(own: &Own, datagram: &[u8]) -> Vec<u8> {
    let (ip, udp) = (datagram.len() as u16 + 28, datagram.len() as u16 + 8);
    let address = own.address.ip().octets();
    let mut frame = [&own.station[..], &own.station, &[0x08, 0x00, 0x45, 0], &ip.to_be_bytes()].concat();
    frame.extend([&[0, 0, 0x40, 0, 64, 17, 0, 0], &address[..], &address].concat());
    let words = frame[14..34].as_chunks::<2>().0.iter();
    let sum: u32 = words.map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame.extend([own.address.port(), own.address.port(), udp, 1].map(u16::to_be_bytes).concat());
    frame.extend_from_slice(datagram);
    frame
}

/// The data path, if this machine has what it needs.
fn express() -> Option<(Express, Own)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/xdp/switch.bpf.o");
    let address = SocketAddrV4::new([10, 9, 0, 9].into(), 7_000);
    let own = Own { tag: *b"in bench", address, station: [2, 0, 0, 0, 0, 9], inside: 2, redirects: 1_024 };
    let object = std::fs::read(path).map_err(|error| format!("target/xdp/switch.bpf.o: {error}; `make xdp`"));
    let loaded = object.and_then(|object| Express::load(&object, &own).map_err(|error| error.to_string()));
    let mut express = loaded.inspect_err(|reason| println!("SKIPPED: the data path in the kernel: {reason}")).ok()?;
    let place = Neighbour { address, station: own.station };
    express.set_node(SERVER, Some(place)).expect("the kernel has room");
    Some((express, own))
}

fn in_kernel(name: &str, body: Body) -> Option<Contender> {
    let (express, own) = express()?;
    let frame = frame(&own, &datagram(own.tag, body));
    let run = move || {
        let seconds = cpu_seconds(|| {
            let ran = express.run(&frame, PACKETS as u32).expect("the kernel runs it");
            assert_eq!(ran.verdict, Verdict::Send, "also the last one is sent");
        });
        PACKETS as f64 / seconds
    };
    Some(Contender { key: format!("switch.packets_per_cpu_s.{name}.xdp"), run: Box::new(run) })
}

fn by_role(name: &str, body: Body, burst: u64) -> Contender {
    let role = Role::start();
    let text = datagram(role.tag, body);
    let mut boxes = (Inbox::new(ROOM), Outbox::default());
    let bursts = PACKETS / burst;
    let run = move || {
        let before = server_cpu();
        (0..bursts).for_each(|_| role.burst(&mut boxes, &text, burst));
        (bursts * burst) as f64 / (server_cpu() - before).as_secs_f64()
    };
    Contender { key: format!("switch.packets_per_cpu_s.{name}"), run: Box::new(run) }
}

/// Packets per CPU second, by kind.
pub fn benchmarks() -> Vec<Group> {
    let of = |(name, body, burst): (&'static str, Body, u64)| {
        let contenders = in_kernel(name, body).into_iter().chain([by_role(name, body, burst)]).collect();
        Group { better: Better::Higher, rounds: 5, contenders }
    };
    kinds().into_iter().map(of).collect()
}
