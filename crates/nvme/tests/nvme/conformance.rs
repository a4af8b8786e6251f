//! The target against our own initiator: what hosts do all day.

use crate::common::*;
use nvme::feature::{Event, FeatureId};
use nvme::identify::{ActiveNamespaces, ControllerKind, IdentifyController, IdentifyNamespace, NamespaceDescriptors};
use nvme::initiator::{HostEvent, InitiatorConfig, Payload};
use nvme::log::*;
use nvme::pdu::Digests;
use nvme::range::{CopyFormat, CopyRange, DatasetRange};
use nvme::target::*;
use nvme::vendor::{MultiCastTarget, VendorCommand};
use nvme::*;
use proptest::prelude::*;

fn access(start: u64, blocks: u16) -> Access {
    Access { start, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() }
}

fn write(start: u64, blocks: u16) -> Body {
    Body::Io(Io::Write(access(start, blocks)))
}

fn read(start: u64, blocks: u16) -> Body {
    Body::Io(Io::Read(access(start, blocks)))
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

fn identify(structure: u8) -> Body {
    Body::Admin(Admin::Identify(Identify { structure, controller: 0, specific_id: 0, command_set: 0 }))
}

fn log_page(log: u8, offset: u64, bytes: u32) -> Body {
    Body::Admin(Admin::GetLogPage(GetLogPage::part(log, offset, bytes / 4 - 1)))
}

fn set_feature(feature: FeatureId, value: u32) -> Body {
    let arguments = [value, 0, 0, 0, 0];
    Body::Admin(Admin::SetFeatures(SetFeatures { feature: feature.code(), save: false, arguments }))
}

fn connected() -> World {
    World::connected(config(), initiator(1))
}

#[test]
fn a_host_connects_as_linux_does_and_has_two_queues() {
    let world = connected();
    assert_eq!(world.guests[0].events, [HostEvent::Ready { io_queues: 2 }]);
    assert_eq!(world.target.gauges().connections, 3);
    assert_eq!(world.target.gauges().controllers, 1);
    let controller = world.guests[0].initiator.controller().unwrap();
    assert_eq!((controller.kind, controller.serial.as_str()), (ControllerKind::Io, "0001"));
    assert_eq!(world.guests[0].initiator.transfer_bytes_max(), 32 << 10);
}

#[test]
fn what_is_written_is_read_back_in_capsules_and_by_r2t() {
    let mut world = connected();
    for (queue, blocks) in [(1, 1), (2, 8), (1, 9), (2, 64)] {
        let data = pattern(usize::from(blocks) * BLOCK, blocks as u8);
        let (status, _, _) = world.run(0, queue, 1, write(10, blocks), Payload::ToController(data.clone()));
        assert_eq!(status, Status::SUCCESS);
        let (status, _, back) = world.run(0, queue, 1, read(10, blocks), Payload::ToHost(data.len() as u32));
        assert_eq!((status, back == data), (Status::SUCCESS, true));
    }
    assert_eq!(world.target.gauges().data_bytes, 0);
}

#[test]
fn blocks_beyond_the_namespace_and_unknown_namespaces_are_refused_for_good() {
    let mut world = connected();
    let (status, ..) = world.run(0, 1, 2, read(63, 1), Payload::ToHost(512));
    assert_eq!(status, Status::SUCCESS);
    let (status, ..) = world.run(0, 1, 2, read(63, 2), Payload::ToHost(1024));
    assert_eq!(status, Status::LBA_OUT_OF_RANGE.without_retry());
    let (status, ..) = world.run(0, 1, 2, read(u64::MAX, 1), Payload::ToHost(512));
    assert_eq!(status, Status::LBA_OUT_OF_RANGE.without_retry());
    for id in [0, 3, u32::MAX] {
        let (status, ..) = world.run(0, 1, id, read(0, 1), Payload::ToHost(512));
        assert_eq!(status, Status::INVALID_NAMESPACE.without_retry());
    }
}

#[test]
fn a_transfer_of_mdts_is_taken_and_one_block_more_is_not() {
    let mut world = World::connected(
        TargetConfig { limits: TargetLimits { transfer_shift: 1, ..limits() }, ..config() },
        initiator(1),
    );
    let (status, ..) = world.run(0, 1, 1, read(0, 16), Payload::ToHost(8192));
    assert_eq!(status, Status::SUCCESS);
    let refused = world.guests[0].initiator.submit(world.now, 1, 1, read(0, 17), Payload::ToHost(8704));
    assert!(refused.is_err(), "our own host knows the limit");
    // A host that does not care: the descriptor says what the command says, and both are too long.
    let command = Command { namespace: 1, ..Command::new(0, read(0, 17)) };
    let ticket = world.guests[0].initiator.submit_as(world.now, 1, command, Payload::ToHost(8192)).unwrap();
    world.settle();
    assert_eq!(world.ended(0, ticket).unwrap().0, Status::INVALID_FIELD.without_retry());
}

#[test]
fn flush_reaches_the_backend_of_one_or_of_all_namespaces() {
    let mut world = connected();
    assert_eq!(world.run(0, 1, 1, Body::Io(Io::Flush), Payload::None).0, Status::SUCCESS);
    assert_eq!(world.disks.flushes, 1);
    assert_eq!(world.run(0, 1, u32::MAX, Body::Io(Io::Flush), Payload::None).0, Status::SUCCESS);
    assert_eq!(world.disks.flushes, 3);
}

#[test]
fn compare_write_zeroes_verify_and_deallocation_do_what_they_say() {
    let mut world = connected();
    let data = pattern(2 * BLOCK, 3);
    world.run(0, 1, 1, write(4, 2), Payload::ToController(data.clone()));
    let compare = Body::Io(Io::Compare(access(4, 2)));
    assert_eq!(world.run(0, 1, 1, compare, Payload::ToController(data.clone())).0, Status::SUCCESS);
    let other = pattern(2 * BLOCK, 4);
    let miscompare = Status::COMPARE_FAILURE.without_retry();
    assert_eq!(world.run(0, 1, 1, compare, Payload::ToController(other)).0, miscompare);
    assert_eq!(world.run(0, 1, 1, Body::Io(Io::Verify(access(4, 2))), Payload::None).0, Status::SUCCESS);
    assert_eq!(world.run(0, 1, 1, Body::Io(Io::WriteZeroes(access(4, 1))), Payload::None).0, Status::SUCCESS);
    let back = world.run(0, 1, 1, read(4, 2), Payload::ToHost(1024)).2;
    assert_eq!((&back[..512], &back[512..]), (&[0; 512][..], &data[512..]));
    let range = DatasetRange { context: 0.into(), blocks: 1.into(), start: 5.into() };
    let none = DatasetRange { context: 0.into(), blocks: 0.into(), start: 9.into() };
    let ranges = [range, none].iter().flat_map(|range| zerocopy::IntoBytes::as_bytes(range).to_vec()).collect();
    let manage = DatasetManagement { ranges_minus_one: 1, intent: DatasetUse::DEALLOCATE };
    let body = Body::Io(Io::DatasetManagement(manage));
    assert_eq!(world.run(0, 1, 1, body, Payload::ToController(ranges)).0, Status::SUCCESS);
    assert_eq!(world.run(0, 1, 1, read(5, 1), Payload::ToHost(512)).2, [0; 512]);
}

#[test]
fn deallocation_of_no_blocks_at_all_succeeds_without_a_backend() {
    let mut world = connected();
    let manage = DatasetManagement { ranges_minus_one: 0, intent: DatasetUse::DEALLOCATE };
    let body = Body::Io(Io::DatasetManagement(manage));
    assert_eq!(world.run(0, 1, 1, body, Payload::ToController(vec![0; 16])).0, Status::SUCCESS);
    assert!(world.disks.log.is_empty());
}

fn copy_ranges(format: CopyFormat, ranges: &[(u32, u64, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (namespace, start, blocks) in ranges {
        CopyRange { namespace: Some(*namespace), start: *start, blocks_minus_one: blocks - 1 }
            .write(format, &mut bytes);
    }
    bytes
}

fn copy(start: u64, ranges: u8, format: CopyFormat) -> Body {
    let flags = AccessFlags::empty();
    Body::Io(Io::Copy(Copy { start, ranges_minus_one: ranges - 1, format, flags }))
}

#[test]
fn copy_of_all_formats_joins_its_ranges_and_others_namespaces_only_when_the_host_said_it_knows() {
    let mut world = connected();
    let data = pattern(4 * BLOCK, 9);
    world.run(0, 1, 1, write(0, 4), Payload::ToController(data.clone()));
    for format in [CopyFormat::Short, CopyFormat::Long] {
        let ranges = copy_ranges(format, &[(0, 2, 2), (0, 0, 1)]);
        assert_eq!(world.run(0, 1, 1, copy(20, 2, format), Payload::ToController(ranges)).0, Status::SUCCESS);
        let back = world.run(0, 1, 1, read(20, 3), Payload::ToHost(3 * 512)).2;
        assert_eq!((&back[..1024], &back[1024..]), (&data[1024..], &data[..512]));
    }
    let across = CopyFormat::ShortAcross;
    let ranges = copy_ranges(across, &[(1, 1, 1)]);
    let refused = world.run(0, 1, 2, copy(7, 1, across), Payload::ToController(ranges.clone())).0;
    assert_eq!(refused, Status::INVALID_FIELD.without_retry());
    let mut behavior = vec![0; 512];
    behavior[4] = 0b1100;
    let enabled = world.run(0, 0, 0, set_feature(FeatureId::HostBehavior, 0), Payload::ToController(behavior));
    assert_eq!(enabled.0, Status::SUCCESS);
    for format in [CopyFormat::ShortAcross, CopyFormat::LongAcross] {
        let ranges = copy_ranges(format, &[(1, 1, 1)]);
        assert_eq!(world.run(0, 1, 2, copy(7, 1, format), Payload::ToController(ranges)).0, Status::SUCCESS);
        assert_eq!(world.run(0, 1, 2, read(7, 1), Payload::ToHost(512)).2, data[512..1024]);
    }
}

#[test]
fn a_copy_that_leaves_its_source_or_target_is_refused() {
    let mut world = connected();
    let out = Status::LBA_OUT_OF_RANGE.without_retry();
    let beyond = copy_ranges(CopyFormat::Short, &[(0, 63, 2)]);
    assert_eq!(world.run(0, 1, 2, copy(0, 1, CopyFormat::Short), Payload::ToController(beyond)).0, out);
    let good = copy_ranges(CopyFormat::Short, &[(0, 0, 2)]);
    assert_eq!(world.run(0, 1, 2, copy(63, 1, CopyFormat::Short), Payload::ToController(good)).0, out);
    let long = copy_ranges(CopyFormat::Short, &[(0, 0, 65)]);
    let size = Status::SIZE_LIMIT.without_retry();
    assert_eq!(world.run(0, 1, 1, copy(0, 1, CopyFormat::Short), Payload::ToController(long)).0, size);
}

fn fused(world: &mut World, expected: Vec<u8>, data: Vec<u8>, write_start: u64) -> (Status, Status) {
    let blocks = (data.len() / BLOCK) as u16;
    let first =
        Command { fuse: Fuse::First, namespace: 1, ..Command::new(0, Body::Io(Io::Compare(access(30, blocks)))) };
    let second = Command { fuse: Fuse::Second, namespace: 1, ..Command::new(0, write(write_start, blocks)) };
    let now = world.now;
    let host = &mut world.guests[0].initiator;
    let first = host.submit_as(now, 1, first, Payload::ToController(expected)).unwrap();
    let second = host.submit_as(now, 1, second, Payload::ToController(data)).unwrap();
    world.settle();
    (world.ended(0, first).unwrap().0, world.ended(0, second).unwrap().0)
}

#[test]
fn a_fused_compare_and_write_writes_when_equal_and_fails_as_one_when_not() {
    for blocks in [1, 16] {
        let mut world = connected();
        let (zeros, data) = (vec![0; blocks * BLOCK], pattern(blocks * BLOCK, 1));
        assert_eq!(fused(&mut world, zeros.clone(), data.clone(), 30), (Status::SUCCESS, Status::SUCCESS));
        let failed = (Status::COMPARE_FAILURE.without_retry(), Status::FAILED_FUSED.without_retry());
        assert_eq!(fused(&mut world, zeros, pattern(blocks * BLOCK, 2), 30), failed);
        let back = world.run(0, 1, 1, read(30, blocks as u16), Payload::ToHost((blocks * BLOCK) as u32)).2;
        assert_eq!(back, data);
        assert_eq!(world.disks.log, ["compare and write", "compare and write", "read"]);
    }
}

#[test]
fn halves_that_do_not_fit_and_halves_alone_fail_without_a_backend() {
    let mut world = connected();
    let (first, second) = fused(&mut world, vec![0; 512], vec![0; 512], 31);
    assert_eq!((first, second), (Status::FAILED_FUSED.without_retry(), Status::INVALID_FIELD.without_retry()));
    let alone = Command { fuse: Fuse::Second, namespace: 1, ..Command::new(0, write(0, 1)) };
    let ticket = world.guests[0].initiator.submit_as(world.now, 1, alone, Payload::ToController(vec![0; 512])).unwrap();
    world.settle();
    let missing = Status::MISSING_FUSED.without_retry();
    assert_eq!(world.ended(0, ticket).unwrap().0, missing);
    let half = Command { fuse: Fuse::First, namespace: 1, ..Command::new(0, Body::Io(Io::Compare(access(0, 1)))) };
    let ticket = world.guests[0].initiator.submit_as(world.now, 1, half, Payload::ToController(vec![0; 512])).unwrap();
    world.settle();
    assert_eq!(world.ended(0, ticket), None);
    assert_eq!(world.run(0, 1, 1, Body::Io(Io::Verify(access(0, 1))), Payload::None).0, Status::SUCCESS);
    assert_eq!(world.ended(0, ticket).unwrap().0, missing);
    assert_eq!(world.disks.log, ["verify"]);
}

#[test]
fn identify_tells_namespaces_and_their_names() {
    let mut world = connected();
    let list = world.run(0, 0, 0, identify(2), Payload::ToHost(4096)).2;
    assert_eq!(ActiveNamespaces::decode(&list).unwrap().0, [1, 2]);
    let page = world.run(0, 0, 2, identify(0), Payload::ToHost(4096)).2;
    let known = IdentifyNamespace::decode(&page).unwrap();
    assert_eq!((known.size, known.format_in_use().unwrap().block_shift), (64, 9));
    let page = world.run(0, 0, 5, identify(0), Payload::ToHost(4096)).2;
    assert_eq!(IdentifyNamespace::decode(&page).unwrap().size, 0);
    let names = world.run(0, 0, 1, identify(3), Payload::ToHost(4096)).2;
    assert_eq!(NamespaceDescriptors::decode(&names).unwrap().len(), 2);
    let controllers = world.run(0, 0, 0, identify(0x13), Payload::ToHost(4096)).2;
    assert_eq!(controllers[..4], [1, 0, 1, 0]);
    for structure in [5, 6, 7, 8, 0x10, 0x11, 0x12, 0x1c] {
        assert_eq!(world.run(0, 0, 1, identify(structure), Payload::ToHost(4096)).0, Status::SUCCESS, "{structure}");
    }
    let refused = world.run(0, 0, 1, identify(0xc0), Payload::ToHost(4096)).0;
    assert_eq!(refused, Status::INVALID_FIELD.without_retry());
}

#[test]
fn logs_are_read_in_windows_and_never_beyond_their_end() {
    let mut world = connected();
    world.run(0, 1, 9, read(0, 1), Payload::ToHost(512));
    let errors = world.run(0, 0, 0, log_page(1, 0, 64), Payload::ToHost(64)).2;
    let entry = ErrorEntry::decode(&errors).unwrap();
    assert_eq!((entry.count, entry.status(), entry.namespace), (1, Status::INVALID_NAMESPACE.without_retry(), 9));
    for (log, bytes) in [(0, 1024), (2, 512), (3, 512), (4, 4096), (5, 4096), (0x0c, 48), (0x80, 64)] {
        let (status, _, page) = world.run(0, 0, 0, log_page(log, 0, bytes), Payload::ToHost(bytes));
        assert_eq!((status, page.len()), (Status::SUCCESS, bytes as usize), "log {log:#x}");
    }
    let invalid = Status::INVALID_FIELD.without_retry();
    assert_eq!(world.run(0, 0, 0, log_page(2, 516, 4), Payload::ToHost(4)).0, invalid);
    assert_eq!(world.run(0, 0, 0, log_page(2, u64::MAX - 3, 4096), Payload::ToHost(4096)).0, invalid);
    let unknown = Status::INVALID_LOG_PAGE.without_retry();
    assert_eq!(world.run(0, 0, 0, log_page(0x70, 0, 1024), Payload::ToHost(1024)).0, unknown);
}

#[test]
fn the_discovery_log_names_what_the_host_may_use() {
    let mut all = config();
    all.subsystems[0].hosts = HostAccess::Listed([host(1)].into());
    let mut world = World::new(all);
    for (number, expected) in [(1, 3), (2, 1)] {
        let config = InitiatorConfig { subsystem: Nqn::discovery(), io_queues: 0, ..initiator(number) };
        let guest = world.join(config, PORT);
        assert!(world.is_ready(guest));
        let head = world.run(guest, 0, 0, log_page(0x70, 0, 1024), Payload::ToHost(1024)).2;
        assert_eq!(DiscoveryHead::decode(&head).unwrap().entries, expected);
        let first = world.run(guest, 0, 0, log_page(0x70, 1024, 1024), Payload::ToHost(1024)).2;
        let entry = DiscoveryEntry::decode(&first).unwrap();
        let wraps = world.run(guest, 0, 0, log_page(0x70, u64::MAX - 3, 4096), Payload::ToHost(4096)).0;
        assert_eq!(wraps, Status::INVALID_FIELD.without_retry());
        assert_eq!(entry.subsystem, if number == 1 { subsystem() } else { Nqn::discovery() });
    }
    let page = world.run(0, 0, 0, identify(1), Payload::ToHost(4096)).2;
    assert_eq!(IdentifyController::decode(&page).unwrap().kind, ControllerKind::Discovery);
}

#[test]
fn a_host_that_is_not_listed_is_refused_by_name() {
    let mut all = config();
    all.subsystems[0].hosts = HostAccess::Listed([host(1)].into());
    let mut world = World::new(all);
    let guest = world.join(initiator(2), PORT);
    let HostEvent::Failed(error) = world.guests[guest].events[0] else { panic!("the host was let in") };
    assert_eq!(error.to_string(), "Connect was refused: connect invalid host (01/84h, do not retry)");
    let told: Vec<String> =
        std::iter::from_fn(|| world.target.next_notice()).map(|notice| notice.to_string()).collect();
    assert!(told[0].contains("host2 may not use nqn.2014-08.org.rackweave:disk"), "{told:?}");
}

#[test]
fn a_host_that_is_taken_off_the_list_is_out_at_once_and_discovery_tells() {
    let mut world = connected();
    let other = world.join(initiator(2), PORT);
    let finder = InitiatorConfig { subsystem: Nqn::discovery(), io_queues: 0, ..initiator(3) };
    let finder = world.join(finder, PORT);
    let now = world.now;
    let mut fewer = config();
    fewer.subsystems[0].hosts = HostAccess::Listed([host(2), host(3)].into());
    let changes = world.target.reconfigure(now, fewer).unwrap();
    assert_eq!(changes, [Change::Access { subsystem: subsystem(), what: "hosts" }]);
    world.settle();
    assert!(matches!(world.guests[0].events.last(), Some(HostEvent::Failed(_))));
    assert_eq!(world.run(other, 1, 1, read(0, 1), Payload::ToHost(512)).0, Status::SUCCESS);
    assert!(world.guests[finder].events.contains(&HostEvent::Notice(Event::DISCOVERY_CHANGED)));
    let head = world.run(finder, 0, 0, log_page(0x70, 0, 1024), Payload::ToHost(1024)).2;
    assert_eq!(DiscoveryHead::decode(&head).unwrap().generation, 2);
}

#[test]
fn namespaces_that_come_go_and_grow_are_told_and_their_log_says_which() {
    let mut world = connected();
    let now = world.now;
    world.target.add_namespace(now, subsystem(), namespace(3, 8)).unwrap();
    world.target.resize_namespace(now, subsystem(), 1, 2048).unwrap();
    world.settle();
    assert!(world.guests[0].events.contains(&HostEvent::Notice(Event::NAMESPACE_CHANGED)));
    let changed = world.run(0, 0, 0, log_page(4, 0, 4096), Payload::ToHost(4096)).2;
    assert_eq!(ChangedNamespaces::decode(&changed).unwrap().0, [1, 3]);
    assert_eq!(world.run(0, 1, 1, read(2047, 1), Payload::ToHost(512)).0, Status::SUCCESS);
    world.guests[0].events.clear();
    assert_eq!(world.target.remove_namespace(now, subsystem(), 3), Ok(BackendId(3)));
    world.settle();
    assert_eq!(world.guests[0].events, [HostEvent::Notice(Event::NAMESPACE_CHANGED)]);
}

#[test]
fn a_namespace_removed_under_io_lets_its_backend_end_and_fails_what_comes_later() {
    let mut world = connected();
    world.answers = false;
    let begun = world.submit(0, 1, 1, read(0, 1), Payload::ToHost(512));
    world.settle();
    let now = world.now;
    world.target.remove_namespace(now, subsystem(), 1).unwrap();
    let late = world.submit(0, 1, 1, read(0, 1), Payload::ToHost(512));
    world.settle();
    assert_eq!(world.ended(0, late).unwrap().0, Status::INVALID_NAMESPACE.without_retry());
    world.answer_held();
    assert_eq!(world.ended(0, begun).unwrap().0, Status::SUCCESS);
}

#[test]
fn a_path_that_becomes_inaccessible_is_told_to_the_hosts_of_its_port_alone() {
    let mut world = connected();
    let other = world.join(initiator(2), OTHER_PORT);
    let now = world.now;
    let lost = PathState { port: PORT, group: 1, state: AnaState::Inaccessible };
    world.target.set_path(now, subsystem(), lost).unwrap();
    world.settle();
    assert!(world.guests[0].events.contains(&HostEvent::Notice(Event::ASYMMETRIC_ACCESS_CHANGED)));
    assert!(!world.guests[other].events.contains(&HostEvent::Notice(Event::ASYMMETRIC_ACCESS_CHANGED)));
    assert_eq!(world.run(0, 1, 1, read(0, 1), Payload::ToHost(512)).0, Status::ANA_INACCESSIBLE);
    assert_eq!(world.run(other, 1, 1, read(0, 1), Payload::ToHost(512)).0, Status::SUCCESS);
    let log = world.run(0, 0, 0, log_page(0x0c, 0, 56), Payload::ToHost(56)).2;
    let log = AnaLog::decode(&log).unwrap();
    assert_eq!(
        (log.changes, log.groups[0].state, &log.groups[0].namespaces[..]),
        (1, AnaState::Inaccessible, &[1, 2][..])
    );
}

#[test]
fn a_shutdown_flushes_before_it_is_complete() {
    let mut world = connected();
    world.answers = false;
    let now = world.now;
    world.guests[0].initiator.shut_down(now);
    world.settle();
    world.pass(base::Span::ms(10));
    assert!(!world.guests[0].events.contains(&HostEvent::ShutDown));
    world.answer_held();
    world.pass(base::Span::ms(10));
    assert!(world.guests[0].events.contains(&HostEvent::ShutDown));
    assert_eq!(world.disks.flushes, 2);
    assert_eq!(world.target.gauges(), Gauges { pool_bytes: world.target.gauges().pool_bytes, ..Gauges::default() });
}

/// What the medium fails is counted in the health log, and stands in the error log with its block.
#[test]
fn a_failing_medium_shows_in_the_health_and_error_logs() {
    let mut world = connected();
    world.answers = false;
    for (body, status) in [(read(5, 1), IoStatus::ReadError), (read(9, 1), IoStatus::Busy)] {
        world.submit(0, 1, 1, body, Payload::ToHost(512));
        world.settle();
        let request = world.held.pop().expect("the backend is asked");
        world.target.complete(world.now, request.tag, IoResult::bare(status));
        world.settle();
    }
    let health = world.run(0, 0, u32::MAX, log_page(2, 0, 512), Payload::ToHost(512)).2;
    let health = Health::decode(&health).unwrap();
    assert_eq!((health.media_errors, health.error_entries), (1, 2));
    let errors = world.run(0, 0, u32::MAX, log_page(1, 0, 128), Payload::ToHost(128)).2;
    let errors: Vec<ErrorEntry> = errors.chunks(64).map(|entry| ErrorEntry::decode(entry).unwrap()).collect();
    let status = Status::UNRECOVERED_READ.without_retry().bits() << 1;
    assert_eq!((errors[1].count, errors[1].block, errors[1].status_bits), (1, 5, status));
    assert_eq!((errors[0].count, errors[0].block), (2, 9));
}

#[test]
fn a_keep_alive_that_stays_away_ends_the_association_while_reads_are_stalled() {
    let mut world = connected();
    world.answers = false;
    world.submit(0, 1, 1, read(0, 1), Payload::ToHost(512));
    world.settle();
    world.now += base::Span::ms(9_999);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.gauges().controllers, 1);
    world.now += base::Span::ms(1);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.gauges().controllers, 0);
    world.answer_held();
    assert_eq!((world.target.gauges().connections, world.target.gauges().commands), (0, 0));
    assert_eq!(world.target.counters().unknown_results, 0);
}

#[test]
fn a_host_that_keeps_its_controller_alive_keeps_it() {
    let mut world = connected();
    for _ in 0..10 {
        world.pass(base::Span::secs(5));
    }
    assert_eq!(world.target.gauges().controllers, 1);
    assert_eq!(world.run(0, 1, 1, read(0, 1), Payload::ToHost(512)).0, Status::SUCCESS);
}

#[test]
fn a_queue_deeper_than_ours_is_clamped_and_not_refused() {
    let small = TargetConfig { limits: TargetLimits { queue_entries_max: 4, ..limits() }, ..config() };
    let mut world = World::connected(small, InitiatorConfig { io_entries: 128, ..initiator(1) });
    assert!(world.is_ready(0));
    assert_eq!(world.guests[0].initiator.room(1), 3);
    world.answers = false;
    let tickets: Vec<_> = (0..3).map(|_| world.submit(0, 1, 1, read(0, 1), Payload::ToHost(512))).collect();
    world.settle();
    world.answer_held();
    assert!(tickets.into_iter().all(|ticket| world.ended(0, ticket).unwrap().0.is_success()));
}

#[test]
fn features_are_set_and_read_back() {
    let mut world = connected();
    let get = |feature: FeatureId, argument| {
        Body::Admin(Admin::GetFeatures { feature: feature.code(), select: FeatureSelect::Current, argument })
    };
    assert_eq!(world.run(0, 0, 0, set_feature(FeatureId::NumberOfQueues, 0x0063_0063), Payload::None).1, 0x0001_0001);
    assert_eq!(world.run(0, 0, 0, get(FeatureId::HostId, 1), Payload::ToHost(16)).2, [1; 16]);
    assert_eq!(world.run(0, 0, 0, set_feature(FeatureId::KeepAlive, 4321), Payload::None).0, Status::SUCCESS);
    assert_eq!(world.run(0, 0, 0, get(FeatureId::KeepAlive, 0), Payload::None).1, 4400);
    let clock = Payload::ToController(vec![1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(world.run(0, 0, 0, set_feature(FeatureId::Timestamp, 0), clock).0, Status::SUCCESS);
    world.now += base::Span::ms(5);
    let clock = world.run(0, 0, 0, get(FeatureId::Timestamp, 0), Payload::ToHost(8)).2;
    assert_eq!(clock, [6, 2, 0, 0, 0, 0, 2, 0]);
    let fixed = world.run(0, 0, 0, set_feature(FeatureId::VolatileWriteCache, 0), Payload::None).0;
    assert_eq!(fixed, Status::FEATURE_NOT_CHANGEABLE.without_retry());
}

#[test]
fn a_read_that_is_forced_to_the_medium_is_answered_after_a_flush_where_there_is_a_cache() {
    let mut config = config();
    config.subsystems[0].namespaces[1].has_volatile_cache = false;
    let mut world = World::connected(config, initiator(1));
    let forced = Access { start: 0, blocks_minus_one: 0, flags: AccessFlags::FORCE_UNIT_ACCESS };
    for (namespace, log) in [(1, vec!["read", "flush"]), (2, vec!["read"])] {
        world.disks.log.clear();
        let (status, _, data) = world.run(0, 1, namespace, Body::Io(Io::Read(forced)), Payload::ToHost(512));
        assert_eq!((status, data), (Status::SUCCESS, vec![0; 512]));
        assert_eq!(world.disks.log, log);
    }
}

fn sdirect(command: VendorCommand) -> Body {
    Body::Io(Io::Vendor(command.encode()))
}

fn cast(start: u64, blocks: u16, targets: &[(u32, u64)]) -> (Body, Payload) {
    let (blocks_minus_one, targets_minus_one) = (blocks - 1, (targets.len() - 1) as u8);
    let list = targets.iter().map(|(namespace, start)| MultiCastTarget {
        namespace: (*namespace).into(),
        start: (*start).into(),
        ..MultiCastTarget::default()
    });
    let data = list.flat_map(|target| zerocopy::IntoBytes::as_bytes(&target).to_vec()).collect();
    (sdirect(VendorCommand::MultiCast { start, blocks_minus_one, targets_minus_one }), Payload::ToController(data))
}

#[test]
fn a_multicast_reaches_all_of_its_targets_and_none_that_is_outside_or_not_there() {
    let mut world = connected();
    let data = pattern(2 * BLOCK, 5);
    world.run(0, 1, 1, write(0, 2), Payload::ToController(data.clone()));
    let (body, payload) = cast(0, 2, &[(1, 100), (2, 0), (2, 62)]);
    assert_eq!(world.run(0, 1, 1, body, payload).0, Status::SUCCESS);
    for (namespace, start) in [(1, 100), (2, 0), (2, 62)] {
        assert_eq!(world.run(0, 1, namespace, read(start, 2), Payload::ToHost(1024)).2, data);
    }
    for (targets, status) in [
        (vec![(2, 63)], Status::LBA_OUT_OF_RANGE),
        (vec![(3, 0)], Status::INVALID_NAMESPACE),
        (vec![(2, 0); 33], Status::SIZE_LIMIT),
    ] {
        let (body, payload) = cast(0, 2, &targets);
        assert_eq!(world.run(0, 1, 1, body, payload).0, status.without_retry());
    }
}

#[test]
fn a_sum_is_the_result_of_the_command_that_asked_for_it() {
    let mut world = connected();
    let disk = world.disks.disk(BackendId(1));
    disk[512..520].copy_from_slice(&5u64.to_le_bytes());
    disk[1032..1040].copy_from_slice(&u64::MAX.to_le_bytes());
    let add = sdirect(VendorCommand::AddWrite { first: 512, second: 1032 });
    assert_eq!(world.run(0, 1, 1, add, Payload::None), (Status::SUCCESS, 4, Vec::new()));
    assert_eq!(world.disks.log.last(), Some(&"add and write"));
    assert_eq!(world.disks.disk(BackendId(1))[1032], 4);
}

#[test]
fn a_word_that_is_odd_or_outside_never_comes_to_the_engine() {
    let mut world = connected();
    for (word, status) in [
        (1033, Status::INVALID_FIELD),
        (1024 * 512, Status::LBA_OUT_OF_RANGE),
        (0xa00_0001 << 9, Status::LBA_OUT_OF_RANGE),
    ] {
        for (first, second) in [(0, word), (word, 0)] {
            let wrong = sdirect(VendorCommand::AddWrite { first, second });
            assert_eq!(world.run(0, 1, 1, wrong, Payload::None).0, status.without_retry());
        }
    }
    assert!(world.disks.log.is_empty());
}

#[test]
fn a_multicast_that_fails_says_which_of_its_targets_do_not_hold_it() {
    let mut world = connected();
    world.answers = false;
    let (body, payload) = cast(0, 2, &[(1, 100), (2, 0), (2, 62)]);
    let ticket = world.submit(0, 1, 1, body, payload);
    world.settle();
    let request = world.held.pop().expect("one request for the engine");
    let IoOperation::Engine(EngineOperation::MultiCast { from, to, bytes }) = request.operation else { panic!() };
    assert_eq!((from.address, to[2].address, to[2].device.backend, bytes), (0, 62 * 512, BackendId(2), 1024));
    world.target.complete(world.now, request.tag, IoResult::of_engine(IoStatus::WriteError, 0b110));
    world.settle();
    let (status, failed, _) = world.ended(0, ticket).expect("it is over");
    assert_eq!((status, failed), (Status::WRITE_FAULT.without_retry(), 0b110));
}

fn guests() -> impl Strategy<Value = InitiatorConfig> {
    (any::<(bool, bool, bool)>(), 0u8..4, 0u32..4).prop_map(|((header, data, flow_control), alignment, ready)| {
        let digests = Digests { header, data };
        InitiatorConfig { digests, alignment, ready_max_minus_one: ready, flow_control, ..initiator(1) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// PDUs split anywhere, every mix of digests, alignment, flow control and R2T limits, any order
    /// of completion: data survive, every command ends once, and nothing is left.
    #[test]
    fn data_survive_any_split_and_each_command_ends_once(
        guest in guests(),
        portions in prop::collection::vec(1usize..700, 1..20),
        commands in prop::collection::vec((1u16..3, 0u64..40, 1u16..24), 1..24),
        order in any::<u64>(),
    ) {
        let mut world = World::connected(config(), guest);
        world.portions = portions;
        prop_assert!(world.is_ready(0));
        let mut model = vec![0u8; 64 * BLOCK];
        let mut seed = order;
        for chunk in commands.chunks(6) {
            // A batch of writes to places that do not overlap, whose backends answer in any order;
            // then all of it is read.
            world.answers = false;
            let mut tickets = Vec::new();
            let mut taken = std::collections::BTreeSet::new();
            for (queue, start, blocks) in chunk {
                let range = *start..*start + u64::from(*blocks);
                if range.clone().any(|block| taken.contains(&block)) {
                    continue;
                }
                taken.extend(range);
                let data = pattern(usize::from(*blocks) * BLOCK, (seed >> 8) as u8);
                let at = *start as usize * BLOCK;
                model[at..at + data.len()].copy_from_slice(&data);
                tickets.push(world.submit(0, *queue, 1, write(*start, *blocks), Payload::ToController(data)));
            }
            world.settle();
            while !world.held.is_empty() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (seed >> 33) as usize % world.held.len();
                let request = world.held.remove(at);
                world.answer(request);
                world.settle();
            }
            for ticket in tickets {
                let ended = world.ended(0, ticket);
                prop_assert!(ended.is_some_and(|(status, ..)| status.is_success()));
                prop_assert!(world.ended(0, ticket).is_none());
            }
            world.answers = true;
            let back = world.run(0, 1, 1, read(0, 64), Payload::ToHost(64 * 512)).2;
            prop_assert_eq!(back, model.clone());
        }
        prop_assert_eq!(world.target.gauges().data_bytes, 0);
        // The event request alone is outstanding.
        prop_assert_eq!(world.target.gauges().commands, 1);
    }
}
