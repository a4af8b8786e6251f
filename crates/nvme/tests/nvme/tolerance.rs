//! What hosts in use do against the specification: let pass and told once, or refused where the
//! target is strict.

use crate::common::raw::Raw;
use crate::common::*;
use base::Span;
use nvme::pdu::Header;
use nvme::target::*;
use nvme::*;
use std::collections::BTreeSet;

const EVENT: Body = Body::Admin(Admin::AsynchronousEvent);

fn worlds() -> [(bool, World); 2] {
    [false, true].map(|is_strict| (is_strict, World::new(TargetConfig { is_strict, ..config() })))
}

fn tolerated(world: &mut World) -> Vec<Tolerated> {
    std::iter::from_fn(|| world.target.next_notice())
        .filter_map(|notice| match notice {
            Notice::Tolerated { what, .. } => Some(what),
            _ => None,
        })
        .collect()
}

fn greeted(world: &mut World) -> Raw {
    let mut raw = Raw::open(world);
    raw.greet(world);
    raw
}

fn data(controller: u16, host_id: u8) -> ConnectData {
    ConnectData { host_id: HostId([host_id; 16]), controller, subsystem: subsystem(), host: host(9) }
}

/// Connect's data of a host that leaves its name empty.
fn nameless(controller: u16) -> Vec<u8> {
    let mut bytes = data(controller, 9).encode().to_vec();
    bytes[usize::from(ConnectData::OFFSET_HOST)..].fill(0);
    bytes
}

#[test]
fn all_command_sets_are_taken_for_the_nvm_command_set() {
    for (is_strict, mut world) in worlds() {
        let mut admin = greeted(&mut world);
        assert!(admin.connect(&mut world, 0, 31, 0xffff).status.is_success());
        admin.enable(&mut world, 6);
        let status = admin.status(&mut world);
        assert_eq!((status.ready, status.fatal), (!is_strict, is_strict));
        let told = if is_strict { vec![] } else { vec![Tolerated::CommandSets] };
        assert_eq!(tolerated(&mut world), told);
    }
}

#[test]
fn a_host_without_a_name_comes_in_where_every_host_may() {
    for (is_strict, mut world) in worlds() {
        let mut admin = greeted(&mut world);
        let completion = admin.connect_as(&mut world, (0, 31, 0), &nameless(0xffff));
        assert_eq!(completion.status.is_success(), !is_strict);
        if is_strict {
            assert_eq!(completion.status, Status::CONNECT_INVALID_PARAMETERS.without_retry());
            continue;
        }
        admin.enable(&mut world, 0);
        let mut queue = greeted(&mut world);
        assert!(queue.connect_as(&mut world, (1, 15, 0), &nameless(admin.controller)).status.is_success());
        assert_eq!(tolerated(&mut world), [Tolerated::NoName; 2], "once a connection");
    }
}

#[test]
fn a_host_without_a_name_does_not_come_in_where_names_are_listed() {
    let mut config = config();
    config.subsystems[0].hosts = HostAccess::Listed(BTreeSet::from([host(9)]));
    let mut world = World::new(config);
    let mut admin = greeted(&mut world);
    let refused = admin.connect_as(&mut world, (0, 31, 0), &nameless(0xffff));
    assert_eq!(refused.status, Status::CONNECT_INVALID_HOST.without_retry());
}

#[test]
fn identifiers_of_event_requests_may_be_used_again_and_the_requests_are_given_up() {
    for (is_strict, mut world) in worlds() {
        let mut admin = Raw::admin(&mut world);
        for id in 0..4 {
            admin.command(&mut world, Command::new(id, EVENT), &[]);
        }
        assert_eq!(admin.completion(&mut world, 3), None);
        let get = Body::Fabrics(Fabrics::PropertyGet { offset: 0x14, size: PropertySize::Four });
        for id in [2, 3] {
            admin.command(&mut world, Command::new(id, get), &[]);
            let status = admin.completion(&mut world, id).unwrap().status;
            let refusal = Status::COMMAND_ID_CONFLICT.without_retry();
            assert_eq!(status, if is_strict { refusal } else { Status::SUCCESS });
        }
        let told = if is_strict { vec![] } else { vec![Tolerated::EventIdentifier] };
        assert_eq!(tolerated(&mut world), told, "once a connection");
        assert_eq!(world.target.gauges().commands, if is_strict { 4 } else { 2 });
        world.target.closed(world.now, admin.connection);
        assert_eq!(world.target.gauges().commands, 0);
    }
}

#[test]
fn the_identifier_of_another_command_is_in_conflict_even_so() {
    let mut world = World::new(config());
    world.answers = false;
    let admin = Raw::admin(&mut world);
    let mut queue = Raw::queue(&mut world, &admin, 1, 15);
    let flush = Command { namespace: 1, ..Command::new(7, Body::Io(Io::Flush)) };
    queue.command(&mut world, flush, &[]);
    queue.command(&mut world, flush, &[]);
    let refused = queue.completion(&mut world, 7).unwrap().status;
    assert_eq!(refused, Status::COMMAND_ID_CONFLICT.without_retry());
}

