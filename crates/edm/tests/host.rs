//! Does the host hold its side of the protocol? What it says, and when, against 3.1.1 and 3.2.1 of
//! the paper.

use base::{Bytes, NodeId, Program, Rate, Span, Time};
use edm::{Access, Body, Config, Grant, Host, HostIn, HostOut, Place, Tag, Transmission, Wire};

fn config() -> Config {
    Config { timeout: Span::us(10), ..Config::TESTBED }
}

const PEER: NodeId = NodeId(1);

fn host(config: Config) -> Host {
    Host::new(NodeId(0), config, Place { nodes: 3, rate: Rate::gbps(25) })
}

fn tell(host: &mut Host, now: Time, input: HostIn) -> Vec<HostOut> {
    let mut out = Vec::new();
    host.on(now, input, &mut out);
    out
}

fn submit(host: &mut Host, now: Time, tag: u32, access: Access) {
    assert_eq!(tell(host, now, HostIn::Submit { tag: Tag(tag), target: PEER, access }), []);
}

fn write(bytes: u32) -> Access {
    Access::Write { address: 0, bytes, word: 0 }
}

const READ: Access = Access::Read { address: 0, bytes: 64 };

/// Everything that the host would send from `now` on, each as soon as it is ready.
fn sent(host: &mut Host, now: Time) -> Vec<(Time, Transmission)> {
    let mut at = now;
    std::iter::from_fn(|| {
        at = host.transmit_ready()?.max(at);
        host.poll_transmit(at).map(|sent| (at, sent))
    })
    .collect()
}

fn notified(sent: &[(Time, Transmission)]) -> Vec<(u32, u8)> {
    let of = |sent: &Transmission| match sent.what {
        Wire::Notification(said) => Some((said.bytes, said.batch)),
        Wire::Memory(_) => None,
    };
    sent.iter().filter_map(|(_, sent)| of(sent)).collect()
}

fn grant_of(sent: &Transmission, bytes: u16) -> Grant {
    let Wire::Notification(said) = sent.what else { panic!("{sent:?} is no notification") };
    Grant { target: said.target, id: said.id, bytes }
}

/// Three writes and three reads at once: X is for each kind, or for both together.
#[test]
fn reads_and_writes_share_x_only_when_they_count_together() {
    for (active_together, at_once, after_an_answer) in [(false, 6, 0), (true, 3, 1)] {
        let ordering = edm::Ordering::Channel;
        let mut host = host(Config { active_together, ordering, batch: Bytes::ZERO, ..config() });
        for tag in 0..3 {
            submit(&mut host, Time::ZERO, 2 * tag, READ);
            submit(&mut host, Time::ZERO, 2 * tag + 1, write(64));
        }
        let first = sent(&mut host, Time::ZERO);
        assert_eq!(first.len(), at_once, "together: {active_together}");
        // The first read is answered: a place is free for one more.
        let Wire::Memory(request) = first[0].1.what else { panic!("{first:?}") };
        let body = Body::ReadResponse { bytes: 64, last: true };
        let message = edm::Message { source: PEER, target: NodeId(0), body, ..request };
        tell(&mut host, Time::us(1), HostIn::Take { message, word: 0 });
        assert_eq!(sent(&mut host, Time::us(1)).len(), after_an_answer, "together: {active_together}");
    }
}

