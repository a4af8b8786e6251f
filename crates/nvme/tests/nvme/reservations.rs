//! Reservations between two hosts: who may write, who is told, and what outlives a restart.

use crate::common::*;
use nvme::feature::{Event, FeatureId};
use nvme::initiator::{HostEvent, Payload};
use nvme::log::ReservationNotice;
use nvme::reservation::*;
use nvme::target::*;
use nvme::*;

const KEY_A: u64 = 0xaaaa;
const KEY_B: u64 = 0xbbbb;

fn two_hosts() -> World {
    let mut world = World::connected(config(), initiator(1));
    world.join(initiator(2), OTHER_PORT);
    world
}

pub fn register(key: u64, persist: PersistChange) -> (Body, Payload) {
    let body =
        Io::ReservationRegister(ReservationRegister { action: RegisterAction::Register, ignore_key: false, persist });
    (Body::Io(body), Payload::ToController(RegisterKeys { current: 0, new: key }.encode().to_vec()))
}

pub fn acquire(action: AcquireAction, kind: ReservationKind, current: u64, preempt: u64) -> (Body, Payload) {
    let body = Io::ReservationAcquire(ReservationAcquire { action, ignore_key: false, kind });
    (Body::Io(body), Payload::ToController(AcquireKeys { current, preempt }.encode().to_vec()))
}

pub fn release(action: ReleaseAction, kind: ReservationKind, key: u64) -> (Body, Payload) {
    let body = Io::ReservationRelease(ReservationRelease { action, ignore_key: false, kind });
    (Body::Io(body), Payload::ToController(key.to_le_bytes().to_vec()))
}

fn run(world: &mut World, guest: usize, (body, payload): (Body, Payload)) -> Status {
    world.run(guest, 1, 1, body, payload).0
}

fn access() -> Access {
    Access { start: 0, blocks_minus_one: 0, flags: AccessFlags::empty() }
}

/// Whether a host may read and write.
fn may(world: &mut World, guest: usize) -> (bool, bool) {
    let reads = run(world, guest, (Body::Io(Io::Read(access())), Payload::ToHost(512)));
    let writes = run(world, guest, (Body::Io(Io::Write(access())), Payload::ToController(vec![1; 512])));
    let conflict = Status::RESERVATION_CONFLICT.without_retry();
    assert!([reads, writes].iter().all(|status| status.is_success() || *status == conflict));
    (reads.is_success(), writes.is_success())
}

fn registered(persist: PersistChange) -> World {
    let mut world = two_hosts();
    assert!(run(&mut world, 0, register(KEY_A, persist)).is_success());
    world
}

/// Base 2.0, Figure 469: what each type lets holder, registrants and others do.
#[test]
fn each_type_lets_holders_registrants_and_others_do_what_its_figure_says() {
    use ReservationKind as Kind;
    let (all, read, none) = ((true, true), (true, false), (false, false));
    for (kind, registrant, other) in [
        (Kind::WriteExclusive, read, read),
        (Kind::ExclusiveAccess, none, none),
        (Kind::WriteExclusiveRegistrants, all, read),
        (Kind::ExclusiveAccessRegistrants, all, none),
        (Kind::WriteExclusiveAll, all, read),
        (Kind::ExclusiveAccessAll, all, none),
    ] {
        let mut world = registered(PersistChange::Keep);
        assert!(run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0)).is_success());
        assert_eq!((may(&mut world, 0), may(&mut world, 1)), (all, other), "{kind:?}");
        assert!(run(&mut world, 1, register(KEY_B, PersistChange::Keep)).is_success());
        assert_eq!(may(&mut world, 1), registrant, "{kind:?}");
        // The other namespace is not reserved.
        let there = world.run(1, 1, 2, Body::Io(Io::Read(access())), Payload::ToHost(512)).0;
        assert!(there.is_success());
    }
}