#[test]
fn queues_of_one_host_may_come_under_several_identifiers_and_those_of_another_host_may_not() {
    for (is_strict, mut world) in worlds() {
        let admin = Raw::admin(&mut world);
        let mut queue = greeted(&mut world);
        let status = queue.connect_as(&mut world, (1, 15, 0), &data(admin.controller, 8).encode()).status;
        assert_eq!(status.is_success(), !is_strict);
        let told = if is_strict { vec![] } else { vec![Tolerated::OtherHostId] };
        assert_eq!(tolerated(&mut world), told);
        let mut thief = greeted(&mut world);
        let other = ConnectData { host: host(8), ..data(admin.controller, 9) };
        let refused = thief.connect_as(&mut world, (2, 15, 0), &other.encode()).status;
        assert_eq!(refused, Status::CONNECT_INVALID_HOST.without_retry());
    }
}

/// As SPDK's target and Linux do: what is common to all namespaces goes with namespace management,
/// which is not there.
#[test]
fn identify_of_all_namespaces_at_once_is_no_namespace() {
    let mut world = World::connected(config(), initiator(1));
    let identify =
        |structure| Body::Admin(Admin::Identify(Identify { structure, controller: 0, specific_id: 0, command_set: 0 }));
    for structure in [0x00, 0x11] {
        let page = nvme::initiator::Payload::ToHost(4096);
        let (status, ..) = world.run(0, 0, u32::MAX, identify(structure), page);
        assert_eq!(status.without_retry(), Status::INVALID_NAMESPACE.without_retry());
    }
}

/// Waits for `span`; whether the controller is there then.
fn outlives(world: &mut World, span: Span) -> bool {
    world.now += span;
    world.target.on_wakeup(world.now);
    world.target.gauges().controllers == 1
}

#[test]
fn the_keep_alive_timer_starts_when_the_controller_is_enabled() {
    let mut world = World::new(config());
    let mut admin = greeted(&mut world);
    assert!(admin.connect_as(&mut world, (0, 31, 1000), &data(0xffff, 9).encode()).status.is_success());
    assert!(outlives(&mut world, Span::ms(9_999)));
    admin.enable(&mut world, 0);
    assert!(outlives(&mut world, Span::ms(999)));
    assert!(!outlives(&mut world, Span::ms(1)));
}

#[test]
fn a_controller_with_a_timeout_that_is_never_enabled_ends_after_ten_seconds() {
    let mut world = World::new(config());
    let mut admin = greeted(&mut world);
    assert!(admin.connect_as(&mut world, (0, 31, 1000), &data(0xffff, 9).encode()).status.is_success());
    assert!(outlives(&mut world, Span::ms(9_999)));
    assert!(!outlives(&mut world, Span::ms(1)));
}

#[test]
fn any_command_on_any_queue_keeps_the_controller_alive() {
    let mut world = World::new(config());
    let mut admin = greeted(&mut world);
    assert!(admin.connect_as(&mut world, (0, 31, 1000), &data(0xffff, 9).encode()).status.is_success());
    admin.enable(&mut world, 0);
    let mut queue = Raw::queue(&mut world, &admin, 1, 15);
    let flush = Command { namespace: 1, ..Command::new(7, Body::Io(Io::Flush)) };
    for _ in 0..5 {
        assert!(outlives(&mut world, Span::ms(900)));
        queue.command(&mut world, flush, &[]);
        assert!(queue.completion(&mut world, 7).is_some());
        assert!(outlives(&mut world, Span::ms(900)));
        admin.status(&mut world);
    }
    assert!(!outlives(&mut world, Span::secs(1)));
}

/// The target had no turn meanwhile. Its host may have given up, and gone another way.
#[test]
fn what_is_read_after_the_keep_alive_timeout_is_not_executed() {
    for (waited, is_done) in [(Span::ms(999), true), (Span::secs(1), false)] {
        let mut world = World::new(config());
        let mut admin = greeted(&mut world);
        assert!(admin.connect_as(&mut world, (0, 31, 1000), &data(0xffff, 9).encode()).status.is_success());
        admin.enable(&mut world, 0);
        let mut queue = Raw::queue(&mut world, &admin, 1, 15);
        world.now += waited;
        let flush = Command { namespace: 1, ..Command::new(7, Body::Io(Io::Flush)) };
        let mut bytes = Vec::new();
        queue.framing.write(&Header::Command { entry: flush.encode(), data_length: 0 }, &[], &mut bytes);
        assert_eq!(queue.bytes(&mut world, &bytes) > 0, is_done);
        assert_eq!(queue.completion(&mut world, 7).is_some(), is_done);
        assert_eq!((world.disks.flushes, world.target.gauges().controllers), (is_done.into(), is_done.into()));
    }
}