/// X active notifications a pair; what waits behind them shares the next one as far as a chunk
/// goes.
#[test]
fn a_pair_has_x_active_notifications_and_what_waits_is_batched() {
    let mut host = host(config());
    for tag in 0..9 {
        submit(&mut host, Time::ZERO, tag, write(100));
    }
    let first = sent(&mut host, Time::ZERO);
    assert_eq!(notified(&first), [(100, 1); 3]);
    tell(&mut host, Time::ns(100), HostIn::Granted(grant_of(&first[0].1, 100)));
    let second = sent(&mut host, Time::ns(100));
    assert_eq!(notified(&second), [(200, 2)]);
    // One grant lets both of the batch go, one right behind the other.
    let (_, batch) = second.iter().find(|(_, sent)| matches!(sent.what, Wire::Notification(_))).unwrap();
    tell(&mut host, Time::ns(200), HostIn::Granted(grant_of(batch, 200)));
    let data: Vec<_> = sent(&mut host, Time::ns(200)).into_iter().map(|(_, sent)| sent).collect();
    let chain: Vec<_> = data[..2].iter().map(|sent| (sent.tag, sent.lead, sent.followed)).collect();
    assert_eq!(chain, [(Tag(3), Tag(3), true), (Tag(4), Tag(3), false)]);
}

/// Sizes at the end of their field do not add up beyond it.
#[test]
fn the_largest_writes_are_notified_one_by_one() {
    let mut host = host(config());
    for tag in 0..5 {
        submit(&mut host, Time::ZERO, tag, write(u32::MAX));
    }
    assert_eq!(notified(&sent(&mut host, Time::ZERO)), [(u32::MAX, 1); 3]);
}

/// Ordering `Pair`: a read that comes after a write waits for its grant, then for its data to
/// leave, then for as long as data take through the switch: an RREQ is faster there.
#[test]
fn a_read_leaves_so_late_after_a_write_that_it_cannot_overtake_it_in_the_switch() {
    let mut host = host(config());
    submit(&mut host, Time::ZERO, 0, write(64));
    submit(&mut host, Time::ZERO, 1, READ);
    let first = sent(&mut host, Time::ZERO);
    assert_eq!(first.len(), 1, "the read waits: {first:?}");
    let granted_at = Time::ns(200);
    tell(&mut host, granted_at, HostIn::Granted(grant_of(&first[0].1, 64)));
    // However long the uplink was busy: the data go first, although control is ready and it was its
    // turn.
    let later = granted_at + Span::ns(50);
    let then = sent(&mut host, later);
    let kinds: Vec<_> = then.iter().map(|(at, sent)| (*at, sent.tag)).collect();
    let forward = config().phy_clock.cycles(4);
    assert_eq!(kinds, [(later, Tag(0)), (later + forward, Tag(1))]);
    assert!(matches!(then[1].1.what, Wire::Memory(message) if matches!(message.body, Body::ReadRequest { .. })));
}

/// The timer of a read: still waiting at a picosecond before, NULL at it, and never twice.
#[test]
fn a_read_is_answered_with_null_at_its_timer_and_not_a_picosecond_earlier() {
    let mut host = host(config());
    submit(&mut host, Time::ns(5), 7, READ);
    let due = Time::ns(5) + config().timeout;
    assert_eq!(host.next_wakeup(), Some(due));
    let mut out = Vec::new();
    host.on_wakeup(due - Span::ps(1), &mut out);
    assert_eq!(out, []);
    host.on_wakeup(due, &mut out);
    assert_eq!(out, [HostOut::Null { tag: Tag(7) }]);
    assert_eq!((host.next_wakeup(), host.outstanding()), (None, vec![]));
}

/// What nobody has asked for changes nothing and is said to be unexpected. Of a node that exists, a
/// grant is withdrawn, one at a time.
#[test]
fn grants_and_answers_that_nobody_waits_for_are_ignored() {
    let mut host = host(config());
    let id = edm::MessageId(0x80);
    assert_eq!(
        tell(&mut host, Time::ZERO, HostIn::Granted(Grant { target: PEER, id, bytes: 64 })),
        [HostOut::Unexpected]
    );
    let other = Grant { target: NodeId(2), id, bytes: 64 };
    assert_eq!(tell(&mut host, Time::ZERO, HostIn::Granted(other)), [HostOut::Unexpected]);
    let beyond = Grant { target: NodeId(400), id, bytes: 64 };
    assert_eq!(tell(&mut host, Time::ZERO, HostIn::Granted(beyond)), [HostOut::Unexpected]);
    let body = Body::ReadResponse { bytes: 64, last: true };
    for source in [PEER, NodeId(400)] {
        let message = edm::Message { source, target: NodeId(0), id: edm::MessageId(3), body };
        assert_eq!(tell(&mut host, Time::ZERO, HostIn::Take { message, word: 0 }), [HostOut::Unexpected]);
    }
    assert_eq!(withdrawn(&mut host), [(PEER, id)]);
}