#[test]
fn who_has_not_registered_or_has_another_key_holds_nothing() {
    let mut world = registered(PersistChange::Keep);
    let conflict = Status::RESERVATION_CONFLICT.without_retry();
    let kind = ReservationKind::WriteExclusive;
    assert_eq!(run(&mut world, 1, acquire(AcquireAction::Acquire, kind, KEY_B, 0)), conflict);
    assert_eq!(run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_B, 0)), conflict);
    assert_eq!(run(&mut world, 0, register(KEY_B, PersistChange::Keep)), conflict, "a second key");
    assert!(run(&mut world, 1, register(KEY_B, PersistChange::Keep)).is_success());
    assert!(run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0)).is_success());
    assert_eq!(run(&mut world, 1, acquire(AcquireAction::Acquire, kind, KEY_B, 0)), conflict, "held by another");
}

#[test]
fn a_released_reservation_frees_the_namespace_and_registrants_are_told() {
    let mut world = registered(PersistChange::Keep);
    run(&mut world, 1, register(KEY_B, PersistChange::Keep));
    let kind = ReservationKind::ExclusiveAccessRegistrants;
    assert!(run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0)).is_success());
    let other = release(ReleaseAction::Release, ReservationKind::WriteExclusive, KEY_A);
    assert_eq!(run(&mut world, 0, other), Status::INVALID_FIELD.without_retry(), "another type");
    assert!(run(&mut world, 0, release(ReleaseAction::Release, kind, KEY_A)).is_success());
    assert!(world.guests[1].events.contains(&HostEvent::Notice(Event::RESERVATION)));
    assert!(!world.guests[0].events.contains(&HostEvent::Notice(Event::RESERVATION)));
    assert_eq!(notice(&mut world, 1).kind, 2);
    assert_eq!(may(&mut world, 1), (true, true));
}

fn notice(world: &mut World, guest: usize) -> ReservationNotice {
    let asked = GetLogPage::part(0x80, 0, 15);
    let page = world.run(guest, 0, 0, Body::Admin(Admin::GetLogPage(asked)), Payload::ToHost(64)).2;
    ReservationNotice::decode(&page).unwrap()
}

#[test]
fn a_preempted_host_loses_its_registration_and_is_told_unless_it_asked_not_to_be() {
    for masked in [false, true] {
        let mut world = registered(PersistChange::Keep);
        run(&mut world, 1, register(KEY_B, PersistChange::Keep));
        if masked {
            let arguments = [1 << 1, 0, 0, 0, 0];
            let feature = FeatureId::ReservationNotifications.code();
            let set = Body::Admin(Admin::SetFeatures(SetFeatures { feature, save: false, arguments }));
            assert!(world.run(0, 0, 1, set, Payload::None).0.is_success());
        }
        let kind = ReservationKind::WriteExclusive;
        assert!(run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0)).is_success());
        assert!(run(&mut world, 1, acquire(AcquireAction::Preempt, kind, KEY_B, KEY_A)).is_success());
        assert_eq!((may(&mut world, 0), may(&mut world, 1)), ((true, false), (true, true)));
        assert_eq!(notice(&mut world, 0).kind, if masked { 0 } else { 1 });
        let now = world.target.reservations(subsystem(), 1).unwrap();
        assert_eq!((now.registrants.len(), now.registrants[0].key, now.registrants[0].is_holder), (1, KEY_B, true));
    }
}

#[test]
fn the_report_names_registrants_and_the_holder() {
    let mut world = registered(PersistChange::Keep);
    let kind = ReservationKind::WriteExclusive;
    run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0));
    let body = Body::Io(Io::ReservationReport { dwords_minus_one: 31, is_extended: true });
    let report = world.run(0, 1, 1, body, Payload::ToHost(128)).2;
    let report = ExtendedReport::decode(&report).unwrap();
    assert_eq!((report.kind, report.generation, report.registrants.len()), (kind, 1, 1));
    let known = report.registrants[0];
    assert_eq!((known.controller, known.status, known.key, known.host_id), (1, 1, KEY_A, HostId([1; 16])));
    let narrow = Body::Io(Io::ReservationReport { dwords_minus_one: 31, is_extended: false });
    assert_eq!(world.run(0, 1, 1, narrow, Payload::ToHost(128)).0, Status::HOST_ID_FORMAT.without_retry());
}

