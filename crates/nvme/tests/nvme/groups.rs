//! Several machines that serve one target: whatever comes first, hosts cannot tell them from one.

use crate::common::party::{Happened, Party};
use crate::common::*;
use crate::reservations::{acquire, register, release};
use base::Span;
use nvme::initiator::{InitiatorConfig, Payload};
use nvme::reservation::*;
use nvme::target::*;
use nvme::*;
use proptest::prelude::*;

fn roomy() -> TargetConfig {
    let mut config = config();
    config.limits.connections_max = 64;
    config.limits.controllers_max = 12;
    config
}

/// A host without keep-alive: nothing but a test's own decisions ends it.
fn guest(number: u8) -> InitiatorConfig {
    InitiatorConfig { keep_alive_ms: 0, timeout: Span::secs(100), ..initiator(number) }
}

fn party(size: u16, hosts: u8, seed: u64) -> Party {
    let mut party = Party::new(&roomy(), size, seed);
    (1..=hosts).for_each(|number| _ = party.join(guest(number)));
    party.settle();
    assert_eq!(party.ready.len(), usize::from(hosts), "all have connected");
    party
}

fn access(start: u64) -> Access {
    Access { start, blocks_minus_one: 0, flags: AccessFlags::empty() }
}

fn write(start: u64, value: u8) -> (Body, Payload) {
    (Body::Io(Io::Write(access(start))), Payload::ToController(vec![value; BLOCK]))
}

fn read(start: u64) -> (Body, Payload) {
    (Body::Io(Io::Read(access(start))), Payload::ToHost(BLOCK as u32))
}

/// A party whose four hosts have vanished after so many steps.
fn deserted(size: u16, seed: u64, steps: usize) -> Party {
    let mut party = Party::new(&roomy(), size, seed);
    (1..=4).for_each(|number| _ = party.join(guest(number)));
    for _ in 0..steps {
        party.step();
    }
    // One that the initiator opened meanwhile goes too.
    for _ in 0..2 {
        (0..4).for_each(|host| party.vanish(host));
        party.settle();
    }
    party
}