/// The /N/ of zero bytes that the host sends, and nothing else.
fn withdrawn(host: &mut Host) -> Vec<(NodeId, edm::MessageId)> {
    withdrawn_from(host, Time::us(1))
}

fn withdrawn_from(host: &mut Host, now: Time) -> Vec<(NodeId, edm::MessageId)> {
    let of = |(_, sent): (Time, Transmission)| match sent.what {
        Wire::Notification(edm::Notification { target, id, bytes: 0, batch: 1 }) if sent.tag == Tag::NONE => {
            (target, id)
        }
        _ => panic!("{sent:?} is no withdrawal"),
    };
    sent(host, now).into_iter().map(of).collect()
}

/// More than is left of a write is withdrawn before the next /N/, which needs its place of X.
#[test]
fn a_grant_of_more_than_is_left_is_withdrawn_before_the_next_notification() {
    let mut host = host(Config { active_per_pair: 1, ..config() });
    submit(&mut host, Time::ZERO, 0, write(64));
    submit(&mut host, Time::ZERO, 1, write(100));
    let first = sent(&mut host, Time::ZERO);
    assert_eq!(notified(&first), [(64, 1)]);
    let grant = grant_of(&first[0].1, 256);
    assert_eq!(tell(&mut host, Time::ns(100), HostIn::Granted(grant)), [HostOut::Unexpected]);
    assert_eq!(notified(&sent(&mut host, Time::ns(100))), [(0, 1), (100, 1)]);
    // A grant on the way makes another one, and so does one after the write's time is over.
    assert_eq!(tell(&mut host, Time::us(1), HostIn::Granted(grant)), [HostOut::Unexpected]);
    assert_eq!(withdrawn(&mut host), [(PEER, grant.id)]);
}

fn read_request(id: u8, bytes: u32) -> HostIn {
    let body = Body::ReadRequest { address: 0, bytes };
    let message = edm::Message { source: PEER, target: NodeId(0), id: edm::MessageId(id), body };
    HostIn::Serve { message, tag: Tag(1) }
}

fn answer_grant(id: u8, bytes: u16) -> HostIn {
    HostIn::Granted(Grant { target: PEER, id: edm::MessageId(id), bytes })
}

/// The bytes of each chunk of an answer that the host sends.
fn answered(host: &mut Host, now: Time) -> Vec<u32> {
    let bytes = |(_, sent): (Time, Transmission)| match sent.what {
        Wire::Memory(edm::Message { body: Body::ReadResponse { bytes, .. }, .. }) => Some(bytes),
        _ => None,
    };
    sent(host, now).into_iter().filter_map(bytes).collect()
}

/// A memory node keeps grants for an answer whose data its memory has not delivered. For one that
/// it has granted whole there is nothing left.
#[test]
fn only_an_answer_that_was_granted_whole_is_withdrawn() {
    for (bytes, early) in [(64, None), (300, Some(44))] {
        let mut host = host(config());
        if let Some(bytes) = early {
            assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, bytes)), []);
        }
        assert_eq!(host.transmit_ready(), None);
        assert_eq!(tell(&mut host, Time::ZERO, read_request(5, bytes)), []);
        assert_eq!(answered(&mut host, Time::us(1)).iter().sum::<u32>(), bytes);
        assert_eq!(tell(&mut host, Time::us(1), answer_grant(5, 256)), [HostOut::Unexpected]);
        assert_eq!(withdrawn(&mut host), [(PEER, edm::MessageId(5))]);
    }
}

