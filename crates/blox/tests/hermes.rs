//! Does the protocol hold: Hermes step by step. (Random schedules with faults:
//! `crates/sim/tests/sim/blox_hermes.rs`.)

use base::{NodeId, Span, Time};
use blox::{
    Contents, Membership, Page, Reading, Refusal, Replica, ReplicaConfig, ReplicaMessage, ReplicaOut, Standing, Ticket,
    Timestamp, Value, VssdId, Writing,
};

const MEMBERS: [(NodeId, VssdId); 3] = [(NodeId(5), VssdId(50)), (NodeId(6), VssdId(60)), (NodeId(7), VssdId(70))];
const PAGE: Page = Page(3);
const NOW: Time = Time::us(10);
const RETRANSMIT: Span = Span::us(100);
const REPLAY: Span = Span::us(250);

fn new(place: usize, contents: Contents) -> Replica {
    let (retransmit, replay) = (RETRANSMIT, REPLAY);
    Replica::new(
        ReplicaConfig { own: MEMBERS[place], pages: 8, retransmit, replay, fetch_window: 2, remember: None },
        contents,
    )
}

fn order(epoch: u32, members: &[usize], stale: Option<usize>) -> Membership {
    let mut replicas = [None; 4];
    members.iter().zip(&mut replicas).for_each(|(member, place)| *place = Some(MEMBERS[*member]));
    Membership { epoch, replicas, stale: stale.map(|member| MEMBERS[member]) }
}

/// A member of `members` in epoch 1.
fn serving(place: usize, members: &[usize]) -> Replica {
    let mut replica = new(place, Contents::Original);
    let said = step(|out| replica.members(NOW, &order(1, members, None), out));
    assert_eq!(said, [ReplicaOut::UpToDate { epoch: 1 }]);
    replica
}

fn step(act: impl FnOnce(&mut Vec<ReplicaOut>)) -> Vec<ReplicaOut> {
    let mut out = Vec::new();
    act(&mut out);
    out
}

fn at(version: u32, place: usize) -> Timestamp {
    Timestamp { version, node: MEMBERS[place].0 }
}

fn invalidate(timestamp: Timestamp, value: u64, epoch: u32) -> ReplicaMessage {
    ReplicaMessage::Invalidate { page: PAGE, timestamp, value: Value(value), epoch, origin: None }
}

fn acknowledge(timestamp: Timestamp, epoch: u32) -> ReplicaMessage {
    ReplicaMessage::Acknowledge { page: PAGE, timestamp, epoch }
}

fn validate(timestamp: Timestamp, epoch: u32) -> ReplicaMessage {
    ReplicaMessage::Validate { page: PAGE, timestamp, epoch }
}

fn send(place: usize, message: ReplicaMessage) -> ReplicaOut {
    ReplicaOut::Send { to: MEMBERS[place].0, vssd: MEMBERS[place].1, message }
}

fn apply(timestamp: Timestamp, value: u64) -> ReplicaOut {
    ReplicaOut::Apply { page: PAGE, value: Value(value), timestamp }
}

fn hear(replica: &mut Replica, from: usize, message: ReplicaMessage) -> Vec<ReplicaOut> {
    step(|out| replica.message(NOW, MEMBERS[from].0, &message, out))
}

fn write(replica: &mut Replica, value: u64, ticket: u32) -> Vec<ReplicaOut> {
    step(|out| assert_eq!(replica.write(NOW, PAGE, (Value(value), None), Ticket(ticket), out), Writing::Taken))
}

