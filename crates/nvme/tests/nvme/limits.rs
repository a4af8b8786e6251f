//! What a host can make the target hold, and for how long.

use crate::common::raw::Raw;
use crate::common::*;
use base::Span;
use nvme::initiator::{HostEvent, InitiatorConfig, Payload};
use nvme::pdu::{FatalStatus, Header, HostData, InitializeRequest, PduError};
use nvme::target::*;
use nvme::*;
use proptest::prelude::*;

fn access(start: u64, blocks: u16) -> Access {
    Access { start, blocks_minus_one: blocks - 1, flags: AccessFlags::empty() }
}

fn io(id: u16, body: Io, data: Sgl) -> Command {
    Command { namespace: 1, data, ..Command::new(id, Body::Io(body)) }
}

/// Eight connections may be open, each of a controller.
fn of_eight() -> World {
    let limits = TargetLimits { controllers_max: 8, controllers_per_host_max: 8, ..limits() };
    World::new(TargetConfig { limits, ..config() })
}

#[test]
fn as_many_connections_as_allowed_are_taken_and_one_more_is_not_until_one_is_gone() {
    let mut world = of_eight();
    let all: Vec<ConnectionId> = (0..8).map(|_| Raw::admin(&mut world).connection).collect();
    assert_eq!(world.target.accept(world.now, PORT), Err(Refused::Connections { most: 8 }));
    assert_eq!(world.target.accept(world.now, PortId(7)), Err(Refused::Port(PortId(7))));
    world.target.closed(world.now, all[3]);
    let next = world.target.accept(world.now, PORT).unwrap();
    assert_eq!((next.index(), next == all[3]), (3, false));
    assert_eq!(world.target.counters().connections_displaced, 0);
}

/// Of a full target, those that have not sent Connect make room, the first of them first.
#[test]
fn strangers_make_room_in_the_order_in_which_they_came() {
    let mut world = of_eight();
    let first = Raw::open(&mut world);
    for _ in 0..40 {
        let passing = Raw::open(&mut world).connection;
        world.target.closed(world.now, passing);
    }
    let host = Raw::admin(&mut world);
    let mut greeted = Raw::open(&mut world);
    greeted.greet(&mut world);
    let gone = Raw::open(&mut world);
    let rest: Vec<Raw> = (0..4).map(|_| Raw::open(&mut world)).collect();
    world.target.closed(world.now, gone.connection);
    let eighth = Raw::open(&mut world);
    assert_eq!(world.target.counters().connections_displaced, 0, "eight may be open");
    let ended = |world: &World, raw: &Raw| world.target.should_close(raw.connection);
    let order: Vec<&Raw> = [&first, &greeted].into_iter().chain(&rest).chain([&eighth]).collect();
    let mut late = Vec::new();
    for (nth, stranger) in order.iter().enumerate() {
        assert_eq!(ended(&world, stranger), None);
        late.push(Raw::open(&mut world));
        assert_eq!(ended(&world, stranger), Some(CloseReason::Displaced), "{nth}");
        assert_eq!(world.target.counters().connections_displaced, nth as u64 + 1);
    }
    assert_eq!(ended(&world, &host), None);
    assert_eq!(late.len(), 7);
    // Those that have to be closed are closed by now, and room is as before.
    order.iter().for_each(|stranger| world.target.closed(world.now, stranger.connection));
    assert_eq!(world.target.gauges().connections, 8);
    late.iter_mut().for_each(|raw| raw.greet(&mut world));
    late.iter_mut().for_each(|raw| assert!(raw.connect(&mut world, 0, 31, 0xffff).status.is_success()));
    assert_eq!(world.target.accept(world.now, PORT), Err(Refused::Connections { most: 8 }));
    assert_eq!(world.target.counters().connections_refused, 1);
}

#[test]
fn as_many_controllers_as_allowed_are_given_and_one_more_is_told_to_come_again() {
    let few = TargetLimits { controllers_max: 2, ..limits() };
    let mut world = World::new(TargetConfig { limits: few, ..config() });
    for _ in 0..2 {
        Raw::admin(&mut world);
    }
    let mut third = Raw::open(&mut world);
    third.greet(&mut world);
    assert_eq!(third.connect(&mut world, 0, 31, 0xffff).status, Status::CONNECT_BUSY);
}