/// Whether a grant comes before the data or after, a ghost of an answer is withdrawn by the first
/// one that is more than what is left.
#[test]
fn a_grant_of_more_than_is_left_of_an_answer_is_withdrawn() {
    for bytes in [64, 300] {
        let mut host = host(config());
        assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, 256)), []);
        assert_eq!(tell(&mut host, Time::ZERO, read_request(5, bytes)), [HostOut::Unexpected]);
        assert_eq!(notified(&sent(&mut host, Time::ZERO)), [(0, 1)]);
    }
    let mut host = host(config());
    assert_eq!(tell(&mut host, Time::ZERO, read_request(5, 300)), []);
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, 256)), [HostOut::Unexpected]);
    assert_eq!(notified(&sent(&mut host, Time::ZERO)), [(0, 1)]);
}

/// Ids come round after 128. What was granted for a request that was lost is not for the next one
/// with its id.
#[test]
fn a_grant_whose_request_was_lost_serves_no_later_read() {
    let mut host = host(config());
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, 256)), []);
    let mut unexpected = 0;
    for id in (6..128).chain(0..5) {
        unexpected += tell(&mut host, Time::ZERO, read_request(id, 64)).len();
        assert_eq!(answered(&mut host, Time::ZERO), [64]);
    }
    assert_eq!(unexpected, 1, "the grant is given up once");
    assert_eq!(tell(&mut host, Time::ZERO, read_request(5, 600)), []);
    assert_eq!(answered(&mut host, Time::ZERO), [256], "its request grants the first chunk");
}

/// The switch may have a demand without an end. Grants meanwhile do not put the timer off.
#[test]
fn a_grant_whose_request_never_comes_is_withdrawn_once_at_its_timer() {
    let mut host = host(config());
    assert_eq!(tell(&mut host, Time::ns(5), answer_grant(5, 256)), []);
    assert_eq!(tell(&mut host, Time::us(9), answer_grant(5, 256)), []);
    let due = Time::ns(5) + config().timeout;
    assert_eq!((host.next_wakeup(), host.transmit_ready()), (Some(due), None));
    let mut out = Vec::new();
    host.on_wakeup(due - Span::ps(1), &mut out);
    assert_eq!(out, []);
    host.on_wakeup(due, &mut out);
    assert_eq!((out, host.next_wakeup()), (vec![HostOut::Unexpected], None));
    assert_eq!(withdrawn(&mut host), [(PEER, edm::MessageId(5))]);
    assert_eq!(tell(&mut host, due, read_request(5, 600)), []);
    assert_eq!(answered(&mut host, due), [256], "nothing is left of the sum");
}

/// Reads of both sides of its place, in one that has a grant.
#[test]
fn the_next_request_in_a_place_empties_it_and_others_do_not() {
    let mut host = host(config());
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, 44)), []);
    for id in [3, 4, 6, 7, 8] {
        assert_eq!(tell(&mut host, Time::ZERO, read_request(id, 64)), []);
    }
    assert_eq!(tell(&mut host, Time::ZERO, read_request(9, 300)), [HostOut::Unexpected]);
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(9, 44)), []);
    assert_eq!(answered(&mut host, Time::ZERO), [64, 64, 64, 64, 64, 256, 44]);
    // The same with a later grant in place of the request.
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(13, 44)), []);
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(17, 44)), [HostOut::Unexpected]);
    assert_eq!(tell(&mut host, Time::ZERO, read_request(17, 300)), []);
    assert_eq!(answered(&mut host, Time::ZERO), [256, 44]);
}

/// Without an order an old answer may be open beside any other.
#[test]
fn without_an_order_each_id_has_a_place_of_its_own() {
    let mut host = host(Config { ordering: edm::Ordering::None, ..config() });
    assert_eq!(tell(&mut host, Time::ZERO, answer_grant(5, 44)), []);
    for id in (6..128).chain(0..5).chain([5]) {
        assert_eq!(tell(&mut host, Time::ZERO, read_request(id, 300)), []);
    }
    assert_eq!(answered(&mut host, Time::ZERO).last(), Some(&44));
}