#[test]
fn a_write_is_done_when_every_member_has_acknowledged_it() {
    let mut writer = serving(0, &[0, 1, 2]);
    let (first, sent) = (at(1, 0), invalidate(at(1, 0), 9, 1));
    assert_eq!(write(&mut writer, 9, 1), [apply(first, 9), send(1, sent), send(2, sent)]);
    assert_eq!(writer.read(PAGE, Ticket(2)), Reading::Wait);
    assert_eq!(hear(&mut writer, 1, acknowledge(first, 1)), []);
    assert_eq!(hear(&mut writer, 1, acknowledge(first, 1)), [], "one member cannot speak for two");
    let done = hear(&mut writer, 2, acknowledge(first, 1));
    assert!(done.contains(&ReplicaOut::WriteDone { ticket: Ticket(1) }));
    assert!(done.contains(&ReplicaOut::ReadReady { ticket: Ticket(2), value: Value(9) }));
    assert!(done.contains(&send(1, validate(first, 1))) && done.contains(&send(2, validate(first, 1))));
    assert_eq!((writer.read(PAGE, Ticket(3)), writer.in_flight()), (Reading::Serve, 0));
}

#[test]
fn a_follower_serves_again_at_the_validation_of_the_newest_write_only() {
    let mut follower = serving(1, &[0, 1, 2]);
    let (older, newer) = (at(1, 0), at(1, 2));
    assert_eq!(hear(&mut follower, 2, invalidate(newer, 8, 1)), [apply(newer, 8), send(2, acknowledge(newer, 1))]);
    assert_eq!(hear(&mut follower, 0, invalidate(older, 9, 1)), [send(0, acknowledge(older, 1))]);
    assert_eq!(hear(&mut follower, 0, validate(older, 1)), []);
    assert_eq!(follower.read(PAGE, Ticket(1)), Reading::Wait);
    let ready = ReplicaOut::ReadReady { ticket: Ticket(1), value: Value(8) };
    assert_eq!(hear(&mut follower, 2, validate(newer, 1)), [ready]);
    assert_eq!((follower.read(PAGE, Ticket(2)), follower.timestamp(PAGE)), (Reading::Serve, newer));
}

#[test]
fn of_two_concurrent_writes_the_lower_node_yields_and_both_are_done() {
    let mut lower = serving(0, &[0, 1]);
    write(&mut lower, 9, 1);
    let (own, other) = (at(1, 0), at(1, 1));
    assert_eq!(hear(&mut lower, 1, invalidate(other, 8, 1)), [apply(other, 8), send(1, acknowledge(other, 1))]);
    assert_eq!(hear(&mut lower, 1, acknowledge(own, 1)), [ReplicaOut::WriteDone { ticket: Ticket(1) }]);
    assert_eq!(lower.read(PAGE, Ticket(2)), Reading::Wait, "the other write is not validated");
    hear(&mut lower, 1, validate(other, 1));
    assert_eq!(lower.read(PAGE, Ticket(3)), Reading::Serve);
}

#[test]
fn writes_of_a_page_queue_behind_the_one_in_flight() {
    let mut writer = serving(0, &[0, 1]);
    write(&mut writer, 9, 1);
    assert_eq!(write(&mut writer, 10, 2), []);
    let next = hear(&mut writer, 1, acknowledge(at(1, 0), 1));
    assert!(next.contains(&apply(at(2, 0), 10)) && next.contains(&send(1, invalidate(at(2, 0), 10, 1))));
    assert!(!next.contains(&ReplicaOut::WriteDone { ticket: Ticket(2) }));
}

#[test]
fn messages_of_another_epoch_a_stranger_or_no_page_change_nothing() {
    let mut follower = serving(1, &[0, 1]);
    assert_eq!(hear(&mut follower, 0, invalidate(at(1, 0), 9, 2)), []);
    assert_eq!(hear(&mut follower, 0, invalidate(at(1, 0), 9, 0)), []);
    assert_eq!(hear(&mut follower, 2, invalidate(at(1, 2), 9, 1)), []);
    assert_eq!(hear(&mut follower, 0, ReplicaMessage::Fetch { page: Page(8), after: None, epoch: 1 }), []);
    assert_eq!(hear(&mut follower, 0, invalidate(at(u32::MAX, 0), 9, 1)), []);
    assert_eq!((follower.ignored(), follower.in_flight(), follower.timestamp(PAGE).version), (5, 0, 0));
}