#[test]
fn one_host_has_its_share_of_the_controllers_and_others_come_in_beside_it() {
    let shared = TargetLimits { controllers_per_host_max: 2, ..limits() };
    let mut world = World::new(TargetConfig { limits: shared, ..config() });
    let greedy: Vec<Raw> = (0..2).map(|_| Raw::admin(&mut world)).collect();
    let mut third = Raw::open(&mut world);
    third.greet(&mut world);
    assert_eq!(third.connect(&mut world, 0, 31, 0xffff).status, Status::CONNECT_BUSY);
    let told = std::iter::from_fn(|| world.target.next_notice());
    let told = told.filter(|notice| matches!(notice, Notice::Crowded { most: 2, .. }));
    assert_eq!(told.count(), 1);
    let other = ConnectData { host_id: HostId([8; 16]), controller: 0xffff, subsystem: subsystem(), host: host(8) };
    let mut other_raw = Raw::open(&mut world);
    other_raw.greet(&mut world);
    assert!(other_raw.connect_as(&mut world, (0, 31, 0), &other.encode()).status.is_success());
    world.target.closed(world.now, greedy[0].connection);
    let mut again = Raw::open(&mut world);
    again.greet(&mut world);
    assert!(again.connect(&mut world, 0, 31, 0xffff).status.is_success());
}

#[test]
fn a_connection_that_does_not_connect_in_time_is_closed_after_each_step_that_it_may_take() {
    let mut world = World::new(config());
    let silent = Raw::open(&mut world);
    let mut half = Raw::open(&mut world);
    world.now += Span::ms(4_999);
    half.greet(&mut world);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(silent.connection), None);
    world.now += Span::ms(1);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(silent.connection), Some(CloseReason::Handshake));
    assert_eq!(world.target.should_close(half.connection), None);
    world.now += Span::ms(4_999);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(half.connection), Some(CloseReason::Handshake));
}

#[test]
fn a_silent_queue_without_keep_alive_is_closed_where_the_target_says_so() {
    let limits = TargetLimits { idle: Some(Span::secs(60)), ..limits() };
    let mut world = World::new(TargetConfig { limits, ..config() });
    let mut admin = Raw::admin(&mut world);
    world.now += Span::secs(59);
    let get = Body::Fabrics(Fabrics::PropertyGet { offset: 0x1c, size: PropertySize::Four });
    admin.command(&mut world, Command::new(5, get), &[]);
    assert!(admin.completion(&mut world, 5).is_some());
    world.now += Span::secs(59);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(admin.connection), None);
    world.now += Span::secs(1);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(admin.connection), Some(CloseReason::Idle));
}

/// A host that sends and never reads: its bytes are taken up to a bound, and in the end it is
/// closed.
#[test]
fn a_host_that_does_not_read_is_not_read_either_and_closed_in_the_end() {
    let mut world = World::new(config());
    let mut admin = Raw::admin(&mut world);
    let mut bytes = Vec::new();
    let entry = Sqe { opcode: 0xc3, id: 7.into(), ..Sqe::default() };
    admin.framing.write(&Header::Command { entry, data_length: 0 }, &[], &mut bytes);
    let mut sent = 0;
    while admin.bytes(&mut world, &bytes) == bytes.len() {
        sent += 1;
        assert!(sent < 10_000, "the target takes everything");
    }
    assert!(!world.target.wants_input(admin.connection));
    let waiting: usize = world.target.transmit(admin.connection).map(<[u8]>::len).sum();
    assert!((16 << 10..(16 << 10) + 24).contains(&waiting), "{waiting}");
    world.now += Span::ms(29_999);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(admin.connection), None);
    world.now += Span::ms(1);
    world.target.on_wakeup(world.now);
    assert_eq!(world.target.should_close(admin.connection), Some(CloseReason::Stalled));
}

#[test]
fn a_host_that_reads_again_is_read_again() {
    let mut world = World::new(config());
    let mut admin = Raw::admin(&mut world);
    let mut bytes = Vec::new();
    let entry = Sqe { opcode: 0xc3, id: 7.into(), ..Sqe::default() };
    admin.framing.write(&Header::Command { entry, data_length: 0 }, &[], &mut bytes);
    while admin.bytes(&mut world, &bytes) == bytes.len() {}
    admin.listen(&mut world);
    assert!(world.target.wants_input(admin.connection));
}