/// A later grant of an answer is lost. Its reader's timer fires twice at most after the last chunk.
#[test]
fn an_answer_that_is_granted_no_more_is_forgotten_when_its_reader_must_have_given_up() {
    let mut host = host(config());
    assert_eq!(tell(&mut host, Time::ZERO, read_request(5, 600)), []);
    let mut out = Vec::new();
    let mut at = Time::ZERO;
    while let Some(due) = host.next_wakeup() {
        at = due;
        host.on_wakeup(due, &mut out);
    }
    assert_eq!((at, out), (Time::ZERO + config().timeout * 4, vec![]));
    assert_eq!(answered(&mut host, at), [256]);
    assert_eq!(tell(&mut host, at, answer_grant(5, 256)), [HostOut::Unexpected]);
    assert_eq!(withdrawn_from(&mut host, at), [(PEER, edm::MessageId(5))]);
}

/// Its grant is lost, and a later read comes with its id or to its place.
#[test]
fn an_open_answer_ends_with_the_next_request_in_its_place() {
    for id in [5, 9] {
        let mut host = host(config());
        assert_eq!(tell(&mut host, Time::ZERO, read_request(5, 600)), []);
        assert_eq!(tell(&mut host, Time::ZERO, read_request(id, 300)), [HostOut::Unexpected]);
        assert_eq!(tell(&mut host, Time::ZERO, answer_grant(id, 44)), []);
        assert_eq!(answered(&mut host, Time::ZERO), [256, 256, 44]);
    }
}

/// A grant of no bytes is a breach, for whatever it is.
#[test]
fn a_grant_of_no_bytes_changes_nothing() {
    let mut host = host(config());
    for id in [5, 0x85] {
        assert_eq!(tell(&mut host, Time::ZERO, answer_grant(id, 0)), [HostOut::Unexpected]);
    }
    assert_eq!((host.next_wakeup(), host.transmit_ready()), (None, None));
}

/// A read whose answer is lost has its id until its timer fires. 127 others go meanwhile.
#[test]
fn an_id_is_not_used_again_while_its_request_is_open() {
    for access in [READ, write(64)] {
        let mut host = host(Config { batch: Bytes::ZERO, timeout: Span::ms(1), ..config() });
        for tag in 0..129 {
            submit(&mut host, Time::ZERO, tag, access);
        }
        let mut ended = 0;
        loop {
            let mut others = sent(&mut host, Time::ZERO).into_iter().filter(|(_, sent)| sent.tag != Tag(0)).peekable();
            if others.peek().is_none() {
                break;
            }
            for (_, sent) in others {
                ended += u32::from(end(&mut host, &sent));
            }
        }
        assert_eq!((ended, host.outstanding()), (127, vec![Tag(128), Tag(0)]));
        host.on_wakeup(Time::ms(1), &mut Vec::new());
        assert_eq!(sent(&mut host, Time::ms(1)).len(), 1, "the last one goes with the id of the first");
    }
}

/// Answers a read, or grants a write; whether it was one of them.
fn end(host: &mut Host, sent: &Transmission) -> bool {
    match sent.what {
        Wire::Memory(request @ edm::Message { body: Body::ReadRequest { bytes, .. }, .. }) => {
            let body = Body::ReadResponse { bytes, last: true };
            let message = edm::Message { source: PEER, target: NodeId(0), body, ..request };
            tell(host, Time::ZERO, HostIn::Take { message, word: 0 });
            true
        }
        Wire::Memory(_) => false,
        Wire::Notification(_) => {
            tell(host, Time::ZERO, HostIn::Granted(grant_of(sent, 64)));
            true
        }
    }
}