#[test]
fn an_unacknowledged_write_is_sent_again_to_those_who_are_missing() {
    let mut writer = serving(0, &[0, 1, 2]);
    write(&mut writer, 9, 1);
    hear(&mut writer, 1, acknowledge(at(1, 0), 1));
    assert_eq!(writer.next_wakeup(), Some(NOW + RETRANSMIT));
    assert_eq!(step(|out| writer.on_wakeup(NOW + RETRANSMIT - Span::ps(1), out)), []);
    let again = send(2, invalidate(at(1, 0), 9, 1));
    assert_eq!(step(|out| writer.on_wakeup(NOW + RETRANSMIT, out)), [again]);
    hear(&mut writer, 2, acknowledge(at(1, 0), 1));
    assert_eq!(writer.next_wakeup(), None);
}

#[test]
fn a_page_that_stays_invalid_is_replayed_with_its_own_timestamp() {
    let mut follower = serving(1, &[0, 1, 2]);
    let (write, again) = (at(1, 0), invalidate(at(1, 0), 9, 1));
    hear(&mut follower, 0, again);
    assert_eq!(step(|out| follower.on_wakeup(NOW + REPLAY - Span::ps(1), out)), []);
    assert_eq!(step(|out| follower.on_wakeup(NOW + REPLAY, out)), [send(0, again), send(2, again)]);
    hear(&mut follower, 0, acknowledge(write, 1));
    let done = hear(&mut follower, 2, acknowledge(write, 1));
    assert_eq!(done, [send(0, validate(write, 1)), send(2, validate(write, 1))]);
    assert_eq!(follower.read(PAGE, Ticket(1)), Reading::Serve);
}

#[test]
fn a_dead_writers_write_is_finished_in_the_next_epoch_before_the_member_confirms_it() {
    let mut follower = serving(1, &[0, 1, 2]);
    hear(&mut follower, 0, invalidate(at(1, 0), 9, 1));
    let replayed = send(2, invalidate(at(1, 0), 9, 2));
    assert_eq!(step(|out| follower.members(NOW, &order(2, &[1, 2], None), out)), [replayed]);
    let done = hear(&mut follower, 2, acknowledge(at(1, 0), 2));
    assert_eq!(done, [send(2, validate(at(1, 0), 2)), ReplicaOut::UpToDate { epoch: 2 }]);
}

#[test]
fn a_write_does_not_wait_for_a_member_that_was_removed() {
    let mut writer = serving(0, &[0, 1, 2]);
    write(&mut writer, 9, 1);
    hear(&mut writer, 1, acknowledge(at(1, 0), 1));
    let again = send(1, invalidate(at(1, 0), 9, 2));
    assert_eq!(step(|out| writer.members(NOW, &order(2, &[0, 1], None), out)), [again], "acknowledged anew");
    let done = hear(&mut writer, 1, acknowledge(at(1, 0), 2));
    assert!(done.contains(&ReplicaOut::WriteDone { ticket: Ticket(1) }));
}

#[test]
fn a_removed_member_answers_nobody_and_forgets_its_timestamps() {
    let mut removed = serving(0, &[0, 1]);
    write(&mut removed, 9, 1);
    write(&mut removed, 10, 2);
    let said = step(|out| removed.members(NOW, &order(2, &[1], None), out));
    let abandoned = |ticket, started| ReplicaOut::Abandoned { ticket: Ticket(ticket), started };
    assert_eq!(said, [abandoned(1, true), abandoned(2, false), ReplicaOut::UpToDate { epoch: 2 }]);
    assert_eq!(removed.read(PAGE, Ticket(3)), Reading::Refuse(Refusal::Stale));
    assert_eq!((removed.timestamp(PAGE).version, removed.standing()), (0, Standing::Out));
}

#[test]
fn alone_in_its_group_a_replica_writes_at_once() {
    let mut alone = serving(0, &[0]);
    assert_eq!(write(&mut alone, 9, 1), [apply(at(1, 0), 9), ReplicaOut::WriteDone { ticket: Ticket(1) }]);
    assert_eq!((alone.in_flight(), alone.next_wakeup()), (0, None));
    let beyond = step(|out| {
        let refused = alone.write(NOW, Page(8), (Value(1), None), Ticket(2), out);
        assert_eq!(refused, Writing::Refuse(Refusal::OutOfRange));
    });
    assert_eq!(beyond, []);
}

