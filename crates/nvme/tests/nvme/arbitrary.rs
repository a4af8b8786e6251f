//! Bytes from anywhere, at any state of a connection: nothing panics, and an ordinary host is still
//! served.

use crate::common::raw::Raw;
use crate::common::*;
use nvme::initiator::{HostEvent, Payload};
use nvme::pdu::{Header, InitializeRequest};
use nvme::*;
use proptest::prelude::*;

/// How far a connection has come before the noise.
#[derive(Clone, Copy, Debug)]
enum Reached {
    Nothing,
    Greeted,
    Admin,
    Queue,
    OpenWrite,
}

fn reached() -> impl Strategy<Value = Reached> {
    prop_oneof![
        Just(Reached::Nothing),
        Just(Reached::Greeted),
        Just(Reached::Admin),
        Just(Reached::Queue),
        Just(Reached::OpenWrite),
    ]
}

fn reach(world: &mut World, reached: Reached) -> Raw {
    let mut raw = match reached {
        Reached::Nothing => return Raw::open(world),
        Reached::Greeted => {
            let mut raw = Raw::open(world);
            raw.greet(world);
            return raw;
        }
        Reached::Admin => return Raw::admin(world),
        Reached::Queue | Reached::OpenWrite => {
            let admin = Raw::admin(world);
            Raw::queue(world, &admin, 1, 15)
        }
    };
    if matches!(reached, Reached::OpenWrite) {
        let access = Access { start: 0, blocks_minus_one: 31, flags: AccessFlags::empty() };
        let data = Sgl::Transport { length: 32 * 512 };
        raw.command(world, Command { namespace: 1, data, ..Command::new(3, Body::Io(Io::Write(access))) }, &[]);
        raw.listen(world);
    }
    raw
}

/// Feeds bytes in portions; backends answer.
fn feed(world: &mut World, raw: &mut Raw, bytes: &[u8], portion: usize) {
    for piece in bytes.chunks(portion) {
        raw.bring(world, piece);
        let waiting: usize = world.target.transmit(raw.connection).map(<[u8]>::len).sum();
        world.target.transmitted(raw.connection, waiting);
        world.target.end_loans(raw.connection);
        world.work();
    }
}

fn is_still_served(world: &mut World) -> bool {
    let guest = world.join(initiator(5), OTHER_PORT);
    let access = Access { start: 0, blocks_minus_one: 0, flags: AccessFlags::empty() };
    let ticket = world.submit(guest, 1, 2, Body::Io(Io::Read(access)), Payload::ToHost(512));
    world.settle();
    world.guests[guest]
        .events
        .iter()
        .any(|event| matches!(event, HostEvent::Completed { ticket: ended, status: Status::SUCCESS, .. } if *ended == ticket))
}

/// PDUs of a type that a host may send, with lengths that fit and everything else random: noise
/// that gets far.
fn likely_pdu() -> impl Strategy<Value = Vec<u8>> {
    let capsule =
        (any::<[u8; 64]>(), 0u8..4, 0usize..64, any::<bool>()).prop_map(|(mut entry, pick, data, transports)| {
            // Opcodes that exist, namespaces that exist, descriptors that may fit.
            let opcodes = [0x7f, 0x02, 0x01, 0x06, 0x09, 0x0a, 0x19, 0x0d, 0x11, 0x15, 0x0e, 0x05];
            entry[0] = opcodes[usize::from(entry[0]) % opcodes.len()];
            entry[4..8].copy_from_slice(&[pick, 0, 0, 0]);
            entry[39] = if transports { 0x5a } else { 0x01 };
            entry[24..32].fill(0);
            entry[34..36].fill(0);
            entry[44..52].fill(0);
            let data = vec![0x11; data * 8];
            pdu(4, 72, &entry, &data)
        });
    let data = (any::<[u8; 16]>(), 1usize..64).prop_map(|(mut specific, length)| {
        specific[3] = 0;
        specific[4..8].fill(0);
        specific[8..12].copy_from_slice(&(length as u32 * 8).to_le_bytes());
        pdu(6, 24, &specific, &vec![0x22; length * 8])
    });
    prop_oneof![4 => capsule, 1 => data]
}

