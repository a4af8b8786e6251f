//! A session as an independent reader of the protocol sees it: tshark decodes every PDU of it and
//! calls none malformed.
//!
//! Bytes are recorded by a relay between host and target, and written as a capture with made-up TCP
//! segments: capturing for real needs root.

mod support;

use live::{Extent, Host, RemoteDisk};
use nvme::initiator::InitiatorConfig;
use nvme::pdu::Digests;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use support::{Running, config, pattern};

/// The port of NVMe/TCP, by which tshark knows the protocol.
const PORT: u16 = 4420;
/// Bytes of a made-up segment: odd, so that PDUs lie across segments in every way.
const SEGMENT: usize = 1447;

/// One piece of a stream, in the order in which the relay has seen it.
struct Piece {
    connection: u16,
    to_target: bool,
    bytes: Vec<u8>,
}

type Record = Arc<Mutex<Vec<Piece>>>;

/// Relays connections to `target` and records them; returns where it listens.
fn relay(target: String, record: Record) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for (connection, host) in (0..).zip(listener.incoming()) {
            let Ok(host) = host else { return };
            let Ok(target) = TcpStream::connect(&target) else { return };
            for (from, to, to_target) in
                [(host.try_clone(), target.try_clone(), true), (target.try_clone(), host.try_clone(), false)]
            {
                let (from, to, record) = (from.expect("a copy"), to.expect("a copy"), record.clone());
                std::thread::spawn(move || pass(from, to, connection, to_target, &record));
            }
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, connection: u16, to_target: bool, record: &Record) {
    let mut room = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut room) {
        if count == 0 {
            break;
        }
        let bytes = room[..count].to_vec();
        // Recorded before it is passed on, so that an answer never stands before its question.
        record.lock().expect("nobody panics").push(Piece { connection, to_target, bytes });
        if to.write_all(&room[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The record as a capture file (libpcap 2.4, raw IPv4), with sequence numbers that fit.
fn capture(pieces: &[Piece]) -> Vec<u8> {
    let mut file = Vec::new();
    // Magic, version 2.4, zone, accuracy, longest packet, link type 101: raw IP.
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    let mut sent = std::collections::BTreeMap::<(u16, bool), u32>::new();
    let mut time_us = 0u32;
    for piece in pieces {
        for part in piece.bytes.chunks(SEGMENT) {
            let sequence = sent.get(&(piece.connection, piece.to_target)).copied().unwrap_or(0);
            let acknowledged = sent.get(&(piece.connection, !piece.to_target)).copied().unwrap_or(0);
            let packet = packet(piece, part, sequence, acknowledged);
            sent.insert((piece.connection, piece.to_target), sequence.wrapping_add(part.len() as u32));
            time_us += 10;
            for word in [time_us / 1_000_000, time_us % 1_000_000, packet.len() as u32, packet.len() as u32] {
                file.extend(word.to_le_bytes());
            }
            file.extend(packet);
        }
    }
    file
}

/// An IPv4 packet with a TCP segment; checksums are zero, which tshark does not mind unless asked
/// to.
fn packet(piece: &Piece, data: &[u8], sequence: u32, acknowledged: u32) -> Vec<u8> {
    let (host, target) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let host_port = 50_000 + piece.connection;
    let (from, to, from_port, to_port) =
        if piece.to_target { (host, target, host_port, PORT) } else { (target, host, PORT, host_port) };
    let mut packet = vec![0x45, 0];
    packet.extend((40 + data.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend(from.into_iter().chain(to));
    packet.extend(from_port.to_be_bytes().into_iter().chain(to_port.to_be_bytes()));
    packet.extend(sequence.wrapping_add(1).to_be_bytes().into_iter().chain(acknowledged.wrapping_add(1).to_be_bytes()));
    // Five words, ACK and PSH, a large window.
    packet.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(data);
    packet
}

fn session(address: &str, config: InitiatorConfig) {
    let mut disk = RemoteDisk::open(Host::connect(address, config).expect("it is let in"), 1).expect("it is there");
    for blocks in [1, 8, 100, 600] {
        let data = pattern(7, 1, blocks as usize * 512);
        disk.write(Extent { start: 7, blocks }, data.clone(), false).expect("it is taken");
        assert_eq!(disk.read(Extent { start: 7, blocks }).expect("it is there"), data);
    }
    disk.read(Extent { start: 1 << 40, blocks: 1 }).expect_err("it is outside");
    disk.flush().expect("it is kept");
    disk.disconnect().expect("in order");
}

fn tshark(file: &str, filter: &str) -> Option<String> {
    let said = Command::new("tshark").args(["-r", file, "-Y", filter]).output().ok()?;
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

#[test]
fn tshark_reads_a_session_and_finds_nothing_malformed() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = Running::start("[[subsystem]]\nnamespace = [{ size = '16MiB' }]");
    for (header, data) in [(false, false), (true, true)] {
        let record = Record::default();
        let address = relay(target.address.clone(), record.clone());
        live::discover(&address, config("one"), &live::Proof::default()).expect("it answers");
        session(&address, InitiatorConfig { digests: Digests { header, data }, ..config("one") });
        let path = folder.path().join(format!("session-{header}.pcap"));
        let mut file = File::create(&path).expect("a file");
        file.write_all(&capture(&record.lock().expect("nobody panics"))).expect("there is room");
        let path = path.display().to_string();
        let Some(wrong) = tshark(&path, "_ws.malformed || _ws.expert.severity == error") else {
            println!("SKIPPED: there is no tshark here (Debian's package tshark)");
            return;
        };
        assert_eq!(wrong, "", "digests {header}");
        let pdus = tshark(&path, "nvme-tcp.type").expect("it was there").lines().count();
        assert!(pdus > 40, "it reads {pdus} frames of PDUs");
    }
    target.stop();
}