/// Eight reads of 32 KiB on a budget of 64 KiB: two are carried out at a time, and their data count
/// until they have left.
#[test]
fn reads_wait_for_the_budget_until_earlier_data_have_left() {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let mut queue = Raw::queue(&mut world, &admin, 1, 15);
    for id in 0..8 {
        queue.command(&mut world, io(id, Io::Read(access(0, 64)), Sgl::Transport { length: 32 << 10 }), &[]);
    }
    world.work();
    assert_eq!((world.disks.log.len(), world.target.gauges().data_bytes), (2, 64 << 10));
    world.work();
    assert_eq!(world.disks.log.len(), 2, "nothing goes on while nothing has left");
    for id in 0..8 {
        while queue.completion(&mut world, id).is_none() {}
    }
    assert_eq!((world.disks.log.len(), world.target.gauges().data_bytes), (8, 0));
}

#[test]
fn commands_beyond_our_queue_are_told_to_come_again_and_beyond_the_hosts_own_end_the_connection() {
    let mut world = World::new(config());
    world.answers = false;
    let admin = Raw::admin(&mut world);
    let mut queue = Raw::queue(&mut world, &admin, 1, 19);
    for id in 0..16 {
        queue.command(&mut world, io(id, Io::Verify(access(0, 1)), Sgl::NONE), &[]);
        assert_eq!(queue.completion(&mut world, id), None);
    }
    queue.command(&mut world, io(16, Io::Verify(access(0, 1)), Sgl::NONE), &[]);
    assert_eq!(queue.completion(&mut world, 16).unwrap().status, Status::INTERRUPTED);
    world.answer_held();
    assert!((0..16).all(|id| queue.completion(&mut world, id).is_some()));
    // A queue of two entries, and three commands.
    let mut small = Raw::queue(&mut world, &admin, 2, 1);
    for id in 0..3 {
        small.command(&mut world, io(id, Io::Verify(access(0, 1)), Sgl::NONE), &[]);
    }
    small.listen(&mut world);
    let reason = world.target.should_close(small.connection);
    let expected = PduError::LimitExceeded { what: "outstanding commands", got: 3, most: 2 };
    assert_eq!(reason, Some(CloseReason::Protocol(expected)));
}

/// The host's MAXR2T is one: never are two R2Ts open, and the second is asked for when the first is
/// answered.
#[test]
fn no_more_r2ts_are_open_than_the_host_allows() {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let mut queue = Raw::queue(&mut world, &admin, 1, 15);
    queue.command(&mut world, io(1, Io::Write(access(0, 64)), Sgl::Transport { length: 32 << 10 }), &[]);
    for part in 0..4 {
        let Header::ReadyToTransfer(ready) = queue.listen(&mut world).last().unwrap().header else { panic!("no R2T") };
        assert_eq!((ready.offset, ready.length), (part * 8192, 8192));
        for half in 0..2 {
            let offset = ready.offset + half * 4096;
            let data = HostData { command: 1, tag: ready.tag, offset, length: 4096, is_last: half == 1 };
            queue.send(&mut world, &Header::HostData(data), &[7; 4096]);
        }
    }
    assert!(queue.completion(&mut world, 1).unwrap().status.is_success());
    assert_eq!(world.disks.disk(BackendId(1))[..32 << 10], [7; 32 << 10]);
}

#[test]
fn a_termination_says_what_was_wrong_and_nothing_is_taken_behind_it() {
    let mut world = World::new(config());
    let mut raw = Raw::open(&mut world);
    raw.greet(&mut world);
    let request = InitializeRequest { alignment: 0, digests: Default::default(), ready_max_minus_one: 0 };
    let mut again = Vec::new();
    raw.framing.write(&Header::InitializeRequest(request), &[], &mut again);
    assert!(raw.bytes(&mut world, &again) < again.len());
    let Header::ControllerTermination(end) = raw.listen(&mut world).last().unwrap().header else { panic!("no end") };
    assert_eq!(end.status, FatalStatus::Sequence);
    assert_eq!(raw.bytes(&mut world, &[0; 100]), 0);
    assert!(matches!(world.target.should_close(raw.connection), Some(CloseReason::Protocol(_))));
}

