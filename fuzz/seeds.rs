//! Inputs to begin with, written by the crate's own encoders: `seeds FOLDER`, which gets a folder a target. tools/fuzz.sh makes them fewer again.

#[path = "../crates/nvme/tests/nvme/common/mod.rs"]
mod common;

use nvme::identify::{ActiveNamespaces, IdentifyNamespace};
use nvme::pdu::{Digests, Framing, Header, HostData, InitializeRequest};
use nvme::property::PropertyId;
use nvme::reservation::{AcquireKeys, RegisterKeys, ReservationKind};
use nvme::vendor::{MultiCastTarget, VendorCommand};
use nvme::*;
use std::path::Path;
use zerocopy::IntoBytes;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).expect("where to?");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{name}")), bytes)
    };
    for (name, command) in commands() {
        write("structures", name, command.encode().as_bytes())?;
        for (state, digests) in [(3, 0), (2, 0)] {
            let session = session(&command);
            write("target", &format!("{name}-{state}"), &[&[state, 64], session.as_slice()].concat())?;
            write("reader", &format!("{name}-{state}"), &[&[digests], greeting().as_slice(), &session].concat())?;
        }
    }
    for (name, page) in pages() {
        write("structures", name, &page)?;
    }
    write("resp", "array", b"\0*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n")?;
    write("resp", "words", b"\x0bHELLO 3 AUTH default p SETNAME n\r\nMGET a b c\r\nSET k v EX 5 NX\r\nDBSIZE\r\nQUIT\r\n")?;
    for (place, packet) in packets().enumerate() {
        write("rackblox", &place.to_string(), &record(&packet))?;
    }
    write("target", "greeting", &[&[0, 7], greeting().as_slice()].concat())?;
    write("initiator", "working", &[&[1, 255], answers().as_slice()].concat())
}

/// What the roles of a rack send to each other.
fn packets() -> impl Iterator<Item = blox::Packet> {
    use blox::{Body, CollectionNote, ControlMessage, Page, ReplicaMessage, Session, Tag, Timestamp, Value, VssdId};
    let (server, peer, door, control) = (base::NodeId(0), base::NodeId(1), base::NodeId(2), base::NodeId(3));
    let (page, tag, value, epoch) = (Page(3), Tag(1), Value(7), 1);
    let timestamp = Timestamp { version: 1, node: peer };
    let replicas = [Some((server, VssdId(0))), None, None, None];
    let session = Session { life: std::num::NonZero::<u32>::MIN, oldest: tag, epoch, again: true };
    let origin = session.origin(door, tag);
    let bodies = [
        (door, Body::Write { tag, page, value, session: None }),
        (door, Body::Write { tag, page, value, session: Some(session) }),
        (door, Body::Read { tag, page }),
        (peer, Body::Replica(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: None })),
        (peer, Body::Replica(ReplicaMessage::Invalidate { page, timestamp, value, epoch, origin: Some(origin) })),
        (peer, Body::Replica(ReplicaMessage::Acknowledge { page, timestamp, epoch })),
        (peer, Body::Replica(ReplicaMessage::Validate { page, timestamp, epoch })),
        (peer, Body::Replica(ReplicaMessage::Fetch { page, after: None, epoch })),
        (peer, Body::Replica(ReplicaMessage::Fetch { page, after: Some(origin.id), epoch })),
        (peer, Body::Replica(ReplicaMessage::Remembered { page, origin, epoch })),
        (peer, Body::Replica(ReplicaMessage::Recall { page, origin, known: true, round: 1, epoch })),
        (peer, Body::Replica(ReplicaMessage::Recalled { page, id: origin.id, known: false, round: 1, epoch })),
        (peer, Body::Replica(ReplicaMessage::Fetched { page, timestamp, value, epoch })),
        (control, Body::Control(ControlMessage::Members { epoch: 2, replicas, stale: None })),
        (server, Body::Collection(CollectionNote::Soft)),
        (server, Body::Create { server, replica: VssdId(1), replica_server: peer }),
        (server, Body::Heartbeat { beat: 1 << 32 }),
        (server, Body::Control(ControlMessage::UpToDate { epoch })),
        (control, Body::Control(ControlMessage::Lease { beat: 1 << 32, span: base::Span::ms(900) })),
    ];
    bodies.into_iter().map(move |(source, body)| blox::Packet { vssd: VssdId(0), latency_ns: 9, source, target: server, body })
}