/// Carries every message and load between a stale replica and its peer until nothing is left to
/// say.
fn rebuild(stale: &mut Replica, peer: &mut Replica, first: Vec<ReplicaOut>) -> Vec<ReplicaOut> {
    let (mut queue, mut kept) = (std::collections::VecDeque::from(first), Vec::new());
    while let Some(output) = queue.pop_front() {
        queue.extend(match output {
            ReplicaOut::Send { to, message, .. } if to == MEMBERS[0].0 => hear(peer, 1, message),
            ReplicaOut::Send { message, .. } => hear(stale, 0, message),
            ReplicaOut::Load { page } => step(|out| peer.loaded(page, Value(100 + page.0), out)),
            other => {
                kept.push(other);
                vec![]
            }
        });
    }
    kept
}

#[test]
fn a_stale_replica_fetches_every_page_and_serves_from_the_next_epoch() {
    let (mut peer, mut stale) = (serving(0, &[0]), new(1, Contents::Lost));
    write(&mut peer, 103, 1);
    let wanted = order(2, &[0, 1], Some(1));
    step(|out| peer.members(NOW, &wanted, out));
    assert_eq!(step(|out| stale.members(NOW, &order(1, &[0, 1], None), out)), [], "it has nothing to serve with");
    let first = step(|out| stale.members(NOW, &wanted, out));
    assert_eq!(first.len(), 2, "a window of two: {first:?}");
    let kept = rebuild(&mut stale, &mut peer, first);
    let applied = kept.iter().filter(|output| matches!(output, ReplicaOut::Apply { .. })).count();
    assert_eq!((applied, kept.last()), (8, Some(&ReplicaOut::UpToDate { epoch: 2 })));
    assert!(kept.contains(&apply(at(1, 0), 103)));
    assert_eq!((stale.standing(), stale.read(PAGE, Ticket(1))), (Standing::Rebuilt, Reading::Refuse(Refusal::Stale)));
    step(|out| stale.members(NOW, &order(3, &[0, 1], None), out));
    assert_eq!((stale.read(PAGE, Ticket(2)), stale.timestamp(PAGE)), (Reading::Serve, at(1, 0)));
}

#[test]
fn a_page_in_flight_is_not_passed_to_a_stale_replica_before_it_is_valid() {
    let mut peer = serving(0, &[0, 1, 2]);
    step(|out| peer.members(NOW, &order(2, &[0, 1, 2], Some(1)), out));
    write(&mut peer, 9, 1);
    let fetch = ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 2 };
    assert_eq!(hear(&mut peer, 1, fetch), []);
    hear(&mut peer, 1, acknowledge(at(1, 0), 2));
    let done = hear(&mut peer, 2, acknowledge(at(1, 0), 2));
    let fetched = ReplicaMessage::Fetched { page: PAGE, timestamp: at(1, 0), value: Value(9), epoch: 2 };
    assert!(done.contains(&send(1, fetched)));
}

#[test]
fn a_load_that_a_write_has_overtaken_is_not_passed_on() {
    let mut peer = serving(0, &[0, 1]);
    step(|out| peer.members(NOW, &order(2, &[0, 1], Some(1)), out));
    assert_eq!(
        hear(&mut peer, 1, ReplicaMessage::Fetch { page: PAGE, after: None, epoch: 2 }),
        [ReplicaOut::Load { page: PAGE }]
    );
    write(&mut peer, 9, 1);
    assert_eq!(step(|out| peer.loaded(PAGE, Value(0), out)), []);
    let done = hear(&mut peer, 1, acknowledge(at(1, 0), 2));
    let fetched = ReplicaMessage::Fetched { page: PAGE, timestamp: at(1, 0), value: Value(9), epoch: 2 };
    assert!(done.contains(&send(1, fetched)));
}
