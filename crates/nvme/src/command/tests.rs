use super::*;
use crate::range::CopyFormat;
use crate::reservation::{AcquireAction, PersistChange, RegisterAction, ReleaseAction, ReservationKind};
use proptest::prelude::*;
use zerocopy::IntoBytes;

fn fabrics(kind: u8, a: u32, b: u32, wide: u64) -> Fabrics {
    let size = if a & 1 == 0 { PropertySize::Four } else { PropertySize::Eight };
    let (protocol, specific) = (a as u8, b as u16);
    match kind % 6 {
        0 => Fabrics::PropertySet { offset: b, size, value: wide },
        1 => Fabrics::PropertyGet { offset: b, size },
        2 => Fabrics::AuthenticationSend { protocol, specific, length: b },
        3 => Fabrics::AuthenticationReceive { protocol, specific, length: b },
        _ => Fabrics::Connect(Connect {
            queue: a as u16,
            size_minus_one: b as u16,
            attributes: ConnectAttributes::from_bits_retain(kind),
            keep_alive_ms: wide as u32,
        }),
    }
}

fn admin(kind: u8, a: u32, b: u32, wide: u64) -> Admin {
    match kind % 7 {
        0 => Admin::GetLogPage(GetLogPage {
            log: kind,
            specific: a as u8 & 0x7f,
            retain_event: a & 0x100 != 0,
            dwords_minus_one: b,
            specific_id: a as u16,
            offset: wide,
            is_index: a & 0x200 != 0,
            command_set: b as u8,
        }),
        1 => Admin::Identify(Identify {
            structure: kind,
            controller: a as u16,
            specific_id: b as u16,
            command_set: wide as u8,
        }),
        2 => Admin::Abort { queue: a as u16, id: b as u16 },
        3 => Admin::SetFeatures(SetFeatures { feature: kind, save: a & 1 != 0, arguments: [a, b, !a, !b, 7] }),
        4 => Admin::GetFeatures { feature: kind, select: FeatureSelect::ALL[a as usize % 4], argument: b },
        5 => Admin::AsynchronousEvent,
        _ => Admin::KeepAlive,
    }
}

fn io(kind: u8, a: u32, b: u32, wide: u64) -> Io {
    let flags = AccessFlags::from_bits_retain(b as u16);
    let access = Access { start: wide, blocks_minus_one: a as u16, flags };
    let ignore_key = a & 8 != 0;
    let held = ReservationKind::ALL[b as usize % 7];
    match kind % 13 {
        0 => Io::Flush,
        1 => Io::Write(access),
        2 => Io::Read(access),
        3 => Io::Compare(access),
        4 => Io::WriteZeroes(access),
        5 => Io::Verify(access),
        6 => Io::DatasetManagement(DatasetManagement {
            ranges_minus_one: a as u8,
            intent: DatasetUse::from_bits_retain(b),
        }),
        7 => Io::ReservationRegister(ReservationRegister {
            action: RegisterAction::ALL[a as usize % 3],
            ignore_key,
            persist: PersistChange::ALL[b as usize % 3],
        }),
        8 => Io::ReservationReport { dwords_minus_one: a, is_extended: b & 1 != 0 },
        9 => Io::ReservationAcquire(ReservationAcquire {
            action: AcquireAction::ALL[a as usize % 3],
            ignore_key,
            kind: held,
        }),
        10 => Io::ReservationRelease(ReservationRelease {
            action: ReleaseAction::ALL[a as usize % 2],
            ignore_key,
            kind: held,
        }),
        11 => Io::Copy(Copy { start: wide, ranges_minus_one: a as u8, format: CopyFormat::ALL[b as usize % 4], flags }),
        _ => Io::Vendor(Vendor { opcode: kind | 0x80, dwords_2: [a, b], dwords_10: [a, b, !a, !b, 1, wide as u32] }),
    }
}

fn command() -> impl Strategy<Value = (Command, QueueKind)> {
    let numbers = (any::<u8>(), any::<u32>(), any::<u32>(), any::<u64>());
    (0..4, any::<u16>(), 0..3usize, any::<u32>(), any::<u32>(), numbers).prop_map(
        |(set, id, fuse, namespace, length, (kind, a, b, wide))| {
            let (body, queue) = match set {
                0 => (Body::Fabrics(fabrics(kind, a, b, wide)), QueueKind::Admin),
                1 => (Body::Fabrics(Fabrics::Disconnect), QueueKind::Io),
                2 => (Body::Admin(admin(kind, a, b, wide)), QueueKind::Admin),
                _ => (Body::Io(io(kind, a, b, wide)), QueueKind::Io),
            };
            let namespace = if set < 2 { 0 } else { namespace };
            let data = Sgl::Transport { length };
            (Command { id, fuse: Fuse::ALL[fuse], namespace, data, body }, queue)
        },
    )
}