/// As the fuzzer has it: a length, a wait, and the datagram without its magic and its page.
fn record(packet: &blox::Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    blox::encode_datagram(packet, &[0; blox::PAGE_BYTES as usize], &mut bytes);
    let page = packet.body.value().map_or(0, |_| blox::PAGE_BYTES as usize + 8);
    let short = &bytes[4..bytes.len() - page];
    [&[short.len() as u8, 10], short].concat()
}

fn written(header: &Header, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Framing::INITIAL.write(header, data, &mut bytes);
    bytes
}

fn greeting() -> Vec<u8> {
    let request = InitializeRequest { alignment: 0, digests: Digests::default(), ready_max_minus_one: 0 };
    written(&Header::InitializeRequest(request), &[])
}

/// A command, and data of it for what an R2T may ask.
fn session(command: &Command) -> Vec<u8> {
    let data = vec![7; 64];
    let entry = command.encode();
    let later = HostData { command: command.id, tag: 0, offset: 0, length: 512, is_last: true };
    match command.data {
        Sgl::InCapsule { .. } => written(&Header::Command { entry, data_length: 64 }, &data),
        _ => [written(&Header::Command { entry, data_length: 0 }, &[]), written(&Header::HostData(later), &[9; 512])]
            .concat(),
    }
}

fn answers() -> Vec<u8> {
    let completion = Cqe { result: 0, sq_head: 1, sq_id: 1, id: 0, status: Status::SUCCESS };
    written(&Header::Response(completion), &[])
}

fn commands() -> Vec<(&'static str, Command)> {
    let access = Access { start: 1, blocks_minus_one: 0, flags: AccessFlags::FORCE_UNIT_ACCESS };
    let (block, list) = (Sgl::Transport { length: 512 }, Sgl::InCapsule { offset: 0, length: 64 });
    let io = |body, data| Command { namespace: 1, data, ..Command::new(1, Body::Io(body)) };
    let admin = |body, data| Command { namespace: 1, data, ..Command::new(1, Body::Admin(body)) };
    let page = Sgl::Transport { length: 4096 };
    let identify = Identify { structure: 1, controller: 0, specific_id: 0, command_set: 0 };
    let multi_cast = VendorCommand::MultiCast { start: 0, blocks_minus_one: 0, targets_minus_one: 3 };
    let property = PropertyId::Configuration;
    let set = Fabrics::PropertySet { offset: property.code(), size: property.size(), value: 0x46_0001 };
    vec![
        ("read", io(Io::Read(access), block)),
        ("write", io(Io::Write(access), block)),
        ("compare", io(Io::Compare(access), block)),
        ("zeroes", io(Io::WriteZeroes(access), Sgl::Transport { length: 0 })),
        ("verify", io(Io::Verify(access), Sgl::Transport { length: 0 })),
        ("flush", io(Io::Flush, Sgl::Transport { length: 0 })),
        ("multicast", io(Io::Vendor(multi_cast.encode()), list)),
        ("add", io(Io::Vendor(VendorCommand::AddWrite { first: 0, second: 8 }.encode()), Sgl::Transport { length: 0 })),
        (
            "dataset",
            io(Io::DatasetManagement(DatasetManagement { ranges_minus_one: 3, intent: DatasetUse::DEALLOCATE }), list),
        ),
        ("identify", admin(Admin::Identify(identify), page)),
        ("events", admin(Admin::AsynchronousEvent, Sgl::Transport { length: 0 })),
        ("abort", admin(Admin::Abort { queue: 1, id: 1 }, Sgl::Transport { length: 0 })),
        ("alive", admin(Admin::KeepAlive, Sgl::Transport { length: 0 })),
        ("property", Command::new(1, Body::Fabrics(set))),
    ]
}

fn pages() -> Vec<(&'static str, Vec<u8>)> {
    let zeros = [0; 4096];
    let namespace = IdentifyNamespace::decode(&zeros).expect("zeros say nothing");
    vec![
        ("namespaces", ActiveNamespaces(vec![1, 2, 9]).encode().to_vec()),
        ("namespace", IdentifyNamespace { size: 1024, capacity: 1024, ..namespace }.encode().to_vec()),
        ("register", RegisterKeys { current: 1, new: 2 }.encode().to_vec()),
        (
            "acquire",
            AcquireKeys { current: 1, preempt: u64::from(ReservationKind::WriteExclusive.code()) }.encode().to_vec(),
        ),
        ("cast", [MultiCastTarget::new(1, 5).encode(), MultiCastTarget::new(2, 6).encode()].concat()),
        ("zeros", zeros.to_vec()),
    ]
}