#[test]
fn a_state_that_persists_is_written_down_before_the_answer_and_others_wait_behind_it() {
    let mut world = two_hosts();
    world.answers = false;
    let (body, payload) = register(KEY_A, PersistChange::On);
    let first = world.submit(0, 1, 1, body, payload);
    world.settle();
    let (body, payload) = register(KEY_B, PersistChange::Keep);
    let second = world.submit(1, 1, 1, body, payload);
    world.settle();
    assert_eq!((world.ended(0, first), world.ended(1, second)), (None, None));
    assert_eq!(world.held.len(), 1);
    world.answer_held();
    assert!(world.ended(0, first).unwrap().0.is_success());
    assert_eq!(world.ended(1, second), None);
    world.answer_held();
    assert!(world.ended(1, second).unwrap().0.is_success());
    assert_eq!(world.disks.persisted.last().unwrap().registrants.len(), 2);
}

#[test]
fn a_reservation_that_persists_holds_after_a_restart_and_another_does_not() {
    for (persist, kept) in [(PersistChange::On, 1), (PersistChange::Keep, 0)] {
        let mut world = registered(persist);
        let kind = ReservationKind::WriteExclusive;
        run(&mut world, 0, acquire(AcquireAction::Acquire, kind, KEY_A, 0));
        let state = world.disks.persisted.pop().unwrap_or_default();
        assert_eq!(state.registrants.len(), kept);
        let mut after = config();
        after.subsystems[0].namespaces[0].reservations = state;
        let mut world = World::connected(after, initiator(1));
        world.join(initiator(2), OTHER_PORT);
        assert_eq!((may(&mut world, 0), may(&mut world, 1)), ((true, true), (true, kept == 0)));
    }
}

#[test]
fn more_registrants_than_the_table_holds_are_refused() {
    let mut all = config();
    let many = (0..REGISTRANTS_MAX as u8).map(|number| RegisteredHost {
        host: HostId([100 + number; 16]),
        key: 1,
        is_holder: false,
    });
    let mut registrants: Vec<RegisteredHost> = many.collect();
    registrants.pop();
    all.subsystems[0].namespaces[0].reservations = Reservations { registrants, ..Reservations::default() };
    let mut world = World::connected(all, initiator(1));
    world.join(initiator(2), OTHER_PORT);
    assert!(run(&mut world, 0, register(KEY_A, PersistChange::Keep)).is_success());
    assert_eq!(run(&mut world, 1, register(KEY_B, PersistChange::Keep)), Status::INTERNAL_ERROR.without_retry());
}

#[test]
fn where_nobody_keeps_reservations_none_is_promised_to_last() {
    let mut config = config();
    config.subsystems[0].namespaces[0].keeps_reservations = false;
    let mut world = World::connected(config, initiator(1));
    let identify = |world: &mut World, namespace| {
        let body = Identify { structure: 0, controller: 0, specific_id: 0, command_set: 0 };
        let (status, _, page) = world.run(0, 0, namespace, Body::Admin(Admin::Identify(body)), Payload::ToHost(4096));
        assert!(status.is_success());
        nvme::identify::IdentifyNamespace::decode(&page).unwrap().reservations
    };
    assert_eq!([1, 2].map(|namespace| identify(&mut world, namespace)), [0xfe, 0xff]);
    let invalid = Status::INVALID_FIELD.without_retry();
    assert_eq!(run(&mut world, 0, register(KEY_A, PersistChange::On)), invalid);
    let feature = FeatureId::ReservationPersistence.code();
    let set = SetFeatures { feature, save: false, arguments: [1, 0, 0, 0, 0] };
    assert_eq!(world.run(0, 0, 1, Body::Admin(Admin::SetFeatures(set)), Payload::None).0, invalid);
    assert_eq!(world.run(0, 0, 2, Body::Admin(Admin::SetFeatures(set)), Payload::None).0, Status::SUCCESS);
    assert!(world.disks.persisted.iter().map(|state| state.persists).eq([true]), "what lasts is written down");
    // What need not last can be had, and the refused registration has left nothing.
    assert!(run(&mut world, 0, register(KEY_A, PersistChange::Off)).is_success());
    assert_eq!(world.disks.persisted.len(), 1);
}