fn pdu(kind: u8, header: u8, specific: &[u8], data: &[u8]) -> Vec<u8> {
    let length = (usize::from(header) + data.len()) as u32;
    let offset = if data.is_empty() { 0 } else { header };
    let mut bytes = vec![kind, 4, header, offset];
    bytes[1] = if kind == 6 { 4 } else { 0 };
    bytes.extend(length.to_le_bytes());
    bytes.extend(specific);
    bytes.extend(data);
    bytes
}

/// Commands of a host from Connect on.
fn commands() -> Vec<(Command, Vec<u8>)> {
    let connect = Connect { queue: 0, size_minus_one: 31, attributes: ConnectAttributes::empty(), keep_alive_ms: 0 };
    let data = ConnectData { host_id: HostId([9; 16]), controller: 0xffff, subsystem: subsystem(), host: host(9) };
    let inside = Sgl::InCapsule { offset: 0, length: 1024 };
    let enable = Fabrics::PropertySet { offset: 0x14, size: PropertySize::Four, value: 0x0046_0001 };
    let identify = Identify { structure: 1, controller: 0, specific_id: 0, command_set: 0 };
    let page = Sgl::Transport { length: 4096 };
    vec![
        (Command { data: inside, ..Command::new(1, Body::Fabrics(Fabrics::Connect(connect))) }, data.encode().to_vec()),
        (Command::new(2, Body::Fabrics(enable)), Vec::new()),
        (Command::new(3, Body::Admin(Admin::AsynchronousEvent)), Vec::new()),
        (Command::new(4, Body::Admin(Admin::KeepAlive)), Vec::new()),
        (Command { data: page, ..Command::new(5, Body::Admin(Admin::Identify(identify))) }, Vec::new()),
    ]
}

/// A whole session as bytes: what mutations start from.
fn session() -> Vec<u8> {
    let mut bytes = Vec::new();
    let framing = nvme::pdu::Framing::INITIAL;
    let request = InitializeRequest { alignment: 0, digests: Default::default(), ready_max_minus_one: 0 };
    framing.write(&Header::InitializeRequest(request), &[], &mut bytes);
    for (command, data) in commands() {
        let header = Header::Command { entry: command.encode(), data_length: data.len() as u32 };
        framing.write(&header, &data, &mut bytes);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn noise_at_any_state_harms_nobody_else(
        reached in reached(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        portion in 1usize..200,
    ) {
        let mut world = World::new(config());
        let mut raw = reach(&mut world, reached);
        feed(&mut world, &mut raw, &bytes, portion);
        prop_assert!(is_still_served(&mut world));
    }

    #[test]
    fn likely_pdus_at_any_state_harm_nobody_else_and_each_command_is_answered_at_most_once(
        reached in reached(),
        pdus in prop::collection::vec(likely_pdu(), 1..40),
        portion in 1usize..2000,
        lends in any::<bool>(),
    ) {
        let mut world = World::new(if lends { lending(config()) } else { config() });
        let mut raw = reach(&mut world, reached);
        let before = world.target.counters();
        feed(&mut world, &mut raw, &pdus.concat(), portion);
        let after = world.target.counters();
        prop_assert!(after.commands_failed - before.commands_failed <= after.commands - before.commands);
        prop_assert_eq!(after.unknown_results, 0);
        prop_assert!(world.target.gauges().data_bytes <= 64 << 10);
        prop_assert!(is_still_served(&mut world));
        world.target.closed(world.now, raw.connection);
    }

    #[test]
    fn a_session_with_changed_bytes_harms_nobody_else(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
        portion in 1usize..400,
    ) {
        let mut bytes = session();
        for (place, value, how) in changes {
            let at = place.index(bytes.len());
            match how {
                0 => bytes[at] = value,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, value),
            }
        }
        let mut world = World::new(config());
        let mut raw = Raw::open(&mut world);
        feed(&mut world, &mut raw, &bytes, portion);
        prop_assert!(is_still_served(&mut world));
    }
}