#[test]
fn a_connection_lost_under_io_drops_its_commands_and_late_results_without_harm() {
    let mut world = World::connected(config(), InitiatorConfig { event_requests: 0, ..initiator(1) });
    world.answers = false;
    for _ in 0..4 {
        world.submit(0, 1, 1, Body::Io(Io::Read(access(0, 8))), Payload::ToHost(4096));
    }
    world.settle();
    let lost = world.guests[0].queues[&1];
    let abandoned = |world: &World| world.held.iter().filter(|held| world.target.is_abandoned(held.tag)).count();
    assert_eq!(abandoned(&world), 0, "their host waits for them");
    world.target.closed(world.now, lost);
    assert_eq!((world.target.gauges().commands, abandoned(&world)), (4, 4), "backends still work");
    for request in std::mem::take(&mut world.held) {
        let tag = request.tag;
        let result = world.disks.carry_out(request);
        world.target.complete(world.now, tag, result.clone());
        // A backend that answers twice does no harm.
        world.target.complete(world.now, tag, result);
    }
    assert_eq!((world.target.gauges().commands, world.target.counters().unknown_results), (0, 4));
}

#[test]
fn what_a_silent_host_waited_for_is_abandoned_when_its_controller_ends() {
    let mut world = World::connected(config(), InitiatorConfig { event_requests: 0, ..initiator(1) });
    world.answers = false;
    world.submit(0, 1, 1, Body::Io(Io::Read(access(0, 8))), Payload::ToHost(4096));
    world.settle();
    let tag = world.held[0].tag;
    let at = |world: &mut World, span: Span| {
        world.target.on_wakeup(world.now + span);
        world.target.is_abandoned(tag)
    };
    let keep_alive = Span::ms(initiator(1).keep_alive_ms.into());
    assert!(!at(&mut world, keep_alive - Span::ms(1)));
    assert!(at(&mut world, keep_alive + Span::secs(2)));
    let request = world.held.remove(0);
    let result = world.disks.carry_out(request);
    world.target.complete(world.now, tag, result);
    assert!(!world.target.is_abandoned(tag), "it is over");
}

#[test]
fn a_reset_ends_the_io_queues_and_a_new_association_works() {
    let mut world = World::new(config());
    let mut admin = Raw::admin(&mut world);
    let queue = Raw::queue(&mut world, &admin, 1, 15);
    let set = Body::Fabrics(Fabrics::PropertySet { offset: 0x14, size: PropertySize::Four, value: 0x0046_0000 });
    admin.command(&mut world, Command::new(9, set), &[]);
    assert!(admin.completion(&mut world, 9).unwrap().status.is_success());
    assert_eq!(world.target.should_close(queue.connection), Some(CloseReason::Reset));
    let get = Body::Fabrics(Fabrics::PropertyGet { offset: 0x1c, size: PropertySize::Four });
    admin.command(&mut world, Command::new(10, get), &[]);
    assert_eq!(admin.completion(&mut world, 10).unwrap().result, 0, "not ready");
    let again = Raw::admin(&mut world);
    Raw::queue(&mut world, &again, 1, 15);
}

