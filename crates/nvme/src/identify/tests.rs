use super::*;
use crate::layout::Field;
use crate::{CodecError, Nqn};
use proptest::prelude::*;

/// A blank that is made different byte by byte: enough to place every field.
fn blank_controller() -> IdentifyController {
    let mut bytes = [0; 4096];
    bytes[4..72].fill(b' ');
    IdentifyController::decode(&bytes).unwrap()
}

/// Base 2.0, Figure 275: where a host of Linux 6.1 looks.
#[test]
fn the_controller_has_its_fields_where_hosts_look() {
    let controller = IdentifyController {
        serial: crate::Text::new("RW0001").unwrap(),
        transfer_max: 8,
        controller: 0x0102,
        version: crate::property::Version { major: 2, minor: 0, tertiary: 0 },
        kind: ControllerKind::Io,
        keep_alive_100_ms: 100,
        sqe_sizes: 0x66,
        cqe_sizes: 0x44,
        commands_max: 128,
        namespaces: 32,
        commands: NvmCommands::from_bits_retain(0x12d),
        sgls: SglSupport::from_bits_retain(0x10_0005),
        subsystem: Some(Nqn::new("nqn.2014-08.org.rackweave:a").unwrap()),
        command_capsule_16: 260,
        response_capsule_16: 1,
        sgl_blocks_max: 1,
        ana: AnaCapabilities::OPTIMIZED,
        power_10_mw: 2500,
        ..blank_controller()
    };
    let bytes = controller.encode();
    assert_eq!(bytes[4..11], *b"RW0001 ");
    assert_eq!((bytes[77], bytes[78], bytes[79], bytes[82], bytes[111]), (8, 2, 1, 2, 1));
    assert_eq!((bytes[320], bytes[343], bytes[512], bytes[513], bytes[514], bytes[516]), (100, 1, 0x66, 0x44, 128, 32));
    assert_eq!((bytes[520], bytes[521], bytes[536], bytes[538]), (0x2d, 1, 5, 0x10));
    assert!(bytes[768..].starts_with(b"nqn.2014-08.org.rackweave:a\0"));
    assert_eq!((bytes[1792], bytes[1793], bytes[1796], bytes[1803], bytes[2048]), (4, 1, 1, 1, 0xc4));
    assert_eq!(IdentifyController::decode(&bytes), Ok(controller));
    assert_eq!(controller.in_capsule_bytes(), 4096);
}

#[test]
fn a_capsule_smaller_than_an_entry_has_no_room_for_data() {
    for (units, room) in [(0, 0), (3, 0), (4, 0), (5, 16)] {
        let controller = IdentifyController { command_capsule_16: units, ..blank_controller() };
        assert_eq!(controller.in_capsule_bytes(), room);
    }
}

#[test]
fn a_controller_of_no_known_kind_is_refused() {
    let mut bytes = blank_controller().encode();
    bytes[111] = 4;
    assert!(matches!(IdentifyController::decode(&bytes), Err(CodecError::Field { field: "kind", got: 4, .. })));
    assert!(matches!(IdentifyController::decode(&bytes[..4095]), Err(CodecError::Short { got: 4095, .. })));
}

fn namespace() -> IdentifyNamespace {
    let mut namespace = IdentifyNamespace::decode(&[0; 4096]).unwrap();
    (namespace.size, namespace.capacity) = (0x0102, 0x0304);
    (namespace.ana_group, namespace.nguid[0]) = (5, 6);
    namespace.formats[0] = LbaFormat { metadata_bytes: 0, block_shift: 12, performance: 1 };
    namespace
}

/// NVM Command Set 1.0, Figures 97 and 98.
#[test]
fn the_namespace_has_its_fields_where_hosts_look() {
    let namespace = IdentifyNamespace { copy_range_blocks_max: 7, copy_ranges_minus_one: 8, ..namespace() };
    let bytes = namespace.encode();
    assert_eq!((bytes[0], bytes[1], bytes[8], bytes[9]), (2, 1, 4, 3));
    assert_eq!((bytes[74], bytes[80], bytes[92], bytes[104]), (7, 8, 5, 6));
    assert_eq!(bytes[128..132], [0, 0, 12, 1]);
    assert_eq!(IdentifyNamespace::decode(&bytes), Ok(namespace));
}

#[test]
fn the_format_in_use_has_to_be_there() {
    assert_eq!(namespace().format_in_use().unwrap().block_shift, 12);
    assert!(IdentifyNamespace { format: 1, ..namespace() }.format_in_use().is_err(), "beyond the list");
    assert!(IdentifyNamespace { format: 1, formats_minus_one: 1, ..namespace() }.format_in_use().is_err(), "no size");
    let mut large = IdentifyNamespace { format: 0x20, formats_minus_one: 16, ..namespace() };
    large.formats[16].block_shift = 9;
    assert_eq!(large.format_in_use().unwrap().block_shift, 9, "bits 6:5 stand above 3:0");
}

