use super::*;
use crate::{CodecError, Nqn, Status, Text};
use proptest::prelude::*;

/// Base 2.0, Figures 219 and 220, worked out by hand.
#[test]
fn groups_of_asymmetric_access_follow_a_head_of_16_bytes() {
    let group = |group, state, namespaces| AnaGroup { group, changes: 2, state, namespaces };
    let log = AnaLog {
        changes: 3,
        groups: vec![group(1, AnaState::Optimized, vec![4, 5]), group(2, AnaState::Inaccessible, vec![])],
    };
    let bytes = log.encode();
    assert_eq!(bytes.len(), 16 + 32 + 8 + 32);
    assert_eq!((bytes[0], bytes[8], bytes[16], bytes[20], bytes[24], bytes[32]), (3, 2, 1, 2, 2, 1));
    assert_eq!((bytes[48], bytes[52], bytes[56], bytes[72]), (4, 5, 2, 3));
    assert_eq!(AnaLog::decode(&bytes), Ok(log));
}

#[test]
fn a_group_that_counts_more_namespaces_than_there_are_is_refused_before_memory_is_taken() {
    let mut bytes = AnaLog {
        changes: 0,
        groups: vec![AnaGroup { group: 1, changes: 0, state: AnaState::Change, namespaces: vec![1] }],
    }
    .encode();
    bytes[20..24].fill(0xff);
    let needed = 0xffff_ffff * 4;
    assert_eq!(AnaLog::decode(&bytes), Err(CodecError::Short { part: "ANA group", got: 4, needed }));
}

/// Base 2.0, Figures 262 and 263.
#[test]
fn the_discovery_log_has_head_and_entries_of_1024_bytes() {
    let head = DiscoveryHead { generation: 0x0102, entries: 1, format: 0 };
    assert_eq!((head.encode()[0], head.encode()[1], head.encode()[8]), (2, 1, 1));
    let entry = DiscoveryEntry {
        transport: TransportKind::Tcp,
        family: AddressFamily::Ipv4,
        kind: SubsystemKind::Nvm,
        requirements: 4,
        port: 1,
        controller: 0xffff,
        admin_queue_size: 32,
        flags: 0,
        service: Text::new("4420").unwrap(),
        subsystem: Nqn::new("nqn.2014-08.org.rackweave:a").unwrap(),
        address: Text::new("127.0.0.1").unwrap(),
        specific: 2,
    };
    let bytes = entry.encode();
    assert_eq!(bytes[..10], [3, 1, 2, 4, 1, 0, 0xff, 0xff, 32, 0]);
    assert!(bytes[32..].starts_with(b"4420 ") && bytes[512..].starts_with(b"127.0.0.1 "));
    assert!(bytes[256..].starts_with(b"nqn.2014-08.org.rackweave:a\0"));
    assert_eq!(DiscoveryEntry::decode(&bytes), Ok(entry));
    assert_eq!(entry.tcp_security(), Some(TransportSecurity::Tls13));
    assert_eq!(DiscoveryEntry { transport: TransportKind::Rdma, ..entry }.tcp_security(), None);
    assert_eq!(DiscoveryHead::decode(&head.encode()), Ok(head));
}

/// Base 2.0, Figures 205, 207 and 208.
#[test]
fn fixed_logs_have_their_fields_in_place() {
    let mut health = Health::decode(&[0; 512]).unwrap();
    (health.temperature_kelvin, health.spare_percent, health.reads) = (0x0131, 100, 5);
    health.sensors_kelvin[1] = 6;
    let bytes = health.encode();
    assert_eq!((bytes[1], bytes[2], bytes[3], bytes[64], bytes[202]), (0x31, 1, 100, 5, 6));
    assert_eq!(Health::decode(&bytes), Ok(health));
    let firmware = FirmwareSlots { active: 1, slot_1: Text::new("0.1.0").unwrap() };
    assert_eq!(firmware.encode()[8..16], *b"0.1.0   ");
    let mut error = ErrorEntry::decode(&[0; 64]).unwrap();
    (error.count, error.status_bits, error.namespace, error.transport) = (9, 0x80 << 1, 7, 3);
    let bytes = error.encode();
    assert_eq!((bytes[0], bytes[12], bytes[13], bytes[24], bytes[29]), (9, 0, 1, 7, 3));
    assert_eq!(error.status(), Status::LBA_OUT_OF_RANGE);
    let notice = ReservationNotice { count: 1, kind: 2, waiting: 3, namespace: 4 };
    assert_eq!(notice.encode()[..13], [1, 0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 4]);
    assert_eq!(ReservationNotice::decode(&notice.encode()), Ok(notice));
}

/// Base 2.0, Figure 210: admin opcodes first, I/O opcodes from byte 1,024 on.
#[test]
fn effects_stand_by_opcode() {
    let mut effects = CommandEffects { admin: [CommandEffect::empty(); 256], io: [CommandEffect::empty(); 256] };
    effects.admin[0x06] = CommandEffect::SUPPORTED;
    effects.io[0x01] = CommandEffect::SUPPORTED | CommandEffect::BLOCKS;
    let bytes = effects.encode();
    assert_eq!((bytes[24], bytes[1028]), (1, 3));
    assert_eq!(CommandEffects::decode(&bytes), Ok(effects));
}

#[test]
fn more_than_1024_changed_namespaces_are_told_as_too_many() {
    let full = ChangedNamespaces((1..=1024).collect());
    assert_eq!(ChangedNamespaces::decode(&full.encode()), Ok(full));
    let over = ChangedNamespaces((1..=1025).collect());
    assert_eq!(ChangedNamespaces::decode(&over.encode()), Ok(ChangedNamespaces(vec![u32::MAX])));
}

#[test]
fn a_window_never_leaves_its_log() {
    assert_eq!(window(100, 0, 100), Some(0..100));
    assert_eq!(window(100, 90, 20), Some(90..100));
    assert_eq!(window(100, 100, 4), Some(100..100));
    assert_eq!(window(100, 101, 4), None);
    assert_eq!(window(100, u64::MAX, u64::MAX), None);
    assert_eq!(window(100, 1, u64::MAX), Some(1..100));
}

proptest! {
    #[test]
    fn random_logs_never_panic_and_what_is_read_is_read_again(bytes in prop::collection::vec(any::<u8>(), 1024)) {
        if let Ok(log) = AnaLog::decode(&bytes) {
            prop_assert_eq!(AnaLog::decode(&log.encode()), Ok(log));
        }
        if let Ok(entry) = DiscoveryEntry::decode(&bytes) {
            prop_assert_eq!(DiscoveryEntry::decode(&entry.encode()), Ok(entry));
        }
        let health = Health::decode(&bytes).unwrap();
        prop_assert_eq!(Health::decode(&health.encode()), Ok(health));
        let error = ErrorEntry::decode(&bytes).unwrap();
        prop_assert_eq!(ErrorEntry::decode(&error.encode()), Ok(error));
        let _ = crate::reservation::ExtendedReport::decode(&bytes);
        let _ = FirmwareSlots::decode(&bytes);
    }
}