fn controllers(party: &Party) -> u64 {
    party.members.iter().map(|target| target.gauges().controllers).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hosts_are_spread_over_all_members_and_each_has_all_its_queues_in_one(size in 1u16..5, seed: u64) {
        let mut party = party(size, 8, seed);
        let mut counts = vec![0; usize::from(size)];
        for host in 0..8 {
            counts[usize::from(party.member_of(host).0)] += 1;
            prop_assert!(party.run(host, 1, write(host as u64, host as u8)).is_success());
            prop_assert!(party.run(host, 2, read(host as u64)).is_success());
            prop_assert_eq!(party.disks.disk(BackendId(1))[host * BLOCK], host as u8);
        }
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{:?}", counts);
    }

    #[test]
    fn limits_are_those_of_the_whole_group_and_what_ends_makes_room(size in 1u16..5, seed: u64) {
        let mut config = roomy();
        config.limits.controllers_max = 5;
        config.limits.connections_max = 16;
        let mut party = Party::new(&config, size, seed);
        (1..=7).for_each(|number| _ = party.join(InitiatorConfig { io_queues: 1, ..guest(number) }));
        party.settle();
        prop_assert_eq!((party.ready.len(), controllers(&party)), (5, 5));
        let first = party.ready[0];
        party.vanish(first);
        party.settle();
        prop_assert_eq!(controllers(&party), 4);
        let late = party.join(guest(9));
        party.settle();
        prop_assert!(party.ready.contains(&late) && controllers(&party) == 5);
        // Three connections of the late host, and two of each other one.
        let connections: u64 = party.members.iter().map(|target| target.gauges().connections).sum();
        prop_assert_eq!(connections, 11);
        (0..20).for_each(|_| _ = party.members[0].accept(party.now, PORT).unwrap());
        let displaced = party.members[0].counters().connections_displaced;
        prop_assert_eq!(20 - displaced, 16 - 11, "connections that other members have count");
    }

    /// A host that vanishes while its connections are between members leaves nothing behind.
    #[test]
    fn hosts_that_vanish_at_any_step_leave_nothing(size in 2u16..5, seed: u64, steps in 1usize..120) {
        let mut party = deserted(size, seed, steps);
        prop_assert_eq!(controllers(&party), 0);
        prop_assert!(party.members.iter().all(|target| target.gauges().connections == 0));
        let before = party.members[0].counters().connections_displaced;
        (0..70).for_each(|_| _ = party.members[0].accept(party.now, PORT).unwrap());
        let displaced = party.members[0].counters().connections_displaced - before;
        prop_assert_eq!(70 - displaced, 64);
    }

    /// The first member forgets controllers that were never made, so all numbers are free again.
    #[test]
    fn hosts_that_vanish_at_any_step_leave_room_for_as_many(size in 2u16..5, seed: u64, steps in 1usize..120) {
        let mut party = deserted(size, seed, steps);
        party.ready.clear();
        (11..23).for_each(|number| _ = party.join(guest(number)));
        party.settle();
        prop_assert_eq!(party.ready.len(), 12, "as many as there may be");
    }

    /// Whatever is under way when a host loses its right is over before the answer.
    #[test]
    fn no_write_of_a_preempted_host_follows_the_answer(
        size in 1u16..5, seed: u64, aborts: bool, before in 0usize..300, vanishes: bool,
    ) {
        let mut party = party(size, 4, seed);
        let kind = ReservationKind::WriteExclusiveRegistrants;
        for (host, key) in [(0, 10), (1, 11)] {
            prop_assert!(party.run(host, 1, register(key, PersistChange::Keep)).is_success());
        }
        prop_assert!(party.run(1, 1, acquire(AcquireAction::Acquire, kind, 11, 0)).is_success());
        let victim = party.members.iter().flat_map(|target| target.reservations(subsystem(), 1)).count();
        prop_assert_eq!(victim, usize::from(size));
        // The victim writes; a survivor that is registered may go on.
        let controller = |party: &mut Party, host: usize| {
            party.history.clear();
            assert!(party.run(host, 1, write(60, 1)).is_success());
            match party.history[0] {
                Happened::Wrote { controller } => controller,
                Happened::Answered { .. } => unreachable!("a write is carried out first"),
            }
        };
        let (survivor, victim) = (controller(&mut party, 0), controller(&mut party, 1));
        party.history.clear();
        for turn in 0..10 {
            party.submit(1, 1 + turn % 2, write(u64::from(turn), 7));
        }
        for _ in 0..before {
            party.step();
        }
        if vanishes {
            party.vanish(1);
        }
        let action = if aborts { AcquireAction::PreemptAndAbort } else { AcquireAction::Preempt };
        let preempt = party.submit(0, 1, acquire(action, kind, 10, 11));
        party.submit(0, 2, write(30, 8));
        party.settle();
        prop_assert!(party.ended[&preempt].is_success());
        let answered = Happened::Answered { host: preempt.0, ticket: preempt.1 };
        let at = party.history.iter().position(|event| *event == answered).expect("it was answered");
        let late = party.history[at..].iter().filter(|event| **event == Happened::Wrote { controller: victim });
        prop_assert_eq!(late.count(), 0);
        let goes_on = party.history.contains(&Happened::Wrote { controller: survivor });
        prop_assert!(goes_on, "a registrant may write");
        if !vanishes {
            prop_assert_eq!(party.run(1, 1, write(0, 9)), Status::RESERVATION_CONFLICT.without_retry());
        }
    }

    /// Commands at once by several members end as they would in some order at one machine, and all
    /// members then know the same.
    #[test]
    fn reservation_commands_of_several_members_have_an_order(
        size in 2u16..5, seed: u64, choices in prop::collection::vec((0usize..6, any::<bool>()), 9),
    ) {
        let mut party = party(size, 3, seed);
        let mut orders: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
        let kind = ReservationKind::WriteExclusive;
        let commands: Vec<(Body, Payload)> = (0..9).map(|at| {
            let (own, other) = (at as u64 % 3 + 1, (at as u64 + 1) % 3 + 1);
            let persist = if choices[at].1 { PersistChange::On } else { PersistChange::Keep };
            match choices[at].0 {
                0 | 1 => register(own, persist),
                2 => acquire(AcquireAction::Acquire, kind, own, 0),
                3 => acquire(AcquireAction::Preempt, kind, own, other),
                4 => release(ReleaseAction::Release, kind, own),
                _ => release(ReleaseAction::Clear, kind, own),
            }
        }).collect();
        let mut statuses = Vec::new();
        for round in 0..3 {
            let tickets: Vec<_> = (0..3).map(|host| party.submit(host, 1, commands[round * 3 + host].clone())).collect();
            party.settle();
            statuses.extend(tickets.iter().map(|ticket| party.ended[ticket]));
            let permutations = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
            let longer = orders.iter().flat_map(|order| permutations.map(|hosts| {
                let added = hosts.map(|host| (host, round * 3 + host));
                order.iter().copied().chain(added).collect::<Vec<_>>()
            }));
            let state = party.members[0].reservations(subsystem(), 1).unwrap().clone();
            prop_assert!(party.members.iter().all(|target| *target.reservations(subsystem(), 1).unwrap() == state));
            orders = longer.filter(|order| explains(order, &commands, &statuses, &state)).collect();
            prop_assert!(!orders.is_empty(), "no order of round {} gives {:?}", round, statuses);
        }
    }
}

/// Whether one machine that is asked in this order answers so, and has this state in the end.
fn explains(order: &[(usize, usize)], commands: &[(Body, Payload)], statuses: &[Status], state: &Reservations) -> bool {
    let mut world = World::new(roomy());
    (1..=3).for_each(|number| _ = world.join(guest(number), PORT));
    let is_same = order.iter().all(|(host, at)| {
        let (body, payload) = commands[*at].clone();
        world.run(*host, 1, 1, body, payload).0 == statuses[*at]
    });
    is_same && world.target.reservations(subsystem(), 1).unwrap() == state
}

#[test]
fn a_report_and_a_list_name_controllers_of_other_members() {
    let mut party = party(3, 3, 5);
    for (host, key) in [(0, 1), (1, 2), (2, 3)] {
        assert!(party.run(host, 1, register(key, PersistChange::Keep)).is_success());
    }
    let report = Io::ReservationReport { dwords_minus_one: 127, is_extended: true };
    for host in 0..3 {
        let ticket = party.submit(host, 1, (Body::Io(report), Payload::ToHost(512)));
        party.settle();
        let report = ExtendedReport::decode(&party.data[&ticket]).unwrap();
        let mut ids: Vec<u16> = report.registrants.iter().map(|known| known.controller).collect();
        ids.sort_unstable();
        assert_eq!(ids.iter().map(|id| id % 3).collect::<std::collections::BTreeSet<_>>().len(), 3, "{ids:?}");
        assert!(ids.iter().all(|id| *id != 0xffff));
    }
}