#[test]
fn an_admin_connection_that_goes_takes_its_queues_with_it() {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let queue = Raw::queue(&mut world, &admin, 1, 15);
    world.target.closed(world.now, admin.connection);
    assert_eq!(world.target.should_close(queue.connection), Some(CloseReason::AssociationEnded));
    assert_eq!(world.target.gauges().controllers, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever hosts do in whatever order, and whichever connection is lost on the way: data in
    /// use never pass the budget, and when all are gone nothing is left.
    #[test]
    fn the_budget_is_never_passed_and_nothing_leaks(
        portions in prop::collection::vec(1usize..5000, 1..8),
        commands in prop::collection::vec((1u16..3, 0u64..900, 1u16..64, any::<bool>()), 1..40),
        lost in 0u16..3,
        answers_late in any::<bool>(),
    ) {
        let mut world = World::connected(config(), initiator(1));
        world.join(initiator(2), OTHER_PORT);
        world.portions = portions;
        world.answers = !answers_late;
        for (at, (queue, start, blocks, writes)) in commands.into_iter().enumerate() {
            let access = access(start, blocks);
            let length = usize::from(blocks) * BLOCK;
            let (body, payload) = if writes {
                (Body::Io(Io::Write(access)), Payload::ToController(vec![at as u8; length]))
            } else {
                (Body::Io(Io::Read(access)), Payload::ToHost(length as u32))
            };
            let now = world.now;
            let _ = world.guests[at % 2].initiator.submit(now, queue, 1, body, payload);
            if at % 5 == 0 {
                world.settle();
            }
            // Two hosts of two queues, and in-capsule data are apart.
            prop_assert!(world.target.gauges().data_bytes <= 4 * (64 << 10));
        }
        world.settle();
        let connection = world.guests[0].queues[&lost];
        world.target.closed(world.now, connection);
        world.guests[0].queues.remove(&lost);
        let now = world.now;
        world.guests[0].initiator.closed(now, lost);
        world.answers = true;
        world.answer_held();
        world.guests[1].initiator.shut_down(now);
        world.settle();
        world.pass(Span::ms(20));
        prop_assert!(world.guests[1].events.contains(&HostEvent::ShutDown));
        let gauges = world.target.gauges();
        prop_assert_eq!(gauges, Gauges { pool_bytes: gauges.pool_bytes, ..Gauges::default() });
    }
}

#[test]
fn as_many_queues_as_allowed_are_connected_and_one_more_is_not() {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    for queue in 1..=2 {
        Raw::queue(&mut world, &admin, queue, 15);
    }
    let mut third = Raw::open(&mut world);
    third.greet(&mut world);
    let refused = third.connect(&mut world, 3, 15, admin.controller);
    assert_eq!(refused.status, Status::CONNECT_INVALID_PARAMETERS.without_retry());
    assert_eq!(ConnectRefusal::decode(refused.result), ConnectRefusal { offset: 42, is_in_data: false });
}

#[test]
fn as_many_event_requests_as_allowed_wait_and_one_more_is_refused() {
    let mut world = World::new(config());
    let mut admin = Raw::admin(&mut world);
    for id in 0..5 {
        admin.command(&mut world, Command::new(id, Body::Admin(Admin::AsynchronousEvent)), &[]);
    }
    assert!((0..4).all(|id| admin.completion(&mut world, id).is_none()));
    assert_eq!(admin.completion(&mut world, 4).unwrap().status, Status::EVENT_LIMIT.without_retry());
}

#[test]
fn an_abort_ends_a_command_that_waits_and_its_result_says_so() {
    let mut world = World::new(config());
    let mut admin = Raw::admin(&mut world);
    admin.command(&mut world, Command::new(5, Body::Admin(Admin::AsynchronousEvent)), &[]);
    admin.command(&mut world, Command::new(6, Body::Admin(Admin::Abort { queue: 0, id: 5 })), &[]);
    assert_eq!(admin.completion(&mut world, 5).unwrap().status, Status::ABORT_REQUESTED);
    let abort = admin.completion(&mut world, 6).unwrap();
    assert_eq!((abort.status, abort.result), (Status::SUCCESS, 0));
}

/// In-capsule data of 4,096 bytes are announced: as many are taken, and four more end the
/// connection before any of them is.
#[test]
fn a_capsule_as_long_as_announced_is_taken_and_a_longer_one_is_not() {
    let mut world = World::new(config());
    let admin = Raw::admin(&mut world);
    let mut queue = Raw::queue(&mut world, &admin, 1, 15);
    let inside = |length| Sgl::InCapsule { offset: 0, length };
    queue.command(&mut world, io(1, Io::Write(access(0, 8)), inside(4096)), &[7; 4096]);
    assert!(queue.completion(&mut world, 1).unwrap().status.is_success());
    let entry = io(2, Io::Write(access(0, 8)), inside(4096)).encode();
    let mut longer = Vec::new();
    queue.framing.write(&Header::Command { entry, data_length: 4100 }, &[7; 4100], &mut longer);
    assert!(queue.bytes(&mut world, &longer) <= 72);
    queue.listen(&mut world);
    assert!(matches!(world.target.should_close(queue.connection), Some(CloseReason::Protocol(_))));
}