#[test]
fn blocks_of_256_bytes_or_4_gib_are_refused_where_they_are_in_use() {
    for (shift, is_good) in [(0, false), (8, false), (9, true), (31, true), (32, false)] {
        let mut found = namespace();
        found.formats[0] = LbaFormat::get(&[0, 0, shift, 0], "format").unwrap();
        assert_eq!(found.format_in_use().is_ok(), is_good, "{shift}");
    }
    // What lies behind the list may be anything.
    let mut odd = namespace();
    odd.formats[40].block_shift = 3;
    assert!(IdentifyNamespace::decode(&odd.encode()).is_ok_and(|read| read.format_in_use().is_ok()));
}

/// Base 2.0, Figure 277, worked out by hand.
#[test]
fn names_of_a_namespace_stand_one_behind_the_other() {
    let names = [NamespaceName::Uuid([7; 16]), NamespaceName::Eui64([8; 8]), NamespaceName::CommandSet(0)];
    let bytes = NamespaceDescriptors::encode(&names);
    assert_eq!(bytes[..5], [3, 16, 0, 0, 7]);
    assert_eq!(bytes[20..25], [1, 8, 0, 0, 8]);
    assert_eq!(bytes[32..38], [4, 1, 0, 0, 0, 0]);
    assert_eq!(NamespaceDescriptors::decode(&bytes), Ok(names.to_vec()));
}

#[test]
fn a_name_with_a_wrong_length_is_refused_and_an_unknown_one_passed_over() {
    let mut bytes = NamespaceDescriptors::encode(&[NamespaceName::Nguid([1; 16]), NamespaceName::Eui64([2; 8])]);
    bytes[0] = 9;
    assert_eq!(NamespaceDescriptors::decode(&bytes), Ok(vec![NamespaceName::Eui64([2; 8])]));
    for wrong in [0, 15, 17] {
        (bytes[0], bytes[1]) = (2, wrong);
        assert!(matches!(NamespaceDescriptors::decode(&bytes), Err(CodecError::Field { field: "NIDL", .. })));
    }
}

#[test]
fn a_page_holds_1024_namespaces_and_the_next_page_the_rest() {
    let page = ActiveNamespaces::page(1..=1030, 0);
    assert_eq!((page.0.len(), page.0[1023]), (1024, 1024));
    assert_eq!(ActiveNamespaces::decode(&page.encode()), Ok(page));
    let rest = ActiveNamespaces::page(1..=1030, 1024);
    assert_eq!(rest.0, (1025..=1030).collect::<Vec<u32>>());
    assert_eq!(rest.encode()[..5], [1, 4, 0, 0, 2]);
    assert_eq!(ActiveNamespaces::decode(&rest.encode()), Ok(rest));
}

#[test]
fn namespaces_that_do_not_rise_are_refused() {
    let bytes = ActiveNamespaces(vec![2, 2]).encode();
    assert!(matches!(ActiveNamespaces::decode(&bytes), Err(CodecError::Field { got: 2, .. })));
}

proptest! {
    #[test]
    fn random_pages_never_panic_and_what_is_read_is_read_again(seed in prop::collection::vec(any::<u8>(), 64), sparse in any::<bool>()) {
        let bytes: Vec<u8> = (0..4096).map(|at| if sparse && at % 7 > 0 { 0 } else { seed[at * 31 % 64] }).collect();
        let _ = NamespaceDescriptors::decode(&bytes);
        let _ = ActiveNamespaces::decode(&bytes);
        if let Ok(controller) = IdentifyController::decode(&bytes) {
            prop_assert_eq!(IdentifyController::decode(&controller.encode()), Ok(controller));
        }
        if let Ok(namespace) = IdentifyNamespace::decode(&bytes) {
            prop_assert_eq!(IdentifyNamespace::decode(&namespace.encode()), Ok(namespace));
            let _ = namespace.format_in_use();
        }
        let limits = NvmController::decode(&bytes).unwrap();
        prop_assert_eq!(NvmController::decode(&limits.encode()), Ok(limits));
        let summary = NamespaceSummary::decode(&bytes).unwrap();
        prop_assert_eq!(NamespaceSummary::decode(&summary.encode()), Ok(summary));
    }
}

/// NVM Command Set 1.0, 4.1.5.4; Base 2.0, Figure 280.
#[test]
fn small_structures_have_their_fields_in_place() {
    let mut limits = NvmController::decode(&[0; 4096]).unwrap();
    (limits.zeroes_max, limits.range_blocks_max, limits.blocks_max) = (1, 2, 3);
    assert_eq!(limits.encode()[..9], [0, 1, 0, 0, 2, 0, 0, 0, 3]);
    let mut summary = NamespaceSummary::decode(&[0; 4096]).unwrap();
    (summary.sharing, summary.ana_group, summary.state) = (1, 2, 1);
    assert_eq!(summary.encode()[..15], [0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}