proptest! {
    #[test]
    fn every_command_comes_back((command, queue) in command()) {
        prop_assert_eq!(Command::decode(&command.encode(), queue), Ok(command));
    }

    #[test]
    fn any_entry_is_a_command_or_an_error_with_a_status(bytes in any::<[[u8; 16]; 4]>(), io in any::<bool>()) {
        let queue = QueueKind::of(u16::from(io));
        let bytes = bytes.concat();
        match Command::decode(Sqe::view(&bytes).unwrap(), queue) {
            Ok(command) => prop_assert_eq!(Command::decode(&command.encode(), queue), Ok(command)),
            Err(error) => prop_assert!(!error.status().is_success() && error.status().do_not_retry),
        }
    }
}

/// Base 2.0, Figure 379: type in byte 4, record format 40, queue 42, size 44, attributes 46, keep
/// alive 48.
#[test]
fn connect_looks_as_a_linux_host_writes_it() {
    let connect =
        Connect { queue: 1, size_minus_one: 127, attributes: ConnectAttributes::NO_FLOW_CONTROL, keep_alive_ms: 5000 };
    let body = Body::Fabrics(Fabrics::Connect(connect));
    let command = Command { data: Sgl::InCapsule { offset: 0, length: 1024 }, ..Command::new(0xf001, body) };
    let entry = command.encode();
    let bytes = entry.as_bytes();
    assert_eq!(bytes[..6], [0x7f, 0x40, 0x01, 0xf0, 0x01, 0]);
    assert_eq!(bytes[40..52], [0, 0, 1, 0, 127, 0, 4, 0, 0x88, 0x13, 0, 0]);
}

/// Base 2.0, Figures 387 and 388: attributes 40, offset 44, value 48.
#[test]
fn a_property_set_has_offset_and_value_in_place() {
    let body = Fabrics::PropertySet { offset: 0x14, size: PropertySize::Four, value: 0x0046_0001 };
    let entry = Command::new(1, Body::Fabrics(body)).encode();
    assert_eq!(entry.as_bytes()[40..52], [0, 0, 0, 0, 0x14, 0, 0, 0, 1, 0, 0x46, 0]);
    assert_eq!(entry.as_bytes()[4], 0);
}

/// Base 2.0, 6.2: SPSP0 41, SPSP1 42, SECP 43, length 44.
#[test]
fn authentication_names_its_protocol_in_byte_43() {
    let body = Fabrics::AuthenticationSend { protocol: 0xe9, specific: 0x0101, length: 300 };
    let entry = Command::new(1, Body::Fabrics(body)).encode();
    assert_eq!(entry.as_bytes()[40..48], [0, 1, 1, 0xe9, 0x2c, 1, 0, 0]);
}

/// NVM Command Set 1.0, Figures 61 to 63: start in dwords 10 and 11, blocks in 15:0 of dword 12,
/// FUA bit 30.
#[test]
fn a_write_has_start_length_and_fua_in_dwords_10_to_12() {
    let access = Access { start: 0x0102_0304_0506, blocks_minus_one: 7, flags: AccessFlags::FORCE_UNIT_ACCESS };
    let entry = Command { namespace: 3, ..Command::new(9, Body::Io(Io::Write(access))) }.encode();
    assert_eq!(entry.as_bytes()[..8], [1, 0x40, 9, 0, 3, 0, 0, 0]);
    assert_eq!(entry.as_bytes()[40..52], [6, 5, 4, 3, 2, 1, 0, 0, 7, 0, 0, 0x40]);
}

/// Base 2.0, Figures 197 to 201.
#[test]
fn a_log_is_asked_for_by_dwords_split_over_two_words() {
    let log = GetLogPage {
        log: 0x70,
        specific: 0,
        retain_event: true,
        dwords_minus_one: 0x0001_00ff,
        specific_id: 0,
        offset: 1024,
        is_index: false,
        command_set: 0,
    };
    let entry = Command::new(1, Body::Admin(Admin::GetLogPage(log))).encode();
    assert_eq!(entry.as_bytes()[40..52], [0x70, 0x80, 0xff, 0, 1, 0, 0, 0, 0, 4, 0, 0]);
    assert_eq!(log.bytes(), 0x1_0100 * 4);
}

/// NVM Command Set 1.1, Figure 34: ranges in 7:0, format in 11:8 of dword 12; Base 2.0, 7.3: action
/// 2:0, IEKEY 3, CPTPL 31:30.
#[test]
fn copy_and_register_have_their_codes_in_place() {
    let copy = Copy { start: 5, ranges_minus_one: 2, format: CopyFormat::ShortAcross, flags: AccessFlags::empty() };
    let entry = Command::new(1, Body::Io(Io::Copy(copy))).encode();
    assert_eq!((entry.opcode, entry.dword(2)), (0x19, 0x0202));
    let register =
        ReservationRegister { action: RegisterAction::Replace, ignore_key: true, persist: PersistChange::On };
    let entry = Command::new(1, Body::Io(Io::ReservationRegister(register))).encode();
    assert_eq!((entry.opcode, entry.dword(0)), (0x0d, 0xc000_000a));
}

#[test]
fn an_opcode_belongs_to_its_queue() {
    let entry = Command::new(1, Body::Admin(Admin::KeepAlive)).encode();
    let refused = Command::decode(&entry, QueueKind::Io).unwrap_err();
    assert_eq!(refused, CommandError::Opcode { opcode: 0x18, queue: QueueKind::Io });
    assert_eq!(refused.status(), Status::INVALID_OPCODE.without_retry());
    let property = Body::Fabrics(Fabrics::PropertyGet { offset: 0, size: PropertySize::Eight });
    assert!(Command::decode(&Command::new(1, property).encode(), QueueKind::Io).is_err(), "not on an I/O queue");
    let disconnect = Command::new(1, Body::Fabrics(Fabrics::Disconnect)).encode();
    assert!(Command::decode(&disconnect, QueueKind::Admin).is_err(), "not on the admin queue");
}

#[test]
fn opcode_7f_is_the_last_that_is_not_the_vendors() {
    let vendor = Sqe { opcode: 0x80, ..Sqe::default() };
    assert!(matches!(Command::decode(&vendor, QueueKind::Io).unwrap().body, Body::Io(Io::Vendor(_))));
    let standard = Sqe { opcode: 0x7e, ..Sqe::default() };
    assert!(Command::decode(&standard, QueueKind::Io).is_err());
}

#[test]
fn a_reserved_code_fails_the_command_by_the_name_of_its_field() {
    let entry = Sqe { opcode: 0x02, flags: 3, ..Sqe::default() };
    let refused = Command::decode(&entry, QueueKind::Io).unwrap_err();
    assert_eq!(refused.to_string(), "fuse is 0x3, allowed is one of 0 1 2");
    assert_eq!(refused.status(), Status::INVALID_FIELD.without_retry());
    let connect = Sqe { opcode: 0x7f, namespace: 1.into(), dwords_10: dwords([1]), ..Sqe::default() };
    let refused = Command::decode(&connect, QueueKind::Admin).unwrap_err();
    assert!(matches!(refused, CommandError::Field(CodecError::Field { field: "record format", got: 1, .. })));
}

#[test]
fn direction_is_told_by_opcode_and_by_the_type_of_a_fabrics_command() {
    let connect = Command::new(1, Body::Fabrics(fabrics(4, 0, 0, 0))).encode();
    assert_eq!(direction(&connect), Direction::HostToController);
    assert_eq!(Direction::of(0x02), Direction::ControllerToHost);
    assert_eq!(Direction::of(0x00), Direction::None);
    assert_eq!(Direction::of(0x83), Direction::Both);
}

#[test]
fn an_access_that_ends_with_the_namespace_is_within_and_a_block_more_is_not() {
    let access = Access { start: 92, blocks_minus_one: 7, flags: AccessFlags::empty() };
    assert!(access.is_within(100) && !access.is_within(99));
    assert!(!Access { start: u64::MAX, ..access }.is_within(u64::MAX), "no sum overflows");
}

#[test]
fn what_connect_answers_comes_back() {
    let reply = ConnectReply { controller: 0x0102, authentication: 2 };
    assert_eq!(reply.encode(), 0x0002_0102);
    assert_eq!(ConnectReply::decode(reply.encode()), reply);
    let refusal = ConnectRefusal { offset: 256, is_in_data: true };
    assert_eq!(refusal.encode(), 0x0001_0100);
    assert_eq!(ConnectRefusal::decode(refusal.encode()), refusal);
}
